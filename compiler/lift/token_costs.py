"""Compute what one token can cost: the largest bound after any token of a mask, by walks over the trie.

Leaves out   the bounds (runtime/selection/shortest_paths.py), which cells are asked for (completion.py).
Arrays       st int64 [depth, 7] is scratch: state, low, high, top frame (-1 none), what the frames opened by the token
             owe, place in `order`, cell (see `rows_and_bounds`); frames int64 [depth, 5]: stack symbol, saved low,
             saved high, frame beneath, owed before. As in walk.py a frame is named by the depth of the byte that
             pushed it. open_ int64 [depth, 6]: walks to be remembered: end, key, what was found before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.kernels.step import act, op_in, phase, phases_of
from toolc.runtime.format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.format.tables import NEVER
from toolc.runtime.jit.memory import BARE, kernel
from toolc.runtime.selection.completion_automaton import MANY, largest, most, op_at, op_of, owing, step

from ..passes import Pass
from ..terminals.workspace import ADD_ONE
from .children import next_child
from .walk import is_calm

_CALM = ord("~")  # a calm byte, see `is_calm`
_WORTH = 300  # nodes of a subtree whose walk is remembered; of a smaller one looking it up costs more


class Memo(NamedTuple):
    """Walks of subtrees that are known, of one trie and set of bounds.

    What lies below a node depends on nothing but the node, the mode and the op on its byte, where the token opened no
    frame and no counter is known.

    at int64 [2]: the round, counted up whenever everything is forgotten, and the walks known in it;  slots int64 [power
    of two, 3]: the round, where it is of another free; key; number of the walk;  found int64 [walks, 4]: the `result`
    of each.
    """

    at: np.ndarray
    slots: np.ndarray
    found: np.ndarray

    @staticmethod
    def make(walks: int = 1 << 16) -> Memo:
        """With room for so many walks, a power of two; what is never touched costs nothing."""
        return Memo(np.array([1, 0], np.int64), np.zeros((4 * walks, 3), np.int64), np.zeros((walks, 4), np.int64))

    def part(self, walks: int) -> Memo:
        """Knows nothing, and has room for about so many walks if it can: what is small stays in the cache."""
        self.forget()
        if not Pass.COST_MEMO.on:
            return Memo(self.at, self.slots[:4], self.found[:0])
        kept = min(len(self.found), 1 << max(6, walks.bit_length()))
        return Memo(self.at, self.slots[: 4 * kept], self.found[:kept])

    def forget(self) -> None:
        self.at[0] += 1
        self.at[1] = 0


@kernel(**BARE)
def _slot(memo, key):  # type: ignore[no-untyped-def]
    """Where a key is, or would be."""
    slots, round_ = memo.slots, memo.at[0]
    slot = (((key >> 33) * 0x9E3779B1 + key) * 0x85EBCA6B >> 16) & (slots.shape[0] - 1)
    while slots[slot, 0] == round_ and slots[slot, 1] != key:
        slot = (slot + 1) & (slots.shape[0] - 1)
    return slot


@kernel(**BARE)
def _first_token(t, is_special, i):  # type: ignore[no-untyped-def]
    """The first token of the part that ends at a place and is matched by its text, -1 for none."""
    for k in range(t.token_offset[t.order[i]], t.token_offset[t.order[i] + 1]):
        if t.own[t.tokens[k]] and not is_special[t.tokens[k]]:
            return np.int64(t.tokens[k])
    return np.int64(-1)


@kernel()
def rows_and_bounds(a):  # type: ignore[no-untyped-def]
    """Side by side what a walk wants of a state, int64 [states, 3]: a cell with its transitions, and its bound; -1 for
    what depends on the counter, and for the cell of the finished state. And 2 where calm bytes (walk.py) lead
    back to it and control characters are dead, whatever the counter; 1 where they do so counting, up to some limit, and
    the bound does not change; else 0."""
    out = np.zeros((a.state_cell.size, 3), np.int64)
    for q in range(out.shape[0]):
        cell, close = np.int64(a.state_cell[q]), np.int64(a.close_first[q])
        beyond = cell + phases_of(a.breaks, a.state_break[q])
        out[q, 0], out[q, 1] = cell, a.bound[close]
        for other in range(cell + 1, beyond):
            if a.cell_delta[other] != a.cell_delta[cell]:
                out[q, 0] = -1
        for other in range(close + 1, a.close_first[q + 1]):
            if a.bound[other] != a.bound[close]:
                out[q, 1] = -1
        op = np.int64(-1)
        if _op(a, cell, _CALM) >> KIND_BITS == q:  # most states can be told by one byte
            op = _op_of_calm(a, cell)
        if op == q << KIND_BITS and out[q, 0] >= 0:
            out[q, 2] = 2
        elif op == q << KIND_BITS | ADD_ONE and out[q, 1] >= 0:
            out[q, 2] = 1
            for other in range(cell + 1, beyond):
                found = _op_of_calm(a, np.int64(other))
                if found != op and found != 0:
                    out[q, 2] = 0
    out[1, 0], out[1, 1], out[1, 2] = -1, 0, 0
    return out


@kernel(**BARE)
def _op_of_calm(a, cell):  # type: ignore[no-untyped-def]
    """The op of a cell on all calm bytes; -1 where they have several, or a control character has one."""
    op = _op(a, cell, _CALM)
    for byte in range(128):
        if (byte < 32 and _op(a, cell, byte) != 0) or (is_calm(byte) and _op(a, cell, byte) != op):
            return np.int64(-1)
    return op


@kernel(**BARE)
def _op(a, cell, byte):  # type: ignore[no-untyped-def]
    """The op of a cell on a byte."""
    return op_of(a, cell, np.int64(a.symbol_class[byte]))


@kernel(**BARE)
def dearest(a, of_state, t, segments, offset, modes, is_special, memo, open_, st, frames, out):  # type: ignore[no-untyped-def]
    """The largest and the least bound after tokens that stay above a frame, or just leave it.

    Large subtrees are walked once where the memo holds; such walks nest. The step is written out over local names of
    the arrays, which is several times as fast as calling `step`; so are all walks of a call.

    Args:
        of_state: see `rows_and_bounds`.
        t: the trie, or what lies outside of a slice;  memo: of it and these bounds.
        segments: int32 [·, 6]: parts of the trie, as the first place in `order` and that after the last, the place of
            the parent, and from where: state and the interval of its counter.
        offset: int64 [jobs + 1]: job j walks the segments from ``offset[j]`` to ``offset[j + 1]``.
        modes: int32 [jobs].
        is_special: bool [V]: these are not matched by their text.
        out: int64 [jobs, 4], receives the largest bound, the least (NEVER: none), its token, whether anything was
            pushed.
    """
    packed, skip, wide, root = t.packed[:, 0], t.skip, t.children.wide, t.order.size
    symbol_class, state_cell, delta = a.symbol_class, a.state_cell, a.delta
    cell_delta, cell_default = a.cell_delta, a.cell_default
    state_break, breaks, close_first, bound = a.state_break, a.breaks, a.close_first, a.bound
    push, return_offset, return_ = a.push, a.return_offset, a.return_
    close_break, close_breaks, back_offset, back, due = a.close_break, a.close_breaks, a.back_offset, a.back, a.due
    counted = breaks.shape[1] > 0
    slots, found = memo.slots, memo.found
    for j in range(offset.size - 1):
        mode = np.int64(modes[j])
        dearest_, least, chosen, pushed = np.int64(0), np.int64(NEVER), np.int64(-1), np.int64(0)
        for segment in range(offset[j], offset[j + 1]):
            i, end, opened = np.int64(segments[segment, 0]), np.int64(segments[segment, 1]), 0
            if i >= end:
                continue
            depth = (packed[i] >> 40 & 0x3FFFFF) - 1
            st[depth, 0], st[depth, 1] = segments[segment, 3], segments[segment, 4]
            st[depth, 2], st[depth, 3], st[depth, 4] = segments[segment, 5], -1, 0
            st[depth, 5], st[depth, 6] = segments[segment, 2], of_state[segments[segment, 3], 0]
            while True:
                while opened > 0 and i == open_[opened - 1, 0]:
                    opened -= 1
                    n = memo.at[1]
                    if n == found.shape[0]:
                        memo.at[0] += 1  # full: forget
                        n = np.int64(0)
                    slot = _slot(memo, open_[opened, 1])
                    slots[slot, 0], slots[slot, 1], slots[slot, 2] = memo.at[0], open_[opened, 1], n
                    found[n, 0], found[n, 1], found[n, 2], found[n, 3] = dearest_, least, chosen, pushed
                    memo.at[1] = n + 1
                    dearest_ = max(dearest_, open_[opened, 2])
                    if open_[opened, 3] <= least:
                        least, chosen = open_[opened, 3], open_[opened, 4]
                    pushed = max(pushed, open_[opened, 5])
                if i >= end:
                    break
                place = packed[i]
                next_, byte, depth = place & 0xFFFFFFFF, place >> 32 & 255, place >> 40 & 0x3FFFFF
                q, low, high = st[depth - 1, 0], st[depth - 1, 1], st[depth - 1, 2]
                top, owed = st[depth - 1, 3], st[depth - 1, 4]
                cell = st[depth - 1, 6]
                if cell < 0:
                    cell = state_cell[q] + phase(breaks, state_break[q], low)
                op = op_in(delta, np.int64(cell_delta[cell]), np.int64(cell_default[cell]), symbol_class[byte])
                if op == 0 or q == 1:
                    parent = st[depth - 1, 5]
                    if wide[parent] < 0:
                        i = next_
                    else:
                        after = skip[parent] if parent < root else end
                        cell = state_cell[q] + phase(breaks, state_break[q], low)
                        i = next_child(t.children, a.alive, cell, parent, byte, after)
                    continue
                known = not counted or (low == 0 and high == MANY)
                if known and top < 0 and (depth == 1 or next_ - i >= _WORTH) and found.shape[0] > 0:
                    key = i << 33 | mode << 32 | np.int64(op)
                    slot = _slot(memo, key)
                    if slots[slot, 0] == memo.at[0]:
                        n = slots[slot, 2]
                        dearest_ = max(dearest_, found[n, 0])
                        if found[n, 1] < least:
                            least, chosen = found[n, 1], found[n, 2]
                        pushed = max(pushed, found[n, 3])
                        i = next_
                        continue
                    open_[opened, 0], open_[opened, 1] = next_, key
                    open_[opened, 2], open_[opened, 3], open_[opened, 4], open_[opened, 5] = (
                        dearest_,
                        least,
                        chosen,
                        pushed,
                    )
                    opened += 1
                    dearest_, least, chosen, pushed = np.int64(0), np.int64(NEVER), np.int64(-1), np.int64(0)
                kind, number = np.int64(op & KIND_MASK), np.int64(op >> KIND_BITS)
                leaves = False
                if kind == 0:
                    q = number
                elif kind < PUSH:
                    q, low, high = number, act(kind, low), act(kind, high)
                elif kind == PUSH:
                    q = np.int64(push[number, 1 + mode])
                    if q == 0:
                        i = next_
                        continue
                    pushed = np.int64(1)
                    action = np.int64(push[number, 3])
                    frames[depth, 0] = push[number, 0]
                    frames[depth, 1] = act(action, low)
                    frames[depth, 2] = act(action, high)
                    frames[depth, 3] = top
                    frames[depth, 4] = owed
                    g, least_, most_ = frames[depth, 0], frames[depth, 1], frames[depth, 2]
                    owed += owing(
                        back_offset, back, close_first, close_break, close_breaks, bound, due, g, least_, most_
                    )
                    owed = min(np.int64(NEVER), owed)
                    low, high, top = np.int64(0), np.int64(0), np.int64(depth)
                elif top >= 0:
                    base = return_offset[frames[top, 0]]
                    if return_[base + number, 0] != base:
                        i = next_
                        continue
                    after = np.int64(return_[base + number, 1])
                    q, then = after >> ACTION_BITS, after & ACTION_MASK
                    low, high = act(then, frames[top, 1]), act(then, frames[top, 2])
                    top, owed = frames[top, 3], frames[top, 4]
                else:
                    leaves = True
                ends = place >> 62 & 1 != 0
                calm = place < 0 and not leaves and of_state[q, 2] > (0 if ends else 1)  # below nothing costs more
                if calm or ends:
                    value = np.int64(0)
                    if not leaves:
                        value = of_state[q, 1]
                        if value < 0:
                            value = largest(close_first, close_break, close_breaks, bound, q, low, high)
                        value = min(np.int64(NEVER), owed + value)
                    if value > dearest_ or value < least:
                        token = _first_token(t, is_special, i)
                        if not ends:
                            below = i + 1
                            while token < 0 and below < next_:
                                token = _first_token(t, is_special, below)
                                below += 1
                        if token >= 0:
                            dearest_ = max(dearest_, value)
                            if value < least:
                                least, chosen = value, token
                        else:
                            calm = False
                if leaves or calm or next_ == i + 1:
                    i = next_
                    continue
                st[depth, 0], st[depth, 1], st[depth, 2], st[depth, 3], st[depth, 4] = q, low, high, top, owed
                st[depth, 5], st[depth, 6] = i, of_state[q, 0]
                i += 1
        out[j, 0], out[j, 1], out[j, 2], out[j, 3] = dearest_, least, chosen, pushed


@kernel(**BARE)
def _add_specials(a, state, cell, mode, specials, st, frames, out):  # type: ignore[no-untyped-def]
    """Special tokens, int32 [·, 2] of symbol and token, besides what `dearest` found from states and close cells."""
    for j in range(cell.size):
        q, low, high = np.int64(state[j]), np.int64(a.low[cell[j]]), np.int64(a.high[cell[j]])
        for k in range(specials.shape[0]):
            if op_at(a, q, low, np.int64(a.symbol_class[specials[k, 0]])) == 0:
                continue
            st[0, 0], st[0, 1], st[0, 2], st[0, 3], st[0, 4] = q, low, high, -1, 0
            code = step(a, st, frames, np.int64(1), np.int64(specials[k, 0]), mode)
            if code == 0:
                continue
            value = np.int64(0)
            if code == 1:
                value = min(np.int64(NEVER), most(a, st[1, 0], st[1, 1], st[1, 2]) + st[1, 4])
                out[j, 3] = max(out[j, 3], np.int64(st[1, 3] >= 0))
            out[j, 0] = max(out[j, 0], value)
            if value < out[j, 1]:
                out[j, 1], out[j, 2] = value, specials[k, 1]


@kernel()
def dearest_of_cells(a, of_state, t, cells, states, mode, specials, is_special, memo, open_, st, frames, out):  # type: ignore[no-untyped-def]
    """What `dearest` finds from close cells, int64 [jobs], of these states, int32 [jobs], with special tokens."""
    segments = np.zeros((cells.size, 6), np.int32)
    for j in range(cells.size):
        segments[j, 1] = segments[j, 2] = t.order.size
        segments[j, 3], segments[j, 4], segments[j, 5] = states[j], a.low[cells[j]], a.high[cells[j]]
    modes = np.full(cells.size, mode, np.int32)
    dearest(
        a, of_state, t, segments, np.arange(cells.size + 1), modes, is_special, memo, open_, st, frames, out
    )  # fmt: skip
    _add_specials(a, states, cells, mode, specials, st, frames, out)


@kernel()
def plain_or_own(  # type: ignore[no-untyped-def]
    cells, state_of, low, bound, along, loose, json, most_exact, plain, state_cell, state_break, breaks, cell_row,
    row_slice, mode,
):  # fmt: skip
    """Of close cells, int64 [n], the slice whose tokens are not walked, ``plain`` or -1 for none, and what those can
    cost, int32 [n]; and the slice of each cell's row, int64 [n].

    Args:
        state_of, low, bound, along: int32 [close cells]: state, least counter, bound; what plain text can cost.
        json: bool [slices + 1]: those of strings, the last answers for none;  most_exact: see completion.py.
        row_slice: empty where the slices of rows are of another kind.
    """
    slices, found = np.full(cells.size, -1, np.int32), np.zeros(cells.size, np.int32)
    own = np.full(cells.size, -1, np.int64)
    many = 0
    for j in range(cells.size):
        x = cells[j]
        if row_slice.size > 0:
            q = state_of[x]
            own[j] = row_slice[cell_row[state_cell[q] + phase(breaks, state_break[q], low[x]), mode]]
        if along[x] <= bound[x] + loose or (json[own[j]] and along[x] < NEVER):
            slices[j], found[j] = plain, along[x]
        elif own[j] < 0 and along[x] < NEVER:
            many += 1
    if many > most_exact:
        for j in range(cells.size):
            if slices[j] != plain and own[j] < 0 and along[cells[j]] < NEVER:
                slices[j], found[j] = plain, along[cells[j]]
    return slices, found, own


@kernel()
def dearest_below(a, of_state, t, jobs, offset, content, is_special, memo, open_, st, frames, out):  # type: ignore[no-untyped-def]
    """What `dearest` finds of tokens that left a frame, continued under a stack symbol.

    Args:
        t: the whole trie.
        jobs: int32 [·, 4]: profile, stack symbol, the interval of the counter saved beside it.
        offset: int64 [profiles + 1], content: int32 [·]: of the profiles, see walk.py.
    """
    begin, modes = np.zeros(jobs.shape[0] + 1, np.int64), np.zeros(jobs.shape[0], np.int32)
    for j in range(jobs.shape[0]):
        e = jobs[j, 0]
        begin[j + 1] = begin[j] + (offset[e + 1] - offset[e]) // 2
        modes[j] = content[offset[e]]
    segments = np.zeros((begin[-1], 6), np.int32)
    for j in range(jobs.shape[0]):
        base = a.return_offset[jobs[j, 1]]
        low, high = np.int64(jobs[j, 2]), np.int64(jobs[j, 3])
        for n in range(begin[j], begin[j + 1]):
            at = offset[jobs[j, 0]] + 1 + 2 * (n - begin[j])
            node, place = content[at], base + content[at + 1]
            if a.return_[place, 0] != base:
                continue  # such a frame never lies on this stack symbol: an empty segment
            back = np.int64(a.return_[place, 1])
            segments[n, 0], segments[n, 1], segments[n, 2] = node + 1, t.skip[node], node
            segments[n, 3] = back >> ACTION_BITS
            segments[n, 4], segments[n, 5] = act(back & ACTION_MASK, low), act(back & ACTION_MASK, high)
    dearest(a, of_state, t, segments, begin, modes, is_special, memo, open_, st, frames, out)
