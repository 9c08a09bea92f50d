"""Compute which stack symbols can lie where: on top of the stack in a state, and right under another one.

A symbol is on top in every state that its frame comes to: those that its entry leads to by links (closures.py). What
lies under it is what was on top where it was pushed. Sets are sequences in a pool, so states of a frame share them.
States that lead to one another have one set, so each component is looked at once, after those that lead to it.

Leaves out   the relations (closures.py), the arrays (workspace.py).
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import kernel, write_int

from ..terminals.workspace import (
    BENEATH,
    CALLER_HEAD,
    CALLER_NEXT,
    CALLERS,
    LINK_HEAD,
    LINK_NEXT,
    LINKS,
    NONE,
    SETS,
    STATES,
    SYMBOLS,
    TOP,
    ZERO,
    Workspace,
    begin_of,
    count_of,
    get,
    has_room,
    let,
    put,
    sort,
    tail,
)


@kernel()
def _components(w):  # type: ignore[no-untyped-def]
    """Strongly connected components of the states by their links, those that lead to others before them (Tarjan 1972).

    Returns:
        states int32 [states], by component, and offsets int64 [components + 1].
    """
    size = count_of(w, STATES)
    done = size + 1
    index, low = np.zeros(size, np.int32), np.zeros(size, np.int32)
    waiting, waits = np.empty(size, np.int32), 0
    path, steps = np.empty(size, np.int32), 0
    at = np.empty(size, np.int32)  # the next link to a state on the path
    members, found = np.empty(size, np.int32), 0
    offset, components = np.zeros(size + 1, np.int64), 0
    count = 0
    for root in range(size):
        if index[root]:
            continue
        q = np.int64(root)
        while True:
            if index[q] == 0:
                count += 1
                index[q] = low[q] = count
                at[q] = get(w, LINK_HEAD, q)
                waiting[waits] = path[steps] = q
                waits += 1
                steps += 1
            i = np.int64(at[q])
            lowest = low[q]
            deeper = np.int64(-1)
            while i >= 0:
                before = get(w, LINKS, 2 * i)
                if index[before] == 0:
                    deeper = before
                    break
                lowest = min(lowest, index[before])
                i = get(w, LINK_NEXT, i)
            at[q], low[q] = i, lowest
            if deeper >= 0:
                q = deeper
                continue
            steps -= 1
            if lowest == index[q]:
                last = np.int64(-1)
                while last != q:
                    waits -= 1
                    last = np.int64(waiting[waits])
                    index[last] = done
                    members[found] = last
                    found += 1
                components += 1
                offset[components] = found
            if steps == 0:
                break
            q = np.int64(path[steps - 1])
            low[q] = min(low[q], lowest)
    return members, offset[: components + 1]


@kernel()
def _add(w, set_, place, count, seen, mark):  # type: ignore[no-untyped-def]
    """Add the members of a set that are not marked as seen to those at an address; how many there are then."""
    for i in range(begin_of(w, SETS, set_), begin_of(w, SETS, set_ + 1)):
        g = get(w, SETS, i)
        if seen[g] != mark:
            seen[g] = mark
            write_int(place, count, g)
            count += 1
    return count


@kernel()
def _tops(w, members, offset, begin):  # type: ignore[no-untyped-def]
    """Fill in `top` by components, from one on; the first that is left, where the pool is full."""
    if count_of(w, SETS) == 0:
        put(w, SETS, ZERO)
    seen = np.full(count_of(w, SYMBOLS), -1, np.int64)
    seen_set = np.full(offset.size + 1, -1, np.int64)  # by set: a component makes one at most
    for c in range(offset.size - 1):
        if c < begin:
            continue
        if not has_room(w, SETS):
            return c
        place = tail(w, SETS)
        count = ZERO
        only = NONE  # a set that all come from
        for k in range(offset[c], offset[c + 1]):
            let(w, TOP, members[k], NONE)
        for k in range(offset[c], offset[c + 1]):
            i = get(w, CALLER_HEAD, members[k])
            while i >= 0:
                g = get(w, CALLERS, begin_of(w, CALLERS, i) + 2)
                if seen[g] != c:
                    seen[g] = c
                    write_int(place, count, g)
                    count += 1
                i = get(w, CALLER_NEXT, i)
        for k in range(offset[c], offset[c + 1]):
            i = get(w, LINK_HEAD, members[k])
            while i >= 0:
                set_ = get(w, TOP, get(w, LINKS, 2 * i))
                i = get(w, LINK_NEXT, i)
                if set_ < 0 or seen_set[set_] == c:
                    continue
                seen_set[set_] = c
                if only < 0 and count == 0:
                    only = set_
                    continue
                if only >= 0:
                    count = _add(w, only, place, count, seen, c)
                    only = NONE
                count = _add(w, set_, place, count, seen, c)
        if only < 0:
            sort(place, count)
            only = put(w, SETS, count)
        for k in range(offset[c], offset[c + 1]):
            let(w, TOP, members[k], only)
    return offset.size - 1


@kernel()
def _beneaths(w, begin):  # type: ignore[no-untyped-def]
    """Fill in `beneath` from `top`, from a symbol on; the first that is left, where the pool is full."""
    symbols = count_of(w, SYMBOLS)
    head, next_ = np.full(symbols, -1, np.int64), np.empty(count_of(w, CALLERS), np.int64)
    for n in range(next_.size):
        g = get(w, CALLERS, begin_of(w, CALLERS, n) + 2)
        next_[n] = head[g]
        head[g] = n
    seen = np.full(symbols, -1, np.int64)
    seen_set = np.full(count_of(w, SETS) + symbols, -1, np.int64)
    for g in range(symbols):
        if g < begin:
            continue
        if not has_room(w, SETS):
            return g
        place = tail(w, SETS)
        count = ZERO
        n = head[g]
        while n >= 0:
            set_ = get(w, TOP, get(w, CALLERS, begin_of(w, CALLERS, n) + 1))
            if seen_set[set_] != g:
                seen_set[set_] = g
                count = _add(w, set_, place, count, seen, g)
            n = next_[n]
        sort(place, count)
        let(w, BENEATH, g, put(w, SETS, count))
    return symbols


def stack_order(space: Workspace) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The numbers of the sets on top in each state and right under each stack symbol, and the sets.

    Call it when determinisation is over.
    """
    sets = space.pools["sets"]
    states, symbols = len(space.pools["states"]), len(space.pools["symbols"])
    space.lengthen("sets", symbols + 2)
    members, offset = _components(space.address)
    at = 0
    while (at := int(_tops(space.address, members, offset, at))) < offset.size - 1:
        space.grow()
    at = 0
    while (at := int(_beneaths(space.address, at))) < symbols:
        space.grow()
    return (
        space.arrays["top"][:states].copy(),
        space.arrays["beneath"][:symbols].copy(),
        [sets[n] for n in range(len(sets))],
    )
