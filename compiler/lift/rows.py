"""Mask rows while they are collected: a slice up to some units, with a list of tokens toggled; each exists once.

Leaves out   which tokens a row has (lift.py), expansion (runtime).
Invariants   rows, lists and bit rows are numbered by first use; lists ascend; a list that is much like an earlier one
             is stored as the difference; long lists become bit rows.
Arrays       docs/architecture.md, `row_…`, `list_…`, `dense`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..automata.pool import Pool, intern, room
from .children import count_bits

_SKETCH = 4096  # bits
_LOW = 9  # bits of a token by which it is sorted first
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
        tokens, offset, base = difference_lists(
            *_ascending(self.lists.data, self.lists.offset, numbers, 32 * self.words)
        )
        size = np.diff(offset)
        dense_of = np.full(numbers.size, -1, np.int32)
        bits = np.zeros((0, self.words * 32), np.uint8)
        if size.max(initial=0) > self.words:
            is_base = np.zeros(numbers.size, np.bool_)
            is_base[base[base >= 0]] = True
            long = np.flatnonzero((size > self.words) & ~is_base)
            bits = np.zeros((long.size, self.words * 32), np.uint8)
            for n, i in enumerate(long.tolist()):
                bits[n, tokens[offset[i] : offset[i + 1]]] = 1
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
            "dense": np.packbits(bits, axis=1, bitorder="little").view("<u4"),
        }


@njit(cache=True)
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


@njit(cache=True)
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


@njit(cache=True)
def _ascending(data, offset, numbers, tokens):  # type: ignore[no-untyped-def]
    """Lists of a pool one behind the other, each sorted, and int64 [lists + 1] where each begins.

    All are sorted at once by counting: by the low bits of the token (there are so many ``tokens``), by the high ones,
    then by list; so the counts stay in the cache.
    """
    start = np.zeros(numbers.size + 1, np.int64)
    low = np.zeros((1 << _LOW) + 1, np.int64)
    high = np.zeros((tokens >> _LOW) + 2, np.int64)
    for i in range(numbers.size):
        first, last = offset[numbers[i]], offset[numbers[i] + 1]
        start[i + 1] = start[i] + last - first
        for k in range(first, last):
            low[(data[k] & (1 << _LOW) - 1) + 1] += 1
            high[(data[k] >> _LOW) + 1] += 1
    for t in range(low.size - 1):
        low[t + 1] += low[t]
    for t in range(high.size - 1):
        high[t + 1] += high[t]
    by_low = np.empty(start[-1], np.int64)  # list << 32 | token
    by_token = np.empty(start[-1], np.int64)
    for i in range(numbers.size):
        for k in range(offset[numbers[i]], offset[numbers[i] + 1]):
            token = np.int64(data[k])
            by_low[low[token & (1 << _LOW) - 1]] = i << 32 | token
            low[token & (1 << _LOW) - 1] += 1
    for both in by_low:
        above = (both & 0xFFFFFFFF) >> _LOW
        by_token[high[above]] = both
        high[above] += 1
    out = np.empty(start[-1], np.int32)
    to = start.copy()
    for both in by_token:
        out[to[both >> 32]] = both & 0xFFFFFFFF
        to[both >> 32] += 1
    return out, start


@njit(cache=True)
def difference_lists(data, start):  # type: ignore[no-untyped-def]
    """Ascending lists, each as itself or as its difference to an earlier one, its base.

    Lists are compared by sketches, bit sets of hashed tokens: the difference of two sketches is at most that of the
    lists. A list that is like no base so far becomes one; a base has no base itself.

    Args:
        data int32 [·], start int64 [lists + 1]: list i is ``data[start[i]:start[i + 1]]``.

    Returns:
        tokens int32 [·], offset int64 [lists + 1], base int32 [lists], -1 for none.
    """
    count = start.size - 1
    words = _SKETCH // 64
    one = np.uint64(1)
    sketch = np.zeros(words, np.uint64)
    sketches = np.zeros((_MOST_BASES, words), np.uint64)
    bases = np.empty(_MOST_BASES, np.int32)  # numbers of the bases
    known = 0
    out = np.empty(data.size, np.int32)
    offset = np.zeros(count + 1, np.int64)
    base = np.full(count, -1, np.int32)
    for i in range(count):
        tokens = data[start[i] : start[i + 1]]
        end = offset[i]
        nearest = tokens.size // 3
        if tokens.size >= _WORTH:
            sketch[:] = 0
            for t in tokens:
                place = np.int64(t) * 0x9E3779B1 >> 12 & _SKETCH - 1
                sketch[place >> 6] |= one << np.uint64(place & 63)
            for b in range(known):
                distance = 0
                for k in range(words):
                    distance += count_bits(sketch[k] ^ sketches[b, k])
                    if distance >= nearest:
                        break
                if distance < nearest:
                    nearest = distance
                    base[i] = bases[b]
            if base[i] < 0 and known < _MOST_BASES:
                sketches[known] = sketch
                bases[known] = i
                known += 1
        if base[i] >= 0:
            k, last = offset[base[i]], offset[base[i] + 1]
            j = 0
            while (j < tokens.size or k < last) and end - offset[i] < tokens.size:
                if k == last or (j < tokens.size and tokens[j] < out[k]):
                    out[end] = tokens[j]
                    end += 1
                    j += 1
                elif j == tokens.size or out[k] < tokens[j]:
                    out[end] = out[k]
                    end += 1
                    k += 1
                else:
                    j += 1
                    k += 1
            if end - offset[i] == tokens.size:  # full sketches can look alike: it is no smaller
                base[i] = -1
        if base[i] < 0:
            end = offset[i] + tokens.size
            out[offset[i] : end] = tokens
        offset[i + 1] = end
    return out[: offset[count]].copy(), offset, base
