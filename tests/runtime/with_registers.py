"""Bundles to which made-up registers are given: random rules, tests, check lists and way lists.

Their masks are what the tables say, not what the automaton reads: compare with `Sequence.mask` and `Sequence.reads`.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import numpy as np

from toolc.runtime.format.bundle import Bundle
from toolc.runtime.format.tables import FIRST_BIT

from .handmade import bundle


@cache
def with_registers(kind: str, seed: int, words: int = 3) -> Bundle:
    """A bundle of handmade.py, with registers of so many words."""
    made, pick = bundle(kind), random.Random(f"{kind} {seed}")
    t, size = made.tables, made.vocab.size
    bits = pick.sample(range(FIRST_BIT, 32 * words), 6)
    tests = [(0, 0)]
    for _ in range(9):
        tests.append((pick.randrange(2), sum(1 << bit for bit in pick.sample(bits, pick.randint(1, 3)))))
    masks = b"".join(mask.to_bytes(4 * words, "little") for _, mask in tests)

    def some_test(share: float) -> int:
        return pick.randrange(len(tests)) if pick.random() < share else 0

    rules = [(0, -1, 0, 0)]
    for _ in range(7):
        bit = pick.choice((-1, *bits))
        rules.append((some_test(0.4), bit, some_test(0.3), 0 if bit < 0 else pick.randrange(3)))
    lists: list[list[tuple[int, int, int]]] = [[]]
    for _ in range(5):
        tokens = sorted(pick.sample(range(size), pick.choice((1, 5, 40, 80))))
        lists.append([(token, some_test(0.9), some_test(0.3)) for token in tokens])

    ways: list[list[tuple[int, int]]] = [[]]
    for _ in range(4):
        ways.append([(pick.randrange(size), some_test(0.9)) for _ in range(pick.choice((1, 3, 40)))])

    def ints(values: list[int], *shape: int) -> np.ndarray:
        return np.array(values, np.int32).reshape(shape)

    def some_lists(count: int, of: int = len(lists)) -> list[int]:
        return [pick.randrange(of) if pick.random() < 0.7 else 0 for _ in range(count)]

    states = [pick.randrange(len(rules)) if n > 1 and pick.random() < 0.8 else 0 for n in range(t.states)]
    tables = t.but(
        state_register=ints(states, -1),
        register_rule=ints([number for rule in rules for number in rule], -1, 4),
        test_wants=ints([wants for wants, _ in tests], -1),
        test_mask=np.frombuffer(masks, np.uint32).reshape(-1, words),
        cell_check=ints(some_lists(t.cells * t.modes), -1, t.modes),
        chain_check=ints(some_lists(t.chain_row.size), -1),
        check_offset=np.cumsum([0, *map(len, lists)], dtype=np.int32),
        check=ints([number for one in lists for check in one for number in check], -1, 3),
        state_way=ints(some_lists(t.states, len(ways)), -1),
        way_offset=np.cumsum([0, *map(len, ways)], dtype=np.int32),
        way=ints([number for one in ways for way in one for number in way], -1, 2),
    )
    return replace(made, tables=tables, name=f"{kind} with registers {seed}")
