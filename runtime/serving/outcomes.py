"""Have the bundle of a content: from this process, from the store, or from the worker that compiles.

Leaves out   compiling: see worker.py. What a content is: see requests.py.
Invariants   one content is asked for once, however many requests wait for it; a request waits no longer than it may;
             the event loop neither compiles nor opens files. What was refused stays refused; if a limit of time or the
             place of a bundle was the reason, for a minute. A worker that dies or hangs is started anew and fails one
             content. A bundle that was taken out of the store is asked for again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import pickle
import sys
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import BundleError, ServingError, ToolcError
from ..format.bundle import Bundle
from ..store.fetch import cache_dir, load
from ..store.folder import Folder
from ..store.store import BUNDLE, open_store
from .worker import LENGTH, Setup

if TYPE_CHECKING:
    from .requests import Content

_LOG = logging.getLogger(__name__)

KEPT = 1024
"""Contents that are remembered, those used last; their bundles are mapped files."""
RETRY = 60.0
"""Seconds after which a content that a limit of time has refused is tried again."""
GRACE = 10.0
"""Seconds that a worker may take beyond the limit of a compile, before it is ended."""
PASSING = ("BudgetError", "BundleError", "VersionError", "SignatureError", "StoreError")
"""What a compile may fail with that says nothing of the content: the time, or the places of bundles."""
START = 1800.0
"""Seconds that a worker may take to begin: on a new machine it compiles its kernels first."""


class Refused(ServingError):
    """A content that cannot be compiled.

    Args:
        told: the compiler's error as plain data.
    """

    def __init__(self, told: dict[str, Any]) -> None:
        super().__init__(*[told.get("message") or ""])
        self.kind, self.code = str(told.get("error")), str(told.get("code"))
        self.place, self.found = told.get("place"), told.get("found")
        self.expected, self.hint = told.get("expected"), told.get("hint")


class Late(ServingError):
    """A content whose bundle is not there in time: try again."""


@dataclass(frozen=True)
class Held:
    """A bundle that can be served.

    Attributes:
        key: under which the store holds it.
        bundle: opened.
        path: of its file on this machine.
    """

    key: str
    bundle: Bundle
    path: str


@dataclass
class Told:
    """What happened, for counters and the log.

    Attributes:
        compiled: contents that the worker compiled, and `seconds` that it took for them.
        found: contents that were in the store.
        refused: contents that the compiler refused.
        late: requests that did not wait any longer.
    """

    compiled: int = 0
    found: int = 0
    refused: int = 0
    late: int = 0
    seconds: float = 0.0


class Outcomes:
    """The bundles of contents.

    Args:
        setup: what they are compiled for.
        queue: contents that may wait.
        tell: called with the name of a count of `Told` and the seconds that it took.
    """

    def __init__(self, setup: Setup, queue: int, tell: Callable[[str, float], None] | None = None) -> None:
        self._setup = setup
        self._waiting: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(queue)
        self._pending: dict[str, asyncio.Future[Held]] = {}
        self._known: OrderedDict[str, Held | tuple[ServingError, float]] = OrderedDict()
        self._process: asyncio.subprocess.Process | None = None
        self._runner: asyncio.Task[None] | None = None
        self._tell = tell
        self.told = Told()
        self.vocab_digest: str | None = None
        """Of the tokenizer that the worker compiles for; None before it has begun."""

    async def start(self) -> None:
        """Begin the worker.

        Raises:
            ServingError: it cannot begin, since there is no compiler or the tokenizer cannot be read.
        """
        await self._begin()
        self._runner = asyncio.create_task(self._run(), name="toolc compiles")
        self._runner.add_done_callback(_ended)

    async def obtain(self, content: Content, seconds: float | None = None) -> Held:
        """The bundle of a content.

        Args:
            content: what was read of a request.
            seconds: the longest wait.

        Raises:
            Refused: it cannot be compiled.
            Late: it is not there in time, or too many wait.
        """
        digest = content.digest
        known = self._known.get(digest)
        if isinstance(known, Held):
            if os.path.exists(known.path):
                self._known.move_to_end(digest)
                return known
            del self._known[digest]  # it was taken out of the store
        elif known is not None:
            if time.monotonic() < known[1]:
                raise known[0]
            del self._known[digest]
        if self._runner is None or self._runner.done():
            raise Late("nothing is compiled any more: see the log of the server")
        future = self._pending.get(digest)
        if future is None:
            try:
                self._waiting.put_nowait((digest, content.document))
            except asyncio.QueueFull:
                self._count("late")
                raise Late(
                    "too many compiles wait", found=str(self._waiting.maxsize), hint="try again, or warm the store"
                ) from None
            future = self._pending[digest] = asyncio.get_running_loop().create_future()
            future.add_done_callback(_seen)
        done, _ = await asyncio.wait({future}, timeout=self._setup.seconds if seconds is None else seconds)
        if not done:
            self._count("late")
            raise Late("the bundle is not compiled yet", hint="try again")
        return future.result()

    async def _run(self) -> None:
        while True:
            digest, document = await self._waiting.get()
            future = self._pending[digest]
            try:
                held = await self._have(document)
            except Refused as error:
                self._count("refused")
                lasting = error.kind not in PASSING
                self._keep(digest, (error, math.inf if lasting else time.monotonic() + RETRY))
                future.set_exception(error)
            except ToolcError as error:
                _LOG.warning("toolc: the bundle of a request cannot be had: %s", error)
                self._put_off(digest, Late(error.message, place=error.place, hint="try again"))
            except Exception:  # a bug: one content fails, and the log has it
                _LOG.exception("toolc: the bundle of a request cannot be had")
                self._put_off(digest, Late("the bundle cannot be had", hint="see the log of the server"))
            else:
                self._keep(digest, held)
                future.set_result(held)
            finally:
                del self._pending[digest]

    def _put_off(self, digest: str, late: Late) -> None:
        """Fail who waits for a content, and who asks for it soon."""
        self._keep(digest, (late, time.monotonic() + RETRY))
        self._pending[digest].set_exception(late)

    def _keep(self, digest: str, outcome: Held | tuple[ServingError, float]) -> None:
        self._known[digest] = outcome
        while len(self._known) > KEPT:
            self._known.popitem(last=False)

    async def _have(self, document: dict[str, Any]) -> Held:
        for is_last in (False, True):
            answer = await self._ask(document)
            if "error" in answer:
                raise Refused(answer["error"])
            name = "compiled" if answer["compiled"] else "found"
            self._count(name, answer["seconds"])
            try:
                held = await asyncio.to_thread(_opened, answer["place"], answer["key"])
                break
            except BundleError:  # the store went away just now
                if is_last:
                    raise
        _LOG.info(
            "toolc: %s %s (%s) in %.2f s",
            name,
            held.key,
            ", ".join(_names(held.bundle)) or "no tools",
            answer["seconds"],
        )
        return held

    async def _ask(self, document: dict[str, Any]) -> dict[str, Any]:
        """The worker's answer; of one that died meanwhile, an error."""
        if self._process is None or self._process.returncode is not None:  # it has died between two contents
            await self._begin()
        try:
            return await asyncio.wait_for(self._exchange(pickle.dumps(document)), self._setup.seconds + GRACE)
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            await self.stop_worker()
            late = isinstance(error, asyncio.TimeoutError)
            raise ServingError("the compile took too long" if late else "the worker that compiles has died") from None

    async def _begin(self) -> None:
        _LOG.info("toolc: the compiler begins; on a new machine it compiles its kernels first, as `toolc warmup` does")
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "toolc.runtime.serving.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONSAFEPATH": "1"},  # what lies in the working directory is not imported
            start_new_session=True,  # it ends with its standard input, not with a signal to the terminal's group
        )
        try:
            answer = await asyncio.wait_for(self._exchange(pickle.dumps(self._setup)), START)
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, OSError) as error:
            await self.stop_worker()
            raise ServingError("the worker that compiles does not begin", found=type(error).__name__) from None
        if "error" in answer:
            await self.stop_worker()
            raise Refused(answer["error"])
        self.vocab_digest = answer["vocab"]

    async def _exchange(self, data: bytes) -> dict[str, Any]:
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        process.stdin.write(LENGTH.pack(len(data)) + data)
        await process.stdin.drain()
        size = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))[0]
        answer: dict[str, Any] = json.loads(await process.stdout.readexactly(size))
        return answer

    async def stop_worker(self) -> None:
        """End the worker; the next content starts another."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            try:
                process.kill()
            except ProcessLookupError:
                pass  # it has ended just now
            await process.wait()

    async def close(self) -> None:
        """End the worker and the waiting."""
        if self._runner is not None:
            self._runner.cancel()
        await self.stop_worker()

    def _count(self, name: str, seconds: float = 0.0) -> None:
        setattr(self.told, name, getattr(self.told, name) + 1)
        if name == "compiled":
            self.told.seconds += seconds
        if self._tell is not None:
            self._tell(name, seconds)


def _opened(place: str, key: str) -> Held:
    """Open a bundle in a thread: mapped in its folder, or fetched into that of this machine."""
    bundle = load(place, key)
    files = open_store(place).files
    folder = files.folder if isinstance(files, Folder) else cache_dir()
    path = folder / (key + BUNDLE)
    if not path.is_file():
        raise BundleError("nothing can be kept on this machine", place=str(folder), hint="set TOOLC_CACHE")
    return Held(key, bundle, str(path))


def _ended(runner: asyncio.Task[None]) -> None:
    """Tell of a bug: nothing else ends the loop but a cancellation."""
    if not runner.cancelled() and (error := runner.exception()) is not None:
        _LOG.error("toolc: nothing is compiled any more", exc_info=error)


def _names(bundle: Bundle) -> list[str]:
    names = [str(tool["name"]) for tool in bundle.tools]
    return names if len(names) <= 5 else [*names[:5], f"and {len(names) - 5} more"]


def _seen(future: asyncio.Future[Held]) -> None:
    """Whoever waits takes the error; if nobody does any longer, it is no error of the loop."""
    if not future.cancelled():
        future.exception()
