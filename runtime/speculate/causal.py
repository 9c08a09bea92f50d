"""A causal model of `transformers` with a key-value cache of slots, one for each sequence.

Leaves out   which sequence runs when: see engine.py.
Invariants   a sequence is written only by its own slot; what lies past its length is never attended to, so a refused
             draft is forgotten by keeping the length. The logits of a position do not depend on what else is in the
             batch, up to the rounding of the model's dtype.
Arrays       keys, values of a layer [slots, heads, capacity, d], allocated at the first use of a layer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

SHORT = 48
"""Feeds of at most so many tokens share a pass: a token and its draft."""


@dataclass(frozen=True)
class Feed:
    """Tokens to read in one pass.

    Attributes:
        slot: of the sequence.
        start: tokens that the slot holds already.
        tokens: those that follow.
        keep: logits are wanted after the last so many.
    """

    slot: int
    start: int
    tokens: Sequence[int]
    keep: int


class _Rows:
    """What attention sees as its cache for one pass: writes new keys and values, returns those of the rows in it."""

    def __init__(self, pool: dict[int, tuple[torch.Tensor, torch.Tensor]], size: tuple[int, int]) -> None:
        self.pool = pool
        self.slots, self.capacity = size
        self.of: torch.Tensor
        self.row: torch.Tensor
        self.column: torch.Tensor
        self.place: torch.Tensor
        self.width = 0

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if layer_idx not in self.pool:
            shape = (self.slots, keys.shape[1], self.capacity, keys.shape[3])
            self.pool[layer_idx] = (keys.new_zeros(shape), values.new_zeros((*shape[:3], values.shape[3])))
        out = []
        for held, new in zip(self.pool[layer_idx], (keys, values), strict=True):
            held[self.of[self.row], :, self.place] = new[self.row, :, self.column]
            out.append(held[self.of, :, : self.width])
        return out[0], out[1]

    def get_seq_length(self, *_: Any) -> int:
        return 0


class CausalModel:
    """The model that an engine runs.

    Args:
        model: a causal language model of `transformers`; it gets `input_ids`, `position_ids`, a mask of four dimensions
            and a cache.
        slots: sequences at once.
        capacity: tokens of one sequence at most.
        bias: float [V], added to all logits; for experiments with random weights.
    """

    def __init__(self, model: Any, slots: int, capacity: int, bias: np.ndarray | None = None) -> None:
        self.model = model.eval()
        self.slots, self.capacity = slots, capacity
        self.bias = bias
        self.passes = 0
        self._pool: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    async def forward(self, feeds: Sequence[Feed]) -> list[np.ndarray]:
        """Read the tokens of every feed; logits float [keep, V] of each.

        Those of few tokens share a pass; every longer one, a prompt, has its own.
        """
        return await asyncio.to_thread(self._forward, feeds)

    def _forward(self, feeds: Sequence[Feed]) -> list[np.ndarray]:
        short = [n for n, feed in enumerate(feeds) if len(feed.tokens) <= SHORT]
        batches = [short] * bool(short) + [[n] for n in range(len(feeds)) if n not in short]
        out: dict[int, np.ndarray] = {}
        for batch in batches:
            out |= zip(batch, self._pass([feeds[n] for n in batch]), strict=True)
        return [out[n] for n in range(len(feeds))]

    @torch.inference_mode()
    def _pass(self, feeds: Sequence[Feed]) -> list[np.ndarray]:
        self.passes += 1
        length = max(len(feed.tokens) for feed in feeds)
        tokens = torch.tensor([[*feed.tokens, *[0] * (length - len(feed.tokens))] for feed in feeds])
        start = torch.tensor([feed.start for feed in feeds])
        count = torch.tensor([len(feed.tokens) for feed in feeds])
        offset = torch.arange(length)
        rows = _Rows(self._pool, (self.slots, self.capacity))
        rows.of = torch.tensor([feed.slot for feed in feeds])
        rows.row, rows.column = (offset < count[:, None]).nonzero(as_tuple=True)
        rows.place = start[rows.row] + rows.column
        rows.width = int((start + count).max())
        position = torch.minimum(start[:, None] + offset, (start + count - 1)[:, None])
        seen = torch.arange(rows.width) <= position[:, :, None]
        dtype = next(self.model.parameters()).dtype
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)[:, None]
        done = self.model(
            input_ids=tokens, position_ids=position, attention_mask=mask, past_key_values=rows, use_cache=True
        )
        logits = done.logits.double().numpy()
        if self.bias is not None:
            logits = logits + self.bias
        return [logits[n, len(feed.tokens) - feed.keep : len(feed.tokens)] for n, feed in enumerate(feeds)]
