"""Change bundles under the load of a real vLLM: replaced, renamed, removed, broken, added again, for some minutes.

    python -m benchmarks.vllm_rollouts --model FOLDER --bundles FOLDER [--minutes 10] [--clients 6]

The folder of bundles holds `answer.toolc` and `ends.toolc` as tests/engines/conftest.py makes them. Clients ask for
free text, for the bundle that stays, and for one that changes all the time. Prints one JSON line: answers by kind and
status, invalid ones, and what the server's log calls an error. A 500 anywhere, an invalid answer, or a refused answer
of a client that has nothing to do with the change makes the exit status 1.

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

from tests.engines.serving import Server, environment, serving


class Load:
    """Clients, and one who changes bundles.

    Args:
        server: under load.
        folder: of its bundles.
    """

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.counts: Counter[str] = Counter()
        self.changes = 0
        self.stop = threading.Event()
        self._lock = threading.Lock()

    def client(self, seed: int) -> None:
        """Ask until told to stop."""
        pick = random.Random(seed)
        while not self.stop.is_set():
            kind = pick.choice(["free", "stays", "changes"])
            more: dict[str, object] = {"max_tokens": 24, "temperature": pick.choice([0, 1.0]), "seed": seed}
            if kind != "free":
                more["vllm_xargs"] = {"toolc_bundle": "answer" if kind == "stays" else "changing"}
            status, answer = self.server.chat(f"Say something about the number {pick.randrange(99)}.", **more)
            valid = status != 200 or kind == "free" or _is_answer(answer)
            with self._lock:
                self.counts[f"{kind} {status}{'' if valid else ' invalid'}"] += 1

    def owner(self, seed: int) -> None:
        """Change the bundle until told to stop."""
        pick, place = random.Random(seed), self.folder / "changing.toolc"
        good, other = self.folder / "answer.toolc", self.folder / "ends.toolc"
        while not self.stop.is_set():
            what = pick.choice(["copy", "rename", "remove", "break", "other", "copy"])
            if what in ("copy", "other"):
                shutil.copy(good if what == "copy" else other, place)  # in place
            elif what == "rename":
                fresh = place.with_suffix(".new")
                shutil.copy(good, fresh)
                os.replace(fresh, place)
            elif what == "remove":
                place.unlink(missing_ok=True)
            else:
                place.write_bytes(good.read_bytes()[: pick.randrange(1000)])
            self.changes += 1
            self.stop.wait(pick.random())


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
        variables = environment(TOOLC_BUNDLES=str(folder))
        with serving(given.model, Path(scratch) / "log.txt", variables, ["--api-server-count", "2"]) as server:
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
    errors = [line for line in lines if "ERROR" in line]
    bad = [k for k in load.counts if "invalid" in k or " 5" in k or (k.split()[1] != "200" and k[:7] != "changes")]
    shown = {
        "minutes": given.minutes,
        "changes": load.changes,
        **load.counts,
        "errors": len(errors),
        "load": os.getloadavg(),
    }
    print(json.dumps({**shown, "load": os.getloadavg()[0]}))
    print(*errors[:5], sep="\n", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
