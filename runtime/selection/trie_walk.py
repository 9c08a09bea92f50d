"""Walk the vocabulary's trie through the tables of a bundle: tokens that may come next, and where they leave the frame.

The compiler walks automata before there are tables (compiler/lift/walk.py); this walks tables, for the few rows that a
choice among the tools changes.

Leaves out   what becomes of the rows: see subset.py.
Trusts       cells of a state are there for every phase; a base and any class lie inside of ``delta``, a base of
             `return` and any R inside of it; ops name states and pushes, pushes states and stack symbols; node_skip is
             past its node, node_depth at most the longest token. An entry counts for its owner alone. All checked on
             opening.
Arrays       `Machine` and `Trie` as in docs/format.md; delta_before has an op also where a transition was taken out.
             st int32 [longest token + 1, 4] is scratch: state, counter, top frame (-1 none), cell; frames int32
             [longest token + 1, 3]: stack symbol, saved counter, frame beneath. A frame is named by the depth of the
             byte that pushed it, so backing up needs no undo.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..format.kernels.step import act, op_in, phase, return_in
from ..format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, PUSH
from ..format.tables import Tables
from ..format.vocab import Vocab
from ..jit.memory import BARE, kernel


class Machine(NamedTuple):
    """Tables that say how symbols are read."""

    symbol_class: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    breaks: np.ndarray
    cell_delta: np.ndarray
    cell_default: np.ndarray
    delta: np.ndarray
    delta_before: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray

    @staticmethod
    def of(t: Tables, before: np.ndarray) -> Machine:
        """Those of tables; `before` is their delta with the transitions that were taken out."""
        return Machine(
            t.symbol_class, t.state_cell, t.state_break, t.breaks, t.cell_delta, t.cell_default, t.delta,
            before, t.push, t.return_offset, t.return_,
        )  # fmt: skip


class Trie(NamedTuple):
    """The trie of a vocabulary."""

    node_byte: np.ndarray
    node_depth: np.ndarray
    node_skip: np.ndarray
    node_token_offset: np.ndarray
    node_tokens: np.ndarray


@kernel()
def cell_of(m, q, c):  # type: ignore[no-untyped-def]
    """The cell of a state at a counter."""
    return m.state_cell[q] + phase(m.breaks, m.state_break[q], np.int64(c))


@kernel(**BARE)
def find(m, cell, symbol):  # type: ignore[no-untyped-def]
    """The op of a cell on a symbol, and whether it was taken out."""
    k, base, default = m.symbol_class[symbol], m.cell_delta[cell], m.cell_default[cell]
    op = op_in(m.delta, base, default, k)
    return op, op != op_in(m.delta_before, base, default, k)


@kernel()
def find_special(m, specials, q, c, tokens, found, result):  # type: ignore[no-untyped-def]
    """Special tokens from a state, into tokens from place ``found`` on.

    Args:
        specials: int32 [·, 2]: token and symbol of each.
        result: int64 [3], receives how many tokens there are, and whether a transition was missing as `walk` has it.
    """
    cell = cell_of(m, q, c)
    for i in range(specials.shape[0]):
        op, taken = find(m, cell, specials[i, 1])
        if taken:
            result[2] = 1
        if op != 0:
            tokens[found] = specials[i, 0]
            found += 1
    result[0] = found


@kernel()
def walk(m, t, starts, count, mode, st, frames, tokens, records, result):  # type: ignore[no-untyped-def]
    """Walk parts of the trie.

    Args:
        starts: int32 [·, 4], the first ``count`` are walked: first node, node after the last, state, counter.
        tokens: int32, receives the tokens that stay alive or leave the frame with their last byte.
        records: int32 [·, 2], receives node and R where the walk leaves the frame with tokens below.
        result: int64 [3], receives how many of each, and whether a transition was missing that had been taken out.
    """
    found = 0
    left = 0
    missing = 0
    for s in range(count):
        i = starts[s, 0]
        end = starts[s, 1]
        if i >= end:
            continue
        base = t.node_depth[i] - 1
        st[base, 0] = starts[s, 2]
        st[base, 1] = starts[s, 3]
        st[base, 2] = -1
        st[base, 3] = cell_of(m, starts[s, 2], starts[s, 3])
        while i < end:
            depth = t.node_depth[i]
            q = st[depth - 1, 0]
            c = st[depth - 1, 1]
            top = st[depth - 1, 2]
            op, taken = find(m, st[depth - 1, 3], t.node_byte[i])
            if taken:
                missing = 1
            if op == 0:
                i = t.node_skip[i]
                continue
            kind = op & KIND_MASK
            value = op >> KIND_BITS
            inside = True
            if kind < PUSH:
                q = value
                c = act(kind, c)
            elif kind == PUSH:
                frames[depth, 0] = m.push[value, 0]
                frames[depth, 1] = act(m.push[value, 3], c)
                frames[depth, 2] = top
                top = depth
                q = m.push[value, 1 + mode]
                c = 0
            elif top >= 0:
                back = return_in(m.return_, m.return_offset[frames[top, 0]], value)
                q = back >> ACTION_BITS
                c = act(back & ACTION_MASK, frames[top, 1])
                top = frames[top, 2]
            else:
                inside = False
            if inside and q == 0:
                i = t.node_skip[i]
                continue
            for k in range(t.node_token_offset[i], t.node_token_offset[i + 1]):
                tokens[found] = t.node_tokens[k]
                found += 1
            if not inside:
                if t.node_skip[i] > i + 1:
                    records[left, 0] = i
                    records[left, 1] = value
                    left += 1
                i = t.node_skip[i]
                continue
            st[depth, 0] = q
            st[depth, 1] = c
            st[depth, 2] = top
            if t.node_skip[i] > i + 1:
                st[depth, 3] = cell_of(m, q, c)
            i += 1
    result[0] = found
    result[1] = left
    result[2] = missing


@kernel()
def walk_jobs(m, t, specials, plain, jobs, parts, at, st, frames, tokens, records, found):  # type: ignore[no-untyped-def]
    """Walk the whole trie and the special tokens from states, as long as there is room for what is found.

    Args:
        specials: int32 [·, 2]: token and symbol of each;  plain: bool [V]: the others, which are read by their bytes.
        jobs: int32 [·, 3]: state, counter, mode; those from number ``at`` on are walked.
        parts: int32 [·, 4], see `walk`: if there are any, they are what every job walks, without special tokens.
        tokens, records: receive what is found, one job after the other.
        found: int32 [jobs + 1, 3], receives behind each job the places after its last token and record, and whether a
            transition was missing that had been taken out; ``found[at]`` is 0.

    Returns:
        the number of the first job that was not walked.
    """
    starts, result = np.zeros((1, 4), np.int32), np.zeros(3, np.int64)
    for n in range(at, jobs.shape[0]):
        used, left = np.int64(found[n, 0]), np.int64(found[n, 1])
        if tokens.size - used < plain.size + specials.shape[0] or records.shape[0] - left < t.node_byte.size:
            return n
        q, c, mode = jobs[n, 0], jobs[n, 1], np.int64(jobs[n, 2])
        starts[0, 1], starts[0, 2], starts[0, 3] = t.node_byte.size, q, c
        some = parts if parts.shape[0] > 0 else starts
        walk(m, t, some, some.shape[0], mode, st, frames, tokens[used:], records[left:], result)
        kept, missing = used, result[2]
        for k in range(used, used + result[0]):
            if plain[tokens[k]]:
                tokens[kept] = tokens[k]
                kept += 1
        found[n + 1, 1] = left + result[1]
        if parts.shape[0] == 0:
            find_special(m, specials, q, c, tokens, kept, result)
            kept = result[0]
        found[n + 1, 0], found[n + 1, 2] = kept, missing | result[2]
    return jobs.shape[0]


Found = tuple[np.ndarray, list[tuple[int, int]], bool]
"""Tokens, ascending; records, node and R; whether something is missing that had been there."""


class Walker:
    """Walks of tables from which transitions were taken out; ``before`` has an op there, too."""

    def __init__(self, tables: Tables, vocab: Vocab, before: np.ndarray) -> None:
        t = tables
        self.machine = Machine.of(t, before)
        self.trie = Trie(*(getattr(vocab, name) for name in Trie._fields))
        self._scratch = np.zeros((vocab.longest + 2, 4), np.int32), np.zeros((vocab.longest + 2, 3), np.int32)
        self._special = np.stack([t.special_token, t.special_symbol], axis=1)
        self._plain = np.ones(vocab.size, bool)  # a special token is never read by its bytes
        self._plain[t.special_token] = False

    def states(self, jobs: np.ndarray) -> Iterator[Found]:
        """From states, int32 [·, 3]: state, counter, mode. The tokens are overwritten by what follows."""
        return self._walk(jobs, np.zeros((0, 4), np.int32))

    def below(self, starts: list[tuple[int, int, int, int]], mode: int) -> Found:
        """From configurations at nodes of the trie, without special tokens: see `walk`."""
        if not starts:
            return np.zeros(0, np.int32), [], False
        return next(self._walk(np.array([(0, 0, mode)], np.int32), np.array(starts, np.int32)))

    def _walk(self, jobs: np.ndarray, parts: np.ndarray) -> Iterator[Found]:
        tokens = np.empty(2 * (self._plain.size + len(self._special)), np.int32)
        records = np.empty((self.trie.node_byte.size + 1, 2), np.int32)
        at = 0
        while at < len(jobs):
            found = np.zeros((len(jobs) + 1, 3), np.int32)
            end = walk_jobs(
                self.machine, self.trie, self._special, self._plain, jobs, parts, at, *self._scratch, tokens, records,
                found,
            )  # fmt: skip
            for n in range(at, end):
                mine = tokens[found[n, 0] : found[n + 1, 0]]
                mine.sort()
                left = records[found[n, 1] : found[n + 1, 1]].tolist()
                yield mine, [(node, r) for node, r in left], bool(found[n + 1, 2])
            at = end
