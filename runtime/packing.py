"""The small arrays of a container as one stream: columns of narrow numbers, deflated together.

A column is stored as its numbers less their least one, or less the number before, in as few bytes as the largest needs.
That is a third of what the arrays take, so that it is quickly inflated and hashed.

Leaves out   the file around it: see container.py.
Invariants   equal arrays give equal bytes and forms before they are deflated, whatever zlib there is. `unpack` gives
             arrays of exactly the shapes it was asked for, from any bytes of the right number.
Columns      an array [n, k] with k up to 4 has k of them, any other array one: all its numbers.
Forms        uint32 [columns, 2]: width | climbs << 3, and base. Width 0: every number is the base. 1, 2, 4: numbers of
             so many bytes, to which the base is added modulo 2^32 (of an array of bytes 2^8). 3: first the low 16 bits
             of all, then the high 8. Climbs: what is found then are differences, the first from 0.
Stored       one column after the other, each up to a multiple of 4 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

MOST_COLUMNS = 4
_LANES: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}
WIDTHS = (0, 1, 2, 3, 4)
CLIMBS = 8


def columns_of(shape: Sequence[int]) -> int:
    """How many columns an array is stored as."""
    return shape[1] if len(shape) == 2 and shape[1] <= MOST_COLUMNS else 1


def pack(arrays: Iterable[tuple[np.ndarray, bool]]) -> tuple[bytes, np.ndarray]:
    """The bytes of arrays, each with whether its numbers climb; and the forms of their columns."""
    parts: list[bytes] = []
    forms: list[tuple[int, int]] = []
    for array, climbs in arrays:
        count = columns_of(array.shape)
        table = array.reshape(-1, count).astype(np.int64) if count else array
        for j in range(count):
            column = table[:, j]
            numbers = np.diff(column, prepend=0) if climbs else column
            base = int(numbers.min()) if numbers.size else 0
            rest = numbers - base
            width = min(4, (int(rest.max(initial=0)).bit_length() + 7) // 8)
            if int(rest.max(initial=0)) >> 32:  # differences of 33 bits: modulo 2^32, then
                base, rest, width = 0, numbers & 0xFFFFFFFF, 4
            if width == 3:
                parts += [(rest & 0xFFFF).astype(_LANES[2]).tobytes(), (rest >> 16).astype(_LANES[1]).tobytes()]
            elif width:
                parts.append(rest.astype(_LANES[width]).tobytes())
            parts.append(bytes(-(width * column.size) % 4))
            forms.append((width | (CLIMBS if climbs else 0), base & 0xFFFFFFFF))
    return b"".join(parts), np.array(forms, dtype="<u4").reshape(-1, 2)


def packed_size(shapes: Sequence[Sequence[int]], forms: Sequence[Sequence[int]]) -> int | None:
    """How many bytes columns of these forms take; None if there are no such forms or another number of columns."""
    columns = [math.prod(shape) // count for shape in shapes for count in [columns_of(shape)] for _ in range(count)]
    if len(columns) != len(forms) or any(form & ~CLIMBS not in WIDTHS for form, _ in forms):
        return None
    return sum(_stored(size * (form & ~CLIMBS)) for size, (form, _) in zip(columns, forms, strict=True))


def _stored(size: int) -> int:
    return -(-size // 4) * 4


def unpack(
    data: np.ndarray, kinds: Sequence[tuple[np.dtype[Any], Sequence[int]]], forms: Sequence[Sequence[int]]
) -> list[np.ndarray]:
    """Arrays of these dtypes (of 4 bytes or 1) and shapes from bytes uint8 [`packed_size`]."""
    found: list[np.ndarray] = []
    lanes = {1: data, 2: data.view(_LANES[2]), 4: data.view(_LANES[4])}
    place = at = 0
    for dtype, shape in kinds:
        array = np.empty(shape, dtype)
        numbers = array.view(_LANES[dtype.itemsize])
        count = columns_of(shape)
        for j in range(count):
            form, base = forms[at]
            at += 1
            width = form & ~CLIMBS
            column = numbers.reshape(-1) if count == 1 else numbers[:, j]
            size, kind = column.size, column.dtype
            if width == 0:
                column[...] = kind.type(base & (1 << 8 * kind.itemsize) - 1)
            elif width == 3:
                low, high = lanes[2][place // 2 :][:size], data[place + 2 * size :][:size]
                np.left_shift(high, 16, out=column, dtype=kind, casting="unsafe")
                np.add(column, low, out=column, dtype=kind, casting="unsafe")
                np.add(column, kind.type(base & (1 << 8 * kind.itemsize) - 1), out=column)
            else:
                lane = lanes[width][place // width :][:size]
                np.add(lane, base & (1 << 8 * kind.itemsize) - 1, out=column, dtype=kind, casting="unsafe")
            if form & CLIMBS:
                np.cumsum(column, out=column, dtype=kind)
            place += _stored(size * width)
        array.flags.writeable = False
        found.append(array)
    return found
