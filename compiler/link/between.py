"""What the calls of many tools have alike between name and arguments, as one rule that all of them call.

    {"name": "NAME", "arguments": {…}}           from the quote behind the name to the colon

Each tool has states of its own there, as the stack does not tell yet whose call it is, and blanks make them many.
Called as a group in brackets is, its first symbol pushes which tool it was, and its last one comes back to that.

Leaves out   arguments without brackets, of which all that is behind the name is a part (tails.py).
Invariants   the grammar derives the same texts, and marks them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..automata.nodes import CLOSER, OPENER
from ..grammar.ir import Expr, Grammar, Literal, Mark, Ref, Sequence, Special, sequence
from .tails import byte_of, marked, named, symbols, written_out

MANY = 32  # calls of fewer tools stay as they are: each would wait for a frame, for little


def with_between(grammar: Grammar, bracketed: Iterable[str]) -> Grammar:
    """The grammar in which what stands between name and arguments is a rule, where that of many tools is the same.

    Args:
        bracketed: rules of arguments that are in brackets.
    """
    rules, marks = dict(grammar.rules), grammar.marks
    parts = set(bracketed)
    alike: dict[tuple[Expr, ...], list[tuple[str, tuple[Expr, ...], int]]] = {}
    for rule, mark in marks.items():
        if mark.kind != "tool" or rule not in rules:
            continue
        whole = _whole(rules, marks, named(rules, rule))
        name, arguments = marked(whole, marks, "name"), marked(whole, marks, "arguments")
        if 0 <= name < arguments and named(rules, whole[arguments].name) in parts:  # type: ignore[union-attr]
            alike.setdefault(whole[name + 1 : arguments], []).append((rule, whole, name))
    groups = set(grammar.groups)
    for items, tools in alike.items():
        pieces = written_out(items, rules, marks)
        last = max((k for k, piece in enumerate(pieces) if symbols(piece)), default=0)
        names = [rules[named(rules, whole[name].name)] for _, whole, name in tools]  # type: ignore[union-attr]
        if len(tools) < MANY or last == 0 or not _tells_apart(pieces[0], names):
            continue
        if any(byte_of(piece) in {*CLOSER, *OPENER} for piece in pieces):
            continue
        between = f"#between{len(groups)}"
        rules[between] = sequence(*pieces[: last + 1])
        groups.add(between)
        for rule, whole, name in tools:
            rest = whole[name + 1 + len(items) :]
            rules[rule] = sequence(*whole[: name + 1], Ref(between), *pieces[last + 1 :], *rest)
    return replace(grammar, rules=rules, groups=frozenset(groups))


def _whole(rules: Mapping[str, Expr], marks: Mapping[str, Mark], rule: str) -> tuple[Expr, ...]:
    """What a tool's call consists of: the items of a rule, and of a template in it that has the name."""
    expr = rules.get(rule)
    items = expr.items if isinstance(expr, Sequence) else ()
    if marked(items, marks, "name") >= 0:
        return items
    out: list[Expr] = []
    for item in items:
        inner = rules.get(item.name) if isinstance(item, Ref) and item.name not in marks else None
        out += inner.items if isinstance(inner, Sequence) and marked(inner.items, marks, "name") >= 0 else (item,)
    return tuple(out)


def _tells_apart(opener: Expr, names: Iterable[Expr]) -> bool:
    """Whether names go on with nothing that an expression begins with."""
    if isinstance(opener, Special):
        return True
    if not isinstance(opener, Literal):
        return False
    return all(isinstance(name, Literal) and opener.data[:1] not in name.data for name in names)
