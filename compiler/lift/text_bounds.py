"""Bound the completion cost after a text of some symbols, of any length, without a look at the tokens.

Most tokens are plain text, and most states read little of it: a literal ends, a number is over. What such tokens can
cost is known from where their bytes lead, however many there are. Only the tokens that hold other bytes are walked.

Leaves out   the walks (token_costs.py), which cells take these numbers (completion.py).
Invariants   never below the largest bound after a token of such symbols. It is above it where the tokens are too short
             to come that far; where frames can be opened again and again it is NEVER.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from toolc.runtime.format.kernels.step import act, phase
from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.format.tables import NEVER
from toolc.runtime.jit.memory import kernel
from toolc.runtime.selection import shortest_paths as ways
from toolc.runtime.selection.completion_automaton import Closing, owing

from ..budget import Budget

_SWEEPS = 12  # what still grows after so many opens frames without end, or goes far against the order of the states
_MOST_SWEEPS = 48  # after so many nothing is known of any cell
_BATCH = 1 << 20  # edges between two looks at the clock


def bounds_along(a: Closing, rows: ways.Rows, reads: np.ndarray, budget: Budget, opens: bool = True) -> np.ndarray:
    """int32 [close cells]: at least the largest bound after one or more symbols of some classes, that stay in the
    frame or open others.

    Args:
        a: with its bounds.
        reads: bool [classes].
        budget: its clock is looked at.
        opens: whether they may open frames.
    """
    weight = np.where(reads, 1, NEVER).astype(np.int32)
    ops = ways.ops_of(rows, weight, np.zeros(weight.size, np.int32))
    budget.check("")
    begin = _edges_of(a, rows.of_close, ops.offset, ops.op, opens)
    cells = rows.of_close.size
    edge = np.empty((int(begin[cells]), 3), np.int32)
    parts = _parts(begin)
    for low, high in parts:
        budget.check("")
        _add_edges(a, rows.of_close, ops.offset, ops.op, opens, begin, low, high, edge)
    value, out = a.bound.copy(), np.zeros(cells, np.int32)
    value[a.close_first[0]] = value[a.close_first[1]] = 0  # no state, and the finished one
    sweeps, growing = 0, True
    while growing:
        growing = False
        sweeps += 1
        for low, high in reversed(parts):
            budget.check("")
            growing |= _sweep(begin, edge, low, high, sweeps > _SWEEPS, value, out)
        if sweeps == _MOST_SWEEPS and growing:
            out[:] = NEVER
            break
    return out


def _parts(begin: np.ndarray) -> list[tuple[int, int]]:
    """The cells in runs of about so many edges as are looked at at a time: the first, and the one behind the last."""
    cells = begin.size - 1
    cuts = np.searchsorted(begin, np.arange(_BATCH, int(begin[cells]), _BATCH)).tolist()
    ends = sorted({0, cells, *cuts})
    return list(pairwise(ends))


@kernel()
def _edges_of(a, row, offset, op_of, opens):  # type: ignore[no-untyped-def]
    """Where the edges of each close cell begin, int64 [close cells + 1]."""
    back_offset = a.back_offset
    cells = row.size
    count = np.zeros(offset.size - 1, np.int32)  # edges of each row of ops
    for r in range(count.size):
        for e in range(offset[r], offset[r + 1]):
            if op_of[e] & KIND_MASK < PUSH:
                count[r] += 1
            elif op_of[e] & KIND_MASK == PUSH and opens:
                g = a.push[op_of[e] >> KIND_BITS, 0]
                count[r] += a.modes + back_offset[g + 1] - back_offset[g]
    begin = np.zeros(cells + 1, np.int64)
    for x in range(cells):
        begin[x + 1] = begin[x] + count[row[x]]
    return begin


@kernel()
def _add_edges(a, row, offset, op_of, opens, begin, low_cell, high_cell, edge):  # type: ignore[no-untyped-def]
    """Write the edges of some close cells to ranges of others: int32 [·, 3], first target, last target, what is owed
    besides."""
    first, lists, breaks, bound = a.close_first, a.close_break, a.close_breaks, a.bound
    back_offset, back, due = a.back_offset, a.back, a.due
    n = begin[low_cell]
    for x in range(low_cell, high_cell):
        for e in range(offset[row[x]], offset[row[x] + 1]):
            kind, number = np.int64(op_of[e] & KIND_MASK), np.int64(op_of[e] >> KIND_BITS)
            low, high = np.int64(a.low[x]), np.int64(a.high[x])
            if kind < PUSH:
                edge[n, 0] = edge[n, 1] = first[number]
                if first[number + 1] > first[number] + 1:
                    edge[n, 0] += phase(breaks, lists[number], act(kind, low))
                    edge[n, 1] += phase(breaks, lists[number], act(kind, high))
                edge[n, 2] = 0
                n += 1
            elif kind == PUSH and opens:
                g, action = np.int64(a.push[number, 0]), np.int64(a.push[number, 3])
                low, high = act(action, low), act(action, high)
                owed = min(np.int64(NEVER), owing(back_offset, back, first, lists, breaks, bound, due, g, low, high))
                for mode in range(a.modes):
                    q = np.int64(a.push[number, 1 + mode])  # 0 where nothing may be opened: a state without a bound
                    edge[n, 0] = edge[n, 1] = first[q]
                    edge[n, 2] = owed if q > 0 else 0
                    n += 1
                for i in range(back_offset[g], back_offset[g + 1]):
                    q, then = np.int64(back[i] >> ACTION_BITS), np.int64(back[i] & ACTION_MASK)
                    edge[n, 0] = first[q] + phase(breaks, lists[q], act(then, low))
                    edge[n, 1] = first[q] + phase(breaks, lists[q], act(then, high))
                    edge[n, 2] = 0
                    n += 1


@kernel()
def _sweep(begin, edge, low_cell, high_cell, ends, value, out):  # type: ignore[no-untyped-def]
    """Let values of some close cells grow, from the last to the first: states mostly lead to higher numbers, so a few
    sweeps are enough. Whether one grew; ``ends``: at once to NEVER."""
    growing = False
    for x in range(high_cell - 1, low_cell - 1, -1):
        best = out[x]
        for e in range(begin[x], begin[x + 1]):
            found = value[edge[e, 0]]
            for y in range(edge[e, 0] + 1, edge[e, 1] + 1):
                found = max(found, value[y])
            best = max(best, min(np.int32(NEVER), found + edge[e, 2]))
        if best > out[x]:
            out[x] = np.int32(NEVER) if ends else best
            if out[x] > value[x]:
                value[x] = out[x]
                growing = True
    return growing
