"""What is decided about requests: held, free, named, left to the engine, refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from toolc.compiler import Options, compile_spec
from toolc.compiler.specs.requests import request_spec
from toolc.runtime import Bundle
from toolc.runtime.errors import BundleError
from toolc.runtime.serving.gate import Answer, Gate
from toolc.runtime.serving.outcomes import Held, Late, Refused
from toolc.runtime.serving.reasoning import INSIDE, OUTSIDE
from toolc.runtime.serving.requests import Content
from toolc.runtime.serving.settings import Settings

PLACE = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": PLACE, **more}}


TOOLS = [tool("look"), tool("go")]
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": PLACE}}


class Outcomes:
    """Compiles at once, and fails as it is told."""

    def __init__(self, protocol: str | None) -> None:
        self.protocol = protocol
        self.bundles: dict[str, Bundle] = {}
        self.error: Exception | None = None

    async def obtain(self, content: Content) -> Held:
        if self.error is not None:
            raise self.error
        if content.digest not in self.bundles:
            spec = replace(request_spec(content.document, "request"), begins="")  # as compiler/serving.py does
            options = Options(protocol=self.protocol)
            self.bundles[content.digest] = compile_spec(spec, "builtin", options=options).bundle
        return Held("k", self.bundles[content.digest], "")


class Host:
    def __init__(self) -> None:
        self.reads_calls = True
        self.reads_reasoning = False
        self.where = OUTSIDE
        self.bundle: Bundle | None = None

    async def reasoning(self, body: Any, api: str) -> str:
        return self.where

    def named(self, arguments: Any) -> Bundle:
        if self.bundle is None:
            raise BundleError("no such bundle", found="'other'")
        return self.bundle


class World:
    def __init__(self, outcomes: Outcomes) -> None:
        self.host = Host()
        self.outcomes = outcomes
        self.told: list[str] = []

    def admit(self, body: Any, api: str = "chat", **said: Any) -> Any:
        gate = Gate(Settings(**said), self.host, self.outcomes, self.told.append)  # type: ignore[arg-type]
        return asyncio.run(gate.admit(body, api))

    def arguments(self, body: Any, api: str = "chat", **said: Any) -> Any:
        admitted = self.admit(body, api, **said)
        return None if admitted is None else admitted.body["vllm_xargs"]


@pytest.fixture(scope="module")
def compiled() -> Outcomes:
    return Outcomes("hermes")


@pytest.fixture
def world(compiled: Outcomes) -> World:
    compiled.error = None
    return World(compiled)


HELD: list[tuple[str, dict[str, Any], str, list[str] | None]] = [
    ("auto", {"tools": TOOLS}, "auto/outside", None),
    ("one", {"tools": TOOLS, "parallel_tool_calls": False}, "auto/one/outside", None),
    ("required", {"tools": TOOLS, "tool_choice": "required"}, "required", None),
    ("none", {"tools": TOOLS, "tool_choice": "none"}, "none/outside", None),
    ("named", {"tools": TOOLS, "tool_choice": tool("go") | {"function": {"name": "go"}}}, "tool:go", None),
    (
        "allowed",
        {
            "tools": TOOLS,
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "go"}}]},
            },
        },
        "required",
        ["go"],
    ),
    ("strict", {"tools": [tool("look", strict=True), tool("go")]}, "auto/outside", None),
    ("schema", {"response_format": FORMAT}, "response", None),
    ("object", {"response_format": {"type": "json_object"}}, "response", None),
    ("either", {"tools": TOOLS, "response_format": FORMAT}, "either", None),
]


@pytest.mark.parametrize(("body", "entry", "tools"), [row[1:] for row in HELD], ids=[row[0] for row in HELD])
def test_requests_choose_their_entry(world: World, body: Any, entry: str, tools: list[str] | None) -> None:
    said = {"toolc_bundle": "k", "toolc_entry": entry, "toolc_cut": 1}
    assert world.arguments(body) == {**said, **({} if tools is None else {"toolc_tools": tools})}
    assert world.told == ["held"]


@pytest.mark.parametrize(
    ("where", "entry"), [(OUTSIDE, "required/outside"), (INSIDE, "required/inside"), ("", "required")]
)
def test_reasoning_that_the_engine_reads(world: World, where: str, entry: str) -> None:
    world.host.reads_reasoning, world.host.where = True, where
    assert world.arguments({"tools": TOOLS, "tool_choice": "required"})["toolc_entry"] == entry


def test_reasoning_that_a_protocol_has_not() -> None:
    world = World(Outcomes(None))
    world.host.reads_reasoning = True
    body = {"tools": TOOLS, "tool_choice": "required"}
    assert world.arguments(body)["toolc_entry"] == "required"
    world.host.where = INSIDE
    with pytest.raises(Answer, match="the prompt opens reasoning"):
        world.admit(body, on_refusal="400")


@pytest.mark.parametrize(
    "body",
    [
        {"messages": []},
        {"response_format": {"type": "text"}},
        {"tools": [], "messages": []},
        {"tools": TOOLS, "structured_outputs": {"regex": "a"}},
        {"tools": TOOLS, "vllm_xargs": {"toolc_entry": "auto"}},
        [],
    ],
    ids=["nothing", "text", "no tools", "the engine's own", "no bundle is named", "no object"],
)
def test_free_requests_pass(world: World, body: Any) -> None:
    assert world.admit(body, on_refusal="400") is None


def test_only_those_that_name_a_bundle(world: World) -> None:
    gate = Gate(Settings(requests="named"), world.host, None)
    assert asyncio.run(gate.admit({"tools": TOOLS, "tool_choice": "required"}, "chat")) is None


def test_a_bundle_that_is_named(world: World, compiled: Outcomes) -> None:
    world.admit({"tools": TOOLS})
    world.host.bundle = compiled.bundles[next(iter(compiled.bundles))]
    named = {"vllm_xargs": {"toolc_bundle": "mine"}}
    body = {**named, "tools": [tool("look", strict=True)], "tool_choice": "required", "parallel_tool_calls": False}
    admitted = world.admit(body)
    assert admitted.body["tool_choice"] == "auto" and "parallel_tool_calls" not in admitted.body
    found = {"toolc_bundle": "mine", "toolc_entry": "required/one", "toolc_tools": ["look"]}
    if admitted.body["vllm_xargs"].get("toolc_tools") is None:
        del found["toolc_tools"]
    assert admitted.body["vllm_xargs"] == found
    stated = {"vllm_xargs": {"toolc_bundle": "mine", "toolc_entry": "none"}, "tools": TOOLS}
    assert world.arguments(stated) == stated["vllm_xargs"]
    assert world.arguments(named) == named["vllm_xargs"]
    world.host.bundle = None
    with pytest.raises(Answer, match="no such bundle"):
        world.admit({**named, "tools": TOOLS})


WHERE = "/properties/place/pattern"
REFUSED = Refused(
    {
        "error": "UnsupportedError",
        "message": "this cannot be compiled",
        "place": f"request#/tools/0/function/parameters{WHERE}",
        "found": "'x'",
    }
)


@pytest.mark.parametrize(
    ("tools", "api", "pointer"),
    [
        (TOOLS, "chat", f"/tools/0/function/parameters{WHERE}"),
        (
            [{"type": "function", "name": "a", "parameters": PLACE}],
            "responses",
            "/tools/0/parameters/properties/place/pattern",
        ),
        ([{"name": "a", "input_schema": PLACE}], "messages", "/tools/0/input_schema/properties/place/pattern"),
    ],
)
def test_refusals_name_the_fields_of_the_request(world: World, tools: Any, api: str, pointer: str) -> None:
    world.outcomes.error = REFUSED
    with pytest.raises(Answer) as caught:
        world.admit({"tools": tools}, api, on_refusal="400")
    assert (caught.value.status, caught.value.pointer) == (400, pointer)
    assert caught.value.message == f"{pointer}: this cannot be compiled; found 'x'"
    assert "toolc" not in caught.value.message
    assert world.admit({"tools": tools}, api) is None
    assert world.told == ["refused", "fallback"]


def test_requests_that_wait_too_long(world: World) -> None:
    world.outcomes.error = Late("the bundle is not compiled yet", hint="try again")
    with pytest.raises(Answer) as caught:
        world.admit({"tools": TOOLS}, on_refusal="400")
    assert caught.value.status == 503
    assert world.admit({"tools": TOOLS}) is None


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "/tool_choice"),
        ({"tools": TOOLS, "functions": [{}]}, "/functions"),
        ({"tools": TOOLS, "continue_final_message": True}, "/continue_final_message"),
    ],
)
def test_bodies_that_are_not_read(world: World, body: Any, pointer: str) -> None:
    with pytest.raises(Answer) as caught:
        world.admit(body, on_refusal="400")
    assert caught.value.pointer == pointer
    assert world.admit(body) is None


def test_tools_without_a_parser(world: World) -> None:
    world.host.reads_calls = False
    with pytest.raises(Answer, match="--tool-call-parser"):
        world.admit({"tools": TOOLS}, on_refusal="400")
    assert world.arguments({"response_format": FORMAT})["toolc_entry"] == "response"


def test_messages_that_change_the_tools(world: World) -> None:
    message = {"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "a"}}]}
    body = {"tools": [{"name": "a", "input_schema": PLACE}], "messages": [message]}
    with pytest.raises(Answer) as caught:
        world.admit(body, "messages", on_refusal="400")
    assert caught.value.pointer == "/messages/0/content/0"
