r"""Translate llguidance's variant of Lark to Lark text: token by token, each line stays where it is.

Leaves out   Lark itself (../grammar/reader.py), which reads what is left.
Language     Read: ``expr{m,n}``, hyphens in names, strings as JSON writes them, comments with ``#`` and ``//``, special
             tokens ``<name>``, ``%llguidance {}``. Left out, as they change no text: ``[capture]``, ``[temperature]``.
             Refused by name: ``%json``, ``%regex``, ``@grammars``, tokens by id, ``&`` and ``~`` before a terminal,
             ``[lazy]``, ``[stop]``, ``[suffix]``, ``[max_tokens]``, parametric rules, and in expressions what Python
             reads otherwise than Rust.
             A terminal may be any of its texts, where llguidance takes the longest. Ignored text may stand where Lark
             has it: also at the beginning, and before each string of a rule.
Source       llguidance, docs/syntax.md and parser/src/lark/lexer.rs, as of 1.9.
"""

from __future__ import annotations

import json
import re
from typing import NoReturn

from ..budget import look
from ..errors import UnsupportedError
from ..grammar.faults import Source
from ..ir.nodes import string
from ..ir.printer import text_of
from .bnf import TOKEN

_PARTS = re.compile(
    r"""(?P<blank>[ \t\r]+|(?:\#|//)[^\n]*)
    |(?P<line>\n)
    |(?P<string>"(?:\\.|[^"\\\n])*"i?)
    |(?P<regexp>/(?:\\.|[^/\\\n])+/[imslux]*)
    |(?P<token><[^<>\s]+>)
    |(?P<keyword>%[a-z]+|@[a-zA-Z0-9_-]+|@\{)
    |(?P<times>\{[ \t]*\d*[ \t]*(?:,[ \t]*\d*)?[ \t]*\})
    |(?P<name>[!?]?[a-zA-Z_][a-zA-Z0-9_-]*)
    |(?P<range>\.\.|->|::)
    |(?P<other>.)""",
    re.VERBOSE,
)
_ATTRIBUTES = re.compile(r"\[([^\]\n]*)\](?=[ \t]*(?:\.-?\d+[ \t]*)?:)")
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_OPTIONS = {"no_forcing", "allow_invalid_utf8"}
_HINTS = {
    "%json": "compile the schema alone, or write its texts as rules: %import toolc.json (value)",
    "%regex": "write the texts as alternatives",
    "lazy": "write a lazy repeat, as /(?s:.*?)end/",
    "stop": "write what ends the text behind it",
    "suffix": "write a lazy repeat and the suffix, as /(?s:.*?)end/",
    "max_tokens": "bound what the rule repeats: {0,100}",
}
_LEFT_OUT = ("capture", "temperature", "stop_capture")


class LlguidanceReader:
    """One text; ``out`` is what is written, ``atom`` where in it the last item begins, ``open`` where groups do."""

    def __init__(self, text: str, name: str) -> None:
        self.text, self.source = text, Source(text, name)
        self.out: list[str] = []
        self.atom: int | None = None
        self.open: list[int] = []
        self.names: dict[str, str] = {}

    def unsupported(self, what: str, at: int, hint: str) -> NoReturn:
        error = self.source.error(f"{what} is not supported", *self.source.line_of(at), hint=hint)
        raise UnsupportedError(error.message, place=error.place, hint=error.hint)

    def lark(self) -> str:
        """The Lark text of the whole."""
        at = 0
        while at < len(self.text):
            look()
            found = _PARTS.match(self.text, at)
            assert found is not None and found.lastgroup is not None
            at = self.part(found.lastgroup, found[0], at, found.end())
        text = "".join(self.out)
        return text + f"\n%import protocol ({TOKEN})\n" if TOKEN in text else text

    def part(self, kind: str, text: str, at: int, end: int) -> int:
        """Write one part; returns where the next one begins."""
        if kind in ("blank", "line"):
            self.out.append("\n" if kind == "line" else " ")
        elif kind == "string":
            self.item(self.quoted(text, at))
        elif kind == "regexp":
            self.check_classes(text, at)
            self.item(text)
        elif kind == "token":
            if text.startswith("<["):
                self.unsupported("a token by its id", at, "write its name, as <|python_tag|>")
            self.item(f"{TOKEN}{{{text_of(string(text))}}}")
        elif kind == "keyword":
            return self.keyword(text, at, end)
        elif kind == "times":
            self.repeat(text, at)
        elif kind == "name":
            self.item(self.lark_name(text))
            attributes = _ATTRIBUTES.match(self.text, end)
            if attributes is not None:
                self.check_attributes(attributes[1], end)
                return attributes.end()
        else:
            self.sign(text, at)
        return end

    def item(self, text: str) -> None:
        self.atom = len(self.out)
        self.out.append(text)

    def sign(self, text: str, at: int) -> None:
        """Write a bracket, an operator, a colon."""
        if text in ("&", "::") or (text == "~" and not re.match(r"~[ \t]*\d", self.text[at:])):
            hint = "write an expression with a look-ahead, as /(?!if)[a-z]+/" if text != "::" else "write out the rules"
            self.unsupported("a parameter of a rule" if text == "::" else f"the operator {text}", at, hint)
        if text in ("(", "["):
            self.open.append(len(self.out))
        self.out.append(text)
        if text in (")", "]"):
            self.atom = self.open.pop() if self.open else None
        elif text not in "?*+":
            self.atom = None

    def lark_name(self, name: str) -> str:
        """A name without hyphens, which is no other name of the text."""
        if "-" not in name:
            return name
        if name not in self.names:
            mark, bare = re.match(r"([!?]*)(.*)", name).groups()  # type: ignore[union-attr]
            plain = re.sub("-+", "_", bare)
            while re.search(rf"(?<![\w-]){plain}(?![\w-])", self.text) or mark + plain in self.names.values():
                plain += "_x" if plain.islower() else "_X"
            self.names[name] = mark + plain
        return self.names[name]

    def quoted(self, text: str, at: int) -> str:
        """A string of JSON as Lark writes it."""
        body = text.removesuffix("i")
        try:
            value = json.loads(body)
        except ValueError:
            raise self.source.error(
                "malformed string", *self.source.line_of(at), found=text, expected="a string as JSON writes it"
            ) from None
        if any(0xD800 <= ord(one) <= 0xDFFF for one in value):
            raise self.source.error("a lone surrogate is no text", *self.source.line_of(at), found=ascii(value))
        if not text.endswith("i"):
            return text_of(string(value)) if value else '""'
        written = text_of(string(value))
        return written + "i"

    def check_classes(self, text: str, at: int) -> None:
        """Refuse classes of characters that Rust reads otherwise than Python."""
        for found in _CLASS.finditer(re.sub(r"\\.", "  ", text)):
            inside = found[0][1:-1]
            sign = next((one for one in ("[", "&&", "--", "~~") if one in inside), None)
            if sign is not None:
                self.unsupported(f"{sign} in a class of characters", at + found.start(), "list the characters")

    def repeat(self, text: str, at: int) -> None:
        """Write ``{m,n}`` behind the last item."""
        least, comma, most = text[1:-1].replace(" ", "").replace("\t", "").partition(",")
        if self.atom is None or not (least or most):
            expected = "{least,most} behind an item"
            raise self.source.error("malformed repetition", *self.source.line_of(at), found=text, expected=expected)
        if comma and not most:
            item = "".join(self.out[self.atom :])
            more = f"{item}~{least} {item}*" if int(least) else f"{item}*"
            self.out[self.atom :] = [f"({more})"]
        else:
            self.out.append(f"~{least or 0}..{most}" if comma else f"~{least}")

    def keyword(self, text: str, at: int, end: int) -> int:
        """Read a statement or an item that begins with ``%`` or ``@``."""
        if text.startswith("@"):
            self.unsupported("another grammar", at, "write its rules into this one")
        if text in _HINTS:
            self.unsupported(text, at, _HINTS[text])
        if text != "%llguidance":
            self.out.append(text)
            self.atom = None
            return end
        try:
            options, size = json.JSONDecoder().raw_decode(self.text[end:].lstrip(" \t"))
        except ValueError:
            options, size = None, 0
        if not isinstance(options, dict):
            raise self.source.error("malformed options", *self.source.line_of(end), expected="an object of JSON")
        for name in options:
            if name not in _OPTIONS:
                self.unsupported(f"the option {name}", at, "leave it out")
        end = self.text.index("{", end) + size
        self.out.append("\n" * self.text.count("\n", at, end))
        return end

    def check_attributes(self, text: str, at: int) -> None:
        """Refuse attributes of a rule that change its texts."""
        for one in re.split(r",(?=(?:[^\"]*\"[^\"]*\")*[^\"]*$)", text):
            name = one.partition("=")[0].strip()
            if name not in _LEFT_OUT:
                hint = _HINTS.get(name, "capture and temperature are known")
                self.unsupported(f"the attribute {name}", at + 1 + text.index(one), hint)


def llguidance_text(text: str, name: str) -> str:
    """The Lark text of llguidance's variant of Lark.

    Args:
        name: how errors call it.

    Raises:
        GrammarError: a string, a repetition or options are malformed.
        UnsupportedError: it uses what has no meaning here.
    """
    return LlguidanceReader(text, name).lark()
