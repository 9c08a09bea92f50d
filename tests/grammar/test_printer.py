"""Expressions as Lark text: Lark reads them as what they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.expressions import plain
from toolc.compiler import regex as rx
from toolc.compiler.grammar.reader import LarkText
from toolc.compiler.ir.nodes import (
    EMPTY,
    NOTHING,
    Expr,
    Ref,
    Use,
    choice,
    matched,
    optional,
    rebuilt,
    repeated,
    sequence,
    size_of,
    string,
)
from toolc.compiler.ir.printer import lines_of, rules_text

TEXTS = ["a", '"', '\\"', "\\", '"a\\\\"', "\n", "/", "//x", "é", "\x85", "i", "|", "(a)", "~2", "#", " ", '"a"i']
LEAVES: list[Expr] = [*map(string, TEXTS), Ref("other"), EMPTY, NOTHING]
COUNTS = [(0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, None), (0, 5), (0, 0), (1, 1)]


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    some = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        some.map(lambda items: sequence(*items)),
        some.map(lambda items: choice(*items)),
        st.tuples(inner, st.sampled_from(COUNTS)).map(lambda pair: repeated(pair[0], *pair[1])),
        inner.map(optional),
    )


def _leaves() -> st.SearchStrategy[Expr]:
    atoms = st.one_of(st.sampled_from(LEAVES), plain(4).map(lambda regex: matched(rx.shortest(regex))))
    arguments = atoms.filter(lambda atom: atom not in (EMPTY, NOTHING))
    return st.one_of(atoms, arguments.map(lambda atom: Use("twice", (atom, Ref("other")))))


def _read(expr: Expr) -> Expr:
    text = rules_text({"start": expr, "other": string("x")}) + "twice{one, two}: one two one\n"
    return LarkText(text, "x").body("start")


@given(st.recursive(_leaves(), _grow, max_leaves=8))
def test_lark_reads_what_was_printed(expr: Expr) -> None:
    assert _read(expr) == expr
    assert rebuilt(expr, lambda part: part) == expr
    assert size_of(expr) > 0


@pytest.mark.parametrize("text", TEXTS)
def test_texts(text: str) -> None:
    assert _read(string(text)) == string(text)
    assert _read(Use("twice", (string(text), string(text)))) == Use("twice", (string(text), string(text)))


def test_many_alternatives_have_a_line_each() -> None:
    few, many = (choice(*[string(f"{n}") for n in range(count)]) for count in (8, 9))
    for expr, lines in ((few, 1), (many, 9), (optional(many), 10)):
        assert lines_of(expr) == lines == rules_text({"start": expr}).count("\n")
        assert _read(expr) == expr
