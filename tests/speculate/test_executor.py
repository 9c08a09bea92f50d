"""The client side: transcripts do not change, limits hold, nothing leaks, and times are those of the equations."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Iterable
from typing import Any

import pytest

from tests.speculate.worlds import NAMES, RandomModel, World, samples_of
from toolc.runtime import Call
from toolc.runtime.speculate.agent import run_agent
from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.executor import Executor, Limits, Sample
from toolc.runtime.speculate.rules import Rules, ToolRule
from toolc.runtime.speculate.tools import Output, Toolset, tool

START = [{"role": "user", "content": "go"}]
RUNS = 1000 if os.environ.get("TOOLC_HYPOTHESIS_PROFILE") == "fuzz" else 150


def one_run(seed: int, speculative: bool, limits: Limits | None = None) -> tuple[list[Any], World, Executor, float]:
    world = World(seed)
    executor = Executor(world.tools, limits=limits or Limits(samples=1 + seed % 4, keep_alive_s=seed % 3 * 20.0))

    async def main() -> list[Any]:
        model = RandomModel(seed, 3.0)
        guesser = samples_of(RandomModel(seed, 1.0, noise=0.3, broken=0.2), 4) if speculative else None
        async with executor:
            transcript = await run_agent(model, executor, START, guesser, max_turns=8)
        return transcript.messages

    messages, seconds = run_virtual(main)
    assert executor.pending == 0 and world.inside == 0
    return messages, world, executor, seconds


def test_transcripts_are_equal() -> None:
    hits = 0
    for seed in range(RUNS):
        plain, before, _, _ = one_run(seed, False)
        guessed, after, executor, _ = one_run(seed, True)
        assert guessed == plain, seed
        hits += executor.counts.hits
        assert set(executor.counts.ran_early) <= {name for name, early in NAMES.items() if early}
        for name in ("write", "send"):  # what is not marked runs exactly as often, and in the same order
            assert [one for one in after.ran if one[0] == name] == [one for one in before.ran if one[0] == name]
    assert hits > RUNS


def simple(seconds: float, ran: list[int], **marks: bool) -> Toolset:
    async def look(n: int) -> str:
        ran.append(n)
        await asyncio.sleep(seconds)
        return str(n)

    return Toolset([tool(**marks)(look)] if marks else [look], timeout_s=100)


def sample_of(*numbers: int, after: float = 0.0) -> Sample:
    async def sample() -> Iterable[Call]:
        await asyncio.sleep(after)
        return [Call("look", {"n": n}, f'{{"n": {n}}}') for n in numbers]

    return sample


def turn_of(executor: Executor, main_s: float, wanted: int, *samples: Sample) -> tuple[list[Output], float]:
    async def main() -> list[Output]:
        async with executor:

            async def answer(_: Any) -> int:
                await asyncio.sleep(main_s)
                return wanted

            _, outputs = await executor.turn(answer, samples, lambda n: [Call("look", {"n": n})])
            return outputs

    return run_virtual(main)


@pytest.mark.parametrize(
    ("guess", "after", "seconds", "ran"),
    [(1, 0.5, 3.5, [1]), (1, 0.0, 3.0, [1]), (2, 0.0, 5.0, [2, 1]), (1, 2.5, 5.0, [1])],
    ids=["hit", "hidden whole", "miss", "too late"],
)
def test_times(guess: int, after: float, seconds: float, ran: list[int]) -> None:
    done: list[int] = []
    executor = Executor(simple(3.0, done, read_only=True))
    outputs, took = turn_of(executor, 2.0, 1, sample_of(guess, after=after))
    assert outputs == [Output("1")]
    assert (took, done) == (pytest.approx(seconds), ran)


@pytest.mark.parametrize("marks", [{}, {"read_only": False}, {"idempotent": True, "destructive": True}], ids=str)
def test_unmarked_tools_never_run_early(marks: dict[str, bool]) -> None:
    done: list[int] = []
    executor = Executor(simple(3.0, done, **marks))
    _, took = turn_of(executor, 2.0, 1, sample_of(1))
    assert (took, done, executor.counts.ran_early, executor.counts.refused) == (5.0, [1], {}, 1)


@pytest.mark.parametrize(
    ("limits", "started"),
    [
        (Limits(samples=0), 0),
        (Limits(samples=1), 3),
        (Limits(samples=2), 5),
        (Limits(samples=2, calls=4), 4),
        (Limits(samples=2, running=2), 2),
        (Limits(samples=2, cost=3.5), 3),
        (Limits(samples=2, cost=3.5, costs={"look": 2}), 1),
    ],
    ids=str,
)
def test_limits(limits: Limits, started: int) -> None:
    done: list[int] = []
    executor = Executor(simple(3.0, done, read_only=True), limits=limits)
    turn_of(executor, 2.0, 9, sample_of(1, 2, 3), sample_of(3, 4, 5))
    assert executor.counts.started == started
    assert executor.counts.cancelled == started
    with pytest.raises(SpeculateError, match="samples"):
        Limits(samples=-1)


def test_a_check_decides_before_anything_runs() -> None:
    done: list[int] = []

    def accepts(call: Call) -> bool:
        if call.arguments["n"] == 3:
            raise ValueError("a check that breaks")
        return call.arguments["n"] == 1

    executor = Executor(simple(3.0, done, read_only=True), accepts=accepts)
    turn_of(executor, 2.0, 2, sample_of(1, 2, 3))
    assert done == [1, 2]
    assert executor.counts.refused == 2


def test_a_failed_guess_is_run_again() -> None:
    tries: list[int] = []

    async def look(n: int) -> str:
        tries.append(n)
        if len(tries) == 1:
            raise RuntimeError("only the first time")
        return "fine"

    executor = Executor(Toolset([tool(read_only=True)(look)]))
    outputs, _ = turn_of(executor, 2.0, 1, sample_of(1))
    assert outputs == [Output("fine")] and tries == [1, 1]


def test_results_are_delivered_and_kept() -> None:
    done: list[int] = []
    executor = Executor(simple(1.0, done, read_only=True), limits=Limits(keep_alive_s=10))
    got: list[tuple[Any, str]] = []

    async def main() -> None:
        async def deliver(call: Call, output: Output) -> None:
            got.append((call.arguments["n"], output.text))
            if call.arguments["n"] == 2:
                raise ConnectionError("gone")

        async def answer(turn: Any) -> int:
            await asyncio.sleep(2)
            turn.deliver_to(deliver)
            await asyncio.sleep(1)
            return 9

        async with executor:
            for pause in (0, 5, 20):
                await asyncio.sleep(pause)
                await executor.turn(answer, [sample_of(1, 2)], lambda n: [Call("look", {"n": n})])

    run_virtual(main)
    assert got == [(1, "1"), (2, "2")] * 3
    assert executor.counts.delivery_errors == 3
    assert done == [1, 2, 9, 9, 1, 2, 9]  # the second turn found 1 and 2 kept


def test_kept_results_are_bounded() -> None:
    done: list[int] = []
    executor = Executor(simple(1.0, done, read_only=True), limits=Limits(keep_alive_s=1e6, kept=2))

    async def main() -> None:
        async def answer(_: Any) -> int:
            await asyncio.sleep(2)
            return 99

        async with executor:
            for n in range(5):
                await executor.turn(answer, [sample_of(n)], lambda _: [])
            assert [early.call.arguments["n"] for early in executor._kept.values()] == [3, 4]
            await executor.turn(answer, [sample_of(4, 0)], lambda _: [])

    run_virtual(main)
    assert done == [0, 1, 2, 3, 4, 0]


def test_a_cancelled_turn_leaves_nothing() -> None:
    done: list[int] = []
    executor = Executor(simple(1000.0, done, read_only=True))

    async def main() -> None:
        async def answer(_: Any) -> int:
            await asyncio.sleep(1000)
            return 1

        async with executor:
            turn = asyncio.create_task(executor.turn(answer, [sample_of(1)], lambda n: []))
            await asyncio.sleep(5)
            assert executor.pending == 2  # the run, and what would hand its result over
            turn.cancel()
            await asyncio.wait([turn])

    _, seconds = run_virtual(main)
    assert (executor.pending, done, seconds) == (0, [1], 5)


def test_a_tool_that_does_not_give_up_is_named() -> None:
    async def look(n: int) -> str:
        while True:
            try:
                await asyncio.sleep(5)
                return "late"
            except asyncio.CancelledError:
                continue

    executor = Executor(Toolset([tool(read_only=True)(look)]), limits=Limits(grace_s=1))

    async def main() -> None:
        async def answer(_: Any) -> int:
            await asyncio.sleep(1)
            return 1

        await executor.turn(answer, [sample_of(1)], lambda n: [])
        with pytest.raises(SpeculateError, match="do not end"):
            await executor.aclose()
        await asyncio.sleep(10)

    _, seconds = run_virtual(main)
    assert seconds == 12


def test_the_clock_says_when_it_is_stuck() -> None:
    async def stuck() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(SpeculateError, match="stuck"):
        run_virtual(stuck)

    async def leaves() -> None:
        asyncio.get_running_loop().create_task(asyncio.sleep(5))

    with pytest.raises(SpeculateError, match="left over"):
        run_virtual(leaves)


def test_a_sample_that_ends_as_it_is_cancelled_starts_nothing() -> None:
    done: list[int] = []
    executor = Executor(simple(3.0, done, read_only=True))

    async def main() -> None:
        async def sample() -> Iterable[Call]:
            await asyncio.sleep(1)
            turn.settle()
            return [Call("look", {"n": 1})]

        turn = executor.begin([sample])
        await asyncio.sleep(2)
        executor.end(turn)
        await executor.aclose()
        assert executor.pending == 0

    run_virtual(main)
    assert done == [] and executor.counts.started == 0


@pytest.mark.parametrize(
    "limits",
    [
        {"samples": 1.5}, {"samples": float("nan")}, {"samples": "2"}, {"samples": None}, {"samples": True},
        {"running": float("inf")}, {"calls": 2.0}, {"kept": 1.5}, {"cost": float("nan")}, {"cost": "1"},
        {"sample_timeout_s": -1}, {"keep_alive_s": float("nan")}, {"grace_s": None},
        {"costs": {"look": -1}}, {"costs": {"look": float("nan")}}, {"costs": {"look": "1"}}, {"costs": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_limits_that_are_none(limits: dict[str, Any]) -> None:
    with pytest.raises(SpeculateError, match=next(iter(limits))):
        Limits(**limits)


class Broken(Toolset):
    async def run(self, call: Call, early: bool = False) -> Output:
        if early:
            raise RuntimeError
        return await super().run(call)


def test_an_early_run_that_raises_fails_no_turn() -> None:
    executor = Executor(Broken({"look": tool(read_only=True)(functools.partial(plain))}))
    outputs, _ = turn_of(executor, 2.0, 1, sample_of(1))
    assert outputs == [Output("int 1")]
    assert (executor.counts.failed, executor.counts.misses) == (1, 1)


async def plain(**arguments: Any) -> str:
    return " ".join(f"{type(value).__name__} {value}" for value in arguments.values())


@pytest.mark.parametrize("early", [True, False])
def test_what_a_tool_sees_does_not_depend_on_who_wrote_it(early: bool) -> None:
    rules = Rules([ToolRule("plain", early, defaults={"properties": {"u": {"default": "c"}}})])
    forms: list[dict[str, Any]] = [{"n": 1, "u": "c"}, {"n": 1.0, "u": "c"}, {"u": "c", "n": 1}, {"n": 1}]
    said = set()

    async def main() -> None:
        for guess in (None, *forms):
            for made in forms:

                async def sample(guess: Any = guess) -> Iterable[Call]:
                    return [Call("plain", guess)] if guess else []

                async def answer(_: Any) -> int:
                    await asyncio.sleep(1)
                    return 0

                executor = Executor(Toolset([plain]), rules)
                _, (output,) = await executor.turn(answer, [sample], lambda _, made=made: [Call("plain", made)])
                assert executor.counts.hits == (early and guess is not None)
                said.add(output.text)

    run_virtual(main)
    as_it_is = {"int 1 str c", "float 1.0 str c", "str c int 1", "int 1"}
    assert said == ({"int 1 str c"} if early else as_it_is)


def test_what_is_delivered_is_what_was_guessed() -> None:
    got: list[Any] = []

    async def look(stops: list[str]) -> str:
        stops.sort()
        return stops[0]

    async def main() -> None:
        async def deliver(call: Call, output: Output) -> None:
            got.append((call.arguments, output.text))

        async def sample() -> Iterable[Call]:
            return [Call("look", {"stops": ["c", "a"]})]

        async def answer(turn: Any) -> int:
            turn.deliver_to(deliver)
            await asyncio.sleep(1)
            return 0

        await Executor(Toolset([tool(read_only=True)(look)])).turn(answer, [sample], lambda _: [])

    run_virtual(main)
    assert got == [({"stops": ["c", "a"]}, "a")]
