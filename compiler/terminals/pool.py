"""Intern sequences of int32 from inside the kernels: each exists once and has a number.

A kernel writes a candidate behind the stored sequences and calls `intern`, which keeps it or finds its equal. When
a pool is nearly full the kernel stops early and the caller grows the pool and goes on.

Leaves out   what the sequences mean.
Invariants   sequences are numbered by first use; `data[offset[n]:offset[n + 1]]` is sequence n.
Arrays       data int32 [·];  offset int64 [·];  table int32 [power of two], a number or -1;  count int64 [1],
             sequences stored.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import BARE, kernel, read_int, read_long, write_int, write_long


class Pool:
    """A pool whose sequences are at most ``longest`` numbers long.

    ``expected`` is about how many there will be, ``length`` about how long most are. Without ``distinct`` nothing looks
    for equals, and the table is there for its size alone.
    """

    def __init__(self, longest: int, expected: int = 0, length: int = 2, distinct: bool = True) -> None:
        self.longest = longest
        self.distinct = distinct
        places = max(256, 1 << (2 * expected + 4).bit_length())
        self.data = np.empty(2 * longest + length * expected + 1024, np.int32)
        self.offset = np.zeros(places, np.int64)
        self.table = np.empty(places, np.int32)
        self.count = np.zeros(1, np.int64)
        if distinct:
            self.table.fill(-1)

    def __len__(self) -> int:
        return self.count.item()

    def __getitem__(self, number: int) -> np.ndarray:
        return self.data[self.offset[number] : self.offset[number + 1]]

    def flat(self) -> tuple[np.ndarray, np.ndarray]:
        """All of them, one after the other, and where each begins; with one more place for the end."""
        ends = self.offset[: len(self) + 1]
        return self.data[: ends[-1]], ends

    def rows(self, columns: int) -> np.ndarray:
        """All of them where each has so many numbers."""
        return self.flat()[0].reshape(-1, columns)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As the kernels take them."""
        return self.data, self.offset, self.table, self.count

    @property
    def places(self) -> int:
        """How many sequences the table has room for."""
        return self.table.size // 2

    @property
    def nbytes(self) -> int:
        """Of the arrays; most of the data may never have been touched."""
        return self.data.nbytes + self.offset.nbytes + self.table.nbytes

    def grow(self) -> None:
        """Make room for more; call when `room` says no."""
        used = int(self.offset[len(self)])
        if self.data.size - used < self.longest:
            more = np.empty(2 * used + 2 * self.longest, np.int32)  # pages that nobody writes to cost nothing
            more[:used] = self.data[:used]
            self.data = more
        if 2 * len(self) + 4 >= self.table.size:
            self.offset = np.concatenate([self.offset, np.zeros(self.offset.size, np.int64)])
            size = 2 * self.table.size
            self.table = np.full(size, -1, np.int32) if self.distinct else np.empty(size, np.int32)
            if self.distinct:
                _rehash(self.data, self.offset, self.table, len(self))


@kernel(**BARE)
def room(data, offset, table, count, longest):  # type: ignore[no-untyped-def]
    """Whether one more sequence of any length fits."""
    return data.size - offset[count[0]] >= longest and 2 * count[0] + 4 < table.size


@kernel(**BARE)
def _hash(data, begin, end):  # type: ignore[no-untyped-def]
    """Of the int32 from ``begin`` to ``end`` at an address; four lanes that do not wait for each other."""
    prime = np.uint64(0xFF51AFD7ED558CCD)
    a = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    b, c, d = a ^ np.uint64(1), a ^ np.uint64(2), a ^ np.uint64(3)
    i = begin
    while i + 4 <= end:
        a = (a ^ np.uint64(read_int(data, i))) * prime
        b = (b ^ np.uint64(read_int(data, i + 1))) * prime
        c = (c ^ np.uint64(read_int(data, i + 2))) * prime
        d = (d ^ np.uint64(read_int(data, i + 3))) * prime
        i += 4
    while i < end:
        a = (a ^ np.uint64(read_int(data, i))) * prime
        i += 1
    for lane in (b, c, d):
        a = (a ^ lane ^ a >> np.uint64(29)) * prime
    return a ^ a >> np.uint64(32)


@kernel(**BARE)
def _rehash(data, offset, table, count):  # type: ignore[no-untyped-def]
    for n in range(count):
        slot = _hash(data.ctypes.data, offset[n], offset[n + 1]) & np.uint64(table.size - 1)
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & np.uint64(table.size - 1)
        table[slot] = n


@kernel(**BARE)
def intern_at(data, offset, table, size, count, end):  # type: ignore[no-untyped-def]
    """`intern` for arrays given by address; ``size`` is that of the table."""
    begin = read_long(offset, read_long(count, 0))
    slot = np.int64(_hash(data, begin, end) & np.uint64(size - 1))
    while read_int(table, slot) >= 0:
        n = read_int(table, slot)
        other = read_long(offset, n)
        if read_long(offset, n + 1) - other == end - begin:
            same = True
            for i in range(end - begin):
                if read_int(data, other + i) != read_int(data, begin + i):
                    same = False
                    break
            if same:
                return n
        slot = (slot + 1) & (size - 1)
    n = read_long(count, 0)
    write_int(table, slot, n)
    write_long(count, 0, n + 1)
    write_long(offset, n + 1, end)
    return n


@kernel(**BARE)
def intern(data, offset, table, count, end):  # type: ignore[no-untyped-def]
    """The number of the sequence from ``offset[count]`` to ``end``, a new one if it has no equal."""
    return intern_at(data.ctypes.data, offset.ctypes.data, table.ctypes.data, table.size, count.ctypes.data, end)
