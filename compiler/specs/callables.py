"""Python functions and pydantic models as tools: the arguments of a signature, the fields of a model.

    from toolc.compiler import read_spec
    read_spec([current_weather, Forecast])

The name is that of the function or class, the description its docstring; a parameter without a default is required.

Leaves out   what the schemas mean (../schema); models of pydantic (models.py), what Annotated says (constraints.py).
Invariants   arguments keep the order of the signature, and nothing else may stand in them unless there is a ``**name``.
             A parameter without annotation takes any JSON value. Defaults that JSON has are told, as those of models.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import enum
import inspect
import types
import typing
from typing import Any, Literal

from toolc.runtime.calls.typed import (
    alias_of,
    has_members,
    hints_of,
    is_alias,
    is_named_tuple,
    is_of_pydantic,
    name_of,
    parameters_of,
    plain_value,
)

from ..errors import SpecError
from .constraints import constrained, is_field
from .exact_numbers import write_json
from .json_values import check_value
from .marks import KEY, marks_of
from .model import ToolSpec, escape
from .models import REF, is_model, model_schema, reachable, with_names
from .standard_types import key_schema, standard_schema

_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array"},
    frozenset: {"type": "array"},
    collections.deque: {"type": "array"},
    collections.abc.MutableSequence: {"type": "array"},
    collections.abc.MutableSet: {"type": "array"},
    collections.abc.Sequence: {"type": "array"},
    collections.abc.Iterable: {"type": "array"},
    collections.abc.Collection: {"type": "array"},
    collections.abc.Set: {"type": "array"},
    collections.abc.Mapping: {"type": "object"},
    collections.abc.MutableMapping: {"type": "object"},
    collections.OrderedDict: {"type": "object"},
    collections.defaultdict: {"type": "object"},
    collections.Counter: {"type": "object", "additionalProperties": {"type": "integer"}},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
}
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_LISTS = (
    *_SETS,
    list,
    collections.deque,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Iterable,
    collections.abc.Collection,
)
_MAPS = (
    dict,
    collections.OrderedDict,
    collections.defaultdict,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
)


def is_callable(source: Any) -> bool:
    """Whether a source is a function or model, or a list of them."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(callable(one) for one in source)
    return callable(source)


def read_callables(source: Any, name: str) -> tuple[Any, list[ToolSpec]]:
    """The document that stands for the functions and models, and their tools; ``name`` is how errors call it."""
    items = listed(source)
    document = [_function(one) for one in items]
    check_value(document, name)
    tools = []
    for i, function in enumerate(document):
        schema = function["parameters"]
        marks = marks_of(function, f"{function['name']}#", annotations=False)
        pointer = f"/{i}/parameters"
        tools.append(
            ToolSpec(
                function["name"],
                function["description"],
                schema,
                pointer,
                schema,
                **marks,
                name_pointer=f"/{i}/name",
            )
        )
    return document, tools


def listed(source: Any) -> list[Any]:
    """The functions and classes of a source."""
    return list(source) if isinstance(source, (list, tuple)) else [source]


_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "schema")
_MOST_LEVELS = 8  # of a document, down to its schemas


def with_documents(document: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """A list of tools, or the body of a request, with JSON in the place of functions and types, where these may stand:
    a function as a tool of a list, a type as a schema of a tool or of a response.

    Returns:
        The document, and these functions and classes by the names of their tools.
    """
    written = _Written()
    return written.value(document, f"{name}#", _MOST_LEVELS), written.declared


class _Written:
    """Values with JSON in the place of functions and types.

    Attributes:
        declared: these functions and classes, by the names of their tools.
    """

    def __init__(self) -> None:
        self.declared: dict[str, Any] = {}
        self._seen: dict[int, Any] = {}  # what stands at several places is looked at once

    def value(self, value: Any, place: str, levels: int) -> Any:
        """A value, so many levels deep."""
        if levels == 0 or not isinstance(value, (dict, list)):
            return value
        if id(value) not in self._seen:
            self._seen[id(value)] = value  # where it holds itself
            if isinstance(value, list):
                one_by_one = ((one, f"{place}/{i}") for i, one in enumerate(value))
                made: Any = [self._tool(one) or self.value(one, at, levels - 1) for one, at in one_by_one]
            else:
                made = {key: self._member(value, key, one, f"{place}/{key}", levels) for key, one in value.items()}
            self._seen[id(value)] = made
        return self._seen[id(value)]

    def _tool(self, one: Any) -> dict[str, Any] | None:
        if not callable(one):
            return None
        self.declared[name_of(one)] = one
        return {"type": "function", "function": _function(one)}

    def _member(self, around: dict[Any, Any], key: Any, one: Any, place: str, levels: int) -> Any:
        if key in _SCHEMA_KEYS and is_type(one):
            if isinstance(around.get("name"), str):
                self.declared[around["name"]] = one
            return schema_of_type(one, place)
        if key == "response_format" and is_type(one):
            title = getattr(one, "__name__", "response")
            return {"type": "json_schema", "json_schema": {"name": title, "schema": schema_of_type(one, place)}}
        return self.value(one, place, levels - 1) if key not in _SCHEMA_KEYS else one


def is_type(value: Any) -> bool:
    """Whether a value is a Python type or annotation, which stands for the schema of its values."""
    return isinstance(value, type) or typing.get_origin(value) is not None or value is Any or is_alias(value)


def schema_of_type(annotation: Any, name: str) -> dict[str, Any]:
    """The schema of the values of a type or annotation; ``name`` is how errors call it."""
    types_ = _Types(name)
    schema = types_.schema(annotation, name)
    if types_.definitions:
        schema = {**schema, "$defs": types_.definitions}
    check_value(schema, name)
    return schema


def _function(item: Any) -> dict[str, Any]:
    """The function document of an item, with the marks of toolc.runtime.speculate's decorator where it has them."""
    marks = getattr(item, "__toolc__", None)
    return _signature(item) | ({} if marks is None else {KEY: marks})


def _signature(item: Any) -> dict[str, Any]:
    name = name_of(item)
    about = inspect.getdoc(item) or ""
    types_ = _Types(name)
    if is_model(item):
        schema = types_.model_members(item)
        if item.__doc__ is None:
            about = ""
    else:
        schema = types_.members(item) if isinstance(item, type) else types_.signature(item)
    if types_.definitions:
        schema["$defs"] = types_.definitions
    return {"name": name, "description": about, "parameters": schema}


class _Types:
    """Annotations as schemas; classes with members become definitions, so they may mention each other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.definitions: dict[str, Any] = {}
        self.names: dict[Any, str] = {}  # of a class, or of all that a model's definition says, its definition's name

    def named(self, key: Any, name: str) -> tuple[str, bool]:
        """The definition of a class, or of a model's definition, and whether it is new; no two share a name."""
        if key in self.names:
            return self.names[key], False
        count, free = 1, name
        while free in self.definitions:
            count += 1
            free = f"{name}_{count}"
        self.names[key] = free
        self.definitions[free] = {}
        return free, True

    def model(self, item: Any, place: str) -> str:
        """The definition of a model; those that it refers to are made, too."""
        root, definitions = model_schema(item, place)
        made = {}
        names = {}
        for one in [root, *(other for other in definitions if other != root)]:
            names[one], made[one] = self.named((one, reachable(one, definitions)), one)
        for one, new in made.items():
            if new:
                self.definitions[names[one]] = with_names(definitions[one], lambda target: names.get(target, target))
        return names[root]

    def model_members(self, item: Any) -> dict[str, Any]:
        """A model as an object; it stays a definition where it mentions itself."""
        name = self.model(item, self.name)
        schema = dict(self.definitions[name])
        if schema.get("type", "object") != "object":
            raise SpecError(
                "the arguments of a tool are an object",
                place=self.name,
                found=f"a model of type {schema['type']}",
                expected="a model with fields",
            )
        if write_json(REF + escape(name)) not in write_json(self.definitions):
            del self.definitions[name]
        return schema

    def signature(self, item: Any) -> dict[str, Any]:
        try:
            parameters = parameters_of(item)
        except (TypeError, ValueError):
            raise SpecError("this callable has no signature that can be read", place=self.name) from None
        hints = self.hints(item)
        properties: dict[str, Any] = {}
        required = []
        more: Any = False
        for one in parameters:
            annotation = hints.get(one.name, one.annotation)
            place = f"{self.name}({one.name})"
            if one.kind is one.VAR_KEYWORD:
                more = self.schema(annotation, place) or True
                continue
            if one.kind in (one.VAR_POSITIONAL, one.POSITIONAL_ONLY):
                raise SpecError(
                    "an argument without a name cannot be written in a call", place=place, hint="give it a name"
                )
            properties[one.name] = self.schema(annotation, place)
            if is_field(one.default):
                properties[one.name] = constrained(properties[one.name], [one.default], place)
            default = one.default.default if is_field(one.default) else one.default
            properties[one.name] |= _default(default, properties[one.name])
            if one.default is one.empty or is_field(one.default) and one.default.is_required():
                required.append(one.name)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}

    def members(self, item: type) -> dict[str, Any]:
        """A dataclass or TypedDict as an object, any other class by its constructor."""
        if dataclasses.is_dataclass(item):
            hints = self.hints(item)
            needed = [
                field.name
                for field in dataclasses.fields(item)
                if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING and field.init
            ]
            names = [field.name for field in dataclasses.fields(item) if field.init]
        elif typing.is_typeddict(item):
            hints = self.hints(item)
            names = list(hints)
            needed = [name for name in names if name in getattr(item, "__required_keys__", ())]
        else:
            return self.signature(item)
        properties = {name: self.schema(hints[name], f"{self.name}.{name}") for name in names}
        for field in dataclasses.fields(item) if dataclasses.is_dataclass(item) else ():
            if field.init:
                properties[field.name] |= _default(field.default, properties[field.name])
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    def schema(self, annotation: Any, place: str) -> dict[str, Any]:
        """The schema of an annotation."""
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            if is_of_pydantic(annotation):
                return {"$ref": REF + escape(self.model(annotation, place))}
            schema = constrained(self.schema(arguments[0], place), arguments[1:], place)
            if schema.get("minItems", 0) > 1 and (typing.get_origin(arguments[0]) or arguments[0]) in _SETS:
                schema["uniqueItems"] = True  # a set counts its members when they are one each
            return schema
        if is_alias(annotation):
            return self.schema(alias_of(annotation), place)
        if (plain := _plain(annotation)) is not None:
            return dict(plain)
        if origin in (typing.Required, typing.NotRequired) if hasattr(typing, "Required") else False:
            return self.schema(arguments[0], place)
        if origin is Literal:
            return {"enum": [self.value(one, place) for one in arguments]}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.schema(one, place) for one in arguments]}
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is ...:
                return {"type": "array", "items": self.schema(arguments[0], place)}
            if arguments in ((), ((),)):  # tuple[()], as Python 3.11 and 3.10 have it
                return {"type": "array"} if annotation is typing.Tuple else {"type": "array", "maxItems": 0}  # noqa: UP006
            items = [self.schema(one, place) for one in arguments]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if origin in _LISTS:
            return {"type": "array"} | ({"items": self.schema(arguments[0], place)} if arguments else {})
        if origin in _MAPS:
            schema = {"type": "object"}
            if arguments:
                schema["additionalProperties"] = self.schema(arguments[1], place)
                if arguments[0] is not str:
                    keys = key_schema(self.schema(arguments[0], place))
                    if keys is None:
                        raise self.refuse(annotation, place, "keys that JSON can write: str, int, dates, UUID, Literal")
                    schema["propertyNames"] = keys
            return schema
        if origin is collections.Counter:
            return dict(_PLAIN[origin])
        if isinstance(annotation, type):
            return self.of_class(annotation, place)
        raise self.refuse(annotation, place)

    def of_class(self, item: type, place: str) -> dict[str, Any]:
        if issubclass(item, enum.Enum):
            return {"enum": [self.value(one, place) for one in item]}
        if is_model(item):
            name = self.model(item, place)
        elif is_named_tuple(item):
            return self.named_tuple(item, place)
        else:
            if not has_members(item):
                raise self.refuse(item, place)
            name, new = self.named(item, item.__name__)
            if new:
                self.definitions[name] = self.members(item)
        return {"$ref": REF + escape(name)}

    def named_tuple(self, item: Any, place: str) -> dict[str, Any]:
        """A NamedTuple, which JSON writes as an array; members with a default may be left out at its end."""
        hints = self.hints(item)
        items = [self.schema(hints.get(name, Any), f"{place}.{name}") for name in item._fields]
        least = len(items) - len(item._field_defaults)
        return {"type": "array", "prefixItems": items, "items": False, "minItems": least}

    def value(self, value: Any, place: str) -> Any:
        """What JSON writes for a value of an Enum or a Literal; a tuple is written as an array."""
        plain = plain_value(value)
        if isinstance(plain, list):
            return [self.value(one, place) for one in plain]
        if isinstance(plain, dict) and all(isinstance(key, str) for key in plain):
            return {key: self.value(one, place) for key, one in plain.items()}
        if plain is None or isinstance(plain, (str, bool, int, float)):
            return plain
        raise SpecError(
            "JSON has no such value",
            place=place,
            found=(f"{value}: " if isinstance(value, enum.Enum) else "") + type(plain).__name__,
            expected="text, a number, true, false, None",
        )

    def hints(self, item: Any) -> dict[str, Any]:
        try:
            return hints_of(item)
        except (NameError, SyntaxError, AttributeError, TypeError) as error:
            raise SpecError(f"an annotation cannot be resolved: {error}", place=self.name) from None

    def refuse(self, annotation: Any, place: str, expected: str = "") -> SpecError:
        return SpecError(
            "this annotation has no JSON Schema",
            place=place,
            found=getattr(annotation, "__name__", None) or repr(annotation),
            expected=expected
            or "str, int, float, Decimal, bool, None, datetime, UUID, Path, list, dict, set, tuple, Literal, Enum, "
            "a dataclass, a model …",
        )


def _default(value: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """The keyword ``default`` of a parameter, where the call that says its value is surely the call without it: for
    what JSON has and Python takes from it unchanged, None where it may be written."""
    if type(value) not in (str, bool, int, float, type(None)) or "default" in schema:
        return {}
    if value is None and schema and {"type": "null"} not in (schema, *schema.get("anyOf", ())):
        return {}
    try:
        check_value(value, "")
    except SpecError:  # no number of JSON, or no text
        return {}
    return {"default": value}


def _plain(annotation: Any) -> dict[str, Any] | None:
    try:
        return _PLAIN[annotation] if annotation in _PLAIN else standard_schema(annotation)
    except TypeError:  # metadata inside of it has no hash
        return None
