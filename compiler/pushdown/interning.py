"""Intern a grammar as nodes, with bracketed groups marked as calls.

Takes a Grammar, gives a NodePool in which rules that derive nothing are gone (empty_rules.py), every bracketed group is
a CALL node and the recursion that is left is in tail position (brackets.py), so inlining it ends.

Leaves out   the nodes themselves (nodes.py), automata of terminals (terminal.py).
Invariants   each distinct expression, and each distinct terminal, is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..budget import Budget
from ..ir import nodes as ir
from ..regex import Chars, Concat, Look, Regex, Repeat, concat, repeat
from ..terminals.dfa import Dfa
from .brackets import call_brackets
from .counted import count_units
from .empty_rules import trim
from .nodes import COUNTED, LITERAL, QUOTE, REF, SPECIAL, TERMINAL, NodePool, split_literal

_QUOTED_BY = Chars(((QUOTE, QUOTE),))
COUNT_FROM = 32  # up to so many units of a terminal are counted out in its automaton


def read_nodes(grammar: ir.Grammar, budget: Budget, terminal_dfa: Callable[..., Dfa]) -> NodePool:
    """Intern a grammar, drop what derives nothing, and mark bracketed groups as calls.

    Raises:
        UnsatisfiableError: no text at all is derived from the start rule.
        GrammarError: a rule recurs in a way that no bracket encloses.
    """
    pool = uncalled_nodes(grammar, budget, terminal_dfa)
    call_brackets(pool, grammar.groups)
    return pool


def uncalled_nodes(grammar: ir.Grammar, budget: Budget, terminal_dfa: Callable[..., Dfa]) -> NodePool:
    """The same without marked groups: every recursion stands as it was written."""
    pool = _Interning(grammar, budget, terminal_dfa).pool
    trim(pool)
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
