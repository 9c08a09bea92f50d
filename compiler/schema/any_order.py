"""Objects whose declared keys may stand in any order: automata over the subsets of keys that were seen.

Leaves out   the declared order (member_automata.py), text (object_rules.py).
Invariants   a declared key stands at most once and never as an undeclared one; undeclared members may stand anywhere;
             a state is (declared keys seen, members so far as far as bounds tell them apart, needs met), so there are
             2^keys of them and more with counts: past MAX_KEYS, or the limits of member_automata.py, the object is
             refused.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import UnsupportedError
from .atoms import Conj
from .member_automata import (
    Machine,
    Moves,
    Named,
    Open,
    Payload,
    State,
    build,
    choices_of_needs,
    least,
    subsets,
    with_needs,
)
from .shapes import Objects

MAX_KEYS = 10
"""Declared keys of one object; each doubles the automaton. Ten are about 60 MB of tables."""


def any_order_machine(
    shape: Objects, alive: Callable[[Conj], bool], keyed: Callable[[int], bool], place: str | None
) -> Machine:
    """The automaton of an object that has a value; its keys in any order.

    Args:
        shape: the object.
        alive: whether a conj has a value.
        keyed: whether there are undeclared keys that meet some needs (bits).
        place: of the object, for errors.

    Raises:
        UnsupportedError: the declared keys have too many subsets.
    """
    if sum(alive(value) for _, value in shape.named) > MAX_KEYS:
        raise too_many(len(shape.named), place)
    low, high, full = least(shape), shape.high, (1 << len(shape.needs)) - 1
    most = low if high is None else high
    needed = sum(1 << index for index, (name, _) in enumerate(shape.named) if name in shape.required)

    def moves(state: State) -> Moves:
        seen, count, met = state
        ends = seen & needed == needed and count >= low and met == full
        out: dict[tuple[Payload, State], None] = {}
        if high is not None and count >= high:
            return ends, []
        after = min(count + 1, most)
        for index, (name, value) in enumerate(shape.named):
            if not seen >> index & 1:
                for chosen in choices_of_needs(shape, shape.able[index] & ~met if shape.able else 0):
                    inner = with_needs(value, shape, chosen)
                    if alive(inner):
                        out.setdefault((Named(name, inner), (seen | 1 << index, after, met | chosen)))
        for index, one in enumerate(shape.opened):
            for chosen in subsets(full & ~met):
                inner = with_needs(one.value, shape, chosen)
                if alive(inner) and keyed(chosen):
                    out.setdefault((Open(index, chosen, inner), (seen, after, met | chosen)))
        return ends, list(out)

    found = build((0, 0, 0), moves, lambda: too_many(len(shape.named), place))
    assert found is not None, "a shape that does not live is not written"
    return found


def constant_machine(names: list[str], place: str | None) -> Machine:
    """The automaton of a constant object: every name once, in any order; the values of the payloads do not matter."""

    if len(names) > MAX_KEYS:
        raise too_many(len(names), place)

    def moves(seen: State) -> Moves:
        rest = [index for index in range(len(names)) if not seen >> index & 1]
        return not rest, [(Named(names[index], ()), seen | 1 << index) for index in rest]

    found = build(0, moves, lambda: too_many(len(names), place))
    assert found is not None
    return found


def too_many(keys: int, place: str | None) -> UnsupportedError:
    """The error for an object with more orders than the automaton has room for."""
    return UnsupportedError(
        "too many subsets of keys to allow them in any order",
        place=place,
        found=f"{keys} keys, and the counts and conditions beside them",
        expected=f"at most {MAX_KEYS} keys in one object, fewer beside counts",
        hint='compile with key_order "declared", or split the object',
    )
