"""Shapes of arrays and objects from atoms.

Leaves out   scalars (shapes.py), which combinations of members and items there are (member_automata.py).
Invariants   child conjs are not looked into; a shape is never visibly empty: None instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..errors import UnsupportedError
from .atoms import (
    ANY,
    NEVER,
    Atom,
    Conj,
    Contains,
    Items,
    Keys,
    Literal,
    Matches,
    Members,
    Required,
    SomeMember,
    Unique,
    all_of,
    both,
)
from .formulas import types_of
from .patterns import may_both_match
from .shapes import Arrays, Objects, OpenKeys, counts

MAX_CLASSES = 64
"""Classes of keys in one object: the combinations of patterns that a key can match together."""

MAX_ITEM_NEEDS = 4
MAX_MEMBER_NEEDS = 6
"""Conditions of the kind "some item" on one array, "some member" on one object."""


def merge_arrays(atoms: Sequence[Atom]) -> Arrays | None:
    count = counts(atoms)
    if count is None:
        return None
    low, high = count
    parts = [atom for atom in atoms if isinstance(atom, Items)]
    prefix: list[Conj] = []
    rest = ANY
    for part in parts:
        rest = both(rest, part.rest)
    for index in range(max((len(part.prefix) for part in parts), default=0)):
        item = ANY
        for part in parts:
            item = both(item, part.prefix[index] if index < len(part.prefix) else part.rest)
        prefix.append(item)
    if NEVER in prefix:
        at = prefix.index(NEVER)
        prefix, rest = prefix[:at], NEVER
    if rest is NEVER:
        high = len(prefix) if high is None else min(high, len(prefix))
    if high is not None:
        del prefix[high:]
        if high == len(prefix):
            rest = NEVER
        if high < low:
            return None
    while prefix and prefix[-1] == rest:
        prefix.pop()
    asked = [atom for atom in atoms if isinstance(atom, Contains)]
    plain = [atom for atom in asked if atom.high is None and _all_surely([*prefix[atom.start :], rest], atom.item)]
    low = max([low, *(atom.start + atom.low for atom in plain if atom.low)])
    needs = _needs([atom for atom in asked if atom not in plain])
    if needs is None:
        return None
    low = max([low, *(need.start + need.low for need in needs)])
    if high is not None and high < low:
        return None
    marks = {atom.positive: atom for atom in atoms if isinstance(atom, Unique)}
    if len(marks) == 2:
        return None
    unique = next(iter(marks.values()), None)
    if unique and high is not None and high <= 1:
        if not unique.positive:
            return None
        unique = None
    return Arrays(tuple(prefix), rest, low, high, needs, unique)


def _needs(atoms: list[Contains]) -> tuple[Contains, ...] | None:
    """One need for each (start, item), without those that always hold; None if one cannot be met."""
    merged: dict[tuple[int, Conj], Contains] = {}
    for atom in atoms:
        known = merged.get((atom.start, atom.item))
        if known is not None:
            highs = [high for high in (known.high, atom.high) if high is not None]
            atom = Contains(atom.item, max(known.low, atom.low), min(highs, default=None), atom.start)
        merged[atom.start, atom.item] = atom
    kept: list[Contains] = []
    for need in merged.values():
        if need.high is not None and need.high < need.low or (need.low and need.item is NEVER):
            return None
        if need.item is not NEVER and (need.low or need.high is not None):
            kept.append(need)
    if len(kept) > MAX_ITEM_NEEDS:
        raise UnsupportedError(f"more than {MAX_ITEM_NEEDS} conditions on some items of one array are not supported")
    return tuple(kept)


def merge_objects(
    atoms: Sequence[Atom], holds: Callable[[Atom, object], bool], matches: Callable[[Matches, str], bool]
) -> Objects | None:
    """One shape of objects, or None."""
    count = counts(atoms)
    if count is None:
        return None
    parts = [atom for atom in atoms if isinstance(atom, Members)]
    needs = tuple(dict.fromkeys(atom for atom in atoms if isinstance(atom, SomeMember)))
    required = tuple(dict.fromkeys(name for atom in atoms if isinstance(atom, Required) for name in atom.names))
    key = ANY
    for atom in atoms:
        if isinstance(atom, Keys):
            key = both(key, atom.key)
    named: list[tuple[str, Conj]] = []
    if len(parts) == 1 and parts[0].declares and not parts[0].patterns and key == ANY and not needs:
        values = dict(parts[0].named)
        for name in required:
            if values.setdefault(name, parts[0].rest) is NEVER:
                return None
        named = list(values.items())
        return _object(named, required, _open_classes(parts), count, key, needs, holds, matches)
    names = dict.fromkeys(merged_order([name for name, _ in part.named] for part in parts if part.declares))
    names.update(dict.fromkeys(required))
    names.update(dict.fromkeys(name for part in parts for name, _ in part.named))
    names.update(dict.fromkeys(name for need in needs for name in need.names))
    tables = [(dict(part.named), part) for part in parts]
    for name in names:
        value = ANY if key is not NEVER and (key == ANY or holds(Keys(key), {name: None})) else NEVER
        value = member_value(value, name, tables, matches)
        if value is NEVER and name in required:
            return None
        named.append((name, value))
    opened = () if key is NEVER else _open_classes(parts)
    return _object(named, required, opened, count, key, needs, holds, matches)


def _object(
    named: list[tuple[str, Conj]],
    required: tuple[str, ...],
    opened: tuple[OpenKeys, ...],
    count: tuple[int, int | None],
    key: Conj,
    needs: tuple[SomeMember, ...],
    holds: Callable[[Atom, object], bool],
    matches: Callable[[Matches, str], bool],
) -> Objects | None:
    """A shape with these members, less those that it cannot have; None if it has no value."""
    low, high = max(count[0], len(required)), count[1]
    for need in needs:
        if not need.names and not need.patterns and need.key == ANY:
            if _all_surely([*(value for _, value in named), *(one.value for one in opened)], need.value):
                low = max(low, 1)
                needs = tuple(other for other in needs if other is not need)
    if high is not None and high < low:
        return None
    if high == len(required):
        opened, named = (), [(name, value) for name, value in named if name in required]
    if not opened:
        named = [(name, value) for name, value in named if value is not NEVER]
        if low > len(named):
            return None
        if high is not None and high >= len(named):
            high = None
    if any(need.value is NEVER or need.key is NEVER for need in needs):
        return None
    able = {need: [name for name, _ in named if _may_meet(need, name, holds, matches)] for need in needs}
    if not opened:
        if not all(able.values()):
            return None
        only = [(able[need][0], need.value) for need in needs if len(able[need]) == 1]
        if only:  # that member is there, and its value is what is asked for
            values = dict(named)
            for name, value in only:
                values[name] = both(values[name], value)
            required = tuple(dict.fromkeys([*required, *(name for name, _ in only)]))
            needs = tuple(need for need in needs if len(able[need]) > 1)
            if any(value is NEVER for value in values.values()):
                return None
            return _object([*values.items()], required, (), count, key, needs, holds, matches)
        alike = {(need.value, tuple(able[need])): need for need in reversed(needs)}
        needs = tuple(need for need in needs if alike[need.value, tuple(able[need])] is need)
    needs = tuple(need for need in needs if not _always(need, required, able[need]))
    if len(needs) > MAX_MEMBER_NEEDS:
        raise UnsupportedError(
            f"more than {MAX_MEMBER_NEEDS} conditions on some members of one object are not supported",
            hint="of oneOf or not, say with anyOf, required or a constant what tells its alternatives apart",
        )
    bits = tuple(sum(1 << bit for bit, need in enumerate(needs) if name in able[need]) for name, _ in named)
    return Objects(tuple(named), required, opened, low, high, key, needs, bits if needs else ())


def _all_surely(values: Iterable[Conj], wanted: Conj) -> bool:
    """True only if all values of these satisfy another, which their types tell."""
    return all(value is None or (wanted is not None and _surely(value, wanted)) for value in values)


def _surely(value: tuple[Literal, ...], wanted: tuple[Literal, ...]) -> bool:
    kinds = [types_of(literal.node)[0] for literal in value if literal.positive]
    return all(
        one in value or (not one.positive and any(types_of(one.node)[0].isdisjoint(some) for some in kinds))
        for one in wanted
    )


def member_value(
    value: Conj, name: str, tables: Sequence[tuple[dict[str, Conj], Members]], matches: Callable[[Matches, str], bool]
) -> Conj:
    """What a member satisfies by its key: ``value``, and what every part says, with its names as a table."""
    said = [value]
    for table, part in tables:
        found = name in table
        if found:
            said.append(table[name])
        for match, inside in part.patterns:
            if matches(match, name):
                found = True
                said.append(inside)
        if not found:
            said.append(part.rest)
    return all_of(said)


def _always(need: SomeMember, required: tuple[str, ...], able: list[str]) -> bool:
    """Whether a required member meets the need whatever its value."""
    return need.value == ANY and not set(required).isdisjoint(able)


def _may_meet(
    need: SomeMember, name: str, holds: Callable[[Atom, object], bool], matches: Callable[[Matches, str], bool]
) -> bool:
    if name in need.names or not all(matches(match, name) == match.positive for match in need.patterns):
        return False
    return not need.key or holds(Keys(need.key), {name: None})


def merged_order(orders: Iterable[list[str]]) -> list[str]:
    """One order of names that keeps to every given order where they do not contradict each other, left before right."""
    merged: list[str] = []
    for order in orders:
        if not merged:
            merged = list(order)
            continue
        known = set(merged)
        waiting: list[str] = []
        for name in order:
            if name not in known:
                waiting.append(name)
            elif waiting:
                at = merged.index(name)
                merged[at:at] = waiting
                waiting = []
        merged += waiting
    return merged


def _open_classes(parts: Sequence[Members]) -> tuple[OpenKeys, ...]:
    """What undeclared keys may hold, by which of the patterns they match."""
    tests: dict[str, Matches] = {}
    for part in parts:
        for match, _ in part.patterns:
            tests.setdefault(match.pattern, match)
    if not tests:
        value = ANY
        for part in parts:
            value = both(value, part.rest)
        return () if value is NEVER else (OpenKeys(value=value),)
    found: list[OpenKeys] = []
    for matched in _classes(list(tests.values())):
        value = ANY
        for part in parts:
            inside = [conj for match, conj in part.patterns if match.pattern in matched]
            for conj in inside or [part.rest]:
                value = both(value, conj)
        if value is not NEVER:
            yes = [match for key, match in tests.items() if key in matched]
            no = [match for key, match in tests.items() if key not in matched and all(_overlap(match, m) for m in yes)]
            found.append(OpenKeys(tuple(yes), tuple(no), value))
    return tuple(found)


def _classes(tests: list[Matches]) -> list[frozenset[str]]:
    """The sets of patterns that one key may match, those with the first pattern first."""
    found: list[tuple[Matches, ...]] = [()]
    for test in reversed(tests):
        found = [(test, *others) for others in found if all(_overlap(test, other) for other in others)] + found
        if len(found) > MAX_CLASSES:
            raise UnsupportedError(
                f"the patterns for the keys of one object overlap in more than {MAX_CLASSES} ways",
                place=tests[0].place,
            )
    return [frozenset(match.pattern for match in some) for some in found]


def _overlap(one: Matches, other: Matches) -> bool:
    return may_both_match(one.pattern, one.place, other.pattern, other.place)
