"""A batch of sequences on torch tensors: mask the logits, read the sampled tokens; on any device.

Leaves out   the tables on the device: see arena.py. The step itself: see torch_step.py. One sequence on the host: see
             matcher.py, which this equals bit for bit.
Invariants   every step is a fixed list of tensor operations that write into the same tensors; on a device other than
             the CPU nothing is copied to the host. On the CPU loops stop early at the batch's longest token and chain.
             Only `add_bundle` past the arena's room, `append_` and a `reorder_` to another size make new tensors.
             What a method refuses (DecodeError) has changed no row.
Rows         A row belongs to one bundle, or to none (-1): then its logits are untouched and its tokens ignored.
             A finished row allows only the end-of-turn ids and ignores what is read, so padding may be fed to it.
             A token that is not allowed: with `check` (the default on the CPU) nothing is read by any row and a
             DecodeError names row, token and what was expected. Without, the row is dead: `error` is set, `finished`
             too, and only the end-of-turn ids stay allowed, so that sampling stays defined and loops end.
Arrays       bundle_of_row, state, counter, depth int32 [B]; stack, saved int32 [B, capacity + 1] (the last column takes
             the writes of rows that do not push); register int32 [B, (capacity + 1) x G], as in torch_step.py: G is 0
             until the arena has a bundle with registers; error bool [B]; length, kept, budget int64 [B]: tokens read,
             how many of them can be undone, and how many there may be (0: any number). log: the configurations before
             the last tokens, [history, B, …], that before token n at n % history.
Source       runtime/reference.py.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple, NoReturn, TypeAlias

import torch

from ..errors import DecodeError
from ..format.bundle import Bundle
from ..format.entries import MAX_BUDGET, checked_budget, entry_state
from ..format.ops import FINISHED
from ..format.tables import NEVER
from ..format.width import LogitsWidth
from ..reference import Configuration, Machine, refusal
from . import torch_step as step
from .arena import Arena
from .masks import check_apart, check_logits, mask_logits_
from .torch_step import Config

Rows: TypeAlias = Sequence[int] | torch.Tensor | slice | None
Budget: TypeAlias = int | Sequence[int | None] | None
NO_BUNDLE = -1
PER_ROW = "bundle_of_row state counter depth stack saved register error length kept budget".split()


def check_integers(name: str, given: torch.Tensor, *shapes: tuple[int, ...]) -> None:
    """Refuse what is no tensor, tensors of another shape than these, and numbers that are no integers."""
    if not isinstance(given, torch.Tensor):
        raise DecodeError(f"the {name} do not fit", found=type(given).__name__, expected="a tensor of integers")
    if given.shape not in shapes or given.is_floating_point() or given.is_complex():
        raise DecodeError(
            f"the {name} do not fit",
            found=f"{given.dtype} {list(given.shape)}",
            expected=f"integers {list(shapes[-1])}",
        )


class Draft(NamedTuple):
    """What became of K draft tokens per row; node 0 is where the row stands, node j + 1 is after draft token j.

    Attributes:
        bits: int32 [B, K + 1, words], the allowed tokens at each node; those of the end of turn at one not reached.
        legal: bool [B, K + 1]: the node's token is allowed after its parent, which is legal.
        length: int64 [B]: of a chain, how many tokens from the first on are legal; of a tree, the depth of the deepest
            legal node.
        parents: int64 [B, K + 1], the node before each; 0 of node 0.
        config: where the row would stand at each node, [K + 1, B, …].
    """

    bits: torch.Tensor
    legal: torch.Tensor
    length: torch.Tensor
    parents: torch.Tensor
    config: Config


class _Beginning(NamedTuple):
    """Where the texts of some rows begin: as in the rows, and whether one has a budget."""

    bundle_of_row: torch.Tensor
    state: torch.Tensor
    budget: torch.Tensor
    limited: bool


class Decoder:
    """The state of a batch.

    Args:
        bundles: one bundle for all rows, or a list with one for each row, None for an unconstrained row. With
            ``bundle_of_row`` a list of any length, of the bundles that rows may use. All of one vocabulary.
        batch_size: B.
        device: where the logits are.
        bundle_of_row: of each row, the place of its bundle in the list, -1 for none.
        entry: the name of the entry where the texts begin.
        budget: how many tokens there may be, of all rows or of each (None: any number), as in `Matcher`. Rows get
            budgets by `reset_rows` and `limit_` too; give the first before a graph is captured.
        check: raise on a token that is not allowed; costs a synchronisation on a device. Default: on the CPU only.
        history: how many tokens can be rolled back at most.
        room: the arena's size, in multiples of the bundles given here; bundles that fit can be added without any new
            tensor, also after a graph was captured.
        memory_limit: the most bytes that the tables may take on the device. Bundles that no row is in make place for
            new ones, the one used longest ago first; their numbers may be given again.
        backend: "torch" (tensor operations, any device), "fused" (a Triton kernel), or "auto": fused on a CUDA device
            where Triton is installed.
        logits_width: how many logits the model has. Absent: what the checkpoint said when the vocabulary was made;
            else up to 1,024 columns past the vocabulary are taken for padding, with a warning. More is an error.
    """

    def __init__(
        self,
        bundles: Bundle | Sequence[Bundle | None],
        batch_size: int,
        device: torch.device | str = "cpu",
        *,
        bundle_of_row: Sequence[int] | None = None,
        entry: str = "start",
        budget: Budget = None,
        check: bool | None = None,
        history: int = 16,
        room: float = 1.0,
        memory_limit: int | None = None,
        backend: str = "auto",
        logits_width: int | None = None,
    ) -> None:
        given = list(bundles) if isinstance(bundles, Sequence) and not isinstance(bundles, str) else [bundles]
        some = [bundle for bundle in given if bundle is not None]
        if not some:
            raise DecodeError("a decoder needs a bundle", found="none", expected="at least one")
        for bundle in some:
            if not isinstance(bundle, Bundle):
                raise DecodeError(
                    "no bundle", found=repr(bundle)[:80], expected="a Bundle", hint="Bundle.open gives that of a file"
                )
        if batch_size < 0:
            raise DecodeError("no such batch", found=str(batch_size), expected="a size of 0 or more")
        self.device = torch.device(device)
        self.check = self.device.type == "cpu" if check is None else check
        if backend not in ("auto", "torch", "fused"):
            raise DecodeError("no such backend", found=repr(backend), expected="auto, torch or fused")
        if backend == "fused" and find_spec("triton") is None:
            raise DecodeError("the fused backend needs triton, which is not installed", hint="pip install triton")
        if backend == "auto":
            backend = "fused" if self.device.type == "cuda" and find_spec("triton") is not None else "torch"
        self.backend = backend
        self.arena = Arena(self.device, room, memory_limit)
        self.history = max(0, history)
        self.batch_size = batch_size
        self._on_cpu = self.device.type == "cpu"
        self._logits_width = LogitsWidth(some[0].vocab, logits_width)
        self._logits_width.check_given(some)
        found = iter(self.arena.extend(some))
        numbers = [NO_BUNDLE if bundle is None else next(found) for bundle in given]

        self._make(batch_size)
        if bundle_of_row is not None:
            chosen = list(bundle_of_row)
        elif len(given) == 1:
            chosen = [0] * batch_size
        elif len(given) == batch_size:
            chosen = list(range(batch_size))
        else:
            raise DecodeError(
                "the bundles do not fit the batch",
                found=f"{len(given)} bundles for {batch_size} rows",
                expected="one bundle, or one for each row",
                hint="bundle_of_row says which row has which",
            )
        if len(chosen) != batch_size:
            raise DecodeError("bundle_of_row", found=f"{len(chosen)} rows", expected=f"{batch_size}")
        for n in chosen:
            if not NO_BUNDLE <= n < len(given):
                raise DecodeError("no such bundle", found=str(n), expected=f"-1 to {len(given) - 1}")
        self.limited = False
        self.reset_rows(None, [numbers[n] if n >= 0 else n for n in chosen], entry, budget)
        self.arena.holders.add(self)

    def _make(self, size: int) -> None:
        """All state, of rows without a bundle."""

        def zeros(*shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
            return torch.zeros(shape, dtype=dtype, device=self.device)

        width = self.arena.limits.capacity + 1
        self.batch_size = size
        self.bundle_of_row, self.state, self.counter, self.depth = (zeros(size) for _ in range(4))
        self.bundle_of_row.fill_(NO_BUNDLE)
        self.stack, self.saved = zeros(size, width), zeros(size, width)
        self.register = zeros(size, width * self.arena.limits.registers)
        self.error = zeros(size, dtype=torch.bool)
        self.length, self.kept, self.budget = (zeros(size, dtype=torch.int64) for _ in range(3))
        self.log = Config(*(zeros(max(1, self.history), *part.shape) for part in self._config))
        self._every = torch.arange(size, device=self.device)

    @property
    def _config(self) -> Config:
        return Config(self.state, self.counter, self.depth, self.stack, self.saved, self.register)

    # ------------------------------------------------------------ rows

    def add_bundle(self, bundle: Bundle, grow: bool = True) -> int:
        """Make a bundle available to rows; returns its number.

        Args:
            bundle: of the same vocabulary.
            grow: make new tensors if there is no room (graphs must then be captured again); False: refuse.
        """
        number = self.arena.add(bundle, grow)
        self._widen()
        return number

    def bundles_in_use(self) -> set[int]:
        """The numbers of bundles that some row is in; copies from the device."""
        return set(self.bundle_of_row.tolist()) - {NO_BUNDLE}

    def shift_states_(self, shift: torch.Tensor) -> None:
        """Follow the arena's tables to other numbers of states; see `arena.Holder`."""
        moved = torch.where(self.bundle_of_row >= 0, shift[self.bundle_of_row.clamp(min=0)], 0)
        for part in (self.state, self.log.state):
            part.add_(torch.where(part > 1, moved, 0))

    def _widen(self) -> None:
        """Stacks and registers as the arena's bundles need: it may have grown, by a fork of this decoder too."""
        here, limits = self._config, self.arena.limits
        if limits.capacity + 1 > here.stack.shape[1] or limits.registers > here.registers:
            wide = step.widened(here, limits)
            self.stack, self.saved, self.register = wide.stack, wide.saved, wide.register
            self.log = step.widened(self.log, limits)

    def reset_rows(
        self,
        rows: Rows = None,
        bundle: int | Sequence[int] | None = None,
        entry: str = "start",
        budget: Budget = None,
    ) -> None:
        """Begin new texts.

        Args:
            rows: numbers of rows, or a bool mask; all if None.
            bundle: the number of a bundle or -1, for all or for each of the rows; as it was if None.
            entry: where the texts begin.
            budget: how many tokens there may be, for all or for each of the rows; not looked at in rows without bundle.
        """
        index = self._rows(rows)
        if bundle is None:
            chosen = self.bundle_of_row[index].tolist()
        else:
            chosen = [bundle] * index.numel() if isinstance(bundle, int) else [operator.index(b) for b in bundle]
        if len(chosen) != index.numel():
            raise DecodeError("bundles and rows", found=f"{len(chosen)} bundles", expected=f"{index.numel()}")
        self._begin_(index, self._beginning(chosen, entry, budget))

    def _beginning(self, chosen: list[int], entry: str, budget: Budget) -> _Beginning:
        """Where texts begin in the bundles of these numbers, checked; nothing has changed."""
        start = {NO_BUNDLE: 0}
        for n in sorted(set(chosen) - {NO_BUNDLE}):
            start[n] = self.arena.global_state(n, entry_state(self.arena.bundle(n), entry))
        budgets = list(budget) if isinstance(budget, Sequence) else [budget] * len(chosen)
        if len(budgets) != len(chosen):
            raise DecodeError("budgets and rows", found=f"{len(budgets)} budgets", expected=f"{len(chosen)}")
        limits = [
            checked_budget(self.arena.bundle(n), entry, most) if n >= 0 else 0
            for n, most in zip(chosen, budgets, strict=True)
        ]
        return _Beginning(
            torch.tensor(chosen, dtype=torch.int32, device=self.device),
            torch.tensor([start[n] for n in chosen], dtype=torch.int32, device=self.device),
            torch.tensor(limits, dtype=torch.int64, device=self.device),
            any(limits),
        )

    def _begin_(self, index: torch.Tensor, begin: _Beginning) -> None:
        self._widen()
        self.limited = self.limited or begin.limited
        self.budget[index] = begin.budget
        self.bundle_of_row[index] = begin.bundle_of_row
        self.state[index] = begin.state
        for part in (self.counter, self.depth, self.length, self.kept):
            part[index] = 0
        if self._config.registers:
            self.register[index] = 0
        self.error[index] = False

    def reorder_(self, index: Sequence[int] | torch.Tensor) -> None:
        """Row i becomes what row index[i] was; the batch takes the length of the index."""
        order = self._numbers(index)
        same = order.numel() == self.batch_size
        for name in PER_ROW:
            moved = getattr(self, name).index_select(0, order)
            if same:
                getattr(self, name).copy_(moved)
            else:
                setattr(self, name, moved)
        log = [part.index_select(1, order) for part in self.log]
        if same:
            for part, moved in zip(self.log, log, strict=True):
                part.copy_(moved)
        else:
            self.log = Config(*log)
            self.batch_size = int(order.numel())
            self._every = torch.arange(self.batch_size, device=self.device)

    def append_(self, bundles: Sequence[int], entry: str = "start", budget: Budget = None) -> None:
        """Rows more at the end, each with the number of its bundle or -1."""
        chosen, old = [int(b) for b in bundles], self.batch_size
        begin = self._beginning(chosen, entry, budget)
        if old:
            self.reorder_([*range(old), *([0] * len(chosen))])
        else:
            self._make(len(chosen))
        self._begin_(self._rows(slice(old, None)), begin)

    def fork(self) -> Decoder:
        """An independent copy of all rows; the arena is shared. ``copy`` and ``deepcopy`` make one, too."""
        twin = object.__new__(Decoder)
        twin.__dict__.update(self.__dict__)
        self.arena.holders.add(twin)
        for name in PER_ROW:
            setattr(twin, name, getattr(self, name).clone())
        twin.log = Config(*(part.clone() for part in self.log))
        return twin

    def __copy__(self) -> Decoder:
        return self.fork()

    def __deepcopy__(self, memo: dict[int, object]) -> Decoder:
        return self.fork()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Decoder cannot be pickled: send its bundles and tokens, and use rebuild_")

    def rebuild_(self, tokens: torch.Tensor, lengths: torch.Tensor | None = None, rows: Rows = None) -> None:
        """Begin the rows' texts again and read token histories: after a preemption, or for a row that moved here.

        Args:
            tokens: integers [rows, T], each row's tokens since its entry, padded at the end.
            lengths: int [rows], how many of them count; all if None.
            rows: as for `reset_rows`. Their bundles and budgets stay, and they begin at the entry "start".

        Raises:
            DecodeError: with `check`, a token is not allowed, or there are not so many; no row has changed.
        """
        index = self._rows(rows)
        check_integers("tokens", tokens, (index.numel(), *getattr(tokens, "shape", ())[-1:]))
        most = tokens.shape[1]
        mine = torch.zeros(self.batch_size, dtype=torch.int64, device=self.device)
        mine[index] = most
        if lengths is not None:
            check_integers("lengths", lengths, (), (index.numel(),))
            mine[index] = lengths.to(self.device, torch.int64)
            if self.check and bool(((mine < 0) | (mine > most)).any()):
                raise DecodeError("the lengths do not fit", found=str(lengths.tolist()), expected=f"0 to {most}")
        tokens = tokens.to(self.device)
        self._widen()
        state = *(getattr(self, name) for name in PER_ROW), *self.log
        before = [part.clone() for part in state] if self.check else []
        budget = self.budget.clone()
        self.reset_rows(rows)
        self.budget.copy_(budget)
        full = torch.zeros(self.batch_size, dtype=tokens.dtype, device=self.device)
        for n in range(most):
            full[index] = tokens[:, n]
            reads = mine > n
            after, refused = self._after(self._config, full)
            refused = refused & reads
            if self.check and bool(refused.any()):
                error = self._refusal(full, refused)
                error.place = f"token {n} of {error.place}"
                for part, old in zip(state, before, strict=True):
                    part.copy_(old)
                raise error
            self._take(after, refused, reads)

    def rollback_(self, counts: torch.Tensor | Sequence[int] | int) -> None:
        """Forget the last tokens of each row: at most `history`, and no more than `kept`.

        More than that marks the row's `error` and leaves it dead (with `check`, raises). Finished rows did not read
        what came after their end of turn; rows without bundle read nothing.
        """
        if isinstance(counts, int):
            counts = torch.full_like(self.length, max(-MAX_BUDGET, min(counts, MAX_BUDGET)))
        given = torch.as_tensor(counts)
        check_integers("counts", given, (), (1,), (self.batch_size,))
        counts = torch.where(self.bundle_of_row >= 0, given.to(self.device, torch.int64), 0)
        bad = (counts < 0) | (counts > self.kept)
        if self.check and bool(bad.any()):
            row = int(bad.nonzero()[0])
            raise DecodeError(
                "cannot roll back",
                place=f"row {row} of {self.batch_size}",
                found=f"{int(counts[row])} tokens",
                expected=f"0 to {int(self.kept[row])}",
            )
        back = (counts > 0) & ~bad
        counts = torch.where(back, counts, 0)
        place = (self.length - counts) % max(1, self.history)
        for part, log in zip(self._config, self.log, strict=True):
            chosen = back if part.dim() == 1 else back.unsqueeze(1)
            part.copy_(torch.where(chosen, log[place, self._every], part))
        self.state.copy_(torch.where(bad, 0, self.state))
        self.error.copy_((self.error & ~back) | bad)
        self.length.sub_(counts)
        self.kept.sub_(counts)

    def configuration(self, row: int) -> Configuration:
        """Where a row stands, copied from the device: for the reference, or `Matcher.at`."""
        row = self._row(row)
        number = int(self.bundle_of_row[row])
        if number < 0:
            raise DecodeError("the row has no bundle", found=f"row {row}", expected="a constrained row")
        depth = int(self.depth[row])
        frames = zip(self.stack[row, :depth].tolist(), self.saved[row, :depth].tolist(), strict=True)
        words = self._config.frames()[row, : depth + 1].cpu().numpy()
        *registers, register = (int.from_bytes(frame.tobytes(), "little") for frame in words)
        state = self.arena.local_state(number, int(self.state[row]))
        machine = Machine(self.arena.bundle(number))
        return Configuration(machine, state, int(self.counter[row]), frames, register, registers)

    def limit_(self, left: torch.Tensor | Sequence[int] | int | None, rows: Rows = None) -> None:
        """Set budgets anew: so many tokens may follow; None for any number.

        Args:
            left: integers, of all or of each of the rows. Below a row's `bound` it cannot be kept: with `check` a
                DecodeError, without it the row's masks lead to the end as soon as they can.
            rows: as for `reset_rows`; those without bundle have no budget.
        """
        index = self._rows(rows)
        if left is None:
            self.budget[index] = 0
            return
        if isinstance(left, torch.Tensor):
            given = left
        else:
            several = [left] if isinstance(left, int) else list(left)
            given = torch.tensor([max(-1, min(operator.index(n), MAX_BUDGET)) for n in several], dtype=torch.int64)
        check_integers("budgets", given, (), (1,), (index.numel(),))
        wanted = given.to(self.device, torch.int64).clamp(max=MAX_BUDGET).expand(index.numel())
        if self.check:
            need = self.bound()[index].clamp(min=1)
            short = ((wanted < need) | (need >= NEVER)) & (self.bundle_of_row[index] >= 0)
            if bool(short.any()):
                at = int(short.nonzero()[0])
                raise DecodeError(
                    "the budget is too small",
                    place=f"row {int(index[at])} of {self.batch_size}",
                    found=f"{int(wanted[at])} tokens",
                    expected=f"at least {int(need[at])}" if need[at] < NEVER else "no budget: no bound is known",
                )
        self.limited = True
        self.budget[index] = torch.where(self.bundle_of_row[index] >= 0, self.length[index] + wanted.clamp(min=1), 0)

    def bound(self) -> torch.Tensor:
        """int32 [B]: so many tokens, the end of turn among them, are enough to end; 2 ** 29 or more: none is known."""
        return step.bound(self.arena.table, self.arena.limits, self.bundle_of_row, self._config)

    def forced(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Tokens that come next in each row whatever is sampled: int64 [B, most], padded with -1; and their number.

        Drafts that are always legal: give them to `draft` and `take_` the node after the last. See `Matcher.forced`.
        """
        return step.forced(self.arena.table, self.arena.limits, self.bundle_of_row, self._config, self._left())

    def _left(self, read: torch.Tensor | int = 0) -> torch.Tensor | None:
        """int32 [B]: what budgets leave after `read` tokens more, -1 without one; None if no row ever had one."""
        if not self.limited:
            return None
        left = (self.budget - self.length - read).clamp(min=0, max=torch.iinfo(torch.int32).max)
        return torch.where(self.budget > 0, left, -1).to(torch.int32)

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
        given = torch.as_tensor(rows)
        if given.dtype != torch.bool:
            return self._numbers(given)
        check_integers("marks of rows", given, (self.batch_size,))
        return every[given.to(self.device)]

    def _numbers(self, rows: Sequence[int] | torch.Tensor) -> torch.Tensor:
        """int64 [·] on the device: numbers of rows, checked where that needs no synchronisation."""
        given = torch.as_tensor(rows).reshape(-1)
        if not given.numel():
            return torch.zeros(0, dtype=torch.int64, device=self.device)
        check_integers("numbers of rows", given, given.shape)
        if given.device.type == "cpu":
            for row in (int(given.min()), int(given.max())):
                self._row(row)
        return given.to(self.device, torch.int64)

    def _row(self, row: int) -> int:
        if not 0 <= operator.index(row) < self.batch_size:
            raise DecodeError("no such row", found=str(row), expected=f"0 to {self.batch_size - 1}")
        return operator.index(row)

    # ------------------------------------------------------------ masks

    def fill(self) -> torch.Tensor:
        """int32 [B, ceil(V / 32)]: the allowed tokens as bits; all bits for a row without bundle."""
        return self._bits(self._config, self._left())

    def _bits(self, here: Config, left: torch.Tensor | None) -> torch.Tensor:
        if self.backend == "fused":
            from . import triton_step as fused

            return fused.fill(self.arena, self.bundle_of_row, here, *fused.limits_of(left, self.bundle_of_row))
        return step.mask_bits(self.arena.table, self.arena.limits, self.bundle_of_row, here, self._on_cpu, left)

    def mask_(self, logits: torch.Tensor) -> torch.Tensor:
        """Set the logits of tokens that are not allowed to -inf, in place; returns them.

        Args:
            logits: [B, W], any float dtype of 16 bits or more, any strides; W as `logits_width` says. Columns past the
                vocabulary are never allowed.
        """
        self._check_logits(logits)
        if self.backend == "fused":
            from . import triton_step as fused

            fused.mask_(self.arena, self.bundle_of_row, self._config, self.length, self.budget, logits)
            return logits
        return mask_logits_(logits, self.fill(), self.arena.size, self.bundle_of_row >= 0)

    def check_width(self, logits: torch.Tensor, rows: int) -> None:
        """Refuse logits that are not [rows, W] for a W that the bundles can have; see ``logits_width``."""
        check_logits(logits, rows, self._logits_width, filter(None, self.arena.bundles))

    def _check_logits(self, logits: torch.Tensor) -> None:
        self.check_width(logits, self.batch_size)
        check_apart(logits)

    # ------------------------------------------------------------ tokens

    def advance_(self, tokens: torch.Tensor) -> None:
        """Read one token per row.

        Args:
            tokens: integers [B].

        Raises:
            DecodeError: with `check`, a token is not allowed; no row has changed.
        """
        check_integers("tokens", tokens, (self.batch_size,))
        tokens = tokens.to(self.device)
        if self.backend == "fused" and not self.check:
            from . import triton_step as fused

            held = self.error, self.length, self.kept, self.log, self.history
            fused.advance_(self.arena, self.bundle_of_row, self._config, *held, tokens)
            return
        after, refused = self._after(self._config, tokens)
        if self.check and bool(refused.any()):
            raise self._refusal(tokens, refused)
        self._take(after, refused, None)

    def step_(self, tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Read one token per row, then mask the logits for the next: `advance_` and `mask_` in one call."""
        self._check_logits(logits)
        self.advance_(tokens)
        return self.mask_(logits)

    def _after(self, here: Config, tokens: torch.Tensor) -> tuple[Config, torch.Tensor]:
        if self.backend == "fused":
            from . import triton_step as fused

            after = Config(*(part.clone() for part in here))
            fused.read_(self.arena, self.bundle_of_row, after, tokens)
            return after, (self.bundle_of_row >= 0) & (here.state > 1) & (after.state == 0)
        return step.advance(self.arena.table, self.arena.limits, self.bundle_of_row, here, tokens, self._on_cpu)

    def _take(self, after: Config, refused: torch.Tensor, chosen: torch.Tensor | None) -> None:
        """Log where the rows stand, and stand there."""
        moved = (self.bundle_of_row >= 0) & (self.state > 1)
        if chosen is not None:
            moved = moved & chosen
        if self.history:
            # The slot of a row that does not move may hold the oldest configuration that it can go back to.
            place = self.length % self.history
            for part, log in zip(self._config, self.log, strict=True):
                if not part.numel():  # without registers
                    continue
                write = moved if part.dim() == 1 else moved.unsqueeze(1)
                log.index_put_((place, self._every), torch.where(write, part, log[place, self._every]))
        for part, new in zip(self._config, after, strict=True):
            if part.numel():
                part.copy_(torch.where(moved if part.dim() == 1 else moved.unsqueeze(1), new, part))
        self.error.logical_or_(refused)
        self.length.add_(moved)
        self.kept.add_(moved).clamp_(max=self.history)

    # ------------------------------------------------------------ drafts

    def draft(self, tokens: torch.Tensor, parents: torch.Tensor | None = None) -> Draft:
        """Read K draft tokens per row in one call, without moving; see `Draft`, and `take_`.

        Args:
            tokens: integers [B, K]; one that is not allowed (-1 for none) ends its branch.
            parents: integers [K] or [B, K]: of each token, the number of the draft token before it, always a smaller
                one than its own, -1 for the row itself. A chain if None.
        """
        check_integers("tokens", tokens, (self.batch_size, *getattr(tokens, "shape", ())[-1:]))
        tokens = tokens.to(self.device)
        count = tokens.shape[1]
        if parents is None:
            parents = torch.arange(-1, count - 1, device=self.device)
        check_integers("parents", parents, (count,), (self.batch_size, count))
        before = parents.to(self.device, torch.int64).expand(self.batch_size, count) + 1
        if self.check and bool(((before < 0) | (before > torch.arange(count, device=self.device))).any()):
            raise DecodeError(
                "a parent is no token before its own", found=str(parents.tolist())[:80], expected="-1 to j - 1"
            )
        nodes = [self._config]
        alive = (self.bundle_of_row < 0) | (self.state > 0)
        legal = [alive]
        depth = torch.zeros(self.batch_size, count + 1, dtype=torch.int64, device=self.device)
        bits = [self.fill()]
        for j in range(count):
            held = Config(*(torch.stack(part) for part in zip(*nodes, strict=True)))
            source = before[:, j]
            here = Config(*(part[source, self._every] for part in held))
            after, _ = self._after(here, tokens[:, j])
            fine = torch.stack(legal)[source, self._every] & ((after.state > 0) | (self.bundle_of_row < 0))
            # What follows the end of turn changes no state; the mask there allows its ids only.
            over = (here.state == FINISHED) & (self.bundle_of_row >= 0)
            mask = torch.stack(bits)[source, self._every]
            token = tokens[:, j].to(torch.int64)
            word = mask.gather(1, (token >> 5).clamp(0, mask.shape[1] - 1).unsqueeze(1)).squeeze(1)
            named = (word >> (token & 31) & 1).to(torch.bool) & (token >= 0) & (token < self.arena.size)
            fine = fine & (~over | named)
            legal.append(fine)
            depth[:, j + 1] = torch.where(fine, depth.gather(1, source.unsqueeze(1)).squeeze(1) + 1, 0)
            after = after._replace(state=torch.where(fine, after.state, 0))
            nodes.append(after)
            bits.append(self._bits(after, self._left(depth[:, j + 1])))
        return Draft(
            torch.stack(bits, 1),
            torch.stack(legal, 1),
            depth.amax(1),
            torch.nn.functional.pad(before, (1, 0)),
            Config(*(torch.stack(part) for part in zip(*nodes, strict=True))),
        )

    def take_(self, draft: Draft, node: torch.Tensor) -> None:
        """Move each row to a node of its draft: as if it had read the tokens on the way there.

        Args:
            draft: what `draft` returned, before any other step.
            node: integers [B], 0 to K. A node that is not legal leaves the row dead.
        """
        check_integers("nodes", node, (self.batch_size,))
        rows, count = draft.legal.shape
        if rows != self.batch_size:
            raise DecodeError("a draft of another batch", found=f"{rows} rows", expected=f"{self.batch_size}")
        if node.device.type == "cpu" and node.numel() and not 0 <= int(node.min()) <= int(node.max()) < count:
            raise DecodeError(
                "no such node", found=f"{int(node.min())} to {int(node.max())}", expected=f"0 to {count - 1}"
            )
        here = node.to(self.device, torch.int64)
        path = [here]
        for _ in range(count - 1):
            path.append(draft.parents.gather(1, path[-1].unsqueeze(1)).squeeze(1))
        for upper, lower in zip(path[::-1][:-1], path[::-1][1:], strict=True):
            after = Config(*(part[lower, self._every] for part in draft.config))
            moves = lower != upper
            self._take(after, moves & (self.bundle_of_row >= 0) & (after.state == 0) & (self.state > 1), moves)

    def _refusal(self, tokens: torch.Tensor, refused: torch.Tensor) -> DecodeError:
        rows = refused.nonzero().view(-1).tolist()
        token = int(tokens[rows[0]])
        error = refusal(self.configuration(rows[0]), token, int(self.length[rows[0]]))
        error.place = f"row {rows[0]} of {self.batch_size}, {error.place}"
        if len(rows) > 1:
            error.hint = f"{len(rows)} rows have such a token; none has read its token"
        return error
