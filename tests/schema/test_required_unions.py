"""Objects of which some key of several is required: every subset of the keys against the oracle; and what they cost."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from toolc.compiler import compile_schema
from toolc.compiler.budget import Budget
from toolc.compiler.errors import UnsatisfiableError, UnsupportedError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown.interning import read_nodes
from toolc.compiler.schema import SchemaOptions, schema_to_lark
from toolc.compiler.terminals.terminal import terminal_dfa

from .judge import Judge
from .recogniser import Recogniser

KEYS = "abcde"


def _family(rng: random.Random) -> dict[str, Any]:
    """An object with alternatives of required keys, most of them one more than what all ask for."""
    common = rng.sample(KEYS, rng.choice([0, 0, 1, 2]))
    others = [key for key in KEYS if key not in common]
    sets = [[*common, key] for key in rng.sample(others, rng.randint(2, len(others)))]
    for _ in range(rng.choice([0, 0, 1, 2])):
        sets.insert(rng.randrange(len(sets)), rng.sample(KEYS, rng.randint(1, 4)))
    for one in sets:
        rng.shuffle(one)
    out: dict[str, Any] = {
        "type": "object",
        "properties": {key: rng.choice([{"const": 1}, {"const": 1}, True, {"type": "null"}]) for key in KEYS},
        rng.choice(["anyOf", "anyOf", "oneOf"]): [{"required": one} for one in sets],
    }
    if rng.random() < 0.3:
        out["properties"][rng.choice(KEYS)] = False
    for keyword, high in (("minProperties", 4), ("maxProperties", 5)):
        if rng.random() < 0.3:
            out[keyword] = rng.randint(1, high)
    if rng.random() < 0.6:
        out["additionalProperties"] = rng.choice([False, {"const": 1}])
    if rng.random() < 0.2:
        out["patternProperties"] = {"^[a-c]$": {"const": 1}}
    return out


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("seed", range(60))
def test_every_subset(seed: int, order: str) -> None:
    rng = random.Random(seed)
    schema = _family(rng)
    judge = Judge(schema)
    try:
        ours = Recogniser(schema_to_lark(schema, SchemaOptions(key_order=order, registers=False))[0])
    except UnsatisfiableError:
        ours = None
    for some in itertools.product([None, "1", "null"], repeat=len(KEYS)):
        members = [f'"{key}": {value}' for key, value in zip(KEYS, some, strict=True) if value is not None]
        for more in ([], ['"z": 1']):
            whole = [*members, *more]
            if order == "any":
                rng.shuffle(whole)
            text = "{" + ", ".join(whole) + "}"
            assert (ours is not None and ours.accepts(text)) == judge.accepts(text), (schema, text)


def test_what_would_be_too_large_stays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alternatives that are lists of keys need no automaton over members."""
    asked = [{"required": ["k0"]}, {"required": ["k1"]}]
    properties = {f"k{n}": {"const": 1} for n in range(60)}
    schema = {"type": "object", "properties": properties, "anyOf": asked}
    joined = Recogniser(schema_to_lark(schema)[0])
    monkeypatch.setattr("toolc.compiler.schema.required_unions.MAX_OBJECT_STATES", 120)
    monkeypatch.setattr("toolc.compiler.schema.member_automata.MAX_OBJECT_STATES", 120)
    apart = Recogniser(schema_to_lark(schema)[0])
    for text, valid in (
        ("{}", False),
        ('{"k1": 1}', True),
        ('{"k0": 1, "k59": 1, "z": 2}', True),
        ('{"k2": 1}', False),
    ):
        assert joined.accepts(text) is apart.accepts(text) is valid
    with pytest.raises(UnsupportedError) as caught:
        schema_to_lark({"type": "object", "properties": {"in": schema | {"minProperties": 3}}})
    assert caught.value.place == "#/properties/in"


def test_one_state_of_the_text_for_each_key_and_whether_one_was_there() -> None:
    def nodes(keys: int) -> int:
        names = [f"k{n}" for n in range(keys)]
        asked = [{"required": ["k3", name]} for name in names if name != "k3"]
        schema = {"type": "object", "properties": {name: {"const": 1} for name in names}, "anyOf": asked}
        return len(read_nodes(read_grammar(schema_to_lark(schema)[0]), Budget(), terminal_dfa).nodes)

    some, more, most = nodes(20), nodes(40), nodes(60)
    assert abs((most - more) - (more - some)) < 20


@pytest.mark.parametrize("counted", [{"minProperties": 2}, {"maxProperties": 3}, {"minProperties": 1}])
def test_counts_cost_a_key_the_same(counted: dict[str, int]) -> None:
    def states(keys: int) -> int:
        schema = {"type": "object", "properties": {f"k{n:02}": {"const": 1} for n in range(keys)}, **counted}
        return int(compile_schema(schema).report["counts"]["nfa_states"])

    some, more, most = states(20), states(40), states(60)
    assert most - more < 1.1 * (more - some)
