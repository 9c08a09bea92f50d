"""Definitions are parts that tools share; the masks stay those of the whole."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from toolc.compiler import Budget, stages
from toolc.compiler.errors import BudgetError, UnsatisfiableError
from toolc.compiler.link import definitions, link, stubs
from toolc.compiler.passes import Pass, without
from toolc.runtime import Matcher, subset

from .test_link import bits, choose, compare, compiled, forget, own_cache, tool, whole

__all__ = ["own_cache"]


def closed(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


PLACE = closed({"city": {"type": "string"}, "zip": {"type": "integer"}, "kind": {"enum": ["home", "work"]}}, "city")
PERSON = closed({"name": {"type": "string", "maxLength": 9}, "place": PLACE, "tags": {"type": "array", "items": PLACE}})
ORDER = closed({"who": PERSON, "to": PLACE, "any": {}}, "who")
COUNTED = closed({"people": {"type": "array", "items": PERSON, "minItems": 1, "maxItems": 3}})
CHOICE = closed({"one": {"anyOf": [PERSON, ORDER, {"type": "null"}]}, "place": PLACE})
BESIDE = {"oneOf": [closed({"to": PERSON, "a": {}}, "a"), closed({"to": ORDER, "b": {}}, "b")]}
SPEC = [tool(f"tool_{n}", one) for n, one in enumerate([PERSON, ORDER, COUNTED, CHOICE, closed({"x": PERSON}), ORDER])]
EITHER = {
    "maybe": {"anyOf": [PERSON, {"type": "null"}]},
    "all": {"anyOf": [{"type": "string"}, {"type": "array", "items": PLACE}, PLACE]},
    "some": {"oneOf": [{"type": "array", "items": PERSON, "maxItems": 2}, {"type": "integer"}]},
}
CASES = [
    *SPEC,
    tool("beside", closed({"x": BESIDE})),
    tool("open", {"type": "object", "properties": {"who": PERSON}}),
    tool("either", closed(EITHER)),
]

NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}, "n": {"type": "integer"}}}
TREE = {"type": "object", "properties": {"nodes": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small objects are definitions."""
    monkeypatch.setattr(definitions, "WORTH", 8)


def parts(spec: list[dict[str, Any]], **options: Any) -> int:
    forget()
    found = compiled(spec, **options).report["parts"]
    assert found is not None
    return int(found["all"])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"protocol": "json"},
        {"protocol": "qwen3_coder"},
        {"protocol": "pythonic"},
        {"protocol": "mistral", "whitespace": "compact"},
        {"response": ORDER},
    ],
    ids=str,
)
def test_masks_are_those_of_the_whole(options: dict[str, Any]) -> None:
    made, other = compiled(CASES, **options), whole(CASES, **options)
    assert made.report["parts"] is not None
    met: set[int] = set()
    for n in range(40):
        met |= compare(made.bundle, other, f"{options} {n}", 60, brute=n < 4)
    assert len(met) > 100


def test_a_definition_is_one_part() -> None:
    first = parts([tool("a", ORDER)])
    assert first == 4  # arguments, person, place, any JSON
    assert parts([tool("a", ORDER), tool("b", closed({"x": PERSON, "y": PLACE}))]) == first + 1
    with without(Pass.DEFINITIONS):
        assert parts([tool("a", ORDER)]) == 2


def test_a_definition_is_compiled_once() -> None:
    """Whatever tool had it first."""
    compiled([tool("a", ORDER)])
    found = compiled([tool("b", closed({"x": PERSON, "y": PLACE}))]).report["parts"]
    assert found == {"all": 3, "reused": 2}


def test_one_of_several_alternatives_is_a_part() -> None:
    """An object or an array beside a string or null, which tools share whatever stands beside it."""
    both = {"type": "array", "items": {"anyOf": [ORDER, PLACE]}}
    for one, found in ((PLACE, 1), (both, 4)):  # place; an array, and in it person, place and any JSON
        spec = [
            tool(f"t{n}", closed({"x": {"anyOf": [one, other]}}))
            for n, other in enumerate([{"type": "null"}, {"type": "string"}, {"type": "boolean"}])
        ]
        assert parts(spec) == 3 + found
        further = tool("u", closed({"y": {"anyOf": [{"type": "integer"}, one]}}))
        assert compiled([further]).report["parts"] == {"all": 1 + found, "reused": found}


def test_an_alternative_that_recurs_is_no_part_of_its_own() -> None:
    tree = {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Tree"}}, {"type": "null"}, PERSON]}
    spec = [tool("t", {**closed({"a": {"$ref": "#/$defs/Tree"}}), "$defs": {"Tree": tree}})]
    made, other = compiled(spec).bundle, whole(spec)
    for n in range(10):
        compare(made, other, f"tree {n}", 60, brute=n < 2)


def test_an_alternative_that_no_text_has_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an automaton shows that patterns contradict each other; the tool keeps its other alternatives."""
    never = {"type": "string", "maxLength": 4000, "allOf": [{"pattern": f"^({x})+$"} for x in ("a|b", "a|c", "b|c")]}
    dead = closed({"never": never, **{f"k{n}": {"type": "integer"} for n in range(9)}}, "never")
    spec = [tool("f", closed({"o": {"anyOf": [dead, PLACE, {"type": "boolean"}]}})), tool("g", closed({"x": PERSON}))]
    for skip in (False, True):
        forget()
        made = compiled(spec, skip=skip)
        assert made.report["parts"] is not None
        assert not made.report["skipped"]
        other = whole(spec)
        for n in range(10):
            compare(made.bundle, other, f"dead {n}", 60, brute=n < 2)
    only = [tool("f", closed({"o": dead}, "o")), spec[1]]
    with pytest.raises(UnsatisfiableError, match=r"#/0/function/parameters/properties/o"):
        compiled(only)
    monkeypatch.setattr(stages, "_as_a_whole", None)  # not tried: it could only be refused, too
    assert [one["tool"] for one in compiled(only, skip=True).report["skipped"]] == ["f"]


def test_an_alternative_that_passes_a_limit_has_its_place() -> None:
    """Also where the tool was compiled before with a higher limit."""
    heavy = {"type": "string", "pattern": "^(c|d)*c(c|d){9}$"}
    big = closed({"heavy": heavy, **{f"k{n}": {"type": "integer"} for n in range(9)}})
    spec = [tool("t", closed({"x": {"anyOf": [big, {"type": "null"}]}}))]
    compiled(spec)
    for _ in range(2):
        with pytest.raises(BudgetError, match=r"(?s)#/0/function/parameters/properties/x.*--skip t is left out"):
            compiled([*spec, tool("g", PLACE)], budget=Budget(states=900))
        forget()


def test_a_rule_that_has_the_name_already_stays() -> None:
    """Indented JSON has copies of rules, one for each depth."""
    either = {"anyOf": [*(closed({f"{x}{n}": {"type": "integer"} for n in range(9)}) for x in "abc"), {"type": "null"}]}
    inner = closed({"r": {"$ref": "#/$defs/X"}, "l": {"type": "array", "items": {"$ref": "#/$defs/X"}}})
    spec = [tool("t", {**closed({"p": {"$ref": "#/$defs/X"}, "q": inner}), "$defs": {"X": either}})]
    made, other = compiled(spec, whitespace="pretty").bundle, whole(spec, whitespace="pretty")
    for n in range(10):
        compare(made, other, f"pretty {n}", 60, brute=n < 2)


def test_what_cannot_be_a_part_is_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """No automaton is made in vain where items are counted, or alternatives begin with one bracket."""
    said: list[str] = []

    class Counted(stubs.Apart):
        def __init__(self, why: str) -> None:
            super().__init__(why)
            said.append(why)

    for module in (stubs, link):
        monkeypatch.setattr(module, "Apart", Counted)
    for schema in (COUNTED, CHOICE):
        compiled([tool("t", schema)])
    assert not said
    compiled([tool("t", closed({"x": BESIDE}))])  # two values of one key: only the automaton shows it
    assert len(said) == 1


@pytest.mark.parametrize("first", ["Node", "Tree"])
def test_definitions_that_recur_are_one_part_in_any_order(first: str) -> None:
    """A tool meets the node before the tree, another the tree before the node, each under names of its own."""
    defs = {"Node": {**NODE, "additionalProperties": False}, "Tree": {**TREE, "additionalProperties": False}}
    spec = [
        tool(f"{n}", {**closed({f"k{n}": {"$ref": f"#/$defs/{name}"}, "z": {"$ref": "#/$defs/Tree"}}), "$defs": defs})
        for n, name in enumerate([first, "Tree", "Node"])
    ]
    assert parts(spec) == 4  # arguments of three tools, and the definitions
    made, other = compiled(spec).bundle, whole(spec)
    for n in range(20):
        compare(made, other, f"recurs {first} {n}", 60, brute=n < 4)


def test_subsets_and_budgets() -> None:
    made, other = compiled(CASES).bundle, whole(CASES)
    for n, chosen in enumerate((["tool_0"], ["tool_1", "beside"], ["tool_2", "open"])):
        some, wanted = subset(made, chosen), subset(other, chosen)
        for k in range(10):
            compare(some, wanted, f"subset {n} {k}", 50)
    for n in range(20):
        rng = random.Random(f"budget {n}")
        entry = rng.choice(sorted(made.entry))
        least = made.min_tokens[entry]
        assert least is not None and least <= 2 * (other.min_tokens[entry] or 0)
        matcher = Matcher(made, entry, budget=least + rng.randrange(40))
        while not matcher.is_finished:
            assert matcher.left is not None and matcher.left > 0
            matcher.advance(choose(np.flatnonzero(bits(matcher)), made, rng))


def test_definitions_that_derive_the_same_are_one() -> None:
    """Two that recur, under two names each."""
    nodes = {
        name: {**closed({"next": {"$ref": f"#/$defs/{other}"}, "n": {"type": "integer"}}), "description": name}
        for name, other in (("A", "B"), ("B", "A"))
    }
    spec = [tool("t", {**closed({"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/B"}}), "$defs": nodes})]
    assert parts(spec) == 2
    made, other = compiled(spec).bundle, whole(spec)
    for n in range(10):
        compare(made, other, f"same {n}", 60, brute=n < 2)
