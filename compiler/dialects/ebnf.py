r"""Translate XGrammar's EBNF to Lark text.

Leaves out   what it shares with GBNF (bnf.py).
Language     A rule ends where a line begins with ``name ::=``. ``Regex("…")`` is read as ECMA-262 with the u flag. A
             look-ahead ``(= …)`` behind a rule and ``[capture]`` are read and left out: XGrammar's texts are the same
             without them. ``Token``, ``ExcludeToken``, ``TagDispatch``, ``TokenTagDispatch`` and ``max_tokens`` are
             refused.
Source       XGrammar, cpp/grammar_parser.cc and cpp/support/encoding.cc, as of 2026.
"""

from __future__ import annotations

import re

from ..errors import GrammarError, UnsupportedError
from ..ir.nodes import Expr, matched
from ..regex import parse_regex
from .bnf import BnfReader

_BLANKS = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_ATTRIBUTES = re.compile(r"\[[ \t]*((?:max_tokens|capture)\b[^\]\r\n]*)\](?=[ \t]*::=)")
_HINTS = {
    "Token": "name the tokens in Lark: %declare, see docs/grammars.md",
    "ExcludeToken": "name the tokens that may stand here",
    "TagDispatch": "calls between free text are what protocols are for, see docs/protocols.md",
    "TokenTagDispatch": "calls between free text are what protocols are for, see docs/protocols.md",
}
_REGEX = "Regex"


class EbnfReader(BnfReader):
    """See the module."""

    NAME = re.compile("[a-zA-Z_.-][a-zA-Z0-9_.-]*")
    ESCAPES = {
        "'": "'", '"': '"', "?": "?", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
        "v": "\v", "0": "\0", "e": "\x1b",
    }  # fmt: skip
    IN_CLASSES = {one: one for one in "^$\\.*+?()[]{}|/-"}
    NEXT_RULE = re.compile(rf"{NAME.pattern}(?:\[[^\]\r\n]*\])?[ \t\r\n]*::=")

    def skip(self, lines: bool) -> None:
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def hexadecimal(self, kind: str, width: int) -> str:
        if kind != "x":
            return super().hexadecimal(kind, width)
        found = re.compile("[0-9a-fA-F]{1,8}").match(self.text, self.at)  # of any number of digits
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def attributes(self) -> None:
        found = _ATTRIBUTES.match(self.text, self.at)
        if found is None:
            return
        if "max_tokens" in found[1]:
            self.unsupported("max_tokens", self.at, "bound what the rule repeats: {0,100}")
        self.at = found.end()

    def ends(self) -> bool:
        return self.NEXT_RULE.match(self.text, self.at) is not None or self.next_is("(=")

    def end_of_rule(self) -> None:
        if self.next_is("(="):
            self.at += 2
            self.skip(True)
            self.alternatives(nested=True)
            self.take(")", "an item, | or )")
            self.skip(True)
        if self.at < len(self.text) and not self.ends():
            self.wrong("an item, | or the next rule")

    def class_character(self) -> str:
        begin = self.at
        if self.text[begin] == "\\" and self.text[begin + 1 : begin + 2] in tuple("dDsSwW"):
            self.unsupported(f"\\{self.text[begin + 1]} in a class", begin, "list its characters, as 0-9")
        return super().class_character()

    def atom(self) -> Expr | None:
        begin = self.at
        found = self.NAME.match(self.text, begin)
        if found is None:
            return None
        if found[0] in ("true", "false"):
            self.wrong("the name of a rule", f"{found[0]} is a word of the language")
        if found[0] in _HINTS:
            self.unsupported(found[0], begin, _HINTS[found[0]])
        return self.regex() if found[0] == _REGEX else None

    def regex(self) -> Expr:
        """``Regex("…")``."""
        self.at += len(_REGEX)
        self.skip(True)
        self.take("(", "(")
        self.skip(True)
        begin = self.at
        if not self.next_is('"'):
            self.wrong('an expression in "')
        pattern = self.quoted()
        self.skip(True)
        if self.next_is(","):
            self.unsupported("an argument of Regex", self.at, "leave out json_string")
        self.take(")", ")")
        try:
            return matched(parse_regex(pattern, dialect="ecma"))
        except (GrammarError, UnsupportedError) as error:
            outer = self.source.error("", *self.source.line_of(begin))
            error.place = f"{outer.place} ({error.place})"
            raise


def ebnf_text(text: str, name: str) -> str:
    """The Lark text of XGrammar's EBNF.

    Args:
        name: how errors call it.

    Raises:
        GrammarError: the text is malformed, or a rule is not defined or defined twice.
        UnsupportedError: it uses what has no meaning here.
    """
    return EbnfReader(text, name).lark()
