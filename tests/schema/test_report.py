"""The keyword report: what it says of every keyword, its packed form, and what bundles carry of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.errors import BundleError
from toolc.compiler.options import RELAXABLE
from toolc.compiler.schema import SchemaOptions, schema_to_lark
from toolc.compiler.schema.keywords import KEYWORDS
from toolc.compiler.schema.report import at, pack, told
from toolc.runtime import Matcher
from toolc.runtime.format.keyword_report import Row, unpack

from .recogniser import Compiled

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
    _, writer = schema_to_lark(schema, SchemaOptions(relax=RELAXABLE, **options))
    return {(place, keyword): (status, names) for place, keyword, status, names in writer.report()}


def test_statuses_and_restrictions() -> None:
    found = report(SCHEMA)
    assert found["#", "title"] == ("annotation", ())
    assert found["#/properties/a~1b", "minimum"] == ("enforced", ("digits", "plain-bounds"))
    assert found["#/properties/a~1b", "dependentRequired"] == ("later", ())  # draft 7 has none
    assert found["#/properties/a~1b", "type"] == ("enforced", ("plain-integers", "digits"))
    assert found["#/properties/day", "format"] == ("enforced", ("minimal-escapes", "formats"))
    assert found["#/properties/at", "format"] == ("enforced", ("minimal-escapes",))
    assert found["#/properties/day", "examples"][0] == found["#/properties/kind", "format"][0] == "annotation"
    assert found["#/properties/kind", "enum"] == (
        "enforced",
        ("minimal-escapes", "key-order", "plain-integers", "plain-bounds"),
    )
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

    _, writer = schema_to_lark(SCHEMA, SchemaOptions(relax=RELAXABLE))
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


@pytest.mark.parametrize(
    ("value", "names", "spelled", "left_out"),
    [
        (1, ("plain-integers", "plain-bounds"), ["1"], ["1.0", "1e0", "10e-1"]),
        (1.0, ("digits", "plain-bounds"), ["1", "1.0", "1.00"], ["1e0", "1.0e0", "1." + "0" * 21]),
        (1e3, ("digits", "plain-bounds"), ["1000", "1000.0"], ["1e3", "1.0e3"]),
        (1.5, ("digits", "plain-bounds"), ["1.5", "1.50"], ["1.5e0", "15e-1", "1.5" + "0" * 20]),
        (1e-7, ("digits", "plain-bounds"), ["0.0000001"], ["1e-7"]),
        (0, ("plain-integers", "plain-bounds"), ["0", "-0"], ["0.0", "0e0"]),
    ],
)
def test_what_is_left_out_of_a_number_that_is_given(
    value: float, names: tuple[str, ...], spelled: list[str], left_out: list[str]
) -> None:
    """Alone, in a list, in an object; what is left out has the constant's value, so a restriction has to say so."""
    for keyword, held in (("const", value), ("enum", [value, "x"]), ("const", [value]), ("enum", [{"a": value}])):
        text, writer = schema_to_lark({keyword: held})
        assert set(names) <= writer.restrictions
        ((_, _, status, told_names),) = writer.report()
        assert status == "enforced" and [name for name in told_names if name in names] == list(names)
        around = json.dumps(held if keyword == "const" else held[0]).replace(json.dumps(value), "%s")
        ours = Compiled(text)
        assert [one for one in spelled if not ours.accepts(around % one)] == []
        assert [one for one in left_out if ours.accepts(around % one)] == []
        assert {float(one) for one in spelled + left_out} == {value}


def test_a_bundle_says_where_nesting_is_bounded() -> None:
    recurs, flat = {"type": "array", "items": {"$ref": "#"}}, {"type": "array", "items": {"type": "integer"}}
    for schema, named in ((recurs, True), ({}, True), ({"type": "object"}, True), (flat, False)):
        compiled = compile_schema(schema, options=Options(soft_depth=8))
        assert compiled.report["restrictions"] == compiled.bundle.meta["restrictions"]
        assert ("depth" in compiled.report["restrictions"]) is named
    for depth in (8, 9, 10, 12):
        text = b"[" * depth + b"]" * depth
        bundle = compile_schema(recurs, options=Options(soft_depth=8)).bundle
        assert (Matcher(bundle).advance_bytes(text) == len(text)) is (depth <= 9)
    for inner, named in (({}, True), (flat, False)):
        arguments = {"type": "object", "properties": {"x": inner}, "additionalProperties": False}
        bundle = compile_tools([{"name": "a", "input_schema": arguments}]).bundle
        assert ("depth" in bundle.meta["restrictions"]) is named


def test_bundles_carry_it() -> None:
    bundle = compile_schema(SCHEMA, options=Options(lenient=True)).bundle
    rows = unpack(bundle.meta["report"])
    assert ("schema#/properties/many", "uniqueItems", "dropped", ()) in rows
    assert len(json.dumps(bundle.meta["report"])) < 1500
