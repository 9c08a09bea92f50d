"""A llama in which many texts share a prompt: its keys and values are kept once, and each text has only its own.

transformers copies the prompt's keys and values for every text, and again at every step; with a thousand tokens of
prompt and 16 texts that takes most of the time. Same logits, up to rounding (tests/test_tooldec.py).

Leaves out   anything but a plain llama in single precision: no bias, no scaled rotary embedding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import embedding, linear, silu


class Llama:
    """The weights of a checkpoint.

    Args:
        model: LlamaForCausalLM of transformers.
    """

    def __init__(self, model: Any) -> None:
        config, weights = model.config, model.state_dict()
        self.hf = model
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.width = weights["model.layers.0.self_attn.k_proj.weight"].shape[0] // self.groups
        self.eps = config.rms_norm_eps
        theta = config.rope_parameters["rope_theta"]
        self.frequencies = 1 / theta ** (torch.arange(0, self.width, 2) / self.width)
        self.embedding, self.norm = weights["model.embed_tokens.weight"], weights["model.norm.weight"]
        self.head = weights.get("lm_head.weight", self.embedding)
        self.layers = []
        for n in range(config.num_hidden_layers):
            w = {key: weights[f"model.layers.{n}.{key}.weight"] for key in _WEIGHTS}
            qkv = torch.cat([w[f"self_attn.{one}_proj"] for one in "qkv"])
            up = torch.cat([w["mlp.gate_proj"], w["mlp.up_proj"]])
            norms = w["input_layernorm"], w["post_attention_layernorm"]
            self.layers.append((qkv, w["self_attn.o_proj"], up, w["mlp.down_proj"], *norms))

    def read(self, tokens: list[int]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Keys and values of a prompt, [groups, tokens, width] for each layer."""
        if not tokens:
            none = torch.empty(self.groups, 0, self.width)
            return [(none, none)] * len(self.layers)
        found = self.hf(torch.tensor([tokens]), use_cache=True, logits_to_keep=1).past_key_values
        return [(layer.keys[0], layer.values[0]) for layer in found.layers]


_WEIGHTS = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj",
    "mlp.down_proj", "input_layernorm", "post_attention_layernorm",
)  # fmt: skip


class Texts:
    """Texts behind one prompt, all as long, those that begin later filled on the left.

    Args:
        prompt: of `Llama.read`.
        missing: of each text, how many tokens on the left are none, int64 [B].
    """

    def __init__(self, llama: Llama, prompt: list[tuple[torch.Tensor, torch.Tensor]], missing: torch.Tensor) -> None:
        self.llama, self.prompt, self.missing, self.length = llama, prompt, missing, 0
        self.own = torch.zeros(len(llama.layers), 2, len(missing), llama.groups, 0, llama.width)

    def keep(self, rows: list[int]) -> None:
        """Go on with these texts only."""
        self.own, self.missing = self.own[:, :, rows], self.missing[rows]

    def step(self, ids: torch.Tensor) -> torch.Tensor:
        """Read tokens [B, T]; the logits behind the last one, [B, V]."""
        return linear(self.states(ids)[:, -1], self.llama.head)

    def states(self, ids: torch.Tensor) -> torch.Tensor:
        """Read tokens [B, T]; what the output embedding meets behind each, [B, T, D]."""
        llama, (rows, count) = self.llama, ids.shape
        before, self.length = self.length, self.length + count
        if self.length > self.own.shape[4]:
            room = list(self.own.shape)
            room[4] = max(32, count)
            self.own = torch.cat([self.own, torch.zeros(room)], 4)
        known = self.prompt[0][0].shape[1]
        at = torch.arange(before, self.length)
        places = (at - self.missing[:, None]).clamp(min=0) + known
        angles = places[..., None] * llama.frequencies
        cos, sin = (torch.cat([one, one], -1)[:, :, None] for one in (angles.cos(), angles.sin()))
        column = torch.arange(self.length)
        hidden = (column > at[:, None]) | (column < self.missing[:, None, None])
        hidden &= column != at[:, None]  # what fills the left sees itself, so that its values are numbers
        hidden = hidden[:, None, :, None].expand(-1, llama.groups, -1, llama.heads // llama.groups, -1)
        hidden = hidden.reshape(rows, llama.groups, -1, self.length)
        x = embedding(ids, llama.embedding)
        for layer, (qkv, out, up, down, first, second) in enumerate(llama.layers):
            parts = linear(self._normed(x, first), qkv).view(rows, count, -1, llama.width)
            q, k, v = parts.split([llama.heads, llama.groups, llama.groups], 2)
            q, k = _turned(q, cos, sin), _turned(k, cos, sin)
            keys, values = self.own[layer]
            keys[:, :, before : self.length], values[:, :, before : self.length] = k.transpose(1, 2), v.transpose(1, 2)
            x = x + linear(self._attended(q, *self.prompt[layer], keys, values, hidden), out)
            gate, more = linear(self._normed(x, second), up).chunk(2, -1)
            x = x + linear(silu(gate) * more, down)
        return self._normed(x, llama.norm)

    def _normed(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.llama.eps) * weight

    def _attended(
        self, q: torch.Tensor, old_k: torch.Tensor, old_v: torch.Tensor, k: torch.Tensor, v: torch.Tensor,
        hidden: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        rows, count, heads, width = q.shape
        groups, known = old_k.shape[:2]
        each = count * heads // groups
        q = q.view(rows, count, groups, -1, width).permute(2, 0, 1, 3, 4).reshape(groups, rows * each, width)
        old = (q @ old_k.transpose(1, 2)).view(groups, rows, each, known).transpose(0, 1)
        new = q.view(groups, rows, each, width).transpose(0, 1) @ k[:, :, : self.length].transpose(2, 3)
        scores = torch.cat([old, new.masked_fill(hidden, -torch.inf)], -1) * width**-0.5
        old, new = scores.softmax(-1).split([known, self.length], -1)
        found = (old.transpose(0, 1).reshape(groups, rows * each, known) @ old_v).view(groups, rows, each, width)
        found = found.transpose(0, 1) + new @ v[:, :, : self.length]
        return found.view(rows, groups, count, -1, width).transpose(1, 2).reshape(rows, count, heads * width)


def _turned(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin
