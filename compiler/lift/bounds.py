"""What the kernels of the shortest close share: the automaton of a bundle by close cells, and bounds over counters.

Leaves out   least ways (ways.py), what tokens can cost (costs.py), the partition of counters and the arrays of the
             bundle (close.py).
Values       counters are intervals [low, high] here, so that one result holds for all counters of a close cell; NEVER
             stands for no way. A bound on a configuration is that of its state plus what the frames below still owe.
Arrays       `Closing` below.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from toolc.runtime.tables import NEVER

MANY = 1 << 30  # above every counter


class Closing(NamedTuple):
    """The automaton of a bundle, and its close cells.

    symbol_class … return_: as in docs/architecture.md.  back_offset int32 [stack symbols + 1], back int32 [·]: the
    values of `return` of each stack symbol.  close_first int32 [states + 1], close_break int32 [states, C, 2]: close
    cells of a state;  low, high int32 [close cells]: their counters;  bound int32 [close cells];  modes int;
    alive uint64 [cells, 4]: the bytes that a cell lives on, see children.py.
    """

    symbol_class: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    cell_delta: np.ndarray
    delta: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    back_offset: np.ndarray
    back: np.ndarray
    close_first: np.ndarray
    close_break: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray
    modes: int
    alive: np.ndarray


@njit(cache=True)
def phase(breaks, owner, c):  # type: ignore[no-untyped-def]
    total = 0
    for b in range(breaks.shape[1]):
        span = breaks[owner, b, 1]
        past = c - breaks[owner, b, 0] + span
        if past > 0:
            total += min(past, span)
    return total


@njit(cache=True)
def op_at(a, q, c, k):  # type: ignore[no-untyped-def]
    """The op of a state at a counter on a symbol class."""
    base = a.cell_delta[a.state_cell[q] + phase(a.state_break, q, c)]
    return a.delta[base + k, 1] if a.delta[base + k, 0] == base else 0


@njit(cache=True)
def act(action, c):  # type: ignore[no-untyped-def]
    if action == 0:
        return c
    if action == 1:
        return min(c + 1, MANY)
    return action - 2


@njit(cache=True)
def most(a, value, q, low, high):  # type: ignore[no-untyped-def]
    """The largest value of a state over an interval of counters; 0 for the finished state."""
    if q == 1:
        return 0
    x = a.close_first[q] + phase(a.close_break, q, low)
    last = a.close_first[q] + phase(a.close_break, q, high)
    found = value[x]
    while x < last:
        x += 1
        found = max(found, value[x])
    return found


@njit(cache=True)
def owes(a, value, g, low, high):  # type: ignore[no-untyped-def]
    """The largest value of what can follow under a stack symbol, over an interval of the counter saved beside it."""
    found = 0
    for i in range(a.back_offset[g], a.back_offset[g + 1]):
        action = a.back[i] & 3
        found = max(found, most(a, value, a.back[i] >> 2, act(action, low), act(action, high)))
    return found


@njit(cache=True)
def owed_cells(a, symbol, low, high, out):  # type: ignore[no-untyped-def]
    """out int32 [·] = what is owed under stack symbols int32 [·] for intervals of the counter saved beside them."""
    for i in range(symbol.size):
        out[i] = min(NEVER, owes(a, a.bound, symbol[i], low[i], high[i]))
