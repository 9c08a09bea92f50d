"""Combs: rows are read back, and rows given in full become rows in compressed form."""

import numpy as np
import pytest

from toolc.compiler.lift import comb


def _rows(seed: int, rows: int, width: int, full: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (random.integers(1, 1000, (rows, width)) * (random.random((rows, width)) < full)).astype(np.int32)


def _packed(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    offset, columns, values = comb.compressed(rows, np.arange(len(rows)))
    assert offset[-1] == offset[-2] == columns.size  # behind the rows is one without entries
    return comb.pack(offset[:-1], columns, values, rows.shape[1])


@pytest.mark.parametrize("full", [0.0, 0.05, 0.5, 1.0])
def test_rows_are_read_back(full: float) -> None:
    rows = _rows(1, 300, 40, full)
    offset, packed = _packed(rows)
    assert np.unique(offset).size == 300
    assert offset.max() + 40 <= len(packed)
    entry = packed[offset[:, None] + np.arange(40)]
    assert np.array_equal(np.where(entry[:, :, 0] == offset[:, None], entry[:, :, 1], 0), rows)
    owned = packed[:, 0] >= 0
    assert np.count_nonzero(owned) == np.count_nonzero(rows)
    assert (packed[~owned] == (-1, 0)).all()


def test_a_comb_grows() -> None:
    """Two far columns of every row: the array is longer than its entries let expect."""
    rows = np.zeros((64, 5000), np.int32)
    rows[:, [0, 4999]] = 7
    rows[:, 4000:4063] = np.eye(64, dtype=np.int32)[:, :63]
    offset, packed = _packed(rows)
    entry = packed[offset[:, None] + np.arange(5000)]
    assert np.array_equal(np.where(entry[:, :, 0] == offset[:, None], entry[:, :, 1], 0), rows)
    assert not comb.pack(np.zeros(1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int32), 3)[0].size
