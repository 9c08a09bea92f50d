"""Choose definitions: large objects and arrays inside of arguments that are parts of their own.

Several tools may have a definition, as operations of an OpenAPI document do, or one tool in several places. As a part
it is compiled once. What is chosen depends on the arguments of one tool alone, so that a changed spec costs only its
changed tools.

Two kinds cannot be parts (stubs.py): a definition in a counted repeat, as behind its end the counter goes on, and one
that begins with the bracket of another alternative. Most of these are seen here, before an automaton is made in vain.

Leaves out   definitions that recur, which are parts in any case (split.py); large alternatives of a choice, which are
             given rules first (bracketed_options.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from ..budget import look
from ..grammar.analysis import inner_first, leaves, references
from ..ir.nodes import Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Terminal
from .large_strings import QUOTE, begins_with_quote

WORTH = 100
"""Literals, patterns and names from which on a rule is a definition."""


def definitions(
    grammar: Grammar, refs: Mapping[str, list[str]], bracketed: Callable[[str], bool], but: Collection[str],
    strings: Collection[str] = (),
) -> list[str]:  # fmt: skip
    """The rules of a grammar that are definitions.

    Args:
        refs: the rules that each rule names.
        bracketed: whether a rule is one group in brackets.
        but: rules that are parts already, or cannot be.
        strings: rules that are large strings in quotes.

    Raises BudgetError: it took too many seconds.
    """
    rules = grammar.rules
    if not strings and sum(len(leaves(expr)) for expr in rules.values()) < WORTH:
        return []
    order = inner_first(refs)
    apart = _counted(rules, refs) | _Openers(rules, order, lambda rule: rule in strings or bracketed(rule)).shared()
    found: dict[str, None] = {}
    for rule in order:
        if rule not in rules or rule in but or rule in apart:
            continue
        if rule in strings or (bracketed(rule) and is_worth_a_part(rules[rule], rules, refs, found)):
            found[rule] = None
    return list(found)


def is_worth_a_part(
    expr: Expr, rules: Mapping[str, Expr], refs: Mapping[str, list[str]], but: Collection[str] = ()
) -> bool:  # fmt: skip
    """Whether an expression, with the rules that it needs, has at least WORTH literals, patterns and names.

    The rules in ``but``, and what only they need, are not counted.
    """
    look()
    weight = len(leaves(expr))
    todo = [name for name in dict.fromkeys(references(expr)) if name not in but]
    met = set(todo)
    for rule in todo:
        if weight >= WORTH:
            break
        if rule in rules:
            weight += len(leaves(rules[rule]))
            todo += (more := [name for name in refs[rule] if name not in met and name not in but])
            met.update(more)
    return weight >= WORTH


def _counted(rules: Mapping[str, Expr], refs: Mapping[str, list[str]]) -> set[str]:
    """The rules that counted repeats reach."""
    todo = list(
        dict.fromkeys(
            leaf.name
            for expr in rules.values()
            for one in _inside(expr)
            if isinstance(one, Repeat) and (one.low > 1 or (one.high or 0) > 1)
            for leaf in leaves(one.item)
            if isinstance(leaf, Ref)
        )
    )
    met = set(todo)
    for rule in todo:
        todo += (more := [name for name in refs.get(rule, ()) if name not in met])
        met.update(more)
    return met


class _Openers:
    """What the alternatives of choices begin with."""

    def __init__(self, rules: Mapping[str, Expr], order: Iterable[str], bracketed: Callable[[str], bool]) -> None:
        self._rules = rules
        self._known: dict[str, frozenset[str | bytes]] = {}
        for rule in order:  # each after those that it names
            if rule in rules:
                look()
                self._known[rule] = frozenset([rule]) if bracketed(rule) else self._firsts(rules[rule])

    def shared(self) -> set[str]:
        """The bracketed rules with which one alternative begins, and another alternative with the same bracket."""
        found: set[str] = set()
        for expr in self._rules.values():
            for one in _inside(expr):
                if isinstance(one, Choice):
                    found |= self._clashing(one)
        return found

    def _clashing(self, one: Choice) -> set[str]:
        by_bracket: dict[bytes, set[str | bytes]] = {}
        for first in self._firsts(one):
            by_bracket.setdefault(self._bracket(first), set()).add(first)
        return {name for firsts in by_bracket.values() if len(firsts) > 1 for name in firsts if isinstance(name, str)}

    def _bracket(self, first: str | bytes) -> bytes:
        """The bracket of a bracketed rule; a literal's first byte."""
        if isinstance(first, bytes):
            return first
        opening = next(iter(leaves(self._rules[first])))
        return opening.data[:1] if isinstance(opening, Literal) else QUOTE

    def _firsts(self, expr: Expr) -> frozenset[str | bytes]:
        """Names of the bracketed rules, and the first bytes of the literals, with which an expression may begin."""
        if isinstance(expr, Literal):
            return frozenset([expr.data[:1]])
        if isinstance(expr, Terminal):
            return frozenset([QUOTE] if begins_with_quote(expr.regex) else [])
        if isinstance(expr, Ref):
            return self._known.get(expr.name, frozenset())  # none of a rule that recurs through this one
        if isinstance(expr, Repeat):
            return self._firsts(expr.item)
        if isinstance(expr, Choice):
            return frozenset().union(*map(self._firsts, expr.options))
        found: frozenset[str | bytes] = frozenset()
        if isinstance(expr, Sequence):
            for item in expr.items:
                found |= self._firsts(item)
                if not (isinstance(item, Repeat) and item.low == 0):
                    break
        return found


def _inside(expr: Expr) -> Iterator[Expr]:
    """An expression, and all in it."""
    todo: list[Expr] = [expr]
    for one in todo:
        yield one
        parts: Iterable[Expr] = ()
        if isinstance(one, (Sequence, Choice)):
            parts = one.items if isinstance(one, Sequence) else one.options
        elif isinstance(one, Repeat):
            parts = (one.item,)
        todo += parts
