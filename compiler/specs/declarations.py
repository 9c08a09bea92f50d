"""Tools as Gemini and Bedrock list them, in the form of the others.

    Gemini    {"functionDeclarations": [{name, description, parameters or parametersJsonSchema}]}
    Bedrock   {"toolSpec": {name, description, inputSchema: {"json": schema}}}

Leaves out   reading a tool: tools.py.
Invariants   every pointer stays what it was. ``parameters`` of Gemini are a subset of OpenAPI 3.0: types in capitals,
             ``nullable``, counts as text; ``propertyOrdering`` says nothing of what is valid.
Source       ai.google.dev/api/caching#Schema; the API reference of Amazon Bedrock, ToolSpecification.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .openapi import as_draft_4

DECLARATIONS = ("functionDeclarations", "function_declarations")
_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_BY_NAME = ("properties", "$defs", "definitions")
_ONE = ("items", "additionalProperties")
_SOME = ("anyOf", "prefixItems")


def spread(item: Any, pointer: str) -> Iterator[tuple[Any, str, str]]:
    """The tools that an item of a list stands for: each, its pointer, and what its schema's pointer goes on with."""
    if not isinstance(item, dict):
        yield item, pointer, ""
        return
    lists = [key for key in DECLARATIONS if isinstance(item.get(key), list)]
    for key in lists:
        for number, one in enumerate(item[key]):
            yield _declared(one), f"{pointer}/{key}/{number}", ""
    if isinstance(item.get("toolSpec"), dict):
        tool = item["toolSpec"]
        schema = tool.get("inputSchema")
        if isinstance(schema, dict) and list(schema) == ["json"]:
            yield {**tool, "inputSchema": schema["json"]}, f"{pointer}/toolSpec", "/json"
        else:
            yield tool, f"{pointer}/toolSpec", ""
    elif not lists and list(item) != ["cachePoint"]:  # Bedrock's mark in a list of tools
        yield item, pointer, ""


def _declared(tool: Any) -> Any:
    """A declaration of Gemini's as a function document."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return tool
    if "parameters" not in tool:
        rest = {key: value for key, value in tool.items() if key != "parametersJsonSchema"}
        return {**rest, "parameters": tool.get("parametersJsonSchema")}
    if not isinstance(tool["parameters"], dict):
        return tool
    schema = as_draft_4(_lowered(tool["parameters"]))
    schema.pop("$schema")
    return {**tool, "parameters": schema}


def _lowered(schema: Any) -> Any:
    """A schema of Gemini's in the words of OpenAPI 3.0."""
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            out[key] = value.lower()
        elif key in _BY_NAME and isinstance(value, dict):
            out[key] = {name: _lowered(one) for name, one in value.items()}
        elif key in _ONE:
            out[key] = _lowered(value)
        elif key in _SOME and isinstance(value, list):
            out[key] = [_lowered(one) for one in value]
        elif key in _COUNTS and isinstance(value, str) and value.isascii() and value.isdigit():
            out[key] = int(value)
        elif key != "propertyOrdering" and (key, value) != ("format", "enum"):
            out[key] = value
    return out
