"""Change bundles under the load of a real vLLM: replaced, renamed, removed, broken, added; and take its store away.

    python -m benchmarks.vllm_rollouts --model FOLDER --bundles FOLDER [--minutes 10] [--clients 6]

The folder of bundles holds `answer.toolc` and `ends.toolc` as tests/engines/conftest.py makes them. Clients ask for
free text, for the bundle that stays, for one that changes all the time, for those that were just added, and, in
ordinary requests, for tools that the store holds or that nobody has asked for. The store is now and then a file where a
folder was. Prints one JSON line: answers by kind and status, invalid ones, and what the server's log calls an error. A
500 anywhere, an invalid answer, or a refused answer of a client that has nothing to do with the change makes the exit
status 1.

Leaves out   speed. Kills: see tests/engines.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.engines.serving import Server, environment, serving

PARAMETERS = {
    "type": "object",
    "properties": {"n": {"enum": [1, 2, 3]}},
    "required": ["n"],
    "additionalProperties": False,
}


class Load:
    """Clients, and one who changes bundles.

    Args:
        server: under load.
        folder: of its bundles.
    """

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.counts: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        self.added = "answer"
        """The name that came last."""
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def client(self, seed: int) -> None:
        """Ask until told to stop."""
        pick = random.Random(seed)
        while not self.stop.is_set():
            kind = pick.choice(["free", "stays", "changes", "added", "tools", "new tools"])
            more: dict[str, Any] = {"max_tokens": 24, "temperature": pick.choice([0, 1.0]), "seed": seed}
            name = f"tool{pick.randrange(1 << 30) if kind == 'new tools' else pick.randrange(3)}"
            if "tools" in kind:
                function = {"name": name, "parameters": PARAMETERS}
                more |= {"tools": [{"type": "function", "function": function}], "tool_choice": "required"}
                more |= {"parallel_tool_calls": False, "max_tokens": 80}
            elif kind != "free":
                bundle = {"stays": "answer", "changes": "changing", "added": self.added}[kind]
                more["vllm_xargs"] = {"toolc_bundle": bundle}
            try:
                status, answer = self.server.chat(f"Say something about the number {pick.randrange(99)}.", **more)
            except OSError as error:
                self._count(f"{kind} {type(error).__name__}")
                continue
            valid = status != 200 or kind == "free"
            valid = valid or (_is_call(answer, name) if "tools" in kind else _is_answer(answer))
            self._count(f"{kind} {status}{'' if valid else ' invalid'}")

    def _count(self, what: str) -> None:
        with self._lock:
            self.counts[what] += 1

    def owner(self, seed: int) -> None:
        """Change bundles, and the store, until told to stop."""
        pick, place = random.Random(seed), self.folder / "changing.toolc"
        good, other = self.folder / "answer.toolc", self.folder / "ends.toolc"
        store, away = self.folder.parent / "store", self.folder.parent / "away"
        while not self.stop.is_set():
            what = pick.choice(["copy", "rename", "remove", "break", "other", "copy", "add", "store"])
            if what in ("copy", "other"):
                shutil.copy(good if what == "copy" else other, place)  # in place
            elif what == "rename":
                _renamed(good, place)
            elif what == "add":
                _renamed(good, self.folder / f"added{self.changes['add']}.toolc")
                self.added = f"added{self.changes['add']}"
            elif what == "store":
                self._take_store(store, away, 3 * pick.random(), pick.random() < 0.5)
            elif what == "remove":
                place.unlink(missing_ok=True)
            else:
                place.write_bytes(good.read_bytes()[: pick.randrange(1000)])
            self.changes[what] += 1
            self.stop.wait(pick.random())

    def _take_store(self, store: Path, away: Path, seconds: float, comes_back: bool) -> None:
        """Put a file in the place of the store for some seconds; afterwards it is there again, or begins empty."""
        if not store.is_dir():
            return
        shutil.rmtree(away, ignore_errors=True)
        store.rename(away)
        try:
            store.write_text("no folder")
        except IsADirectoryError:
            return  # the server has made it again
        self.stop.wait(seconds)
        store.unlink()
        if comes_back:
            try:
                away.rename(store)
            except OSError:
                return  # the server has made it again


def _renamed(source: Path, place: Path) -> None:
    """Copy a file beside a place, then rename it."""
    fresh = place.with_suffix(".new")
    shutil.copy(source, fresh)
    os.replace(fresh, place)


def _is_call(answer: dict, name: str) -> bool:
    """Whether an answer is one call of a tool, as `PARAMETERS` say."""
    calls = answer["choices"][0]["message"].get("tool_calls") or []
    if [call["function"]["name"] for call in calls] != [name]:
        return False
    value = json.loads(calls[0]["function"]["arguments"])
    return set(value) == {"n"} and value["n"] in (1, 2, 3)


def _is_answer(answer: dict) -> bool:
    choice = answer["choices"][0]
    try:
        value = json.loads(choice["message"]["content"])
    except ValueError:
        return False
    return set(value) == {"n", "ok"} and choice["finish_reason"] in ("stop", "length")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=6)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "bundles"
        folder.mkdir()
        for path in given.bundles.iterdir():
            if path.suffix in (".toolc", ".vocab"):
                shutil.copy(path, folder)
        store = Path(scratch) / "store"
        variables = environment(TOOLC_BUNDLES=str(folder), TOOLC_STORE=str(store), VLLM_PLUGINS="toolc")
        arguments = ["--api-server-count", "2", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
        with serving(given.model, Path(scratch) / "log.txt", variables, arguments) as server:
            load = Load(server, folder)
            threads = [threading.Thread(target=load.client, args=(n,)) for n in range(given.clients)]
            threads.append(threading.Thread(target=load.owner, args=(0,)))
            for thread in threads:
                thread.start()
            time.sleep(60 * given.minutes)
            load.stop.set()
            for thread in threads:
                thread.join()
            lines = server.log.read_text(errors="replace").splitlines()
            metrics = {k: v for k, v in server.metrics().items() if k.startswith(("toolc:requests", "toolc:bundles"))}
    errors = [line for line in lines if "ERROR" in line]
    bad = [k for k in load.counts if not k.endswith(" 200") and (k[:7] != "changes" or not k.endswith(" 400"))]
    counts = {"changes": load.changes, "answers": load.counts, "metrics": metrics, "errors": len(errors)}
    print(json.dumps({"minutes": given.minutes, **counts, "load": os.getloadavg()[0]}))
    print(*errors[:5], sep="\n", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
