"""Find the characters that may stand right before and right after each terminal of a grammar.

Leaves out   what terminals see of them (context.py).
Upper bounds a character may be named that never stands there: what a terminal begins and ends with is taken from its
             expression without look-arounds, and each rule is taken to be used everywhere.
Invariants   texts are followed through what may be empty, so a neighbour is the nearest text that is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .. import regex as rx
from ..budget import look
from ..ir.nodes import Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Special, Terminal
from ..regex import charset
from ..regex.charset import Ranges
from .analysis import expr_nullable


@dataclass(frozen=True)
class Around:
    """What may stand around a terminal.

    Attributes:
        before, after: characters.
        start, end: whether the text may begin before it, or end after it.
    """

    before: Ranges
    after: Ranges
    start: bool
    end: bool


ANYTHING = Around(charset.ALL, charset.ALL, True, True)


def neighbours(grammar: Grammar) -> dict[Expr, Around]:
    """What may stand around each terminal, literal and special token that the rules use."""
    return _Neighbours(grammar).found()


class _Neighbours:
    """Leaves of the rules by number, and those that rules begin and end with."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.empty = empty_rules(grammar)
        self.number: dict[Expr, int] = {}
        self.known: dict[int, int] = {}  # id of a leaf → its number: hashes are of all that is inside
        self.first: dict[str, frozenset[int]] = dict.fromkeys(grammar.rules, frozenset())
        self.last: dict[str, frozenset[int]] = dict.fromkeys(grammar.rules, frozenset())
        self.after: dict[int, set[int]] = {}
        self.before: dict[int, set[int]] = {}

    def found(self) -> dict[Expr, Around]:
        for edges, ahead in ((self.first, True), (self.last, False)):
            changed = True
            while changed:
                changed = False
                for name, expr in self.grammar.rules.items():
                    look()
                    more = self.edge(expr, ahead)
                    if more != edges[name]:
                        edges[name], changed = more, True
        for expr in self.grammar.rules.values():
            self.join(expr)
        starts = {self.grammar.start, *self.grammar.entries.values()}
        begins = frozenset[int]().union(*(self.first[one] for one in starts))
        ends = frozenset[int]().union(*(self.last[one] for one in starts))
        leaves = list(self.number)
        first, last = ([edge_of(one, ahead) for one in leaves] for ahead in (True, False))
        return {
            leaf: Around(
                charset.union(*(last[one] for one in sorted(self.before.get(n, ())))),
                charset.union(*(first[one] for one in sorted(self.after.get(n, ())))),
                n in begins,
                n in ends,
            )
            for leaf, n in self.number.items()
        }

    def leaf(self, expr: Expr) -> int:
        n = self.known.get(id(expr))
        if n is None:
            n = self.known[id(expr)] = self.number.setdefault(expr, len(self.number))
        return n

    def edge(self, expr: Expr, ahead: bool) -> frozenset[int]:
        """The leaves that a text of an expression begins with, or ends with."""
        if isinstance(expr, Ref):
            return (self.first if ahead else self.last).get(expr.name, frozenset())
        if isinstance(expr, Choice):
            return frozenset().union(*(self.edge(one, ahead) for one in expr.options))
        if isinstance(expr, Repeat):
            return self.edge(expr.item, ahead)
        if isinstance(expr, Sequence):
            some: set[int] = set()
            for item in expr.items if ahead else expr.items[::-1]:
                some |= self.edge(item, ahead)
                if not may_be_empty(item, self.empty):
                    break
            return frozenset(some)
        return frozenset((self.leaf(expr),))

    def join(self, expr: Expr) -> None:
        """Note which leaves stand beside each other in an expression."""
        if isinstance(expr, Choice):
            for option in expr.options:
                self.join(option)
        elif isinstance(expr, Repeat):
            self.join(expr.item)
            if expr.high is None or expr.high > 1:
                self.beside(self.edge(expr.item, False), self.edge(expr.item, True))
        elif isinstance(expr, Sequence):
            look()
            follows: frozenset[int] = frozenset()
            for item in reversed(expr.items):
                self.join(item)
                self.beside(self.edge(item, False), follows)
                begins = self.edge(item, True)
                follows = begins | follows if may_be_empty(item, self.empty) else begins

    def beside(self, left: Iterable[int], right: frozenset[int]) -> None:
        if right:
            for one in left:
                self.after.setdefault(one, set()).update(right)
                for other in right:
                    self.before.setdefault(other, set()).add(one)


def empty_rules(grammar: Grammar) -> set[str]:
    """Rules that may derive the empty text, if looks are met."""
    known: set[str] = set()
    size = -1
    while size < len(known):
        look()
        size = len(known)
        known |= {name for name, expr in grammar.rules.items() if may_be_empty(expr, known)}
    return known


def may_be_empty(expr: Expr, known: set[str]) -> bool:
    """Whether an expression may derive the empty text, if looks are met and the rules in ``known`` may."""
    return expr_nullable(expr, known, lambda regex: edge_of_regex(regex, True)[1])


def edge_of(leaf: Expr, ahead: bool) -> Ranges:
    """Characters with which a text of a leaf may begin, or end."""
    if isinstance(leaf, Literal):
        text = leaf.data.decode()
        return charset.single(ord(text[0 if ahead else -1]))
    if isinstance(leaf, Special) and leaf.otherwise not in ("declared", "member") and leaf.name:
        return charset.single(ord(leaf.name[0 if ahead else -1]))
    return edge_of_regex(leaf.regex, ahead)[0] if isinstance(leaf, Terminal) else charset.ALL


def edge_of_regex(regex: rx.Regex, ahead: bool) -> tuple[Ranges, bool]:
    """Characters with which a text may begin, or end, and whether it may be empty; looks are taken to be met."""
    if isinstance(regex, rx.Chars):
        return regex.ranges, False
    if isinstance(regex, rx.Repeat):
        some, empty = edge_of_regex(regex.item, ahead)
        return (some, empty or regex.low == 0) if regex.high != 0 else ((), True)
    if isinstance(regex, rx.Union):
        each = [edge_of_regex(option, ahead) for option in regex.options]
        return charset.union(*(some for some, _ in each)), any(empty for _, empty in each)
    found: Ranges = ()
    if isinstance(regex, rx.Concat):
        for item in regex.items if ahead else regex.items[::-1]:
            some, empty = edge_of_regex(item, ahead)
            found = charset.union(found, some)
            if not empty:
                return found, False
    return found, True
