"""Register the tables of a bundle: their names, shapes, dtypes, the range of their numbers, and what these mean.

`TABLES` is the one list: the checks of checks.py and the page docs/format.md are made from it. `Tables` holds the
arrays of one bundle; each is a field under its name, `return` as `return_`.

Leaves out   the file: container.py, bundle.py. What an op is: ops.py. How tables are read: ../reference.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from .ops import END_OF_TURN

UNSETTLED, AROUND, TEXT, REASONING, NAME, ARGUMENTS, KEY, VALUE, STRING = range(-1, 8)  # kinds of marks
MAX_CAPACITY = 1 << 16
MAX_COUNT = 1 << 30
MAX_BREAKS = 64  # bounds that counters are held against in one place
MAX_RANGE_CELLS = 1 << 27
MAX_REGISTER_WORDS = 65  # of a register; a word has 32 bits
FIRST_BIT = 32  # of a member: word 0 of a register is a number, what the members so far took off the shortest close
NEVER = 1 << 29  # a bound on the tokens needed where none is known
_COUNTERS = ((0, MAX_COUNT),)
_BOUNDS = ((0, NEVER + 1),)


class Table(NamedTuple):
    """One table of a bundle.

    Attributes:
        counts: what the first index counts. Tables that count the same are equally long; those that count "… + 1" hold
            offsets into another table, from 0 on, and one more at the end.
        meaning: what a number of the table says, for docs/format.md.
        values: (low, high) of its numbers, low <= number < high: one pair for all, or one for each column; `high` is a
            number or what is counted. None where the numbers are ops, bits or entries of a comb.
        width: what the other indices count. B breakpoints of a state, C of its completion, M modes, W words of a row,
            G words of a register.
        dtype: of the numbers.
        columns: what errors call each column, where each has values of its own.
    """

    counts: str
    meaning: str
    values: tuple[tuple[int, int | str], ...] = ()
    width: tuple[str | int, ...] = ()
    dtype: str = "int32"
    columns: tuple[str, ...] = ()


# The registry: name in the file → table, in the order of the file.
TABLES: dict[str, Table] = {
    "symbol_class": Table("symbols", "class of a byte or special symbol", ((0, "symbols"),)),
    "special_token": Table("specials", "id that is read as one symbol, ascending", ((0, "tokens"),)),
    "special_symbol": Table("specials", "its symbol, 256 or more", ((END_OF_TURN, "symbols"),)),
    "state_cell": Table("states", "first cell of a state", ((0, "cells"),)),
    "state_break": Table("states", "breakpoints of its counter", ((0, "breakpoint lists"),)),
    "breaks": Table("breakpoint lists", "breakpoint (at, count); list 0 has none", _COUNTERS, ("B", 2)),
    "cell_row": Table("cells", "row, by mode", ((0, "rows"),), ("M",)),
    "cell_exit": Table("cells", "exit profile, by mode; -1 for none", ((-1, "profiles"),), ("M",)),
    "cell_delta": Table("cells", "base of its row of `delta`", ((0, "transition bases"),)),
    "cell_default": Table(
        "cells",
        "base of its default row, asked where its own has no entry; its own base: none",
        ((0, "transition bases"),),
    ),
    "delta": Table("transitions", "comb: (owner, op) of a cell and a symbol class", (), (2,)),
    "push": Table(
        "pushes",
        "(stack symbol, state entered in mode 0, in mode 1, action on the caller's counter before it is saved)",
        ((0, "stack symbols"), (0, "states"), (0, "states"), (0, 4)),
        (4,),
        columns=("stack symbol", "state", "state", "action"),
    ),
    "return_offset": Table("stack symbols", "base of its row of `return`", ((0, "return bases"),)),
    "return": Table("returns", "comb: (owner, return) of a stack symbol and a return set", (), (2,)),
    "chain_offset": Table("profiles", "base of its row of `chain`", ((0, "chain bases"),)),
    "chain": Table("chain entries", "comb: (owner, chain) of an exit profile and a stack symbol", (), (2,)),
    "chain_cell": Table("chains", "first chain cell", ((0, "chain cells"),)),
    "chain_break": Table(
        "chains", "breakpoints of the counter saved beside the stack symbol", ((0, "breakpoint lists"),)
    ),
    "chain_row": Table("chain cells", "row", ((0, "rows"),)),
    "chain_exit": Table("chain cells", "next exit profile, -1 for none", ((-1, "profiles"),)),
    "state_mark": Table("states", "mark of a state", ((0, "marks"),)),
    "symbol_mark": Table("stack symbols", "mark of the opening and closing symbols of a frame", ((0, "marks"),)),
    "mark": Table(
        "marks",
        "(kind, age, tool set or -1 for any, ended, member: 0, or 1 + 2 * its register bit + 1 if it is required)",
        ((UNSETTLED, STRING + 1), (-1, 1 << 8), (-1, "tool sets"), (0, 2), (0, 64 * MAX_REGISTER_WORDS - 63)),
        (5,),
        columns=("kind", "age", "tools", "ended", "member"),
    ),
    "tool_offset": Table("tool sets + 1", "first member of a tool set"),
    "tool_members": Table("tool members", "number of a tool in meta `spec`, ascending in a set", ((0, "tools"),)),
    "narrowing": Table("deciding states", "state from which some token decides between tools", ((0, "states"),)),
    "row_slice": Table("rows", "slice whose tokens belong to the row, -1 for none", ((-1, "slices"),)),
    "row_units": Table("rows", "only tokens of at most so many units, -1 for all", ((-1, MAX_COUNT),)),
    "row_dense": Table("rows", "dense row that is toggled, -1 for none", ((-1, "dense rows"),)),
    "row_list": Table("rows", "list of tokens that are toggled", ((0, "lists"),)),
    "list_offset": Table("lists + 1", "first token of a list"),
    "list_tokens": Table("list tokens", "id, ascending in a list", ((0, "tokens"),)),
    "list_base": Table("lists", "list that is toggled too, -1 for none; a base has none itself", ((-1, "lists"),)),
    "dense": Table("dense rows", "bit t & 31 of word t >> 5: token t", (), ("W",), "uint32"),
    "state_register": Table("states", "register rule; rule 0 tests and sets nothing", ((0, "register rules"),)),
    "register_rule": Table(
        "register rules",
        "(test that has to pass on entering, bit set on entering or -1, test that has to pass before a pop, "
        "what is added to word 0 on entering)",
        ((0, "register tests"), (-1, "register bits"), (0, "register tests"), (0, NEVER)),
        (4,),
        columns=("entering", "bit", "popping", "cost"),
    ),
    "test_wants": Table("register tests", "1: some bit of the mask has to be clear, 0: none; test 0 passes", ((0, 2),)),
    "test_mask": Table("register tests", "bit b & 31 of word b >> 5: the test looks at bit b", (), ("G",), "uint32"),
    "cell_check": Table("cells", "check list, by mode; list 0 is empty", ((0, "check lists"),), ("M",)),
    "chain_check": Table(
        "chain cells", "check list, for the register saved beside the stack symbol", ((0, "check lists"),)
    ),
    "check_offset": Table("check lists + 1", "first check of a check list"),
    "check": Table(
        "checks",
        "(token, test, another test or 0): the token is taken out of the mask unless they pass; a list has it once",
        ((0, "tokens"), (0, "register tests"), (0, "register tests")),
        (3,),
        columns=("token", "test", "test"),
    ),
    "state_way": Table("states", "way list; list 0 is empty", ((0, "way lists"),)),
    "way_offset": Table("way lists + 1", "first way of a way list"),
    "way": Table(
        "ways",
        "(token, test): the first that passes leads on to the end, in place of close_token",
        ((0, "tokens"), (0, "register tests")),
        (2,),
        columns=("token", "test"),
    ),
    "state_close": Table("states", "first close cell of a state", ((0, "close cells"),)),
    "close_break": Table("states", "breakpoints of the close cells", ((0, "close breakpoint lists"),)),
    "close_breaks": Table("close breakpoint lists", "breakpoint (at, count); list 0 has none", _COUNTERS, ("C", 2)),
    "close_bound": Table("close cells", "so many tokens are enough to leave the frame, or to end", _BOUNDS),
    "close_token": Table("close cells", "token that brings the bound down, by mode; or -1", ((-1, "tokens"),), ("M",)),
    "close_after": Table("close cells", "enough after any token of the row, by mode", _BOUNDS, ("M",)),
    "owed_first": Table("stack symbols", "first owed cell", ((0, "owed cells"),)),
    "owed_break": Table("stack symbols", "breakpoints of the saved counter", ((0, "close breakpoint lists"),)),
    "owed": Table("owed cells", "so many tokens are enough to leave the frame once what is above it is over", _BOUNDS),
    "chain_after": Table("chain cells", "the most that is enough after any token that goes on below", _BOUNDS),
    "forced_offset": Table("forced lists + 1", "first token of a forced list"),
    "forced_tokens": Table("forced tokens", "id, in the order of reading", ((0, "tokens"),)),
    "state_forced": Table("states", "list of the tokens that are the only way on; 0 is empty", ((0, "forced lists"),)),
    "forced_after": Table("states", "close_bound after the forced tokens", _BOUNDS),
}
# How tables are stored (packing.py): numbers that mostly climb as differences,
CLIMBING = frozenset(
    "state_cell state_close cell_delta cell_default chain_offset chain_cell row_list list_offset list_tokens".split()
)
COMBS = frozenset(("delta", "return", "chain"))  # and these by the runs of a row


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """The arrays of a bundle; read-only."""

    symbol_class: np.ndarray
    special_token: np.ndarray
    special_symbol: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    breaks: np.ndarray
    cell_row: np.ndarray
    cell_exit: np.ndarray
    cell_delta: np.ndarray
    cell_default: np.ndarray
    delta: np.ndarray
    push: np.ndarray
    return_offset: np.ndarray
    return_: np.ndarray
    chain_offset: np.ndarray
    chain: np.ndarray
    chain_cell: np.ndarray
    chain_break: np.ndarray
    chain_row: np.ndarray
    chain_exit: np.ndarray
    state_mark: np.ndarray
    symbol_mark: np.ndarray
    mark: np.ndarray
    tool_offset: np.ndarray
    tool_members: np.ndarray
    narrowing: np.ndarray
    row_slice: np.ndarray
    row_units: np.ndarray
    row_dense: np.ndarray
    row_list: np.ndarray
    list_offset: np.ndarray
    list_tokens: np.ndarray
    list_base: np.ndarray
    dense: np.ndarray
    state_register: np.ndarray
    register_rule: np.ndarray
    test_wants: np.ndarray
    test_mask: np.ndarray
    cell_check: np.ndarray
    chain_check: np.ndarray
    check_offset: np.ndarray
    check: np.ndarray
    state_way: np.ndarray
    way_offset: np.ndarray
    way: np.ndarray
    state_close: np.ndarray
    close_break: np.ndarray
    close_breaks: np.ndarray
    close_bound: np.ndarray
    close_token: np.ndarray
    close_after: np.ndarray
    owed_first: np.ndarray
    owed_break: np.ndarray
    owed: np.ndarray
    chain_after: np.ndarray
    forced_offset: np.ndarray
    forced_tokens: np.ndarray
    state_forced: np.ndarray
    forced_after: np.ndarray

    def __post_init__(self) -> None:
        self._protect(FIELDS)

    def _protect(self, fields: Iterable[str]) -> None:
        """Make arrays read-only and contiguous."""
        held = self.__dict__
        for name in fields:
            flags = held[name].flags
            if flags.writeable or not flags.c_contiguous:
                view = np.ascontiguousarray(held[name]).view()
                view.setflags(write=False)
                held[name] = view

    @staticmethod
    def from_arrays(arrays: dict[str, np.ndarray], addresses: dict[str, int] | None = None) -> Tables:
        """From arrays under their names in the file; others are ignored.

        Args:
            addresses: where they lie, for arrays that are read-only and contiguous already.
        """
        fields = {field: arrays[name] for name, field in FIELD_OF}
        if addresses is None:
            return Tables(**fields)
        made = object.__new__(Tables)  # nothing is left to do for `__post_init__`
        made.__dict__.update(fields, addresses={name: addresses[name] for name in TABLES})
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled without addresses, which are those of these arrays in this process."""
        return Tables.from_arrays, (self.arrays(),)

    def but(self, **arrays: np.ndarray) -> Tables:
        """The same with other arrays for some, by their field names."""
        made = object.__new__(Tables)
        made.__dict__.update({field: self.__dict__[field] for field in FIELDS}, **arrays)
        made._protect(arrays)
        return made

    def __repr__(self) -> str:
        arrays = self.arrays()
        return f"<Tables: {len(arrays)} arrays, {sum(array.nbytes for array in arrays.values()):,} bytes>"

    def arrays(self) -> dict[str, np.ndarray]:
        """Under their names in the file, in its order."""
        held = self.__dict__
        return {name: held[field] for name, field in FIELD_OF}

    @cached_property
    def addresses(self) -> dict[str, int]:
        """Where every array lies, by its name in the file, for kernels that take numbers only (memory.py)."""
        from ..jit.memory import address_of

        return {
            name: address_of(array if array.ndim == 1 else array.reshape(-1)) for name, array in self.arrays().items()
        }

    @property
    def states(self) -> int:
        return int(self.state_cell.size)

    @property
    def cells(self) -> int:
        return int(self.cell_delta.size)

    def cells_of(self, break_: str, some: np.ndarray | slice = slice(None)) -> np.ndarray:
        """int64 [owners]: how many cells each of some has, one for each phase, by the lists that a table names."""
        lists = self.breaks if break_ in ("state_break", "chain_break") else self.close_breaks
        found: np.ndarray = (lists[:, :, 1].sum(axis=1, dtype=np.int64) + 1)[getattr(self, break_)[some]]
        return found

    @property
    def modes(self) -> int:
        """M."""
        return int(self.cell_row.shape[1])

    @property
    def rows(self) -> int:
        return int(self.row_slice.size)

    @cached_property
    def classes(self) -> int:
        return int(self.symbol_class.max()) + 1

    @property
    def register_words(self) -> int:
        """G."""
        return int(self.test_mask.shape[1])

    @property
    def has_registers(self) -> bool:
        """Whether some state tests or sets a bit."""
        return len(self.register_rule) > 1

    @property
    def knows_no_close(self) -> bool:
        """All states share one close cell, which has no bound (`without_close`)."""
        return self.close_bound.size == 1

    @property
    def end_of_turn_tokens(self) -> np.ndarray:
        """int32 [·], ascending: the ids that end the turn."""
        return self.special_token[self.special_symbol == END_OF_TURN]


FIELDS = tuple("return_" if name == "return" else name for name in TABLES)
FIELD_OF = list(zip(TABLES, FIELDS, strict=True))


@cache
def counted(counts: str) -> tuple[str, int]:
    """("lists", 1) of "lists + 1", ("rows", 0) of "rows"."""
    return counts.removesuffix(" + 1"), int(counts.endswith(" + 1"))


# What the registry's tables count and name, in the order of `counts_of`.
COUNTED = (
    *("tokens", "slices", "tools", "register bits"),
    *dict.fromkeys(counted(table.counts)[0] for table in TABLES.values()),
    *("transition bases", "return bases", "chain bases"),
)


def counts_of(t: Tables, tokens: int, slices: int, tools: int) -> dict[str, int]:
    """How many there are of all that is counted: "states" → their number, and so on; shapes have been checked.

    Args:
        tokens: ids of the vocabulary.
        slices: of the vocabulary.
        tools: of the spec.
    """
    found = {"tokens": tokens, "slices": slices, "tools": tools, "register bits": 32 * t.register_words}
    for name, field in FIELD_OF:
        what, more = counted(TABLES[name].counts)
        found[what] = len(getattr(t, field)) - more
    found["transition bases"] = found["transitions"] - t.classes + 1
    found["return bases"] = found["returns"] + 1
    found["chain bases"] = found["chain entries"] - found["stack symbols"] + 1
    return found


def tools_of(meta: dict[str, Any]) -> list[Any]:
    """The tools of a bundle's spec, if it had any."""
    spec = meta.get("spec")
    found = spec.get("tools") if isinstance(spec, dict) else None
    return list(found) if isinstance(found, list) else []


def without_registers(states: int, cells: int, modes: int, chain_cells: int) -> dict[str, np.ndarray]:
    """The arrays about registers, by field name, of tables that have none."""

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros(shape, np.int32)

    return {
        "state_register": zeros(states),
        "register_rule": np.array([[0, -1, 0, 0]], np.int32),
        "test_wants": zeros(1),
        "test_mask": np.zeros((1, 1), np.uint32),
        "cell_check": zeros(cells, modes),
        "chain_check": zeros(chain_cells),
        "check_offset": zeros(2),
        "check": zeros(0, 3),
        "state_way": zeros(states),
        "way_offset": zeros(2),
        "way": zeros(0, 2),
    }


_CLOSE = frozenset(  # the arrays about closing
    name for name in TABLES if any(part in name for part in ("close", "owed", "forced", "chain_after"))
)


def without_close(arrays: dict[str, np.ndarray]) -> Tables:
    """Tables that know no way to close and no forced tokens, from all other arrays by their field names."""
    arrays = {name: array for name, array in arrays.items() if name not in _CLOSE}

    def filled(value: int, *shape: int) -> np.ndarray:
        return np.full(shape, value, np.int32)

    states, symbols, modes = arrays["state_cell"].size, arrays["return_offset"].size, arrays["cell_row"].shape[1]
    return Tables(
        **arrays,
        state_close=filled(0, states),
        close_break=filled(0, states),
        close_breaks=filled(0, 1, 0, 2),
        close_bound=filled(NEVER, 1),
        close_token=filled(-1, 1, modes),
        close_after=filled(NEVER, 1, modes),
        owed_first=filled(0, symbols),
        owed_break=filled(0, symbols),
        owed=filled(0, 1),
        chain_after=filled(NEVER, arrays["chain_row"].size),
        state_forced=filled(0, states),
        forced_after=filled(0, states),
        forced_offset=filled(0, 2),
        forced_tokens=filled(0, 0),
    )
