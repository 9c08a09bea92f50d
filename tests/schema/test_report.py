"""The keyword report: what it says of every keyword, its packed form, and what bundles carry of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler.errors import BundleError
from toolc.compiler.schema import SchemaOptions, schema_to_lark
from toolc.compiler.schema.keywords import KEYWORDS
from toolc.compiler.schema.report import Row, at, pack, told, unpack

SCHEMA: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "t",
    "type": "object",
    "properties": {
        "a/b": {"type": "integer", "minimum": 3, "dependentRequired": {}},
        "day": {"type": "string", "format": "hostname", "examples": ["x"]},
        "at": {"format": "date"},
        "kind": {"enum": [{"x": 1, "y": 2}, 3], "format": "colour"},
        "many": {"type": "array", "uniqueItems": True, "maxItems": 3},
    },
}


def report(schema: Any, **options: Any) -> dict[tuple[str, str], tuple[str, tuple[str, ...]]]:
    _, writer = schema_to_lark(schema, SchemaOptions(lenient=True, **options))
    return {(place, keyword): (status, names) for place, keyword, status, names in writer.report()}


def test_statuses_and_restrictions() -> None:
    found = report(SCHEMA)
    assert found["#", "title"] == ("annotation", ())
    assert found["#/properties/a~1b", "minimum"] == ("enforced", ("digits",))
    assert found["#/properties/a~1b", "dependentRequired"] == ("annotation", ())  # draft 7 has none
    assert found["#/properties/a~1b", "type"] == ("enforced", ("plain-integers", "digits"))
    assert found["#/properties/day", "format"] == ("enforced", ("minimal-escapes", "formats"))
    assert found["#/properties/at", "format"] == ("enforced", ("minimal-escapes",))
    assert found["#/properties/day", "examples"][0] == found["#/properties/kind", "format"][0] == "annotation"
    assert found["#/properties/kind", "enum"] == ("enforced", ("minimal-escapes", "key-order", "digits"))
    assert found["#/properties/many", "uniqueItems"] == ("dropped", ())
    assert "key-order" in found["#", "properties"][1]


def test_only_restrictions_that_are_in_force() -> None:
    del (schema := json.loads(json.dumps(SCHEMA)))["properties"]["many"]
    assert "key-order" not in {name for _, names in report(schema, key_order="any").values() for name in names}


def test_every_keyword_that_is_met_is_reported_once() -> None:
    def met(schema: Any, at: str) -> list[tuple[str, str]]:
        if not isinstance(schema, dict):
            return []
        below = [f for name, inner in schema.get("properties", {}).items()
                 for f in met(inner, f"{at}/properties/{name.replace('/', '~1')}")]  # fmt: skip
        return [(at, keyword) for keyword in schema] + below

    _, writer = schema_to_lark(SCHEMA, SchemaOptions(lenient=True))
    rows = [(place, keyword) for place, keyword, _, _ in writer.report()]
    assert sorted(rows) == sorted(met(SCHEMA, "#"))


words = st.text(max_size=8)
rows = st.lists(
    st.tuples(words, st.sampled_from(list(KEYWORDS)), st.sampled_from(["enforced", "annotation"]),
              st.lists(words, max_size=2).map(tuple)),
    unique_by=lambda row: row[:2],
)  # fmt: skip


@given(rows)
def test_packing_keeps_the_rows(rows: list[Row]) -> None:
    packed = json.loads(json.dumps(pack([("", told(rows, ()))])))
    grouped = {place: [row for row in rows if row[0] == place] for place, *_ in rows}
    assert list(unpack(packed)) == [row for group in grouped.values() for row in group]


@given(st.lists(rows, max_size=4))
def test_reports_side_by_side_are_packed_as_one(reports: list[list[Row]]) -> None:
    """Each below an origin of its own."""
    below = [[(f"#/{place}", *row) for place, *row in rows] for rows in reports]
    apart = [(f"spec#/tools/{n}", told(rows, ())) for n, rows in enumerate(below)]
    whole = [(at(f"spec#/tools/{n}", place), *row) for n, rows in enumerate(below) for place, *row in rows]
    assert pack(apart) == pack([("", told(whole, ()))])


@pytest.mark.parametrize(
    "packed",
    [None, 3, [], [[]], [[], [0, "a", 0]], [[[]], [1, "a", 0]], [[[["a"]]], [0, "a", 0]], [[[]], [0, "a"]],
     [[[]], ["0", "a", 0]], [[[]], [0, "a", -1]]],
)  # fmt: skip
def test_damaged_reports_are_refused(packed: Any) -> None:
    with pytest.raises(BundleError):
        unpack(packed)


def test_bundles_carry_it() -> None:
    from toolc.compiler import Options, compile_schema

    bundle = compile_schema(SCHEMA, options=Options(lenient=True)).bundle
    rows = unpack(bundle.meta["report"])
    assert ("schema#/properties/many", "uniqueItems", "dropped", ()) in rows
    assert len(json.dumps(bundle.meta["report"])) < 1500
