"""Cut languages into disjoint ones, of which each is a union.

Leaves out   which languages are cut (../pushdown/group_factoring.py), the automata themselves (dfa.py).
Invariants   the parts come by the discovery of the states that accept them, breadth first; none is empty.
Arrays       The states of all automata are numbered on. A state of the product is the sequence of those that are not
             dead, ascending, as there is one of each automaton at most; most are short, as few texts begin alike.
Source       product construction.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolc.runtime.jit.memory import kernel

from .dfa import Dfa, make_dfa
from .offsets import offsets
from .pool import Pool, intern, room

_SOME = 256  # states that a product is expected to have


def parts(dfas: Sequence[Dfa], limit: int) -> list[tuple[Dfa, tuple[int, ...]]] | None:
    """Disjoint languages of which each of these is a union, with the numbers of those that each is part of.

    Returns:
        the parts that are not empty; None if their product has more than ``limit`` states.
    """
    by_byte = np.stack([d.class_of_byte for d in dfas], axis=1).astype(np.int32)
    columns, first, classes = np.unique(by_byte, axis=0, return_index=True, return_inverse=True)
    begin = offsets((d.size for d in dfas), np.int32)
    next_ = np.concatenate([d.next_state[:, column] for d, column in zip(dfas, columns.T, strict=True)])
    next_ += np.where(next_ >= 0, np.repeat(begin[:-1], np.diff(begin))[:, None], np.int32(0))
    order = np.argsort(first)  # columns by their first bytes, which states are discovered by
    next_ = np.ascontiguousarray(next_[:, order])
    products = Pool(len(dfas), _SOME, 8)
    rows = np.empty((limit, len(order)), np.int32)
    at = _product(next_, begin[:-1], 0, limit, *products.arrays, len(dfas), rows)
    while at < len(products) <= limit:
        products.grow()
        at = _product(next_, begin[:-1], at, limit, *products.arrays, len(dfas), rows)
    if len(products) > limit:
        return None
    rows = rows[:at]
    accepting = np.concatenate([d.accepting for d in dfas])
    owner = np.repeat(np.arange(len(dfas)), np.diff(begin))
    holders: dict[tuple[int, ...], list[int]] = {}
    for state in range(at):
        alive = products[state]
        which = tuple(owner[alive[accepting[alive]]].tolist())
        if which:
            holders.setdefault(which, []).append(state)
    before_offset, before = _predecessors(rows)
    place = np.empty(len(order), np.intp)
    place[order] = np.arange(len(order))
    classes = place[classes.reshape(-1)]
    out = []
    for which, states in holders.items():
        kept = _leading_to(np.array(states, np.int32), before_offset, before)
        new = np.full(at + 1, -1, np.int32)
        new[kept] = np.arange(kept.size)
        out.append((make_dfa(classes, new[rows[kept]], np.isin(kept, states)), which))
    return out


@kernel()
def _product(next_, start, at, limit, data, offset, slots, count, longest, rows):  # type: ignore[no-untyped-def]
    """Expand the states of the product from ``at`` on, until there is no more, the limit is passed, or the pool full.

    Args:
        next_: int32 [states of all, columns], -1 is dead;  start: int32 [automata].
        data … count: the pool of the states of the product; ``longest`` is that of its sequences.
        rows: int32 [limit, columns], receives the number of the state behind each column, -1 is dead.

    Returns:
        the first state that is not expanded.
    """
    if count[0] == 0:
        for i in range(start.size):
            data[i] = start[i]
        intern(data, offset, slots, count, np.int64(start.size))
    while at < count[0] and count[0] <= limit:
        begin, end = offset[at], offset[at + 1]
        for k in range(next_.shape[1]):
            if not room(data, offset, slots, count, longest):
                return at
            tail = offset[count[0]]
            for i in range(begin, end):
                target = next_[data[i], k]
                if target >= 0:
                    data[tail] = target
                    tail += 1
            rows[at, k] = intern(data, offset, slots, count, tail) if tail > offset[count[0]] else -1
        at += 1
    return at


@kernel()
def _predecessors(rows):  # type: ignore[no-untyped-def]
    """The states before each: offsets int64 [states + 1], states int32 [·]."""
    offset = np.zeros(len(rows) + 1, np.int64)
    for s in range(len(rows)):
        for t in rows[s]:
            if t >= 0:
                offset[t + 1] += 1
    for s in range(len(rows)):
        offset[s + 1] += offset[s]
    end = offset[:-1].copy()
    before = np.empty(offset[-1], np.int32)
    for s in range(len(rows)):
        for t in rows[s]:
            if t >= 0:
                before[end[t]] = s
                end[t] += 1
    return offset, before


@kernel()
def _leading_to(states, offset, before):  # type: ignore[no-untyped-def]
    """The states from which some of these can be reached, ascending."""
    marked = np.zeros(offset.size - 1, np.bool_)
    todo = np.empty(offset.size - 1, np.int32)
    count = 0
    for s in states:
        todo[count] = s
        marked[s] = True
        count += 1
    while count:
        count -= 1
        t = todo[count]
        for i in range(offset[t], offset[t + 1]):
            s = before[i]
            if not marked[s]:
                marked[s] = True
                todo[count] = s
                count += 1
    found = np.empty(marked.size, np.int64)
    for s in range(marked.size):
        if marked[s]:
            found[count] = s
            count += 1
    return found[:count].copy()
