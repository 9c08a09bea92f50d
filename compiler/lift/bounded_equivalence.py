"""Find states that are equivalent on texts of bounded length.

In a repetition like ``[a-z]{1,512}`` each position is a state. Two positions differ only on texts that reach the end of
the repetition from one of them and not from the other. Tokens are short, so most tokens do the same from both, and what
a walk finds below a first byte is shared by positions that are far enough from the end.

Leaves out   the walks (walk.py).
Invariants   equivalent states have the same thresholds. On each class of symbols, in each range of the counter, both
             have the same op, or both change the counter alike and go on to states that are equivalent on texts of one
             byte less.
Source       E. F. Moore's refinement of partitions (Gedanken-experiments on sequential machines, 1956), one round for
             each byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import BARE, kernel

from ..budget import Budget

_FEW = 64  # states of which the walks are soon done
_MOST = 1 << 22  # entries of the table


def no_equivalences() -> np.ndarray:
    """The table where no states are compared."""
    return np.zeros((0, 0), np.int32)


@kernel(inline="always", **BARE)
def alike(equivalent, op, length):  # type: ignore[no-untyped-def]
    """The op to which this one is equivalent on its own byte and at most ``length`` more.

    Args:
        equivalent: see `equivalent_states`.
    """
    if op & KIND_MASK >= PUSH or equivalent.shape[0] == 0:
        return op
    row = min(length, equivalent.shape[0] - 1)
    return op & KIND_MASK | np.int64(equivalent[row, op >> KIND_BITS]) << KIND_BITS


@kernel(**BARE)
def _hash(m, shorter, q):  # type: ignore[no-untyped-def]
    """Of what `_same` compares."""
    prime = np.uint64(0xFF51AFD7ED558CCD)
    h = np.uint64(shorter[q])
    for row in range(m.state_row[q], m.state_row[q + 1]):
        for op in m.ops[row]:
            x = np.uint64(op)
            if op & KIND_MASK < PUSH:
                x = np.uint64(op & KIND_MASK) | np.uint64(shorter[op >> KIND_BITS]) << np.uint64(KIND_BITS)
            h = (h ^ x) * prime
            h ^= h >> np.uint64(29)
    return h ^ h >> np.uint64(32)


@kernel(**BARE)
def _same(m, shorter, p, q):  # type: ignore[no-untyped-def]
    """Whether two states are equivalent on texts of one byte more than those of ``shorter``, int32 [states]."""
    regions = m.state_row[p + 1] - m.state_row[p]
    if shorter[p] != shorter[q] or regions != m.state_row[q + 1] - m.state_row[q]:
        return False
    for k in range(m.threshold_offset[p + 1] - m.threshold_offset[p]):
        if m.threshold[m.threshold_offset[p] + k] != m.threshold[m.threshold_offset[q] + k]:
            return False
    for k in range(regions):
        for column in range(m.ops.shape[1]):
            a, b = m.ops[m.state_row[p] + k, column], m.ops[m.state_row[q] + k, column]
            if a == b:
                continue
            if a & KIND_MASK != b & KIND_MASK or a & KIND_MASK >= PUSH:
                return False
            if shorter[a >> KIND_BITS] != shorter[b >> KIND_BITS]:
                return False
    return True


@kernel()
def _longer(m, shorter):  # type: ignore[no-untyped-def]
    """The first state to which each is equivalent on texts of one byte more, int32 [states]."""
    states = shorter.size
    members = np.zeros(states, np.int32)
    for q in range(states):
        members[shorter[q]] += 1
    size = 16
    while size < 2 * states:
        size *= 2
    slots = np.full(size, -1, np.int32)
    out = np.empty(states, np.int32)
    for q in range(states):
        out[q] = q
        if members[shorter[q]] > 1:
            slot = np.int64(_hash(m, shorter, q) & np.uint64(size - 1))
            while slots[slot] >= 0 and not _same(m, shorter, slots[slot], q):
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                slots[slot] = q
            out[q] = slots[slot]
    return out


def equivalent_states(m: Any, compared: np.ndarray, longest: int, budget: Budget) -> np.ndarray:
    """The first state to which each is equivalent, by the length of the texts: int32 [lengths, states].

    The last row is for all texts that are longer.

    Args:
        m: `Machine` (walk.py);  compared: bool [states]: each of the others is equivalent to itself alone.
        longest: bytes of the texts.
    """
    states = compared.size
    if compared.sum() < _FEW or 2 * states > _MOST:
        return no_equivalences()
    each = np.arange(states, dtype=np.int32)
    found = [each.copy()]  # on the empty text: which of them decide against a tool
    for narrow in (False, True):
        those = np.flatnonzero(compared & (m.narrow_state == narrow))
        found[0][those] = those[:1]
    for _ in range(1, min(longest + 1, _MOST // states)):
        budget.check("")
        found.append(_longer(m, found[-1]))
        if np.array_equal(found[-1], found[-2]):
            return np.stack(found)
    return np.stack([*found, each])
