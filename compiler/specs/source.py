"""From a path, text or Python value to a checked JSON document.

Leaves out   what the document means: read.py tells the kinds apart. How text is read (json_text.py, yaml_text.py), what
             a value may be (json_values.py).
Invariants   a document is a value of JSON that recursion over is safe; it came from at most ``max_bytes``.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from toolc.runtime.expected import expect

from ..errors import SpecError
from ..paths import path_text
from .json_text import parse_json
from .json_values import check_value
from .model import quote
from .yaml_text import parse_yaml

MAX_BYTES = 32 << 20
_MOST_AT_ONCE = 1 << 32  # room of so many bytes is asked for before a byte is read
_COMPILED = {b"TOOLCBND": "a bundle", b"TOOLCVOC": "a vocab"}
_COMPILED_HINTS = {
    "Bundle": "it is compiled already: give what it was compiled from",
    "Compiled": "it is compiled already: use compiled.bundle",
    "Spec": "a Spec was read before: give it to compile_spec",
    "Vocab": "a Vocab is the tokenizer, the second argument",
    "set": "write a list",
    "generator": "write a list",
}
_YAML_START = re.compile(r"\s*(?:---|#|%YAML|[A-Za-z$][\w$-]*:(?:\s|$))")


def load_document(source: Any, name: str | None, max_bytes: int | None) -> tuple[Any, str]:
    """The document and the name that errors give it.

    Args:
        source: a Path or a text path to read; text that starts with a bracket, or bytes, to parse; or a value as is.
        name: overrides the name.
        max_bytes: the largest text that is read; None for no limit.
    """
    if isinstance(source, tuple):
        source = list(source)
    kinds = (str, Path, bytes, bytearray, memoryview, dict, list, bool, int, float, Decimal, type(None))
    expect(source, kinds, name or "spec", "a path, text, or the document itself: a dict or a list", _COMPILED_HINTS)
    text = source if isinstance(source, str) else ""
    if isinstance(source, str) and not source.lstrip("\ufeff \t\r\n").startswith(("{", "[")):
        source = Path(source)
    name = path_text(name or (source.name if isinstance(source, Path) else "") or "spec")
    if isinstance(source, Path):
        if source.suffix.lower() == ".lark":
            raise SpecError(
                "this is a grammar, not a spec",
                place=str(source),
                hint="compile it with compile_grammar, or `toolc compile`",
            )
        if "\n" in text or re.match(r"\s*[?!]?[A-Za-z_]\w*\s*:\s", text):
            hint = "a grammar is compiled by compile_grammar; YAML is read from a file, or from bytes"
            found, expected = quote(text[:40]), "JSON text, or a path"
            raise SpecError(
                "this is neither JSON text nor a path", place=name[:40], found=found, expected=expected, hint=hint
            )
        data = _read(source, name, max_bytes)
    elif isinstance(source, str):
        data = source.encode("utf-8", "surrogatepass")
    elif isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        check_value(source, name)
        return source, name
    _check_size(len(data), max_bytes, name)
    return parse(data, name), name


def _read(path: Path, name: str, max_bytes: int | None) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read() if max_bytes is None or max_bytes > _MOST_AT_ONCE else file.read(max_bytes + 1)
            if max_bytes is not None and len(data) > max_bytes:
                _check_size(max(path.stat().st_size, len(data)), max_bytes, name)
            return data
    except FileNotFoundError:
        raise SpecError("no such file", place=str(path), expected="the path of a spec document") from None
    except IsADirectoryError:
        raise SpecError("this is a folder", place=str(path), expected="the path of a spec document") from None
    except OSError as error:
        raise SpecError(f"cannot read this file: {error.strerror}", place=str(path)) from None
    except ValueError:  # a zero byte
        raise SpecError("this cannot be a path", place=name.replace("\0", "\\0"), found=quote(str(path))) from None


def _check_size(size: int, max_bytes: int | None, name: str) -> None:
    if max_bytes is not None and size > max_bytes:
        raise SpecError(
            "the document is too large",
            place=name,
            found=f"{size:,} bytes",
            expected=f"at most {max_bytes:,}",
            hint="split it, or raise the limit with --max-spec-bytes",
        )


def parse(data: bytes, name: str) -> Any:
    """The document in ``data``: JSON, or YAML where the name or the first line says so."""
    if data[:8] in _COMPILED:
        raise SpecError(
            f"this is {_COMPILED[data[:8]]}, not a spec",
            place=name,
            expected="what it was compiled from, as a list of tools",
            hint="a bundle is compiled already: open it with Bundle.open, or look at it with `toolc inspect`",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = max(data.rfind(b"\n", 0, error.start) + 1, 0)
        wide = data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:4]
        raise SpecError(
            "the document is not UTF-8",
            place=f"{name}:{data.count(bytes([10]), 0, error.start) + 1}:{error.start - start + 1}",
            found=f"byte 0x{data[error.start]:02x}",
            hint="save it as UTF-8" + (", not UTF-16" if wide else ""),
        ) from None
    if name.lower().endswith((".yaml", ".yml")) or _YAML_START.match(text):
        document = parse_yaml(text, name)
        check_value(document, name)
        return document
    return parse_json(text, name)
