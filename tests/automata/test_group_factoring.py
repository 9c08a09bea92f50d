"""Factored alternatives against the alternatives as they stand: the same texts."""

from __future__ import annotations

import itertools
import random

import pytest

from toolc.compiler import compile_schema
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown import pushdown
from toolc.compiler.pushdown.group_factoring import factor

from .machine import accepts, mutate, random_text

# Three members, the second of which may be missing, each of one of several kinds; then others, by keys that overlap.
_BODIES = [
    f'"{{" "x:" {a} "," ("y:" {b} ",")? "z:" {c} "," (KEY{n % 4} ":" VALUE ",")* "}}"'
    for n, (a, b, c) in enumerate(itertools.product(["A", "B", "VALUE"], ["A", "VALUE"], ["A", "B", "one"]))
]
_OBJECTS = f"""
start: one
one: {" | ".join(_BODIES)} | VALUE
A: /a+/
B: /b+|aa/
VALUE: /[a-c]+/
KEY0: /(?!x:)[a-z]+/
KEY1: /(?!y$|z$)[a-z]+/
KEY2: /[a-z]+/
KEY3: /[x-z]/
"""


def test_the_same_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = read_grammar(_OBJECTS)
    merged: list[int] = []

    def counting(pool, budget):  # type: ignore[no-untyped-def]
        before = len(pool.rules)
        factor(pool, budget)
        merged.append(len(pool.rules) - before)

    monkeypatch.setattr(pushdown, "factor", counting)
    factored = pushdown.build_automaton(grammar)
    assert merged == [merged[0]] and merged[0] > 10
    monkeypatch.setattr(pushdown, "factor", lambda pool, budget: None)
    plain = pushdown.build_automaton(grammar)
    rng = random.Random(7)
    texts = {t for a in (plain, factored) for _ in range(150) if (t := random_text(a, rng, 80)) is not None}
    texts |= {mutate(text, rng) for text in sorted(texts) for _ in range(4)}
    judged = [0, 0]
    for text in sorted(texts):
        expected = accepts(plain, text)
        assert accepts(factored, text) == expected, text
        judged[expected] += 1
    assert min(judged) > 50


def language(rng: random.Random, brackets: str, depth: int) -> str:
    """A Lark expression of groups in brackets of a few kinds, several of each, and items in them."""
    some = []
    for _ in range(rng.randint(2, 5)):
        opening, closing = rng.choice([brackets[n : n + 2] for n in range(0, len(brackets), 2)])
        items = [rng.choice(['"a"', '"b"', '"c"?', '("," "a")*', "value?"]) for _ in range(rng.randint(0, 3))]
        if depth and rng.random() < 0.3:
            items.append(f"({language(rng, brackets, depth - 1)})")
        some.append(f'"{opening}" {" ".join(items)} "{closing}"')
    return " | ".join(some)


@pytest.mark.parametrize("seed", range(40))
def test_groups_of_several_kinds_in_one_rule(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    grammar = read_grammar(f'start: value\nvalue: "0" | {language(rng, "[]{}()", 1)}\n')
    factored = pushdown.build_automaton(grammar)
    monkeypatch.setattr(pushdown, "factor", lambda pool, budget: None)
    plain = pushdown.build_automaton(grammar)
    texts = {t for a in (plain, factored) for _ in range(60) if (t := random_text(a, rng, 30)) is not None}
    texts |= {mutate(text, rng) for text in sorted(texts) for _ in range(3)}
    assert [t for t in sorted(texts) if accepts(plain, t) != accepts(factored, t)] == []


@pytest.mark.parametrize("closed", [False, True])
def test_one_key_at_least_grows_evenly(closed: bool) -> None:
    """Bodies that ask for a key each: which of the keys were there does not matter, only whether one was."""

    def states(keys: int) -> int:
        schema = {
            "type": "object",
            "properties": {f"p{n}": {"type": "boolean"} for n in range(keys)},
            "anyOf": [{"required": [f"p{n}"]} for n in range(keys)],
        } | ({"additionalProperties": False} if closed else {})
        return int(compile_schema(schema).report["counts"]["states"])

    three, six, nine = states(3), states(6), states(9)
    assert nine - six <= six - three + 10


def test_what_never_meets_is_not_cut() -> None:
    """Objects that a first member tells apart: what each leaves open is not cut by the keys of all others."""

    def states(count: int) -> int:
        tagged = [
            {"type": "object", "properties": {"kind": {"const": f"k{n}"}, f"p{n}": {}}, "required": ["kind"]}
            for n in range(count)
        ]
        return int(compile_schema({"oneOf": tagged}).report["counts"]["states"])

    ten, twenty, thirty = states(10), states(20), states(30)
    assert thirty - twenty < 1.1 * (twenty - ten)


def test_what_meets_once_parts_are_cut_is_cut() -> None:
    """Loops that are met only behind a member that is one of two loops' keys."""
    bodies = ['"x:1," (KEY0 ":1,")* "y" (KEY2 ":2,")*', '(KEY1 ":1,")* "z" (KEY3 ":2,")*', '"x:1," (KEY3 ":1,")* "w"']
    text = "start: " + " | ".join(f'"{{" {body} "}}"' for body in bodies) + _OBJECTS[_OBJECTS.index("\nKEY0") :]
    grammar = read_grammar(text)
    factored = pushdown.build_automaton(grammar)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pushdown, "factor", lambda pool, budget: None)
        plain = pushdown.build_automaton(grammar)
    rng = random.Random(3)
    texts = {t for a in (plain, factored) for _ in range(150) if (t := random_text(a, rng, 60)) is not None}
    texts |= {mutate(text, rng) for text in sorted(texts) for _ in range(4)}
    assert [t for t in sorted(texts) if accepts(plain, t) != accepts(factored, t)] == []
    assert any(accepts(plain, t) for t in texts)
