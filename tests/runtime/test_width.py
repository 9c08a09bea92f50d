"""How wide logits may be: what the checkpoint says, what the caller says, and padding where nobody says it."""

from __future__ import annotations

import json
import shutil
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from toolc.compiler import compile_tools
from toolc.compiler.errors import VocabError
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.stages import BuiltinTokenizerWarning
from toolc.compiler.vocab import builtin_path, load_tokens
from toolc.runtime import BatchMatcher, Bundle, DecodeError, Decoder, Matcher
from toolc.runtime.adapters.constraint import Constraint
from toolc.runtime.adapters.huggingface import ToolcLogitsProcessor
from toolc.runtime.format.width import PADDING, LogitsWidthWarning, least_width

from . import handmade

SIZE = 96


def made(width: int | None) -> Bundle:
    """A bundle of `SIZE` ids whose vocabulary records a width."""
    plain = handmade.bundle("brackets")
    vocab = replace(plain.vocab, meta={**plain.vocab.meta, "logits_width": width})
    return replace(plain, vocab=vocab, meta={**plain.meta, "vocab_digest": vocab.digest})


def through_decoder(backend: str, bundle: Bundle, logits: torch.Tensor, **given: Any) -> torch.Tensor:
    return Decoder(bundle, 2, backend=backend, **given).mask_(logits.clone())


def through_constraint(bundle: Bundle, logits: torch.Tensor, **given: Any) -> torch.Tensor:
    module = Constraint(bundle, **given)
    return module(logits, torch.full((2,), -1), module.start([0, 0]))[0]


def through_processor(bundle: Bundle, logits: torch.Tensor, **given: Any) -> torch.Tensor:
    return ToolcLogitsProcessor(bundle, **given)(torch.zeros(2, 0, dtype=torch.int64), logits)


WAYS = {
    "torch": partial(through_decoder, "torch"),
    "constraint": through_constraint,
    "processor": through_processor,
    "followed": partial(through_processor, on_device=True),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@every_way
@pytest.mark.parametrize("width", [80, 95, 96, 97, 128, SIZE + PADDING])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_masks_are_those_of_the_matcher_at_every_width(way: Any, width: int, dtype: torch.dtype) -> None:
    bundle = made(None)
    width = max(width, least_width(bundle))
    mask = np.zeros(bundle.vocab.words, np.uint32)
    Matcher(bundle).fill(mask)
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little").astype(bool)
    want = np.zeros(width, bool)
    want[: min(width, SIZE)] = allowed[: min(width, SIZE)]
    assert not allowed[width:].any()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LogitsWidthWarning)
        got = way(bundle, torch.zeros(2, width, dtype=dtype))
    assert (torch.isfinite(got).numpy() == want).all()


@every_way
@pytest.mark.parametrize(
    ("recorded", "given", "width", "fragment"),
    [
        (None, {}, SIZE + PADDING + 1, f"found {SIZE + PADDING + 1} logits, expected .*{SIZE + PADDING}"),
        (128, {}, 129, "found 129 logits, expected .*128"),
        (None, {"logits_width": 128}, 129, "found 129 logits, expected .*128"),
        (128, {"logits_width": 129}, 128, "found logits_width=129, expected at most 128"),
        (None, {"logits_width": 4}, 4, "expected at least [0-9]+"),
        (None, {"logits_width": "wide"}, 96, "no number of columns"),
        (None, {}, 20, "found 20 logits, expected "),
    ],
)
def test_other_widths_are_refused(
    way: Any, recorded: int | None, given: dict[str, Any], width: int, fragment: str
) -> None:
    with pytest.raises(DecodeError, match=fragment):
        way(made(recorded), torch.zeros(2, width), **given)


@pytest.mark.parametrize("make", [Matcher, lambda bundle, **given: BatchMatcher([bundle, None], **given)])
def test_matchers_check_the_stated_width(make: Any) -> None:
    make(made(128), logits_width=128)
    make(made(None), logits_width=SIZE + 5000)  # the caller knows
    with pytest.raises(DecodeError, match="logits_width=129, expected at most 128"):
        make(made(128), logits_width=129)
    with pytest.raises(DecodeError, match="too narrow"):
        make(made(None), logits_width=20)


def test_padding_that_nobody_stated_is_told_once() -> None:
    bundle = made(None)
    renamed = replace(bundle.vocab, meta={**bundle.vocab.meta, "source": "told once"})
    bundle = replace(bundle, vocab=renamed, meta={**bundle.meta, "vocab_digest": renamed.digest})
    with pytest.warns(LogitsWidthWarning, match="120 logits and the tokenizer 96 ids") as told:
        for _ in range(3):
            Decoder(bundle, 2).mask_(torch.zeros(2, 120))
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Decoder(bundle, 2, logits_width=128).mask_(torch.zeros(2, 128))
        Decoder(made(128), 2).mask_(torch.zeros(2, 128))


# -- what checkpoints say ----------------------------------------------------------------------------------------------


def checkpoint(folder: Path, tokenizer: Path, config: Any) -> Path:
    shutil.copy(tokenizer, folder / "tokenizer.json")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("name", "ids", "config", "width"),
    [
        ("qwen3", 151669, {"vocab_size": 151936}, 151936),
        ("llama3", 128256, {"vocab_size": 128256}, 128256),
        ("llama3", 128256, {"vocab_size": 7, "text_config": {"vocab_size": 128512}}, 128512),
        ("qwen3", 151669, {}, None),
        ("qwen3", 151669, [], None),
    ],
)
def test_real_tokenizers(name: str, ids: int, config: Any, width: int | None, shared: Path, tmp_path: Path) -> None:
    table = load_tokens(checkpoint(tmp_path, shared / "tokenizers" / f"{name}.json", config))
    assert (table.size, table.logits_width) == (ids, width)


def test_ids_without_a_logit_are_no_tokens(tmp_path: Path) -> None:
    """As in Gemma 3, whose tokenizer has one id more than the model has logits, for a picture."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    folder = checkpoint(tmp_path, builtin_path(), {"vocab_size": 8191})
    assert load_tokens(folder).special.get("<|pad|>") is None
    bundle = compile_tools(tools, folder, eos=["<|end|>"]).bundle
    assert (bundle.vocab.size, bundle.vocab.logits_width) == (8191, 8191)
    Decoder(bundle, 1).mask_(torch.zeros(1, 8191))
    with pytest.raises(DecodeError, match="8192 logits, expected at most 8191"):
        Decoder(bundle, 1).mask_(torch.zeros(1, 8192))
    # the tokenizer alone: nothing says the width, and no mask allows the last id
    alone = compile_tools(tools, folder / "tokenizer.json", eos=["<|end|>"]).bundle
    assert alone.vocab.size == 8192
    Decoder(alone, 1).mask_(torch.zeros(1, 8191))


@pytest.mark.parametrize(
    ("width", "fragment"),
    [(0, "1 to 16777216"), (1 << 30, "no model"), (100, "fewer logits than the tokenizer has tokens"), (True, "True")],
)
def test_widths_that_no_model_has(width: int, fragment: str) -> None:
    with pytest.raises(VocabError, match=fragment):
        load_tokens("builtin", logits_width=width)


def test_the_width_is_part_of_the_vocabulary() -> None:
    stated, plain = load_vocab("builtin", logits_width=9000), load_vocab("builtin")
    assert (stated.logits_width, plain.logits_width) == (9000, None)
    assert stated.digest != plain.digest and load_vocab("builtin", logits_width=9000) is stated


def test_the_builtin_tokenizer_is_told_of() -> None:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    with pytest.warns(BuiltinTokenizerWarning, match="no tokenizer is given"):
        compile_tools(schema)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile_tools(schema, "builtin")
