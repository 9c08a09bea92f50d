"""A step of a batch on the CPU with the masks applied to fp32 logits: fill, apply, advance; beside the peers.

    python benchmarks/batch_logits.py ENGINE --cases ../shared/data/maskbench_dev.jsonl \
        --tokenizer ../shared/tokenizers/llama3.json [--sizes 1,16,256] [--steps 20]

ENGINE: toolc, xgr (XGrammar's BatchGrammarMatcher and its own kernel on logits), llg (llguidance's executor and its
torch kernel, compiled). One thread. Each row is a valid instance of another schema, of at most 64, cut to the steps.
Prints one JSON line: median microseconds per step with logits; of applying the masks alone; and of a step of which only
the bits are made (`bits_us`), without logits.

Leaves out   devices: gpu_peers.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

# Fill, apply, advance.
Trace = tuple[Any, list[int]]  # schema, tokens
Parts = tuple[Callable[[], None], Callable[[torch.Tensor], object], Callable[[list[int]], object]]


class Toolc:
    def __init__(self, path: str, size: int, eos: int) -> None:
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        from benchmarks import engine
        from toolc.runtime.device.masks import mask_logits_

        self.engine, self.place, self.mask_logits_ = engine, (path, eos), mask_logits_

    def accepts(self, schema: Any, ids: list[int]) -> bool:
        return self.engine.accepts(*self.place, schema, ids)

    def start(self, schemas: list[Any]) -> Parts:
        batch = self.engine.make_batch(*self.place, schemas)
        matcher, bits = batch.matcher, torch.from_numpy(batch.masks.view(np.int32))
        every = torch.ones(len(schemas), dtype=torch.bool)
        size = matcher.vocab.size
        return (
            lambda: matcher.fill(batch.masks),
            lambda logits: self.mask_logits_(logits, bits, size, every),
            matcher.advance,
        )


class XGrammar:
    def __init__(self, path: str, size: int, eos: int) -> None:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        self.xgr, self.size = xgrammar, size
        fast = PreTrainedTokenizerFast(tokenizer_file=path, eos_token=Tokenizer.from_file(path).id_to_token(eos))
        info = xgrammar.TokenizerInfo.from_huggingface(fast, vocab_size=size, stop_token_ids=[eos])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self.batch = xgrammar.BatchGrammarMatcher(max_threads=1)

    def matcher(self, schema: Any) -> Any:
        text = json.dumps(schema)
        return self.xgr.GrammarMatcher(self.compiler.compile_json_schema(text, any_whitespace=True, strict_mode=True))

    def accepts(self, schema: Any, ids: list[int]) -> bool:
        try:
            matcher = self.matcher(schema)
        except Exception as error:  # its refusals are of many types; which cases it takes is what is asked
            print(f"# left out: {type(error).__name__}", file=sys.stderr)
            return False
        return all(matcher.accept_token(token) for token in ids)

    def start(self, schemas: list[Any]) -> Parts:
        matchers = [self.matcher(schema) for schema in schemas]
        mask = self.xgr.allocate_token_bitmask(len(schemas), self.size)
        return (
            lambda: self.batch.batch_fill_next_token_bitmask(matchers, mask),
            lambda logits: self.xgr.apply_token_bitmask_inplace(logits, mask),
            lambda tokens: self.xgr.BatchGrammarMatcher.batch_accept_token(matchers, tokens),
        )


class LLGuidance:
    def __init__(self, path: str, size: int, eos: int) -> None:
        import llguidance
        from llguidance import torch as kernels

        self.llg, self.kernels, self.size = llguidance, kernels, size
        self.tokenizer = llguidance.LLTokenizer(Path(path).read_text(), eos_token=eos)
        self.executor = llguidance.LLExecutor(num_threads=1)

    def matcher(self, schema: Any) -> Any:
        return self.llg.LLMatcher(self.tokenizer, json.dumps({"grammars": [{"json_schema": schema}]}))

    def accepts(self, schema: Any, ids: list[int]) -> bool:
        matcher = self.matcher(schema)
        return not matcher.is_error() and matcher.try_consume_tokens(ids) == len(ids)

    def start(self, schemas: list[Any]) -> Parts:
        matchers = [self.matcher(schema) for schema in schemas]
        mask = self.kernels.allocate_token_bitmask(len(schemas), self.size)
        pairs = [(matcher, row) for row, matcher in enumerate(matchers)]
        return (
            lambda: self.kernels.fill_next_token_bitmask_par(self.executor, pairs, mask),
            lambda logits: self.kernels.apply_token_bitmask_inplace(logits, mask),
            lambda tokens: [matcher.consume_token(token) for matcher, token in zip(matchers, tokens, strict=True)],
        )


ENGINES: dict[str, Callable[[str, int, int], Any]] = {"toolc": Toolc, "xgr": XGrammar, "llg": LLGuidance}


def traces(engine: Any, cases: str, tokenizer: Tokenizer, steps: int, most: int = 64) -> list[Trace]:
    """Valid instances of at least so many tokens, each cut to them; the first of each case that the engine takes."""
    found: list[Trace] = []
    with open(cases) as lines:
        for line in lines:
            case = json.loads(line)
            good = next((test["data"] for test in case["tests"] if test["valid"]), None)
            if good is None or len(found) == most:
                continue
            ids = tokenizer.encode(json.dumps(good, ensure_ascii=False), add_special_tokens=False).ids
            if len(ids) >= steps and engine.accepts(case["schema"], ids):
                found.append((case["schema"], ids[:steps]))
    return found


def timed(engine: Any, data: list[Trace], rows: int, steps: int, width: int) -> tuple[float, float]:
    """Median microseconds of a step, and of applying in it; the best of three runs.

    Args:
        width: of the logits; 0: none are applied.
    """
    chosen = [data[i % len(data)] for i in range(rows)]
    logits = torch.zeros(rows, width)
    runs = []
    for _ in range(3):
        fill, apply, advance = engine.start([schema for schema, _ in chosen])
        whole, applied = [], []
        for k in range(steps):
            tokens = [ids[k] for _, ids in chosen]
            logits.zero_()
            begin = time.perf_counter()
            fill()
            filled = time.perf_counter()
            if width:
                apply(logits)
            done = time.perf_counter()
            advance(tokens)
            whole.append((time.perf_counter() - begin) * 1e6)
            applied.append((done - filled) * 1e6)
        runs.append((float(np.median(whole)), float(np.median(applied))))
    return min(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("--cases", required=True)
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--sizes", default="1,16,256")
    parser.add_argument("--steps", type=int, default=20)
    a = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer = Tokenizer.from_file(a.tokenizer)
    size = tokenizer.get_vocab_size()
    eos = next(i for n in ("<|eot_id|>", "<|im_end|>", "</s>") if (i := tokenizer.token_to_id(n)) is not None)
    engine = ENGINES[a.engine](a.tokenizer, size, eos)
    data = traces(engine, a.cases, tokenizer, a.steps)
    found: dict[str, object] = {"engine": a.engine, "traces": len(data)}
    for rows in map(int, a.sizes.split(",")):
        step, apply = timed(engine, data, rows, a.steps, size)
        bits, _ = timed(engine, data, rows, a.steps, 0)
        found[f"B{rows}"] = {"step_us": round(step, 1), "apply_us": round(apply, 1), "bits_us": round(bits, 1)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
