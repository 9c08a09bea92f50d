"""The Responses API of the server, driven by the real openai client: the answers are those of chat completions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.speculate.small import TOOLS, service
from tests.speculate.test_server import ASK, CALL, Server, post
from toolc.runtime.speculate.agent import parse_call

FUNCTIONS: Any = [{"type": "function", "name": one["name"], "parameters": one["input_schema"]} for one in TOOLS]
ASKED: Any = {"tools": FUNCTIONS, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    running = Server(service(slots=4))
    yield running
    running.close()


_NEW = ("id", "call_id", "parsed_arguments")


def plain(items: Any) -> list[dict[str, Any]]:
    """Items without what is made anew for each response."""
    kept = [item.to_dict() if hasattr(item, "to_dict") else item for item in items]
    return [{name: value for name, value in item.items() if name not in _NEW} for item in kept]


def test_a_call(server: Server) -> None:
    async def main() -> None:
        client = server.client()
        done = await client.responses.create(model="toolc", input="hello", **ASKED)
        (item,) = done.output
        assert (done.status, item.type, item.status) == ("completed", "function_call", "completed")
        whole = await client.chat.completions.create(model="toolc", messages=ASK, **CALL)
        (call,) = whole.choices[0].message.tool_calls
        assert (item.name, item.arguments) == (call.function.name, call.function.arguments)
        assert done.usage.output_tokens == whole.usage.completion_tokens
        # What came is a history, and its call leads back to its tokens.
        output = {"type": "function_call_output", "call_id": item.call_id, "output": "sunny"}
        history = [{"role": "user", "content": "hello"}, item.to_dict(), output]
        after = await client.responses.create(model="toolc", input=history, tool_choice="none", max_output_tokens=5)
        assert after.status in ("completed", "incomplete")

    asyncio.run(main())


@pytest.mark.parametrize(
    "asked",
    [
        ASKED,
        {**ASKED, "tool_choice": {"type": "function", "name": "send"}},
        {"max_output_tokens": 6, "temperature": 80.0},
    ],
    ids=["required", "named", "text"],
)
def test_the_events_of_a_stream_make_the_response(server: Server, asked: dict[str, Any]) -> None:
    async def main() -> None:
        client = server.client()
        # `temperature` is high so that the small model writes text: another one each time, as responses take no seed.
        events = [
            event async for event in await client.responses.create(model="toolc", input="hello", stream=True, **asked)
        ]
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
        last = events[-1].response
        assert events[-1].type == f"response.{last.status}"
        done = [event.item for event in events if event.type == "response.output_item.done"]
        added = [event.item for event in events if event.type == "response.output_item.added"]
        assert plain(done) == plain(last.output) and [one.id for one in added] == [one.id for one in done]
        for number, item in enumerate(last.output):
            mine = [event for event in events if getattr(event, "output_index", None) == number]
            told = "".join(event.delta for event in mine if event.type.endswith(".delta"))
            assert told == (item.arguments if item.type == "function_call" else item.content[0].text)
        if asked["temperature"] == 0:
            assert last.status == "completed"
            again = await client.responses.create(model="toolc", input="hello", **asked)
            assert plain(again.output) == plain(last.output)
            async with client.responses.stream(model="toolc", input="hello", **asked) as stream:
                async for _ in stream:
                    pass
                assert plain((await stream.get_final_response()).output) == plain(last.output)

    asyncio.run(main())


def test_outputs_are_handed_in_under_the_response(server: Server) -> None:
    async def main() -> None:
        client = server.client()
        done = await client.responses.create(model="toolc", input="hello", **ASKED)
        call = parse_call(done.output[0].name, done.output[0].arguments)
        entry = {"name": call.name, "params": dict(call.arguments), "output": {"weather": "sunny"}}
        stream = aiter(await client.responses.create(model="toolc", input="hello", stream=True, **ASKED))
        first = await anext(stream)
        assert await post(client, first.response.id, [entry]) == {"cached": 1}
        items = [event async for event in stream][-1].response.output
        assert [item.type for item in items[:2]] == ["function_call", "function_call_output"]
        assert json.loads(items[1].output) == {"weather": "sunny"} and items[1].call_id == items[0].call_id

    asyncio.run(main())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"previous_response_id": "R"}, "not kept here"),
        ({"store": True}, "not kept here"),
        ({"tools": [{"type": "web_search"}]}, "no other tools"),
        ({"input": [{"type": "computer_call"}]}, "expected texts"),
        ({"input": 5}, "expected a list"),
        ({"input": []}, "expected texts"),
        ({"tool_choice": 5}, "a choice of tools"),
        ({"instructions": []}, "expected text"),
        ({"max_output_tokens": 1.5}, "whole number"),
        ({"top_p": 0.5}, "no option 'top_p'"),
        ({"tools": FUNCTIONS[:1]}, "those of the bundle"),
    ],
    ids=str,
)
def test_refused(server: Server, change: dict[str, Any], words: str) -> None:
    async def main() -> None:
        with pytest.raises(openai.BadRequestError, match=words):
            await server.client().responses.create(**{"model": "toolc", "input": "x", **ASKED, **change})

    asyncio.run(main())
