"""Sparse rows packed into one array: a row is an offset, an entry is checked by its owner (the offset again).

Leaves out   what the entries mean.
Invariants   offsets of distinct rows are distinct; `offset + width` never passes the end of the array.
Arrays       comb int32 [·, 2]: (owner, value), (-1, 0) where free.
Source       row displacement: Tarjan, Yao 1979.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import kernel

_LEAST = 8  # entries of a row that may have a default row
_GAIN = 4  # entries that a default row has to save


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
    row_offset, columns, values = (
        x if x.dtype == np.int32 else x.astype(np.int32) for x in (row_offset, columns, values)
    )
    offset, comb = _pack(row_offset, columns, values, width)
    return offset, comb


def pack_with_defaults(
    row_offset: np.ndarray, columns: np.ndarray, values: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pack rows of ops, many of which are stored as what they have unlike another row, their *default row*.

    Rows of a trie of keys, say, differ in a letter or two from the row of the state that reads any other key.

    Args:
        row_offset, columns, values, width: as of `pack`; rows are distinct, values above 0.

    Returns:
        offset int32 [rows], offset of the default row int32 [rows] (its own: none), and the comb int32 [·, 2], where a
        value of 0 says that the default row's entry does not count.
    """
    row_offset, columns, values = (
        x if x.dtype == np.int32 else x.astype(np.int32) for x in (row_offset, columns, values)
    )
    default = _defaults(row_offset, columns, values)
    if (default < 0).all():
        offset, comb = _pack(row_offset, columns, values, width)
        return offset, offset, comb
    offset, comb = _pack(*_differences(row_offset, columns, values, default), width)
    return offset, np.where(default < 0, offset, offset[default]), comb


@kernel()
def _defaults(row_offset, columns, values):  # type: ignore[no-untyped-def]
    """For each row the row from which it differs in few entries, int32 [rows]; -1 where it is stored whole.

    The op that more than half of a row's entries have is its majority (Boyer, Moore 1981). Of all rows with one
    majority that which has it most often is their default row.
    """
    rows = row_offset.size - 1
    default, majority, often = np.full(rows, -1, np.int32), np.zeros(rows, np.int32), np.zeros(rows, np.int32)
    most = np.int64(0)
    for r in range(rows):
        begin, end = row_offset[r], row_offset[r + 1]
        if end - begin < _LEAST:
            continue
        op, lead = np.int32(0), 0
        for i in range(begin, end):
            if lead == 0:
                op = values[i]
            lead += 1 if values[i] == op else -1
        count = 0
        for i in range(begin, end):
            count += values[i] == op
        if 2 * count > end - begin:
            majority[r], often[r] = op, count
            most = max(most, np.int64(op))
    if most == 0:
        return default
    leader = np.full(most + 1, -1, np.int32)
    for r in range(rows):
        op = majority[r]
        if op > 0 and (leader[op] < 0 or often[r] > often[leader[op]]):
            leader[op] = r
    for r in range(rows):
        other = leader[majority[r]] if majority[r] > 0 else r
        if other != r and _unlike(row_offset, columns, values, r, other) + _GAIN <= row_offset[r + 1] - row_offset[r]:
            default[r] = other
    return default


@kernel()
def _unlike(row_offset, columns, values, r, other):  # type: ignore[no-untyped-def]
    """In how many columns two rows differ."""
    i, j, count = row_offset[r], row_offset[other], 0
    end, last = row_offset[r + 1], row_offset[other + 1]
    while i < end or j < last:
        if j == last or (i < end and columns[i] < columns[j]):
            count += 1
            i += 1
        elif i == end or columns[j] < columns[i]:
            count += 1
            j += 1
        else:
            count += values[i] != values[j]
            i += 1
            j += 1
    return count


@kernel()
def _differences(row_offset, columns, values, default):  # type: ignore[no-untyped-def]
    """The rows, those with a default row as what they have unlike it; 0 where they have nothing and it has an op."""
    rows = default.size
    offset = np.zeros(rows + 1, np.int32)
    for r in range(rows):
        size = row_offset[r + 1] - row_offset[r]
        offset[r + 1] = offset[r] + (
            size if default[r] < 0 else _unlike(row_offset, columns, values, r, np.int64(default[r]))
        )
    column, value = np.empty(offset[rows], np.int32), np.empty(offset[rows], np.int32)
    for r in range(rows):
        at, i, end = offset[r], row_offset[r], row_offset[r + 1]
        j, last = (row_offset[default[r]], row_offset[default[r] + 1]) if default[r] >= 0 else (end, end)
        while i < end or j < last:
            if j == last or (i < end and columns[i] < columns[j]):
                column[at], value[at] = columns[i], values[i]
                at += 1
                i += 1
            elif i == end or columns[j] < columns[i]:
                column[at], value[at] = columns[j], 0
                at += 1
                j += 1
            else:
                if values[i] != values[j]:
                    column[at], value[at] = columns[i], values[i]
                    at += 1
                i += 1
                j += 1
    return offset, column, value


@kernel()
def _pack(row_offset, columns, values, width):  # type: ignore[no-untyped-def]
    order = _order(row_offset)
    # There is room for twice the entries: what is never touched costs nothing, and a larger array would have to be
    # filled anew.
    size = 2 * columns.size + order.size + 2 * max(width, 1) + 192
    comb, bits = np.empty((size, 2), np.int32), np.zeros((2, (size >> 6) + 3), np.uint64)
    for i in range(width):
        comb[i, 0], comb[i, 1] = -1, 0
    offset, at = np.empty(order.size, np.int32), np.array([0, 0, width])
    done = _place(row_offset, columns, values, order, 0, width, comb, bits, at, offset)
    while done < order.size:
        filled = at[2]
        bigger = np.empty((2 * comb.shape[0] + width, 2), np.int32)
        more = np.zeros((2, (bigger.shape[0] >> 6) + 3), np.uint64)
        for i in range(filled):
            bigger[i, 0], bigger[i, 1] = comb[i, 0], comb[i, 1]
        for i in range(bits.shape[1]):
            more[0, i], more[1, i] = bits[0, i], bits[1, i]
        comb, bits = bigger, more
        done = _place(row_offset, columns, values, order, done, width, comb, bits, at, offset)
    return offset, comb[: at[1] + width]


@kernel()
def compressed(rows, chosen):  # type: ignore[no-untyped-def]
    """The nonzero entries of the chosen rows, int32 [n, ·]: offset, column and value of `CombRows`."""
    offset = np.zeros(chosen.size + 2, np.int64)
    for i in range(chosen.size):
        r, count = chosen[i], 0
        for k in range(rows.shape[1]):
            count += rows[r, k] != 0
        offset[i + 1] = offset[i] + count
    offset[-1] = offset[-2]
    columns = np.empty(offset[-1], np.int32)
    values = np.empty(offset[-1], np.int32)
    at = 0
    for i in range(chosen.size):
        r = chosen[i]
        for k in range(rows.shape[1]):
            value = rows[r, k]
            if value != 0:
                columns[at] = k
                values[at] = value
                at += 1
    return offset, columns, values


@kernel()
def _order(row_offset):  # type: ignore[no-untyped-def]
    """Rows int32 [rows] in the order in which they are placed, the largest first, of equals the first."""
    rows = row_offset.size - 1
    most = 0
    for r in range(rows):
        most = max(most, row_offset[r + 1] - row_offset[r])
    at = np.zeros(most + 2, np.int64)  # where rows of each size begin, by how much less than the most it is
    for r in range(rows):
        at[most - (row_offset[r + 1] - row_offset[r]) + 1] += 1
    for less in range(most + 1):
        at[less + 1] += at[less]
    order = np.empty(rows, np.int32)
    for r in range(rows):
        less = most - (row_offset[r + 1] - row_offset[r])
        order[at[less]] = r
        at[less] += 1
    return order


@kernel()
def _window(bits, at):  # type: ignore[no-untyped-def]
    """Sixty-four places from ``at`` on, as bits."""
    word, shift = at >> 6, np.uint64(at & 63)
    low = bits[word] >> shift
    return low | bits[word + 1] << (np.uint64(64) - shift) if shift else low


@kernel()
def _set(bits, at):  # type: ignore[no-untyped-def]
    bits[at >> 6] |= np.uint64(1) << np.uint64(at & 63)


@kernel()
def _place(row_offset, columns, values, order, done, width, comb, bits, at_, offset):  # type: ignore[no-untyped-def]
    """Place rows from position ``done`` of ``order`` on; the position of the first that found no room.

    Args:
        bits: uint64 [2, ·]: offsets in use, and places in use.
        at_: int64 [3]: no place below it is free for a first entry; offsets in use end; places filled in so far.
        offset: int32 [rows], receives offsets.
    """
    taken, occupied = bits[0], bits[1]
    size = comb.shape[0]
    free, used, filled = at_[0], at_[1], at_[2]
    while done < order.size:
        r = order[done]
        begin, end = row_offset[r], row_offset[r + 1]
        first = columns[begin] if end > begin else 0
        while occupied[free >> 6] >> np.uint64(free & 63) & np.uint64(1):
            free += 1
        at = max(0, free - first)
        tries = 0
        while True:
            if at + width + 128 >= size:  # a window looks a little past the end
                at_[0], at_[1], at_[2] = free, used, filled
                return done
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
        for i in range(filled, used + width):
            comb[i, 0], comb[i, 1] = -1, 0
        filled = max(filled, used + width)
        for i in range(begin, end):
            comb[at + columns[i], 0] = at
            comb[at + columns[i], 1] = values[i]
            _set(occupied, at + columns[i])
        done += 1
    at_[0], at_[1], at_[2] = free, used, filled
    return done
