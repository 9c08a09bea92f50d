"""Split a grammar: which rules are parts of their own, and the grammar of each; calls of other parts become stubs.

A part is what one bracketed rule derives, or several that recur through each other: the arguments of a tool, the object
and the array of any JSON. Where arguments have no brackets, the tail of the tool's call is one (call_tails.py). Where
no arguments stand apart, as in a bare schema, only what many grammars have is one.
Whether the brackets really set it apart the automata tell (stubs.py); here it is guessed.

A stub is ``{ ff number ff }``: the byte 255 is in no text, nor does a token go on behind it. A tail has a stub for each
symbol that it begins with, which stands in the place of the first bracket; the last bracket is left out.

Leaves out   compiling (part.py).
Invariants   the digest of a part covers all that its tables depend on and neither names nor the rest of the grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

from ..budget import look
from ..grammar.analysis import leaves, references, strong_components
from ..grammar.cached_reader import inlined
from ..ir.nodes import Expr, Grammar, Literal, Mark, Ref, Sequence, Special, Terminal, choice, free_name, sequence
from ..passes import Pass
from .bracketed_options import references_of, with_bracketed_options
from .call_tails import Opener, named, with_tails
from .canonical import add_signatures, merged
from .definitions import definitions
from .digests import digest_of
from .large_strings import QUOTE, with_large_strings

STUB = 255  # the byte around a stub's number
DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"  # of these numbers
_CLOSER = {b"{": b"}", b"[": b"]", b"(": b")"}
START = "start"
ENTRY_END = b";"  # between the number of an entry and its text
_STUB = re.compile(rb"\xff([0-9a-z]+)\xff")

Entry = tuple[bytes, int]  # digest of a unit, which of its entries


@dataclass(frozen=True)
class Unit:
    """A part of a grammar.

    Attributes:
        grammar: of the part alone; its text is the number of an entry, a semicolon, and the text of that rule.
        imports: what stub n stands for: (digest of a unit, entry).
        entries: what others can call: (number of a rule, symbol that it begins with).
        alone: gives the grammar of the part without stubs.
        digest: of its content and of what it imports.
        recurs: it calls itself.
        origin: where the places of its grammar begin (../grammar/cached_reader.py).
    """

    grammar: Grammar
    imports: tuple[Entry, ...]
    entries: tuple[tuple[int, Opener], ...]
    alone: Callable[[], Grammar]
    digest: bytes
    recurs: bool
    origin: str = ""

    @cached_property
    def weight(self) -> int:
        """How many literals, patterns and names its rules are made of."""
        return sum(len(leaves(expr)) for expr in self.grammar.rules.values())


@dataclass(frozen=True)
class Split:
    """A grammar cut up: ``main`` with its ``imports``, and the units, each after those that it imports.

    Attributes:
        tools: some units are the arguments of tools.
        tails: some units are tails of calls (call_tails.py).
        specials: names of the special tokens of the whole grammar, in the order of their symbols in all parts.
    """

    main: Grammar
    imports: tuple[Entry, ...]
    units: tuple[Unit, ...]
    tools: bool
    tails: bool
    specials: tuple[str, ...]


def split(grammar: Grammar, common: Iterable[str] = ()) -> Split | None:
    """Cut a grammar up; None where there is nothing to cut.

    Args:
        common: rules that many grammars have.
    """
    grammar = inlined(grammar, lambda closed: not _bracketed(closed.grammar))
    read = (leaf for expr in grammar.rules.values() for leaf in leaves(expr))
    specials = sorted({leaf.name for leaf in read if isinstance(leaf, Special) and leaf.otherwise != "member"})
    if any(mark.kind == "arguments" for mark in grammar.marks.values()):  # else there are no definitions
        grammar = _with_bracketed_options(grammar)
    bracketed = _arguments(grammar)
    grammar, tails = with_tails(grammar, bracketed) if Pass.CALL_TAILS.on else (grammar, {})
    return _Splitter(grammar, tails).split(set(common), bracketed, tuple(specials))


def _arguments(grammar: Grammar) -> list[str]:
    """The rules of arguments that are in brackets."""
    marked = [named(grammar.rules, rule) for rule, mark in grammar.marks.items() if mark.kind == "arguments"]
    return [rule for rule in marked if rule in grammar.apart or (rule in grammar.rules and _bracketed(grammar, rule))]


def stub(opener: Opener, number: int, closed: bool) -> Expr:
    """The text that stands for a part; ``closed``: it is in brackets."""
    text = b"\xff%b\xff" % written_number(number)
    if isinstance(opener, str):
        return sequence(Special(opener), Literal(text))
    return Literal(opener + text + (_CLOSER[opener] if closed else b""))


def stubs_in(rules: Mapping[str, Expr], rule: str) -> list[int]:
    """The numbers of the stubs that a rule needs."""
    seen, found = [rule], []
    for name in seen:
        for leaf in leaves(rules[name]):
            if isinstance(leaf, Ref) and leaf.name in rules and leaf.name not in seen:
                seen.append(leaf.name)
            elif isinstance(leaf, Literal):
                found += [int(digits, len(DIGITS)) for digits in _STUB.findall(leaf.data)]
    return found


def written_number(number: int) -> bytes:
    """A stub's number in few symbols: each is a state."""
    rest, digit = divmod(number, len(DIGITS))
    return (written_number(rest) if rest else b"") + DIGITS[digit : digit + 1]


class _Splitter:
    def __init__(self, grammar: Grammar, tails: Mapping[str, tuple[Opener, ...]]) -> None:
        self.given = grammar
        self.grammar, self.strings = (
            with_large_strings(grammar) if Pass.LARGE_STRINGS.on else (grammar, frozenset[str]())
        )
        grammar = self.grammar
        self.tails = tails
        self.apart = grammar.apart
        self.refs = references_of(grammar)
        self.member: dict[str, tuple[str, ...]] = {}  # rule of a part → all rules of it that can be called
        self.units: dict[bytes, Unit] = {}
        self.unit_of: dict[tuple[str, ...], bytes] = {}
        self.place = {rule: n for n, rule in enumerate(_order(grammar))}
        self.circular: set[str] = set()  # rules that reach themselves
        self.same: dict[str, str] = {}  # rule that recurs → the one that stands for it
        self.signature: dict[str, bytes] = {}  # of the rules that parts of several entries need (canonical.py)

    def split(self, common: set[str], arguments: Iterable[str], specials: tuple[str, ...]) -> Split | None:
        """See `split`.

        Args:
            arguments: rules of arguments that are in brackets.
            specials: see `Split`.
        """
        marks = self.grammar.marks
        if not common and not any(mark.kind == "arguments" for mark in marks.values()):
            return None
        recurs = self._recurring()
        for rule in arguments:
            if rule not in self.apart:
                self.member.setdefault(rule, (rule,))
        marked = self._leading_to(marks)
        roots = [self.grammar.start, *self.grammar.entries.values()]
        for rule, entries in list(self.member.items()):
            if rule in marked:
                for entry in entries:
                    self.member.pop(entry, None)
        self.member.update({rule: (rule,) for rule in self.tails})
        tools = bool(self.tails) or any(rule in self.member or rule in self.apart for rule in arguments)
        if not tools:
            # Any other part would be made for this grammar alone.
            if not recurs <= common:
                return None  # the main part would recur
            self.member = {rule: entries for rule, entries in self.member.items() if common.issuperset(entries)}
        else:
            self._add_definitions(self._reached(roots, self.member))
        if not self.member and not self.apart:
            return None
        main, imports = self._cut(roots, ())
        if not imports:
            return None
        return Split(replace(main, apart={}), imports, tuple(self.units.values()), tools, bool(self.tails), specials)

    def closed(self) -> tuple[tuple[Unit, ...], Entry]:
        """The units of a grammar that is a part with all that it needs, and how others call it."""
        start = self.grammar.start
        self._recurring()
        self._add_definitions({start})
        entries = self.member.setdefault(start, (start,))
        digest = self._unit(entries)
        return tuple(self.units.values()), (digest, entries.index(self.same.get(start, start)))

    @cached_property
    def _number(self) -> dict[str, int]:
        """Rule → its place in the grammar as it was given, which is not that in `place`."""
        return {rule: n for n, rule in enumerate(self.grammar.rules)}

    def _recurring(self) -> set[str]:
        """Rules in brackets that recur, which are parts."""
        recurs: set[str] = set()
        components = strong_components(self.refs)
        for part in components:
            if len(part) > 1 or part[0] in self.refs[part[0]]:
                self.circular.update(part)
                inside = [rule for rule in part if _bracketed(self.grammar, rule)]
                self.member.update(dict.fromkeys(inside, self._ordered(inside, components)))
                recurs.update(inside)
        return recurs

    def _ordered(self, inside: list[str], components: list[list[str]]) -> tuple[str, ...]:
        """Rules that recur through each other, but one for those that derive the same, in an order that does not depend
        on where they stand."""
        inside.sort(key=self.place.__getitem__)
        if len(inside) < 2:
            return tuple(inside)
        reached = self._reached(inside, {}) & self.grammar.rules.keys() - self.signature.keys()
        add_signatures(self.signature, self.grammar, [part for part in components if part[0] in reached])
        first: dict[bytes, str] = {}
        self.same.update({rule: first.setdefault(self.signature[rule], rule) for rule in inside})
        return tuple(first[signature] for signature in sorted(first))

    def _add_definitions(self, but: set[str]) -> None:
        """Make definitions parts; ``but``: rules that are no parts."""
        if Pass.DEFINITIONS.on:
            bracketed = partial(_bracketed, self.grammar)
            but = but | self.member.keys() | self.circular
            found = definitions(self.grammar, self.refs, bracketed, but, self.strings)
            self.member.update({rule: (rule,) for rule in found})

    def _openers(self, rule: str) -> tuple[Opener, ...]:
        """The symbols that a rule of a part begins with."""
        expr = self.grammar.rules[rule]
        if isinstance(expr, Terminal):  # a large string with its quotes
            return (QUOTE,)
        return self.tails[rule] if rule in self.tails else (_opener(expr),)

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

    def _leading_to(self, rules: Iterable[str]) -> set[str]:
        """Rules, and those that reach them."""
        back: dict[str, list[str]] = {}
        for rule, others in self.refs.items():
            for other in others:
                back.setdefault(other, []).append(rule)
        seen = set(rules)
        todo = list(seen)
        while todo:
            more = [rule for rule in back.get(todo.pop(), ()) if rule not in seen]
            seen.update(more)
            todo += more
        return seen

    def _recurs(self, own: tuple[str, ...]) -> bool:
        """Whether the rules of a part call each other, or itself."""
        return len(own) > 1 or (len(own) == 1 and own[0] in self.circular)

    def _cut(self, roots: list[str], own: tuple[str, ...], alone: bool = False) -> tuple[Grammar, tuple[Entry, ...]]:
        """The rules that some rules need, where those of other parts are stubs unless ``alone``, and what the stubs
        stand for."""
        look()
        opaque = (
            {}
            if alone or self._recurs(own)
            else {rule: entries for rule, entries in self.member.items() if rule not in own}
        )
        kept = self._reached(roots, opaque)
        rules: dict[str, Expr] = {}
        groups: list[str] = []
        imports: dict[Entry, int] = {}
        for rule in sorted(kept, key=self.place.__getitem__):
            grouped = rule in self.grammar.groups and (rule not in self.strings or rule in opaque or rule in own)
            if rule in self.apart:
                closed = self.apart[rule][0].grammar
                number = imports.setdefault(self._apart(rule), len(imports))
                rules[rule] = stub(_opener(closed.rules[closed.start]), number, closed=True)
            elif rule not in opaque:
                rules[rule] = self.grammar.rules[rule]
                groups += [rule] * grouped
            else:
                entries, openers = opaque[rule], self._openers(rule)
                digest = self._unit(entries)
                called = self.units[digest].entries
                names = [f"{rule}#stub{n}" for n in range(len(openers))]
                for name, opener in zip(names, openers, strict=True):
                    entry = digest, called.index((entries.index(self.same.get(rule, rule)), opener))
                    rules[name] = stub(opener, imports.setdefault(entry, len(imports)), not grouped)
                groups += names * grouped
                rules[rule] = choice(*map(Ref, names))
        return replace(self.grammar, rules=rules, groups=frozenset(groups)), tuple(imports)

    def _apart(self, rule: str) -> Entry:
        """A unit of what stands apart; it is the same in all grammars."""
        closed, origin = self.apart[rule]
        kept = f"{__name__} {Pass.DEFINITIONS.on} {Pass.LARGE_STRINGS.on}"
        known = closed.kept.get(kept)
        if known is None:
            own = closed.grammar.rules
            others = {name for expr in own.values() for name in references(expr) if name not in own}
            rest = self._reached(others, {})
            behind = sorted(rest & self._number.keys(), key=self._number.__getitem__)
            order = dict.fromkeys([*closed.order, *behind])
            rules = {
                name: own[name] if name in own else self.grammar.rules[name]
                for name in order
                if name in own or name in rest
            }
            known = *_Splitter(_with_bracketed_options(replace(closed.grammar, rules=rules)), {}).closed(), ""
        units, entry, where = known
        if where != origin:  # where it stood before it mostly stands again
            units = tuple([replace(unit, origin=origin) for unit in units])
        closed.kept[kept] = units, entry, origin
        for unit in units:
            self.units.setdefault(unit.digest, unit)
        return entry

    def _unit(self, entries: tuple[str, ...]) -> bytes:
        digest = self.unit_of.get(entries)
        if digest is None:
            cut, imports = self._cut(list(entries), entries)
            if self.same.keys() & entries:
                cut = merged(cut, entries, self.signature)
            called = tuple((n, opener) for n, rule in enumerate(entries) for opener in self._openers(rule))
            whole = _whole(cut, entries, called)
            below = [unit + b"%d" % entry for unit, entry in imports]
            digest = digest_of(whole, [repr(called).encode(), *below])
            if digest not in self.units:  # else the same under other names
                alone = partial(_alone, self.given, dict(self.tails), entries, called)
                self.units[digest] = Unit(whole, imports, called, alone, digest, self._recurs(entries))
            self.unit_of[entries] = digest
        return digest


def _with_bracketed_options(grammar: Grammar) -> Grammar:
    """The grammar in which large alternatives are rules, unless definitions are switched off."""
    return with_bracketed_options(grammar, _in_brackets) if Pass.DEFINITIONS.on else grammar


def _order(grammar: Grammar) -> Iterable[str]:
    """All rules; what is apart, and after it what it is the first to need, after all that nothing apart needs."""
    needed = {rule for closed, _ in grammar.apart.values() for rule in closed.order}
    order = [rule for rule in grammar.rules if rule not in needed]
    for root, (closed, _) in grammar.apart.items():
        order.append(root)
        order += (rule for rule in closed.order if rule in grammar.rules)
    return dict.fromkeys(order)


def _bracketed(grammar: Grammar, rule: str = "") -> bool:
    """Whether a rule, by default the start rule, looks like one group in brackets."""
    return _in_brackets(grammar.rules[rule or grammar.start])


def _in_brackets(expr: Expr) -> bool:
    """Whether an expression looks like one group in brackets, of which the last closes the first."""
    items = expr.items if isinstance(expr, Sequence) else (expr,)
    first, last = items[0] if items else expr, items[-1] if items else expr
    if not isinstance(first, Literal) or not isinstance(last, Literal):
        return False
    closer = _CLOSER.get(first.data[:1])
    return closer is not None and last.data[-1:] == closer and (len(items) > 1 or len(first.data) > 1)


def _opener(expr: Expr) -> Opener:
    """The bracket that a bracketed rule begins with, or the first symbol of what leads to it."""
    first = expr.items[0] if isinstance(expr, Sequence) else expr
    if isinstance(first, Special):
        return first.name
    assert isinstance(first, Literal)
    return first.data[:1]


def _whole(cut: Grammar, entries: tuple[str, ...], called: tuple[tuple[int, Opener], ...]) -> Grammar:
    """The grammar of a part that has the rules of another grammar."""
    rules = cut.rules
    options = [sequence(Literal(b"%d" % k + ENTRY_END), Ref(entries[n])) for k, (n, _) in enumerate(called)]
    name = free_name(START, rules)
    named = [*rules, *(leaf.name for expr in rules.values() for leaf in leaves(expr) if isinstance(leaf, Terminal))]
    places = {one: cut.places[one] for one in named if one in cut.places}
    marks = {rule: Mark(cut.marks[rule].kind) for rule in rules if rule in cut.marks}
    return Grammar({name: choice(*options), **rules}, name, places, marks=marks, groups=cut.groups)


def _alone(
    grammar: Grammar, tails: Mapping[str, tuple[Opener, ...]], entries: tuple[str, ...],
    called: tuple[tuple[int, Opener], ...],
) -> Grammar:  # fmt: skip
    """The same without stubs."""
    return _whole(_Splitter(grammar, tails)._cut(list(entries), entries, alone=True)[0], entries, called)
