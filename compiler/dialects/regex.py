"""Translate one regular expression, which a whole text has to match, to Lark text.

Leaves out   reading and printing expressions (../regex).
Language     What Python's ``re.fullmatch`` accepts, or ``RegExp("^(?:…)$", "u")`` of ECMA-262. Lazy repeats are read as
             greedy: of a whole text they say the same.
"""

from __future__ import annotations

from ..errors import GrammarError, UnsupportedError
from ..ir.nodes import matched
from ..ir.printer import rules_text
from ..regex import parse_regex

DIALECTS = ("python", "ecma")


def regex_text(pattern: str, flags: str = "", dialect: str = "python", name: str = "regex") -> str:
    """The Lark text whose texts are those that an expression matches as a whole.

    Args:
        pattern: the expression, without delimiters.
        flags: letters, as of ``(?ims)``.
        dialect: one of DIALECTS.
        name: how errors call it.

    Raises:
        GrammarError: the expression is malformed.
        UnsupportedError: it is no regular language (back-references, …), or is not known exactly.
    """
    try:
        return rules_text({"start": matched(parse_regex(pattern, flags, dialect))})
    except (GrammarError, UnsupportedError) as error:
        error.place = f"{name}, {error.place}"
        raise


def pattern_file(text: str, name: str) -> str:
    """The same of a file, whose last line end is no part of the expression."""
    return regex_text(text.removesuffix("\n").removesuffix("\r"), name=name)
