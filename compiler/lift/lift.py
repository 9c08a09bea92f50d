"""Automaton × vocabulary → the tables of a bundle.

Every local state becomes one or more *cells* (one per value range of its counter that the masks can tell apart), every cell a
mask row and an exit profile; every profile and every stack symbol that can lie above it a *chain* of cells likewise.

Leaves out   the kernels (walk.py), slices (slices.py), packing (comb.py, rows.py), the file (runtime/bundle.py).
Invariants   numbers follow discovery over the automaton's own numbers, so equal inputs give equal tables.
Arrays       docs/architecture.md, "bundle arrays".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from toolc.runtime.tables import Tables
from toolc.runtime.vocab import Vocab

from ..automata.nfa import END_OF_TURN
from ..automata.pushdown import ADD_ONE, KEEP, POP, PUSH, SET_ZERO, Automaton
from ..budget import Budget
from ..errors import VocabError
from . import comb
from .rows import RowStore
from .slices import unit_automata
from .walk import FRAMES, INCREMENTS, PUSHED, RECORDS, TOKENS, UNLIMITED, Machine, Walkable, exclude, find_op, simulate, walk

_PROBE = b"aZ0 _e"  # a state from which most of these lead into a slice is worked out as the slice with exceptions


class _Words:
    """A vocabulary as the kernels want it; slices are cut out of the trie at first use. Kept on the Vocab object."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self.units = unit_automata()
        n = vocab.node_byte.size
        self._whole = Walkable(
            np.arange(n, dtype=np.int32),
            vocab.node_skip,
            vocab.node_byte,
            vocab.node_depth,
            vocab.node_token_offset,
            vocab.node_tokens,
            np.full(vocab.size, -1, np.int32),
        )
        self._rest: dict[int, Walkable] = {}
        self._listed: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        depth = int(vocab.node_depth.max(initial=0)) + 2
        self.state = np.zeros((depth, 5), np.int32)
        self.frames = np.zeros((depth, 4), np.int32)
        self.out = np.zeros(vocab.size + 1, np.int32)
        self.records = np.zeros((n + 1, 2), np.int32)
        self.pairs = np.zeros((256, 2), np.int32)
        self.result = np.zeros(5, np.int64)
        offset = vocab.slice_token_offset
        self.most_units = [
            int(vocab.slice_units[offset[s] : offset[s + 1]].max(initial=0)) for s in range(offset.size - 1)
        ]

    @staticmethod
    def of(vocab: Vocab) -> _Words:
        words = vocab.__dict__.get("_lift")
        if words is None:
            words = vocab.__dict__["_lift"] = _Words(vocab)
        return words

    def whole(self) -> Walkable:
        return self._whole

    def _count(self, s: int) -> np.ndarray:
        """Units of every token in slice s, -1 outside of it."""
        v = self.vocab
        begin, end = v.slice_token_offset[s], v.slice_token_offset[s + 1]
        count = np.full(v.size, -1, np.int32)
        count[v.slice_tokens[begin:end]] = v.slice_units[begin:end]
        return count

    def rest(self, s: int) -> Walkable:
        """The trie of the tokens outside of slice s."""
        known = self._rest.get(s)
        if known is None:
            v = self.vocab
            count = self._count(s)
            before = _before(v, count[v.node_tokens] < 0)
            keep = before[v.node_skip] > before[:-1]
            order = np.flatnonzero(keep).astype(np.int32)
            place = np.zeros(keep.size + 1, np.int32)
            np.cumsum(keep, out=place[1:])
            skip = place[v.node_skip[order]].astype(np.int32)
            known = self._rest[s] = self._whole._replace(order=order, skip=skip, units=count)
        return known

    def listed(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """Tokens of slice s in preorder, and how many come before each node."""
        known = self._listed.get(s)
        if known is None:
            v = self.vocab
            inside = self._count(s)[v.node_tokens] >= 0
            known = self._listed[s] = _before(v, inside), v.node_tokens[inside]
        return known


def _before(vocab: Vocab, chosen: np.ndarray) -> np.ndarray:
    """For every trie node how many of the chosen places of node_tokens come before it; int32 [nodes + 1]."""
    count = np.zeros(chosen.size + 1, np.int32)
    np.cumsum(chosen, out=count[1:])
    return count[vocab.node_token_offset]


@dataclass
class _Walked:
    """One mask row with what was learnt on the way."""

    tokens: np.ndarray
    slice_: int
    limit: int  # counter value up to which units of the slice may go
    exit_: int
    reach: int  # increments before a threshold was looked at


class _Lift:
    def __init__(self, automaton: Automaton, vocab: Vocab, end_of_turn: Sequence[int], budget: Budget) -> None:
        self.a = automaton
        self.words = _Words.of(vocab)
        self.vocab = vocab
        self.budget = budget
        self.rows = RowStore(vocab.size, budget)
        self.machine = self._machine()
        self.special_tokens = self._specials(end_of_turn)
        units = self.words.units
        self.limit = np.full((len(automaton.rows), len(units.names)), -2, np.int32)
        self.homes = np.flatnonzero(units.boundary).tolist()
        self.ahead = _thresholds_ahead(automaton)
        self.profiles: list[tuple[int, np.ndarray]] = []  # mode, records
        self._profile_of: dict[tuple[int, bytes], int] = {}
        self.tallest = 0
        self.walks = 0

    def _machine(self) -> Machine:
        a = self.a
        state_row = np.zeros(len(a.rows) + 1, np.int32)
        np.cumsum([len(r) for r in a.rows], out=state_row[1:])
        threshold_offset = np.zeros(len(a.rows) + 1, np.int32)
        np.cumsum([len(t) for t in a.thresholds], out=threshold_offset[1:])
        threshold = np.array([t for ts in a.thresholds for t in ts], np.int32)
        ops = np.array([row for rows in a.rows for row in rows], np.int32)
        push = np.array(a.pushes, np.int32).reshape(-1, 4)
        keys = sorted(a.returns)
        offset = np.zeros(a.stack_symbols + 1, np.int32)
        np.add.at(offset, np.array([g + 1 for g, _ in keys], np.int64), 1)
        values = [a.returns[k][0] << 2 | a.returns[k][1] for k in keys]
        return_offset, return_ = comb.pack(
            np.cumsum(offset, dtype=np.int32),
            np.array([r for _, r in keys], np.int32),
            np.array(values, np.int32),
            max(a.completions, 1),
        )
        return Machine(state_row, threshold_offset, threshold, ops, a.symbol_class, push, return_offset, return_)

    def _specials(self, end_of_turn: Sequence[int]) -> list[tuple[int, int]]:
        """(symbol, token id) of every special token that the automaton reads."""
        known = self.vocab.special
        out = [(END_OF_TURN, int(t)) for t in sorted(set(end_of_turn))]
        for i, name in enumerate(self.a.specials):
            if name not in known:
                raise VocabError(
                    f"the grammar needs the special token {name}, which the tokenizer does not have",
                    place=str(self.vocab.meta.get("source", "")) or None,
                    hint="choose the tokenizer of the model, or a protocol made for it",
                )
            out.append((END_OF_TURN + 1 + i, known[name]))
        for _, token in out:
            if not 0 <= token < self.vocab.size:
                raise VocabError(f"token id {token} is not in the vocabulary of {self.vocab.size} ids")
        return out

    # -- one walk ------------------------------------------------------------------------------------------------------

    def profile(self, mode: int, records: np.ndarray) -> int:
        """The number of an exit profile, -1 if there are no records."""
        if not records.size:
            return -1
        key = mode, records.tobytes()
        number = self._profile_of.setdefault(key, len(self.profiles))
        if number == len(self.profiles):
            self.profiles.append((mode, records.copy()))
        return number

    def run(self, trie: Walkable, segments: np.ndarray, mode: int) -> np.ndarray:
        """Walk; returns the tokens. Records and the rest stay in the scratch arrays."""
        w = self.words
        walk(self.machine, trie, segments, mode, w.state, w.frames, w.out, w.records, w.result)
        self.tallest = max(self.tallest, int(w.result[FRAMES]))
        self.walks += 1
        if not self.walks & 63:
            self.budget.check("rows", len(self.rows.rows))
        return w.out[: w.result[TOKENS]]

    def state_walk(self, q: int, c: int, mode: int) -> tuple[_Walked, bool]:
        """The row of a state at a counter value, and whether mode 1 can differ."""
        w, m = self.words, self.machine
        slice_, limit, excluded = self.choose_slice(q, c)
        trie = w.whole() if slice_ < 0 else w.rest(slice_)
        segments = np.array([[0, trie.order.size, q, c, 0]], np.int32)
        tokens = [self.run(trie, segments, mode).copy()]
        exit_ = self.profile(mode, w.records[: w.result[RECORDS]])
        reach, pushed = int(w.result[INCREMENTS]), bool(w.result[PUSHED])
        if excluded is not None:
            tokens.append(excluded)
        special = [t for symbol, t in self.special_tokens if find_op(m, q, c, symbol)]
        if special:
            tokens.append(np.array(special, np.int32))
        return _Walked(np.sort(np.concatenate(tokens)), slice_, limit, exit_, reach), pushed or exit_ >= 0

    def choose_slice(self, q: int, c: int) -> tuple[int, int, np.ndarray | None]:
        """The slice to start a row from (-1: none), the counter value it may fill up to, and exceptions."""
        w, m = self.words, self.machine
        units = w.units
        known = self.limit[q]
        for u in np.flatnonzero(known >= 0).tolist():
            return u, int(known[u]), None
        next_states = [find_op(m, q, c, byte) for byte in _PROBE]
        stay = [op >> 3 for op in next_states if op and op & 7 < 4]
        if 2 * len(stay) <= len(_PROBE):
            return -1, 0, None
        for u in self.homes:
            room = simulate(m, units.next_unit, units.boundary, self.limit, q, u, w.pairs)
            if room >= 0:
                return u, int(room), None
        for u in self.homes:
            inside = sum(
                simulate(m, units.next_unit, units.boundary, self.limit, p, u, w.pairs) == UNLIMITED for p in stay
            )
            if 2 * inside > len(_PROBE):
                before, listed = w.listed(u)
                found = exclude(
                    m, w.whole(), units.next_unit, units.boundary, self.limit, before, listed, w.most_units[u],
                    q, c, u, 0, w.state, w.out, w.pairs,
                )  # fmt: skip
                if 0 <= found <= self.rows.words:
                    return u, UNLIMITED, w.out[:found].copy()
        return -1, 0, None

    # -- cells ---------------------------------------------------------------------------------------------------------

    def cells(self, thresholds: Sequence[int], walk_at: Callable[[int], _Walked]) -> tuple[list[tuple[int, int]], list]:
        """(row, exit profile) for every range of counter values that differs, and the breakpoints (at, count)."""
        cells: list[tuple[int, int]] = []
        breaks: list[tuple[int, int]] = []
        low = 0
        for high in [*thresholds, None]:
            far = walk_at(low)
            cells.append(self.cell(far, low))
            if high is None:
                break
            span = high - low
            single = span - 1 if far.reach >= span else min(far.reach, span - 1)
            sliced = far.slice_ >= 0 and far.limit != UNLIMITED
            if sliced:  # the slice is cut shorter from here on
                cut = far.limit - self.words.most_units[far.slice_] + 1
                single = max(single, min(span - 1, high - cut))
            for c in range(high - single, high):
                same = c + far.reach < high and far.reach < span
                cells.append(self.cell(far if same else walk_at(c), c))
            breaks.append((high, single + 1))
            low = high
        return cells, breaks

    def cell(self, walked: _Walked, c: int) -> tuple[int, int]:
        units = -1
        if walked.slice_ >= 0 and walked.limit != UNLIMITED:
            units = max(0, walked.limit - c)
            if units >= self.words.most_units[walked.slice_]:
                units = -1
        return self.rows.row(walked.tokens, walked.slice_, units), walked.exit_

    def state_cells(self, q: int) -> tuple[list[list[tuple[int, int]]], list]:
        """Cells of a state by mode, and its breakpoints (the same in every mode)."""
        varies = [False]

        def free(c: int) -> _Walked:
            walked, pushed = self.state_walk(q, c, 0)
            varies[0] = varies[0] or pushed
            return walked

        cells, breaks = self.cells(self.ahead[q], free)
        if self.a.modes == 1:
            return [cells], breaks
        if not varies[0]:
            return [cells, cells], breaks
        deep, deep_breaks = self.cells(self.ahead[q], lambda c: self.state_walk(q, c, 1)[0])
        if deep_breaks != breaks:
            cells, deep, breaks = _align(cells, breaks, deep, deep_breaks)
        return [cells, deep], breaks

    def chain_cells(self, e: int, g: int) -> tuple[list[tuple[int, int]], list]:
        """Cells of a profile continued under a stack symbol, by the counter saved beside it."""
        mode, records = self.profiles[e]
        w, returns = self.words, self.a.returns
        ends = w.vocab.node_skip[records[:, 0]]
        starts = []
        thresholds: set[int] = set()
        for (node, r), end in zip(records.tolist(), ends.tolist(), strict=True):
            back = returns.get((g, r))
            if back is not None and back[0]:
                starts.append((node + 1, end, *back))
                if back[1] <= ADD_ONE:
                    thresholds |= set(self.ahead[back[0]])

        def walk_at(c: int) -> _Walked:
            segments = [
                (begin, end, q, (c, c + 1, 0, 1)[action], 0 if action <= ADD_ONE else -1)
                for begin, end, q, action in starts
            ]
            tokens = self.run(w.whole(), np.array(segments, np.int32).reshape(-1, 5), mode).copy()
            exit_ = self.profile(mode, w.records[: w.result[RECORDS]])
            return _Walked(np.sort(tokens), -1, 0, exit_, int(w.result[INCREMENTS]))

        return self.cells(sorted(thresholds), walk_at)

    # -- all -------------------------------------------------------------------------------------------------------------

    def tables(self) -> tuple[Tables, dict[str, int]]:
        a = self.a
        state_cell: list[int] = []
        state_breaks: list[list] = []
        cell_row: list[list[int]] = []
        cell_exit: list[list[int]] = []
        cell_ops: list[int] = []  # op row of each cell
        pairs: dict[tuple[int, int], None] = {}
        for q in range(len(a.rows)):
            by_mode, breaks = self.state_cells(q)
            state_cell.append(len(cell_row))
            state_breaks.append(breaks)
            for i, counter in enumerate(_first_values(breaks)):
                cell_row.append([cells[i][0] for cells in by_mode])
                cell_exit.append([cells[i][1] for cells in by_mode])
                region = sum(t <= counter for t in a.thresholds[q])
                cell_ops.append(int(self.machine.state_row[q]) + region)
            for cells in by_mode:
                for _, e in cells:
                    if e >= 0:
                        pairs.update(dict.fromkeys((e, g) for g in a.under[q]))
        chain_of: dict[tuple[int, int], int] = {}
        chain_cell: list[int] = []
        chain_breaks: list[list] = []
        chain_row: list[int] = []
        chain_exit: list[int] = []
        follows: dict[int, set[int]] = {}
        todo = list(pairs)
        position = 0
        while position < len(todo):
            e, g = todo[position]
            position += 1
            cells, breaks = self.chain_cells(e, g)
            chain_of[e, g] = len(chain_cell)
            chain_cell.append(len(chain_row))
            chain_breaks.append(breaks)
            for row, after in cells:
                chain_row.append(row)
                chain_exit.append(after)
                if after >= 0:
                    follows.setdefault(e, set()).add(after)
                    for below in a.beneath[g]:
                        if (after, below) not in pairs:
                            pairs[after, below] = None
                            todo.append((after, below))
        width = max([len(b) for b in state_breaks + chain_breaks], default=0)
        ops_row, delta_offset, delta = self._delta()
        chain_offset, chain = self._chain(chain_of)
        row_arrays = self.rows.arrays()
        special = sorted((t, s) for s, t in self.special_tokens)
        arrays = dict(
            symbol_class=a.symbol_class.astype(np.int32),
            special_token=np.array([t for t, _ in special], np.int32),
            special_symbol=np.array([s for _, s in special], np.int32),
            state_cell=np.array(state_cell, np.int32),
            state_break=_breaks(state_breaks, width),
            cell_row=np.array(cell_row, np.int32),
            cell_exit=np.array(cell_exit, np.int32),
            cell_delta=delta_offset[ops_row[np.array(cell_ops)]],
            delta=delta,
            push=self.machine.push,
            return_offset=self.machine.return_offset,
            return_=self.machine.return_,
            chain_offset=chain_offset,
            chain=chain,
            chain_cell=np.array(chain_cell, np.int32),
            chain_break=_breaks(chain_breaks, width),
            chain_row=np.array(chain_row, np.int32),
            chain_exit=np.array(chain_exit, np.int32),
            **row_arrays,
        )
        total = sum(x.nbytes for x in arrays.values())
        self.budget.check("bytes", total)
        capacity = a.soft_depth + (a.shallow_height + self.tallest if a.modes == 2 else 0)
        counts = {
            **a.counts,
            "states": len(a.rows),
            "stack_symbols": a.stack_symbols,
            "profiles": len(self.profiles),
            "cells": len(cell_row),
            "chains": len(chain_cell),
            "rows": len(self.rows.rows),
            "dense_rows": len(self.rows.dense),
            "max_chain": _longest(follows, len(self.profiles)),
            "capacity": max(1, capacity),
            "soft_depth": a.soft_depth,
            "bytes": total,
            "walks": self.walks,
        }
        return Tables(**arrays), counts

    def _delta(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Number of the distinct op row per op row, offsets and comb of the distinct ones."""
        ops = self.machine.ops
        _, first, inverse = np.unique(_view(ops), return_index=True, return_inverse=True)
        order = np.empty(first.size, np.int64)
        order[np.argsort(first)] = np.arange(first.size)
        distinct = ops[np.sort(first)]
        r, k = np.nonzero(distinct)
        offset = np.zeros(distinct.shape[0] + 1, np.int32)
        np.cumsum(np.bincount(r, minlength=distinct.shape[0]), out=offset[1:])
        at, packed = comb.pack(offset, k.astype(np.int32), distinct[r, k], ops.shape[1])
        return order[inverse.reshape(-1)], at, packed

    def _chain(self, chain_of: dict[tuple[int, int], int]) -> tuple[np.ndarray, np.ndarray]:
        keys = sorted(chain_of)
        offset = np.zeros(len(self.profiles) + 1, np.int32)
        if keys:
            np.add.at(offset, np.array([e + 1 for e, _ in keys], np.int64), 1)
        return comb.pack(
            np.cumsum(offset, dtype=np.int32),
            np.array([g for _, g in keys], np.int32),
            np.array([chain_of[k] for k in keys], np.int32),
            max(self.a.stack_symbols, 1),
        )


def _view(rows: np.ndarray) -> np.ndarray:
    """Rows as single values that compare by content."""
    rows = np.ascontiguousarray(rows)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).reshape(-1)


def _first_values(breaks: list) -> list[int]:
    """The least counter value of every phase."""
    values = [0]
    for at, count in breaks:
        values.extend(range(at - count + 1, at + 1))
    return values


def _breaks(breaks: list[list], width: int) -> np.ndarray:
    """Breakpoints as int32 [·, width, 2]; those that are missing count nothing."""
    out = np.zeros((len(breaks), width, 2), np.int32)
    for i, row in enumerate(breaks):
        for b, pair in enumerate(row):
            out[i, b] = pair
    return out


def _align(one: list, one_breaks: list, two: list, two_breaks: list) -> tuple[list, list, list]:
    """Give two lists of cells the same breakpoints, the finer of each."""

    def spread(cells: list, breaks: list, fine: list) -> list:
        at = [sum(min(max(c - high + count, 0), count) for high, count in breaks) for c in _first_values(fine)]
        return [cells[i] for i in at]

    fine = [(at, max(n, k)) for (at, n), (_, k) in zip(one_breaks, two_breaks, strict=True)]
    return spread(one, one_breaks, fine), spread(two, two_breaks, fine), fine


def _thresholds_ahead(a: Automaton) -> list[tuple[int, ...]]:
    """Per state the thresholds that its counter can meet before it is set anew or its frame is left."""
    ahead: list[set[int]] = [set(t) for t in a.thresholds]
    if not any(ahead):
        return [()] * len(ahead)
    backs: dict[int, list[int]] = {}
    for (g, _), (target, action) in sorted(a.returns.items()):
        if action <= ADD_ONE:
            backs.setdefault(g, []).append(target)
    comes_before: dict[int, set[int]] = {}
    for q, rows in enumerate(a.rows):
        for row in rows:
            for op in np.unique(row).tolist():
                kind, value = op & 7, op >> 3
                if kind in (KEEP, ADD_ONE):
                    comes_before.setdefault(value, set()).add(q)
                elif kind == PUSH and a.pushes[value][3] <= ADD_ONE:
                    for target in backs.get(a.pushes[value][0], ()):
                        comes_before.setdefault(target, set()).add(q)
    todo = [q for q in range(len(ahead)) if ahead[q]]
    while todo:
        q = todo.pop()
        for p in comes_before.get(q, ()):
            if not ahead[q] <= ahead[p]:
                ahead[p] |= ahead[q]
                todo.append(p)
    return [tuple(sorted(t)) for t in ahead]


def _longest(follows: dict[int, set[int]], profiles: int) -> int:
    """Chains on the longest way through the profiles; a profile follows another only deeper in the trie, so there are no cycles."""
    length: dict[int, int] = {}
    for root in range(profiles):
        todo = [root]
        while todo:
            e = todo[-1]
            if e in length:
                todo.pop()
                continue
            missing = [f for f in follows.get(e, ()) if f not in length]
            if missing:
                todo.extend(missing)
            else:
                length[e] = 1 + max((length[f] for f in follows.get(e, ())), default=0)
                todo.pop()
    return max(length.values(), default=0)


def lift(
    automaton: Automaton, vocab: Vocab, end_of_turn: Sequence[int], budget: Budget | None = None
) -> tuple[Tables, dict[str, int]]:
    """The tables of an automaton for a vocabulary, and their counts.

    Args:
        end_of_turn: ids that end a turn; allowed exactly where the text may end.

    Raises:
        VocabError: a special token is missing.
        BudgetError: too many rows, bytes or seconds.
    """
    return _Lift(automaton, vocab, end_of_turn, budget or Budget()).tables()
