"""Random logits, masked, through the batch decoder: what comes out parses and validates. See benchmarks/decodes.py."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the batch decoder needs torch")

from benchmarks.decodes import decode, judge
from toolc.compiler import compile_spec, read_spec

SPECS = ("weather.json", "calculator.json", "funcqa.json", "shop_openapi.json", "tree_schema.json")


@pytest.mark.parametrize("name", SPECS)
def test_decodes_are_valid(name: str, repository: Path) -> None:
    spec = read_spec(repository / "tools_specs" / name)
    bundle = compile_spec(spec).bundle
    found = decode(bundle, judge(spec), 60, seed=3)
    assert found.decodes == found.ended == 60
    assert found.valid == 60, found.invalid[:3]
    assert len(found.names) >= min(2, max(1, len(spec.tools)))
    assert len(found.states) >= 30


@pytest.mark.parametrize("name", ["weather.json", "tree_schema.json"])
def test_decodes_end_within_their_budgets(name: str, repository: Path) -> None:
    spec = read_spec(repository / "tools_specs" / name)
    bundle = compile_spec(spec).bundle
    found = decode(bundle, judge(spec), 20, seed=5, budget=60)
    assert (found.decodes, found.ended, found.valid, found.over) == (20, 20, 20, 0), found.invalid[:3]


def test_decodes_of_a_real_api(shared: Path) -> None:
    spec = read_spec(shared / "data" / "openapi" / "tmdb_oas.json")
    found = decode(compile_spec(spec).bundle, judge(spec), 60, seed=4)
    assert (found.ended, found.valid) == (60, 60), found.invalid[:3]
    assert len(found.names) > 10


def test_the_judge_refuses() -> None:
    spec = read_spec(
        [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "required": ["a"]}}}]
    )
    check = judge(spec)
    assert check('{"name": "f", "arguments": {"a": 1}}') == "f"
    for text in ('{"name": "g", "arguments": {"a": 1}}', '{"name": "f", "arguments": {}}', '{"name": "f"', "[]"):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            check(text)
