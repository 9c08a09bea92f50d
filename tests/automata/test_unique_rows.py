"""Distinct numbers and rows, and offsets, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from toolc.compiler.pushdown.unique_rows import distinct_numbers, distinct_rows
from toolc.compiler.terminals.offsets import offsets


@pytest.mark.parametrize("size", [0, 1, 2, 7, 300, 5000])
@pytest.mark.parametrize("range_", [1, 20, 1 << 60])
def test_distinct_numbers(size: int, range_: int) -> None:
    numbers = np.random.default_rng(size).integers(-range_, range_, size)
    found, first, which, often = np.unique(numbers, return_index=True, return_inverse=True, return_counts=True)
    made = distinct_numbers(numbers)
    assert [x.tolist() for x in made] == [x.tolist() for x in (found, which, first, often)]


def test_distinct_rows() -> None:
    rows = np.random.default_rng(1).integers(0, 2, (200, 6)).astype(np.int32)
    number, first = distinct_rows(rows)
    assert first.tolist() == sorted(np.unique(rows, axis=0, return_index=True)[1].tolist())
    assert (rows[first][number] == rows).all()


def test_offsets() -> None:
    assert offsets(()).tolist() == [0]
    made = offsets((len(x) for x in ("ab", "", "c")), np.int32)
    assert made.tolist() == [0, 2, 2, 3] and made.dtype == np.int32
