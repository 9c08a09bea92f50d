"""Small automata over whole members as Lark text: a rule for each state.

Leaves out   the automata (member_automata.py, any_order.py), the text of a member (array_text.py, object_text.py,
             scalar_text.py).
"""

from __future__ import annotations

from collections.abc import Callable

from .member_automata import Machine, Payload, Run
from .rules import Rules


def state_text(
    writer: Rules,
    machine: Machine,
    text: Callable[[Payload], str],
    hint: str,
    comma: str,
    blank: str,
    run: Callable[[Run, bool], str] | None = None,
) -> str:
    """The rules of a machine; the text of its values, in which blanks before what closes them are theirs.

    The rule of a state is of what comes from there on, at least one member. The comma before it, or that there may be
    nothing, is said where a member leads there, so behind a comma is one thing, whichever members may come. A run of
    members is said there, too: its commas are its own.

    Args:
        text: of a payload that is no run.
        comma: between two members;  blank: before the end; both as Lark text.
        run: of a run, and whether something stands before it; at least one member where nothing does.
    """
    states = range(len(machine.moves))
    ends, goes_on = list(machine.ends), [False] * len(states)
    runs: list[dict[Run, None]] = [{} for _ in states]
    for index in _last_first(machine):
        for payload, to in machine.moves[index]:
            if payload is None:
                goes_on[index] |= goes_on[to]
                ends[index] |= ends[to]
                runs[index] |= runs[to]
            elif isinstance(payload, Run):
                runs[index][payload] = None
            else:
                goes_on[index] = True
    used = [index for index in states if goes_on[index]]
    names = dict(zip(used, writer.state_rules(len(used), f"{hint}_s"), strict=True))
    between = f"{comma} " if comma else ""

    def ways(to: int, started: bool) -> str:
        """What stands from a state on, where something stands before it or not."""
        options = [between + names[to] if started else names[to]] if goes_on[to] else []
        if run is not None:
            options += [f"{run(one, started)} {blank}".rstrip() for one in runs[to]]
        empty = ends[to] and not (started and any(not one.low for one in runs[to]))
        if empty and started and blank:
            options.append(blank)
        if empty and not (started and blank):
            return f"({' | '.join(options)})?" if options else ""
        return options[0] if len(options) == 1 else f"({' | '.join(options)})"

    for index, name in names.items():
        options = dict.fromkeys(
            f"{text(payload)} {ways(to, True)}".rstrip() if payload is not None else names[to]
            for payload, to in machine.moves[index]
            if (payload is not None or goes_on[to]) and not isinstance(payload, Run)
        )
        writer.set_rule(name, " | ".join(options))
    return ways(0, False)


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
