"""Remove left recursion from a grammar: ``a: a x | y`` becomes ``a: y x*``.

Leaves out   reading (reader.py). Right and middle recursion stay as they are.
Invariants   the language of every rule is kept; rules that are not left-recursive are not touched.
             Rules in a circle are handled as Paull (1963) does, in the order of the text: what leads a rule is replaced
             by its body, then direct recursion becomes a repeat. Refused, with the circle named, when that would need
             the non-empty part of something we cannot split, or grows too large.
"""

from __future__ import annotations

from dataclasses import replace

from .. import regex as rx
from ..budget import Budget
from ..errors import LeftRecursionError
from ..ir.nodes import EMPTY, NOTHING, Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Terminal, choice, sequence
from .analysis import expr_nullable, left_corners, nullable, strong_components

_MOST_RULES = 12
_MOST_NODES = 20_000


class _CannotSplit(Exception):
    """Internal: the expression has no simple non-empty part."""


def without_left_recursion(grammar: Grammar, budget: Budget) -> Grammar:
    """The same language of every rule, with no rule that can lead to itself first."""
    if not _may_recur(grammar):
        return grammar
    empty = nullable(grammar)
    edges = {
        name: [other for other in dict.fromkeys(left_corners(expr, empty)) if other in grammar.rules]
        for name, expr in grammar.rules.items()
    }
    rules = dict(grammar.rules)
    changed = False
    for part in strong_components(edges):
        if len(part) == 1 and part[0] not in edges[part[0]]:
            continue
        changed = True
        budget.check("", place=grammar.place(part[0]))
        circle = _circle(part, edges)
        try:
            if len(part) > _MOST_RULES:
                raise _CannotSplit
            _remove(part, rules, empty)
        except _CannotSplit:
            raise LeftRecursionError(
                "left recursion that toolc cannot remove",
                place=grammar.place(part[0]),
                found=" → ".join(circle),
                expected="a rule that starts with something else",
                hint="write the repetition with * or +, or let the rule recur on the right",
            ) from None
    return replace(grammar, rules=rules) if changed else grammar


def _may_recur(grammar: Grammar) -> bool:
    """Whether some rule may lead to itself first, were all rules nullable: what is asked first, as it is told soon."""
    first: dict[str, list[str]] = {}  # of the rules that may begin with one
    for name, expr in grammar.rules.items():
        found: list[str] = []
        _may_begin(expr, found)
        if found:
            first[name] = found
    done: set[str] = set()
    for root in first:
        path, open_ = [(root, iter(first[root]))], {root}
        while path and root not in done:
            name, others = path[-1]
            for other in others:
                if other in open_:
                    return True
                if other not in done and other in first:
                    path.append((other, iter(first[other])))
                    open_.add(other)
                    break
            else:
                path.pop()
                open_.discard(name)
                done.add(name)
    return False


def _may_begin(expr: Expr, found: list[str]) -> bool:
    """Add the rules that may stand first in an expression; whether it may be empty, were all rules."""
    kind = type(expr)
    if kind is Literal:
        return False
    if kind is Sequence:
        return all(_may_begin(item, found) for item in expr.items)  # type: ignore[union-attr]
    if kind is Choice:
        return True in [_may_begin(option, found) for option in expr.options]  # type: ignore[union-attr]
    if kind is Ref:
        found.append(expr.name)  # type: ignore[union-attr]
        return True
    if kind is Repeat:
        return _may_begin(expr.item, found) or expr.low == 0  # type: ignore[union-attr]
    return expr_nullable(expr, set())


def _circle(part: list[str], edges: dict[str, list[str]]) -> list[str]:
    """One shortest way from the first rule of the part back to it."""
    inside = set(part)
    before: dict[str, str] = {}
    order = [part[0]]
    for name in order:
        for other in edges[name]:
            if other == part[0]:
                way = [name]
                while way[-1] != part[0]:
                    way.append(before[way[-1]])
                return [*reversed(way), part[0]]
            if other in inside and other not in before:
                before[other] = name
                order.append(other)
    return [*part, part[0]]


def _remove(part: list[str], rules: dict[str, Expr], empty: set[str]) -> None:
    for n, name in enumerate(part):
        expr = rules[name]
        for other in part[:n]:
            tails, rest = _split(expr, other, empty)
            if tails:
                expr = choice(sequence(rules[other], choice(*tails)), rest)
                if _nodes(expr) > _MOST_NODES:
                    raise _CannotSplit
        tails, rest = _split(expr, name, empty)
        tails = [tail for tail in tails if tail != EMPTY]
        if tails:
            expr = sequence(rest, Repeat(choice(*tails), 0, None)) if rest != NOTHING else NOTHING
        else:
            expr = rest
        rules[name] = expr
    # An empty rest can put a later reference first again (a: a a "x" | ).
    left = {name: [other for other in left_corners(rules[name], empty) if other in part] for name in part}
    if any(len(one) > 1 or one[0] in left[one[0]] for one in strong_components(left)):
        raise _CannotSplit


def _nodes(expr: Expr) -> int:
    if isinstance(expr, Sequence):
        return 1 + sum(map(_nodes, expr.items))
    if isinstance(expr, Choice):
        return 1 + sum(map(_nodes, expr.options))
    return 1 + _nodes(expr.item) if isinstance(expr, Repeat) else 1


def _split(expr: Expr, name: str, empty: set[str]) -> tuple[list[Expr], Expr]:
    """Tails and rest with: expr = (name tail | …) | rest, where rest does not have ``name`` first."""
    if name not in left_corners(expr, empty):
        return [], expr
    if isinstance(expr, Ref):
        return [EMPTY], NOTHING
    if isinstance(expr, Choice):
        tails: list[Expr] = []
        rests: list[Expr] = []
        for option in expr.options:
            more, rest = _split(option, name, empty)
            tails.extend(more)
            if rest != NOTHING:
                rests.append(rest)
        return tails, choice(*rests)
    if isinstance(expr, Repeat):
        high = None if expr.high is None else expr.high - 1
        low = max(expr.low - 1, 0)
        item = expr.item if expr.low or not expr_nullable(expr.item, empty) else _nonempty(expr.item, empty)
        tails, rest = _split(sequence(item, _repeat(expr.item, low, high)), name, empty)
        return tails, rest if expr.low else choice(rest, EMPTY)
    assert isinstance(expr, Sequence)
    first, after = expr.items[0], sequence(*expr.items[1:])
    tails, rest = _split(first, name, empty)
    tails = [sequence(tail, after) for tail in tails]
    if expr_nullable(rest, empty) and name in left_corners(after, empty):
        rest = _nonempty(rest, empty)
        more, others = _split(after, name, empty)
        tails.extend(more)
        return tails, choice(*([] if rest == NOTHING else [sequence(rest, after)]), others)
    return tails, NOTHING if rest == NOTHING else sequence(rest, after)


def _repeat(item: Expr, low: int, high: int | None) -> Expr:
    if high == 0:
        return EMPTY
    return item if (low, high) == (1, 1) else Repeat(item, low, high)


def _nonempty(expr: Expr, empty: set[str]) -> Expr:
    """The texts of the expression but the empty one."""
    if not expr_nullable(expr, empty):
        return expr
    if expr == EMPTY:
        return NOTHING
    if isinstance(expr, Choice):
        return choice(*(one for one in (_nonempty(option, empty) for option in expr.options) if one != NOTHING))
    if isinstance(expr, Repeat):
        item = _nonempty(expr.item, empty)
        return NOTHING if item == NOTHING else _repeat(item, 1, expr.high)
    if isinstance(expr, Sequence):
        # The first item that is not empty, then the rest as it was.
        parts = [(_nonempty(item, empty), expr.items[n + 1 :]) for n, item in enumerate(expr.items)]
        return choice(*(sequence(part, *after) for part, after in parts if part != NOTHING))
    if isinstance(expr, Terminal):
        return Terminal(rx.concat(rx.Look(rx.ANY), expr.regex), expr.name)
    raise _CannotSplit
