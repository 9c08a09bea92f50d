"""Joined parts → the tables of a bundle.

Leaves out   what the parts are (part.py), walks (resolve.py).
Invariants   equal parts in equal order give equal tables; rows and lists of equal content are kept once.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.kernels.step import phases_of
from toolc.runtime.format.tables import Tables, without_registers
from toolc.runtime.jit.memory import copy, kernel

from ..lift import comb
from ..lift.breakpoints import interned
from ..lift.chains import lead_to, longest_chain
from ..passes import Pass
from ..pushdown.marks import Marks
from ..terminals.offsets import offsets
from .numbering import Joined
from .part import REST, TOKENS
from .walk import Machine


def tables_of(
    joined: Joined, m: Machine, marks: Marks, specials: np.ndarray, decided: list[int], deciding: set[tuple[int, int]]
) -> tuple[Tables, int]:
    """The tables, and the longest way through exit profiles.

    Args:
        joined: the main part, resolved, and all that it calls.
        m: their machine; its narrow ones are of no matter.
        marks: of the main part.
        specials: int32 [·, 2]: symbol and token of the special tokens.
        decided, deciding: see resolve.py, of the main part.
    """
    first, base = joined.parts[0], joined.base
    found = joined.together(REST)
    exits, cell_row, chain_row = found["cell_exit"], found["cell_row"], found["chain_row"]
    profile, symbol = _moved_chains(joined, found), found["chain_symbol"]
    profiles, symbols = int(base["profile"][-1]), max(1, int(base["symbol"][-1]))
    chain_exit, chain_break = found["chain_exit"], found["chain_break"]
    offset, column, order, follows = _chains(profile, symbol, chain_break, m.breaks, chain_exit, profiles, symbols)
    chain_offset, chain = comb.pack(offset, column, order, symbols)
    (state_break, chain_break), breaks = interned((m.state_break, m.breaks), (chain_break, m.breaks))
    (close_break, owed_break), closes = interned((m.close_break, m.close_breaks), (m.owed_break, m.close_breaks))
    row_of, rows = _rows(joined, specials, found)
    narrow = _narrowing(joined, decided, deciding, follows, exits, m, profiles)
    mark_number: dict[tuple[int, ...], int] = {}  # those of the main part are the first; no other names a tool
    number = [mark_number.setdefault(mark, len(mark_number)) for part in joined.parts for mark in part.distinct_marks]
    mark_of = np.array([0, *number], np.int32)  # the first is of what has none
    special = specials[np.argsort(specials[:, 1], kind="stable")]
    assert len(exits) == m.cell_delta.size and first.states <= m.state_cell.size
    arrays = {
        "symbol_class": joined.symbol_class,
        "special_token": special[:, 1],
        "special_symbol": special[:, 0],
        "state_cell": m.state_cell,
        "state_break": state_break,
        "breaks": breaks,
        "cell_row": row_of[cell_row],
        "cell_exit": exits,
        "cell_delta": m.cell_delta,
        "cell_default": m.cell_default,
        "delta": m.delta,
        "push": m.push,
        "return_offset": m.return_offset,
        "return_": m.return_,
        "chain_offset": chain_offset,
        "chain": chain,
        "chain_cell": found["chain_cell"],
        "chain_break": chain_break,
        "chain_row": row_of[chain_row],
        "chain_exit": chain_exit,
        "chain_after": found["chain_after"],
        "state_mark": mark_of[found["state_mark"]],
        "symbol_mark": mark_of[found["symbol_mark"]],
        "mark": np.array(list(mark_number), np.int32).reshape(-1, 5),
        "tool_offset": offsets(map(len, marks.tools), np.int32),
        "tool_members": np.array([tool for tools in marks.tools for tool in tools], np.int32),
        "narrowing": narrow,
        "state_close": m.state_close,
        "close_break": close_break,
        "close_breaks": closes,
        "close_bound": m.close_bound,
        "close_token": found["close_token"],
        "close_after": found["close_after"],
        "owed_first": m.owed_first,
        "owed_break": owed_break,
        "owed": m.owed,
        "forced_after": found["forced_after"],
        "state_forced": found["state_forced"],
        "forced_offset": found["forced_offset"],
        "forced_tokens": found["forced_tokens"],
        **rows,
    }
    arrays = {
        name: np.ascontiguousarray(array, np.uint32 if name == "dense" else np.int32) for name, array in arrays.items()
    }
    cells, modes = arrays["cell_row"].shape
    none = without_registers(arrays["state_cell"].size, cells, modes, arrays["chain_row"].size)
    return Tables(**arrays, **none), int(longest_chain(follows, profiles))


def _moved_chains(joined: Joined, found: dict[str, np.ndarray]) -> np.ndarray:
    """The profile of every chain, in the common numbering."""
    profile, base = found["chain_profile"], joined.base
    ends = base["chain"][1:]
    _move_chains(profile, found["chain_import"], ends, base["profile"], joined.imported, joined.first_import)
    return profile


@kernel()
def _move_chains(profile, imports, ends, base, imported, first):  # type: ignore[no-untyped-def]
    """The profiles of the chains of all parts, side by side, in the common numbering."""
    begin = 0
    for n in range(ends.size):
        for i in range(begin, ends[n]):
            profile[i] += base[n] if imports[i] < 0 else imported[first[n] + imports[i], 2]
        begin = ends[n]


@kernel()
def _chains(profile, symbol, lists, breaks, exits, profiles, symbols):  # type: ignore[no-untyped-def]
    """Chains by profile and stack symbol, of equals the first first, as rows of a comb: offset, column, value, int32;
    and int32 [·, 2]: the profile of every chain cell that exits with one, and that."""
    at = np.zeros(symbols + 1, np.int64)
    for g in symbol:
        at[g + 1] += 1
    for g in range(symbols):
        at[g + 1] += at[g]
    by_symbol = np.empty(symbol.size, np.int32)
    for n in range(symbol.size):
        by_symbol[at[symbol[n]]] = n
        at[symbol[n]] += 1
    offset = np.zeros(profiles + 2, np.int32)
    for e in profile:
        offset[e + 2] += 1
    for e in range(profiles):
        offset[e + 2] += offset[e + 1]
    column, order = np.empty(symbol.size, np.int32), np.empty(symbol.size, np.int32)
    for n in by_symbol:
        place = offset[profile[n] + 1]
        column[place], order[place] = symbol[n], n
        offset[profile[n] + 1] += 1
    follows = np.empty((exits.size, 2), np.int32)
    cell = count = 0
    for n in range(profile.size):
        cells = phases_of(breaks, lists[n])
        for i in range(cell, cell + cells):
            if exits[i] >= 0:
                follows[count, 0], follows[count, 1] = profile[n], exits[i]
                count += 1
        cell += cells
    return offset[: profiles + 1].copy(), column, order, follows[:count].copy()


def _narrowing(
    joined: Joined, decided: list[int], deciding: set[tuple[int, int]], follows: np.ndarray, exits: np.ndarray,
    m: Machine, profiles: int,
) -> np.ndarray:  # fmt: skip
    """States from which a token decides against a tool, directly or through its exit profile."""
    found = np.zeros(m.state_break.size, bool)
    found[decided] = True
    if deciding:
        yes = np.zeros(profiles, bool)
        for slot, profile in deciding:
            part = 0 if slot < 0 else joined.imports[0][slot][0]
            yes[joined.base["profile"][part] + profile] = True
        lead_to(yes, follows)
        _find_leading(exits, m.state_break, m.breaks, yes, found)
    return np.flatnonzero(found)


@kernel()
def _find_leading(exits, state_break, breaks, yes, found):  # type: ignore[no-untyped-def]
    """Mark the states of which some cell has an exit profile among some, bool [profiles], in some mode."""
    cell = np.int64(0)
    for q in range(found.size):
        more = phases_of(breaks, state_break[q])
        for i in range(cell, cell + more):
            for mode in range(exits.shape[1]):
                if exits[i, mode] >= 0 and yes[exits[i, mode]]:
                    found[q] = True
        cell += more


def _rows(
    joined: Joined, specials: np.ndarray, found: dict[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The number that each row of the joined numbering gets, and the rows: those in use, each content once."""
    base = joined.base
    ends = np.sort(specials[specials[:, 0] == 256, 1]).astype(np.int32)
    used = np.zeros(int(base["row"][-1]), bool)
    used[:2] = True
    _mark(used, found["cell_row"].reshape(-1))
    _mark(used, found["chain_row"])
    if Pass.EQUAL_ROWS.on:
        row_keys, list_keys = (np.concatenate(keys) for keys in zip(*(part.keys for part in joined.parts), strict=True))
    else:
        row_keys, list_keys = _different(used.size - 2), _different(found["list_base"].size - 2)
    row_of, rows, row_list, row_dense, lists, list_base, offset, dense = _chosen(
        used, row_keys, list_keys, found["row_list"], found["row_dense"],
        found["list_base"], found["list_offset"], ends.size, int(base["dense"][-1]),
    )  # fmt: skip
    tokens = np.empty(offset[-1], np.int32)
    tokens[: ends.size] = ends
    fields = joined.fields(TOKENS)[:, 0].copy()
    _copy_lists(fields, base["token"], found["list_offset"], lists[2:], tokens[ends.size :])
    return row_of, {
        "row_slice": found["row_slice"][rows],
        "row_units": found["row_units"][rows],
        "row_dense": row_dense,
        "row_list": row_list,
        "list_offset": offset,
        "list_tokens": tokens,
        "list_base": list_base,
        "dense": np.concatenate([part.arrays["dense"] for part in joined.parts])[dense],
    }


def _different(count: int) -> np.ndarray:
    """Keys, uint64 [·, 2], of which no two are equal."""
    return np.arange(2 * count, dtype=np.uint64).reshape(-1, 2)


@kernel()
def _chosen(used, row_keys, list_keys, row_list, row_dense, list_base, list_offset, ends, dense):  # type: ignore[no-untyped-def]
    """The rows in use, each content once, and the lists and bit rows that they need, all in new numbers.

    Args:
        used: bool [rows]: some cell or chain has it;  row_keys, list_keys: see row_hashes.py.
        row_list, row_dense, list_base, list_offset: of all parts, as they stand side by side.
        ends: how many tokens list 1 has;  dense: how many bit rows there are.

    Returns:
        the new number of every row; which rows there are, and list and bit row of each; which lists, the base of each
        and where each begins; which bit rows.
    """
    leader = _leaders(row_keys, used)
    list_leader = _leaders(list_keys, np.ones(list_base.size, np.bool_))
    number, rows = np.full(leader.size, -1, np.int32), np.empty(leader.size, np.int64)
    list_number, dense_number = np.full(list_base.size, -1, np.int32), np.full(dense, -1, np.int32)
    list_number[:2] = 0
    count = 0
    for r in range(leader.size):
        if used[r] and leader[r] == r:
            number[r] = count
            rows[count] = r
            count += 1
            own = list_leader[row_list[r]]
            list_number[own] = 0
            if list_base[own] >= 0:
                list_number[list_leader[list_base[own]]] = 0
            if row_dense[r] >= 0:
                dense_number[row_dense[r]] = 0
    for r in range(leader.size):
        number[r] = number[leader[r]]
    lists, denses = _count_up(list_number), _count_up(dense_number)
    own_list, own_dense = np.empty(count, np.int32), np.empty(count, np.int32)
    for n in range(count):
        own_list[n] = list_number[list_leader[row_list[rows[n]]]]
        own_dense[n] = dense_number[row_dense[rows[n]]] if row_dense[rows[n]] >= 0 else -1
    base, offset = np.empty(lists.size, np.int32), np.zeros(lists.size + 1, np.int32)
    for n in range(lists.size):
        one = lists[n]
        base[n] = list_number[list_leader[list_base[one]]] if list_base[one] >= 0 else -1
        offset[n + 1] = offset[n] + (ends if one == 1 else list_offset[one + 1] - list_offset[one])
    return number, rows[:count].copy(), own_list, own_dense, lists, base, offset, denses


@kernel()
def _count_up(number):  # type: ignore[no-untyped-def]
    """Number those of some that are not -1, in their order; which they are, int64 [·]."""
    found = np.empty(number.size, np.int64)
    count = 0
    for n in range(number.size):
        if number[n] >= 0:
            number[n] = count
            found[count] = n
            count += 1
    return found[:count].copy()


@kernel()
def _copy_lists(fields, base, begin, lists, out):  # type: ignore[no-untyped-def]
    """Write the tokens of some lists, ascending, one after the other.

    Args:
        fields: see `Part.fields`, of the tokens of all parts, of which each begins at ``base``.
        begin: where each list begins.
    """
    part = at = np.int64(0)
    for n in lists:
        while begin[n] >= base[part + 1] and part + 1 < fields.shape[0]:
            part += 1
        size = np.int64(begin[n + 1] - begin[n])
        copy(out.ctypes.data + 4 * at, fields[part, 0] + 4 * (begin[n] - base[part]), 4 * size)
        at += size


@kernel()
def _mark(found, numbers):  # type: ignore[no-untyped-def]
    """Set the places of some numbers."""
    for number in numbers:
        found[number] = True


@kernel()
def _leaders(keys, used):  # type: ignore[no-untyped-def]
    """For every key, uint64 [·, 2], after two that have no equals, the place of its first equal, of those in use first.

    Half of a key does for its hash.
    """
    count = keys.shape[0] + 2
    size = 16
    while size < 2 * count:
        size *= 2
    table = np.full(size, -1, np.int64)
    leader = np.arange(count)
    for wanted in (True, False):
        for i in range(2, count):
            if used[i] != wanted:
                continue
            slot = np.int64(keys[i - 2, 0] & np.uint64(size - 1))
            while table[slot] >= 0:
                other = table[slot]
                if keys[i - 2, 0] == keys[other - 2, 0] and keys[i - 2, 1] == keys[other - 2, 1]:
                    break
                slot = (slot + 1) & (size - 1)
            if table[slot] < 0:
                table[slot] = i
            leader[i] = table[slot]
    return leader
