"""Optional items that begin alike, read as one, against the same grammar as it is written."""

from __future__ import annotations

import random

import pytest

from toolc.compiler.automata import pushdown
from toolc.compiler.automata.interning import read_nodes
from toolc.compiler.automata.optionals import share_commas
from toolc.compiler.automata.pushdown import build_automaton
from toolc.compiler.automata.terminal import terminal_dfa
from toolc.compiler.budget import Budget
from toolc.compiler.grammar.reader import read_grammar

from .machine import accepts, members, mutate, random_text

RULES = '_c: " "~0..3 "," " "~0..3\n_d: ";"\nlist: "[" (one (_c one)* (_c "k")?)? "]"\none: "1" | list\n'


def _items(rng: random.Random) -> str:
    """Items of a sequence, many of them optional, most behind a comma."""
    out = []
    for _ in range(rng.randint(2, 9)):
        comma = rng.choice(["_c", "_c", "_c", "_d", ""])
        text = rng.choice(['"a"', '"b"', '"ab"', '"c" one', "list", '("d" | )', '"a" _c "b"'])
        out.append(f"({comma} {text}){rng.choice(['?', '?', '?', '?', '*', '', '~0..2'])}")
    return " ".join(out)


@pytest.mark.parametrize("seed", range(120))
def test_the_texts_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    text = f'start: "{{" {_items(rng)} "}}"\n{RULES}'
    shared = build_automaton(read_grammar(text))
    monkeypatch.setattr(pushdown, "share_commas", lambda pool: None)
    plain = build_automaton(read_grammar(text))
    found = [t for a in (plain, shared) for _ in range(40) if (t := random_text(a, rng, 40)) is not None]
    assert found
    for one in found:
        for near in (one, *(mutate(one, rng) for _ in range(4))):
            assert accepts(plain, near) == accepts(shared, near), near


@pytest.mark.parametrize("required", ["first", "last", "middle"])
@pytest.mark.parametrize("more", ["", '(_c "z" one)*'])
def test_optional_keys_cost_the_same_each(required: str, more: str) -> None:
    def keys(count: int) -> str:
        some = [f'(_c "k{n}" one)?' for n in range(count)]
        some.insert({"first": 0, "last": count, "middle": count // 2}[required], '_c "m" one')
        return f'start: "{{" "s" {" ".join(some)} {more} "}}"\n{RULES}'

    some = members(keys(60), share_commas)
    assert members(keys(120), share_commas) < 2.2 * some
    assert members(keys(60)) > (3 if required != "last" else 1.5) * some


def test_the_choices_of_a_run_are_linear() -> None:
    text = f'start: "{{" "s" {" ".join(f"(_c {chr(34)}k{n}{chr(34)})?" for n in range(200))} "}}"\n{RULES}'
    pool = read_nodes(read_grammar(text), Budget(), terminal_dfa)
    share_commas(pool)
    assert sum(len(pool.children(n)) for n in range(len(pool.nodes))) < 20 * 200
