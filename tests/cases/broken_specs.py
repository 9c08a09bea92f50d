"""Specs that must be refused: one row each, run by tests/specs/test_broken.py.

Columns: id; the document, as a value or as text or bytes; error class; end of its place; words of its text.
"""

from __future__ import annotations

import json
from typing import Any

TOOL: dict[str, Any] = {"type": "function", "function": {"name": "a"}}
OK = {"responses": {}}
P: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}


def tool(**function: Any) -> list[Any]:
    return [{"type": "function", "function": {"name": "a", **function}}]


def bfcl(**array: Any) -> list[Any]:
    return [{"name": "a", "parameters": {"type": "dict", "properties": {"a": {"type": "array", **array}}}}]


def api(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": paths, **more}


def get(*parameters: Any, path: str = "/a", **more: Any) -> dict[str, Any]:
    return api({path: {"get": {"parameters": list(parameters), **OK, **more}}})


def query(name: str = "q", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {}, **more}


ROWS: list[tuple[str, Any, str, str, str]] = [
    # text that is not JSON
    ("json/empty", "", "SpecError", "spec.json:1:1", "the document is empty"),
    ("json/comma-object", '{"type": "object",}', "SpecError", "spec.json:1:18", "remove the trailing comma"),
    ("json/comma-array", '[\n  {"type": 1},\n]', "SpecError", "spec.json:2:14", "remove the trailing comma"),
    ("json/single-quotes", "{'type': 'object'}", "SpecError", "spec.json:1:2", 'write " and not \''),
    ("json/bare-key", '{type: "object"}', "SpecError", "spec.json:1:2", 'between "'),
    ("json/comment", '{"a": 1, // no\n "b": 2}', "SpecError", "spec.json:1:10", "no comments"),
    ("json/python", '{"default": None}', "SpecError", "spec.json:1:13", "write null"),
    ("json/missing-comma", '{"a": 1 "b": 2}', "SpecError", "spec.json:1:9", "a comma is missing"),
    ("json/missing-colon", '{"a" 1}', "SpecError", "spec.json:1:6", "colon"),
    ("json/cut", '{"a": [1, {"b"', "SpecError", "spec.json:1:15", "still open: { [ {"),
    ("json/open-string", '{"a": "b}', "SpecError", "spec.json:1:7", "close the string"),
    ("json/newline-in-string", '{"a": "b\nc"}', "SpecError", "spec.json:1:9", "\\n for a new line"),
    ("json/escape", '{"a": "\\d"}', "SpecError", "spec.json:1:8", "backslash"),
    ("json/two-documents", '{"type": "object"}\n{"type": "object"}', "SpecError", "spec.json:2:1", "into one array"),
    ("json/twice", '{"type": "object",\n "type": "array"}', "SpecError", "spec.json:2:2", '"type" stands twice'),
    ("json/twice-escaped", '{"a": 1, "\\u0061": 2}', "SpecError", "spec.json:1:10", '"a" stands twice'),
    ("json/nan", '{"minimum": NaN}', "SpecError", "spec.json:1:13", "no such number"),
    ("json/infinity", '{"minimum": -Infinity}', "SpecError", "spec.json:1:13", "no such number"),
    ("json/huge-float", '{"minimum": 1e4000}', "SpecError", "spec.json:1:13", "too long; found 1e4000"),
    ("json/huge-exponent", '{"minimum": -1e99999999999999999999}', "SpecError", "spec.json:1:13", "at most 4,000"),
    ("json/small-exponent", '{"enum": [1e-999999999]}', "SpecError", "spec.json:1:11", "too long; found 1e-9"),
    ("yaml/small-exponent", "enum: [1e-999999999]\n", "SpecError", "spec.json:1:8", "too long: 1e-9"),
    ("json/huge-int", '{"minimum": ' + "9" * 5000 + "}", "SpecError", "spec.json:1:13", "too long"),
    ("json/half-number", '{"minimum": .5}', "SpecError", "spec.json:1:13", "0.5, not .5"),
    ("json/latin-1", '{"a":\n "é"}'.encode("latin-1"), "SpecError", "spec.json:2:3", "byte 0xe9"),
    ("json/utf-16", '{"a": 1}'.encode("utf-16"), "SpecError", "spec.json:1:1", "not UTF-16"),
    ("json/deep-arrays", "[" * 10_000 + "]" * 10_000, "SpecError", "spec.json:1:501", "more than 500 deep"),
    ("json/deep-objects", '{"a":' * 10_000 + "1" + "}" * 10_000, "SpecError", "spec.json:1:2501", "more than 500 deep"),
    ("json/deep-unclosed", "[" * 10_000, "SpecError", "spec.json:1:501", "more than 500 deep"),
    ("yaml/deep", "a: " + "[" * 125 + "]" * 125, "SpecError", "spec.json:1:128", "more than 125 deep"),
    ("yaml/deeper-flow", "a: " + "[" * 10_000 + "]" * 10_000, "SpecError", "", "more than 125 deep"),
    ("yaml/deep-block", "".join(" " * n + "a:\n" for n in range(200)), "SpecError", "spec.json:126:126", "125 deep"),
    ("json/50MB", b'{"x": "' + b"a" * (50 << 20) + b'"}', "SpecError", "spec.json", "52,428,809 bytes"),
    ("yaml/twice", "type: object\ntype: array\n", "SpecError", "spec.json:2:1", "stands twice"),
    ("yaml/syntax", "type: [object\n", "SpecError", "spec.json:2:1", "not YAML"),
    # not a spec
    ("kind/string", '["a"]', "SpecError", "#/0", "expected a tool"),
    ("kind/unknown", {"foo": []}, "SpecError", "spec.json#", 'keys "foo"'),
    ("kind/id-alone", {"id": "x", "foo": 1}, "SpecError", "spec.json#", 'keys "id", "foo"'),
    ("kind/mcp-error", {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}, "SpecError",
     "spec.json#", 'the error "no such method"'),
    ("kind/mcp-no-tools", {"jsonrpc": "2.0", "id": 1, "result": {}}, "SpecError", "spec.json#", "lists no tools"),
    ("kind/bare-function", {"name": "a", "description": "b"}, "SpecError", "spec.json#", "no schema of its arguments"),
    ("kind/swagger-1", {"swagger": "1.2", "paths": {}}, "SpecError", "#/swagger", '"1.2"'),
    ("kind/swagger-none", {"swagger": "2.0", "paths": {}}, "SpecError", "spec.json#", "no tools"),
    ("kind/mcp-annotations", [{"name": "a", "inputSchema": {}, "annotations": {"readOnlyHint": 1}}], "SpecError",
     "#/0/annotations/readOnlyHint", "true or false"),
    ("kind/bfcl-type", {"name": "a", "parameters": {"type": "dict", "items": {"type": "flot"}}}, "SpecError",
     "#/parameters/items/type", '"flot"'),
    ("kind/anthropic-server-tool", [{"type": "web_search_20250305", "name": "web_search"}], "SpecError", "#/0/type",
     "no tool that toolc knows"),
    ("kind/openapi-4", {"openapi": "4.0.0", "paths": {}}, "SpecError", "#/openapi", '"4.0.0"'),
    ("kind/openapi-number", {"openapi": 3.0, "paths": {}}, "SpecError", "#/openapi", "expected"),
    # tools
    ("tools/none", [], "SpecError", "spec.json#", "no tools"),
    ("tools/request-none", {"tools": []}, "SpecError", "spec.json#", "no tools"),
    ("tools/request-object", {"tools": {}}, "SpecError", "#/tools", "expected a list of tools"),
    ("tools/no-type", [{"name": "a"}], "SpecError", "#/0", "no type"),
    ("tools/other-type", [{"type": "retrieval"}], "SpecError", "#/0/type", '"retrieval"'),
    ("tools/function-text", [{"type": "function", "function": "a"}], "SpecError", "#/0/function", "expected an object"),
    ("tools/no-name", [{"type": "function", "function": {}}], "SpecError", "#/0/function", "no name"),
    ("tools/name-number", tool(name=3), "SpecError", "#/0/function/name", "3 (a number)"),
    ("tools/name-empty", tool(name=""), "SpecError", "#/0/function/name", "give the tool a name"),
    ("tools/name-blank", tool(name="get weather"), "SpecError", "#/0/function/name", 'write "get_weather"'),
    ("tools/name-newline", tool(name="a\n"), "SpecError", "#/0/function/name", "1 to 128"),
    ("tools/name-long", tool(name="a" * 129), "SpecError", "#/0/function/name", "129 characters"),
    ("tools/two", [TOOL, {"type": "function", "function": {"name": "b"}}, TOOL], "SpecError",
     "#/2/function/name", "differs from that of spec.json#/0/function/name"),
    ("tools/input-schema-of-a-function", [{"type": "function", "name": "a", "input_schema": P}], "SpecError",
     "#/0/input_schema", "rename it to parameters"),
    ("tools/inputSchema-of-a-function", [{"type": "function", "name": "a", "inputSchema": P}], "SpecError",
     "#/0/inputSchema", "rename it to parameters"),
    ("tools/input-schema-in-a-function", tool(input_schema=P), "SpecError", "#/0/function/input_schema",
     'expected "parameters"'),
    ("tools/parameters-beside-a-function", [{**TOOL, "parameters": P}], "SpecError", "#/0/parameters",
     'expected "function/parameters"'),
    ("tools/args-of-a-function", tool(args_schema=P), "SpecError", "#/0/function/args_schema",
     "rename it to parameters"),
    ("tools/two-schemas", [{"name": "a", "input_schema": P, "parameters": P}], "SpecError", "#/0/parameters",
     "two keys hold schemas"),
    ("tools/no-properties", [{"name": "a", "parameters": {"a": {"type": "string"}}}], "SpecError", "#/0/parameters",
     '{"type": "object", "properties": {"a": …}}'),
    ("tools/no-properties-of-an-object", tool(parameters={"type": "object", "a": {"type": "string"}}), "SpecError",
     "/parameters", "no properties around them"),
    ("tools/no-properties-title", tool(parameters={"title": {"type": "string"}}), "SpecError", "/parameters",
     "no properties around them"),
    ("tools/schema-below-json", [{"name": "a", "inputSchema": {"json": P}}], "SpecError", "#/0/inputSchema",
     "not below json"),
    ("tools/parameters-text", tool(parameters='{"type": "object"}'), "SpecError", "/parameters", "the object itself"),
    ("tools/parameters-OBJECT", tool(parameters={"type": "OBJECT"}), "SpecError", "/parameters/type", 'write "object"'),
    ("tools/x-toolc-mark-beside-function", [{"type": "function", "x-toolc": {"readonly": True}, "function": {
     "name": "a", "parameters": P}}], "SpecError", "#/0/x-toolc", 'found "readonly", expected read_only'),
    ("tools/x-toolc-mark", [{"name": "a", "input_schema": P, "x-toolc": {"readonly": True}}], "SpecError",
     "#/0/x-toolc", 'found "readonly", expected read_only'),
    ("tools/description-alone", [{"name": "a", "description": "b"}], "SpecError", "#/0", "no schema of its arguments"),
    ("tools/custom-without-schema", [{"type": "custom", "name": "a"}], "SpecError", "#/0", "expected input_schema"),
    ("tools/function-without-type", [{"function": {"name": "a"}}], "SpecError", "#/0", 'add "type": "function"'),
    ("tools/declarations", [{"functionDeclarations": [{"name": "a"}, {"name": "b", "parameters": []}]}], "SpecError",
     "#/0/functionDeclarations/1/parameters", "the JSON Schema of an object"),
    ("tools/declaration-of-no-name", [{"functionDeclarations": [{"parameters": P}]}], "SpecError",
     "#/0/functionDeclarations/0", "no type"),
    ("tools/tool-spec-without-schema", [{"toolSpec": {"name": "a"}}], "SpecError", "#/0/toolSpec", "no schema"),
    ("kind/functions", {"functions": [{"name": "a", "parameters": P}]}, "SpecError", "spec.json#", '{"tools": […]}'),
    ("kind/declarations", {"functionDeclarations": []}, "SpecError", "spec.json#", "at least one"),
    ("kind/tool-config", {"toolConfig": {"tools": []}}, "SpecError", "spec.json#", "at least one"),
    ("kind/response-format", {"type": "json_schema", "json_schema": {"name": "x"}}, "RequestError",
     "spec.json#/json_schema", "has no schema"),
    ("kind/text-format", {"type": "text"}, "SpecError", "spec.json#/type", "nothing constrains"),
    ("kind/request", {"model": "m", "messages": []}, "SpecError", "spec.json#", "nothing constrains"),
    ("kind/request-choice", {"tools": [], "tool_choice": "required"}, "RequestError", "#/tool_choice", "no tools"),
    ("kind/request-tool", {"model": "m", "input": "", "tools": [{"type": "function", "name": "a", "parameters":
     {"type": "int"}}]}, "SpecError", "spec.json#/tools/0/parameters/type", "an object"),
    ("kind/request-messages", {"messages": [], "model": "m", "tools": [{"name": "a", "input_schema": {"type": "int"}}]},
     "SpecError", "spec.json#/tools/0/input_schema/type", "an object"),
    ("kind/request-name", {"tools": [{"type": "function", "name": "a b"}], "tool_choice": "auto"}, "SpecError",
     "spec.json#/tools/0/name", 'write "a_b"'),
    ("kind/request-format", {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 1}}}},
     "SchemaError", "spec.json#/response_format/json_schema/schema/type", ""),
    ("kind/json-schema", {"name": "x", "schema": P, "strict": True}, "SpecError", "spec.json#",
     "what its key schema holds"),
    ("kind/openapi-yaml", "openapi: 3.0\npaths: {}\n", "SpecError", "#/openapi", 'between quotes: "3.0.0"'),
    ("bfcl/enum-null", bfcl(enum=None), "SpecError", "/properties/a/enum", "a list of values"),
    ("bfcl/enum-number", bfcl(enum=3), "SpecError", "/properties/a/enum", "3 (a number)"),
    ("bfcl/items-null", bfcl(enum=["x"], items=None), "SpecError", "/properties/a/items", "found null"),
    ("bfcl/items-list", bfcl(enum=["x"], items=[{}]), "SpecError", "/properties/a/items", "one schema"),
    ("swagger/two-bodies", {"swagger": "2.0", "paths": {"/a": {"post": {"parameters": [
        {"name": name, "in": "body", "schema": P} for name in "ab"]}}}}, "SpecError", "/post/parameters/1",
     "no other than that of spec.json#/paths/~1a/post/parameters/0"),
    # text that cannot be written as UTF-8
    ("surrogate/description", tool(description="\ud83d x"), "SpecError", "#/0/function/description", "lone surrogate"),
    ("surrogate/property", tool(parameters={"properties": {"\ud83d": {}}}), "SpecError", "/parameters/properties",
     "the key '\\ud83d'"),
    ("surrogate/keyword", {"type": "string", "x": ["\ud83d"]}, "SpecError", "#/x/0", "lone surrogate"),
    ("surrogate/twice", '{"\\ud800": 1, "\\ud800": 2}', "SpecError", "spec.json:1:15", "stands twice"),
    # YAML
    ("yaml/long-int", "maximum: " + "1" * 5000 + "\n", "SpecError", "spec.json:1:10", "5,000 digits"),
    ("yaml/int-tag", "a: !!int abc\n", "SpecError", "spec.json:1:4", '"abc" is no int'),
    ("yaml/float-tag", "a: !!float x\n", "SpecError", "spec.json:1:4", '"x" is no float'),
    ("yaml/bool-tag", "a: !!bool maybe\n", "SpecError", "spec.json:1:4", '"maybe" is no bool'),
    ("yaml/map-tag", "a: !!map x\n", "SpecError", "spec.json:1:4", "tagged as a mapping"),
    ("yaml/time-tag", "a: !!timestamp x\n", "SpecError", "spec.json:1:4", "!!timestamp"),
    ("yaml/inf", "minimum: -.INF\n", "SpecError", "#/minimum", "no such number"),
    ("yaml/nan", "enum: [.nan]\n", "SpecError", "#/enum/0", "no such number"),
    ("yaml/merged-into-itself", "a: &a {<<: *a}\n", "SpecError", "spec.json:1:4", "merged into itself"),
    ("yaml/twice-beside-a-merge", "a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}\n", "SpecError", "spec.json:2:19",
     '"y" stands'),
    ("yaml/merge-of-text", "a: {<<: b}\n", "SpecError", "spec.json:1:9", "merges mappings"),
    ("yaml/laughs", "x: &x0 [1, 1]\n" + "".join(f"y{i}: &x{i + 1} [*x{i}, *x{i}]\n" for i in range(40)), "SpecError",
     "spec.json", "found 8,796,093,022,"),
    ("yaml/square", f"x: &a [{'1,' * 40_000}]\ny: [{'*a,' * 40_000}]\n", "SpecError", "spec.json",
     "found 1,600,080,003 values, 80,002 of them written"),
    ("tools/description", tool(description=["a"]), "SpecError", "/description", "expected text"),
    ("tools/strict", tool(strict="yes"), "SpecError", "/strict", "true or false"),
    ("tools/parameters-list", tool(parameters=[]), "SpecError", "/parameters", "JSON Schema of an object"),
    ("tools/parameters-true", tool(parameters=True), "SpecError", "/parameters", "true (a boolean)"),
    ("tools/parameters-array", tool(parameters={"type": "array"}), "SpecError", "/parameters/type", '"array"'),
    # OpenAPI
    ("api/none", api({}), "SpecError", "spec.json#", "no tools"),
    ("api/paths-list", api([]), "SpecError", "#/paths", "an object of paths"),  # type: ignore[arg-type]
    ("api/item-list", api({"/a": []}), "SpecError", "#/paths/~1a", "a path item"),
    ("api/operation-text", api({"/a": {"get": "x"}}), "SpecError", "#/paths/~1a/get", "an operation"),
    ("api/two-ids", api({"/a": {"get": {"operationId": "x"}, "put": {"operationId": "x"}}}), "SpecError",
     "#/paths/~1a/put", "differs from that of spec.json#/paths/~1a/get"),
    ("api/id-number", get(operationId=7), "SpecError", "/get/operationId", "7 (a number)"),
    ("api/id-signs", get(operationId="//"), "SpecError", "/get/operationId", "expected a name"),
    ("api/id-long", get(operationId="a" * 129), "SpecError", "/get", "129 characters"),
    ("api/parameters-object", api({"/a": {"get": {"parameters": {}}}}), "SpecError", "/get/parameters", "an array"),
    ("api/no-name", get({"in": "query", "schema": {}}), "SpecError", "/parameters/0", "no name"),
    ("api/no-in", get({"name": "q", "schema": {}}), "SpecError", "/parameters/0", "no in"),
    ("api/in-body", get(query(**{"in": "body"})), "SpecError", "/parameters/0/in", "Swagger 2.0"),
    ("api/no-schema", get({"name": "q", "in": "query"}), "SpecError", "/parameters/0", "no schema"),
    ("api/schema-text", get(query(schema="string")), "SpecError", "/parameters/0/schema", "a JSON Schema"),
    ("api/required-text", get(query(required="yes")), "SpecError", "/parameters/0/required", "true or false"),
    ("api/twice", get(query(), query()), "SpecError", "/parameters/1", "two query parameters"),
    ("api/path-hole", get(path="/a/{b}"), "SpecError", "/get", "no path parameter"),
    ("api/prefix-clash", get(query("path_a"), query("a"), query("a", **{"in": "path"}), path="/{a}"), "SpecError",
     "/parameters/2/schema", "two arguments"),
    ("api/ref-dangling", get({"$ref": "#/components/parameters/x"}), "SpecError", "/parameters/0/$ref", "nowhere"),
    ("api/ref-remote", get({"$ref": "x.json#/a"}), "SpecError", "/parameters/0/$ref", "another document"),
    ("api/ref-circle", api({"/a": {"$ref": "#/paths/~1a"}}), "SpecError", "#/paths/~1a/$ref", "back to itself"),
    ("api/body-empty", get(requestBody={"content": {}}), "SpecError", "/requestBody/content", "no media type"),
    ("api/body-none", get(requestBody={}), "SpecError", "/requestBody", "no content"),
]  # fmt: skip


def as_bytes(document: Any) -> bytes:
    """What a file of this row holds."""
    if isinstance(document, bytes):
        return document
    return (document if isinstance(document, str) else json.dumps(document)).encode()
