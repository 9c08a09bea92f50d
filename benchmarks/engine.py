"""toolc as an engine of the shared harnesses maskbench.py, batch.py and tools.py.

Leaves out   the harnesses: they make engines, tokenize the instances and read the bits.
Invariants   the vocabulary is prepared once per process, in ``make``; ``compile`` times the schema alone, on one core.
"""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

from toolc.compiler.budget import Budget
from toolc.compiler.compiled import Compiled
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.options import Options
from toolc.compiler.pipeline import compile_schema, compile_spec
from toolc.compiler.specs import read_spec
from toolc.runtime import BatchMatcher, Bundle, Matcher, ToolcError, Vocab

SECONDS = 25.0  # the harness kills an engine at 30


def end_of(tokenizer: Any) -> int:
    """The id that ends a turn, of a tokenizer.json that does not say so: the first of the usual names that is there."""
    names = ("<|eot_id|>", "<|im_end|>", "</s>")
    return next(found for name in names if (found := tokenizer.token_to_id(name)) is not None)


@functools.cache
def vocab_of(tokenizer_path: str, eos_token_id: int) -> Vocab:
    """The vocabulary of a tokenizer, from the cache on disk where it is there."""
    return load_vocab(tokenizer_path, (eos_token_id,))


def compile_tools(tokenizer_path: str, eos_token_id: int, tools: list[Any]) -> Compiled:
    """Compile an OpenAI tools list in the format of Hermes and Qwen, for tools.py; named tools get no entry there."""
    options = Options(protocol="hermes", named=False, budget=Budget(seconds=None), jobs=1)
    return compile_spec(read_spec(tools), vocab_of(tokenizer_path, eos_token_id), options=options)


class Engine:
    """Compiles, loads and steps; see the harness for what each method is to do."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    def compile(self, schema: Any, path: str, key_order: str = "declared") -> None:
        compile_schema(
            schema, self.vocab, options=Options(budget=Budget(seconds=SECONDS), jobs=1, key_order=key_order)
        ).write(path)

    def load(self, path: str) -> None:
        self.matcher = Matcher(Bundle.open(path, self.vocab))
        self.fill, self.advance, self.reset = self.matcher.fill, self.matcher.advance, self.matcher.reset

    def reset(self) -> None:
        raise RuntimeError("load a bundle first")

    def fill(self, mask: np.ndarray) -> None:
        raise RuntimeError("load a bundle first")

    def advance(self, token_id: int) -> None:
        raise RuntimeError("load a bundle first")


def make(tokenizer_path: str, eos_token_id: int) -> Engine:
    """A fresh engine for a tokenizer.json and the id that ends a turn."""
    return Engine(vocab_of(tokenizer_path, eos_token_id))


# ---------------------------------------------------------------- batch.py


_bundles: dict[tuple[str, int, str], Bundle | None] = {}


def bundle_of(tokenizer_path: str, eos_token_id: int, schema: Any) -> Bundle | None:
    """The bundle of a schema, compiled once per process; None if it does not compile."""
    key = (tokenizer_path, eos_token_id, json.dumps(schema))
    if key not in _bundles:
        try:
            _bundles[key] = compile_schema(schema, vocab_of(tokenizer_path, eos_token_id), options=Options()).bundle
        except ToolcError:
            _bundles[key] = None
    return _bundles[key]


def accepts(tokenizer_path: str, eos_token_id: int, schema: Any, ids: list[int]) -> bool:
    """The schema compiles, and allows these tokens."""
    bundle = bundle_of(tokenizer_path, eos_token_id, schema)
    if bundle is None:
        return False
    matcher = Matcher(bundle)
    return all(matcher.try_advance(token) for token in ids)


class Batch:
    """One row per schema; a step fills all masks and reads a token per row."""

    def __init__(self, bundles: list[Bundle | None]) -> None:
        self.matcher = BatchMatcher(bundles)
        self.masks = self.matcher.new_masks()

    def step(self, token_ids: list[int]) -> None:
        self.matcher.fill(self.masks)
        self.matcher.advance(token_ids)


def make_batch(tokenizer_path: str, eos_token_id: int, schemas: list[Any]) -> Batch:
    """A fresh batch of schemas that compile."""
    return Batch([bundle_of(tokenizer_path, eos_token_id, schema) for schema in schemas])
