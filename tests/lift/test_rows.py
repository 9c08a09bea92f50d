"""Lists that are stored as differences come back as they were, whatever they are like; which are bit rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from toolc.compiler.lift.rows import difference_lists

WORDS = 30_016 // 32
SIZES = st.sampled_from([0, 1, 10, 63, 64, 70, 500, 3000, 20_000])


@given(
    st.integers(0, 2**32 - 1), st.lists(st.tuples(SIZES, st.booleans(), st.integers(0, 400)), min_size=1, max_size=12)
)
@settings(max_examples=60, deadline=None)
def test_differences(seed: int, plan: list[tuple[int, bool, int]]) -> None:
    rng = np.random.default_rng(seed)
    lists: list[np.ndarray] = []
    for size, like_another, changes in plan:
        tokens = rng.permutation(30_000)[:size]
        if like_another and lists:
            tokens = rng.permutation(np.setxor1d(lists[rng.integers(len(lists))], rng.permutation(30_000)[:changes]))
        lists.append(tokens.astype(np.int32))
    start = np.cumsum([0, *map(len, lists)])
    chosen = rng.permutation(len(lists))[: 1 + len(lists) // 2].astype(np.int32)
    tokens, offset, base, row, dense = difference_lists(np.concatenate(lists), start, chosen, WORDS, True)
    assert len(tokens) <= start[-1] and set(row.tolist()) - {-1} == set(range(len(dense)))
    bits = np.unpackbits(dense.view(np.uint8), axis=1, bitorder="little")
    for i, expected in enumerate(np.sort(lists[n]) for n in chosen):
        found = tokens[offset[i] : offset[i + 1]]
        if base[i] >= 0:
            assert base[i] < i and base[base[i]] < 0
            found = np.setxor1d(found, tokens[offset[base[i]] : offset[base[i] + 1]])
        assert (np.diff(found) > 0).all() and (row[i] >= 0) == (len(expected) > WORDS)
        if row[i] >= 0:
            assert base[i] < 0 and len(found) < WORDS // 4
            found = np.setxor1d(found, np.flatnonzero(bits[row[i]]))
        assert np.array_equal(found, expected)


def test_near_lists_are_stored_small() -> None:
    first = np.arange(0, 3000, 3, dtype=np.int32)
    lists = [first, np.setxor1d(first, [4, 5, 6]).astype(np.int32), first[:-2]]
    tokens, offset, base, row, dense = difference_lists(
        np.concatenate(lists), np.cumsum([0, *map(len, lists)]), np.arange(3, dtype=np.int32), 1100, True
    )
    assert base.tolist() == [-1, 0, 0] and np.diff(offset).tolist() == [1000, 3, 2]
    assert tokens[1000:].tolist() == [4, 5, 6, 2994, 2997]
    assert not len(dense) and (row < 0).all()


def test_near_long_lists_share_a_bit_row() -> None:
    """Of 40,000 tokens any two fill a sketch: each was a bit row."""
    first = np.arange(40_000, dtype=np.int32)
    lists = [first, first[:-3], np.append(first, 50_000).astype(np.int32), first[20_000:], first[20_001:]]
    tokens, offset, _, row, dense = difference_lists(
        np.concatenate(lists), np.cumsum([0, *map(len, lists)]), np.arange(5, dtype=np.int32), 4000, True
    )
    assert row.tolist() == [0, 0, 0, 1, 1] and len(dense) == 2
    assert np.diff(offset).tolist() == [0, 3, 1, 0, 1] and tokens.tolist() == [39_997, 39_998, 39_999, 50_000, 20_000]
