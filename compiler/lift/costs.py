"""What one token can cost: the largest bound after any token of a mask, by walks over the trie.

Leaves out   the bounds (ways.py), which cells are asked for (close.py).
Arrays       st int64 [depth, 5] is scratch: state, low, high, top frame (-1 none), what the frames opened by the token
             owe; frames int64 [depth, 5]: stack symbol, saved low, saved high, frame beneath, owed before. As in
             walk.py a frame is named by the depth of the byte that pushed it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from toolc.runtime.tables import NEVER

from .bounds import MANY, act, most, op_at, owes, phase


@njit(cache=True)
def _token_ends(a, bound_, token, result):  # type: ignore[no-untyped-def]
    bound_ = min(bound_, NEVER)
    result[0] = max(result[0], bound_)
    if bound_ < result[1]:
        result[1] = bound_
        result[2] = token


@njit(cache=True)
def _step(a, st, frames, depth, symbol, mode):  # type: ignore[no-untyped-def]
    """From st[depth - 1] into st[depth]; 0 dead, 1 alive, 2 + R where it leaves the frame."""
    q, low, high, top, owed = st[depth - 1, 0], st[depth - 1, 1], st[depth - 1, 2], st[depth - 1, 3], st[depth - 1, 4]
    if q == 1:
        return 0
    op = op_at(a, q, low, a.symbol_class[symbol])
    if op == 0:
        return 0
    kind, number = op & 7, op >> 3
    if kind < 4:
        q, low, high = np.int64(number), np.int64(act(kind, low)), np.int64(act(kind, high))
    elif kind == 4:
        q = np.int64(a.push[number, 1 + mode])
        if q == 0:
            return 0
        action = a.push[number, 3]
        frames[depth, 0] = a.push[number, 0]
        frames[depth, 1] = act(action, low)
        frames[depth, 2] = act(action, high)
        frames[depth, 3] = top
        frames[depth, 4] = owed
        owed = min(NEVER, owed + owes(a, a.bound, frames[depth, 0], frames[depth, 1], frames[depth, 2]))
        low, high, top = np.int64(0), np.int64(0), np.int64(depth)
    elif top >= 0:
        base = a.return_offset[frames[top, 0]]
        if a.return_[base + number, 0] != base:
            return 0
        back = a.return_[base + number, 1]
        q = np.int64(back >> 2)
        low, high = np.int64(act(back & 3, frames[top, 1])), np.int64(act(back & 3, frames[top, 2]))
        top, owed = frames[top, 3], frames[top, 4]
    else:
        return 2 + number
    st[depth, 0], st[depth, 1], st[depth, 2], st[depth, 3], st[depth, 4] = q, low, high, top, owed
    return 1


class Memo(NamedTuple):
    """Walks that are known by their first byte and its op, of one mode, trie and set of bounds; as in walk.py.

    at int64 [2]: a round, counted up whenever everything is forgotten, and the walks known in it;  slots int64 [power
    of two, 2]: round << 40 | op << 8 | byte, where it is of another round free; number of the walk;  found int64
    [walks, 4]: the `result` of each;  ends int64 [walks + 1]: place after its last record;  records int32 [·, 2].
    """

    at: np.ndarray
    slots: np.ndarray
    found: np.ndarray
    ends: np.ndarray
    records: np.ndarray

    @staticmethod
    def make(nodes: int) -> Memo:
        """For tries of so many nodes."""
        walks = 1 << 14
        return Memo(
            np.zeros(2, np.int64),
            np.zeros((4 * walks, 2), np.int64),
            np.zeros((walks, 4), np.int64),
            np.zeros(walks + 1, np.int64),
            np.empty((4 * nodes + 1024, 2), np.int32),
        )

    def forget(self) -> None:
        self.at[0] += 1
        self.at[1] = 0


@njit(cache=True)
def _walk(a, t, begin, end, mode, is_special, memo, known, st, frames, records, left, result):  # type: ignore[no-untyped-def]
    """Walk the places begin to end of `order` from st[depth of the first - 1].

    Where ``known``, the walk begins at the root, at any counter: what lies below a first byte then depends on nothing
    but its op, and is walked once.

    The step is written out over local names of the arrays, which is several times as fast as calling `_step`.
    """
    order, skip, node_byte, node_depth = t.order, t.skip, t.node_byte, t.node_depth
    token_offset, tokens, units = t.token_offset, t.tokens, t.units
    symbol_class, state_cell, cell_delta, delta = a.symbol_class, a.state_cell, a.cell_delta, a.delta
    state_break, close_first, bound = a.state_break, a.close_first, a.bound
    push, return_offset, return_ = a.push, a.return_offset, a.return_
    counted = state_break.shape[1] > 0
    largest, least, chosen = result[0], result[1], result[2]
    slots, found, ends, kept = memo.slots, memo.found, memo.ends, memo.records
    here = np.int64(-1)  # the walk below a first byte that is under way: its number, and what stood before it
    before_left, before_largest, before_least, before_chosen, before_pushed = left, largest, least, chosen, result[3]
    i = begin
    while i < end or here >= 0:
        node = order[i] if i < end else np.int64(-1)
        depth = node_depth[node] if i < end else 1
        if known and depth == 1:
            if here >= 0:
                found[here, 0], found[here, 1], found[here, 2], found[here, 3] = largest, least, chosen, result[3]
                place = ends[here]
                for k in range(before_left, left):
                    kept[place, 0] = records[k, 0]
                    kept[place, 1] = records[k, 1]
                    place += 1
                ends[here + 1] = place
                largest = max(largest, before_largest)
                if before_least <= least:
                    least, chosen = before_least, before_chosen
                result[3] = max(result[3], before_pushed)
                here = np.int64(-1)
            if i == end:
                break
            cell = state_cell[st[0, 0]]
            entry = cell_delta[cell] + symbol_class[node_byte[node]]
            if delta[entry, 0] != cell_delta[cell] or delta[entry, 1] == 0:
                i = skip[i]
                continue
            key = memo.at[0] << 40 | np.int64(delta[entry, 1]) << 8 | node_byte[node]
            slot = (key * 0x9E3779B1 >> 12) & (slots.shape[0] - 1)
            while slots[slot, 0] >> 40 == memo.at[0] and slots[slot, 0] != key:
                slot = (slot + 1) & (slots.shape[0] - 1)
            if slots[slot, 0] == key:
                n = slots[slot, 1]
                largest = max(largest, found[n, 0])
                if found[n, 1] < least:
                    least, chosen = found[n, 1], found[n, 2]
                result[3] = max(result[3], found[n, 3])
                for k in range(ends[n], ends[n + 1]):
                    records[left, 0] = kept[k, 0]
                    records[left, 1] = kept[k, 1]
                    left += 1
                i = skip[i]
                continue
            here = memo.at[1]
            if here == found.shape[0] or kept.shape[0] - ends[here] < order.size:
                memo.at[0] += 1  # full: forget
                here = np.int64(0)
                key = memo.at[0] << 40 | np.int64(delta[entry, 1]) << 8 | node_byte[node]
            slots[slot, 0] = key
            slots[slot, 1] = here
            memo.at[1] = here + 1
            before_left, before_largest, before_least, before_chosen = left, largest, least, chosen
            before_pushed = result[3]
            largest, least, chosen, result[3] = np.int64(0), np.int64(NEVER), np.int64(-1), 0
        q, low, high = st[depth - 1, 0], st[depth - 1, 1], st[depth - 1, 2]
        top, owed = st[depth - 1, 3], st[depth - 1, 4]
        cell = state_cell[q]
        if counted:
            for b in range(state_break.shape[1]):
                past = low - state_break[q, b, 0] + state_break[q, b, 1]
                if past > 0:
                    cell += min(past, state_break[q, b, 1])
        entry = cell_delta[cell] + symbol_class[node_byte[node]]
        op = delta[entry, 1]
        if delta[entry, 0] != cell_delta[cell] or op == 0 or q == 1:
            i = skip[i]
            continue
        kind, number = op & 7, op >> 3
        leaves = False
        if kind == 0:
            q = np.int64(number)
        elif kind < 4:
            q, low, high = np.int64(number), np.int64(act(kind, low)), np.int64(act(kind, high))
        elif kind == 4:
            q = np.int64(push[number, 1 + mode])
            if q == 0:
                i = skip[i]
                continue
            result[3] = 1
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
                i = skip[i]
                continue
            back = return_[base + number, 1]
            q = np.int64(back >> 2)
            low, high = np.int64(act(back & 3, frames[top, 1])), np.int64(act(back & 3, frames[top, 2]))
            top, owed = frames[top, 3], frames[top, 4]
        else:
            leaves = True
        if token_offset[node + 1] > token_offset[node]:
            value = np.int64(-1)
            for k in range(token_offset[node], token_offset[node + 1]):
                token = tokens[k]
                if units[token] < 0 and not is_special[token]:
                    if value < 0:
                        value = np.int64(0)
                        if not leaves:
                            value = np.int64(most(a, bound, q, low, high) if counted else bound[close_first[q]])
                            value = min(np.int64(NEVER), value + owed)
                    largest = max(largest, value)
                    if value < least:
                        least, chosen = value, np.int64(token)
        if leaves:
            if skip[i] > i + 1:
                records[left, 0] = node
                records[left, 1] = number
                left += 1
            i = skip[i]
            continue
        st[depth, 0], st[depth, 1], st[depth, 2], st[depth, 3], st[depth, 4] = q, low, high, top, owed
        i += 1
    result[0], result[1], result[2] = largest, least, chosen
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
        memo: of this mode, trie and these bounds.
        records: int32 [·, 2], receives from place ``left``, of the jobs that keep them: node, R where the walk leaves
            the frame with tokens below.
        out: int64 [jobs, 6], receives the largest bound, the least (NEVER: none), its token, whether anything was
            pushed, the places of its first record and after its last.

    Returns:
        the number of the first job that was not walked: its records may not find room, or all are done.
    """
    result = np.zeros(4, np.int64)
    for j in range(at, jobs.shape[0]):
        if records.shape[0] - left < t.order.size:
            return j
        q, x = jobs[j, 0], jobs[j, 1]
        result[0], result[1], result[2], result[3] = 0, NEVER, -1, 0
        st[0, 0], st[0, 1], st[0, 2], st[0, 3], st[0, 4] = q, a.low[x], a.high[x], -1, 0
        whole = a.low[x] == 0 and a.high[x] == MANY
        end = _walk(a, t, 0, t.order.size, mode, is_special, memo, whole, st, frames, records, left, result)
        for k in range(specials.shape[0]):
            if op_at(a, q, a.low[x], a.symbol_class[specials[k, 0]]) == 0:
                continue
            code = _step(a, st, frames, 1, specials[k, 0], mode)
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
        t: the whole trie.
        jobs: int32 [·, 6]: profile, stack symbol, the interval of the counter saved beside it, mode, and whether
            records are kept.
        begin: int64 [profiles, 2]: places of the records of each.
        records: int32 [·, 2]: holds those, and receives more from place ``left``.
        out: int64 [jobs, 3], receives the largest bound, the places of the first record and after the last.

    Returns:
        as `dearest`.
    """
    result = np.zeros(4, np.int64)
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
            st[depth, 3], st[depth, 4] = -1, 0
            end = _walk(
                a, t, node + 1, t.skip[node], jobs[j, 4], is_special, memo, False, st, frames, records, end, result
            )
        out[j, 0] = result[0]
        out[j, 1] = left
        if jobs[j, 5]:
            left = end
        out[j, 2] = left
    return jobs.shape[0]
