"""What constraints cost a real vLLM: CPU seconds per token, counted in its processes, beside its own backends.

    python -m benchmarks.vllm_cpu --model FOLDER --bundles FOLDER [--backend xgrammar] [--batches 1,16] [--runs 5]

One server of the V1 runner has toolc and one of vLLM's backends; the arms take turns: toolc, the backend, none. All
ask for the same: the schema of `answer.toolc` (tests/engines/conftest.py), the same prompts, greedy. Prints one JSON
line a batch and arm: microseconds inside the constraint per token (admission, compiling, filling, accepting, applying)
and of all processes per token, medians over the runs, and what the first run took, which compiles.

Leaves out   the GPU. Other schemas: the masks of this one are small.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.engines.conftest import ANSWER
from tests.engines.serving import Server, environment, serving

WATCH = Path(__file__).parent / "watch"


def read(folder: Path) -> dict[str, float]:
    """Seconds by stage, and of all processes."""
    time.sleep(0.6)  # they write four times a second
    sums: dict[str, float] = {}
    for path in folder.glob("*.json"):
        for stage, value in json.loads(path.read_text()).items():
            sums[stage] = sums.get(stage, 0.0) + (value if isinstance(value, float | int) else value[1])
    return sums


def run(server: Server, arm: str, batch: int) -> int:
    """Ask a batch of requests at once; returns how many tokens were written."""
    more: dict[str, Any] = {"max_tokens": 32}
    if arm == "toolc":
        more["vllm_xargs"] = {"toolc_bundle": "answer"}
    elif arm != "none":
        schema = {"name": "answer", "schema": ANSWER}
        more["response_format"] = {"type": "json_schema", "json_schema": schema}

    def one(n: int) -> int:
        status, answer = server.chat(f"Give me a number below ten. Question {n}.", **more)
        assert status == 200, answer
        return int(answer["usage"]["completion_tokens"])

    with ThreadPoolExecutor(batch) as pool:
        return sum(pool.map(one, range(batch)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--bundles", type=Path, required=True)
    parser.add_argument("--backend", default="xgrammar", choices=["xgrammar", "guidance"])
    parser.add_argument("--batches", default="1,16")
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    arms = ("toolc", given.backend, "none")
    with tempfile.TemporaryDirectory() as scratch:
        watch = Path(scratch) / "watch"
        watch.mkdir()
        path = os.pathsep.join([str(WATCH), *filter(None, [os.environ.get("PYTHONPATH")])])
        variables = environment(TOOLC_BUNDLES=str(given.bundles), TOOLC_WATCH=str(watch), PYTHONPATH=path)
        arguments = ["--structured-outputs-config.backend", given.backend, "--max-num-seqs", "64"]
        with serving(given.model, Path(scratch) / "log.txt", variables, arguments) as server:
            for batch in map(int, given.batches.split(",")):
                inside: dict[str, list[float]] = {arm: [] for arm in arms}
                whole: dict[str, list[float]] = {arm: [] for arm in arms}
                for _ in range(given.runs + 1):
                    for arm in arms:
                        before = read(watch)
                        tokens = run(server, arm, batch)
                        spent = {stage: value - before[stage] for stage, value in read(watch).items()}
                        mine = "toolc" if arm == "toolc" else "own"
                        constraint = sum(s for stage, s in spent.items() if stage.startswith(mine))
                        inside[arm].append(0.0 if arm == "none" else 1e6 * constraint / tokens)
                        whole[arm].append(1e6 * spent["process"] / tokens)
                for arm in arms:
                    shown = {"batch": batch, "arm": arm, "us_per_token": statistics.median(inside[arm][1:])}
                    shown |= {"first": inside[arm][0], "all_processes_us_per_token": statistics.median(whole[arm][1:])}
                    rounded = {k: round(v, 1) if isinstance(v, float) else v for k, v in shown.items()}
                    print(json.dumps({**rounded, "load": os.getloadavg()[0]}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
