"""A number for the set of tokens that a row holds, found without expanding the row.

Every token has a fixed random 64-bit number, and a set of tokens the XOR of theirs: so what toggles tokens in a row
toggles their numbers in its fingerprint. (Zobrist hashing: A. L. Zobrist, "A New Hashing Method with Application for
Game Playing", 1970.)

Leaves out   expanding rows: see host.py.
Invariants   numpy only. Equal rows have equal fingerprints; rows that differ have different ones but by chance, which
             nobody who writes bundles is kept from forging: good for counting, not for telling rows apart in a decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..format.bundle import Bundle


def row_fingerprints(bundle: Bundle) -> np.ndarray:
    """uint64 [rows + 1]: of every row, and last that of the end-of-turn ids; of no tokens 0."""
    t, v = bundle.tables, bundle.vocab
    of_token = np.random.default_rng(0).integers(1, 1 << 64, v.size, np.uint64)
    found = np.zeros(t.rows + 1, np.uint64)
    for s in np.unique(t.row_slice[t.row_slice >= 0]).tolist():
        own = np.flatnonzero(t.row_slice == s)
        first, last = v.slice_token_offset[s : s + 2].tolist()
        units, most = v.slice_units[first:last], t.row_units[own]
        stop = np.where(most < 0, last - first, np.searchsorted(units, most, side="right"))
        found[own] = _prefixes(of_token[v.slice_tokens[first:last]])[stop]
    of_dense = [np.bitwise_xor.reduce(of_token[_tokens(row)], initial=np.uint64(0)) for row in t.dense]
    has = np.flatnonzero(t.row_dense >= 0)
    found[has] ^= np.array(of_dense, np.uint64)[t.row_dense[has]]
    prefix = _prefixes(of_token[t.list_tokens])
    of_list = prefix[t.list_offset[1:]] ^ prefix[t.list_offset[:-1]]
    based = np.flatnonzero(t.list_base >= 0)
    of_list[based] ^= of_list[t.list_base[based]]  # a base has none itself
    has = np.flatnonzero(t.row_list >= 0)
    found[has] ^= of_list[t.row_list[has]]
    found[-1] = np.bitwise_xor.reduce(of_token[t.end_of_turn_tokens], initial=np.uint64(0))
    return found


def _prefixes(numbers: np.ndarray) -> np.ndarray:
    """uint64 [n + 1]: the XOR of the first 0, 1, 2, … numbers."""
    out = np.zeros(numbers.size + 1, np.uint64)
    np.bitwise_xor.accumulate(numbers, out=out[1:])
    return out


def _tokens(row: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
