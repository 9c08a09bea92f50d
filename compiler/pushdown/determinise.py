"""The kernels of determinisation: the transitions of every state that can be reached, one after the other.

Takes the NFA of nfa.py as arrays, gives the rows of ops of every state.

Leaves out   closures and the summary (closures.py), the arrays (workspace.py), errors and what becomes of them,
             budgets, the finished automaton (pushdown.py).
Invariants   state 0 is the empty set; numbers follow discovery; states are expanded in the order of their numbers.
"""

from __future__ import annotations

from toolc.runtime.format.ops import KIND_BITS
from toolc.runtime.format.tables import MAX_BREAKS
from toolc.runtime.jit.memory import kernel, read_int, read_long, write_int, write_long

from ..terminals.workspace import (
    ACTIONS,
    ALL_DONE,
    BEGUN,
    BOUNDS,
    CALL,
    CALL_OFFSET,
    CALLS,
    CHOSEN,
    CLASH,
    CLASSES,
    CLOSED,
    CLOSED_TO,
    COMPLETION,
    EDGE,
    EDGE_OFFSET,
    EDGES,
    EXPANDED,
    FIRST,
    FIRST_BAD,
    FIRST_OFFSET,
    FIRSTS,
    FOUR,
    FREE,
    FREE_OFFSET,
    FULL,
    GROUP,
    GUARD,
    GUARD_OFFSET,
    KEEP,
    LINKED,
    MARKS,
    MASK_CLASS,
    MASK_OFFSET,
    NESTED,
    NFA_STATES,
    NO,
    NONE,
    ONE,
    ONE_BYTE,
    OPS,
    PAIRS,
    PAUSED,
    POP,
    PUSH,
    PUSHES,
    ROW_END,
    ROWS,
    SCOPE,
    SET_ZERO,
    SINGLE,
    STACK,
    STATES,
    SYMBOLS,
    THREE,
    THRESHOLD,
    THRESHOLD_END,
    THRESHOLDS,
    TWO,
    USERS,
    USES,
    VISIT,
    WHY,
    YES,
    ZERO,
    add_pair,
    begin_of,
    count_of,
    get,
    has_room,
    insert,
    let,
    put,
    tail,
)
from .closures import apart, call, close, done, join, link, tell

_BATCH = 512  # states expanded between two looks at the clock, fewer where they have many moves:
_WORK = 1 << 22  # squares of the numbers of their moves, which may come in no order, and are then put where they belong


@kernel()
def _visit(w, s, visit, action, top):  # type: ignore[no-untyped-def]
    """Come to an NFA state: the new top of the stack, or a negative code where it was reached with another action."""
    if get(w, MARKS, s) == visit:
        if get(w, ACTIONS, s) != action and get(w, SCOPE, s) >= 0:
            return apart(w, s, s)
        return top
    let(w, MARKS, s, visit)
    let(w, ACTIONS, s, action)
    let(w, STACK, top, s)
    return top + 1


@kernel()
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
    for i in range(begin_of(w, STATES, q), begin_of(w, STATES, q + 1)):
        top = _visit(w, get(w, STATES, i), visit, KEEP, top)
    inner = top  # what lies below in the stack is of the state itself: its free moves were made before
    found = ZERO
    while top:
        top -= 1
        s = get(w, STACK, top)
        action = get(w, ACTIONS, s)
        if low >= 0:
            let(w, PAIRS, 2 * found, s)
            let(w, PAIRS, 2 * found + 1, action)
            found += 1
        outside = top >= inner
        inner = min(inner, top)
        for k in range(get(w, GUARD_OFFSET, s), get(w, GUARD_OFFSET, s + 1)):
            threshold = get(w, GUARD, 3 * k + 1)
            if low < 0:
                found = insert(read_long(w, THRESHOLD) + 4 * into, found, threshold)
                if get(w, MARKS, get(w, GUARD, 3 * k + 2)) != visit:
                    top = _visit(w, get(w, GUARD, 3 * k + 2), visit, KEEP, top)
            elif ((low if action == KEEP else ZERO) >= threshold) == (get(w, GUARD, 3 * k) != 0):
                top = _visit(w, get(w, GUARD, 3 * k + 2), visit, action, top)
                if top < 0:
                    return top
        if outside:
            for k in range(get(w, FREE_OFFSET, s), get(w, FREE_OFFSET, s + 1)):
                t = get(w, FREE, 2 * k)
                if low < 0:
                    if get(w, MARKS, t) != visit:
                        top = _visit(w, t, visit, KEEP, top)
                else:
                    top = _visit(w, t, visit, SET_ZERO if get(w, FREE, 2 * k + 1) else action, top)
                    if top < 0:
                        return top
    return found


@kernel()
def _stay(w, q, count, scoped):  # type: ignore[no-untyped-def]
    """The op of the moves behind the pool `closed`, or a negative code."""
    return _go(w, q, close(w, count), scoped)


@kernel()
def _stay_on(w, q, t, action, scoped):  # type: ignore[no-untyped-def]
    """The same for the one move to an NFA state."""
    closed = get(w, SINGLE, 4 * t + action)
    if closed < 0:
        if not has_room(w, CLOSED):
            return -FULL
        place = tail(w, CLOSED)
        write_int(place, 0, t)
        write_int(place, 1, action)
        closed = close(w, ONE)
        if closed >= 0:
            let(w, SINGLE, 4 * t + action, closed)
    return _go(w, q, closed, scoped)


@kernel()
def _go(w, q, closed, scoped):  # type: ignore[no-untyped-def]
    """The op of a place in `closed_to`; negative codes are handed on."""
    if closed < 0:
        return closed
    target = get(w, CLOSED_TO, 2 * closed)
    action = get(w, CLOSED_TO, 2 * closed + 1)
    if target == 0:
        return 0
    completion = get(w, COMPLETION, target)
    if completion >= 0:
        return completion << KIND_BITS | POP if done(w, q, completion) else -FULL
    if get(w, LINKED, target) != q + 1:
        if not link(w, q, target):
            return -FULL
        let(w, LINKED, target, q + 1)
    return target << KIND_BITS | (action if action >= 0 else SET_ZERO if scoped else KEEP)


@kernel()
def _enter(w, count, k, deep):  # type: ignore[no-untyped-def]
    """The state of the frame that the ``count`` chosen calls begin on class k, or a negative code.

    ``deep``: only the shallow instances, else the free ones where there are.
    """
    if not has_room(w, CLOSED):
        return -FULL
    place = tail(w, CLOSED)
    found = ZERO
    for i in range(count):
        instance = get(w, CHOSEN, 4 * i)
        if deep or instance < 0:
            instance = get(w, CHOSEN, 4 * i + 1)
        if instance < 0:
            continue
        for j in range(get(w, FIRST_OFFSET, instance), get(w, FIRST_OFFSET, instance + 1)):
            if get(w, FIRST, 2 * j) == k:
                found = add_pair(place, found, get(w, FIRST, 2 * j + 1), KEEP)
    closed = close(w, found)
    if closed < 0:
        return closed
    entry = get(w, CLOSED_TO, 2 * closed)
    if get(w, COMPLETION, entry) >= 0:
        tell(w, STATES, entry, ONE_BYTE)
        return -GROUP
    return entry


@kernel()
def _push(w, q, count, k):  # type: ignore[no-untyped-def]
    """The number of the push of the ``count`` chosen calls on class k, or a negative code."""
    if not has_room(w, SYMBOLS) or not has_room(w, PUSHES):
        return -FULL
    action = NONE
    counted = NONE
    deep = NO
    place = tail(w, SYMBOLS)
    found = ZERO
    for i in range(count):
        back = get(w, CHOSEN, 4 * i + 2)
        then = get(w, CHOSEN, 4 * i + THREE)
        if then >= 0:
            if action >= 0 and action != then:
                return apart(w, counted, back)
            action = then
            counted = back
        for column in range(2):
            if get(w, CHOSEN, 4 * i + column) >= 0:
                found = add_pair(place, found, get(w, CHOSEN, 4 * i + column), back)
        deep = deep or get(w, CHOSEN, 4 * i + 1) >= 0
    g = put(w, SYMBOLS, 2 * found)
    entry = _enter(w, count, k, NO)
    if entry < 0:
        return entry
    shallow = entry
    if deep:
        shallow = _enter(w, count, k, YES)
        if shallow < 0:
            return shallow
    place = tail(w, PUSHES)
    write_int(place, 0, g)
    write_int(place, 1, entry)
    write_int(place, 2, shallow)
    write_int(place, 3, action if action >= 0 else KEEP)
    number = put(w, PUSHES, FOUR)
    return number if call(w, entry, q, g) and call(w, shallow, q, g) else -FULL


@kernel()
def _expand_shared(w, q, total, scoped, row):  # type: ignore[no-untyped-def]
    """The ops on classes that several of so many edges share, class by class; 0, or a negative code.

    Classes that the same edges share have the same op.
    """
    words = (total + 63) >> 6  # that a bit set in `users` has
    users, firsts, edges = read_long(w, USERS), read_long(w, FIRSTS), read_long(w, EDGES)
    rises = read_int(edges, 1) < read_int(edges, 3 * total - 2)  # so that pairs mostly come in order
    distinct = 0
    for k in range(read_long(w, CLASSES)):
        if get(w, USES, k) < 2:
            continue
        known = -1
        for i in range(distinct):
            other = read_int(firsts, i)
            same = 0
            while same < words and read_long(users, other * words + same) == read_long(users, k * words + same):
                same += 1
            if same == words:
                known = other
                break
        if known >= 0:
            write_int(row, k, read_int(row, known))
            continue
        if not has_room(w, CLOSED):
            return -FULL
        place = tail(w, CLOSED)
        count = ZERO
        for step in range(words):
            word = step if rises else words - 1 - step
            bits = read_long(users, k * words + word)
            for n in range(64 if bits else 0):
                n = n if rises else 63 - n
                if bits >> n & 1:
                    i = 64 * word + n
                    count = add_pair(place, count, read_int(edges, 3 * i + 1), read_int(edges, 3 * i + 2))
        op = _stay(w, q, count, scoped)
        if op < 0:
            return op
        write_int(row, k, op)
        write_int(firsts, distinct, k)
        distinct += 1
    return 0


@kernel()
def _expand_calls(w, q, items, called, row):  # type: ignore[no-untyped-def]
    """The ops on classes that open groups; 0, or a negative code."""
    for i in range(called):
        instance = get(w, CALLS, 4 * i)
        if instance < 0:
            instance = get(w, CALLS, 4 * i + 1)
        if get(w, FIRST_BAD, instance):
            let(w, WHY, ZERO, ONE)
            let(w, WHY, ONE, instance)
            let(w, WHY, TWO, NESTED)
            return -GROUP
    for k in range(read_long(w, CLASSES)):
        count = ZERO
        for i in range(called):
            instance = get(w, CALLS, 4 * i)
            if instance < 0:
                instance = get(w, CALLS, 4 * i + 1)
            for j in range(get(w, FIRST_OFFSET, instance), get(w, FIRST_OFFSET, instance + 1)):
                if get(w, FIRST, 2 * j) == k:
                    for column in range(4):
                        let(w, CHOSEN, 4 * count + column, get(w, CALLS, 4 * i + column))
                    count += 1
                    break
        if count == 0:
            continue
        if get(w, USES, k):
            found = ZERO
            for i in range(count):
                for column in range(2):
                    if get(w, CHOSEN, 4 * i + column) >= 0:
                        found += 1
                        let(w, WHY, found, get(w, CHOSEN, 4 * i + column))
            let(w, WHY, ZERO, found)
            let(w, WHY, found + 1, k)
            let(w, WHY, found + 2, items)
            for i in range(items):
                let(w, WHY, found + 3 + i, get(w, PAIRS, 2 * i))
            return -CLASH
        number = _push(w, q, count, k)
        if number < 0:
            return number
        write_int(row, k, number << KIND_BITS | PUSH)
    return 0


@kernel()
def _expand_region(w, q, low, scoped, row):  # type: ignore[no-untyped-def]
    """Fill in the op row at an address for a counter of ``low``; 0, or a negative code."""
    items = _open_moves(w, q, low, ZERO)
    if items < 0:
        return items
    # Addresses that stay: the compiler cannot know that nothing written here changes them.
    uses, pairs, edges, edge = read_long(w, USES), read_long(w, PAIRS), read_long(w, EDGES), read_long(w, EDGE)
    mask_offset, mask_class, scope = read_long(w, MASK_OFFSET), read_long(w, MASK_CLASS), read_long(w, SCOPE)
    for k in range(read_long(w, CLASSES)):
        write_int(row, k, 0)
        write_int(uses, k, 0)
    found = ZERO
    called = ZERO
    for i in range(items):
        s = read_int(pairs, 2 * i)
        action = read_int(pairs, 2 * i + 1)
        for k in range(get(w, EDGE_OFFSET, s), get(w, EDGE_OFFSET, s + 1)):
            mask = read_int(edge, 3 * k)
            t = read_int(edge, 3 * k + 1)
            write_int(edges, 3 * found, mask)
            write_int(edges, 3 * found + 1, t)
            write_int(edges, 3 * found + 2, action + read_int(edge, 3 * k + 2) if read_int(scope, t) >= 0 else KEEP)
            found += 1
            for j in range(read_int(mask_offset, mask), read_int(mask_offset, mask + 1)):
                c = read_int(mask_class, j)
                write_int(uses, c, read_int(uses, c) + 1)
        for k in range(get(w, CALL_OFFSET, s), get(w, CALL_OFFSET, s + 1)):
            back = get(w, CALL, 4 * k + 2)
            let(w, CALLS, 4 * called, get(w, CALL, 4 * k))
            let(w, CALLS, 4 * called + 1, get(w, CALL, 4 * k + 1))
            let(w, CALLS, 4 * called + 2, back)
            let(w, CALLS, 4 * called + 3, action + get(w, CALL, 4 * k + 3) if read_int(scope, back) >= 0 else NONE)
            called += 1
    shared = False
    words = (found + 63) >> 6
    users = read_long(w, USERS)
    for i in range(words * read_long(w, CLASSES)):
        write_long(users, i, 0)
    for i in range(found):
        op = NONE
        mask = read_int(edges, 3 * i)
        for j in range(read_int(mask_offset, mask), read_int(mask_offset, mask + 1)):
            k = read_int(mask_class, j)
            if read_int(uses, k) > 1:
                shared = True
                at = k * words + (i >> 6)
                write_long(users, at, read_long(users, at) | 1 << (i & 63))
                continue
            if op < 0:
                op = _stay_on(w, q, read_int(edges, 3 * i + 1), read_int(edges, 3 * i + 2), scoped)
                if op < 0:
                    return op
            write_int(row, k, op)
    if shared:
        code = _expand_shared(w, q, found, scoped, row)
        if code < 0:
            return code
    return _expand_calls(w, q, items, called, row) if called else 0


@kernel()
def _expand(w, q):  # type: ignore[no-untyped-def]
    """Fill in the op rows of state q; 0, or a negative code."""
    guarded = False
    scoped = NO
    for i in range(begin_of(w, STATES, q), begin_of(w, STATES, q + 1)):
        s = get(w, STATES, i)
        guarded = guarded or get(w, GUARD_OFFSET, s + 1) > get(w, GUARD_OFFSET, s)
        scoped = scoped or get(w, SCOPE, s) >= 0
    classes = read_long(w, CLASSES)
    first = get(w, THRESHOLD_END, q - ONE) if q else 0
    thresholds = ZERO
    if guarded:
        # As many thresholds as there are guards; see Workspace.grow.
        if read_long(w, THRESHOLDS) - first < get(w, GUARD_OFFSET, read_long(w, NFA_STATES)) + 1:
            return -FULL
        thresholds = _open_moves(w, q, NONE, first)
        if thresholds > MAX_BREAKS:
            tell(w, STATES, q, thresholds)
            return -BOUNDS
    row = get(w, ROW_END, q - ONE) if q else 0
    if read_long(w, ROWS) - row < thresholds + 1:
        return -FULL
    for region in range(thresholds + 1):
        low = get(w, THRESHOLD, first + region - ONE) if region else 0
        code = _expand_region(w, q, low, scoped, read_long(w, OPS) + 4 * classes * (row + region))
        if code < 0:
            return code
    let(w, ROW_END, q, row + thresholds + 1)
    let(w, THRESHOLD_END, q, first + thresholds)
    return 0


@kernel()
def determinise(w, enter):  # type: ignore[no-untyped-def]
    """Expand states, a batch at most.

    Args:
        w: address of a `Workspace`'s table.
        enter: int32 [·]: NFA states whose closures are states from the start.

    Returns:
        ALL_DONE, FULL, PAUSED, or what is wrong.
    """
    if count_of(w, CLOSED) == 0:
        code = close(w, ZERO)  # the dead state
        if code < 0:
            return -code
    for s in enter:
        if not has_room(w, CLOSED):
            return FULL
        place = tail(w, CLOSED)
        write_int(place, 0, s)
        write_int(place, 1, KEEP)
        code = close(w, ONE)
        if code < 0:
            return -code
    work = ZERO
    for _ in range(_BATCH):
        q = read_long(w, EXPANDED)
        if read_long(w, BEGUN) == q:  # else it found a pool full; joining now would number states in another order
            code = join(w)
            if code < 0:
                return -code
        write_long(w, BEGUN, q + 1)
        if q == count_of(w, STATES):
            return ALL_DONE
        code = _expand(w, q)
        if code < 0:
            return -code
        write_long(w, EXPANDED, q + 1)
        moves = ZERO
        for i in range(begin_of(w, STATES, q), begin_of(w, STATES, q + 1)):
            s = get(w, STATES, i)
            moves += 1 + get(w, EDGE_OFFSET, s + 1) - get(w, EDGE_OFFSET, s)
        work += moves * moves
        if work > _WORK:
            break
    return PAUSED
