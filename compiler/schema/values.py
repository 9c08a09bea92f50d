"""JSON values as the schema stage sees them: exact numbers, types, equality, words for errors.

Leaves out   what a schema says about a value: see evaluate.py.
Invariants   numbers are int or Decimal, never float; a boolean is never a number; 1, 1.0 and 1e0 are one value;
             ``freeze`` gives equal keys to equal JSON values and to no others, whatever the order of their keys.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from toolc.runtime.calls.json_text import decimal

from ..errors import SchemaError
from ..specs.exact_numbers import TooLong, is_too_long, write_json

KINDS = ("null", "boolean", "number", "string", "array", "object")
"""The JSON types, ``integer`` being part of ``number``."""

MAX_NESTING = 200
"""How deep schemas, and values in ``enum`` and ``const``, may nest."""

Number: TypeAlias = int | Decimal


def kind_of(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def exact(value: int | float | Decimal) -> Number:
    """The number that the text of ``value`` spells; an int where it has no fraction."""
    if isinstance(value, int):
        return value
    number = value if isinstance(value, Decimal) else decimal(value)
    if number == number.to_integral_value() and number.adjusted() < 5000:
        return int(number)
    return number


def minus(value: Number) -> Number:
    """The negative, exactly (Decimal's own minus rounds to the context)."""
    return value.copy_negate() if isinstance(value, Decimal) else -value


def is_integral(value: Number) -> bool:
    """Whether a number has no fraction."""
    return isinstance(value, int) or value == value.to_integral_value()


def is_multiple(value: Any, of: Any) -> bool:
    """Whether ``value`` is a whole number of times ``of``, exactly."""
    return (Fraction(value) / Fraction(of)).denominator == 1


def freeze(value: Any) -> Hashable:
    """A key that is equal for equal JSON values only."""
    kind = kind_of(value)
    if kind == "array":
        return ("a", *(freeze(item) for item in value))
    if kind == "object":
        return ("o", *sorted((key, freeze(item)) for key, item in value.items()))
    if kind == "number":
        return ("n", exact(value))
    return (kind, value)


def check_text(text: str, place: str) -> None:
    """Refuse what cannot be written as UTF-8: half of a surrogate pair."""
    if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
        raise SchemaError(place=place, found="a lone surrogate", expected="Unicode text")


def check_value(value: Any, place: str) -> None:
    """Refuse what is no JSON value: NaN, lone surrogates, keys that are not strings; what is too deep or too long."""
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        one, depth = stack.pop()
        if depth > MAX_NESTING:
            raise SchemaError(f"a value nests deeper than {MAX_NESTING} levels", place=place)
        if isinstance(one, dict):
            for key, item in one.items():
                stack.append((key, depth + 1))
                if not isinstance(key, str):
                    raise SchemaError(place=place, found=describe(key), expected="a string as key")
                stack.append((item, depth + 1))
        elif isinstance(one, (list, tuple)):
            stack.extend((item, depth + 1) for item in one)
        elif isinstance(one, str):
            check_text(one, place)
        elif isinstance(one, (float, Decimal)) and not Decimal(one).is_finite():
            raise SchemaError(place=place, found=str(one), expected="a finite number")
        elif isinstance(one, Decimal) and is_too_long(one):
            raise SchemaError("this number is too long", place=place, found=describe(one), expected=TooLong.expected)


def describe(value: Any) -> str:
    """A value and its type for an error, cut to a readable length."""
    kind = kind_of(value)
    if kind == "array":
        return f"a list of {len(value)}"
    if kind == "object":
        return f"an object with {len(value)} keys"
    text = write_json(value)
    text = text if len(text) <= 60 else text[:57] + "..."
    return text if kind == "null" else f"{text} ({kind})"
