"""Read, bound and write the numbers of JSON texts exactly as they are written.

Leaves out   whole documents (json_text.py, yaml_text.py, json_values.py), what schemas do with numbers
             (../schema/values.py).
Invariants   a number is an int, a float or a Decimal. A float stands for its shortest decimal form (``repr``): 0.1 is
             one tenth. A Decimal that a text gave is one that no float stands for. A Decimal counts as a number that is
             written with a point or an exponent. A Decimal has at most MAX_DIGITS digits, written without an exponent.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from toolc.runtime.calls.json_text import exact, last_zeros

MAX_DIGITS = 4000  # Python reads integers of up to 4300, and time grows with the square
_LONGEST = 2 * MAX_DIGITS  # characters of a number that no float stands for


class TooLong(Exception):
    """A number that has more than MAX_DIGITS digits, written without an exponent."""

    expected = f"at most {MAX_DIGITS:,} digits, written without an exponent"


def read_number(text: str) -> float | Decimal:
    """The number that a text with a point or an exponent spells.

    Raises:
        TooLong: no float stands for it, and it has more than MAX_DIGITS digits.
    """
    try:
        number = exact(text)
    except ValueError:
        raise TooLong from None
    if isinstance(number, Decimal) and (len(text) > _LONGEST or is_too_long(number)):
        raise TooLong
    return number


def is_too_long(number: Decimal) -> bool:
    """Whether a finite number has more than MAX_DIGITS digits, written without an exponent."""
    if not number:
        return False
    if not -MAX_DIGITS <= number.adjusted() < MAX_DIGITS:
        return True
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return max(number.adjusted() + 1, 1) + max(-exponent - last_zeros(digits), 0) > MAX_DIGITS


def number_text(number: Decimal) -> str:
    """A finite number as JSON that `read_number` reads again: with a point or an exponent."""
    text = str(number).replace("E", "e")
    return text if "." in text or "e" in text else text + ".0"


def write_json(value: Any, ascii_only: bool = False) -> str:
    """What ``json.dumps`` writes, where a Decimal may stand among the numbers."""
    try:
        return json.dumps(value, ensure_ascii=ascii_only)
    except TypeError:  # a Decimal is inside, or what is no JSON, of which `_write` says so
        parts: list[str] = []
        _write(value, ascii_only, parts)
        return "".join(parts)


def _write(value: Any, ascii_only: bool, parts: list[str]) -> None:
    """Append the text of a value, each part of it once."""
    if isinstance(value, Decimal):
        parts.append(number_text(value))
    elif isinstance(value, dict):
        between = "{"
        for key, item in value.items():
            parts.append(between + json.dumps({key: 0}, ensure_ascii=ascii_only)[1:-2])
            _write(item, ascii_only, parts)
            between = ", "
        parts.append("}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        between = "["
        for item in value:
            parts.append(between)
            _write(item, ascii_only, parts)
            between = ", "
        parts.append("]" if value else "[]")
    else:
        parts.append(json.dumps(value, ensure_ascii=ascii_only))
