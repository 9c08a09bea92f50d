"""Strings as JSON text: characters, minimal escapes.

Leaves out   patterns (patterns.py), which strings are allowed (shapes.py).
Invariants   ``spelled`` is what ``json.dumps(text, ensure_ascii=False)`` writes between the quotes; the look of a
             string with minimal escapes is unique, so different texts are different strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from ..ir.nodes import Expr, string
from ..regex import Regex, concat, parse_regex, repeat, union
from ..regex import literal as exactly

CHAR = parse_regex(
    r'[^"\\\x00-\x1f]|\\(?:["\\\/bfnrt]|u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}'
    r"|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}))"
)
"""One character of a free string: raw, or escaped in any way that JSON has; no lone surrogates."""

PLAIN = parse_regex(r'[^"\\\x00-\x1f]|\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))')
"""One character with minimal escapes."""

QUOTE = exactly('"')

PLAIN_TAIL = concat(repeat(PLAIN, 0, None), QUOTE)
"""The rest of a string with minimal escapes, closing quote included."""

_encode = json.JSONEncoder(ensure_ascii=False).encode


def spelled(text: str) -> str:
    """The text with minimal escapes, without quotes."""
    return _encode(text)[1:-1]


def quoted(text: str) -> Expr:
    """The JSON string of a text, quotes included."""
    return string(_encode(text))


def tails(texts: Iterable[str]) -> Regex:
    """The rest of the JSON string of one of several texts, closing quote included."""
    return concat(union(*(exactly(spelled(text)) for text in texts)), QUOTE)


def alternatives(texts: Iterable[str]) -> Regex:
    """The JSON strings of several texts."""
    return concat(QUOTE, tails(texts))
