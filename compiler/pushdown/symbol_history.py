"""Compute what was read last on the ways to NFA states, and what else marks.py asks of transitions: the kernels.

The *past* of an NFA state says, over all ways to it, how many symbols of its own region were read in a row, and, of the
ways that read none there, what was read last of the region before.

Leaves out   what becomes of it (marks.py).
Invariants   what a past says only goes from absent to a number to unknown, so the order of the ways does not matter.
Arrays       ``w`` is the address of a workspace's table after determinisation (workspace.py); kind_of, tool_of int32
             [NFA states]; ages int16: ABSENT, UNKNOWN, or how many symbols.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.tables import ARGUMENTS, AROUND, KEY, STRING, UNSETTLED, VALUE
from toolc.runtime.jit.memory import kernel, read_long, write_long

from ..terminals.workspace import (
    CALL,
    CALL_OFFSET,
    CALLERS,
    EDGE,
    EDGE_OFFSET,
    FINAL,
    FREE,
    FREE_OFFSET,
    GUARD,
    GUARD_OFFSET,
    LINKS,
    MARKS,
    STACK,
    VISIT,
    begin_of,
    count_of,
    get,
    let,
)

KINDS = 8  # of regions: AROUND and on
ABSENT, UNKNOWN = -2, -1  # no such symbol was read; ways disagree
_MOST = 255  # ages are counted so far
_PARTS = 1 << KEY | 1 << VALUE | 1 << STRING  # of the arguments
# Columns of a past behind those of the region before: own symbols; 1 if a way has none. Of one type, for one `_join`.
_HERE, _NONE = np.int64(KINDS), np.int64(KINDS + 1)


@kernel()
def _join(past, target, column, age):  # type: ignore[no-untyped-def]
    """Let a past say this too; whether it is new."""
    known = past[target, column]
    if age == ABSENT or known == UNKNOWN:
        return False
    if age == known:
        return False
    past[target, column] = age if known == ABSENT else UNKNOWN
    return True


@kernel()
def _pass(past, s, t, alike, kind):  # type: ignore[no-untyped-def]
    """Hand the past of a state on to one that follows without reading; whether that is new there."""
    grew = False
    for k in range(KINDS):
        grew |= _join(past, t, k, np.int64(past[s, k]))
    if alike:
        grew |= _join(past, t, _HERE, np.int64(past[s, _HERE]))
        return grew | _join(past, t, _NONE, np.int64(past[s, _NONE]))
    grew |= _join(past, t, np.int64(kind), np.int64(past[s, _HERE]))
    return grew | _join(past, t, _NONE, np.int64(1))


@kernel()
def last_read(w, kind_of, starts):  # type: ignore[no-untyped-def]
    """Of every NFA state, the kinds that may have been read last on the way to it, and so many symbols of each.

    Args:
        starts: int32 [·]: NFA states in which the text, or a frame with marked rules, begins.

    Returns:
        ages int16 [NFA states, KINDS]; of states that are not reached from there, AROUND, UNKNOWN.
    """
    size = kind_of.size
    past = np.full((size, KINDS + 2), ABSENT, np.int16)
    waits = np.zeros(size, np.bool_)
    stack = np.empty(size, np.int32)
    top = 0
    for s in starts:
        past[s, _NONE] = 1
        if not waits[s]:
            waits[s] = True
            stack[top] = s
            top += 1
    while top:
        top -= 1
        s = stack[top]
        waits[s] = False
        kind = kind_of[s]
        here = past[s, _HERE]
        count = here if here == ABSENT else here + 1 if 0 <= here < _MOST else UNKNOWN
        free, guard, edge = get(w, FREE_OFFSET, s), get(w, GUARD_OFFSET, s), get(w, EDGE_OFFSET, s)
        frees = get(w, FREE_OFFSET, s + 1) - free
        guards = frees + get(w, GUARD_OFFSET, s + 1) - guard
        edges = guards + get(w, EDGE_OFFSET, s + 1) - edge
        call = get(w, CALL_OFFSET, s)
        for i in range(edges + get(w, CALL_OFFSET, s + 1) - call):
            if i < guards:
                t = get(w, FREE, 2 * (free + i)) if i < frees else get(w, GUARD, 3 * (guard + i - frees) + 2)
                grew = _pass(past, s, t, kind_of[t] == kind, kind)
            elif i < edges:
                t = get(w, EDGE, 3 * (edge + i - guards) + 1)
                grew = _join(past, t, _HERE, np.int64(count))
                if past[s, _NONE] > 0:
                    grew |= _join(past, t, _HERE, np.int64(1))
            else:
                t = get(w, CALL, 4 * (call + i - edges) + 2)
                grew = _join(past, t, _HERE, np.int64(UNKNOWN))
            if grew and not waits[t]:
                waits[t] = True
                stack[top] = t
                top += 1
    for s in range(size):
        if past[s, _HERE] == ABSENT and past[s, _NONE] == ABSENT:
            past[s, AROUND] = UNKNOWN
        _join(past, s, np.int64(kind_of[s]), np.int64(past[s, _HERE]))
    return past[:, :KINDS].copy()


@kernel()
def in_common(last, kind_of, members, ends, may_be):  # type: ignore[no-untyped-def]
    """What local states tell of their last symbol, from the ages of their members (marks.py).

    Args:
        last: as `last_read` gives it.
        members: int32 [·]: the NFA states of each local state;  ends: int64 [states + 1]: where they begin.
        may_be: int64 [·]: kinds that one that is not settled may lie in.

    Returns:
        int32 [states, 3]: kind; age, or of what is not settled the one kind that it may be; whether the region ended.
    """
    out = np.empty((ends.size - 1, 3), np.int32)
    read = np.empty(KINDS, np.int64)  # how many of the members may have read this last
    for s in range(ends.size - 1):
        read[:] = 0
        bits = 0
        for i in range(ends[s], ends[s + 1]):
            bits |= 1 << kind_of[members[i]]
            for k in range(KINDS):
                read[k] += last[members[i], k] != ABSENT
        kind = UNSETTLED
        settled = 0
        for k in range(KINDS):
            if read[k] == ends[s + 1] - ends[s]:
                kind = k
                settled += 1
        if settled != 1:
            found = 0
            out[s, 0], out[s, 1], out[s, 2] = UNSETTLED, UNKNOWN, 0
            for k in may_be:
                if read[k]:
                    found += 1
                    out[s, 1] = k if found == 1 else UNKNOWN
            continue
        age = UNKNOWN
        agree = True
        for i in range(ends[s], ends[s + 1]):
            one = last[members[i], kind]
            if one >= 0:
                agree &= age < 0 or age == one
                age = one
        within = bits >> kind & 1 or (kind == ARGUMENTS and bits & _PARTS)
        out[s, 0], out[s, 1], out[s, 2] = kind, age if agree else UNKNOWN, 0 if within else 1
    return out


@kernel()
def stay(w, tool_of, members):  # type: ignore[no-untyped-def]
    """Whether the next symbol cannot take any of some NFA states out of its tool's call, other than by a push."""
    for s in members:
        tool = tool_of[s]
        if tool < 0:
            continue
        visit = read_long(w, VISIT) + 1
        write_long(w, VISIT, visit)
        top = 0
        for k in range(get(w, EDGE_OFFSET, s), get(w, EDGE_OFFSET, s + 1)):
            t = get(w, EDGE, 3 * k + 1)
            if get(w, MARKS, t) != visit:
                let(w, MARKS, t, visit)
                let(w, STACK, top, t)
                top += 1
        while top:
            top -= 1
            q = get(w, STACK, top)
            reads = get(w, EDGE_OFFSET, q + 1) > get(w, EDGE_OFFSET, q)
            calls = get(w, CALL_OFFSET, q + 1) > get(w, CALL_OFFSET, q)
            if tool_of[q] != tool and (reads or calls or get(w, FINAL, q) >= 0):
                return False
            frees = get(w, FREE_OFFSET, q + 1) - get(w, FREE_OFFSET, q)
            guard = get(w, GUARD_OFFSET, q) - frees
            for i in range(frees + get(w, GUARD_OFFSET, q + 1) - get(w, GUARD_OFFSET, q)):
                t = get(w, FREE, 2 * (get(w, FREE_OFFSET, q) + i)) if i < frees else get(w, GUARD, 3 * (guard + i) + 2)
                if get(w, MARKS, t) != visit:
                    let(w, MARKS, t, visit)
                    let(w, STACK, top, t)
                    top += 1
    return True


@kernel()
def spread(w, kept):  # type: ignore[no-untyped-def]
    """Add to some local states, a bool for each, all that they lead to."""
    links, callers = count_of(w, LINKS), count_of(w, CALLERS)
    grew = True
    forward = True
    while grew:
        # States are numbered by discovery, so nearly all links lead forward; the others want the other direction.
        grew = False
        for i in range(links + callers):
            n = i if forward else links + callers - 1 - i
            if n < links:
                place = begin_of(w, LINKS, n)
                p, q = get(w, LINKS, place), get(w, LINKS, place + 1)
            else:
                place = begin_of(w, CALLERS, n - links)
                p, q = get(w, CALLERS, place + 1), get(w, CALLERS, place)
            if kept[p] and not kept[q]:
                kept[q] = True
                grew = True
        forward = not forward
