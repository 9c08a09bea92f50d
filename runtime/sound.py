"""All checks of a bundle's tables as one pass of a kernel: it says that they are sound, or nothing at all.

Leaves out   what is wrong, and the checks themselves one by one: see tables.py, which runs this first where numba is
             loaded already, and the plain passes where it is not or where this is not content.
Invariants   what `sound` says yes to, no plain pass refuses; tests/runtime/test_hostile.py tries both on every edit.
             Checks run in the order of the list, and end with the first that fails: what the later ones index, the
             earlier ones have bounded.
Arrays       checks int64 [n, 9]: a kind, then its arguments; what they mean is said at each kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np

from .memory import kernel
from .memory import read_int as _int

if TYPE_CHECKING:
    from .tables import Tables
    from .vocab import Vocab

# (address, count, stride, low, high): count numbers, stride apart, from low to high - 1
RANGE = 0
# (address, count, total, values or 0): offsets from 0 to total that never fall; within each stretch values ascend
OFFSETS = 1
# (first, count, breaks, B, total): every cell that a phase can reach exists
CELLS = 2
# (delta, count, states, pushes, pops): ops
OPS = 3
# (comb, count, low, high): values that have an owner
OWNED = 4
# (bases, count): bases have no base
BASES = 5
# (dense, rows, words, shift): no bits from `shift` on in the last word of a row
BITS = 6
# (offsets, profiles, chain, symbols, chain_cell, chain_break, B, chain_exit): with `most` (argument): the longest chain
CHAINS = 7
# (address, count): values that ascend
ASCENDING = 8
MOST_WORK = 1 << 24  # steps of the search for the longest chain; more is left to the plain pass


@numba.njit
def _short(check, most):  # type: ignore[no-untyped-def]
    """The longest path of exit profiles has at most `most` of them."""
    offsets, profiles, chain, symbols = check[1], check[2], check[3], check[4]
    cells, breaks, width, exits = check[5], check[6], check[7], check[8]
    if profiles == 0:
        return True
    if most < 1:
        return False
    length = np.ones(profiles, np.int64)
    work = 0
    for _ in range(most + 1):
        longer = False
        for e in range(profiles):
            work += symbols
            if work > MOST_WORK:
                return False
            base = _int(offsets, e)
            for g in range(symbols):
                if _int(chain, 2 * (base + g)) == base:
                    number = _int(chain, 2 * (base + g) + 1)
                    first = _int(cells, number)
                    last = first
                    for k in range(width):
                        last += _int(breaks, 2 * (number * width + k) + 1)
                    work += last - first
                    if work > MOST_WORK:
                        return False
                    for x in range(first, last + 1):
                        further = _int(exits, x)
                        if further >= 0 and length[further] >= length[e]:
                            length[e] = length[further] + 1
                            longer = True
            if length[e] > most:
                return False
        if not longer:
            return True
    return False


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
            for i in range(count):
                last = _int(a, i)
                for k in range(c):
                    last += _int(b, 2 * (i * c + k) + 1)
                bad |= (_int(a, i) < 0) | (last >= d)
        elif kind == OPS:
            for i in range(count):
                owner, op = _int(a, 2 * i), _int(a, 2 * i + 1)
                limit = b
                if op & 7 == 4:
                    limit = c
                if op & 7 == 5:
                    limit = d
                bad |= (owner < -1) | (owner >= 1 << 31) | (op < 0) | (op & 7 > 5) | (op >> 3 >= limit)
                bad |= (op > 0) & (op < 4)
        elif kind == OWNED:
            for i in range(count):
                v = _int(a, 2 * i + 1)
                bad |= (_int(a, 2 * i) >= 0) & ((v < b) | (v >= c))
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


def sound(t: Tables, meta: dict[str, Any], vocab: Vocab, tools: int) -> bool:
    """Whether every index of the tables stays inside; shapes, sizes and the meta have been checked.

    False where something is wrong, and where the plain passes must look.
    """
    from .tables import END_OF_TURN, MAX_COUNT, NEVER, STRING, UNSETTLED

    symbols, groups, words = t.symbol_class.size, t.return_offset.size, vocab.words
    fits = (
        symbols > END_OF_TURN
        and t.list_offset.size > 0
        and t.list_base.size == t.list_offset.size - 1
        and t.dense.shape[1] == words
        and min(t.tool_offset.size, t.forced_offset.size) > 0
        and max(t.state_break.shape[1], t.chain_break.shape[1], t.close_break.shape[1], t.owed_break.shape[1]) <= 64
    )
    if not fits:
        return False
    at = t.addresses
    checks: list[tuple[int, ...]] = []

    def within(low: int, high: int, *names: str) -> None:
        checks.extend([(RANGE, at[name], getattr(t, name).size, 1, low, high, 0, 0, 0) for name in names])

    def columns(name: str, *limits: tuple[int, int]) -> None:
        rows = len(getattr(t, name))
        for number, (low, high) in enumerate(limits):
            checks.append((RANGE, at[name] + 4 * number, rows, len(limits), low, high, 0, 0, 0))

    def cells(first: str, breaks: str, total: int) -> None:
        within(0, MAX_COUNT, breaks)
        width = getattr(t, breaks).shape[1]
        checks.append((CELLS, at[first], getattr(t, first).size, at[breaks], width, total, 0, 0, 0))

    def offsets(offset: str, values: str, ascend: bool) -> None:
        count, total = getattr(t, offset).size, getattr(t, values).size
        checks.append((OFFSETS, at[offset], count, total, at[values] if ascend else 0, 0, 0, 0, 0))

    def ascending(name: str) -> None:
        checks.append((ASCENDING, at[name], getattr(t, name).size, 0, 0, 0, 0, 0, 0))

    states, profiles, rows = t.states, t.chain_offset.size, t.rows
    within(0, symbols, "symbol_class")
    within(0, vocab.size, "special_token", "list_tokens", "forced_tokens")
    within(256, symbols, "special_symbol")
    ascending("special_token")
    cells("state_cell", "state_break", t.cells)
    within(0, rows, "cell_row", "chain_row")
    within(-1, profiles, "cell_exit", "chain_exit")
    within(0, len(t.delta) - t.classes + 1, "cell_delta")
    pops = len(t.return_) - int(t.return_offset.max()) if groups else MAX_COUNT
    checks.append((OPS, at["delta"], len(t.delta), states, len(t.push), pops, 0, 0, 0))
    columns("push", (0, groups), (0, states), (0, states), (0, 4))
    within(0, len(t.return_) + 1, "return_offset")
    checks.append((OWNED, at["return_"], len(t.return_), 0, states * 4, 0, 0, 0, 0))
    within(0, len(t.chain) - groups + 1, "chain_offset")
    checks.append((OWNED, at["chain"], len(t.chain), 0, t.chain_cell.size, 0, 0, 0, 0))
    cells("chain_cell", "chain_break", t.chain_row.size)
    within(-1, vocab.slice_token_offset.size - 1, "row_slice")
    within(-1, MAX_COUNT, "row_units")
    within(-1, len(t.dense), "row_dense")
    within(0, t.list_base.size, "row_list")
    offsets("list_offset", "list_tokens", True)
    within(-1, t.list_base.size, "list_base")
    checks.append((BASES, at["list_base"], t.list_base.size, 0, 0, 0, 0, 0, 0))
    if vocab.size % 32:
        checks.append((BITS, at["dense"], len(t.dense), words, vocab.size % 32, 0, 0, 0, 0))
    within(0, len(t.mark), "state_mark", "symbol_mark")
    columns("mark", (UNSETTLED, STRING + 1), (-1, 1 << 8), (-1, t.tool_offset.size - 1), (0, 2))
    offsets("tool_offset", "tool_members", True)
    within(0, tools, "tool_members")
    within(0, states, "narrowing")
    ascending("narrowing")
    cells("state_close", "close_break", t.close_bound.size)
    cells("owed_first", "owed_break", t.owed.size)
    within(-1, vocab.size, "close_token")
    within(0, t.forced_offset.size - 1, "state_forced")
    offsets("forced_offset", "forced_tokens", False)
    within(0, NEVER + 1, "close_bound", "close_after", "owed", "chain_after", "forced_after")
    chain_cells = at["chain_cell"], at["chain_break"], t.chain_break.shape[1], at["chain_exit"]
    checks.append((CHAINS, at["chain_offset"], profiles, at["chain"], groups, *chain_cells))
    return bool(passes(np.array(checks, np.int64), int(meta["max_chain"])))
