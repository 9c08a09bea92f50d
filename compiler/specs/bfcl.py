"""Function documents of the Berkeley Function-Calling Leaderboard: JSON Schema with type words of its own.

A function takes the parameters that it declares and no others, and so does a ``dict`` that declares its members.

Invariants   every pointer stays what it was; only type words change, ``optional`` and ``default`` say nothing, objects
             with ``properties`` are closed, and an ``enum`` of an array that lists no arrays is that of its items.
Source       gorilla, berkeley-function-call-leaderboard, GORILLA_TO_OPENAPI. There ``any`` is a string; here it is any
             value, as the possible answers have it.
"""

from __future__ import annotations

from typing import Any

from ..errors import SpecError
from .model import escape, shown, want

_TYPES = {
    "dict": "object", "hashmap": "object", "hashtable": "object", "object": "object",
    "float": "number", "double": "number", "number": "number",
    "integer": "integer", "int": "integer", "long": "integer", "short": "integer", "byte": "integer",
    "bigint": "integer",
    "bool": "boolean", "boolean": "boolean",
    "tuple": "array", "list": "array", "array": "array", "arraylist": "array", "set": "array", "queue": "array",
    "stack": "array",
    "string": "string", "str": "string", "char": "string",
    "null": "null",
}  # fmt: skip
_WORDS = frozenset(_TYPES) - {"object", "number", "integer", "boolean", "array", "string", "null"}


def is_bfcl(parameters: Any) -> bool:
    """Whether a schema of arguments uses the type words of BFCL: its own type is ``dict``."""
    return isinstance(parameters, dict) and parameters.get("type") == "dict"


def as_json_schema(schema: Any, place: str) -> Any:
    """The schema in the words of JSON Schema."""
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        at = f"{place}/{key}"
        if key == "type" and isinstance(value, str):
            if value.lower() == "any":
                continue
            if value.lower() not in _TYPES:
                raise SpecError(place=at, found=shown(value), expected="a type of BFCL or JSON Schema")
            out[key] = _TYPES[value.lower()]
        elif key == "properties" and isinstance(value, dict):
            out[key] = {name: as_json_schema(one, f"{at}/{escape(name)}") for name, one in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = as_json_schema(value, at)
        elif key not in ("optional", "default"):
            out[key] = value
    if out.get("type") == "array" and "enum" in out:
        values = want(out["enum"], list, f"{place}/enum", "a list of values")
        if not any(isinstance(one, list) for one in values):  # they are those of the items
            items = out.get("items", {})
            items = {} if items is True else want(items, dict, f"{place}/items", "one schema, of all items")
            own = {"enum": out.pop("enum")}
            out["items"] = {"allOf": [items, own]} if "enum" in items else {**items, **own}
    if "properties" in out and "additionalProperties" not in out:
        out["additionalProperties"] = False
    return out
