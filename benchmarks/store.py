"""Soak of stores: processes that compile, put, get, push, load and evict, some of them killed at random moments.

    python -m benchmarks.store [--seconds 300] [--processes 8]

There are three places: a folder with a size limit that is always passed, a place without locks or whole writes (a
folder by way of fsspec), and a cache in front of it. Every bundle that anyone gets must be the one that its key
stands for, compiled before the soak began. In the two folders a sound bundle or none is ever found; in the third a
half-written one is refused. In the end every file that is left must be sound in the folders, and every bundle can be
put and got anew everywhere. Prints one JSON line: counts of what was done, mean times, and ``wrong``, which must be
empty.

Leaves out   real networks: tests/store/test_remote.py has S3 and HTTP over loopback.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from toolc.compiler import Compiled, compile_schema
from toolc.compiler.lift.vocab import load_vocab
from toolc.runtime import Bundle, BundleError, Store, StoreError, Vocab, load, open_store

ACTS = ("compile", "put", "get", "push", "load", "prune", "absent", "refused")
SPECS = 24


def made(number: int, vocab: Vocab) -> Compiled:
    """The bundle of a tiny spec."""
    return compile_schema({"enum": [number, str(number), {"n": number}]}, vocab, name=f"{number}.json")


class Soak:
    """The places, and what belongs into them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vocab = load_vocab("builtin")
        compiled = [made(number, self.vocab) for number in range(SPECS)]
        self.keys = [str(one.report["key"]) for one in compiled]
        self.digests = [one.bundle.digest for one in compiled]
        one = max(len(c.bundle.encode()) for c in compiled)
        self.least = len(self.vocab.encode())
        self.limit = self.least + one * SPECS // 2
        self.wrong = folder / "wrong"
        self.wrong.touch()

    def local(self) -> Store:
        return open_store(self.folder / "local", self.limit)

    def remote(self) -> Store:
        return open_store(f"local://{self.folder}/remote")

    def check(self, number: int, bundle: Bundle) -> None:
        """Note a bundle that is not the one of its key."""
        if bundle.digest != self.digests[number]:
            self.note(f"{bundle.name} is not bundle {number}")

    def note(self, text: str) -> None:
        with open(self.wrong, "a") as file:
            file.write(text.replace("\n", " ") + "\n")


def worker(soak: Soak, seed: int, until: float, counts: Any, times: Any) -> None:
    """Act at random until the time has come."""
    rng = random.Random(seed)
    local, remote = soak.local(), soak.remote()
    cache = soak.folder / "cache"
    while time.time() < until:
        act = rng.choices(ACTS[:6], (4, 6, 20, 4, 10, 1))[0]
        number = rng.randrange(SPECS)
        key = soak.keys[number]
        begin = time.perf_counter()
        try:
            if act == "compile":
                compiled = made(number, soak.vocab)
                soak.check(number, compiled.bundle)
                local.put(compiled.bundle)
            elif act == "put":
                local.put(local.get(soak.keys[(number + 1) % SPECS]))
            elif act == "get":
                soak.check(number, local.get(key))
            elif act == "push":
                remote.put(local.get(key))
            elif act == "load":
                soak.check(number, load(remote, key, cache=cache, cache_bytes=soak.limit))
            else:
                most = 0 if rng.random() < 0.05 else rng.randrange(soak.least, soak.limit)
                (local if rng.random() < 0.7 else remote).prune(max_bytes=most)
        except StoreError as error:
            act = "absent"
            if "does not hold this bundle" not in error.message:
                soak.note(f"{act}: {error}")
        except BundleError as error:
            if act == "load":  # another is just writing it, or was killed while it did
                act = "refused"
            else:
                soak.note(f"{act}: {error}")
        except Exception as error:
            soak.note(f"{act}: {type(error).__name__}: {error}")
        at = ACTS.index(act)
        counts[at] += 1
        times[at] += time.perf_counter() - begin


def run(folder: Path, seconds: float, processes: int, seed: int = 0) -> dict[str, Any]:
    """Soak a folder; see the top."""
    soak = Soak(folder)
    context = multiprocessing.get_context("fork")  # the kernels are loaded
    rng = random.Random(seed)
    until = time.time() + seconds
    tallies: list[tuple[Any, Any]] = []

    def start(number: int) -> Any:
        counts, times = (
            context.RawArray("q", len(ACTS)),
            context.RawArray("d", len(ACTS)),
        )  # without locks: they may die
        tallies.append((counts, times))
        process = context.Process(target=worker, args=(soak, seed + number, until, counts, times), daemon=True)
        process.start()
        return process

    running = [start(number) for number in range(processes)]
    killed = 0
    while time.time() < until:
        time.sleep(min(rng.uniform(0.05, 0.4), max(0.0, until - time.time())))
        victim = rng.randrange(processes)
        if time.time() < until and running[victim].is_alive():
            os.kill(running[victim].pid, signal.SIGKILL)
            running[victim].join()
            killed += 1
            running[victim] = start(processes + killed)
    for process in running:
        process.join(60)
        if process.is_alive():
            soak.note(f"process {process.pid} hangs")
            process.kill()
    half = soak.local().prune().half_written
    left = 0
    for place in (soak.folder / "local", soak.folder / "cache"):
        store = open_store(place)
        store.prune()
        for row in store.list():
            soak.check(soak.keys.index(row.key), store.get(row.key))
            left += 1
        if list(place.glob(".*.tmp")):
            soak.note(f"a half-written file stays in {place.name}")
    for number in range(SPECS):
        bundle = made(number, soak.vocab).bundle
        soak.local().put(bundle)
        soak.check(number, soak.local().get(soak.keys[number]))
        soak.remote().put(bundle)
        soak.check(number, soak.remote().get(soak.keys[number]))
    counts = {act: sum(tally[0][i] for tally in tallies) for i, act in enumerate(ACTS)}
    spent = {act: sum(tally[1][i] for tally in tallies) for i, act in enumerate(ACTS)}
    return {
        "seconds": round(seconds, 1),
        "processes": processes,
        "killed": killed,
        **counts,
        "ms": {act: round(1e3 * spent[act] / counts[act], 2) for act in ACTS if counts[act]},
        "half_written_swept_in_the_end": half,
        "left_and_sound": left,
        "wrong": soak.wrong.read_text().splitlines()[:20],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(Path(folder), options.seconds, options.processes, options.seed)))


if __name__ == "__main__":
    main()
