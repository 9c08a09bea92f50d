"""Put moves between states together, and follow them backwards.

Arrays       moves int64 [·, 2]: from which state to which.
"""

from __future__ import annotations

import numpy as np


def distinct_pairs(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The distinct pairs of two arrays of numbers below 2^31, int64 [·, 2], ascending."""
    key = _runs(one.astype(np.int64) << 32 | other)  # equal ones mostly stand side by side
    key.sort()
    key = _runs(key)
    return np.stack([key >> 32, key & 0xFFFFFFFF], axis=1)


def _runs(key: np.ndarray) -> np.ndarray:
    """The first of each run of equal numbers."""
    begins = np.ones(key.size, bool)
    begins[1:] = key[1:] != key[:-1]
    return key[begins]


def leading_to(moves: np.ndarray, marked: np.ndarray) -> np.ndarray:
    """bool [states]: from which moves lead to a marked state; those among them.

    Args:
        marked: bool [states].
    """
    found = marked.copy()
    order = np.argsort(moves[:, 1], kind="stable")
    source, target = moves[order, 0], moves[order, 1]
    first = np.searchsorted(target, np.arange(found.size + 1))
    todo = np.flatnonzero(found).tolist()
    while todo:
        q = todo.pop()
        for p in source[first[q] : first[q + 1]].tolist():
            if not found[p]:
                found[p] = True
                todo.append(p)
    return found
