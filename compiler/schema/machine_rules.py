"""Small automata over whole members as rules, one for each state.

Leaves out   the automata (member_automata.py, any_order.py), the text of a member (array_rules.py, object_rules.py,
             scalar_rules.py).
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.nodes import EMPTY, Expr, Ref, choice, sequence
from .member_automata import Machine, Payload, Run
from .rules import Rules


def machine_expr(
    writer: Rules,
    machine: Machine,
    text: Callable[[Payload], Expr],
    hint: str,
    comma: Expr,
    blank: Expr,
    run: Callable[[Run, bool], Expr] | None = None,
) -> Expr:
    """The rules of a machine; the text of its values, in which blanks before what closes them are theirs.

    The rule of a state is of what comes from there on, at least one member. The comma before it, or that there may be
    nothing, is said where a member leads there, so behind a comma is one thing, whichever members may come. A run of
    members is said there, too: its commas are its own.

    Args:
        text: of a payload that is no run.
        comma: between two members;  blank: before the end; both may be nothing.
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
    names = dict(zip(used, map(Ref, writer.state_rules(len(used), f"{hint}_s")), strict=True))

    def ways(to: int, started: bool) -> Expr:
        """What stands from a state on, where something stands before it or not."""
        options: list[Expr] = [sequence(comma, names[to]) if started else names[to]] if goes_on[to] else []
        if run is not None:
            options += [sequence(run(one, started), blank) for one in runs[to]]
        if ends[to] and not (started and any(not one.low for one in runs[to])):
            options.append(blank if started else EMPTY)
        return choice(*options)

    for index, name in names.items():
        options = [
            sequence(text(payload), ways(to, True)) if payload is not None else names[to]
            for payload, to in machine.moves[index]
            if (payload is not None or goes_on[to]) and not isinstance(payload, Run)
        ]
        writer.set_rule(name.name, choice(*options))
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
