"""A small transformer with random weights, and the plain decoding loop around it, with a bundle and without.

The model knows nothing, so whatever is right with a bundle is right because of the bundle. Its logits are biased, with
and without alike, towards tokens that close something (quotes, brackets, end of turn), more with every step: a random
model would otherwise fill every string to its limit.

Leaves out   masks and states (decoder.py); whether what was written is valid, which whoever has the spec can tell.
Invariants   one seed for the weights and one for the sampling: a run repeats on the same machine.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from ..device.decoder import Decoder

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..format.vocab import Vocab

STEPS = 320
WIDTH, HEADS, LAYERS, WINDOW = 64, 4, 2, 48
BIAS, BIAS_PER_STEP = 3.0, 0.04


def use_one_thread() -> None:
    """For the whole process: the model is too small for more, and a run then takes the same time on a busy machine."""
    torch.set_num_threads(1)


class RandomModel(nn.Module):
    """A causal transformer: token and position embeddings, two blocks, tied output.

    Args:
        size: V, ids of the vocabulary; the id V begins a text.
        seed: of the weights.
    """

    def __init__(self, size: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.size = size
        self.embed = nn.Embedding(size + 1, WIDTH)
        self.place = nn.Embedding(WINDOW, WIDTH)
        block = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
        )
        self.blocks = nn.TransformerEncoder(block, LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.eval()

    @property
    def parameter_count(self) -> int:
        """Of all weights."""
        return sum(p.numel() for p in self.parameters())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits float32 [B, V] of what follows tokens int64 [B, length], at most `WINDOW` long."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        x = self.embed(tokens) + self.place.weight[:length]
        x = self.norm(self.blocks(x, mask=mask, is_causal=True)[:, -1])
        return x @ self.embed.weight[: self.size].T / WIDTH**0.5


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
    """Sample rows until all have ended, or for some steps; the bundle takes two lines of the loop.

    Args:
        bundle: of the vocabulary that the model is for.
        seed: of the sampling.
        constrained: whether the bundle is used.
    """
    vocab = bundle.vocab
    closing = _closing(vocab)
    ends = torch.tensor(vocab.end_of_turn)
    decoder = Decoder(bundle, rows) if constrained else None
    random = torch.Generator().manual_seed(seed)
    tokens = torch.full((rows, 1), vocab.size)
    ended = torch.zeros(rows, dtype=torch.bool)
    count = 0
    began = time.perf_counter()
    with torch.inference_mode():
        for step in range(steps):
            logits = model(tokens[:, -WINDOW:]) + closing * (BIAS + BIAS_PER_STEP * step)
            if decoder is not None:
                decoder.mask_(logits)
            chosen = torch.multinomial(torch.softmax(logits, -1), 1, generator=random)
            if decoder is not None:
                decoder.advance_(chosen[:, 0])
            count += int((~ended).sum())
            tokens = torch.cat([tokens, chosen], dim=1)
            ended |= torch.isin(chosen[:, 0], ends)
            if ended.all():
                break
    seconds = time.perf_counter() - began
    return Decoded([_text(vocab, row) for row in tokens[:, 1:].tolist()], ended.tolist(), count, seconds)


def _closing(vocab: Vocab) -> torch.Tensor:
    """1 for tokens that close something, 0 for others; float32 [V]."""
    ends = set(vocab.end_of_turn)
    closes = [token in ends or any(byte in b'"}]' for byte in vocab.token(token)) for token in range(vocab.size)]
    return torch.tensor(closes, dtype=torch.float32)


def _text(vocab: Vocab, row: list[int]) -> str:
    """Of tokens up to the first end of turn."""
    ends = set(vocab.end_of_turn)
    data = bytearray()
    for token in row:
        if token in ends:
            break
        data += vocab.token(token)
    return data.decode(errors="replace")
