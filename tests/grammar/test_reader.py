"""The reader against Lark's own Earley parser, and its errors."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import lark
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cases.grammar_errors import GRAMMAR_ERRORS
from tests.cases.lark_grammars import LARK_GRAMMARS as GRAMMARS
from tests.grammar.recognise import accepts
from toolc.compiler.errors import GrammarError, ToolcError
from toolc.compiler.grammar.analysis import nullable, productive, reachable, recursive_components
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.ir.nodes import Choice, Grammar, Literal, Ref, Repeat, Sequence, Terminal
from toolc.compiler.ir.printer import text_of


@cache
def _pair(number: int) -> tuple[Grammar, lark.Lark]:
    text = GRAMMARS[number][1]
    return read_grammar(text), lark.Lark(text, parser="earley", lexer="dynamic_complete")


def _lark_accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


@pytest.mark.parametrize("number", range(len(GRAMMARS)), ids=[row[0] for row in GRAMMARS])
@settings(suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_same_language_as_lark(number: int, data: st.DataObject) -> None:
    grammar, parser = _pair(number)
    _, _, alphabet, worth = GRAMMARS[number]
    edit = st.tuples(st.sampled_from(worth), st.integers(0, 12), st.sampled_from(["", *alphabet]))
    near = edit.map(lambda e: e[0][: e[1]] + e[2] + e[0][e[1] + 1 :])
    for text in [*worth, data.draw(st.text(alphabet, max_size=6)), data.draw(near), data.draw(near)]:
        assert accepts(grammar, text) == _lark_accepts(parser, text), text


@pytest.mark.parametrize(("name", "text", "kind", "place", "words"), GRAMMAR_ERRORS, ids=[r[0] for r in GRAMMAR_ERRORS])
def test_malformed(name: str, text: str, kind: type[ToolcError], place: str, words: str) -> None:
    with pytest.raises(kind) as caught:
        read_grammar(text, "bad.lark")
    at = caught.value.place or ""
    assert at.startswith(place if place.startswith("rule") else "bad.lark" + place + (" (" if "(" in at else "")), at
    assert words in str(caught.value)
    if place.startswith(":"):
        assert "^" in (caught.value.hint or "")


@pytest.mark.parametrize("rest", ["", '%ignore " "', "%import common.INT -> A_B"])
def test_terminals_that_are_indented_do_not_use_themselves(rest: str) -> None:
    text = f'A: "a" # B\n  B.2: A "//" /B/ // B\n\tC: "B" (A\n    | B)\nstart: C A\n{rest}\n'
    assert accepts(read_grammar(text), "Ba//Ba")


@pytest.mark.parametrize("body", ['["x"]', '(["x"])', "[/x/]", '["x"i]'])
def test_a_terminal_that_is_one_optional_part_may_be_empty(body: str) -> None:
    grammar = read_grammar(f'start: "<" T ">"\nT: {body}\n')
    assert accepts(grammar, "<>") and accepts(grammar, "<x>") and not accepts(grammar, "<xx>")


def test_shapes() -> None:
    grammar = read_grammar(
        """
        start: "a"~0..1000000 WORD KEY /abc/ "x"i | other
        other: "(" other ")" | "y"
        WORD: /[a-z]+/
        KEY: "k" "l"
        """
    )
    first, other = grammar.rules["start"].options  # type: ignore[union-attr]
    assert first.items[0] == Repeat(Literal(b"a"), 0, 1000000)
    assert isinstance(first.items[1], Terminal) and first.items[1].name == "WORD"
    assert first.items[2:4] == (Literal(b"kl"), Literal(b"abc"))
    assert isinstance(first.items[4], Terminal)
    assert other == Ref("other")
    assert grammar.place("other") == "rule other (<grammar>:3)"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ('start: a{"x"}\na{y}: b{y, "c"}\nb{p, q}: p q p\n', {"start": '"x" "c" "x"'}),
        (
            'start: a{b{"x"}}\na{y}: y y\nb{y}: y "1"\n',
            {"start": 'a{b{"x"}}', 'b{"x"}': '"x" "1"', 'a{b{"x"}}': 'b{"x"} b{"x"}'},
        ),
        ('start: a{"x"} | b\na{y}: y y\nb: a{"x"}\n', {"start": 'a{"x"} | b', "b": 'a{"x"}', 'a{"x"}': '"x" "x"'}),
        ('start: a\na: t{"x"}\nt{y}: y t{y}?\n', {"start": "a", "a": 't{"x"}', 't{"x"}': '"x" t{"x"}?'}),
        ('start: a b\na: t{"x"}\nb: t{"x"}\nt{y}: y "z"\n', {"start": "a b", "a": '"x" "z"', "b": '"x" "z"'}),
        (
            'start: t{"x"}\nt{value_of_a_parameter}: value_of_a_parameter\n',
            {"start": 't{"x"}', 't{"x"}': '"x"'},
        ),
    ],
    ids=["twice over", "an argument is one", "known before", "in itself", "each for itself", "marked"],
)
def test_a_rule_that_is_one_use_of_a_template_is_what_it_says(text: str, rules: dict[str, str]) -> None:
    assert {rule: text_of(expr) for rule, expr in read_grammar(text).rules.items()} == rules


def test_direct_left_recursion_becomes_a_repeat() -> None:
    grammar = read_grammar('start: start "x" | start "y" "z" | "a" | "b"')
    assert grammar.rules["start"] == Sequence(
        (
            Choice((Literal(b"a"), Literal(b"b"))),
            Repeat(Choice((Literal(b"x"), Sequence((Literal(b"y"), Literal(b"z"))))), 0, None),
        )
    )


def test_right_recursion_stays() -> None:
    grammar = read_grammar('start: "x" start | "y"')
    assert recursive_components(grammar) == [["start"]]


def test_imports_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "part.lark").write_text('thing: "t" other\nother: "o"\nunused: "u"\n', encoding="utf-8")
    grammar = read_grammar("%import part.thing\nstart: thing", import_paths=[tmp_path])
    assert accepts(grammar, "to") and not accepts(grammar, "t")
    assert not any("unused" in name for name in grammar.rules)


DOUBLES = "".join(f"{{0}}{n}: {{0}}{n + 1} {{0}}{n + 1}\n" for n in range(12))


def test_uses_in_imported_terminals_count(tmp_path: Path) -> None:
    (tmp_path / "low.lark").write_text(DOUBLES.format("A") + 'A12: "a"\n', encoding="utf-8")
    middle = "%import .low.A0 -> LOW\n%import .low (A1, A11)\n" + DOUBLES.format("B") + "B12: {}\n"
    path, text = tmp_path / "middle.lark", "%import .middle (B0)\nstart: B0 B0\n"
    path.write_text(middle.format("LOW"), encoding="utf-8")
    with pytest.raises(GrammarError, match="terminal B8 has more than 100,000 uses") as caught:
        read_grammar(text, str(tmp_path / "high.lark"))
    assert caught.value.place == f"{path}:11:1"
    path.write_text(middle.format("A11"), encoding="utf-8")
    assert accepts(read_grammar(text, str(tmp_path / "high.lark")), "a" * (1 << 14))


def test_an_override_ends_a_circle_of_terminals() -> None:
    assert accepts(read_grammar('A: B "a"\nB: A\n%override B: "b"\nstart: A\n'), "ba")


@pytest.mark.parametrize(
    ("text", "words"),
    [(b"\xff\xfeA: B", "not UTF-8; found part.lark"), (b"%import .other (B)\nA: B", "imported by what it imports")],
)
def test_files_that_cannot_be_imported(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "part.lark").write_bytes(text)
    (tmp_path / "other.lark").write_text("%import .part (A)\nB: A\n", encoding="utf-8")
    with pytest.raises(GrammarError, match=words) as caught:
        read_grammar("start: A\n%import .part.A", str(tmp_path / "high.lark"))
    assert (caught.value.place or "").endswith((":2:10", "other.lark:1:10")) and "^" in (caught.value.hint or "")


def test_analysis() -> None:
    grammar = read_grammar('start: a b?\na: b* | c\nb: "x" a\nc: c\nd: "d"')
    assert nullable(grammar) == {"start", "a"}
    assert productive(grammar) == {"start", "a", "b", "d"}
    assert reachable(grammar) == ["start", "a", "b", "c"]
    assert recursive_components(grammar) == [["a", "b"]]
    assert text_of(grammar.rules["start"]).startswith("a b?")
