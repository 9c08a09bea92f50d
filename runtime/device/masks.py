"""Bits of masks on tensors: from packed words to logits.

Leaves out   where the bits come from: see decoder.py and matcher.py.
Arrays       bits int32 [B, words], bit t of a row in word t >> 5 at t & 31; little-endian machines only.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch

from ..errors import DecodeError
from ..format.width import LogitsWidth
from .clear_kernel import clear_logits

if TYPE_CHECKING:
    from ..format.bundle import Bundle

CHUNK_ELEMENTS = 1 << 22  # logits masked at once on the CPU, so that the unpacked bits stay in its cache
# -inf of each float dtype, as an integer of the same width
_LOWEST = {
    torch.float32: (torch.int32, np.int32(-(1 << 23))),
    torch.bfloat16: (torch.int16, np.int16(-(1 << 7))),
    torch.float16: (torch.int16, np.int16(-(1 << 10))),
}


@cache
def clear_bits_of_byte(device: torch.device) -> torch.Tensor:
    """int64 [256]: eight bytes, each 1 where the bit of the byte is clear, the lowest bit in the lowest byte."""
    byte = torch.arange(256, dtype=torch.int64).unsqueeze(1)
    clear = 1 - (byte >> torch.arange(8) & 1)
    return clear.to(torch.uint8).contiguous().view(torch.int64).view(256).to(device)


def check_logits(logits: torch.Tensor, rows: int, width: LogitsWidth, bundles: Iterable[Bundle]) -> None:
    """Refuse logits that no mask of `rows` rows fits, or that are too wide or too narrow for the bundles."""
    if not isinstance(logits, torch.Tensor):
        raise DecodeError("the logits do not fit", found=type(logits).__name__, expected="a tensor of floats")
    if logits.dim() != 2 or logits.shape[0] != rows:
        raise DecodeError("the logits do not fit", found=str(list(logits.shape)), expected=f"[{rows}, {width.size}]")
    width.check(logits.shape[1], bundles)
    if not logits.is_floating_point() or logits.dtype.itemsize < 2:  # most of 8 bits know no infinity
        raise DecodeError(
            "the logits are no floats", found=str(logits.dtype), expected="a float dtype of 16 bits or more"
        )


def check_apart(logits: torch.Tensor) -> None:
    """Refuse expanded logits: a mask in one row would be one in others."""
    if any(stride == 0 and size > 1 for stride, size in zip(logits.stride(), logits.shape, strict=True)):
        raise DecodeError(
            "the logits do not fit",
            found=f"{list(logits.shape)} by strides {list(logits.stride())}",
            expected="a place of its own for each logit, since masks are written in place",
            hint="clone expanded logits before",
        )


def mask_logits_(logits: torch.Tensor, bits: torch.Tensor, size: int, constrained: torch.Tensor) -> torch.Tensor:
    """Set logits to -inf where the bit is clear, and past `size` in constrained rows; in place.

    Args:
        logits: [B, W], any float dtype of 16 bits or more, any strides but 0; W may be smaller than size.
        bits: int32 [B, words], all set in rows that are not constrained.
        size: V.
        constrained: bool [B].
    """
    check_apart(logits)
    size = min(size, logits.shape[1])
    if _try_clear(logits, bits, size, constrained):
        return logits
    table = clear_bits_of_byte(logits.device)
    rows = logits.shape[0]
    step = max(1, CHUNK_ELEMENTS // size) if logits.device.type == "cpu" else max(1, rows)
    for start in range(0, rows, step):
        octets = bits[start : start + step].contiguous().view(torch.uint8)
        unpacked = table.index_select(0, octets.reshape(-1).to(torch.int32)).view(torch.bool)
        logits[start : start + step, :size].masked_fill_(unpacked.view(octets.shape[0], -1)[:, :size], -torch.inf)
    if logits.shape[1] > size:
        logits[:, size:].masked_fill_(constrained.unsqueeze(1), -torch.inf)
    return logits


def _try_clear(logits: torch.Tensor, bits: torch.Tensor, size: int, constrained: torch.Tensor) -> bool:
    """Mask logits that lie in the CPU's memory as they are; whether these do. Arguments as of `mask_logits_`."""
    known = _LOWEST.get(logits.dtype)
    plain = type(logits) is torch.Tensor and type(bits) is torch.Tensor and not torch.compiler.is_compiling()
    if known is None or not plain or logits.device.type != "cpu" or logits.requires_grad or logits.stride(1) != 1:
        return False
    whole, lowest = known
    clear_logits(logits.view(whole).numpy(), bits.numpy(), size, constrained.numpy(), lowest)
    torch.autograd.graph.increment_version(logits)  # what kept them for a gradient has to see that they changed
    return True
