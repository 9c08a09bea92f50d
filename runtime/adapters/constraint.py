"""The constraint as a module: a pure function of tokens, logits and state, to be exported together with a model.

Leaves out   state that is kept between calls, checks, rollback: see decoder.py. The step: see torch_step.py.
Invariants   `forward` writes to nothing it is given, reads no tensor's value on the host, and has one graph for all
             inputs of a batch size: it goes through torch.compile(fullgraph=True), torch.export and AOTInductor.
Arrays       state: (bundle, state, counter, depth) int32 [B], (stack, saved) int32 [B, capacity + 1]; see
             torch_step.py; if a bundle has registers also register int32 [B, (capacity + 1) x G]; with budgets also
             left int32 [B], tokens that may still come, -1 for any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from ..device import torch_step as step
from ..device.arena import Arena
from ..device.torch_step import Config
from ..errors import DecodeError
from ..format.bundle import expect_bundles
from ..format.entries import checked_budget, entry_state
from ..format.width import LogitsWidth, least_width

if TYPE_CHECKING:
    from ..format.bundle import Bundle

State = tuple[torch.Tensor, ...]
NO_TOKEN = -1


class Constraint(torch.nn.Module):
    """Bundles as buffers, and one step as `forward`.

    Args:
        bundles: one bundle, or several of one vocabulary that rows may use.
        budgets: whether rows can have a budget of tokens; costs some operations a step.
        logits_width: how many logits the model has; see `Decoder`.
    """

    def __init__(
        self, bundles: Bundle | Sequence[Bundle], budgets: bool = False, logits_width: int | None = None
    ) -> None:
        super().__init__()
        self.budgets = budgets
        expect_bundles(bundles, "Constraint(bundles)", alone=True)
        given = list(bundles) if isinstance(bundles, Sequence) else [bundles]
        if not given:
            raise DecodeError("a constraint needs a bundle", found="none", expected="at least one")
        arena = Arena(torch.device("cpu"))
        self._numbers = numbers = arena.extend(given)
        self.limits = arena.limits
        width = LogitsWidth(given[0].vocab, logits_width)
        width.check_given(given)
        self._least, self._most = max(least_width(b) for b in given), width.most
        self._bundles = given
        self._starts = [
            {name: arena.global_state(n, entry_state(b, name)) for name in b.meta["entry"]}
            for n, b in zip(numbers, given, strict=True)
        ]
        for name, table in arena.table.items():
            # "return" is no name for an attribute of the exported module
            self.register_buffer("t_" + name, table, persistent=True)

    def start(
        self, bundle_of_row: Sequence[int], entry: str = "start", budget: Sequence[int | None] | None = None
    ) -> State:
        """The state of rows that have read nothing, each under the bundle of that number, or -1 for none.

        Args:
            bundle_of_row: of each row.
            entry: where the texts begin.
            budget: of each row, see `Matcher`; only for a module with budgets.
        """
        for n in bundle_of_row:
            if n < -1 or n >= len(self._starts) or n >= 0 and entry not in self._starts[n]:
                raise DecodeError("no such bundle or entry", found=f"{n}, {entry!r}", expected=str(self._starts))
        device = self.t_state_cell.device
        size, width = len(bundle_of_row), self.limits.capacity + 1

        def ints(values: Sequence[int]) -> torch.Tensor:
            return torch.tensor(values, dtype=torch.int32, device=device)

        first = ints([self._starts[n][entry] if n >= 0 else 0 for n in bundle_of_row])
        zeros = [torch.zeros(shape, dtype=torch.int32, device=device) for shape in ((size,), (size,))]
        stacks = [torch.zeros((size, width), dtype=torch.int32, device=device) for _ in range(2)]
        numbers = ints([self._numbers[n] if n >= 0 else n for n in bundle_of_row])
        found: State = (numbers, first, zeros[0], zeros[1], stacks[0], stacks[1])
        if self.limits.registers:
            found = *found, torch.zeros((size, width * self.limits.registers), dtype=torch.int32, device=device)
        if budget is not None and (not self.budgets or len(budget) != size):
            raise DecodeError(
                "budgets and rows", found=f"{len(budget)} budgets", expected=f"{size}, of a module with budgets"
            )
        if not self.budgets:
            return found
        wanted = [None] * size if budget is None else budget
        limits = [
            checked_budget(self._bundles[n], entry, most) if n >= 0 else 0
            for n, most in zip(bundle_of_row, wanted, strict=True)
        ]
        return *found, ints([min(limit, torch.iinfo(torch.int32).max) or -1 for limit in limits])

    def forward(self, logits: torch.Tensor, tokens: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Read the tokens sampled last, then mask.

        Args:
            logits: floats [B, W], for the token after those; W as `logits_width` says.
            tokens: int64 [B]; -1 where none was sampled yet.
            state: of `start` or of the call before.

        Returns:
            The logits, with -inf where a token is not allowed, and the state. A row whose token was not allowed is dead
            (state 0): it allows the end of turn only.
        """
        if not self._least <= logits.shape[1] <= self._most:
            raise DecodeError(
                "the logits do not fit the bundles' tokenizer",
                found=f"{logits.shape[1]} logits",
                expected=f"{self._least} to {self._most}",
                hint="logits_width says how many the model has",
            )
        t = {name[2:]: buffer for name, buffer in self.named_buffers()}
        bundle, register = state[0], state[6] if self.limits.registers else state[4].new_zeros((state[4].shape[0], 0))
        here = Config._make((*state[1:6], register))
        after, _ = step.advance(t, self.limits, bundle, here, tokens)
        stays = tokens == NO_TOKEN
        config = Config(
            *(
                torch.where(stays if old.dim() == 1 else stays.unsqueeze(1), old, new)
                for old, new in zip(here, after, strict=True)
            )
        )
        rest: State = ()
        if self.budgets:
            # Tokens count in rows that read them: not in those that are over.
            counts = (here.state > 1) & ~stays & (state[-1] > 0)
            rest = (state[-1] - counts.to(torch.int32),)
        bits = step.mask_bits(t, self.limits, bundle, config, left=rest[0] if rest else None)
        place = torch.arange(32, dtype=torch.int32, device=bits.device)
        size = min(self.limits.size, logits.shape[1])
        allowed = (bits.unsqueeze(2) >> place & 1).to(torch.bool).flatten(1)[:, :size]
        over = logits.shape[1] - self.limits.size
        if over > 0:
            allowed = torch.cat([allowed, (bundle < 0).unsqueeze(1).expand(-1, over)], dim=1)
        parts = config if self.limits.registers else config[:-1]
        return torch.where(allowed, logits, -torch.inf), (bundle, *parts, *rest)
