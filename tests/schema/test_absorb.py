"""Shapes inside of others of a union, against all pairs of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from toolc.compiler.budget import Budget
from toolc.compiler.errors import ToolcError
from toolc.compiler.schema import normalise, schema_to_lark
from toolc.compiler.schema.absorb import MOST, absorbed, contains
from toolc.compiler.schema.shapes import Numbers, Shape


def _by_pairs(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    kept: list[Shape] = []
    for index, shape in enumerate(shapes):
        later = shapes[index + 1 :]
        if not any(contains(other, shape) for other in kept) and not any(
            contains(other, shape) and not contains(shape, other) for other in later
        ):
            kept.append(shape)
    return tuple(kept)


def _value(rng: random.Random) -> Any:
    return rng.choice([
        True, False, {"const": rng.randrange(3)}, {"type": "integer"}, {"type": "string"}, {},
        {"type": "string", "pattern": rng.choice(["^a", "b$", "c"])}, {"type": "integer", "minimum": rng.randrange(3)},
    ])  # fmt: skip


def _schema(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["object", "object", "array", "string"])
    may: dict[str, dict[str, Any]] = {
        "object": {
            "properties": {key: _value(rng) for key in rng.sample("abc", rng.randrange(4))},
            "required": rng.sample("abcd", rng.randrange(3)), "additionalProperties": _value(rng),
            "maxProperties": rng.randrange(4),
        },
        "array": {
            "prefixItems": [_value(rng) for _ in range(rng.randrange(1, 3))], "items": _value(rng),
            "maxItems": rng.randrange(4), "minItems": rng.randrange(3),
        },
        "string": {
            "pattern": rng.choice(["^a", "b$", "c"]), "maxLength": rng.randrange(1, 4),
            "not": {"enum": rng.sample("abc", rng.randrange(1, 3))},
        },
    }  # fmt: skip
    return {"type": kind} | {keyword: value for keyword, value in may[kind].items() if rng.random() < 0.6}


@pytest.mark.parametrize("seed", range(8))
def test_as_by_pairs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = 0

    def both(kind: str, shapes: tuple[Shape, ...], budget: Budget) -> tuple[Shape, ...]:
        nonlocal dropped
        found = absorbed(kind, shapes, budget)
        if kind not in ("null", "boolean"):
            assert found == _by_pairs(shapes)
        dropped += len(shapes) - len(found)
        return found

    monkeypatch.setattr(normalise, "absorbed", both)
    rng = random.Random(seed)
    for _ in range(120):
        union = {rng.choice(["anyOf", "anyOf", "oneOf"]): [_schema(rng) for _ in range(rng.randrange(2, 7))]}
        try:
            schema_to_lark(union)
        except ToolcError:  # nothing satisfies it, or it multiplies
            continue
    assert dropped > 8


def test_alternatives_that_a_constant_tells_apart_are_not_compared_with_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    def counted(big: Shape, small: Shape) -> bool:
        nonlocal asked
        asked += 1
        return contains(big, small)

    monkeypatch.setattr("toolc.compiler.schema.absorb.contains", counted)
    objects = [
        {"type": "object", "properties": {"kind": {"const": n}, "v": {}}, "required": ["kind"]} for n in range(300)
    ]
    arrays = [{"type": "array", "prefixItems": [{"const": n}], "minItems": 1} for n in range(300)]
    schema_to_lark({"anyOf": objects + arrays})
    assert asked < 1000


@pytest.mark.parametrize(
    "one",
    [
        lambda n: {"const": {"a": n}},
        lambda n: {"const": [n]},
        lambda n: {"minimum": 3 * n, "maximum": 3 * n + 1, "type": "integer"},
    ],
)
def test_of_many_that_nothing_tells_apart_none_is_compared(one: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolc.compiler.schema.absorb.contains", lambda big, small: pytest.fail("all are alike"))
    assert absorbed("number", tuple(Numbers(low=n) for n in range(MOST + 1)))
    schema_to_lark({"anyOf": [one(n) for n in range(MOST + 1)]})
