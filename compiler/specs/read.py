"""Tell lists of tools, OpenAPI documents, Python callables and bare JSON Schemas apart by their content.

Leaves out   the forms themselves: tools.py, openapi.py, swagger.py, callables.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from toolc.runtime.serving.requests import is_request, is_response_format

from ..errors import SpecError
from .callables import is_callable, listed, read_callables, with_documents
from .declarations import DECLARATIONS
from .external import Loader, documents_of, embedded, loader_of
from .model import SCHEMA_KEYS, Refused, Repair, Spec, ToolSpec, digest_of, make_spec, quote, shown
from .openapi import read_openapi
from .repair import repaired
from .requests import request_spec, response_schema
from .selection import Selection
from .source import MAX_BYTES, load_document
from .subtypes import with_subtypes
from .swagger import read_swagger
from .tools import is_function, no_schema, read_tools


def read_spec(
    source: str | Path | bytes | dict[str, Any] | list[Any] | bool | Callable[..., Any],
    name: str | None = None,
    *,
    max_bytes: int | None = MAX_BYTES,
    skip: bool = False,
    select: Selection | None = None,
    schemas: Loader | str | Path | None = None,
    repair: bool = False,
    subtypes: bool = False,
) -> Spec:
    """Read a spec, recognised by its content.

    Args:
        source: a path; JSON or YAML text (it starts with a bracket, else it is a path); bytes; the value itself; or a
            Python callable or class, or a list of them. In a list or the body of a request, a function may stand for a
            tool, and a type for a schema.
        name: how errors call the document; by default the file's name.
        max_bytes: the largest document that is read; None for no limit.
        skip: leave out tools that cannot be read, and list them as `Spec.refused`.
        select: the tools that are wanted; None: all. Who gives it asks it in the end (`Selection.check`).
        schemas: where documents are that it refers to, beside those in its own folder: a folder, or a loader.
        repair: read what cannot be meant as it must be meant (repair.py), and list it as `Spec.repairs`.
        subtypes: read parents in OpenAPI documents as the unions of their subtypes (subtypes.py), and list them there.
    """
    if is_callable(source):
        name = name or "callables"
        document, tools = read_callables(source, name)
        numbered: list[Repair] | None = [] if repair else None
        spec = _told(make_spec("tools", name, document, tools, repairs=numbered), numbered or [])
        declared = {tool.name: one for tool, one in zip(spec.tools, listed(source), strict=True)}
        return selected(replace(spec, declared=declared), select)
    refused: list[Refused] | None = [] if skip else None
    given, declared = with_documents(source, name or "spec")
    document, name = load_document(given, name, max_bytes)
    documents = _documents(document, name, source, schemas)
    if isinstance(document, dict) and ("openapi" in document or "swagger" in document):
        document, documents = embedded(document, name, documents), {}
    repairs: list[Repair] | None = [] if repair else None
    if repairs is not None:
        document = repaired(document, repairs)
    told: list[Repair] = []
    if subtypes and isinstance(document, dict) and ("openapi" in document or "swagger" in document):
        document = with_subtypes(document, told)
    spec = beside(_read(document, name, refused, select, repairs), documents)
    spec = _told(spec, told + (repairs or []))
    if declared:
        spec = replace(spec, declared=declared)
    return replace(spec, digest=digest_of(spec.digest, [select.only, select.but])) if select else spec


def _told(spec: Spec, repairs: list[Repair]) -> Spec:
    """The spec that lists what was read otherwise than it stands, which is part of what it says."""
    if not repairs:
        return spec
    placed = tuple(one._replace(place=f"{spec.name}#{one.place}") for one in repairs)
    return replace(spec, repairs=placed, digest=digest_of(spec.digest, repairs))


def _documents(document: Any, name: str, source: Any, schemas: Loader | str | Path | None) -> dict[str, Any]:
    """What a document refers to outside of it."""
    source = (
        Path(source)
        if isinstance(source, str) and not source.lstrip("\ufeff \t\r\n").startswith(("{", "["))
        else source
    )
    return documents_of(document, name, loader_of(schemas, source, document))


def beside(spec: Spec, documents: dict[str, Any]) -> Spec:
    """The spec with the documents that it refers to, which are part of what it says."""
    if not documents:
        return spec
    return replace(spec, documents=documents, digest=digest_of(spec.digest, documents))


def selected(spec: Spec, select: Selection | None) -> Spec:
    """The spec with the tools that are wanted."""
    if not select:
        return spec
    kept = tuple(tool for tool in spec.tools if select.takes(tool.name, tool.tags, *(tool.request or ("", ""))[:2]))
    return replace(spec, tools=kept)


def _read(
    document: Any,
    name: str,
    refused: list[Refused] | None,
    select: Selection | None,
    repairs: list[Repair] | None,
) -> Spec:
    """See `read_spec`."""
    if isinstance(document, list):
        return _listed(document, document, name, "", refused, select, repairs)
    if isinstance(document, bool) or is_response_format(document):
        return schema_spec(document, name)
    if not isinstance(document, dict):
        raise SpecError(
            "this is no spec",
            place=f"{name}#",
            found=shown(document),
            expected="a tools list, an OpenAPI document or a JSON Schema",
        )
    if "openapi" in document:
        version = document["openapi"]
        if isinstance(version, (int, float, Decimal)) and not isinstance(version, bool):
            raise SpecError(
                "the version of OpenAPI is text",
                place=f"{name}#/openapi",
                found=shown(version),
                expected='"3.0.x", "3.1.x" or "3.2.x"',
                hint=f'write it between quotes: "{version}.0"' if str(version) in ("3.0", "3.1", "3.2") else None,
            )
        return _api(document, name, read_openapi(document, name, refused, select, repairs), refused, select, repairs)
    if "swagger" in document:
        return _api(document, name, read_swagger(document, name, refused, select, repairs), refused, select, repairs)
    if is_request(document):
        return request_spec(document, name, refused, select, repairs)
    if "tools" in document and "properties" not in document:
        return _listed(document, document["tools"], name, "/tools", refused, select, repairs)
    result = document.get("result")
    if "jsonrpc" in document and isinstance(result, dict) and "tools" in result:  # the answer of an MCP server
        return _listed(document, result["tools"], name, "/result/tools", refused, select, repairs)
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
        return _listed(document, document["function"], name, "/function", refused, select, repairs)
    config = document.get("toolConfig")
    if isinstance(config, dict) and isinstance(config.get("tools"), list):  # Bedrock's
        return _listed(document, config["tools"], name, "/toolConfig/tools", refused, select, repairs)
    if any(isinstance(document.get(key), list) for key in DECLARATIONS) or isinstance(document.get("toolSpec"), dict):
        return _listed(document, [document], name, None, refused, select, repairs)
    if document.get("type") == "function" or is_function(document):
        return _listed(document, [document], name, None, refused, select, repairs)
    looks_like_tool = isinstance(document.get("name"), str) and SCHEMA_KEYS.isdisjoint(
        document.keys() - {"description"}
    )
    if (advice := _advice(document)) is not None:
        key, expected, hint = advice
        raise SpecError(
            f"{quote(key)} is of a form that toolc does not read", place=f"{name}#", expected=expected, hint=hint
        )
    if looks_like_tool and document.keys() <= {"name", "description", "type", "strict"}:
        raise no_schema(name, "", document.get("type"))
    if document and (SCHEMA_KEYS.isdisjoint(document) or looks_like_tool):
        raise SpecError(
            "this is no spec that toolc knows",
            place=f"{name}#",
            found="an object with the keys " + ", ".join(quote(key, 30) for key in list(document)[:6]),
            expected="a tools list, an object with tools, openapi or swagger, or a JSON Schema",
            hint='write a tool as {"type": "function", "function": {…}}' if looks_like_tool else None,
        )
    return make_spec("schema", name, document, [], document)


def _api(
    document: Any,
    name: str,
    tools: list[ToolSpec],
    refused: list[Refused] | None,
    select: Selection | None,
    repairs: list[Repair] | None,
) -> Spec:
    """The spec of an OpenAPI document."""
    chosen = bool(select)
    return make_spec("openapi", name, document, tools, refused=refused, may_be_empty=chosen, repairs=repairs)


def _listed(
    document: Any,
    items: Any,
    name: str,
    pointer: str | None,
    refused: list[Refused] | None,
    select: Selection | None,
    repairs: list[Repair] | None,
) -> Spec:
    """The spec of a list of tools, see `read_tools`."""
    tools, hosted = read_tools(items, name, pointer, refused, select)
    return make_spec("tools", name, document, tools, hosted=hosted, refused=refused, repairs=repairs)


_FORMS = {
    "functions": ("a list of tools", 'write {"tools": […]}, or the list alone'),
    "json_schema": ("a JSON Schema", "write what its key schema holds"),
}
"""Keys of forms that are not read → what is expected, how to write it."""


def _advice(document: dict[str, Any]) -> tuple[str, str, str] | None:
    """The key of a form that is not read, what is expected and how to write that; None for others."""
    if isinstance(document.get("schema"), dict) and document.keys() <= {"name", "description", "strict", "schema"}:
        return "schema", "a JSON Schema", "write what its key schema holds"
    if not SCHEMA_KEYS.isdisjoint(document):
        return None
    return next(((key, *_FORMS[key]) for key in _FORMS if isinstance(document.get(key), (dict, list))), None)


def schema_spec(schema: Any, name: str = "schema", schemas: Loader | str | Path | None = None) -> Spec:
    """A value taken as a bare JSON Schema, whatever its keys; or what a response format or a Python type says."""
    schema, pointer = response_schema(schema, name)
    document, name = load_document(schema, name, None)
    if not isinstance(document, (dict, bool)):
        raise SpecError(place=f"{name}#", found=shown(document), expected="a JSON Schema: an object or a boolean")
    spec = replace(make_spec("schema", name, document, [], document), schema_pointer=pointer)
    return beside(spec, _documents(document, name, schema, schemas))
