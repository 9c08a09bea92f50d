"""Mask rows while they are collected: a slice up to some units, with a list of tokens toggled; each exists once.

Leaves out   which tokens a row has (lift.py), expansion (runtime).
Invariants   rows, lists and bit rows are numbered by first use; lists ascend; long lists become bit rows.
Arrays       docs/architecture.md, `row_…`, `list_…`, `dense`.
"""

from __future__ import annotations

import numpy as np

from .pool import Pool


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
        kept: list[np.ndarray] = []
        dense: list[np.ndarray] = []
        list_of = np.zeros(used.size, np.int32)
        dense_of = np.full(used.size, -1, np.int32)
        empty = -1
        for i in by_use.tolist():
            tokens = np.sort(self.lists[used[i]])
            if tokens.size > self.words:
                bits = np.zeros(self.words * 32, np.uint8)
                bits[tokens] = 1
                dense_of[i] = len(dense)
                dense.append(np.packbits(bits, bitorder="little").view("<u4"))
                tokens = tokens[:0]
            if tokens.size or empty < 0:
                list_of[i] = len(kept)
                empty = len(kept) if not tokens.size else empty
                kept.append(tokens)
            else:
                list_of[i] = empty
        offset = np.zeros(len(kept) + 1, np.int32)
        np.cumsum([t.size for t in kept], out=offset[1:])
        return {
            "row_slice": row[:, 0].copy(),
            "row_units": row[:, 1].copy(),
            "row_dense": dense_of[which.reshape(-1)],
            "row_list": list_of[which.reshape(-1)],
            "list_offset": offset,
            "list_tokens": np.concatenate([np.zeros(0, np.int32), *kept]).astype(np.int32),
            "dense": np.array(dense, np.uint32).reshape(-1, self.words),
        }
