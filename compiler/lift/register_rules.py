"""Compute the register rules of states: the test on entering, the bit that is set, the test before a pop.

A frame with members is one object whose members stand in any order, or a union of such. Its register has a bit for each
member, set when the key was read. A state of the frame is *live* if some text leads from it to the end of the object:

    behind a key        its bit has to be clear before, and is set
    inside of keys      some member whose key begins so has to be missing
    before the end      all required members have to be there; of a union, those that the least alternative requires
    anywhere else       always: behind a member, either the end is allowed or a required member is missing, which may
                        come behind a comma

To enter a state, the register has to pass the test that says so. A pop needs all members that the end asks for.

Leaves out   the tokens that the tests take out of rows: check_lists.py.
Invariants   a frame in which one test does not say it is refused: `MembersClash`.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property, reduce
from operator import and_, or_
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import ACTION_BITS, KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.format.tables import FIRST_BIT, Tables
from toolc.runtime.jit.memory import kernel

from ..budget import Budget
from ..pushdown.member_marks import WAITS, MembersClash, asked_of, bit_of, is_required
from ..pushdown.moves import distinct_pairs, leading_to

_CHUNK = 4096  # cells whose ops are looked at together
_QUOTE, _BRACKET = ord('"'), ord("[")

Test = tuple[int, int]
"""(1, bits): some of the bits is clear; (0, bits): all are set."""
PASSES, NEVER = (0, 0), (1, 0)


class Frames:
    """The states of each frame, and the moves between them.

    Attributes:
        member: int32 [states]: 0, or what ../pushdown/member_marks.py takes apart: a member, or what an end asks for.
        marked: bool [states]: of a frame that has states with a member.
        pops: bool [states]: whether it may pop.
        with_members: states of each frame that has some with a member;  has_arrays: some of these are arrays.
    """

    def __init__(self, t: Tables, budget: Budget) -> None:
        self.member = t.mark[t.state_mark, 4]
        self.pops = np.zeros(t.states, bool)
        self._leaves = np.zeros(t.states, bool)  # whether what is read before a quote may push or pop
        quote, bracket = int(t.symbol_class[_QUOTE]), int(t.symbol_class[_BRACKET])
        in_brackets = np.zeros(t.states, bool)
        cell_state = np.repeat(np.arange(t.states), t.cells_of("state_break"))
        pairs: list[np.ndarray] = []
        quiet: list[np.ndarray] = []
        back = _returns(t)
        for begin in range(0, t.cells, _CHUNK):
            budget.check("")
            ops = ops_of_cells(t, np.arange(begin, min(begin + _CHUNK, t.cells)))
            row, column = np.nonzero(ops)
            state, op = cell_state[begin + row], ops[row, column]
            kind, number = op & KIND_MASK, op >> KIND_BITS
            goes = kind < PUSH
            pairs.append(distinct_pairs(state[goes], number[goes]))
            goes &= column != quote
            quiet.append(distinct_pairs(state[goes], number[goes]))
            other = (kind >= PUSH) & (column != quote)
            self._leaves[state[other]] = True
            self.pops[state[kind == POP]] = True
            in_brackets[t.push[number[(kind == PUSH) & (column == bracket)], 1:3]] = True
            for q, n in distinct_pairs(state[kind == PUSH], t.push[number[kind == PUSH], 0]).tolist():
                pairs.append(np.array([(q, to) for to in back[n]], np.int64).reshape(-1, 2))
        moves = distinct_pairs(*np.concatenate(pairs).T)
        self._moves = moves
        first = np.searchsorted(moves[:, 0], np.arange(t.states + 1))
        self._first = first
        self._quiet = distinct_pairs(*np.concatenate(quiet).T)
        frame = _components(moves, t.states)
        wanted = np.unique(frame[self.member > 0])
        order = np.argsort(frame, kind="stable")
        begin_ = np.searchsorted(frame[order], wanted)
        end = np.searchsorted(frame[order], wanted, side="right")
        self.with_members = [order[a:b] for a, b in zip(begin_, end, strict=True)]
        self.marked = np.zeros(t.states, bool)  # states of such frames
        for states in self.with_members:
            self.marked[states] = True
        self.has_arrays = bool((in_brackets & self.marked).any())

    def after(self, state: int) -> list[int]:
        """The states that a state goes to, or goes on in once what it pushes is over."""
        found: list[int] = self._moves[self._first[state] : self._first[state + 1], 1].tolist()
        return found

    def before(self, state: int) -> list[int]:
        """The states that go to a state, or go on in it once what they push is over."""
        first, source = self._sources
        found: list[int] = source[first[state] : first[state + 1]].tolist()
        return found

    @cached_property
    def _sources(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the states before each state begin, and these."""
        order = np.argsort(self._moves[:, 1], kind="stable")
        return np.searchsorted(self._moves[order, 1], np.arange(self.pops.size + 1)), self._moves[order, 0]

    def calm(self, ruled: np.ndarray) -> np.ndarray:
        """bool [states]: what is read from it up to the next quote stays in the frame, in states without rules.

        Args:
            ruled: bool [states].
        """
        return ~leading_to(self._quiet, self._leaves | ruled)


def _returns(t: Tables) -> list[list[int]]:
    """Of every stack symbol the states in which the frame below goes on."""
    owner, value = t.return_[:, 0], t.return_[:, 1] >> ACTION_BITS
    found: dict[int, set[int]] = defaultdict(set)
    for base, to in zip(owner.tolist(), value.tolist(), strict=True):
        if base >= 0 and to:
            found[base].add(to)
    return [sorted(found[base]) for base in t.return_offset.tolist()]


def ops_of_cells(t: Tables, cells: np.ndarray) -> np.ndarray:
    """int32 [cells, classes]: their ops."""
    column = np.arange(t.classes)
    found = np.zeros((cells.size, t.classes), np.int32)
    for base in (t.cell_default[cells], t.cell_delta[cells]):
        place = base[:, None] + column
        owned = t.delta[place, 0] == base[:, None]
        found[owned] = t.delta[place[owned], 1]
    return found


@kernel()
def _joined(moves, label):  # type: ignore[no-untyped-def]
    """Label states that moves connect alike: union by the least number."""
    for i in range(moves.shape[0]):
        a, b = moves[i, 0], moves[i, 1]
        while label[a] != a:
            label[a] = label[label[a]]
            a = label[a]
        while label[b] != b:
            label[b] = label[label[b]]
            b = label[b]
        if a < b:
            label[b] = a
        else:
            label[a] = b
    for i in range(label.size):
        label[i] = label[label[i]]


def _components(moves: np.ndarray, states: int) -> np.ndarray:
    """int64 [states]: the least of the states that moves connect with each."""
    label = np.arange(states, dtype=np.int64)
    kept = moves[(moves > 1).all(axis=1)]  # the dead state and the finished one join no frames
    _joined(np.ascontiguousarray(kept), label)
    return label


class Rules:
    """The rules of states, and tests, by number.

    Attributes:
        of_state: int32 [states]: number of a state's rule; rule 0 tests and sets nothing.
        rules: (test on entering, bit or -1, test before a pop, tokens that the member takes off the rest), tests by
            number → number of the rule.
        tests: test → its number; 0 passes always.
        entering, popping: state → its tests, where it has one;  bit: state → the bit that it sets.
    """

    def __init__(self, states: int) -> None:
        self.of_state = np.zeros(states, np.int32)
        self.rules = {(0, -1, 0, 0): 0}
        self.tests: dict[Test, int] = {PASSES: 0}
        self.entering: dict[int, Test] = {}
        self.popping: dict[int, Test] = {}
        self.bit: dict[int, int] = {}

    def test(self, test: Test) -> int:
        """The number of a test."""
        return self.tests.setdefault(test, len(self.tests))

    def put(self, state: int, entering: Test, bit: int, popping: Test, cost: int = 0) -> None:
        """Set the rule of a state."""
        rule = self.test(entering), bit, self.test(popping), cost
        self.of_state[state] = self.rules.setdefault(rule, len(self.rules))
        if entering != PASSES:
            self.entering[state] = entering
        if popping != PASSES:
            self.popping[state] = popping
        if bit >= 0:
            self.bit[state] = bit


class Keys(NamedTuple):
    """What may come next in the states of one frame.

    Attributes:
        bit: state behind a key → its bit;  required: the bits of all members that an end asks for.
        following: state → the bits of the members of which one may come next, before any other.
        asks: state that may pop → the bits that have to be set then.
        ends: state → what each end asks for that may come before another key, as bits; empty: no end may.
        waiting: states marked `WAITS`. In ``ends`` they ask for nothing: a required member is missing, and may come.
    """

    bit: dict[int, int]
    required: int
    asks: dict[int, int]
    following: dict[int, int]
    ends: dict[int, frozenset[int]]
    waiting: frozenset[int]

    def closes(self, frames: Frames, state: int) -> bool:
        """Whether the object may end right here, or go on in states that only end; and members may come, too."""
        if not (self.ends[state] and self.following[state]) or state in self.bit:
            return False
        only = (to for to in frames.after(state) if to in self.ends and to not in self.bit)
        return bool(frames.pops[state]) or any(self.ends[to] and not self.following[to] for to in only)


def keys_of(frames: Frames, states: np.ndarray) -> Keys:
    """What may come next in the states of a frame."""
    member = dict(zip(states.tolist(), frames.member[states].tolist(), strict=True))
    bit = {q: FIRST_BIT + bit_of(one) for q, one in member.items() if one > 0}
    by_each = 0  # what every end asks for
    for one in member.values():
        if is_required(one):
            by_each |= 1 << FIRST_BIT + bit_of(one)
    waiting = frozenset(q for q, one in member.items() if one == WAITS)
    asked = {q: asked_of(one) << FIRST_BIT for q, one in member.items() if one < 0 and one != WAITS}  # of a union
    asks = {q: by_each | asked.get(q, 0) for q in member if frames.pops[q]}
    required = reduce(or_, asks.values(), 0)
    ends = {q: frozenset([asks[q]]) if q in asks else frozenset() for q in member}
    ends |= dict.fromkeys(waiting, frozenset([0]))
    keys = dict.fromkeys(member, 0)
    after: dict[int, list[int]] = {}
    for q in member:
        after[q] = [to for to in frames.after(q) if to in member]
        for to in after[q]:
            if to in bit:
                keys[q] |= 1 << bit[to]
        after[q] = [to for to in after[q] if to not in bit]
    changed = True
    while changed:
        changed = False
        for q in sorted(after, reverse=True):  # most states lead to such as were found later
            found, end = keys[q], ends[q]
            for to in after[q]:
                found |= keys[to]
                end |= ends[to]
            if found != keys[q] or end != ends[q]:
                keys[q], ends[q], changed = found, end, True
    return Keys(bit, required, asks, keys, ends, waiting)


def put_rules(frames: Frames, keys: Keys, cost: dict[int, int], rules: Rules) -> None:
    """Set the rules of the states of one frame.

    A state is live if a missing member may come next, or an end whose members are all there. If all that one end asks
    for may come next, too, the state is always live: either some of it is missing and can be read, or this end is open.

    Args:
        keys: what may come next in them.
        cost: state behind the key of a required member → tokens that the member takes off the rest (member_ways.py).

    Raises:
        MembersClash: no single test says whether a state is live.
    """
    bit, following = keys.bit, keys.following
    for q, ends in keys.ends.items():
        popping = (0, keys.asks[q]) if keys.asks.get(q) else PASSES
        if q in bit:
            rules.put(q, (1, 1 << bit[q]), bit[q], popping, cost.get(q, 0))
        elif any(one & ~following[q] == 0 for one in ends):
            rules.put(q, PASSES, -1, popping)
        elif following[q] and not ends:
            rules.put(q, (1, following[q]), -1, popping)
        elif (least := reduce(and_, ends)) in ends and not following[q]:
            rules.put(q, (0, least), -1, popping)
        else:
            raise MembersClash
