"""Factor out the first symbol that all alternatives of a choice share.

The keys of an object all begin with a quote. Behind a member comes any later one, perhaps blanks before it: with a
state for every key behind every member and blank, sets of states grow with the square of the keys. Where the choice
reads the quote there is one state for all of them, until it was read.

Leaves out   symbols behind the first, which large choices share as tries (choice_tries.py).
Invariants   the texts are the same. Only moves that do not count, within one place, are put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from toolc.runtime.jit.memory import kernel

if TYPE_CHECKING:
    from .nfa import Nfa


class Heads(NamedTuple):
    """Choices that read the first symbol of their alternatives.

    choice int32 [·]: their states, those inside of others first; the one behind the symbol of each is numbered behind
    all others, in this order. target int32 [·, 2], offset int32 [states + 1]: the free moves that there were by state.
    """

    choice: np.ndarray
    target: np.ndarray
    offset: np.ndarray

    def by_state(self) -> dict[int, list[int]]:
        """Where the alternatives of each begin."""
        begin, end = self.offset[self.choice].tolist(), self.offset[self.choice + 1].tolist()
        return {s: self.target[i:j, 0].tolist() for s, i, j in zip(self.choice.tolist(), begin, end, strict=True)}


def no_heads(nfa: Nfa) -> Heads:
    """No choice reads for its alternatives."""
    return Heads(np.zeros(0, np.int32), nfa.free.data, nfa.free.offset)


def share_heads(nfa: Nfa, places: np.ndarray) -> Heads:
    """Let choices read the first symbol of their alternatives, in an NFA of which all moves are there by state.

    Args:
        places: int32 [states, 3]: where each lies.
    """
    edges, free = nfa.edges, nfa.free
    final = np.zeros(len(places), bool)
    final[list(nfa.final)] = True
    choice, *rows = _shared(
        edges.data, edges.offset, free.data, free.offset, nfa.calls.offset, nfa.guards.offset, places, final
    )
    found = Heads(choice, free.data, free.offset)
    if choice.size:
        edges.let(*rows[:2])
        free.let(*rows[2:])
    return found


@kernel()
def _shared(edge, edge_offset, free, free_offset, call_offset, guard_offset, place, final):  # type: ignore[no-untyped-def]
    """Find the choices that can read their first symbol.

    Args:
        edge, edge_offset, free, free_offset, call_offset, guard_offset: rows by state, see `Nfa`.
        place: int32 [states, 3];  final: bool [states].

    Returns:
        the choices, int32 [·], those inside of others first; edges and free moves with theirs, as rows by state and
        where those of each begin. A choice keeps no free move; the state behind its symbol is numbered behind all
        others, in the order of choices.
    """
    states = place.shape[0]
    mask = np.full(states, -1, np.int32)  # what is read first, if there is one set of symbols
    after = np.full(states, -1, np.int32)  # and where that leads
    wait = np.zeros(states, np.bool_)  # choices that were not looked at yet
    for s in range(states):
        if final[s] or call_offset[s] < call_offset[s + 1] or guard_offset[s] < guard_offset[s + 1]:
            continue
        first = edge_offset[s]
        reads, leads = edge_offset[s + 1] - first, free_offset[s + 1] - free_offset[s]
        if reads == 1 and leads == 0:
            t = edge[first, 1]
            alike = edge[first, 2] == 0
            for k in range(3):
                alike &= place[s, k] == place[t, k]
            if alike:
                mask[s], after[s] = edge[first, 0], t
        wait[s] = reads == 0 and leads > 0
    choice = np.empty(states, np.int32)
    made = 0
    stack, at = np.empty(states, np.int32), np.empty(states, np.int32)
    for root in range(states):
        if not wait[root]:
            continue
        wait[root] = False
        stack[0], at[0], depth = root, free_offset[root], 1
        while depth:
            s = stack[depth - 1]
            if at[depth - 1] < free_offset[s + 1]:
                t = free[at[depth - 1], 0]
                at[depth - 1] += 1
                if wait[t]:
                    wait[t] = False
                    stack[depth], at[depth] = t, free_offset[t]
                    depth += 1
                continue
            depth -= 1
            begin, end = free_offset[s], free_offset[s + 1]
            shared = mask[free[begin, 0]]
            for i in range(begin, end):
                t = free[i, 0]
                if mask[t] != shared or free[i, 1] != 0:
                    shared = np.int32(-1)
                for k in range(3):
                    if place[s, k] != place[t, k]:
                        shared = np.int32(-1)
            if shared < 0:
                continue
            mask[s] = shared
            if end - begin == 1:
                after[s] = after[free[begin, 0]]
            else:
                after[s] = states + made
                choice[made] = s
                made += 1
    choice = choice[:made].copy()
    if made == 0:
        return choice, edge, edge_offset, free, free_offset
    chosen = np.zeros(states, np.bool_)
    for s in choice:
        chosen[s] = True
    new_edge, new_free = np.empty((edge.shape[0] + made, 3), np.int32), np.empty(free.shape, np.int32)
    edges, frees = np.empty(states + made + 1, np.int32), np.empty(states + made + 1, np.int32)
    reads = leads = 0
    for s in range(states + made):
        edges[s], frees[s] = reads, leads
        if s < states:
            for i in range(edge_offset[s], edge_offset[s + 1]):
                for k in range(3):
                    new_edge[reads, k] = edge[i, k]
                reads += 1
            if chosen[s]:
                new_edge[reads, 0], new_edge[reads, 1], new_edge[reads, 2] = mask[s], after[s], 0
                reads += 1
            else:
                for i in range(free_offset[s], free_offset[s + 1]):
                    new_free[leads, 0], new_free[leads, 1] = free[i, 0], free[i, 1]
                    leads += 1
        else:
            own = choice[s - states]
            for i in range(free_offset[own], free_offset[own + 1]):
                new_free[leads, 0], new_free[leads, 1] = after[free[i, 0]], 0
                leads += 1
    edges[states + made], frees[states + made] = reads, leads
    return choice, new_edge, edges, new_free, frees
