"""The arguments of an API operation as the request line that calls it: ``GET /movie/{id}?language=en``.

Values in the path and the query are percent-encoded; the body follows as JSON. Query parameters stand in the declared
order, those that are not required may be left out.

Leaves out   headers and cookies, and optional parameters that are no scalars: a request line cannot say them.
Invariants   a parameter that allows strings and other values reads as channel.py says.
Source       RFC 3986 2.1 and 3.4; Song et al. 2023, arXiv 2306.06624, the API calls of RestGPT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolc.runtime.request_line import query_name

from ..errors import UnsupportedError
from ..regex import charset
from .atoms import Conj
from .encoding import Quote
from .machine import object_is_plain
from .object_text import sequence
from .shapes import Objects
from .spelling import Spelling
from .strings import literal

if TYPE_CHECKING:
    from .writer import LarkWriter

Value = Callable[["LarkWriter", str, Conj, str, str], "str | None"]

_UNRESERVED = charset.normal([(45, 46), (48, 57), (65, 90), (95, 95), (97, 122), (126, 126)])
_TAIL = "%[89abAB][0-9a-fA-F]"
_FREE = (
    "[A-Za-z0-9._~-]|%[0-7][0-9a-fA-F]|%[cC][2-9a-fA-F]" + _TAIL + "|%[dD][0-9a-fA-F]" + _TAIL
    + "|%[eE](?:0%[abAB][0-9a-fA-F]|[1-9a-cA-CefEF]" + _TAIL + "|[dD]%[89][0-9a-fA-F])" + _TAIL
    + "|%[fF](?:0%[9abAB][0-9a-fA-F]|[1-3]" + _TAIL + "|4%8[0-9a-fA-F])" + _TAIL + _TAIL
)  # fmt: skip
PERCENT = Quote(
    "",
    Spelling(
        _UNRESERVED, tuple((code, f"%{code:02X}") for code in range(128) if not charset.contains(_UNRESERVED, code))
    ),
    free=_FREE,
)
"""A percent-encoded string: any, or where something is asked of it, one of ASCII, encoded where it must be."""


@dataclass(frozen=True)
class Request:
    """What a call of an operation is as a request.

    Attributes:
        method: in capitals.
        path: with its parameters in braces.
        parts: argument → (path, query, body or another part of a request; the parameter's name there).
    """

    method: str
    path: str
    parts: Mapping[str, tuple[str, str]]


def request_text(writer: LarkWriter, shape: Objects, request: Request, value: Value, hint: str, place: str) -> str:
    """The request line of a call, and its body.

    Args:
        value: (writer, argument, its schema, name, part) → the rule of its text; None where it has none.
    """
    if not object_is_plain(shape):
        raise UnsupportedError("which parameters there may be cannot be said in a request line", place=place)
    writer.restrictions.add("request-parts")
    where: dict[str, dict[str, str]] = {"path": {}, "query": {}, "body": {}}
    for argument, one in shape.named:
        part, name = request.parts.get(argument, ("", argument))
        rule = value(writer, argument, one, name, part) if part in where and writer.normaliser.alive(one) else None
        if rule is not None:
            where[part][argument] = rule
        elif argument in shape.required:
            raise UnsupportedError(
                f"the parameter {argument!r} is required, and a request line cannot say it",
                place=place,
                hint="choose another protocol",
            )
    of_name = {request.parts[argument][1]: rule for argument, rule in where["path"].items()}
    pieces = re.split(r"\{([^{}]+)\}", request.path)
    line = [literal(f"{request.method} {pieces[0]}")]
    for n in range(1, len(pieces), 2):
        if pieces[n] not in of_name:
            raise UnsupportedError(
                f"the path needs {pieces[n]!r}, and the arguments may be any object",
                place=place,
                hint="let arguments meet the schema of their tool (strict), or choose another protocol",
            )
        line.append(of_name[pieces[n]])
        if pieces[n + 1]:
            line.append(literal(pieces[n + 1]))
    query = [
        (f"{literal(query_name(request.parts[argument][1]) + '=')} {rule}", argument in shape.required)
        for argument, rule in where["query"].items()
    ]
    line.append(_query(writer, query, hint))
    for argument, rule in where["body"].items():
        line.append(f'" " {rule}' if argument in shape.required else f'(" " {rule})?')
    return " ".join(piece for piece in line if piece)


def _query(writer: LarkWriter, members: list[tuple[str, bool]], hint: str) -> str:
    """``?`` and the members in order, ``&`` between them, those that are not required each optional."""
    if not members:
        return ""
    text = sequence(writer, members, "", '"&" ', hint)
    return f'"?" {text}' if any(needed for _, needed in members) else f'("?" ({text}))?'
