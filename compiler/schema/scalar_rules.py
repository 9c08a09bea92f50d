"""Scalars and constants as expressions.

Leaves out   arrays and objects (array_rules.py, object_rules.py), regular expressions of numbers (numbers.py).
Invariants   no terminal matches the empty text; ``{ } [ ]`` are always literals of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.nodes import EMPTY, Expr, Ref, Terminal, choice, repeated, sequence, string
from ..regex import Chars, Regex, charset, concat, literal_text, union
from . import numbers, string_tails, strings
from .any_order import constant_machine
from .encoding import Quote
from .formats import FORMATS
from .machine_rules import machine_expr
from .member_automata import Machine, Named, Payload
from .multiples import multiples_machine
from .quoted_rules import constants_inside, quoted_constants, quoted_string
from .rules import Rules
from .shapes import Constants, Numbers, Strings
from .values import kind_of


def constants_expr(writer: Rules, kind: str, shape: Constants, hint: str) -> Expr:
    values = [constant.value for constant in shape.values]
    if kind == "string":
        if writer.encoding.quotes:
            return quoted_constants(writer, values, hint)
        writer.restrictions.add("minimal-escapes")
        if len(values) < 4 and sum(map(len, values)) < 40:
            return choice(*map(strings.quoted, values))
        return writer.terminal(strings.alternatives(values), hint)
    if kind == "number":
        found = [_number(writer, value) for value in values]
        texts = [literal_text(one) or "" for one in found]
        if len(texts) < 4 and all(text.isdigit() for text in texts):
            return choice(*map(string, texts))
        return writer.terminal(union(*found), hint)
    return choice(*[constant_expr(writer, value) for value in values])


def constant_expr(writer: Rules, value: Any) -> Expr:
    """One value, blanks allowed between its tokens."""
    kind = kind_of(value)
    if kind == "string":
        return _string(writer, value)
    if kind == "number":
        number = _number(writer, value)
        text = literal_text(number) or ""
        return string(text) if text.isdigit() else writer.terminal(number, "CONST")
    if kind == "array":
        return bracketed(writer, "[", [constant_expr(writer, item) for item in value], "]")
    if kind == "object":
        bare = writer.encoding.bare_key
        values = {name: constant_expr(writer, item) for name, item in value.items()}
        members = {name: sequence(key_expr(writer, name, bare), writer.colon, one) for name, one in values.items()}
        if len(members) > 1:
            machine = constant_machine(list(members)) if writer.options.key_order == "any" else None
            if machine is not None:
                return _by_states(writer, members, machine)
            writer.in_declared_order()
        return bracketed(writer, "{", list(members.values()), "}")
    spelled = writer.encoding.constant(value)
    options = [string(text) for text in spelled]
    return options[0] if len(options) == 1 else writer.rule(choice(*options), spelled[0], None)


def _number(writer: Rules, value: Any) -> Regex:
    """The expression of a number that is given."""
    writer.restrictions.update(numbers.constant_restrictions(value))
    return numbers.constant(value, writer.options.digits)


def _string(writer: Rules, value: str) -> Expr:
    """A string that is given."""
    writer.restrictions.add("minimal-escapes")
    if not writer.encoding.quotes:
        return strings.quoted(value)
    return quoted_constants(writer, [value], "const")


def key_expr(writer: Rules, name: str, bare: Quote | None) -> Expr:
    """A key that is given; ``bare``: how it is written if not as a string is."""
    if bare is None:
        return _string(writer, name)
    writer.restrictions.add("minimal-escapes")
    key = constants_inside(writer, bare, [name], "key")
    if key is None or key == EMPTY:  # a bare key is not empty
        writer.restrictions.add("writable")
        return writer.nothing()
    return key


def _by_states(writer: Rules, members: dict[str, Expr], machine: Machine) -> Expr:
    """A constant object, its members in any order."""

    def text(payload: Payload) -> Expr:
        assert isinstance(payload, Named)
        return members[payload.name]

    inside = machine_expr(writer, machine, text, "const", writer.comma, writer.blank)
    return writer.enclosed("{", inside, "}")


def bracketed(writer: Rules, opening: str, items: Sequence[Expr], closing: str) -> Expr:
    """Items in brackets, commas between them."""
    inside = [part for item in items for part in (writer.comma, item)][1:]
    if inside:
        inside.append(writer.blank)
    return writer.enclosed(opening, sequence(*inside), closing)


def number_expr(writer: Rules, shape: Numbers, hint: str) -> Expr:
    digits = writer.options.digits
    writer.restrictions.add("digits")
    if shape.needs_machine:
        return _multiples(writer, shape, hint)
    if shape.integral:
        writer.restrictions.add("plain-integers")
    if shape.fractional:
        writer.restrictions.add("plain-bounds")
        return writer.terminal(numbers.free_fraction(digits), hint)
    if shape.low is None and shape.high is None:
        if shape.integral:
            return writer.terminal(numbers.free_integer(digits), "INT")
        return writer.terminal(numbers.free_number(digits), "NUM")
    if not shape.integral:
        writer.restrictions.add("plain-bounds")
    regex = numbers.interval(shape.low, shape.low_strict, shape.high, shape.high_strict, shape.integral, digits)
    assert regex is not None
    return writer.terminal(regex, hint)


def string_expr(writer: Rules, shape: Strings, hint: str) -> Expr:
    """A string."""
    if writer.encoding.quotes:
        return quoted_string(writer, shape, hint)
    if not shape.patterns and not shape.excluded:
        if shape == Strings():
            return writer.any_string()
        char = writer.terminal(strings.CHAR, "CHAR")
        return sequence(string('"'), repeated(char, shape.low, shape.high), string('"'))
    heads, last = string_tail(writer, shape)
    return writer.terminal(concat(strings.QUOTE, *heads, last), hint)


def string_tail(writer: Rules, shape: Strings) -> tuple[list[Regex], Regex]:
    """Look-aheads after the opening quote, and an expression for the rest of the string, closing quote included."""
    writer.restrictions.add("minimal-escapes")
    for match in shape.patterns:
        if match.format and FORMATS[match.format].narrowed:
            writer.restrictions.add("formats")
    return string_tails.tail(shape)


def _multiples(writer: Rules, shape: Numbers, hint: str) -> Expr:
    """Numbers as rules, one for each state of their spelling."""
    writer.restrictions.update(("plain-bounds", "plain-integers") if shape.integral else ("plain-bounds",))
    machine = multiples_machine(shape, writer.options.digits, None)
    assert machine is not None, "normalise.py has asked"
    moves, ends = machine
    used = [index for index, out in enumerate(moves) if out or not index]
    names = dict(zip(used, map(Ref, writer.state_rules(len(used), f"{hint}_n")), strict=True))
    for index, name in names.items():
        options = [sequence(_chars(chars), names.get(to, EMPTY)) for chars, to in moves[index].items()]
        writer.set_rule(name.name, choice(*options, *([EMPTY] if ends[index] else [])))
    return names[0]


def _chars(chars: str) -> Expr:
    if len(chars) == 1:
        return string(chars)
    return Terminal(Chars(charset.normal([(ord(char), ord(char)) for char in chars])))
