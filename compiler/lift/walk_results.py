"""Intern what walks find: pieces, and the results of states by the pieces that they are made of.

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

from toolc.runtime.jit.memory import BARE, kernel, read_int, read_long, write_int

from ..terminals.pool import Pool, intern, room

HEAD = 4  # numbers before the tokens of a piece
_SLOTS = 1 << 16
_BY_VALUE = 1 << 12  # walks that a state may have at values near a threshold
_ROUND_BITS = 20  # 23 are there
MOST_VALUES = 64  # of a counter that one walk is for


class Space(NamedTuple):
    """What walks along the first bytes of states work in.

    segment int32 [1, 6], result int64 [6]: see `_walk` (walk.py).
    below int64 [14, ·]: *parts* of what lies below a place, in the order of the trie. First of each stands from which
    to which value of the counter it is found; then what is walked: places of its first node, after its last, and of the
    parent, state, counter, increments; or a single node that is entered, and -1 for the place after the last. Last
    stand the tokens and records that were found, so far, and numbers 2 to 5 of the walk's result.
    way int64 [depth, 7]: by depth a place, that of its next child, and that after the last; state, increments, first
    and last value;  bytes_ uint64 [depth, 4]: bytes, as in children.py.
    changes bool [MOST_VALUES + 2]: by value, from the first one on, whether other parts are found than before it.
    firsts int64 [256, 4]: of the first bytes of a state the place, the byte, the piece, and below which counter value
    it is that one.
    """

    segment: np.ndarray
    result: np.ndarray
    below: np.ndarray
    way: np.ndarray
    bytes_: np.ndarray
    changes: np.ndarray
    firsts: np.ndarray

    @staticmethod
    def make(parts: int, depth: int) -> Space:
        """With room for what lies below a place in so many parts, in a trie of this depth."""
        below = np.empty((14, parts + 4), np.int64)  # pages that nobody writes to cost nothing
        way, bytes_ = np.zeros((depth + 1, 7), np.int64), np.zeros((depth + 1, 4), np.uint64)
        changes, firsts = np.zeros(MOST_VALUES + 2, np.bool_), np.zeros((256, 4), np.int64)
        return Space(np.zeros((1, 6), np.int32), np.zeros(6, np.int64), below, way, bytes_, changes, firsts)


class Memo(NamedTuple):
    """What `walk_states` remembers.

    round_ int64 [2]: counts up whenever the walks by first byte and op are forgotten, and how many are known;
    slots int64 [power of two, 3]: round << 40 | op << 8 | byte, where it is of another round free; for which values of
    the counter, 2 * value + 1 or, for all above a threshold (-1: none) that are far enough from the next one,
    2 * threshold + 2 (-2 - threshold stands where one walk for several values fails); number of the piece, | the value
    below which it is that one << 32, of no matter where values share it;
    pieces, keys: arrays of two pools;  found int32 [·, 6]: per key what `walk_states` gives;  space: scratch.
    """

    round_: np.ndarray
    slots: np.ndarray
    pieces: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    keys: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    found: np.ndarray
    space: Space


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
        self._space = Space.make(records, depth)
        self.add(np.zeros(0, np.int32), np.zeros(1, np.int64))  # the empty piece

    def expect(self, rows: int, counts: bool) -> None:
        """Walks by first byte and op of an automaton with so many op rows, which counts or does not: what is small
        stays in the cache."""
        self._used = min(_SLOTS, 1 << (4 * rows + (_BY_VALUE if counts else 64)).bit_length())

    @property
    def limits(self) -> tuple[int, int]:
        """The longest piece and the longest key."""
        return self.pieces.longest, self.keys.longest

    @property
    def memo(self) -> Memo:
        """As the kernels take it."""
        slots = self._slots[: self._used]
        return Memo(self._round, slots, self.pieces.arrays, self.keys.arrays, self._found, self._space)

    def forget(self) -> None:
        """Forget the walks by first byte and op: the next ones are over another trie, or in another mode."""
        self._round[0] += 1
        self._round[1] = 0

    def grow(self) -> None:
        """Make room for more."""
        self.pieces.grow()
        self.keys.grow()
        self._found = _with_rows(self._found, self.keys.places)

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
    size = 8 * space.below.shape[1]
    low = space.below.ctypes.data
    high, most, tallest, pushed, narrowed = (
        low + size,
        low + 10 * size,
        low + 11 * size,
        low + 12 * size,
        low + 13 * size,
    )
    tokens = data.ctypes.data
    begin = np.int64(offset[count[0]])
    head = np.int64(0), np.int64(0), np.int64(0)
    first, end = np.int64(offset[source]) + HEAD, begin + HEAD
    for column in range(8, 10 if space.below[9, parts - 1] > 0 else 9):  # tokens, then records
        last, ends = np.int64(0), low + column * size
        for k in range(parts):
            beyond = read_long(ends, k)
            if read_long(low, k) <= value <= read_long(high, k):
                for i in range(last, beyond):
                    write_int(tokens, end, read_int(tokens, first + i))
                    end += 1
                head = (
                    max(head[0], read_long(most, k)),
                    max(head[1], read_long(tallest, k)),
                    head[2] | read_long(pushed, k) | read_long(narrowed, k) << 1,
                )
            last = beyond
        if column == 8:
            data[begin + 3] = end - begin - HEAD
            first += last
    data[begin], data[begin + 1], data[begin + 2] = head
    return intern(data, offset, table, count, end)
