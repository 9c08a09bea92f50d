"""Forced tokens: where the automaton allows one text only, its tokens by the tokenizer's own encoding.

From the tables of a bundle: `state_forced`, `forced_…` of docs/architecture.md.

Leaves out   the encoder (../vocab/encode.py), the bounds of states (close.py, runtime/bounds.py), use
             (runtime/kernels.py, runtime/step.py).
Invariants   the bytes of a list of forced tokens are the only way on from its state, whatever the counters; the last
             token ends where the encoder cuts in any case, before a special token, or with one.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from toolc.runtime.bounds import MANY, Closing, most, op_at, owes
from toolc.runtime.tables import NEVER, Tables
from toolc.runtime.vocab import Vocab

from ..vocab.encode import Encode

LONGEST = 96  # bytes of a forced text, at most
_NONE = -1


def forced_arrays(t: Tables, vocab: Vocab, closing: Closing, encode: Encode | None) -> dict[str, np.ndarray]:
    """The arrays of the forced tokens; of no state where there is no encoder.

    Args:
        closing: with its bounds.
    """
    found: dict[tuple[int, ...], int] = {(): 0}
    number, after = np.zeros(t.states, np.int32), np.zeros(t.states, np.int32)
    if encode is not None:
        texts, lists = _lists(t, vocab, encode)
        state = np.array([q for q, *_ in lists], np.int32)
        count, end = (np.array([x[n] for x in lists], np.int32) for n in (2, 3))
        value = np.zeros(state.size, np.int32)
        _afters(closing, state, count, texts, end, value)
        for (q, tokens, *_), needs in zip(lists, value.tolist(), strict=True):
            if needs < NEVER:
                number[q], after[q] = found.setdefault(tokens, len(found)), needs
    offset = np.cumsum([0, *map(len, found)], dtype=np.int32)
    return {
        "state_forced": number,
        "forced_after": after,
        "forced_offset": offset,
        "forced_tokens": np.array([i for tokens in found for i in tokens], np.int32),
    }


def _lists(t: Tables, vocab: Vocab, encode: Encode) -> tuple[np.ndarray, list[tuple[int, tuple[int, ...], int, int]]]:
    """The forced bytes of every state, uint8 [states, LONGEST], and (state, tokens, bytes of them, special symbol at
    their end or 0) where there are tokens."""
    symbol = _only_symbols(t)
    text, length, end = (
        np.zeros((t.states, LONGEST), np.uint8),
        np.zeros(t.states, np.int32),
        np.zeros(t.states, np.int32),
    )
    _follow(symbol, _moves(t, symbol), t.push, t.return_offset, t.return_, text, length, end)
    ends: dict[int, list[int]] = {}
    for s, token in zip(t.special_symbol.tolist(), t.special_token.tolist(), strict=True):
        ends.setdefault(s, []).append(token)
    texts: dict[str, int] = {}
    asked: list[tuple[int, str]] = []
    for q in np.flatnonzero((length > 0) | (end > 0)).tolist():
        try:
            shown = text[q, : length[q]].tobytes().decode()
        except UnicodeDecodeError:
            continue  # it begins or ends within a character
        texts.setdefault(shown, len(texts))
        asked.append((q, shown))
    encoded = encode(list(texts))
    size = np.diff(vocab.token_offset)
    special = set(t.special_token.tolist())
    found = []
    for q, shown in asked:
        ids, fixed = encoded[texts[shown]]
        if not special.isdisjoint(ids) or b"".join(map(vocab.token, ids)) != shown.encode():
            continue  # the encoder adds or normalizes something
        last = ends.get(int(end[q]), []) if end[q] else []
        symbol_at_end = int(end[q]) if len(last) == 1 else 0
        chosen = ids if symbol_at_end else ids[:fixed]
        if chosen or symbol_at_end:
            found.append((q, (*chosen, *last[: bool(symbol_at_end)]), int(size[chosen].sum()), symbol_at_end))
    return text, found


def _cells(t: Tables) -> tuple[np.ndarray, np.ndarray]:
    """The cells of all states, and which state each belongs to."""
    count = t.state_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1
    owner = np.repeat(np.arange(t.states), count)
    first = np.cumsum(count) - count
    return np.repeat(t.state_cell - first, count) + np.arange(owner.size), owner


def _only_symbols(t: Tables) -> np.ndarray:
    """int32 [states]: the only symbol that a state reads, -1 if there are none or several."""
    cell, owner = _cells(t)
    members = np.bincount(t.symbol_class, minlength=t.classes)
    symbol_of = np.zeros(t.classes, np.int64)
    symbol_of[t.symbol_class] = np.arange(t.symbol_class.size)
    reads = np.zeros((t.states, t.classes), bool)
    for begin in range(0, cell.size, 4096):
        some, whose = cell[begin : begin + 4096], owner[begin : begin + 4096]
        base = t.cell_delta[some][:, None]
        entry = t.delta[base + np.arange(t.classes)]
        np.logical_or.at(reads, whose, (entry[:, :, 0] == base) & (entry[:, :, 1] != 0))
    weight = reads @ members
    only = np.where(weight == 1, symbol_of[reads.argmax(axis=1)], _NONE).astype(np.int32)
    only[:2] = _NONE
    return only


def _moves(t: Tables, symbol: np.ndarray) -> np.ndarray:
    """int32 [states]: the op on the only symbol, -1 where it is another op at another counter."""
    cell, owner = _cells(t)
    place = t.cell_delta[cell] + t.symbol_class[np.maximum(symbol[owner], 0)]
    op = np.where(t.delta[place, 0] == t.cell_delta[cell], t.delta[place, 1], 0)
    low, high = np.full(t.states, MANY, np.int64), np.full(t.states, -1, np.int64)
    np.minimum.at(low, owner, op)
    np.maximum.at(high, owner, op)
    return np.where((low == high) & (low > 0) & (symbol >= 0), low, _NONE).astype(np.int32)


@njit(cache=True)
def _follow(symbol, op, push, return_offset, return_, text, length, end):  # type: ignore[no-untyped-def]
    """The bytes that every state is forced to read, until its frame is left; end: a special symbol after them, or 0."""
    stack = np.zeros(text.shape[1] + 1, np.int32)
    for q0 in range(symbol.size):
        q, top, n = q0, 0, 0
        while op[q] >= 0 and n < text.shape[1]:
            if symbol[q] >= 256:
                end[q0] = symbol[q]
                break
            text[q0, n] = symbol[q]
            n += 1
            kind, number = op[q] & 7, op[q] >> 3
            if kind < 4:
                q = number
            elif kind == 4:
                stack[top] = push[number, 0]
                top += 1
                q = push[number, 1]
            elif top > 0:
                top -= 1
                base = return_offset[stack[top]]
                if return_[base + number, 0] != base:
                    break
                q = return_[base + number, 1] >> 2
            else:
                break
        length[q0] = n


@njit(cache=True)
def _afters(a, state, count, text, end, out):  # type: ignore[no-untyped-def]
    """out int32 [·] = the bound above the frame after `count` bytes of a state's text and the special symbol `end`
    (0: none), whatever the counters; 0 where they leave the frame."""
    stack = np.zeros(text.shape[1] + 2, np.int32)
    for i in range(state.size):
        for mode in range(a.modes):
            q, top, left = np.int64(state[i]), 0, False
            for n in range(count[i] + (end[i] > 0)):
                symbol = np.int64(text[state[i], n] if n < count[i] else end[i])
                op = op_at(a, q, np.int64(0), np.int64(a.symbol_class[symbol]))
                kind, number = op & 7, op >> 3
                if kind < 4:
                    q = number
                elif kind == 4:
                    stack[top] = a.push[number, 0]
                    top += 1
                    q = np.int64(a.push[number, 1 + mode])
                elif top > 0:
                    top -= 1
                    q = np.int64(a.return_[a.return_offset[stack[top]] + number, 1] >> 2)
                else:
                    left = True
            value, many = np.int64(0), np.int64(MANY)
            if not left:
                value = most(a, q, np.int64(0), many)
                for k in range(top):
                    value += owes(a, np.int64(stack[k]), np.int64(0), many)
            out[i] = max(out[i], min(value, NEVER))
