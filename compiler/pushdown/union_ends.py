"""Work out where a union of objects whose members stand in any order ends, and what the end asks for.

In front of the closing brace, each alternative has a mark that says which members it requires, beside those that are
marked as required themselves (../ir/nodes.py, `members`). The state in front of such marks takes over the brace, and is
marked with what the end asks for. An alternative cannot end there if it requires a member that no way to this state
reads: another key has ruled this member out, or it has not come yet. Of those that can end, one has to require a subset
of what each other one does. The end asks for this subset: a register that meets any of them meets it.

A state in which none of them ends is *waiting* (`WAITS`): it has no brace, and goes on to a member.

Leaves out   members (members.py), the registers (../lift/registers.py).
Invariants   from every state that is left, something ends; `MembersClash` otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import FINISHED, KIND_BITS, KIND_MASK, POP, PUSH

from .member_marks import WAITS, MembersClash, asked_of, bit_of
from .moves import distinct_pairs, leading_to

_BLANKS = list(b"\t\n\r ")


class Transitions(NamedTuple):
    """The transitions of an `Automaton`, as there."""

    ops: np.ndarray
    state_row: np.ndarray
    pushes: np.ndarray
    return_key: np.ndarray
    return_to: np.ndarray


def put_ends(
    t: Transitions,
    of_class: np.ndarray,
    symbol_class: np.ndarray,
    marked: dict[int, int],
    place_of: Callable[[int], str],
) -> None:
    """Give states in front of marks of ends the closing brace, and what the end asks for.

    Args:
        t: whose ops are changed here;  of_class: what the marks stand for, int64 [classes].
        symbol_class: of the automaton;  place_of: state → see members.py.
        marked: state → what it is marked with, members so far; grows.

    Raises:
        MembersClash: no end asks for the least; or behind a mark there is something else than a brace.
    """

    def clash(state: int) -> MembersClash:
        return MembersClash({place_of(state)} - {""})

    ops = t.ops
    asked: dict[int, dict[int, int]] = defaultdict(dict)  # state → what it asks for → row behind the mark
    columns = np.flatnonzero(of_class < 0)
    rows, column = np.nonzero(ops[:, columns])
    for row, k in zip(rows.tolist(), columns[column].tolist(), strict=True):
        state, target = int(np.searchsorted(t.state_row, row, side="right")) - 1, int(ops[row, k]) >> KIND_BITS
        single = t.state_row[state + 1] - t.state_row[state] == t.state_row[target + 1] - t.state_row[target] == 1
        if not single or state in marked:
            raise clash(state)
        asked[state][asked_of(int(of_class[k]))] = int(t.state_row[target])
    seen = _seen(_moves(t), marked)
    waiting: list[int] = []
    for state, every in asked.items():
        row = int(t.state_row[state])
        ends = {bits: behind for bits, behind in every.items() if bits & ~seen[state] == 0}
        if not ends:
            waiting.append(state)
            continue
        least = reduce(and_, ends)
        own = ops[row].copy()
        own[columns] = 0
        braces = ops[list(ends.values())]
        pops = (braces[0] & KIND_MASK == POP) | (braces[0] == 0)
        if (
            least not in ends
            or not pops.all()
            or (braces[0] != braces[1:]).any()
            or ((own != 0) & (braces[0] != 0)).any()
        ):
            raise clash(state)
        ops[row] = own | braces[0]
        marked[state] = -1 - least
    ops[:, columns] = 0
    if waiting:
        marked.update(dict.fromkeys(_before_blanks(t, symbol_class, waiting), WAITS))
        _trim(t)


def _before_blanks(t: Transitions, symbol_class: np.ndarray, states: list[int]) -> list[int]:
    """Some states, and those from which blanks lead to them."""
    blank = np.zeros_like(t.ops)
    blank[:, symbol_class[_BLANKS]] = t.ops[:, symbol_class[_BLANKS]]
    blank[blank & KIND_MASK >= PUSH] = 0
    last = np.zeros(len(t.state_row) - 1, bool)
    last[states] = True
    return np.flatnonzero(leading_to(_moves(t._replace(ops=blank)), last)).tolist()


def _moves(t: Transitions) -> np.ndarray:
    """Pairs of states, int64 [·, 2]: from one a symbol leads to the other, or what it pushes does once it is over."""
    of_row = np.repeat(np.arange(len(t.state_row) - 1), np.diff(t.state_row))
    row, column = np.nonzero(t.ops)
    state, op = of_row[row], t.ops[row, column]
    kind, value = op & KIND_MASK, op >> KIND_BITS
    inside = distinct_pairs(state[kind < PUSH], value[kind < PUSH])
    pushed = distinct_pairs(state[kind == PUSH], t.pushes[value[kind == PUSH], 0])
    order = np.argsort(t.return_key[:, 0], kind="stable")
    first = np.searchsorted(t.return_key[order, 0], pushed[:, 1])
    count = np.searchsorted(t.return_key[order, 0], pushed[:, 1], side="right") - first
    place = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
    behind = distinct_pairs(np.repeat(pushed[:, 0], count), t.return_to[order[place], 0])
    return distinct_pairs(*np.concatenate([inside, behind]).T)


def _seen(moves: np.ndarray, marked: dict[int, int]) -> dict[int, int]:
    """State → the bits of the members whose keys can have come before it."""
    first = np.searchsorted(moves[:, 0], np.arange(moves.max(initial=0) + 2))
    found: dict[int, int] = defaultdict(int)
    todo = [state for state, member in marked.items() if member > 0]
    while todo:
        q = todo.pop()
        bits = found[q] | (1 << bit_of(marked[q]) if marked.get(q, 0) > 0 else 0)
        for to in moves[first[q] : first[q + 1], 1].tolist():
            if bits & ~found[to]:
                found[to] |= bits
                todo.append(to)
    return found


def _trim(t: Transitions) -> None:
    """Leave out the transitions to states from which nothing ends any more.

    Raises MembersClash: a frame that is pushed, or goes on, has such a state at that place.
    """
    ops = t.ops
    of_row = np.repeat(np.arange(len(t.state_row) - 1), np.diff(t.state_row))
    ends = np.zeros(len(t.state_row) - 1, bool)
    ends[[FINISHED, *of_row[(ops & KIND_MASK == POP).any(axis=1)].tolist()]] = True
    live = leading_to(_moves(t), ends)
    entered = t.pushes[np.unique(ops[(ops & KIND_MASK == PUSH) & live[of_row][:, None]] >> KIND_BITS), 1:3]
    if not live[entered].all() or not live[t.return_to[t.return_to[:, 0] > 0, 0]].all():
        raise MembersClash  # of what begins there, or of what goes on there, nothing ends
    ops[(ops & KIND_MASK < PUSH) & ~live[ops >> KIND_BITS]] = 0
