"""Bundles to which made-up registers are given: random rules, tests and check lists.

Their masks are what the tables say, not what the automaton reads: compare with `Sequence.mask` and `Sequence.reads`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np

from toolc.runtime.format.bundle import Bundle

from .handmade import bundle


@cache
def with_registers(kind: str, seed: int, words: int = 2) -> Bundle:
    """A bundle of handmade.py, with registers of so many words."""
    made, pick = bundle(kind), random.Random(f"{kind} {seed}")
    t, size = made.tables, made.vocab.size
    bits = pick.sample(range(32 * words), 6)
    tests = [(0, 0)]
    for _ in range(9):
        tests.append((pick.randrange(2), sum(1 << bit for bit in pick.sample(bits, pick.randint(1, 3)))))
    masks = b"".join(mask.to_bytes(4 * words, "little") for _, mask in tests)

    def some_test(share: float) -> int:
        return pick.randrange(len(tests)) if pick.random() < share else 0

    rules = [(0, -1, 0)]
    rules += [(some_test(0.4), pick.choice((-1, *bits)), some_test(0.3)) for _ in range(7)]
    lists: list[list[tuple[int, int, int]]] = [[]]
    for _ in range(5):
        tokens = sorted(pick.sample(range(size), pick.choice((1, 5, 40, 80))))
        lists.append([(token, some_test(0.9), some_test(0.3)) for token in tokens])

    def ints(values: list[int], *shape: int) -> np.ndarray:
        return np.array(values, np.int32).reshape(shape)

    def some_lists(count: int) -> list[int]:
        return [pick.randrange(len(lists)) if pick.random() < 0.7 else 0 for _ in range(count)]

    states = [pick.randrange(len(rules)) if n > 1 and pick.random() < 0.8 else 0 for n in range(t.states)]
    tables = t.but(
        state_register=ints(states, -1),
        register_rule=ints([number for rule in rules for number in rule], -1, 3),
        test_wants=ints([wants for wants, _ in tests], -1),
        test_mask=np.frombuffer(masks, np.uint32).reshape(-1, words),
        cell_check=ints(some_lists(t.cells * t.modes), -1, t.modes),
        chain_check=ints(some_lists(t.chain_row.size), -1),
        check_offset=np.cumsum([0, *map(len, lists)], dtype=np.int32),
        check=ints([number for one in lists for check in one for number in check], -1, 3),
    )
    return replace(made, tables=tables, name=f"{kind} with registers {seed}")
