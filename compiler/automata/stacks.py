"""Which stack symbols can lie where: on top of the stack in a state, and right under another one.

A symbol is on top in every state that its frame comes to: those that its entry leads to by links (closures.py). What
lies under it is what was on top where it was pushed. Sets are sequences in a pool, so states of a frame share them.

Leaves out   the relations (closures.py), the arrays (workspace.py).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from toolc.runtime.memory import read_int, read_long, write_int

from .workspace import (
    BENEATH,
    CALLER_HEAD,
    CALLER_NEXT,
    CALLERS,
    FULL,
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


@njit(cache=True)
def _entered(w, state):  # type: ignore[no-untyped-def]
    """The set of the symbols under which frames begin in a state."""
    place = tail(w, SETS)
    count = ZERO
    i = get(w, CALLER_HEAD, state)
    while i >= 0:
        g = get(w, CALLERS, begin_of(w, CALLERS, i) + 2)
        if count == 0 or read_int(place, count - 1) != g:
            write_int(place, count, g)
            count += 1
        i = get(w, CALLER_NEXT, i)
    sort(place, count)
    kept = ZERO
    for i in range(count):
        if kept == 0 or read_int(place, kept - 1) != read_int(place, i):
            write_int(place, kept, read_int(place, i))
            kept += 1
    return put(w, SETS, kept)


@njit(cache=True)
def _add(w, field, i, other):  # type: ignore[no-untyped-def]
    """Add a set to the one in a field; whether it grew."""
    mine = get(w, field, i)
    if mine == other or other == 0:
        return False
    if mine == 0:
        let(w, field, i, other)
        return True
    data = read_long(w, SETS)
    place = tail(w, SETS)
    a, end_a = begin_of(w, SETS, mine), begin_of(w, SETS, mine + 1)
    b, end_b = begin_of(w, SETS, other), begin_of(w, SETS, other + 1)
    size = end_a - a
    count = ZERO
    while a < end_a or b < end_b:
        if b == end_b or (a < end_a and read_int(data, a) <= read_int(data, b)):
            if b < end_b and read_int(data, a) == read_int(data, b):
                b += 1
            write_int(place, count, read_int(data, a))
            a += 1
        else:
            write_int(place, count, read_int(data, b))
            b += 1
        count += 1
    if count == size:
        return False
    let(w, field, i, put(w, SETS, count))
    return True


@njit(cache=True)
def _solve(w, begun):  # type: ignore[no-untyped-def]
    """Fill in `top` and `beneath`; FULL where the pool is, then it is called again with ``begun``."""
    if not has_room(w, SETS):
        return FULL
    if not begun:
        put(w, SETS, ZERO)
        for q in range(count_of(w, STATES)):
            let(w, TOP, q, NONE)
        for g in range(count_of(w, SYMBOLS)):
            let(w, BENEATH, g, ZERO)
    for q in range(count_of(w, STATES)):
        if get(w, TOP, q) < 0:
            if not has_room(w, SETS):
                return FULL
            let(w, TOP, q, _entered(w, q))
    links = count_of(w, LINKS)
    grew = True
    forward = True
    while grew:
        # States are numbered by discovery, so nearly all links lead forward; the others want the other direction.
        grew = False
        for n in range(links):
            if not has_room(w, SETS):
                return FULL
            place = begin_of(w, LINKS, n if forward else links - 1 - n)
            if _add(w, TOP, get(w, LINKS, place + 1), get(w, TOP, get(w, LINKS, place))):
                grew = True
        forward = not forward
    for n in range(count_of(w, CALLERS)):
        if not has_room(w, SETS):
            return FULL
        place = begin_of(w, CALLERS, n)
        _add(w, BENEATH, get(w, CALLERS, place + 2), get(w, TOP, get(w, CALLERS, place + 1)))
    return ZERO


def stack_order(space: Workspace) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """The numbers of the sets on top in each state and right under each stack symbol, and the sets.

    Call it when determinisation is over.
    """
    sets = space.pools["sets"]
    space.lengthen("sets", len(space.pools["callers"]) + 2)
    begun = False
    while int(_solve(space.address, begun)) == FULL:
        begun = True
        space.grow()
    states, symbols = len(space.pools["states"]), len(space.pools["symbols"])
    return (
        space.arrays["top"][:states].copy(),
        space.arrays["beneath"][:symbols].copy(),
        [sets[n] for n in range(len(sets))],
    )
