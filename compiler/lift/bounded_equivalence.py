"""Find states that are equivalent on texts of bounded length.

In a repetition like ``[a-z]{1,512}`` each position is a state. Two positions accept the same texts, except those long
enough to leave the repetition from one of them. Most tokens are shorter. So `walk_states` walks what follows a first
byte once for all positions from which no token gets that far.

Leaves out   the walks (walk.py).
Invariants   two states are equivalent on the empty text if both decide against a tool, or neither does. They are
             equivalent on texts of n bytes if they are so on n - 1 and have the same thresholds, and if for each class
             of symbols, in each range of the counter, they have the same op, or ops of one kind, below PUSH, that lead
             to states equivalent on n - 1 bytes.
Source       E. F. Moore's refinement of partitions (Gedanken-experiments on sequential machines, 1956), one round for
             each byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import BARE, kernel

from ..budget import Budget

_FEW = 64  # with fewer compared states the table costs more than it saves
_MOST = 1 << 22  # entries of the table, lengths times states


def no_equivalences() -> np.ndarray:
    """An empty table: every state stands for itself."""
    return np.zeros((0, 0), np.int32)


@kernel(inline="always", **BARE)
def representative_op(representative, op, bytes_after):  # type: ignore[no-untyped-def]
    """The op with its target replaced by the first state that is equivalent to it on the bytes after the op's own.

    PUSH and POP stay as they are.

    Args:
        representative: see `equivalent_states`;  bytes_after: the most bytes that follow.
    """
    if op & KIND_MASK >= PUSH or representative.shape[0] == 0:
        return op
    row = min(bytes_after, representative.shape[0] - 1)
    return op & KIND_MASK | np.int64(representative[row, op >> KIND_BITS]) << KIND_BITS


@kernel(**BARE)
def _hash(m, shorter, q):  # type: ignore[no-untyped-def]
    """A hash that is equal for states that `_same` calls equal."""
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
    """Whether two states are equivalent on texts of one byte more than those of ``shorter``, see `_one_byte_longer`."""
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
            if a == 0 or b == 0 or a & KIND_MASK != b & KIND_MASK or a & KIND_MASK >= PUSH:
                return False  # 0 is dead, whatever its target is like
            if shorter[a >> KIND_BITS] != shorter[b >> KIND_BITS]:
                return False
    return True


@kernel()
def _one_byte_longer(m, shorter):  # type: ignore[no-untyped-def]
    """The first state to which each is equivalent on texts of one byte more, int32 [states].

    Args:
        shorter: int32 [states]: the same for texts of one byte less.
    """
    states = shorter.size
    class_size = np.zeros(states, np.int32)
    for q in range(states):
        class_size[shorter[q]] += 1
    size = 16
    while size < 2 * states:
        size *= 2
    slots = np.full(size, -1, np.int32)  # a hash table of the first states
    out = np.empty(states, np.int32)
    for q in range(states):
        out[q] = q
        if class_size[shorter[q]] > 1:
            slot = np.int64(_hash(m, shorter, q) & np.uint64(size - 1))
            while slots[slot] >= 0 and not _same(m, shorter, slots[slot], q):
                slot = (slot + 1) & (size - 1)
            if slots[slot] < 0:
                slots[slot] = q
            out[q] = slots[slot]
    return out


def equivalent_states(m: Any, compared: np.ndarray, longest: int, budget: Budget) -> np.ndarray:
    """The first state to which each is equivalent, by the length of the texts: int32 [lengths, states].

    The last row is for all longer texts, too: nothing changes any more there, or each state stands for itself.

    Args:
        m: `Machine` (walk.py).
        compared: bool [states]: states that may be equivalent to others. Those that count are worth it: they are walked
            at many counter values.
        longest: bytes of the texts.
    """
    states = compared.size
    if compared.sum() < _FEW or 2 * states > _MOST:
        return no_equivalences()
    identity = np.arange(states, dtype=np.int32)
    rows = [identity.copy()]
    for narrow in (False, True):
        alike = np.flatnonzero(compared & (m.narrow_state == narrow))
        rows[0][alike] = alike[:1]
    for _ in range(1, min(longest + 1, _MOST // states - 1)):
        budget.check("")
        rows.append(_one_byte_longer(m, rows[-1]))
        if np.array_equal(rows[-1], rows[-2]):
            return np.stack(rows)
    return np.stack([*rows, identity])
