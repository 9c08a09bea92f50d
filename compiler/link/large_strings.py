"""Choose large strings: quoted patterns of so many positions that each is worth a part of its own.

A pattern like that of Amazon's resource names, ``arn:[a-z0-9-]{1,63}:[a-z0-9-]{0,63}:[^/].{0,1023}``, takes seconds to
lift, and dozens of tools of one service have it. As a part it is compiled once.

The terminal becomes a rule that is called (ir/nodes.py, ``groups``): its first quote pushes, its last one pops.

Leaves out   whether such a rule can be a part where it stands (definitions.py, stubs.py).
Invariants   the grammar derives the same texts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from .. import regex as rx
from ..grammar.analysis import leaves
from ..ir.nodes import Expr, Grammar, Ref, Terminal, rebuilt
from ..regex import Regex, charset

QUOTE = b'"'
WORTH = 256
"""Positions of a pattern, counted repeats written out, from which on a string is a part of its own."""
_MOST_KEPT = 4096  # patterns
_QUOTED = rx.literal(QUOTE.decode())


def with_large_strings(grammar: Grammar) -> tuple[Grammar, frozenset[str]]:
    """The grammar in which each large string is a rule, and the names of these rules."""
    rules = dict(grammar.rules)
    rule_of: dict[Terminal, str] = {}

    def moved(expr: Expr) -> Expr:
        if not isinstance(expr, Terminal):
            return rebuilt(expr, moved)
        if not is_large(expr.regex):
            return expr
        if expr not in rule_of:
            name = f"{expr.name}#string"
            while name in rules:
                name += "#"
            rule_of[expr] = name
            rules[name] = expr
        return Ref(rule_of[expr])

    for rule, expr in grammar.rules.items():
        if any(isinstance(leaf, Terminal) and is_large(leaf.regex) for leaf in leaves(expr)):
            rules[rule] = moved(expr)
    if not rule_of:
        return grammar, frozenset()
    return replace(grammar, rules=rules, groups=grammar.groups | set(rule_of.values())), frozenset(rule_of.values())


def is_large(regex: Regex) -> bool:
    """Whether a pattern is of one string in quotes, of many positions."""
    return isinstance(regex, rx.Concat) and len(regex.items) > 1 and _positions_in_quotes(regex) >= WORTH


@lru_cache(_MOST_KEPT)
def _positions_in_quotes(regex: rx.Concat) -> int:
    """Positions of a pattern in quotes; 0 of another."""
    return _positions(regex) if regex.items[0] == regex.items[-1] == _QUOTED else 0


def begins_with_quote(regex: Regex) -> bool:
    """Whether a text of a pattern may begin with a quote; what stands behind an item that may be empty is not seen."""
    if isinstance(regex, rx.Union):
        return any(map(begins_with_quote, regex.options))
    if isinstance(regex, rx.Concat):
        return bool(regex.items) and begins_with_quote(regex.items[0])
    return isinstance(regex, rx.Chars) and charset.contains(regex.ranges, ord(QUOTE))


def _positions(regex: Regex) -> int:
    """Characters of a pattern, counted repeats written out."""
    if isinstance(regex, rx.Chars):
        return 1
    if isinstance(regex, rx.Concat):
        return sum(map(_positions, regex.items))
    if isinstance(regex, rx.Union):
        return sum(map(_positions, regex.options))
    if isinstance(regex, rx.Repeat):
        return _positions(regex.item) * max(regex.low, regex.high or 1)
    return _positions(regex.item) if isinstance(regex, rx.Look) else 0
