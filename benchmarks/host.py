"""Fill and advance of one sequence on the host, first uses of every row included, and the opening of bundles.

    python -m benchmarks.host --cases ../shared/data/maskbench_dev.jsonl --tokenizer ../shared/tokenizers/llama3.json

The same loop as the shared maskbench.py in one process: compile, write, open, step through every instance. Prints one
JSON line: microseconds of fill + advance per token, milliseconds of opening up to the first mask.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from toolc.compiler.options import Options
from toolc.compiler.pipeline import compile_schema
from toolc.runtime import Bundle, Matcher, ToolcError

from .engine import end_of, vocab_of


def quantiles(values: list[float]) -> dict[str, float]:
    found = {f"p{q}": round(float(np.percentile(values, q)), 2) for q in (50, 90, 99, 99.9, 99.99, 100)}
    return {"avg": round(float(np.mean(values)), 2), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--limit", type=int, default=60)
    a = parser.parse_args()
    tokenizer = Tokenizer.from_file(a.tokenizer)
    vocab = vocab_of(a.tokenizer, end_of(tokenizer))
    mask = np.zeros(vocab.words, np.uint32)
    steps: list[float] = []
    opened: list[float] = []
    size: list[int] = []
    with tempfile.TemporaryDirectory() as folder, open(a.cases) as lines:
        for number, line in zip(range(a.limit), lines):
            case = json.loads(line)
            path = Path(folder) / f"{number}.toolc"
            try:
                compile_schema(case["schema"], vocab, options=Options()).write(path)
            except ToolcError:
                continue
            begin = time.perf_counter()
            matcher = Matcher(Bundle.open(path, vocab))
            matcher.fill(mask)
            opened.append((time.perf_counter() - begin) * 1e3)
            size.append(path.stat().st_size)
            for test in case["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False)
                matcher.reset()
                for token in tokenizer.encode(text, add_special_tokens=False).ids:
                    mask[:] = 0xAAAAAAAA
                    begin = time.perf_counter()
                    matcher.fill(mask)
                    spent = time.perf_counter() - begin
                    fine = mask[token >> 5] >> np.uint32(token & 31) & np.uint32(1)
                    if fine:
                        begin = time.perf_counter()
                        matcher.advance(token)
                        spent += time.perf_counter() - begin
                    steps.append(spent * 1e6)
                    if not fine:
                        break
    # The first bundle pays for the vocabulary's bitmaps and the kernels' loading.
    result = {"cases": len(opened), "tokens": len(steps), "step_us": quantiles(steps)}
    result |= {"open_ms": quantiles(opened[1:]), "bundle_kb": quantiles([s / 1024 for s in size])}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
