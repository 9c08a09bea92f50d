"""Three kinds of refusal, kept apart: malformed, unsatisfiable, unsupported; each with the place that makes it so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cases.schema_errors import CONTRADICTING_PATTERNS, MALFORMED, UNSATISFIABLE, UNSUPPORTED
from toolc.compiler import Options, compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError, SchemaError, ToolcError, UnsatisfiableError, UnsupportedError
from toolc.compiler.schema import schema_to_lark
from toolc.runtime import Bundle, Matcher

ROWS = [
    (kind, schema, place)
    for kind, rows in ((SchemaError, MALFORMED), (UnsatisfiableError, UNSATISFIABLE), (UnsupportedError, UNSUPPORTED))
    for schema, place in rows
]


def wrapped(schema: Any, place: str) -> list[tuple[Any, str]]:
    """The schema, and the schema as a required member and as an item that there must be."""
    if not isinstance(schema, dict):
        return [(schema, place)]
    if "$" in json.dumps(schema):
        return [(schema, place)]  # references and dialects belong to the root
    inside = place[1:]
    return [
        (schema, place),
        ({"type": "object", "properties": {"a/b": schema}, "required": ["a/b"]}, f"#/properties/a~1b{inside}"),
        ({"type": "array", "items": {"type": "array", "items": schema, "minItems": 1}, "minItems": 1},
         f"#/items/items{inside}"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "kind, schema, place", ROWS, ids=[f"{kind.__name__} {schema}"[:70] for kind, schema, _ in ROWS]
)
def test_refused(kind: type[ToolcError], schema: Any, place: str) -> None:
    for one, where in wrapped(schema, place):
        with pytest.raises(ToolcError) as caught:
            schema_to_lark(one)
        assert type(caught.value) is kind, caught.value
        assert caught.value.place == where, caught.value


@pytest.mark.parametrize("schema, place", CONTRADICTING_PATTERNS)
def test_patterns_that_contradict_each_other(schema: Any, place: str) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        compile_schema(schema)
    assert caught.value.place == f"schema{place}"


def _lengths(count: int) -> dict[str, Any]:
    """Strings whose lengths lie in one of some ranges."""
    return {"anyOf": [{"type": "string", "minLength": 3 * n, "maxLength": 3 * n + 1} for n in range(count)]}


def test_more_bounds_than_a_bundle_tells_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Matcher(compile_schema(_lengths(33)).bundle)
    assert matcher.advance_bytes(b'"' + b"x" * 96) and not matcher.is_complete
    assert matcher.advance_bytes(b'"') and matcher.is_complete
    with pytest.raises(UnsupportedError, match="66 bounds of lengths") as caught:
        compile_schema({"type": "object", "properties": {"b": {}, "a": _lengths(34)}})
    assert caught.value.place is not None and caught.value.place.endswith("(schema#/properties/a)")
    monkeypatch.setattr("toolc.runtime.format.tables.MAX_BREAKS", 3)  # of the rest of a compile, which counts otherwise
    with pytest.raises(UnsupportedError, match="4 bounds of lengths") as caught:
        compile_schema({"type": "array", "items": _lengths(3)})
    assert caught.value.place is not None and "schema#/items" in caught.value.place


@pytest.mark.parametrize(
    ("budget", "limit"),
    [({"states": 500}, "500 states"), ({"rows": 60}, "60 rows"), ({"bytes": 20_000}, "20,000 bytes")],
    ids=["states", "rows", "bytes"],
)
def test_budgets_name_the_pointer_that_grew(budget: dict[str, int], limit: str) -> None:
    """Whatever stage reaches the limit."""
    large = {f"member number {n} of the large one": {"type": "string", "maxLength": n} for n in range(9)}
    schema = {
        "type": "object",
        "properties": {
            "small": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
            "large": {"type": "object", "properties": large, "additionalProperties": False},
        },
        "additionalProperties": False,
    }
    with pytest.raises(BudgetError, match=limit) as caught:
        compile_schema(schema, options=Options(budget=Budget(**budget)))
    assert caught.value.place == "rule large (schema#/properties/large)"


@pytest.mark.parametrize("count", [(1 << 29) - 1, 1 << 29, (1 << 30) + 1, 1 << 31, 1 << 32, (1 << 63) - 1, 10**30])
@pytest.mark.parametrize(
    ("schema", "keyword", "text"),
    [
        ({"type": "string"}, "maxLength", '"ab"'),
        ({"type": "string", "pattern": "^[ab]*$"}, "maxLength", '"ab"'),
        ({"type": "string", "format": "date"}, "maxLength", '"2026-11-24"'),
        ({"type": "array", "items": {"type": "integer"}}, "maxItems", "[1, 2]"),
        ({"type": "object"}, "maxProperties", '{"a": 1}'),
    ],
)
def test_an_upper_bound_that_no_text_comes_to(
    schema: dict[str, Any], keyword: str, text: str, count: int, tmp_path: Path
) -> None:
    compile_schema(schema | {keyword: count}).write(tmp_path / "it")
    bundle = Bundle.open(tmp_path / "it")  # whose checks have limits of their own
    single = {bundle.vocab.token(token): token for token in range(bundle.vocab.size)}
    matcher = Matcher(bundle)
    assert all(matcher.try_advance(single[bytes([byte])]) for byte in text.encode())
    assert matcher.try_advance(bundle.vocab.end_of_turn[0])


WHY: list[tuple[Any, str, str | None]] = [
    # a schema without a value, the place, what is found there
    ({"allOf": [{}, False]}, "#", "false at #/allOf/1"),
    ({"allOf": [{"$ref": "#/$defs/a"}, {"type": "string"}], "$defs": {"a": False}}, "#", "false at #/allOf/0"),
    ({"$ref": "#/$defs/a", "$defs": {"a": False}}, "#", "a $ref to #/$defs/a, which is false"),
    ({"type": "object", "required": ["a"], "properties": {"a": {"allOf": [False]}}}, "#/properties/a",
     "false at #/properties/a/allOf/0"),
    ({"type": "string", "allOf": [*({"minLength": n} for n in range(40)), {"maxLength": 3}]}, "#",
     "type at #/type, minLength at #/allOf/39/minLength and maxLength at #/allOf/40/maxLength"),
    ({"type": "object", "required": ["z"], "allOf": [
        *({"properties": {f"p{n}": {"type": "string"}}, "minProperties": 1} for n in range(30)),
        {"properties": {"z": False}}]}, "#",
     "type at #/type, required at #/required and properties at #/allOf/30/properties"),
    (False, "#", None),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "place", "found"), WHY)
def test_what_has_no_value_says_why(schema: Any, place: str, found: str | None) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        schema_to_lark(schema)
    assert (caught.value.place, caught.value.found) == (place, found)
