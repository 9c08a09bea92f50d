"""Patterns: ECMA-262 expressions about a string's value, rewritten to speak about its text, as JSON or otherwise.

Leaves out   parsing expressions (../regex), how characters are spelled (spelling.py), lengths and enums (writer.py).
Invariants   the expression that ``content`` gives matches from the first character of the string up to and with what
             ends it: in JSON the closing quote, the only ``"`` at the start of a character, so End is a look at it;
             anchors are resolved by distributing the unions that hold them, within MAX_ALTERNATIVES.
Source       ECMA-262 2024, 22.2; search semantics as JSON Schema has them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import lru_cache

from ..errors import GrammarError, SchemaError, ToolcError, UnsupportedError
from ..regex import (
    NOTHING,
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
    may_meet,
    parse_regex,
    repeat,
    to_text,
    union,
)
from ..regex.charset import Ranges
from .spelling import JSON, Spelling

MAX_ALTERNATIVES = 256
"""Alternatives that unions around anchors may multiply to in one pattern."""

_WORD = charset.ASCII_WORD

Flat = tuple[Regex, ...]


_parsed = lru_cache(maxsize=4096)(parse_regex)


def parse(pattern: str, place: str) -> Regex:
    """The expression of a pattern, errors told at ``place``."""
    try:
        return _parsed(pattern, "", "ecma")
    except GrammarError as error:
        raise SchemaError(
            f"{error.message} /{pattern}/", place=place, found=error.found, expected=error.expected, hint=error.hint
        ) from None
    except UnsupportedError as error:
        raise UnsupportedError(error.message, place=place, hint=error.hint) from None


@lru_cache(maxsize=4096)
def searcher(pattern: str, place: str) -> Callable[[str], bool]:
    """A function that says whether the pattern is found in a text."""
    regex = parse(pattern, place)
    try:
        found = re.compile(to_text(regex)).search
    except (re.error, RecursionError):
        raise UnsupportedError("this pattern cannot be applied to a given value", place=place) from None
    return lambda text: found(text) is not None


def content(pattern: str, place: str, ahead: bool = False, spelling: Spelling = JSON) -> str:
    """An expression for the text, with what ends it, of all strings in which the pattern is found.

    With ``ahead`` it is to stand in a look-ahead, and does not go on to the end where the pattern does not.
    """
    try:
        return _content(pattern, ahead, spelling)
    except ToolcError as error:
        error.place = place
        raise


@lru_cache(maxsize=4096)
def _content(pattern: str, ahead: bool, spelling: Spelling) -> str:
    """The same for any place."""
    text = to_text(_Rewriter("", spelling).found(parse(pattern, ""), ahead))
    return text if ahead else f"(?:{text})"


@lru_cache(maxsize=4096)
def may_both_match(pattern: str, place: str, other: str, other_place: str) -> bool:
    """Whether some string may have a match of both patterns; False only if surely none has."""
    one, two = (_Rewriter(at, JSON).found(parse(text, at)) for text, at in ((pattern, place), (other, other_place)))
    return may_meet(one, two)


def _anchored(regex: Regex) -> bool:
    """Whether an anchor or word boundary stands in it, outside look-arounds."""
    stack = [regex]
    while stack:
        one = stack.pop()
        if isinstance(one, (Start, End, WordBoundary)):
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
        return all(_nullable(item) for item in regex.items)
    if isinstance(regex, Union):
        return any(_nullable(option) for option in regex.options)
    return not isinstance(regex, Repeat) or regex.low == 0 or _nullable(regex.item)


class _Rewriter:
    def __init__(self, place: str, spelling: Spelling) -> None:
        self.place = place
        self.spelling = spelling
        self.any = repeat(spelling.character(charset.ALL), 0, None)

    def refuse(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{what} not supported in a pattern", place=self.place)

    def found(self, regex: Regex, ahead: bool = False) -> Regex:
        """The texts, closing quote included (but see ``content``), in which the expression is found."""
        options: list[Regex] = []
        for flat in self.flatten(regex):
            anchors = self.resolve(flat)
            if anchors is None:
                continue
            start, items, end = anchors
            for held, plain in self.look_back(items, start):
                body = [self.rewrite(item) for item in plain]
                tail = [self.spelling.end] if end else [] if ahead else [self.any, self.spelling.end]
                options.append(concat(*([] if held else [self.any]), *body, *tail))
        return union(*options) if options else NOTHING

    def flatten(self, regex: Regex) -> list[Flat]:
        """Alternatives as flat sequences, with every anchor an item of its own."""
        if isinstance(regex, Union) and _anchored(regex):
            return self._limit([flat for option in regex.options for flat in self.flatten(option)])
        if isinstance(regex, Concat):
            done: list[Flat] = [()]
            for item in regex.items:
                options = self.flatten(item)
                done = self._limit([head + tail for head in done for tail in options])
            return done
        if isinstance(regex, Repeat) and _anchored(regex):
            if regex.high == 1:
                return [(), *self.flatten(regex.item)]
            return self._limit(self._repeated(regex))
        return [(regex,)]

    def _repeated(self, regex: Repeat) -> list[Flat]:
        """A repeated group with anchors: only one of its turns can hold the start, and only one the end.

        Turns before the one and behind the other match the empty text. Where an anchored turn can do so there, it
        makes up for any number of turns that are missing.
        """
        if _looks(regex.item):
            raise self.refuse("an anchor and a look-around in one repeated group are")
        plain: list[Regex] = []
        firsts: list[Flat] = []
        lasts: list[Flat] = []
        only: list[Flat] = []
        for flat in self.flatten(regex.item):
            start, end = (any(isinstance(item, anchor) for item in flat) for anchor in (Start, End))
            if start or end:
                (only if start and end else firsts if start else lasts).append(flat)
            else:
                plain.append(concat(*flat))

        def can_be_empty(options: list[Flat]) -> bool:
            return any(all(map(_nullable, flat)) for flat in options)

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
        if regex.low <= 1 or can_be_empty([*firsts, *lasts, *only]) or any(map(_nullable, plain)):
            found += only
        return found

    def _limit(self, options: list[Flat]) -> list[Flat]:
        if len(options) > MAX_ALTERNATIVES:
            raise self.refuse("anchors in so many alternatives are")
        return list(dict.fromkeys(options))

    def resolve(self, flat: Flat) -> tuple[bool, Flat, bool] | None:
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
            elif not isinstance(item, (Start, End, Chars)) and _looks(item):
                raise self.refuse("a look-around in an optional group beside an anchor is")
        return kept

    # -- word boundaries and looks back

    def look_back(self, items: Flat, start: bool) -> list[tuple[bool, Flat]]:
        r"""The sequence without ``\b``, ``\B``, ``(?<=c)`` and ``(?<!c)``: split by the character that stands before.

        Returns:
            for each variant, whether it is held at the start of the string, and its items.
        """
        at = next((n for n, item in enumerate(items) if _looks_back(item)), None)
        if at is None:
            return [(start, items)]
        mark, options = items[at], list[tuple[bool, Flat]]()
        if isinstance(mark, WordBoundary):
            inside = _WORD
        else:
            assert isinstance(mark, Look)
            if not isinstance(mark.item, Chars):
                raise self.refuse("a look-behind of more than one character is")
            inside = mark.item.ranges
        for held, before, ends in self.before(items[:at], start, inside):
            if isinstance(mark, WordBoundary):
                middle: Flat = (Look(Chars(_WORD), True, ends != mark.negative),)
            elif ends == mark.negative:
                continue
            else:
                middle = ()
            options.extend(self.look_back((*before, *middle, *items[at + 1 :]), held))
        if len(options) > MAX_ALTERNATIVES:
            raise self.refuse("so many word boundaries are")
        return options

    def before(self, items: Flat, start: bool, inside: Ranges) -> list[tuple[bool, Flat, bool]]:
        """Variants of what stands before a position, each with whether its last character is in a set."""
        outside = charset.complement(inside)
        if not items:
            if start:
                return [(True, (), False)]
            many = Repeat(Chars(charset.ALL), 0, None)
            return [(True, (), False), (True, (many, Chars(outside)), False), (True, (many, Chars(inside)), True)]
        *head, last = items
        if isinstance(last, Chars):
            parts = [(charset.intersection(last.ranges, half), half is inside) for half in (inside, outside)]
            return [(start, (*head, Chars(ranges)), ends) for ranges, ends in parts if ranges]
        if isinstance(last, Look):
            return [(held, (*found, last), ends) for held, found, ends in self.before(tuple(head), start, inside)]
        if isinstance(last, Concat):
            return self.before((*head, *last.items), start, inside)
        options: list[tuple[bool, Flat, bool]] = []
        if isinstance(last, Union):
            for option in last.options:
                options.extend(self.before((*head, option), start, inside))
        else:
            assert isinstance(last, Repeat)
            if last.low == 0:
                options.extend(self.before(tuple(head), start, inside))
            fewer = repeat(last.item, max(0, last.low - 1), None if last.high is None else last.high - 1)
            if _nullable(last.item):
                raise self.refuse("a word boundary after a repeated group is")
            options.extend(self.before((*head, fewer, last.item), start, inside))
        if len(options) > MAX_ALTERNATIVES:
            raise self.refuse("so many word boundaries are")
        return options

    # -- characters

    def rewrite(self, regex: Regex) -> Regex:
        """The expression about the spelled text; look-aheads may look at what ends it."""
        if isinstance(regex, Chars):
            return self.spelling.character(regex.ranges) if regex.ranges else NOTHING
        if isinstance(regex, Concat):
            return concat(*(self.rewrite(item) for item in regex.items))
        if isinstance(regex, Union):
            return union(*(self.rewrite(option) for option in regex.options))
        if isinstance(regex, Repeat):
            return repeat(self.rewrite(regex.item), regex.low, regex.high)
        if isinstance(regex, Look):
            if not regex.ahead:
                raise self.refuse("a look-behind is")
            return Look(self._ahead(regex.item), True, regex.negative)
        raise self.refuse("an anchor here is")

    def _ahead(self, regex: Regex) -> Regex:
        options: list[Regex] = []
        for flat in self.flatten(regex):
            if any(isinstance(item, Start) for item in flat):
                raise self.refuse("a start anchor in a look-ahead is")
            resolved = self.resolve(flat)
            if resolved is None:
                continue
            _, items, end = resolved
            if any(_looks_back(item) for item in items):
                raise self.refuse("a word boundary in a look-ahead is")
            options.append(concat(*(self.rewrite(item) for item in items), *([self.spelling.end] if end else [])))
        return union(*options) if options else NOTHING


def _looks_back(item: Regex) -> bool:
    return isinstance(item, WordBoundary) or (isinstance(item, Look) and not item.ahead)


def _looks(regex: Regex) -> bool:
    stack = [regex]
    while stack:
        one = stack.pop()
        if isinstance(one, (Look, WordBoundary)):
            return True
        if isinstance(one, (Concat, Union)):
            stack.extend(one.items if isinstance(one, Concat) else one.options)
        elif isinstance(one, Repeat):
            stack.append(one.item)
    return False
