"""The automaton against the grammar: what is derived is read, what is read is derived, near misses are judged alike."""

from __future__ import annotations

import random
from itertools import chain, product

import pytest

from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError, GrammarError, UnsatisfiableError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown.pushdown import _classes, build_automaton

from ..cases.grammars import GRAMMARS
from ..grammar.recognise import accepts as derives
from .machine import Run, accepts, derive, mutate, random_text


@pytest.mark.parametrize("name", sorted(GRAMMARS))
def test_language(name: str) -> None:
    grammar = read_grammar(GRAMMARS[name])
    automaton = build_automaton(grammar)
    rng = random.Random(name)
    derived = {text for _ in range(60) if (text := derive(grammar, rng)) is not None and len(text) < 300}
    assert derived
    for text in derived:
        assert accepts(automaton, text), text
    read = {text for _ in range(40) if (text := random_text(automaton, rng, 120)) is not None}
    for text in read:
        assert derives(grammar, text.decode()), text
    judged = [0, 0]
    for text in sorted(derived | read):
        for _ in range(3):
            near = mutate(text, rng)
            try:
                expected = len(near) < 200 and derives(grammar, near.decode())
            except UnicodeDecodeError:
                expected = False
            if len(near) < 200:
                assert accepts(automaton, near) == expected, near
                judged[expected] += 1
    assert judged[0] and (judged[1] or name in ("enum-of-objects", "literals"))


def test_beyond_the_soft_depth_only_texts_of_least_height() -> None:
    automaton = build_automaton(read_grammar(GRAMMARS["any-json"]), soft_depth=3)
    assert automaton.modes == 2
    assert accepts(automaton, b"[[[1]]]") and accepts(automaton, b"[[[[]]]]") and accepts(automaton, b'[[[{"a":1}]]]')
    assert not accepts(automaton, b"[[[[[]]]]]")
    rng, deepest = random.Random(5), 0
    for _ in range(50):
        run = Run(automaton)
        for _ in range(300):  # a model that loves to open
            symbols = run.symbols()
            assert symbols
            opens = [s for s in symbols if s < 256 and chr(s) in "[{"]
            run.step(rng.choice(opens or symbols))
            if run.state == 1:
                break
        deepest = max(deepest, run.deepest)
    assert deepest == 3 + automaton.shallow_height


@pytest.mark.parametrize(
    "text",
    [
        'start: "\\"" start "\\"" | "x"',
        'start: string\nstring: "\\"" (CHAR | "$" string)* "\\""\nCHAR: /[x-z]/',
        'start: "\\"" ("x" | "$" q start q | "z") "\\"" | "x"\nq: "\\""',
        'start: "\\"" "x" a "\\"" | "x"\na: "$" "\\"" start "\\"" | "\\"" "x" "\\""',
    ],
    ids=["alone", "among characters", "in others", "through a rule"],
)
def test_recursion_between_quotes(text: str) -> None:
    grammar = read_grammar(text)
    automaton = build_automaton(grammar, budget=Budget(states=100))
    for near in map("".join, chain.from_iterable(product('"x$', repeat=n) for n in range(8))):
        assert accepts(automaton, near.encode()) == derives(grammar, near), near


def test_a_grammar_with_a_depth_of_its_own_has_one_mode() -> None:
    automaton = build_automaton(read_grammar(GRAMMARS["any-of-objects"]))
    assert (automaton.modes, automaton.soft_depth) == (1, 3)


REFUSED = {
    "recursion in the middle": (
        'start: A start A | "x"\nA: /[a-c]/',
        GrammarError,
        "start",
        "contains itself with text",
    ),
    "one pushes, one stays": (
        'start: list | /\\[[0-9]\\]/\nlist: "[" list* "]"',
        GrammarError,
        "rule list",
        "plain text",
    ),
    "nothing matches": ('start: "a" b\nb: "x" b', UnsatisfiableError, "rule b", "no text"),
    "an empty terminal": ('start: "a" B\nB: /x(?=y)/', UnsatisfiableError, "start", "no text"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refusals_name_the_rule(name: str) -> None:
    text, kind, place, message = REFUSED[name]
    with pytest.raises(kind) as caught:
        build_automaton(read_grammar(text))
    assert place in (caught.value.place or "") or place in caught.value.message
    assert message in str(caught.value)


def test_budgets() -> None:
    grammar = read_grammar('start: "x" A\nA: /[a-z]{4000}/')
    with pytest.raises(BudgetError, match="1,000 states"):
        build_automaton(grammar, budget=Budget(states=1000))
    with pytest.raises(BudgetError, match="seconds"):
        build_automaton(read_grammar(GRAMMARS["any-json"]), budget=Budget(seconds=0))


def test_a_budget_names_the_rule_that_grew() -> None:
    text = """start: "[" a "," _b "," c "]"
    a: "{" /[a-z]{3}/ "}"
    _b: " " | "  "
    c: "{" /x(aa|b){9}y/ _b /(x[a-z]{0,2}y){19}/ "}"
    """
    with pytest.raises(BudgetError, match="100 states") as caught:
        build_automaton(read_grammar(text), budget=Budget(states=100))
    assert caught.value.place == "rule c (<grammar>:4)"


def test_a_million_characters_cost_no_more_than_a_hundred() -> None:
    one, many = (
        build_automaton(read_grammar(f'start: "\\"" C~0..{n} "\\""\nC: /[^"]/')).counts for n in (100, 1_000_000)
    )
    assert one == many


@pytest.mark.parametrize("item", ['"ab"', "/[a-f]+/", 'k ":" v', '"{" k "}"'])
def test_what_is_read_once_and_then_again_is_one_copy(item: str) -> None:
    """``X (, X)*`` has the states of ``X`` once, and so as many as ``X`` and a comma."""
    rules = f'\nx: {item}\nk: "p" | "q"\nv: "r" k\n'
    once = build_automaton(read_grammar('start: "<" x ">"' + rules))
    again = build_automaton(read_grammar('start: "<" x ("," x)* ">"' + rules))
    assert again.state_row.size <= once.state_row.size + 1
    assert again.stack_symbols == once.stack_symbols


def test_symbols_share_a_class_where_every_mask_treats_them_alike() -> None:
    rng = random.Random(5)
    for specials in (0, 3, 40):
        symbols = 257 + specials
        masks = [sum(1 << s for s in rng.sample(range(symbols), rng.choice([1, 2, 90, 250]))) for _ in range(12)]
        symbol_class, of_mask, offset = _classes(masks, specials)
        alike: dict[tuple[int, ...], int] = {}
        expected = [alike.setdefault(tuple(mask >> s & 1 for mask in masks), len(alike)) for s in range(symbols)]
        assert symbol_class.tolist() == expected
        for n, mask in enumerate(masks):
            found = of_mask[offset[n] : offset[n + 1]].tolist()
            assert found == sorted({expected[s] for s in range(symbols) if mask >> s & 1})
