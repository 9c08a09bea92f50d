"""The memory of determinisation: what its kernels read and fill in, as arrays behind one table of addresses.

Leaves out   what happens in there (closures.py, determinise.py).
Arrays       by address, see runtime/jit/memory.py; `Workspace` keeps them alive and grows them. Everything that has a
             number is an interned sequence in a pool (pool.py); fields about such numbers have a place for each.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format import ops
from toolc.runtime.jit.memory import address_of, kernel, read_int, read_long, write_int, write_long

from .pool import Pool, intern_at, room

KEEP, ADD_ONE, SET_ZERO, SET_ONE = map(np.int64, (ops.KEEP, ops.INCREMENT, ops.ZERO, ops.ONE))
PUSH, POP = map(np.int64, (ops.PUSH, ops.POP))
# How a kernel ends; errors are handed up as their negatives.
ALL_DONE, FULL, PAUSED, APART, GROUP, CLASH, BOUNDS = map(np.int64, range(7))
NESTED, GOES_ON, ONE_BYTE = map(np.int64, range(3))  # what is wrong with a group

# Addresses of arrays, int32 where nothing else is said. Row s of an `x` with offsets is x[x_offset[s]:x_offset[s + 1]].
INPUT = (
    "edge_offset",
    "edge",  # [·, 3]: mask, target, adds one
    "free_offset",
    "free",  # [·, 2]: target, enters a counted loop
    "guard_offset",
    "guard",  # [·, 3]: at least, threshold, target
    "call_offset",
    "call",  # [·, 4]: free instance, shallow instance (-1 none), state to return to, adds one
    "scope",  # [NFA states]
    "final",  # [NFA states]
    "core",  # [NFA states]: has moves, or is final
    "mask_offset",
    "mask_class",  # the classes of a mask, ascending
    "first_offset",
    "first",  # [·, 2]: class and target of the first moves of an instance, by class
    "first_bad",  # [instances]: has other first moves
)
GROWING = (
    "closed_to",  # [closed, 2]: state (-1 not known yet), action
    "return_to",  # [returns, 2]: state (-1 not known yet), action
    "completion",  # [states]: R that is complete in the state, -1 none, -2 not known yet
    "link_head",  # [states]: newest link to the state, done of it, caller of it, -1 none; …_next: the one before it
    "done_head",
    "caller_head",
    "link_next",
    "done_next",
    "caller_next",
    "linked",  # [states]: one more than the state that was linked to it last
    "row_end",  # [states]: place after the last op row
    "threshold_end",  # [states]: place after the last threshold
    "top",  # [states]: number in `sets`: the stack symbols that can be on top, see stacks.py
    "beneath",  # [symbols]: number in `sets`: those that can lie right under it
    "ops",  # [rows, classes]
    "threshold",
)
SCRATCH = (
    "marks",  # [NFA states]: the visit that came here last
    "actions",  # [NFA states]: the action then
    "stack",  # [NFA states]
    "pairs",  # [NFA states, 2]: states and actions
    "single",  # [NFA states, 4]: number in `closed` of the one move to a state with an action, -1 not known yet
    "edges",  # [edges, 3]: mask, target, action
    "uses",  # [classes]: how many edges a class has
    "firsts",  # [classes]: classes whose edges no class before has
    "calls",  # [calls, 4]: as in the NFA, with an action or -1 in the last column
    "chosen",  # [calls, 4]: those on one class
    "why",  # what an error is about: a number of things, the things, further numbers
    "users",  # int64 [classes, ·]: the edges that a class has, as bit sets
)
NUMBERS = (
    "classes",
    "rows",
    "thresholds",
    "expanded",
    "begun",  # states whose expansion has begun
    "links_joined",
    "dones_joined",
    "callers_joined",
    "nfa_states",
    "visit",
)
POOLS = ("states", "closed", "symbols", "pushes", "completions", "returns", "links", "dones", "callers", "sets")
_LISTS = ("links", "dones")  # these keep what they are given, equal or not
# How many sequences a pool has for each NFA state, and how long they are, as counted in a thousand schemas.
_USUAL = ((1, 3), (1, 3), (0.03, 2), (0.03, 4), (0.03, 1), (0.03, 2), (3.2, 2), (1, 2), (0.2, 3), (0.03, 2))
# Fields beside the pools: the pool for each number of which they have a place, and how many numbers the place holds.
_BESIDE = {
    "closed_to": ("closed", 2),
    "return_to": ("returns", 2),
    "completion": ("states", 1),
    "link_head": ("states", 1),
    "done_head": ("states", 1),
    "caller_head": ("states", 1),
    "link_next": ("links", 1),
    "done_next": ("dones", 1),
    "caller_next": ("callers", 1),
    "linked": ("states", 1),
    "row_end": ("states", 1),
    "threshold_end": ("states", 1),
    "top": ("states", 1),
    "beneath": ("symbols", 1),
}
_PER_POOL = 7  # addresses of data, offset, table, count; sizes of data and table; the longest sequence

FIELDS = {name: number for number, name in enumerate(INPUT + GROWING + SCRATCH + NUMBERS)}
(
    EDGE_OFFSET, EDGE, FREE_OFFSET, FREE, GUARD_OFFSET, GUARD, CALL_OFFSET, CALL, SCOPE, FINAL, CORE, MASK_OFFSET,
    MASK_CLASS, FIRST_OFFSET, FIRST, FIRST_BAD,
    CLOSED_TO, RETURN_TO, COMPLETION, LINK_HEAD, DONE_HEAD, CALLER_HEAD, LINK_NEXT, DONE_NEXT, CALLER_NEXT, LINKED,
    ROW_END, THRESHOLD_END, TOP, BENEATH, OPS, THRESHOLD,
    MARKS, ACTIONS, STACK, PAIRS, SINGLE, EDGES, USES, FIRSTS, CALLS, CHOSEN, WHY, USERS,
    CLASSES, ROWS, THRESHOLDS, EXPANDED, BEGUN, LINKS_JOINED, DONES_JOINED, CALLERS_JOINED, NFA_STATES, VISIT,
) = map(np.int64, range(len(FIELDS)))  # fmt: skip
STATES, CLOSED, SYMBOLS, PUSHES, COMPLETIONS, RETURNS, LINKS, DONES, CALLERS, SETS = map(
    np.int64, range(len(FIELDS), len(FIELDS) + _PER_POOL * len(POOLS), _PER_POOL)
)
# A kernel is compiled once more for each literal that it is called with: calls are made with these.
NONE, ZERO, ONE, TWO, THREE, FOUR = map(np.int64, range(-1, 5))
NO, YES = np.bool_(False), np.bool_(True)
UNKNOWN = np.int64(-2)


@kernel()
def get(w, field, i):  # type: ignore[no-untyped-def]
    return read_int(read_long(w, field), i)


@kernel()
def let(w, field, i, value):  # type: ignore[no-untyped-def]
    write_int(read_long(w, field), i, value)


@kernel()
def count_of(w, pool):  # type: ignore[no-untyped-def]
    """How many sequences a pool has."""
    return read_long(read_long(w, pool + 3), 0)


@kernel()
def begin_of(w, pool, number):  # type: ignore[no-untyped-def]
    """Place of a sequence; that after the last one is where a candidate is written."""
    return read_long(read_long(w, pool + 1), number)


@kernel()
def tail(w, pool):  # type: ignore[no-untyped-def]
    """The address at which a candidate for a pool is written."""
    return read_long(w, pool) + 4 * begin_of(w, pool, count_of(w, pool))


@kernel()
def has_room(w, pool):  # type: ignore[no-untyped-def]
    """Whether one more sequence of any length fits; see `room`."""
    count = count_of(w, pool)
    fits = read_long(w, pool + 4) - begin_of(w, pool, count) >= read_long(w, pool + 6)
    return fits and 2 * count + 4 < read_long(w, pool + 5)


@kernel()
def put(w, pool, size):  # type: ignore[no-untyped-def]
    """The number of the ``size`` numbers behind a pool."""
    return intern_at(
        read_long(w, pool),
        read_long(w, pool + 1),
        read_long(w, pool + 2),
        read_long(w, pool + 5),
        read_long(w, pool + 3),
        begin_of(w, pool, count_of(w, pool)) + size,
    )


@kernel()
def append(w, pool, size):  # type: ignore[no-untyped-def]
    """The same without a look for an equal: for relations, whose rows are all of one size."""
    number = count_of(w, pool)
    write_long(read_long(w, pool + 1), number + 1, (number + 1) * size)
    write_long(read_long(w, pool + 3), 0, number + 1)
    return number


@kernel()
def add_pair(place, count, a, b):  # type: ignore[no-untyped-def]
    """Insert (a, b) into the sorted set of ``count`` pairs at an address; the new number of pairs."""
    k = count
    while k > 0:
        before = read_int(place, 2 * k - 2)
        if before < a or (before == a and read_int(place, 2 * k - 1) < b):
            break
        if before == a and read_int(place, 2 * k - 1) == b:
            return count
        k -= 1
    for j in range(2 * count + 1, 2 * k + 1, -1):
        write_int(place, j, read_int(place, j - 2))
    write_int(place, 2 * k, a)
    write_int(place, 2 * k + 1, b)
    return count + 1


@kernel()
def insert(place, count, a):  # type: ignore[no-untyped-def]
    """Insert a into the sorted set of ``count`` numbers at an address; the new number of numbers."""
    k = count
    while k > 0 and read_int(place, k - 1) > a:
        k -= 1
    if k > 0 and read_int(place, k - 1) == a:
        return count
    for j in range(count, k, -1):
        write_int(place, j, read_int(place, j - 1))
    write_int(place, k, a)
    return count + 1


@kernel()
def sort(place, count):  # type: ignore[no-untyped-def]
    """Sort ``count`` numbers at an address (Shell 1959)."""
    gap = count >> 1
    while gap > 0:
        for i in range(gap, count):
            value = read_int(place, i)
            j = i
            while j >= gap and read_int(place, j - gap) > value:
                write_int(place, j, read_int(place, j - gap))
                j -= gap
            write_int(place, j, value)
        gap >>= 1


def _place_of(pool: Pool) -> list[int]:
    """What the table of addresses holds of a pool."""
    return [*map(address_of, pool.arrays), pool.data.size, pool.table.size, pool.longest]


class Workspace:
    """The arrays behind the table of addresses, and their growth.

    Args:
        given: the arrays of INPUT, int32.
        classes: number of symbol classes.
    """

    def __init__(self, given: dict[str, np.ndarray], classes: int) -> None:
        states, guards, calls = given["scope"].size, len(given["guard"]), len(given["call"])
        self.classes = classes
        self.most_rows = guards + 2  # op rows of one state
        longest = states + 1
        # Moves are closed under any action, of which there are four: they are told to be in conflict only then.
        lengths = (longest, 8 * longest, 4 * calls + 2, 4, longest, 2, 2, 2, 3, 0)
        self.pools = {
            name: Pool(most, int(share * states), length, name not in _LISTS)
            for name, most, (share, length) in zip(POOLS, lengths, _USUAL, strict=True)
        }
        scratch = {
            "marks": longest,
            "actions": longest,
            "stack": longest,
            "pairs": 2 * longest,
            "single": 4 * longest,
            "edges": given["edge"].size + 3,
            "uses": classes,
            "firsts": classes,
            "calls": 4 * (calls + 1),
            "chosen": 4 * (calls + 1),
            "why": longest + 2 * calls + 8,
        }
        growing = {name: columns * self.pools[pool].places for name, (pool, columns) in _BESIDE.items()}
        growing["threshold"] = 2 * self.most_rows + 64
        self.table = np.zeros(len(FIELDS) + _PER_POOL * len(POOLS), np.int64)
        self.arrays: dict[str, np.ndarray] = {}
        self._carve({**{name: given[name].size for name in INPUT}, **growing, **scratch})
        for name in INPUT:
            self.arrays[name][:] = given[name].reshape(-1)
        self.arrays["single"].fill(-1)
        self._keep("users", np.zeros(classes * (len(given["edge"]) // 64 + 1), np.int64))
        self._keep("ops", np.empty((self.most_rows + 2 * states, classes), np.int32))
        self.table[CLASSES] = classes
        self.table[NFA_STATES] = states
        self.table[THRESHOLDS] = growing["threshold"]
        self.table[len(FIELDS) :] = [number for pool in self.pools.values() for number in _place_of(pool)]

    def _carve(self, sizes: dict[str, int]) -> None:
        """Make arrays out of one block, which costs less than each alone does."""
        block = np.zeros(sum(sizes.values()), np.int32)
        address, begin = address_of(block), 0
        for name, size in sizes.items():
            self.arrays[name] = block[begin : begin + size]
            self.table[FIELDS[name]] = address + 4 * begin
            begin += size

    def _keep(self, name: str, array: np.ndarray) -> None:
        self.arrays[name] = array
        self.table[FIELDS[name]] = address_of(array)
        if name == "ops":
            self.table[ROWS] = len(array)
        elif name == "threshold":
            self.table[THRESHOLDS] = array.size

    @property
    def expanded(self) -> int:
        """How many states are finished."""
        return int(self.table[EXPANDED])

    @property
    def address(self) -> int:
        return address_of(self.table)

    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the finished states: ops int32 [rows, classes], ends of their rows, ends of their thresholds."""
        ends = self.arrays["row_end"][: self.expanded]
        return self.arrays["ops"][: ends[-1] if ends.size else 0], ends, self.arrays["threshold_end"][: self.expanded]

    def grow(self) -> None:
        """Make room in whatever is nearly full."""
        for name in POOLS:
            self._make_room(name)
        last = self.expanded - 1
        for name, ends in (("ops", "row_end"), ("threshold", "threshold_end")):
            array = self.arrays[name]
            if len(array) - (self.arrays[ends][last] if last >= 0 else 0) < self.most_rows:
                more = np.empty((len(array) + self.most_rows, *array.shape[1:]), np.int32)
                self._keep(name, np.concatenate([array, more]))

    def lengthen(self, name: str, longest: int) -> None:
        """Let the sequences of a pool be so long."""
        self.pools[name].longest = longest
        self._fit(name)
        self._make_room(name)

    def _make_room(self, name: str) -> None:
        pool = self.pools[name]
        if room(*pool.arrays, pool.longest):
            return
        pool.grow()
        self._fit(name)
        for beside, (owner, columns) in _BESIDE.items():
            old = self.arrays[beside]
            if owner == name and old.size < columns * pool.places:
                self._keep(beside, np.concatenate([old, np.zeros(columns * pool.places - old.size, np.int32)]))

    def _fit(self, name: str) -> None:
        """Write down where a pool lies."""
        at = len(FIELDS) + _PER_POOL * POOLS.index(name)
        self.table[at : at + _PER_POOL] = _place_of(self.pools[name])
