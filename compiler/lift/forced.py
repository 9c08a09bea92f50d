"""Find forced tokens: where the automaton allows one text only, its tokens by the tokenizer's own encoding.

From the tables of a bundle: `state_forced`, `forced_…` of docs/format.md.

Leaves out   the encoder (../vocab/encode.py), the bounds of states (completion.py), their use (runtime/host/kernels.py,
             runtime/device/torch_step.py).
Invariants   the bytes of a list of forced tokens are the only way on from its state, whatever the counters; the last
             token ends where the encoder cuts in any case, before a special token, or with one.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.kernels.step import op_in, phases_of
from toolc.runtime.format.ops import ACTION_BITS, KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.format.tables import NEVER, Tables
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.jit.memory import kernel
from toolc.runtime.selection.completion_automaton import MANY, Closing, most, op_at, owes

from ..budget import Budget
from ..terminals.offsets import offsets
from ..vocab.encode import Encode

LONGEST = 96  # bytes of a forced text, at most
MOST = 1 << 15  # texts that are encoded, those of the first states: an encoder takes some 30 microseconds for each
_BATCH = 1 << 9  # texts between two looks at the budget
_NONE, _SEVERAL = -1, -2


def forced_arrays(
    t: Tables, vocab: Vocab, closing: Closing, encode: Encode | None, budget: Budget
) -> dict[str, np.ndarray]:
    """The arrays of the forced tokens; of no state where there is no encoder.

    Args:
        closing: with its bounds.

    Raises BudgetError: it took too many seconds.
    """
    found: dict[tuple[int, ...], int] = {(): 0}
    number, after = np.zeros(t.states, np.int32), np.zeros(t.states, np.int32)
    if encode is not None:
        texts, state, which, lists = _lists(t, vocab, closing, encode, budget)
        count, end = (np.array([x[n] for x in lists], np.int32)[which] for n in (1, 2))
        value = np.zeros(state.size, np.int32)
        _afters(closing, state, count, texts, end, value)
        known = value < NEVER
        state, which = state[known], which[known]
        after[state] = value[known]
        used, first = np.unique(which, return_index=True)
        number_of = np.zeros(len(lists), np.int32)
        for i in used[np.argsort(first)].tolist():
            number_of[i] = found.setdefault(lists[i][0], len(found))
        number[state] = number_of[which]
    offset = offsets(map(len, found), np.int32)
    return {
        "state_forced": number,
        "forced_after": after,
        "forced_offset": offset,
        "forced_tokens": np.array([i for tokens in found for i in tokens], np.int32),
    }


def _lists(
    t: Tables, vocab: Vocab, a: Closing, encode: Encode, budget: Budget
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[tuple[tuple[int, ...], int, int]]]:
    """The forced bytes of every state, uint8 [states, LONGEST]; states that have tokens, int32 [·], and which of the
    lists each has, int64 [·]; the lists: tokens, how many bytes they are, special symbol at their end or 0."""
    symbol, op = _only_ops(
        a.symbol_class, a.state_cell, a.state_break, a.breaks, a.cell_delta, a.cell_default, a.delta, t.classes
    )
    text, length, end = (
        np.zeros((t.states, LONGEST), np.uint8),
        np.zeros(t.states, np.int32),
        np.zeros(t.states, np.int32),
    )
    _follow(symbol, op, t.push, t.return_offset, t.return_, text, length, end)
    ends: dict[int, list[int]] = {}
    for s, token in zip(t.special_symbol.tolist(), t.special_token.tolist(), strict=True):
        ends.setdefault(s, []).append(token)
    asked = np.flatnonzero((length > 0) | (end > 0))
    data, begin = text[asked].tobytes(), range(0, asked.size * LONGEST, LONGEST)
    numbers: dict[tuple[bytes, int], int] = {}
    pairs = zip(begin, length[asked].tolist(), end[asked].tolist(), strict=True)
    which = np.array([numbers.setdefault((data[i : i + n], e), len(numbers)) for i, n, e in pairs], np.int64)
    lists: list[tuple[tuple[int, ...], int, int]] = []
    place = np.full(len(numbers), -1, np.int64)
    special = set(t.special_token.tolist())
    texts = list(dict.fromkeys(raw for raw, _ in numbers))[:MOST]
    encoded = _encoded(texts, vocab, encode, special, budget)
    for i, (raw, symbol_at_end) in enumerate(numbers):
        if raw not in encoded:
            continue
        last = ends.get(symbol_at_end, [])
        if len(last) != 1:
            last, symbol_at_end = [], 0
        chosen, size = encoded[raw][0 if symbol_at_end else 1]
        if chosen or symbol_at_end:
            place[i] = len(lists)
            lists.append(((*chosen, *last), size, symbol_at_end))
    some = place[which] >= 0
    return text, asked[some].astype(np.int32), place[which[some]], lists


_Part = tuple[list[int], int]  # tokens, and how many bytes they are


def _encoded(
    texts: list[bytes], vocab: Vocab, encode: Encode, special: set[int], budget: Budget
) -> dict[bytes, tuple[_Part, _Part]]:
    """The tokens of texts, and of each as many as stay whatever follows; not of those that begin or end within a
    character, or to which the encoder adds something."""
    shown: dict[str, bytes] = {}
    for raw in texts:
        try:
            shown[raw.decode()] = raw
        except UnicodeDecodeError:
            continue
    found = {}
    held, offset = vocab.token_bytes.tobytes(), vocab.token_offset.data
    asked = list(shown)
    for begin in range(0, len(asked), _BATCH):
        budget.check("")
        some = asked[begin : begin + _BATCH]
        for text, (ids, fixed) in zip(some, encode(some), strict=True):
            raw, data = shown[text], [held[offset[i] : offset[i + 1]] for i in ids]
            if special.isdisjoint(ids) and b"".join(data) == raw:
                found[raw] = (ids, len(raw)), (ids[:fixed], sum(map(len, data[:fixed])))
    return found


@kernel()
def _only_ops(symbol_class, state_cell, state_break, breaks, cell_delta, cell_default, delta, classes):  # type: ignore[no-untyped-def]
    """The only symbol that a state reads and its op, int32 [states] each: -1 where there are several, none, or another
    op at another counter."""
    symbol_of = np.full(classes, _NONE, np.int64)  # of each class, where it has one only
    for s in range(symbol_class.size - 1, -1, -1):
        k = symbol_class[s]
        symbol_of[k] = s if symbol_of[k] == _NONE else _SEVERAL
    symbol, op = np.full(state_cell.size, _NONE, np.int32), np.full(state_cell.size, _NONE, np.int32)
    for q in range(2, state_cell.size):
        only, does, same = _NONE, np.int64(0), True
        for cell in range(state_cell[q], state_cell[q] + phases_of(breaks, state_break[q])):
            here = np.int64(0)
            for k in range(classes):
                found = op_in(delta, cell_delta[cell], cell_default[cell], k)
                if found == 0:
                    continue
                if here > 0 or symbol_of[k] < 0 or (does > 0 and (k != only or found != does)):
                    same = False
                    break
                only, does, here = k, found, found
            if not same or here == 0:
                same = False
                break
        if same:
            symbol[q], op[q] = symbol_of[only], does
    return symbol, op


@kernel()
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
            kind, number = op[q] & KIND_MASK, op[q] >> KIND_BITS
            if kind < PUSH:
                q = number
            elif kind == PUSH:
                stack[top] = push[number, 0]
                top += 1
                q = push[number, 1]
            elif top > 0:
                top -= 1
                base = return_offset[stack[top]]
                if return_[base + number, 0] != base:
                    break
                q = return_[base + number, 1] >> ACTION_BITS
            else:
                break
        length[q0] = n


@kernel()
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
                kind, number = op & KIND_MASK, op >> KIND_BITS
                if kind < PUSH:
                    q = number
                elif kind == PUSH:
                    stack[top] = a.push[number, 0]
                    top += 1
                    q = np.int64(a.push[number, 1 + mode])
                elif top > 0:
                    top -= 1
                    q = np.int64(a.return_[a.return_offset[stack[top]] + number, 1] >> ACTION_BITS)
                else:
                    left = True
            value, many = np.int64(0), np.int64(MANY)
            if not left:
                value = most(a, q, np.int64(0), many)
                for k in range(top):
                    value += owes(a, np.int64(stack[k]), np.int64(0), many)
            out[i] = max(out[i], min(value, NEVER))
