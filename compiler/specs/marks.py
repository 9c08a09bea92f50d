"""What a spec says about running a tool, apart from its arguments: marks, and the defaults of arguments.

    MCP           annotations: {readOnlyHint, idempotentHint, destructiveHint}
    every form    x-toolc: {read_only, idempotent, destructive, version}, on a tool or an OpenAPI operation

Leaves out   what the marks allow: see toolc.runtime.speculate.
Invariants   a mark is there only where the spec says it; x-toolc has the last word. An idempotent tool of MCP of which
             nothing else is said is destructive: the default of destructiveHint.
Source       Model Context Protocol 2025-11-25, "ToolAnnotations".
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import SpecError
from .model import ToolSpec, quote, want

_HINTS = {"readOnlyHint": "read_only", "idempotentHint": "idempotent", "destructiveHint": "destructive"}
MARKS = {"read_only": bool, "idempotent": bool, "destructive": bool, "version": str}
KEY = "x-toolc"
_TELLING = frozenset(("default", "$ref", "properties", "items"))
_DEEPEST = 16  # references are followed so far: a default nested deeper is left to the tool


def marks_of(tool: dict[str, Any], place: str, annotations: bool) -> dict[str, Any]:
    """The marks of a tool or an operation, as fields of ToolSpec.

    Args:
        tool: the object that may hold them.
        place: where it is, for errors.
        annotations: whether the form has MCP's ``annotations``.
    """
    found: dict[str, Any] = {}
    hints = tool.get("annotations") if annotations else None
    if hints is not None:
        want(hints, dict, f"{place}/annotations", "an object of annotations")
        for hint, mark in _HINTS.items():
            if hints.get(hint) is not None:
                found[mark] = want(hints[hint], bool, f"{place}/annotations/{hint}", "true or false")
    own = tool.get(KEY)
    if own is not None:
        want(own, dict, f"{place}/{KEY}", "an object with " + ", ".join(MARKS))
        for mark in own:
            if mark not in MARKS:
                raise SpecError(
                    f"{KEY} has no such mark", place=f"{place}/{KEY}", found=quote(mark), expected=", ".join(MARKS)
                )
        for mark, kind in MARKS.items():
            if own.get(mark) is not None:
                found[mark] = want(own[mark], kind, f"{place}/{KEY}/{mark}", "text" if kind is str else "true or false")
    if found.get("idempotent") and not found.get("read_only") and annotations and "idempotent" not in (own or {}):
        found.setdefault("destructive", True)  # as MCP says of what does not say so
    return found


def defaults_of(tool: ToolSpec) -> str | None:
    """The defaults of a tool's arguments, as the JSON text of a tree of {default, properties, items}; None for none."""
    tree = _tree(tool.schema, tool.document, 0)
    return None if tree is None else json.dumps(tree, ensure_ascii=False)


def _tree(schema: Any, document: Any, depth: int) -> dict[str, Any] | None:
    if depth > _DEEPEST or not _may_tell(schema):
        return None
    out: dict[str, Any] = {}
    if "default" in schema:
        out["default"] = schema["default"]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        target = _resolve(reference[1:], document)
        out = {**(_tree(target, document, depth + 1) or {}), **out}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        inner = [(name, one) for name, one in properties.items() if _may_tell(one)]
        below = {name: tree for name, one in inner if (tree := _tree(one, document, depth + 1))}
        if below:
            out["properties"] = below
    items = _tree(schema.get("items"), document, depth + 1)
    if items and set(items) != {"default"}:  # the default of an item says nothing: items are there or not
        out["items"] = items
    return out or None


def _may_tell(schema: Any) -> bool:
    """Whether a schema may hold a default; of most parameters, soon said, it does not."""
    return isinstance(schema, dict) and not _TELLING.isdisjoint(schema)


def _resolve(pointer: str, document: Any) -> Any:
    """What a JSON pointer leads to; None where it leads nowhere (the schema stage says so)."""
    for part in pointer.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(part)
        elif isinstance(document, list) and part.isdigit() and int(part) < len(document):
            document = document[int(part)]
        else:
            return None
    return document


def request_of(tool: ToolSpec) -> list[Any]:
    """[method, path, [argument, part of the request, name there] of every argument] of an operation."""
    assert tool.request is not None
    method, path, parts = tool.request
    return [method, path, [[argument, part, name] for argument, (part, name) in parts.items()]]
