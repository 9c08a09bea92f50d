"""Ladders: states that differ in nothing but how many more bytes of a kind they allow.

Between the tokens of JSON so many blanks may stand, and no more: a state that allows k of them does what the one that
allows k - 1 does, but leads to that one on a blank. Such copies are more than half of the states. State q is a *step*
above state p where their ops are equal but on some classes, the *rungs*: on these q goes to p, and p goes to the state
one step below it on the same classes, or, at the foot, is dead. What a text does from a state of height k is what it
does from any higher one of the same ladder, if it begins with at most k rungs, and else it is dead. So one walk that
counts the rungs finds what all lower ones would.

Leaves out   the walks (walk.py), what they find (pieces.py).
Invariants   states of one ladder agree in whether going there decides against a tool; none of them looks at its
             counter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.memory import BARE, kernel

from .children import next_child

MOST_STEPS = 64  # of a ladder; what is higher is on none


class Ladders(NamedTuple):
    """step int32 [states]: op with which a state goes one step down, 0 for the foot and where there is no ladder;
    height int32 [states]: steps to the foot."""

    step: np.ndarray
    height: np.ndarray


class Space(NamedTuple):
    """What walks along the first bytes of states work in.

    segment int32 [1, 6], result int64 [6]: see `_walk` (walk.py).
    below int64 [·, 14]: *parts* of what lies below a place, in the order of the trie. First of each stands from which
    value to which it is found, rungs or a counter; then what is walked: places of its first node, after its last, and
    of the parent, state, counter, increments; or a single node that is entered, and -1 for the place after the last.
    Last stand the tokens and records that were found, so far, and numbers 2 to 5 of the walk's result.
    way int64 [depth, 7]: by depth, or by rungs, a place, that of its next child, and that after the last; state,
    increments, first and last value;  bytes_ uint64 [depth, 4]: bytes, as in children.py.
    firsts int64 [256, 4]: of the first bytes of a state the place, the byte, the piece, and below which counter value
    it is that one.
    """

    segment: np.ndarray
    result: np.ndarray
    below: np.ndarray
    way: np.ndarray
    bytes_: np.ndarray
    firsts: np.ndarray

    @staticmethod
    def make(parts: int, depth: int) -> Space:
        """With room for what lies below a place in so many parts, in a trie of this depth."""
        depth = max(depth, MOST_STEPS) + 1
        below = np.empty((parts + 4, 14), np.int64)  # pages that nobody writes to cost nothing
        way, bytes_ = np.zeros((depth, 7), np.int64), np.zeros((depth, 4), np.uint64)
        return Space(
            np.zeros((1, 6), np.int32), np.zeros(6, np.int64), below, way, bytes_, np.zeros((256, 4), np.int64)
        )


@kernel()
def _onward(ops, above, below, op):  # type: ignore[no-untyped-def]
    """The op that the lower of two rows has where the upper one has ``op`` instead, 0 for dead; -1: they differ
    otherwise too, or in no class."""
    onward = np.int64(-1)
    for k in range(ops.shape[1]):
        other = np.int64(ops[below, k])
        if ops[above, k] == other:
            continue
        if ops[above, k] != op or other & 7 != 0 or (onward >= 0 and other != onward):
            return np.int64(-1)
        onward = other
    return onward


@kernel()
def _same_rungs(ops, state_row, upper, middle, lower):  # type: ignore[no-untyped-def]
    """Whether the rows of three states one above the other differ on the same classes."""
    a, b, c = state_row[upper], state_row[middle], state_row[lower]
    same = True
    for k in range(ops.shape[1]):
        same &= (ops[a, k] == ops[b, k]) == (ops[b, k] == ops[c, k])
    return same


@kernel()
def find_ladders(ops, state_row, narrow_state):  # type: ignore[no-untyped-def]
    """The arrays of `Ladders`; ``ops``, ``state_row`` and ``narrow_state`` as in `Machine` (walk.py)."""
    states = state_row.size - 1
    step, onward, height = np.zeros(states, np.int32), np.zeros(states, np.int32), np.full(states, -1, np.int32)
    for q in range(states):
        row = state_row[q]
        if q < 2 or state_row[q + 1] - row > 1:
            continue
        last = 0
        for k in range(ops.shape[1]):
            op = ops[row, k]
            if op == last or op & 7 != 0:
                continue
            last = op
            p = op >> 3
            if p < 2 or p == q or state_row[p + 1] - state_row[p] > 1 or narrow_state[p] != narrow_state[q]:
                continue
            found = _onward(ops, row, state_row[p], op)
            if found >= 0:
                step[q], onward[q] = op, found
                break
    way = np.empty(MOST_STEPS, np.int32)
    for q in range(states - 1, -1, -1):  # a foot has been found last, so ways are short
        x, count = q, 0
        while height[x] < 0:
            p = step[x] >> 3
            if step[x] == 0:
                height[x] = 0
            elif onward[x] == 0:
                height[x] = 1
            elif count == MOST_STEPS or step[p] != onward[x] or not _same_rungs(ops, state_row, x, p, step[p] >> 3):
                step[x] = height[x] = 0
            else:
                way[count] = x
                count += 1
                x = p
        while count > 0:
            count -= 1
            p, x = x, way[count]
            if height[p] == 0 or height[p] == MOST_STEPS:
                step[x] = height[x] = 0
            else:
                height[x] = height[p] + 1
    return step, height


@kernel()
def ends_of_ladders(step, height, first, bound):  # type: ignore[no-untyped-def]
    """The highest step of the ladder of each close cell and the one above its foot, int64 [close cells] each, where
    bounds are no larger further down; else, and for the highest step and the foot, the cell itself twice.

    Args:
        step, height: of `Ladders`;  first: int32 [states + 1], close cells of each;  bound: int32 [close cells].
    """
    highest, lowest = np.arange(bound.size), np.arange(bound.size)
    best = height.copy()  # of the steps that each is known to be beneath
    for q in range(height.size):
        x = lowest_ = np.int64(q)
        while height[x] > 0 and best[q] == height[q] and first[x + 1] == first[x] + 1:
            p = np.int64(step[x] >> 3)
            if first[p + 1] > first[p] + 1 or bound[first[p]] > bound[first[x]]:
                break
            x, lowest_ = p, x
        if height[x] > 0:
            continue
        x = np.int64(step[q] >> 3)
        while height[x] > 0:
            if best[x] < height[q]:
                best[x], highest[first[x]], lowest[first[x]] = height[q], first[q], first[lowest_]
            x = np.int64(step[x] >> 3)
    return highest, lowest


@kernel(**BARE)
def descend(m, packed, children, upper, lower, steps, place, counter, space):  # type: ignore[no-untyped-def]
    """Cut what lies below a place of a trie up by the rungs that lead there.

    Args:
        m: `Machine`;  packed, children: of the `Walkable` (walk.py).
        upper, lower: a state of a ladder and the one a step below;  steps: from the upper one to the foot.
        place: where the upper one is entered.
        space: its ``below`` receives the parts; the values are how many rungs there may be.

    Returns:
        how many parts.
    """
    below, bits, way, alive, wide = space.below, space.bytes_, space.way, m.alive, children.wide
    row, other = np.int64(m.state_row[upper]), np.int64(m.state_row[lower])
    for word in range(4):
        bits[0, word] = 0
    for byte in range(256):
        k = m.symbol_class[byte]
        if m.ops[row, k] != m.ops[other, k]:
            bits[0, byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)
    count, level, i = np.int64(0), np.int64(0), place
    while True:
        below[count, 0], below[count, 1], below[count, 2], below[count, 3] = level, MOST_STEPS, i, -1
        below[count, 10] = below[count, 11] = below[count, 12] = 0
        below[count, 13] = m.narrow_state[upper]
        if level == 0 or packed[i, 0] >> 62 & 1:  # tokens end there
            count += 1
        way[level, 0], way[level, 1], way[level, 2] = i, i + 1, packed[i, 0] & 0xFFFFFFFF
        while True:
            parent, i, end = way[level, 0], way[level, 1], way[level, 2]
            if i < end and wide[parent] >= 0:
                i = next_child(children, alive, row, parent, (packed[i, 0] >> 32 & 255) - 1, end)
            first = i
            while i < end:
                byte = packed[i, 0] >> 32 & 255
                if bits[0, byte >> 6] >> np.uint64(byte & 63) & np.uint64(1) != 0:
                    break
                if wide[parent] >= 0:
                    i = next_child(children, bits, np.int64(0), parent, byte, end)
                else:
                    i = packed[i, 0] & 0xFFFFFFFF
            if first < i:
                below[count, 0], below[count, 1], below[count, 2], below[count, 3] = level, MOST_STEPS, first, i
                below[count, 4], below[count, 5], below[count, 6], below[count, 7] = parent, upper, counter, 0
                count += 1
            if i < end:
                way[level, 1] = packed[i, 0] & 0xFFFFFFFF
                if level < steps:
                    level += 1
                    break
            else:
                level -= 1
                if level < 0:
                    return count
