"""toolc as an engine of the shared maskbench.py harness.

Leaves out   the harness: it makes engines, tokenizes the instances and reads the bits.
Invariants   the vocabulary is prepared once per process, in ``make``; ``compile`` times the schema alone.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.pipeline import Options, compile_schema
from toolc.runtime import Bundle, Matcher, Vocab


@functools.cache
def vocab_of(tokenizer_path: str, eos_token_id: int) -> Vocab:
    """The vocabulary of a tokenizer, from the cache on disk where it is there."""
    return load_vocab(tokenizer_path, (eos_token_id,))


class Engine:
    """Compiles, loads and steps; see the harness for what each method is to do."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab

    def compile(self, schema: Any, path: str) -> None:
        compile_schema(schema, self.vocab, options=Options()).write(path)

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
