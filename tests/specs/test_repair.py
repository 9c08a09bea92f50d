"""What a spec cannot mean is refused, and the refusal names --repair; with it, it is read as it must be meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_tools, read_spec
from toolc.compiler.cli import cli
from toolc.compiler.errors import ToolcError
from toolc.compiler.specs.project import joined_spec
from toolc.runtime import Matcher

EVENTS = {"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]}


def _tool(schema: Any) -> list[Any]:
    return [{"name": "t", "input_schema": {"type": "object", "properties": {"e": schema}, "required": ["e"]}}]


def _api(operations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "paths": operations, **more}


def _body(schema: Any, **more: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}, **more}


OBJECT = {"type": "object", "properties": {"e": EVENTS}, "required": ["e"]}
QUERY = {"name": "q", "in": "query", "schema": {"type": "string"}}
REF = {"$ref": "#/components/schemas/E"}
LISTED = {"schemas": {"L": {"type": "array", "items": REF, "enum": ["a"]}, "E": {"type": "string"}}}
#: id, document, (place, how it begins), calls that are right, calls that are wrong
ROWS: list[tuple[str, Any, list[tuple[str, str]], list[Any], list[Any]]] = [
    ("enum", _tool(EVENTS), [("/0/input_schema/properties/e/enum", "the enum of an array")],
     [("t", {"e": ["a", "b"]}), ("t", {"e": []})], [("t", {"e": ["c"]}), ("t", {"e": "a"})]),
    ("enum of a function", [{"type": "function", "function": {"name": "t", "parameters": {
        "type": "object", "properties": {"e": EVENTS, "required": {"enum": ["true"]}}, "required": ["e"]}}}],
     [("/0/function/parameters/properties/e/enum", "the enum of an array")],
     [("t", {"e": ["a"], "required": "true"})], [("t", {"e": ["c"]})]),
    ("enum of a parameter by name", _api({"/a": {"get": {"operationId": "t", "parameters": [
        {"$ref": "#/components/parameters/type"}]}}}, components={"parameters": {"type": {
            "name": "e", "in": "query", "schema": EVENTS, "required": True}}}),
     [("/components/parameters/type/schema/enum", "the enum of an array")],
     [("t", {"e": ["a"]})], [("t", {"e": ["c"]})]),
    ("const", _tool({"type": "array", "const": "a"}), [("/0/input_schema/properties/e/const", "the const of an array")],
     [("t", {"e": ["a", "a"]})], [("t", {"e": ["b"]})]),
    ("enum/body", _api({"/a": {"post": {"operationId": "t", "requestBody": _body(OBJECT, required=True)}}}),
     [("/paths/~1a/post/requestBody/content/application~1json/schema/properties/e/enum", "the enum of an array")],
     [("t", {"body": {"e": ["b"]}})], [("t", {"body": {"e": ["c"]}})]),
    ("enum/ref", _api({"/a": {"post": {"operationId": "t", "requestBody": _body(
        {"$ref": "#/components/schemas/L"}, required=True)}}}, components=LISTED),
     [("/components/schemas/L/enum", "the enum of an array")], [("t", {"body": ["a"]})], [("t", {"body": ["b"]})]),
    ("swagger", {"swagger": "2.0", "paths": {"/a": {"post": {"operationId": "t", "parameters": [
        {"name": "x", "in": "body", "required": "true", "schema": OBJECT}]}}}},
     [("/paths/~1a/post/parameters/0/schema/properties/e/enum", "the enum of an array"),
      ("/paths/~1a/post/parameters/0/required", "text is true")],
     [("t", {"body": {"e": ["b"]}})], [("t", {}), ("t", {"body": {"e": ["c"]}})]),
    ("required text", _api({"/a": {"get": {"operationId": "t", "parameters": [{**QUERY, "required": "True"}]}}}),
     [("/paths/~1a/get/parameters/0/required", "text is true")], [("t", {"q": ""})], [("t", {})]),
    ("required text of a body", _api({"/a": {"put": {"operationId": "t", "requestBody": _body(
        {"enum": [1]}, required="false")}}}), [("/paths/~1a/put/requestBody/required", "text is false")],
     [("t", {}), ("t", {"body": 1})], [("t", {"body": 2})]),
    ("const of 3.0", _api({"/a": {"get": {"operationId": "t", "parameters": [{**QUERY, "schema": {"const": 3}}]}}}),
     [("/paths/~1a/get/parameters/0/schema/const", "const holds")], [("t", {"q": 3})], [("t", {"q": 4})]),
    ("anchors", _tool({"type": "string", "pattern": r"\Aa+\\\Z"}),
     [("/0/input_schema/properties/e/pattern", r"\A, \Z and \z around a pattern")],
     [("t", {"e": "aa\\"})], [("t", {"e": "Aa\\"}), ("t", {"e": "a\\Z"}), ("t", {"e": "a\\a"})]),
    ("the last anchor", _tool({"type": "string", "pattern": r"^a|b\z"}),
     [("/0/input_schema/properties/e/pattern", r"\A, \Z and \z around a pattern")],
     [("t", {"e": "ac"}), ("t", {"e": "cb"})], [("t", {"e": "ca"}), ("t", {"e": "bc"})]),
    ("required of a property", [{"name": "t", "input_schema": {"type": "object", "properties": {
        "a": {"type": "null", "required": True}, "b": {"type": "null", "required": "false"}}}}],
     [("/0/input_schema/properties/a/required", "required of a property"),
      ("/0/input_schema/properties/b/required", "required of a property")],
     [("t", {"a": None}), ("t", {"a": None, "b": None})], [("t", {"b": None}), ("t", {})]),
    ("path parameter", _api({"/a/{id}/{n}": {"get": {"operationId": "t", "parameters": [
        {**QUERY, "in": "path", "name": "n", "required": True}]}}}),
     [("/paths/~1a~1{id}~1{n}/get", "the path holds {id}")],
     [("t", {"n": "x", "id": "y"})], [("t", {"n": "x"}), ("t", {"n": "x", "id": 3})]),
    ("path parameter of 2.0", {"swagger": "2.0", "paths": {"/a/{id}": {"get": {"operationId": "t"}}}},
     [("/paths/~1a~1{id}/get", "the path holds {id}")], [("t", {"id": "y"})], [("t", {})]),
    ("equal names", _api({f"/{n}": {"get": {"operationId": "t"}} for n in range(3)}),
     [("/paths/~11/get", 'the second tool "t" is called "t_2"'), ("/paths/~12/get", "the second tool")],
     [("t", {}), ("t_2", {}), ("t_3", {})], [("t_4", {})]),
    ("equal names in a list", [{"name": "t", "input_schema": {"properties": {key: {}}, "required": [key],
                                                              "additionalProperties": False}} for key in "ab"],
     [("/1/input_schema", 'the second tool "t" is called "t_2"')],
     [("t", {"a": 1}), ("t_2", {"b": 1})], [("t", {"b": 1}), ("t_2", {"a": 1})]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "document", "repairs", "right", "wrong"), ROWS, ids=[row[0] for row in ROWS])
def test_repairs(name: str, document: Any, repairs: list[tuple[str, str]], right: list[Any], wrong: list[Any]) -> None:
    if name != "const of 3.0":  # which says nothing there, and is warned of
        with pytest.raises(ToolcError, match="--repair") as caught:
            compile_tools(document, "builtin", options=Options(jobs=1))
        assert str(caught.value.place).startswith("spec#")
    before = json.dumps(document)
    made = compile_tools(document, "builtin", options=Options(jobs=1, repair=True))
    assert json.dumps(document) == before
    told = made.report["repaired"]
    assert [one["place"] for one in told] == [f"spec#{place}" for place, _ in repairs]
    assert all(one["how"].startswith(how) for one, (_, how) in zip(told, repairs, strict=True))
    for calls, expected in ((right, True), (wrong, False)):
        for tool, arguments in calls:
            matcher, text = Matcher(made.bundle), json.dumps({"name": tool, "arguments": arguments}).encode()
            assert (matcher.advance_bytes(text) == len(text) and matcher.is_complete) == expected, (tool, arguments)


def test_what_is_right_stays_as_it_is() -> None:
    """Names and data that look like keywords, and lists of arrays."""
    schema = {
        "type": "object",
        "properties": {
            "enum": {"type": "array", "enum": [["a"], ["b"]]},
            "required": {"type": "string", "default": {"required": "true", "in": "x"}},
            "items": {"type": ["array", "string"], "enum": ["a", ["b"]]},
            "properties": {"const": {"type": "array", "enum": ["a"], "required": "true", "in": "query"}},
        },
        "required": ["enum"],
    }
    plain, mended = read_spec(_tool(schema)), read_spec(_tool(schema), repair=True)
    assert mended.repairs == () and mended == plain


def test_the_command_lists_repairs(tmp_path: Path) -> None:
    spec = tmp_path / "tools.json"
    spec.write_text(json.dumps(_tool(EVENTS)))
    words = ["compile", str(spec), "--tokenizer", "builtin", "-o", str(tmp_path / "x.toolc")]
    done = CliRunner().invoke(cli, [*words, "--repair"])
    assert done.exit_code == 0
    assert "repaired: tools.json#/0/input_schema/properties/e/enum: the enum of an array" in done.stderr
    told = json.loads(CliRunner().invoke(cli, [*words, "--repair", "--json"]).stdout)
    assert len(told["repaired"]) == 1
    digests = {read_spec(spec, repair=repair).digest for repair in (False, True)}
    assert len(digests) == 2
    (tmp_path / "toolc.yaml").write_text("spec: tools.json\ntokenizer: builtin\noptions: {repair: true}\n")
    project = CliRunner().invoke(cli, ["compile", str(tmp_path / "toolc.yaml"), "-o", words[-1]])
    assert project.exit_code == 0 and "repaired" in project.stderr


LATER = [
    # draft, schema, what is of a later one, a value that only --repair refuses
    ("04", {"properties": {"a": {"oneOf": [{"const": "any"}, {"const": "wide"}]}}},
     ["/properties/a/oneOf/0/const", "/properties/a/oneOf/1/const"], None),
    ("04", {"properties": {"a": {"const": "x"}}}, ["/properties/a/const"], {"a": "y"}),
    ("04", {"properties": {"a": {"contains": {"type": "null"}, "type": "array"}}}, ["/properties/a/contains"],
     {"a": []}),
    ("06", {"properties": {"a": {"if": {"type": "string"}, "then": {"enum": ["x"]}}}},
     ["/properties/a/if", "/properties/a/then"], {"a": "y"}),
    ("07", {"properties": {"a": {}}, "dependentRequired": {"a": ["b"]}}, ["/dependentRequired"], {"a": 1}),
    ("07", {"properties": {"a": {"type": "string", "format": "duration"}}}, ["/properties/a/format"], {"a": "y"}),
    ("07", {"properties": {"a": {"type": "array", "prefixItems": [{"type": "null"}]}}}, ["/properties/a/prefixItems"],
     {"a": [1]}),
]  # fmt: skip


@pytest.mark.parametrize(("draft", "schema", "places", "value"), LATER)
def test_keywords_of_later_drafts(draft: str, schema: Any, places: list[str], value: Any) -> None:
    """They are annotations, and warned of; repaired, they hold."""
    from toolc.compiler import compile_schema

    schema = {"$schema": f"http://json-schema.org/draft-{draft}/schema#", "type": "object", **schema}
    for repair in (False, True):
        options = Options(jobs=1, repair=repair)
        if value is None and not repair:  # both branches hold, so that none holds alone: no text has the member
            made = compile_schema(schema, "builtin", options=options)
            assert [one["pointer"] for one in made.report["unwritable"]] == ["schema#/properties/a"]
            assert [f"{one['pointer']}/{one['keyword']}" for one in made.report["later"]] == [
                f"schema#{at}" for at in places
            ]
            continue
        made = compile_schema(schema, "builtin", options=options)
        later = [f"{one['pointer']}/{one['keyword']}" for one in made.report["later"]]
        mended = [one["place"] for one in made.report["repaired"]]
        assert (mended if repair else later) == [f"schema#{at}" for at in places] and not (later if repair else mended)
        if value is not None:
            matcher, text = Matcher(made.bundle), json.dumps(value).encode()
            assert (matcher.advance_bytes(text) == len(text) and matcher.is_complete) != repair


def test_keywords_beside_a_reference_are_none() -> None:
    """In drafts up to 7 nothing holds beside a reference, in whatever draft it is a keyword."""
    from toolc.compiler import compile_schema

    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "definitions": {"a": {"type": "string"}},
              "type": "object", "properties": {"a": {"$ref": "#/definitions/a", "const": 3}}}  # fmt: skip
    assert compile_schema(schema, "builtin", options=Options(jobs=1)).report["later"] == []


def test_equal_names_in_every_kind_of_list(tmp_path: Path) -> None:
    """In a request, of Python functions, and over several files; without --repair the error names it."""

    def first(a: int) -> None: ...
    def second(b: int) -> None: ...

    second.__name__ = "first"
    function = {"type": "function", "function": {"name": "first", "parameters": {"type": "object"}}}
    request = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": [function, function]}
    for source in (request, [first, second]):
        with pytest.raises(ToolcError, match="--repair"):
            read_spec(source)
        spec = read_spec(source, repair=True)
        assert [tool.name for tool in spec.tools] == ["first", "first_2"]
        assert [one.how for one in spec.repairs] == ['the second tool "first" is called "first_2"']
        assert spec.digest != read_spec([first]).digest
    assert dict(read_spec([first, second], repair=True).declared) == {"first": first, "first_2": second}
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps([function]))
    paths = tmp_path / "a.json", tmp_path / "b.json"
    with pytest.raises(ToolcError, match="--repair"):
        joined_spec(paths)
    joined = joined_spec(paths, repair=True)
    assert [tool.name for tool in joined.tools] == ["first", "first_2"]
    assert [one.place for one in joined.repairs] == ["b.json#/0/function/parameters"]
