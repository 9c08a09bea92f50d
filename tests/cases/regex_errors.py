"""Regular expressions that must be refused: id, text, dialect, error, character, words of the message."""

from __future__ import annotations

from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError

REGEX_ERRORS: list[tuple[str, str, str, type[ToolcError], int, str]] = [
    ("group/open", "(a", "python", GrammarError, 3, "unterminated group"),
    ("group/close", "a)", "python", GrammarError, 2, "unbalanced parenthesis"),
    ("group/name", "(?P<1>x)", "python", GrammarError, 5, "bad group name"),
    ("group/kind", "(?y)", "python", GrammarError, 3, "unknown kind of group"),
    ("quantifier/nothing", "a|*", "python", GrammarError, 3, "nothing to repeat"),
    ("quantifier/twice", "a**", "python", GrammarError, 3, "multiple repeat"),
    ("quantifier/order", "x{3,2}", "python", GrammarError, 2, "min repeat greater"),
    ("class/open", "[a", "python", GrammarError, 3, "unterminated character set"),
    ("class/order", "x[b-a]", "python", GrammarError, 3, "bad character range"),
    ("class/shorthand", r"[\d-z]", "python", GrammarError, 2, "bad character range"),
    ("escape/unknown", r"\q", "python", GrammarError, 1, "bad escape"),
    ("escape/end", "a\\", "python", GrammarError, 3, "bad escape"),
    ("escape/hex", r"\x4", "python", GrammarError, 1, "2 hexadecimal digits"),
    ("reference/number", r"(a)\1", "python", UnsupportedError, 4, "back-reference"),
    ("reference/name", "(?P<n>a)(?P=n)", "python", UnsupportedError, 9, "back-reference"),
    ("atomic", "(?>a)", "python", UnsupportedError, 1, "atomic"),
    ("possessive", "a++", "python", UnsupportedError, 2, "possessive"),
    ("conditional", "(a)(?(1)b|c)", "python", UnsupportedError, 4, "conditional"),
    ("group/deep", "(?:a|" * 61 + ")" * 61, "python", GrammarError, 301, "nest more than 60 deep"),
    ("ecma/deep", "(" * 41 + ")" * 41, "ecma", UnsupportedError, 41, "nest more than 40 deep"),
    (
        "ecma/deep at the end",
        "((a)[(]\\()" * 99 + "(" * 41 + ")" * 41,
        "ecma",
        UnsupportedError,
        1031,
        "nest more than 40",
    ),
    ("ecma/reference", r"(a)\1", "ecma", UnsupportedError, 4, "back-reference"),
    ("ecma/named", r"(?<n>a)\k<n>", "ecma", UnsupportedError, 8, "back-reference"),
    ("ecma/modifiers", "(?i:a)", "ecma", UnsupportedError, 1, "a group with flags"),
    ("ecma/property", r"\p{Script=Klingon}", "ecma", UnsupportedError, 1, "Script=Klingon"),
    ("ecma/open", "(a", "ecma", GrammarError, 3, "unterminated group"),
    ("ecma/quantifier", "*a", "ecma", GrammarError, 1, "nothing to repeat"),
    ("ecma/code", r"\u{110000}", "ecma", GrammarError, 1, "10FFFF"),
]
