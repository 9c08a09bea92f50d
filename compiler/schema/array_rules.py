"""Arrays as expressions.

Leaves out   which items there may be (member_automata.py), the rules of items (writer.py).
Invariants   what is written is linear in the shape, or in the states of its automaton.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.nodes import EMPTY, Expr, choice, member, optional, repeated, sequence
from ..ir.printer import text_of
from .atoms import NEVER, Conj
from .keywords import ARRAYS
from .machine_rules import machine_expr
from .member_automata import Item, Payload, array_is_plain
from .nodes import Constant
from .rules import Rules
from .scalar_rules import bracketed, constant_expr
from .shapes import Arrays

MOST_NESTED = 400
"""Optional items are nested up to so many characters of Lark text; then the rest gets a rule."""


@dataclass(frozen=True)
class Items:
    """How items stand beside each other.

    Attributes:
        comma: between two of them.
        blank: what may stand before the end.
        one: (value, hint) → an item, one factor of a product.
    """

    comma: Expr
    blank: Expr
    one: Callable[[Conj | Constant, str], Expr]


def array_expr(writer: Rules, shape: Arrays, hint: str, union: bool = False) -> Expr:
    """An array; ``union``: other arrays may stand in its place, too, so that its frame's register is not its own."""

    def one(value: Conj | Constant, hint: str) -> Expr:
        if isinstance(value, Constant):
            return constant_expr(writer, value.value)
        assert value is not None
        return writer.value(value, hint)

    if not union and _may_have_register(writer):
        strings = writer.normaliser.strings_for_register(shape)
        if strings is not None:
            return _by_register(writer, shape, strings, hint)
    items = Items(writer.comma, writer.blank, one)
    if not array_is_plain(shape):
        return writer.enclosed("[", _by_states(writer, shape, items, hint), "]")
    inside, low = _plain(writer, shape, items, hint)
    if inside == EMPTY:
        return bracketed(writer, "[", [], "]")
    inside = sequence(inside, writer.blank)
    return writer.enclosed("[", optional(inside) if low == 0 else inside, "]")


def _may_have_register(writer: Rules) -> bool:
    """Whether a register may keep which items an array has; only where strings stand in JSON's double quotes."""
    options = writer.options
    ruled_out = not options.registers or not options.ruled_out.isdisjoint([writer.place_of_rule, ARRAYS])
    return not ruled_out and not writer.encoding.quotes


def _by_register(writer: Rules, shape: Arrays, strings: list[str], hint: str) -> Expr:
    """An array as a loop over its items; marks behind them keep each at most once.

    The shortest one has the first bit: the way to close an array that may not be empty leads to it.
    """
    shortest_first = enumerate(sorted(strings, key=len))
    options = [sequence(constant_expr(writer, one), member(n, False)) for n, one in shortest_first]
    one = writer.rule(choice(*options), hint if hint.endswith("_item") else f"{hint}_item", None)
    inside = sequence(one, repeated(sequence(writer.comma, one), 0, None), writer.blank)
    return writer.enclosed("[", inside if shape.low else optional(inside), "]")


def items_expr(writer: Rules, shape: Arrays, items: Items, hint: str) -> Expr:
    """The items of an array with nothing around them, fit to be an alternative."""
    if not array_is_plain(shape):
        return _by_states(writer, shape, items, hint)
    inside, low = _plain(writer, shape, items, hint)
    return optional(inside) if low == 0 else inside


def _plain(writer: Rules, shape: Arrays, items: Items, hint: str) -> tuple[Expr, int]:
    """The items of a plain shape, at least one or nothing at all; and how many there must be."""
    alive = writer.normaliser.alive
    prefix, rest, high = list(shape.prefix), shape.rest, shape.high
    for index, item in enumerate(prefix):
        if not alive(item):
            del prefix[index:]
            rest, high = NEVER, index
            break
    if not alive(rest):
        rest, high = NEVER, min(len(prefix), len(prefix) if high is None else high)
    if high == 0:
        return EMPTY, shape.low
    comma = items.comma
    stem = hint if hint.endswith("_item") else f"{hint}_item"
    tail = None if rest is None or high == len(prefix) else items.one(rest, stem)
    texts = [items.one(item, f"{stem}_{index}") for index, item in enumerate(prefix) if item is not None]
    inside = EMPTY
    if not texts:
        assert tail is not None
        more = repeated(sequence(comma, tail), max(0, shape.low - 1), None if high is None else high - 1)
        return sequence(tail, more), shape.low
    if tail is not None:
        most = None if high is None else high - len(texts)
        inside = repeated(sequence(comma, tail), max(0, shape.low - len(texts)), most)
    for index in range(len(texts) - 1, -1, -1):
        inside = sequence(texts[index], inside)
        if index:
            inside = sequence(comma, inside)
            if index >= shape.low:
                if len(text_of(optional(inside))) > MOST_NESTED:
                    inside = writer.rule(inside, f"{hint}_rest", None)
                inside = optional(inside)
    return inside, shape.low


def _by_states(writer: Rules, shape: Arrays, items: Items, hint: str) -> Expr:
    """Items as rules, one for each state of the array's automaton."""
    machine = writer.normaliser.array_machine(shape)
    assert machine is not None, "a shape that does not live is not written"
    stem = hint if hint.endswith("_item") else f"{hint}_item"

    def text(payload: Payload) -> Expr:
        assert isinstance(payload, Item) and payload.value is not None
        return items.one(payload.value, stem)

    return machine_expr(writer, machine, text, hint, items.comma, items.blank)
