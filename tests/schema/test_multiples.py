"""Multiples against exact arithmetic: every small number, bounds, complements, enums."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from toolc.compiler.errors import UnsatisfiableError
from toolc.compiler.schema import schema_to_lark
from toolc.compiler.schema.report import keyword_report

from .recogniser import Compiled

TEXTS = [f"{sign}{whole}{fraction}" for sign in ("", "-") for whole in (*range(31), 99, 100, 105, 120, 1000)
         for fraction in ("", ".0", ".5", ".25", ".10", ".05", ".3")]  # fmt: skip

CASES: list[dict[str, Any]] = [
    {"multipleOf": 2},
    {"multipleOf": 7, "maximum": 99999, "minimum": -999},
    {"multipleOf": 0.5},
    {"multipleOf": 0.05},
    {"multipleOf": 2.5, "minimum": -7.5, "exclusiveMaximum": 100},
    {"multipleOf": 3, "type": "integer", "minimum": 5, "maximum": 105},
    {"not": {"multipleOf": 3}, "type": "number"},
    {"not": {"multipleOf": 0.5}, "type": "number", "minimum": 3},
    {"allOf": [{"multipleOf": 2}, {"multipleOf": 3}], "type": "number", "maximum": 9999},
    {"multipleOf": 5, "not": {"multipleOf": 10}, "type": "integer"},
    {"not": {"type": "integer"}, "type": "number", "minimum": 1, "maximum": 3},
    {"multipleOf": 1, "type": "integer"},
]


def holds(schema: dict[str, Any], value: Decimal) -> bool:
    """A judge of its own, in decimals."""
    checks = {
        "multipleOf": lambda of: value % Decimal(str(of)) == 0,
        "minimum": lambda low: value >= Decimal(str(low)),
        "maximum": lambda high: value <= Decimal(str(high)),
        "exclusiveMaximum": lambda high: value < Decimal(str(high)),
        "type": lambda name: name == "number" or value % 1 == 0,
        "not": lambda inner: not holds(inner, value),
        "allOf": lambda parts: all(holds(part, value) for part in parts),
    }
    return all(checks[keyword](operand) for keyword, operand in schema.items())


@pytest.mark.parametrize("schema", CASES, ids=str)
def test_multiples(schema: dict[str, Any]) -> None:
    ours = Compiled(schema_to_lark(schema)[0])
    for text in TEXTS:
        plain = schema.get("type") == "integer" and "." in text  # plain-integers
        assert ours.accepts(text) == (holds(schema, Decimal(text)) and not plain), (schema, text)
    for text in ("", "-", "1.", ".5", "00", "1e1"):
        assert not ours.accepts(text)


SAME = {"type": "number", "minimum": 3, "maximum": 3}
NONE: list[tuple[dict[str, Any], list[str], list[str]]] = [
    ({"oneOf": [{"type": "integer"}, SAME]}, ["2", "-4", "30"], ["3", "2.5", "3.0"]),
    ({"anyOf": [{"type": "null"}, {**SAME, "not": {"type": "integer"}}]}, ["null"], ["3", "3.5"]),
    ({"if": {"type": "integer"}, "then": {"minimum": 0}, "else": SAME}, ["0", "7"], ["-1", "2.5"]),
    ({"type": "array", "items": SAME, "contains": {"type": "integer"}, "minContains": 0, "maxContains": 0}, ["[]"],
     ["[3]", "[3.5]"]),
    ({"anyOf": [{"type": "null"}, {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e-25,
                                   "not": {"type": "integer"}}]}, ["null"], ["0", "0.1"]),
]  # fmt: skip


@pytest.mark.parametrize("schema, good, bad", NONE)
def test_bounds_between_which_is_no_fraction(schema: dict[str, Any], good: list[str], bad: list[str]) -> None:
    ours = Compiled(schema_to_lark(schema)[0])
    assert [text for text in good + bad if ours.accepts(text)] == good
    with pytest.raises(UnsatisfiableError):
        schema_to_lark({**SAME, "not": {"type": "integer"}})


def test_multiples_of_one_are_reported_as_integers() -> None:
    for factor, expected in ((1, True), (1.0, True), (2, False)):
        text, writer = schema_to_lark({"multipleOf": factor, "type": ["number", "null"], "minimum": 3})
        (row,) = [row for row in keyword_report(*writer.met, writer.restrictions) if row[1] == "multipleOf"]
        assert ("plain-integers" in row[3]) == expected
        assert Compiled(text).accepts("4.0") != expected


def test_multiples_in_enums_and_large() -> None:
    ours = Compiled(schema_to_lark({"enum": [1, 1.5, 3, "x"], "multipleOf": 1.5})[0])
    assert [text for text in ("1", "1.5", "3", '"x"') if ours.accepts(text)] == ["1.5", "3", '"x"']
    ours = Compiled(schema_to_lark({"type": "integer", "multipleOf": 1000})[0])
    assert ours.accepts("123456789000") and not ours.accepts("123456789100") and ours.accepts("0")
