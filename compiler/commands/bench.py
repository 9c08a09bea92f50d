"""``toolc bench``: compile and step times on the specs that toolc brings along, beside the peers that are installed.

Every schema is compiled by every engine, one thread each. Texts are random walks of a toolc matcher, cut by the
tokenizer as any text is; an engine fills the mask and reads the token, and is timed over both. ``stopped`` counts
texts of which an engine does not allow a token: its own reading of the schema (key order, blanks), not an error of
either.

Leaves out   correctness: see benchmarks/. Batches and devices: see docs/runtime.md.
Invariants   toolc compiles into a file and steps what was opened from it; the peers stay in memory, and llguidance
             computes masks while it steps. No file is left.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.container import replace_file
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.host.matcher import Matcher

from ..errors import ToolcError, VocabError
from ..lift.vocab import load_vocab
from ..options import Options
from ..pipeline import compile_schema
from ..specs import read_spec
from ..vocab.builtin import NAME, builtin_path
from .outputs import output_file
from .terminal import Progress, console, note, print_json

SPECS = Path(__file__).resolve().parents[2] / "tools_specs"
MOST_TOKENS = 400  # of a text

Session = tuple[Callable[[], object], Callable[[int], bool]]
"""Fill the mask; read a token, False if it is not allowed."""


class Toolc:
    """toolc itself, by way of a file."""

    name = "toolc"

    def __init__(self, path: Path, vocab: Vocab, end: str) -> None:
        self.vocab = vocab
        self.mask = np.zeros(vocab.words, np.uint32)
        self.folder = tempfile.TemporaryDirectory()

    def compile(self, schema: Any) -> Any:
        path = Path(self.folder.name) / "bench.toolc"
        compile_schema(schema, self.vocab, options=Options(jobs=1)).write(path)
        return path

    def begin(self, compiled: Any) -> Session:
        matcher = Matcher(Bundle.open(compiled, self.vocab))
        return lambda: matcher.fill(self.mask), matcher.try_advance


class Llguidance:
    """llguidance."""

    name = "llguidance"

    def __init__(self, path: Path, vocab: Vocab, end: str) -> None:
        import llguidance
        from llguidance import numpy as masks

        self.package, self.masks = llguidance, masks
        self.tokenizer = llguidance.LLTokenizer(path.read_text(encoding="utf-8"), eos_token=vocab.end_of_turn[0])
        self.mask = masks.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def compile(self, schema: Any) -> Any:
        grammar = json.dumps({"grammars": [{"json_schema": schema}]})
        matcher = self.package.LLMatcher(self.tokenizer, grammar)
        if matcher.is_error():
            raise ValueError(matcher.get_error()[:200])
        return matcher

    def begin(self, compiled: Any) -> Session:
        matcher = compiled.deep_copy()
        return lambda: self.masks.fill_next_token_bitmask(matcher, self.mask, 0), matcher.consume_token


class XGrammar:
    """XGrammar, as a JSON Schema means it (strict_mode off)."""

    name = "xgrammar"

    def __init__(self, path: Path, vocab: Vocab, end: str) -> None:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token=end)
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=vocab.size, stop_token_ids=list(vocab.end_of_turn)
        )
        self.package = xgrammar
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = xgrammar.allocate_token_bitmask(1, vocab.size)

    def compile(self, schema: Any) -> Any:
        return self.compiler.compile_json_schema(json.dumps(schema), strict_mode=False)

    def begin(self, compiled: Any) -> Session:
        matcher = self.package.GrammarMatcher(compiled)
        return lambda: matcher.fill_next_token_bitmask(self.mask), matcher.accept_token


PEERS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (Llguidance, ("llguidance",)),
    (XGrammar, ("xgrammar", "torch", "transformers")),
)


def run(tokenizer: str | None, texts: int, plot: str | None, as_json: bool) -> None:
    """Measure, and print or draw."""
    os.environ["RAYON_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    tokenizer = tokenizer or NAME
    path = builtin_path() if tokenizer == NAME else Path(tokenizer)
    if path.is_dir():
        path = path / "tokenizer.json"
    if not path.is_file() or path.suffix != ".json":
        raise VocabError("the peers read a tokenizer.json only", place=str(path), hint="give that file, or its folder")
    vocab = load_vocab(tokenizer)
    end = vocab.shown(vocab.end_of_turn[0])
    target = None if plot is None else output_file(plot, (path,))
    rows: list[dict[str, Any]] = []
    with Progress(quiet=as_json) as progress:
        progress("schemas and texts")
        schemas = _schemas()
        cases = [(name, schema, _texts(schema, vocab, path, texts)) for name, schema in schemas]
        for engine, packages in ((Toolc, ()), *PEERS):
            missing = [package for package in packages if find_spec(package) is None]
            if missing:
                note(f"toolc: {engine.name} is left out: {missing[0]} is not installed")
                continue
            progress(engine.name)
            try:
                made = engine(path, vocab, end)
            except ImportError as error:
                note(f"toolc: {engine.name} is left out: {error}")
                continue
            rows.append(_measure(made, cases))
    about = {"tokenizer": vocab.meta["source"], "vocab_size": vocab.size, "schemas": len(schemas)}
    if target is not None:
        replace_file(target, [_svg(rows).encode()])
    if as_json:
        print_json({"ok": True, **about, "engines": rows})
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=f"{len(schemas)} schemas, {about['tokenizer']}", title_justify="left")
    table.add_column("", no_wrap=True)
    for row in rows:
        table.add_column(f"{row['engine']} {row['version']}", justify="right")
    table.add_row("refused, stopped", *[f"{row['refused']}, {row['stopped']}" for row in rows])
    for title, key in COLUMNS.items():
        table.add_row(title, *["" if row[key] is None else f"{row[key]:,.3g}" for row in rows])
    console().print(table)


COLUMNS = {
    "compile ms p50": "compile_ms_p50",
    "compile ms max": "compile_ms_max",
    "first mask ms": "first_ms_p50",
    "mask + step µs avg": "step_us_avg",
    "mask + step µs p50": "step_us_p50",
    "mask + step µs p99": "step_us_p99",
}


def _schemas() -> list[tuple[str, Any]]:
    """The schemas of the specs that toolc brings along: one that is whole, and the arguments of every tool."""
    found: list[tuple[str, Any]] = []
    for path in sorted(SPECS.glob("*.json")):
        spec = read_spec(path)
        if spec.kind == "schema":
            found.append((spec.name, spec.schema))
        for tool in spec.tools if spec.kind == "tools" else ():
            found.append((f"{spec.name} {tool.name}", tool.schema))
    return found


def _texts(schema: Any, vocab: Vocab, path: Path, count: int) -> list[list[int]]:
    """Random texts of a schema as the tokenizer cuts them."""
    from tokenizers import Tokenizer

    bundle = compile_schema(schema, vocab, options=Options(whitespace="spaced")).bundle
    tokenizer = Tokenizer.from_file(str(path))
    rng = np.random.default_rng(0)
    need = bundle.min_tokens["start"]
    found = []
    for _ in range(count):
        matcher = Matcher(bundle, budget=None if need is None else need + int(rng.integers(120)))
        text = b""
        for _ in range(MOST_TOKENS):
            token = int(rng.choice(matcher.allowed_tokens()))
            matcher.advance(token)
            if matcher.is_finished:
                found.append(tokenizer.encode(text.decode(), add_special_tokens=False).ids)
                break
            text += vocab.token(token)
    return found


def _measure(engine: Any, cases: Sequence[tuple[str, Any, list[list[int]]]]) -> dict[str, Any]:
    compile_ms: list[float] = []
    first_ms: list[float] = []
    step_us: list[float] = []
    refused: list[str] = []
    stopped = 0
    engine.begin(engine.compile({"type": "object", "properties": {"warm": {"type": "string"}}}))[0]()
    for name, schema, texts in cases:
        begin = time.perf_counter()
        try:
            compiled = engine.compile(schema)
        except (ToolcError, ValueError, RuntimeError) as error:
            refused.append(f"{name}: {str(error)[:200]}")
            continue
        compile_ms.append((time.perf_counter() - begin) * 1e3)
        begin = time.perf_counter()
        fill, read = engine.begin(compiled)
        fill()
        first_ms.append((time.perf_counter() - begin) * 1e3)
        for tokens in texts:
            fill, read = engine.begin(compiled)
            for token in tokens:
                begin = time.perf_counter()
                fill()
                allowed = read(token)
                step_us.append((time.perf_counter() - begin) * 1e6)
                if not allowed:
                    stopped += 1
                    break

    def at(values: list[float], percent: float) -> float | None:
        return round(float(np.percentile(values, percent)), 3) if values else None

    return {
        "engine": engine.name,
        "version": version(engine.name),
        "refused": len(refused),
        "refusals": refused,
        "stopped": stopped,
        "tokens": len(step_us),
        "compile_ms_p50": at(compile_ms, 50),
        "compile_ms_max": at(compile_ms, 100),
        "first_ms_p50": at(first_ms, 50),
        "step_us_avg": round(float(np.mean(step_us)), 3) if step_us else None,
        "step_us_p50": at(step_us, 50),
        "step_us_p99": at(step_us, 99),
    }


def _svg(rows: list[dict[str, Any]]) -> str:
    """Bars on a logarithmic scale, one group for each column."""
    colours = ("#36a", "#c83", "#5a5")
    tall, wide = 220, 40 + len(COLUMNS) * (len(rows) * 22 + 60)
    values = [row[key] for row in rows for key in COLUMNS.values() if row[key]]
    low, high = np.floor(np.log10(min(values))), np.ceil(np.log10(max(values)))
    scale = tall / max(1.0, high - low)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall + 80}" '
        'font-family="sans-serif" font-size="10">'
    ]
    for power in range(int(low), int(high) + 1):
        y = 20 + tall - (power - low) * scale
        out.append(f'<path d="M36 {y:.1f}H{wide}" stroke="#ddd"/><text x="2" y="{y + 3:.1f}">{10.0**power:g}</text>')
    for group, (title, key) in enumerate(COLUMNS.items()):
        left = 50 + group * (len(rows) * 22 + 60)
        for number, row in enumerate(rows):
            if row[key]:
                height = max(1.0, (np.log10(row[key]) - low) * scale)
                x, y = left + number * 22, 20 + tall - height
                out.append(f'<rect x="{x}" y="{y:.1f}" width="18" height="{height:.1f}" fill="{colours[number]}"/>')
                out.append(f'<text x="{x}" y="{y - 3:.1f}">{row[key]:.3g}</text>')
        out.append(f'<text x="{left - 8}" y="{tall + 36}">{title}</text>')
    for number, row in enumerate(rows):
        x = 50 + number * 130
        out.append(f'<rect x="{x}" y="{tall + 54}" width="10" height="10" fill="{colours[number]}"/>')
        out.append(f'<text x="{x + 14}" y="{tall + 63}">{row["engine"]} {row["version"]}</text>')
    return "".join(out) + "</svg>\n"
