"""Pack the columns of arrays, in one pass over all of them; ../packing.py says what columns and forms are.

Leaves out   which arrays climb or are combs, and where the bytes go: see ../packing.py.
Invariants   ../packing.py reads what this writes; there is room for the widest columns that there can be (`_room`).
             tests/runtime/plain_packing.py does the same in plain passes.
Arrays       arrays int64 [n, 5]: of each how many columns, how many numbers, bytes of one (1 or 4), CLIMBS | COMB of
             packing.py, its address.
"""

from __future__ import annotations

import numba
import numpy as np

from ...jit.memory import kernel, read_long_at
from ...jit.memory import read_byte as _byte
from ...jit.memory import read_int as _int

_MASK = 0xFFFFFFFF
_BLOCK = 2048  # places of a comb that are looked at twice, while they are near


@numba.njit
def _room(arrays):  # type: ignore[no-untyped-def]
    """How many bytes and forms these arrays take at most."""
    size = forms = 0
    for a in range(arrays.shape[0]):
        columns, numbers, kind = arrays[a, 0], arrays[a, 1], arrays[a, 3]
        size += (8 if kind & 32 else 4) * numbers + 16 * columns
        forms += max(columns, 5)
    return size, forms


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
def _runs(comb, places, lanes, values):  # type: ignore[no-untyped-def]
    """The runs of a comb: how many there are, whether it is a comb, and whether the lanes hold their numbers.

    Args:
        lanes: [3, places], receives places that nobody owns before it, length, first column;  values: int32 [places].
    """
    start = np.empty(_BLOCK + 1, np.int32)  # of the places of one owner and value that end in a block
    taken = begin = gap = np.int64(0)
    good = fits = True
    last = read_long_at(comb) if places > 0 else np.uint64(0)
    for first in range(0, places, _BLOCK):
        count = np.int64(0)
        for place in range(first, min(first + _BLOCK, places)):  # without a branch, as hardly any would be foreseen
            both = read_long_at(comb + 8 * place)
            start[count] = place
            count += both != last
            last = both
        if first + _BLOCK >= places:
            start[count] = places
            count += 1
        for i in range(count):
            length = start[i] - begin
            owner, value = _int(comb, 2 * begin), _int(comb, 2 * begin + 1)
            column = begin - owner
            good &= (owner >= -1) & (owner <= begin) & ((owner >= 0) | (value == 0))
            lanes[0, taken], lanes[1, taken], lanes[2, taken], values[taken] = gap, length, column, value
            held = (lanes[0, taken] == gap) & (lanes[1, taken] == length) & (lanes[2, taken] == column)
            fits &= held | (owner < 0)
            taken += owner >= 0
            gap = length if owner < 0 else np.int64(0)
            begin = np.int64(start[i])
    return taken, good, fits


@numba.njit
def _write_runs(lanes, values, out, place, forms):  # type: ignore[no-untyped-def]
    """Write the columns of the runs of a comb and their forms uint32 [5, 3]; the place after them."""
    forms[0, 0], forms[0, 1], forms[0, 2] = 32, values.size, 0
    for k in range(3):
        place = _write_column(lanes[k][: values.size], False, out, place, forms[1 + k])
    return _write_column(values, False, out, place, forms[4])


@kernel("Tuple((uint8[::1], uint32[:, ::1]))(int64[:, ::1])")
def write_columns(arrays):  # type: ignore[no-untyped-def]
    """The columns of the arrays, uint8 [·], and their forms, uint32 [·, 3].

    What is asked for here comes in small pages: hardly any of it is ever touched, and numpy would ask for large ones.
    """
    size, most = _room(arrays)
    out, forms = np.empty(size, np.uint8), np.empty((most, 3), np.uint32)
    place = n = np.int64(0)
    for a in range(arrays.shape[0]):
        columns, item, kind, at = arrays[a, 0], arrays[a, 2], arrays[a, 3], arrays[a, 4]
        if columns == 0:
            continue
        size = arrays[a, 1] // columns
        if kind & 32:
            lanes, values = np.empty((3, size), np.uint8), np.empty(size, np.int32)
            count, good, fits = _runs(at, size, lanes, values)
            if good and fits:
                place = _write_runs(lanes, values[:count], out, place, forms[n:])
            elif good:  # rows of more columns than nearly all combs have
                wide = np.empty((3, size), np.int32)
                _runs(at, size, wide, values)
                place = _write_runs(wide, values[:count], out, place, forms[n:])
            if good:
                n += 5
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
    return out[:place], forms[:n]
