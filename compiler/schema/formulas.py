"""What one schema demands of one JSON type, as a formula over atoms.

Leaves out   complements (negation.py), ``unevaluatedProperties`` and ``unevaluatedItems`` (unevaluated.py).
Invariants   only this schema's own keywords are looked at; sub-schemas are named, not opened.
Source       json-schema.org 2020-12 and the drafts before it.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from .atoms import (
    ANY,
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
    OneOf,
    Refused,
    Required,
    Some,
    Tagged,
    Unique,
    Values,
    absent,
    literal,
)
from .formats import FORMATS
from .keywords import KEYWORDS
from .nodes import Node
from .patterns import parse
from .references import Target
from .tags import TAGS
from .values import KINDS, kind_of

UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
APPLICATORS = ("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if", "dependencies",
               "dependentSchemas")  # fmt: skip
"""Keywords that apply schemas to the same value."""


_ALL_TYPES = frozenset(KINDS), False


def types_of(node: Node) -> tuple[frozenset[str], bool]:
    """The kinds that ``type`` allows, and whether a number must be an integer."""
    names = node.keywords.get("type")
    return _ALL_TYPES if names is None else _types(names)


@lru_cache
def _types(names: tuple[str, ...]) -> tuple[frozenset[str], bool]:
    kinds = frozenset("number" if name == "integer" else name for name in names)
    return kinds, "number" in kinds and "number" not in names


def formula(node: Node, kind: str, skip: Collection[str] = UNEVALUATED, tagged: bool = False) -> tuple[Formula, ...]:
    """The parts that a value of ``kind`` must satisfy, as written, but for some keywords.

    Args:
        skip: keywords that are left out.
        tagged: whether branches have the tags that a discriminator gives them.
    """
    keywords = node.keywords
    if keywords.get("false"):
        return (NOTHING,)
    kinds, integral = types_of(node)
    if kind not in kinds:
        return (NOTHING,)
    parts: list[Formula] = []
    grouped: set[str] = set()
    for keyword, value in keywords.items():
        known = KEYWORDS.get(keyword)
        if keyword == "$refused":
            parts += [Refused(name, node.at(name)) for name in value if KEYWORDS[name].kinds in ("", kind)]
        if (
            known is None
            or keyword in grouped
            or keyword in skip
            or (known.kinds and known.kinds != kind and keyword != "format")
        ):
            continue
        if keyword == "type":
            if integral and kind == "number":
                parts.append(Integral())
        elif keyword in ("enum", "const"):
            parts.append(Values(tuple(constant for constant in value if kind_of(constant.value) == kind)))
        elif keyword in ("minLength", "minItems"):
            if value:
                parts.append(Count(value, None, node.at(keyword)))
        elif keyword in ("maxLength", "maxItems"):
            parts.append(Count(0, value, node.at(keyword)))
        elif keyword == "pattern":
            parts.append(Matches(value, node.at(keyword)))
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
            parts.append(Integral() if value == 1 else Multiple(value, node.at(keyword)))
        elif keyword == "format":
            if value == "int32" and kind == "number":
                parts += [Integral(), AtLeast(-(2**31)), AtMost(2**31 - 1)]
            elif value == "int64" and kind == "number":
                parts += [Integral(), AtLeast(-(2**63)), AtMost(2**63 - 1)]
            elif kind == "string" and value in FORMATS and (not FORMATS[value].openapi or "$openapi" in keywords):
                parts.append(Matches(FORMATS[value].pattern, node.at(keyword), format=value))
        elif keyword in ("minProperties", "maxProperties"):
            low, high = (value, None) if keyword == "minProperties" else (0, value)
            parts.append(Count(low, high, node.at(keyword)))
        elif keyword == "propertyNames":
            parts.append(Keys(literal(value)))
        elif keyword == "contains":
            parts.append(Contains(literal(value), keywords.get("minContains", 1), keywords.get("maxContains")))
        elif keyword == "uniqueItems":
            if value:
                parts.append(Unique(node.at(keyword)))
        else:
            parts.extend(_applied(node, keyword, tagged))
    return tuple(parts)


def _applied(node: Node, keyword: str, tagged: bool) -> list[Formula]:
    """Keywords that apply schemas to the same value, and those that are refused."""
    value = node.keywords[keyword]
    if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        assert isinstance(value, (Target, Node))
        return [Literal(value)] if isinstance(value, Node) else [Refused(keyword, node.at(keyword), "not resolved")]
    if keyword == "allOf":
        return [Literal(child) for child in value]
    if keyword == "anyOf":
        return [Some(tuple(map(_branch, value, _tags(node, keyword, tagged) or (None,) * len(value))))]
    if keyword == "oneOf":
        return [OneOf(tuple(value), _tags(node, keyword, tagged))]
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
    return [Refused(keyword, node.at(keyword))]


def _branch(child: Node, tag: Tagged | None) -> Formula:
    return Literal(child) if tag is None else All((Literal(child), tag))


def _tags(node: Node, keyword: str, tagged: bool) -> tuple[Tagged | None, ...]:
    """What a discriminator says of the branches of a union; empty where it says nothing."""
    if not tagged:
        return ()
    tags = node.keywords[TAGS]
    return tuple([Tagged(tags.name, some) if some else None for some in getattr(tags, keyword)])


def _members(node: Node) -> Members:
    keywords = node.keywords
    named = tuple((name, literal(child)) for name, child in keywords.get("properties", {}).items())
    rest = keywords.get("additionalProperties")
    return Members(named, tuple(_patterns(node)), ANY if rest is None else literal(rest))


def _patterns(node: Node) -> list[tuple[Matches, Conj]]:
    """``patternProperties``; patterns with the same schema are one, so that they do not multiply."""
    groups: dict[Conj, list[str]] = {}
    for pattern, child in node.keywords.get("patternProperties", {}).items():
        groups.setdefault(literal(child), []).append(pattern)
    found: list[tuple[Matches, Conj]] = []
    for value, patterns in groups.items():
        for pattern in patterns:
            parse(pattern, node.at("patternProperties", pattern))  # joined, two broken ones could make a whole one
        text = patterns[0] if len(patterns) == 1 else "|".join(f"(?:{pattern})" for pattern in patterns)
        found.append((Matches(text, node.at("patternProperties", patterns[0])), value))
    return found


def _items(node: Node) -> list[Formula]:
    keywords = node.keywords
    items, prefix, rest = keywords.get("items"), keywords.get("prefixItems"), None
    if isinstance(items, tuple) and prefix is None:
        prefix, rest = items, keywords.get("additionalItems")
    elif isinstance(items, Node):
        rest = items
    if prefix is None and rest is None:
        return []
    return [Items(tuple(literal(child) for child in prefix or ()), ANY if rest is None else literal(rest))]


def _dependencies(value: dict[str, Node | tuple[str, ...]]) -> list[Formula]:
    parts: list[Formula] = []
    for name, demand in value.items():
        if isinstance(demand, Node):
            parts.append(Some((absent(name), All((Required((name,)), Literal(demand))))))
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
