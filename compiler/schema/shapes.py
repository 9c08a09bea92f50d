"""Shapes: what is left of a conj for one JSON type once nothing boolean remains.

Leaves out   how branches arise (normalise.py), text (writer.py).
Invariants   a shape is never visibly empty: ``merge`` gives None instead; child conjs are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """Numbers in an interval."""

    low: Number | None = None
    low_strict: bool = False
    high: Number | None = None
    high_strict: bool = False
    integral: bool = False


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
class Objects:
    """Objects by key. ``named`` in the declared order (None: the key may not be there); ``required`` is a subset."""

    named: tuple[tuple[str, Conj], ...] = ()
    required: tuple[str, ...] = ()
    patterns: tuple[tuple[Matches, Conj], ...] = ()
    rest: Conj = ANY


Shape: TypeAlias = Constants | Numbers | Strings | Arrays | Objects

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
) -> Shape | None:
    """One shape from the atoms of a branch, or None if they visibly contradict each other.

    Args:
        kind: the JSON type.
        atoms: what must hold.
        holds: whether an atom holds for a concrete value.
        matches: whether a key matches a pattern.
    """
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
    integral = False
    for atom in atoms:
        if isinstance(atom, AtLeast):
            low = (atom.value, atom.strict) if low is None else max(low, (atom.value, atom.strict))
        elif isinstance(atom, AtMost):
            if high is None or (atom.value, not atom.strict) < (high[0], not high[1]):
                high = (atom.value, atom.strict)
        elif isinstance(atom, Integral):
            if not atom.positive:
                raise UnsupportedError("the complement of integer is not supported yet")
            integral = True
    if integral:
        low = None if low is None else (_ceiling(*low), False)
        high = None if high is None else (-_ceiling(minus(high[0]), high[1]), False)
    if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
        return None
    low_value, low_strict = low or (None, False)
    high_value, high_strict = high or (None, False)
    return Numbers(low_value, low_strict, high_value, high_strict, integral)


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
    names = dict.fromkeys(name for part in parts if part.declares for name, _ in part.named)
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
    rest = ANY
    patterns: dict[Matches, Conj] = {}
    for part in parts:
        if part.patterns:
            patterns.update(part.patterns)
        rest = both(rest, part.rest)
    if patterns and len(parts) > 1:
        return _refuse_patterns(patterns)
    if patterns:
        return _refuse_patterns(patterns)
    if rest is NEVER:
        named = [(name, value) for name, value in named if value is not NEVER]
    return Objects(tuple(named), required, tuple(patterns.items()), rest)


def _refuse_patterns(patterns: dict[Matches, Conj]) -> Objects:
    raise UnsupportedError("the keyword patternProperties is not supported yet", place=next(iter(patterns)).place)
