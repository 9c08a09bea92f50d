"""Masks at every counter value near every bound, equal to trying every token: random grammars that count.

The vocabulary is made for it: runs of the letters that the grammars count, up to 24 long, alone, before the quote,
behind it, and with a letter that leaves the loop at every place.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler import Options, compile_grammar, compile_schema
from toolc.compiler.errors import BudgetError, GrammarError, UnsupportedError
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Matcher, Vocab
from toolc.runtime.format.bundle import Bundle

from .brute import brute_mask

NEAR = 20
LETTERS = ("a", "b", " ", "é", "x")


@functools.cache
def runs() -> Vocab:
    """Tokens that count: 1 to 24 characters of one letter, and what may stand around them."""
    texts = [bytes([byte]) for byte in range(256)]
    for letter, length in itertools.product(LETTERS, range(2, 25)):
        run = letter * length
        texts += [one.encode() for one in (run, run + '"', '"' + run, run + '","' + run, run[1:] + "x", "x" + run[1:])]
        texts += [(run[: length // 2] + other + run[length // 2 :]).encode() for other in 'b"é']
    texts += [("ab" * n).encode()[:m] for n in range(2, 13) for m in (2 * n, 2 * n - 1)]
    texts += [b'","', b'"]', b'["', b'\\"', b"\\n", b"a\\n", b'a\\"a']
    tokens = (*dict.fromkeys(texts), b"")
    end = len(tokens) - 1
    return build_vocab(TokenTable(tokens, {"<end>": end}, (end,), "runs"))


CLASSES = {"A": "[ab]", "B": '[^"\\\\\\x00-\\x1f]', "C": "[a ]", "D": '[^"\\\\\\x00-\\x1f]|\\\\["n]', "E": "[é b]|xx"}
counts = st.tuples(st.integers(0, 40), st.integers(0, 70)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@st.composite
def strings(draw: st.DrawFn) -> str:
    """One string that counts, and what may follow its counted part."""
    (low, high), name = draw(counts), draw(st.sampled_from(sorted(CLASSES)))
    other = draw(st.sampled_from(['"\\""', '("\\"" | X B* "\\"")', '"x"? "\\""', '("\\"" | X "\\"")']))
    return f'"\\"" {name}~{low}..{max(high, 1)} {other}'


@st.composite
def grammars(draw: st.DrawFn) -> tuple[str, str]:
    """(Lark text, what stands before the counted string)."""
    one = draw(strings())
    form = draw(st.sampled_from(["alone", "two", "list", "either"]))
    if form == "alone":
        head, before = f"start: {one}", ""
    elif form == "two":
        head, before = f'start: "[" s "," t "]"\ns: {draw(strings())}\nt: {one}', "["
    elif form == "list":
        low, high = draw(st.tuples(st.integers(0, 3), st.integers(3, 30)))
        head, before = f'start: "[" s ("," s)~{low}..{high} "]"\ns: {one}', "["
    else:
        head, before = f"start: {one} | {draw(strings())}", ""
    return head + "\n" + "".join(f"{name}: /{text}/\n" for name, text in CLASSES.items()) + 'X: /[^"ab\\\\]/\n', before


def compare(held: Bundle, matcher: Matcher) -> None:
    mask = np.zeros(held.vocab.words, np.uint32)
    matcher.fill(mask)
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: held.vocab.size].astype(bool)
    wrong = np.flatnonzero(allowed != brute_mask(held, matcher))
    shown = [(held.vocab.shown(int(token)), bool(allowed[token])) for token in wrong[:4]]
    assert not wrong.size, (matcher.state, matcher.counter, matcher.stack, shown)
    assert allowed.any(), "a dead end"


@settings(suppress_health_check=list(HealthCheck))
@given(grammars(), st.sampled_from(["a", "b", " ", "é"]))
def test_every_count_near_a_bound(grammar: tuple[str, str], letter: str) -> None:
    text, before = grammar
    try:
        held = compile_grammar(text, runs()).bundle
    except (UnsupportedError, BudgetError, GrammarError):
        return
    breaks = held.tables.breaks
    bounds = {int(at) for at in np.unique(breaks[..., 0]) if at > 0} if breaks.size else set()
    matcher = Matcher(held)
    written = before.encode() + b'"'
    if matcher.advance_bytes(written) < len(written):
        return
    for _ in range(115):
        if not bounds or any(abs(matcher.counter - at) <= NEAR for at in bounds):
            compare(held, matcher)
        if matcher.advance_bytes(letter.encode()) < len(letter.encode()):
            break


@pytest.mark.parametrize("pattern", ["^$|[0-9a-f]{40}", "^x$|[0-9a-f]{40}", "^a|[0-9a-f]{33,36}$"])
def test_a_count_that_is_full_at_once(pattern: str) -> None:
    """What is read has to be as long as the bound from the first character on: a threshold of 0."""
    schema = {"type": "string", "pattern": pattern, "maxLength": 40 if "40" in pattern else 33}
    held = compile_schema(schema, runs(), options=Options(whitespace="compact")).bundle
    for text in ('"' + "a" * 40 + '"', '"0' + "ab" * 19 + 'c"', '"x"', '""', '"b' + "0" * 32 + '"'):
        matcher = Matcher(held)
        compare(held, matcher)
        for byte in text.encode():
            if matcher.advance_bytes(bytes([byte])) < 1:
                break
            compare(held, matcher)
