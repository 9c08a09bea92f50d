"""Arguments as values: what the text of a call's arguments says, by the encoding that its protocol writes them in.

    json         one JSON object
    bare         one object with bare keys, strings between two quotes as they are
    parameters   every value in a part of its own that the automaton marks; a raw text is JSON of a type that the
                 parameter may have, else the text itself
    elements     the same, arrays and objects part by part (elements.py)
    keywords     the arguments of a Python call, ``a=1, b="x"``
    positional   JSON values, comma between, in the order of the parameters
    request      the request line of an API operation (request_line.py); values as with parameters

The arguments of a custom tool (``input`` in the tool's entry) are one text, ``{"input": text}``: where it says "text",
the text of the arguments is this text; where it says "member", it is written as any argument.

Leaves out   where arguments and parts begin and end: see reader.py.
Invariants   a text that a bundle accepts has a value; of a key that stands twice the last counts.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import DecodeError
from .blanks import BLANKS
from .elements import Elements
from .json_text import load
from .request_line import read_request

INPUT = "input"
"""The argument of a custom tool: its text."""
_CONSTANTS = {"null": None, "true": True, "false": False}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_WORD = re.compile(_QUOTED + r"|(?<![0-9.])[A-Za-z_]\w*", re.DOTALL)
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.0+)?")


class Part(NamedTuple):
    """A parameter in a part of its own: its name, its text, whether that is surely a string."""

    key: str
    text: str
    string: bool


def decode(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    """The arguments of one call.

    Args:
        how: `meta["arguments"]` of the bundle.
        tool: the tool's entry in `meta["spec"]["tools"]`.
        text: the whole text of the arguments.
        parts: the parts in it, in order.

    Raises:
        DecodeError: the encoding is unknown, or the text is not written in it.
    """
    if tool.get("input") == "text":
        return {INPUT: text}
    encoding = how.get("encoding", "json")
    reader = _READERS.get(encoding)
    if reader is None:
        raise DecodeError(
            "the arguments are written in an encoding that this runtime does not know",
            found=repr(encoding),
            expected=", ".join(_READERS),
            hint="use the toolc that compiled the bundle, or a later one",
        )
    try:
        return reader(how, tool, text, parts)
    except (ValueError, SyntaxError, RecursionError) as error:
        raise DecodeError(
            f"the text of the arguments is not {encoding}: {error}", found=repr(text[:80]), expected=str(encoding)
        ) from None


def _json(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    value = load(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")
    return value


def _keywords(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    """Names may have dots and dashes, which Python's own grammar does not let stand: each is taken for a string."""
    found: dict[str, Any] = {}
    rest = text.strip()
    while rest:
        name, _, rest = rest.partition("=")
        end = _end_of_value(rest)
        found[name.strip()] = _literal(rest[:end].strip(), how.get("constants", {}))
        rest = rest[end:].lstrip(", \t\r\n")
    return found


def _literal(text: str, constants: Mapping[str, Any]) -> Any:
    """The value of a literal of Python, in which null, true and false may have other names: as JSON, since Python's own
    reading ends at 200 brackets."""
    known = {"None": None, "True": True, "False": False, **constants}

    def as_json(found: re.Match[str]) -> str:
        piece = found[0]
        # a new line in a string may stand as it is (docs/protocols.md, AS_IT_IS); Python's own literals have none
        return json.dumps(ast.literal_eval(piece.replace("\n", "\\n")) if piece[0] in "'\"" else known[piece])

    try:
        return load(_WORD.sub(as_json, text))
    except KeyError as error:
        raise ValueError(f"no constant is called {error}") from None


def _end_of_value(text: str) -> int:
    """Where the first value ends: at a comma outside of strings and brackets."""
    depth = 0
    for piece in re.finditer(_QUOTED + r"|[\[({]|[\])}]|,", text, re.DOTALL):
        if piece[0] in ("[", "(", "{"):
            depth += 1
        elif piece[0] in ("]", ")", "}"):
            depth -= 1
        elif piece[0] == "," and depth == 0:
            return piece.start()
    return len(text)


def _positional(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    names = [name for name, _ in tool.get("parameters", [])]
    return dict(zip(names, load(f"[{text}]"), strict=False))


def _parameters(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    types = dict(tool.get("parameters", []))
    constants, undeclared = how.get("constants", {}), types.get("")
    return {key: said if string else _raw(said, types.get(key, undeclared), constants) for key, said, string in parts}


def _elements(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    constants = how.get("constants", {})
    reader = Elements(how["parts"], tool.get("elements", []), lambda said, types: _raw(said, types, constants))
    return reader.arguments(text)


def _request(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    if "request" not in tool:
        raise ValueError("the tool is no operation")
    types = dict(tool.get("parameters", []))
    return read_request(tool["request"], text, lambda argument, said: _raw(said, types.get(argument), {}))


def _raw(text: str, types: Sequence[str] | None, constants: Mapping[str, Any]) -> Any:
    """The value of one of some types (None: of any) that a raw text spells, else the text.

    What spells a value is what the masks keep for it (compiler/schema/channel.py): where only integers may stand,
    digits and perhaps a fraction of zeros are a number, and nothing else is.
    """
    inner = text.strip(BLANKS.decode())
    if inner in _CONSTANTS or inner in constants:
        value = constants[inner] if inner in constants else _CONSTANTS[inner]
    elif inner[:1] in ("[", "{"):
        try:
            value = load(inner)
        except ValueError:
            return text
    elif (_NUMBER if types is None or "number" in types else _INTEGER).fullmatch(inner):
        value = load(inner)
    else:
        return text
    return value if types is None or not types_of(value).isdisjoint(types) else text


def read_only(how: Mapping[str, Any]) -> dict[int, tuple[bytes, bytes]]:
    """Spellings of constants that no mask allows, and that are read: first byte → (the spelling, that of JSON).

    Both are equally long, so that one is read in the tables in place of the other, byte by byte.
    """
    if how.get("encoding") not in ("bare", "parameters"):
        return {}
    pairs = [(text.encode(), json.dumps(value).encode()) for text, value in how.get("constants", {}).items()]
    return {read[0]: (read, written) for read, written in pairs if read != written and len(read) == len(written)}


def types_of(value: Any) -> set[str]:
    """What a bundle calls the type of a value that is no string: its JSON type, or what is narrower than that."""
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean", "true" if value else "false"}
    if isinstance(value, (int, float)):
        return {"number", "integer"} if value == value // 1 else {"number"}
    return {"object" if isinstance(value, dict) else "array"}


def _bare(how: Mapping[str, Any], tool: Mapping[str, Any], text: str, parts: Sequence[Part]) -> dict[str, Any]:
    value, end = _bare_value(text, 0, str(how["quote"][0]), how.get("constants", {}))
    if not isinstance(value, dict) or text[end:].strip():
        raise ValueError("it is no object")
    return value


def _bare_value(text: str, at: int, quote: str, constants: Mapping[str, Any]) -> tuple[Any, int]:
    """The value at a place, and where it ends."""
    if text.startswith(quote, at):
        end = text.index(quote, at + len(quote))
        return text[at + len(quote) : end], end + len(quote)
    if text[at : at + 1] in ("{", "["):
        close = "}" if text[at] == "{" else "]"
        found: list[tuple[str, Any]] = []
        at += 1
        while not text.startswith(close, at):
            at += text.startswith(",", at)
            key = ""
            if close == "}":
                key, _, _ = text[at:].partition(":")
                at += len(key) + 1
            value, at = _bare_value(text, at, quote, constants)
            found.append((key, value))
            if at >= len(text):
                raise ValueError("it does not end")
        return (dict(found) if close == "}" else [value for _, value in found]), at + 1
    scalar = re.compile(r"[^,\]}]*").match(text, at)
    assert scalar is not None
    word = scalar[0].strip()
    return constants[word] if word in constants else load(word), scalar.end()


_READERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], str, Sequence[Part]], dict[str, Any]]] = {
    "json": _json,
    "bare": _bare,
    "parameters": _parameters,
    "elements": _elements,
    "keywords": _keywords,
    "positional": _positional,
    "request": _request,
}

ENCODINGS = tuple(_READERS)
"""Those that are read back."""
