"""The Responses API: requests as chat completions, responses as messages, and calls guessed meanwhile."""

from __future__ import annotations

import asyncio
import json
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.responses import Response, ResponseCompletedEvent, ResponseCreatedEvent

from tests.speculate.test_answers import RIGHT, WRONG, Stream, World, answer
from toolc.runtime.speculate.agent import calls_of
from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.openai import _Warns
from toolc.runtime.speculate.responses import chat_request, message_of
from toolc.runtime.speculate.tools import Output

LOOK: Any = {"type": "function", "name": "look", "parameters": {"type": "object"}, "strict": False}
CHAT_LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "strict": False}}


def response(*arguments: Any, status: str = "completed", text: str = "") -> Response:
    items: list[dict[str, Any]] = [{"type": "reasoning", "id": "r", "summary": []}]
    if text:
        part = {"type": "output_text", "text": text, "annotations": []}
        items.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]})
    for n, one in enumerate(arguments):
        call = {"type": "function_call", "id": f"fc{n}", "call_id": f"c{n}", "name": "look"}
        items.append(call | {"arguments": json.dumps(one), "status": "completed"})
    about = {"id": "R", "created_at": 0, "model": "m", "object": "response", "parallel_tool_calls": True}
    return Response.model_validate(about | {"output": items, "status": status, "tool_choice": "auto", "tools": []})


def events(whole: Response) -> list[Any]:
    return [
        ResponseCreatedEvent.construct(type="response.created", response=response(status="in_progress")),
        SimpleNamespace(type="response.output_text.delta", delta="x"),
        ResponseCompletedEvent.construct(type="response.completed", response=whole),
    ]


HISTORY = [
    {"role": "developer", "content": [{"type": "input_text", "text": "be "}, {"type": "input_text", "text": "kind"}]},
    {"role": "user", "content": "hello"},
    {"type": "reasoning", "id": "r", "summary": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
    {"type": "function_call", "call_id": "1", "name": "look", "arguments": "{}"},
    {"type": "function_call", "call_id": "2", "name": "look", "arguments": '{"q": 1}'},
    {"type": "function_call_output", "call_id": "1", "output": "rain"},
    {"type": "function_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "sun"}]},
    {"type": "function_call", "call_id": "3", "name": "look", "arguments": "{}"},
]


def call(id: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def test_a_history_as_messages() -> None:
    asked = chat_request({"input": HISTORY, "instructions": "be brief", "tools": [LOOK]})
    assert asked is not None and asked["tools"] == [CHAT_LOOK]
    assert asked["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "I look", "tool_calls": [call("1"), call("2", '{"q": 1}')]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
        {"role": "tool", "tool_call_id": "2", "content": "sun"},
        {"role": "assistant", "content": None, "tool_calls": [call("3")]},
    ]


def test_items_of_a_response_are_a_history() -> None:
    asked = chat_request({"input": [{"role": "user", "content": "x"}, *response(RIGHT).output], "tools": [LOOK]})
    assert asked is not None and asked["messages"][1]["tool_calls"] == [call("c0", json.dumps(RIGHT))]


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({"max_output_tokens": 9, "temperature": 0.5}, {"max_completion_tokens": 9, "temperature": 0.5}),
        ({"parallel_tool_calls": False, "store": True}, {"parallel_tool_calls": False}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        (
            {"tool_choice": {"type": "function", "name": "look"}},
            {"tool_choice": {"type": "function", "function": {"name": "look"}}},
        ),
        (
            {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [LOOK, {"type": "web_search"}]}},
            {
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {
                        "mode": "required",
                        "tools": [{"type": "function", "function": {"name": "look"}}],
                    },
                }
            },
        ),
        ({"tools": [{"type": "web_search"}, LOOK]}, {}),
    ],
    ids=str,
)
def test_options(options: dict[str, Any], want: dict[str, Any]) -> None:
    asked = chat_request({"input": "x", "tools": [LOOK], **options})
    assert asked == {"messages": [{"role": "user", "content": "x"}], "tools": [CHAT_LOOK], **want}


@pytest.mark.parametrize(
    "options",
    [
        {"previous_response_id": "R"},
        {"conversation": "c"},
        {"prompt": {"id": "p"}},
        {"tool_choice": {"type": "web_search"}},
        {"tools": [{"type": "web_search"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        {"input": [{"type": "computer_call"}]},
        {"input": ""},
        {"input": None},
    ],
    ids=str,
)
def test_what_has_no_translation(options: dict[str, Any]) -> None:
    asked = chat_request({"input": "x", "tools": [LOOK], **options})
    assert asked is None or options == {"input": ""} or not asked["tools"]


def test_a_response_as_a_message() -> None:
    message = message_of(response(RIGHT, WRONG, text="I look"))
    assert message["content"] == "I look"
    assert [(one.id, one.name, dict(one.arguments)) for one in calls_of(message)] == [
        ("c0", "look", RIGHT),
        ("c1", "look", WRONG),
    ]
    assert message_of(response(RIGHT, status="incomplete")) == {"role": "assistant", "content": None}


def world(made: Any) -> World:
    out = World(lambda: made, after=5)

    async def create(**options: Any) -> Any:
        out.seen.append(("asked", options["input"]))
        await asyncio.sleep(5)
        return made

    out.client.main.responses = SimpleNamespace(create=create)
    return out


ONCE = [("asked", "x"), ("begins", "right"), ("begins", "wrong"), ("cancelled", "wrong")]


def test_calls_of_a_response_are_guessed() -> None:
    one = world(response(RIGHT))

    async def main() -> None:
        done = await one.client.responses.create(model="m", input="x", tools=[LOOK])
        assert await one.client.run(done) == [Output("right")]
        assert (one.executor.counts.hits, one.executor.counts.misses) == (1, 0)
        await one.client.aclose()

    run_virtual(main)
    assert sorted(one.seen) == sorted(ONCE)


def test_calls_of_a_streamed_response_are_guessed() -> None:
    whole = response(RIGHT)
    one = world(Stream(events(whole)))

    async def main() -> None:
        stream = await one.client.responses.create(model="m", input="x", tools=[LOOK], stream=True)
        kinds = [event.type async for event in stream]
        assert kinds == ["response.created", "response.output_text.delta", "response.completed"]
        assert await one.client.run(whole) == [Output("right")]
        assert (one.executor.counts.hits, one.executor.counts.misses) == (1, 0)
        await one.client.aclose()

    run_virtual(main)
    assert sorted(one.seen) == sorted(ONCE)


def test_a_request_without_its_history_warns_and_is_asked_all_the_same() -> None:
    _Warns._told.clear()
    one = world(response())

    async def main() -> None:
        with pytest.warns(UserWarning, match=r"client\.responses\.create"):
            await one.client.responses.create(model="m", input="x", tools=[LOOK], previous_response_id="R")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await one.client.responses.create(model="m", input="x")
        assert one.executor.counts.samples == 0
        await one.client.aclose()

    run_virtual(main)


def test_answers_and_responses_are_told_apart() -> None:
    one = world(response())

    async def main() -> None:
        assert await one.client.run(answer()) == await one.client.run(response()) == []
        await one.client.aclose()

    run_virtual(main)
