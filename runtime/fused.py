"""The step as a Triton kernel: read a row's token, gather its rows and mask its logits.

Leaves out   the state and who may use it: see decoder.py. The same as tensor operations: see step.py, which this equals
             bit for bit.
Invariants   nothing is allocated and nothing read on the host: a step can be captured in a CUDA graph. Loops end where
             the token and the chain end, so no bound on them is compiled in.
Launches     one for logits of at most `block` columns; for wider ones, whose columns several programs share, one that
             reads the tokens and one that masks.
Arrays       as in arena.py and decoder.py, all contiguous (tokens that are not are copied); logits by their strides.
Interpreter  with TRITON_INTERPRET=1 the kernel runs on the CPU, which is how it is tested where there is no GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from .arena import Arena
    from .step import Config


@triton.jit
def _phase(breaks, owner, count: tl.constexpr, c):  # type: ignore[no-untyped-def]
    total = 0
    for b in range(count):
        span = tl.load(breaks + (owner * count + b) * 2 + 1)
        past = c - tl.load(breaks + (owner * count + b) * 2) + span
        total += tl.minimum(tl.maximum(past, 0), span)
    return total


@triton.jit
def _act(action, c):  # type: ignore[no-untyped-def]
    return tl.where(action == 0, c, tl.where(action == 1, c + 1, action - 2))


@triton.jit
def _owes(owed_first, owed_break, owed, closes: tl.constexpr, symbols, frames, counts, k):  # type: ignore[no-untyped-def]
    """Tokens that frame k needs once what is above it is over."""
    symbol = symbols + tl.load(frames + k)
    return tl.load(owed + tl.load(owed_first + symbol) + _phase(owed_break, symbol, closes, tl.load(counts + k)))


@triton.jit
def fused_step(  # type: ignore[no-untyped-def]
    logits,
    row_stride,
    column_stride,
    columns,
    tokens,
    bundle_of_row,
    state_of_row,
    counter_of_row,
    depth_of_row,
    stack,
    saved,
    error,
    length,
    kept,
    log_state,
    log_counter,
    log_depth,
    log_stack,
    log_saved,
    budget,
    symbol_class,
    special_symbol,
    token_offset,
    token_bytes,
    state_cell,
    state_break,
    state_loop,
    loop_bits,
    cell_row,
    cell_exit,
    cell_delta,
    delta,
    push,
    return_offset,
    returns,
    chain_offset,
    chain,
    chain_cell,
    chain_break,
    chain_row,
    chain_exit,
    dense,
    class_base,
    special_base,
    symbol_base,
    soft_depth,
    capacity,
    finished_row,
    state_close,
    close_break,
    close_token,
    close_after,
    owed_first,
    owed_break,
    owed,
    chain_after,
    batch,
    history,
    size,
    words,
    width,
    reads: tl.constexpr,
    masks: tl.constexpr,
    breaks: tl.constexpr,
    closes: tl.constexpr,
    modes: tl.constexpr,
    block: tl.constexpr,
):
    """Program (row, part of the columns). Where a token is read there is one part, since the old state is replaced."""
    r = tl.program_id(0)
    bundle = tl.load(bundle_of_row + r)
    if bundle >= 0:
        q = tl.load(state_of_row + r)
        c = tl.load(counter_of_row + r)
        depth = tl.load(depth_of_row + r)
        frames = stack + r * width
        counts = saved + r * width
        soft = tl.load(soft_depth + bundle)
        left = tl.load(budget + r) - tl.load(length + r)
        if reads:
            if q > 1:
                given = tl.load(tokens + r)
                token = given.to(tl.int32)
                n = tl.load(length + r)
                if history > 0:
                    place = (n % history) * batch + r
                    tl.store(log_state + place, q)
                    tl.store(log_counter + place, c)
                    tl.store(log_depth + place, depth)
                    for k in range(depth):
                        tl.store(log_stack + place * width + k, tl.load(frames + k))
                        tl.store(log_saved + place * width + k, tl.load(counts + k))
                mode = 0
                if depth >= soft:
                    mode = modes - 1
                if (given < 0) | (given >= size):
                    q = 0
                else:
                    special = tl.load(special_symbol + tl.load(special_base + bundle) + token)
                    start = tl.load(token_offset + token)
                    stop = tl.load(token_offset + token + 1)
                    if special >= 0:
                        stop = start + 1
                    if start == stop:
                        q = 0
                    word = tl.load(loop_bits + tl.load(state_loop + q) * words + (token >> 5))
                    if ((word >> (token & 31)) & 1) != 0:
                        stop = start
                    first_class = tl.load(class_base + bundle)
                    at = start
                    while (at < stop) & (q > 0):
                        symbol = special
                        if special < 0:
                            symbol = tl.load(token_bytes + at)
                        at += 1
                        if q == 1:
                            q = 0
                        else:
                            cell = tl.load(state_cell + q) + _phase(state_break, q, breaks, c)
                            base = tl.load(cell_delta + cell)
                            entry = base + tl.load(symbol_class + first_class + symbol)
                            op = 0
                            if tl.load(delta + 2 * entry) == base:
                                op = tl.load(delta + 2 * entry + 1)
                            kind = op & 7
                            number = op >> 3
                            if kind < 4:
                                q = number
                                c = _act(kind, c)
                            elif kind == 4:
                                q = 0
                                if depth < tl.load(capacity + bundle):
                                    q = tl.load(push + 4 * number + 1 + tl.where(mode > 0, 1, 0))
                                    tl.store(frames + depth, tl.load(push + 4 * number))
                                    tl.store(counts + depth, _act(tl.load(push + 4 * number + 3), c))
                                    depth += 1
                                    tl.debug_barrier()
                                c = 0
                            else:
                                q = 0
                                if depth > 0:
                                    depth -= 1
                                    under = tl.load(symbol_base + bundle) + tl.load(frames + depth)
                                    back = tl.load(return_offset + under)
                                    if tl.load(returns + 2 * (back + number)) == back:
                                        value = tl.load(returns + 2 * (back + number) + 1)
                                        q = value >> 2
                                        c = _act(value & 3, tl.load(counts + depth))
                tl.store(state_of_row + r, q)
                tl.store(counter_of_row + r, c)
                tl.store(depth_of_row + r, depth)
                tl.store(length + r, n + 1)
                left -= 1
                tl.store(kept + r, tl.minimum(tl.load(kept + r) + 1, history))
                if q == 0:
                    tl.store(error + r, 1)
        if masks:
            row = tl.load(finished_row + bundle)
            profile = -1
            limited = (tl.load(budget + r) > 0) & (q > 1)
            only = -1
            need = 0
            below = 0
            symbols = tl.load(symbol_base + bundle)
            if limited:
                place = tl.load(state_close + q) + _phase(close_break, q, closes, c)
                place = place * modes + tl.where(depth >= soft, modes - 1, 0)
                for k in range(depth):
                    below += _owes(owed_first, owed_break, owed, closes, symbols, frames, counts, k)
                need = tl.load(close_after + place) + below
                only = tl.load(close_token + place)
            if q > 1:
                mode = 0
                if depth >= soft:
                    mode = modes - 1
                cell = tl.load(state_cell + q) + _phase(state_break, q, breaks, c)
                row = tl.load(cell_row + cell * modes + mode)
                profile = tl.load(cell_exit + cell * modes + mode)
            part = tl.program_id(1)
            lane = part * block + tl.arange(0, block)
            inside = lane < size
            bits = tl.load(dense + row.to(tl.int64) * words + (lane >> 5), mask=inside, other=0)
            while (profile >= 0) & (depth > 0):
                depth -= 1
                if limited:
                    below -= _owes(owed_first, owed_break, owed, closes, symbols, frames, counts, depth)
                base = tl.load(chain_offset + profile)
                entry = base + tl.load(frames + depth)
                profile = -1
                if tl.load(chain + 2 * entry) == base:
                    number = tl.load(chain + 2 * entry + 1)
                    cell = tl.load(chain_cell + number) + _phase(chain_break, number, breaks, tl.load(counts + depth))
                    more = tl.load(chain_row + cell)
                    bits |= tl.load(dense + more.to(tl.int64) * words + (lane >> 5), mask=inside, other=0)
                    profile = tl.load(chain_exit + cell)
                    if limited:
                        need = tl.maximum(need, tl.load(chain_after + cell) + below)
            allowed = ((bits >> (lane & 31)) & 1) != 0
            if limited & (only >= 0) & (need >= tl.maximum(left, 0)):
                allowed = lane == only
            place = logits + r.to(tl.int64) * row_stride + lane.to(tl.int64) * column_stride
            tl.store(place, float("-inf"), mask=(lane < columns) & ~(allowed & inside))


TABLES = (
    "symbol_class special_symbol token_offset token_bytes state_cell state_break state_loop loop_bits cell_row "
    "cell_exit cell_delta delta push return_offset return chain_offset chain chain_cell chain_break chain_row "
    "chain_exit dense class_base special_base symbol_base soft_depth capacity finished_row state_close close_break "
    "close_token close_after owed_first owed_break owed chain_after"
).split()


def launch(
    arena: Arena,
    bundle_of_row: torch.Tensor,
    config: Config,
    error: torch.Tensor,
    length: torch.Tensor,
    kept: torch.Tensor,
    log: Config,
    history: int,
    budget: torch.Tensor,
    tokens: torch.Tensor | None,
    logits: torch.Tensor | None,
    block: int = 4096,
) -> None:
    """Read a token per row, if there are tokens, then mask the logits, if there are logits; all in place."""
    k, rows = arena.limits, bundle_of_row.shape[0]
    if rows == 0 or (tokens is None and logits is None):
        return
    nothing = bundle_of_row
    shown = nothing if logits is None else logits
    stride, step, columns = (0, 0, 0) if logits is None else (*logits.stride(), logits.shape[1])
    parts = 1 if logits is None else triton.cdiv(columns, block)
    if tokens is not None and parts > 1:
        launch(arena, bundle_of_row, config, error, length, kept, log, history, budget, tokens, None)
        tokens = None
    fused_step[(rows, parts)](
        shown,
        stride,
        step,
        columns,
        nothing if tokens is None else tokens.contiguous(),
        bundle_of_row,
        *config,
        error.view(torch.uint8),
        length,
        kept,
        *log,
        budget,
        *(arena.table[name] for name in TABLES),
        rows,
        history,
        k.size,
        arena.words,
        config.stack.shape[1],
        reads=tokens is not None,
        masks=logits is not None,
        breaks=k.breaks,
        closes=k.closes,
        modes=k.modes,
        block=block,
    )
