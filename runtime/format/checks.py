"""Check a bundle's tables, so that every later index is safe.

Leaves out   the tables and the ranges of their numbers (tables.py), the same as one pass of a kernel
             (kernels/check.py), the file's own checks (container.py).
Invariants   after `check_tables` no step, mask or row expansion can read outside an array, whatever its counter
             (which `phase` clamps) and whatever its stack symbols (which come from `push`); the stack's ends are
             checked while running. No loop of a kernel is longer than a token, a row, or `max_chain`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..jit.loaded import kernels_pay
from .container import DTYPES, UNSOUND, refuse
from .meta import check_meta_of
from .ops import END_OF_TURN, FINISHED, POP, PUSH, kind_of, number_of, return_of
from .tables import (
    FIELD_OF,
    FIRST_BIT,
    MAX_BREAKS,
    MAX_CAPACITY,
    MAX_COUNT,
    MAX_RANGE_CELLS,
    MAX_REGISTER_WORDS,
    NEVER,
    TABLES,
    Tables,
    counted,
    counts_of,
    tools_of,
)
from .vocab import Vocab, check_ascending, check_meta, check_offsets, check_range

_WANTED = [(key, field, DTYPES[TABLES[key].dtype], TABLES[key]) for key, field in FIELD_OF]


def check_tables(
    name: str, t: Tables, meta: dict[str, Any], vocab: Vocab, checked_spec: dict[str, Any] | None = None
) -> None:
    """Refuse tables that any index could leave.

    In this order: shapes, meta numbers, the rest of the meta; then, in one pass where kernels are loaded
    (kernels/check.py): the range of every number, cells, combs, lists, completions, the longest chain.
    """
    _check_shapes(name, t)
    _check_numbers(name, t, meta)
    check_meta_of(name, meta, t.states, checked_spec)
    counts = counts_of(t, vocab.size, vocab.slice_token_offset.size - 1, len(tools_of(meta)))
    if not _sound(t, meta, counts):
        plain_checks(name, t, meta, counts)
    _check_registers(name, t)


def plain_checks(name: str, t: Tables, meta: dict[str, Any], counts: dict[str, int]) -> None:
    """What kernels/check.py checks, one by one, and what is wrong."""
    _check_values(name, t, counts)
    check_ascending(name, "special_token", t.special_token, np.zeros(1, dtype=np.int32))
    for lists in ("breaks", "close_breaks"):
        _check_lists(name, lists, getattr(t, lists))
    _check_cells(name, t, "state_cell", "state_break", t.cells)
    _check_ops(name, t)
    owned = t.return_[t.return_[:, 0] >= 0]
    check_range(name, "return/value", owned[:, 1], 0, return_of(t.states, 0))
    _check_comb(name, "return", t.return_, MAX_COUNT)
    owned = t.chain[t.chain[:, 0] >= 0]
    check_range(name, "chain/number", owned[:, 1], 0, int(t.chain_cell.size))
    _check_comb(name, "chain", t.chain, int(t.return_offset.size))
    _check_cells(name, t, "chain_cell", "chain_break", int(t.chain_row.size))
    _check_rows(name, t, counts["tokens"])
    check_offsets(name, "tool_offset", t.tool_offset, int(t.tool_members.size))
    check_ascending(name, "tool_members", t.tool_members, t.tool_offset)
    check_ascending(name, "narrowing", t.narrowing, np.zeros(1, dtype=np.int32))
    _check_close(name, t)
    _check_longest_chain(name, t, int(meta["max_chain"]))


def _check_values(name: str, t: Tables, counts: dict[str, int]) -> None:
    """Every number of a table is in its range (tables.py)."""
    for key, field, _, table in _WANTED:
        array = getattr(t, field)
        for column, (low, high) in enumerate(table.values):
            part, place = (array[:, column], f"{key}/{table.columns[column]}") if table.columns else (array, key)
            check_range(name, place, part, low, counts[high] if isinstance(high, str) else high)


def _sound(t: Tables, meta: dict[str, Any], counts: dict[str, int]) -> bool:
    """Whether the kernel of kernels/check.py has been through and found nothing; numba is not loaded for it."""
    if not kernels_pay(lambda: sum(array.nbytes for array in t.arrays().values())):
        return False
    from .kernels.check import sound

    return sound(t, meta, counts)


def _check_shapes(name: str, t: Tables) -> None:
    widths: dict[str, int] = {}
    counted_by: dict[str, tuple[str, int]] = {}
    for key, field, dtype, table in _WANTED:
        array: np.ndarray = getattr(t, field)
        if array.dtype is not dtype and array.dtype != dtype:
            raise refuse(name, f"{key}/dtype", array.dtype.name, dtype.name, UNSOUND)
        shape, width = array.shape, table.width
        want = [widths.setdefault(n, size) if isinstance(n, str) else n for n, size in zip(width, shape[1:])]
        if len(shape) != 1 + len(width) or list(shape[1:]) != want:
            shown = ", ".join(["·", *map(str, width)])
            raise refuse(name, f"{key}/shape", list(shape), f"[{shown}]", UNSOUND)
        what, offsets = counted(table.counts)
        if shape[0] < offsets:
            raise refuse(name, f"{key}/shape", 0, f"one more than there are {what}", UNSOUND)
        first, size = counted_by.setdefault(what, (key, shape[0] - offsets))
        if size != shape[0] - offsets:
            raise refuse(name, f"{key}/shape", shape[0], f"{size + offsets}, as {first}", UNSOUND)
    for key, field, least, what in (
        ("symbol_class", "symbol_class", END_OF_TURN + 1, "256 bytes and at least end of turn"),
        ("state_cell", "state_cell", 2, "at least 2: dead and finished"),
        ("row_slice", "row_slice", 1, "at least 1 row"),
    ):
        if len(getattr(t, field)) < least:
            raise refuse(name, f"{key}/shape", len(getattr(t, field)), what, UNSOUND)
    if t.chain_row.size > MAX_RANGE_CELLS:
        raise refuse(name, "chain_row/shape", t.chain_row.size, f"at most {MAX_RANGE_CELLS} chain cells", UNSOUND)


def _check_numbers(name: str, t: Tables, meta: dict[str, Any]) -> None:
    for key, low, high in (
        ("soft_depth", 0, MAX_CAPACITY),
        ("capacity", 0, MAX_CAPACITY),
        ("max_chain", 0, MAX_CAPACITY),
        ("modes", 1, 2),
        ("stack_symbols", 0, MAX_COUNT),
    ):
        value = check_meta(name, meta, key, int)
        if not low <= value <= high:
            raise refuse(name, f"meta/{key}", value, f"{low} to {high}", UNSOUND)
    for key, found, place in (
        ("modes", t.modes, "cell_row/shape"),
        ("stack_symbols", int(t.return_offset.size), "return_offset/shape"),
    ):
        if meta[key] != found:
            raise refuse(name, place, found, f"{meta[key]}, as meta/{key}", UNSOUND)
    if not 0 < t.modes <= 2:
        raise refuse(name, "cell_row/shape", t.modes, "1 or 2 modes", UNSOUND)


def _check_cells(name: str, t: Tables, first: str, breaks: str, total: int, shared: bool = False) -> None:
    """Cells of owners lie one after the other, as many as each has phases; or where `shared` every phase has one."""
    starts, count = getattr(t, first), t.cells_of(breaks)
    past = np.flatnonzero(starts + count > total)
    if past.size:
        at, hint = int(past[0]), "phases reach past the cells"
        raise refuse(name, f"{first}/{at}", int(starts[at] + count[at]), f"at most {total}", UNSOUND, hint)
    if shared:
        return
    end = np.cumsum(count)
    apart = np.flatnonzero(starts != end - count)
    if apart.size:
        at, hint = int(apart[0]), f"cells lie one after the other, as {breaks} has them"
        raise refuse(name, f"{first}/{at}", int(starts[at]), str(int((end - count)[at])), UNSOUND, hint)
    if end.size and int(end[-1]) != total or not end.size and total:
        raise refuse(name, first, f"{int(end[-1]) if end.size else 0} cells", f"{total}", UNSOUND, "cells of nobody")


def _check_lists(name: str, field: str, lists: np.ndarray) -> None:
    """The first list of breakpoints is there and has none."""
    if lists.shape[1] > MAX_BREAKS:
        raise refuse(name, f"{field}/shape", lists.shape[1], f"at most {MAX_BREAKS} breakpoints", UNSOUND)
    if not len(lists) or lists[0].any():
        found = lists[0].tolist() if len(lists) else "no list"
        raise refuse(name, f"{field}/0", found, "the list without breakpoints", UNSOUND)


def _check_phases(name: str, field: str, breaks: np.ndarray) -> None:
    """Every count of a breakpoint begins a phase: counters that breakpoints tell apart ascend."""
    at, count = breaks[:, :, 0].astype(np.int64), breaks[:, :, 1]
    before = np.maximum.accumulate(np.where(count > 0, at, 0), axis=1)
    before = np.concatenate([np.zeros((len(at), 1), np.int64), before[:, :-1]], axis=1)
    bad = np.argwhere((count > 0) & (at - count < before))
    if bad.size:
        owner = int(bad[0, 0])
        raise refuse(name, f"{field}/{owner}", breaks[owner].tolist(), "breakpoints one after the other", UNSOUND)


def _check_comb(name: str, field: str, comb: np.ndarray, columns: int) -> None:
    """Every entry lies in a column of its owner, or is free, which is (-1, 0)."""
    owner = np.ascontiguousarray(comb[:, 0])
    check_range(name, f"{field}/owner", owner, -1, owner.size)
    column = np.arange(owner.size, dtype=np.int32) - owner
    bad = np.where(owner < 0, comb[:, 1] != 0, column.view(np.uint32) >= columns)
    if bad.any():
        at = int(np.argmax(bad))
        wanted = f"(-1, 0), or an owner whose {columns} columns it is in"
        raise refuse(name, f"{field}/{at}", comb[at].tolist(), wanted, UNSOUND, "an entry of nobody")


def _check_ops(name: str, t: Tables) -> None:
    """Passes over whole columns without picking out entries: this is the longest table of a bundle."""
    op = np.ascontiguousarray(t.delta[:, 1])
    kind = kind_of(op)
    if op.size and (int(op.min()) < 0 or int(kind.max()) > POP):
        raise refuse(name, "delta/op", int(op.min()) if int(op.min()) < 0 else int(kind.max()), "kinds 0 to 5", UNSOUND)

    def most(some: np.ndarray) -> int:
        """The largest number among some ops; 0 if there is none."""
        return int(number_of(int((op * some).max(initial=0))))

    for field, some, limit in (
        ("delta/state", kind < PUSH, t.states),
        ("delta/push", kind == PUSH, int(t.push.shape[0])),
    ):
        if some.any() if limit == 0 else most(some) >= limit:
            raise refuse(name, field, most(some), f"0 to {limit - 1}", UNSOUND, "out of range")
    if ((op > 0) & (op < PUSH)).any():
        raise refuse(name, "delta/op", "a counter action on the dead state", "op 0", UNSOUND)
    pops = kind == POP
    if t.return_offset.size and pops.any():
        last = int(t.return_offset.max()) + most(pops)
        if last >= t.return_.shape[0]:
            wanted, hint = f"at least {last + 1} entries", "a pop reaches past the comb"
            raise refuse(name, "return", t.return_.shape[0], wanted, UNSOUND, hint)
    _check_comb(name, "delta", t.delta, t.classes)


def _check_rows(name: str, t: Tables, tokens: int) -> None:
    check_offsets(name, "list_offset", t.list_offset, int(t.list_tokens.size))
    check_ascending(name, "list_tokens", t.list_tokens, t.list_offset)
    if (t.list_base[t.list_base[t.list_base >= 0]] >= 0).any():
        raise refuse(name, "list_base", "a base that has a base", "bases without one", UNSOUND)
    if t.dense.shape[1] != (words := -(-tokens // 32)):
        raise refuse(name, "dense/shape", t.dense.shape[1], f"{words} words", UNSOUND)
    if tokens % 32 and (t.dense[:, -1] >> np.uint32(tokens % 32)).any():
        raise refuse(name, "dense", "a bit past the vocabulary", f"bits below {tokens}", UNSOUND)


def _check_registers(name: str, t: Tables) -> None:
    """Rule 0 and test 0 ask nothing, check list 0 and way list 0 are empty, a check list has a token once, and word 0
    of a register has no bits of members."""
    check_offsets(name, "check_offset", t.check_offset, len(t.check))
    check_offsets(name, "way_offset", t.way_offset, len(t.way))
    check_ascending(name, "check", np.ascontiguousarray(t.check[:, 0]), t.check_offset)
    for field, found, wanted in (
        ("state_register/0", t.state_register[: FINISHED + 1].tolist(), [0] * (FINISHED + 1)),
        ("register_rule/0", t.register_rule[:1].tolist(), [[0, -1, 0, 0]]),
        ("test_wants/0", t.test_wants[:1].tolist(), [0]),
        ("test_mask/0", [int(t.test_mask[:1].any())] if len(t.test_mask) else [], [0]),
        ("test_mask", int(t.test_mask[:, :1].any()), 0),
        ("register_rule/bit", int(((t.register_rule[:, 1] >= 0) & (t.register_rule[:, 1] < FIRST_BIT)).sum()), 0),
        ("check_offset/1", t.check_offset[1:2].tolist(), [0]),
        ("way_offset/1", t.way_offset[1:2].tolist(), [0]),
    ):
        if found != wanted:
            raise refuse(name, field, found, f"{wanted}", UNSOUND)
    if not 0 < t.register_words <= MAX_REGISTER_WORDS:
        raise refuse(name, "test_mask/shape", t.register_words, f"1 to {MAX_REGISTER_WORDS} words", UNSOUND)


def _check_close(name: str, t: Tables) -> None:
    _check_cells(name, t, "state_close", "close_break", int(t.close_bound.size), t.knows_no_close)
    _check_phases(name, "close_breaks", t.close_breaks)
    _check_cells(name, t, "owed_first", "owed_break", int(t.owed.size), t.knows_no_close)
    check_offsets(name, "forced_offset", t.forced_offset, int(t.forced_tokens.size))
    if t.knows_no_close:
        check_range(name, "close_bound", t.close_bound, NEVER, NEVER + 1)


def _check_longest_chain(name: str, t: Tables, most: int) -> None:
    """The longest path of exit profiles is at most `most`; so there is no cycle either.

    Nodes are the start rows of the chain comb (profiles that share one share their records).
    """
    if t.chain_offset.size == 0:
        return
    symbols = int(t.return_offset.size)
    count = t.cells_of("chain_break")
    # Only chains with a further profile make longer paths.
    exits = np.concatenate([np.zeros(1, np.int64), np.cumsum(t.chain_exit >= 0)])
    further = exits[t.chain_cell + count] > exits[t.chain_cell]
    bases, node_of_profile = np.unique(t.chain_offset, return_inverse=True)
    entry = np.flatnonzero(t.chain[:, 0] >= 0)
    owner = t.chain[entry, 0]
    entry, owner = entry[further[t.chain[entry, 1]]], owner[further[t.chain[entry, 1]]]
    node = np.minimum(np.searchsorted(bases, owner), bases.size - 1)
    mine = (bases[node] == owner) & (entry >= owner) & (entry < owner + max(symbols, 1))
    entry, node = entry[mine], node[mine]
    number = t.chain[entry, 1]
    # One edge for each (entry, cell of its chain) that has a further profile.
    count[~further] = 0
    source = np.repeat(np.arange(t.chain_cell.size), count)
    within = np.arange(source.size) - np.repeat(np.cumsum(count) - count, count)
    target = t.chain_exit[t.chain_cell[source] + within]
    pairs = np.unique(np.stack([source[target >= 0], node_of_profile[target[target >= 0]]], axis=1), axis=0)
    first = np.searchsorted(pairs[:, 0], number)
    degree = np.searchsorted(pairs[:, 0], number, side="right") - first
    if int(degree.sum()) > MAX_RANGE_CELLS:
        raise refuse(name, "chain", int(degree.sum()), f"at most {MAX_RANGE_CELLS} records in all", UNSOUND)
    start = np.repeat(node, degree)
    offset = np.arange(start.size) - np.repeat(np.cumsum(degree) - degree, degree)
    stop = pairs[np.repeat(first, degree) + offset, 1]
    edges = np.unique(np.stack([start, stop], axis=1), axis=0)
    length = np.ones(bases.size, dtype=np.int64)
    for _ in range(most + 1):
        if int(length.max()) > most:
            break
        longer = length.copy()
        np.maximum.at(longer, edges[:, 0], length[edges[:, 1]] + 1)
        if (longer == length).all():
            return
        length = longer
    raise refuse(
        name,
        "chain_exit",
        f"a chain of {int(length.max())} profiles or a cycle",
        f"at most {most}, as meta/max_chain",
        UNSOUND,
    )
