"""Compute the digest of a grammar: equal for grammars that differ in the names of rules alone.

Leaves out   digests of parts, which also cover what they import (split.py).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

from .. import regex as rx
from ..ir.nodes import Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Special, Terminal

_MOST_KEPT = 1 << 14  # regular expressions of which the digest is kept: those of one grammar are in the next, too


@lru_cache(_MOST_KEPT)
def _said_regex(regex: rx.Regex) -> bytes:
    said: list[str] = []
    _say_regex(regex, said)
    return b"t" + hashlib.blake2b("".join(said).encode(), digest_size=16).digest()


def _say_regex(regex: rx.Regex, said: list[str]) -> None:
    """Append what a regular expression is."""
    if isinstance(regex, rx.Chars):
        said.append(_said_ranges(regex.ranges))
    elif isinstance(regex, (rx.Concat, rx.Union)):
        said.append("s(" if isinstance(regex, rx.Concat) else "u(")
        for part in regex.items if isinstance(regex, rx.Concat) else regex.options:
            if type(part) is rx.Chars:
                said.append(_said_ranges(part.ranges))
            else:
                _say_regex(part, said)
        said.append(")")
    elif isinstance(regex, (rx.Repeat, rx.Look)):
        bounds = (regex.low, regex.high, regex.lazy) if isinstance(regex, rx.Repeat) else (regex.ahead, regex.negative)
        said.append(f"{type(regex).__name__}{bounds}(")
        _say_regex(regex.item, said)
        said.append(")")
    else:
        said.append(repr(regex))


@lru_cache(_MOST_KEPT)
def _said_ranges(ranges: tuple[tuple[int, int], ...]) -> str:
    return str(ranges)


def digest_of(grammar: Grammar, imports: list[bytes]) -> bytes:
    """Of the content: rules are called by the order in which they are met."""
    order, todo = {grammar.start: 0}, [grammar.start]
    said: list[bytes] = []
    for rule in todo:
        say(grammar.rules[rule], said, order, todo)
        if rule in grammar.marks:
            said.append(grammar.marks[rule].kind.encode())
        said.append(b"g\n" if rule in grammar.groups else b"\n")
    return hashlib.blake2b(b"".join([*said, b"\n", b"\n".join(imports)]), digest_size=16).digest()


def say(expr: Expr, said: list[bytes], order: dict[str, int], todo: list[str]) -> None:
    """Append what an expression is, and to ``order`` and ``todo`` the rules that it is the first to name."""
    kind = type(expr)
    if kind is Ref:
        number = order.setdefault(expr.name, len(order))  # type: ignore[union-attr]
        if number == len(todo):
            todo.append(expr.name)  # type: ignore[union-attr]
        said.append(b"r%d" % number)
    elif kind is Sequence or kind is Choice:
        said.append(b"s(" if kind is Sequence else b"c(")
        for part in expr.items if kind is Sequence else expr.options:  # type: ignore[union-attr]
            if type(part) is Literal:
                said.append(b"l%d:%b," % (len(part.data), part.data))
            else:
                say(part, said, order, todo)
                said.append(b",")
        said.append(b")")
    elif isinstance(expr, Literal):
        said.append(b"l%d:%b" % (len(expr.data), expr.data))
    elif isinstance(expr, Terminal):
        said.append(_said_regex(expr.regex))
    elif isinstance(expr, Repeat):
        said.append(b"n%d:%d(" % (expr.low, -1 if expr.high is None else expr.high))
        say(expr.item, said, order, todo)
        said.append(b")")
    else:
        assert isinstance(expr, Special)
        said.append(b"x" + repr((expr.name, expr.otherwise)).encode())
