"""The nodes of regular expressions over code points, and how to put them together.

Leaves out   reading them (parser.py), writing them (printer.py), their automata (../terminals/terminal.py).
Invariants   nodes are frozen and compared by value, with the hash kept; those built by ``concat``, ``union`` and
             ``repeat`` are in normal form: no Concat in a Concat, no Union in a Union, at most one Chars in a Union,
             never exactly one item, no Repeat of 1..1 or of 0..0. ``EMPTY`` is the empty text, ``NOTHING`` no text.
             Only the language is kept: captures and order of alternatives are dropped, greed too unless asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from ..budget import look
from ..errors import UnsupportedError
from . import charset
from .charset import Ranges

_MOST_KEPT = 4096  # characters
MOST_TIMES = 1 << 29
"""The bounds of a repeat are below it: there is no text of so many."""


def _kept_hash(self: object) -> int:
    try:
        return self._hash  # type: ignore[attr-defined]
    except AttributeError:
        # The tuple of fields, as dataclasses would; kept because a terminal can have ten thousand nodes.
        fields = self.__dataclass_fields__  # type: ignore[attr-defined]
        value = hash((_ORDER[type(self).__name__], *(getattr(self, name) for name in fields)))
        object.__setattr__(self, "_hash", value)
        return value


@dataclass(frozen=True)
class Chars:
    """One code point of a set."""

    ranges: Ranges
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Concat:
    """All items in order; no items is the empty text."""

    items: tuple[Regex, ...]
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Union:
    """One of the options (at least two)."""

    options: tuple[Regex, ...]
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Repeat:
    """``low`` to ``high`` copies; ``high`` None is without bound. Only ``shortest`` gives ``lazy`` a sense."""

    item: Regex
    low: int
    high: int | None
    lazy: bool = False
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Look:
    """Nothing read, if the text from here (or up to here) starts (or ends) with the item; or if it does not."""

    item: Regex
    ahead: bool = True
    negative: bool = False
    __hash__ = _kept_hash


@dataclass(frozen=True)
class Start:
    r"""Nothing read, at the start of the text (``\A``)."""

    __hash__ = _kept_hash


@dataclass(frozen=True)
class End:
    r"""Nothing read, at the very end of the text (``\Z``)."""

    __hash__ = _kept_hash


@dataclass(frozen=True)
class WordBoundary:
    r"""Nothing read, between a word character and another (``\b``), or not there (``\B``)."""

    negative: bool = False
    ascii: bool = False
    __hash__ = _kept_hash


Regex: TypeAlias = Chars | Concat | Union | Repeat | Look | Start | End | WordBoundary

_KINDS = (Chars, Concat, Union, Repeat, Look, Start, End, WordBoundary)
_ORDER = {kind.__name__: n for n, kind in enumerate(_KINDS)}

EMPTY = Concat(())
NOTHING = Chars(())
ANY = Chars(charset.ALL)
START = Start()
END = End()


def concat(*items: Regex) -> Regex:
    """Items in order, in normal form."""
    flat: list[Regex] = []
    for item in items:
        if type(item) is Concat:
            flat.extend(item.items)
        else:
            flat.append(item)
    return flat[0] if len(flat) == 1 else Concat(tuple(flat))


def union(*options: Regex) -> Regex:
    """One of the options, in normal form: sets of characters are joined where the first of them stood."""
    flat: dict[Regex, None] = {}
    sets: list[Ranges] = []
    at: Chars | None = None
    for option in options:
        for one in option.options if type(option) is Union else (option,):
            if type(one) is Chars:
                sets.append(one.ranges)
                at = at or one
                flat.setdefault(at)
            else:
                flat.setdefault(one)
    if at is None:
        parts = tuple(flat)
    else:
        joined = Chars(sets[0] if len(sets) == 1 else charset.union(*sets))
        parts = tuple(joined if one is at else one for one in flat)
        if not joined.ranges and len(parts) > 1:
            parts = tuple(one for one in parts if one is not joined)
    if not parts:
        return NOTHING
    return parts[0] if len(parts) == 1 else Union(parts)


def repeat(item: Regex, low: int, high: int | None, lazy: bool = False) -> Regex:
    """``low`` to ``high`` copies of the item, in normal form."""
    if (low, high) == (1, 1) or item == EMPTY:
        return item
    return EMPTY if high == 0 else Repeat(item, low, high, lazy)


@lru_cache(_MOST_KEPT)
def character(text: str) -> Chars:
    """Exactly this character. A lone surrogate matches nothing."""
    return Chars(charset.single(ord(text)))


def literal(text: str) -> Regex:
    """Exactly this text; see ``character``."""
    return character(text) if len(text) == 1 else Concat(tuple(map(character, text)))


def literal_text(regex: Regex) -> str | None:
    """The one text of an expression that is plainly a literal, else None."""
    out: list[int] = []
    for item in regex.items if type(regex) is Concat else (regex,):
        if type(item) is not Chars or len(item.ranges) != 1:
            return None
        low, high = item.ranges[0]
        if low != high:
            return None
        out.append(low)
    return "".join(map(chr, out))


def nests_deeper(regex: Regex, most: int) -> bool:
    """Whether there is a node so many nodes inside of others."""
    level: list[Regex] = [regex]
    for _ in range(most + 1):
        below: dict[int, Regex] = {}  # by identity, as nodes are shared
        for one in level:
            if isinstance(one, Concat | Union):
                parts = one.items if isinstance(one, Concat) else one.options
                below.update((id(part), part) for part in parts if type(part) is not Chars)
            elif isinstance(one, Repeat | Look):
                below[id(one.item)] = one.item
        if not below:
            return False
        level = list(below.values())
    return True


@lru_cache(1024)  # most tools have the same few
def size(regex: Regex) -> int:
    """How many nodes an expression has."""
    count, todo = 0, [regex]
    while todo:
        look()
        one = todo.pop()
        count += 1
        if isinstance(one, Concat | Union):
            parts = one.items if isinstance(one, Concat) else one.options
            inner = [part for part in parts if type(part) is not Chars]
            count += len(parts) - len(inner)
            todo += inner
        elif isinstance(one, Repeat | Look):
            todo.append(one.item)
    return count


def lengths(regex: Regex) -> tuple[int, int | None]:
    """The least and the most characters that a match has; None: any number. What looks say is not looked at."""
    if type(regex) is Chars:
        return 1, 1
    if type(regex) is Concat:
        each = [lengths(item) for item in regex.items]
        most = [high for _, high in each if high is not None]
        return sum(low for low, _ in each), sum(most) if len(most) == len(each) else None
    if type(regex) is Union:
        each = [lengths(option) for option in regex.options]
        most = [high for _, high in each if high is not None]
        return min(low for low, _ in each), max(most) if len(most) == len(each) else None
    if type(regex) is Repeat:
        least, longest = lengths(regex.item)
        if longest == 0 or regex.high == 0:
            return 0, 0
        return least * regex.low, None if longest is None or regex.high is None else longest * regex.high
    return 0, 0


def is_held(regex: Regex, edge: Regex) -> bool:
    """Whether every match begins at the start of the text (``edge`` is START) or ends at its end (END)."""
    if type(regex) is Union:
        return all(is_held(option, edge) for option in regex.options)
    if type(regex) is Concat:
        for item in regex.items if edge is START else reversed(regex.items):
            if is_held(item, edge):
                return True
            if lengths(item) != (0, 0):
                return False
    return regex == edge


def needed(items: Sequence[Regex], first: bool) -> tuple[Regex, ...]:
    """What a search has to find of a sequence, if anything may stand before it (``first``), else behind it.

    Where there is a match, there is one in which the repeats at that end are no more than they must be.
    A search for ``x.{1,500}`` would follow 500 beginnings at once, one for ``x.`` does not.
    """
    kept = list(items)
    at = 0 if first else -1
    while kept:
        less = _needed(kept[at], first)
        if less != EMPTY:
            kept[at] = less
            break
        del kept[at]
    return tuple(kept)


def _needed(regex: Regex, first: bool) -> Regex:
    if type(regex) is Concat:
        return concat(*needed(regex.items, first))
    if type(regex) is Union:
        options = [_needed(option, first) for option in regex.options]
        return EMPTY if EMPTY in options else union(*options)
    if type(regex) is Repeat:
        less = EMPTY if regex.low == 0 else _needed(regex.item, first)
        if less == EMPTY:
            return EMPTY
        others = repeat(regex.item, regex.low - 1, regex.low - 1)
        return concat(less, others) if first else concat(others, less)
    return regex


_MOST_COPIES = 16  # of what holds lazy repeats


def shortest(regex: Regex, after: Regex = EMPTY) -> Regex:
    """Give lazy repeats their sense: ``x*?y`` stops at the first ``y``, so it is ``(?:(?!y)x)*y``.

    ``after`` is what follows the expression. Copies of what holds lazy repeats are written out, as what follows each is
    another text. Lazy repeats inside looks become plain ones.

    Raises UnsupportedError: there are many such copies.
    """
    if not _is_lazy(regex):
        return regex
    if type(regex) is Concat:
        out: list[Regex] = []
        for item in reversed(regex.items):
            look()
            out.append(shortest(item, after))
            after = concat(_without_lazy(item), after)  # where that is found, the shortest is, too
        return concat(*reversed(out))
    if type(regex) is Union:
        return union(*(shortest(option, after) for option in regex.options))
    return _shortest_copies(regex, after) if type(regex) is Repeat else _without_lazy(regex)


def _shortest_copies(regex: Repeat, after: Regex) -> Regex:
    """`shortest` of a repeat that is lazy, or holds one that is."""
    item, low, high = _without_lazy(regex.item), regex.low, regex.high

    def with_next(copy: Regex) -> Regex:
        """One more copy; a lazy repeat has it only where what follows cannot be read."""
        return concat(Look(after, negative=True), copy) if regex.lazy else copy

    if not _is_lazy(regex.item):
        return concat(repeat(item, low, low), repeat(with_next(item), 0, None if high is None else high - low))
    if max(low, high or 0) > _MOST_COPIES:
        raise UnsupportedError(
            f"a repeat of more than {_MOST_COPIES} copies holds a lazy one",
            hint="lower its bound, or say with a class of characters where the inner repeat ends",
        )
    more: Regex = EMPTY
    if high is None:
        inner = _not_empty(regex.item)
        one = shortest(inner, concat(repeat(item, 0, None), after))
        if type(inner) is Repeat and inner != regex.item and inner.lazy:
            # It would be empty, and the last, if what follows could be read.
            one = concat(Look(after, negative=True), one)
        more = repeat(with_next(one), 0, None)
    else:
        for left in range(high - low):
            look()
            copy = shortest(regex.item, concat(repeat(item, 0, left), after))
            more = repeat(concat(with_next(copy), more), 0, 1)
    for left in range(low):
        look()
        rest = repeat(item, left, None if high is None else left + high - low)
        more = concat(shortest(regex.item, concat(rest, after)), more)
    return more


def _not_empty(item: Regex) -> Regex:
    """What a repeat without a bound repeats, but for the empty text: behind an empty copy, engines make no other.

    Raises UnsupportedError: it may be empty otherwise than as a repeat of nothing.
    """
    if lengths(item)[0]:
        return item
    if type(item) is Repeat and item.low == 0 and lengths(item.item)[0]:
        return replace(item, low=1)
    raise UnsupportedError(
        "an unbounded repeat of what may be empty holds a lazy repeat",
        hint="let each copy have a character, as in (?:x+?)* for (?:x*?)*",
    )


def _is_lazy(regex: Regex) -> bool:
    """Whether a repeat in it is lazy."""
    todo = [regex]
    while todo:
        look()
        one = todo.pop()
        if type(one) is Repeat and one.lazy:
            return True
        if type(one) is Concat:
            todo += [part for part in one.items if type(part) is not Chars]
        elif type(one) is Union:
            todo += [part for part in one.options if type(part) is not Chars]
        elif type(one) is Repeat or type(one) is Look:
            todo.append(one.item)
    return False


def _without_lazy(regex: Regex) -> Regex:
    if type(regex) is Concat:
        return concat(*map(_without_lazy, regex.items))
    if type(regex) is Union:
        return union(*map(_without_lazy, regex.options))
    if type(regex) is Repeat:
        return repeat(_without_lazy(regex.item), regex.low, regex.high)
    return Look(_without_lazy(regex.item), regex.ahead, regex.negative) if type(regex) is Look else regex
