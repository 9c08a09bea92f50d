"""Parts side by side in one numbering: which part starts where, and the machine that walks read.

Leaves out   the tables of a bundle (tables.py), walks (walk.py).
Invariants   the first part keeps its numbers of states, pushes and stack symbols. States 0 and 1, cells 0 and 1 are the
             dead and the finished one; no part has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from toolc.runtime.memory import copy, kernel, read_int
from toolc.runtime.tables import NEVER, PUSH

from .part import GROUPS, JOINED, Part
from .walk import Machine, bytes_to_call

BY_MODE = frozenset(("cell_row", "cell_exit", "close_token", "close_after"))
_PLACE = {name: n for n, name in enumerate(JOINED)}
_NOWHERE = np.zeros(0, np.int64)


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
        reserved = {"state": 2, "cell": 2, "close": 2, "delta": self.width + 1, "row": 2, "list": 2, "forced_list": 1}
        sizes = np.array([[reserved.get(group, 0) for group in GROUPS], *(part.sizes for part in parts)])
        self.base = dict(zip(GROUPS, np.cumsum(np.ascontiguousarray(sizes.T), axis=1), strict=True))
        self.modes = max(part.modes for part in parts)
        self._fields = np.stack([part.fields for part in parts])

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

    def together(
        self, name: str, by: np.ndarray | None = None, first: np.ndarray | None = None, skip: int = 0
    ) -> np.ndarray:
        """An array of all parts, int32 [·] or [·, columns].

        An array by mode of parts that have one mode is never read in another, so it stands for both. Where parts have
        fewer columns than others, as of breakpoints, they get zeros.

        Args:
            by: int64 [parts, or more]: what is added to the numbers of each; those below 0 stay.
            first: rows before those of the parts.
            skip: so many rows of each part are left out.
        """
        fields = self.fields(name)
        if skip:
            fields[:, 0] += 4 * skip * fields[:, 2]
            fields[:, 1] -= skip
        dimensions = self.parts[0].arrays[name].ndim
        columns = self.modes if name in BY_MODE else int(fields[:, 2].max())
        head = 0 if first is None else len(first)
        out = np.empty((head + int(fields[:, 1].sum()), columns), np.int32)
        if first is not None:
            out[:head] = first.reshape(head, -1)
        _gather(fields, _NOWHERE if by is None else by, head, out)
        if dimensions < 3:
            return out if dimensions == 2 else out.reshape(-1)
        return out.reshape(len(out), columns // 2, 2)

    def fields(self, name: str) -> np.ndarray:
        """int64 [parts, 3]: see `Part.fields`."""
        return self._fields[:, _PLACE[name]].copy()

    def ends(self, name: str) -> np.ndarray:
        """int64 [parts]: where the rows of each end in what `together` gives."""
        return np.cumsum(self._fields[:, _PLACE[name], 1])

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
        return np.cumsum([0, *map(len, self.imports)])

    def push(self) -> np.ndarray:
        out, imports = self.together("push"), self.together("push_import")
        ends, base = self.ends("push"), self.base
        _move_push(out, imports, ends, base["symbol"], base["state"], self.imported, self.first_import)
        return out

    def delta(self) -> np.ndarray:
        """The comb of transitions; the dead state's row begins at 0, that of the finished one at 1."""
        base = self.base["delta"]
        out = np.empty((int(base[-1]) + self.width, 2), np.int32)
        out[: base[0]] = out[base[-1] :] = -1, 0
        end = 1 + int(self.symbol_class[256])
        out[end] = 1, 1 << 3
        _gather_delta(self.fields("delta"), base, self.base["state"], self.base["push"], out)
        return out

    def returns(self) -> tuple[np.ndarray, np.ndarray]:
        # A pop looks past its comb's end where R is another part's.
        most = max(part.most_left for part in self.parts) + 1
        out = np.concatenate([self.together("return"), np.tile(np.array([[-1, 0]], np.int32), (most, 1))])
        _move_returns(out, self.ends("return"), self.base["return"], self.base["state"])
        return self.together("return_offset", self.base["return"]), out

    def machine(self, narrow_state: np.ndarray, narrow_push: np.ndarray, ahead: int) -> tuple[Machine, bytes]:
        """What walks read; the narrow ones are those of the first part. Calls are looked for so many bytes ahead. And
        the bytes that can stand before what opens a part in the first one."""
        return_offset, return_ = self.returns()
        later = int(self.base["push"][-1] - self.base["push"][1])
        state, push = np.zeros(self.base["state"][-1], bool), np.zeros(self.base["push"][-1], bool)
        state[: narrow_state.size], push[: narrow_push.size] = narrow_state, narrow_push
        two, base = np.array([0, 1], np.int32), self.base
        fields = {
            "symbol_class": self.symbol_class,
            "state_cell": self.together("state_cell", base["cell"], two),
            "state_break": self.together("state_break", first=0 * two),
            "cell_delta": self.together("cell_delta", base["delta"], two),
            "delta": self.delta(),
            "push": self.push(),
            "return_offset": return_offset,
            "return_": return_,
            "state_close": self.together("state_close", base["close"], two),
            "close_break": self.together("close_break", first=0 * two),
            "close_bound": self.together("close_bound", first=np.array([NEVER, 0], np.int32)),
            "owed_first": self.together("owed_first", base["owed"]),
            "owed_break": self.together("owed_break"),
            "owed": self.together("owed"),
            "narrow_state": state,
            "narrow_push": push,
            "to_call": np.zeros(base["state"][-1], np.int32),
            "calls_part": np.concatenate([self.parts[0].arrays["push_import"] >= 0, np.zeros(later, bool)]),
        }
        machine = Machine(**{name: np.ascontiguousarray(array) for name, array in fields.items()})
        if not self.parts[0].imports:
            return machine, b""
        to_call, before = bytes_to_call(machine, int(self.base["state"][1]), self.width, ahead)
        return machine._replace(to_call=to_call), bytes(np.flatnonzero(before[self.symbol_class[:256]]).tolist())


@kernel()
def _gather(fields, by, at, out):  # type: ignore[no-untyped-def]
    """Write arrays of parts one after the other into ``out``, int32 [·, ·], from row ``at`` on; see `Joined.together`.

    Args:
        fields: int64 [parts, 3], see `Part.fields`.
        by: what is added to the numbers of each part; empty where nothing is.
    """
    width, flat = np.int64(out.shape[1]), out.reshape(-1)
    for n in range(fields.shape[0]):
        address, rows, columns = fields[n, 0], fields[n, 1], fields[n, 2]
        begin, end = at * width, (at + rows) * width
        if columns == width:
            copy(out.ctypes.data + 4 * begin, address, 4 * (end - begin))
        else:
            for i in range(rows):
                for k in range(width):
                    out[at + i, k] = 0
                    if columns == 1 or k < columns:
                        out[at + i, k] = read_int(address, columns * i + min(k, columns - 1))
        add = np.int32(by[n]) if by.size else np.int32(0)
        if add != 0:
            for i in range(begin, end):
                flat[i] += add if flat[i] >= 0 else np.int32(0)
        at += rows


@kernel()
def _gather_delta(fields, base, state, push, out):  # type: ignore[no-untyped-def]
    """Write the combs of transitions of parts each in its place; states from 2 on and pushes are moved."""
    for n in range(fields.shape[0]):
        at, rows = np.int64(base[n]), fields[n, 1]
        copy(out.ctypes.data + 8 * at, fields[n, 0], 8 * rows)
        add, states, pushes = np.int32(at), np.int32(state[n] - 2 << 3), np.int32(push[n] << 3)
        for i in range(at, at + rows):
            op = out[i, 1]
            kind = op & np.int32(7)
            out[i, 0] += add if out[i, 0] >= 0 else np.int32(0)
            out[i, 1] = op + (states if kind < PUSH and op > 15 else pushes if kind == PUSH else np.int32(0))


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
            if out[i, 1] >> 2 >= 2:
                out[i, 1] += (state[n] - 2) << 2
        begin = ends[n]
