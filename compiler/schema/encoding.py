"""Encodings: how the values of a schema are written, JSON or otherwise.

An encoding says how strings are quoted, how keys and constants are written. The shapes of a schema, and the texts of
numbers, arrays and objects around strings, are the same in all of them.

Leaves out   how one character is spelled (spelling.py), the rules (scalar_rules.py, quoted_rules.py, object_rules.py),
             how a tool's arguments stand beside each other (channel.py).
Source       JSON: RFC 8259. Python: the language reference, 2.4 Literals. Bare: the chat template of Gemma 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..ir.nodes import EMPTY, Expr, string
from ..regex import Regex, charset, parse_regex
from .spelling import RAW, Spelling, python_spelling


@dataclass(frozen=True)
class Quote:
    """One way of writing a string.

    Attributes:
        mark: what stands before and after it, perhaps nothing.
        spelling: its characters, where each has one spelling.
        keep_out: strings that never stand in its text.
        free: an expression for one character of a string that nothing is asked of; None: as in ``spelling``.
        never: an expression that no whole text matches; None for none.
    """

    mark: Expr
    spelling: Spelling
    keep_out: tuple[str, ...] = ()
    free: Regex | None = None
    never: Regex | None = None


@dataclass(frozen=True)
class Encoding:
    """How values are written.

    Attributes:
        name: for people.
        quotes: the ways of writing a string; none for JSON's own.
        bare_key: how the key of a member is written, where it is not written as a string is.
        null, true, false: every way of writing the three constants.
        sorted_too: whether the declared keys of an object may also stand in alphabetical order.
        blanks: whether blanks may stand between tokens.
        gaps: what stands between tokens where the family writes more than a space after ``,`` and ``:``: rules by their
            names, ``_w`` (inside of brackets), ``_c`` (a comma with its blanks), ``_k`` (a colon).
        indent: what a bracket adds to the lines inside of it where JSON is indented; empty: there it never is.
    """

    name: str
    quotes: tuple[Quote, ...] = ()
    bare_key: Quote | None = None
    null: tuple[str, ...] = ("null",)
    true: tuple[str, ...] = ("true",)
    false: tuple[str, ...] = ("false",)
    blanks: bool = True
    sorted_too: bool = False
    gaps: tuple[tuple[str, Expr], ...] = ()
    indent: str = ""

    def constant(self, value: bool | None) -> tuple[str, ...]:
        """How null or a boolean is written."""
        return self.null if value is None else self.true if value else self.false

    def spelled(self, null: tuple[str, ...], true: tuple[str, ...], false: tuple[str, ...]) -> Encoding:
        """The same with other constants, where any are given."""
        return replace(self, null=null or self.null, true=true or self.true, false=false or self.false)


JSON_ENCODING = Encoding("json", indent="  ")


def _python_quote(quote: str, lines: bool = False) -> Quote:
    escape = (
        r"\\(?:[\\'" + r"\x22" + r"abfnrtv]|x[0-9a-fA-F]{2}|u(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})"
        r"|U00(?:0[1-9a-fA-F][0-9a-fA-F]{4}|10[0-9a-fA-F]{4}|00(?:[0-9abcefABCEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})))"
    )
    controls = r"\x00\r" if lines else r"\x00\n\r"
    free = parse_regex(rf"[^\\{controls}\x{ord(quote):02x}]|{escape}")
    return Quote(string(quote), python_spelling(quote), free=free)


_NAME = charset.normal([(45, 46), (48, 57), (65, 90), (95, 95), (97, 122), (128, 0xD7FF), (0xE000, 0x10FFFF)])
IDENTIFIER = Quote(EMPTY, Spelling(_NAME))
"""A name of ASCII letters, digits, ``_ . -`` and anything beyond ASCII."""


def is_name(text: str) -> bool:
    """Whether a text can be written as a bare name."""
    return bool(text) and IDENTIFIER.spelling.spell(text) is not None


PYTHON = Encoding("python", (_python_quote('"'), _python_quote("'")), null=("None",), true=("True",), false=("False",))
PYTHON_OF_LINES = replace(PYTHON, quotes=(_python_quote('"', lines=True), _python_quote("'", lines=True)))
"""The same; a new line in a string may stand as it is, too."""


def bare_encoding(mark: Expr, keep_out: tuple[str, ...]) -> Encoding:
    """Strings as they are between two marks; keys bare."""
    return Encoding("bare", (Quote(mark, RAW, keep_out),), IDENTIFIER, blanks=False, sorted_too=True)
