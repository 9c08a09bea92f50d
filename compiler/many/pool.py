"""Jobs on the cores of this machine.

Leaves out   the jobs (job.py), progress (whoever takes the outcomes).
Invariants   every job has one outcome, in no order. A worker that dies (killed for memory, say) takes no other job with
             it: the jobs that were under way are done again one at a time, and one that kills its worker then has
             failed. When the caller stops, by Ctrl-C or by closing, the workers are ended; when it is killed, they end.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import NoReturn

from .job import FAILED, Job, Outcome, run_job

WINDOW = 4  # jobs handed out for each worker: none waits, and thousands are not held in memory


def run_local(jobs: Iterable[Job], workers: int) -> Iterator[Outcome]:
    """The outcomes of jobs, done by so many processes at once."""
    todo = iter(jobs)
    if workers == 1:
        yield from map(run_job, todo)
        return
    suspects: list[Job] = []
    while True:
        alone = bool(suspects)
        batch: Iterator[Job] = iter([suspects.pop()]) if alone else todo
        left = yield from _round(batch, 1 if alone else workers)
        if alone:
            for job in left:
                error = {"error": "WorkerDied", "message": "the process that compiled this was killed; out of memory?"}
                yield Outcome(job.name, job.tokenizer, FAILED, None, 0, 0.0, error)
        else:
            suspects += left
        if not suspects and not alone and not left:
            return


def _round(jobs: Iterator[Job], workers: int) -> Generator[Outcome, None, list[Job]]:
    """Outcomes until the jobs are done or a worker dies; returns the jobs that were under way then."""
    before = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin)
    running: dict[Future[Outcome], Job] = {}
    try:
        while True:
            for job in islice(jobs, max(0, workers * WINDOW - len(running))):
                try:
                    with _interrupts_held():  # a new worker begins with them held, until it ignores them
                        running[pool.submit(run_job, job)] = job
                except BrokenProcessPool:
                    return [*running.values(), job]
            if not running:
                return []
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    return list(running.values())
                del running[future]
                yield outcome
    finally:
        ended = not running
        pool.shutdown(wait=ended, cancel_futures=True)
        if not ended:
            for process in set(multiprocessing.active_children()) - before:
                process.terminate()
                process.join()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A Ctrl-C waits until the end, where the system can hold it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """In a worker: Ctrl-C is the business of the process that the person sees; kernels take one thread each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> NoReturn:
    """End this worker once its parent is gone: nobody else would, and it holds the output that a reader waits on."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)  # in the middle of a file this leaves one beside it, which stores sweep
