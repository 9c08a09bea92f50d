"""Mask rows while they are collected: a slice up to some units, with a list of tokens toggled; each exists once.

Leaves out   which tokens a row has (lift.py), expansion (runtime).
Invariants   rows, lists and bit rows are numbered by first use; lists ascend; a list that is much like an earlier one
             is stored as the difference; long lists become bit rows.
Arrays       docs/architecture.md, `row_…`, `list_…`, `dense`.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.memory import copy_row, kernel

from ..automata.pool import Pool, intern, room
from .children import count_bits

_SKETCH = 4096  # bits
_MOST_BASES = 64
_WORTH = 64  # a shorter list is stored as it is


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
        tokens, offset, base = difference_lists(self.lists.data, self.lists.offset, numbers, 32 * self.words)
        size = offset[1:] - offset[:-1]
        dense_of = np.full(numbers.size, -1, np.int32)
        dense = np.zeros((0, self.words), np.uint32)
        if size.max(initial=0) > self.words:
            is_base = np.zeros(numbers.size, np.bool_)
            is_base[base[base >= 0]] = True
            long = np.flatnonzero((size > self.words) & ~is_base)
            dense = _bit_rows(tokens, offset, long, self.words)
            dense_of[long] = np.arange(long.size)
            tokens = tokens[np.repeat(dense_of < 0, size)]
            size[long] = 0
            np.cumsum(size, out=offset[1:])
        return {
            "row_slice": row[:, 0].copy(),
            "row_units": row[:, 1].copy(),
            "row_dense": dense_of[list_of],
            "row_list": list_of,
            "list_offset": offset.astype(np.int32),
            "list_tokens": tokens,
            "list_base": base,
            "dense": dense,
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
def difference_lists(data, where, numbers, size):  # type: ignore[no-untyped-def]
    """Lists made ascending, each as itself or as its difference to an earlier one, its base.

    Lists are compared by sketches, bit sets of hashed tokens: the difference of two sketches is at most that of the
    lists. A list that is like no base so far becomes one; a base has no base itself.

    Args:
        data int32 [·], where int64 [·]: list n is ``data[where[n]:where[n + 1]]``, in any order, each token once.
        numbers: int32 [lists]: which are wanted;  size: of the vocabulary.

    Returns:
        tokens int32 [·], offset int64 [lists + 1], base int32 [lists], -1 for none.
    """
    count = numbers.size
    words = _SKETCH // 64
    one = np.uint64(1)
    sketch = np.zeros(words, np.uint64)
    sketches = np.empty((_MOST_BASES, words), np.uint64)
    bits = np.zeros(size // 64 + 1, np.uint64)
    none = np.zeros(size // 64 + 1, np.uint64)
    bits_of_base = np.empty((_MOST_BASES, size // 64 + 1), np.uint64)
    bases = np.empty(_MOST_BASES, np.int32)  # numbers of the bases
    known = 0
    total = 0
    for n in numbers:
        total += where[n + 1] - where[n]
    out = np.empty(total, np.int32)
    offset = np.zeros(count + 1, np.int64)
    base = np.full(count, -1, np.int32)
    for i in range(count):
        tokens = data[where[numbers[i]] : where[numbers[i] + 1]]
        begin = offset[i]
        offset[i + 1] = begin + tokens.size
        if tokens.size < _WORTH:
            for k in range(tokens.size):
                at = begin + k
                while at > begin and out[at - 1] > tokens[k]:
                    out[at] = out[at - 1]
                    at -= 1
                out[at] = tokens[k]
            continue
        sketch[:] = 0
        for t in tokens:
            bits[t >> 6] |= one << np.uint64(t & 63)
            place = np.int64(t) * 0x9E3779B1 >> 12 & _SKETCH - 1
            sketch[place >> 6] |= one << np.uint64(place & 63)
        nearest = tokens.size // 3
        like = -1
        for b in range(known):
            distance = 0
            for k in range(words):
                distance += count_bits(sketch[k] ^ sketches[b, k])
                if distance >= nearest:
                    break
            if distance < nearest:
                nearest = distance
                like = b
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
    return out[: offset[count]].copy(), offset, base


@kernel()
def _bit_rows(tokens, offset, chosen, words):  # type: ignore[no-untyped-def]
    """The chosen lists as bit rows: uint32 [chosen, words]."""
    out = np.zeros((chosen.size, words), np.uint32)
    for n in range(chosen.size):
        for k in range(offset[chosen[n]], offset[chosen[n] + 1]):
            out[n, tokens[k] >> 5] |= np.uint32(1) << np.uint32(tokens[k] & 31)
    return out
