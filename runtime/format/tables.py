"""The arrays of a bundle and the numbers that stand in them.

Leaves out   the file: see container.py and bundle.py. What makes an index safe: checks.py. The meaning of the arrays:
             docs/architecture.md.
Arrays       docs/architecture.md, "bundle arrays"; each is a field here under the same name, `return` as `return_`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .ops import END_OF_TURN

# name in the file -> (dtype, shape after the first dimension; "B", "M", "W" are bound by the first that has them)
ARRAYS: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "symbol_class": ("int32", ()),
    "special_token": ("int32", ()),
    "special_symbol": ("int32", ()),
    "state_cell": ("int32", ()),
    "state_break": ("int32", ("B", 2)),
    "cell_row": ("int32", ("M",)),
    "cell_exit": ("int32", ("M",)),
    "cell_delta": ("int32", ()),
    "delta": ("int32", (2,)),
    "push": ("int32", (4,)),
    "return_offset": ("int32", ()),
    "return": ("int32", (2,)),
    "chain_offset": ("int32", ()),
    "chain": ("int32", (2,)),
    "chain_cell": ("int32", ()),
    "chain_break": ("int32", ("B", 2)),
    "chain_row": ("int32", ()),
    "chain_exit": ("int32", ()),
    "state_mark": ("int32", ()),
    "symbol_mark": ("int32", ()),
    "mark": ("int32", (4,)),
    "tool_offset": ("int32", ()),
    "tool_members": ("int32", ()),
    "narrowing": ("int32", ()),
    "row_slice": ("int32", ()),
    "row_units": ("int32", ()),
    "row_dense": ("int32", ()),
    "row_list": ("int32", ()),
    "list_offset": ("int32", ()),
    "list_tokens": ("int32", ()),
    "list_base": ("int32", ()),
    "dense": ("uint32", ("W",)),
    "state_close": ("int32", ()),
    "close_break": ("int32", ("C", 2)),
    "close_bound": ("int32", ()),
    "close_token": ("int32", ("M",)),
    "close_after": ("int32", ("M",)),
    "owed_first": ("int32", ()),
    "owed_break": ("int32", ("C", 2)),
    "owed": ("int32", ()),
    "chain_after": ("int32", ()),
    "forced_offset": ("int32", ()),
    "forced_tokens": ("int32", ()),
    "state_forced": ("int32", ()),
    "forced_after": ("int32", ()),
}
# How arrays are stored (packing.py): numbers that mostly climb as differences,
CLIMBING = frozenset(
    "state_cell state_close cell_delta chain_offset chain_cell row_list list_offset list_tokens".split()
)
COMBS = frozenset(("delta", "return", "chain"))  # and these by the runs of a row
UNSETTLED, AROUND, TEXT, REASONING, NAME, ARGUMENTS, KEY, VALUE, STRING = range(-1, 8)  # kinds of marks
MAX_CAPACITY = 1 << 16
MAX_COUNT = 1 << 30
MAX_BREAKS = 64  # bounds that counters are held against in one place
MAX_RANGE_CELLS = 1 << 27
NEVER = 1 << 29  # a bound on the tokens needed where none is known


@dataclass(frozen=True, eq=False)
class Tables:
    """The arrays of a bundle; read-only."""

    symbol_class: np.ndarray
    special_token: np.ndarray
    special_symbol: np.ndarray
    state_cell: np.ndarray
    state_break: np.ndarray
    cell_row: np.ndarray
    cell_exit: np.ndarray
    cell_delta: np.ndarray
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
    state_close: np.ndarray
    close_break: np.ndarray
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
        made.__dict__.update(fields, addresses={name: addresses[name] for name in ARRAYS})
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

    @property
    def breaks(self) -> int:
        """B, the breakpoints per state."""
        return int(self.state_break.shape[1])

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
    def knows_no_close(self) -> bool:
        """All states share one close cell, which has no bound (`without_close`)."""
        return self.close_bound.size == 1

    @property
    def end_of_turn_tokens(self) -> np.ndarray:
        """int32 [·], ascending: the ids that end the turn."""
        return self.special_token[self.special_symbol == END_OF_TURN]


FIELDS = tuple("return_" if name == "return" else name for name in ARRAYS)
FIELD_OF = list(zip(ARRAYS, FIELDS, strict=True))


def tools_of(meta: dict[str, Any]) -> list[Any]:
    """The tools of a bundle's spec, if it had any."""
    spec = meta.get("spec")
    found = spec.get("tools") if isinstance(spec, dict) else None
    return list(found) if isinstance(found, list) else []


_CLOSE = frozenset(  # the arrays about closing
    name for name in ARRAYS if any(part in name for part in ("close", "owed", "forced", "chain_after"))
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
        close_break=filled(0, states, 0, 2),
        close_bound=filled(NEVER, 1),
        close_token=filled(-1, 1, modes),
        close_after=filled(NEVER, 1, modes),
        owed_first=filled(0, symbols),
        owed_break=filled(0, symbols, 0, 2),
        owed=filled(0, 1),
        chain_after=filled(NEVER, arrays["chain_row"].size),
        state_forced=filled(0, states),
        forced_after=filled(0, states),
        forced_offset=filled(0, 2),
        forced_tokens=filled(0, 0),
    )
