"""Parts side by side in one numbering: which part starts where, and the machine that walks read.

Leaves out   the tables of a bundle (tables.py), walks (walk.py).
Invariants   the first part keeps its numbers of states, pushes and stack symbols. States 0 and 1, cells 0 and 1 are the
             dead and the finished one; no part has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from toolc.runtime.memory import kernel
from toolc.runtime.tables import NEVER, PUSH

from .part import GROUPS, Part
from .walk import Machine, bytes_to_call


class Joined:
    """Parts in one numbering.

    Attributes:
        parts: the first, then all that it calls, each once, in the order of first use.
        imports: per part, per import: (number of the part, entry).
        base: per group of arrays where each part begins, and after the last the end; of profiles too.
        width: number of symbol classes.
    """

    def __init__(self, first: Part, library: Mapping[bytes, Part], symbol_class: np.ndarray) -> None:
        self.parts = [first]
        number: dict[bytes, int] = {}
        self.imports: list[list[tuple[int, int]]] = []
        for part in self.parts:
            for digest, _ in part.imports:
                if digest not in number:
                    number[digest] = len(self.parts)
                    self.parts.append(library[digest])
            self.imports.append([(number[digest], entry) for digest, entry in part.imports])
        self.symbol_class = symbol_class
        self.width = int(symbol_class.max()) + 1
        reserved = {"state": 2, "cell": 2, "close": 2, "delta": self.width + 1, "row": 2, "list": 2}
        sizes = np.array([[reserved.get(group, 0) for group in GROUPS], *(part.sizes for part in self.parts)])
        self.base = dict(zip(GROUPS, np.cumsum(np.ascontiguousarray(sizes.T), axis=1), strict=True))
        self.base["profile"] = np.cumsum([0, *(part.profiles for part in self.parts)])
        self.base["forced_list"] = np.cumsum([1, *(part.arrays["forced_offset"].size - 2 for part in self.parts)])
        self.modes = max(part.modes for part in self.parts)

    def together(self, name: str, group: str = "") -> np.ndarray:
        """An array of all parts, its numbers moved by where a group begins in each; those below 0 stay."""
        arrays = [part.arrays[name] for part in self.parts]
        found = np.concatenate(arrays)
        if group:
            shift(found.reshape(-1, 1), self._ends(arrays), self.base[group])
        return found

    def by_mode(self, name: str, group: str = "") -> np.ndarray:
        """The same of an array by mode; parts of one mode are never read in another, so it stands for both."""
        arrays = [part.arrays[name] for part in self.parts]
        out = np.empty((sum(x.shape[0] for x in arrays), self.modes), np.int32)
        at = 0
        for x in arrays:
            out[at : at + x.shape[0]] = x
            at += x.shape[0]
        if group:
            shift(out, self._ends(arrays), self.base[group])
        return out

    @staticmethod
    def _ends(arrays: list[np.ndarray]) -> np.ndarray:
        return np.cumsum([x.shape[0] for x in arrays])

    def breaks(self, name: str, reserved: int) -> np.ndarray:
        """Breakpoints of all parts, after some owners without any."""
        arrays = [part.arrays[name] for part in self.parts]
        out = np.zeros((reserved + sum(x.shape[0] for x in arrays), max(x.shape[1] for x in arrays), 2), np.int32)
        at = reserved
        for x in arrays:
            if x.shape[1]:
                out[at : at + x.shape[0], : x.shape[1]] = x
            at += x.shape[0]
        return out

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
        arrays = [part.arrays["push"] for part in self.parts]
        out, imports = np.concatenate(arrays), self.together("push_import")
        _move_push(
            out, imports, self._ends(arrays), self.base["symbol"], self.base["state"], self.imported, self.first_import
        )
        return out

    def delta(self) -> np.ndarray:
        """The comb of transitions; the dead state's row begins at 0, that of the finished one at 1."""
        base = self.base["delta"]
        out = np.empty((int(base[-1]) + self.width, 2), np.int32)
        out[: base[0]] = out[base[-1] :] = -1, 0
        end = 1 + int(self.symbol_class[256])
        out[end] = 1, 1 << 3
        states, pushes = self.base["state"].tolist(), self.base["push"].tolist()
        for part, at, state, push in zip(self.parts, base.tolist(), states, pushes, strict=False):
            _move_delta(part.arrays["delta"], out, at, state - 2, push)
        return out

    def returns(self) -> tuple[np.ndarray, np.ndarray]:
        arrays = [part.arrays["return"] for part in self.parts]
        # A pop looks past its comb's end where R is another part's.
        most = max(part.most_left for part in self.parts) + 1
        out = np.concatenate([*arrays, np.tile(np.array([[-1, 0]], np.int32), (most, 1))])
        _move_returns(out, self._ends(arrays), self.base["return"], self.base["state"])
        return self.together("return_offset", "return"), out

    def machine(self, narrow_state: np.ndarray, narrow_push: np.ndarray, ahead: int) -> tuple[Machine, bytes]:
        """What walks read; the narrow ones are those of the first part. Calls are looked for so many bytes ahead. And
        the bytes that can stand before what opens a part in the first one."""
        return_offset, return_ = self.returns()
        later = int(self.base["push"][-1] - self.base["push"][1])
        state, push = np.zeros(self.base["state"][-1], bool), np.zeros(self.base["push"][-1], bool)
        state[: narrow_state.size], push[: narrow_push.size] = narrow_state, narrow_push
        two = np.array([0, 1], np.int32)
        fields = {
            "symbol_class": self.symbol_class,
            "state_cell": np.concatenate([two, self.together("state_cell", "cell")]),
            "state_break": self.breaks("state_break", 2),
            "cell_delta": np.concatenate([two, self.together("cell_delta", "delta")]),
            "delta": self.delta(),
            "push": self.push(),
            "return_offset": return_offset,
            "return_": return_,
            "state_close": np.concatenate([two, self.together("state_close", "close")]),
            "close_break": self.breaks("close_break", 2),
            "close_bound": np.concatenate([np.array([NEVER, 0], np.int32), self.together("close_bound")]),
            "owed_first": self.together("owed_first", "owed"),
            "owed_break": self.breaks("owed_break", 0),
            "owed": self.together("owed"),
            "narrow_state": state,
            "narrow_push": push,
            "to_call": np.zeros(self.base["state"][-1], np.int32),
            "calls_part": np.concatenate([self.parts[0].arrays["push_import"] >= 0, np.zeros(later, bool)]),
        }
        machine = Machine(**{name: np.ascontiguousarray(array) for name, array in fields.items()})
        if not self.parts[0].imports:
            return machine, b""
        to_call, before = bytes_to_call(machine, int(self.base["state"][1]), self.width, ahead)
        return machine._replace(to_call=to_call), bytes(np.flatnonzero(before[self.symbol_class[:256]]).tolist())


@kernel()
def shift(numbers, ends, base):  # type: ignore[no-untyped-def]
    """Add to the numbers, int32 [·, ·], of each part, which ends at ``ends``, its base; those below 0 stay."""
    begin = 0
    for n in range(ends.size):
        add = np.int32(base[n])
        for i in range(begin, ends[n]):
            for k in range(numbers.shape[1]):
                if numbers[i, k] >= 0:
                    numbers[i, k] += add
        begin = ends[n]


@kernel()
def _move_delta(delta, out, at, state, push):  # type: ignore[no-untyped-def]
    """A part's comb of transitions in its place; states from 2 on and pushes are moved by so much."""
    for i in range(delta.shape[0]):
        owner, op = delta[i, 0], delta[i, 1]
        kind = op & 7
        out[at + i, 0] = owner + at if owner >= 0 else owner
        out[at + i, 1] = op + (state << 3) * (kind < PUSH and op > 15) + (push << 3) * (kind == PUSH)


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
