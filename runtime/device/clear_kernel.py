"""Clear logits by the bits of masks: the kernel for the CPU, one pass that writes and never reads logits.

Leaves out   tensors: see masks.py, which calls this. `toolc warmup` compiles it where torch is not installed, too.
Invariants   logits of rows that are not constrained are not touched. ``size`` is at most the columns of the logits and
             32 times the words of the bits.
"""

from __future__ import annotations

import numpy as np

from ..jit.memory import kernel


@kernel()
def clear_logits(logits, bits, size, constrained, lowest):  # type: ignore[no-untyped-def]
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
