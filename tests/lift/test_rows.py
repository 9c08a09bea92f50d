"""Lists that are stored as differences come back as they were, whatever they are like."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from toolc.compiler.lift.rows import difference_lists

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
    tokens, offset, base = difference_lists(np.concatenate(lists), start, chosen, 30_000)
    assert len(tokens) <= start[-1]
    for i, expected in enumerate(np.sort(lists[n]) for n in chosen):
        found = tokens[offset[i] : offset[i + 1]]
        if base[i] >= 0:
            assert base[i] < i and base[base[i]] < 0
            found = np.setxor1d(found, tokens[offset[base[i]] : offset[base[i] + 1]])
        assert (np.diff(found) > 0).all() and np.array_equal(found, expected)


def test_near_lists_are_stored_small() -> None:
    first = np.arange(0, 3000, 3, dtype=np.int32)
    lists = [first, np.setxor1d(first, [4, 5, 6]).astype(np.int32), first[:-2]]
    tokens, offset, base = difference_lists(
        np.concatenate(lists), np.cumsum([0, *map(len, lists)]), np.arange(3, dtype=np.int32), 3000
    )
    assert base.tolist() == [-1, 0, 0] and np.diff(offset).tolist() == [1000, 3, 2]
    assert tokens[1000:].tolist() == [4, 5, 6, 2994, 2997]
