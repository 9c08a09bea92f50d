"""The keywords: what value each takes, in which drafts, and what becomes of it. The table the report is made from.

Leaves out   reading schemas (nodes.py), what the keywords mean (atoms.py).
Invariants   a keyword that is not in KEYWORDS is an annotation; one that is newer or older than the draft too.
Source       json-schema.org, drafts 4, 6, 7, 2019-09 and 2020-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@dataclass(frozen=True)
class Keyword:
    """One keyword.

    Attributes:
        value: what it takes: schema, schemas, map, count, number, positive, flag, text, pattern, names, or by name.
        kinds: JSON types it constrains; none: all.
        limit: where it is refused or narrowed; empty: nowhere.
        since, until: first and last draft that has it (4, 6, 7, 2019, 2020).
        restrictions: the declared restrictions that may narrow it, whatever its value; report.py knows more of
            ``type``, ``enum``, ``const`` and ``format``.
    """

    value: str
    kinds: str = ""
    limit: str = ""
    since: int = 4
    until: int = 2020
    restrictions: tuple[str, ...] = ()


MAX_KEYS = 10
"""Declared keys of one object in any order; each doubles its automaton. Ten are 3 MB of tables, 22 if it is open."""
MAX_SUBSETS = 256
"""States of such automata in all objects of one schema, but for the first of them; more are slow to compile."""
REGISTER_KEYS, MAX_REGISTER_BITS = 4, 2048
"""Objects of more keys than the first, and no more than the second, have a register in the place of the automaton. So
have arrays of more than MAX_KEYS different strings. It takes 15 to 40 ms of compiling, about as much as the automaton
of five keys. Where MAX_SUBSETS has no room for the automaton, objects of two keys and more have one."""
UNIONS, ARRAYS = "unions", "arrays"
"""Stand for the places of all unions of objects, and of all arrays, among places of what no register fits."""

ESCAPES = ("minimal-escapes",)
NAMES = ("key-order", "many-keys", "minimal-escapes")
OPEN = ("open-keys", "minimal-escapes")
BOUNDS = ("digits", "plain-bounds")

KEYWORDS: dict[str, Keyword] = {
    "$ref": Keyword("reference", limit="other documents only through a loader"),
    "$dynamicRef": Keyword("reference", since=2020, limit="other documents only through a loader"),
    "$recursiveRef": Keyword("reference", since=2019, until=2019),
    "type": Keyword("type"),
    "enum": Keyword("enum"),
    "const": Keyword("const", since=6),
    "allOf": Keyword("schemas"),
    "anyOf": Keyword("schemas", limit="up to 4,096 alternatives of one JSON type"),
    "oneOf": Keyword(
        "schemas",
        limit="up to 4,096 alternatives of one JSON type, as for anyOf, not and if; leaving out the other alternatives "
        "that overlap, as with `not`, may leave at most 6 conditions that some member, or 4 that some item, must meet",
    ),
    "not": Keyword(
        "schema",
        limit="refused where a part has no known complement: the formats regex and idn-hostname",
    ),
    "if": Keyword("schema", since=7),
    "then": Keyword("schema", since=7),
    "else": Keyword("schema", since=7),
    "properties": Keyword("map", "object", restrictions=NAMES),
    "patternProperties": Keyword(
        "map", "object", limit="patterns with different schemas: up to 64 ways in which they overlap", restrictions=OPEN
    ),
    "additionalProperties": Keyword("schema", "object", restrictions=OPEN),
    "required": Keyword("names", "object", restrictions=NAMES),
    "propertyNames": Keyword("schema", "object", since=6, restrictions=OPEN),
    "minProperties": Keyword(
        "count", "object", limit="bounds times declared keys up to 16,384 states", restrictions=("open-keys",)
    ),
    "maxProperties": Keyword(
        "count", "object", limit="bounds times declared keys up to 16,384 states", restrictions=("open-keys",)
    ),
    "dependencies": Keyword("dependencies", "object", restrictions=NAMES),
    "dependentRequired": Keyword("name lists", "object", since=2019, restrictions=NAMES),
    "dependentSchemas": Keyword("map", "object", since=2019, restrictions=NAMES),
    "unevaluatedProperties": Keyword(
        "schema", "object", since=2019, limit="up to 256 combinations of sub-schemas that hold", restrictions=OPEN
    ),
    "items": Keyword("items", "array"),
    "prefixItems": Keyword("schemas", "array", since=2020),
    "additionalItems": Keyword("schema", "array", until=2019),
    "minItems": Keyword("count", "array"),
    "maxItems": Keyword("count", "array"),
    "uniqueItems": Keyword(
        "flag",
        "array",
        limit="items with at most 64 values in all, and up to 4,096 states (about ten values); or 11 to 2,048 strings "
        "in JSON's quotes, with minItems at most 1 and no maxItems below their number; or maxItems up to 1",
    ),
    "contains": Keyword(
        "schema",
        "array",
        since=6,
        limit="up to 4 such conditions on one array; counts up to 4,096 states",
    ),
    "minContains": Keyword("count", "array", since=2019, limit="see contains"),
    "maxContains": Keyword("count", "array", since=2019, limit="see contains"),
    "unevaluatedItems": Keyword(
        "schema",
        "array",
        since=2019,
        limit="up to 256 combinations of sub-schemas that hold",
    ),
    "minLength": Keyword("count", "string"),
    "maxLength": Keyword("count", "string"),
    "pattern": Keyword(
        "pattern",
        "string",
        limit="groups up to 40 deep; no octal escapes, escapes and classes of other dialects, word "
        "boundaries where case is ignored, nor properties but general categories, scripts and some "
        "[binary ones](#patterns); no looks back out of a repeated group or at several characters but "
        "from the end; back-references only as [below](#patterns)",
        restrictions=ESCAPES,
    ),
    "format": Keyword("text", "string", limit="see below; other names are annotations", restrictions=ESCAPES),
    "minimum": Keyword("number", "number", restrictions=BOUNDS),
    "maximum": Keyword("number", "number", restrictions=BOUNDS),
    "exclusiveMinimum": Keyword("exclusive", "number", restrictions=BOUNDS),
    "exclusiveMaximum": Keyword("exclusive", "number", restrictions=BOUNDS),
    "multipleOf": Keyword(
        "positive",
        "number",
        limit="integers up to about 150, and multiples of them by 2, 5 and 10 up to 10,000; so too decimals; any "
        "with bounds between which at most 1,000 multiples are; 1 is read "
        "as `type: integer`",
        restrictions=(*BOUNDS, "plain-integers"),
    ),
}

NUMBER_FORMATS = frozenset(("int32", "int64"))
"""OpenAPI formats of numbers that are enforced."""

FREE_FORMATS = frozenset(("binary", "password", "float", "double"))
"""OpenAPI formats that any value of their type has."""

_KNOWN = frozenset((
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary",
    "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description",
    "discriminator", "example", "examples", "externalDocs", "id", "nullable", "readOnly", "title", "writeOnly", "xml",
))  # fmt: skip
"""Names that JSON Schema and OpenAPI give to what constrains nothing, or not by itself."""

_SHORTEST = 4
"""Letters of keywords that others may be taken for; of shorter ones too many words are one letter away."""


@lru_cache(4096)
def meant(name: str) -> str | None:
    """The keyword that a name which is none is one letter away from: one more, less or other, or two swapped."""
    if name in KEYWORDS or name in _KNOWN or name.startswith("x-"):
        return None
    return next((known for known in KEYWORDS if len(known) >= _SHORTEST and _one_letter_apart(name, known)), None)


def _one_letter_apart(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    a, b = one[at:], other[at:]
    if not (a[:1] + b[:1]).isalpha():  # _format says that it is none
        return False
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
