"""A grammar of pieces is that of the whole text; pieces are kept by content, and do not depend on what was before."""

from __future__ import annotations

import random
from typing import Any

import pytest

from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError, SchemaError
from toolc.compiler.grammar.assemble import Assembled
from toolc.compiler.grammar.cached_reader import inlined, read_pieces, shared
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.ir.nodes import Grammar, Literal, Mark, Ref, choice, renamed, sequence
from toolc.compiler.options import Options
from toolc.compiler.pipeline import grammar_of
from toolc.compiler.schema import cached_rules as pieces
from toolc.compiler.schema.report import pack
from toolc.compiler.specs import read_spec
from toolc.runtime.format.keyword_report import unpack

TREE = {"type": "object", "properties": {"left": {"$ref": "#"}, "text": {"type": "string", "pattern": "^/\\w+$"}}}
SCHEMAS: list[Any] = [
    {"type": "object"},
    {"type": "object", "properties": {"start": {}, "any": {"enum": ["any", "obj: /x/"]}, "n": {"type": "number"}}},
    TREE,
    {"type": "object", "properties": {"a": TREE["properties"]["text"], "b": {"type": "array"}}},
    {"anyOf": [{"type": "object", "properties": {"k": {"const": n}}, "required": ["k"]} for n in (1, 2)]},
    {"type": "object", "properties": {}, "additionalProperties": False},
    {"type": "object", "properties": {"place": {"$ref": "#/$defs/place"}}, "$defs": {"place": {"multipleOf": 3}}},
]
NAMES = ("start", "Any", "any", "look-up", "look_up", "text", "tool")


def tools(*numbers: int) -> list[dict[str, Any]]:
    return [{"name": NAMES[n], "parameters": SCHEMAS[n]} for n in numbers]


def assembled(*numbers: int, **options: Any) -> Assembled:
    return grammar_of(read_spec(tools(*numbers)), Options(protocol="hermes", **options))


def read(made: Assembled, budget: Budget | None = None) -> Grammar:
    return read_pieces(made.lark, made.rules, made.terminals, made.apart, "x", budget or Budget())


@pytest.mark.parametrize("options", [{}, {"whitespace": "compact"}, {"whitespace": "spaced", "named": False}], ids=str)
def test_the_sum_is_the_whole(options: dict[str, Any]) -> None:
    for numbers in (range(len(SCHEMAS)), reversed(range(len(SCHEMAS))), (5,), (0, 0)[:1]):
        made = assembled(*numbers, **options)
        whole, apart = read_grammar(made.text), read(made)
        assert not set(apart.rules) & set(apart.apart)
        assert whole.rules == inlined(apart).rules


def test_with_a_response() -> None:
    made = assembled(1, 5, response=SCHEMAS[1])
    assert read_grammar(made.text).rules == inlined(read(made)).rules


def test_equal_schemas_are_written_once() -> None:
    one, other = assembled(1, 2, 3), assembled(3, 5, 1)
    assert {root: piece for root, (piece, _) in one.apart.items() if root in other.apart} == {
        root: piece for root, (piece, _) in other.apart.items() if root in one.apart
    }
    root = "look_up"
    closed = [read(made).apart[root][0] for made in (one, other)]
    assert closed[0] is closed[1]
    assert assembled(1, whitespace=2).apart != assembled(1).apart


def test_a_piece_depends_on_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MOST_KEPT", 0)
    alone = [assembled(n) for n in range(len(SCHEMAS))]
    every = assembled(*range(len(SCHEMAS)))
    rows = [piece.rules for piece, _ in every.apart.values()]
    assert rows == [piece.rules for made in alone for piece, _ in made.apart.values()]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "_MOST_KEPT", 4000)
    for n in range(50):
        grammar_of(read_spec([{"name": "t", "parameters": {"properties": {f"key{n}": {"type": "string"}}}}]), Options())
    assert len(pieces._kept) < 40
    assert pieces._size_kept == sum(size for _, size in pieces._kept.values()) <= 4000


def test_places_are_those_of_this_spec() -> None:
    first, second = assembled(5, 1), assembled(1, 5)
    said = [{row[:3] for row in unpack(pack(made.told))} for made in (first, second)]
    assert ("spec#/0/parameters", "type", "enforced") in said[1]
    assert ("spec#/1/parameters/properties/n", "type", "enforced") in said[0]
    made = assembled(1, 2)
    assert set(made.every_place) <= {line.partition(":")[0] for line in made.text.splitlines()}
    assert made.every_place["any_2"] == "spec#/0/parameters"
    wrong = {"name": "wrong", "parameters": {"properties": {"x": {"minLength": "3"}}}}
    with pytest.raises(SchemaError) as caught:
        grammar_of(read_spec([*tools(1), wrong]), Options())
    assert caught.value.place == "spec#/1/parameters/properties/x/minLength"


def test_the_report_does_not_depend_on_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [assembled(*numbers) for numbers in ((5, 1, 2), (2, 1), (1,), (5, 1, 2))]
    monkeypatch.setattr(pieces, "_MOST_KEPT", 0)
    new = [assembled(*numbers) for numbers in ((5, 1, 2), (2, 1), (1,), (5, 1, 2))]
    for one, other in zip(kept, new, strict=True):
        assert (one.told, one.text, one.restrictions) == (other.told, other.text, other.restrictions)


def test_rules_of_one_content_are_one() -> None:
    def word(text: str) -> Any:
        return sequence(Literal(b"<"), Literal(text.encode()))

    rules = {
        "start": choice(Ref("a"), Ref("b"), Ref("c")),
        "a": sequence(Ref("x"), Literal(b"!")),
        "b": sequence(Ref("y"), Literal(b"!")),
        "c": sequence(Ref("z"), Literal(b"!")),
        "x": word("x"),
        "y": word("x"),
        "z": word("z"),
    }
    found = shared(Grammar(rules), Budget()).rules
    assert list(found) == ["start", "a", "c", "x", "z"]
    assert found["start"] == choice(Ref("a"), Ref("c"))
    marked = Grammar(rules, marks={"x": Mark("name")})
    assert shared(marked, Budget()).rules == rules


def in_rounds(grammar: Grammar) -> dict[str, Any]:
    """What `shared` leaves, one level of equal rules a round."""
    rules, known = grammar.rules, {grammar.start, *grammar.marks}
    while True:
        first: dict[Any, str] = {}
        some = ((rule, expr) for rule, expr in rules.items() if rule not in known)
        same = {rule: one for rule, expr in some if (one := first.setdefault(expr, rule)) != rule}
        if not same:
            return rules
        rules = {rule: renamed(expr, same) for rule, expr in rules.items() if rule not in same}


@pytest.mark.parametrize("seed", range(60))
def test_equal_rules_are_those_that_rounds_find(seed: int) -> None:
    """Also in circles, and where an alternative falls away because two became one."""
    rng = random.Random(seed)
    names = [f"r{n}" for n in range(rng.randint(2, 40))]

    def expr(depth: int) -> Any:
        kind = rng.random()
        if kind < 0.45 or not depth:
            return Ref(rng.choice(names))
        if kind < 0.65:
            return Literal(rng.choice([b"a", b"b"]))
        make = sequence if kind < 0.85 else choice
        return make(*[expr(depth - 1) for _ in range(rng.randint(2, 3))])

    rules = {"start": expr(1), **{name: expr(rng.randint(0, 2)) for name in names}}
    marks = {name: Mark("name") for name in names if rng.random() < 0.1}
    grammar = Grammar(rules, marks=marks)
    found = shared(grammar, Budget()).rules
    assert found == in_rounds(grammar)
    assert list(found) == list(in_rounds(grammar))


def test_reading_many_pieces_ends_with_the_budget() -> None:
    made = grammar_of(read_spec([{"name": "a", "parameters": TREE}]))
    assert made.apart
    with pytest.raises(BudgetError, match="limit of 0 seconds"):
        read(made, Budget(seconds=0))
