"""Multiply out the formula of a conj for one JSON type, as far as alternatives differ.

Leaves out   the shape of an alternative (shapes.py), what its atoms say about further parts (implied.py).
Invariants   the alternatives together are the conj, in the order in which it is written, each with its atoms in that
             order. What is plainly said comes first, then the union with the fewest alternatives that are still open:
             one that the atoms rule out is not followed, and a union of which one is granted is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

from ..budget import Budget
from ..errors import BudgetError
from .atoms import (
    ANY,
    NEVER,
    All,
    Atom,
    Conj,
    Formula,
    Literal,
    Matches,
    Members,
    OneOf,
    Required,
    Some,
    Values,
    absent,
)
from .formulas import types_of
from .implied import Known
from .negation import negate
from .nodes import Node
from .operands import Constant
from .patterns import parse
from .values import kind_of

MAX_BRANCHES = 4096
"""Alternatives that one JSON type of one schema may have."""

MAX_SPLIT = 512
"""Alternatives with which a schema of too many begins, by constants of its members."""

MOST_SPLITS = 3
"""Members by whose constants they are."""

MOST_LOOKED_AT = 4096
"""Alternatives that are looked through for such members."""

_DEPTH = 6
"""Schemas inside of each other that are looked through for patterns."""

FEW_BRANCHES = 16
"""So many alternatives are left as they come; of more, it is tried whether there are fewer that exclude each other."""

Position = tuple[int, ...]
"""Where a part is written: its index among the parts of what it is a part of, from the conj down."""


@dataclass
class _Branch:
    """An alternative, as far as it is decided.

    Attributes:
        pending: what is still to be taken apart.
        atoms, seen, unions: what holds, and where it is written.
        verdicts: of the alternatives of unions, as far as they are known. What is granted or ruled out stays so.
        chosen: the alternatives that it was made by.
    """

    pending: list[tuple[Position, Formula]]
    atoms: dict[Atom, Position] = field(default_factory=dict)
    seen: dict[Literal, Position] = field(default_factory=dict)
    unions: dict[tuple[Formula, ...], Position] = field(default_factory=dict)
    verdicts: dict[tuple[Formula, ...], tuple[bool | None, ...]] = field(default_factory=dict)
    chosen: tuple[Position, ...] = ()

    def choose(self, at: Position, options: Sequence[Formula], index: int, others: Sequence[int]) -> _Branch:
        """This branch with one alternative of a union, and with the complements of others."""
        pending = [((*at, other), negate(options[other])) for other in others] + [((*at, index), options[index])]
        held = dict(self.atoms), dict(self.seen), dict(self.unions), dict(self.verdicts)
        return _Branch(pending, *held, (*self.chosen, (*at, index)))


class Brancher:
    """Multiplies out.

    Args:
        parts: the formula of a node for a kind.
        one_of: ``oneOf`` as a union.
        empty: whether a conj surely has no value.
        budget: limit on time.
        of_values: makes the schema of some constants.
    """

    def __init__(
        self,
        parts: Callable[[Node, str], tuple[Formula, ...]],
        one_of: Callable[[OneOf, str], Formula],
        empty: Callable[[Conj], bool],
        budget: Budget,
        of_values: Callable[[tuple[Constant, ...], str], Node],
    ) -> None:
        self.parts = parts
        self.one_of = one_of
        self.empty = empty
        self.budget = budget
        self.of_values = of_values
        self.held: dict[
            tuple[Atom, ...], list[tuple[Node, ...]]
        ] = {}  # of the last alternatives, where there are unions
        self._complements: dict[tuple[int, ...], tuple[tuple[Formula, ...], tuple[Formula, ...]]] = {}

    def branches(self, one: tuple[Literal, ...], kind: str) -> list[tuple[Atom, ...]]:
        """All alternatives; BudgetError where there are too many."""
        self.held = {}
        plain: dict[Atom, None] = {}
        for literal in one:
            for part in self.literal_parts(literal, kind):
                if isinstance(part, (Literal, All, Some, OneOf)):
                    break
                plain.setdefault(part)
            else:
                continue
            break
        else:
            return [tuple(plain)]
        found = self.try_branches(one, kind, MAX_BRANCHES)
        if found is None or len(found) > FEW_BRANCHES:
            fewer = self.try_branches(one, kind, MAX_BRANCHES if found is None else len(found), apart=True)
            found = found if fewer is None else fewer
        if found is None:
            found = self.try_branches(one, kind, MAX_BRANCHES, ordered=False)
        if found is None and kind == "object":
            found = self._split_branches(one)
        if found is None:
            raise BudgetError(
                f"anyOf, oneOf, not and the like multiply to more than {MAX_BRANCHES:,} alternatives",
                place=one[0].node.place,
                hint="simplify this schema",
            )
        return found

    def _split_branches(self, one: tuple[Literal, ...]) -> list[tuple[Atom, ...]] | None:
        """All alternatives of objects, first by what the members are by which most unions are told apart."""
        splits: list[Some] = []
        count = 1
        for split in self._splits(one):
            count *= len(split.parts)
            if count > MAX_SPLIT:
                break
            splits.append(split)
            for ordered in (True, False):
                found = self.try_branches(one, "object", MAX_BRANCHES, ordered=ordered, splits=tuple(splits))
                if found is not None:
                    return found
        return None

    def _splits(self, one: tuple[Literal, ...]) -> list[Some]:
        """Unions that always hold: a member is not there, is one of the constants that schemas name, or another."""
        seen: set[Node] = set()
        pending: list[Formula] = list(one)
        named: dict[str, dict[Constant, None]] = {}
        asking: Counter[str] = Counter()
        places: dict[str, str] = {}
        while pending and len(seen) <= MOST_LOOKED_AT:
            self.budget.check("")
            part = pending.pop()
            if isinstance(part, Literal):
                if part.node not in seen:
                    seen.add(part.node)
                    pending += self.parts(part.node, "object")
            elif isinstance(part, (All, Some)):
                pending += part.parts
            elif isinstance(part, OneOf):
                pending += [Literal(node) for node in part.nodes]
            elif isinstance(part, Members):
                for name, value in part.named:
                    if value is not None and len(value) == 1 and constant_keys(value[0].node) is not None:
                        ((_, constants),) = value[0].node.keywords.items()
                        named.setdefault(name, {}).update(dict.fromkeys(constants))
                        asking[name] += 1
                        places.setdefault(name, value[0].node.place)
        found: list[Some] = []
        for name, _ in asking.most_common(MOST_SPLITS):
            each = [(constant,) for constant in named[name]]
            values: list[Conj] = [(Literal(self.of_values(some, places[name])),) for some in each]
            values.append((Literal(self.of_values(tuple(named[name]), places[name]), False),))
            there = [All((Members(((name, value),), declares=False), Required((name,)))) for value in values]
            found.append(Some((*there, absent(name))))
        return found

    def try_branches(
        self,
        one: tuple[Literal, ...],
        kind: str,
        most: int,
        apart: bool = False,
        ordered: bool = True,
        splits: tuple[Some, ...] = (),
    ) -> list[tuple[Atom, ...]] | None:
        """All alternatives, or None where there are more than ``most``.

        With ``apart`` alternatives exclude earlier ones of the kind "this member is none of these values": fewer where
        many unions tell apart by one member, but its name has a place in the order of keys. Without ``ordered``
        alternatives that others hold are left out even if they alone declare an order of keys. The alternatives of
        ``splits`` are chosen before all others.
        """
        done: list[_Branch] = []
        for found in self._walk(one, kind, most, apart, ordered, splits):
            if found is None:
                return None
            done.append(found)
        done.sort(key=lambda branch: sorted(branch.chosen))
        held: dict[tuple[Atom, ...], list[tuple[Node, ...]]] = {}
        for branch in done:
            nodes = tuple([literal.node for literal in branch.seen if literal.positive])
            held.setdefault(_in_order(branch), []).append(nodes)
        self.held = held
        return list(held)

    def surely_none(
        self, one: tuple[Literal, ...], kind: str, most: int, wanted: Callable[[tuple[Atom, ...]], bool]
    ) -> bool:
        """Whether none of the alternatives is wanted; False, too, where these are more than ``most``.

        They are asked about as they are found, and the first that is wanted is the last.
        """
        return not any(found is None or wanted(_in_order(found)) for found in self._walk(one, kind, most))

    def _walk(
        self,
        one: tuple[Literal, ...],
        kind: str,
        most: int,
        apart: bool = False,
        ordered: bool = True,
        splits: tuple[Some, ...] = (),
    ) -> Iterator[_Branch | None]:
        """The alternatives as they are found, see `try_branches`; None, and no more, where there are too many."""
        done = 0
        start = _Branch([])
        _push(start.pending, (), one)
        if kind in ("number", "array"):
            _exclude_together(start, kind, len(one))
        stack = [start]
        for at, split in enumerate(splits, len(one)):
            stack = [
                _Branch([*branch.pending, ((at, way), part)], chosen=(*branch.chosen, (at, way)))
                for branch in stack
                for way, part in enumerate(split.parts)
            ]
        steps = 0
        while stack:
            steps += 1
            if steps & 15 == 0:  # a few take no time
                self.budget.check("")
            if done + len(stack) > most or steps > 64 * most:
                yield None
                return
            branch = stack.pop()
            if not self._take(branch, kind):
                continue
            for found in reversed(self._narrow(branch, kind, apart, ordered)):
                if found.unions or found.pending:
                    stack.append(found)
                else:
                    done += 1
                    yield found

    def possible(self, literal: Literal, kind: str) -> bool:
        """False if ``type`` alone rules the kind out."""
        node, hops = literal.node, 0
        if node.keywords.get("false"):
            return not literal.positive
        if not literal.positive:
            return bool(node.keywords)
        while hops < 20:
            if kind not in types_of(node)[0]:
                return False
            target = node.keywords.get("$ref")
            if not isinstance(target, Node):
                return True
            node, hops = target, hops + 1
        return True

    def literal_parts(self, literal: Literal, kind: str) -> tuple[Formula, ...]:
        """What holds if a literal does."""
        if not self.possible(literal, kind):
            return (Some(()),)
        parts = self.parts(literal.node, kind)
        if literal.positive:
            return parts
        parts = tuple([self.one_of(one, kind) if isinstance(one, OneOf) else one for one in parts])
        key = tuple(map(id, parts))  # most are asked for again and again, and to compare them takes longer
        known = self._complements.get(key)
        if known is None:
            known = self._complements[key] = parts, (Some(tuple(map(negate, parts))),)
        return known[1]

    def _take(self, branch: _Branch, kind: str) -> bool:
        """Take apart what is pending; False if it contradicts itself."""
        pending = branch.pending
        steps = 0
        while pending:
            steps += 1
            if steps & 255 == 0:
                self.budget.check("")
            at, part = pending.pop()
            if isinstance(part, Literal):
                if branch.seen.get(part, at) < at or at == branch.seen.get(part):
                    continue
                if Literal(part.node, not part.positive) in branch.seen:
                    return False
                branch.seen[part] = at
                _push(pending, at, self.literal_parts(part, kind))
            elif isinstance(part, All):
                _push(pending, at, part.parts)
                if kind in ("number", "array"):
                    _exclude_together(branch, kind, len(part.parts))
            elif isinstance(part, OneOf):
                pending.append((at, self.one_of(part, kind)))
            elif isinstance(part, Some):
                options = _flat(part)
                if kind == "string":
                    options = self._joined(options, kind)
                elif kind == "object":
                    options = _with_absent(options)
                if len(options) < 2:
                    if not options:
                        return False
                    _push(pending, at, options)
                else:
                    branch.unions[options] = min(at, branch.unions.get(options, at))
            else:
                branch.atoms[part] = min(at, branch.atoms.get(part, at))
        return True

    def _narrow(self, branch: _Branch, kind: str, apart: bool, ordered: bool) -> list[_Branch]:
        """What becomes of a branch with unions: none if it has no value, itself if none is left, else one a choice."""
        while branch.unions:
            known = self._known(branch, kind)
            if known.contradict():
                return []
            forced = False
            best: tuple[int, Position, list[int], tuple[Formula, ...]] | None = None
            for options, at in sorted(branch.unions.items(), key=lambda item: item[1]):
                self.budget.check("")  # to tell what becomes of a union may take long
                before = branch.verdicts.get(options) or (None,) * len(options)
                verdicts = tuple(
                    [
                        known.verdict(option) if verdict is None else verdict
                        for option, verdict in zip(options, before, strict=True)
                    ]
                )
                branch.verdicts[options] = verdicts
                left = [index for index, verdict in enumerate(verdicts) if verdict is not False]
                if True in verdicts and (not ordered or all(known.keeps_order(options[index]) for index in left)):
                    del branch.unions[options]
                elif not left:
                    return []
                elif len(left) == 1:
                    branch.pending.append(((*branch.unions.pop(options), left[0]), options[left[0]]))
                    if not self._take(branch, kind):
                        return []
                    forced, known = True, self._known(branch, kind)
                elif best is None or len(left) < best[0]:
                    best = (len(left), at, left, options)
            if forced:
                continue  # what holds now may decide others
            if best is None:
                break
            _, at, left, options = best
            del branch.unions[options]
            excluded = [index for index in left if apart and _is_told_apart(options[index])]
            return [branch.choose(at, options, index, [other for other in excluded if other < index]) for index in left]
        return [branch]

    def _known(self, branch: _Branch, kind: str) -> Known:
        return Known(kind, list(branch.atoms), frozenset(branch.seen), self.literal_parts, self.empty)

    def _joined(self, options: tuple[Formula, ...], kind: str) -> tuple[Formula, ...]:
        """Alternatives of strings, those that are only patterns joined to one."""
        kept: list[Formula] = []
        found: dict[str, Matches] = {}
        for option in options:
            patterns = self._patterns(option, kind)
            if patterns is None:
                kept.append(option)
                continue
            if not found:
                kept.append(option)
                first = len(kept) - 1
            found.update((one.pattern, one) for one in patterns)
        if len(options) - len(kept) and found:
            for one in found.values():
                parse(one.pattern, one.place)  # joined, two broken ones could make a whole one
            place = next(iter(found.values())).place
            kept[first] = Matches("|".join(f"(?:{pattern})" for pattern in found), place)
        return tuple(kept)

    def _patterns(self, option: Formula, kind: str, depth: int = _DEPTH) -> list[Matches] | None:
        """The patterns of which an option demands one, where it demands nothing else."""
        if isinstance(option, Literal):
            parts = self.literal_parts(option, kind)
            return self._patterns(parts[0], kind, depth - 1) if depth and len(parts) == 1 else None
        if isinstance(option, Matches):
            return [option] if option.positive and not option.format else None
        if not isinstance(option, Some) or not option.parts:
            return None
        found = [self._patterns(one, kind, depth) for one in option.parts]
        return None if None in found else [one for some in found for one in some or ()]


def _in_order(branch: _Branch) -> tuple[Atom, ...]:
    """The atoms of an alternative, as they are written."""
    return tuple(sorted(branch.atoms, key=branch.atoms.__getitem__))


def _push(pending: list[tuple[Position, Formula]], at: Position, parts: tuple[Formula, ...]) -> None:
    """Put parts on top, the first of them uppermost."""
    pending.extend(((*at, index), parts[index]) for index in range(len(parts) - 1, -1, -1))


def constant_keys(node: Node) -> frozenset[Hashable] | None:
    """What ``freeze`` makes of the values of a schema that says nothing but which these are; else None."""
    if len(node.keywords) == 1:
        for keyword in ("const", "enum"):
            if keyword in node.keywords:
                return frozenset(constant.key for constant in node.keywords[keyword])
    return None


def _exclude_together(branch: _Branch, kind: str, count: int) -> None:
    """Make one part of all numbers, or arrays, that literals among the `count` uppermost rule out: apart, the gaps
    between them, or the ways to differ from each, are to be multiplied."""
    upper = branch.pending[-count:]
    excluded = [
        (at, part)
        for at, part in upper
        if isinstance(part, Literal) and not part.positive and constant_keys(part.node) is not None
    ]
    if len(excluded) < 2:
        return
    places = {at for at, _ in excluded}
    branch.pending[-count:] = [item for item in upper if item[0] not in places]
    values: dict[Constant, None] = {}
    for at, literal in reversed(excluded):  # as they are written
        branch.seen.setdefault(literal, at)
        (keyword,) = literal.node.keywords.values()
        values.update((constant, None) for constant in keyword if kind_of(constant.value) == kind)
    if values:
        branch.pending.append((excluded[-1][0], negate(Values(tuple(values)))))


def _flat(union: Some) -> tuple[Formula, ...]:
    """The alternatives of a union, with those of the unions among them."""
    if not any(isinstance(part, Some) for part in union.parts):
        return union.parts
    return tuple(one for part in union.parts for one in (_flat(part) if isinstance(part, Some) else (part,)))


def _with_absent(options: tuple[Formula, ...]) -> tuple[Formula, ...]:
    """Alternatives of objects; that a member is not there, and that it is and meets a schema, are one of them: what it
    meets if it is there. So a complement of ``properties`` and ``required`` is one alternative for a member, not two.
    """
    gone: dict[str, int] = {}
    there: dict[str, list[int]] = {}
    for index, option in enumerate(options):
        members = _of_one_member(option)
        if members is not None:
            ((name, value),) = members.named
            if option is not members:
                there.setdefault(name, []).append(index)
            elif value is NEVER:
                gone[name] = index
    pairs = {name: (gone[name], found[0]) for name, found in there.items() if name in gone and len(found) == 1}
    if not pairs:
        return options
    kept: list[Formula | None] = list(options)
    for one, other in pairs.values():
        kept[min(one, other)], kept[max(one, other)] = _of_one_member(options[other]), None
    return tuple([option for option in kept if option is not None])


def _of_one_member(option: Formula) -> Members | None:
    """What an alternative says of one member, where it says nothing else but, perhaps, that it is there."""
    members, *needed = option.parts if isinstance(option, All) and option.parts else (option,)
    if not isinstance(members, Members) or len(members.named) != 1 or members.patterns or members.rest != ANY:
        return None
    if members.declares or needed not in ([], [Required((members.named[0][0],))]):
        return None
    return members


def _is_told_apart(option: Formula) -> bool:
    """Whether an alternative only says that a member, perhaps only if it is there, is none of a few values."""
    members = _of_one_member(option)
    value = None if members is None else members.named[0][1]
    if value is None or len(value) != 1:
        return False
    return not value[0].positive and not {"enum", "const"}.isdisjoint(value[0].node.keywords)
