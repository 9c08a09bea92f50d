"""GBNF and XGrammar's EBNF: what their texts mean, and errors that name the place.

The texts of a grammar are worked out by hand; where XGrammar is installed it is asked, too.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from toolc.compiler import compile_grammar
from toolc.compiler.dialects import SYNTAX_OF_SUFFIX, SYNTAXES, lark_text
from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError
from toolc.runtime.reference import Sequence

from .lr1_compare import compiled
from .test_compile_regex import accepts

LIST = '# words\nroot ::= item+\n\n# no line breaks\nitem ::= "- " [^\\r\\n\\x0b\\x85\\u2028]+ "\\n"\n'

# syntax, text, accepted, refused
ROWS = [
    ("gbnf", LIST, ["- a\n", "- ä b\n- c\n"], ["", "- \n", "- a", "- a\u2028\n", "-a\n"]),
    ("gbnf", 'root ::= ("a" |\n "b"\n | "c")* # end', ["", "abc"], ["d"]),
    ("gbnf", 'root ::= a-1 |\n  A-1 | 2x\na-1 ::= "x"\nA-1 ::= "y"\n2x ::= "z"', ["x", "y", "z"], ["xy"]),
    ("gbnf", 'root ::= | "a" start\nstart ::= "s"', ["", "as"], ["a", "s"]),
    ("gbnf", 'root ::= [a-c\\]\\-\\x41"]{2} [^a-z] .', ["a]A\n", '-"0ä'], ["a]a.", "aA"]),
    ("gbnf", 'root ::= "\\u00e4\\U0001F600\\t\\\\" "a\nb"', ["ä😀\t\\a\nb"], ["ä"]),
    ("gbnf", 'root ::= "a"{2} "b"{1,} "c"{0,2} "d"{0} "e"+?', ["aab", "aabbcce"], ["ab", "aac", "aabccc", "aabd"]),
    ("gbnf", 'root ::= "(" root ")" | ""', ["", "(())"], ["(()"]),
    ("gbnf", 'root ::= root "+" root | [0-9]', ["1+2+3"], ["1+"]),
    ("gbnf", "root ::= [+-] [a-]", ["+a", "--"], ["a+"]),
    ("ebnf", 'root ::= a\n | b\na ::= "x"? b ::= "y"'.replace(" b ::=", "\nb ::="), ["", "x", "y"], ["xy"]),
    ("ebnf", 'root ::= ("" | "-" _n.1) "\\x41b"\n_n.1[capture="n"] ::= [0-9]{2,}', ["\u041b"], ["Ab"]),
    ("ebnf", "root ::= [\\$\\.\\-a-c] () [^\\n\\e\\0]", ["$ü", "-a"], ["d", "a\n"]),
    ("ebnf", 'root ::= "\\"\\\'\\?\\a" (= "x")\n', ["\"'?\a"], ["x"]),
    ("ebnf", 'root ::= Regex("a\\\\d{2}|[^\\\\w]") "!"', ["a12!", "Ä!", "-!"], ["a1!", "a!"]),
    ("ebnf", 'root ::= "a" # one\n  # two\n\n  "b"*', ["a", "abb"], ["b"]),
]


@pytest.mark.parametrize(("syntax", "text", "accepted", "refused"), ROWS, ids=[repr(row[1])[:60] for row in ROWS])
def test_what_a_text_means(syntax: str, text: str, accepted: list[str], refused: list[str]) -> None:
    automaton = compiled(lark_text(text, syntax, f"g.{syntax}"))
    assert [accepts(automaton, one) for one in accepted] == [True] * len(accepted)
    assert [accepts(automaton, one) for one in refused] == [False] * len(refused)


def test_xgrammar_reads_ebnf_so() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    rng, letters = random.Random(7), "abxy019-$.!\n\"'AÄ"
    tokens = [bytes([byte]) for byte in range(256)] + [b"<eos>"]
    about = xgrammar.TokenizerInfo(tokens, vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[256])
    for syntax, text, accepted, refused in ROWS:
        if syntax != "ebnf":
            continue
        automaton = compiled(lark_text(text, syntax, "g"))
        theirs = xgrammar.GrammarCompiler(about).compile_grammar(text)
        noise = {"".join(rng.choice(letters) for _ in range(rng.randint(1, 5))) for _ in range(300)}
        for one in [*accepted, *refused, *sorted(noise)]:
            matcher = xgrammar.GrammarMatcher(theirs)
            wanted = (not one or matcher.accept_string(one)) and matcher.accept_token(256)
            assert accepts(automaton, one) == wanted, (text, one)


def test_rules_keep_their_lines() -> None:
    text = 'root ::= (\n "a" |\n b)\n# c\n\nb ::= "b"\n'
    assert lark_text(text, "gbnf", "g") == 'start: "a" | b\n\n\n\n\nb: "b"\n'
    unbounded = '# c\n\nroot ::= "a" root "a" | "b" root "b" | "a" | "b"\n'
    with pytest.raises(GrammarError, match=r"rule start \(p\.gbnf:3\)|at p\.gbnf:3"):
        compile_grammar(unbounded, "builtin", syntax="gbnf", name="p.gbnf")


def test_tokens_of_gbnf() -> None:
    sequence = Sequence.start(compile_grammar('root ::= <think> "x" </think>', "builtin", syntax="gbnf").bundle)
    special = sequence.bundle.vocab.special
    assert sequence.mask() == {special["<think>"]}


# syntax, text, error, words
REFUSED = [
    ("gbnf", 'root ::= "a', GrammarError, "1:10\n  a string without an end"),
    ("gbnf", "root ::= a b", GrammarError, "1:10\n  there is no rule a"),
    ("gbnf", 'root ::= "a"\n | "b"', GrammarError, "2:2\n  malformed grammar; found '|', expected the name of a rule"),
    ("gbnf", 'root ::= ("a"', GrammarError, "1:14\n  malformed grammar; found the end of the text, expected an item"),
    ("gbnf", "root ::= [z-a]", GrammarError, "1:11\n  malformed grammar; found 'z', expected a range"),
    ("gbnf", "root ::= []", GrammarError, "1:10\n  a class of no characters"),
    ("gbnf", "root ::= <[12]>", UnsupportedError, "1:10\n  a token by its id is not supported"),
    ("gbnf", "root ::= !<think>", UnsupportedError, "1:10\n  a negated token is not supported"),
    ("gbnf", 'rot ::= "a"', GrammarError, "there is no rule root to start from; found rot"),
    ("gbnf", 'root ::= "\\q"', GrammarError, "1:12\n  no escape of this language; found 'q'"),
    ("gbnf", 'root ::= "\\x4"', GrammarError, "1:11\n  no character"),
    ("gbnf", 'root ::= "\\ud800"', GrammarError, "1:11\n  no character"),
    ("gbnf", 'root ::= "a"{3,2}', GrammarError, "1:13\n  malformed grammar; found '{', expected {least,most}"),
    ("gbnf", 'root ::= "a"{,2}', GrammarError, "1:14\n  malformed grammar; found ',', expected a number"),
    ("gbnf", 'root ::= * "a"', GrammarError, "1:10\n  malformed grammar; found '*'"),
    ("gbnf", 'root ::= "a" )', GrammarError, "1:14\n  malformed grammar; found ')', expected an item, |"),
    ("gbnf", 'root := "a"', GrammarError, "1:6\n  malformed grammar; found ':', expected ::="),
    ("gbnf", 'root ::= "a"\nroot ::= "b"', GrammarError, "2:1\n  the rule root is defined twice"),
    ("gbnf", "root ::= " + "(" * 120, GrammarError, "expected at most 100 groups"),
    ("ebnf", "root ::= Token(3)", UnsupportedError, "1:10\n  Token is not supported"),
    ("ebnf", 'root ::= TagDispatch(("a", b))\nb ::= "x"', UnsupportedError, "1:10\n  TagDispatch is not supported"),
    ("ebnf", "root ::= [\\d]", UnsupportedError, "1:11\n  \\d in a class is not supported"),
    ("ebnf", 'a[max_tokens=3] ::= "x"\nroot ::= a', UnsupportedError, "1:2\n  max_tokens is not supported"),
    ("ebnf", 'root ::= Regex("(a")', GrammarError, "1:16 (character 3 of /(a/)"),
    ("ebnf", 'root ::= Regex("a", json_string=true)', UnsupportedError, "1:19\n  an argument of Regex"),
    ("ebnf", "root ::= true", GrammarError, "1:10\n  true is a word of the language"),
    ("ebnf", 'root ::= "a" }', GrammarError, "1:14\n  malformed grammar; found '}'"),
    ("ebnf", 'root ::= "a"+*', GrammarError, "1:14\n  malformed grammar; found '*'"),
]


@pytest.mark.parametrize(("syntax", "text", "error", "words"), REFUSED, ids=[repr(row[1])[:60] for row in REFUSED])
def test_what_is_refused_names_its_place(syntax: str, text: str, error: type[ToolcError], words: str) -> None:
    with pytest.raises(error) as caught:
        lark_text(text, syntax, "g.x")
    assert words in str(caught.value)
    if re.match(r"\d+:\d+", words):
        assert str(caught.value).startswith(f"at g.x:{words[: words.index(' ') + 1].split()[0]}")


def test_random_text_is_read_or_refused() -> None:
    rng, parts = random.Random(3), 'root ::= "a" [b-c] ( ) | * + ? { 2 , } \n # \\ < > ! . = - x " ]'.split(" ")
    for _ in range(3000):
        text = "root ::= " + " ".join(rng.choice(parts) for _ in range(rng.randint(0, 8)))
        for syntax in ("gbnf", "ebnf"):
            try:
                lark_text(text, syntax, "g")
            except (GrammarError, UnsupportedError) as error:
                assert error.place, text


def test_the_ending_of_a_file_says_what_it_is_written_in(tmp_path: Path) -> None:
    assert set(SYNTAX_OF_SUFFIX.values()) <= set(SYNTAXES)
    for syntax, text in (("gbnf", LIST), ("ebnf", LIST)):
        (tmp_path / f"list.{syntax}").write_text(text, encoding="utf-8")
        found = compile_grammar(str(tmp_path / f"list.{syntax}"), "builtin")
        assert found.bundle.meta["spec"]["name"] == f"list.{syntax}"
        assert found.grammar_text == lark_text(text, syntax, "")
