"""transformers with a trained model: `generate`, and continuous batching with the mask in its step."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from toolc.runtime.calls.whole_text import read_calls
from toolc.runtime.format.bundle import Bundle

from .mixed import BUDGET, held, judge, messages, requests
from .places import model_folder

transformers = pytest.importorskip("transformers")
pytest.importorskip("transformers.generation.continuous_batching")

from toolc.runtime.adapters.continuous import install  # noqa: E402
from toolc.runtime.adapters.huggingface import ToolcLogitsProcessor  # noqa: E402

ROWS = 10


@pytest.fixture(scope="module")
def folder() -> Path:
    return model_folder()


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder, padding_side="left")


@pytest.fixture
def model(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def prompt(tokenizer: Any, body: dict[str, Any]) -> str:
    return str(tokenizer.apply_chat_template(messages(body), add_generation_prompt=True, tokenize=False))


def check(tokenizer: Any, body: dict[str, Any], bundle: Bundle, entry: str, tokens: list[int]) -> int:
    """The number of calls in an answer that is whole, valid, and read back as the judge reads it."""
    end = bundle.vocab.end_of_turn
    cut = next((n for n, token in enumerate(tokens) if token in end), None)
    assert cut is not None, tokenizer.decode(tokens)
    calls = judge(body, tokenizer.decode(tokens[:cut]))
    read = read_calls(bundle, tokens[: cut + 1], entry)
    assert [(call.name, call.arguments) for call in read] == calls
    return len(calls)


@pytest.mark.parametrize("count", [4, pytest.param(100, marks=pytest.mark.slow)])
def test_generate(tokenizer: Any, model: Any, folder: Path, count: int) -> None:
    """So many requests, ten a batch, each row with its own bundle; greedy and sampling."""
    bodies = requests(count, seed=2)
    torch.manual_seed(4)
    counts: Counter[str] = Counter()
    for entry in sorted({held(body, folder)[1] for body in bodies}):
        mine = [body for body in bodies if held(body, folder)[1] == entry]
        for begin in range(0, len(mine), ROWS):
            rows = mine[begin : begin + ROWS]
            bundles = [held(body, folder)[0] for body in rows]
            given = tokenizer([prompt(tokenizer, body) for body in rows], return_tensors="pt", padding=True)
            processor = ToolcLogitsProcessor(bundles, entry=entry, budget=BUDGET)
            sampling: dict[str, Any] = {"do_sample": True, "temperature": 1.0} if begin % 20 else {"do_sample": False}
            with torch.no_grad():
                written = model.generate(**given, logits_processor=[processor], max_new_tokens=BUDGET, **sampling)
            for body, bundle, row in zip(rows, bundles, written[:, given.input_ids.shape[1] :].tolist(), strict=True):
                counts["held"] += 1
                counts["calls"] += check(tokenizer, body, bundle, entry, row)
    assert counts["held"] == count and counts["calls"] > 0.4 * count


_ALL = [pytest.param(sampling, 50, marks=pytest.mark.slow) for sampling in (True, False)]


@pytest.mark.parametrize(("sampling", "count"), [(True, 10), *_ALL])
def test_continuous_batching(tokenizer: Any, model: Any, folder: Path, sampling: bool, count: int) -> None:
    """So many requests at once, fewer slots than requests, every fifth of them free."""
    bodies = requests(count, seed=3 + sampling)
    found = [held(body, folder) for body in bodies]
    names: dict[int, str] = {}
    bundles: dict[str, Bundle] = {}
    for bundle, _ in found:
        bundles[names.setdefault(id(bundle), f"b{len(names)}")] = bundle
    config = transformers.GenerationConfig(
        max_new_tokens=BUDGET, do_sample=sampling, eos_token_id=found[0][0].vocab.end_of_turn, pad_token_id=0
    )
    manager = model.init_continuous_batching(
        generation_config=config,
        continuous_batching_config=transformers.ContinuousBatchingConfig(block_size=32, num_blocks=256),
    )
    install(manager, bundles, slots=count // 3)
    free = {n for n in range(count) if n % 5 == 4}
    for n, (body, (bundle, entry)) in enumerate(zip(bodies, found, strict=True)):
        ids = tokenizer(prompt(tokenizer, body)).input_ids
        asked = {} if n in free else {"toolc_bundle": names[id(bundle)], "toolc_entry": entry}
        manager.add_request(ids, request_id=f"r{n}", **asked)
    manager.start()
    counts: Counter[str] = Counter()
    try:
        for _ in bodies:
            result = manager.get_result(timeout=1800)
            assert result is not None and result.error is None, result
            n = int(result.request_id[1:])
            if n in free:
                counts["free"] += 1
                continue
            counts["held"] += 1
            check(tokenizer, bodies[n], *found[n], result.generated_tokens)
    finally:
        manager.stop(block=True)
    assert counts == {"held": count - len(free), "free": len(free)}
