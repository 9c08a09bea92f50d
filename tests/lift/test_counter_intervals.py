"""Walks for many counter values at once, and where they give up: masks at every value are those of every token."""

from __future__ import annotations

import functools

import pytest

from toolc.compiler import compile_grammar
from toolc.compiler.lift import lift
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.lift.walk_results import Pieces
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Matcher, Vocab

from .test_counted_grids import compare

# Of each the grammar, what is read again and again, and whether a frame is left on the way to a threshold.
CASES = {
    "a frame on the way": ('start: "[" t ("," t)~0..40 "]"\nt: "[" A? "]"\nA: "a"\n', "[],", True),
    "no frame": ('start: "[" A ("," A)~3..40 "]"\nA: "a"\n', "a,", False),
    "letters": ('start: "<" A~7..50 ">"\nA: /[a,é]/\n', "aé", False),
    "more below than above": ('start: "<" A~20..50 ">" A? \nA: /[a,é]/\n', "é", False),
    "two that count": ('start: "[" s ("," s)~3..20 "]"\ns: "\\"" A~2..30 "\\""\nA: /[a,é]/\n', '"aé",', None),
}


@functools.cache
def items() -> Vocab:
    """Tokens of up to eleven items, with the last one cut short or with more behind it."""
    texts = [bytes([byte]) for byte in range(256)]
    for item in ("[],", "a,", "aé", "é", '"aé",', "[a],", "a"):
        for count in range(1, 12):
            many = (item * count).encode()
            texts += [many, many[:-1], many[:-2], many[1:], many + b"]", many[:-1] + b"]", b"[" + many, many + b">a"]
    tokens = (*dict.fromkeys(text for text in texts if text), b"")
    end = len(tokens) - 1
    return build_vocab(TokenTable(tokens, {"<end>": end}, (end,), "items"))


@pytest.mark.parametrize("case", CASES)
def test_every_count(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grammar, item, gives_up = CASES[case]
    made: list[Pieces] = []

    class Kept(Pieces):
        def __init__(self, *sizes: int) -> None:
            super().__init__(*sizes)
            made.append(self)

    monkeypatch.setattr(lift, "Pieces", Kept)
    held = compile_grammar(grammar, items()).bundle
    given_up = (made[0]._slots[:, 1] < 0).any()
    assert gives_up is None or given_up == gives_up
    matcher = Matcher(held)
    compare(held, matcher)
    matcher.advance_bytes(grammar[len('start: "') :][:1].encode())
    reached = 0
    while True:
        compare(held, matcher)
        read = 0
        for byte in item.encode():
            if matcher.advance_bytes(bytes([byte])) < 1:
                break
            read += 1
            compare(held, matcher)
        if read < len(item.encode()):
            break
        reached += 1
    assert reached >= 19
