"""Schemas of pydantic models, and of its dataclasses, taken apart into definitions.

Leaves out   what pydantic says in them; what stands for types that pydantic and JSON Schema read differently
             (standard_types.py).
Invariants   an object that declares its members takes no others, unless its model says ``extra="allow"``; that holds
             for a model by itself, inside of another, and as an argument. Two definitions of one name are one only if
             all that can be reached from them is the same.
"""

from __future__ import annotations

import datetime
import functools
import typing
from collections.abc import Callable
from importlib import import_module
from typing import Any

from toolc.runtime.calls.typed import is_of_pydantic

from ..errors import SpecError
from .constraints import BOUNDS
from .exact_numbers import write_json
from .model import escape
from .standard_types import (
    datetime_schema,
    decimal_schema,
    key_schema,
    standard_schema,
    url_schema,
    uuid_schema,
)

REF = "#/$defs/"
"""How references to definitions begin."""
_DATA = frozenset(("enum", "const", "default", "examples", "example"))
_NAMED = frozenset(("properties", "patternProperties", "$defs", "dependentSchemas"))


def is_model(item: Any) -> bool:
    """Whether pydantic writes the schema."""
    return hasattr(item, "model_json_schema") or is_of_pydantic(item)


def model_schema(item: Any, place: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """The name of a model among its definitions, and these; references between them start with ``#/$defs/``."""
    try:
        if hasattr(item, "model_json_schema"):
            schema = item.model_json_schema(**({"schema_generator": _writer()} if is_of_pydantic(item) else {}))
        else:
            schema = import_module("pydantic").TypeAdapter(item).json_schema(schema_generator=_writer())
    except SpecError as error:  # of _writer
        error.place = place
        raise
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
        known = getattr(item, "__name__", None) or getattr(typing.get_args(item)[0], "__name__", None)
        name = known or "value"
        while name in definitions:  # another class of the same name
            name += "_"
        definitions[name] = schema
    return name, {key: _closed(value) for key, value in definitions.items()}


@functools.cache
def _writer() -> Any:
    """What writes pydantic's schemas, with the languages of standard_types.py: of these types pydantic's own schemas
    say a format, which is another language, or less than pydantic checks."""
    base = import_module("pydantic.json_schema").GenerateJsonSchema

    class Writer(base):  # type: ignore[valid-type, misc]
        def datetime_schema(self, schema: Any) -> Any:
            return datetime_schema(schema.get("tz_constraint"))

        def date_schema(self, schema: Any) -> Any:
            return standard_schema(datetime.date)

        def time_schema(self, schema: Any) -> Any:
            return standard_schema(datetime.time)

        def timedelta_schema(self, schema: Any) -> Any:
            written = super().timedelta_schema(schema)
            return standard_schema(datetime.timedelta) if written.get("type") == "string" else written

        def uuid_schema(self, schema: Any) -> Any:
            return uuid_schema(schema.get("version"))

        def decimal_schema(self, schema: Any) -> Any:
            bounds = {word: schema[name] for name, word in BOUNDS.items() if schema.get(name) is not None}
            return decimal_schema(bounds, schema.get("max_digits"), schema.get("decimal_places"), "")

        def url_schema(self, schema: Any) -> Any:
            return url_schema(schema.get("allowed_schemes"), schema.get("max_length"))

        def enum_schema(self, schema: Any) -> Any:
            written = super().enum_schema(schema)
            if "enum" in written:  # a member that is a tuple, pydantic reads from no JSON
                written["enum"] = [value for value in written["enum"] if not isinstance(value, (list, dict))]
            return written

        def set_schema(self, schema: Any) -> Any:
            return _as_set(super().set_schema(schema))

        def frozenset_schema(self, schema: Any) -> Any:
            return _as_set(super().frozenset_schema(schema))

        def dict_schema(self, schema: Any) -> Any:
            return self._keyed(schema, super().dict_schema(schema))

        def ordered_dict_schema(self, schema: Any) -> Any:
            return self._keyed(schema, super().ordered_dict_schema(schema))

        def frozendict_schema(self, schema: Any) -> Any:
            return self._keyed(schema, super().frozendict_schema(schema))

        def counter_schema(self, schema: Any) -> Any:
            return self._keyed(schema, super().counter_schema(schema))

        def _keyed(self, schema: Any, written: Any) -> Any:
            """With what pydantic asks of every key: it writes a pattern as if other keys were free."""
            keys = key_schema(self.generate_inner(schema["keys_schema"])) if "keys_schema" in schema else {}
            if keys is None:
                return self.handle_invalid_for_json_schema(schema, "keys that JSON cannot write")
            for values in written.pop("patternProperties", {}).values():
                written["additionalProperties"] = values
            written.pop("propertyNames", None)
            keys = {key: value for key, value in keys.items() if key not in ("title", "description")}
            return written if keys in ({}, {"type": "string"}) else written | {"propertyNames": keys}

    return Writer


def _as_set(schema: dict[str, Any]) -> dict[str, Any]:
    """A set of pydantic: it takes a member twice, and counts it once."""
    if schema.get("minItems", 0) < 2:
        schema.pop("uniqueItems", None)
    return schema


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
