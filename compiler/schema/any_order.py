"""Objects whose declared keys may stand in any order: automata over the subsets of keys that were seen.

Leaves out   the declared order (member_automata.py), text (object_rules.py).
Invariants   a declared key stands at most once and never as an undeclared one; undeclared members may stand anywhere;
             a state is (declared keys seen, members so far as far as bounds tell them apart, needs met), so there are
             2^keys of them and more with counts. Past MAX_KEYS, or the limits of member_automata.py, there is no
             automaton: the caller writes the object in declared order.
"""

from __future__ import annotations

from collections.abc import Callable

from .atoms import Conj
from .keywords import MAX_KEYS
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


class _NoRoom(Exception):
    """The automaton would be too large."""


def any_order_machine(shape: Objects, alive: Callable[[Conj], bool], keyed: Callable[[int], bool]) -> Machine | None:
    """The automaton of an object that has a value, its keys in any order; None where they have too many subsets.

    Args:
        shape: the object.
        alive: whether a conj has a value.
        keyed: whether there are undeclared keys that meet some needs (bits).
    """
    if sum(alive(value) for _, value in shape.named) > MAX_KEYS:
        return None
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

    try:
        found = build((0, 0, 0), moves, _NoRoom)
    except _NoRoom:
        return None
    assert found is not None, "a shape that does not live is not written"
    return found


def constant_machine(names: list[str]) -> Machine | None:
    """The automaton of a constant object: every name once, in any order; None where they have too many subsets.

    The values of the payloads do not matter.
    """
    if len(names) > MAX_KEYS:
        return None

    def moves(seen: State) -> Moves:
        rest = [index for index in range(len(names)) if not seen >> index & 1]
        return not rest, [(Named(names[index], ()), seen | 1 << index) for index in rest]

    return build(0, moves, _NoRoom)
