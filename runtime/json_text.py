"""JSON as it is defined: values of a text, without what Python's own reading adds or loses.

Leaves out   which texts are arguments (arguments.py).
Invariants   `json.dumps` of a value writes JSON again, of the same value as far as a float holds it: no NaN, no
             Infinity.
Source       RFC 8259, 6.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
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


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
