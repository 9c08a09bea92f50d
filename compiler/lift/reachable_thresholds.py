"""Find the thresholds that counters can meet before they are set anew or their frame is left.

Leaves out   how far ahead a walk sees them (walk.py), cells (cells.py).
Arrays       thresholds of number i: ``value[offset[i]:offset[i + 1]]``, ascending.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK
from toolc.runtime.jit.memory import grown, kernel
from toolc.runtime.jit.sort import ascend

from ..pushdown.pushdown import Automaton
from ..terminals.workspace import ADD_ONE, PUSH


class Ahead(NamedTuple):
    """offset int64 [n + 1]; value int32 [·]."""

    offset: np.ndarray
    value: np.ndarray

    @property
    def some(self) -> np.ndarray:
        """Which have any: bool [n]."""
        return self.offset[1:] > self.offset[:-1]


def none_ahead(n: int) -> Ahead:
    """For n that have none."""
    return Ahead(np.zeros(n + 1, np.int64), np.zeros(0, np.int32))


def thresholds_ahead(a: Automaton) -> Ahead:
    """Those of each state."""
    states = a.state_row.size - 1
    if not a.threshold.size:
        return none_ahead(states)
    kept = a.return_to[:, 1] <= ADD_ONE
    symbol, target = a.return_key[kept, 0], a.return_to[kept, 0]
    by_symbol = np.argsort(symbol, kind="stable")
    back_offset = np.searchsorted(symbol[by_symbol], np.arange(a.stack_symbols + 1))
    pushes = np.asarray(a.pushes, np.int32).reshape(-1, 4)
    offset, before = _ways_back(a.ops, a.state_row, pushes, back_offset, target[by_symbol])
    owner = np.repeat(np.arange(states), np.diff(a.threshold_offset))
    by_value = np.argsort(a.threshold, kind="stable")
    state, value = _spread(owner[by_value], a.threshold[by_value], offset, before)
    ends = np.zeros(states + 1, np.int64)
    np.cumsum(np.bincount(state, minlength=states), out=ends[1:])
    return Ahead(ends, value[np.argsort(state, kind="stable")])


@kernel()
def _ways_back(ops, state_row, pushes, back_offset, back):  # type: ignore[no-untyped-def]
    """States from which each is reached with the counter as it was or one more: offset int64 [states + 1], state.

    Args:
        back_offset, back: the states in which that can be so after frames of each stack symbol.
    """
    states = state_row.size - 1
    ways = np.empty((1024, 2), np.int32)  # to, from
    count = 0
    stamp = np.full(states, -1, np.int32)
    for q in range(states):
        for row in range(state_row[q], state_row[q + 1]):
            last = 0
            for op in ops[row]:
                if op == last or op == 0:
                    continue
                last = op
                kind, value = op & KIND_MASK, op >> KIND_BITS
                begin, end = 0, 0
                if kind <= ADD_ONE:
                    end = 1
                elif kind == PUSH and pushes[value, 3] <= ADD_ONE:
                    begin, end = back_offset[pushes[value, 0]], back_offset[pushes[value, 0] + 1]
                for k in range(begin, end):
                    target = value if kind <= ADD_ONE else back[k]
                    if stamp[target] == q:
                        continue
                    stamp[target] = q
                    if count == ways.shape[0]:
                        ways = grown(ways)
                    ways[count, 0] = target
                    ways[count, 1] = q
                    count += 1
    offset = np.zeros(states + 1, np.int64)
    for k in range(count):
        offset[ways[k, 0] + 1] += 1
    for q in range(states):
        offset[q + 1] += offset[q]
    at = offset[:-1].copy()
    before = np.empty(count, np.int32)
    for k in range(count):
        before[at[ways[k, 0]]] = ways[k, 1]
        at[ways[k, 0]] += 1
    return offset, before


@kernel()
def _spread(owner, threshold, offset, before):  # type: ignore[no-untyped-def]
    """Every state with every threshold that is ahead of it, by threshold: two arrays int32.

    Args:
        owner, threshold: those that states have themselves, by threshold;  offset, before: see `_ways_back`.
    """
    state = np.empty(1024, np.int32)
    value = np.empty(1024, np.int32)
    used = 0
    stamp = np.full(offset.size - 1, -1, np.int64)
    at = 0
    i = 0
    while i < owner.size:
        now = threshold[i]
        begin = i
        while i < owner.size and threshold[i] == now:
            q = owner[i]
            i += 1
            if stamp[q] == begin:
                continue
            stamp[q] = begin
            if used + 1 >= state.size:
                state = grown(state)
                value = grown(value)
            state[used] = q
            value[used] = now
            used += 1
        while at < used:
            q = state[at]
            at += 1
            for k in range(offset[q], offset[q + 1]):
                p = before[k]
                if stamp[p] == begin:
                    continue
                stamp[p] = begin
                if used == state.size:
                    state = grown(state)
                    value = grown(value)
                state[used] = p
                value[used] = now
                used += 1
    return state[:used], value[:used]


@kernel()
def chain_ahead(jobs, data, data_offset, return_offset, return_, offset, value):  # type: ignore[no-untyped-def]
    """Those of counters saved beside a stack symbol, which a profile's continuation can meet: see `Ahead`.

    Args:
        jobs: int32 [·, 2]: profile and stack symbol;  data, data_offset: the pool of profiles.
        return_offset, return_: see `Machine`;  offset, value: `Ahead` of the states.
    """
    ends = np.zeros(jobs.shape[0] + 1, np.int64)
    out = np.empty(1024, np.int32)
    stamp = np.full(offset.size - 1, -1, np.int64)
    used = 0
    for j in range(jobs.shape[0]):
        base = return_offset[jobs[j, 1]]
        begin = used
        for k in range(data_offset[jobs[j, 0]] + 2, data_offset[jobs[j, 0] + 1], 2):
            place = base + data[k]
            target = return_[place, 1] >> ACTION_BITS
            if return_[place, 0] != base or return_[place, 1] & ACTION_MASK > ADD_ONE or stamp[target] == j:
                continue
            stamp[target] = j
            while used + offset[target + 1] - offset[target] > out.size:
                out = grown(out)
            for i in range(offset[target], offset[target + 1]):
                out[used] = value[i]
                used += 1
        ascend(out[begin:used])
        end, used = used, begin
        for k in range(begin, end):
            if used == begin or out[k] != out[used - 1]:
                out[used] = out[k]
                used += 1
        ends[j + 1] = used
    return ends, out[:used]
