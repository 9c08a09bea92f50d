"""The reference lift against brute force: the tables mean what the document says, before any kernel is tried."""

from __future__ import annotations

import random

import pytest

from toolc.runtime.reference import Sequence

from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(12))]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_chains_equal_brute_force(kind: str) -> None:
    made = bundle(kind)
    pick = random.Random(1)
    for _ in range(4):
        oracle = Sequence.start(made)
        for _ in range(25):
            allowed = oracle.mask()
            # A push past the capacity is the one thing that rows do not know; keep away from it.
            if len(oracle.stack) < made.meta["capacity"] - 6:
                assert allowed == oracle.brute_mask()
            live = sorted(allowed)
            if not live or not oracle.advance(pick.choice(live)):
                break
