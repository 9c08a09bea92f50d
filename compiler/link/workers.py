"""Make parts by several processes, forked from this one: kernels, vocabulary and grammar are at hand in them.

Leaves out   how a part is made and when that is worth workers (link.py); keeping parts (cache.py).
Invariants   what comes out is what one process makes. Before the caller is told of an error, all units before it are
             made or left to the caller, who so meets the error that one process meets. What a worker does not bring
             back, as it was killed (for memory, say) or met a bug, is left to the caller, too. No worker is left when
             `spread` returns or raises; one whose parent was killed ends after its part.
Platform     Linux: a fork and /proc are needed. Elsewhere one process makes all parts: a fresh process would load
             kernels for longer than it takes to make a hundred parts.
Fork         only in a process without other threads: a lock that one of them holds is never given back in the child.
             Two kinds do no harm: those of OpenBLAS, which ends them before a fork, so they are counted after it; and
             those that say that a fork waits for them (``fork_waits``).
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import parent_process
from multiprocessing.connection import Connection, Pipe, wait
from typing import NoReturn

from ..budget import Budget
from ..options import cores
from .part import Part
from .tool_groups import Work

START = 0.04  # seconds that a worker costs: to fork it, for the pages that it copies, to end it
_TASKS = "/proc/self/task"  # an entry for each thread, whoever started it
_PATIENCE = 0.005  # seconds after which a thread that has ended is not counted any more


def spread(
    units: Sequence[Work], parts: dict[bytes, Part], make: Callable[[Work], Part], keep: Callable[[Work, Part], None],
    errors: tuple[type[Exception], ...], jobs: int | None, seconds: float, budget: Budget,
    passing: tuple[type[Exception], ...] = (),
) -> dict[bytes, Exception]:  # fmt: skip
    """Let workers make parts if that is worth it here; returns the errors that they met, by the digest of the unit.

    Args:
        units: each after those that it imports.
        parts: those that are there, by digest.
        make: the part of a unit; looks into ``parts``. Called in workers.
        keep: puts a part into ``parts``. Called here.
        errors: what ``make`` raises on purpose.
        jobs: most workers; None: one for each core, but none in a process that is itself a worker.
        seconds: that a unit takes, about.
        budget: of the compile; each worker has the rest of its time.
        passing: errors behind which workers go on with all units that do not need one that failed.
    """
    most = min(jobs or (cores() if parent_process() is None else 1), len(units))
    count = 1
    while count < most and seconds * len(units) > START * count * (count + 1):
        count += 1
    if count == 1 or not _may_fork():
        return {}
    pool = _Pool(units, parts, make, errors, budget, passing)
    try:
        while len(pool.workers) < count and pool.fork():
            if len(pool.workers) == 1 and not _is_alone():
                return {}
            pool.hand_out()
        pool.run(keep)
    finally:
        pool.end()
    return {units[number].digest: error for number, error in pool.failed.items()}


def _waiting() -> int:
    """How many threads say that a fork waits for them."""
    return sum(getattr(thread, "fork_waits", False) for thread in threading.enumerate())


def _may_fork() -> bool:
    """Whether there is a fork, and not more threads than may do no harm."""
    if not os.path.isdir(_TASKS) or threading.active_count() > 1 + _waiting():
        return False
    return len(os.listdir(_TASKS)) <= _waiting() + (os.cpu_count() or 1)  # OpenBLAS has one for each core but ours


def _is_alone() -> bool:
    """Whether all threads were harmless ones, just after a fork."""
    until = time.monotonic() + _PATIENCE
    while len(os.listdir(_TASKS)) > 1 + _waiting():
        if time.monotonic() > until:
            return False
        time.sleep(_PATIENCE / 10)
    return True


@dataclass
class _Worker:
    pid: int
    pipe: Connection
    held: set[bytes]  # digests of the parts that it has
    number: int = -1  # of the unit that it makes

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # a program may have all its children waited for
            os.kill(self.pid, signal.SIGKILL)


class _Pool:
    def __init__(
        self, units: Sequence[Work], parts: dict[bytes, Part], make: Callable[[Work], Part],
        errors: tuple[type[Exception], ...], budget: Budget,
        passing: tuple[type[Exception], ...],
    ) -> None:  # fmt: skip
        self.units, self.parts, self.make, self.errors, self.budget = units, parts, make, errors, budget
        self.passing = passing
        self.workers: list[_Worker] = []
        self.todo = list(range(len(units)))
        self.failed: dict[int, Exception] = {}

    def fork(self) -> bool:
        """Start one more worker; False where the machine has no room for it."""
        held = {signal.SIGINT, signal.SIGTERM}
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, held)  # until we know whom to end
        spent = self.budget.elapsed()
        try:
            here, there = Pipe()
            pid = os.fork()
            if pid == 0:
                self._serve(there, [here, *(other.pipe for other in self.workers)], spent)
            there.close()
            self.workers.append(_Worker(pid, here, set(self.parts)))
        except OSError:
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return True

    def _serve(self, pipe: Connection, others: list[Connection], spent: float) -> NoReturn:
        """In a worker: make what is asked for until there is nobody to ask; its parent spent so many seconds before."""
        try:
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals():
                if callable(signal.getsignal(number)):
                    signal.signal(number, signal.SIG_DFL)  # else what our parent does then is done twice
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the business of the process that the person sees
            sys.stdout = sys.stderr = io.StringIO()  # threads that are not here may hold the locks of the others
            for end in others:
                end.close()  # so that each pipe ends with our parent
            self.budget.resume(spent)
            while True:
                number, imported = pickle.loads(pipe.recv_bytes())
                self.parts.update(imported)
                unit = self.units[number]
                found: Part | Exception
                try:
                    found = self.parts[unit.digest] = _bare(self.make(unit))
                except self.errors as error:
                    found = error
                pipe.send_bytes(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
        finally:
            os._exit(0)

    def hand_out(self) -> None:
        """Give each idle worker a unit, while there is one whose imports are there."""
        for worker in list(self.workers):
            if worker.number < 0:
                self._hand(worker)

    def _hand(self, worker: _Worker) -> None:
        ending = (number for number, error in self.failed.items() if not isinstance(error, self.passing))
        first_error = min(ending, default=len(self.units))
        for number in self.todo:
            imported = self._imported(self.units[number])
            if number < first_error and imported is not None:
                lacks = {digest: _bare(self.parts[digest]) for digest in imported - worker.held}
                try:
                    worker.pipe.send_bytes(pickle.dumps((number, lacks), pickle.HIGHEST_PROTOCOL))
                except OSError:
                    self._end(worker)
                    return
                self.todo.remove(number)
                worker.held |= imported
                worker.number = number
                return

    def _imported(self, unit: Work) -> set[bytes] | None:
        """Digests of all parts that those of a unit lead to; None where one is still to be made."""
        found: set[bytes] = set()
        todo = [digest for digest, _ in unit.imports]
        while todo:
            digest = todo.pop()
            if digest not in self.parts:
                return None
            if digest not in found:
                found.add(digest)
                todo += (digest for digest, _ in self.parts[digest].imports)
        return found

    def run(self, keep: Callable[[Work, Part], None]) -> None:
        """Take what workers bring until none has anything to do."""
        while busy := [worker for worker in self.workers if worker.number >= 0]:
            ready = wait([worker.pipe for worker in busy])
            for worker in (one for one in busy if one.pipe in ready):
                unit, number, worker.number = self.units[worker.number], worker.number, -1
                try:
                    message = worker.pipe.recv_bytes()
                except (EOFError, OSError):
                    self._end(worker)
                    continue
                self._hand(worker)  # it goes on while we read
                found = pickle.loads(message)
                if isinstance(found, Part):
                    keep(unit, found)
                    worker.held.add(unit.digest)
                else:
                    self.failed[number] = found
            self.hand_out()

    def end(self) -> None:
        """End all workers."""
        for worker in self.workers:
            worker.kill()
        for worker in list(self.workers):
            self._end(worker)

    def _end(self, worker: _Worker) -> None:
        worker.kill()
        worker.pipe.close()
        with suppress(ChildProcessError):  # the same
            os.waitpid(worker.pid, 0)
        self.workers.remove(worker)


def _bare(part: Part) -> Part:
    """The same without what it has worked out of its arrays: addresses are among that."""
    return replace(part)
