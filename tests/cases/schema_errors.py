"""Schemas that are refused, by kind of error: (schema, the place that the error names)."""

from __future__ import annotations

from typing import Any

DRAFT_3, DRAFT_4 = (f"http://json-schema.org/draft-0{n}/schema#" for n in (3, 4))
NEVER_NESTED = {"type": "integer", "minimum": 5, "maximum": 4}

MALFORMED: list[tuple[Any, str]] = [
    (3, "#"), (None, "#"), ([], "#"), ("x", "#"),
    ({"type": ["string", "strin"]}, "#/type"), ({"type": []}, "#/type"), ({"type": 1}, "#/type"),
    ({"enum": {}}, "#/enum"),
    ({"minimum": None}, "#/minimum"), ({"maximum": "x"}, "#/maximum"),
    ({"exclusiveMinimum": "1"}, "#/exclusiveMinimum"),
    ({"multipleOf": 0}, "#/multipleOf"), ({"multipleOf": -1}, "#/multipleOf"), ({"multipleOf": "2"}, "#/multipleOf"),
    ({"minimum": float("inf")}, "#/minimum"), ({"const": float("nan")}, "#/const"), ({"enum": ["\ud800"]}, "#/enum"),
    ({"pattern": "^a{3,536870912}$"}, "#/pattern"),
    ({"minLength": 1.5}, "#/minLength"), ({"minLength": "1"}, "#/minLength"), ({"maxLength": -2}, "#/maxLength"),
    ({"pattern": 3}, "#/pattern"), ({"pattern": "["}, "#/pattern"), ({"pattern": "(?<n"}, "#/pattern"),
    ({"pattern": "a{2,1}"}, "#/pattern"), ({"pattern": "*"}, "#/pattern"), ({"format": 3}, "#/format"),
    ({"items": 3}, "#/items"), ({"items": [3]}, "#/items/0"), ({"prefixItems": {}}, "#/prefixItems"),
    ({"prefixItems": []}, "#/prefixItems"), ({"contains": 1}, "#/contains"), ({"minItems": "x"}, "#/minItems"),
    ({"contains": True, "minContains": -1}, "#/minContains"), ({"contains": {}, "maxContains": "2"}, "#/maxContains"),
    ({"uniqueItems": "true"}, "#/uniqueItems"), ({"uniqueItems": 1}, "#/uniqueItems"),
    ({"unevaluatedItems": []}, "#/unevaluatedItems"), ({"unevaluatedProperties": 3}, "#/unevaluatedProperties"),
    ({"properties": 3}, "#/properties"), ({"properties": {"a": 3}}, "#/properties/a"),
    ({"patternProperties": {"(": {}}}, "#/patternProperties/("), ({"patternProperties": []}, "#/patternProperties"),
    ({"additionalProperties": "no"}, "#/additionalProperties"), ({"propertyNames": 3}, "#/propertyNames"),
    ({"required": "a"}, "#/required"), ({"required": [1]}, "#/required/0"),
    ({"minProperties": True}, "#/minProperties"),
    ({"maxProperties": []}, "#/maxProperties"), ({"dependencies": []}, "#/dependencies"),
    ({"dependencies": {"a": 3}}, "#/dependencies/a"), ({"dependentRequired": {"a": "b"}}, "#/dependentRequired/a"),
    ({"dependentRequired": {"a": [1]}}, "#/dependentRequired/a/0"),
    ({"dependentSchemas": {"a": []}}, "#/dependentSchemas/a"),
    ({"allOf": {}}, "#/allOf"), ({"allOf": []}, "#/allOf"), ({"anyOf": [3]}, "#/anyOf/0"), ({"oneOf": "x"}, "#/oneOf"),
    ({"not": []}, "#/not"), ({"if": 3}, "#/if"), ({"then": 3}, "#/then"), ({"else": "x"}, "#/else"),
    ({"$ref": 3}, "#/$ref"), ({"$ref": "#/nowhere"}, "#/$ref"), ({"$ref": "#missing"}, "#/$ref"),
    ({"$ref": "#/$defs/a/0"}, "#/$ref"), ({"$dynamicRef": 3}, "#/$dynamicRef"), ({"$schema": 3}, "#/$schema"),
    ({"anyOf": [{"properties": {"x/y": {"type": 1}}}]}, "#/anyOf/0/properties/x~1y/type"),
    ({"$defs": {"a": {"minimum": "1"}}, "$ref": "#/$defs/a"}, "#/$defs/a/minimum"),
    # no URIs: Python's reader of them raises ValueError
    ({"$ref": "http://[#a"}, "#/$ref"), ({"$ref": "//["}, "#/$ref"), ({"$dynamicRef": "http://[#a"}, "#/$dynamicRef"),
    ({"$id": "//[bad", "type": "string"}, "#/$id"),
    ({"$id": "https://x/y", "$defs": {"a": {"$id": "//[bad", "type": "string"}}, "type": "string"}, "#/$defs/a/$id"),
    ({"$ref": "#/x/a", "x": {"a": {"$id": "//[bad"}}}, "#/x/a/$id"),
    # identifiers that are no strings were taken for none
    ({"$id": 3}, "#/$id"), ({"$id": None}, "#/$id"), ({"$schema": DRAFT_4, "id": 3}, "#/id"),
    ({"anyOf": [{"$id": []}]}, "#/anyOf/0/$id"),
    # RFC 6901 has no leading zeros
    ({"allOf": [{"type": "null"}, {"$ref": "#/allOf/00"}]}, "#/allOf/1/$ref"),
    # keys that no text can have said that there is no text at all
    ({"type": "object", "properties": {"\ud800": {}}, "required": ["\ud800"]}, "#/properties"),
    ({"required": ["a", "\udfff"]}, "#/required/1"),
    ({"dependentRequired": {"a": ["\ud800"]}}, "#/dependentRequired/a/0"),
    ({"dependentRequired": {"\ud800": ["a"]}}, "#/dependentRequired"),
    ({"dependentSchemas": {"\ud800": {}}}, "#/dependentSchemas"), ({"dependencies": {"\ud800": []}}, "#/dependencies"),
    ({"patternProperties": {"^\ud800": {}}}, "#/patternProperties"),
    ({"const": {"\ud800": 1}}, "#/const"), ({"enum": [{"a": {"\ud800": 1}}]}, "#/enum"),
]  # fmt: skip

UNSATISFIABLE: list[tuple[Any, str]] = [
    (False, "#"), ({"not": {}}, "#"), ({"oneOf": [True, True]}, "#"), ({"if": True, "then": False}, "#"),
    ({"type": "number", "minimum": 3, "maximum": 2}, "#"), ({"type": "string", "minLength": 3, "maxLength": 2}, "#"),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "#"),
    ({"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6}, "#"),
    ({"allOf": [{"enum": [1, 2]}, {"enum": [3]}]}, "#"), ({"enum": ["b"], "pattern": "^a"}, "#"),
    ({"enum": ["x"], "format": "date"}, "#"),
    ({"anyOf": [{"type": "string", "maxLength": 1, "minLength": 2}, {"const": 1, "type": "string"}]}, "#"),
    ({"type": "object", "required": ["a"], "properties": {"a": NEVER_NESTED}}, "#/properties/a"),
    ({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "object", "required": ["b"], "properties": {"b": NEVER_NESTED}}}}, "#/properties/a/properties/b"),
    ({"type": "array", "minItems": 1, "items": NEVER_NESTED}, "#/items"),
    ({"type": "array", "minItems": 2, "prefixItems": [True, {"enum": []}]}, "#/prefixItems/1"),
    ({"type": "object", "required": ["x"], "properties": {"x": {"allOf": [{"type": "string"}, {"type": "integer"}]}}},
     "#/properties/x"),
    ({"type": "object", "required": ["u"], "properties": {"u": {"const": 1, "type": "string"}}}, "#/properties/u"),
    ({"$defs": {"n": NEVER_NESTED}, "type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/n"}}},
     "#/$defs/n"),
    ({"$defs": {"n": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"},
     "#/$defs/n"),
    ({"type": "object", "required": ["a"], "propertyNames": {"maxLength": 0}}, "#"),
    ({"type": "object", "required": ["a", "b"], "maxProperties": 1}, "#"),
    ({"type": "object", "minProperties": 2, "properties": {"a": {}}, "additionalProperties": False}, "#"),
    ({"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"]}, "properties": {"b": False}}, "#"),
    ({"type": "object", "required": ["z"], "unevaluatedProperties": False}, "#"),
    ({"type": "array", "items": {"type": "integer"}, "contains": {"type": "string"}}, "#"),
    ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3}, "#"),
]  # fmt: skip

DEEP = (
    ("(", ")"),
    ("(?:", ")"),
    ("(?=", ")"),
    ("(?!", ")"),
    ("(?:a", ")*"),
    ("(?:[^b]c|", ")+"),
    ("(?:^|\\b[a(]", ")?"),
)
"""Beginnings and ends of groups."""

_CONTRADICTING = {"type": "string", "allOf": [{"pattern": "^a$"}, {"pattern": "^b$"}]}
_TOO_LONG = {"type": "string", "pattern": "^a{5}$", "maxLength": 3}

CONTRADICTING_PATTERNS: list[tuple[Any, str]] = [
    (_TOO_LONG, "#"),
    (_CONTRADICTING, "#"),
    ({"type": "object", "required": ["k"], "properties": {"k": _TOO_LONG}}, "#/properties/k"),
    ({"type": "object", "required": ["j", "k"], "properties": {"j": {"type": "string"}, "k": _CONTRADICTING}},
     "#/properties/k"),
    ({"type": "array", "minItems": 1, "items": {"anyOf": [_TOO_LONG, _CONTRADICTING]}}, "#/items"),
    ({"type": "object", "required": ["k"], "properties": {
        "k": {"items": {"type": "string", "format": "uuid", "pattern": "^x"}, "type": "array", "minItems": 2}}},
     "#/properties/k/items"),
    ({"type": "object", "propertyNames": _CONTRADICTING, "minProperties": 1}, "#"),
]  # fmt: skip
"""Found once the patterns are automata."""

UNSUPPORTED: list[tuple[Any, str]] = [
    ({"type": "string", "minLength": 1 << 29}, "#/minLength"), ({"type": "array", "minItems": 2**31}, "#/minItems"),
    ({"type": "object", "minProperties": 10**30}, "#/minProperties"),
    ({"type": "array", "contains": {"const": 1}, "minContains": 2**32}, "#/minContains"),
    ({"type": "string", "pattern": "(a*)\\1"}, "#/pattern"),
    ({"type": "string", "pattern": "(?<=ab|c*)d"}, "#/pattern"),
    ({"type": "string", "pattern": "a(?i)b"}, "#/pattern"), ({"type": "string", "pattern": "\\012"}, "#/pattern"),
    ({"type": "string", "pattern": "\\p{Script_Extensions=Greek}"}, "#/pattern"),
    ({"type": "string", "pattern": "\\p{Cased}"}, "#/pattern"),
    ({"$ref": "http://x.org/a.json"}, "#/$ref"),
    ({"type": "object", "properties": {"a": {"$ref": "b.json#/c"}}}, "#/properties/a/$ref"),
    ({"type": "array", "uniqueItems": True}, "#/uniqueItems"),
    ({"type": "array", "uniqueItems": True, "items": {"type": "string"}}, "#/uniqueItems"),
    ({"type": "string", "not": {"format": "regex"}}, "#/not/format"),
    ({"type": "string", "not": {"format": "idn-hostname"}}, "#/not/format"),
    ({"enum": ["xn--nxasmq6b"], "format": "hostname"}, "#/format"),
    ({"type": "number", "multipleOf": 99991}, "#"),
    ({"$schema": DRAFT_3, "type": "string"}, "#/$schema"),
    # as deep as Python's stack
    *(({"type": "string", "pattern": head * 300 + "a" + tail * 300}, "#/pattern") for head, tail in DEEP),
    ({"type": "object", "patternProperties": {"(" * 300 + "a" + ")" * 300: {"type": "null"}}},
     "#/patternProperties/" + "(" * 300 + "a" + ")" * 300),
]  # fmt: skip
