"""Which local states can do whatever a unit automaton can, so that their masks hold a whole slice.

Leaves out   the unit automata (slices.py), the walks (walk.py).
Arrays       limit int32 [states, unit states]: UNKNOWN, NO, or the counter value that units may fill up to
             (UNLIMITED: they are not counted, or without bound): a token of n units is alive in a simulating state
             at counter c if and only if c + n <= limit.  Machine: see walk.py.  pairs int32 [·, 3] is scratch; more
             pairs than it holds count as NO.
Source       simulation: Milner 1971.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .walk import find_op, row_at

UNLIMITED = 2**31 - 1
UNKNOWN, NO = -2, -1
_FOUND = -3  # in limit, while a simulation runs


@njit(cache=True)
def simulate(m, next_unit, boundary, limit, q0, u0, pairs):  # type: ignore[no-untyped-def]
    """limit[q0, u0], worked out if it is UNKNOWN, with that of every pair that it depends on."""
    if limit[q0, u0] != -2:
        return limit[q0, u0]
    found = 1
    pairs[0, 0] = q0
    pairs[0, 1] = u0
    pairs[0, 2] = -1  # from which pair it was found
    limit[q0, u0] = _FOUND
    bound = -1  # of every state between units; they must agree
    adds = -1  # whether units are counted; likewise, if there is a bound
    mixed = False  # no bound could be told from the number of units
    closed = False  # it depends on a pair that is known to be UNLIMITED, which is not looked into again
    at = 0
    fine = True
    alone = True  # it fails for what one pair does, whatever the others do
    while at < found and fine:
        q = pairs[at, 0]
        u = pairs[at, 1]
        at += 1
        first = m.threshold_offset[q]
        regions = m.threshold_offset[q + 1] - first + 1
        mine = UNLIMITED
        for region in range(regions):
            dead = 0
            alive = 0
            last = 256, 0  # what the byte before was to both
            for byte in range(256):
                v = next_unit[u, byte]
                if v == 255:
                    continue
                op = m.ops[m.state_row[q] + region, m.symbol_class[byte]]
                if last == (v, op):
                    continue
                last = v, op
                kind = op & 7
                if op == 0:
                    dead += 1
                    continue
                alive += 1
                if kind > 3 or limit[op >> 3, v] == -1:
                    fine = False
                    break
                if kind > 1 or (kind == 1 and not boundary[u]):
                    mixed = True
                elif boundary[u]:
                    if adds < 0:
                        adds = kind
                    elif adds != kind:
                        mixed = True
                if limit[op >> 3, v] == UNLIMITED:
                    closed = True
                elif limit[op >> 3, v] != _FOUND:
                    if found == pairs.shape[0]:
                        fine = False
                        alone = False
                        break
                    limit[op >> 3, v] = _FOUND
                    pairs[found, 0] = op >> 3
                    pairs[found, 1] = v
                    pairs[found, 2] = at - 1
                    found += 1
            if alive > 0 and (dead > 0 or mine != UNLIMITED):
                fine = False
            elif alive == 0 and mine == UNLIMITED:
                mine = m.threshold[first + region - 1] if region > 0 else -1
        if mine == -1 or (mine != UNLIMITED and not boundary[u]):
            fine = False
        if boundary[u]:
            if bound == -1:
                bound = mine
            elif bound != mine and fine:
                fine = False
                alone = False
            if fine and mixed and bound != UNLIMITED:
                fine = False
                alone = False
    if bound == -1:
        bound = UNLIMITED
    if fine and closed and bound != UNLIMITED:
        fine = False
        alone = False
    if fine and bound != UNLIMITED and (adds == 0 or mixed):
        fine = False
        alone = False
    if not fine:
        for k in range(found):
            limit[pairs[k, 0], pairs[k, 1]] = -2
        limit[q0, u0] = -1
        at = at - 1 if alone else -1
        while at >= 0:  # and so does every pair that leads to that one
            limit[pairs[at, 0], pairs[at, 1]] = -1
            at = pairs[at, 2]
        return -1
    for k in range(found):
        limit[pairs[k, 0], pairs[k, 1]] = bound
    return bound


@njit(cache=True)
def _simulates(m, next_unit, unit_alive, boundary, limit, q, u, pairs):  # type: ignore[no-untyped-def]
    """As `simulate`; most states differ from the unit automaton on its first byte already, which sets of bytes tell."""
    if limit[q, u] == UNKNOWN:
        for row in range(m.state_row[q], m.state_row[q + 1]):
            live, dead = False, False
            for word in range(4):
                live |= unit_alive[u, word] & m.alive[row, word] != 0
                dead |= unit_alive[u, word] & ~m.alive[row, word] != 0
            if live and dead:
                limit[q, u] = -1
                return -1
    return simulate(m, next_unit, boundary, limit, q, u, pairs)


@njit(cache=True)
def exclude(m, t, next_unit, boundary, limit, before, listed, units, most_units, bound, q0, c0, u0, st, out, pairs):  # type: ignore[no-untyped-def]
    """Tokens on which a state differs from the slice of u0, where most of its ways lead to states that simulate it.

    before int32 [nodes + 1]: slice tokens at nodes before each;  listed int32: those tokens in preorder;
    units int32: units of each of them;  most_units: of any of them;  bound: the counter value that units may fill up
    to: what goes beyond is cut from the slice, and differs if the state is alive after all. Returns how many tokens
    were written to ``out``, or -1 where the state pushes or pops on the way, or meets another bound; st[0, 3] receives
    the most units, or bytes, of a token of which no simulation tells: so near to the bound others may differ.
    """
    found = 0
    i = 0
    end = t.node_byte.size
    st[0, 0] = q0
    st[0, 1] = c0
    st[0, 2] = u0
    st[0, 4] = 0  # units read so far
    seen = 0
    while i < end:
        after = t.skip[i]
        if before[after] == before[i]:
            i = after
            continue
        depth = t.node_depth[i]
        q = st[depth - 1, 0]
        c = st[depth - 1, 1]
        u = next_unit[st[depth - 1, 2], t.node_byte[i]]
        op = find_op(m, q, c, t.node_byte[i])
        seen = max(seen, depth)
        if op == 0:
            for k in range(before[i], before[after]):
                seen = max(seen, units[k])
                if c0 + units[k] <= bound:
                    out[found] = listed[k]
                    found += 1
            i = after
            continue
        if op & 7 > 3:
            return -1
        q = op >> 3
        action = op & 7
        c = c if action == 0 else c + 1 if action == 1 else action - 2
        so_far = st[depth - 1, 4] + boundary[u]
        if boundary[u]:
            room = simulate(m, next_unit, boundary, limit, q, u, pairs)
            if room >= 0 and room != UNLIMITED and bound != UNLIMITED and (room != bound or c - c0 != so_far):
                return -1
            if room >= 0 and room == bound and (bound != UNLIMITED or room - c >= most_units):
                i = after
                continue
            if room >= 0 and room - c >= most_units:
                for k in range(before[i], before[after]):
                    seen = max(seen, units[k])
                    if c0 + units[k] > bound:
                        out[found] = listed[k]
                        found += 1
                i = after
                continue
        for k in range(before[i], before[i + 1]):
            seen = max(seen, units[k])
            if c0 + units[k] > bound:
                out[found] = listed[k]
                found += 1
        st[depth, 0] = q
        st[depth, 1] = c
        st[depth, 2] = u
        st[depth, 4] = so_far
        i += 1
    st[0, 3] = seen
    return found


@njit(cache=True)
def copies(m, loop, q, most):  # type: ignore[no-untyped-def]
    """How many units a state reads that copies a loop of one-byte units; -1 where it is no such chain.

    Every text of so many units is alive and none of one more; a chain of ``most`` units or more counts as UNLIMITED.

    Args:
        loop: uint8: the bytes that are units.
    """
    for n in range(most):
        if m.threshold_offset[q + 1] > m.threshold_offset[q]:
            return -1
        row = m.state_row[q]
        target = m.ops[row, m.symbol_class[loop[0]]]
        for byte in loop:
            if m.ops[row, m.symbol_class[byte]] != target:
                return -1
        if target == 0:
            return n
        if target & 7 != 0:
            return -1
        q = target >> 3
    return UNLIMITED


@njit(cache=True)
def choose_slices(m, next_unit, unit_alive, boundary, homes, probe, ahead, copied, most, poor, limit, jobs, pairs, out):  # type: ignore[no-untyped-def]
    """The slice that each row starts from.

    Args:
        unit_alive: uint64 [unit states, 4].
        homes: int32, unit states between units, the richest automaton first.
        probe: uint8: a state from which most of these bytes lead into a slice takes it with exceptions.
        ahead: bool [states]: the counter can meet a threshold: only what the counter bounds is of use.
        copied: the unit state of the automaton whose units may be copied (see `copies`);  most: units of its tokens.
        poor: from this unit state on slices are small: a larger one with exceptions is better.
        jobs: int32 [·, 2]: state and counter.
        out: int32 [·, 3], receives per job the unit state (-1: none), whether exceptions must be looked for, and the
            counter value that units may fill up to.
    """
    loop = np.array([byte for byte in range(256) if next_unit[copied, byte] == copied], np.uint8)
    ops = np.zeros(probe.size, np.int32)
    known = -1  # the op row of the job before
    for j in range(jobs.shape[0]):
        q = jobs[j, 0]
        row = row_at(m, q, jobs[j, 1])
        if row == known:
            out[j] = out[j - 1]
            continue
        known = row
        out[j, 0] = -1
        out[j, 1] = 0
        out[j, 2] = UNLIMITED
        for u in range(limit.shape[1]):
            if limit[q, u] >= 0:
                out[j, 0] = u
                break
        stay = 0
        for k in range(probe.size):
            ops[k] = m.ops[row, m.symbol_class[probe[k]]]
            if ops[k] & 7 > 3:
                ops[k] = 0
            stay += ops[k] != 0
        if out[j, 0] < 0:
            if 2 * stay > probe.size:
                for u in homes:
                    if _simulates(m, next_unit, unit_alive, boundary, limit, q, u, pairs) >= 0:
                        out[j, 0] = u
                        break
        best = limit.shape[1]
        if out[j, 0] >= 0:
            best = out[j, 0]
            out[j, 2] = limit[q, best]
            if best < poor:
                continue
        elif not ahead[q]:
            first = m.alive[m.state_row[q]]
            any_ = False
            for word in range(4):
                any_ |= first[word] & unit_alive[copied, word] != 0
            units = copies(m, loop, q, most) if any_ else -1
            if units > 0:
                out[j, 0] = copied
                out[j, 2] = units
                continue
        if 2 * stay <= probe.size:
            continue
        for u in homes:
            if u >= best:
                break
            inside = 0
            bound = -1  # of those states, which must agree
            for op in ops:
                if op != 0:
                    room = _simulates(m, next_unit, unit_alive, boundary, limit, op >> 3, u, pairs)
                    if bound == -1:
                        bound = room
                    if room >= 0 and room == bound and (room == UNLIMITED or op & 7 == 1):
                        inside += 1
            met = bound == UNLIMITED and not ahead[q]  # the bound is met here too, or what is cut would not be cut
            for k in range(m.threshold_offset[q], m.threshold_offset[q + 1]):
                met = met or m.threshold[k] == bound
            if met and 2 * inside > probe.size:
                out[j, 0] = u
                out[j, 1] = 1
                out[j, 2] = bound
                break
