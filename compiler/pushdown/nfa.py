"""Make NFA states of nodes, frame by frame: what is called becomes call edges, everything else is inlined.

A frame (an *instance*) is the root or one called node, free or shallow (its twin that accepts only texts of minimum
height). Inlining is memoised by (node, state to return to), so a chain of optional members costs its length, not
its power set, and recursion at the end of a rule becomes a loop.

Leaves out   the order in which all of it is made: build_nfa.py. Determinism: pushdown.py walks sets of these states
             and reports where alternatives disagree.
Invariants   a state belongs to one instance; its scope is the counted loop it lies in, or -1.
Source       continuation passing over expressions; Thompson 1968 for the pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN

from ..budget import Budget
from ..errors import BudgetError, UnsupportedError
from .largest_rule import largest_rule
from .node_analysis import EXPAND_STATES, SIZE_CAP, Facts
from .nodes import CALL, COUNTED, QUOTE, REF, REPEAT, SPECIAL
from .regions import Region, in_call
from .state_rows import Moves
from .worklist import Filling, Place

EXPAND_COPIES = 3  # a repeat of no more copies than this is copied, as one that costs few states; others are counted
EXPAND_LIMIT = 200_000  # no repeat is copied into more states than this
UNGUARDED = -1


@dataclass(frozen=True)
class Choices:
    """Decisions that pushdown.py revises when alternatives disagree: sets of nodes.

    Attributes:
        called: strings that are called although they could be inlined.
        inlined: bracketed groups that are inlined although they could be called.
        expanded: repeats that are copied although they are large.
    """

    called: frozenset[int] = frozenset()
    inlined: frozenset[int] = frozenset()
    expanded: frozenset[int] = frozenset()


@dataclass
class Loop:
    """A counted repeat: its node, the entry of its item and the state that stands for it; -1 for a terminal."""

    node: int
    entry: int
    body: int


class Nfa:
    """NFA states and their moves.

    Attributes:
        edges: (symbol mask number, target, adds one to the counter).
        free: (target, enters a counted loop): moves that read nothing.
        guards: (at_least, threshold, target): moves that read nothing, taken if counter >= threshold is at_least.
        calls: (free instance or -1, shallow instance or -1, state to return to, adds one to the counter).
        instance, scope, region: where every state lies, int32 [states], when finished; regions: distinct regions, of
            which that outside of all marks is the first.
        final: state → instance that is complete there.
        instances: (called node or -1 for the root, shallow); starts: first state of each.
        entries: first state of every entry of the grammar, all of them in the root.
        fresh: state at the border of a region → state whose first moves it takes over; behind: the same for the last
            state of a tool's call; taken: state at a border → states whose moves it has (copied_transitions.py).
        end_of_turn: number of the set of that symbol alone.
        skipped: state at the border to arguments → that behind them, which no call without any comes to.
    """

    def __init__(self, facts: Facts, choices: Choices, budget: Budget) -> None:
        pool = facts.pool
        self.pool = pool
        self.facts = facts
        self._marks = pool.grammar.marks
        self.choices = choices
        self.budget = budget
        self.edges, self.free, self.guards, self.calls = map(Moves, (3, 2, 3, 4))
        self.taken: dict[int, list[int]] = {}
        self._mask_number: dict[int, int] = {}
        self.specials: list[str] = []
        self.loops: list[Loop] = []
        self._behind_names: dict[int, int] = {}  # node → what stands behind its names
        self.choices = self._separate_counters(choices)
        self.filling = Filling(facts, self.choices.called, self.choices.inlined, self._named)
        self.finished = self.end_of_turn = -1
        self.entries: list[int] = []
        self.instances: list[tuple[int, bool]] = []
        self.starts: list[int] = []
        self.final: dict[int, int] = {}
        self.fresh: dict[int, int] = {}
        self.behind: dict[int, int] = {}
        self.skipped: dict[int, int] = {}
        self.find_reads_for: Callable[[], dict[int, list[int]]] = dict
        self.instance = self.scope = self.region = np.zeros(0, np.int32)
        self.regions: list[Region] = []

    @property
    def size(self) -> int:
        """How many states there are."""
        return self.filling.size

    # -- what is counted ----------------------------------------------------------------------------------------------

    def counted(self, number: int) -> bool:
        """Whether a repeat or a terminal keeps a counter instead of copies."""
        node = self.pool.nodes[number]
        if number in self.choices.expanded or node[0] not in (REPEAT, COUNTED):
            return False
        if node[0] == COUNTED:
            return True
        _, item, low, high = node
        copies = low if high is None else high
        return copies > EXPAND_COPIES and copies * self.facts.size[item] > EXPAND_STATES

    def copies_cost(self, number: int) -> int:
        """States that a repeat or a counted terminal costs when it is copied."""
        node = self.pool.nodes[number]
        size = self.facts.size[number if node[0] == COUNTED else node[1]]
        return max(node[-2], node[-1] or 0, 1) * size

    def _separate_counters(self, choices: Choices) -> Choices:
        """A frame has one counter: strings that count, inside of a counted repeat, get frames of their own."""
        called = set(choices.called)
        pool = self.pool
        for outer in self.facts.repeats:
            if not self.counted(outer):  # a counted terminal holds no strings
                continue
            strings: set[int] = set()
            found = False
            todo, seen = [pool.nodes[outer][1]], set()
            while todo:
                n = todo.pop()
                if n in seen:
                    continue
                seen.add(n)
                kind = pool.nodes[n][0]
                if kind == REF:
                    todo.append(pool.rules[pool.nodes[n][1]])
                elif self.facts.is_string(n):
                    strings.add(n)
                    found = found or any(self.counted(m) for m in pool.below(n, through_calls=False))
                elif kind != CALL:
                    todo.extend(pool.children(n))
            if found:
                called |= strings
        return Choices(frozenset(called), choices.inlined, choices.expanded)

    # -- states ----------------------------------------------------------------------------------------------------

    def where(self, state: int) -> Place:
        """The place of a state."""
        return self.filling.place(state)

    def copy_of(self, state: int, tool: int | None = None) -> int:
        """A state in the place of another one, as yet without moves; perhaps one of a tool's call."""
        place = self.filling.place(state)
        if tool is not None:
            place = place._replace(region=in_call(place.region, tool))
        return self.filling.new(place)

    def led_to(self, states: Iterable[int]) -> set[int]:
        """The states, and all that they lead to without reading, or did before they read for them."""
        seen = set(states)
        todo = list(seen)
        while todo:
            s = todo.pop()
            for t in self.reads_for.get(s) or [t for t, _ in self.free.of(s)]:
                if t not in seen:
                    seen.add(t)
                    todo.append(t)
        return seen

    def alternatives(self, states: Iterable[int]) -> set[int]:
        """The states, and in the place of those that read for others these."""
        here = set(states)
        reading = here & self.reads_for.keys()
        return here - reading | {s for s in self.led_to(reading) - self.reads_for.keys() if self.edges.of(s)}

    def mask(self, symbols: int) -> int:
        """Number of a set of symbols given as a bit mask."""
        return self._mask_number.setdefault(symbols, len(self._mask_number))

    def mask_numbers(self, sets: Iterable[int]) -> list[int]:
        """The same of several sets."""
        known = self._mask_number
        return [known.setdefault(symbols, len(known)) for symbols in sets]

    @property
    def masks(self) -> list[int]:
        """Distinct sets of symbols as bit masks, bit s for symbol s."""
        return list(self._mask_number)

    def _special(self, name: str) -> int:
        if name not in self.specials:
            self.specials.append(name)
        return END_OF_TURN + 1 + self.specials.index(name)

    def check(self) -> None:
        with self.budget.blaming(self.largest_rule):
            self.budget.check("states", self.size)

    def largest_rule(self, states: np.ndarray | None = None) -> str:
        """The rule that most of these states come from, or of all of them, for errors about limits."""
        return largest_rule(self.facts, self.filling, states)

    def _named(self, node: int) -> int:
        """What stands behind the names of rules without marks."""
        rules, nodes, known = self.pool.rules, self.pool.nodes, self._behind_names
        way: dict[int, None] = {}
        while node not in known and node not in way and nodes[node][0] == REF and nodes[node][1] not in self._marks:
            way[node] = None  # each of a chain of rules is asked for
            node = rules[nodes[node][1]]
        found = known.get(node, node)
        known.update(dict.fromkeys(way, found))
        return found

    def get(self, node: int, back: int, height: int) -> int:
        """The state from which a text of the node leads to ``back``; its moves are filled in later."""
        return self.filling.get(self._named(node), back, height)

    def decide(self, entry: int, number: int, back: int, height: int) -> None:
        """Make the moves of a state, where there is something to decide."""
        node = self.pool.nodes[number]
        kind = node[0]
        if kind == REPEAT:
            self._repeat(entry, number, back, height)
        elif kind == COUNTED and self.counted(number):
            self._count_units(entry, number, back)
        elif kind == COUNTED:
            self._check_copies(number)
            self.filling.terminal(self.pool.copies[number](), entry, back)
        elif kind == SPECIAL:
            self.edges.rows += (entry, self.mask(1 << self._special(node[1])), back, 0)
        else:
            assert kind == REF  # one of rules that only name each other in a circle: nothing is read

    @cached_property
    def reads_for(self) -> dict[int, list[int]]:
        """State that reads what others would (left_factoring.py, choice_tries.py) → these, or where they begin."""
        return self.find_reads_for()

    @cached_property
    def string_entries(self) -> list[tuple[int, int]]:
        """(state, node) of every inlined string."""
        starts, called = set(self.starts), self.choices.called
        frames = zip(self.starts[1:], (node for node, _ in self.instances[1:]), strict=True)
        begun = chain(self.filling.begun(), frames)
        return [
            (entry, node)
            for entry, node in begun
            if self.facts.is_string(node) and (node not in called or entry in starts)
        ]

    def _count_units(self, entry: int, number: int, back: int) -> None:
        """A terminal whose units are counted, see counted.py: a state per state of the product."""
        self._check_scope(number, back)
        c, outside = self.pool.counted[number], self.where(back)
        inside = self.where(back)._replace(scope=len(self.loops))
        self.loops.append(Loop(number, -1, -1))
        quote = self.mask(1 << QUOTE)
        opened = entry
        if c.quoted:
            opened = self.filling.new(outside)
            self.edges.rows += (entry, quote, opened, 0)
        states = [self.filling.new(inside) for _ in c.edges]
        self.free.rows += (opened, states[0], 1)
        for i, row in enumerate(c.edges):
            adds = c.between[i]
            sources: dict[tuple[int, int], int] = {}  # (counter is less than, is at least): state that has passed it
            for mask, t in row:
                below = UNGUARDED
                if c.high is not None and c.least[t] + adds > c.least[i]:
                    below = c.high - c.least[t] + (not adds)
                most_here, most_there = c.most[i], c.most[t]
                from_ = 0
                if most_there is not None and (most_here is None or most_there + adds < most_here):
                    from_ = max(0, c.low - most_there - adds)
                if (below, from_) not in sources:
                    sources[below, from_] = self._behind(states[i], below, from_)
                self.edges.rows += (sources[below, from_], self.mask(mask), states[t], adds)
            if c.closes[i]:
                closing = back
                if c.quoted:
                    closing = self.filling.new(inside if c.low else outside)
                    self.edges.rows += (closing, quote, back, 0)
                if c.low:
                    self.guards.rows += (states[i], 1, c.low, closing)
                else:
                    self.free.rows += (states[i], closing, 0)

    def _behind(self, state: int, below: int, from_: int) -> int:
        """A state that is reached where the counter is less than ``below`` and at least ``from_``."""
        for at_least, threshold, needed in ((False, below, below != UNGUARDED), (True, from_, from_ > 0)):
            if needed:
                new = self.copy_of(state)
                self.guards.rows += (state, at_least, threshold, new)
                state = new
        return state

    def _check_scope(self, number: int, back: int) -> None:
        if self.where(back).scope >= 0:
            raise UnsupportedError(
                "a counted repeat lies inside another one and cannot be given a frame of its own",
                place=self.pool.grammar.place(self.facts.rule_of(number)),
                hint="lower one of the two bounds",
            )

    def _check_copies(self, number: int) -> None:
        node = self.pool.nodes[number]
        copies = max(node[-2], node[-1] or 0)
        if copies * SIZE_CAP > EXPAND_LIMIT and self.copies_cost(number) > EXPAND_LIMIT:
            raise BudgetError(
                f"a repeat of {copies:,} would have to be copied: it runs beside another",
                place=self.pool.grammar.place(self.facts.rule_of(number)),
                hint="lower its bound",
            )

    def _repeat(self, entry: int, number: int, back: int, height: int) -> None:
        _, item, low, high = self.pool.nodes[number]
        if height >= 0 and self.facts.height[item] > height:
            self.free.rows += (entry, back, 0)  # low is 0, or the height would be larger
            return
        if self.facts.nullable[item]:
            low = 0
        if self.counted(number):
            self._count(entry, number, low, back, height)
            return
        self._check_copies(number)
        if high is None:
            head = self.copy_of(back)
            self.free.rows += (head, back, 0, head, self.get(item, head, height), 0)
            target = head
        else:
            target = back
            for _ in range(high - low):
                before = self.copy_of(back)
                self.free.rows += (before, back, 0, before, self.get(item, target, height), 0)
                target = before
        for _ in range(low):
            target = self.get(item, target, height)
        self.free.rows += (entry, target, 0)

    def _count(self, entry: int, number: int, low: int, back: int, height: int) -> None:
        _, item, _, high = self.pool.nodes[number]
        self._check_scope(number, back)
        inside = self.where(back)._replace(scope=len(self.loops))
        head, again, body = (self.filling.new(inside) for _ in range(3))
        self.free.rows += (entry, head, 1)
        self.free.rows += (again, head, 0)
        if low > 0:
            self.guards.rows += (head, 1, low, back)
        else:
            self.free.rows += (head, back, 0)
        if high is not None:
            self.guards.rows += (head, 0, high, body)
        else:
            self.free.rows += (head, body, 0)
        self.loops.append(Loop(number, self.get(item, again, height), body))
