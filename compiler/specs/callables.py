"""Python functions and pydantic models as tools: the arguments of a signature, the fields of a model.

    from toolc.compiler import read_spec
    read_spec([current_weather, Forecast])

The name is that of the function or class, the description its docstring; a parameter without a default is required.

Leaves out   what the schemas mean (../schema); pydantic writes the schemas of its own models.
Invariants   arguments keep the order of the signature, and nothing else may stand in them unless there is a ``**name``.
             A parameter without annotation takes any JSON value.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import types
import typing
from typing import Any, Literal

from ..errors import SpecError
from .marks import KEY, marks_of
from .model import ToolSpec, escape

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
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def is_callable(source: Any) -> bool:
    """Whether a source is a function or model, or a list of them."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(callable(one) for one in source)
    return callable(source)


def read_callables(source: Any) -> tuple[Any, list[ToolSpec]]:
    """The document that stands for the functions and models, and their tools."""
    items = list(source) if isinstance(source, (list, tuple)) else [source]
    document = [_function(one) for one in items]
    tools = []
    for i, function in enumerate(document):
        schema = function["parameters"]
        marks = marks_of(function, f"{function['name']}#", annotations=False)
        tools.append(ToolSpec(function["name"], function["description"], schema, f"/{i}/parameters", schema, **marks))
    return document, tools


def _function(item: Any) -> dict[str, Any]:
    """The function document of an item, with the marks of toolc.runtime.speculate's decorator where it has them."""
    marks = getattr(item, "__toolc__", None)
    return _signature(item) | ({} if marks is None else {KEY: marks})


def _signature(item: Any) -> dict[str, Any]:
    name = getattr(item, "__name__", type(item).__name__)
    about = inspect.getdoc(item) or ""
    if hasattr(item, "model_json_schema"):
        schema = item.model_json_schema()
        if item.__doc__ is None:
            about = ""
        return {"name": name, "description": about, "parameters": {"additionalProperties": False, **schema}}
    types_ = _Types(name)
    try:
        schema = types_.members(item) if isinstance(item, type) else types_.signature(item)
    except NameError as error:
        raise SpecError(f"an annotation cannot be resolved: {error}", place=name) from None
    if types_.definitions:
        schema["$defs"] = types_.definitions
    return {"name": name, "description": about, "parameters": schema}


class _Types:
    """Annotations as schemas; classes with members become definitions, so they may mention each other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.definitions: dict[str, Any] = {}

    def signature(self, item: Any) -> dict[str, Any]:
        try:
            parameters = inspect.signature(item).parameters
        except (TypeError, ValueError):
            raise SpecError("this callable has no signature that can be read", place=self.name) from None
        hints = _hints(item)
        properties: dict[str, Any] = {}
        required = []
        more: Any = False
        for one in parameters.values():
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
            if one.default is one.empty:
                required.append(one.name)
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}

    def members(self, item: type) -> dict[str, Any]:
        """A dataclass or TypedDict as an object, any other class by its constructor."""
        if dataclasses.is_dataclass(item):
            hints = _hints(item)
            needed = [
                field.name
                for field in dataclasses.fields(item)
                if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING and field.init
            ]
            names = [field.name for field in dataclasses.fields(item) if field.init]
        elif typing.is_typeddict(item):
            hints = _hints(item)
            names = list(hints)
            needed = [name for name in names if name in getattr(item, "__required_keys__", ())]
        else:
            return self.signature(item)
        properties = {name: self.schema(hints[name], f"{self.name}.{name}") for name in names}
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    def schema(self, annotation: Any, place: str) -> dict[str, Any]:
        """The schema of an annotation."""
        try:
            if annotation in _PLAIN:
                return dict(_PLAIN[annotation])
        except TypeError:  # not hashable: no type
            raise self.refuse(annotation, place) from None
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            about = [one for one in arguments[1:] if isinstance(one, str)]
            return {**self.schema(arguments[0], place), **({"description": about[0]} if about else {})}
        if origin in (typing.Required, typing.NotRequired) if hasattr(typing, "Required") else False:
            return self.schema(arguments[0], place)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.schema(one, place) for one in arguments]}
        if origin is tuple:
            if len(arguments) == 2 and arguments[1] is ...:
                return {"type": "array", "items": self.schema(arguments[0], place)}
            items = [self.schema(one, place) for one in arguments]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if origin in _LISTS or origin in (set, frozenset, collections.abc.Set):
            return {"type": "array", "items": self.schema(arguments[0], place)}
        if origin in _MAPS:
            if arguments[0] is not str:
                raise self.refuse(annotation, place, "keys that are str")
            return {"type": "object", "additionalProperties": self.schema(arguments[1], place)}
        if isinstance(annotation, type):
            return self.of_class(annotation, place)
        raise self.refuse(annotation, place)

    def of_class(self, item: type, place: str) -> dict[str, Any]:
        if issubclass(item, enum.Enum):
            return {"enum": [one.value for one in item]}
        name = item.__name__
        if hasattr(item, "model_json_schema"):
            schema = item.model_json_schema(ref_template="#/$defs/{model}")
            self.definitions.update(schema.pop("$defs", {}))
            self.definitions[name] = {"additionalProperties": False, **schema}
        elif name not in self.definitions:
            if not dataclasses.is_dataclass(item) and not typing.is_typeddict(item):
                raise self.refuse(item, place)
            self.definitions[name] = {}
            self.definitions[name] = self.members(item)
        return {"$ref": f"#/$defs/{escape(name)}"}

    def refuse(self, annotation: Any, place: str, expected: str = "") -> SpecError:
        return SpecError(
            "this annotation has no JSON Schema",
            place=place,
            found=getattr(annotation, "__name__", None) or repr(annotation),
            expected=expected
            or "str, int, float, bool, None, list, dict, tuple, Literal, Enum, a dataclass, a model …",
        )


def _hints(item: Any) -> dict[str, Any]:
    target = item if isinstance(item, type) or inspect.isroutine(item) else type(item).__call__
    if isinstance(item, type) and not dataclasses.is_dataclass(item) and not typing.is_typeddict(item):
        target = item.__init__  # type: ignore[misc]
    return typing.get_type_hints(target, include_extras=True)
