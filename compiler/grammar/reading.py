"""What a bundle tells about the arguments of a protocol, so that they can be read back (runtime/arguments.py).

    {"encoding": "json"}                                   one object of JSON
    {"encoding": "bare", "quote", "constants"}             one object, bare keys, strings between quotes
    {"encoding": "parameters", "constants"}                each in a part of its own, marked in the text
    {"encoding": "keywords"}                               as in a call of Python
    {"encoding": "positional"}                             values of JSON with commas between

``constants`` are spellings of null, true and false beside those of JSON.

Leaves out   how they are written: the protocol's text and ../schema.
"""

from __future__ import annotations

import json
import re
from typing import Any

from .protocol import Protocol

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_PARAMETER = re.compile(r"(?m)^(?:text_)?parameter\{[^}\n]*\}[ \t]*:.*(?:\n[ \t]*\|.*)*")
_MARKING = """_key{name_of_a_parameter}: name_of_a_parameter
_value{value_of_a_parameter}: value_of_a_parameter
_string{text_of_a_parameter}: text_of_a_parameter
"""


def arguments_of(protocol: Protocol) -> dict[str, Any]:
    """How its arguments are written."""
    kind = protocol.rules["tool"][1]
    if kind == "arguments" and protocol.has("quote"):
        return {"encoding": "bare", "quote": _strings(protocol, "quote"), "constants": _constants(protocol)}
    if kind == "parameters":
        return {"encoding": kind, "constants": _constants(protocol)}
    return {"encoding": "json" if kind == "arguments" else kind}


def marked(protocol: Protocol) -> str:
    """The protocol's text, in which the templates of one parameter mark where its name and its value stand.

    A value is raw text or JSON; where there is a template ``text_parameter`` that of a string is surely text.
    """
    if not protocol.has("parameter"):
        return protocol.text
    return _PARAMETER.sub(_marked, protocol.text) + _MARKING


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


def _constants(protocol: Protocol) -> dict[str, Any]:
    found = {"NULL": None, "TRUE": True, "FALSE": False}
    return {text: value for name, value in found.items() for text in _strings(protocol, name)}


def _strings(protocol: Protocol, name: str) -> list[str]:
    """The strings in the definition of a rule or terminal; none where there is none."""
    body = re.search(rf"(?m)^{name}[ \t]*:(.*(?:\n[ \t]*\|.*)*)", protocol.text)
    return [json.loads(text) for text in _STRING.findall(body[1])] if body else []
