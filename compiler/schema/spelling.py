"""How the characters of a string are spelled, each in one way, and what ends the string's text.

Leaves out   patterns (patterns.py), the marks around a string (encoding.py), free strings with escapes of any kind.
Invariants   no character's spelling begins another's, so a text is read in one way only; what ends a text is the
             beginning of no character: a quote, or the end of the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from ..regex import END, Chars, Regex, charset, concat, literal, union
from ..regex.charset import Ranges


@dataclass(frozen=True)
class Spelling:
    """Characters as text.

    Attributes:
        raw: characters that stand for themselves.
        escapes: (code point, spelling) of others; what is in neither cannot be written.
        end: what ends a string's text, in a terminal.
    """

    raw: Ranges
    escapes: tuple[tuple[int, str], ...] = ()
    end: Regex = END

    def character(self, ranges: Ranges) -> Regex:
        """One character of a set, as it is spelled."""
        return _character(self, ranges)

    def spell(self, text: str) -> str | None:
        """The spelling of a text; None where one of its characters cannot be written."""
        escapes = dict(self.escapes)
        out = []
        for char in text:
            code = ord(char)
            if code not in escapes and not charset.contains(self.raw, code):
                return None
            out.append(escapes.get(code, char))
        return "".join(out)


@lru_cache(maxsize=4096)
def _character(spelling: Spelling, ranges: Ranges) -> Regex:
    raw = charset.intersection(ranges, spelling.raw)
    groups: dict[str, list[int]] = {}
    for code, escape in spelling.escapes:
        if charset.contains(ranges, code):
            groups.setdefault(escape[:-1], []).append(ord(escape[-1]))
    escapes = [concat(literal(head), Chars(_set(last))) for head, last in groups.items()]
    return union(*([Chars(raw)] if raw else []), *escapes)


def _set(codes: Iterable[int]) -> Ranges:
    return charset.normal((code, code) for code in codes)


def _escapes(short: dict[int, str], controls: Iterable[int], numbered: str) -> tuple[tuple[int, str], ...]:
    named = [(code, "\\" + letter) for code, letter in short.items()]
    return (*named, *((code, numbered.format(code)) for code in controls if code not in short))


JSON = Spelling(
    charset.complement(((0, 31), (34, 34), (92, 92))),
    _escapes({8: "b", 9: "t", 10: "n", 12: "f", 13: "r", 34: '"', 92: "\\"}, range(32), "\\u{:04x}"),
    Chars(((34, 34),)),
)
"""JSON with the escapes that it needs and no others; the closing quote is part of the terminal."""

RAW = Spelling(charset.ALL)
"""Every character as itself."""


def python_spelling(quote: str) -> Spelling:
    """A Python string between two of these quotes, escaped as ``repr`` does it; what is beyond ASCII stays as it is."""
    short = {9: "t", 10: "n", 13: "r", ord(quote): quote, 92: "\\"}
    controls = [*range(32), 127]
    raw = charset.complement(_set([*controls, *short]))
    return Spelling(raw, _escapes(short, controls, "\\x{:02x}"))
