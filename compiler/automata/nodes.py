"""The grammar as interned nodes, with bracketed groups marked as calls.

A node is a tuple in a pool, named by its number; equal sub-expressions are one node, so later stages memoise by number.
Takes a Grammar, gives a NodePool in which rules that derive nothing are gone, every bracketed group is a CALL node
and the recursion that is left is in tail position (so inlining it ends).

Leaves out   NFA states (nfa.py), determinism (pushdown.py finds the brackets on which alternatives disagree).
Invariants   children have smaller numbers than their parents; rules refer to each other by name only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ..budget import Budget
from ..errors import GrammarError, UnsatisfiableError
from ..grammar import ir
from ..grammar.analysis import strong_components
from ..regex import Chars, Concat, Look, Regex, Repeat, concat, repeat
from .counted import Counted, count_units
from .dfa import Dfa

LITERAL, TERMINAL, SPECIAL, REF, SEQUENCE, CHOICE, REPEAT, CALL, QUOTED, COUNTED = range(10)
_LEAVES = frozenset((LITERAL, TERMINAL, SPECIAL, REF, COUNTED))
Node = tuple  # (kind, payload…): see NodePool.add

CLOSER = {ord("{"): ord("}"), ord("["): ord("]"), ord("("): ord(")")}
OPENER = {close: open_ for open_, close in CLOSER.items()}
_BRACKET = re.compile(rb"[][{}()]")
_QUOTE = ord('"')
_QUOTED_BY = Chars(((_QUOTE, _QUOTE),))
COUNT_FROM = 32  # up to so many units of a terminal are counted out in its automaton


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


def read_nodes(grammar: ir.Grammar, budget: Budget, terminal_dfa: Callable[..., Dfa]) -> NodePool:
    """Intern a grammar, drop what derives nothing, and mark bracketed groups as calls.

    Raises:
        UnsatisfiableError: no text at all is derived from the start rule.
        GrammarError: a rule recurs in a way that no bracket encloses.
    """
    pool = _Interning(grammar, budget, terminal_dfa).pool
    _trim(pool)
    brackets = _brackets(pool)
    rewrite(pool, regroup=lambda items: items if brackets.keys().isdisjoint(items) else _group(pool, brackets, items))
    for rule, root in pool.rules.items():
        if rule in grammar.groups:
            pool.rules[rule] = pool.add((CALL, root))
    pool.keep_mentions()
    _enclose_recursion(pool)
    return pool


class _Interning:
    """A grammar as nodes.

    Attributes:
        pool: the nodes, and the node of each rule.
    """

    def __init__(self, grammar: ir.Grammar, budget: Budget, terminal_dfa: Callable[..., Dfa]) -> None:
        self.pool = NodePool(grammar)
        self._grammar = grammar
        self._budget = budget
        self._terminal_dfa = terminal_dfa
        self._dfa_of: dict[object, int] = {}
        for rule, expr in grammar.rules.items():
            self.pool.rules[rule] = self.node(expr, rule)

    def node(self, expr: ir.Expr, rule: str) -> int:
        """The node of an expression of a rule."""
        pool = self.pool
        known = pool.node_of
        found = known.get(id(expr))
        if found is not None:
            return found
        if isinstance(expr, ir.Ref):
            number = pool.add((REF, expr.name))
        elif isinstance(expr, ir.Sequence):
            number = pool.sequence([known.get(id(item)) or self.node(item, rule) for item in expr.items])
        elif isinstance(expr, ir.Literal):
            pieces = split_literal(expr.data)
            number = (
                pool.add((LITERAL, expr.data))
                if len(pieces) == 1
                else pool.sequence([pool.add((LITERAL, piece)) for piece in pieces])
            )
        elif isinstance(expr, ir.Repeat):
            number = pool.repeat(self.node(expr.item, rule), expr.low, expr.high)
        elif isinstance(expr, ir.Choice):
            number = pool.choice([known.get(id(option)) or self.node(option, rule) for option in expr.options])
        elif isinstance(expr, ir.Terminal):
            number = self._terminal(expr, rule)
        elif isinstance(expr, ir.Special):
            number = pool.add((SPECIAL, expr.name))
        else:
            raise AssertionError("a Text is made a Terminal before this: see resolve_specials")
        known[id(expr)] = number
        return number

    def _terminal(self, expr: ir.Terminal, rule: str) -> int:
        pool = self.pool
        parts = _counted_parts(expr.regex)
        if parts is not None:
            whole, unit = self._dfa(parts.whole, expr, rule), self._dfa(parts.unit, expr, rule)
            counted = count_units(
                pool.dfas[whole], pool.dfas[unit], parts.low, parts.high, parts.quoted, lambda: self._budget.check("")
            )
            if counted is not None:
                node = pool.add((COUNTED, whole, unit, parts.low, parts.high))
                pool.counted[node] = counted
                pool.copies[node] = lambda: self._dfa(expr.regex, expr, rule)
                beyond = counted.high is not None and counted.least[0] > counted.high
                short = counted.most[0] is not None and counted.most[0] < counted.low
                return pool.nothing if beyond or short else node
        number = self._dfa(expr.regex, expr, rule)
        return pool.nothing if pool.dfas[number].is_empty else pool.add((TERMINAL, number))

    def _dfa(self, regex: Regex, expr: ir.Terminal, rule: str) -> int:
        pool = self.pool
        number = self._dfa_of.get(regex)
        if number is None:
            place = self._grammar.place
            self._budget.check("", place=place(rule))
            made = self._terminal_dfa(regex, self._budget, place(expr.name or rule))
            number = self._dfa_of[regex] = len(pool.dfas)
            pool.dfas.append(made)
            pool.dfa_names.append(expr.name)
        return number


class _CountedParts(NamedTuple):
    """A terminal ``(?=…)…(unit){low,high}``, quoted or not: the same with any number of units, and one unit."""

    whole: Regex
    unit: Regex
    low: int
    high: int | None
    quoted: bool


def _counted_parts(regex: Regex) -> _CountedParts | None:
    """The parts of a terminal whose units are counted, where copies of the unit would cost more.

    It is quoted, or has look-aheads and is never empty: what only repeats something is left to its own automaton.
    """
    if not isinstance(regex, Concat):
        return None
    quoted = len(regex.items) > 2 and regex.items[0] == _QUOTED_BY == regex.items[-1]
    *looks, body = regex.items[1:-1] if quoted else regex.items
    if not isinstance(body, Repeat) or not all(isinstance(x, Look) and x.ahead for x in looks):
        return None
    if max(body.low, body.high or 0) <= COUNT_FROM or not (quoted or (looks and body.low > 0)):
        return None
    around = (_QUOTED_BY,) if quoted else ()
    whole = concat(*around, *looks, repeat(body.item, 0, None), *around)
    return _CountedParts(whole, body.item, body.low, body.high, quoted)


def split_literal(data: bytes) -> list[bytes]:
    """Cut a literal so that a bracket outside of double quotes is a piece of its own."""
    if not _BRACKET.search(data):
        return [data]
    pieces: list[bytes] = []
    begin, quoted = 0, False
    for i, byte in enumerate(data):
        if byte == _QUOTE:
            quoted = not quoted
        elif not quoted and (byte in CLOSER or byte in OPENER):
            if begin < i:
                pieces.append(data[begin:i])
            pieces.append(data[i : i + 1])
            begin = i + 1
    if begin < len(data):
        pieces.append(data[begin:])
    return pieces


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


def _trim(pool: NodePool) -> None:
    """Drop rules that derive nothing or that the start rule does not reach."""
    if pool.nothing in pool.rules.values() or pool.recurring()[1]:  # else no rule derives nothing
        _drop_dead(pool)
    mentions = pool.mentions()
    reached = dict.fromkeys(pool.entries)
    todo = list(reached)
    for rule in todo:
        todo += mentions[rule].difference(reached)
        reached.update(dict.fromkeys(mentions[rule]))
    if len(reached) < len(pool.rules):
        pool.rules = {rule: root for rule, root in pool.rules.items() if rule in reached}
        pool.mentions()


def _drop_dead(pool: NodePool) -> None:
    """Drop mentions of rules that derive nothing; a call of a tool has to derive something, as every entry."""
    productive = _productive(pool)
    calls = [rule for rule, mark in pool.grammar.marks.items() if mark.kind == "tool" and rule in pool.rules]
    for entry in dict.fromkeys([*pool.entries, *calls]):
        if not productive[pool.rules[entry]]:
            place, unwritable = _culprit(pool, productive, entry)
            raise UnsatisfiableError(
                "no text at all matches",
                place=place,
                hint="no value that is allowed here can be written in this protocol: loosen it, or choose another one"
                if unwritable
                else "loosen what contradicts itself here",
            )
    dead = {rule for rule, root in pool.rules.items() if not productive[root]}
    if dead:
        rewrite(pool, lambda n: pool.nothing if pool.nodes[n][0] == REF and pool.nodes[n][1] in dead else None)


def _productive(pool: NodePool) -> list[bool]:
    """Of every node whether it derives some text."""
    nodes = pool.nodes
    found = [node[0] in (LITERAL, TERMINAL, SPECIAL, COUNTED) for node in nodes]
    waiting = [n for root in reversed(pool.rules.values()) for n in pool.inside(root) if not found[n]]
    grew = True
    while grew:  # rules mention those behind them, mostly, and come after them here
        left = []
        for n in waiting:
            node = nodes[n]
            kind = node[0]
            if kind == REF:
                value = found[pool.rules[node[1]]]
            elif kind == SEQUENCE:
                value = all(map(found.__getitem__, node[1]))
            elif kind == CHOICE:
                value = any(map(found.__getitem__, node[1]))
            else:
                value = found[node[1]] or (kind == REPEAT and node[2] == 0)
            if value:
                found[n] = True
            else:
                left.append(n)
        grew = len(left) < len(waiting)
        waiting = left
    return found


def _culprit(pool: NodePool, productive: list[bool], entry: str) -> tuple[str, bool]:
    """The innermost place that derives nothing by itself: a JSON pointer where the grammar is that of a schema; and
    whether nothing was written there."""
    grammar = pool.grammar

    def derives(expr: ir.Expr) -> bool:
        if isinstance(expr, ir.Ref):
            return productive[pool.rules[expr.name]]
        if isinstance(expr, ir.Sequence):
            return all(map(derives, expr.items))
        if isinstance(expr, ir.Choice):
            return any(map(derives, expr.options))
        if isinstance(expr, ir.Repeat):
            return expr.low == 0 or derives(expr.item)
        return pool.node_of[id(expr)] != pool.nothing

    def nearer(name: str, place: str) -> str:
        """The place of a rule or terminal, if it says more than that of what is around it."""
        found = grammar.places.get(name, place)
        return found if "#" in found or "#" not in place else place

    def innermost(expr: ir.Expr, rule: str, seen: frozenset[str], depth: int, place: str) -> tuple[str, str, bool]:
        """(rule, place, whether nothing is there) of what derives nothing in an expression that does not, itself at the
        last of the rules."""
        while True:
            if isinstance(expr, ir.Ref) and expr.name not in seen:
                rule, seen = expr.name, seen | {expr.name}
                place = nearer(rule, place)
                expr = grammar.rules[rule]
            elif isinstance(expr, ir.Sequence):
                expr = next(item for item in expr.items if not derives(item))
            elif isinstance(expr, ir.Repeat):
                expr = expr.item
            elif isinstance(expr, ir.Choice) and expr.options and depth:
                found = {innermost(option, rule, seen, depth - 1, place) for option in expr.options}
                same = {at for _, at, _ in found if at}
                return min(found) if len(same) == 1 and all(at for _, at, _ in found) else (rule, place, False)
            else:
                return rule, nearer(expr.name, place) if isinstance(expr, ir.Terminal) else place, expr == ir.NOTHING

    first = nearer(entry, "")
    rule, place, nothing = innermost(grammar.rules[entry], entry, frozenset({entry}), 64, first)
    return place if "#" in place else grammar.place(rule), nothing


def _brackets(pool: NodePool) -> dict[int, int]:
    """The literals that are a bracket or a quote, and rules that only name one: node → byte."""
    marks = {*CLOSER, *OPENER, _QUOTE}
    nodes = pool.nodes
    literals = {
        n: node[1][0]
        for n, node in enumerate(nodes)
        if node[0] == LITERAL and len(node[1]) == 1 and node[1][0] in marks
    }
    named = {rule: literals[root] for rule, root in pool.rules.items() if root in literals}
    return literals | {n: named[node[1]] for n, node in enumerate(nodes) if node[0] == REF and node[1] in named}


def _group(pool: NodePool, brackets: dict[int, int], items: Iterable[int]) -> list[int]:
    """Every balanced group ``{ … }``, ``[ … ]``, ``( … )`` among the items as one CALL, ``" … "`` as one QUOTED."""
    out: list[int] = []
    opened: list[tuple[int, int]] = []  # (byte, index in out)
    for item in items:
        byte = brackets.get(item, -1)
        out.append(item)
        if byte < 0:
            continue
        if byte == _QUOTE and opened and opened[-1][0] == _QUOTE:
            _, begin = opened.pop()
            out[begin:] = [pool.add((QUOTED, pool.sequence(out[begin:])))]
        elif byte in CLOSER or byte == _QUOTE:
            opened.append((byte, len(out) - 1))
        else:
            while opened and opened[-1][0] != OPENER[byte]:
                opened.pop()
            if opened:
                _, begin = opened.pop()
                out[begin:] = [pool.add((CALL, pool.sequence(out[begin:])))]
    return out


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


def _enclose_recursion(pool: NodePool) -> None:
    """Make calls of what recurs in the middle of a sequence, from the nearest literal before to the nearest after.

    Raises GrammarError where there is none: the language is not one of brackets.
    """
    if not pool.recurring()[1]:
        return
    for _ in range(len(pool.rules) + 1):
        graph = inline_references(pool)
        component, looping = recurring(graph)
        offender = next(((r, n) for r in graph if r in looping for n in _middle(pool, r, component)), None)
        if offender is None:
            return
        rule, number = offender
        node = pool.nodes[number]
        items = list(node[1]) if node[0] == SEQUENCE else []
        inner = [k for k, item in enumerate(items) if _mentions(pool, item, component, component[rule])]
        last = len(items) - 1
        inner = [k for k in inner if k < last or pool.nodes[items[k]][0] == REPEAT]
        before = [k for k in range(inner[0]) if pool.nodes[items[k]][0] == LITERAL] if inner else []
        after = [k for k in range(inner[0] + 1, len(items)) if pool.nodes[items[k]][0] == LITERAL] if inner else []
        if not before or not after:
            raise GrammarError(
                f"rule {rule} recurs in the middle of a sequence with no bracket around it",
                place=pool.grammar.place(rule),
                expected="recursion at the very left or right of an alternative, or between two delimiters",
            )
        begin, end = before[-1], after[0]
        call = pool.add((CALL, pool.sequence(items[begin : end + 1])))
        replacement = pool.sequence([*items[:begin], call, *items[end + 1 :]])
        rewrite(pool, lambda n, old=number, new=replacement: new if n == old else None)  # type: ignore[misc]
    raise GrammarError("the recursion of this grammar could not be enclosed in brackets", place=pool.start)


def _mentions(pool: NodePool, number: int, component: dict[str, int], which: int) -> bool:
    todo = [number]
    while todo:
        node = pool.nodes[todo.pop()]
        if node[0] == REF:
            if component[node[1]] == which:
                return True
        elif node[0] in (SEQUENCE, CHOICE):
            todo.extend(node[1])
        elif node[0] == REPEAT:
            todo.append(node[1])
    return False


def _middle(pool: NodePool, rule: str, component: dict[str, int]) -> Iterator[int]:
    """Nodes of a rule in which a rule of its own component is mentioned elsewhere than at the end."""
    which = component[rule]
    todo = [pool.rules[rule]]
    while todo:
        n = todo.pop()
        node = pool.nodes[n]
        if node[0] == CHOICE:
            todo.extend(node[1])
        elif node[0] == SEQUENCE:
            if any(_mentions(pool, item, component, which) for item in node[1][:-1]):
                yield n
            elif node[1]:
                todo.append(node[1][-1])
        elif node[0] == REPEAT and _mentions(pool, node[1], component, which):
            inner = node[1]
            yield inner if pool.nodes[inner][0] == SEQUENCE else n
