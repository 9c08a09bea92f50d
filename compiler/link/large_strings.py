"""Choose large strings: values in quotes, with counted repeats of hundreds of positions, each a part of its own.

A pattern like that of Amazon's resource names, ``arn:[a-z0-9-]{1,63}:[a-z0-9-]{0,63}:[^/].{0,1023}``, takes seconds to
lift, and dozens of tools of one service have it. As a part it is compiled once.

The terminal becomes a rule that is called (ir/nodes.py, ``groups``): its first quote pushes, its last one pops. The
quotes of JSON are in the terminal; those of other encodings stand on both sides of it, and the rule has them.

Leaves out   whether such a rule can be a part where it stands (definitions.py, stubs.py). Keys, which stand in front of
             a colon: behind a member that may be left out another key begins with a quote, too.
Invariants   the grammar derives the same texts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .. import regex as rx
from ..grammar.analysis import leaves
from ..ir.nodes import EMPTY, Expr, Grammar, Literal, Ref, Sequence, Terminal, free_name, rebuilt, sequence
from ..regex import Regex, charset

QUOTE = b'"'
_MARKS = (Literal(QUOTE), Literal(b"'"))
WORTH = 256
"""Positions in the counted repeats of a pattern, written out, from which on a string is a part of its own."""
_MOST_KEPT = 4096  # patterns
_QUOTED = rx.literal(QUOTE.decode())


def with_large_strings(grammar: Grammar) -> tuple[Grammar, frozenset[str]]:
    """The grammar in which each large string is a rule, and the names of these rules."""
    found = _Found(grammar)
    for rule, expr in grammar.rules.items():
        if any(isinstance(leaf, Terminal) and _is_long(leaf.regex) for leaf in leaves(expr)):
            found.rules[rule] = found.moved(expr)
    names = frozenset(found.rule_of.values())
    return (replace(grammar, rules=found.rules, groups=grammar.groups | names), names) if names else (grammar, names)


class _Found:
    """The rules of a grammar, those of large strings among them, as they are found."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.rules = dict(grammar.rules)
        self.rule_of: dict[Expr, str] = {}

    def moved(self, expr: Expr) -> Expr:
        """An expression with references in the place of large strings, but for keys."""
        if isinstance(expr, Sequence):
            items = self._between_marks(expr.items)
            behind = (*items[1:], EMPTY)
            return sequence(
                *(
                    one if isinstance(one, Terminal) and _is_colon(after, self.grammar) else self.moved(one)
                    for one, after in zip(items, behind, strict=False)
                )
            )
        if not isinstance(expr, Terminal):
            return rebuilt(expr, self.moved)
        return self._rule(expr, expr) if is_large(expr.regex) else expr

    def _between_marks(self, items: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """The items of a sequence, where each long terminal between two equal marks is a reference, with its marks."""
        for at, (mark, inside, last) in enumerate(zip(items, items[1:], items[2:], strict=False)):
            if mark in _MARKS and mark == last and isinstance(inside, Terminal) and _is_long(inside.regex):
                behind = items[at + 3 :]
                if not (behind and _is_colon(behind[0], self.grammar)):
                    found = self._rule(sequence(mark, inside, last), inside)
                    return (*items[:at], found, *self._between_marks(behind))
        return items

    def _rule(self, expr: Expr, terminal: Terminal) -> Ref:
        """The rule of a string, which has this terminal."""
        if expr not in self.rule_of:
            name = self.rule_of[expr] = free_name(f"{terminal.name}#string", self.rules)
            self.rules[name] = expr
        return Ref(self.rule_of[expr])


def _is_colon(expr: Expr, grammar: Grammar) -> bool:
    """Whether an expression is the colon behind a key, perhaps with blanks around it."""
    expr = grammar.rules.get(expr.name, expr) if isinstance(expr, Ref) else expr
    return any(isinstance(leaf, Literal) and leaf.data.strip() == b":" for leaf in leaves(expr))


def is_large(regex: Regex) -> bool:
    """Whether a pattern is of one string in quotes, with many positions in counted repeats."""
    quoted = isinstance(regex, rx.Concat) and len(regex.items) > 1 and regex.items[0] == regex.items[-1] == _QUOTED
    return quoted and _is_long(regex)


def _is_long(regex: Regex) -> bool:
    """Whether a pattern has many positions in counted repeats."""
    return _all_positions(regex) >= WORTH


@lru_cache(_MOST_KEPT)
def _all_positions(regex: Regex) -> int:
    """Characters of a pattern that stand in counted repeats, all copies."""
    return _positions(regex, 0)


def begins_with_quote(regex: Regex) -> bool:
    """Whether a text of a pattern may begin with a quote; what stands behind an item that may be empty is not seen."""
    if isinstance(regex, rx.Union):
        return any(map(begins_with_quote, regex.options))
    if isinstance(regex, rx.Concat):
        return bool(regex.items) and begins_with_quote(regex.items[0])
    return isinstance(regex, rx.Chars) and charset.contains(regex.ranges, ord(QUOTE))


def _positions(regex: Regex, times: int) -> int:
    """Characters of a pattern that stand in counted repeats, all copies; what must not follow is left out.

    Args:
        times: so often the pattern is copied by the repeats around it; 0: there are none.
    """
    if isinstance(regex, rx.Chars):
        return times
    if isinstance(regex, rx.Concat):
        return sum(_positions(item, times) for item in regex.items)
    if isinstance(regex, rx.Union):
        return sum(_positions(option, times) for option in regex.options)
    if isinstance(regex, rx.Repeat):
        count = max(regex.low, regex.high or 1)
        return _positions(regex.item, count * max(1, times) if count > 1 else times)
    return _positions(regex.item, times) if isinstance(regex, rx.Look) and not regex.negative else 0
