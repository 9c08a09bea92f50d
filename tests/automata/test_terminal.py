"""Terminals against other matchers: Python's re, the regress crate (ECMA-262), and hand-written edges."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.expressions import anything, plain, texts
from toolc.compiler import regex as rx
from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError, UnsupportedError
from toolc.compiler.regex import charset
from toolc.compiler.terminals.code_points import class_code_points
from toolc.compiler.terminals.dfa import enumerate_texts, equals, minimise, utf8_texts
from toolc.compiler.terminals.terminal import terminal_dfa

regress = pytest.importorskip("regress")


@given(plain(10), st.lists(texts(), min_size=5, max_size=20))
def test_plain_expressions_agree_with_re(regex: rx.Regex, probes: list[str]) -> None:
    _agrees(regex, probes)


@given(anything(10), st.lists(texts(), min_size=5, max_size=20))
def test_looks_agree_with_re(regex: rx.Regex, probes: list[str]) -> None:
    _agrees(regex, probes)


def _agrees(regex: rx.Regex, probes: list[str]) -> None:
    dfa = terminal_dfa(regex)
    compiled = re.compile(rx.to_text(regex))
    probes = [*probes, "", "a", "b1", "a\n"]
    probes += [found.decode() for found in enumerate_texts(dfa, 5) if len(found) < 30]
    if "\\B" in compiled.pattern:  # before 3.14 Python's \B fails in the empty text
        probes = [text for text in probes if text]
    for text in probes:
        assert dfa.accepts(text.encode()) == bool(compiled.fullmatch(text)), (rx.to_text(regex), text)
    assert equals(minimise(dfa), dfa)


PATTERNS = [
    r"(?:(?!END).)*END", r"(?:a(?=b)|b(?!b))*", r"(?<=a)b|a(?<!b)", r"\bfoo\b.*", r".*\bfoo", r"^a|b$", r"(?:^a|b)*",
    r"(?=.*\d)(?=.*[a-z])\w{2,4}", r"(?!(?:true|false|null)$)[a-z]+", r"(?:(?<!a)b|a)*", r"(?=(?!b)a?b)..",
    r"a$\n?", r"(?m:^a$\n?)*", r"(?s:a.b)|c.d", r"(?i:aß)", r"(?x: a b # c" + "\n)",
    r"[]a]+|[^]a]", r"\x61\u00e9\141",
    r"(?:a?){3}b", r"(?:|a)+", r"a{0}b", r"(?=a)*a", r"[\w-]+", r"[a\-z]+", r"\Aa\Z",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_agree_with_re(pattern: str) -> None:
    dfa = terminal_dfa(rx.parse_regex(pattern))
    compiled = re.compile(pattern)
    pieces = ["", "a", "b", "foo", "END", "1", "\n", " ", "c", "d", "true", "é", "-", "]", "ß", "A"]
    for first in pieces:
        for second in pieces:
            for third in ("", "b", "\n", "x"):
                text = first + second + third
                assert dfa.accepts(text.encode()) == bool(compiled.fullmatch(text)), text


ECMA = [
    r"^[a-z0-9]+(?:-[a-z0-9]+)*$", r"\d+", r"^\S+@\S+\.\w{2,}$", r"^(?!.*\.\.)[^.]+$", r"[^]", r"[]", r"a|[]b",
    r"\p{Lu}", r"^\P{L}*$", r"^\p{Script=Greek}+$", r"\u{1F600}", r"\uD83D\uDE00", r"\cJ", r"\x41",
    r"a.b", r"^$", r"\bword\b",
    r"(?<=a+)b", r"(?<year>\d{4})", r"[\w\-]+$", r"[\s]", r"^[^\d\s]$", r"\0", r"[\b]", r"^\/\.\*$", r"x{2}", r"a*?b",
]  # fmt: skip
ECMA_TOLERATED = [r"\-", r"a{", r"a{1", r"}", r"]", r"\@", r"[\w-z]", r"x{,2}", r"\_"]


@pytest.mark.parametrize("pattern", ECMA)
def test_ecma_agrees_with_regress(pattern: str) -> None:
    _agrees_with_regress(pattern, "u")


@pytest.mark.parametrize("pattern", ECMA_TOLERATED)
def test_tolerated_ecma_agrees_with_regress_without_u(pattern: str) -> None:
    _agrees_with_regress(pattern, "")


def _agrees_with_regress(pattern: str, flags: str) -> None:
    rest = rx.repeat(rx.ANY, 0, None)
    dfa = terminal_dfa(rx.concat(rest, rx.parse_regex(pattern, "", "ecma"), rest))
    other = regress.Regex(pattern, flags)
    probes = ["", "a", "b", "ab", "aab", "a-b", "A", "é", "Ω", "Ωa", "a.b", "a..b", "\n", "\u2028", "\ufeff", "\xa0",
              "٣", "😀", "word", "sword", "1999", "x@y.zz", "-", "{", "a{", "a{1", "}", "]", "@",
              "z", "\0", "\b", "/.*",
              "xx", "x{,2}", "_", "aΩ-", "a\nb"]  # fmt: skip
    for text in probes:
        assert dfa.accepts(text.encode()) == (other.find(text) is not None), (pattern, text)


@given(st.binary(max_size=5))
def test_any_text_is_valid_utf8(data: bytes) -> None:
    dfa = terminal_dfa(rx.Repeat(rx.ANY, 0, None))
    assert equals(dfa, utf8_texts())
    try:
        data.decode()
    except UnicodeDecodeError:
        assert not dfa.accepts(data)
    else:
        assert dfa.accepts(data)


EDGES = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xE000, 0xFFFF,
0x10000, 0x3FFFF, 0x40000,
         0xFFFFF, 0x100000, 0x10FFFF]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(EDGES), st.sampled_from(EDGES)), min_size=1, max_size=3), st.data())
def test_ranges_split_into_bytes(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    ranges = charset.normal((min(pair), max(pair)) for pair in pairs)
    other = charset.normal([data.draw(st.sampled_from(pairs))]) if pairs[0][0] <= pairs[0][1] else ranges
    dfa = terminal_dfa(rx.union(rx.Chars(ranges), rx.concat(rx.Chars(charset.normal(other)), rx.literal("é"))))
    assert equals(minimise(dfa), dfa)
    for edge in EDGES:
        for code in (edge - 1, edge, edge + 1):
            if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                text = chr(code)
                assert dfa.accepts(text.encode()) == charset.contains(ranges, code)
                assert dfa.accepts((text + "é").encode()) == charset.contains(charset.normal(other), code)


def test_word_characters_survive_utf8() -> None:
    dfa = terminal_dfa(rx.parse_regex(r"\w"))
    for code in range(0, 0x30000, 37):
        if not 0xD800 <= code <= 0xDFFF:
            assert dfa.accepts(chr(code).encode()) == bool(re.fullmatch(r"\w", chr(code)))


def test_long_repeats_are_minimal() -> None:
    assert terminal_dfa(rx.parse_regex("[a-z]{1,8192}")).size == 8193
    assert terminal_dfa(rx.parse_regex("(?:,[a-z]{1,2000})*")).size == 2001


def test_limits_are_kept() -> None:
    with pytest.raises(BudgetError):
        terminal_dfa(rx.parse_regex("[a-z]{1,1000000}"), Budget())
    with pytest.raises(BudgetError):
        terminal_dfa(rx.parse_regex("(?:(?:a|b){1,1000}){1,1000}"), Budget(states=100_000))
    with pytest.raises(BudgetError):  # 2**20 subsets
        terminal_dfa(rx.parse_regex("[ab]*a[ab]{20}"), Budget(pattern_states=20_000))


@pytest.mark.parametrize("rest", ["b?", "[ab]?", "(?:b|bb)?"])
def test_threads_that_come_to_one_are_one(rest: str) -> None:
    """What follows the inner look may end at every place; which of them it was is no state."""
    looking = terminal_dfa(rx.parse_regex(f"(?=(?![ab]*a)b+{rest})[ab]*"), Budget(pattern_states=500))
    assert equals(looking, terminal_dfa(rx.parse_regex("b+")))


def test_look_ahead_in_look_behind_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="look-behind"):
        terminal_dfa(rx.parse_regex("a(?<=a(?=b))b"))


def test_empty_languages() -> None:
    assert terminal_dfa(rx.NOTHING).is_empty
    assert terminal_dfa(rx.parse_regex("a(?=b)c")).is_empty
    assert list(enumerate_texts(terminal_dfa(rx.EMPTY), 3)) == [b""]


@given(st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=4), max_size=5))
def test_classes_are_what_no_set_tells_apart(sets: list[list[tuple[int, int]]]) -> None:
    normal = [charset.normal([(first, first + more) for first, more in one]) for one in sets]
    segments, member = class_code_points(normal)
    label = {code: which for first, last, which in segments for code in range(first, last + 1)}
    held = {code: [any(a <= code <= b for a, b in one) for one in normal] for code in range(40)}
    assert label.keys() == {code for code, of in held.items() if any(of)}
    assert all(member[:, which].tolist() == held[code] for code, which in label.items())
    assert list(dict.fromkeys(label.values())) == list(range(len(set(label.values()))))  # by first code point
    assert len({tuple(held[code]) for code in label}) == len(set(label.values())) <= member.shape[1]
