"""Calls of operations as request lines, and the protocols of the papers."""

from __future__ import annotations

import functools
import json
import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

import pytest

from tests.cases.codecs import fits
from tests.cases.protocols import FAMILIES, is_valid, mutations
from tests.cases.requests import CALLS, DOCUMENT, EXAMPLE, PATHS, Requests, parameter
from toolc.compiler import Options, compile_tools, read_spec
from toolc.compiler.commands.check import check
from toolc.compiler.errors import SchemaError, SpecError, UnsupportedError
from toolc.runtime import DecodeError, Reader, read_calls, subset, write_calls
from toolc.runtime.format.bundle import Bundle

from .test_masks import equal_walks
from .vocabularies import vocab_for

GOOD = [
    EXAMPLE,
    "GET /movie/7/credits",
    "GET /movie/7/credits?page=1",
    "GET /search?query=Sofia%20Coppola",
    "GET /search?adult=true&query=caf%C3%A9%F0%9F%98%80&sort=by%2Fdate&limit=5",
    "GET /search?query=&limit=many",
    "DELETE /list/a%2Fb",
    "DELETE /list/%C3%A9%C3%A9%C3%A9%C3%A9",
    'POST /list/x {"ids": [1, 2]}',
    "GET /movie/7/credits to get the crew of the movie (id 7)",
    "GET /search?query=a to ",
    'POST /list/x {"ids": [1]} to GET /x',
]
BAD = [
    "GET /movie//credits",
    "GET /movie/x/credits",
    "GET /movie/7/credits?page=0",
    "GET /movie/7/credits?",
    "GET /movie/7/credits?page=1&language=en",
    "GET /movie/7/credits?X-Trace=1",
    "GET /search",
    "GET /search?query=Sofia Coppola",
    "GET /search?query=a&sort=by%20date",
    "GET /search?query=a&adult=true",
    "GET /search?query=a&b",
    "GET /search?query=%C3",
    "GET /search?query=%ED%A0%80",
    "DELETE /list/",
    "DELETE /list/abcde",
    "DELETE /list/%C3%A9%C3%A9%C3%A9%C3%A9a",
    "POST /list/x",
    'POST /list/x {"ids": [0]}',
    "PUT /list/x",
    "GET /movie/7/credits to get the crew\nAPI response: 1",
    "GET /movie/7/credits for the crew",
    "GET /movie/7/credits to",
    'POST /list/x to add {"ids": [1]}',
]


@functools.cache
def bundle() -> Bundle:
    return compile_tools(DOCUMENT, options=Options(protocol="restgpt")).bundle


def accepts(held: Bundle, text: str, entry: str = "required") -> bool:
    return bool(check(held, text.encode(), entry)["accepted"])


@pytest.mark.parametrize("text", GOOD)
def test_requests(text: str) -> None:
    for entry in ("required", "required/one", "auto", "start"):
        assert accepts(bundle(), text, entry), check(bundle(), text.encode(), entry)
    assert not accepts(bundle(), text, "none")


@pytest.mark.parametrize("text", BAD)
def test_no_requests(text: str) -> None:
    assert not accepts(bundle(), text)


def test_written_and_read_a_second_time() -> None:
    spec = read_spec(DOCUMENT)
    requests, schemas = Requests(spec), {tool.name: tool.schema for tool in spec.tools}
    for call in CALLS:
        text = requests.write([call])
        assert accepts(bundle(), text), text
        assert requests.read(text, schemas) == [call]
        assert [(one.name, one.arguments) for one in read_calls(bundle(), text, "required")] == [call]
        written = write_calls(Reader(bundle(), "required"), [call])
        assert written is not None and written.text == text.encode()
    for text in ("PUT /list/x", "GET /movie//credits", "GET /search?query=%C3", "POST /list/x {"):
        assert requests.read(text, schemas) is None


@pytest.mark.parametrize("names", [("get_search",), ("delete_list_name", "post_list_name")])
def test_a_choice_of_operations(names: tuple[str, ...]) -> None:
    """DELETE and POST of one route, GET of two: told apart by method or route."""
    paths = {route: {method: operation for method, operation in methods.items()
                     if f"{method}_{route.strip('/').replace('/', '_').replace('{', '').replace('}', '')}" in names}
             for route, methods in PATHS.items()}  # fmt: skip
    alone = compile_tools({**DOCUMENT, "paths": paths}, options=Options(protocol="restgpt")).bundle
    some = subset(bundle(), names)
    assert set(some.entry) == set(alone.entry)
    for entry in alone.entry:
        equal_walks(some, entry, alone, entry, entry, walks=3)


def test_text_beside_requests() -> None:
    assert accepts(bundle(), "I have what I need.", "auto") and accepts(bundle(), "GETTING there", "none")
    assert "request-parts" in bundle().meta["restrictions"]


def test_arguments_that_may_be_any_object() -> None:
    with pytest.raises(UnsupportedError, match="the path needs 'id'") as refused:
        compile_tools(DOCUMENT, options=Options(protocol="restgpt", strict=False))
    assert refused.value.place is not None and refused.value.place.startswith("spec#/paths/")


def test_refused() -> None:
    with pytest.raises(UnsupportedError, match="no operation of an API"):
        compile_tools([{"name": "f", "input_schema": {"type": "object"}}], options=Options(protocol="restgpt"))
    needed = {"/x": {"get": {"parameters": [parameter("k", "header", {"type": "string"}, True)]}}}
    with pytest.raises(UnsupportedError, match="'k' is required"):
        compile_tools({**DOCUMENT, "paths": needed}, options=Options(protocol="restgpt"))


def test_tmdb(shared: Path) -> None:
    """Every operation of RestBench's TMDB, its parameters drawn from its own document, against the document."""
    path = shared / "data" / "openapi" / "tmdb_oas.json"
    held = compile_tools(path, options=Options(protocol="restgpt", named=False)).bundle
    spec = read_spec(path)
    document = json.loads(path.read_text())
    rng = random.Random(1)
    seen = 0
    for tool in spec.tools:
        assert tool.request is not None
        method, route, parts = tool.request
        assert isinstance(tool.schema, dict)
        values: dict[str, Any] = {}
        needed = tool.schema["required"]
        for argument, (part, _) in parts.items():
            schema = tool.schema["properties"][argument]
            some = ("en-US", "a b/ö", "2024-02-29", 7, 2.5, True, *schema.get("enum", []))
            valid = [value for value in some if fits(value, schema)]
            if part in ("path", "query") and valid and (argument in needed or rng.random() < 0.7):
                values[argument] = rng.choice(valid)
        line = f"{method} {route}"
        spelled = {a: quote(v if isinstance(v, str) else json.dumps(v), safe="") for a, v in values.items()}
        for argument, (part, name) in parts.items():
            if part == "path":
                line = line.replace("{" + name + "}", spelled[argument])
        query = [f"{parts[a][1]}={text}" for a, text in spelled.items() if parts[a][0] == "query"]
        line += "?" + "&".join(query) if query else ""
        assert accepts(held, line) is ("body" not in needed), line
        assert not accepts(held, line.replace("/", "//", 1)) and not accepts(held, line + "&nosuch=1"), line
        assert unquote(route) in {unquote(known) for known in document["paths"]}
        assert len(parse_qsl(line.partition("?")[2], keep_blank_values=True)) == len(query)
        seen += 1
    assert seen == len(spec.tools) > 50


FUNCQA = {
    "add": (2, 3), "subtract": (2, 2), "multiply": (2, 3), "divide": (2, 2), "power": (2, 2), "sqrt": (1, 1),
    "log": (1, 1), "ln": (1, 1), "lcm": (2, 3), "gcd": (2, 3), "remainder": (2, 2), "choose": (2, 2),
    "permutate": (2, 2),
}  # fmt: skip
"""The functions of FuncQA and how few and many numbers each takes (Hao et al. 2023); some calls have even more."""


def test_funcqa() -> None:
    """Every argument a number, a right count, the closing ``)=``."""
    tools = []
    for name, (least, most) in FUNCQA.items():
        numbers = {key: {"type": "number"} for key in "abc"[:most]}
        schema = {"type": "object", "properties": numbers, "required": [*"abc"[:least]], "additionalProperties": False}
        tools.append({"name": name, "input_schema": schema})
    held = compile_tools(tools, vocab_for("toolkengpt"), options=Options(protocol="toolkengpt")).bundle
    family = FAMILIES["toolkengpt"]
    schemas = {tool["name"]: tool["input_schema"] for tool in tools}
    rng = random.Random(0)
    for name, count in [(name, count) for name, counts in FUNCQA.items() for count in sorted({*counts})]:
        call = (name, {key: rng.choice([3, -2.5, 1e-7, 120000]) for key in "abc"[:count]})
        text = family.write([call])
        assert accepts(held, text) and accepts(held, text[3:], "opened")
        assert accepts(held, f"The sum is {text}5, so {text}5.", "auto") and not accepts(held, text, "opened")
        least, most = FUNCQA[name]
        wrong = [", ".join(["1"] * n) for n in range(5) if not least <= n <= most]
        wrong += ['"1"', "true", "x", "1,,2", "01"]
        for inside in wrong:
            assert not accepts(held, f"<T>{name}({inside})=")
        assert not accepts(held, text[:-1]) and not accepts(held, text[:-2])
        for mutated in mutations(family, call, rng):
            if not is_valid(family.read(mutated, schemas), schemas):
                assert not accepts(held, mutated, "required/one"), mutated


def test_react_finishes() -> None:
    tools = [{"name": "f", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}]
    held = compile_tools(tools, vocab_for("react"), options=Options(protocol="react")).bundle
    answer = 'Action: Finish\nAction Input: {"return_type": "give_answer", "final_answer": "\\ud83d\\ude00"}'
    again = 'Action: Finish\nAction Input: {"return_type": "give_up_and_restart"}'
    for text in (answer, again, "Action: f\nAction Input: {}"):
        assert accepts(held, text, "auto")
        assert accepts(held, "Thought: I know.\n" + text, "start") and accepts(held, " I know.\n" + text, "auto/inside")
        assert accepts(held, text, "required") is text.startswith("Action: f")
        assert not accepts(held, text + "\nObservation: 1", "auto")
    assert not accepts(held, answer.replace('"final_answer"', '"answer"'), "auto")
    assert not accepts(held, again.replace('"}', '", "final_answer": "x"}'), "auto")


def test_a_path_that_another_goes_on_from() -> None:
    """Its call was read as none. A path without parameters comes before one with some."""
    operations = {"/a": "x", "/a/b": "y", "/{id}": "z"}
    paths: dict[str, Any] = {path: {"get": {"operationId": name}} for path, name in operations.items()}
    paths["/{id}"]["get"]["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    held = compile_tools(document, options=Options(protocol="restgpt")).bundle
    for text, call in (("GET /a", ("x", {})), ("GET /a/b", ("y", {})), ("GET /ab", ("z", {"id": "ab"}))):
        assert [(one.name, one.arguments) for one in read_calls(held, text, "required")] == [call]
        reader = Reader(held, "auto")
        events = [*reader.feed_text(text), *reader.feed(held.vocab.end_of_turn[0])]
        assert [event.kind for event in events if event.kind != "arguments"] == ["call", "name", "end"]
        written = write_calls(Reader(held, "required"), [call])
        assert written is not None and written.text.decode() == text
    assert write_calls(Reader(held, "required"), [("z", {"id": "a"})]) is None
    with pytest.raises(DecodeError, match="cannot be chosen from"):
        subset(held, ["x"])


def test_a_path_that_another_goes_on_from_beside_a_body_of_anything() -> None:
    """What may be anything is a part that was compiled apart, and the bundle is linked."""
    body = {"requestBody": {"content": {"application/json": {"schema": {}}}}}
    paths = {"/b": {"post": {"operationId": "x", **body}}, "/b/a": {"post": {"operationId": "y"}}}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    compiled = compile_tools(document, options=Options(protocol="restgpt"))
    assert compiled.report["parts"]["all"] > 0
    for text, call in (("POST /b", ("x", {})), ("POST /b [1]", ("x", {"body": [1]})), ("POST /b/a", ("y", {}))):
        assert [(one.name, one.arguments) for one in read_calls(compiled.bundle, text, "required")] == [call]


FINISH = {
    "name": "Finish",
    "parameters": {
        "type": "object",
        "properties": {
            "return_type": {"type": "string", "enum": ["give_answer", "give_up_and_restart"]},
            "final_answer": {"type": "string", "maxLength": 5},
        },
        "required": ["return_type"],
    },
}
"""As in the lists of ToolBench, but for maxLength."""


def test_a_list_with_the_action_of_the_protocol() -> None:
    """ToolBench's lists hold Finish: it is called as any other tool, and takes what the protocol says, too."""
    other = {"name": "f", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    held = compile_tools([other, FINISH], vocab_for("react"), options=Options(protocol="react", named=False)).bundle
    call, head = "Action: f\nAction Input: {}", "Action: Finish\nAction Input: "
    answer = head + '{"return_type": "give_answer", "final_answer": "12"}'
    again = head + '{"return_type": "give_up_and_restart"}'
    for text in (answer, again, call):
        for entry in ("auto", "required", "auto/one"):
            assert accepts(held, text, entry)
        assert accepts(held, "Thought: I know.\n" + text, "start")
        for entry in ("none", "tool:Finish"):
            assert accepts(held, text, entry) is (text != call)
    long = answer.replace("12", "123456")
    bare = head + '{"return_type": "give_answer"}'
    for text in (long, bare, again.replace('"}', '", "final_answer": "x"}'), answer.replace('"}', '", "x": 1}')):
        assert not accepts(held, text, "auto") and not accepts(held, text, "none")
    for entry in ("auto", "none"):
        assert [one.name for one in read_calls(held, answer, entry)] == ["Finish"]
    assert accepts(subset(held, ["Finish"]), answer, "none") and not accepts(subset(held, ["Finish"]), call, "auto")
    alone = subset(held, ["f"])
    assert accepts(alone, call, "auto") and not accepts(alone, answer, "auto") and "none" not in alone.entry


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"return_type": {"type": "integer"}}, "required": ["return_type"]},
        {"properties": {"answer": {"type": "string"}}, "required": ["answer"]},
        {"properties": {}, "additionalProperties": False},
    ],
)
def test_a_tool_that_only_has_the_name_of_the_action(schema: Any) -> None:
    tools = [{"name": "Finish", "parameters": {"type": "object", **schema}}]
    with pytest.raises(SpecError, match='an action of its own that is called "Finish"') as caught:
        compile_tools(tools, vocab_for("react"), options=Options(protocol="react"))
    assert "#/0" in str(caught.value.place)
    compile_tools(tools, vocab_for("json"), options=Options(protocol="json"))


def test_the_action_of_a_protocol_with_a_malformed_schema() -> None:
    tools = [{"name": "Finish", "parameters": {"type": "object", "allOf": 5}}]
    with pytest.raises(SchemaError) as caught:
        compile_tools(tools, vocab_for("react"), options=Options(protocol="react"))
    assert str(caught.value.place).endswith("#/0/parameters/allOf")


def test_the_action_of_a_protocol_beside_a_response() -> None:
    """The response is that action already."""
    with pytest.raises(SpecError, match='"Finish"') as caught:
        compile_tools([FINISH], vocab_for("react"), options=Options(protocol="react", response={"type": "object"}))
    assert "#/0" in str(caught.value.place) and "leave the tool out" in str(caught.value.hint)


def one_path(path: str, **schemas: Any) -> Bundle:
    operation = {"operationId": "o", "parameters": [parameter(name, "path", schemas[name]) for name in schemas]}
    return compile_tools({**DOCUMENT, "paths": {path: {"get": operation}}}, options=Options(protocol="restgpt")).bundle


STRING, INTEGER = {"type": "string"}, {"type": "integer"}
ENUM = {"enum": [".", "..", "a"]}
SEGMENTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("/r/{lo}-{hi}", {"lo": INTEGER, "hi": STRING}, {
        "/r/1-2-3": {"lo": 1, "hi": "2-3"}, "/r/-1--2": {"lo": -1, "hi": "-2"}, "/r/a-2": None}),
    ("/r/{lo}-{hi}", {"lo": STRING, "hi": INTEGER}, {
        "/r/1%2D2-3": {"lo": "1-2", "hi": 3}, "/r/%C3%A9-2": {"lo": "é", "hi": 2}, "/r/1-2-3": None}),
    ("/r/{lo}-{hi}", {"lo": {"type": ["integer", "string"], "maximum": 3}, "hi": STRING}, {
        "/r/-1-2": {"lo": -1, "hi": "2"}, "/r/%2Da-2": {"lo": "-a", "hi": "2"}, "/r/%2D1-2": None, "/r/9-2": None}),
    ("/f/{name}.{ext}", {"name": STRING, "ext": STRING}, {
        "/f/a.b.c": {"name": "a", "ext": "b.c"}, "/f/a%2Eb.c": {"name": "a.b", "ext": "c"}}),
    ("/t/{z}/{y}.png", {"z": INTEGER, "y": {"type": "number"}}, {"/t/1/2.5.png": {"z": 1, "y": 2.5}}),
    ("/a/{x}", {"x": STRING}, {
        "/a/...": {"x": "..."}, "/a/.b": {"x": ".b"}, "/a/.": None, "/a/..": None, "/a/%2e.": None}),
    ("/a/{x}", {"x": {"type": "string", "pattern": "^[.a]+$"}}, {"/a/a": {"x": "a"}, "/a/.": None, "/a/..": None}),
    ("/a/{b/c}", {"b/c": STRING}, {"/a/d": {"b/c": "d"}, "/a/..": None}),
    ("/a/{x}", {"x": ENUM}, {"/a/a": {"x": "a"}, "/a/.": None, "/a/..": None}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "schemas", "texts"), SEGMENTS, ids=range(len(SEGMENTS)))
def test_segments(path: str, schemas: dict[str, Any], texts: dict[str, Any]) -> None:
    """Two parameters of one segment were split otherwise than the masks allow them."""
    held = one_path(path, **schemas)
    for text, arguments in texts.items():
        line = f"GET {text}"
        assert accepts(held, line) is (arguments is not None), text
        if arguments is not None:
            assert [call.arguments for call in read_calls(held, line, "required")] == [arguments]
            written = write_calls(Reader(held, "required"), [("o", arguments)])
            assert written is not None and written.text.decode() == line


@pytest.mark.parametrize(
    ("path", "schemas", "words"),
    [
        ("/a/{x}{y}", {"x": STRING, "y": STRING}, "where 'x' ends"),
        ("/a/{x}db{y}", {"x": STRING, "y": STRING}, "where 'x' ends"),
        ("/a/{x}.{y}", {"x": {"type": "number"}, "y": STRING}, "where 'x' ends"),
        ("/a/{x}-{y}", {"x": {"enum": [1e-7]}, "y": STRING}, "where 'x' ends"),
        ("/a/{x}t{y}", {"x": {"type": "boolean"}, "y": STRING}, "where 'x' ends"),
        ("/a/{x}/{x}", {"x": STRING}, "{x} twice"),
        ("/a?b={x}", {"x": STRING}, "'?', which ends a path"),
        ("/a#{x}", {"x": STRING}, "'#', which ends a path"),
        ("/a b", {}, "' ', which ends a path"),
        ("/a", {"x": STRING}, "'x' is required, and a request line cannot say it"),
    ],
)
def test_paths_that_say_too_little(path: str, schemas: dict[str, Any], words: str) -> None:
    with pytest.raises(UnsupportedError, match=re.escape(words)) as refused:
        one_path(path, **schemas)
    assert refused.value.place == f"spec#/paths/{path.replace('/', '~1')}/get"


def test_strings_that_would_be_read_as_another_value() -> None:
    """A blank, a plus or a bracket is percent-encoded, and what they spell was not kept apart."""
    numbers = {"anyOf": [{"type": "number", "maximum": 10}, {"type": "string"}]}
    arrays = {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "string"}]}
    paths = {"/a": {"get": {"operationId": "o", "parameters": [
        parameter("n", "query", numbers), parameter("s", "query", arrays)]}}}  # fmt: skip
    held = compile_tools({**DOCUMENT, "paths": paths}, options=Options(protocol="restgpt")).bundle
    for text, arguments in (("n=7", {"n": 7}), ("n=%20a", {"n": " a"}), ("s=a%5B", {"s": "a["}), ("s=1", {"s": "1"})):
        assert [call.arguments for call in read_calls(held, f"GET /a?{text}", "required")] == [arguments]
    for text in ("n=1e%2B5", "n=%2050", "n=50", "s=%5B%22a%22%5D", "s=%20%5B"):
        assert not accepts(held, f"GET /a?{text}"), text
