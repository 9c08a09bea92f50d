"""States of an NFA that are numbered and wait for their moves, and the kernel that makes the moves, the newest first.

A *task* is a state and what is to be read from it: a node, the state that its texts lead to, and the height that they
may have at most, or -1. A state that two tasks would share, equal but for the state, is there once.

Leaves out   nodes about which there is something to decide, such as calls: nfa.py is asked (`Filling.tasks`). The moves
             inside of terminals and literals (splice.py).
Invariants   states are numbered as they are met. Indices are not checked (see runtime/memory.py).
Arrays       int32; `kind` [nodes], `item` [·] the nodes inside of node n from item_offset[n] on, behind the names of
             rules; `own` [nodes] states inside of a terminal or literal; `height` [nodes].
             Growing: `place` [states], number of the place of each; `task` [·, 4]: state, of a first one ~state, node,
             back, height; `known` [·, 4]: node, back, height, state; `free` [·, 3], as in `Nfa`; `use`, `text` [·, 4]:
             node, entry, back, first state of its own, of terminals and of literals.
             `slot` [power of two]: a hash table of numbers in `known`, -1 is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from toolc.runtime.memory import BARE, address_of, kernel, read_int, read_long, write_int, write_long

from .facts import Facts
from .nodes import CALL, CHOICE, LITERAL, QUOTED, REF, REPEAT, SEQUENCE, TERMINAL
from .splice import piece_of

_COLUMNS = {"place": 1, "task": 4, "known": 4, "free": 3, "use": 4, "text": 4}
_USUAL = (32, 4, 8, 8, 4, 4)  # rows of these for each node
_FIELDS = ("kind", "item_offset", "item", "own", "height", "slot", *_COLUMNS)
_FIELD = {name: number for number, name in enumerate(_FIELDS)}
_COUNT = {name: _FIELD[name] + len(_COLUMNS) for name in _COLUMNS}
_STATES = _COUNT["place"]
(KIND, ITEM_OFFSET, ITEM, OWN, HEIGHT, SLOT, PLACE, TASK, KNOWN, FREE, USE, TEXT) = map(np.int64, range(12))
# Numbers in the table of addresses: behind those of the growing arrays how many rows each has, and has room for.
_GROWING = np.int64(len(_COLUMNS))
_ROOM = 2 * _GROWING
EMPTY, MASK, MOST, LIMIT = map(np.int64, range(24, 28))
ONE = np.int64(1)
_LOOP, _ASK, _OR_CALLED = 32, 33, 64  # kinds beside those of nodes: `X*`, whatever nfa.py is asked about, a string
_KINDS = np.full(10, _ASK, np.int32)
_KINDS[[LITERAL, TERMINAL, SEQUENCE, CHOICE]] = LITERAL, TERMINAL, SEQUENCE, CHOICE
DONE, FULL, PAUSED, ASK = map(np.int64, range(4))
_BATCH = 1024  # states made between two looks at the budget


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
def _states(w, like, count):  # type: ignore[no-untyped-def]
    """The first of so many states in the place of another one."""
    n = read_long(w, PLACE + _GROWING)
    place = read_long(w, PLACE)
    for i in range(count):
        write_int(place, n + i, read_int(place, like))
    write_long(w, PLACE + _GROWING, n + count)
    return n


@kernel(**BARE)
def _free(w, source, target):  # type: ignore[no-untyped-def]
    n = read_long(w, FREE + _GROWING)
    at = read_long(w, FREE) + 12 * n
    write_int(at, 0, source)
    write_int(at, 1, target)
    write_int(at, 2, 0)
    write_long(w, FREE + _GROWING, n + 1)


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
    place = read_long(w, PLACE)
    if not first and node != read_long(w, EMPTY) and read_int(place, entry) == read_int(place, back):
        slot = _slot_of(w, node, back, height)
        if read_int(read_long(w, SLOT), slot) < 0:
            _know(w, slot, node, back, height, entry)
            return
    _free(w, entry, _state(w, node, back, height))


@kernel(**BARE)
def _has_room(w):  # type: ignore[no-untyped-def]
    """Whether what a task makes fits into every array."""
    fits = True
    for field in range(PLACE, TEXT + 1):
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
        if kind >= _OR_CALLED and first:
            kind -= _OR_CALLED
        if kind >= _ASK or (kind == _LOOP and first):
            return ASK
        write_long(w, TASK + _GROWING, top)
        begin = read_int(read_long(w, ITEM_OFFSET), number)
        end = read_int(read_long(w, ITEM_OFFSET), number + 1)
        item = read_long(w, ITEM)
        if kind in (LITERAL, TERMINAL):
            inside = _states(w, back, read_int(read_long(w, OWN), number))
            _row(w, TEXT if kind == LITERAL else USE, number, entry, back, inside)
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
    """

    def __init__(
        self, facts: Facts, called: frozenset[int], inlined: frozenset[int], named: Callable[[int], int]
    ) -> None:
        pool = facts.pool
        self._pool, nodes = pool, pool.nodes
        kind = _KINDS[[node[0] for node in nodes]]
        behind = np.arange(len(nodes), dtype=np.int32)
        own = [0] * len(nodes)
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
                own[n] = piece_of(pool.dfas[node[1]]).own
            elif what == REF and node[1] in pool.rules:  # nodes of rules that are gone are there still
                behind[n] = named(n)
            elif what == QUOTED or (what == CALL and node[1] in inlined):
                kind[n] = QUOTED
                item.append(node[1])
            elif what == REPEAT and node[2] == 0 and node[3] is None and not facts.is_marked(node[1]):
                kind[n] = _LOOP  # marks depend on how often they were read
                item.append(node[1])
            offset.append(len(item))
        if called:
            kind[list(called)] |= _OR_CALLED
        table = np.zeros(28, np.int64)
        self._number = table.data
        self._address = address_of(table)
        self._array: dict[str, np.ndarray] = {}
        for name, values in zip(_FIELDS, (kind, offset, behind[item], own, facts.height), strict=False):
            self._keep(name, np.array(values, np.int32))
        most = max(own) + longest + 4
        for (name, columns), usual in zip(_COLUMNS.items(), _USUAL, strict=True):
            self._keep(name, np.empty((usual * len(nodes) + 2 * most, columns), np.int32))
        self._spread()
        self._number[EMPTY], self._number[MOST], self._number[LIMIT] = pool.empty, most, _BATCH

    def _keep(self, name: str, array: np.ndarray) -> None:
        self._array[name] = array
        if name == "place":
            self._place = array.reshape(-1).data  # the same, told sooner
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

    def place(self, state: int) -> int:
        """The number of the place of a state."""
        return self._place[state]

    def new(self, place: int) -> int:
        """A state in a place."""
        numbers = self._number
        number = numbers[_STATES]
        if number == len(self._place):
            self._grow()
        self._place[number] = place
        numbers[_STATES] = number + 1
        return number

    def first(self, node: int, back: int, height: int) -> int:
        """The first state of a frame, which is no other's."""
        state = self.new(self.place(back))
        self._add("task", ~state, node, back, height)
        return state

    def let_first(self, state: int) -> None:
        """The state of the oldest task is a first one, if it has one."""
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
        own, place, first = piece_of(self._pool.dfas[number]).own, self.place(back), self.size
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

    def pop(self) -> tuple[int, bool, int, int, int]:
        """Take the newest task: its state, whether it is a first one, node, state behind, height."""
        top = self._number[_COUNT["task"]] - 1
        self._number[_COUNT["task"]] = top
        state, node, back, height = self._array["task"][top].tolist()
        return (~state if state < 0 else state), state < 0, node, back, height

    def begun(self) -> Iterator[tuple[int, int]]:
        """(state, node) of all tasks but those of first states."""
        known = self.rows("known")
        return zip(known[:, 3].tolist(), known[:, 0].tolist(), strict=True)

    def blocks(self) -> Iterator[tuple[int, int, int]]:
        """Of every terminal and literal its entry, the first state of its own, and how many it has."""
        nodes, dfas = self._pool.nodes, self._pool.dfas
        for node, entry, _, first in self.rows("use").tolist():
            yield entry, first, piece_of(dfas[nodes[node][1]]).own
        for node, entry, _, first in self.rows("text").tolist():
            yield entry, first, len(nodes[node][1]) - 1
