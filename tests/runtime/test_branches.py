"""Calls tell which branch of a union a value is, where a discriminator names it."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.schema.branch_names import unions_of
from toolc.compiler.specs import read_spec
from toolc.runtime import Bundle, read_calls
from toolc.runtime.calls.branches import branches_of

CAT = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]}
DOG = {"type": "object", "properties": {"kind": {"const": "d"}, "of": {"$ref": "#/$defs/Pets"}}, "required": ["kind"]}
PET = {
    "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
    "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/$defs/Cat", "d": "#/$defs/Dog"}},
}
PETS = {"type": "array", "items": {"$ref": "#/$defs/Pet"}}
TOOL = {
    "name": "adopt",
    "input_schema": {
        "type": "object",
        "properties": {
            "pet": {"anyOf": [{"$ref": "#/$defs/Pet"}, {"type": "null"}]},
            "pets": {"allOf": [{"$ref": "#/$defs/Pets"}]},
            "by~/name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Pet"}},
            "other": {"type": "object", "properties": {"kind": {"const": "cat"}}},
        },
        "$defs": {"Cat": CAT, "Dog": DOG, "Pet": PET, "Pets": PETS},
    },
}
PLAIN = {"name": "plain", "input_schema": {"type": "object", "properties": {"kind": {"const": "cat"}}}}


@pytest.mark.parametrize(
    ("arguments", "branches"),
    [
        ({}, {}),
        ({"pet": None, "other": {"kind": "cat"}}, {}),
        ({"pet": {"kind": "cat"}}, {"/pet": "Cat"}),
        (
            {"pets": [{"kind": "d", "of": [{"kind": "cat", "lives": 1}, {"kind": "d"}]}]},
            {"/pets/0": "Dog", "/pets/0/of/0": "Cat", "/pets/0/of/1": "Dog"},
        ),
        ({"by~/name": {"a/b": {"kind": "d"}}}, {"/by~0~1name/a~1b": "Dog"}),
    ],
)
def test_branches(arguments: dict[str, Any], branches: dict[str, str], tmp_path: Any) -> None:
    made = compile_tools([PLAIN, TOOL], "builtin", options=Options(jobs=1))
    made.write(tmp_path / "pets.toolc")
    text = json.dumps({"name": "adopt", "arguments": arguments})
    for bundle in (made.bundle, Bundle.open(tmp_path / "pets.toolc")):
        (call,) = read_calls(bundle, text)
        assert call.branches == branches
        (plain,) = read_calls(bundle, '{"name": "plain", "arguments": {"kind": "cat"}}')
        assert plain.branches == {}
    assert ["unions" in tool for tool in made.bundle.meta["spec"]["tools"]] == [False, True]


def test_operations_and_subtypes() -> None:
    """The discriminator of a parent, with --subtypes; tags are the names of schemas where no mapping gives others."""
    child = {"type": "object", "properties": {"lives": {"type": "integer"}}}
    schemas = {
        "Pet": {"type": "object", "required": ["kind"], "properties": {"kind": {"type": "string"}},
                "discriminator": {"propertyName": "kind"}},
        "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, child]},
        "Dog": {"allOf": [{"$ref": "#/components/schemas/Pet"}]},
    }  # fmt: skip
    body = {"type": "object", "properties": {"pet": {"$ref": "#/components/schemas/Pet"}}}
    operation = {"operationId": "add", "requestBody": {"content": {"application/json": {"schema": body}}}}
    document = {"openapi": "3.0.3", "paths": {"/a": {"post": operation}}, "components": {"schemas": schemas}}
    bundle = compile_tools(document, "builtin", options=Options(jobs=1, subtypes=True)).bundle
    text = '{"name": "add", "arguments": {"body": {"pet": {"kind": "Cat", "lives": 9}}}}'
    assert [call.branches for call in read_calls(bundle, text)] == [{"/body/pet": "Cat"}]


def test_what_is_no_union_has_no_branch() -> None:
    """Declared members beside others that are unions; what patterns and positions take from ``rest`` and ``items``."""
    cat = {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]}
    tag = {"propertyName": "kind", "mapping": {"cat": "#/$defs/Big%20Cat"}}
    pet = {"oneOf": [{"$ref": "#/$defs/Big%20Cat"}], "discriminator": tag}
    plain = {"type": "object", "properties": {"kind": {"type": "string"}}}
    parameters = {
        "type": "object", "properties": {"plain": plain}, "additionalProperties": {"$ref": "#/$defs/a%20pet"},
        "$defs": {"Big Cat": cat, "a pet": pet},
    }  # fmt: skip
    bundle = compile_tools([{"name": "f", "parameters": parameters}], "builtin", options=Options(jobs=1)).bundle
    (call,) = read_calls(bundle, '{"name": "f", "arguments": {"plain": {"kind": "cat"}, "other": {"kind": "cat"}}}')
    assert call.branches == {"/other": "Big Cat"}
    for schema in (
        {"type": "object", "patternProperties": {"^x": plain}, "additionalProperties": pet},
        {"type": "array", "prefixItems": [plain], "items": pet},
    ):
        below = {"type": "object", "properties": {"l": schema}, "$defs": {"Big Cat": cat}}
        assert unions_of([read_spec([{"name": "f", "parameters": below}]).tools[0]], Budget()) == [None]


def test_scalars_cost_nothing() -> None:
    value = {"k" * 20_000: [0] * 20_000}
    tracemalloc.start()
    try:
        assert branches_of([{"rest": 0, "items": 0}], value) == {}
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
