"""Members in order as one loop: the same masks as of the chain, tight bounds, and fewer states."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.passes import Pass, also
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.host.matcher import Matcher
from toolc.runtime.reference import Sequence
from toolc.runtime.selection.subset import subset

from .brute import brute_bounds

VALUES: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "boolean"},
    {"enum": ["on", "off", "auto"]},
    {"type": ["string", "null"]},
    {"type": "string", "maxLength": 40},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 40},
    {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}},
    {},
]


def schema(seed: int, keys: int, open_: bool, required: int, kinds: int = len(VALUES)) -> dict[str, Any]:
    """An object with members whose keys share beginnings."""
    pick = random.Random(seed)
    names: list[str] = []
    while len(names) < keys:
        name = "".join(pick.choice(("a", "id", "na", "me", "filter_", "x")) for _ in range(pick.randint(1, 4)))
        if name not in names:
            names.append(name)
    found: dict[str, Any] = {"type": "object", "properties": {name: pick.choice(VALUES[:kinds]) for name in names}}
    found["additionalProperties"] = open_
    found["required"] = pick.sample(names, required)
    return found


def both(source: Any, **options: Any) -> tuple[Bundle, Bundle]:
    """A bundle with chains, and one with loops."""
    chain = compile_tools(source, "builtin", options=Options(**options)).bundle
    with also(Pass.LOOPS):
        return chain, compile_tools(source, "builtin", options=Options(**options)).bundle


def walks(chain: Bundle, loop: Bundle, seed: int, steps: int = 50) -> None:
    """Read random tokens with both, those of structure more often than others."""
    pick = random.Random(seed)
    one, other = Matcher(chain), Matcher(loop)
    structure = [t for t in range(chain.vocab.size) if set(chain.vocab.token(t)) & set(b'",:{}[]')]
    inside = np.zeros(chain.vocab.size, bool)
    inside[structure] = True
    for _ in range(steps):
        masks = [np.isin(np.arange(inside.size), m.allowed_tokens()) for m in (one, other)]
        differ = np.flatnonzero(masks[0] != masks[1])
        assert not differ.size, [chain.vocab.shown(int(t)) for t in differ[:8]]
        bounds = brute_bounds(loop, other)
        assert ((bounds >= 0) == masks[1]).all()
        some = np.flatnonzero(masks[1] & inside if pick.random() < 0.6 else masks[1])
        token = int(pick.choice(some if some.size else np.flatnonzero(masks[1])))
        one.advance(token)
        other.advance(token)
        if other.is_finished:
            return


CASES = [(3, False, 0), (7, False, 0), (7, True, 0), (7, True, 2), (12, False, 3), (30, False, 0), (30, True, 1)]


@pytest.mark.parametrize("keys, open_, required", CASES)
@pytest.mark.parametrize("kinds", [1, 5, len(VALUES)])
def test_the_masks_are_those_of_the_chain(keys: int, open_: bool, required: int, kinds: int) -> None:
    chain, loop = both(schema(keys + kinds, keys, open_, required, kinds))
    for seed in range(4):
        walks(chain, loop, seed)


@pytest.mark.parametrize("keys, open_, required", [(7, False, 0), (7, True, 1), (20, False, 2)])
def test_what_closes_ends_within_its_bound(keys: int, open_: bool, required: int) -> None:
    _, loop = both(schema(keys, keys, open_, required, 6))
    for seed in range(4):
        pick, here = random.Random(seed), Sequence.start(loop)
        for _ in range(40):
            need, mask = here.need(), sorted(here.mask())
            for token in pick.sample(mask, min(len(mask), 12)):
                after = here.copy()
                assert after.advance(token)
                assert after.bound() <= need, (here.state, here.counter, loop.vocab.shown(token))
            closing, steps = here.copy(), here.bound()
            while closing.state != 1:
                token = int(closing.machine.view["close_token"][closing.close_cell(), closing.mode])
                assert token in closing.mask()
                assert closing.advance(token)
                steps -= 1
                assert closing.bound() <= steps
            forced = loop.tables.state_forced[here.state]
            follow = here.copy()
            for token in loop.tables.forced_tokens[slice(*loop.tables.forced_offset[forced : forced + 2])].tolist():
                assert follow.advance(token)
            if not mask or not here.advance(pick.choice(mask)) or here.state == 1:
                break


def tools() -> list[dict[str, Any]]:
    """Tools whose keys are so short that a token can reach from one key into the value of the next."""
    anything = {"type": "object", "properties": {"a": {}, "ab": {"type": "object"}, "b": {"type": "string"}, "c": {}}}
    return [
        {"name": "first", "input_schema": schema(1, 9, True, 1)},
        {"name": "second", "input_schema": anything},
        {"name": "third", "input_schema": schema(2, 12, False, 0)},
    ]


@pytest.mark.parametrize("protocol", ["hermes", "json", "qwen3_coder", "pythonic"])
def test_tools_and_a_choice_of_them(protocol: str) -> None:
    chain, loop = both(tools(), protocol=protocol)
    for seed in range(3):
        walks(chain, loop, seed, 60)
    for chosen in (["first", "second"], ["third"]):
        walks(subset(chain, chosen), subset(loop, chosen), 1, 60)


def test_alternative_objects_fall_back_to_chains() -> None:
    chain, loop = both({"anyOf": [schema(1, 6, True, 0), schema(2, 6, True, 1), {"type": "string"}]})
    for seed in range(4):
        walks(chain, loop, seed)


def test_members_with_one_kind_of_value_share_its_states() -> None:
    chain, loop = both(schema(5, 40, False, 0, 1))
    counts = chain.meta["counts"], loop.meta["counts"]
    assert counts[1]["states"] < 0.5 * counts[0]["states"], json.dumps(counts)
    assert counts[1]["cells"] < 0.6 * counts[0]["cells"]
