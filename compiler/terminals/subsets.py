"""Determinise nodes that read sets of classes, by the subset construction.

A node reads a set of classes and goes on to another, or it stands for nodes that it forks into; node 0 is the end. A
state is the ascending nodes that read, and the end. Classes that no node of a state tells apart are stepped on once.

Leaves out   where nodes come from (terminal.py), minimising.
Arrays       see `Nodes`; the result as minimise.py takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from toolc.runtime.jit.memory import kernel

from .pool import Pool, intern, room
from .workspace import sort

_ENOUGH = 1 << 20  # steps until the number of states is looked at


class Nodes(NamedTuple):
    """Nodes as arrays.

    Attributes:
        set_of: int32 [nodes]: number of the set that a node reads, -1 if none.
        next_of: int32 [nodes]: the node after that.
        fork_offset, fork: int32 [nodes + 1], int32 [·]: the nodes that each stands for.
        member: bool [sets, classes].
        start: the first node.
    """

    set_of: np.ndarray
    next_of: np.ndarray
    fork_offset: np.ndarray
    fork: np.ndarray
    member: np.ndarray
    start: int


def subsets(nodes: Nodes, watch: Callable[[int], None]) -> tuple[np.ndarray, np.ndarray]:
    """The automaton, not minimal: table int32 [states, classes], accepting bool [states].

    Args:
        watch: called with the number of states now and then, and in the end; what it raises ends the work.
    """
    size, classes = nodes.set_of.size, nodes.member.shape[1]
    pool = Pool(size + 1, 2 * size, 2)
    rows, final = np.empty((2 * size, classes), np.int32), np.empty(2 * size, bool)
    at = 0
    while True:
        at = _expand(*nodes, at, *pool.arrays, size + 1, rows, final)
        watch(len(pool))
        if at == len(pool):
            break
        pool.grow()
        if at == len(rows):
            rows, final = np.concatenate([rows, np.empty_like(rows)]), np.concatenate([final, np.empty_like(final)])
    return rows[:at], final[:at]


@kernel()
def _expand(  # type: ignore[no-untyped-def]
    set_of, next_of, fork_offset, fork, member, start, at, data, offset, slots, count, longest, rows, final
):
    """Expand states from ``at`` on, until there is no more, there is no room, or enough is done.

    Args:
        set_of … start: the nodes.
        data … count: the pool of the states; ``longest`` is that of its sequences.
        rows: int32 [·, classes], receives the state behind each class, -1 is dead.
        final: bool [·], receives whether a state is accepting.

    Returns:
        the first state that is not expanded.
    """
    size, classes = set_of.size, member.shape[1]
    seen, visit = np.zeros(size, np.int64), 0
    split = np.full(member.shape[0], -1, np.int64)  # the state that a set was last seen in
    stack = np.empty(size, np.int32)
    group, first = np.empty(classes, np.int32), np.empty(classes, np.int32)
    have, hit = np.empty(classes, np.int32), np.zeros(classes, np.int32)
    made, target = np.full(classes, -1, np.int32), np.empty(classes, np.int32)
    steps = 0
    state = at - (count[0] == 0)  # the one before the first is what leads there
    while state < count[0] and state < len(rows) and steps < _ENOUGH:
        # Classes in groups, by the sets that hold them.
        begin, end = (0, 0) if state < 0 else (offset[state], offset[state + 1])
        groups = 1
        group[:] = 0
        have[0] = classes
        for i in range(begin, end):
            own = set_of[data[i]]
            if own < 0 or split[own] == state:
                continue
            split[own] = state
            for k in range(classes):
                if member[own, k]:
                    hit[group[k]] += 1
            before = groups
            for k in range(classes):
                old = group[k]
                if member[own, k] and hit[old] < have[old]:
                    if made[old] < 0:
                        made[old] = groups
                        have[groups] = hit[old]
                        groups += 1
                    group[k] = made[old]
            for old in range(before):
                if made[old] >= 0:
                    have[old] -= hit[old]
                    made[old] = -1
                hit[old] = 0
            steps += classes
        for k in range(classes - 1, -1, -1):
            first[group[k]] = k
        for g in range(groups):
            if not room(data, offset, slots, count, longest):
                return max(state, 0)
            # The nodes behind, then those that they fork into.
            visit += 1
            top = 0
            if state < 0:
                seen[start] = visit
                stack[0] = start
                top = 1
            for i in range(begin, end):
                own = set_of[data[i]]
                if own >= 0 and member[own, first[g]]:
                    node = next_of[data[i]]
                    if seen[node] != visit:
                        seen[node] = visit
                        stack[top] = node
                        top += 1
            place = offset[count[0]]
            tail = place
            while top:
                top -= 1
                node = stack[top]
                if set_of[node] >= 0 or node == 0:
                    data[tail] = node
                    tail += 1
                for i in range(fork_offset[node], fork_offset[node + 1]):
                    other = fork[i]
                    if seen[other] != visit:
                        seen[other] = visit
                        stack[top] = other
                        top += 1
            steps += end - begin + tail - place
            target[g] = -1
            if tail > place or state < 0:
                sort(data.ctypes.data + 4 * place, tail - place)
                target[g] = intern(data, offset, slots, count, tail)
        if state >= 0:
            final[state] = end > begin and data[begin] == 0
            for k in range(classes):
                rows[state, k] = target[group[k]]
        state += 1
    return state
