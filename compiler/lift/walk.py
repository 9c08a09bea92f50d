"""The kernels of the lift: walk a vocabulary trie through the automaton, and compare states with unit automata.

Each is a pure function of arrays; tests/ has a slow plain twin that it must equal.

Leaves out   which walks are needed and what becomes of them (lift.py).
Arrays       `Machine` and `Walkable` below; st int32 [depth, 5] is scratch: state, counter, top frame (-1 none), increments of the
             first frame's counter since the start (-1 once it was set anew), frames; frames int32 [depth, 4]: stack symbol, saved
             counter, frame beneath, increments. A frame is named by the depth of the byte that pushed it, so backing up in
             the trie needs no undo.
Source       preorder tries with skips: the token trie of AICI/llguidance (docs/toktrie.md); simulation: Milner 1971.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

UNLIMITED = 2**31 - 1
UNKNOWN, NO = -2, -1
TOKENS, RECORDS, INCREMENTS, FRAMES, PUSHED = range(5)  # places in `result`


class Machine(NamedTuple):
    """The automaton as arrays.

    state_row int32 [states + 1]: op rows of a state, one per region;  threshold_offset int32 [states + 1], threshold int32 [·];
    ops int32 [rows, classes];  symbol_class int32 [symbols];  push int32 [pushes, 4];  return_offset int32 [stack symbols];
    return_ int32 [·, 2], a comb (comb.py).
    """

    state_row: np.ndarray
    threshold_offset: np.ndarray
    threshold: np.ndarray
    ops: np.ndarray
    symbol_class: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray


class Walkable(NamedTuple):
    """A trie, or the part of one that holds the tokens outside of a slice.

    order int32 [n]: full-trie nodes in preorder;  skip int32 [n]: place in `order` after the subtree;  node_byte, node_depth,
    token_offset, tokens: of the full trie;  units int32 [V]: a token is left out where this is >= 0.
    """

    order: np.ndarray
    skip: np.ndarray
    node_byte: np.ndarray
    node_depth: np.ndarray
    token_offset: np.ndarray
    tokens: np.ndarray
    units: np.ndarray


@njit(cache=True)
def find_op(m, q, c, symbol):  # type: ignore[no-untyped-def]
    """The op of a state on a symbol at a counter value."""
    row = m.state_row[q]
    for i in range(m.threshold_offset[q], m.threshold_offset[q + 1]):
        if m.threshold[i] <= c:
            row += 1
    return m.ops[row, m.symbol_class[symbol]]


@njit(cache=True)
def walk(m, t, segments, mode, st, frames, out, records, result):  # type: ignore[no-untyped-def]
    """Walk parts of a trie.

    Args:
        segments: int32 [·, 5]: first place in `order`, place after the last, state, counter, increments (0, or -1 if the
            counter was set on the way here).
        out: int32, receives the tokens that stay alive or leave the frame with their last byte; at least as long as the vocabulary.
        records: int32 [·, 2], receives (node, R) where the walk leaves the frame with tokens below; as long as the trie.
        result: int64 [5], receives the number of tokens and records, the most increments before a threshold was looked
            at, the most frames pushed, whether anything was pushed.
    """
    found = 0
    left = 0
    most = 0
    tallest = 0
    pushed = 0
    for s in range(segments.shape[0]):
        i = segments[s, 0]
        end = segments[s, 1]
        if i >= end:
            continue
        base = t.node_depth[t.order[i]] - 1
        st[base, 0] = segments[s, 2]
        st[base, 1] = segments[s, 3]
        st[base, 2] = -1
        st[base, 3] = segments[s, 4]
        st[base, 4] = 0
        while i < end:
            node = t.order[i]
            depth = t.node_depth[node]
            q = st[depth - 1, 0]
            c = st[depth - 1, 1]
            top = st[depth - 1, 2]
            inc = st[depth - 1, 3]
            height = st[depth - 1, 4]
            if inc > most and m.threshold_offset[q + 1] > m.threshold_offset[q]:
                most = inc
            op = find_op(m, q, c, t.node_byte[node])
            if op == 0:
                i = t.skip[i]
                continue
            kind = op & 7
            value = op >> 3
            action = kind
            if kind < 4:
                q = value
            elif kind == 4:
                pushed = 1
                action = m.push[value, 3]
                saved = c if action == 0 else c + 1 if action == 1 else action - 2
                kept = inc + 1 if action == 1 and inc >= 0 else -1 if action >= 2 else inc
                frames[depth, 0] = m.push[value, 0]
                frames[depth, 1] = saved
                frames[depth, 2] = top
                frames[depth, 3] = kept
                top = depth
                height += 1
                tallest = max(tallest, height)
                q = m.push[value, 1 + mode]
                c = 0
                inc = -1
                action = 0
            elif top >= 0:
                at = m.return_offset[frames[top, 0]]
                back = m.return_[at + value, 1]
                q = back >> 2
                action = back & 3
                c = frames[top, 1]
                inc = frames[top, 3]
                top = frames[top, 2]
                height -= 1
            else:
                for k in range(t.token_offset[node], t.token_offset[node + 1]):
                    if t.units[t.tokens[k]] < 0:
                        out[found] = t.tokens[k]
                        found += 1
                if t.skip[i] > i + 1:
                    records[left, 0] = node
                    records[left, 1] = value
                    left += 1
                i = t.skip[i]
                continue
            if action == 1:
                c += 1
                if inc >= 0:
                    inc += 1
            elif action >= 2:
                c = action - 2
                inc = -1
            st[depth, 0] = q
            st[depth, 1] = c
            st[depth, 2] = top
            st[depth, 3] = inc
            st[depth, 4] = height
            for k in range(t.token_offset[node], t.token_offset[node + 1]):
                if t.units[t.tokens[k]] < 0:
                    out[found] = t.tokens[k]
                    found += 1
            i += 1
    result[0] = found
    result[1] = left
    result[2] = most
    result[3] = tallest
    result[4] = pushed


@njit(cache=True)
def simulate(m, next_unit, boundary, limit, q0, u0, pairs):  # type: ignore[no-untyped-def]
    """Whether state q0 can do whatever unit state u0 can, for ever; fills limit[q, u] for every pair it settles.

    limit int32 [states, unit states] is UNKNOWN, NO, or the counter value that the units may fill up to (UNLIMITED: they are not
    counted or not bounded): a token of n units is alive in a simulating state at counter c if and only if c + n <= limit.
    pairs int32 [·, 2] is scratch; more pairs than it holds count as NO.
    """
    if limit[q0, u0] != -2:
        return limit[q0, u0]
    found = 1
    pairs[0, 0] = q0
    pairs[0, 1] = u0
    bound = -1  # of every state between units; they must agree
    adds = -1  # whether units are counted; likewise
    at = 0
    fine = True
    while at < found and fine:
        q = pairs[at, 0]
        u = pairs[at, 1]
        at += 1
        first = m.threshold_offset[q]
        regions = m.threshold_offset[q + 1] - first + 1
        mine = UNLIMITED
        if regions > 1 and not boundary[u]:
            fine = False
        for region in range(regions):
            dead = 0
            alive = 0
            for byte in range(256):
                v = next_unit[u, byte]
                if v == 255 or not fine:
                    continue
                op = m.ops[m.state_row[q] + region, m.symbol_class[byte]]
                kind = op & 7
                if op == 0:
                    dead += 1
                    continue
                alive += 1
                if kind > 1 or (kind == 1 and not boundary[u]) or limit[op >> 3, v] == -1:
                    fine = False
                    continue
                if boundary[u]:
                    if adds < 0:
                        adds = kind
                    elif adds != kind:
                        fine = False
                seen = False
                for k in range(found - 1, -1, -1):
                    if pairs[k, 0] == op >> 3 and pairs[k, 1] == v:
                        seen = True
                        break
                if not seen:
                    if found == pairs.shape[0]:
                        fine = False
                        continue
                    pairs[found, 0] = op >> 3
                    pairs[found, 1] = v
                    found += 1
            if alive > 0 and (dead > 0 or mine != UNLIMITED):
                fine = False
            elif alive == 0 and mine == UNLIMITED:
                mine = m.threshold[first + region - 1] if region > 0 else -1
        if mine == -1:
            fine = False
        if boundary[u]:
            if bound == -1:
                bound = mine
            elif bound != mine:
                fine = False
    if bound == -1:
        bound = UNLIMITED
    if bound != UNLIMITED and adds == 0:
        fine = False
    if not fine:
        limit[q0, u0] = -1
        return -1
    for k in range(found):
        limit[pairs[k, 0], pairs[k, 1]] = bound
    return bound


@njit(cache=True)
def exclude(m, t, next_unit, boundary, limit, before, listed, most_units, q0, c0, u0, mode, st, out, pairs):  # type: ignore[no-untyped-def]
    """Tokens of the slice of u0 on which a state dies, where most of its ways lead to states that simulate the slice.

    before int32 [nodes + 1]: slice tokens at nodes before each;  listed int32: those tokens in preorder;  most_units: of a
    token of the slice. Returns how many tokens were written to ``out``, or -1 where the state pushes or pops on the way.
    """
    found = 0
    i = 0
    end = t.node_byte.size
    st[0, 0] = q0
    st[0, 1] = c0
    st[0, 2] = u0
    while i < end:
        after = t.skip[i]
        if before[after] == before[i]:
            i = after
            continue
        depth = t.node_depth[i]
        q = st[depth - 1, 0]
        c = st[depth - 1, 1]
        u = next_unit[st[depth - 1, 2], t.node_byte[i]]
        op = find_op(m, q, c, t.node_byte[i])
        if op == 0:
            for k in range(before[i], before[after]):
                out[found] = listed[k]
                found += 1
            i = after
            continue
        if op & 7 > 3:
            return -1
        q = op >> 3
        action = op & 7
        c = c if action == 0 else c + 1 if action == 1 else action - 2
        if boundary[u]:
            room = simulate(m, next_unit, boundary, limit, q, u, pairs)
            if room >= 0 and room - c >= most_units:
                i = after
                continue
        st[depth, 0] = q
        st[depth, 1] = c
        st[depth, 2] = u
        i += 1
    return found
