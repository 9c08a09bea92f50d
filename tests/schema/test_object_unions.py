"""Unions of objects in any order: every order of the keys of a valid value is accepted, and no text of another.

The texts are read under a bundle, since a grammar does not show registers. Bounds and budgets of unions are tested in
tests/lift/test_member_ways.py.
"""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

from .judge import Judge
from .test_any_order import Stepped, stepped


def _kind(name: str, required: list[str], keys: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An object that says by a constant which it is."""
    return {"type": "object", "properties": {"kind": {"const": name}, **keys}, "required": ["kind", *required], **more}


INTEGER, CLOSED = {"type": "integer"}, {"additionalProperties": False}
UNIONS: dict[str, list[dict[str, Any]]] = {
    "closed": [
        _kind("a", ["x"], {"x": INTEGER, "y": INTEGER, "z": INTEGER}, **CLOSED),
        _kind("b", ["w"], {"y": INTEGER, "w": INTEGER}, **CLOSED),
        _kind("c", ["u", "v"], {"x": INTEGER, "u": INTEGER, "v": INTEGER}, **CLOSED),
    ],
    "open": [
        _kind("a", ["x"], {"x": INTEGER, "y": INTEGER}),
        _kind("b", [], {"y": {"type": "null"}, "w": INTEGER}, additionalProperties=INTEGER),
        _kind("c", ["u"], {"x": {"type": "string"}, "u": INTEGER}),
    ],
    "kinds of values": [
        {"type": "object", "properties": {"x": INTEGER, "y": INTEGER, "z": INTEGER}, "required": ["x"]},
        {"type": "object", "properties": {"x": {"type": "null"}, "w": INTEGER}, "required": ["x", "w"], **CLOSED},
    ],
    "patterns": [
        _kind("a", ["x"], {"x": INTEGER}, patternProperties={"^[vw]$": INTEGER}, **CLOSED),
        _kind("b", ["w"], {"w": {"type": ["integer", "null"]}, "z": {}}, **CLOSED),
    ],
    "one may be empty": [
        {"type": "object", "properties": {"x": INTEGER, "y": INTEGER}, **CLOSED},
        {"type": "object", "properties": {"z": INTEGER, "y": {"type": "null"}}, "required": ["z"], **CLOSED},
    ],
}


@pytest.mark.parametrize("whitespace", ["flexible", "pretty", "compact"])
@pytest.mark.parametrize("name", UNIONS)
def test_every_order_of_the_members_of_a_union(name: str, whitespace: str) -> None:
    from toolc.compiler import Options, compile_schema

    schema = {"anyOf": [{"type": "null"}, *UNIONS[name]]}
    made = compile_schema(schema, "builtin", options=Options(key_order="any", whitespace=whitespace, jobs=1))
    assert made.bundle.tables.has_registers and not made.report["many_keys"]
    judge, indent = Judge(schema), 2 if whitespace == "pretty" else None
    separators = (",", ":") if whitespace == "compact" else None
    values = {"kind": ["a", "b", "c"], **{key: [1, None] for key in "xywuz"}, "v": [2]}
    accepted = 0
    for count in range(4 if whitespace == "flexible" else 3):
        for keys in itertools.permutations(values, count):
            for some in itertools.product(*(values[key][: 1 + (key in "kindxyw")] for key in keys)):
                text = json.dumps(dict(zip(keys, some, strict=True)), indent=indent, separators=separators)
                valid = judge.accepts(text)
                assert stepped(made.bundle, text) == valid, text
                accepted += valid
    assert accepted >= 4
    for text in ('{"kind": "a", "x": 1, "x": 1}', '{"x": 1, "y": 1, "x": 1}'):
        assert not stepped(made.bundle, text)


@pytest.mark.parametrize(
    "more",
    [
        {"dependentRequired": {"k2": ["k3"]}},
        {"oneOf": [{"required": ["k2"]}, {"required": ["k3"]}]},
        {"if": {"properties": {"k2": {"const": 1}}}, "then": {"properties": {"k4": {"type": "null"}}}},
        {"anyOf": [{"properties": {"k2": {"const": 1}}, "required": ["k3"]}, {"required": ["k4"]}]},
        {"dependentSchemas": {"k2": {"properties": {"k3": {"const": 2}}, "required": ["k4"]}}},
    ],
    ids=["dependentRequired", "oneOf", "if", "anyOf", "dependentSchemas"],
)
@pytest.mark.parametrize("open_", [False, True])
def test_conditions_on_an_object_of_many_keys(more: Any, open_: bool) -> None:
    """They make it a union."""
    keys = {f"k{n}": {"enum": [1, 2, None]} for n in range(14)}
    schema = {"type": "object", "properties": keys, "required": ["k1"], "additionalProperties": open_, **more}
    ours, judge = Stepped(schema), Judge(schema)
    assert bool(ours.made.report["many_keys"]) != ours.made.bundle.tables.has_registers
    pick, valid = random.Random(1), 0
    for _ in range(400):
        names = pick.sample(["k1", "k2", "k3", "k4", "k13"], pick.randint(1, 5))
        text = json.dumps({name: pick.choice([1, 2, None]) for name in names})
        if ours.made.bundle.tables.has_registers:
            assert ours.accepts(text) == judge.accepts(text), text
        else:
            assert judge.accepts(text) or not ours.accepts(text), text
        valid += ours.accepts(text)
    assert valid > 10


@pytest.mark.parametrize(
    "required",
    [
        [["k2"], ["k3"]],
        [["k2"], ["k3"], ["k4"], ["k13"]],
        [["k2"], ["k3", "k4", "k13"]],
        [["k2", "k3"], ["k3", "k4"], ["k2", "k13"]],
        [["k2", "k3"], ["k2"], ["extra"]],
    ],
)
@pytest.mark.parametrize("open_", [False, True])
def test_an_object_that_requires_one_set_of_keys_or_another(required: list[list[str]], open_: bool) -> None:
    """The sets need not be disjoint: what requires one of them is made so."""
    keys = {f"k{n}": {"enum": [1, 2, None]} for n in range(14)}
    either = {"anyOf": [{"required": one} for one in required]}
    schema = {"type": "object", "properties": keys, "required": ["k1"], "additionalProperties": open_, **either}
    ours, judge = Stepped(schema), Judge(schema)
    assert not ours.made.report["many_keys"] and ours.made.bundle.tables.has_registers
    pick, valid = random.Random(1), 0
    for _ in range(600):
        names = pick.sample(["k1", "k2", "k3", "k4", "k13", "extra"], pick.randint(1, 6))
        text = json.dumps({name: pick.choice([1, 2, None]) for name in names})
        assert ours.accepts(text) == judge.accepts(text), text
        valid += ours.accepts(text)
    assert valid > 20


def test_sets_of_required_keys_that_make_too_many_members() -> None:
    """Sixty keys, one of twenty required: made disjoint, these would be 1,200 members. The declared order stays."""
    keys = {f"k{n:02}": {"type": "null"} for n in range(60)}
    ours = Stepped({"type": "object", "properties": keys, "anyOf": [{"required": [f"k{n:02}"]} for n in range(20)]})
    assert ours.made.report["many_keys"] == ["schema#"] and not ours.made.bundle.tables.has_registers
    assert ours.accepts('{"k07": null, "k30": null}') and not ours.accepts('{"k30": null}')


def test_a_union_of_objects_with_many_required_keys() -> None:
    """All that every alternative requires is asked for at each end, as in a single object."""
    keys = {f"k{n}": {"type": "integer"} for n in range(40)}
    schema = {
        "type": "object",
        "properties": {"kind": {"enum": ["a", "b"]}, "x": {"type": "string"}, **keys},
        "required": ["kind", *keys],
        "additionalProperties": False,
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"required": ["x"]},
    }
    ours, judge, pick = Stepped(schema), Judge(schema), random.Random(1)
    assert not ours.made.report["many_keys"] and ours.made.bundle.tables.has_registers
    valid = 0
    for n in range(60):
        one = {**dict.fromkeys(keys, 1), "kind": pick.choice("ab"), **({"x": ""} if n % 2 else {})}
        names = pick.sample(sorted(one), len(one) - (n % 5 == 0))
        text = json.dumps({name: one[name] for name in names})
        assert ours.accepts(text) == judge.accepts(text), text
        valid += ours.accepts(text)
    assert 20 < valid < 50


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_union_that_lies_in_itself(depth: int, inside: bool) -> None:
    """Deep inside it has only its least texts, which lack a required list: no register, and never a dead end."""
    from toolc.compiler import Options, compile_schema
    from toolc.runtime.reference import Sequence

    def node(op: str, key: str) -> dict[str, Any]:
        keys = {"op": {"const": op}, key: {"type": "array", "items": {"$ref": "#/$defs/n"}}}
        return {"type": "object", "properties": keys, "required": ["op", key], "additionalProperties": False}

    schema: dict[str, Any] = {"$ref": "#/$defs/n"}
    if inside:
        schema = {"type": "object", "properties": {"x": schema, "y": {}}, "required": ["x"]}
    schema["$defs"] = {"n": {"anyOf": [node("and", "args"), node("not", "arg")]}}
    bundle = compile_schema(schema, "builtin", options=Options(key_order="any", soft_depth=depth, jobs=1)).bundle
    for seed in range(6):
        here, pick = Sequence.start(bundle), random.Random(seed)
        for _ in range(60):
            allowed = here.mask()
            assert allowed
            deeper = [one for one in sorted(allowed) if bundle.vocab.token(one)[-1:] in (b"[", b"{", b'"')]
            here.advance(pick.choice(deeper or sorted(allowed)))
            if here.state == 1:
                break


def test_alternatives_that_many_members_leave_possible() -> None:
    """Each value rules one of them out: any set of them may be left."""
    options = [
        {"type": "object", "properties": {f"k{n}": {"enum": [x for x in range(12) if x != one]} for n in range(11)}}
        for one in range(12)
    ]
    ours = Stepped({"anyOf": options, "required": ["k0"]})
    assert ours.made.report["many_keys"] and not ours.made.bundle.tables.has_registers
    assert ours.accepts('{"k0": 1, "k1": 2}') and not ours.accepts('{"k1": 2}')


def test_objects_that_meet_in_one_place_leave_registers_to_the_others() -> None:
    """Behind ``"to": {`` it is open which of two objects is read; a third one has the place for itself."""

    def large(stem: str) -> dict[str, Any]:
        keys = {f"{stem}{n}": {"type": "integer"} for n in range(12)}
        return {"type": "object", "properties": keys, "additionalProperties": False}

    def small(kind: str) -> dict[str, Any]:
        keys = {"kind": {"const": kind}, "to": large(kind)}
        return {"type": "object", "properties": keys, "required": ["kind", "to"], "additionalProperties": False}

    schema = {"type": "object", "properties": {"one": {"anyOf": [small("a"), small("b")]}, "free": large("z")}}
    ours = Stepped(schema)
    places = [f"schema#/properties/one/anyOf/{n}/properties/to" for n in (0, 1)]
    assert ours.made.report["many_keys"] == places
    for text, valid in (
        ('{"free": {"z7": 1, "z2": 1}, "one": {"to": {"b1": 1, "b4": 1}, "kind": "b"}}', True),
        ('{"free": {"z7": 1, "z7": 1}}', False),
        ('{"one": {"to": {"b1": 1, "a4": 1}, "kind": "b"}}', False),
    ):
        assert ours.accepts(text) == valid, text


def test_tools_whose_objects_meet_leave_registers_to_the_others() -> None:
    """Parts of a spec are compiled apart; a place is that of the tool."""
    from toolc.compiler import Options, compile_tools

    def large(stem: str) -> dict[str, Any]:
        keys = {f"{stem}{n}": {"type": "integer"} for n in range(12)}
        return {"type": "object", "properties": keys, "additionalProperties": False}

    def tool(name: str) -> dict[str, Any]:
        two = [{"type": "object", "properties": {"kind": {"const": k}, "to": large(name + k)}} for k in "ab"]
        keys = {"one": {"anyOf": [{**one, "additionalProperties": False} for one in two]}, "free": large(name)}
        return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": keys}}}

    tools = [tool(name) for name in "uvwxyz"]
    made = compile_tools(tools, "builtin", options=Options(key_order="any", protocol="hermes", jobs=1))
    assert made.bundle.tables.has_registers
    assert len(made.report["many_keys"]) == 12 and all(place.endswith("/to") for place in made.report["many_keys"])


def _groups(count: int, **more: Any) -> list[dict[str, Any]]:
    """Objects of keys of their own, all with strings, two of them with less than any string."""
    groups = [{"properties": {f"g{n}.{k}": {"type": "string"} for k in range(6)}} for n in range(count)]
    groups[1]["required"] = ["g1.0"]
    groups[2]["properties"]["g2.0"] = {"enum": ["yes", "no"]}
    return [{"type": "object", **one, **more} for one in groups]


@pytest.mark.parametrize("order", ["declared", "any"])
def test_alternatives_that_another_one_contains_cost_nothing(order: str) -> None:
    """Sixteen groups of optional keys, of which the text says by no constant which it is: most are all there is."""
    from toolc.compiler import Options, compile_schema

    strings = {"type": "object", "additionalProperties": {"type": "string"}}
    options = Options(key_order=order, jobs=1)
    few, many = (compile_schema({**strings, "anyOf": _groups(count)}, "builtin", options=options) for count in (12, 16))
    assert many.report["counts"]["states"] < 2 * few.report["counts"]["states"]
    assert many.report["counts"]["states"] < 4000
    judge = Judge({**strings, "anyOf": _groups(16)})
    rng = random.Random(order)
    names = [f"g{n}.{k}" for n in range(4) for k in (0, 3)] + ["other"]
    for _ in range(60):
        value = {name: rng.choice(["yes", "x"]) if rng.random() < 0.9 else 1 for name in rng.sample(names, 3)}
        texts = [json.dumps(dict(some)) for some in itertools.permutations(value.items())]
        assert any(stepped(many.bundle, text) for text in texts) == judge.holds(value), value


def test_alternatives_that_no_other_contains_are_kept() -> None:
    from toolc.compiler import Options, compile_schema

    schema = {"anyOf": _groups(9, additionalProperties=False), "type": "object"}
    for order in ("declared", "any"):
        held = compile_schema(schema, "builtin", options=Options(key_order=order, jobs=1)).bundle
        for n in range(9):
            assert stepped(held, json.dumps({f"g{n}.{k}": "yes" for k in range(6)})), n
        assert not stepped(held, json.dumps({"g3.0": "yes", "g4.0": "yes"}))


def test_a_pattern_that_python_cannot_apply_refuses_no_union() -> None:
    from toolc.compiler import compile_schema

    closed = {"type": "object", "additionalProperties": False}
    ends = {**closed, "patternProperties": {"(?<!\\.exe|\\.so)$": {"type": "integer"}}}
    schema = {"anyOf": [ends, *({**closed, "properties": {f"a{n}": {"type": "string"}}} for n in range(1, 8))]}
    held = compile_schema(schema, "builtin").bundle
    assert stepped(held, '{"a1": "x"}') and stepped(held, '{"other": 1}') and not stepped(held, '{"b.exe": 1}')


def test_few_alternatives_keep_their_own_order() -> None:
    """All values of the second are values of the first; in declared order it alone allows b before a."""
    from toolc.compiler import compile_schema

    keys = {"a": INTEGER, "b": INTEGER}
    contained = {"properties": dict(reversed(keys.items())), "required": ["b"]}
    schema = {"anyOf": [{"type": "object", **one, **CLOSED} for one in ({"properties": keys}, contained)]}
    held = compile_schema(schema, "builtin").bundle
    assert stepped(held, '{"a": 1, "b": 2}') and stepped(held, '{"b": 2, "a": 1}')
