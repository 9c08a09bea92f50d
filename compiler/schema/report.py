"""The keyword report: what became of every keyword of every schema, and the packed form that bundles carry.

Leaves out   which keywords there are (keywords.py), showing it (../commands/inspect.py).
Invariants   a row is (place, keyword, status, restrictions); a keyword stands once per place; ``unpack(pack(rows))`` is
             the rows; a packed report that is damaged is a BundleError.
Status       ``enforced``; ``annotation``: constrains nothing, in this draft or at all; ``any value``: a format that
             every value of its type has; ``dropped``: not enforced, by the option lenient.
Packed       [[(keyword, status, [restriction, ...]), ...], ...] once for each set of keywords that some place has, and
             [characters shared with the place before, the rest of the place, number of its set, ...].
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from decimal import Decimal
from typing import Any, TypeAlias

from ..errors import BundleError
from .formats import FORMATS
from .keywords import KEYWORDS

Row: TypeAlias = tuple[str, str, str, tuple[str, ...]]


def narrowed_by(keyword: str, value: Any) -> tuple[str, ...]:
    """The declared restrictions that may narrow a keyword with this value, in the order of keywords.py."""
    known = KEYWORDS.get(keyword)
    names = known.restrictions if known is not None else ()
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
                ("digits", any(_is_number(one) for one in held)),
            )
            if used
        )
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
            names = narrowed.get(key, ()) if status == "enforced" else ()
            if names not in held:
                held[names] = tuple(name for name in names if name in used)
            rows[key] = (place, keyword, status, held[names])
    return tuple(rows.values())


def pack(rows: Iterable[Row]) -> list[Any]:
    """The form that bundles carry."""
    at: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {}
    for place, keyword, status, names in rows:
        at.setdefault(place, []).append((keyword, status, names))
    number: dict[tuple[tuple[str, str, tuple[str, ...]], ...], int] = {}
    sets: list[Any] = []
    places: list[Any] = []
    last = ""
    for place, keywords in at.items():
        key = tuple(keywords)
        if key not in number:
            number[key] = len(sets)
            sets.append([[keyword, status, list(names)] for keyword, status, names in keywords])
        most = min(len(place), len(last))
        shared = most if place[:most] == last[:most] else next(n for n in range(most) if place[n] != last[n])
        places += [shared, place[shared:], number[key]]
        last = place
    return [sets, places]


def unpack(packed: Any) -> tuple[Row, ...]:
    """The rows of a packed report."""
    rows: list[Row] = []
    try:
        sets, places = packed
        last = ""
        for shared, rest, index in zip(places[::3], places[1::3], places[2::3], strict=True):
            if not (isinstance(shared, int) and 0 <= shared <= len(last) and isinstance(rest, str) and index >= 0):
                raise ValueError(f"the place after {last[:60]!r}")
            last = last[:shared] + rest
            for keyword, status, names in sets[index]:
                rows.append((last, str(keyword), str(status), tuple(map(str, names))))
    except (ValueError, TypeError, IndexError) as error:
        raise BundleError("the keyword report of this bundle is damaged", found=str(error)[:120]) from None
    return tuple(rows)
