"""The wrapper around the openai client: streams that are left early, and answers of every shape that endpoints send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.deltas import Gathered
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.openai import OpenAIModel, SpeculativeOpenAI
from toolc.runtime.speculate.tools import Output, Toolset, tool

RIGHT, WRONG = {"q": "right"}, {"q": "wrong"}
TOOLS: Any = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def calls(*arguments: Any) -> list[dict[str, Any]]:
    written = [{"name": "look", "arguments": json.dumps(one)} for one in arguments]
    return [{"id": f"c{n}", "type": "function", "function": one} for n, one in enumerate(written)]


def answer(*arguments: Any) -> ChatCompletion:
    message = {"role": "assistant", "content": None, "tool_calls": calls(*arguments)}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return ChatCompletion.construct(id="A", choices=[choice])


def chunk(delta: Any, finish: str | None = None) -> ChatCompletionChunk:
    return ChatCompletionChunk.construct(id="A", choices=[{"index": 0, "delta": delta, "finish_reason": finish}])


def part(index: int | None, arguments: Any = "{}", id: str | None = "c0", name: str | None = "look") -> Any:
    return {"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}


class Stream:
    """What the openai client gives for `stream=True`."""

    def __init__(self, chunks: Iterable[Any]) -> None:
        self.chunks = chunks

    async def __aiter__(self) -> AsyncIterator[Any]:
        for one in self.chunks:
            await asyncio.sleep(1)
            if isinstance(one, Exception):
                raise one
            yield one

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        pass


def endpoint(make: Callable[[], Any], after: float = 0.0) -> Any:
    async def create(**_: Any) -> Any:
        await asyncio.sleep(after)
        return make()

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


class World:
    """A client whose guesses are right and wrong, and a tool that takes ten seconds."""

    def __init__(self, main: Callable[[], Any], after: float = 0.0) -> None:
        self.seen: list[tuple[str, str]] = []

        @tool(read_only=True)
        async def look(q: str = "") -> str:
            self.seen.append(("begins", q))
            try:
                await asyncio.sleep(10)
            except asyncio.CancelledError:
                self.seen.append(("cancelled", q))
                raise
            return q

        self.executor = Executor(Toolset([look]))
        guess = endpoint(lambda: answer(RIGHT, WRONG))
        self.client: Any = SpeculativeOpenAI(endpoint(main, after), guess, self.executor, "small")

    async def ask(self, **more: Any) -> Any:
        return await self.client.chat.completions.create(model="m", messages=[], tools=TOOLS, **more)


USAGE = ChatCompletionChunk.construct(id="A", choices=[])
WHOLE = [chunk({"role": "assistant"}), chunk(part(0, json.dumps(RIGHT))), chunk({}, "tool_calls"), USAGE]


async def closed(stream: Any) -> None:
    async with stream:
        async for one in stream:
            if one.choices and one.choices[0].finish_reason:
                break


async def left(stream: Any) -> None:
    async for one in stream:
        if one.choices and one.choices[0].finish_reason:
            break


async def read(stream: Any) -> None:
    assert [one async for one in stream] == WHOLE


@pytest.mark.parametrize("leave", [closed, left, read])
def test_a_stream_that_is_left_at_its_finish_reason_has_ended(leave: Callable[[Any], Any]) -> None:
    world = World(lambda: Stream(WHOLE))

    async def main() -> None:
        stream = await world.ask(stream=True)
        await leave(stream)
        assert await world.client.run(answer(RIGHT)) == [Output("right")]
        assert (world.executor.counts.hits, world.executor.counts.misses) == (1, 0)
        assert world.seen == [("begins", "right"), ("begins", "wrong"), ("cancelled", "wrong")]
        await stream.close()
        assert not world.executor._turns and not world.client._open and not world.client._streams
        await world.client.aclose()

    run_virtual(main)


def test_a_stream_that_breaks_off_ends_its_turn() -> None:
    async def broken(chunks: Sequence[Any]) -> None:
        world = World(lambda: Stream([*chunks, ValueError("broken")]))
        with pytest.raises(ValueError, match="broken"):
            async for _ in await world.ask(stream=True):
                pass
        assert not world.executor._turns and not world.client._open and not world.client._streams
        await world.client.aclose()

    async def main() -> None:
        await broken(WHOLE[:1])
        await broken(WHOLE)

    run_virtual(main)


def whole(**fields: Any) -> ChatCompletion:
    return ChatCompletion.construct(**fields)


def choice(**fields: Any) -> ChatCompletion:
    return whole(id="A", choices=[{"index": 0, "finish_reason": "stop", **fields}])


ODD_ANSWERS = {
    "no choices": whole(id="A", choices=[]),
    "choices null": whole(id="A", choices=None, error={"message": "busy"}),
    "nothing": whole(),
    "no message": choice(),
    "message null": choice(message=None),
    "text": "<html>",
    "call null": choice(message={"role": "assistant", "tool_calls": [None]}),
    "name null": choice(message={"tool_calls": [{"id": "c", "function": {"name": None, "arguments": "{}"}}]}),
    "name a list": choice(message={"tool_calls": [{"id": "c", "function": {"name": [], "arguments": "{}"}}]}),
    "arguments null": choice(message={"tool_calls": [{"id": "c", "function": {"name": "look", "arguments": [1]}}]}),
    "not a list": choice(message={"role": "assistant", "tool_calls": 5}),
}


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("odd", ODD_ANSWERS.values(), ids=ODD_ANSWERS.keys())
def test_answers_of_every_shape_are_returned(odd: Any) -> None:
    world = World(lambda: odd, after=1.0)

    async def main() -> None:
        assert await world.ask() is odd
        assert world.executor.counts.started == 2 and not world.executor._turns
        await world.client.aclose()

    run_virtual(main)


ODD_CHUNKS = {
    "choices null": [ChatCompletionChunk.construct(id="A", choices=None)],
    "nothing": [ChatCompletionChunk.construct()],
    "delta null": [chunk({"content": "a"}), chunk(None, "stop")],
    "no delta": [ChatCompletionChunk.construct(id="A", choices=[{"index": 0}])],
    "call null": [chunk({"tool_calls": [None]})],
    "calls no list": [chunk({"tool_calls": 5})],
    "index null": [chunk(part(None)), chunk(part(0, id="c1")), chunk({}, "tool_calls")],
    "no function": [chunk({"tool_calls": [{"index": 0, "id": "c0"}]}), chunk({}, "tool_calls")],
    "arguments no text": [chunk(part(0, "{")), chunk(part(0, {"a": 1})), chunk(part(0, "}")), chunk({}, "tool_calls")],
    "content no text": [chunk({"content": "a"}), chunk({"content": ["b"]}), chunk({"content": "c"}, "stop")],
    "resident no list": [chunk({"content": "a", "resident": 5}), chunk({}, "stop")],
}


@pytest.mark.parametrize("odd", ODD_CHUNKS.values(), ids=ODD_CHUNKS.keys())
def test_chunks_of_every_shape_come_as_they_are(odd: list[Any]) -> None:
    world = World(lambda: Stream(odd))

    async def main() -> None:
        assert [one async for one in await world.ask(stream=True)] == odd
        await world.client.aclose()
        assert not world.executor._turns

    run_virtual(main)


def test_calls_without_numbers_are_told_apart_by_their_ids() -> None:
    gathered = Gathered()
    for one in (
        part(None, '{"q": '), part(None, '"a"}', id=None, name=None), part(None, '{"q": "b"}', id="c1"),
        part(2, '{"q": ', id="c2"), part(None, '"c"}', id=None, name=None),
    ):  # fmt: skip
        gathered.add(chunk(one))
    assert gathered.message["tool_calls"] == [
        {**one, "id": f"c{n}"} for n, one in enumerate(calls({"q": "a"}, {"q": "b"}, {"q": "c"}))
    ]


def test_arguments_that_are_no_text_are_no_call_of_an_agent() -> None:
    model = OpenAIModel(endpoint(lambda: Stream(ODD_CHUNKS["arguments no text"])), "m", {}, cached=True)
    hooks: Any = SimpleNamespace(on_start=lambda _: None, on_resident=lambda _: None)

    async def main() -> None:
        with pytest.raises(SpeculateError):
            await model.reply([], hooks)

    run_virtual(main)


def test_messages_and_tools_that_can_be_read_only_once() -> None:
    asked: list[Any] = []

    async def create(**given: Any) -> Any:
        asked.append((list(given["messages"]), list(given["tools"])))
        await asyncio.sleep(1)
        return answer()

    async def main() -> None:
        client: Any = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
        speculative = SpeculativeOpenAI(client, client, Executor(Toolset({}), limits=Limits(samples=2)), "small")
        messages = [{"role": "user", "content": "x"}]
        await speculative.chat.completions.create(model="m", messages=iter(messages), tools=iter(TOOLS))
        assert asked == [(messages, TOOLS)] * 3
        await speculative.aclose()

    run_virtual(main)


def test_an_answer_without_choices_has_no_calls() -> None:
    world = World(lambda: ODD_ANSWERS["no choices"])

    async def main() -> None:
        assert await world.client.run(await world.ask()) == []
        await world.client.aclose()

    run_virtual(main)
