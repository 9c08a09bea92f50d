"""A step on a GPU beside the peers: from tokens that were sampled on the device to masked logits on the device.

    python -m benchmarks.gpu_peers --tokenizer ../shared/tokenizers/llama3.json [--bundle tree.toolc] [--threads 16]

Each row writes a tree of tools_specs/tree_schema.json, token by token. toolc reads the tokens and masks the logits
on the device. The peers read the tokens on the host, advance their matchers and fill bit masks with as many threads
as they are given, copy the masks to the device, from pinned memory, and mask with kernels of their own. Two times
in microseconds, medians over the steps: until the logits are masked (`step`), and until the host is free (`host`).
`toolc graph` is a CUDA graph of the step. Prints JSON lines. `--device cpu` tries the code; its figures mean nothing.

Leaves out   model and sampling, which engines overlap with the host's work as far as they can: see gpu.py, model.py.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer

from toolc.runtime import Bundle, Decoder

SPEC = Path(__file__).resolve().parent.parent / "tools_specs" / "tree_schema.json"
# Reads the tokens of a step, int64 [B] on the device, and masks logits [B, V] there.
Step = Callable[[torch.Tensor, torch.Tensor], object]


def tree(pick: random.Random, depth: int) -> dict[str, Any]:
    """A value of the schema, of some 40 to 500 tokens."""
    word = "".join(pick.choice("aeiou lmnrst") for _ in range(pick.randint(4, 16)))
    node: dict[str, Any] = {"label": word, "weight": pick.randrange(100)}
    if depth:
        node["children"] = [tree(pick, depth - 1) for _ in range(pick.randint(2, 3))]
    return node


def texts(tokenizer: Tokenizer, count: int, steps: int) -> list[list[int]]:
    """The first `steps` tokens of random trees."""
    pick, found = random.Random(0), []
    while len(found) < count:
        ids = tokenizer.encode(json.dumps(tree(pick, 3)), add_special_tokens=False).ids
        if len(ids) >= steps:
            found.append(ids[:steps])
    return found


class Toolc:
    """The decoder; or its step as a CUDA graph."""

    def __init__(self, bundle: Bundle, device: torch.device, graph: bool) -> None:
        self.bundle, self.device, self.graph = bundle, device, graph

    def start(self, rows: int, logits: torch.Tensor) -> Step:
        decoder = Decoder(self.bundle, rows, self.device, check=False)
        if not self.graph:
            return decoder.step_
        from .gpu import captured

        token = torch.zeros(rows, dtype=torch.int64, device=self.device)
        graph = captured(lambda: decoder.step_(token, logits))
        decoder.reset_rows()

        def replay(tokens: torch.Tensor, _: torch.Tensor) -> None:
            token.copy_(tokens)
            graph.replay()

        return replay


class XGrammar:
    def __init__(self, path: str, tokenizer: Tokenizer, eos: int, threads: int, device: torch.device) -> None:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        self.xgr, self.size, self.threads, self.device = xgrammar, tokenizer.get_vocab_size(), threads, device
        fast = PreTrainedTokenizerFast(tokenizer_file=path, eos_token=tokenizer.id_to_token(eos))
        info = xgrammar.TokenizerInfo.from_huggingface(fast, vocab_size=self.size, stop_token_ids=[eos])
        self.grammar = xgrammar.GrammarCompiler(info).compile_json_schema(SPEC.read_text(), strict_mode=True)

    def start(self, rows: int, logits: torch.Tensor) -> Step:
        matchers = [self.xgr.GrammarMatcher(self.grammar) for _ in range(rows)]
        batch = self.xgr.BatchGrammarMatcher(max_threads=self.threads)
        mask = self.xgr.allocate_token_bitmask(rows, self.size)
        mask = mask.pin_memory() if self.device.type == "cuda" else mask

        def step(tokens: torch.Tensor, logits: torch.Tensor) -> None:
            taken = self.xgr.BatchGrammarMatcher.batch_accept_token(matchers, tokens.tolist())
            assert all(taken), "XGrammar refuses a token"
            batch.batch_fill_next_token_bitmask(matchers, mask)
            self.xgr.apply_token_bitmask_inplace(logits, mask.to(self.device, non_blocking=True))

        return step


class Llguidance:
    def __init__(self, path: str, tokenizer: Tokenizer, eos: int, threads: int, device: torch.device) -> None:
        import llguidance
        import llguidance.torch as on_torch

        self.llg, self.torch, self.size, self.device = llguidance, on_torch, tokenizer.get_vocab_size(), device
        self.executor = llguidance.LLExecutor(num_threads=threads)
        self.tokenizer = llguidance.LLTokenizer(Path(path).read_text("utf-8"), eos_token=eos)
        self.grammar = json.dumps({"grammars": [{"json_schema": json.loads(SPEC.read_text())}]})

    def start(self, rows: int, logits: torch.Tensor) -> Step:
        matchers = [self.llg.LLMatcher(self.tokenizer, self.grammar) for _ in range(rows)]
        mask = self.torch.allocate_token_bitmask(rows, self.size)
        pairs = [(matcher, row) for row, matcher in enumerate(matchers)]

        def step(tokens: torch.Tensor, logits: torch.Tensor) -> None:
            for matcher, token in zip(matchers, tokens.tolist(), strict=True):
                assert matcher.consume_token(token), "llguidance refuses a token"
            self.torch.fill_next_token_bitmask_par(self.executor, pairs, mask)
            self.torch.apply_token_bitmask_inplace(logits, mask.to(self.device, non_blocking=True))

        return step


def measure(engine: Any, given: torch.Tensor, logits: torch.Tensor) -> dict[str, float]:
    """Medians over the steps of a second round; the first compiles kernels and fills caches."""
    cuda = logits.device.type == "cuda"
    spent: list[tuple[float, float]] = []
    for _ in range(2):
        step = engine.start(given.shape[1], logits)
        spent = []
        for tokens in given:
            if cuda:
                torch.cuda.synchronize()
            begin = time.perf_counter()
            step(tokens, logits)
            free = time.perf_counter()
            if cuda:
                torch.cuda.synchronize()
            spent.append((time.perf_counter() - begin, free - begin))
    whole, host = (statistics.median(times) * 1e6 for times in zip(*spent, strict=True))
    return {"step_us": round(whole, 1), "host_us": round(host, 1), "most_us": round(max(spent)[0] * 1e6, 1)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--bundle", help="tools_specs/tree_schema.json, compiled for it; compiled here if absent")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--engines", nargs="+", default=["toolc", "toolc graph", "xgr", "llg"])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--steps", type=int, default=96)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the peers")
    a = parser.parse_args(arguments)
    device = torch.device(a.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here; --device cpu tries the code")
    from .engine import bundle_of, end_of

    tokenizer = Tokenizer.from_file(a.tokenizer)
    eos, size = end_of(tokenizer), tokenizer.get_vocab_size()
    bundle = Bundle.open(a.bundle) if a.bundle else bundle_of(a.tokenizer, eos, json.loads(SPEC.read_text()))
    assert bundle is not None and bundle.vocab.size == size, "the bundle is of another tokenizer"
    peer = a.tokenizer, tokenizer, eos, a.threads, device
    make: dict[str, Callable[[], Any]] = {
        "toolc": lambda: Toolc(bundle, device, False),
        "toolc graph": lambda: Toolc(bundle, device, True),
        "xgr": lambda: XGrammar(*peer),
        "llg": lambda: Llguidance(*peer),
    }
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    print(json.dumps({"device": name, "torch": torch.__version__, "vocabulary": size, "threads": a.threads}))
    written = texts(tokenizer, 32, a.steps)
    for label in a.engines:
        engine = make[label]()
        for batch in a.batches:
            given = torch.tensor([written[row % len(written)] for row in range(batch)], device=device).T.contiguous()
            logits = torch.zeros(batch, size, dtype=torch.bfloat16, device=device)
            print(json.dumps({"engine": label, "batch": batch, **measure(engine, given, logits)}), flush=True)


if __name__ == "__main__":
    main()
