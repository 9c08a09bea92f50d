"""Grammars whose recursion no brackets enclose: exact, or refused with two texts that begin alike and part."""

from __future__ import annotations

import random
import re

import lark
import pytest

from tests.automata.machine import Run
from tests.grammar.lr1 import lark_text, random_lr1
from tests.grammar.lr1_compare import as_written, compiled, first_difference, reads
from tests.grammar.recognise import accepts as derives
from toolc.compiler.errors import GrammarError, SpecError
from toolc.compiler.options import Options
from toolc.compiler.pipeline import compile_grammar, compile_schema
from toolc.compiler.pushdown.pushdown import Automaton
from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.reference import Sequence

EXACT = {
    "words as brackets": 'start: "begin " (start ";")* "end" | ID\nID: "x"',
    "words as brackets that a name may be": 'start: "begin " (start ";")* "end" | ID\nID: /[a-z]+/',
    "as many": 'start: "a" start "b" | "ab"',
    "as many, or none": 'start: "a" start "b" |',
    "twice as many of one, or as many of another": 'start: x | y\nx: "aa" x "b" | "aab"\ny: "a" y "c" | "ac"',
    "one half needs no stack": 'start: x | y\nx: "a" x "b" | "d"\ny: "a" y | "e"',
    "operators, ambiguous": 'start: "-" start | start "?" start ":" start | "n"',
    "operators in rules of their own": 'start: b | u | "n" | "(" start ")"\nb: start "+" start\nu: "-" start',
    "operators by precedence": 'start: t ("+" t)*\nt: f ("*" f)*\nf: "n" | "(" start ")" | "-" f',
    "postfix": 'start: start start "+" | "n"',
    "an operand that an operator begins with": 'start: start start "ba" | "b"',
    "left and middle recursion": 'start: s\ns: s "(" s "]" | s "<" s ">" |',
    "left recursion through three rules": 'start: a "x" | "y"\na: b "z" | "w"\nb: start "v" | a "u"',
    "tags": 'start: "<b>" start* "</b>" | "<i>" start* "</i>" | "t"',
    "if and fi": 'start: "if " start " then " start (" elif " start " then " start)* (" else " start)? " fi" | "x"',
    "open end": 'start: "i" start "e" start | "x" start | "y"',
    "words between operators": 'start: start " and " start | "not " start | V\nV: /[a-z]/',
    "prefix of another": 'start: "if" start "fi" | "ifn" start "fi" | "x"',
    "counted": 'start: "a"~2 start "b"~3 | "c"',
    "ignored": 'start: "begin" start* "end" ";" | "x" ";"\n%ignore " "',
}

UNBOUNDED = {
    "palindrome": 'start: "a" start "a" | "b" start "b" | "a" | "b"',
    "one or two": 'start: x "!" | y "?"\nx: "a" x "b" | "ab"\ny: "a" y "bb" | "abb"',
    "else of any if": 'start: s+\ns: "i" s ("e" s)? | "x" | "{" s* "}"',
}


def walk(automaton: Automaton, rng: random.Random, steps: int) -> tuple[str, bool, int]:
    """A random text by an automaton, whether it is whole, and the most frames there were; never stuck."""
    run, out = Run(automaton), ""
    for _ in range(steps):
        symbols = [s for s in range(256) if reads(run, s)]
        ends = reads(run, END_OF_TURN)
        assert symbols or ends, out
        if ends and (not symbols or rng.random() < 0.2):
            return out, True, run.deepest
        symbol = rng.choice(symbols)
        assert run.step(symbol)
        out += chr(symbol)
    return out, False, run.deepest


@pytest.mark.parametrize("name", EXACT)
def test_every_text_that_is_written_is_derived_and_reads_back(name: str) -> None:
    rng, grammar, seen = random.Random(name), as_written(EXACT[name]), 0
    automaton, shallow = compiled(EXACT[name]), compiled(EXACT[name], Options(soft_depth=6))
    for _ in range(40):
        out, whole, _ = walk(shallow, rng, 30)
        if not whole:
            continue
        seen += 1
        assert derives(grammar, out), out
        for near in {out[:-1], out + out[-1:], out[1:], out.replace("a", "b", 1), out * 2}:
            run = Run(automaton)
            found = all(reads(run, byte) and run.step(byte) for byte in near.encode()) and reads(run, END_OF_TURN)
            assert found == derives(grammar, near), near
    assert seen > 5


@pytest.mark.parametrize("name", EXACT)
def test_masks_are_what_every_token_tried_allows(name: str) -> None:
    rng, bundle = random.Random(name), compile_grammar(EXACT[name], "builtin", options=Options(soft_depth=2)).bundle
    for _ in range(4):
        sequence = Sequence.start(bundle, budget=rng.choice([None, bundle.min_tokens["start"] + 8]))
        for _ in range(12):
            mask = sequence.mask()
            assert mask == sequence.brute_mask()
            sequence.advance(rng.choice(sorted(sequence.mask_in_budget())))
            if sequence.may_end and sequence.state == 1:
                break


def test_beyond_the_soft_depth_only_what_closes_soonest() -> None:
    rng = random.Random(3)
    for text in EXACT.values():
        shallow = compiled(text, Options(soft_depth=3))
        for _ in range(5):
            *_, deepest = walk(shallow, rng, 60)
            assert deepest <= shallow.soft_depth + shallow.shallow_height + 1


def test_random_grammars_are_exact() -> None:
    rng, refused = random.Random(43), 0
    for number in range(500):
        rules = random_lr1(rng)
        try:
            automaton = compiled(lark_text(rules))
        except GrammarError as error:
            assert "--max-depth" in str(error)
            refused += 1
            continue
        difference = first_difference(automaton, rules, rng, 300 if number % 10 == 0 else 40)
        assert difference is None, (difference, lark_text(rules))
    assert refused <= 10


def test_random_grammars_read_what_lark_reads() -> None:
    rng = random.Random(44)
    for _ in range(25):
        text = lark_text(random_lr1(rng))
        try:
            automaton = compiled(text)
        except GrammarError:
            continue
        shallow = compiled(text, Options(soft_depth=4))
        letters = sorted(set(re.findall(r'"(.)"', text)))
        parsers = [lark.Lark(text, parser="earley", lexer="dynamic_complete")]
        try:
            parsers.append(lark.Lark(text, parser="lalr"))
        except lark.exceptions.GrammarError:  # LR(1), not LALR(1)
            assert "Reduce/Reduce" in text or parsers
        for _ in range(40):
            sample = "".join(rng.choice(letters) for _ in range(rng.randint(0, 6)))
            if rng.random() < 0.5:
                sample = walk(shallow, rng, 12)[0]
            run = Run(automaton)
            found = all(reads(run, byte) and run.step(byte) for byte in sample.encode()) and reads(run, END_OF_TURN)
            for parser in parsers:
                try:
                    parser.parse(sample)
                    assert found, (sample, text)
                except lark.exceptions.LarkError:
                    assert not found, (sample, text)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_no_stack_can_follow_is_refused_with_two_texts(name: str) -> None:
    with pytest.raises(GrammarError, match="--max-depth") as info:
        compiled(UNBOUNDED[name])
    error = info.value
    begin = re.search(r"behind '(\w+)'", error.message)
    texts = re.findall(r"'(\w+[!?]?)'", error.found or "")
    assert begin is not None and texts
    assert all(one.startswith(begin[1]) and derives(as_written(UNBOUNDED[name]), one) for one in texts)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_depth_makes_it_exact_as_deep_as_that(name: str) -> None:
    rng, grammar, options = random.Random(name), as_written(UNBOUNDED[name]), Options(max_depth=3)
    automaton = compiled(UNBOUNDED[name], options)
    assert automaton.restrictions == ("max-depth",)
    for _ in range(30):
        out, whole, _ = walk(automaton, rng, 40)
        assert not whole or derives(grammar, out)
    shallow = {"palindrome": "abaaaba", "one or two": "aaabbbbbb?", "else of any if": "iiixex{iixe{x}}"}[name]
    run = Run(automaton)
    assert all(reads(run, byte) and run.step(byte) for byte in shallow.encode()) and reads(run, END_OF_TURN)
    assert derives(grammar, shallow)


def test_what_compiles_without_a_depth_is_not_limited_by_one() -> None:
    automaton = compiled(EXACT["as many"], Options(max_depth=1))
    assert automaton.restrictions == ()
    run = Run(automaton)
    assert all(run.step(byte) for byte in b"a" * 20 + b"b" * 20)


PROGRAMS = r"""
start: "program " NAME ";\n" block "."
block: "begin\n" (stmt ";\n")* "end"
stmt: NAME " := " e | "if " e " then " stmt " else " stmt | "while " e " do " stmt | block
    | "repeat\n" (stmt ";\n")* "until " e
e: e ("+"|"-"|"*"|"<") e | "-" e | NAME | INT | "(" e ")"
NAME: /[a-z][a-z0-9]*/
INT: /[0-9]+/
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("program p;\nbegin\nend.", True),
        ("program p;\nbegin\nx := -(1+y)*2;\nif x<3 then begin\nend else while x do y := 1;\nend.", True),
        ("program p;\nbegin\nrepeat\nbegin\nend;\nrepeat\nuntil a;\nuntil b<c;\nend.", True),
        ("program p;\nbegin\nif x then y := 1;\nend.", False),
        ("program p;\nbegin\nbegin\nend.", False),
        ("program p;\nbegin\nrepeat\nend;\nend.", False),
        ("program p;\nbegin\nx := (1+2;\nend.", False),
    ],
)
def test_a_small_language(text: str, wanted: bool) -> None:
    run = Run(compiled(PROGRAMS))
    assert (all(reads(run, byte) and run.step(byte) for byte in text.encode()) and reads(run, END_OF_TURN)) == wanted


def test_a_depth_is_an_option_of_grammars_alone() -> None:
    with pytest.raises(SpecError, match="max_depth"):
        compile_schema({"type": "string"}, "builtin", options=Options(max_depth=2))
    deep = compile_grammar(UNBOUNDED["one or two"], "builtin", options=Options(max_depth=2))
    assert deep.bundle.meta["options"]["max_depth"] == 2 and deep.report["restrictions"] == ["depth", "max-depth"]
    assert "max_depth" not in compile_grammar(EXACT["as many"], "builtin").bundle.meta["options"]
