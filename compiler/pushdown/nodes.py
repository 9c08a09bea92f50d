"""The grammar as interned nodes, and what is asked of them.

A node is a tuple in a pool, named by its number; equal sub-expressions are one node, so later stages memoise by number.

Leaves out   making them of a grammar (interning.py), NFA states (nfa.py), determinism (pushdown.py).
Invariants   children have smaller numbers than their parents; rules refer to each other by name only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..grammar.analysis import strong_components
from ..ir import nodes as ir
from ..terminals.dfa import Dfa
from .counted import Counted

LITERAL, TERMINAL, SPECIAL, REF, SEQUENCE, CHOICE, REPEAT, CALL, QUOTED, COUNTED = range(10)
_LEAVES = frozenset((LITERAL, TERMINAL, SPECIAL, REF, COUNTED))
Node = tuple  # (kind, payload…): see NodePool.add

CLOSER = {ord("{"): ord("}"), ord("["): ord("]"), ord("("): ord(")")}
OPENER = {close: open_ for open_, close in CLOSER.items()}
QUOTE = ord('"')
_BRACKET = re.compile(rb"[][{}()]")


class NodePool:
    """Interned nodes and the rules over them.

    Attributes:
        nodes: node n as (LITERAL, bytes) | (TERMINAL, dfa number) | (SPECIAL, name) | (REF, rule) | (SEQUENCE, nodes) |
            (CHOICE, nodes) | (REPEAT, node, low, high or None) | (CALL, node) | (QUOTED, node): text between two
            quotes, inlined unless nfa.py decides otherwise | (COUNTED, dfa number, dfa number of a unit, low, high or
            None): a terminal of so many units.
        rules: node of every rule that is left.
        dfas: the automaton of each distinct terminal; dfa_names: a name for errors.
        counted: the product automaton of each COUNTED node; copies: a function that gives the number of its automaton
            with the units counted out.
        start: the start rule; entries: it and every other rule that a text may start with.
        grammar: where the rules came from, for errors; node_of: the node of each of its expressions, by id.
    """

    def __init__(self, grammar: ir.Grammar) -> None:
        self.grammar = grammar
        self.start = grammar.start
        self.entries = tuple(dict.fromkeys([grammar.start, *grammar.entries.values()]))
        self.nodes: list[Node] = []
        self.rules: dict[str, int] = {}
        self.dfas: list[Dfa] = []
        self.dfa_names: list[str] = []
        self.counted: dict[int, Counted] = {}
        self.copies: dict[int, Callable[[], int]] = {}
        self.node_of: dict[int, int] = {}
        self._number: dict[Node, int] = {}
        self._inside: dict[int, list[int]] = {}
        self._mentioned: list[tuple[str, int]] = []  # the rules of which this is known:
        self._mentions: dict[str, set[str]] = {}
        self._recurring: tuple[dict[str, int], set[str]] | None = None
        self.empty = self.add((SEQUENCE, ()))
        self.nothing = self.add((CHOICE, ()))

    def add(self, node: Node) -> int:
        """The number of a node, new or known."""
        number = self._number.get(node)
        if number is None:
            number = len(self.nodes)
            self._number[node] = number
            self.nodes.append(node)
        return number

    def sequence(self, items: Iterable[int]) -> int:
        """A sequence in normal form: flattened, empty items dropped; nothing if one item derives nothing."""
        flat: list[int] = []
        nodes, nothing = self.nodes, self.nothing
        for item in items:
            node = nodes[item]
            if node[0] == SEQUENCE:
                flat += node[1]
            elif item == nothing:
                return nothing
            else:
                flat.append(item)
        return flat[0] if len(flat) == 1 else self.add((SEQUENCE, tuple(flat)))

    def choice(self, options: Iterable[int]) -> int:
        """A choice in normal form: flattened, without options that derive nothing."""
        flat: dict[int, None] = {}
        for option in options:
            node = self.nodes[option]
            for one in node[1] if node[0] == CHOICE else (option,):
                flat.setdefault(one)
        return next(iter(flat)) if len(flat) == 1 else self.add((CHOICE, tuple(flat)))

    def repeat(self, item: int, low: int, high: int | None) -> int:
        """A repeat in normal form."""
        if item == self.nothing:
            return self.empty if low == 0 else self.nothing
        if item == self.empty or high == 0:
            return self.empty
        return item if (low, high) == (1, 1) else self.add((REPEAT, item, low, high))

    def children(self, number: int) -> tuple[int, ...]:
        """The nodes directly inside a node, not looking through rule names."""
        node = self.nodes[number]
        kind = node[0]
        if kind in (SEQUENCE, CHOICE):
            return node[1]
        return (node[1],) if kind in (REPEAT, CALL, QUOTED) else ()

    def below(self, number: int, through_calls: bool = True) -> Iterator[int]:
        """The node and every node inside it, each once, not looking through rule names."""
        seen = {number}
        todo = [number]
        while todo:
            n = todo.pop()
            yield n
            if self.nodes[n][0] == CALL and not through_calls and n != number:
                continue
            for child in self.children(n):
                if child not in seen:
                    seen.add(child)
                    todo.append(child)

    def inside(self, root: int) -> list[int]:
        """The node and every node inside it, children first; found once for each."""
        found = self._inside.get(root)
        if found is None:
            nodes, seen, todo = self.nodes, {root}, [root]
            if nodes[root][0] in _LEAVES:
                return todo
            for n in todo:
                node = nodes[n]
                kind = node[0]
                if kind in (SEQUENCE, CHOICE):
                    for child in node[1]:
                        if child not in seen:
                            seen.add(child)
                            todo.append(child)
                elif kind in (REPEAT, CALL, QUOTED) and node[1] not in seen:
                    seen.add(node[1])
                    todo.append(node[1])
            todo.sort()
            found = self._inside[root] = todo
        return found

    def mentions(self) -> dict[str, set[str]]:
        """For every rule the rules that it mentions."""
        rules = list(self.rules.items())
        if self._mentioned != rules:
            nodes = self.nodes
            self._mentions = {
                rule: {nodes[n][1] for n in self.inside(root) if nodes[n][0] == REF} for rule, root in rules
            }
            self._mentioned, self._recurring = rules, None
        return self._mentions

    def keep_mentions(self) -> None:
        """The rules have other nodes now, but mention what they did."""
        assert self._mentions.keys() == self.rules.keys()
        self._mentioned = list(self.rules.items())

    def recurring(self) -> tuple[dict[str, int], set[str]]:
        """The components of rules that mention each other, and which rules recur: see the function of that name."""
        mentions = self.mentions()
        if self._recurring is None:
            self._recurring = recurring(mentions)
        return self._recurring


def rewrite(
    pool: NodePool,
    swap: Callable[[int], int | None] | None = None,
    regroup: Callable[[Sequence[int]], Sequence[int]] | None = None,
    rechoose: Callable[[str, Sequence[int]], Sequence[int]] | None = None,
) -> None:
    """Rebuild every rule bottom-up.

    ``swap(n)`` gives what stands for node n, or None to rebuild it from its children; ``regroup`` changes the rebuilt
    items of every sequence, ``rechoose`` the options of every choice of a rule.
    """
    nodes = pool.nodes
    done: set[int] = set()
    changed: dict[int, int] = {}
    for rule, root in list(pool.rules.items()):
        for n in pool.inside(root):
            if n in done:
                continue
            done.add(n)
            node = nodes[n]
            kind = node[0]
            new = swap(n) if swap is not None else None
            if new is None:
                new = n
                if kind in (SEQUENCE, CHOICE):
                    old: Sequence[int] = node[1]
                    parts = old if changed.keys().isdisjoint(old) else [changed.get(c, c) for c in old]
                    if kind == SEQUENCE and regroup is not None:
                        parts = regroup(parts)
                    elif kind == CHOICE and rechoose is not None:
                        parts = rechoose(rule, parts)
                    if parts is not old and tuple(parts) != old:
                        new = pool.sequence(parts) if kind == SEQUENCE else pool.choice(parts)
                elif kind in (REPEAT, CALL, QUOTED) and node[1] in changed:
                    item = changed[node[1]]
                    if kind == REPEAT:
                        new = pool.repeat(item, node[2], node[3])
                    else:
                        new = pool.nothing if item == pool.nothing else pool.add((kind, item))
            if new != n:
                changed[n] = new
        pool.rules[rule] = changed.get(root, root)


def inline_references(pool: NodePool) -> dict[str, set[str]]:
    """For every rule the rules that it mentions outside of calls."""
    found: dict[str, set[str]] = {}
    for rule, root in pool.rules.items():
        names = set()
        todo, seen = [root], {root}
        while todo:
            n = todo.pop()
            node = pool.nodes[n]
            if node[0] == REF:
                names.add(node[1])
            elif node[0] != CALL:
                for child in pool.children(n):
                    if child not in seen:
                        seen.add(child)
                        todo.append(child)
        found[rule] = names
    return found


def recurring(graph: dict[str, set[str]]) -> tuple[dict[str, int], set[str]]:
    """Of a graph of rules the component of each, numbered from those that are led to, and the rules that recur."""
    parts = strong_components({vertex: sorted(others) for vertex, others in graph.items()})
    component = {vertex: number for number, part in enumerate(parts) for vertex in part}
    return component, {rule for part in parts for rule in part if len(part) > 1 or rule in graph[rule]}


def split_literal(data: bytes) -> list[bytes]:
    """Cut a literal so that a bracket outside of double quotes is a piece of its own."""
    if not _BRACKET.search(data):
        return [data]
    pieces: list[bytes] = []
    begin, quoted = 0, False
    for i, byte in enumerate(data):
        if byte == QUOTE:
            quoted = not quoted
        elif not quoted and (byte in CLOSER or byte in OPENER):
            if begin < i:
                pieces.append(data[begin:i])
            pieces.append(data[i : i + 1])
            begin = i + 1
    if begin < len(data):
        pieces.append(data[begin:])
    return pieces
