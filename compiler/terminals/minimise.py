"""Merge equivalent states of a partial automaton, drop those that accept nothing, number the rest by discovery.

Leaves out   bytes and characters: the columns are symbol classes of any kind (dfa.py, terminal.py).
Invariants   after, every state is reachable and can reach acceptance, no two are equivalent, and equal languages over
             equal columns give equal arrays. The empty language is one state without moves.
Arrays       table int32 [states, classes], -1 is dead; accepting bool [states]; state 0 is the start. Where a table
             would be nearly empty, int32 [moves, 3] has its moves, and only the equal states are found.
Cost         m log m for m moves that are not dead.
Source       Valmari 2012: states and moves are partitioned in turn, by each other's sets.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.jit.memory import kernel

# Rows of a partition, int32 [·, elements]: the elements set by set, the place of each there, and its set; of each set
# where it begins and ends there, and how many of its elements, the first ones, are marked.
_ELEMENT, _PLACE, _SET, _BEGIN, _END, _MARKED = map(np.int64, range(6))
_ROWS = 6


def minimise_table(table: np.ndarray, accepting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minimal trim automaton of the same language, numbered breadth first over its columns."""
    return _minimal(np.ascontiguousarray(table, np.int32), np.ascontiguousarray(accepting, bool))


def equal_states(moves: np.ndarray, accepting: np.ndarray) -> np.ndarray:
    """Which states of a sparse automaton have the same language.

    Args:
        moves: int32 [moves, 3], each a symbol, the state that it leaves and where it leads; at most one move of each
            symbol leaves a state.
        accepting: bool [states].

    Returns:
        int32 [states], the class of each state; -1 for those with the empty language.
    """
    symbols, source, target = moves[np.argsort(moves[:, 0], kind="stable")].T.copy()
    begins = np.append(np.flatnonzero(np.diff(symbols, prepend=-1)), len(moves))
    return _blocks(source, target, begins, accepting)[0]


@kernel()
def _discover(table, start):  # type: ignore[no-untyped-def]
    """States in the order of their discovery, and the place of each there; -1 for those not found, and at the end."""
    order = np.empty(len(table), np.int32)
    new = np.full(len(table) + 1, -1, np.int32)
    order[0] = start
    new[start] = 0
    count = 1
    at = 0
    while at < count:
        for target in table[order[at]]:
            if target >= 0 and new[target] < 0:
                new[target] = count
                order[count] = target
                count += 1
        at += 1
    return order[:count], new


@kernel()
def number(table, accepting, start):  # type: ignore[no-untyped-def]
    """The part reachable from ``start``, numbered breadth first over the columns."""
    order, new = _discover(table, start)
    out, final = np.empty((order.size, table.shape[1]), np.int32), np.empty(order.size, np.bool_)
    for n in range(order.size):
        final[n] = accepting[order[n]]
        for k in range(table.shape[1]):
            out[n, k] = new[table[order[n], k]]
    return out, final


@kernel()
def _mark(sets, touched, count, element):  # type: ignore[no-untyped-def]
    """Mark an element; how many sets, which ``touched`` receives, have marked ones."""
    own = sets[_SET, element]
    place, first = sets[_PLACE, element], sets[_BEGIN, own] + sets[_MARKED, own]
    other = sets[_ELEMENT, first]
    sets[_ELEMENT, place], sets[_PLACE, other] = other, place
    sets[_ELEMENT, first], sets[_PLACE, element] = element, first
    if sets[_MARKED, own] == 0:
        touched[count] = own
        count += 1
    sets[_MARKED, own] += 1
    return count


@kernel()
def _split(sets, touched, count, known):  # type: ignore[no-untyped-def]
    """Make of the smaller part of each touched set, the marked elements or the others, a set; how many there are."""
    for n in range(count):
        own = touched[n]
        begin, end = sets[_BEGIN, own], sets[_END, own]
        cut = begin + sets[_MARKED, own]
        sets[_MARKED, own] = 0
        if cut == end:
            continue
        if cut - begin <= end - cut:
            sets[_BEGIN, known], sets[_END, known], sets[_BEGIN, own] = begin, cut, cut
        else:
            sets[_BEGIN, known], sets[_END, known], sets[_END, own] = cut, end, cut
        sets[_MARKED, known] = 0
        for i in range(sets[_BEGIN, known], sets[_END, known]):
            sets[_SET, sets[_ELEMENT, i]] = known
        known += 1
    return known


@kernel()
def _whole(count):  # type: ignore[no-untyped-def]
    """One set of so many elements."""
    sets = np.empty((_ROWS, count + 1), np.int32)
    for n in range(count):
        sets[_ELEMENT, n], sets[_PLACE, n], sets[_SET, n] = n, n, 0
    sets[_BEGIN, 0], sets[_END, 0], sets[_MARKED, 0] = 0, count, 0
    return sets


@kernel()
def _by_target(target, count, states):  # type: ignore[no-untyped-def]
    """The moves to each state, one after the other, and where those of each begin, int32 [states + 1]."""
    offset = np.zeros(states + 1, np.int32)
    for n in range(count):
        offset[target[n]] += 1
    for s in range(states):
        offset[s + 1] += offset[s]
    into = np.empty(count, np.int32)
    for n in range(count):
        offset[target[n]] -= 1
        into[offset[target[n]]] = n
    return into, offset


@kernel()
def _blocks(source, target, begins, accepting):  # type: ignore[no-untyped-def]
    """Classes of states, by the moves of each symbol, symbol by symbol; and how many there are.

    ``source`` and ``target``, int32 [moves], and ``begins``, int64 [symbols + 1], where the moves of each symbol begin,
    are overwritten.
    """
    found, columns = len(accepting), len(begins) - 1
    into, offset = _by_target(target, len(target), found)
    live = np.full(found, -1, np.int32)  # number among those that lead to one that accepts
    stack = np.empty(found, np.int32)
    top = 0
    for n in range(found):
        if accepting[n]:
            live[n] = 0
            stack[top] = n
            top += 1
    while top:
        top -= 1
        n = stack[top]
        for i in range(offset[n], offset[n + 1]):
            if live[source[into[i]]] < 0:
                live[source[into[i]]] = 0
                stack[top] = source[into[i]]
                top += 1
    states = 0
    for n in range(found):
        if live[n] >= 0:
            live[n] = states
            stack[states] = n
            states += 1
    if not states:
        return live, 0
    kept = 0
    for k in range(columns):
        begin = begins[k]
        begins[k] = kept
        for i in range(begin, begins[k + 1]):
            if live[target[i]] >= 0:
                source[kept], target[kept] = live[source[i]], live[target[i]]
                kept += 1
    begins[columns] = kept
    if states < found:
        into, offset = _by_target(target, kept, states)

    blocks, moves = _whole(states), _whole(kept)
    touched = np.empty(max(states, kept) + 1, np.int32)
    count = 0
    for n in range(states):
        if accepting[stack[n]]:
            count = _mark(blocks, touched, count, n)
    block_count = _split(blocks, touched, count, 1)
    move_count = 0
    for k in range(columns):
        if begins[k] < begins[k + 1]:
            moves[_BEGIN, move_count], moves[_END, move_count] = begins[k], begins[k + 1]
            moves[_MARKED, move_count] = 0
            for i in range(begins[k], begins[k + 1]):
                moves[_SET, i] = move_count
            move_count += 1
    block, move = 1, 0
    while move < move_count:
        count = 0
        for i in range(moves[_BEGIN, move], moves[_END, move]):
            count = _mark(blocks, touched, count, source[moves[_ELEMENT, i]])
        block_count = _split(blocks, touched, count, block_count)
        move += 1
        while block < block_count:
            count = 0
            for i in range(blocks[_BEGIN, block], blocks[_END, block]):
                n = blocks[_ELEMENT, i]
                for j in range(offset[n], offset[n + 1]):
                    count = _mark(moves, touched, count, into[j])
            move_count = _split(moves, touched, count, move_count)
            block += 1
    for n in range(states):
        live[stack[n]] = blocks[_SET, n]
    return live, block_count


@kernel()
def _minimal(table, accepting):  # type: ignore[no-untyped-def]
    """See `minimise_table`."""
    columns = table.shape[1]
    order, new = _discover(table, 0)
    found = len(order)
    count = 0
    for s in order:
        for k in range(columns):
            count += table[s, k] >= 0
    # The moves between states that are found, column by column.
    source, target = np.empty(count, np.int32), np.empty(count, np.int32)
    begins = np.empty(columns + 1, np.int64)
    ends = np.empty(found, np.bool_)
    count = 0
    for k in range(columns):
        begins[k] = count
        for n in range(found):
            other = table[order[n], k]
            if other >= 0:
                source[count], target[count] = n, new[other]
                count += 1
    begins[columns] = count
    for n in range(found):
        ends[n] = accepting[order[n]]
    block_of, block_count = _blocks(source, target, begins, ends)
    if block_of[0] < 0:
        return np.full((1, columns), -1, np.int32), np.zeros(1, np.bool_)

    one_of = np.empty(block_count, np.int32)
    for n in range(found):
        if block_of[n] >= 0:
            one_of[block_of[n]] = n
    out = np.full((block_count, columns), -1, np.int32)
    final = np.empty(block_count, np.bool_)
    number_of = np.full(block_count, -1, np.int32)
    queue = np.empty(block_count, np.int32)
    queue[0] = block_of[0]
    number_of[queue[0]] = 0
    met = 1
    for at in range(block_count):
        n = one_of[queue[at]]
        final[at] = ends[n]
        for k in range(columns):
            other = table[order[n], k]
            if other < 0 or block_of[new[other]] < 0:
                continue
            block = block_of[new[other]]
            if number_of[block] < 0:
                number_of[block] = met
                queue[met] = block
                met += 1
            out[at, k] = number_of[block]
    return out, final
