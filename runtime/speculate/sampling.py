"""Speculative sampling of a drafted call: the output distribution is that of sampling without a draft.

The draft is certain of its tokens (its distribution q is 1 at one token), so the standard rule becomes: accept draft
token x with probability p(x); on the first refusal sample from p without x, renormalised; after the last acceptance
sample from p once more. p is the model's distribution under the grammar: what the bundle forbids has probability 0, so
a draft that leaves the grammar is refused there, always.

Leaves out   where drafts come from: see engine.py.
Arrays       logits float [n, V]; masks uint32 [n, words], bit t of a row: token t is allowed.
Source       Leviathan, Kalman and Matias 2023, Algorithm 1; Chen et al. 2023.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def distribution(logits: np.ndarray, mask: np.ndarray, temperature: float) -> np.ndarray:
    """float64 [V]: the distribution of the next token; at temperature 0 all of it on the best allowed token.

    Args:
        logits: float [at least V]; of equal best ones the lowest id is taken.
        mask: uint32 [words].
        temperature: 0 or more.
    """
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: logits.size].astype(bool)
    size = allowed.size
    held = np.where(allowed, logits[:size].astype(np.float64), -np.inf)
    if temperature == 0:
        out = np.zeros(logits.size)
        out[int(held.argmax())] = 1.0
        return out
    held = (held - held.max()) / temperature
    out = np.zeros(logits.size)
    out[:size] = np.exp(held)
    return out / out.sum()


def sample(p: np.ndarray, dice: np.random.Generator) -> int:
    """One token of a distribution."""
    best = int(p.argmax())
    if p[best] == 1.0:
        return best
    total = np.cumsum(p)
    return int(np.searchsorted(total, dice.random() * total[-1], side="right"))


def verify(p: Sequence[np.ndarray], draft: Sequence[int], dice: np.random.Generator) -> tuple[int, int]:
    """How many draft tokens are accepted, and the token after them.

    Args:
        p: the distributions before each draft token and after the last: at least one, at most len(draft) + 1. Where
            there are fewer, the draft ends there.
        draft: tokens.
        dice: of this sequence alone.
    """
    for n, (before, token) in enumerate(zip(p[:-1], draft)):
        if dice.random() >= before[token]:
            rest = before.copy()
            rest[token] = 0.0
            return n, sample(rest / rest.sum(), dice)
    return len(p) - 1, sample(p[-1], dice)
