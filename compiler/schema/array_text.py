"""Arrays as Lark text.

Leaves out   which items there may be (member_automata.py), the text of items (writer.py).
Invariants   the text is linear in the shape, or in the states of its automaton.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .atoms import NEVER, Conj
from .member_automata import Item, Payload, array_is_plain
from .nodes import Constant
from .rules import Rules
from .scalar_text import bracketed, constant_text, grouped
from .shapes import Arrays
from .state_text import state_text
from .strings import repeated


@dataclass(frozen=True)
class Items:
    """How items stand beside each other.

    Attributes:
        comma: Lark text between two of them, with a blank after it.
        blank: what may stand before the end.
        one: (value, hint) → an item, one factor of a product.
    """

    comma: str
    blank: str
    one: Callable[[Conj | Constant, str], str]


def array_text(writer: Rules, shape: Arrays, hint: str) -> str:
    """An array."""

    def one(value: Conj | Constant, hint: str) -> str:
        if isinstance(value, Constant):
            return grouped(constant_text(writer, value.value, writer.places.get(hint)), True)
        assert value is not None
        return writer.value(value, hint)

    items = Items(f"{writer.gaps.comma} ", writer.blank.strip(), one)
    if not array_is_plain(shape):
        return f'"[" {writer.blank}{_by_states(writer, shape, items, hint)} "]"'
    inside, low = _plain(writer, shape, items, hint)
    if not inside:
        return bracketed(writer, "[", [], "]")
    if low == 0:
        return f'"[" {writer.blank}({grouped(inside, writer.gap)}{f" {writer.gaps.inside}" if writer.gap else ""})? "]"'
    return f'"[" {writer.blank}{inside} {writer.blank}"]"'


def items_text(writer: Rules, shape: Arrays, items: Items, hint: str) -> str:
    """The items of an array with nothing around them, fit to be an alternative."""
    if not array_is_plain(shape):
        return _by_states(writer, shape, items, hint)
    inside, low = _plain(writer, shape, items, hint)
    return f"({inside})?" if inside and low == 0 else inside


def _plain(writer: Rules, shape: Arrays, items: Items, hint: str) -> tuple[str, int]:
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
        return "", shape.low
    comma = items.comma
    stem = hint if hint.endswith("_item") else f"{hint}_item"
    tail = "" if rest is None or high == len(prefix) else items.one(rest, stem)
    texts = [items.one(item, f"{stem}_{index}") for index, item in enumerate(prefix) if item is not None]
    if not texts:
        more = repeated(f"({comma}{tail})", max(0, shape.low - 1), None if high is None else high - 1)
        return f"{tail} {more}".rstrip(), shape.low
    low = shape.low - len(texts)
    inside = repeated(f"({comma}{tail})", max(0, low), None if high is None else high - len(texts)) if tail else ""
    for index in range(len(texts) - 1, -1, -1):
        after = f"{texts[index]} {inside}".rstrip()
        if index == 0:
            inside = after
        elif index >= shape.low:
            inside = f"({comma}{after})?"
            if len(inside) > 400:
                inside = writer.rule(f"{comma}{after}", f"{hint}_rest", None) + "?"
        else:
            inside = f"{comma}{after}"
    return inside, shape.low


def _by_states(writer: Rules, shape: Arrays, items: Items, hint: str) -> str:
    """Items as rules, one for each state of the array's automaton."""
    machine = writer.normaliser.array_machine(shape)
    assert machine is not None, "a shape that does not live is not written"
    stem = hint if hint.endswith("_item") else f"{hint}_item"

    def text(payload: Payload) -> str:
        assert isinstance(payload, Item) and payload.value is not None
        return items.one(payload.value, stem)

    return state_text(writer, machine, text, hint, items.comma.rstrip(), items.blank)
