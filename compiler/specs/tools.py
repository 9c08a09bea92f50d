"""Lists of tools as APIs and protocols write them, one form for each tool:

    OpenAI chat completions   {"type": "function", "function": {name, description, parameters, strict}}
    OpenAI Responses          {"type": "function", name, description, parameters, strict}
    Anthropic Messages        {name, description, input_schema}; "type" is left out or "custom"
    OpenAI custom tools       {"type": "custom", "custom": {name, format}}, or flat: see custom.py
    OpenAI namespaces         {"type": "namespace", name, tools}: its tools are called NAMESPACE__NAME
    MCP tools/list            {name, description, inputSchema, annotations}: see marks.py
    Gemini, Bedrock           {"functionDeclarations": […]}, {"toolSpec": {…}}: see declarations.py
    a function document       {name, description, parameters}, with the types of BFCL or of JSON Schema: see bfcl.py
    LangChain                 {name, description, args_schema}
    Pydantic AI               {name, description, parameters_json_schema}, as a ToolDefinition is written

Leaves out   uniqueness and spelling of names: model.py.
Invariants   ``$ref`` in the schema of the arguments resolves against that schema, as the APIs document.
Source       the API references of OpenAI and Anthropic; Model Context Protocol 2025-11-25, "Tools".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..errors import SpecError
from .bfcl import as_json_schema, is_bfcl
from .custom import is_custom, read_custom
from .declarations import spread
from .marks import marks_of
from .model import (
    FORM,
    NO_ARGUMENTS,
    SCHEMA_KEYS,
    Hosted,
    Refused,
    ToolSpec,
    escape,
    quote,
    shown,
    skipping,
    want,
)
from .selection import Selection

_OPEN = ("$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if", "enum", "const")
_SCHEMAS = ("inputSchema", "input_schema", "parameters", "args_schema", "parameters_json_schema")
_ALIKE = frozenset(
    "inputschema parameters parameter params schema jsonschema argsschema arguments args properties".split()
)
"""Keys, in small letters and without signs, that mean the schema of the arguments and are no API's."""
_TYPES = frozenset("object array string number integer boolean null dict float tuple any".split())
"""Types of a schema, which stands in the place of a tool."""
_TEXTS = frozenset(("title", "description", "type", "format", "pattern"))
"""Keywords whose value is never a schema."""
_SAYING = frozenset(("properties", "patternProperties", "additionalProperties", "propertyNames", *_OPEN))


def is_function(value: Any) -> bool:
    """Whether an object is a tool without a type: Anthropic's, MCP's or a function document."""
    return isinstance(value, dict) and isinstance(value.get("name"), str) and any(key in value for key in _SCHEMAS)


def read_tools(
    items: Any,
    name: str,
    pointer: str | None,
    refused: list[Refused] | None = None,
    select: Selection | None = None,
) -> tuple[list[ToolSpec], list[Hosted]]:
    """The tools of a list, and those of it that the API runs itself.

    Args:
        items: the list.
        name: how errors call the document.
        pointer: JSON pointer of the list; None where the document is the one tool of a list made here.
        refused: receives those that cannot be read; None: the first of them is an error.
        select: the tools that are read; None: all.
    """
    want(items, list, f"{name}#{pointer}", "a list of tools")
    tools, hosted = [], []
    every = (
        (found, space)
        for i, item in enumerate(items)
        for one, at, space in _spaced(item, name, "" if pointer is None else f"{pointer}/{i}")
        for found in spread(one, at)
    )
    for (one, at, inside), space in every:
        if select is not None and not select.takes(space + (_name_in(one) or _type_in(one))):
            continue
        if _is_hosted(one):
            hosted.append(Hosted(one["type"], at))
        else:
            with skipping(refused, space + _name_in(one)):
                tool = read_custom(one, name, at) if is_custom(one) else read_tool(one, name, at)
                tools.append(replace(tool, pointer=tool.pointer + inside, name=space + tool.name))
    return tools, hosted


def _spaced(item: Any, name: str, pointer: str) -> Iterator[tuple[Any, str, str]]:
    """The tools of a namespace, or the one that is in none: each, its pointer, and what stands before its name."""
    if not isinstance(item, dict) or item.get("type") != "namespace":
        yield item, pointer, ""
        return
    space = want(item.get("name"), str, f"{name}#{pointer}/name", "the name of the namespace")
    inner = want(item.get("tools"), list, f"{name}#{pointer}/tools", "a list of tools")
    for number, one in enumerate(inner):
        yield one, f"{pointer}/tools/{number}", f"{space}__"


def _name_in(tool: Any) -> str:
    """What a tool that may be of no form is called, if anything."""
    inside = tool.get("function", tool.get("custom", tool)) if isinstance(tool, dict) else None
    found = inside.get("name") if isinstance(inside, dict) else None
    return found if isinstance(found, str) else ""


def _type_in(tool: Any) -> str:
    """The type of a tool that may be of no form: what one without a name is called, as {"type": "web_search"}."""
    found = tool.get("type") if isinstance(tool, dict) else None
    return found if isinstance(found, str) else ""


def _is_hosted(tool: Any) -> bool:
    """Whether a tool has a type that tells an API all about it, as {"type": "web_search"} does. What says more, or
    holds a schema anywhere, is written wrongly."""
    if not isinstance(tool, dict) or not isinstance(tool.get("type"), str):
        return False
    kind = tool["type"]
    if (
        kind in ("function", "custom", "namespace")
        or kind in _TYPES
        or not re.fullmatch(r"[a-z][a-z0-9_.-]*", kind)
        or "description" in tool
    ):
        return False
    return not _holds_schema(tool)


def _holds_schema(value: Any) -> bool:
    """Whether an object has a key, at any depth, as those have that hold the schema of arguments."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if any(key == "function" or _plain(key) in _ALIKE for key in one):
                return True
            left += one.values()
        elif isinstance(one, list):
            left += one
    return False


def read_tool(tool: Any, name: str, pointer: str) -> ToolSpec:
    """One tool of any form."""
    want(tool, dict, f"{name}#{pointer}", FORM)
    kind = tool.get("type")
    key = "parameters"
    around: dict[str, Any] = {}
    if kind == "function":
        if "function" in tool:
            around = marks_of(tool, f"{name}#{pointer}", annotations=False)
            _only_schema(tool, "function/parameters", name, pointer)
            pointer += "/function"
            tool = want(tool["function"], dict, f"{name}#{pointer}", "an object with name and parameters")
    elif is_function(tool) and kind in (None, "custom"):
        key = next((one for one in _SCHEMAS if tool.get(one) is not None), None) or next(
            one for one in _SCHEMAS if one in tool
        )
    elif isinstance(tool.get("name"), str) and kind in (None, "custom") and not {"custom", "format"} & tool.keys():
        raise no_schema(name, pointer, kind)
    else:
        hint = None
        if "type" not in tool:
            hint = next((hint for form, hint in _OTHERS.items() if form in tool), None)
        raise SpecError(
            "this is no tool that toolc knows",
            place=f"{name}#{pointer}/type" if "type" in tool else f"{name}#{pointer}",
            found=shown(kind) if "type" in tool else "no type",
            expected=FORM,
            hint=hint,
        )
    _only_schema(tool, key, name, pointer)
    if "name" not in tool:
        raise SpecError("the tool has no name", place=f"{name}#{pointer}", expected="a name", hint='add "name": "…"')
    tool_name = want(tool["name"], str, f"{name}#{pointer}/name", "the name of the tool")
    description = tool.get("description")
    if description is not None:
        want(description, str, f"{name}#{pointer}/description", "text")
    if tool.get("strict") is not None:
        want(tool["strict"], bool, f"{name}#{pointer}/strict", "true or false")
    marks = around | marks_of(tool, f"{name}#{pointer}", annotations=key == "inputSchema")
    name_pointer = f"{pointer}/name"
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
        name_pointer=name_pointer,
    )


_OTHERS = {
    "function": 'add "type": "function"',
    "functionDeclarations": "it is a list of tools",
    "function_declarations": "it is a list of tools",
    "toolSpec": 'write {"toolSpec": {"name": …, "description": …, "inputSchema": {"json": …}}}',
}
"""Keys of tools that are not read → how to write them."""


def no_schema(name: str, pointer: str, kind: str | None = None) -> SpecError:
    """A tool of no type, or Anthropic's, has to say what its arguments are."""
    return SpecError(
        "the tool has no schema of its arguments",
        place=f"{name}#{pointer}",
        found="no type" if kind is None else shown(kind),
        expected="input_schema (Anthropic), inputSchema (MCP) or parameters" if kind is None else "input_schema",
        hint='of a tool without arguments it is {"type": "object", "properties": {}}'
        + ('; of a custom tool of OpenAI\'s, whose input is a text, write "format": {"type": "text"}' if kind else ""),
    )


def _only_schema(tool: dict[str, Any], key: str, name: str, pointer: str) -> None:
    """Refuse a tool whose schema stands under another key than this: it would take no arguments, or others."""
    for other, value in tool.items():
        if other == key or value is None or not (isinstance(value, dict) or other in _SCHEMAS):
            continue
        alike = _plain(other) in _ALIKE and isinstance(value, dict)
        if other in _SCHEMAS or (alike and tool.get(key) is None):
            raise SpecError(
                "two keys hold schemas of the arguments"
                if tool.get(key) is not None
                else "the schema is not read here",
                place=f"{name}#{pointer}/{escape(other)}",
                found=quote(other),
                expected=quote(key),
                hint="remove one of them" if tool.get(key) is not None else f"rename it to {key}",
            )


def _plain(key: str) -> str:
    """A key in small letters and without signs."""
    return key.lower().replace("_", "").replace("-", "")


def arguments_schema(parameters: Any, place: str) -> dict[str, Any]:
    """The schema of the arguments: of an object, whatever the spec leaves unsaid."""
    if parameters is None:
        return NO_ARGUMENTS
    text = isinstance(parameters, str) and parameters.lstrip().startswith("{")
    expected = 'the JSON Schema of an object: {"type": "object", …}'
    want(parameters, dict, place, expected, "write the object itself, not its text between quotes" if text else None)
    _check_wrapped(parameters, place, expected)
    kind = parameters.get("type")
    if kind is None and not any(key in parameters for key in _OPEN):
        return {"type": "object", **parameters}
    if isinstance(kind, list) and "object" in kind:
        return {**parameters, "type": "object"}
    if kind is not None and kind != "object":
        raise SpecError(
            "the arguments of a tool are an object",
            place=f"{place}/type",
            found=shown(kind),
            expected='"object"',
            hint='write "object"' if str(kind).lower() in ("dict", "object") else None,
        )
    return dict(parameters)


def _check_wrapped(parameters: dict[str, Any], place: str, expected: str) -> None:
    """Refuse an object of parameters that lacks the ``properties`` around it: as a schema it would allow anything."""
    if not parameters or not _SAYING.isdisjoint(parameters):
        return
    names = [key for key in parameters if not key.startswith(("$", "x-"))]
    stray = [key for key in names if key not in SCHEMA_KEYS]
    schemas = [
        key
        for key in names
        if (key in stray or key in _TEXTS)
        and isinstance(parameters[key], dict)
        and not SCHEMA_KEYS.isdisjoint(parameters[key])
    ]
    if not schemas and not (stray and SCHEMA_KEYS.isdisjoint(parameters)):
        return
    if list(parameters) == ["json"]:
        hint = "write the schema itself, not below json"
    else:
        hint = f'write {{"type": "object", "properties": {{{quote((schemas or stray)[0])}: …}}}}'
    found = "an object with the keys " + ", ".join(quote(key, 30) for key in list(parameters)[:6])
    raise SpecError(
        "the parameters have no properties around them", place=place, found=found, expected=expected, hint=hint
    )
