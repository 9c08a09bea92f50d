"""Schemas of a oneOf that constants tell apart: what is said of them is true, and looking for it takes no squares."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.schema import schema_to_lark
from toolc.compiler.schema.normalise import Normaliser
from toolc.compiler.schema.writer import SchemaOptions

from .recogniser import Compiled

VALUES: list[Any] = [None, True, 1, "a", "b", "c", {}, {"k": "a"}, {"k": "b"}, {"k": "b", "l": 1}, {"k": 1, "l": "a"}]
CONSTANTS = st.sampled_from(["a", "b", "c", 1, True, None, {"k": "a"}])
SAYING = st.one_of(
    st.builds(lambda value: {"const": value}, CONSTANTS),
    st.builds(lambda values: {"enum": values}, st.lists(CONSTANTS, min_size=1, max_size=3)),
    st.builds(lambda one, values: {"const": one, "enum": values}, CONSTANTS, st.lists(CONSTANTS, min_size=1)),
    st.sampled_from([{"type": "string"}, {"type": ["number", "object"]}, True]),
)
SCHEMAS = st.one_of(
    SAYING,
    st.builds(
        lambda members, required: {"properties": dict(sorted(members.items())), "required": required},
        st.dictionaries(st.sampled_from("kl"), SAYING, max_size=2),
        st.lists(st.sampled_from("kl"), unique=True, max_size=2),
    ),
)


@given(st.lists(SCHEMAS, min_size=2, max_size=5))
@settings(deadline=None)
def test_exactly_one_is_met(members: list[Any]) -> None:
    schema = {"oneOf": members}
    try:
        found = Compiled(schema_to_lark(schema, SchemaOptions(whitespace="compact"))[0])
    except UnsatisfiableError:
        found = None
    judge = Draft202012Validator(schema)
    for value in VALUES:
        orders = [value] if not isinstance(value, dict) else map(dict, permutations(value.items()))  # key-order
        texts = [json.dumps(one, separators=(",", ":")) for one in orders]
        assert (found is not None and any(map(found.accepts, texts))) == judge.is_valid(value), texts


TITLED = [{"const": f"c{n}", "title": f"C {n}"} for n in range(60)]
TAGGED = [
    {"type": "object", "properties": {"n": {"type": "integer"}, "kind": {"const": f"c{n}"}}, "required": ["kind"]}
    for n in range(60)
]


@pytest.mark.parametrize("members", [TITLED, TAGGED])
def test_no_two_are_looked_at(members: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(Normaliser, "_are_disjoint", lambda *_: asked.append(1))
    schema_to_lark({"oneOf": members})
    assert not asked


def test_what_meets_two_is_refused() -> None:
    members = [*TITLED, {"enum": ["c3", "x"]}, {"const": 1}, {"const": 1.0}, {"type": "null"}]
    some = Compiled(schema_to_lark({"oneOf": members})[0])
    for text, expected in (('"c2"', True), ('"c3"', False), ('"x"', True), ("1", False), ("null", True)):
        assert some.accepts(text) == expected, text
    tagged = Compiled(schema_to_lark({"oneOf": [*TAGGED, {"type": "object", "required": ["kind", "n"]}]})[0])
    for text, expected in (
        ('{"kind":"c1"}', True), ('{"n":1,"kind":"c1"}', False), ('{"kind":"c","n":1}', True), ('{"kind":"c"}', False),
        ('{"kind":"c1","n":null}', True),
    ):  # fmt: skip
        assert tagged.accepts(json.dumps(json.loads(text))) == expected, text
