"""MaskBench: real JSON Schemas with valid and invalid instances, for toolc and its peers, one thread each.

    python -m benchmarks.maskbench toolc llguidance xgrammar --cases CASES --tokenizer tokenizer.json
    python -m benchmarks.maskbench toolc --cases cases.jsonl.gz --tokenizer tokenizer.json --limit 100 --out toolc.jsonl

CASES is the folder of MaskBench (github.com/guidance-ai/jsonschemabench), or one file of JSON lines, perhaps
compressed by gzip. A case is ``{"schema": …, "tests": [{"data": …, "valid": true}, …]}``. A test may say
``"order": true``: its keys stand in another order than the schema declares them.

Every instance is written by ``json.dumps``, tokenized, and fed token by token: the engine makes the mask of each
state, the benchmark reads the bit of the next token. A case passes if its schema compiles and each instance is
accepted or rejected as the case says. Prints a table in Markdown. Peers come from ``pip install llguidance xgrammar``.

Leaves out   other tokenizers and spellings of an instance; batches and devices: gpu_peers.py.
Invariants   an engine runs in a process of its own, which is killed after ``--seconds`` for one case.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.engine import end_of

Case = dict[str, Any]


class Engine(Protocol):
    """What is measured: `compile` and `open` a schema, `reset` before a text, `fill` and `advance` for each token."""

    def compile(self, schema: Any) -> None: ...
    def open(self) -> None: ...
    def reset(self) -> None: ...
    def fill(self, mask: np.ndarray) -> None: ...
    def advance(self, token: int) -> None: ...


class Toolc:
    """toolc, by a bundle in a file, with keys in the declared order or in any."""

    def __init__(self, path: str, end: int, key_order: str = "declared") -> None:
        from benchmarks.engine import make

        self._key_order = key_order
        self._engine, self._folder = make(path, end), tempfile.TemporaryDirectory()
        self._file = os.path.join(self._folder.name, "case.toolc")

    def compile(self, schema: Any) -> None:
        self._engine.compile(schema, self._file, self._key_order)

    def open(self) -> None:
        self._engine.load(self._file)
        self.reset, self.fill, self.advance = self._engine.reset, self._engine.fill, self._engine.advance


class Llguidance:
    """llguidance, which makes masks as they are asked for."""

    def __init__(self, path: str, end: int) -> None:
        import llguidance
        from llguidance.numpy import fill_next_token_bitmask

        self._new = llguidance.LLMatcher
        self._fill = fill_next_token_bitmask
        self._tokenizer = llguidance.LLTokenizer(Path(path).read_text(encoding="utf-8"), eos_token=end)

    def compile(self, schema: Any) -> None:
        self._first = self._new(self._tokenizer, json.dumps({"grammars": [{"json_schema": schema}]}))
        if self._first.is_error():
            raise ValueError(self._first.get_error())

    def open(self) -> None: ...

    def reset(self) -> None:
        self._matcher = self._first.deep_copy()

    def fill(self, mask: np.ndarray) -> None:
        self._fill(self._matcher, mask.view(np.int32).reshape(1, -1), 0)

    def advance(self, token: int) -> None:
        self._matcher.consume_token(token)


class Xgrammar:
    """XGrammar, by default as vLLM calls it: any blanks, and no members but those that the schema declares.

    Args:
        strict: leave out members that the schema does not declare; without, they are allowed, as the standard says.
    """

    def __init__(self, path: str, end: int, strict: bool = True) -> None:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast(tokenizer_file=path)
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer), stop_token_ids=[end])
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._new, self._strict = xgrammar.GrammarMatcher, strict

    def compile(self, schema: Any) -> None:
        self._grammar = self._compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=True, strict_mode=self._strict
        )

    def open(self) -> None: ...

    def reset(self) -> None:
        self._matcher = self._new(self._grammar)

    def fill(self, mask: np.ndarray) -> None:
        import torch

        mask[:] = 0xFFFFFFFF  # it leaves a mask alone where all is allowed
        self._matcher.fill_next_token_bitmask(torch.from_numpy(mask.view(np.int32)).reshape(1, -1), 0)

    def advance(self, token: int) -> None:
        self._matcher.accept_token(token)


ENGINES: dict[str, Callable[[str, int], Engine]] = {
    "toolc": Toolc,
    "toolc-any": lambda path, end: Toolc(path, end, "any"),
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "xgrammar-open": lambda path, end: Xgrammar(path, end, strict=False),
}


# -- in the process of an engine ---------------------------------------------------------------------------------------


def run_case(engine: Engine, encode: Callable[[str], list[int]], words: int, end: int, case: Case) -> dict[str, Any]:
    """What an engine does with a case.

    Args:
        encode: gives the tokens of a text.
        words: of a mask, 32 tokens each.
        end: the token that ends a turn.

    Returns:
        ``refused``: why it does not compile; or the number of tests in ``over`` (valid, not accepted), ``over_order``
        (the same, of tests that say ``order``) and ``under`` (invalid, accepted). ``compile``: seconds;
        ``steps``: microseconds of each mask with its step.
    """
    begin = time.perf_counter()
    try:
        engine.compile(case["schema"])
    except Exception as error:  # of any engine, for any reason: that is what is counted
        return {"refused": f"{type(error).__name__}: {error}"[:300], "compile": time.perf_counter() - begin}
    found: dict[str, Any] = {"compile": time.perf_counter() - begin, "over": 0, "over_order": 0, "under": 0}
    engine.open()
    steps: list[float] = []
    for test in case["tests"]:
        tokens = encode(json.dumps(test["data"], ensure_ascii=False))
        accepted = _accepts(engine, tokens, words, end, steps)
        if test["valid"] and not accepted:
            found["over_order" if test.get("order") else "over"] += 1
        elif accepted and not test["valid"]:
            found["under"] += 1
    return {**found, "steps": [round(step, 2) for step in steps]}


def _accepts(engine: Engine, tokens: list[int], words: int, end: int, steps: list[float]) -> bool:
    """Whether the masks allow all tokens and then the end; adds microseconds to ``steps``."""
    mask = np.zeros(words, np.uint32)
    engine.reset()
    for token in tokens:
        begin = time.perf_counter()
        engine.fill(mask)
        allowed = bool(mask[token >> 5] >> np.uint32(token & 31) & 1)
        if allowed:
            engine.advance(token)
        steps.append((time.perf_counter() - begin) * 1e6)
        if not allowed:
            return False
    engine.fill(mask)
    return bool(mask[end >> 5] >> np.uint32(end & 31) & 1)


def serve(name: str, tokenizer_path: str) -> None:
    """Run the cases that come as lines on stdin; answer each with a line."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(tokenizer_path)
    end, words = end_of(tokenizer), (tokenizer.get_vocab_size() + 31) // 32
    engine = ENGINES[name](tokenizer_path, end)
    answers, sys.stdout = sys.stdout, sys.stderr  # what an engine prints is no answer

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    engine.compile({"type": "object"})  # so that no case pays for what an engine prepares once
    engine.open()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(run_case(engine, encode, words, end, json.loads(line))), file=answers, flush=True)


# -- all cases ---------------------------------------------------------------------------------------------------------


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a folder of JSON files, or of a file of JSON lines."""
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            yield {"id": file.stem, **json.loads(file.read_bytes())}
        return
    data = path.read_bytes()
    yield from map(json.loads, (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines())


class Child:
    """An engine in a process of its own."""

    def __init__(self, name: str, tokenizer: str) -> None:
        command = [sys.executable, "-m", "benchmarks.maskbench", name, "--tokenizer", tokenizer, "--serve"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self._answer(600) is None:
            raise SystemExit(f"{name} does not start")

    def ask(self, case: Case, seconds: float) -> dict[str, Any] | None:
        """What the engine did with a case; None if it took longer or died: the process is no more, then."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(case) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:  # it died after its last answer
            self.stop()
            return None
        line = self._answer(seconds)
        return None if line is None else json.loads(line)

    def _answer(self, seconds: float) -> str | None:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.stop()
        return line or None

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


def results(name: str, tokenizer: str, cases: Iterable[Case], seconds: float) -> Iterator[dict[str, Any]]:
    """What an engine does with every case; one that takes too long is refused."""
    child: Child | None = None
    try:
        for case in cases:
            child = child or Child(name, tokenizer)
            found = child.ask(case, seconds)
            if found is None:
                child, found = None, {"refused": f"took more than {seconds} s, or died", "compile": seconds}
            yield {"id": case.get("id"), **found}
    finally:
        if child is not None:
            child.stop()


def summary(found: list[dict[str, Any]]) -> dict[str, float]:
    """Counts of cases and tests, seconds and microseconds over all cases of an engine.

    ``passed``: cases; ``over``, ``over_order``, ``under``: tests; ``refused``: cases; ``compile_p50``,
    ``compile_average``: milliseconds, refused cases included; ``step_average``, ``step_p999``: microseconds.
    """
    counts = {key: sum(one.get(key, 0) for one in found) for key in ("over", "over_order", "under")}
    wrong = [one for one in found if "refused" in one or any(one[key] for key in counts)]
    times = [one["compile"] * 1e3 for one in found]
    steps = sorted(step for one in found for step in one.get("steps", ()))
    return {
        "cases": len(found),
        "passed": len(found) - len(wrong),
        "passed_but_order": len(found) - sum("refused" in one or one["over"] + one["under"] > 0 for one in found),
        **counts,
        "refused": sum("refused" in one for one in found),
        "compile_p50": statistics.median(times) if times else 0.0,
        "compile_average": statistics.fmean(times) if times else 0.0,
        "step_average": statistics.fmean(steps) if steps else 0.0,
        "step_p50": steps[len(steps) // 2] if steps else 0.0,
        "step_p999": steps[int(len(steps) * 0.999)] if steps else 0.0,
    }


def table(of: dict[str, dict[str, float]]) -> str:
    """The summaries of engines as a table in Markdown."""

    def row(text: str, said: Callable[[dict[str, float]], str]) -> str:
        return f"| {text} | " + " | ".join(said(one) for one in of.values()) + " |"

    def share(one: dict[str, float], key: str) -> str:
        return f"{100 * one[key] / max(one['cases'], 1):.1f}%"

    return "\n".join(
        [
            "| | " + " | ".join(of) + " |",
            "|" + "---|" * (len(of) + 1),
            row("cases passed", lambda one: share(one, "passed")),
            row("cases passed, but for the order of keys", lambda one: share(one, "passed_but_order")),
            row("invalid instances accepted", lambda one: f"{one['under']:.0f}"),
            row("valid instances rejected, but for the order of keys", lambda one: f"{one['over']:.0f}"),
            row("valid instances rejected for the order of keys", lambda one: f"{one['over_order']:.0f}"),
            row("schemas refused", lambda one: f"{one['refused']:.0f}"),
            row("compile, ms: p50, average", lambda one: f"{one['compile_p50']:.1f}, {one['compile_average']:.1f}"),
            row(
                "mask and step, µs: average, p50, p99.9",
                lambda one: f"{one['step_average']:.1f}, {one['step_p50']:.1f}, {one['step_p999']:,.0f}",
            ),
        ]
    )


def main(arguments: list[str] | None = None) -> None:
    """Read the arguments, run every engine over the cases, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="+", choices=ENGINES, metavar="ENGINE", help=", ".join(ENGINES))
    parser.add_argument("--cases", type=Path, help="folder of JSON files, or a file of JSON lines")
    parser.add_argument("--tokenizer", required=True, help="tokenizer.json")
    parser.add_argument("--limit", type=int, help="so many of the cases, evenly chosen")
    parser.add_argument("--seconds", type=float, default=30.0, help="that a case may take (default 30)")
    parser.add_argument("--out", type=Path, help="file for a line of JSON a case and engine")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.engines[0], options.tokenizer)
        return
    if options.cases is None:
        parser.error("--cases is missing")
    cases = list(read_cases(options.cases))
    if options.limit and options.limit < len(cases):
        cases = [cases[n * len(cases) // options.limit] for n in range(options.limit)]
    of, lines = {}, []
    for name in options.engines:
        found = list(results(name, options.tokenizer, cases, options.seconds))
        of[name] = summary(found)
        lines += [json.dumps({"engine": name, **one}) + "\n" for one in found]
        print(f"{name}: {len(found)} cases", file=sys.stderr, flush=True)
    if options.out:
        options.out.write_text("".join(lines), encoding="utf-8")
    print(table(of))


if __name__ == "__main__":
    main()
