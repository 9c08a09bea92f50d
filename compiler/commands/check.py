"""``toolc check``: does a bundle accept a text, and if not, where does it leave the grammar.

The text is read byte by byte, each as if it were a token, so no tokenizer's way of cutting it matters. (Beyond the soft
depth of a recursive grammar a token of several brackets may open more than single bytes may.) A delimiter of the
protocol that is a token of its own is read as that token, wherever it stands, as the tokenizer would.

Leaves out   the walk itself: see runtime/matcher.py.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from toolc.runtime.bundle import Bundle
from toolc.runtime.matcher import Matcher

from .terminal import NOT_ACCEPTED, note, print_json, refuse_usage, standard_input

_BLANK = b" \t\n\r"
_DIGITS = b"0123456789"


def run(bundle: str, text: str, vocab: str | None, entry: str, as_json: bool) -> None:
    """Check and say so."""
    data = _text(text)
    opened = Bundle.open(bundle, vocab)
    if entry not in opened.entry:
        refuse_usage(f"the bundle has no entry {entry!r}; it has {', '.join(sorted(opened.entry))}")
    result = check(opened, data, entry)
    if as_json:
        print_json({"ok": result["accepted"], **result})
    elif result["accepted"]:
        click.echo(f"accepted: {len(data):,} bytes")
    else:
        note(_explain(data, result))
    if not result["accepted"]:
        sys.exit(NOT_ACCEPTED)


def _text(text: str) -> bytes:
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
    matcher = Matcher(bundle, entry)
    offset = read_text(matcher, data)
    if offset == len(data) and matcher.is_complete:
        return {"accepted": True, "bytes": offset}
    while offset and offset < len(data) and data[offset] & 0xC0 == 0x80:  # point at whole characters
        offset -= 1
        matcher.rollback()
    before = data[:offset]
    line_start = before.rfind(b"\n") + 1
    return {
        "accepted": False,
        "offset": offset,
        "line": before.count(b"\n") + 1,
        "column": len(before[line_start:].decode(errors="replace")) + 1,
        "found": _found(bundle, data[offset:]),
        "expected": expected(matcher),
    }


def read_text(matcher: Matcher, data: bytes) -> int:
    """Read a text as far as it goes, delimiters as tokens where they are tokens; how many bytes were read."""
    tokens = _delimiters(matcher.bundle)
    if not tokens:
        return matcher.advance_bytes(data)
    names = b"|".join(re.escape(name) for name in sorted(tokens, key=len, reverse=True))
    offset = 0
    for piece in re.split(b"(" + names + b")", data):
        if piece in tokens:
            count = len(piece) if matcher.try_advance(tokens[piece]) else 0
        else:
            count = matcher.advance_bytes(piece)
        offset += count
        if count < len(piece):
            break
    return offset


def _delimiters(bundle: Bundle) -> dict[bytes, int]:
    """The delimiters that are tokens."""
    found = bundle.meta.get("delimiters") or {}
    return {name.encode(): token for name, token in found.items() if token is not None}


def _found(bundle: Bundle, rest: bytes) -> str:
    if not rest:
        return "the end of the text"
    token = next((name for name in _delimiters(bundle) if rest.startswith(name)), None)
    return f"the token {token.decode()}" if token else repr(_character(rest))


def _character(data: bytes) -> str:
    return data[:4].decode(errors="replace")[0]


def expected(matcher: Matcher, most: int = 12) -> list[str]:
    """What may come next, as people read it: words where few are possible, else kinds of characters."""
    out = [matcher.bundle.vocab.shown(token) for token in matcher.expected_special()]
    if matcher.is_complete:
        ends = {matcher.bundle.vocab.shown(token) for token in matcher.expected_special()}
        out = [one for one in out if one not in ends] + ["the end of the text"]
    data = matcher.expected_bytes()
    if len(data) > 60:
        return [*out, "most characters"]
    digits = [byte for byte in data if byte in _DIGITS]
    blank = [byte for byte in data if byte in _BLANK]
    others = bytes(byte for byte in data if byte not in _BLANK and (byte not in _DIGITS or len(digits) < 3))
    words: list[bytes] | None = []
    for byte in others:
        if words is not None:
            words = _words(matcher, bytes([byte]), words, most)
    if words is not None:
        out += sorted(_shown(word) for word in words)
    else:
        out += _kinds(others)
    if len(digits) >= 3:
        out.append("a digit" if len(digits) == 10 else f"a digit from {chr(digits[0])} to {chr(digits[-1])}")
    if blank:
        out.append("white space" if len(blank) > 1 else "a blank" if blank == [32] else "a new line or tab")
    return out


def _words(matcher: Matcher, word: bytes, found: list[bytes], most: int) -> list[bytes] | None:
    """``found`` and every word that begins with ``word``, up to a quote, a bracket, or where much may follow.

    None if there are more than ``most``.
    """
    probe = matcher.fork()
    probe.advance_bytes(word)
    stack = [(probe, word)]
    while stack:
        probe, word = stack.pop()
        following = probe.expected_bytes()
        whole = word[-1] in b"{}[],:" or (word[-1] == ord('"') and len(word) > 1)
        if whole or len(word) >= 40 or not following or len(following) > 8 or following[0] in _BLANK:
            found = [*found, word]
            if len(found) > most:
                return None
            continue
        for byte in reversed(following):
            branch = probe.fork()
            branch.advance_bytes(bytes([byte]))
            stack.append((branch, word + bytes([byte])))
        if len(stack) > 4 * most:
            return None
    return found


def _shown(word: bytes) -> str:
    return word.decode(errors="backslashreplace")


def _kinds(data: bytes) -> list[str]:
    letters = [byte for byte in data if chr(byte).isalpha() and byte < 128]
    rest = [byte for byte in data if byte < 128 and byte not in letters]
    out = []
    if len(letters) == 52:
        out.append("a letter")
    elif letters:
        out.append("one of " + "".join(map(chr, letters)))
    if len(rest) > 20:
        out.append("most other characters")
    elif rest:
        out.append("one of " + " ".join(chr(byte) if 32 < byte < 127 else repr(chr(byte)) for byte in rest))
    if any(byte >= 128 for byte in data):
        out.append("characters beyond ASCII")
    return out


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
