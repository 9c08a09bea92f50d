"""Sparse rows packed into one array: a row is an offset, an entry is checked by its owner (the offset again).

Leaves out   what the entries mean.
Invariants   offsets of distinct rows are distinct; `offset + width` never passes the end of the array.
Arrays       comb int32 [·, 2]: (owner, value), (-1, 0) where free.
Source       row displacement: Tarjan, Yao 1979.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def pack(row_offset: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Pack rows given in compressed form.

    Args:
        row_offset: int32 [rows + 1]; the entries of row r are ``columns[row_offset[r]:row_offset[r + 1]]``, ascending.
        columns: int32 [entries], each below ``width``.
        values: int32 [entries].
        width: number of columns.

    Returns:
        offset int32 [rows] and the comb int32 [·, 2].
    """
    rows = row_offset.size - 1
    order = np.argsort(-np.diff(row_offset), kind="stable").astype(np.int32)
    size = int(row_offset[-1]) + rows + 2 * max(width, 1) + 64
    offset, comb, used = _pack(
        row_offset.astype(np.int32), columns.astype(np.int32), values.astype(np.int32), order, width, size
    )
    return offset, comb[: used + width].copy()


@njit(cache=True)
def _pack(row_offset, columns, values, order, width, size):  # type: ignore[no-untyped-def]
    rows = row_offset.size - 1
    comb = np.zeros((size, 2), np.int32)
    comb[:, 0] = -1
    taken = np.zeros(size, np.bool_)  # offsets in use
    offset = np.empty(rows, np.int32)
    free = 0  # no place below it is free for a first entry
    used = 0
    for r in order:
        begin, end = row_offset[r], row_offset[r + 1]
        first = columns[begin] if end > begin else 0
        while free < comb.shape[0] and comb[free, 0] >= 0:
            free += 1
        at = max(0, free - first)
        tries = 0
        while True:
            if at + width >= comb.shape[0]:
                bigger = np.zeros((2 * comb.shape[0] + width, 2), np.int32)
                bigger[:, 0] = -1
                bigger[: comb.shape[0]] = comb
                comb = bigger
                more = np.zeros(comb.shape[0], np.bool_)
                more[: taken.size] = taken
                taken = more
            fits = not taken[at]
            if fits:
                for i in range(begin, end):
                    if comb[at + columns[i], 0] >= 0:
                        fits = False
                        break
            if fits:
                break
            at += 1
            tries += 1
            if tries == 256 and at < used:  # a crowded place: go to the end instead of searching on
                at = used
        taken[at] = True
        offset[r] = at
        used = max(used, at + 1)
        for i in range(begin, end):
            comb[at + columns[i], 0] = at
            comb[at + columns[i], 1] = values[i]
    return offset, comb, used
