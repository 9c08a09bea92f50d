"""Continuous batching of `transformers` with the constraint in its step, on the CPU."""

from __future__ import annotations

import pickle
import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from toolc.runtime import DecodeError
from toolc.runtime.reference import Sequence

from .handmade import bundle
from .with_registers import with_registers

pytest.importorskip("transformers.generation.continuous_batching")

from toolc.runtime.adapters.continuous import ToolcContinuousProcessor, install

from .test_huggingface import END, accepted, model

KINDS = {kind: bundle(kind) for kind in ("brackets", "counted")}


def state(name: str, prompt: list[int], **more: Any) -> Any:
    from transformers.generation.continuous_batching.requests import RequestState

    return RequestState(request_id=name, initial_tokens=prompt, **more)


@pytest.mark.parametrize("kind", ["brackets", "counted", "words"])
def test_a_request_begins_with_the_registers_of_its_frames(kind: str) -> None:
    made, pick = with_registers(kind, 1), random.Random(0)
    processor = ToolcContinuousProcessor({"made": made, "plain": bundle(kind)}, 1, torch.device("cpu"))
    oracle, text, seen = Sequence.start(made), [], 0
    for _ in range(300):
        token = pick.randrange(made.vocab.size)
        if oracle.state == 1 or len(text) > 8:
            oracle, text = Sequence.start(made), []
        if not oracle.advance(token):
            continue
        text.append(token)
        request = state("r", [9, 9], logit_processor_kwargs={"toolc_bundle": "made"})
        request.generated_tokens, request.position_offset = list(text), 2 + len(text)
        processor._start(0, request)
        here = processor._begin.configuration(0)
        assert (here.state, here.counter, here.stack) == (oracle.state, oracle.counter, oracle.stack)
        assert (here.register, here.registers) == (oracle.register, oracle.registers)
        seen += here.register != 0 and any(here.registers)
    assert seen


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_steps(seed: int, unknown: bool) -> None:
    """Slots, resets and forks by transformers' own request states; tokens known to the host or not yet."""
    pick = random.Random(seed)
    processor = ToolcContinuousProcessor(KINDS, 4, torch.device("cpu"))
    # state, its kind or None, text, the last token if the host has yet to see it, and how many there may be
    held: list[list[Any]] = []
    args = torch.full((8,), -1, dtype=torch.int32)  # what longer batches left there stays, as in transformers
    for turn in range(60):
        if len(held) < 4 and pick.random() < 0.5:
            kind = pick.choice(["brackets", "counted", None])
            kwargs = {} if kind is None else {"toolc_bundle": kind}
            prompt = [9] * pick.randint(1, 4)
            most = pick.choice([None, 3, 6, 20])
            made = state(f"r{turn}", prompt, logit_processor_kwargs=kwargs, max_new_tokens=most)
            held.append([made, kind, [], None, most])
        batch = [entry for entry in held if pick.random() < 0.8]
        for entry in batch:
            request, _, text, pending, most = entry
            if text and pending is None and pick.random() < 0.2:
                entry[0] = request = request.create_equivalent_initial_request()
            if text and pending is None and len(held) < 4 and pick.random() < 0.2:
                held.append([request.fork(f"f{turn}"), entry[1], list(text), None, most])
            prompt = request._true_initial_tokens or len(request.initial_tokens)
            request.position_offset = prompt + len(text)
        if not batch:
            continue
        given = processor.prepare_tensor_args([SimpleNamespace(state=e[0]) for e in batch])
        args[: given.shape[0]] = given
        fed = torch.tensor([e[2][-1] if e[2] else 9 for e in batch] + [5, 5])
        scores = processor.reader(fed, torch.zeros(len(batch) + 2, 104))
        masked = processor(scores, args)
        for row, entry in enumerate(batch):
            request, kind, text, pending, most = entry
            found = torch.isfinite(masked[row]).nonzero().view(-1).tolist()
            live = list(range(96))
            if kind is not None:
                need = bundle(kind).min_tokens["start"] or 0
                oracle = Sequence.start(bundle(kind), budget=most if most and most >= need else None)
                assert all(oracle.state == 1 or oracle.advance(t) for t in text)
                live = sorted(oracle.mask_in_budget())
                assert found == live
                if len(oracle.stack) > 20:
                    live = [t for t in live if t in (0, 6, 3)] or live
            if pending is not None:
                request.generated_tokens.append(pending)
            token = pick.choice(live)
            text.append(token)
            entry[3] = token if unknown and pick.random() < 0.5 else None
            if entry[3] is None:
                request.generated_tokens.append(token)
        assert torch.isfinite(masked[len(batch) :]).all()
        held = [e for e in held if pick.random() < 0.9]


def test_a_request_that_cannot_be_met_takes_no_slot() -> None:
    processor = ToolcContinuousProcessor(KINDS, 1, torch.device("cpu"))
    for entry, fails in (("nowhere", True), ("start", False)):
        made = state("r", [9], logit_processor_kwargs={"toolc_bundle": "counted", "toolc_entry": entry})
        made.position_offset = 1
        if fails:
            with pytest.raises(DecodeError, match="no such entry"):
                processor.prepare_tensor_args([SimpleNamespace(state=made)])
        else:
            assert processor.prepare_tensor_args([SimpleNamespace(state=made)]).tolist() == [1]


def test_equal_bundles_have_one_number() -> None:
    """The names of a second, equal bundle and of all behind it meant the bundles of other names."""
    bundles = {
        "one": bundle("brackets"),
        "two": pickle.loads(pickle.dumps(bundle("brackets"))),
        "three": KINDS["counted"],
    }
    processor = ToolcContinuousProcessor(bundles, 3, torch.device("cpu"))
    chosen = [processor.choose({"toolc_bundle": name}) for name in bundles]
    assert [one and one[0] for one in chosen] == [0, 0, 1]
    batch = [state(name, [9], logit_processor_kwargs={"toolc_bundle": name}) for name in bundles]
    for one in batch:
        one.position_offset = 1
    given = processor.prepare_tensor_args([SimpleNamespace(state=one) for one in batch])
    masked = processor(processor.reader(torch.tensor([9, 9, 9]), torch.zeros(3, 96)), given)
    for row, name in enumerate(bundles):
        assert torch.isfinite(masked[row]).nonzero().view(-1).tolist() == sorted(
            Sequence.start(bundles[name]).mask()
        ), name


@pytest.mark.parametrize(("budget", "most"), [(2**31, None), (None, 2**31), (2**70, None), (0, 2**70)])
def test_large_budgets(budget: int | None, most: int | None) -> None:
    processor = ToolcContinuousProcessor(KINDS, 1, torch.device("cpu"))
    asked = {"toolc_bundle": "brackets"} | ({} if budget is None else {"toolc_budget": budget})
    made = state("r", [9], logit_processor_kwargs=asked, max_new_tokens=most)
    made.position_offset = 1
    given = processor.prepare_tensor_args([SimpleNamespace(state=made)])
    masked = processor(processor.reader(torch.tensor([9]), torch.zeros(1, 96)), given)
    live = sorted(Sequence.start(bundle("brackets")).mask())
    assert torch.isfinite(masked[0]).nonzero().view(-1).tolist() == live


def new_manager(**more: Any) -> Any:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    config = GenerationConfig(max_new_tokens=20, do_sample=True, eos_token_id=[END, 3], pad_token_id=2, **more)
    return model(3).init_continuous_batching(
        generation_config=config,
        continuous_batching_config=ContinuousBatchingConfig(block_size=16, num_blocks=32, max_batch_tokens=32),
    )


def test_generate_batch() -> None:
    manager = new_manager()
    install(manager, KINDS)
    manager.start()
    try:
        with pytest.raises(DecodeError, match="has started"):
            install(manager, KINDS)
        asked = {}
        for n in range(9):
            kind = ["brackets", "counted", None][n % 3]
            kwargs = {} if kind is None else {"toolc_bundle": kind}
            asked[manager.add_request([30 + n, 31, 32], max_new_tokens=20, **kwargs)] = kind
        results = {}
        for _ in range(9):
            result = manager.get_result(timeout=60)
            assert result is not None and result.error is None, result
            results[result.request_id] = result.generated_tokens
    finally:
        manager.stop(block=True)
    for name, kind in asked.items():
        if kind is not None:
            assert accepted(kind, results[name])[0], (kind, results[name])


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("at least 3", {"toolc_bundle": "counted", "toolc_budget": 2}),
    ("found 2 tokens", {"toolc_bundle": "counted", "toolc_budget": 9, "max_new_tokens": 2}),
    ("at least 3", {"toolc_bundle": "counted", "toolc_budget": -1}),
    ("no such bundle\\W+found 'none', expected one of brackets, counted", {"toolc_bundle": "none"}),
    ("no such entry", {"toolc_bundle": "counted", "toolc_entry": "none"}),
    ("no such argument; found toolc_tool,", {"toolc_bundle": "counted", "toolc_tool": "weather"}),
    ("toolc_bundle is of another type", {"toolc_bundle": 3}),
    ("names no bundle", {"toolc_entry": "start"}),
]


def test_a_bad_request_is_refused_alone() -> None:
    manager = new_manager()
    install(manager, KINDS)
    manager.start()
    try:
        good = [manager.add_request([30, 31, 32], max_new_tokens=20, toolc_bundle="counted")]
        for match, asked in REFUSED:
            with pytest.raises(DecodeError, match=match):
                manager.add_request([33, 34], **asked)
            with pytest.raises(DecodeError, match=match):
                manager.add_requests([[33, 34], [35]], **asked)
        good += manager.add_requests([[36, 31], [37]], max_new_tokens=20, toolc_bundle="counted", toolc_budget=9)
        results = [manager.get_result(timeout=60) for _ in good]
        assert manager.is_running() and manager.get_result(timeout=0.2) is None
    finally:
        manager.stop(block=True)
    assert sorted(result.request_id for result in results) == sorted(good)
    for result in results:
        assert result.error is None and accepted("counted", result.generated_tokens) == (True, True)


@pytest.mark.parametrize("copies", [1, 2])
def test_requests_wait_for_slots(copies: int) -> None:
    """More requests than slots, some of them not constrained, and some with children."""
    manager = new_manager(num_return_sequences=copies)
    install(manager, KINDS, slots=2)
    asked = [["brackets", None, "counted"][n % 3] for n in range(9)]
    for n, kind in enumerate(asked):
        given = {} if kind is None else {"toolc_bundle": kind}
        manager.add_request([30 + n, 31, 32], request_id=f"r{n}", **given)
    manager.start()
    try:
        results = [manager.get_result(timeout=60) for _ in range(9 * copies)]
        assert manager.is_running()
    finally:
        manager.stop(block=True)
    for result in results:
        assert result is not None and result.error is None, result
        kind = asked[int(result.request_id.partition("__")[0][1:])]
        assert kind is None or accepted(kind, result.generated_tokens) == (True, True)


def test_children_need_slots() -> None:
    manager = new_manager(num_return_sequences=3)
    install(manager, KINDS, slots=2)
    with pytest.raises(DecodeError, match="more slots than there are"):
        manager.add_request([30, 31], toolc_bundle="counted")
