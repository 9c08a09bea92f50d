"""Request lines: ``GET /film/{id}?page=2`` and a body → the arguments of the operation that it calls, and back.

An operation is [method, path, [argument, part of the request, name there] of every argument], as a bundle stores it.

Where two parameters share a segment of the path (``/{low}-{high}``), the first does not hold the first character of
what parts them, other than as its first, and percent-encodes it: so there is one way to split the segment.

Leaves out   what a text says as a value: the caller tells (arguments.py).
Source       RFC 3986 2.1 and 3.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from .json_text import load

_NAME = "!$'()*,;:@/?[]"
"""What stands in the name of a query parameter as it is, beside letters, digits and ``- . _ ~``."""

Value = Callable[[str, str], Any]
"""(argument, its text) → its value."""


def read_request(request: Sequence[Any], text: str, value: Value) -> dict[str, Any]:
    """The arguments that a request line gives, in the order of the operation.

    Raises:
        ValueError: it is no request of this operation.
    """
    method, path, parts = request
    pieces = path_pieces(path)
    names = pieces[1::2]
    route = "([^/? ]+?)".join(map(re.escape, pieces[::2]))
    found = re.fullmatch(rf"{re.escape(method)} {route}(?:\?([^ ]*))?(?: (.*))?", text, re.DOTALL)
    if found is None:
        raise ValueError(f"it is no {method} {path}")
    *segments, query, body = found.groups()
    said = {("path", name): segment for name, segment in zip(names, segments, strict=True)}
    for member in query.split("&") if query is not None else ():
        name, _, spelled = member.partition("=")
        said["query", unquote(name, errors="strict")] = spelled
    arguments = {}
    for argument, part, name in parts:
        if (part, name) in said:
            arguments[argument] = value(argument, unquote(said[part, name], errors="strict"))
        elif part == "body" and body is not None:
            arguments[argument] = load(body)
    return arguments


def request_line(request: Sequence[Any], arguments: Mapping[str, Any], spelled: Callable[[Any], str]) -> str:
    """The request line of a call, arguments in the operation's order; what a line cannot say is left out.

    Args:
        spelled: a value that is no string as JSON.
    """
    method, path, parts = request
    query, body, parted = [], "", parting(path)
    for argument, part, name in parts:
        if argument not in arguments:
            continue
        value = arguments[argument]
        if part == "body":
            body = " " + spelled(value)
            continue
        text = quote(value if isinstance(value, str) else spelled(value), safe="")
        if part == "path":
            mark = parted.get(name)
            if mark and isinstance(value, str):
                text = text.replace(mark, f"%{ord(mark):02X}")
            path = path.replace("{" + name + "}", text)
        elif part == "query":
            query.append(f"{query_name(name)}={text}")
    return f"{method} {path}" + ("?" + "&".join(query) if query else "") + body


def path_pieces(path: str) -> list[str]:
    """The texts of a path around its parameters and, at odd places, the names of these."""
    return re.split(r"\{([^{}]+)\}", path)


def parting(path: str) -> dict[str, str]:
    """Path parameter that another one follows in its segment → the first character of what parts them."""
    pieces = path_pieces(path)
    return {pieces[n]: pieces[n + 1][:1] for n in range(1, len(pieces) - 2, 2) if "/" not in pieces[n + 1]}


def query_name(name: str) -> str:
    """The name of a query parameter as a request line writes it."""
    return quote(name, safe=_NAME)
