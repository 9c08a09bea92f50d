"""Joined parts → the tables of a bundle.

Leaves out   what the parts are (part.py), walks (resolve.py).
Invariants   equal parts in equal order give equal tables; rows and lists of equal content are kept once.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.memory import kernel
from toolc.runtime.tables import Tables

from ..automata.marks import Marks
from ..lift import comb
from .joined import Joined, shift
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
    first = joined.parts[0]
    modes = joined.modes
    exits = joined.by_mode("cell_exit", "profile")
    profile, symbol = _chain_keys(joined)
    order = np.lexsort((symbol, profile))
    profiles = int(joined.base["profile"][-1])
    offset = np.zeros(profiles + 1, np.int32)
    np.cumsum(np.bincount(profile, minlength=profiles), out=offset[1:])
    chain_offset, chain = comb.pack(
        offset, symbol[order].astype(np.int32), order.astype(np.int32), max(1, int(joined.base["symbol"][-1]))
    )
    chain_exit = joined.together("chain_exit", "profile")
    chain_break = joined.breaks("chain_break", 0)
    counts = chain_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1
    source = np.repeat(profile, counts)
    leads = np.flatnonzero(chain_exit >= 0)
    edges = np.stack(np.divmod(np.unique(source[leads] * profiles + chain_exit[leads]), max(1, profiles)), axis=1)
    width = max(m.state_break.shape[1], chain_break.shape[1])
    closes = max(m.close_break.shape[1], m.owed_break.shape[1])
    row_of, rows = _rows(joined, specials)
    state_cell, cells = m.state_cell, exits.shape[0] + 2
    narrow = _narrowing(joined, decided, deciding, edges, exits, m.state_break, state_cell, profiles)
    set_offset = np.zeros(len(marks.tools) + 1, np.int32)
    np.cumsum([len(tools) for tools in marks.tools], out=set_offset[1:])
    mark_number: dict[tuple[int, ...], int] = {}  # those of the main part are the first; no other names a tool
    numbered = [
        (p, np.array([mark_number.setdefault(tuple(mark), len(mark_number)) for mark in p.arrays["mark"].tolist()]))
        for p in joined.parts
    ]
    special = specials[np.argsort(specials[:, 1], kind="stable")]
    zeros = np.zeros(2, np.int32)
    minus = np.full((2, modes), -1, np.int32)
    reserved = np.array([[0] * modes, [1] * modes], np.int32)
    assert cells == m.cell_delta.size and first.states <= state_cell.size
    arrays = {
        "symbol_class": joined.symbol_class,
        "special_token": special[:, 1],
        "special_symbol": special[:, 0],
        "state_cell": state_cell,
        "state_break": _widened(m.state_break, width),
        "cell_row": np.concatenate([reserved, row_of[joined.by_mode("cell_row", "row")]]),
        "cell_exit": np.concatenate([minus, exits]),
        "cell_delta": m.cell_delta,
        "delta": m.delta,
        "push": m.push,
        "return_offset": m.return_offset,
        "return_": m.return_,
        "chain_offset": chain_offset,
        "chain": chain,
        "chain_cell": joined.together("chain_cell", "chain_cell"),
        "chain_break": _widened(chain_break, width),
        "chain_row": row_of[joined.together("chain_row", "row")],
        "chain_exit": chain_exit,
        "chain_after": joined.together("chain_after"),
        "state_mark": np.concatenate([zeros, *(number[p.arrays["state_mark"]] for p, number in numbered)]),
        "symbol_mark": np.concatenate([number[p.arrays["symbol_mark"]] for p, number in numbered]),
        "mark": np.array(list(mark_number), np.int32).reshape(-1, 4),
        "tool_offset": set_offset,
        "tool_members": np.array([tool for tools in marks.tools for tool in tools], np.int32),
        "narrowing": narrow,
        "state_close": m.state_close,
        "close_break": _widened(m.close_break, closes),
        "close_bound": m.close_bound,
        "close_token": np.concatenate([minus, joined.by_mode("close_token")]),
        "close_after": np.concatenate([0 * minus, joined.by_mode("close_after")]),
        "owed_first": m.owed_first,
        "owed_break": _widened(m.owed_break, closes),
        "owed": m.owed,
        "forced_after": np.concatenate([zeros, joined.together("forced_after")]),
        **_forced(joined),
        **rows,
    }
    found = {
        name: np.ascontiguousarray(array, np.uint32 if name == "dense" else np.int32) for name, array in arrays.items()
    }
    return Tables(**found), _longest(edges, profiles, bool(profile.size))


def _widened(breaks: np.ndarray, width: int) -> np.ndarray:
    if breaks.shape[1] == width:
        return breaks
    out = np.zeros((breaks.shape[0], width, 2), np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out


def _chain_keys(joined: Joined) -> tuple[np.ndarray, np.ndarray]:
    """Profile and stack symbol of every chain, in the common numbering."""
    profile, imports = joined.together("chain_profile"), joined.together("chain_import")
    ends = np.cumsum([part.arrays["chain_import"].size for part in joined.parts])
    _move_chains(profile, imports, ends, joined.base["profile"], joined.imported, joined.first_import)
    return profile.astype(np.int64), joined.together("chain_symbol", "symbol")


@kernel()
def _move_chains(profile, imports, ends, base, imported, first):  # type: ignore[no-untyped-def]
    """The profiles of the chains of all parts, side by side, in the common numbering."""
    begin = 0
    for n in range(ends.size):
        for i in range(begin, ends[n]):
            profile[i] += base[n] if imports[i] < 0 else imported[first[n] + imports[i], 2]
        begin = ends[n]


def _narrowing(
    joined: Joined, decided: list[int], deciding: set[tuple[int, int]], edges: np.ndarray, exits: np.ndarray,
    state_break: np.ndarray, state_cell: np.ndarray, profiles: int,
) -> np.ndarray:  # fmt: skip
    """States from which a token decides against a tool, directly or through its exit profile."""
    found = np.zeros(state_cell.size, bool)
    found[decided] = True
    if deciding:
        yes = np.zeros(profiles + 1, bool)  # the last answers for -1
        for slot, profile in deciding:
            part = 0 if slot < 0 else joined.imports[0][slot][0]
            yes[joined.base["profile"][part] + profile] = True
        before = -1
        while before != (before := int(yes.sum())):
            yes[edges[yes[edges[:, 1]], 0]] = True
        cell = yes[exits].any(axis=1)
        owner = np.repeat(np.arange(state_cell.size), state_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1)[2:]
        found[owner[cell]] = True
    return np.flatnonzero(found)


def _longest(edges: np.ndarray, profiles: int, some: bool) -> int:
    """Chains on the longest way through the profiles."""
    length = np.ones(profiles + 1, np.int64)
    while True:
        longer = length.copy()
        np.maximum.at(longer, edges[:, 0], length[edges[:, 1]] + 1)
        if (longer == length).all():
            return int(length.max()) if some else 0
        length = longer


def _forced(joined: Joined) -> dict[str, np.ndarray]:
    """The lists of forced tokens; list 0 is empty, of every part."""
    number = joined.together("state_forced") - np.int32(1)
    ends = np.cumsum([part.arrays["state_forced"].size for part in joined.parts])
    shift(number.reshape(-1, 1), ends, joined.base["forced_list"])
    offset = np.concatenate([part.arrays["forced_offset"][2:] for part in joined.parts])
    shift(offset.reshape(-1, 1), joined.base["forced_list"][1:] - 1, joined.base["forced"])
    zeros = np.zeros(2, np.int32)
    return {
        "state_forced": np.concatenate([zeros, np.maximum(number, 0)]),
        "forced_offset": np.concatenate([zeros, offset]),
        "forced_tokens": joined.together("forced_tokens"),
    }


def _rows(joined: Joined, specials: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The number that each row of the joined numbering gets, and the rows: those in use, each content once."""
    ends = np.sort(specials[specials[:, 0] == 256, 1]).astype(np.int32)
    none = np.full(2, -1, np.int32)
    of_row = np.concatenate([np.array([0, 1], np.int32), joined.together("row_list", "list")])
    base_of = np.concatenate([none, joined.together("list_base", "list")])
    dense_of = np.concatenate([none, joined.together("row_dense", "dense")])
    used = np.zeros(int(joined.base["row"][-1]), bool)
    used[:2] = True
    for n, part in enumerate(joined.parts):
        used[part.arrays["cell_row"] + joined.base["row"][n]] = True
        used[part.arrays["chain_row"] + joined.base["row"][n]] = True
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
    tokens = np.concatenate([ends, joined.together("list_tokens")])
    sizes = np.concatenate([np.array([0, ends.size]), *(np.diff(part.arrays["list_offset"]) for part in joined.parts)])
    # The tokens of every part stand one after the other, as its lists do.
    first, sizes = (np.cumsum(sizes) - sizes)[lists], sizes[lists]
    place = np.arange(int(sizes.sum())) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    number = np.full(leader.size, -1, np.int64)
    number[rows] = np.arange(rows.size)

    def under(n: np.ndarray, kept: np.ndarray) -> np.ndarray:
        return np.where(n >= 0, np.searchsorted(kept, n), -1)

    return number[leader], {
        "row_slice": _of_rows(joined, "row_slice")[rows],
        "row_units": _of_rows(joined, "row_units")[rows],
        "row_dense": under(dense_of[rows], denses),
        "row_list": under(wanted, lists),
        "list_offset": np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        "list_tokens": tokens[place],
        "list_base": under(base_of[lists], lists),
        "dense": joined.together("dense")[denses],
    }


def _of_rows(joined: Joined, name: str) -> np.ndarray:
    return np.concatenate([np.array([-1, -1], np.int32), joined.together(name)])


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
