"""``key_order="any"``: every order of the keys of a valid value is accepted, and no text of another."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler.errors import BudgetError, SchemaError, UnsatisfiableError, UnsupportedError
from toolc.compiler.schema import SchemaOptions, schema_to_lark
from toolc.compiler.schema.keywords import MAX_KEYS

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


def _large(form: str) -> dict[str, Any]:
    """An object with more subsets of keys than any order has room for."""
    if form == "const":
        return {"const": {f"k{n}": None for n in range(MAX_KEYS + 1)}}
    if form == "enum":
        return {"enum": [0, {"in": [{f"k{n}": n for n in range(MAX_KEYS + 3)}]}]}
    if form == "counts":
        return {
            "type": "object",
            "properties": {f"k{n}": {"type": "null"} for n in range(MAX_KEYS)},
            "minProperties": 40,
        }
    if form == "needs":
        keys = {f"k{n}": {"type": "integer"} for n in range(MAX_KEYS)}
        return {"type": "object", "properties": keys, "not": {"additionalProperties": {"minimum": 3}}}
    keys = {f"k{n}": {"type": ["null", "boolean"]} for n in range(MAX_KEYS + 2)}
    more: dict[str, Any] = {"required": ["k3", "k1"]} if form == "required" else {}
    return {"type": "object", "properties": keys, **more}


@pytest.mark.parametrize("form", ["properties", "required", "const", "enum", "counts", "needs"])
def test_too_many_keys_stand_in_declared_order(form: str) -> None:
    schema = {"type": "array", "items": _large(form)}
    declared, ordered = schema_to_lark(schema, SchemaOptions(whitespace="flexible"))
    text, writer = schema_to_lark(schema, ANY)
    assert text == declared
    assert writer.many_keys == ["#/items"] and not ordered.many_keys
    renamed = {"many-keys" if name == "key-order" else name for name in ordered.restrictions}
    assert writer.restrictions == renamed and "many-keys" in renamed
    narrowed = {row[1] for row in writer.report() if "many-keys" in row[3]}
    assert narrowed and narrowed <= {"properties", "required", "const", "enum"}


@pytest.mark.parametrize("form", ["properties", "const"])
def test_ten_keys_are_not_too_many(form: str) -> None:
    names = [f"k{n}" for n in range(MAX_KEYS)]
    schema = (
        {"const": dict.fromkeys(names)} if form == "const" else {"properties": {key: {"const": None} for key in names}}
    )
    text, writer = schema_to_lark({"type": "object", **schema}, ANY)
    assert not writer.many_keys and not {"many-keys", "key-order"} & writer.restrictions
    assert Compiled(text).accepts(json.dumps(dict.fromkeys(names[::-1])))


def test_small_objects_beside_a_large_one_keep_any_order() -> None:
    small = {"type": "object", "properties": {"a": {"const": 1}, "b": {"const": {"x": 1, "y": 2}}}}
    large = {"type": "object", "properties": {**{f"k{n}": small for n in range(MAX_KEYS + 1)}}, "required": ["k1"]}
    text, writer = schema_to_lark({"type": "object", "properties": {"small": small, "large": large}}, ANY)
    assert writer.many_keys == ["#/properties/large"]
    ours, declared = Compiled(text), Compiled(schema_to_lark({"type": "array", "items": large})[0])
    one = '{"b": {"y": 2, "x": 1}, "a": 1}'
    for keys, right in (("k0 k1 k10", True), ("k1 k10", True), ("k10 k1", False), ("k0 k2", False)):
        members = ", ".join(f'"{key}": {{"a": 1}}' for key in keys.split())
        assert declared.accepts(f"[{{{members}}}]") == right
        turned = members.replace('{"a": 1}', one)
        assert ours.accepts(f'{{"large": {{{turned}}}, "small": {one}}}') == right, turned
        assert ours.accepts(f'{{"small": {one}, "large": {{{members}}}}}') == right


@pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder", "pythonic", "glm45"])
def test_places_of_large_objects_are_told(protocol: str, tmp_path: Path) -> None:
    from toolc.compiler import Options, compile_tools
    from toolc.runtime import Bundle

    bad = {"type": "object", "properties": {"in": _large("properties"), "of": {"type": "string", "pattern": r"(a*)\1"}}}
    schemas = [
        {"type": "object", "properties": {"in": {"type": "object", "properties": {"a": {}, "b": {}}}}},
        bad,
        _large("required"),
        {"type": "object", "properties": {"deep": {"type": "array", "items": _large("properties")}}},
        {"type": "object", "properties": {"it": {"$ref": "#/$defs/l"}, "too": {"$ref": "#/$defs/l"}},
         "$defs": {"l": _large("required")}},
    ]  # fmt: skip
    tools = [{"name": f"t{n}", "input_schema": schema} for n, schema in enumerate(schemas)]
    options = Options(key_order="any", protocol=protocol, skip=True, jobs=1)
    made = compile_tools(tools, "builtin", options=options)
    assert [one["tool"] for one in made.report["skipped"]] == ["t1"]
    assert made.report["many_keys"] == [
        "spec#/2/input_schema",
        "spec#/3/input_schema/properties/deep/items",
        "spec#/4/input_schema/$defs/l",
    ]
    made.write(tmp_path / "b.toolc")
    opened = Bundle.open(tmp_path / "b.toolc", made.bundle.vocab)
    assert opened.meta["many_keys"] == made.report["many_keys"] and "many-keys" in opened.meta["restrictions"]
    plain = compile_tools(tools, "builtin", options=Options(protocol=protocol, skip=True, jobs=1))
    assert plain.report["many_keys"] == [] and "many_keys" not in plain.bundle.meta


def test_a_tool_whose_optional_keys_come_first(shared: Path) -> None:
    """The parameters of this tool are too many for any order: it compiles, says so, and takes them as declared."""
    from toolc.compiler import Options, compile_spec, read_spec

    folder = shared / "cases" / "reported" / "46c-optional-first-natural-order"
    spec = read_spec(json.loads((folder / "spec.json").read_text()))
    made = compile_spec(spec, "builtin", options=Options(key_order="any", protocol="hermes", jobs=1))
    assert made.report["many_keys"] == ["spec#/0/function/parameters"]
    plain = compile_spec(spec, "builtin", options=Options(protocol="hermes", jobs=1))
    one, other = made.bundle.tables.arrays(), plain.bundle.tables.arrays()
    assert all((one[name] == array).all() for name, array in other.items())


def test_another_word_is_refused() -> None:
    with pytest.raises(SchemaError, match="declared or any"):
        schema_to_lark({}, SchemaOptions(key_order="sorted"))
