"""Arguments as the types that a function declares: a datetime, a UUID, a dataclass, a model of pydantic. Run calls.

    call.typed()                       # of a bundle that was compiled from functions in this process
    call.typed(current_weather)        # of any bundle
    run(calls, [current_weather])      # what the functions give

Leaves out   what JSON stands for a type: the compiler's specs/callables.py, which reads signatures with this module.
Invariants   what a mask allows becomes a value of the declared type, as pydantic makes it of the same text; classes of
             pydantic are made by pydantic itself, which is imported by them alone. A parameter that the call leaves out
             is left out here, so the function's own default holds.
"""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import datetime
import enum
import functools
import inspect
import ipaddress
import json
import pathlib
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from importlib import import_module
from typing import Any

from ..errors import ArgumentError, DecodeError
from ..expected import did_you_mean, expect, named_kind
from .json_text import exact


class Call(typing.Protocol):
    """A call that was read, as `events.Call`."""

    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> Mapping[str, Any]: ...
    @property
    def text(self) -> str: ...
    @property
    def mode(self) -> str: ...
    @property
    def declared(self) -> Any: ...


Declared = Callable[..., Any] | type
"""A function, a method, or a class: a dataclass, a TypedDict, a model of pydantic."""

_OWN = ("self", "cls")
_TYPED_DICT_WRAPS = tuple(getattr(typing, name) for name in ("Required", "NotRequired") if hasattr(typing, name))


# -- signatures


def name_of(declared: Any) -> str:
    """The name of the tool that a function or class is."""
    while isinstance(declared, functools.partial):
        declared = declared.func
    return str(getattr(declared, "__name__", type(declared).__name__))


def is_unbound(declared: Any) -> bool:
    """Whether this is a method taken from its class, so that nothing is its ``self`` yet."""
    names = getattr(declared, "__qualname__", "").split(".")
    if not inspect.isfunction(declared) or len(names) < 2 or names[-2] == "<locals>":
        return False
    first = next(iter(inspect.signature(declared).parameters), None)
    return first in _OWN


def parameters_of(declared: Any) -> list[inspect.Parameter]:
    """The parameters that a call writes: without ``self``.

    Raises:
        TypeError, ValueError: there is no signature that can be read.
    """
    parameters = list(inspect.signature(declared).parameters.values())
    return parameters[1:] if is_unbound(declared) else parameters


def hints_of(declared: Any) -> dict[str, Any]:
    """The annotations of a function's parameters, or of a class's members, resolved.

    Raises:
        NameError, SyntaxError, AttributeError, TypeError: one of them cannot be.
    """
    while isinstance(declared, functools.partial):
        declared = declared.func
    target = declared if isinstance(declared, type) or inspect.isroutine(declared) else type(declared).__call__
    if isinstance(declared, type) and not has_members(declared):
        target = declared.__init__  # type: ignore[misc]
    return typing.get_type_hints(target, include_extras=True)


def has_members(kind: Any) -> bool:
    """Whether a class declares its members: a dataclass, a TypedDict, a NamedTuple."""
    return dataclasses.is_dataclass(kind) or typing.is_typeddict(kind) or is_named_tuple(kind)


def is_named_tuple(kind: Any) -> bool:
    """Whether a class is a NamedTuple, which JSON writes as an array."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def is_of_pydantic(annotation: Any) -> bool:
    """Whether pydantic has to say what an annotation means: a model, a dataclass of its own, a type as HttpUrl."""
    if typing.get_origin(annotation) is typing.Annotated:
        kind, *metadata = typing.get_args(annotation)
        return is_of_pydantic(kind) or any(_changes(one) for one in metadata)
    return hasattr(annotation, "__get_pydantic_core_schema__") or hasattr(annotation, "__pydantic_core_schema__")


_OF_TOOLC = frozenset(("FieldInfo", "StringConstraints", "Strict", "WithJsonSchema", "Examples", "SkipJsonSchema"))
_VALIDATORS = frozenset(("BeforeValidator", "AfterValidator", "WrapValidator", "PlainValidator"))


def _changes(one: Any) -> bool:
    """Whether metadata of pydantic makes another type of a type, as UuidVersion, EncodedBytes, PathType."""
    kind = one if isinstance(one, type) else type(one)
    known = kind.__name__ in _OF_TOOLC or kind.__name__ in _VALIDATORS or kind.__name__.endswith("Serializer")
    return kind.__module__.startswith("pydantic") and hasattr(one, "__get_pydantic_core_schema__") and not known


# -- calls


def typed(call: Call, declared: Declared | None = None) -> Any:
    """See `Call.typed`."""
    declared = call.declared if declared is None else declared
    if declared is None:
        raise DecodeError(
            "no function is known for this call",
            found=f"a call of {call.name}, whose bundle was not compiled from functions in this process",
            expected="the function, or the class, that the tool was made of",
            hint=f"write call.typed({call.name})",
        )
    value = json.loads(call.text, parse_float=exact) if call.text and call.mode == "json" else call.arguments
    return _arguments(declared, value, call.name)


def run(calls: Iterable[Call], functions: Iterable[Declared] | Mapping[str, Declared] | None = None) -> list[Any]:
    """Run calls, one after the other: each function gets its arguments as the types that it declares.

    Args:
        calls: what `read_calls` or a `Reader` gives.
        functions: by name, or a list; None: those that the bundle was compiled from in this process. A class, as a
            dataclass or a model, gives the object.

    Returns:
        What the functions gave, in the order of the calls; of an async function, what there is to await.

    Raises:
        DecodeError: there is no function of this name, a method has no object, or a value is none of its type. All of
            them are looked at before the first function runs. What a function raises is raised.
    """
    expect(calls, collections.abc.Iterable, "run(calls)", "a list of calls", {"Call": "write run([call])"})
    calls = list(calls)
    for one in calls:
        if not hasattr(one, "declared"):
            hint = "read it first: run(read_calls(bundle, text))" if isinstance(one, str) else None
            raise ArgumentError(
                place="run(calls)", found=named_kind(one), expected="calls, as read_calls gives them", hint=hint
            )
    known: dict[str, Any] | None = None
    if functions is not None:
        known = dict(functions) if isinstance(functions, Mapping) else {name_of(one): one for one in functions}
    ready: list[tuple[Any, Any]] = []
    for call in calls:
        declared: Any = call.declared if known is None else known.get(call.name)
        if declared is None and known is not None:
            raise DecodeError(
                "no function has the name of this call",
                found=repr(call.name),
                expected="one of " + ", ".join(sorted(known)) if known else "at least one function",
                hint=did_you_mean(call.name, known),
            )
        if is_unbound(declared):
            raise DecodeError(
                "a method needs its object to run",
                place=call.name,
                found=getattr(declared, "__qualname__", call.name),
                hint=f"give the method of an object, as thing.{getattr(declared, '__name__', call.name)}",
            )
        ready.append((declared, typed(call, declared)))
    return [value if _is_object(declared) else declared(**value) for declared, value in ready]


def read_value(declared: Any, text: str | bytes) -> Any:
    """The value of a type that a JSON text says, as the answer to a `compile_schema(Person)`.

    Raises:
        DecodeError: the text is no JSON, or says no value of this type.
    """
    name = getattr(declared, "__name__", "value")
    expect(text, (str, bytes), "read_value(text)", "the text of a JSON value")
    try:
        value = json.loads(text, parse_float=exact)
    except ValueError as error:
        raise DecodeError(f"this is no JSON: {error}", place=name, found=repr(text)[:80]) from None
    return convert(declared, value, name)


def _is_object(declared: Any) -> bool:
    """Whether arguments are an object of a class, not parameters of a function."""
    members = has_members(declared) and not is_named_tuple(declared)
    return isinstance(declared, type) and (is_of_pydantic(declared) or members)


def _arguments(declared: Any, value: Mapping[str, Any], name: str) -> Any:
    """The arguments of one call: an object of a class that declares its members, else by name."""
    if _is_object(declared):
        return convert(declared, dict(value), name)
    hints = hints_of(declared)
    parameters = parameters_of(declared)
    rest = next((one.name for one in parameters if one.kind is one.VAR_KEYWORD), "")
    plain = {one.name for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    found = {}
    for key, one in value.items():
        if key not in plain and not rest:
            raise DecodeError(
                "the function has no such parameter",
                place=name,
                found=repr(key),
                expected=", ".join(sorted(plain)) or "no arguments",
            )
        found[key] = convert(hints.get(key if key in plain else rest, Any), one, f"{name}({key})")
    return found


# -- values


def convert(annotation: Any, value: Any, place: str) -> Any:
    """The value of a type that a JSON value stands for.

    Args:
        annotation: the type.
        value: what JSON says; numbers may be Decimals.
        place: where errors are.

    Raises:
        DecodeError: the value stands for none.
    """
    if is_of_pydantic(annotation):
        return _by_pydantic(annotation, value, place)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated or origin in _TYPED_DICT_WRAPS:
        return convert(arguments[0], value, place)
    if is_alias(annotation):
        return convert(alias_of(annotation), value, place)
    if origin is typing.Literal:
        return _one_of(arguments, value, place)
    if origin in (typing.Union, types.UnionType):
        return _of_union(arguments, value, place)
    kind = origin or annotation
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _one_of(tuple(kind), value, place)
    if kind in _READERS or kind in (None, type(None), str, bool, int, float):
        return _plain(kind, value, place)
    if has_members(kind):
        return _members(kind, value, place)
    if kind in _MAPPINGS:
        if not isinstance(value, dict):
            raise _wrong(value, "an object", place)
        key, item = arguments if len(arguments) == 2 else (Any, int if kind is collections.Counter else Any)
        read = {_key(key, k, place): convert(item, v, f"{place}/{k}") for k, v in value.items()}
        make = _MAPPINGS[kind]
        return make(read)
    if kind in _ARRAYS:
        if not isinstance(value, list):
            raise _wrong(value, "an array", place)
        if kind is tuple and arguments and arguments[-1] is not ...:
            if len(value) != len(arguments):
                raise _wrong(value, f"an array of {len(arguments)} values", place)
            return tuple(convert(one, v, f"{place}/{i}") for i, (one, v) in enumerate(zip(arguments, value)))
        item = arguments[0] if arguments and arguments[0] != () else Any
        return _ARRAYS[kind](convert(item, v, f"{place}/{i}") for i, v in enumerate(value))
    return _number(value)  # Any, object, no annotation


_ARRAYS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Iterable: list,
    collections.abc.Collection: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}
_MAPPINGS: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    collections.OrderedDict: collections.OrderedDict,
    collections.defaultdict: lambda found: collections.defaultdict(None, found),
    collections.Counter: collections.Counter,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


def is_alias(annotation: Any) -> bool:
    """Whether this is a NewType or a ``type X = …``."""
    return hasattr(annotation, "__supertype__") or type(annotation).__name__ == "TypeAliasType"


def alias_of(annotation: Any) -> Any:
    """What a NewType or a ``type X = …`` stands for."""
    return getattr(annotation, "__supertype__", None) or annotation.__value__


def _wrong(value: Any, expected: str, place: str) -> DecodeError:
    return DecodeError("this is no value of the declared type", place=place, found=repr(value)[:80], expected=expected)


def _number(value: Any) -> Any:
    """A value without Decimals: numbers as Python's own JSON reads them."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {key: _number(one) for key, one in value.items()}
    return [_number(one) for one in value] if isinstance(value, list) else value


def _plain(kind: Any, value: Any, place: str) -> Any:
    if kind in (None, type(None)):
        if value is not None:
            raise _wrong(value, "null", place)
        return None
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    if kind is bool and isinstance(value, bool) or kind is str and isinstance(value, str):
        return value
    if kind is float and is_number:
        return float(value)
    if kind is int and is_number and value == int(value):
        return int(value)
    if kind is Decimal and is_number:
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if kind in _READERS and isinstance(value, str):
        try:
            return _READERS[kind](value)
        except (ValueError, InvalidOperation, OverflowError, re.error):
            pass
    raise _wrong(value, f"what stands for {getattr(kind, '__name__', kind)}", place)


_OFFSET = re.compile("[Zz]$")
_FRACTION = re.compile(r"\.([0-9]+)")
_ISO = re.compile(
    r"(-?)P(?:([0-9]+)Y)?(?:([0-9]+)W)?(?:([0-9]+)D)?(?:T(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]+))?S)?)?"
)


def _iso(text: str) -> str:
    """What Python 3.10 reads, too: six digits of a fraction, and an offset in digits."""
    return _OFFSET.sub("+00:00", _FRACTION.sub(lambda found: "." + found[1][:6].ljust(6, "0"), text, count=1))


def _duration(text: str) -> datetime.timedelta:
    found = _ISO.fullmatch(text)
    if found is None:
        raise ValueError(text)
    years, weeks, days, hours, minutes, seconds = (int(one or 0) for one in found.groups()[1:7])
    microseconds = int((found[8] or "").ljust(6, "0")[:6] or 0)
    sign = -1 if found[1] else 1
    whole = datetime.timedelta(
        days=365 * years + 7 * weeks + days, hours=hours, minutes=minutes, seconds=seconds, microseconds=microseconds
    )
    return sign * whole


_READERS: dict[Any, Callable[[str], Any]] = {
    datetime.datetime: lambda text: datetime.datetime.fromisoformat(_iso(text)),
    datetime.date: datetime.date.fromisoformat,
    datetime.time: lambda text: datetime.time.fromisoformat(_iso(text)),
    datetime.timedelta: _duration,
    uuid.UUID: uuid.UUID,
    Decimal: Decimal,
    bytes: str.encode,
    re.Pattern: re.compile,
    ipaddress.IPv4Address: ipaddress.IPv4Address,
    ipaddress.IPv6Address: ipaddress.IPv6Address,
    **{
        kind: kind
        for kind in (
            pathlib.Path, pathlib.PurePath, pathlib.PosixPath, pathlib.WindowsPath, pathlib.PurePosixPath,
            pathlib.PureWindowsPath,
        )
    },
}  # fmt: skip


def plain_value(value: Any) -> Any:
    """What JSON writes for a value of an Enum or a Literal; a tuple is written as an array."""
    plain = value.value if isinstance(value, enum.Enum) else value
    if isinstance(plain, (list, tuple)):
        return [plain_value(one) for one in plain]
    if isinstance(plain, dict):
        return {key: plain_value(one) for key, one in plain.items()}
    return plain


def _one_of(choices: tuple[Any, ...], value: Any, place: str) -> Any:
    for choice in choices:
        plain = plain_value(choice)
        if plain == value and isinstance(plain, bool) == isinstance(value, bool):
            return choice
    raise _wrong(value, "one of " + ", ".join(repr(plain_value(one)) for one in choices)[:200], place)


def _of_union(members: tuple[Any, ...], value: Any, place: str) -> Any:
    """The first member whose values JSON writes as they are, else the first that can be made of the value."""
    if type(value) in members:
        return value
    if value is None and (None in members or type(None) in members):
        return None
    errors = []
    for one in members:
        try:
            return convert(one, value, place)
        except DecodeError as error:
            errors.append(error)
    expected = " or ".join(dict.fromkeys(error.expected or error.message for error in errors))
    raise _wrong(value, expected, place)


def _key(annotation: Any, key: str, place: str) -> Any:
    """The key of a dict, as its type: JSON has text only."""
    if annotation is int and key.lstrip("-").isdecimal():
        return int(key)
    return convert(annotation, key, f"{place}, the key {key!r}")


def _members(kind: Any, value: Any, place: str) -> Any:
    hints = hints_of(kind)
    if is_named_tuple(kind):
        if not isinstance(value, list) or len(value) > len(kind._fields):
            raise _wrong(value, f"an array of at most {len(kind._fields)} values", place)
        return kind(*(convert(hints.get(name, Any), v, f"{place}/{name}") for name, v in zip(kind._fields, value)))
    if not isinstance(value, dict):
        raise _wrong(value, "an object", place)
    names = (
        [field.name for field in dataclasses.fields(kind) if field.init] if dataclasses.is_dataclass(kind) else hints
    )
    for name in value:
        if name not in names:
            raise _wrong(name, "one of the members " + ", ".join(names), place)
    found = {name: convert(hints[name], one, f"{place}/{name}") for name, one in value.items()}
    try:
        return kind(**found)
    except TypeError as error:  # a member is missing
        raise DecodeError(f"{kind.__name__} cannot be made: {error}", place=place, found=repr(value)[:80]) from None


@functools.cache
def _adapter(annotation: Any) -> Any:
    return import_module("pydantic").TypeAdapter(annotation)


def _by_pydantic(annotation: Any, value: Any, place: str) -> Any:
    refused = import_module("pydantic").ValidationError
    try:
        adapter = _adapter(annotation)
    except TypeError:  # metadata inside of it has no hash
        adapter = import_module("pydantic").TypeAdapter(annotation)
    try:
        return adapter.validate_json(_text(value))
    except refused as error:
        first = error.errors(include_url=False)[0]
        at = "".join(f"/{one}" for one in first["loc"])
        raise DecodeError(
            f"pydantic refuses this value: {first['msg']}", place=place + at, found=repr(first.get("input"))[:80]
        ) from error


def _text(value: Any) -> str:
    """JSON of a value that may hold Decimals."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{_text(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value)
