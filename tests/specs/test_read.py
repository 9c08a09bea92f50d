"""What the kinds of spec become."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pydantic
import pytest

from tests.cases.broken_specs import api, get, query
from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.errors import SpecError, UnsatisfiableError
from toolc.compiler.specs import Spec, ToolSpec, read_spec
from toolc.runtime import read_calls


def only(spec: Spec) -> ToolSpec:
    (tool,) = spec.tools
    return tool


def test_tools_list() -> None:
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    function = {"name": "a.b-c_1", "description": "d", "parameters": parameters, "strict": True}
    chat = read_spec([{"type": "function", "function": function}])
    tool = only(chat)
    assert (chat.kind, tool.name, tool.description, tool.schema) == ("tools", "a.b-c_1", "d", parameters)
    assert (tool.pointer, tool.document, tool.read_only) == ("/0/function/parameters", tool.schema, None)
    assert only(read_spec([{"type": "function", **function}])).schema == parameters
    assert only(read_spec({"type": "function", "function": function})).pointer == "/function/parameters"
    request = read_spec({"model": "m", "tools": [{"type": "function", "function": function}]})
    assert only(request).pointer == "/tools/0/function/parameters"


@pytest.mark.parametrize("parameters", [None, "absent"])
def test_no_parameters_is_no_arguments(parameters: Any) -> None:
    function = {"name": "a"} | ({"parameters": None} if parameters is None else {})
    schema = only(read_spec([{"type": "function", "function": function}])).schema
    assert schema == {"type": "object", "properties": {}, "additionalProperties": False}


MEMBERS = {"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}


class TwoTypes(pydantic.RootModel[int | dict[str, int]]): ...  # type: ignore[name-defined]


UNSAID: dict[str, Any] = {
    "anyOf": {**MEMBERS, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "allOf": {"allOf": [MEMBERS]},
    "$ref": {"$ref": "#/$defs/x", "$defs": {"x": MEMBERS}},
    "$ref of draft 7": {
        "$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/x", "definitions": {"x": MEMBERS},
    },
    "if": {**MEMBERS, "if": {"required": ["b"]}, "then": {"required": ["a"]}},
    "not": {**MEMBERS, "not": {"required": ["c"]}},
    "two types": {"anyOf": [{"type": "string"}, {"type": "object"}]},
    "two types of a model": TwoTypes,
}  # fmt: skip


@pytest.mark.parametrize("case", UNSAID)
@pytest.mark.parametrize("protocol", ["json", "hermes"])
def test_arguments_are_an_object_where_nothing_says_so(case: str, protocol: str) -> None:
    """A number was taken as arguments, and the call could not be read."""
    schema = UNSAID[case]
    source = schema if isinstance(schema, type) else {"name": "f", "input_schema": schema}
    held = compile_tools([source], options=Options(protocol=protocol)).bundle
    (tool,) = held.tools
    for value in ({"a": 1}, 3, None, [], "x"):
        text = FAMILIES[protocol].write([(tool["name"], value)])
        accepted = check(held, text.encode(), "required")["accepted"]
        assert accepted is isinstance(value, dict), text
        if accepted:
            assert [call.arguments for call in read_calls(held, text, "required")] == [value]


@pytest.mark.parametrize("schema", [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"enum": [3]}])
def test_arguments_that_no_object_meets(schema: Any) -> None:
    with pytest.raises(UnsatisfiableError) as refused:
        compile_tools([{"name": "f", "input_schema": schema}])
    assert refused.value.place == "spec#/0/input_schema"


def test_arguments_are_an_object() -> None:
    def schema(parameters: Any) -> Any:
        return only(read_spec([{"type": "function", "function": {"name": "a", "parameters": parameters}}])).schema

    assert schema({}) == {"type": "object"}
    assert schema({"properties": {"a": {}}}) == {"type": "object", "properties": {"a": {}}}
    assert schema({"type": ["null", "object"]}) == {"type": "object"}
    assert schema({"$ref": "#/$defs/a", "$defs": {"a": {}}}) == {"$ref": "#/$defs/a", "$defs": {"a": {}}}


@pytest.mark.parametrize("schema", [{"default": {}}, {"x-a": {"type": "b"}}, {"$comment": "c"}, {"example": {"a": 1}}])
def test_open_arguments_stay_open(schema: Any) -> None:
    (tool,) = read_spec([{"name": "f", "parameters": {"type": "object", **schema}}]).tools
    assert tool.schema == {"type": "object", **schema}


def test_bare_schema() -> None:
    for schema in ({"type": "array"}, {}, True, {"description": "anything"}, {"name": "x", "type": "object"}):
        spec = read_spec(schema)
        assert (spec.kind, spec.schema, spec.tools) == ("schema", schema, ())
    assert read_spec({"properties": {"tools": {}}, "tools": 1}).kind == "schema"


def test_openapi_arguments() -> None:
    spec = read_spec(
        api(
            {
                "x-internal": 1,
                "/m/{id}/c": {
                    "parameters": [
                        {"$ref": "#/components/parameters/id"},
                        query("page", schema={"type": "integer"}),
                        query("kept", description="from the path item"),
                    ],
                    "post": {
                        "parameters": [
                            query("page", schema={"type": "string"}, required=True),
                            query("id"),
                            {"name": "Authorization", "in": "header", "schema": {}},
                            {
                                "name": "filter",
                                "in": "query",
                                "content": {"application/json": {"schema": {"enum": [1]}}},
                            },
                        ],
                        "requestBody": {"$ref": "#/components/requestBodies/b"},
                    },
                },
            },
            components={
                "parameters": {"id": {"name": "id", "in": "path", "schema": {"$ref": "#/components/schemas/X"}}},
                "requestBodies": {
                    "b": {
                        "required": True,
                        "content": {
                            "text/plain": {"schema": {"type": "string"}},
                            "application/json; charset=utf-8": {"schema": {"$ref": "#/components/schemas/X"}},
                        },
                    }
                },
                "schemas": {"X": {"type": "integer"}},
            },
        ),
        "api.json",
    )
    tool = only(spec)
    ref = {"$ref": "#/components/schemas/X"}
    assert tool.name == "post_m_id_c"
    assert tool.schema == {
        "type": "object",
        "properties": {
            "path_id": ref,
            "page": {"type": "string"},
            "kept": {},
            "query_id": {},
            "filter": {"enum": [1]},
            "body": ref,
        },
        "required": ["path_id", "page", "body"],
        "additionalProperties": False,
    }
    assert next(iter(tool.schema["properties"])) == "path_id"
    assert tool.document == {"$schema": "http://json-schema.org/draft-04/schema#", **spec.document}
    assert (tool.pointer, tool.read_only, tool.dialect) == ("/paths/~1m~1{id}~1c/post", None, "openapi-3.0")
    assert tool.place("/properties/page/type") == "/paths/~1m~1{id}~1c/post/parameters/0/schema/type"
    assert tool.place("/properties/path_id") == "/components/parameters/id/schema"
    assert tool.place("/required") == "/paths/~1m~1{id}~1c/post/required"


def test_openapi_body_beside_a_parameter_called_body() -> None:
    body = {"content": {"application/vnd.x+json": {"schema": {"type": "null"}}, "text/plain": {}}}
    tool = only(read_spec(get(query("body"), requestBody=body)))
    assert isinstance(tool.schema, dict)
    assert tool.schema["properties"] == {"body": {}, "requestBody": {"type": "null"}}
    assert tool.schema["required"] == []


def test_openapi_3_0_nullable_becomes_a_type() -> None:
    note = {"type": "string", "nullable": True, "default": {"type": "x", "nullable": True}}
    schemas = {"A": {"properties": {"nullable": note, "default": note}}, "default": note, "B": {"nullable": True}}
    document = api({"/a": {"get": {"parameters": [query(schema=note)]}}}, components={"schemas": schemas})
    tool = only(read_spec(document))
    wide = note | {"type": ["string", "null"]}
    assert isinstance(tool.schema, dict)
    assert tool.schema["properties"] == {"q": wide}
    assert tool.document["components"]["schemas"] == {
        "A": {"properties": {"nullable": wide, "default": wide}},
        "default": wide,
        "B": {"nullable": True},
    }
    assert document["components"]["schemas"]["default"] is note
    new = only(read_spec(document | {"openapi": "3.1.1"}))
    assert isinstance(new.schema, dict) and new.schema["properties"] == {"q": note}


def test_openapi_names() -> None:
    def name(path: str, **operation: Any) -> str:
        return only(read_spec(api({path: {"get": operation}}))).name

    assert name("/movie/{movie_id}", parameters=[query("movie_id", **{"in": "path"})]) == "get_movie_movie_id"
    assert name("/") == "get"
    assert name("/a", operationId="meta/root x") == "meta_root_x"
    assert only(read_spec(api({"/a": {"get": {}}}))).read_only is True


def test_digest_sees_content_and_key_order_but_not_layout() -> None:
    one = read_spec(b'{"type": "object", "required": ["\xc3\xa9"]}')
    assert one.digest == read_spec('{ "type":"object","required":["\\u00e9"] }').digest
    assert one.digest != read_spec('{"required": ["\\u00e9"], "type": "object"}').digest


def test_digest_tells_numbers_apart() -> None:
    values = [1, 1.0, True, "1", 2**64, -(2**64), 2**64 + 1, str(2**64), 1 << 63, (1 << 63) - 1]
    assert len({read_spec({"const": value}).digest for value in values}) == len(values)


@pytest.mark.parametrize("sign", [1, -1])
def test_long_integers_are_refused_as_in_text(sign: int) -> None:
    with pytest.raises(SpecError, match="this number is too long; found 4,001 digits") as error:
        read_spec({"enum": [1, sign * 10**4000]}, "x")
    assert error.value.place == "x#/enum/1"
    longest = sign * (10**4000 - 1)
    for source in ({"const": longest}, json.dumps({"const": longest}), f"const: {longest}".encode()):
        assert read_spec(source).schema == {"const": longest}
    with pytest.raises(SpecError, match="4,001 digits"):
        read_spec(json.dumps({"const": longest * 10}))


def test_yaml_reads_as_json_does(repository: Path) -> None:
    yaml = pytest.importorskip("yaml")
    path = repository / "tools_specs" / "shop_openapi.json"
    document = json.loads(path.read_text())
    text = yaml.safe_dump(document, sort_keys=False)
    assert text.startswith("openapi:")
    assert read_spec(text.encode(), "shop.yaml").digest == read_spec(path).digest
    norway = read_spec(b"enum: [no, 2020-01-01, 1e3, 0x10, 012, null]\nproperties: {200: {}}")
    assert norway.schema == {"enum": ["no", "2020-01-01", 1000.0, 16, 12, None], "properties": {"200": {}}}


def test_shipped_specs(repository: Path) -> None:
    kinds = {}
    for path in sorted((repository / "tools_specs").glob("*.json")):
        spec = read_spec(path)
        kinds[path.name] = (spec.kind, len(spec.tools))
        for schema in [tool.schema for tool in spec.tools] or [spec.schema]:
            jsonschema.Draft202012Validator.check_schema(schema)
    assert kinds == {
        "calculator.json": ("tools", 3),
        "funcqa.json": ("tools", 13),
        "shop_openapi.json": ("openapi", 5),
        "tree_schema.json": ("schema", 0),
        "weather.json": ("tools", 3),
    }


def test_tmdb(shared: Path) -> None:
    spec = read_spec(shared / "data" / "openapi" / "tmdb_oas.json")
    assert len(spec.tools) == 54
    assert all(tool.name and tool.dialect == "openapi-3.0" for tool in spec.tools)


GEMINI = {
    "name": "look",
    "description": "Look.",
    "parameters": {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "enum": ["A", "STRING"], "format": "enum"},
            "at": {"type": "ARRAY", "items": {"type": "INTEGER", "nullable": True}, "minItems": "1"},
        },
        "required": ["type"],
        "propertyOrdering": ["type", "at"],
    },
}


@pytest.mark.parametrize(
    "document",
    [
        [{"functionDeclarations": [GEMINI]}],
        {"tools": [{"function_declarations": [GEMINI]}], "contents": []},
        {"functionDeclarations": [GEMINI]},
    ],
)
def test_declarations_of_gemini(document: Any) -> None:
    spec = read_spec(document)
    assert [(tool.name, tool.description) for tool in spec.tools] == [("look", "Look.")]
    assert spec.tools[0].schema == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["A", "STRING"]},
            "at": {"type": "array", "items": {"type": ["integer", "null"], "nullable": True}, "minItems": 1},
        },
        "required": ["type"],
    }
    assert spec.tools[0].pointer.endswith("ations/0/parameters")


def test_other_schemas_of_gemini() -> None:
    schema = {"type": "object", "properties": {"a": {"exclusiveMinimum": 3}}}
    declared = [{"name": "a", "parametersJsonSchema": schema}, {"name": "b"}]
    one, none = read_spec([{"functionDeclarations": declared}]).tools
    assert one.schema == schema
    assert none.schema == {"type": "object", "properties": {}, "additionalProperties": False}


@pytest.mark.parametrize(
    "document", [[{"cachePoint": {"type": "default"}}, "TOOL"], {"toolConfig": {"tools": ["TOOL"]}, "messages": []}]
)
def test_tools_of_bedrock(document: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    tool = {"toolSpec": {"name": "look", "description": "Look.", "inputSchema": {"json": schema}}}
    (found,) = read_spec(json.loads(json.dumps(document).replace('"TOOL"', json.dumps(tool)))).tools
    assert (found.name, found.description, found.schema) == ("look", "Look.", schema)
    assert found.pointer.endswith("/toolSpec/inputSchema/json")
    (found,) = read_spec(tool).tools
    assert found.pointer == "/toolSpec/inputSchema/json"
