"""Build automata over whole members: for counts, conditions on some members, and unique items.

Leaves out   the rules of members (array_rules.py, object_rules.py), arrays and objects that need none of this.
Invariants   states that cannot reach the end are dropped; a shape whose start is dropped has no value; a payload is an
             item, a member or nothing (``None``: on to the next name). Runs of undeclared members with nothing left to
             meet are one payload, a counted repeat, so bounds on them cost no states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import UnsupportedError
from .atoms import ANY, Conj, Contains, both, opposite
from .nodes import Constant
from .shapes import Arrays, Objects

MAX_STATES = 4096
MAX_OBJECT_STATES = 16_384
"""Limits on the automaton of an array, or an object with keys in any order, and on that of any other object."""

_MOVES = 4  # of each of so many states, at most, on average


@dataclass(frozen=True)
class Item:
    """One item of an array: any that satisfies a conj, or one constant."""

    value: Conj | Constant


@dataclass(frozen=True)
class Named:
    """A declared member."""

    name: str
    value: Conj


@dataclass(frozen=True)
class Open:
    """An undeclared member of a class, its key meeting some needs (bits)."""

    index: int
    needs: int
    value: Conj


@dataclass(frozen=True)
class Run:
    """``low`` to ``high`` undeclared members, whatever they are; ``high`` is not 0."""

    low: int
    high: int | None


Payload: TypeAlias = Item | Named | Open | Run | None
State: TypeAlias = Any  # hashable
Moves: TypeAlias = tuple[bool, list[tuple[Payload, State]]]


@dataclass(frozen=True)
class Machine:
    """States by number, 0 the start.

    Attributes:
        moves: per state (payload, next state).
        ends: per state whether the value may end there.
    """

    moves: tuple[tuple[tuple[Payload, int], ...], ...]
    ends: tuple[bool, ...]


def build(
    start: State,
    moves: Callable[[State], Moves],
    refusal: Callable[[], Exception],
    most: int = MAX_STATES,
) -> Machine | None:
    """The automaton that is met from a start, None if it cannot end; with more states the refusal is raised."""
    number: dict[State, int] = {start: 0}
    found: list[Moves] = []
    order, total = [start], 0
    for state in order:
        ends, out = moves(state)
        total += len(out)
        if len(order) > most or total > most * _MOVES:
            raise refusal()
        found.append((ends, out))
        for _, target in out:
            if target not in number:
                number[target] = len(order)
                order.append(target)
    users: list[list[int]] = [[] for _ in order]
    for index, (_, out) in enumerate(found):
        for _, target in out:
            users[number[target]].append(index)
    work = [index for index, (ends, _) in enumerate(found) if ends]
    alive = set(work)
    while work:
        for user in users[work.pop()]:
            if user not in alive:
                alive.add(user)
                work.append(user)
    if 0 not in alive:
        return None
    kept = [index for index in range(len(order)) if index in alive]
    again = {index: at for at, index in enumerate(kept)}
    table = tuple(
        tuple((payload, again[number[target]]) for payload, target in found[index][1] if number[target] in again)
        for index in kept
    )
    return Machine(table, tuple(found[index][0] for index in kept))


def _too_many(place: str | None) -> UnsupportedError:
    unique = place is not None and place.endswith("/uniqueItems")
    return UnsupportedError(
        "counts and conditions on some members multiply to too many states here",
        place=place,
        hint="lower the bounds, or drop one of contains, uniqueItems, minProperties, maxProperties and not"
        + ("; --relax uniqueItems lets items be equal here" if unique else ""),
    )


# -- arrays


def array_is_plain(shape: Arrays) -> bool:
    """Whether positions and bounds say everything."""
    return not shape.needs and shape.unique is None


def item_choices(shape: Arrays) -> list[Conj]:
    """Every conj that an item of the machine may have to satisfy."""
    found: dict[Conj, None] = {}
    for base in (*shape.prefix, shape.rest):
        for value, _ in _item_options(base, shape.needs, (0,) * len(shape.needs), None):
            found.setdefault(value)
    return list(found)


Counts: TypeAlias = tuple[int, ...]


def _item_options(base: Conj, needs: tuple[Contains, ...], counts: Counts, at: int | None) -> list[tuple[Conj, Counts]]:
    """What an item may be, with the counts after it; with ``at`` None, for any position."""
    options: list[tuple[Conj, Counts]] = [(base, ())]
    for need, count in zip(needs, counts, strict=True):
        grown: list[tuple[Conj, Counts]] = []
        for value, done in options:
            if at is not None and at < need.start:
                grown.append((value, (*done, count)))
                continue
            top = need.low if need.high is None else need.high
            if at is None or count < top:
                grown.append((both(value, need.item), (*done, count + 1)))
            rest = value if need.high is None else both(value, opposite(need.item))
            grown.append((rest, (*done, count)))
        options = grown
    return [(value, done) for value, done in options if value is not None]


def array_machine(
    shape: Arrays,
    alive: Callable[[Conj], bool],
    finite: Callable[[Conj], list[Constant] | None],
    holds: Callable[[Conj, object], bool],
) -> Machine | None:
    """The automaton of an array; None if it has no value.

    Args:
        shape: the array.
        alive: whether a conj has a value.
        finite: the values of a conj, if they are few.
        holds: whether a conj holds for a value.
    """
    needs, low, high = shape.needs, shape.low, shape.high
    starts = [need.start for need in needs]
    most = high if high is not None else max([1, len(shape.prefix), low, *starts])
    values: dict[Hashable, Constant] = {}
    if shape.unique is not None:
        bases = [*shape.prefix] + ([] if high is not None and high <= len(shape.prefix) else [shape.rest])
        for base in bases:
            listed = finite(base)
            if listed is None:
                raise UnsupportedError(
                    "uniqueItems needs items with few possible values",
                    place=shape.unique.place,
                    hint="give the items an enum; --relax uniqueItems lets items be equal here",
                )
            values.update((constant.key, constant) for constant in listed)
    index_of = {key: index for index, key in enumerate(values)}

    def base_at(at: int) -> Conj:
        return shape.prefix[at] if at < len(shape.prefix) else shape.rest

    def moves(state: State) -> Moves:
        at, counts, used, twice = state
        met = all(need.low <= count for need, count in zip(needs, counts, strict=True))
        ends = at >= low and met and (shape.unique is None or shape.unique.positive or twice)
        if high is not None and at >= high:
            return ends, []
        after = min(at + 1, most)
        out: dict[tuple[Payload, State], None] = {}
        if shape.unique is None:
            for value, done in _item_options(base_at(at), needs, counts, at):
                if alive(value):
                    out.setdefault((Item(value), (after, done, 0, False)))
            return ends, list(out)
        for constant in finite(base_at(at)) or ():
            bit = 1 << index_of[constant.key]
            again = bool(used & bit)
            if again and shape.unique.positive:
                continue
            new: list[int] = []
            for need, count in zip(needs, counts, strict=True):
                more = at >= need.start and holds(need.item, constant.value)
                top = need.low if need.high is None else need.high + 1
                new.append(min(count + more, top))
            if any(need.high is not None and count > need.high for need, count in zip(needs, new, strict=True)):
                continue
            state = (after, tuple(new), 0, True) if twice or again else (after, tuple(new), used | bit, False)
            out.setdefault((Item(constant), state))
        return ends, list(out)

    place = shape.unique.place if shape.unique else None
    return build((0, (0,) * len(needs), 0, False), moves, lambda: _too_many(place))


# -- objects


def object_is_plain(shape: Objects) -> bool:
    """Whether which keys are required says everything (or that there is some member at all)."""
    if shape.needs or shape.high is not None:
        return False
    return shape.low <= max(len(shape.required), 1)


def subsets(able: int) -> list[int]:
    """The sub-masks of a mask, largest first."""
    found, sub = [], able
    while True:
        found.append(sub)
        if not sub:
            return found
        sub = (sub - 1) & able


def choices_of_needs(shape: Objects, able: int) -> list[int]:
    """The needs (bits) that a declared member may meet, of those that its key allows; any value meets some of these."""
    always = sum(1 << bit for bit, need in enumerate(shape.needs) if need.value == ANY) & able
    return [chosen for chosen in subsets(able) if chosen & always == always]


def with_needs(value: Conj, shape: Objects, chosen: int) -> Conj:
    """What a member holds that is to meet some needs (bits)."""
    for bit, need in enumerate(shape.needs):
        if chosen >> bit & 1:
            value = both(value, need.value)
    return value


def least(shape: Objects) -> int:
    """How many members there must be, 0 where those that are required are as many."""
    return shape.low if shape.low > len(shape.required) else 0


def most_states(shape: Objects) -> int:
    """How many states the automaton of an object can have: keys, counts and needs met, and the end behind a run."""
    counts = least(shape) if shape.high is None else shape.high
    return ((len(shape.named) + 1) * (counts + 1) << len(shape.needs)) + 1


def member_choices(shape: Objects) -> list[Conj]:
    """Every conj that a member of the machine may have to satisfy."""
    if not shape.needs:
        return list(dict.fromkeys([*(value for _, value in shape.named), *(one.value for one in shape.opened)]))
    found: dict[Conj, None] = {}
    for index, (_, value) in enumerate(shape.named):
        for chosen in choices_of_needs(shape, shape.able[index] if shape.able else 0):
            found.setdefault(with_needs(value, shape, chosen))
    for one in shape.opened:
        for chosen in subsets((1 << len(shape.needs)) - 1):
            found.setdefault(with_needs(one.value, shape, chosen))
    return list(found)


def object_machine(
    shape: Objects, alive: Callable[[Conj], bool], keyed: Callable[[int], bool], place: str | None = None
) -> Machine | None:
    """The automaton of an object; None if it has no value.

    Args:
        shape: the object.
        alive: whether a conj has a value.
        keyed: whether there are undeclared keys that meet some needs (bits).
        place: for errors.
    """
    required, last = set(shape.required), len(shape.named)
    low, high, full = least(shape), shape.high, (1 << len(shape.needs)) - 1
    most = low if high is None else high
    free = keyed(0) and any(alive(one.value) for one in shape.opened)

    def moves(state: State) -> Moves:
        if state == "end":
            return True, []
        at, count, met = state
        out: dict[tuple[Payload, State], None] = {}
        room = high is None or count < high
        if at < last:
            name, value = shape.named[at]
            able = shape.able[at] & ~met if shape.able and room else 0
            for chosen in choices_of_needs(shape, able) if room else []:
                inner = with_needs(value, shape, chosen)
                if alive(inner):
                    out.setdefault((Named(name, inner), (at + 1, min(count + 1, most), met | chosen)))
            if name not in required:
                out.setdefault((None, (at + 1, count, met)))
            return False, list(out)
        if met == full:
            if free and room:
                out.setdefault((Run(max(0, low - count), None if high is None else high - count), "end"))
            return count >= low, list(out)
        for index, one in enumerate(shape.opened) if room else ():
            for chosen in subsets(full & ~met):
                inner = with_needs(one.value, shape, chosen)
                if alive(inner) and keyed(chosen):
                    out.setdefault((Open(index, chosen, inner), (at, min(count + 1, most), met | chosen)))
        return False, list(out)

    return build((0, 0, 0), moves, lambda: _too_many(place), MAX_OBJECT_STATES)
