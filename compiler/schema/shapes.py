"""Shapes: what is left of a conj for one JSON type once nothing boolean remains.

Leaves out   how branches arise (normalise.py), text (writer.py).
Invariants   a shape is never visibly empty: ``merge`` gives None instead; child conjs are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from ..errors import UnsupportedError
from .atoms import (
    ANY,
    NEVER,
    AtLeast,
    AtMost,
    Atom,
    Conj,
    Count,
    Integral,
    Items,
    Matches,
    Members,
    Multiple,
    Refused,
    Required,
    Values,
    both,
)
from .nodes import Constant
from .values import Number, minus


@dataclass(frozen=True)
class Constants:
    """Finitely many values of one kind; null and boolean shapes are always this."""

    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Numbers:
    """Numbers in an interval; ``integral``: without a fraction, ``fractional``: with one."""

    low: Number | None = None
    low_strict: bool = False
    high: Number | None = None
    high_strict: bool = False
    integral: bool = False
    fractional: bool = False


@dataclass(frozen=True)
class Strings:
    """Strings by length in characters and by patterns; ``excluded`` are values that are not allowed."""

    low: int = 0
    high: int | None = None
    patterns: tuple[Matches, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrays:
    """Arrays by position; ``high`` is never below ``low`` and never above the prefix where ``rest`` is None."""

    prefix: tuple[Conj, ...] = ()
    rest: Conj = ANY
    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class OpenKeys:
    """Undeclared keys that match some patterns and not others, and what they hold."""

    matched: tuple[Matches, ...] = ()
    unmatched: tuple[Matches, ...] = ()
    value: Conj = ANY


@dataclass(frozen=True)
class Objects:
    """Objects by key. ``named`` in the declared order (None: the key may not be there); ``required`` is a subset.

    ``opened`` are disjoint classes of undeclared keys; a key of no class may not be there.
    """

    named: tuple[tuple[str, Conj], ...] = ()
    required: tuple[str, ...] = ()
    opened: tuple[OpenKeys, ...] = (OpenKeys(),)


Shape: TypeAlias = Constants | Numbers | Strings | Arrays | Objects

MAX_PATTERNS = 5
"""Patterns of keys in one object: every combination of them is a class of keys."""

FULL: dict[str, Shape] = {"number": Numbers(), "string": Strings(), "array": Arrays(), "object": Objects()}

CONSTANTS = {
    "null": (Constant(("null", None), None),),
    "boolean": (Constant(("boolean", True), True), Constant(("boolean", False), False)),
}


def merge(
    kind: str,
    atoms: Sequence[Atom],
    holds: Callable[[Atom, object], bool],
    matches: Callable[[Matches, str], bool],
    drop: Callable[[str, str], None] | None = None,
) -> Shape | None:
    """One shape from the atoms of a branch, or None if they visibly contradict each other.

    Args:
        kind: the JSON type.
        atoms: what must hold.
        holds: whether an atom holds for a concrete value.
        matches: whether a key matches a pattern.
        drop: in lenient mode, told (place, keyword) of each unsupported keyword that is left out; None: an error.
    """
    if drop is not None:
        for atom in atoms:
            if isinstance(atom, (Refused, Multiple)):
                drop(atom.place, atom.keyword if isinstance(atom, Refused) else "multipleOf")
        atoms = [atom for atom in atoms if not isinstance(atom, (Refused, Multiple))]
    listed = [atom for atom in atoms if isinstance(atom, Values)]
    choices = next((atom.values for atom in listed if atom.positive), CONSTANTS.get(kind))
    if choices is not None:
        _refuse(atoms, bool(choices))
        kept = tuple(one for one in choices if all(holds(atom, one.value) for atom in atoms))
        return Constants(kept) if kept else None
    build = {"number": _numbers, "string": _strings, "array": _arrays}.get(kind)
    shape = build(atoms) if build else _objects(atoms, matches)
    _refuse(atoms, shape is not None)
    if shape is not None and kind in ("array", "object") and listed:
        raise UnsupportedError(f"the complement of an enum of {kind}s is not supported")
    return shape


def _refuse(atoms: Sequence[Atom], matters: bool) -> None:
    if not matters:
        return
    for atom in atoms:
        if isinstance(atom, Refused):
            raise UnsupportedError(atom.reason or f"the keyword {atom.keyword} is not supported yet", place=atom.place)
        if isinstance(atom, Multiple):
            raise UnsupportedError("multipleOf is not supported yet", place=atom.place)


def _numbers(atoms: Sequence[Atom]) -> Numbers | None:
    low: tuple[Number, bool] | None = None
    high: tuple[Number, bool] | None = None
    integral = fractional = False
    for atom in atoms:
        if isinstance(atom, AtLeast):
            low = (atom.value, atom.strict) if low is None else max(low, (atom.value, atom.strict))
        elif isinstance(atom, AtMost):
            if high is None or (atom.value, not atom.strict) < (high[0], not high[1]):
                high = (atom.value, atom.strict)
        elif isinstance(atom, Integral):
            integral, fractional = integral or atom.positive, fractional or not atom.positive
    if integral and fractional:
        return None
    if integral:
        low = None if low is None else (_ceiling(*low), False)
        high = None if high is None else (-_ceiling(minus(high[0]), high[1]), False)
    if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
        return None
    low_value, low_strict = low or (None, False)
    high_value, high_strict = high or (None, False)
    if fractional and (low or high):
        raise UnsupportedError("bounds on numbers that are not integers are not supported yet")
    return Numbers(low_value, low_strict, high_value, high_strict, integral, fractional)


def _ceiling(value: Number, strict: bool) -> int:
    """The least integer that is at least, or with ``strict`` above, ``value``."""
    whole = int(value)
    whole += whole < value
    return whole + (strict and whole == value)


def _count(atoms: Sequence[Atom]) -> tuple[int, int | None] | None:
    low, high = 0, None
    for atom in atoms:
        if isinstance(atom, Count):
            low = max(low, atom.low)
            if atom.high is not None:
                high = atom.high if high is None else min(high, atom.high)
    return None if high is not None and high < low else (low, high)


def _strings(atoms: Sequence[Atom]) -> Strings | None:
    count = _count(atoms)
    if count is None:
        return None
    patterns: dict[tuple[str, bool], Matches] = {}
    excluded: dict[str, None] = {}
    for atom in atoms:
        if isinstance(atom, Matches):
            if (atom.pattern, not atom.positive) in patterns:
                return None
            patterns.setdefault((atom.pattern, atom.positive), atom)
        elif isinstance(atom, Values):
            excluded.update((constant.value, None) for constant in atom.values)
    return Strings(*count, tuple(patterns.values()), tuple(excluded))


def _arrays(atoms: Sequence[Atom]) -> Arrays | None:
    count = _count(atoms)
    if count is None:
        return None
    low, high = count
    parts = [atom for atom in atoms if isinstance(atom, Items)]
    prefix: list[Conj] = []
    rest = ANY
    for part in parts:
        rest = both(rest, part.rest)
    for index in range(max((len(part.prefix) for part in parts), default=0)):
        item = ANY
        for part in parts:
            item = both(item, part.prefix[index] if index < len(part.prefix) else part.rest)
        prefix.append(item)
    if NEVER in prefix:
        at = prefix.index(NEVER)
        prefix, rest = prefix[:at], NEVER
    if rest is NEVER:
        high = len(prefix) if high is None else min(high, len(prefix))
    if high is not None:
        del prefix[high:]
        if high == len(prefix):
            rest = NEVER
        if high < low:
            return None
    while prefix and prefix[-1] == rest:
        prefix.pop()
    return Arrays(tuple(prefix), rest, low, high)


def _objects(atoms: Sequence[Atom], matches: Callable[[Matches, str], bool]) -> Objects | None:
    parts = [atom for atom in atoms if isinstance(atom, Members)]
    required = tuple(dict.fromkeys(name for atom in atoms if isinstance(atom, Required) for name in atom.names))
    names = dict.fromkeys(_merged([name for name, _ in part.named] for part in parts if part.declares))
    names.update(dict.fromkeys(required))
    names.update(dict.fromkeys(name for part in parts for name, _ in part.named))
    tables = [(dict(part.named), part) for part in parts]
    named: list[tuple[str, Conj]] = []
    for name in names:
        value = ANY
        for table, part in tables:
            value = both(value, table.get(name, ANY))
            found = name in table
            for match, inside in part.patterns:
                if matches(match, name):
                    found, value = True, both(value, inside)
            if not found:
                value = both(value, part.rest)
        if value is NEVER and name in required:
            return None
        named.append((name, value))
    opened = _open_classes(parts)
    if not opened:
        named = [(name, value) for name, value in named if value is not NEVER]
    return Objects(tuple(named), required, opened)


def _merged(orders: Iterable[list[str]]) -> list[str]:
    """One order of names that keeps to every given order where they do not contradict each other, left before right."""
    merged: list[str] = []
    for order in orders:
        if not merged:
            merged = list(order)
            continue
        known = set(merged)
        waiting: list[str] = []
        for name in order:
            if name not in known:
                waiting.append(name)
            elif waiting:
                at = merged.index(name)
                merged[at:at] = waiting
                waiting = []
        merged += waiting
    return merged


def _open_classes(parts: Sequence[Members]) -> tuple[OpenKeys, ...]:
    """What undeclared keys may hold, by which of the patterns they match."""
    tests: dict[tuple[str], Matches] = {}
    for part in parts:
        for match, _ in part.patterns:
            tests.setdefault((match.pattern,), match)
    if len(tests) > MAX_PATTERNS:
        raise UnsupportedError(
            f"more than {MAX_PATTERNS} patterns for the keys of one object are not supported",
            place=next(iter(tests.values())).place,
        )
    found: list[OpenKeys] = []
    for chosen in product((True, False), repeat=len(tests)):
        matched = {pattern for pattern, yes in zip(tests, chosen) if yes}
        value = ANY
        for part in parts:
            inside = [conj for match, conj in part.patterns if (match.pattern,) in matched]
            for conj in inside or [part.rest]:
                value = both(value, conj)
        if value is not NEVER:
            yes, no = ([match for key, match in tests.items() if (key in matched) == side] for side in (True, False))
            found.append(OpenKeys(tuple(yes), tuple(no), value))
    return tuple(found)
