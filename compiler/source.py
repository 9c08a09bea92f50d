"""Read a file that is a spec or a grammar; give grammars as Lark text, whatever they are written in.

Leaves out   reading specs (specs/), Lark text (grammar/), translating other languages of grammars (dialects/).
"""

from __future__ import annotations

from pathlib import Path

from toolc.runtime.expected import expect, expect_word

from .dialects import LARK, SYNTAX_OF_SUFFIX, SYNTAXES, lark_text
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
    subtypes: bool = False,
    syntax: str | None = None,
) -> tuple[Spec | str, str]:
    """The spec, or the grammar as Lark text, and the name that its output gets by default.

    Args:
        skip, select, schemas, repair, subtypes: as of `read_spec`.
        syntax: what a grammar is written in, see `dialects`; None: as the ending of the file says.
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
    syntax = _syntax_of(path) if syntax is None else syntax
    if syntax is not None:
        try:
            with path.open("rb") as file:
                data = file.read(limit + 1)
        except OSError as error:
            raise GrammarError(f"cannot read this file: {error.strerror}", place=str(path)) from None
        return read_grammar_bytes(data, grammar_name(spec), limit, syntax), path.stem
    return read_spec(
        path, max_bytes=limit, skip=skip, select=select, schemas=schemas, repair=repair, subtypes=subtypes
    ), path.stem or "spec"


def read_bytes(
    data: bytes,
    path: Path,
    max_bytes: int | None,
    skip: bool = False,
    select: Selection | None = None,
    schemas: Loader | str | Path | None = None,
    repair: bool = False,
    subtypes: bool = False,
) -> tuple[Spec | str, str]:
    """The same from what was read of `path`, which need not be here."""
    limit = MAX_BYTES if max_bytes is None else max_bytes
    syntax = _syntax_of(path)
    if syntax is not None:
        return read_grammar_bytes(data, grammar_name(str(path)), limit, syntax), path.stem
    return read_spec(
        data, path.name, max_bytes=limit, skip=skip, select=select, schemas=schemas, repair=repair, subtypes=subtypes
    ), path.stem or "spec"


def _syntax_of(path: Path) -> str | None:
    """What a grammar of this name is written in; None: it is a spec."""
    return SYNTAX_OF_SUFFIX.get(path.suffix.lower())


def read_grammar_bytes(data: bytes, name: str, limit: int, syntax: str = LARK) -> str:
    """The Lark text of a grammar.

    Args:
        name: how errors call it.
        limit: the most bytes.
        syntax: what it is written in.
    """
    if len(data) > limit:
        raise GrammarError("the grammar is too large", place=name, expected=f"at most {limit:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise GrammarError(
            "the grammar is not UTF-8", place=f"{name}:{line}", found=f"byte 0x{data[error.start]:02x}"
        ) from None
    return lark_text(text, syntax, name)


def grammar_source(
    grammar: str | Path | bytes, name: str | None, syntax: str | None = None
) -> tuple[str, str, tuple[Path, ...]]:
    """The Lark text of a grammar that a caller gives, as text or as the path of a file; how errors call it; where it
    looks for what it imports.

    Args:
        grammar: text or bytes; a Path; or text of one line that ends as files of grammars do.
        name: how errors call it; None: as the file.
        syntax: what it is written in; None: as the ending of the file says, else Lark.

    Raises:
        ArgumentError: it is neither, or there is no such syntax.
        GrammarError: there is no such file, or no rule in the text.
    """
    hints = {
        "Compiled": "it is compiled already",
        "Spec": "a Spec is compiled by compile_spec",
        "dict": "use compile_tools",
    }
    expect(grammar, (str, Path, bytes), "compile_grammar(grammar)", "Lark text, or the path of a .lark file", hints)
    expect_word(syntax, (None, *SYNTAXES), "compile_grammar(syntax)")
    if isinstance(grammar, Path) or ("\n" not in str(grammar) and _is_path(grammar)):
        path = Path(str(grammar))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise GrammarError(f"cannot read this file: {error.strerror}", place=str(path)) from None
        name = name or grammar_name(str(path))
        return read_grammar_bytes(data, name, MAX_BYTES, syntax or _syntax_of(path) or LARK), name, (path.parent,)
    name = name or f"grammar.{syntax or LARK}"
    if isinstance(grammar, bytes):
        return read_grammar_bytes(grammar, name, MAX_BYTES, syntax or LARK), name, ()
    if syntax in (None, LARK) and grammar.strip() and ":" not in grammar and "\n" not in grammar.strip():
        raise GrammarError(
            "this is neither Lark text nor the path of a .lark file",
            place=name,
            found=repr(grammar[:60]),
            expected="rules, as start: /[a-z]+/",
            hint="a file of another name is given as a Path",
        )
    return lark_text(grammar, syntax or LARK, name), name, ()


def _is_path(grammar: str | bytes) -> bool:
    return isinstance(grammar, str) and grammar.endswith(tuple(SYNTAX_OF_SUFFIX))


def grammar_name(spec: str) -> str:
    """How errors and bundles call the grammar in a file."""
    return "stdin" if spec == "-" else path_text(Path(spec).name)


def beside(spec: str) -> tuple[Path, ...]:
    """Where the grammar in a file looks for what it imports."""
    return () if spec == "-" else (Path(spec).parent,)
