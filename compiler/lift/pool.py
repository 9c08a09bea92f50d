"""Interned sequences of int32, filled from inside the kernels: token lists and exit profiles exist once.

A kernel writes a candidate behind the stored sequences and calls `intern`, which keeps it or finds its equal. When
a pool is nearly full the kernel stops early and the caller grows the pool and goes on.

Leaves out   what the sequences mean.
Invariants   sequences are numbered by first use; `data[offset[n]:offset[n + 1]]` is sequence n.
Arrays       data int32 [·];  offset int64 [·];  table int32 [power of two], a number or -1;  count int64 [1],
             sequences stored.
"""

from __future__ import annotations

import numpy as np
from numba import njit


class Pool:
    """A pool whose sequences are at most ``longest`` numbers long."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.data = np.empty(2 * longest + 1024, np.int32)
        self.offset = np.zeros(1024, np.int64)
        self.table = np.full(1024, -1, np.int32)
        self.count = np.zeros(1, np.int64)

    def __len__(self) -> int:
        return int(self.count[0])

    def __getitem__(self, number: int) -> np.ndarray:
        return self.data[self.offset[number] : self.offset[number + 1]]

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As the kernels take them."""
        return self.data, self.offset, self.table, self.count

    def grow(self) -> None:
        """Make room for more; call when `room` says no."""
        used = int(self.offset[len(self)])
        if self.data.size - used < self.longest:
            self.data = np.concatenate([self.data[:used], np.empty(used + 2 * self.longest, np.int32)])
        if 2 * len(self) + 4 >= self.table.size:
            self.offset = np.concatenate([self.offset, np.zeros(self.offset.size, np.int64)])
            self.table = np.full(2 * self.table.size, -1, np.int32)
            _rehash(self.data, self.offset, self.table, len(self))


@njit(cache=True)
def room(data, offset, table, count, longest):  # type: ignore[no-untyped-def]
    """Whether one more sequence of any length fits."""
    return data.size - offset[count[0]] >= longest and 2 * count[0] + 4 < table.size


@njit(cache=True)
def _hash(data, begin, end):  # type: ignore[no-untyped-def]
    """Four lanes that do not wait for each other."""
    prime = np.uint64(0xFF51AFD7ED558CCD)
    a = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    b, c, d = a ^ np.uint64(1), a ^ np.uint64(2), a ^ np.uint64(3)
    i = begin
    while i + 4 <= end:
        a = (a ^ np.uint64(np.uint32(data[i]))) * prime
        b = (b ^ np.uint64(np.uint32(data[i + 1]))) * prime
        c = (c ^ np.uint64(np.uint32(data[i + 2]))) * prime
        d = (d ^ np.uint64(np.uint32(data[i + 3]))) * prime
        i += 4
    while i < end:
        a = (a ^ np.uint64(np.uint32(data[i]))) * prime
        i += 1
    for lane in (b, c, d):
        a = (a ^ lane ^ a >> np.uint64(29)) * prime
    return a ^ a >> np.uint64(32)


@njit(cache=True)
def _rehash(data, offset, table, count):  # type: ignore[no-untyped-def]
    for n in range(count):
        slot = _hash(data, offset[n], offset[n + 1]) & np.uint64(table.size - 1)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(table.size - 1)
        table[slot] = n


@njit(cache=True)
def intern(data, offset, table, count, end):  # type: ignore[no-untyped-def]
    """The number of the sequence from ``offset[count]`` to ``end``, a new one if it has no equal."""
    begin = offset[count[0]]
    slot = _hash(data, begin, end) & np.uint64(table.size - 1)
    while table[slot] >= 0:
        n = table[slot]
        other = offset[n]
        if offset[n + 1] - other == end - begin:
            same = True
            for i in range(end - begin):
                if data[other + i] != data[begin + i]:
                    same = False
                    break
            if same:
                return n
        slot = (slot + np.uint64(1)) & np.uint64(table.size - 1)
    n = count[0]
    table[slot] = n
    count[0] = n + 1
    offset[n + 1] = end
    return n
