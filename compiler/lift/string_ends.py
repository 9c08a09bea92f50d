"""Find the tokens that go on behind the end of a string: those of a state, from what its end leads to.

A token outside of the slice of a unit state dies in the unit automaton. Where a local state simulates that one, and of
all bytes on which such tokens die between units it lives on one alone, the closing quote (inside_units.py proves it),
the token is alive if what stands behind its quote is, and if its counter lets the string end there. Some thousand
tokens have a few hundred different ends. So these are a trie of their own, the *ends*, walked once for every state that
a quote leads to; and what the states of its string allow is picked out of the list of such tokens.

Leaves out   the proof (inside_units.py), the walk through the ends (lift.py, walk.py).
Arrays       `Behind` below. The nodes of the ends are numbered in preorder; 0 is the root, the quote itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.jit.memory import grown, kernel, largest_in

from ..terminals.pool import intern, room
from .slice_simulation import UNLIMITED
from .slices import DEAD
from .walk import row_at
from .walk_results import HEAD


class Behind(NamedTuple):
    """The tokens that die in the automaton of a unit state on one byte between units, and their ends.

    entry int32 [n, 4]: nodes of the whole trie at that byte and below it, in preorder: node, its end, units that begin
    before the byte, place after the subtree;  byte uint8 [ends], depth int32 [ends], skip int32 [ends]: the ends but
    for the root, as a trie.
    """

    entry: np.ndarray
    byte: np.ndarray
    depth: np.ndarray
    skip: np.ndarray


@kernel()
def find_behind(node_byte, node_depth, node_skip, next_unit, boundary, unit, end):  # type: ignore[no-untyped-def]
    """The arrays of `Behind`.

    Args:
        node_byte, node_depth, node_skip: the trie;  unit: the unit state;  end: the byte.
    """
    entry = np.empty((64, 4), np.int32)
    tree = np.empty((64, 4), np.int32)  # ends as they are met: byte, depth, first child, next brother; -1 for none
    tree[0, 0], tree[0, 1], tree[0, 2], tree[0, 3] = end, 0, -1, -1
    depths = largest_in(node_depth) + 2 if node_depth.size > 0 else 2
    state, units = np.zeros(depths, np.int64), np.zeros(depths, np.int64)  # unit state, or -1 - the end
    state[0] = unit
    count, ends, node = 0, 1, 0
    while node < node_byte.size:
        depth, byte = np.int64(node_depth[node]), np.int64(node_byte[node])
        above = state[depth - 1]
        units[depth] = units[depth - 1]
        if above >= 0:
            v = next_unit[above, byte]
            if v != DEAD:
                state[depth] = v
                units[depth] += boundary[above]
                node += 1
                continue
            if not boundary[above] or byte != end:
                node = node_skip[node]
                continue
            state[depth] = -1
        else:
            parent = -1 - above
            before, child = np.int64(-1), np.int64(tree[parent, 2])
            while child >= 0 and tree[child, 0] < byte:
                before, child = child, np.int64(tree[child, 3])
            if child < 0 or tree[child, 0] != byte:
                if ends == tree.shape[0]:
                    tree = grown(tree)
                tree[ends, 0], tree[ends, 1], tree[ends, 2], tree[ends, 3] = byte, tree[parent, 1] + 1, -1, child
                if before < 0:
                    tree[parent, 2] = ends
                else:
                    tree[before, 3] = ends
                child = np.int64(ends)
                ends += 1
            state[depth] = -1 - child
        if count == entry.shape[0]:
            entry = grown(entry)
        entry[count, 0], entry[count, 1], entry[count, 2] = node, -1 - state[depth], units[depth]
        count += 1
        node += 1
    number = np.zeros(ends, np.int32)  # in preorder
    byte_of, depth_of = np.empty(ends - 1, np.uint8), np.empty(ends - 1, np.int32)
    todo = np.empty(ends, np.int64)
    todo[0] = tree[0, 2]
    waiting, met = 1 if tree[0, 2] >= 0 else 0, 0
    while waiting > 0:
        at = todo[waiting - 1]
        waiting -= 1
        byte_of[met], depth_of[met] = tree[at, 0], tree[at, 1]
        met += 1
        number[at] = met
        for then in (tree[at, 3], tree[at, 2]):
            if then >= 0:
                todo[waiting] = then
                waiting += 1
    skip_of = np.empty(ends - 1, np.int32)
    for k in range(ends - 2, -1, -1):
        after = k + 1
        while after < ends - 1 and depth_of[after] > depth_of[k]:
            after = skip_of[after]
        skip_of[k] = after
    for k in range(count - 1, -1, -1):
        after = k + 1
        while after < count and entry[after, 0] < node_skip[entry[k, 0]]:
            after = entry[after, 3]
        entry[k, 1], entry[k, 3] = number[entry[k, 1]], after
    return entry[:count].copy(), byte_of, depth_of, skip_of


@kernel()
def pieces_behind(  # type: ignore[no-untyped-def]
    m, entry, byte, token_offset, tokens, ends, found, jobs, of, ops, limit, pieces, longest, at, out
):
    """Intern, as pieces, the tokens behind the end of a string that jobs allow, and where these leave the frame.

    Args:
        m: `Machine`;  entry: of a `Behind`, for this byte;  token_offset, tokens: of the trie nodes.
        ends: data and offset of the lists and of the profiles (pool.py) that name the ends which are alive;  found:
            int32 [·, 6], of the states that the byte leads to, as `walk_states` gives it.
        jobs: int32 [·, 2]: the state between units, and the counter;  of: int32 [·]: which of ``found``;  ops: int32
            [·]: the op on the byte;  limit: int32 [·]: see slice_simulation.py.
        pieces, longest: of the pool;  at: the first job.
        out: int32 [·], receives the numbers.

    Returns:
        the first job that found no room.
    """
    data, offset, table, count = pieces
    lists, list_offset, profiles, profile_offset = ends
    most = np.int64(0)
    for k in range(entry.shape[0]):
        most = max(most, np.int64(entry[k, 2]))
    alive = np.zeros(entry.shape[0] + 1, np.int64)  # of each end: 0 dead, 1 alive, 2 + R where it leaves the frame
    may = np.zeros(most + 1, np.bool_)  # end behind so many units
    before = np.int64(-1)
    for j in range(at, jobs.shape[0]):
        if not room(data, offset, table, count, longest):
            return j
        n, q, c = np.int64(of[j]), np.int64(jobs[j, 0]), np.int64(jobs[j, 1])
        if n != before:
            before = n
            alive[:] = 0
            alive[0] = 1
            for i in range(list_offset[found[n, 0]], list_offset[found[n, 0] + 1]):
                alive[lists[i]] = 1
            if found[n, 1] >= 0:
                for i in range(profile_offset[found[n, 1]] + 1, profile_offset[found[n, 1] + 1], 2):
                    alive[profiles[i]] = 2 + profiles[i + 1]
        counts = m.state_row[q + 1] > m.state_row[q] + 1
        for units in range(most + 1):
            may[units] = limit[j] == UNLIMITED or c + units <= limit[j]
            if counts and m.ops[row_at(m, q, c + units), m.symbol_class[byte]] != ops[j]:
                may[units] = False
        begin = np.int64(offset[count[0]])
        end = begin + HEAD
        data[begin], data[begin + 1] = most if counts else 0, found[n, 3]
        data[begin + 2] = found[n, 4] | found[n, 5] << 1
        for records in range(2):
            x = np.int64(0)
            while x < entry.shape[0]:
                then, after = alive[entry[x, 1]], np.int64(entry[x, 3])
                if then == 0 or not may[entry[x, 2]]:
                    x = after
                    continue
                if records == 0:
                    for i in range(token_offset[entry[x, 0]], token_offset[entry[x, 0] + 1]):
                        data[end] = tokens[i]
                        end += 1
                elif then >= 2 and after > x + 1:
                    data[end], data[end + 1] = entry[x, 0], then - 2
                    end += 2
                x = after if then >= 2 else x + 1
            if records == 0:
                data[begin + 3] = end - begin - HEAD
                if found[n, 1] < 0:
                    break
        out[j] = intern(data, offset, table, count, end)
    return jobs.shape[0]
