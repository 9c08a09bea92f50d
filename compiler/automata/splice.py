"""The states of plain text inside a frame: automata of terminals, and literals, put in as blocks.

The states of a block are numbered when it is asked for; its moves are made for all blocks of one automaton at once.

Leaves out   the states around (nfa.py).
Invariants   a state of a terminal that accepts and goes nowhere is the state behind the terminal itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

from .dfa import Dfa

if TYPE_CHECKING:
    from .nfa import Nfa


@dataclass(frozen=True)
class Piece:
    """An automaton as a block. A state of it is a place: 0 the entry, 1 what is behind, 2 and on the states of its own.

    Attributes:
        own: how many states there are.
        moves: int32 [·, 3]: source, number in ``masks`` or -1 where nothing is read, target.
        masks: sets of symbols as bit masks.
    """

    own: int
    moves: np.ndarray
    masks: list[int]


def piece_of(dfa: Dfa) -> Piece:
    """An automaton as a block, made once."""
    found = dfa.__dict__.get("_piece")
    if found is None:
        found = dfa.__dict__["_piece"] = _make(dfa)
    return found


def _make(dfa: Dfa) -> Piece:
    size, classes = dfa.next_state.shape
    state, column = np.nonzero(dfa.next_state >= 0)
    pair, first, which = np.unique(state * size + dfa.next_state[state, column], return_index=True, return_inverse=True)
    member = np.zeros((len(pair), classes), bool)
    member[which, column] = True
    packed = np.packbits(member[:, dfa.class_of_byte], axis=1, bitorder="little")
    known: dict[bytes, int] = {}
    texts = np.ascontiguousarray(packed).view("S32").ravel().tolist()  # without the zeros at the end
    mask = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    moves = np.zeros(size, bool)
    moves[state] = True
    behind = dfa.accepting & ~moves
    behind[0] = False
    place = np.ones(size, np.int32)
    place[0] = 0
    place[1:][~behind[1:]] = np.arange(2, 2 + size - 1 - int(behind.sum()), dtype=np.int32)
    order = np.argsort(first, kind="stable")  # by the first class of every target, state by state
    source, target = np.divmod(pair[order], size)
    edges = np.stack([place[source], mask[order], place[target]], axis=1)
    ends = [(end, -1, 1) for end in place[dfa.accepting].tolist() if end != 1]
    masks = [int.from_bytes(one, "little") for one in known]
    return Piece(int(place.max()) - 1, np.concatenate([edges, np.array(ends, np.int32).reshape(-1, 3)]), masks)


class Splices:
    """Blocks of an NFA that have their states and wait for their moves."""

    def __init__(self, nfa: Nfa) -> None:
        self.nfa = nfa
        self._uses: dict[int, tuple[list[int], int]] = {}  # automaton → entry, back, first state, …; states
        self._texts: list[bytes] = []
        self._ends: list[int] = []  # entry, back, first state of its own of every text

    def terminal(self, number: int, entry: int, back: int) -> None:
        """Read a text of an automaton, by its number, between two states."""
        found = self._uses.get(number)
        if found is None:
            found = self._uses[number] = [], piece_of(self.nfa.pool.dfas[number]).own
        uses, own = found
        place = self.nfa.place
        uses += (entry, back, len(place))
        place += [place[back]] * own

    def literal(self, text: bytes, entry: int, back: int) -> None:
        """Read these bytes between two states."""
        place = self.nfa.place
        self._texts.append(text)
        self._ends += (entry, back, len(place))
        place += [place[back]] * (len(text) - 1)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Of every block its entry, the first state of its own, and how many it has."""
        for uses, own in self._uses.values():
            yield from zip(uses[::3], uses[2::3], repeat(own))
        yield from zip(self._ends[::3], self._ends[2::3], (len(text) - 1 for text in self._texts), strict=True)

    def finish(self) -> None:
        """Give all blocks their moves."""
        if self._uses:
            self._finish_terminals()
        if self._texts:
            self._finish_literals()

    def _finish_terminals(self) -> None:
        nfa = self.nfa
        pieces = [piece_of(nfa.pool.dfas[number]) for number in self._uses]
        use = np.array(list(chain.from_iterable(uses for uses, _ in self._uses.values())), np.int32).reshape(-1, 3)
        use[:, 2] -= 2  # so that a place is the number of the state from there
        masks = np.array([nfa.mask(mask) for one in pieces for mask in one.masks], np.int32)
        # Per piece: how many uses, moves and masks there are, and where the last two begin.
        uses, moves, sets = np.array(
            [(len(uses) // 3, len(one.moves), len(one.masks)) for one, (uses, _) in zip(pieces, self._uses.values())]
        ).T
        first_move, first_mask = np.cumsum(moves) - moves, np.cumsum(sets) - sets
        size = np.repeat(moves, uses)  # of every use
        which = np.repeat(np.arange(len(use)), size)  # of every move, as all arrays from here on
        shift = np.repeat(first_move, uses) - (np.cumsum(size) - size)
        rows = np.concatenate([one.moves for one in pieces])[np.arange(len(which)) + shift[which]]
        source, target = _states(use, which, rows[:, 0]), _states(use, which, rows[:, 2])
        reads = rows[:, 1] >= 0
        edges = np.zeros((int(np.count_nonzero(reads)), 4), np.int32)
        edges[:, 0], edges[:, 2] = source[reads], target[reads]
        edges[:, 1] = masks[(np.repeat(first_mask, uses)[which] + rows[:, 1])[reads]]
        free = np.zeros((len(rows) - len(edges), 3), np.int32)
        free[:, 0], free[:, 1] = source[~reads], target[~reads]
        nfa.edges.blocks.append(edges)
        nfa.free.blocks.append(free)

    def _finish_literals(self) -> None:
        nfa = self.nfa
        entry, back, first = np.array(self._ends, np.int32).reshape(-1, 3).T
        length = np.array(list(map(len, self._texts)), np.int32)
        data = np.frombuffer(b"".join(self._texts), np.uint8)
        end = np.cumsum(length, dtype=np.int32)
        begin = end - length
        state = np.arange(len(data), dtype=np.int32) + np.repeat(first - begin, length)  # behind each byte
        edges = np.zeros((len(data), 4), np.int32)
        edges[:, 0], edges[:, 2] = state - 1, state
        edges[end - 1, 2], edges[begin, 0] = back, entry
        number = np.zeros(256, np.int32)
        used = np.flatnonzero(np.bincount(data))
        number[used] = [nfa.mask(1 << byte) for byte in used.tolist()]
        edges[:, 1] = number[data]
        nfa.edges.blocks.append(edges)


def _states(use: np.ndarray, which: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The states at places of blocks."""
    return use[which, np.minimum(place, 2)] + np.where(place > 1, place, 0)
