"""Facts about a grammar that several stages ask for.

Leaves out   changing the grammar (leftrec.py removes left recursion; the automaton drops what derives nothing).
Invariants   results depend on the rules' expressions and their order only, never on hashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any

from .. import regex as rx
from ..ir.nodes import Choice, Expr, Grammar, Ref, Repeat, Sequence, Terminal, Text

__all__ = ["expr_nullable", "inner_first", "leaves", "left_corners", "nullable", "productive", "reachable",
           "recursive_components", "references", "regex_nullable", "strong_components"]  # fmt: skip

_CLOSED = 1 << 62


def leaves(expr: Expr) -> tuple[Expr, ...]:
    """What an expression is made of, left to right: literals, terminals, special tokens, references.

    Kept with it, as most stages ask for those of every rule.
    """
    if not isinstance(expr, (Sequence, Choice, Repeat)):
        return (expr,)
    known: tuple[Expr, ...] | None = getattr(expr, "_leaves", None)
    if known is not None:
        return known
    found: list[Expr] = []
    todo: list[Any] = [expr]
    while todo:
        one = todo.pop()
        kind = type(one)
        if kind is Sequence:
            todo += one.items[::-1]
        elif kind is Choice:
            todo += one.options[::-1]
        elif kind is Repeat:
            todo.append(one.item)
        else:
            found.append(one)
    kept = tuple(found)
    object.__setattr__(expr, "_leaves", kept)
    return kept


def references(expr: Expr) -> list[str]:
    """Names of the rules an expression refers to, left to right, repeated ones too."""
    return [leaf.name for leaf in leaves(expr) if type(leaf) is Ref]


@lru_cache(4096)
def regex_nullable(regex: rx.Regex) -> bool:
    """Whether an expression matches the empty text (asked of the empty text alone)."""
    if isinstance(regex, rx.Concat):
        return all(map(regex_nullable, regex.items))
    if isinstance(regex, rx.Union):
        return any(map(regex_nullable, regex.options))
    if isinstance(regex, rx.Repeat):
        return regex.low == 0 or regex_nullable(regex.item)
    if isinstance(regex, rx.Look):
        return regex_nullable(regex.item) != regex.negative
    if isinstance(regex, rx.WordBoundary):
        return regex.negative
    return isinstance(regex, rx.Start | rx.End)


def expr_nullable(expr: Expr, known: set[str], empty: Callable[[rx.Regex], bool] = regex_nullable) -> bool:
    """Whether an expression derives the empty text, if rules in ``known`` and terminals of which ``empty`` holds do."""
    if isinstance(expr, Ref):
        return expr.name in known
    if isinstance(expr, Sequence):
        return all(expr_nullable(item, known, empty) for item in expr.items)
    if isinstance(expr, Choice):
        return any(expr_nullable(option, known, empty) for option in expr.options)
    if isinstance(expr, Repeat):
        return expr.low == 0 or expr_nullable(expr.item, known, empty)
    return isinstance(expr, Text) or (isinstance(expr, Terminal) and empty(expr.regex))


def _productive(expr: Expr, known: set[str]) -> bool:
    if isinstance(expr, Ref):
        return expr.name in known
    if isinstance(expr, Sequence):
        return all(_productive(item, known) for item in expr.items)
    if isinstance(expr, Choice):
        return any(_productive(option, known) for option in expr.options)
    if isinstance(expr, Repeat):
        return expr.low == 0 or _productive(expr.item, known)
    return True


def nullable(grammar: Grammar) -> set[str]:
    """Rules that derive the empty text."""
    return _least(grammar, expr_nullable)


def productive(grammar: Grammar) -> set[str]:
    """Rules that derive some text, taking every terminal to match something."""
    return _least(grammar, _productive)


def _least(grammar: Grammar, holds: Callable[[Expr, set[str]], bool]) -> set[str]:
    """The fewest rules of which something holds, where it may hold of a rule because it does of those it refers to."""
    known: set[str] = set()
    edges = {name: [one for one in references(expr) if one in grammar.rules] for name, expr in grammar.rules.items()}
    users: dict[str, dict[str, None]] = {name: {} for name in grammar.rules}
    for name, others in edges.items():
        for other in others:
            users[other][name] = None
    queue = deque(inner_first(edges))
    waiting = set(queue)
    while queue:
        name = queue.popleft()
        waiting.remove(name)
        if holds(grammar.rules[name], known):
            known.add(name)
            again = [user for user in users[name] if user not in known and user not in waiting]  # of circles
            waiting.update(again)
            queue.extend(again)
    return known


def inner_first(edges: Mapping[str, Collection[str]]) -> list[str]:
    """The nodes of a graph, each after those that it leads to, but for circles."""
    met: set[str] = set()
    order: list[str] = []
    for root in edges:
        if root in met:
            continue
        met.add(root)
        path = [(root, iter(edges[root]))]
        while path:
            for other in path[-1][1]:
                if other not in met:
                    met.add(other)
                    path.append((other, iter(edges[other])))
                    break
            else:
                order.append(path.pop()[0])
    return order


def reachable(grammar: Grammar) -> list[str]:
    """Rules the start refers to, directly or not, by discovery; the start is first."""
    order = [grammar.start]
    seen = {grammar.start}
    for name in order:
        for other in references(grammar.rules[name]):
            if other not in seen:
                seen.add(other)
                order.append(other)
    return order


def left_corners(expr: Expr, empty: set[str]) -> Iterator[str]:
    """Rules that can stand first in a text of the expression; ``empty`` are the nullable ones."""
    if isinstance(expr, Ref):
        yield expr.name
    elif isinstance(expr, Sequence):
        for item in expr.items:
            yield from left_corners(item, empty)
            if not expr_nullable(item, empty):
                return
    elif isinstance(expr, Choice):
        for option in expr.options:
            yield from left_corners(option, empty)
    elif isinstance(expr, Repeat) and expr.high != 0:
        yield from left_corners(expr.item, empty)


def strong_components(edges: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Strongly connected components of a graph, those that are led to first, members in the graph's order.

    Source: Tarjan 1972.
    """
    met: dict[str, int] = {}  # when; _CLOSED of those whose component is found
    open_: list[str] = []
    out: list[list[str]] = []
    place: dict[str, int] = {}
    for root in edges:
        if root in met:
            continue
        met[root] = len(met)
        open_.append(root)
        path, lows = [(root, iter(edges[root]))], [met[root]]
        while path:
            name, targets = path[-1]
            low = lows[-1]
            for target in targets:
                known = met.get(target)
                if known is None and not edges[target]:
                    met[target] = _CLOSED
                    out.append([target])
                elif known is None:
                    lows[-1] = low
                    met[target] = len(met)
                    open_.append(target)
                    path.append((target, iter(edges[target])))
                    lows.append(met[target])
                    break
                elif known < low:
                    low = known
            else:
                path.pop()
                lows.pop()
                if low < met[name]:
                    lows[-1] = min(low, lows[-1])
                elif open_[-1] == name:
                    met[open_.pop()] = _CLOSED
                    out.append([name])
                else:
                    at = open_.index(name)
                    place = place or {one: n for n, one in enumerate(edges)}
                    out.append(sorted(open_[at:], key=place.__getitem__))
                    met.update(dict.fromkeys(open_[at:], _CLOSED))
                    del open_[at:]
    return out


def recursive_components(grammar: Grammar) -> list[list[str]]:
    """Groups of rules that refer to each other in a circle (a rule that refers to itself is a group of one)."""
    edges = {
        name: [other for other in dict.fromkeys(references(expr)) if other in grammar.rules]
        for name, expr in grammar.rules.items()
    }
    return [part for part in strong_components(edges) if len(part) > 1 or part[0] in edges[part[0]]]
