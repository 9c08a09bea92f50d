"""Complements of formulas, within one JSON type.

Leaves out   complements of whole schemas: a Literal is turned over, and normalise.py takes it apart.
Invariants   the complement of an atom is again a formula, exact; or Refused, where it is not regular or not known.
Source       De Morgan.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from itertools import pairwise
from typing import Any

from .atoms import (
    ANY,
    NEVER,
    NOTHING,
    All,
    AtLeast,
    AtMost,
    Conj,
    Contains,
    Count,
    Formula,
    Integral,
    Items,
    Keys,
    Literal,
    Matches,
    Members,
    Multiple,
    Refused,
    Required,
    Some,
    SomeMember,
    Tagged,
    Unique,
    Values,
    absent,
    conj,
    opposite,
)
from .formats import FORMATS
from .nodes import Constant, Node
from .values import Number, exact, freeze, kind_of


def negate(part: Formula) -> Formula:
    """The complement of a part, within its kind."""
    if isinstance(part, Literal):
        return Literal(part.node, not part.positive)
    if isinstance(part, All):
        return Some(tuple(negate(one) for one in part.parts))
    if isinstance(part, Some):
        return All(tuple(negate(one) for one in part.parts))
    if isinstance(part, Values):
        return _other_values(part)
    if isinstance(part, AtLeast):
        return AtMost(part.value, not part.strict)
    if isinstance(part, AtMost):
        return AtLeast(part.value, not part.strict)
    if isinstance(part, Integral):
        return Integral(not part.positive)
    if isinstance(part, Multiple):
        return Multiple(part.value, part.place, not part.positive)
    if isinstance(part, Matches):
        return _other_strings(part)
    if isinstance(part, Count):
        below: tuple[Formula, ...] = (Count(0, part.low - 1, part.place),) if part.low else ()
        return Some(below + (() if part.high is None else (Count(part.high + 1, None, part.place),)))
    if isinstance(part, Required):
        return Some(tuple(absent(name) for name in part.names))
    if isinstance(part, Items):
        return _some_item(part)
    if isinstance(part, Contains):
        return _other_count(part)
    if isinstance(part, Unique):
        return Unique(part.place, not part.positive)
    if isinstance(part, Members):
        return _some_member(part)
    if isinstance(part, Keys):
        return SomeMember(ANY, opposite(part.key))
    if isinstance(part, Tagged):
        return NOTHING
    assert isinstance(part, Refused), part
    return part


def _between(values: list[Number]) -> Formula:
    """Every number but these."""
    points = sorted(values)
    gaps = [All((AtLeast(low, True), AtMost(high, True))) for low, high in pairwise(points)]
    return Some((AtMost(points[0], True), *gaps, AtLeast(points[-1], True)))


def _other_strings(part: Matches) -> Formula:
    if not part.format:
        return Matches(part.pattern, part.place, not part.positive)
    widest = FORMATS[part.format].widest
    if not widest:
        return Refused("format", part.place, f'the complement of the format "{part.format}" is not known')
    return Matches(
        widest if part.positive else FORMATS[part.format].pattern, part.place, not part.positive, part.format
    )


def _other_values(part: Values) -> Formula:
    kind = kind_of(part.values[0].value) if part.values and part.positive else ""
    if kind == "number":
        return _between([exact(constant.value) for constant in part.values])
    if kind == "array" and len(part.values) > 1 and all(map(_is_flat, part.values)):
        return _other_arrays([constant.value for constant in part.values])
    if kind in ("array", "object"):
        return All(tuple(_differs(constant.value) for constant in part.values))
    return Values(part.values, not part.positive)


def _is_flat(constant: Constant) -> bool:
    """Whether no item is an array or object, which as a constant would have its keys in an order."""
    return not any(isinstance(item, (list, dict)) for item in constant.value)


def _other_arrays(values: list[list[Any]]) -> Formula:
    """Every array but these: one alternative for each end, and each way out, of the tree of what they begin with.

    Apart, the ways to differ from each would multiply.
    """
    options: list[Formula] = []
    pending: list[tuple[tuple[Conj, ...], list[list[Any]]]] = [((), values)]
    while pending:
        begin, some = pending.pop()
        size = len(begin)
        if all(len(value) > size for value in some):
            options.append(All((Items(begin, ANY), Count(size, size))))
        after: dict[Hashable, list[list[Any]]] = {}
        for value in some:
            if len(value) > size:
                after.setdefault(freeze(value[size]), []).append(value)
        items = [Literal(_constant_node(key, Kept(group[0][size]))) for key, group in after.items()]
        other = conj(*(Literal(item.node, False) for item in items))
        options.append(All((Items((*begin, other), ANY), Count(size + 1))))
        pending += [((*begin, (item,)), group) for item, group in zip(items, after.values(), strict=True)]
    return Some(tuple(options))


def _differs(value: Any) -> Formula:
    """An array or object other than this one."""
    options: list[Formula] = []
    if isinstance(value, dict):
        options.append(SomeMember(ANY, names=tuple(value)))
        for name, item in value.items():
            options.append(absent(name))
            options.append(All((Members(((name, _unlike(item)),), declares=False), Required((name,)))))
        return Some(tuple(options))
    if value:
        options.append(Count(0, len(value) - 1))
    options.append(Count(len(value) + 1))
    for index, item in enumerate(value):
        options.append(All((Items((ANY,) * index + (_unlike(item),), ANY), Count(index + 1))))
    return Some(tuple(options))


def _unlike(value: Any) -> Conj:
    """Every value but one."""
    return conj(Literal(_constant_node(freeze(value), Kept(value)), False))


class Kept:
    """A value that is no part of a key."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kept)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=4096)
def _constant_node(key: Hashable, kept: Kept) -> Node:
    return Node(-1, "#", {"const": (Constant(key, kept.value),)})


def _other_count(part: Contains) -> Formula:
    fewer: Formula = Contains(part.item, 0, part.low - 1, part.start)
    if part.low == 1:
        fewer = Items((ANY,) * part.start, opposite(part.item))
    below = (fewer,) if part.low else ()
    return Some(below + (() if part.high is None else (Contains(part.item, part.high + 1, None, part.start),)))


def _some_item(part: Items) -> Formula:
    """An item that fails."""
    options: list[Formula] = []
    for index, item in enumerate(part.prefix):
        if item != ANY:
            options.append(All((Items((ANY,) * index + (opposite(item),), ANY), Count(index + 1))))
    if part.rest is NEVER:
        options.append(Count(len(part.prefix) + 1))
    elif part.rest != ANY:
        options.append(Contains(opposite(part.rest), start=len(part.prefix)))
    return Some(tuple(options))


def _some_member(part: Members) -> Formula:
    """A member that fails."""
    options: list[Formula] = []
    for name, value in part.named:
        if value != ANY:
            options.append(All((Members(((name, opposite(value)),), declares=False), Required((name,)))))
    for match, value in part.patterns:
        if value != ANY:
            options.append(SomeMember(opposite(value), patterns=(match,)))
    if part.rest != ANY:
        names = tuple(name for name, _ in part.named)
        unmatched = tuple(Matches(match.pattern, match.place, False) for match, _ in part.patterns)
        options.append(SomeMember(opposite(part.rest), names=names, patterns=unmatched))
    return Some(tuple(options))
