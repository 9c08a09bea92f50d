"""Read a whole text back, and say where it leaves its bundle: line, column, what stands there and what could.

`read_calls` and `toolc check` are both this.

Leaves out   reading (reader.py), the tables (reference.py).
Invariants   a text is refused by the one if it is by the other, at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import TextError
from ..expected import expect
from ..format.ops import END_OF_TURN
from .blanks import BLANKS
from .reader import Reader, text_bytes
from .reader_records import Refusal

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..reference import Configuration
    from .events import Call

_DIGITS = b"0123456789"


@dataclass(frozen=True)
class Fault:
    """Where a text leaves its bundle.

    Attributes:
        offset: bytes before that place; line, column: the same, from 1, in lines and characters.
        found, expected: what stands there, and what could.
        message, hint: what is wrong.
    """

    offset: int
    line: int
    column: int
    found: str
    expected: tuple[str, ...]
    message: str
    hint: str | None

    def as_error(self, name: str) -> TextError:
        """The same as an error about a bundle of this name."""
        return TextError(
            self.message,
            place=f"{name}, line {self.line}, column {self.column} (byte {self.offset:,})",
            found=self.found,
            expected=" or ".join(self.expected) or "nothing",
            hint=self.hint,
        )


def read_calls(bundle: Bundle, text: str | bytes | Iterable[int], entry: str = "start") -> list[Call]:
    """The calls in a whole text, given as text or as token ids; see Reader for what surrounds them.

    Raises:
        TextError: it is not a text of the bundle, or it ends where it may not end.
    """
    reader, fault = read_whole(bundle, text, entry)
    if fault is not None:
        raise fault.as_error(bundle.name)
    return reader.calls


def read_whole(bundle: Bundle, text: str | bytes | Iterable[int], entry: str = "start") -> tuple[Reader, Fault | None]:
    """A reader that has read a whole text, given as text or as token ids, as far as it goes; and where it is refused.

    Raises:
        DecodeError: there is no such entry or token, or half a character is no text.
    """
    reader = Reader(bundle, entry)
    data, tokens, number, begin = b"", list[int](), 0, 0
    if isinstance(text, (str, bytes)):
        data = text_bytes(text)
    else:
        expect(text, Iterable, "read_calls(text)", "text, or the ids of tokens")
        tokens = list(text)
    try:
        if data:
            reader.feed_text(data)
        for number, token in enumerate(tokens):  # noqa: B007
            begin = len(reader.data)
            reader.feed(token)
        number, begin = len(tokens), len(reader.data)
        reader.finish()
        if not reader.is_whole:
            raise reader.end_refused()
    except Refusal as error:
        if tokens:
            data = reader.data[:begin] + b"".join(_text_of(bundle, token) for token in tokens[number:])
        return reader, _fault(bundle, data, entry, error)
    return reader, None


def _fault(bundle: Bundle, data: bytes, entry: str, error: Refusal) -> Fault:
    offset, at = error.offset, error.at
    if offset < len(data) and data[offset] & 0xC0 == 0x80:  # point at whole characters
        while offset and data[offset] & 0xC0 == 0x80:
            offset -= 1
        again = Reader(bundle, entry)
        again.feed_text(data[:offset])
        again.read_held()
        at = again.end_refused().at
    before = data[:offset]
    column = len(before[before.rfind(b"\n") + 1 :].decode(errors="replace")) + 1
    found, wanted = str(error.found), [error.wanted]
    if not error.wanted:
        found, wanted = _found(bundle, data[offset:], found), expected(bundle, at)
    return Fault(offset, before.count(b"\n") + 1, column, found, tuple(wanted), error.message, error.hint)


def _text_of(bundle: Bundle, token: int) -> bytes:
    """What a token is in a text: its bytes, or the name of a special one."""
    return bundle.vocab.token(token) or bundle.vocab.shown(token).encode()


def _found(bundle: Bundle, rest: bytes, otherwise: str) -> str:
    if not rest:
        return otherwise
    t = bundle.tables
    special = {number: name for name, number in bundle.vocab.meta["special"].items()}
    names = [special.get(token, "") for token in t.special_token.tolist()]
    name = max((name for name in names if name and rest.startswith(name.encode())), key=len, default=None)
    return f"the token {name}" if name else repr(rest[:4].decode(errors="replace")[0])


def expected(bundle: Bundle, at: Configuration, most: int = 12) -> list[str]:
    """What may come next, as people read it: words where few are possible, else kinds of characters.

    Args:
        most: words.
    """
    t = bundle.tables
    special = zip(t.special_token.tolist(), t.special_symbol.tolist(), strict=True)
    out = [bundle.vocab.shown(token) for token, symbol in special if symbol != END_OF_TURN and at.op(symbol)]
    if at.may_end:
        out.append("the end of the text")
    data = at.expected_bytes()
    if len(data) > 60:
        return [*out, "most characters"]
    digits = [byte for byte in data if byte in _DIGITS]
    blank = [byte for byte in data if byte in BLANKS]
    others = bytes(byte for byte in data if byte not in BLANKS and (byte not in _DIGITS or len(digits) < 3))
    words: list[bytes] | None = []
    for byte in others:
        if words is not None:
            words = _words(at, byte, words, most)
    if words is not None:
        out += sorted(_shown(word) for word in words)
    else:
        out += _kinds(others)
    if len(digits) >= 3:
        out.append("a digit" if len(digits) == 10 else f"a digit from {chr(digits[0])} to {chr(digits[-1])}")
    if blank:
        out.append("white space" if len(blank) > 1 else "a blank" if blank == [32] else "a new line or tab")
    return out


def _words(at: Configuration, first: int, found: list[bytes], most: int) -> list[bytes] | None:
    """``found`` and every word that begins with a byte, up to a quote, a bracket, or where much may follow.

    None if there are more than ``most``.
    """
    stack = [(at.after(first), bytes((first,)))]
    while stack:
        probe, word = stack.pop()
        following = probe.expected_bytes()
        whole = word[-1] in b"{}[],:" or (word[-1] == ord('"') and len(word) > 1)
        if whole or len(word) >= 40 or not following or len(following) > 8 or following[0] in BLANKS:
            found = [*found, word]
            if len(found) > most:
                return None
            continue
        stack += [(probe.after(byte), word + bytes((byte,))) for byte in reversed(following)]
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
