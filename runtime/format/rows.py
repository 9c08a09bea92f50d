"""Expand rows of a bundle to bitmasks, with numpy.

A row is a prefix of a slice of the vocabulary, with the tokens of a dense bit row and of a token list toggled.

Leaves out   one row at a time, while decoding: host/kernels.py.
Arrays       a bitmask is uint32 [words]; bit t & 31 of word t >> 5 stands for token t. words = ceil(V / 32).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .bundle import Bundle
    from .tables import Tables
    from .vocab import Vocab

CHUNK = 1024  # rows at once: 16 MB with a vocabulary of 128,000


def expanded(bundle: Bundle, rows: np.ndarray | None = None) -> Iterator[np.ndarray]:
    """The bitmasks of rows, uint32 [at most CHUNK, words] at a time.

    Args:
        bundle: the bundle.
        rows: integers [·], or None for all; the number after the last row stands for the end-of-turn ids.
    """
    t, v = bundle.tables, bundle.vocab
    numbers = np.arange(t.rows + 1) if rows is None else np.asarray(rows)
    prefixes: dict[tuple[int, int], np.ndarray] = {}
    for start in range(0, numbers.size, CHUNK):
        some = numbers[start : start + CHUNK]
        out = np.zeros((some.size, v.words), np.uint32)
        out[some == t.rows] = _bits_of(t.end_of_turn_tokens, v.words)
        place = np.flatnonzero(some < t.rows)
        row = some[place]
        for n, number, units in zip(place.tolist(), t.row_slice[row].tolist(), t.row_units[row].tolist()):
            if number >= 0:
                key = number, units
                if key not in prefixes:
                    if len(prefixes) == CHUNK:
                        prefixes.clear()
                    prefixes[key] = _bits_of(_prefix(v, number, units), v.words)
                out[n] = prefixes[key]
        dense, lists = t.row_dense[row], t.row_list[row]
        out[place[dense >= 0]] ^= t.dense[dense[dense >= 0]]
        _toggle(out, place, lists, t)
        bases = t.list_base[lists]
        _toggle(out, place[bases >= 0], bases[bases >= 0], t)
        yield out


def _bits_of(tokens: np.ndarray, words: int) -> np.ndarray:
    """The bitmask of some tokens."""
    bits = np.zeros(32 * words, np.uint8)
    bits[tokens] = 1
    return np.packbits(bits, bitorder="little").view(np.uint32)


def _prefix(v: Vocab, number: int, units: int) -> np.ndarray:
    """The tokens of a slice with at most so many units; all if `units` is -1."""
    first, last = v.slice_token_offset[number : number + 2].tolist()
    stop = last if units < 0 else first + int(np.searchsorted(v.slice_units[first:last], units, side="right"))
    return v.slice_tokens[first:stop]


def _toggle(out: np.ndarray, place: np.ndarray, lists: np.ndarray, t: Tables) -> None:
    """Toggle the tokens of a list in each of these rows of `out`; places ascend, and so do the tokens of a list."""
    count = t.list_offset[lists + 1] - t.list_offset[lists]
    first = np.cumsum(count) - count
    tokens = t.list_tokens[np.repeat(t.list_offset[lists] - first, count) + np.arange(int(count.sum()))]
    if not tokens.size:
        return
    word = np.repeat(place * out.shape[1], count) + (tokens >> 5)
    begins = np.flatnonzero(np.diff(word, prepend=-1))
    bits = np.uint32(1) << (tokens & 31).astype(np.uint32)
    out.reshape(-1)[word[begins]] ^= np.bitwise_or.reduceat(bits, begins)
