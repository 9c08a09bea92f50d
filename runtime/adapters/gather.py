"""Steps of rows that were gathered from a decoder's, on whichever backend it has.

Leaves out   the step: see torch_step.py and triton_step.py. Which rows: see vllm.py, continuous.py.
Arrays       bundle int32 [R], -1 for a row that takes no part; config as in torch_step.py, [R, …], contiguous; tokens
             integers [R]; left int32 [R], what budgets leave, -1 without one.
"""

from __future__ import annotations

import torch

from ..device import torch_step as step
from ..device.decoder import Decoder
from ..device.masks import mask_logits_
from ..device.torch_step import Config


def advance_(decoder: Decoder, bundle: torch.Tensor, config: Config, tokens: torch.Tensor) -> None:
    """Read a token in the rows that have a bundle, in place; a token that is not allowed leaves its row dead."""
    if decoder.backend == "fused":
        from ..device import triton_step as fused

        fused.read_(decoder.arena, bundle, config, tokens)
        return
    after, _ = step.advance(decoder.arena.table, decoder.arena.limits, bundle, config, tokens)
    for part, new in zip(config, after, strict=True):
        part.copy_(new)


def mask_(
    decoder: Decoder, bundle: torch.Tensor, config: Config, logits: torch.Tensor, left: torch.Tensor | None = None
) -> torch.Tensor:
    """Mask logits [R, at least V] in place; returns them. `left`: None if no row has a budget."""
    if decoder.backend == "fused":
        from ..device import triton_step as fused

        fused.mask_(decoder.arena, bundle, config, *fused.limits_of(left, bundle), logits)
        return logits
    arena = decoder.arena
    bits = step.mask_bits(arena.table, arena.limits, bundle, config, left=left)
    return mask_logits_(logits, bits, arena.size, bundle >= 0)
