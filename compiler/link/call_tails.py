"""Choose the part of a tool's call whose arguments have no brackets of their own: the *tail* of the call.

A tail is what stands behind the name, up to the last delimiter of the call:

    <function=NAME>\\n<parameter=KEY>\\nVALUE\\n</parameter>\\n</function>         from the > to the last >
    NAME(KEY=VALUE)                                                       from the ( to the )

It is a rule of its own here, and one that is called (ir/nodes.py, ``groups``): its first symbol, of which there may
be a few, pushes, its last one pops. So a call of one symbol alone stays where it is.

Leaves out   whether a tail can be told from what stands beside it: the automata do (stubs.py, part.py).
Invariants   the grammar derives the same texts, and marks them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .. import regex as rx
from ..grammar.analysis import expr_nullable, references
from ..ir.nodes import (
    NOTHING,
    Choice,
    Expr,
    Grammar,
    Literal,
    Mark,
    Ref,
    Repeat,
    Sequence,
    Special,
    Terminal,
    choice,
    sequence,
)
from ..pushdown.nodes import CLOSER, OPENER, split_literal

Opener = bytes | str
"""A symbol that a part begins with: a byte, or a special token by its name."""
_INSIDE = ("arguments", "key", "value", "string")


def with_tails(grammar: Grammar, bracketed: Iterable[str] = ()) -> tuple[Grammar, dict[str, tuple[Opener, ...]]]:
    """The grammar in which tails are rules, and what each of these begins with.

    Args:
        bracketed: rules of arguments that are parts as they are.
    """
    return _Tails(grammar, set(bracketed)).found()


class _Unknown(Exception):
    """A tail begins with something else than a few symbols, or nothing but blanks and the like is left of it."""


class _Tails:
    def __init__(self, grammar: Grammar, bracketed: set[str]) -> None:
        self.grammar = grammar
        self.bracketed = bracketed
        self.rules = dict(grammar.rules)
        self.marks = dict(grammar.marks)
        self.places = dict(grammar.places)
        self.groups = set(grammar.groups)
        self.openers: dict[str, tuple[Opener, ...]] = {}
        self._nullable: dict[str, bool] = {}
        self._filled: dict[str, Expr] = {}
        self._to_fill: list[tuple[str, str]] = []

    def found(self) -> tuple[Grammar, dict[str, tuple[Opener, ...]]]:
        for rule, mark in self.grammar.marks.items():
            if mark.kind == "tool" and rule in self.rules:
                self._cut(rule)
        made = replace(
            self.grammar, rules=self.rules, marks=self.marks, places=self.places, groups=frozenset(self.groups)
        )
        return made, self.openers

    def _cut(self, rule: str) -> None:
        """Make the tail of a tool's call a rule, where it has one."""
        place = named(self.grammar.rules, rule)
        if place in self.grammar.apart:
            return  # arguments in brackets and nothing else
        expr = self.rules[place]
        items = expr.items if isinstance(expr, Sequence) else (expr,)
        name, arguments = marked(items, self.marks, "name"), marked(items, self.marks, "arguments")
        if not 0 <= name < arguments or named(self.rules, items[arguments].name) in self.bracketed:  # type: ignore[union-attr]
            return
        before = written_out(items[name + 1 : arguments], self.rules, self.marks)
        after = written_out(items[arguments + 1 :], self.rules, self.marks)
        opens, closes = _unmatched(before[::-1], OPENER, CLOSER), _unmatched(after, CLOSER, OPENER)
        single: tuple[Expr, ...] = ()
        if opens >= 0 or closes >= 0:
            if min(opens, closes) < 0 or CLOSER[byte_of(before[-1 - opens])] != byte_of(after[closes]):
                return
            first, last = len(before) - 1 - opens, closes
        else:
            first, last = 0, max((k for k, piece in enumerate(after) if symbols(piece)), default=-1)
            if last < 0 or byte_of(after[last]) in {*CLOSER, *OPENER}:
                return
        body = [*before[first:], items[arguments], *after[:last]]
        tail = f"{rule}#tail"
        while tail in self.rules:
            tail += "#"
        try:
            if opens < 0 and symbols(after[last]) == 1 and all(map(self._empty, body)):
                single = (after[last],)
                body = [self._filled_rules(sequence(*body))]
            text = sequence(*body, after[last])
            openers = dict.fromkeys(self._first(text))
        except _Unknown:
            return
        if not openers or not self._may_be_part(text):  # none: it is one symbol alone
            return
        self.openers[tail] = tuple(openers)
        self.rules[tail] = text
        if opens < 0:
            self.groups.add(tail)
        where = self.grammar.places.get(named(self.rules, items[arguments].name))  # type: ignore[union-attr]
        if where is not None:
            self.places[tail] = where
        self.rules[place] = sequence(
            *items[: name + 1], *before[:first], choice(Ref(tail), *single), *after[last + 1 :]
        )

    def _may_be_part(self, text: Expr) -> bool:
        """Whether nothing but arguments is marked inside."""
        seen = dict.fromkeys(references(text))
        todo = list(seen)
        while todo:
            rule = todo.pop()
            if rule in self.marks and self.marks[rule].kind not in _INSIDE:
                return False
            if rule in self.grammar.apart:
                continue
            more = [other for other in references(self.rules[rule]) if other not in seen]
            seen.update(dict.fromkeys(more))
            todo += more
        return True

    def _empty(self, expr: Expr) -> bool:
        """Whether an expression derives the empty text.

        Of rules that recur without a bracket this may miss some; then the automata find that a part does not stand
        apart.
        """
        todo = [rule for rule in references(expr) if rule not in self._nullable]
        while todo:
            rule = todo[-1]
            inner = references(self.rules[rule]) if rule in self.rules else []
            if rule not in self._nullable:
                self._nullable[rule] = False  # where it recurs
                todo += [other for other in reversed(inner) if other not in self._nullable]
            else:  # those in it are known
                todo.pop()
                empty = {other for other in inner if self._nullable[other]}
                self._nullable[rule] = rule in self.rules and expr_nullable(self.rules[rule], empty)
        return expr_nullable(expr, {rule for rule in references(expr) if self._nullable[rule]})

    def _first(self, expr: Expr) -> list[Opener]:
        """The symbols that the texts of an expression begin with; some may be there twice."""
        found: list[Opener] = []
        seen: set[str] = set()
        todo = [expr]
        while todo:
            one = todo.pop()
            if isinstance(one, Literal):
                found.append(one.data[:1])
            elif isinstance(one, Special):
                found.append(one.name)
            elif isinstance(one, Terminal):
                text = rx.literal_text(one.regex)
                if not text:
                    raise _Unknown
                found.append(text.encode()[:1])
            elif isinstance(one, Ref):
                if one.name in self.grammar.apart:
                    raise _Unknown
                if one.name not in seen:
                    seen.add(one.name)
                    todo.append(self.rules[one.name])
            elif isinstance(one, Repeat):
                todo.append(one.item)
            elif isinstance(one, Choice):
                todo += one.options[::-1]
            else:
                assert isinstance(one, Sequence)
                filled = next((n for n, part in enumerate(one.items, 1) if not self._empty(part)), len(one.items))
                todo += one.items[:filled][::-1]
        return found

    def _filled_rules(self, expr: Expr) -> Expr:
        """The same without the empty text, and so the rules that it then refers to."""
        found = self._not_empty(expr)
        while self._to_fill:
            rule, source = one = self._to_fill[-1]
            self.rules[rule] = self._not_empty(self.rules[source])
            self._to_fill.remove(one)  # those that cannot be filled stay, and whoever asks for them is refused again
        return found

    def _not_empty(self, expr: Expr) -> Expr:
        """The same without the empty text, where rules are still to be filled in."""
        if not self._empty(expr):
            return expr
        if isinstance(expr, Ref):
            made = self._filled.get(expr.name)
            if made is None:
                rule = f"{expr.name}#"
                while rule in self.rules:
                    rule += "#"
                made = self._filled[expr.name] = Ref(rule)
                self.rules[rule] = NOTHING  # a rule that recurs has its texts by other ways
                self._nullable[rule] = False
                self._to_fill.append((rule, expr.name))
                for table in (self.marks, self.places):
                    if expr.name in table:
                        table[rule] = table[expr.name]  # type: ignore[assignment]
            return made
        if isinstance(expr, Choice):
            return choice(*(self._not_empty(option) for option in expr.options))
        if isinstance(expr, Repeat):
            return Repeat(self._not_empty(expr.item), max(1, expr.low), expr.high)
        if isinstance(expr, Sequence):
            options: list[Expr] = []
            rest: Expr = Sequence(())
            for item in reversed(expr.items):
                some = self._not_empty(item)
                options.insert(0, sequence(some, rest))
                rest = sequence(item, rest)
            return choice(*options)
        raise _Unknown  # a terminal


def named(rules: dict[str, Expr], rule: str) -> str:
    """The rule that a rule only names."""
    seen = {rule}
    while isinstance(expr := rules.get(rule), Ref) and expr.name not in seen:
        rule = expr.name
        seen.add(rule)
    return rule


def marked(items: tuple[Expr, ...], marks: Mapping[str, Mark], kind: str) -> int:
    """The place of the one item that is marked so, or -1."""
    found = -1
    for k, item in enumerate(items):
        if type(item) is Ref and (mark := marks.get(item.name)) is not None and mark.kind == kind:
            if found >= 0:
                return -1
            found = k
    return found


def written_out(
    items: Iterable[Expr],
    rules: Mapping[str, Expr],
    marks: Mapping[str, Mark],
    inside: frozenset[str] = frozenset(),
) -> list[Expr]:
    """Delimiters and what stands between them: literals cut at their brackets, templates written out."""
    out: list[Expr] = []
    for item in items:
        if isinstance(item, Literal):
            out += map(Literal, split_literal(item.data))
        elif isinstance(item, Sequence):
            out += written_out(item.items, rules, marks, inside)
        elif (
            isinstance(item, Ref)
            and item.name not in marks
            and item.name not in inside
            and isinstance(expr := rules.get(item.name), (Literal, Sequence, Special, Terminal))
        ):
            out += written_out([expr], rules, marks, inside | {item.name})
        else:
            out.append(item)
    return out


def byte_of(piece: Expr) -> int:
    """The byte of a literal of one byte, or -1."""
    return piece.data[0] if isinstance(piece, Literal) and len(piece.data) == 1 else -1


def _unmatched(pieces: list[Expr], ends: dict[int, int], begins: dict[int, int]) -> int:
    """The place of the first bracket of one kind before which none of the other kind waits for it, or -1."""
    depth = 0
    for k, piece in enumerate(pieces):
        byte = byte_of(piece)
        if byte in begins:
            if depth == 0:
                return k
            depth -= 1
        elif byte in ends:
            depth += 1
    return -1


def symbols(piece: Expr) -> int:
    """How many symbols a delimiter has; 0 for anything else."""
    if isinstance(piece, Literal):
        return len(piece.data)
    if isinstance(piece, Terminal):
        return len((rx.literal_text(piece.regex) or "").encode())
    return int(isinstance(piece, Special))
