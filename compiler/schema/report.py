"""The keyword report: what became of every keyword of every schema, and the packed form that bundles carry.

Leaves out   which keywords there are (keywords.py), showing it (../commands/inspect.py).
Invariants   a row is (place, keyword, status, restrictions); a keyword stands once per place; ``unpack`` of what is
             packed gives the rows; a packed report that is damaged is a BundleError.
Status       ``enforced``; ``annotation``: constrains nothing, in this draft or at all; ``any value``: a format that
             every value of its type has; ``dropped``: not enforced, by the option relax; ``later``: an annotation in
             this draft, a keyword of a later one; ``repaired``: the same, enforced by the option repair.
Packed       [[(keyword, status, [restriction, ...]), ...], ...] once for each set of keywords that some place has, and
             [characters shared with the place before, the rest of the place, number of its set, ...].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from toolc.runtime.format.keyword_report import Row as Row

from .formats import FORMATS
from .keywords import KEYWORDS, MAX_KEYS, meant
from .numbers import constant_restrictions

_There: TypeAlias = tuple[tuple[str, str, tuple[str, ...]], ...]


def narrowed_by(keyword: str, value: Any) -> tuple[str, ...]:
    """The declared restrictions that may narrow a keyword with this value, in the order of keywords.py."""
    known = KEYWORDS.get(keyword)
    names = known.restrictions if known is not None else ()
    if keyword == "multipleOf" and value != 1:
        return tuple(name for name in names if name != "plain-integers")
    if keyword not in ("type", "enum", "const", "format"):
        return names
    if keyword == "type":
        if isinstance(value, str):
            return TYPE_RESTRICTIONS.get(value, ())
        kinds = set(value)
        names = tuple(name for kind in TYPE_RESTRICTIONS if kind in kinds for name in TYPE_RESTRICTIONS[kind])
    elif keyword in ("enum", "const"):
        held = list(_inside(value))
        names = tuple(
            name
            for name, used in (
                ("minimal-escapes", any(isinstance(one, (str, dict)) for one in held)),
                ("key-order", any(isinstance(one, dict) and len(one) > 1 for one in held)),
                ("many-keys", any(isinstance(one, dict) and len(one) > MAX_KEYS for one in held)),
            )
            if used
        )
        names += tuple([name for one in held if _is_number(one) for name in constant_restrictions(one)])
    elif keyword == "format":
        known_format = FORMATS.get(value)
        names = (*names, "formats") if known_format is not None and known_format.narrowed else names
    return tuple(dict.fromkeys(names))


TYPE_RESTRICTIONS = {"integer": ("plain-integers", "digits"), "number": ("digits",), "object": ("open-keys",)}
"""What a name in ``type`` may narrow; the others narrow nothing."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _inside(value: Any) -> Iterable[Any]:
    """A JSON value and all that is inside of it."""
    stack = [value]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())


def keyword_report(
    met: Iterable[tuple[str, str, str]], narrowed: dict[tuple[str, str], tuple[str, ...]], used: Collection[str]
) -> tuple[Row, ...]:
    """The rows of what a reader met; ``used`` are the restrictions that the text of the schemas makes use of."""
    rows: dict[tuple[str, str], Row] = {}
    held: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    for place, keyword, status in met:
        key = place, keyword
        if key not in rows or status == "dropped":
            names = narrowed.get(key, ()) if status in ("enforced", "repaired") else ()
            if names not in held:
                held[names] = tuple(name for name in names if name in used)
            rows[key] = (place, keyword, status, held[names])
    return tuple(rows.values())


@dataclass(frozen=True)
class Told:
    """What became of the keywords of one schema, or of several, ready to be put beside that of others.

    Attributes:
        places: (characters shared with the place before, the rest of it, (keyword, status, restrictions) of all there).
        last: the last place.
        counts: (keyword, status) → how often it was met.
        dropped: place/keyword.
    """

    places: tuple[tuple[int, str, _There], ...]
    last: str
    counts: Counter[tuple[str, str]]
    dropped: tuple[str, ...]


def told(rows: Iterable[Row], met: Collection[tuple[str, str, str]]) -> Told:
    """Of the rows of a report, and of (place, keyword, status) of every keyword."""
    there: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {}
    for place, keyword, status, names in rows:
        there.setdefault(place, []).append((keyword, status, names))
    places = []
    last = ""
    for place, keywords in there.items():
        shared = _shared(last, place)
        places.append((shared, place[shared:], tuple(keywords)))
        last = place
    counts = Counter([(keyword, status) for _, keyword, status in met])
    dropped = tuple([f"{place}/{keyword}" for place, keyword, status in met if status == "dropped"])
    return Told(tuple(places), last, counts, dropped)


def at(origin: str, place: str) -> str:
    """A place that begins with ``#``, which stands for the origin; without an origin it is one already."""
    return origin + place[1:] if origin else place


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common from the first on."""
    most = min(len(one), len(other))
    return most if one[:most] == other[:most] else next(n for n in range(most) if one[n] != other[n])


def pack(all_told: Iterable[tuple[str, Told]]) -> list[Any]:
    """The form that bundles carry, of reports that have no place in common: (where its places begin, it)."""
    number: dict[_There, int] = {}
    places: list[Any] = []
    last = ""
    for origin, one in all_told:
        more = max(0, len(origin) - 1)
        for n, (shared, rest, there) in enumerate(one.places):
            if n == 0:
                rest = at(origin, rest)
                shared = _shared(last, rest)
                rest = rest[shared:]
            else:
                shared += more
            places += (shared, rest, number.setdefault(there, len(number)))
        if one.places:
            last = at(origin, one.last)
    sets = [[[keyword, status, list(names)] for keyword, status, names in there] for there in number]
    return [sets, places]


def keyword_counts(all_told: Iterable[tuple[str, Told]]) -> list[list[Any]]:
    """[keyword, status, how often], sorted: what a bundle stores."""
    counts: Counter[tuple[str, str]] = Counter()
    for _, one in all_told:
        counts.update(one.counts)
    return [[keyword, status, count] for (keyword, status), count in sorted(counts.items())]


def dropped(all_told: Iterable[tuple[str, Told]]) -> list[str]:
    """place/keyword of all that is not enforced, sorted."""
    return sorted(at(origin, place) for origin, one in all_told for place in one.dropped)


def placed(all_told: Iterable[tuple[str, Told]], wanted: str) -> list[tuple[str, str]]:
    """(place, keyword) of all that has a status, in the order of the schemas."""
    found: list[tuple[str, str]] = []
    for origin, one in all_told:
        if all(status != wanted for _, status in one.counts):
            continue
        last = ""
        for shared, rest, there in one.places:
            last = last[:shared] + rest
            found += [(at(origin, last), keyword) for keyword, status, _ in there if status == wanted]
    return found


def misspelt(all_told: Iterable[tuple[str, Told]]) -> list[tuple[str, str, str]]:
    """(place, name, keyword that was meant) of names that are no keywords and one letter away from one, each once."""
    found: dict[str, tuple[str, str, str]] = {}
    for origin, one in all_told:
        names = {name: word for name, status in one.counts if status == "annotation" and (word := meant(name))}
        if not names.keys() - found.keys():
            continue
        last = ""
        for shared, rest, there in one.places:
            last = last[:shared] + rest
            for name, _, _ in there:
                if name in names:
                    found.setdefault(name, (at(origin, last), name, names[name]))
    return list(found.values())
