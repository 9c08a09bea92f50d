"""Lazy repeats of terminals against Python's own matching, on all texts of a small alphabet."""

from __future__ import annotations

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler.errors import UnsupportedError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.regex import parse_regex, shortest
from toolc.compiler.terminals.terminal import terminal_dfa

LONGEST = 6
TEXTS = ["".join(letters) for n in range(LONGEST + 1) for letters in product("ab", repeat=n)]
COUNTS = ("*", "+", "?", "{2}", "{1,2}", "{2,}")


def _repeated(item: str, count: str, lazy: bool) -> str:
    return f"(?:{item}){count}" + "?" * lazy


ATOMS = st.sampled_from(["a", "b", "[ab]", "ab", "(?:a|b)", "(?:aa|b)"])
PATTERNS = st.recursive(
    st.builds(_repeated, ATOMS, st.sampled_from(COUNTS), st.booleans()) | ATOMS,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map("".join)
        | st.builds(_repeated, inner, st.sampled_from(COUNTS), st.booleans())
    ),
    max_leaves=5,
)


def compare(pattern: str, both: bool = True) -> int:
    """At how many texts we looked: those that Python matches whole are read; those that it would match whole if all
    repeats were greedy, but for these stops before their end, are not (if ``both``)."""
    dfa = terminal_dfa(shortest(parse_regex(pattern, lazy=True)))
    lazy, greedy = re.compile(pattern), re.compile(re.sub(r"(?<=[*+?}])\?", "", pattern))
    judged = 0
    for text in TEXTS:
        found, longer = lazy.match(text), greedy.match(text)
        if found is not None and found.end() == len(text):
            assert dfa.accepts(text.encode()), (pattern, text)
        elif lazy.fullmatch(text) is None or (both and longer is not None and longer.end() == len(text)):
            assert not dfa.accepts(text.encode()), (pattern, text)
        else:
            continue
        judged += 1
    return judged


@pytest.mark.parametrize(
    "pattern",
    ["a*?b", "[ab]*?b", "[ab]+?b", "[ab]*?ab", "[ab]*?(?:ab|b)", "a{1,3}?b", "[ab]{2,}?b", "[ab]??b", "[ab]*?b[ab]*?b",
     "[ab]*?", "[ab]+?", "a*?(?:b|ab)a", "(?:[ab]*?b)a", "(?:[ab]*?b)?a", "(?:[ab]*?b){2}", "(?:[ab]*?b)*a",
     "(?:b*?)*a", "(?:b*?)+a", "(?:b*?)*?a", "(?:b??)*a", "(?:b*?){1,2}a", "(?:(?:ab)*?)*b", "(?:a*?)*", "a*?(?:a*?)*",
     "(?:[ab]*?b)+", "(?:a[ab]*?b){1,2}", "(?:[ab]*?b)*?a", "(?:[ab]+?)*b", "(?:a|[ab]*?b)b"],
)  # fmt: skip
def test_lazy_repeats(pattern: str) -> None:
    assert compare(pattern) > 100


@given(PATTERNS)
def test_random_lazy_repeats(pattern: str) -> None:
    counts = re.findall(r"(?:[*+]|(?<!\()\?|\{\d,\d?\})\??", pattern)
    only_lazy = all(len(count) > 1 and count.endswith("?") for count in counts)  # a greedy one may take less here
    try:
        compare(pattern, only_lazy)
    except UnsupportedError as error:
        assert "what may be empty" in str(error) and re.search(r"(\*|\+|,\})\??$|(\*|\+|,\})\??\)", pattern)


@pytest.mark.parametrize("pattern", ["(?:b*?a?)*b", "(?:a|b*?)*a", "(?:(?:b*?)*)*a"])
def test_copies_that_may_be_empty_are_refused(pattern: str) -> None:
    """Python matches them; which copy takes a character depends on which others were empty."""
    with pytest.raises(UnsupportedError, match="what may be empty"):
        read_grammar(f"start: A\nA: /{pattern}/\n", "g.lark")


@pytest.mark.parametrize("count", ["{17}", "{2,40}", "{17,}"])
def test_many_copies_are_refused(count: str) -> None:
    with pytest.raises(UnsupportedError, match="holds a lazy one") as caught:
        read_grammar(f"start: A\nA: /(?:[ab]*?b){count}/\n", "g.lark")
    assert caught.value.place == "g.lark:2:1"
