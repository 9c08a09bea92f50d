"""``toolc check``: does a bundle accept a text, and if not, where does it leave the grammar.

The text is read byte by byte, each as if it were a token, so no tokenizer's way of cutting it matters. (Beyond the soft
depth of a recursive grammar a token of several brackets may open more than single bytes may.) A delimiter of the
protocol that is a token of its own is read as that token, wherever it stands, as the tokenizer would.

Leaves out   reading, and the place where it ends: see runtime/calls/whole_text.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from toolc.runtime.calls.whole_text import read_whole
from toolc.runtime.expected import did_you_mean
from toolc.runtime.format.bundle import Bundle

from .terminal import NOT_ACCEPTED, note, print_json, refuse_usage, standard_input


def run(bundle: str, text: str, vocab: str | None, entry: str, as_json: bool) -> None:
    """Check and say so."""
    data = text_of(text)
    opened = Bundle.open(bundle, vocab)
    known_entry(opened, entry)
    result = check(opened, data, entry)
    if as_json:
        print_json({"ok": result["accepted"], **result})
    elif result["accepted"]:
        click.echo(f"accepted: {len(data):,} bytes")
    else:
        note(_explain(data, result))
    if not result["accepted"]:
        sys.exit(NOT_ACCEPTED)


def known_entry(bundle: Bundle, entry: str) -> None:
    """Refuse an entry that a bundle does not have."""
    if entry not in bundle.entry:
        meant, names = did_you_mean(entry, bundle.entry), ", ".join(sorted(bundle.entry))
        refuse_usage(f"the bundle has no entry {entry!r}; it has {names}" + (f"; {meant}" if meant else ""))


def text_of(text: str) -> bytes:
    """The argument TEXT: the text itself, or what - and @FILE stand for."""
    if text == "-":
        data = standard_input().read()
    elif text.startswith("@"):
        try:
            data = Path(text[1:]).read_bytes()
        except OSError as error:
            refuse_usage(f"cannot read {text[1:]}: {error.strerror}")
    else:
        return os.fsencode(text)
    return data[:-1] if data.endswith(b"\n") else data


def check(bundle: Bundle, data: bytes, entry: str = "start") -> dict[str, Any]:
    """Whether ``data`` is a whole text of the bundle, and if not: offset, line, column, found and expected."""
    _, fault = read_whole(bundle, data, entry)
    if fault is None:
        return {"accepted": True, "bytes": len(data)}
    return {
        "accepted": False,
        "offset": fault.offset,
        "line": fault.line,
        "column": fault.column,
        "found": fault.found,
        "expected": list(fault.expected),
    }


def _explain(data: bytes, result: dict[str, Any]) -> str:
    """The line of the text with a caret, and what was expected there."""
    offset = result["offset"]
    start = data.rfind(b"\n", 0, offset) + 1
    end = data.find(b"\n", offset)
    line = data[start : len(data) if end < 0 else end]
    left = max(0, offset - start - 60)
    shown = "".join(c if c.isprintable() else "·" for c in line[left : offset - start].decode(errors="replace"))
    after = "".join(c if c.isprintable() else "·" for c in line[offset - start :][:40].decode(errors="replace"))
    head = "…" if left else ""
    return (
        f"not accepted at line {result['line']}, column {result['column']} (byte {offset:,})\n"
        f"    {head}{shown}{after}\n"
        f"    {' ' * len(head + shown)}^\n"
        f"  found {result['found']}, expected {' or '.join(result['expected']) or 'nothing'}"
    )
