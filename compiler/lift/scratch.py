"""Reuse memory from one lift to the next: pages that are new to a process cost more than most walks.

Leaves out   what is kept of a lift.
Invariants   one lift at a time has a scratch; what it leaves there means nothing to the next one.
"""

from __future__ import annotations

import numpy as np

from ..terminals.pool import Pool
from .walk_results import Pieces

_MOST_KEPT = 1 << 26  # bytes; a scratch that has grown larger is given back


class Scratch:
    """Pools and arrays for a vocabulary of ``size`` tokens and ``nodes`` trie nodes, so deep, with so many special
    tokens."""

    def __init__(self, size: int, nodes: int, depth: int, specials: int) -> None:
        self.lists = Pool(size + 64)
        self.profiles = Pool(2 * nodes + 2)
        self.pieces = Pieces(self.lists.longest, self.profiles.longest, specials, depth)
        self._arrays: dict[str, np.ndarray] = {}

    def filled(self, name: str, shape: tuple[int, int], value: int) -> np.ndarray:
        """An int32 array of one value; there is one of each name at a time."""
        size = shape[0] * shape[1]
        known = self._arrays.get(name)
        if known is None or known.size < size:
            known = self._arrays[name] = np.empty(size, np.int32)
        out = known[:size].reshape(shape)
        out.fill(value)
        return out

    def cleared(self) -> bool:
        """Make this ready for another lift; False where it is too large to be kept."""
        kept = sum(x.nbytes for x in self._arrays.values())
        for pool in (self.lists, self.profiles, self.pieces):
            pool.clear()
            kept += pool.nbytes
        return kept <= _MOST_KEPT
