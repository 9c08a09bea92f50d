"""Collect mask rows: a slice up to some units, with a list of tokens toggled; each exists once.

Leaves out   which tokens a row has (lift.py), expansion (runtime).
Invariants   rows, lists and bit rows are numbered by first use; lists ascend; a list that is much like an earlier one
             is stored as the difference. A list that is longer than a bit row is one, or the difference to one.
Arrays       docs/format.md, `row_…`, `list_…`, `dense`.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import copy_row, kernel

from ..passes import Pass
from ..terminals.pool import Pool, intern, room
from .children import count_bits

_SKETCH = 4096  # bits
_MOST_BASES = 64
_WORTH = 64  # a shorter list is stored as it is
_NEAR = 4  # a list that differs from a bit row by more than this part of its length is one of its own


class RowStore:
    """Interns rows of a vocabulary of ``size`` tokens; their lists are in a pool."""

    def __init__(self, size: int, lists: Pool) -> None:
        self.words = -(-size // 32)
        self.lists = lists
        self._rows = Pool(3, expected=1024, length=3)  # slice, units, list

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, wanted: np.ndarray) -> np.ndarray:
        """Numbers of rows int32 [n, 3]: a slice (-1: none), of whose tokens only those of at most so many units (-1:
        all), with a list toggled."""
        out = np.empty(len(wanted), np.int32)
        at = 0
        while (at := _intern_rows(*self._rows.arrays, wanted, at, out)) < len(wanted):
            self._rows.grow()
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """The row arrays of a bundle."""
        row = self._rows.rows(3)
        list_of, numbers = _by_use(row[:, 2].copy(), len(self.lists))
        tokens, offset, base, dense_of, dense = difference_lists(
            self.lists.data, self.lists.offset, numbers, self.words, Pass.LIST_DIFFERENCES.on
        )
        return {
            "row_slice": row[:, 0].copy(),
            "row_units": row[:, 1].copy(),
            "row_dense": dense_of[list_of],
            "row_list": list_of,
            "list_offset": offset.astype(np.int32),
            "list_tokens": tokens,
            "list_base": base,
            "dense": dense.view(np.uint32)[:, : self.words],
        }


@kernel()
def _intern_rows(data, offset, table, count, rows, at, out):  # type: ignore[no-untyped-def]
    """Intern rows int32 [n, 3] from number ``at`` on; returns the number of the first one that found no room."""
    for j in range(at, rows.shape[0]):
        if not room(data, offset, table, count, 3):
            return j
        begin = np.int64(offset[count[0]])
        for k in range(3):
            data[begin + k] = rows[j, k]
        out[j] = intern(data, offset, table, count, begin + 3)
    return rows.shape[0]


@kernel()
def _by_use(lists, count):  # type: ignore[no-untyped-def]
    """New numbers of lists, by first use, and the old number of each."""
    new = np.full(count, -1, np.int32)
    out = np.empty(lists.size, np.int32)
    old = np.empty(lists.size, np.int32)
    used = 0
    for i in range(lists.size):
        if new[lists[i]] < 0:
            new[lists[i]] = used
            old[used] = lists[i]
            used += 1
        out[i] = new[lists[i]]
    return out, old[:used].copy()


@kernel()
def _append_bits(bits, other, out, end, most):  # type: ignore[no-untyped-def]
    """Append the tokens in which two bit sets, uint64, differ, ascending, up to so many; returns the place after."""
    last = end + most
    for word in range(bits.size):
        x = bits[word] ^ other[word]
        while x != 0 and end < last:
            lowest = x & (~x + np.uint64(1))
            out[end] = word << 6 | count_bits(lowest - np.uint64(1))
            end += 1
            x ^= lowest
    return end


@kernel()
def difference_lists(data, where, numbers, length, differ):  # type: ignore[no-untyped-def]
    """Lists made ascending, each as itself or as its difference to an earlier one, its base, or to a bit row.

    Lists are compared by sketches, bit sets of hashed tokens: the difference of two sketches is at most that of the
    lists. A list that is like no base so far becomes one; a base has no base itself. Those that are longer than a bit
    row would fill a sketch: they are compared as bit rows with the latest of these.

    Args:
        data int32 [·], where int64 [·]: list n is ``data[where[n]:where[n + 1]]``, in any order, each token once.
        numbers: int32 [lists]: which are wanted;  length: of a bit row, in words of 32 tokens;
        differ: whether there are differences.

    Returns:
        tokens int32 [·], offset int64 [lists + 1], base int32 [lists], -1 for none; bit row of each, int32 [lists], -1
        for none; the bit rows, uint64 [·, half as many words, and what is left over].
    """
    count = numbers.size
    words = _SKETCH // 64
    one = np.uint64(1)
    sketch = np.zeros(words, np.uint64)
    sketches = np.empty((_MOST_BASES, words), np.uint64)
    bits = np.zeros(length // 2 + 1, np.uint64)
    none = np.zeros(length // 2 + 1, np.uint64)
    bits_of_base = np.empty((_MOST_BASES, bits.size), np.uint64)
    bases = np.empty(_MOST_BASES, np.int32)  # numbers of the bases
    known = 0
    dense = np.empty((0, bits.size), np.uint64)
    denses = 0
    total = 0
    for n in numbers:
        total += where[n + 1] - where[n]
    out = np.empty(total, np.int32)
    offset = np.zeros(count + 1, np.int64)
    base = np.full(count, -1, np.int32)
    dense_of = np.full(count, -1, np.int32)
    for i in range(count):
        tokens = data[where[numbers[i]] : where[numbers[i] + 1]]
        begin = offset[i]
        offset[i + 1] = begin + tokens.size
        if tokens.size < _WORTH and tokens.size <= length:
            for k in range(tokens.size):
                at = begin + k
                while at > begin and out[at - 1] > tokens[k]:
                    out[at] = out[at - 1]
                    at -= 1
                out[at] = tokens[k]
            continue
        for t in tokens:
            bits[t >> 6] |= one << np.uint64(t & 63)
        if tokens.size > length:
            like = _nearest(bits, dense, denses if differ else 0, length // _NEAR)
            if like < 0:
                if denses == dense.shape[0]:
                    more = np.empty((2 * denses + 4, bits.size), np.uint64)
                    more[:denses] = dense
                    dense = more
                copy_row(dense, denses, bits)
                like = denses
                denses += 1
            dense_of[i] = like
            offset[i + 1] = _append_bits(bits, dense[like], out, begin, tokens.size)
            bits[:] = 0
            continue
        sketch[:] = 0
        for t in tokens:
            place = np.int64(t) * 0x9E3779B1 >> 12 & _SKETCH - 1
            sketch[place >> 6] |= one << np.uint64(place & 63)
        nearest = tokens.size // 3 if differ else 0
        like = _nearest(sketch, sketches, known, nearest)
        if like >= 0:
            end = _append_bits(bits, bits_of_base[like], out, begin, tokens.size)
            if end - begin < tokens.size:  # full sketches can look alike when it is no smaller
                base[i] = bases[like]
                offset[i + 1] = end
        elif known < _MOST_BASES:
            copy_row(sketches, known, sketch)
            copy_row(bits_of_base, known, bits)
            bases[known] = i
            known += 1
        if base[i] < 0:
            _append_bits(bits, none, out, begin, tokens.size)
        for t in tokens:
            bits[t >> 6] = 0
    return out[: offset[count]].copy(), offset, base, dense_of, dense[:denses].copy()


@kernel()
def _nearest(bits, others, count, below):  # type: ignore[no-untyped-def]
    """Which of the last of ``count`` bit sets, uint64 [·, words], differs least from one, and by less than so much; the
    first of those; -1 for none."""
    nearest, like = below, -1
    for n in range(max(0, count - _MOST_BASES), count):
        distance = 0
        for k in range(bits.size):
            distance += count_bits(bits[k] ^ others[n, k])
            if distance >= nearest:
                break
        if distance < nearest:
            nearest = distance
            like = n
    return like
