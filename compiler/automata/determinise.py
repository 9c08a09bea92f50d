"""The kernels of determinisation: sets of NFA states, their transitions, and what follows what, as arrays.

Takes the NFA of nfa.py as arrays, gives the rows of ops of every state that can be reached. Everything that has a
number (states, stack symbols, pushes, sets of completed instances, returns, and the three relations below) is an
interned sequence in a pool. A kernel that finds a pool full stops; the caller grows it and calls again, and what was
begun is done again: every step adds only what is not there yet.

The summary of a frame is three relations, joined as they grow:

    link (q, t)        q goes on to t in the same frame
    done (q, R)        R can be completed from q on, in the frame of q
    caller (e, q, g)   q enters a frame in e, under stack symbol g

    link (q, t), done (t, R)                 =>  done (q, R)
    caller (e, q, g), done (e, R)            =>  link (q, return of (g, R))

Leaves out   errors and what becomes of them, budgets, the finished automaton (pushdown.py).
Invariants   state 0 is the empty set; numbers follow discovery; states are expanded in the order of their numbers.
Arrays       by address in one table (`Workspace`): see runtime/memory.py. Fields are listed below.
Source       the summary edges of Reps, Horwitz, Sagiv 1995, kept backwards.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from toolc.runtime.memory import read_int, read_long, write_int, write_long

from .pool import Pool, intern_at, room

KEEP, ADD_ONE, SET_ZERO, SET_ONE = map(np.int64, range(4))
PUSH, POP = map(np.int64, (4, 5))
# How a kernel ends; errors are handed up as their negatives.
ALL_DONE, FULL, PAUSED, APART, GROUP, CLASH = map(np.int64, range(6))
NESTED, GOES_ON, ONE_BYTE = map(np.int64, range(3))  # what is wrong with a group
_BATCH = 512  # states expanded between two looks at the clock

# Addresses of int32 arrays. Row s of an `x` with offsets is x[x_offset[s]:x_offset[s + 1]].
INPUT = (
    "edge_offset",
    "edge",  # [·, 3]: mask, target, adds one
    "free_offset",
    "free",  # [·, 2]: target, enters a counted loop
    "guard_offset",
    "guard",  # [·, 3]: at least, threshold, target
    "call_offset",
    "call",  # [·, 4]: free instance, shallow instance (-1 none), state to return to, adds one
    "scope",  # [NFA states]
    "final",  # [NFA states]
    "core",  # [NFA states]: has moves, or is final
    "mask_offset",
    "mask_class",  # the classes of a mask, ascending
    "first_offset",
    "first",  # [·, 2]: class and target of the first moves of an instance, by class
    "first_bad",  # [instances]: has other first moves
)
GROWING = (
    "closed_to",  # [closed, 2]: state (-1 not known yet), action
    "return_to",  # [returns, 2]: state (-1 not known yet), action
    "completion",  # [states]: R that is complete in the state, -1 none, -2 not known yet
    "link_head",  # [states]: newest link to the state, done of it, caller of it, -1 none; …_next: the one before it
    "done_head",
    "caller_head",
    "link_next",
    "done_next",
    "caller_next",
    "row_end",  # [states]: place after the last op row
    "threshold_end",  # [states]: place after the last threshold
    "ops",  # [rows, classes]
    "threshold",
)
SCRATCH = (
    "marks",  # [NFA states]: the visit that came here last
    "actions",  # [NFA states]: the action then
    "stack",  # [NFA states]
    "pairs",  # [NFA states, 2]: states and actions
    "edges",  # [edges, 3]: mask, target, action
    "uses",  # [classes]: how many edges a class has
    "calls",  # [calls, 4]: as in the NFA, with an action or -1 in the last column
    "chosen",  # [calls, 4]: those on one class
    "why",  # what an error is about: a number of things, the things, further numbers
)
NUMBERS = (
    "classes",
    "rows",
    "thresholds",
    "expanded",
    "links_joined",
    "dones_joined",
    "callers_joined",
    "nfa_states",
    "visit",
)
POOLS = ("states", "closed", "symbols", "pushes", "completions", "returns", "links", "dones", "callers")
_PER_POOL = 7  # addresses of data, offset, table, count; sizes of data and table; the longest sequence

FIELDS = {name: number for number, name in enumerate(INPUT + GROWING + SCRATCH + NUMBERS)}
(
    EDGE_OFFSET, EDGE, FREE_OFFSET, FREE, GUARD_OFFSET, GUARD, CALL_OFFSET, CALL, SCOPE, FINAL, CORE, MASK_OFFSET,
    MASK_CLASS, FIRST_OFFSET, FIRST, FIRST_BAD,
    CLOSED_TO, RETURN_TO, COMPLETION, LINK_HEAD, DONE_HEAD, CALLER_HEAD, LINK_NEXT, DONE_NEXT, CALLER_NEXT, ROW_END,
    THRESHOLD_END, OPS, THRESHOLD,
    MARKS, ACTIONS, STACK, PAIRS, EDGES, USES, CALLS, CHOSEN, WHY,
    CLASSES, ROWS, THRESHOLDS, EXPANDED, LINKS_JOINED, DONES_JOINED, CALLERS_JOINED, NFA_STATES, VISIT,
) = map(np.int64, range(len(FIELDS)))  # fmt: skip
STATES, CLOSED, SYMBOLS, PUSHES, COMPLETIONS, RETURNS, LINKS, DONES, CALLERS = map(
    np.int64, range(len(FIELDS), len(FIELDS) + _PER_POOL * len(POOLS), _PER_POOL)
)
# A kernel is compiled once more for each literal that it is called with: calls are made with these.
NONE, ZERO, ONE, TWO, THREE, FOUR = map(np.int64, range(-1, 5))
NO, YES = np.bool_(False), np.bool_(True)
_UNKNOWN = np.int64(-2)


@njit(cache=True)
def _get(w, field, i):  # type: ignore[no-untyped-def]
    return read_int(read_long(w, field), i)


@njit(cache=True)
def _let(w, field, i, value):  # type: ignore[no-untyped-def]
    write_int(read_long(w, field), i, value)


# ---------------------------------------------------------------- pools


@njit(cache=True)
def _count(w, pool):  # type: ignore[no-untyped-def]
    """How many sequences a pool has."""
    return read_long(read_long(w, pool + 3), 0)


@njit(cache=True)
def _begin(w, pool, number):  # type: ignore[no-untyped-def]
    """Place of a sequence; that after the last one is where a candidate is written."""
    return read_long(read_long(w, pool + 1), number)


@njit(cache=True)
def _tail(w, pool):  # type: ignore[no-untyped-def]
    """The address at which a candidate for a pool is written."""
    return read_long(w, pool) + 4 * _begin(w, pool, _count(w, pool))


@njit(cache=True)
def _has_room(w, pool):  # type: ignore[no-untyped-def]
    """Whether one more sequence of any length fits; see `room`."""
    count = _count(w, pool)
    fits = read_long(w, pool + 4) - _begin(w, pool, count) >= read_long(w, pool + 6)
    return fits and 2 * count + 4 < read_long(w, pool + 5)


@njit(cache=True)
def _put(w, pool, size):  # type: ignore[no-untyped-def]
    """The number of the ``size`` numbers behind a pool."""
    return intern_at(
        read_long(w, pool),
        read_long(w, pool + 1),
        read_long(w, pool + 2),
        read_long(w, pool + 5),
        read_long(w, pool + 3),
        _begin(w, pool, _count(w, pool)) + size,
    )


@njit(cache=True)
def _add(place, count, a, b):  # type: ignore[no-untyped-def]
    """Insert (a, b) into the sorted set of ``count`` pairs at an address; the new number of pairs."""
    k = count
    while k > 0:
        before = read_int(place, 2 * k - 2)
        if before < a or (before == a and read_int(place, 2 * k - 1) < b):
            break
        if before == a and read_int(place, 2 * k - 1) == b:
            return count
        k -= 1
    for j in range(2 * count + 1, 2 * k + 1, -1):
        write_int(place, j, read_int(place, j - 2))
    write_int(place, 2 * k, a)
    write_int(place, 2 * k + 1, b)
    return count + 1


@njit(cache=True)
def _insert(place, count, a):  # type: ignore[no-untyped-def]
    """Insert a into the sorted set of ``count`` numbers at an address; the new number of numbers."""
    k = count
    while k > 0 and read_int(place, k - 1) > a:
        k -= 1
    if k > 0 and read_int(place, k - 1) == a:
        return count
    for j in range(count, k, -1):
        write_int(place, j, read_int(place, j - 1))
    write_int(place, k, a)
    return count + 1


@njit(cache=True)
def _sort(place, count):  # type: ignore[no-untyped-def]
    """Sort ``count`` numbers at an address (Shell 1959)."""
    gap = count >> 1
    while gap > 0:
        for i in range(gap, count):
            value = read_int(place, i)
            j = i
            while j >= gap and read_int(place, j - gap) > value:
                write_int(place, j, read_int(place, j - gap))
                j -= gap
            write_int(place, j, value)
        gap >>= 1


# ---------------------------------------------------------------- states


@njit(cache=True)
def _tell(w, pool, number, extra):  # type: ignore[no-untyped-def]
    """Write a sequence and a number down as what an error is about."""
    begin = _begin(w, pool, number)
    count = _begin(w, pool, number + 1) - begin
    _let(w, WHY, ZERO, count)
    for i in range(count):
        _let(w, WHY, 1 + i, _get(w, pool, begin + i))
    _let(w, WHY, 1 + count, extra)


@njit(cache=True)
def _apart(w, a, b):  # type: ignore[no-untyped-def]
    """Two NFA states disagree about the counter."""
    count = ZERO
    if _get(w, SCOPE, a) >= 0:
        count += 1
        _let(w, WHY, count, _get(w, SCOPE, a))
    if _get(w, SCOPE, b) >= 0:
        count += 1
        _let(w, WHY, count, _get(w, SCOPE, b))
    _let(w, WHY, ZERO, count)
    return -APART


@njit(cache=True)
def _completed(w, number):  # type: ignore[no-untyped-def]
    """Work out which instances are complete in a state; 0, or a negative code."""
    place = _tail(w, COMPLETIONS)
    begin, end = _begin(w, STATES, number), _begin(w, STATES, number + 1)
    finals = ZERO
    goes_on = False
    for i in range(begin, end):
        instance = _get(w, FINAL, _get(w, STATES, i))
        if instance < 0:
            goes_on = True
        else:
            finals = _insert(place, finals, instance)
    if finals and goes_on:
        _tell(w, STATES, number, GOES_ON)
        return -GROUP
    _let(w, COMPLETION, number, _put(w, COMPLETIONS, finals) if finals else NONE)
    return 0


@njit(cache=True)
def _close(w, count):  # type: ignore[no-untyped-def]
    """Close the moves behind the pool `closed`: ``count`` pairs of NFA state and action, sorted.

    Returns:
        place in `closed_to` of the state and of the action on the counter that is live in it (-1: none is); or a
        negative code.
    """
    if not _has_room(w, CLOSED) or not _has_room(w, STATES) or not _has_room(w, COMPLETIONS):
        return -FULL
    known = _count(w, CLOSED)
    number = _put(w, CLOSED, 2 * count)
    if number == known:
        _let(w, CLOSED_TO, 2 * number, NONE)
    if _get(w, CLOSED_TO, 2 * number) >= 0:
        return number
    visit = read_long(w, VISIT) + 1
    write_long(w, VISIT, visit)
    moves = read_long(w, CLOSED) + 4 * _begin(w, CLOSED, number)
    out = _tail(w, STATES)
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
            if read_int(actions, s) != action and _get(w, SCOPE, s) >= 0:
                return _apart(w, s, s)
            continue
        write_int(marks, s, visit)
        write_int(actions, s, action)
        write_int(stack, 0, s)
        top = 1
        while top:
            top -= 1
            s = read_int(stack, top)
            action = read_int(actions, s)
            if _get(w, CORE, s):
                write_int(out, found, s)
                found += 1
                if _get(w, SCOPE, s) >= 0:
                    if live >= 0 and live != action:
                        return _apart(w, s, live_in)
                    live = action
                    live_in = s
            for k in range(_get(w, FREE_OFFSET, s), _get(w, FREE_OFFSET, s + 1)):
                t = _get(w, FREE, 2 * k)
                then = SET_ZERO if _get(w, FREE, 2 * k + 1) else action
                if read_int(marks, t) == visit:
                    if read_int(actions, t) != then and _get(w, SCOPE, t) >= 0:
                        return _apart(w, t, t)
                    continue
                write_int(marks, t, visit)
                write_int(actions, t, then)
                write_int(stack, top, t)
                top += 1
    _sort(out, found)
    known = _count(w, STATES)
    state = _put(w, STATES, found)
    if state == known:
        _let(w, COMPLETION, state, _UNKNOWN)
        _let(w, LINK_HEAD, state, NONE)
        _let(w, DONE_HEAD, state, NONE)
        _let(w, CALLER_HEAD, state, NONE)
    if _get(w, COMPLETION, state) == -2:
        code = _completed(w, state)
        if code < 0:
            return code
    _let(w, CLOSED_TO, 2 * number, state)
    _let(w, CLOSED_TO, 2 * number + 1, live)
    return number


# ---------------------------------------------------------------- the summary


@njit(cache=True)
def _relate(w, pool, head, key, a, b, c, size):  # type: ignore[no-untyped-def]
    """Add (a, b) or (a, b, c) to a relation, listed under ``key``; False where the pool is full.

    ``head`` is the field of the heads; that of the next ones is three further on.
    """
    if not _has_room(w, pool):
        return False
    known = _count(w, pool)
    place = _tail(w, pool)
    write_int(place, 0, a)
    write_int(place, 1, b)
    if size == 3:
        write_int(place, 2, c)
    if _put(w, pool, size) == known:
        _let(w, head + THREE, known, _get(w, head, key))
        _let(w, head, key, known)
    return True


@njit(cache=True)
def _link(w, q, target):  # type: ignore[no-untyped-def]
    return _relate(w, LINKS, LINK_HEAD, target, q, target, ZERO, TWO)


@njit(cache=True)
def _done(w, q, completion):  # type: ignore[no-untyped-def]
    return _relate(w, DONES, DONE_HEAD, q, q, completion, ZERO, TWO)


@njit(cache=True)
def _come_back(w, q, g, completion):  # type: ignore[no-untyped-def]
    """A frame that q entered under g completes: q goes on to where that returns; 0, or a negative code."""
    if not _has_room(w, RETURNS) or not _has_room(w, CLOSED):
        return -FULL
    known = _count(w, RETURNS)
    place = _tail(w, RETURNS)
    write_int(place, 0, g)
    write_int(place, 1, completion)
    number = _put(w, RETURNS, TWO)
    if number == known:
        _let(w, RETURN_TO, 2 * number, NONE)
    if _get(w, RETURN_TO, 2 * number) < 0:
        place = _tail(w, CLOSED)
        found = ZERO
        for i in range(_begin(w, COMPLETIONS, completion), _begin(w, COMPLETIONS, completion + 1)):
            instance = _get(w, COMPLETIONS, i)
            for j in range(_begin(w, SYMBOLS, g), _begin(w, SYMBOLS, g + 1), 2):
                if _get(w, SYMBOLS, j) == instance:
                    found = _add(place, found, _get(w, SYMBOLS, j + 1), KEEP)
        closed = _close(w, found)
        if closed < 0:
            return closed
        _let(w, RETURN_TO, 2 * number, _get(w, CLOSED_TO, 2 * closed))
        _let(w, RETURN_TO, 2 * number + 1, max(_get(w, CLOSED_TO, 2 * closed + 1), ZERO))
    target = _get(w, RETURN_TO, 2 * number)
    if target and not _link(w, q, target):
        return -FULL
    return 0


@njit(cache=True)
def _join_link(w, number):  # type: ignore[no-untyped-def]
    place = _begin(w, LINKS, number)
    q = _get(w, LINKS, place)
    i = _get(w, DONE_HEAD, _get(w, LINKS, place + 1))
    while i >= 0:
        if not _done(w, q, _get(w, DONES, _begin(w, DONES, i) + 1)):
            return -FULL
        i = _get(w, DONE_NEXT, i)
    return 0


@njit(cache=True)
def _join_done(w, number):  # type: ignore[no-untyped-def]
    place = _begin(w, DONES, number)
    q = _get(w, DONES, place)
    completion = _get(w, DONES, place + 1)
    i = _get(w, LINK_HEAD, q)
    while i >= 0:
        if not _done(w, _get(w, LINKS, _begin(w, LINKS, i)), completion):
            return -FULL
        i = _get(w, LINK_NEXT, i)
    i = _get(w, CALLER_HEAD, q)
    while i >= 0:
        place = _begin(w, CALLERS, i)
        code = _come_back(w, _get(w, CALLERS, place + 1), _get(w, CALLERS, place + 2), completion)
        if code < 0:
            return code
        i = _get(w, CALLER_NEXT, i)
    return 0


@njit(cache=True)
def _join_caller(w, number):  # type: ignore[no-untyped-def]
    place = _begin(w, CALLERS, number)
    q = _get(w, CALLERS, place + 1)
    g = _get(w, CALLERS, place + 2)
    i = _get(w, DONE_HEAD, _get(w, CALLERS, place))
    while i >= 0:
        code = _come_back(w, q, g, _get(w, DONES, _begin(w, DONES, i) + 1))
        if code < 0:
            return code
        i = _get(w, DONE_NEXT, i)
    return 0


@njit(cache=True)
def _join(w):  # type: ignore[no-untyped-def]
    """Join what is new in the relations until nothing is; 0, or a negative code."""
    while True:
        if read_long(w, LINKS_JOINED) < _count(w, LINKS):
            field = LINKS_JOINED
            code = _join_link(w, read_long(w, LINKS_JOINED))
        elif read_long(w, DONES_JOINED) < _count(w, DONES):
            field = DONES_JOINED
            code = _join_done(w, read_long(w, DONES_JOINED))
        elif read_long(w, CALLERS_JOINED) < _count(w, CALLERS):
            field = CALLERS_JOINED
            code = _join_caller(w, read_long(w, CALLERS_JOINED))
        else:
            return 0
        if code < 0:
            return code
        write_long(w, field, read_long(w, field) + 1)


# ---------------------------------------------------------------- transitions


@njit(cache=True)
def _visit(w, s, visit, action, top):  # type: ignore[no-untyped-def]
    """Come to an NFA state: the new top of the stack, or a negative code where it was reached with another action."""
    if _get(w, MARKS, s) == visit:
        if _get(w, ACTIONS, s) != action and _get(w, SCOPE, s) >= 0:
            return _apart(w, s, s)
        return top
    _let(w, MARKS, s, visit)
    _let(w, ACTIONS, s, action)
    _let(w, STACK, top, s)
    return top + 1


@njit(cache=True)
def _open_moves(w, q, low, into):  # type: ignore[no-untyped-def]
    """Follow the guards from a state.

    Args:
        low: the counter; only the guards that are open there are followed. -1: all are, for their thresholds.
        into: place in `threshold` from which those are collected, ascending, where ``low`` is -1; else `pairs`
            receives the NFA states whose moves are open, and the actions on the counter on the way to them.

    Returns:
        how many were found, or a negative code.
    """
    visit = read_long(w, VISIT) + 1
    write_long(w, VISIT, visit)
    top = ZERO
    for i in range(_begin(w, STATES, q), _begin(w, STATES, q + 1)):
        top = _visit(w, _get(w, STATES, i), visit, KEEP, top)
    inner = top  # what lies below in the stack is of the state itself: its free moves were made before
    found = ZERO
    while top:
        top -= 1
        s = _get(w, STACK, top)
        action = _get(w, ACTIONS, s)
        if low >= 0:
            _let(w, PAIRS, 2 * found, s)
            _let(w, PAIRS, 2 * found + 1, action)
            found += 1
        outside = top >= inner
        inner = min(inner, top)
        for k in range(_get(w, GUARD_OFFSET, s), _get(w, GUARD_OFFSET, s + 1)):
            threshold = _get(w, GUARD, 3 * k + 1)
            if low < 0:
                found = _insert(read_long(w, THRESHOLD) + 4 * into, found, threshold)
                if _get(w, MARKS, _get(w, GUARD, 3 * k + 2)) != visit:
                    top = _visit(w, _get(w, GUARD, 3 * k + 2), visit, KEEP, top)
            elif ((low if action == KEEP else ZERO) >= threshold) == (_get(w, GUARD, 3 * k) != 0):
                top = _visit(w, _get(w, GUARD, 3 * k + 2), visit, action, top)
                if top < 0:
                    return top
        if outside:
            for k in range(_get(w, FREE_OFFSET, s), _get(w, FREE_OFFSET, s + 1)):
                t = _get(w, FREE, 2 * k)
                if low < 0:
                    if _get(w, MARKS, t) != visit:
                        top = _visit(w, t, visit, KEEP, top)
                else:
                    top = _visit(w, t, visit, SET_ZERO if _get(w, FREE, 2 * k + 1) else action, top)
                    if top < 0:
                        return top
    return found


@njit(cache=True)
def _stay(w, q, count, scoped):  # type: ignore[no-untyped-def]
    """The op of the moves behind the pool `closed`, or a negative code."""
    closed = _close(w, count)
    if closed < 0:
        return closed
    target = _get(w, CLOSED_TO, 2 * closed)
    action = _get(w, CLOSED_TO, 2 * closed + 1)
    if target == 0:
        return 0
    completion = _get(w, COMPLETION, target)
    if completion >= 0:
        return completion << 3 | POP if _done(w, q, completion) else -FULL
    if not _link(w, q, target):
        return -FULL
    return target << 3 | (action if action >= 0 else SET_ZERO if scoped else KEEP)


@njit(cache=True)
def _enter(w, count, k, deep):  # type: ignore[no-untyped-def]
    """The state of the frame that the ``count`` chosen calls begin on class k, or a negative code.

    ``deep``: only the shallow instances, else the free ones where there are.
    """
    if not _has_room(w, CLOSED):
        return -FULL
    place = _tail(w, CLOSED)
    found = ZERO
    for i in range(count):
        instance = _get(w, CHOSEN, 4 * i)
        if deep or instance < 0:
            instance = _get(w, CHOSEN, 4 * i + 1)
        if instance < 0:
            continue
        for j in range(_get(w, FIRST_OFFSET, instance), _get(w, FIRST_OFFSET, instance + 1)):
            if _get(w, FIRST, 2 * j) == k:
                found = _add(place, found, _get(w, FIRST, 2 * j + 1), KEEP)
    closed = _close(w, found)
    if closed < 0:
        return closed
    entry = _get(w, CLOSED_TO, 2 * closed)
    if _get(w, COMPLETION, entry) >= 0:
        _tell(w, STATES, entry, ONE_BYTE)
        return -GROUP
    return entry


@njit(cache=True)
def _push(w, q, count, k):  # type: ignore[no-untyped-def]
    """The number of the push of the ``count`` chosen calls on class k, or a negative code."""
    if not _has_room(w, SYMBOLS) or not _has_room(w, PUSHES):
        return -FULL
    action = NONE
    counted = NONE
    deep = NO
    place = _tail(w, SYMBOLS)
    found = ZERO
    for i in range(count):
        back = _get(w, CHOSEN, 4 * i + 2)
        then = _get(w, CHOSEN, 4 * i + THREE)
        if then >= 0:
            if action >= 0 and action != then:
                return _apart(w, counted, back)
            action = then
            counted = back
        for column in range(2):
            if _get(w, CHOSEN, 4 * i + column) >= 0:
                found = _add(place, found, _get(w, CHOSEN, 4 * i + column), back)
        deep = deep or _get(w, CHOSEN, 4 * i + 1) >= 0
    g = _put(w, SYMBOLS, 2 * found)
    entry = _enter(w, count, k, NO)
    if entry < 0:
        return entry
    shallow = entry
    if deep:
        shallow = _enter(w, count, k, YES)
        if shallow < 0:
            return shallow
    place = _tail(w, PUSHES)
    write_int(place, 0, g)
    write_int(place, 1, entry)
    write_int(place, 2, shallow)
    write_int(place, 3, action if action >= 0 else KEEP)
    number = _put(w, PUSHES, FOUR)
    if not _relate(w, CALLERS, CALLER_HEAD, entry, entry, q, g, THREE):
        return -FULL
    if not _relate(w, CALLERS, CALLER_HEAD, shallow, shallow, q, g, THREE):
        return -FULL
    return number


@njit(cache=True)
def _expand_shared(w, q, found, scoped, row):  # type: ignore[no-untyped-def]
    """The ops on classes that several of the ``found`` edges share: class by class; 0, or a negative code."""
    classes = read_long(w, CLASSES)
    for k in range(classes):
        if _get(w, USES, k) < 2:
            continue
        if not _has_room(w, CLOSED):
            return -FULL
        place = _tail(w, CLOSED)
        count = ZERO
        for i in range(found):
            mask = _get(w, EDGES, 3 * i)
            low = _get(w, MASK_OFFSET, mask)
            end = _get(w, MASK_OFFSET, mask + 1)
            high = end
            while low < high:
                middle = (low + high) >> 1
                if _get(w, MASK_CLASS, middle) < k:
                    low = middle + 1
                else:
                    high = middle
            if low < end and _get(w, MASK_CLASS, low) == k:
                count = _add(place, count, _get(w, EDGES, 3 * i + 1), _get(w, EDGES, 3 * i + 2))
        op = _stay(w, q, count, scoped)
        if op < 0:
            return op
        write_int(row, k, op)
    return 0


@njit(cache=True)
def _expand_calls(w, q, items, called, row):  # type: ignore[no-untyped-def]
    """The ops on classes that open groups; 0, or a negative code."""
    for i in range(called):
        instance = _get(w, CALLS, 4 * i)
        if instance < 0:
            instance = _get(w, CALLS, 4 * i + 1)
        if _get(w, FIRST_BAD, instance):
            _let(w, WHY, ZERO, ONE)
            _let(w, WHY, ONE, instance)
            _let(w, WHY, TWO, NESTED)
            return -GROUP
    for k in range(read_long(w, CLASSES)):
        count = ZERO
        for i in range(called):
            instance = _get(w, CALLS, 4 * i)
            if instance < 0:
                instance = _get(w, CALLS, 4 * i + 1)
            for j in range(_get(w, FIRST_OFFSET, instance), _get(w, FIRST_OFFSET, instance + 1)):
                if _get(w, FIRST, 2 * j) == k:
                    for column in range(4):
                        _let(w, CHOSEN, 4 * count + column, _get(w, CALLS, 4 * i + column))
                    count += 1
                    break
        if count == 0:
            continue
        if _get(w, USES, k):
            found = ZERO
            for i in range(count):
                for column in range(2):
                    if _get(w, CHOSEN, 4 * i + column) >= 0:
                        found += 1
                        _let(w, WHY, found, _get(w, CHOSEN, 4 * i + column))
            _let(w, WHY, ZERO, found)
            _let(w, WHY, found + 1, k)
            _let(w, WHY, found + 2, items)
            for i in range(items):
                _let(w, WHY, found + 3 + i, _get(w, PAIRS, 2 * i))
            return -CLASH
        number = _push(w, q, count, k)
        if number < 0:
            return number
        write_int(row, k, number << 3 | PUSH)
    return 0


@njit(cache=True)
def _expand_region(w, q, low, scoped, row):  # type: ignore[no-untyped-def]
    """Fill in the op row at an address for a counter of ``low``; 0, or a negative code."""
    items = _open_moves(w, q, low, ZERO)
    if items < 0:
        return items
    for k in range(read_long(w, CLASSES)):
        write_int(row, k, 0)
        _let(w, USES, k, ZERO)
    found = ZERO
    called = ZERO
    for i in range(items):
        s = _get(w, PAIRS, 2 * i)
        action = _get(w, PAIRS, 2 * i + 1)
        for k in range(_get(w, EDGE_OFFSET, s), _get(w, EDGE_OFFSET, s + 1)):
            mask = _get(w, EDGE, 3 * k)
            t = _get(w, EDGE, 3 * k + 1)
            _let(w, EDGES, 3 * found, mask)
            _let(w, EDGES, 3 * found + 1, t)
            _let(w, EDGES, 3 * found + 2, action + _get(w, EDGE, 3 * k + 2) if _get(w, SCOPE, t) >= 0 else KEEP)
            found += 1
            for j in range(_get(w, MASK_OFFSET, mask), _get(w, MASK_OFFSET, mask + 1)):
                _let(w, USES, _get(w, MASK_CLASS, j), _get(w, USES, _get(w, MASK_CLASS, j)) + 1)
        for k in range(_get(w, CALL_OFFSET, s), _get(w, CALL_OFFSET, s + 1)):
            back = _get(w, CALL, 4 * k + 2)
            _let(w, CALLS, 4 * called, _get(w, CALL, 4 * k))
            _let(w, CALLS, 4 * called + 1, _get(w, CALL, 4 * k + 1))
            _let(w, CALLS, 4 * called + 2, back)
            _let(
                w,
                CALLS,
                4 * called + 3,
                action + _get(w, CALL, 4 * k + 3) if _get(w, SCOPE, back) >= 0 else NONE,
            )
            called += 1
    shared = False
    for i in range(found):
        op = NONE
        mask = _get(w, EDGES, 3 * i)
        for j in range(_get(w, MASK_OFFSET, mask), _get(w, MASK_OFFSET, mask + 1)):
            k = _get(w, MASK_CLASS, j)
            if _get(w, USES, k) > 1:
                shared = True
                continue
            if op < 0:
                if not _has_room(w, CLOSED):
                    return -FULL
                place = _tail(w, CLOSED)
                write_int(place, 0, _get(w, EDGES, 3 * i + 1))
                write_int(place, 1, _get(w, EDGES, 3 * i + 2))
                op = _stay(w, q, ONE, scoped)
                if op < 0:
                    return op
            write_int(row, k, op)
    if shared:
        code = _expand_shared(w, q, found, scoped, row)
        if code < 0:
            return code
    return _expand_calls(w, q, items, called, row) if called else 0


@njit(cache=True)
def _expand(w, q):  # type: ignore[no-untyped-def]
    """Fill in the op rows of state q; 0, or a negative code."""
    guarded = False
    scoped = NO
    for i in range(_begin(w, STATES, q), _begin(w, STATES, q + 1)):
        s = _get(w, STATES, i)
        guarded = guarded or _get(w, GUARD_OFFSET, s + 1) > _get(w, GUARD_OFFSET, s)
        scoped = scoped or _get(w, SCOPE, s) >= 0
    classes = read_long(w, CLASSES)
    first = _get(w, THRESHOLD_END, q - ONE) if q else 0
    thresholds = ZERO
    if guarded:
        # As many thresholds as there are guards; see Workspace.grow.
        if read_long(w, THRESHOLDS) - first < _get(w, GUARD_OFFSET, read_long(w, NFA_STATES)) + 1:
            return -FULL
        thresholds = _open_moves(w, q, NONE, first)
    row = _get(w, ROW_END, q - ONE) if q else 0
    if read_long(w, ROWS) - row < thresholds + 1:
        return -FULL
    for region in range(thresholds + 1):
        low = _get(w, THRESHOLD, first + region - ONE) if region else 0
        code = _expand_region(w, q, low, scoped, read_long(w, OPS) + 4 * classes * (row + region))
        if code < 0:
            return code
    _let(w, ROW_END, q, row + thresholds + 1)
    _let(w, THRESHOLD_END, q, first + thresholds)
    return 0


@njit(cache=True)
def determinise(w, enter):  # type: ignore[no-untyped-def]
    """Expand states, a batch at most.

    Args:
        w: address of a `Workspace`'s table.
        enter: int32 [·]: NFA states whose closures are states from the start.

    Returns:
        ALL_DONE, FULL, PAUSED, or what is wrong.
    """
    if _count(w, CLOSED) == 0:
        code = _close(w, ZERO)  # the dead state
        if code < 0:
            return -code
    for s in enter:
        if not _has_room(w, CLOSED):
            return FULL
        place = _tail(w, CLOSED)
        write_int(place, 0, s)
        write_int(place, 1, KEEP)
        code = _close(w, ONE)
        if code < 0:
            return -code
    for _ in range(_BATCH):
        code = _join(w)
        if code < 0:
            return -code
        q = read_long(w, EXPANDED)
        if q == _count(w, STATES):
            return ALL_DONE
        code = _expand(w, q)
        if code < 0:
            return -code
        write_long(w, EXPANDED, q + 1)
    return PAUSED


# ---------------------------------------------------------------- the arrays


class Workspace:
    """The arrays behind the table of addresses, and their growth.

    Args:
        given: the arrays of INPUT, int32.
        classes: number of symbol classes.
    """

    def __init__(self, given: dict[str, np.ndarray], classes: int) -> None:
        states, guards, calls = given["scope"].size, len(given["guard"]), len(given["call"])
        self.classes = classes
        self.most_rows = guards + 2  # op rows of one state
        longest = states + 1
        lengths = (longest, 2 * longest, 4 * calls + 2, 4, longest, 2, 2, 2, 3)
        self.pools = {name: Pool(length) for name, length in zip(POOLS, lengths, strict=True)}
        self.arrays = {
            **{name: np.ascontiguousarray(array, np.int32) for name, array in given.items()},
            "marks": np.zeros(longest, np.int32),
            "actions": np.zeros(longest, np.int32),
            "stack": np.zeros(longest, np.int32),
            "pairs": np.zeros((longest, 2), np.int32),
            "edges": np.zeros((len(given["edge"]) + 1, 3), np.int32),
            "uses": np.zeros(classes, np.int32),
            "calls": np.zeros((calls + 1, 4), np.int32),
            "chosen": np.zeros((calls + 1, 4), np.int32),
            "why": np.zeros(longest + 2 * calls + 8, np.int32),
            "ops": np.zeros((self.most_rows + 1024, classes), np.int32),
            "threshold": np.zeros(2 * self.most_rows + 64, np.int32),
        }
        self.table = np.zeros(len(FIELDS) + _PER_POOL * len(POOLS), np.int64)
        self.table[CLASSES] = classes
        self.table[NFA_STATES] = states
        self._fit()

    @property
    def expanded(self) -> int:
        """How many states are finished."""
        return int(self.table[EXPANDED])

    @property
    def address(self) -> int:
        return int(self.table.ctypes.data)

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the finished states: ops int32 [rows, classes], ends of their rows, ends of their thresholds."""
        ends = self.arrays["row_end"][: self.expanded]
        return self.arrays["ops"][: ends[-1]], ends, self.arrays["threshold_end"][: self.expanded]

    def grow(self) -> None:
        """Make room in whatever is nearly full."""
        for pool in self.pools.values():
            if not room(*pool.arrays, pool.longest):
                pool.grow()
        last = self.expanded - 1
        for name, ends in (("ops", "row_end"), ("threshold", "threshold_end")):
            array = self.arrays[name]
            if len(array) - (self.arrays[ends][last] if last >= 0 else 0) < self.most_rows:
                more = np.zeros((len(array) + self.most_rows, *array.shape[1:]), np.int32)
                self.arrays[name] = np.concatenate([array, more])
        self._fit()

    def _fit(self) -> None:
        """Size the arrays beside the pools, a place for each number that a pool's table has room for; write it down."""
        for name, pool, columns in (
            ("closed_to", "closed", 2), ("return_to", "returns", 2), ("completion", "states", 1),
            ("link_head", "states", 1), ("done_head", "states", 1), ("caller_head", "states", 1),
            ("link_next", "links", 1), ("done_next", "dones", 1), ("caller_next", "callers", 1),
            ("row_end", "states", 1), ("threshold_end", "states", 1),
        ):  # fmt: skip
            size = columns * self.pools[pool].table.size // 2
            old = self.arrays.get(name, np.zeros(0, np.int32))
            if old.size < size:
                self.arrays[name] = np.concatenate([old, np.zeros(size - old.size, np.int32)])
        for name in INPUT + GROWING + SCRATCH:
            self.table[FIELDS[name]] = self.arrays[name].ctypes.data
        self.table[ROWS] = len(self.arrays["ops"])
        self.table[THRESHOLDS] = self.arrays["threshold"].size
        for number, one in enumerate(self.pools.values()):
            data, offset, table, count = one.arrays
            at = len(FIELDS) + _PER_POOL * number
            self.table[at : at + 4] = [x.ctypes.data for x in (data, offset, table, count)]
            self.table[at + 4 : at + _PER_POOL] = data.size, table.size, one.longest
