"""States that read plain bytes alike: found as partition refinement finds them, and masks are those of every token."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from toolc.compiler import compile_schema
from toolc.compiler.lift import lift
from toolc.compiler.lift.children import alive_bytes
from toolc.compiler.lift.equivalent_states import find_alike
from toolc.compiler.lift.walk import Machine
from toolc.compiler.link import cache
from toolc.runtime import Matcher

from .brute import brute_mask
from .test_masks import bits, choose, vocab

STRINGS = {
    "letters": {"type": "string", "pattern": "^[a-z]{2,5}-[0-9]+$"},
    "words": {"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_.-]*(/[a-z]+)?$"},
    "email": {"type": "string", "format": "email"},
    "uri": {"type": "string", "format": "uri"},
    "escapes": {"type": "string", "pattern": '^[a-z"\\\\é]{3}x*$'},
    "counted": {"type": "string", "pattern": "^[a-z0-9]{1,40}$"},
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))


def forget() -> None:
    """Keep no part that was compiled before."""
    cache.forget()
    shutil.rmtree(os.environ["TOOLC_CACHE"], ignore_errors=True)


@pytest.mark.parametrize("kind", STRINGS)
def test_masks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = []

    def kept(*args: np.ndarray) -> np.ndarray:
        shared.append(found := find_alike(*args))
        return found

    monkeypatch.setattr(lift, "find_alike", kept)
    forget()
    names = ["a", "b", "other", "one more"]
    schema = {
        "type": "object",
        "properties": {**dict.fromkeys(names, STRINGS[kind]), "letters": STRINGS["letters"]},
        "required": names[1:],
        "additionalProperties": False,
    }
    held = compile_schema(schema, vocab("builtin")).bundle
    some = any(np.unique(found[found >= 0]).size < (found >= 0).sum() for found in shared)
    assert some == (kind != "counted")
    rng = random.Random(kind)
    for _ in range(12):
        matcher = Matcher(held)
        for _ in range(60):
            allowed = bits(matcher, held.vocab.size)
            np.testing.assert_array_equal(allowed, brute_mask(held, matcher))
            matcher.advance(choose(np.flatnonzero(allowed), held, rng))
            if matcher.is_finished:
                break


def machine(ops: np.ndarray, symbol_class: np.ndarray) -> Machine:
    """States of one op row each."""
    none, offset = np.zeros(0, np.int32), np.zeros(len(ops) + 1, np.int32)
    alive, _ = alive_bytes(ops, symbol_class)
    return Machine(
        np.arange(len(ops) + 1, dtype=np.int32), offset, none, ops, symbol_class, np.zeros((0, 4), np.int32),
        none, np.zeros((0, 2), np.int32), np.zeros(len(ops), bool), np.zeros(0, bool), alive,
    )  # fmt: skip


def refined(ops: np.ndarray, classes: list[int]) -> list[int]:
    """The class of each state: as many rounds as there are states."""
    number = [int(q > 0) for q in range(len(ops))]
    for _ in range(len(ops)):
        rows = [(number[q], *(number[ops[q, k] >> 3] for k in classes)) for q in range(len(ops))]
        known = {row: n for n, row in enumerate(dict.fromkeys(rows))}
        number = [known[row] for row in rows]
    return number


@pytest.mark.parametrize("seed", range(60))
def test_what_is_alike(seed: int) -> None:
    """Three copies of states that differ in what they do on other bytes; the last one has one change more."""
    rng = random.Random(seed)
    size, classes = rng.randint(2, 20), [0, 1, 3]
    symbol_class = np.array([rng.randrange(4) for _ in range(258)], np.int32)
    ops = np.zeros((2 + 3 * size, 4), np.int32)
    for n in range(size):
        for k in range(4):
            target = rng.choice([0, 0, 1, *range(2, 2 + size)])
            for copy in range(3):
                to = target + (copy * size if target > 1 else 0) if k in classes else rng.randrange(len(ops))
                ops[2 + n + copy * size, k] = 8 * to + (rng.randrange(4) if to else 0)
    changed = rng.randrange(2 + 2 * size, len(ops)), rng.choice(classes)
    ops[changed] = 8 * rng.randrange(3) + rng.choice([0, 1, 4, 5]) if rng.random() < 0.8 else 0
    plain = np.isin(symbol_class[:256], classes)
    wanted = refined(ops, classes)
    leaves = {q for q in range(len(ops)) if any(ops[q, k] & 7 >= 4 for k in classes)}
    for _ in range(size):
        leaves |= {
            q for q in range(len(ops)) if any(op & 7 < 4 and op >> 3 in leaves for op in ops[q, classes].tolist())
        }
    states = np.array(rng.sample(range(len(ops)), len(ops)), np.int32)
    found = find_alike(
        machine(ops, symbol_class),
        np.packbits(plain, bitorder="little").view(np.uint64).reshape(1, 4),
        np.array(classes, np.int32),
        states,
    )
    like = dict(zip(states.tolist(), found.tolist(), strict=True))
    wide = {q for q in like if q not in leaves and sum(ops[q, symbol_class[:256][plain]] != 0) >= 24}
    assert {q for q in like if like[q] >= 0} == (wide if len(wide) > 1 else set())
    for q in wide:
        assert like[q] < 0 or (wanted[like[q]] == wanted[q] and like[like[q]] == like[q])
        if q < 2 + size:
            assert like[q] == like[q + size]
