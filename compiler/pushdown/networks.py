"""Make a recursive transition network of a grammar's nodes: one automaton for each rule, in which rules call rules.

A state has edges that read one symbol, calls, and is final or not. A call reads a text of the rule that it enters and
goes on in the state behind it. There are no moves that read nothing: a rule that may be empty is called for its other
texts only, and the call may be skipped. Left recursion is gone: a rule that leads to itself first is entered at what
else can stand at its left corner, and goes on from there to the rules that begin with it.

Leaves out   nodes (nodes.py), what is done with a network (stack_sets.py), how rules are read (../grammar).
Invariants   every state is reachable and can reach the end of its rule; a call reads one symbol at least; equal states
             are one. Numbers follow discovery.
Source       Woods 1970; Rosenkrantz and Lewis 1970 for left corners; Moore 1956 for equal states.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolc.runtime.format.ops import END_OF_TURN

from ..budget import Budget
from ..grammar.analysis import strong_components
from .counted import masks_of
from .nodes import CHOICE, COUNTED, LITERAL, REF, REPEAT, SEQUENCE, SPECIAL, TERMINAL, Node, NodePool

FINISHED = -1  # where the end of turn leads


@dataclass
class Network:
    """States by number.

    Attributes:
        edges: per state (symbols as a bit mask, target).
        calls: per state (entry of a rule, state behind the call).
        final: per state whether its rule may be over.
        rule: per state the rule that it comes from, for errors.
        starts: entry state of every rule that a text may start with; -1 where only the empty text is in it.
        empty: of these the rules that may be empty.
        end: the state that reads the end of turn.
        specials: names of special tokens, symbol 257 + i.
    """

    edges: list[list[tuple[int, int]]]
    calls: list[list[tuple[int, int]]]
    final: list[bool]
    rule: list[str]
    starts: dict[str, int]
    empty: set[str]
    end: int
    specials: list[str]

    def over(self, state: int) -> bool:
        """Whether nothing can be read in a state any more: its rule is over."""
        return not self.edges[state] and not self.calls[state]


@dataclass
class _States:
    """States under construction, which have moves that read nothing, too."""

    edges: list[list[tuple[int, int]]] = field(default_factory=list)
    calls: list[list[tuple[str, int]]] = field(default_factory=list)
    free: list[list[int]] = field(default_factory=list)
    rule: list[str] = field(default_factory=list)

    def new(self, rule: str) -> int:
        self.edges.append([])
        self.calls.append([])
        self.free.append([])
        self.rule.append(rule)
        return len(self.rule) - 1


def read_network(pool: NodePool, budget: Budget) -> Network:
    """The network of all rules of a pool, whose nodes have no calls of brackets."""
    return _Reading(pool, budget).network()


class _Reading:
    def __init__(self, pool: NodePool, budget: Budget) -> None:
        self.pool = pool
        self.budget = budget
        self.states = _States()
        self.specials: list[str] = []
        self.empty = self._nullable()
        self.begin: dict[str, int] = {}
        self._end: dict[str, int] = {}
        self.ends: dict[int, str] = {}  # last state of each rule
        self._terminals: dict[int, str] = {}

    def network(self) -> Network:
        for rule, root in self.pool.rules.items():
            self._rule(rule, rule)
            self._between(root, self.begin[rule], self._end[rule], rule)
        return _without_left_recursion(self)

    # -- what may be empty

    def _nullable(self) -> set[str]:
        """The rules that may be empty."""
        known: set[str] = set()
        grew = True
        while grew:
            more = {rule for rule, root in self.pool.rules.items() if rule not in known and self._null(root, known)}
            known |= more
            grew = bool(more)
        return known

    def _null(self, number: int, known: set[str]) -> bool:
        node = self.pool.nodes[number]
        kind = node[0]
        if kind == REF:
            return node[1] in known
        if kind == SEQUENCE:
            return all(self._null(item, known) for item in node[1])
        if kind == CHOICE:
            return any(self._null(item, known) for item in node[1])
        if kind == REPEAT:
            return node[2] == 0 or self._null(node[1], known)
        if kind == COUNTED:
            number = self.pool.copies[number]()
            node = self.pool.nodes[number]
            return node[0] == TERMINAL and bool(self.pool.dfas[node[1]].accepting[0])
        return kind == TERMINAL and bool(self.pool.dfas[node[1]].accepting[0])

    # -- states

    def _rule(self, name: str, rule: str) -> None:
        self.begin[name], self._end[name] = self.states.new(rule), self.states.new(rule)
        self.ends[self._end[name]] = name

    def _between(self, number: int, begin: int, end: int, rule: str) -> None:
        """Let a text of a node lead from one state to another."""
        states, node = self.states, self.pool.nodes[number]
        self.budget.check("states", len(states.rule))
        kind = node[0]
        if kind == LITERAL:
            for byte in node[1][:-1]:
                begin, before = states.new(rule), begin
                states.edges[before].append((1 << byte, begin))
            states.edges[begin].append((1 << node[1][-1], end))
        elif kind == TERMINAL:
            self._terminal(node[1], begin, end, rule)
        elif kind == SPECIAL:
            if node[1] not in self.specials:
                self.specials.append(node[1])
            states.edges[begin].append((1 << END_OF_TURN + 1 + self.specials.index(node[1]), end))
        elif kind == REF:
            states.calls[begin].append((node[1], end))
            if node[1] in self.empty:
                states.free[begin].append(end)
        elif kind == SEQUENCE:
            for item in node[1][:-1]:
                begin, before = states.new(rule), begin
                self._between(item, before, begin, rule)
            if node[1]:
                self._between(node[1][-1], begin, end, rule)
            else:
                states.free[begin].append(end)
        elif kind == CHOICE:
            for option in node[1]:
                self._between(option, begin, end, rule)
        elif kind == REPEAT:
            self._repeat(node, begin, end, rule)
        else:
            assert kind == COUNTED, "no brackets are called in this pool"
            self._between(self.pool.copies[number](), begin, end, rule)

    def _repeat(self, node: Node, begin: int, end: int, rule: str) -> None:
        states = self.states
        _, item, low, high = node
        for _ in range(low):
            begin, before = states.new(rule), begin
            self._between(item, before, begin, rule)
        if high is None:
            head = states.new(rule)
            states.free[begin].append(head)
            self._between(item, head, head, rule)
            states.free[head].append(end)
            return
        for _ in range(high - low):
            states.free[begin].append(end)
            begin, before = states.new(rule), begin
            self._between(item, before, begin, rule)
        states.free[begin].append(end)

    def _terminal(self, number: int, begin: int, end: int, rule: str) -> None:
        """Call the automaton of a terminal, which has a rule of its own."""
        dfa = self.pool.dfas[number]
        name = self._terminals.get(number)
        if name is None:
            name = self._terminals[number] = f"{rule}\n{number}"  # no rule of a grammar has such a name
            self._rule(name, rule)
            own = [self.states.new(rule) for _ in dfa.accepting]
            for state, row in zip(own, masks_of(dfa), strict=True):
                self.states.edges[state] += [(mask, own[t]) for mask, t in row]
            self.states.free[self.begin[name]].append(own[0])
            for state, accepts in zip(own, dfa.accepting.tolist(), strict=True):
                if accepts:
                    self.states.free[state].append(self._end[name])
        self.states.calls[begin].append((name, end))
        if dfa.accepting[0]:
            self.states.free[begin].append(end)


def _without_left_recursion(reading: _Reading) -> Network:
    """The network of what was read: without moves that read nothing, left recursion, dead or equal states."""
    states, budget = reading.states, reading.budget
    closure = [_closed(states, s) for s in range(len(states.rule))]
    edges = [[move for t in closure[s] for move in states.edges[t]] for s in range(len(closure))]
    calls = [[move for t in closure[s] for move in states.calls[t]] for s in range(len(closure))]
    over = [{reading.ends[t] for t in closure[s] if t in reading.ends} for s in range(len(closure))]

    left = {name: sorted({callee for callee, _ in calls[begin]}) for name, begin in reading.begin.items()}
    circle: dict[str, frozenset[str]] = {}
    for part in strong_components(left):
        if len(part) > 1 or part[0] in left[part[0]]:
            circle.update(dict.fromkeys(part, frozenset(part)))

    out = Network([], [], [], [], {}, set(), -1, reading.specials)
    number: dict[tuple[str, int], int] = {}  # (rule that was entered or "", state) of a new state; ~state of its entry
    todo: list[tuple[str, int]] = []

    def at(goal: str, state: int) -> int:
        key = goal, state
        if key not in number:
            number[key] = len(number)
            todo.append(key)
        return number[key]

    def entry(name: str) -> int:
        return at(name if name in circle else "", ~reading.begin[name])

    out.starts = {rule: entry(rule) for rule in reading.pool.entries}
    out.empty = {rule for rule in reading.pool.entries if rule in reading.empty}
    for goal, place in todo:
        budget.check("states", len(number))
        into: dict[int, int] = {}
        enters: dict[tuple[str, int], None] = {}
        begins = place < 0
        state = ~place if begins else place
        sources: list[int] = [state]
        if goal and begins:
            sources = [reading.begin[name] for name in sorted(circle[goal])]
        done: set[str] = set()
        ends = False
        for source in sources:
            if not begins:
                for name in sorted(over[source]):
                    if not goal or name == goal:
                        ends = True
                    if goal and name not in done:  # what is over may stand at the left corner of another rule
                        done.add(name)
                        sources += [
                            back
                            for one in sorted(circle[goal])
                            for callee, back in calls[reading.begin[one]]
                            if callee == name and back not in sources
                        ]
            for mask, target in edges[source]:
                into[target] = into.get(target, 0) | mask
            for callee, back in calls[source]:
                if not (goal and begins and callee in circle[goal]):
                    enters[callee, back] = None
        out.edges.append([(mask, at(goal, target)) for target, mask in into.items()])
        out.calls.append([(entry(callee), at(goal, back)) for callee, back in enters])
        out.final.append(ends)
        out.rule.append(states.rule[state])
    return _merged(_trimmed(out), budget)


def _closed(states: _States, state: int) -> list[int]:
    """The states that one leads to without reading."""
    seen = dict.fromkeys([state])
    todo = [state]
    for s in todo:
        for t in states.free[s]:
            if t not in seen:
                seen[t] = None
                todo.append(t)
    return todo


def _trimmed(network: Network) -> Network:
    """Without moves into states that reach no end."""
    size = len(network.final)
    alive = list(network.final)
    grew = True
    while grew:
        grew = False
        for s in range(size):
            if not alive[s] and (
                any(alive[t] for _, t in network.edges[s]) or any(alive[e] and alive[t] for e, t in network.calls[s])
            ):
                alive[s] = grew = True
    network.edges = [[(mask, t) for mask, t in row if alive[t]] for row in network.edges]
    network.calls = [[(e, t) for e, t in row if alive[e] and alive[t]] for row in network.calls]
    network.starts = {rule: s if alive[s] else -1 for rule, s in network.starts.items()}
    return network


def _merged(network: Network, budget: Budget) -> Network:
    """One state for all that read the same, numbered by discovery; and the state that reads the end of turn."""
    size = len(network.final)
    block = [int(final) for final in network.final]
    count = len(set(block))
    while True:
        budget.check("")
        known: dict[object, int] = {}
        new = []
        for s in range(size):
            into: dict[int, int] = {}
            for mask, t in network.edges[s]:
                into[block[t]] = into.get(block[t], 0) | mask
            key = block[s], frozenset(into.items()), frozenset((block[e], block[t]) for e, t in network.calls[s])
            new.append(known.setdefault(key, len(known)))
        block = new
        if len(known) == count:
            break
        count = len(known)
    first = {b: s for s, b in reversed(list(enumerate(block)))}
    number: dict[int, int] = {}
    todo: list[int] = []

    def at(s: int) -> int:
        if block[s] not in number:
            number[block[s]] = len(number)
            todo.append(first[block[s]])
        return number[block[s]]

    out = Network([], [], [], [], {}, network.empty, -1, network.specials)
    out.starts = {rule: at(s) if s >= 0 else -1 for rule, s in network.starts.items()}
    for s in todo:
        into = {}
        for mask, t in network.edges[s]:
            into[at(t)] = into.get(at(t), 0) | mask
        out.edges.append([(mask, t) for t, mask in into.items()])
        out.calls.append(list(dict.fromkeys((at(e), at(t)) for e, t in network.calls[s])))
        out.final.append(network.final[s])
        out.rule.append(network.rule[s])
    out.end = len(out.final)
    out.edges.append([(1 << END_OF_TURN, FINISHED)])
    out.calls.append([])
    out.final.append(False)
    out.rule.append("")
    return out
