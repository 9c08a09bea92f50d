"""Cut what lies below a place of a trie by the counter values at which it is allowed.

A state that counts does at one value what it does at the next, until a threshold takes a way from it. So one walk finds
what the walks from all values of a run would: it goes down every way that is open at one of them, and notes from which
value to which the ways to a place are open.

Leaves out   the walks below the last place that counts (walk.py), what is found (walk_results.py).
Invariants   no walk that is left to others looks at a threshold, or all is given up.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK
from toolc.runtime.jit.memory import BARE, kernel

from ..terminals.workspace import ADD_ONE
from .children import next_child


@kernel(inline="always", **BARE)
def _common(m, q, symbol, low, high):  # type: ignore[no-untyped-def]
    """The op of a state on a symbol at counter values from ``low`` to ``high``, and the first and last value that has
    it; all others are dead, or the op is -1."""
    k, beyond, row = np.int64(m.threshold_offset[q]), m.threshold_offset[q + 1], np.int64(m.state_row[q])
    while k < beyond and m.threshold[k] <= low:
        k += 1
        row += 1
    op, first, last = np.int64(0), low, low - 1
    while low <= high:
        to = min(high, np.int64(m.threshold[k]) - 1) if k < beyond else high
        other = np.int64(m.ops[row, m.symbol_class[symbol]])
        if other != 0:
            if op == 0:
                op, first = other, low
            elif other != op or last != low - 1:
                return np.int64(-1), first, last
            last = to
        low = to + 1
        k += 1
        row += 1
    return op, first, last


@kernel(inline="always", **BARE)
def _alive(m, q, low, high, out, level):  # type: ignore[no-untyped-def]
    """Write the bytes on which a state lives at one of some counter values."""
    for word in range(4):
        out[level, word] = 0
    row = np.int64(m.state_row[q])
    for k in range(m.threshold_offset[q], m.threshold_offset[q + 1] + 1):
        if k == m.threshold_offset[q + 1] or m.threshold[k] > low:
            for word in range(4):
                out[level, word] |= m.alive[row, word]
        if k < m.threshold_offset[q + 1] and m.threshold[k] > high:
            return
        row += 1


@kernel(**BARE)
def descend_counting(m, ahead, packed, children, root, q, place, low, high, space):  # type: ignore[no-untyped-def]
    """Cut what lies below a place of a trie up by the counter values at which it is reached.

    Args:
        m: `Machine`;  packed, children: of the `Walkable` (walk.py), whose root this is.
        ahead: `Ahead` of the states: what can meet no threshold is left to walks.
        q: state before the place;  low, high: the first and the last counter value there.
        space: `Space` (walk_results.py); its ``below`` receives the parts in the order of the trie.

    Returns:
        how many parts; -1 where values differ in more than which ways are open.
    """
    below, way, bits, wide = space.below, space.way, space.bytes_, children.wide
    count, level = np.int64(0), np.int64(0)
    way[0, 0], way[0, 1], way[0, 2] = root, place, packed[place, 0] & 0xFFFFFFFF
    way[0, 3], way[0, 4], way[0, 5], way[0, 6] = q, 0, low, high
    while level >= 0:
        parent, i, end = way[level, 0], way[level, 1], way[level, 2]
        if i >= end:
            level -= 1
            continue
        after, byte = packed[i, 0] & 0xFFFFFFFF, packed[i, 0] >> 32 & 255
        way[level, 1] = after
        if level > 0 and wide[parent] >= 0:
            way[level, 1] = next_child(children, bits, level, parent, byte, end)
        q, inc = way[level, 3], way[level, 4]
        op, first, last = _common(m, q, byte, way[level, 5] + inc, way[level, 6] + inc)
        if op == 0:
            continue
        if op < 0:
            return np.int64(-1)
        target = op >> KIND_BITS
        low, high = first - inc, last - inc
        leads_on = op & KIND_MASK <= ADD_ONE and ahead.offset[target + 1] > ahead.offset[target] and after > i + 1
        if not leads_on and count > 0 and below[3, count - 1] == i and below[4, count - 1] == parent:
            if below[0, count - 1] == low and below[1, count - 1] == high:
                below[3, count - 1] = after
                continue
        if not leads_on or packed[i, 0] >> 62 & 1 or m.narrow_state[target]:
            below[0, count], below[1, count], below[2, count], below[3, count] = low, high, i, after
            below[4, count], below[5, count], below[6, count] = parent, q, first
            below[7, count] = 1  # so that a walk tells whether it has looked at a threshold
            if leads_on:
                below[3, count], below[13, count] = -1, m.narrow_state[target]
                below[10, count] = below[11, count] = below[12, count] = 0
            count += 1
        if not leads_on:
            continue
        inc += op & KIND_MASK
        level += 1
        way[level, 0], way[level, 1], way[level, 2] = i, i + 1, after
        way[level, 3], way[level, 4], way[level, 5], way[level, 6] = target, inc, low, high
        if wide[i] >= 0:
            _alive(m, target, low + inc, high + inc, bits, level)
            way[level, 1] = next_child(children, bits, level, i, np.int64(-1), after)
    return count
