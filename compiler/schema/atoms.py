"""What one schema demands of one JSON type, as a formula over atoms: the boolean-free constraints.

Leaves out   combining schemas (normalise.py), the text of a shape (writer.py).
Invariants   a formula speaks about values of one kind only; every atom has a negation that is again a union of
             conjunctions of atoms, or is Refused; a *conj* is a tuple of literals without duplicates, all of which must
             hold: ``()`` is any value, ``None`` no value at all.
Source       De Morgan over the keywords of json-schema.org 2020-12.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from .keywords import FORMATS, FREE_FORMATS, KEYWORDS
from .nodes import Constant, Node, Target
from .values import Number, exact, kind_of


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
    place: str
    positive: bool = True


@dataclass(frozen=True)
class Count:
    """Length of a string in characters, of an array in items, of an object in members."""

    low: int = 0
    high: int | None = None
    place: str = ""


@dataclass(frozen=True)
class Matches:
    """A string in which the pattern is found, or is not."""

    pattern: str
    place: str
    positive: bool = True


@dataclass(frozen=True)
class Items:
    """Item i satisfies ``prefix[i]``, and ``rest`` after the prefix."""

    prefix: tuple[Conj, ...]
    rest: Conj


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
class Required:
    """These keys are present."""

    names: tuple[str, ...]


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
    """Exactly one of the schemas holds; normalise.py turns it into Some."""

    nodes: tuple[Node, ...]


Atom: TypeAlias = (
    Values | AtLeast | AtMost | Integral | Multiple | Count | Matches | Items | Members | Required | Refused
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
        keywords = literal.node.keywords
        if not keywords or keywords.get("false"):
            if bool(keywords) == literal.positive:
                return NEVER
        elif Literal(literal.node, not literal.positive) in kept:
            return NEVER
        else:
            kept.setdefault(literal)
    return tuple(kept)


def both(one: Conj, other: Conj) -> Conj:
    """The conj of two; left before right."""
    return NEVER if one is None or other is None else conj(*one, *other)


def types_of(node: Node) -> tuple[set[str], bool]:
    """The kinds that ``type`` allows, and whether a number must be an integer."""
    names = node.keywords.get("type")
    if names is None:
        return {"null", "boolean", "number", "string", "array", "object"}, False
    kinds = {"number" if name == "integer" else name for name in names}
    return kinds, "number" in kinds and "number" not in names


def formula(node: Node, kind: str) -> tuple[Formula, ...]:
    """The parts that a value of ``kind`` must satisfy, in the order in which they are written."""
    keywords = node.keywords
    if keywords.get("false"):
        return (NOTHING,)
    kinds, integral = types_of(node)
    if kind not in kinds:
        return (NOTHING,)
    parts: list[Formula] = []
    grouped: set[str] = set()
    for keyword, value in keywords.items():
        known = KEYWORDS[keyword]
        if keyword in grouped or (known.kinds and known.kinds != kind and keyword != "format"):
            continue
        place = node.at(keyword)
        if keyword == "type":
            if integral and kind == "number":
                parts.append(Integral())
        elif keyword in ("enum", "const"):
            parts.append(Values(tuple(constant for constant in value if kind_of(constant.value) == kind)))
        elif keyword in ("minLength", "minItems"):
            if value:
                parts.append(Count(value, None, place))
        elif keyword in ("maxLength", "maxItems"):
            parts.append(Count(0, value, place))
        elif keyword == "pattern":
            parts.append(Matches(value, place))
        elif keyword in ("properties", "patternProperties", "additionalProperties"):
            grouped.update(("properties", "patternProperties", "additionalProperties"))
            parts.append(_members(node))
        elif keyword == "required":
            if value:
                parts.append(Required(value))
        elif keyword in ("items", "prefixItems", "additionalItems"):
            grouped.update(("items", "prefixItems", "additionalItems"))
            parts.extend(_items(node))
        elif keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
            parts.extend(_dependencies(value))
        elif keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            parts.extend(_bounds(node, keyword))
        elif keyword == "multipleOf":
            parts.append(Integral() if value == 1 else Multiple(value, place))
        elif keyword == "format":
            if value == "int32" and kind == "number":
                parts += [Integral(), AtLeast(-(2**31)), AtMost(2**31 - 1)]
            elif value == "int64" and kind == "number":
                parts += [Integral(), AtLeast(-(2**63)), AtMost(2**63 - 1)]
            elif kind == "string" and value in FORMATS - FREE_FORMATS - {"int32", "int64"}:
                parts.append(Refused(keyword, place, f'the format "{value}" is not supported yet'))
        else:
            parts.extend(_applied(node, keyword))
    return tuple(parts)


def _literal(node: Node) -> Conj:
    return conj(Literal(node))


def _applied(node: Node, keyword: str) -> list[Formula]:
    """Keywords that apply schemas to the same value, and those that are refused."""
    value, place = node.keywords[keyword], node.at(keyword)
    if keyword == "$ref":
        assert isinstance(value, (Target, Node))
        return [Literal(value)] if isinstance(value, Node) else [Refused(keyword, place, "not resolved")]
    if keyword == "allOf":
        return [Literal(child) for child in value]
    if keyword == "anyOf":
        return [Some(tuple(Literal(child) for child in value))]
    if keyword == "oneOf":
        return [OneOf(tuple(value))]
    if keyword == "not":
        return [Literal(value, False)]
    if keyword == "if":
        branches: list[Formula] = []
        for positive, then in ((True, "then"), (False, "else")):
            parts: tuple[Formula, ...] = (Literal(value, positive),)
            if then in node.keywords:
                parts += (Literal(node.keywords[then]),)
            branches.append(All(parts))
        return [Some(tuple(branches))] if {"then", "else"} & set(node.keywords) else []
    if keyword in ("then", "else", "minContains", "maxContains"):
        return []
    if keyword == "uniqueItems" and (not value or node.keywords.get("maxItems", 2) <= 1):
        return []
    if keyword == "minProperties" and value == 0:
        return []
    if keyword in ("propertyNames", "unevaluatedItems", "unevaluatedProperties") and not value.keywords:
        return []
    if keyword == "minProperties" and "required" in node.keywords and value <= len(node.keywords["required"]):
        return []
    return [Refused(keyword, place)]


def _members(node: Node) -> Members:
    keywords = node.keywords
    named = tuple((name, _literal(child)) for name, child in keywords.get("properties", {}).items())
    patterns = tuple(
        (Matches(pattern, node.at("patternProperties", pattern)), _literal(child))
        for pattern, child in keywords.get("patternProperties", {}).items()
    )
    rest = keywords.get("additionalProperties")
    return Members(named, patterns, ANY if rest is None else _literal(rest))


def _items(node: Node) -> list[Formula]:
    keywords = node.keywords
    items, prefix, rest = keywords.get("items"), keywords.get("prefixItems"), None
    if isinstance(items, tuple) and prefix is None:
        prefix, rest = items, keywords.get("additionalItems")
    elif isinstance(items, Node):
        rest = items
    if prefix is None and rest is None:
        return []
    return [Items(tuple(_literal(child) for child in prefix or ()), ANY if rest is None else _literal(rest))]


def _dependencies(value: dict[str, Node | tuple[str, ...]]) -> list[Formula]:
    parts: list[Formula] = []
    for name, demand in value.items():
        if isinstance(demand, Node):
            parts.append(Some((absent(name), Literal(demand))))
        elif set(demand) - {name}:
            parts.append(Some((absent(name), Required(demand))))
    return parts


def _bounds(node: Node, keyword: str) -> list[Formula]:
    keywords = node.keywords
    value = keywords[keyword]
    side = AtLeast if keyword.endswith("inimum") else AtMost
    if keyword.startswith("exclusive"):
        return [] if isinstance(value, bool) else [side(value, True)]
    strict = keywords.get("exclusiveM" + keyword[1:]) is True
    return [side(value, strict)]


def negate(part: Formula) -> Formula:
    """The complement of a part, within its kind."""
    if isinstance(part, Literal):
        return Literal(part.node, not part.positive)
    if isinstance(part, All):
        return Some(tuple(negate(one) for one in part.parts))
    if isinstance(part, Some):
        return All(tuple(negate(one) for one in part.parts))
    if isinstance(part, Values):
        if part.positive and part.values and kind_of(part.values[0].value) == "number":
            return _between([exact(constant.value) for constant in part.values])
        return Values(part.values, not part.positive)
    if isinstance(part, AtLeast):
        return AtMost(part.value, not part.strict)
    if isinstance(part, AtMost):
        return AtLeast(part.value, not part.strict)
    if isinstance(part, Integral):
        return Integral(not part.positive)
    if isinstance(part, Multiple):
        return Multiple(part.value, part.place, not part.positive)
    if isinstance(part, Matches):
        return Matches(part.pattern, part.place, not part.positive)
    if isinstance(part, Count):
        below: tuple[Formula, ...] = (Count(0, part.low - 1, part.place),) if part.low else ()
        return Some(below + (() if part.high is None else (Count(part.high + 1, None, part.place),)))
    if isinstance(part, Required):
        return Some(tuple(absent(name) for name in part.names))
    if isinstance(part, Items):
        return _some_item(part)
    if isinstance(part, Members):
        return _some_member(part)
    return part


def _between(values: list[Number]) -> Formula:
    """Every number but these."""
    points = sorted(values)
    gaps = [All((AtLeast(low, True), AtMost(high, True))) for low, high in pairwise(points)]
    return Some((AtMost(points[0], True), *gaps, AtLeast(points[-1], True)))


def opposite(one: Conj) -> Conj:
    """The complement of a conj of at most one literal."""
    if one is None:
        return ANY
    if not one:
        return NEVER
    (literal,) = one
    return conj(Literal(literal.node, not literal.positive))


def _some_item(part: Items) -> Formula:
    """An item that fails."""
    options: list[Formula] = []
    for index, item in enumerate(part.prefix):
        if item != ANY:
            options.append(All((Items((ANY,) * index + (opposite(item),), ANY), Count(index + 1))))
    if part.rest is NEVER:
        options.append(Count(len(part.prefix) + 1))
    elif part.rest != ANY:
        assert part.rest is not None
        options.append(Refused("items", part.rest[0].node.place, "its negation is not supported yet"))
    return Some(tuple(options))


def _some_member(part: Members) -> Formula:
    """A member that fails."""
    options: list[Formula] = []
    for name, value in part.named:
        if value != ANY:
            options.append(All((Members(((name, opposite(value)),), declares=False), Required((name,)))))
    for match, value in part.patterns:
        if value != ANY:
            options.append(Refused("patternProperties", match.place, "its negation is not supported yet"))
    if part.rest != ANY:
        place = part.rest[0].node.place if part.rest else "#"
        options.append(Refused("additionalProperties", place, "its negation is not supported yet"))
    return Some(tuple(options))
