"""Numba kernels of the host: advance sequences by a token, fill their masks, expand rows; one sequence or a batch.

Leaves out   who owns the arrays, growth, errors: see shared.py, matcher.py, batch.py. Checks of indices: see checks.py.
Invariants   a refused token leaves its configuration as it was. Kernels never release the interpreter's lock, so no
             thread ever sees half a row, and several may share a bundle.
Arrays       host int64 [len(FIELDS)]: addresses of the arrays of a bundle and of its vocabulary, then numbers.
             seat int64 [len(SEAT)]: one sequence: the address of its `host` (0: unconstrained), of its history, frames
             and registers, how many of those there are, its position in the history, and its budget: at which position
             the text has to be over (0: none). Seats of a batch are rows.
             history int32 [n, 7]: a configuration: state, counter, depth, top frame (-1: none), frames used, register,
             registers used.
             frames int32 [m, 4]: parent frame, stack symbol, saved counter, saved register. Frames are shared by
             configurations, so a stack is a linked list and undoing a token is one step back in `history`.
             registers uint32 [k, G]: word 0 of a register, a number, and its bits; number 0 has none. They are shared,
             too: setting a bit makes a new one. A bundle without registers has G = 0 here, always register 0, and
             saves none in frames.
             prefix uint32 [·, words]: bitmaps of prefixes of the slices; those of slice i start at `prefix_first[i]`:
             its first 0, 1, 2, … times `prefix_stride` tokens, then all of them. So every prefix is at most half a
             stride of toggles away from one.
             slots uint32 [slot_count, words]: rows expanded lately, by any bundle of the vocabulary; slot_tag int64
             [slot_count]: which one: number of the bundle's host << 32 | row. A row has one place where it can be.
Trusts       every number of the tables is inside of what it indexes, for every phase of any counter (kernels/check.py),
             and for every stack symbol, which come from `push`; chains end (`max_chain`); a base of lists has none.
             What a caller hands over is its own matter: symbols below `symbols`, rows at most `rows`, room for frames.
Cost         expanding a row costs about as much as copying one (0.3 to 1.5 microseconds for 128k tokens), a first touch
             of fresh memory five times that: so the cache is small and used over and over.
Addresses    Arrays are handed over by address, since the dispatch of an array costs more than reading a token. Whoever
             writes an address into `host` or a seat keeps that array alive and in place as long as the table is used.
Source       reference.py, which says the same in plain Python.
"""

from __future__ import annotations

import numba
import numpy as np

from ..format.ops import ACTION_BITS, ACTION_MASK, END_OF_TURN, FINISHED, KIND_BITS, KIND_MASK
from ..format.ops import PUSH as PUSH_OP
from ..jit.memory import combine as _combine
from ..jit.memory import copy as _copy
from ..jit.memory import fill as _set
from ..jit.memory import kernel
from ..jit.memory import read_byte as _byte
from ..jit.memory import read_int as _int
from ..jit.memory import read_long as _long
from ..jit.memory import toggle as _toggle
from ..jit.memory import write_int as _set_int
from ..jit.memory import write_long as _set_long

# Places in `host`. First addresses: arrays of a bundle, of its vocabulary, of what bundles share. Then numbers.
TABLES = (
    "symbol_class",
    "special_token",
    "special_symbol",
    "state_cell",
    "state_break",
    "breaks",
    "cell_row",
    "cell_exit",
    "cell_delta",
    "cell_default",
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
    "list_base",
    "dense",
    "state_register",
    "register_rule",
    "test_wants",
    "test_mask",
    "cell_check",
    "chain_check",
    "check_offset",
    "check",
    "state_way",
    "way_offset",
    "way",
    "state_close",
    "close_break",
    "close_breaks",
    "close_bound",
    "close_token",
    "close_after",
    "owed_first",
    "owed_break",
    "owed",
    "chain_after",
)
VOCAB = ("token_offset", "token_bytes", "slice_token_offset", "slice_tokens", "slice_units")
SHARED = ("prefix_first", "prefix", "slots", "slot_tag")
NUMBERS = (
    "specials",
    "symbols",
    "width",
    "close_width",
    "modes",
    "soft_depth",
    "capacity",
    "register_words",
    "tokens",
    "words",
    "rows",
    "prefix_stride",
    "slot_count",
    "tag",
)
FIELDS = {name: number for number, name in enumerate(TABLES + VOCAB + SHARED + NUMBERS)}
(
    SYMBOL_CLASS,
    SPECIAL_TOKEN,
    SPECIAL_SYMBOL,
    STATE_CELL,
    STATE_BREAK,
    BREAKS,
    CELL_ROW,
    CELL_EXIT,
    CELL_DELTA,
    CELL_DEFAULT,
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
    LIST_BASE,
    DENSE,
    STATE_REGISTER,
    REGISTER_RULE,
    TEST_WANTS,
    TEST_MASK,
    CELL_CHECK,
    CHAIN_CHECK,
    CHECK_OFFSET,
    CHECK,
    STATE_WAY,
    WAY_OFFSET,
    WAY,
    STATE_CLOSE,
    CLOSE_BREAK,
    CLOSE_BREAKS,
    CLOSE_BOUND,
    CLOSE_TOKEN,
    CLOSE_AFTER,
    OWED_FIRST,
    OWED_BREAK,
    OWED,
    CHAIN_AFTER,
    TOKEN_OFFSET,
    TOKEN_BYTES,
    SLICE_TOKEN_OFFSET,
    SLICE_TOKENS,
    SLICE_UNITS,
    PREFIX_FIRST,
    PREFIX,
    SLOTS,
    SLOT_TAG,
    SPECIALS,
    SYMBOLS,
    WIDTH,
    CLOSE_WIDTH,
    MODES,
    SOFT_DEPTH,
    CAPACITY,
    REGISTER_WORDS,
    TOKENS,
    WORDS,
    ROWS,
    PREFIX_STRIDE,
    SLOT_COUNT,
    TAG,
) = range(len(FIELDS))

SEAT = (
    *("host", "history", "frames", "registers", "history_size", "frames_size", "registers_size"),
    *("position", "budget"),
)
HOST, HISTORY, FRAMES, REGISTERS, HISTORY_SIZE, FRAMES_SIZE, REGISTERS_SIZE, POSITION, BUDGET = range(len(SEAT))

REFUSED, ACCEPTED, FULL, OVERFLOW, STAYED = 0, 1, 2, 3, 4  # what reading a token returns

# ---------------------------------------------------------------- one symbol


@numba.njit(inline="always")
def _phase(breaks, number, count, c):  # type: ignore[no-untyped-def]
    total = 0
    if number == 0:  # the list of most states
        return total
    for b in range(number * count, number * count + count):
        span = _int(breaks, 2 * b + 1)
        past = c - _int(breaks, 2 * b) + span
        if past > 0:
            total += min(past, span)
    return total


@numba.njit(inline="always")
def _state_phase(host, q, c):  # type: ignore[no-untyped-def]
    return _phase(_long(host, BREAKS), _int(_long(host, STATE_BREAK), q), _long(host, WIDTH), c)


@numba.njit(inline="always")
def _act(action, c):  # type: ignore[no-untyped-def]
    if action == 0:
        return c
    if action == 1:
        return c + 1
    return action - 2


@numba.njit
def _step(host, frames, frames_size, q, c, depth, top, used, symbol, mode):  # type: ignore[no-untyped-def]
    """One symbol; (state, counter, depth, top, used, code), where the rest counts only if the code is ACCEPTED."""
    if q == FINISHED:
        return 1, c, depth, top, used, (ACCEPTED if symbol == END_OF_TURN else REFUSED)
    cell = _int(_long(host, STATE_CELL), q) + _state_phase(host, q, c)
    base = _int(_long(host, CELL_DELTA), cell)
    delta = _long(host, DELTA)
    symbol_class = _int(_long(host, SYMBOL_CLASS), symbol)
    entry = 2 * (base + symbol_class)
    if _int(delta, entry) != base:
        base = _int(_long(host, CELL_DEFAULT), cell)
        entry = 2 * (base + symbol_class)
        if _int(delta, entry) != base:
            return 0, c, depth, top, used, REFUSED
    op = _int(delta, entry + 1)
    kind, number = op & KIND_MASK, op >> KIND_BITS
    if kind < PUSH_OP:
        return number, _act(kind, c), depth, top, used, (ACCEPTED if number else REFUSED)
    if kind == PUSH_OP:
        push = _long(host, PUSH)
        state = _int(push, 4 * number + 1 + mode)
        if depth >= _long(host, CAPACITY):
            return 0, c, depth, top, used, OVERFLOW
        if state == 0:
            return 0, c, depth, top, used, REFUSED
        if used >= frames_size:
            return 0, c, depth, top, used, FULL
        _set_int(frames, 4 * used, top)
        _set_int(frames, 4 * used + 1, _int(push, 4 * number))
        _set_int(frames, 4 * used + 2, _act(_int(push, 4 * number + 3), c))
        return state, 0, depth + 1, used, used + 1, ACCEPTED
    if depth == 0:
        return 0, c, depth, top, used, REFUSED
    base = _int(_long(host, RETURN_OFFSET), _int(frames, 4 * top + 1))
    returns = _long(host, RETURN)
    value = _int(returns, 2 * (base + number) + 1)
    if _int(returns, 2 * (base + number)) != base or value >> ACTION_BITS == 0:
        return 0, c, depth, top, used, REFUSED
    c = _act(value & ACTION_MASK, _int(frames, 4 * top + 2))
    return value >> ACTION_BITS, c, depth - 1, _int(frames, 4 * top), used, ACCEPTED


@numba.njit
def _passes(host, registers, register, test):  # type: ignore[no-untyped-def]
    """Whether a register passes a test: some bit of the mask is clear, or none is, as the test wants."""
    words, masks = _long(host, REGISTER_WORDS), _long(host, TEST_MASK)
    some = 0
    for w in range(words):
        if _int(masks, test * words + w) & ~_int(registers, register * words + w):
            some = 1
    return some == _int(_long(host, TEST_WANTS), test)


@numba.njit
def _register_after(seat, host, left, height, under, q, depth, top, register, used):  # type: ignore[no-untyped-def]
    """What a symbol does to the register that led from state `left`, depth `height` and top frame `under` to state q,
    `depth` and `top`; (register, registers used, code)."""
    if left == FINISHED:
        return register, used, ACCEPTED
    registers, rules, rule_of = _long(seat, REGISTERS), _long(host, REGISTER_RULE), _long(host, STATE_REGISTER)
    frames, rule = _long(seat, FRAMES), 4 * _int(rule_of, q)
    if depth > height:
        _set_int(frames, 4 * top + 3, register)
        register = np.int64(0)
    else:
        if depth < height:
            if not _passes(host, registers, register, _int(rules, 4 * _int(rule_of, left) + 2)):
                return register, used, REFUSED
            register = _int(frames, 4 * under + 3)
        if not _passes(host, registers, register, _int(rules, rule)):
            return register, used, REFUSED
    bit = _int(rules, rule + 1)
    words, cost = _long(host, REGISTER_WORDS), _int(rules, rule + 3)
    if bit < 0:
        return register, used, ACCEPTED
    is_set = _int(registers, register * words + (bit >> 5)) >> (bit & 31) & 1
    if is_set and cost == 0:
        return register, used, ACCEPTED
    if used >= _long(seat, REGISTERS_SIZE):
        return register, used, FULL
    made = registers + 4 * words * used
    _copy(made, registers + 4 * words * register, 4 * words)
    if not is_set:
        _toggle(made, bit)
    _set_int(made, 0, _int(made, 0) + cost)
    return used, used + 1, ACCEPTED


@numba.njit(inline="always")
def _mode(host, depth):  # type: ignore[no-untyped-def]
    return _long(host, MODES) - 1 if depth >= _long(host, SOFT_DEPTH) else 0


# ---------------------------------------------------------------- tokens


@numba.njit
def _walk(seat, host, symbols, start, stop, narrow):  # type: ignore[no-untyped-def]
    """Read symbols (uint8 if `narrow`, else int32) as one token, into the next configuration."""
    position = _long(seat, POSITION)
    if position + 1 >= _long(seat, HISTORY_SIZE):
        return FULL
    if start == stop:
        return REFUSED
    frames, frames_size = _long(seat, FRAMES), _long(seat, FRAMES_SIZE)
    here = _long(seat, HISTORY) + 28 * position
    q, c, depth, top, used = _int(here, 0), _int(here, 1), _int(here, 2), _int(here, 3), _int(here, 4)
    register, registers_used = _int(here, 5), _int(here, 6)
    mode, has_registers = _mode(host, depth), _long(host, REGISTER_WORDS) > 0
    for i in range(start, stop):
        symbol = np.int64(_byte(symbols + i)) if narrow else _int(symbols, i)
        left, height, under = q, depth, top
        q, c, depth, top, used, code = _step(host, frames, frames_size, q, c, depth, top, used, symbol, mode)
        if code != ACCEPTED:
            return code
        if has_registers:
            register, registers_used, code = _register_after(
                seat, host, left, height, under, q, depth, top, register, registers_used
            )
            if code != ACCEPTED:
                return code
    _set_int(here, 7, q)
    _set_int(here, 8, c)
    _set_int(here, 9, depth)
    _set_int(here, 10, top)
    _set_int(here, 11, used)
    _set_int(here, 12, register)
    _set_int(here, 13, registers_used)
    _set_long(seat, POSITION, position + 1)
    return ACCEPTED


@numba.njit
def _read(seat, host, token):  # type: ignore[no-untyped-def]
    if token < 0 or token >= _long(host, TOKENS):
        return REFUSED
    special, count = _long(host, SPECIAL_TOKEN), _long(host, SPECIALS)
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if _int(special, middle) < token:
            low = middle + 1
        else:
            high = middle
    if low < count and _int(special, low) == token:
        return _walk(seat, host, _long(host, SPECIAL_SYMBOL), low, low + 1, False)
    offset = _long(host, TOKEN_OFFSET)
    return _walk(seat, host, _long(host, TOKEN_BYTES), _int(offset, token), _int(offset, token + 1), True)


_I32 = numba.types.Array(numba.int32, 1, "C", readonly=True)
_ROWS = numba.types.Array(numba.uint32, 2, "C")
_MASK = numba.types.Array(numba.uint32, 1, "C")
_BYTES = numba.types.Array(numba.uint8, 1, "C")
_NUMBERS = numba.types.Array(numba.int32, 1, "C")


@kernel(numba.int64(numba.int64, numba.int64))
def advance_token(seat, token):  # type: ignore[no-untyped-def]
    """Read a token into the configuration after the seat's; the codes above."""
    return _read(seat, _long(seat, HOST), token)


@kernel(numba.int64(numba.int64, _I32))
def advance_symbols(seat, symbols):  # type: ignore[no-untyped-def]
    """The same for symbols (each < `symbols`, checked by the caller) read as one token."""
    return _walk(seat, _long(seat, HOST), np.int64(symbols.ctypes.data), 0, symbols.size, False)


@kernel(numba.void(numba.int64, _BYTES))
def possible_symbols(seat, out):  # type: ignore[no-untyped-def]
    """out uint8 [symbols] = 1 where the symbol alone would be accepted, else 0. Needs a free frame and register."""
    host, frames, frames_size = _long(seat, HOST), _long(seat, FRAMES), _long(seat, FRAMES_SIZE)
    here = _long(seat, HISTORY) + 28 * _long(seat, POSITION)
    q, c, depth, top, used = _int(here, 0), _int(here, 1), _int(here, 2), _int(here, 3), _int(here, 4)
    mode, has_registers = _mode(host, depth), _long(host, REGISTER_WORDS) > 0
    for i in range(_long(host, SYMBOLS)):
        symbol = np.int64(i)
        after, _, height, over, _, code = _step(host, frames, frames_size, q, c, depth, top, used, symbol, mode)
        if has_registers and code == ACCEPTED:
            code = _register_after(seat, host, q, depth, top, after, height, over, _int(here, 5), _int(here, 6))[2]
        out[symbol] = code == ACCEPTED


# ---------------------------------------------------------------- rows and masks


@numba.njit
def _prefix(host, s, stop):  # type: ignore[no-untyped-def]
    """(address of the bitmap nearest to the prefix of slice s that ends at place `stop` of `slice_tokens`, its end)."""
    stride = _long(host, PREFIX_STRIDE)
    first = _int(_long(host, SLICE_TOKEN_OFFSET), s)
    last = _int(_long(host, SLICE_TOKEN_OFFSET), s + 1)
    whole = (last - first) // stride
    k = (stop - first + stride // 2) // stride
    here = first + k * stride
    if k > whole or last - stop < abs(here - stop):
        k, here = whole + 1, last
    return _long(host, PREFIX) + 4 * _long(host, WORDS) * (_int(_long(host, PREFIX_FIRST), s) + k), here


@numba.njit
def _stop(host, s, units):  # type: ignore[no-untyped-def]
    """Where the tokens of slice s of at most so many units end in `slice_tokens`; all if units < 0."""
    low = _int(_long(host, SLICE_TOKEN_OFFSET), s)
    high = _int(_long(host, SLICE_TOKEN_OFFSET), s + 1)
    if units >= 0:
        held = _long(host, SLICE_UNITS)
        while low < high:
            middle = (low + high) >> 1
            if _int(held, middle) <= units:
                low = middle + 1
            else:
                high = middle
    return high


@numba.njit
def _expand(host, row, out):  # type: ignore[no-untyped-def]
    """The row at an address: its slice, bit row, list and base of the list, each toggling what is there."""
    words = _long(host, WORDS)
    if row == _long(host, ROWS):
        _set(out, 0, 4 * words)
        for i in range(_long(host, SPECIALS)):
            if _int(_long(host, SPECIAL_SYMBOL), i) == END_OF_TURN:
                _toggle(out, _int(_long(host, SPECIAL_TOKEN), i))
        return
    s, dense = _int(_long(host, ROW_SLICE), row), _int(_long(host, ROW_DENSE), row)
    if s >= 0:
        stop = _stop(host, s, _int(_long(host, ROW_UNITS), row))
        nearest, here = _prefix(host, s, stop)
        _copy(out, nearest, 4 * words)
        tokens = _long(host, SLICE_TOKENS)
        for i in range(min(here, stop), max(here, stop)):
            _toggle(out, _int(tokens, i))
        if dense >= 0:
            _combine(out, _long(host, DENSE) + 4 * words * dense, words, True)
    elif dense >= 0:
        _copy(out, _long(host, DENSE) + 4 * words * dense, 4 * words)
    else:
        _set(out, 0, 4 * words)
    number = _int(_long(host, ROW_LIST), row)
    tokens = _long(host, LIST_TOKENS)
    while number >= 0:  # twice at most: a base has none
        for i in range(_int(_long(host, LIST_OFFSET), number), _int(_long(host, LIST_OFFSET), number + 1)):
            _toggle(out, _int(tokens, i))
        number = _int(_long(host, LIST_BASE), number)


@numba.njit
def _row(host, row):  # type: ignore[no-untyped-def]
    """The address of a row's bits, good until the next call."""
    tag = _long(host, TAG) | row
    slot = (tag * 0x9E3779B1 >> 20) & (_long(host, SLOT_COUNT) - 1)
    place = _long(host, SLOTS) + 4 * _long(host, WORDS) * slot
    tags = _long(host, SLOT_TAG)
    if _long(tags, slot) != tag:
        _expand(host, row, place)
        _set_long(tags, slot, tag)
    return place


@numba.njit
def _first(host, q, c, depth):  # type: ignore[no-untyped-def]
    """(row, exit profile) of a configuration."""
    if q == FINISHED:
        return _long(host, ROWS), -1
    modes = _long(host, MODES)
    x = _int(_long(host, STATE_CELL), q) + _state_phase(host, q, c)
    place = x * modes + _mode(host, depth)
    return _int(_long(host, CELL_ROW), place), _int(_long(host, CELL_EXIT), place)


@numba.njit
def _next(host, frames, e, top):  # type: ignore[no-untyped-def]
    """(row, exit profile, chain cell) of a profile under the frame `top`; row -1 if there is none."""
    base = _int(_long(host, CHAIN_OFFSET), e)
    chain = _long(host, CHAIN)
    entry = 2 * (base + _int(frames, 4 * top + 1))
    if _int(chain, entry) != base:
        return -1, -1, 0
    number = _int(chain, entry + 1)
    list_ = _int(_long(host, CHAIN_BREAK), number)
    x = _int(_long(host, CHAIN_CELL), number) + _phase(
        _long(host, BREAKS), list_, _long(host, WIDTH), _int(frames, 4 * top + 2)
    )
    return _int(_long(host, CHAIN_ROW), x), _int(_long(host, CHAIN_EXIT), x), x


@numba.njit
def _check(host, number, registers, register, mask, out, room, count):  # type: ignore[no-untyped-def]
    """What `_take_out` does with one check list and one register."""
    checks, offset = _long(host, CHECK), _long(host, CHECK_OFFSET)
    for i in range(_int(offset, number), _int(offset, number + 1)):
        token, one, two = _int(checks, 3 * i), _int(checks, 3 * i + 1), _int(checks, 3 * i + 2)
        if _passes(host, registers, register, one) and _passes(host, registers, register, two):
            continue
        if room > 0:
            if count < room:
                _set_int(out, count, -1 - token)
            count += 1
        elif _int(mask, token >> 5) >> (token & 31) & 1:
            _toggle(mask, token)
    return count


@numba.njit
def _take_out(seat, host, mask, out, room, count):  # type: ignore[no-untyped-def]
    """Clear the tokens that the registers do not allow, of the mask at an address; or, if `out` has room, write -1 - t
    there for each such token t, after `count` numbers. Returns how many numbers there are, those without room, too."""
    frames, registers = _long(seat, FRAMES), _long(seat, REGISTERS)
    here = _long(seat, HISTORY) + 28 * _long(seat, POSITION)
    q, c, depth, top = _int(here, 0), _int(here, 1), _int(here, 2), _int(here, 3)
    if q == FINISHED:
        return count
    place = (_int(_long(host, STATE_CELL), q) + _state_phase(host, q, c)) * _long(host, MODES) + _mode(host, depth)
    count = _check(host, _int(_long(host, CELL_CHECK), place), registers, _int(here, 5), mask, out, room, count)
    e = _int(_long(host, CELL_EXIT), place)
    while e >= 0 and top >= 0:
        row, e, x = _next(host, frames, e, top)
        if row >= 0:
            number, register = _int(_long(host, CHAIN_CHECK), x), _int(frames, 4 * top + 3)
            count = _check(host, number, registers, register, mask, out, room, count)
        top = _int(frames, 4 * top)
    return count


@numba.njit
def _owes(host, frames, top):  # type: ignore[no-untyped-def]
    """Tokens that the frame `top` needs once the one above it is left."""
    g = _int(frames, 4 * top + 1)
    number = _int(_long(host, OWED_BREAK), g)
    x = _int(_long(host, OWED_FIRST), g) + _phase(
        _long(host, CLOSE_BREAKS), number, _long(host, CLOSE_WIDTH), _int(frames, 4 * top + 2)
    )
    return _int(_long(host, OWED), x)


@numba.njit
def _taken_off(seat, host, register):  # type: ignore[no-untyped-def]
    """Tokens that the members in a register took off what is owed under the stack symbol below."""
    words = _long(host, REGISTER_WORDS)
    return _int(_long(seat, REGISTERS), register * words) if words > 0 else 0


@numba.njit
def _owed(seat, host, top, register):  # type: ignore[no-untyped-def]
    """Tokens that the frames from `top` down need, under a frame with this register."""
    frames, total = _long(seat, FRAMES), 0
    while top >= 0:
        total += _owes(host, frames, top) - _taken_off(seat, host, register)
        register = _int(frames, 4 * top + 3)
        top = _int(frames, 4 * top)
    return total


@numba.njit
def _close_cell(host, q, c):  # type: ignore[no-untyped-def]
    number = _int(_long(host, CLOSE_BREAK), q)
    return _int(_long(host, STATE_CLOSE), q) + _phase(_long(host, CLOSE_BREAKS), number, _long(host, CLOSE_WIDTH), c)


@kernel(numba.int64(numba.int64))
def bound_of(seat):  # type: ignore[no-untyped-def]
    """A bound on the tokens from here to the end of turn, that included; NEVER (tables.py) or more: none is known."""
    host = _long(seat, HOST)
    here = _long(seat, HISTORY) + 28 * _long(seat, POSITION)
    q = _int(here, 0)
    if q == FINISHED:
        return 0
    x = _close_cell(host, q, _int(here, 1))
    return _int(_long(host, CLOSE_BOUND), x) + _owed(seat, host, _int(here, 3), _int(here, 5))


@kernel(numba.int64(numba.int64))
def owed_of(seat):  # type: ignore[no-untyped-def]
    """A bound on the tokens that the frames below need after what is above them is over."""
    here = _long(seat, HISTORY) + 28 * _long(seat, POSITION)
    return _owed(seat, _long(seat, HOST), _int(here, 3), _int(here, 5))


@numba.njit
def _closing(seat, host, budget):  # type: ignore[no-untyped-def]
    """The only token that the budget leaves; -1: all that the mask allows."""
    frames = _long(seat, FRAMES)
    position = _long(seat, POSITION)
    here = _long(seat, HISTORY) + 28 * position
    q, c, depth, top, register = _int(here, 0), _int(here, 1), _int(here, 2), _int(here, 3), _int(here, 5)
    if q == FINISHED:
        return -1
    place = _close_cell(host, q, c) * _long(host, MODES) + _mode(host, depth)
    below = _owed(seat, host, top, register)
    need = _int(_long(host, CLOSE_AFTER), place) + below
    row, e = _first(host, q, c, depth)
    while e >= 0 and top >= 0:
        below -= _owes(host, frames, top) - _taken_off(seat, host, register)
        register = _int(frames, 4 * top + 3)
        row, e, x = _next(host, frames, e, top)
        if row >= 0:
            need = max(need, _int(_long(host, CHAIN_AFTER), x) + below)
        top = _int(frames, 4 * top)
    if need < budget - position:
        return -1
    number, offset, ways = _int(_long(host, STATE_WAY), q), _long(host, WAY_OFFSET), _long(host, WAY)
    for i in range(_int(offset, number), _int(offset, number + 1)):
        if _passes(host, _long(seat, REGISTERS), _int(here, 5), _int(ways, 2 * i + 1)):
            return _int(ways, 2 * i)
    return _int(_long(host, CLOSE_TOKEN), place)


@kernel(numba.int64(numba.int64))
def closing_token(seat):  # type: ignore[no-untyped-def]
    """The only token that the budget leaves; -1: all that the mask allows."""
    budget = _long(seat, BUDGET)
    return _closing(seat, _long(seat, HOST), budget) if budget > 0 else -1


@numba.njit
def _fill(seat, host, mask, size):  # type: ignore[no-untyped-def]
    """The mask of a seat into `size` words at an address."""
    words, frames = _long(host, WORDS), _long(seat, FRAMES)
    budget = _long(seat, BUDGET)
    if budget > 0:
        token = _closing(seat, host, budget)
        if token >= 0:
            _set(mask, 0, 4 * size)
            _toggle(mask, token)
            return
    here = _long(seat, HISTORY) + 28 * _long(seat, POSITION)
    top = _int(here, 3)
    row, e = _first(host, _int(here, 0), _int(here, 1), _int(here, 2))
    _copy(mask, _row(host, row), 4 * words)
    if size > words:
        _set(mask + 4 * words, 0, 4 * (size - words))
    while e >= 0 and top >= 0:
        row, e, _ = _next(host, frames, e, top)
        if row >= 0:
            _combine(mask, _row(host, row), words, False)
        top = _int(frames, 4 * top)
    if _long(host, REGISTER_WORDS) > 0:
        _take_out(seat, host, mask, 0, 0, 0)


@kernel(numba.int64(numba.int64, _MASK))
def fill_mask(seat, mask):  # type: ignore[no-untyped-def]
    """mask = the allowed tokens; 0, or -1 if the mask is too short (and unchanged)."""
    host = _long(seat, HOST)
    if mask.size < _long(host, WORDS):
        return -1
    _fill(seat, host, np.int64(mask.ctypes.data), mask.size)
    return 0


@kernel(numba.int64(numba.int64, _NUMBERS))
def rows_of_mask(seat, out):  # type: ignore[no-untyped-def]
    """The rows whose union is the mask, then -1 - t for each token t that the registers take out of it, which may come
    several times; as many as fit into `out`, which has room for the longest chain + 1. Returns how many there are."""
    host, frames = _long(seat, HOST), _long(seat, FRAMES)
    here = _long(seat, HISTORY) + 28 * _long(seat, POSITION)
    top = _int(here, 3)
    row, e = _first(host, _int(here, 0), _int(here, 1), _int(here, 2))
    count = 0
    while row >= 0:
        out[count] = row
        count += 1
        if e < 0 or top < 0:
            break
        row, e, _ = _next(host, frames, e, top)
        top = _int(frames, 4 * top)
    if _long(host, REGISTER_WORDS) > 0:
        count = _take_out(seat, host, 0, np.int64(out.ctypes.data), out.size, count)
    return count


@kernel(numba.void(numba.int64, numba.int64, _MASK))
def expand_row(host, row, out):  # type: ignore[no-untyped-def]
    """out uint32 [words] = the row."""
    _expand(host, row, np.int64(out.ctypes.data))


@kernel(numba.void(_I32, _I32, _I32, numba.int64, _ROWS))
def prefix_rows(slice_token_offset, slice_tokens, prefix_first, stride, out):  # type: ignore[no-untyped-def]
    """out = `prefix`, see above; zeros before."""
    words = out.shape[1]
    for s in range(slice_token_offset.size - 1):
        here, last, row = slice_token_offset[s], slice_token_offset[s + 1], prefix_first[s]
        while here < last:
            for w in range(words):
                out[row + 1, w] = out[row, w]
            row += 1
            for _ in range(min(stride, last - here)):
                out[row, slice_tokens[here] >> 5] ^= np.uint32(1) << np.uint32(slice_tokens[here] & 31)
                here += 1


# ---------------------------------------------------------------- batches


@kernel(numba.int64(numba.int64, numba.int64, _ROWS, numba.int64))
def fill_masks(seats, count, masks, words):  # type: ignore[no-untyped-def]
    """Row r of masks uint32 [count, at least words] = the mask of seat r; all bits for a seat without bundle.

    0, or -1 if the masks have another shape (and are unchanged).
    """
    if masks.shape[0] != count or masks.shape[1] < words:
        return -1
    mask, size = np.int64(masks.ctypes.data), masks.shape[1]
    for r in range(count):
        seat = seats + 8 * len(SEAT) * r
        host = _long(seat, HOST)
        if host == 0:
            _set(mask + 4 * size * r, 255, 4 * size)
        else:
            _fill(seat, host, mask + 4 * size * r, size)
    return 0


@kernel(numba.int64(numba.int64, numba.int64, numba.int64, numba.int64, numba.int64))
def advance_tokens(seats, count, tokens, start, codes):  # type: ignore[no-untyped-def]
    """Each seat from `start` on reads its token of int64 [count]: its code into codes int64 [count].

    Seats without bundle and finished ones read anything and stay as they are. Returns -1 if every code is ACCEPTED or
    STAYED, the number of the first seat whose code is FULL (those after it have not read), else `count`.
    """
    found = -1
    for r in range(count):
        if r >= start:
            seat = seats + 8 * len(SEAT) * r
            host = _long(seat, HOST)
            code = STAYED
            if host != 0 and _int(_long(seat, HISTORY), 7 * _long(seat, POSITION)) != FINISHED:
                code = _read(seat, host, _long(tokens, r))
            _set_long(codes, r, code)
            if code == FULL:
                return r
        code = _long(codes, r)
        if code == REFUSED or code == OVERFLOW:  # noqa: SIM109 - see memory.largest_in
            found = count
    return found
