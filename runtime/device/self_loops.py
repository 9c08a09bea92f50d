"""What the states of a bundle read without changing: tokens that take no step.

Leaves out   who skips them: see torch_step.py and triton_step.py.
Invariants   found from the bundle's own tables, once. numpy only.
Trusts       cells of states lie side by side; an entry of ``delta`` lies in a column of its owner. Checked on opening.
Arrays       as in `Loops`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..format.ops import KIND_BITS, KIND_MASK
from ..format.rows import expanded
from ..format.tables import Tables

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..format.vocab import Vocab

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
        some, packed = _looping(t)
        row = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
        _, first, which = np.unique(row, return_index=True, return_inverse=True)
        number = np.zeros(t.states, np.int32)
        number[some] = which.reshape(-1) + 1
        sets = [np.zeros(packed.shape[1], np.uint8), *packed[first]]
        bits = np.stack([_tokens_over(v, t, np.unpackbits(s).astype(bool)) for s in sets])
        found = bundle.__dict__["_loops"] = Loops(number, bits)
    return found


def longest_step(bundle: Bundle) -> int:
    """Bytes of the longest token that some row allows and that its state does not loop over; found once."""
    found: int | None = bundle.__dict__.get("_longest_step")
    if found is None:
        found = bundle.__dict__["_longest_step"] = _longest_step(bundle, *loops_of(bundle))
    return found


def _looping(t: Tables) -> tuple[np.ndarray, np.ndarray]:
    """The states, int64 [·], that take enough bytes to themselves, and which these are, uint8 [·, 32], a bit each."""
    bytes_of = np.bincount(t.symbol_class[:256], minlength=t.classes)
    base, op = t.delta[:, 0], t.delta[:, 1]
    entry = np.flatnonzero((op & KIND_MASK == 0) & (op >> KIND_BITS >= 2))  # stays in the frame, and counts nothing
    cell = t.state_cell[op[entry] >> KIND_BITS]  # the first of the state entered
    entry = entry[(base[entry] == t.cell_delta[cell]) | (base[entry] == t.cell_default[cell])]
    state, symbol = op[entry] >> KIND_BITS, entry - base[entry]
    likely = np.bincount(state, bytes_of[symbol], t.states) >= LEAST_LOOP
    entering, bit = t.register_rule[t.state_register, :2].T
    likely &= (entering == 0) & (bit < 0)  # entering it again tests and sets nothing
    single = (t.state_break == 0) & (t.cell_default[t.state_cell] == t.cell_delta[t.state_cell])
    found, rows = [np.flatnonzero(likely & single)], []
    place = np.zeros(t.states, np.int64)
    place[found[0]] = np.arange(found[0].size)
    own = (likely & single)[state]
    loops = np.zeros((found[0].size, t.classes), bool)
    loops[place[state[own]], symbol[own]] = True
    rows.append(np.packbits(loops[:, t.symbol_class[:256]], axis=1))
    several = np.flatnonzero(likely & ~single)  # of several rows
    for part in (several[n : n + 4096] for n in range(0, several.size, 4096)):
        loops = _loops_of_states(t, part)[:, t.symbol_class[:256]]
        enough = loops.sum(axis=1) >= LEAST_LOOP
        found.append(part[enough])
        rows.append(np.packbits(loops[enough], axis=1))
    return np.concatenate(found), np.concatenate(rows)


def _loops_of_states(t: Tables, states: np.ndarray) -> np.ndarray:
    """bool [states, classes]: the symbol class takes the state back to itself, whatever the counter, and keeps it."""
    count = t.cells_of("state_break", states)
    first = np.cumsum(count) - count
    cell = np.repeat(t.state_cell[states] - first, count) + np.arange(int(count.sum()))
    loop, columns = np.repeat(states, count)[:, None] << KIND_BITS, np.arange(t.classes)
    base, default = t.cell_delta[cell][:, None], t.cell_default[cell][:, None]
    own, other = t.delta[base + columns], t.delta[default + columns]
    loops = np.where(own[:, :, 0] == base, own[:, :, 1] == loop, (other[:, :, 0] == default) & (other[:, :, 1] == loop))
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
    count = t.cells_of("state_break")
    first = np.cumsum(count) - count
    cell = np.repeat(t.state_cell - first, count) + np.arange(int(count.sum()))
    number = np.repeat(state_loop, count)
    number[: int(count[:2].sum())] = -1  # dead and finished: their rows are not asked
    pairs = [np.stack([t.cell_row[cell, mode], number], axis=1) for mode in range(t.modes)]
    pairs.append(np.stack([t.chain_row, np.zeros_like(t.chain_row)], axis=1))
    some = np.unique(np.concatenate(pairs), axis=0)
    some, most, done = some[some[:, 1] >= 0], 1, 0
    for part in expanded(bundle, some[:, 0]):
        for row, n in zip(part, some[done : done + len(part), 1].tolist()):
            tokens = np.flatnonzero(np.unpackbits((row & ~bits[n]).view(np.uint8), bitorder="little"))
            most = max(most, int(lengths[tokens].max(initial=0)))
        done += len(part)
    return most
