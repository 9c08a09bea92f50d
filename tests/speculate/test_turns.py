"""Whose results serve whom: those of a turn its own answer, and others only as `keep_alive_s` says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from toolc.runtime import Call
from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.openai import _OPEN, SpeculativeOpenAI
from toolc.runtime.speculate.tools import Output, Toolset, tool

OLD, NEW = Output("old"), Output("new")
NOW = Call("now", {}, "{}")


class World:
    """A tool that tells what the world is."""

    def __init__(self, keep_alive_s: float = 0.0) -> None:
        self.state, self.ran = "old", 0

        @tool(read_only=True)
        async def now(n: int = 0) -> str:
            self.ran += 1
            return self.state

        self.executor = Executor(Toolset([now]), limits=Limits(keep_alive_s=keep_alive_s))


def endpoint(ids: Iterable[str], call: str = "c", after: float = 0.0, text: str = "{}") -> Any:
    """A client that answers with a call of `now`."""
    left = iter(ids)

    async def create(**_: Any) -> Any:
        await asyncio.sleep(after)
        calls = [{"id": call, "type": "function", "function": {"name": "now", "arguments": text}}]
        message = SimpleNamespace(model_dump=lambda: {"role": "assistant", "tool_calls": calls})
        return SimpleNamespace(id=next(left, "last"), choices=[SimpleNamespace(message=message)])

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def client_of(world: World, ids: Iterable[str]) -> SpeculativeOpenAI:
    return SpeculativeOpenAI(endpoint(ids, after=2.0), endpoint(()), world.executor, "small")


async def ask(client: SpeculativeOpenAI) -> Any:
    return await client.chat.completions.create(messages=[], tools=[{}])


def virtual(main: Callable[[], Awaitable[None]]) -> None:
    run_virtual(cast(Any, main))


@pytest.mark.parametrize("ids", [["a", "b", "c"], ["", "", ""]], ids=["own ids", "equal ids"])
def test_an_answer_that_is_not_run_serves_no_other(ids: list[str]) -> None:
    world = World()

    async def main() -> None:
        client = client_of(world, ids)
        await ask(client)  # and not run
        world.state = "new"
        for _ in range(2):
            assert await client.run(await ask(client)) == [NEW]
        assert world.executor.counts.hits == 2 and world.ran == 3  # each of its own turn
        assert len(world.executor._turns) == ("" not in ids)
        await client.aclose()
        assert world.executor.pending == 0 and not world.executor._turns

    virtual(main)


def test_an_answer_takes_no_turn_of_a_later_one_with_its_id() -> None:
    world = World()

    async def main() -> None:
        client = client_of(world, ["x"])
        first = await ask(client)
        client.main = endpoint(["x"], call="another", after=2.0)
        second = await ask(client)
        world.state = "new"
        assert await client.run(first) == [NEW]  # its turn has ended, and that of the second is not its own
        assert await client.run(second) == [OLD]
        assert await client.run(second) == [NEW]
        assert not world.executor._turns

    virtual(main)


def test_turns_that_are_pushed_out_or_ask_for_nothing_end() -> None:
    world = World()

    async def main() -> None:
        client = client_of(world, map(str, range(100)))
        first = await ask(client)
        for _ in range(_OPEN):
            await ask(client)
        assert len(world.executor._turns) == len(client._open) == _OPEN
        world.state = "new"
        assert await client.run(first) == [NEW]
        client.main = endpoint(["broken"], after=2.0, text="[")
        await ask(client)
        assert "broken" not in client._open and len(world.executor._turns) == _OPEN
        await client.aclose()

    virtual(main)


def test_a_result_is_kept_from_its_turns_end_for_so_long() -> None:
    world = World(keep_alive_s=10)

    async def sample() -> Iterable[Call]:
        return [NOW]

    async def main() -> None:
        async with world.executor as executor:
            turn = executor.begin([sample])
            await asyncio.sleep(1)
            turn.settle([NOW])
            world.state = "new"
            assert await executor.run(NOW) == NEW  # the turn is open: its result is its own
            assert await turn.run(NOW) == OLD
            executor.end(turn)
            await asyncio.sleep(9)
            later = executor.begin([sample])
            await asyncio.sleep(0.5)
            assert await later.run(NOW) == OLD
            executor.end(later)
            await asyncio.sleep(1)
            assert await executor.run(NOW) == NEW  # finding it has not kept it any longer

    virtual(main)


def test_two_turns_at_once_run_their_own() -> None:
    world = World()

    async def sample() -> Iterable[Call]:
        return [NOW]

    async def main() -> None:
        async with world.executor as executor:
            turns = [executor.begin([sample]) for _ in range(2)]
            await asyncio.sleep(1)
            executor.end(turns[0])
            assert await turns[1].run(NOW) == OLD
            assert world.ran == 2 and executor.counts.hits == 1
            turns[0].guess([sample])  # too late
            await asyncio.sleep(1)
            assert executor.counts.samples == 2

    virtual(main)


def test_what_is_no_call_is_refused() -> None:
    world = World()

    async def sample() -> Iterable[Any]:
        return ["now", None, Call("now", cast(Any, None)), Call(cast(Any, []), {}), NOW]

    async def main() -> None:
        async with world.executor as executor:
            failed: list[Any] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: failed.append(context))
            turn = executor.begin([sample])
            await asyncio.sleep(1)
            assert await turn.run(NOW) == OLD
            executor.end(turn)
            counts = executor.counts
            assert (counts.guesses, counts.refused, counts.hits, counts.sample_errors) == (5, 4, 1, 0)
            assert not failed

    virtual(main)
