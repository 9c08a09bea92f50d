"""Keep equal lists of breakpoints once.

Leaves out   where breakpoints come from: cells.py, completion.py.
Arrays       lists int32 [·, B, 2]: (at, count) as in docs/format.md, (0, 0) where there are fewer; list 0 has none.
"""

from __future__ import annotations

import numpy as np

from ..pushdown.unique_rows import distinct_rows


def widened(breaks: np.ndarray, width: int) -> np.ndarray:
    """Breakpoints int32 [n, ·, 2] with room for ``width`` each; those that are missing count nothing."""
    if breaks.shape[1] == width:
        return breaks
    out = np.zeros((breaks.shape[0], width, 2), np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out


def interned(*of: tuple[np.ndarray, np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """The lists of several kinds of owners as one table, in the order of first use; and the numbers of each kind in it.

    Args:
        of: number of each owner's list, int32 [owners], and these lists.
    """
    width = max(lists.shape[1] for _, lists in of)
    if not width:  # as of most grammars
        return [np.zeros(number.size, np.int32) for number, _ in of], np.zeros((1, 0, 2), np.int32)
    rows = np.concatenate([widened(lists, width) for _, lists in of])
    content, _ = distinct_rows(rows.reshape(len(rows), 2 * width))
    begin = np.cumsum([0, *(len(lists) for _, lists in of)])
    first = np.zeros(1, np.int64)  # the list without breakpoints stands before those in use
    wanted = np.concatenate([first, *(number + at for (number, _), at in zip(of, begin.tolist(), strict=False))])
    which, used = distinct_rows(content[wanted].reshape(-1, 1))
    ends = np.cumsum([1, *(number.size for number, _ in of)])
    return np.split(which.astype(np.int32), ends)[1:-1], rows[wanted[used]]


def numbered(breaks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Breakpoints of owners, int32 [owners, B, 2], as numbers of lists and the lists."""
    empty = np.zeros((1, *breaks.shape[1:]), np.int32)
    return np.arange(1, 1 + len(breaks)), np.concatenate([empty, breaks])
