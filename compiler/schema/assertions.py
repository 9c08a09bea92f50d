"""Anchors, word boundaries and look-arounds of patterns, rewritten so that only looks ahead are left.

A pattern is taken apart into flat sequences, in which every anchor is an item of its own. What stands before an anchor
for the start, and behind one for the end, matches the empty text. A look back at one character, which a word boundary
is too, splits what stands before it by its last character.

Leaves out   reading patterns, and what asks for them (patterns.py), how characters are spelled (spelling.py).
Invariants   the result is about the spelled text of the string and what ends it: in JSON the closing quote, the only
             ``"`` at the start of a character, so End is a look at it. Unions that hold anchors are distributed, within
             MAX_ALTERNATIVES. What cannot be said so is refused.
             ``at_start`` says of a place whether it is the start of the string, None where that is not known.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from ..budget import look
from ..errors import UnsupportedError
from ..regex import (
    ANY,
    END,
    NOTHING,
    START,
    Chars,
    Concat,
    End,
    Look,
    Regex,
    Repeat,
    Start,
    Union,
    WordBoundary,
    charset,
    concat,
    needed,
    repeat,
    union,
)
from ..regex.charset import Ranges
from .spelling import Spelling

MAX_ALTERNATIVES = 256
"""Alternatives that unions around anchors may multiply to in one pattern."""

_WORD = charset.ASCII_WORD
_MANY = repeat(ANY, 0, None)

Flat = tuple[Regex, ...]


def _looks_back(item: Regex) -> bool:
    return isinstance(item, WordBoundary) or (isinstance(item, Look) and not item.ahead)


def _holds(regex: Regex, kinds: tuple[type, ...], within_looks: bool = False) -> bool:
    """Whether a node of some kinds stands in it."""
    stack = [regex]
    while stack:
        one = stack.pop()
        if isinstance(one, kinds):
            return True
        if isinstance(one, (Concat, Union)):
            stack.extend(one.items if isinstance(one, Concat) else one.options)
        elif isinstance(one, Repeat) or (within_looks and isinstance(one, Look)):
            stack.append(one.item)
    return False


def _anchored(regex: Regex) -> bool:
    """Whether something in it asks for what stands before it, or for the end; looks ahead are left alone."""
    stack = [regex]
    while stack:
        one = stack.pop()
        if isinstance(one, (Start, End)) or _looks_back(one):
            return True
        if isinstance(one, (Concat, Union)):
            stack.extend(one.items if isinstance(one, Concat) else one.options)
        elif isinstance(one, Repeat):
            stack.append(one.item)
    return False


def _nullable(regex: Regex) -> bool:
    if isinstance(regex, Chars):
        return False
    if isinstance(regex, Concat):
        return all(map(_nullable, regex.items))
    if isinstance(regex, Union):
        return any(map(_nullable, regex.options))
    return not isinstance(regex, Repeat) or regex.low == 0 or _nullable(regex.item)


def _first_back(items: Flat) -> int | None:
    """The place of the first item that looks back."""
    return next((n for n, item in enumerate(items) if _looks_back(item)), None)


def _asks_for_start(items: Flat) -> bool:
    """Whether a look ahead from where the sequence may begin depends on whether that is the start of the string."""
    for item in items:
        if isinstance(item, Look) and _holds(item.item, (Start, WordBoundary), within_looks=True):
            return True
        if not _nullable(item):
            return False
    return False


class Rewriter:
    """Rewrites the patterns of one place for one spelling.

    Args:
        place: of the pattern, for errors.
    """

    def __init__(self, spelling: Spelling, place: str = "") -> None:
        self.place = place
        self.spelling = spelling
        self.any = repeat(spelling.character(charset.ALL), 0, None)

    def found(self, regex: Regex, ahead: bool = False) -> Regex:
        """The texts, with what ends them, in which the expression is found.

        With ``ahead`` they do not go on to the end where the expression does not.

        Raises:
            UnsupportedError: an assertion that cannot be rewritten.
        """
        options: list[Regex] = []
        for flat in self._flatten(regex):
            for start, found, end in self._placed(flat):
                items = found if end else needed(found, False)
                if not start and not any(map(_anchored, items)):
                    items = needed(items, True)
                for held, plain in self._look_back(items, start):
                    body = self._sequence(plain, held or None)
                    tail = [self.spelling.end] if end else [] if ahead else [self.any, self.spelling.end]
                    options.append(concat(*([] if held else [self.any]), body, *tail))
        return union(*options) if options else NOTHING

    def _refuse(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{what} not supported in a pattern", place=self.place)

    # -- anchors

    def _flatten(self, regex: Regex) -> list[Flat]:
        """Alternatives as flat sequences, with every anchor an item of its own."""
        if isinstance(regex, Union) and _anchored(regex):
            return self._limit([flat for option in regex.options for flat in self._flatten(option)])
        if isinstance(regex, Concat):
            done: list[list[Regex]] = [[]]
            for item in regex.items:
                options = self._flatten(item)
                if len(options) == 1:  # of nearly every item
                    for head in done:
                        head += options[0]
                else:
                    done = [*map(list, self._limit([(*head, *tail) for head in done for tail in options]))]
            return self._limit([*map(tuple, done)])
        if isinstance(regex, Repeat) and _anchored(regex):
            if regex.high == 1:
                return [(), *self._flatten(regex.item)]
            return self._limit(self._repeated(regex))
        if isinstance(regex, Look) and not regex.ahead:
            options_ = regex.item.options if isinstance(regex.item, Union) else (regex.item,)
            if START in options_:
                others = [option for option in options_ if option != START]
                looks = [Look(union(*others), False, regex.negative)] if others else []
                return [(Look(ANY, False), *looks)] if regex.negative else [(START,), *((look,) for look in looks)]
        return [(regex,)]

    def _repeated(self, regex: Repeat) -> list[Flat]:
        """A repeated group with anchors: only one of its turns can hold the start, and only one the end.

        Turns before the one and behind the other match the empty text. Where an anchored turn can do so there, it
        makes up for any number of turns that are missing. In plain turns nothing looks back any more.
        """
        plain: list[Regex] = []
        firsts: list[Flat] = []
        lasts: list[Flat] = []
        only: list[Flat] = []
        for flat in self._flatten(regex.item):
            start, end = (any(isinstance(item, anchor) for item in flat) for anchor in (Start, End))
            if start or end:
                (only if start and end else firsts if start else lasts).append(flat)
            else:
                plain += [concat(*items) for items in self._inner_looks(flat)]

        def can_be_empty(options: list[Flat]) -> bool:
            return any(all(map(_nullable, flat)) for flat in options)

        fills = can_be_empty([*firsts, *lasts, *only]) or any(map(_nullable, plain))
        if fills and (firsts or lasts or only) and _holds(regex.item, (Look, WordBoundary)):
            raise self._refuse("an anchor beside a look-around in a repeated group that may be empty is")

        def between(anchored: int, low: int) -> list[Flat]:
            """The plain turns beside so many anchored ones, as one sequence, or none where there cannot be as many."""
            high = None if regex.high is None else regex.high - anchored
            if (high is not None and high < low) or (low > 0 and not plain):
                return []
            return [(repeat(union(*plain), low, high),)] if plain else [()]

        found: list[Flat] = []
        for first, last in itertools.product([(), *firsts], [(), *lasts]):
            filled = (first and can_be_empty(firsts)) or (last and can_be_empty(lasts))
            anchored = bool(first) + bool(last)
            found += [
                (*first, *middle, *last) for middle in between(anchored, 0 if filled else max(0, regex.low - anchored))
            ]
        return found + only if regex.low <= 1 or fills else found

    def _limit(self, options: list[Flat]) -> list[Flat]:
        if len(options) > MAX_ALTERNATIVES:
            raise self._refuse("anchors in so many alternatives are")
        return list(dict.fromkeys(options))

    def _resolve(self, flat: Flat) -> tuple[bool, Flat, bool] | None:
        """Whether the sequence is held at the start, what remains, and whether at the end; None if it cannot match."""
        starts = [index for index, item in enumerate(flat) if isinstance(item, Start)]
        ends = [index for index, item in enumerate(flat) if isinstance(item, End)]
        begin = starts[-1] + 1 if starts else 0
        end = ends[0] if ends else len(flat)
        before, middle, behind = flat[:begin], flat[begin:end], flat[end:]
        if begin > end:  # the end stands before the start: only the empty text has both
            before, middle, behind = flat, (), ()
        if not all(map(_nullable, before + behind)):
            return None
        items = (*self._empty(before), *middle, *self._empty(behind))
        return bool(starts), items, bool(ends)

    def _empty(self, items: Flat) -> list[Regex]:
        """What items demand when they match nothing: the assertions among them."""
        kept: list[Regex] = []
        for item in items:
            if isinstance(item, (Look, WordBoundary)):
                kept.append(item)
            elif not isinstance(item, (Start, End, Chars)) and _holds(item, (Look, WordBoundary)):
                raise self._refuse("a look-around in an optional group beside an anchor is")
        return kept

    def _placed(self, flat: Flat) -> Iterator[tuple[bool, Flat, bool]]:
        """The sequence as `_resolve` gives it, with long looks back from the end made looks ahead from the start;
        begun at the start and behind it where that matters."""
        resolved = self._resolve(flat)
        if resolved is None:
            return
        start, items, end = resolved
        tail = len(items)
        while end and tail and isinstance(items[tail - 1], Look):
            tail -= 1
        long = [
            item
            for item in items[tail:]
            if isinstance(item, Look) and not item.ahead and not isinstance(item.item, Chars)
        ]
        if long:
            kept = [item for item in items[tail:] if item not in long]
            whole = [Look(concat(_MANY, item.item, END), True, item.negative) for item in long]
            items = (*whole, *([] if start else [_MANY]), *items[:tail], *kept)
            start = True
        if not start and _asks_for_start(items):
            yield True, items, end
            items = (ANY, *items)
        yield start, items, end

    # -- word boundaries and looks back

    def _look_back(self, items: Flat, start: bool) -> list[tuple[bool, Flat]]:
        r"""The sequence without ``\b``, ``\B``, ``(?<=c)`` and ``(?<!c)``: split by the character that stands before.

        Returns:
            for each variant, whether it is held at the start of the string, and its items.
        """
        todo, options = [(start, items)], list[tuple[bool, Flat]]()
        while todo:
            look()
            if len(todo) + len(options) > MAX_ALTERNATIVES:
                raise self._refuse("so many word boundaries are")
            start, items = todo.pop()
            at = _first_back(items)
            if at is None:
                options.append((start, items))
                continue
            mark, split = items[at], list[tuple[bool, Flat]]()
            if isinstance(mark, WordBoundary):
                inside = _WORD
            else:
                assert isinstance(mark, Look)
                if not isinstance(mark.item, Chars):
                    raise self._refuse("a look-behind of more than one character is")
                inside = mark.item.ranges
            for held, before, ends in self._before(items[:at], start, inside):
                if isinstance(mark, WordBoundary):
                    middle: Flat = (Look(Chars(_WORD), True, ends != mark.negative),)
                elif ends == mark.negative:
                    continue
                else:
                    middle = ()
                split.append((held, (*before, *middle, *items[at + 1 :])))
            todo += reversed(split)
        return options

    def _before(self, items: Flat, start: bool, inside: Ranges) -> list[tuple[bool, Flat, bool]]:
        """Variants of what stands before a position, each with whether its last character is in a set."""
        looks = len(items)
        while looks and isinstance(items[looks - 1], Look):
            looks -= 1
        items, behind = items[:looks], items[looks:]
        if behind:
            return [(held, (*found, *behind), ends) for held, found, ends in self._before(items, start, inside)]
        outside = charset.complement(inside)
        if not items:
            if start:
                return [(True, (), False)]
            return [(True, (), False), (True, (_MANY, Chars(outside)), False), (True, (_MANY, Chars(inside)), True)]
        *head, last = items
        if isinstance(last, Chars):
            parts = [(charset.intersection(last.ranges, half), half is inside) for half in (inside, outside)]
            return [(start, (*head, Chars(ranges)), ends) for ranges, ends in parts if ranges]
        if isinstance(last, Concat):
            return self._before((*head, *last.items), start, inside)
        options: list[tuple[bool, Flat, bool]] = []
        if isinstance(last, Union):
            for option in last.options:
                options.extend(self._before((*head, option), start, inside))
        else:
            assert isinstance(last, Repeat)
            if last.low == 0:
                options.extend(self._before(tuple(head), start, inside))
            fewer = repeat(last.item, max(0, last.low - 1), None if last.high is None else last.high - 1)
            if _nullable(last.item):
                raise self._refuse("a word boundary after a repeated group is")
            options.extend(self._before((*head, fewer, last.item), start, inside))
        if len(options) > MAX_ALTERNATIVES:
            raise self._refuse("so many word boundaries are")
        return options

    # -- characters

    def _sequence(self, items: Flat, at_start: bool | None) -> Regex:
        """The items about the spelled text; only their looks ahead assert something."""
        done = []
        for n, item in enumerate(items):
            if n & 63 == 0:
                look()
            done.append(self._rewrite(item, at_start))
            if not isinstance(item, Look) and at_start is not False:
                at_start = None if _nullable(item) else False
        return concat(*done)

    def _rewrite(self, regex: Regex, at_start: bool | None) -> Regex:
        """The expression about the spelled text; look-aheads may look at what ends it."""
        if isinstance(regex, Chars):
            return self.spelling.character(regex.ranges) if regex.ranges else NOTHING
        if isinstance(regex, Concat):
            return self._sequence(regex.items, at_start)
        if isinstance(regex, Union):
            return union(*(self._rewrite(option, at_start) for option in regex.options))
        if isinstance(regex, Repeat):
            later = False if at_start is False else None  # any turn but the first is not at the start
            return repeat(self._rewrite(regex.item, later), regex.low, regex.high)
        assert isinstance(regex, Look) and regex.ahead  # anchors and looks back are resolved
        return Look(self._ahead(regex.item, at_start), True, regex.negative)

    def _inner_looks(self, items: Flat, start: bool = False) -> list[Flat]:
        """The sequence without looks back, all of which look at a character of the sequence itself, or of nothing where
        it is held at the start."""
        at = _first_back(items)
        if at is not None and not start and all(map(_nullable, items[:at])):
            raise self._refuse("a look back from the start of a group or look-ahead is")
        return [plain for _, plain in self._look_back(items, True)]

    def _ahead(self, regex: Regex, at_start: bool | None) -> Regex:
        options: list[Regex] = []
        for flat in self._flatten(regex):
            resolved = self._resolve(flat)
            if resolved is None:
                continue
            start, items, end = resolved
            if start and at_start is None:
                raise self._refuse("a start anchor in a look-ahead in a repeated group is")
            if start and not at_start:
                continue
            for plain in self._inner_looks(items, at_start is True):
                options.append(concat(self._sequence(plain, at_start), *([self.spelling.end] if end else [])))
        return union(*options) if options else NOTHING
