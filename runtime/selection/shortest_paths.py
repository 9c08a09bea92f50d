"""Least ways out of every state: in bytes, and then in tokens.

Leaves out   what other tokens cost, which cells have bounds (compiler/lift/completion.py; completion.py).
Values       counters are intervals, as in completion_automaton.py.
Trusts       what trie_walk.py does, and that close cells lie side by side, one for each phase of a counter; weights are
             no less than 0 and at most NEVER. All checked on opening.
Source       Knuth 1977 (a generalization of Dijkstra's algorithm).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..format.kernels.step import act, phase, return_in
from ..format.ops import ACTION_BITS, ACTION_MASK, DEAD, FINISHED, KIND_BITS, KIND_MASK, POP, PUSH
from ..format.tables import NEVER, Tables
from ..format.vocab import Vocab
from ..jit.memory import BARE, kernel
from .comb import CombRows, rows_at
from .completion_automaton import Closing, largest, op_at, owing, phases

_RARE = 1000  # weight of a byte that is no token by itself
_LEVELS = 32  # of the queue of least weights, for values of 31 bits
_STEPS = 1 << 21  # of `least_ways`, and close cells of `tokens_on_the_way`, between two looks at a clock
_CELLS = 1 << 16


def _passing() -> None:
    """For those who have no clock."""


@kernel()
def distinct_ops(offset, column, value, weight, rank):  # type: ignore[no-untyped-def]
    """The ops of rows, each once, with the class of least weight, then rank, that has it.

    Args:
        offset, column, value: see `CombRows`.
        weight, rank: int32 [classes]; a class of weight NEVER is never read.

    Returns:
        offset int32 [rows + 2], op int32 [·], class int32 [·]: the same with ops.
    """
    ends = np.zeros(offset.size, np.int32)
    op_of, class_of = np.empty(column.size, np.int32), np.empty(column.size, np.int32)
    end = 0
    for r in range(offset.size - 1):
        for e in range(offset[r], offset[r + 1]):
            k, op = column[e], value[e]
            if weight[k] >= NEVER:
                continue
            i = end - 1
            while i >= ends[r] and op_of[i] != op:
                i -= 1
            if i < ends[r]:
                op_of[end] = op
                class_of[end] = k
                end += 1
            elif (weight[k], rank[k]) < (weight[class_of[i]], rank[class_of[i]]):
                class_of[i] = k
        ends[r + 1] = end
    return ends, op_of[:end], class_of[:end]


@kernel(**BARE)
def _level(value, now):  # type: ignore[no-untyped-def]
    """The number of the highest bit in which two values differ, from 1; 0 for equal ones."""
    differs, level = value ^ now, 0
    while differs > 0:
        differs >>= 1
        level += 1
    return level


@kernel(**BARE)
def _enqueue(queue, n, now, value, x):  # type: ignore[no-untyped-def]
    """Put entry n into a queue, a cell with a value that is no less than the last one that was taken out.

    Args:
        queue: a radix heap (Ahuja, Mehlhorn, Orlin, Tarjan 1990): the first entry of each level int32 [32], -1 for
            none; entries int32 [·, 3]: value, cell, next one of the level.
        now: the value that was taken out last.
    """
    first, entry = queue
    level = _level(value, now)
    entry[n, 0], entry[n, 1], entry[n, 2] = value, x, first[level]
    first[level] = n


@kernel(**BARE)
def _dequeue(queue, now):  # type: ignore[no-untyped-def]
    """Take out a cell of the least value: that value, and the cell, -1 where the queue is empty."""
    first, entry = queue
    if first[0] < 0:
        level = 1
        while level < _LEVELS and first[level] < 0:
            level += 1
        if level == _LEVELS:
            return now, np.int64(-1)
        n = np.int64(first[level])
        now = np.int64(entry[n, 0])
        while n >= 0:
            now = min(now, np.int64(entry[n, 0]))
            n = np.int64(entry[n, 2])
        n = np.int64(first[level])
        first[level] = -1
        while n >= 0:  # each goes to a lower level
            after = np.int64(entry[n, 2])
            _enqueue(queue, n, now, np.int64(entry[n, 0]), np.int64(entry[n, 1]))
            n = after
    n = np.int64(first[0])
    first[0] = entry[n, 2]
    return now, np.int64(entry[n, 1])


class Terms(NamedTuple):
    """What `least_ways` works on. A *term* is an op of a cell. It waits for one cell that it needs and that has no
    value yet; when that one has got its value, the term goes on to the next; when it needs no more, its cell has a
    candidate.

    begin int64 [cells + 1]: where the terms of each cell begin;  owner int32 [terms]: the cell of each.
    following int32 [terms]: the next term that waits for the same cell;  part, at int32 [terms]: which range of cells
    each is at, and where in it;  above, below int32 [terms]: the largest values so far of what is entered, and of what
    follows below.
    waiting int32 [cells]: the first term that waits for each, -1 for none;  settled bool [cells]: it has its value.
    first, entry: the queue, see `_enqueue`;  ready int32 [terms + 1]: terms to look at.
    order int64 [cells]: those that have a value, the least first.
    at_ int64 [4]: how many are in ``entry``, ``ready`` and ``order``, and the value that was taken out last.
    """

    begin: np.ndarray
    owner: np.ndarray
    following: np.ndarray
    part: np.ndarray
    at: np.ndarray
    above: np.ndarray
    below: np.ndarray
    waiting: np.ndarray
    settled: np.ndarray
    first: np.ndarray
    entry: np.ndarray
    ready: np.ndarray
    order: np.ndarray
    at_: np.ndarray


@kernel()
def _terms(finished, row, offset, value):  # type: ignore[no-untyped-def]
    """`Terms` before the first is looked at; ``finished``: the cell of the finished state. See `least_ways`."""
    cells = row.size
    begin = np.zeros(cells + 1, np.int64)
    for x in range(cells):
        begin[x + 1] = begin[x] + offset[row[x] + 1] - offset[row[x]]
    count = begin[cells]
    owner, ready = np.empty(count, np.int32), np.empty(count + 1, np.int32)
    settled = np.zeros(cells, np.bool_)
    settled[finished] = True  # its value is 0
    first, entry = np.full(_LEVELS, -1, np.int32), np.empty((count + cells, 3), np.int32)
    at_ = np.zeros(4, np.int64)
    for x in range(cells):
        if value[x] < NEVER:
            _enqueue((first, entry), at_[0], np.int64(0), np.int64(value[x]), x)
            at_[0] += 1
        for t in range(begin[x], begin[x + 1]):
            owner[t] = x
            ready[t] = count - 1 - t
    at_[1] = count
    return (
        begin, owner, np.empty(count, np.int32), np.zeros(count, np.int32), np.full(count, -1, np.int32),
        np.zeros(count, np.int32), np.zeros(count, np.int32), np.full(cells, -1, np.int32), settled, first, entry,
        ready, np.empty(cells, np.int64), at_,
    )  # fmt: skip


@kernel()
def least_ways(  # type: ignore[no-untyped-def]
    first, lists, breaks, low, high, row, offset, op_of, class_of, weight, rank, push, modes, back_offset, back, due,
    value, policy, work, steps,
):  # fmt: skip
    """Least weights to leave the frame from every close cell, and the first class of such a way, some steps further.

    Args:
        first … high: as in `Closing`;  row: int32 [close cells], the row of ops;  offset, op_of, class_of: those, see
            `distinct_ops`.
        weight, rank: int32 [classes]; among equally short ways the class of least rank.
        value: int32 [close cells], receives the least weight; NEVER but for those that are known already and have no
            ops;  policy: int32, all -1, receives the class.
        work: `Terms`;  steps: so many terms are looked at, or cells taken out, at most.

    Returns:
        whether that was all.
    """
    terms, owner, following, part, at = work.begin, work.owner, work.following, work.part, work.at
    above, below, waiting, settled, ready = work.above, work.below, work.waiting, work.settled, work.ready
    queue, order = (work.first, work.entry), work.order
    entries, todo, done, now = work.at_[0], work.at_[1], work.at_[2], work.at_[3]
    while steps > 0:
        while todo > 0 and steps > 0:
            steps -= 1
            todo -= 1
            t = ready[todo]
            x = owner[t]
            e = offset[row[x]] + t - terms[x]
            op = np.int64(op_of[e])
            kind, number = op & KIND_MASK, op >> KIND_BITS
            waits = False
            while kind != POP:
                p = part[t]
                least, most = np.int64(low[x]), np.int64(high[x])  # counters
                if kind < PUSH:
                    if p == 1:
                        break
                    q, least, most = number, act(kind, least), act(kind, most)
                elif p < modes:
                    q, least, most = np.int64(push[number, 1 + p]), np.int64(0), np.int64(0)
                else:
                    g = push[number, 0]
                    i = back_offset[g] + p - modes
                    if i >= back_offset[g + 1]:
                        below[t] += due[g]
                        break
                    q, then, action = (
                        np.int64(back[i] >> ACTION_BITS),
                        np.int64(back[i] & ACTION_MASK),
                        np.int64(push[number, 3]),
                    )
                    least, most = act(then, act(action, least)), act(then, act(action, most))
                y = last = np.int64(first[q])
                if first[q + 1] > first[q] + 1:
                    last = y + phase(breaks, lists[q], most)
                    y = max(np.int64(at[t]), y + phase(breaks, lists[q], least))
                while y <= last and settled[y]:
                    v = 0 if q == 1 else value[y]
                    if kind < PUSH or p < modes:
                        above[t] = max(above[t], v)
                    else:
                        below[t] = max(below[t], v)
                    y += 1
                if y <= last:
                    at[t] = y
                    following[t] = waiting[y]
                    waiting[y] = t
                    waits = True
                    break
                part[t] += 1
                at[t] = -1
            k = class_of[e]
            found = weight[k] + above[t] + below[t]
            if waits or found >= NEVER or found > value[x]:
                continue
            if found == value[x]:
                if (rank[k], k) < (rank[policy[x]], policy[x]):
                    policy[x] = k
                continue
            value[x] = found
            policy[x] = k
            _enqueue(queue, entries, now, np.int64(found), x)
            entries += 1
        if steps <= 0:
            break
        steps -= 1
        now, x = _dequeue(queue, now)
        if x < 0:
            work.at_[2] = done
            return True
        if settled[x]:
            continue
        settled[x] = True
        order[done] = x
        done += 1
        t = waiting[x]
        while t >= 0:
            ready[todo] = t
            todo += 1
            t = following[t]
    work.at_[0], work.at_[1], work.at_[2], work.at_[3] = entries, todo, done, now
    return False


@kernel()
def tokens_on_the_way(a, order, policy, stops, symbol_of_class, special_of_symbol, t, stack, close_token):  # type: ignore[no-untyped-def]
    """Fewest tokens along each state's own shortest way, into a.bound; and the first of them.

    Args:
        order: int64 [·]: close cells by their least weight; each needs only those before it.
        policy: int32 [close cells]: the class of each on its shortest way.
        stops: bool [states]: behind which another way may be the shortest: a token ends there, or before.
        symbol_of_class: int32 [classes]: the symbol that stands for the class.
        special_of_symbol: int32 [symbols]: the token of a special symbol, -1 for none.
        t: `Bytes`.
        stack: int64 [longest token + 1, 4], scratch.
        close_token: int32 [close cells, modes], receives the token; -1 for none.
    """
    first, lists, breaks, bound = a.close_first, a.close_break, a.close_breaks, a.bound
    back_offset, back, due = a.back_offset, a.back, a.due
    state_of = np.zeros(bound.size, np.int32)
    for owner in range(a.state_cell.size):
        state_of[first[owner] : first[owner + 1]] = owner
    for x in order:
        worst, pushed = np.int64(0), False
        for mode in range(a.modes):
            if mode > 0 and not pushed:
                close_token[x, mode] = close_token[x, 0]  # modes differ in what is entered
                continue
            q, low, high = np.int64(state_of[x]), np.int64(a.low[x]), np.int64(a.high[x])
            best, chosen = np.int64(NEVER), np.int64(-1)
            top, node, depth, before = 0, np.int64(-1), 0, np.int64(0)
            going = True
            while going and q != 1:
                y = last = np.int64(first[q])
                if first[q + 1] > y + 1:
                    y, last = y + phase(breaks, lists[q], low), y + phase(breaks, lists[q], high)
                k = np.int64(policy[y])
                if k < 0:
                    break
                op = op_at(a, q, low, k)
                while y < last and going:  # one op must close from all of them
                    y += 1
                    going = policy[y] == k and op_at(a, q, np.int64(a.low[y]), k) == op
                if not going:
                    break
                symbol = np.int64(symbol_of_class[k])
                if symbol >= 256:
                    going = False
                    if depth > 0:
                        break
                    token = np.int64(special_of_symbol[symbol])
                else:
                    if depth < 2:
                        node = np.int64(t.first_child[symbol] if depth == 0 else t.second_child[before, symbol])
                        if node < 0:
                            break
                    else:
                        end = t.node_skip[node]
                        node += 1
                        while node < end and t.node_byte[node] != symbol:
                            node = np.int64(t.node_skip[node])
                        if node >= end:
                            break
                    before = symbol
                    depth += 1
                    token = np.int64(t.node_token[node])
                kind, number = op & KIND_MASK, op >> KIND_BITS
                if kind < PUSH:
                    q, low, high = number, act(kind, low), act(kind, high)
                elif kind == PUSH:
                    pushed = True
                    g, action = np.int64(a.push[number, 0]), np.int64(a.push[number, 3])
                    low, high = act(action, low), act(action, high)
                    stack[top, 0], stack[top, 1], stack[top, 2] = g, low, high
                    stack[top, 3] = owing(back_offset, back, first, lists, breaks, bound, due, g, low, high)
                    top += 1
                    q, low, high = np.int64(a.push[number, 1 + mode]), np.int64(0), np.int64(0)
                elif top > 0:
                    top -= 1
                    value = return_in(a.return_, np.int64(a.return_offset[stack[top, 0]]), number)
                    if value >> ACTION_BITS == DEAD:
                        break
                    q, low, high = (
                        value >> ACTION_BITS,
                        act(value & ACTION_MASK, stack[top, 1]),
                        act(value & ACTION_MASK, stack[top, 2]),
                    )
                else:
                    going = False
                if token >= 0:
                    after = np.int64(1)
                    if kind != POP or going:
                        after += largest(first, lists, breaks, bound, q, low, high)
                        for i in range(top):
                            after += stack[i, 3]
                    if after < best:
                        best, chosen = after, token
                if stops[q]:
                    break
            close_token[x, mode] = chosen
            worst = max(worst, best)
        bound[x] = worst


# -- what a bundle reads ----------------------------------------------------------------------------------------------


class Bytes(NamedTuple):
    """What tokens there are for bytes.

    alone bool [256]: the byte is a token;  run int32 [256]: longest token of this byte only;  first_child int32 [256],
    second_child int32 [256, 256]: the node of a first byte, and of the first two, -1 for none: these nodes have many
    brothers;  node_token int32 [nodes]: the first token that ends at a node and is matched by its text, -1 for none;
    node_byte, node_skip: the trie;  order int32 [256]: bytes, those that stand best for others last.
    """

    alone: np.ndarray
    run: np.ndarray
    first_child: np.ndarray
    second_child: np.ndarray
    node_token: np.ndarray
    node_byte: np.ndarray
    node_skip: np.ndarray
    order: np.ndarray


def bytes_of(v: Vocab, special: np.ndarray) -> Bytes:
    """Worked out once for a vocabulary and the ids that are matched as special tokens."""
    held: dict[bytes, Bytes] = v.__dict__.setdefault("_bytes", {})
    found = held.get(special.tobytes())
    if found is not None:
        return found
    is_special = np.zeros(v.size, bool)
    is_special[special] = True
    length = np.diff(v.token_offset)
    some = np.flatnonzero(length > 0)
    start = v.token_offset[some]
    one = np.zeros(some.size, bool)
    if some.size:
        one = np.minimum.reduceat(v.token_bytes, start) == np.maximum.reduceat(v.token_bytes, start)
    plain = ~is_special[some]
    some, first, one = some[plain], v.token_bytes[start[plain]].astype(np.int64), one[plain]
    run = np.zeros(256, np.int32)
    np.maximum.at(run, first[one], length[some][one].astype(np.int32))
    alone = np.zeros(256, bool)
    alone[first[length[some] == 1]] = True
    first_child = np.full(256, -1, np.int32)
    roots = np.flatnonzero(v.node_depth == 1)
    first_child[v.node_byte[roots]] = roots
    second_child = np.full((256, 256), -1, np.int32)
    seconds = np.flatnonzero(v.node_depth == 2)
    parents = roots[np.searchsorted(roots, seconds) - 1]
    second_child[v.node_byte[parents], v.node_byte[seconds]] = seconds
    node_token = np.full(v.node_byte.size, -1, np.int32)
    places = np.flatnonzero(~is_special[v.node_tokens])[::-1]
    node_token[np.searchsorted(v.node_token_offset, places, side="right") - 1] = v.node_tokens[places]
    order = np.array(sorted(range(256), key=lambda b: (bool(alone[b]), int(run[b]), -b)), np.int32)
    found = Bytes(alone, run, first_child, second_child, node_token, v.node_byte, v.node_skip, order)
    held[special.tobytes()] = found
    return found


class Signs(NamedTuple):
    """What a bundle reads, and what stands for it.

    weight, rank, symbol int32 [classes]: of each symbol class;  token int32 [symbols]: of each special symbol, -1 for
    none;  byte: see `Bytes`.
    """

    weight: np.ndarray
    rank: np.ndarray
    symbol: np.ndarray
    token: np.ndarray
    byte: Bytes


def signs_of(t: Tables, vocab: Vocab) -> Signs:
    """Weights, ranks and symbols.

    A class stands for that of its bytes of which the vocabulary has the longest runs: text that must only be long
    then takes few tokens.
    """
    byte = bytes_of(vocab, t.special_token)
    token = np.full(t.symbol_class.size, -1, np.int32)
    token[t.special_symbol[::-1]] = t.special_token[::-1]
    weight, rank = np.full(t.classes, NEVER, np.int32), np.zeros(t.classes, np.int32)
    symbol = np.zeros(t.classes, np.int32)
    k = t.symbol_class[byte.order]  # the best of a class is the last
    weight[k], rank[k], symbol[k] = np.where(byte.alone[byte.order], 1, _RARE), 256 - np.arange(256), byte.order
    for s in range(256, t.symbol_class.size):
        k = int(t.symbol_class[s])
        if token[s] >= 0:
            weight[k], rank[k], symbol[k] = 1, 0, s
    return Signs(weight, rank, symbol, token, byte)


class Rows(NamedTuple):
    """ops: the rows of the comb of transitions, by cell;  of_close int32 [close cells]: the row of each; the finished
    state has the last, without ops."""

    ops: CombRows
    of_close: np.ndarray


def rows_of(a: Closing, ops: CombRows | None = None) -> Rows:
    """The rows of close cells, from those of cells if they are known."""
    ops = ops or rows_at(a.delta, a.cell_delta, a.cell_default, int(a.symbol_class.max()) + 1)
    cell = a.state_cell
    if a.low.size != cell.size or a.breaks.shape[1]:
        state = np.repeat(np.arange(cell.size), np.diff(a.close_first))
        cell = cell[state] + phases(a.state_break[state], a.breaks, a.low)
    of_close = ops.of[cell].astype(np.int32)
    of_close[a.close_first[FINISHED]] = ops.rows
    return Rows(ops, of_close)


class Ops(NamedTuple):
    """offset int32 [rows + 2], op, symbol int32 [·]: the different ops of each row of `Rows`, and a class of each."""

    offset: np.ndarray
    op: np.ndarray
    symbol: np.ndarray


def ops_of(rows: Rows, weight: np.ndarray, rank: np.ndarray) -> Ops:
    """See `distinct_ops`."""
    return Ops(*distinct_ops(rows.ops.offset, rows.ops.column, rows.ops.value, weight, rank))


def ways_out(
    a: Closing, rows: Rows, signs: Signs, known: np.ndarray, weight: np.ndarray, look: Callable[[], None] = _passing
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least weight to leave the frame from every close cell, int32, the first class of such a way, and the cells
    that have one by their weight, int64 [·].

    Args:
        known: close cells without ops whose weights int32 [·] are known.
        look: called now and then; what it raises ends the work.
    """
    ops = ops_of(rows, signs.weight, signs.rank)
    value, policy = np.full(a.bound.size, NEVER, np.int32), np.full(a.bound.size, -1, np.int32)
    value[known] = weight
    look()
    work = Terms(*_terms(a.close_first[FINISHED], rows.of_close, ops.offset, value))
    while not least_ways(
        a.close_first, a.close_break, a.close_breaks, a.low, a.high, rows.of_close, ops.offset, ops.op, ops.symbol,
        signs.weight, signs.rank, a.push, a.modes, a.back_offset, a.back, a.due, value, policy, work, _STEPS,
    ):  # fmt: skip
        look()
    return value, policy, work.order[: work.at_[2]]


def tokens_along(
    a: Closing, vocab: Vocab, signs: Signs, order: np.ndarray, policy: np.ndarray, stops: np.ndarray,
    close_token: np.ndarray, look: Callable[[], None] = _passing,
) -> None:  # fmt: skip
    """`tokens_on_the_way` for these close cells; ``look`` is called now and then."""
    stack = np.zeros((vocab.longest + 1, 4), np.int64)
    for begin in range(0, order.size, _CELLS):
        look()
        some = order[begin : begin + _CELLS]
        tokens_on_the_way(a, some, policy, stops, signs.symbol, signs.token, signs.byte, stack, close_token)
