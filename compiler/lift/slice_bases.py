"""Choose the slice that the row of a state inside of strings is based on, and find which states share a *region*.

A state that no unit automaton describes (it counts words, or copies of a character) still stays alive on most of the
tokens of a slice, and walking them takes a visit to nearly every node of the trie. But such states come in hundreds,
and they and all that they lead to inside of the slice, their region, tell few bytes apart.

Leaves out   the trie over classes of bytes (collapsed_trie.py), which states are asked for (region_rows.py).
Invariants   a region has no pushes and no pops on the bytes of its slice; where a state's has, it gets no row here.
Arrays       jobs int32 [·, 2]: state and counter.  limit, pairs: see slice_simulation.py.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import kernel

from .children import count_bits, count_of
from .slice_simulation import UNLIMITED, simulate
from .walk import row_at

_FEWEST = 6  # a walk from a state that lives on fewer bytes is short


@kernel()
def _leaves(m, units, row, u):  # type: ignore[no-untyped-def]
    """Whether something pushes or pops up to the first byte behind a unit that an op row is in the middle of.

    One way through the unit is looked at: it tells the frame.
    """
    while True:
        byte = np.int64(-1)
        for k in range(units.first[u], units.first[u + 1]):
            op = m.ops[row, m.symbol_class[units.byte[k]]]
            if op & KIND_MASK >= PUSH:
                return True
            if op != 0 and byte < 0:
                byte = np.int64(units.byte[k])
        if units.boundary[u] or byte < 0:
            return False
        row = m.state_row[m.ops[row, m.symbol_class[byte]] >> KIND_BITS]
        u = np.int64(units.next_unit[u, byte])


@kernel()
def rank_bases(read, units):  # type: ignore[no-untyped-def]
    """How slices agree with sets of bytes: int32 [sets, unit states], the best first, 0 behind the last that does.

    The agreement is how many more bytes of the slice are in the set than are not, above 8 bits for the unit state: of
    equals the last is the best, which has fewest texts. A set in which a byte of the slice pushes or pops has none.

    Args:
        read: uint64 [sets, 8]: the bytes on which op rows live, and of those the ones that neither push nor pop.
    """
    found = np.zeros((read.shape[0], units.boundary.size), np.int32)
    for s in range(read.shape[0]):
        alive, stays = read[s, :4], read[s, 4:]
        if count_of(alive) < _FEWEST:
            continue
        count = 0
        for u in range(units.boundary.size):
            score = 0
            for word in range(4):
                mine = units.alive[u, word]
                if mine & alive[word] & ~stays[word] != 0:
                    score = -256
                    break
                score += count_bits(mine & alive[word]) - count_bits(mine & ~alive[word])
            if score <= 0:
                continue
            agrees = np.int32(score << 8 | u)
            n = count
            while n > 0 and found[s, n - 1] < agrees:
                found[s, n] = found[s, n - 1]
                n -= 1
            found[s, n] = agrees
            count += 1
    return found


@kernel()
def choose_bases(m, units, set_of, ranked, size, slice_, jobs, rank, out):  # type: ignore[no-untyped-def]
    """The slice that agrees best with each job's state on its first bytes.

    Args:
        set_of: int64 [rows]: the set of bytes of an op row, by its number in ``ranked``, see `rank_bases`.
        size: int32 [slices]: tokens of each;  slice_: int32 [jobs]: what each would start from otherwise, -1 for none.
        rank: int32 [jobs]: only slices that agree less than this are looked at; receives how the chosen one agrees.
        out: int32 [jobs], receives the unit state, -1 where more bytes of every slice are dead than alive, or the
            chosen one is hardly larger than the other.
    """
    for j in range(jobs.shape[0]):
        out[j] = -1
        row = row_at(m, np.int64(jobs[j, 0]), np.int64(jobs[j, 1]))
        best = 0
        for agrees in ranked[set_of[row]]:
            if agrees == 0:
                break
            u = np.int64(agrees & 255)
            if agrees < rank[j] and (units.boundary[u] or not _leaves(m, units, row, u)):
                best = agrees
                if 4 * size[u] > (5 * size[slice_[j]] if slice_[j] >= 0 else 0):
                    out[j] = u
                break
        rank[j] = best


@kernel()
def _root(parent, n):  # type: ignore[no-untyped-def]
    while parent[n] != n:
        parent[n] = parent[parent[n]]
        n = parent[n]
    return n


@kernel()
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
                    if op & KIND_MASK >= PUSH:
                        fine[_root(parent, s)] = False
                        continue
                    known = place[op >> KIND_BITS, v]
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
                    found[count, 0] = op >> KIND_BITS
                    found[count, 1] = v
                    found[count, 2] = s
                    place[op >> KIND_BITS, v] = count
                    count += 1
    for s in range(seeds.shape[0]):
        parent[s] = _root(parent, s)
    for k in range(count):
        found[k, 2] = parent[found[k, 2]]
        place[found[k, 0], found[k, 1]] = -1
    return -1 if full else count
