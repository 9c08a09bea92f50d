"""Run all checks of a bundle's tables in one kernel. It says whether they are sound, but not what is wrong.

Leaves out   what is wrong: the plain passes of ../checks.py find that. It runs this kernel first if numba is
             already loaded; it runs the plain passes if numba is not loaded, or if this kernel finds a fault.
Invariants   if `sound` accepts tables, no plain pass refuses them; tests/runtime/test_hostile.py tries both on every
             edit. Checks run in the order of the list and stop at the first that fails: earlier checks bound the
             numbers that later checks use as indices.
             The list is built once, with names; for each bundle only the numbers behind the names are filled in.
Arrays       checks int64 [n, 10]: a kind, then its arguments; what they mean is said at each kind.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numba
import numpy as np

from ...jit.memory import kernel
from ...jit.memory import read_int as _int
from ..ops import KIND_BITS, KIND_MASK, POP, PUSH, return_of
from ..tables import COUNTED, FIELD_OF, FIELDS, MAX_BREAKS, MAX_COUNT, NEVER, TABLES, Tables

# (address, count, stride, low, high): count numbers, stride apart, from low to high - 1
RANGE = 0
# (address, count, total, values or 0): offsets from 0 to total that never fall; within each stretch values ascend
OFFSETS = 1
# (first, count, lists, breaks, B, total, shared): cells of owners lie one after the other, or are shared by all where
# `shared`; the owner's list says how many it has
CELLS = 2
# (delta, count, states, pushes, pops, classes): a comb of so many columns, of ops
OPS = 3
# (comb, count, low, high, columns): a comb, and its values
COMB = 4
# (bases, count): bases have no base
BASES = 5
# (dense, rows, words, shift): no bits from `shift` on in the last word of a row
BITS = 6
# (offsets, profiles, chain, entries, chain_cell, chain_break, breaks, B, chain_exit): with `most` (argument): the
# longest chain
CHAINS = 7
# (address, count): values that ascend
ASCENDING = 8
# (breaks, count, B, clear): the first list of breakpoints is there and has none; with `clear` every count of a
# breakpoint begins a phase
LISTS = 9
MOST_WORK = 1 << 24  # steps of the search for the longest chain; more is left to the plain pass


@numba.njit
def _short(check, most):  # type: ignore[no-untyped-def]
    """The longest path of exit profiles has at most `most` of them; profiles with one offset are one."""
    offsets, profiles, chain, entries = check[1], check[2], check[3], check[4]
    cells, lists, breaks, width, exits = check[5], check[6], check[7], check[8], check[9]
    if profiles == 0:
        return True
    if most < 1:
        return False
    length = np.ones(entries + 1, np.int64)  # from the offset of a profile, which may be the end
    work = 0
    for _ in range(most + 1):
        longer = False
        work += entries
        for place in range(entries):
            base = _int(chain, 2 * place)
            if base < 0 or base >= entries:
                continue
            number = _int(chain, 2 * place + 1)
            first = _int(cells, number)
            last = first
            owned = _int(lists, number) * width
            for k in range(owned, owned + width):
                last += _int(breaks, 2 * k + 1)
            work += last - first
            if work > MOST_WORK:
                return False
            for x in range(first, last + 1):
                further = _int(exits, x)
                if further >= 0 and length[_int(offsets, further)] >= length[base]:
                    length[base] = length[_int(offsets, further)] + 1
                    longer = True
            if length[base] > most:
                return False
        if not longer:
            return True
    return False


@numba.njit(inline="always")
def _unowned(owner, value, place, columns):  # type: ignore[no-untyped-def]
    """Whether an entry of a comb is neither free, which is (-1, 0), nor in a column of its owner."""
    if owner == -1:
        return value != 0
    return (owner < 0) | (owner > place) | (place - owner >= columns)


@kernel("int64(int64[:, ::1], int64)")
def passes(checks, most):  # type: ignore[no-untyped-def]
    """1 if every check passes."""
    for n in range(checks.shape[0]):
        kind, a, count, b, c, d = checks[n, 0], checks[n, 1], checks[n, 2], checks[n, 3], checks[n, 4], checks[n, 5]
        bad = False
        if kind == RANGE:
            for i in range(count):
                v = _int(a, i * b)
                bad |= (v < c) | (v >= d)
        elif kind == OFFSETS:
            if count < 1 or _int(a, 0) != 0 or _int(a, count - 1) != b:
                return 0
            for i in range(1, count):
                bad |= _int(a, i) < _int(a, i - 1)
            if bad:
                return 0
            if c:
                for i in range(1, count):
                    for k in range(_int(a, i - 1) + 1, _int(a, i)):
                        bad |= _int(c, k) <= _int(c, k - 1)
        elif kind == CELLS:
            total, shared = checks[n, 6], checks[n, 7]
            end = 0
            for i in range(count):
                first = _int(a, i)
                bad |= (first != end) & (shared == 0)
                end = first + 1
                owned = _int(b, i) * d
                if owned != 0:
                    for k in range(owned, owned + d):
                        end += _int(c, 2 * k + 1)
                bad |= (first < 0) | (end > total)
            bad |= (end != total) & (shared == 0)
        elif kind == LISTS:
            if count < 1:
                return 0
            for i in range(count):
                past = 0
                for k in range(i * b, (i + 1) * b):
                    at, span = _int(a, 2 * k), _int(a, 2 * k + 1)
                    bad |= (i == 0) & ((at != 0) | (span != 0))
                    if c != 0 and span > 0:
                        bad |= at - span < past
                        past = at
        elif kind == OPS:
            for i in range(count):
                owner, op = _int(a, 2 * i), _int(a, 2 * i + 1)
                limit = b
                if op & KIND_MASK == PUSH:
                    limit = c
                if op & KIND_MASK == POP:
                    limit = d
                bad |= (op < 0) | (op & KIND_MASK > POP) | (op >> KIND_BITS >= limit) | ((op > 0) & (op < PUSH))
                bad |= _unowned(owner, op, i, checks[n, 6])
        elif kind == COMB:
            for i in range(count):
                owner, v = _int(a, 2 * i), _int(a, 2 * i + 1)
                bad |= (owner >= 0) & ((v < b) | (v >= c))
                bad |= _unowned(owner, v, i, d)
        elif kind == BASES:
            for i in range(count):
                base = _int(a, i)
                if base >= 0:
                    bad |= _int(a, base) >= 0
        elif kind == BITS:
            for i in range(count):
                bad |= (_int(a, (i + 1) * b - 1) & 0xFFFFFFFF) >> c != 0
        elif kind == ASCENDING:
            for i in range(1, count):
                bad |= _int(a, i) <= _int(a, i - 1)
        elif not _short(checks[n], most):
            return 0
        if bad:
            return 0
    return 1


class _Plan:
    """The checks of all bundles: every argument is the place of a number that a bundle has, or a constant.

    Attributes:
        place: int64 [checks, 10], into the numbers of a bundle, in the order of `sound`, and `constants` behind them.
    """

    def __init__(self) -> None:
        self._place = {name: n for n, name in enumerate((*map(_at, FIELDS), *map(_size, FIELDS), *COUNTED, *NUMBERS))}
        self.constants: list[int] = []
        self._checks: list[list[int]] = []
        for key, field in FIELD_OF:
            values = TABLES[key].values
            for column, (low, high) in enumerate(values):
                if len(values) == 1:
                    self._add(RANGE, _at(field), _size(field), 1, low, high)
                else:
                    self._add(RANGE, f"column {column} of {key}", TABLES[key].counts, len(values), low, high)
        self._ascending("special_token")
        self._lists("breaks", clear=0)
        self._lists("close_breaks", clear=1)
        self._cells("state_cell", "state_break", "breaks", "cells")
        self._add(OPS, _at("delta"), "transitions", "states", "pushes", "pops", "classes")
        self._add(COMB, _at("return_"), "returns", 0, "return values", MAX_COUNT)
        self._add(COMB, _at("chain"), "chain entries", 0, "chains", "stack symbols")
        self._cells("chain_cell", "chain_break", "breaks", "chain cells")
        self._offsets("list_offset", "list_tokens", ascend=True)
        self._add(BASES, _at("list_base"), "lists")
        self._add(BITS, _at("dense"), "dense with a part of a word", "words", "bits of the last word")
        self._offsets("tool_offset", "tool_members", ascend=True)
        self._ascending("narrowing")
        self._cells("state_close", "close_break", "close_breaks", "close cells", "no close")
        self._cells("owed_first", "owed_break", "close_breaks", "owed cells", "no close")
        self._offsets("forced_offset", "forced_tokens", ascend=False)
        self._add(RANGE, _at("close_bound"), _size("close_bound"), 1, "least bound", NEVER + 1)
        chains = _at("chain_offset"), "profiles", _at("chain"), "chain entries"
        lists = _at("chain_break"), _at("breaks"), "breaks width"
        self._add(CHAINS, *chains, _at("chain_cell"), *lists, _at("chain_exit"))
        self.place = np.array(self._checks, np.int64)

    def _add(self, *check: int | str) -> None:
        self._checks.append([self._number(argument) for argument in (*check, *(10 - len(check)) * (0,))])

    def _number(self, argument: int | str) -> int:
        if isinstance(argument, str):
            return self._place[argument]
        if argument not in self.constants:
            self.constants.append(argument)
        return len(self._place) + self.constants.index(argument)

    def _cells(self, first: str, lists: str, breaks: str, total: str, shared: int | str = 0) -> None:
        self._add(CELLS, _at(first), _size(first), _at(lists), _at(breaks), f"{breaks} width", total, shared)

    def _lists(self, breaks: str, clear: int) -> None:
        self._add(LISTS, _at(breaks), TABLES[breaks].counts, f"{breaks} width", clear)

    def _offsets(self, offset: str, values: str, *, ascend: bool) -> None:
        self._add(OFFSETS, _at(offset), _size(offset), _size(values), _at(values) if ascend else 0)

    def _ascending(self, field: str) -> None:
        self._add(ASCENDING, _at(field), _size(field))


def _at(field: str) -> str:
    return f"address of {field}"


def _size(field: str) -> str:
    return f"size of {field}"


_COLUMNS = [(name, len(table.values)) for name, table in TABLES.items() if len(table.values) > 1]
# The numbers of a bundle that are not counted by its tables, as `_numbers` gives them.
NUMBERS = (
    *("classes", "pops", "return values", "words", "bits of the last word", "dense with a part of a word"),
    *("no close", "least bound"),
    *("breaks width", "close_breaks width"),
    *(f"column {number} of {name}" for name, columns in _COLUMNS for number in range(columns)),
)


def _numbers(t: Tables, counts: dict[str, int]) -> list[int]:
    """Of the names of `COUNTED`, then those of `NUMBERS`."""
    words, bits = -(-counts["tokens"] // 32), counts["tokens"] % 32
    pops = counts["returns"] - int(t.return_offset.max()) if t.return_offset.size else MAX_COUNT
    return [
        *(counts[name] for name in COUNTED),
        *(t.classes, pops, return_of(t.states, 0), words, bits, counts["dense rows"] if bits else 0),
        *(t.knows_no_close, NEVER * t.knows_no_close),
        *(t.breaks.shape[1], t.close_breaks.shape[1]),
        *(t.addresses[name] + 4 * number for name, columns in _COLUMNS for number in range(columns)),
    ]


_plan = cache(_Plan)


def sound(t: Tables, meta: dict[str, Any], counts: dict[str, int]) -> bool:
    """Whether every index of the tables stays inside; shapes, sizes and the meta have been checked.

    False where something is wrong, and where the plain passes must look.

    Args:
        counts: of `counts_of`.
    """
    fits = (
        t.dense.shape[1] == -(-counts["tokens"] // 32) and max(t.breaks.shape[1], t.close_breaks.shape[1]) <= MAX_BREAKS
    )
    if not fits:
        return False
    plan = _plan()
    sizes = [array.size for array in t.arrays().values()]
    numbers = [*t.addresses.values(), *sizes, *_numbers(t, counts), *plan.constants]
    return bool(passes(np.array(numbers, np.int64)[plan.place], int(meta["max_chain"])))
