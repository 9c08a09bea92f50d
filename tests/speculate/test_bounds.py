"""Bounds with guesses and without: calls of an answer, size of an output, an agent's turns and seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from toolc.runtime import Call
from toolc.runtime.speculate.agent import ChatModel, Hooks, Message, Reply, assistant_message, run_agent
from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.openai import SpeculativeOpenAI
from toolc.runtime.speculate.tools import Toolset, tool

START = [{"role": "user", "content": "go"}]


class Asks(ChatModel):
    """Makes some calls in every answer, after three seconds."""

    def __init__(self, count: int) -> None:
        self.count = count

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        await asyncio.sleep(3)
        calls = [Call("look", {"n": n}, f'{{"n": {n}}}', id=f"c{n}") for n in range(self.count)]
        return Reply(assistant_message(None, calls), tuple(calls))


def looking(ran: list[int], seconds: float = 1.0, **limits: Any) -> Toolset:
    @tool(read_only=True)
    async def look(n: int) -> str:
        ran.append(n)
        await asyncio.sleep(seconds)
        return "é" * n

    return Toolset([look], **limits)


@pytest.mark.parametrize("wrapped", [False, True])
def test_calls_of_an_answer(wrapped: bool) -> None:
    """Those beyond the bound are not run, and every call has an output, in `client.run` as in an agent's turn."""
    ran: list[int] = []

    async def main() -> None:
        async with Executor(looking(ran), limits=Limits(answer_calls=3)) as executor:
            reply = await Asks(5).reply(START)
            if wrapped:
                client = SpeculativeOpenAI(SimpleNamespace(), SimpleNamespace(), executor, "small")  # type: ignore[arg-type]
                message = SimpleNamespace(model_dump=lambda: reply.message)
                outputs = await client.run(SimpleNamespace(id="a", choices=[SimpleNamespace(message=message)]))
            else:
                _, outputs = await executor.turn(lambda _: Asks(5).reply(START), (), lambda reply: reply.calls)
            assert [one.failed for one in outputs] == [False] * 3 + [True] * 2
            assert outputs[4].text == "error: not run: of one answer, 3 calls are run at most"
            assert executor.counts.not_run == 2

    run_virtual(main)
    assert ran == [0, 1, 2]


@pytest.mark.parametrize("early", [False, True])
def test_the_size_of_an_output(early: bool) -> None:
    async def main() -> None:
        tools = looking([], output_bytes=20)
        for n, text in ((10, "é" * 10), (11, "error: the output has 22 bytes, of which 20 are allowed")):
            output = await tools.run(Call("look", {"n": n}), early)
            assert (output.text, output.failed) == (text, n == 11)

    run_virtual(main)


def test_the_size_of_an_error() -> None:
    def fails() -> None:
        raise ValueError("x" * 100)

    async def main() -> None:
        output = await Toolset([fails], output_bytes=99).run(Call("fails", {}))
        assert output.failed and output.text == "error: the output has 119 bytes, of which 99 are allowed"

    asyncio.run(main())


@pytest.mark.parametrize(
    ("bounds", "stopped", "turns", "seconds"),
    [
        ({"max_turns": 2}, "max_turns", 2, 8.0),
        ({"max_turns": 2, "max_s": 8.5}, "max_turns", 2, 8.0),
        ({"max_s": 9.0}, "max_s", 2, 9.0),  # while the model writes
        ({"max_s": 7.5}, "max_s", 1, 7.5),  # while the tool runs
        ({"max_s": 0}, "max_s", 0, 0.0),
        ({"max_turns": 0}, "max_turns", 0, 0.0),
    ],
)
def test_turns_and_seconds_of_an_agent(bounds: dict[str, Any], stopped: str, turns: int, seconds: float) -> None:
    async def main() -> None:
        async with Executor(looking([])) as executor:
            done = await run_agent(Asks(1), executor, START, **bounds)
            assert (done.stopped, done.turns) == (stopped, turns)
            assert len(done.messages) == 1 + 2 * turns  # whole turns only
            assert executor.pending == 0

    assert run_virtual(main)[1] == pytest.approx(seconds)


def test_an_agent_that_ends_by_itself() -> None:
    async def main() -> None:
        async with Executor(looking([])) as executor:
            assert (await run_agent(Asks(0), executor, START, max_turns=1, max_s=60)).stopped == ""

    run_virtual(main)


def test_an_error_of_the_model_passes_a_time_bound() -> None:
    class Fails(Asks):
        async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
            raise TimeoutError("the endpoint")

    async def main() -> None:
        async with Executor(looking([])) as executor:
            with pytest.raises(TimeoutError, match="the endpoint"):
                await run_agent(Fails(0), executor, START, max_s=60)

    run_virtual(main)


@pytest.mark.parametrize("bounds", [{"max_turns": -1}, {"max_turns": 1.5}, {"max_s": "1"}, {"max_s": float("nan")}])
def test_bounds_that_are_none(bounds: dict[str, Any]) -> None:
    async def main() -> None:
        async with Executor(looking([])) as executor:
            with pytest.raises(SpeculateError, match="no such limit"):
                await run_agent(Asks(0), executor, START, **bounds)

    run_virtual(main)
