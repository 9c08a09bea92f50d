"""Find the gaps between tokens of JSON in a text that is being read: there any blanks may stand, whatever masks allow.

A scanner looks only at brackets and strings; the bundle's tables say what else may stand there. In the text around
calls, a bracket begins JSON only if the bytes that may follow it continue JSON: that of ``[TOOL_CALLS]`` does not.

Leaves out   how a reader treats a blank in a gap, and which parts of the text are JSON: see reader.py.
Invariants   `place` looks at every byte once, however often it is called, except at a string that has not ended.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

from ..format.ops import PUSH, kind_of

if TYPE_CHECKING:
    from ..reference import Configuration

BLANKS = b" \n\t\r"
"""White space of JSON; what is written takes the first of them that may stand."""
_MOST_BLANKS = 256  # that a grammar may ask for in one place
_JSON = re.compile(rb'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)
_PYTHON = re.compile(rb'"(?:[^"\\]|\\.)*"|' rb"'(?:[^'\\]|\\.)*'" rb"|[\"'\[\](){}]", re.DOTALL)
_OPEN, _OPEN_PYTHON = re.compile(rb"[\[{]"), re.compile(rb"[\[({]")
_NOT_BLANK = re.compile(rb"[^ \t\n\r]")
_GOES_ON = {0x5B: b'{["]', 0x7B: b'"}'}  # behind [ and { of JSON around a call
_WORD = frozenset(b"+-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class Place(Enum):
    """Where a text ends, blanks aside: in JSON, behind a value of JSON, behind a bracket that may begin one, in a
    string of JSON, or outside of any JSON."""

    INSIDE = "inside"
    AFTER = "after"
    OPENING = "opening"
    STRING = "string"
    OUTSIDE = "outside"


def first_of(data: bytes | bytearray, begin: int) -> int:
    """Where what is no blank stands first from a place on; -1: nowhere."""
    found = _NOT_BLANK.search(data, begin)
    return found.start() if found else -1


def goes_on(bracket: int, following: bytes) -> bool:
    """Whether a bracket begins JSON, from the bytes that may stand behind it."""
    return set(following) <= {*_GOES_ON[bracket], *BLANKS}


def is_cut(before: int, after: int) -> bool:
    """Whether a blank between two bytes would stand inside of a number or a word."""
    return before in _WORD and after in _WORD


def fewest_blanks(at: Configuration, symbol: int) -> bytes | None:
    """The fewest blanks after which a symbol can be read; None where it cannot be. None of them opens a frame."""
    twin = at.copy()
    begin = at.state, at.counter, at.register
    wave, seen = [(begin, b"")], {begin}
    for _ in range(_MOST_BLANKS):
        after = []
        for here, blanks in wave:
            for blank in BLANKS:
                twin.state, twin.counter, twin.register = here
                op = twin.op(blank)
                if not op or kind_of(op) >= PUSH:
                    continue
                twin.step(op, 0)
                if twin.op(symbol):
                    return blanks + bytes((blank,))
                there = twin.state, twin.counter, twin.register
                if there not in seen:
                    seen.add(there)
                    after.append((there, blanks + bytes((blank,))))
        wave = after
        if not wave:
            return None
    return None


class Scanner:
    """Reads a text from a place on.

    Args:
        begin: the place.
        whole: all of it is JSON, else what stands in brackets.
        sure: any bracket begins JSON.
        python: strings are those of Python, and there are round brackets.
    """

    def __init__(self, begin: int, whole: bool = False, sure: bool = False, python: bool = False) -> None:
        self.key = begin, whole, sure, python
        self._at, self._depth, self._end = begin, int(whole), -1
        self._sure = sure or python
        self._tokens, self._open = (_PYTHON, _OPEN_PYTHON) if python else (_JSON, _OPEN)

    def copy(self) -> Scanner:
        """An independent one that has read the same."""
        twin = object.__new__(Scanner)
        twin.__dict__.update(self.__dict__)
        return twin

    def place(self, data: bytes | bytearray) -> Place:
        """Where a text ends that goes on from the one of the last time."""
        while self._at < len(data):
            found = (self._tokens if self._depth else self._open).search(data, self._at)
            if found is None:
                self._at = len(data)
                break
            token = found[0]
            if len(token) > 1:
                self._at = found.end()
            elif token in (b'"', b"'"):
                self._at = found.start()
                return Place.STRING
            elif self._depth:
                self._at = found.end()
                self._depth += 1 if token in b"[({" else -1
                if not self._depth:
                    self._end = self._at
            elif self._sure:
                self._at, self._depth = found.end(), 1
            else:
                behind = _NOT_BLANK.search(data, found.end())
                if behind is None:
                    self._at = found.start()
                    return Place.OPENING
                self._at, self._depth = found.end(), int(behind[0] in _GOES_ON[token[0]])
        if self._depth:
            return Place.INSIDE
        return Place.AFTER if self._end >= 0 and not _NOT_BLANK.search(data, self._end) else Place.OUTSIDE
