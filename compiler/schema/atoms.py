"""Atoms: the boolean-free constraints on values of one JSON type, and formulas over them.

Leaves out   which atoms a schema has (formulas.py), their complements (negation.py), combining them (shapes.py).
Invariants   a formula speaks about values of one kind only; a *conj* is a tuple of literals without duplicates, all of
             which must hold: ``()`` is any value, ``None`` no value at all. Places do not take part in comparison.
Source       the keywords of json-schema.org 2020-12.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple, TypeAlias

from .nodes import Constant, Node
from .values import Number


class Literal(NamedTuple):
    """A schema, or with ``positive`` False its complement."""

    node: Node
    positive: bool = True


Conj: TypeAlias = tuple[Literal, ...] | None
ANY: Conj = ()
NEVER: Conj = None


@dataclass(frozen=True)
class Values:
    """One of these values, or none of them."""

    values: tuple[Constant, ...]
    positive: bool = True

    @cached_property
    def keys(self) -> frozenset[Hashable]:
        """What ``freeze`` makes of the values."""
        return frozenset(constant.key for constant in self.values)


@dataclass(frozen=True)
class AtLeast:
    """A number from ``value`` upwards; ``strict``: not ``value`` itself."""

    value: Number
    strict: bool = False


@dataclass(frozen=True)
class AtMost:
    """A number up to ``value``; ``strict``: not ``value`` itself."""

    value: Number
    strict: bool = False


@dataclass(frozen=True)
class Integral:
    """A number without a fraction, or with one."""

    positive: bool = True


@dataclass(frozen=True)
class Multiple:
    """A multiple of ``value``, or no multiple of it."""

    value: Number
    place: str = field(compare=False)
    positive: bool = True


@dataclass(frozen=True)
class Count:
    """Length of a string in characters, of an array in items, of an object in members."""

    low: int = 0
    high: int | None = None
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class Matches:
    """A string in which the pattern is found, or is not; ``format`` is the format that it stands for, if any."""

    pattern: str
    place: str = field(compare=False)
    positive: bool = True
    format: str = ""


@dataclass(frozen=True)
class Items:
    """Item i satisfies ``prefix[i]``, and ``rest`` after the prefix."""

    prefix: tuple[Conj, ...]
    rest: Conj


@dataclass(frozen=True)
class Contains:
    """From ``start`` on, ``low`` to ``high`` items satisfy ``item``."""

    item: Conj
    low: int = 1
    high: int | None = None
    start: int = 0


@dataclass(frozen=True)
class Unique:
    """No two items are equal; or some two are."""

    place: str = field(compare=False)
    positive: bool = True


@dataclass(frozen=True)
class Members:
    """Values of the members by key; ``rest`` for keys that are neither named nor matched by a pattern.

    ``declares`` is False where the names say nothing about the order of keys (in negations and dependencies).
    """

    named: tuple[tuple[str, Conj], ...]
    patterns: tuple[tuple[Matches, Conj], ...] = ()
    rest: Conj = ANY
    declares: bool = True


@dataclass(frozen=True)
class Keys:
    """Every key satisfies a schema."""

    key: Conj


@dataclass(frozen=True)
class SomeMember:
    """There is a member whose key and value satisfy these, the key matching some patterns and not being some names."""

    value: Conj
    key: Conj = ANY
    names: tuple[str, ...] = ()
    patterns: tuple[Matches, ...] = ()


@dataclass(frozen=True)
class Required:
    """These keys are present."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Tagged:
    """An object of a branch with these tags; no object is ruled out by it (discriminator.py)."""

    name: str
    tags: tuple[Constant, ...]


@dataclass(frozen=True)
class Refused:
    """A keyword that is not supported here."""

    keyword: str
    place: str
    reason: str = ""


@dataclass(frozen=True)
class All:
    """Every part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Some:
    """At least one part holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class OneOf:
    """Exactly one of the schemas holds, and for each what is said of it then; normalise.py turns it into Some."""

    nodes: tuple[Node, ...]
    tagged: tuple[Tagged | None, ...] = ()


Atom: TypeAlias = (
    Values
    | AtLeast
    | AtMost
    | Integral
    | Multiple
    | Count
    | Matches
    | Items
    | Contains
    | Unique
    | Members
    | Keys
    | SomeMember
    | Required
    | Tagged
    | Refused
)
Formula: TypeAlias = Atom | Literal | All | Some | OneOf
NOTHING = Some(())


def absent(name: str) -> Members:
    """The key is not there."""
    return Members(((name, NEVER),), declares=False)


def conj(*literals: Literal) -> Conj:
    """A conj in normal form: true dropped, duplicates dropped, false and contradictions become None."""
    kept: dict[Literal, None] = {}
    for literal in literals:
        node, positive = literal
        keywords = node.keywords
        if not keywords or keywords.get("false"):
            if bool(keywords) == positive:
                return NEVER
        elif kept and (node, not positive) in kept:
            return NEVER
        else:
            kept.setdefault(literal)
    return tuple(kept)


def both(one: Conj, other: Conj) -> Conj:
    """The conj of two; left before right."""
    if one is None or other is None:
        return NEVER
    return conj(*one, *other) if one and other else one or other


def all_of(some: Iterable[Conj]) -> Conj:
    """The conj of several, in their order; at once, as two by two it would be the square of their number."""
    known: list[tuple[Literal, ...]] = []
    for one in some:
        if one is None:
            return NEVER
        if one:
            known.append(one)
    return known[0] if len(known) == 1 else conj(*chain.from_iterable(known))


def literal(node: Node) -> Conj:
    """The conj of one schema."""
    if not node.keywords:
        return ANY
    return NEVER if node.keywords.get("false") else (Literal(node),)


def opposite(one: Conj) -> Conj:
    """The complement of a conj of at most one literal."""
    if one is None:
        return ANY
    if not one:
        return NEVER
    (only,) = one
    return conj(Literal(only.node, not only.positive))
