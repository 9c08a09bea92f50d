"""Budgets: what the tables of the shortest close promise, against every token; texts that end in time."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from toolc.compiler import compile_grammar, compile_schema, compile_tools
from toolc.runtime import BatchMatcher, Bundle, DecodeError, Matcher
from toolc.runtime.format.tables import NEVER
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(12))]
TREE = {
    "type": "object",
    "properties": {"v": {"type": "string"}, "k": {"type": "array", "items": {"$ref": "#"}, "minItems": 1}},
    "required": ["v"],
}
SCHEMAS: dict[str, object] = {
    "any": True,
    "tree": TREE,
    "long text": {"type": "string", "minLength": 40, "maxLength": 50},
    "pattern": {"type": "string", "pattern": "^[a-z]{3,9}-[0-9]+$"},
    "counted lists": {"type": "array", "items": {"type": "integer"}, "minItems": 7, "maxItems": 30},
    "costly options": {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "object", "properties": {"x": TREE, "yy": TREE, "zzz": {"type": "string", "minLength": 9}},
                  "required": ["x", "yy", "zzz"]},
        },
        "required": ["a"],
    },
}  # fmt: skip


@cache
def made(name: str) -> Bundle:
    if name in SCHEMAS:
        return compile_schema(SCHEMAS[name]).bundle  # type: ignore[arg-type]
    if name == "lark":
        return compile_grammar('start: "a" (b "," )* "zz"\nb: "(" b* ")" | /[0-9]{4}/').bundle
    return compile_tools("tools_specs/weather.json").bundle


def copy(oracle: Sequence) -> Sequence:
    return oracle.copy()


def promised(oracle: Sequence) -> int:
    """The largest bound after a token, as the tables have it: the least budget that leaves the mask whole, less one."""
    low, high = 0, NEVER * 4
    one = {int(oracle.bundle.tables.close_token[oracle.close_cell(), oracle.mode])}
    whole = oracle.mask()
    if whole == one:
        return NEVER * 4
    while low < high:
        middle = (low + high) // 2
        probe = copy(oracle)
        probe.left = middle + 1
        if probe.mask_in_budget() == whole:
            high = middle
        else:
            low = middle + 1
    return low


@pytest.mark.parametrize("kind", KINDS)
def test_the_tables_keep_their_promises(kind: str) -> None:
    source = bundle(kind)
    pick = random.Random(5)
    known = 0
    for _ in range(6):
        oracle = Sequence.start(source)
        for _ in range(25):
            need, most = oracle.bound(), promised(oracle)
            live = sorted(oracle.mask())
            if not live or oracle.state == 1 or len(oracle.stack) > source.meta["capacity"] - 6:
                break
            for token in live:
                after = copy(oracle)
                assert after.advance(token)
                assert need >= NEVER or after.bound() <= most  # where nothing is known, nothing is promised
            if need < NEVER:
                known += 1
                token = int(oracle.bundle.tables.close_token[oracle.close_cell(), oracle.mode])
                after = copy(oracle)
                assert after.advance(token) and after.bound() < need
            oracle.advance(pick.choice(live))
    if not kind.startswith("scrambled"):
        assert known > 10


@pytest.mark.parametrize("name", [*SCHEMAS, "lark", "tools"])
def test_close_tokens_end_within_the_bound(name: str) -> None:
    source = made(name)
    pick = random.Random(2)
    for need in source.min_tokens.values():
        assert need is not None and need < 60
    for _ in range(20):
        matcher = Matcher(source)
        for _ in range(pick.randrange(40)):
            matcher.advance(int(pick.choice(matcher.allowed_tokens().tolist())))
            if matcher.is_finished:
                break
        bound = matcher.bound
        assert bound is not None
        if bound == 0:
            continue
        matcher.limit(bound)
        for spent in range(bound):
            left = bound - spent
            assert matcher.left == left and matcher.bound is not None and matcher.bound <= left
            tokens = matcher.allowed_tokens().tolist()
            matcher.advance(int(pick.choice(tokens)))
            if matcher.is_finished:
                break
        assert matcher.is_finished


@pytest.mark.parametrize("name", [*SCHEMAS, "lark", "tools"])
def test_runs_end_within_their_budgets(name: str) -> None:
    source = made(name)
    pick = random.Random(3)
    entries = [(entry, need) for entry, need in source.min_tokens.items() if need is not None]
    batch = BatchMatcher([source] * 12)
    for row in range(12):
        entry, need = pick.choice(entries)
        batch.set_row(row, source, entry, pick.choice([need, need + 1, need + pick.randrange(90)]))
    masks = batch.new_masks()
    free = 0
    for _ in range(160):
        if batch.finished.all():
            break
        batch.fill(masks)
        tokens = []
        for row in range(12):
            bits = np.flatnonzero(np.unpackbits(masks[row].view(np.uint8), bitorder="little"))
            free += bits.size > 1 and not batch.finished[row]
            tokens.append(int(pick.choice(bits.tolist())))
        batch.advance(tokens)
    assert batch.finished.all() and free > 5
    for row in range(12):
        matcher = batch.matcher(row)
        assert matcher.left is not None and matcher.bound == 0


def test_the_host_equals_the_specification() -> None:
    pick = random.Random(1)
    for kind in ("brackets", "counted", "words"):
        source = bundle(kind)
        need = source.min_tokens[next(iter(source.entry))]
        assert need is not None
        for _ in range(15):
            budget = need + pick.randrange(8)
            entry = next(iter(source.entry))
            oracle, matcher = Sequence.start(source, entry, budget), Matcher(source, entry, budget)
            mask = np.zeros(source.vocab.words, np.uint32)
            while oracle.state != 1:
                want = oracle.mask_in_budget()
                matcher.fill(mask)
                assert (mask == bits_of(want, source.vocab.size)).all()
                assert (matcher.bound, matcher.left) == (oracle.bound(), oracle.left)
                token = pick.choice(sorted(want))
                matcher.advance(token)
                assert oracle.advance(token)
            assert oracle.left is not None and oracle.left >= 0


def test_budgets_that_cannot_be_kept_are_refused() -> None:
    source = made("tools")
    need = source.min_tokens["start"]
    assert need is not None
    with pytest.raises(DecodeError, match=f"at least {need}"):
        Matcher(source, budget=need - 1)
    with pytest.raises(DecodeError, match="too small"):
        BatchMatcher([source, None], budget=[1, None])
    with pytest.raises(DecodeError, match="budgets and rows"):
        BatchMatcher([source, None], budget=[need])
    matcher = Matcher(source)
    with pytest.raises(DecodeError, match="too small"):
        matcher.limit(2)
    matcher.limit(None)
    assert matcher.left is None


@pytest.mark.parametrize("budget", [2**62, 2**63 - 1, 2**63, 2**70])
def test_large_budgets_are_none_that_would_be_felt(budget: int) -> None:
    source = made("tools")
    free, limited, batch = Matcher(source), Matcher(source, budget=budget), BatchMatcher([source], budget=budget)
    assert limited.allowed_tokens().tolist() == free.allowed_tokens().tolist()
    masks = batch.new_masks()
    batch.fill(masks)
    want = batch.new_masks()
    BatchMatcher([source]).fill(want)
    assert (masks == want).all()
    limited.advance(int(free.allowed_tokens()[0]))
    limited.limit(budget)
    assert limited.left is not None and limited.left >= 2**61
