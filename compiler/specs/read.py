"""Tell lists of tools, OpenAPI documents, Python callables and bare JSON Schemas apart by their content.

Leaves out   the forms themselves: tools.py, openapi.py, swagger.py, callables.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import SpecError
from .callables import is_callable, read_callables
from .model import Spec, make_spec, quote, shown
from .openapi import read_openapi
from .source import MAX_BYTES, load_document
from .swagger import read_swagger
from .tools import is_function, read_tools

SCHEMA_KEYS = frozenset(
    "$schema $id $ref $defs definitions $anchor $dynamicRef $recursiveRef $comment type enum const properties "
    "required additionalProperties patternProperties propertyNames minProperties maxProperties items prefixItems "
    "additionalItems contains minContains maxContains minItems maxItems uniqueItems unevaluatedItems "
    "unevaluatedProperties minLength maxLength pattern format minimum maximum exclusiveMinimum exclusiveMaximum "
    "multipleOf anyOf oneOf allOf not if then else dependencies dependentRequired dependentSchemas nullable title "
    "description default examples contentEncoding contentMediaType contentSchema".split()
)


def read_spec(
    source: str | Path | bytes | dict[str, Any] | list[Any] | bool | Callable[..., Any],
    name: str | None = None,
    *,
    max_bytes: int | None = MAX_BYTES,
) -> Spec:
    """Read a spec, recognised by its content.

    Args:
        source: a path; JSON or YAML text (it starts with a bracket, else it is a path); bytes; the value itself; or a
            Python callable or pydantic model, or a list of them.
        name: how errors call the document; by default the file's name.
        max_bytes: the largest document that is read; None for no limit.
    """
    if is_callable(source):
        document, tools = read_callables(source)
        return make_spec("tools", name or "callables", document, tools)
    document, name = load_document(source, name, max_bytes)
    if isinstance(document, list):
        return make_spec("tools", name, document, read_tools(document, name, ""))
    if isinstance(document, bool):
        return make_spec("schema", name, document, [], document)
    if not isinstance(document, dict):
        raise SpecError(
            "this is no spec",
            place=f"{name}#",
            found=shown(document),
            expected="a tools list, an OpenAPI document or a JSON Schema",
        )
    if "openapi" in document:
        return make_spec("openapi", name, document, read_openapi(document, name))
    if "swagger" in document:
        return make_spec("openapi", name, document, read_swagger(document, name))
    if "tools" in document and "properties" not in document:
        return make_spec("tools", name, document, read_tools(document["tools"], name, "/tools"))
    result = document.get("result")
    if "jsonrpc" in document and isinstance(result, dict) and "tools" in result:  # the answer of an MCP server
        return make_spec("tools", name, document, read_tools(result["tools"], name, "/result/tools"))
    if "jsonrpc" in document and SCHEMA_KEYS.isdisjoint(document):
        failed = document.get("error")
        message = failed.get("message") if isinstance(failed, dict) else None
        raise SpecError(
            "this answer of a server lists no tools",
            place=f"{name}#",
            found=shown(result) if message is None else f"the error {quote(str(message))}",
            expected="the result of tools/list",
        )
    if "function" in document and "question" in document:  # a row of BFCL
        return make_spec("tools", name, document, read_tools(document["function"], name, "/function"))
    if document.get("type") == "function" or is_function(document):
        return make_spec("tools", name, document, read_tools([document], name, None))
    looks_like_tool = isinstance(document.get("name"), str) and SCHEMA_KEYS.isdisjoint(
        document.keys() - {"description"}
    )
    if document and (SCHEMA_KEYS.isdisjoint(document) or looks_like_tool):
        raise SpecError(
            "this is no spec that toolc knows",
            place=f"{name}#",
            found="an object with the keys " + ", ".join(quote(key, 30) for key in list(document)[:6]),
            expected="a tools list, an object with tools, openapi or swagger, or a JSON Schema",
            hint='write a tool as {"type": "function", "function": {…}}' if looks_like_tool else None,
        )
    return make_spec("schema", name, document, [], document)


def schema_spec(schema: dict[str, Any] | bool, name: str = "schema") -> Spec:
    """A value taken as a bare JSON Schema, whatever its keys."""
    document, name = load_document(schema, name, None)
    if not isinstance(document, (dict, bool)):
        raise SpecError(place=f"{name}#", found=shown(document), expected="a JSON Schema: an object or a boolean")
    return make_spec("schema", name, document, [], document)
