"""Strings of at most so many characters in lists of at most so many items, between any marks."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.cases.protocols import FAMILIES
from tests.lift.brute import brute_mask
from toolc.compiler import Options, compile_tools
from toolc.runtime import Matcher, read_calls

from .allowed import masks_allow, read_text
from .test_protocols import allowed
from .vocabularies import vocab_for

ITEM: dict[str, Any] = {"anyOf": [{"type": "string", "maxLength": 60}, {"enum": ["x" * 70, None, 1]}]}
LISTS = {"type": "object", "properties": {"v": {"type": "array", "items": ITEM, "minItems": 1, "maxItems": 40}}}
SPEC = [{"name": "f", "input_schema": {**LISTS, "required": ["v"], "additionalProperties": False}}]
VALUES: list[tuple[list[Any], bool]] = [
    ([], False),
    ([""], True),
    (["it's", 'a "b"', "back\\slash", "a\nb", "é😀", None, 1], True),
    (["a" * 60], True),
    (["a" * 61], False),
    (["'" * 60, "é" * 60, "\n" * 60], True),
    (["b", "'" * 61], False),
    (["x" * 70, "x" * 60], True),
    (["x" * 69], False),
    (["c" * 60] * 40, True),
    ([None] * 39 + ["x" * 70], True),
    (["c"] * 41, False),
]


@pytest.mark.parametrize("protocol", ["pythonic", "lfm2", "llama3_builtin", "gemma4", "functiongemma", "hermes"])
def test_both_counts(protocol: str) -> None:
    family = FAMILIES[protocol]
    held = compile_tools(SPEC, vocab_for(protocol), options=Options(protocol=protocol)).bundle
    for value, valid in VALUES:
        text = family.write([("f", {"v": value})])
        assert masks_allow(held, text.encode(), "required") == valid, value
        if valid:
            assert read_calls(held, text, "required")[0].arguments == {"v": value}
    rng = random.Random(1)
    for value in (["a" * 60, "b"], ['it\'s "b"', "x" * 70, None]):
        data = family.write([("f", {"v": value})]).encode()
        for at in rng.sample(range(len(data)), 12):
            matcher = Matcher(held, "required")
            if read_text(matcher, data[:at]) == at:  # not inside of a token that the text is written with
                assert np.array_equal(allowed(matcher).astype(bool), brute_mask(held, matcher))
