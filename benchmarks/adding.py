"""What one more tool costs: N tools compiled with nothing kept, then the same and one more.

    python benchmarks/adding.py --tools ../shared/bench/tools.py --tokenizer ../shared/tokenizers/qwen3.json

Prints one JSON line a size: CPU seconds of the full compile, of adding a tool (the median of a few), their ratio, and
of adding one where a new process has only the files.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from toolc.compiler import Options, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.link import cache
from toolc.compiler.schema import cached_rules as pieces


def _seconds(tools: list[Any], vocab: Any, options: Options) -> tuple[float, dict[str, Any]]:
    begin = time.process_time()
    compiled = compile_tools(tools, vocab, options=options)
    return time.process_time() - begin, compiled.report


def _forget() -> None:
    """Know what a new process does."""
    cache.forget()
    pieces.forget()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--eos", default="<|im_end|>")
    parser.add_argument("--sizes", default="16,128,400")
    parser.add_argument("--protocol", default="hermes")
    parser.add_argument("--named", action="store_true", help="an entry for every tool")
    given = parser.parse_args()
    spec = importlib.util.spec_from_file_location("tools", given.tools)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vocab = load_vocab(given.tokenizer, [given.eos])
    options = Options(protocol=given.protocol, named=given.named, budget=Budget(seconds=None), jobs=1)
    compile_tools(module.make_tools(1, 999), vocab, options=options)
    for size in map(int, given.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TOOLC_CACHE"] = folder
            _forget()
            full, report = _seconds(module.make_tools(size, 0), vocab, options)
            more = module.make_tools(size + 3, 0)
            added = [_seconds(more[: size + k], vocab, options) for k in (1, 2, 3)]
            _forget()
            read, _ = _seconds(more[: size + 2] + module.make_tools(1, 5), vocab, options)
        median = statistics.median(seconds for seconds, _ in added)
        print(
            json.dumps(
                {
                    "tools": size,
                    "full_s": round(full, 3),
                    "added_s": round(median, 3),
                    "ratio": round(median / full, 4),
                    "added_from_files_s": round(read, 3),
                    "bytes": report["bytes"],
                    "states": report["counts"]["states"],
                    "parts": added[-1][1]["parts"],
                    "stages_added": added[-1][1]["seconds"],
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
