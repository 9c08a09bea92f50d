"""The rows of a comb read back: what entries each has, without a look at every column of every row.

Leaves out   packing (compiler/lift/comb.py).
Invariants   an entry belongs to the row whose place is its owner; one whose value is 0 is none, and neither is what a
             hostile file may hold outside of the columns of its owner. Cells of one place have one default row; in a
             hostile file that of the last counts.
Trusts       places lie inside of the comb, as do all columns behind them. Checked on opening.
Arrays       comb int32 [·, 2]: owner, value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..format.kernels.step import op_in
from ..jit.memory import fixed, kernel


class CombRows(NamedTuple):
    """Different rows in some order, and behind them one without entries.

    of int64 [·]: the row of each that was asked for;  offset int64 [rows + 2];  column, value int32 [entries]: those of
    row r are at ``offset[r]:offset[r + 1]``, by column.
    """

    of: np.ndarray
    offset: np.ndarray
    column: np.ndarray
    value: np.ndarray

    @property
    def rows(self) -> int:
        """How many rows there are, without the last."""
        return int(self.offset.size) - 2

    def at(self, chosen: np.ndarray) -> CombRows:
        """The rows of some of those that were asked for, int64 [·]: numbered by first use."""
        return CombRows(*_chosen(self.of, self.offset, self.column, self.value, chosen))


def rows_at(comb: np.ndarray, places: np.ndarray, defaults: np.ndarray, columns: int) -> CombRows:
    """The rows of so many columns that begin at these places, int32 [·], in the order of their places.

    Args:
        defaults: int32 [·]: the place of the default row of each, which has the entries that the row leaves to it.
    """
    return CombRows(*_rows_at(fixed(comb), fixed(places), fixed(defaults), columns))


@kernel()
def _row_of(comb, i, row, columns):  # type: ignore[no-untyped-def]
    """The row of an entry, -1 for none."""
    owner = comb[i, 0]
    return row[owner] if owner >= 0 and 0 <= i - owner < columns and comb[i, 1] != 0 else np.int32(-1)


@kernel()
def _rows_at(comb, places, defaults, columns):  # type: ignore[no-untyped-def]
    row = np.full(comb.shape[0], -1, np.int32)
    for place in places:
        row[place] = 0
    rows = 0
    for place in range(row.size):
        if row[place] == 0:
            row[place] = rows
            rows += 1
    place_of, default = np.empty(rows, np.int32), np.full(rows, -1, np.int32)
    for n in range(places.size):
        r = row[places[n]]
        place_of[r] = places[n]
        if defaults[n] != places[n]:
            default[r] = defaults[n]
    of = np.empty(places.size, np.int64)
    for n in range(places.size):
        of[n] = row[places[n]]
    offset = np.zeros(rows + 2, np.int64)
    for i in range(comb.shape[0]):
        r = _row_of(comb, i, row, columns)
        if r >= 0 and default[r] < 0:
            offset[r + 1] += 1
    for r in range(rows):
        if default[r] >= 0:
            for k in range(columns):
                offset[r + 1] += op_in(comb, place_of[r], default[r], k) != 0
    for r in range(rows + 1):
        offset[r + 1] += offset[r]
    at = offset.copy()
    column, value = np.empty(offset[-1], np.int32), np.empty(offset[-1], np.int32)
    for i in range(comb.shape[0]):
        r = _row_of(comb, i, row, columns)
        if r >= 0 and default[r] < 0:
            column[at[r]], value[at[r]] = i - comb[i, 0], comb[i, 1]
            at[r] += 1
    for r in range(rows):
        if default[r] >= 0:
            for k in range(columns):
                op = op_in(comb, place_of[r], default[r], k)
                if op != 0:
                    column[at[r]], value[at[r]] = k, op
                    at[r] += 1
    return of, offset, column, value


@kernel()
def _chosen(of, offset, column, value, chosen):  # type: ignore[no-untyped-def]
    number = np.full(offset.size - 1, -1, np.int64)
    own, order = np.empty(chosen.size, np.int64), np.empty(chosen.size, np.int64)
    rows = entries = np.int64(0)
    for i in range(chosen.size):
        r = of[chosen[i]]
        if number[r] < 0:
            number[r] = rows
            order[rows] = r
            rows += 1
            entries += offset[r + 1] - offset[r]
        own[i] = number[r]
    ends = np.zeros(rows + 2, np.int64)
    columns, values = np.empty(entries, np.int32), np.empty(entries, np.int32)
    for n in range(rows):
        begin, size = offset[order[n]], offset[order[n] + 1] - offset[order[n]]
        for i in range(size):
            columns[ends[n] + i], values[ends[n] + i] = column[begin + i], value[begin + i]
        ends[n + 1] = ends[n] + size
    ends[rows + 1] = ends[rows]
    return own, ends, columns, values
