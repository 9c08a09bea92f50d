"""What the states of a bundle read without changing: tokens that take no step.

Leaves out   who skips them: see step.py and fused.py.
Invariants   found from the bundle's own tables, once. `longest_step` expands the rows and so wants numba; the rest is
             numpy.
Arrays       as in `Loops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .tables import Tables

if TYPE_CHECKING:
    from .bundle import Bundle
    from .vocab import Vocab

LEAST_LOOP = 16  # bytes that a state must loop over for its tokens to be worth a bit set


class Loops(NamedTuple):
    """What a bundle's states read without changing.

    Attributes:
        state_loop: int32 [states], number of a set.
        bits: uint32 [sets, words]: tokens whose every byte takes the state to itself; set 0 is empty.
    """

    state_loop: np.ndarray
    bits: np.ndarray


def loops_of(bundle: Bundle) -> Loops:
    """The loops of a bundle; found once."""
    found = bundle.__dict__.get("_loops")
    if found is None:
        t, v = bundle.tables, bundle.vocab
        stretches = (np.arange(q, min(q + 4096, t.states)) for q in range(0, t.states, 4096))
        by_class = np.concatenate([_loops_of_states(t, states) for states in stretches])
        by_byte = by_class[:, t.symbol_class[:256]]
        by_byte[:2] = False
        by_byte[by_byte.sum(axis=1) < LEAST_LOOP] = False
        empty = np.zeros((1, 32), np.uint8)
        sets, number = np.unique(np.packbits(by_byte, axis=1), axis=0, return_inverse=True)
        if sets[0].any():
            sets, number = np.concatenate([empty, sets]), number + 1
        bits = np.stack([_tokens_over(v, t, np.unpackbits(s).astype(bool)) for s in sets])
        found = bundle.__dict__["_loops"] = Loops(number.reshape(-1).astype(np.int32), bits)
    return found


def longest_step(bundle: Bundle) -> int:
    """Bytes of the longest token that some row allows and that its state does not loop over; found once."""
    found: int | None = bundle.__dict__.get("_longest_step")
    if found is None:
        found = bundle.__dict__["_longest_step"] = _longest_step(bundle, *loops_of(bundle))
    return found


def _loops_of_states(t: Tables, states: np.ndarray) -> np.ndarray:
    """bool [states, classes]: the symbol class takes the state back to itself, whatever the counter, and keeps it."""
    count = t.state_break[states, :, 1].sum(axis=1, dtype=np.int64) + 1
    first = np.cumsum(count) - count
    cell = np.repeat(t.state_cell[states] - first, count) + np.arange(int(count.sum()))
    base = t.cell_delta[cell][:, None]
    entry = t.delta[base + np.arange(t.classes)]
    loops = (entry[:, :, 0] == base) & (entry[:, :, 1] == np.repeat(states, count)[:, None] << 3)
    return np.logical_and.reduceat(loops, first, axis=0)


def _tokens_over(v: Vocab, t: Tables, alphabet: np.ndarray) -> np.ndarray:
    """uint32 [words]: the tokens with a text over an alphabet, bool [256], that are no special ones."""
    inside = np.zeros(v.words * 32, dtype=bool)
    if alphabet.any():
        some = np.flatnonzero(np.diff(v.token_offset))
        inside[some] = np.logical_and.reduceat(alphabet[v.token_bytes], v.token_offset[some])
        inside[t.special_token] = False
    return np.packbits(inside, bitorder="little").view(np.uint32)


def _longest_step(bundle: Bundle, state_loop: np.ndarray, bits: np.ndarray) -> int:
    t, v = bundle.tables, bundle.vocab
    lengths = np.diff(v.token_offset)
    lengths[t.special_token] = 1
    count = t.state_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1
    first = np.cumsum(count) - count
    cell = np.repeat(t.state_cell - first, count) + np.arange(int(count.sum()))
    number = np.repeat(state_loop, count)
    number[: int(count[:2].sum())] = -1  # dead and finished: their rows are not asked
    pairs = [np.stack([t.cell_row[cell, mode], number], axis=1) for mode in range(t.modes)]
    pairs.append(np.stack([t.chain_row, np.zeros_like(t.chain_row)], axis=1))
    row, most = np.zeros(v.words, np.uint32), 1
    for r, n in np.unique(np.concatenate(pairs), axis=0).tolist():
        if n >= 0:
            bundle.host.expand(r, row)
            tokens = np.flatnonzero(np.unpackbits((row & ~bits[n]).view(np.uint8), bitorder="little"))
            most = max(most, int(lengths[tokens].max(initial=0)))
    return most
