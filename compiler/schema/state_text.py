"""Small automata over whole members as Lark text: a rule for each state.

Leaves out   the automata (machine.py, any_order.py), the text of a member (array_text.py, object_text.py,
             scalar_text.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .machine import Machine, Payload

if TYPE_CHECKING:
    from .writer import LarkWriter


def state_text(
    writer: LarkWriter, machine: Machine, text: Callable[[Payload], str], hint: str, comma: str, blank: str
) -> str:
    """The rules of a machine; the text of its values, in which blanks before what closes them are theirs.

    The rule of a state is of what comes from there on, at least one member. The comma before it, or that there may be
    nothing, is said where a member leads there, so behind a comma is one thing, whichever members may come.

    Args:
        text: of a payload; of several members those after the first with their commas.
        comma: between two members;  blank: before the end; both as Lark text.
    """
    states = range(len(machine.moves))
    ends, goes_on = list(machine.ends), [False] * len(states)
    for index in _last_first(machine):
        for payload, to in machine.moves[index]:
            goes_on[index] = goes_on[index] or payload is not None or goes_on[to]
            ends[index] = ends[index] or (payload is None and ends[to])
    used = [index for index in states if goes_on[index]]
    names = dict(zip(used, writer.state_rules(len(used), f"{hint}_s"), strict=True))
    between = f"{comma} " if comma else ""

    def after(to: int) -> str:
        if not goes_on[to]:
            return blank
        more = between + names[to]
        if not ends[to]:
            return more
        return f"({more} | {blank})" if blank else f"({more})?"

    for index, name in names.items():
        options = dict.fromkeys(
            f"{text(payload)} {after(to)}".rstrip() if payload is not None else names[to]
            for payload, to in machine.moves[index]
            if payload is not None or goes_on[to]
        )
        writer.set_rule(name, " | ".join(options))
    start = names.get(0, "")
    return f"{start}?" if start and ends[0] else start


def _last_first(machine: Machine) -> list[int]:
    """The states, each behind those that it leads to without a member."""
    order: list[int] = []
    seen: set[int] = set()
    for root in range(len(machine.moves)):
        todo = [(root, False)]
        while todo:
            index, left = todo.pop()
            if left:
                order.append(index)
            elif index not in seen:
                seen.add(index)
                todo.append((index, True))
                todo += [(to, False) for payload, to in machine.moves[index] if payload is None]
    return order
