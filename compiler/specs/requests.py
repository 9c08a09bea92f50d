"""Read bodies of requests, and what may say the schema of a response: a schema, a response format, a Python type.

Leaves out   the forms of bodies and response formats (toolc.runtime.serving.requests), tools (tools.py), annotations
             (callables.py).
Invariants   places are those of the body. A spec has the tools that the request allows, and its digest is that of the
             request's content where the request asks for nothing but what is asked most.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from toolc.runtime.serving.requests import KIND, Content, is_response_format, read_request, response_of

from ..errors import SpecError, ToolcError
from .callables import is_type, schema_of_type
from .model import Refused, Repair, Spec, digest_of, make_spec
from .selection import Selection
from .tools import read_tools


def request_spec(
    body: Any,
    name: str,
    refused: list[Refused] | None = None,
    select: Selection | None = None,
    repairs: list[Repair] | None = None,
) -> Spec:
    """The spec of a request's body.

    Args:
        body: a checked JSON value.
        name: how errors call it.
        refused, select: as for `read_tools`; repairs: as for `make_spec`.

    Raises:
        RequestError: it is no body of a request, or asks for what is not read.
        SpecError: nothing constrains the answer, or a tool is none.
    """
    request = read_request(body, name)
    content = request.content
    if content is None:
        raise SpecError(
            "nothing constrains the answer to this request", place=f"{name}#", expected="tools, or a response format"
        )
    document = content.document
    with _in_body(content, name):
        tools, hosted = read_tools(document.get("tools", []), name, "/tools", refused, select)
    tools = [
        replace(
            tool,
            pointer=content.place(tool.pointer),
            name_pointer=None if tool.name_pointer is None else content.place(tool.name_pointer),
            places={at: content.place(home) for at, home in tool.places.items()},
            custom=tool.custom and tool.custom._replace(pointer=content.place(tool.custom.pointer)),
        )
        for tool in tools
    ]
    spec = make_spec(KIND, name, document, tools, content.response, hosted, refused, repairs=repairs)
    said: dict[str, Any] = {}
    if request.choice != "auto":
        said["tool_choice"] = request.choice
    if request.one:
        said["parallel_tool_calls"] = False
    if request.allowed is not None:
        said["allowed"] = sorted(request.allowed)
    if request.allowed is not None and request.choice != "tool":
        spec = replace(spec, tools=tuple(tool for tool in spec.tools if tool.name in request.allowed))
    return replace(
        spec,
        digest=digest_of(KIND, {**document, **said}),
        schema_pointer=content.answer_place,
        begins=request.asks,
        unread=request.unread,
    )


@contextmanager
def _in_body(content: Content, name: str) -> Iterator[None]:
    """Errors at places of a content's document name those of the body."""
    try:
        yield
    except ToolcError as error:
        head, sign, pointer = (error.place or "").partition("#")
        if sign and head == name:
            error.place = f"{name}#{content.place(pointer)}"
        raise


def response_schema(value: Any, name: str) -> tuple[Any, str]:
    """The schema that a value says, and its pointer in the value: of a Python type, of a response format, or the value.

    Raises:
        RequestError: it is a response format, and a wrong one.
        SpecError: it is the format ``text``, or a type that has no schema.
    """
    if is_type(value):
        return schema_of_type(value, name), ""
    if not is_response_format(value):
        return value, ""
    schema, place = response_of(value, f"{name}#")
    if schema is None:
        raise SpecError(
            "nothing constrains this answer", place=f"{name}#/type", found='"text"', expected="json_schema, json_object"
        )
    return schema, place.partition("#")[2]
