"""Take out of a bundle's tables what texts can reach with some of its tools: small tables, in numbers of their own.

The transitions that decide for a tool that is left out are not followed. So the work is that of the choice, not that of
the bundle, but for a few passes over its states.

Leaves out   rows and bounds that the choice changes: subset.py, completion.py. Which states decide for a tool: marks.
Invariants   states, cells, pushes, stack symbols, profiles, chains, rows and lists keep their order. What a kept state
             reads and allows is what it was, but that a removed transition is an entry without an op.
Trusts       what completion_automaton.py does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ..format.kernels.step import phases_of
from ..format.ops import ACTION_BITS, ACTION_MASK, KIND_BITS, KIND_MASK, POP, PUSH
from ..format.tables import Tables
from ..jit.memory import BARE, grown, kernel
from .comb import pack_quickly

REMOVED = 7  # no kind of op: what the table of transitions before has where one was removed
_REMEMBERED = 1 << 12  # rows


class Reached(NamedTuple):
    """What texts can reach.

    tables: small ones;  before: their `delta`, with an op also where a transition was removed;  state int32 [states]:
    the new number of each, -1 for those that are not there;  thinned bool [states of `tables`]: whether a transition of
    the state was removed.
    """

    tables: Tables
    before: np.ndarray
    state: np.ndarray
    thinned: np.ndarray


def reached_of(t: Tables, dead_mark: np.ndarray, entries: Iterable[int]) -> Reached:
    """The tables of what is reached from the entries.

    Args:
        dead_mark: bool [marks]: those of tools that are left out. What leads into a state or frame of such a mark is
            removed.
    """
    starts = np.array(sorted({0, 1, *entries}), np.int64)
    states, pushes, symbols = map(np.sort, _reach(
        t.classes, t.state_cell, t.state_break, t.breaks, t.cell_delta, t.cell_default, t.delta, t.push,
        t.return_offset, t.return_, t.modes, dead_mark, t.state_mark, t.symbol_mark, starts,
    ))  # fmt: skip
    state, push, symbol = (
        _numbers(some, of) for some, of in ((states, t.states), (pushes, len(t.push)), (symbols, t.return_offset.size))
    )
    first, cells = _runs(t.state_cell[states], t.cells_of("state_break", states))
    bases = np.unique(np.concatenate([t.cell_delta[cells], t.cell_default[cells]]))
    offset, column, ops, ops_before = _rows_of_delta(t.delta, bases, t.classes, state, push)
    place, delta = pack_quickly(offset, column, ops, t.classes)
    before = delta.copy()
    before[np.repeat(place, np.diff(offset)) + column, 1] = ops_before
    left = ops[ops & KIND_MASK == POP] >> KIND_BITS  # with which frames are left: so many columns each symbol has
    return_offset, return_ = _returns(t, symbols, state, int(left.max(initial=-1)) + 1)
    profile, chain, chain_cells, chain_first = _chains(t, cells, symbols)
    chain_offset, chain_comb = _chain_comb(t, profile, symbols, chain)
    marks, mark, tool_sets = _marks(t, states, symbols)
    rows, more = _rows(t, np.concatenate([t.cell_row[cells].reshape(-1), t.chain_row[chain_cells]]))
    row_number, mark_number = _numbers(rows, t.rows), _numbers(marks, len(t.mark))
    row = np.searchsorted(bases, np.stack([t.cell_delta[cells], t.cell_default[cells]]))
    base = place[row]
    lost = np.zeros(bases.size, bool)
    lost[np.searchsorted(offset, np.flatnonzero(ops_before == REMOVED), side="right") - 1] = True
    thinned = np.zeros(states.size, bool)
    thinned[np.searchsorted(first, np.flatnonzero(lost[row].any(axis=0)), side="right") - 1] = True
    found = {
        **t.arrays(),
        **_close(t, states, symbols),
        **more,
        **tool_sets,
        "state_cell": first,
        "state_break": t.state_break[states],
        "cell_row": row_number[t.cell_row[cells]],
        "cell_exit": _renumbered(profile, t.cell_exit[cells]),
        "cell_delta": base[0],
        "cell_default": base[1],
        "delta": delta,
        "push": np.stack(
            [symbol[t.push[pushes, 0]], *np.maximum(0, state[t.push[pushes, 1:3]]).T, t.push[pushes, 3]], axis=1
        ),
        "return_offset": return_offset,
        "return": return_,
        "chain_offset": chain_offset,
        "chain": chain_comb,
        "chain_cell": chain_first,
        "chain_break": t.chain_break[chain],
        "chain_row": row_number[t.chain_row[chain_cells]],
        "chain_exit": _renumbered(profile, t.chain_exit[chain_cells]),
        "chain_after": t.chain_after[chain_cells],
        "state_register": t.state_register[states],
        "state_way": t.state_way[states],
        "cell_check": t.cell_check[cells],
        "chain_check": t.chain_check[chain_cells],
        "state_mark": mark_number[t.state_mark[states]],
        "symbol_mark": mark_number[t.symbol_mark[symbols]],
        "mark": mark,
        "narrowing": state[t.narrowing[state[t.narrowing] > 0]],
    }
    bits = "dense", "test_mask"
    arrays = {name: np.ascontiguousarray(x, x.dtype if name in bits else np.int32) for name, x in found.items()}
    return Reached(Tables.from_arrays(arrays), before, state, thinned)


def _numbers(some: np.ndarray, count: int) -> np.ndarray:
    """The place of each of so many among some, ascending: int32 [count], -1 for those that are not there."""
    found = np.full(count, -1, np.int32)
    found[some] = np.arange(some.size)
    return found


def _runs(first: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each of some runs begins when they stand one after the other, and the members of all, int64 [·]."""
    begin = np.cumsum(count) - count
    return begin, np.repeat(first - begin, count) + np.arange(int(count.sum()))


def _renumbered(kept: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The places of some numbers among those that are kept, ascending; -1 stays."""
    return np.where(numbers < 0, -1, np.searchsorted(kept, numbers))


def _returns(t: Tables, symbols: np.ndarray, state: np.ndarray, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """`return_offset` and `return` of these stack symbols, whose frames are left in so many ways; rows that are the
    same are so again."""
    bases, row = np.unique(t.return_offset[symbols], return_inverse=True)
    entry = np.flatnonzero(t.return_[:, 0] >= 0)
    owner = t.return_[entry, 0]
    at = np.minimum(np.searchsorted(bases, owner), max(0, bases.size - 1))
    kept = (entry >= owner) & (entry < owner + columns) & (bases[at] == owner if bases.size else False)
    order = np.argsort(at[kept], kind="stable")  # columns ascend within a row
    entry, owner, at = entry[kept][order], owner[kept][order], at[kept][order]
    back = t.return_[entry, 1].astype(np.int64)
    value = (state[back >> ACTION_BITS] << ACTION_BITS | back & ACTION_MASK).astype(np.int32)
    offset = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=bases.size))]).astype(np.int64)
    place, comb = pack_quickly(offset, (entry - owner).astype(np.int32), value, max(1, columns))
    return place[row], comb


def _chain_comb(
    t: Tables, profile: np.ndarray, symbols: np.ndarray, chain: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and comb of the chains of these profiles and stack symbols."""
    offset, column, value = _chain_rows(t.chain_offset, t.chain, profile, symbols, chain)
    return pack_quickly(offset, column, value, max(1, symbols.size))


def _marks(t: Tables, states: np.ndarray, symbols: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """The marks that are in use, as they were and with new numbers of tool sets, and these."""
    used = np.zeros(len(t.mark), bool)
    used[0] = used[t.state_mark[states]] = used[t.symbol_mark[symbols]] = True
    marks = np.flatnonzero(used)
    mark = t.mark[marks].copy()
    sets = np.unique(mark[:, 2])
    sets = sets[sets >= 0]
    mark[:, 2] = _renumbered(sets, mark[:, 2])
    sizes = np.diff(t.tool_offset)[sets].astype(np.int64)
    _, members = _runs(t.tool_offset[sets], sizes)
    return marks, mark, {"tool_offset": np.append(0, np.cumsum(sizes)), "tool_members": t.tool_members[members]}


def _rows(t: Tables, wanted: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Which rows these are, ascending, and the tables of rows and lists."""
    used = np.zeros(t.rows, bool)
    used[wanted] = True
    rows = np.flatnonzero(used)
    lists = np.unique(t.row_list[rows])
    lists = np.unique(np.concatenate([lists, t.list_base[lists][t.list_base[lists] >= 0]]))
    dense = np.unique(t.row_dense[rows])
    dense = dense[dense >= 0]
    sizes = np.diff(t.list_offset)[lists].astype(np.int64)
    _, tokens = _runs(t.list_offset[lists], sizes)
    return rows, {
        "row_slice": t.row_slice[rows],
        "row_units": t.row_units[rows],
        "row_dense": _renumbered(dense, t.row_dense[rows]),
        "row_list": np.searchsorted(lists, t.row_list[rows]),
        "list_offset": np.append(0, np.cumsum(sizes)),
        "list_tokens": t.list_tokens[tokens],
        "list_base": _renumbered(lists, t.list_base[lists]),
        "dense": t.dense[dense],
    }


def _close(t: Tables, states: np.ndarray, symbols: np.ndarray) -> dict[str, np.ndarray]:
    """What is known of the shortest close."""
    found = {"close_break": t.close_break[states], "owed_break": t.owed_break[symbols]}
    if t.knows_no_close:  # one cell is of all
        found |= {"state_close": t.state_close[states], "owed_first": t.owed_first[symbols]}
    else:
        found["state_close"], close = _runs(t.state_close[states], t.cells_of("close_break", states))
        found["owed_first"], owed = _runs(t.owed_first[symbols], t.cells_of("owed_break", symbols))
        found |= {name: getattr(t, name)[close] for name in ("close_bound", "close_token", "close_after")}
        found["owed"] = t.owed[owed]
    lists = np.unique(np.append(0, t.state_forced[states]))
    sizes = np.diff(t.forced_offset)[lists].astype(np.int64)
    _, tokens = _runs(t.forced_offset[lists], sizes)
    return {
        **found,
        "state_forced": np.searchsorted(lists, t.state_forced[states]),
        "forced_after": t.forced_after[states],
        "forced_offset": np.append(0, np.cumsum(sizes)),
        "forced_tokens": t.forced_tokens[tokens],
    }


# -- kernels ----------------------------------------------------------------------------------------------------------


@kernel(**BARE)
def _slot(place):  # type: ignore[no-untyped-def]
    """Where a row is remembered."""
    return (place * 0x9E3779B1 >> 12) & (_REMEMBERED - 1)


@kernel()
def _reach(  # type: ignore[no-untyped-def]
    classes, state_cell, state_break, breaks, cell_delta, cell_default, delta, push, return_offset, return_, modes,
    dead, state_mark, symbol_mark, starts,
):  # fmt: skip
    """Which states, pushes and stack symbols are reached, int64 [·] each. Frames are entered in both modes, and go on
    wherever their symbol may lead.

    Rows of `delta` of which every op was followed are remembered, and not looked at again.
    """
    columns = 0
    for i in range(return_.shape[0]):
        if return_[i, 0] >= 0:
            columns = max(columns, i - return_[i, 0] + 1)
    seen = np.zeros(state_cell.size, np.bool_)
    seen_push, seen_symbol = np.zeros(push.shape[0], np.bool_), np.zeros(return_offset.size, np.bool_)
    states, pushes, symbols = (
        np.empty(seen.size, np.int64),
        np.empty(seen_push.size, np.int64),
        np.empty(seen_symbol.size, np.int64),
    )
    followed = np.full(_REMEMBERED, -1, np.int64)
    count = done = pushed = opened = 0
    for q in starts:
        seen[q] = True
        states[count] = q
        count += 1
    while done < count:
        q = states[done]
        done += 1
        if q < 2:
            continue
        for x in range(state_cell[q], state_cell[q] + phases_of(breaks, state_break[q])):
            own = np.int64(cell_delta[x])
            for base in (own, np.int64(cell_default[x])):
                if followed[_slot(base)] == base:
                    continue
                whole, last = True, np.int64(0)
                for k in range(classes):
                    if delta[base + k, 0] != base:
                        continue
                    op = np.int64(delta[base + k, 1])
                    if op == 0 or op == last:
                        continue
                    kind, number = op & KIND_MASK, op >> KIND_BITS
                    if kind == POP:
                        continue
                    if kind < PUSH:
                        if seen[number] or dead[state_mark[number]]:
                            continue
                    elif seen_push[number] or dead[symbol_mark[push[number, 0]]] or dead[state_mark[push[number, 1]]]:
                        continue
                    if base != own and delta[own + k, 0] == own:  # the default is not asked here
                        whole = False
                        continue
                    last = op
                    if kind < PUSH:
                        seen[number] = True
                        states[count] = number
                        count += 1
                        continue
                    g = push[number, 0]
                    seen_push[number] = True
                    pushes[pushed] = number
                    pushed += 1
                    for mode in range(modes):
                        r = push[number, 1 + mode]
                        if not seen[r]:
                            seen[r] = True
                            states[count] = r
                            count += 1
                    if seen_symbol[g]:
                        continue
                    seen_symbol[g] = True
                    symbols[opened] = g
                    opened += 1
                    begin = return_offset[g]
                    for place in range(begin, min(begin + columns, return_.shape[0])):
                        r = return_[place, 1] >> ACTION_BITS
                        if return_[place, 0] == begin and not seen[r]:
                            seen[r] = True
                            states[count] = r
                            count += 1
                if whole:
                    followed[_slot(base)] = base
    return states[:count].copy(), pushes[:pushed].copy(), symbols[:opened].copy()


@kernel()
def _rows_of_delta(delta, bases, classes, state, push):  # type: ignore[no-untyped-def]
    """The rows of transitions that begin at these bases: offset int64 [bases + 1], column int32 [·], and the op of each
    entry, int32 [·], 0 where the transition is left out; and the same with REMOVED there."""
    offset = np.zeros(bases.size + 1, np.int64)
    column, op_now, op_before = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.int32)
    count = 0
    for n in range(bases.size):
        base = bases[n]
        while count + classes > column.size:
            column, op_now, op_before = grown(column), grown(op_now), grown(op_before)
        for k in range(classes):
            if delta[base + k, 0] != base:
                continue
            op = np.int64(delta[base + k, 1])
            kind, number = op & KIND_MASK, op >> KIND_BITS
            gone = False
            if op != 0 and kind < PUSH:
                gone = state[number] < 0
                op = np.int64(state[number]) << KIND_BITS | kind
            elif kind == PUSH:
                gone = push[number] < 0
                op = np.int64(push[number]) << KIND_BITS | kind
            column[count] = k
            op_now[count] = 0 if gone else op
            op_before[count] = REMOVED if gone else op
            count += 1
        offset[n + 1] = count
    return offset, column[:count].copy(), op_now[:count].copy(), op_before[:count].copy()


@kernel()
def _follow_chains(offset, comb, lists, breaks, chain_cell, chain_exit, exits, symbols):  # type: ignore[no-untyped-def]
    """Which profiles, bool [·], and chains, bool [·], can come of these exits under these stack symbols."""
    seen, kept = np.zeros(offset.size, np.bool_), np.zeros(chain_cell.size, np.bool_)
    todo = np.empty(offset.size, np.int64)
    count = 0
    for e in exits:
        if e >= 0 and not seen[e]:
            seen[e] = True
            todo[count] = e
            count += 1
    while count > 0:
        count -= 1
        base = offset[todo[count]]
        for g in symbols:
            if comb[base + g, 0] != base or kept[comb[base + g, 1]]:
                continue
            n = comb[base + g, 1]
            kept[n] = True
            for x in range(chain_cell[n], chain_cell[n] + phases_of(breaks, lists[n])):
                e = chain_exit[x]
                if e >= 0 and not seen[e]:
                    seen[e] = True
                    todo[count] = e
                    count += 1
    return seen, kept


def _chains(t: Tables, cells: np.ndarray, symbols: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Profiles and chains that are met, the cells of these, and the first of each among them; int64 [·]."""
    seen, kept = _follow_chains(
        t.chain_offset, t.chain, t.chain_break, t.breaks, t.chain_cell, t.chain_exit, t.cell_exit[cells].reshape(-1),
        symbols,
    )  # fmt: skip
    chain = np.flatnonzero(kept)
    first, chain_cells = _runs(t.chain_cell[chain], t.cells_of("chain_break", chain))
    return np.flatnonzero(seen), chain, chain_cells, first


@kernel()
def _chain_rows(offset, comb, profiles, symbols, chains):  # type: ignore[no-untyped-def]
    """The chains of profiles by stack symbol, in new numbers: offset int64 [profiles + 1], column, value int32 [·]."""
    begin = np.zeros(profiles.size + 1, np.int64)
    for n in range(profiles.size):
        base = offset[profiles[n]]
        begin[n + 1] = begin[n]
        for g in symbols:
            begin[n + 1] += comb[base + g, 0] == base
    column, value = np.empty(begin[-1], np.int32), np.empty(begin[-1], np.int32)
    count = 0
    for n in range(profiles.size):
        base = offset[profiles[n]]
        for k in range(symbols.size):
            if comb[base + symbols[k], 0] == base:
                column[count], value[count] = k, np.searchsorted(chains, comb[base + symbols[k], 1])
                count += 1
    return begin, column, value
