"""What only a GPU shows: nothing synchronises, a captured step sees all changes, adapters and modules on the device.

`TOOLC_TEST_BUNDLES` may name a folder of bundles with their vocabularies (`toolc compile --standalone`) to walk too.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.gpu import captured
from toolc.runtime import BatchMatcher, Bundle, Decoder, Matcher
from toolc.runtime.adapters.constraint import Constraint
from toolc.runtime.adapters.rows import RowTable
from toolc.runtime.reference import Sequence

from .handmade import bundle
from .test_constraint import KINDS, walk

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]
BACKENDS = ["fused", "torch"]
ROWS = [0, 1, 2, -1, 0, 1]
FOLDER = os.environ.get("TOOLC_TEST_BUNDLES")
FILES = sorted(Path(FOLDER).glob("*.toolc")) if FOLDER else []


@contextmanager
def no_synchronisation() -> Iterator[None]:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def decoder_of(backend: str, **options: Any) -> Decoder:
    return Decoder([bundle(k) for k in KINDS], len(ROWS), "cuda", bundle_of_row=ROWS, backend=backend, **options)


def legal(decoder: Decoder, pick: random.Random) -> torch.Tensor:
    """int64 [B] on the device: a token that each row allows, a short one where the stack is deep."""
    tokens = []
    for row in range(decoder.batch_size):
        if int(decoder.bundle_of_row[row]) < 0:
            tokens.append(0)
            continue
        live = [0] if int(decoder.state[row]) < 2 else Matcher.at(decoder.configuration(row)).allowed_tokens().tolist()
        if int(decoder.depth[row]) > 12:
            live = [t for t in live if b"[" not in bundle("brackets").vocab.token(t)] or live
        tokens.append(pick.choice(live))
    return torch.tensor(tokens, device="cuda")


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_synchronises(backend: str) -> None:
    decoder = decoder_of(backend, check=False, budget=40)
    pick = random.Random(0)
    for turn in range(3):
        tokens = legal(decoder, pick)
        logits = torch.randn(len(ROWS), 104, device="cuda")
        one, back = torch.ones(len(ROWS), dtype=torch.int64, device="cuda"), tokens.clone()
        order = torch.arange(len(ROWS), device="cuda")
        left = torch.full((len(ROWS),), 30 - turn, device="cuda")
        for synchronised in (True, False):  # kernels are compiled in the first round
            with no_synchronisation() if not synchronised else torch.no_grad():
                decoder.mask_(logits)
                decoder.advance_(tokens)
                decoder.fill()
                draft = decoder.draft(torch.stack([tokens, back], 1))
                decoder.take_(draft, one)
                decoder.rollback_(one)
                decoder.reorder_(order)
                decoder.bound()
                decoder.forced()
                decoder.finished  # noqa: B018
                decoder.limit_(left)
                decoder.rollback_(one)
                decoder.step_(tokens, logits)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_captured_step_equals_the_specification(backend: str) -> None:
    """Mask, sample and read in one graph; between replays rows are reset, and a bundle comes into the room there is."""
    decoder = decoder_of(backend, room=4.0, history=8)
    noise = torch.rand(len(ROWS), 104, device="cuda")
    logits, tokens = torch.empty_like(noise), torch.zeros(len(ROWS), dtype=torch.int64, device="cuda")

    def step() -> None:
        logits.copy_(noise)
        decoder.mask_(logits)
        tokens.copy_(logits.argmax(-1))
        decoder.advance_(tokens)

    graph = captured(step)
    kinds: list[str | None] = [KINDS[n] if n >= 0 else None for n in ROWS]
    added, pick = 0, random.Random(3)
    torch.manual_seed(5)
    decoder.reset_rows()
    oracles = [None if kind is None else Sequence.start(bundle(kind)) for kind in kinds]
    for turn in range(120):
        if turn == 60:
            added = decoder.add_bundle(bundle("scrambled-1"), grow=False)
        for row, oracle in enumerate(oracles):
            if oracle is not None and (oracle.state == 1 or len(oracle.stack) > 12):
                kinds[row] = "scrambled-1" if turn >= 60 and pick.random() < 0.5 else KINDS[0]
                decoder.reset_rows([row], added if kinds[row] == "scrambled-1" else 0)
                oracles[row] = Sequence.start(bundle(kinds[row]))
        noise.copy_(torch.rand(len(ROWS), 104, device="cuda"))
        graph.replay()
        for row, (oracle, token) in enumerate(zip(oracles, tokens.tolist(), strict=True)):
            if oracle is not None:
                live = sorted(oracle.mask())
                assert torch.isfinite(logits[row]).nonzero().view(-1).tolist() == live
                assert oracle.advance(token)


def compiled() -> list[Bundle]:
    from toolc.compiler import compile_tools

    folder = Path(__file__).resolve().parent.parent.parent / "tools_specs"
    return [compile_tools(folder / f"{name}.json").bundle for name in ("weather", "calculator")]


@pytest.mark.parametrize("limited", [False, True])
def test_real_bundles_by_both_backends_and_on_the_host(limited: bool) -> None:
    """Random texts of many rows: masked logits and what is left of texts are equal bit for bit."""
    made = [Bundle.open(path) for path in FILES] or compiled()
    rows, pick = 48, random.Random(1)
    for together in [made] if len({b.vocab.digest for b in made}) == 1 else [[b] for b in made]:
        numbers = [pick.randrange(len(together)) for _ in range(rows)]
        chosen = [together[n] for n in numbers]
        budgets = [(b.min_tokens["start"] or 0) + pick.randint(0, 60) if limited and b.min_tokens["start"] else None
                   for b in chosen]  # fmt: skip
        size = together[0].vocab.size
        devices = [
            Decoder(together, rows, "cuda", bundle_of_row=numbers, check=False, backend=b, budget=budgets)
            for b in BACKENDS
        ]
        host = BatchMatcher(chosen, budget=budgets)
        bits = host.new_masks()
        for turn in range(100):
            dtype = (torch.float32, torch.bfloat16, torch.float16)[turn % 3]
            logits = torch.rand(rows, size + 64, device="cuda").to(dtype)
            first, second = (decoder.mask_(logits.clone()) for decoder in devices)
            assert torch.equal(first, second)
            host.fill(bits)
            wide = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :size].astype(bool)
            assert torch.equal(torch.isfinite(first[:, :size]).cpu(), torch.from_numpy(wide)), turn
            assert not torch.isfinite(first[:, size:]).any()
            tokens = (torch.rand(rows, size, device="cuda") + 1).masked_fill(~torch.isfinite(first[:, :size]), 0)
            sampled = tokens.argmax(-1)
            for decoder in devices:
                decoder.advance_(sampled)
            host.advance(sampled.tolist())
            over = [row for row in range(rows) if host.finished[row]]
            for row in over:
                host.set_row(row, chosen[row], budget=budgets[row])
            if over:
                for decoder in devices:
                    decoder.reset_rows(over, budget=[budgets[row] for row in over])
        for decoder in devices:
            assert not decoder.error.any()


def test_a_compiled_module() -> None:
    module = Constraint([bundle(k) for k in KINDS]).cuda()
    call = torch.compile(module, fullgraph=True)

    def on_device(logits: torch.Tensor, tokens: torch.Tensor, state: tuple[torch.Tensor, ...]) -> Any:
        masked, after = call(logits.cuda(), tokens.cuda(), state)
        return masked.cpu(), after

    class Here:
        """The module whose calls take and give tensors of the host."""

        start = staticmethod(module.start)

    walk(on_device, Here(), 96)  # type: ignore[arg-type]


def test_row_numbers_from_the_host() -> None:
    table = RowTable(torch.device("cuda"))
    matchers = [Matcher(bundle(kind)) for kind in KINDS]
    pick = random.Random(0)
    for _ in range(10):
        numbers = table.blank(4, 24)
        assert numbers.is_pinned()
        for row, matcher in enumerate(matchers):
            table.fill(matcher, numbers[row])
        logits = torch.randn(4, 96, device="cuda")
        table.apply_(logits, numbers.to("cuda", non_blocking=True))
        for row, matcher in enumerate(matchers):
            live = matcher.allowed_tokens().tolist()
            assert torch.isfinite(logits[row]).nonzero().view(-1).tolist() == live
            matcher.advance(pick.choice(live))
            if matcher.is_finished or len(matcher.stack) > 12:
                matcher.reset()
        assert torch.isfinite(logits[3]).all()


def test_generate_follows_rows_on_the_device() -> None:
    pytest.importorskip("transformers")
    from toolc.runtime.adapters.huggingface import ToolcLogitsProcessor

    from .test_huggingface import PAD, PROMPT, WAYS, accepted, model

    for seed in range(2):
        for _, options in WAYS:
            for kind in ("brackets", "counted"):
                processor = ToolcLogitsProcessor(bundle(kind))
                prompt = PROMPT.cuda()
                made = model(seed).cuda()
                out = made.generate(
                    prompt, attention_mask=prompt != PAD, logits_processor=[processor], max_new_tokens=30, **options
                )
                for row in out[:, PROMPT.shape[1] :].tolist():
                    while row and row[-1] == PAD:
                        row.pop()
                    assert accepted(kind, row)[0]
    ids = torch.full((3, 1), 7, device="cuda")
    processor = ToolcLogitsProcessor(bundle("brackets"))
    scores = torch.randn(3, 128, device="cuda")
    for warm in (True, False):
        processor.reset()
        processor(ids, scores)
        two = torch.cat([ids, ids], 1)
        with torch.no_grad() if warm else no_synchronisation():
            processor(two, scores)


def test_continuous_batching_in_a_graph() -> None:
    pytest.importorskip("transformers.generation.continuous_batching")
    from transformers import ContinuousBatchingConfig, GenerationConfig

    from toolc.runtime.adapters.continuous import install

    from .test_huggingface import accepted, model

    made = {kind: bundle(kind) for kind in ("brackets", "counted")}
    manager = model(3).cuda().init_continuous_batching(
        generation_config=GenerationConfig(max_new_tokens=20, do_sample=True, eos_token_id=[0, 3], pad_token_id=2),
        continuous_batching_config=ContinuousBatchingConfig(
            block_size=16, num_blocks=32, max_batch_tokens=32, use_cuda_graph=True
        ),
    )  # fmt: skip
    install(manager, made)
    manager.start()
    try:
        asked = {}
        for n in range(24):
            kind = ["brackets", "counted", None][n % 3]
            kwargs = {} if kind is None else {"toolc_bundle": kind}
            asked[manager.add_request([30 + n % 9, 31, 32], max_new_tokens=20, **kwargs)] = kind
        for _ in asked:
            result = manager.get_result(timeout=60)
            assert result is not None and result.error is None
            kind = asked[result.request_id]
            if kind is not None:
                assert accepted(kind, result.generated_tokens) == (True, True)
    finally:
        manager.stop(block=True)
