"""The shortest close of a choice of tools, from that of the whole bundle.

Most close cells stay: their close token leads where it led. The others, before the name of a tool is settled, get the
best of all tokens that are left. Where that takes more than before, what tokens can cost is looked at anew, from the
states that can come to such a cell within a token.

Leaves out   the transitions of the choice (subset.py), the bounds of the whole (compiler/lift/completion.py).
Invariants   those of compiler/lift/completion.py hold for the tables of the choice. Nothing becomes cheaper
             by a token that the choice does not have.
Trusts       what completion_automaton.py does, and marks that name tools. All checked on opening.
Upper bounds What a token can cost below a frame is taken over all ends of tokens, not only those that can come there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..errors import DecodeError
from ..format.container import UNSOUND, refuse
from ..format.kernels.step import act, op_in, phase, phases_of
from ..format.ops import ACTION_BITS, FINISHED, KEEP, KIND_BITS, KIND_MASK, POP, PUSH
from ..format.tables import NEVER, Tables
from ..format.vocab import Vocab
from ..jit.memory import BARE, copy_row, grown, kernel
from .completion_automaton import MANY, Closing, lows_of, most, op_of, owed_cells, ranges_of, returns_of, step
from .shortest_paths import rows_of, signs_of, tokens_along, ways_out
from .stack_depths import depths_of, moves_of

_FAR = 1 << 20  # a distance that no token has
_FEW = 8  # states of `Calm`
_ASCII = np.uint64(1 << 32)  # below it: groups of four bytes that are ASCII


class Texts(NamedTuple):
    """The tokens of a vocabulary.

    node_…: as in the vocab file;  height int32 [nodes]: bytes of the longest token below;  below uint64 [nodes]: the
    bytes below, in groups of four;  byte_node int32 [·]: nodes that stand below another, by their byte, those of byte b
    from byte_offset int32 [257] [b] on;  plain bool [V]: a token is matched by its bytes;  symbol int32 [V]: the
    special symbol of the others;  special int32 [·, 2]: symbol, token.
    """

    node_byte: np.ndarray
    node_depth: np.ndarray
    node_skip: np.ndarray
    node_token_offset: np.ndarray
    node_tokens: np.ndarray
    token_offset: np.ndarray
    token_bytes: np.ndarray
    height: np.ndarray
    below: np.ndarray
    byte_node: np.ndarray
    byte_offset: np.ndarray
    plain: np.ndarray
    symbol: np.ndarray
    special: np.ndarray


@kernel()
def heights(byte, skip, height, below):  # type: ignore[no-untyped-def]
    """height int32 [nodes] = bytes of the longest way below each node;  below uint64 [nodes]: see `Texts`."""
    for i in range(byte.size - 1, -1, -1):
        child = i + 1
        while child < skip[i]:
            height[i] = max(height[i], height[child] + 1)
            below[i] |= below[child] | np.uint64(1) << np.uint64(byte[child] >> 2)
            child = skip[child]


class Calm(NamedTuple):
    """Bytes on which nothing changes, by state.

    on uint64 [states]: in groups of four: those on which it stays where it is, and beyond ASCII also all where they
    lead to few states, as the bytes of a character do, and back;  most int32 [states]: the largest bound of these.
    """

    on: np.ndarray
    most: np.ndarray


@kernel()
def find_calm(a, cells, state, on, most_):  # type: ignore[no-untyped-def]
    """`Calm` of the states of these cells."""
    few = np.empty(_FEW, np.int64)
    for x in cells:
        q = np.int64(state[x])
        if a.state_break[q] != 0:
            continue
        stay = np.uint64(0)
        for group in range(64):
            same = True
            for byte in range(4 * group, 4 * group + 4):
                same = same and op_of(a, np.int64(a.state_cell[q]), a.symbol_class[byte]) == (q << KIND_BITS | KEEP)
            if same:
                stay |= np.uint64(1) << np.uint64(group)
        largest_ = most(a, q, np.int64(0), np.int64(MANY))
        on[q], most_[q] = stay, largest_
        wider = stay | ~(_ASCII - np.uint64(1))
        few[0], count, done = q, 1, 0
        while done < count <= _FEW:
            cell = np.int64(a.state_cell[few[done]])
            done += 1
            for byte in range(256):
                if wider >> np.uint64(byte >> 2) & np.uint64(1) == 0:
                    continue
                op = op_of(a, cell, a.symbol_class[byte])
                r = op >> KIND_BITS
                if op == 0 or r in few[:count]:
                    continue
                if count == _FEW or op & KIND_MASK != KEEP or a.state_break[r] != 0 or r < 2:
                    count = _FEW + 1
                    break
                few[count] = r
                count += 1
                largest_ = max(largest_, np.int64(most(a, r, np.int64(0), np.int64(MANY))))
        if count <= _FEW:
            on[q], most_[q] = wider, largest_


@kernel()
def _cost_of(a, t, stops, q, low, high, token, mode, st, frames):  # type: ignore[no-untyped-def]
    """The bound above the frame after a token; NEVER if it cannot be read, or goes on below the frame.

    0 where it opens an object whose members stand in any order: its bound is less at the beginning than that of its
    state, and as it was, since no choice of tools changes arguments.
    """
    st[0, 0], st[0, 1], st[0, 2], st[0, 3], st[0, 4] = q, low, high, -1, 0
    begin, end = t.token_offset[token], t.token_offset[token + 1]
    if not t.plain[token]:
        begin, end = 0, 1
    if begin == end:
        return NEVER
    for i in range(begin, end):
        depth = i - begin + 1
        symbol = np.int64(t.token_bytes[i]) if t.plain[token] else np.int64(t.symbol[token])
        code = step(a, st, frames, depth, symbol, mode)
        if code >= 2 and i + 1 == end:
            return 0
        if code != 1:
            return NEVER
    depth = end - begin
    if stops[st[depth, 0]] and st[depth, 3] >= 0 and st[depth, 4] < NEVER:
        return 0
    return min(NEVER, most(a, st[depth, 0], st[depth, 1], st[depth, 2]) + st[depth, 4])


@kernel()
def keep(a, t, order, state, stops, begun, before, close_token, st, frames):  # type: ignore[no-untyped-def]
    """Give cells their bounds as before where their close tokens keep them.

    Args:
        stops: bool [states]: with a way list;  begun: see `Depths`.
        order: int64 [·]: close cells, the smallest bound first, since each needs those after its tokens.
        state: int32 [close cells].
        before: int32 [close cells]: the bounds; a.bound receives those that stay.
    """
    for x in order:
        kept = True
        for mode in range(a.modes):
            token = close_token[x, mode]
            if mode > 0 and not begun[state[x]]:
                continue
            if token < 0 or (
                _cost_of(
                    a, t, stops, np.int64(state[x]), np.int64(a.low[x]), np.int64(a.high[x]), token, mode, st, frames
                )
                >= before[x]
            ):
                kept = False
        if kept:
            a.bound[x] = before[x]


@kernel()
def _walk(a, t, begin, end, mode, reach, calm, st, frames, result):  # type: ignore[no-untyped-def]
    """Into result int64 [3]: the largest and the least bound after a token of these nodes, and the token of the latter.

    Moves within a frame are written out over local names of the arrays, which is ten times as fast as `step`.

    Args:
        reach: int32 [states]: where it is more than the bytes that can follow in the frame, nothing below is looked at.
        calm: where all bytes below are of these, and no bound there is larger than one that was found, nothing below is
            looked at. Empty for those who ask for the least bound.
        st: as of `step`, and two more columns: the bound after what was read so far, and the cell.
    """
    node_depth, node_byte, node_skip, height, below = t.node_depth, t.node_byte, t.node_skip, t.height, t.below
    offset, tokens, plain = t.node_token_offset, t.node_tokens, t.plain
    calm_on, calm_most = calm.on, calm.most
    symbol_class, delta, cell_delta, cell_default = a.symbol_class, a.delta, a.cell_delta, a.cell_default
    state_cell, state_break, first, bound = a.state_cell, a.state_break, a.close_first, a.bound
    if begin < end:
        _note(a, st, np.int64(node_depth[begin]) - 1)
    i = np.int64(begin)
    while i < end:
        depth, after = np.int64(node_depth[i]), np.int64(node_skip[i])
        above = depth - 1
        cell, q = st[above, 6], st[above, 0]
        op = op_in(delta, np.int64(cell_delta[cell]), np.int64(cell_default[cell]), symbol_class[node_byte[i]])
        kind, code = op & KIND_MASK, np.int64(1)
        if op == 0 or q == 1:
            i = after
            continue
        if kind < PUSH:
            q = op >> KIND_BITS
            st[depth, 0], st[depth, 3], st[depth, 4] = q, st[above, 3], st[above, 4]
            st[depth, 1] = act(kind, st[above, 1])
            st[depth, 2] = act(kind, st[above, 2])
            if first[q + 1] == first[q] + 1 and state_break[q] == 0 and q != 1:
                st[depth, 5], st[depth, 6] = bound[first[q]] + st[depth, 4], state_cell[q]
            else:
                _note(a, st, depth)
        else:
            code = step(a, st, frames, depth, np.int64(node_byte[i]), mode)
            if code == 0:
                i = after
                continue
            if code == 1:
                _note(a, st, depth)
        value = min(st[depth, 5], np.int64(NEVER)) if code == 1 else np.int64(0)
        if value > result[0] or value < result[1]:
            for k in range(offset[i], offset[i + 1]):
                if plain[tokens[k]]:
                    _found(result, value, tokens[k])
        if (
            code >= 2
            or (st[depth, 3] < 0 and reach[st[depth, 0]] > height[i])
            or (
                below[i] & ~calm_on[st[depth, 0]] == 0
                and (value if below[i] < _ASCII else calm_most[st[depth, 0]] + st[depth, 4]) <= result[0]
            )
        ):
            i = after
        else:
            i += 1


@kernel(**BARE)
def _note(a, st, depth):  # type: ignore[no-untyped-def]
    """Write the bound after what was read so far into st[depth, 5], the cell into st[depth, 6]."""
    q, low, high = st[depth, 0], st[depth, 1], st[depth, 2]
    st[depth, 5] = most(a, q, low, high) + st[depth, 4]
    st[depth, 6] = a.state_cell[q] + phase(a.breaks, a.state_break[q], low)


@kernel()
def _found(result, value, token):  # type: ignore[no-untyped-def]
    value = min(value, NEVER)
    result[0] = max(result[0], value)
    if value < result[1]:
        result[1] = value
        result[2] = token


@kernel()
def _specials(a, t, mode, st, frames, result):  # type: ignore[no-untyped-def]
    """The same for the special tokens from st[0]."""
    for k in range(t.special.shape[0]):
        code = step(a, st, frames, np.int64(1), np.int64(t.special[k, 0]), mode)
        if code == 1:
            _found(result, most(a, st[1, 0], st[1, 1], st[1, 2]) + st[1, 4], t.special[k, 1])
        elif code >= 2:
            _found(result, np.int64(0), t.special[k, 1])


@kernel()
def _tokens(a, t, q, low, high, mode, near, calm, st, frames, result):  # type: ignore[no-untyped-def]
    """The same for all tokens from a state."""
    result[0], result[1], result[2] = 0, NEVER, -1
    st[0, 0], st[0, 1], st[0, 2], st[0, 3], st[0, 4] = q, low, high, -1, 0
    _walk(a, t, 0, t.node_byte.size, mode, near, calm, st, frames, result)
    _specials(a, t, mode, st, frames, result)


@kernel()
def renew(a, t, cells, state, begun, near, calm, close_token, st, frames):  # type: ignore[no-untyped-def]
    """Bounds and close tokens of the cells that have none, by every token, until none gets better.

    begun: see `Depths`;  near: int32 [states], all 0;  calm: see `_walk`.
    """
    result = np.zeros(3, np.int64)
    chosen = np.zeros(a.modes, np.int32)
    going = True
    while going:
        going = False
        for x in cells:
            worst = 0
            for mode in range(a.modes):
                if mode > 0 and not begun[state[x]]:
                    chosen[mode] = chosen[0]
                    continue
                q, low, high = np.int64(state[x]), np.int64(a.low[x]), np.int64(a.high[x])
                _tokens(a, t, q, low, high, mode, near, calm, st, frames, result)
                worst = max(worst, result[1] + 1)
                chosen[mode] = result[2]
            if worst < a.bound[x]:
                a.bound[x] = worst
                copy_row(close_token, x, chosen)
                going = True


@kernel()
def distances(a, row, offset, ops, dearer_state, dearer_symbol, reach):  # type: ignore[no-untyped-def]
    """reach int32 [states], with 0 for dearer states and a large number for the others, becomes at most how many
    symbols are read in its frame and those above until a dearer state or stack symbol.

    Args:
        row, offset, ops: see `Moves`.
    """
    states = reach.size
    source = np.empty(1024, np.int32)
    target = np.empty(1024, np.int32)
    weight = np.empty(1024, np.int32)
    count = 0
    for q in range(2, states):
        cell = a.state_cell[q]
        for x in range(cell, cell + phases_of(a.breaks, a.state_break[q])):
            for op in ops[offset[row[x]] : offset[row[x] + 1]]:
                kind, number = op & KIND_MASK, op >> KIND_BITS
                if kind == POP:
                    continue
                first, end = 0, 0
                if kind == PUSH:
                    g = a.push[number, 0]
                    first, end = a.back_offset[g], a.back_offset[g + 1]
                    if dearer_symbol[g]:
                        reach[q] = min(reach[q], 1)
                while count + 3 + end - first > source.size:
                    source, target, weight = grown(source), grown(target), grown(weight)
                if kind < PUSH:
                    source[count], target[count], weight[count] = q, number, 1
                    count += 1
                else:
                    for entered in range(1, 1 + a.modes):
                        source[count], target[count], weight[count] = q, a.push[number, entered], 1
                        count += 1
                    for i in range(first, end):
                        source[count], target[count], weight[count] = q, a.back[i] >> ACTION_BITS, 2
                        count += 1
    going = True
    while going:
        going = False
        for e in range(count - 1, -1, -1):
            found = reach[target[e]] + weight[e]
            if found < reach[source[e]]:
                reach[source[e]] = found
                going = True


@kernel()
def costs(a, t, roots, cells, state, begun, reach, calm, after, st, frames):  # type: ignore[no-untyped-def]
    """after int32 [close cells, modes] becomes at least the largest bound after a token, of these cells.

    Tokens that are too short to come to a dearer state cost what they did before. What lies below a first byte depends
    on nothing but its op where the counter may be any: most of that is remembered.

    Args:
        roots: int32 [·], the nodes of first bytes; the earlier a dear one comes the better;  calm: see `_walk`.
    """
    result = np.zeros(3, np.int64)
    known = np.full((1 << 14, 3), -1, np.int64)  # first byte and op; the largest bound; whether there is none so large
    node_byte, node_skip, height = t.node_byte, t.node_skip, t.height
    symbol_class, delta, cell_delta, cell_default = a.symbol_class, a.delta, a.cell_delta, a.cell_default
    for mode in range(a.modes):
        known[:, 0] = -1
        for x in cells:
            if mode > 0 and not begun[state[x]]:
                continue
            q, low, high = np.int64(state[x]), np.int64(a.low[x]), np.int64(a.high[x])
            anywhere = low == 0 and high == MANY
            st[0, 0], st[0, 1], st[0, 2], st[0, 3], st[0, 4] = q, low, high, -1, 0
            result[0] = after[x, mode]
            cell = a.state_cell[q] + phase(a.breaks, a.state_break[q], low)
            base, default = np.int64(cell_delta[cell]), np.int64(cell_default[cell])
            for root in roots:
                node = np.int64(root)
                if reach[q] > height[node] + 1:
                    continue
                op = op_in(delta, base, default, symbol_class[node_byte[node]])
                if op == 0:
                    continue
                key = op << 8 | node_byte[node]
                slot = (key * 0x9E3779B1 >> 12) & (known.shape[0] - 1)
                before = result[0]
                if anywhere and known[slot, 0] == key and (known[slot, 1] <= before or known[slot, 2] == 0):
                    result[0] = max(before, known[slot, 1])
                    continue
                _walk(a, t, node, np.int64(node_skip[node]), mode, reach, calm, st, frames, result)
                if anywhere:
                    known[slot, 0], known[slot, 1], known[slot, 2] = key, result[0], result[0] == before
            _specials(a, t, mode, st, frames, result)
            after[x, mode] = result[0]


@kernel()
def costs_below(a, t, cells, state, crossed, reach, calm, st, frames, worst):  # type: ignore[no-untyped-def]
    """worst int32 [states] becomes at least the largest bound after an end of any token, read from these cells: where
    a state can come to a dearer one within that end."""
    result = np.zeros(3, np.int64)  # no bound is less than the least
    for x in cells:
        q = np.int64(state[x])
        cell = a.state_cell[q] + phase(a.breaks, a.state_break[q], a.low[x])
        base, default = np.int64(a.cell_delta[cell]), np.int64(a.cell_default[cell])
        result[0] = worst[q]
        for mode in range(a.modes):
            if mode > 0 and not crossed[q]:
                continue
            for byte in range(256):
                if op_in(a.delta, base, default, a.symbol_class[byte]) == 0:
                    continue
                for i in range(t.byte_offset[byte], t.byte_offset[byte + 1]):
                    node = t.byte_node[i]
                    if reach[q] > t.height[node] + 1:
                        continue
                    above = t.node_depth[node] - 1
                    st[above, 0], st[above, 1], st[above, 2], st[above, 3], st[above, 4] = q, a.low[x], a.high[x], -1, 0
                    _walk(a, t, node, t.node_skip[node], mode, reach, calm, st, frames, result)
        worst[q] = result[0]


def texts_of(vocab: Vocab, tables: Tables) -> Texts:
    kept = vocab.__dict__.get("_heights")
    if kept is None:
        height, under = np.zeros(vocab.node_byte.size, np.int32), np.zeros(vocab.node_byte.size, np.uint64)
        heights(vocab.node_byte, vocab.node_skip, height, under)
        inner = np.flatnonzero(vocab.node_depth > 1).astype(np.int32)
        by_byte = inner[np.argsort(vocab.node_byte[inner], kind="stable")]
        offset = np.searchsorted(vocab.node_byte[by_byte], np.arange(257)).astype(np.int32)
        kept = vocab.__dict__["_heights"] = height, under, by_byte, offset
    height, under, by_byte, offset = kept
    symbol = np.zeros(vocab.size, np.int32)
    symbol[tables.special_token] = tables.special_symbol
    special = np.stack([tables.special_symbol, tables.special_token], axis=1).astype(np.int32)
    return Texts(
        vocab.node_byte, vocab.node_depth, vocab.node_skip, vocab.node_token_offset, vocab.node_tokens,
        vocab.token_offset, vocab.token_bytes, height, under, by_byte, offset, symbol == 0, symbol, special,
    )  # fmt: skip


class Partition(NamedTuple):
    """Cells of owners: owner int32 [cells], low and high int32 [cells]; counters of each."""

    owner: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @staticmethod
    def of(t: Tables, first: str, breaks: str, size: int) -> Partition:
        """Raises BundleError: the cells do not lie in the order of their owners, as every compile leaves them."""
        starts, count = getattr(t, first), t.cells_of(breaks)
        if int(count.sum()) != size or (starts != np.cumsum(count) - count).any():
            raise refuse(
                "a choice of tools", first, "cells apart", f"one after the other, as {breaks} has them", UNSOUND
            )
        _, low, high = ranges_of(lows_of(getattr(t, breaks), t.close_breaks), count.size)
        return Partition(np.repeat(np.arange(count.size, dtype=np.int32), count), low, high)


def closing_of(
    t: Tables, vocab: Vocab, entries: Iterable[int], thinned: np.ndarray, soft_depth: int, name: str
) -> dict[str, np.ndarray] | None:
    """The arrays of the shortest close that are other ones when transitions are taken out; None where none are known.

    Args:
        t: the tables, with the transitions that are left, and what was known of the close with all.
        entries: where texts may begin.
        thinned: bool [states]: of which a transition was taken out.
        soft_depth: from which depth on tokens are read in mode 1.
        name: of the bundle, for errors.

    Raises DecodeError: some state has no way to the end any more. In mode 1 a frame takes its lowest texts alone, and
    they may be those of a tool that is left out.
    """
    if (t.close_bound >= NEVER).all():
        return None
    cells = Partition.of(t, "state_close", "close_break", int(t.close_bound.size))
    owed_of = Partition.of(t, "owed_first", "owed_break", int(t.owed.size))
    texts, moves = texts_of(vocab, t), moves_of(t)
    reached, begun, crossed = depths_of(t, moves, vocab, entries, soft_depth)
    back_offset, back = returns_of(t, reached)
    bound = np.full(t.close_bound.size, NEVER, np.int32)
    first = np.append(t.state_close, np.int32(bound.size))
    alive = np.zeros((0, 4), np.uint64)
    of_cells = first, t.close_break, t.close_breaks, cells.low, cells.high
    a = Closing.of(t, t.delta, (back_offset, back), of_cells, bound, alive, np.zeros(t.return_offset.size, np.int32))
    _set_due(a, t, owed_of)
    depth = vocab.longest + 2
    st, frames = np.zeros((depth, 7), np.int64), np.zeros((depth, 5), np.int64)
    live = (cells.owner > FINISHED) & reached[cells.owner] & (t.close_bound < NEVER)
    stops = t.state_way > 0  # these lie in arguments, which no choice of tools changes
    held = stops[cells.owner]
    bound[held] = t.close_bound[held]
    live &= ~held
    bound[t.state_close[FINISHED]] = 0
    ahead = np.where(thinned, 0, _FAR).astype(np.int32)  # symbols until one is missing, in the frame or above it
    distances(a, moves.rows.of, moves.offset, moves.op, thinned, np.zeros(t.return_offset.size, bool), ahead)
    untouched = live & (ahead[cells.owner] >= _FAR)
    bound[untouched] = t.close_bound[untouched]
    order = np.argsort(t.close_bound, kind="stable")
    close_token = t.close_token.copy()
    keep(a, texts, order[(live & ~untouched)[order]], cells.owner, stops, begun, t.close_bound, close_token, st, frames)
    near, calm = np.zeros(t.states, np.int32), Calm(np.zeros(t.states, np.uint64), np.zeros(t.states, np.int32))
    signs = signs_of(t, vocab)
    _, policy, order = ways_out(a, rows_of(a, moves.rows), signs, np.zeros(0, np.int64), np.zeros(0, np.int32))
    tokens_along(a, vocab, signs, order[(live & (bound >= NEVER))[order]], policy, stops, close_token)
    renew(
        a, texts, np.flatnonzero(live & (bound >= NEVER))[::-1], cells.owner, begun, near, calm, close_token, st, frames
    )
    if (live & (bound >= NEVER)).any():
        raise DecodeError(
            "the tools of this bundle cannot be chosen from",
            place=name,
            found="deep texts in which only a call of another tool is low enough",
            hint="compile the tools that are wanted, or all with a larger soft_depth",
        )
    close_token[bound >= NEVER] = -1
    owed = np.zeros(t.owed.size, np.int32)
    owed_cells(a, owed_of.owner, owed_of.low, owed_of.high, owed)
    found = {"close_bound": bound, "close_token": close_token, "owed": owed}
    dearer_state = np.zeros(t.states, bool)
    dearer_state[cells.owner[live & (bound > t.close_bound)]] = True
    dearer_symbol = np.zeros(t.return_offset.size, bool)
    dearer_symbol[owed_of.owner[owed > t.owed]] = True
    if not dearer_state.any() and not dearer_symbol.any():
        return found
    reach = np.where(dearer_state, 0, _FAR).astype(np.int32)
    distances(a, moves.rows.of, moves.offset, moves.op, dearer_state, dearer_symbol, reach)
    after = t.close_after.copy()
    touched = np.flatnonzero(live & (reach[cells.owner] <= vocab.longest))
    roots = np.flatnonzero(vocab.node_depth == 1)[::-1].astype(np.int32)
    find_calm(a, touched, cells.owner, *calm)
    costs(a, texts, roots, touched, cells.owner, begun, reach, calm, after, st, frames)
    returned = np.zeros(t.states, bool)
    returned[back >> ACTION_BITS] = True
    below = np.flatnonzero(live & returned[cells.owner] & (reach[cells.owner] < vocab.longest))
    worst = np.zeros(t.states, np.int32)
    costs_below(a, texts, below, cells.owner, crossed, reach, calm, st, frames, worst)
    symbol_of = np.repeat(np.arange(t.return_offset.size), np.diff(back_offset))
    worst_of_symbol = np.zeros(t.return_offset.size, np.int32)
    np.maximum.at(worst_of_symbol, symbol_of, worst[back >> ACTION_BITS])
    found["close_after"] = after
    found["chain_after"] = _chain_after(t, worst_of_symbol)
    found["state_forced"] = np.where(reach < _FAR, 0, t.state_forced).astype(np.int32)
    return found


def _set_due(a: Closing, t: Tables, owed_of: Partition) -> None:
    """What is due of frames (`Closing`): what is owed under their stack symbols beyond the bounds that follow there."""
    if not t.has_registers:
        return
    back_offset, back = returns_of(t, np.ones(t.states, bool))
    before = a._replace(back_offset=back_offset, back=back, bound=t.close_bound.copy())
    plain = np.zeros(t.owed.size, np.int32)
    owed_cells(before, owed_of.owner, owed_of.low, owed_of.high, plain)
    np.maximum.at(a.due, owed_of.owner, t.owed - plain)


def _chain_after(t: Tables, worst: np.ndarray) -> np.ndarray:
    """`chain_after`, raised to the worst below each stack symbol int32 [stack symbols]."""
    of_chain = np.zeros(t.chain_cell.size, np.int32)
    base = np.unique(t.chain_offset)[:, None]
    entry = t.chain[base + np.arange(worst.size)]
    row, symbol = np.nonzero(entry[:, :, 0] == base)
    np.maximum.at(of_chain, entry[row, symbol, 1], worst[symbol])
    count = t.cells_of("chain_break")
    place = np.repeat(t.chain_cell - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    after = t.chain_after.copy()
    np.maximum.at(after, place, np.repeat(of_chain, count))
    return after
