"""Walk a vocabulary's trie through tables, many walks a call: the kernels of linking.

Where the lift walks an automaton before there are tables, this walks parts that have theirs.

Leaves out   which walks are needed (resolve.py), interning (../terminals/pool.py).
Arrays       `Machine` below. st int64 [depth, 5] is scratch: state, counter, top frame (-1 none), what the frames that
             the token opened owe, whether it went on inside of a called part; frames int64 [depth, 4]: stack symbol,
             saved counter, frame beneath, owed before. A frame is named by the depth of the byte that pushed it, so
             backing up needs no undo. A profile is the sequence mode, node, R, node, R, … as in ../lift/walk.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.kernels.step import op_in, phase
from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.format.tables import NEVER
from toolc.runtime.jit.memory import kernel

from ..terminals.pool import intern, room

_NEVER = np.int64(NEVER)


class Machine(NamedTuple):
    """Tables as in docs/format.md; narrow_state bool [states] and narrow_push bool [pushes]: ../lift/walk.py;
    calls_part bool [pushes]: the first part calls another;  to_call int32 [states]: see `bytes_to_call`."""

    symbol_class: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    breaks: np.ndarray
    cell_delta: np.ndarray
    cell_default: np.ndarray
    delta: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    state_close: np.ndarray
    close_break: np.ndarray
    close_breaks: np.ndarray
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

    order int32 [n]: nodes of the whole in preorder;  byte, depth, skip [n]: as in docs/format.md, by place in
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
    """Walks that are known by what they depend on, as in ../lift/walk.py.

    slots int64 [power of two, 2]: that, or -1; number of the walk;  ends int64 [walks + 1, 4]: the `result` of each;
    tokens, records int32: what they found.
    """

    slots: np.ndarray
    ends: np.ndarray
    tokens: np.ndarray
    records: np.ndarray

    @staticmethod
    def make(longest: tuple[int, int], jobs: int) -> Memo:
        """Room for walks that find at most so many tokens and records each, and for about so many jobs."""
        walks = 1 << min(11, max(8, jobs.bit_length() + 1))
        return Memo(
            np.empty((4 * walks, 2), np.int64),
            np.zeros((walks + 1, 4), np.int64),
            np.empty(4 * longest[0], np.int32),
            np.empty(2 * longest[1], np.int32),
        )


@kernel()
def _op(m, q, c, symbol):  # type: ignore[no-untyped-def]
    """The op of a state on a symbol."""
    cell = m.state_cell[q] + phase(m.breaks, m.state_break[q], c)
    return op_in(m.delta, np.int64(m.cell_delta[cell]), np.int64(m.cell_default[cell]), m.symbol_class[symbol])


@kernel()
def _bound(m, q, c):  # type: ignore[no-untyped-def]
    """So many tokens are enough to leave the frame."""
    if q == 1:
        return np.int64(0)
    return np.int64(m.close_bound[m.state_close[q] + phase(m.close_breaks, m.close_break[q], c)])


@kernel()
def _act(action, c):  # type: ignore[no-untyped-def]
    return c if action == 0 else c + 1 if action == 1 else action - 2


@kernel()
def bytes_to_call(row_of, offset, column, value, cells, push, calls, width, most, found):  # type: ignore[no-untyped-def]
    """So many bytes at least lead from each state of the first part into a part that it calls, the opening bracket
    among them, without leaving the frame; ``most`` + 1 where it takes more. In a frame that is opened on the way the
    next byte is taken to do.

    Args:
        row_of, offset, column, value: of its transitions, see `CombRows`.
        cells: int32 [its states without the first two]: the first cell of each, after two cells.
        push: int32 [pushes, 4];  calls: bool [pushes]: which call a part.
        width: number of symbol classes.
        found: int32 [states or more], all ``most`` + 1, receives the numbers of bytes.

    Returns:
        bool [width]: classes that can stand before such a bracket; what closes a frame is taken to do.
    """
    rows = offset.size - 2
    before = np.zeros(width, np.bool_)
    near = np.full(rows + 1, most + 1, np.int32)  # the same for rows
    into = np.zeros(cells.size + 4, np.int64)  # where the rows begin that go on to each state, some of them twice
    for r in range(rows):
        last = np.int32(0)
        for i in range(offset[r], offset[r + 1]):
            op = value[i]
            if op & KIND_MASK == POP:
                before[column[i]] = True
            elif op & KIND_MASK == PUSH:
                near[r] = min(near[r], np.int32(1 if calls[op >> KIND_BITS] else 2))
            elif op >> KIND_BITS != last:
                last = op >> KIND_BITS
                into[last + 2] += 1
    for q in range(into.size - 1):
        into[q + 1] += into[q]
    row_into = np.empty(into[-1], np.int32)
    for r in range(rows):
        last = np.int32(0)
        for i in range(offset[r], offset[r + 1]):
            op = value[i]
            if op & KIND_MASK < PUSH and op >> KIND_BITS != last:
                last = op >> KIND_BITS
                row_into[into[last + 1]] = r
                into[last + 1] += 1
    having = np.zeros(rows + 3, np.int64)  # where the states begin that have each row, some of them twice
    for r in row_of:
        having[r + 2] += 1
    for r in range(rows + 2):
        having[r + 1] += having[r]
    state = np.empty(row_of.size, np.int32)
    q = 2
    for cell in range(row_of.size):
        while q - 1 < cells.size and cells[q - 1] - 2 <= cell:
            q += 1
        state[having[row_of[cell] + 1]] = q
        having[row_of[cell] + 1] += 1
    queue = np.empty(rows, np.int32)  # of rows, by their numbers of bytes
    count = 0
    for level in range(1, min(2, most) + 1):
        for r in range(rows):
            if near[r] == level:
                queue[count] = r
                count += 1
    taken = 0
    while taken < count:
        level = near[queue[taken]]
        for i in range(having[queue[taken]], having[queue[taken] + 1]):
            q = state[i]
            if found[q] <= level:
                continue
            found[q] = level
            for k in range(into[q], into[q + 1]):
                if near[row_into[k]] > level + 1:
                    near[row_into[k]] = level + 1
                    if level < most:
                        queue[count] = row_into[k]
                        count += 1
        taken += 1
    for r in range(rows):
        for i in range(offset[r], offset[r + 1]):
            op = value[i]
            if op & KIND_MASK < PUSH:
                before[column[i]] |= found[op >> KIND_BITS] == 1
            elif op & KIND_MASK == PUSH:
                before[column[i]] |= not calls[op >> KIND_BITS] and found[push[op >> KIND_BITS, 1]] == 1
    return before


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
    symbol_class, state_cell, delta = m.symbol_class, m.state_cell, m.delta
    cell_delta, cell_default = m.cell_delta, m.cell_default
    state_break, narrow_state, to_call, ahead = m.state_break, m.narrow_state, m.to_call, t.ahead
    breaks = m.breaks
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
        cell = state_cell[q] + phase(breaks, state_break[q], c)
        op = op_in(delta, np.int64(cell_delta[cell]), np.int64(cell_default[cell]), symbol_class[node_byte[i]])
        if op == 0:
            i = node_skip[i]
            continue
        kind = op & KIND_MASK
        value = op >> KIND_BITS
        inside = True
        if kind < PUSH:
            q = value
            c = _act(kind, c)
            if narrow_state[q]:
                decided = 1
        elif kind == PUSH:
            if m.narrow_push[value]:
                decided = 1
            calls = m.calls_part[value]
            g = m.push[value, 0]
            saved = _act(m.push[value, 3], c)
            frames[depth, 0] = g
            frames[depth, 1] = saved
            frames[depth, 2] = top
            frames[depth, 3] = owed
            owed = min(_NEVER, owed + m.owed[m.owed_first[g] + phase(m.close_breaks, m.owed_break[g], saved)])
            top = np.int64(depth)
            q = np.int64(m.push[value, 1 + mode])
            c = np.int64(0)
        elif top >= 0:
            back = m.return_[m.return_offset[frames[top, 0]] + value, 1]
            q = np.int64(back >> ACTION_BITS)
            c = np.int64(_act(back & ACTION_MASK, frames[top, 1]))
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
def _place(memo, known, limits, key):  # type: ignore[no-untyped-def]
    """The slot of a walk, and how many are known; none where another would find no room."""
    slots, size = memo.slots, memo.slots.shape[0]
    hashed = ((key >> 32) * 0x85EBCA6B + key) * 0x9E3779B1 >> 12
    slot = hashed & (size - 1)
    while slots[slot, 0] >= 0 and slots[slot, 0] != key:
        slot = (slot + 1) & (size - 1)
    if slots[slot, 0] != key and (
        known + 1 == memo.ends.shape[0]
        or memo.tokens.size - memo.ends[known, 0] < limits[0]
        or memo.records.size - memo.ends[known, 1] < limits[1]
    ):
        slots[:, 0] = -1
        return hashed & (size - 1), np.int64(0)
    return slot, known


@kernel()
def _take(memo, n, data, end, data2, end2):  # type: ignore[no-untyped-def]
    """Write the tokens and the records that walk n found from these places on; the places after them."""
    ends = memo.ends
    for k in range(ends[n, 0], ends[n + 1, 0]):
        data[end] = memo.tokens[k]
        end += 1
    for k in range(ends[n, 1], ends[n + 1, 1]):
        data2[end2] = memo.records[k]
        end2 += 1
    return end, end2


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
    known = np.int64(0)
    for j in range(at, jobs.shape[0]):
        if not room(data, offset, table, count, limits[0]) or not room(data2, offset2, table2, count2, limits[1]):
            return j
        q = np.int64(jobs[j, 0])
        end, end2 = np.int64(offset[count[0]]), np.int64(offset2[count2[0]])
        decided, dearest = np.int64(0), np.int64(0)
        i = np.int64(0)
        cell = m.state_cell[q] + phase(m.breaks, m.state_break[q], np.int64(0))
        base, default = np.int64(m.cell_delta[cell]), np.int64(m.cell_default[cell])
        while i < node_byte.size:
            after = np.int64(skip[i])
            op = np.int64(0)
            if to_call[q] <= ahead[i]:
                op = op_in(delta, base, default, symbol_class[node_byte[i]])
            if op & KIND_MASK < PUSH and to_call[op >> KIND_BITS] >= ahead[i]:
                op = np.int64(0)  # too far from any call, as in the whole subtree below
            if op != 0:
                key = op << 8 | np.int64(node_byte[i])
                slot, known = _place(memo, known, limits, key)
                if slots[slot, 0] != key:
                    slots[slot, 0], slots[slot, 1] = key, known
                    result[2] = 0
                    result[3] = 0
                    _walk(
                        m, t, i, after, q, np.int64(0), np.int64(0), np.int64(0), st, frames, tokens, ends[known, 0],
                        records, ends[known, 1], result,
                    )  # fmt: skip
                    known += 1
                    for k in range(4):
                        ends[known, k] = result[k]
                n = slots[slot, 1]
                end, end2 = _take(memo, n, data, end, data2, end2)
                decided = max(decided, ends[n + 1, 2])
                dearest = max(dearest, ends[n + 1, 3])
            i = after
        for k in range(specials.shape[0]):
            op = _op(m, q, np.int64(0), specials[k, 0])
            kind, number = op & KIND_MASK, op >> KIND_BITS
            if (kind < PUSH and m.narrow_state[number]) or (kind == PUSH and m.narrow_push[number]):
                decided = np.int64(1)
        out[j, 0] = intern(data, offset, table, count, end)
        out[j, 1] = intern(data2, offset2, table2, count2, end2)
        out[j, 2] = decided
        out[j, 3] = dearest
    return jobs.shape[0]


@kernel()
def walk_chains(m, t, jobs, at, memo, st, frames, lists, profiles, limits, out):  # type: ignore[no-untyped-def]
    """Rows of exit profiles continued under a stack symbol; no counter goes on there.

    What lies below a node depends on nothing but the state behind it: it is walked once.

    Args:
        jobs: int32 [·, 2]: profile of the pool, stack symbol.
        memo: scratch.
        lists, profiles, limits, out: as for `walk_states`.

    Returns:
        the number of the first job that was not walked.
    """
    data, offset, table, count = lists
    data2, offset2, table2, count2 = profiles
    slots, ends, tokens, records = memo.slots, memo.ends, memo.tokens, memo.records
    result = np.zeros(4, np.int64)
    slots[:, 0] = -1
    known = np.int64(0)
    for j in range(at, jobs.shape[0]):
        if not room(data, offset, table, count, limits[0]) or not room(data2, offset2, table2, count2, limits[1]):
            return j
        first, last = offset2[jobs[j, 0]], offset2[jobs[j, 0] + 1]
        mode = np.int64(data2[first])
        base = m.return_offset[jobs[j, 1]]
        end, begin2 = np.int64(offset[count[0]]), np.int64(offset2[count2[0]])
        data2[begin2] = mode
        end2 = begin2 + 1
        decided, dearest = np.int64(0), np.int64(0)
        for i in range(first + 1, last, 2):
            node = np.int64(data2[i])
            place = base + data2[i + 1]
            if m.return_[place, 0] != base:
                continue  # this stack symbol is never under such a frame
            back = np.int64(m.return_[place, 1])
            key = node << 33 | back << 1 | mode
            slot, known = _place(memo, known, limits, key)
            if slots[slot, 0] != key:
                slots[slot, 0], slots[slot, 1] = key, known
                result[2] = 0
                result[3] = 0
                c = np.int64(_act(back & ACTION_MASK, np.int64(0)))
                _walk(
                    m, t, node + 1, np.int64(t.skip[node]), back >> ACTION_BITS, c,
                    np.int64(1), mode, st, frames, tokens, ends[known, 0], records, ends[known, 1], result,
                )  # fmt: skip
                known += 1
                for k in range(4):
                    ends[known, k] = result[k]
            n = slots[slot, 1]
            end, end2 = _take(memo, n, data, end, data2, end2)
            decided = max(decided, ends[n + 1, 2])
            dearest = max(dearest, ends[n + 1, 3])
        out[j, 0] = intern(data, offset, table, count, end)
        out[j, 1] = intern(data2, offset2, table2, count2, end2) if end2 > begin2 + 1 else -1
        out[j, 2] = decided
        out[j, 3] = dearest
    return jobs.shape[0]
