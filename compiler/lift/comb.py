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
def compressed(rows, chosen):  # type: ignore[no-untyped-def]
    """The nonzero entries of the chosen rows, int32 [n, ·], as `pack` takes them: row_offset, columns, values."""
    offset = np.zeros(chosen.size + 1, np.int32)
    for i in range(chosen.size):
        count = 0
        for value in rows[chosen[i]]:
            count += value != 0
        offset[i + 1] = offset[i] + count
    columns = np.empty(offset[-1], np.int32)
    values = np.empty(offset[-1], np.int32)
    at = 0
    for i in range(chosen.size):
        for k in range(rows.shape[1]):
            if rows[chosen[i], k] != 0:
                columns[at] = k
                values[at] = rows[chosen[i], k]
                at += 1
    return offset, columns, values


@njit(cache=True)
def _window(bits, at):  # type: ignore[no-untyped-def]
    """Sixty-four places from ``at`` on, as bits."""
    word, shift = at >> 6, np.uint64(at & 63)
    low = bits[word] >> shift
    return low | bits[word + 1] << (np.uint64(64) - shift) if shift else low


@njit(cache=True)
def _set(bits, at):  # type: ignore[no-untyped-def]
    bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@njit(cache=True)
def _pack(row_offset, columns, values, order, width, size):  # type: ignore[no-untyped-def]
    rows = row_offset.size - 1
    size += 128  # a window looks a little past the end
    comb = np.zeros((size, 2), np.int32)
    comb[:, 0] = -1
    taken = np.zeros((size >> 6) + 3, np.uint64)  # offsets in use, as bits
    occupied = np.zeros((size >> 6) + 3, np.uint64)  # places in use, as bits
    offset = np.empty(rows, np.int32)
    free = 0  # no place below it is free for a first entry
    used = 0
    for r in order:
        begin, end = row_offset[r], row_offset[r + 1]
        first = columns[begin] if end > begin else 0
        while free < size and comb[free, 0] >= 0:
            free += 1
        at = max(0, free - first)
        tries = 0
        while True:
            if at + width + 128 >= size:
                bigger = np.zeros((2 * size + width, 2), np.int32)
                bigger[:, 0] = -1
                bigger[:size] = comb
                comb = bigger
                size = comb.shape[0]
                further = np.zeros((2, (size >> 6) + 3), np.uint64)
                further[0, : taken.size] = taken
                further[1, : taken.size] = occupied
                taken, occupied = further[0], further[1]
            clash = _window(taken, at)  # of 64 offsets at a time
            for i in range(begin, end):
                clash |= _window(occupied, at + columns[i])
                if clash == ~np.uint64(0):
                    break
            if clash != ~np.uint64(0):
                while clash & np.uint64(1):
                    clash >>= np.uint64(1)
                    at += 1
                break
            at += 64
            tries += 64
            if tries == 256 and at < used:  # a crowded place: go to the end instead of searching on
                at = used
        _set(taken, at)
        offset[r] = at
        used = max(used, at + 1)
        for i in range(begin, end):
            comb[at + columns[i], 0] = at
            comb[at + columns[i], 1] = values[i]
            _set(occupied, at + columns[i])
    return offset, comb, used
