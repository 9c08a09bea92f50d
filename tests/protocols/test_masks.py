"""Masks of protocols: against trying every token from every entry, and against bundles compiled for one choice only."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cases.protocols import FAMILIES
from tests.lift.brute import brute_mask
from toolc.compiler import Options, compile_tools
from toolc.runtime import Matcher
from toolc.runtime.format.bundle import Bundle

from .allowed import read_text
from .test_protocols import CALLS, TOOLS, accepts, allowed, bundle
from .vocabularies import vocab_for


@pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_against_every_token(name: str, as_tokens: bool) -> None:
    held = bundle(name, as_tokens)
    rng = random.Random(name)
    special = set(held.vocab.special.values())
    starts = np.array([t in special or held.vocab.token(t)[:1] in b'{[<"\n}]' for t in range(held.vocab.size)])
    known: dict[object, np.ndarray] = {}  # entries lead to the same configurations, which are worked out once
    for entry in held.entry:
        matcher = Matcher(held, entry)
        for _ in range(12):
            mask = allowed(matcher).astype(bool)
            here = matcher.state, matcher.counter, tuple(matcher.stack)
            if here not in known:
                known[here] = brute_mask(held, matcher)
            assert np.array_equal(mask, known[here]), entry
            tokens, marked = np.flatnonzero(mask).tolist(), np.flatnonzero(mask & starts).tolist()
            matcher.advance(rng.choice(marked if marked and rng.random() < 0.7 else tokens))
            if matcher.is_finished:
                break


def equal_walks(one: Bundle, first: str, two: Bundle, second: str, seed: str, walks: int = 6) -> None:
    """Random walks, half of the steps by the longest tokens, on which both allow the same tokens and refuse another."""
    rng = random.Random(seed)
    length = np.diff(one.vocab.token_offset)
    for _ in range(walks):
        a, b = Matcher(one, first), Matcher(two, second)
        for _ in range(40):
            mask = allowed(a)
            assert np.array_equal(mask, allowed(b)), a.state
            tokens = np.flatnonzero(mask)
            refused = np.flatnonzero(mask == 0)
            if refused.size:
                other = int(rng.choice(refused))
                assert not a.try_advance(other) and not b.try_advance(other)
            if rng.random() < 0.5:
                own = length[tokens]
                tokens = tokens[own >= np.sort(own)[-5:][0]]  # few are sorted in their order
                tokens = tokens[np.argsort(-length[tokens], kind="stable")][:5]
            token = int(rng.choice(tokens))
            a.advance(token)
            b.advance(token)
            if a.is_finished:
                break


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_entries_are_what_would_be_compiled_for_them_alone(name: str) -> None:
    whole = bundle(name)
    bare = compile_tools(TOOLS, vocab_for(name), options=Options(protocol=name, named=False)).bundle
    assert set(bare.entry) == {entry for entry in whole.entry if not entry.startswith("tool:")}
    for entry in bare.entry:
        equal_walks(whole, entry, bare, entry, name + entry)
    for tool in TOOLS:
        alone = compile_tools([tool], vocab_for(name), options=Options(protocol=name)).bundle
        equal_walks(whole, f"tool:{tool['name']}", alone, "required/one", name)


LONG: dict[str, Any] = {"type": "object", "properties": {
    "a": {"type": "string", "maxLength": 50},
    "b": {"type": "string", "minLength": 36, "pattern": "b$", "maxLength": 45},
}, "additionalProperties": False}  # fmt: skip


@pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])
@pytest.mark.parametrize(
    "name", ["qwen3_coder", "glm47", "minimax_m3", "deepseek_v32", "kimi_k3", "gemma4", "pythonic", "mistral_v11"]
)
def test_near_the_bounds_of_long_strings(name: str, as_tokens: bool) -> None:
    """A tag that is kept out begins at any length, and every token is tried there."""
    tool = {"name": "f", "input_schema": LONG}
    held = compile_tools([tool], vocab_for(name, as_tokens), options=Options(protocol=name, named=False)).bundle
    tags = {"qwen3_coder": "\n</parameter", "glm47": "</arg_val", "minimax_m3": "]<]minimax[>", "gemma4": '<|"|',
            "deepseek_v32": "</", "kimi_k3": "<|clo", "pythonic": "\\", "mistral_v11": "[TOOL_CAL"}  # fmt: skip
    tried = 0
    for key in LONG["properties"]:
        text = FAMILIES[name].write([("f", {key: "Z"})])
        for length in (0, 1, 20, 33, 35, 36, 37, 40, 43, 44, 45, 46, 48, 49, 50):
            for tag in ("", tags[name][:1], tags[name]):
                matcher = Matcher(held, "required")
                before = text.partition("Z")[0].encode() + b"b" * length + tag.encode()
                if read_text(matcher, before) == len(before):
                    assert np.array_equal(allowed(matcher).astype(bool), brute_mask(held, matcher)), (key, length, tag)
                    tried += 1
    assert tried > 50


@pytest.mark.parametrize(
    ("tokenizer", "name", "ids"),
    [("qwen3.json", "hermes", True), ("llama3.json", "hermes", False), ("llama3.json", "llama3", True),
     ("llama3.json", "kimi_k2", False), ("qwen3.json", "mistral_v11", False)],
)  # fmt: skip
def test_texts_as_real_tokenizers_cut_them(tokenizer: str, name: str, ids: bool, shared: Path) -> None:
    from tokenizers import Tokenizer

    path = shared / "tokenizers" / tokenizer
    encoder = Tokenizer.from_file(str(path))
    held = compile_tools(TOOLS, path, options=Options(protocol=name)).bundle
    family = FAMILIES[name]
    own = [token for d, token in held.meta["delimiters"].items() if token is not None and d in family.tokens]
    assert bool(own) is ids or not ids
    ends = held.vocab.end_of_turn
    for call in CALLS:
        for entry, text in (("required", family.write([call])), ("auto", family.before + family.write([call]))):
            matcher = Matcher(held, entry)
            for token in [*encoder.encode(text, add_special_tokens=False).ids, ends[0]]:
                matcher.advance(token)
            assert matcher.is_finished
    assert accepts(held, family.write(CALLS), "required")
