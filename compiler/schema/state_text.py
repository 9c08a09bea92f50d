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
    writer: LarkWriter, machine: Machine, text: Callable[[Payload, bool], str], hint: str, blank: str | None = None
) -> str:
    """The rules of a machine, from which the start is returned; blanks before what closes it are theirs."""
    blank = writer.blank.strip() if blank is None else blank
    used = [index for index, moves in enumerate(machine.moves) if moves or not index]
    names = dict(zip(used, writer.state_rules(len(used), f"{hint}_s"), strict=True))
    for index, name in names.items():
        started = machine.started[index]
        options: list[str] = []
        for payload, to in machine.moves[index]:
            after = names[to] if machine.moves[to] else blank
            options.append(" ".join(part for part in (text(payload, started), after) if part))
        if machine.ends[index]:
            options.append(blank if started else "")
        options.sort(key=lambda option: not option)
        writer.set_rule(name, " | ".join(options).rstrip())
    return names[0]
