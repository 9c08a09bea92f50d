"""Merge equivalent states of a partial automaton, drop those that accept nothing, number the rest by discovery.

Leaves out   bytes and characters: the columns are symbol classes of any kind (dfa.py, terminal.py).
Invariants   after, every state is reachable and can reach acceptance, no two are equivalent, and equal languages over
             equal columns give equal arrays. The empty language is one state without moves.
Arrays       table int32 [states, classes], -1 is dead; accepting bool [states]; state 0 is the start.
Cost         m log m for m moves that are not dead.
Source       Valmari 2012: states and moves are partitioned in turn, by each other's sets.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.memory import kernel

# Rows of a partition, int32 [·, elements]: the elements set by set, the place of each there, and its set; of each set
# where it begins and ends there, and how many of its elements, the first ones, are marked.
_ELEMENT, _PLACE, _SET, _BEGIN, _END, _MARKED = map(np.int64, range(6))
_ROWS = 6


def minimise_table(table: np.ndarray, accepting: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minimal trim automaton of the same language, numbered breadth first over its columns."""
    return _minimal(np.ascontiguousarray(table, np.int32), np.ascontiguousarray(accepting, bool))


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
def _minimal(table, accepting):  # type: ignore[no-untyped-def]
    """See `minimise_table`."""
    columns = table.shape[1]
    order, new = _discover(table, 0)
    found = len(order)
    most = 0
    for s in order:
        for k in range(columns):
            most += table[s, k] >= 0
    # The moves between states that are found, column by column, and the states that lead to one that accepts.
    source, target = np.empty(most, np.int32), np.empty(most, np.int32)
    begins = np.empty(columns + 1, np.int64)
    count = 0
    for k in range(columns):
        begins[k] = count
        for n in range(found):
            other = table[order[n], k]
            if other >= 0:
                source[count], target[count] = n, new[other]
                count += 1
    begins[columns] = count
    into, offset = _by_target(target, count, found)
    live = np.full(found, -1, np.int32)  # number among the live ones
    stack = np.empty(found, np.int32)
    top = states = 0
    for n in range(found):
        if accepting[order[n]]:
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
    if live[0] < 0:
        return np.full((1, columns), -1, np.int32), np.zeros(1, np.bool_)
    for n in range(found):
        if live[n] >= 0:
            live[n] = states
            order[states] = order[n]
            states += 1
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
        if accepting[order[n]]:
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

    out = np.full((block_count, columns), -1, np.int32)
    final = np.empty(block_count, np.bool_)
    number_of = np.full(block_count, -1, np.int32)
    queue = np.empty(block_count, np.int32)
    queue[0] = blocks[_SET, 0]
    number_of[queue[0]] = 0
    met = 1
    for at in range(block_count):
        s = order[blocks[_ELEMENT, blocks[_BEGIN, queue[at]]]]
        final[at] = accepting[s]
        for k in range(columns):
            other = table[s, k]
            if other < 0 or live[new[other]] < 0:
                continue
            block = blocks[_SET, live[new[other]]]
            if number_of[block] < 0:
                number_of[block] = met
                queue[met] = block
                met += 1
            out[at, k] = number_of[block]
    return out, final
