"""By what rows and lists of different parts are known to be equal: digests of what they hold.

Leaves out   joining rows (tables.py).
Arrays       list_key uint32 [lists, 4]: of a list as it is stored, its base's content included;
             row_key uint32 [rows, 6]: slice, units, and the digest of the other tokens, whatever list they are of.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import numpy as np

from toolc.runtime.memory import kernel

_SIZE = 16  # bytes of a digest


def with_keys(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of rows, and their keys."""
    base = arrays["list_base"]
    stored = _digests(arrays["list_offset"], arrays["list_tokens"])
    content = stored.copy()
    some = np.flatnonzero(base >= 0)
    content[some] = _digests(*_contents(some, arrays["list_offset"], arrays["list_tokens"], base))
    # A list with a base is known by its own tokens and those of the base.
    both = np.concatenate([stored[some], content[base[some]]], axis=1)
    stored[some] = _digests(np.arange(some.size + 1) * both.shape[1], both.reshape(-1))
    held = content[arrays["row_list"]]
    for row in np.flatnonzero(arrays["row_dense"] >= 0).tolist():
        bits = arrays["dense"][arrays["row_dense"][row]].tobytes()
        held[row] = np.frombuffer(blake2b(bits + held[row].tobytes(), digest_size=_SIZE).digest(), np.uint32)
    rows = np.stack([arrays["row_slice"], arrays["row_units"]], axis=1).astype(np.int32).view(np.uint32)
    return {**arrays, "row_key": np.concatenate([held, rows], axis=1), "list_key": stored}


def _digests(offset: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """uint32 [sequences, 4]: digests of sequences of numbers."""
    data, size = np.ascontiguousarray(numbers).data.cast("B"), numbers.itemsize
    ends = (offset * size).tolist()
    found = [blake2b(data[a:b], digest_size=_SIZE).digest() for a, b in pairwise(ends)]
    return np.frombuffer(bytearray(b"".join(found)), np.uint32).reshape(-1, 4)


@kernel()
def _contents(lists, offset, tokens, base):  # type: ignore[no-untyped-def]
    """The tokens of lists that are stored as differences from others, and where each begins."""
    ends = np.zeros(lists.size + 1, np.int64)
    out = np.empty(max(1, tokens.size), np.int32)
    n = 0
    for j in range(lists.size):
        i, i_end = np.int64(offset[lists[j]]), np.int64(offset[lists[j] + 1])
        k, k_end = np.int64(offset[base[lists[j]]]), np.int64(offset[base[lists[j]] + 1])
        while out.size - n < i_end - i + k_end - k:
            bigger = np.empty(2 * out.size, np.int32)
            bigger[:n] = out[:n]
            out = bigger
        while i < i_end or k < k_end:
            if k == k_end or (i < i_end and tokens[i] < tokens[k]):
                out[n] = tokens[i]
                n += 1
                i += 1
            elif i == i_end or tokens[k] < tokens[i]:
                out[n] = tokens[k]
                n += 1
                k += 1
            else:
                i += 1
                k += 1
        ends[j + 1] = n
    return ends, out[:n]
