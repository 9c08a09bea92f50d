"""``make bench``: the benchmarks that need nothing but this repository, then those whose data is there.

    python -m benchmarks [--shared ../shared]

Each prints one JSON line. The table of MaskBench beside the peers is made by maskbench.py; those of batches and of many
tools come from the harnesses in the shared folder, which take
``benchmarks/engine.py`` as the engine "toolc"; the commands are printed at the end.

Leaves out   the benchmarks themselves: decodes.py, starts.py, host.py, bfcl.py, engine.py; law.py, which takes most of
             an hour; growth.py, store.py, speculate_paper.py and speculate_soak.py, which take many minutes;
             answers.py and tooldec, which need a trained model.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

SPECS = Path(__file__).resolve().parent.parent / "tools_specs"


def run(*arguments: str) -> int:
    """One benchmark in a process of its own; its exit status."""
    print("#", "python -m", *arguments, flush=True)
    return subprocess.run([sys.executable, "-m", *arguments], check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"), help="where cases and tokenizers are")
    shared = parser.parse_args().shared
    status = 0
    for spec in ("weather.json", "tree_schema.json"):
        status |= run("benchmarks.decodes", str(SPECS / spec), "--count", "200")
    status |= run("benchmarks.tool_errors", "--count", "50")
    status |= run("benchmarks.starts")
    for spec in ("weather.json", "shop_openapi.json"):
        status |= run("benchmarks.decodes", str(SPECS / spec), "--count", "200", "--budget", "200")
    status |= run("benchmarks.equality", "--steps", "300", "--compiled", "30")
    cases, tokenizer = shared / "data" / "maskbench_dev.jsonl", shared / "tokenizers" / "llama3.json"
    if cases.exists() and tokenizer.exists():
        status |= run("benchmarks.host", "--cases", str(cases), "--tokenizer", str(tokenizer))
        peers = f"toolc llguidance xgrammar --cases {cases} --tokenizer {tokenizer}"
        print(f"# beside the peers: python -m benchmarks.maskbench {peers}")
    else:
        print(f"# {shared} holds no cases: benchmarks.host and the comparison are left out")
    print("# minutes each: python -m benchmarks.growth, .store, .speculate_paper, .speculate_soak")
    return status


if __name__ == "__main__":
    sys.exit(main())
