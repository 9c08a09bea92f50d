"""What all matchers of one bundle share on the host: packed tables and expanded rows.

Leaves out   one sequence's configuration: see matcher.py. The loops: see kernels.py.
Invariants   a row is expanded at its first use and never changes after; at most `row_bytes` of rows are kept, those
             past it are expanded again at each use. Safe from several threads: a row appears in `slot_of_row` only
             when it is whole.
Arrays       kernels.py; the packed tables of an opened file are the mapped file itself, not a copy.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import numpy as np

from . import kernels
from .tables import ARRAYS

if TYPE_CHECKING:
    from .bundle import Bundle

DEFAULT_ROW_BYTES = 256 << 20


class Host:
    """Packed tables and the row cache of one bundle; see `Bundle.host`."""

    def __init__(self, bundle: Bundle, row_bytes: int | None = None) -> None:
        t, v = bundle.tables, bundle.vocab
        if row_bytes is None:
            row_bytes = int(os.environ.get("TOOLC_ROW_BYTES", DEFAULT_ROW_BYTES))
        self.bundle = bundle
        self.words = v.words
        self.rows = t.rows
        self.packed, offsets = _pack(bundle)
        numbers = {
            "specials": t.special_token.size,
            "symbols": t.symbol_class.size,
            "breaks": t.breaks,
            "modes": t.modes,
            "soft_depth": bundle.meta["soft_depth"],
            "capacity": bundle.meta["capacity"],
            "tokens": v.size,
            "words": v.words,
            "rows": t.rows,
        }
        self.at = np.array([{**offsets, **numbers}[name] for name in kernels.FIELDS], dtype=np.int64)
        self.at.flags.writeable = False
        self.token_offset, self.token_bytes = v.token_offset, v.token_bytes
        slots = min(self.rows + 1, max(1, row_bytes // (4 * self.words)))
        # Pages of an empty array cost nothing until a row is written there.
        self.slots = np.empty((slots, self.words), dtype=np.uint32)
        self.slot_of_row = np.full(self.rows + 1, -1, dtype=np.int32)
        self._used = 0
        self._lock = threading.Lock()

    def expand(self, row: int, out: np.ndarray) -> None:
        """One row into `out` uint32 [words]."""
        if row == self.rows:
            out[:] = 0
            for token in self.bundle.tables.end_of_turn_tokens:
                out[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            return
        v = self.bundle.vocab
        kernels.expand_row(self.packed, self.at, v.slice_token_offset, v.slice_tokens, v.slice_units, row, out)

    def keep(self, row: int) -> bool:
        """Expand a row into the cache; False if the cache is full."""
        with self._lock:
            if self.slot_of_row[row] >= 0:
                return True
            if self._used == self.slots.shape[0]:
                return False
            self.expand(row, self.slots[self._used])
            self.slot_of_row[row] = self._used
            self._used += 1
            return True

    def row(self, row: int) -> np.ndarray:
        """uint32 [words] of a row; of the cache if it is there."""
        slot = int(self.slot_of_row[row])
        if slot >= 0:
            return self.slots[slot]
        out = np.empty(self.words, dtype=np.uint32)
        self.expand(row, out)
        return out


def _pack(bundle: Bundle) -> tuple[np.ndarray, dict[str, int]]:
    """All tables end to end, int32 [·], and where each begins."""
    mapped = bundle.__dict__.get("_mapped")
    if mapped is not None:
        data, offsets = mapped
        packed = data[: data.size // 4 * 4].view(np.int32)
        return packed, {name: offsets[name] // 4 for name in ARRAYS}
    arrays = bundle.tables.arrays()
    starts = np.cumsum([0, *(array.size for array in arrays.values())])
    packed = np.concatenate([array.reshape(-1).view(np.int32) for array in arrays.values()])
    packed.flags.writeable = False
    return packed, dict(zip(arrays, map(int, starts), strict=False))
