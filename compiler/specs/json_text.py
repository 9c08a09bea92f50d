"""JSON text → the value, or what is wrong with the text and where.

Leaves out   where the text is from (source.py), YAML (yaml_text.py), values that were never text (json_values.py).
Invariants   a value holds dict (text keys, each once), list, str, numbers (exact_numbers.py), bool and None, and nests
             at most MAX_DEPTH deep, so that recursion over it is safe.
Source       RFC 8259.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import SpecError
from .exact_numbers import MAX_DIGITS, TooLong, read_number
from .json_values import MAX_DEPTH, check_value, too_deep
from .model import quote

_PIECE = re.compile(r'"(?:[^"\\]+|\\.)*"?|[][{},:]|[^][{},:"\s]+', re.DOTALL)
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str, name: str) -> Any:
    """JSON text, strictly: no key twice, no NaN, no number beyond MAX_DIGITS, at most MAX_DEPTH deep."""
    if text.count("{") + text.count("[") > MAX_DEPTH:
        _check_depth(text, name)
    try:
        document = json.loads(
            text, object_pairs_hook=_once, parse_constant=_no_constant, parse_float=read_number, parse_int=_short
        )
    except json.JSONDecodeError as error:
        raise _syntax_error(text, name, error) from None
    except (_Refused, TooLong):
        raise _find_refused(text, name) from None
    if _HALF.search(text):  # the text itself is UTF-8, so only escapes can be halves
        check_value(document, name)
    return document


class _Refused(Exception):
    """Something that json reads and we do not; found again, with its place, by _find_refused."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise _Refused
    return out


def _no_constant(_: str) -> Any:
    raise _Refused


def digits(number: str) -> int:
    return len(number.lstrip("+-"))


def _short(text: str) -> int:
    if digits(text) > MAX_DIGITS:
        raise TooLong
    return int(text)


def _check_depth(text: str, name: str) -> None:
    depth = 0
    for piece in _PIECE.finditer(text):
        if (char := piece[0][0]) in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise too_deep(f"{name}:{_line_column(text, piece.start())}")
        elif char in "]}":
            depth -= 1


_NO_NUMBER = re.compile("NaN|-?Infinity")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?P<rest>(?:\.\d+)?(?:[eE][-+]?\d+)?)")


def _find_refused(text: str, name: str) -> SpecError:
    """Where the first thing of _Refused stands: json's hooks are not told."""

    def at(piece: re.Match[str]) -> str:
        return f"{name}:{_line_column(text, piece.start())}"

    keys: list[set[str] | None] = []
    before = ""
    # json reads a number as far as it is one; what is wrong behind it comes later.
    for piece in _PIECE.finditer(text):
        token = piece[0]
        if token == "{":
            keys.append(set())
        elif token == "[":
            keys.append(None)
        elif token in ("}", "]"):
            keys.pop()
        elif token[0] == '"' and before in ("{", ",") and keys and (seen := keys[-1]) is not None:
            key = json.loads(token)
            if key in seen:
                return SpecError(
                    f"the key {quote(key)} stands twice in one object",
                    place=at(piece),
                    expected="every key once",
                    hint=excerpt("remove or rename one", text, piece.start()),
                )
            seen.add(key)
        elif found := _NO_NUMBER.match(token):
            return SpecError(
                "JSON has no such number",
                place=at(piece),
                found=found[0],
                hint=excerpt("leave the keyword out, or write a number", text, piece.start()),
            )
        elif number := _NUMBER.match(token):
            if not number["rest"]:
                if digits(number[0]) > MAX_DIGITS:
                    return SpecError("this number is too long", place=at(piece), found=f"{digits(number[0]):,} digits")
            else:
                try:
                    read_number(number[0])
                except TooLong:
                    long = number[0][:40]
                    return SpecError("this number is too long", place=at(piece), found=long, expected=TooLong.expected)
        before = token
    raise AssertionError("json refused what the scan does not find")


_HINTS = (
    ("Illegal trailing comma", "remove the trailing comma", -1),
    ("Expecting property name", None, 0),
    ("Expecting value", None, 0),
    ("Expecting ',' delimiter", 'a comma is missing, or a quote inside a string is not written \\"', 0),
    ("Expecting ':' delimiter", "write a colon after the key", 0),
    ("Unterminated string", "close the string with a quote", 0),
    ("Invalid control character", "write \\n for a new line inside a string", 0),
    ("Invalid \\escape", "write \\\\ for a backslash", 0),
    ("Invalid \\uXXXX", "write four hexadecimal digits after \\u", 0),
    ("Extra data", "the document ends before this; put several tools into one array", 0),
)


def _syntax_error(text: str, name: str, error: json.JSONDecodeError) -> SpecError:
    at = error.pos
    hint: str | None = None
    for head, known, _ in _HINTS:
        if error.msg.startswith(head):
            hint = known
            break
    previous = text[:at].rstrip()
    if at < len(text) and text[at] in "}]" and previous.endswith(","):
        hint, at = "remove the trailing comma", len(previous) - 1
    elif error.msg.startswith("Illegal trailing comma"):
        pass
    elif not text.strip():
        hint = "the document is empty"
    elif at >= len(text.rstrip()):
        opened = _open_brackets(text)
        hint = f"the document ends too early; still open: {opened}" if opened else "the document ends too early"
    elif hint is None:
        hint = _value_hint(text, at)
    what = {"Extra data": "something follows the document"}.get(error.msg, error.msg[0].lower() + error.msg[1:])
    return SpecError(
        "this is not JSON: " + what.replace(" enclosed in double quotes", " in double quotes"),
        place=f"{name}:{_line_column(text, at)}",
        found="the end of the text" if at >= len(text) else quote(text[at : at + 12].splitlines()[0] or "\n"),
        hint=excerpt(hint, text, at),
    )


def _value_hint(text: str, at: int) -> str | None:
    rest = text[at : at + 20]
    if rest.startswith("'"):
        return "write \" and not ' around text"
    if rest.startswith(("//", "/*", "#")):
        return "JSON has no comments; remove it"
    for word, json_word in (("None", "null"), ("True", "true"), ("False", "false"), ("undefined", "null")):
        if rest.startswith(word):
            return f"write {json_word}"
    if re.match(r"[A-Za-z_]", rest):
        return 'put text and keys between "'
    if re.match(r"[.+]?\d", rest):
        return "write a number as JSON does: 0.5, not .5, +0.5 or 00.5"
    return None


def _open_brackets(text: str) -> str:
    stack: list[str] = []
    for piece in _PIECE.finditer(text):
        if piece[0] in ("{", "["):
            stack.append(piece[0])
        elif piece[0] in ("}", "]") and stack:
            stack.pop()
    return " ".join(stack) if len(stack) <= 12 else f"{len(stack)} brackets"


def _line_column(text: str, at: int) -> str:
    return f"{text.count(chr(10), 0, at) + 1}:{at - text.rfind(chr(10), 0, at)}"


def excerpt(hint: str | None, text: str, at: int) -> str:
    """The hint, and below it the line with a caret under the place."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    left, right = max(start, at - 50), min(end, at + 30)
    line = ("…" if left > start else "") + text[left:right] + ("…" if right < end else "")
    line = "".join(char if char.isprintable() else " " for char in line)
    caret = " " * (at - left + (left > start)) + "^"
    return f"{hint or 'see the mark'}\n    {line}\n    {caret}"
