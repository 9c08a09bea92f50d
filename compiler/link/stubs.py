"""Where an automaton calls other parts: its stubs, and whether each is called alone.

Leaves out   making stubs (split.py).
Invariants   where anything but the one part can be meant at an opening symbol, `Apart` is raised and the grammar is
             compiled as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..automata.pushdown import Automaton
from ..automata.workspace import ADD_ONE, POP, PUSH
from ..lift.ahead import thresholds_ahead
from .split import STUB

_DIGITS = range(ord("0"), ord("9") + 1)


class Apart(Exception):
    """A grammar cannot be linked of parts: something is shared between them."""


@dataclass(frozen=True)
class Stubs:
    """Calls of other parts.

    Attributes:
        push: push number → stub.
        symbol: stack symbol → (stub, R with which the stub is left).
        entry: state after a stub's opening symbol → stub.
        inside: states of stubs, their entries among them.
        openers: bytes that open stubs.
    """

    push: dict[int, int]
    symbol: dict[int, tuple[int, int]]
    entry: dict[int, int]
    inside: list[int]
    openers: bytes


def refuse_shared(symbol_class: np.ndarray, ops: np.ndarray) -> None:
    """Look at op rows of an automaton that is being made, so that what cannot be linked need not be made in full.

    Raises Apart: a stub is entered together with something else.
    """
    mark = int(symbol_class[STUB])
    if np.count_nonzero(symbol_class == mark) != 1:
        raise Apart("byte 255 is read like others")
    if (np.count_nonzero(ops[ops[:, mark] != 0], axis=1) > 1).any():
        raise Apart("a stub is entered together with something else")


def find_stubs(a: Automaton) -> Stubs:
    """The stubs of an automaton; none of its op rows was refused by `refuse_shared`.

    Raises Apart: one is entered together with something else, or counters are saved beside it.
    """
    ahead = thresholds_ahead(a).some
    mark = int(a.symbol_class[STUB])
    rows = np.flatnonzero(a.ops[:, mark])
    at_mark = set((np.searchsorted(a.state_row, rows, side="right") - 1).tolist())
    entry: dict[int, int] = {}
    left: dict[int, int] = {}
    inside: list[int] = []
    for e in sorted({q for push in a.pushes for q in push[1:3]}):
        if e not in at_mark:
            continue
        q, _ = _only(a, e, (STUB,))
        inside.append(e)
        number = 0
        while q not in at_mark:
            inside.append(q)
            q, digit = _only(a, q, _DIGITS)
            number = 10 * number + digit - _DIGITS[0]
        inside.append(q)
        entry[e] = number
        if _op(a, q, mark) & 7 != POP:  # in brackets
            q, _ = _only(a, q, (STUB,))
            inside.append(q)
        row = a.ops[a.state_row[q]]
        kinds = np.flatnonzero(row)
        if kinds.size != 1 or row[kinds[0]] & 7 != POP:
            raise Apart("a stub goes on")
        left[e] = int(row[kinds[0]]) >> 3
    if at_mark - set(inside):
        raise Apart("a stub is read in place")
    push: dict[int, int] = {}
    symbol: dict[int, tuple[int, int]] = {}
    for p, (g, e, shallow, _) in enumerate(a.pushes):
        if e in entry or shallow in entry:
            if e != shallow:
                raise Apart("a stub lies in what recurs")
            push[p] = entry[e]
            if symbol.setdefault(g, (entry[e], left[e])) != (entry[e], left[e]):
                raise Apart("a stack symbol is shared")
            target, action = a.returns.get((g, left[e]), (0, 0))
            if target == 0 or (action <= ADD_ONE and ahead[target]):
                raise Apart("a counter goes on after a stub")
    stubs = np.zeros(len(a.pushes), bool)
    stubs[list(push)] = True
    rows, classes = np.nonzero(a.ops & 7 == PUSH)
    openers = np.flatnonzero(np.isin(a.symbol_class[:256], classes[stubs[a.ops[rows, classes] >> 3]]))
    return Stubs(push, symbol, entry, inside, bytes(openers.tolist()))


def _op(a: Automaton, q: int, number: int) -> int:
    return int(a.ops[a.state_row[q], number])


def _only(a: Automaton, q: int, symbols: range | tuple[int, ...]) -> tuple[int, int]:
    """The state after the one symbol that a state reads, and the symbol."""
    row = a.ops[a.state_row[q]]
    kinds = np.flatnonzero(row)
    found = [s for s in symbols if kinds.size and a.symbol_class[s] == kinds[0]]
    if a.thresholds[q] or kinds.size != 1 or len(found) != 1 or row[kinds[0]] & 7 >= PUSH:
        raise Apart("a stub is entered together with something else")
    return int(row[kinds[0]]) >> 3, found[0]
