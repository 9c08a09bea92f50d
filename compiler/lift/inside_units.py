"""Prove of states inside a unit of a slice, as between the bytes of a character, that they allow just the slice.

Every string has some twenty of them, and what lies outside of their slices is most of the vocabulary. A token outside
of the slice of a unit state dies in the unit automaton at some byte. It is dead in a local state that simulates the
unit state too, if at no state within a unit, whatever the counter is, that lives on more bytes, and between units it
does not live on that byte. Which bytes these are, of all tokens, is a matter of the vocabulary. Of the other states
within a unit nearly all live on no byte at first but those of the unit state: tokens with another first byte need no
walk.

Leaves out   which states simulate which (slice_simulation.py), all other states: their tokens are walked (walk.py).
Arrays       unit states as in slices.py; sets of bytes are uint64 [4], as in children.py.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import grown, kernel

from .children import count_bits
from .slices import DEAD
from .walk import row_at

_MOST_PAIRS = 256  # of a local state and a unit state that are looked at for one state; a string has about 25
_UNKNOWN, _FAILED = -1, -2


@kernel()
def death_bytes(node_byte, node_depth, node_skip, next_unit, boundary, chosen, st):  # type: ignore[no-untyped-def]
    """Bytes on which tokens that begin in a unit state die between units: uint64 [unit states, 4].

    Args:
        node_byte, node_depth, node_skip: the trie;  chosen: bool [unit states]: the others get none;  st: int32
            [depth, ·], scratch.
    """
    found = np.zeros((next_unit.shape[0], 4), np.uint64)
    for u in range(next_unit.shape[0]):
        if not chosen[u]:
            continue
        st[0, 0] = u
        i = 0
        while i < node_byte.size:
            above, byte = st[node_depth[i] - 1, 0], node_byte[i]
            v = next_unit[above, byte]
            if v == DEAD:
                if boundary[above]:
                    found[u, byte >> 6] |= np.uint64(1) << np.uint64(byte & 63)
                i = node_skip[i]
                continue
            st[node_depth[i], 0] = v
            i += 1
    return found


@kernel()
def allow_just_the_slice(m, next_unit, unit_alive, boundary, deaths, known, jobs, slice_, pairs):  # type: ignore[no-untyped-def]
    """Which states are proved to allow no token outside of the slices that they start from, whatever their counters
    are: bool [jobs].

    Args:
        m: `Machine` (walk.py).
        unit_alive: uint64 [unit states, 4];  deaths: see `death_bytes`;  known: bool [unit states], of which they are.
        jobs: int32 [·, 2]: state and counter;  slice_: int32 [·]: as `choose_slices` found them.
        pairs: int32 [·, 2 or more], scratch.
    """
    out = np.zeros(jobs.shape[0], np.bool_)
    number = np.full(m.state_row.size - 1, _UNKNOWN, np.int32)  # of a state between units: where it is in ``beside``
    unit = np.zeros(m.state_row.size - 1, np.int32)  # … with that unit state
    beside = np.zeros((16, 4), np.uint64)  # bytes on which states between units live and the unit automaton does not
    count = 0
    here = np.zeros(4, np.uint64)
    for j in range(jobs.shape[0]):
        if slice_[j] < 0 or not known[slice_[j]]:
            continue
        if j > 0 and jobs[j, 0] == jobs[j - 1, 0] and slice_[j] == slice_[j - 1]:
            out[j] = out[j - 1]
            continue
        pairs[0, 0], pairs[0, 1] = jobs[j, 0], slice_[j]
        at, found, fine = 0, 1, True
        here[:] = 0
        while at < found and fine:
            q, u = pairs[at, 0], np.int64(pairs[at, 1])
            at += 1
            if boundary[u] and unit[q] == u and number[q] != _UNKNOWN:
                fine = number[q] != _FAILED
                if fine:
                    for word in range(4):
                        here[word] |= beside[number[q], word]
                continue
            for row in range(m.state_row[q], m.state_row[q + 1]):  # whatever its counter is
                for word in range(4):
                    more = m.alive[row, word] & ~unit_alive[u, word]
                    here[word] |= more
                    if more != 0 and not boundary[u]:
                        fine = False
                last_v, last_op = np.int64(DEAD), np.int64(0)  # what the byte before was to both
                for word in range(4):
                    bytes_ = unit_alive[u, word] & m.alive[row, word]
                    while bytes_ != 0 and fine:
                        first = bytes_ & (~bytes_ + np.uint64(1))
                        bytes_ ^= first
                        byte = 64 * word + count_bits(first - np.uint64(1))
                        v, op = np.int64(next_unit[u, byte]), np.int64(m.ops[row, m.symbol_class[byte]])
                        if v == last_v and op == last_op:
                            continue
                        last_v, last_op = v, op
                        if op & KIND_MASK >= PUSH or m.narrow_state[op >> KIND_BITS]:
                            fine = False
                            continue
                        k = 0
                        while k < found and (pairs[k, 0] != op >> KIND_BITS or pairs[k, 1] != v):
                            k += 1
                        if k == found == _MOST_PAIRS:
                            fine = False
                        elif k == found:
                            pairs[found, 0], pairs[found, 1] = op >> KIND_BITS, v
                            found += 1
        if count == beside.shape[0]:
            beside = grown(beside)
        for k in range(found):  # what can be reached from each of them is no more than what was looked at here
            q = pairs[k, 0]
            if boundary[pairs[k, 1]] and number[q] == _UNKNOWN:
                number[q] = count if fine else _FAILED
                unit[q] = pairs[k, 1]
        if not fine:
            continue
        out[j] = True
        for word in range(4):
            beside[count, word] = here[word]
            out[j] &= here[word] & deaths[slice_[j], word] == 0
        count += 1
    return out


@kernel()
def leave_out_strays(m, unit_alive, boundary, jobs, trie, strays_too):  # type: ignore[no-untyped-def]
    """Where a state begins within a unit, with no byte but those of the unit state, add ``strays_too`` to the number
    of what is walked.

    Args:
        m, unit_alive, boundary, jobs: see `allow_just_the_slice`.
        trie: int32 [jobs]: what is walked, see ``Words.rest``; changed.
    """
    for j in range(jobs.shape[0]):
        s = trie[j]
        if s < 0 or s >= boundary.size or boundary[s]:
            continue
        row = row_at(m, np.int64(jobs[j, 0]), np.int64(jobs[j, 1]))
        fine = True
        for word in range(4):
            fine &= m.alive[row, word] & ~unit_alive[s, word] == 0
        if fine:
            trie[j] += strays_too
