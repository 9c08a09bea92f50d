"""Build the automaton of a grammar whose recursion no brackets enclose: number sets of configurations and their moves.

A worklist follows the sets of stack_sets.py, stack symbols and (stack symbol, pop) pairs; only those that some text
leads to exist. What follows what in a frame is kept as in closures.py: links, completions, callers.

Leaves out   what sets do (stack_sets.py), the network (networks.py), groups in brackets (pushdown.py, which is asked
             first), counters: repeats are copied here.
Invariants   as pushdown.py: state 0 is dead, 1 finished, every other state can reach the end; numbers follow discovery.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

from toolc.runtime.format.ops import KEEP, KIND_BITS, KIND_MASK, POP, PUSH
from toolc.runtime.format.tables import AROUND

from ..budget import Budget
from ..errors import GrammarError
from ..grammar.analysis import strong_components
from ..ir.nodes import Grammar
from ..terminals.terminal import terminal_dfa
from .inclusion import Word
from .interning import uncalled_nodes
from .marks import Marks
from .networks import read_network
from .parting_texts import Place, first_byte, shortest_texts, text_of, way_to
from .pushdown import Automaton
from .stack_sets import OVER, Calls, Item, Pop, Push, Set, Sets, Symbol, Unbounded

_T = TypeVar("_T")

_MOST_WORK = 20_000  # configurations of all states that are expanded before the next way is tried
_WAYS = (False, 0, False), (True, 0, False), (True, 1, False), (True, 2, False), (True, 0, True)
"""What is tried one after the other, see `Sets`: prune, keep, forced."""


def build_deterministic(grammar: Grammar, budget: Budget, soft_depth: int, max_depth: int | None = None) -> Automaton:
    """The automaton of a grammar without marks.

    Args:
        max_depth: most recursive calls that may be open undecided; None: no limit, or the grammar is refused.

    Raises:
        GrammarError: alternatives part in a way that no stack can follow.
        UnsatisfiableError: no text matches.
        BudgetError: a limit was reached.
    """
    pool = uncalled_nodes(grammar, budget, terminal_dfa)
    calls = Calls(read_network(pool, budget), budget)
    told: tuple[_Builder, Unbounded] | None = (
        None  # what the error is about: a way that left out what it could, at best
    )
    for way in _WAYS:
        builder = _Builder(Sets(calls, *way, None), budget)
        try:
            return builder.automaton(grammar, soft_depth)
        except Unbounded as unbounded:
            if told is None or told[1].k < 0 or (way == _WAYS[1] and unbounded.k >= 0):
                told = builder, unbounded
    if max_depth is not None:
        limited = _Builder(Sets(calls, *_WAYS[1], max_depth), budget).automaton(grammar, soft_depth)
        return replace(limited, restrictions=("max-depth",))
    assert told is not None
    raise told[0].refusal(grammar, told[1])


@dataclass
class _Numbers(Generic[_T]):
    """Things by number, in the order in which they were met."""

    of: dict[_T, int] = field(default_factory=dict)
    known: list[_T] = field(default_factory=list)

    def number(self, thing: _T) -> int:
        found = self.of.get(thing)
        if found is None:
            found = self.of[thing] = len(self.known)
            self.known.append(thing)
        return found


class _Builder:
    """States, symbols and what follows what.

    Attributes:
        before: per state the states that go on to it in the same frame.
        done: per state the pops that can be reached from it in its frame.
        callers: per state (state, symbol): it is entered from there under that symbol.
    """

    def __init__(self, sets: Sets, budget: Budget) -> None:
        self.sets = sets
        self.budget = budget
        self.states = _Numbers[Set]()
        self.symbols = _Numbers[Symbol]()
        self.pushes = _Numbers[tuple[int, int, int]]()  # symbol, states that are entered in mode 0 and 1
        self.pops = _Numbers[Pop]()
        self.before: list[dict[int, None]] = []
        self.done: list[dict[int, None]] = []
        self.callers: list[dict[tuple[int, int], None]] = []
        self.rows: list[dict[int, int]] = []
        self.returns: dict[tuple[int, int], int] = {}
        self._ready: list[tuple[int, int]] = []  # (state, pop) whose consequences are to be drawn
        self._state(frozenset())
        self._state(OVER)
        self._entries: list[int] = []

    def _state(self, set_: Set) -> int:
        number = self.states.number(set_)
        if number == len(self.before):
            self.before.append({})
            self.done.append({})
            self.callers.append({})
        return number

    def automaton(self, grammar: Grammar, soft_depth: int) -> Automaton:
        rules = dict.fromkeys([grammar.start, *grammar.entries.values()])
        entries = {rule: self._state(self.sets.start(rule)) for rule in rules}
        self._entries = list(entries.values())
        work = 0
        while len(self.rows) < len(self.states.known):
            self.budget.check("states", len(self.states.known))
            set_ = self.states.known[len(self.rows)]
            work += len(set_)
            if work > _MOST_WORK and self.sets.limit is None:
                raise Unbounded(sorted(set_, key=lambda item: (self.sets.calls.open(item[1]), item)))
            self._expand(len(self.rows))
            while self._ready:
                self._draw(*self._ready.pop())
        return self._assembled(grammar, entries, soft_depth)

    def _expand(self, q: int) -> None:
        row: dict[int, int] = {}
        self.rows.append(row)
        set_ = self.states.known[q]
        if set_ == OVER:
            row[self.sets.end_class] = q << KIND_BITS | KEEP
            return
        for k, move in self.sets.moves(set_).items():
            if isinstance(move, Push):
                g = self.symbols.number(move.symbol)
                into, least = self._state(move.into), self._state(move.least)
                row[k] = self.pushes.number((g, into, least)) << KIND_BITS | PUSH
                for entered in dict.fromkeys((into, least)):
                    self.callers[entered][q, g] = None
                    for pop in list(self.done[entered]):
                        self._come_back(q, g, pop)
            elif isinstance(move, tuple):
                pop = self.pops.number(move)
                row[k] = pop << KIND_BITS | POP
                self._complete(q, pop)
            else:
                target = self._state(move)
                row[k] = target << KIND_BITS | KEEP
                self._link(q, target)

    def _complete(self, q: int, pop: int) -> None:
        if pop not in self.done[q]:
            self.done[q][pop] = None
            self._ready.append((q, pop))

    def _draw(self, q: int, pop: int) -> None:
        """What follows from that a pop is reached from a state."""
        for p in list(self.before[q]):
            self._complete(p, pop)
        for p, g in list(self.callers[q]):
            self._come_back(p, g, pop)

    def _link(self, q: int, target: int) -> None:
        if q not in self.before[target]:
            self.before[target][q] = None
            for pop in list(self.done[target]):
                self._complete(q, pop)

    def _come_back(self, q: int, g: int, pop: int) -> None:
        target = self.returns.get((g, pop))
        if target is None:
            returned = self.sets.returned(self.symbols.known[g], self.pops.known[pop])
            target = self.returns[g, pop] = self._state(returned)
        if target:
            self._link(q, target)

    # -- what is refused

    def refusal(self, grammar: Grammar, unbounded: Unbounded) -> GrammarError:
        """The error for configurations whose stacks differ more and more, behind the state that was expanded last."""
        sets, network = self.sets, self.sets.calls.network
        items = [unbounded.items[0], unbounded.items[-1]]
        opened = [sets.calls.open(item[1]) for item in items]
        words = [(item[0], *item[1]) for item in items]
        rules = sorted({network.rule[q] for word in words for q in word if q >= 0} - {""})
        rule = rules[0] if rules else grammar.start
        texts: list[str] = []
        way = way_to(self._entries, len(self.rows) - 1, self._steps)
        byte = b""
        if way is not None and unbounded.k >= 0:
            byte = first_byte(sum(1 << s for s in range(256) if sets.class_of[s] == unbounded.k))
            shortest = shortest_texts(network, self.budget)
            for item, word in zip(items, words, strict=True):
                rest = text_of(word + self._below(item, way[1]), shortest)
                texts.append(repr((way[0] + byte + (rest or b"")).decode(errors="replace")))
        begin = "" if way is None else f" behind {(way[0] + byte).decode(errors='replace')!r}"
        few, many = opened
        counted = (
            f"{few} or {many} calls of it may be open"
            if few < many
            else f"{many} calls of it may be open, and end with one byte"
        )
        return GrammarError(
            f"rule {rule} recurs so that no stack can follow: {counted}{begin}, and more behind longer texts",
            place=grammar.place(rule),
            found=" and ".join(dict.fromkeys(texts)) or ", ".join(rules),
            expected="alternatives that a bounded piece of text tells apart, of " + ", ".join(rules),
            hint="write a delimiter where they part, or allow so many undecided calls with --max-depth",
        )

    def _below(self, item: Item, stack: tuple[int, ...]) -> Word:
        """What lies in the stack below a configuration."""
        word: Word = ()
        group = item[2]
        for g in reversed(stack):
            chunk, group, _ = min(self.symbols.known[g][group[0]])
            word += chunk
        return word

    def _steps(self, place: Place) -> Iterator[tuple[bytes, Place]]:
        """The bytes that can be read at a place, as far as it is known, and where they lead."""
        state, stack = place
        for k, op in self.rows[state].items() if state < len(self.rows) else ():
            byte = first_byte(sum(1 << s for s in range(256) if self.sets.class_of[s] == k))
            kind, number = op & KIND_MASK, op >> KIND_BITS
            if not byte:
                continue
            if kind == PUSH:
                g, into, _ = self.pushes.known[number]
                yield byte, (into, (*stack, g))
            elif kind == POP:
                target = self.returns.get((stack[-1], number), 0) if stack else 0
                if target:
                    yield byte, (target, stack[:-1])
            else:
                yield byte, (number, stack)

    # -- the tables

    def _assembled(self, grammar: Grammar, entries: dict[str, int], soft_depth: int) -> Automaton:
        sets, size = self.sets, len(self.rows)
        ops = np.zeros((size, sets.classes), np.int32)
        for q, row in enumerate(self.rows):
            for k, op in row.items():
                ops[q, k] = op
        symbols = len(self.symbols.known)
        top, below = self._order(symbols)
        numbers = _Numbers[int]()
        numbers.number(0)
        depth = _deepest(below)
        returns = [(g, pop, target) for (g, pop), target in self.returns.items() if target]
        least = [height for g, into, least in self.pushes.known for _, _, _, height in self.states.known[least]]
        none = np.zeros(size, np.int32), np.zeros(symbols, np.int32)
        return Automaton(
            symbol_class=np.array(sets.class_of, np.int32),
            specials=tuple(sets.calls.network.specials),
            classes=sets.classes,
            threshold_offset=np.zeros(size + 1, np.int32),
            threshold=np.zeros(0, np.int32),
            ops=ops,
            state_row=np.arange(size + 1, dtype=np.int32),
            pushes=np.array([(*push, KEEP) for push in self.pushes.known], np.int32).reshape(-1, 4),
            return_key=np.array([one[:2] for one in returns], np.int32).reshape(-1, 2),
            return_to=np.array([(one[2], KEEP) for one in returns], np.int32).reshape(-1, 2),
            stack_symbols=symbols,
            completions=len(self.pops.known),
            top=np.array([numbers.number(bits) for bits in top], np.int32),
            below=np.array([numbers.number(bits) for bits in below], np.int32),
            sets=[_members(bits) for bits in numbers.known],
            start=entries[grammar.start],
            entries=entries,
            marks=Marks(*none, [(AROUND, -1, -1, 0, 0)], [], none[0] > 0, none[1] > 0, True),
            modes=1 if depth is not None else 2,
            soft_depth=soft_depth if depth is None else depth,
            shallow_height=max(least, default=0) + 1 if depth is None else 0,
            counts={"nfa_states": len(sets.calls.network.final), "local_states": size, "classes": sets.classes},
            largest_rule=lambda: grammar.start,
        )

    def _order(self, symbols: int) -> tuple[list[int], list[int]]:
        """The symbols that can be on top in every state, and right under every symbol, as bit sets."""
        after: list[list[int]] = [[] for _ in self.before]
        for target, sources in enumerate(self.before):
            for q in sources:
                after[q].append(target)
        top = [0] * len(self.before)
        todo: dict[int, None] = {}
        for entered, callers in enumerate(self.callers):
            for _, g in callers:
                top[entered] |= 1 << g
                todo[entered] = None
        while todo:
            q, _ = todo.popitem()
            for t in after[q]:
                if top[q] & ~top[t]:
                    top[t] |= top[q]
                    todo[t] = None
        below = [0] * symbols
        for callers in self.callers:
            for q, g in callers:
                below[g] |= top[q]
        return top, below


def _members(bits: int) -> np.ndarray:
    return np.array([g for g in range(bits.bit_length()) if bits >> g & 1], np.int32)


def _deepest(below: list[int]) -> int | None:
    """Most symbols that can lie on each other; None if there is no bound."""
    graph = {str(g): [str(one) for one in _members(bits).tolist()] for g, bits in enumerate(below)}
    depth: dict[str, int] = {}
    for part in strong_components(graph):
        if len(part) > 1 or part[0] in graph[part[0]]:
            return None
        depth[part[0]] = 1 + max((depth[one] for one in graph[part[0]]), default=0)
    return max(depth.values(), default=0)
