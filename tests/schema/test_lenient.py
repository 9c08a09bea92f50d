"""What ``lenient`` drops, and that it only ever allows more: also below ``not``, ``if``, ``oneOf`` and the like."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolc.compiler import Options, compile_schema
from toolc.compiler.errors import UnsupportedError
from toolc.compiler.options import RELAXABLE
from toolc.compiler.schema import SchemaOptions, schema_to_lark

from .judge import Judge
from .recogniser import Compiled

BACK, FLAG = "^(.)\\1$", "(?i:\\ba)"
LARGE = 99991
HARD: dict[str, Any] = {"type": "string", "pattern": BACK}
O: dict[str, Any] = {"type": "object"}

#: id, schema, what is dropped as (place, keyword)
ROWS: list[tuple[str, Any, list[tuple[str, str]]]] = [
    ("pattern", HARD, [("#", "pattern")]),
    ("pattern/flags", {"type": "string", "pattern": FLAG, "maxLength": 3}, [("#", "pattern")]),
    ("pattern/beside another", {**HARD, "allOf": [{"pattern": "a"}]}, [("#", "pattern")]),
    ("pattern/beside enum", {"enum": ["aa", "ab", 1], "pattern": BACK}, [("#", "pattern")]),
    ("not", {"type": "string", "not": {"pattern": BACK}}, [("#/not", "pattern")]),
    ("not/with more", {"not": {"type": "string", "pattern": BACK, "maxLength": 2}}, [("#/not", "pattern")]),
    ("not/not", {"not": {"not": HARD}}, [("#/not/not", "pattern")]),
    ("if", {"type": "string", "if": {"pattern": BACK}, "then": {"maxLength": 2}, "else": {"minLength": 3}},
     [("#/if", "pattern")]),
    ("oneOf", {"oneOf": [HARD, {"type": "string", "minLength": 2}]}, [("#/oneOf/0", "pattern")]),
    ("propertyNames", {**O, "propertyNames": {"pattern": BACK}}, [("#/propertyNames", "pattern")]),
    ("propertyNames/beside names", {**O, "properties": {"aa": {}, "ab": {}}, "propertyNames": {"pattern": BACK}},
     [("#/propertyNames", "pattern")]),
    ("contains", {"type": "array", "contains": HARD}, [("#/contains", "pattern")]),
    ("contains/at most", {"type": "array", "contains": HARD, "maxContains": 1, "maxItems": 3},
     [("#/contains", "pattern")]),
    ("items/beside enum", {"enum": [["aa"], ["ab"], [1]], "items": HARD}, [("#/items", "pattern")]),
    ("patternProperties", {**O, "patternProperties": {BACK: {"type": "null"}}}, [("#", "patternProperties")]),
    ("patternProperties/closed", {**O, "patternProperties": {BACK: {"type": "null"}}, "additionalProperties": False},
     [("#", "patternProperties"), ("#", "additionalProperties")]),
    ("patternProperties/beside one that works", {**O, "patternProperties": {
        BACK: {"type": "null"}, "^x": {"type": "integer"}}}, [("#", "patternProperties")]),
    ("patternProperties/unevaluated", {**O, "allOf": [{"patternProperties": {BACK: {}}}],
                                       "unevaluatedProperties": False}, [("#/allOf/0", "patternProperties")]),
    ("patternProperties/not", {"not": {"patternProperties": {BACK: {"type": "null"}}, "additionalProperties": False,
                                       "type": "object"}},
     [("#/not", "patternProperties"), ("#/not", "additionalProperties")]),
    ("multipleOf", {"type": "integer", "multipleOf": LARGE}, [("#", "multipleOf")]),
    ("multipleOf/together", {"type": "integer", "multipleOf": 149, "allOf": [{"multipleOf": 139}], "minimum": 5},
     [("#", "multipleOf"), ("#/allOf/0", "multipleOf")]),
    ("multipleOf/not", {"type": "integer", "not": {"multipleOf": LARGE}}, [("#/not", "multipleOf")]),
    ("multipleOf/if", {"type": "integer", "if": {"multipleOf": LARGE}, "then": {"minimum": 0}},
     [("#/if", "multipleOf")]),
    ("multipleOf/contains", {"type": "array", "contains": {"type": "integer", "multipleOf": LARGE}},
     [("#/contains", "multipleOf")]),
    ("uniqueItems", {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, [("#", "uniqueItems")]),
    ("ref", {"properties": {"a": {"$ref": "x.json"}, "b": {"type": "null"}}, "type": "object"},
     [("#/properties/a", "$ref")]),
    ("ref/not", {"not": {"$ref": "x.json"}}, [("#/not", "$ref")]),
    ("ref/oneOf", {"oneOf": [{"$ref": "x.json"}, {"$ref": "y.json"}, {"type": "integer"}]},
     [("#/oneOf/0", "$ref"), ("#/oneOf/1", "$ref")]),
    ("ref/beside enum", {"enum": [1, "aa"], "allOf": [{"$ref": "x.json"}]}, [("#/allOf/0", "$ref")]),
    ("format/not", {"type": "string", "not": {"format": "idn-hostname"}}, [("#/not", "format")]),
]  # fmt: skip
VALID: dict[str, list[Any]] = {  # what may be valid, whatever is in documents that nobody has
    "ref": [{}, {"a": 3, "b": None}, {"a": {"c": []}}], "ref/not": [0, "a", {}], "ref/oneOf": [0, "a", [], None],
    "ref/beside enum": [1, "aa"],
}  # fmt: skip
VALUES: list[Any] = [
    "", "a", "aa", "ab", "abc", "xx", 0, 1, -1, 5, LARGE, 20711, None, [], ["aa"], ["ab"], ["aa", "bb"], ["aa", "ab"],
    [1], [1, 1], [LARGE], {}, {"aa": None}, {"aa": 1}, {"ab": 1}, {"x": 1}, {"xx": 1}, {"xx": None}, {"x": "a"},
    {"aa": 1, "ab": 2},
]  # fmt: skip


@pytest.mark.parametrize("name, schema, dropped", ROWS, ids=[row[0] for row in ROWS])
def test_dropped_and_wider(name: str, schema: Any, dropped: list[tuple[str, str]]) -> None:
    with pytest.raises(UnsupportedError):
        schema_to_lark(schema)
    text, writer = schema_to_lark(schema, SchemaOptions(relax=RELAXABLE))
    ours, judge = Compiled(text), None if name.startswith("ref") else Judge(schema)
    assert {(place, keyword) for place, keyword, status in writer.keywords if status == "dropped"} == set(dropped)
    valid = VALID.get(name) or [value for value in VALUES if judge is not None and judge.holds(value)]
    assert valid and [value for value in valid if not ours.accepts(json.dumps(value))] == []


def test_what_is_beside_it_stays() -> None:
    for schema, accepted, refused in (
        ({**HARD, "maxLength": 2}, '"ab"', '"abc"'),
        ({"type": "integer", "multipleOf": LARGE, "minimum": 3}, "4", "2"),
        ({"type": "integer", "multipleOf": LARGE, "maximum": 3}, "2", "4"),
        ({**O, "patternProperties": {BACK: False, "^x": {"type": "null"}}}, '{"aa": 1}', '{"x": 1}'),
        ({**O, "properties": {"a": {"type": "null"}}, "patternProperties": {BACK: {}}, "additionalProperties": False},
         '{"a": null, "b": 1}', '{"a": 1}'),
    ):  # fmt: skip
        ours = Compiled(schema_to_lark(schema, SchemaOptions(relax=RELAXABLE))[0])
        assert ours.accepts(accepted) and not ours.accepts(refused)


def test_nothing_is_dropped_that_can_be_compiled() -> None:
    schema = {"pattern": "^a+$", "multipleOf": 7, "patternProperties": {"^a": {"type": "null"}}}
    exact = schema_to_lark(schema)
    lenient = schema_to_lark(schema, SchemaOptions(relax=RELAXABLE))
    assert exact[0] == lenient[0] and exact[1].keywords == lenient[1].keywords


@pytest.mark.parametrize(
    ("keyword", "schema"),
    [
        ("multipleOf", {"multipleOf": LARGE, "type": "integer"}),
        ("uniqueItems", {"type": "array", "uniqueItems": True}),
        ("not/multipleOf", {"not": {"multipleOf": LARGE}}),
        ("not/format", {"not": {"format": "idn-hostname"}}),
        ("pattern", HARD),
    ],
)
def test_every_place_of_equal_schemas_is_listed(keyword: str, schema: Any) -> None:
    """Also one that is read after the schema was used: what a reference of another document leads to."""
    other = {"$id": "https://x.test/other", "$defs": {"d": {"items": schema}}}
    document = {"properties": {"a": schema, "b": {"items": schema}}, "$defs": {"o": other}}
    document["properties"]["c"] = {"$ref": "https://x.test/other#/$defs/d"}
    compiled = compile_schema(document, options=Options(lenient=True))
    places = ["properties/a", "properties/b/items", "$defs/o/$defs/d/items"]
    assert compiled.report["dropped"] == sorted(f"schema#/{place}/{keyword}" for place in places)


def test_what_is_evaluated_by_what_is_dropped() -> None:
    schema = {**O, "patternProperties": {BACK: {"type": "integer"}}, "unevaluatedProperties": False}
    compiled = compile_schema(schema, options=Options(lenient=True))
    assert compiled.report["dropped"] == ["schema#/patternProperties", "schema#/unevaluatedProperties"]


def test_a_bundle_lists_what_is_dropped() -> None:
    schema = {"properties": {"a": HARD, "b": {"multipleOf": LARGE}}, "type": "object"}
    compiled = compile_schema(schema, options=Options(lenient=True))
    assert compiled.report["dropped"] == ["schema#/properties/a/pattern", "schema#/properties/b/multipleOf"]


@pytest.mark.parametrize("schema", [{"minItems": 1 << 29}])
def test_what_is_refused_all_the_same(schema: Any) -> None:
    with pytest.raises(UnsupportedError):
        compile_schema(schema, options=Options(lenient=True))


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        ({"type": "string", "oneOf": [{"pattern": BACK}, {"pattern": FLAG}]}, ["aa", "a", "b"]),
        ({"type": "string", "allOf": [{"pattern": FLAG}, {"not": {"pattern": BACK}}]}, ["a", "ab"]),
        (
            {**O, "oneOf": [{"patternProperties": {BACK: {"type": "integer"}}},
                            {"patternProperties": {BACK: {"type": "string"}}}]},
            [{"aa": 1}, {"aa": "x"}],
        ),
        (
            {**O, "oneOf": [{"patternProperties": {BACK: {}}, "additionalProperties": {"type": "integer"}},
                            {"patternProperties": {BACK: {}}, "additionalProperties": {"type": "string"}}]},
            [{"x": 1}, {"x": "s"}],
        ),
        ({"type": "array", "contains": {"pattern": BACK}, "not": {"contains": {"pattern": FLAG}}}, [["bb"]]),
        ({"type": "string", "oneOf": [{"pattern": FLAG}, {"anyOf": [{"const": "x"}, {"pattern": BACK}]}]}, ["bb", "a"]),
    ],
)  # fmt: skip
def test_what_is_dropped_here_is_not_what_is_dropped_there(schema: Any, values: list[Any]) -> None:
    """Two patterns that are dropped say different things, so that one may hold where the other does not."""
    recogniser = Compiled(schema_to_lark(schema, SchemaOptions(relax=RELAXABLE))[0])
    assert all(recogniser.accepts(json.dumps(value)) for value in values)
