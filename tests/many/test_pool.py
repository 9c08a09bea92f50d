"""The process pool: every job has one outcome, whatever becomes of the workers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.many import job as job_module
from toolc.compiler.many import pool
from toolc.compiler.many.job import COMPILED, FAILED, REUSED, Job, Outcome, run_job
from toolc.compiler.options import Options
from toolc.runtime import open_store

ROOT = Path(__file__).parents[2]
ENDLESS = f"""
from {__name__} import _endless, _jobs
from toolc.compiler.many import pool
if __name__ == "__main__":
    pool.run_job = _endless
    for outcome in pool.run_local(_jobs(["one", "two", "endless", "endless"]), 2):
        print(outcome.spec, flush=True)
"""


def _deadly(job: Job) -> Outcome:
    """A job that is killed, as for want of memory; the others do nothing."""
    if "deadly" in job.name:
        os.kill(os.getpid(), signal.SIGKILL)
    return Outcome(job.name, job.tokenizer, COMPILED, None, 0, 0.0)


def _endless(job: Job) -> Outcome:
    """A job that would outlive any test; the others do nothing."""
    if job.name == "endless":
        time.sleep(3600)
    return Outcome(job.name, job.tokenizer, COMPILED, None, 0, 0.0)


def _jobs(names: list[str]) -> list[Job]:
    return [Job(name, None, "builtin", "0" * 32, Options(), "s") for name in names]


def test_a_worker_that_dies_takes_no_other_job_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "run_job", _deadly)
    names = [f"{'deadly' if number in (3, 11) else 'fine'}{number}" for number in range(14)]
    outcomes = {one.spec: one.status for one in pool.run_local(iter(_jobs(names)), 2)}
    assert outcomes == {name: FAILED if "deadly" in name else COMPILED for name in names}


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_when_their_parent_is_killed(kind: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        first = {process.stdout.readline() for _ in range(2)}
        process.send_signal(kind)
        process.communicate(timeout=60)  # not before the last process that holds the output has ended
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert first == {"one\n", "two\n"} and process.returncode == -kind


def test_a_bug_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(job: Job) -> tuple[str, str, int]:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(job_module, "_run", broken)
    (outcome,) = pool.run_local(_jobs(["x"]), 1)
    assert outcome.status == FAILED and outcome.error is not None
    assert outcome.error["error"] == "ZeroDivisionError" and "_run" in outcome.error["traceback"]


def test_a_job_needs_no_file_but_the_store(tmp_path: Path) -> None:
    store, vocab = open_store(tmp_path / "s"), load_vocab("builtin")
    store.put_vocab(vocab)
    for name, data in (("gone.json", json.dumps({"const": 1}).encode()), ("gone.lark", b'start: "x"\n')):
        job = Job(name, data, "builtin", vocab.digest, Options(), str(tmp_path / "s"))
        first, second = run_job(job), run_job(job)
        assert (first.status, second.status) == (COMPILED, REUSED) and first.key == second.key, first.error
        assert first.key is not None and store.get(first.key).vocab.digest == vocab.digest


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held here")
def test_workers_begin_with_ctrl_c_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is sent to all of a terminal's processes ended workers with tracebacks before they ignored it."""
    from multiprocessing import util

    start, held = util.spawnv_passfds, []

    def started(path: bytes, arguments: list[object], *rest: object) -> int:
        if any("spawn_main" in str(one) for one in arguments):
            held.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        return start(path, arguments, *rest)

    monkeypatch.setattr(util, "spawnv_passfds", started)
    monkeypatch.setattr(pool, "run_job", _deadly)
    assert len(list(pool.run_local(iter(_jobs(["a", "b", "c"])), 2))) == 3
    assert held and all(held) and signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
