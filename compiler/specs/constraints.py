"""What the metadata of ``Annotated`` says of a value, as keywords: text, ``Field(ge=3)`` of pydantic, annotated_types.

Leaves out   fields of pydantic models: pydantic writes their schemas itself (models.py).
Invariants   what is said is enforced or refused by its name, if it is of these two packages; metadata of others says
             nothing to us (PEP 593). What only a validator of pydantic knows is in no schema, here or there.
Source       annotated_types 0.7 (Ge, Len, Interval, …); pydantic 2: FieldInfo, StringConstraints.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from ..errors import SpecError
from .standard_types import DECIMAL, decimal_schema

BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_LENGTHS = {
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
}
_DIGITS = ("max_digits", "decimal_places")
"""Of a Decimal."""
_KNOWN = (*BOUNDS, *_LENGTHS, *_DIGITS, "pattern", "description", "examples")
_SILENT = frozenset(
    "annotation default default_factory title repr frozen init init_var kw_only deprecated exclude validate_default "
    "strict coerce_numbers_to_str allow_inf_nan union_mode fail_fast alias_priority serialization_alias "
    "field_title_generator exclude_if".split()
)
"""Attributes that say nothing of what JSON may be written."""
_VALIDATORS = frozenset(
    ("AfterValidator", "BeforeValidator", "WrapValidator", "PlainValidator", "PlainSerializer", "WrapSerializer",
     "Strict", "Unit")
)  # fmt: skip
_PACKAGES = ("annotated_types", "pydantic", "pydantic_core")


def is_field(value: Any) -> bool:
    """Whether this is what pydantic's ``Field(…)`` gives, which may also stand as a default."""
    return any(one.__name__ == "FieldInfo" and _package(one) == "pydantic" for one in type(value).__mro__)


def constrained(schema: dict[str, Any], metadata: Iterable[Any], place: str) -> dict[str, Any]:
    """The schema with what the metadata says beside it."""
    said = list(_said(metadata, place))
    if schema == DECIMAL:
        return _decimal(said, place)
    out = dict(schema)
    for name, value in said:
        if name in _DIGITS:
            raise _unknown(f"{name}={_found(value)}", place)
        for keyword in _keywords(name, schema.get("type")):
            if keyword in ("description", "examples"):
                out.setdefault(keyword, value)
            elif keyword in out and out[keyword] != value:  # both hold
                out["allOf"] = [*out.get("allOf", ()), {keyword: _operand(name, value, place)}]
            else:
                out[keyword] = _operand(name, value, place)
    return out


def _decimal(said: list[tuple[str, Any]], place: str) -> dict[str, Any]:
    """The schema of a Decimal with what is said of it."""
    bounds = {BOUNDS[name]: _operand(name, value, place) for name, value in said if name in BOUNDS}
    notes = {name: value for name, value in said if name in ("description", "examples")}
    digits = {name: _operand(name, value, place) for name, value in said if name in _DIGITS}
    if other := [name for name, _ in said if name not in (*BOUNDS, *_DIGITS, *notes)]:
        raise _unknown(other[0], place)
    return decimal_schema(bounds, digits.get("max_digits"), digits.get("decimal_places"), place) | notes


def _keywords(name: str, kind: Any) -> list[str]:
    """The keywords of an attribute; a length is one of each kind of value where the schema does not say which."""
    if name in BOUNDS:
        return [BOUNDS[name]]
    if name in _LENGTHS:
        return [_LENGTHS[name][kind]] if kind in _LENGTHS[name] else list(_LENGTHS[name].values())
    return [name]


def _operand(name: str, value: Any, place: str) -> Any:
    if name == "pattern":
        value = value.pattern if isinstance(value, re.Pattern) and not value.flags & ~re.UNICODE else value
        if isinstance(value, str):
            return value
        raise SpecError("this pattern is no plain text", place=place, found=_found(value), expected="a str")
    number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or (name in (*_LENGTHS, *_DIGITS) and not isinstance(value, int)):
        expected = "a whole number" if name in (*_LENGTHS, *_DIGITS) else "an int, a float or a Decimal"
        raise SpecError(f"{name} has no JSON Schema", place=place, found=_found(value), expected=expected)
    return value


def _said(metadata: Iterable[Any], place: str) -> Iterator[tuple[str, Any]]:
    """(attribute, value) of everything that is said, in its order."""
    for one in metadata:
        if isinstance(one, str):
            yield "description", one
        elif is_field(one):
            yield from _said(one.metadata, place)
            yield from _attributes(one, _field_says(one), place)
        elif _package(type(one)) not in _PACKAGES or type(one).__name__ in _VALIDATORS:
            continue
        elif isinstance(one, Iterable):  # a group: Interval, Len, StringConstraints
            yield from _said(one, place)
        elif type(one).__name__ == "DocInfo":
            yield "description", one.documentation
        else:
            yield from _attributes(one, _fields(one), place)


def _attributes(one: Any, values: dict[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    if not values:
        raise _unknown(type(one).__name__, place)
    for name, value in values.items():
        if value is None or name in _SILENT:
            continue
        if name not in _KNOWN:
            raise _unknown(f"{name}={_found(value)}", place)
        yield name, value


def _found(value: Any) -> str:
    """A value as errors show it: the same in every process."""
    return repr(value)[:60] if isinstance(value, (str, int, float, bytes, Decimal)) else type(value).__name__


def _unknown(found: str, place: str) -> SpecError:
    return SpecError(
        "this constraint has no JSON Schema that toolc knows", place=place, found=found, expected=", ".join(_KNOWN)
    )


def _field_says(field: Any) -> dict[str, Any]:
    """What a field says beside its metadata; what it does not say is None, or among _SILENT."""
    names = next(kind for kind in type(field).__mro__ if kind.__name__ == "FieldInfo").__dict__["__slots__"]
    return {name: getattr(field, name) for name in names if name[0] != "_" and name not in ("metadata", "evaluated")}


def _fields(one: Any) -> dict[str, Any]:
    slots = getattr(type(one), "__dataclass_fields__", None) or getattr(one, "__dict__", {})
    return {name: getattr(one, name) for name in slots}


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]
