"""Bodies of requests: what is compiled from them, where their answers begin, and what is refused at which place."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import pytest

from toolc.compiler import Options, compile_tools
from toolc.runtime.errors import RequestError
from toolc.runtime.serving.requests import Content, Start, is_request, read_request

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "integer"}}}
ANSWER: dict[str, Any] = {"type": "object", "properties": {"y": {"type": "boolean"}}}
NAMES = ("a", "b", "c")


def chat(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "…", "parameters": SCHEMA, **more}}


def flat(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": "…", "parameters": SCHEMA, **more}


def messages(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "…", "input_schema": SCHEMA, **more}


CHAT, FLAT, MESSAGES = ([form(name) for name in NAMES] for form in (chat, flat, messages))
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER, "strict": True}}
FLAT_FORMAT = {"format": {"type": "json_schema", "name": "answer", "schema": ANSWER, "strict": True}}


class Case(NamedTuple):
    """A body; its entry without reasoning; the only tools."""

    id: str
    body: dict[str, Any]
    entry: str
    tools: tuple[str, ...] | None = None


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


CASES = [
    Case("chat", {"tools": CHAT}, "auto"),
    Case(
        "chat/null", {"tools": CHAT, "tool_choice": None, "parallel_tool_calls": None, "response_format": None}, "auto"
    ),
    Case("chat/auto", {"tools": CHAT, "tool_choice": "auto", "parallel_tool_calls": True}, "auto"),
    Case("chat/required", {"tools": CHAT, "tool_choice": "required"}, "required"),
    Case("chat/none", {"tools": CHAT, "tool_choice": "none", "parallel_tool_calls": False}, "none"),
    Case("chat/one", {"tools": CHAT, "parallel_tool_calls": False}, "auto/one"),
    Case("chat/required-one", {"tools": CHAT, "tool_choice": "required", "parallel_tool_calls": False}, "required/one"),
    Case("chat/named", {"tools": CHAT, "tool_choice": named("b")}, "tool:b"),
    Case(
        "chat/allowed",
        {
            "tools": CHAT,
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [named("c"), named("a"), named("c")]},
            },
        },
        "required",
        ("c", "a"),
    ),
    Case(
        "chat/all-allowed",
        {
            "tools": CHAT,
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [named(name) for name in NAMES]}},
        },
        "auto",
    ),
    Case("chat/text", {"tools": CHAT, "response_format": {"type": "text"}}, "auto"),
    Case("chat/answer", {"response_format": FORMAT}, "response"),
    Case("chat/any-object", {"response_format": {"type": "json_object"}, "tools": []}, "response"),
    Case("chat/either", {"tools": CHAT, "response_format": FORMAT}, "either"),
    Case("chat/either-one", {"tools": CHAT, "response_format": FORMAT, "parallel_tool_calls": False}, "either/one"),
    Case("chat/answer-only", {"tools": CHAT, "response_format": FORMAT, "tool_choice": "none"}, "response"),
    Case("chat/calls-only", {"tools": CHAT, "response_format": FORMAT, "tool_choice": "required"}, "required"),
    Case("chat/named-answer", {"tools": CHAT, "response_format": FORMAT, "tool_choice": named("a")}, "tool:a"),
    Case("flat", {"tools": FLAT}, "auto"),
    Case("flat/named", {"tools": FLAT, "tool_choice": {"type": "function", "name": "b"}}, "tool:b"),
    Case("flat/answer", {"text": FLAT_FORMAT}, "response"),
    Case("flat/either", {"tools": FLAT, "text": FLAT_FORMAT, "tool_choice": "auto"}, "either"),
    Case(
        "flat/allowed",
        {
            "tools": FLAT,
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "b"}]},
            "parallel_tool_calls": False,
        },
        "auto/one",
        ("b",),
    ),
    Case("messages", {"tools": MESSAGES}, "auto"),
    Case("messages/auto", {"tools": MESSAGES, "tool_choice": {"type": "auto"}}, "auto"),
    Case(
        "messages/any-one",
        {"tools": MESSAGES, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        "required/one",
    ),
    Case("messages/tool", {"tools": MESSAGES, "tool_choice": {"type": "tool", "name": "c"}}, "tool:c"),
    Case("messages/none", {"tools": MESSAGES, "tool_choice": {"type": "none"}}, "none"),
    Case(
        "messages/answer",
        {"output_config": {"format": {"type": "json_schema", "schema": ANSWER}, "effort": "low"}},
        "response",
    ),
    Case("messages/answer-beta", {"output_format": {"type": "json_schema", "schema": ANSWER}}, "response"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_where_an_answer_begins(case: Case) -> None:
    request = read_request(case.body)
    assert request.asks == case.entry and request.unread == ()
    assert request.content is not None
    answer = {"type": "object"} if case.id == "chat/any-object" else ANSWER
    assert request.content.response in (None, answer)
    bundle = compile_tools(
        CHAT, "builtin", options=Options(protocol="hermes", response=ANSWER if request.content.response else None)
    ).bundle
    if request.content.tools:
        assert request.start(bundle) == Start(f"{case.entry}/outside", case.tools)
        assert request.start(bundle, "") == Start(case.entry, case.tools)
        assert request.start(bundle, "inside") == Start(f"{case.entry}/inside", case.tools)
        assert request.start(bundle).entry in bundle.entry
        without = compile_tools(
            CHAT, "builtin", options=Options(protocol="hermes", named=False, response=request.content.response)
        ).bundle
        found = request.start(without, "")
        if request.choice == "tool":
            assert found == Start("required/one", request.allowed)
        else:
            assert found == request.start(bundle, "")


def test_contents_are_equal_whatever_the_form_and_the_choice() -> None:
    bodies = [
        {"tools": CHAT},
        {"tools": FLAT, "model": "m", "input": "Hi", "tool_choice": {"type": "function", "name": "a"}},
        {"tools": MESSAGES, "messages": [], "max_tokens": 1, "tool_choice": {"type": "any"}},
        {"tools": [chat(name, strict=name == "a") for name in NAMES], "parallel_tool_calls": False},
        {"tools": [messages(name, cache_control={"type": "ephemeral"}) for name in NAMES]},
    ]
    contents = [read_request(body).content for body in bodies]
    assert all(content is not None and content == contents[0] for content in contents)
    assert len({content.digest for content in contents if content}) == 1
    for body in ({"tools": CHAT[:2]}, {"tools": CHAT[::-1]}, {"tools": CHAT, "response_format": FORMAT}):
        other = read_request(body).content
        assert other is not None and contents[0] is not None
        assert other != contents[0] and other.digest != contents[0].digest


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_document_is_a_body_with_itself_for_content(case: Case) -> None:
    content = read_request(case.body).content
    assert content is not None
    again = read_request(content.document).content
    assert again == content and again.document == content.document and again.digest == content.digest


def test_the_places_of_a_document_are_those_of_the_body() -> None:
    def at(body: dict[str, Any], pointer: str) -> str:
        content = read_request(body).content
        assert content is not None
        return content.place(pointer)

    parameters, answer = "/tools/1/function/parameters/properties/x", "/response_format/json_schema/schema/type"
    assert at({"tools": CHAT}, parameters) == parameters
    assert at({"tools": FLAT}, parameters) == "/tools/1/parameters/properties/x"
    assert at({"tools": MESSAGES}, parameters) == "/tools/1/input_schema/properties/x"
    assert at({"tools": MESSAGES}, "/tools/1/function/name") == "/tools/1/name"
    assert at({"response_format": FORMAT}, answer) == answer
    assert at({"text": FLAT_FORMAT}, answer) == "/text/format/schema/type"
    assert at({"output_format": {"type": "json_object"}}, answer) == "/output_format/type"


REFUSED: list[tuple[str, Any, str, str]] = [
    ("no-object", [], "#", "expected the body of a request"),
    ("tools-object", {"tools": {}}, "#/tools", "expected a list of tools"),
    ("tool-text", {"tools": ["a"]}, "#/tools/0", "expected a tool"),
    ("functions", {"functions": [{"name": "a"}]}, "#/functions", "write tools"),
    ("function-call", {"tools": CHAT, "function_call": "none"}, "#/function_call", "write tool_choice"),
    ("guided", {"tools": CHAT, "guided_json": {}, "guided_regex": "a*"}, "#/guided_regex", "not read here"),
    ("structured", {"structured_outputs": {"choice": ["a"]}}, "#/structured_outputs", "not read here"),
    ("servers", {"tools": MESSAGES, "mcp_servers": [{"url": "…"}]}, "#/mcp_servers", "under tools"),
    ("inside", {"tools": CHAT, "continue_final_message": True}, "#/continue_final_message", "inside of a message"),
    ("no-prompt", {"tools": CHAT, "add_generation_prompt": False}, "#/add_generation_prompt", "inside of a message"),
    ("choice/any", {"tools": CHAT, "tool_choice": "any"}, "#/tool_choice", 'write "required"'),
    ("choice/number", {"tools": CHAT, "tool_choice": 1}, "#/tool_choice", "expected a word or an object"),
    ("choice/hosted", {"tools": CHAT, "tool_choice": {"type": "web_search"}}, "#/tool_choice/type", "API itself runs"),
    (
        "choice/custom",
        {"tools": CHAT, "tool_choice": {"type": "custom", "name": "a"}},
        "#/tool_choice/type",
        "another type",
    ),
    ("choice/unknown", {"tools": CHAT, "tool_choice": named("d")}, "#/tool_choice/function/name", "expected a, b, c"),
    ("choice/no-name", {"tools": CHAT, "tool_choice": {"type": "function"}}, "#/tool_choice/name", "found null"),
    (
        "choice/two-names",
        {"tools": CHAT, "tool_choice": {**named("a"), "name": "b"}},
        "#/tool_choice/name",
        "not read here",
    ),
    (
        "choice/more",
        {"tools": MESSAGES, "tool_choice": {"type": "any", "disable_parallel": True}},
        "#/tool_choice/disable_parallel",
        "not read here",
    ),
    ("choice/no-tools", {"tool_choice": "required"}, "#/tool_choice", "no tools to call"),
    ("choice/no-such", {"tool_choice": named("a")}, "#/tool_choice/function/name", "expected tools to choose from"),
    (
        "allowed/none",
        {"tools": FLAT, "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}},
        "#/tool_choice/tools",
        "no tool is allowed",
    ),
    (
        "allowed/mode",
        {"tools": FLAT, "tool_choice": {"type": "allowed_tools", "mode": "any", "tools": [named("a")]}},
        "#/tool_choice/mode",
        "expected auto, required",
    ),
    (
        "allowed/server",
        {"tools": FLAT, "tool_choice": {"type": "allowed_tools", "tools": [{"type": "mcp", "server_label": "x"}]}},
        "#/tool_choice/tools/0/type",
        "found 'mcp'",
    ),
    (
        "allowed/unknown",
        {"tools": CHAT, "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [named("a"), named("d")]}}},
        "#/tool_choice/allowed_tools/tools/1/function/name",
        "found 'd'",
    ),
    ("parallel", {"tools": CHAT, "parallel_tool_calls": 0}, "#/parallel_tool_calls", "expected true or false"),
    ("format/type", {"response_format": {"type": "grammar"}}, "#/response_format/type", "no such response format"),
    ("format/text", {"response_format": "json"}, "#/response_format", "expected a response format"),
    ("format/none", {"response_format": {"type": "json_schema"}}, "#/response_format", "no schema"),
    (
        "format/misspelt",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "shema": {}}}},
        "#/response_format/json_schema/shema",
        "not read here",
    ),
    (
        "format/stray",
        {"response_format": {"type": "json_object", "schema": ANSWER}},
        "#/response_format/schema",
        "not read here",
    ),
    (
        "format/list",
        {"text": {"format": {"type": "json_schema", "schema": []}}},
        "#/text/format/schema",
        "expected a JSON Schema",
    ),
    ("format/two", {"response_format": FORMAT, "text": FLAT_FORMAT}, "#/text/format", "two response formats"),
    ("text", {"text": "plain"}, "#/text", "expected an object"),
]


@pytest.mark.parametrize(("body", "place", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused_says_where(body: Any, place: str, words: str) -> None:
    with pytest.raises(RequestError) as refused:
        read_request(body, "r.json")
    assert refused.value.place == f"r.json{place}" and words in str(refused.value)


def test_what_nobody_knows_is_told() -> None:
    body = {"tools": CHAT, "temperature": 0, "tool_chioce": "none", "a/b": 1, "text": {"format": None, "formt": {}}}
    assert read_request(body).unread == ("/tool_chioce", "/a~1b", "/text/formt")


def test_a_request_that_constrains_nothing() -> None:
    for body in ({}, {"messages": []}, {"tools": [], "tool_choice": "none", "response_format": {"type": "text"}}):
        request = read_request(body)
        assert request.content is None
        with pytest.raises(RequestError, match="nothing constrains"):
            _ = request.asks


def test_what_no_json_can_say_is_refused() -> None:
    deep: Any = {}
    for _ in range(5000):
        deep = {"a": deep}
    for schema in (deep, {"enum": ["\ud83d"]}, {"enum": [object()]}):
        content = read_request({"response_format": {"type": "json_schema", "schema": schema}}).content
        assert content is not None
        with pytest.raises(RequestError, match="no JSON"):
            _ = content.digest


def test_a_protocol_without_such_an_answer() -> None:
    plain = compile_tools(CHAT, "builtin", options=Options(protocol="json")).bundle
    for choice in ("auto", "none"):
        with pytest.raises(RequestError, match="has no such answer"):
            read_request({"tools": CHAT, "tool_choice": choice}).start(plain)
    assert read_request({"tools": CHAT, "tool_choice": "required"}).start(plain) == Start("required")
    with pytest.raises(RequestError, match="no reasoning"):
        read_request({"tools": CHAT, "tool_choice": "required"}).start(plain, "inside")
    with pytest.raises(RequestError, match="another request"):
        read_request({"tools": CHAT[:1], "tool_choice": named("a")}).start(
            compile_tools(CHAT[1:], "builtin", options=Options(protocol="hermes")).bundle
        )


@pytest.mark.parametrize(
    ("value", "whether"),
    [
        ({"tools": CHAT, "tool_choice": "auto"}, True),
        ({"tools": CHAT, "messages": []}, True),
        ({"model": "m", "messages": []}, True),
        ({"model": "m", "input": "Hi", "text": FLAT_FORMAT}, True),
        ({"response_format": FORMAT}, True),
        ({"tools": CHAT}, False),
        (CHAT, False),
        (SCHEMA, False),
        ({"type": "object", "properties": {"messages": {}}, "required": ["messages"]}, False),
        ({"jsonrpc": "2.0", "result": {"tools": []}}, False),
    ],
)
def test_bodies_are_told_from_specs(value: Any, whether: bool) -> None:
    assert is_request(value) is whether


def test_nothing_but_numpy_and_msgpack_is_needed() -> None:
    code = (
        "import sys; from toolc.runtime import read_request; read_request({'tools': []});"
        "print(sorted({'lark', 'tokenizers', 'torch', 'numba', 'toolc.compiler'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_contents_are_equal_wherever_they_stood() -> None:
    flat_, chat_ = (read_request({"tools": tools}).content for tools in (FLAT, CHAT))
    assert isinstance(flat_, Content) and flat_ == chat_ and flat_.places != {}
