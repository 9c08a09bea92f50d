"""Whole commands and first masks, each in a new process: what of the wait is Python's, numba's and toolc's own start.

    python -m benchmarks.starts [--tokenizer FILE] [--repeat 9]

Prints one JSON line: the median wall seconds of each, with kernels compiled and parts kept before. The first two
compile and load nothing.

Leaves out   a machine's very first compile, which compiles the kernels (`toolc warmup` says how long that took).
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
    "required": ["city"],
    "additionalProperties": False,
}
_FIRST_MASK = """
import sys
import numpy as np
from toolc.runtime import Bundle, Matcher
bundle = Bundle.open(sys.argv[1])
Matcher(bundle).fill(np.zeros(bundle.vocab.words, np.uint32))
"""


def measure(repeat: int, tokenizer: str = "builtin") -> dict[str, float]:
    """Median wall seconds by what is run."""
    toolc = [sys.executable, "-m", "toolc.compiler.cli"]
    with tempfile.TemporaryDirectory() as folder:
        spec, bundle = Path(folder) / "spec.json", str(Path(folder) / "spec.toolc")
        spec.write_text(json.dumps(SCHEMA))
        commands = {
            "toolc --help": [*toolc, "--help"],
            "import numba": [sys.executable, "-c", "import numba"],
            "toolc compile": [*toolc, "compile", str(spec), "--tokenizer", tokenizer, "-o", bundle],
            "toolc inspect": [*toolc, "inspect", bundle],
            "open and first mask": [sys.executable, "-c", _FIRST_MASK, bundle],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(repeat + 1):
            for name, command in commands.items():
                begin = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                if turn:  # the first writes what is kept
                    seconds[name].append(time.perf_counter() - begin)
    return {name: round(statistics.median(found), 3) for name, found in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=9, help="measured runs of each")
    parser.add_argument("--tokenizer", default="builtin")
    given = parser.parse_args()
    print(json.dumps(measure(given.repeat, given.tokenizer)))


if __name__ == "__main__":
    main()
