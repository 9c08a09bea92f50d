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
