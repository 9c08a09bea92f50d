"""Shapes: what is left of a conj for one JSON type once nothing boolean remains.

Leaves out   how branches arise (normalise.py), arrays and objects from atoms (containers.py), text (writer.py).
Invariants   a shape is never visibly empty: ``merge`` gives None instead; child conjs are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import UnsupportedError
from .atoms import (
    ANY,
    AtLeast,
    AtMost,
    Atom,
    Conj,
    Contains,
    Count,
    Integral,
    Matches,
    Multiple,
    Refused,
    SomeMember,
    Unique,
    Values,
)
from .nodes import Constant
from .values import Number, is_integral, is_multiple, minus


@dataclass(frozen=True)
class Constants:
    """Finitely many values of one kind; null and boolean shapes are always this."""

    values: tuple[Constant, ...]


@dataclass(frozen=True)
class Numbers:
    """Numbers in an interval; ``integral``: without a fraction, ``fractional``: with one.

    They are multiples of all ``multiples``, and of none of ``others``.
    """

    low: Number | None = None
    low_strict: bool = False
    high: Number | None = None
    high_strict: bool = False
    integral: bool = False
    fractional: bool = False
    multiples: tuple[Number, ...] = ()
    others: tuple[Number, ...] = ()


@dataclass(frozen=True)
class Strings:
    """Strings by length in characters and by patterns; ``excluded`` are values that are not allowed."""

    low: int = 0
    high: int | None = None
    patterns: tuple[Matches, ...] = ()
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Arrays:
    """Arrays by position; ``high`` is never below ``low`` and never above the prefix where ``rest`` is None.

    ``needs`` are counted over the items; ``unique`` None: equal items do not matter.
    """

    prefix: tuple[Conj, ...] = ()
    rest: Conj = ANY
    low: int = 0
    high: int | None = None
    needs: tuple[Contains, ...] = ()
    unique: Unique | None = None


@dataclass(frozen=True)
class OpenKeys:
    """Undeclared keys that match some patterns and not others, and what they hold."""

    matched: tuple[Matches, ...] = ()
    unmatched: tuple[Matches, ...] = ()
    value: Conj = ANY


@dataclass(frozen=True)
class Objects:
    """Objects by key. ``named`` in the declared order (None: the key may not be there); ``required`` is a subset.

    ``opened`` are disjoint classes of undeclared keys; a key of no class may not be there; all satisfy ``key``.
    There are ``low`` to ``high`` members, ``low`` never below the number of required ones. Every need is met by
    some member; ``able`` says per name, as bits, which of them its key allows it to meet.
    """

    named: tuple[tuple[str, Conj], ...] = ()
    required: tuple[str, ...] = ()
    opened: tuple[OpenKeys, ...] = (OpenKeys(),)
    low: int = 0
    high: int | None = None
    key: Conj = ANY
    needs: tuple[SomeMember, ...] = ()
    able: tuple[int, ...] = ()


Shape: TypeAlias = Constants | Numbers | Strings | Arrays | Objects


def is_integral_shape(shape: Shape) -> bool:
    """Whether only integers are numbers of a shape."""
    if isinstance(shape, Numbers):
        return shape.integral
    assert isinstance(shape, Constants)
    return all(is_integral(constant.value) for constant in shape.values)


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
            if isinstance(atom, Refused):
                drop(atom.place, atom.keyword)
        atoms = [atom for atom in atoms if not isinstance(atom, Refused)]
    listed = [atom for atom in atoms if isinstance(atom, Values)]
    choices = next((atom.values for atom in listed if atom.positive), CONSTANTS.get(kind))
    if choices is not None:
        _refuse(atoms, bool(choices))
        kept = tuple(one for one in choices if all(holds(atom, one.value) for atom in atoms))
        return Constants(kept) if kept else None
    from .containers import merge_arrays, merge_objects

    build = {"number": _numbers, "string": _strings, "array": merge_arrays}.get(kind)
    shape = build(atoms) if build else merge_objects(atoms, holds, matches)
    _refuse(atoms, shape is not None)
    return shape


def _refuse(atoms: Sequence[Atom], matters: bool) -> None:
    if not matters:
        return
    for atom in atoms:
        if isinstance(atom, Refused):
            raise UnsupportedError(atom.reason or f"the keyword {atom.keyword} is not supported here", place=atom.place)


def _numbers(atoms: Sequence[Atom]) -> Numbers | None:
    low: tuple[Number, bool] | None = None
    high: tuple[Number, bool] | None = None
    integral = fractional = False
    multiples: dict[Number, None] = {}
    others: dict[Number, None] = {}
    for atom in atoms:
        if isinstance(atom, AtLeast):
            low = (atom.value, atom.strict) if low is None else max(low, (atom.value, atom.strict))
        elif isinstance(atom, AtMost):
            if high is None or (atom.value, not atom.strict) < (high[0], not high[1]):
                high = (atom.value, atom.strict)
        elif isinstance(atom, Integral):
            integral, fractional = integral or atom.positive, fractional or not atom.positive
        elif isinstance(atom, Multiple):
            (multiples if atom.positive else others).setdefault(atom.value)
    if integral and fractional:
        return None
    if integral:
        low = None if low is None else (_ceiling(*low), False)
        high = None if high is None else (-_ceiling(minus(high[0]), high[1]), False)
    if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
        return None
    low_value, low_strict = low or (None, False)
    high_value, high_strict = high or (None, False)
    if integral:
        multiples = {value: None for value in multiples if not is_multiple(1, value)}
    if multiples.keys() & others.keys() or (integral and any(is_multiple(1, value) for value in others)):
        return None
    return Numbers(
        low_value, low_strict, high_value, high_strict, integral, fractional, tuple(multiples), tuple(others)
    )


def _ceiling(value: Number, strict: bool) -> int:
    """The least integer that is at least, or with ``strict`` above, ``value``."""
    whole = int(value)
    whole += whole < value
    return whole + (strict and whole == value)


def counts(atoms: Sequence[Atom]) -> tuple[int, int | None] | None:
    low, high = 0, None
    for atom in atoms:
        if isinstance(atom, Count):
            low = max(low, atom.low)
            if atom.high is not None:
                high = atom.high if high is None else min(high, atom.high)
    return None if high is not None and high < low else (low, high)


def _strings(atoms: Sequence[Atom]) -> Strings | None:
    count = counts(atoms)
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
