"""Bound the completion cost after a text of some symbols, of any length, without a look at the tokens.

Most tokens are plain text, and most states read little of it: a literal ends, a number is over. What such tokens can
cost is known from where their bytes lead, however many there are. Only the tokens that hold other bytes are walked.

Leaves out   the walks (token_costs.py), which cells take these numbers (completion.py).
Invariants   never below the largest bound after a token of such symbols. It is above it where the tokens are too short
             to come that far; where frames can be opened again and again it is NEVER.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.format.tables import NEVER
from toolc.runtime.jit.memory import kernel
from toolc.runtime.selection import shortest_paths as ways
from toolc.runtime.selection.completion_automaton import Closing, act, owing, phase

_SWEEPS = 12  # what still grows after so many opens frames without end, or goes far against the order of the states


def bounds_along(a: Closing, rows: ways.Rows, reads: np.ndarray, opens: bool = True) -> np.ndarray:
    """int32 [close cells]: at least the largest bound after one or more symbols of some classes, that stay in the
    frame or open others.

    Args:
        a: with its bounds.
        reads: bool [classes].
        opens: whether they may open frames.
    """
    weight = np.where(reads, 1, NEVER).astype(np.int32)
    ops = ways.ops_of(rows, weight, np.zeros(weight.size, np.int32))
    return _along(a, rows.of_close, ops.offset, ops.op, opens)


@kernel()
def _along(a, row, offset, op_of, opens):  # type: ignore[no-untyped-def]
    """Edges from close cells to ranges of others, with what is owed besides; then sweeps until nothing grows.

    States mostly lead to higher numbers, so a few sweeps from the last to the first are enough.
    """
    first, breaks, bound, back_offset, back = a.close_first, a.close_break, a.bound, a.back_offset, a.back
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
    edge = np.empty((begin[cells], 3), np.int32)  # first target, last target, what is owed besides
    n = 0
    for x in range(cells):
        for e in range(offset[row[x]], offset[row[x] + 1]):
            kind, number = np.int64(op_of[e] & KIND_MASK), np.int64(op_of[e] >> KIND_BITS)
            low, high = np.int64(a.low[x]), np.int64(a.high[x])
            if kind < PUSH:
                edge[n, 0] = edge[n, 1] = first[number]
                if first[number + 1] > first[number] + 1:
                    edge[n, 0] += phase(breaks, number, act(kind, low))
                    edge[n, 1] += phase(breaks, number, act(kind, high))
                edge[n, 2] = 0
                n += 1
            elif kind == PUSH and opens:
                g, action = np.int64(a.push[number, 0]), np.int64(a.push[number, 3])
                low, high = act(action, low), act(action, high)
                owed = min(np.int64(NEVER), owing(back_offset, back, first, breaks, bound, g, low, high))
                for mode in range(a.modes):
                    q = np.int64(a.push[number, 1 + mode])  # 0 where nothing may be opened: a state without a bound
                    edge[n, 0] = edge[n, 1] = first[q]
                    edge[n, 2] = owed if q > 0 else 0
                    n += 1
                for i in range(back_offset[g], back_offset[g + 1]):
                    q, then = np.int64(back[i] >> ACTION_BITS), np.int64(back[i] & ACTION_MASK)
                    edge[n, 0] = first[q] + phase(breaks, q, act(then, low))
                    edge[n, 1] = first[q] + phase(breaks, q, act(then, high))
                    edge[n, 2] = 0
                    n += 1
    value, out = bound.copy(), np.zeros(cells, np.int32)
    value[first[0]] = value[first[1]] = 0  # no state, and the finished one
    sweeps, growing = 0, True
    while growing:
        growing = False
        sweeps += 1
        for x in range(cells - 1, -1, -1):
            best = out[x]
            for e in range(begin[x], begin[x + 1]):
                found = value[edge[e, 0]]
                for y in range(edge[e, 0] + 1, edge[e, 1] + 1):
                    found = max(found, value[y])
                best = max(best, min(np.int32(NEVER), found + edge[e, 2]))
            if best > out[x]:
                out[x] = best if sweeps <= _SWEEPS else np.int32(NEVER)
                if out[x] > value[x]:
                    value[x] = out[x]
                    growing = True
    return out
