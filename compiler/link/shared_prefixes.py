"""Read what stands between a tool's name and its arguments in the frame of the arguments, where many calls share it.

    {"name": "NAME", "arguments": {…}}           from the quote behind the name to the brace that closes the arguments

Before the arguments begin nothing but the states tells whose call it is, so each tool would have states of its own from
its name to their first bracket, which blanks make many; they would be most of the main part, which is made for every
spec anew. So the part is called from the first symbol behind the name on. What stands between that and the last
delimiter before the arguments is one more frame, which all tools of a group share.

Leaves out   arguments without brackets, of which all that is behind the name is a part (call_tails.py).
Invariants   the grammar derives the same texts. The frame of such a part is marked as arguments that begin with the
             first bracket in it (`with_led` of pushdown/marks.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from ..grammar.analysis import expr_nullable, references
from ..grammar.cached_reader import GAPS
from ..ir.nodes import (
    Closed,
    Expr,
    Grammar,
    Literal,
    Mark,
    Ref,
    Sequence,
    Special,
    rebuilt,
    sequence,
)
from ..pushdown.nodes import CLOSER, OPENER
from .call_tails import byte_of, marked, named, symbols, written_out

MANY = 32  # calls of fewer tools stay as they are: their parts are those of any other spec
_BETWEEN = "#between"
_MOST_KEPT = 4  # ways in which a tool is called, or specs call it, of which the arguments are kept


def with_leads(grammar: Grammar, bracketed: Iterable[str]) -> Grammar:
    """The grammar in which what leads to the arguments is a part of what stands apart, where that of many tools is the
    same.

    Args:
        bracketed: rules of arguments that are in brackets.
    """
    rules, marks, apart = dict(grammar.rules), dict(grammar.marks), dict(grammar.apart)
    parts = {root for root in bracketed if root in apart}
    alike: dict[tuple[Expr, ...], list[tuple[str, tuple[Expr, ...], int]]] = {}
    for rule, mark in grammar.marks.items():
        if mark.kind != "tool" or rule not in rules:
            continue
        whole = _whole(rules, marks, named(rules, rule))
        name, arguments = marked(whole, marks, "name"), marked(whole, marks, "arguments")
        if 0 <= name < arguments and named(rules, whole[arguments].name) in parts:  # type: ignore[union-attr]
            alike.setdefault(whole[name + 1 : arguments], []).append((rule, whole, name))
    for number, (items, tools) in enumerate(alike.items()):
        names = [rules[named(rules, whole[name].name)] for _, whole, name in tools]  # type: ignore[union-attr]
        pieces = written_out(items, rules, marks)
        lead = _lead(pieces, rules, marks) if len(tools) >= MANY and _may_lead(pieces, names) else None
        if lead is None:
            continue
        for rule, whole, name in tools:
            _, named_so, *rest = whole[name + len(items) :]
            assert isinstance(named_so, Ref)
            root = named(rules, named_so.name)
            closed, origin = grammar.apart[root]
            made = _led(closed, *lead)
            if made is not None:
                led = f"{root}#led{number}"  # a tool may be called in two ways
                apart[led], marks[led] = (made, origin), marks[named_so.name]
                rules[rule] = sequence(*whole[: name + 1], Ref(led), *rest)
    return replace(grammar, rules=rules, marks=marks, apart=apart)


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


def _may_lead(pieces: list[Expr], names: Iterable[Expr]) -> bool:
    """Whether there is no bracket in what leads to arguments, and names go on with nothing that it begins with."""
    if not pieces or any(byte_of(piece) in {*CLOSER, *OPENER} for piece in pieces):
        return False
    opener = pieces[0]
    if isinstance(opener, Special):
        return True
    if not isinstance(opener, Literal):
        return False
    return all(isinstance(name, Literal) and opener.data[:1] not in name.data for name in names)


def _lead(
    pieces: list[Expr], rules: Mapping[str, Expr], marks: Mapping[str, Mark]
) -> tuple[Expr, tuple[Expr, ...]] | None:
    """What leads to arguments as the frame between its first symbol and its last delimiter, and all of it, by the name
    of that. None where there are but delimiters, which are few states, too few to push and pop, or more than text."""
    first, *others = [_spelled(piece, rules, marks.keys()) for piece in pieces]
    if isinstance(first, Literal) and len(first.data) > 1:
        first, others = Literal(first.data[:1]), [Literal(first.data[1:]), *others]
    last = max((k for k, piece in enumerate(others) if symbols(piece)), default=-1)
    before = others[: last + 1]
    fewest = sum(symbols(piece) or not expr_nullable(piece, set(GAPS)) for piece in before)
    if all(map(symbols, before)) or fewest < 2 or any(name not in GAPS for x in others for name in references(x)):
        return None
    return sequence(*before), (first, Ref(_BETWEEN), *others[last + 1 :])


def _spelled(expr: Expr, rules: Mapping[str, Expr], kept: Set[str]) -> Expr:
    """An expression without names but those of gaps, and some more: arguments with what leads to them are kept for all
    protocols, whose rules may differ. A rule that recurs keeps its name."""
    if isinstance(expr, Ref) and expr.name not in GAPS and expr.name not in kept:
        return _spelled(rules[expr.name], rules, kept | {expr.name})
    return rebuilt(expr, lambda part: _spelled(part, rules, kept))


def _led(closed: Closed, between: Expr, lead: tuple[Expr, ...]) -> Closed | None:
    """Arguments with what leads to them; None where they recur, as that stands before those of the call alone."""
    kept = closed.kept.setdefault(__name__, [])
    for known, made in kept:
        if known == (between, lead):
            return made
    own, led = closed.grammar, None
    if all(own.start not in references(expr) for expr in own.rules.values()):
        rules = {**own.rules, own.start: sequence(*lead, own.rules[own.start]), _BETWEEN: between}
        grammar = replace(own, rules=rules, groups=own.groups | {own.start, _BETWEEN})
        led = Closed(grammar, (*closed.order, _BETWEEN))
    kept[_MOST_KEPT - 1 :] = []
    kept.append(((between, lead), led))
    return led
