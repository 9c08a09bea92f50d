"""Which states take a slice, those whose simulation needs more room than there is at a time among them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.lift import lift
from toolc.compiler.lift import slice_simulation as simulate
from toolc.compiler.link import cache
from toolc.runtime import Matcher

from .brute import brute_mask
from .test_masks import bits

_NAME = "k" * 2 * simulate._MOST
LONG = {"properties": {_NAME: {"type": "integer"}}}
WIDE = {"properties": {f"{n * 7919 % 10007:05}{n:x}": {"type": "boolean"} for n in range(1200)}}


@pytest.mark.parametrize(("schema", "least"), [(LONG, 16_000), (WIDE, 13_000)], ids=["long", "wide"])
def test_masks_of_long_and_of_many_names(schema: dict[str, Any], least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[np.ndarray] = []
    monkeypatch.setattr(lift, "choose_slices", lambda *args: simulate.choose_slices(*args) or taken.append(args[-1]))
    monkeypatch.setattr(cache.Parts, "get", lambda *_: None)
    held = compile_schema(schema).bundle
    whole = sum(int(np.count_nonzero((one[:, 0] >= 0) & (one[:, 1] == 0))) for one in taken)
    assert whole > least  # states of names take a slice as it is
    rng, names = random.Random(1), list(schema["properties"])
    for _ in range(6):
        name = rng.choice(names)
        text = ('{"' + name[: rng.randrange(1, len(name) + 1)] + rng.choice(["", "k", "é", '"', '":'])).encode()
        matcher = Matcher(held)
        matcher.advance_bytes(text)
        for _ in range(3):
            mask = brute_mask(held, matcher)
            assert (mask == bits(matcher, held.vocab.size)).all()
            matcher.advance(int(rng.choice(mask.nonzero()[0])))
            if matcher.is_finished:
                break


FREE, PATTERN = {"type": "string"}, {"type": "string", "pattern": "^[^x]"}


@pytest.mark.parametrize(
    ("value", "text", "name"),
    [
        (FREE, "'a", "python"),
        (FREE, '"a', "json-minimal"),  # any spelling is read: JSON's, too
        (PATTERN, "'it", "python"),
        (PATTERN, '"a\\n', "python"),
    ],
)
def test_strings_of_python_take_a_slice(value: dict[str, Any], text: str, name: str) -> None:
    schema = {"type": "object", "properties": {"v": value}, "required": ["v"]}
    held = compile_tools(
        [{"name": "f", "input_schema": schema}], "builtin", options=Options(protocol="pythonic")
    ).bundle
    matcher = Matcher(held, "required")
    data = f"[f(v={text}".encode()
    assert matcher.advance_bytes(data) == len(data)
    t = held.tables
    slice_ = t.row_slice[t.cell_row[t.state_cell[matcher.state], 0]]
    assert held.vocab.meta["slices"][slice_] == name
    assert np.array_equal(bits(matcher, held.vocab.size), brute_mask(held, matcher))
