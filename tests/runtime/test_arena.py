"""The memory of a device's tables: shared rows, the prediction, growth, eviction."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from toolc.runtime import DecodeError, Decoder
from toolc.runtime.device.arena import Arena
from toolc.runtime.device.free_list import Extents
from toolc.runtime.device.relocate import device_bytes
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle
from .with_registers import with_registers

CPU = torch.device("cpu")
KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(12))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_prediction_is_what_an_arena_holds(kind: str) -> None:
    arena = Arena(CPU)
    arena.add(bundle(kind))
    told = device_bytes(bundle(kind))
    assert arena.nbytes == told["total_bytes"] == told["row_bytes"] + told["table_bytes"] + told["vocab_bytes"]
    assert arena.table["dense"].shape[0] == told["rows"]
    assert told["row_bytes"] == told["rows"] * bundle(kind).vocab.words * 4
    assert arena.table["dense"].unique(dim=0).shape[0] == told["rows"]


def test_rows_are_stored_once() -> None:
    """The same tables under another spec are another bundle, but have the same rows."""
    first = bundle("brackets")
    twin = replace(first, meta={**first.meta, "spec": {"kind": "other"}})
    assert twin.digest != first.digest
    arena = Arena(CPU)
    assert arena.extend([first, twin]) == [0, 1]
    assert arena.table["dense"].shape[0] == device_bytes(first)["rows"]
    assert (arena.row_numbers(0) == arena.row_numbers(1)).all()
    arena.evict(0)
    assert (arena.row_numbers(1) < arena.table["dense"].shape[0]).all()
    kept = {row.tobytes() for row in arena.table["dense"][torch.from_numpy(arena.row_numbers(1))].numpy()}
    assert len(kept) == len(set(arena.row_numbers(1).tolist()))
    arena.evict(1)
    assert arena.bundles == [None, None] and arena.add(first) == 0


def test_a_bundle_opened_twice_is_one() -> None:
    first = bundle("counted")
    assert Arena(CPU).extend([first, first.renamed("again")]) == [0, 0]
    decoder = Decoder([first, bundle("words"), first.renamed("again")], 3, bundle_of_row=[0, 1, 2])
    assert decoder.bundle_of_row.tolist() == [0, 1, 0]


def walk(decoder: Decoder, oracles: list[Sequence], pick: random.Random, steps: int) -> None:
    for _ in range(steps):
        bits = decoder.fill().numpy().view(np.uint32)
        tokens = []
        for row, oracle in enumerate(oracles):
            live = sorted(oracle.mask())
            assert (bits[row] == bits_of(live, oracle.bundle.vocab.size)).all()
            tokens.append(pick.choice(live) if live and len(oracle.stack) < oracle.bundle.meta["capacity"] - 6 else 0)
        decoder.check = False
        decoder.advance_(torch.tensor(tokens))
        for row, (oracle, token) in enumerate(zip(oracles, tokens, strict=True)):
            if not oracle.advance(token):
                decoder.reset_rows([row])
                oracles[row] = Sequence.start(decoder.arena.bundle(int(decoder.bundle_of_row[row])))


@pytest.mark.parametrize("seed", range(8))
def test_bundles_come_and_go_under_a_limit(seed: int) -> None:
    """Rows that run on while others' bundles are evicted and replaced equal the specification."""
    pick = random.Random(seed)
    made = [with_registers(kind, 0) if seed % 2 and n % 3 else bundle(kind) for n, kind in enumerate(KINDS)]
    every = Arena(CPU)
    every.extend(made)
    limit = every.nbytes * 3 // 5
    decoder = Decoder(made[seed % 3], 2, memory_limit=limit)
    oracles = [Sequence.start(made[seed % 3]) for _ in range(2)]
    evicted = 0
    for _ in range(80):
        walk(decoder, oracles, pick, 5)
        new = pick.choice(made)
        before = {b for b in decoder.arena.bundles if b is not None}
        try:
            number = decoder.add_bundle(new)
        except DecodeError as error:
            assert "every bundle there is in use" in str(error)
            assert {n for n, b in enumerate(decoder.arena.bundles) if b is not None} == decoder.bundles_in_use()
            continue
        evicted += len(before - set(decoder.arena.bundles))
        row = pick.randrange(2)
        decoder.reset_rows([row], number)
        oracles[row] = Sequence.start(new)
        assert decoder.arena.nbytes <= limit
    assert evicted


def test_holes_are_closed_under_rows_that_run() -> None:
    """The second bundle moves to where the first was, with the rows in it and what they can roll back to."""
    first, second, third = (bundle(kind) for kind in ("words", "brackets", "scrambled-3"))
    both = Arena(CPU)
    both.extend([second, third])
    decoder = Decoder([first, second], 1, bundle_of_row=[1], memory_limit=both.nbytes, check=False)
    oracles = [Sequence.start(second)]
    before = decoder.arena.global_state(1, 2)
    for token in (4, 7, 6):
        decoder.advance_(torch.tensor([token]))
        assert oracles[0].advance(token)
    decoder.arena.evict(0)
    assert decoder.add_bundle(third) == 0
    assert decoder.arena.global_state(1, 2) != before
    walk(decoder.fork(), oracles, random.Random(1), 6)

    decoder.rollback_(2)
    oracle = Sequence.start(second)
    assert oracle.advance(4)
    assert (decoder.fill()[0].numpy().view(np.uint32) == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all()


def test_the_one_used_longest_ago_goes() -> None:
    made = [bundle(kind) for kind in KINDS[:3]]
    room = Arena(CPU)
    room.extend(made)
    limit = room.nbytes
    decoder = Decoder(made, 1, bundle_of_row=[1], memory_limit=limit)
    decoder.reset_rows([0], 2)
    decoder.reset_rows([0], 1)
    twin = decoder.fork()
    decoder.reset_rows([0], -1)
    decoder.add_bundle(replace(made[0], meta={**made[0].meta, "spec": {"kind": "other"}}))
    # 1 is in use by the fork; 0 was used before 2.
    assert decoder.arena.number(made[0]) is None and decoder.arena.number(made[1]) == 1
    with pytest.raises(DecodeError, match="in use"):
        decoder.arena.evict(1)
    assert twin.bundle_of_row.tolist() == [1]


def test_all_in_use() -> None:
    first = bundle("brackets")
    limit = device_bytes(first)["total_bytes"]
    decoder = Decoder(first, 1, memory_limit=limit)
    with pytest.raises(DecodeError, match="every bundle there is in use") as caught:
        decoder.add_bundle(bundle("words"))
    assert f"at most {limit:,}" in str(caught.value) and "brackets" not in caught.value.hint
    decoder.reset_rows([0], -1)
    number = decoder.add_bundle(bundle("counted"))
    decoder.reset_rows([0], number)
    walk(decoder, [Sequence.start(bundle("counted"))], random.Random(1), 10)
    with pytest.raises(DecodeError, match="memory limit"):
        Decoder(first, 1, memory_limit=limit - 1)


@pytest.mark.parametrize("seed", range(20))
def test_extents(seed: int) -> None:
    pick = random.Random(seed)
    extents, held = Extents(10), dict[int, int]()
    cells = [False] * 10
    for _ in range(200):
        if pick.random() < 0.5 and held:
            start = pick.choice(list(held))
            extents.give(start, held[start])
            length = held.pop(start)
            cells[start : start + length] = [False] * length
        elif pick.random() < 0.1:
            cells += [False] * 5
            extents.grow(len(cells))
        else:
            length = pick.randint(1, 4)
            fits = extents.fits([length])
            start = extents.take(length)
            runs = [i for i in range(len(cells) - length + 1) if not any(cells[i : i + length])]
            assert (start is not None) == fits == bool(runs)
            if start is not None:
                assert start == runs[0]
                held[start] = length
                cells[start : start + length] = [True] * length
        assert extents.used == sum(cells)
        assert extents.end == max((i + 1 for i, c in enumerate(cells) if c), default=0)
