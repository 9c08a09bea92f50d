"""JSON as it is defined: values of a text, without what Python's own reading adds or loses.

Leaves out   which texts are arguments (arguments.py), how long a number of a schema may be (the compiler's
             specs/exact_numbers.py).
Invariants   `json.dumps` of what `load` gives writes JSON again, of the same value as far as a float holds it: no NaN,
             no Infinity. A float stands for its shortest decimal form (``repr``): 0.1 is one tenth.
Source       RFC 8259, 6.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any

import msgpack

MOST_DIGITS = 4300
"""A number has no more of them before its point: so many does Python read and write."""


def load(text: str) -> Any:
    """The value of a text. A number too large for a float is an integer.

    Raises:
        ValueError: it is no JSON, or has a number of more than MOST_DIGITS.
    """
    return json.loads(text, parse_float=number, parse_constant=_refuse)


def number(text: str) -> float | int:
    """A number that is written with a fraction or an exponent."""
    value = float(text)
    if math.isfinite(value):
        return value
    exact = Decimal(text)
    if exact.adjusted() >= MOST_DIGITS:
        raise ValueError(f"a number of more than {MOST_DIGITS} digits")
    return int(exact)


def exact(text: str) -> float | Decimal:
    """A number that is written with a fraction or an exponent: a float that stands for it, else a Decimal.

    Raises:
        ValueError: no Decimal stands for it either: its exponent has 19 digits or more.
    """
    near = float(text)
    if repr(near) == text:
        return near
    try:
        number = Decimal(text)
    except InvalidOperation:
        if not any(digit in "123456789" for digit in text.lower().partition("e")[0]):
            return near  # zero
        raise ValueError("a number of more digits than can be counted") from None
    return near if number == decimal(near) else number


def decimal(value: float) -> Decimal:
    """The number that a float stands for."""
    return Decimal(float.__repr__(value))


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def packed(document: Any) -> bytes:
    """A JSON value in MessagePack, keys in their order: values that differ are other bytes, 1 and 1.0 too.

    An integer of more than 64 bits is an extension of type 1, its decimal digits; a number for which no float stands is
    one of type 2, its digits and exponent.

    Raises:
        ValueError, TypeError: it is no value of JSON, or nests some thousand deep.
    """
    found: bytes = msgpack.packb(document, default=_large)
    return found


def _large(number: int | Decimal) -> Any:
    if isinstance(number, int):
        return msgpack.ExtType(1, b"%d" % number)
    if not isinstance(number, Decimal):
        raise TypeError(f"JSON has no {type(number).__name__}")
    said = canonical(number)
    return said if isinstance(said, float) else msgpack.ExtType(2, said)


def canonical(number: Decimal) -> float | bytes:
    """What is equal for equal Decimals only: the float that stands for the number, or its digits and exponent."""
    near = float(number)
    if decimal(near) == number:
        return near
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    zeros = last_zeros(digits)
    kept = "".join(map(str, digits[: len(digits) - zeros]))
    return f"{'-' if sign else ''}{kept}e{exponent + zeros}".encode()


def last_zeros(digits: tuple[int, ...]) -> int:
    """How many zeros stand at the end."""
    return next((count for count, digit in enumerate(reversed(digits)) if digit), len(digits))
