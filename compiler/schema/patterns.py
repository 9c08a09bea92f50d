"""Patterns: ECMA-262 expressions about a string's value, rewritten to speak about its text, as JSON or otherwise.

Leaves out   parsing expressions (../regex), the rewriting (assertions.py), lengths and enums (writer.py).
Invariants   the expression that ``content`` gives matches from the first character of the string up to and with what
             ends it.
Source       ECMA-262 2024, 22.2; search semantics as JSON Schema has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ..errors import GrammarError, SchemaError, ToolcError, UnsupportedError
from ..regex import END, START, Regex, is_held, lengths, may_meet, parse_regex, to_text
from .assertions import Rewriter
from .spelling import JSON, Spelling

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
def is_supported(pattern: str) -> bool:
    """False for an expression that can be read and not be compiled; one that is broken is left to who uses it."""
    try:
        for ahead in (False, True):
            _content(pattern, ahead, JSON)
    except UnsupportedError:
        return False
    except SchemaError:
        pass
    return True


@lru_cache(maxsize=4096)
def searcher(pattern: str, place: str) -> Callable[[str], bool]:
    """A function that says whether the pattern is found in a text."""
    text = to_text(parse(pattern, place)).replace(r"(?a:\B)", r"(?!(?a:\b))")  # Python's \B is not in empty texts
    try:
        found = re.compile(text).search
    except (re.error, RecursionError):
        raise UnsupportedError("this pattern cannot be applied to a given value", place=place) from None
    return lambda text: found(text) is not None


def content(pattern: str, place: str, ahead: bool = False, spelling: Spelling = JSON) -> Regex:
    """An expression for the text, with what ends it, of all strings in which the pattern is found.

    With ``ahead`` it is to stand in a look-ahead, and does not go on to the end where the pattern does not.
    """
    try:
        return _content(pattern, ahead, spelling)
    except ToolcError as error:
        error.place = place
        raise


@lru_cache(maxsize=4096)
def _content(pattern: str, ahead: bool, spelling: Spelling) -> Regex:
    """The same for any place."""
    return Rewriter(spelling).found(parse(pattern, ""), ahead)


@lru_cache(maxsize=4096)
def text_lengths(pattern: str) -> tuple[int, int | None] | None:
    """No string in which the pattern is found is shorter than the first, or longer than the second (None: any).

    None for a pattern that cannot be read, which is an error for who uses it, with its place.
    """
    try:
        regex = parse(pattern, "")
    except ToolcError:
        return None
    low, high = lengths(regex)
    return low, high if is_held(regex, START) and is_held(regex, END) else None


@lru_cache(maxsize=4096)
def may_both_match(pattern: str, place: str, other: str, other_place: str) -> bool:
    """Whether some string may have a match of both patterns; False only if surely none has."""
    one, two = (Rewriter(JSON, at).found(parse(text, at)) for text, at in ((pattern, place), (other, other_place)))
    return may_meet(one, two)
