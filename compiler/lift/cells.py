"""Cells: what one value range of a counter needs, for many subjects (states, or chains) at once.

A subject has one cell per range of its counter between two thresholds, and one per value near the end of each: a walk
from the start of a range says how far before the next threshold walks begin to see it. From there on, and where a
slice is cut short, every value has a cell of its own.

Leaves out   the walks (walk.py), which thresholds there are (lift.py).
Invariants   cells of a subject are consecutive, by counter; rows are numbered by their first cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from toolc.runtime.jit.memory import kernel

from ..terminals.offsets import offsets
from .breakpoints import widened
from .reachable_thresholds import Ahead
from .rows import RowStore
from .slice_simulation import UNLIMITED

BY_LIMIT = -2


class Walks(NamedTuple):
    """What walks found, one entry per job.

    list_: number in the pool of lists;  exit_: profile, -1 for none;  reach: most increments before a threshold was
        looked at;
    slice_: slice that the row starts from, -1 for none;  limit: counter value up to which units of the slice may go;
    units: most units of the slice's tokens, -1 for all of them, or BY_LIMIT: see ``limit``;
    narrow: a token can decide against a tool.
    """

    list_: np.ndarray
    exit_: np.ndarray
    reach: np.ndarray
    slice_: np.ndarray
    limit: np.ndarray
    units: np.ndarray
    narrow: np.ndarray


class Cells(NamedTuple):
    """Cells of many subjects.

    first int32 [n]: of each subject;  breaks int32 [n, ·, 2]: its breakpoints, (0, 0) where there are fewer;
    owner int32 [cells];  counter int32 [cells]: the least of its range;  rows, exits int32 [cells, modes];
    narrow int32 [·]: subjects from which a token can decide against a tool, ascending.
    """

    first: np.ndarray
    breaks: np.ndarray
    owner: np.ndarray
    counter: np.ndarray
    rows: np.ndarray
    exits: np.ndarray
    narrow: np.ndarray


def no_cells(modes: int) -> Cells:
    """Those of nobody."""
    none, table = np.zeros(0, np.int32), np.zeros((0, modes), np.int32)
    return Cells(none, np.zeros((0, 0, 2), np.int32), none, none, table, table, none)


def joined(parts: Sequence[Cells]) -> Cells:
    """The subjects of all parts, one after the other."""
    width = max(part.breaks.shape[1] for part in parts)
    cells = offsets((part.counter.size for part in parts), np.int32)
    subjects = offsets((part.first.size for part in parts), np.int32)
    return Cells(
        np.concatenate([part.first + cells[i] for i, part in enumerate(parts)]),
        np.concatenate([widened(part.breaks, width) for part in parts]),
        np.concatenate([part.owner + subjects[i] for i, part in enumerate(parts)]),
        np.concatenate([part.counter for part in parts]),
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.exits for part in parts]),
        np.concatenate([part.narrow + subjects[i] for i, part in enumerate(parts)]),
    )


def steps(count: np.ndarray) -> np.ndarray:
    """0 … count[0] - 1, 0 … count[1] - 1, …"""
    ends = np.cumsum(count)
    return np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - count, count)


def make_cells(
    subjects: np.ndarray,
    thresholds: Ahead,
    run: Callable[[np.ndarray], list[Walks]],
    most_units: np.ndarray,
    store: RowStore,
) -> Cells:
    """The cells of subjects.

    Args:
        subjects: int32 [n, ·], what a job begins with; the counter comes last.
        thresholds: of every subject.
        run: the walks of jobs, by mode.
        most_units: of the tokens of every slice.
    """
    if not thresholds.value.size:
        return _uncounted(subjects, run, most_units, store)
    n = len(subjects)
    count = np.diff(thresholds.offset)
    start_owner = np.repeat(np.arange(n), count + 1)
    low = np.zeros(start_owner.size, np.int64)
    begins = np.cumsum(count + 1) - (count + 1)
    ranged = np.ones(start_owner.size, bool)  # a threshold ends it
    ranged[begins + count] = False
    (ranges,) = np.nonzero(ranged)
    high = thresholds.value.astype(np.int64)
    low[ranges + 1] = high
    found = run(_jobs(subjects, start_owner, low))
    # Per range: how many values get a cell of their own, and how many of these, the last ones, a walk.
    single, walked = np.zeros(ranges.size, np.int64), np.zeros(ranges.size, np.int64)
    if ranges.size:
        widest = np.maximum(high - low[ranges] - 1, 0)  # no counter is below a threshold of 0
        reach = np.max([walks.reach[ranges] for walks in found], axis=0)
        single = np.minimum(widest, reach)
        for walks in found:
            s, limit = walks.slice_[ranges], walks.limit[ranges].astype(np.int64)
            cut = high - (limit - most_units[s] + 1)
            cut[(s < 0) | (limit == UNLIMITED)] = 0
            single = np.maximum(single, np.minimum(widest, cut))
        walked = np.minimum(single, reach)
    near_owner = np.repeat(start_owner[ranges], walked)
    near_counter = np.repeat(high - walked, walked) + steps(walked)
    near = run(_jobs(subjects, near_owner, near_counter)) if near_owner.size else []
    own = np.zeros(start_owner.size, np.int64)  # cells of a start beyond its first
    own[ranges] = single
    start = np.repeat(np.arange(start_owner.size), own + 1)
    nth = steps(own + 1)
    counter = low[start]
    job = start.copy()  # the walk of each cell; those near thresholds come after those of the starts
    if ranges.size:
        of_start = np.full(start_owner.size, -1, np.int64)
        of_start[ranges] = np.arange(ranges.size)
        (later,) = np.nonzero(nth > 0)
        r = of_start[start[later]]
        counter[later] = high[r] - single[r] + nth[later] - 1
        place = counter[later] - (high[r] - walked[r])
        job[later] = np.where(place < 0, start[later], start_owner.size + (np.cumsum(walked) - walked)[r] + place)
    rows, exits = _rows(
        [_both(*both) for both in zip(found, near, strict=True)] if near else found, job, counter, most_units, store
    )
    breaks = np.zeros((n, int(count.max(initial=0)), 2), np.int32)
    if ranges.size:
        breaks[start_owner[ranges], steps(count)] = np.stack([high, single + 1], axis=1)
    narrow = [start_owner[walks.narrow] for walks in found] + [near_owner[walks.narrow] for walks in near]
    owner = start_owner[start]
    return Cells(
        np.searchsorted(owner, np.arange(n)).astype(np.int32),
        breaks,
        owner.astype(np.int32),
        counter.astype(np.int32),
        rows,
        exits,
        np.unique(np.concatenate(narrow)).astype(np.int32),
    )


def _uncounted(
    subjects: np.ndarray, run: Callable[[np.ndarray], list[Walks]], most_units: np.ndarray, store: RowStore
) -> Cells:
    """The same where no counter meets a threshold: one cell each."""
    n = len(subjects)
    each, zeros = np.arange(n, dtype=np.int32), np.zeros(n, np.int64)
    jobs = np.zeros((n, subjects.shape[1] + 1), np.int32)
    jobs[:, :-1] = subjects
    found = run(jobs)
    rows, exits = _rows(found, np.arange(n), zeros, most_units, store)
    narrow = found[0].narrow if len(found) == 1 else found[0].narrow | found[1].narrow
    return Cells(each, np.zeros((n, 0, 2), np.int32), each, zeros.astype(np.int32), rows, exits, each[narrow])


def _rows(
    found: list[Walks], job: np.ndarray, counter: np.ndarray, most_units: np.ndarray, store: RowStore
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and exits, int32 [cells, modes], of cells whose walks are these jobs, int64 [cells], at these counters."""
    wanted = np.empty((counter.size, len(found), 3), np.int32)
    exits = np.empty((counter.size, len(found)), np.int32)
    for mode, x in enumerate(found):
        walks = map(np.ascontiguousarray, (x.slice_, x.limit, x.units, x.list_, x.exit_))
        _want(*walks, job, counter, most_units, mode, wanted, exits)
    return store.rows(wanted.reshape(-1, 3)).reshape(-1, len(found)), exits


@kernel()
def _want(slice_, limit, units, list_, exit_, job, counter, most_units, mode, wanted, exits):  # type: ignore[no-untyped-def]
    """Rows as `RowStore.rows` takes them, and exits, of cells in a mode: see `_rows`."""
    for n in range(job.size):
        j = job[n]
        s = np.int64(slice_[j])
        wanted[n, mode, 0], wanted[n, mode, 1], wanted[n, mode, 2] = s, units[j], list_[j]
        exits[n, mode] = exit_[j]
        if units[j] == BY_LIMIT:
            wanted[n, mode, 1] = -1
            if s >= 0 and limit[j] != UNLIMITED:
                left = max(np.int64(0), np.int64(limit[j]) - counter[n])
                wanted[n, mode, 1] = -1 if left >= most_units[s] else left


def _both(a: Walks, b: Walks) -> Walks:
    return Walks(*(np.concatenate(parts) for parts in zip(a, b, strict=True)))


def _jobs(subjects: np.ndarray, owner: np.ndarray, counter: np.ndarray) -> np.ndarray:
    """int32 [jobs, ·]: the subject's own columns, then the counter."""
    return np.concatenate([subjects[owner], counter.reshape(-1, 1).astype(np.int32)], axis=1)
