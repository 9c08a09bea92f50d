"""Describe how a protocol writes arguments, so that they can be read back (runtime/calls/arguments.py).

    {"encoding": "json"}                                   one object of JSON
    {"encoding": "bare", "quote", "constants"}             one object, bare keys, strings between quotes
    {"encoding": "parameters", "constants"}                each in a part of its own, marked in the text
    {"encoding": "elements", "constants", "parts"}         the same, arrays and objects part by part: see _parts;
                                                           with "open" also those inside of what may be anything
    {"encoding": "keywords", "constants"}                  as in a call of Python
    {"encoding": "positional"}                             values of JSON with commas between
    {"encoding": "request"}                                a request line: the tool says of which operation

``constants`` are spellings of null, true and false beside those of JSON, or of Python.

Leaves out   how they are written: the protocol's text and ../schema.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .protocol import Protocol

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PARAMETER = re.compile(r"(?m)^(?:(?:text|array|object)_)?parameter\{[^}\n]*\}[ \t]*:.*(?:\n[ \t]*\|.*)*")
_PART = re.compile(r"(?m)^((?:(text|array|object)_)?(parameter|item))\{[^}\n]*\}[ \t]*:(.*(?:\n[ \t]*\|.*)*)")
INNER = "_inner_"
"""Before the name of a parameter's template: the same for a member of an object, whose parts are not marked."""
STRING_COPY = "_text_parameter"
"""The template of a parameter that is told to be a string by its type: the same, its value marked as a string."""
_MARKING = """_key{name_of_a_parameter}: name_of_a_parameter
_value{value_of_a_parameter}: value_of_a_parameter
_string{text_of_a_parameter}: text_of_a_parameter
"""


def arguments_of(protocol: Protocol) -> dict[str, Any]:
    """How its arguments are written; where they are indented, ``indent`` is added: by how many blanks."""
    kind = protocol.rules["tool"][1]
    if kind == "arguments" and protocol.has("quote"):
        return {"encoding": "bare", "quote": _strings(protocol, "quote"), "constants": _constants(protocol)}
    if kind == "parameters" and protocol.has("item"):
        about = {"encoding": "elements", "constants": _constants(protocol), "parts": _parts(protocol)}
        return {**about, "open": True} if open_parts_of(protocol) else about
    if kind in ("parameters", "keywords"):
        return {"encoding": kind, "constants": _constants(protocol)}
    return {"encoding": "json" if kind == "arguments" else kind}


def marked(protocol: Protocol) -> str:
    """The protocol's text, in which the templates of one parameter mark where its name and its value stand.

    A value is raw text or JSON; where there is a template ``text_parameter`` that of a string is surely text.
    """
    if not protocol.has("parameter"):
        return protocol.text
    inner = [INNER + part[0] for part in _PARAMETER.finditer(protocol.text)] if protocol.has("item") else []
    if len(protocol.rules["parameter"]) == 3 and not protocol.has("text_parameter"):
        rules = {part[0].partition("{")[0]: part[0] for part in _PARAMETER.finditer(protocol.text)}
        text = rules["parameter"].replace("parameter", "text_parameter", 1)
        inner.append(_PARAMETER.sub(_marked, text).replace("text_parameter", STRING_COPY, 1))
    return _PARAMETER.sub(_marked, protocol.text) + _MARKING + "".join(rule + "\n" for rule in inner)


def _marked(rule: re.Match[str]) -> str:
    head, colon, body = rule[0].partition(":")
    value = "_string" if head.startswith("text_") else "_value"
    for name, template in (("key", "_key"), ("value", value)):
        parts = re.split("(" + _STRING.pattern + ")", body)
        for i in range(0, len(parts), 2):
            new = re.sub(rf"\b{name}\b", f"{template}{{{name}}}", parts[i], count=1)
            if new != parts[i]:
                parts[i] = new
                break
        body = "".join(parts)
    return head + colon + body


def _parts(protocol: Protocol) -> list[list[str]]:
    """Every template of a part as [parameter or item, kind of its value, before the key, between key and value, after
    the value, after the key there]; kind is "" where the template takes every kind. New lines are left out."""
    found = []
    for rule in _PART.finditer(protocol.text):
        pieces = [""]
        for word in re.findall(_STRING.pattern + r"|\w+", _plain(protocol, rule[4])):
            if word in ("key", "value"):
                pieces += [word, ""]
            elif word.startswith('"'):
                pieces[-1] += json.loads(word).strip("\n")
        before, _, between = pieces[:3] if "key" in pieces[:2] else ["", "", pieces[0]]
        rest = pieces[pieces.index("value") + 1 :]
        kind = rule[2] or ("" if not any(protocol.has(f"{one}_{rule[3]}") for one in ("text", "array")) else "other")
        found.append([rule[3], kind, before, between, rest[0], rest[2] if len(rest) > 2 else ""])
    return found


def open_parts_of(protocol: Protocol) -> tuple[tuple[str, str, str, str, str], ...]:
    """The parts as strings, where what may be anything can be written part by part: every part says its kind, all end
    alike, none repeats its key, and they begin with the byte that their ends begin with."""
    if not protocol.has("item"):
        return ()
    parts = _parts(protocol)
    kinds = {(of, kind) for of, kind, *_ in parts}
    if len(kinds) != 8 or any(kind == "" or last for _, kind, *_, last in parts) or "_tag{" in _bodies(protocol):
        return ()
    ends = {after for *_, after, _ in parts}
    if len(ends) != 1 or {(before + between)[:1] for _, _, before, between, *_ in parts} != {min(ends)[:1]}:
        return ()
    return tuple((of, kind, before, between, after) for of, kind, before, between, after, _ in parts)


def _bodies(protocol: Protocol) -> str:
    """The templates of all parts, with the rules of no parameter in them written out."""
    return " ".join(_plain(protocol, rule[4]) for rule in _PART.finditer(protocol.text))


def _plain(protocol: Protocol, body: str) -> str:
    """A body with the rules of no parameter in it written out."""
    names = {name for name in re.findall(r"(?<![\w\"])_[a-z]\w*", body) if protocol.rules.get(name) == ()}
    for name in sorted(names):
        body = re.sub(rf"(?<!\w){name}(?!\w)", lambda _: _plain(protocol, protocol.body(name)), body)  # noqa: B023
    return body


def _constants(protocol: Protocol) -> dict[str, Any]:
    found = {"NULL": None, "TRUE": True, "FALSE": False}
    names = [(kind + name, value) for name, value in found.items() for kind in ("", "READ_")]
    return {text: value for name, value in names for text in _strings(protocol, name)}


def _strings(protocol: Protocol, name: str) -> list[str]:
    """The strings in the definition of a rule or terminal; none where there is none."""
    body = re.search(rf"(?m)^{name}[ \t]*:(.*(?:\n[ \t]*\|.*)*)", protocol.text)
    return [json.loads(text) for text in _STRING.findall(body[1])] if body else []
