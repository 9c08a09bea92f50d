"""Nodes → NFA states, frame by frame: what is called becomes call edges, everything else is inlined.

A frame (an *instance*) is the root or one called node, free or shallow (its twin that accepts only texts of minimum
height). Inlining is memoised by (node, state to return to), so a chain of optional members costs its length, not
its power set, and recursion at the end of a rule becomes a loop.

Leaves out   determinism: pushdown.py walks sets of these states and reports where alternatives disagree.
Invariants   a state belongs to one instance; its scope is the counted loop it lies in, or -1.
Source       continuation passing over expressions; Thompson 1968 for the pieces.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..budget import Budget
from ..errors import BudgetError, UnsupportedError
from .counted import masks_of
from .marks import OUTSIDE, Region
from .nodes import (
    CALL,
    CHOICE,
    COUNTED,
    LITERAL,
    QUOTED,
    REF,
    REPEAT,
    SEQUENCE,
    SPECIAL,
    TERMINAL,
    NodePool,
    components,
    inline_references,
)

END_OF_TURN = 256  # the first symbol that is not a byte
EXPAND_COPIES = 3  # a repeat of no more copies than this is copied,
EXPAND_STATES = 64  # and so is one that costs no more states than this; others are counted
EXPAND_LIMIT = 200_000  # and no repeat is copied into more states than this
_SIZE_CAP = 4096
_DEPTH_CAP = 64
UNGUARDED = -1
_QUOTE = ord('"')


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
    """NFA states as parallel lists, indexed by state.

    Attributes:
        edges: (symbol mask number, target, adds one to the counter).
        free: (target, enters a counted loop): moves that read nothing.
        guards: (at_least, threshold, target): moves that read nothing, taken if counter >= threshold is at_least.
        calls: (free instance or -1, shallow instance or -1, state to return to, adds one to the counter).
        scope: counted loop of the state, or -1.
        instance: frame of the state.
        region: of the state, a number in ``regions``: see marks.py.
        final: instance that is complete here, or -1.
        masks: distinct sets of symbols as bit masks, bit s for symbol s.
        instances: (called node or -1 for the root, shallow); starts: first state of each.
        entries: first state of every entry of the grammar, all of them in the root.
        max_depth: most frames at a time, None without bound.
    """

    def __init__(self, pool: NodePool, choices: Choices, budget: Budget) -> None:
        self.pool = pool
        self._marks = pool.grammar.marks
        self.choices = choices
        self.budget = budget
        self.edges: list[list[tuple[int, int, bool]]] = []
        self.free: list[list[tuple[int, bool]]] = []
        self.guards: list[list[tuple[bool, int, int]]] = []
        self.calls: list[list[tuple[int, int, int, bool]]] = []
        self.scope: list[int] = []
        self.instance: list[int] = []
        self.region: list[int] = []
        self.regions: list[Region] = [OUTSIDE]
        self._here = 0  # region of the states that are being made
        self.fresh: dict[int, int] = {}  # state at the border of a region → state whose first moves it takes over
        self.taken: dict[int, list[int]] = {}  # the same → states whose moves it has
        self._entered: list[tuple[int, int]] = []  # (state at a border, head of a counted loop that begins there)
        self.final: list[int] = []
        self.masks: list[int] = []
        self._mask_number: dict[int, int] = {}
        self.specials: list[str] = []
        self.loops: list[Loop] = []
        self.string_entries: list[tuple[int, int]] = []  # (state, node) of every inlined string
        self.instances: list[tuple[int, bool]] = []
        self._instance_number: dict[tuple[int, bool], int] = {}
        self.starts: list[int] = []
        self._memo: dict[tuple[int, int, int], int] = {}
        self._tasks: list[tuple[int, int, int, int]] = []  # (entry, node, return state, height or -1)
        self._dfa_edges: dict[int, list[list[tuple[int, int]]]] = {}

        self._nullable = pool.nullable()
        self._size = self._sizes()
        self._height = self._heights()
        self.recursive = self._is_recursive()
        self._depth = self._depths()
        self.choices = self._separate_counters(choices)
        self._build()

    # -- analysis ---------------------------------------------------------------------------------------------------

    def _sizes(self) -> dict[int, int]:
        """About how many states each node costs when inlined, capped; rules that recur count as the cap."""
        pool = self.pool
        graph = inline_references(pool)
        component = components(graph)
        members = Counter(component.values())
        of_rule = {r: _SIZE_CAP for r in graph if members[component[r]] > 1 or r in graph[r]}
        value: dict[int, int] = {}
        order = sorted(graph, key=lambda r: component[r])  # what a rule mentions outside of calls comes before it,
        for rule in [*order, *order]:  # and what it mentions inside of them is known the second time
            for n in sorted(pool.below(pool.rules[rule])):
                node = pool.nodes[n]
                kind = node[0]
                if kind == LITERAL:
                    size = len(node[1])
                elif kind in (TERMINAL, COUNTED):
                    size = len(pool.dfas[node[1]].accepting)
                elif kind == REF:
                    size = of_rule.get(node[1], 1)
                elif kind in (SEQUENCE, CHOICE):
                    size = sum(value[c] for c in node[1])
                elif kind == REPEAT:
                    cost = max(1, node[2] if node[3] is None else node[3]) * value[node[1]]
                    size = cost if cost <= EXPAND_STATES else value[node[1]] + 3
                else:
                    size = value[node[1]] if kind == QUOTED else 1
                value[n] = min(_SIZE_CAP, size)
            of_rule.setdefault(rule, value[pool.rules[rule]])
        return value

    def _heights(self) -> dict[int, int]:
        """Least number of nested calls in a text of each node."""
        unknown = 1 << 30

        def combine(node, of, rule):  # type: ignore[no-untyped-def]
            kind = node[0]
            if kind == REF:
                return rule(node[1])
            if kind == SEQUENCE:
                return max((of(n) for n in node[1]), default=0)
            if kind == CHOICE:
                return min((of(n) for n in node[1]), default=unknown)
            if kind == REPEAT:
                return 0 if node[2] == 0 else of(node[1])
            return min(unknown, of(node[1]) + (kind == CALL)) if kind in (CALL, QUOTED) else 0

        return self.pool.fixpoint(unknown, combine)  # type: ignore[return-value]

    def _depths(self) -> dict[int, int]:
        """Largest number of nested calls in a text of each node, capped where the grammar has no bound."""
        cap = _DEPTH_CAP if self.recursive else 1 + sum(node[0] == CALL for node in self.pool.nodes)

        def combine(node, of, rule):  # type: ignore[no-untyped-def]
            kind = node[0]
            if kind == REF:
                return rule(node[1])
            if kind in (SEQUENCE, CHOICE):
                return max((of(n) for n in node[1]), default=0)
            if kind == REPEAT:
                return of(node[1])
            return min(cap, of(node[1]) + (kind == CALL)) if kind in (CALL, QUOTED) else 0

        return self.pool.fixpoint(0, combine)  # type: ignore[return-value]

    @property
    def max_depth(self) -> int | None:
        """Most frames on the stack at a time; None if there is no bound."""
        if self.recursive:
            return None
        extra = 1 if self.choices.called else 0
        return max(self._depth[self.pool.rules[rule]] for rule in self.pool.entries) + extra

    def _reference_graph(self) -> dict[str, set[str]]:
        pool = self.pool
        return {
            rule: {pool.nodes[n][1] for n in pool.below(root) if pool.nodes[n][0] == REF}
            for rule, root in pool.rules.items()
        }

    def _is_recursive(self) -> bool:
        component = components(self._reference_graph())
        pool = self.pool
        return any(
            pool.nodes[n][0] == CALL and self._recurs(n, component, rule)
            for rule, root in pool.rules.items()
            for n in pool.below(root)
        )

    def _recurs(self, number: int, component: dict[str, int], rule: str) -> bool:
        """Whether a node of a rule mentions a rule of the same component."""
        inside = (self.pool.nodes[n] for n in self.pool.below(number))
        return any(node[0] == REF and component[node[1]] == component[rule] for node in inside)

    def may_inline(self, number: int) -> bool:
        """Whether a called node can be inlined: it does not contain itself."""
        component = components(self._reference_graph())
        rules = [rule for rule, root in self.pool.rules.items() if number in set(self.pool.below(root))]
        return not any(self._recurs(number, component, rule) for rule in rules)

    def rule_of(self, number: int) -> str:
        """The first rule that holds a node, for errors."""
        for rule, root in self.pool.rules.items():
            if number in set(self.pool.below(root)):
                return rule
        return self.pool.start

    def is_string(self, number: int) -> bool:
        """Whether a node is quoted text as a whole: it can be called at its opening quote."""
        node = self.pool.nodes[number]
        if node[0] == TERMINAL:
            dfa = self.pool.dfas[node[1]]
            quote = dfa.class_of_byte[_QUOTE]
            first = [k for k in range(dfa.next_state.shape[1]) if dfa.next_state[0, k] >= 0]
            alone = first == [quote] and int((dfa.class_of_byte == quote).sum()) == 1
            return alone and not bool((dfa.next_state[dfa.accepting] >= 0).any())
        if node[0] == LITERAL:
            return len(node[1]) > 1 and node[1][0] == _QUOTE == node[1][-1] and node[1].count(b'"') == 2
        return node[0] == QUOTED or (node[0] == COUNTED and self.pool.counted[number].quoted)

    def counted(self, number: int) -> bool:
        """Whether a repeat or a terminal keeps a counter instead of copies."""
        node = self.pool.nodes[number]
        if number in self.choices.expanded or node[0] not in (REPEAT, COUNTED):
            return False
        if node[0] == COUNTED:
            return True
        _, item, low, high = node
        copies = low if high is None else high
        return copies > EXPAND_COPIES and copies * self._size[item] > EXPAND_STATES

    def copies_cost(self, number: int) -> int:
        """States that a repeat or a counted terminal costs when it is copied."""
        node = self.pool.nodes[number]
        size = self._size[number if node[0] == COUNTED else node[1]]
        return max(node[-2], node[-1] or 0, 1) * size

    def _separate_counters(self, choices: Choices) -> Choices:
        """A frame has one counter: strings that count, inside of a counted repeat, get frames of their own."""
        called = set(choices.called)
        pool = self.pool
        for outer in range(len(pool.nodes)):
            if pool.nodes[outer][0] != REPEAT or not self.counted(outer):  # a counted terminal holds no strings
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
                elif self.is_string(n):
                    strings.add(n)
                    found = found or any(self.counted(m) for m in pool.below(n, through_calls=False))
                elif kind != CALL:
                    todo.extend(pool.children(n))
            if found:
                called |= strings
        return Choices(frozenset(called), choices.inlined, choices.expanded)

    # -- building ---------------------------------------------------------------------------------------------------

    def _new(self, instance: int, scope: int) -> int:
        self.edges.append([])
        self.free.append([])
        self.guards.append([])
        self.calls.append([])
        self.scope.append(scope)
        self.instance.append(instance)
        self.region.append(self._here)
        self.final.append(-1)
        return len(self.edges) - 1

    def mask(self, symbols: int) -> int:
        """Number of a set of symbols given as a bit mask."""
        number = self._mask_number.get(symbols)
        if number is None:
            number = self._mask_number[symbols] = len(self.masks)
            self.masks.append(symbols)
        return number

    def _special(self, name: str) -> int:
        if name not in self.specials:
            self.specials.append(name)
        return END_OF_TURN + 1 + self.specials.index(name)

    def _instance(self, node: int, shallow: bool) -> int:
        key = (node, shallow)
        number = self._instance_number.get(key)
        if number is None:
            number = self._instance_number[key] = len(self.instances)
            self.instances.append(key)
            self.starts.append(-1)
            here, self._here = self._here, 0
            end = self._new(number, -1)
            self.final[end] = number
            entry = self.starts[number] = self._new(number, -1)
            self._here = here
            self._tasks.append((entry, node, end, self._height[node] if shallow else -1))
        return number

    def _build(self) -> None:
        root = self._new(0, -1)
        self.instances.append((-1, False))
        self.finished = self._new(0, -1)
        turn = self.mask(1 << END_OF_TURN)
        self.edges[root].append((turn, self.finished, False))
        self.edges[self.finished].append((turn, self.finished, False))
        self.entries = [self._get(self.pool.rules[rule], root, -1) for rule in self.pool.entries]
        self.starts.append(self.entries[0])
        while self._tasks:
            entry, node, back, height = self._tasks.pop()
            self._here = self.region[back]
            self._fill(entry, node, back, height)
            if not len(self.edges) & 1023:
                self.budget.check("states", len(self.edges), self.pool.grammar.place(self.rule_of(node)))
        self.budget.check("states", len(self.edges))
        self._finish_borders()
        self._finish_loops()
        self._finish_entered()

    def _get(self, node: int, back: int, height: int) -> int:
        """The state from which a text of the node leads to ``back``; its moves are filled in later."""
        pool = self.pool
        seen = 0
        while pool.nodes[node][0] == REF and pool.nodes[node][1] not in self._marks and seen < len(pool.rules) + 1:
            node = pool.rules[pool.nodes[node][1]]
            seen += 1
        if node == pool.empty:
            return back
        key = (node, back, height)
        state = self._memo.get(key)
        if state is None:
            state = self._memo[key] = self._new(self.instance[back], self.scope[back])
            self._tasks.append((state, node, back, height))
        return state

    def _fill(self, entry: int, number: int, back: int, height: int) -> None:
        pool = self.pool
        node = pool.nodes[number]
        kind = node[0]
        as_callee = entry == self.starts[self.instance[entry]]
        if number in self.choices.called and not as_callee:
            self._call(entry, number, back, height)
            return
        if kind in (QUOTED, LITERAL, TERMINAL, COUNTED) and self.is_string(number):
            self.string_entries.append((entry, number))
        if kind == LITERAL:
            state = entry
            for i, byte in enumerate(node[1]):
                last = i == len(node[1]) - 1
                target = back if last else self._new(self.instance[back], self.scope[back])
                self.edges[state].append((self.mask(1 << byte), target, False))
                state = target
        elif kind == TERMINAL:
            self._inline_dfa(entry, node[1], back)
        elif kind == COUNTED and self.counted(number):
            self._count_units(entry, number, back)
        elif kind == COUNTED:
            self._check_copies(number)
            self._inline_dfa(entry, pool.copies[number](), back)
        elif kind == SPECIAL:
            self.edges[entry].append((self.mask(1 << self._special(node[1])), back, False))
        elif kind == REF and node[1] in self._marks:
            self._mark(entry, node[1], back, height)
        elif kind == REF:  # a cycle of rules that only name each other
            return
        elif kind == SEQUENCE:
            target = back
            for item in reversed(node[1][1:]):
                target = self._get(item, target, height)
            self.free[entry].append((self._get(node[1][0], target, height), False))
        elif kind == CHOICE:
            for option in node[1]:
                if height < 0 or self._height[option] <= height:
                    self.free[entry].append((self._get(option, back, height), False))
        elif kind == REPEAT:
            self._repeat(entry, number, back, height)
        elif kind == QUOTED or node[1] in self.choices.inlined:
            self.free[entry].append((self._get(node[1], back, height), False))
        else:
            self._call(entry, node[1], back, height)

    def _call(self, entry: int, callee: int, back: int, height: int) -> None:
        shallow = self._instance(callee, True) if self.recursive and self._may_be_deeper(callee) else -1
        free = self._instance(callee, False) if height < 0 or shallow < 0 else -1
        self.calls[entry].append((free, shallow, back, False))

    def _mark(self, entry: int, rule: str, back: int, height: int) -> None:
        """The text of a marked rule, whose states lie in a region of their own.

        Where its kind is another than that around, no state of the one is shared with the other, so that a state
        tells on which side the last byte was: the first moves of both sides are copied to states at the border.
        """
        outer = self.regions[self._here]
        inner = outer.inside(self._marks[rule])
        if inner not in self.regions:
            self.regions.append(inner)
        around, self._here = self._here, self.regions.index(inner)
        last = self._new(self.instance[back], self.scope[back])
        first = self._get(self.pool.rules[rule], last, height)
        if inner.kind == outer.kind:
            self.free[entry].append((first, False))
            self.free[last].append((back, False))
            return
        border = self._new(self.instance[back], self.scope[back])
        self._here = around
        after = self._new(self.instance[back], self.scope[back])
        self.free[entry].append((border, False))
        self.free[last].append((after, False))
        self.fresh[border], self.fresh[after] = first, back

    def _finish_borders(self) -> None:
        """Give the states at the borders of regions the first moves of what follows."""
        for state, source in self.fresh.items():
            todo, seen = [source], {source}
            while todo:
                s = todo.pop()
                if s in self.fresh or self.final[s] >= 0 or self.guards[s] or self.scope[s] != self.scope[state]:
                    self.free[state].append((s, False))
                    continue
                self.taken.setdefault(state, []).append(s)
                self.edges[state] += self.edges[s]
                self.calls[state] += self.calls[s]
                for target, enters in self.free[s]:
                    if enters:
                        self._entered.append((state, target))
                    elif target not in seen:
                        seen.add(target)
                        todo.append(target)

    def _finish_entered(self) -> None:
        """Where a counted loop begins a region, its first iteration gets states of its own: those before any edge."""
        for state, head in self._entered:
            copy_of: dict[int, int] = {}
            todo = [head]
            while todo:
                s = todo.pop()
                if s in copy_of or self.scope[s] != self.scope[head] or self.final[s] >= 0:
                    continue
                self._here = self.region[s]
                copy_of[s] = self._new(self.instance[s], self.scope[s])
                todo += [t for t, enters in self.free[s] if not enters] + [t for _, _, t in self.guards[s]]
            for s, copy in copy_of.items():
                self.edges[copy], self.calls[copy] = list(self.edges[s]), list(self.calls[s])
                self.free[copy] = [(t if enters else copy_of.get(t, t), enters) for t, enters in self.free[s]]
                self.guards[copy] = [(least, limit, copy_of.get(t, t)) for least, limit, t in self.guards[s]]
            self.free[state].append((copy_of[head], True))

    def _may_be_deeper(self, callee: int) -> bool:
        """Whether some texts of a called node are higher than others; else its shallow twin would be its equal."""
        return self._depth[callee] == _DEPTH_CAP or self._depth[callee] > self._height[callee]

    def _inline_dfa(self, entry: int, number: int, back: int) -> None:
        dfa = self.pool.dfas[number]
        rows = self._dfa_edges.get(number)
        if rows is None:
            rows = self._dfa_edges[number] = self._rows_of_dfa(number)
        instance, scope = self.instance[back], self.scope[back]
        states = [entry]
        for s in range(1, len(rows)):
            states.append(back if dfa.accepting[s] and not rows[s] else self._new(instance, scope))
        for s, row in enumerate(rows):
            if states[s] == back and s:
                continue
            self.edges[states[s]] += [(mask, states[t], False) for mask, t in row]
            if dfa.accepting[s]:
                self.free[states[s]].append((back, False))

    def _rows_of_dfa(self, number: int) -> list[list[tuple[int, int]]]:
        """Per state of a terminal's automaton: (mask number, target)."""
        return [[(self.mask(m), t) for m, t in row] for row in masks_of(self.pool.dfas[number])]

    def _count_units(self, entry: int, number: int, back: int) -> None:
        """A terminal whose units are counted, see counted.py: a state per state of the product."""
        self._check_scope(number, back)
        c, instance, loop = self.pool.counted[number], self.instance[back], len(self.loops)
        self.loops.append(Loop(number, -1, -1))
        quote = self.mask(1 << _QUOTE)
        opened = entry
        if c.quoted:
            opened = self._new(instance, self.scope[back])
            self.edges[entry].append((quote, opened, False))
        states = [self._new(instance, loop) for _ in c.edges]
        self.free[opened].append((states[0], True))
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
                self.edges[sources[below, from_]].append((self.mask(mask), states[t], adds))
            if c.closes[i]:
                closing = back
                if c.quoted:
                    closing = self._new(instance, loop if c.low else self.scope[back])
                    self.edges[closing].append((quote, back, False))
                if c.low:
                    self.guards[states[i]].append((True, c.low, closing))
                else:
                    self.free[states[i]].append((closing, False))

    def _behind(self, state: int, below: int, from_: int) -> int:
        """A state that is reached where the counter is less than ``below`` and at least ``from_``."""
        for at_least, threshold, needed in ((False, below, below != UNGUARDED), (True, from_, from_ > 0)):
            if needed:
                new = self._new(self.instance[state], self.scope[state])
                self.guards[state].append((at_least, threshold, new))
                state = new
        return state

    def _check_scope(self, number: int, back: int) -> None:
        if self.scope[back] >= 0:
            raise UnsupportedError(
                "a counted repeat lies inside another one and cannot be given a frame of its own",
                place=self.pool.grammar.place(self.rule_of(number)),
                hint="lower one of the two bounds",
            )

    def _check_copies(self, number: int) -> None:
        if self.copies_cost(number) > EXPAND_LIMIT:
            node = self.pool.nodes[number]
            raise BudgetError(
                f"a repeat of {max(node[-2], node[-1] or 0):,} would have to be copied: it runs beside another",
                place=self.pool.grammar.place(self.rule_of(number)),
                hint="lower its bound",
            )

    def _repeat(self, entry: int, number: int, back: int, height: int) -> None:
        _, item, low, high = self.pool.nodes[number]
        if height >= 0 and self._height[item] > height:
            self.free[entry].append((back, False))  # low is 0, or the height would be larger
            return
        if self._nullable[item]:
            low = 0
        if self.counted(number):
            self._count(entry, number, low, back, height)
            return
        self._check_copies(number)
        if high is None:
            head = self._new(self.instance[back], self.scope[back])
            self.free[head] += [(back, False), (self._get(item, head, height), False)]
            target = head
        else:
            target = back
            for _ in range(high - low):
                before = self._new(self.instance[back], self.scope[back])
                self.free[before] += [(back, False), (self._get(item, target, height), False)]
                target = before
        for _ in range(low):
            target = self._get(item, target, height)
        self.free[entry].append((target, False))

    def _count(self, entry: int, number: int, low: int, back: int, height: int) -> None:
        _, item, _, high = self.pool.nodes[number]
        self._check_scope(number, back)
        instance = self.instance[back]
        loop = len(self.loops)
        head, again, body = (self._new(instance, loop) for _ in range(3))
        self.free[entry].append((head, True))
        self.free[again].append((head, False))
        if low > 0:
            self.guards[head].append((True, low, back))
        else:
            self.free[head].append((back, False))
        if high is not None:
            self.guards[head].append((False, high, body))
        else:
            self.free[head].append((body, False))
        self.loops.append(Loop(number, self._get(item, again, height), body))

    def _finish_loops(self) -> None:
        """Give each loop's body the first moves of its item, adding one to the counter."""
        for loop in self.loops:
            if loop.entry < 0:
                continue
            todo, seen = [loop.entry], {loop.entry}
            while todo:
                s = todo.pop()
                if self.guards[s]:
                    continue  # the head again: an empty iteration
                self.edges[loop.body] += [(mask, target, True) for mask, target, _ in self.edges[s]]
                self.calls[loop.body] += [(a, b, back, True) for a, b, back, _ in self.calls[s]]
                for target, _ in self.free[s]:
                    if target not in seen:
                        seen.add(target)
                        todo.append(target)
