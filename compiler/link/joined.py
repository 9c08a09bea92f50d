"""Parts side by side in one numbering: which part starts where, and the machine that walks read.

Leaves out   the tables of a bundle (tables.py), walks (walk.py).
Invariants   the first part keeps its numbers of states, pushes and stack symbols. States 0 and 1, cells 0 and 1 are the
             dead and the finished one; no part has them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from toolc.runtime.tables import NEVER, PUSH

from .part import Part
from .walk import Machine

_GROUPS = {
    "state": "state_cell", "cell": "cell_delta", "push": "push", "symbol": "return_offset", "close": "close_bound",
    "owed": "owed", "chain": "chain_cell", "chain_cell": "chain_row", "forced": "forced_tokens",
    "return": "return", "delta": "delta", "row": "row_slice", "list": "list_base", "dense": "dense",
}  # fmt: skip


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
        self.base = {
            group: np.cumsum([reserved.get(group, 0), *(part.arrays[name].shape[0] for part in self.parts)])
            for group, name in _GROUPS.items()
        }
        self.base["profile"] = np.cumsum([0, *(part.profiles for part in self.parts)])
        self.base["forced_list"] = np.cumsum([1, *(part.arrays["forced_offset"].size - 2 for part in self.parts)])
        self.modes = max(part.modes for part in self.parts)

    def together(self, name: str, group: str = "") -> np.ndarray:
        """An array of all parts, its numbers moved by where a group begins in each."""
        if not group:
            return np.concatenate([part.arrays[name] for part in self.parts])
        return np.concatenate([part.arrays[name] + b for part, b in zip(self.parts, self.base[group], strict=False)])

    def state(self, part: int, numbers: np.ndarray) -> np.ndarray:
        """States of a part in the common numbering."""
        return np.where(numbers < 2, numbers, numbers + (self.base["state"][part] - 2))

    def breaks(self, name: str, reserved: int) -> np.ndarray:
        """Breakpoints of all parts, after some owners without any."""
        arrays = [part.arrays[name] for part in self.parts]
        out = np.zeros((reserved + sum(x.shape[0] for x in arrays), max(x.shape[1] for x in arrays), 2), np.int32)
        at = reserved
        for x in arrays:
            out[at : at + x.shape[0], : x.shape[1]] = x
            at += x.shape[0]
        return out

    def push(self) -> np.ndarray:
        found = []
        for n, part in enumerate(self.parts):
            push, imports = part.arrays["push"].copy(), part.arrays["push_import"]
            push[:, 0] += self.base["symbol"][n]
            push[:, 1:3] = self.state(n, push[:, 1:3])
            if part.imports:
                entered = np.array(
                    [
                        self.state(other, np.array(self.parts[other].entries[entry][:2]))
                        for other, entry in self.imports[n]
                    ]
                )
                some = imports >= 0
                push[some, 1:3] = entered[imports[some]]
            found.append(push)
        return np.concatenate(found).astype(np.int32)

    def delta(self) -> np.ndarray:
        """The comb of transitions; the dead state's row begins at 0, that of the finished one at 1."""
        base = self.base["delta"]
        out = np.empty((int(base[-1]) + self.width, 2), np.int32)
        out[: base[0]] = out[base[-1] :] = -1, 0
        end = 1 + int(self.symbol_class[256])
        out[end] = 1, 1 << 3
        for n, part in enumerate(self.parts):
            own = out[base[n] : base[n + 1]]
            delta = part.arrays["delta"]
            np.add(delta[:, 0], np.int32(base[n]), out=own[:, 0])
            own[delta[:, 0] < 0, 0] = -1
            kind = delta[:, 1] & 7
            moved = np.where(kind < PUSH, (delta[:, 1] > 15) * (self.base["state"][n] - 2), 0)
            moved += np.where(kind == PUSH, self.base["push"][n], 0)
            own[:, 1] = delta[:, 1] + (moved << 3)
        return out

    def returns(self) -> tuple[np.ndarray, np.ndarray]:
        base = self.base["return"]
        combs = []
        for n, part in enumerate(self.parts):
            found = part.arrays["return"]
            value = self.state(n, found[:, 1] >> 2) << 2 | found[:, 1] & 3
            combs.append(np.stack([np.where(found[:, 0] < 0, -1, found[:, 0] + base[n]), value], axis=1))
        # A pop looks past its comb's end where R is another part's.
        most = max(part.most_left for part in self.parts) + 1
        end = np.tile(np.array([[-1, 0]], np.int64), (most, 1))
        return self.together("return_offset", "return").astype(np.int32), np.concatenate([*combs, end]).astype(np.int32)

    def machine(self, narrow_state: np.ndarray, narrow_push: np.ndarray) -> Machine:
        """What walks read; the narrow ones are those of the first part."""
        return_offset, return_ = self.returns()
        later = int(self.base["push"][-1] - self.base["push"][1])
        state, push = np.zeros(self.base["state"][-1], bool), np.zeros(self.base["push"][-1], bool)
        state[: narrow_state.size], push[: narrow_push.size] = narrow_state, narrow_push
        fields = {
            "symbol_class": self.symbol_class,
            "state_cell": np.concatenate([[0, 1], self.together("state_cell", "cell")]).astype(np.int32),
            "state_break": self.breaks("state_break", 2),
            "cell_delta": np.concatenate([[0, 1], self.together("cell_delta", "delta")]).astype(np.int32),
            "delta": self.delta(),
            "push": self.push(),
            "return_offset": return_offset,
            "return_": return_,
            "state_close": np.concatenate([[0, 1], self.together("state_close", "close")]).astype(np.int32),
            "close_break": self.breaks("close_break", 2),
            "close_bound": np.concatenate([[NEVER, 0], self.together("close_bound")]).astype(np.int32),
            "owed_first": self.together("owed_first", "owed").astype(np.int32),
            "owed_break": self.breaks("owed_break", 0),
            "owed": self.together("owed"),
            "narrow_state": state,
            "narrow_push": push,
            "calls_part": np.concatenate([self.parts[0].arrays["push_import"] >= 0, np.zeros(later, bool)]),
        }
        return Machine(**{name: np.ascontiguousarray(array) for name, array in fields.items()})
