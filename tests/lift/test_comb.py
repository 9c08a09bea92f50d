"""Combs: rows are read back, and rows given in full become rows in compressed form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolc.compiler.lift import comb
from toolc.runtime.selection.comb import rows_at


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


def _read(offset: np.ndarray, default: np.ndarray, packed: np.ndarray, width: int) -> np.ndarray:
    """The rows that a comb with default rows stands for."""
    own, other = (packed[at[:, None] + np.arange(width)] for at in (offset, default))
    lent = np.where(other[:, :, 0] == default[:, None], other[:, :, 1], 0)
    return np.where(own[:, :, 0] == offset[:, None], own[:, :, 1], lent)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 20), st.integers(1, 40), st.integers(1, 30), st.floats(0, 1))
def test_default_rows_are_read_back(seed: int, rows: int, width: int, alike: float) -> None:
    """Rows that differ in some columns from one of three."""
    random = np.random.default_rng(seed)
    base = random.integers(0, 3, (3, width)) * 8 + random.integers(0, 2, (3, width)) * 16
    mine = base[random.integers(0, 3, rows)]
    found = np.where(random.random((rows, width)) < alike, mine, random.integers(0, 4, (rows, width)) * 8)
    found = np.unique(found.astype(np.int32), axis=0)
    offset, columns, values = comb.compressed(found, np.arange(len(found)))
    at, default, packed = comb.pack_with_defaults(offset[:-1], columns, values, width)
    assert np.array_equal(_read(at, default, packed, width), found)
    assert at.max() + width <= len(packed) and default.max() + width <= len(packed)
    held = rows_at(packed, at, default, width)
    dense = np.zeros((held.rows + 1, width), np.int32)
    dense[np.repeat(np.arange(held.rows + 1), np.diff(held.offset)), held.column] = held.value
    assert np.array_equal(dense[held.of], found)
    assert all((np.diff(held.column[a:b]) > 0).all() for a, b in zip(held.offset, held.offset[1:]))


def test_rows_of_a_trie_are_their_letters() -> None:
    """States inside of a key read any letter as the state of all other keys does, but for one."""
    other = np.full(60, 9 << 3, np.int32)
    other[:3] = 0, 7 << 3, 0
    rows = np.stack([other, *(np.where(np.arange(60) == k, (20 + k) << 3, other) for k in range(5, 25))])
    rows[7, 30] = 0  # a letter that cannot be read
    offset, columns, values = comb.compressed(rows, np.arange(len(rows)))
    at, default, packed = comb.pack_with_defaults(offset[:-1], columns, values, 60)
    assert np.array_equal(_read(at, default, packed, 60), rows)
    assert (default == at[0]).all()
    assert np.count_nonzero(packed[:, 0] >= 0) == 58 + 20 + 1
