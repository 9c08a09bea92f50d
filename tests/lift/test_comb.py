"""Combs: rows are read back, and rows given in full are packed like rows in compressed form."""

import numpy as np
import pytest

from toolc.compiler.lift import comb


def _rows(seed: int, rows: int, width: int, full: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.integers(1, 1000, (rows, width)) * (random.random((rows, width)) < full)).astype(np.int32)


@pytest.mark.parametrize("full", [0.0, 0.05, 0.5, 1.0])
def test_rows_are_read_back(full: float) -> None:
    rows = _rows(1, 300, 40, full)
    offset, packed = comb.pack_rows(rows, np.arange(300))
    assert np.unique(offset).size == 300
    assert offset.max() + 40 <= len(packed)
    entry = packed[offset[:, None] + np.arange(40)]
    assert np.array_equal(np.where(entry[:, :, 0] == offset[:, None], entry[:, :, 1], 0), rows)
    owned = packed[:, 0] >= 0
    assert np.count_nonzero(owned) == np.count_nonzero(rows)
    assert (packed[~owned] == (-1, 0)).all()


@pytest.mark.parametrize("full", [0.0, 0.1, 0.9])
def test_many_rows_are_packed_batch_by_batch(full: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, chosen = _rows(2, 500, 70, full), np.random.default_rng(3).permutation(500)[:450]
    whole = comb.pack_rows(rows, chosen)
    monkeypatch.setattr(comb, "_BATCH", 7)
    for one, other in zip(whole, comb.pack_rows(rows, chosen), strict=True):
        assert np.array_equal(one, other)


def test_a_comb_grows() -> None:
    """Two far columns of every row: the array is longer than its entries let expect."""
    rows = np.zeros((64, 5000), np.int32)
    rows[:, [0, 4999]] = 7
    rows[:, 4000:4063] = np.eye(64, dtype=np.int32)[:, :63]
    offset, packed = comb.pack_rows(rows, np.arange(64))
    entry = packed[offset[:, None] + np.arange(5000)]
    assert np.array_equal(np.where(entry[:, :, 0] == offset[:, None], entry[:, :, 1], 0), rows)
    assert not comb.pack(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32), 3)[0].size
