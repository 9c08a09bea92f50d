"""The random-decode law: what masks allow is valid, and no mask is empty. benchmarks/law.py does it for all cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.walks import KINDS, Walker
from tests.cases.schemas import SCHEMAS
from toolc.compiler import Options, compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.errors import ToolcError
from toolc.compiler.lift.vocab import load_vocab
from toolc.runtime.format.bundle import Bundle

from .judge import Judge, schema_of


def hold(walker: Walker, bundle: Bundle, schema: Any, seed: str) -> int:
    """Walk and judge; how many walks ended."""
    judge, ended = Judge(schema), 0
    for kind in KINDS:
        found = walker.walk(bundle, kind, f"{seed} {kind}", steps=400)
        assert found.end != "dead", (seed, kind, found.text[-200:])
        if found.end == "ended":
            ended += 1
            assert judge.why_not(found.text.decode()) is None, (seed, kind, found.text.decode())
    return ended


def test_on_the_cases_of_this_repository() -> None:
    vocab = load_vocab("builtin")
    walker, ended = Walker(vocab), 0
    rows = [row for row in SCHEMAS if "remote" not in row[0]]
    for number, (name, schema, _, _) in enumerate(rows[::3]):
        bundle = compile_schema(schema, vocab, options=Options(soft_depth=2 + number % 3)).bundle
        ended += hold(walker, bundle, schema, name)
    assert ended > len(rows[::3])


def test_on_development_cases(shared: Path) -> None:
    vocab = load_vocab(shared / "tokenizers" / "llama3.json", ("<|eot_id|>",))
    walker, ended = Walker(vocab), 0
    lines = (shared / "data" / "maskbench_dev.jsonl").read_text(encoding="utf-8").splitlines()
    for case in map(schema_of, lines[7::300]):
        try:
            bundle = compile_schema(case["schema"], vocab, options=Options(budget=Budget(seconds=5))).bundle
        except ToolcError:
            continue
        ended += hold(walker, bundle, case["schema"], case["id"])
    assert ended > 5
