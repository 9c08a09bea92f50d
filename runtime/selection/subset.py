"""A bundle for some of its tools, made from the whole one when it is needed: no compiling, a few rows anew.

What tells tools apart is their name. The transitions that decide for a tool that is left out are taken out, and so is
all that texts can then not reach (reachable.py); made anew are the rows of the states from which a token can decide
(`narrowing`), and of the shortest close what went by way of the others. The masks equal those of a bundle that was
compiled for these tools alone, on the entries that both have; near the end of a budget they may differ, mostly by a
few tokens less, since what tokens can cost there is bounded from what the whole bundle knew.

Leaves out   what texts can reach (reachable.py), the shortest close (completion.py); marks, and whether tools can be
             told apart at all (compiler/pushdown/marks.py).
Invariants   the whole bundle is not changed; the subset is checked as every bundle is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import ArgumentError, DecodeError
from ..expected import did_you_mean, named_kind
from ..format.bundle import expect_bundle
from ..format.ops import ACTION_BITS, ACTION_MASK
from ..format.tables import Tables, tools_of, without_close
from .completion import closing_of
from .reachable import Reached, reached_of
from .trie_walk import Walker

if TYPE_CHECKING:
    from ..format.bundle import Bundle

Record = tuple[int, int]  # node of the trie, R


def subset(bundle: Bundle, tools: Iterable[str]) -> Bundle:
    """A bundle for some of the tools only, in states of its own; nothing is compiled.

    Its masks are those of a bundle that was compiled for these tools alone. Making it takes as long as the choice is
    large, some twenty milliseconds for eight tools: keep it for requests with the same choice.

    Args:
        bundle: the whole one, or a subset of it.
        tools: names; their order does not matter.

    Raises:
        DecodeError: a tool is unknown, no tools were selected, or calls of different tools can look alike to their end.
    """
    from ..format.bundle import Bundle

    expect_bundle(bundle, "subset(bundle)")
    if isinstance(tools, (str, bytes)) or not isinstance(tools, Iterable):
        hint = f"write [{tools!r}]" if isinstance(tools, str) else None
        place = "subset(tools)"
        raise ArgumentError(place=place, found=named_kind(tools), expected="a list of names of tools", hint=hint)
    chosen, known = dict.fromkeys(tools), dict.fromkeys(str(tool["name"]) for tool in bundle.tools)
    for name in chosen:
        if name not in known:
            raise DecodeError(
                "no such tool",
                place=bundle.name,
                found=repr(name),
                expected="one of " + ", ".join(sorted(known)),
                hint=did_you_mean(name, list(known)),
            )
    if not chosen:
        raise DecodeError(
            "no tools selected", place=bundle.name, expected="at least one tool",
            hint='for text without calls take the entry "none"',
        )  # fmt: skip
    if len(chosen) == len(known):
        return bundle
    if not bundle.meta.get("separable"):
        raise DecodeError(
            "the tools of this bundle cannot be chosen from",
            place=bundle.name,
            found="texts in which a call of one tool ends while another's may go on",
            hint="compile the tools that are wanted",
        )
    entry = _entries_of(bundle, chosen)
    numbers = [i for i, tool in enumerate(tools_of(bundle.meta)) if tool["name"] in chosen]
    reached = reached_of(bundle.tables, _dead_marks(bundle.tables, numbers), entry.values())
    entry = {name: int(reached.state[q]) for name, q in entry.items()}
    tables, longest = _Overlay(reached, bundle, numbers, entry.values()).tables()
    meta: dict[str, Any] = {
        **bundle.meta,
        "entry": entry,
        "subset": [name for name in known if name in chosen],
        "max_chain": max(bundle.meta["max_chain"], longest),
        "stack_symbols": int(tables.return_offset.size),
    }
    if "ends" in meta:
        meta["ends"] = [[int(reached.state[q]), some] for q, some in meta["ends"] if reached.state[q] >= 0]
    name = f"{bundle.name} with {len(chosen)} of {len(known)} tools"
    return Bundle(tables, meta, bundle.vocab, name, bundle.declared, bundle.meta.get("spec"))


class _Entries(NamedTuple):
    """The entries of a bundle: where each begins, by its name; and by what stands before "/" in their names, their
    numbers.

    owners: by state: of which tools' entries it is one, "tool:" before their names.
    """

    names: list[str]
    states: list[int]
    by_head: dict[str, list[int]]
    owners: dict[int, set[str]]


def _all_entries(bundle: Bundle) -> _Entries:
    """Made once for a bundle."""
    found: _Entries | None = bundle.__dict__.get("_entries")
    if found is None:
        states: dict[str, int] = bundle.meta["entry"]
        found = bundle.__dict__["_entries"] = _Entries(list(states), list(states.values()), {}, {})
        for number, (name, q) in enumerate(states.items()):
            head = name.split("/")[0]
            found.by_head.setdefault(head, []).append(number)
            if head.startswith("tool:"):
                found.owners.setdefault(q, set()).add(head)
    return found


def _entries_of(bundle: Bundle, chosen: Iterable[str]) -> dict[str, int]:
    """The entries that are no other tool's; react's "none" may be one of a tool."""
    names, states, by_head, owners = _all_entries(bundle)
    mine = {f"tool:{name}" for name in chosen}
    heads = mine.intersection(by_head) | {head for head in by_head if not head.startswith("tool:")}
    numbers = sorted(number for head in heads for number in by_head[head])
    return {names[n]: states[n] for n in numbers if owners.get(states[n], mine) <= mine}


def _dead_marks(t: Tables, chosen: list[int]) -> np.ndarray:
    """bool [marks]: those of tools of which none is chosen, by their numbers."""
    member = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.isin(t.tool_members, chosen))])
    lost = member[t.tool_offset[1:]] == member[t.tool_offset[:-1]]  # sets without a chosen tool
    dead: np.ndarray = np.concatenate([lost, [False]])[t.mark[:, 2]]  # -1, which is any tool, is the last
    return dead


class _Overlay:
    """The tables of a subset, as they grow at the ends of what is reached of the whole."""

    def __init__(self, reached: Reached, bundle: Bundle, chosen: list[int], entries: Iterable[int]) -> None:
        self.entries, self.thinned = entries, reached.thinned
        t = self.t = reached.tables
        self.vocab, self.name = bundle.vocab, bundle.name
        self.soft_depth = int(bundle.meta["soft_depth"])
        self.dead_state = _dead_marks(t, chosen)[t.state_mark]
        self.walker = Walker(t, bundle.vocab, reached.before)
        self.cell_row, self.cell_exit = t.cell_row.copy(), t.cell_exit.copy()
        self.rows: dict[bytes, int] = {}
        self.row_tokens: list[np.ndarray] = []
        self.profiles: dict[tuple[int, int, tuple[Record, ...]], tuple[int, bool]] = {}
        self.chains: list[dict[int, int]] = []  # per new profile: stack symbol → chain
        self.chain_cell: list[int] = []
        self.chain_break: list[int] = []
        self.chain_row: list[int] = []
        self.chain_exit: list[int] = []
        self.chain_from: list[int] = []  # the chain cell of the whole that each is a part of

    # -- walks -------------------------------------------------------------------------------------------------------

    def tables(self) -> tuple[Tables, int]:
        """The tables, and the longest way through new profiles."""
        t = self.t
        cells: list[int] = []
        jobs: list[tuple[int, int, int]] = []  # state, counter, mode
        for q in t.narrowing[~self.dead_state[t.narrowing]].tolist():
            for p, c in counters(t.breaks[t.state_break[q]]).items():
                cells += [int(t.state_cell[q]) + p] * t.modes
                jobs += [(q, c, mode) for mode in range(t.modes)]
        walks = self.walker.states(np.array(jobs, np.int32).reshape(-1, 3))
        for cell, (_, _, mode), (tokens, records, missing) in zip(cells, jobs, walks, strict=True):
            exit_, changed = self._profile(mode, int(self.cell_exit[cell, mode]), records)
            if missing or changed:
                self.cell_row[cell, mode] = self._row(tokens)
                self.cell_exit[cell, mode] = exit_
        return self._joined(), self._longest()

    def _profile(self, mode: int, before: int, records: list[Record]) -> tuple[int, bool]:
        """The profile of some records, a part of those of the profile before; and whether anything below changed."""
        t = self.t
        if not records:
            return -1, before >= 0
        key = mode, before, tuple(records)
        known = self.profiles.get(key)
        if known is not None:
            return known
        number = int(t.chain_offset.size) + len(self.chains)
        mine: dict[int, int] = {}
        self.chains.append(mine)
        base = int(t.chain_offset[before])
        changed = False
        for g in np.flatnonzero(t.chain[base : base + t.return_offset.size, 0] == base).tolist():
            old = int(t.chain[base + g, 1])
            found: dict[int, tuple[np.ndarray, int]] = {}
            for p, saved in counters(t.breaks[t.chain_break[old]]).items():
                starts = [start for record in records if (start := self._back(g, record, saved)) is not None]
                tokens, further, missing = self.walker.below(starts, mode)
                after, below = self._profile(mode, int(t.chain_exit[t.chain_cell[old] + p]), further)
                changed = changed or missing or below
                found[p] = tokens, after
            mine[g] = int(t.chain_cell.size) + len(self.chain_cell)
            self.chain_cell.append(int(t.chain_row.size) + len(self.chain_row))
            self.chain_break.append(int(t.chain_break[old]))
            for p in range(int(t.breaks[t.chain_break[old], :, 1].sum()) + 1):
                tokens, after = found.get(p, (np.zeros(0, np.int32), -1))
                self.chain_row.append(self._row(tokens))
                self.chain_exit.append(after)
                self.chain_from.append(int(t.chain_cell[old]) + p)
        self.profiles[key] = number, changed
        return number, changed

    def _back(self, g: int, record: Record, saved: int) -> tuple[int, int, int, int] | None:
        """Where a walk goes on below a stack symbol."""
        node, r = record
        base = int(self.t.return_offset[g])
        owner, value = self.t.return_[base + r].tolist()
        if owner != base:
            return None
        c = (saved, saved + 1, 0, 1)[value & ACTION_MASK]
        return node + 1, int(self.vocab.node_skip[node]), value >> ACTION_BITS, c

    def _row(self, tokens: np.ndarray) -> int:
        key = tokens.tobytes()
        number = self.rows.get(key)
        if number is None:
            number = self.rows[key] = self.t.rows + len(self.rows)
            self.row_tokens.append(tokens.copy())  # of a buffer of two vocabularies
        return number

    # -- tables ------------------------------------------------------------------------------------------------------

    def _joined(self) -> Tables:
        t, width = self.t, self.vocab.words
        lists: list[np.ndarray] = []
        bits: list[np.ndarray] = []
        dense_of: list[int] = []
        for tokens in self.row_tokens:
            many = tokens.size > width
            dense_of.append(int(t.dense.shape[0]) + len(bits) if many else -1)
            lists.append(tokens[:0] if many else tokens)
            if many:
                row = np.zeros(width * 32, np.uint8)
                row[tokens] = 1
                bits.append(np.packbits(row, bitorder="little").view("<u4"))
        symbols, profiles = int(t.return_offset.size), len(self.chains)
        begin = int(t.chain.shape[0])
        offset = begin + np.arange(profiles, dtype=np.int32) * symbols
        comb = np.tile(np.array([-1, 0], np.int32), (profiles * symbols, 1))
        for base, mine in zip(offset.tolist(), self.chains, strict=True):
            for g, chain in mine.items():
                comb[base - begin + g] = base, chain
        none = np.full(len(lists), -1)
        sizes = np.cumsum([tokens.size for tokens in lists]) + t.list_offset[-1]
        close = closing_of(t, self.vocab, self.entries, self.thinned, self.soft_depth, self.name)
        joined = replace(
            t,
            cell_row=self.cell_row,
            cell_exit=self.cell_exit,
            chain_offset=_join(t.chain_offset, offset),
            chain=_join(t.chain, comb),
            chain_cell=_join(t.chain_cell, self.chain_cell),
            chain_break=_join(t.chain_break, self.chain_break),
            chain_row=_join(t.chain_row, self.chain_row),
            chain_exit=_join(t.chain_exit, self.chain_exit),
            row_slice=_join(t.row_slice, none),
            row_units=_join(t.row_units, none),
            row_dense=_join(t.row_dense, dense_of),
            row_list=_join(t.row_list, np.arange(len(lists)) + t.list_offset.size - 1),
            list_offset=_join(t.list_offset, sizes),
            list_tokens=np.concatenate([t.list_tokens, *lists]),
            list_base=_join(t.list_base, none),
            dense=np.concatenate([t.dense, np.array(bits, np.uint32).reshape(-1, width)]),
        )
        joined = replace(joined, chain_check=_join(t.chain_check, t.chain_check[self.chain_from]))
        if close is None:
            return without_close({field.name: getattr(joined, field.name) for field in fields(joined)})
        after = close.pop("chain_after", t.chain_after)
        return replace(joined, **close, chain_after=_join(after, after[self.chain_from]))

    def _longest(self) -> int:
        """The longest way through new profiles; each leads to later ones only by exits of its chains."""
        t = self.t
        length: dict[int, int] = {}
        first = int(t.chain_offset.size)
        for number in range(len(self.chains) - 1, -1, -1):
            following = {-1}
            for chain in self.chains[number].values():
                k = chain - int(t.chain_cell.size)
                begin = self.chain_cell[k] - int(t.chain_row.size)
                count = int(t.breaks[self.chain_break[k], :, 1].sum()) + 1
                following.update(self.chain_exit[begin : begin + count])
            length[first + number] = 1 + max(length.get(e, 0) for e in following)
        return max(length.values(), default=0)


def counters(breaks: np.ndarray) -> dict[int, int]:
    """Phase → a counter value that has it, for every phase that some value has."""
    pairs = [(at, count) for at, count in breaks.tolist() if count]
    found: dict[int, int] = {}
    for c in sorted({0, *(at - k for at, count in pairs for k in range(count + 1) if at >= k)}):
        found.setdefault(sum(min(max(c - at + count, 0), count) for at, count in pairs), c)
    return found


def _join(array: np.ndarray, more: Any) -> np.ndarray:
    return np.concatenate([array, np.asarray(more, dtype=array.dtype).reshape(len(more), *array.shape[1:])])
