"""Translate what grammars are written in to Lark text, which the rest of the compiler reads.

Leaves out   reading files (../source.py), Lark text (../grammar/reader.py), what Lark cannot say: it is refused.
Invariants   importing this loads none of the readers; a rule stands in the line of the Lark text in which it stands in
             its own text, wherever rules have lines of their own, so that later errors name the line too. Errors name
             line and column, and what was found there.
"""

from __future__ import annotations

LARK = "lark"

SYNTAX_OF_SUFFIX = {".lark": LARK, ".regex": "regex", ".gbnf": "gbnf", ".ebnf": "ebnf"}
"""Ending of a file → what the grammar in it is written in."""

SYNTAXES = (*SYNTAX_OF_SUFFIX.values(), "llguidance")
"""What a grammar may be written in."""


def lark_text(text: str, syntax: str, name: str) -> str:
    """A grammar as Lark text.

    Args:
        text: the grammar.
        syntax: one of SYNTAXES.
        name: how errors call it.

    Raises:
        GrammarError: the text is malformed, at ``name:line:column``.
        UnsupportedError: it uses what has no meaning here.
    """
    if syntax == "regex":
        from .regex import pattern_file

        return pattern_file(text, name)
    if syntax == "gbnf":
        from .gbnf import gbnf_text

        return gbnf_text(text, name)
    if syntax == "ebnf":
        from .ebnf import ebnf_text

        return ebnf_text(text, name)
    if syntax == "llguidance" or (syntax == LARK and text.lstrip().startswith("%llguidance")):
        from .llguidance import llguidance_text

        return llguidance_text(text, name)
    assert syntax == LARK, syntax
    return text
