"""Place parts side by side in one numbering: which part starts where, and the machine that walks read.

Leaves out   the tables of a bundle (tables.py), walks (walk.py).
Invariants   the first part keeps its numbers of states, pushes and stack symbols. States 0 and 1, cells 0 and 1 are the
             dead and the finished one; no part has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from toolc.runtime.format.ops import ACTION_BITS, KIND_BITS, PUSH
from toolc.runtime.format.tables import NEVER
from toolc.runtime.jit.memory import copy, kernel, read_int
from toolc.runtime.selection.comb import CombRows

from ..terminals.offsets import offsets
from .part import DELTA, GROUPS, READ, Part
from .walk import Machine, bytes_to_call

BY_MODE = frozenset(("cell_row", "cell_exit", "close_token", "close_after"))

_NUMBERS = {  # arrays that hold numbers of one group, which are moved
    "state_cell": "cell", "cell_delta": "delta", "cell_default": "delta", "return_offset": "return",
    "state_close": "close", "state_break": "break", "chain_break": "break", "close_break": "close_break",
    "owed_break": "close_break", "state_forced": "forced_list",
    "owed_first": "owed", "cell_row": "row", "cell_exit": "profile", "chain_symbol": "symbol",
    "chain_cell": "chain_cell", "chain_row": "row", "chain_exit": "profile", "state_mark": "mark",
    "symbol_mark": "mark", "forced_offset": "forced", "row_dense": "dense", "row_list": "list", "list_offset": "token",
    "list_base": "list",
}  # fmt: skip
_HEAD = {  # the rows before those of the parts: of the dead and the finished state, of the rows and lists of all
    "state_cell": (0, 1), "state_break": (0, 0), "breaks": (0,), "cell_delta": (0, 1), "cell_default": (0, 1),
    "state_close": (0, 1), "close_break": (0, 0), "close_breaks": (0,),
    "close_bound": (NEVER, 0), "cell_row": (0, 1), "cell_exit": (-1, -1), "state_mark": (0, 0),
    "close_token": (-1, -1), "close_after": (0, 0), "state_forced": (0, 0), "forced_after": (0, 0),
    "forced_offset": (0, 0), "row_slice": (-1, -1), "row_units": (-1, -1), "row_dense": (-1, -1), "row_list": (0, 1),
    "list_offset": (0, 0, 0), "list_base": (-1, -1),
}  # fmt: skip
_OF_ALL = {
    "state": 2, "cell": 2, "close": 2, "row": 2, "list": 2, "mark": 1, "forced_list": 1, "break": 1, "close_break": 1,
}  # fmt: skip
_RESERVED = np.array([*(_OF_ALL.get(group, 0) for group in GROUPS), 0])  # numbers before those of the parts, …
_DELTA = list(GROUPS).index("delta")  # … and of these, one more than there are classes
_SKIPPED = {  # so many rows of each part are of what the head stands for
    "forced_offset": 2, "list_offset": 1, "breaks": 1, "close_breaks": 1,
}  # fmt: skip
_OF_FIRST = frozenset(("state_break", "chain_break", "close_break", "owed_break", "state_forced"))  # 0 is of all parts


class _Layout(NamedTuple):
    """Of some arrays: the groups by which they are moved, int64 [·]; which are by mode; head int32 [·, 4]: the rows
    before those of the parts, their number last; skip int64 [·]: see `_SKIPPED`; least int64 [·]: the first number
    that is moved."""

    group: np.ndarray
    by_mode: np.ndarray
    head: np.ndarray
    skip: np.ndarray
    least: np.ndarray


@cache
def _layout(names: tuple[str, ...]) -> _Layout:
    groups = list(GROUPS)
    head = np.zeros((len(names), 4), np.int32)
    for n, name in enumerate(names):
        values = _HEAD.get(name, ())
        head[n, : len(values)], head[n, 3] = values, len(values)
    return _Layout(
        np.array([groups.index(_NUMBERS[name]) if name in _NUMBERS else -1 for name in names]),
        np.array([name in BY_MODE for name in names]),
        head,
        np.array([_SKIPPED.get(name, 0) for name in names]),
        np.array([int(name in _OF_FIRST) for name in names]),
    )


class Joined:
    """Parts in one numbering.

    Attributes:
        parts: the first, then all that it calls, each once, in the order of first use.
        imports: per part, per import: (number of the part, entry).
        base: per group of arrays where each part begins, and after the last the end; of profiles too.
        width: number of symbol classes.
    """

    def __init__(self, parts: list[Part], imports: list[list[tuple[int, int]]], symbol_class: np.ndarray) -> None:
        self.parts, self.imports, self.symbol_class = parts, imports, symbol_class
        self.width = int(symbol_class.max()) + 1
        sizes = np.zeros((len(parts) + 1, len(GROUPS) + 1), np.int64)  # the last is of what is not moved
        sizes[0] = _RESERVED
        sizes[0, _DELTA] = self.width + 1
        for n, part in enumerate(parts, 1):
            sizes[n, :-1] = part.sizes
        self._base = np.ascontiguousarray(sizes.cumsum(axis=0).T)
        self.base = dict(zip(GROUPS, self._base, strict=False))
        self.modes = max(part.modes for part in parts)

    @staticmethod
    def of(first: Part, library: Mapping[bytes, Part], symbol_class: np.ndarray) -> Joined:
        """A part and all that it calls, of a library by digest."""
        parts = [first]
        number: dict[bytes, int] = {}
        imports: list[list[tuple[int, int]]] = []
        for part in parts:
            for digest, _ in part.imports:
                if digest not in number:
                    number[digest] = len(parts)
                    parts.append(library[digest])
            imports.append([(number[digest], entry) for digest, entry in part.imports])
        return Joined(parts, imports, symbol_class)

    def behind(self, first: Part) -> Joined:
        """The same parts behind another first one, which calls what the first does."""
        return Joined([first, *self.parts[1:]], self.imports, self.symbol_class)

    def together(self, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Some arrays of all parts, each int32 [·] or more, with what is before them, in the common numbering.

        An array by mode of parts that have one mode is never read in another, so it stands for both. Where parts have
        fewer columns than others, as of breakpoints, they get zeros. What `_NUMBERS` does not name is not moved.
        """
        layout, fields = _layout(names), self.fields(names)
        rows = (fields[:, :, 1] - layout.skip).sum(axis=0) + layout.head[:, 3]
        widths = np.where(layout.by_mode, self.modes, fields[:, :, 2].max(axis=0))
        out = np.empty(int(rows @ widths), np.int32)
        _gather(fields, self._base, layout, widths, out)
        found, begin = {}, 0
        for name, count, width in zip(names, rows.tolist(), widths.tolist(), strict=True):
            dimensions = self.parts[0].arrays[name].ndim
            end = begin + count * width
            shape = (count, width) if dimensions == 2 else (count, width // 2, 2)
            found[name] = out[begin:end] if dimensions == 1 else out[begin:end].reshape(shape)
            begin = end
        return found

    def fields(self, names: tuple[str, ...]) -> np.ndarray:
        """int64 [parts, names, 3]: see `Part.fields`."""
        found = np.empty((len(self.parts), len(names), 3), np.int64)
        for n, part in enumerate(self.parts):
            found[n] = part.fields(names)
        return found

    @cached_property
    def imported(self) -> np.ndarray:
        """int64 [·, 3]: of every import, part by part: its state in mode 0 and in mode 1, where its profiles begin."""
        states, profiles = self.base["state"], self.base["profile"]
        return np.array(
            [
                (*(q + int(states[other]) - 2 for q in self.parts[other].entries[entry][:2]), int(profiles[other]))
                for imports in self.imports
                for other, entry in imports
            ],
            np.int64,
        ).reshape(-1, 3)

    @cached_property
    def first_import(self) -> np.ndarray:
        """int64 [parts + 1]: where the imports of each begin."""
        return offsets(map(len, self.imports))

    def delta(self) -> np.ndarray:
        """The comb of transitions; the dead state's row begins at 0, that of the finished one at 1."""
        base = self.base["delta"]
        out = np.empty((int(base[-1]) + self.width, 2), np.int32)
        out[: base[0]] = out[base[-1] :] = -1, 0
        end = 1 + int(self.symbol_class[256])
        out[end] = 1, 1 << KIND_BITS
        _gather_delta(self.fields(DELTA)[:, 0].copy(), base, self.base["state"], self.base["push"], out)
        return out

    def machine(
        self, narrow_state: np.ndarray, narrow_push: np.ndarray, rows: CombRows, ahead: int
    ) -> tuple[Machine, bytes]:
        """What walks read, and the bytes that can stand before what opens a part in the first one.

        Args:
            narrow_state, narrow_push: of the first part;  rows: of its transitions.
            ahead: calls are looked for so many bytes ahead.
        """
        base = self.base
        found = self.together(READ)
        push, imports = found["push"], found.pop("push_import")
        _move_push(push, imports, base["push"][1:], base["symbol"], base["state"], self.imported, self.first_import)
        # A pop looks past its comb's end where R is another part's.
        most = max(part.most_left for part in self.parts) + 1
        return_ = np.empty((len(found["return"]) + most, 2), np.int32)
        return_[:-most], return_[-most:] = found.pop("return"), (-1, 0)
        _move_returns(return_, base["return"][1:], base["return"], base["state"])
        state, pushes = np.zeros(base["state"][-1], bool), np.zeros(len(push), bool)
        state[: narrow_state.size], pushes[: narrow_push.size] = narrow_state, narrow_push
        own = int(base["push"][1])
        calls = imports >= 0
        calls[own:] = False
        to_call = np.full(base["state"][-1], ahead + 1, np.int32)
        before = b""
        if self.parts[0].imports:
            cells = found["state_cell"][2 : int(base["state"][1])]
            classes = bytes_to_call(
                rows.of, rows.offset, rows.column, rows.value, cells, push, calls, self.width, ahead, to_call
            )
            before = bytes(np.flatnonzero(classes[self.symbol_class[:256]]).tolist())
        return Machine(
            symbol_class=self.symbol_class, delta=self.delta(), return_=return_, narrow_state=state, narrow_push=pushes,
            calls_part=calls, to_call=to_call, **found,
        ), before  # fmt: skip


@kernel()
def _gather(fields, base, layout, widths, out):  # type: ignore[no-untyped-def]
    """Write arrays one after the other, each that of all parts; see `Joined.together`.

    Args:
        fields: int64 [parts, arrays, 3], see `Part.fields`.
        base: int64 [groups, parts + 1]: where the numbers of each part begin.
        layout: `_Layout`; numbers below the least that is moved stay.
        widths: int64 [arrays]: columns of each.
        out: int32 [·], made outside, where numpy asks for large pages.
    """
    at = np.int64(0)
    group, head, skip = layout.group, layout.head, layout.skip
    for n in range(group.size):
        width = np.int64(widths[n])
        for i in range(head[n, 3]):
            out[at : at + width] = head[n, i]
            at += width
        for part in range(fields.shape[0]):
            own = fields[part, n, 2]
            address, rows = fields[part, n, 0] + 4 * skip[n] * own, fields[part, n, 1] - skip[n]
            begin, at = at, at + rows * width
            if own == width:
                copy(out.ctypes.data + 4 * begin, address, 4 * (at - begin))
            else:
                for i in range(rows):
                    for k in range(width):
                        place = begin + width * i + k
                        out[place] = 0
                        if own == 1 or k < own:
                            out[place] = read_int(address, own * i + min(k, own - 1))
            least = np.int32(layout.least[n])
            add = np.int32(base[group[n], part]) - least
            if add != 0:
                moved = out[begin:at]
                for i in range(moved.size):
                    moved[i] += add if moved[i] >= least else np.int32(0)


@kernel()
def _gather_delta(fields, base, state, push, out):  # type: ignore[no-untyped-def]
    """Write the combs of transitions of parts each in its place; states from 2 on and pushes are moved."""
    flat = out.reshape(-1)
    for n in range(fields.shape[0]):
        begin, rows = np.int64(base[n]), fields[n, 1]
        add, states, pushes = np.int32(begin), np.int32(state[n] - 2 << KIND_BITS), np.int32(push[n] << KIND_BITS)
        moved = flat[2 * begin : 2 * (begin + rows)].view(np.uint64)
        copy(moved.ctypes.data, fields[n, 0], 8 * rows)  # first, so that the loop has one array and is vectorised
        for i in range(rows):
            owner, op = np.int32(moved[i]), np.int32(moved[i] >> np.uint64(32))
            kind = op & np.int32(7)
            more = states if kind < PUSH else pushes if kind == PUSH else np.int32(0)
            owner += add if owner >= 0 else np.int32(0)
            op += more if (op > 15) | (kind == PUSH) else np.int32(0)
            moved[i] = np.uint64(np.uint32(owner)) | np.uint64(np.uint32(op)) << np.uint64(32)


@kernel()
def _move_push(out, imports, ends, symbol, state, imported, first):  # type: ignore[no-untyped-def]
    """The pushes of all parts, side by side, in the common numbering; those of imports enter what these say."""
    begin = 0
    for n in range(ends.size):
        for i in range(begin, ends[n]):
            out[i, 0] += symbol[n]
            for k in range(2):
                if imports[i] >= 0:
                    out[i, 1 + k] = imported[first[n] + imports[i], k]
                elif out[i, 1 + k] >= 2:
                    out[i, 1 + k] += state[n] - 2
        begin = ends[n]


@kernel()
def _move_returns(out, ends, base, state):  # type: ignore[no-untyped-def]
    """The combs of returns of all parts, side by side, in the common numbering."""
    begin = 0
    for n in range(ends.size):
        for i in range(begin, ends[n]):
            if out[i, 0] >= 0:
                out[i, 0] += base[n]
            if out[i, 1] >> ACTION_BITS >= 2:
                out[i, 1] += (state[n] - 2) << ACTION_BITS
        begin = ends[n]
