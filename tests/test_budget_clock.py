"""The clock of a budget: what numba needs to compile a kernel does not count, and every input ends with it."""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from multiprocessing.connection import Connection
from typing import Any

import pytest
from numba import njit

from tests.cases.bombs import BOMBS
from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler import budget as budget_module
from toolc.compiler.budget import Budget, kernel_seconds
from toolc.compiler.errors import ToolcError

LIMIT, WITHIN, KILLED = 2.0, 4.0, 15
"""Seconds of the processor: that a compile may take, in which there has to be an answer, and after which none comes."""


def test_compiling_a_kernel_costs_nothing() -> None:
    budget = Budget(seconds=1000).start()
    before, begin = kernel_seconds(), time.monotonic()

    @njit
    def kernel(n: int) -> int:
        total = 0
        for i in range(n):
            total += i % 3
        return total

    assert kernel(4) == 3
    took, compiled = time.monotonic() - begin, kernel_seconds() - before
    assert 0 < compiled <= took
    assert budget.elapsed() <= time.monotonic() - begin - compiled + 0.01
    Budget(seconds=compiled / 2).check("")  # a new clock begins at zero


def test_where_others_have_the_processor_the_clock_is_asked_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking it is a call of the system; the clock of the wall has passed the limit long before this thread has."""
    asked: list[float] = []
    spent = [0.0]
    monkeypatch.setattr(budget_module, "_now", lambda: asked.append(1.0) or spent[0])
    budget = Budget(seconds=0.2).start()
    asked.clear()
    time.sleep(0.3)
    assert not any(budget.is_late for _ in range(1000)) and len(asked) < 20
    spent[0] = 0.3
    time.sleep(0.3)
    assert budget.is_late and budget.is_late
    budget.resume(0.1)
    assert not budget.is_late
    budget.resume(0.25)
    assert budget.is_late


COMPILE = {"schema": compile_schema, "tools": compile_tools, "grammar": compile_grammar}


@pytest.fixture(scope="module")
def warm() -> None:
    """The kernels are there, so that those who are forked do not load them one by one."""
    compile_schema({"type": "object", "properties": {"a": {"type": "string"}}}, "builtin")
    compile_tools(
        [{"name": "f", "inputSchema": {"properties": {"a": {"type": "string"}}}}], "builtin", options=Options(jobs=1)
    )


def _seconds() -> float:
    return time.process_time() - kernel_seconds()


def _answer(name: str, to: Connection) -> None:
    """Say what becomes of a bomb, and in how many seconds of the processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (KILLED, KILLED))
    kind, source, options = BOMBS[name]()
    begin = _seconds()
    compile_: Any = COMPILE[kind]
    try:
        compile_(source, "builtin", options=Options(budget=Budget(seconds=LIMIT), jobs=1, **options))
        answer = "a bundle"
    except ToolcError as error:
        answer = f"{type(error).__name__} at {error.place}" if error.place else f"an error without a place: {error}"
    to.send((answer, _seconds() - begin))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.usefixtures("warm")
@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="limits of the processor's time are those of POSIX")
def test_every_bomb_is_answered_in_time(name: str) -> None:
    """A compile that does not look at the clock is killed, and fails."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=_answer, args=(name, there))
    child.start()
    there.close()
    try:
        answer, seconds = here.recv()
    except EOFError:
        child.join()
        pytest.fail(f"no answer within {KILLED} seconds of the processor (exit code {child.exitcode})")
    child.join()
    assert not answer.startswith("an error without"), answer
    assert seconds < WITHIN, answer
