"""Time the first compile of a list of tools, to its first mask, for toolc and its peers, one thread each.

    python -m benchmarks.many_tools toolc llguidance xgrammar --tokenizer qwen3.json [--sizes 1,16,128,400] [--repeat 3]

The tools are those of growth.py: ten properties each. They are called in the format of Hermes and Qwen 3: toolc's
protocol hermes, XGrammar's structural tag "qwen_3", and for llguidance a Lark grammar with a `%json` for each tool.
Engines take turns; each run has a process of its own, in which the tokenizer and one tool of no list went before.
Prints a table in Markdown: seconds, medians. Peers come from ``pip install llguidance xgrammar transformers``.

Leaves out   masks after the first, which llguidance makes as they are asked for; memory and size: growth.py.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.engine import end_of
from benchmarks.growth import tool

Tools = list[dict[str, Any]]
Compile = Callable[[Tools], object]
"""Compiles tools and makes the first mask."""

_CALL = '"{\\"name\\": \\"%s\\", \\"arguments\\": " %%json %s "}"'


def toolc(path: str, end: int) -> Compile:
    """toolc, from the spec to a bundle in memory."""
    import numpy as np

    from benchmarks.engine import compile_tools
    from toolc.runtime import Matcher

    def compiled(tools: Tools) -> None:
        bundle = compile_tools(path, end, tools).bundle
        Matcher(bundle).fill(np.zeros(bundle.vocab.words, np.uint32))

    return compiled


def llguidance(path: str, end: int) -> Compile:
    """llguidance: one Lark grammar."""
    import llguidance as llg
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    tokenizer = llg.LLTokenizer(Path(path).read_text(encoding="utf-8"), eos_token=end)

    def compiled(tools: Tools) -> None:
        functions = [one["function"] for one in tools]
        calls = [_CALL % (one["name"], json.dumps(one["parameters"])) for one in functions]
        rules = [f"call: {' | '.join(f'f{n}' for n in range(len(calls)))}"]
        rules += [f"f{n}: {call}" for n, call in enumerate(calls)]
        start = 'start: (<tool_call> "\\n" call "\\n" </tool_call> "\\n"?)+'
        matcher = llg.LLMatcher(tokenizer, llg.LLMatcher.grammar_from_lark("\n".join([start, *rules])))
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        fill_next_token_bitmask(matcher, allocate_token_bitmask(1, tokenizer.vocab_size), 0)

    return compiled


def xgrammar(path: str, end: int) -> Compile:
    """XGrammar: its own structural tag for Qwen 3."""
    import xgrammar as xgr
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=path)
    info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer), stop_token_ids=[end])

    def compiled(tools: Tools) -> None:
        compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        tag = xgr.get_model_structural_tag("qwen_3", tools=tools, reasoning=False)
        matcher = xgr.GrammarMatcher(compiler.compile_structural_tag(tag))
        matcher.fill_next_token_bitmask(xgr.allocate_token_bitmask(1, len(tokenizer)))

    return compiled


ENGINES: dict[str, Callable[[str, int], Compile]] = {"toolc": toolc, "llguidance": llguidance, "xgrammar": xgrammar}


def seconds(engine: str, path: str, size: int) -> float:
    """Compile so many tools in this process; one further tool is compiled before the clock starts."""
    from tokenizers import Tokenizer

    compiled = ENGINES[engine](path, end_of(Tokenizer.from_file(path)))
    compiled([tool(size)])
    tools = [tool(number) for number in range(size)]
    begin = time.perf_counter()
    compiled(tools)
    return time.perf_counter() - begin


def in_child(engine: str, path: str, size: int, most: float) -> float | str:
    """The same in a process of its own, with an empty cache and one thread; or why there is no time."""
    command = [sys.executable, "-m", "benchmarks.many_tools", engine, "--tokenizer", path, "--sizes", str(size)]
    one = dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **one, "TOOLC_CACHE": cache}
        try:
            done = subprocess.run(
                [*command, "--child"], env=environment, stdout=subprocess.PIPE, text=True, timeout=most
            )
        except subprocess.TimeoutExpired:
            return f"over {most:g} s"
    return float(done.stdout.splitlines()[-1]) if done.returncode == 0 else "failed"


def table(found: dict[int, dict[str, list[float | str]]]) -> str:
    """Medians as a table in Markdown.

    Args:
        found: number of tools → engine → seconds of each run, or why there are none.
    """
    engines = list(next(iter(found.values())))
    lines = ["| tools | " + " | ".join(f"{name}, s" for name in engines) + " |", "|" + "---|" * (len(engines) + 1)]
    for size, by_engine in found.items():
        cells = []
        for runs in by_engine.values():
            whole = [run for run in runs if not isinstance(run, str)]
            faults = [run for run in runs if isinstance(run, str)]
            cells.append(faults[0] if faults else f"{statistics.median(whole):.3g}")
        lines.append(f"| {size} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments, let the engines take turns, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="+", choices=ENGINES, metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json with <tool_call> among its tokens")
    parser.add_argument("--sizes", default="1,16,128,400", help="numbers of tools")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each engine and size")
    parser.add_argument("--seconds", type=float, default=600.0, help="that one run may take")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    sizes = [int(size) for size in options.sizes.split(",")]
    if options.child:
        print(seconds(options.engines[0], options.tokenizer, sizes[0]))
        return
    found: dict[int, dict[str, list[float | str]]] = {}
    for size in sizes:
        found[size] = {engine: [] for engine in options.engines}
        for _ in range(options.repeat):
            for engine in options.engines:
                found[size][engine].append(in_child(engine, options.tokenizer, size, options.seconds))
    print(table(found))


if __name__ == "__main__":
    main()
