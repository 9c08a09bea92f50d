"""Least ways out of every state: in bytes, and then in tokens.

Leaves out   what other tokens cost, which cells have bounds (compiler/lift/close.py; closing.py).
Values       counters are intervals, as in bounds.py.
Source       Knuth 1977 (a generalization of Dijkstra's algorithm).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .bounds import Closing, act, most, op_at, owes, phase, phases
from .memory import kernel
from .tables import FINISHED, NEVER, Tables
from .vocab import Vocab

_RARE = 1000  # weight of a byte that is no token by itself


@kernel()
def distinct_ops(delta, base, weight, rank, offset, op_of, class_of):  # type: ignore[no-untyped-def]
    """The ops of rows, each once, with the class of least weight, then rank, that has it.

    Args:
        base: int32 [rows]: places of the rows in the comb ``delta``.
        weight, rank: int32 [classes]; a class of weight NEVER is never read.
        offset: int32 [rows + 1], op_of, class_of: int32 [·], receive them, in compressed form.
    """
    end = 0
    for r in range(base.size):
        for k in range(weight.size):
            op = delta[base[r] + k, 1]
            if delta[base[r] + k, 0] != base[r] or op == 0 or weight[k] >= NEVER:
                continue
            i = end - 1
            while i >= offset[r] and op_of[i] != op:
                i -= 1
            if i < offset[r]:
                op_of[end] = op
                class_of[end] = k
                end += 1
            elif (weight[k], rank[k]) < (weight[class_of[i]], rank[class_of[i]]):
                class_of[i] = k
        offset[r + 1] = end


@kernel()
def _place(first, breaks, q, c):  # type: ignore[no-untyped-def]
    """The close cell of a state at a counter."""
    x = first[q]
    for b in range(breaks.shape[1]):
        span = breaks[q, b, 1]
        past = c - breaks[q, b, 0] + span
        if past > 0:
            x += min(past, span)
    return x


@kernel()
def least_ways(  # type: ignore[no-untyped-def]
    first, breaks, low, high, row, offset, op_of, class_of, weight, rank, push, modes, back_offset, back, value, policy
):
    """Least weights to leave the frame from every close cell, and the first class of such a way.

    A *term* is an op of a cell. It waits for one cell that it needs and that has no value yet; when that one has got
    its value, the term goes on to the next; when it needs no more, its cell has a candidate.

    Args:
        first … high: as in `Closing`;  row: int32 [close cells], the row of ops;  offset, op_of, class_of: those, see
            `distinct_ops`.
        weight, rank: int32 [classes]; among equally short ways the class of least rank.
        value: int32 [close cells], receives the least weight; NEVER but for those that are known already and have no
            ops;  policy: int32, all -1, receives the class.
    """
    cells = row.size
    terms = np.zeros(cells + 1, np.int64)
    for x in range(cells):
        terms[x + 1] = terms[x] + offset[row[x] + 1] - offset[row[x]]
    count = terms[cells]
    owner = np.empty(count, np.int32)
    following = np.empty(count, np.int32)  # the next term that waits for the same cell
    part = np.zeros(count, np.int32)  # which range of cells it is at, and where in it
    at = np.full(count, -1, np.int32)
    above = np.zeros(count, np.int32)  # largest values so far: of what is entered, and of what follows below
    below = np.zeros(count, np.int32)
    waiting = np.full(cells, -1, np.int32)
    settled = np.zeros(cells, np.bool_)
    settled[first[1]] = True  # the finished state; its value is 0
    heap = np.empty(count + cells + 1, np.int64)  # value << 32 | cell
    known = np.flatnonzero(value < NEVER)
    size = known.size
    heap[:size] = np.sort(value[known].astype(np.int64) << 32 | known)  # ascending: a heap
    ready = np.empty(count + 1, np.int32)  # terms to look at
    for x in range(cells):
        for t in range(terms[x], terms[x + 1]):
            owner[t] = x
    todo = count
    for t in range(count):
        ready[t] = count - 1 - t
    while True:
        while todo > 0:
            todo -= 1
            t = ready[todo]
            x = owner[t]
            e = offset[row[x]] + t - terms[x]
            op = op_of[e]
            kind, number = op & 7, op >> 3
            waits = False
            while kind != 5:
                p = part[t]
                if kind < 4:
                    if p == 1:
                        break
                    q, a, b = number, act(kind, low[x]), act(kind, high[x])
                elif p < modes:
                    q, a, b = push[number, 1 + p], 0, 0
                else:
                    g = push[number, 0]
                    i = back_offset[g] + p - modes
                    if i >= back_offset[g + 1]:
                        break
                    q, action = back[i] >> 2, push[number, 3]
                    a, b = act(back[i] & 3, act(action, low[x])), act(back[i] & 3, act(action, high[x]))
                y = first[q] if first[q + 1] == first[q] + 1 else max(at[t], _place(first, breaks, q, a))
                last = y if first[q + 1] == first[q] + 1 else _place(first, breaks, q, b)
                while y <= last and settled[y]:
                    v = 0 if q == 1 else value[y]
                    if kind < 4 or p < modes:
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
            n = size
            size += 1
            entry = np.int64(found) << 32 | x
            while n > 0 and heap[(n - 1) >> 1] > entry:
                heap[n] = heap[(n - 1) >> 1]
                n = (n - 1) >> 1
            heap[n] = entry
        if size == 0:
            return
        x = heap[0] & 0xFFFFFFFF
        size -= 1
        entry = heap[size]
        n = 0
        while 2 * n + 1 < size:
            child = 2 * n + 1
            if child + 1 < size and heap[child + 1] < heap[child]:
                child += 1
            if heap[child] >= entry:
                break
            heap[n] = heap[child]
            n = child
        heap[n] = entry
        if settled[x]:
            continue
        settled[x] = True
        t = waiting[x]
        while t >= 0:
            ready[todo] = t
            todo += 1
            t = following[t]


@kernel()
def _same_way(a, policy, q, low, high):  # type: ignore[no-untyped-def]
    """The class that closes from every counter of an interval by one op; -1 if there is none."""
    x = a.close_first[q] + phase(a.close_break, q, low)
    last = a.close_first[q] + phase(a.close_break, q, high)
    k = policy[x]
    while k >= 0 and x < last:
        x += 1
        if policy[x] != k or op_at(a, q, a.low[x], k) != op_at(a, q, low, k):
            return -1
    return k


@kernel()
def tokens_on_the_way(  # type: ignore[no-untyped-def]
    a,
    order,
    policy,
    symbol_of_class,
    special_of_symbol,
    node_byte,
    node_depth,
    node_skip,
    first_child,
    node_token,
    close_token,
):
    """Fewest tokens along each state's own shortest way, into a.bound; and the first of them.

    Args:
        order: int64 [·]: close cells by their least weight; each needs only those before it.
        symbol_of_class: int32 [classes]: the symbol that stands for the class.
        special_of_symbol: int32 [symbols]: the token of a special symbol, -1 for none.
        node_byte, node_depth, node_skip: the trie;  first_child int32 [256]: the node of a first byte, -1 for none.
        node_token: int32 [nodes]: a token that ends at the node and is matched by its text, -1 for none.
        close_token: int32 [close cells, modes], receives the token; -1 for none.
    """
    size = node_byte.size
    deepest = 0
    for d in node_depth:
        deepest = max(deepest, d)
    stack = np.zeros((deepest + 2, 4), np.int64)
    state_of = np.zeros(a.bound.size, np.int32)
    for owner in range(a.state_cell.size):
        state_of[a.close_first[owner] : a.close_first[owner + 1]] = owner
    for x in order:
        worst = 0
        for mode in range(a.modes):
            q, low, high = np.int64(state_of[x]), np.int64(a.low[x]), np.int64(a.high[x])
            best, chosen = NEVER, -1
            top, node, depth = 0, np.int64(-1), 0
            going = True
            while going:
                k = _same_way(a, policy, q, low, high)
                if k < 0:
                    break
                symbol = symbol_of_class[k]
                if symbol >= 256:
                    going = False
                    if depth > 0:
                        break
                    token = special_of_symbol[symbol]
                else:
                    at = first_child[symbol] if depth == 0 else node + 1
                    end = size if depth == 0 else node_skip[node]
                    if depth > 0:
                        while at < end and node_byte[at] != symbol:
                            at = node_skip[at]
                    if at < 0 or at >= end:
                        break
                    node = np.int64(at)
                    depth += 1
                    token = node_token[node]
                op = op_at(a, q, low, k)
                kind, number = op & 7, op >> 3
                after = 0
                if kind < 4:
                    q, low, high = np.int64(number), np.int64(act(kind, low)), np.int64(act(kind, high))
                elif kind == 4:
                    action = a.push[number, 3]
                    stack[top, 0] = a.push[number, 0]
                    stack[top, 1] = act(action, low)
                    stack[top, 2] = act(action, high)
                    stack[top, 3] = owes(a, a.bound, stack[top, 0], stack[top, 1], stack[top, 2])
                    top += 1
                    q, low, high = np.int64(a.push[number, 1 + mode]), np.int64(0), np.int64(0)
                elif top > 0:
                    top -= 1
                    back = a.return_[a.return_offset[stack[top, 0]] + number, 1]
                    q = np.int64(back >> 2)
                    low = np.int64(act(back & 3, stack[top, 1]))
                    high = np.int64(act(back & 3, stack[top, 2]))
                else:
                    going = False
                if token >= 0:
                    if kind != 5 or going:
                        after = most(a, a.bound, q, low, high)
                        for i in range(top):
                            after += stack[i, 3]
                    if 1 + after < best:
                        best, chosen = 1 + after, token
                if q == 1:
                    break
            close_token[x, mode] = chosen
            worst = max(worst, best)
        a.bound[x] = worst


# -- what a bundle reads ----------------------------------------------------------------------------------------------


class Bytes(NamedTuple):
    """What tokens there are for bytes.

    alone bool [256]: the byte is a token;  run int32 [256]: longest token of this byte only;  first_child int32 [256]:
    the node of a first byte, -1 for none;  node_token int32 [nodes]: the first token that ends at a node and is matched
    by its text, -1 for none.
    """

    alone: np.ndarray
    run: np.ndarray
    first_child: np.ndarray
    node_token: np.ndarray


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
    node_token = np.full(v.node_byte.size, -1, np.int32)
    places = np.flatnonzero(~is_special[v.node_tokens])[::-1]
    node_token[np.searchsorted(v.node_token_offset, places, side="right") - 1] = v.node_tokens[places]
    found = held[special.tobytes()] = Bytes(alone, run, first_child, node_token)
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
    order = sorted(range(256), key=lambda b: (bool(byte.alone[b]), int(byte.run[b]), -b))
    for n, b in enumerate(order):  # the best last
        k = int(t.symbol_class[b])
        weight[k], rank[k], symbol[k] = (1 if byte.alone[b] else _RARE), 256 - n, b
    for s in range(256, t.symbol_class.size):
        k = int(t.symbol_class[s])
        if token[s] >= 0:
            weight[k], rank[k], symbol[k] = 1, 0, s
    return Signs(weight, rank, symbol, token, byte)


def ways_out(a: Closing, signs: Signs, known: np.ndarray, bound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least weight to leave the frame from every close cell, int32, and the first class of such a way.

    Args:
        known: close cells without ops whose bounds int32 [·] are known.
    """
    base, row_of_cell = np.unique(a.cell_delta, return_inverse=True)
    state = np.repeat(np.arange(a.close_first.size - 1), np.diff(a.close_first))
    row = row_of_cell.reshape(-1)[a.state_cell[state] + phases(a.state_break[state], a.low)].astype(np.int32)
    row[a.close_first[FINISHED]] = base.size  # it needs no way: a row without ops
    classes = signs.weight.size
    offset = np.zeros(base.size + 2, np.int32)
    op_of, class_of = np.empty((2, base.size * classes), np.int32)
    distinct_ops(a.delta, base, signs.weight, signs.rank, offset, op_of, class_of)
    offset[-1] = offset[-2]
    value, policy = np.full(a.bound.size, NEVER, np.int32), np.full(a.bound.size, -1, np.int32)
    value[known] = bound
    least_ways(
        a.close_first, a.close_break, a.low, a.high, row, offset, op_of, class_of, signs.weight, signs.rank, a.push,
        a.modes, a.back_offset, a.back, value, policy,
    )  # fmt: skip
    return value, policy


def tokens_along(
    a: Closing, vocab: Vocab, signs: Signs, order: np.ndarray, policy: np.ndarray, close_token: np.ndarray
) -> None:
    """`tokens_on_the_way` for these close cells."""
    tokens_on_the_way(
        a, order, policy, signs.symbol, signs.token, vocab.node_byte, vocab.node_depth, vocab.node_skip,
        signs.byte.first_child, signs.byte.node_token, close_token,
    )  # fmt: skip
