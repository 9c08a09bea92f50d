"""Registers of objects whose keys stand in any order: masks are those of trying every token, at states of random texts.

Tokens are bytes and long pieces of such texts, so that one token may read the end of a key, a value and more keys, or
the end of an object and what follows it.
"""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Vocab, subset
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.reference import Sequence

ANY = Options(key_order="any", jobs=1)
SPECIAL = ("<|end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
DEEPEST = 12


@cache
def vocab() -> Vocab:
    """All bytes, words, and pieces of objects that begin and end anywhere; no piece reads a key of what it opens."""
    text = '{"a": 1, "b": "x", "c": [{"k1": true, "k2": null}, {}], "k3": {"k11": "", "k4": -0.5}}, "k5": "yes"}'
    pick = random.Random(4)
    pieces = {bytes([n]) for n in range(256)} | {
        b"true",
        b"null",
        b"yes",
        b"name",
        b'{"',
        b'"}',
        b'": ',
        b', "',
        b'{"k',
    }
    pieces |= {
        b'"k1": 1, "k2": 2',
        b'1, "k1": 1, "k2": ',
        b', "k1": ""}',
        b'", "k12": "',
        b'1}, "k2": 0}',
        b"]}}",
        b'}, "',
    }
    for _ in range(300):
        begin = pick.randrange(len(text))
        pieces.add(text[begin : begin + pick.choice([2, 3, 4, 8, 14, 20])].encode())
    tokens = sorted(one for one in pieces if one.find(b"{") < 0 or one.count(b'"', one.find(b"{")) < 2)
    ids = {name: len(tokens) + n for n, name in enumerate(SPECIAL)}
    table = TokenTable(
        tokens=(*tokens, *[b""] * len(SPECIAL)),
        special=ids,
        end_of_turn=(ids["<|end|>"],),
        source="pieces",
        end_of_turn_origin="tests",
    )
    return build_vocab(table)


scalars: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "string"},
        {"type": "string", "maxLength": 3},
        {"type": "boolean"},
        {"enum": ["yes", "no", "yes, no", 1]},
        {"const": None},
        {"type": ["string", "null"]},
        {"type": "number", "minimum": 0},
        {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
        {},
    ]
)


def objects(inner: st.SearchStrategy[Any], least: int = 5, most: int = 40) -> st.SearchStrategy[Any]:
    """Objects of so many keys, some required, open or closed."""

    @st.composite
    def made(draw: st.DrawFn) -> Any:
        names = [f"k{n}" for n in range(draw(st.integers(least, most)))] + draw(
            st.lists(st.sampled_from(["a", "b", "c", "a b", "é", 'q"', "name"]), unique=True, max_size=3)
        )
        few = draw(st.lists(inner, min_size=2, max_size=4))
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: few[n % len(few)] for n, name in enumerate(names)},
            "required": draw(st.lists(st.sampled_from(names), unique=True, max_size=6)),
        }
        more = draw(st.sampled_from([False, False, None, {"type": "integer"}]))
        if more is not None:
            schema["additionalProperties"] = more
        return schema

    return made()


schemas = st.recursive(
    objects(scalars),
    lambda inner: st.one_of(
        objects(st.one_of(scalars, inner), 5, 12),
        st.builds(lambda one: {"type": "array", "items": one}, inner),
        st.builds(lambda one, other: {"anyOf": [one, other]}, inner, st.one_of(scalars, inner)),
        objects(st.just({"$ref": "#"}), 5, 9),
    ),
    max_leaves=3,
)


def walk(bundle: Bundle, entry: str, pick: random.Random, steps: int) -> int:
    """Compare masks on a random text; returns at how many states some token was taken out of the rows."""
    here, taken = Sequence.start(bundle, entry), 0
    text = bundle.vocab.token
    for _ in range(steps):
        if here.state == 1 or len(here.stack) > DEEPEST:
            break
        mask, brute = here.mask(), here.brute_mask()
        shown = [text(token) for token in sorted(mask ^ brute)][:5]
        assert mask == brute, (bundle.name, entry, here.state, here.stack, here.register, shown)
        assert mask
        taken += bool(here.taken_out(here.rows()))
        # what moves between keys, rather than on in strings
        moving = [token for token in mask if len(text(token)) > 1 and set(text(token)) & set(b'",}{')]
        closing = [token for token in mask if text(token)[:1] in (b'"', b",", b"}", b"{")]
        live = pick.choice([sorted(mask), sorted(moving or mask), sorted(moving or mask), sorted(closing or mask)])
        assert here.advance(pick.choice(live))
    return taken


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas, st.integers(0, 1 << 20))
def test_masks_of_random_objects(schema: Any, seed: int) -> None:
    try:
        made = compile_schema(schema, vocab(), options=ANY)
    except UnsatisfiableError:  # an object that has to hold itself
        return
    pick = random.Random(seed)
    for _ in range(2):
        walk(made.bundle, "start", pick, 25)


def keyed(count: int, required: list[int], **more: Any) -> dict[str, Any]:
    names = [f"k{n}" for n in range(count)]
    types = [{"type": "string"}, {"type": "integer"}, {"type": "string", "maxLength": 3}, {"enum": ["yes", 1]}]
    return {
        "type": "object",
        "properties": {name: types[n % len(types)] for n, name in enumerate(names)},
        "required": [names[n] for n in required],
        **more,
    }


TREE = {
    "$ref": "#/$defs/t",
    "$defs": {
        "t": {
            "type": "object",
            "properties": {
                **{f"k{n}": {"type": "integer"} for n in range(5)},
                "c": {"type": "array", "items": {"$ref": "#/$defs/t"}},
                "a": {"$ref": "#/$defs/t"},
            },
            "required": ["k1", "k2"],
            "additionalProperties": False,
        }
    },
}
FORMS = {
    "closed": keyed(12, [2, 5], additionalProperties=False),
    "open": keyed(12, [2, 5]),
    "all required": keyed(8, list(range(8)), additionalProperties=False),
    "none required": keyed(40, [], additionalProperties=False),
    "many words": keyed(70, [0, 33, 69], additionalProperties=False),
    "nested": {
        "type": "object",
        "properties": {f"k{n}": keyed(7, [1], additionalProperties=False) for n in range(7)},
        "required": ["k2"],
    },
    "tree": TREE,
    "array": {"type": "array", "items": keyed(7, [3], additionalProperties=False)},
}


@cache
def compiled(form: str) -> Bundle:
    return compile_schema(FORMS[form], vocab(), options=ANY).bundle


@pytest.mark.parametrize("form", FORMS)
def test_masks(form: str) -> None:
    bundle = compiled(form)
    assert bundle.tables.has_registers and "many_keys" not in bundle.meta
    pick, taken = random.Random(form), 0
    for _ in range(8):
        taken += walk(bundle, "start", pick, 40)
    assert taken > 5  # else the texts said nothing of registers


@pytest.mark.parametrize("form", ["closed", "tree"])
def test_canonical_masks_have_one_token_where_one_text_goes_on(form: str) -> None:
    made = compile_schema(FORMS[form], "builtin", options=Options(key_order="any", canonical=True, jobs=1)).bundle
    plain = compile_schema(FORMS[form], "builtin", options=ANY).bundle
    assert made.tables.has_registers
    pick, fewer = random.Random(form), 0
    for _ in range(6):
        one, other = Sequence.start(made), Sequence.start(plain)
        for _ in range(30):
            if one.state == 1 or len(one.stack) > DEEPEST:
                break
            narrow, wide = one.mask(), other.mask()
            assert narrow and narrow <= wide
            if narrow != wide:
                assert len(narrow) == 1
                fewer += 1
            token = pick.choice(sorted(narrow))
            assert one.advance(token) and other.advance(token)
    assert fewer


@pytest.mark.parametrize("protocol", ["hermes", "llama4_json"])
def test_masks_of_some_tools(protocol: str) -> None:
    tools = [
        {"name": "alpha", "input_schema": FORMS["closed"]},
        {"name": "alpine", "input_schema": FORMS["open"]},
        {"name": "beta", "input_schema": TREE},
        {"name": "alp", "input_schema": keyed(3, [1])},
    ]
    whole = compile_tools(tools, vocab(), options=Options(key_order="any", protocol=protocol, jobs=1)).bundle
    assert whole.tables.has_registers
    pick = random.Random(protocol)
    for names in (["alpha"], ["alpine", "beta"], ["beta", "alp"], ["alp"]):
        some = subset(whole, names)
        taken = sum(walk(some, "required", pick, 45) for _ in range(4))
        assert taken or names == ["alp"]
        twice = subset(some, names[:1])
        walk(twice, "required", pick, 45)


def test_a_file_keeps_registers(tmp_path: Any) -> None:
    bundle = compiled("nested")
    path = tmp_path / "nested.toolc"
    bundle.write(path)
    again = Bundle.open(path, bundle.vocab)
    one, other = bundle.tables.arrays(), again.tables.arrays()
    assert all((other[name] == array).all() for name, array in one.items())
    assert json.dumps(again.meta["restrictions"]) == json.dumps(bundle.meta["restrictions"])
