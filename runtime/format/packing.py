"""The small arrays of a container as one stream: columns of narrow numbers, deflated together.

A column is stored as its numbers less a base, or less the number before, in as few bytes as nearly all of them need.
That is a tenth of what the arrays take, so that it is quickly inflated and hashed.

Leaves out   the file around it: see container.py.
Invariants   equal arrays give equal bytes and forms before they are deflated, whatever zlib there is. `unpack` makes
             arrays of exactly the shapes it was asked for, from any bytes, or raises ValueError; it never takes more
             time or memory than these arrays do.
Columns      an array [n, k] with k up to 4 has k of them, any other array one: all its numbers. A comb, an array
             [n, 2] of (owner, value) where place n - owner is a row's column, may have four others, over its runs of
             places with one owner and one value, as they lie: places that nobody owns before it, which are (-1, 0),
             length, first column, value. Behind the last nobody owns any.
Forms        uint32 [·, 3], one for every column: width | climbs << 3 | marked << 4, base, how many are marked; before
             those of a comb: 32, its number of runs, 0. Width 0: every number is the base. 1, 2, 4: numbers of so many
             bytes, to which the base is added modulo 2^32 (of an array of bytes 2^8). 3: first the low 16 bits of all,
             then the high 8. Marked (widths 1, 2): where all bits are set the number is the next of those behind the
             column, 4 bytes each. Climbs: what is found then are differences, the first from 0.
Stored       one column after the other, each up to a multiple of 4 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..jit.loaded import kernels_pay

MOST_COLUMNS = 4
ALIGN = 64  # of the arrays in memory
_LANES: dict[int, np.dtype[Any]] = {1: np.dtype("<u1"), 2: np.dtype("<u2"), 4: np.dtype("<u4")}
_LONG = np.dtype("<i8")
_FREE = 0xFFFFFFFF  # (-1, 0) as one number
MOST_WIDTH = 4
CLIMBS, MARKED, COMB = 8, 16, 32
RUN_COLUMNS = 4

Form = Sequence[int]
Kind = tuple[np.dtype[Any], tuple[int, ...]]


def columns_of(shape: Sequence[int]) -> int:
    """How many columns an array is stored as."""
    return shape[1] if len(shape) == 2 and shape[1] <= MOST_COLUMNS else 1


def pack(
    arrays: Mapping[str, np.ndarray],
    climbing: Collection[str] = (),
    combs: Collection[str] = (),
    addresses: Mapping[str, int] | None = None,
) -> tuple[bytes | memoryview, np.ndarray]:
    """The bytes of arrays and the forms of their columns.

    Args:
        arrays: in the order in which they are stored.
        climbing: those whose numbers mostly climb.
        combs: those that are combs; one whose free places are not (-1, 0) is stored as it is.
        addresses: where some of them lie, which are contiguous.
    """
    if not arrays:
        return b"", np.zeros((0, 3), "<u4")
    from .kernels.pack import write_columns

    alive: list[np.ndarray] = []
    table: list[tuple[int, ...]] = []
    for name, array in arrays.items():
        address = (addresses or {}).get(name)
        if address is None:
            alive.append(np.ascontiguousarray(array))
            address = _address(alive[-1])
        comb = COMB if name in combs and array.dtype.kind == "i" and array.ndim == 2 and array.shape[1] == 2 else 0
        kind = comb | (CLIMBS if name in climbing else 0)
        table.append((columns_of(array.shape), array.size, array.itemsize, kind, address))
    out, forms = write_columns(np.array(table, np.int64).reshape(-1, 5))
    return out.data, forms.astype("<u4", copy=False)


def packed_size(kinds: Sequence[Kind], forms: Sequence[Form]) -> int:
    """How many bytes columns of these forms take.

    Raises:
        ValueError: arrays of these dtypes and shapes cannot have them.
    """
    total, rest = 0, iter(forms)
    for dtype, shape in kinds:
        count = columns_of(shape)
        size = math.prod(shape) // count if count else 0
        for j in range(count):
            form = next(rest, None)
            if j == 0 and form is not None and form[0] == COMB:
                if tuple(shape) != (size, 2) or dtype.itemsize != 4 or form[1] > size or form[2]:
                    raise ValueError(f"runs {list(form)} of an array {dtype.name} {list(shape)}")
                total += sum(_column_size(next(rest, None), form[1]) for _ in range(RUN_COLUMNS))
                break
            total += _column_size(form, size)
    if next(rest, None) is not None:
        raise ValueError("forms of more columns than there are")
    return total


def _column_size(form: Form | None, size: int) -> int:
    """How many bytes a column takes."""
    if form is None:
        raise ValueError("forms of fewer columns than there are")
    kind, _, marked = form
    width = kind & 7
    most = size if kind & MARKED else 0
    if kind & ~(7 | CLIMBS | MARKED) or width > MOST_WIDTH or marked > most or (kind & MARKED and width not in (1, 2)):
        raise ValueError(f"the form {list(form)} of a column of {size} numbers")
    return _stored(size * width) + 4 * marked


def _stored(size: int) -> int:
    return -(-size // 4) * 4


class Room:
    """Memory for arrays of these dtypes and shapes, as parts of one: 45 small ones are slow to ask for one by one.

    Attributes:
        whole: uint8 [·].
        table: of each array how many columns, how many numbers, bytes of one, its place in `whole`.
    """

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self._kinds = kinds
        self.table: list[int] = []
        end = 0
        for dtype, shape in kinds:
            size, item = math.prod(shape), dtype.itemsize
            self.table += (columns_of(shape), size, item, end)
            end += -(-size * item // ALIGN) * ALIGN
        self._places = self.table[3::4]
        self.whole = np.empty(end, np.uint8)

    def addresses(self) -> list[int]:
        """Where the parts lie."""
        begin = _address(self.whole)
        return [begin + place for place in self._places]

    def arrays(self) -> list[np.ndarray]:
        """The parts; read-only if `whole` is."""
        parts = zip(self._kinds, self._places, strict=True)
        return [np.ndarray(shape, dtype, self.whole, place) for (dtype, shape), place in parts]


def unpack(data: np.ndarray, kinds: Sequence[Kind], forms: np.ndarray) -> Room:
    """Read-only arrays of these dtypes (of 4 bytes or 1) and shapes from bytes uint8 [·] and forms uint32 [·, 3].

    Raises:
        ValueError: these are no such bytes, or no such forms.
    """
    room = Room(kinds)
    if not (kernels_pay(lambda: room.whole.size) and _read_at_once(data, room, forms)):
        some: list[Form] = forms.tolist()
        size = packed_size(kinds, some)
        if size != data.size:
            raise ValueError(f"forms of {size} bytes for {data.size}")
        _read_one_by_one(data, room.arrays(), some)
    room.whole.flags.writeable = False
    return room


def _read_at_once(data: np.ndarray, room: Room, forms: np.ndarray) -> bool:
    """Fill the arrays by the kernel of kernels/unpack.py; False where it finds that something is wrong."""
    from .kernels.unpack import read_columns

    arrays = np.array(room.table, np.int64).reshape(-1, 4)
    arrays[:, 3] += _address(room.whole)
    found: bool = read_columns(_address(data), data.size, _address(forms), forms.shape[0], arrays)
    return found


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _read_one_by_one(data: np.ndarray, arrays: Iterable[np.ndarray], forms: Sequence[Form]) -> None:
    """The same in plain passes, of forms that fit."""
    read = _Columns(data)
    rest = iter(forms)
    for array in arrays:
        count = columns_of(array.shape)
        for j in range(count):
            form = next(rest)
            if form[0] == COMB:
                _expand([read.column(next(rest), np.empty(form[1], _LANES[4])) for _ in range(RUN_COLUMNS)], array)
                break
            numbers = array.view(_LANES[array.itemsize])
            read.column(form, numbers.reshape(-1) if count == 1 else numbers[:, j])


class _Columns:
    """Reads one column after the other."""

    def __init__(self, data: np.ndarray) -> None:
        self.data, self.half, self.word = data, data.view(_LANES[2]), data.view(_LANES[4])
        self.place = 0

    def column(self, form: Form, out: np.ndarray) -> np.ndarray:
        """The next column, into `out` uint32 or uint8 [·]."""
        kind, base, marked = form
        width, size, dtype, place = kind & 7, out.size, out.dtype, self.place
        base &= (1 << 8 * dtype.itemsize) - 1
        if width == 0:
            out.fill(base)
        elif width == 3:
            low, high = self.half[place // 2 :][:size], self.data[place + 2 * size :][:size]
            np.left_shift(high, 16, out=out, dtype=dtype, casting="unsafe")
            np.add(out, low, out=out, dtype=dtype, casting="unsafe")
            np.add(out, base, out=out)
        else:
            source = self.data if width == 1 else self.half if width == 2 else self.word
            lane = source[place // width : place // width + size]
            np.add(lane, base, out=out, dtype=dtype, casting="unsafe")
            if kind & MARKED:
                far = np.flatnonzero(lane == (1 << 8 * width) - 1)
                if far.size != marked:
                    raise ValueError(f"{far.size} numbers are marked, not {marked}")
                at = (place + _stored(size * width)) // 4
                out[far] = self.word[at : at + marked] + _LANES[4].type(base)
        if kind & CLIMBS:
            np.cumsum(out, out=out, dtype=dtype)
        self.place = place + _stored(size * width) + 4 * marked
        return out


def _expand(runs: Iterable[np.ndarray], comb: np.ndarray) -> None:
    """Write runs (places that nobody owns before it, length, first column, value; uint32) of a comb int32 [n, 2]."""
    free, length, column, value = (numbers.astype(_LONG) for numbers in runs)
    sizes = np.stack([free, length], axis=1)
    end = np.cumsum(sizes.sum(axis=1))
    filled = int(end[-1]) if end.size else 0
    whole = comb.view(_LONG).reshape(-1)
    if filled > whole.size:
        raise ValueError("runs pass the end of a comb")
    pairs = np.full(sizes.shape, _FREE)
    pairs[:, 1] = (end - length - column & 0xFFFFFFFF) | value << 32
    whole[:filled] = np.repeat(pairs.reshape(-1), sizes.reshape(-1))
    whole[filled:] = _FREE
