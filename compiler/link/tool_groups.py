"""Group the arguments of several tools into one part, each of which costs more to set up than to make.

Only a spec of many tools is grouped; in a smaller one every tool stays a part that any other spec can take. A group
is a run of tools, and where a run ends their content decides. So where a tool is added, changed or taken away, one
group is another one. The tools behind the last such end are groups of 16, 8, 4, 2 and 1, as far as they go: where tools
are added behind them, most of these are still the same.

Leaves out   making parts (link.py); the units themselves (split.py).
Invariants   what is grouped depends on the units alone, not on what was compiled before. What a group derives are the
             texts of its members, each behind its own number; errors about it name the places of its members.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolc.runtime.format.container import blake

from ..grammar.analysis import leaves
from ..ir import nodes as ir
from ..ir.nodes import Expr, Grammar
from ..schema.report import at
from .call_tails import Opener
from .split import ENTRY_END, START, Entry, Split, Unit, written_number

MANY = 32  # fewer units that could be grouped are not
_FEWEST = 12  # units of a group, but for those at the end
_MOST = 32
_ONE_IN = 16  # a group ends behind such a part of all units
_HEAVIEST = 512  # a unit of more literals, patterns and names is not grouped: it is worth its own setup
_STUB = re.compile(rb"\xff([0-9a-z]+)\xff")


@dataclass(frozen=True)
class Group:
    """Units that are made as one; to others it is a unit, whose entries are those of its members.

    Attributes:
        members: two or more, which do not import each other.
        imports, entries, digest: as of a unit.
    """

    members: tuple[Unit, ...]
    imports: tuple[Entry, ...]
    entries: tuple[tuple[int, Opener], ...]
    digest: bytes

    @staticmethod
    def of(members: tuple[Unit, ...]) -> Group:
        """The group of some units."""
        imports = dict.fromkeys(entry for unit in members for entry in unit.imports)
        entries: list[tuple[int, Opener]] = []
        for unit in members:
            rules = entries[-1][0] + 1 if entries else 0
            entries += ((rules + rule, opener) for rule, opener in unit.entries)
        digest = blake(b"group", *(unit.digest for unit in members))
        return Group(members, tuple(imports), tuple(entries), digest)

    def grammar(self) -> Grammar:
        """As of a unit; the places in it are whole."""
        rules: dict[str, Expr] = {}
        places: dict[str, str] = {}
        marks: dict[str, ir.Mark] = {}
        groups: set[str] = set()
        options: list[Expr] = []
        shared = _Shared()
        for n, unit in enumerate(self.members):
            own = unit.grammar
            stubs = [self.imports.index(entry) for entry in unit.imports]
            names = {rule: f"{n}:{rule}" for rule in (*own.rules, *own.places)} | shared.names(f"{n}:", own, stubs)
            move = _Move(f"{n}:", names, stubs)
            entries = own.rules[own.start]
            for entry in entries.options if isinstance(entries, ir.Choice) else (entries,):
                assert isinstance(entry, ir.Sequence)  # its number, and what is called
                number = ir.Literal(b"%d" % len(options) + ENTRY_END)
                options.append(ir.sequence(number, *map(move.of, entry.items[1:])))
            fresh = [rule for rule in own.rules if rule != own.start and names[rule] not in rules]
            rules |= {names[rule]: move.of(own.rules[rule]) for rule in fresh}
            places = {names[rule]: at(unit.origin, place) for rule, place in own.places.items()} | places
            marks |= {names[rule]: mark for rule, mark in own.marks.items()}
            groups.update(names[rule] for rule in own.groups)
        return Grammar({START: ir.choice(*options), **rules}, START, places, marks=marks, groups=frozenset(groups))


class _Shared:
    """Rules that several units of a group have, such as those of blanks and strings: they are there once."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[Expr, str, list[int]]] = {}  # expression, name in the group, stubs

    def names(self, prefix: str, own: Grammar, stubs: list[int]) -> dict[str, str]:
        """The names in the group of those rules of a unit that are there already."""
        same = {}
        entries = {leaf.name for leaf in leaves(own.rules[own.start]) if isinstance(leaf, ir.Ref)}
        for rule, expr in own.rules.items():
            if rule == own.start or rule in own.marks or rule in entries:
                continue
            found = self._first.get(rule)
            if found is None:
                self._first[rule] = expr, prefix + rule, stubs
            elif found[0] == expr and (found[2] == stubs or not any(map(_holds_stub, leaves(expr)))):
                same[rule] = found[1]
        names = {rule: {x.name for x in leaves(own.rules[rule]) if isinstance(x, ir.Ref)} for rule in same}
        while others := [rule for rule, mentioned in names.items() if not mentioned <= names.keys()]:
            for rule in others:
                del names[rule], same[rule]
        return same


def _holds_stub(expr: Expr) -> bool:
    return isinstance(expr, ir.Literal) and b"\xff" in expr.data


Work = Unit | Group
"""What is made at a time."""


def grouped(whole: Split) -> list[Work]:
    """The units of a grammar, each after those that it imports, some in groups."""
    called = {digest for digest, _ in whole.imports}
    called.difference_update(digest for unit in whole.units for digest, _ in unit.imports)
    some = [unit for unit in whole.units if unit.digest in called and _may_be_grouped(unit)]
    if len(some) < MANY:
        return list(whole.units)
    groups = {run[-1].digest: Group.of(run) for run in _runs(some) if len(run) > 1}
    inside = {member.digest for group in groups.values() for member in group.members}
    out: list[Work] = []
    for unit in whole.units:
        if unit.digest in groups:
            out.append(groups[unit.digest])
        elif unit.digest not in inside:
            out.append(unit)
    return out


def _may_be_grouped(unit: Unit) -> bool:
    return not unit.recurs and unit.weight <= _HEAVIEST


def _runs(units: Sequence[Unit]) -> Iterator[tuple[Unit, ...]]:
    """Cut units into runs where their content says so."""
    run: list[Unit] = []
    for unit in units:
        run.append(unit)
        if len(run) == _MOST or (len(run) >= _FEWEST and unit.digest[0] % _ONE_IN == 0):
            yield tuple(run)
            run = []
    begin = 0
    while begin < len(run):
        end = begin + (1 << (len(run) - begin).bit_length() - 1)
        yield tuple(run[begin:end])
        begin = end


class _Move:
    """Moves expressions of a unit into a group, where its rules and stubs have other names."""

    def __init__(self, prefix: str, names: Mapping[str, str], stubs: Sequence[int]) -> None:
        self._prefix = prefix
        self._names = names
        self._stubs = stubs
        self._moved: dict[int, Expr] = {}

    def of(self, expr: Expr) -> Expr:
        """The same in the group."""
        found = self._moved.get(id(expr))
        if found is None:
            found = self._moved[id(expr)] = self._of(expr)
        return found

    def _of(self, expr: Expr) -> Expr:
        if isinstance(expr, ir.Ref):
            return ir.Ref(self._names[expr.name])
        if isinstance(expr, ir.Literal):
            return ir.Literal(_STUB.sub(self._stub, expr.data)) if b"\xff" in expr.data else expr
        if isinstance(expr, ir.Sequence):  # in normal form before as after
            return ir.Sequence(tuple([self.of(item) for item in expr.items]))
        if isinstance(expr, ir.Choice):
            return ir.Choice(tuple([self.of(option) for option in expr.options]))
        if isinstance(expr, ir.Terminal) and expr.name:
            return ir.Terminal(expr.regex, self._prefix + expr.name)
        return ir.Repeat(self.of(expr.item), expr.low, expr.high) if isinstance(expr, ir.Repeat) else expr

    def _stub(self, found: re.Match[bytes]) -> bytes:
        return b"\xff%b\xff" % written_number(self._stubs[int(found[1], 36)])
