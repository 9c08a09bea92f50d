"""Schemas that are large in one direction: what a naive construction counts out, and what cannot but explode.

``python -m benchmarks.extremes [--tokenizer FILE] [--only NAME]`` prints a table: seconds of processor time to compile
and write, the size of the file, states, or the error. Each compiles in a process of its own.

Leaves out   growth over a size: see growth.py.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .markdown import table


def _words(count: int) -> list[str]:
    pick = random.Random(0)
    return ["".join(pick.choices(string.ascii_lowercase, k=pick.randint(5, 15))) for _ in range(count)]


def _references(count: int) -> dict[str, Any]:
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(count)}
    return {"$defs": {**chain, f"d{count}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def _open_keys(count: int, value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {f"{word}_{n}": value for n, word in enumerate(_words(count))}}


def _tagged(count: int) -> dict[str, Any]:
    """Open objects that a constant tells apart."""
    words = [f"{word}_{n}" for n, word in enumerate(_words(count))]
    return {
        "oneOf": [
            {"type": "object", "properties": {"kind": {"const": word}, word: {}}, "required": ["kind"]}
            for word in words
        ]
    }


def _nested_one_of(depth: int) -> dict[str, Any]:
    """Exactly one of two members, whose values are the same again: open objects, which overlap (vLLM's issue 54003)."""
    if depth == 0:
        return {"type": "string"}
    below = _nested_one_of(depth - 1)
    return {"oneOf": [{"type": "object", "properties": {key: below}, "required": [key]} for key in "ab"]}


def _one_of_in_one_of(depth: int) -> dict[str, Any]:
    """Alternatives that are alternatives themselves, of values that are the same again."""
    if depth == 0:
        return {"type": "string", "maxLength": 5}
    below = _one_of_in_one_of(depth - 1)
    return {"oneOf": [below, {"type": "object", "properties": {"x": below}}, {"type": "array", "items": below}]}


def schemas() -> dict[str, dict[str, Any]]:
    """All of them, by name."""
    return {
        "maxLength 1,000,000": {"type": "string", "maxLength": 10**6},
        "maxItems 100,000": {"type": "array", "items": {"type": "integer"}, "maxItems": 10**5},
        "enum of 50,000 strings": {"enum": _words(50_000)},
        "chain of 1,000 $ref": _references(1000),
        "800 optional keys beside open keys": _open_keys(800, {"type": "string"}),
        "3,200 optional keys, no others": _open_keys(3200, {"type": "string"}) | {"additionalProperties": False},
        "3,200 optional keys behind one that is required": _open_keys(3200, {"type": "string"})
        | {"required": [f"{_words(1)[0]}_0"], "additionalProperties": False},
        "800 optional keys, at least two": _open_keys(800, {"type": "string"}) | {"minProperties": 2},
        "one of 400 keys at least": _open_keys(400, {"type": "string"})
        | {"anyOf": [{"required": [f"{word}_{n}"]} for n, word in enumerate(_words(400))]},
        "oneOf of 200 open objects, each with a constant": _tagged(200),
        **{f"oneOf nested {depth} deep": _nested_one_of(depth) for depth in (4, 8, 12, 16)},
        **{f"oneOf in oneOf, {depth} deep": _one_of_in_one_of(depth) for depth in (4, 6, 8)},
        "pattern of 2^24 states": {"type": "string", "pattern": "^(a|b)*a(a|b){24}$"},
        "pattern of three gaps": {"type": "string", "pattern": "(.*a.{30}b.*){3}"},
    }


def measure(name: str, tokenizer: str) -> dict[str, Any]:
    """Compile and write one of them; see above."""
    from toolc.compiler.lift.vocab import load_vocab
    from toolc.compiler.pipeline import compile_schema
    from toolc.runtime import ToolcError

    from .engine import vocab_of

    if tokenizer == "builtin":
        vocab = load_vocab(tokenizer, ())
    else:
        from tokenizers import Tokenizer

        from .engine import end_of

        vocab = vocab_of(tokenizer, end_of(Tokenizer.from_file(tokenizer)))
    schema = schemas()[name]
    for first in ({}, {"type": "array", "items": {"type": "integer"}, "maxItems": 1000}):
        compile_schema(first, vocab)  # kernels, and what a vocabulary keeps
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bundle.toolc"
        try:
            done = compile_schema(schema, vocab)
            done.write(path)
            size, states = path.stat().st_size // 1024, done.report["counts"]["states"]
            found = {"KB": size, "states": states, "outcome": "compiled"}
        except ToolcError as error:
            found = {"KB": "", "states": "", "outcome": " ".join(str(error).split())}
    seconds, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return {"schema": name, "seconds": round(seconds, 2), "peak MB": peak, **found}


def main() -> None:
    """Measure all, or one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", default="builtin", help="a tokenizer.json")
    parser.add_argument("--only", help="one of them, by name; prints JSON")
    given = parser.parse_args()
    if given.only is not None:
        print(json.dumps(measure(given.only, given.tokenizer)))
        return
    rows = []
    for name in schemas():
        command = [sys.executable, "-m", "benchmarks.extremes", "--only", name, "--tokenizer", given.tokenizer]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        rows.append([f"{value:,.0f}" if isinstance(value, int) else str(value) for value in found.values()])
        print(name, found["seconds"], file=sys.stderr)
    print(table(list(found), rows))


if __name__ == "__main__":
    main()
