"""The arguments of an API operation as the request line that calls it: ``GET /movie/{id}?language=en``.

Values in the path and the query are percent-encoded; the body follows as JSON. Query parameters stand in the declared
order, those that are not required may be left out.

Two parameters of one segment are told apart by what stands between them (runtime/calls/request_line.py), or refused.

Leaves out   headers and cookies, and optional parameters that are no scalars: a request line cannot say them.
Invariants   a parameter that allows strings and other values reads as argument_rules.py says.
Source       RFC 3986 2.1 and 3.4; Song et al. 2023, arXiv 2306.06624, the API calls of RestGPT.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from string import hexdigits

from toolc.runtime.calls.request_line import parting, path_pieces, query_name

from ..errors import UnsupportedError
from ..ir.nodes import EMPTY, Expr, optional, sequence, string
from ..regex import Chars, Regex, charset, parse_regex, union
from .atoms import Conj
from .encoding import Quote
from .member_automata import object_is_plain
from .object_rules import in_order
from .rules import Rules
from .shapes import Constants, Objects, Shape, is_integral_shape
from .spelling import Spelling

Value = Callable[[Rules, str, Conj, str, str], Expr | None]

_UNRESERVED = charset.normal([(45, 46), (48, 57), (65, 90), (95, 95), (97, 122), (126, 126)])
_TAIL = "%[89abAB][0-9a-fA-F]"
_ENCODED = parse_regex(
    "%[0-7][0-9a-fA-F]|%[cC][2-9a-fA-F]" + _TAIL + "|%[dD][0-9a-fA-F]" + _TAIL
    + "|%[eE](?:0%[abAB][0-9a-fA-F]|[1-9a-cA-CefEF]" + _TAIL + "|[dD]%[89][0-9a-fA-F])" + _TAIL
    + "|%[fF](?:0%[9abAB][0-9a-fA-F]|[1-3]" + _TAIL + "|4%8[0-9a-fA-F])" + _TAIL + _TAIL
)  # fmt: skip
_NEVER_APART = frozenset(hexdigits + "%")
"""Characters of what is percent-encoded: where one of them parts two parameters, no value could do without it."""

_DOTS = parse_regex(r"(?:\.|%2[eE]){1,2}")


def _percent(raw: charset.Ranges, never: Regex | None = None) -> Quote:
    escapes = tuple((code, f"%{code:02X}") for code in range(128) if not charset.contains(raw, code))
    return Quote(EMPTY, Spelling(raw, escapes), free=union(Chars(raw), _ENCODED), never=never)


PERCENT = _percent(_UNRESERVED)
"""A percent-encoded string: any, or where something is asked of it, one of ASCII, encoded where it must be."""


@lru_cache(maxsize=4096)
def quote_in_path(path: str, name: str) -> Quote:
    """How a string stands in a path: without the character that parts it from another parameter of its segment, and not
    as a segment of one or two dots, which leads elsewhere (RFC 3986, 5.2.4)."""
    mark = parting(path).get(name)
    raw = charset.difference(_UNRESERVED, ((ord(mark), ord(mark)),)) if mark else _UNRESERVED
    pieces = path_pieces(path)
    at = pieces.index(name, 1)
    around = pieces[at - 1].rpartition("/")[2] + pieces[at + 1].partition("/")[0]
    return _percent(raw, None if around.strip(".") else _DOTS)


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


def request_expr(writer: Rules, shape: Objects, request: Request, value: Value, hint: str, place: str) -> Expr:
    """The request line of a call, and its body.

    Args:
        value: (writer, argument, its schema, name, part) → the rule of its text; None where it has none.
    """
    if not object_is_plain(shape):
        raise UnsupportedError("which parameters there may be cannot be said in a request line", place=place)
    _check_path(request.path, place)
    writer.restrictions.add("request-parts")
    where: dict[str, dict[str, Expr]] = {"path": {}, "query": {}, "body": {}}
    pieces = path_pieces(request.path)
    for argument, one in shape.named:
        part, name = request.parts.get(argument, ("", argument))
        can_say = name in pieces[1::2] if part == "path" else part in where
        rule = value(writer, argument, one, name, part) if can_say and writer.normaliser.alive(one) else None
        if rule is not None:
            where[part][argument] = rule
        elif argument in shape.required:
            raise UnsupportedError(
                f"the parameter {argument!r} is required, and a request line cannot say it",
                place=place,
                hint="choose another protocol",
            )
    of_name = {request.parts[argument][1]: rule for argument, rule in where["path"].items()}
    line = [string(f"{request.method} {pieces[0]}")]
    for n in range(1, len(pieces), 2):
        if pieces[n] not in of_name:
            raise UnsupportedError(
                f"the path needs {pieces[n]!r}, and the arguments may be any object",
                place=place,
                hint="let arguments meet the schema of their tool (strict), or choose another protocol",
            )
        line += [of_name[pieces[n]], string(pieces[n + 1])]
    query = [
        (sequence(string(query_name(request.parts[argument][1]) + "="), rule), argument in shape.required)
        for argument, rule in where["query"].items()
    ]
    line.append(_query(writer, query, hint))
    for argument, rule in where["body"].items():
        body = sequence(string(" "), rule)
        line.append(body if argument in shape.required else optional(body))
    return sequence(*line)


def _check_path(path: str, place: str) -> None:
    """Refuse a path of which a request line does not tell the parameters."""
    pieces = path_pieces(path)
    names = pieces[1::2]
    odd = re.search(r"[?#\x00-\x20\x7f]", "".join(pieces[::2]))
    twice = next((name for name in names if names.count(name) > 1), None)
    near = next((name for name, mark in parting(path).items() if not mark or mark in _NEVER_APART), None)
    wrong = (
        f"the path holds {odd[0]!r}, which ends a path"
        if odd
        else f"the path holds {{{twice}}} twice"
        if twice is not None
        else f"where {near!r} ends and the next parameter begins cannot be said"
        if near is not None
        else ""
    )
    if wrong:
        raise UnsupportedError(wrong, place=place, found=path, hint="choose another protocol")


def check_parted(writer: Rules, path: str, name: str, others: Mapping[str, tuple[Shape, ...]]) -> None:
    """Refuse values but strings, by kind, whose text may hold what parts them from another parameter of their segment,
    other than as its first character, as a minus is."""
    mark = parting(path).get(name, "")
    numbers = others.get("number", ())
    whole = all(is_integral_shape(one) and not _may_have_point(one) for one in numbers)
    if mark and ((mark in ".+-" and not whole) or (mark in "truefalse" and "boolean" in others)):
        raise UnsupportedError(
            f"where {name!r} ends and the next parameter begins cannot be said",
            found=path,
            hint="choose another protocol",
        )


def _may_have_point(shape: Shape) -> bool:
    return isinstance(shape, Constants) and not all(isinstance(constant.value, int) for constant in shape.values)


def _query(writer: Rules, members: list[tuple[Expr, bool]], hint: str) -> Expr:
    """``?`` and the members in order, ``&`` between them, those that are not required each optional."""
    if not members:
        return EMPTY
    query = sequence(string("?"), in_order(writer, members, None, string("&"), hint))
    return query if any(needed for _, needed in members) else optional(query)
