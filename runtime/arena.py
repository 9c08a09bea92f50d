"""The tables of several bundles of one vocabulary, relocated into one set of tensors on one device.

Leaves out   the state of sequences: see decoder.py.
Invariants   state 0 is dead and state 1 is finished for all bundles; a bundle's other states, its cells, transitions,
             pushes, returns, chains and rows follow those of the bundles before it. Stack symbols stay local, so a
             comb of chains is indexed as in the file; `symbol_base` takes them to `return_offset`.
Arrays       as in docs/architecture.md, with all numbers relocated; per bundle int32 [bundles]: class_base,
             special_base, symbol_base, soft_depth, capacity, finished_row.
             dense int32 [rows, words]: row 0 is empty, row 1 full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from .container import refuse
from .tables import POP, PUSH, Tables

if TYPE_CHECKING:
    from .bundle import Bundle

EMPTY_ROW, FULL_ROW = 0, 1
BUNDLE_FIELDS = ("class_base", "special_base", "symbol_base", "soft_depth", "capacity", "finished_row")


class Arena:
    """Tensors of all bundles that a decoder may use.

    Attributes:
        bundles: in the order of their numbers.
        table: name to tensor; see the module's opening.
        breaks, modes, capacity, max_chain, longest: the largest of any bundle, and the longest token.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.bundles: list[Bundle] = []
        self.table: dict[str, torch.Tensor] = {}
        self.breaks = self.max_chain = self.capacity = self.longest = 0
        self.modes = 1
        self._state_base: list[int] = []
        self._special_maps: dict[bytes, int] = {}

    def add(self, bundle: Bundle) -> int:
        """Append a bundle; returns its number."""
        if self.bundles and bundle.vocab.digest != self.bundles[0].vocab.digest:
            raise refuse(
                bundle.name,
                "meta/vocab_digest",
                bundle.vocab.digest,
                f"{self.bundles[0].vocab.digest}, as {self.bundles[0].name}",
                "one decoder serves one tokenizer",
            )
        if bundle in self.bundles:
            return self.bundles.index(bundle)
        self.bundles.append(bundle)
        self._build()
        return len(self.bundles) - 1

    @property
    def words(self) -> int:
        return self.bundles[0].vocab.words

    @property
    def size(self) -> int:
        """V."""
        return self.bundles[0].vocab.size

    def local_state(self, bundle: int, state: int) -> int:
        return state if state < 2 else state - self._state_base[bundle]

    def global_state(self, bundle: int, state: int) -> int:
        return state if state < 2 else state + self._state_base[bundle]

    def _build(self) -> None:
        """All tensors anew. The first part holds the dead and the finished state, one cell and one empty row."""
        tables = [b.tables for b in self.bundles]
        self.breaks = max(t.breaks for t in tables)
        self.modes = max(t.modes for t in tables)
        self.capacity = max(int(b.meta["capacity"]) for b in self.bundles)
        self.max_chain = max(int(b.meta["max_chain"]) for b in self.bundles)
        self.longest = max(self.bundles[0].vocab.longest, 1)
        classes = max(t.classes for t in tables)
        parts: dict[str, list[np.ndarray]] = {
            "state_cell": [np.zeros(2, np.int32)],
            "state_break": [np.zeros((2, self.breaks, 2), np.int32)],
            "cell_row": [np.zeros((1, self.modes), np.int32)],
            "cell_exit": [np.full((1, self.modes), -1, np.int32)],
            "cell_delta": [np.zeros(1, np.int32)],
            "delta": [np.tile(np.array([-1, 0], np.int32), (classes, 1))],
            "push": [np.zeros((1, 4), np.int32)],
            "return_offset": [np.zeros(1, np.int32)],
            "return": [np.tile(np.array([-1, 0], np.int32), (1, 1))],
            "chain_offset": [np.zeros(1, np.int32)],
            "chain": [np.tile(np.array([-1, 0], np.int32), (1, 1))],
            "chain_cell": [np.zeros(1, np.int32)],
            "chain_break": [np.zeros((1, self.breaks, 2), np.int32)],
            "chain_row": [np.zeros(1, np.int32)],
            "chain_exit": [np.full(1, -1, np.int32)],
            "dense": [np.stack([np.zeros(self.words, np.int32), np.full(self.words, -1, np.int32)])],
            "symbol_class": [],
            "special_symbol": [],
        }
        self._state_base.clear()
        self._special_maps.clear()
        per_bundle: dict[str, list[int]] = {name: [] for name in BUNDLE_FIELDS}
        size = {name: sum(p.shape[0] for p in part) for name, part in parts.items()}
        for bundle in self.bundles:
            state_base = size["state_cell"] - 2
            self._state_base.append(state_base)
            rows = bundle.tables.rows
            special, number = self._special_map(bundle)
            for name, value in (
                ("class_base", size["symbol_class"]),
                ("special_base", number),
                ("symbol_base", size["return_offset"]),
                ("soft_depth", int(bundle.meta["soft_depth"])),
                ("capacity", int(bundle.meta["capacity"])),
                ("finished_row", size["dense"] + rows),
            ):
                per_bundle[name].append(value)
            relocated = _relocate(bundle.tables, size, state_base, self.breaks, self.modes)
            relocated["dense"] = _dense(bundle)
            if special is not None:
                relocated["special_symbol"] = special
            for name, array in relocated.items():
                parts[name].append(array)
                size[name] += array.shape[0]
        vocab = self.bundles[0].vocab
        self.table = {name: torch.from_numpy(np.concatenate(part)).to(self.device) for name, part in parts.items()}
        for name, values in per_bundle.items():
            self.table[name] = torch.tensor(values, dtype=torch.int32, device=self.device)
        # One byte more, so that a token without text at the end has a place to point at.
        text = np.concatenate([vocab.token_bytes, np.zeros(1, np.uint8)]).astype(np.int32)
        self.table["token_bytes"] = torch.from_numpy(text).to(self.device)
        self.table["token_offset"] = torch.from_numpy(vocab.token_offset.copy()).to(self.device)

    def _special_map(self, bundle: Bundle) -> tuple[np.ndarray | None, int]:
        """int32 [V], the special symbol of a token or -1, if no bundle before has the same; and where it is."""
        symbols = np.full(bundle.vocab.size, -1, dtype=np.int32)
        symbols[bundle.tables.special_token] = bundle.tables.special_symbol
        key = symbols.tobytes()
        if key in self._special_maps:
            return None, self._special_maps[key]
        place = len(self._special_maps) * bundle.vocab.size
        self._special_maps[key] = place
        return symbols, place


def _moved(owner: np.ndarray, base: int) -> np.ndarray:
    return np.where(owner >= 0, owner + base, -1)


def _pad_breaks(breaks: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros((breaks.shape[0], count, 2), dtype=np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out


def _relocate(t: Tables, size: dict[str, int], state_base: int, breaks: int, modes: int) -> dict[str, np.ndarray]:
    def state(numbers: np.ndarray) -> np.ndarray:
        return np.where(numbers < 2, numbers, numbers + state_base)

    row_base, profile_base = size["dense"], size["chain_offset"]
    kind, number = t.delta[:, 1] & 7, t.delta[:, 1] >> 3
    number = np.where(kind < PUSH, state(number), np.where(kind == POP, number, number + size["push"]))
    columns = [min(mode, t.modes - 1) for mode in range(modes)]
    found = {
        "state_cell": t.state_cell[2:] + size["cell_delta"],
        "state_break": _pad_breaks(t.state_break[2:], breaks),
        "cell_row": t.cell_row[:, columns] + row_base,
        "cell_exit": _moved(t.cell_exit[:, columns], profile_base),
        "cell_delta": t.cell_delta + size["delta"],
        "delta": np.stack([_moved(t.delta[:, 0], size["delta"]), number << 3 | kind], axis=1),
        # A bundle of one mode reads always in mode 0, also beside others that have two.
        "push": np.stack([t.push[:, 0], state(t.push[:, 1]), state(t.push[:, t.modes]), t.push[:, 3]], axis=1),
        "return_offset": t.return_offset + size["return"],
        "return": np.stack(
            [_moved(t.return_[:, 0], size["return"]), state(t.return_[:, 1] >> 2) << 2 | t.return_[:, 1] & 3], axis=1
        ),
        "chain_offset": t.chain_offset + size["chain"],
        "chain": np.stack([_moved(t.chain[:, 0], size["chain"]), t.chain[:, 1] + size["chain_cell"]], axis=1),
        "chain_cell": t.chain_cell + size["chain_row"],
        "chain_break": _pad_breaks(t.chain_break, breaks),
        "chain_row": t.chain_row + row_base,
        "chain_exit": _moved(t.chain_exit, profile_base),
        "symbol_class": t.symbol_class,
    }
    return {name: np.ascontiguousarray(array, dtype=np.int32) for name, array in found.items()}


def _dense(bundle: Bundle) -> np.ndarray:
    """int32 [rows + 1, words]: every row expanded, then the end-of-turn ids."""
    host = bundle.host
    out = np.empty((host.rows + 1, host.words), dtype=np.uint32)
    for row in range(host.rows + 1):
        host.expand(row, out[row])
    return out.view(np.int32)
