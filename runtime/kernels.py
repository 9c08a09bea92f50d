"""Numba kernels of the host: advance one sequence by a token, fill its mask, expand a row.

Leaves out   who owns the arrays, growth, errors: see host.py and matcher.py. Checks of indices: see tables.py.
Invariants   pure functions over arrays; a refused token leaves its configuration as it was.
Arrays       packed int32 [·]: all tables of a bundle end to end; at int64 [len(FIELDS)]: where each begins; numbers.
             history int32 [n, 5]: a configuration: state, counter, depth, top frame (-1: none), frames used.
             frames int32 [m, 3]: parent frame, stack symbol, saved counter. Frames are shared by configurations, so
             a stack is a linked list and undoing a token is one step back in `history`.
             slots uint32 [s, words]: expanded rows; slot_of_row int32 [rows + 1], -1: not expanded; the last is the
             row of the end-of-turn ids.
Cost         one call with seven arrays is about 0.5 microseconds of dispatch, so there are few kernels and few arrays.
Source       docs/architecture.md, "Reading a symbol"; tests/oracle_runtime.py is the plain twin.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

# Places in `at`. First the arrays, then the numbers.
TABLES = (
    "symbol_class",
    "special_token",
    "special_symbol",
    "state_cell",
    "state_break",
    "cell_row",
    "cell_exit",
    "cell_delta",
    "delta",
    "push",
    "return_offset",
    "return",
    "chain_offset",
    "chain",
    "chain_cell",
    "chain_break",
    "chain_row",
    "chain_exit",
    "row_slice",
    "row_units",
    "row_dense",
    "row_list",
    "list_offset",
    "list_tokens",
    "dense",
)
NUMBERS = ("specials", "symbols", "breaks", "modes", "soft_depth", "capacity", "tokens", "words", "rows")
FIELDS = {name: number for number, name in enumerate(TABLES + NUMBERS)}
(
    SYMBOL_CLASS,
    SPECIAL_TOKEN,
    SPECIAL_SYMBOL,
    STATE_CELL,
    STATE_BREAK,
    CELL_ROW,
    CELL_EXIT,
    CELL_DELTA,
    DELTA,
    PUSH,
    RETURN_OFFSET,
    RETURN,
    CHAIN_OFFSET,
    CHAIN,
    CHAIN_CELL,
    CHAIN_BREAK,
    CHAIN_ROW,
    CHAIN_EXIT,
    ROW_SLICE,
    ROW_UNITS,
    ROW_DENSE,
    ROW_LIST,
    LIST_OFFSET,
    LIST_TOKENS,
    DENSE,
    SPECIALS,
    SYMBOLS,
    BREAKS,
    MODES,
    SOFT_DEPTH,
    CAPACITY,
    TOKENS,
    WORDS,
    ROWS,
) = range(len(TABLES) + len(NUMBERS))

REFUSED, ACCEPTED, FULL, OVERFLOW = 0, 1, 2, 3  # what `advance_token` and `advance_symbols` return

_warned = False


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on this machine."""


def kernel(*arguments: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with a cache on disk where there is a place for one; says so once where there is none."""

    def wrap(function: Callable[..., Any]) -> Any:
        global _warned
        try:
            return numba.njit(*arguments, cache=True, **options)(function)
        except (RuntimeError, OSError) as error:
            if not _warned:
                _warned = True
                warnings.warn(
                    f"toolc cannot keep compiled kernels ({error}); every process compiles them anew, some seconds. "
                    "Set NUMBA_CACHE_DIR to a folder that can be written.",
                    CacheWarning,
                    stacklevel=2,
                )
            return numba.njit(*arguments, **options)(function)

    return wrap


_I32 = numba.types.Array(numba.int32, 1, "C", readonly=True)
_I64 = numba.types.Array(numba.int64, 1, "C", readonly=True)
_U8 = numba.types.Array(numba.uint8, 1, "C", readonly=True)
_ROWS = numba.types.Array(numba.uint32, 2, "C")
_MASK = numba.types.Array(numba.uint32, 1, "C")
_SLOT = numba.types.Array(numba.int32, 1, "C")
_PAIRS = numba.types.Array(numba.int32, 2, "C")
_BYTES = numba.types.Array(numba.uint8, 1, "C")


@numba.njit(inline="always")
def _phase(packed, breaks, count, c):  # type: ignore[no-untyped-def]
    total = 0
    for b in range(count):
        span = packed[breaks + 2 * b + 1]
        past = c - packed[breaks + 2 * b] + span
        if past > 0:
            total += min(past, span)
    return total


@numba.njit(inline="always")
def _act(action, c):  # type: ignore[no-untyped-def]
    if action == 0:
        return c
    if action == 1:
        return c + 1
    return action - 2


@numba.njit
def _step(packed, at, frames, q, c, depth, top, used, symbol, mode):  # type: ignore[no-untyped-def]
    """One symbol; (state, counter, depth, top, used), or a negative state: -REFUSED, -FULL, -OVERFLOW as code."""
    if q == 1:
        if symbol == 256:
            return 1, c, depth, top, used, ACCEPTED
        return 0, c, depth, top, used, REFUSED
    n = at[BREAKS]
    cell = packed[at[STATE_CELL] + q] + _phase(packed, at[STATE_BREAK] + q * n * 2, n, c)
    base = packed[at[CELL_DELTA] + cell]
    entry = at[DELTA] + 2 * (base + packed[at[SYMBOL_CLASS] + symbol])
    if packed[entry] != base:
        return 0, c, depth, top, used, REFUSED
    op = packed[entry + 1]
    kind, number = op & 7, op >> 3
    if kind < 4:
        if number == 0:
            return 0, c, depth, top, used, REFUSED
        return number, _act(kind, c), depth, top, used, ACCEPTED
    if kind == 4:
        push = at[PUSH] + 4 * number
        state = packed[push + 1 + mode]
        if depth >= at[CAPACITY]:
            return 0, c, depth, top, used, OVERFLOW
        if state == 0:
            return 0, c, depth, top, used, REFUSED
        if used >= frames.shape[0]:
            return 0, c, depth, top, used, FULL
        frames[used, 0] = top
        frames[used, 1] = packed[push]
        frames[used, 2] = _act(packed[push + 3], c)
        return state, 0, depth + 1, used, used + 1, ACCEPTED
    if depth == 0:
        return 0, c, depth, top, used, REFUSED
    base = packed[at[RETURN_OFFSET] + frames[top, 1]]
    entry = at[RETURN] + 2 * (base + number)
    value = packed[entry + 1]
    if packed[entry] != base or value >> 2 == 0:
        return 0, c, depth, top, used, REFUSED
    return value >> 2, _act(value & 3, frames[top, 2]), depth - 1, frames[top, 0], used, ACCEPTED


@numba.njit
def _mode(at, depth):  # type: ignore[no-untyped-def]
    return at[MODES] - 1 if depth >= at[SOFT_DEPTH] else 0


@numba.njit
def _walk(packed, at, symbols, start, stop, history, frames, position):  # type: ignore[no-untyped-def]
    if position + 1 >= history.shape[0]:
        return FULL
    if start == stop:
        return REFUSED
    q, c = np.int64(history[position, 0]), np.int64(history[position, 1])
    depth, top = np.int64(history[position, 2]), np.int64(history[position, 3])
    used = np.int64(history[position, 4])
    mode = _mode(at, depth)
    for i in range(start, stop):
        q, c, depth, top, used, code = _step(packed, at, frames, q, c, depth, top, used, np.int64(symbols[i]), mode)
        if code != ACCEPTED:
            return code
    history[position + 1, 0] = q
    history[position + 1, 1] = c
    history[position + 1, 2] = depth
    history[position + 1, 3] = top
    history[position + 1, 4] = used
    return ACCEPTED


@kernel(numba.int64(_I32, _I64, _I32, _U8, _PAIRS, _PAIRS, numba.int64, numba.int64))
def advance_token(packed, at, token_offset, token_bytes, history, frames, position, token):  # type: ignore[no-untyped-def]
    """Read a token from configuration `position` into `position + 1`; the codes above."""
    if token < 0 or token >= at[TOKENS]:
        return REFUSED
    low, high = at[SPECIAL_TOKEN], at[SPECIAL_TOKEN] + at[SPECIALS]
    while low < high:
        middle = (low + high) >> 1
        if packed[middle] < token:
            low = middle + 1
        else:
            high = middle
    if low < at[SPECIAL_TOKEN] + at[SPECIALS] and packed[low] == token:
        here = low - at[SPECIAL_TOKEN] + at[SPECIAL_SYMBOL]
        return _walk(packed, at, packed, here, here + 1, history, frames, position)
    return _walk(packed, at, token_bytes, token_offset[token], token_offset[token + 1], history, frames, position)


@kernel(numba.int64(_I32, _I64, _I32, _PAIRS, _PAIRS, numba.int64))
def advance_symbols(packed, at, symbols, history, frames, position):  # type: ignore[no-untyped-def]
    """The same for symbols (each < `symbols`, checked by the caller) read as one token."""
    return _walk(packed, at, symbols, 0, symbols.size, history, frames, position)


@kernel(numba.void(_I32, _I64, _PAIRS, _PAIRS, numba.int64, _BYTES))
def possible_symbols(packed, at, history, frames, position, out):  # type: ignore[no-untyped-def]
    """out uint8 [symbols] = 1 where the symbol alone would be accepted, else 0. Needs one free frame."""
    q, c = np.int64(history[position, 0]), np.int64(history[position, 1])
    depth, top = np.int64(history[position, 2]), np.int64(history[position, 3])
    used = np.int64(history[position, 4])
    mode = _mode(at, depth)
    for symbol in range(at[SYMBOLS]):
        code = _step(packed, at, frames, q, c, depth, top, used, np.int64(symbol), mode)[5]
        out[symbol] = code == ACCEPTED


@kernel(numba.int64(_I32, _I64, _ROWS, _SLOT, _PAIRS, _PAIRS, numba.int64, _MASK))
def fill_mask(packed, at, slots, slot_of_row, history, frames, position, mask):  # type: ignore[no-untyped-def]
    """mask = the allowed tokens; -1, or the number of a row that must be expanded first (mask is then undefined)."""
    words = at[WORDS]
    q = np.int64(history[position, 0])
    if q == 1:
        slot = slot_of_row[at[ROWS]]
        if slot < 0:
            return at[ROWS]
        for w in range(words):
            mask[w] = slots[slot, w]
        mask[words:] = 0
        return -1
    depth, top = np.int64(history[position, 2]), np.int64(history[position, 3])
    n, modes, mode = at[BREAKS], at[MODES], _mode(at, depth)
    x = packed[at[STATE_CELL] + q] + _phase(packed, at[STATE_BREAK] + q * n * 2, n, np.int64(history[position, 1]))
    row = np.int64(packed[at[CELL_ROW] + x * modes + mode])
    e = packed[at[CELL_EXIT] + x * modes + mode]
    slot = slot_of_row[row]
    if slot < 0:
        return row
    for w in range(words):
        mask[w] = slots[slot, w]
    mask[words:] = 0
    while e >= 0 and top >= 0:
        base = packed[at[CHAIN_OFFSET] + e]
        entry = at[CHAIN] + 2 * (base + frames[top, 1])
        if packed[entry] != base:
            break
        number = np.int64(packed[entry + 1])
        x = packed[at[CHAIN_CELL] + number] + _phase(
            packed, at[CHAIN_BREAK] + number * n * 2, n, np.int64(frames[top, 2])
        )
        row = np.int64(packed[at[CHAIN_ROW] + x])
        slot = slot_of_row[row]
        if slot < 0:
            return row
        for w in range(words):
            mask[w] |= slots[slot, w]
        e = packed[at[CHAIN_EXIT] + x]
        top = np.int64(frames[top, 0])
    return -1


@kernel(numba.int64(_I32, _I64, _PAIRS, _PAIRS, numba.int64, _SLOT))
def rows_of_mask(packed, at, history, frames, position, out):  # type: ignore[no-untyped-def]
    """The rows whose union is the mask, into `out`; returns how many (at most the longest chain + 1)."""
    q = np.int64(history[position, 0])
    if q == 1:
        out[0] = at[ROWS]
        return 1
    depth, top = np.int64(history[position, 2]), np.int64(history[position, 3])
    n, modes, mode = at[BREAKS], at[MODES], _mode(at, depth)
    x = packed[at[STATE_CELL] + q] + _phase(packed, at[STATE_BREAK] + q * n * 2, n, np.int64(history[position, 1]))
    out[0] = packed[at[CELL_ROW] + x * modes + mode]
    e = packed[at[CELL_EXIT] + x * modes + mode]
    count = 1
    while e >= 0 and top >= 0:
        base = packed[at[CHAIN_OFFSET] + e]
        entry = at[CHAIN] + 2 * (base + frames[top, 1])
        if packed[entry] != base:
            break
        number = np.int64(packed[entry + 1])
        x = packed[at[CHAIN_CELL] + number] + _phase(
            packed, at[CHAIN_BREAK] + number * n * 2, n, np.int64(frames[top, 2])
        )
        out[count] = packed[at[CHAIN_ROW] + x]
        count += 1
        e = packed[at[CHAIN_EXIT] + x]
        top = np.int64(frames[top, 0])
    return count


@kernel(numba.void(_I32, _I64, _I32, _I32, _I32, numba.int64, _MASK))
def expand_row(packed, at, slice_token_offset, slice_tokens, slice_units, row, out):  # type: ignore[no-untyped-def]
    """out uint32 [words] = the row: its bit row, the part of its slice and its list, each toggling what is there."""
    dense = packed[at[ROW_DENSE] + row]
    for w in range(at[WORDS]):
        out[w] = np.uint32(packed[at[DENSE] + dense * at[WORDS] + w]) if dense >= 0 else np.uint32(0)
    s, units = packed[at[ROW_SLICE] + row], packed[at[ROW_UNITS] + row]
    if s >= 0:
        for k in range(slice_token_offset[s], slice_token_offset[s + 1]):
            if units >= 0 and slice_units[k] > units:
                break
            token = slice_tokens[k]
            out[token >> 5] ^= np.uint32(1) << np.uint32(token & 31)
    first = at[LIST_OFFSET] + packed[at[ROW_LIST] + row]
    for k in range(packed[first], packed[first + 1]):
        token = packed[at[LIST_TOKENS] + k]
        out[token >> 5] ^= np.uint32(1) << np.uint32(token & 31)
