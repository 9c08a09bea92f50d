"""What the kernels of the shortest close share: the automaton of a bundle by close cells, and bounds over counters.

Leaves out   how a compiler finds the bounds (compiler/lift/completion.py), how a choice of tools changes them
             (completion.py).
Values       counters are intervals [low, high] here, so that one result holds for all counters of a close cell; NEVER
             stands for no way. A bound on a configuration is that of its state plus what the frames below still owe.
Trusts       what trie_walk.py does; close cells and owed cells lie side by side, one for each phase of a counter: their
             breakpoints take counters apart, one after the other. All checked on opening.
Arrays       `Closing` below.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..format.kernels.step import act, op_in, phase, return_in
from ..format.ops import ACTION_BITS, ACTION_MASK, DEAD, KIND_BITS, KIND_MASK, POP, PUSH
from ..format.tables import MAX_COUNT, NEVER, Tables
from ..jit.memory import BARE, fixed, kernel

MANY = MAX_COUNT  # no counter is larger


class Closing(NamedTuple):
    """The automaton of a bundle, and its close cells.

    symbol_class … return_: as in docs/format.md.  back_offset int32 [stack symbols + 1], back int32 [·]: the
    values of `return` of each stack symbol.  close_first int32 [states + 1], close_break int32 [states], close_breaks
    int32 [lists, C, 2]: close cells of a state;  low, high int32 [close cells]: their counters;  bound int32 [close
    cells];  modes int;  alive uint64 [cells, 4]: the bytes that a cell lives on, of no cell where walks do not ask.
    due int32 [stack symbols]: what the required members take of an object that is entered with the symbol, where their
    order is free; 0 elsewhere.
    """

    symbol_class: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    breaks: np.ndarray
    cell_delta: np.ndarray
    cell_default: np.ndarray
    delta: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    back_offset: np.ndarray
    back: np.ndarray
    close_first: np.ndarray
    close_break: np.ndarray
    close_breaks: np.ndarray
    low: np.ndarray
    high: np.ndarray
    bound: np.ndarray
    modes: int
    alive: np.ndarray
    due: np.ndarray

    @staticmethod
    def of(
        t: Tables, delta: np.ndarray, back: tuple[np.ndarray, np.ndarray], cells: tuple[np.ndarray, ...],
        bound: np.ndarray, alive: np.ndarray, due: np.ndarray,
    ) -> Closing:  # fmt: skip
        """All but the bounds read-only, whoever calls: kernels are compiled for one kind of arrays.

        Args:
            delta: the transitions, those of the tables or some of them.
            back: offsets and values, see `returns_of`.
            cells: close_first … high.
        """
        parts = (
            t.symbol_class, t.state_cell, t.state_break, t.breaks, t.cell_delta, t.cell_default, delta, t.push,
            t.return_offset, t.return_, *back, *cells,
        )  # fmt: skip
        return Closing._make((*map(fixed, parts), bound, t.modes, fixed(alive), due))


@kernel(**BARE)
def op_at(a, q, c, k):  # type: ignore[no-untyped-def]
    """The op of a state at a counter on a symbol class."""
    return op_of(a, a.state_cell[q] + phase(a.breaks, a.state_break[q], c), k)


@kernel(**BARE)
def op_of(a, cell, k):  # type: ignore[no-untyped-def]
    """The op of a cell on a symbol class."""
    return op_in(a.delta, np.int64(a.cell_delta[cell]), np.int64(a.cell_default[cell]), k)


@kernel(**BARE)
def largest(first, lists, breaks, value, q, low, high):  # type: ignore[no-untyped-def]
    """The largest value of a state over an interval of counters; 0 for the finished state.

    This and `owing` take the few arrays that they need: handing over all of a `Closing` takes longer than the work.
    """
    if q == 1:
        return np.int64(0)
    x = last = np.int64(first[q])
    if first[q + 1] > x + 1:
        x, last = x + phase(breaks, lists[q], low), x + phase(breaks, lists[q], high)
    found = value[x]
    while x < last:
        x += 1
        found = max(found, value[x])
    return np.int64(found)


@kernel(**BARE)
def owing(back_offset, back, first, lists, breaks, value, due, g, low, high):  # type: ignore[no-untyped-def]
    """The largest value of what can follow under a stack symbol, over an interval of the counter saved beside it, and
    what is due of the frame above."""
    found = np.int64(0)
    for i in range(back_offset[g], back_offset[g + 1]):
        q, then = np.int64(back[i] >> ACTION_BITS), np.int64(back[i] & ACTION_MASK)
        found = max(found, largest(first, lists, breaks, value, q, act(then, low), act(then, high)))
    return found + due[g]


@kernel(**BARE)
def most(a, q, low, high):  # type: ignore[no-untyped-def]
    """`largest` of the bounds."""
    return largest(a.close_first, a.close_break, a.close_breaks, a.bound, q, low, high)


@kernel(**BARE)
def owes(a, g, low, high):  # type: ignore[no-untyped-def]
    """`owing` of the bounds."""
    return owing(a.back_offset, a.back, a.close_first, a.close_break, a.close_breaks, a.bound, a.due, g, low, high)


@kernel(**BARE)
def step(a, st, frames, depth, symbol, mode):  # type: ignore[no-untyped-def]
    """Read a symbol, from st[depth - 1] into st[depth]; 0 dead, 1 alive, 2 + R where it leaves the frame.

    st int64 [depth, 5]: state, low, high, top frame (-1 none), what the frames opened by the token owe;  frames int64
    [depth, 5]: stack symbol, saved low, saved high, frame beneath, owed before. A frame is named by the depth of the
    byte that pushed it.
    """
    q, low, high, top, owed = st[depth - 1, 0], st[depth - 1, 1], st[depth - 1, 2], st[depth - 1, 3], st[depth - 1, 4]
    if q == 1:
        return np.int64(0)
    op = op_at(a, q, low, np.int64(a.symbol_class[symbol]))
    if op == 0:
        return np.int64(0)
    kind, number = op & KIND_MASK, op >> KIND_BITS
    if kind < PUSH:
        q, low, high = number, act(kind, low), act(kind, high)
    elif kind == PUSH:
        q = np.int64(a.push[number, 1 + mode])
        if q == 0:
            return np.int64(0)
        action = np.int64(a.push[number, 3])
        frames[depth, 0] = a.push[number, 0]
        frames[depth, 1] = act(action, low)
        frames[depth, 2] = act(action, high)
        frames[depth, 3] = top
        frames[depth, 4] = owed
        owed = min(np.int64(NEVER), owed + owes(a, frames[depth, 0], frames[depth, 1], frames[depth, 2]))
        low, high, top = np.int64(0), np.int64(0), np.int64(depth)
    elif top >= 0:
        back = return_in(a.return_, np.int64(a.return_offset[frames[top, 0]]), number)
        if back >> ACTION_BITS == DEAD:
            return np.int64(0)
        q, low, high = (
            back >> ACTION_BITS,
            act(back & ACTION_MASK, frames[top, 1]),
            act(back & ACTION_MASK, frames[top, 2]),
        )
        top, owed = frames[top, 3], frames[top, 4]
    else:
        return 2 + number
    st[depth, 0], st[depth, 1], st[depth, 2], st[depth, 3], st[depth, 4] = q, low, high, top, owed
    return np.int64(1)


@kernel()
def owed_cells(a, symbol, low, high, out):  # type: ignore[no-untyped-def]
    """out int32 [·] = what is owed under stack symbols int32 [·] for intervals of the counter saved beside them."""
    for i in range(symbol.size):
        out[i] = min(NEVER, owes(a, np.int64(symbol[i]), np.int64(low[i]), np.int64(high[i])))


def lows_of(number: np.ndarray, breaks: np.ndarray) -> dict[int, np.ndarray]:
    """The least counter of every phase, int32 [phases], ascending, of those owners that have more than one.

    Args:
        number: int32 [owners]: of the list of each, as `state_break`;  breaks: the lists.
    """
    owners = np.flatnonzero(number)
    known = {n: _lows(breaks[n]) for n in np.unique(number[owners]).tolist()}
    return {owner: known[n] for owner, n in zip(owners.tolist(), number[owners].tolist(), strict=True)}


def _lows(pairs: np.ndarray) -> np.ndarray:
    spans = [np.arange(max(1, at - count + 1), at + 1) for at, count in pairs.tolist()]
    return np.unique(np.concatenate([[0], *spans])).astype(np.int32)  # every count of a span begins a phase


def ranges_of(lows: Mapping[int, np.ndarray], owners: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranges of counters, side by side: where those of each owner begin, int32 [owners + 1], and the least and the
    largest counter of each range, int32 [ranges].

    Args:
        lows: the least counters, int32 [ranges], of those owners that have more than one range, ascending.
    """
    first = np.arange(owners + 1, dtype=np.int32)
    if not lows:
        return first, np.zeros(owners, np.int32), np.full(owners, MANY, np.int32)
    owner = np.fromiter(lows, np.int64, len(lows))
    count = np.ones(owners, np.int64)
    count[owner] = [x.size for x in lows.values()]
    np.cumsum(count, out=first[1:])
    low = np.zeros(first[-1], np.int32)
    several = np.zeros(owners, bool)
    several[owner] = True
    low[np.repeat(several, count)] = np.concatenate(list(lows.values()))
    high = np.full(first[-1], MANY, np.int32)
    last = first[1:] - 1
    high[:-1] = low[1:] - 1
    high[last] = MANY
    return first, low, high


def phases(number: np.ndarray, breaks: np.ndarray, c: np.ndarray) -> np.ndarray:
    """int64 [n]: the phase of each counter c int32 [n] under the list of a number int32 [n]."""
    found = np.zeros(len(c), np.int64)
    some = np.flatnonzero(number)
    at, count = np.moveaxis(breaks[number[some]], 2, 0)
    found[some] = np.clip(c[some, None] - at + count, 0, count).sum(axis=1, dtype=np.int64)
    return found


def returns_of(t: Tables, live: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of `return` by stack symbol, to live bool [states]: offsets int32 [symbols + 1], values int32 [·]."""
    return _returns_of(t.delta, t.return_offset, t.return_, live)


@kernel()
def _returns_of(delta, return_offset, return_, live):  # type: ignore[no-untyped-def]
    completions = 0
    for i in range(delta.shape[0]):
        if delta[i, 1] & KIND_MASK == POP:
            completions = max(completions, (delta[i, 1] >> KIND_BITS) + 1)
    offset = np.zeros(return_offset.size + 1, np.int32)
    for g in range(return_offset.size):
        base = return_offset[g]
        offset[g + 1] = offset[g]
        for place in range(base, base + completions):
            offset[g + 1] += return_[place, 0] == base and live[return_[place, 1] >> ACTION_BITS]
    values = np.empty(offset[-1], np.int32)
    count = 0
    for g in range(return_offset.size):
        base = return_offset[g]
        for place in range(base, base + completions):
            if return_[place, 0] == base and live[return_[place, 1] >> ACTION_BITS]:
                values[count] = return_[place, 1]
                count += 1
    return offset, values
