"""The batch decoder against the plain specification: masks, states, several bundles, reordering."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from toolc.runtime import BundleError, DecodeError, Decoder, Matcher

from ..oracle_runtime import Oracle, bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", *(f"scrambled-{n}" for n in range(20))]
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")),
]


def check_rows(decoder: Decoder, oracles: list[Oracle | None]) -> None:
    bits = decoder.fill().cpu().numpy().view(np.uint32)
    for row, oracle in enumerate(oracles):
        if oracle is None:
            assert (bits[row] == 0xFFFFFFFF).all()
            continue
        assert (bits[row] == bits_of(oracle.mask(), oracle.vocab.size)).all(), row
        twin = decoder.matcher(row)
        assert (twin.state, twin.counter, twin.stack) == (oracle.q, oracle.c, oracle.stack)
    assert decoder.finished.tolist() == [o is not None and o.q == 1 for o in oracles]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(6))
def test_walks_of_mixed_bundles_equal_the_specification(seed: int, device: str) -> None:
    pick = random.Random(seed)
    bundles = [bundle(kind) for kind in pick.sample(KINDS, 4)]
    size = 9
    numbers = [pick.randint(-1, 3) for _ in range(size)]
    decoder = Decoder(bundles, size, device, bundle_of_row=numbers)
    oracles: list[Any] = [None if n < 0 else Oracle.start(bundles[n]) for n in numbers]
    for _ in range(60):
        check_rows(decoder, oracles)
        tokens = []
        for row, oracle in enumerate(oracles):
            live = [] if oracle is None else sorted(oracle.mask())
            # a row that is stuck, or too deep for a machine without modes, begins again
            if oracle is not None and (not live or len(oracle.stack) > oracle.meta["capacity"] - 6):
                number = pick.randrange(4)
                decoder.reset_rows([row], number)
                oracles[row] = oracle = Oracle.start(bundles[number])
                live = sorted(oracle.mask())
            tokens.append(pick.choice(live) if live else pick.randrange(-3, 200))
        decoder.advance_(torch.tensor(tokens, device=device))
        for oracle, token in zip(oracles, tokens, strict=True):
            assert oracle is None or oracle.advance(token)
        if pick.random() < 0.2:
            order = [pick.randrange(size) for _ in range(size)]
            decoder.reorder_(order)
            oracles = [
                None if oracles[i] is None else Oracle(**{**vars(oracles[i]), "stack": list(oracles[i].stack)})
                for i in order
            ]


@pytest.mark.parametrize("kind", KINDS)
def test_refusals_equal_the_specification(kind: str) -> None:
    """Every token of the vocabulary at once, from one configuration: refused and accepted as by brute force."""
    made = bundle(kind)
    pick = random.Random(kind)
    oracle = Oracle.start(made)
    size = made.vocab.size
    for _ in range(12):
        decoder = Decoder(made, 1, check=False)
        decoder.state[0] = decoder.arena.global_state(0, oracle.q)
        decoder.counter[0], decoder.depth[0] = oracle.c, len(oracle.stack)
        for n, (g, saved) in enumerate(oracle.stack):
            decoder.stack[0, n], decoder.saved[0, n] = g, saved
        decoder.reorder_([0] * (size + 2))
        decoder.advance_(torch.arange(-1, size + 1))
        want = [oracle.after(oracle.symbols(i)) if 0 <= i < size else None for i in range(-1, size + 1)]
        if oracle.q != 1:
            assert decoder.error.tolist() == [w is None for w in want]
            assert decoder.finished.tolist() == [w is None or w[0] == 1 for w in want]
        for row, w in enumerate(want):
            if w is not None:
                twin = decoder.matcher(row)
                assert (twin.state, twin.counter, twin.stack) == w
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
    from toolc.runtime import masks as module

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
    assert (decoder.matcher(0).depth, decoder.matcher(1).depth) == (2, 1)
    assert decoder.matcher(1).counter == 1
    with pytest.raises(BundleError, match="one tokenizer"):
        decoder.add_bundle(bundle("brackets", 64))


@pytest.mark.parametrize(
    ("call", "fragment"),
    [
        (lambda d: d.mask_(torch.zeros(2, 90)), "logits do not fit"),
        (lambda d: d.mask_(torch.zeros(3, 96)), "logits do not fit"),
        (lambda d: d.mask_(torch.zeros(2, 96, dtype=torch.int32)), "no floats"),
        (lambda d: d.advance_(torch.zeros(3, dtype=torch.int64)), "tokens do not fit"),
        (lambda d: d.advance_(torch.zeros(2)), "tokens do not fit"),
        (lambda d: d.reset_rows(None, 5), "no such bundle"),
        (lambda d: d.reset_rows(None, 0, "nowhere"), "no such entry"),
        (lambda d: Decoder([], 1), "needs a bundle"),
        (lambda d: Decoder(bundle("brackets"), 2, bundle_of_row=[1, 0]), "no such bundle"),
    ],
)
def test_misuse(call: Any, fragment: str) -> None:
    with pytest.raises(DecodeError, match=fragment):
        call(Decoder(bundle("brackets"), 2))
