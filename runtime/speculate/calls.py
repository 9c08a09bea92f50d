"""Calls in the text of a model: reading them back, where an unfinished one stands, and writing one.

Leaves out   checking a call against its tool: see check.py.
Invariants   `read` finds what `write` wrote. It takes any blanks where JSON takes them.
Formats      A format is the text around a name and its arguments. Those with one pair of texts for every call are here;
             any other protocol needs a CallFormat of its own.
Source       docs/protocols.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .errors import SpeculateError
from .keys import parse_object

if TYPE_CHECKING:
    from ..bundle import Bundle

_PIECES = re.compile(r'[{}\[\],:"]|[^\s{}\[\],:"]+')
_NAME = r"[A-Za-z0-9_.-]{1,128}"


@dataclass(frozen=True)
class Call:
    """A call as a model wrote it.

    Attributes:
        name: of the tool.
        arguments: the JSON value.
        text: of the arguments, as written; what clients are given.
        id: of the call, where the endpoint gave it one.
    """

    name: str
    arguments: Mapping[str, Any]
    text: str = ""
    id: str = ""

    @classmethod
    def parse(cls, name: str, text: str, id: str = "") -> Call:
        """A call from the text of its arguments."""
        return cls(name, parse_object(text or "{}", f"arguments of {name}"), text or "{}", id)


@dataclass(frozen=True)
class Reading:
    """What a text amounts to.

    Attributes:
        content: the text outside of calls.
        calls: those that ended.
        open: the name of a call that has begun, once it is settled, and the place in the text where the name ends.
    """

    content: str
    calls: tuple[Call, ...] = ()
    open: tuple[str, int] | None = None


@dataclass(frozen=True)
class CallFormat:
    """begin name middle arguments end.

    Attributes:
        mark: a text without which no call begins, so that plain text is passed over quickly.
    """

    begin: str
    middle: str
    end: str
    mark: str = field(default="{")

    @cached_property
    def _opening(self) -> re.Pattern[str]:
        return re.compile(rf"{_loose(self.begin)}(?P<name>{_NAME})(?P<settled>{re.escape(self.middle[:1])})?")

    @cached_property
    def _middle(self) -> re.Pattern[str]:
        return re.compile(_loose(self.middle, quoted=True) + r"\s*")

    @cached_property
    def _end(self) -> re.Pattern[str]:
        return re.compile(r"\s*" + _loose(self.end))

    def write(self, name: str, arguments: Mapping[str, Any], compact: bool = False) -> str:
        """A call as models write it, with the blanks of json.dumps, or without any."""
        begin = self.begin.replace('": "', '":"') if compact else self.begin
        return f"{begin}{name}{self.after_name(arguments, compact)}"

    def after_name(self, arguments: Mapping[str, Any], compact: bool = False) -> str:
        """The part of a call that follows its name."""
        text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":") if compact else None)
        middle = self.middle.replace(", ", ",").replace(": ", ":") if compact else self.middle
        return f"{middle}{text}{self.end}"

    def read(self, text: str) -> Reading:
        """The calls of a turn, finished or not.

        Raises:
            SpeculateError: a call holds what is no JSON object.
        """
        content: list[str] = []
        calls: list[Call] = []
        at = 0
        while (begin := text.find(self.mark, at)) >= 0:
            opening = self._opening.match(text, begin)
            if opening is None:
                content.append(text[at : begin + len(self.mark)])
                at = begin + len(self.mark)
                continue
            content.append(text[at:begin])
            middle = self._middle.match(text, opening.end("name"))
            found = None if middle is None else _value(text, middle.end())
            end = None if found is None else self._end.match(text, found[1])
            if middle is None or found is None or end is None:
                settled = opening["settled"] is not None
                return Reading(
                    "".join(content), tuple(calls), (opening["name"], opening.end("name")) if settled else None
                )
            written = text[middle.end() : found[1]]
            calls.append(Call(opening["name"], parse_object(written, f"call of {opening['name']}"), written))
            at = end.end()
        content.append(text[at:])
        return Reading("".join(content), tuple(calls))


def _loose(text: str, quoted: bool = False) -> str:
    """A pattern for the text, with blanks allowed between pieces of JSON, but not at its ends or inside of quotes."""
    pieces = _PIECES.findall(text)
    out = ""
    for n, piece in enumerate(pieces):
        inside = quoted
        quoted ^= piece == '"'
        out += ("" if n == 0 or inside else r"\s*") + re.escape(piece)
    return out


def _value(text: str, at: int) -> tuple[Any, int] | None:
    """The JSON value that begins there and where it ends; None if it has not ended."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None


_DECODER = json.JSONDecoder()

FORMATS: Mapping[str, CallFormat] = {
    "json": CallFormat('{"name": "', '", "arguments": ', "}"),
    "hermes": CallFormat('<tool_call>\n{"name": "', '", "arguments": ', "}\n</tool_call>", "<tool_call>"),
    "llama3": CallFormat('{"name": "', '", "parameters": ', "}"),
}


def format_of(protocol: str | None) -> CallFormat:
    """The format of a bundle's protocol."""
    name = protocol or "json"
    if name not in FORMATS:
        raise SpeculateError(
            "calls of this protocol cannot be read back yet",
            found=repr(name),
            expected="one of " + ", ".join(FORMATS),
            hint="give a CallFormat",
        )
    return FORMATS[name]


def is_compact(bundle: Bundle) -> bool:
    """Whether a bundle allows no blanks between the pieces of JSON."""
    return (bundle.meta.get("options") or {}).get("whitespace") in ("compact", 0)
