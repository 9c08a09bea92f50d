"""Find local states that can do whatever a unit automaton can, so that their masks hold a whole slice.

Leaves out   the unit automata (slices.py), the walks (walk.py).
Arrays       limit int32 [states, unit states]: UNKNOWN, NO, or the counter value that units may fill up to
             (UNLIMITED: they are not counted, or without bound): a token of n units is alive in a simulating state
             at counter c if and only if c + n <= limit.  Machine: see walk.py.  pairs int32 [·, 4] is scratch, see
             `new_pairs`.  `Units` below.
Source       simulation: Milner 1971.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, PUSH
from toolc.runtime.jit.memory import BARE, copy_row, kernel, largest_in

from .slices import UnitAutomata
from .walk import row_at

UNLIMITED = 2**31 - 1
UNKNOWN, NO = -2, -1
_FOUND = -3  # in limit, while a simulation runs
_UNTRIED = -2  # in place of a number of pairs
_MOST = 1 << 12  # pairs that are looked at together: with more, those that were not looked into are settled before
_LEVELS = 32  # of such pairs before others; deeper, and where it comes to more often, a pair is taken for NO


class Units(NamedTuple):
    """The unit automata (slices.py) beside an automaton.

    next_unit uint8 [unit states, 256];  boundary bool [unit states];  alive uint64 [unit states, 4];
    byte uint8 [·]: of the bytes that a unit state lives on, one of each set that it and the automaton treat alike;
    first int32 [unit states + 1]: where those of each unit state begin.
    """

    next_unit: np.ndarray
    boundary: np.ndarray
    alive: np.ndarray
    byte: np.ndarray
    first: np.ndarray


def units_beside(units: UnitAutomata, symbol_class: np.ndarray) -> Units:
    """The unit automata beside an automaton with these classes of symbols."""
    return Units(units.next_unit, units.boundary, units.alive, *_alike(units.next_unit, symbol_class))


@kernel()
def _alike(next_unit, symbol_class):  # type: ignore[no-untyped-def]
    """``byte`` and ``first`` of `Units`."""
    byte = np.empty(next_unit.size, np.uint8)
    first = np.zeros(next_unit.shape[0] + 1, np.int32)
    classes = largest_in(symbol_class) + 1
    known = np.full(classes, -1, np.int64)  # the last of a class, in ``byte``
    before = np.empty(next_unit.size, np.int64)  # the one before it
    count = 0
    for u in range(next_unit.shape[0]):
        for b in range(256):
            if next_unit[u, b] == 255:
                continue
            k = known[symbol_class[b]]
            while k >= first[u] and next_unit[u, byte[k]] != next_unit[u, b]:
                k = before[k]
            if k < first[u]:
                byte[count] = b
                before[count] = known[symbol_class[b]]
                known[symbol_class[b]] = count
                count += 1
        first[u + 1] = count
    return byte[:count].copy(), first


def new_pairs() -> np.ndarray:
    """int32 [·, 4], scratch of `simulate`: of every level the pairs (state, unit state, found from which pair), then
    a row for each level (the pair that it settles, the last and the first of those to be settled before that)."""
    return np.zeros((_LEVELS * (_MOST + 1), 4), np.int32)


@kernel(**BARE)
def simulate(m, units, limit, q0, u0, pairs):  # type: ignore[no-untyped-def]
    """limit[q0, u0], worked out if it is UNKNOWN, with that of every pair that it depends on.

    A call with so many arrays takes twenty times as long as a look at the limit: loops look first.
    """
    if limit[q0, u0] != UNKNOWN:
        return limit[q0, u0]
    levels = _LEVELS * _MOST  # where the rows of levels begin
    left = _LEVELS  # how often it may come to more levels
    level = 0
    pairs[levels, 0], pairs[levels, 1], pairs[levels, 2], pairs[levels, 3] = q0, u0, _UNTRIED, 0
    while level >= 0:
        about = levels + level
        q, u = np.int64(pairs[about, 0]), np.int64(pairs[about, 1])
        last = pairs[about, 2]
        if last >= pairs[about, 3] and left > 0:
            pairs[about, 2] = last - 1
            if limit[pairs[last, 0], pairs[last, 1]] == UNKNOWN:
                level += 1
                pairs[about + 1, 0], pairs[about + 1, 1] = pairs[last, 0], pairs[last, 1]
                pairs[about + 1, 2], pairs[about + 1, 3] = _UNTRIED, 0
            continue
        first = _settle(m, units, limit, q, u, pairs, level * _MOST)
        if first >= 0 and last == _UNTRIED and left > 0 and level + 1 < _LEVELS:
            left -= 1
            pairs[about, 2] = (level + 1) * _MOST - 1
            pairs[about, 3] = first
            continue
        if first >= 0:
            limit[q, u] = NO
        level -= 1
    return limit[q0, u0]


@kernel(**BARE)
def _settle(m, units, limit, q0, u0, pairs, begin):  # type: ignore[no-untyped-def]
    """Work limit[q0, u0] out if there are no more pairs than ``pairs`` has from ``begin`` on; returns -1, or from where
    on those in it were not looked into."""
    found = begin + 1
    pairs[begin, 0] = q0
    pairs[begin, 1] = u0
    pairs[begin, 2] = -1  # from which pair it was found
    limit[q0, u0] = _FOUND
    bound = -1  # of every state between units; they must agree
    adds = -1  # whether units are counted; likewise, if there is a bound
    mixed = False  # no bound could be told from the number of units
    closed = False  # it depends on a pair that is known to be UNLIMITED, which is not looked into again
    at = begin
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
            live, dead = False, False
            for word in range(4):
                mine_too = m.alive[m.state_row[q] + region, word]
                live |= units.alive[u, word] & mine_too != 0
                dead |= units.alive[u, word] & ~mine_too != 0
            if live and dead:
                fine = False  # as of most states
                break
            last = 256, 0  # what the byte before was to both
            for place in range(units.first[u], units.first[u + 1]):
                v = units.next_unit[u, units.byte[place]]
                op = m.ops[m.state_row[q] + region, m.symbol_class[units.byte[place]]]
                if last == (v, op):
                    continue
                last = v, op
                kind = op & KIND_MASK
                if op == 0:
                    break
                if kind >= PUSH or limit[op >> KIND_BITS, v] == -1:
                    fine = False
                    break
                if kind > 1 or (kind == 1 and not units.boundary[u]):
                    mixed = True
                elif units.boundary[u]:
                    if adds < 0:
                        adds = kind
                    elif adds != kind:
                        mixed = True
                if limit[op >> KIND_BITS, v] == UNLIMITED:
                    closed = True
                elif limit[op >> KIND_BITS, v] != _FOUND:
                    if found == begin + _MOST:
                        for k in range(begin, found):
                            limit[pairs[k, 0], pairs[k, 1]] = UNKNOWN
                        return at - 1
                    limit[op >> KIND_BITS, v] = _FOUND
                    pairs[found, 0] = op >> KIND_BITS
                    pairs[found, 1] = v
                    pairs[found, 2] = at - 1
                    found += 1
            if live and mine != UNLIMITED:
                fine = False
            elif not live and mine == UNLIMITED:
                mine = m.threshold[first + region - 1] if region > 0 else -1
        if mine == -1 or (mine != UNLIMITED and not units.boundary[u]):
            fine = False
        if units.boundary[u]:
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
        for k in range(begin, found):
            limit[pairs[k, 0], pairs[k, 1]] = UNKNOWN
        limit[q0, u0] = NO
        at = at - 1 if alone else -1
        while at >= 0:  # and so does every pair that leads to that one
            limit[pairs[at, 0], pairs[at, 1]] = NO
            at = pairs[at, 2]
        return -1
    for k in range(begin, found):
        limit[pairs[k, 0], pairs[k, 1]] = bound
    return -1


@kernel()
def exclude(m, t, units, limit, before, listed, units_of, most_units, bound, q0, c0, u0, st, out, pairs):  # type: ignore[no-untyped-def]
    """Tokens on which a state differs from the slice of u0, where most of its ways lead to states that simulate it.

    before int32 [nodes + 1]: slice tokens at nodes before each;  listed int32: those tokens in preorder;
    units_of int32: units of each of them;  most_units: of any of them;  bound: the counter value that units may fill up
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
    st[0, 5] = row_at(m, np.int64(q0), np.int64(c0))
    seen = 0
    while i < end:
        after = t.skip[i]
        if before[after] == before[i]:
            i = after
            continue
        depth = t.node_depth[i]
        c = st[depth - 1, 1]
        u = units.next_unit[st[depth - 1, 2], t.node_byte[i]]
        op = m.ops[st[depth - 1, 5], m.symbol_class[t.node_byte[i]]]
        seen = max(seen, depth)
        if op == 0:
            for k in range(before[i], before[after]):
                seen = max(seen, units_of[k])
                if c0 + units_of[k] <= bound:
                    out[found] = listed[k]
                    found += 1
            i = after
            continue
        if op & KIND_MASK >= PUSH:
            return -1
        q = op >> KIND_BITS
        action = op & KIND_MASK
        c = c if action == 0 else c + 1 if action == 1 else action - 2
        so_far = st[depth - 1, 4] + units.boundary[u]
        if units.boundary[u]:
            room = limit[q, u]
            if room == UNKNOWN:
                room = simulate(m, units, limit, np.int64(q), np.int64(u), pairs)
            if room >= 0 and room != UNLIMITED and bound != UNLIMITED and (room != bound or c - c0 != so_far):
                return -1
            if room >= 0 and room == bound and (bound != UNLIMITED or room - c >= most_units):
                i = after
                continue
            if room >= 0 and room - c >= most_units:
                for k in range(before[i], before[after]):
                    seen = max(seen, units_of[k])
                    if c0 + units_of[k] > bound:
                        out[found] = listed[k]
                        found += 1
                i = after
                continue
        for k in range(before[i], before[i + 1]):
            seen = max(seen, units_of[k])
            if c0 + units_of[k] > bound:
                out[found] = listed[k]
                found += 1
        st[depth, 0] = q
        st[depth, 1] = c
        st[depth, 2] = u
        st[depth, 4] = so_far
        if after > i + 1:
            st[depth, 5] = row_at(m, np.int64(q), np.int64(c))
        i += 1
    st[0, 3] = seen
    return found


@kernel()
def copies(m, units, u, q, most):  # type: ignore[no-untyped-def]
    """How many units a state reads that copies the loop of a unit state, of one byte each; -1: it is no such chain.

    Every text of so many units is alive and none of one more; a chain of ``most`` units or more counts as UNLIMITED.
    """
    for n in range(most):
        if m.threshold_offset[q + 1] > m.threshold_offset[q]:
            return -1
        row = m.state_row[q]
        target = m.ops[row, m.symbol_class[units.byte[units.first[u]]]]
        for place in range(units.first[u] + 1, units.first[u + 1]):
            if m.ops[row, m.symbol_class[units.byte[place]]] != target:
                return -1
        if target == 0:
            return n
        if target & KIND_MASK != 0:
            return -1
        q = target >> KIND_BITS
    return UNLIMITED


@kernel()
def choose_slices(m, units, homes, probe, ahead, copied, most, poor, limit, jobs, pairs, out):  # type: ignore[no-untyped-def]
    """The slice that each row starts from.

    Args:
        homes: int32, unit states between units, the richest automaton first.
        probe: uint8: a state from which most of these bytes lead into a slice takes it with exceptions.
        ahead: bool [states]: the counter can meet a threshold: only what the counter bounds is of use.
        copied: int32, the unit states of the automata whose units may be copied (see `copies`);  most: units of the
            tokens of each.
        poor: from this unit state on slices are small: a larger one with exceptions is better.
        jobs: int32 [·, 2]: state and counter.
        out: int32 [·, 3], receives per job the unit state (-1: none), whether exceptions must be looked for, and the
            counter value that units may fill up to.
    """
    ops = np.zeros(probe.size, np.int32)
    known = -1  # the op row of the job before
    for j in range(jobs.shape[0]):
        q = jobs[j, 0]
        row = row_at(m, np.int64(q), np.int64(jobs[j, 1]))
        if row == known:
            copy_row(out, j, out[j - 1])
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
            if ops[k] & KIND_MASK >= PUSH:
                ops[k] = 0
            stay += ops[k] != 0
        if out[j, 0] < 0:
            if 2 * stay > probe.size:
                for u in homes:
                    room = limit[q, u]
                    if room == UNKNOWN:
                        room = simulate(m, units, limit, np.int64(q), np.int64(u), pairs)
                    if room >= 0:
                        out[j, 0] = u
                        break
        best = limit.shape[1]
        if out[j, 0] >= 0:
            best = out[j, 0]
            out[j, 2] = limit[q, best]
            if best < poor:
                continue
        elif not ahead[q]:
            count = np.int64(-1)
            for k in range(copied.size):
                any_ = False
                for word in range(4):
                    any_ |= m.alive[m.state_row[q], word] & units.alive[copied[k], word] != 0
                if any_:
                    count = np.int64(copies(m, units, copied[k], q, most[k]))
                    if count > 0:
                        out[j, 0] = copied[k]
                        out[j, 2] = count
                        break
            if count > 0:
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
                    room = limit[op >> KIND_BITS, u]
                    if room == UNKNOWN:
                        room = simulate(m, units, limit, np.int64(op >> KIND_BITS), np.int64(u), pairs)
                    if bound == -1:
                        bound = room
                    if room >= 0 and room == bound and (room == UNLIMITED or op & KIND_MASK == 1):
                        inside += 1
            met = bound == UNLIMITED and not ahead[q]  # the bound is met here too, or what is cut would not be cut
            for k in range(m.threshold_offset[q], m.threshold_offset[q + 1]):
                met = met or m.threshold[k] == bound
            if met and 2 * inside > probe.size:
                out[j, 0] = u
                out[j, 1] = 1
                out[j, 2] = bound
                break
