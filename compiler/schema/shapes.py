"""Shapes: what is left of a conj for one JSON type once nothing boolean remains.

Leaves out   how branches arise (normalise.py), shapes from atoms (merge.py, containers.py), text (writer.py).
Invariants   a shape is never visibly empty: ``merge`` gives None instead; child conjs are not looked into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .atoms import (
    ANY,
    Atom,
    Conj,
    Contains,
    Count,
    Matches,
    SomeMember,
    Unique,
)
from .nodes import Constant
from .values import Number, exact, is_integral


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

    @property
    def needs_machine(self) -> bool:
        """Whether they are written state by state (multiples.py), so that whether there are any is known by that."""
        bounded = self.low is not None or self.high is not None
        return bool(self.multiples or self.others) or (self.fractional and bounded)


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
    return all(is_integral(exact(constant.value)) for constant in shape.values)


def may_be_empty(shape: Shape) -> bool:
    """Whether a shape of arrays or objects has the one without items or members."""
    if isinstance(shape, Arrays):
        unlike = shape.unique is None or shape.unique.positive
        return not shape.low and unlike and not any(need.low for need in shape.needs)
    if isinstance(shape, Objects):
        return not (shape.low or shape.required or shape.needs)
    assert isinstance(shape, Constants)
    return any(not constant.value for constant in shape.values)


FULL: dict[str, Shape] = {"number": Numbers(), "string": Strings(), "array": Arrays(), "object": Objects()}

CONSTANTS = {
    "null": (Constant(("null", None), None),),
    "boolean": (Constant(("boolean", True), True), Constant(("boolean", False), False)),
}


def counts(atoms: Sequence[Atom]) -> tuple[int, int | None] | None:
    low, high = 0, None
    for atom in atoms:
        if isinstance(atom, Count):
            low = max(low, atom.low)
            if atom.high is not None:
                high = atom.high if high is None else min(high, atom.high)
    return None if high is not None and high < low else (low, high)
