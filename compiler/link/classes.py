"""Which symbols are told apart: as finely in all parts, so that they stand side by side, or no finer than is needed.

Leaves out   packing (../lift/comb.py).
Invariants   classes are numbered by their first symbol in `common`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from toolc.runtime.memory import kernel
from toolc.runtime.tables import END_OF_TURN, PUSH

from .split import STUB


@cache
def coarse_classes() -> np.ndarray:
    """int32 [256]: the class of each byte where no part tells more of them apart: bytes of UTF-8 by their role."""
    borders = [0, 9, 10, 11, 13, 14, *range(32, 129), 0x90, 0xA0, 0xC0, 0xC2, 0xE0, 0xE1, 0xED, 0xEE, 0xF0, 0xF1, 0xF4]
    found = np.searchsorted([*borders, 0xF5, STUB], np.arange(256), side="right") - 1
    found[[11, 12, *range(14, 32)]] = found[0]
    found[0xC0:0xC2] = found[0xF5]
    return np.unique(found, return_inverse=True)[1].astype(np.int32)


@cache
def fine_classes() -> np.ndarray:
    """int32 [256]: every byte is a class."""
    return np.arange(256, dtype=np.int32)


def is_finer(classes: np.ndarray, symbol_class: np.ndarray) -> bool:
    """Whether bytes of one of the classes are of one class of an automaton."""
    some = np.empty(256, np.int64)  # by class, one of its bytes
    some[classes] = np.arange(256)
    return bool((symbol_class[:256] == symbol_class[some[classes]]).all())


def common(symbol_class: np.ndarray, alike: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Fewer classes: those that all of some parts treat alike become one, but for that of the end of turn.

    Args:
        symbol_class: int32 [symbols].
        alike: of each part int [classes]: equal where it treats two alike.

    Returns:
        int32 [symbols], and int64 [fewer classes]: one of the former classes of each.
    """
    label = np.zeros(int(symbol_class.max()) + 1, np.int64)
    label[symbol_class[END_OF_TURN]] = 1
    for one in alike:
        label = np.unique(label * (int(one.max()) + 1) + one, return_inverse=True)[1].reshape(-1)
    _, first, number = np.unique(label[symbol_class], return_index=True, return_inverse=True)
    rank = np.empty(first.size, np.int32)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[number.reshape(-1)], symbol_class[np.sort(first)].astype(np.int64)


@kernel()
def leaders(delta, rows, classes):  # type: ignore[no-untyped-def]
    """int64 [classes]: an earlier class with the same ops in all rows of a comb, or the class itself."""
    digest = np.zeros(classes, np.uint64)
    for r in range(rows.size):
        for k in range(classes):
            place = rows[r] + k
            op = np.uint64(delta[place, 1]) if delta[place, 0] == rows[r] else np.uint64(0)
            digest[k] = (digest[k] ^ op) * np.uint64(0xFF51AFD7ED558CCD) + np.uint64(r)
            digest[k] ^= digest[k] >> np.uint64(32)
    leader = np.arange(classes)
    for k in range(classes):
        for j in range(k):
            if digest[j] == digest[k]:
                leader[k] = leader[j]
                break
    for r in range(rows.size):
        for k in range(classes):
            one, other = rows[r] + k, rows[r] + leader[k]
            a = delta[one, 1] if delta[one, 0] == rows[r] else 0
            b = delta[other, 1] if delta[other, 0] == rows[r] else 0
            if a != b:
                leader[k] = k
    return leader


@kernel()
def spread(delta, rows, class_of, state, push):  # type: ignore[no-untyped-def]
    """Rows of a comb over finer classes, in compressed form (see comb.py), states and pushes by their new numbers.

    Args:
        rows: int32 [·], where each begins in ``delta``;  class_of int64 [finer classes]: what each was.
    """
    offset = np.zeros(rows.size + 1, np.int32)
    for r in range(rows.size):
        count = 0
        for k in class_of:
            count += delta[rows[r] + k, 0] == rows[r] and delta[rows[r] + k, 1] != 0
        offset[r + 1] = offset[r] + count
    columns, ops = np.empty(offset[-1], np.int32), np.empty(offset[-1], np.int32)
    n = 0
    for r in range(rows.size):
        for j in range(class_of.size):
            place = rows[r] + class_of[j]
            op = np.int64(delta[place, 1])
            if delta[place, 0] == rows[r] and op != 0:
                kind, number = op & 7, op >> 3
                if kind < PUSH:
                    number = state[number]
                elif kind == PUSH:
                    number = push[number]
                columns[n] = j
                ops[n] = number << 3 | kind
                n += 1
    return offset, columns, ops
