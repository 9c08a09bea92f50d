"""Scalars and constants as Lark text.

Leaves out   arrays and objects (array_text.py, object_text.py), regular expressions of numbers (numbers.py).
Invariants   no terminal matches the empty text; ``{ } [ ]`` are always literals of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..regex import Regex, concat, parse_regex
from . import numbers, string_tails, strings
from .any_order import constant_machine
from .encoding import Quote
from .formats import FORMATS
from .member_automata import Named, Payload
from .multiples import multiples_machine
from .quoted_text import constants_inside, quoted_constants, quoted_string
from .rules import Rules
from .shapes import Constants, Numbers, Strings
from .state_text import state_text
from .strings import repeated
from .values import kind_of


def constants_text(writer: Rules, kind: str, shape: Constants, hint: str) -> str:
    values = [constant.value for constant in shape.values]
    if kind == "string":
        if writer.encoding.quotes:
            return quoted_constants(writer, values, hint)
        writer.restrictions.add("minimal-escapes")
        if len(values) < 4 and sum(map(len, values)) < 40:
            return " | ".join(strings.quoted(value) for value in values)
        return writer.terminal(strings.alternatives(values), hint)
    if kind == "number":
        texts = [_number(writer, value) for value in values]
        if len(texts) < 4 and all(text.isdigit() for text in texts):
            return " | ".join(f'"{text}"' for text in texts)
        return writer.terminal(parse_regex("|".join(texts)), hint)
    return " | ".join(constant_text(writer, value, writer.places.get(hint)) for value in values)


def constant_text(writer: Rules, value: Any, place: str | None = None) -> str:
    """One value as Lark text, blanks allowed between its tokens; ``place`` is for errors."""
    kind = kind_of(value)
    if kind == "string":
        return _string(writer, value)
    if kind == "number":
        text = _number(writer, value)
        return f'"{text}"' if text.isdigit() else writer.terminal(parse_regex(text), "CONST")
    if kind == "array":
        return bracketed(writer, "[", [constant_text(writer, item, place) for item in value], "]")
    if kind == "object":
        bare = writer.encoding.bare_key
        values = {name: constant_text(writer, item, place) for name, item in value.items()}
        members = {name: f"{key_text(writer, name, bare)} {writer.gaps.colon} {text}" for name, text in values.items()}
        if len(members) > 1:
            if writer.options.key_order == "any":
                return _any_order(writer, members, place)
            writer.restrictions.add("key-order")
        return bracketed(writer, "{", list(members.values()), "}")
    texts = [f'"{text}"' for text in writer.encoding.constant(value)]
    return texts[0] if len(texts) == 1 else writer.rule(" | ".join(texts), texts[0].strip('"'), None)


def _number(writer: Rules, value: Any) -> str:
    """The expression of a number that is given."""
    writer.restrictions.update(numbers.constant_restrictions(value))
    return numbers.constant(value, writer.options.digits)


def _string(writer: Rules, value: str) -> str:
    """A string that is given, as one factor of a product."""
    writer.restrictions.add("minimal-escapes")
    if not writer.encoding.quotes:
        return strings.quoted(value)
    return grouped(quoted_constants(writer, [value], "const"), True)


def key_text(writer: Rules, name: str, bare: Quote | None) -> str:
    """A key that is given, as one factor of a product; ``bare``: how it is written if not as a string is."""
    if bare is None:
        return _string(writer, name)
    writer.restrictions.add("minimal-escapes")
    text = constants_inside(writer, bare, [name], "key")
    if not text:  # a bare key is not empty
        writer.restrictions.add("writable")
        return writer.nothing()
    return grouped(text, True)


def _any_order(writer: Rules, members: dict[str, str], place: str | None) -> str:
    """A constant object, its members in any order."""

    def text(payload: Payload) -> str:
        assert isinstance(payload, Named)
        return members[payload.name]

    machine = constant_machine(list(members), place)
    return (
        f'"{{" {writer.blank}{state_text(writer, machine, text, "const", writer.gaps.comma, writer.blank.strip())} "}}"'
    )


def bracketed(writer: Rules, opening: str, items: Sequence[str], closing: str) -> str:
    inside = f" {writer.gaps.comma} ".join(items)
    return f'"{opening}" {writer.blank}{inside}{" " if inside else ""}{writer.blank if inside else ""}"{closing}"'


def number_text(writer: Rules, shape: Numbers, hint: str) -> str:
    digits = writer.options.digits
    writer.restrictions.add("digits")
    if shape.needs_machine:
        return _multiples(writer, shape, hint)
    if shape.integral:
        writer.restrictions.add("plain-integers")
    if shape.fractional:
        writer.restrictions.add("plain-bounds")
        return writer.terminal(parse_regex(numbers.free_fraction(digits)), hint)
    if shape.low is None and shape.high is None:
        if shape.integral:
            return writer.terminal(parse_regex(numbers.free_integer(digits)), "INT")
        return writer.terminal(parse_regex(numbers.free_number(digits)), "NUM")
    if not shape.integral:
        writer.restrictions.add("plain-bounds")
    regex = numbers.interval(shape.low, shape.low_strict, shape.high, shape.high_strict, shape.integral, digits)
    assert regex is not None
    return writer.terminal(parse_regex(regex), hint)


def string_text(writer: Rules, shape: Strings, hint: str) -> str:
    """A string."""
    if writer.encoding.quotes:
        return quoted_string(writer, shape, hint)
    if not shape.patterns and not shape.excluded:
        if shape == Strings():
            return writer.any_string()
        char = writer.terminal(strings.CHAR, "CHAR")
        return f'"\\"" {repeated(char, shape.low, shape.high)} "\\""'.replace("  ", " ")
    heads, last = string_tail(writer, shape)
    return writer.terminal(concat(strings.QUOTE, *heads, last), hint)


def string_tail(writer: Rules, shape: Strings) -> tuple[list[Regex], Regex]:
    """Look-aheads after the opening quote, and an expression for the rest of the string, closing quote included."""
    writer.restrictions.add("minimal-escapes")
    for match in shape.patterns:
        if match.format and FORMATS[match.format].narrowed:
            writer.restrictions.add("formats")
    return string_tails.tail(shape)


def _multiples(writer: Rules, shape: Numbers, hint: str) -> str:
    """Numbers as rules, one for each state of their spelling."""
    writer.restrictions.update(("plain-bounds", "plain-integers") if shape.integral else ("plain-bounds",))
    machine = multiples_machine(shape, writer.options.digits, None)
    assert machine is not None, "normalise.py has asked"
    moves, ends = machine
    used = [index for index, out in enumerate(moves) if out or not index]
    names = dict(zip(used, writer.state_rules(len(used), f"{hint}_n"), strict=True))
    for index, name in names.items():
        options = [f"{_chars(chars)} {names.get(to, '')}".rstrip() for chars, to in moves[index].items()]
        writer.set_rule(name, " | ".join(options) + (" |" if ends[index] else ""))
    return names[0]


def _chars(chars: str) -> str:
    if len(chars) == 1:
        return f'"{chars}"'
    whole = chars.isdigit() and len(chars) == int(chars[-1]) - int(chars[0]) + 1
    return f"/[{chars[0]}-{chars[-1]}]/" if whole and len(chars) > 2 else f"/[{chars}]/"


def grouped(text: str, needed: bool) -> str:
    """The text fit to be followed by more: alternatives in parentheses (those of _choose, which are never nested)."""
    return f"({text})" if needed and " | " in text else text
