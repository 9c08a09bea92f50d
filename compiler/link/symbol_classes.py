"""Merge the symbol classes that all parts of a bundle treat alike.

Leaves out   packing (../lift/comb.py).
Invariants   classes are numbered by their first symbol in `common`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN, KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import kernel, largest_in


def common(symbol_class: np.ndarray, alike: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Fewer classes: those that all of some parts treat alike become one, but for that of the end of turn.

    Args:
        symbol_class: int32 [symbols].
        alike: of each part int [classes]: equal where it treats two alike.

    Returns:
        int32 [symbols], and int64 [fewer classes]: one of the former classes of each.
    """
    return _common(symbol_class, np.array(alike, np.int32), int(symbol_class[END_OF_TURN]))


@kernel()
def _common(symbol_class, alike, end):  # type: ignore[no-untyped-def]
    """`common`, of int32 [parts, classes] and the class of the end of turn."""
    number = np.empty(symbol_class.size, np.int32)
    chosen = np.empty(symbol_class.size, np.int64)
    count = 0
    for s in range(symbol_class.size):
        own = symbol_class[s]
        n = 0
        while n < count:
            other = chosen[n]
            same = own == other or (own != end and other != end)
            for part in range(alike.shape[0]):
                same = same and alike[part, own] == alike[part, other]
            if same:
                break
            n += 1
        if n == count:
            chosen[count] = own
            count += 1
        number[s] = n
    return number, chosen[:count].copy()


@kernel()
def leaders(offset, column, value, classes):  # type: ignore[no-untyped-def]
    """int64 [classes]: the first class with the same ops in all of some rows, see `CombRows`."""
    first = np.zeros(classes + 1, np.int64)  # the entries by class, and there by row
    for k in column:
        first[k + 1] += 1
    for k in range(classes):
        first[k + 1] += first[k]
    at = first.copy()
    entry = np.empty((column.size, 2), np.int64)  # row and op
    for r in range(offset.size - 1):
        for i in range(offset[r], offset[r + 1]):
            entry[at[column[i]], 0], entry[at[column[i]], 1] = r, value[i]
            at[column[i]] += 1
    leader = np.arange(classes)
    for k in range(classes):
        size = first[k + 1] - first[k]
        for j in range(k):
            if leader[j] != j or first[j + 1] - first[j] != size:
                continue
            n = 0
            while n < size and (
                entry[first[j] + n, 0] == entry[first[k] + n, 0] and entry[first[j] + n, 1] == entry[first[k] + n, 1]
            ):
                n += 1
            if n == size:
                leader[k] = j
                break
    return leader


@kernel()
def spread(offset, column, value, class_of, state, push):  # type: ignore[no-untyped-def]
    """Offset, column and value of rows over other classes, states and pushes by their new numbers.

    Args:
        offset, column, value: see `CombRows`.
        class_of: int64 [other classes]: what each was;  state, push: int64 [·]: the new numbers.
    """
    rows = offset.size - 2
    first = np.zeros(largest_in(column) + 2 if column.size else 1, np.int64)  # by former class, the others that were it
    for k in class_of:
        if k < first.size - 1:
            first[k + 1] += 1
    for k in range(first.size - 1):
        first[k + 1] += first[k]
    at = first.copy()
    others = np.empty(first[-1], np.int32)
    for j in range(class_of.size):
        k = class_of[j]
        if k < first.size - 1:
            others[at[k]] = j
            at[k] += 1
    size = 0
    for k in column:
        size += first[k + 1] - first[k]
    ends = np.zeros(rows + 2, np.int64)
    columns, ops = np.empty(size, np.int32), np.empty(size, np.int32)
    n = 0
    for r in range(rows):
        begin = n
        for i in range(offset[r], offset[r + 1]):
            kind, number = np.int64(value[i] & KIND_MASK), np.int64(value[i] >> KIND_BITS)
            if kind < PUSH:
                number = state[number]
            elif kind == PUSH:
                number = push[number]
            for m in range(first[column[i]], first[column[i] + 1]):
                place = n  # columns ascend, and mostly come so
                while place > begin and columns[place - 1] > others[m]:
                    columns[place], ops[place] = columns[place - 1], ops[place - 1]
                    place -= 1
                columns[place], ops[place] = others[m], number << KIND_BITS | kind
                n += 1
        ends[r + 1] = n
    ends[rows + 1] = n
    return ends, columns, ops
