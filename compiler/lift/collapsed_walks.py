"""Walk collapsed tries: the rows of many states inside of strings at once.

Leaves out   the trie (collapsed_trie.py), the tokens outside of the slice (walk.py), which rows are needed
             (region_rows.py).
Invariants   the states share a region, so nothing is pushed or popped.
Arrays       jobs int32 [·, 2]: state and counter.  limit, pairs: see slice_simulation.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK
from toolc.runtime.jit.memory import grown, kernel

from ..terminals.pool import intern
from .slice_simulation import UNKNOWN, UNLIMITED, simulate
from .walk import row_at

_MOST_KEPT = 1 << 15  # places of a hash table: of first bytes below which is known what is dead, and of lists
_MOST_VALUES = 1 << 12  # of the counter, in one walk
_WORK = 1 << 25  # nodes and tokens between two looks at the clock


class Parting(NamedTuple):
    """Scratch for walks of many counter values, which part where these meet thresholds.

    part int64 [·, 3]: op, first and last value of those that are alive at a node;  todo int64 [·, 9]: first node, node
    after the last, depth of the parent (-1: it is as it was) and what is to be known of the parent.
    """

    part: np.ndarray
    todo: np.ndarray


def scratch_for_parting(threshold_offset: np.ndarray, depth: int) -> Parting:
    """For states with these thresholds and a trie of such depth."""
    regions = 1 + int(np.diff(threshold_offset).max(initial=0))
    return Parting(np.empty((regions, 3), np.int64), np.empty(((regions + 1) * depth, 9), np.int64))


@kernel()
def _enlarged(array, size):  # type: ignore[no-untyped-def]
    """An array with room for so many entries: the same one where it has that."""
    while array.shape[0] < size:
        array = grown(array)
    return array


@kernel()
def _dead_below(m, t, units, limit, i, op, low, high, u, st, part, todo, pairs, events, used):  # type: ignore[no-untyped-def]
    """Append what is dead at and below a first node after an op on its byte, at the counter values low to high.

    One walk serves all these values: each place of it holds those that come there, and where they part it goes on
    once for each part.

    Args:
        u: the unit state before the byte.
        st: int32 [depth, 6], scratch: state, counter (if it was set on the way), unit state, increments (-1: it was
            set), first and last value at the start.
        part, todo: see `Parting`.
        events: int32 [·], from place ``used`` on receives fours: first place of tokens, place after the last, and
            the first and last counter value at which these are dead; those of one value come in order.

    Returns:
        how much of ``events`` is used then, -1 where it is too small; the most increments before a threshold was looked
        at; and how many nodes were visited.
    """
    waiting = 0
    most = np.int64(0)
    visited = 0
    end = np.int64(t.skip[i])
    first = True
    while i < end or waiting > 0:
        if i >= end:
            waiting -= 1
            i, end = todo[waiting, 0], todo[waiting, 1]
            for column in range(6 if todo[waiting, 2] >= 0 else 0):
                st[todo[waiting, 2], column] = todo[waiting, 3 + column]
            continue
        visited += 1
        depth = np.int64(t.depth[i])
        after = np.int64(t.skip[i])
        c = inc = k = beyond = np.int64(0)
        if not first:
            q = st[depth - 1, 0]
            c = np.int64(st[depth - 1, 1])
            u = np.int64(st[depth - 1, 2])
            inc = np.int64(st[depth - 1, 3])
            low = np.int64(st[depth - 1, 4])
            high = np.int64(st[depth - 1, 5])
            row = np.int64(m.state_row[q])
            k = np.int64(m.threshold_offset[q])
            beyond = np.int64(m.threshold_offset[q + 1])
            if k < beyond:
                most = max(most, inc)
                value = low + inc if inc >= 0 else c
                while k < beyond and m.threshold[k] <= value:
                    k += 1
                    row += 1
            op = np.int64(m.ops[row, m.symbol_class[t.byte[i]]])
        first = False
        if events.size < used + 4 * (beyond - k + 1):
            return np.int64(-1), most, visited
        if k == beyond or inc < 0 or m.threshold[k] - inc > high:  # one op for all the values, as there mostly is
            if op == 0:
                events[used] = t.token_offset[i]
                events[used + 1] = t.token_offset[after]
                events[used + 2] = low
                events[used + 3] = high
                used += 4
                i = after
                continue
            if after == i + 1:
                i = after
                continue
            q = op >> KIND_BITS
            action = op & KIND_MASK
            v = np.int64(units.next_unit[u, t.byte[i]])
            if units.boundary[v]:
                free = limit[q, v]
                if free == UNKNOWN:
                    free = simulate(m, units, limit, np.int64(q), np.int64(v), pairs)
                if free == UNLIMITED:
                    i = after
                    continue
            st[depth, 0] = q
            st[depth, 1] = action - 2 if action >= 2 else c + action
            st[depth, 2] = v
            st[depth, 3] = -1 if action >= 2 or inc < 0 else inc + action
            st[depth, 4] = low
            st[depth, 5] = high
            i += 1
            continue
        parts = 0
        at = low
        dead = False  # at the values before ``at``
        while at <= high:
            to = min(high, m.threshold[k] - inc - 1) if k < beyond else high
            op = np.int64(m.ops[row, m.symbol_class[t.byte[i]]])
            if op != 0:
                if parts > 0 and not dead and part[parts - 1, 0] == op:
                    part[parts - 1, 2] = to
                else:
                    part[parts, 0] = op
                    part[parts, 1] = at
                    part[parts, 2] = to
                    parts += 1
            elif dead:
                events[used - 1] = to
            else:
                events[used] = t.token_offset[i]
                events[used + 1] = t.token_offset[after]
                events[used + 2] = at
                events[used + 3] = to
                used += 4
            dead = op == 0
            at = to + 1
            k += 1
            row += 1
        if after == i + 1:
            i = after
            continue
        v = np.int64(units.next_unit[u, t.byte[i]])
        if after < end:
            todo[waiting, 0] = after
            todo[waiting, 1] = end
            todo[waiting, 2] = -1
            waiting += 1
        for n in range(parts - 1, -1, -1):
            q = part[n, 0] >> KIND_BITS
            action = part[n, 0] & KIND_MASK
            if units.boundary[v] and simulate(m, units, limit, np.int64(q), np.int64(v), pairs) == UNLIMITED:
                continue
            todo[waiting, 0] = i + 1
            todo[waiting, 1] = after
            todo[waiting, 2] = depth
            todo[waiting, 3] = q
            todo[waiting, 4] = c
            todo[waiting, 5] = v
            todo[waiting, 6] = inc + action
            if action >= 2:
                todo[waiting, 4] = action - 2
                todo[waiting, 6] = -1
            todo[waiting, 7] = part[n, 1]
            todo[waiting, 8] = part[n, 2]
            waiting += 1
        i = end
    return used, most, visited


@kernel()
def _runs_by_value(events, entry_at, sequence, low, values):  # type: ignore[no-untyped-def]
    """The events below every first node, sorted by the counter values at which they hold.

    Args:
        events: int32 [·], of each entry: see `_dead_below`, one number follows;  entry_at: where each begins.
        sequence: the entry of every first node;  low, values: the first counter value, and how many there are.

    Returns:
        int32 [·], first place, place after the last, of runs of dead tokens that do not touch; and where those of each
        value begin and end.
    """
    count = np.zeros(values + 1, np.int64)
    for n in sequence:
        for e in range(entry_at[n], entry_at[n + 1] - 1, 4):
            for c in range(events[e + 2] - low, events[e + 3] - low + 1):
                count[c + 1] += 1
    begin = count  # two numbers a run
    for c in range(values):
        begin[c + 1] = begin[c] + 2 * count[c + 1]
    end = begin[:values].copy()
    runs = np.empty(begin[values], np.int32)
    for n in sequence:
        for e in range(entry_at[n], entry_at[n + 1] - 1, 4):
            for c in range(events[e + 2] - low, events[e + 3] - low + 1):
                to = end[c]
                if to > begin[c] and runs[to - 1] == events[e]:
                    runs[to - 1] = events[e + 1]
                else:
                    runs[to] = events[e]
                    runs[to + 1] = events[e + 1]
                    end[c] = to + 2
    return runs, begin, end


@kernel()
def _mark_dead(t, runs, dead, mark, n):  # type: ignore[no-untyped-def]
    """Count the dead tokens of list n by units, and mark them, or the living ones where these are fewer.

    Args:
        runs: int32 [·]: first place, place after the last, ….
        dead: int64 [units], receives how many.

    Returns:
        whether the living ones are marked.
    """
    gone = 0
    for r in range(0, runs.size, 2):
        gone += runs[r + 1] - runs[r]
    living = 2 * gone > t.tokens.size
    dead[:] = 0
    start = 0
    for r in range(0, runs.size, 2):
        first, last = (start, runs[r]) if living else (runs[r], runs[r + 1])
        start = runs[r + 1]
        for k in range(first, last):
            dead[t.units[k]] += 1
            mark[t.tokens[k]] = n
    if living:
        for k in range(start, t.tokens.size):
            dead[t.units[k]] += 1
            mark[t.tokens[k]] = n
        for k in range(dead.size):
            dead[k] = t.units_offset[k + 1] - t.units_offset[k] - dead[k]
    return living


@kernel()
def _list(t, runs, dead, mark, n, tokens, used):  # type: ignore[no-untyped-def]
    """Append list n: what is dead of the tokens of at most so many units, and what lives of the others.

    The number of units is that for which the list is the shortest; in the middle of a character a token may have none.

    Returns:
        ``tokens``, the place after the list, and the number of units, -1 for all.
    """
    living = _mark_dead(t, runs, dead, mark, n)
    widest = dead.size
    cost = np.int64(0)
    for k in range(widest):
        cost += t.units_offset[k + 1] - t.units_offset[k] - dead[k]
    best, units = np.int64(0), 0
    for k in range(widest):
        cost += 2 * dead[k] - (t.units_offset[k + 1] - t.units_offset[k])
        if k == 0 or cost <= best:
            best = cost
            units = k
    tokens = _enlarged(tokens, used + best)
    for k in range(widest):
        size = t.units_offset[k + 1] - t.units_offset[k]
        if (k <= units and dead[k] > 0) or (k > units and dead[k] < size):
            for i in range(t.units_offset[k], t.units_offset[k + 1]):
                if ((mark[t.by_units[i]] == n) != living) == (k <= units):
                    tokens[used] = t.by_units[i]
                    used += 1
    return tokens, used, units if units < widest - 1 else -1


@kernel()
def walk_collapsed(m, t, units, limit, home, jobs, st, parting, pairs, mark, out):  # type: ignore[no-untyped-def]
    """What each job allows of a slice: its tokens of at most so many units, with a list toggled that is the shortest.

    Jobs of one state and op row whose counter values are neighbours are a *group* and share their walks. What lies
    below a first byte depends on the op on it and these values only, so groups share it, too; groups that find the
    same below all first bytes are equal, and so are jobs with the same dead tokens.

    Args:
        jobs: by state, then counter.
        st: int32 [depth, 6], scratch;  parting: scratch;  mark: int32 [V], scratch, all -1.
        out: int32 [jobs, 3], receives units (-1: all), the most increments before a threshold was looked at, and the
            number of the list.

    Returns:
        how many jobs were walked, which are all unless that takes long;  the lists one behind the other, int32 [·];
        where each ends, int64 [lists].
    """
    part, todo = parting
    firsts = 0
    i = np.int64(0)
    while i < t.byte.size:
        firsts += 1
        i = np.int64(t.skip[i])
    size = 1024
    while size < _MOST_KEPT and size < 4 * max(firsts, 1) * jobs.shape[0]:
        size *= 2
    slots = np.zeros((size, 4), np.int64)  # 1 + (op << 8 | number of the first byte), first and last value, entry
    met = 0
    # Each exists once, with offsets, a hash table and a count, see terminals/pool.py: entries, events below a first
    # node and the most increments behind them; groups, entries and the counter values; runs of dead tokens.
    entries, entry_at, entry_table = np.empty(4096, np.int32), np.zeros(size, np.int64), np.full(size, -1, np.int32)
    groups, group_at, group_table = np.empty(4096, np.int32), np.zeros(size, np.int64), np.full(size, -1, np.int32)
    lists, list_at, list_table = np.empty(4096, np.int32), np.zeros(size, np.int64), np.full(size, -1, np.int32)
    entry_count, group_count, list_count = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    list_of = np.empty(256, np.int32)  # of the values of each group
    list_begin = np.zeros(size, np.int64)
    units_of = np.empty(size, np.int32)  # lists
    ends = np.empty(size, np.int64)  # lists
    dead = np.empty(t.units_offset.size - 1, np.int64)
    tokens = np.empty(4096, np.int32)
    used = np.int64(0)
    work = 0
    j = 0
    while j < jobs.shape[0]:
        kept = met + group_count[0] + list_count[0]
        if work > _WORK or (2 * (kept + firsts + _MOST_VALUES) > size == _MOST_KEPT and j > 0):
            break
        low = np.int64(jobs[j, 1])
        row = row_at(m, np.int64(jobs[j, 0]), low)
        end = j + 1
        while (
            end < jobs.shape[0]
            and end - j < _MOST_VALUES
            and jobs[end, 0] == jobs[j, 0]
            and jobs[end, 1] == jobs[end - 1, 1] + 1
            and row_at(m, np.int64(jobs[end, 0]), np.int64(jobs[end, 1])) == row
        ):
            end += 1
        values = end - j
        high = low + values - 1
        begin = group_at[group_count[0]]
        groups = _enlarged(groups, begin + firsts + 2)
        groups[begin] = low
        groups[begin + 1] = values
        most = np.int64(0)
        n = 0
        i = np.int64(0)
        while i < t.byte.size:
            op = np.int64(m.ops[row, m.symbol_class[t.byte[i]]])
            key = 1 + (op << 8 | n)
            slot = ((key * 0x9E3779B1 + low * 0x85EBCA6B + high) >> 12) & (size - 1)
            while slots[slot, 0] != 0 and (slots[slot, 0] != key or slots[slot, 1] != low or slots[slot, 2] != high):
                slot = (slot + 1) & (size - 1)
            if slots[slot, 0] == 0:
                last = -1
                while last < 0:
                    last, reach, visited = _dead_below(
                        m, t, units, limit, i, op, low, high, home, st, part, todo, pairs, entries,
                        entry_at[entry_count[0]],
                    )  # fmt: skip
                    work += visited
                    entries = _enlarged(entries, entries.size + 1 if last < 0 else last + 1)
                entries[last] = reach
                slots[slot, 0] = key
                slots[slot, 1] = low
                slots[slot, 2] = high
                slots[slot, 3] = intern(entries, entry_at, entry_table, entry_count, last + 1)
                met += 1
            entry = slots[slot, 3]
            groups[begin + 2 + n] = entry
            most = max(most, entries[entry_at[entry + 1] - 1])
            n += 1
            i = np.int64(t.skip[i])
        fresh = group_count[0]
        group = intern(groups, group_at, group_table, group_count, begin + 2 + firsts)
        if group == fresh:
            first = list_begin[group]
            list_begin[group + 1] = first + values
            list_of = _enlarged(list_of, first + values)
            sequence = groups[begin + 2 : begin + 2 + firsts]
            runs, run_begin, run_end = _runs_by_value(entries, entry_at, sequence, low, values)
            for k in range(values):
                length = run_end[k] - run_begin[k]
                at = list_at[list_count[0]]
                lists = _enlarged(lists, at + length)
                for n in range(length):
                    lists[at + n] = runs[run_begin[k] + n]
                new = list_count[0]
                number = intern(lists, list_at, list_table, list_count, at + length)
                list_of[first + k] = number
                if number == new:
                    tokens, used, units_of[number] = _list(t, lists[at : at + length], dead, mark, number, tokens, used)
                    ends[number] = used
                    work += t.tokens.size >> 2
            work += runs.size
        for k in range(values):
            number = list_of[list_begin[group] + k]
            out[j + k, 0] = units_of[number]
            out[j + k, 1] = most
            out[j + k, 2] = number
        j = end
    return j, tokens[:used].copy(), ends[: list_count[0]].copy()
