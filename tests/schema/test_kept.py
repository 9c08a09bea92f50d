"""What is kept between compiles by content is what would be made anew, and errors still name their own place."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import pytest

from toolc.compiler.errors import SpecError, UnsupportedError
from toolc.compiler.schema import normalise, patterns, schema_to_lark
from toolc.compiler.specs.json_values import _is_plainly_json, check_value

PLAIN: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": ["integer", "null"], "description": "a count"},
    {"type": "number", "minimum": 1, "exclusiveMinimum": True},
    {"type": "number", "minimum": 1, "exclusiveMinimum": 1},
    {"type": "number", "minimum": 1},
    {"type": "number", "minimum": 1.5},
    {"enum": [1, 1.0, True, "1", None]},
    {"enum": [1.0, True, "1", None]},
    {"enum": ["a", "b"], "type": "string"},
    {"enum": ["b", "a"], "type": "string"},
    {"const": {"a": 1, "b": 2}},
    {"const": {"b": 2, "a": 1}},
    {"const": 0},
    {"const": False},
    {"type": "string", "minLength": 2, "maxLength": 5},
    {"enum": ["x" * 2000, "y"]},
]


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"]
)
def test_kept_shapes_are_those_made_anew(draft: str) -> None:
    schemas = [{"$schema": draft, "type": "object", "properties": {"p": one, "q": {"items": one}}} for one in PLAIN]
    anew = []
    for schema in schemas:
        normalise._plain_shapes.clear()
        anew.append(schema_to_lark(schema))
    assert not any(len(str(plain)) > 2000 for plain in normalise._plain_shapes)
    for _ in range(2):
        for schema, (text, writer) in zip(schemas, anew, strict=True):
            again, other = schema_to_lark(schema)
            assert (again, other.places, other.report()) == (text, writer.places, writer.report())


def test_a_full_store_of_shapes_is_emptied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalise, "MOST_PLAIN_SHAPES", 3)
    for high in range(10):
        schema_to_lark({"type": "integer", "minimum": 0, "maximum": high})
        assert len(normalise._plain_shapes) <= 3


def test_a_pattern_is_refused_where_it_stands() -> None:
    for name in ("a", "b", "a"):
        with pytest.raises(UnsupportedError) as caught:
            schema_to_lark({"type": "object", "properties": {name: {"type": "string", "pattern": "(?:^a|\\bb)+"}}})
        assert caught.value.place == f"#/properties/{name}/pattern"
    assert patterns.content("^a", "#/one") == patterns.content("^a", "#/two")


def test_identifiers_are_found_at_any_depth() -> None:
    inner = {"not": {"anyOf": [{"$id": "https://x.org/deep", "$anchor": "there", "type": "string"}]}}
    text, _ = schema_to_lark({"$defs": {"a": {"allOf": [True, inner]}}, "$ref": "https://x.org/deep#there"})
    assert "str" in text


def test_what_is_plainly_json_is_json() -> None:
    deep: Any = 1
    for _ in range(498):
        deep = {"a": [deep]} if isinstance(deep, int) else [deep]
    for good in (deep, {"a": [1, 2.5, None, True, "x", {}]}, [], 0, ""):
        assert _is_plainly_json(good)
        check_value(good, "x")
    looped: list[Any] = []
    looped += [looped, looped]
    for bad in ([math.nan], {"a": math.inf}, {1: 2}, [(1,)], {"a": b"x"}, [[deep, [deep]]], looped):
        assert not _is_plainly_json(bad)
        with pytest.raises(SpecError):
            check_value(bad, "x")


def test_a_value_at_many_places_is_not_listed_at_each() -> None:
    wide = [0] * 600_000
    for many in ([wide] * 40, [{"a": wide}] * 40, {str(n): wide for n in range(40)}):
        tracemalloc.start()
        try:
            assert not _is_plainly_json(many)
            assert tracemalloc.get_traced_memory()[1] < 8 * 2 * len(wide)  # bytes; each place is 8
        finally:
            tracemalloc.stop()
