"""Registers on tensors against the specification: masks, tokens, rollback, drafts, several bundles in one arena."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from toolc.runtime import DecodeError, Decoder
from toolc.runtime.adapters.constraint import Constraint
from toolc.runtime.device import self_loops, torch_step
from toolc.runtime.device.arena import Arena
from toolc.runtime.device.relocate import REGISTER_TABLES, device_bytes
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle
from .with_registers import with_registers

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(8))]
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def small_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Slices of the tiny vocabulary count as worth looking at."""
    monkeypatch.setattr("toolc.runtime.device.self_loops.LEAST_LOOP", 1)
    forget_loops()
    yield
    forget_loops()


def forget_loops() -> None:
    for kind in KINDS:
        for made in (bundle(kind), *(with_registers(kind, seed, words) for seed in range(3) for words in (2, 3))):
            for name in ("_loops", "_longest_step"):
                made.__dict__.pop(name, None)


def check_row(decoder: Decoder, row: int, oracle: Sequence) -> None:
    here = decoder.configuration(row)
    assert (here.state, here.counter, here.stack) == (oracle.state, oracle.counter, oracle.stack)
    assert (here.register, here.registers) == (oracle.register, oracle.registers)


def moved(oracle: Sequence, token: int) -> Sequence | None:
    twin = oracle.copy()
    return twin if twin.advance(token) else None


def some_token(oracle: Sequence, pick: random.Random) -> int:
    """One that may be refused, though less often than most would be."""
    size = oracle.bundle.vocab.size
    for _ in range(12):
        token = pick.randrange(size)
        if oracle.reads(oracle.symbols(token)) is not None:
            return token
    return pick.randrange(size)


def mixed(pick: random.Random) -> list[Bundle]:
    """Three bundles with registers of one or two words, and one without."""
    kinds = pick.sample(KINDS, 4)
    made = [with_registers(kind, pick.randrange(3), pick.choice((2, 3))) for kind in kinds[:3]]
    return [*made, bundle(kinds[3])]


@pytest.mark.parametrize("stops_early", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_walks_of_mixed_bundles_equal_the_specification(seed: int, stops_early: bool) -> None:
    pick = random.Random(seed)
    made, size = mixed(pick), 10
    numbers = [pick.randrange(4) for _ in range(size)]
    decoder = Decoder(made, size, bundle_of_row=numbers, check=False, history=4)
    decoder._on_cpu = stops_early
    oracles = [Sequence.start(made[n]) for n in numbers]
    past: list[list[Sequence]] = [[] for _ in oracles]
    refused = taken_out = 0
    for _ in range(40):
        bits = decoder.fill().numpy().view(np.uint32)
        tokens = []
        for row, oracle in enumerate(oracles):
            check_row(decoder, row, oracle)
            assert (bits[row] == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all(), row
            taken_out += oracle.state > 1 and bool(oracle.taken_out(oracle.rows()))
            tokens.append(some_token(oracle, pick))
        decoder.advance_(torch.tensor(tokens))
        for row, (oracle, token) in enumerate(zip(oracles, tokens, strict=True)):
            after = oracle if oracle.state == 1 else moved(oracle, token)
            assert bool(decoder.error[row]) == (after is None)
            if after is None or len(after.stack) > after.bundle.meta["capacity"] - 6 or after.state == 1:
                refused += after is None
                numbers[row] = pick.randrange(4)
                decoder.reset_rows([row], numbers[row])
                oracles[row], past[row] = Sequence.start(made[numbers[row]]), []
            else:
                oracles[row], past[row] = after, [*past[row], oracle][-4:]
        if pick.random() < 0.3:
            counts = [pick.randint(0, len(one)) for one in past]
            decoder.rollback_(counts)
            for row, count in enumerate(counts):
                if count:
                    oracles[row], past[row] = past[row][-count], past[row][:-count]
        if pick.random() < 0.2:
            order = [pick.randrange(size) for _ in range(size)]
            decoder.reorder_(order)
            decoder = decoder.fork()
            oracles, past, numbers = ([some[i] for i in order] for some in (oracles, past, numbers))
    assert refused and taken_out


@pytest.mark.parametrize("seed", range(4))
def test_drafts_equal_the_specification(seed: int) -> None:
    pick = random.Random(seed)
    made = mixed(pick)
    decoder = Decoder(made, 4, bundle_of_row=[0, 1, 2, 3], check=False)
    oracles = [Sequence.start(one) for one in made]
    reached = 0
    for _ in range(15):
        nodes: list[list[Sequence | None]] = []
        tokens = []
        for oracle in oracles:
            line: list[Sequence | None] = [oracle]
            for _ in range(3):
                before = line[-1]
                token = some_token(before or oracle, pick)
                tokens.append(token)
                line.append(moved(before, token) if before is not None and before.state > 1 else None)
            nodes.append(line)
        draft = decoder.draft(torch.tensor(tokens).view(4, 3))
        bits = draft.bits.numpy().view(np.uint32)
        chosen = []
        for row, line in enumerate(nodes):
            for node, oracle in enumerate(line):
                if oracle is not None:
                    assert draft.legal[row, node]
                    assert (bits[row, node] == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all()
                elif all(one is None or one.state > 1 for one in line[:node]):  # what is over takes any token
                    assert not draft.legal[row, node]
            chosen.append(pick.choice([n for n, oracle in enumerate(line) if oracle is not None]))
        decoder.take_(draft, torch.tensor(chosen))
        for row, node in enumerate(chosen):
            oracle = nodes[row][node]
            assert oracle is not None
            reached += node
            check_row(decoder, row, oracle)
            oracles[row] = oracle
            if oracle.state == 1 or len(oracle.stack) > oracle.bundle.meta["capacity"] - 12 or pick.random() < 0.1:
                decoder.reset_rows([row])
                oracles[row] = Sequence.start(made[row])
    assert reached


def test_refused_tokens_change_nothing() -> None:
    made = with_registers("scrambled-3", 0)
    decoder, oracle, pick = Decoder(made, 1), Sequence.start(made), random.Random(0)
    read = refused = 0
    for _ in range(200):
        token = pick.randrange(made.vocab.size)
        after = moved(oracle, token)
        if after is None:
            with pytest.raises(DecodeError, match="not allowed"):
                decoder.advance_(torch.tensor([token]))
            refused += 1
        else:
            decoder.advance_(torch.tensor([token]))
            read, oracle = read + 1, after
        check_row(decoder, 0, oracle)
        if oracle.state == 1 or len(oracle.stack) > made.meta["capacity"] - 6:
            decoder.reset_rows()
            oracle = Sequence.start(made)
    assert read and refused


@pytest.mark.parametrize("kind", KINDS)
def test_the_prediction_is_what_an_arena_holds(kind: str) -> None:
    for made in (bundle(kind), with_registers(kind, 0)):
        arena = Arena(CPU)
        arena.add(made)
        assert arena.nbytes == device_bytes(made)["total_bytes"]
        held = sum(arena.table[name].nbytes for name in REGISTER_TABLES)
        assert (held > 0) == made.tables.has_registers


def test_rows_without_registers_take_none() -> None:
    decoder = Decoder(bundle("brackets"), 2)
    assert decoder.register.shape == (2, 0) and decoder.log.register.shape == (16, 2, 0)


@pytest.mark.parametrize("seed", range(4))
def test_bundles_come_to_rows_that_run(seed: int) -> None:
    """A bundle with registers comes where none was, then one with longer ones; rows that run, and their log, go on."""
    pick = random.Random(seed)
    made = [bundle("brackets"), with_registers("counted", 1, 2), with_registers(f"scrambled-{seed}", 0, 3)]
    made.append(bundle("words"))
    decoder = Decoder(made[0], 4, check=False)
    oracles = [Sequence.start(made[0]) for _ in range(4)]
    for new in range(4):
        if new:
            assert decoder.add_bundle(made[new]) == new
            decoder.reset_rows([new], new)
            oracles[new] = Sequence.start(made[new])
        walk(decoder, oracles, pick, 12)
    assert decoder.bundle_of_row.tolist() == [0, 1, 2, 3]
    assert decoder.arena.limits.registers == 3


def test_what_was_kept_before_registers_grew_comes_back() -> None:
    made, pick = with_registers("brackets", 9, 2), random.Random(0)  # a walk of which comes to no dead end
    decoder, oracles = Decoder(made, 1, check=False), [Sequence.start(made)]
    for token in pick.choices(range(made.vocab.size), k=500):
        if len(oracles) == 5:
            break
        after = moved(oracles[-1], token)
        if after is not None and after.state > 1:
            decoder.advance_(torch.tensor([token]))
            oracles.append(after)
    assert len(oracles) == 5
    assert any(oracle.register for oracle in oracles) and any(oracle.stack for oracle in oracles)
    width = decoder.register.shape[1]
    decoder.add_bundle(with_registers("counted", 1, 5))
    assert decoder.register.shape[1] > 2 * width
    for oracle in oracles[:0:-1]:
        check_row(decoder, 0, oracle)
        decoder.rollback_(1)
    check_row(decoder, 0, oracles[0])


def walk(decoder: Decoder, oracles: list[Sequence], pick: random.Random, steps: int) -> None:
    for _ in range(steps):
        before = list(oracles)
        for undo in (True, False):
            bits = decoder.fill().numpy().view(np.uint32)
            for row, oracle in enumerate(oracles):
                check_row(decoder, row, oracle)
                assert (bits[row] == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all()
            tokens = [some_token(oracle, pick) for oracle in oracles]
            decoder.advance_(torch.tensor(tokens))
            if undo:
                decoder.rollback_([int(oracle.state > 1) for oracle in before])
        for row, token in enumerate(tokens):
            after = moved(oracles[row], token)
            if after is None or after.state == 1 or len(after.stack) > after.bundle.meta["capacity"] - 6:
                decoder.reset_rows([row])
                after = Sequence.start(oracles[row].bundle)
            oracles[row] = after


def test_a_bundle_without_registers_where_one_with_was() -> None:
    """It has no rules, though its states stand where states with rules stood."""
    first, plain = with_registers("scrambled-2", 0), bundle("scrambled-2")
    decoder = Decoder([first, with_registers("words", 0)], 1, bundle_of_row=[0], check=False)
    place = decoder.arena.global_state(0, 2)
    decoder.reset_rows(None, 1)
    decoder.arena.evict(0)
    assert decoder.add_bundle(replace(plain, name="plain"), grow=False) == 0
    assert decoder.arena.global_state(0, 2) == place
    decoder.reset_rows(None, 0)
    walk(decoder, [Sequence.start(plain)], random.Random(0), 30)


def test_a_bundle_with_registers_does_not_fit_without_growth() -> None:
    decoder = Decoder(bundle("words"), 1, room=20.0)
    with pytest.raises(DecodeError, match="registers"):
        decoder.add_bundle(with_registers("words", 0), grow=False)


def test_states_with_rules_read_every_byte() -> None:
    made = with_registers("words", 1)
    rule = made.tables.register_rule[made.tables.state_register]
    acts = (rule[:, 0] != 0) | (rule[:, 1] >= 0)
    assert acts.any() and self_loops.loops_of(bundle("words")).state_loop[acts].any()
    assert not self_loops.loops_of(made).state_loop[acts].any()


@pytest.mark.parametrize("budgets", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_module_equals_the_decoder(seed: int, budgets: bool) -> None:
    pick = random.Random(seed)
    made = mixed(pick)
    module, numbers = Constraint(made, budgets=budgets), [0, 1, 2, 3, -1]
    decoder = Decoder(made, 5, bundle_of_row=numbers, check=False)
    state: Any = module.start(numbers)
    assert len(state) == 7 + budgets
    tokens = [-1] * 5
    for _ in range(10):
        logits = torch.randn(5, 96)
        masked, state = module(logits, torch.tensor(tokens), state)
        if tokens[0] >= 0:
            decoder.advance_(torch.tensor(tokens))
        assert torch.equal(masked, decoder.mask_(logits.clone()))
        assert torch.equal(state[1], decoder.state)
        live = decoder.fill().view(torch.uint8).numpy()
        allowed = [np.flatnonzero(np.unpackbits(row, bitorder="little")[:96]).tolist() for row in live]
        tokens = [pick.choice(row) if row else 0 for row in allowed]


def test_a_test_looks_at_every_word() -> None:
    table = {"register_test": torch.tensor([[0, 0, 0], [0, 0, 4], [1, 0, 4], [1, 1, -(1 << 31)]], dtype=torch.int32)}
    register = torch.tensor([[1, 0], [0, 4], [1, -(1 << 31)]], dtype=torch.int32)
    want = [[True] * 3, [False, True, False], [True, False, True], [True, True, False]]
    for test, expected in enumerate(want):
        found = torch_step.passes(table, torch.full((3,), test, dtype=torch.int32), register)
        assert found.tolist() == expected, test
