"""Compile one part: the tables of a grammar's frames, in numbers of their own, and what callers need to know.

A part is compiled as any grammar is. Its root frame, which only names its entries, is then left out, and so are the
stubs; symbols are told apart as finely as any part may need, so that parts can stand side by side as they are.

Leaves out   the rows that look into called parts (resolve.py), joining (numbering.py, tables.py), files (cache.py).
Invariants   states are numbered from 2; 0 and 1 are dead and finished in every part. Pushes of imports enter state 0.
Arrays       those of docs/format.md, and
             push_import int32 [pushes]: which import is entered, -1 for none;
             chain_profile, chain_symbol int32 [chains]: profile and stack symbol; chain_import int32 [chains]: the
             import whose profile it is, -1 for the part's own;
             outer_profile, outer_entry int32 [·]: profiles with which an entry's frame is left;
             outer_offset int32 [· + 1], outer_records int32 [·]: the content of each, as in walk.py;
             mark int32 [·, 5]: its distinct marks, which state_mark and symbol_mark number;
             alike int32 [classes]: equal where all its states treat two classes alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import END_OF_TURN, KIND_BITS, KIND_MASK, POP, PUSH, return_of
from toolc.runtime.format.tables import Tables
from toolc.runtime.jit.memory import address_of
from toolc.runtime.selection.comb import CombRows, rows_at

from ..lift import comb
from ..lift.chains import chain_keys
from ..pushdown.pushdown import Automaton
from ..terminals.workspace import ADD_ONE
from .call_tails import Opener
from .row_hashes import keys
from .split import STUB
from .stubs import Apart, Stubs
from .symbol_classes import common, leaders, spread

ROWS = ("row_slice", "row_units", "row_dense", "row_list", "list_offset", "list_tokens", "list_base", "dense")

# What stands side by side in a bundle: what walks read, and what else there is.
READ = (
    "state_cell", "state_break", "breaks", "cell_delta", "cell_default", "push", "push_import", "return_offset",
    "return", "state_close", "close_break", "close_breaks", "close_bound", "owed_first", "owed_break", "owed",
)  # fmt: skip
REST = (
    "cell_row", "cell_exit", "chain_profile", "chain_symbol", "chain_import", "chain_cell", "chain_break", "chain_row",
    "chain_exit", "chain_after", "state_mark", "symbol_mark", "close_token", "close_after", "state_forced",
    "forced_after", "forced_offset", "forced_tokens", "row_slice", "row_units", "row_dense", "row_list", "list_offset",
    "list_base",
)  # fmt: skip
DELTA, TOKENS = ("delta",), ("list_tokens",)
_MOST_OVER = 16  # sets of fewer classes over which a part is kept

GROUPS = {  # an array of each group of arrays whose numbers are of one kind; profiles are counted apart
    "state": "state_cell", "cell": "cell_delta", "push": "push", "symbol": "return_offset", "close": "close_bound",
    "owed": "owed", "chain": "chain_cell", "chain_cell": "chain_row", "forced": "forced_tokens",
    "return": "return", "delta": "delta", "row": "row_slice", "list": "list_base", "dense": "dense",
    "token": "list_tokens", "mark": "mark", "profile": "", "forced_list": "forced_offset", "break": "breaks",
    "close_break": "close_breaks",
}  # fmt: skip
# The first of these lists is empty and of every part; of lists of tokens there is one more offset.
_LESS = np.array([{"forced_list": 2, "break": 1, "close_break": 1}.get(group, 0) for group in GROUPS])


class PartEntry(NamedTuple):
    """Where a part is entered, and what its callers have to know.

    Attributes:
        free, shallow: the states in mode 0 and in mode 1.
        close: least weight and bound of the way out, and what is due of the frame (../lift/completion.py).
        left: the R with which its frame is left.
    """

    free: int
    shallow: int
    close: tuple[int, int, int]
    left: tuple[int, ...]


@dataclass
class Part:
    """A part.

    Attributes:
        arrays: see the top.
        entries: of every rule that can be called.
        imports: (digest of a unit, entry) of every stub.
        modes: 1 or 2.
        depth: most frames at a time, the first of imports among them; without bound where there are two modes.
        deeper: frames beyond the soft depth.
        profiles: how many.
        most_left: the largest R.
        places: of the main part: its entries by rule.
        counts: as those of the lift.
    """

    arrays: dict[str, np.ndarray]
    entries: list[PartEntry]
    imports: list[tuple[bytes, int]]
    modes: int
    depth: int
    deeper: int
    profiles: int
    most_left: int
    places: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Of its arrays."""
        return sum(array.nbytes for array in self.arrays.values())

    @property
    def states(self) -> int:
        """How many, without those that every part has."""
        return int(self.arrays["state_cell"].size)

    @cached_property
    def sizes(self) -> np.ndarray:
        """int64 [`GROUPS`]: how many numbers there are of each."""
        return np.array([self.arrays[name].shape[0] if name else self.profiles for name in GROUPS.values()]) - _LESS

    def fields(self, names: tuple[str, ...]) -> np.ndarray:
        """int64 [names, 3]: of some arrays, C-contiguous int32, the address, how many rows, and numbers in each."""
        known = self._fields.get(names)
        if known is None:
            found: list[int] = []
            for name in names:
                array = self.arrays[name]
                assert array.dtype == np.int32 and array.flags.c_contiguous
                shape = array.shape
                if len(shape) == 1:
                    found += address_of(array), shape[0], 1
                else:
                    columns = shape[1] if len(shape) == 2 else shape[1] * shape[2]
                    found += address_of(array.reshape(-1)), shape[0], columns
            known = self._fields[names] = np.array(found, np.int64).reshape(-1, 3)
        return known

    @cached_property
    def _fields(self) -> dict[tuple[str, ...], np.ndarray]:
        return {}

    def outer(self, entry: int) -> tuple[list[int], np.ndarray, np.ndarray]:
        """The profiles with which an entry's frame is left; and what is in each, int32 [·], and where it begins."""
        found = self._outer.get(entry)
        if found is None:
            x = self.arrays
            offset, records = x["outer_offset"], x["outer_records"]
            some = np.flatnonzero(x["outer_entry"] == entry)
            begin = np.zeros(some.size + 1, np.int32)
            np.cumsum(offset[some + 1] - offset[some], out=begin[1:])
            held = [records[offset[n] : offset[n + 1]] for n in some.tolist()]
            found = x["outer_profile"][some].tolist(), np.concatenate([np.zeros(0, np.int32), *held]), begin
            self._outer[entry] = found
        return found

    @cached_property
    def _outer(self) -> dict[int, tuple[list[int], np.ndarray, np.ndarray]]:
        return {}

    @cached_property
    def distinct_marks(self) -> list[tuple[int, ...]]:
        """Its marks."""
        return list(map(tuple, self.arrays["mark"].tolist()))

    @cached_property
    def keys(self) -> tuple[np.ndarray, np.ndarray]:
        """Of its rows and lists: see row_hashes.py."""
        return keys(self.arrays)

    def _rows(self) -> CombRows:
        """Of its transitions; more bytes than the part, so they are not kept."""
        x = self.arrays
        return rows_at(x["delta"], x["cell_delta"], x["cell_default"], x["alike"].size)

    @cached_property
    def leaving(self) -> np.ndarray:
        """bool [classes]: with which some state leaves its frame."""
        return _leaving(self._rows(), self.arrays["alike"].size)

    @cached_property
    def _over(self) -> dict[bytes, Part]:
        return {}

    def over(self, classes: np.ndarray) -> Part:
        """The same part over other classes of symbols: class n reads as ``classes[n]``, int64 [·], did before."""
        key = classes.tobytes()
        made = self._over.get(key)
        if made is None:
            rows = self._rows()
            same = np.arange(max(self.states + 2, self.arrays["push"].shape[0]))
            offset, column, value = spread(rows.offset, rows.column, rows.value, classes, same, same)
            base, default, delta = comb.pack_with_defaults(offset[:-1], column, value, classes.size)
            moved = {"cell_delta": base[rows.of], "cell_default": default[rows.of], "delta": delta}
            made = replace(self, arrays={**self.arrays, **moved})
            made.keys, made._outer = self.keys, self._outer
            made.leaving = _leaving(rows, self.arrays["alike"].size)[classes]
            made._fields[READ], made._fields[REST] = self.fields(READ).copy(), self.fields(REST)
            for name in ("cell_delta", "cell_default"):
                made._fields[READ][READ.index(name)] = made.fields((name,))[0]
            if len(self._over) == _MOST_OVER:
                self._over.clear()
            self._over[key] = made
        return made


def _leaving(rows: CombRows, classes: int) -> np.ndarray:
    """bool [classes]: with which some of the states that have these rows leaves its frame."""
    found = np.zeros(classes, bool)
    found[rows.column[rows.value & KIND_MASK == POP]] = True
    return found


def entries_of(a: Automaton, entries: Sequence[tuple[int, Opener]]) -> list[tuple[int, tuple[int, ...]]]:
    """Per entry of a part's automaton the number of the push that enters it, and the R with which it is left.

    Args:
        entries: see `Unit`.

    Raises Apart: the rule is more or less than one group.
    """
    found = []
    symbols: dict[int, int] = {}  # stack symbol → rule
    for k, (rule, opener) in enumerate(entries):
        q = a.start
        for byte in b"%d;" % k:
            op = int(a.ops[a.state_row[q], a.symbol_class[byte]])
            if op == 0 or op & KIND_MASK >= PUSH:
                raise Apart("an entry is no group")
            q = op >> KIND_BITS
        row = a.ops[a.state_row[q]]
        places = np.flatnonzero(row)
        together = sum(1 for other, _ in entries if other == rule)
        if isinstance(opener, str) and opener not in a.specials:
            raise Apart("an entry is no group")
        if a.thresholds[q] or places.size != together or (row[places] & KIND_MASK != PUSH).any():
            raise Apart("an entry is no group")
        symbol = opener[0] if isinstance(opener, bytes) else 257 + a.specials.index(opener)
        place = int(a.symbol_class[symbol])
        if row[place] == 0 or np.count_nonzero(a.symbol_class == place) != 1:
            raise Apart("an entry begins with more than its symbol")
        push = int(row[place]) >> KIND_BITS
        g, _, _, action = a.pushes[push]
        left = tuple(r for (symbol, r) in sorted(a.returns) if symbol == g)
        for r in left:
            target, _ = a.returns[g, r]
            after = a.ops[a.state_row[target]]
            if a.thresholds[target] or np.flatnonzero(after).tolist() != [int(a.symbol_class[256])] or action > ADD_ONE:
                raise Apart("an entry goes on after its group")
        found.append((push, left))
        if symbols.setdefault(g, rule) != rule:
            raise Apart("entries are one")
    if len(symbols) != len({rule for rule, _ in entries}):
        raise Apart("an entry is more than one group")
    return found


class Cut:
    """The tables of an automaton without its root frame and its stubs, see `Part`.

    Args:
        rows: of its transitions, by cell.
        entry: what `entries_of` gives, of a part; None for the main part, which keeps its root.
        left: per stub the R with which the import is left.
        specials: see `Split`.
        others: parts beside which it has as few classes as they all need; None: it has as many as any may need.

    Attributes:
        symbol_class: int32 [symbols].
        representative: int64 [classes]: which of the classes that any part may need stands for each.
        rows: of the transitions in the part's numbers, by cell.
    """

    def __init__(
        self, a: Automaton, t: Tables, rows: CombRows, stubs: Stubs, entry: list[tuple[int, tuple[int, ...]]] | None,
        left: list[tuple[int, ...]], specials: Sequence[str], others: Iterable[Part] | None,
    ) -> None:  # fmt: skip
        self.a, self.t, self.stubs = a, t, stubs
        keep = np.ones(t.states, bool)
        keep[:2] = False
        keep[stubs.inside] = False
        roots: set[int] = set()
        if entry is not None:
            keep[(np.array([under.size for under in a.sets]) == 0)[a.top]] = False  # of the root frame
            roots = {a.pushes[push][0] for push, _ in entry}
        self.kept = np.flatnonzero(keep)
        self.state = np.zeros(t.states, np.int64)
        self.state[1] = 1
        self.state[self.kept] = np.arange(self.kept.size) + 2
        self.symbols = np.array([g for g in range(a.stack_symbols) if g not in roots], np.int64)
        self.symbol = np.full(a.stack_symbols, -1, np.int64)
        self.symbol[self.symbols] = np.arange(self.symbols.size)
        self.pushes = [p for p, push in enumerate(a.pushes) if push[0] not in roots]
        self.push = np.zeros(len(a.pushes), np.int64)
        self.push[self.pushes] = np.arange(len(self.pushes))
        self.left = left
        # Each symbol is a class: the bytes, the end of turn, then the special tokens.
        self.symbol_class = np.arange(END_OF_TURN + 1 + len(specials), dtype=np.int32)
        unread = a.symbol_class[STUB if entry is None else END_OF_TURN]  # in no state that is kept
        self.class_of = np.full(self.symbol_class.size, unread, np.int64)
        self.class_of[: END_OF_TURN + 1] = a.symbol_class[: END_OF_TURN + 1]
        for n, name in enumerate(a.specials, END_OF_TURN + 1):
            self.class_of[END_OF_TURN + 1 + specials.index(name)] = a.symbol_class[n]
        self.cells, self.cell = _cells_of(t, "state_cell", "state_break", self.kept)
        rows = rows.at(self.cell)
        self.alike = leaders(rows.offset, rows.column, rows.value, t.classes)[self.class_of]
        self.representative = np.arange(self.class_of.size)
        if others is not None:
            alike = [self.alike, *(other.arrays["alike"] for other in others)]
            self.symbol_class, self.representative = common(self.symbol_class, alike)
            self.class_of = self.class_of[self.representative]
        moved = spread(rows.offset, rows.column, rows.value, self.class_of, self.state, self.push)
        self.rows = CombRows(rows.of, *moved)

    def arrays(self) -> dict[str, np.ndarray]:
        t, kept, cells, cell = self.t, self.kept, self.cells, self.cell
        closes, close = _cells_of(t, "state_close", "close_break", kept)
        rows = self.rows
        base, default, delta = comb.pack_with_defaults(rows.offset[:-1], rows.column, rows.value, self.class_of.size)
        return_offset, return_ = self._returns()
        symbols = self.symbols
        owed, owed_at = _cells_of(t, "owed_first", "owed_break", symbols)
        push = t.push[self.pushes].astype(np.int64)
        push_import = np.array([self.stubs.push.get(p, -1) for p in self.pushes], np.int32)
        push[:, 0] = self.symbol[push[:, 0]]
        push[:, 1:3] = np.where(push_import[:, None] < 0, self.state[push[:, 1:3]], 0)
        profile, symbol, chain, outer = self._chains()
        chain_cells, chain_cell = _cells_of(t, "chain_cell", "chain_break", chain)
        self.outer = outer
        found = {
            "state_cell": _first(cells),
            "state_break": t.state_break[kept],
            "breaks": t.breaks,
            "mark": t.mark,
            "state_mark": t.state_mark[kept],
            "state_close": _first(closes),
            "close_break": t.close_break[kept],
            "close_breaks": t.close_breaks,
            "state_forced": t.state_forced[kept],
            "forced_after": t.forced_after[kept],
            "cell_row": t.cell_row[cell],
            "cell_exit": t.cell_exit[cell],
            "cell_delta": base[rows.of],
            "cell_default": default[rows.of],
            "delta": delta,
            "push": push.reshape(-1, 4),
            "push_import": push_import,
            "return_offset": return_offset,
            "return": return_,
            "symbol_mark": t.symbol_mark[symbols],
            "owed_first": _first(owed),
            "owed_break": t.owed_break[symbols],
            "owed": t.owed[owed_at],
            "chain_profile": profile,
            "chain_symbol": symbol,
            "chain_import": np.full(profile.size, -1),
            "chain_cell": _first(chain_cells),
            "chain_break": t.chain_break[chain],
            "chain_row": t.chain_row[chain_cell],
            "chain_exit": t.chain_exit[chain_cell],
            "chain_after": t.chain_after[chain_cell],
            "close_bound": t.close_bound[close],
            "close_token": t.close_token[close],
            "close_after": t.close_after[close],
            "forced_offset": t.forced_offset,
            "forced_tokens": t.forced_tokens,
        }
        return (
            {name: np.ascontiguousarray(array, np.int32) for name, array in found.items()}
            | {name: getattr(t, name) for name in ROWS}
            | {"alike": self.alike.astype(np.int32)}
        )

    def _returns(self) -> tuple[np.ndarray, np.ndarray]:
        a = self.a
        entries: dict[tuple[int, int], int] = {}
        for (g, r), (target, action) in a.returns.items():
            if self.symbol[g] < 0:
                continue
            value = return_of(int(self.state[target]), action)
            numbers: tuple[int, ...] = (r,)
            if g in self.stubs.symbol:
                number, own = self.stubs.symbol[g]
                if own != r:
                    raise Apart("a stub is left in two ways")
                numbers = self.left[number]
            for number in numbers:
                entries[int(self.symbol[g]), number] = value
        keys = sorted(entries)
        symbol, completed = np.array(keys, np.int32).reshape(-1, 2).T
        offset = np.searchsorted(symbol, np.arange(self.symbols.size + 1))
        width = max(a.completions, int(completed.max(initial=-1)) + 1)
        return comb.pack(offset, completed.copy(), np.array([entries[key] for key in keys], np.int32), width)

    def _chains(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, list[int]]]:
        """Profile, stack symbol and number of every chain that is kept; and stack symbol of the root → its profiles."""
        e_, g_, number = chain_keys(self.t)
        kept = self.symbol[g_] >= 0
        outer: dict[int, list[int]] = {}
        for e, symbol in zip(e_[~kept].tolist(), g_[~kept].tolist(), strict=True):
            outer.setdefault(symbol, []).append(e)
        return e_[kept], self.symbol[g_[kept]], number[kept], outer


def _cells_of(t: Tables, first: str, break_: str, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How many cells each of some has, int64 [·], and which they are, one after the other, int64 [·].

    Args:
        first, break_: the tables of the first cell and of the list of breakpoints.
    """
    own, counts = getattr(t, first)[some].astype(np.int64), t.cells_of(break_, some)
    return counts, np.repeat(own, counts) + within(counts)


def within(counts: np.ndarray) -> np.ndarray:
    """0, 1, … of each of some runs."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _first(counts: np.ndarray) -> np.ndarray:
    return np.cumsum(counts) - counts
