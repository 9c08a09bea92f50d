"""Turn the automaton of a terminal into a block of NFA moves, once for all of its uses.

Leaves out   where blocks are put: splice.py. The automaton: ../terminals.
Invariants   a state that accepts and goes nowhere is the state behind the terminal itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolc.runtime.jit.memory import kernel

from ..terminals.dfa import Dfa


@dataclass(frozen=True)
class Block:
    """An automaton as a block. A state of it is a place: 0 the entry, 1 what is behind, 2 and on the states of its own.

    Attributes:
        own: how many states there are.
        moves: int32 [·, 3]: source, number in ``masks`` or -1 where nothing is read, target.
        reads: how many moves read something.
        masks: sets of symbols as bit masks.
    """

    own: int
    moves: np.ndarray
    reads: int
    masks: list[int]


def block_of(dfa: Dfa) -> Block:
    """An automaton as a block, made once."""
    found = dfa.__dict__.get("_block")
    if found is None:
        found = dfa.__dict__["_block"] = _make(dfa)
    return found


def _make(dfa: Dfa) -> Block:
    size, classes = dfa.next_state.shape
    moves = np.empty((size * classes + size, 3), np.int32)
    sets = np.empty((size * classes, 4), np.uint64)
    own, rows, count = _moves(dfa.next_state, dfa.class_of_byte, dfa.accepting, moves, sets)
    masks = [int.from_bytes(one, "little") for one in sets[:count].view("V32").ravel().tolist()]
    return Block(own, moves[:rows].copy(), int(np.count_nonzero(moves[:rows, 1] >= 0)), masks)


@kernel()
def _moves(table, class_of_byte, accepting, moves, sets):  # type: ignore[no-untyped-def]
    """Write the moves of a block: state by state and there by the first class of every target, then what reads nothing;
    and the sets of symbols, uint64 [·, 4]: by the first state and there by target.

    Returns:
        how many states of its own there are, how many moves, how many sets.
    """
    size, classes = table.shape
    place = np.empty(size, np.int64)
    own = 0
    for s in range(size):
        live = not accepting[s]
        for k in range(classes):
            live |= table[s, k] >= 0
        place[s] = 0 if s == 0 else 2 + own if live else 1
        own += s > 0 and live
    bits = np.zeros((classes, 4), np.uint64)
    for byte in range(256):
        bits[class_of_byte[byte], byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)
    room = 16
    while room < 2 * size * classes:
        room *= 2
    known = np.full(room, -1, np.int64)
    at = np.full(size, -1, np.int64)  # of a target, its place among those of a state, by first class
    targets = np.empty(classes, np.int64)  # ascending
    of = np.empty((classes, 4), np.uint64)
    rows = count = 0
    for s in range(size):
        found = 0
        for k in range(classes):
            t = table[s, k]
            if t < 0:
                continue
            n = at[t]
            if n < 0:
                n = at[t] = found
                i = found
                while i > 0 and targets[i - 1] > t:
                    targets[i] = targets[i - 1]
                    i -= 1
                targets[i] = t
                found += 1
                for word in range(4):
                    of[n, word] = bits[k, word]
            else:
                for word in range(4):
                    of[n, word] |= bits[k, word]
        for i in range(found):
            t = targets[i]
            n = at[t]
            at[t] = -1
            h = np.uint64(0)
            for word in range(4):
                h = (h ^ of[n, word]) * np.uint64(0x9E3779B97F4A7C15)
                h ^= h >> np.uint64(29)
            slot = np.int64(h & np.uint64(room - 1))
            while known[slot] >= 0:
                word = 0
                while word < 4 and sets[known[slot], word] == of[n, word]:
                    word += 1
                if word == 4:
                    break
                slot = (slot + 1) & (room - 1)
            if known[slot] < 0:
                known[slot] = count
                for word in range(4):
                    sets[count, word] = of[n, word]
                count += 1
            moves[rows + n, 0], moves[rows + n, 1], moves[rows + n, 2] = place[s], known[slot], place[t]
        rows += found
    for s in range(size):
        if accepting[s] and place[s] != 1:
            moves[rows, 0], moves[rows, 1], moves[rows, 2] = place[s], -1, 1
            rows += 1
    return own, rows, count
