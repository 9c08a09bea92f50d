"""Ways to the end of objects whose keys stand in any order: close tokens end every text within its bound.

The oracle is `Sequence`, which reads a token only if the registers allow it.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.runtime import Bundle, Matcher, subset
from toolc.runtime.format.tables import NEVER
from toolc.runtime.reference import Sequence

NAMES = ["a", "ab", "abc", "abcd", "b", "item", "item_id", "é", "x1", "x2", "x3", "x4"]
LEAVES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"enum": ["a", "bb", 3]},
    {"type": "string", "maxLength": 5},
    {"type": "array", "items": {"type": "integer"}, "minItems": 1},
]


def some_object(pick: random.Random, depth: int) -> dict[str, Any]:
    """An object of seven to twelve keys, with others inside."""
    names = pick.sample(NAMES, pick.randint(7, 12))
    inner = {name: some_object(pick, depth - 1) for name in pick.sample(names, 2 if depth else 0)}
    share = pick.choice([0, 0.3, 0.8])
    return {
        "type": "object",
        "properties": {name: inner.get(name) or pick.choice(LEAVES) for name in names},
        "required": [name for name in names if pick.random() < share],
        "additionalProperties": pick.random() < 0.5,
    }


def tree() -> dict[str, Any]:
    """Recursive: one optional key holds another one, one a list of them."""
    node = {"$ref": "#/$defs/t"}
    keys = {"k": {"type": "string"}, "next": node, "more": {"type": "array", "items": node}}
    keys |= {f"k{n}": {"type": "integer"} for n in range(5)}
    made = {"type": "object", "properties": keys, "required": ["k3", "k"], "additionalProperties": False}
    return {**node, "$defs": {"t": made}}


def ended(at: Sequence) -> bytes:
    """The text that close tokens add; they are no more than the bound says."""
    here, text, most = at.copy(), b"", at.bound()
    here.left = None
    for _ in range(most):
        token = here.close_token()
        assert token in here.mask() and here.advance(token), token
        text += here.bundle.vocab.token(token)
        if here.state == 1:
            return text
    raise AssertionError(f"{most} tokens are not enough: {text!r}")


def some_token(at: Sequence, pick: random.Random, allowed: set[int]) -> int:
    """Often one that ends a string, opens or closes something."""
    vocab = at.bundle.vocab
    likely = [token for token in sorted(allowed) if any(byte in b'"{},:[]' for byte in vocab.token(token))]
    return pick.choice(likely if likely and pick.random() < 0.5 else sorted(allowed))


def walk(bundle: Bundle, pick: random.Random, entry: str = "start", most: int = 40) -> bytes:
    """A random text; at each place close tokens end it, and no token costs more than `need` says."""
    at, text = Sequence.start(bundle, entry), b""
    for _ in range(most):
        if at.state == 1:
            return text
        if pick.random() < 0.5:
            ended(at)
        need, token = at.need(), some_token(at, pick, at.mask())
        assert at.advance(token)
        text += bundle.vocab.token(token)
        assert at.bound() <= need
    return text if at.state == 1 else text + ended(at)


def keep_budget(bundle: Bundle, pick: random.Random, entry: str = "start") -> None:
    """A random text within a small budget; the matcher has the same masks."""
    left = Sequence.start(bundle, entry).bound() + pick.randrange(20)
    at, matcher = Sequence.start(bundle, entry, left), Matcher(bundle, entry, budget=left)
    mask = np.empty(bundle.vocab.words, np.uint32)
    read = 0
    while at.state != 1:
        allowed = at.mask_in_budget()
        matcher.fill(mask)
        assert set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()) == allowed
        assert matcher.bound == at.bound()
        token = some_token(at, pick, allowed)
        assert at.advance(token)
        matcher.advance(token)
        read += 1
        assert read <= left


@pytest.mark.parametrize("whitespace", ["spaced", "compact", "pretty", "flexible"])
@pytest.mark.parametrize("seed", range(3))
def test_objects_are_closed_within_their_bounds(seed: int, whitespace: str) -> None:
    pick = random.Random(f"{seed} {whitespace}")
    schema = some_object(pick, 0 if whitespace == "pretty" else seed % 2)
    options = Options(key_order="any", whitespace=whitespace, jobs=1)
    bundle = compile_schema(schema, "builtin", options=options).bundle
    assert bundle.tables.has_registers and Sequence.start(bundle).bound() < NEVER
    for _ in range(2):
        text = walk(bundle, pick)
        assert Draft202012Validator(schema).is_valid(json.loads(text))
        keep_budget(bundle, pick)


def test_recursive_objects_are_closed_within_their_bounds() -> None:
    schema, pick = tree(), random.Random(1)
    bundle = compile_schema(schema, "builtin", options=Options(key_order="any", jobs=1)).bundle
    assert bundle.tables.has_registers
    for _ in range(4):
        assert Draft202012Validator(schema).is_valid(json.loads(walk(bundle, pick)))
        keep_budget(bundle, pick)


def some_union(pick: random.Random) -> dict[str, Any]:
    """Objects that share keys, some with a constant that says which it is."""
    names = pick.sample(NAMES, pick.randint(3, 7))
    options = []
    told = pick.random() < 0.7
    for n in range(pick.randint(2, 4)):
        own = pick.sample(names, pick.randint(1, len(names)))
        keys = {name: pick.choice([*LEAVES, {"type": "object", "required": ["z"]}]) for name in own}
        if told:
            keys["kind"] = {"const": f"kind{n}" * pick.randint(1, 3)}
        required = [name for name in keys if name == "kind" or pick.random() < 0.4]
        more = pick.choice([{}, {"additionalProperties": False}, {"additionalProperties": {"type": "integer"}}])
        options.append({"type": "object", "properties": keys, "required": required, **more})
    return {"anyOf": options}


def are_closed_within_their_bounds(schemas: list[dict[str, Any]], whitespace: str, pick: random.Random) -> None:
    kept = 0
    for schema in schemas:
        options = Options(key_order="any", whitespace=whitespace, jobs=1)
        bundle = compile_schema({"type": "array", "items": schema, "minItems": 1}, "builtin", options=options).bundle
        kept += bundle.tables.has_registers
        assert Sequence.start(bundle).bound() < NEVER
        for _ in range(2):
            text = json.loads(walk(bundle, pick))
            assert all(Draft202012Validator(schema).is_valid(one) for one in text)
            keep_budget(bundle, pick)
    assert kept


@pytest.mark.parametrize("whitespace", ["spaced", "compact", "pretty", "flexible"])
@pytest.mark.parametrize("seed", range(6))
def test_unions_are_closed_within_their_bounds(seed: int, whitespace: str) -> None:
    pick = random.Random(f"union {seed} {whitespace}")
    are_closed_within_their_bounds([some_union(pick) for _ in range(3)], whitespace, pick)


@pytest.mark.parametrize("seed", range(3))
def test_unions_that_require_a_key_throughout(seed: int) -> None:
    """Dead ends of the automaton, where nothing ends, keep the mark of such a key; no bound may wait for them."""
    pick = random.Random(f"throughout {seed}")
    one = {"abc": {"type": "object", "required": ["z"]}, "a": {"type": "integer"}}
    schemas = [
        {
            "anyOf": [
                {"type": "object", "properties": one, "required": ["abc"], "additionalProperties": False},
                {"type": "object", "properties": {"a": {"type": "string"}}},
            ]
        },
        some_union(pick),
    ]
    for option in (option for schema in schemas for option in schema["anyOf"]):
        option["properties"] |= {"c": {"type": "integer"}, "d": {"type": "string"}}
        option["required"] = [*option.get("required", []), "c"]
    are_closed_within_their_bounds(schemas, "compact", pick)


KEYS = {f"k{n}": {"type": "integer"} for n in range(7)}
INNER = {"type": "object", "properties": KEYS, "required": ["k1", "k5"], "additionalProperties": False}
OBJECT = {"type": "object", "properties": KEYS}
FEW = {"type": "object", "properties": {"in": INNER}, "required": ["in"], "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        {**OBJECT, "required": ["k2"], "additionalProperties": INNER},
        {**OBJECT, "required": [*KEYS], "additionalProperties": INNER},
        {**OBJECT, "required": ["k2"], "patternProperties": {"^x": INNER}, "additionalProperties": False},
        {**OBJECT, "required": ["k2"], "additionalProperties": {"type": "array", "items": INNER, "minItems": 1}},
        {**OBJECT, "required": ["k2"], "additionalProperties": FEW},
        {**OBJECT, "minProperties": 1, "additionalProperties": False},
        {**OBJECT, "minProperties": 1, "additionalProperties": INNER},
        {"type": "array", "items": {**OBJECT, "minProperties": 1, "additionalProperties": False}, "minItems": 2},
        {**OBJECT, "properties": dict.fromkeys(KEYS, INNER), "minProperties": 1, "additionalProperties": False},
        {**INNER, "properties": {**KEYS, "k" + 60 * "z": {"type": "null"}}},
    ],
)
@pytest.mark.parametrize("whitespace", ["spaced", "pretty"])
def test_other_keys_and_objects_that_may_not_be_empty(schema: dict[str, Any], whitespace: str) -> None:
    pick, options = random.Random(0), Options(key_order="any", whitespace=whitespace, jobs=1)
    bundle = compile_schema(schema, "builtin", options=options).bundle
    assert bundle.tables.has_registers and bundle.min_tokens["start"]
    for _ in range(4):
        assert Draft202012Validator(schema).is_valid(json.loads(walk(bundle, pick)))
        keep_budget(bundle, pick)


def recursive(more: dict[str, Any], properties: dict[str, Any]) -> Bundle:
    schema = {"$ref": "#/$defs/t", "$defs": {"t": {**OBJECT, "properties": properties, **more}}}
    return compile_schema(schema, "builtin", options=Options(key_order="any", jobs=1)).bundle


def test_objects_that_may_lead_to_themselves_alone_have_no_bound() -> None:
    """The member that a way leads to is the first one, or one of an undeclared key."""
    node, some = {"$ref": "#/$defs/t"}, {"minProperties": 1, "additionalProperties": False}
    for bundle in (
        recursive(some, {"t": node, **KEYS}),
        recursive({"required": ["k1"], "additionalProperties": node}, KEYS),
    ):
        assert bundle.tables.has_registers and bundle.min_tokens["start"] is None
    bundle, pick = recursive(some, {**KEYS, "t": node}), random.Random(0)
    assert bundle.tables.has_registers and bundle.min_tokens["start"] == len('{"k0": 0}') + 1
    for _ in range(4):
        walk(bundle, pick)
        keep_budget(bundle, pick)


def test_the_shortest_text_has_the_required_keys_alone() -> None:
    keys = {f"key{n}": {"type": "boolean"} for n in range(9)}
    for closed in (True, False):
        schema = {
            "type": "object",
            "properties": keys,
            "required": ["key3", "key7"],
            "additionalProperties": not closed,
        }
        bundle = compile_schema(schema, "builtin", options=Options(key_order="any", jobs=1)).bundle
        at = Sequence.start(bundle)
        assert list(json.loads(ended(at))) == ["key3", "key7"]
        tokens = 0
        while at.state != 1:
            at.advance(at.close_token())
            tokens += 1
        assert tokens <= (bundle.min_tokens["start"] or 0) <= tokens + (1 if closed else 8)


@pytest.mark.parametrize("protocol", ["hermes", "llama3"])
def test_calls_of_some_tools_are_closed_within_their_bounds(protocol: str) -> None:
    pick = random.Random(protocol)
    schemas = [some_object(pick, 1), some_object(pick, 0), tree()]
    tools = [{"name": f"tool{n}", "parameters": schema} for n, schema in enumerate(schemas)]
    whole = compile_tools(tools, "builtin", options=Options(key_order="any", protocol=protocol, jobs=1)).bundle
    assert whole.tables.has_registers
    for bundle in (whole, subset(whole, ["tool1", "tool2"]), subset(subset(whole, ["tool0", "tool2"]), ["tool2"])):
        for _ in range(3):
            walk(bundle, pick, "required", 60)
            keep_budget(bundle, pick, "required")
