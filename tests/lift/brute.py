"""The mask by trying every token, without a trie, rows or chains: a plain numba loop over the tables' transitions.

It is itself tested against the plain-Python oracle (toolc.runtime.reference) on a small vocabulary.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.host.kernels import expand_row
from toolc.runtime.host.matcher import Matcher
from toolc.runtime.host.shared import host_of


def brute_mask(bundle: Bundle, matcher: Matcher) -> np.ndarray:
    """bool [V]: the tokens whose every symbol the automaton can read from the matcher's configuration."""
    return brute_bounds(bundle, matcher) >= 0


def brute_bounds(bundle: Bundle, matcher: Matcher) -> np.ndarray:
    """int64 [V]: so many tokens are enough to end after each token; -1 where it cannot be read."""
    t, v = bundle.tables, bundle.vocab
    stack = np.array(matcher.stack, np.int32).reshape(-1, 2)
    symbol_of = np.full(v.size, -1, np.int32)
    symbol_of[t.special_token] = t.special_symbol
    mode = t.modes - 1 if len(stack) >= bundle.meta["soft_depth"] else 0
    return _brute(
        v.token_offset,
        v.token_bytes,
        symbol_of,
        t.symbol_class,
        t.state_cell,
        t.state_break,
        t.breaks,
        t.cell_delta,
        t.cell_default,
        t.delta,
        t.push,
        t.return_offset,
        t.return_,
        matcher.state,
        matcher.counter,
        stack,
        mode,
        bundle.meta["capacity"],
        t.state_close,
        t.close_break,
        t.close_breaks,
        t.close_bound,
        t.owed_first,
        t.owed_break,
        t.owed,
    )


def rows_by_cell(bundle: Bundle) -> tuple[list[object], list[object]]:
    """What the masks of a bundle are made of, however its rows and profiles are numbered: of every cell and of every
    chain cell, these by profile and stack symbol, the bits of the row and the exit profile, by mode."""
    t, host = bundle.tables, host_of(bundle)
    mask = np.empty(host.words, np.uint32)
    bits: dict[int, bytes] = {}
    number: dict[int, int] = {-1: -1}  # of profiles, as they are met

    def of(row: int, exit_: int) -> tuple[bytes, int]:
        if row not in bits:
            expand_row(host.address, row, mask)
            bits[row] = mask.tobytes()
        return bits[row], number.setdefault(exit_, len(number) - 1)

    cells = [[of(*both) for both in zip(*x, strict=True)] for x in np.stack([t.cell_row, t.cell_exit], axis=1).tolist()]
    chains = []
    met = 0
    while met < len(number):
        e = list(number)[met]
        met += 1
        for g in range(t.return_offset.size if e >= 0 else 0):
            place = int(t.chain_offset[e]) + g
            if place < len(t.chain) and t.chain[place, 0] == t.chain_offset[e]:
                n = int(t.chain[place, 1])
                first = int(t.chain_cell[n])
                for x in range(first, first + int(t.breaks[t.chain_break[n], :, 1].sum()) + 1):
                    chains.append((number[e], g, x - first, of(int(t.chain_row[x]), int(t.chain_exit[x]))))
    return cells, chains


@njit(cache=True)
def _cell(first, number, breaks, owner, c):  # type: ignore[no-untyped-def]
    cell, n = first[owner], number[owner]
    for b in range(breaks.shape[1]):
        past = c - breaks[n, b, 0] + breaks[n, b, 1]
        cell += min(max(past, 0), breaks[n, b, 1])
    return cell


@njit(cache=True)
def _brute(  # type: ignore[no-untyped-def]
    token_offset,
    token_bytes,
    symbol_of,
    symbol_class,
    state_cell,
    state_break,
    breaks,
    cell_delta,
    cell_default,
    delta,
    push,
    return_offset,
    return_,
    state,
    counter,
    stack,
    mode,
    capacity,
    state_close,
    close_break,
    close_breaks,
    close_bound,
    owed_first,
    owed_break,
    owed,
):
    size = token_offset.size - 1
    out = np.full(size, -1, np.int64)
    frames = np.zeros((capacity + 1, 2), np.int32)
    frames[: stack.shape[0]] = stack
    kept = stack.shape[0]  # so many frames are still those of the stack
    for token in range(size):
        q, c, depth = state, counter, stack.shape[0]
        while kept < depth:
            frames[kept] = stack[kept]
            kept += 1
        count = 1 if symbol_of[token] >= 0 else token_offset[token + 1] - token_offset[token]
        alive = count > 0
        for i in range(count):
            symbol = symbol_of[token] if symbol_of[token] >= 0 else np.int32(token_bytes[token_offset[token] + i])
            cell, op = _cell(state_cell, state_break, breaks, q, c), np.int32(0)
            for base in (cell_default[cell], cell_delta[cell]):
                at = base + symbol_class[symbol]
                op = delta[at, 1] if delta[at, 0] == base else op
            if op == 0:
                alive = False
                break
            action = op & KIND_MASK
            if action < PUSH:
                q = op >> KIND_BITS
            elif action == PUSH:
                row = push[op >> KIND_BITS]
                frames[depth, 0] = row[0]
                frames[depth, 1] = c if row[3] == 0 else c + 1 if row[3] == 1 else row[3] - 2
                depth += 1
                q = row[1 + mode]
                c = 0
                action = 0
            else:
                depth -= 1
                kept = min(kept, depth)
                value = return_[return_offset[frames[depth, 0]] + (op >> KIND_BITS), 1]
                q = value >> 2
                c = frames[depth, 1]
                action = value & 3
            c = c if action == 0 else c + 1 if action == 1 else action - 2
        if alive and q == 1:
            out[token] = 0
        elif alive:
            out[token] = close_bound[_cell(state_close, close_break, close_breaks, q, c)]
            for frame in range(depth):
                out[token] += owed[_cell(owed_first, owed_break, close_breaks, frames[frame, 0], frames[frame, 1])]
    return out
