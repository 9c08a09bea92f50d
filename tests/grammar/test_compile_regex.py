"""Regular expressions that a whole text has to match: compile_regex against ``re.fullmatch`` and an ECMA-262 engine."""

from __future__ import annotations

import re

import pytest

from tests.automata.machine import Run
from toolc.compiler import compile_grammar, compile_regex
from toolc.compiler.dialects import lark_text
from toolc.compiler.dialects.regex import regex_text
from toolc.compiler.errors import ArgumentError, GrammarError, ToolcError, UnsatisfiableError, UnsupportedError
from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.reference import Sequence

from .lr1_compare import compiled, reads

# pattern, flags, texts
CASES = [
    (r"[a-z]+@[a-z]+\.com", "", ["a@b.com", "a@b.org", "a@b.com\n", ""]),
    ("", "", ["", "a"]),
    ("(abc)?", "", ["", "abc", "ab"]),
    ("^(abc)?$", "", ["", "abc", "abc\n", "ab"]),
    (r"a.*?b", "", ["ab", "aab", "abab", "aba"]),
    (r"(?=.*\d)(?=.*[a-z]).{3,8}", "", ["a1x", "1ab", "abc", "123", "a1", "a1bcdefgh"]),
    (r"(?!if\b|else\b)[a-z]+", "", ["iff", "if", "else", "elses", "e"]),
    (r"(?<!x)y|xy", "", ["y", "xy"]),
    (r"\bfoo\b.\bbar\b", "", ["foo bar", "foobar", "foo-bar"]),
    (r"ab|a|abc", "", ["a", "ab", "abc"]),
    (r"// [^\n]*/\"", "", ['// x/"', "// x/", "//"]),
    (r"ä+\u20ac\x41", "", ["ää€A", "a€A"]),
    (r"a b # c", "x", ["ab", "a b"]),
    (r"hallo.", "is", ["HALLO\n", "hallo", "Hallo!"]),
    (r"^a$\n^b$", "m", ["a\nb", "ab"]),
    (r"(?:a{2}){1,3}", "", ["aa", "aaaa", "aaa", "aaaaaaaa"]),
]


def accepts(automaton: object, text: str) -> bool:
    run = Run(automaton)  # type: ignore[arg-type]
    return all(reads(run, byte) and run.step(byte) for byte in text.encode()) and reads(run, END_OF_TURN)


@pytest.mark.parametrize(("pattern", "flags", "texts"), CASES, ids=[repr(case[0]) for case in CASES])
def test_what_python_matches_as_a_whole(pattern: str, flags: str, texts: list[str]) -> None:
    letters = [getattr(re, flag.upper()) for flag in flags]
    automaton = compiled(regex_text(pattern, flags))
    for text in texts:
        wanted = re.fullmatch(pattern, text, sum(letters, re.NOFLAG) if letters else 0) is not None
        assert accepts(automaton, text) == wanted, text


def test_what_ecma_262_matches_as_a_whole() -> None:
    regress = pytest.importorskip("regress")
    for pattern, texts in [(r"\p{Lu}\w*", ["Äb", "Ab", "ab"]), (r"[^]\d", ["\n1", "x٣"]), ("a$", ["a", "a\n"])]:
        automaton, judge = compiled(regex_text(pattern, dialect="ecma")), regress.Regex(f"^(?:{pattern})$", "u")
        assert [accepts(automaton, text) for text in texts] == [bool(judge.find(text)) for text in texts]


def test_masks_of_a_bundle() -> None:
    bundle = compile_regex(r"(?=.*\d)[a-z0-9]{4,6}", "builtin").bundle
    sequence = Sequence.start(bundle)
    for token in sorted(sequence.mask())[:5]:
        then = Sequence.start(bundle)
        then.advance(token)
        assert then.mask() == then.brute_mask()
    assert sequence.mask() == sequence.brute_mask()


def test_a_file_of_a_pattern_is_the_same(tmp_path: object) -> None:
    path = tmp_path / "word.regex"  # type: ignore[operator]
    path.write_text("[a-z]+\r\n", encoding="utf-8")
    from_file = compile_grammar(path, "builtin")
    assert from_file.grammar_text == compile_regex("[a-z]+", "builtin").grammar_text == "start: /[a-z]+/\n"
    assert compile_grammar("[a-z]+", "builtin", syntax="regex").bundle.meta["spec"]["name"] == "grammar.regex"
    assert compile_grammar(str(path), "builtin").bundle.meta["spec"]["name"] == "word.regex"


@pytest.mark.parametrize(
    ("pattern", "error", "words"),
    [
        ("a(b", GrammarError, "at regex, character 4 of /a(b/\n  missing ), unterminated group; found the end"),
        (r"(a*)\1", UnsupportedError, "at regex, character 5 of"),
        ("a{2,1}", GrammarError, "at regex, character"),
    ],
)
def test_errors_name_the_place(pattern: str, error: type[ToolcError], words: str) -> None:
    with pytest.raises(error) as caught:
        compile_regex(pattern, "builtin")
    assert words in str(caught.value)
    with pytest.raises(error, match=r"at p\.regex, character"):
        lark_text(pattern, "regex", "p.regex")


def test_what_must_follow_a_text_never_does() -> None:
    with pytest.raises(UnsatisfiableError, match="no text at all matches"):
        compile_regex("a(?=b)", "builtin")


def test_wrong_arguments_are_told() -> None:
    for call, words in [
        (lambda: compile_regex(re.compile("a"), "builtin"), "give its pattern"),  # type: ignore[arg-type]
        (lambda: compile_regex("a", "builtin", dialect="rust"), "found text 'rust', expected python or ecma"),
        (lambda: compile_grammar("a", "builtin", syntax="gnbf"), "compile_grammar(syntax)"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            call()
        assert words in str(caught.value)
    with pytest.raises(UnsupportedError, match="flag 'q'"):
        compile_regex("a", "builtin", flags="q")
