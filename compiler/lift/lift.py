"""Automaton × vocabulary → the tables of a bundle.

Every local state becomes one or more *cells* (one per value range of its counter that the masks can tell apart),
every cell a mask row and an exit profile; every profile and every stack symbol that can lie above it a *chain* of
cells likewise.

Leaves out   the shortest close (completion.py), the kernels (walk.py, slice_simulation.py), slices (slices.py), packing
             (comb.py, rows.py), the file (runtime/format/bundle.py).
Invariants   numbers follow discovery over the automaton's own numbers, so equal inputs give equal tables.
Arrays       docs/format.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN, return_of
from toolc.runtime.format.tables import Tables, without_close, without_registers
from toolc.runtime.format.vocab import Vocab
from toolc.runtime.selection.comb import CombRows

from ..budget import Budget, check_breaks, walks_at_a_time
from ..errors import VocabError
from ..passes import Pass
from ..pushdown.marks import Marks
from ..pushdown.pushdown import Automaton
from ..pushdown.unique_rows import distinct_rows
from ..terminals.offsets import offsets
from ..terminals.pool import Pool, intern, room
from . import comb
from .bounded_equivalence import equivalent_states, no_equivalences
from .breakpoints import interned, numbered
from .cells import BY_LIMIT, Cells, Walks, joined, make_cells, no_cells
from .chains import lead_to, longest_chain, pairs_beneath
from .children import alive_bytes
from .inside_units import allow_just_the_slice, leave_out_strays
from .reachable_thresholds import Ahead, chain_ahead, none_ahead, thresholds_ahead
from .region_rows import RegionRows, Regions
from .rows import RowStore
from .slice_simulation import UNKNOWN, UNLIMITED, choose_slices, exclude, units_beside
from .vocab_tries import NOTHING, STRAYS_TOO, Words
from .walk import Machine, Walkable, rows_at, walk_chains, walk_states
from .walk_results import MOST_VALUES, Pieces

_PROBE = np.frombuffer(b"aZ0 _e", np.uint8)  # see choose_slices
_BATCH = 2048  # walks between two looks at the clock


class Lifted(NamedTuple):
    """What lifting gives.

    Attributes:
        tables: those that know no way to close.
        rows: of the comb of transitions, by cell.
        profiles: contents of the exit profiles int32 [·]: mode, node, R, node, R, … (walk.py), and where each begins,
            int64 [profiles + 1].
        counts: of states, rows, …
    """

    tables: Tables
    rows: CombRows
    profiles: tuple[np.ndarray, np.ndarray]
    counts: dict[str, int]


class _Bases(NamedTuple):
    """What the rows of some jobs start from, one int32 entry per job: ``slice_``, ``limit``, ``units`` as in `Walks`.

    reach: most increments before a threshold was looked at, so far;  extra: piece of further tokens, -1 for none;
    trie: what is walked, see ``Words.rest``.
    """

    slice_: np.ndarray
    limit: np.ndarray
    units: np.ndarray
    reach: np.ndarray
    extra: np.ndarray
    trie: np.ndarray


class _Lift:
    def __init__(
        self, automaton: Automaton, vocab: Vocab, end_of_turn: Sequence[int], budget: Budget, ahead: Ahead,
    ) -> None:  # fmt: skip
        self.a = automaton
        self.words = Words.of(vocab)
        self.vocab = vocab
        self.budget = budget
        self.lists, self.profiles = Pool(vocab.size + 64), Pool(2 * vocab.node_byte.size + 2)
        specials = len(vocab.special) + len(vocab.end_of_turn)
        self.pieces = Pieces(self.lists.longest, self.profiles.longest, specials, len(self.words.state))
        self.pieces.expect(len(automaton.ops), automaton.threshold.size > 0)
        self.rows = RowStore(vocab.size, self.lists)
        alive, stays = alive_bytes(automaton.ops, automaton.symbol_class)
        self.machine = self._machine(alive)
        self.specials = np.array(self._specials(end_of_turn), np.int32).reshape(-1, 2)
        values = MOST_VALUES if Pass.COUNTER_INTERVALS.on else 0
        longest = self.lists.longest, self.profiles.longest, *self.pieces.limits
        self.limits = np.array([*longest, values, Pass.SHARED_WALKS.on], np.int64)
        units = self.words.units
        self.limit = np.full((automaton.state_row.size - 1, len(units.names)), UNKNOWN, np.int32)
        self.units = units_beside(units, automaton.symbol_class)
        self.ahead = ahead
        self.counts_on = self.ahead.some
        self.representative = no_equivalences()
        if Pass.BOUNDED_EQUIVALENCE.on and self.ahead.value.size:
            self.representative = equivalent_states(self.machine, self.counts_on, vocab.longest, budget)
        self.regions = Regions(self.machine, stays, self.units, self.words, self.limit, self.pieces, budget)
        self.tallest = 0
        self.walks = 0

    def _machine(self, alive: np.ndarray) -> Machine:
        a = self.a
        push = np.asarray(a.pushes, np.int32).reshape(-1, 4)
        by_symbol = np.lexsort((a.return_key[:, 1], a.return_key[:, 0]))
        key, to = a.return_key[by_symbol], a.return_to[by_symbol]
        return_offset, return_ = comb.pack(
            np.searchsorted(key[:, 0], np.arange(a.stack_symbols + 1)).astype(np.int32),
            key[:, 1].copy(),
            return_of(to[:, 0], to[:, 1]),
            max(a.completions, 1),
        )
        return Machine(
            a.state_row, a.threshold_offset, a.threshold, a.ops, a.symbol_class, push, return_offset, return_,
            a.marks.narrow_state, a.marks.narrow_symbol[push[:, 0]], alive,
        )  # fmt: skip

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

    # -- walks -------------------------------------------------------------------------------------------------------

    def _run(self, walk: Callable[[int, int], int], begin: int, end: int) -> None:
        """Call a kernel until the jobs from ``begin`` to ``end`` are done, growing the pools where they are full."""
        batch = walks_at_a_time(self.words.whole.order.size, _BATCH)
        while begin < end:
            to = min(begin + batch, end)
            at = walk(begin, to)
            self.budget.check("rows", len(self.lists))
            if at < to:
                for pool in (self.lists, self.profiles, self.pieces):
                    pool.grow()
            begin = at

    def _bases(self, jobs: np.ndarray) -> _Bases:
        """What the rows of jobs start from; it is the same in every mode."""
        w, m = self.words, self.machine
        units = w.units
        choice = np.zeros((len(jobs), 3), np.int32)
        copied = w.copied if Pass.COPIED_UNITS.on else w.copied[:0]
        if not Pass.SLICES.on:
            choice[:] = -1, 0, UNLIMITED
        for begin in range(0, len(jobs) if Pass.SLICES.on else 0, _BATCH):
            self.budget.check("")
            choose_slices(
                m, self.units, w.homes, _PROBE, self.counts_on, copied, w.most_units[copied], w.poor, self.limit,
                jobs[begin : begin + _BATCH], w.pairs, choice[begin : begin + _BATCH],
            )  # fmt: skip
        slice_, limit = choice[:, 0].copy(), choice[:, 2].copy()
        extra = np.full(len(jobs), -1, np.int32)
        most_units = np.full(len(jobs), BY_LIMIT, np.int32)
        reach = np.zeros(len(jobs), np.int32)
        differs = choice[:, 1] > 0

        def share(rows: Iterator[RegionRows]) -> None:
            for found in rows:
                own = found.jobs
                slice_[own], limit[own], differs[own] = found.slice_, UNLIMITED, False
                most_units[own], reach[own], extra[own] = found.units, found.reach, found.pieces

        regions = self.regions
        if Pass.REGIONS.on:
            share(regions.larger(jobs, slice_, np.arange(len(jobs))))
            share(regions.same(jobs, slice_, np.flatnonzero(differs)))
        alone = np.flatnonzero(differs)
        for j in alone.tolist():
            self.budget.check("")
            some = int(jobs[j, 0]), int(jobs[j, 1]), int(slice_[j]), int(limit[j])
            exceptions = self._exceptions(*some) if Pass.SLICE_EXCEPTIONS.on else None
            if exceptions is None:
                slice_[j], limit[j] = -1, UNLIMITED
            else:
                extra[j], seen = exceptions
                if limit[j] != UNLIMITED:
                    reach[j] = seen
        if Pass.REGIONS.on:
            share(regions.larger(jobs, slice_, alone[slice_[alone] < 0]))
        self.budget.check("")
        trie = slice_.copy()
        if Pass.INSIDE_UNITS.on:
            fine = allow_just_the_slice(
                m, units.next_unit, units.alive, units.boundary, *w.deaths(slice_), jobs, slice_, w.pairs
            )
            trie[fine & (extra < 0)] = NOTHING
            leave_out_strays(m, units.alive, units.boundary, jobs, trie, STRAYS_TOO)
        return _Bases(slice_, limit, most_units, reach, extra, trie)

    def _walk(
        self, jobs: np.ndarray, trie: np.ndarray, extra: np.ndarray, mode: int, specials: np.ndarray
    ) -> np.ndarray:
        """What `walk_states` finds for jobs, int32 [jobs, 6], each over a trie of its own, see ``Words.rest``."""
        w = self.words
        order = np.argsort(trie, kind="stable")
        tries, extra, sorted_ = trie[order], extra[order], jobs[order]
        found = np.empty((len(jobs), 6), np.int32)
        bounds = [0, *((tries[1:] != tries[:-1]).nonzero()[0] + 1).tolist(), len(jobs)]
        for begin, end in pairwise(bounds):
            if begin == end:
                break  # no jobs
            rest = w.rest(int(tries[begin]))
            self.pieces.forget()

            def walk(at: int, to: int, rest: Walkable = rest) -> int:
                return walk_states(
                    self.machine, rest, sorted_, at, to, mode, self.ahead, self.representative, specials, extra,
                    self.pieces.memo, w.state, w.frames, self.lists.arrays, self.profiles.arrays, self.limits, found,
                )  # fmt: skip

            self._run(walk, begin, end)
        out = np.empty_like(found)
        out[order] = found
        return out

    def _state_walks(self, jobs: np.ndarray, bases: _Bases, mode: int) -> tuple[Walks, np.ndarray]:
        """Rows of (state, counter), and whether something was pushed, so that other modes can differ."""
        out = self._walk(jobs, bases.trie, bases.extra, mode, self.specials)
        self._note(out)
        reach = np.maximum(out[:, 2], bases.reach)
        walks = Walks(out[:, 0], out[:, 1], reach, bases.slice_, bases.limit, bases.units, out[:, 5] > 0)
        return walks, out[:, 4] > 0

    def _note(self, out: np.ndarray) -> None:
        self.walks += len(out)
        if self.a.modes == 2:
            self.tallest = max(self.tallest, int(out[:, 3].max(initial=0)))

    def _exceptions(self, q: int, c: int, u: int, bound: int) -> tuple[int, int] | None:
        """The piece of the tokens on which a state differs from a slice, and the most units of one that may.

        None where it is of no use.
        """
        w = self.words
        before, listed, count = w.listed(u)
        out = np.empty(listed.size, np.int32)
        found = exclude(
            self.machine, w.whole, self.units, self.limit, before, listed, count,
            int(w.most_units[u]), bound, q, c, u, w.state, out, w.pairs,
        )  # fmt: skip
        if not 0 <= found <= self.rows.words:
            return None
        return int(self.pieces.add(out[:found], np.array([found], np.int64))[0]), int(w.state[0, 3])

    def state_runs(self, jobs: np.ndarray) -> list[Walks]:
        """Rows of (state, counter) in every mode."""
        bases = self._bases(jobs)
        free, varies = self._state_walks(jobs, bases, 0)
        if self.a.modes == 1:
            return [free]
        deep = Walks(*(x.copy() for x in free))
        same = np.flatnonzero(~varies & (free.exit_ >= 0))
        exits, which = np.unique(free.exit_[same], return_inverse=True)
        deep.exit_[same] = np.array([self._in_mode(e, 1) for e in exits.tolist()], np.int32)[which.reshape(-1)]
        some = np.flatnonzero(varies)
        found, _ = self._state_walks(jobs[some], _Bases(*(x[some] for x in bases)), 1)
        for whole, part in zip(deep, found, strict=True):
            whole[some] = part
        return [free, deep]

    def _in_mode(self, e: int, mode: int) -> int:
        """The profile that goes on like profile e, but in another mode."""
        known = self.profiles[e].copy()
        if not room(*self.profiles.arrays, self.profiles.longest):
            self.profiles.grow()
        data, offset, table, count = self.profiles.arrays
        begin = int(offset[len(self.profiles)])
        data[begin : begin + known.size] = known
        data[begin] = mode
        return int(intern(data, offset, table, count, begin + known.size))

    def chain_runs(self, jobs: np.ndarray) -> list[Walks]:
        """Rows of (profile, stack symbol, saved counter)."""
        w = self.words
        out = np.empty((len(jobs), 6), np.int32)
        self._run(
            lambda at, to: walk_chains(
                self.machine, w.whole, jobs, at, to, w.state, w.frames, self.lists.arrays, self.profiles.arrays,
                self.limits, out,
            ),
            0,
            len(jobs),
        )  # fmt: skip
        self._note(out)
        none = np.full(len(jobs), -1, np.int32)
        return [Walks(out[:, 0], out[:, 1], out[:, 2], none, none, none, out[:, 5] > 0)]

    # -- cells -------------------------------------------------------------------------------------------------------

    def cells(self, subjects: np.ndarray, thresholds: Ahead, run: Callable[[np.ndarray], list[Walks]]) -> Cells:
        found = make_cells(subjects, thresholds, run, self.words.most_units, self.rows)
        self.budget.check("rows", len(self.rows))
        return found

    def chain_thresholds(self, keys: np.ndarray) -> Ahead:
        """Values of the counter saved beside a stack symbol that the continuation of a profile can meet."""
        if not self.ahead.value.size:
            return none_ahead(len(keys))
        data, offset = self.profiles.data, self.profiles.offset
        m = self.machine
        return Ahead(*chain_ahead(keys, data, offset, m.return_offset, m.return_, self.ahead.offset, self.ahead.value))

    # -- all ---------------------------------------------------------------------------------------------------------

    def lifted(self) -> Lifted:
        a = self.a
        states = self.cells(np.arange(a.state_row.size - 1, dtype=np.int32).reshape(-1, 1), self.ahead, self.state_runs)
        set_offset = offsets(map(len, a.sets))
        sets = np.concatenate([np.zeros(0, np.int32), *a.sets]).astype(np.int32)
        exits, above = states.exits, a.top[states.owner]
        chains, wave, chain_of = [no_cells(1)], np.zeros(0, np.int64), [np.zeros((0, 2), np.int32)]
        known: set[int] = set()
        while True:
            self.budget.check("")
            pairs = pairs_beneath(exits, above, set_offset, sets, len(self.profiles), a.stack_symbols)
            wave = np.array([pair for pair in pairs.tolist() if pair not in known], np.int64)
            if not wave.size:
                break
            known.update(wave.tolist())
            keys = np.empty((wave.size, 2), np.int32)
            keys[:, 0], keys[:, 1] = wave >> 32, wave & (1 << 32) - 1
            found = self.cells(keys, self.chain_thresholds(keys), self.chain_runs)
            exits, above = found.exits, a.below[keys[found.owner, 1]]
            chains.append(found)
            chain_of.append(keys)
        return self._assemble(states, joined(chains), np.concatenate(chain_of))

    def _assemble(self, states: Cells, chains: Cells, chain_of: np.ndarray) -> Lifted:
        """All of it.

        Args:
            chain_of: int32 [chains, 2]: profile and stack symbol.
        """
        a, m = self.a, self.machine
        onward = np.flatnonzero(chains.exits[:, 0] >= 0)
        follows = np.stack([chain_of[chains.owner[onward], 0], chains.exits[onward, 0]], axis=1)
        narrow = states.narrow
        if chains.narrow.size:
            deciding = np.zeros(len(self.profiles) + 1, bool)  # profiles; the last answers for none
            deciding[chain_of[chains.narrow, 0]] = True
            lead_to(deciding, follows)
            narrow = np.union1d(narrow, states.owner[deciding[states.exits].any(axis=1)])
        max_chain = int(longest_chain(follows, len(self.profiles)))
        (state_break, chain_break), breaks = interned(numbered(states.breaks), numbered(chains.breaks))
        check_breaks(breaks.shape[1])
        rows = self._rows(states)
        base, default, delta = comb.pack_with_defaults(rows.offset[:-1], rows.column, rows.value, a.classes)
        chain_offset, chain = self._chain(chain_of)
        special = self.specials[np.argsort(self.specials[:, 1], kind="stable")]
        arrays = dict(
            symbol_class=a.symbol_class.astype(np.int32),
            special_token=special[:, 1].copy(),
            special_symbol=special[:, 0].copy(),
            state_cell=states.first,
            state_break=state_break,
            breaks=breaks,
            cell_row=states.rows,
            cell_exit=states.exits,
            cell_delta=base[rows.of],
            cell_default=default[rows.of],
            delta=delta,
            push=m.push,
            return_offset=m.return_offset,
            return_=m.return_,
            chain_offset=chain_offset,
            chain=chain,
            chain_cell=chains.first,
            chain_break=chain_break,
            chain_row=chains.rows[:, 0].copy(),
            chain_exit=chains.exits[:, 0].copy(),
            **self.rows.arrays(),
            **_marks(a.marks, narrow),
        )
        total = sum(x.nbytes for x in arrays.values())
        self.budget.check("bytes", total)
        deeper = a.shallow_height + self.tallest if a.modes == 2 else 0
        counts = {
            **a.counts,
            "states": a.state_row.size - 1,
            "stack_symbols": a.stack_symbols,
            "profiles": len(self.profiles),
            "cells": states.owner.size,
            "chains": len(chain_of),
            "rows": len(self.rows),
            "dense_rows": len(arrays["dense"]),
            "max_chain": max_chain,
            "capacity": max(1, a.soft_depth + deeper),
            "soft_depth": a.soft_depth,
            "bytes": total,
            "walks": self.walks,
        }
        content, begin = (part.copy() for part in self.profiles.flat())  # the pool is memory of the next lift
        cells, modes = arrays["cell_row"].shape
        arrays |= without_registers(a.state_row.size - 1, cells, modes, arrays["chain_row"].size)
        return Lifted(without_close(arrays), rows, (content, begin), counts)

    def _rows(self, states: Cells) -> CombRows:
        """The distinct op rows, by cell."""
        m = self.machine
        number, first = distinct_rows(m.ops)
        return CombRows(number[rows_at(m, states.owner, states.counter)], *comb.compressed(m.ops, first))

    def _chain(self, chain_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort((chain_of[:, 1], chain_of[:, 0])).astype(np.int32)
        offset = np.searchsorted(chain_of[order, 0], np.arange(len(self.profiles) + 1)).astype(np.int32)
        return comb.pack(offset, chain_of[order, 1], order, max(self.a.stack_symbols, 1))


def _marks(marks: Marks, narrow: np.ndarray) -> dict[str, np.ndarray]:
    return {
        "state_mark": np.array(marks.state, np.int32),
        "symbol_mark": np.array(marks.symbol, np.int32),
        "mark": np.array(marks.table, np.int32).reshape(-1, 5),
        "tool_offset": offsets(map(len, marks.tools), np.int32),
        "tool_members": np.array([tool for tools in marks.tools for tool in tools], np.int32),
        "narrowing": narrow.astype(np.int32),
    }


def lift(
    automaton: Automaton,
    vocab: Vocab,
    end_of_turn: Sequence[int],
    budget: Budget | None = None,
    ahead: Ahead | None = None,
) -> Lifted:
    """The tables of an automaton for a vocabulary.

    Args:
        end_of_turn: ids that end a turn; allowed exactly where the text may end.
        ahead: its `thresholds_ahead`, where they are known.

    Raises:
        VocabError: a special token is missing, or the vocab has other slices.
        BudgetError: too many rows, bytes or seconds.
    """
    words = Words.of(vocab)
    if not words.own_slices:
        raise VocabError(
            "the vocab was made by another version of toolc: its slices are others",
            place=vocab.name,
            hint="give the tokenizer's own files, or a vocab file that this version wrote",
        )
    ahead = ahead or thresholds_ahead(automaton)
    return _Lift(automaton, vocab, end_of_turn, budget or Budget(), ahead).lifted()
