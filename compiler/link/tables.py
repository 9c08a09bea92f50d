"""Joined parts → the tables of a bundle.

Leaves out   what the parts are (part.py), walks (resolve.py).
Invariants   equal parts in equal order give equal tables; rows and lists of equal content are kept once.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.memory import copy, kernel
from toolc.runtime.tables import Tables

from ..automata.marks import Marks
from ..lift import comb
from ..lift.chains import lead_to, longest_chain
from .joined import Joined
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
    order = np.argsort(profile * np.int64(symbols) + symbol, kind="stable")
    offset = np.zeros(profiles + 1, np.int32)
    np.cumsum(np.bincount(profile, minlength=profiles), out=offset[1:])
    chain_offset, chain = comb.pack(offset, symbol[order].astype(np.int32), order.astype(np.int32), symbols)
    chain_exit, chain_break = found["chain_exit"], found["chain_break"]
    counts = chain_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1
    source = np.repeat(profile, counts)
    leads = np.flatnonzero(chain_exit >= 0)
    follows = np.stack([source[leads], chain_exit[leads]], axis=1)
    width = max(m.state_break.shape[1], chain_break.shape[1])
    closes = max(m.close_break.shape[1], m.owed_break.shape[1])
    row_of, rows = _rows(joined, specials, found)
    narrow = _narrowing(joined, decided, deciding, follows, exits, m.state_break, profiles)
    set_offset = np.zeros(len(marks.tools) + 1, np.int32)
    np.cumsum([len(tools) for tools in marks.tools], out=set_offset[1:])
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
        "state_break": _widened(m.state_break, width),
        "cell_row": row_of[cell_row],
        "cell_exit": exits,
        "cell_delta": m.cell_delta,
        "delta": m.delta,
        "push": m.push,
        "return_offset": m.return_offset,
        "return_": m.return_,
        "chain_offset": chain_offset,
        "chain": chain,
        "chain_cell": found["chain_cell"],
        "chain_break": _widened(chain_break, width),
        "chain_row": row_of[chain_row],
        "chain_exit": chain_exit,
        "chain_after": found["chain_after"],
        "state_mark": mark_of[found["state_mark"]],
        "symbol_mark": mark_of[found["symbol_mark"]],
        "mark": np.array(list(mark_number), np.int32).reshape(-1, 4),
        "tool_offset": set_offset,
        "tool_members": np.array([tool for tools in marks.tools for tool in tools], np.int32),
        "narrowing": narrow,
        "state_close": m.state_close,
        "close_break": _widened(m.close_break, closes),
        "close_bound": m.close_bound,
        "close_token": found["close_token"],
        "close_after": found["close_after"],
        "owed_first": m.owed_first,
        "owed_break": _widened(m.owed_break, closes),
        "owed": m.owed,
        "forced_after": found["forced_after"],
        "state_forced": _moved_forced(joined, found),
        "forced_offset": found["forced_offset"],
        "forced_tokens": found["forced_tokens"],
        **rows,
    }
    arrays = {
        name: np.ascontiguousarray(array, np.uint32 if name == "dense" else np.int32) for name, array in arrays.items()
    }
    return Tables(**arrays), int(longest_chain(follows, profiles)) if profile.size else 0


def _widened(breaks: np.ndarray, width: int) -> np.ndarray:
    if breaks.shape[1] == width:
        return breaks
    out = np.zeros((breaks.shape[0], width, 2), np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out


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


def _narrowing(
    joined: Joined, decided: list[int], deciding: set[tuple[int, int]], follows: np.ndarray, exits: np.ndarray,
    state_break: np.ndarray, profiles: int,
) -> np.ndarray:  # fmt: skip
    """States from which a token decides against a tool, directly or through its exit profile."""
    found = np.zeros(len(state_break), bool)
    found[decided] = True
    if deciding:
        yes = np.zeros(profiles, bool)
        for slot, profile in deciding:
            part = 0 if slot < 0 else joined.imports[0][slot][0]
            yes[joined.base["profile"][part] + profile] = True
        lead_to(yes, follows)
        _find_leading(exits, state_break, yes, found)
    return np.flatnonzero(found)


@kernel()
def _find_leading(exits, state_break, yes, found):  # type: ignore[no-untyped-def]
    """Mark the states of which some cell has an exit profile among some, bool [profiles], in some mode."""
    cell = np.int64(0)
    for q in range(found.size):
        more = np.int64(1)
        for b in range(state_break.shape[1]):
            more += state_break[q, b, 1]
        for i in range(cell, cell + more):
            for mode in range(exits.shape[1]):
                if exits[i, mode] >= 0 and yes[exits[i, mode]]:
                    found[q] = True
        cell += more


def _moved_forced(joined: Joined, found: dict[str, np.ndarray]) -> np.ndarray:
    """The list of forced tokens of every state; list 0 is empty, of every part."""
    number = found["state_forced"]
    _move_forced(number, joined.base["state"][1:], joined.base["forced_list"])
    return number


@kernel()
def _move_forced(number, ends, base):  # type: ignore[no-untyped-def]
    """The lists of all parts in the common numbering; 0, and what comes before the first part, stays."""
    begin = 2
    for n in range(ends.size):
        for i in range(begin, ends[n]):
            number[i] += base[n] - 1 if number[i] > 0 else 0
        begin = ends[n]


def _rows(
    joined: Joined, specials: np.ndarray, found: dict[str, np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The number that each row of the joined numbering gets, and the rows: those in use, each content once."""
    base = joined.base
    ends = np.sort(specials[specials[:, 0] == 256, 1]).astype(np.int32)
    of_row, base_of, dense_of = found["row_list"], found["list_base"], found["row_dense"]
    used = np.zeros(int(base["row"][-1]), bool)
    used[:2] = True
    _mark(used, found["cell_row"].reshape(-1))
    _mark(used, found["chain_row"])
    row_keys, list_keys = zip(*(part.keys for part in joined.parts), strict=True)
    leader = _leaders(np.concatenate(row_keys), used)
    list_leader = _leaders(np.concatenate(list_keys), np.ones(base_of.size, bool))
    rows = np.flatnonzero(used & (leader == np.arange(leader.size)))
    base_of = np.where(base_of >= 0, list_leader[base_of], -1)
    wanted = list_leader[of_row[rows]]
    kept = np.zeros(base_of.size, bool)
    kept[:2] = kept[wanted] = True
    kept[base_of[wanted][base_of[wanted] >= 0]] = True
    lists = np.flatnonzero(kept)
    denses = np.unique(dense_of[rows][dense_of[rows] >= 0])
    # Where each list begins if the tokens of all parts stood one after the other, as their lists do.
    begin = found["list_offset"]
    begin[2:] += np.int32(ends.size)
    offset = np.zeros(lists.size + 1, np.int64)
    np.cumsum(begin[lists + 1] - begin[lists], out=offset[1:])
    tokens = np.empty(offset[-1], np.int32)
    tokens[: ends.size] = ends
    _copy_lists(joined.fields(TOKENS)[:, 0].copy(), base["token"] + ends.size, begin, lists[2:], tokens[ends.size :])
    number = np.full(leader.size, -1, np.int32)
    number[rows] = np.arange(rows.size)

    def under(n: np.ndarray, kept: np.ndarray) -> np.ndarray:
        return np.where(n >= 0, np.searchsorted(kept, n), -1)

    return number[leader], {
        "row_slice": found["row_slice"][rows],
        "row_units": found["row_units"][rows],
        "row_dense": under(dense_of[rows], denses),
        "row_list": under(wanted, lists),
        "list_offset": offset,
        "list_tokens": tokens,
        "list_base": under(base_of[lists], lists),
        "dense": np.concatenate([part.arrays["dense"] for part in joined.parts])[denses],
    }


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
