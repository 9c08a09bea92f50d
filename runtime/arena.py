"""The tables of several bundles of one vocabulary, relocated into one set of tensors on one device.

Leaves out   the state of sequences: see decoder.py.
Invariants   state 0 is dead and state 1 is finished for all bundles; a bundle's other states, its cells, transitions,
             pushes, returns, chains and rows follow those of the bundles before it. Stack symbols stay local, so a
             comb of chains is indexed as in the file; `symbol_base` takes them to `return_offset`.
Arrays       as in docs/architecture.md, with all numbers relocated; per bundle int32 [bundles]: class_base,
             special_base, symbol_base, soft_depth, capacity, finished_row.
             dense int32 [rows, words]: row 0 is empty, row 1 full. state_loop int32 [states]: number of the set of
             tokens all of whose bytes take the state back to itself with the same counter; loop_bits int32 [sets,
             words]: set 0 is empty.
Growth       Tables have room for more bundles than they hold (`room`). A bundle that fits is copied in, and no address
             changes: steps captured before still hold, and see it. One that does not fit needs `grow`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from .container import refuse
from .errors import DecodeError
from .step import Limits
from .tables import POP, PUSH, Tables

if TYPE_CHECKING:
    from .bundle import Bundle
    from .vocab import Vocab

BUNDLE_FIELDS = ("class_base", "special_base", "symbol_base", "soft_depth", "capacity", "finished_row")


class Arena:
    """Tensors of all bundles that a decoder may use.

    Attributes:
        bundles: in the order of their numbers.
        table: name to tensor; see the module's opening.
        limits: what loops and shapes depend on.

    Args:
        device: of the tensors.
        room: how many times the size of what it first holds is allocated.
    """

    def __init__(self, device: torch.device, room: float = 1.0) -> None:
        self.device = device
        self.room = max(room, 1.0)
        self.bundles: list[Bundle] = []
        self.table: dict[str, torch.Tensor] = {}
        self.limits = Limits(0, 0, 1, 0, 0, 1)
        self._state_base: list[int] = []
        self._special_maps: dict[bytes, int] = {}
        self._size: dict[str, int] = {}

    def add(self, bundle: Bundle, grow: bool = True) -> int:
        """Append a bundle; returns its number.

        Args:
            bundle: of the same vocabulary as the others.
            grow: make all tensors anew if it does not fit, or else refuse it.
        """
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
        if self.bundles:
            missing = self._append(bundle)
            if missing and not grow:
                raise DecodeError(
                    "the bundle does not fit into the arena",
                    place=bundle.name,
                    found=missing,
                    hint="make the decoder with more room, or allow it to grow and capture its graphs again",
                )
            if not missing:
                return len(self.bundles) - 1
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
        bundles, vocab = self.bundles, self.bundles[0].vocab
        tables = [b.tables for b in bundles]
        loops = [loops_of(b) for b in bundles]
        self.limits = k = Limits(
            size=vocab.size,
            breaks=max(t.breaks for t in tables),
            modes=max(t.modes for t in tables),
            capacity=max(int(b.meta["capacity"]) for b in bundles),
            max_chain=max(int(b.meta["max_chain"]) for b in bundles),
            steps=max(loop.steps for loop in loops),
        )
        width = max(t.classes for t in tables)
        first: dict[str, np.ndarray] = {
            "state_cell": np.zeros(2, np.int32),
            "state_break": np.zeros((2, k.breaks, 2), np.int32),
            "state_loop": np.zeros(2, np.int32),
            "loop_bits": np.zeros((1, self.words), np.int32),
            "cell_row": np.zeros((1, k.modes), np.int32),
            "cell_exit": np.full((1, k.modes), -1, np.int32),
            "cell_delta": np.zeros(1, np.int32),
            "delta": np.tile(np.array([-1, 0], np.int32), (width, 1)),
            "push": np.zeros((1, 4), np.int32),
            "return_offset": np.zeros(1, np.int32),
            "return": np.tile(np.array([-1, 0], np.int32), (1, 1)),
            "chain_offset": np.zeros(1, np.int32),
            "chain": np.tile(np.array([-1, 0], np.int32), (1, 1)),
            "chain_cell": np.zeros(1, np.int32),
            "chain_break": np.zeros((1, k.breaks, 2), np.int32),
            "chain_row": np.zeros(1, np.int32),
            "chain_exit": np.full(1, -1, np.int32),
            "dense": np.stack([np.zeros(self.words, np.int32), np.full(self.words, -1, np.int32)]),
            "symbol_class": np.zeros(0, np.int32),
            "special_symbol": np.zeros(0, np.int32),
            **{name: np.zeros(0, np.int32) for name in BUNDLE_FIELDS},
        }
        self._state_base.clear()
        self._special_maps.clear()
        self._size = {name: part.shape[0] for name, part in first.items()}
        parts = [first, *(self._relocated(bundle, loop) for bundle, loop in zip(bundles, loops, strict=True))]
        self.table = {}
        for name, part in first.items():
            rows = [p[name] for p in parts if name in p]
            count = sum(r.shape[0] for r in rows)
            table = torch.zeros((int(count * self.room), *part.shape[1:]), dtype=torch.int32, device=self.device)
            table[:count] = torch.from_numpy(np.concatenate(rows).astype(np.int32))
            self.table[name] = table
        # One byte more, so that a token without text at the end has a place to point at.
        text = np.concatenate([vocab.token_bytes, np.zeros(1, np.uint8)]).astype(np.int32)
        self.table["token_bytes"] = torch.from_numpy(text).to(self.device)
        self.table["token_offset"] = torch.from_numpy(vocab.token_offset.copy()).to(self.device)

    def _append(self, bundle: Bundle) -> str:
        """Copy a bundle into the room that is left; or what it lacks, and nothing has changed."""
        k, t = self.limits, bundle.tables
        loop = loops_of(bundle)
        for name, found, most in (
            ("breaks", t.breaks, k.breaks),
            ("modes", t.modes, k.modes),
            ("capacity", int(bundle.meta["capacity"]), k.capacity),
            ("max_chain", int(bundle.meta["max_chain"]), k.max_chain),
            ("steps", loop.steps, k.steps),
        ):
            if found > most:
                return f"{name} {found}, more than {most}"
        size, maps = dict(self._size), dict(self._special_maps)
        part = self._relocated(bundle, loop)
        for name, array in part.items():
            if self._size[name] > self.table[name].shape[0]:
                missing = f"{array.shape[0]} entries of {name}, more than {self.table[name].shape[0] - size[name]}"
                self._size, self._special_maps = size, maps
                self._state_base.pop()
                return missing
        for name, array in part.items():
            self.table[name][size[name] : self._size[name]] = torch.tensor(array, device=self.device)
        self.bundles.append(bundle)
        return ""

    def _relocated(self, bundle: Bundle, loop: Loops) -> dict[str, np.ndarray]:
        """The arrays of a bundle as they follow those in `_size`, which then counts them too."""
        size = self._size
        state_base = size["state_cell"] - 2
        special, place = self._special_map(bundle)
        fields = {
            "class_base": size["symbol_class"],
            "special_base": place,
            "symbol_base": size["return_offset"],
            "soft_depth": int(bundle.meta["soft_depth"]),
            "capacity": int(bundle.meta["capacity"]),
            "finished_row": size["dense"] + bundle.tables.rows,
        }
        found = _relocate(bundle.tables, size, state_base, self.limits.breaks, self.limits.modes)
        found |= {name: np.array([value], np.int32) for name, value in fields.items()}
        found["state_loop"] = np.where(loop.state_loop[2:] > 0, loop.state_loop[2:] + size["loop_bits"] - 1, 0)
        found["loop_bits"] = loop.bits[1:].view(np.int32)
        found["dense"] = _dense(bundle)
        if special is not None:
            found["special_symbol"] = special
        self._state_base.append(state_base)
        for name, array in found.items():
            size[name] += array.shape[0]
        return found

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


LEAST_LOOP = 16  # bytes that a state must loop over for its tokens to be worth a bit set


class Loops(NamedTuple):
    """What a bundle's states read without changing.

    Attributes:
        state_loop: int32 [states], number of a set.
        bits: uint32 [sets, words]: tokens whose every byte takes the state to itself; set 0 is empty.
        steps: bytes of the longest token that some row allows and that its state does not loop over.
    """

    state_loop: np.ndarray
    bits: np.ndarray
    steps: int


def loops_of(bundle: Bundle) -> Loops:
    """The loops of a bundle; found once."""
    found = bundle.__dict__.get("_loops")
    if found is None:
        t, v = bundle.tables, bundle.vocab
        stretches = (np.arange(q, min(q + 4096, t.states)) for q in range(0, t.states, 4096))
        by_class = np.concatenate([_loops_of_states(t, states) for states in stretches])
        by_byte = by_class[:, t.symbol_class[:256]]
        by_byte[:2] = False
        by_byte[by_byte.sum(axis=1) < LEAST_LOOP] = False
        empty = np.zeros((1, 32), np.uint8)
        sets, number = np.unique(np.packbits(by_byte, axis=1), axis=0, return_inverse=True)
        if sets[0].any():
            sets, number = np.concatenate([empty, sets]), number + 1
        bits = np.stack([_tokens_over(v, t, np.unpackbits(s).astype(bool)) for s in sets])
        state_loop = number.reshape(-1).astype(np.int32)
        found = bundle.__dict__["_loops"] = Loops(state_loop, bits, _steps(bundle, state_loop, bits))
    return found


def _loops_of_states(t: Tables, states: np.ndarray) -> np.ndarray:
    """bool [states, classes]: the symbol class takes the state back to itself, whatever the counter, and keeps it."""
    count = t.state_break[states, :, 1].sum(axis=1, dtype=np.int64) + 1
    first = np.cumsum(count) - count
    cell = np.repeat(t.state_cell[states] - first, count) + np.arange(int(count.sum()))
    base = t.cell_delta[cell][:, None]
    entry = t.delta[base + np.arange(t.classes)]
    loops = (entry[:, :, 0] == base) & (entry[:, :, 1] == np.repeat(states, count)[:, None] << 3)
    return np.logical_and.reduceat(loops, first, axis=0)


def _tokens_over(v: Vocab, t: Tables, alphabet: np.ndarray) -> np.ndarray:
    """uint32 [words]: the tokens with a text over an alphabet, bool [256], that are no special ones."""
    inside = np.zeros(v.words * 32, dtype=bool)
    if alphabet.any():
        some = np.flatnonzero(np.diff(v.token_offset))
        inside[some] = np.logical_and.reduceat(alphabet[v.token_bytes], v.token_offset[some])
        inside[t.special_token] = False
    return np.packbits(inside, bitorder="little").view(np.uint32)


def _steps(bundle: Bundle, state_loop: np.ndarray, bits: np.ndarray) -> int:
    t, v = bundle.tables, bundle.vocab
    lengths = np.diff(v.token_offset)
    lengths[t.special_token] = 1
    count = t.state_break[:, :, 1].sum(axis=1, dtype=np.int64) + 1
    first = np.cumsum(count) - count
    cell = np.repeat(t.state_cell - first, count) + np.arange(int(count.sum()))
    number = np.repeat(state_loop, count)
    number[: int(count[:2].sum())] = -1  # dead and finished: their rows are not asked
    pairs = [np.stack([t.cell_row[cell, mode], number], axis=1) for mode in range(t.modes)]
    pairs.append(np.stack([t.chain_row, np.zeros_like(t.chain_row)], axis=1))
    row, most = np.zeros(v.words, np.uint32), 1
    for r, n in np.unique(np.concatenate(pairs), axis=0).tolist():
        if n >= 0:
            bundle.host.expand(r, row)
            tokens = np.flatnonzero(np.unpackbits((row & ~bits[n]).view(np.uint8), bitorder="little"))
            most = max(most, int(lengths[tokens].max(initial=0)))
    return most
