"""Mask rows while they are collected: a slice up to some units, with a list of tokens toggled; each exists once.

Leaves out   which tokens a row has (lift.py), expansion (runtime).
Invariants   rows, lists and bit rows are numbered by first use; lists ascend; a list that is much like an earlier one
             is stored as the difference; long lists become bit rows.
Arrays       docs/architecture.md, `row_…`, `list_…`, `dense`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ..automata.pool import Pool

_SKETCH = 4096  # bits
_MOST_BASES = 64
_WORTH = 64  # a shorter list is stored as it is


class RowStore:
    """Interns rows of a vocabulary of ``size`` tokens; their lists are in a pool."""

    def __init__(self, size: int, lists: Pool) -> None:
        self.words = -(-size // 32)
        self.lists = lists
        self._rows: dict[tuple[int, int, int], int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, slice_: int, units: int, list_: int) -> int:
        """The row of a slice (-1: none; only its tokens of at most ``units`` units, -1: all) with a list toggled."""
        return self._rows.setdefault((slice_, units, list_), len(self._rows))

    def arrays(self) -> dict[str, np.ndarray]:
        """The row arrays of a bundle."""
        row = np.array(list(self._rows), np.int32).reshape(-1, 3)
        used, first, which = np.unique(row[:, 2], return_index=True, return_inverse=True)
        by_use = np.argsort(first)
        lists = [np.sort(self.lists[n]) for n in used[by_use].tolist()]
        bases = choose_bases(lists)
        is_base = set(bases)
        kept: list[np.ndarray] = []
        kept_base: list[int] = []
        dense: list[np.ndarray] = []
        list_of = np.zeros(used.size, np.int32)
        dense_of = np.full(used.size, -1, np.int32)
        for n, (i, tokens, base) in enumerate(zip(by_use.tolist(), lists, bases, strict=True)):
            if base >= 0:
                tokens = np.setxor1d(tokens, lists[base], assume_unique=True)
            if tokens.size > self.words and n not in is_base:
                dense_of[i] = len(dense)
                dense.append(tokens)
                tokens = tokens[:0]
            list_of[i] = len(kept)
            kept.append(tokens)
            kept_base.append(base)
        offset = np.zeros(len(kept) + 1, np.int32)
        np.cumsum([t.size for t in kept], out=offset[1:])
        bits = np.zeros((len(dense), self.words * 32), np.uint8)
        for n, tokens in enumerate(dense):
            bits[n, tokens] = 1
        return {
            "row_slice": row[:, 0].copy(),
            "row_units": row[:, 1].copy(),
            "row_dense": dense_of[which.reshape(-1)],
            "row_list": list_of[which.reshape(-1)],
            "list_offset": offset,
            "list_tokens": np.concatenate([np.zeros(0, np.int32), *kept]).astype(np.int32),
            "list_base": np.array(kept_base, np.int32),
            "dense": np.packbits(bits, axis=1, bitorder="little").view("<u4"),
        }


def choose_bases(lists: list[np.ndarray]) -> list[int]:
    """For each list the earlier one that it is stored as a difference to, -1 for none; no base has a base itself.

    Lists are compared by sketches, bit sets of hashed tokens: the difference of two sketches is at most that of the
    lists. A list that is like no base so far becomes one.
    """
    sketches = np.zeros((len(lists), _SKETCH), np.bool_)
    for sketch, tokens in zip(sketches, lists, strict=True):
        sketch[(tokens.astype(np.int64) * 0x9E3779B1 >> 12) & (_SKETCH - 1)] = True
    packed = np.packbits(sketches, axis=1).view(np.uint64)
    return _bases(packed, np.array([t.size for t in lists], np.int32)).tolist()


@njit(cache=True)
def _bases(sketch, size):  # type: ignore[no-untyped-def]
    out = np.full(size.size, -1, np.int32)
    bases = np.empty(_MOST_BASES, np.int32)
    count = 0
    one = np.uint64(1)
    for i in range(size.size):
        if size[i] < _WORTH:
            continue
        nearest = size[i] // 3
        for b in bases[:count]:
            distance = 0
            for k in range(sketch.shape[1]):
                x = sketch[i, k] ^ sketch[b, k]
                while x and distance < nearest:
                    x &= x - one
                    distance += 1
                if distance >= nearest:
                    break
            if distance < nearest:
                nearest = distance
                out[i] = b
        if out[i] < 0 and count < _MOST_BASES:
            bases[count] = i
            count += 1
    return out
