"""Edited bundles under checked kernels (edited.py), in a process of their own that a fault cannot take along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from toolc.compiler import Options, compile_tools
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Bundle, Vocab

from .handmade import bundle

SEED = 20_000_000
COUNT = 100_000 if settings.default.max_examples > 100 else 2_000
SECONDS = 24 * 3600
_LONGER = (
    '{"',
    '":',
    "},",
    "]]",
    "]}",
    '"}',
    "name",
    "arguments",
    '{"a"',
    '": {',
    '"w"',
    '"x"',
    "[[[",
    "]]}}",
    "true",
    '\\"',
)
INTEGER = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
NESTED = {
    "type": "object",
    "properties": {"a": {"type": "array", "minItems": 1, "maxItems": 3,
                         "items": {"type": "array", "items": {"type": "boolean"}, "minItems": 2}}},
    "required": ["a"],
    "additionalProperties": False,
}  # fmt: skip
TREE = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/t"}},
    "additionalProperties": False,
    "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}, "maxItems": 4}},
}


def small_vocab() -> Vocab:
    """The printable bytes, some that are longer, an end of turn and the delimiters of Qwen's calls."""
    special = ["<|end|>", "<tool_call>", "</tool_call>"]
    tokens = [bytes((b,)) for b in (10, *range(32, 127))] + [text.encode() for text in _LONGER]
    ids = {name: len(tokens) + n for n, name in enumerate(special)}
    table = TokenTable(
        tokens=(*tokens, *len(special) * (b"",)), special=ids, end_of_turn=(ids["<|end|>"],), source="tests",
        end_of_turn_origin="tests",
    )  # fmt: skip
    return build_vocab(table)


def compiled(*schemas: dict[str, object], **options: object) -> Bundle:
    """A bundle of tools w, x, y with these arguments."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in zip("wxy", schemas)
    ]
    chosen = {"whitespace": "compact", "digits": 2, "soft_depth": 2, **options}
    return compile_tools(tools, small_vocab(), options=Options(**chosen)).bundle  # type: ignore[arg-type]


def written(folder: Path) -> Path:
    """The folder, with bundles in it: hand-made ones, and small ones of several tools."""
    kinds = ("brackets", "counted", "words", "scrambled-2", "scrambled-3", "scrambled-8")
    made = {kind: bundle(kind) for kind in kinds}
    made["two"] = compiled(INTEGER, INTEGER)
    made["three"] = compiled(NESTED, NESTED, INTEGER)
    made["trees"] = compiled(TREE, INTEGER, protocol="hermes")
    made["parts"] = compiled(INTEGER, NESTED, protocol="qwen3_coder")
    for name, one in made.items():
        one.write(folder / f"{name}.toolc", standalone=True)
    return folder


def run(folder: Path, first: int, count: int) -> None:
    """Edits in a child; a fault, an error that is none of toolc's, or too long a time is told with the edit."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "kernels"), "NUMBA_OPT": "1"}
    command = [sys.executable, "-m", "tests.runtime.edited", str(folder), str(first), str(count)]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    last = folder / "last"
    if done.returncode:
        pytest.fail(f"{last.read_text() if last.exists() else 'no edit'}: {done.returncode}\n{done.stderr[-4000:]}")
    print(done.stdout)


def test_edited_bundles_are_refused_or_used(tmp_path: Path) -> None:
    run(written(tmp_path), SEED, COUNT)
