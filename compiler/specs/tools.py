"""Lists of tools as APIs and protocols write them, one form for each tool:

    OpenAI chat completions   {"type": "function", "function": {name, description, parameters, strict}}
    OpenAI Responses          {"type": "function", name, description, parameters, strict}
    Anthropic Messages        {name, description, input_schema}; "type" is left out or "custom"
    MCP tools/list            {name, description, inputSchema, annotations}: see marks.py
    a function document       {name, description, parameters}, with the types of BFCL or of JSON Schema: see bfcl.py

Leaves out   uniqueness and spelling of names: model.py.
Invariants   ``$ref`` in the schema of the arguments resolves against that schema, as the APIs document.
Source       the API references of OpenAI and Anthropic; Model Context Protocol 2025-11-25, "Tools".
"""

from __future__ import annotations

from typing import Any

from ..errors import SpecError
from .bfcl import as_json_schema, is_bfcl
from .marks import marks_of
from .model import NO_ARGUMENTS, ToolSpec, shown, want

_FORM = 'a tool: {"type": "function", "function": {"name": …, "parameters": …}}'
_OPEN = ("$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if", "enum", "const")
_SCHEMAS = ("inputSchema", "input_schema", "parameters")


def is_function(value: Any) -> bool:
    """Whether an object is a tool without a type: Anthropic's, MCP's or a function document."""
    return isinstance(value, dict) and isinstance(value.get("name"), str) and any(key in value for key in _SCHEMAS)


def read_tools(items: Any, name: str, pointer: str | None) -> list[ToolSpec]:
    """The tools of a list.

    Args:
        items: the list.
        name: how errors call the document.
        pointer: JSON pointer of the list; None where the document is the one tool of a list made here.
    """
    want(items, list, f"{name}#{pointer}", "a list of tools")
    return [read_tool(one, name, "" if pointer is None else f"{pointer}/{i}") for i, one in enumerate(items)]


def read_tool(tool: Any, name: str, pointer: str) -> ToolSpec:
    """One tool of any form."""
    want(tool, dict, f"{name}#{pointer}", _FORM)
    kind = tool.get("type")
    key = "parameters"
    if kind == "function":
        if "function" in tool:
            pointer += "/function"
            tool = want(tool["function"], dict, f"{name}#{pointer}", "an object with name and parameters")
    elif is_function(tool) and kind in (None, "custom"):
        key = next(one for one in _SCHEMAS if one in tool)
    else:
        raise SpecError(
            "this is no tool that toolc knows",
            place=f"{name}#{pointer}/type" if "type" in tool else f"{name}#{pointer}",
            found=shown(kind) if "type" in tool else "no type",
            expected=_FORM,
        )
    if "name" not in tool:
        raise SpecError("the tool has no name", place=f"{name}#{pointer}", expected="a name", hint='add "name": "…"')
    tool_name = want(tool["name"], str, f"{name}#{pointer}/name", "the name of the tool")
    description = tool.get("description")
    if description is not None:
        want(description, str, f"{name}#{pointer}/description", "text")
    if tool.get("strict") is not None:
        want(tool["strict"], bool, f"{name}#{pointer}/strict", "true or false")
    marks = marks_of(tool, f"{name}#{pointer}", annotations=key == "inputSchema")
    pointer += f"/{key}"
    parameters = tool.get(key)
    if is_bfcl(parameters):
        parameters = as_json_schema(parameters, f"{name}#{pointer}")
    schema = arguments_schema(parameters, f"{name}#{pointer}")
    return ToolSpec(
        tool_name,
        description or "",
        schema,
        pointer,
        schema,
        strict=tool.get("strict"),
        **marks,
    )


def arguments_schema(parameters: Any, place: str) -> dict[str, Any]:
    """The schema of the arguments: of an object, whatever the spec leaves unsaid."""
    if parameters is None:
        return NO_ARGUMENTS
    want(parameters, dict, place, 'the JSON Schema of an object: {"type": "object", …}')
    kind = parameters.get("type")
    if kind is None and not any(key in parameters for key in _OPEN):
        return {"type": "object", **parameters}
    if isinstance(kind, list) and "object" in kind:
        return {**parameters, "type": "object"}
    if kind is not None and kind != "object":
        raise SpecError(
            "the arguments of a tool are an object", place=f"{place}/type", found=shown(kind), expected='"object"'
        )
    return dict(parameters)
