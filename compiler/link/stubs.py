"""Find where an automaton calls other parts: its stubs, and whether each is called alone.

Leaves out   making stubs (split.py).
Invariants   where anything but the one part can be meant at an opening symbol, `Apart` is raised and the grammar is
             compiled as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK
from toolc.runtime.jit.memory import kernel

from ..pushdown.pushdown import Automaton
from ..terminals.workspace import ADD_ONE, POP, PUSH
from .split import DIGITS, STUB

_DIGITS = np.frombuffer(DIGITS, np.uint8)
_MOST = 1 << 30  # the number of a stub


class Apart(Exception):
    """A grammar cannot be linked of parts: something is shared between them."""


@dataclass(frozen=True)
class Stubs:
    """Calls of other parts.

    Attributes:
        push: push number → stub.
        symbol: stack symbol → (stub, R with which the stub is left).
        entry: state after a stub's opening symbol → stub.
        inside: states of stubs, their entries among them, ascending.
        openers: bytes that open stubs.
    """

    push: dict[int, int]
    symbol: dict[int, tuple[int, int]]
    entry: dict[int, int]
    inside: np.ndarray
    openers: bytes


def refuse_shared(symbol_class: np.ndarray, ops: np.ndarray) -> None:
    """Look at op rows of an automaton that is being made, so that what cannot be linked need not be made in full.

    Raises Apart: a stub is entered together with something else.
    """
    mark = int(symbol_class[STUB])
    if np.count_nonzero(symbol_class == mark) != 1:
        raise Apart("byte 255 is read like others")
    if _beside(ops, mark):
        raise Apart("a stub is entered together with something else")


def find_stubs(a: Automaton, counts: np.ndarray) -> Stubs:
    """The stubs of an automaton; none of its op rows was refused by `refuse_shared`.

    Args:
        counts: bool [states]: whether a threshold is ahead of each (lift/reachable_thresholds.py).

    Raises Apart: one is entered together with something else, or counters are saved beside it.
    """
    mark = int(a.symbol_class[STUB])
    is_entered = np.zeros(a.state_row.size - 1, bool)
    is_entered[a.pushes[:, 1:3]] = True
    entered = np.flatnonzero(is_entered)
    entered = entered[a.ops[a.state_row[entered], mark] != 0]
    digits = a.symbol_class[_DIGITS].astype(np.int32)
    number, left, inside = _read(a.ops, a.state_row, a.threshold_offset, entered, mark, digits)
    if (number < 0).any():
        raise Apart("a stub is entered together with something else, or goes on")
    rows = np.flatnonzero(a.ops[:, mark])
    if not inside[np.searchsorted(a.state_row, rows, side="right") - 1].all():
        raise Apart("a stub is read in place")
    entry = dict(zip(entered.tolist(), number.tolist(), strict=True))
    left_of = dict(zip(entered.tolist(), left.tolist(), strict=True))
    push: dict[int, int] = {}
    symbol: dict[int, tuple[int, int]] = {}
    for p, (g, e, shallow, _) in enumerate(a.pushes.tolist()):
        if e in entry or shallow in entry:
            if e != shallow:
                raise Apart("a stub lies in what recurs")
            push[p] = entry[e]
            if symbol.setdefault(g, (entry[e], left_of[e])) != (entry[e], left_of[e]):
                raise Apart("a stack symbol is shared")
            target, action = a.returns.get((g, left_of[e]), (0, 0))
            if target == 0 or (action <= ADD_ONE and counts[target]):
                raise Apart("a counter goes on after a stub")
    opens = np.zeros(len(a.pushes), bool)
    opens[list(push)] = True
    openers = np.flatnonzero(_openers(a.ops, opens)[a.symbol_class[:256]])
    return Stubs(push, symbol, entry, np.flatnonzero(inside), bytes(openers.tolist()))


@kernel()
def _beside(ops, mark):  # type: ignore[no-untyped-def]
    """Whether a row int32 [·, classes] that reads a class reads another too."""
    for r in range(ops.shape[0]):
        if ops[r, mark] != 0:
            for k in range(ops.shape[1]):
                if k != mark and ops[r, k] != 0:
                    return True
    return False


@kernel()
def _only(ops, state_row, threshold_offset, q):  # type: ignore[no-untyped-def]
    """The one class that a state reads, or -1."""
    found = -1
    if threshold_offset[q + 1] == threshold_offset[q]:
        for k in range(ops.shape[1]):
            if ops[state_row[q], k] != 0:
                if found >= 0:
                    return -1
                found = k
    return found


@kernel()
def _read(ops, state_row, threshold_offset, entries, mark, digits):  # type: ignore[no-untyped-def]
    """The number of the stub that is entered with each of some states, and the R with which it is left; a number of -1
    where it is no stub alone. And bool [states]: which are inside of stubs."""
    number, left = np.full(entries.size, -1, np.int64), np.zeros(entries.size, np.int64)
    inside = np.zeros(state_row.size - 1, np.bool_)
    for n in range(entries.size):
        q = np.int64(entries[n])
        value, marks = np.int64(0), 0
        while value <= _MOST:
            inside[q] = True
            k = _only(ops, state_row, threshold_offset, q)
            if k < 0:
                break
            op = np.int64(ops[state_row[q], k])
            if op & KIND_MASK == POP:  # behind its last mark, or with it where it is not in brackets
                if marks + (k == mark) == 2:
                    number[n] = value
                    left[n] = op >> KIND_BITS
                break
            if op & KIND_MASK == PUSH or marks == 2:
                break
            if k == mark:
                marks += 1
            else:
                digit = -1
                for d in range(digits.size):
                    if digits[d] == k:
                        if digit >= 0:
                            k = -1
                        digit = d
                if k < 0 or digit < 0 or marks != 1:
                    break
                value = digits.size * value + digit
            q = op >> KIND_BITS
    return number, left, inside


@kernel()
def _openers(ops, opens):  # type: ignore[no-untyped-def]
    """bool [classes]: those with which some state makes one of some pushes."""
    found = np.zeros(ops.shape[1], np.bool_)
    for r in range(ops.shape[0]):
        for k in range(ops.shape[1]):
            if ops[r, k] & KIND_MASK == PUSH and opens[ops[r, k] >> KIND_BITS]:
                found[k] = True
    return found
