"""The keywords: what value each takes, in which drafts, and what becomes of it. The table the report is made from.

Leaves out   reading schemas (nodes.py), what the keywords mean (atoms.py).
Invariants   a keyword that is not in KEYWORDS is an annotation; one that is newer or older than the draft too.
Source       json-schema.org, drafts 4, 6, 7, 2019-09 and 2020-12.
"""

from __future__ import annotations

from dataclasses import dataclass

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")


@dataclass(frozen=True)
class Keyword:
    """One keyword.

    Attributes:
        value: what it takes: schema, schemas, map, count, number, positive, flag, text, pattern, names, or by name.
        kinds: JSON types it constrains; none: all.
        status: enforced, or refused where it could matter.
        since, until: first and last draft that has it (4, 6, 7, 2019, 2020).
    """

    value: str
    kinds: str = ""
    status: str = "enforced"
    since: int = 4
    until: int = 2020


KEYWORDS: dict[str, Keyword] = {
    "$ref": Keyword("text"),
    "$dynamicRef": Keyword("text", status="refused", since=2020),
    "$recursiveRef": Keyword("text", status="refused", since=2019, until=2019),
    "type": Keyword("type"),
    "enum": Keyword("enum"),
    "const": Keyword("const", since=6),
    "allOf": Keyword("schemas"),
    "anyOf": Keyword("schemas"),
    "oneOf": Keyword("schemas"),
    "not": Keyword("schema"),
    "if": Keyword("schema", since=7),
    "then": Keyword("schema", since=7),
    "else": Keyword("schema", since=7),
    "properties": Keyword("map", "object"),
    "patternProperties": Keyword("map", "object"),
    "additionalProperties": Keyword("schema", "object"),
    "required": Keyword("names", "object"),
    "propertyNames": Keyword("schema", "object", "refused", since=6),
    "minProperties": Keyword("count", "object", "refused"),
    "maxProperties": Keyword("count", "object", "refused"),
    "dependencies": Keyword("dependencies", "object"),
    "dependentRequired": Keyword("name lists", "object", since=2019),
    "dependentSchemas": Keyword("map", "object", since=2019),
    "unevaluatedProperties": Keyword("schema", "object", "refused", since=2019),
    "items": Keyword("items", "array"),
    "prefixItems": Keyword("schemas", "array", since=2020),
    "additionalItems": Keyword("schema", "array", until=2019),
    "minItems": Keyword("count", "array"),
    "maxItems": Keyword("count", "array"),
    "uniqueItems": Keyword("flag", "array", "refused"),
    "contains": Keyword("schema", "array", "refused", since=6),
    "minContains": Keyword("count", "array", since=2019),
    "maxContains": Keyword("count", "array", since=2019),
    "unevaluatedItems": Keyword("schema", "array", "refused", since=2019),
    "minLength": Keyword("count", "string"),
    "maxLength": Keyword("count", "string"),
    "pattern": Keyword("pattern", "string"),
    "format": Keyword("text", "string", "refused"),
    "minimum": Keyword("number", "number"),
    "maximum": Keyword("number", "number"),
    "exclusiveMinimum": Keyword("exclusive", "number"),
    "exclusiveMaximum": Keyword("exclusive", "number"),
    "multipleOf": Keyword("positive", "number", "refused"),
}

FORMATS = frozenset(
    "date-time date time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference iri iri-reference "
    "uri-template uuid json-pointer relative-json-pointer regex byte binary password int32 int64 float double".split()
)
"""Formats that are not annotations; any other name is one, and is reported."""

FREE_FORMATS = frozenset(("binary", "password", "float", "double"))
"""OpenAPI formats that any value of their type has."""
