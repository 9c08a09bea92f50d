"""The passes of compiler/passes.py: without any of them the masks are the same, so each has a plain path."""

from __future__ import annotations

import copy
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolc.compiler
from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.link import cache as parts
from toolc.compiler.passes import Pass, switches, without
from toolc.compiler.terminals import terminal
from toolc.runtime import Bundle, Matcher, Vocab

_MEMBER = {"type": "object", "properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind"]}
SCHEMAS: dict[str, Any] = {
    "keys": {"properties": {f"key {n} {n % 7}": {"type": "string", "maxLength": 3} for n in range(30)}},
    "strings": {
        "type": "object",
        "properties": {
            "words": {"type": "string", "pattern": "^([a-z]{1,6} ){2,14}[a-z]+$"},
            "short": {"type": "string", "minLength": 2, "maxLength": 40},
            "other": {"type": "string", "pattern": "^[^x]{3,60}$"},
            "first": {"type": "string", "pattern": "^[a-z]+-[0-9]+$"},
            "again": {"type": "string", "pattern": "^[a-z]+-[0-9]+$"},
            "digits": {"type": "string", "pattern": "^[0-9]{12}$"},
            "path": {"type": "string", "pattern": "^([a-z]{1,80}[/:])*[a-z]{1,30}$", "maxLength": 150},
            "when": {"type": "string", "format": "date-time"},
        },
        "additionalProperties": False,
    },
    "unions": {"oneOf": [_MEMBER, {**_MEMBER, "required": ["n"], "properties": {"kind": {"const": "b"}, "x": True}}]},
    "lists": {
        "type": "array",
        "items": {"anyOf": [{"enum": ["red", "green", "blue", "ready"]}, {"type": "number", "minimum": 3}]},
        "minItems": 2,
        "maxItems": 40,
    },
    "tree": {
        "$defs": {"tree": {"properties": {"left": {"$ref": "#/$defs/tree"}, "value": {}}, "required": ["value"]}},
        "$ref": "#/$defs/tree",
    },
}
TOOLS = {"hermes": 36, "qwen3_coder": 3}  # enough that there are groups; few
STEPS, WALKS = 24, 5


def tools(count: int) -> list[dict[str, Any]]:
    """Tools of two arguments."""
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "integer"},
        {"type": "array", "items": {"type": "boolean"}, "maxItems": 5},
        {"enum": ["one", "two", "twelve"]},
        {"type": "string", "pattern": "^[é-ü]{1,9}(:[a-z]{0,63}){4}$"},
    ]
    return [
        {
            "name": f"tool_{n}",
            "parameters": {
                "type": "object",
                "properties": {f"first{n % 9}": kinds[n % 5], "second": kinds[n % 3]},
                "required": ["second"],
            },
        }
        for n in range(count)
    ]


def compiled(case: str, vocab: Vocab) -> Bundle:
    """The bundle of a case, from nothing that was kept."""
    parts.forget()
    terminal._kept.clear()
    if case in TOOLS:
        return compile_tools(tools(TOOLS[case]), vocab, options=Options(protocol=case, jobs=1)).bundle
    return compile_schema(SCHEMAS[case], vocab).bundle


@cache
def walks(case: str) -> list[list[tuple[int, bytes]]]:
    """Texts of a case: of every step the token, and the mask that allowed it."""
    bundle = compiled(case, load_vocab("builtin"))
    pick = random.Random(case)
    found = []
    for _ in range(WALKS):
        matcher, trail = Matcher(bundle), []
        for _ in range(STEPS):
            mask = masked(matcher)
            some = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
            long = [token for token in some if len(bundle.vocab.token(token)) > 1]
            token = pick.choice(long if long and pick.random() < 0.5 else some)
            trail.append((token, mask.tobytes()))
            if matcher.advance(token) and matcher.state == 1:
                break
        found.append(trail)
    return found


def masked(matcher: Matcher) -> np.ndarray:
    """The mask, uint32 [words]."""
    mask = np.zeros(matcher.bundle.vocab.words, np.uint32)
    matcher.fill(mask)
    return mask


def check_masks(bundle: Bundle, trails: list[list[tuple[int, bytes]]]) -> None:
    """The bundle has the mask of every step of these walks."""
    for trail in trails:
        matcher = Matcher(bundle)
        for token, mask in trail:
            assert masked(matcher).tobytes() == mask
            matcher.advance(token)


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path))


@pytest.mark.parametrize("case", [*SCHEMAS, *TOOLS])
@pytest.mark.parametrize("off", list(Pass), ids=lambda one: one.name.lower())
def test_masks_are_equal_without_the_pass(off: Pass, case: str) -> None:
    trails = walks(case)
    with without(off):
        bundle = compiled(case, copy.copy(load_vocab("builtin")))
    check_masks(bundle, trails)


def test_masks_are_equal_without_all() -> None:
    for case in (*SCHEMAS, *TOOLS):
        trails = walks(case)
        with without(*Pass):
            bundle = compiled(case, copy.copy(load_vocab("builtin")))
        check_masks(bundle, trails)


def test_every_switch_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the compiles of these cases, so those without a pass are other compiles."""
    asked: set[Pass] = set()

    def on(one: Pass) -> bool:
        asked.add(one)
        return True

    monkeypatch.setattr(Pass, "on", property(on))
    for case in (*SCHEMAS, *TOOLS):
        compiled(case, copy.copy(load_vocab("builtin")))
    assert asked == set(Pass)


def test_every_pass_names_its_file() -> None:
    root = Path(toolc.compiler.__file__).parent
    for one in Pass:
        assert (root / one.file).is_file() and one.purpose.endswith(".")


def test_switches_nest() -> None:
    with without(Pass.SLICES):
        with without(Pass.REGIONS, Pass.SLICES):
            assert switches() == "REGIONS SLICES" and not Pass.REGIONS.on
        assert Pass.REGIONS.on and not Pass.SLICES.on
    assert switches() == "" and all(one.on for one in Pass)
