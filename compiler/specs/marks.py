"""What a spec says about running a tool, apart from its arguments: marks, and the request that it is.

    MCP           annotations: {readOnlyHint, idempotentHint, destructiveHint}
    every form    x-toolc: {read_only, idempotent, destructive, version}, on a tool or an OpenAPI operation

Leaves out   what the marks allow: see toolc.runtime.speculate. Defaults of arguments: see ../schema/defaults.py.
Invariants   a mark is there only where the spec says it; x-toolc has the last word. An idempotent tool of MCP of which
             nothing else is said is destructive: the default of destructiveHint.
Source       Model Context Protocol 2025-11-25, "ToolAnnotations".
"""

from __future__ import annotations

from typing import Any

from ..errors import SpecError
from .model import ToolSpec, quote, want

_HINTS = {"readOnlyHint": "read_only", "idempotentHint": "idempotent", "destructiveHint": "destructive"}
MARKS = {"read_only": bool, "idempotent": bool, "destructive": bool, "version": str}
KEY = "x-toolc"


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


def request_of(tool: ToolSpec) -> list[Any]:
    """[method, path, [argument, part of the request, name there] of every argument] of an operation."""
    assert tool.request is not None
    method, path, parts = tool.request
    return [method, path, [[argument, part, name] for argument, (part, name) in parts.items()]]
