"""Pack columns in plain passes: the slow way to the bytes and forms that runtime/format/kernels/pack.py writes.

What they are: runtime/format/packing.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from toolc.runtime.format.packing import _LANES as LANES
from toolc.runtime.format.packing import CLIMBS, COMB, MARKED, Form, columns_of


def plain_pack(
    arrays: Mapping[str, np.ndarray], climbing: Collection[str], combs: Collection[str]
) -> tuple[bytes, np.ndarray]:
    """What `pack` gives."""
    parts: list[bytes] = []
    forms: list[Form] = []
    for name, array in arrays.items():
        runs = _runs(array) if name in combs else None
        if runs is not None:
            forms.append((COMB, runs[0].size, 0))
            forms += [_pack_column(numbers, False, parts) for numbers in runs]
            continue
        count = columns_of(array.shape)
        table = array.reshape(-1, count) if count else array
        for j in range(count):
            forms.append(_pack_column(table[:, j].astype(np.int32), name in climbing, parts))
    return b"".join(parts), np.array(forms, dtype="<u4").reshape(-1, 3)


def _pack_column(numbers: np.ndarray, climbs: bool, parts: list[bytes]) -> Form:
    """Append the bytes of a column, int32 [·]; its form."""
    kind = CLIMBS if climbs else 0
    if not numbers.size:
        return kind, 0, 0
    if climbs:
        before, numbers = numbers, numbers.copy()
        numbers[1:] -= before[:-1]
    numbers = numbers.astype(np.int64)
    low, high = int(np.minimum.reduce(numbers)), int(np.maximum.reduce(numbers))
    width = ((high - low).bit_length() + 7) // 8
    best = width * numbers.size, width, low, 0
    for narrow in range(1, min(width, 3)):
        marks = (1 << 8 * narrow) - 1
        for base in {low, 0, -(marks // 2)} if climbs else {low}:
            outside = int(np.count_nonzero((numbers - base).view(np.uint64) >= marks))
            best = min(best, (narrow * numbers.size + 4 * outside, narrow, base, outside))
    _, width, base, outside = best
    rest = numbers - base
    if width == 3:
        parts += [(rest & 0xFFFF).astype(LANES[2]).tobytes(), (rest >> 16).astype(LANES[1]).tobytes()]
    elif outside:
        kind |= MARKED
        marks = (1 << 8 * width) - 1
        far = rest.view(np.uint64) >= marks
        lane = np.where(far, marks, rest).astype(LANES[width]).tobytes()
        parts += [lane, bytes(-len(lane) % 4), (rest[far] & 0xFFFFFFFF).astype(LANES[4]).tobytes()]
    elif width:
        parts.append(rest.astype(LANES[width]).tobytes())
    if not outside:
        parts.append(bytes(-(width * numbers.size) % 4))
    return width | kind, base & 0xFFFFFFFF, outside


def _runs(comb: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Of the runs of a comb the places that nobody owns before it, length, first column and value, int32; None where it
    is no comb."""
    if comb.ndim != 2 or comb.shape[1] != 2 or comb.dtype.kind != "i":
        return None
    owner, value = comb[:, 0], comb[:, 1]
    if (owner < -1).any() or (owner > np.arange(owner.size)).any() or value.any(where=owner == -1):
        return None
    begins = np.ones(owner.size, bool)
    begins[1:] = (owner[1:] != owner[:-1]) | (value[1:] != value[:-1])
    start = np.flatnonzero(begins).astype(np.int32)
    length = np.diff(start, append=np.int32(owner.size))
    owned = owner[start] >= 0
    free = np.concatenate([np.zeros(1, np.int32), np.where(owned, 0, length)])[:-1]
    return free[owned], length[owned], start[owned] - owner[start[owned]], value[start[owned]]
