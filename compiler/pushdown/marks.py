"""What local states tell whoever reads a text back: which region of the text they lie in, and of which tool's call.

Every NFA state lies in a region (regions.py). The NFA states of a local state were all reached by one text; its mark is
what their pasts (symbol_history.py) have in common:

    kind    of the last symbol; not settled where they have nothing in common: what comes next decides
    age     how many symbols of that kind were read in a row; -1 where that is not known (where the ways to some of the
            NFA states disagree, those to another may not); of what is not settled, the kind of text or value it may be
    ended   none of them lies in that region any more
    member  not 0 where the key of a member was just read whose order is free (members.py)
    tools   those whose calls they belong to; none where one belongs to no tool

Leaves out   where regions are made (nfa.py), what was read on the ways to NFA states (symbol_history.py), reading
             (runtime/calls/reader.py), choosing among the tools (runtime/selection/subset.py).
Invariants   frames without marked rules cost nothing here: their states are "around" and take the kind of their call.
             Marks and sets of tools are numbered by the first state, then the first stack symbol, that has them.
Arrays       docs/format.md, `state_mark`, `symbol_mark`, `mark`, `tool_offset`, `tool_members`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from toolc.runtime.format.tables import AROUND, REASONING, STRING, TEXT, UNSETTLED, VALUE

from .symbol_history import UNKNOWN, in_common, last_read, spread, stay

if TYPE_CHECKING:
    from ..terminals.workspace import Workspace
    from .nfa import Nfa

_MAY_BE = np.array([TEXT, REASONING, VALUE, STRING])  # what a state that is not settled may lie in
_SEVERAL = 1 << 24  # more than there are tools


@dataclass(frozen=True)
class Marks:
    """Marks of an automaton.

    Attributes:
        state, symbol: number of the mark of every local state and of every stack symbol.
        table: distinct marks: (kind, age, number of a set of tools or -1, ended, member).
        tools: distinct sets of tools, ascending.
        narrow_state: whether entering a state decides against some tool.
        narrow_symbol: whether pushing a stack symbol does.
        separable: whether the tools' calls stay apart in every state, so that some can be left out at run time.
        ends: of the states of several tools' calls in which a text may end, the tools whose calls are whole there.
    """

    state: np.ndarray
    symbol: np.ndarray
    table: list[tuple[int, int, int, int, int]]
    tools: list[tuple[int, ...]]
    narrow_state: np.ndarray
    narrow_symbol: np.ndarray
    separable: bool
    ends: dict[int, tuple[int, ...]] = field(default_factory=dict)


def read_marks(nfa: Nfa, space: Workspace, begins: Sequence[int]) -> Marks:
    """The marks of local states and of stack symbols.

    Args:
        space: after determinisation.
        begins: states of the entries that a choice among the tools keeps, whichever they are.
    """
    pools = space.pools
    count, symbols = len(pools["states"]), len(pools["symbols"])
    if len(nfa.regions) == 1:
        nothing = np.zeros(count, np.int32), np.zeros(symbols, np.int32)
        return Marks(*nothing, [(AROUND, UNKNOWN, -1, 0, 0)], [], nothing[0] > 0, nothing[1] > 0, True)
    kind_of, tool_of = np.array([region[:2] for region in nfa.regions], np.int32).T[:, nfa.region]
    marked = np.zeros(len(nfa.instances), bool)  # the frames with marked rules
    marked[nfa.instance[nfa.region > 0]] = True
    starts = np.array([*nfa.entries, *np.array(nfa.starts)[marked]], np.int32)
    last = last_read(space.address, kind_of, starts)

    # What follows is of the states with members in such a frame, and of their members, one state after the other.
    data, ends = pools["states"].flat()
    members = _Segments(data, ends)
    found = members.any(marked[nfa.instance[data]])
    members = members.where(found)
    tools = _ToolSets()
    state_tools, several = tools.of(members.of(tool_of))
    separable = bool(stay(space.address, tool_of, np.unique(members.where(several).data)))
    ending = np.zeros(len(nfa.region), bool)
    ending[np.repeat(np.arange(nfa.size), np.diff(nfa.edges.offset))[nfa.edges.data[:, 0] == nfa.end_of_turn]] = True
    several &= members.any(ending[members.data])
    whole_there = {
        int(n): tuple(sorted({int(tool_of[s]) for s in row[ending[row]]} - {-1}))
        for n, row in zip(np.flatnonzero(found)[several], members.rows(several), strict=True)
    }
    state_rows = in_common(last, kind_of, members.data, members.ends, _MAY_BE)

    data, ends = pools["symbols"].flat()
    backs = _Segments(data[1::2], ends >> 1)
    symbol_tools, several = tools.of(backs.of(tool_of))
    separable = separable and not several.any()
    kinds = backs.of(kind_of)
    low, high = kinds.reduce(np.minimum), kinds.reduce(np.maximum)
    symbol_rows = np.full((symbols, 3), (0, UNKNOWN, 0), np.int32)
    symbol_rows[:, 0] = np.where(low == high, low, UNSETTLED)

    sets, set_of = tools.numbered(np.concatenate([state_tools, symbol_tools]))
    rows = np.empty((1 + len(set_of), 4), np.int32)
    rows[0] = AROUND, UNKNOWN, -1, 0
    rows[1:, [0, 1, 3]] = np.concatenate([state_rows, symbol_rows])
    rows[1:, 2] = set_of
    first, number = by_first((rows + 1) @ np.array([1, 1 << 4, 1 << 16, 1 << 14]))
    state = np.zeros(count, np.int32)
    state[found] = number[1 : 1 + len(state_tools)]
    symbol = number[1 + len(state_tools) :]
    set_of_mark = rows[first, 2]

    everything = tuple(sorted({region.tool for region in nfa.regions} - {-1}))
    whole = sets.index(everything) if everything in sets else -1
    kept = np.zeros(count, bool)
    if sets:
        kept[begins] = True
        spread(space.address, kept)

    def narrows(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Which steps from states, to what has some set of tools, decide."""
        return kept[before] & (after >= 0) & (after != whole) & (after != set_of_mark[state[before]])

    narrow, narrow_symbol = np.zeros(count, bool), np.zeros(symbols, bool)
    links, callers = pools["links"].rows(2), pools["callers"].rows(3)
    for p, q in (links.T, callers[:, 1::-1].T):
        narrow[q[narrows(p, set_of_mark[state[q]])]] = True
    narrow_symbol[callers[narrows(callers[:, 1], set_of_mark[symbol[callers[:, 2]]]), 2]] = True
    table = [(kind, age, tools_, ended, 0) for kind, age, tools_, ended in rows[first].tolist()]
    whole_there = {n: some for n, some in whole_there.items() if some}
    return Marks(state, symbol, table, sets, narrow, narrow_symbol, separable, whole_there)


class _Segments:
    """Rows of numbers, or of rows of numbers, one after the other.

    Attributes:
        data: all of them; ends: where each begins, and the end.
    """

    def __init__(self, data: np.ndarray, ends: np.ndarray) -> None:
        self.data, self.ends = data, ends

    def of(self, value: np.ndarray) -> _Segments:
        """What an array holds for the numbers."""
        return _Segments(value[self.data], self.ends)

    def where(self, found: np.ndarray) -> _Segments:
        """Some of the rows."""
        sizes = np.diff(self.ends)
        return _Segments(self.data[np.repeat(found, sizes)], np.concatenate([[0], np.cumsum(sizes[found])]))

    def rows(self, found: np.ndarray) -> list[np.ndarray]:
        """Some of the rows, each by itself."""
        return [self.data[self.ends[n] : self.ends[n + 1]] for n in np.flatnonzero(found)]

    def any(self, member: np.ndarray) -> np.ndarray:
        """Of which rows some number is marked."""
        before = np.concatenate([[0], np.cumsum(member)])
        return np.diff(before[self.ends]) > 0

    def reduce(self, function: np.ufunc) -> np.ndarray:
        """A function over each of the rows, none of which is empty."""
        return function.reduceat(self.data, self.ends[:-1])


class _ToolSets:
    """Sets of tools: a number of one tool stands for the set of it alone, from _SEVERAL on they are of several."""

    def __init__(self) -> None:
        self.several: dict[tuple[int, ...], int] = {}

    def of(self, tools: _Segments) -> tuple[np.ndarray, np.ndarray]:
        """The set of each row, -1 where one belongs to no tool; and whether the row has several tools, or none too."""
        low, high = tools.reduce(np.minimum), tools.reduce(np.maximum)
        several = low != high
        for n in np.flatnonzero(several & (low >= 0)).tolist():
            members = tuple(np.unique(tools.data[tools.ends[n] : tools.ends[n + 1]]).tolist())
            low[n] = self.several.setdefault(members, _SEVERAL + len(self.several))
        return low, several

    def numbered(self, found: np.ndarray) -> tuple[list[tuple[int, ...]], np.ndarray]:
        """The sets among these by their first place; the number of each, -1 as it was."""
        first, number = by_first(found[found >= 0])
        several = list(self.several)
        sets = [(n,) if n < _SEVERAL else several[n - _SEVERAL] for n in found[found >= 0][first].tolist()]
        out = np.full(len(found), -1, np.int32)
        out[found >= 0] = number
        return sets, out


def by_first(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first place of each distinct key, ascending; and of each key the number of its own."""
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return first[order], rank[which]
