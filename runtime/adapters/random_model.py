"""Decode with a small transformer of random weights, in numpy: a plain loop, with a bundle and without.

The model knows nothing, so whatever is right with a bundle is right because of the bundle. Its logits are biased, with
and without alike, towards tokens that close something (quotes, brackets, end of turn), more with every step: a random
model would otherwise fill every string to its limit.

Leaves out   masks and states (batch.py); whether what was written is valid, which whoever has the spec can tell.
Invariants   one seed for the weights and one for the sampling: a run repeats on the same machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..host.batch import BatchMatcher

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..format.vocab import Vocab

STEPS = 320
WIDTH, HEADS, LAYERS, WINDOW = 64, 4, 2, 48
BIAS, BIAS_PER_STEP = 3.0, 0.04


class RandomModel:
    """A causal transformer: token and position embeddings, two blocks, tied output. All weights are float32.

    Args:
        size: V, ids of the vocabulary; the id V begins a text.
        seed: of the weights.
    """

    def __init__(self, size: int, seed: int) -> None:
        random = np.random.default_rng(seed)

        def weights(rows: int, columns: int, scale: float) -> np.ndarray:
            return random.normal(0, scale, (rows, columns)).astype(np.float32)

        shapes = ((WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH))
        self.size = size
        self.embed = weights(size + 1, WIDTH, 1)
        self.place = weights(WINDOW, WIDTH, 1)
        self.blocks = [[weights(*shape, scale=shape[0] ** -0.5) for shape in shapes] for _ in range(LAYERS)]

    @property
    def parameter_count(self) -> int:
        """Of all weights."""
        return self.embed.size + self.place.size + sum(one.size for block in self.blocks for one in block)

    def __call__(self, tokens: np.ndarray) -> np.ndarray:
        """Logits float32 [B, V] of what follows tokens int64 [B, length], at most `WINDOW` long."""
        rows, length = tokens.shape
        x = (self.embed[tokens] + self.place[:length]).reshape(-1, WIDTH)  # quicker than stacks of matrices
        for attend, merge, up, down in self.blocks:
            x = x + _attention((_normal(x) @ attend).reshape(rows, length, -1)) @ merge
            x = x + np.maximum(_normal(x) @ up, 0) @ down
        return _normal(x[length - 1 :: length]) @ self.embed[: self.size].T / WIDTH**0.5


def _normal(x: np.ndarray) -> np.ndarray:
    """Shift and scale the last axis to mean 0 and deviation 1."""
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)


def _attention(x: np.ndarray) -> np.ndarray:
    """Causal attention [B * length, WIDTH] over queries, keys and values side by side, [B, length, 3 * WIDTH]."""
    rows, length, _ = x.shape
    queries, keys, values = x.reshape(rows, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
    scores = queries @ keys.swapaxes(-1, -2) / (WIDTH / HEADS) ** 0.5
    scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return (shares @ values).transpose(0, 2, 1, 3).reshape(rows * length, WIDTH)


@dataclass(frozen=True)
class Decoded:
    """What the rows wrote.

    Attributes:
        texts: of each row, without the end of turn.
        ended: whether the row wrote an end of turn.
        tokens: sampled tokens of all rows.
        seconds: wall time of the loop.
    """

    texts: list[str]
    ended: list[bool]
    tokens: int
    seconds: float


def decode(bundle: Bundle, model: RandomModel, rows: int, seed: int, constrained: bool, steps: int = STEPS) -> Decoded:
    """Sample rows until all have ended, or for some steps; the bundle takes seven lines of the loop.

    Args:
        bundle: of the vocabulary that the model is for.
        seed: of the sampling.
        constrained: whether the bundle is used.
    """
    vocab = bundle.vocab
    closing = _closing(vocab)
    matcher = BatchMatcher([bundle] * rows) if constrained else None
    random = np.random.default_rng(seed)
    tokens = np.full((rows, 1), vocab.size)
    ended = np.zeros(rows, dtype=bool)
    count = 0
    began = time.perf_counter()
    for step in range(steps):
        logits = model(tokens[:, -WINDOW:]) + closing * np.float32(BIAS + BIAS_PER_STEP * step)
        if matcher is not None:
            masks = matcher.new_masks()
            matcher.fill(masks)
            allowed = np.unpackbits(masks.view(np.uint8), axis=1, count=vocab.size, bitorder="little")
            logits[allowed == 0] = -np.inf
        chosen = (logits + random.gumbel(size=logits.shape)).argmax(1)  # a sample of softmax(logits)
        if matcher is not None:
            matcher.advance(chosen)
        count += int((~ended).sum())
        tokens = np.concatenate([tokens, chosen[:, None]], axis=1)
        ended |= np.isin(chosen, vocab.end_of_turn)
        if ended.all():
            break
    seconds = time.perf_counter() - began
    return Decoded([_text(vocab, row) for row in tokens[:, 1:].tolist()], ended.tolist(), count, seconds)


def _closing(vocab: Vocab) -> np.ndarray:
    """1 for tokens that close something, 0 for others; float32 [V]."""
    ends = set(vocab.end_of_turn)
    closes = [token in ends or any(byte in b'"}]' for byte in vocab.token(token)) for token in range(vocab.size)]
    return np.array(closes, dtype=np.float32)


def _text(vocab: Vocab, row: list[int]) -> str:
    """Of tokens up to the first end of turn."""
    ends = set(vocab.end_of_turn)
    data = bytearray()
    for token in row:
        if token in ends:
            break
        data += vocab.token(token)
    return data.decode(errors="replace")
