"""Greedy decoding of many texts behind one prompt, which is read once; each text has its own mask and its own rules.

    for row in decode(model, prompt, rows, batch=16): ...

A row chooses its tokens (`Row.choose`) and looks at what it wrote after each (`Row.look`): it may end, or go on with
tokens that the model did not choose, as the result of a call. So arms of an experiment differ in nothing but the row.

Leaves out   sampling; rows whose prompts differ (one call for each prompt).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from toolc.runtime import Matcher

from .llama import Llama, Texts

PROMPTS = 16
"""Prompts that are kept: one for each function of FuncQA, and some."""


class Model:
    """A checkpoint of transformers, in single precision.

    Args:
        folder: of the checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.folder = folder
        self.llama = Llama(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval())
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.ends = {0, self.tokenizer.eos_token_id}
        self._prompts: dict[str, list[tuple[torch.Tensor, torch.Tensor]]] = {}

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, special ones among them where it spells some."""
        found: list[int] = self.tokenizer(text, add_special_tokens=False).input_ids
        return found

    @torch.inference_mode()
    def read(self, prompt: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Keys and values of a prompt, see `Llama.read`; those of the last prompts are kept."""
        found = self._prompts.pop(prompt, None)
        self._prompts[prompt] = self.llama.read(self.encode(prompt)) if found is None else found
        if len(self._prompts) > PROMPTS:
            del self._prompts[next(iter(self._prompts))]
        return self._prompts[prompt]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=False, clean_up_tokenization_spaces=False))


class Row:
    """One text.

    Args:
        model: reads and writes tokens.
        start: what stands behind the prompt that all rows share; not empty.
        matcher: what the text is constrained by; None for nothing.
        budget: most tokens that the model writes.

    Attributes:
        ids: the tokens behind ``start``.
        tokens: how many the model chose.
        seconds: its share of the time.
        is_done: nothing more is written.
    """

    def __init__(self, model: Model, start: str, matcher: Matcher | None = None, budget: int = 100) -> None:
        self.model, self.matcher, self.budget = model, matcher, budget
        self.start = model.encode(start)
        self.ids: list[int] = []
        self.pending: list[int] = []
        self.forbidden: set[int] = set()
        self.tokens = 0
        self.seconds = 0.0
        self.is_done = False

    @property
    def text(self) -> str:
        """What was written so far."""
        return self.model.decode(self.ids)

    def choose(self, logits: torch.Tensor) -> int:
        """The next token, which is read."""
        if self.pending:
            token = self.pending.pop(0)
            self.ids.append(token)
            return token
        token = self._best(logits)
        self.tokens += 1
        if token in self.model.ends:
            self.end()
            if self.pending:  # the text goes on with what was inserted, and not with its end
                token = self.pending.pop(0)
                self.ids.append(token)
        else:
            self.ids.append(token)
            self.look()
        if self.tokens >= self.budget and not self.pending and not self.is_done:
            self.end()
            self.is_done = not self.pending
        return token

    def _best(self, logits: torch.Tensor) -> int:
        token = self.likeliest(logits, self.matcher)
        if self.matcher is not None:
            self.matcher.advance(token)
        return token

    def likeliest(self, logits: torch.Tensor, matcher: Matcher | None) -> int:
        """The likeliest token that is allowed."""
        scores = logits.clone()
        if matcher is not None:
            bits = np.empty(matcher.bundle.vocab.words, dtype=np.uint32)
            matcher.fill(bits)
            allowed = np.unpackbits(bits.view(np.uint8), bitorder="little")[: len(scores)]
            scores.masked_fill_(torch.from_numpy(allowed == 0), -torch.inf)
        for token in self.forbidden:
            scores[token] = -torch.inf
        self.forbidden = set()
        return int(scores.argmax())

    def look(self) -> None:
        """Look at the text after a token; by default it ends with its first line."""
        if "\n" in self.model.decode(self.ids[-1:]):
            self.end()

    def end(self) -> None:
        """The model ended the text, or may write no more."""
        self.is_done = True

    def insert(self, text: str) -> None:
        """Go on with a text that the model does not choose."""
        self.pending = self.model.encode(text)


@torch.inference_mode()
def decode(model: Model, prompt: str, rows: Sequence[Row], batch: int = 32) -> Iterator[Row]:
    """Write all rows behind one prompt; those that are done, batch by batch."""
    head = model.read(prompt)
    for at in range(0, len(rows), batch):
        some = list(rows[at : at + batch])
        begin = time.perf_counter()
        _write(model, head, some)
        for row in some:
            row.seconds += (time.perf_counter() - begin) / len(some)
            yield row


def _write(model: Model, head: list[tuple[torch.Tensor, torch.Tensor]], rows: list[Row]) -> None:
    starts = [[*row.start, *row.ids] for row in rows]  # a row that went back goes on behind what it keeps
    width = max(map(len, starts))
    missing = torch.tensor([width - len(start) for start in starts])
    texts = Texts(model.llama, head, missing)
    ids = torch.tensor([[0] * (width - len(start)) + start for start in starts])
    while True:
        tokens = [0 if row.is_done else row.choose(one) for row, one in zip(rows, texts.step(ids), strict=True)]
        alive = [n for n, row in enumerate(rows) if not row.is_done]
        if not alive:
            return
        if len(alive) <= len(rows) * 3 // 4:  # the others cost time
            texts.keep(alive)
            tokens, rows = [tokens[n] for n in alive], [rows[n] for n in alive]
        ids = torch.tensor(tokens)[:, None]
