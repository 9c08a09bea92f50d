"""Let many answers to a prompt attend to one copy of its keys and values.

`Branches` is made of the cache of prompts that were read side by side. From then on the model takes one token a row;
each row goes on from one of the prompts, and only what it wrote itself is kept by row. `register` makes the attention
function known to `transformers`, under NAME.

Leaves out   attention of more than one token, as when prompts are read: `transformers` does that.
Invariants   no window of a sliding attention is shorter than prompt and answer: the caller sees to that.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "shared_prompts"


class _Rows:
    """Which prompt each row goes on from.

    Attributes:
        prompt: int64 [rows];  slot: int64 [rows], its place among the rows of the prompt;  most: of these, at most.
        bias: float32 [prompts, 1, 1, positions], 0, and −∞ at padding.
    """

    def __init__(self, seen: torch.Tensor) -> None:
        self.bias = torch.zeros(seen.shape).masked_fill(seen == 0, -torch.inf)[:, None, None]
        self.select(torch.arange(len(seen)))

    def select(self, prompt: torch.Tensor) -> None:
        """Set the prompt of every row."""
        self.prompt = prompt
        before = (prompt[None] == prompt[:, None]).tril(-1)
        self.slot = before.sum(-1)
        self.most = int(self.slot.max()) + 1


class _Layer(DynamicLayer):
    """Keys and values of what the rows wrote; `before` those of the prompts."""

    def __init__(self, rows: _Rows, keys: torch.Tensor, values: torch.Tensor) -> None:
        super().__init__()
        self.rows, self.before = rows, (keys, values)

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        keys, values = super().update(key_states, value_states, *args, **kwargs)
        keys.layer = self
        return keys, values

    def get_seq_length(self) -> int:
        return int(self.before[0].shape[2]) + super().get_seq_length()

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        if self.is_initialized:
            self.keys, self.values = self.keys[indices], self.values[indices]


class Branches(DynamicCache):
    """The cache of rows that go on from prompts.

    Args:
        read: the cache of the prompts;  seen: int64 [prompts, positions], 0 at padding.
    """

    def __init__(self, read: Any, seen: torch.Tensor) -> None:
        super().__init__()
        self.rows = _Rows(seen)
        self.layers = [_Layer(self.rows, one.keys, one.values) for one in read.layers]

    def select(self, parents: torch.Tensor) -> None:
        """Go on with rows that each continue one of the rows until now: int64 [rows]."""
        self.rows.select(self.rows.prompt[parents])
        self.batch_select_indices(parents)


def _attend(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: float, **other: Any) -> tuple[Any, None]:
    layer = getattr(key, "layer", None)
    if layer is None:
        out, _ = sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **other)
        return out, None
    rows: _Rows = layer.rows
    keys, values = layer.before
    count, heads, _, width = query.shape
    prompts, groups, positions, _ = keys.shape
    every = heads // groups

    def spread(one: torch.Tensor) -> torch.Tensor:  # by row → by prompt, its rows side by side
        wide = one.new_zeros(prompts, rows.most, groups, every, one.shape[-1])
        wide[rows.prompt, rows.slot] = one
        return wide.transpose(1, 2).reshape(prompts, groups, rows.most * every, -1)

    def gathered(wide: torch.Tensor) -> torch.Tensor:  # and back
        split = wide.reshape(prompts, groups, rows.most, every, -1).transpose(1, 2)
        return split[rows.prompt, rows.slot]

    of_group = query.reshape(count, groups, every, width) * scaling
    old = gathered(spread(of_group) @ keys.transpose(2, 3)) + rows.bias[rows.prompt]
    new = of_group @ key.transpose(2, 3)
    weights = torch.softmax(torch.cat([old, new], -1), -1)
    out = gathered(spread(weights[..., :positions]) @ values) + weights[..., positions:] @ value
    return out.reshape(count, 1, heads, width), None


def register() -> str:
    """Make the attention known, and give its name."""
    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    return NAME
