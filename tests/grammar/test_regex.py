"""The parser and printer of regular expressions, without automata."""

from __future__ import annotations

import itertools
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.regex_errors import REGEX_ERRORS
from tests.grammar.expressions import anything
from toolc.compiler import regex as rx
from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError
from toolc.compiler.regex import charset
from toolc.compiler.regex.scripts import PROPERTIES, PROPERTY_ALIASES, SCRIPT_ALIASES, SCRIPTS

codes = st.one_of(st.integers(0, 0x10FFFF), st.sampled_from([0, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0x7F, 0x80, 0x10FFFF]))
sets = st.lists(st.tuples(codes, codes).map(lambda pair: (min(pair), max(pair))), max_size=5).map(charset.normal)


@given(sets, sets, codes)
def test_sets_are_a_boolean_algebra(left: charset.Ranges, right: charset.Ranges, code: int) -> None:
    valid = not 0xD800 <= code <= 0xDFFF
    in_left, in_right = charset.contains(left, code), charset.contains(right, code)
    assert charset.contains(charset.union(left, right), code) == (in_left or in_right)
    assert charset.contains(charset.intersection(left, right), code) == (in_left and in_right)
    assert charset.contains(charset.difference(left, right), code) == (in_left and not in_right)
    assert charset.contains(charset.complement(left), code) == (valid and not in_left)
    assert charset.complement(charset.complement(left)) == left
    assert charset.union(charset.intersection(left, right), charset.difference(left, right)) == left


@given(anything(12))
def test_printing_parses_back(regex: rx.Regex) -> None:
    text = rx.to_text(regex)
    assert rx.parse_regex(text) == regex
    assert "\n" not in text and '"' not in text
    assert "/" not in text.replace("\\/", "")


@given(sets)
def test_sets_print_and_parse_back(ranges: charset.Ranges) -> None:
    text = rx.to_text(rx.Chars(ranges))
    assert rx.parse_regex(text) == rx.Chars(ranges)
    for code in [end for pair in ranges for end in pair][:6] + [0x61, 0x22]:
        assert bool(re.fullmatch(text, chr(code))) == charset.contains(ranges, code)


@pytest.mark.parametrize("letter", ["d", "w", "s", "D", "W", "S"])
def test_python_classes_agree_with_re(letter: str) -> None:
    parsed = rx.parse_regex("\\" + letter)
    assert isinstance(parsed, rx.Chars)
    probes = [*range(0x300), *range(0x600, 0x700), 0x1680, 0x2028, 0x3000, 0xFEFF, 0x1D7CE, 0x20000, 0xE0100]
    for code in probes:
        assert charset.contains(parsed.ranges, code) == bool(re.fullmatch("\\" + letter, chr(code))), hex(code)


@pytest.mark.parametrize("pattern", ["k", "ß", "σ", "[a-z]", "[^a-z]", "İ", "ſ", "é", "µ", "ﬅ", r"\w", "[K-k]"])
def test_ignoring_case_agrees_with_re(pattern: str) -> None:
    parsed = rx.parse_regex(pattern, "i")
    assert isinstance(parsed, rx.Chars)
    probes = [*range(0x250), *range(0x370, 0x400), 0x1E9E, 0x212A, 0x212B, 0xFB05, 0xFB06, 0x10400]
    for code in probes:
        expected = bool(re.fullmatch(pattern, chr(code), re.IGNORECASE))
        assert charset.contains(parsed.ranges, code) == expected, (pattern, hex(code))


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a|b)\1",
        r"([ab])(,\1)*", r"(?P<n>ab|c)x(?P=n)", r"(a|b)(c|d)\2\1", r"(?:(a|b)\1)*", r"(a|ab)\1?", r"(a?)b\1",
        r"x(a|b)(?=\1)a?b?", r"((a)|b)\1", r"(a|b)(?!\1)[ab]", r"(?:(a|b)c\1|(a)d)x?",
    ],
)  # fmt: skip
def test_back_references_to_few_texts_agree_with_re(pattern: str) -> None:
    expanded = re.compile(rx.to_text(rx.parse_regex(pattern)))
    for length in range(6):
        for characters in itertools.product("abcdx,", repeat=length):
            text = "".join(characters)
            assert bool(expanded.fullmatch(text)) == bool(re.fullmatch(pattern, text)), text


def test_an_escaped_backslash_is_no_back_reference() -> None:
    for pattern in (r"([ab][ab])\\1", r"([ab])(x)\\1\\2"):
        expanded = re.compile(rx.to_text(rx.parse_regex(pattern)))
        for text in ("ab\\1", "ax\\1\\2", "abab", "axax"):
            assert bool(expanded.fullmatch(text)) == bool(re.fullmatch(pattern, text)), (pattern, text)
    classes = "([A-Za-z0-9])" * 3 + r"\\1\\2\\3"
    assert rx.parse_regex(classes) == rx.parse_regex(classes.replace("(", "(?:"))


def test_back_references_are_bounded() -> None:
    """In how many characters are read again, and in how deep groups follow each other."""
    long = "([0-9a-e])" * 3 + r"\1\2\3" + "x?" * 2000
    deep = "(a)" * 520 + "".join(f"\\{n + 1}" for n in range(520))
    for pattern, message in ((long, "so many texts"), (deep, "behind so many groups")):
        with pytest.raises(UnsupportedError, match=message):
            rx.parse_regex(pattern)


def test_back_references_of_ecma() -> None:
    assert rx.to_text(rx.parse_regex(r"(?<n>a|b)\k<n>", dialect="ecma")) == "aa|bb"
    assert rx.to_text(rx.parse_regex(r"([ab|])(,\1)*", dialect="ecma")) == r"a(?:,a)*|b(?:,b)*|\|(?:,\|)*"


@pytest.mark.parametrize(("name", "text", "dialect", "kind", "where", "words"), REGEX_ERRORS, ids=lambda v: str(v)[:24])
def test_malformed_and_refused(
    name: str, text: str, dialect: str, kind: type[ToolcError], where: int, words: str
) -> None:
    with pytest.raises(kind) as caught:
        rx.parse_regex(text, "", dialect)
    assert (caught.value.place or "").startswith(f"character {where} of /")
    assert words in str(caught.value)
    assert "^" in (caught.value.hint or "")


def test_unknown_flags_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="'x'"):
        rx.parse_regex("a", "x", "ecma")
    with pytest.raises(GrammarError):
        rx.parse_regex("a(?i)")


def test_equal_values_hash_equal() -> None:
    left, right = rx.parse_regex("(?:ab|c)*"), rx.parse_regex("(ab|c)*?")
    assert left == right and hash(left) == hash(right)
    assert rx.concat(rx.START) != rx.concat(rx.END)


def test_tables_of_unicode() -> None:
    """Every code point has one category, as this Python has it if it knows the code point; scripts are assigned."""
    names = sorted({unicodedata.category(chr(code)) for code in range(0x110000)} - {"Cs"})
    table = {name: charset.named_property(name, None) or () for name in names}
    of = {code: name for name, ranges in table.items() for low, high in ranges for code in range(low, high + 1)}
    assert charset.union(*table.values()) == charset.ALL and len(of) == 0x110000 - 0x800
    known = ((code, unicodedata.category(chr(code))) for code in of)
    other = [code for code, name in known if name != "Cn" and name != of[code]]
    assert len(other) < 20  # a version of Unicode changes one or two
    assigned = charset.named_property("Assigned", None)
    for script in SCRIPTS:
        ranges = charset.named_property("Script", script)
        assert ranges and charset.intersection(ranges, assigned or ()) == ranges


def _starts_of(ranges: Any) -> list[tuple[int, int]]:
    """Ranges that go around the surrogates, which are no text."""
    parts = [(low, high) for low, high in ranges]
    return [
        part
        for low, high in parts
        for part in ((low, min(high, 0xD7FF)), (max(low, 0xE000), high))
        if part[0] <= part[1]
    ]


def test_sets_of_unicode_are_those_of_an_engine() -> None:
    """Every script and property, by its name and its short one, matched over all text that there is."""
    import regress

    text = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    sizes = [(0x80, 1), (0x800, 2), (0x10000, 3), (0x110000, 4)]

    def code(at: int) -> int:
        low = 0
        for end, size in sizes:
            count = end - low - (0x800 if size == 3 else 0)
            if at < count * size:
                found = low + at // size
                return found + 0x800 if size == 3 and found >= 0xD800 else found
            at, low = at - count * size, end
        return low

    names = [(f"Script={name}", SCRIPTS) for name in (*SCRIPTS, *SCRIPT_ALIASES)]
    for name, _ in [*names, *((name, PROPERTIES) for name in (*PROPERTIES, *PROPERTY_ALIASES))]:
        left, _, right = name.partition("=")
        ours = _starts_of(charset.named_property(left, right or None) or ())
        found = [one.range() for one in regress.Regex(f"\\p{{{name}}}+", "u").find_iter(text)]
        theirs = _starts_of((code(one.start), code(one.stop - 1)) for one in found)
        assert ours == theirs, name
