"""Schemas of pydantic models, and of its dataclasses, taken apart into definitions.

Leaves out   what pydantic says in them.
Invariants   an object that declares its members takes no others, unless its model says ``extra="allow"``; that holds
             for a model by itself, inside of another, and as an argument. Two definitions of one name are one only if
             all that can be reached from them is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..errors import SpecError
from .exact_numbers import write_json
from .model import escape

REF = "#/$defs/"
"""How references to definitions begin."""
_DATA = frozenset(("enum", "const", "default", "examples", "example"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))


def is_model(item: Any) -> bool:
    """Whether pydantic writes the schema."""
    return hasattr(item, "model_json_schema") or (
        isinstance(item, type) and dataclasses.is_dataclass(item) and hasattr(item, "__pydantic_core_schema__")
    )


def model_schema(item: Any, place: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """The name of a model among its definitions, and these; references between them start with ``#/$defs/``."""
    try:
        if hasattr(item, "model_json_schema"):
            schema = item.model_json_schema()
        else:
            schema = import_module("pydantic").TypeAdapter(item).json_schema()
    except _refusals() as error:
        raise SpecError(
            "pydantic gives no schema of this model",
            place=place,
            found=str(error).splitlines()[0],
            hint="leave the field out, or give it a type that JSON has",
        ) from None
    definitions = schema.pop("$defs", {})
    root = schema.get("$ref")
    if isinstance(root, str) and root.startswith(REF) and root[len(REF) :] in definitions:  # it mentions itself
        name = root[len(REF) :]
        definitions[name] = {**{key: value for key, value in schema.items() if key != "$ref"}, **definitions[name]}
    else:
        name = item.__name__
        while name in definitions:  # another class of the same name
            name += "_"
        definitions[name] = schema
    return name, {key: _closed(value) for key, value in definitions.items()}


def _refusals() -> tuple[type[Exception], ...]:
    errors, core = import_module("pydantic.errors"), import_module("pydantic_core")
    return errors.PydanticUserError, errors.PydanticUndefinedAnnotation, core.PydanticSerializationError


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    if "properties" in schema and "additionalProperties" not in schema:
        return {**schema, "additionalProperties": False}
    return schema


def reachable(name: str, definitions: dict[str, dict[str, Any]]) -> str:
    """A text that says all of a definition: itself and what its references lead to."""
    found: dict[str, dict[str, Any]] = {}
    waiting = [name]

    def note(target: str) -> str:
        waiting.append(target)
        return target

    while waiting:
        one = waiting.pop()
        if one not in found and one in definitions:
            found[one] = definitions[one]
            with_names(definitions[one], note)
    return write_json([name, found])


def with_names(schema: Any, rename: Callable[[str], str], names: bool = False) -> Any:
    """The schema with every definition that it refers to renamed.

    Args:
        rename: from the name in ``#/$defs/NAME`` to the new one.
        names: whether the keys are names that the author chose, not keywords.
    """
    if isinstance(schema, list):
        return [with_names(one, rename) for one in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if not names and key in _DATA:
            out[key] = value
        elif not names and key == "$ref" and isinstance(value, str) and value.startswith(REF):
            out[key] = REF + escape(rename(value[len(REF) :]))
        elif not names and key == "discriminator" and isinstance(value, dict):
            out[key] = value | {"mapping": _mapping(value.get("mapping", {}), rename)}
        else:
            out[key] = with_names(value, rename, names=not names and key in _NAMED)
    return out


def _mapping(mapping: dict[str, str], rename: Callable[[str], str]) -> dict[str, str]:
    return {
        key: REF + escape(rename(value[len(REF) :])) if value.startswith(REF) else value
        for key, value in mapping.items()
    }
