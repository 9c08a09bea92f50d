"""Columns packed by a kernel, in one pass over all of them; packing.py tells what they are, and packs them alike.

Leaves out   which arrays climb or are combs, and where the bytes go: see packing.py.
Invariants   bytes and forms are those of packing.py's plain passes, whatever the arrays hold; nothing is written
             outside of `out` and `forms`, which have room for the widest columns there can be (`packed_room`).
Arrays       arrays int64 [n, 5]: of each how many columns, how many numbers, bytes of one (1 or 4), CLIMBS | COMB of
             packing.py, its address. out uint8 [·], forms uint32 [·, 3].
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from .memory import kernel, read_long_at
from .memory import read_byte as _byte
from .memory import read_int as _int

_MASK = 0xFFFFFFFF


def packed_room(arrays: Sequence[Sequence[int]]) -> tuple[int, int]:
    """How many bytes and forms these arrays take at most."""
    size = sum((8 if kind & 32 else 4) * numbers + 16 * columns for columns, numbers, _, kind, _ in arrays)
    return size, sum(max(columns, 5) for columns, *_ in arrays)


@numba.njit
def _outside(numbers, bases, marks):  # type: ignore[no-untyped-def]
    """For each of three bases, how many numbers are not from it to base + marks - 1."""
    first = second = third = np.int64(0)
    one, two, three, most = np.uint32(bases[0]), np.uint32(bases[1]), np.uint32(bases[2]), np.uint32(marks)
    for i in range(numbers.size):
        number = np.uint32(numbers[i])
        first += np.uint32(number - one) >= most
        second += np.uint32(number - two) >= most
        third += np.uint32(number - three) >= most
    return first, second, third


@numba.njit
def _write_column(numbers, climbs, out, place, form):  # type: ignore[no-untyped-def]
    """Write a column int32 [·], which is used up, and its form uint32 [3]; the place after it."""
    kind = 8 if climbs else 0
    size = numbers.size
    form[0], form[1], form[2] = kind, 0, 0
    if size == 0:
        return place
    if climbs:
        for i in range(size - 1, 0, -1):
            numbers[i] -= numbers[i - 1]
    least = most = numbers[0]
    for i in range(size):
        least, most = min(least, numbers[i]), max(most, numbers[i])
    low, high = np.int64(least), np.int64(most)
    width = 0
    while high - low >= 1 << 8 * width:
        width += 1
    cost, base, outside = width * size, low, 0
    for narrow in range(1, min(width, 3)):
        marks = (1 << 8 * narrow) - 1
        bases = (low, np.int64(0), np.int64(-(marks // 2)))
        past_each = _outside(numbers, bases, marks)
        for choice in range(3 if climbs else 1):
            other, past = bases[choice], past_each[choice]
            if (narrow * size + 4 * past, narrow, other, past) < (cost, width, base, outside):
                cost, width, base, outside = narrow * size + 4 * past, narrow, other, past
    form[0], form[1], form[2] = width | kind | (16 if outside else 0), base & _MASK, outside
    half, word = out.view(np.uint16)[place // 2 :], out.view(np.uint32)[place // 4 :]
    end = place + size * width
    far = end + 3 & ~3
    if outside:
        top, after = (1 << 8 * width) - 1, far // 4 - place // 4
        for i in range(size):
            rest = numbers[i] - base
            if rest < 0 or rest >= top:
                word[after] = rest
                after += 1
                rest = top
            if width == 1:
                out[place + i] = rest
            else:
                half[i] = rest
    elif width == 1:
        for i in range(size):
            out[place + i] = numbers[i] - base
    elif width == 4:
        for i in range(size):
            word[i] = numbers[i] - base
    elif width > 0:
        for i in range(size):
            half[i] = numbers[i] - base
        if width == 3:
            for i in range(size):
                out[place + 2 * size + i] = numbers[i] - base >> 16
    out[end:far] = 0
    return far + 4 * outside


@numba.njit
def _runs(comb, places):  # type: ignore[no-untyped-def]
    """Of the runs of a comb places that nobody owns before it, length, first column and value, int32 [4, ·]; how many
    they are; and whether it is a comb."""
    start = np.empty(places + 1, np.int32)  # of places of one owner and value
    count = np.int64(0)
    last = ~read_long_at(comb) if places > 0 else np.uint64(0)
    for place in range(places):  # without a branch, as hardly any would be foreseen
        both = read_long_at(comb + 8 * place)
        start[count] = place
        count += both != last
        last = both
    start[count] = places
    runs = np.empty((4, count), np.int32)
    taken = np.int64(0)
    gap = np.int64(0)
    good = True
    for i in range(count):
        begin, length = np.int64(start[i]), np.int64(start[i + 1] - start[i])
        owner, value = _int(comb, 2 * begin), _int(comb, 2 * begin + 1)
        good &= (owner >= -1) & (owner <= begin) & ((owner >= 0) | (value == 0))
        runs[0, taken], runs[1, taken], runs[2, taken], runs[3, taken] = gap, length, begin - owner, value
        taken += owner >= 0
        gap = length if owner < 0 else np.int64(0)
    return runs, taken, good


@kernel("UniTuple(int64, 2)(int64[:, ::1], uint8[::1], uint32[:, ::1])")
def write_columns(arrays, out, forms):  # type: ignore[no-untyped-def]
    """Write the columns of the arrays and their forms; how many bytes and how many forms there are."""
    place = n = np.int64(0)
    for a in range(arrays.shape[0]):
        columns, item, kind, at = arrays[a, 0], arrays[a, 2], arrays[a, 3], arrays[a, 4]
        if columns == 0:
            continue
        size = arrays[a, 1] // columns
        if kind & 32:
            runs, count, good = _runs(at, size)
            if good:
                forms[n, 0], forms[n, 1], forms[n, 2] = 32, count, 0
                for k in range(4):
                    n += 1
                    place = _write_column(runs[k][:count], False, out, place, forms[n])
                n += 1
                continue
        numbers = np.empty(size, np.int32)
        for j in range(columns):
            for i in range(size):
                if item == 1:
                    numbers[i] = _byte(at + i * columns + j)
                else:
                    numbers[i] = _int(at, i * columns + j)
            place = _write_column(numbers, kind & 8 != 0, out, place, forms[n])
            n += 1
    return place, n
