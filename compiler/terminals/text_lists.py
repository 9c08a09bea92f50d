"""Build the automaton of a list of texts, as of an enum: their trie, of which equal branches are one.

Leaves out   texts that are given by an expression (terminal.py), several columns that act alike (dfa.py).
Cost         linear in the bytes of the texts: a branch is looked up once all that is below it is known. Merging states
             as minimise.py does takes a dozen times as long.
Source       Daciuk, Mihov, Watson and Watson 2000, for sorted texts; here the tree comes first, then its merging.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolc.runtime.jit.memory import grown, kernel

from .dfa import Dfa, make_dfa


def from_texts(texts: Sequence[bytes]) -> Dfa:
    """Exactly these texts, one or more."""
    ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
    column, table, accepting = _tree(np.frombuffer(b"".join(texts), np.uint8), ends)
    return make_dfa(column, *_merged(table, accepting), minimal=True)


@kernel()
def _tree(data, ends):  # type: ignore[no-untyped-def]
    """The tree of some texts: the column of every byte, int64 [256], the last one for those in no text; table int32
    [states, columns] and accepting bool [states]. A state has a smaller number than those behind it.

    Args:
        data: uint8 [·], the texts; text n ends at ends[n].
    """
    column, columns = np.full(256, -1, np.int64), 0
    for byte in data:
        if column[byte] < 0:
            column[byte] = columns
            columns += 1
    for byte in range(256):
        if column[byte] < 0:
            column[byte] = columns
    table, last = np.full((256, columns + 1), -1, np.int32), np.empty(ends.size, np.int64)
    states, at = 1, 0
    for n in range(ends.size):
        state = 0
        while at < ends[n]:
            k = column[data[at]]
            if table[state, k] < 0:
                if states == table.shape[0]:
                    table = grown(table)
                    table[states:] = -1
                table[state, k] = states
                states += 1
            state = table[state, k]
            at += 1
        last[n] = state
    accepting = np.zeros(states, np.bool_)
    for state in last:
        accepting[state] = True
    return column, table[:states], accepting


@kernel()
def _merged(table, accepting):  # type: ignore[no-untyped-def]
    """The states of a tree, of equal ones the last; ``table`` is overwritten."""
    states, columns = table.shape
    room = 16
    while room < 2 * states:
        room *= 2
    known = np.full(room, -1, np.int32)
    same = np.empty(states, np.int32)
    for s in range(states - 1, -1, -1):
        h = np.uint64(accepting[s])
        for k in range(columns):
            if table[s, k] >= 0:
                table[s, k] = same[table[s, k]]
            h = (h ^ np.uint64(np.uint32(table[s, k]))) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        slot = np.int64(h & np.uint64(room - 1))
        while known[slot] >= 0:
            other = known[slot]
            k = 0
            if accepting[other] == accepting[s]:
                while k < columns and table[other, k] == table[s, k]:
                    k += 1
                if k == columns:
                    break
            slot = (slot + 1) & (room - 1)
        if known[slot] < 0:
            known[slot] = s
        same[s] = known[slot]
    number = np.empty(states, np.int32)
    count = 0
    for s in range(states):
        if same[s] == s:
            number[s] = count
            count += 1
    out, final = np.empty((count, columns), np.int32), np.empty(count, np.bool_)
    for s in range(states):
        if same[s] == s:
            final[number[s]] = accepting[s]
            for k in range(columns):
                out[number[s], k] = number[table[s, k]] if table[s, k] >= 0 else -1
    return out, final
