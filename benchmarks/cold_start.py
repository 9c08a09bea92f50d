"""The first compile on a machine: processor and wall seconds of a command with no kernels and no parts kept.

    python -m benchmarks.cold_start [--command "toolc compile SPEC"] [--most 60]

Prints one JSON line. With ``--most`` it fails if the command took more processor seconds, those of its own processes
included; other work on the machine raises them, too. In an environment that has toolc from a wheel of `make wheel`,
kernels are loaded; in a checkout numba compiles them.

Leaves out   starts with all of it kept: see starts.py.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPEC = Path(__file__).parents[1] / "tools_specs" / "weather.json"


def measure(command: list[str]) -> dict[str, float]:
    """Seconds of a command in an empty folder, with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        caches = {"NUMBA_CACHE_DIR": f"{folder}/kernels", "TOOLC_CACHE": f"{folder}/cache"}
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, cwd=folder, env={**os.environ, **caches}, check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"processor": round(used, 1), "wall": round(wall, 1)}


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--command", default=f"{sys.executable} -m toolc.compiler.cli compile {SPEC}")
    parser.add_argument("--most", type=float, help="processor seconds that it may take")
    options = parser.parse_args()
    found = measure(shlex.split(options.command))
    print(json.dumps(found))
    if options.most is not None and found["processor"] > options.most:
        sys.exit(f"more than {options.most} processor seconds")


if __name__ == "__main__":
    main()
