"""What no text can have is told, with its place and the keywords that contradict each other, and nothing else is."""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler import Budget, Options, compile_schema, compile_tools, grammar_of, read_spec
from toolc.compiler.commands.check import check
from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.schema import LarkWriter, SchemaOptions, schema_to_lark
from toolc.compiler.schema.keywords import meant

from .recogniser import Compiled

BAD = {"type": "integer", "minimum": 5, "maximum": 3}
BOUNDS = "type", "minimum", "maximum"
ISO_TIME = r"^(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?$"

NO_TIME = {"type": "string", "format": "time", "pattern": ISO_TIME}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {**members, "k": {"type": "string"}}, "required": ["k"]}


Told = list[tuple[str, tuple[str, ...]]]
CASES: list[tuple[str, Any, Told]] = [
    ("bounds", _object(a=BAD), [("#/properties/a", BOUNDS)]),
    ("each of two that are alike", _object(a=BAD, b=BAD), [("#/properties/a", BOUNDS), ("#/properties/b", BOUNDS)]),
    (
        "in two objects that are alike",
        {"type": "object", "properties": {"x": _object(a=BAD), "y": _object(a=BAD)}},
        [("#/properties/x/properties/a", BOUNDS), ("#/properties/y/properties/a", BOUNDS)],
    ),
    ("enum and type", _object(a={"type": "string", "enum": [1, 2]}), [("#/properties/a", ("type", "enum"))]),
    ("const and type", _object(a={"const": 1, "type": "string"}), [("#/properties/a", ("const", "type"))]),
    (
        "a value of an enum",
        _object(a={"type": "string", "enum": ["a", 1, "b", None]}),
        [("#/properties/a/enum/1", ("type", "enum")), ("#/properties/a/enum/3", ("type", "enum"))],
    ),
    (
        "a value of an enum that another schema excludes",
        _object(a={"allOf": [{"enum": [1, 2, 3]}, {"minimum": 2}]}),
        [("#/properties/a/allOf/0/enum/0", ("enum", "minimum"))],
    ),
    (
        "format and pattern",
        _object(a={"type": "string", "format": "time", "pattern": ISO_TIME}),
        [("#/properties/a", ("type", "format", "pattern"))],
    ),
    (
        "a pattern between slashes",
        _object(a={"type": "string", "pattern": "/^a+$/i"}),
        [("#/properties/a", ("type", "pattern"))],
    ),
    (
        "length and pattern",
        _object(a={"type": "string", "pattern": "^.{5}$", "maxLength": 3}),
        [("#/properties/a", ("type", "pattern", "maxLength"))],
    ),
    (
        "three patterns",
        _object(a={"type": "string", "allOf": [{"pattern": p} for p in ("^[ab]$", "^[bc]$", "^[ac]$")]}),
        [("#/properties/a", ("type", "pattern"))],
    ),
    (
        "a pattern and what is excluded",
        _object(a={"type": "string", "pattern": "^[ab]$", "not": {"enum": ["a", "b"]}}),
        [("#/properties/a", ("type", "pattern", "not"))],
    ),
    (
        "multiples",
        _object(a={"type": "integer", "multipleOf": 7, "minimum": 1, "maximum": 6}),
        [("#/properties/a", ("type", "multipleOf", "minimum", "maximum"))],
    ),
    (
        "counts of items",
        _object(a={"type": "array", "minItems": 3, "maxItems": 1}),
        [("#/properties/a", ("type", "minItems", "maxItems"))],
    ),
    (
        "a key that may not be there",
        _object(a={"type": "object", "required": ["x"], "additionalProperties": False}),
        [("#/properties/a", ("type", "required", "additionalProperties"))],
    ),
    ("items", _object(a={"type": "array", "items": BAD}), [("#/properties/a/items", BOUNDS)]),
    (
        "an item",
        _object(a={"type": "array", "prefixItems": [{"type": "string"}, BAD, {}]}),
        [("#/properties/a/prefixItems/1", BOUNDS)],
    ),
    (
        "keys by pattern, and all others",
        {**_object(), "patternProperties": {"^x": BAD}, "additionalProperties": BAD},
        [("#/patternProperties/^x", BOUNDS), ("#/additionalProperties", BOUNDS)],
    ),
    ("a branch", _object(a={"anyOf": [{"type": "string"}, BAD]}), [("#/properties/a/anyOf/1", BOUNDS)]),
    (
        "a branch whose required member has no value",
        {"anyOf": [{**_object(k=BAD, a=BAD), "required": ["a"]}, _object()]},
        [("#/anyOf/0", BOUNDS)],
    ),
    (
        "a branch that what is beside the union excludes",
        _object(a={"type": "string", "anyOf": [{"type": "integer"}, {}]}),
        [("#/properties/a/anyOf/0", ("type",))],
    ),
    (
        "a branch of oneOf that another one covers",
        _object(a={"oneOf": [{"type": "integer"}, {"type": "number"}]}),
        [("#/properties/a/oneOf/0", ("oneOf", "type"))],
    ),
    (
        "what needs it",
        _object(a={"type": "object", "properties": {"q": BAD}, "required": ["q"]}),
        [("#/properties/a", BOUNDS)],
    ),
    (
        "by reference",
        {"$ref": "#/$defs/x", "$defs": {"x": _object(a={"$ref": "#/$defs/y"}), "y": BAD}},
        [("#/$defs/x/properties/a", BOUNDS)],
    ),
    ("names that a pointer escapes", _object(**{"a/b~c": BAD}), [("#/properties/a~1b~0c", BOUNDS)]),
    (
        "keys by patterns that are alike",
        {**_object(), "patternProperties": {"^x": BAD, "^y": BAD, "^z": {"type": "null"}}},
        [("#/patternProperties/^x", BOUNDS), ("#/patternProperties/^y", BOUNDS)],
    ),
    (
        "a type of several",
        _object(a={"type": ["string", "integer"], "format": "date", "pattern": "^x"}),
        [("#/properties/a/type", ("format", "pattern", "type"))],
    ),
    ("nor of types beside listed values", _object(a={"type": ["string", "null"], "enum": ["x", "y"]}), []),
    (
        "nothing is told of what says so itself",
        _object(a=False, b={"not": {}}, c={"anyOf": [{"type": "null"}, False]}),
        [],
    ),
    (
        "nor of what may not be beside it",
        {**_object(), "additionalProperties": False, "patternProperties": {"x": False}},
        [],
    ),
    ("nor of unions that hold anyway", _object(a={"anyOf": [{"type": "string"}, {"minLength": 3}, {}]}), []),
    (
        "nor of a union of objects that overlap",
        {
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "required": ["a"],
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        [],
    ),
    (
        "nor of conditions",
        {
            "type": "object",
            "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "string"}},
            "if": {"properties": {"a": {"const": "x"}}},
            "then": {"required": ["b"]},
            "else": {"properties": {"b": False}},
        },
        [],
    ),
    (
        "nor of a schema that is used with all its values in another place",
        _object(a={"$ref": "#/$defs/e"}, b={"allOf": [{"$ref": "#/$defs/e"}, {"const": 1}]})
        | {"$defs": {"e": {"enum": [1, 2]}}},
        [],
    ),
    ("nor of joined patterns", _object(a={"anyOf": [{"pattern": "^a"}, {"pattern": "^b"}, {"pattern": "^c"}]}), []),
]


def _lost(schema: Any) -> Told:
    _, writer = schema_to_lark(schema)
    return [(one.place, one.keywords) for one in writer.lost()]


@pytest.mark.parametrize("name, schema, told", CASES, ids=[name for name, *_ in CASES])
def test_cases(name: str, schema: Any, told: Told) -> None:
    assert _lost(schema) == told


def test_why() -> None:
    def why(schema: Any) -> list[str]:
        return [one.why for one in schema_to_lark(schema)[1].lost()]

    assert why(_object(a=BAD)) == ["no value meets type, minimum and maximum"]
    inner = _object(a={"type": "object", "properties": {"q": BAD}, "required": ["q"]})
    assert why(inner) == ["no value meets type, minimum and maximum, at #/properties/a/properties/q"]
    parts = _object(a={"type": "number", "allOf": [{"minimum": 5}, {"maximum": 3}]})
    assert why(parts) == [
        "no value meets type, minimum at #/properties/a/allOf/0 and maximum at #/properties/a/allOf/1"
    ]
    assert why(_object(a=NO_TIME)) == [
        "no value meets type, format and pattern (--formats annotate enforces no format)"
    ]
    with pytest.raises(UnsatisfiableError, match="here; --formats annotate enforces no format"):
        schema_to_lark({**_object(a=NO_TIME), "required": ["a"]})
    with pytest.raises(UnsatisfiableError) as refused:
        schema_to_lark({**_object(a=BAD), "required": ["a"]})
    assert "format" not in str(refused.value)


def test_a_time_without_an_offset(shared: Path) -> None:
    """The pattern that zod writes beside a format excludes every time of that format."""
    folder = shared / "cases" / "reported" / "73-optional-unsat-format-pattern"
    schema = json.loads((folder / "spec.json").read_text())
    plain = compile_schema(schema, "builtin", options=Options(whitespace="flexible"))
    assert [one["why"].partition("(")[2] for one in plain.report["unwritable"]] == [
        "--formats annotate enforces no format)"
    ]
    free = compile_schema(schema, "builtin", options=Options(whitespace="flexible", formats="annotate"))
    assert free.report["unwritable"] == []
    for text in (folder / "valid.txt").read_text().splitlines():
        assert check(free.bundle, text.encode())["accepted"], text
    assert not check(free.bundle, b'{"at":"12:30Z","what":"x"}')["accepted"]


@pytest.mark.parametrize(
    ("schema", "place", "keywords"),
    [
        (BAD, "#", ("minimum", "maximum")),
        (_object(k=BAD) | {"properties": {"k": BAD}}, "#/properties/k", ("minimum", "maximum")),
        (NO_TIME, "#", ("format", "pattern")),
        (
            {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True, "minItems": 3},
            "#",
            ("uniqueItems", "minItems"),
        ),
    ],
)
def test_what_is_required_is_refused_with_its_keywords(schema: Any, place: str, keywords: tuple[str, ...]) -> None:
    with pytest.raises(UnsatisfiableError) as refused:
        schema_to_lark(schema)
    assert refused.value.place == place
    assert refused.value.found is not None
    assert all(re.search(rf"\b{one} at {re.escape(place)}/{one}\b", refused.value.found) for one in keywords)


def _scalar(rng: random.Random) -> dict[str, Any]:
    pool: list[tuple[str, list[Any]]] = [
        ("type", ["string", "integer", "number", ["string", "null"], "array"]),
        ("enum", [["a", "b"], [1, 2.5], ["abc", 7, None], [[1], []]]),
        ("minimum", [0, 3, 7.5]),
        ("maximum", [2, 3, 9]),
        ("exclusiveMinimum", [2]),
        ("multipleOf", [2, 5]),
        ("minLength", [0, 2, 4]),
        ("maxLength", [1, 3]),
        ("format", ["date", "ipv4"]),
        ("pattern", ["^a", "b$", "^[0-9]+$", "^(a|bc)$", "/^a$/", "^.{3}$"]),
        ("items", [{"type": "string"}, {"enum": [1]}, False]),
        ("minItems", [1, 2]),
        ("maxItems", [0, 1]),
        ("not", [{"enum": ["a", "bc"]}, {"type": "string"}, {"minimum": 1}]),
        ("anyOf", [[{"type": "string"}, {"minimum": 4}], [{"const": "a"}, {"const": 3}]]),
    ]
    return {key: rng.choice(values) for key, values in rng.sample(pool, rng.randint(1, 4))}


@pytest.mark.parametrize("seed", range(12))
def test_a_member_is_told_exactly_if_it_is_refused_where_it_is_required(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        inner = _scalar(rng)
        schema = {"type": "object", "properties": {"a": inner}}
        told = "#/properties/a" in [place for place, _ in _lost(schema)]
        try:
            text, _ = schema_to_lark({**schema, "required": ["a"]})
            refused = Compiled(text).automaton is None
        except UnsatisfiableError:
            refused = True
        assert told == refused, json.dumps(inner)


def test_the_report_names_each() -> None:
    tools = [
        {"type": "function", "function": {"name": name, "parameters": _object(a=BAD, propertes={"minlength": 3})}}
        for name in ("f", "g")
    ]
    for protocol in ("hermes", "qwen3_coder"):
        report = compile_tools(tools, options=Options(protocol=protocol)).report
        places = [f"tools#/{n}/function/parameters/properties" for n in range(2)]
        assert [one["pointer"].partition("#")[2] for one in report["unwritable"]] == [
            f"{place.partition('#')[2]}/a" for place in places
        ]
        assert [one["keywords"] for one in report["unwritable"]] == [list(BOUNDS)] * 2
        assert [(one["keyword"], one["meant"]) for one in report["misspelt"]] == [("minlength", "minLength")]


def test_an_optional_body_and_parameters_of_operations() -> None:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/B"}}}}
    query = {"name": "q", "in": "query", "schema": BAD}
    operation = {"operationId": "x", "parameters": [query], "requestBody": body, "responses": {}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1"},
        "paths": {"/x": {"post": operation}},
        "components": {"schemas": {"B": {"type": "object", "properties": {"a": BAD}, "required": ["a"]}}},
    }
    found = grammar_of(read_spec(document)).lost
    assert [one.place.partition("#")[2] for one in found] == [
        "/paths/~1x/post/properties/q",
        "/paths/~1x/post/properties/body",
    ]
    assert found[1].why.endswith("#/components/schemas/B/properties/a")


def test_what_a_tokenizer_cannot_write_is_a_row_too() -> None:
    assert compile_schema({"enum": ["a", "b"]}).report["unwritable"] == []


# -- names that are nearly keywords


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ("propertes", "properties"),
        ("minlength", "minLength"),
        ("requried", "required"),
        ("additonalProperties", "additionalProperties"),
        ("Type", "type"),
        ("patternn", "pattern"),
        ("itens", "items"),
        ("_format", None),
        ("@type", None),
        ("ref", None),
        ("id", None),
        ("if_", None),
        ("note", None),
        ("title", None),
        ("$defs", None),
        ("x-type", None),
        ("examples", None),
        ("type", None),
        ("format", None),
        ("nullable", None),
    ],
)
def test_one_letter(name: str, keyword: str | None) -> None:
    assert meant(name) == keyword


def test_where_names_are_looked_at() -> None:
    schema = {
        "type": "object",
        "properties": {"propertes": {"const": {"requred": 1}, "default": {"tpye": 1}, "examples": [{"enmu": 1}]}},
        "$defs": {"itemss": {"type": "string"}},
        "x-more": {"patern": 1},
        "requird": [],
        "not": {"required": ["x"], "requird": []},
    }
    report = compile_schema(schema).report
    assert [(one["pointer"], one["keyword"]) for one in report["misspelt"]] == [("schema#/not", "requird")]


# -- cost


def test_many_branches_and_values_do_not_take_long() -> None:
    values = [f"v{n}" for n in range(2000)]
    schemas: list[Any] = [
        _object(
            a={"anyOf": [{"const": value, "title": value} for value in values], "type": "integer"}, b={"type": "null"}
        ),
        _object(a={"enum": [*range(2000), "x"], "type": "string"}),
        _object(a={"anyOf": [_object(**{value: {"type": "string"}}) for value in values[:300]]}),
        _object(**{value: BAD | {"minimum": 5 + n} for n, value in enumerate(values[:300])}),
    ]
    for schema in schemas:
        writer = LarkWriter(SchemaOptions(), Budget(seconds=100))
        writer.add(schema)
        began = time.process_time()
        found = writer.lost()
        assert time.process_time() - began < 5 and len(found) <= 2000


def test_a_pattern_as_javascript_writes_it() -> None:
    """The case of a tool list: the error says where both keywords stand in the list, and what the slashes are."""
    schema = {
        "type": "object",
        "properties": {"n": {"pattern": "/^.*[a-z]+.*$/i", "type": "string"}},
        "required": ["n"],
    }
    with pytest.raises(UnsatisfiableError) as refused:
        compile_tools([{"name": "t", "input_schema": schema}], "builtin", options=Options(jobs=1))
    assert "without the slashes" in str(refused.value)
    for keyword in ("pattern", "type"):
        assert f"{keyword} at spec#/0/input_schema/properties/n/{keyword}" in str(refused.value.found)
