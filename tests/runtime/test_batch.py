"""The host batch against the plain specification: mixed bundles, refusals, rollbacks, rows that come and go, forks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from toolc.runtime import BatchMatcher, DecodeError, Matcher
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(20))]


def copy(oracle: Sequence | None) -> Sequence | None:
    return None if oracle is None else oracle.copy()


def fresh(kind: str | None) -> Sequence | None:
    return None if kind is None else Sequence.start(bundle(kind))


def check(batch: BatchMatcher, oracles: list[Sequence | None]) -> None:
    masks = np.full((len(batch), batch.vocab.words + 1), 0xAAAAAAAA, np.uint32)
    batch.fill(masks)
    for row, oracle in enumerate(oracles):
        if oracle is None:
            assert (masks[row] == 0xFFFFFFFF).all()
            continue
        assert (masks[row, :-1] == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all() and masks[row, -1] == 0
        twin = batch.matcher(row)
        assert (twin.state, twin.counter, twin.stack) == (oracle.state, oracle.counter, oracle.stack)
    assert batch.finished.tolist() == [o is not None and o.state == 1 for o in oracles]


@pytest.mark.parametrize("seed", range(8))
def test_walks_equal_the_specification(seed: int) -> None:
    pick = random.Random(seed)
    kinds: list[str | None] = [*pick.sample(KINDS, 4), None]
    chosen = [kinds[0], *(pick.choice(kinds) for _ in range(6))]
    batch = BatchMatcher([None if k is None else bundle(k) for k in chosen])
    oracles: list[Any] = [fresh(k) for k in chosen]
    trails: list[list[Any]] = [[] for _ in chosen]
    for _ in range(150):
        check(batch, oracles)
        tokens = []
        for row, oracle in enumerate(oracles):
            live = [] if oracle is None else sorted(oracle.mask())
            if oracle is not None and (not live or len(oracle.stack) > oracle.bundle.meta["capacity"] - 6):
                kind = pick.choice(kinds)
                batch.set_row(row, None if kind is None else bundle(kind))
                oracles[row] = oracle = fresh(kind)
                trails[row] = []
                live = [] if oracle is None else sorted(oracle.mask())
            tokens.append(pick.choice(live) if live and pick.random() < 0.9 else pick.randrange(-3, 200))
        want = []
        for oracle, token, trail in zip(oracles, tokens, trails, strict=True):
            if oracle is None or oracle.state == 1:
                want.append(True)
                continue
            before = copy(oracle)
            want.append(token >= 0 and oracle.advance(token))
            if want[-1]:
                trail.append(before)
        assert batch.try_advance(tokens).tolist() == want
        assert batch.lengths.tolist() == [len(trail) for trail in trails]
        roll = pick.random()
        if roll < 0.15:
            counts = [pick.randint(0, min(len(trail), 3)) for trail in trails]
            batch.rollback(counts)
            for row, count in enumerate(counts):
                if count:
                    oracles[row] = trails[row][-count]
                    del trails[row][-count:]
        elif roll < 0.25:
            order = [pick.randrange(len(oracles)) for _ in range(pick.randint(3, 9))]
            batch.reorder(order)
            oracles = [copy(oracles[i]) for i in order]
            trails = [[copy(o) for o in trails[i]] for i in order]
        elif roll < 0.3:
            kind = pick.choice(kinds)
            assert batch.append(None if kind is None else bundle(kind)) == len(oracles)
            oracles.append(fresh(kind))
            trails.append([])


def test_refusal_changes_nothing_and_names_the_row() -> None:
    batch = BatchMatcher([bundle("brackets"), None, bundle("brackets"), bundle("counted")])
    batch.advance([4, -7, 7, 4])
    with pytest.raises(DecodeError, match=r"row 2 of 4.*\n.*token 4, '\['.*expected one of"):
        batch.advance([4, 0, 4, 7])
    assert batch.lengths.tolist() == [1, 0, 1, 1]
    assert [batch.matcher(row).depth for row in (0, 2, 3)] == [1, 0, 1]
    with pytest.raises(DecodeError, match="the row has no bundle"):
        batch.matcher(1)


def test_long_texts_grow_and_forks_are_independent() -> None:
    batch = BatchMatcher([bundle("counted")] * 3)
    for _ in range(60):
        for token in (4, 7, 7, 6, 5):
            batch.try_advance([token, token, 0])
    batch.reorder([0, 0, 1])
    batch.rollback([1, 0, 2])
    one = Matcher(bundle("counted"))
    for _ in range(60):
        for token in (4, 7, 7, 6, 5):
            one.try_advance(token)
    assert [batch.matcher(row).state for row in range(3)][1] == one.state
    assert batch.lengths.tolist() == [len(one) - 1, len(one), len(one) - 2]


def test_a_batch_without_rows() -> None:
    batch = BatchMatcher([bundle("brackets")])
    batch.reorder([])
    batch.fill(batch.new_masks())
    batch.advance([])
    assert batch.try_advance([]).tolist() == [] and len(batch) == 0
    batch.append(bundle("brackets"))
    batch.advance([4])


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda b: b.fill(np.zeros((1, 3), np.uint32)), "masks do not fit"),
        (lambda b: b.fill(np.zeros((2, 2), np.uint32)), "masks do not fit"),
        (lambda b: b.fill(np.zeros((2, 3), np.int64)), "another form"),
        (lambda b: b.fill(np.zeros((2, 6), np.uint32)[:, ::2]), "another form"),
        (lambda b: b.fill([[0, 0, 0], [0, 0, 0]]), "another form; found list"),
        (lambda b: b.advance([1]), "tokens do not fit"),
        (lambda b: b.advance([[4], [4]]), "tokens do not fit"),
        (lambda b: b.rollback(1), "row 0 of 2"),
        (lambda b: b.rollback([0, 0, 0]), "counts do not fit"),
        (lambda b: b.rollback([0.5, 0]), "counts do not fit"),
        (lambda b: b.set_row(0, bundle("brackets"), budget=np.array([40, 40])), "no number of tokens"),
        (lambda b: b.reorder([0, 2]), "no such row"),
        (lambda b: b.reorder([0, -1]), "no such row"),
        (lambda b: b.set_row(2, bundle("brackets")), "no such row"),
        (lambda b: b.set_row(-1, bundle("brackets")), "no such row"),
        (lambda b: b.set_row(0, bundle("brackets", 64)), "different tokenizers"),
        (lambda b: b.set_row(0, bundle("brackets"), "nowhere"), "no such entry"),
        (lambda b: BatchMatcher([None]), "needs a bundle"),
    ],
)
def test_misuse(call: Any, fragment: str) -> None:
    with pytest.raises(DecodeError, match=fragment):
        call(BatchMatcher([bundle("brackets"), bundle("counted")]))


@pytest.mark.parametrize("more", [{"bundle": bundle("brackets", 64)}, {"entry": "nowhere"}, {"budget": 1}])
def test_a_row_that_is_refused_is_not_there(more: dict[str, Any]) -> None:
    batch = BatchMatcher([bundle("brackets")])
    with pytest.raises(DecodeError):
        batch.append(**{"bundle": bundle("brackets"), **more})
    assert len(batch) == 1 and len(batch.bundles) == 1
    batch.advance([4])
