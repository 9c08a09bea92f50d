"""``uniqueItems`` of many strings: a register of the array's frame keeps which of them were there.

The oracles: the same schema by an automaton that has a state for each subset, and jsonschema.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.errors import UnsupportedError
from toolc.compiler.lift import registers
from toolc.compiler.schema import array_rules, cached_rules, normalise
from toolc.runtime import Bundle, Matcher

from ..lift.test_registers import vocab, walk
from ..link.test_link import compare
from .judge import Judge


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than four strings are too many for an automaton."""
    monkeypatch.setattr(normalise, "MAX_KEYS", 4)


HEADS = ("id", "url", "text", "lang")
FIELDS = [f"{one}_{other}" for one in HEADS for other in ("a", "at", "count", "of", "x y", 'q"')]


def array(strings: list[str], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"enum": strings}, "uniqueItems": True, **more}


def inside(one: dict[str, Any]) -> dict[str, Any]:
    """An object with the array, a list of such arrays, and something behind them."""
    properties = {"a": one, "b": {"type": "array", "items": one}, "c": {"type": ["integer", "null"]}}
    return {"type": "object", "properties": properties, "required": ["a"], "additionalProperties": False}


def made(schema: Any, tokenizer: Any = None, **options: Any) -> Bundle:
    return compile_schema(schema, tokenizer or vocab(), options=Options(jobs=1, **options)).bundle


def by_automaton(schema: Any, **options: Any) -> Bundle:
    cached_rules.forget()
    with patch.object(array_rules, "_may_have_register", lambda _: False):
        bundle = made(schema, **options)
    cached_rules.forget()
    assert not bundle.tables.has_registers
    return bundle


def accepts(bundle: Bundle, text: str) -> bool:
    matcher = Matcher(bundle)
    return matcher.advance_bytes(text.encode()) == len(text.encode()) and matcher.is_complete


texts = st.text(st.sampled_from('ab"\\ é,]k1'), max_size=4)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(texts, unique=True, min_size=5, max_size=7), st.integers(0, 1), st.integers(0, 1 << 20))
def test_masks_are_those_of_an_automaton(strings: list[str], low: int, seed: int) -> None:
    schema = inside(array(strings, minItems=low))
    one, other = made(schema), by_automaton(schema)
    assert one.tables.has_registers
    for n in range(3):
        compare(one, other, f"{seed} {n}", 40)
    walk(one, "start", random.Random(seed), 25)


@pytest.mark.parametrize("low", [0, 1])
def test_every_order_of_every_subset_and_no_other_text(low: int) -> None:
    strings = ["a", "ab", "b", "a b", '"', "é"]
    schema = array(strings, minItems=low)
    bundle, judge = made(schema), Judge(schema)
    accepted = 0
    for count in range(4):
        for chosen in itertools.product(strings, repeat=count):
            text = json.dumps(list(chosen), ensure_ascii=False)
            assert accepts(bundle, text) == judge.accepts(text), text
            accepted += accepts(bundle, text)
    assert accepted == (1 - low) + 6 + 6 * 5 + 6 * 5 * 4
    assert accepts(bundle, json.dumps(strings, ensure_ascii=False))
    assert not accepts(bundle, json.dumps([*strings, "a"], ensure_ascii=False))
    full = Matcher(bundle)
    full.advance_bytes(json.dumps(strings, ensure_ascii=False)[:-1].encode())
    assert full.advance_bytes(b",") == 0  # nothing could follow


@pytest.mark.parametrize("count", [len(FIELDS), 300])
def test_masks_of_many_strings(count: int) -> None:
    strings = FIELDS if count == len(FIELDS) else [f"k{n}" for n in range(count)]
    bundle = made(inside(array(strings, minItems=1)))
    assert bundle.tables.has_registers
    pick = random.Random(count)
    assert sum(walk(bundle, "start", pick, 60) for _ in range(6)) > 3


def test_texts_within_a_budget_are_valid() -> None:
    schema = inside(array(FIELDS, minItems=1))
    bundle, judge = made(schema, "builtin"), Judge(schema)
    least = bundle.min_tokens["start"]
    assert least is not None and least <= 16  # {"a": ["id_a"]}
    for seed in range(30):
        pick = random.Random(seed)
        matcher, text = Matcher(bundle, budget=least + pick.randrange(60)), b""
        mask = np.zeros(bundle.vocab.words, np.uint32)
        while not matcher.is_finished:
            matcher.fill(mask)
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            token = int(pick.choice(allowed.tolist()))
            matcher.advance(token)
            text += bundle.vocab.token(token)
        assert judge.accepts(text.decode()), text


def test_arrays_that_have_no_register() -> None:
    """Few strings, numbers, and bounds on the count, are for the automaton; so is what is not in double quotes."""
    for schema in (
        array(FIELDS[:4]),
        array([1, 2, 3, 4, 5, 6]),  # type: ignore[list-item]
        array(FIELDS[:7], minItems=2),
        array(FIELDS[:7], maxItems=6),
    ):
        bundle, judge = made(schema), Judge(schema)
        assert not bundle.tables.has_registers
        values = schema["items"]["enum"]
        for count in range(4):
            chosen = random.Random(count).sample(values, count)
            assert accepts(bundle, json.dumps(chosen)) == judge.accepts(json.dumps(chosen))
            assert not accepts(bundle, json.dumps([*chosen, *chosen[-1:]])) or not chosen
    tools = [{"name": "t", "input_schema": inside(array(FIELDS))}]
    with pytest.raises(UnsupportedError, match="too many states") as caught:
        compile_tools(tools, vocab(), options=Options(protocol="pythonic", jobs=1))
    assert str(caught.value.place).endswith("/a/uniqueItems")
    relaxed = compile_tools(tools, vocab(), options=Options(protocol="pythonic", jobs=1, relax=("uniqueItems",)))
    assert relaxed.report["dropped"]


@pytest.mark.parametrize(
    "options", [{"protocol": "hermes"}, {"protocol": "qwen3_coder"}, {"key_order": "any"}], ids=str
)
def test_tools_and_any_order(options: dict[str, Any]) -> None:
    tools = [
        {"name": "alpha", "input_schema": inside(array(FIELDS))},
        {"name": "beta", "input_schema": inside(array(FIELDS[3:], minItems=1))},
    ]
    bundle = compile_tools(tools, vocab(), options=Options(jobs=1, **options)).bundle
    assert bundle.tables.has_registers
    pick = random.Random(str(options))
    assert sum(walk(bundle, "required", pick, 80) for _ in range(6)) > 0


def test_alternatives_that_share_a_bracket_are_told_apart_without_a_register() -> None:
    schema = {"anyOf": [array(FIELDS[:6]), {"type": "array", "items": {"type": "integer"}}]}
    bundle, judge = made(schema), Judge(schema)
    for value in ([], [1, 1], FIELDS[:6], [FIELDS[0], FIELDS[0]], [FIELDS[0], 1]):
        assert accepts(bundle, json.dumps(value)) == judge.accepts(json.dumps(value)), value


def test_a_clash_costs_no_other_object_its_register() -> None:
    """An array beside another one has no register; neither do arrays alone where a token could read `["a"`."""
    names = {f"key{n}": {"type": "integer"} for n in range(12)}
    beside = {"anyOf": [array(FIELDS[:6]), {"type": "array", "items": {"type": "string"}}]}
    for more in (
        {"f": beside},
        {"f": array(FIELDS[:6]), "g": {"allOf": [array(FIELDS[:6])], "not": array(FIELDS[3:6])}},
    ):
        schema = {"type": "object", "properties": {**names, **more}, "additionalProperties": False}
        made_ = compile_schema(schema, vocab(), options=Options(key_order="any", jobs=1))
        assert made_.bundle.tables.has_registers and not made_.report["many_keys"]
    tools = [
        {"name": "alpha", "input_schema": {"type": "object", "properties": {"f": array(FIELDS)}}},
        {"name": "beta", "input_schema": {"type": "object", "properties": {"f": beside}}},
    ]
    assert compile_tools(tools, vocab(), options=Options(protocol="hermes", jobs=1)).bundle.tables.has_registers
    with patch.object(registers, "reads_items_at_once", lambda _: True):
        schema = {"type": "object", "properties": {**names, "f": array(FIELDS[:7])}, "additionalProperties": False}
        made_ = compile_schema(schema, vocab(), options=Options(key_order="any", jobs=1))
        assert made_.bundle.tables.has_registers and not made_.report["many_keys"]
        assert not accepts(made_.bundle, '{"f": ["id_a", "id_a"]}') and accepts(
            made_.bundle, '{"f": ["id_at", "id_a"]}'
        )
