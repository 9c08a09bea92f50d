"""Make the rows of states that share a region inside of strings, see slice_bases.py: which do, and their tries.

Leaves out   the kernels (slice_bases.py, collapsed_trie.py, collapsed_walks.py), slices that a state takes as they are
             (slice_simulation.py).
Invariants   what is returned for a job holds for its counter value, and for those above it up to ``reach`` increments
             before the next threshold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..budget import Budget
from ..pushdown.unique_rows import distinct_numbers, distinct_rows
from .collapsed_trie import byte_classes
from .collapsed_walks import Parting, scratch_for_parting, walk_collapsed
from .slice_bases import choose_bases, find_regions, rank_bases
from .slice_simulation import Units
from .vocab_tries import Words
from .walk import Machine
from .walk_results import Pieces

_WORTH = 12  # a trie is collapsed for no fewer walks than this
_WORTH_ALONE = 32  # … than this, where the walks are short: from slices that are right but for few tokens
_ANY = 1 << 30  # more than any slice agrees


class RegionRows(NamedTuple):
    """The part of some jobs' rows that lies inside of one slice.

    jobs int [n]: numbers of the jobs;  slice_: the slice;  units int32 [n]: most units of the slice's tokens, -1 for
    all;  reach int32 [n]: most increments before a threshold was looked at;  pieces int32 [n]: the
    tokens to toggle, see walk_results.py.
    """

    jobs: np.ndarray
    slice_: int
    units: np.ndarray
    reach: np.ndarray
    pieces: np.ndarray


class Regions:
    """The regions of one automaton over one vocabulary.

    Args:
        stays: of every op row, see `alive_bytes`.
    """

    def __init__(
        self,
        machine: Machine,
        stays: np.ndarray,
        units: Units,
        words: Words,
        limit: np.ndarray,
        pieces: Pieces,
        budget: Budget,
    ) -> None:
        self.machine = machine
        self.stays = stays
        self.units = units
        self.words = words
        self.limit = limit
        self.pieces = pieces
        self.budget = budget
        self._place: np.ndarray | None = None
        self._found = np.empty((1 << 12, 3), np.int32)

    def larger(self, jobs: np.ndarray, slice_: np.ndarray, which: np.ndarray) -> Iterator[RegionRows]:
        """Rows over the slices that agree best with jobs which would start from a small one, many to a region.

        Args:
            jobs: int32 [·, 2]: state and counter.
            slice_: the slice that each would start from otherwise, -1 for none.
            which: int [·]: the jobs to look at.
        """
        if which.size < _WORTH:
            return
        chosen = which[self.words.small[slice_[which]]]
        m = self.machine
        rank = np.full(chosen.size, _ANY, np.int32)
        while chosen.size >= _WORTH:
            base = np.empty(chosen.size, np.int32)
            size = self.words.slice_size
            choose_bases(m, self.units, *self._ranked, size, slice_[chosen], jobs[chosen], rank, base)
            leave = np.zeros(len(jobs), bool)
            yield from self._of_slices(jobs, base, chosen, leave, _WORTH)
            again = leave[chosen]  # a smaller slice may stay inside of the frame
            chosen, rank = chosen[again], rank[again]

    @cached_property
    def _parting(self) -> Parting:
        return scratch_for_parting(self.machine.threshold_offset, len(self.words.state))

    @cached_property
    def _ranked(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every op row which of the distinct sets of bytes it has, int64 [rows]; how slices agree with those, see
        `rank_bases`."""
        read = np.concatenate([self.machine.alive, self.stays], axis=1)
        number, first = distinct_rows(read.view(np.int32))
        return number, rank_bases(read[first], self.units)

    def same(self, jobs: np.ndarray, slice_: np.ndarray, which: np.ndarray) -> Iterator[RegionRows]:
        """Rows of jobs over the very slices that they would start from, many to a region; see `larger`."""
        if which.size >= _WORTH_ALONE:
            yield from self._of_slices(jobs, slice_[which], which, np.zeros(len(jobs), bool), _WORTH_ALONE)

    def _of_slices(
        self, jobs: np.ndarray, base: np.ndarray, chosen: np.ndarray, leave: np.ndarray, worth: int
    ) -> Iterator[RegionRows]:
        """Rows over slices, ``base``; ``leave``, bool [all jobs], receives which jobs leave their frames there."""
        many = np.bincount(base + 1, minlength=2) >= worth
        many[0] = False
        if not many.any():
            return
        some = many[base + 1]
        chosen, home = chosen[some], base[some]
        states = self.limit.shape[0]
        pairs, seed, _, _ = distinct_numbers(home.astype(np.int64) * states + jobs[chosen, 0])
        seeds = np.stack([pairs % states, pairs // states], axis=1).astype(np.int32)
        if self._place is None:
            self._place = np.full(self.limit.shape, -1, np.int32)
        parent, fine = np.empty(pairs.size, np.int32), np.empty(pairs.size, bool)
        expected, count = 4 * len(seeds), -1
        while count < 0:
            if len(self._found) < expected:
                self._found = np.empty((expected, 3), np.int32)
            count = find_regions(
                self.machine, self.units, self.limit, seeds, self._place, parent, fine, self.words.pairs, self._found
            )
            expected = 2 * len(self._found)
        found = self._found[:count]
        root_of_job = parent[seed]
        leave[chosen[~fine[root_of_job]]] = True
        both = root_of_job.astype(np.int64) << 32 | home
        both, which, _, sizes = distinct_numbers(both)
        classes: dict[int, tuple[np.ndarray, bool]] = {}
        for n in np.flatnonzero((sizes >= worth) & fine[both >> 32]).tolist():
            root, one = divmod(int(both[n]), 1 << 32)
            if root not in classes:
                region = found[found[:, 2] == root, :2]
                narrows = bool(self.machine.narrow_state[region[:, 0]].any())
                classes[root] = byte_classes(self.machine, self.units, region), narrows
            yield self._of_region(one, jobs, chosen[which == n], *classes[root])

    def _of_region(
        self, home: int, jobs: np.ndarray, own: np.ndarray, classes: np.ndarray, narrows: bool
    ) -> RegionRows:
        w = self.words
        own = own[np.lexsort((jobs[own, 1], jobs[own, 0]))]
        trie = w.collapsed(home, classes)
        out = np.empty((own.size, 3), np.int32)
        pieces = np.empty(own.size, np.int32)
        at = 0
        while at < own.size:
            self.budget.check("")
            mark = np.full(w.vocab.size, -1, np.int32)
            done, tokens, ends = walk_collapsed(
                self.machine, trie, self.units, self.limit, home, jobs[own[at:]],
                w.state, self._parting, w.pairs, mark, out[at:],
            )  # fmt: skip
            pieces[at : at + done] = self.pieces.add(tokens, ends, narrows)[out[at : at + done, 2]]
            at += done
        return RegionRows(own, home, out[:, 0], out[:, 1], pieces)
