"""Number integers and rows by their content: small ones in a tenth of the time that numpy takes to sort them.

Leaves out   what they are.
Arrays       rows int32 [n, ·], C-contiguous.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import kernel
from toolc.runtime.jit.sort import ascend


@kernel()
def _hash(row):  # type: ignore[no-untyped-def]
    """Of the numbers of a row; four lanes that do not wait for each other."""
    prime = np.uint64(0x9E3779B97F4A7C15)
    a, b, c, d = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    k = 0
    while k + 4 <= row.size:
        a = (a ^ np.uint64(row[k])) * prime
        b = (b ^ np.uint64(row[k + 1])) * prime
        c = (c ^ np.uint64(row[k + 2])) * prime
        d = (d ^ np.uint64(row[k + 3])) * prime
        k += 4
    while k < row.size:
        a = (a ^ np.uint64(row[k])) * prime
        k += 1
    for lane in (b, c, d):
        a = (a ^ lane ^ a >> np.uint64(29)) * prime
    return a ^ a >> np.uint64(32)


@kernel()
def distinct_rows(rows):  # type: ignore[no-untyped-def]
    """Number of every row's content by first use, and the first row of each: int32 [n, ·] to int64 [n], int64 [·]."""
    n, width = rows.shape
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    number = np.empty(n, np.int64)
    first = np.empty(n, np.int64)
    count = 0
    for r in range(n):
        slot = np.int64(_hash(rows[r]) & np.uint64(size - 1))
        while table[slot] >= 0:
            other = first[table[slot]]
            k = 0
            while k < width and rows[r, k] == rows[other, k]:
                k += 1
            if k == width:
                break
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = count
            first[count] = r
            count += 1
        number[r] = table[slot]
    return number, first[:count].copy()


@kernel()
def distinct_numbers(numbers):  # type: ignore[no-untyped-def]
    """The distinct ones of int64 [n], ascending, which of them each is, and where each is first and how often: int64
    [·], [n], [·], [·]."""
    size = 16
    while size < 2 * numbers.size:
        size *= 2
    table = np.full(size, -1, np.int64)
    found = np.empty(numbers.size, np.int64)
    count = 0
    for i in range(numbers.size):
        slot = _slot_of(table, found, numbers[i])
        if table[slot] < 0:
            table[slot] = count
            found[count] = numbers[i]
            count += 1
    found = found[:count].copy()
    ascend(found)
    table[:] = -1
    for n in range(count):
        table[_slot_of(table, found, found[n])] = n
    which = np.empty(numbers.size, np.int64)
    first, often = np.empty(count, np.int64), np.zeros(count, np.int64)
    for i in range(numbers.size - 1, -1, -1):
        n = table[_slot_of(table, found, numbers[i])]
        which[i] = n
        first[n] = i
        often[n] += 1
    return found, which, first, often


@kernel()
def _slot_of(table, found, number):  # type: ignore[no-untyped-def]
    """Where the place of a number in ``found`` is in a table, or would be."""
    x = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((x ^ x >> np.uint64(32)) & np.uint64(table.size - 1))
    while table[slot] >= 0 and found[table[slot]] != number:
        slot = (slot + 1) & (table.size - 1)
    return slot
