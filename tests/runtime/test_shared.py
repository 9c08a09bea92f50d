"""Bundles between threads and forked processes; steps that a tracer takes whole."""

from __future__ import annotations

import multiprocessing
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from toolc.runtime import Decoder, Matcher
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.reference import Sequence

from ..slow_lift import bits_of
from .handmade import bundle

KINDS = ["brackets", "counted", "words"]


def fresh(kind: str) -> Bundle:
    """A bundle whose shared parts have not been made yet."""
    made = bundle(kind)
    return Bundle(made.tables, made.meta, made.vocab, kind)


def walk(made: list[Bundle], seed: int, device: bool) -> int:
    """Random walks by a matcher or a decoder of its own; raises where it differs from the specification."""
    pick = random.Random(seed)
    kind = pick.randrange(len(made))
    oracle = Sequence.start(made[kind])
    decoder = Decoder(made, 1, bundle_of_row=[kind]) if device else None
    matcher = Matcher(made[kind])
    mask = np.zeros(made[kind].vocab.words, np.uint32)
    for step in range(60):
        want = bits_of(oracle.mask(), oracle.bundle.vocab.size)
        if decoder is None:
            matcher.fill(mask)
        else:
            mask[:] = decoder.fill()[0].numpy().view(np.uint32)
        if not (mask == want).all():
            raise AssertionError(f"seed {seed}, step {step}")
        live = sorted(oracle.mask())
        if len(oracle.stack) > 15:
            live = [t for t in live if t in (0, 3, 6)] or live
        token = pick.choice(live)
        if oracle.state == 1:
            break
        oracle.advance(token)
        if decoder is None:
            matcher.advance(token)
        else:
            decoder.advance_(torch.tensor([token]))
    return seed


@pytest.mark.parametrize("device", [False, True])
def test_threads(device: bool) -> None:
    """Eight threads make a bundle's shared parts at once, and walk."""
    made = [fresh(kind) for kind in KINDS]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda seed: walk(made, seed, device), range(24))) == list(range(24))


def _child(made: list[Bundle], seed: int, queue: Any) -> None:
    queue.put(walk(made, seed, False))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
def test_forked_processes() -> None:
    """Children of a process that has decoded use its tables, and leave its own matchers alone."""
    made = [fresh(kind) for kind in KINDS]
    walk(made, 1, False)
    matcher = Matcher.from_tokens(made[0], [4, 7])
    before = matcher.allowed_tokens().tolist()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=_child, args=(made, seed, queue)) for seed in range(4)]
    for child in children:
        child.start()
    found = sorted(queue.get(timeout=60) for _ in children)
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert found == [0, 1, 2, 3]
    assert matcher.allowed_tokens().tolist() == before


class Step(torch.nn.Module):
    """A decoder's own step as a module over its own tensors."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        return self.decoder.step_(tokens, logits)


def test_a_step_has_no_value_on_the_host() -> None:
    """`step_` as on a device: the tracer takes it in one graph, without a guard on a value; it equals the eager one."""
    eager, traced = (Decoder([bundle(k) for k in KINDS], 4, bundle_of_row=[0, 1, 2, -1], check=False) for _ in range(2))
    eager._on_cpu = traced._on_cpu = False  # no early ends: as where values stay on the device
    call = torch.compile(Step(traced), fullgraph=True, backend="aot_eager")
    for tokens in ([4, 4, 7, 1], [7, 7, 4, 99], [5, 7, 7, 0], [6, 6, 6, 6]):
        given = torch.tensor(tokens)
        want = eager.step_(given, torch.zeros(4, 100))
        assert torch.equal(call(given, torch.zeros(4, 100)), want)
        for name in ("state", "counter", "depth", "stack", "saved", "error", "length", "kept"):
            assert torch.equal(getattr(eager, name), getattr(traced, name)), name
    assert eager.error.any()
