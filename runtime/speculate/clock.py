"""A virtual clock: an asyncio event loop whose time jumps to the next timer instead of waiting for it.

Real coroutines run unchanged and in the order in which they would; an hour of waiting takes the time of its events.

Leaves out   sockets, and threads of others: what finishes outside of the loop has no virtual time. What code gives to
             the loop's executor runs where it is given, and takes none.
Invariants   time never goes back; a loop with nothing ready and no timer is stuck, and says so.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from .errors import SpeculateError

T = TypeVar("T")


class _Jump(selectors.SelectSelector):
    """Where the loop would sleep, its clock is put forward."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise SpeculateError(
                    "the virtual clock is stuck: everything waits, and nothing has a time",
                    hint="an await that nobody answers, or a thread; only timers move this clock",
                )
            self.now += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """The event loop; `time()` begins at 0."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """The result of a function that is run here and now."""
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # raised where it is awaited
            done.set_exception(error)
        return done


def run_virtual(main: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    """Run a coroutine function on a virtual clock.

    Returns:
        Its result, and the virtual seconds that it took.

    Raises:
        SpeculateError: tasks are left over when it returns.
    """
    loop = VirtualLoop()

    async def whole() -> Any:
        result = await main()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left:
            for task in left:
                task.cancel()
            await asyncio.wait(left)
            raise SpeculateError("tasks are left over", found=", ".join(sorted(repr(t.get_coro()) for t in left))[:400])
        return result

    try:
        return loop.run_until_complete(whole()), loop.time()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
