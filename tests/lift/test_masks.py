"""Masks from rows and chains, bit for bit against trying every token, on random configurations of many grammars.

The vocabularies: the built-in one, and two production tokenizers that come with mistral-common (tekken, 131k
byte-level BPE; SentencePiece, 32k with byte fallback).
"""

from __future__ import annotations

import functools
import random
from pathlib import Path

import numpy as np
import pytest

from toolc.compiler import Options, compile_grammar, compile_schema
from toolc.compiler.lift.region_rows import Regions
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.vocab import load_tokens
from toolc.runtime import Matcher, Vocab
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.reference import Machine, Sequence

from ..cases.grammars import GRAMMARS
from .brute import brute_mask

VOCABS = ("builtin", "tekken_240911.json", "mistral_instruct_tokenizer_240323.model.v3")
CONFIGURATIONS = {"builtin": 110, "tekken_240911.json": 30, "mistral_instruct_tokenizer_240323.model.v3": 30}


@functools.cache
def vocab(name: str) -> Vocab:
    if name == "builtin":
        return build_vocab(load_tokens(name))
    data = Path(pytest.importorskip("mistral_common").__file__).parent / "data"
    return build_vocab(load_tokens(data / name))


@functools.cache
def bundle(grammar: str, name: str, soft_depth: int = 64) -> Bundle:
    return compile_grammar(GRAMMARS[grammar], vocab(name), options=Options(soft_depth=soft_depth)).bundle


def bits(matcher: Matcher, size: int) -> np.ndarray:
    mask = np.full(-(-size // 32), 0xAAAAAAAA, np.uint32)
    matcher.fill(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].astype(bool)


def choose(allowed: np.ndarray, held: Bundle, rng: random.Random) -> int:
    """Mostly tokens with structure in them, so that walks go deep and end."""
    some = [int(allowed[n]) for n in rng.sample(range(allowed.size), min(60, allowed.size))]
    structured = [t for t in some if any(b in b'[]{}",:)(<>' for b in held.vocab.token(t))]
    return rng.choice(structured if structured and rng.random() < 0.6 else some)


def walk(held: Bundle, count: int, seed: str) -> tuple[int, int]:
    """Compare on ``count`` configurations met on random walks; returns distinct states and finished walks."""
    rng, states, finished, done = random.Random(seed), set(), 0, 0
    while done < count:
        matcher = Matcher(held)
        for _ in range(60):
            allowed = bits(matcher, held.vocab.size)
            expected = brute_mask(held, matcher)
            wrong = np.flatnonzero(allowed != expected)
            assert not wrong.size, (
                matcher.state,
                matcher.counter,
                matcher.stack,
                [(held.vocab.shown(int(t)), bool(allowed[t])) for t in wrong[:5]],
            )
            assert allowed.any(), "a dead end"
            states.add((matcher.state, matcher.counter))
            done += 1
            matcher.advance(choose(np.flatnonzero(allowed), held, rng))
            if matcher.is_finished:
                finished += 1
                break
    return len(states), finished


@pytest.mark.parametrize("name", VOCABS)
@pytest.mark.parametrize("grammar", sorted(GRAMMARS))
def test_masks(grammar: str, name: str) -> None:
    """About 2,700 configurations in all."""
    states, _ = walk(bundle(grammar, name), CONFIGURATIONS[name], f"{grammar} {name}")
    assert states >= 2


@pytest.mark.parametrize("name", VOCABS)
@pytest.mark.parametrize("soft_depth", [1, 3])
def test_masks_around_the_soft_depth(soft_depth: int, name: str) -> None:
    held = bundle("any-json", name, soft_depth)
    assert held.tables.modes == 2
    walk(held, CONFIGURATIONS[name], f"depth {soft_depth} {name}")


def test_a_model_that_loves_to_open_never_overflows() -> None:
    held = bundle("any-json", "builtin", 4)
    opens = {t for t in range(held.vocab.size) if set(held.vocab.token(t)) & set(b"[{")}
    rng, deepest = random.Random(1), 0
    for _ in range(40):
        matcher = Matcher(held)
        for _ in range(60):
            allowed = np.flatnonzero(bits(matcher, held.vocab.size)).tolist()
            matcher.advance(rng.choice([t for t in allowed if t in opens] or allowed))
            deepest = max(deepest, matcher.depth)
            if matcher.is_finished:
                break
    assert 4 < deepest <= held.meta["capacity"]


@pytest.mark.parametrize("grammar", ["any-json", "counted-strings", "counted-in-counted", "counters-apart"])
def test_the_loop_equals_the_plain_oracle(grammar: str) -> None:
    held = bundle(grammar, "builtin", 3)
    rng = random.Random(grammar)
    matcher, machine = Matcher(held), Machine(held)
    for _ in range(12):
        oracle = Sequence(machine, matcher.state)
        oracle.counter, oracle.stack, oracle.registers = matcher.counter, matcher.stack, matcher.registers
        brute = brute_mask(held, matcher)
        assert set(np.flatnonzero(brute).tolist()) == oracle.brute_mask() == oracle.mask()
        matcher.advance(choose(np.flatnonzero(brute), held, rng))
        if matcher.is_finished:
            matcher = Matcher(held)


def test_end_of_turn_only_where_the_text_is_whole() -> None:
    held = bundle("counted-strings", "builtin")
    ends = set(held.tables.end_of_turn_tokens.tolist())
    matcher = Matcher(held)
    matcher.advance_bytes(b'["no"')
    assert not ends & set(matcher.allowed_tokens().tolist())
    matcher.advance_bytes(b"]")
    assert set(matcher.allowed_tokens().tolist()) == ends


def test_exceptions_to_a_slice_follow_the_counter() -> None:
    """Blanks count to 90 and all else leads into free text: at 72 of them a token of 19 blanks was allowed."""
    held = bundle("counted-then-free", "builtin")
    matcher = Matcher(held)
    matcher.advance_bytes(b'"' + b" " * 60)
    for _ in range(30):
        assert (bits(matcher, held.vocab.size) == brute_mask(held, matcher)).all(), matcher.counter
        matcher.advance_bytes(b" ")


REGIONS = {
    "pattern-words": {"type": "string", "pattern": r"^(\S+\s+){0,30}\S+$"},
    "pattern-words-counted": {"type": "string", "pattern": r"^(\S+\s+){0,20}\S+$", "maxLength": 60},
    "alive-whatever-is-counted": {
        "patternProperties": {"^[a-z_-]{1,70}$": {"type": "null"}},
        "additionalProperties": {"const": 1},
    },
    "labels": {"type": "string", "pattern": r"^([a-z][a-z0-9-]{0,40}\.)*[a-z][a-z0-9-]{0,40}$", "maxLength": 80},
}


@pytest.mark.parametrize("name", VOCABS[:2])
@pytest.mark.parametrize("case", sorted(REGIONS))
def test_regions_inside_of_strings(case: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of many states over one collapsed trie; walks stay inside of the strings."""
    walked: list[int] = []
    of_region = Regions._of_region

    def watched(self, home, jobs, own, *more):  # type: ignore[no-untyped-def]
        walked.append(own.size)
        return of_region(self, home, jobs, own, *more)

    compile_schema(True, vocab(name))  # any JSON, which has regions of its own, is a part from now on
    monkeypatch.setattr(Regions, "_of_region", watched)
    compiled = compile_schema(REGIONS[case], vocab(name))
    assert (sum(walked) > 30) == (case != "alive-whatever-is-counted")
    held, rng, done = compiled.bundle, random.Random(f"{case} {name}"), 0
    while done < 120:
        matcher = Matcher(held)
        for _ in range(80):
            allowed = bits(matcher, held.vocab.size)
            wrong = np.flatnonzero(allowed != brute_mask(held, matcher))
            assert not wrong.size, [(held.vocab.shown(int(t)), bool(allowed[t])) for t in wrong[:5]]
            done += 1
            some = rng.sample(np.flatnonzero(allowed).tolist(), min(40, int(allowed.sum())))
            inside = [t for t in some if held.vocab.token(t) and not set(held.vocab.token(t)) & set(b'"{}:,')]
            matcher.advance(rng.choice(inside if inside and rng.random() < 0.97 else some))
            if matcher.is_finished:
                break
