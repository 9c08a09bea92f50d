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

from .children import count_bits, count_of
from .simulate import UNKNOWN, UNLIMITED, simulate
from .walk import Walkable, find_op, row_at

_MOST_KEPT = 1 << 14  # first bytes below which the dead tokens of a group are remembered
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


@njit(cache=True)
def choose_bases(m, stays, unit_alive, jobs, rank, out):  # type: ignore[no-untyped-def]
    """The slice that agrees best with each job's state on its first bytes; of equals the last, which has fewest texts.

    Args:
        stays: uint64 [rows, 4]: the bytes on which an op row neither dies nor pushes nor pops.
        unit_alive: uint64 [unit states, 4].
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
        for u in range(unit_alive.shape[0]):
            score = 0
            for word in range(4):
                mine = unit_alive[u, word]
                if mine & alive[word] & ~stays[row, word] != 0:
                    score = -256
                    break
                score += count_bits(mine & alive[word]) - count_bits(mine & ~alive[word])
            agrees = score << 8 | u  # of equals the last is the best
            if score > 0 and best < agrees < rank[j]:
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
def find_regions(m, next_unit, boundary, limit, seeds, place, parent, fine, pairs):  # type: ignore[no-untyped-def]
    """Which seeds share a region, and the pairs of state and unit state in it.

    Args:
        seeds: int32 [n, 2]: pairs to begin with, each once.
        place: int32 [states, unit states], -1 everywhere; scratch.
        parent: int32 [n], receives per seed the first of its region, in some order.
        fine: bool [n], receives per such first one whether nothing is pushed or popped.

    Returns:
        int32 [·, 3]: state, unit state and first seed of the region of every pair.
    """
    found = np.empty((1024, 3), np.int32)
    count = 0
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
        if count == found.shape[0]:
            found = np.concatenate((found, np.empty_like(found)))
        found[count, 0] = seeds[s, 0]
        found[count, 1] = seeds[s, 1]
        found[count, 2] = s
        place[seeds[s, 0], seeds[s, 1]] = count
        count += 1
        while at < count:
            q = found[at, 0]
            u = found[at, 1]
            at += 1
            if boundary[u] and simulate(m, next_unit, boundary, limit, q, u, pairs) == UNLIMITED:
                continue
            for row in range(m.state_row[q], m.state_row[q + 1]):
                last = 0
                for byte in range(256):
                    v = next_unit[u, byte]
                    if v == 255:
                        continue
                    op = m.ops[row, m.symbol_class[byte]]
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
                        found = np.concatenate((found, np.empty_like(found)))
                    found[count, 0] = op >> 3
                    found[count, 1] = v
                    found[count, 2] = s
                    place[op >> 3, v] = count
                    count += 1
    for s in range(seeds.shape[0]):
        parent[s] = _root(parent, s)
    for k in range(count):
        found[k, 2] = parent[found[k, 2]]
    return found[:count]


@njit(cache=True)
def byte_classes(m, next_unit, region):  # type: ignore[no-untyped-def]
    """Bytes that the states of a region treat alike, by unit state: uint8 [unit states, 256].

    Args:
        region: int32 [·, 2]: state and unit state of its pairs.
    """
    classes = np.zeros(next_unit.shape, np.int32)
    count = np.ones(next_unit.shape[0], np.int32)
    column = np.empty(256, np.int32)
    for u in range(next_unit.shape[0]):
        for byte in range(256):
            column[byte] = next_unit[u, byte]
        count[u] = _split(classes[u], column, count[u])
    for k in range(region.shape[0]):
        q = region[k, 0]
        u = region[k, 1]
        for row in range(m.state_row[q], m.state_row[q + 1]):
            for byte in range(256):
                column[byte] = m.ops[row, m.symbol_class[byte]] if next_unit[u, byte] != 255 else 0
            count[u] = _split(classes[u], column, count[u])
    return classes.astype(np.uint8)


@njit(cache=True)
def _split(classes, column, count):  # type: ignore[no-untyped-def]
    """Split classes of bytes on which the column differs; returns how many there are now."""
    value = np.empty(256, np.int32)
    after = np.full(256, -1, np.int32)  # the next class split from the same one
    have = np.zeros(256, np.bool_)
    for byte in range(256):
        n = classes[byte]
        if not have[n]:
            have[n] = True
            value[n] = column[byte]
            continue
        while value[n] != column[byte]:
            if after[n] < 0:
                after[n] = count
                have[count] = True
                value[count] = column[byte]
                count += 1
            n = after[n]
        classes[byte] = n
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
def _dead_below(m, t, next_unit, boundary, limit, i, op, c, u, st, pairs, runs, count):  # type: ignore[no-untyped-def]
    """Append the runs of tokens at and below a first node that are dead after an op on its byte.

    Args:
        c, u: the counter and the unit state before the byte.
        runs: int64 [·, 2]: first place, place after the last; there are ``count``, and room for one a node.

    Returns:
        how many runs there are then, and the most increments before a threshold was looked at.
    """
    end = t.skip[i]
    most = 0
    st[0, 1] = c
    st[0, 2] = u
    st[0, 3] = 0
    first = True
    while i < end:
        depth = t.depth[i]
        c = st[depth - 1, 1]
        inc = st[depth - 1, 3]
        if not first:
            q = st[depth - 1, 0]
            if inc > most and m.threshold_offset[q + 1] > m.threshold_offset[q]:
                most = inc
            op = find_op(m, q, c, t.byte[i])
        first = False
        after = t.skip[i]
        if op == 0:
            runs[count, 0] = t.token_offset[i]
            runs[count, 1] = t.token_offset[after]
            count += 1
            i = after
            continue
        q = op >> 3
        action = op & 7
        u = next_unit[st[depth - 1, 2], t.byte[i]]
        if boundary[u]:
            room = limit[q, u]
            if room == UNKNOWN:
                room = simulate(m, next_unit, boundary, limit, q, u, pairs)
            if room == UNLIMITED:
                i = after
                continue
        if action == 1:
            c += 1
            if inc >= 0:
                inc += 1
        elif action >= 2:
            c = action - 2
            inc = -1
        st[depth, 0] = q
        st[depth, 1] = c
        st[depth, 2] = u
        st[depth, 3] = inc
        i += 1
    return count, most


@njit(cache=True)
def _mark_dead(t, runs, entry, sequence, dead, mark, j):  # type: ignore[no-untyped-def]
    """Count the dead tokens of a job by units, and mark them, or the living ones where these are fewer.

    Args:
        entry: int64 [·, 3]: first run, run after the last;  sequence: the entries below each first node.
        dead: int64 [units], receives how many.

    Returns:
        whether the living ones are marked.
    """
    gone = 0
    for n in sequence:
        for r in range(entry[n, 0], entry[n, 1]):
            gone += runs[r, 1] - runs[r, 0]
    living = 2 * gone > t.tokens.size
    dead[:] = 0
    start = 0
    for n in sequence:
        for r in range(entry[n, 0], entry[n, 1]):
            first, last = (start, runs[r, 0]) if living else (runs[r, 0], runs[r, 1])
            start = runs[r, 1]
            for k in range(first, last):
                dead[t.units[k]] += 1
                mark[t.tokens[k]] = j
    if living:
        for k in range(start, t.tokens.size):
            dead[t.units[k]] += 1
            mark[t.tokens[k]] = j
        for n in range(dead.size):
            dead[n] = t.units_offset[n + 1] - t.units_offset[n] - dead[n]
    return living


@njit(cache=True)
def walk_collapsed(m, t, next_unit, boundary, limit, home, jobs, st, pairs, mark, tokens, out):  # type: ignore[no-untyped-def]
    """What each job allows of a slice: its tokens of at most so many units, with a list toggled that is the shortest.

    What lies below a first byte depends on the op on it and the counter only: jobs of one counter value, which come
    one behind the other, share it, and a list where they share all.

    Args:
        jobs: by counter.
        st: int32 [depth, 5], scratch;  mark: int32 [V], scratch, all -1.
        tokens: int32 [·], receives the lists one behind the other.
        out: int32 [jobs, 4], receives units (-1: all), the most increments before a threshold was looked at, the
            place in ``tokens`` after its list, and the job whose list it is.

    Returns:
        how many jobs were walked; the others find no room in ``tokens``.
    """
    widest = t.units_offset.size - 1
    dead = np.empty(widest, np.int64)
    slots = np.zeros((2 * _MOST_KEPT, 3), np.int64)  # group of jobs, op and number of the first byte, entry
    entry = np.empty((_MOST_KEPT, 3), np.int64)  # first run, run after the last, most increments
    runs = np.empty((t.byte.size + 1, 2), np.int64)
    sequences = np.empty((jobs.shape[0] + 1, 256), np.int32)  # entries of every list of the group
    job_of = np.empty(jobs.shape[0] + 1, np.int64)
    group = kept = held = lists = used = 0
    for j in range(jobs.shape[0]):
        if tokens.size - used < t.tokens.size:
            return j
        c = jobs[j, 1]
        if j == 0 or c != jobs[j - 1, 1] or kept + 256 > _MOST_KEPT:
            group += 1
            kept = held = lists = 0
        row = row_at(m, jobs[j, 0], c)
        sequence = sequences[lists]
        firsts = 0
        i = 0
        while i < t.byte.size:
            op = m.ops[row, m.symbol_class[t.byte[i]]]
            key = np.int64(op) << 8 | firsts
            slot = (key * 0x9E3779B1 >> 12) & (slots.shape[0] - 1)
            while slots[slot, 0] == group and slots[slot, 1] != key:
                slot = (slot + 1) & (slots.shape[0] - 1)
            if slots[slot, 0] != group:
                while held + t.skip[i] - i > runs.shape[0]:
                    runs = np.concatenate((runs, np.empty_like(runs)))
                entry[kept, 0] = held
                held, most = _dead_below(
                    m, t, next_unit, boundary, limit, i, op, c, home, st, pairs, runs, held
                )  # fmt: skip
                entry[kept, 1] = held
                entry[kept, 2] = most
                slots[slot, 0] = group
                slots[slot, 1] = key
                slots[slot, 2] = kept
                kept += 1
            sequence[firsts] = slots[slot, 2]
            firsts += 1
            i = t.skip[i]
        sequence = sequence[:firsts]
        same = 0
        while same < lists and (sequences[same, :firsts] != sequence).any():
            same += 1
        out[j, 3] = j
        if same < lists:
            out[j] = out[job_of[same]]
            out[j, 2] = used
            continue
        job_of[lists] = j
        lists += 1
        living = _mark_dead(t, runs, entry, sequence, dead, mark, j)
        # Up to so many units: dead ones are listed; beyond: living ones.
        cost = 0
        for n in range(widest):
            cost += t.units_offset[n + 1] - t.units_offset[n] - dead[n]
        best = cost
        units = 0
        for n in range(widest):
            cost += 2 * dead[n] - (t.units_offset[n + 1] - t.units_offset[n])
            if cost <= best:
                best = cost
                units = n
        for n in range(widest):
            size = t.units_offset[n + 1] - t.units_offset[n]
            if (n <= units and dead[n] > 0) or (n > units and dead[n] < size):
                for k in range(t.units_offset[n], t.units_offset[n + 1]):
                    if ((mark[t.by_units[k]] == j) != living) == (n <= units):
                        tokens[used] = t.by_units[k]
                        used += 1
        out[j, 0] = units if units < widest - 1 else -1
        out[j, 1] = 0
        for n in sequence:
            out[j, 1] = max(out[j, 1], entry[n, 2])
        out[j, 2] = used
    return jobs.shape[0]
