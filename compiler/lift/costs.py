"""What one token can cost: the largest bound after any token of a mask, by walks over the trie.

Leaves out   the bounds (ways.py), which cells are asked for (close.py).
Arrays       st int64 [depth, 6] is scratch: state, low, high, top frame (-1 none), what the frames opened by the token
             owe, place in `order`; frames int64 [depth, 5]: stack symbol, saved low, saved high, frame beneath, owed
             before. As in walk.py a frame is named by the depth of the byte that pushed it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from toolc.runtime.bounds import MANY, act, most, op_at, owes, phase, step
from toolc.runtime.tables import NEVER

from .children import next_child

_WORTH = 300  # nodes of a subtree whose walk is remembered; of a smaller one looking it up costs more


@njit(cache=True)
def _token_ends(a, bound_, token, result):  # type: ignore[no-untyped-def]
    bound_ = min(bound_, NEVER)
    result[0] = max(result[0], bound_)
    if bound_ < result[1]:
        result[1] = bound_
        result[2] = token


class Memo(NamedTuple):
    """Walks of subtrees that are known, of one trie and set of bounds.

    What lies below a node depends on nothing but the node, the mode and the op on its byte, where the token opened no
    frame and no counter is known.

    at int64 [2]: the round, counted up whenever everything is forgotten, and the walks known in it;  slots int64 [power
    of two, 3]: the round, where it is of another free; key; number of the walk;  found int64 [walks, 4]: the `result`
    of each;  ends int64 [walks + 1]: place after its last record;  records int32 [·, 2].
    """

    at: np.ndarray
    slots: np.ndarray
    found: np.ndarray
    ends: np.ndarray
    records: np.ndarray

    @staticmethod
    def make(nodes: int, walks: int = 1 << 14) -> Memo:
        """For tries of so many nodes, with room for so many walks, a power of two."""
        return Memo(
            np.array([1, 0], np.int64),
            np.zeros((4 * walks, 3), np.int64),
            np.zeros((walks, 4), np.int64),
            np.zeros(walks + 1, np.int64),
            np.empty((4 * nodes + 1024, 2), np.int32),
        )

    def forget(self) -> None:
        self.at[0] += 1
        self.at[1] = 0


@njit(cache=True)
def _slot(memo, key):  # type: ignore[no-untyped-def]
    """Where a key is, or would be."""
    slots, round_ = memo.slots, memo.at[0]
    slot = (((key >> 33) * 0x9E3779B1 + key) * 0x85EBCA6B >> 16) & (slots.shape[0] - 1)
    while slots[slot, 0] == round_ and slots[slot, 1] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


@njit(cache=True)
def _first_token(t, is_special, i):  # type: ignore[no-untyped-def]
    """The first token of the part that ends at a place and is matched by its text, -1 for none."""
    for k in range(t.token_offset[t.order[i]], t.token_offset[t.order[i] + 1]):
        if t.units[t.tokens[k]] < 0 and not is_special[t.tokens[k]]:
            return np.int64(t.tokens[k])
    return np.int64(-1)


@njit(cache=True)
def _walk(a, t, begin, end, mode, is_special, memo, st, frames, open_, records, left, result):  # type: ignore[no-untyped-def]
    """Walk the places begin to end of `order` from st[depth of the first - 1].

    Large subtrees are walked once where the memo holds; such walks nest.

    The step is written out over local names of the arrays, which is several times as fast as calling `step`.

    Args:
        open_: int64 [depth, 7], scratch: of the walks that are under way and will be remembered their end, key, and
            what stood before them: `left` and `result`.
    """
    packed, skip, wide, root = t.packed, t.skip, t.children.wide, t.order.size
    symbol_class, state_cell, cell_delta, delta = a.symbol_class, a.state_cell, a.cell_delta, a.delta
    state_break, close_first, bound = a.state_break, a.close_first, a.bound
    push, return_offset, return_ = a.push, a.return_offset, a.return_
    counted = state_break.shape[1] > 0
    largest, least, chosen, pushed = result[0], result[1], result[2], result[3]
    slots, found, ends, kept = memo.slots, memo.found, memo.ends, memo.records
    opened = 0
    i = begin
    while True:
        while opened > 0 and i == open_[opened - 1, 0]:
            opened -= 1
            before = open_[opened, 2]
            n = memo.at[1]
            if n == found.shape[0] or kept.shape[0] - ends[n] < left - before:
                memo.at[0] += 1  # full: forget
                n = np.int64(0)
            slot = _slot(memo, open_[opened, 1])
            slots[slot, 0], slots[slot, 1], slots[slot, 2] = memo.at[0], open_[opened, 1], n
            found[n, 0], found[n, 1], found[n, 2], found[n, 3] = largest, least, chosen, pushed
            free = ends[n]
            for k in range(before, left):
                kept[free, 0], kept[free, 1] = records[k, 0], records[k, 1]
                free += 1
            ends[n + 1] = free
            memo.at[1] = n + 1
            largest = max(largest, open_[opened, 3])
            if open_[opened, 4] <= least:
                least, chosen = open_[opened, 4], open_[opened, 5]
            pushed = max(pushed, open_[opened, 6])
        if i >= end:
            break
        place = packed[i]
        next_, byte, depth = place & 0xFFFFFFFF, place >> 32 & 255, place >> 40 & 0x3FFFFF
        q, low, high = st[depth - 1, 0], st[depth - 1, 1], st[depth - 1, 2]
        top, owed = st[depth - 1, 3], st[depth - 1, 4]
        cell = state_cell[q]
        if counted:
            for b in range(state_break.shape[1]):
                past = low - state_break[q, b, 0] + state_break[q, b, 1]
                if past > 0:
                    cell += min(past, state_break[q, b, 1])
        entry = cell_delta[cell] + symbol_class[byte]
        op = delta[entry, 1]
        if delta[entry, 0] != cell_delta[cell] or op == 0 or q == 1:
            parent = st[depth - 1, 5]
            if wide[parent] < 0:
                i = next_
            else:
                after = skip[parent] if parent < root else end
                i = next_child(t.children, a.alive, cell, parent, byte, after)
            continue
        if top < 0 and (depth == 1 or next_ - i >= _WORTH) and (not counted or (low == 0 and high == MANY)):
            key = i << 33 | mode << 32 | np.int64(op)
            slot = _slot(memo, key)
            if slots[slot, 0] == memo.at[0]:
                n = slots[slot, 2]
                largest = max(largest, found[n, 0])
                if found[n, 1] < least:
                    least, chosen = found[n, 1], found[n, 2]
                pushed = max(pushed, found[n, 3])
                for k in range(ends[n], ends[n + 1]):
                    records[left, 0], records[left, 1] = kept[k, 0], kept[k, 1]
                    left += 1
                i = next_
                continue
            open_[opened, 0], open_[opened, 1], open_[opened, 2] = next_, key, left
            open_[opened, 3], open_[opened, 4], open_[opened, 5], open_[opened, 6] = largest, least, chosen, pushed
            opened += 1
            largest, least, chosen, pushed = np.int64(0), np.int64(NEVER), np.int64(-1), np.int64(0)
        kind, number = op & 7, op >> 3
        leaves = False
        if kind == 0:
            q = np.int64(number)
        elif kind < 4:
            q, low, high = np.int64(number), np.int64(act(kind, low)), np.int64(act(kind, high))
        elif kind == 4:
            q = np.int64(push[number, 1 + mode])
            if q == 0:
                i = next_
                continue
            pushed = np.int64(1)
            action = push[number, 3]
            frames[depth, 0] = push[number, 0]
            frames[depth, 1] = act(action, low)
            frames[depth, 2] = act(action, high)
            frames[depth, 3] = top
            frames[depth, 4] = owed
            owed = min(NEVER, owed + owes(a, bound, frames[depth, 0], frames[depth, 1], frames[depth, 2]))
            low, high, top = np.int64(0), np.int64(0), np.int64(depth)
        elif top >= 0:
            base = return_offset[frames[top, 0]]
            if return_[base + number, 0] != base:
                i = next_
                continue
            back = return_[base + number, 1]
            q = np.int64(back >> 2)
            low, high = np.int64(act(back & 3, frames[top, 1])), np.int64(act(back & 3, frames[top, 2]))
            top, owed = frames[top, 3], frames[top, 4]
        else:
            leaves = True
        if place >> 62:
            value = np.int64(0)
            if not leaves:
                value = np.int64(most(a, bound, q, low, high) if counted else bound[close_first[q]])
                value = min(np.int64(NEVER), value + owed)
            if value > largest or value < least:
                token = _first_token(t, is_special, i)
                if token >= 0:
                    largest = max(largest, value)
                    if value < least:
                        least, chosen = value, token
        if leaves:
            if next_ > i + 1:
                records[left, 0] = t.order[i]
                records[left, 1] = number
                left += 1
            i = next_
            continue
        st[depth, 0], st[depth, 1], st[depth, 2], st[depth, 3], st[depth, 4] = q, low, high, top, owed
        st[depth, 5] = i
        i += 1
    result[0], result[1], result[2], result[3] = largest, least, chosen, pushed
    return left


@njit(cache=True)
def _inside(a, next_unit, alphabet, tops, q, u, low, known, seen, todo):  # type: ignore[no-untyped-def]
    """The largest bound after a token of a slice: over all states that go along with unit state u from state q on.

    alphabet uint8 [·]: one byte of each set that all states and units treat alike;  tops int32 [close cells]: the
    largest bound of the state from this close cell on;  known int32 [states, unit states]: answers found before for
    counters from 0 on, or -1;  seen int32 [states, unit states] (its first element counts the calls) and todo int32
    [·, 2] are scratch.
    """
    if known[q, u] >= 0 and tops[a.close_first[q] + phase(a.close_break, q, low)] == tops[a.close_first[q]]:
        return known[q, u]
    found = 0
    count = 1
    seen[0, 0] += 1
    stamp = seen[0, 0]
    seen[q, u] = stamp
    todo[0, 0] = q
    todo[0, 1] = u
    at = 0
    while at < count:
        q, u = np.int64(todo[at, 0]), np.int64(todo[at, 1])
        at += 1
        first = a.close_first[q]
        found = max(found, tops[first + phase(a.close_break, q, low)])
        for byte in alphabet:
            v = next_unit[u, byte]
            if v == 255:
                continue
            for x in range(first + phase(a.close_break, q, low), a.close_first[q + 1]):
                op = op_at(a, q, a.low[x], a.symbol_class[byte])
                if op == 0 or op & 7 > 3:
                    continue
                if op & 7 > 1 and low > 0:
                    # The counter begins again: so do we, for all of its values.
                    low = np.int64(0)
                    at = 0
                if seen[op >> 3, v] != stamp:
                    seen[op >> 3, v] = stamp
                    todo[count, 0] = op >> 3
                    todo[count, 1] = v
                    count += 1
    if low == 0:
        for i in range(count):
            # Not more than this from any of them.
            known[todo[i, 0], todo[i, 1]] = found
    return found


@njit(cache=True)
def dearest(  # type: ignore[no-untyped-def]
    a,
    t,
    jobs,
    at,
    mode,
    specials,
    is_special,
    unit,
    next_unit,
    alphabet,
    tops,
    known,
    seen,
    todo,
    memo,
    st,
    frames,
    records,
    left,
    out,
):
    """The largest and the least bound after one token, from close cells.

    Args:
        t: the trie, or what lies outside of slice `unit`, which then all cells take (-1: none).
        jobs: int32 [·, 3]: state, close cell, and whether records are kept; those from number ``at`` are walked.
        specials: int32 [·, 2]: symbol and token.
        is_special: bool [V].
        memo: of this trie and these bounds.
        records: int32 [·, 2], receives from place ``left``, of the jobs that keep them: node, R where the walk leaves
            the frame with tokens below.
        out: int64 [jobs, 6], receives the largest bound, the least (NEVER: none), its token, whether anything was
            pushed, the places of its first record and after its last.

    Returns:
        the number of the first job that was not walked: its records may not find room, or all are done.
    """
    result = np.zeros(4, np.int64)
    open_ = np.zeros((st.shape[0], 7), np.int64)
    for j in range(at, jobs.shape[0]):
        if records.shape[0] - left < t.order.size:
            return j
        q, x = jobs[j, 0], jobs[j, 1]
        result[0], result[1], result[2], result[3] = 0, NEVER, -1, 0
        st[0, 0], st[0, 1], st[0, 2], st[0, 3], st[0, 4], st[0, 5] = q, a.low[x], a.high[x], -1, 0, t.order.size
        end = _walk(a, t, 0, t.order.size, mode, is_special, memo, st, frames, open_, records, left, result)
        for k in range(specials.shape[0]):
            if op_at(a, q, a.low[x], a.symbol_class[specials[k, 0]]) == 0:
                continue
            code = step(a, st, frames, 1, specials[k, 0], mode)
            if code == 1:
                if st[1, 3] >= 0:
                    result[3] = 1
                _token_ends(a, most(a, a.bound, st[1, 0], st[1, 1], st[1, 2]) + st[1, 4], specials[k, 1], result)
            elif code >= 2:
                _token_ends(a, 0, specials[k, 1], result)
        if unit >= 0:
            result[0] = max(
                result[0],
                _inside(
                    a, next_unit, alphabet, tops, np.int64(q), np.int64(unit), np.int64(a.low[x]), known, seen, todo
                ),
            )
        for k in range(4):
            out[j, k] = result[k]
        out[j, 4] = left
        if jobs[j, 2]:
            left = end
        out[j, 5] = left
    return jobs.shape[0]


@njit(cache=True)
def dearest_below(a, t, jobs, at, begin, is_special, memo, st, frames, records, left, out):  # type: ignore[no-untyped-def]
    """The same for tokens that left a frame, continued under a stack symbol.

    Args:
        t: the whole trie;  memo: of it.
        jobs: int32 [·, 6]: profile, stack symbol, the interval of the counter saved beside it, mode, and whether
            records are kept.
        begin: int64 [profiles, 2]: places of the records of each.
        records: int32 [·, 2]: holds those, and receives more from place ``left``.
        out: int64 [jobs, 3], receives the largest bound, the places of the first record and after the last.

    Returns:
        as `dearest`.
    """
    result = np.zeros(4, np.int64)
    open_ = np.zeros((st.shape[0], 7), np.int64)
    for j in range(at, jobs.shape[0]):
        if records.shape[0] - left < t.order.size:
            return j
        end = left
        result[0], result[1], result[2], result[3] = 0, NEVER, -1, 0
        base = a.return_offset[jobs[j, 1]]
        for i in range(begin[jobs[j, 0], 0], begin[jobs[j, 0], 1]):
            node = records[i, 0]
            if a.return_[base + records[i, 1], 0] != base:
                continue
            back = a.return_[base + records[i, 1], 1]
            depth = t.node_depth[node]
            st[depth, 0], st[depth, 1], st[depth, 2] = back >> 2, act(back & 3, jobs[j, 2]), act(back & 3, jobs[j, 3])
            st[depth, 3], st[depth, 4], st[depth, 5] = -1, 0, node
            mode, after = np.int64(jobs[j, 4]), np.int64(t.skip[node])
            end = _walk(a, t, node + 1, after, mode, is_special, memo, st, frames, open_, records, end, result)
        out[j, 0] = result[0]
        out[j, 1] = left
        if jobs[j, 5]:
            left = end
        out[j, 2] = left
    return jobs.shape[0]
