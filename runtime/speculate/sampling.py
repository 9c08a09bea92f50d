"""Speculative sampling of a drafted call: the output distribution is that of sampling without a draft.

The draft is certain of its tokens (its distribution q is 1 at one token), so the standard rule becomes: accept draft
token x with probability p(x); on the first refusal sample from p without x, renormalised; after the last acceptance
sample from p once more. p is the model's distribution under the grammar: what the bundle forbids has probability 0, so
a draft that leaves the grammar is refused there, always.

Leaves out   where drafts come from: see engine.py.
Arrays       logits float [V]; masks uint32 [words], bit t: token t is allowed.
Source       Leviathan, Kalman and Matias 2023, Algorithm 1; Chen et al. 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Distribution:
    """Of the next token; tokens that are not named have probability 0.

    Attributes:
        tokens: int [n], ascending.
        p: float64 [n], of sum 1.
    """

    tokens: np.ndarray
    p: np.ndarray

    def of(self, token: int) -> float:
        """The probability of a token."""
        at = int(np.searchsorted(self.tokens, token))
        return float(self.p[at]) if at < self.tokens.size and self.tokens[at] == token else 0.0

    def without(self, token: int) -> Distribution:
        """What is left where a token is taken out."""
        rest = np.where(self.tokens == token, 0.0, self.p)
        return Distribution(self.tokens, rest / rest.sum())

    def sample(self, dice: np.random.Generator) -> int:
        """One token."""
        if self.tokens.size == 1:
            return int(self.tokens[0])
        total = np.cumsum(self.p)
        return int(self.tokens[np.searchsorted(total, dice.random() * total[-1], side="right")])


def distribution(logits: np.ndarray, mask: np.ndarray, temperature: float) -> Distribution:
    """The distribution of the next token; at temperature 0 all of it on the best allowed token.

    Args:
        logits: float [V]; of equal best ones the lowest id is taken.
        mask: uint32 [words].
        temperature: 0 or more.
    """
    tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
    held = logits[tokens].astype(np.float64)
    best = int(held.argmax())
    if temperature == 0:
        return Distribution(tokens[best : best + 1], np.ones(1))
    with np.errstate(over="ignore"):  # at the least temperatures: what is not best is infinitely far from it
        weight = np.exp((held - held[best]) / temperature)
    return Distribution(tokens, weight / weight.sum())


def verify(p: Sequence[Distribution], draft: Sequence[int], dice: np.random.Generator) -> tuple[int, int]:
    """How many draft tokens are accepted, and the token after them.

    Args:
        p: the distributions before each draft token and after the last: at least one, at most len(draft) + 1. Where
            there are fewer, the draft ends there.
        draft: tokens.
        dice: of this sequence alone.
    """
    for n, (before, token) in enumerate(zip(p[:-1], draft)):
        if dice.random() >= before.of(token):
            return n, before.without(token).sample(dice)
    return len(p) - 1, p[-1].sample(dice)
