"""Find states that read texts of some bytes alike: tokens of these bytes are walked for one of them.

Ten properties with one pattern have ten copies of its states, which differ in nothing but what comes after the closing
quote. Most tokens have no quote: these are dead or alive in all copies.

Leaves out   the walks (walk.py), the tokens (vocab_tries.py).
Invariants   nothing is pushed or popped, no counter is looked at and nothing decided on the way: a token of these
             bytes is a matter of dead or alive.
Source       equivalence of two automata by joining sets: Hopcroft and Karp 1971.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.ops import KIND_BITS, KIND_MASK
from toolc.runtime.jit.memory import kernel

from ..terminals.workspace import PUSH
from .children import count_bits

_FEWEST = 24  # a walk from a state that lives on fewer bytes is short
_SWEEPS = 3  # over the states, to hash what they read
_MOST_SWEEPS = 16  # until it is known which states are plain; where that is not enough, none is taken to be
_LOOKS = 8  # at pairs of states, for each state; after these, no more sets are joined


@kernel()
def _runs(m, bytes_):  # type: ignore[no-untyped-def]
    """Runs of some bytes on which a state has one op, not dead: where those of each begin int64 [states + 1], and int32
    [·, 3]: the first byte, the one after the last, the op."""
    states = m.state_row.size - 1
    begin = np.zeros(states + 1, np.int64)
    most = 0
    for q in range(states):
        for word in range(4):
            most += count_bits(m.alive[m.state_row[q], word] & bytes_[0, word])
    run = np.empty((most, 3), np.int32)
    count = 0
    for q in range(states):
        row = m.state_row[q]
        for word in range(4):
            have = m.alive[row, word] & bytes_[0, word]
            while have != 0:
                lowest = have & (~have + np.uint64(1))
                have ^= lowest
                byte = word << 6 | count_bits(lowest - np.uint64(1))
                op = m.ops[row, m.symbol_class[byte]]
                if count > begin[q] and run[count - 1, 1] == byte and run[count - 1, 2] == op:
                    run[count - 1, 1] = byte + 1
                else:
                    run[count, 0], run[count, 1], run[count, 2] = byte, byte + 1, op
                    count += 1
        begin[q + 1] = count
    return begin, run


@kernel()
def _plain_only(m, begin, run):  # type: ignore[no-untyped-def]
    """Which states keep to the invariants on bytes of which the runs are given: bool [states]."""
    states = m.state_row.size - 1
    out = np.ones(states, np.bool_)
    changed = True
    sweeps = 0
    while changed:
        if sweeps == _MOST_SWEEPS:
            return np.zeros(states, np.bool_)
        sweeps += 1
        changed = False
        for q in range(states - 1, 0, -1):  # most ways lead to a larger number
            if not out[q]:
                continue
            fine = m.state_row[q + 1] - m.state_row[q] == 1 and not m.narrow_state[q]
            for r in range(begin[q], begin[q + 1]):
                fine = fine and run[r, 2] & KIND_MASK < PUSH and out[run[r, 2] >> KIND_BITS]
            if not fine:
                out[q] = False
                changed = True
    return out


@kernel()
def _hashes(begin, run, plain):  # type: ignore[no-untyped-def]
    """int64 [states]: of states that are plain, equal for copies whose states are numbered in one order."""
    hashes = np.zeros(plain.size, np.int64)
    for _ in range(_SWEEPS):
        for q in range(plain.size - 1, 0, -1):
            if not plain[q]:
                continue
            own, last, after = np.int64(1), np.int64(-1), np.int32(-1)  # the last one's hash, and where it ends
            for r in range(begin[q], begin[q + 1]):
                now = hashes[run[r, 2] >> KIND_BITS]
                if now != last or run[r, 0] != after:
                    own = (own ^ after) * 0x9E3779B1 & 0xFFFFFFFFFFFF
                    own = (own ^ run[r, 0] << 40 ^ now) * 0x9E3779B1 & 0xFFFFFFFFFFFF
                last, after = now, run[r, 1]
            hashes[q] = (own ^ after) * 0x9E3779B1 & 0xFFFFFFFFFFFF
    return hashes


@kernel()
def _root(parent, q):  # type: ignore[no-untyped-def]
    while parent[q] != q:
        q = parent[q]
    return q


@kernel()
def _join(m, classes, a, b, parent, joined):  # type: ignore[no-untyped-def]
    """Join the sets of two states, and of all that texts lead to from them, unless they differ.

    Returns:
        whether they are joined, and at how many pairs it looked.

    Args:
        parent: int32 [states]: of each a state of its set, nearer to the root;  joined: int32 [states, 3], scratch.
    """
    count, at = 0, 0
    x, y = _root(parent, a), _root(parent, b)
    if x != y:
        parent[x] = y
        joined[0, 0], joined[0, 1], joined[0, 2] = x, a, b
        count = 1
    while at < count:
        upper, lower = m.state_row[joined[at, 1]], m.state_row[joined[at, 2]]
        at += 1
        for k in classes:
            p, q = m.ops[upper, k] >> KIND_BITS, m.ops[lower, k] >> KIND_BITS
            if p == q:
                continue
            x, y = _root(parent, p), _root(parent, q)
            if x == y:
                continue
            if p == 0 or q == 0:
                for n in range(count):
                    parent[joined[n, 0]] = joined[n, 0]
                return False, at
            parent[x] = y
            joined[count, 0], joined[count, 1], joined[count, 2] = x, p, q
            count += 1
    return True, at


@kernel()
def find_alike(m, bytes_, classes, states):  # type: ignore[no-untyped-def]
    """For each of some states the first of them that reads texts of some bytes like it: int32 [n], -1 where its walks
    are short or more than a matter of these bytes.

    Args:
        bytes_: uint64 [1, 4];  classes: int32 [·]: their classes of symbols;  states: int32 [n], each once.
    """
    out = np.full(states.size, -1, np.int32)
    wide, many = np.zeros(states.size, np.bool_), 0
    for n in range(states.size):
        count = 0
        for word in range(4):
            count += count_bits(m.alive[m.state_row[states[n]], word] & bytes_[0, word])
        wide[n] = count >= _FEWEST
        many += wide[n]
    if many < 2:
        return out
    begin, run = _runs(m, bytes_)
    plain = _plain_only(m, begin, run)
    hashes = _hashes(begin, run, plain)
    parent = np.empty(plain.size, np.int32)
    for q in range(plain.size):
        parent[q] = q
    joined = np.empty((plain.size, 3), np.int32)
    size = 2
    while size < 2 * states.size:
        size *= 2
    last = np.full(size, -1, np.int32)  # of the sets whose hashes end alike, the one found last
    before = np.empty(states.size, np.int32)  # the one found before each set, -1 for none
    first = np.empty(states.size, np.int32)  # state of each set
    sets, looks = 0, _LOOKS * plain.size
    for n in range(states.size):
        q = states[n]
        if not wide[n] or not plain[q]:
            continue
        place = (hashes[q] ^ hashes[q] >> 20) & (size - 1)
        s = last[place]
        while s >= 0 and looks > 0:
            if hashes[first[s]] == hashes[q]:
                fits, more = _join(m, classes, q, first[s], parent, joined)
                looks -= more + 1
                if fits:
                    out[n] = first[s]
                    break
            s = before[s]
        if out[n] < 0:
            out[n] = q
            first[sets], before[sets], last[place] = q, last[place], sets
            sets += 1
    return out
