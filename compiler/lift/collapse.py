"""Rows of many states inside of strings at once: the trie of a slice with bytes that they treat alike made one.

A state that no unit automaton describes (it counts words, or copies of a character) still stays alive on most of the
tokens of a slice, and walking them takes a visit to nearly every node of the trie. But such states come in hundreds,
and they and all that they lead to inside of the slice, a *region*, tell few bytes apart. Over these classes of bytes
most tokens are the same word, and the trie of the words is some hundred times smaller.

Leaves out   the tokens outside of the slice (walk.py), which rows are needed (lift.py).
Invariants   a region has no pushes and no pops on the bytes of its slice; where a state's has, it gets no row here.
Arrays       jobs int32 [·, 2]: state and counter.  byte_class uint8 [unit states, 256]: by the state of the
             unit automaton, since letters that are told apart in escapes are alike elsewhere.
             limit, pairs: see simulate.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from ..automata.pool import intern
from .children import count_bits, count_of
from .simulate import UNKNOWN, UNLIMITED, simulate
from .walk import Walkable, row_at

_MOST_KEPT = 1 << 15  # places of a hash table: of first bytes below which is known what is dead, and of lists
_MOST_VALUES = 1 << 12  # of the counter, in one walk
_WORK = 1 << 25  # nodes and tokens between two looks at the clock
_FEWEST = 6  # a walk from a state that lives on fewer bytes is short


class Collapsed(NamedTuple):
    """The trie of a slice over classes of bytes, in preorder.

    byte uint8 [n]: a byte of the class;  depth int32 [n]: from 1;  skip int32 [n];  token_offset int32 [n + 1]: how
    many tokens come before each node;  tokens, units int32 [·]: the tokens in this order, and the units of each;
    by_units int32 [·]: the tokens sorted by units, those of n units from ``units_offset[n]`` on.
    """

    byte: np.ndarray
    depth: np.ndarray
    skip: np.ndarray
    token_offset: np.ndarray
    tokens: np.ndarray
    units: np.ndarray
    by_units: np.ndarray
    units_offset: np.ndarray


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


@njit(cache=True)
def _leaves(m, units, row, u):  # type: ignore[no-untyped-def]
    """Whether something pushes or pops up to the first byte behind a unit that an op row is in the middle of.

    One way through the unit is looked at: it tells the frame.
    """
    while True:
        byte = np.int64(-1)
        for k in range(units.first[u], units.first[u + 1]):
            op = m.ops[row, m.symbol_class[units.byte[k]]]
            if op & 7 > 3:
                return True
            if op != 0 and byte < 0:
                byte = np.int64(units.byte[k])
        if units.boundary[u] or byte < 0:
            return False
        row = m.state_row[m.ops[row, m.symbol_class[byte]] >> 3]
        u = np.int64(units.next_unit[u, byte])


@njit(cache=True)
def choose_bases(m, stays, units, jobs, rank, out):  # type: ignore[no-untyped-def]
    """The slice that agrees best with each job's state on its first bytes; of equals the last, which has fewest texts.

    Args:
        stays: uint64 [rows, 4]: the bytes on which an op row neither dies nor pushes nor pops.
        rank: int32 [jobs]: only slices that agree less than this are looked at; receives how the chosen one agrees.
        out: int32 [jobs], receives the unit state, -1 where more bytes of every slice are dead than alive.
    """
    for j in range(jobs.shape[0]):
        out[j] = -1
        row = row_at(m, jobs[j, 0], jobs[j, 1])
        alive = m.alive[row]
        if count_of(alive) < _FEWEST:
            continue
        best = 0
        for u in range(units.boundary.size):
            score = 0
            for word in range(4):
                mine = units.alive[u, word]
                if mine & alive[word] & ~stays[row, word] != 0:
                    score = -256
                    break
                score += count_bits(mine & alive[word]) - count_bits(mine & ~alive[word])
            agrees = score << 8 | u  # of equals the last is the best
            if score > 0 and best < agrees < rank[j] and (units.boundary[u] or not _leaves(m, units, row, u)):
                best = agrees
                out[j] = u
        rank[j] = best


@njit(cache=True)
def _root(parent, n):  # type: ignore[no-untyped-def]
    while parent[n] != n:
        parent[n] = parent[parent[n]]
        n = parent[n]
    return n


@njit(cache=True)
def find_regions(m, units, limit, seeds, place, parent, fine, pairs, found):  # type: ignore[no-untyped-def]
    """Which seeds share a region, and the pairs of state and unit state in it.

    Args:
        seeds: int32 [n, 2]: pairs to begin with, each once.
        place: int32 [states, unit states], scratch, -1 everywhere before and after.
        parent: int32 [n], receives per seed the first of its region, in some order.
        fine: bool [n], receives per such first one whether nothing is pushed or popped.
        found: int32 [·, 3], receives state, unit state and first seed of the region of every pair.

    Returns:
        how many pairs there are; where ``found`` is too small, -1, and all is as before.
    """
    count = 0
    full = False
    for s in range(seeds.shape[0]):
        parent[s] = s
        fine[s] = True
    for s in range(seeds.shape[0]):
        if place[seeds[s, 0], seeds[s, 1]] >= 0:
            a = _root(parent, s)
            b = _root(parent, found[place[seeds[s, 0], seeds[s, 1]], 2])
            parent[a] = b
            fine[b] = fine[a] and fine[b]
            continue
        at = count
        if count + 1 >= found.shape[0]:
            full = True
            break
        found[count, 0] = seeds[s, 0]
        found[count, 1] = seeds[s, 1]
        found[count, 2] = s
        place[seeds[s, 0], seeds[s, 1]] = count
        count += 1
        while at < count and not full:
            q = found[at, 0]
            u = found[at, 1]
            at += 1
            if units.boundary[u] and simulate(m, units, limit, np.int64(q), np.int64(u), pairs) == UNLIMITED:
                continue
            for row in range(m.state_row[q], m.state_row[q + 1]):
                last = 0
                for k in range(units.first[u], units.first[u + 1]):
                    v = units.next_unit[u, units.byte[k]]
                    op = m.ops[row, m.symbol_class[units.byte[k]]]
                    if op == 0 or op << 8 | v == last:
                        continue
                    last = op << 8 | v
                    if op & 7 > 3:
                        fine[_root(parent, s)] = False
                        continue
                    known = place[op >> 3, v]
                    if known >= 0:
                        a = _root(parent, s)
                        b = _root(parent, found[known, 2])
                        if a != b:
                            parent[a] = b
                            fine[b] = fine[a] and fine[b]
                        continue
                    if count == found.shape[0]:
                        full = True
                        break
                    found[count, 0] = op >> 3
                    found[count, 1] = v
                    found[count, 2] = s
                    place[op >> 3, v] = count
                    count += 1
    for s in range(seeds.shape[0]):
        parent[s] = _root(parent, s)
    for k in range(count):
        found[k, 2] = parent[found[k, 2]]
        place[found[k, 0], found[k, 1]] = -1
    return -1 if full else count


@njit(cache=True)
def byte_classes(m, units, region):  # type: ignore[no-untyped-def]
    """Bytes that the states of a region treat alike, by unit state: uint8 [unit states, 256]; 0 for what is dead there.

    Args:
        region: int32 [·, 2]: state and unit state of its pairs.
    """
    class_of = np.zeros(units.byte.size, np.int32)
    count = np.ones(units.first.size - 1, np.int32)
    column = np.empty(256, np.int32)
    split = np.empty((3, 256), np.int32)
    for u in range(count.size):
        begin, end = units.first[u], units.first[u + 1]
        for k in range(begin, end):
            column[k - begin] = units.next_unit[u, units.byte[k]]
        count[u] = _split(class_of[begin:end], column, count[u], split)
    for n in range(region.shape[0]):
        q = region[n, 0]
        u = region[n, 1]
        begin, end = units.first[u], units.first[u + 1]
        if count[u] == end - begin:
            continue
        for row in range(m.state_row[q], m.state_row[q + 1]):
            for k in range(begin, end):
                column[k - begin] = m.ops[row, m.symbol_class[units.byte[k]]]
            count[u] = _split(class_of[begin:end], column, count[u], split)
    out = np.zeros(units.next_unit.shape, np.uint8)
    of_symbol = np.empty((m.symbol_class.max() + 1, 256), np.uint8)  # by the unit state that follows
    for u in range(count.size):
        for k in range(units.first[u], units.first[u + 1]):
            of_symbol[m.symbol_class[units.byte[k]], units.next_unit[u, units.byte[k]]] = class_of[k]
        for byte in range(256):
            if units.next_unit[u, byte] != 255:
                out[u, byte] = of_symbol[m.symbol_class[byte], units.next_unit[u, byte]]
    return out


@njit(cache=True)
def _split(classes, column, count, scratch):  # type: ignore[no-untyped-def]
    """Split classes on which the column differs; returns how many there are now."""
    value, after, have = scratch[0], scratch[1], scratch[2]
    have[:count] = 0
    after[:count] = -1  # the next class split from the same one
    for k in range(classes.size):
        n = classes[k]
        if not have[n]:
            have[n] = 1
            value[n] = column[k]
            continue
        while value[n] != column[k]:
            if after[n] < 0:
                after[n] = count
                after[count] = -1
                have[count] = 1
                value[count] = column[k]
                count += 1
            n = after[n]
        classes[k] = n
    return count


@njit(cache=True)
def _collapse(t, before, next_unit, home, byte_class, node_of_token):  # type: ignore[no-untyped-def]
    """The trie of words over classes: byte, depth and skip in preorder; per token its node."""
    size = 1 << 12
    table = np.full(size, -1, np.int32)
    parent = np.zeros(size >> 1, np.int32)
    byte = np.zeros(size >> 1, np.uint8)
    unit = np.zeros(size >> 1, np.int32)  # state of the unit automaton
    unit[0] = home
    nodes = 1  # 0 is the root
    current = np.zeros(int(t.node_depth.max()) + 1, np.int32)
    i = 0
    while i < t.node_byte.size:
        if before[t.skip[i]] == before[i]:
            i = t.skip[i]
            continue
        depth = t.node_depth[i]
        up = current[depth - 1]
        k = byte_class[unit[up], t.node_byte[i]]
        if 2 * nodes + 2 >= size:
            size *= 2
            table = np.full(size, -1, np.int32)
            parent = np.concatenate((parent, np.zeros_like(parent)))
            byte = np.concatenate((byte, np.zeros_like(byte)))
            unit = np.concatenate((unit, np.zeros_like(unit)))
            for n in range(1, nodes):
                slot = _slot(parent[n], byte_class[unit[parent[n]], byte[n]], size)
                while table[slot] >= 0:
                    slot = (slot + 1) & (size - 1)
                table[slot] = n
        slot = _slot(up, k, size)
        while table[slot] >= 0 and (parent[table[slot]] != up or byte_class[unit[up], byte[table[slot]]] != k):
            slot = (slot + 1) & (size - 1)
        if table[slot] < 0:
            table[slot] = nodes
            parent[nodes] = up
            byte[nodes] = t.node_byte[i]
            unit[nodes] = next_unit[unit[up], t.node_byte[i]]
            nodes += 1
        current[depth] = table[slot]
        for place in range(before[i], before[i + 1]):
            node_of_token[place] = table[slot]
        i += 1
    # Preorder: a parent has a smaller number than its children.
    below = np.ones(nodes, np.int32)
    for n in range(nodes - 1, 0, -1):
        below[parent[n]] += below[n]
    start = np.zeros(nodes, np.int32)
    free = np.ones(nodes, np.int32)
    deep = np.zeros(nodes, np.int32)
    for n in range(1, nodes):
        up = parent[n]
        start[n] = start[up] + free[up]
        free[up] += below[n]
        deep[n] = deep[up] + 1
    out_byte = np.zeros(nodes - 1, np.uint8)
    out_depth = np.zeros(nodes - 1, np.int32)
    out_skip = np.zeros(nodes - 1, np.int32)
    for n in range(1, nodes):
        out_byte[start[n] - 1] = byte[n]
        out_depth[start[n] - 1] = deep[n]
        out_skip[start[n] - 1] = start[n] - 1 + below[n]
    for place in range(node_of_token.size):
        node_of_token[place] = start[node_of_token[place]] - 1
    return out_byte, out_depth, out_skip


@njit(cache=True)
def _slot(parent, k, size):  # type: ignore[no-untyped-def]
    h = (np.uint64(parent) << np.uint64(8) | np.uint64(k)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64((h >> np.uint64(20)) & np.uint64(size - 1))


def collapse(
    trie: Walkable,
    before: np.ndarray,
    listed: np.ndarray,
    units: np.ndarray,
    next_unit: np.ndarray,
    home: int,
    byte_class: np.ndarray,
) -> Collapsed:
    """The collapsed trie of a slice.

    Args:
        trie: the whole trie.
        before, listed: the slice, see ``Words.listed``.
        units: int32 [V], units of every token of the slice.
        home: its unit state;  byte_class: see `byte_classes`.
    """
    node = np.empty(listed.size, np.int32)
    byte, depth, skip = _collapse(trie, before, next_unit, home, byte_class, node)
    by_node = np.argsort(node, kind="stable")
    tokens = listed[by_node]
    offset = np.zeros(byte.size + 1, np.int32)
    np.cumsum(np.bincount(node, minlength=byte.size), out=offset[1:])
    by_units = listed[np.argsort(units[listed], kind="stable")]
    units_offset = np.zeros(int(units[listed].max(initial=0)) + 2, np.int32)
    np.cumsum(np.bincount(units[listed], minlength=units_offset.size - 1), out=units_offset[1:])
    return Collapsed(byte, depth, skip, offset, tokens, units[tokens], by_units, units_offset)


@njit(cache=True)
def _enlarged(array, size):  # type: ignore[no-untyped-def]
    """An array with room for so many entries: the same one where it has that."""
    while array.shape[0] < size:
        array = np.concatenate((array, np.empty_like(array)))
    return array


@njit(cache=True)
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
            q = op >> 3
            action = op & 7
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
            q = part[n, 0] >> 3
            action = part[n, 0] & 7
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


@njit(cache=True)
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
    begin = 2 * np.cumsum(count)
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


@njit(cache=True)
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


@njit(cache=True)
def _list(t, runs, dead, mark, n, tokens, used):  # type: ignore[no-untyped-def]
    """Append list n: what is dead of the tokens of at most so many units, and what lives of the others.

    The number of units is that for which the list is the shortest.

    Returns:
        ``tokens``, the place after the list, and the number of units, -1 for all.
    """
    living = _mark_dead(t, runs, dead, mark, n)
    widest = dead.size
    cost = np.int64(0)
    for k in range(widest):
        cost += t.units_offset[k + 1] - t.units_offset[k] - dead[k]
    best = cost
    units = 0
    for k in range(widest):
        cost += 2 * dead[k] - (t.units_offset[k + 1] - t.units_offset[k])
        if cost <= best:
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


@njit(cache=True)
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
    # Each exists once, with offsets, a hash table and a count, see automata/pool.py: entries, events below a first
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
        row = row_at(m, jobs[j, 0], low)
        end = j + 1
        while (
            end < jobs.shape[0]
            and end - j < _MOST_VALUES
            and jobs[end, 0] == jobs[j, 0]
            and jobs[end, 1] == jobs[end - 1, 1] + 1
            and row_at(m, jobs[end, 0], jobs[end, 1]) == row
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
                lists[at : at + length] = runs[run_begin[k] : run_end[k]]
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
