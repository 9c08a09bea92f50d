"""Check what keywords take: numbers, counts, names, constants, types.

Leaves out   sub-schemas (nodes.py), references (references.py).
Invariants   numbers are exact; an operand that the specification does not allow is a SchemaError at its place.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..errors import SchemaError
from .keywords import TYPES
from .values import check_text, check_value, describe, exact, freeze


def escape_pointer(step: str) -> str:
    """One step of a JSON pointer."""
    return step.replace("~", "~0").replace("/", "~1")


@dataclass(frozen=True)
class Constant:
    """A value of ``enum`` or ``const``, compared as JSON does."""

    key: Hashable
    value: Any = field(compare=False)


def parse_names(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        hint = None
        if isinstance(value, bool):
            hint = "name the required properties in a list beside properties; --repair does so"
        raise SchemaError(place=place, found=describe(value), expected="a list of strings", hint=hint)
    for index, name in enumerate(value):
        if not isinstance(name, str):
            raise SchemaError(place=f"{place}/{index}", found=describe(name), expected="a string")
        check_text(name, f"{place}/{index}")
    return tuple(dict.fromkeys(value))


def _number(value: Any, place: str) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        hint = None
        if isinstance(value, str):
            try:
                hint = f"write {value.strip()} without quotes" if float(value) == float(value) else None
            except ValueError:
                pass
        raise SchemaError(place=place, found=describe(value), expected="a number", hint=hint)
    check_value(value, place)
    return exact(value)


_OTHER_WORDS = {
    "float": "number", "double": "number", "decimal": "number",
    "long": "integer", "short": "integer", "byte": "integer",
    "dict": "object", "map": "object", "hashmap": "object", "struct": "object", "json": "object",
    "list": "array", "tuple": "array", "set": "array", "sequence": "array",
    "text": "string", "char": "string", "date": "string", "datetime": "string", "file": "string", "enum": "string",
    "none": "null", "nil": "null",
}  # fmt: skip
"""Words of other type systems → the type that is meant."""


def _type_hint(name: str) -> str | None:
    """What to write in place of a word that is no type."""
    word = name.lower()
    if word in ("any", "mixed", "unknown"):
        return "leave type out: then any value is allowed"
    if word in TYPES or word in _OTHER_WORDS:
        return f"write {_OTHER_WORDS.get(word, word)}"
    near = difflib.get_close_matches(word, TYPES, n=1)
    return f"did you mean {near[0]}?" if near else None


def parse_operand(form: str, value: Any, place: str) -> Any:
    """The parsed value of a keyword without sub-schemas."""
    if form == "type" and isinstance(value, str) and value in TYPES:
        return (value,)
    if form in ("text", "pattern"):
        if not isinstance(value, str):
            raise SchemaError(place=place, found=describe(value), expected="a string")
        return value
    if form == "names":
        return parse_names(value, place)
    if form == "name lists":
        if not isinstance(value, dict):
            raise SchemaError(place=place, found=describe(value), expected="an object")
        for name in value:
            check_text(name, place)
        return {name: parse_names(item, f"{place}/{escape_pointer(name)}") for name, item in value.items()}
    if form == "flag":
        if not isinstance(value, bool):
            raise SchemaError(place=place, found=describe(value), expected="true or false")
        return value
    if form == "count":
        number = _number(value, place)
        if not isinstance(number, int) or number < 0:
            raise SchemaError(place=place, found=describe(value), expected="a whole number, at least 0")
        return number
    if form in ("number", "positive"):
        number = _number(value, place)
        if form == "positive" and number <= 0:
            raise SchemaError(place=place, found=describe(value), expected="a number above 0")
        return number
    if form == "exclusive":
        return value if isinstance(value, bool) else _number(value, place)
    if form == "type":
        names = value if isinstance(value, list) else [value]
        if not names:
            raise SchemaError(place=place, found=describe(value), expected="a type, or a list of at least one")
        for name in names:
            if name not in TYPES or not isinstance(name, str):
                raise SchemaError(
                    place=place,
                    found=describe(name),
                    expected="one of " + ", ".join(TYPES),
                    hint=_type_hint(str(name)),
                )
        return tuple(sorted(set(names)))
    if form == "enum":
        if not isinstance(value, list):
            raise SchemaError(place=place, found=describe(value), expected="a list of values")
        check_value(value, place)
        return tuple({constant.key: constant for constant in (Constant(freeze(v), v) for v in value)}.values())
    assert form == "const", form
    check_value(value, place)
    return (Constant(freeze(value), value),)
