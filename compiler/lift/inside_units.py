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
from toolc.runtime.jit.memory import copy_row, grown, kernel

from .children import count_bits
from .slices import DEAD
from .walk import row_at

_MOST_PAIRS = 256  # of a local state and a unit state that are looked at for one state; a string has about 25
_UNKNOWN, _FAILED = -1, -2
SOME, NONE, BEHIND = range(3)  # of the tokens outside of a slice


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
def tokens_outside(m, next_unit, unit_alive, boundary, deaths, known, jobs, slice_, pairs):  # type: ignore[no-untyped-def]
    """What states allow of the tokens outside of the slices that they start from: int32 [jobs, 4].

    Of each job: NONE; or BEHIND where all of these die in the unit automaton on one byte between units, then that byte,
    the only local state between units, and its op on the byte; or else SOME. Counters do not matter to either.

    Args:
        m: `Machine` (walk.py).
        unit_alive: uint64 [unit states, 4];  deaths: see `death_bytes`;  known: bool [unit states], of which they are.
        jobs: int32 [·, 2]: state and counter;  slice_: int32 [·]: as `choose_slices` found them.
        pairs: int32 [·, 2 or more], scratch.
    """
    out = np.zeros((jobs.shape[0], 4), np.int32)
    number = np.full(m.state_row.size - 1, _UNKNOWN, np.int32)  # of a state between units: where it is in ``beside``
    unit = np.zeros(m.state_row.size - 1, np.int32)  # … with that unit state
    beside = np.zeros((16, 4), np.uint64)  # bytes on which states between units live and the unit automaton does not
    alone = np.zeros(16, np.int32)  # the only state between units; less than 0: several, or not all count
    count = 0
    here = np.zeros(4, np.uint64)
    for j in range(jobs.shape[0]):
        if slice_[j] < 0 or not known[slice_[j]]:
            continue
        if j > 0 and jobs[j, 0] == jobs[j - 1, 0] and slice_[j] == slice_[j - 1]:
            copy_row(out, j, out[j - 1])
            continue
        pairs[0, 0], pairs[0, 1] = jobs[j, 0], slice_[j]
        at, found, fine, only, counts = 0, 1, True, np.int64(_UNKNOWN), True
        here[:] = 0
        while at < found and fine:
            q, u = pairs[at, 0], np.int64(pairs[at, 1])
            at += 1
            if boundary[u]:
                only = np.int64(_FAILED) if only != _UNKNOWN and only != q else np.int64(q)
            if boundary[u] and unit[q] == u and number[q] != _UNKNOWN:
                fine = number[q] != _FAILED
                if fine:
                    if alone[number[q]] != only:
                        only = np.int64(_FAILED)
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
                        if op & KIND_MASK != boundary[u]:
                            counts = False  # units, each once
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
            beside, alone = grown(beside), grown(alone)
        for k in range(found):  # what can be reached from each of them is no more than what was looked at here
            q = pairs[k, 0]
            if boundary[pairs[k, 1]] and number[q] == _UNKNOWN:
                number[q] = count if fine else _FAILED
                unit[q] = pairs[k, 1]
        if not fine:
            continue
        if only >= 0 and m.state_row[only + 1] > m.state_row[only] + 1 and not counts:
            only = np.int64(_FAILED)
        alone[count] = only
        died, bits = np.int64(-1), np.int64(0)
        for word in range(4):
            beside[count, word] = here[word]
            dies = here[word] & deaths[slice_[j], word]
            bits += count_bits(dies)
            if dies != 0:
                died = 64 * word + count_bits((dies & (~dies + np.uint64(1))) - np.uint64(1))
        count += 1
        if bits == 0:
            out[j, 0] = NONE
        elif bits == 1 and only >= 0:
            op, steady = np.int64(0), True
            for row in range(m.state_row[only], m.state_row[only + 1]):
                other = np.int64(m.ops[row, m.symbol_class[died]])
                steady &= other == 0 or op == 0 or other == op
                op = max(op, other)
            if steady and op & KIND_MASK < PUSH:
                out[j, 0], out[j, 1], out[j, 2], out[j, 3] = BEHIND, died, only, op
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
