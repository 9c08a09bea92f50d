"""Find which exit profiles go on under which stack symbols, and how far that leads.

Leaves out   the walks of chains (walk.py), their cells (cells.py).
Arrays       exits int32 [cells, modes]: exit profile of each cell, -1 for none.  follows int32 [·, 2]: profile, one
             that comes after it under some stack symbol; a profile follows another only deeper in the trie, so this
             has no cycles.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.tables import Tables
from toolc.runtime.jit.memory import grown, kernel, largest_in
from toolc.runtime.jit.sort import ascend


def chain_keys(t: Tables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Profile, stack symbol and number of every chain, int64 [chains] each, by profile and symbol."""
    e, g, n = _chain_keys(t.chain_offset, t.chain)
    return e, g, n


@kernel()
def _chain_keys(offset, chain):  # type: ignore[no-untyped-def]
    profile = np.full(chain.shape[0], -1, np.int64)  # by the place where its row begins
    for e in range(offset.size):
        profile[offset[e]] = e
    at = np.zeros(offset.size + 1, np.int64)
    for i in range(chain.shape[0]):
        if chain[i, 0] >= 0:
            at[profile[chain[i, 0]] + 1] += 1
    for e in range(offset.size):
        at[e + 1] += at[e]
    found = np.empty((3, at[-1]), np.int64)
    for i in range(chain.shape[0]):
        if chain[i, 0] >= 0:
            e = profile[chain[i, 0]]
            found[0, at[e]], found[1, at[e]], found[2, at[e]] = e, i - chain[i, 0], chain[i, 1]
            at[e] += 1
    return found


@kernel()
def pairs_beneath(exits, set_of_cell, set_offset, sets, profiles, symbols):  # type: ignore[no-untyped-def]
    """Each exit profile with each stack symbol that can be met by it: profile << 32 | symbol, int64 [·].

    Profiles come in the order of their first cells, the symbols of each ascend.

    Args:
        set_of_cell: int32 [cells]: number of the set of stack symbols that can lie under the cell's frame.
        set_offset, sets: int64 [sets + 1], int32 [·]: the members of every set.
        profiles, symbols: how many of each there are.
    """
    cells, modes = exits.shape
    used = np.empty(cells * modes, np.int32)  # profiles
    count = 0
    first = np.full(profiles, -1, np.int32)  # of a profile's entries in ``entry``
    entry = np.empty((cells * modes, 2), np.int32)  # a set, the next entry of the profile
    entries = 0
    for cell in range(cells):
        for mode in range(modes):
            e = exits[cell, mode]
            if e < 0:
                continue
            if first[e] < 0:
                used[count] = e
                count += 1
            elif entry[first[e], 0] == set_of_cell[cell]:
                continue
            entry[entries, 0] = set_of_cell[cell]
            entry[entries, 1] = first[e]
            first[e] = entries
            entries += 1
    seen_set = np.full(set_offset.size, -1, np.int32)
    seen = np.full(symbols, -1, np.int32)
    out = np.empty(1024, np.int64)
    size = 0
    for i in range(count):
        e = used[i]
        begin = size
        k = first[e]
        while k >= 0:
            s = entry[k, 0]
            k = entry[k, 1]
            if seen_set[s] == e:
                continue
            seen_set[s] = e
            for p in range(set_offset[s], set_offset[s + 1]):
                if seen[sets[p]] != e:
                    seen[sets[p]] = e
                    if size == out.size:
                        out = grown(out)
                    out[size] = np.int64(e) << 32 | np.int64(sets[p])
                    size += 1
        ascend(out[begin:size])
    return out[:size]


@kernel()
def longest_chain(follows, profiles):  # type: ignore[no-untyped-def]
    """How many profiles the longest way through them has."""
    length = np.ones(profiles, np.int64)
    changed = True
    while changed:
        changed = False
        for i in range(follows.shape[0] - 1, -1, -1):
            if length[follows[i, 0]] <= length[follows[i, 1]]:
                length[follows[i, 0]] = length[follows[i, 1]] + 1
                changed = True
    return max(np.int64(0), largest_in(length))


@kernel()
def lead_to(chosen, follows):  # type: ignore[no-untyped-def]
    """Add to the chosen profiles, bool [profiles], those that a chosen one follows in the end."""
    changed = True
    while changed:
        changed = False
        for i in range(follows.shape[0] - 1, -1, -1):
            if chosen[follows[i, 1]] and not chosen[follows[i, 0]]:
                chosen[follows[i, 0]] = True
                changed = True
