"""Mask rows while they are collected: each is a slice, a list of toggled tokens or a bit row, and exists once.

Leaves out   which tokens a row has (lift.py), expansion (runtime).
Invariants   rows, lists and bit rows are numbered by first use; lists ascend.
Arrays       docs/architecture.md, `row_…`, `list_…`, `dense`.
"""

from __future__ import annotations

import numpy as np

from ..budget import Budget


class RowStore:
    """Interns rows of a vocabulary of ``size`` tokens."""

    def __init__(self, size: int, budget: Budget) -> None:
        self.words = -(-size // 32)
        self.budget = budget
        self.rows: list[tuple[int, int, int, int]] = []  # slice, units, dense, list
        self._row_of: dict[tuple[int, int, int, int], int] = {}
        self.lists: list[np.ndarray] = []
        self._list_of: dict[bytes, int] = {}
        self.dense: list[np.ndarray] = []
        self._dense_of: dict[bytes, int] = {}

    def row(self, tokens: np.ndarray, slice_: int = -1, units: int = -1) -> int:
        """The row of a slice (only its tokens of at most ``units`` units) with ``tokens`` toggled; int32, ascending."""
        dense = -1
        if tokens.size > self.words:
            bits = np.zeros(self.words * 32, np.uint8)
            bits[tokens] = 1
            packed = np.packbits(bits, bitorder="little").view("<u4")
            key = packed.tobytes()
            dense = self._dense_of.setdefault(key, len(self.dense))
            if dense == len(self.dense):
                self.dense.append(packed)
            tokens = tokens[:0]
        key = tokens.tobytes()
        number = self._list_of.setdefault(key, len(self.lists))
        if number == len(self.lists):
            self.lists.append(tokens.copy())
        row = (slice_, units, dense, number)
        at = self._row_of.setdefault(row, len(self.rows))
        if at == len(self.rows):
            self.rows.append(row)
            self.budget.check("rows", len(self.rows))
        return at

    def arrays(self) -> dict[str, np.ndarray]:
        """The row arrays of a bundle."""
        rows = np.array(self.rows, np.int32).reshape(-1, 4)
        offset = np.zeros(len(self.lists) + 1, np.int32)
        np.cumsum([t.size for t in self.lists], out=offset[1:])
        return {
            "row_slice": rows[:, 0].copy(),
            "row_units": rows[:, 1].copy(),
            "row_dense": rows[:, 2].copy(),
            "row_list": rows[:, 3].copy(),
            "list_offset": offset,
            "list_tokens": np.concatenate([np.zeros(0, np.int32), *self.lists]).astype(np.int32),
            "dense": np.array(self.dense, np.uint32).reshape(-1, self.words),
        }
