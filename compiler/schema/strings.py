"""Strings as JSON text: characters, minimal escapes, quoting for Lark.

Leaves out   patterns (patterns.py), which strings are allowed (shapes.py).
Invariants   ``spelled`` is what ``json.dumps(text, ensure_ascii=False)`` writes between the quotes; the look of a
             string with minimal escapes is unique, so different texts are different strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache

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

_ESCAPED = str.maketrans({char: "\\" + char for char in "\\.^$*+?{}[]|()/"} | {'"': "\\x22"})
"""Lark drops one of two backslashes before a quote, so a quote is never written as itself."""


def spelled(text: str) -> str:
    """The text with minimal escapes, without quotes."""
    return _encode(text)[1:-1]


@lru_cache(4096)
def quoted(text: str) -> str:
    """A Lark literal or expression for the JSON string of ``text``, quotes included."""
    inner = spelled(text)
    if inner.isprintable() and "\\" not in inner:
        return f'"\\"{inner}\\""'
    return f'/"(?:{inner.translate(_ESCAPED)})"/'


def tails(texts: Iterable[str]) -> Regex:
    """The rest of the JSON string of one of several texts, closing quote included."""
    return concat(union(*(exactly(spelled(text)) for text in texts)), QUOTE)


def alternatives(texts: Iterable[str]) -> Regex:
    """The JSON strings of several texts."""
    return concat(QUOTE, tails(texts))


def repeated(item: str, low: int, high: int | None) -> str:
    """``low`` to ``high`` copies of an item as Lark writes it."""
    if high is None:
        return f"{item}*" if low == 0 else f"{item}+" if low == 1 else f"{item}~{low} {item}*"
    if high == 0:
        return ""
    if (low, high) == (0, 1):
        return f"{item}?"
    if low == high:
        return item if low == 1 else f"{item}~{low}"
    return f"{item}~{low}..{high}"


def literal(text: str) -> str:
    """A Lark string."""
    return _encode(text)
