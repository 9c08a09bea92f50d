"""Regular expressions over code points: nodes, a parser for two dialects, a printer, sets of code points."""

from __future__ import annotations

from .meet import may_meet
from .nodes import (
    ANY,
    EMPTY,
    END,
    MOST_TIMES,
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
    concat,
    is_held,
    lengths,
    literal,
    literal_text,
    needed,
    nests_deeper,
    repeat,
    shortest,
    size,
    union,
)
from .parser import parse_regex
from .printer import to_text

__all__ = [
    "ANY", "EMPTY", "END", "MOST_TIMES", "NOTHING", "START", "Chars", "Concat", "End", "Look", "Regex", "Repeat",
    "Start", "Union", "WordBoundary", "concat", "is_held", "lengths", "literal", "literal_text", "may_meet",
    "needed", "nests_deeper", "parse_regex", "repeat", "shortest", "size", "to_text", "union",
]  # fmt: skip
