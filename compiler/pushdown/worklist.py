"""Build an NFA from a work list: allocate states, fill in their transitions, the newest first.

A *task* is a state and what is to be read from it: a node, the state that its texts lead to, and the height that they
may have at most, or -1. A state that two tasks would share, equal but for the state, is there once.

Leaves out   nodes about which there is something to decide, such as repeats that may be counted: nfa.py is asked
             (`Filling.run`). The moves inside of terminals and literals (splice.py), those at borders of regions
             (copied_transitions.py).
Invariants   states are numbered as they are met. Indices are not checked (see runtime/jit/memory.py).
Arrays       int32; `kind` [nodes], `item` [·] the nodes inside of node n from item_offset[n] on, behind the names of
             rules; `own` [nodes] states inside of a terminal or literal; `height` [nodes]; `deeper` [nodes]: whether
             some texts are higher than others, so that a call has a shallow frame too; `mark` [nodes]: of the name of
             a marked rule its mark (regions.py); `frame_of` [2 * nodes]: number of the frame of a called node, then of
             its shallow one, or -1.
             Growing: `place` [states, 3]: frame, counted loop around or -1, region; `task` [·, 4]: state, of a first
             one ~state, node, back, height; `known` [·, 4]: node, back, height, state; `free` [·, 3], `call` [·, 5], a
             state and a row as in `Nfa`; `use`, `text` [·, 4]: node, entry, back, first state of its own, of terminals
             and of literals; `frame` [·, 3]: twice the called node, one more if shallow, first state, last state;
             `fresh`, `behind`, `skipped` [·, 2], as in `Nfa`.
             `slot` [power of two]: a hash table of numbers in `known`, -1 is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.tables import ARGUMENTS
from toolc.runtime.jit.memory import BARE, address_of, kernel, read_int, read_long, write_int, write_long

from .blocks import block_of
from .node_analysis import Facts
from .nodes import CALL, CHOICE, LITERAL, QUOTED, REF, REPEAT, SEQUENCE, TERMINAL
from .regions import OUTSIDE, inside, number_of

_COLUMNS = {
    "place": 3, "task": 4, "known": 4, "free": 3, "use": 4, "text": 4, "call": 5, "frame": 3, "fresh": 2, "behind": 2,
    "skipped": 2,
}  # fmt: skip
_USUAL = (32, 4, 8, 8, 4, 4, 1, 1, 1, 1, 1)  # rows of these for each node
_FIXED = ("kind", "item_offset", "item", "own", "height", "deeper", "mark", "frame_of", "slot")
_FIELD = {name: number for number, name in enumerate((*_FIXED, *_COLUMNS))}
_COUNT = {name: _FIELD[name] + len(_COLUMNS) for name in _COLUMNS}
_STATES, _FRAMES = _COUNT["place"], _COUNT["frame"]
(KIND, ITEM_OFFSET, ITEM, OWN, HEIGHT, DEEPER, MARK, FRAME_OF, SLOT, PLACE, TASK, KNOWN, FREE, USE, TEXT, CALLS, FRAME,
 FRESH, BEHIND, SKIPPED) = map(np.int64, range(len(_FIELD)))  # fmt: skip
# Numbers in the table of addresses: behind those of the growing arrays how many rows each has, and has room for.
_GROWING = np.int64(len(_COLUMNS))
_ROOM = 2 * _GROWING
EMPTY, MASK, MOST, LIMIT = map(np.int64, range(SKIPPED + _ROOM + 1, SKIPPED + _ROOM + 5))
ONE = np.int64(1)
# Kinds beside those of nodes: `X*`, the name of a marked rule, whatever nfa.py is asked about, a string.
_LOOP, _MARK, _ASK, _OR_CALLED = 32, 33, 34, 64
_KINDS = np.full(10, _ASK, np.int32)
_KINDS[[LITERAL, TERMINAL, SEQUENCE, CHOICE]] = LITERAL, TERMINAL, SEQUENCE, CHOICE
DONE, FULL, PAUSED, ASK = map(np.int64, range(4))
_BATCH = 1024  # states made between two looks at the budget


class Place(NamedTuple):
    """Where a state lies: its frame, the counted loop around it or -1, its region."""

    instance: int
    scope: int
    region: int


@kernel(**BARE)
def _count(w, field):  # type: ignore[no-untyped-def]
    return read_long(w, field + _GROWING)


@kernel(**BARE)
def _row(w, field, a, b, c, d):  # type: ignore[no-untyped-def]
    """Append a row of four numbers."""
    n = read_long(w, field + _GROWING)
    at = read_long(w, field) + 16 * n
    write_int(at, 0, a)
    write_int(at, 1, b)
    write_int(at, 2, c)
    write_int(at, 3, d)
    write_long(w, field + _GROWING, n + 1)


@kernel(**BARE)
def _pair(w, field, a, b):  # type: ignore[no-untyped-def]
    """Append a row of two numbers."""
    n = read_long(w, field + _GROWING)
    at = read_long(w, field) + 8 * n
    write_int(at, 0, a)
    write_int(at, 1, b)
    write_long(w, field + _GROWING, n + 1)


@kernel(**BARE)
def _three(w, field, a, b, c):  # type: ignore[no-untyped-def]
    """Append a row of three numbers; its number."""
    n = read_long(w, field + _GROWING)
    at = read_long(w, field) + 12 * n
    write_int(at, 0, a)
    write_int(at, 1, b)
    write_int(at, 2, c)
    write_long(w, field + _GROWING, n + 1)
    return n


@kernel(**BARE)
def _states(w, like, count):  # type: ignore[no-untyped-def]
    """The first of so many states in the place of another one."""
    n = read_long(w, PLACE + _GROWING)
    place = read_long(w, PLACE)
    for i in range(3 * n, 3 * (n + count), 3):
        for k in range(3):
            write_int(place, i + k, read_int(place, 3 * like + k))
    write_long(w, PLACE + _GROWING, n + count)
    return n


@kernel(**BARE)
def _alike(w, one, other):  # type: ignore[no-untyped-def]
    """Whether two states lie in one place."""
    place = read_long(w, PLACE)
    alike = True
    for k in range(3):
        alike = alike and read_int(place, 3 * one + k) == read_int(place, 3 * other + k)
    return alike


@kernel(**BARE)
def _free(w, source, target):  # type: ignore[no-untyped-def]
    _three(w, FREE, source, target, 0)


@kernel(**BARE)
def _slot_of(w, node, back, height):  # type: ignore[no-untyped-def]
    """The slot of a task that is known, or the free one for it."""
    h = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ h >> np.uint64(29) ^ np.uint64(back)) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ h >> np.uint64(32) ^ np.uint64(height)) * np.uint64(0x9E3779B97F4A7C15)
    mask = read_long(w, MASK)
    slot = np.int64(h >> np.uint64(20)) & mask
    slots, known = read_long(w, SLOT), read_long(w, KNOWN)
    while read_int(slots, slot) >= 0:
        at = known + 16 * read_int(slots, slot)
        if read_int(at, 0) == node and read_int(at, 1) == back and read_int(at, 2) == height:
            break
        slot = (slot + 1) & mask
    return slot


@kernel(**BARE)
def _know(w, slot, node, back, height, state):  # type: ignore[no-untyped-def]
    """Note a task of a state."""
    write_int(read_long(w, SLOT), slot, _count(w, KNOWN))
    _row(w, KNOWN, node, back, height, state)
    _row(w, TASK, state, node, back, height)


@kernel(**BARE)
def _state(w, node, back, height):  # type: ignore[no-untyped-def]
    """The state from which a text of the node leads to ``back``; its moves are made later."""
    if node == read_long(w, EMPTY):
        return back
    slot = _slot_of(w, node, back, height)
    n = read_int(read_long(w, SLOT), slot)
    if n >= 0:
        return read_int(read_long(w, KNOWN) + 16 * n, 3)
    state = _states(w, back, ONE)
    _know(w, slot, node, back, height, state)
    return state


@kernel(**BARE)
def _begin(w, entry, first, node, back, height):  # type: ignore[no-untyped-def]
    """Let a state be the one from which a text of the node leads to ``back``, and no other."""
    if not first and node != read_long(w, EMPTY) and _alike(w, entry, back):
        slot = _slot_of(w, node, back, height)
        if read_int(read_long(w, SLOT), slot) < 0:
            _know(w, slot, node, back, height, entry)
            return
    _free(w, entry, _state(w, node, back, height))


@kernel(**BARE)
def _has_room(w):  # type: ignore[no-untyped-def]
    """Whether what a task makes fits into every array."""
    fits = True
    for field in range(PLACE, SKIPPED + 1):
        fits = fits and _count(w, field) + read_long(w, MOST) <= read_long(w, field + _ROOM)
    return fits


@kernel(**BARE)
def _state_of(w, node, back, height):  # type: ignore[no-untyped-def]
    """See `_state`; -1 where there is no room."""
    return _state(w, node, back, height) if _has_room(w) else -1


@kernel(**BARE)
def _hash_again(w):  # type: ignore[no-untyped-def]
    """Fill a new table of slots."""
    for n in range(_count(w, KNOWN)):
        at = read_long(w, KNOWN) + 16 * n
        write_int(read_long(w, SLOT), _slot_of(w, read_int(at, 0), read_int(at, 1), read_int(at, 2)), n)


@kernel(**BARE)
def _frame(w, node, shallow):  # type: ignore[no-untyped-def]
    """The number of the frame of a called node, which is there once."""
    known = read_long(w, FRAME_OF)
    key = 2 * node + shallow
    number = read_int(known, key)
    if number < 0:
        number = _count(w, FRAME)
        write_int(known, key, number)
        end = _three(w, PLACE, number, -1, OUTSIDE)
        start = _states(w, end, ONE)
        _row(w, TASK, ~start, node, end, read_int(read_long(w, HEIGHT), node) if shallow else -1)
        _three(w, FRAME, key, start, end)
    return number


@kernel(**BARE)
def _call(w, entry, callee, back, height):  # type: ignore[no-untyped-def]
    shallow = _frame(w, callee, ONE) if read_int(read_long(w, DEEPER), callee) != 0 else np.int64(-1)
    free = _frame(w, callee, np.int64(0)) if height < 0 or shallow < 0 else np.int64(-1)
    n = _count(w, CALLS)
    at = read_long(w, CALLS) + 20 * n
    write_int(at, 0, entry)
    write_int(at, 1, free)
    write_int(at, 2, shallow)
    write_int(at, 3, back)
    write_int(at, 4, 0)
    write_long(w, CALLS + _GROWING, n + 1)


@kernel(**BARE)
def _mark(w, entry, mark, body, back, height):  # type: ignore[no-untyped-def]
    """The text of a marked rule, whose states lie in a region of their own.

    Where its kind is another than that around, no state of the one is shared with the other, so that a state
    tells on which side the last byte was: the first moves of both sides are copied to states at the border. Those
    behind a tool's call are copied to a state of that call, so that the symbol that ends it says whose it was.
    Where no arguments at all are written, that is no end of any, and leads to what is behind them by another way.
    """
    outer = read_int(read_long(w, PLACE), 3 * back + 2)
    region = inside(outer, mark)
    last = _states(w, back, ONE)
    write_int(read_long(w, PLACE), 3 * last + 2, region)
    first = _state(w, body, last, height)
    if region >> 4 != outer >> 4:
        _free(w, entry, first)
        _pair(w, BEHIND, last, back)
    elif region >> 1 == outer >> 1:
        _free(w, entry, first)
        _free(w, last, back)
    else:
        border, after = _states(w, last, ONE), _states(w, back, ONE)
        _free(w, entry, border)
        _free(w, last, after)
        _pair(w, FRESH, border, first)
        _pair(w, FRESH, after, back)
        if region >> 1 & 7 == ARGUMENTS:
            _pair(w, SKIPPED, border, after)


@kernel(**BARE)
def _fill(w):  # type: ignore[no-untyped-def]
    """Make moves until there is no task, an array is nearly full, the budget is to be looked at, or the task is one to
    ask about."""
    while _count(w, TASK) > 0:
        if _count(w, PLACE) > read_long(w, LIMIT):
            return PAUSED
        if not _has_room(w):
            return FULL
        top = _count(w, TASK) - 1
        at = read_long(w, TASK) + 16 * top
        entry, number, back, height = read_int(at, 0), read_int(at, 1), read_int(at, 2), read_int(at, 3)
        first = entry < 0
        if first:
            entry = ~entry
        kind = read_int(read_long(w, KIND), number)
        called = kind >= _OR_CALLED and not first
        kind &= _OR_CALLED - 1
        if not called and (kind == _ASK or (kind == _LOOP and first)):
            return ASK
        write_long(w, TASK + _GROWING, top)
        begin = read_int(read_long(w, ITEM_OFFSET), number)
        end = read_int(read_long(w, ITEM_OFFSET), number + 1)
        item = read_long(w, ITEM)
        if called:
            _call(w, entry, number, back, height)
        elif kind == LITERAL or kind == TERMINAL:  # noqa: SIM109 - see memory.largest_in
            own = _states(w, back, read_int(read_long(w, OWN), number))
            _row(w, TEXT if kind == LITERAL else USE, number, entry, back, own)
        elif kind == CHOICE:
            for i in range(begin, end):
                option = read_int(item, i)
                if height < 0 or read_int(read_long(w, HEIGHT), option) <= height:
                    _free(w, entry, _state(w, option, back, height))
        elif kind == _LOOP:
            # The state is the loop's own head, so in `X (, X)*` both X lead to one state, and are one.
            _free(w, entry, back)
            if height < 0 or read_int(read_long(w, HEIGHT), read_int(item, begin)) <= height:
                _free(w, entry, _state(w, read_int(item, begin), entry, height))
        elif kind == CALL:
            _call(w, entry, read_int(item, begin), back, height)
        elif kind == _MARK:
            _mark(w, entry, read_int(read_long(w, MARK), number), read_int(item, begin), back, height)
        else:  # a sequence, or what is between quotes
            for i in range(end - 1, begin, -1):
                back = _state(w, read_int(item, i), back, height)
            _begin(w, entry, first, read_int(item, begin), back, height)
    return DONE


class Filling:
    """The states and tasks of an NFA.

    Args:
        facts: of the nodes.
        called, inlined: as in `Choices`.
        named: what stands behind the name of a rule, of a node.

    Attributes:
        copies: (first state, the states in whose places it and those behind it are).
    """

    def __init__(
        self, facts: Facts, called: frozenset[int], inlined: frozenset[int], named: Callable[[int], int]
    ) -> None:
        pool = facts.pool
        self._pool, nodes, marks = pool, pool.nodes, pool.grammar.marks
        kind = _KINDS[[node[0] for node in nodes]]
        behind = np.arange(len(nodes), dtype=np.int32)
        own = [0] * len(nodes)
        mark, deeper = np.zeros((2, len(nodes)), np.int32)
        if facts.recursive:
            some = range(len(facts.depth))  # copies of counted terminals have come behind these, and call nothing
            deeper[: len(some)] = list(map(facts.may_be_deeper, some))
        offset, item = [0], []
        longest = 0
        for n, node in enumerate(nodes):
            what = node[0]
            if what in (SEQUENCE, CHOICE):
                item += node[1]
                longest = max(longest, len(node[1]))
            elif what == LITERAL:
                own[n] = len(node[1]) - 1
            elif what == TERMINAL:
                own[n] = block_of(pool.dfas[node[1]]).own
            elif what == REF and node[1] in pool.rules:  # nodes of rules that are gone are there still
                behind[n] = named(n)
                if node[1] in marks:
                    kind[n], mark[n] = _MARK, number_of(marks[node[1]])
                    item.append(pool.rules[node[1]])
            elif what in (QUOTED, CALL):
                kind[n] = CALL if what == CALL and node[1] not in inlined else QUOTED
                item.append(node[1])
            elif what == REPEAT and node[2] == 0 and node[3] is None and not facts.is_marked(node[1]):
                kind[n] = _LOOP  # marks depend on how often they were read
                item.append(node[1])
            offset.append(len(item))
        if called:
            kind[list(called)] |= _OR_CALLED
        table = np.zeros(int(LIMIT) + 1, np.int64)
        self._number = table.data
        self._address = address_of(table)
        self.copies: list[tuple[int, np.ndarray]] = []
        self._array: dict[str, np.ndarray] = {}
        frame_of = np.full(2 * len(nodes), -1)
        fixed = kind, offset, behind[item], own, facts.height, deeper, mark, frame_of
        for name, values in zip(_FIXED, fixed, strict=False):
            self._keep(name, np.array(values, np.int32))
        most = max(own) + longest + 4
        for (name, columns), usual in zip(_COLUMNS.items(), _USUAL, strict=True):
            self._keep(name, np.empty((usual * len(nodes) + 2 * most, columns), np.int32))
        self._spread()
        self._number[EMPTY], self._number[MOST], self._number[LIMIT] = pool.empty, most, _BATCH

    def _keep(self, name: str, array: np.ndarray) -> None:
        self._array[name] = array
        if name == "place":
            self._places = array.reshape(-1).data  # the same, told sooner
        self._number[_FIELD[name]] = address_of(array)
        if name in _COLUMNS:
            self._number[_COUNT[name] + len(_COLUMNS)] = len(array)

    def _spread(self) -> None:
        """Make a table of slots with room for what can be known."""
        slots = np.full(1 << (2 * len(self._array["known"])).bit_length(), -1, np.int32)
        self._number[MASK] = slots.size - 1
        self._keep("slot", slots)
        _hash_again(self._address)

    def _grow(self) -> None:
        """Make room in what is nearly full."""
        for name in _COLUMNS:
            array, used = self._array[name], len(self.rows(name))
            if used + self._number[MOST] > len(array):
                more = np.empty((2 * len(array), array.shape[1]), np.int32)
                more[:used] = array[:used]
                self._keep(name, more)
                if name == "known":
                    self._spread()

    def rows(self, name: str) -> np.ndarray:
        """The rows of a growing array, so far."""
        return self._array[name][: self._number[_COUNT[name]]]

    def _add(self, name: str, *row: int) -> int:
        """Append a row to a growing array; its number."""
        count = _COUNT[name]
        number = self._number[count]
        if number == self._number[count + len(_COLUMNS)]:
            self._grow()
        self._array[name][number] = row
        self._number[count] = number + 1
        return number

    @property
    def size(self) -> int:
        """How many states there are."""
        return self._number[_STATES]

    def place(self, state: int) -> Place:
        """The place of a state."""
        places = self._places
        return Place(places[3 * state], places[3 * state + 1], places[3 * state + 2])

    def new(self, place: tuple[int, int, int]) -> int:
        """A state in a place."""
        return self._add("place", *place)

    def copy(self, states: np.ndarray) -> None:
        """States in the places of others, int32 [·], which come from the same rules."""
        self.copies.append((self.size, states))
        for place in self._array["place"][states].tolist():
            self._add("place", *place)

    def let_first(self, state: int, end: int) -> None:
        """The first frame, which is no node's, goes from one state to another; the oldest task is of that state."""
        assert not self._number[_FRAMES]
        self._add("frame", -2, state, end)
        tasks = self.rows("task")
        if len(tasks) and tasks[0, 0] == state:
            tasks[0, 0] = ~state

    def get(self, node: int, back: int, height: int) -> int:
        """The state from which a text of the node leads to ``back``."""
        state = _state_of(self._address, node, back, height)
        if state < 0:
            self._grow()
            state = _state_of(self._address, node, back, height)
        return state

    def terminal(self, number: int, entry: int, back: int) -> None:
        """Read a text of an automaton, by its number, between two states."""
        own, place, first = block_of(self._pool.dfas[number]).own, self.place(back), self.size
        for _ in range(own):
            self.new(place)
        self._add("use", self._pool.add((TERMINAL, number)), entry, back, first)

    def run(self) -> int:
        """Make moves until there is no task (DONE), the budget is to be looked at (PAUSED), or nfa.py is to be asked
        about the newest task (ASK)."""
        code = int(_fill(self._address))
        while code == FULL:
            self._grow()
            code = int(_fill(self._address))
        if code == PAUSED:
            self._number[LIMIT] = self.size + _BATCH
        return code

    def pop(self) -> tuple[int, int, int, int]:
        """Take the newest task: its state, node, state behind, height."""
        top = self._number[_COUNT["task"]] - 1
        self._number[_COUNT["task"]] = top
        state, node, back, height = self._array["task"][top].tolist()
        return (~state if state < 0 else state), node, back, height

    def begun(self) -> Iterator[tuple[int, int]]:
        """(state, node) of all tasks but those of first states."""
        known = self.rows("known")
        return zip(known[:, 3].tolist(), known[:, 0].tolist(), strict=True)

    @property
    def own(self) -> np.ndarray:
        """int64 [nodes]: states inside of each terminal or literal, those among them that are copied only here."""
        own, pool = self._array["own"].tolist(), self._pool
        own += [block_of(pool.dfas[node[1]]).own for node in pool.nodes[len(own) :] if node[0] == TERMINAL]
        assert len(own) == len(pool.nodes), "only copies of counted terminals are added"
        return np.array(own)
