"""A batch of sequences on torch tensors: mask the logits, read the sampled tokens; on any device.

Leaves out   the tables on the device: see arena.py. One sequence on the host: see matcher.py, which this equals bit for
             bit.
Invariants   every step is a fixed list of tensor operations; on a device other than the CPU nothing is copied to the
             host. On the CPU loops stop early at the longest token and the longest chain of the batch.
Rows         A row belongs to one bundle, or to none (-1): then its logits are untouched and its tokens ignored.
             A finished row allows only the end-of-turn ids and ignores what is read, so padding may be fed to it.
             A token that is not allowed: with `check` (the default on the CPU) nothing is read by any row and a
             DecodeError names row, token and what was expected. Without, the row is dead: `error` is set, `finished`
             too, and only the end-of-turn ids stay allowed, so that sampling stays defined and loops end.
Arrays       bundle_of_row, state, counter, depth int32 [B]; stack, saved int32 [B, capacity + 1] (the last column takes
             the writes of rows that do not push); error bool [B].
Source       docs/architecture.md, "Reading a symbol".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import torch

from .arena import EMPTY_ROW, FULL_ROW, Arena
from .errors import DecodeError
from .masks import check_logits, mask_logits_
from .matcher import Matcher

if TYPE_CHECKING:
    from .bundle import Bundle

Rows: TypeAlias = Sequence[int] | torch.Tensor | slice | None
NO_BUNDLE = -1


class Decoder:
    """The state of a batch.

    Args:
        bundles: one bundle for all rows, or those that rows may use; all of one vocabulary.
        batch_size: B.
        device: where the logits are.
        bundle_of_row: the bundle's number for each row, -1 for none; 0 for all if absent.
        entry: the name of the entry where the texts begin.
        check: raise on a token that is not allowed; costs a synchronisation on a device. Default: on the CPU only.
    """

    def __init__(
        self,
        bundles: Bundle | Sequence[Bundle],
        batch_size: int,
        device: torch.device | str = "cpu",
        *,
        bundle_of_row: Sequence[int] | None = None,
        entry: str = "start",
        check: bool | None = None,
    ) -> None:
        given = list(bundles) if isinstance(bundles, Sequence) else [bundles]
        if not given:
            raise DecodeError("a decoder needs a bundle", found="none", expected="at least one")
        if batch_size < 0:
            raise DecodeError("no such batch", found=str(batch_size), expected="a size of 0 or more")
        self.device = torch.device(device)
        self.check = self.device.type == "cpu" if check is None else check
        self.arena = Arena(self.device)
        self.batch_size = batch_size
        self._on_cpu = self.device.type == "cpu"
        numbers = [self.arena.add(bundle) for bundle in given]

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=self.device)

        self.bundle_of_row, self.state, self.counter, self.depth = (zeros(batch_size) for _ in range(4))
        self.stack = zeros(batch_size, self.arena.capacity + 1)
        self.saved = zeros(batch_size, self.arena.capacity + 1)
        self.error = zeros(batch_size, dtype=torch.bool)
        chosen = [0] * batch_size if bundle_of_row is None else list(bundle_of_row)
        if len(chosen) != batch_size:
            raise DecodeError("bundle_of_row", found=f"{len(chosen)} rows", expected=f"{batch_size}")
        for n in chosen:
            if not NO_BUNDLE <= n < len(given):
                raise DecodeError("no such bundle", found=str(n), expected=f"-1 to {len(given) - 1}")
        self.reset_rows(None, [numbers[n] if n >= 0 else n for n in chosen], entry)

    # ------------------------------------------------------------ rows

    def add_bundle(self, bundle: Bundle) -> int:
        """Make a bundle available to rows; returns its number."""
        number = self.arena.add(bundle)
        missing = self.arena.capacity + 1 - self.stack.shape[1]
        if missing > 0:
            pad = torch.zeros((self.batch_size, missing), dtype=torch.int32, device=self.device)
            self.stack = torch.cat([self.stack, pad], dim=1)
            self.saved = torch.cat([self.saved, pad], dim=1)
        return number

    def reset_rows(self, rows: Rows = None, bundle: int | Sequence[int] | None = None, entry: str = "start") -> None:
        """Begin new texts.

        Args:
            rows: numbers of rows, or a bool mask; all if None.
            bundle: the number of a bundle or -1, for all or for each of the rows; as it was if None.
            entry: where the texts begin.
        """
        index = self._rows(rows)
        if bundle is None:
            chosen = self.bundle_of_row[index].tolist()
        else:
            chosen = [bundle] * index.numel() if isinstance(bundle, int) else [int(b) for b in bundle]
        if len(chosen) != index.numel():
            raise DecodeError("bundles and rows", found=f"{len(chosen)} bundles", expected=f"{index.numel()}")
        start = {NO_BUNDLE: 0}
        for n in sorted(set(chosen) - {NO_BUNDLE}):
            if not 0 <= n < len(self.arena.bundles):
                raise DecodeError("no such bundle", found=str(n), expected=f"-1 to {len(self.arena.bundles) - 1}")
            entries = self.arena.bundles[n].meta["entry"]
            if entry not in entries:
                raise DecodeError("no such entry", found=repr(entry), expected="one of " + ", ".join(sorted(entries)))
            start[n] = self.arena.global_state(n, entries[entry])
        self.bundle_of_row[index] = torch.tensor(chosen, dtype=torch.int32, device=self.device)
        self.state[index] = torch.tensor([start[n] for n in chosen], dtype=torch.int32, device=self.device)
        self.counter[index] = 0
        self.depth[index] = 0
        self.error[index] = False

    def reorder_(self, index: Sequence[int] | torch.Tensor) -> None:
        """Row i becomes what row index[i] was; the batch takes the length of the index."""
        order = torch.as_tensor(index, dtype=torch.int64, device=self.device)
        for name in ("bundle_of_row", "state", "counter", "depth", "stack", "saved", "error"):
            setattr(self, name, getattr(self, name).index_select(0, order))
        self.batch_size = int(order.numel())

    def matcher(self, row: int) -> Matcher:
        """A host matcher where a row stands; it copies from the device."""
        number = int(self.bundle_of_row[row])
        if number < 0:
            raise DecodeError("the row has no bundle", found=f"row {row}", expected="a constrained row")
        depth = int(self.depth[row])
        frames = list(zip(self.stack[row, :depth].tolist(), self.saved[row, :depth].tolist(), strict=True))
        state = self.arena.local_state(number, int(self.state[row]))
        return Matcher.at_configuration(self.arena.bundles[number], state, int(self.counter[row]), frames)

    @property
    def finished(self) -> torch.Tensor:
        """bool [B]: the end of turn was read, or the row is dead (`error`); never for a row without bundle."""
        return (self.bundle_of_row >= 0) & (self.state <= 1)

    def _rows(self, rows: Rows) -> torch.Tensor:
        every = torch.arange(self.batch_size, device=self.device)
        if rows is None:
            return every
        if isinstance(rows, slice):
            return every[rows]
        given = torch.as_tensor(rows, device=self.device)
        return every[given] if given.dtype == torch.bool else given.to(torch.int64).reshape(-1)

    # ------------------------------------------------------------ masks

    def fill(self) -> torch.Tensor:
        """int32 [B, ceil(V / 32)]: the allowed tokens as bits; all bits for a row without bundle."""
        t = self.arena.table
        bundle = self.bundle_of_row.clamp(min=0)
        free = self.bundle_of_row < 0
        over = self.state <= 1
        cell = _at(t["state_cell"], self.state) + self._phase("state_break", self.state, self.counter)
        mode = self._mode(bundle)
        place = cell * self.arena.modes + mode
        row = torch.where(over, _at(t["finished_row"], bundle), _at(t["cell_row"].view(-1), place))
        row = torch.where(free, FULL_ROW, row)
        profile = torch.where(over | free, -1, _at(t["cell_exit"].view(-1), place))
        bits = _at(t["dense"], row)
        for k in range(min(self.arena.max_chain, self.arena.capacity)):
            level = self.depth - 1 - k
            going = (profile >= 0) & (level >= 0)
            if self._on_cpu and not bool(going.any()):
                break
            below = level.clamp(min=0).to(torch.int64).unsqueeze(1)
            symbol = self.stack.gather(1, below).squeeze(1)
            saved = self.saved.gather(1, below).squeeze(1)
            base = _at(t["chain_offset"], torch.where(going, profile, 0))
            record = _at(t["chain"], base + torch.where(going, symbol, 0))
            going = going & (record[:, 0] == base)
            number = torch.where(going, record[:, 1], 0)
            cell = _at(t["chain_cell"], number) + self._phase("chain_break", number, saved)
            more = torch.where(going, _at(t["chain_row"], cell), EMPTY_ROW)
            if self._on_cpu:
                some = going.nonzero().view(-1)
                bits[some] |= _at(t["dense"], more[some])
            else:
                bits |= _at(t["dense"], more)
            profile = torch.where(going, _at(t["chain_exit"], cell), -1)
        return bits

    def mask_(self, logits: torch.Tensor) -> torch.Tensor:
        """Set the logits of tokens that are not allowed to -inf, in place; returns them.

        Args:
            logits: [B, at least V], any float dtype, any strides; columns past V are never allowed.
        """
        check_logits(logits, self.batch_size, self.arena.size)
        return mask_logits_(logits, self.fill(), self.arena.size, self.bundle_of_row >= 0)

    # ------------------------------------------------------------ tokens

    def advance_(self, tokens: torch.Tensor) -> None:
        """Read one token per row.

        Args:
            tokens: integers [B].

        Raises:
            DecodeError: with `check`, a token is not allowed; no row has changed.
        """
        if tokens.shape != (self.batch_size,) or tokens.is_floating_point():
            raise DecodeError(
                "the tokens do not fit",
                found=f"{tokens.dtype} {list(tokens.shape)}",
                expected=f"integers [{self.batch_size}]",
            )
        t, size = self.arena.table, self.arena.size
        bundle = self.bundle_of_row.clamp(min=0)
        active = (self.bundle_of_row >= 0) & (self.state > 1)
        tokens = tokens.to(self.device)
        known = (tokens >= 0) & (tokens < size)
        token = torch.where(known & active, tokens, 0).to(torch.int32)
        special = _at(t["special_symbol"], _at(t["special_base"], bundle) + token)
        start = _at(t["token_offset"], token)
        length = torch.where(special >= 0, 1, _at(t["token_offset"], token + 1) - start)
        length = torch.where(active, length, 0)
        mode = self._mode(bundle)
        class_base, symbol_base = _at(t["class_base"], bundle), _at(t["symbol_base"], bundle)
        capacity = _at(t["capacity"], bundle)
        state = torch.where(active & (~known | (length == 0)), 0, self.state)
        counter, depth = self.counter, self.depth
        stack, saved = self.stack.clone(), self.saved.clone()
        dump = stack.shape[1] - 1
        count = self.arena.longest
        if self._on_cpu:
            count = int(length.max()) if self.batch_size else 0
        push, returns = t["push"], t["return"]
        for j in range(count):
            live = (length > j) & (state > 1)
            q = torch.where(live, state, 0)
            symbol = torch.where(special >= 0, special, _at(t["token_bytes"], start + torch.where(live, j, 0)))
            column = _at(t["symbol_class"], class_base + symbol)
            base = _at(t["cell_delta"], _at(t["state_cell"], q) + self._phase("state_break", q, counter))
            entry = _at(t["delta"], base + torch.where(live, column, 0))
            op = torch.where(entry[:, 0] == base, entry[:, 1], 0)
            kind, number = op & 7, op >> 3
            pushes, pops = kind == 4, kind == 5
            # go
            next_state, next_counter = number, _act(kind, counter)
            # push: frame `depth` takes the stack symbol and the caller's counter
            frame = _at(push, torch.where(pushes, number, 0))
            fits = pushes & (depth < capacity)
            entered = torch.where(mode > 0, frame[:, 2], frame[:, 1])
            next_state = torch.where(pushes, torch.where(fits, entered, 0), next_state)
            next_counter = torch.where(pushes, 0, next_counter)
            place = torch.where(fits & live, depth, dump).to(torch.int64).unsqueeze(1)
            stack.scatter_(1, place, frame[:, :1])
            saved.scatter_(1, place, _act(frame[:, 3], counter).unsqueeze(1))
            # pop: the frame below continues where the stack symbol says
            top = (depth - 1).clamp(min=0).to(torch.int64).unsqueeze(1)
            held = pops & (depth > 0)
            under = torch.where(held, stack.gather(1, top).squeeze(1), 0)
            back = _at(t["return_offset"], torch.where(held, symbol_base + under, 0))
            found = _at(returns, torch.where(held, back + number, 0))
            value = torch.where(held & (found[:, 0] == back), found[:, 1], 0)
            next_state = torch.where(pops, value >> 2, next_state)
            next_counter = torch.where(pops, _act(value & 3, saved.gather(1, top).squeeze(1)), next_counter)
            next_depth = depth + fits.to(torch.int32) - held.to(torch.int32)
            state = torch.where(live, next_state, torch.where(length > j, torch.where(state == 1, 0, state), state))
            counter = torch.where(live, next_counter, counter)
            depth = torch.where(live, next_depth, depth)
        refused = active & (state == 0)
        if self.check and bool(refused.any()):
            raise self._refusal(tokens, refused)
        self.state, self.counter, self.depth, self.stack, self.saved = state, counter, depth, stack, saved
        self.error = self.error | refused

    def _refusal(self, tokens: torch.Tensor, refused: torch.Tensor) -> DecodeError:
        rows = refused.nonzero().view(-1).tolist()
        token = int(tokens[rows[0]])
        matcher = self.matcher(rows[0])
        error = matcher.refusal(token)
        error.place = f"row {rows[0]} of {self.batch_size}, {error.place}"
        if len(rows) > 1:
            error.hint = f"{len(rows)} rows have such a token; none has read its token"
        return error

    # ------------------------------------------------------------ parts

    def _mode(self, bundle: torch.Tensor) -> torch.Tensor:
        deep = self.depth >= _at(self.arena.table["soft_depth"], bundle)
        return deep.to(torch.int32) * (self.arena.modes - 1)

    def _phase(self, breaks: str, index: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
        if self.arena.breaks == 0:
            return torch.zeros_like(counter)
        pairs = _at(self.arena.table[breaks], index)
        spans = pairs[:, :, 1]
        past = counter.unsqueeze(1) - pairs[:, :, 0] + spans
        return torch.minimum(past.clamp(min=0), spans).sum(dim=1, dtype=torch.int32)


def _at(table: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    return table.index_select(0, index)


def _act(action: torch.Tensor, counter: torch.Tensor) -> torch.Tensor:
    return torch.where(action == 0, counter, torch.where(action == 1, counter + 1, action - 2))
