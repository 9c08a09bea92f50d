"""What a token can cost, against trying every token: no budget can be broken, and none bites much before it has to.

Vocabularies and grammars are those of test_masks.py, and schemas that need much to end.
"""

from __future__ import annotations

import functools
import random
from pathlib import Path

import numpy as np
import pytest

from toolc.compiler import compile_grammar, compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.lift import completion as close
from toolc.compiler.lift import lift
from toolc.compiler.lift import text_bounds as along
from toolc.compiler.link.cache import forget
from toolc.runtime import Matcher
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.tables import NEVER
from toolc.runtime.reference import Machine, Sequence
from toolc.runtime.selection import shortest_paths as ways

from ..cases.grammars import GRAMMARS
from .brute import brute_bounds
from .test_masks import choose, vocab

DEAR = {"type": "object", "properties": {k: {"type": "string", "minLength": 9} for k in "abc"}, "required": ["a", "c"]}
SCHEMAS: dict[str, object] = {
    "any": True,
    "dear options": {"type": "object", "properties": {"x": {"type": "integer"}, "yy": DEAR, "z": DEAR}},
    "lists of lists": {"type": "array", "items": {"type": "array", "items": DEAR, "minItems": 1}, "maxItems": 5},
    "tree": {"type": "object", "properties": {"v": {"enum": ["one", "twenty-two"]}, "k": {"$ref": "#"}, "d": DEAR}},
    "long text": {"type": "string", "minLength": 40, "maxLength": 400},
    "counted": {
        "type": "object",
        "properties": {
            "some": {"type": "string", "maxLength": 20},
            "more": {"type": "string", "minLength": 2, "maxLength": 9},
            "list": {"type": "array", "items": {"type": "string", "maxLength": 6}, "minItems": 2, "maxItems": 70},
            "dear": DEAR,
        },
        "required": ["more"],
    },
    "pattern": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^([a-z]{3,9} ){1,9}[0-9]+$"}},
}
VOCABS = ("builtin", "tekken_240911.json")
_LOOSE = 3  # so much earlier than needed may a budget bite in these; more where tokens open frames without end


@functools.cache
def bundle(name: str, of: str) -> Bundle:
    if name in SCHEMAS:
        return compile_schema(SCHEMAS[name], vocab(of)).bundle  # type: ignore[arg-type]
    return compile_grammar(GRAMMARS[name], vocab(of)).bundle


def compare(held: Bundle, seed: str, count: int) -> list[int]:
    """The promise against what every token costs, at configurations of random walks: by how much it is above."""
    rng, above, machine = random.Random(seed), [], Machine(held)
    while len(above) < count:
        matcher = Matcher(held)
        for _ in range(50):
            oracle = Sequence(machine, matcher.state)
            oracle.counter, oracle.stack, oracle.registers = matcher.counter, matcher.stack, matcher.registers
            after, need, bound = brute_bounds(held, matcher), oracle.need(), oracle.bound()
            if bound < NEVER:
                assert after.max() <= need, held.vocab.shown(int(after.argmax()))
                token = int(held.tables.close_token[oracle.close_cell(), oracle.mode])
                assert 0 <= after[token] < bound
                # A budget that is as large as the bound is all that matters.
                above.append(max(0, need - max(int(after.max()), bound - 1)))
            matcher.advance(choose(np.flatnonzero(after >= 0), held, rng))
            if matcher.is_finished:
                break
    return above


@pytest.mark.parametrize("of", VOCABS)
@pytest.mark.parametrize("name", [*SCHEMAS, *sorted(GRAMMARS)])
def test_no_token_costs_more_than_was_promised(name: str, of: str) -> None:
    above = compare(bundle(name, of), f"{name} {of}", 150)
    if name in SCHEMAS:
        assert max(above) <= _LOOSE and np.mean(np.array(above) > 1) < 0.1


@pytest.mark.parametrize("name", list(SCHEMAS))
def test_the_promise_of_large_automata(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where so much is to be walked that less is."""
    monkeypatch.setattr(close, "MOST_WALKS", 0)
    monkeypatch.setattr(close, "MOST_EXACT", 0)
    compare(compile_schema(SCHEMAS[name], vocab("builtin")).bundle, name, 150)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tree", "counted", "pattern", *sorted(GRAMMARS)[:4]])
def test_work_in_small_slices_finds_the_same(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The clock is looked at between slices, however many cells there are."""
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))
    forget()
    whole = compile_schema(SCHEMAS[name], "builtin") if name in SCHEMAS else compile_grammar(GRAMMARS[name], "builtin")
    looks = []
    check = Budget.check
    monkeypatch.setattr(Budget, "check", lambda self, *given, **more: (looks.append(1), check(self, *given, **more))[1])
    for module, constant, value in (
        (ways, "_STEPS", 7),
        (ways, "_CELLS", 3),
        (along, "_BATCH", 5),
        (lift, "_BATCH", 16),
    ):
        monkeypatch.setattr(module, constant, value)
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "other"))
    forget()
    sliced = compile_schema(SCHEMAS[name], "builtin") if name in SCHEMAS else compile_grammar(GRAMMARS[name], "builtin")
    assert sliced.bundle.digest == whole.bundle.digest
    assert len(looks) > whole.bundle.tables.close_bound.size // 3


def test_what_grows_against_the_order_of_states_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each sweep takes a value one cell further: they are counted. What is not known then is walked."""
    held = bundle("tree", "builtin")
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))
    monkeypatch.setattr(along, "_MOST_SWEEPS", 1)
    forget()
    fewer = compile_schema(SCHEMAS["tree"], "builtin").bundle
    compare(fewer, "grows", 60)
    assert (fewer.tables.close_bound == held.tables.close_bound).all()
