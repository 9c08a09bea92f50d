"""Read a file that is a spec or a Lark grammar.

Leaves out   reading specs (../specs), grammars (../grammar).
"""

from __future__ import annotations

from pathlib import Path

from toolc.runtime.expected import expect

from .errors import GrammarError, SpecError
from .paths import path_text
from .specs import Spec, read_spec
from .specs.external import Loader
from .specs.project import NAMES as PROJECT_NAMES
from .specs.selection import Selection
from .specs.source import MAX_BYTES


def read_file(
    spec: str,
    max_bytes: int | None,
    skip: bool = False,
    select: Selection | None = None,
    schemas: Loader | str | Path | None = None,
    repair: bool = False,
) -> tuple[Spec | str, str]:
    """The spec or the Lark text, and the name that its output gets by default.

    Args:
        skip, select, schemas, repair: as of `read_spec`.
    """
    limit = MAX_BYTES if max_bytes is None else max_bytes
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
    return read_spec(
        path, max_bytes=limit, skip=skip, select=select, schemas=schemas, repair=repair
    ), path.stem or "spec"


def read_bytes(
    data: bytes,
    path: Path,
    max_bytes: int | None,
    skip: bool = False,
    select: Selection | None = None,
    schemas: Loader | str | Path | None = None,
    repair: bool = False,
) -> tuple[Spec | str, str]:
    """The same from what was read of `path`, which need not be here."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    if path.suffix.lower() == ".lark":
        return _lark(data, path, limit), path.stem
    return read_spec(
        data, path.name, max_bytes=limit, skip=skip, select=select, schemas=schemas, repair=repair
    ), path.stem or "spec"


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


def lark_source(grammar: str | Path | bytes, name: str | None) -> tuple[str, str]:
    """The Lark text that a caller gives, as text or as the path of a file, and how errors call it.

    Raises:
        ArgumentError: it is neither.
        GrammarError: there is no such file, or no rule in the text.
    """
    hints = {
        "Compiled": "it is compiled already",
        "Spec": "a Spec is compiled by compile_spec",
        "dict": "use compile_tools",
    }
    expect(grammar, (str, Path, bytes), "compile_grammar(grammar)", "Lark text, or the path of a .lark file", hints)
    if isinstance(grammar, Path) or (isinstance(grammar, str) and "\n" not in grammar and grammar.endswith(".lark")):
        path = Path(grammar)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise GrammarError(f"cannot read this file: {error.strerror}", place=str(path)) from None
        return _lark(data, path, MAX_BYTES), name or lark_name(path.stem)
    name = name or "grammar.lark"
    if isinstance(grammar, bytes):
        return _lark(grammar, Path(name), MAX_BYTES), name
    if grammar.strip() and ":" not in grammar and "\n" not in grammar.strip():
        raise GrammarError(
            "this is neither Lark text nor the path of a .lark file",
            place=name,
            found=repr(grammar[:60]),
            expected="rules, as start: /[a-z]+/",
            hint="a file of another name is given as a Path",
        )
    return grammar, name


def lark_name(stem: str) -> str:
    """How errors and bundles call the Lark text of a file."""
    return f"{path_text(stem)}.lark"
