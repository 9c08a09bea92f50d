"""Running a tool: whatever it does is its output, and guesses take no threads from calls."""

from __future__ import annotations

import asyncio
import functools
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from toolc.runtime import Call
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.tools import Output, Toolset, _left_behind, tool


def output_of(function: Callable[..., Any], early: bool = False, **arguments: Any) -> Output:
    tools = Toolset({"look": function}, timeout_s=5)
    return asyncio.run(tools.run(Call("look", arguments), early=early))


async def fine(n: int = 0) -> str:
    await asyncio.sleep(0)
    return f"fine {n}"


async def raises(error: BaseException) -> None:
    raise error


async def cancels_its_own() -> None:
    task = asyncio.get_running_loop().create_task(asyncio.sleep(10))
    asyncio.get_running_loop().call_soon(task.cancel)
    await task


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda: raises(TimeoutError("of the tool")), "error: TimeoutError: of the tool"),
        (functools.partial(raises, TimeoutError("of the tool")), "error: TimeoutError: of the tool"),
        (functools.partial(raises, SystemExit(3)), "error: SystemExit: 3"),
        (functools.partial(raises, GeneratorExit()), "error: GeneratorExit: "),
        (lambda: sys.exit(3), "error: SystemExit: 3"),
        (functools.partial(raises, Unprintable()), "error: Unprintable: (no text)"),
        (cancels_its_own, "error: the tool was cancelled"),
    ],
    ids=["wrapped timeout", "timeout", "exit", "generator exit", "exit in a thread", "no text", "cancelled"],
)
def test_whatever_a_tool_does_is_its_output(function: Callable[..., Any], text: str, early: bool) -> None:
    assert output_of(function, early) == Output(text, failed=True)


def test_a_tool_that_cancels_itself_fails_no_turn() -> None:
    async def main() -> list[Output]:
        async with Executor(Toolset({"look": cancels_its_own})) as executor:
            return (await executor.turn(lambda _: fine(), [], lambda _: [Call("look", {})]))[1]

    assert asyncio.run(main()) == [Output("error: the tool was cancelled", failed=True)]


def test_the_time_limit_and_the_callers_cancellation() -> None:
    async def hang() -> None:
        await asyncio.sleep(100)

    async def main() -> None:
        output = await Toolset([hang], timeout_s=0.01).run(Call("hang", {}))
        assert output == Output("error: no answer within 0.01 s", failed=True)
        task = asyncio.create_task(Toolset([hang]).run(Call("hang", {})))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def swallows(until: float, failing: bool = False) -> str:
    """Ends late, whatever cancels it."""
    while time.monotonic() < until:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            pass
    if failing:
        raise SystemExit
    return "late"


@pytest.mark.parametrize("cancelled", [False, True], ids=["out of time", "cancelled too"])
def test_a_tool_that_swallows_cancellations_is_left_behind(cancelled: bool) -> None:
    gc.collect()  # what other tests left, clients too, which close themselves in whatever loop is running
    until, told = time.monotonic() + 20, list[Any]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        task = asyncio.create_task(Toolset({"look": swallows}, timeout_s=0.1).run(Call("look", {"until": until})))
        if cancelled:
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.wait([task])
        if cancelled:
            assert task.cancelled()
        else:
            assert task.result() == Output("error: no answer within 0.1 s", failed=True)
            gc.collect()
            (left,) = asyncio.all_tasks() - {asyncio.current_task()}  # and the end of the loop does not wait for it
            assert not left.done()

    asyncio.run(main())
    gc.collect()
    assert time.monotonic() < until - 5
    assert not _left_behind and not told


@pytest.mark.parametrize("failing", [False, True])
def test_a_tool_that_was_left_behind_ends_by_itself(failing: bool) -> None:
    gc.collect()
    told: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        arguments = {"until": time.monotonic() + 0.5, "failing": failing}
        output = await Toolset({"look": swallows}, timeout_s=0.05).run(Call("look", arguments))
        assert output.failed and "no answer" in output.text
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=20)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    gc.collect()
    assert not _left_behind and not told


def test_an_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        output_of(functools.partial(raises, KeyboardInterrupt()))


class Object:
    async def __call__(self, n: int) -> str:
        return await fine(n)


@pytest.mark.parametrize(
    "function",
    [fine, lambda n: fine(n), functools.partial(lambda way, n: way(n), fine), functools.partial(fine), Object()],
    ids=["plain", "wrapped", "partial of a wrapper", "partial", "object"],
)
def test_async_functions_in_any_form(function: Callable[..., Any]) -> None:
    assert output_of(function, n=2) == Output("fine 2")


def test_guesses_take_no_threads_from_calls() -> None:
    hold = threading.Event()

    @tool(read_only=True)
    def slow(n: int) -> str:
        hold.wait(20)
        return "late"

    def fast() -> str:
        return "fast"

    async def main() -> None:
        count = 80  # more than the loop's own pool has
        executor = Executor(
            Toolset([slow, fast], timeout_s=5, early_threads=40), limits=Limits(calls=count, running=count)
        )

        async def sample() -> Iterable[Call]:
            return [Call("slow", {"n": n}) for n in range(count)]

        turn = executor.begin([sample])
        while executor.counts.failed < 40:  # as many as found no thread
            await asyncio.sleep(0.01)
        assert executor.counts.started == count and executor.pending > 40
        turn.settle()
        began = time.monotonic()
        assert await turn.run(Call("fast", {})) == Output("fast")
        assert await asyncio.wait_for(asyncio.to_thread(fast), 4) == "fast"  # the loop's pool is free
        assert time.monotonic() - began < 4
        executor.end(turn)
        await executor.aclose()
        again = await executor.tools.run(Call("slow", {"n": 0}), early=True)  # cancelled ones keep their threads
        assert again.failed and "no thread" in again.text
        hold.set()
        until = time.monotonic() + 10
        while (
            again := await executor.tools.run(Call("slow", {"n": 0}), early=True)
        ).failed and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert again == Output("late")

    try:
        asyncio.run(main())
    finally:
        hold.set()


@pytest.mark.parametrize(
    "value", [float("nan"), [float("-inf")], {1, 2}, object()], ids=["nan", "infinity", "set", "object"]
)
def test_what_is_no_json_is_no_output(value: Any) -> None:
    output = output_of(lambda: value)
    assert output.failed and "what is no JSON" in output.text


def test_a_tool_changes_no_call() -> None:
    def first(stops: list[str]) -> str:
        stops.sort()
        return stops[0]

    async def later(stops: list[str]) -> str:
        return first(stops)

    for function in (first, later):
        call = Call("look", {"stops": ["c", "a"]})
        assert asyncio.run(Toolset({"look": function}).run(call)) == Output("a")
        assert call.arguments == {"stops": ["c", "a"]}


def test_a_list_of_tools_needs_their_names() -> None:
    def twice() -> None: ...

    for functions, words in (
        ([functools.partial(fine)], "no name"),
        ([Object()], "no name"),
        ([fine, twice, fine], "two tools of one name"),
        ({"look": "fine"}, "cannot be called"),
    ):
        with pytest.raises(SpeculateError, match=words):
            Toolset(functions)  # type: ignore[arg-type]
    assert list(Toolset({"a": functools.partial(fine), "b": Object(), "c": fine})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "limits",
    [
        {"timeout_s": -1}, {"timeout_s": float("nan")}, {"timeout_s": "1"}, {"timeout_s": None},
        {"early_threads": -1}, {"early_threads": 1.5}, {"early_threads": True},
    ],
    ids=str,
)  # fmt: skip
def test_limits_of_a_toolset(limits: dict[str, Any]) -> None:
    with pytest.raises(SpeculateError, match=next(iter(limits))):
        Toolset([fine], **limits)
