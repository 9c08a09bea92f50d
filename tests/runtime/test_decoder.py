"""The batch decoder against the plain specification: masks, states, several bundles, reordering."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from toolc.compiler import compile_schema
from toolc.runtime import BatchMatcher, BundleError, DecodeError, Decoder, Matcher
from toolc.runtime.device import self_loops as loops_module
from toolc.runtime.device.decoder import PER_ROW
from toolc.runtime.reference import Machine, Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words", *(f"scrambled-{n}" for n in range(20))]
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")),
]


@pytest.fixture(autouse=True)
def small_loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Slices of the tiny vocabulary count as worth looking at."""
    monkeypatch.setattr("toolc.runtime.device.self_loops.LEAST_LOOP", 1)
    forget_loops()
    yield
    forget_loops()


def forget_loops() -> None:
    """Of bundles that tests share: those found with one limit are not those of another."""
    for kind in KINDS:
        for name in ("_loops", "_longest_step"):
            bundle(kind).__dict__.pop(name, None)


def check_rows(decoder: Decoder, oracles: list[Sequence | None]) -> None:
    bits = decoder.fill().cpu().numpy().view(np.uint32)
    for row, oracle in enumerate(oracles):
        if oracle is None:
            assert (bits[row] == 0xFFFFFFFF).all()
            continue
        assert (bits[row] == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all(), row
        twin = Matcher.at(decoder.configuration(row))
        assert (twin.state, twin.counter, twin.stack) == (oracle.state, oracle.counter, oracle.stack)
    assert decoder.finished.tolist() == [o is not None and o.state == 1 for o in oracles]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(6))
def test_walks_of_mixed_bundles_equal_the_specification(seed: int, device: str) -> None:
    pick = random.Random(seed)
    bundles = [bundle(kind) for kind in pick.sample(KINDS, 4)]
    size = 9
    numbers = [pick.randint(-1, 3) for _ in range(size)]
    decoder = Decoder(bundles, size, device, bundle_of_row=numbers)
    oracles: list[Any] = [None if n < 0 else Sequence.start(bundles[n]) for n in numbers]
    for _ in range(60):
        check_rows(decoder, oracles)
        tokens = []
        for row, oracle in enumerate(oracles):
            live = [] if oracle is None else sorted(oracle.mask())
            # a row that is stuck, or too deep for a machine without modes, begins again
            if oracle is not None and (not live or len(oracle.stack) > oracle.bundle.meta["capacity"] - 6):
                number = pick.randrange(4)
                decoder.reset_rows([row], number)
                oracles[row] = oracle = Sequence.start(bundles[number])
                live = sorted(oracle.mask())
            tokens.append(pick.choice(live) if live else pick.randrange(-3, 200))
        decoder.advance_(torch.tensor(tokens, device=device))
        for oracle, token in zip(oracles, tokens, strict=True):
            assert oracle is None or oracle.advance(token)
        if pick.random() < 0.2:
            order = [pick.randrange(size) for _ in range(size)]
            decoder.reorder_(order)
            oracles = [None if oracles[i] is None else oracles[i].copy() for i in order]


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_equal_the_specification(kind: str) -> None:
    """Every token of the vocabulary at once, from one configuration: refused and accepted as by brute force."""
    made = bundle(kind)
    pick = random.Random(kind)
    oracle = Sequence.start(made)
    size = made.vocab.size
    for _ in range(12):
        decoder = Decoder(made, 1, check=False)
        decoder.state[0] = decoder.arena.global_state(0, oracle.state)
        decoder.counter[0], decoder.depth[0] = oracle.counter, len(oracle.stack)
        for n, (g, saved) in enumerate(oracle.stack):
            decoder.stack[0, n], decoder.saved[0, n] = g, saved
        decoder.reorder_([0] * (size + 2))
        decoder.advance_(torch.arange(-1, size + 1))
        want = [oracle.reads(oracle.symbols(i)) if 0 <= i < size else None for i in range(-1, size + 1)]
        if oracle.state != 1:
            assert decoder.error.tolist() == [w is None for w in want]
            assert decoder.finished.tolist() == [w is None or w.state == 1 for w in want]
        for row, w in enumerate(want):
            if w is not None:
                twin = Matcher.at(decoder.configuration(row))
                assert (twin.state, twin.counter, twin.stack) == (w.state, w.counter, w.stack)
        live = sorted(oracle.mask())
        if not live or len(oracle.stack) > made.meta["capacity"] - 6 or not oracle.advance(pick.choice(live)):
            break


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("size", [31, 32, 33, 64, 65, 96])
def test_logits(size: int, dtype: torch.dtype) -> None:
    made = bundle("brackets", size)
    for extra in (0, 1, 31, 64):
        decoder = Decoder(made, 3, bundle_of_row=[0, -1, 0])
        decoder.advance_(torch.tensor([4, 999, 7]))
        logits = torch.randn(3, size + extra).to(dtype)
        before = logits.clone()
        assert decoder.mask_(logits) is logits
        assert torch.equal(logits[1], before[1])
        for row, tokens in ((0, [4]), (2, [7])):
            allowed = Matcher.from_tokens(made, tokens).allowed_tokens().tolist()
            kept = torch.isfinite(logits[row]).nonzero().view(-1).tolist()
            assert kept == allowed
            assert torch.equal(logits[row, allowed], before[row, allowed])


def test_logits_with_strides_and_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolc.runtime.device import masks as module

    monkeypatch.setattr(module, "CHUNK_ELEMENTS", 200)
    made = bundle("brackets")
    decoder = Decoder(made, 7)
    wide = torch.zeros(7, 2, 100)
    logits = wide[:, 1]
    decoder.mask_(logits)
    assert not wide[:, 0].any()
    want = Matcher(made).allowed_tokens().tolist()
    assert all(torch.isfinite(row).nonzero().view(-1).tolist() == want for row in logits)


def test_refused_token_with_and_without_check() -> None:
    made = bundle("brackets")
    decoder = Decoder(made, 3)
    decoder.advance_(torch.tensor([4, 7, 4]))
    with pytest.raises(DecodeError, match=r"row 1 of 3.*\n.*token 4, '\['.*expected one of"):
        decoder.advance_(torch.tensor([4, 4, 4]))
    assert decoder.depth.tolist() == [1, 0, 1]
    loose = Decoder(made, 3, check=False)
    loose.advance_(torch.tensor([4, 7, 4]))
    loose.advance_(torch.tensor([4, 4, 4]))
    assert loose.error.tolist() == [False, True, False]
    assert loose.finished.tolist() == [False, True, False]
    logits = loose.mask_(torch.zeros(3, made.vocab.size))
    assert torch.isfinite(logits[1]).nonzero().view(-1).tolist() == [0, 3]
    loose.reset_rows(torch.tensor([False, True, False]))
    assert not loose.error.any() and not loose.finished.any()


def test_finished_rows_take_padding() -> None:
    made = bundle("brackets")
    decoder = Decoder(made, 2)
    for tokens in ([7, 4], [0, 7], [2, 5], [95, 3]):
        decoder.advance_(torch.tensor(tokens))
    assert decoder.finished.tolist() == [True, True]
    bits = decoder.fill().numpy().view(np.uint32)
    assert (bits == bits_of([0, 3], made.vocab.size)).all()


def test_bundle_added_later_and_foreign_vocab() -> None:
    decoder = Decoder(bundle("brackets"), 2)
    decoder.advance_(torch.tensor([4, 4]))
    number = decoder.add_bundle(bundle("counted"))
    assert decoder.add_bundle(bundle("brackets")) == 0
    decoder.reset_rows([1], number)
    decoder.advance_(torch.tensor([4, 4]))
    decoder.advance_(torch.tensor([7, 7]))
    assert (Matcher.at(decoder.configuration(0)).depth, Matcher.at(decoder.configuration(1)).depth) == (2, 1)
    assert Matcher.at(decoder.configuration(1)).counter == 1
    with pytest.raises(BundleError, match="one tokenizer"):
        decoder.add_bundle(bundle("brackets", 64))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda d: d.mask_(torch.zeros(2, 80)), "logits are too narrow.*found 80 logits, expected at least"),
        (lambda d: d.mask_(torch.zeros(3, 96)), "logits do not fit"),
        (lambda d: d.mask_(torch.zeros(2, 96, dtype=torch.int32)), "no floats"),
        (lambda d: d.advance_(torch.zeros(3, dtype=torch.int64)), "tokens do not fit"),
        (lambda d: d.advance_(torch.zeros(2)), "tokens do not fit"),
        (lambda d: d.reset_rows(None, 5), "no such bundle"),
        (lambda d: d.reset_rows(None, 0, "nowhere"), "no such entry"),
        (
            lambda d: d.mask_(torch.zeros(1, 96).expand(2, 96)),
            r"logits do not fit; found \[2, 96\] by strides",
        ),
        (lambda d: d.mask_(torch.zeros(2, 1).expand(2, 96)), "a place of its own"),
        (lambda d: d.reset_rows([-1]), "no such row; found -1, expected 0 to 1"),
        (lambda d: d.reset_rows([0, 9]), "no such row; found 9"),
        (lambda d: d.reset_rows([0.5]), "rows do not fit"),
        (lambda d: d.reset_rows(torch.tensor([True])), "rows do not fit"),
        (lambda d: d.limit_(40, [2]), "no such row"),
        (lambda d: d.limit_(torch.tensor([40.5, 40.5])), "budgets do not fit"),
        (lambda d: d.limit_([40, 40, 40]), "budgets do not fit"),
        (lambda d: d.configuration(-1), "no such row"),
        (lambda d: d.configuration(7), "no such row"),
        (lambda d: d.reorder_([2]), "no such row"),
        (lambda d: d.reorder_([0, -1]), "no such row"),
        (lambda d: d.reorder_(torch.tensor([0.0, 1.0])), "rows do not fit"),
        (lambda d: d.rollback_(0.5), "counts do not fit"),
        (lambda d: d.rollback_(torch.tensor([0.5, 0.5])), "counts do not fit"),
        (lambda d: d.rollback_(torch.tensor([0, 0, 0])), "counts do not fit"),
        (lambda d: d.rollback_(2**63), "cannot roll back"),
        (lambda d: d.rebuild_(torch.tensor([[4.0], [4.0]])), "tokens do not fit"),
        (lambda d: d.rebuild_(torch.tensor([[4], [4]]), torch.tensor([1.5, 1.0])), "lengths do not fit"),
        (lambda d: d.rebuild_(torch.tensor([[4]]), rows=[-1]), "no such row"),
        (lambda d: d.advance_([4, 4]), "tokens do not fit; found list"),
        (lambda d: d.advance_(None), "tokens do not fit; found NoneType"),
        (lambda d: d.draft([[4], [4]]), "tokens do not fit; found list"),
        (lambda d: d.mask_(np.zeros((2, 96), np.float32)), "logits do not fit; found ndarray"),
        (lambda d: d.take_(d.draft(torch.tensor([[4], [4]])), torch.tensor([0.5, 1.0])), "nodes do not fit"),
        (lambda d: d.draft(torch.tensor([[4, 4], [4, 4]]), torch.tensor([-1, 1])), "no token before its own"),
        (lambda d: d.draft(torch.tensor([[4, 4], [4, 4]]), torch.tensor([-2, 0])), "no token before its own"),
        (lambda d: d.draft(torch.tensor([[4, 4], [4, 4]]), torch.tensor([-1])), "parents do not fit"),
        (lambda d: d.draft(torch.tensor([[4, 4], [4, 4]]), torch.tensor([-1.0, 0.0])), "parents do not fit"),
        (lambda d: d.mask_(torch.zeros(2, 96).to(torch.float8_e4m3fn)), "16 bits or more"),
        (lambda d: Decoder([], 1), "needs a bundle"),
        (lambda d: Decoder("weather.toolc", 1), "no bundle; found 'weather.toolc', expected a Bundle"),
        (lambda d: Decoder([bundle("brackets"), {}], 2), "no bundle; found {}"),
        (lambda d: Decoder(bundle("brackets"), 2, bundle_of_row=[1, 0]), "no such bundle"),
    ],
)
def test_misuse(call: Any, fragment: str) -> None:
    with pytest.raises(DecodeError, match=fragment):
        call(Decoder(bundle("brackets"), 2))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda d: d.append_([99], budget=40), "no such bundle"),
        (lambda d: d.append_([0, 99]), "no such bundle"),
        (lambda d: d.append_([0], "nowhere"), "no such entry"),
        (lambda d: d.append_([0], budget=1), "budget is too small"),
        (lambda d: d.append_([0], budget=[40, 40]), "budgets and rows"),
        (lambda d: d.reset_rows([1, 0], [0, 99], budget=40), "no such bundle"),
        (lambda d: d.reset_rows([1, 0], 0, budget=[40, 1]), "budget is too small"),
        (lambda d: d.limit_([40, 0]), "budget is too small"),
        (lambda d: d.reorder_([0, 2, 1]), "no such row"),
        (lambda d: d.rollback_([1, 2]), "cannot roll back"),
        (lambda d: d.rebuild_(torch.tensor([[4], [4]]), torch.tensor([1, 1, 1])), "lengths do not fit"),
        (lambda d: d.rebuild_(torch.tensor([[4], [4]]), torch.tensor([2, 0])), "lengths do not fit"),
        (lambda d: d.rebuild_(torch.tensor([[4], [4]]), torch.tensor([-1, 0])), "lengths do not fit"),
        (lambda d: d.rebuild_(torch.tensor([[4, 99], [4, 4]])), "no such token; found 99"),
        (lambda d: d.rebuild_(torch.tensor([[4, 0]]), rows=[1]), "not allowed here"),
        (lambda d: d.reset_rows(None, 0, budget=torch.tensor([40, 40])), "no number of tokens"),
        (lambda d: d.step_(torch.tensor([4, 7]), torch.zeros(2, 80)), "logits are too narrow"),
        (lambda d: d.step_(torch.tensor([4, 7]), torch.zeros(2, 1).expand(2, 96)), "a place of its own"),
        (lambda d: d.advance_(torch.tensor([4, 99])), "no such token; found 99"),
        (lambda d: d.take_(d.draft(torch.tensor([[4], [4]])), torch.tensor([1, 2])), "no such node"),
        (
            lambda d: d.take_(Decoder(bundle("brackets"), 3).draft(torch.tensor([[4]] * 3)), torch.tensor([1, 1])),
            "draft",
        ),
    ],
)
def test_what_is_refused_changes_nothing(call: Any, fragment: str) -> None:
    decoder = Decoder(bundle("brackets"), 2)
    decoder.advance_(torch.tensor([4, 7]))
    names = ("batch_size", "limited", *PER_ROW)
    before = {name: getattr(decoder, name) for name in names} | {"log": decoder.log}
    held = decoder.fork()
    with pytest.raises(DecodeError, match=fragment):
        call(decoder)
    for name in names:
        assert getattr(decoder, name) is before[name], name
        assert np.array_equal(getattr(decoder, name), getattr(held, name)), name
    assert decoder.log is before["log"]
    assert all(torch.equal(part, other) for part, other in zip(decoder.log, held.log, strict=True))


def test_a_history_that_is_refused_names_its_token() -> None:
    decoder = Decoder(bundle("brackets"), 3)
    with pytest.raises(DecodeError) as caught:
        decoder.rebuild_(torch.tensor([[4, 4, 99], [4, 4, 4], [4, 99, 4]]), torch.tensor([2, 3, 3]))
    assert (caught.value.place or "").startswith("token 1 of row 2 of 3")
    loose = Decoder(bundle("brackets"), 1, check=False)
    loose.rebuild_(torch.tensor([[4, 99]]))
    assert loose.error.tolist() == [True]


def test_a_gradient_sees_that_logits_were_masked() -> None:
    decoder = Decoder(bundle("brackets"), 1)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        weight, logits = torch.ones(1, 96, dtype=dtype, requires_grad=True), torch.ones(1, 96, dtype=dtype)
        loss = (weight * logits).sum()
        decoder.mask_(logits)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def copy(oracle: Sequence | None) -> Sequence | None:
    return None if oracle is None else oracle.copy()


def test_the_fused_backend_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said at once, not at the first mask."""
    monkeypatch.setattr("toolc.runtime.device.decoder.find_spec", lambda name: None)
    with pytest.raises(DecodeError, match="triton, which is not installed"):
        Decoder(bundle("brackets"), 1, backend="fused")


def test_loops_are_found_and_shorten_the_step() -> None:
    decoder = Decoder(replace(bundle("words")), 2)  # a fresh one: loops are found once for a bundle
    t = decoder.arena.table
    assert t["state_loop"].tolist() == [0, 0, 1, 1]
    assert decoder.arena.limits.steps == 4  # "]]]]"; all of "aaaaa" is one loop
    longest = next(i for i in range(96) if bundle("words").vocab.token(i) == b"aaaaa")
    decoder.advance_(torch.tensor([longest, 4]))
    assert Matcher.at(decoder.configuration(0)).state == 2 and Matcher.at(decoder.configuration(1)).depth == 1
    assert Decoder(bundle("counted"), 1).arena.table["state_loop"].sum() == 0


@pytest.mark.parametrize("kind", ["words", "brackets", "counted", "strings"])
def test_loops_are_those_of_every_cell(kind: str) -> None:
    """State by state and byte by byte; in those of `strings` some count elsewhere, with several cells a state."""
    if kind == "strings":
        text = {"type": "string", "minLength": 3, "maxLength": 400}
        held = compile_schema({"items": {"anyOf": [{"type": "string"}, text]}, "minItems": 3, "maxItems": 90}).bundle
    else:
        held = replace(bundle(kind))
    t = held.tables
    found, machine = loops_module.loops_of(held), Machine(held)
    counts = t.cells_of("state_break")
    assert kind != "strings" or found.state_loop[counts > 1].any()
    for q in range(t.states):
        cells = range(t.state_cell[q], t.state_cell[q] + counts[q])
        loops = np.array(
            [all(machine.entry(cell, k) == q << 3 for cell in cells) for k in t.symbol_class[:256].tolist()]
        )
        if q < 2 or loops.sum() < loops_module.LEAST_LOOP:
            assert found.state_loop[q] == 0
            continue
        tokens = {
            token
            for token in range(held.vocab.size)
            if (text := held.vocab.token(token)) and token not in t.special_token and all(loops[byte] for byte in text)
        }
        bits = np.unpackbits(found.bits[found.state_loop[q]].view(np.uint8), bitorder="little")
        assert set(np.flatnonzero(bits).tolist()) == tokens, q
    assert not found.bits[0].any()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(6))
def test_drafts_rollbacks_forks_and_rebuilds(seed: int, device: str) -> None:
    pick = random.Random(seed)
    kinds = pick.sample(KINDS, 3)
    size, count = 5, 4
    numbers = [0, *(pick.randint(-1, 2) for _ in range(size - 1))]
    decoder = Decoder([bundle(k) for k in kinds], size, device, bundle_of_row=numbers, history=8, check=False)
    oracles: list[Any] = [None if n < 0 else Sequence.start(bundle(kinds[n])) for n in numbers]
    trails: list[list[Any]] = [[] for _ in numbers]
    texts: list[list[int]] = [[] for _ in numbers]
    for turn in range(12):
        for row, oracle in enumerate(oracles):
            if oracle is not None and (not oracle.mask() or len(oracle.stack) > oracle.bundle.meta["capacity"] - 26):
                decoder.reset_rows([row])
                oracles[row] = Sequence.start(bundle(kinds[numbers[row]]))
                trails[row], texts[row] = [], []
        check_rows(decoder, oracles)
        tree = pick.random() < 0.5
        parents = [pick.randint(-1, j - 1) if tree else j - 1 for j in range(count)]
        tokens = [[0] * count for _ in range(size)]
        nodes: list[list[Any]] = []
        legal: list[list[bool]] = []
        for row, oracle in enumerate(oracles):
            nodes.append([copy(oracle)])
            legal.append([True])
            for j in range(count):
                above = copy(nodes[row][parents[j] + 1])
                live = [] if above is None else sorted(above.mask())
                token = pick.choice(live) if live and pick.random() < 0.85 else pick.randrange(-2, 100)
                tokens[row][j] = token
                fine = legal[row][parents[j] + 1]
                if above is not None and fine:  # nothing changes after the end of turn
                    fine = token in above.mask() if above.state == 1 else token >= 0 and above.advance(token)
                nodes[row].append(above)
                legal[row].append(fine)
        draft = decoder.draft(
            torch.tensor(tokens, device=device), torch.tensor(parents, device=device) if tree else None
        )
        assert draft.legal.tolist() == legal
        bits = draft.bits.cpu().numpy().view(np.uint32)
        for row in range(size):
            for j in range(count + 1):
                if nodes[row][j] is not None and legal[row][j]:
                    want = bits_of(nodes[row][j].mask(), nodes[row][j].bundle.vocab.size)
                    assert (bits[row, j] == want).all()
        depth = [[0] for _ in range(size)]
        for row in range(size):
            for j in range(count):
                depth[row].append(depth[row][parents[j] + 1] + 1 if legal[row][j + 1] else 0)
        assert draft.length.tolist() == [max(d) for d in depth]
        chosen = [pick.choice([j for j in range(count + 1) if legal[row][j]]) for row in range(size)]
        twin = decoder.fork()
        decoder.take_(draft, torch.tensor(chosen, device=device))
        check_rows(twin, oracles)
        for row, node in enumerate(chosen):
            path = []
            while node:
                path.append(node)
                node = parents[node - 1] + 1
            for node in path[::-1]:
                if oracles[row] is not None and oracles[row].state != 1:
                    trails[row].append(oracles[row])
                    texts[row].append(tokens[row][node - 1])
                    oracles[row] = nodes[row][node]
        check_rows(decoder, oracles)
        assert decoder.length.tolist() == [len(trail) for trail in trails]
        back = [pick.randint(0, min(len(trail), int(k))) for trail, k in zip(trails, decoder.kept, strict=True)]
        decoder.rollback_(torch.tensor(back, device=device))
        for row, n in enumerate(back):
            if n:
                oracles[row] = trails[row][-n]
                del trails[row][-n:], texts[row][-n:]
            oracles[row] = copy(oracles[row])
        check_rows(decoder, oracles)
        if turn % 4 == 3:
            longest = max(map(len, texts))
            padded = torch.tensor([text + [0] * (longest - len(text)) for text in texts], device=device)
            twin.rebuild_(padded, torch.tensor([len(text) for text in texts], device=device))
            check_rows(twin, oracles)


def test_rollback_undoes_a_refusal_and_has_an_end() -> None:
    decoder = Decoder(bundle("brackets"), 2, check=False, history=3)
    for token in (4, 4, 7):
        decoder.advance_(torch.tensor([token, token]))
    decoder.advance_(torch.tensor([4, 5]))
    assert decoder.error.tolist() == [True, False]
    decoder.rollback_(torch.tensor([1, 0]))
    assert decoder.error.tolist() == [False, False] and Matcher.at(decoder.configuration(0)).depth == 2
    decoder.rollback_(torch.tensor([2, 4]))
    assert Matcher.at(decoder.configuration(0)).depth == 1
    assert decoder.error.tolist() == [False, True]
    with pytest.raises(DecodeError, match="row 0 of 1"):
        Decoder(bundle("brackets"), 1).rollback_(1)


def test_a_step_keeps_its_tensors_and_bundles_join_in_the_room_left() -> None:
    decoder = Decoder([bundle("brackets"), bundle("counted")], 3, bundle_of_row=[0] * 3, room=6.0, check=False)
    held = {**decoder.arena.table, **{k: v for k, v in vars(decoder).items() if isinstance(v, torch.Tensor)}}
    places = {name: tensor.data_ptr() for name, tensor in held.items()}
    decoder.advance_(torch.tensor([4, 7, 4]))
    number = decoder.add_bundle(bundle("words"), grow=False)
    decoder.reset_rows([2], number)
    decoder.advance_(torch.tensor([4, 4, 7]))
    decoder.rollback_(torch.tensor([1, 0, 0]))
    decoder.reorder_([2, 1, 0])
    held = {**decoder.arena.table, **{k: v for k, v in vars(decoder).items() if isinstance(v, torch.Tensor)}}
    assert places == {name: tensor.data_ptr() for name, tensor in held.items()}
    oracle = Sequence.start(bundle("words"))
    oracle.advance(7)
    assert (decoder.fill()[0].numpy().view(np.uint32) == bits_of(oracle.mask(), oracle.bundle.vocab.size)).all()
    tight = Decoder(bundle("words"), 1)
    with pytest.raises(DecodeError, match="does not fit into the arena"):
        tight.add_bundle(bundle("brackets"), grow=False)
    assert tight.add_bundle(bundle("brackets")) == 1


def test_a_list_of_bundles_has_one_for_each_row() -> None:
    """In a decoder as in a batch on the host: the k-th bundle is that of row k, and None leaves a row free."""
    kinds: list[str | None] = ["brackets", None, "words", "brackets"]
    given = [None if kind is None else bundle(kind) for kind in kinds]
    decoder, batch = Decoder(given, 4), BatchMatcher(given)
    masks = np.zeros((4, given[0].vocab.words), np.uint32)
    batch.fill(masks)
    assert (decoder.fill().numpy().view(np.uint32) == masks).all()
    assert decoder.bundle_of_row.tolist() == [0, -1, 1, 0]
    assert (Decoder(given[0], 4).fill() == Decoder(given[:1], 4).fill()).all()
    for rows in (1, 3, 8):
        with pytest.raises(DecodeError, match=f"4 bundles for {rows} rows, expected one bundle, or one for each row"):
            Decoder(given, rows)
    with pytest.raises(DecodeError, match="needs a bundle"):
        Decoder([None, None], 2)


def test_nothing_follows_the_end_of_turn_in_a_draft() -> None:
    decoder = Decoder(bundle("brackets"), 2, check=False)
    text = [4, 7, 5, 3]  # [a], and an end of turn
    tokens = torch.tensor([[*text, 7, 7], [*text, 3, 4]])
    draft = decoder.draft(tokens)
    assert draft.legal.tolist() == [[True] * 5 + [False] * 2, [True] * 6 + [False]]
    assert draft.length.tolist() == [4, 5]
    for token in text:
        decoder.advance_(torch.full((2,), token))
    again = decoder.draft(torch.tensor([[7, 3], [0, 3]]))
    assert again.legal.tolist() == [[True, False, False], [True, True, True]]


def test_append() -> None:
    decoder = Decoder([bundle("brackets"), bundle("words")], 1, bundle_of_row=[0])
    decoder.advance_(torch.tensor([4]))
    decoder.append_([1, -1])
    decoder.advance_(torch.tensor([7, 7, 99]))
    assert decoder.bundle_of_row.tolist() == [0, 1, -1] and decoder.length.tolist() == [2, 1, 0]
    assert Matcher.at(decoder.configuration(0)).depth == 1
    empty = Decoder([bundle("brackets"), bundle("words")], 0, bundle_of_row=[])
    empty.append_([1, 0])
    empty.advance_(torch.tensor([7, 4]))
    assert empty.bundle_of_row.tolist() == [1, 0] and empty.length.tolist() == [1, 1]


def test_no_rows_and_one_row_of_no_stride() -> None:
    decoder = Decoder(bundle("brackets"), 1)
    decoder.reset_rows([])
    decoder.limit_([], [])
    logits = decoder.mask_(torch.zeros(1, 96).expand(1, 96))
    want = Matcher(bundle("brackets")).allowed_tokens().tolist()
    assert torch.isfinite(logits[0]).nonzero().view(-1).tolist() == want


TEXT = [4, 4, 7, 6, 4, 7, 7, 5, 6, 7, 5, 6, 4, 5, 6, 7, 5, 3]  # [[a,[aa],a],[],a], end of turn


def stands(decoder: Decoder, row: int, tokens: list[int]) -> None:
    """A row is where a matcher is that has read the tokens."""
    one, two = Matcher.at(decoder.configuration(row)), Matcher.from_tokens(bundle("brackets"), tokens)
    assert (one.state, one.counter, one.stack) == (two.state, two.counter, two.stack)
    assert bool(decoder.finished[row]) == two.is_finished
    assert decoder.length[row] == len(tokens)
    assert (decoder.fill()[row].numpy().view(np.uint32) == bits_of(two.allowed_tokens(), 96)).all()


@pytest.mark.parametrize("history", [1, 2, 4, 16])
def test_rollback_by_the_whole_history_after_padding(history: int) -> None:
    decoder = Decoder(bundle("brackets"), 2, history=history)
    for n, token in enumerate([*TEXT, 3, 3, 3]):
        decoder.advance_(torch.tensor([token, TEXT[n] if n < len(TEXT) else 99]))
    for back in {0, 1, history - 1, history}:
        twin = decoder.fork()
        twin.rollback_(torch.tensor([back, back]))
        for row in range(2):
            stands(twin, row, TEXT[: len(TEXT) - back])


@pytest.mark.parametrize("history", [1, 2, 4, 16])
def test_rollback_by_the_whole_history_of_rows_that_others_left_behind(history: int) -> None:
    """Rows that a rebuild of others, or a draft's node 0, leaves where they are."""
    decoder = Decoder(bundle("brackets"), 2, history=history, check=False)
    for token in TEXT[:-1]:
        decoder.advance_(torch.tensor([token, token]))
    before = TEXT[: len(TEXT) - 1 - history]
    twin = decoder.fork()
    twin.rebuild_(torch.tensor([TEXT[:9]]), rows=[1])
    twin.rollback_([history, 0])
    stands(twin, 0, before)
    stands(twin, 1, TEXT[:9])
    twin = decoder.fork()
    twin.take_(twin.draft(torch.tensor([[-1, -1], [3, 3]])), torch.tensor([0, 2]))
    twin.rollback_(torch.tensor([history, 0]))
    stands(twin, 0, before)
    stands(twin, 1, TEXT)


HUGE = [2**31 - 1, 2**31, 2**32, 2**32 + 3, 2**62, 2**63 - 1, 2**63, 2**70]


@pytest.mark.parametrize("budget", HUGE)
def test_budgets_past_int32_leave_every_mask_whole(budget: int) -> None:
    """Given at the start, or later; in drafts too."""
    made = bundle("brackets")
    one = Decoder(made, 2, budget=[budget, None])
    two = Decoder(made, 2)
    two.limit_(budget)
    three = Decoder(made, 2)
    three.limit_([budget, 9])
    for token in [None, *TEXT[:3]]:
        for decoder in (one, two, three):
            if token is not None:
                decoder.advance_(torch.tensor([token, token]))
                decoder.limit_(budget, [0])
            free = Matcher.from_tokens(made, TEXT[: int(decoder.length[0])])
            want = bits_of(free.allowed_tokens(), 96)
            assert (decoder.fill()[0].numpy().view(np.uint32) == want).all()
            bits = decoder.draft(torch.tensor([[4], [4]])).bits[0]
            assert (bits[0].numpy().view(np.uint32) == want).all()
    loose = Decoder(made, 1, check=False)
    loose.limit_(torch.tensor([2**63 - 1]))
    loose.advance_(torch.tensor([4]))
    want = bits_of(Matcher.from_tokens(made, [4]).allowed_tokens(), 96)
    assert (loose.fill()[0].numpy().view(np.uint32) == want).all()
