"""Spec and ToolSpec, and the rules that hold for every kind of spec: names, uniqueness, the digest.

Leaves out   reading documents (source.py) and their forms (tools.py, bfcl.py, openapi.py, swagger.py, callables.py).
Invariants   tool names are 1 to 128 of ``[A-Za-z0-9_.-]`` and differ. A Spec of no tools and no schema is compiled
             only with a response (../option_checks.py).
             A digest depends on the order of keys, since the order of properties is the order of the output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from toolc.runtime.calls.json_text import packed
from toolc.runtime.format.container import blake

from ..errors import SpecError, ToolcError
from .exact_numbers import write_json

Dialect = Literal["json-schema", "openapi-3.0", "openapi-3.1"]
Kind = Literal["tools", "schema", "openapi", "request"]

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}\Z")
FORM = 'a tool: {"type": "function", "function": {"name": …, "parameters": …}}'
ANY_ARGUMENTS: dict[str, Any] = {"type": "object"}
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMA_KEYS = frozenset(
    "$schema $id $ref $defs definitions $anchor $dynamicRef $recursiveRef $comment type enum const properties "
    "required additionalProperties patternProperties propertyNames minProperties maxProperties items prefixItems "
    "additionalItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems "
    "unevaluatedProperties minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum "
    "multipleOf anyOf oneOf allOf not if then else dependencies dependentRequired dependentSchemas nullable title "
    "description default examples contentEncoding contentMediaType contentSchema".split()
)
"""Keywords that tell a JSON Schema from an object that is none."""


class Repair(NamedTuple):
    """What was read otherwise than it stands: its place, which is a JSON pointer until the spec is read, and how."""

    place: str
    how: str


class Custom(NamedTuple):
    """The input of a custom tool: any text, or what a grammar says.

    syntax: "text", "regex" or "lark";  definition: of the grammar;  pointer: JSON pointer of it in the spec document.
    """

    syntax: Literal["text", "regex", "lark"]
    definition: str
    pointer: str


@dataclass(frozen=True)
class ToolSpec:
    """One tool: a name and the schema of its arguments.

    Attributes:
        name: what a call writes in ``"name"``.
        description: for people; may be empty.
        schema: the schema of the arguments, which are an object, whatever it leaves unsaid.
        pointer: JSON pointer, in the spec document, of the arguments schema or of the operation.
        document: what ``$ref`` in the schema resolves against.
        read_only: whether a call changes nothing, where the spec says (GET and HEAD; MCP's readOnlyHint).
        idempotent: whether a second equal call changes nothing more, where the spec says (PUT, DELETE; idempotentHint).
        strict: whether the arguments have to meet the schema, where the spec says (OpenAI); else they do.
        destructive: whether a call may undo or overwrite something, where the spec says (destructiveHint).
        version: of the tool, where the spec says (x-toolc).
        dialect: how the schema's keywords are to be read.
        file: how errors call the document that it stands in, where a spec was joined of several.
        request: of an operation of an API: its method, its path, and argument → (part of a request, name there).
        name_pointer: JSON pointer, in the spec document, of its name; None: errors of the name point to ``pointer``.
        places: for a schema put together from pieces, JSON pointer in it → JSON pointer in the spec document.
        tags: of an operation of an API.
        custom: of a custom tool of OpenAI's, what its input is: a text. Where a protocol's calls have no place for a
            text, the arguments are an object whose member ``input`` is the text: then ``schema`` says so.
    """

    name: str
    description: str
    schema: dict[str, Any] | bool
    pointer: str
    document: Any
    read_only: bool | None = None
    idempotent: bool | None = None
    strict: bool | None = None
    destructive: bool | None = None
    version: str | None = None
    dialect: Dialect = "json-schema"
    places: Mapping[str, str] = field(default_factory=dict)
    request: tuple[str, str, Mapping[str, tuple[str, str]]] | None = None
    file: str = ""
    name_pointer: str | None = None
    tags: tuple[str, ...] = ()
    custom: Custom | None = None

    def name_place(self, name: str) -> str:
        """Where its name stands, in the document of this name or its own file."""
        return f"{self.file or name}#{self.pointer if self.name_pointer is None else self.name_pointer}"

    def place(self, pointer: str) -> str:
        """The JSON pointer in the spec document of ``pointer`` in the arguments schema."""
        for head in sorted(self.places, key=len, reverse=True):
            if pointer == head or pointer.startswith(head + "/"):
                return self.places[head] + pointer[len(head) :]
        return self.pointer + pointer


class Hosted(NamedTuple):
    """A tool in a list that the API itself runs, and whose arguments no schema describes.

    type: what the list says of it;  pointer: JSON pointer of it in the spec document;  file: see `ToolSpec`.
    """

    type: str
    pointer: str
    file: str = ""

    def place(self, name: str) -> str:
        """Where it stands, in the document of this name or its own file."""
        return f"{self.file or name}#{self.pointer}"

    def refused(self, name: str, alone: bool) -> SpecError:
        """The error of a spec, of this name, that is to be compiled with all that it lists, or lists no others."""
        return SpecError(
            "this is no tool that toolc knows",
            place=f"{self.place(name)}/type",
            found=shown(self.type),
            expected=FORM,
            hint="the spec has no other tools"
            if alone
            else "leave it out, if the API itself runs it; with --skip such tools are left out and listed",
        )


class Refused(NamedTuple):
    """A tool that is left out, since it cannot be compiled: its name, where it has one; and why."""

    name: str
    error: ToolcError


@contextmanager
def skipping(refused: list[Refused] | None, name: str = "") -> Iterator[None]:
    """An error inside leaves out the tool of this name.

    Args:
        refused: receives it; None: the error is raised.
    """
    try:
        yield
    except ToolcError as error:
        if refused is None:
            raise
        refused.append(Refused(name, error))


def first_of(refused: Sequence[Refused]) -> ToolcError:
    """The first error, which knows of the others."""
    error = refused[0].error
    error.refused = tuple((one.name, one.error) for one in refused)
    return error


@dataclass(frozen=True, repr=False)
class Spec:
    """A spec document, read.

    Attributes:
        kind: what it was recognised as.
        name: how errors call it, usually the file's name.
        tools: its tools, in the order of the document; empty for a bare schema.
        schema: the bare schema, where ``kind`` is "schema"; that of the response, where a request has one; else None.
        document: the whole document.
        digest: BLAKE2b-128 of kind and content, as hex digits.
        hosted: further tools of the list; they cannot be compiled, and ``skip`` leaves them out.
        schema_pointer: JSON pointer of the schema, in the file.
        begins: the entry, without reasoning, that a request begins with; empty for what is asked most.
        unread: JSON pointers of fields of a request that nobody here knows.
        refused: tools that are left out (``skip``).
        documents: those that its schemas refer to, by URI.
        repairs: what was read otherwise than it stands (``repair``).
        declared: the Python functions and classes that tools were made of, by name.
    """

    kind: Kind
    name: str
    tools: tuple[ToolSpec, ...]
    schema: Any
    document: Any
    digest: str
    hosted: tuple[Hosted, ...] = ()
    schema_pointer: str = ""
    begins: str = ""
    unread: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    documents: Mapping[str, Any] = field(default_factory=dict)
    repairs: tuple[Repair, ...] = ()
    declared: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        held = f"{len(self.tools):,} tools" if self.kind != "schema" else "a schema"
        return f"<Spec {self.name[:60]}: {held}>"


def with_strictness(spec: Spec, strict: bool | None) -> Spec:
    """The spec in which tools that are not strict take any object.

    Args:
        strict: of all tools; None: as each tool says, and strict where it says nothing.
    """
    loose = [tool for tool in spec.tools if strict is False or (strict is None and tool.strict is False)]
    tools = [
        replace(tool, schema=ANY_ARGUMENTS, document=ANY_ARGUMENTS, dialect="json-schema", places={}, strict=False)
        if tool in loose
        else tool
        if tool.strict is None
        else replace(tool, strict=None)
        for tool in spec.tools
    ]
    return replace(spec, tools=tuple(tools))


def make_spec(
    kind: Kind,
    name: str,
    document: Any,
    tools: Sequence[ToolSpec],
    schema: Any = None,
    hosted: Sequence[Hosted] = (),
    refused: list[Refused] | None = None,
    may_be_empty: bool = False,
    repairs: list[Repair] | None = None,
) -> Spec:
    """Check what holds across tools and freeze the spec.

    Args:
        refused: tools that are left out; grows by those whose names cannot be, or stand twice. None: these are errors.
        may_be_empty: whether an API may have no operations, since they were chosen.
        repairs: receives what is read otherwise; None: nothing is.
    """
    first: dict[str, ToolSpec] = {}
    for tool in tools:
        if repairs is not None and tool.name in first:
            tool = _numbered(tool, first, repairs)
        with skipping(refused, tool.name):
            _check_name(tool, first.get(tool.name), name, kind)
            first[tool.name] = tool
    if not first and refused and not hosted:
        raise first_of(refused)
    if kind == "openapi" and not tools and not may_be_empty:
        raise SpecError("the spec has no tools", place=f"{name}#", expected="at least one operation under paths")
    found = tuple(first.values()), schema, document, digest_of(kind, document), tuple(hosted)
    return Spec(kind, name, *found, refused=tuple(refused or ()), repairs=tuple(repairs or ()))


def _numbered(tool: ToolSpec, others: Mapping[str, ToolSpec], repairs: list[Repair]) -> ToolSpec:
    """A tool whose name another has, with a number behind it."""
    number = 2
    while (name := f"{tool.name}_{number}") in others:
        number += 1
    place = f"{tool.file}#{tool.pointer}" if tool.file else tool.pointer
    repairs.append(Repair(place, f"the second tool {quote(tool.name)} is called {quote(name)}"))
    return replace(tool, name=name)


def _check_name(tool: ToolSpec, other: ToolSpec | None, name: str, kind: Kind) -> None:
    """A tool has a name that calls can write, and that no other before it has."""
    if not NAME.match(tool.name):
        raise SpecError(
            "this cannot be the name of a tool",
            place=tool.name_place(name),
            found=quote(tool.name),
            expected="1 to 128 characters of A-Z a-z 0-9 _ . -",
            hint=name_hint(tool.name),
        )
    if other is not None:
        raise SpecError(
            f"two tools have the name {quote(tool.name)}",
            place=tool.name_place(name),
            expected=f"a name that differs from that of {other.name_place(name)}",
            hint="rename one of them"
            + ("; operationId sets the name" if kind == "openapi" else "")
            + "; --repair numbers equal ones",
        )


def digest_of(kind: str, document: Any) -> str:
    """BLAKE2b-128, hex, of the kind, a line feed and the document as `packed`."""
    return blake(kind.encode(), b"\n", packed(document)).hex()


def name_hint(name: str) -> str:
    """What to write in place of a name that is no name."""
    if not name:
        return "give the tool a name"
    if len(name) > 128:
        return f"it has {len(name)} characters; shorten it"
    return f"write {quote(re.sub(r'[^A-Za-z0-9_.-]+', '_', name))}"


def escape(token: str) -> str:
    """One reference token of a JSON pointer."""
    return token.replace("~", "~0").replace("/", "~1")


def quote(value: Any, limit: int = 60) -> str:
    """A JSON value as an error shows it, cut where it is long."""
    text = write_json(value).encode(errors="backslashreplace").decode()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def kind_of(value: Any) -> str:
    """A JSON value's type, as an error names it."""
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        Decimal: "a number",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """A value with its type: ``"3" (a string)``; containers by type alone."""
    if isinstance(value, (dict, list)) and value:
        return kind_of(value)
    return "null" if value is None else f"{quote(value)} ({kind_of(value)})"


def want(value: Any, types: type | tuple[type, ...], place: str, expected: str, hint: str | None = None) -> Any:
    """``value`` if it has one of the types, else SpecError. A boolean is never a number."""
    if not isinstance(value, types):
        raise SpecError(place=place, found=shown(value), expected=expected, hint=hint)
    return value
