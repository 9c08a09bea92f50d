"""Host matchers under bundles with registers against the plain specification: masks, tokens, rollbacks, copies.

The registers are made up: random rules of random states, random tests, and random check lists of cells and chain cells.
So a mask need not have the tokens that can be read, but both have to be what reference.py says.
"""

from __future__ import annotations

import random
from dataclasses import fields
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from toolc.runtime import BatchMatcher, Bundle, DecodeError, Matcher
from toolc.runtime.adapters.rows import RowTable, most_numbers
from toolc.runtime.format.tables import FIRST_BIT, without_close
from toolc.runtime.host import matcher as host
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(20))]


@cache
def with_registers(kind: str, words: int, seed: int) -> Bundle:
    """A handmade bundle with made-up registers of so many words."""
    made, pick = bundle(kind), random.Random(seed)
    t = made.tables
    bits = [pick.randrange(FIRST_BIT, 32 * words - 1), 32 * words - 1]
    masks = np.zeros((7, words), np.uint32)
    wants = [0] * len(masks)
    for test in range(1, len(masks)):
        wants[test] = test % 2
        for bit in pick.sample(bits, pick.randint(1, 2)):
            masks[test, bit >> 5] |= np.uint32(1 << (bit & 31))

    def test(chance: float) -> int:
        return pick.randrange(1, len(masks)) if pick.random() < chance else 0

    rules = [(0, -1, 0, 0)]
    for _ in range(7):
        bit = pick.choice([-1, *bits])
        rules.append((test(0.3), bit, test(0.5), 0 if bit < 0 else pick.randrange(3)))
    lists: list[list[tuple[int, int, int]]] = [[]]
    for _ in range(5):
        tokens = sorted(pick.sample(range(made.vocab.size), pick.randint(1, 30)))
        lists.append([(token, test(0.9), test(0.3)) for token in tokens])

    def some(count: int, *shape: int) -> np.ndarray:
        return np.array([pick.choice([0, pick.randrange(count)]) for _ in range(int(np.prod(shape)))]).reshape(shape)

    arrays: dict[str, Any] = {
        "state_register": np.array([0, 0, *(pick.randrange(len(rules)) for _ in range(t.states - 2))]),
        "register_rule": np.array(rules),
        "test_wants": np.array(wants),
        "cell_check": some(len(lists), *t.cell_row.shape),
        "chain_check": some(len(lists), t.chain_row.size),
        "check_offset": np.cumsum([0, *map(len, lists)]),
        "check": np.array([one for checks in lists for one in checks]),
    }
    held = {field.name: getattr(t, field.name) for field in fields(t)}
    held |= {name: array.astype(np.int32) for name, array in arrays.items()} | {"test_mask": masks}
    return Bundle(without_close(held), made.meta, made.vocab, f"{kind} with registers")


BUNDLES = st.builds(with_registers, st.sampled_from(KINDS), st.sampled_from([2, 3, 4]), st.integers(0, 30))


def place(at: Any) -> tuple[Any, ...]:
    return at.state, at.counter, at.stack, at.register, at.registers


def same(matcher: Matcher, oracle: Sequence) -> set[int]:
    """Check everything visible; returns the mask."""
    assert place(matcher) == place(oracle)
    want = oracle.mask()
    assert set(matcher.allowed_tokens().tolist()) == want
    assert matcher.is_complete == (oracle.reads([256]) is not None)
    assert matcher.expected_bytes() == bytes(b for b in range(256) if oracle.reads([b]) is not None)
    return want


def token_for(pick: random.Random, oracle: Sequence, mask: set[int]) -> int:
    """Mostly one that can be read."""
    live = sorted(oracle.brute_mask())
    if live and pick.random() < 0.8:
        return pick.choice(live)
    return pick.choice(sorted(mask)) if mask and pick.random() < 0.5 else pick.randrange(oracle.bundle.vocab.size)


@given(BUNDLES, st.integers(0, 1 << 30))
def test_walks_equal_the_specification(made: Bundle, seed: int) -> None:
    pick = random.Random(seed)
    with patch.multiple(host, FRESH_HISTORY=2, FRESH_FRAMES=1):  # everything grows
        matcher, oracle = Matcher(made), Sequence.start(made)
        trail: list[Sequence] = []
        for _ in range(25):
            mask = same(matcher, oracle)
            if len(oracle.stack) > made.meta["capacity"] - 6:
                break
            token = token_for(pick, oracle, mask)
            before = oracle.copy()
            accepted = oracle.advance(token)
            assert matcher.try_advance(token) == accepted
            if accepted:
                trail.append(before)
            else:
                assert f"token {len(matcher)}" in str(matcher.refusal(token))
            roll = pick.random()
            if trail and roll < 0.15:
                back = pick.randint(1, min(len(trail), 4))
                matcher.rollback(back)
                oracle = trail[-back].copy()
                del trail[-back:]
            elif roll < 0.25:
                twin = matcher.fork()
                twin.rollback(pick.randint(0, len(twin)))
                for _ in range(4):
                    twin.try_advance(pick.randrange(made.vocab.size))
            elif roll < 0.35:
                matcher = matcher.fork()
            elif roll < 0.4:
                matcher, trail = Matcher.at(oracle), []


@given(st.lists(st.one_of(st.none(), BUNDLES, st.sampled_from(KINDS).map(bundle)), min_size=1), st.integers(0, 1 << 30))
def test_batches_equal_the_specification(bundles: list[Bundle | None], seed: int) -> None:
    pick = random.Random(seed)
    bundles = [*bundles, with_registers("brackets", 2, 1)]
    with patch.multiple(host, FRESH_HISTORY=2, FRESH_FRAMES=1):
        batch = BatchMatcher(bundles)
        trails = [[None if made is None else Sequence.start(made)] for made in bundles]
        for _ in range(12):
            masks = np.full((len(batch), batch.vocab.words), 0xAAAAAAAA, np.uint32)
            batch.fill(masks)
            tokens, want = [], []
            for row, trail in enumerate(trails):
                oracle = None if trail[-1] is None else trail[-1].copy()
                if oracle is None:
                    tokens.append(0)
                    want.append(True)
                    continue
                mask = oracle.mask()
                assert (masks[row] == bits_of(mask, oracle.bundle.vocab.size)).all()
                assert place(batch.matcher(row)) == place(oracle)
                tokens.append(token_for(pick, oracle, mask))
                want.append(oracle.state == 1 or oracle.advance(tokens[-1]))
                if want[-1] and trail[-1] is not None and trail[-1].state != 1:
                    trail.append(oracle)
            if pick.random() < 0.5 and not all(want):
                with pytest.raises(DecodeError):
                    batch.advance(tokens)
                trails = [
                    trail[:-1] if done and made is not None and len(trail) > before + 1 else trail
                    for trail, done, made, before in zip(trails, want, batch.bundles, batch.lengths, strict=True)
                ]
            else:
                assert batch.try_advance(tokens).tolist() == want
            assert batch.lengths.tolist() == [len(trail) - 1 for trail in trails]
            roll = pick.random()
            if roll < 0.2:
                counts = [pick.randint(0, min(len(trail) - 1, 3)) for trail in trails]
                batch.rollback(counts)
                trails = [trail[: len(trail) - count] for trail, count in zip(trails, counts, strict=True)]
            elif roll < 0.4:
                order = [pick.randrange(len(trails)) for _ in range(pick.randint(1, 6))]
                batch.reorder(order)
                trails = [list(trails[i]) for i in order]
            elif roll < 0.5:
                row = pick.randrange(len(trails))
                made = pick.choice(bundles)
                batch.set_row(row, made)
                trails[row] = [None if made is None else Sequence.start(made)]


@given(BUNDLES, st.integers(0, 1 << 30))
def test_row_numbers_and_tokens_make_the_same_masks(made: Bundle, seed: int) -> None:
    pick, table = random.Random(seed), RowTable(torch.device("cpu"))
    matchers = [Matcher(made), Matcher(bundle("counted")), Matcher(made)]
    for _ in range(6):
        numbers = table.blank(4, max(most_numbers(made), most_numbers(bundle("counted"))))
        for row, matcher in enumerate(matchers):
            table.fill(matcher, numbers[row])
        logits = torch.zeros(4, made.vocab.size)
        table.apply_(logits, numbers)
        for row, matcher in enumerate(matchers):
            live = matcher.allowed_tokens().tolist()
            assert torch.isfinite(logits[row]).nonzero().view(-1).tolist() == live
            if not live or not matcher.try_advance(pick.choice(live)) or matcher.depth > 12:
                matcher.reset()
        assert torch.isfinite(logits[3]).all()


def test_a_register_is_restored_by_a_pop_and_by_a_rollback() -> None:
    """Of `words`: reading a letter inside sets bit 72, and no frame may close before."""
    made = bundle("words")
    t = made.tables
    some = {
        "state_register": np.array([0, 0, 1, 2], np.int32),
        "register_rule": np.array([[0, -1, 0, 0], [0, 35, 0, 0], [0, -1, 1, 0]], np.int32),
        "test_wants": np.array([0, 0], np.int32),
        "test_mask": np.array([[0, 0, 0], [0, 0, 1 << 8]], np.uint32),
    }
    matcher = Matcher(Bundle(t.but(**some), made.meta, made.vocab))
    assert matcher.advance_bytes(b"a[[") == 3
    at, inside = 1 << 35, 1 << 72
    assert (matcher.register, matcher.registers) == (0, [at, 0])
    assert matcher.advance_bytes(b"]") == 0 and matcher.expected_bytes() == b"[ab"
    some["register_rule"] = np.array([[0, -1, 0, 0], [0, 35, 0, 0], [0, 72, 1, 0]], np.int32)
    matcher = Matcher(Bundle(t.but(**some), made.meta, made.vocab))
    assert matcher.advance_bytes(b"a[[a") == 4
    assert (matcher.register, matcher.registers) == (inside, [at, inside])
    assert matcher.advance_bytes(b"]]") == 2
    assert (matcher.register, matcher.registers) == (at, [])
    matcher.rollback(3)
    assert (matcher.register, matcher.registers) == (inside, [at, inside])
