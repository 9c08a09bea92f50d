"""Tools as functions: the decorator, and running one with a time limit.

    @tool(read_only=True)
    async def current_weather(place: str, units: str = "celsius") -> str: ...

Leaves out   what the marks allow: see rules.py. When a tool is run: see executor.py.
Limits       a plain function runs in a thread, which cannot be cancelled: past its time it is left behind. Early runs
             have `early_threads` of them, those left behind included; one that finds none is a failed run. A call of
             the model has a new thread at once.
             An async one that does not end when it is cancelled is left behind too, and goes on by itself until it
             ends or is cancelled once more, as by the end of `asyncio.run`: then it is closed where it stands.
Invariants   `Toolset.run` never raises for what a tool does: a failure, SystemExit, GeneratorExit and a cancellation of
             its own too, and a time-out are outputs, as the model sees them. The caller's cancellation and
             KeyboardInterrupt pass. A tool gets a copy of the arguments: what it does to them changes no call.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..calls.events import Call
from .errors import SpeculateError, check_limit
from .handed_in import as_text
from .rules import Rules, ToolRule, may_run_early

Function = TypeVar("Function", bound=Callable[..., Any])
MARK = "__toolc__"
_GRACE_S = 0.05
"""Seconds past its time that a tool has to end once it was cancelled; one that lets that pass needs none."""
_left_behind: set[asyncio.Task[Output]] = set()
"""Tools past their time: the loop itself holds its tasks weakly."""


def tool(
    *,
    read_only: bool | None = None,
    idempotent: bool | None = None,
    destructive: bool | None = None,
    version: str | None = None,
) -> Callable[[Function], Function]:
    """Mark a function as a tool; the compiler reads the same marks from it.

    Args:
        read_only: a call changes nothing, so it may be run on a guess.
        idempotent: a second equal call changes nothing more; it may be run on a guess unless destructive.
        destructive: a call may undo or overwrite something.
        version: results of different versions are never mixed.
    """
    given = {"read_only": read_only, "idempotent": idempotent, "destructive": destructive, "version": version}

    def mark(function: Function) -> Function:
        setattr(function, MARK, {name: value for name, value in given.items() if value is not None})
        return function

    return mark


@dataclass(frozen=True)
class Output:
    """What a call came to.

    Attributes:
        text: for the model.
        failed: the tool raised or ran out of time.
    """

    text: str
    failed: bool = False


class Toolset(Mapping[str, Callable[..., Any]]):
    """Functions by name.

    Args:
        functions: coroutine functions, or plain ones, which run in a thread; or a mapping of names to them, and to
            whatever else can be called. What is awaitable of a plain one's result is awaited.
        timeout_s: seconds that a call may take; one that was cancelled by its caller has what is left of them to end.
        early_threads: threads of early runs at once.
        output_bytes: of an output's text; a longer one is an error in its place.
    """

    def __init__(
        self,
        functions: Iterable[Callable[..., Any]] | Mapping[str, Callable[..., Any]],
        timeout_s: float = 30.0,
        early_threads: int = 32,
        output_bytes: int = 1 << 20,
    ) -> None:
        self._functions = dict(functions) if isinstance(functions, Mapping) else _named(functions)
        for name, function in self._functions.items():
            if not callable(function):
                raise SpeculateError("a tool that cannot be called", place=str(name), found=repr(function)[:80])
        check_limit("timeout_s", timeout_s)
        check_limit("early_threads", early_threads, whole=True)
        check_limit("output_bytes", output_bytes, whole=True)
        self.timeout_s, self.output_bytes = timeout_s, output_bytes
        self._threads = threading.BoundedSemaphore(early_threads)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._functions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def rules(self) -> Rules:
        """What the decorators say; a bundle says more (defaults)."""
        marks = {name: getattr(function, MARK, {}) for name, function in self.items()}
        return Rules(ToolRule(name, may_run_early(one), one.get("version", "")) for name, one in marks.items())

    async def run(self, call: Call, early: bool = False) -> Output:
        """Run a call, on a guess if early; see the limits and invariants."""
        function = self._functions.get(call.name)
        if function is None:
            return Output(f"error: there is no tool {call.name!r}", failed=True)
        # a task of its own: a cancellation here is the caller's, one in there the tool's
        loop = asyncio.get_running_loop()
        until = loop.time() + self.timeout_s
        leash = _Leash(self._output(function, call, early))
        task = loop.create_task(leash)
        try:
            done, _ = await asyncio.wait([task], timeout=self.timeout_s)
            if not done:
                task.cancel()
                await asyncio.wait([task], timeout=_GRACE_S)
                return Output(f"error: no answer within {self.timeout_s:g} s", failed=True)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task], timeout=max(_GRACE_S, until - loop.time()))
            leash.loose = True
            task.cancel()  # nobody wants it, and its time is over
            raise
        finally:
            leash.loose = True
            if not task.done():
                _left_behind.add(task)
                task.add_done_callback(_forget)
        return Output("error: the tool was cancelled", failed=True) if task.cancelled() else task.result()

    async def _output(self, function: Callable[..., Any], call: Call, early: bool) -> Output:
        failed = False
        try:
            arguments = copy.deepcopy(dict(call.arguments))
            if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
                value = function(**arguments)
            else:
                value = await _in_thread(function, arguments, self._threads if early else None)
            text = as_text(await value if inspect.isawaitable(value) else value)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # whatever a tool raises is its answer to the model
            text, failed = f"error: {type(error).__name__}: {_text(error)}", True
        return self._bounded(text, failed)

    def _bounded(self, text: str, failed: bool) -> Output:
        """An output, or the error that it is too long."""
        most = self.output_bytes
        if 4 * len(text) > most:  # it may be; else its bytes need not be counted
            size = len(text.encode(errors="replace"))
            if size > most:
                return Output(f"error: the output has {size} bytes, of which {most} are allowed", failed=True)
        return Output(text, failed)


class _Leash(Coroutine[Any, Any, Output]):
    """A coroutine that is closed by a cancellation once it is loose: it may have swallowed others."""

    def __init__(self, held: Coroutine[Any, Any, Output]) -> None:
        self._held = held
        self.loose = False

    def send(self, value: Any) -> Any:
        return self._held.send(value)

    def throw(self, *error: Any) -> Any:
        if self.loose and isinstance(error[0], asyncio.CancelledError):
            with contextlib.suppress(RuntimeError):  # it awaits something even now
                self._held.close()
            raise error[0]
        return self._held.throw(*error)

    def close(self) -> None:
        self._held.close()

    def __await__(self) -> Generator[Any, Any, Output]:
        return self._held.__await__()


def _named(functions: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    named: dict[str, Callable[..., Any]] = {}
    for function in functions:
        name = getattr(function, "__name__", None)
        if not isinstance(name, str) or name in named:
            raise SpeculateError(
                "a tool that has no name" if name not in named else "two tools of one name",
                found=repr(function)[:80],
                hint="give them in a mapping: {name: tool}",
            )
        named[name] = function
    return named


def _forget(task: asyncio.Task[Output]) -> None:
    _left_behind.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that nobody is told that it was not


async def _in_thread(
    function: Callable[..., Any], arguments: Mapping[str, Any], limit: threading.BoundedSemaphore | None
) -> Any:
    """Run a plain function in a thread of its own, at once; where there is a limit the program's end does not wait."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((value, error))
        elif inspect.iscoroutine(value):
            value.close()

    def work() -> None:
        value, failure = None, None
        try:
            value = context.run(function, **arguments)
        except BaseException as error:  # raised where it is awaited
            failure = error
        finally:
            if limit is not None:
                limit.release()
        try:
            loop.call_soon_threadsafe(settle, value, failure)
        except RuntimeError:  # the loop is closed, nobody waits
            if inspect.iscoroutine(value):
                value.close()

    if limit is not None and not limit.acquire(blocking=False):
        raise SpeculateError("no thread is free for an early run")
    try:
        threading.Thread(target=work, name="toolc-tool", daemon=limit is not None).start()
    except RuntimeError:
        if limit is not None:
            limit.release()
        raise
    value, failure = await ended
    if failure is not None:
        raise failure
    return value


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own __str__ fails
        return "(no text)"
