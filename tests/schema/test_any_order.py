"""``key_order="any"``: every order of the keys of a valid value is accepted, and no text of another."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler.errors import BudgetError, SchemaError, UnsatisfiableError, UnsupportedError
from toolc.compiler.schema import SchemaOptions, schema_to_lark
from toolc.compiler.schema.any_order import MAX_KEYS

from .judge import Judge
from .random_schemas import DRAFTS, schemas, values
from .recogniser import Compiled, Recogniser
from .test_random import EXAMPLES, LAYOUTS, near, orders, spell

ANY = SchemaOptions(key_order="any", whitespace="flexible")
SCHEMA = {
    "type": "object",
    "properties": {
        "a": {"type": "integer"},
        "b": {"type": "string"},
        "c": {"const": {"x": 1, "y": [2, {"p": 0, "q": 0}]}},
    },
    "required": ["b"],
    "minProperties": 2,
    "maxProperties": 3,
    "additionalProperties": {"type": "null"},
}


@settings(max_examples=EXAMPLES // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, schemas, st.lists(values, min_size=4, max_size=4))
def test_random_schemas(schema: Any, x: Any, instances: list[Any]) -> None:
    if isinstance(schema, dict):
        schema = {"$schema": DRAFTS[2020], **schema, "$defs": {"x": x, "y": x}}
    try:
        ours = Recogniser(schema_to_lark(schema, ANY)[0])
    except (UnsupportedError, BudgetError, UnsatisfiableError):
        return
    except SchemaError as error:
        assert "refers to itself" in str(error)
        return
    judge = Judge(schema)
    for value in [one for instance in instances for one in near(instance, instances[0])[:6]]:
        try:
            valid = judge.accepts(spell(value, LAYOUTS[0]))
        except RecursionError:  # references without end below unevaluated keywords
            continue
        for order in orders(value)[:200]:
            assert ours.accepts(spell(order, LAYOUTS[0])) == valid, (schema, order, valid)
        for order in orders(value)[:3]:
            if isinstance(order, dict) and order and ours.accepts(text := spell(order, LAYOUTS[0], twice=True)):
                assert judge.accepts(text), (schema, text)


def test_every_order_of_every_subset() -> None:
    text, writer = schema_to_lark(SCHEMA, ANY)
    assert "key-order" not in writer.restrictions
    ours, judge = Compiled(text), Judge(SCHEMA)
    constants = ('{"x": 1, "y": [2, {"q": 0, "p": 0}]}', '{"y": [2, {"p": 0, "q": 0}], "x": 1}')
    members = ['"a": 1', '"b": ""', '"z": null', *(f'"c": {one}' for one in constants), '"a": 2', '"b": 3', '"y": null']
    accepted = 0
    for count in range(5):
        for chosen in itertools.permutations(members, count):
            one = "{" + ", ".join(chosen) + "}"
            assert ours.accepts(one) == judge.accepts(one), one
            accepted += ours.accepts(one)
    assert accepted > 40


def test_the_option_goes_through_the_pipeline() -> None:
    from toolc.compiler import Options, compile_schema
    from toolc.runtime import Matcher

    bundle = compile_schema(SCHEMA, options=Options(key_order="any")).bundle
    assert bundle.meta["options"]["key_order"] == "any" and "key-order" not in bundle.meta["restrictions"]
    text = json.dumps({"z": None, "b": "", "a": 3}).encode()
    matcher = Matcher(bundle)
    assert matcher.advance_bytes(text) == len(text) and matcher.is_complete
    matcher = Matcher(compile_schema(SCHEMA).bundle)
    assert matcher.advance_bytes(text) < len(text)


@pytest.mark.parametrize("form", ["properties", "const", "counts"])
def test_too_many_keys_are_refused_with_their_number(form: str) -> None:
    count = MAX_KEYS + 2
    inner: dict[str, Any] = {"type": "object", "properties": {f"k{n}": {"type": "null"} for n in range(count)}}
    if form == "const":
        inner = {"const": {f"k{n}": None for n in range(count)}}
    if form == "counts":
        count = MAX_KEYS
        inner = {"type": "object", "properties": {f"k{n}": True for n in range(count)}, "minProperties": 40}
    with pytest.raises(UnsupportedError) as caught:
        schema_to_lark({"type": "object", "properties": {"day": inner}}, ANY)
    assert f"{count} keys" in str(caught.value)
    assert caught.value.place == "#/properties/day"


def test_another_word_is_refused() -> None:
    with pytest.raises(SchemaError, match="declared or any"):
        schema_to_lark({}, SchemaOptions(key_order="sorted"))
