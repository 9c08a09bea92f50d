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

_TRIES = 64  # places that are looked at for a row


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
    own = np.zeros(rows + 1, np.int64)  # entries of the rows that have a default, which are looked for once
    for r in range(rows):
        own[r + 1] = own[r] + (columns if default[r] >= 0 else 0)
    found = np.empty((own[rows], 2), np.int32)
    for r in range(rows):
        if default[r] >= 0:
            count = np.int64(0)
            for k in range(columns):
                op = op_in(comb, place_of[r], default[r], k)
                found[own[r] + count, 0], found[own[r] + count, 1] = k, op
                count += op != 0
            offset[r + 1] = count
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
            for i in range(offset[r + 1] - offset[r]):
                column[at[r] + i], value[at[r] + i] = found[own[r] + i, 0], found[own[r] + i, 1]
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


@kernel()
def pack_quickly(offset, column, value, columns):  # type: ignore[no-untyped-def]
    """A comb of rows: where each begins, int64 [rows], and the comb, padded to so many columns behind these places.

    The longest come first, each where its entries are free: within a few places from where the last one with this first
    column lies, or else behind all others.

    Quicker than to look for the best place (compiler/lift/comb.py), and nearly as small.

    Args:
        offset, column, value: row r has the entries ``offset[r]:offset[r + 1]``, by column.
    """
    rows = offset.size - 1
    base = np.zeros(rows, np.int64)
    more = 2 * columns + _TRIES + 2  # no place of a row is so far behind those before it
    owner = np.full(offset[rows] + more, -1, np.int32)
    begun = np.zeros(owner.size, np.bool_)
    after = np.zeros(columns, np.int64)  # by first column: behind the last row
    free = end = most = np.int64(0)
    for r in np.argsort(offset[:-1] - offset[1:], kind="mergesort"):
        if most + more > owner.size:
            wider = np.full(2 * (most + more), -1, np.int32)
            wider[: owner.size] = owner
            marks = np.zeros(wider.size, np.bool_)
            marks[: begun.size] = begun
            owner, begun = wider, marks
        first = np.int64(column[offset[r]]) if offset[r + 1] > offset[r] else np.int64(0)
        place = max(free - first, after[first])
        tries = 0
        while True:
            fits = not begun[place]  # no two rows begin at one place
            i = offset[r]
            while fits and i < offset[r + 1]:
                fits = owner[place + column[i]] < 0
                i += 1
            if fits:
                break
            tries += 1
            place = max(place + 1, end - first) if tries == _TRIES else place + 1
        base[r], after[first] = place, place + 1
        begun[place] = True
        for i in range(offset[r], offset[r + 1]):
            owner[place + column[i]] = place
            end = max(end, place + column[i] + 1)
        most = max(most, place + columns)
        while owner[free] >= 0:
            free += 1
    comb = np.zeros((max(end, most), 2), np.int32)
    comb[:, 0] = owner[: comb.shape[0]]
    for r in range(rows):
        for i in range(offset[r], offset[r + 1]):
            comb[base[r] + column[i], 1] = value[i]
    return base, comb
