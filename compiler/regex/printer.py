"""Nodes → text in the syntax of Python's ``re``, fit to stand in a Lark file.

Leaves out   the nodes (nodes.py), reading them back (parser.py).
"""

from __future__ import annotations

from ..budget import look
from . import charset
from .charset import Ranges
from .nodes import Chars, Concat, End, Look, Regex, Repeat, Start, Union, WordBoundary

_PLAIN = frozenset("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_ ,:;<>=!@%'`")
_NAMED = {10: "\\n", 13: "\\r", 9: "\\t"}


def _char_text(code: int) -> str:
    one = chr(code)
    if one in _PLAIN:
        return one
    if code in _NAMED:
        return _NAMED[code]
    if 0x20 < code < 0x7F:
        # Lark drops one of two backslashes before a quote, so a quote is never written as itself.
        return "\\x22" if one == '"' else "\\" + one
    if code > 0x7F and one.isprintable():
        return one
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _chars_text(ranges: Ranges) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _char_text(ranges[0][0])
    if len(ranges) > 50:
        for name, table in (("\\w", charset.python_word()), ("\\d", charset.python_digit())):
            if ranges == table:
                return name
            if ranges == charset.complement(table):
                return name.upper()
    inverse = charset.complement(ranges)
    negative = len(inverse) < len(ranges) and bool(inverse)
    shown = list(inverse if negative else ranges)
    if not shown:
        return "[^\\x00-\\U0010ffff]"
    out: list[str] = []
    for n, (low, high) in enumerate(shown):
        if low == 0xE000 and n and shown[n - 1][1] == 0xD7FF:
            continue
        if high == 0xD7FF and n + 1 < len(shown) and shown[n + 1][0] == 0xE000:
            high = shown[n + 1][1]
        dash = "-" if high > low + 1 else ""
        out.append(_char_text(low) + ((dash + _char_text(high)) if high > low else ""))
    return f"[{'^' if negative else ''}{''.join(out)}]"


def to_text(regex: Regex) -> str:
    """The expression in Python's ``re`` syntax, for use between the slashes of a Lark terminal.

    Every slash, quote, line end and unprintable is escaped so that Lark's own unescaping leaves it alone. Look-behinds
    of varying width are written, though Python's ``re`` (and Lark, which asks it) would refuse them.
    """
    text = _text(regex)
    return text or "(?:)"


def _text(regex: Regex) -> str:
    if type(regex) is Chars:
        return _chars_text(regex.ranges)
    if type(regex) is Concat:
        out = ""
        look()
        for n, item in enumerate(regex.items):  # no generator: nested expressions have half as many frames
            if n & 63 == 63:
                look()
            out += f"(?:{_text(item)})" if type(item) in (Union, Concat) else _text(item)
        return out
    if type(regex) is Union:
        options = []
        for option in regex.options:
            options.append(f"(?:{_text(option)})" if type(option) is Union else _text(option))
        return "|".join(options)
    if type(regex) is Repeat:
        low, high = regex.low, regex.high
        count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((low, high))
        if count is None:
            count = f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"
        inner = _text(regex.item)
        return (inner if type(regex.item) is Chars else f"(?:{inner})") + count + ("?" if regex.lazy else "")
    if type(regex) is Look:
        return f"(?{'' if regex.ahead else '<'}{'!' if regex.negative else '='}{_text(regex.item)})"
    if type(regex) is Start:
        return "\\A"
    if type(regex) is End:
        return "\\Z"
    assert type(regex) is WordBoundary
    shown = "\\B" if regex.negative else "\\b"
    return f"(?a:{shown})" if regex.ascii else shown
