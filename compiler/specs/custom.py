"""Custom tools of OpenAI's, whose input is a text, in a format or in any:

    chat completions   {"type": "custom", "custom": {name, description, format}}
    Responses          {"type": "custom", name, description, format}

    format             {"type": "text"}
                       {"type": "grammar", "grammar": {"syntax": "lark" or "regex", "definition"}}, or flat

Leaves out   reading grammars (../grammar), tools with arguments (tools.py).
Invariants   the schema is that of an object whose only member ``input`` is the text; of a Lark grammar it says less.
Source       the API references of OpenAI, "Custom tools"; vLLM 0.33, tool_parsers/utils.py, for the object.
"""

from __future__ import annotations

from typing import Any

from toolc.runtime.expected import did_you_mean

from ..errors import SpecError
from .model import Custom, ToolSpec, escape, shown, want

INPUT = "input"
"""The member of the object that holds the text, where a call has no place for a text."""
_FORMATS = ("text", "grammar")
_SYNTAXES = ("lark", "regex")
_AROUND = ("cache_control", "defer_loading", "allowed_callers")


def is_custom(tool: Any) -> bool:
    """Whether a tool is a custom one; Anthropic's type of this name has a schema."""
    if not isinstance(tool, dict) or tool.get("type") != "custom":
        return False
    return not {"custom", "format"}.isdisjoint(tool) and "input_schema" not in tool


def read_custom(tool: dict[str, Any], name: str, pointer: str) -> ToolSpec:
    """A custom tool.

    Args:
        name: how errors call the document.
        pointer: JSON pointer of the tool.
    """
    if "custom" in tool:
        _only(tool, ("type", "custom", *_AROUND), f"{name}#{pointer}")
        pointer += "/custom"
        tool = want(tool["custom"], dict, f"{name}#{pointer}", "an object with name and format")
        _only(tool, ("name", "description", "format"), f"{name}#{pointer}")
    else:
        _only(tool, ("type", "name", "description", "format", *_AROUND), f"{name}#{pointer}")
    if "name" not in tool:
        raise SpecError("the tool has no name", place=f"{name}#{pointer}", expected="a name", hint='add "name": "…"')
    own = want(tool["name"], str, f"{name}#{pointer}/name", "the name of the tool")
    description = tool.get("description")
    if description is not None:
        want(description, str, f"{name}#{pointer}/description", "text")
    custom = _format(tool.get("format"), name, f"{pointer}/format")
    text: dict[str, Any] = {"type": "string"}
    if custom.syntax == "regex":
        text["pattern"] = f"^(?:{custom.definition})$"
    schema = {"type": "object", "properties": {INPUT: text}, "required": [INPUT], "additionalProperties": False}
    places = {f"/properties/{INPUT}/pattern": custom.pointer}
    names = f"{pointer}/name"
    return ToolSpec(own, description or "", schema, pointer, schema, places=places, name_pointer=names, custom=custom)


def _format(value: Any, name: str, pointer: str) -> Custom:
    if value is None:
        return Custom("text", "", pointer)
    want(value, dict, f"{name}#{pointer}", 'a format, as {"type": "text"}')
    kind = value.get("type")
    if kind not in _FORMATS:
        raise SpecError(
            "no such format", place=f"{name}#{pointer}/type", found=shown(kind), expected=", ".join(_FORMATS),
            hint=did_you_mean(kind, _FORMATS),
        )  # fmt: skip
    if kind == "text":
        _only(value, ("type",), f"{name}#{pointer}")
        return Custom("text", "", pointer)
    if "grammar" in value:
        _only(value, ("type", "grammar"), f"{name}#{pointer}")
        pointer += "/grammar"
        value = want(value["grammar"], dict, f"{name}#{pointer}", "an object with syntax and definition")
        _only(value, ("syntax", "definition"), f"{name}#{pointer}")
    else:
        _only(value, ("type", "syntax", "definition"), f"{name}#{pointer}")
    syntax = value.get("syntax")
    if syntax not in _SYNTAXES:
        raise SpecError(
            "no such syntax", place=f"{name}#{pointer}/syntax", found=shown(syntax), expected=", ".join(_SYNTAXES),
            hint=did_you_mean(syntax, _SYNTAXES),
        )  # fmt: skip
    definition = want(value.get("definition"), str, f"{name}#{pointer}/definition", "the text of the grammar")
    return Custom(syntax, definition, f"{pointer}/definition")


def _only(value: dict[str, Any], known: tuple[str, ...], place: str) -> None:
    """Refuse keys that are not read: they would change the format."""
    for key in value:
        if key not in known and value[key] is not None:
            raise SpecError(
                "this is not read here", place=f"{place}/{escape(key)}", found=shown(key), expected=", ".join(known),
                hint=did_you_mean(key, known),
            )  # fmt: skip
