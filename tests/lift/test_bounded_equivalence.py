"""States that are equivalent on short texts: against the definition, and the masks of positions in repetitions."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

from toolc.compiler import compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.lift import bounded_equivalence as module
from toolc.compiler.lift.walk import Machine
from toolc.compiler.passes import Pass, without
from toolc.runtime import Matcher
from toolc.runtime.format.ops import KIND_BITS, KIND_MASK, POP, PUSH

from .test_counted_grids import compare, runs

STATES, CLASSES, LONGEST = 160, 3, 9


def machine(seed: int) -> Machine:
    """A chain of states with a threshold here and there, and some that leave it."""
    rng = random.Random(seed)
    threshold_offset, threshold, state_row, ops = [0], [], [0], []
    for q in range(STATES):
        more = rng.random() < 0.05
        threshold += [rng.choice([7, 9])] * more
        threshold_offset.append(len(threshold))
        for _ in range(1 + more):
            on = min(q + 1, STATES - 1) << KIND_BITS | rng.choice([0, 1, 1, 1])
            leave = rng.choice([0, 0, 0, 0, 0, 0, 3 << KIND_BITS | POP, 2 << KIND_BITS | PUSH])
            ops.append([on if rng.random() < 0.97 else 0, on, leave])
        state_row.append(len(ops))
    of_pushes = np.zeros((1, 4), np.int32), np.zeros(1, np.int32), np.zeros((1, 2), np.int32)
    return Machine(
        np.array(state_row, np.int32), np.array(threshold_offset, np.int32), np.array(threshold, np.int32),
        np.array(ops, np.int32), np.zeros(1, np.int32), *of_pushes,
        np.array([rng.random() < 0.02 for _ in range(STATES)]), np.zeros(1, bool), np.zeros((len(ops), 4), np.uint64),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_they_are_those_of_the_definition(seed: int) -> None:
    m = machine(seed)
    compared = np.array([random.Random(f"{seed} {q}").random() < 0.9 for q in range(STATES)])

    @functools.cache
    def equal(p: int, q: int, length: int) -> bool:
        if p == q:
            return True
        if not compared[p] or not compared[q] or m.narrow_state[p] != m.narrow_state[q]:
            return False
        if length == 0:
            return True
        spans = [slice(m.threshold_offset[one], m.threshold_offset[one + 1]) for one in (p, q)]
        if m.threshold[spans[0]].tolist() != m.threshold[spans[1]].tolist():
            return False
        rows = zip(*(m.ops[m.state_row[one] : m.state_row[one + 1]].ravel().tolist() for one in (p, q)), strict=True)
        for a, b in rows:
            if a != b and (a == 0 or b == 0 or a & KIND_MASK != b & KIND_MASK or a & KIND_MASK >= PUSH):
                return False
            if a != b and not equal(a >> KIND_BITS, b >> KIND_BITS, length - 1):
                return False
        return True

    table = module.equivalent_states(m, compared, LONGEST, Budget())
    assert (table[1] != np.arange(STATES)).any()
    for length in range(LONGEST + 1):
        row = table[min(length, len(table) - 1)]
        assert row.tolist() == [next(p for p in range(q + 1) if equal(p, q, length)) for q in range(STATES)]


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    m, compared = machine(0), np.ones(STATES, bool)
    monkeypatch.setattr(module, "_MOST", 4 * STATES)
    table = module.equivalent_states(m, compared, LONGEST, Budget())
    assert len(table) == 4 and table[-1].tolist() == list(range(STATES))
    monkeypatch.setattr(module, "_MOST", STATES)
    assert not module.equivalent_states(m, compared, LONGEST, Budget()).size


@pytest.mark.parametrize(
    "pattern", ["^([ab]{1,60}x)*[ab]{1,30}$", "^(a|b{2,50}é)*$", "^a{0,70}(x|é{40}b?){0,2}a{5,20}$"]
)
def test_masks_at_every_position(pattern: str) -> None:
    """Those of every token, and those of a compile that shares no walks between states."""
    schema = {"type": "string", "pattern": pattern, "maxLength": 120}
    held = compile_schema(schema, runs()).bundle
    with without(Pass.BOUNDED_EQUIVALENCE):
        plain = compile_schema(schema, runs()).bundle
    for name, array in plain.tables.arrays().items():
        assert np.array_equal(array, held.tables.arrays()[name]), name
    rng = random.Random(pattern)
    compared = 0
    for _ in range(3):
        matcher, letter = Matcher(held), "a"
        assert matcher.advance_bytes(b'"') == 1
        for _ in range(120):
            compare(held, matcher)
            compared += 1
            letter = letter if rng.random() < 0.9 else rng.choice("abxé")
            possible = [one for one in (letter, *"abxé") if _goes(matcher, one)]
            if not possible:
                break
            matcher.advance_bytes(possible[0].encode())
    assert compared > 60


def _goes(matcher: Matcher, letter: str) -> bool:
    """Whether a character may come now."""
    return matcher.fork().advance_bytes(letter.encode()) == len(letter.encode())
