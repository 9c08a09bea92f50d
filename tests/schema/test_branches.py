"""Unions are multiplied out only as far as their alternatives differ, and patterns only as far as they overlap."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolc.compiler import compile_schema
from toolc.compiler.commands.check import check
from toolc.compiler.errors import BudgetError, UnsupportedError
from toolc.compiler.regex import may_meet, parse_regex
from toolc.compiler.schema import branches, schema_to_lark
from toolc.compiler.schema.atoms import Literal, both, literal
from toolc.compiler.schema.normalise import Normaliser
from toolc.compiler.schema.references import Document
from toolc.compiler.schema.witnesses import Witnesses
from toolc.compiler.schema.writer import LarkWriter, SchemaOptions

from .judge import Judge
from .recogniser import Compiled

O: dict[str, Any] = {"type": "object"}
TEXT = {"type": "string"}
ABC = "abcdefghijkl"
NEW = "https://json-schema.org/draft/2020-12/schema"
KINDS = ("string", "number", "boolean", "null", "array", "object")
FLEXIBLE = SchemaOptions(whitespace="flexible")


def tagged(tag: str, *names: str, required: bool = True) -> dict[str, Any]:
    """A closed object told apart by its member "type"."""
    members = {"type": {"enum": [tag]}, **{name: {"type": "integer", "minimum": len(tag)} for name in names}}
    return {**O, "properties": members, "additionalProperties": False, **({"required": ["type"]} if required else {})}


TAGS = [tagged(tag, *(f"{tag}{n}" for n in range(3)), "all") for tag in "abcd"]

CASES: list[tuple[str, Any, int, list[str], list[str]]] = [
    ("tags required beside the union",
     {**O, "required": ["type"], "oneOf": [tagged(tag, "x", "y", "z", required=False) for tag in "abcdefghij"]}, 10,
     ['{"type":"a"}', '{"type":"j","x":1}'], ['{"x":1}', '{"type":"k"}', '{"type":"a","x":"a"}']),
    ("tags, none of them", {**O, "not": {"oneOf": TAGS}}, 32,
     ["{}", '{"type":"k"}', '{"type":"a","b0":1}', '{"type":"a","a0":0}', '{"type":1,"a0":1}', '{"a0":1}'],
     ['{"type":"a"}', '{"type":"d","d0":1,"d2":1,"all":2}', "1"]),
    ("tags that the other branch has, too", {"items": {"oneOf": TAGS}, "not": {"items": {"oneOf": TAGS[:3]}},
                                             "type": "array"}, 1,
     ['[{"type":"d"}]', '[{"type":"a","a1":1},{"type":"d","d0":1}]'], ["[]", '[{"type":"a"}]', '[{"type":"e"}]']),
    ("a union that is granted", {"allOf": [{"required": ["a"]}, *({"anyOf": [{"required": ["a"]}, {"required": [name]}]}
                                                                  for name in "bcdefghijklmnop")], **O}, 1,
     ['{"a":1}', '{"a":1,"b":1}'], ['{"b":1}']),
    ("open objects that exclude each other",
     {"oneOf": [{**O, "properties": {name: TEXT, "n": {"type": "integer"}}, "required": [name]} for name in ABC]}, 12,
     ['{"a":"x"}', '{"l":"x","a":1}', '{"c":"","n":1,"z":[]}', '{"b":"","n":0,"a":1,"c":2}'],
     ["{}", '{"a":1}', '{"a":"x","b":"y"}', '{"n":1}', '{"a":"","n":""}', "1"]),
    ("conditions on one member", {**O, "allOf": [{"if": {"properties": {"k": {"const": tag}}, "required": ["k"]},
                                                  "then": {"required": [tag]}} for tag in ABC]}, 13,
     ["{}", '{"k":0}', '{"k":"b","b":0}', '{"a":1}'], ['{"k":"b"}', '{"k":"a","b":0}']),
    ("patterns, one of each", {**TEXT, "allOf": [{"anyOf": [{"pattern": p}, {"pattern": q}, {"pattern": r}]}
                                                 for p, q, r in itertools.permutations(("^a", "b", "c$"))]}, 1,
     ['"a"', '"xb"', '"xc"'], ['"x"', '"xa"', '"cx"']),
    ("arrays that are none of many", {"type": "array", "not": {"enum": [[n, n + 1] for n in range(40)]}}, 122,
     ["[]", "[3]", "[3,3]", "[3,4,5]", "[40,41]", '["a"]', "[[3,4]]"], ["[3,4]", "[39,40]", "[0,1]"]),
    ("numbers that are none of many", {"type": "number", "not": {"anyOf": [{"const": n + 0.5} for n in range(150)]}},
     151,
     ["1", "0.25", "149.4", "150.5", "-0.5"], ["0.5", "149.5"]),
    ("bounds", {"type": "integer", "minimum": 5, "allOf": [{"anyOf": [{"minimum": n}, {"multipleOf": 7}]}
                                                           for n in (1, 2, 3, 4, 5)]}, 1, ["5", "6"], ["4", "0"]),
    ("closed objects of which each may have a key of its own",
     {"oneOf": [{**O, "properties": {"n": TEXT, name: TEXT}, "required": ["n"], "additionalProperties": False}
                for name in ABC]}, 12,
     ['{"n":"","a":""}', '{"n":"","l":""}'], ['{"n":""}', '{"a":""}', '{"n":"","a":"","b":""}', '{"n":"","m":""}']),
    ("closed objects with a key of another value each",
     {"oneOf": [{**O, "properties": {"n": {"minimum": n, "maximum": n + 1, "type": "integer"}},
                 "additionalProperties": False} for n in range(0, 12, 2)]}, 6,
     ['{"n":1}', '{"n":10}'], ["{}", '{"n":12}', '{"n":"a"}']),
    ("arrays of one type each",
     {"oneOf": [{"type": "array", "items": {"type": kind}} for kind in KINDS]}, 6,
     ["[1]", '["",""]', "[null]", "[[],[[]]]"], ["[]", '[1,""]', "[null,0]"]),
    ("maps of one type each",
     {"oneOf": [{**O, "additionalProperties": {"type": kind}} for kind in KINDS]}, 6,
     ['{"a":1}', '{"a":"","b":""}', '{"":null}'], ["{}", '{"a":1,"b":""}', '{"a":null,"b":0}']),
    ("conditions beside an unevaluatedProperties that forbids nothing",
     {**O, "$schema": NEW, "allOf": [{"if": {"properties": {"k": {"const": tag}}, "required": ["k"]},
                                      "then": {"properties": {tag: TEXT}}} for tag in ABC],
      "unevaluatedProperties": True}, 13,
     ["{}", '{"k":"b","b":""}', '{"a":1}'], ['{"k":"b","b":0}']),
    ("alternatives that evaluate no other members than their schema",
     {**O, "$schema": NEW, "properties": {name: {} for name in ABC}, "unevaluatedProperties": False,
      "anyOf": [{"properties": {name: {"type": "integer"}}, "required": [name]} for name in ABC]}, 12,
     ['{"a":1}', '{"a":"","l":1}'], ["{}", '{"a":""}', '{"a":1,"m":1}']),
    ("patterns of keys that do not overlap",
     {**O, "patternProperties": {f"^{tag}:(en|nl)$": {"type": "integer", "minimum": n}
                                 for n, tag in enumerate("abcdefghij")},
      "additionalProperties": {"type": "null"}}, 1,
     ['{"a:en":0,"j:nl":9,"k:en":null}', '{"a:enx":null}'], ['{"j:en":8}', '{"a:en":null}', '{"k:en":1}']),
]  # fmt: skip


@pytest.mark.parametrize("name, schema, most, accepted, refused", CASES, ids=[row[0] for row in CASES])
def test_few_alternatives(name: str, schema: Any, most: int, accepted: list[str], refused: list[str]) -> None:
    writer = LarkWriter(SchemaOptions())
    root, _ = writer._root(schema, None, "", "")
    assert root is not None
    (shapes,) = writer.normaliser.shapes(root).values()
    assert len(shapes) <= most
    ours = Compiled(schema_to_lark(schema, FLEXIBLE)[0])
    assert [text for text in accepted if not ours.accepts(text)] == []
    assert [text for text in refused if ours.accepts(text)] == []


def ladder(rungs: int) -> dict[str, Any]:
    """A schema that applies another one to the same value in 2^rungs ways."""
    below = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/{to}{n + 1}"} for to in "de"]} for n in range(rungs)}
    beside = {f"e{n}": {"$ref": f"#/$defs/d{n}", "properties": {f"p{n}": {}}} for n in range(1, rungs + 1)}
    last = {f"d{rungs}": {"patternProperties": {"^q": {"type": "integer"}}}}
    return {**O, "$schema": NEW, "$ref": "#/$defs/d0", "unevaluatedProperties": False,
            "$defs": {**below, **beside, **last}}  # fmt: skip


def test_what_applies_in_many_ways_is_looked_at_once() -> None:
    ours = Compiled(schema_to_lark(ladder(40), FLEXIBLE)[0])
    assert [ours.accepts(text) for text in ('{"p40":2,"p1":1,"q":3}', '{"q":""}', '{"x":1}')] == [True, False, False]
    with pytest.raises(BudgetError, match="too deep beside unevaluatedProperties") as caught:
        schema_to_lark(ladder(400))
    assert caught.value.place == "#/unevaluatedProperties"


def test_an_alternative_keeps_its_order_of_keys() -> None:
    schema = {**O, "required": ["a"], "anyOf": [{"required": ["a"]}, {"properties": {"b": {}, "a": {}}}]}
    assert Compiled(schema_to_lark(schema, FLEXIBLE)[0]).accepts('{"b":1,"a":1}')


def either(n: int, *more: Any) -> dict[str, Any]:
    """An object of two kinds, which only those around it say that it needs to name."""
    outer = {"properties": {"kind": {"enum": [f"out{n}"]}, f"r{n}": TEXT}}
    return {"properties": {f"p{n}": TEXT}, "oneOf": [{"properties": {"kind": {"enum": [f"in{n}"]}}}, outer, *more]}


@pytest.mark.parametrize(("needed", "most"), [(True, 100), (False, 130)])
def test_unions_that_multiply_are_split_by_constants(needed: bool, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [either(0), either(1), either(2, {"properties": {"r2": TEXT}}), either(3, {"properties": {"r3": TEXT}})]
    schema = {**O, "properties": {"kind": TEXT}, "required": ["kind"] * needed, "oneOf": kinds}
    monkeypatch.setattr(branches, "MAX_BRANCHES", most)
    split = LarkWriter(FLEXIBLE)
    root, _ = split._root(schema, None, "", "")
    assert root is not None and len(split.normaliser.shapes(root)["object"]) <= most
    ours, judge = Compiled(schema_to_lark(schema, FLEXIBLE)[0]), Judge(schema)
    names = ("kind", "p0", "r1", "r2", "r3")
    for values in itertools.product((None, "in1", "out1", "in2", "out3", "else"), *[(None, "", 1)] * (len(names) - 1)):
        value = {name: one for name, one in zip(names, values, strict=True) if one is not None}
        orders = (dict(some) for some in itertools.permutations(value.items()))
        assert any(ours.accepts(json.dumps(one)) for one in orders) == judge.accepts(json.dumps(value)), value
    monkeypatch.setattr(branches, "MAX_SPLIT", 1)
    with pytest.raises(BudgetError, match=f"more than {most} alternatives"):
        schema_to_lark(schema)


def test_six_conditions_on_some_members() -> None:
    """More are refused, of members and of items."""
    some = [{"not": {"additionalProperties": {"const": n}}} for n in range(7)]
    ours, judge = Compiled(schema_to_lark({**O, "allOf": some[:5]}, FLEXIBLE)[0]), Judge({**O, "allOf": some[:5]})
    for values in ([], [0], [5], [0, 1], [0, 0], [4, 4], ["x"]):
        text = json.dumps({f"k{n}": value for n, value in enumerate(values)})
        assert ours.accepts(text) == judge.accepts(text), text
    named = {name: {"type": "integer"} for name in "abcdef"}
    pairs = [
        {"anyOf": [{"required": [one]}, {"required": [other]}]} for one, other in zip("abcdea", "bcdeff", strict=True)
    ]
    schema = {
        **O,
        "properties": named,
        "additionalProperties": False,
        "not": {"anyOf": [{"not": one} for one in pairs]},
    }
    ours, judge = Compiled(schema_to_lark(schema, FLEXIBLE)[0]), Judge(schema)
    for names in itertools.chain.from_iterable(itertools.combinations("abcdef", size) for size in range(7)):
        text = json.dumps(dict.fromkeys(names, 1))
        assert ours.accepts(text) == judge.accepts(text), text
    with pytest.raises(UnsupportedError, match="more than 6 conditions on some members"):
        schema_to_lark({**O, "allOf": some})
    with pytest.raises(UnsupportedError, match="more than 4 conditions on some items"):
        schema_to_lark({"type": "array", "allOf": [{"contains": {"const": n}} for n in range(5)]})


REGEXES = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "c", ""]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "?", "{2}", "{0,2}", "{1,}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=6,
)
SHORT = ["".join(some) for size in range(7) for some in itertools.product("abc", repeat=size)]


@settings(max_examples=60, deadline=None)
@given(REGEXES, REGEXES)
def test_may_meet(one: str, other: str) -> None:
    both = any(re.fullmatch(one, text) and re.fullmatch(other, text) for text in SHORT)
    met = may_meet(parse_regex(one, "", "ecma"), parse_regex(other, "", "ecma"))
    assert met or not both
    if met and not both:  # then only by a longer text
        longest = re.compile(f"(?:{one})"), re.compile(f"(?:{other})")
        texts = ("".join(some) for size in (7, 8, 9) for some in itertools.product("abc", repeat=size))
        assert any(all(regex.fullmatch(text) for regex in longest) for text in texts)


def test_alternatives_that_disagree_again_and_again(shared: Path) -> None:
    """Each attempt calls a few more strings; after 64 of them the schema was refused, and nothing said why."""
    folder = shared / "cases" / "reported" / "81-discord-openapi"
    bundle = compile_schema(json.loads((folder / "spec.json").read_text()), "builtin").bundle
    for name in ("valid", "invalid"):
        for text in (folder / f"{name}.txt").read_text().splitlines():
            assert check(bundle, text.encode())["accepted"] == (name == "valid"), text


def test_what_a_listed_tag_rules_out_is_left_out() -> None:
    """Branches that a tag tells apart, which something beside them requires: each said again how all others fail."""
    base = {"required": ["type"], "properties": {"type": {"type": "string"}}}
    branches = [
        {
            "properties": {f"p{n}{letter}": {"type": "string"} for letter in "abc"},
            "oneOf": [
                {"properties": {"type": {"enum": [f"in{n}"]}, "way": {"enum": ["in"]}}},
                {"properties": {"type": {"enum": [f"out{n}"]}}},
            ],
        }
        for n in range(12)
    ]
    schema = {"type": "object", "allOf": [base], "oneOf": branches}
    ours, judge = Compiled(schema_to_lark(schema)[0]), Judge(schema)
    for value in (
        {"type": "in3"},
        {"type": "in3", "way": "in"},
        {"type": "in3", "way": "out"},
        {"type": "out11", "p3a": 1},
        {"type": "out3", "p3a": 1},
        {"type": "out3", "p3a": "x", "other": []},
        {"type": "x"},
        {},
    ):
        assert ours.accepts(json.dumps(value)) == judge.holds(value), value


def test_an_enum_of_scalars_declares_no_order() -> None:
    """So that alternatives that it makes, and others hold, are left out: 82,000 characters; there were 172,000."""
    base = {"required": ["type"], "properties": {"type": {"type": "string"}}}
    branches = [
        {
            "properties": {f"p{n}{letter}": {"type": "string"} for letter in "abc"},
            "oneOf": [
                {"properties": {"type": {"enum": [f"in{n}"]}, "way": {"enum": ["in"]}}},
                {"properties": {"type": {"enum": [f"out{n}"]}}},
            ],
        }
        for n in range(4)
    ]
    text, _ = schema_to_lark({"type": "object", "allOf": [base], "oneOf": branches})
    assert len(text) < 120_000


def _generators(count: int) -> dict[str, Any]:
    """Alternatives that each rule out what the others say of one member: of that, any subset of the complements."""
    inside = [
        {
            "properties": {
                "generator": {"enum": [f"g{n}"]},
                "parameters": {"properties": {f"p{n}": TEXT, "source": TEXT}, "required": ["source"]},
            }
        }
        for n in range(count)
    ]
    bound = {"required": ["binding"], "properties": {"type": {"enum": ["bind"]}, "binding": TEXT}}
    made = {"required": ["generator"], "properties": {"type": {"enum": ["generated"]}}, "oneOf": inside}
    return {**O, "required": ["type"], "properties": {"type": {"enum": ["bind", "generated"]}}, "oneOf": [bound, made]}


def test_a_value_that_is_known_shows_that_many_conjs_are_not_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand subsets of conditions on one member: 1,652 of them are taken apart; there were 17,905."""
    asked: list[str] = []
    plainly = Normaliser._try_no_shape

    def counted(self: Normaliser, one: tuple[Literal, ...], kind: str) -> bool:
        asked.append(kind)
        return plainly(self, one, kind)

    monkeypatch.setattr(Normaliser, "_try_no_shape", counted)
    text, writer = schema_to_lark(_generators(9))
    assert len(asked) < 3_000 and not writer.lost()
    ours, judge = Compiled(text), Judge(_generators(9))
    for value in (
        {"type": "bind", "binding": ""},
        {"type": "generated", "generator": "g3", "parameters": {"source": ""}},
        {"type": "generated", "generator": "g3", "parameters": {"source": 1}},
        {"type": "generated", "generator": "g3", "parameters": {"p3": "", "source": "", "p4": 1}},
        {"type": "generated", "generator": "g3", "parameters": {"p3": 1, "source": "", "p4": 1}},
        {"type": "generated", "generator": "g9", "parameters": {}},
        {"type": "generated", "generator": "g3"},
    ):
        assert ours.accepts(json.dumps(value)) == judge.holds(value), value


def test_of_a_part_with_a_value_not_all_alternatives_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LarkWriter(SchemaOptions())
    writer.add(_generators(4))
    root = writer.root
    monkeypatch.setattr(Normaliser, "shapes", None)
    for kind, keys in (("bind", ["binding"]), ("generated", ["generator"])):
        said = {"properties": {"type": {"enum": [kind]}}, "required": keys}
        part = writer._reader.read(Document(said), "", said)
        assert writer.normaliser.satisfiable(both(root, literal(part)))


@pytest.mark.parametrize(
    ("schema", "met"),
    [
        ({"type": "object"}, True),
        ({"type": "array"}, True),
        ({"required": ["a"], "type": "object"}, True),
        ({"properties": {"a": {"type": "null"}}, "required": ["a"], "type": "object"}, False),
        ({"type": "string"}, False),
        ({"type": "array", "minItems": 1}, False),
        ({"not": {"type": "object"}}, True),
        ({"not": {"type": ["object", "array"]}}, False),
        ({"properties": {"a": {"pattern": r"(a*)\1b"}}, "type": "object"}, False),
        ({"type": "object", "not": {"properties": {"a": {"pattern": r"(a*)\1b"}}, "type": "object"}}, False),
    ],
)
def test_witnesses(schema: Any, met: bool) -> None:
    """What is not supported says neither that a value is good nor that it is not."""
    writer = LarkWriter(SchemaOptions())
    kept = Witnesses(writer.normaliser.parts)
    node = writer._reader.read(Document(schema), "", schema)
    one = literal(node)
    assert one and not kept.meet(one)
    for value in ({"a": "text", "b": 1}, {"a": "text", "b": 1}, []):
        kept.add(value)
    assert kept.meet(one) == met
    assert kept.meet(one, "array") <= met and not kept.meet(one, "string")
