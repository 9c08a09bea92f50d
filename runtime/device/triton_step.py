"""The step as Triton kernels: one reads a token per row, one masks logits, one gives masks as bits.

Leaves out   the state and who may use it: see decoder.py. The same as tensor operations: see torch_step.py, which this
             equals bit for bit.
Invariants   nothing is allocated and nothing read on the host: a step can be captured in a CUDA graph. Loops end where
             the token and the chain end, so no bound on them is compiled in.
Trusts       what kernels.py does, of tables that relocate.py has moved by as much as their bundle stands further on.
Launches     one for each. What a launch costs the host goes with its arguments, so the arena's tables are
             one of them: their addresses, which the kernels look up.
Masking      a program masks a stretch of one row, 32 logits for a word of bits. Where none of the 32 is allowed, which
             is most of most masks, they are written together, by whole vectors; where some are, one by one, and only
             in stretches that have such words. No logit is read.
Arrays       as in arena.py and decoder.py, all contiguous (tokens that are not are copied); logits by their strides.
Interpreter  with TRITON_INTERPRET=1 the kernels run on the CPU, which is how they are tested where there is no GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from ..format import ops
from .relocate import TABLES

if TYPE_CHECKING:
    from .arena import Arena
    from .torch_step import Config

BLOCK_WORDS = 64  # a program masks so many times 32 logits


def _place(name: str) -> tl.constexpr:
    return tl.constexpr(TABLES.index(name))


KIND_BITS, KIND_MASK = tl.constexpr(ops.KIND_BITS), tl.constexpr(ops.KIND_MASK)
ACTION_BITS, ACTION_MASK = tl.constexpr(ops.ACTION_BITS), tl.constexpr(ops.ACTION_MASK)
PUSH_OP = tl.constexpr(ops.PUSH)
SYMBOL_CLASS, CLASS_BASE = _place("symbol_class"), _place("class_base")
SPECIAL_SYMBOL, SPECIAL_BASE = _place("special_symbol"), _place("special_base")
TOKEN_OFFSET, TOKEN_BYTES = _place("token_offset"), _place("token_bytes")
STATE_CELL, STATE_BREAK, BREAKS = _place("state_cell"), _place("state_break"), _place("breaks")
STATE_LOOP, LOOP_BITS = _place("state_loop"), _place("loop_bits")
CELL_ROW, CELL_EXIT = _place("cell_row"), _place("cell_exit")
CELL_DELTA, CELL_DEFAULT = _place("cell_delta"), _place("cell_default")
DELTA, PUSH = _place("delta"), _place("push")
SYMBOL_BASE, RETURN_OFFSET, RETURN = _place("symbol_base"), _place("return_offset"), _place("return")
CHAIN_OFFSET, CHAIN, CHAIN_CELL = _place("chain_offset"), _place("chain"), _place("chain_cell")
CHAIN_BREAK, CHAIN_ROW, CHAIN_EXIT = _place("chain_break"), _place("chain_row"), _place("chain_exit")
DENSE, FINISHED_ROW = _place("dense"), _place("finished_row")
SOFT_DEPTH, CAPACITY = _place("soft_depth"), _place("capacity")
STATE_CLOSE, CLOSE_BREAK = _place("state_close"), _place("close_break")
CLOSE_BREAKS = _place("close_breaks")
CLOSE_TOKEN, CLOSE_AFTER, CHAIN_AFTER = _place("close_token"), _place("close_after"), _place("chain_after")
OWED_FIRST, OWED_BREAK, OWED = _place("owed_first"), _place("owed_break"), _place("owed")
STATE_REGISTER, REGISTER_RULE = _place("state_register"), _place("register_rule")
REGISTER_TEST, CELL_CHECK, CHAIN_CHECK = _place("register_test"), _place("cell_check"), _place("chain_check")
CHECK_OFFSET, CHECK_LENGTH, CHECK = _place("check_offset"), _place("check_length"), _place("check")
STATE_WAY, WAY_OFFSET = _place("state_way"), _place("way_offset")
WAY_LENGTH, WAY = _place("way_length"), _place("way")
POP_OP = tl.constexpr(ops.POP)
CHECKS = tl.constexpr(32)  # tokens of a check list that are looked at together


@triton.jit
def _table(addresses, place: tl.constexpr):  # type: ignore[no-untyped-def]
    return tl.load(addresses + place).to(tl.pointer_type(tl.int32))


@triton.jit
def _phase(  # type: ignore[no-untyped-def]
    addresses, lists: tl.constexpr, breaks: tl.constexpr, owner, count: tl.constexpr, c
):
    """The phase of an owner's counter, of whose list of breakpoints the number is in one table, the list in another."""
    total = 0
    if count > 0:
        number = tl.load(_table(addresses, lists) + owner)
        if number > 0:  # most have none
            at = _table(addresses, breaks) + number * count * 2
            for b in range(count):
                span = tl.load(at + 2 * b + 1)
                total += tl.minimum(tl.maximum(c - tl.load(at + 2 * b) + span, 0), span)
    return total


@triton.jit
def _act(action, c):  # type: ignore[no-untyped-def]
    return tl.where(action == 0, c, tl.where(action == 1, c + 1, action - 2))


@triton.jit
def _owes(  # type: ignore[no-untyped-def]
    addresses, closes: tl.constexpr, symbols, frames, counts, register, registers: tl.constexpr, k
):
    """Tokens that frame k needs once what is above it is over, and for the members that are missing there."""
    symbol = symbols + tl.load(frames + k)
    first = tl.load(_table(addresses, OWED_FIRST) + symbol)
    phase = _phase(addresses, OWED_BREAK, CLOSE_BREAKS, symbol, closes, tl.load(counts + k))
    owed = tl.load(_table(addresses, OWED) + first + phase)
    if registers > 0:
        owed -= tl.load(register + (k + 1) * registers)
    return owed


@triton.jit
def _passes(addresses, test, held, lane, registers: tl.constexpr, wide: tl.constexpr):  # type: ignore[no-untyped-def]
    """Whether a register, a word a lane, passes a test."""
    at = _table(addresses, REGISTER_TEST) + test * (1 + wide)
    mask = tl.load(at + 1 + lane, mask=lane < registers, other=0)
    clear = tl.max(((mask & ~held) != 0).to(tl.int32), 0)
    return clear == tl.load(at)


@triton.jit
def _fails(addresses, test, register, some, registers: tl.constexpr, wide: tl.constexpr):  # type: ignore[no-untyped-def]
    """Of several tests, which of some a register does not pass."""
    at = _table(addresses, REGISTER_TEST) + test * (1 + wide)
    clear = tl.full([CHECKS], 0, tl.int32)
    for k in range(registers):
        clear |= tl.load(at + 1 + k, mask=some, other=0) & ~tl.load(register + k)
    return some & ((clear != 0).to(tl.int32) != tl.load(at, mask=some, other=0))


@triton.jit
def _refused(  # type: ignore[no-untyped-def]
    addresses, number, register, word, block: tl.constexpr, registers: tl.constexpr, wide: tl.constexpr
):
    """int32 [block]: of some words of a mask, the bits of the tokens of a check list that a register refuses."""
    gone = tl.full([block], 0, tl.int32)
    first = tl.load(_table(addresses, CHECK_OFFSET) + number)
    length = tl.load(_table(addresses, CHECK_LENGTH) + number)
    begin = tl.min(word, 0)
    for k in range(0, length, CHECKS):
        lane = k + tl.arange(0, CHECKS)
        check = _table(addresses, CHECK) + 3 * (first + lane)
        token = tl.load(check, mask=lane < length, other=0)
        place = (token >> 5) - begin
        some = (lane < length) & (place >= 0) & (place < block)
        if tl.max(some.to(tl.int32), 0) > 0:
            one, two = tl.load(check + 1, mask=some, other=0), tl.load(check + 2, mask=some, other=0)
            fails = _fails(addresses, one, register, some, registers, wide)
            fails |= _fails(addresses, two, register, some, registers, wide)
            # A list has a token once, so that the bits of a word add up to their union.
            here = fails[None, :] & ((token >> 5)[None, :] == word[:, None])
            gone |= tl.sum(tl.where(here, (1 << (token & 31))[None, :], 0), 1)
    return gone


@triton.jit
def _on_the_way(  # type: ignore[no-untyped-def]
    addresses, q, register, otherwise, registers: tl.constexpr, wide: tl.constexpr
):
    """The first token of the way list of a state whose test a register passes; else what is given."""
    number = tl.load(_table(addresses, STATE_WAY) + q)
    first = tl.load(_table(addresses, WAY_OFFSET) + number)
    length = tl.load(_table(addresses, WAY_LENGTH) + number)
    found = length
    for k in range(0, length, CHECKS):
        lane = k + tl.arange(0, CHECKS)
        some = lane < length
        test = tl.load(_table(addresses, WAY) + 2 * (first + lane) + 1, mask=some, other=0)
        fine = some & ~_fails(addresses, test, register, some, registers, wide)
        found = tl.minimum(found, tl.min(tl.where(fine, lane, length), 0))
    if found < length:
        otherwise = tl.load(_table(addresses, WAY) + 2 * (first + found))
    return otherwise


@triton.jit
def advance_kernel(  # type: ignore[no-untyped-def]
    tokens,
    bundle_of_row,
    state_of_row,
    counter_of_row,
    depth_of_row,
    stack,
    saved,
    register_of_row,
    error,
    length,
    kept,
    log_state,
    log_counter,
    log_depth,
    log_stack,
    log_saved,
    log_register,
    addresses,
    batch,
    history,
    size,
    words,
    width,
    breaks: tl.constexpr,
    modes: tl.constexpr,
    registers: tl.constexpr,
    wide: tl.constexpr,
    lanes: tl.constexpr,
):
    """Program r reads the token of row r."""
    r = tl.program_id(0)
    bundle = tl.load(bundle_of_row + r)
    q = tl.load(state_of_row + r)
    if (bundle >= 0) & (q > 1):
        c = tl.load(counter_of_row + r)
        depth = tl.load(depth_of_row + r)
        frames = stack + r * width
        counts = saved + r * width
        given = tl.load(tokens + r)
        token = given.to(tl.int32)
        n = tl.load(length + r)
        lane = 0
        held = 0
        own = register_of_row
        if registers > 0:  # the register of the frame that the row is in is written when all is read
            lane = tl.arange(0, lanes)
            own = register_of_row + r * width * registers + lane
            held = tl.load(own + depth * registers, mask=lane < registers, other=0)
        if history > 0:
            place = (n % history) * batch + r
            tl.store(log_state + place, q)
            tl.store(log_counter + place, c)
            tl.store(log_depth + place, depth)
            for k in range(depth):
                tl.store(log_stack + place * width + k, tl.load(frames + k))
                tl.store(log_saved + place * width + k, tl.load(counts + k))
            if registers > 0:
                for k in range(depth + 1):
                    frame = tl.load(own + k * registers, mask=lane < registers, other=0)
                    log_frame = log_register + (place * width + k) * registers + lane
                    tl.store(log_frame, frame, mask=lane < registers)
        mode = 0
        if depth >= tl.load(_table(addresses, SOFT_DEPTH) + bundle):
            mode = modes - 1
        if (given < 0) | (given >= size):
            q = 0
        else:
            offset = _table(addresses, TOKEN_OFFSET) + token
            maps = tl.load(_table(addresses, SPECIAL_BASE) + bundle)
            special = tl.load(_table(addresses, SPECIAL_SYMBOL) + maps + token)
            at = tl.load(offset)
            stop = tl.load(offset + 1)
            if special >= 0:
                stop = at + 1
            if at == stop:
                q = 0
            loop = tl.load(_table(addresses, STATE_LOOP) + q)
            word = tl.load(_table(addresses, LOOP_BITS) + loop * words + (token >> 5))
            if ((word >> (token & 31)) & 1) != 0:
                stop = at
            classes = _table(addresses, SYMBOL_CLASS) + tl.load(_table(addresses, CLASS_BASE) + bundle)
            token_bytes = _table(addresses, TOKEN_BYTES)
            state_cell = _table(addresses, STATE_CELL)
            cell_delta = _table(addresses, CELL_DELTA)
            cell_default = _table(addresses, CELL_DEFAULT)
            delta = _table(addresses, DELTA)
            while (at < stop) & (q > 0):
                symbol = special
                if special < 0:
                    symbol = tl.load(token_bytes + at)
                at += 1
                if q == 1:
                    q = 0
                else:
                    cell = tl.load(state_cell + q) + _phase(addresses, STATE_BREAK, BREAKS, q, breaks, c)
                    base = tl.load(cell_delta + cell)
                    column = tl.load(classes + symbol)
                    if tl.load(delta + 2 * (base + column)) != base:
                        base = tl.load(cell_default + cell)
                    op = 0
                    if tl.load(delta + 2 * (base + column)) == base:
                        op = tl.load(delta + 2 * (base + column) + 1)
                    if registers > 0:
                        if op & KIND_MASK == POP_OP:
                            rule = _table(addresses, REGISTER_RULE) + 4 * tl.load(_table(addresses, STATE_REGISTER) + q)
                            if not _passes(addresses, tl.load(rule + 2), held, lane, registers, wide):
                                op = 0
                    kind = op & KIND_MASK
                    number = op >> KIND_BITS
                    if kind < PUSH_OP:
                        q = number
                        c = _act(kind, c)
                    elif kind == PUSH_OP:
                        q = 0
                        if depth < tl.load(_table(addresses, CAPACITY) + bundle):
                            push = _table(addresses, PUSH) + 4 * number
                            q = tl.load(push + 1 + tl.where(mode > 0, 1, 0))
                            tl.store(frames + depth, tl.load(push))
                            tl.store(counts + depth, _act(tl.load(push + 3), c))
                            depth += 1
                            tl.debug_barrier()
                        c = 0
                    else:
                        q = 0
                        if depth > 0:
                            depth -= 1
                            under = tl.load(_table(addresses, SYMBOL_BASE) + bundle) + tl.load(frames + depth)
                            back = tl.load(_table(addresses, RETURN_OFFSET) + under)
                            found = _table(addresses, RETURN) + 2 * (back + number)
                            if tl.load(found) == back:
                                value = tl.load(found + 1)
                                q = value >> ACTION_BITS
                                c = _act(value & ACTION_MASK, tl.load(counts + depth))
                    if registers > 0:
                        if q > 0:
                            rule = _table(addresses, REGISTER_RULE) + 4 * tl.load(_table(addresses, STATE_REGISTER) + q)
                            test = tl.load(rule)
                            if kind == PUSH_OP:
                                tl.store(own + (depth - 1) * registers, held, mask=lane < registers)
                                tl.debug_barrier()
                                held = tl.full([lanes], 0, tl.int32)
                                test = 0
                            elif kind == POP_OP:
                                held = tl.load(own + depth * registers, mask=lane < registers, other=0)
                            if not _passes(addresses, test, held, lane, registers, wide):
                                q = 0
                            bit = tl.load(rule + 1)
                            held |= tl.where(lane == bit >> 5, 1 << (bit & 31), 0)
                            held += tl.where(lane == 0, tl.load(rule + 3), 0)  # word 0 is a number
        tl.store(state_of_row + r, q)
        tl.store(counter_of_row + r, c)
        tl.store(depth_of_row + r, depth)
        if registers > 0:
            tl.store(own + depth * registers, held, mask=lane < registers)
        tl.store(length + r, n + 1)
        tl.store(kept + r, tl.minimum(tl.load(kept + r) + 1, history))
        if q == 0:
            tl.store(error + r, 1)


@triton.jit
def _bits(  # type: ignore[no-untyped-def]
    r,
    bundle,
    word,
    state_of_row,
    counter_of_row,
    depth_of_row,
    stack,
    saved,
    register_of_row,
    length,
    budget,
    addresses,
    words,
    width,
    breaks: tl.constexpr,
    closes: tl.constexpr,
    modes: tl.constexpr,
    registers: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
):
    """Some words of the mask of row r, which has a bundle."""
    q = tl.load(state_of_row + r)
    depth = tl.load(depth_of_row + r)
    most = tl.load(budget + r)
    row = tl.load(_table(addresses, FINISHED_ROW) + bundle)
    frames = stack + r * width
    counts = saved + r * width
    symbols = 0
    profile = -1
    only = -1
    need = 0
    below = 0
    gone = 0
    own = register_of_row
    if registers > 0:
        gone = tl.full([block], 0, tl.int32)
        own = register_of_row + r * width * registers
    limited = (most > 0) & (q > 1)
    if q > 1:
        c = tl.load(counter_of_row + r)
        mode = 0
        if depth >= tl.load(_table(addresses, SOFT_DEPTH) + bundle):
            mode = modes - 1
        cell = tl.load(_table(addresses, STATE_CELL) + q)
        cell += _phase(addresses, STATE_BREAK, BREAKS, q, breaks, c)
        row = tl.load(_table(addresses, CELL_ROW) + cell * modes + mode)
        profile = tl.load(_table(addresses, CELL_EXIT) + cell * modes + mode)
        if registers > 0:
            checks = tl.load(_table(addresses, CELL_CHECK) + cell * modes + mode)
            gone = _refused(addresses, checks, own + depth * registers, word, block, registers, wide)
        if limited:
            symbols = tl.load(_table(addresses, SYMBOL_BASE) + bundle)
            place = tl.load(_table(addresses, STATE_CLOSE) + q)
            place += _phase(addresses, CLOSE_BREAK, CLOSE_BREAKS, q, closes, c)
            for k in range(depth):
                below += _owes(addresses, closes, symbols, frames, counts, own, registers, k)
            need = tl.load(_table(addresses, CLOSE_AFTER) + place * modes + mode) + below
            only = tl.load(_table(addresses, CLOSE_TOKEN) + place * modes + mode)
            if registers > 0:
                only = _on_the_way(addresses, q, own + depth * registers, only, registers, wide)
    dense = _table(addresses, DENSE)
    inside = word < words
    bits = tl.load(dense + row.to(tl.int64) * words + word, mask=inside, other=0)
    while (profile >= 0) & (depth > 0):
        depth -= 1
        if limited:
            below -= _owes(addresses, closes, symbols, frames, counts, own, registers, depth)
        base = tl.load(_table(addresses, CHAIN_OFFSET) + profile)
        entry = base + tl.load(frames + depth)
        chain = _table(addresses, CHAIN) + 2 * entry
        profile = -1
        if tl.load(chain) == base:
            number = tl.load(chain + 1)
            cell = tl.load(_table(addresses, CHAIN_CELL) + number)
            cell += _phase(addresses, CHAIN_BREAK, BREAKS, number, breaks, tl.load(counts + depth))
            more = tl.load(_table(addresses, CHAIN_ROW) + cell)
            bits |= tl.load(dense + more.to(tl.int64) * words + word, mask=inside, other=0)
            profile = tl.load(_table(addresses, CHAIN_EXIT) + cell)
            if registers > 0:
                checks = tl.load(_table(addresses, CHAIN_CHECK) + cell)
                gone |= _refused(addresses, checks, own + depth * registers, word, block, registers, wide)
            if limited:
                need = tl.maximum(need, tl.load(_table(addresses, CHAIN_AFTER) + cell) + below)
    if registers > 0:
        bits &= ~gone
    if limited & (only >= 0) & (need >= tl.maximum(most - tl.load(length + r), 0)):
        bits = tl.where(word == only >> 5, 1 << (only & 31), 0)
    return bits


@triton.jit
def fill_kernel(  # type: ignore[no-untyped-def]
    out,
    bundle_of_row,
    state_of_row,
    counter_of_row,
    depth_of_row,
    stack,
    saved,
    register_of_row,
    length,
    budget,
    addresses,
    words,
    width,
    breaks: tl.constexpr,
    closes: tl.constexpr,
    modes: tl.constexpr,
    registers: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
):
    """Program (row, part) writes `block` words of a row's mask."""
    r = tl.program_id(0)
    bundle = tl.load(bundle_of_row + r)
    word = tl.program_id(1) * block + tl.arange(0, block)
    bits = tl.full([block], -1, tl.int32)
    if bundle >= 0:
        bits = _bits(
            r, bundle, word, state_of_row, counter_of_row, depth_of_row, stack, saved, register_of_row, length,
            budget, addresses, words, width, breaks, closes, modes, registers, wide, block,
        )  # fmt: skip
    tl.store(out + r.to(tl.int64) * words + word, bits, mask=word < words)


@triton.jit
def mask_kernel(  # type: ignore[no-untyped-def]
    logits,
    row_stride,
    column_stride,
    columns,
    bundle_of_row,
    state_of_row,
    counter_of_row,
    depth_of_row,
    stack,
    saved,
    register_of_row,
    length,
    budget,
    addresses,
    size,
    words,
    width,
    breaks: tl.constexpr,
    closes: tl.constexpr,
    modes: tl.constexpr,
    registers: tl.constexpr,
    wide: tl.constexpr,
    block: tl.constexpr,
):
    """Program (row, part) masks 32 x block logits of a row."""
    r = tl.program_id(0)
    bundle = tl.load(bundle_of_row + r)
    if bundle >= 0:
        word = tl.program_id(1) * block + tl.arange(0, block)
        bits = _bits(
            r, bundle, word, state_of_row, counter_of_row, depth_of_row, stack, saved, register_of_row, length,
            budget, addresses, words, width, breaks, closes, modes, registers, wide, block,
        )  # fmt: skip
        # Bits past the vocabulary are set in the full row.
        past = tl.minimum(tl.maximum((word + 1) * 32 - size, 0), 32)
        bits &= tl.where(past > 0, (1 << (32 - tl.maximum(past, 1))) - 1, -1)
        lane = word[:, None] * 32 + tl.arange(0, 32)[None, :]
        place = logits + r.to(tl.int64) * row_stride + lane.to(tl.int64) * column_stride
        whole = (word + 1) * 32 <= columns
        tl.store(place, float("-inf"), mask=((bits == 0) & whole)[:, None])
        mixed = ((bits != 0) & (bits != -1)) | ~whole
        if tl.max(mixed.to(tl.int32), 0) > 0:
            allowed = ((bits[:, None] >> tl.arange(0, 32)[None, :]) & 1) != 0
            tl.store(place, float("-inf"), mask=mixed[:, None] & ~allowed & (lane < columns))


def advance_(
    arena: Arena,
    bundle_of_row: torch.Tensor,
    config: Config,
    error: torch.Tensor,
    length: torch.Tensor,
    kept: torch.Tensor,
    log: Config,
    history: int,
    tokens: torch.Tensor,
) -> None:
    """Read a token per row, in place.

    Args:
        error, length, kept: bool and int64 [B], as in decoder.py.
        log: where rows stood in the last `history` steps; not looked at without history.
        tokens: integers [B].
    """
    k, rows = arena.limits, bundle_of_row.shape[0]
    if rows:
        advance_kernel[(rows,)](
            tokens.contiguous(),
            bundle_of_row,
            *config,
            error.view(torch.uint8),
            length,
            kept,
            *log,
            arena.addresses,
            rows,
            history,
            k.size,
            arena.words,
            config.stack.shape[1],
            breaks=k.breaks,
            modes=k.modes,
            registers=config.registers,
            wide=k.registers,
            lanes=triton.next_power_of_2(config.registers),
            num_warps=1,
        )


def read_(arena: Arena, bundle_of_row: torch.Tensor, config: Config, tokens: torch.Tensor) -> None:
    """As `advance_`, of rows of which no more is kept than where they stand."""
    error = torch.zeros_like(bundle_of_row, dtype=torch.bool)
    length, kept = (torch.zeros_like(bundle_of_row, dtype=torch.int64) for _ in range(2))
    advance_(arena, bundle_of_row, config, error, length, kept, config, 0, tokens)


def limits_of(left: torch.Tensor | None, bundle_of_row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Lengths and budgets, int64 [B], of rows of which is known what their budgets leave, -1 without one."""
    # Budgets are as they were at a row's first token, and 0 for none: as if each had read one.
    read = torch.ones_like(bundle_of_row, dtype=torch.int64)
    return read, torch.zeros_like(read) if left is None else left.to(torch.int64) + 1


def fill(
    arena: Arena, bundle_of_row: torch.Tensor, config: Config, length: torch.Tensor, budget: torch.Tensor
) -> torch.Tensor:
    """int32 [B, words]: masks as bits; all bits for a row without bundle. Budgets as of `mask_`."""
    k, rows = arena.limits, bundle_of_row.shape[0]
    out = torch.empty((rows, arena.words), dtype=torch.int32, device=bundle_of_row.device)
    if rows:
        fill_kernel[(rows, triton.cdiv(arena.words, BLOCK_WORDS))](
            out,
            bundle_of_row,
            *config,
            length,
            budget,
            arena.addresses,
            arena.words,
            config.stack.shape[1],
            breaks=k.breaks,
            closes=k.closes,
            modes=k.modes,
            registers=config.registers,
            wide=k.registers,
            block=BLOCK_WORDS,
            num_warps=2,
        )
    return out


def mask_(
    arena: Arena,
    bundle_of_row: torch.Tensor,
    config: Config,
    length: torch.Tensor,
    budget: torch.Tensor,
    logits: torch.Tensor,
) -> None:
    """Mask logits [B, at least V] in place; `budget` int64 [B]: the most that `length` may become, 0 for any."""
    k, (rows, columns) = arena.limits, logits.shape
    if rows:
        mask_kernel[(rows, triton.cdiv(columns, 32 * BLOCK_WORDS))](
            logits,
            *logits.stride(),
            columns,
            bundle_of_row,
            *config,
            length,
            budget,
            arena.addresses,
            k.size,
            arena.words,
            config.stack.shape[1],
            breaks=k.breaks,
            closes=k.closes,
            modes=k.modes,
            registers=config.registers,
            wide=k.registers,
            block=BLOCK_WORDS,
            num_warps=2,
        )
