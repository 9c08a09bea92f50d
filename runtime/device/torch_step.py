"""One step of a batch as pure functions of tensors: the state after a token, and the mask.

Leaves out   who holds tables and state: see arena.py, decoder.py, constraint.py.
Invariants   no argument is written to; no tensor's value decides what is executed, unless `stop_early` is set, which
             reads values and is for the CPU. So the functions work in torch.compile, torch.export and CUDA graphs.
Arrays       tables as in arena.py. Config: state, counter, depth int32 [B]; stack, saved int32 [B, capacity + 1], the
             last column of which takes the writes of rows that do not push. register int32 [B, (capacity + 1) x G]:
             the registers of the frames, each of G words, that of the row's own frame at its depth; word 0 is a
             number, the others are bits; G is 0 where no bundle has registers, and nothing is then done about them.
             bundle int32 [B], -1 for none.
Trusts       what triton_step.py does; on the CPU torch checks every index besides.
Loops        A token whose every byte takes the state back to itself changes nothing, so it takes no steps
             (`state_loop`, `loop_bits`). A longer token than any other that some row allows is refused unread.
Source       runtime/reference.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch

from ..format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, POP, PUSH
from .relocate import EMPTY_ROW, FULL_ROW, Limits


class Config(NamedTuple):
    """Where each row stands."""

    state: torch.Tensor
    counter: torch.Tensor
    depth: torch.Tensor
    stack: torch.Tensor
    saved: torch.Tensor
    register: torch.Tensor

    @property
    def registers(self) -> int:
        """G, which may be less than the arena's, of which rows may be in bundles of this G or less."""
        return self.register.shape[1] // self.stack.shape[1]

    def frames(self) -> torch.Tensor:
        """int32 [B, capacity + 1, G]: the registers by frame."""
        return self.register.view(*self.stack.shape, self.registers)


Tables = Mapping[str, torch.Tensor]


def widened(here: Config, limits: Limits) -> Config:
    """The same with stacks and registers as wide as the bundles of an arena need; [B, …] or [history, B, …]."""
    capacity, registers = here.stack.shape[-1], here.register.shape[-1] // here.stack.shape[-1]
    frames, words = max(0, limits.capacity + 1 - capacity), max(0, limits.registers - registers)
    stack, saved = (torch.nn.functional.pad(part, (0, frames)) for part in (here.stack, here.saved))
    register = torch.zeros((*stack.shape, registers + words), dtype=torch.int32, device=stack.device)
    register[..., :capacity, :registers] = here.register.view(*here.stack.shape, registers)
    return here._replace(stack=stack, saved=saved, register=register.flatten(-2))


def at(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return table.index_select(0, index)


def act(action: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
    return torch.where(action == 0, counter, torch.where(action == 1, counter + 1, action - 2))


def phase(t: Tables, k: Limits, break_: str, index: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
    breaks = t["breaks" if break_ in ("state_break", "chain_break") else "close_breaks"]
    if breaks.shape[1] == 0:
        return torch.zeros_like(counter)
    pairs = at(breaks, at(t[break_], index))
    spans = pairs[:, :, 1]
    past = counter.unsqueeze(1) - pairs[:, :, 0] + spans
    return torch.minimum(past.clamp(min=0), spans).sum(dim=1, dtype=torch.int32)


def passes(t: Tables, test: torch.Tensor, register: torch.Tensor) -> torch.Tensor:
    """bool [N]: the registers, int32 [N, G], pass the tests, int32 [N]."""
    clear = torch.zeros_like(test)
    for word in range(register.shape[1]):
        clear = clear | at(t["register_test"][:, 1 + word], test) & ~register[:, word]
    return (clear != 0) == (at(t["register_test"][:, 0], test) != 0)


def frame_of(frames: torch.Tensor, depth: torch.Tensor) -> torch.Tensor:
    """int32 [B, G]: the register of a frame of each row, of those by frame."""
    place = depth.to(torch.int64).view(-1, 1, 1).expand(-1, 1, frames.shape[2])
    return frames.gather(1, place).squeeze(1)


def put_frame_(frames: torch.Tensor, depth: torch.Tensor, register: torch.Tensor) -> None:
    """Write the register of a frame of each row, int32 [B, G], among those by frame."""
    place = depth.to(torch.int64).view(-1, 1, 1).expand(-1, 1, frames.shape[2])
    frames.scatter_(1, place, register.unsqueeze(1))


def set_bit(bit: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """int32 [B, G]: registers like the given of which one bit is set, int32 [B]; none for -1."""
    word = torch.arange(like.shape[1], dtype=torch.int32, device=bit.device)
    return (word == (bit >> 5).unsqueeze(1)).to(torch.int32) << (bit & 31).unsqueeze(1)


def taken_out(
    t: Tables, k: Limits, bits: torch.Tensor, checks: list[tuple[torch.Tensor, torch.Tensor]], stop_early: bool
) -> torch.Tensor:
    """int32 [B, words]: the bits without the tokens of check lists that registers refuse.

    checks: (check list of each row int32 [B], the registers that it is about int32 [B, G]), of several frames.
    """
    number, register = (torch.cat(part) for part in zip(*checks, strict=True))
    length = at(t["check_length"].view(-1), number)
    most = k.checks
    if stop_early:
        most = int(length.max()) if length.numel() else 0
    if not most:
        return bits
    lane = torch.arange(most, dtype=torch.int32, device=bits.device)
    inside = lane < length.unsqueeze(1)
    place = torch.where(inside, at(t["check_offset"].view(-1), number).unsqueeze(1) + lane, 0)
    check = at(t["check"], place.view(-1))
    held = register.unsqueeze(1).expand(-1, most, -1).reshape(-1, register.shape[1])
    fine = passes(t, check[:, 1], held) & passes(t, check[:, 2], held)
    token = check[:, 0].view(inside.shape)
    refused = torch.where(inside & ~fine.view(inside.shape), 1 << (token & 31), 0)
    shape = len(checks), bits.shape[0], most
    for word, bit in zip((token >> 5).to(torch.int64).view(shape), refused.view(shape), strict=True):
        # A list has a token once, so that the bits of a word add up to their union; lists may share tokens.
        bits = bits & ~torch.zeros_like(bits).scatter_add_(1, word, bit)
    return bits


def way_token(t: Tables, k: Limits, here: Config, otherwise: torch.Tensor) -> torch.Tensor:
    """int32 [B]: the first token of the way list of each row whose test its register passes; else what is given."""
    number = at(t["state_way"].view(-1), here.state)
    lane = torch.arange(k.ways, dtype=torch.int32, device=number.device)
    inside = lane < at(t["way_length"].view(-1), number).unsqueeze(1)
    place = torch.where(inside, at(t["way_offset"].view(-1), number).unsqueeze(1) + lane, 0)
    way = at(t["way"], place.view(-1))
    register = frame_of(here.frames(), here.depth)
    held = register.unsqueeze(1).expand(-1, k.ways, -1).reshape(-1, register.shape[1])
    fine = passes(t, way[:, 1], held).view(inside.shape) & inside
    first = fine.to(torch.int32).argmax(1, keepdim=True)
    return torch.where(fine.any(1), way[:, 0].view(inside.shape).gather(1, first).squeeze(1), otherwise)


def mode_of(t: Tables, k: Limits, bundle: torch.Tensor, depth: torch.Tensor) -> torch.Tensor:
    return (depth >= at(t["soft_depth"], bundle)).to(torch.int32) * (k.modes - 1)


def owed_below(t: Tables, k: Limits, bundle: torch.Tensor, here: Config) -> torch.Tensor:
    """int32 [B, frames + 1]: how many tokens the lowest 0, 1, 2, … frames need after what is above them is over."""
    rows, frames = here.stack.shape[0], here.stack.shape[1] - 1
    inside = torch.arange(frames, device=here.depth.device) < here.depth.unsqueeze(1)
    symbol = torch.where(inside, at(t["symbol_base"], bundle.clamp(min=0)).unsqueeze(1) + here.stack[:, :frames], 0)
    symbol = symbol.reshape(-1)
    cell = at(t["owed_first"], symbol) + phase(t, k, "owed_break", symbol, here.saved[:, :frames].reshape(-1))
    owed = at(t["owed"], cell).view(rows, frames)
    if here.registers:  # what the members of the frame above took off
        owed = owed - here.frames()[:, 1:, 0]
    owed = torch.where(inside, owed, 0)
    return torch.nn.functional.pad(owed.cumsum(1, dtype=torch.int32), (1, 0))


def bound(t: Tables, k: Limits, bundle: torch.Tensor, here: Config) -> torch.Tensor:
    """int32 [B]: so many tokens are enough to end; NEVER (tables.py) or more where no bound is known, 0 at the end."""
    cell = at(t["state_close"], here.state) + phase(t, k, "close_break", here.state, here.counter)
    below = owed_below(t, k, bundle, here).gather(1, here.depth.to(torch.int64).unsqueeze(1)).squeeze(1)
    return torch.where((here.state > 1) & (bundle >= 0), at(t["close_bound"], cell) + below, 0)


def forced(
    t: Tables, k: Limits, bundle: torch.Tensor, here: Config, left: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The forced tokens of each row int64 [B, most], padded with -1, and how many there are, int64 [B]."""
    number = at(t["state_forced"], torch.where(bundle >= 0, here.state, 0))
    count = at(t["forced_length"], number)
    if left is not None:
        below = owed_below(t, k, bundle, here).gather(1, here.depth.to(torch.int64).unsqueeze(1)).squeeze(1)
        late = (left >= 0) & (at(t["forced_after"], here.state) + below > left - count)
        count = torch.where(late, 0, count)
    place = torch.arange(k.forced, dtype=torch.int32, device=count.device)
    last = t["forced_tokens"].shape[0] - 1
    tokens = at(t["forced_tokens"], (at(t["forced_offset"], number).unsqueeze(1) + place).clamp(max=last).view(-1))
    tokens = torch.where(place < count.unsqueeze(1), tokens.view(count.shape[0], k.forced), -1)
    return tokens.to(torch.int64), count.to(torch.int64)


def mask_bits(
    t: Tables,
    k: Limits,
    bundle: torch.Tensor,
    here: Config,
    stop_early: bool = False,
    left: torch.Tensor | None = None,
) -> torch.Tensor:
    """int32 [B, words]: the allowed tokens as bits; all bits for a row without bundle.

    left int32 [B]: how many tokens a row's budget leaves, -1 for none; None if no row has one.
    """
    free = bundle < 0
    bundle = bundle.clamp(min=0)
    over = here.state <= 1
    cell = at(t["state_cell"], here.state) + phase(t, k, "state_break", here.state, here.counter)
    place = cell * k.modes + mode_of(t, k, bundle, here.depth)
    row = torch.where(over, at(t["finished_row"], bundle), at(t["cell_row"].view(-1), place))
    row = torch.where(free, FULL_ROW, row)
    profile = torch.where(over | free, -1, at(t["cell_exit"].view(-1), place))
    bits = at(t["dense"], row)
    checks: list[tuple[torch.Tensor, torch.Tensor]] = []  # check lists, and the registers that they are about
    registers = here.registers
    if registers:
        number = torch.where(over | free, 0, at(t["cell_check"].view(-1), place))
        checks.append((number, frame_of(here.frames(), here.depth)))
    if left is not None:
        owed = owed_below(t, k, bundle, here)
        close = at(t["state_close"], here.state) + phase(t, k, "close_break", here.state, here.counter)
        close = close * k.modes + mode_of(t, k, bundle, here.depth)
        need = at(t["close_after"].view(-1), close) + owed.gather(1, here.depth.to(torch.int64).unsqueeze(1)).squeeze(1)
    for level in range(min(k.max_chain, k.capacity)):
        frame = here.depth - 1 - level
        going = (profile >= 0) & (frame >= 0)
        if stop_early and not bool(going.any()):
            break
        below = frame.clamp(min=0).to(torch.int64).unsqueeze(1)
        symbol = here.stack.gather(1, below).squeeze(1)
        saved = here.saved.gather(1, below).squeeze(1)
        base = at(t["chain_offset"], torch.where(going, profile, 0))
        record = at(t["chain"], base + torch.where(going, symbol, 0))
        going = going & (record[:, 0] == base)
        number = torch.where(going, record[:, 1], 0)
        cell = at(t["chain_cell"], number) + phase(t, k, "chain_break", number, saved)
        more = torch.where(going, at(t["chain_row"], cell), EMPTY_ROW)
        if left is not None:
            after = at(t["chain_after"], cell) + owed.gather(1, below).squeeze(1)
            need = torch.maximum(need, torch.where(going, after, 0))
        if stop_early:
            some = going.nonzero().view(-1)
            bits[some] |= at(t["dense"], more[some])
        else:
            bits = bits | at(t["dense"], more)
        profile = torch.where(going, at(t["chain_exit"], cell), -1)
        if registers:
            number = torch.where(going, at(t["chain_check"].view(-1), cell), 0)
            checks.append((number, frame_of(here.frames(), frame.clamp(min=0))))
    if checks:
        bits = taken_out(t, k, bits, checks, stop_early)
    if left is not None:
        token = at(t["close_token"].view(-1), close)
        if registers and k.ways:
            token = way_token(t, k, here, token)
        closing = (left >= 0) & (need >= left) & (token >= 0) & ~over & ~free
        words = torch.arange(bits.shape[1], dtype=torch.int32, device=bits.device)
        only = (words == (token >> 5).unsqueeze(1)).to(torch.int32) << (token & 31).unsqueeze(1)
        bits = torch.where(closing.unsqueeze(1), only, bits)
    return bits


def advance(
    t: Tables, k: Limits, bundle: torch.Tensor, here: Config, tokens: torch.Tensor, stop_early: bool = False
) -> tuple[Config, torch.Tensor]:
    """The state after one token per row, and bool [B]: rows whose token is not allowed; their state is then 0.

    Rows without bundle, finished ones and dead ones stay as they are.
    """
    active = (bundle >= 0) & (here.state > 1)
    bundle = bundle.clamp(min=0)
    known = (tokens >= 0) & (tokens < k.size)
    token = torch.where(known & active, tokens, 0).to(torch.int32)
    special = at(t["special_symbol"], at(t["special_base"], bundle) + token)
    start = at(t["token_offset"], token)
    length = torch.where(special >= 0, 1, at(t["token_offset"], token + 1) - start)
    # A token over which the state loops: nothing to do.
    word = at(t["state_loop"], here.state) * t["loop_bits"].shape[1] + (token >> 5)
    loops = at(t["loop_bits"].view(-1), word) >> (token & 31) & 1 != 0
    dead = ~known | ((length == 0) | (length > k.steps)) & ~loops
    length = torch.where(active & ~loops & ~dead, length, 0)
    mode = mode_of(t, k, bundle, here.depth)
    class_base, symbol_base = at(t["class_base"], bundle), at(t["symbol_base"], bundle)
    capacity = at(t["capacity"], bundle)
    state = torch.where(active & dead, 0, here.state)
    counter, depth = here.counter, here.depth
    stack, saved = here.stack.clone(), here.saved.clone()
    frames, register, rule = here.register, here.register, here.register  # which are empty without registers
    registers = here.registers
    if registers:
        frames = here.frames().clone()
        register = frame_of(frames, depth)  # of the row's own frame, written back at the end
        rule = at(t["register_rule"], at(t["state_register"].view(-1), state))  # of the state
    dump = stack.shape[1] - 1
    count = k.steps
    if stop_early:
        count = int(length.max()) if length.numel() else 0
    for j in range(count):
        live = (length > j) & (state > 1)
        q = torch.where(live, state, 0)
        symbol = torch.where(special >= 0, special, at(t["token_bytes"], start + torch.where(live, j, 0)))
        column = at(t["symbol_class"], class_base + symbol)
        cell = at(t["state_cell"], q) + phase(t, k, "state_break", q, counter)
        base, default = at(t["cell_delta"], cell), at(t["cell_default"], cell)
        column = torch.where(live, column, 0)
        entry, other = at(t["delta"], base + column), at(t["delta"], default + column)
        op = torch.where(entry[:, 0] == base, entry[:, 1], torch.where(other[:, 0] == default, other[:, 1], 0))
        kind, number = op & KIND_MASK, op >> KIND_BITS
        pushes, pops = kind == PUSH, kind == POP
        # go
        next_state, next_counter = number, act(kind, counter)
        # push: frame `depth` takes the stack symbol and the caller's counter
        frame = at(t["push"], torch.where(pushes, number, 0))
        fits = pushes & (depth < capacity)
        entered = torch.where(mode > 0, frame[:, 2], frame[:, 1])
        next_state = torch.where(pushes, torch.where(fits, entered, 0), next_state)
        next_counter = torch.where(pushes, 0, next_counter)
        place = torch.where(fits & live, depth, dump).to(torch.int64).unsqueeze(1)
        stack.scatter_(1, place, frame[:, :1])
        saved.scatter_(1, place, act(frame[:, 3], counter).unsqueeze(1))
        # pop: the frame below continues where the stack symbol says
        top = (depth - 1).clamp(min=0).to(torch.int64).unsqueeze(1)
        held = pops & (depth > 0)
        under = torch.where(held, stack.gather(1, top).squeeze(1), 0)
        back = at(t["return_offset"], torch.where(held, symbol_base + under, 0))
        found = at(t["return"], torch.where(held, back + number, 0))
        value = torch.where(held & (found[:, 0] == back), found[:, 1], 0)
        next_state = torch.where(pops, value >> ACTION_BITS, next_state)
        next_counter = torch.where(pops, act(value & ACTION_MASK, saved.gather(1, top).squeeze(1)), next_counter)
        next_depth = depth + fits.to(torch.int32) - held.to(torch.int32)
        if registers:
            put_frame_(frames, torch.where(fits & live, depth, dump), register)
            next_register = torch.where(pops.unsqueeze(1), frame_of(frames, (depth - 1).clamp(min=0)), register)
            next_rule = at(t["register_rule"], at(t["state_register"].view(-1), next_state))
            fine = passes(t, torch.where(pops, rule[:, 2], 0), register)
            fine = fine & passes(t, torch.where(pushes, 0, next_rule[:, 0]), next_register)
            next_state = torch.where(fine, next_state, 0)
            next_register = torch.where(pushes.unsqueeze(1), 0, next_register) | set_bit(next_rule[:, 1], register)
            next_register[:, 0] += next_rule[:, 3]
            register = torch.where(live.unsqueeze(1), next_register, register)
            rule = torch.where(live.unsqueeze(1), next_rule, rule)
        # the end of turn is the last symbol of a token
        state = torch.where(live, next_state, torch.where((length > j) & (state == 1), 0, state))
        counter = torch.where(live, next_counter, counter)
        depth = torch.where(live, next_depth, depth)
    if registers:
        put_frame_(frames, depth, register)
        frames = frames.view(here.register.shape)
    return Config(state, counter, depth, stack, saved, frames), active & (state == 0)
