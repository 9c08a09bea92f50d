"""Tokens per second of a small model with random weights, with the constraint and without.

    python -m benchmarks.model tools_specs/weather.json [--device cuda] [--batch 16] [--layers 4] [--hidden 512]

A llama of `transformers` with a static cache, sampling by argmax over logits with noise. A row that finished goes on
with the end of turn, so both runs have the same steps. Rounds with and without take turns, and the medians are
compared. On the CPU one thread works, and its processor time is what counts, since others may share the machine.
Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from typing import Any

import torch

from toolc.compiler import compile_tools
from toolc.runtime import Bundle, Decoder


def llama(size: int, layers: int, hidden: int, positions: int, device: torch.device, dtype: torch.dtype) -> Any:
    """A llama with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=hidden,
        intermediate_size=hidden * 3,
        num_hidden_layers=layers,
        num_attention_heads=max(1, hidden // 64),
        num_key_value_heads=max(1, hidden // 128),
        max_position_embeddings=positions,
    )
    return LlamaForCausalLM(config).to(device, dtype).eval()


class Loop:
    """The steps of a decoding loop: model, mask, sample, advance.

    Args:
        model: of `llama`; bundle: the constraint, None for none.
        batch: rows; positions: steps until the cache is full and the loop begins again.
    """

    def __init__(self, model: Any, bundle: Bundle | None, batch: int, positions: int) -> None:
        from transformers import StaticCache

        self.model, self.batch, self.positions = model, batch, positions
        self.device = model.device
        self.cache = StaticCache(config=model.config, max_cache_len=positions)
        self.decoder = None if bundle is None else Decoder(bundle, batch, self.device, check=False)
        self.tokens = torch.zeros(batch, dtype=torch.int64, device=self.device)
        self.place = torch.zeros(1, dtype=torch.int64, device=self.device)

    def begin(self) -> None:
        """New texts, an empty cache."""
        self.cache.reset()
        self.place.zero_()
        if self.decoder is not None:
            self.decoder.reset_rows()

    def step(self) -> None:
        """One token per row; nothing is read back from the device."""
        out = self.model(
            self.tokens.unsqueeze(1), past_key_values=self.cache, position_ids=self.place.expand(self.batch, 1)
        )
        logits = out.logits[:, -1].float()
        logits = logits + torch.rand_like(logits)
        if self.decoder is not None:
            self.decoder.mask_(logits)
        self.tokens.copy_(logits.argmax(-1))
        if self.decoder is not None:
            self.decoder.advance_(self.tokens)
        self.place.add_(1)


def seconds(loop: Loop) -> float:
    """One round of steps, timed: on the clock on a device, in processor time on the CPU."""
    clock = time.perf_counter if loop.device.type == "cuda" else time.process_time
    with torch.inference_mode():
        loop.begin()
        loop.step()
        if loop.device.type == "cuda":
            torch.cuda.synchronize()
        begin = clock()
        for _ in range(loop.positions - 1):
            loop.step()
        if loop.device.type == "cuda":
            torch.cuda.synchronize()
        return clock() - begin


def compare(model: Any, bundle: Bundle, batch: int, positions: int, rounds: int) -> dict[str, float]:
    """Tokens per second of both loops, and what the constraint costs."""
    loops = {"without": Loop(model, None, batch, positions), "with": Loop(model, bundle, batch, positions)}
    for loop in loops.values():
        seconds(loop)
    spent: dict[str, list[float]] = {name: [] for name in loops}
    for _ in range(rounds):
        for name, loop in loops.items():
            spent[name].append(seconds(loop))
    median = {name: statistics.median(times) for name, times in spent.items()}
    tokens = batch * (positions - 1)
    return {
        "tokens_per_s_without": round(tokens / median["without"], 1),
        "tokens_per_s_with": round(tokens / median["with"], 1),
        "loss_percent": round(100 * (1 - median["without"] / median["with"]), 2),
        "constraint_us_per_step": round((median["with"] - median["without"]) / (positions - 1) * 1e6, 1),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec")
    parser.add_argument("--tokenizer", help="a tokenizer file; the built-in one if absent")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    a = parser.parse_args(arguments)
    bundle = compile_tools(a.spec, a.tokenizer).bundle
    device = torch.device(a.device)
    torch.set_num_threads(1)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    model = llama(bundle.vocab.size, a.layers, a.hidden, a.steps, device, dtype)
    about = {
        "device": str(device),
        "batch": a.batch,
        "vocabulary": bundle.vocab.size,
        "threads": torch.get_num_threads(),
    }
    about["parameters"] = sum(p.numel() for p in model.parameters())
    print(json.dumps({**about, **compare(model, bundle, a.batch, a.steps, a.rounds)}))


if __name__ == "__main__":
    main()
