"""Stretches of an array that are free: first fit, merged when given back.

Leaves out   the array itself: see arena.py.
Invariants   free stretches are disjoint, ascending and never touch; what is held never moves.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence


class Extents:
    """The free stretches of an array.

    Attributes:
        size: entries of the array.
        free: (start, length) of each free stretch, ascending.
    """

    def __init__(self, size: int = 0) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []
        self.grow(size)

    @property
    def used(self) -> int:
        """Entries that are held."""
        return self.size - sum(length for _, length in self.free)

    @property
    def end(self) -> int:
        """The entry after the last held one."""
        if self.free and sum(self.free[-1]) == self.size:
            return self.free[-1][0]
        return self.size

    def take(self, length: int) -> int | None:
        """The start of a stretch that was free and is held now; None, and nothing changed, if there is none."""
        for i, (start, free) in enumerate(self.free):
            if free >= length:
                self.free[i : i + 1] = [(start + length, free - length)] if free > length else []
                return start
        return 0 if length == 0 else None

    def fits(self, lengths: Sequence[int]) -> bool:
        """Whether stretches of these lengths can be taken one after the other."""
        probe = self.copy()
        return all(probe.take(length) is not None for length in lengths)

    def copy(self) -> Extents:
        """An independent copy."""
        twin = Extents()
        twin.size, twin.free = self.size, list(self.free)
        return twin

    def give(self, start: int, length: int) -> None:
        """Free a held stretch, or a part of one."""
        if length == 0:
            return
        assert start >= 0 and start + length <= self.size
        i = bisect_left(self.free, (start, 0))
        if i < len(self.free):
            assert start + length <= self.free[i][0]
            if start + length == self.free[i][0]:
                length += self.free.pop(i)[1]
        if i > 0:
            before, free = self.free[i - 1]
            assert before + free <= start
            if before + free == start:
                self.free[i - 1] = (before, free + length)
                return
        self.free.insert(i, (start, length))

    def grow(self, size: int) -> None:
        """Add free entries at the end."""
        assert size >= self.size
        start, self.size = self.size, size
        self.give(start, size - start)
