"""Kernels of linking: walk a vocabulary's trie through tables, many walks a call.

Where the lift walks an automaton before there are tables, this walks parts that have theirs.

Leaves out   which walks are needed (resolve.py), interning (../automata/pool.py).
Arrays       `Machine` below. st int64 [depth, 5] is scratch: state, counter, top frame (-1 none), what the frames that
             the token opened owe, whether it went on inside of a called part; frames int64 [depth, 4]: stack symbol,
             saved counter, frame beneath, owed before. A frame is named by the depth of the byte that pushed it, so
             backing up needs no undo. A profile is the sequence mode, node, R, node, R, … as in ../lift/walk.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.bounds import phase
from toolc.runtime.memory import kernel
from toolc.runtime.tables import NEVER

from ..automata.pool import intern, room

_NEVER = np.int64(NEVER)


class Machine(NamedTuple):
    """Tables as in docs/architecture.md; narrow_state bool [states] and narrow_push bool [pushes]: ../lift/walk.py;
    calls_part bool [pushes]: the first part calls another;  to_call int32 [states]: see `bytes_to_call`."""

    symbol_class: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    cell_delta: np.ndarray
    delta: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    state_close: np.ndarray
    close_break: np.ndarray
    close_bound: np.ndarray
    owed_first: np.ndarray
    owed_break: np.ndarray
    owed: np.ndarray
    narrow_state: np.ndarray
    narrow_push: np.ndarray
    calls_part: np.ndarray
    to_call: np.ndarray


class Nodes(NamedTuple):
    """A trie, or the part of one whose tokens are asked for.

    order int32 [n]: nodes of the whole in preorder;  byte, depth, skip [n]: as in docs/architecture.md, by place in
    ``order``;  token_offset, tokens: of the whole;  ahead int32 [n]: so many bytes from above a node is the deepest
    place where what is asked for can begin.
    """

    order: np.ndarray
    byte: np.ndarray
    depth: np.ndarray
    skip: np.ndarray
    token_offset: np.ndarray
    tokens: np.ndarray
    ahead: np.ndarray


class Memo(NamedTuple):
    """Walks of one mode that are known by their first byte and its op, as in ../lift/walk.py.

    slots int64 [power of two, 2]: op << 8 | byte, or -1; number of the walk;  ends int64 [walks + 1, 4]: the `result`
    of each;  tokens, records int32: what they found.
    """

    slots: np.ndarray
    ends: np.ndarray
    tokens: np.ndarray
    records: np.ndarray

    @staticmethod
    def make(longest: tuple[int, int]) -> Memo:
        """Room for walks that find at most so many tokens and records each."""
        walks = 1 << 11
        return Memo(
            np.empty((4 * walks, 2), np.int64),
            np.zeros((walks + 1, 4), np.int64),
            np.empty(4 * longest[0], np.int32),
            np.empty(2 * longest[1], np.int32),
        )


@kernel()
def _op(m, q, c, symbol):  # type: ignore[no-untyped-def]
    """The op of a state on a symbol."""
    base = m.cell_delta[m.state_cell[q] + phase(m.state_break, q, c)]
    place = base + m.symbol_class[symbol]
    return np.int64(m.delta[place, 1]) if m.delta[place, 0] == base else np.int64(0)


@kernel()
def _bound(m, q, c):  # type: ignore[no-untyped-def]
    """So many tokens are enough to leave the frame."""
    if q == 1:
        return np.int64(0)
    return np.int64(m.close_bound[m.state_close[q] + phase(m.close_break, q, c)])


@kernel()
def _act(action, c):  # type: ignore[no-untyped-def]
    return c if action == 0 else c + 1 if action == 1 else action - 2


@kernel()
def bytes_to_call(m, states, width, most):  # type: ignore[no-untyped-def]
    """int32 [·]: so many bytes at least lead from a state of the first part, which has so many states, into a part that
    it calls, the opening bracket among them, without leaving the frame; ``most`` + 1 where it takes more. In a frame
    that is opened on the way the next byte is taken to do. And bool [width]: classes that can stand before such a
    bracket; what closes a frame is taken to do.

    Args:
        width: number of symbol classes.
    """
    delta = m.delta
    found = np.full(m.state_cell.size, most + 1, np.int32)
    # The states that each goes on to in its frame, some of them twice.
    begin = np.zeros(states + 1, np.int64)
    after = np.empty(4 * states + width, np.int32)
    pushes = np.zeros(states, np.bool_)
    before = np.zeros(width, np.bool_)
    count = 0
    for q in range(2, states):
        end = m.state_cell[q + 1] if q + 1 < m.state_cell.size else m.cell_delta.size
        for cell in range(m.state_cell[q], end):
            base = m.cell_delta[cell]
            last = np.int64(-1)
            if after.size - count < width:
                bigger = np.empty(2 * after.size, np.int32)
                bigger[:count] = after[:count]
                after = bigger
            for k in range(base, base + width):
                op = np.int64(delta[k, 1])
                if op == last or op == 0 or delta[k, 0] != base:
                    continue
                if op & 7 == 5:
                    before[k - base] = True
                    continue
                last = op
                if op & 7 < 4:
                    after[count] = op >> 3
                    count += 1
                else:
                    pushes[q] = True
                    found[q] = min(found[q], 1 if m.calls_part[op >> 3] else 2)
        begin[q + 1] = count
    for level in range(2, most + 1):
        grew = level == 2
        for q in range(2, states):
            if found[q] > level:
                for i in range(begin[q], begin[q + 1]):
                    if found[after[i]] == level - 1:
                        found[q] = level
                        grew = True
                        break
        if not grew:
            break
    for q in range(2, states):
        leads = pushes[q]
        for i in range(begin[q], begin[q + 1]):
            leads |= found[after[i]] == 1
        if not leads:
            continue
        end = m.state_cell[q + 1] if q + 1 < m.state_cell.size else m.cell_delta.size
        for cell in range(m.state_cell[q], end):
            base = m.cell_delta[cell]
            for k in range(width):
                op = np.int64(delta[base + k, 1])
                if op == 0 or delta[base + k, 0] != base:
                    continue
                if op & 7 < 4:
                    before[k] |= found[op >> 3] == 1
                elif op & 7 == 4:
                    before[k] |= not m.calls_part[op >> 3] and found[m.push[op >> 3, 1]] == 1
    return found, before


@kernel()
def _walk(m, t, begin, end, q0, c0, crossed0, mode, st, frames, tokens, found, records, left, result):  # type: ignore[no-untyped-def]
    """Walk the nodes from begin to end from a state and counter.

    Args:
        crossed0: 0: only what goes on inside of a called part is found; 1: everything is.
        tokens, found: receives, from place ``found``, the tokens that stay alive or leave the frame with their last
            byte.
        records, left: receives, from place ``left``, node, R, … where the walk leaves the frame with tokens below.
        result: int64 [4], receives the places after the last token and record, and grows: whether a token decided
            against a tool, the largest bound after a token.

    The step is written out over local names of the arrays, which is several times as fast as calling `_op`.
    """
    decided = result[2]
    dearest = result[3]
    order, node_byte, node_depth, node_skip, token_offset = t.order, t.byte, t.depth, t.skip, t.token_offset
    symbol_class, state_cell, cell_delta, delta = m.symbol_class, m.state_cell, m.cell_delta, m.delta
    state_break, narrow_state, to_call, ahead = m.state_break, m.narrow_state, m.to_call, t.ahead
    counted = state_break.shape[1]
    i = begin
    if begin < end:
        above = node_depth[begin] - 1
        st[above, 0] = q0
        st[above, 1] = c0
        st[above, 2] = -1
        st[above, 3] = 0
        st[above, 4] = crossed0
    while i < end:
        depth = node_depth[i]
        q = st[depth - 1, 0]
        c = st[depth - 1, 1]
        top = st[depth - 1, 2]
        owed = st[depth - 1, 3]
        crossed = st[depth - 1, 4]
        if crossed == 0 and top < 0 and to_call[q] > ahead[i]:
            i = node_skip[i]
            continue
        calls = False
        cell = state_cell[q]
        for b in range(counted):
            count = state_break[q, b, 1]
            cell += min(max(c - state_break[q, b, 0] + count, 0), count)
        base = np.int64(cell_delta[cell])
        place = base + symbol_class[node_byte[i]]
        op = np.int64(delta[place, 1])
        if delta[place, 0] != base or op == 0:
            i = node_skip[i]
            continue
        kind = op & 7
        value = op >> 3
        inside = True
        if kind < 4:
            q = value
            c = _act(kind, c)
            if narrow_state[q]:
                decided = 1
        elif kind == 4:
            if m.narrow_push[value]:
                decided = 1
            calls = m.calls_part[value]
            g = m.push[value, 0]
            saved = _act(m.push[value, 3], c)
            frames[depth, 0] = g
            frames[depth, 1] = saved
            frames[depth, 2] = top
            frames[depth, 3] = owed
            owed = min(_NEVER, owed + m.owed[m.owed_first[g] + phase(m.owed_break, g, saved)])
            top = np.int64(depth)
            q = np.int64(m.push[value, 1 + mode])
            c = np.int64(0)
        elif top >= 0:
            back = m.return_[m.return_offset[frames[top, 0]] + value, 1]
            q = np.int64(back >> 2)
            c = np.int64(_act(back & 3, frames[top, 1]))
            owed = frames[top, 3]
            top = frames[top, 2]
        else:
            inside = False
        if crossed != 0:
            node = order[i]
            if inside and token_offset[node + 1] > token_offset[node]:
                dearest = max(dearest, min(_NEVER, owed + _bound(m, q, c)))
            for k in range(token_offset[node], token_offset[node + 1]):
                tokens[found] = t.tokens[k]
                found += 1
        if not inside:
            if crossed != 0 and node_skip[i] > i + 1:
                records[left] = order[i]
                records[left + 1] = value
                left += 2
            i = node_skip[i]
            continue
        st[depth, 0] = q
        st[depth, 1] = c
        st[depth, 2] = top
        st[depth, 3] = owed
        st[depth, 4] = 1 if calls else crossed
        i += 1
    result[0] = found
    result[1] = left
    result[2] = decided
    result[3] = dearest


@kernel()
def walk_states(m, t, jobs, at, specials, memo, st, frames, lists, profiles, limits, out):  # type: ignore[no-untyped-def]
    """What tokens that go on inside of a called part add to the rows of states of the first part; none of them counts.

    What lies below a first byte depends on nothing but the op on that byte: it is walked once.

    Args:
        t: holds all tokens that go on behind an opening bracket.
        jobs: int32 [·, 1]: state; those from number ``at`` are walked, in mode 0.
        specials: int32 [·, 2]: symbol and token of the special tokens, which no trie holds.
        memo: scratch.
        lists, profiles: the arrays of two pools; limits int64 [2]: the longest sequence of each.
        out: int32 [·, 4], receives per job the list, the records (without a mode), whether any token decides against a
            tool, the largest bound after a token.

    Returns:
        the number of the first job that was not walked: a pool is full, or all are done.
    """
    data, offset, table, count = lists
    data2, offset2, table2, count2 = profiles
    slots, ends, tokens, records = memo.slots, memo.ends, memo.tokens, memo.records
    node_byte, skip, ahead, to_call = t.byte, t.skip, t.ahead, m.to_call
    symbol_class, delta = m.symbol_class, m.delta
    result = np.zeros(4, np.int64)
    slots[:, 0] = -1
    known = 0
    for j in range(at, jobs.shape[0]):
        if not room(data, offset, table, count, limits[0]) or not room(data2, offset2, table2, count2, limits[1]):
            return j
        q = np.int64(jobs[j, 0])
        end, end2 = np.int64(offset[count[0]]), np.int64(offset2[count2[0]])
        decided, dearest = np.int64(0), np.int64(0)
        i = np.int64(0)
        base = np.int64(m.cell_delta[m.state_cell[q] + phase(m.state_break, q, np.int64(0))])
        while i < node_byte.size:
            after = np.int64(skip[i])
            op = np.int64(0)
            if to_call[q] <= ahead[i]:
                place = base + symbol_class[node_byte[i]]
                if delta[place, 0] == base:
                    op = np.int64(delta[place, 1])
            if op & 7 < 4 and to_call[op >> 3] >= ahead[i]:
                op = np.int64(0)  # too far from any call, as in the whole subtree below
            if op != 0:
                key = op << 8 | np.int64(node_byte[i])
                slot = (key * 0x9E3779B1 >> 12) & (slots.shape[0] - 1)
                while slots[slot, 0] >= 0 and slots[slot, 0] != key:
                    slot = (slot + 1) & (slots.shape[0] - 1)
                if slots[slot, 0] != key:
                    if (
                        known + 1 == ends.shape[0]
                        or tokens.size - ends[known, 0] < limits[0]
                        or records.size - ends[known, 1] < limits[1]
                    ):
                        slots[:, 0] = -1  # full: forget
                        known = 0
                        slot = (key * 0x9E3779B1 >> 12) & (slots.shape[0] - 1)
                    slots[slot, 0] = key
                    slots[slot, 1] = known
                    result[2] = 0
                    result[3] = 0
                    _walk(
                        m, t, i, after, q, np.int64(0), np.int64(0), np.int64(0), st, frames, tokens, ends[known, 0],
                        records, ends[known, 1], result,
                    )  # fmt: skip
                    known += 1
                    ends[known] = result
                n = slots[slot, 1]
                for k in range(ends[n, 0], ends[n + 1, 0]):
                    data[end] = tokens[k]
                    end += 1
                for k in range(ends[n, 1], ends[n + 1, 1]):
                    data2[end2] = records[k]
                    end2 += 1
                decided = max(decided, ends[n + 1, 2])
                dearest = max(dearest, ends[n + 1, 3])
            i = after
        for k in range(specials.shape[0]):
            op = _op(m, q, np.int64(0), specials[k, 0])
            if (op & 7 < 4 and m.narrow_state[op >> 3]) or (op & 7 == 4 and m.narrow_push[op >> 3]):
                decided = np.int64(1)
        out[j, 0] = intern(data, offset, table, count, end)
        out[j, 1] = intern(data2, offset2, table2, count2, end2)
        out[j, 2] = decided
        out[j, 3] = dearest
    return jobs.shape[0]


@kernel()
def walk_chains(m, t, jobs, at, st, frames, lists, profiles, limits, out):  # type: ignore[no-untyped-def]
    """Rows of exit profiles continued under a stack symbol.

    Args:
        jobs: int32 [·, 3]: profile of the pool, stack symbol, the counter saved beside it.
        lists, profiles, limits, out: as for `walk_states`.

    Returns:
        the number of the first job that was not walked.
    """
    data, offset, table, count = lists
    data2, offset2, table2, count2 = profiles
    result = np.zeros(4, np.int64)
    for j in range(at, jobs.shape[0]):
        if not room(data, offset, table, count, limits[0]) or not room(data2, offset2, table2, count2, limits[1]):
            return j
        first, last = offset2[jobs[j, 0]], offset2[jobs[j, 0] + 1]
        mode = np.int64(data2[first])
        base = m.return_offset[jobs[j, 1]]
        begin2 = offset2[count2[0]]
        data2[begin2] = mode
        result[0] = offset[count[0]]
        result[1] = begin2 + 1
        result[2] = 0
        result[3] = 0
        for i in range(first + 1, last, 2):
            node = np.int64(data2[i])
            place = base + data2[i + 1]
            if m.return_[place, 0] != base:
                continue  # this stack symbol is never under such a frame
            back = m.return_[place, 1]
            _walk(
                m, t, node + 1, np.int64(t.skip[node]), np.int64(back >> 2),
                np.int64(_act(back & 3, jobs[j, 2])), np.int64(1), mode, st, frames, data, result[0], data2, result[1],
                result,
            )  # fmt: skip
        out[j, 0] = intern(data, offset, table, count, result[0])
        out[j, 1] = intern(data2, offset2, table2, count2, result[1]) if result[1] > begin2 + 1 else -1
        out[j, 2] = result[2]
        out[j, 3] = result[3]
    return jobs.shape[0]
