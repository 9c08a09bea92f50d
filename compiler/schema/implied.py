"""Prune alternatives that the atoms of a branch rule out or already grant.

Leaves out   taking schemas apart (branches.py), the shape that the atoms make (shapes.py).
Invariants   a verdict is never wrong: True if every value of the atoms has the part, False if none has, None where that
             is not known. Values of members and items are compared by ``empty``, which may also not know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .atoms import (
    ANY,
    NEVER,
    All,
    AtLeast,
    AtMost,
    Atom,
    Conj,
    Contains,
    Count,
    Formula,
    Integral,
    Items,
    Literal,
    Matches,
    Members,
    Multiple,
    OneOf,
    Refused,
    Required,
    Some,
    SomeMember,
    Unique,
    Values,
    both,
    conj,
)
from .containers import member_value, merged_order
from .evaluate import search
from .formulas import types_of
from .negation import negate
from .nodes import Node

_DEPTH = 6
"""Schemas inside of each other that a part is followed through."""

Parts = Callable[[Literal, str], tuple[Formula, ...]]


class Known:
    """The atoms of a branch, and what follows from them.

    Args:
        kind: the JSON type.
        atoms: what holds.
        seen: literals that hold.
        parts: the parts of a literal, all of which hold if it does.
        empty: whether a conj surely has no value.
    """

    def __init__(
        self,
        kind: str,
        atoms: Sequence[Atom],
        seen: frozenset[Literal],
        parts: Parts,
        empty: Callable[[Conj], bool],
    ) -> None:
        self.kind = kind
        self.atoms = dict.fromkeys(atoms)
        self.seen = seen
        self.parts = parts
        self.empty = empty
        self.members = [atom for atom in atoms if isinstance(atom, Members)]
        self.items = [atom for atom in atoms if isinstance(atom, Items)]
        self.required = {name: None for atom in atoms if isinstance(atom, Required) for name in atom.names}
        counts = [atom for atom in atoms if isinstance(atom, Count)]
        self.low = max([len(self.required), *(atom.low for atom in counts)])
        self.high = min((atom.high for atom in counts if atom.high is not None), default=None)
        self._tables: list[tuple[dict[str, Conj], Members]] = []
        self._broad: list[int] = []  # tables that say something of keys which they do not name
        self._naming: dict[str, list[int]] = {}  # the others, by name
        for at, part in enumerate(self.members):
            self._tables.append((dict(part.named), part))
            if part.patterns or part.rest != ANY:
                self._broad.append(at)
            else:
                for name, _ in part.named:
                    self._naming.setdefault(name, []).append(at)
        self._values: dict[str, Conj] = {}
        self._items_at: dict[int, Conj] = {}
        self._order: list[str] | None = None

    def contradict(self) -> bool:
        """Whether the atoms surely contradict each other."""
        if self.high is not None and self.high < self.low:
            return True
        return any(self.empty(self.value(name)) for name in self.required)

    def value(self, name: str) -> Conj:
        """What a member must satisfy."""
        if name not in self._values:
            saying = sorted({*self._broad, *self._naming.get(name, ())})
            self._values[name] = member_value(ANY, name, [self._tables[at] for at in saying], search)
        return self._values[name]

    def item(self, at: int) -> Conj:
        """What an item must satisfy."""
        if at not in self._items_at:
            found = ANY
            for part in self.items:
                found = both(found, part.prefix[at] if at < len(part.prefix) else part.rest)
            self._items_at[at] = found
        return self._items_at[at]

    # -- verdicts

    def verdict(
        self, part: Formula, depth: int = _DEPTH, needed: frozenset[str] = frozenset(), low: int = 0
    ) -> bool | None:
        """Whether a part holds, given the atoms, names that are needed beside them and a least count."""
        if isinstance(part, Literal):
            return self._literal(part, depth, needed, low)
        if isinstance(part, All):
            needed |= {name for one in part.parts if isinstance(one, Required) for name in one.names}
            low = max([low, *(one.low for one in part.parts if isinstance(one, Count))])
            return self._every(part.parts, depth, needed, low)
        if isinstance(part, Some):
            return self._some(part.parts, depth, needed, low)
        if isinstance(part, OneOf):
            return None
        if part in self.atoms:
            return True
        if isinstance(part, Required):
            if all(name in self.required for name in part.names):
                return True
            return False if any(self.value(name) is NEVER for name in part.names) else None
        if isinstance(part, Members):
            return self._members(part, needed)
        if isinstance(part, SomeMember):
            return self._some_member(part)
        if isinstance(part, Count):
            return self._count(part, low)
        if isinstance(part, Items):
            return self._items(part, low)
        if isinstance(part, Contains):
            return self._contains(part)
        if isinstance(part, Values):
            return self._constants(part)
        if isinstance(part, (Integral, Unique, Multiple, Matches)):
            opposite = negate(part)
            return False if opposite in self.atoms and not isinstance(opposite, Refused) else None
        if isinstance(part, (AtLeast, AtMost)):
            return self._bound(part)
        return None

    def _every(self, parts: tuple[Formula, ...], depth: int, needed: frozenset[str], low: int) -> bool | None:
        """False as soon as one part is ruled out; True if all are granted."""
        found: bool | None = True
        for one in parts:
            verdict = self.verdict(one, depth, needed, low)
            if verdict is False:
                return False
            if verdict is None:
                found = None
        return found

    def _some(self, parts: tuple[Formula, ...], depth: int, needed: frozenset[str], low: int) -> bool | None:
        """True as soon as one part is granted; False if all are ruled out."""
        found: bool | None = False
        for one in parts:
            verdict = self.verdict(one, depth, needed, low)
            if verdict:
                return True
            if verdict is None:
                found = None
        return found

    def _literal(self, part: Literal, depth: int, needed: frozenset[str], low: int) -> bool | None:
        if part in self.seen:
            return True
        if (part.node, not part.positive) in self.seen:
            return False
        if depth == 0:
            return None
        return self.verdict(All(self.parts(part, self.kind)), depth - 1, needed, low)

    def entails(self, one: Conj, other: Conj) -> bool:
        """Whether every value of a conj surely satisfies another."""
        if one is None or other is None:
            return one is None
        for part in other:
            if part not in one and not self.empty(both(one, conj(Literal(part.node, not part.positive)))):
                return False
        return True

    def _members(self, part: Members, needed: frozenset[str]) -> bool | None:
        if part.patterns or part.rest != ANY:
            table = [(dict(part.named), part)]
            for name in (*self.required, *sorted(needed - set(self.required))):
                value = member_value(ANY, name, table, search)
                if value != ANY and self.empty(both(self.value(name), value)):
                    return False
            return None
        for name, value in part.named:
            if (name in self.required or name in needed) and value != ANY and self.empty(both(self.value(name), value)):
                return False
        for name, value in part.named:
            if not self.entails(self.value(name), value):
                return None
        return True

    def _some_member(self, part: SomeMember) -> bool | None:
        if any(_is_narrower(held, part) for held in self.atoms if isinstance(held, SomeMember)):
            return True
        closed = [one for one in self.members if one.rest is NEVER and not one.patterns]
        if part.key == ANY:
            for name in self.required:
                if self._may_be(part, name) and self.entails(self.value(name), part.value):
                    return True
        if not closed:
            return None
        for name, _ in closed[0].named:
            if self._may_be(part, name) and not self.empty(both(self.value(name), part.value)):
                return None
        return False

    def _may_be(self, part: SomeMember, name: str) -> bool:
        return name not in part.names and all(search(match, name) == match.positive for match in part.patterns)

    def _count(self, part: Count, low: int) -> bool | None:
        low = max(low, self.low)
        if (part.high is not None and part.high < low) or (self.high is not None and self.high < part.low):
            return False
        if self.low >= part.low and (part.high is None or (self.high is not None and self.high <= part.high)):
            return True
        return None

    def _items(self, part: Items, low: int) -> bool | None:
        size = max([len(part.prefix), *(len(one.prefix) for one in self.items)])
        sure = True
        for at in range(size + 1):
            value = part.prefix[at] if at < len(part.prefix) else part.rest
            if at < max(low, self.low) and self.empty(both(self.item(at), value)):
                return False
            sure = sure and self.entails(self.item(at), value)
        return True if sure else None

    def _contains(self, part: Contains) -> bool | None:
        if part.low == 0:
            return None
        size = max([part.start, *(len(one.prefix) for one in self.items)])
        last = size if self.high is None else min(size, self.high - 1)
        return False if all(self.empty(both(self.item(at), part.item)) for at in range(part.start, last + 1)) else None

    def _constants(self, part: Values) -> bool | None:
        if part.positive and not part.values:
            return False
        for held in self.atoms:
            if isinstance(held, Values):
                if held.positive and held.keys <= part.keys:
                    return part.positive
                if held.positive and held.keys.isdisjoint(part.keys):
                    return not part.positive
                if not held.positive and part.positive and part.keys <= held.keys:
                    return False
        return None

    def _bound(self, part: AtLeast | AtMost) -> bool | None:
        for held in self.atoms:
            if type(held) is type(part) and isinstance(held, (AtLeast, AtMost)):
                tighter = held.value >= part.value if isinstance(part, AtLeast) else held.value <= part.value
                if tighter and (held.value != part.value or held.strict or not part.strict):
                    return True
            elif isinstance(held, (AtLeast, AtMost)):
                low, high = (held, part) if isinstance(held, AtLeast) else (part, held)
                if low.value > high.value or (low.value == high.value and (low.strict or high.strict)):
                    return False
        return None

    # -- the order of keys

    def keeps_order(self, part: Formula, depth: int = _DEPTH) -> bool:
        """Whether no order of keys that a part may declare, at any level, would be lost without it."""
        if isinstance(part, Literal):
            return depth > 0 and all(self.keeps_order(one, depth - 1) for one in self.parts(part, self.kind))
        if isinstance(part, (All, Some)):
            return all(self.keeps_order(one, depth) for one in part.parts)
        if isinstance(part, OneOf):
            return all(self.keeps_order(Literal(node), depth) for node in part.nodes)
        if isinstance(part, Values):
            return not part.positive or self.kind not in ("array", "object")
        if isinstance(part, Items):
            pairs = [(value, self.item(at)) for at, value in enumerate((*part.prefix, part.rest))]
            return all(_declares_nothing(value, held) for value, held in pairs)
        if isinstance(part, (Contains, SomeMember)):
            return _declares_nothing(part.item if isinstance(part, Contains) else part.value, ANY)
        if not isinstance(part, Members):
            return True
        if not all(_declares_nothing(value, self.value(name)) for name, value in part.named):
            return False
        if not all(_declares_nothing(value, ANY) for value in (*(value for _, value in part.patterns), part.rest)):
            return False
        if not part.declares:
            return True
        if self._order is None:
            self._order = merged_order([name for name, _ in one.named] for one in self.members if one.declares)
        place = {name: at for at, name in enumerate(self._order)}
        found = [place.get(name, -1) for name, _ in part.named]
        return -1 not in found and found == sorted(found)


def _is_narrower(one: SomeMember, other: SomeMember) -> bool:
    """Whether a member that meets the one surely meets the other."""
    return (
        (one.value == other.value or other.value == ANY)
        and (one.key == other.key or other.key == ANY)
        and set(other.names) <= set(one.names)
        and set(other.patterns) <= set(one.patterns)
    )


def _declares_nothing(value: Conj, held: Conj) -> bool:
    """Whether a value has no order of keys but those of what holds anyway."""
    return value is None or all(
        not part.positive
        or (held is not None and part in held)
        or types_of(part.node)[0].isdisjoint(("array", "object"))
        or _lists_scalars(part.node)
        for part in value
    )


def _lists_scalars(node: Node) -> bool:
    """Whether a schema lists its values, and none is an array or an object."""
    listed = node.keywords.get("enum", node.keywords.get("const"))
    return listed is not None and not any(isinstance(one.value, (list, dict)) for one in listed)
