"""Follow moves between states backwards.

Arrays       moves int64 [·, 2]: from which state to which.
"""

from __future__ import annotations

import numpy as np


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
