"""The SPEC argument of commands: a spec, or Lark text.

Leaves out   reading specs (../specs), grammars (../grammar).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import GrammarError, SpecError
from ..options import Options
from ..paths import path_text
from ..specs import Spec, read_spec
from ..specs.json_values import check_response
from ..specs.project import NAMES as PROJECT_NAMES
from ..specs.project import Project, joined_spec
from ..specs.source import MAX_BYTES, load_document
from .terminal import standard_input


def read_source(spec: str | Project, max_bytes: int | None) -> tuple[Spec | str, str]:
    """The spec or the Lark text, and the name that its output gets by default."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    if isinstance(spec, Project):
        return joined_spec(spec.specs, limit), spec.specs[0].stem
    if spec == "-":
        return read_spec(standard_input().read(limit + 1), "stdin", max_bytes=limit), "stdin"
    path = Path(spec)
    if path.name in PROJECT_NAMES:
        raise SpecError(
            "this is a project file, which says more than a spec",
            place=path.name,
            expected="a spec or a grammar",
            hint="`toolc compile` reads it, without --store; else name the spec that it names",
        )
    if path.suffix.lower() == ".lark":
        try:
            with path.open("rb") as file:
                return _lark(file.read(limit + 1), path, limit), path.stem
        except OSError as error:
            raise GrammarError(f"cannot read this file: {error.strerror}", place=str(path)) from None
    return read_spec(path, max_bytes=limit), path.stem or "spec"


def read_bytes(data: bytes, path: Path, max_bytes: int | None) -> tuple[Spec | str, str]:
    """The same from what was read of `path`, which need not be here."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    if path.suffix.lower() == ".lark":
        return _lark(data, path, limit), path.stem
    return read_spec(data, path.name, max_bytes=limit), path.stem or "spec"


def _lark(data: bytes, path: Path, limit: int) -> str:
    if len(data) > limit:
        raise GrammarError("the grammar is too large", place=path_text(path.name), expected=f"at most {limit:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GrammarError(
            "the grammar is not UTF-8", place=f"{path_text(path.name)}:{line}", found=f"byte 0x{data[error.start]:02x}"
        ) from None


def lark_name(stem: str) -> str:
    """How errors and bundles call the Lark text of a file."""
    return f"{path_text(stem)}.lark"


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
