"""Hash rows and lists of different parts under a secret, to know which are equal.

A list that is stored as the difference from another holds what one of both holds. So the hash of a set of tokens is
the exclusive or of the hashes of its members: that of a difference is known from those of what it is made of.

Leaves out   joining rows (tables.py).
Invariants   for any two that differ the chance that their keys are equal is 2**-128, whoever chose them, as nobody
             knows the secret, which each process draws anew. Which keys are equal does not depend on it, so it does
             not show in what is made; keys are never stored.
Arrays       list_key uint64 [lists, 2]: of a list, and whether it is stored as it is;
             row_key uint64 [rows, 2]: of slice, units, bit row and list, whatever lists it is stored in.
Source       Zobrist 1970; Carter, Wegman 1979.
"""

from __future__ import annotations

import os

import numpy as np

from toolc.runtime.jit.memory import kernel

_SECRET = np.frombuffer(bytearray(os.urandom(48)), np.uint64)


def keys(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """row_key and list_key of the rows of a part."""
    dense = np.zeros((arrays["dense"].shape[0], 2), np.uint64)
    if dense.size:
        _add_dense(arrays["dense"], _SECRET, dense)
    names = ("list_offset", "list_tokens", "list_base", "row_list", "row_slice", "row_units", "row_dense")
    row_key, list_key = _keys(*(arrays[name] for name in names), dense, _SECRET)
    return row_key, list_key


@kernel()
def _mixed(number, secret, n):  # type: ignore[no-untyped-def]
    """Half ``n`` of the hash of a number."""
    x = (np.uint64(number) + secret[3 * n]) * np.uint64(0xFF51AFD7ED558CCD)
    x = ((x ^ x >> np.uint64(32)) + secret[3 * n + 1]) * np.uint64(0xC4CEB9FE1A85EC53)
    x = ((x ^ x >> np.uint64(29)) + secret[3 * n + 2]) * np.uint64(0x9E3779B97F4A7C15)
    return x ^ x >> np.uint64(32)


@kernel()
def _add_dense(dense, secret, out):  # type: ignore[no-untyped-def]
    """The hashes of bit rows: of their words, each at its place."""
    for row in range(dense.shape[0]):
        for word in range(dense.shape[1]):
            number = np.int64(1) << 62 | word << 32 | np.int64(dense[row, word])
            for n in range(2):
                out[row, n] ^= _mixed(number, secret, n)


@kernel()
def _keys(offset, tokens, base, list_of, slice_, units, dense_of, dense, secret):  # type: ignore[no-untyped-def]
    held = np.zeros((base.size, 2), np.uint64)
    for i in range(base.size):
        for k in range(offset[i], offset[i + 1]):
            for n in range(2):
                held[i, n] ^= _mixed(np.int64(tokens[k]), secret, n)
    list_key = held.copy()
    for i in range(base.size):
        if base[i] >= 0:  # the base has none itself
            for n in range(2):
                held[i, n] ^= held[base[i], n]
                list_key[i, n] = held[i, n] ^ _mixed(np.int64(1) << 61, secret, n)
    row_key = np.empty((list_of.size, 2), np.uint64)
    for r in range(list_of.size):
        number = np.int64(1) << 61 | np.int64(slice_[r] + 1) << 32 | np.int64(units[r] + 1) << 1 | 1
        for n in range(2):
            row_key[r, n] = held[list_of[r], n] ^ _mixed(number, secret, n)
            if dense_of[r] >= 0:
                row_key[r, n] ^= dense[dense_of[r], n]
    return row_key, list_key
