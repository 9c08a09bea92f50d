"""Masks on the logits of a CPU: one pass that writes where a bit is clear, and reads no logits.

Leaves out   other devices, and whatever is traced: masks.py.
Invariants   logits of rows that are not constrained are not touched.
"""

from __future__ import annotations

import numpy as np
import torch

from .memory import kernel

# -inf of each float dtype, as an integer of the same width
_LOWEST = {
    torch.float32: (torch.int32, np.int32(-(1 << 23))),
    torch.bfloat16: (torch.int16, np.int16(-(1 << 7))),
    torch.float16: (torch.int16, np.int16(-(1 << 10))),
}


@kernel()
def _clear(logits, bits, size, constrained, lowest):  # type: ignore[no-untyped-def]
    """logits int [B, at least size] = lowest where a bit of bits int32 [B, words] is clear, and past ``size``."""
    place = np.empty(32, np.int64)  # of the only bit of a word, by a de Bruijn sequence (Leiserson and others 1998)
    for k in range(32):
        place[((np.int64(1) << k) * 0x077CB531 & 0xFFFFFFFF) >> 27] = k
    for row in range(logits.shape[0]):
        if not constrained[row]:
            continue
        for w in range((size + 31) >> 5):
            word = bits[row, w]
            begin = w << 5
            end = min(begin + 32, size)
            if word == -1:
                continue
            if word == 0:
                for t in range(begin, end):
                    logits[row, t] = lowest
                continue
            left = ~np.int64(word) & 0xFFFFFFFF
            while left:
                low = left & -left
                t = begin + place[(low * 0x077CB531 & 0xFFFFFFFF) >> 27]
                left ^= low
                if t < end:
                    logits[row, t] = lowest
        for t in range(size, logits.shape[1]):
            logits[row, t] = lowest


def try_clear(logits: torch.Tensor, bits: torch.Tensor, size: int, constrained: torch.Tensor) -> bool:
    """Mask logits that lie in the CPU's memory as they are; whether these do. Arguments as of `mask_logits_`."""
    known = _LOWEST.get(logits.dtype)
    plain = type(logits) is torch.Tensor and type(bits) is torch.Tensor and not torch.compiler.is_compiling()
    if known is None or not plain or logits.device.type != "cpu" or logits.requires_grad or logits.stride(1) != 1:
        return False
    whole, lowest = known
    _clear(logits.view(whole).numpy(), bits.numpy(), size, constrained.numpy(), lowest)
    torch.autograd.graph.increment_version(logits)  # what kept them for a gradient has to see that they changed
    return True
