"""The rows of a comb read back: what entries each has, without a look at every column of every row.

Leaves out   packing (compiler/lift/comb.py).
Invariants   an entry belongs to the row whose place is its owner; one whose value is 0 is none, and neither is what a
             hostile file may hold outside of the columns of its owner.
Arrays       comb int32 [·, 2]: owner, value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .memory import fixed, kernel


class CombRows(NamedTuple):
    """Rows in the order of their places, and behind them one without entries.

    of int64 [·]: the row at each place that was asked for;  offset int64 [rows + 2];  column, value int32 [entries]:
    those of row r are at ``offset[r]:offset[r + 1]``, by column.
    """

    of: np.ndarray
    offset: np.ndarray
    column: np.ndarray
    value: np.ndarray

    @property
    def rows(self) -> int:
        """How many rows there are, without the last."""
        return int(self.offset.size) - 2


def rows_at(comb: np.ndarray, places: np.ndarray, columns: int) -> CombRows:
    """The rows of so many columns that begin at these places, int32 [·], each once."""
    return CombRows(*_rows_at(fixed(comb), fixed(places), columns))


@kernel()
def _row_of(comb, i, row, columns):  # type: ignore[no-untyped-def]
    """The row of an entry, -1 for none."""
    owner = comb[i, 0]
    return row[owner] if owner >= 0 and 0 <= i - owner < columns and comb[i, 1] != 0 else np.int32(-1)


@kernel()
def _rows_at(comb, places, columns):  # type: ignore[no-untyped-def]
    row = np.full(comb.shape[0], -1, np.int32)
    for place in places:
        row[place] = 0
    rows = 0
    for place in range(row.size):
        if row[place] == 0:
            row[place] = rows
            rows += 1
    of = np.empty(places.size, np.int64)
    for n in range(places.size):
        of[n] = row[places[n]]
    offset = np.zeros(rows + 2, np.int64)
    for i in range(comb.shape[0]):
        r = _row_of(comb, i, row, columns)
        if r >= 0:
            offset[r + 1] += 1
    for r in range(rows + 1):
        offset[r + 1] += offset[r]
    at = offset.copy()
    column, value = np.empty(offset[-1], np.int32), np.empty(offset[-1], np.int32)
    for i in range(comb.shape[0]):
        r = _row_of(comb, i, row, columns)
        if r >= 0:
            column[at[r]], value[at[r]] = i - comb[i, 0], comb[i, 1]
            at[r] += 1
    return of, offset, column, value
