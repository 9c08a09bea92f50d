"""Copy first transitions across borders of regions and of counted loops, once all transitions are known.

Leaves out   which states these are (nfa.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .regions import Region

if TYPE_CHECKING:
    from .nfa import Nfa


Twins = dict[tuple[int, int], int]
"""(state at the border of a region, tool) → the state that stands for it behind a call of this tool."""


def begin_twins(nfa: Nfa) -> Twins:
    """Give the last state of every tool's call the first moves of what follows, so that it tells the tool.

    Where a counted loop follows, or the end of a group, it leads to what follows, as if there were no border.
    """
    twins: Twins = {}
    known: dict[tuple[int, int], list[int] | None] = {}  # most calls lie in one place
    for last, back in nfa.behind.items():
        place = nfa.where(last)
        at = back, place.scope
        first = known[at] if at in known else _following(nfa, *at)
        if first is None or nfa.behind.keys().isdisjoint(first):  # else the others' moves are still to come
            known[at] = first
        if first is None:
            nfa.free.add(last, (back, 0))
            continue
        tool = Region.of(place.region).tool
        for s in first:
            if s in nfa.fresh:
                if (s, tool) not in twins:
                    twins[s, tool] = nfa.copy_of(s, tool)
                nfa.free.add(last, (twins[s, tool], 0))
            else:
                nfa.taken.setdefault(last, []).append(s)
                nfa.edges.add(last, *nfa.edges.of(s))
                nfa.calls.add(last, *nfa.calls.of(s))
    return twins


def _following(nfa: Nfa, back: int, scope: int) -> list[int] | None:
    """The states that one leads to without reading, up to borders, itself too; None where a counted loop or the end of
    a group is among them, or another scope."""
    first, todo = {back}, [back]
    for s in todo:
        if s in nfa.fresh:
            continue
        if s in nfa.final or nfa.guards.of(s) or nfa.where(s).scope != scope:
            return None
        for target, enters in nfa.free.of(s):
            if enters:
                return None
            if target not in first:
                first.add(target)
                todo.append(target)
    return sorted(first)


def finish_twins(nfa: Nfa, twins: Twins) -> None:
    """Give the twins the moves of the states that they stand for."""
    todo = list(twins)
    while todo:
        state, tool = todo.pop()
        twin = twins[state, tool]
        nfa.taken.setdefault(twin, []).extend(nfa.taken.get(state, ()))
        nfa.edges.add(twin, *nfa.edges.of(state))
        nfa.calls.add(twin, *nfa.calls.of(state))
        for target, enters in nfa.free.of(state):
            if target in nfa.fresh and (target, tool) not in twins:
                twins[target, tool] = nfa.copy_of(target, tool)
                todo.append((target, tool))
            nfa.free.add(twin, (twins.get((target, tool), target), enters))


def finish_borders(nfa: Nfa, twins: Twins) -> list[tuple[int, int]]:
    """Give the states at the borders of regions the first moves of what follows.

    Returns:
        (state at a border, head of a counted loop that begins there).
    """
    entered = []
    ends = {*nfa.fresh, *twins.values(), *nfa.final}
    counts = bool(nfa.loops)  # else there are no guards, and there is one scope
    for state, source in nfa.fresh.items():
        todo, seen = [source], {source}
        skipped = nfa.skipped.get(state)
        while todo:
            s = todo.pop()
            if s == skipped:
                nfa.free.add(state, (nfa.fresh[s], 0))
                continue
            if s in ends or (counts and (nfa.guards.of(s) or nfa.where(s).scope != nfa.where(state).scope)):
                nfa.free.add(state, (s, 0))
                continue
            nfa.taken.setdefault(state, []).append(s)
            nfa.edges.add(state, *nfa.edges.of(s))
            nfa.calls.add(state, *nfa.calls.of(s))
            for target, enters in nfa.free.of(s):
                if enters:
                    entered.append((state, target))
                elif target not in seen:
                    seen.add(target)
                    todo.append(target)
    return entered


def finish_loops(nfa: Nfa) -> None:
    """Give each loop's body the first moves of its item, adding one to the counter."""
    for loop in nfa.loops:
        if loop.entry < 0:
            continue
        todo, seen = [loop.entry], {loop.entry}
        while todo:
            s = todo.pop()
            if nfa.guards.of(s):
                continue  # the head again: an empty iteration
            nfa.edges.add(loop.body, *((mask, target, 1) for mask, target, _ in nfa.edges.of(s)))
            nfa.calls.add(loop.body, *((a, b, back, 1) for a, b, back, _ in nfa.calls.of(s)))
            for target, _ in nfa.free.of(s):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)


def finish_entered(nfa: Nfa, entered: list[tuple[int, int]]) -> None:
    """Where a counted loop begins a region, its first iteration gets states of its own: those before any edge."""
    for state, head in entered:
        copy_of: dict[int, int] = {}
        todo = [head]
        while todo:
            s = todo.pop()
            if s in copy_of or nfa.where(s).scope != nfa.where(head).scope or s in nfa.final:
                continue
            copy_of[s] = nfa.copy_of(s)
            todo += [t for t, enters in nfa.free.of(s) if not enters] + [t for _, _, t in nfa.guards.of(s)]
        for s, copy in copy_of.items():
            nfa.edges.add(copy, *nfa.edges.of(s))
            nfa.calls.add(copy, *nfa.calls.of(s))
            nfa.free.add(copy, *((t if enters else copy_of.get(t, t), enters) for t, enters in nfa.free.of(s)))
            nfa.guards.add(copy, *((least, limit, copy_of.get(t, t)) for least, limit, t in nfa.guards.of(s)))
        nfa.free.add(state, (copy_of[head], 1))
