"""A bundle's arrays as they stand among those of other bundles, and the room that they take on a device.

Leaves out   where they go: see arena.py.
Invariants   no torch. `device_bytes` is what an arena with room 1 holds for the bundle alone, to the byte; it loads no
             numba either, so that `toolc inspect` answers at once.
Groups       Tables of one group are indexed alike, so that a bundle has one start in all of them.
Rows         A row is stored once under its content (BLAKE2b-128 of the words), whatever bundles it belongs to.
Arrays       docs/format.md, with all numbers relocated; arena.py lists those that are added. All int32.
Registers    Where no bundle has registers, the tables about them have no columns: they take no memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..format.ops import POP, PUSH, action_of_return, kind_of, number_of, op_of, return_of, state_of_return
from ..format.rows import expanded
from ..format.tables import Tables
from .self_loops import Loops, longest_step, loops_of

if TYPE_CHECKING:
    from ..format.bundle import Bundle

BUNDLE_FIELDS = ("class_base", "special_base", "symbol_base", "soft_depth", "capacity", "finished_row")

GROUPS: dict[str, tuple[str, ...]] = {
    "state": (
        *("state_cell", "state_break", "state_loop", "state_close", "close_break", "state_forced", "forced_after"),
        *("state_register", "state_way"),
    ),
    "break_list": ("breaks",),
    "close_break_list": ("close_breaks",),
    "cell": ("cell_row", "cell_exit", "cell_delta", "cell_default", "cell_check"),
    "delta": ("delta",),
    "push": ("push",),
    "symbol": ("return_offset", "owed_first", "owed_break"),
    "return": ("return",),
    "profile": ("chain_offset",),
    "chain": ("chain",),
    "chain_number": ("chain_cell", "chain_break"),
    "chain_cell": ("chain_row", "chain_exit", "chain_after", "chain_check"),
    "close_cell": ("close_bound", "close_token", "close_after"),
    "owed_cell": ("owed",),
    "forced_list": ("forced_offset", "forced_length"),
    "forced_token": ("forced_tokens",),
    "register_rule": ("register_rule",),
    "register_test": ("register_test",),
    "check_list": ("check_offset", "check_length"),
    "check": ("check",),
    "way_list": ("way_offset", "way_length"),
    "way": ("way",),
    "class": ("symbol_class",),
    "special": ("special_symbol",),
    "loop": ("loop_bits",),
    "row": ("dense",),
    "bundle": BUNDLE_FIELDS,
}
# All that stands on a device, in the order of `Arena.addresses`.
TABLES = (*(name for names in GROUPS.values() for name in names), "token_bytes", "token_offset")
REGISTER_TABLES = frozenset(
    "state_register register_rule register_test cell_check chain_check check_offset check_length check "
    "state_way way_offset way_length way".split()
)

EMPTY_ROW, FULL_ROW = 0, 1


class Limits(NamedTuple):
    """What loops and shapes depend on, over all bundles of an arena.

    Attributes:
        size: V.
        breaks, modes, capacity, max_chain: docs/format.md.
        steps: bytes of the longest token that is read byte by byte.
        closes: C, breakpoints of the shortest close.
        forced: most forced tokens of a state.
        registers: G, words of a register; 0 where no bundle has registers.
        checks, ways: tokens of the longest check list and of the longest way list.
    """

    size: int
    breaks: int
    modes: int
    capacity: int
    max_chain: int
    steps: int
    closes: int
    forced: int
    registers: int
    checks: int
    ways: int

    @staticmethod
    def of(bundle: Bundle) -> Limits:
        """Those of one bundle."""
        return Limits.of_shapes(bundle)._replace(steps=longest_step(bundle))

    @staticmethod
    def of_shapes(bundle: Bundle) -> Limits:
        """Those of one bundle that shapes depend on; steps is 0."""
        t, meta = bundle.tables, bundle.meta
        breaks, closes = t.breaks.shape[1], t.close_breaks.shape[1]
        forced = int(np.diff(t.forced_offset).max(initial=0))
        chain = int(meta["max_chain"])
        longest = (int(np.diff(offset).max()) for offset in (t.check_offset, t.way_offset))
        registers = (t.register_words, *longest) if t.has_registers else (0, 0, 0)
        sizes = bundle.vocab.size, breaks, t.modes, int(meta["capacity"]), chain, 0, closes, forced
        return Limits(*sizes, *registers)

    def joined(self, other: Limits) -> Limits:
        """The larger of each."""
        return Limits(*(max(pair) for pair in zip(self, other, strict=True)))


def reserved(limits: Limits, words: int) -> dict[str, np.ndarray]:
    """What an arena holds before any bundle: the dead and the finished state, one cell, an empty row and a full one."""
    pair = np.array([[-1, 0]], np.int32)
    some = int(limits.registers > 0)  # whether tables about registers have columns
    return {
        "state_cell": np.zeros(2, np.int32),
        "state_break": np.zeros(2, np.int32),
        "breaks": np.zeros((1, limits.breaks, 2), np.int32),
        "state_loop": np.zeros(2, np.int32),
        "loop_bits": np.zeros((1, words), np.int32),
        "cell_row": np.zeros((1, limits.modes), np.int32),
        "cell_exit": np.full((1, limits.modes), -1, np.int32),
        "cell_delta": np.zeros(1, np.int32),
        "cell_default": np.zeros(1, np.int32),
        "delta": pair,
        "push": np.zeros((1, 4), np.int32),
        "return_offset": np.zeros(1, np.int32),
        "return": pair,
        "chain_offset": np.zeros(1, np.int32),
        "chain": pair,
        "chain_cell": np.zeros(1, np.int32),
        "chain_break": np.zeros(1, np.int32),
        "chain_row": np.zeros(1, np.int32),
        "chain_exit": np.full(1, -1, np.int32),
        "state_close": np.zeros(2, np.int32),
        "close_break": np.zeros(2, np.int32),
        "close_breaks": np.zeros((1, limits.closes, 2), np.int32),
        "state_forced": np.zeros(2, np.int32),
        "forced_after": np.zeros(2, np.int32),
        "owed_first": np.zeros(1, np.int32),
        "owed_break": np.zeros(1, np.int32),
        "chain_after": np.zeros(1, np.int32),
        "close_bound": np.zeros(1, np.int32),
        "close_token": np.full((1, limits.modes), -1, np.int32),
        "close_after": np.zeros((1, limits.modes), np.int32),
        "owed": np.zeros(1, np.int32),
        "forced_offset": np.zeros(1, np.int32),
        "forced_length": np.zeros(1, np.int32),
        "forced_tokens": np.zeros(1, np.int32),
        "state_register": np.zeros((2, some), np.int32),
        "register_rule": np.array([[0, -1, 0, 0]], np.int32)[:, : 4 * some],
        "register_test": np.zeros((1, some + limits.registers), np.int32),
        "cell_check": np.zeros((1, limits.modes * some), np.int32),
        "chain_check": np.zeros((1, some), np.int32),
        "check_offset": np.zeros((1, some), np.int32),
        "check_length": np.zeros((1, some), np.int32),
        "check": np.zeros((1, 3 * some), np.int32),
        "state_way": np.zeros((2, some), np.int32),
        "way_offset": np.zeros((1, some), np.int32),
        "way_length": np.zeros((1, some), np.int32),
        "way": np.zeros((1, 2 * some), np.int32),
        "dense": np.stack([np.zeros(words, np.int32), np.full(words, -1, np.int32)]),
        "symbol_class": np.zeros(0, np.int32),
        "special_symbol": np.zeros(0, np.int32),
        **{name: np.zeros(0, np.int32) for name in BUNDLE_FIELDS},
    }


def lengths(bundle: Bundle) -> dict[str, int]:
    """Entries that a bundle takes in each group, but for rows and special maps, which bundles share."""
    t = bundle.tables
    found = {
        "state": t.states - 2,
        "break_list": t.breaks.shape[0] - 1,
        "close_break_list": t.close_breaks.shape[0] - 1,
        "cell": t.cells,
        "delta": t.delta.shape[0],
        "push": t.push.shape[0],
        "symbol": t.return_offset.shape[0],
        "return": t.return_.shape[0],
        "profile": t.chain_offset.shape[0],
        "chain": t.chain.shape[0],
        "chain_number": t.chain_cell.shape[0],
        "chain_cell": t.chain_row.shape[0],
        "close_cell": t.close_bound.shape[0],
        "owed_cell": t.owed.shape[0],
        "forced_list": t.forced_offset.shape[0] - 1,
        "forced_token": t.forced_tokens.shape[0],
        "class": t.symbol_class.shape[0],
        "loop": loops_of(bundle).bits.shape[0] - 1,
        "bundle": 1,
    }
    with_registers = {
        "register_rule": t.register_rule.shape[0] - 1,
        "register_test": t.test_wants.shape[0] - 1,
        "check_list": t.check_offset.shape[0] - 2,
        "check": t.check.shape[0],
        "way_list": t.way_offset.shape[0] - 2,
        "way": t.way.shape[0],
    }
    return {**found, **(with_registers if t.has_registers else dict.fromkeys(with_registers, 0))}


def special_map(bundle: Bundle) -> np.ndarray:
    """int32 [V]: the special symbol of a token, or -1."""
    symbols = np.full(bundle.vocab.size, -1, dtype=np.int32)
    symbols[bundle.tables.special_token] = bundle.tables.special_symbol
    return symbols


def key_of(row: np.ndarray) -> bytes:
    """The content address of a row, uint32 [words]."""
    return hashlib.blake2b(row.data, digest_size=16).digest()


def row_keys(bundle: Bundle) -> list[bytes]:
    """The content address of every row, that of the end-of-turn ids last; found once."""
    found: list[bytes] | None = bundle.__dict__.get("_row_keys")
    if found is None:
        found = bundle.__dict__["_row_keys"] = [key_of(row) for part in expanded(bundle) for row in part]
    return found


def device_bytes(bundle: Bundle) -> dict[str, int]:
    """The memory that a decoder's tables take on a device for this bundle alone.

    Returns:
        rows: how many different rows there are, an empty and a full one among them; row_bytes: their size,
        rows x ceil(V / 32) x 4; table_bytes: states, transitions and what else belongs to the bundle; vocab_bytes: the
        bytes of the tokens, shared by all bundles of the vocabulary; total_bytes: the sum.
    """
    v, k = bundle.vocab, Limits.of_shapes(bundle)
    first = reserved(k, v.words)
    count = {name: first[names[0]].shape[0] for name, names in GROUPS.items()}
    for name, length in lengths(bundle).items():
        count[name] += length
    count["special"] += v.size
    empty = key_of(np.zeros(v.words, np.uint32))
    rows = len({empty, *row_keys(bundle)}) + 1  # and the full one
    tables = sum(
        4 * count[group] * int(np.prod(first[name].shape[1:], dtype=np.int64))
        for group, names in GROUPS.items()
        for name in names
        if group != "row"
    )
    found = {"rows": rows, "row_bytes": 4 * rows * v.words, "table_bytes": tables}
    found["vocab_bytes"] = 4 * (v.token_bytes.size + 1 + v.token_offset.size)
    return {**found, "total_bytes": sum(found.values()) - rows}


def _moved(owner: np.ndarray, base: int) -> np.ndarray:
    return np.where(owner >= 0, owner + base, -1)


def _moved_number(number: np.ndarray, base: int) -> np.ndarray:
    """Numbers of which 0 stands for the empty one of all bundles."""
    return np.where(number > 0, number + base - 1, 0)


def _pad_breaks(breaks: np.ndarray, count: int) -> np.ndarray:
    out = np.zeros((breaks.shape[0], count, 2), dtype=np.int32)
    out[:, : breaks.shape[1]] = breaks
    return out


def _registers(t: Tables, base: Mapping[str, int], columns: list[int], words: int) -> dict[str, np.ndarray]:
    """The tables about registers, of an arena whose registers have so many words."""

    def test(numbers: np.ndarray) -> np.ndarray:
        return _moved_number(numbers, base["register_test"])

    rule, check = t.register_rule[1:], t.check
    found = np.zeros((t.test_wants.size - 1, 1 + words), np.int32)
    found[:, 0] = t.test_wants[1:]
    found[:, 1 : 1 + t.register_words] = t.test_mask[1:].view(np.int32)
    return {
        "state_register": _moved_number(t.state_register[2:, None], base["register_rule"]),
        "register_rule": np.stack([test(rule[:, 0]), rule[:, 1], test(rule[:, 2]), rule[:, 3]], axis=1),
        "register_test": found,
        "cell_check": _moved_number(t.cell_check[:, columns], base["check_list"]),
        "chain_check": _moved_number(t.chain_check[:, None], base["check_list"]),
        "check_offset": t.check_offset[1:-1, None] + base["check"],
        "check_length": np.diff(t.check_offset[1:])[:, None],
        "check": np.stack([check[:, 0], test(check[:, 1]), test(check[:, 2])], axis=1),
        "state_way": _moved_number(t.state_way[2:, None], base["way_list"]),
        "way_offset": t.way_offset[1:-1, None] + base["way"],
        "way_length": np.diff(t.way_offset[1:])[:, None],
        "way": np.stack([t.way[:, 0], test(t.way[:, 1])], axis=1),
    }


def relocated(
    bundle: Bundle, loop: Loops, base: Mapping[str, int], row_of: np.ndarray, limits: Limits
) -> dict[str, np.ndarray]:
    """The tables of a bundle, by name, but for rows and special maps.

    Args:
        bundle: the bundle; loop: its loops.
        base: of each group, where the bundle's entries start; of "special", where its map is.
        row_of: int32 [rows + 1], where each of its rows is.
        limits: of the arena: how wide breakpoints, modes and registers are.
    """
    t: Tables = bundle.tables
    shift = base["state"] - 2

    def state(numbers: np.ndarray) -> np.ndarray:
        return np.where(numbers < 2, numbers, numbers + shift)

    back = t.return_[:, 1]
    kind, number = kind_of(t.delta[:, 1]), number_of(t.delta[:, 1])
    number = np.where(kind < PUSH, state(number), np.where(kind == POP, number, number + base["push"]))
    columns = [min(mode, t.modes - 1) for mode in range(limits.modes)]
    found = {
        "state_cell": t.state_cell[2:] + base["cell"],
        "state_break": _moved_number(t.state_break[2:], base["break_list"]),
        "breaks": _pad_breaks(t.breaks[1:], limits.breaks),
        "state_loop": _moved_number(loop.state_loop[2:], base["loop"]),
        "loop_bits": loop.bits[1:].view(np.int32),
        "cell_row": row_of[t.cell_row[:, columns]],
        "cell_exit": _moved(t.cell_exit[:, columns], base["profile"]),
        "cell_delta": t.cell_delta + base["delta"],
        "cell_default": t.cell_default + base["delta"],
        "delta": np.stack([_moved(t.delta[:, 0], base["delta"]), op_of(kind, number)], axis=1),
        # A bundle of one mode reads always in mode 0, also beside others that have two.
        "push": np.stack([t.push[:, 0], state(t.push[:, 1]), state(t.push[:, t.modes]), t.push[:, 3]], axis=1),
        "return_offset": t.return_offset + base["return"],
        "return": np.stack(
            [_moved(t.return_[:, 0], base["return"]), return_of(state(state_of_return(back)), action_of_return(back))],
            axis=1,
        ),
        "chain_offset": t.chain_offset + base["chain"],
        "chain": np.stack([_moved(t.chain[:, 0], base["chain"]), t.chain[:, 1] + base["chain_number"]], axis=1),
        "chain_cell": t.chain_cell + base["chain_cell"],
        "chain_break": _moved_number(t.chain_break, base["break_list"]),
        "chain_row": row_of[t.chain_row],
        "chain_exit": _moved(t.chain_exit, base["profile"]),
        "state_close": t.state_close[2:] + base["close_cell"],
        "close_break": _moved_number(t.close_break[2:], base["close_break_list"]),
        "close_breaks": _pad_breaks(t.close_breaks[1:], limits.closes),
        "state_forced": t.state_forced[2:] + base["forced_list"],
        "forced_after": t.forced_after[2:],
        "owed_first": t.owed_first + base["owed_cell"],
        "owed_break": _moved_number(t.owed_break, base["close_break_list"]),
        "chain_after": t.chain_after,
        "close_bound": t.close_bound,
        "close_token": t.close_token[:, columns],
        "close_after": t.close_after[:, columns],
        "owed": t.owed,
        "forced_offset": t.forced_offset[:-1] + base["forced_token"],
        "forced_length": np.diff(t.forced_offset),
        "forced_tokens": t.forced_tokens,
        "symbol_class": t.symbol_class,
        "class_base": np.array([base["class"]]),
        "special_base": np.array([base["special"]]),
        "symbol_base": np.array([base["symbol"]]),
        "soft_depth": np.array([bundle.meta["soft_depth"]]),
        "capacity": np.array([bundle.meta["capacity"]]),
        "finished_row": row_of[-1:],
    }
    if t.has_registers:
        found |= _registers(t, base, columns, limits.registers)
    elif limits.registers:  # those of a bundle that was there before may stand there
        found["state_register"] = found["state_way"] = np.zeros((t.states - 2, 1))
        found["cell_check"] = np.zeros((t.cells, limits.modes))
        found["chain_check"] = np.zeros((t.chain_row.size, 1))
    return {name: np.ascontiguousarray(array, dtype=np.int32) for name, array in found.items()}
