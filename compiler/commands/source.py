"""Read the SPEC argument of commands: a file, standard input, or a project file.

Leaves out   reading files: see ../source.py.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from ..budget import Budget
from ..errors import SpecError
from ..options import Options
from ..source import read_bytes, read_file, read_grammar_bytes
from ..specs import Spec
from ..specs.json_values import check_response
from ..specs.project import Project, joined_spec
from ..specs.source import MAX_BYTES, load_document
from .terminal import standard_input


def read_source(
    spec: str | Project, max_bytes: int | None, options: Options, syntax: str | None = None
) -> tuple[Spec | str, str]:
    """The spec, or the grammar as Lark text, and the name that its output gets by default.

    Tools that cannot be read are listed in the spec: whether they are left out is said by the options of its compile.

    Args:
        syntax: what a grammar is written in; None: as the ending of its file says.
    """
    limit, select = MAX_BYTES if max_bytes is None else max_bytes, options.selection
    how = select, options.schemas, options.repair, options.subtypes
    source: Spec | str
    if isinstance(spec, Project):
        if syntax is not None:
            raise SpecError("a project names no grammar", place="--syntax", found=syntax)
        source, stem = joined_spec(spec.specs, limit, True, *how), spec.specs[0].stem
    elif spec == "-":
        data, stem = standard_input().read(limit + 1), "stdin"
        if syntax is not None:
            return read_grammar_bytes(data, stem, limit, syntax), stem
        source, _ = read_bytes(data, Path(stem), max_bytes, True, *how)
    else:
        source, stem = read_file(spec, max_bytes, True, *how, syntax)
    if isinstance(source, Spec):
        select.check(source.name)
    return source, stem


def budget_of(options: dict[str, Any]) -> Budget:
    """The limits of a compile; those that are not named are the usual ones."""
    limits = {f.name: options[f"max_{f.name}"] for f in fields(Budget) if options.get(f"max_{f.name}") is not None}
    return replace(Budget(), **limits)


def schema_options(options: dict[str, Any]) -> Options:
    """The options that ``compile`` and ``grammar`` share."""
    return Options(
        protocol=options["protocol"],
        named=options["named"],
        strict=options["strict"],
        closed=options["closed"],
        response=_response(options["response"], options["max_spec_bytes"]),
        whitespace=options["whitespace"],
        digits=options["digits"],
        lenient=options["lenient"],
        skip=options["skip"],
        relax=options["relax"],
        repair=options["repair"],
        subtypes=options["subtypes"],
        canonical=options["canonical"],
        formats=tuple(options["formats"].split(",")) if isinstance(options["formats"], str) else options["formats"],
        only=options["only"],
        but=options["but"],
        schemas=options["schemas"],
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
