"""Look up what a state does on a symbol, and what a counter becomes: the parts of a step that all walks share.

Walks differ in what they keep (a stack, an interval of counters, a set of states). They all read the tables here.

Leaves out   walks for masks, which take tables by address: ../../host/kernels.py. The same in plain Python:
             ../../reference.py.
Trusts       a cell is there for every phase of a counter; a base and any class lie inside of `delta`, a base and any
             return set inside of `return`. Checked on opening.
Numbers      states, counters and symbol classes are int64, as what is returned.
"""

from __future__ import annotations

import numpy as np

from ...jit.memory import BARE, kernel
from ..ops import INCREMENT, KEEP, ZERO
from ..tables import MAX_COUNT


@kernel(**BARE)
def phase(breaks, number, counter):  # type: ignore[no-untyped-def]
    """How many cells behind its first the cell of an owner is, at a counter.

    Args:
        breaks: int32 [lists, B, 2], as the table of this name.
        number: of the owner's list, as `state_break`.
    """
    total = np.int64(0)
    if number != 0:
        for b in range(breaks.shape[1]):
            span = np.int64(breaks[number, b, 1])
            past = counter - breaks[number, b, 0] + span
            if past > 0:
                total += min(past, span)
    return total


@kernel(**BARE)
def phases_of(breaks, number):  # type: ignore[no-untyped-def]
    """How many cells an owner has: one for each phase of its counter."""
    total = np.int64(1)
    if number != 0:
        for b in range(breaks.shape[1]):
            total += breaks[number, b, 1]
    return total


@kernel(**BARE)
def op_in(delta, base, default, symbol_class):  # type: ignore[no-untyped-def]
    """The op on a symbol class in the row at a base, or else in its default row; 0 (dead) where neither has it.

    Args:
        base, default: as `cell_delta` and `cell_default` have them.
    """
    place = base + symbol_class
    if delta[place, 0] == base:
        return np.int64(delta[place, 1])
    place = default + symbol_class
    return np.int64(delta[place, 1]) if delta[place, 0] == default else np.int64(0)


@kernel(**BARE)
def return_in(return_, base, number):  # type: ignore[no-untyped-def]
    """The return on a return set in the row at a base (ops.py); 0, to the dead state, where the row has no entry."""
    place = base + number
    return np.int64(return_[place, 1]) if return_[place, 0] == base else np.int64(0)


@kernel(**BARE)
def act(action, counter):  # type: ignore[no-untyped-def]
    """A counter after an action; counters stop at MAX_COUNT."""
    if action == KEEP:
        return counter
    if action == INCREMENT:
        return min(counter + 1, np.int64(MAX_COUNT))
    return action - ZERO
