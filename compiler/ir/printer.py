"""Write expressions as Lark text.

Leaves out   reading it back (../grammar/reader.py), regular expressions (../regex/printer.py).
Invariants   Lark reads the text of an expression as an equal one.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..regex import NOTHING as NO_TEXT
from ..regex import Regex, to_text
from ..regex import literal as exactly
from .nodes import EMPTY, NOTHING, Choice, Expr, Line, Literal, Ref, Repeat, Sequence, Special, Terminal, Text, Use

MOST_IN_LINE = 8
"""A rule with more alternatives has a line for each."""

_COUNTS: dict[tuple[int, int | None], str] = {(0, None): "*", (1, None): "+"}


def rules_text(rules: Mapping[str, Expr]) -> str:
    """The text of rules by name."""
    return "".join([f"{name}: {_body(expr)}".rstrip() + "\n" for name, expr in rules.items()])


def terminals_text(terminals: Mapping[str, Regex]) -> str:
    """The text of terminals by name."""
    return "".join([f"{name}: /{to_text(regex)}/\n" for name, regex in terminals.items()])


def lines_of(expr: Expr) -> int:
    """How many lines the text of a rule takes."""
    return len(expr.options) if type(expr) is Choice and len(expr.options) > MOST_IN_LINE else 1


def _body(expr: Expr) -> str:
    if type(expr) is Choice and len(expr.options) > MOST_IN_LINE:
        return "\n    | ".join([text_of(option) for option in expr.options])
    return text_of(expr)


def text_of(expr: Expr) -> str:
    """The text of an expression, fit to be the body of a rule."""
    if type(expr) is Sequence:
        return " ".join([_factor(item) for item in expr.items])
    if type(expr) is Choice and expr.options and expr.options[-1] != EMPTY:
        return " | ".join([text_of(option) for option in expr.options])
    return _factor(expr)


def _factor(expr: Expr) -> str:
    """The text of one factor of a product."""
    if type(expr) is Repeat:
        count = _COUNTS.get((expr.low, expr.high))
        if count is None:
            count = f"~{expr.low}" if expr.low == expr.high else f"~{expr.low}..{expr.high}"
        return _atom(expr.item) + count
    if type(expr) is Choice and len(expr.options) > 1 and expr.options[-1] == EMPTY:
        rest = expr.options[:-1]
        return _atom(rest[0] if len(rest) == 1 else Choice(rest)) + "?"
    return _atom(expr)


def _atom(expr: Expr) -> str:
    """The text of what an operator may follow."""
    if type(expr) is Ref:
        return expr.name
    if type(expr) is Literal:
        return _literal(expr.data.decode())
    if type(expr) is Terminal:
        return expr.name or f"/{to_text(expr.regex)}/"
    if type(expr) is Use:
        return f"{expr.template}{{{', '.join([_atom(one) for one in expr.arguments])}}}"
    if type(expr) is Line:
        indent = expr.indent.replace("\t", r"\t")
        return rf"_indented{{/\n(?:{indent})*/}}"
    if type(expr) is Special and expr.otherwise in ("declared", "member"):
        return expr.name
    assert not isinstance(expr, (Special, Text)), "a protocol writes it as the use of a template"
    return f"/{to_text(NO_TEXT)}/" if expr == NOTHING else f"({text_of(expr)})"


def _literal(text: str) -> str:
    if text.isprintable() and "\\" not in text:
        return '"' + text.replace('"', '\\"') + '"'
    return f"/{to_text(exactly(text))}/"
