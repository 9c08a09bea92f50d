"""Arrays as Lark text.

Leaves out   which items there may be (machine.py), the text of items (writer.py).
Invariants   the text is linear in the shape, or in the states of its automaton.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .atoms import NEVER
from .machine import Item, Payload, array_is_plain
from .nodes import Constant
from .scalar_text import bracketed, constant_text, grouped
from .shapes import Arrays
from .state_text import state_text
from .strings import repeated

if TYPE_CHECKING:
    from .writer import LarkWriter


def array_text(writer: LarkWriter, shape: Arrays, hint: str) -> str:
    """An array."""
    if not array_is_plain(shape):
        return _by_states(writer, shape, hint)
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
        return bracketed(writer, "[", [], "]")
    stem = hint if hint.endswith("_item") else f"{hint}_item"
    tail = "" if rest is None or high == len(prefix) else writer.value(rest, stem)
    items = [writer.value(item, f"{stem}_{index}") for index, item in enumerate(prefix) if item is not None]
    if not items:
        more = repeated(f"(_c {tail})", max(0, shape.low - 1), None if high is None else high - 1)
        inside = f"{tail} {more}".rstrip()
    else:
        low = shape.low - len(items)
        inside = repeated(f"(_c {tail})", max(0, low), None if high is None else high - len(items)) if tail else ""
        for index in range(len(items) - 1, -1, -1):
            after = f"{items[index]} {inside}".rstrip()
            if index == 0:
                inside = after
            elif index >= shape.low:
                inside = f"(_c {after})?"
                if len(inside) > 400:
                    inside = writer.rule(f"_c {after}", f"{hint}_rest", None) + "?"
            else:
                inside = f"_c {after}"
    if shape.low == 0:
        return f'"[" {writer.blank}({grouped(inside, writer.gap)}{" _w" if writer.gap else ""})? "]"'
    return f'"[" {writer.blank}{inside} {writer.blank}"]"'


def _by_states(writer: LarkWriter, shape: Arrays, hint: str) -> str:
    """An array as rules, one for each state of its automaton."""
    machine = writer.normaliser.array_machine(shape)
    assert machine is not None, "a shape that does not live is not written"
    stem = hint if hint.endswith("_item") else f"{hint}_item"

    def text(payload: Payload, started: bool) -> str:
        assert isinstance(payload, Item) and payload.value is not None
        value = payload.value
        one = (
            constant_text(writer, value.value, writer.places.get(hint))
            if isinstance(value, Constant)
            else writer.value(value, stem)
        )
        if " | " in one:
            one = f"({one})"
        return f"_c {one}" if started else one

    return f'"[" {writer.blank}{state_text(writer, machine, text, hint)} "]"'
