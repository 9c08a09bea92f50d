"""Read the SPEC argument of commands: a file, standard input, or a project file.

Leaves out   reading files: see ../source.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..options import Options
from ..source import read_file
from ..specs import Spec, read_spec
from ..specs.json_values import check_response
from ..specs.project import Project, joined_spec
from ..specs.source import MAX_BYTES, load_document
from .terminal import standard_input


def read_source(spec: str | Project, max_bytes: int | None, skip: bool = False) -> tuple[Spec | str, str]:
    """The spec or the Lark text, and the name that its output gets by default."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    if isinstance(spec, Project):
        return joined_spec(spec.specs, limit, skip), spec.specs[0].stem
    if spec == "-":
        return read_spec(standard_input().read(limit + 1), "stdin", max_bytes=limit, skip=skip), "stdin"
    return read_file(spec, max_bytes, skip)


def schema_options(options: dict[str, Any]) -> Options:
    """The options that ``compile`` and ``grammar`` share."""
    return Options(
        protocol=options["protocol"],
        named=options["named"],
        strict=options["strict"],
        response=_response(options["response"], options["max_spec_bytes"]),
        whitespace=options["whitespace"],
        digits=options["digits"],
        lenient=options["lenient"],
        skip=options["skip"],
        key_order=options["key_order"],
    )


def _response(path: str | None, max_bytes: int | None) -> dict[str, Any] | bool | None:
    """The schema of a structured response."""
    if path is None:
        return None
    schema, name = load_document(Path(path), None, MAX_BYTES if max_bytes is None else max_bytes)
    check_response(schema, name)
    found: dict[str, Any] | bool = schema
    return found
