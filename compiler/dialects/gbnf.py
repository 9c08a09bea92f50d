"""Translate GBNF, the grammars of llama.cpp, to Lark text.

Leaves out   what it shares with EBNF (bnf.py).
Language     Line ends part rules, but in parentheses and behind ``|`` and ``::=``; ``.`` is any character; ``<name>``
             is a special token. A token by its id, and ``!<name>``, any other token, are refused. Left recursion, which
             llama.cpp refuses, is read. ``{m,n}`` is exact, where llama.cpp reads more than 2,000 as without bound.
Source       llama.cpp, grammars/README.md and src/llama-grammar.cpp, as of 2026.
"""

from __future__ import annotations

import re

from .. import regex as rx
from ..ir.nodes import Expr, Terminal
from .bnf import BnfReader, special_token

_BLANKS = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_TOKEN = re.compile(r"<[^>\r\n]*>")


class GbnfReader(BnfReader):
    """See the module."""

    NAME = re.compile("[a-zA-Z0-9-]+")
    ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
    STACKED = True
    LINE_ENDS = ""

    def skip(self, lines: bool) -> None:
        found = (_LINES if lines else _BLANKS).match(self.text, self.at)
        self.at = found.end() if found else self.at

    def end_of_rule(self) -> None:
        if self.at < len(self.text) and self.text[self.at] not in "\r\n":
            self.wrong("an item, | or the end of the line")

    def atom(self) -> Expr | None:
        begin = self.at
        if self.next_is("."):
            self.at += 1
            return Terminal(rx.Chars(((0, 0xD7FF), (0xE000, 0x10FFFF))))
        if self.next_is("!"):
            self.unsupported("a negated token", begin, "name the tokens that may stand here")
        if not self.next_is("<"):
            return None
        found = _TOKEN.match(self.text, begin)
        if found is None:
            self.wrong(">", "a token without an end")
        if re.fullmatch(r"<\[\d+\]>", found[0]):
            self.unsupported("a token by its id", begin, "write its name, as <tool_call>")
        self.at = found.end()
        return special_token(found[0])


def gbnf_text(text: str, name: str) -> str:
    """The Lark text of GBNF.

    Args:
        name: how errors call it.

    Raises:
        GrammarError: the text is malformed, or a rule is not defined or defined twice.
        UnsupportedError: it names tokens by id.
    """
    return GbnfReader(text, name).lark()
