"""Which rules of a grammar are parts of their own, and the grammar of each: calls of other parts become stubs.

A part is what one bracketed rule derives, or several that recur through each other: the arguments of a tool, the object
and the array of any JSON. Where no arguments stand apart, as in a bare schema, only what many grammars have is one.
Whether the brackets really set it apart the automata tell (stubs.py); here it is guessed.

A stub is ``{ ff number ff }``: the byte 255 is in no text.

Leaves out   compiling (part.py).
Invariants   the digest of a part covers all that its tables depend on and neither names nor the rest of the grammar.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ..grammar.analysis import references, strong_components
from ..grammar.ir import Choice, Expr, Grammar, Literal, Ref, Repeat, Sequence, Special, Terminal, choice, sequence
from ..regex import Regex

STUB = 255  # the byte around a stub's number
_CLOSER = {b"{": b"}", b"[": b"]"}
OPENERS = b"".join(_CLOSER)
_START = "start"
_SEPARATOR = b";"
_MOST_KEPT = 1 << 14  # regular expressions of which the digest is kept: those of one grammar are in the next, too

Entry = tuple[int, int]  # unit, which of its rules


@dataclass(frozen=True)
class Unit:
    """A part of a grammar.

    Attributes:
        grammar: of the part alone; its text is the number of an entry, a semicolon, and the text of that rule.
        imports: what stub n stands for: (unit, entry).
        entries: how many rules others can call.
        alone: gives the grammar of the part without stubs.
        digest: of its content and of what it imports.
    """

    grammar: Grammar
    imports: tuple[Entry, ...]
    entries: int
    alone: Callable[[], Grammar]
    digest: bytes


@dataclass(frozen=True)
class Split:
    """A grammar cut up: ``main`` with its ``imports``, and the units, each after those that it imports.

    Attributes:
        tools: some units are the arguments of tools.
    """

    main: Grammar
    imports: tuple[Entry, ...]
    units: tuple[Unit, ...]
    tools: bool


def split(grammar: Grammar, common: Iterable[str] = ()) -> Split | None:
    """Cut a grammar up; None where there is nothing to cut.

    Args:
        common: rules that many grammars have.
    """
    return _Splitter(grammar).split(set(common))


def stub(opener: bytes, number: int) -> Literal:
    """The text that stands for a part."""
    return Literal(opener + b"\xff%d\xff" % number + _CLOSER[opener])


class _Splitter:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.refs = {rule: list(dict.fromkeys(references(expr))) for rule, expr in grammar.rules.items()}
        self.member: dict[str, tuple[str, ...]] = {}  # rule of a part → all rules of it that can be called
        self.units: list[Unit] = []
        self.unit_of: dict[tuple[str, ...], int] = {}
        self.digests = _Digests(grammar)
        self.place = {rule: n for n, rule in enumerate(grammar.rules)}

    def split(self, common: set[str]) -> Split | None:
        marks = self.grammar.marks
        if not common and not any(mark.kind == "arguments" for mark in marks.values()):
            return None
        recurs: set[str] = set()  # rules in brackets
        for part in strong_components(self.refs):
            entries = tuple(sorted((r for r in part if self._bracketed(r)), key=self.place.__getitem__))
            if entries and (len(part) > 1 or part[0] in self.refs[part[0]]):
                self.member.update(dict.fromkeys(entries, entries))
                recurs.update(entries)
        for rule, mark in marks.items():
            if mark.kind == "arguments" and rule in self.grammar.rules:
                target = self._named(rule)
                if self._bracketed(target):
                    self.member.setdefault(target, (target,))
        for rule, entries in list(self.member.items()):
            if not self._reached([rule], {}).isdisjoint(marks):
                for entry in entries:
                    self.member.pop(entry, None)
        tools = any(self._named(rule) in self.member for rule, mark in marks.items() if mark.kind == "arguments")
        if not tools:
            # Any other part would be made for this grammar alone.
            if not recurs <= common:
                return None  # the main part would recur
            self.member = {rule: entries for rule, entries in self.member.items() if common.issuperset(entries)}
        if not self.member:
            return None
        main, imports = self._cut([self.grammar.start, *self.grammar.entries.values()], ())
        if not imports:
            return None
        return Split(replace(self.grammar, rules=main), imports, tuple(self.units), tools)

    def _named(self, rule: str) -> str:
        """The rule that a rule only names."""
        seen = {rule}
        while isinstance(expr := self.grammar.rules[rule], Ref) and expr.name not in seen:
            rule = expr.name
            seen.add(rule)
        return rule

    def _bracketed(self, rule: str) -> bool:
        """Whether a rule looks like one group in brackets, of which the last closes the first."""
        expr = self.grammar.rules[rule]
        items = expr.items if isinstance(expr, Sequence) else (expr,)
        first, last = items[0] if items else expr, items[-1] if items else expr
        if not isinstance(first, Literal) or not isinstance(last, Literal):
            return False
        closer = _CLOSER.get(first.data[:1])
        return closer is not None and last.data[-1:] == closer and (len(items) > 1 or len(first.data) > 1)

    def _reached(self, roots: Iterable[str], opaque: Mapping[str, object]) -> set[str]:
        """Rules that others reach, not looking into some."""
        seen = set(roots)
        todo = list(seen)
        while todo:
            for name in self.refs[todo.pop()]:
                if name not in seen:
                    seen.add(name)
                    if name not in opaque:
                        todo.append(name)
        return seen

    def _cut(
        self, roots: list[str], own: tuple[str, ...], alone: bool = False
    ) -> tuple[dict[str, Expr], tuple[Entry, ...]]:
        """The rules that some rules need, where those of other parts are stubs unless ``alone``, and what the stubs
        stand for."""
        recursive = bool(own) and (len(own) > 1 or own[0] in self._reached(self.refs[own[0]], {}))
        opaque = (
            {} if alone or recursive else {rule: entries for rule, entries in self.member.items() if rule not in own}
        )
        kept = self._reached(roots, opaque)
        rules: dict[str, Expr] = {}
        imports: list[Entry] = []
        for rule in sorted(kept, key=self.place.__getitem__):
            expr = self.grammar.rules[rule]
            if rule in opaque:
                entries = opaque[rule]
                first = expr.items[0] if isinstance(expr, Sequence) else expr
                assert isinstance(first, Literal)
                rules[rule] = stub(first.data[:1], len(imports))
                imports.append((self._unit(entries), entries.index(rule)))
            else:
                rules[rule] = expr
        return rules, tuple(imports)

    def _unit(self, entries: tuple[str, ...]) -> int:
        number = self.unit_of.get(entries)
        if number is not None:
            return number
        rules, imports = self._cut(list(entries), entries)
        whole = self._whole(rules, entries)
        digest = self.digests.of(whole.start, whole.rules, [self.units[u].digest + b"%d" % k for u, k in imports])
        for known, unit in enumerate(self.units):  # the same under other names
            if unit.digest == digest:
                self.unit_of[entries] = known
                return known

        def alone() -> Grammar:
            return self._whole(self._cut(list(entries), entries, alone=True)[0], entries)

        self.units.append(Unit(whole, imports, len(entries), alone, digest))
        self.unit_of[entries] = len(self.units) - 1
        return len(self.units) - 1

    def _whole(self, rules: dict[str, Expr], entries: tuple[str, ...]) -> Grammar:
        """The grammar of a part."""
        options = [sequence(Literal(b"%d" % k + _SEPARATOR), Ref(rule)) for k, rule in enumerate(entries)]
        name = _START
        while name in rules:
            name += "#"
        places = {rule: self.grammar.places[rule] for rule in rules if rule in self.grammar.places}
        return Grammar({name: choice(*options), **rules}, start=name, places=places)


@lru_cache(_MOST_KEPT)
def _said_regex(regex: Regex) -> bytes:
    return b"t" + hashlib.blake2b(repr(regex).encode(), digest_size=16).digest()


class _Digests:
    """Digests of grammars by content: rules are called by the order in which they are met."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.known: dict[int, bytes] = {}  # of terminals, by identity: the grammar keeps them alive

    def of(self, start: str, rules: dict[str, Expr], imports: list[bytes]) -> bytes:
        order, todo = {start: 0}, [start]
        said: list[bytes] = []
        for rule in todo:
            self._say(rules[rule], said, order, todo)
            said.append(b"\n")
        return hashlib.blake2b(b"".join([*said, b"\n", b"\n".join(imports)]), digest_size=16).digest()

    def _say(self, expr: Expr, said: list[bytes], order: dict[str, int], todo: list[str]) -> None:
        """Append what an expression is, and to ``order`` and ``todo`` the rules that it is the first to name."""
        if isinstance(expr, Literal):
            said.append(b"l%d:%b" % (len(expr.data), expr.data))
        elif isinstance(expr, Ref):
            number = order.setdefault(expr.name, len(order))
            if number == len(todo):
                todo.append(expr.name)
            said.append(b"r%d" % number)
        elif isinstance(expr, Terminal):
            known = self.known.get(id(expr))
            if known is None:
                known = self.known[id(expr)] = _said_regex(expr.regex)
            said.append(known)
        elif isinstance(expr, (Sequence, Choice)):
            kind, parts = (b"s(", expr.items) if isinstance(expr, Sequence) else (b"c(", expr.options)
            said.append(kind)
            for part in parts:
                self._say(part, said, order, todo)
                said.append(b",")
            said.append(b")")
        elif isinstance(expr, Repeat):
            said.append(b"n%d:%d(" % (expr.low, -1 if expr.high is None else expr.high))
            self._say(expr.item, said, order, todo)
            said.append(b")")
        else:
            assert isinstance(expr, Special)
            said.append(b"x" + repr((expr.name, expr.otherwise)).encode())
