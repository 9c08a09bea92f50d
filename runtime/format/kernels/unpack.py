"""Unpack the columns of arrays, in one pass over all of them; ../packing.py says what columns and forms are.

Leaves out   what is wrong where bytes are no such columns: ../packing.py reads those itself, and says so.
Invariants   nothing is read outside of the bytes and forms, or written outside of the arrays, whatever they say.
Arrays       data uint8 [length], forms int32 [count, 3], by address; arrays int64 [n, 4]: of each how many columns, how
             many numbers, bytes of one (1 or 4), its address.
"""

from __future__ import annotations

import numba
import numpy as np

from ...jit.memory import fill as _fill
from ...jit.memory import kernel
from ...jit.memory import read_byte as _byte
from ...jit.memory import read_int as _int
from ...jit.memory import write_int as _write

MASK = 0xFFFFFFFF
BAD = -1  # instead of the place after a column


@numba.njit
def _half(place):  # type: ignore[no-untyped-def]
    return np.int64(_byte(place)) | np.int64(_byte(place + 1)) << 8


@numba.njit
def _put(place, item, value):  # type: ignore[no-untyped-def]
    if item == 1:
        _fill(place, value & 0xFF, 1)
    else:
        _write(place, 0, value)


@numba.njit
def _column(place, end, form, size, out, item, step):  # type: ignore[no-untyped-def]
    """One column from `place` on, into numbers of `item` bytes, `step` bytes apart; the place after it."""
    kind, base, marked = _int(form, 0) & MASK, _int(form, 1), _int(form, 2) & MASK
    width = kind & 7
    marks = kind & 16 != 0 and (width == 1 or width == 2)
    if kind > 31 or width > 4 or marked > (size if marks else 0) or (kind & 16 != 0 and not marks):
        return BAD
    far = place + ((size * width + 3) & ~3)
    if far + 4 * marked > end:
        return BAD
    found = 0
    last = np.int64(0)
    climbs = kind & 8 != 0
    if marks:
        top = (1 << 8 * width) - 1
        for i in range(size):
            value = np.int64(_byte(place + i)) if width == 1 else _half(place + 2 * i)
            if value == top:
                if found == marked:
                    return BAD
                value = _int(far, found)
                found += 1
            last = value + base + (last if climbs else 0)
            _put(out + i * step, item, last)
    elif width == 0:
        for i in range(size):
            last = base + (last if climbs else 0)
            _put(out + i * step, item, last)
    elif width == 1:
        for i in range(size):
            last = np.int64(_byte(place + i)) + base + (last if climbs else 0)
            _put(out + i * step, item, last)
    elif width == 2:
        for i in range(size):
            last = _half(place + 2 * i) + base + (last if climbs else 0)
            _put(out + i * step, item, last)
    elif width == 3:
        for i in range(size):
            value = _half(place + 2 * i) | np.int64(_byte(place + 2 * size + i)) << 16
            last = value + base + (last if climbs else 0)
            _put(out + i * step, item, last)
    else:
        for i in range(size):
            last = _int(place, i) + base + (last if climbs else 0)
            _put(out + i * step, item, last)
    return far + 4 * marked if found == marked else BAD


@numba.njit
def _comb(runs, out, places):  # type: ignore[no-untyped-def]
    """Write the runs int32 [4, ·] of a comb of so many places; false where they pass its end."""
    place = np.int64(0)
    for i in range(runs.shape[1]):
        begin = place + (np.int64(runs[0, i]) & MASK)
        end = begin + (np.int64(runs[1, i]) & MASK)
        if end > places:
            return False
        owner, value = begin - (np.int64(runs[2, i]) & MASK), np.int64(runs[3, i])
        while place < begin:
            _write(out, 2 * place, -1)
            _write(out, 2 * place + 1, 0)
            place += 1
        while place < end:
            _write(out, 2 * place, owner)
            _write(out, 2 * place + 1, value)
            place += 1
    while place < places:
        _write(out, 2 * place, -1)
        _write(out, 2 * place + 1, 0)
        place += 1
    return True


@kernel("boolean(int64, int64, int64, int64, int64[:, ::1])")
def read_columns(data, length, forms, count, arrays):  # type: ignore[no-untyped-def]
    """Fill the arrays; false where the bytes or the forms are none of theirs."""
    place, end = data, data + length
    n = 0
    for a in range(arrays.shape[0]):
        columns, item, out = arrays[a, 0], arrays[a, 2], arrays[a, 3]
        if columns == 0:
            continue
        size = arrays[a, 1] // columns
        if n < count and _int(forms, 3 * n) == 32:
            many = _int(forms, 3 * n + 1) & MASK
            if columns != 2 or item != 4 or many > size or _int(forms, 3 * n + 2) != 0 or n + 5 > count:
                return False
            runs = np.empty((4, many), np.int32)
            for k in range(4):
                n += 1
                place = _column(place, end, forms + 12 * n, many, runs.ctypes.data + 4 * k * many, 4, 4)
                if place == BAD:
                    return False
            n += 1
            if not _comb(runs, out, size):
                return False
            continue
        for j in range(columns):
            if n == count:
                return False
            place = _column(place, end, forms + 12 * n, size, out + item * j, item, item * columns)
            n += 1
            if place == BAD:
                return False
    return n == count and place == end
