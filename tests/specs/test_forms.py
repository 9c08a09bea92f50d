"""The forms in which tools come beside OpenAI's and OpenAPI 3: Anthropic, MCP, BFCL, Swagger, Python."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import jsonschema
import pytest

from tests.cases.bfcl import FILES, rows
from toolc.compiler.errors import SchemaError, SpecError, ToolcError
from toolc.compiler.specs import Spec, ToolSpec, read_spec

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


def only(spec: Spec) -> ToolSpec:
    (tool,) = spec.tools
    return tool


def test_anthropic() -> None:
    for tool in (
        {"name": "a", "description": "d", "input_schema": SCHEMA},
        {"type": "custom", "name": "a", "description": "d", "input_schema": SCHEMA, "cache_control": {}},
    ):
        for document, pointer in ((tool, "/input_schema"), ([tool], "/0/input_schema")):
            found = only(read_spec(document))
            assert (found.name, found.description, found.schema, found.pointer) == ("a", "d", SCHEMA, pointer)
    assert only(read_spec({"model": "m", "tools": [tool]})).pointer == "/tools/0/input_schema"


def test_mcp() -> None:
    notes = {"title": "A", "readOnlyHint": True, "idempotentHint": False, "openWorldHint": True}
    tools = [
        {"name": "a", "title": "A", "inputSchema": SCHEMA, "outputSchema": {"type": "object"}, "annotations": notes},
        {"name": "b", "inputSchema": {"type": "object"}},
    ]
    for document, head in (
        ({"tools": tools, "nextCursor": "x"}, "/tools"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}, "/result/tools"),
    ):
        one, two = read_spec(document).tools
        assert (one.pointer, one.schema, one.read_only, one.idempotent) == (
            f"{head}/0/inputSchema",
            SCHEMA,
            True,
            False,
        )
        assert (two.schema, two.read_only, two.idempotent) == ({"type": "object"}, None, None)


def test_bfcl_words() -> None:
    document = {
        "name": "math.sum",
        "description": "d",
        "parameters": {
            "type": "dict",
            "properties": {
                "a": {"type": "float", "optional": True, "default": 1},
                "b": {"type": "tuple", "items": {"type": "integer"}},
                "c": {"type": "any"},
                "d": {"type": "dict", "properties": {"type": {"type": "string"}}},
                "e": {"type": "dict"},
                "f": {"type": "array", "items": {"type": "string"}, "enum": ["x", "y"]},
                "g": {"type": "array", "items": {"type": "string", "enum": ["x", "z"]}, "enum": ["x", "y"]},
            },
            "required": ["a"],
        },
    }
    tool = only(read_spec(document))
    assert tool.pointer == "/parameters"
    assert tool.schema == {
        "type": "object",
        "properties": {
            "a": {"type": "number"},
            "b": {"type": "array", "items": {"type": "integer"}},
            "c": {},
            "d": {"type": "object", "properties": {"type": {"type": "string"}}, "additionalProperties": False},
            "e": {"type": "object"},
            "f": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
            "g": {"type": "array", "items": {"allOf": [{"type": "string", "enum": ["x", "z"]}, {"enum": ["x", "y"]}]}},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    row = {"id": "x", "question": [], "function": [document]}
    assert only(read_spec(row)).schema == tool.schema


def test_bfcl_calls_are_valid(shared: Path) -> None:
    count = 0
    for row in rows(shared / "data" / "bfcl", FILES):
        schemas = {tool.name: tool.schema for tool in read_spec(row.functions).tools}
        for name, arguments in row.calls:
            jsonschema.Draft202012Validator(schemas[name]).validate(arguments)
            count += 1
    assert count >= 599


def test_swagger() -> None:
    document = {
        "swagger": "2.0",
        "info": {},
        "parameters": {"id": {"name": "id", "in": "path", "required": True, "type": "integer", "minimum": 1}},
        "definitions": {"Pet": {"type": "object", "properties": {"name": {"type": "string", "x-nullable": True}}}},
        "paths": {
            "/pet/{id}": {
                "parameters": [{"$ref": "#/parameters/id"}],
                "put": {
                    "operationId": "putPet",
                    "parameters": [
                        {"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}},
                        {"name": "tags", "in": "query", "type": "array", "items": {"type": "string"},
                         "collectionFormat": "csv", "x-nullable": True},
                    ],
                },
                "post": {"consumes": ["multipart/form-data"], "parameters": [
                    {"name": "file", "in": "formData", "type": "file", "required": True}]},
            }
        },
    }  # fmt: skip
    spec = read_spec(document, "pets.json")
    put, post = spec.tools
    assert (spec.kind, put.name, put.idempotent, put.read_only) == ("openapi", "putPet", True, None)
    assert put.schema == {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "body": {"$ref": "#/definitions/Pet"},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}},
        },
        "required": ["id", "body"],
        "additionalProperties": False,
    }
    assert put.document["definitions"]["Pet"]["properties"]["name"]["type"] == ["string", "null"]
    assert put.place("/properties/body/type") == "/paths/~1pet~1{id}/put/parameters/0/schema/type"
    assert post.name == "post_pet_id" and post.schema["properties"]["file"] == {"type": "string"}  # type: ignore[index]
    for broken, words in (
        ({"name": "a", "in": "query"}, "no type"),
        ({"name": "a", "in": "body"}, "no schema"),
        ({"name": "a", "in": "data", "type": "string"}, "expected"),
    ):
        with pytest.raises(SpecError, match=words):
            read_spec({"swagger": "2.0", "paths": {"/a": {"get": {"parameters": [broken]}}}})


class Units(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclasses.dataclass
class Place:
    name: str
    inside: Optional[Place] = None  # noqa: UP045


class Window(TypedDict, total=False):
    start: int


def weather(
    place: Place,
    days: Annotated[int, "how many"] = 1,
    *,
    units: Units = Units.C,
    mode: Literal["a", 1] | None = None,
    pair: tuple[int, str] = (1, "a"),
    many: list[dict[str, float]] = [],  # noqa: B006
    window: Window | None = None,
    rest=None,  # type: ignore[no-untyped-def]
) -> str:
    """Tell the weather.

    Longer.
    """
    return ""


def test_functions() -> None:
    tool = only(read_spec(weather))
    assert tool.name == "weather" and tool.description.startswith("Tell the weather.")
    schema = tool.schema
    assert isinstance(schema, dict)
    assert list(schema["properties"]) == ["place", "days", "units", "mode", "pair", "many", "window", "rest"]
    assert schema["required"] == ["place"] and schema["additionalProperties"] is False
    good: dict[str, Any] = {"place": {"name": "Basel", "inside": {"name": "CH"}}, "units": "celsius", "pair": [1, "b"]}
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(good | {"mode": 1, "many": [{"a": 1.5}], "window": {"start": 1}, "rest": [None]})
    for bad in ({"days": "1"}, {"units": "C"}, {"pair": [1]}, {"many": [{"a": "b"}]}, {"place": {}}, {"zzz": 1}):
        assert not validator.is_valid(good | bad), bad


def test_pydantic_models() -> None:
    pydantic = pytest.importorskip("pydantic")
    Inner = pydantic.create_model("Inner", a=(int, ...))
    Search = pydantic.create_model("Search", __doc__="Look.", query=(str, ...), inner=(list[Inner], []))
    model, function = read_spec([Search, weather]).tools
    assert (model.name, model.description) == ("Search", "Look.")
    jsonschema.Draft202012Validator(model.schema).validate({"query": "x", "inner": [{"a": 1}]})
    assert not jsonschema.Draft202012Validator(model.schema).is_valid({"inner": []})

    def ask(search: Search) -> None: ...  # type: ignore[valid-type]

    ask.__annotations__["search"] = Search
    jsonschema.Draft202012Validator(only(read_spec(ask)).schema).validate({"search": {"query": "x"}})
    assert function.name == "weather"


def test_functions_that_cannot_be_tools() -> None:
    def positional(a: int, /) -> None: ...
    def keys(a: dict[float, str]) -> None: ...
    def pair(a: complex) -> None: ...

    for function, words in ((positional, "without a name"), (keys, "keys that JSON can"), (pair, "no JSON Schema")):
        with pytest.raises(SpecError, match=words):
            read_spec(function)


def test_no_arguments_in_every_form() -> None:
    def nothing() -> None: ...

    for document in (
        {"type": "function", "function": {"name": "nothing"}},
        {"type": "function", "name": "nothing", "parameters": None},
        {"name": "nothing", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}},
        {"name": "nothing", "parameters": {"type": "dict", "properties": {}}},
        nothing,
    ):
        tool = only(read_spec(document))
        assert jsonschema.Draft202012Validator(tool.schema).is_valid({})
        assert not jsonschema.Draft202012Validator(tool.schema).is_valid({"a": 1})


def test_project(tmp_path: Path) -> None:
    from toolc.compiler.specs.project import find_project, joined_spec, read_project

    (tmp_path / "a.json").write_text(json.dumps([{"name": "a", "input_schema": SCHEMA}]))
    (tmp_path / "b.json").write_text(json.dumps({"name": "b", "parameters": {"type": "dict"}}))
    path = tmp_path / "toolc.json"
    path.write_text('{"spec": ["a.json", "b.json"], "protocol": "hermes", "eos": "<|end|>", "options": {"digits": 5}}')
    assert find_project(tmp_path) == path
    project = read_project(path)
    assert (project.protocol, project.eos, project.options) == ("hermes", ("<|end|>",), {"digits": 5})
    assert [tool.name for tool in joined_spec(project.specs).tools] == ["a", "b"]
    for text, words in (
        ("{}", "names no spec"),
        ('{"spec": []}', "names no spec"),
        ('{"spec": "c.json"}', "no such file"),
        ('{"spec": "a.json", "response": "c.json"}', r"(?s)at toolc.json#/response.*no such file"),
        ('{"spec": "a.json", "protocl": "x"}', "did you mean protocol"),
        ('{"spec": "a.json", "options": {"digits": "5"}}', "a whole number from 1 to 300"),
        ('{"spec": "a.json", "options": {"digit": 5}}', "whitespace, digits"),
    ):
        path.write_text(text)
        with pytest.raises(SpecError, match=words):
            read_project(path)


HOSTED = [
    {"type": "web_search"},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
    {"type": "mcp", "server_label": "dmcp", "server_url": "https://x.test/sse", "require_approval": "never"},
    {"type": "file_search", "vector_store_ids": ["vs_1"], "filters": {"type": "eq", "key": "a", "value": 1}},
]


@pytest.mark.parametrize("form", [lambda tools: tools, lambda tools: {"tools": tools}])
def test_tools_that_the_api_runs(form: Any, tmp_path: Path) -> None:
    """They are refused by their place; with skip the others compile, as if these were not there."""
    from toolc.compiler import Options, compile_tools
    from toolc.compiler.specs.project import joined_spec

    head = "#" if isinstance(form([]), list) else "#/tools"
    own = {"name": "a", "input_schema": {**SCHEMA, "additionalProperties": False}}
    for n, tool in enumerate(HOSTED):
        document = form([own, tool])
        assert [found[:2] for found in read_spec(document).hosted] == [(tool["type"], f"{head[1:]}/1")], n
        with pytest.raises(SpecError, match="no tool that toolc knows") as caught:
            compile_tools(document)
        assert (caught.value.place or "").endswith(f"{head}/1/type")
    path = tmp_path / "list.json"
    path.write_text(json.dumps(form([*HOSTED, own, *HOSTED])))
    made = compile_tools(path, options=Options(skip=True))
    assert made.report["tools"] == ["a"]
    numbers = [*range(len(HOSTED)), *range(len(HOSTED) + 1, 2 * len(HOSTED) + 1)]
    assert [one["place"] for one in made.report["skipped"]] == [f"list.json{head}/{n}/type" for n in numbers]
    alone = compile_tools(form([own])).bundle.tables.arrays()
    for name, array in made.bundle.tables.arrays().items():
        assert (array == alone[name]).all()
    for skip in (False, True):
        with pytest.raises(SpecError, match="the spec has no other tools"):
            compile_tools(form(HOSTED[:1]), options=Options(skip=skip))
    (tmp_path / "more.json").write_text(json.dumps([{"name": "b", "input_schema": SCHEMA}, *HOSTED[:1]]))
    joined = joined_spec((path, tmp_path / "more.json"))
    assert joined.hosted[-1].place(joined.name) == "more.json#/1" and len(joined.hosted) == 2 * len(HOSTED) + 1
    (tmp_path / "only.json").write_text(json.dumps(HOSTED[:1]))
    joined = joined_spec((path, tmp_path / "only.json"))
    assert [tool.name for tool in joined.tools] == ["a"] and joined.hosted[-1].file == "only.json"


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "fuction", "function": {"name": "a", "parameters": SCHEMA}},
        {"type": "fuction", "name": "a", "parameters": SCHEMA},
        {"type": "tool", "name": "a", "input_schema": SCHEMA},
        {"type": "tool", "name": "a", "inputSchema": None},
        {"type": "tool", "name": "a", "args_schema": SCHEMA},
        {"type": "tool", "spec": {"name": "a", "inputSchema": SCHEMA}},
        {"type": "toolset", "tools": [{"name": "a", "input_schema": SCHEMA}]},
        {"type": "fuction", "name": "a", "description": "a function"},
        {"type": ""},
        {"type": "any"},
        {"type": "odd", "a": functools.reduce(lambda below, _: {"a": below}, range(480), {"parameters": SCHEMA})},
        {"type": "Function", "name": "a"},
        {"type": "object", "properties": {"q": {"type": "string"}}},
        {"type": "string"},
        {"type": ["web_search"]},
        {"name": "a"},
        "web_search",
    ],
)
def test_what_is_written_wrongly_is_not_dropped(tool: Any) -> None:
    with pytest.raises(SpecError):
        read_spec([tool, {"name": "b", "input_schema": SCHEMA}])


def test_errors_in_joined_specs_name_their_file(tmp_path: Path) -> None:
    from toolc.compiler.pipeline import compile_spec
    from toolc.compiler.specs.project import joined_spec

    paths = tmp_path / "a" / "tools.json", tmp_path / "b" / "tools.json"
    for path, name in zip(paths, ("one", "one"), strict=True):
        path.parent.mkdir()
        path.write_text(json.dumps([{"name": name, "input_schema": SCHEMA}]))
    with pytest.raises(SpecError) as caught:
        joined_spec(paths)
    assert "that of a/tools.json#" in str(caught.value) and (caught.value.place or "").startswith("b/tools.json#")
    wrong = {"type": "object", "properties": {"x": {"type": "strin"}}}
    paths[1].write_text(json.dumps([{"name": "two", "input_schema": wrong}]))
    with pytest.raises(SchemaError) as malformed:
        compile_spec(joined_spec(paths))
    assert malformed.value.place == "b/tools.json#/0/input_schema/properties/x/type"


def test_joined_specs_are_one_bundle_wherever_they_lie(tmp_path: Path) -> None:
    from toolc.compiler.pipeline import compile_spec
    from toolc.compiler.specs.project import joined_spec

    digests = set()
    for place in ("here", "there/below"):
        for name in ("one", "two"):
            path = tmp_path / place / name / "tools.json"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps([{"name": name, "input_schema": SCHEMA}]))
        spec = joined_spec(tuple(tmp_path / place / name / "tools.json" for name in ("one", "two")))
        digests.add(compile_spec(spec).bundle.digest)
    assert len(digests) == 1


PARAMETERS = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "find", "description": "d", "args_schema": PARAMETERS},
        {"name": "find", "parameters_json_schema": PARAMETERS, "description": "d", "outer_typed_dict_key": None,
         "strict": None, "sequential": False, "kind": "function", "metadata": None, "timeout": None},
        {"type": "function", "function": {"name": "find", "description": "d", "parameters": PARAMETERS}},
    ],
    ids=["LangChain", "Pydantic AI", "Ollama"],
)  # fmt: skip
@pytest.mark.parametrize("form", [lambda tool: [tool], lambda tool: {"tools": [tool]}, lambda tool: tool])
def test_tools_of_other_libraries(tool: dict[str, Any], form: Any) -> None:
    (read,) = read_spec(form(tool)).tools
    assert (read.name, read.description, read.schema) == ("find", "d", PARAMETERS)


def test_a_tool_as_pydantic_dumps_it() -> None:
    """Ollama's client writes what a tool has not as null; that is no schema, and read by --repair alone."""
    from toolc.compiler import Options, compile_tools

    inner = {"type": "string", "items": None, "description": None, "enum": None}
    parameters = {"type": "object", "defs": None, "items": None, "required": ["q"], "properties": {"q": inner}}
    tool = {"type": "function", "function": {"name": "find", "description": None, "parameters": parameters}}
    with pytest.raises(ToolcError, match="items"):
        compile_tools([tool], "builtin", options=Options(jobs=1))
    made = compile_tools([tool], "builtin", options=Options(jobs=1, repair=True))
    assert len(made.report["repaired"]) == 3 and made.report["tools"] == ["find"]
    assert {one["how"] for one in made.report["repaired"]} >= {"items is null, which says nothing"}


def test_openapi_3_2() -> None:
    """The method QUERY, further operations, the whole query as one parameter, media types that are referred to."""
    text = {"schema": {"type": "string"}}
    whole = {"name": "all", "in": "querystring", "content": {"application/x-www-form-urlencoded": {
        "schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}}}  # fmt: skip
    document: dict[str, Any] = {
        "openapi": "3.2.0",
        "paths": {
            "/a": {
                "query": {"requestBody": {"content": {"application/json": {"$ref": "#/components/mediaTypes/T"}}}},
                "get": {"operationId": "get", "parameters": [whole]},
                "additionalOperations": {"COPY": {"operationId": "copy", "parameters": [
                    {"name": "to", "in": "header", "required": True, **text}]}},
            }
        },
        "components": {"mediaTypes": {"T": text}},
    }  # fmt: skip
    query, get, copy = sorted(read_spec(document).tools, key=lambda tool: ["query_a", "get", "copy"].index(tool.name))
    assert query.read_only and query.idempotent and query.schema["properties"] == {"body": {"type": "string"}}  # type: ignore[index]
    assert list(get.schema["properties"]) == ["all"]  # type: ignore[index]
    assert copy.request is not None and copy.request[:2] == ("COPY", "/a") and copy.read_only is None
    assert copy.pointer == "/paths/~1a/additionalOperations/COPY"
    older = {**document, "openapi": "3.1.0"}
    del older["paths"]["/a"]["get"]
    with pytest.raises(SpecError, match="no tools"):
        read_spec(older)  # there neither of the others is an operation
    with pytest.raises(SpecError, match=r"3\.2\.x"):
        read_spec({**document, "openapi": "3.3.0"})
