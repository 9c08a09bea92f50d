"""Sets of NFA states closed under moves that read nothing, and the summary of what follows what in a frame.

The summary of a frame is three relations, joined as they grow:

    link (q, t)        q goes on to t in the same frame
    done (q, R)        R can be completed from q on, in the frame of q
    caller (e, q, g)   q enters a frame in e, under stack symbol g

    link (q, t), done (t, R)                 =>  done (q, R)
    caller (e, q, g), done (e, R)            =>  link (q, return of (g, R))

A kernel that finds a pool full returns -FULL; the caller grows it and calls again, and what was begun is done again:
every step adds only what is not there yet.

Leaves out   the transitions of states (determinise.py), the arrays (workspace.py).
Source       the summary edges of Reps, Horwitz, Sagiv 1995, kept backwards.
"""

from __future__ import annotations

from toolc.runtime.jit.memory import kernel, read_int, read_long, write_int, write_long

from ..terminals.workspace import (
    ACTIONS,
    APART,
    CALLER_HEAD,
    CALLER_NEXT,
    CALLERS,
    CALLERS_JOINED,
    CLOSED,
    CLOSED_TO,
    COMPLETION,
    COMPLETIONS,
    CORE,
    DONE_HEAD,
    DONE_NEXT,
    DONES,
    DONES_JOINED,
    FINAL,
    FREE,
    FREE_OFFSET,
    FULL,
    GOES_ON,
    GROUP,
    KEEP,
    LINK_HEAD,
    LINK_NEXT,
    LINKED,
    LINKS,
    LINKS_JOINED,
    MARKS,
    NONE,
    RETURN_TO,
    RETURNS,
    SCOPE,
    SET_ZERO,
    STACK,
    STATES,
    SYMBOLS,
    THREE,
    TWO,
    UNKNOWN,
    VISIT,
    WHY,
    ZERO,
    add_pair,
    append,
    begin_of,
    count_of,
    get,
    has_room,
    insert,
    let,
    put,
    sort,
    tail,
)


@kernel()
def tell(w, pool, number, extra):  # type: ignore[no-untyped-def]
    """Write a sequence and a number down as what an error is about."""
    begin = begin_of(w, pool, number)
    count = begin_of(w, pool, number + 1) - begin
    let(w, WHY, ZERO, count)
    for i in range(count):
        let(w, WHY, 1 + i, get(w, pool, begin + i))
    let(w, WHY, 1 + count, extra)


@kernel()
def apart(w, a, b):  # type: ignore[no-untyped-def]
    """Two NFA states disagree about the counter."""
    count = ZERO
    if get(w, SCOPE, a) >= 0:
        count += 1
        let(w, WHY, count, get(w, SCOPE, a))
    if get(w, SCOPE, b) >= 0:
        count += 1
        let(w, WHY, count, get(w, SCOPE, b))
    let(w, WHY, ZERO, count)
    return -APART


@kernel()
def _completed(w, number):  # type: ignore[no-untyped-def]
    """Work out which instances are complete in a state; 0, or a negative code."""
    place = tail(w, COMPLETIONS)
    begin, end = begin_of(w, STATES, number), begin_of(w, STATES, number + 1)
    finals = ZERO
    goes_on = False
    for i in range(begin, end):
        instance = get(w, FINAL, get(w, STATES, i))
        if instance < 0:
            goes_on = True
        else:
            finals = insert(place, finals, instance)
    if finals and goes_on:
        tell(w, STATES, number, GOES_ON)
        return -GROUP
    let(w, COMPLETION, number, put(w, COMPLETIONS, finals) if finals else NONE)
    return 0


@kernel()
def close(w, count):  # type: ignore[no-untyped-def]
    """Close the moves behind the pool `closed`: ``count`` pairs of NFA state and action, sorted.

    Returns:
        place in `closed_to` of the state and of the action on the counter that is live in it (-1: none is); or a
        negative code.
    """
    if not has_room(w, CLOSED) or not has_room(w, STATES) or not has_room(w, COMPLETIONS):
        return -FULL
    known = count_of(w, CLOSED)
    number = put(w, CLOSED, 2 * count)
    if number == known:
        let(w, CLOSED_TO, 2 * number, NONE)
    if get(w, CLOSED_TO, 2 * number) >= 0:
        return number
    visit = read_long(w, VISIT) + 1
    write_long(w, VISIT, visit)
    moves = read_long(w, CLOSED) + 4 * begin_of(w, CLOSED, number)
    out = tail(w, STATES)
    stack = read_long(w, STACK)
    marks = read_long(w, MARKS)
    actions = read_long(w, ACTIONS)
    found = ZERO
    live = NONE
    live_in = NONE
    for i in range(count):
        s = read_int(moves, 2 * i)
        action = read_int(moves, 2 * i + 1)
        if read_int(marks, s) == visit:
            if read_int(actions, s) != action and get(w, SCOPE, s) >= 0:
                return apart(w, s, s)
            continue
        write_int(marks, s, visit)
        write_int(actions, s, action)
        write_int(stack, 0, s)
        top = 1
        while top:
            top -= 1
            s = read_int(stack, top)
            action = read_int(actions, s)
            if get(w, CORE, s):
                write_int(out, found, s)
                found += 1
                if get(w, SCOPE, s) >= 0:
                    if live >= 0 and live != action:
                        return apart(w, s, live_in)
                    live = action
                    live_in = s
            for k in range(get(w, FREE_OFFSET, s), get(w, FREE_OFFSET, s + 1)):
                t = get(w, FREE, 2 * k)
                then = SET_ZERO if get(w, FREE, 2 * k + 1) else action
                if read_int(marks, t) == visit:
                    if read_int(actions, t) != then and get(w, SCOPE, t) >= 0:
                        return apart(w, t, t)
                    continue
                write_int(marks, t, visit)
                write_int(actions, t, then)
                write_int(stack, top, t)
                top += 1
    sort(out, found)
    known = count_of(w, STATES)
    state = put(w, STATES, found)
    if state == known:
        let(w, COMPLETION, state, UNKNOWN)
        let(w, LINK_HEAD, state, NONE)
        let(w, DONE_HEAD, state, NONE)
        let(w, CALLER_HEAD, state, NONE)
        let(w, LINKED, state, ZERO)
    if get(w, COMPLETION, state) == UNKNOWN:
        code = _completed(w, state)
        if code < 0:
            return code
    let(w, CLOSED_TO, 2 * number, state)
    let(w, CLOSED_TO, 2 * number + 1, live)
    return number


# ---------------------------------------------------------------- the summary


@kernel()
def call(w, e, q, g):  # type: ignore[no-untyped-def]
    """q enters a frame in e under g; False where the pool is full."""
    if not has_room(w, CALLERS):
        return False
    known = count_of(w, CALLERS)
    place = tail(w, CALLERS)
    write_int(place, 0, e)
    write_int(place, 1, q)
    write_int(place, 2, g)
    if put(w, CALLERS, THREE) == known:
        let(w, CALLER_NEXT, known, get(w, CALLER_HEAD, e))
        let(w, CALLER_HEAD, e, known)
    return True


@kernel()
def link(w, q, target):  # type: ignore[no-untyped-def]
    """q goes on to a state, which may be known; False where the pool is full."""
    if not has_room(w, LINKS):
        return False
    place = tail(w, LINKS)
    write_int(place, 0, q)
    write_int(place, 1, target)
    number = append(w, LINKS, TWO)
    let(w, LINK_NEXT, number, get(w, LINK_HEAD, target))
    let(w, LINK_HEAD, target, number)
    return True


@kernel()
def done(w, q, completion):  # type: ignore[no-untyped-def]
    """R can be completed from q on; False where the pool is full."""
    head = get(w, DONE_HEAD, q)
    i = head
    while i >= 0:  # few: sets of instances that end in the same frame
        if get(w, DONES, 2 * i + 1) == completion:
            return True
        i = get(w, DONE_NEXT, i)
    if not has_room(w, DONES):
        return False
    place = tail(w, DONES)
    write_int(place, 0, q)
    write_int(place, 1, completion)
    number = append(w, DONES, TWO)
    let(w, DONE_NEXT, number, head)
    let(w, DONE_HEAD, q, number)
    return True


@kernel()
def come_back(w, q, g, completion):  # type: ignore[no-untyped-def]
    """A frame that q entered under g completes: q goes on to where that returns; 0, or a negative code."""
    if not has_room(w, RETURNS) or not has_room(w, CLOSED):
        return -FULL
    known = count_of(w, RETURNS)
    place = tail(w, RETURNS)
    write_int(place, 0, g)
    write_int(place, 1, completion)
    number = put(w, RETURNS, TWO)
    if number == known:
        let(w, RETURN_TO, 2 * number, NONE)
    if get(w, RETURN_TO, 2 * number) < 0:
        place = tail(w, CLOSED)
        found = ZERO
        for i in range(begin_of(w, COMPLETIONS, completion), begin_of(w, COMPLETIONS, completion + 1)):
            instance = get(w, COMPLETIONS, i)
            for j in range(begin_of(w, SYMBOLS, g), begin_of(w, SYMBOLS, g + 1), 2):
                if get(w, SYMBOLS, j) == instance:
                    found = add_pair(place, found, get(w, SYMBOLS, j + 1), KEEP)
        closed = close(w, found)
        if closed < 0:
            return closed
        let(w, RETURN_TO, 2 * number, get(w, CLOSED_TO, 2 * closed))
        let(w, RETURN_TO, 2 * number + 1, max(get(w, CLOSED_TO, 2 * closed + 1), ZERO))
    target = get(w, RETURN_TO, 2 * number)
    if target and not link(w, q, target):
        return -FULL
    return 0


@kernel()
def _join_link(w, number):  # type: ignore[no-untyped-def]
    place = begin_of(w, LINKS, number)
    q = get(w, LINKS, place)
    i = get(w, DONE_HEAD, get(w, LINKS, place + 1))
    while i >= 0:
        if not done(w, q, get(w, DONES, begin_of(w, DONES, i) + 1)):
            return -FULL
        i = get(w, DONE_NEXT, i)
    return 0


@kernel()
def _join_done(w, number):  # type: ignore[no-untyped-def]
    place = begin_of(w, DONES, number)
    q = get(w, DONES, place)
    completion = get(w, DONES, place + 1)
    i = get(w, LINK_HEAD, q)
    while i >= 0:
        if not done(w, get(w, LINKS, begin_of(w, LINKS, i)), completion):
            return -FULL
        i = get(w, LINK_NEXT, i)
    i = get(w, CALLER_HEAD, q)
    while i >= 0:
        place = begin_of(w, CALLERS, i)
        code = come_back(w, get(w, CALLERS, place + 1), get(w, CALLERS, place + 2), completion)
        if code < 0:
            return code
        i = get(w, CALLER_NEXT, i)
    return 0


@kernel()
def _join_caller(w, number):  # type: ignore[no-untyped-def]
    place = begin_of(w, CALLERS, number)
    q = get(w, CALLERS, place + 1)
    g = get(w, CALLERS, place + 2)
    i = get(w, DONE_HEAD, get(w, CALLERS, place))
    while i >= 0:
        code = come_back(w, q, g, get(w, DONES, begin_of(w, DONES, i) + 1))
        if code < 0:
            return code
        i = get(w, DONE_NEXT, i)
    return 0


@kernel()
def join(w):  # type: ignore[no-untyped-def]
    """Join what is new in the relations until nothing is; 0, or a negative code."""
    while True:
        if read_long(w, LINKS_JOINED) < count_of(w, LINKS):
            field = LINKS_JOINED
            code = _join_link(w, read_long(w, LINKS_JOINED))
        elif read_long(w, DONES_JOINED) < count_of(w, DONES):
            field = DONES_JOINED
            code = _join_done(w, read_long(w, DONES_JOINED))
        elif read_long(w, CALLERS_JOINED) < count_of(w, CALLERS):
            field = CALLERS_JOINED
            code = _join_caller(w, read_long(w, CALLERS_JOINED))
        else:
            return 0
        if code < 0:
            return code
        write_long(w, field, read_long(w, field) + 1)
