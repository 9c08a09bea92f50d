"""``key_order="any"``: every order of the keys of a valid value is accepted, and no text of another.

Objects of more than a few keys are kept in registers, which a grammar does not show: these tests read texts under a
bundle. The others read them under the grammar whose automata have a state for each subset of keys.
"""

from __future__ import annotations

import itertools
import json
import random
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

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

ANY = SchemaOptions(key_order="any", whitespace="flexible", registers=False)
"""By automata alone, which are a grammar as any other."""
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
        lark, writer = schema_to_lark(schema, ANY)
    except (UnsupportedError, BudgetError, UnsatisfiableError):
        return
    except SchemaError as error:
        assert "refers to itself" in str(error)
        return
    ours, judge = Recogniser(lark), Judge(schema)
    declared = "many-keys" in writer.restrictions  # some object keeps the declared order, and is listed
    for value in [one for instance in instances for one in near(instance, instances[0])[:6]]:
        try:
            valid = judge.accepts(spell(value, LAYOUTS[0]))
        except RecursionError:  # references without end below unevaluated keywords
            continue
        read = [ours.accepts(spell(order, LAYOUTS[0])) for order in orders(value)[:200]]
        some = valid and declared and (any(read) or len(read) == 200)
        assert set(read) == {valid} or some, (schema, value, valid, read)
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


@pytest.mark.parametrize(
    ("protocol", "braced"), [("hermes", True), ("qwen3_coder", False), ("pythonic", False), ("glm45", False)]
)
def test_places_of_large_objects_are_told(protocol: str, braced: bool, tmp_path: Path) -> None:
    """Those that no register keeps: arguments that stand in no braces, constants, counts, one of several objects."""
    from toolc.compiler import Options, compile_tools
    from toolc.runtime import Bundle

    bad = {"type": "object", "properties": {"in": _large("properties"), "of": {"type": "string", "pattern": r"(a*)\1"}}}
    schemas = [
        {"type": "object", "properties": {"in": {"type": "object", "properties": {"a": {}, "b": {}}}}},
        bad,
        {**_large("required"), "required": ["k2"]},
        {"type": "object", "properties": {"deep": {"type": "array", "items": _large("properties")}}},
        {"type": "object", "properties": {"it": {"$ref": "#/$defs/l"}, "too": {"$ref": "#/$defs/l"}},
         "$defs": {"l": _large("required")}},
        {"type": "object", "properties": {"n": _large("counts"), "c": {"type": "array", "items": _large("const")}}},
        {"type": "object", "properties": {"two": {"anyOf": [
            _large("required"), {"type": "object", "required": ["z"]}]}}},
    ]  # fmt: skip
    tools = [{"name": f"t{n}", "input_schema": schema} for n, schema in enumerate(schemas)]
    options = Options(key_order="any", protocol=protocol, skip=True, jobs=1)
    made = compile_tools(tools, "builtin", options=options)
    assert [one["tool"] for one in made.report["skipped"]] == ["t1"]
    assert made.bundle.tables.has_registers
    assert made.report["many_keys"] == [
        *([] if braced else ["spec#/2/input_schema"]),
        "spec#/5/input_schema/properties/c/items",
        "spec#/5/input_schema/properties/n",
        "spec#/6/input_schema/properties/two",
    ]
    made.write(tmp_path / "b.toolc")
    opened = Bundle.open(tmp_path / "b.toolc", made.bundle.vocab)
    assert opened.meta["many_keys"] == made.report["many_keys"] and "many-keys" in opened.meta["restrictions"]
    plain = compile_tools(tools, "builtin", options=Options(protocol=protocol, skip=True, jobs=1))
    assert plain.report["many_keys"] == [] and "many_keys" not in plain.bundle.meta


def test_a_tool_whose_optional_keys_come_first(shared: Path) -> None:
    """The parameters of this tool are many: they may come in any order."""
    from toolc.compiler import Options, compile_spec, read_spec

    folder = shared / "cases" / "reported" / "46c-optional-first-natural-order"
    spec = read_spec(json.loads((folder / "spec.json").read_text()))
    made = compile_spec(spec, "builtin", options=Options(key_order="any", protocol="hermes", jobs=1))
    assert made.report["many_keys"] == [] and made.bundle.tables.has_registers


# ---------------------------------------------------------------- registers


def stepped(bundle: Any, text: str) -> bool:
    """Whether a text is one of a bundle's, byte by byte."""
    from toolc.runtime.reference import Sequence

    here = Sequence.start(bundle)
    for byte in text.encode():
        op = here.op(byte)
        if not op:
            return False
        here.step(op, here.mode)
    return bool(here.may_end)


class Stepped:
    """Matches texts against a schema by the tables of its bundle, byte by byte."""

    def __init__(self, schema: Any, tokenizer: Any = "builtin", **options: Any) -> None:
        from toolc.compiler import Options, compile_schema

        how = Options(key_order="any", whitespace="flexible", jobs=1, **options)
        self.made = compile_schema(schema, tokenizer, options=how)

    def accepts(self, text: str) -> bool:
        """Whether it is a whole text of the bundle."""
        return stepped(self.made.bundle, text)


def _leaf(n: int) -> Any:
    return [{"type": "integer"}, {"type": "string"}, {"enum": ["a", "b", None]}, {"type": "boolean"}][n % 4]


def _example(schema: Any, draw: st.DrawFn) -> Any:
    """A valid value of the schemas below."""
    if "anyOf" in schema:
        return _example(draw(st.sampled_from(schema["anyOf"])), draw)
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema["type"] == "array":
        return [_example(schema["items"], draw) for _ in range(draw(st.integers(0, 2)))]
    if schema["type"] != "object":
        simple = {
            "integer": st.integers(-9, 9),
            "string": st.sampled_from(["", "x", '"', "k1"]),
            "boolean": st.booleans(),
        }
        return draw(simple[schema["type"]])
    names = list(schema["properties"])
    chosen = {*schema["required"], *draw(st.lists(st.sampled_from(names), max_size=6))}
    members = {name: _example(schema["properties"][name], draw) for name in names if name in chosen}
    if schema["additionalProperties"] is not False and draw(st.booleans()):
        members |= {"more": 1, "k": 2}
    return dict(draw(st.permutations(list(members.items()))))


@st.composite
def large_objects(draw: st.DrawFn, depth: int = 2) -> Any:
    """Objects of 5 to 40 keys, in one another and in arrays."""
    count = draw(st.integers(5, 40 if depth < 2 else 12))
    properties: dict[str, Any] = {f"k{n}": _leaf(n) for n in range(count)}
    if depth:
        inner = draw(large_objects(depth - 1))
        at = draw(st.integers(0, count - 1))
        properties[f"k{at}"] = draw(
            st.sampled_from([inner, {"type": "array", "items": inner}, {"anyOf": [{"enum": [0]}, inner]}])
        )
    return {
        "type": "object",
        "properties": properties,
        "required": draw(st.lists(st.sampled_from(list(properties)), unique=True, max_size=5)),
        "additionalProperties": draw(st.sampled_from([False, {"type": "integer"}])),
    }


def _broken(value: Any, schema: Any) -> list[Any]:
    """The value with one key too many, or too few, in the outermost object."""
    less = [{key: item for key, item in value.items() if key != gone} for gone in schema["required"]]
    more = [{**value, "unknown": 1}, {"unknown": 1, **value}, {**value, "unknown": "1"}]
    return [*less[:2], *more]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(large_objects(), st.data())
def test_documents_in_any_order(schema: Any, data: st.DataObject) -> None:
    ours, judge = Stepped(schema), Judge(schema)
    assert ours.made.bundle.tables.has_registers and not ours.made.report["many_keys"]
    assert "key-order" not in ours.made.bundle.meta["restrictions"]
    for _ in range(8):
        value = _example(schema, data.draw)
        assert ours.accepts(json.dumps(value)) and judge.accepts(json.dumps(value))
        for other in _broken(value, schema):
            text = json.dumps(other)
            assert ours.accepts(text) == judge.accepts(text), text
        for name in (name for name in value if name in schema["properties"]):
            twice = spell(value, LAYOUTS[0])[:-1] + f', "{name}": {json.dumps(value[name])}}}'
            assert not ours.accepts(twice), twice
            break


def test_small_objects_have_registers_once_their_subsets_are_too_many() -> None:
    """A schema of many small objects keeps any order in all of them."""
    three = {"type": "object", "properties": {f"k{n}": {"enum": [n]} for n in range(3)}, "additionalProperties": False}
    schemas = [{**three, "properties": {**three["properties"], f"o{n}": {"type": "null"}}} for n in range(40)]
    ours = Stepped({"type": "array", "prefixItems": schemas, "minItems": 40, "items": False})
    assert ours.made.bundle.tables.has_registers and not ours.made.report["many_keys"]
    for keys in (("k0", "k1", "k2", "o"), ("o", "k2", "k0", "k1"), ("k2", "o")):
        value = [{(f"o{n}" if k == "o" else k): (None if k == "o" else int(k[1])) for k in keys} for n in range(40)]
        text = json.dumps(value)
        assert ours.accepts(text)
        assert not ours.accepts(text[:-2] + ', "k2": 2}]'), "a key comes twice"


@cache
def _small_vocab() -> Any:
    """All bytes, and pieces that read from one member to the next."""
    from toolc.compiler.lift.vocab import build_vocab
    from toolc.compiler.vocab.table import TokenTable

    pieces = [
        '{"',
        '"}',
        '": ',
        '", "',
        '"a"',
        'a": ',
        '1, "b": ',
        '"a": 1, "',
        '}, "',
        "}}",
        '"]}',
        '": {"',
        '":""}',
        '"b"',
    ]
    tokens = (*(bytes([n]) for n in range(256)), *(one.encode() for one in pieces), b"")
    end = len(tokens) - 1
    return build_vocab(TokenTable(tokens, {"<end>": end}, (end,), source="tests", end_of_turn_origin="tests"))


@settings(max_examples=EXAMPLES // 3, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, schemas, st.lists(values, min_size=4, max_size=4), st.integers(0, 1 << 20))
def test_random_schemas_whose_smallest_objects_have_registers(
    schema: Any, x: Any, instances: list[Any], seed: int
) -> None:
    """Objects beside all other keywords: where two share a frame, there is no register, and the texts are the same."""
    from toolc.compiler.errors import ToolcError
    from toolc.runtime.reference import Sequence

    if isinstance(schema, dict):
        schema = {"$schema": DRAFTS[2020], **schema, "$defs": {"x": x, "y": x}}
    with patch("toolc.compiler.schema.object_rules.REGISTER_KEYS", 0):
        try:
            ours = Stepped(schema, _small_vocab())
        except ToolcError:  # what cannot be compiled is told by test_random_schemas
            return
    judge, declared = Judge(schema), bool(ours.made.report["many_keys"])
    for value in [one for instance in instances for one in near(instance, instances[0])[:6]]:
        try:
            valid = judge.accepts(spell(value, LAYOUTS[0]))
        except RecursionError:  # references without end below unevaluated keywords
            continue
        some = orders(value)[:6]
        for order in some:
            assert ours.accepts(spell(order, LAYOUTS[0])) == valid or (declared and valid), (schema, order, valid)
        for order in some[:2]:
            if isinstance(order, dict) and order and ours.accepts(text := spell(order, LAYOUTS[0], twice=True)):
                assert judge.accepts(text), (schema, text)
    here, pick = Sequence.start(ours.made.bundle), random.Random(seed)
    for _ in range(30):
        if here.state == 1 or len(here.stack) > 6:
            break
        mask = here.mask()
        assert mask and mask == here.brute_mask(), (schema, here.state, here.register)
        here.advance(pick.choice(sorted(mask)))


@pytest.mark.parametrize("seed", range(3))
def test_decodes_are_valid(seed: int) -> None:
    """Random texts to their ends, by the masks alone."""
    from toolc.runtime.reference import Sequence

    inner = {"type": "object", "properties": {f"k{n}": _leaf(n) for n in range(7)}, "required": ["k2", "k5"]}
    inner["additionalProperties"] = False
    schema = {
        "type": "object",
        "properties": {
            **{f"k{n}": _leaf(n) for n in range(14)},
            "in": inner,
            "list": {"type": "array", "items": inner},
        },
        "required": ["k0", "k13", "in"],
        "additionalProperties": False,
    }
    ours, judge, pick, ended = Stepped(schema, _small_vocab()), Judge(schema), random.Random(seed), 0
    vocab, first = ours.made.bundle.vocab, set()
    weight = [4.0 if set(vocab.token(n)) <= set(b'"}]:') else 0.1 for n in range(vocab.size)]
    for _ in range(12):
        here, text = Sequence.start(ours.made.bundle), b""
        for step in range(600):
            live = sorted(here.mask())
            shorter = [weight[token] ** (step / 25) for token in live]
            token = pick.choices(live, shorter)[0]
            assert here.advance(token)
            text += vocab.token(token)
            if here.state == 1:
                ended += 1
                assert judge.accepts(text.decode(errors="replace")), text
                first.add(text[2:6])
                break
    assert ended >= 8 and len(first) > 3


SEVEN = {"type": "object", "properties": {f"k{n}": {"type": "null"} for n in range(7)}, "required": ["k3"]}
TWELVE = {"type": "object", "properties": {f"k{n}": {"type": "null"} for n in range(12)}, "required": ["k1", "k11"]}


OTHER = {**TWELVE, "properties": {**TWELVE["properties"], "k2": {"type": ["null", "integer"]}}}


def test_every_order_of_every_subset_of_a_register() -> None:
    schema = {**SEVEN, "additionalProperties": {"type": "integer"}}
    ours, judge = Stepped(schema), Judge(schema)
    assert ours.made.bundle.tables.has_registers
    members = [*(f'"k{n}": null' for n in (0, 1, 3, 4)), '"k1": 2', '"z": 1', '"k3": null ', '"k": 3', '"k33":0']
    accepted = 0
    for count in range(4):
        for chosen in itertools.permutations(members, count):
            one = "{" + ",".join(chosen) + "}"
            assert ours.accepts(one) == judge.accepts(one), one
            accepted += ours.accepts(one)
    assert accepted > 60


@pytest.mark.parametrize(
    "clash",
    [
        {"anyOf": [TWELVE, {**OTHER, "required": ["k0"]}]},
        {"anyOf": [{"type": "array", "items": TWELVE}, {"type": "array", "items": {**TWELVE, "required": ["k0"]}}]},
        {**TWELVE, "minProperties": 4},
        {**TWELVE, "maxProperties": 4},
        {"const": {f"k{n}": None for n in range(12)}},
    ],
    ids=["two objects", "two objects in arrays", "minProperties", "maxProperties", "const"],
)
def test_what_no_register_keeps_stands_in_declared_order(clash: Any) -> None:
    schema = {"type": "object", "properties": {"clash": clash, "seven": SEVEN}, "required": ["clash"]}
    ours, judge = Stepped(schema), Judge(schema)
    report = ours.made.report["many_keys"]
    assert report and all(place.startswith("schema#/properties/clash") for place in report)
    assert "many-keys" in ours.made.bundle.meta["restrictions"]
    seven = '"seven": {"k4": null, "k3": null}'  # any order, by an automaton or a register
    for keys in ([*range(12)], [0, 1, 2, 3, 11], [1, 0, 2, 3, 11], [0, 1, 2, 11], [1, 2, 3, 4, 5, 11], [0]):
        one = ", ".join(f'"k{n}": null' for n in keys)
        for inner in (f"{{{one}}}", f"[{{{one}}}]"):
            for text in (f'{{"clash": {inner}, {seven}}}', f'{{{seven}, "clash": {inner}}}'):
                declared = keys == sorted(keys)
                assert ours.accepts(text) == (declared and judge.accepts(text)), text


def test_deep_inside_of_itself_an_object_needs_its_required_members() -> None:
    """Beyond `soft_depth` it has only its least texts, which are without arrays."""
    keys: dict[str, Any] = {f"k{n}": {"type": "integer"} for n in range(8)}
    keys |= {"tags": {"type": "array", "items": {"$ref": "#"}}, "self": {"$ref": "#"}}
    schema = {"type": "object", "properties": keys, "required": ["tags"], "additionalProperties": False}
    ours, judge = Stepped(schema, soft_depth=1), Judge(schema)
    for text in ('{"k1": 1}', '{"tags": []}'):
        for _ in range(4):
            assert judge.accepts(text) or not ours.accepts(text), text
            text = f'{{"tags": [], "self": {text}}}'


def test_a_token_that_reads_a_key_of_what_it_opens_leaves_no_register() -> None:
    from toolc.compiler.lift.vocab import build_vocab
    from toolc.compiler.vocab.table import TokenTable

    tokens = tuple(bytes([n]) for n in range(256))
    how: Any = {"special": {"<end>": 257}, "end_of_turn": (257,), "source": "tests", "end_of_turn_origin": "tests"}
    holds, holds_none = (build_vocab(TokenTable(tokens=(*tokens, one, b""), **how)) for one in (b'{"k1":', b'{"k1'))
    for schema, places in ((TWELVE, ["schema#"]), (SEVEN, [])):
        ours = Stepped(schema, holds)
        assert not ours.made.bundle.tables.has_registers and ours.made.report["many_keys"] == places
        assert ours.accepts('{"k4": null, "k3": null}') == (schema is SEVEN)
        assert Stepped(schema, holds_none).made.bundle.tables.has_registers


def test_another_word_is_refused() -> None:
    with pytest.raises(SchemaError, match="declared or any"):
        schema_to_lark({}, SchemaOptions(key_order="sorted"))
