"""Splice automata of terminals and literals into the NFA as blocks.

The states of a block are numbered when it is asked for; its moves are made for all blocks of one automaton at once.

Leaves out   the states around (nfa.py).
Invariants   a state of a terminal that accepts and goes nowhere is the state behind the terminal itself.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from toolc.runtime.jit.memory import kernel

from ..terminals.dfa import Dfa

if TYPE_CHECKING:
    from .nfa import Nfa


@dataclass(frozen=True)
class Piece:
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


def piece_of(dfa: Dfa) -> Piece:
    """An automaton as a block, made once."""
    found = dfa.__dict__.get("_piece")
    if found is None:
        found = dfa.__dict__["_piece"] = _make(dfa)
    return found


def _make(dfa: Dfa) -> Piece:
    size, classes = dfa.next_state.shape
    moves = np.empty((size * classes + size, 3), np.int32)
    sets = np.empty((size * classes, 4), np.uint64)
    own, rows, count = _moves(dfa.next_state, dfa.class_of_byte, dfa.accepting, moves, sets)
    masks = [int.from_bytes(one, "little") for one in sets[:count].view("V32").ravel().tolist()]
    return Piece(own, moves[:rows].copy(), int(np.count_nonzero(moves[:rows, 1] >= 0)), masks)


@kernel()
def _moves(table, class_of_byte, accepting, moves, sets):  # type: ignore[no-untyped-def]
    """Write the moves of a piece: state by state and there by the first class of every target, then what reads nothing;
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


@kernel()
def _place(use, sizes, moves, masks, edges, free):  # type: ignore[no-untyped-def]
    """Write the moves of all blocks of terminals, piece by piece and there use by use.

    Args:
        use: int32 [·, 3]: entry, back, first state of its own of every use.
        sizes: int64 [pieces, 4]: how many uses, moves that read, moves that do not, and masks each piece has.
        moves: int32 [·, 3]: those of the pieces;  masks: int32 [·]: numbers of their masks.
        edges, free: int32 [·, 4], int32 [·, 3], receive the moves, as in `Nfa`.
    """
    first_use, first_move, first_mask, n, f = 0, 0, 0, 0, 0
    state = np.empty(2, np.int32)
    for p in range(sizes.shape[0]):
        end = first_move + sizes[p, 1] + sizes[p, 2]
        for u in range(first_use, first_use + sizes[p, 0]):
            for i in range(first_move, end):
                for k in range(2):
                    place = moves[i, 2 * k]
                    state[k] = use[u, place] if place < 2 else use[u, 2] + place - 2
                if moves[i, 1] >= 0:
                    mask = masks[first_mask + moves[i, 1]]
                    edges[n, 0], edges[n, 1], edges[n, 2], edges[n, 3] = state[0], mask, state[1], 0
                    n += 1
                else:
                    free[f, 0], free[f, 1], free[f, 2] = state[0], state[1], 0
                    f += 1
        first_use += sizes[p, 0]
        first_move = end
        first_mask += sizes[p, 3]


@kernel()
def _place_texts(use, length, data, number, edges):  # type: ignore[no-untyped-def]
    """Write the moves of all blocks of literals.

    Args:
        use: int32 [·, 3]: entry, back, first state of its own of every text.
        length: int32 [·];  data: uint8: the texts.
        number: int32 [256]: of the set of each byte;  edges: int32 [·, 4], receives the moves, as in `Nfa`.
    """
    n = 0
    for t in range(length.size):
        source = use[t, 0]
        for i in range(length[t]):
            target = use[t, 1] if i == length[t] - 1 else use[t, 2] + i
            edges[n, 0], edges[n, 1], edges[n, 2], edges[n, 3] = source, number[data[n]], target, 0
            source = target
            n += 1


def splice_terminals(nfa: Nfa, use: np.ndarray) -> None:
    """Give the blocks of terminals their moves.

    Args:
        use: int32 [·, 4]: node, entry, back, first state of its own of every use.
    """
    if not len(use):
        return
    uses = Counter(use[:, 0].tolist())  # in the order of their first use
    nodes, dfas = nfa.pool.nodes, nfa.pool.dfas
    pieces = [piece_of(dfas[nodes[node][1]]) for node in uses]
    place = np.zeros(max(uses) + 1, np.int32)
    place[list(uses)] = np.arange(len(uses))
    use = np.ascontiguousarray(use[np.argsort(place[use[:, 0]], kind="stable"), 1:])
    masks = np.array(nfa.mask_numbers(chain.from_iterable(one.masks for one in pieces)), np.int32)
    sizes = np.array(
        [
            (count, one.reads, len(one.moves) - one.reads, len(one.masks))
            for one, count in zip(pieces, uses.values(), strict=True)
        ],
        np.int64,
    )
    edges = np.empty((int(sizes[:, 0] @ sizes[:, 1]), 4), np.int32)
    free = np.empty((int(sizes[:, 0] @ sizes[:, 2]), 3), np.int32)
    _place(use, sizes, np.concatenate([one.moves for one in pieces]), masks, edges, free)
    nfa.edges.blocks.append(edges)
    nfa.free.blocks.append(free)


def splice_literals(nfa: Nfa, use: np.ndarray) -> None:
    """The same of literals."""
    if not len(use):
        return
    nodes = nfa.pool.nodes
    texts = [nodes[n][1] for n in use[:, 0].tolist()]
    data = np.frombuffer(b"".join(texts), np.uint8)
    used = np.flatnonzero(np.bincount(data))
    number = np.zeros(256, np.int32)
    number[used] = nfa.mask_numbers(1 << byte for byte in used.tolist())
    edges = np.empty((len(data), 4), np.int32)
    length = np.array(list(map(len, texts)), np.int32)
    _place_texts(np.ascontiguousarray(use[:, 1:]), length, data, number, edges)
    nfa.edges.blocks.append(edges)
