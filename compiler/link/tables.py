"""Joined parts → the tables of a bundle.

Leaves out   what the parts are (part.py), walks (resolve.py).
Invariants   equal parts in equal order give equal tables; rows and lists of equal content are kept once.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.tables import Tables

from ..automata.marks import Marks
from ..lift import comb
from .joined import Joined
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
    exits = _with_base(joined, "cell_exit", "profile", modes)
    profile, symbol = _chain_keys(joined)
    order = np.lexsort((symbol, profile))
    profiles = int(joined.base["profile"][-1])
    offset = np.zeros(profiles + 1, np.int32)
    np.cumsum(np.bincount(profile, minlength=profiles), out=offset[1:])
    chain_offset, chain = comb.pack(
        offset, symbol[order].astype(np.int32), order.astype(np.int32), max(1, int(joined.base["symbol"][-1]))
    )
    chain_exit = _moved(joined, "chain_exit", "profile")
    chain_break = joined.breaks("chain_break", 0)
    counts = chain_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1
    source = np.repeat(profile, counts)
    edges = np.unique(np.stack([source[chain_exit >= 0], chain_exit[chain_exit >= 0]], axis=1), axis=0)
    width = max(m.state_break.shape[1], chain_break.shape[1])
    closes = max(m.close_break.shape[1], m.owed_break.shape[1])
    row_of, rows = _rows(joined, specials)
    state_cell, cells = m.state_cell, exits.shape[0] + 2
    narrow = _narrowing(joined, decided, deciding, edges, exits, m.state_break, state_cell, profiles)
    set_offset = np.zeros(len(marks.tools) + 1, np.int32)
    np.cumsum([len(tools) for tools in marks.tools], out=set_offset[1:])
    special = specials[np.argsort(specials[:, 1], kind="stable")]
    zeros = np.zeros(2, np.int32)
    assert cells == m.cell_delta.size and first.states <= state_cell.size
    arrays = {
        "symbol_class": joined.symbol_class,
        "special_token": special[:, 1],
        "special_symbol": special[:, 0],
        "state_cell": state_cell,
        "state_break": _widened(m.state_break, width),
        "cell_row": np.concatenate([[[0] * modes, [1] * modes], row_of[_with_base(joined, "cell_row", "row", modes)]]),
        "cell_exit": np.concatenate([np.full((2, modes), -1), exits]),
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
        "state_mark": np.concatenate([zeros, joined.together("state_mark")]),
        "symbol_mark": joined.together("symbol_mark"),
        "mark": np.array(marks.table, np.int32).reshape(-1, 4),
        "tool_offset": set_offset,
        "tool_members": np.array([tool for tools in marks.tools for tool in tools], np.int32),
        "narrowing": narrow,
        "state_close": m.state_close,
        "close_break": _widened(m.close_break, closes),
        "close_bound": m.close_bound,
        "close_token": np.concatenate([np.full((2, modes), -1), _in_modes(joined, "close_token", modes)]),
        "close_after": np.concatenate([np.zeros((2, modes)), _in_modes(joined, "close_after", modes)]),
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


def _moved(joined: Joined, name: str, group: str) -> np.ndarray:
    """An array of all parts whose numbers begin elsewhere, but for -1."""
    found = [np.where(p.arrays[name] < 0, -1, p.arrays[name] + b) for p, b in _parts(joined, group)]
    return np.concatenate(found)


def _parts(joined: Joined, group: str):  # type: ignore[no-untyped-def]
    return zip(joined.parts, joined.base[group].tolist(), strict=False)


def _with_base(joined: Joined, name: str, group: str, modes: int) -> np.ndarray:
    """An array by cell and mode; parts of one mode are never read in another, so it stands for both."""
    found = []
    for part, base in _parts(joined, group):
        x = part.arrays[name][:, [min(mode, part.modes - 1) for mode in range(modes)]]
        found.append(np.where(x < 0, -1, x + base))
    return np.concatenate(found)


def _in_modes(joined: Joined, name: str, modes: int) -> np.ndarray:
    columns = [[min(mode, part.modes - 1) for mode in range(modes)] for part in joined.parts]
    return np.concatenate([part.arrays[name][:, some] for part, some in zip(joined.parts, columns, strict=True)])


def _widened(breaks: np.ndarray, width: int) -> np.ndarray:
    out = np.zeros((breaks.shape[0], width, 2), np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out


def _chain_keys(joined: Joined) -> tuple[np.ndarray, np.ndarray]:
    """Profile and stack symbol of every chain, in the common numbering."""
    profile, symbol = [], []
    for n, part in enumerate(joined.parts):
        imports = part.arrays["chain_import"]
        bases = np.array(
            [joined.base["profile"][other] for other, _ in joined.imports[n]] + [joined.base["profile"][n]]
        )
        profile.append(part.arrays["chain_profile"] + bases[imports])  # -1 is the last
        symbol.append(part.arrays["chain_symbol"] + joined.base["symbol"][n])
    return np.concatenate(profile), np.concatenate(symbol)


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
    """The lists of forced tokens; list 0 is empty."""
    number, offset, at = [np.zeros(2, np.int64)], [np.zeros(2, np.int64)], 0
    for part, base in _parts(joined, "forced_list"):
        own = part.arrays["state_forced"].astype(np.int64)
        number.append(np.where(own > 0, own + base - 1, 0))
        offset.append(part.arrays["forced_offset"][2:] + at)
        at += part.arrays["forced_tokens"].size
    return {
        "state_forced": np.concatenate(number),
        "forced_offset": np.concatenate(offset),
        "forced_tokens": joined.together("forced_tokens"),
    }


def _rows(joined: Joined, specials: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The number that each row of the joined numbering gets, and the rows: those in use, each content once."""
    parts = joined.parts
    ends = np.sort(specials[specials[:, 0] == 256, 1]).astype(np.int32)
    row_list, list_base, row_dense = [np.array([0, 1])], [np.array([-1, -1])], [np.array([-1, -1])]
    used = np.zeros(int(joined.base["row"][-1]), bool)
    used[:2] = True
    for n, part in enumerate(parts):
        x = part.arrays
        row_list.append(x["row_list"] + joined.base["list"][n])
        list_base.append(np.where(x["list_base"] < 0, -1, x["list_base"] + joined.base["list"][n]))
        row_dense.append(np.where(x["row_dense"] < 0, -1, x["row_dense"] + joined.base["dense"][n]))
        used[x["cell_row"] + joined.base["row"][n]] = True
        used[x["chain_row"] + joined.base["row"][n]] = True
    leader = _leaders([part.arrays["row_key"] for part in parts], used)
    list_leader = _leaders([part.arrays["list_key"] for part in parts], None)
    rows = np.flatnonzero(used & (leader == np.arange(leader.size)))
    of_row, base_of, dense_of = (np.concatenate(x) for x in (row_list, list_base, row_dense))
    base_of = np.where(base_of >= 0, list_leader[base_of], -1)
    wanted = list_leader[of_row[rows]]
    lists = np.unique(np.concatenate([[0, 1], wanted, base_of[wanted][base_of[wanted] >= 0]]))
    denses = np.unique(dense_of[rows][dense_of[rows] >= 0])
    tokens = np.concatenate([ends, *(part.arrays["list_tokens"] for part in parts)])
    begin = [np.array([0, 0])]
    at = ends.size
    size = [np.array([0, ends.size])]
    for part in parts:
        offset = part.arrays["list_offset"]
        begin.append(offset[:-1].astype(np.int64) + at)
        size.append(np.diff(offset))
        at += int(part.arrays["list_tokens"].size)
    first, sizes = np.concatenate(begin)[lists], np.concatenate(size)[lists]
    place = np.arange(int(sizes.sum())) + np.repeat(first - (np.cumsum(sizes) - sizes), sizes)
    dense = np.concatenate([part.arrays["dense"] for part in parts])
    number = np.full(leader.size, -1, np.int64)
    number[rows] = np.arange(rows.size)

    def under(n: np.ndarray, kept: np.ndarray) -> np.ndarray:
        return np.where(n >= 0, np.searchsorted(kept, n), -1)

    return number[leader], {
        "row_slice": _of_rows(joined, "row_slice")[rows],
        "row_units": _of_rows(joined, "row_units")[rows],
        "row_dense": under(dense_of[rows], denses),
        "row_list": under(wanted, lists),
        "list_offset": np.cumsum([0, *sizes.tolist()]),
        "list_tokens": tokens[place],
        "list_base": under(base_of[lists], lists),
        "dense": dense[denses],
    }


def _of_rows(joined: Joined, name: str) -> np.ndarray:
    return np.concatenate([np.array([-1, -1]), joined.together(name)])


def _leaders(keys: list[np.ndarray], used: np.ndarray | None) -> np.ndarray:
    """For every key, after two reserved ones, the place of its first equal, of those that are used first."""
    reserved = np.zeros((2, keys[0].shape[1]), np.uint32)  # no digests, but different
    reserved[1] = 1
    joined = np.concatenate([reserved, *keys]).view(np.uint64)
    columns = [*joined.T]
    order = np.lexsort(columns if used is None else [~used, *columns])
    ranked = joined[order]
    new = np.ones(len(joined), bool)
    new[1:] = (ranked[1:] != ranked[:-1]).any(axis=1)
    head = order[new][np.cumsum(new) - 1]
    out = np.empty(len(joined), np.int64)
    out[order] = head
    return out
