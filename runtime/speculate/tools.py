"""Tools as functions: the decorator, and running one with a time limit.

    @tool(read_only=True)
    async def current_weather(place: str, units: str = "celsius") -> str: ...

Leaves out   what the marks allow: see rules.py. When a tool is run: see executor.py.
Limits       a plain function runs in a thread, which cannot be cancelled: past its time it is left behind.
Invariants   `Toolset.run` never raises for what a tool does: a failure and a time-out are outputs, as the model sees
             them. Cancellation passes through.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ..reader import Call
from .errors import SpeculateError
from .rules import Rules, ToolRule, may_run_early

Function = TypeVar("Function", bound=Callable[..., Any])
MARK = "__toolc__"


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
        functions: coroutine functions, or plain ones, which run in a thread; or a mapping of names to them.
        timeout_s: seconds that a call may take.
    """

    def __init__(
        self, functions: Iterable[Callable[..., Any]] | Mapping[str, Callable[..., Any]], timeout_s: float = 30.0
    ) -> None:
        if not isinstance(functions, Mapping):
            functions = {function.__name__: function for function in functions}
        self._functions = dict(functions)
        self.timeout_s = timeout_s

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

    async def run(self, call: Call) -> Output:
        """Run a call; see the invariants."""
        function = self._functions.get(call.name)
        if function is None:
            return Output(f"error: there is no tool {call.name!r}", failed=True)
        try:
            return Output(_shown(await asyncio.wait_for(self._start(function, call), self.timeout_s)))
        except asyncio.TimeoutError:
            return Output(f"error: no answer within {self.timeout_s:g} s", failed=True)
        except Exception as error:  # whatever a tool raises is its answer to the model
            return Output(f"error: {type(error).__name__}: {error}", failed=True)

    async def _start(self, function: Callable[..., Any], call: Call) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(**call.arguments)
        return await asyncio.to_thread(function, **call.arguments)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise SpeculateError("a tool returned what is no JSON", found=type(value).__name__) from error
