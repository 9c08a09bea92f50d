"""What walks find, each exists once: pieces, and the results of states by the pieces that they are made of.

A *piece* is what one walk finds, or a list of tokens that a row has besides. The row, the profile
and the other results of a state follow from the sequence of its pieces and special tokens, its *key*: so they are put
together once per distinct key.

Leaves out   the walks (walk.py).
Arrays       a piece is a sequence of int32: most increments (0 where a walk was for several counter values), most
             frames, flags (1: pushed, 2: decided against a tool), number of tokens, the tokens, node, R, node, R, …;
             number 0 is the empty one.  A key: mode, | 2 where a special token decides against a tool, then pieces, and
             -1 - token for special tokens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.memory import BARE, kernel

from ..automata.pool import Pool, intern, room
from .ladders import MOST_STEPS, Space

HEAD = 4  # numbers before the tokens of a piece
_SLOTS = 1 << 16
_BY_VALUE = 1 << 12  # walks that a state may have at values near a threshold
_ROUND_BITS = 20  # 23 are there
_LONGEST_CUT = 10 + 4 * MOST_STEPS


class Memo(NamedTuple):
    """What `walk_states` remembers.

    round_ int64 [2]: counts up whenever the walks by first byte and op are forgotten, and how many are known;
    slots int64 [power of two, 3]: round << 40 | op << 8 | byte, where it is of another round free; for which values of
    the counter, 2 * value + 1 or, for all above a threshold (-1: none) that are far enough from the next one,
    2 * threshold + 2 (-2 - threshold stands where one walk for several values fails); number of the piece, | the value
    below which it is that one << 32, of no matter where values share it;
    pieces, keys: arrays of two pools;  found int32 [·, 6]: per key what `walk_states` gives;  space: scratch
    (ladders.py);  cuts: arrays of a pool;  lower int32 [·, MOST_STEPS]: see `lower_pieces`.
    """

    round_: np.ndarray
    slots: np.ndarray
    pieces: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    keys: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    found: np.ndarray
    space: Space
    cuts: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    lower: np.ndarray


class Pieces:
    """Pieces and keys of walks through a trie so deep that find at most so many tokens and records each, beside so many
    special tokens."""

    def __init__(self, tokens: int, records: int, specials: int, depth: int) -> None:
        self.pieces = Pool(HEAD + tokens + records, expected=2048, length=64)
        self.keys = Pool(256 + 2 + specials, expected=2048, length=16)
        self._round = np.zeros(2, np.int64)
        self._slots = np.zeros((_SLOTS, 3), np.int64)
        self._used = _SLOTS
        self._found = np.zeros((self.keys.places, 6), np.int32)
        self._cuts = Pool(_LONGEST_CUT, expected=512, length=16)
        self._lower = np.zeros((self._cuts.places, MOST_STEPS), np.int32)
        self._space = Space.make(records, depth)
        self._add_empty()

    def _add_empty(self) -> None:
        self.add(np.zeros(0, np.int32), np.zeros(1, np.int64))

    @property
    def nbytes(self) -> int:
        """Of the arrays."""
        pools = self.pieces.nbytes + self.keys.nbytes + self._cuts.nbytes
        return pools + self._slots.nbytes + self._found.nbytes + self._lower.nbytes

    def expect(self, rows: int, counts: bool) -> None:
        """Walks by first byte and op of an automaton with so many op rows, which counts or does not: what is small
        stays in the cache."""
        self._used = min(_SLOTS, 1 << (4 * rows + (_BY_VALUE if counts else 64)).bit_length())

    def clear(self) -> None:
        """Forget all and keep the room."""
        self.pieces.clear()
        self.keys.clear()
        self._cuts.clear()
        self.forget()
        if self._round[0] >> _ROUND_BITS:
            self._round[0] = 1
            self._slots.fill(0)
        self._add_empty()

    @property
    def limits(self) -> tuple[int, int]:
        """The longest piece and the longest key."""
        return self.pieces.longest, self.keys.longest

    @property
    def memo(self) -> Memo:
        """As the kernels take it."""
        return Memo(
            self._round, self._slots[: self._used], self.pieces.arrays, self.keys.arrays, self._found, self._space,
            self._cuts.arrays, self._lower,
        )  # fmt: skip

    def forget(self) -> None:
        """Forget the walks by first byte and op: the next ones are over another trie, or in another mode."""
        self._round[0] += 1
        self._round[1] = 0

    def grow(self) -> None:
        """Make room for more."""
        self.pieces.grow()
        self.keys.grow()
        self._cuts.grow()
        self._found = _with_rows(self._found, self.keys.places)
        self._lower = _with_rows(self._lower, self._cuts.places)

    def add(self, tokens: np.ndarray, ends: np.ndarray, narrows: bool = False) -> np.ndarray:
        """Numbers int32 [·] of the pieces that are lists of tokens, int32, one behind the other; ``narrows``: of states
        that may decide against a tool."""
        out = np.empty(ends.size, np.int32)
        at = 0
        while (at := _add(self.pieces.arrays, self.pieces.longest, tokens, ends, narrows, at, out)) < ends.size:
            self.pieces.grow()
        return out


def _with_rows(table: np.ndarray, rows: int) -> np.ndarray:
    """A table int32 [·, ·] with room for so many rows."""
    if len(table) == rows:
        return table
    return np.concatenate([table, np.zeros((rows - len(table), table.shape[1]), np.int32)])


@kernel()
def _add(pieces, longest, tokens, ends, narrows, at, out):  # type: ignore[no-untyped-def]
    """Intern lists from number ``at`` on; returns the number of the first one that found no room."""
    data, offset, table, count = pieces
    for j in range(at, ends.size):
        if not room(data, offset, table, count, longest):
            return j
        first = ends[j - 1] if j > 0 else 0
        size = ends[j] - first
        begin = np.int64(offset[count[0]])
        data[begin] = data[begin + 1] = 0
        data[begin + 2] = narrows << 1
        data[begin + 3] = size
        for i in range(size):
            data[begin + HEAD + i] = tokens[first + i]
        out[j] = intern(data, offset, table, count, begin + HEAD + size)
    return ends.size


@kernel(**BARE)
def intern_piece(pieces, end, records, begin2, result):  # type: ignore[no-untyped-def]
    """The number of the piece whose tokens were written behind the others, up to ``end``.

    Args:
        records: int32, holds its records from ``begin2`` on;  result: as a walk gives it.
    """
    data, offset, table, count = pieces
    begin = np.int64(offset[count[0]])
    data[begin] = result[2]
    data[begin + 1] = result[3]
    data[begin + 2] = result[4] | result[5] << 1
    data[begin + 3] = end - begin - HEAD
    for k in range(begin2, result[1]):
        data[end] = records[k]
        end += 1
    return intern(data, offset, table, count, end)


@kernel(**BARE)
def piece_at(pieces, source, parts, value, space):  # type: ignore[no-untyped-def]
    """The number of the piece that holds what was found in the parts of one value, see `Space`.

    Args:
        source: number of the piece of all that was found in these ``parts`` parts.
    """
    data, offset, table, count = pieces
    below = space.below
    begin = np.int64(offset[count[0]])
    for k in range(3):
        data[begin + k] = 0
    first, end = np.int64(offset[source]) + HEAD, begin + HEAD
    for column in range(8, 10):  # tokens, then records
        last = np.int64(0)
        for k in range(parts):
            if below[k, 0] <= value <= below[k, 1]:
                for i in range(first + last, first + below[k, column]):
                    data[end] = data[i]
                    end += 1
                data[begin] = max(data[begin], below[k, 10])
                data[begin + 1] = max(data[begin + 1], below[k, 11])
                data[begin + 2] |= below[k, 12] | below[k, 13] << 1
            last = below[k, column]
        if column == 8:
            data[begin + 3] = end - begin - HEAD
            first += last
    return intern(data, offset, table, count, end)


@kernel(**BARE)
def cuts_fit(cuts):  # type: ignore[no-untyped-def]
    """Whether `lower_pieces` can be called."""
    data, offset, table, count = cuts
    return room(data, offset, table, count, _LONGEST_CUT)


@kernel(**BARE)
def lower_pieces(memo, source, parts, steps):  # type: ignore[no-untyped-def]
    """What states of a ladder below the one that was walked find, by their height: a row of ``memo.lower``.

    A token or record says by itself behind how many rungs it comes. So equal pieces of two ladders with the same rungs
    fall apart into equal ones, if walks met counters, frames and decisions behind as many rungs, too.

    Args:
        memo: see `Memo`; its ``space`` holds the parts and the rungs, its ``lower`` receives -1 for what nobody has
            made yet.
        source, parts: as for `piece_at`;  steps: how many states there are below.
    """
    data, offset, table, count = memo.cuts
    below, bits, way = memo.space.below, memo.space.bytes_, memo.space.way
    for level in range(steps):
        for k in range(4):
            way[level, k] = 0
    for part in range(parts):
        level = below[part, 0]
        if level < steps:
            for k in range(4):
                way[level, k] = max(way[level, k], below[part, 10 + k])
    end = np.int64(offset[count[0]])
    data[end], data[end + 1] = source, steps
    end += 2
    for word in range(4):
        data[end], data[end + 1] = bits[0, word] & np.uint64(0xFFFFFFFF), bits[0, word] >> np.uint64(32)
        end += 2
    most = tallest = marks = np.int64(0)
    for level in range(steps):
        mark = way[level, 2] | way[level, 3] << 1
        if way[level, 0] > most or way[level, 1] > tallest or mark & ~marks:
            most, tallest, marks = max(most, way[level, 0]), max(tallest, way[level, 1]), marks | mark
            data[end], data[end + 1], data[end + 2], data[end + 3] = level, most, tallest, marks
            end += 4
    known = count[0]
    n = intern(data, offset, table, count, end)
    if n == known:
        memo.lower[n, :steps] = -1
    return n
