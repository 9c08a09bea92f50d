"""Columns packed by a kernel, in one pass over all of them; packing.py tells what they are, and packs them alike.

Leaves out   which arrays climb or are combs, and where the bytes go: see packing.py.
Invariants   bytes and forms are those of packing.py's plain passes, whatever the arrays hold; nothing is written
             outside of `out` and `forms`, which have room for the widest columns there can be (`packed_room`).
Arrays       arrays int64 [n, 6]: of each how many columns, how many numbers, bytes of one (1 or 4), whether they have
             a sign, CLIMBS | COMB of packing.py, its address. out uint8 [·], forms uint32 [·, 3].
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np

from .memory import kernel
from .memory import read_byte as _byte
from .memory import read_int as _int

_MASK = 0xFFFFFFFF


def packed_room(arrays: Sequence[Sequence[int]]) -> tuple[int, int]:
    """How many bytes and forms these arrays take at most."""
    size = sum((8 if kind & 32 else 4) * numbers + 16 * columns for columns, numbers, _, _, kind, _ in arrays)
    return size, sum(max(columns, 5) for columns, *_ in arrays)


@numba.njit
def _put(out, place, value, width):  # type: ignore[no-untyped-def]
    for i in range(width):
        out[place + i] = value >> 8 * i & 0xFF


@numba.njit
def _outside(numbers, base, marks):  # type: ignore[no-untyped-def]
    """How many numbers are not from `base` to base + marks - 1."""
    count = 0
    for i in range(numbers.size):
        count += (numbers[i] < base) | (numbers[i] >= base + marks)
    return count


@numba.njit
def _write_column(numbers, climbs, out, place, form):  # type: ignore[no-untyped-def]
    """Write a column int64 [·], which is used up, and its form uint32 [3]; the place after it."""
    kind = 8 if climbs else 0
    size = numbers.size
    form[0], form[1], form[2] = kind, 0, 0
    if size == 0:
        return place
    if climbs:
        for i in range(size - 1, 0, -1):
            numbers[i] -= numbers[i - 1]
    low = high = numbers[0]
    for i in range(size):
        low, high = min(low, numbers[i]), max(high, numbers[i])
    if high - low > _MASK:  # differences of 33 bits: modulo 2^32, then
        for i in range(size):
            numbers[i] &= _MASK
        low, high = 0, _MASK
    width = 0
    while high - low >= 1 << 8 * width:
        width += 1
    cost, base, outside = width * size, low, 0
    for narrow in range(1, min(width, 3)):
        marks = (1 << 8 * narrow) - 1
        for choice in range(3 if climbs else 1):
            other = low if choice == 0 else 0 if choice == 1 else -(marks // 2)
            past = _outside(numbers, other, marks)
            if (narrow * size + 4 * past, narrow, other, past) < (cost, width, base, outside):
                cost, width, base, outside = narrow * size + 4 * past, narrow, other, past
    form[0], form[1], form[2] = width | kind | (16 if outside else 0), base & _MASK, outside
    if width == 3:
        for i in range(size):
            _put(out, place + 2 * i, numbers[i] - base, 2)
            out[place + 2 * size + i] = numbers[i] - base >> 16
    elif width == 1 and not outside:
        for i in range(size):
            out[place + i] = numbers[i] - base
    elif width > 0:
        top = (1 << 8 * width) - 1
        far = place + (size * width + 3 & ~3)
        for i in range(size):
            rest = numbers[i] - base
            if outside and (rest < 0 or rest >= top):
                _put(out, far, rest, 4)
                far += 4
                rest = top
            _put(out, place + width * i, rest, width)
    end = place + size * width
    place = end + 3 & ~3
    out[end:place] = 0
    return place + 4 * outside


@numba.njit
def _runs(comb, places, runs):  # type: ignore[no-untyped-def]
    """Owner, first column, length and value of the runs of a comb, by owner, into int64 [4, places]; how many there
    are, or -1 where it is no comb."""
    behind = np.zeros(places + 1, np.int64)
    for place in range(places):
        owner = _int(comb, 2 * place)
        if owner < -1 or owner > place or (owner == -1 and _int(comb, 2 * place + 1) != 0):
            return -1
        behind[owner + 1] += 1
    taken = places - behind[0]
    behind[0] = 0
    for owner in range(places):
        behind[owner + 1] += behind[owner]
    order = np.empty(taken, np.int64)
    for place in range(places):
        owner = _int(comb, 2 * place)
        if owner >= 0:
            order[behind[owner]] = place
            behind[owner] += 1
    count = 0
    for i in range(taken):
        place = order[i]
        owner, value = _int(comb, 2 * place), _int(comb, 2 * place + 1)
        last = count - 1
        if i and owner == runs[0, last] and place == order[i - 1] + 1 and value == runs[3, last]:
            runs[2, last] += 1
            continue
        runs[0, count], runs[1, count], runs[2, count], runs[3, count] = owner, place - owner, 1, value
        count += 1
    return count


@kernel("UniTuple(int64, 2)(int64[:, ::1], uint8[::1], uint32[:, ::1])")
def write_columns(arrays, out, forms):  # type: ignore[no-untyped-def]
    """Write the columns of the arrays and their forms; how many bytes and how many forms there are."""
    place = n = np.int64(0)
    for a in range(arrays.shape[0]):
        columns, item, sign, kind, at = arrays[a, 0], arrays[a, 2], arrays[a, 3], arrays[a, 4], arrays[a, 5]
        if columns == 0:
            continue
        size = arrays[a, 1] // columns
        if kind & 32:
            runs = np.empty((4, size), np.int64)
            count = _runs(at, size, runs)
            if count >= 0:
                forms[n, 0], forms[n, 1], forms[n, 2] = 32, count, 0
                for k in range(4):
                    n += 1
                    place = _write_column(runs[k, :count], k == 0 or k == 3, out, place, forms[n])
                n += 1
                continue
        numbers = np.empty(size, np.int64)
        for j in range(columns):
            for i in range(size):
                if item == 1:
                    numbers[i] = _byte(at + i * columns + j)
                else:
                    number = _int(at, i * columns + j)
                    numbers[i] = number if sign else number & _MASK
            place = _write_column(numbers, kind & 8 != 0, out, place, forms[n])
            n += 1
    return place, n
