"""Find which values the counter can have in each state, and so which thresholds ahead tell anything apart.

Loops over members in order set counters to constants (pushdown/nfa.py). The value of a member that no other has is read
at one counter, though the states from there on look at all numbers of members.

Leaves out   thresholds (reachable_thresholds.py), cells (cells.py).
Invariants   a state is never reached at a value outside of its range. Automata without such loops keep all values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH, SET
from toolc.runtime.format.tables import MAX_COUNT
from toolc.runtime.jit.memory import grown, kernel

from ..pushdown.pushdown import Automaton
from ..terminals.offsets import offsets
from .reachable_thresholds import Ahead


class Values(NamedTuple):
    """least, most int32 [states]: the counters of each; told: the thresholds ahead that tell these apart."""

    least: np.ndarray
    most: np.ndarray
    told: Ahead

    def of(self, state: int) -> np.ndarray:
        """The least counter of each range of those that are told apart in a state, ascending."""
        ahead = self.told.value[self.told.offset[state] : self.told.offset[state + 1]]
        return np.concatenate([self.least[state : state + 1], ahead])


def counter_values(a: Automaton, ahead: Ahead) -> Values:
    """Those of an automaton with these thresholds ahead."""
    states = a.state_row.size - 1
    least, most = np.zeros(states, np.int32), np.full(states, MAX_COUNT, np.int32)
    if not a.state_set.any():
        return Values(least, most, ahead)
    kept = a.return_to[:, 1] <= 1  # others set the counter
    found = np.full((states, 2), (MAX_COUNT, -1), np.int32)
    found[a.return_to[~kept, 0]] = 0, 1
    found[list(a.entries.values())] = 0
    found[a.start] = 0
    key, to = a.return_key[kept], a.return_to[kept]
    by_symbol = np.argsort(key[:, 0], kind="stable")
    back_offset = np.searchsorted(key[by_symbol, 0], np.arange(a.stack_symbols + 1))
    pushes = np.asarray(a.pushes, np.int32).reshape(-1, 4)
    _spread(a.ops, a.state_row, a.threshold_offset, a.threshold, a.state_set, pushes, back_offset, to[by_symbol], found)
    found[found[:, 1] < 0] = 0  # never reached
    least[ahead.some], most[ahead.some] = found[ahead.some].T
    owner = np.repeat(np.arange(states), np.diff(ahead.offset))
    tells = (ahead.value > least[owner]) & (ahead.value <= most[owner])
    return Values(least, most, Ahead(offsets(np.bincount(owner[tells], minlength=states)), ahead.value[tells]))


@kernel()
def _spread(ops, state_row, threshold_offset, threshold, state_set, pushes, back_offset, back, found):  # type: ignore[no-untyped-def]
    """Widen the ranges int32 [states, 2] to all that states can be reached at.

    A counter that is added to has no end.

    Args:
        back_offset, back: int32 [·, 2], of each stack symbol the state and the action of what keeps the counter.
    """
    states = found.shape[0]
    todo, waits = np.empty(1024, np.int32), np.zeros(states, np.bool_)
    saved = np.empty((back_offset.size - 1, 2), np.int32)
    saved[:, 0], saved[:, 1] = MAX_COUNT, -1
    count = 0
    for q in range(states):
        if found[q, 1] >= 0:
            if count == todo.size:
                todo = grown(todo)
            todo[count] = q
            count += 1
            waits[q] = True
    while count > 0:
        count -= 1
        q = todo[count]
        waits[q] = False
        for row in range(state_row[q], state_row[q + 1]):
            region = threshold_offset[q] + row - state_row[q]
            low, high = np.int64(found[q, 0]), np.int64(found[q, 1])
            if row > state_row[q]:
                low = max(low, np.int64(threshold[region - 1]))
            if row + 1 < state_row[q + 1]:
                high = min(high, np.int64(threshold[region]) - 1)
            if low > high:
                continue
            last = 0
            for op in ops[row]:
                if op == last or op == 0:
                    continue
                last = op
                kind, number = op & KIND_MASK, op >> KIND_BITS
                first, end = 0, 1
                if kind == PUSH:
                    g, action = pushes[number, 0], pushes[number, 3]
                    below, above = low, high
                    if action == 1:
                        above = np.int64(MAX_COUNT)
                    elif action >= 2:
                        below = above = np.int64(action) - 2
                    saved[g, 0], saved[g, 1] = min(saved[g, 0], below), max(saved[g, 1], above)
                    first, end = back_offset[g] - 2, back_offset[g + 1]
                elif kind > PUSH:
                    continue
                for i in range(first, end):
                    if kind < PUSH:
                        r, below, above = np.int64(number), low, high
                        if kind == 1:
                            above = np.int64(MAX_COUNT)
                        elif kind == SET:
                            below = above = np.int64(state_set[r])
                        elif kind >= 2:
                            below = above = np.int64(kind) - 2
                    elif i < back_offset[pushes[number, 0]]:
                        r, below, above = np.int64(pushes[number, 1 + i - first]), np.int64(0), np.int64(0)
                    else:
                        g = pushes[number, 0]
                        r, below, above = np.int64(back[i, 0]), np.int64(saved[g, 0]), np.int64(saved[g, 1])
                        if back[i, 1] == 1:
                            above = np.int64(MAX_COUNT)
                    if below >= found[r, 0] and above <= found[r, 1]:
                        continue
                    found[r, 0], found[r, 1] = min(found[r, 0], below), max(found[r, 1], above)
                    if not waits[r]:
                        waits[r] = True
                        if count == todo.size:
                            todo = grown(todo)
                        todo[count] = r
                        count += 1
