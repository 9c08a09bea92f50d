"""What local states tell whoever reads a text back: which region of the text they lie in, and of which tool's call.

A *region* is a stretch of text that a marked rule derives (grammar/ir.py, Mark). Every NFA state lies in one. Its
*past* is what was read last on the ways to it: so many symbols of its own region, or, where none yet, so many of the
one before. The NFA states of a local state were all reached by one text; its mark is what their pasts have in common:

    kind    of the last symbol; not settled where they have nothing in common: what comes next decides
    age     how many symbols of that kind were read in a row; -1 where that is not known (where the ways to some of the
            NFA states disagree, those to another may not); of what is not settled, the kind of text or value it may be
    ended   none of them lies in that region any more
    tools   those whose calls they belong to; none where one belongs to no tool

Leaves out   where regions are made (nfa.py), reading (runtime/reader.py), choosing among the tools (runtime/subset.py).
Invariants   frames without marked rules cost nothing here: their states are "around" and take the kind of their call.
Arrays       docs/architecture.md, `state_mark`, `symbol_mark`, `mark`, `tool_offset`, `tool_members`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from toolc.runtime.tables import ARGUMENTS, AROUND, KEY, NAME, REASONING, STRING, TEXT, UNSETTLED, VALUE

from ..grammar.ir import Mark

if TYPE_CHECKING:
    from .nfa import Nfa
    from .pool import Pool
    from .workspace import Workspace

_UNKNOWN = -1  # an age on which ways disagree
_KINDS = {"name": NAME, "arguments": ARGUMENTS, "key": KEY, "value": VALUE, "string": STRING}
_MOST = 255  # ages are counted so far


class Region(NamedTuple):
    """Where a state lies: kind of text, tool (-1 for none), whether free text is reasoning here."""

    kind: int
    tool: int
    reasoning: bool

    def inside(self, mark: Mark) -> Region:
        """The region of a marked rule in this one."""
        if mark.kind == "tool":
            return self._replace(tool=mark.number)
        if mark.kind == "reasoning":
            return self._replace(reasoning=True)
        if mark.kind == "text":
            return self._replace(kind=REASONING if self.reasoning else TEXT)
        return self._replace(kind=_KINDS[mark.kind])


OUTSIDE = Region(AROUND, -1, False)


@dataclass(frozen=True)
class Marks:
    """Marks of an automaton.

    Attributes:
        state, symbol: number of the mark of every local state and of every stack symbol.
        table: distinct marks: (kind, age, number of a set of tools or -1, ended).
        tools: distinct sets of tools, ascending.
        narrow_state: whether entering a state decides against some tool.
        narrow_symbol: whether pushing a stack symbol does.
        separable: whether the tools' calls stay apart in every state, so that some can be left out at run time.
    """

    state: np.ndarray
    symbol: np.ndarray
    table: list[tuple[int, int, int, int]]
    tools: list[tuple[int, ...]]
    narrow_state: np.ndarray
    narrow_symbol: np.ndarray
    separable: bool


def read_marks(nfa: Nfa, space: Workspace, begins: Sequence[int]) -> Marks:
    """The marks of local states and of stack symbols.

    Args:
        space: after determinisation.
        begins: states of the entries that a choice among the tools keeps, whichever they are.
    """
    pools = space.pools
    count, pairs = len(pools["states"]), _lists(pools["symbols"])
    if len(nfa.regions) == 1:
        nothing = np.zeros(count, np.int32), np.zeros(len(pairs), np.int32)
        return Marks(*nothing, [(AROUND, _UNKNOWN, -1, 0)], [], nothing[0] > 0, nothing[1] > 0, True)
    states, symbols = _lists(pools["states"]), [one[1::2] for one in pairs]
    links, callers = pools["links"].rows(2), pools["callers"].rows(3)
    marked = {nfa.instance[s] for s, region in enumerate(nfa.region) if region}
    around = {s for s, instance in enumerate(nfa.instance) if instance in marked}
    past = _pasts(nfa, marked)
    table: dict[tuple[int, int, int, int], int] = {(AROUND, _UNKNOWN, -1, 0): 0}
    sets: dict[tuple[int, ...], int] = {}
    numbers: dict[frozenset[int], int] = {}
    everything = tuple(sorted({region.tool for region in nfa.regions} - {-1}))

    def set_of(tools: frozenset[int]) -> int:
        number = numbers.get(tools)
        if number is None:
            known = tools and -1 not in tools
            number = sets.setdefault(tuple(sorted(tools)), len(sets)) if known else -1
            numbers[tools] = number
        return number

    @cache
    def last(s: int) -> dict[int, int]:
        return past[s].last(kind_of[s]) if s in past else {AROUND: _UNKNOWN}

    tool_of = [nfa.regions[region].tool for region in nfa.region]
    kind_of = [nfa.regions[region].kind for region in nfa.region]
    state, separable = [], True
    stays = _Stays(nfa)
    for core in states:
        if around.isdisjoint(core):
            state.append(0)
            continue
        tools = frozenset([tool_of[s] for s in core])
        seen = [last(s) for s in core]
        common = set(seen[0]).intersection(*seen[1:])
        kind = common.pop() if len(common) == 1 else UNSETTLED
        if kind == UNSETTLED:  # in place of an age: the kind of text that it may be
            ages = {TEXT, REASONING, VALUE, STRING} & {kind_ for one in seen for kind_ in one}
        else:
            ages = {one[kind] for one in seen} - {_UNKNOWN}
        kinds = {kind_of[s] for s in core}
        within = kind in kinds or (kind == ARGUMENTS and not kinds.isdisjoint((KEY, VALUE, STRING)))
        mark = kind, ages.pop() if len(ages) == 1 else _UNKNOWN, set_of(tools), int(kind >= 0 and not within)
        state.append(table.setdefault(mark, len(table)))
        if len(tools) > 1:
            separable = separable and all(map(stays, core))
    symbol = []
    for backs in symbols:
        tools, kinds = frozenset([tool_of[s] for s in backs]), {kind_of[s] for s in backs}
        separable = separable and len(tools) == 1
        mark = kinds.pop() if len(kinds) == 1 else UNSETTLED, _UNKNOWN, set_of(tools), 0
        symbol.append(table.setdefault(mark, len(table)))
    rows = list(table)
    marks, symbol_marks, set_of_mark = np.array(state, np.int32), np.array(symbol, np.int32), np.array(rows)[:, 2]
    whole = sets.get(everything, -1)
    kept = np.zeros(marks.size, bool)
    if sets:
        kept[list(_reached(begins, links.tolist(), callers.tolist(), marks.size))] = True

    def narrows(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Which steps from states, to what has some set of tools, decide."""
        return kept[before] & (after >= 0) & (after != whole) & (after != set_of_mark[marks[before]])

    narrow, narrow_symbol = np.zeros(marks.size, bool), np.zeros(symbol_marks.size, bool)
    for p, q in (links.T, callers[:, 1::-1].T):
        narrow[q[narrows(p, set_of_mark[marks[q]])]] = True
    narrow_symbol[callers[narrows(callers[:, 1], set_of_mark[symbol_marks[callers[:, 2]]]), 2]] = True
    return Marks(marks, symbol_marks, rows, list(sets), narrow, narrow_symbol, separable)


def _lists(pool: Pool) -> list[list[int]]:
    data, ends = (part.tolist() for part in pool.flat())
    return [data[a:b] for a, b in pairwise(ends)]


def _reached(
    begins: Sequence[int], links: Sequence[Sequence[int]], callers: Sequence[Sequence[int]], count: int
) -> set[int]:
    """The states that some states lead to."""
    after: list[list[int]] = [[] for _ in range(count)]
    for p, q in links:
        after[p].append(q)
    for q, p, _ in callers:
        after[p].append(q)
    todo, seen = list(begins), set(begins)
    while todo:
        for q in after[todo.pop()]:
            if q not in seen:
                seen.add(q)
                todo.append(q)
    return seen


def _moves(nfa: Nfa) -> list[list[list[tuple[int, ...]]]]:
    return [moves.lists() for moves in (nfa.edges, nfa.free, nfa.guards, nfa.calls)]


class _Stays:
    """Whether the next symbol cannot take an NFA state of a tool's call out of it, other than by a push."""

    def __init__(self, nfa: Nfa) -> None:
        self.nfa = nfa
        self.edges, self.free, self.guards, self.calls = _moves(nfa)
        self.known: dict[int, bool] = {}

    def __call__(self, state: int) -> bool:
        found = self.known.get(state)
        if found is None:
            tool = self._tool(state)
            found = self.known[state] = tool < 0 or all(
                self._tool(s) == tool for _, target, _ in self.edges[state] for s in self._closure(target)
            )
        return found

    def _tool(self, state: int) -> int:
        return self.nfa.regions[self.nfa.region[state]].tool

    def _closure(self, state: int) -> set[int]:
        todo, seen = [state], {state}
        while todo:
            s = todo.pop()
            for target in [*(t for t, _ in self.free[s]), *(t for _, _, t in self.guards[s])]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return {s for s in seen if self.edges[s] or self.calls[s] or s in self.nfa.final}


@dataclass
class _Past:
    """What was read last on the ways to an NFA state.

    Attributes:
        here: symbols read in its region, where some were; none: whether a way reads none there.
        before: for such ways: kind → symbols of it that were read last.
    """

    here: int | None = None
    none: bool = False
    before: dict[int, int] = field(default_factory=dict)

    def last(self, kind: int) -> dict[int, int]:
        """Kind → symbols read last, given the kind of the state's own region."""
        own = {} if self.here is None else {kind: self.here}
        return _joined(self.before, own) if self.none else own


def _joined(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    out = dict(one)
    for kind, age in other.items():
        out[kind] = age if out.get(kind, age) == age else _UNKNOWN
    return out


def _pasts(nfa: Nfa, marked: set[int]) -> dict[int, _Past]:
    """The past of every NFA state of the frames with marked rules."""
    kinds = [region.kind for region in nfa.regions]
    past: dict[int, _Past] = {}
    todo: list[int] = []
    edges, free, guards, calls = _moves(nfa)

    def reach(target: int, here: int | None, none: bool, before: dict[int, int]) -> None:
        known = past.get(target)
        if known is None:
            past[target] = _Past(here, none, dict(before))
            todo.append(target)
            return
        new_here = known.here if here is None or here == known.here else here if known.here is None else _UNKNOWN
        new_before = _joined(known.before, before)
        if (new_here, none or known.none, new_before) != (known.here, known.none, known.before):
            known.here, known.none, known.before = new_here, none or known.none, new_before
            todo.append(target)

    for start in [*nfa.entries, *(s for i, s in enumerate(nfa.starts) if i in marked)]:
        reach(start, None, True, {})
    while todo:
        s = todo.pop()
        mine, kind = past[s], kinds[nfa.region[s]]
        for target in [*(t for t, _ in free[s]), *(t for _, _, t in guards[s])]:
            if kinds[nfa.region[target]] == kind:
                reach(target, mine.here, mine.none, mine.before)
            else:
                reach(target, None, True, mine.last(kind))
        count = None if mine.here is None else mine.here + 1 if 0 <= mine.here < _MOST else _UNKNOWN
        for _, target, _ in edges[s]:
            if count is not None:
                reach(target, count, False, {})
            if mine.none:
                reach(target, 1, False, {})
        for _, _, back, _ in calls[s]:
            reach(back, _UNKNOWN, False, {})
    return past
