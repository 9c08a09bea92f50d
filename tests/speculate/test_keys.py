"""Equal calls have equal keys, different ones different keys, and only marked tools may run early."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler import read_spec
from toolc.compiler.budget import Budget
from toolc.compiler.schema.defaults import defaults_of
from toolc.compiler.specs.marks import marks_of
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.keys import Scope, canonical, fill_defaults, parse_object
from toolc.runtime.speculate.rules import Rules, ToolRule, may_run_early

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("abcé", max_size=3), below, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("abcdé", max_size=3), VALUES, max_size=4)


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same JSON value, its keys in another order and its whole numbers in another form."""
    if isinstance(value, dict):
        pairs = [(key, shuffled(one, dice)) for key, one in value.items()]
        dice.shuffle(pairs)
        return dict(pairs)
    if isinstance(value, list):
        return [shuffled(one, dice) for one in value]
    if type(value) is int and dice.random() < 0.5:
        return float(value)
    return value


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values, told a second time: booleans are no numbers."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return type(a) in (int, float) and type(b) in (int, float) and a == b or type(a) is type(b) and a == b


@given(OBJECTS, st.integers())
def test_order_and_form_do_not_matter(value: dict[str, Any], seed: int) -> None:
    assert canonical(value) == canonical(shuffled(value, random.Random(seed)))
    assert canonical(value) == canonical(parse_object(json.dumps(value, indent=2)))


@given(OBJECTS, OBJECTS)
def test_equal_exactly_where_the_values_are(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert (canonical(a) == canonical(b)) == same(a, b)


@pytest.mark.parametrize("value", [2**53, float("nan"), float("inf"), "\ud800", {1: 2}], ids=str)
def test_no_canonical_form(value: Any) -> None:
    with pytest.raises(SpeculateError, match="canonical"):
        canonical({"a": value})


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[1]", '{"a": NaN}', "{", "[" * 100_000], ids=lambda t: t[:12])
def test_no_object(text: str) -> None:
    with pytest.raises(SpeculateError):
        parse_object(text)


SCHEMA = {
    "type": "object",
    "properties": {
        "units": {"type": "string", "default": "celsius"},
        "box": {"$ref": "#/$defs/box"},
        "list": {"type": "array", "items": {"$ref": "#/$defs/box"}},
        "deep": {"type": "object", "properties": {"on": {"default": False}}, "default": {}},
    },
    "$defs": {"box": {"type": "object", "properties": {"w": {"default": 1}, "again": {"$ref": "#/$defs/box"}}}},
}


def test_defaults_are_filled_in() -> None:
    (tool,) = read_spec([{"name": "t", "input_schema": SCHEMA}]).tools
    (text,) = defaults_of([tool], Budget())
    assert text is not None
    tree = json.loads(text)
    assert fill_defaults({}, tree) == {"units": "celsius", "deep": {"on": False}}
    given_ = {"units": "kelvin", "box": {}, "list": [{"w": 2}, {"again": {}}, 3], "deep": {"on": True}, "other": 1}
    assert fill_defaults(given_, tree) == {
        "units": "kelvin",
        "box": {"w": 1},
        "list": [{"w": 2}, {"w": 1, "again": {"w": 1}}, 3],
        "deep": {"on": True},
        "other": 1,
    }
    assert canonical({}, tree) == canonical({"units": "celsius", "deep": {}}, tree)
    assert canonical({}, tree) != canonical({"units": "kelvin"}, tree)


REFUSED: dict[str, tuple[Any, Any]] = {  # a schema; a default that it forbids
    "type": ({"type": "integer"}, "bad"),
    "boolean": ({"type": "integer"}, True),
    "null": ({"type": "string"}, None),
    "enum": ({"enum": [1, 2]}, True),
    "minimum": ({"type": "integer", "minimum": 3}, 2),
    "pattern": ({"type": "string", "pattern": "^a"}, "b"),
    "items": ({"type": "array", "items": {"type": "string"}}, ["x", 1]),
    "anyOf": ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x"),
    "$ref": ({"$ref": "#/$defs/few", "maximum": 3}, 4),
    "cannot be told": ({"pattern": "(?<=a)(?<!b)\\1"}, "x"),
}
FEW = {"few": {"type": "integer", "default": 5}}


@pytest.mark.parametrize("case", REFUSED)
def test_a_default_that_its_schema_forbids_is_none(case: str) -> None:
    """A tool that ran early was given it, as if the model had said it."""
    schema, default = REFUSED[case]
    properties = {"a": {**schema, "default": default}, "b": {"type": "string", "default": "y"}}
    (tool,) = read_spec([{"name": "t", "input_schema": {"properties": properties, "$defs": FEW}}]).tools
    (text,) = defaults_of([tool], Budget())
    assert text is not None and json.loads(text) == {"properties": {"b": {"default": "y"}}}


@pytest.mark.parametrize(
    ("schema", "default"),
    [
        ({"type": "integer"}, 1),
        ({"type": "number"}, 1),
        ({"type": ["string", "null"]}, None),
        ({"enum": ["x", 1]}, 1),
        ({"type": "integer", "minimum": 3}, 3.0),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
        ({"$ref": "#/$defs/few"}, 4),
    ],
)
def test_a_default_that_its_schema_allows(schema: Any, default: Any) -> None:
    properties = {"a": {**schema, "default": default}, "few": {"$ref": "#/$defs/few"}}
    (tool,) = read_spec([{"name": "t", "input_schema": {"properties": properties, "$defs": FEW}}]).tools
    (text,) = defaults_of([tool], Budget())
    assert text is not None
    assert json.loads(text)["properties"] == {"a": {"default": default}, "few": {"default": 5}}


def test_keys_are_scoped() -> None:
    rules = Rules([ToolRule("a", True, "1"), ToolRule("b", True, "1")])
    newer = Rules([ToolRule("a", True, "2")])
    keys = {
        rules.key(Scope(server, user), tool, {}) for server in ("s", "") for user in ("u", "") for tool in ("a", "b")
    }
    keys.add(newer.key(Scope(), "a", {}))
    assert len(keys) == 9
    with pytest.raises(SpeculateError, match="no such tool"):
        rules.key(Scope(), "c", {})


MARKS = [
    ({}, False, False),
    ({"read_only": True}, False, True),
    ({"read_only": True}, True, True),
    ({"read_only": False}, False, False),
    ({"idempotent": True}, False, True),
    ({"idempotent": True}, True, False),
    ({"idempotent": True, "destructive": True}, False, False),
    ({"read_only": True, "destructive": True}, False, False),
    ({"read_only": "yes"}, False, False),
    ({"read_only": 1}, False, False),
    ({"destructive": False}, False, False),
]


@pytest.mark.parametrize(("marks", "by_method", "early"), MARKS, ids=str)
def test_only_marked_tools_run_early(marks: dict[str, Any], by_method: bool, early: bool) -> None:
    assert may_run_early(marks, by_method) is early


def test_marks_of_every_form() -> None:
    def operation(**more: Any) -> dict[str, Any]:
        return {"responses": {}, **more}

    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/a": {"get": operation(operationId="read"), "put": operation(operationId="write")},
            "/b": {"post": operation(operationId="ask", **{"x-toolc": {"read_only": True, "version": "7"}})},
        },
    }
    read, write, ask = read_spec(document).tools
    assert (read.read_only, read.idempotent) == (True, True)
    assert (write.read_only, write.idempotent) == (None, True)
    assert (ask.read_only, ask.idempotent, ask.version) == (True, None, "7")
    mcp = {"name": "m", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
    (tool,) = read_spec([{**mcp, "x-toolc": {"read_only": False, "destructive": True}}]).tools
    assert (tool.read_only, tool.destructive) == (False, True)
    for hints, destructive in (
        ({"idempotentHint": True}, True),  # as MCP reads what is not said
        ({"idempotentHint": True, "readOnlyHint": False}, True),
        ({"idempotentHint": True, "destructiveHint": False}, False),
        ({"idempotentHint": True, "readOnlyHint": True}, None),
        ({"readOnlyHint": False}, None),
    ):
        (tool,) = read_spec([{**mcp, "annotations": hints}]).tools
        assert tool.destructive is destructive
    (tool,) = read_spec([{**mcp, "annotations": {"idempotentHint": True}, "x-toolc": {"destructive": False}}]).tools
    assert tool.destructive is False
    for own, early in (({"read_only": True}, True), ({"idempotent": True}, True), ({"version": "1"}, False)):
        marks = marks_of({"annotations": {"idempotentHint": True}, "x-toolc": own}, "p", True)
        assert may_run_early(marks) is early  # x-toolc has the last word
    chat = {"type": "function", "function": {"name": "f", "x-toolc": {"version": "1"}}}
    (tool,) = read_spec([{**chat, "x-toolc": {"read_only": True, "version": "0"}}]).tools
    assert (tool.read_only, tool.version) == (True, "1")
    with pytest.raises(Exception, match="true or false"):
        marks_of({"x-toolc": {"read_only": "yes"}}, "p", False)


def test_rules_of_a_bundle() -> None:
    from tests.speculate.small import bundle

    rules = Rules.from_bundle(bundle())
    assert [name for name in rules if rules[name].early] == ["look", "find"]
    call = {"place": "Bern", "days": 1}
    assert rules.key(Scope(), "look", call) == rules.key(Scope(), "look", {"units": "c", "days": 1.0, "place": "Bern"})
    assert rules["look"].version == bundle().meta["spec"]["digest"]


def test_an_operation_is_one_beside_other_tools(tmp_path: Path) -> None:
    """A guessed DELETE would delete, whatever the spec was joined with."""
    from toolc.compiler.pipeline import compile_spec
    from toolc.compiler.specs.project import joined_spec

    ways = {"get": {"operationId": "look", "responses": {}}, "delete": {"operationId": "drop", "responses": {}}}
    api = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {"/a": ways}}
    own = [{"name": "f", "inputSchema": {"type": "object"}, "x-toolc": {"idempotent": True}}]
    (tmp_path / "api.json").write_text(json.dumps(api))
    (tmp_path / "own.json").write_text(json.dumps(own))
    for names, early in ((["api"], ["look"]), (["api", "own"], ["look", "f"]), (["own", "api"], ["f", "look"])):
        spec = joined_spec(tuple(tmp_path / f"{name}.json" for name in names))
        rules = Rules.from_bundle(compile_spec(spec).bundle)
        assert [name for name in rules if rules[name].early] == early
