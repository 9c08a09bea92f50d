"""The states of plain text inside a frame: automata of terminals, and literals, put in as blocks.

The states of a block are numbered when it is asked for; its moves are made for all blocks of one automaton at once.

Leaves out   the states around (nfa.py).
Invariants   a state of a terminal that accepts and goes nowhere is the state behind the terminal itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
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
        source, mask, target: of every move; ``mask`` is a number in ``masks``.
        ends: places from which what is behind follows without reading.
        masks: sets of symbols as bit masks.
    """

    own: int
    source: np.ndarray
    mask: np.ndarray
    target: np.ndarray
    ends: np.ndarray
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
    mask = np.array([known.setdefault(one.tobytes(), len(known)) for one in packed], np.int32)
    moves = np.zeros(size, bool)
    moves[state] = True
    behind = dfa.accepting & ~moves
    behind[0] = False
    place = np.ones(size, np.int32)
    place[0] = 0
    place[1:][~behind[1:]] = np.arange(2, 2 + size - 1 - int(behind.sum()), dtype=np.int32)
    ends = place[dfa.accepting]
    order = np.argsort(first, kind="stable")  # by the first class of every target, state by state
    source, target = np.divmod(pair[order], size)
    masks = [int.from_bytes(one, "little") for one in known]
    return Piece(int(place.max()) - 1, place[source], mask[order], place[target], ends[ends != 1], masks)


class Splices:
    """Blocks of an NFA that have their states and wait for their moves."""

    def __init__(self, nfa: Nfa) -> None:
        self.nfa = nfa
        self._pieces: list[Piece] = []
        self._uses: dict[int, list[int]] = {}  # number of a piece → entry, back, first state of its own, …
        self._number: dict[int, int] = {}  # id of an automaton, which the pool keeps alive → number of its piece
        self._texts: list[bytes] = []
        self._ends: list[int] = []  # entry, back, first state of its own of every text

    def terminal(self, dfa: Dfa, entry: int, back: int) -> None:
        """Read a text of an automaton between two states."""
        number = self._number.get(id(dfa))
        if number is None:
            number = self._number[id(dfa)] = len(self._pieces)
            self._pieces.append(piece_of(dfa))
            self._uses[number] = []
        self._uses[number] += (entry, back, self.nfa.more(self._pieces[number].own, back))

    def literal(self, text: bytes, entry: int, back: int) -> None:
        """Read these bytes between two states."""
        self._texts.append(text)
        self._ends += (entry, back, self.nfa.more(len(text) - 1, back))

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Of every block its entry, the first state of its own, and how many it has."""
        for number, piece in enumerate(self._pieces):
            uses = self._uses[number]
            yield from zip(uses[::3], uses[2::3], repeat(piece.own))
        yield from zip(self._ends[::3], self._ends[2::3], (len(text) - 1 for text in self._texts), strict=True)

    def finish(self) -> None:
        """Give all blocks their moves."""
        nfa = self.nfa
        for number, piece in enumerate(self._pieces):
            uses = np.array(self._uses[number], np.int32).reshape(-1, 3)
            place = np.concatenate([uses[:, :2], uses[:, 2:] + np.arange(piece.own, dtype=np.int32)], axis=1)
            masks = np.array([nfa.mask(m) for m in piece.masks], np.int32)
            edges = np.zeros((len(uses), len(piece.source), 4), np.int32)
            edges[:, :, 0] = place[:, piece.source]
            edges[:, :, 1] = masks[piece.mask]
            edges[:, :, 2] = place[:, piece.target]
            nfa.edges.blocks.append(edges.reshape(-1, 4))
            free = np.zeros((len(uses), len(piece.ends), 3), np.int32)
            free[:, :, 0] = place[:, piece.ends]
            free[:, :, 1] = uses[:, 1:2]
            nfa.free.blocks.append(free.reshape(-1, 3))
        if self._texts:
            self._finish_literals()

    def _finish_literals(self) -> None:
        nfa = self.nfa
        entry, back, first = np.array(self._ends, np.int32).reshape(-1, 3).T
        length = np.array(list(map(len, self._texts)), np.int32)
        data = np.frombuffer(b"".join(self._texts), np.uint8)
        end = np.cumsum(length, dtype=np.int32)
        begin = end - length
        state = np.arange(len(data), dtype=np.int32) + np.repeat(first - begin, length)  # behind each byte
        target, source = state.copy(), state - 1
        target[end - 1], source[begin] = back, entry
        number = np.zeros(256, np.int32)
        for byte in np.unique(data).tolist():
            number[byte] = nfa.mask(1 << byte)
        edges = np.zeros((len(data), 4), np.int32)
        edges[:, 0], edges[:, 1], edges[:, 2] = source, number[data], target
        nfa.edges.blocks.append(edges)
