"""Find the ways to missing members: how to close an object whose members stand in any order.

Without their registers, the tables accept objects with repeated and with missing members (../pushdown/members.py), so
their shortest way to the end may leave required members out. Such an object is closed by its missing required members,
one after the other:

    behind a member     towards a missing required member; if none is missing, the end
    inside of keys      towards a missing required member; if none can come here, by a key that is no member; if there
                        is no such key, towards any missing member

A *way list* of a state says so: the first token whose test the register passes; the close token comes after all of
them. What required members take is owed from the beginning of the object on, beside what its stack symbol owes, and
taken off when a key was read (word 0 of the register, docs/format.md):

    cost(k)     = tokens from behind the key to the end + the most of (tokens to behind the key − tokens to the end)
                  over all places where the object may end, 0 at least: whoever owes that can write k at any of them
    due(frame)  = sum of the costs of its required members

An item of an array with uniqueItems is a key without a value.

Leaves out   tests on the way (register_rules.py); bounds of all other states (completion.py).
Invariants   every token on these ways is one byte. Bounds are never below what closing takes; behind a comma they may
             be above what they were before it, since another member may have to follow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.format.tables import NEVER, Tables
from toolc.runtime.selection.shortest_paths import Signs

from ..budget import Budget
from .register_rules import Frames, Test, keys_of, ops_of_cells


def has_members(tables: Tables) -> bool:
    """Whether some state is marked with a member."""
    return bool(tables.mark[tables.state_mark, 4].any())


WAITING = 1
"""The bound of a state marked `WAITS` (../pushdown/member_marks.py): 1, for the brace. What its missing member takes is
in the cost of that member. No way to the state has read it, so the way list always leads on."""


class MemberWays:
    """The ways to the members of one frame.

    Attributes:
        keys: what may come next in its states.
        inside: the states before a key is over, in which the object cannot end; also where it begins, if it may not be
            empty, and behind a comma.
        ends: the states in which the object may end, or go on to a member; and those that wait for one.
        lists: state → its way list, tokens and their tests.
        due: what the required members take; NEVER where that is not known (yet).
        cost: state behind the key of a required member → its cost.
    """

    def __init__(self, t: Tables, frames: Frames, states: np.ndarray, signs: Signs) -> None:
        keys = self.keys = keys_of(frames, states)
        self.ends = [q for q in keys.following if q in keys.waiting or keys.closes(frames, q)]
        self.inside = _leading_to(frames, keys.bit, set(keys.following).difference(self.ends, keys.bit))
        towards = self.inside.union(keys.bit)
        leaves = [q for q in self.inside if not towards.issuperset(frames.after(q))]
        self._exits = _leading_to(frames, leaves, self.inside).union(leaves)  # where a key that is no member may come
        self._edges = _edges(t, [*sorted(self.inside), *self.ends], signs)
        self._behind: dict[int, list[int]] = defaultdict(list)
        for q, bit in keys.bit.items():
            self._behind[bit].append(q)
        before: dict[int, list[int]] = defaultdict(list)
        for q, edges in self._edges.items():
            for _, to in edges:
                before[to].append(q)
        self._steps = {bit: _distances(before, self._behind[bit]) for bit in sorted(self._behind)}
        self._next: dict[int, list[int]] = defaultdict(list)  # state → members whose keys may come next, ascending bits
        for bit, steps in self._steps.items():
            for q in steps:
                self._next[q].append(bit)
        self.due = NEVER if keys.required else 0
        self.cost: dict[int, int] = {}
        self._over: dict[int, int] = {}  # of a required member: tokens from behind its key to the end, less its cost
        self.lists: dict[int, list[tuple[int, Test]]] = {}

    def settle(self, bound: np.ndarray) -> bool:
        """Work out the costs of required members, unless they are known; True if this call found them.

        Args:
            bound: int32 [states]: of the states, from what is known.
        """
        if self.due < NEVER:
            return False
        cost: dict[int, int] = {}
        over: dict[int, int] = {}
        due = 0
        for bit in self._required(list(self._behind)):
            steps, rest = self._steps[bit], self._rest(bit, bound)
            more = [steps[q] - self._least(q, bound) for q in self.ends if q in steps]  # others cannot need it
            one = max([0, *more]) + rest
            if one >= NEVER // 2:
                return False
            cost.update(dict.fromkeys(self._behind[bit], one))
            over[bit] = rest - one
            due += one
        self.cost, self._over, self.due = cost, over, min(NEVER, due)
        return due < NEVER

    def begin(self, state: int, bound: np.ndarray) -> int:
        """The bound of a state when the object begins there, and a key has to come first: all members are missing. What
        is due is left out. The state may be one behind a comma as well, where its bound is another (`bounds`).

        Args:
            bound: int32 [states]: what is known; the answer elsewhere, and where the costs are not known yet.
        """
        before = int(bound[state])
        if self.due == NEVER or state not in self.inside or (before == NEVER and state in self._exits):
            return before
        takes = [self._steps[bit][state] + self._over[bit] for bit in self._required(self._next[state])]
        if not takes and self._next[state]:  # the object may not be empty; the way list leads to its first member
            first = self._next[state][0]
            takes = [self._steps[first][state] + self._rest(first, bound)]
        return min(NEVER, max([0 if before == NEVER else before, *takes]))

    def _least(self, state: int, bound: np.ndarray) -> int:
        return WAITING if state in self.keys.waiting else int(bound[state])

    def _required(self, bits: list[int]) -> list[int]:
        return [bit for bit in bits if self.keys.required >> bit & 1] if self.keys.required else []

    def _rest(self, bit: int, bound: np.ndarray) -> int:
        """Tokens from behind a key to the end."""
        return max(int(bound[q]) for q in self._behind[bit])

    def bounds(self, bound: np.ndarray, other: np.ndarray) -> dict[int, int]:
        """State inside of keys → its bound; NEVER where a member has none. Sets the way lists.

        Args:
            bound: int32 [states];  other: bool [states]: whether, inside of keys, that bound is of a way by a key that
                is no member.
        """
        found: dict[int, int] = {}
        rest = {bit: self._rest(bit, bound) for bit in self._behind}
        for q in self.ends if self.keys.required else []:
            self.lists[q] = self._list(q, self._required(self._next[q]))
        for q in sorted(self.inside):
            required = self._required(self._next[q])
            optional = [] if other[q] else [bit for bit in self._next[q] if bit not in self._over]
            takes = [self._steps[bit][q] + self._over[bit] for bit in required]
            takes += [self._steps[bit][q] + rest[bit] for bit in optional]
            self.lists[q] = [*self._list(q, required), *self._list(q, optional)]
            found[q] = min(NEVER, max([int(bound[q]) if other[q] else 0, *takes]))
            if q in self._exits and not other[q]:
                found[q] = NEVER
        return found

    def _list(self, q: int, wanted: list[int]) -> list[tuple[int, Test]]:
        """The tokens that lead to some members, each with the test that one of those is missing. Of several members,
        the one with the least bit comes first."""
        found: dict[int, int] = {}
        for bit in wanted:
            steps = self._steps[bit]
            token = next(token for token, to in self._edges[q] if steps.get(to, NEVER) == steps[q] - 1)
            found[token] = found.get(token, 0) | 1 << bit
        return [(token, (1, mask)) for token, mask in found.items()]


class Members(NamedTuple):
    """What closing takes in all objects whose members stand in any order.

    Attributes:
        ways: of each frame;  frame_of: state → number of its frame.
        behind: bool [states]: behind a key: a way that was found without registers may not enter it.
        inside: bool [states]: inside of keys;  stops: bool [states]: with a way list: other ways end here.
        waiting: states whose bound is `WAITING`.
    """

    ways: list[MemberWays]
    frame_of: dict[int, int]
    behind: np.ndarray
    inside: np.ndarray
    stops: np.ndarray
    waiting: list[int]

    @staticmethod
    def of(t: Tables, frames: Frames, signs: Signs, budget: Budget) -> Members:
        """Of tables whose states are marked with members."""
        ways: list[MemberWays] = []
        frame_of: dict[int, int] = {}
        behind, inside, stops = (np.zeros(t.states, bool) for _ in range(3))
        for number, states in enumerate(frames.with_members):
            budget.check("")
            one = MemberWays(t, frames, states, signs)
            frame_of.update(dict.fromkeys(states.tolist(), number))
            behind[list(one.keys.bit)] = True
            inside[list(one.inside)] = stops[list(one.inside)] = True
            if one.keys.required:
                stops[one.ends] = True
            ways.append(one)
        waiting = sorted(q for one in ways for q in one.keys.waiting)
        return Members(ways, frame_of, behind, inside, stops, waiting)

    def settle(self, bound: np.ndarray) -> bool:
        """Work out the costs of frames of which they are not known yet; whether some were found. See `MemberWays`."""
        return sum(one.settle(bound) for one in self.ways) > 0

    def bounds(self, bound: np.ndarray, other: np.ndarray) -> dict[int, int]:
        """State inside of keys → its bound, NEVER in frames whose costs are not known; sets way lists."""
        found: dict[int, int] = {}
        for one in self.ways:
            found |= one.bounds(bound, other) if one.due < NEVER else dict.fromkeys(one.inside, NEVER)
        return found

    def begin(self, state: int, bound: np.ndarray) -> int:
        """See `MemberWays.begin`."""
        number = self.frame_of.get(state)
        return int(bound[state]) if number is None else self.ways[number].begin(state, bound)

    def due_of(self, state: int) -> int:
        """What the required members take of a frame that begins in a state."""
        number = self.frame_of.get(state)
        return 0 if number is None else self.ways[number].due


def _leading_to(frames: Frames, states: Iterable[int], among: set[int]) -> set[int]:
    """The states among some from which moves lead to given ones, by way of such states alone."""
    found: set[int] = set()
    todo = list(states)
    while todo:
        for q in frames.before(todo.pop()):
            if q in among and q not in found:
                found.add(q)
                todo.append(q)
    return found


def _distances(before: dict[int, list[int]], behind: list[int]) -> dict[int, int]:
    """State → bytes from there to one of some states.

    Args:
        before: state → those that a byte leads to it from.
    """
    found = dict.fromkeys(behind, 0)
    reached = list(behind)
    for to in reached:
        for q in before[to]:
            if q not in found:
                found[q] = found[to] + 1
                reached.append(q)
    return found


def _edges(t: Tables, states: list[int], signs: Signs) -> dict[int, list[tuple[int, int]]]:
    """State → pairs of the token of one byte and the state that it leads to in the same frame, whatever the counter."""
    if not states:
        return {}
    count = t.cells_of("state_break", np.array(states))
    first = t.state_cell[states]
    cells = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    ops = ops_of_cells(t, cells)
    token = np.full(t.classes, -1, np.int64)
    for k in np.flatnonzero((signs.weight == 1) & (signs.symbol < 256)).tolist():
        token[k] = signs.byte.node_token[signs.byte.first_child[signs.symbol[k]]]
    begin = np.cumsum(count) - count
    same = np.logical_and.reduceat(ops == np.repeat(ops[begin], count, axis=0), begin)
    pops = (ops & KIND_MASK == POP).any(axis=1)
    sometimes = np.logical_or.reduceat(pops, begin) & ~np.logical_and.reduceat(pops, begin)
    ops = ops[begin]
    same &= (ops != 0) & (ops & KIND_MASK < PUSH) & (token >= 0) & ~sometimes[:, None]
    row, column = np.nonzero(same)
    found: dict[int, list[tuple[int, int]]] = {q: [] for q in states}
    for n, one, to in zip(row.tolist(), token[column].tolist(), (ops[row, column] >> KIND_BITS).tolist(), strict=True):
        found[states[n]].append((one, to))
    return found
