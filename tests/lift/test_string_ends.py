"""Tokens that go on behind the end of a string: the list of them, their ends, and what states allow of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from toolc.compiler import compile_schema
from toolc.compiler.lift import lift
from toolc.compiler.lift.inside_units import SOME
from toolc.compiler.lift.slices import DEAD, unit_automata
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.lift.vocab_tries import Words
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Matcher, Vocab
from toolc.runtime.format.bundle import Bundle

from .brute import brute_mask, rows_by_cell
from .test_inside_units import VOCABS
from .test_masks import vocab

QUOTE = ord('"')
UNITS = unit_automata()
BYTES = TokenTable((*(bytes([b]) for b in range(256)), b""), {"<end>": 256}, (256,), "bytes")
SOME_VOCABS = (*VOCABS, "builtin", "bytes")
STRINGS: dict[str, Any] = {
    "free": {"type": "string"},
    "bounded": {"type": "string", "minLength": 2, "maxLength": 5},
    "least": {"type": "string", "minLength": 3},
    "most": {"type": "string", "maxLength": 3},
    "pattern": {"type": "string", "pattern": "^[a-z]*$"},
    "two parts": {"type": "string", "pattern": "^[^:]*:[^:]*$"},
}
TEXTS = [
    b'{"a": "',
    b'{"a": "\xc3',
    b'{"a": "x',
    b'{"a": "a:',
    b'{"a": "\\',
    b'{"a": "zz", "b": "',
    b'{"a": "abc", "b": "yy',
]


def vocab_of(name: str) -> Vocab:
    return VOCABS[name] if name in VOCABS else build_vocab(BYTES) if name == "bytes" else vocab(name)


@pytest.mark.parametrize("unit", ["json", "json:escape", "json:utf8-1", "json-minimal", "json-raw"])
@pytest.mark.parametrize("name", SOME_VOCABS)
def test_the_list_and_the_ends(name: str, unit: str) -> None:
    words, u = Words(vocab_of(name)), UNITS.names.index(unit)
    v = words.vocab
    behind, trie = words.behind(u, QUOTE)
    wanted: dict[int, tuple[bytes, int]] = {}
    for token in range(v.size):
        at, units = u, 0
        for n, byte in enumerate(v.token(token)):
            then = int(UNITS.next_unit[at, byte])
            if then == DEAD:
                if UNITS.boundary[at] and byte == QUOTE:
                    wanted[token] = v.token(token)[n + 1 :], units
                break
            units += bool(UNITS.boundary[at])
            at = then
    text = {0: b""}
    path: list[int] = []
    for n, (byte, depth) in enumerate(zip(behind.byte.tolist(), behind.depth.tolist(), strict=True), start=1):
        path[depth - 1 :] = [byte]
        text[n] = bytes(path)
        assert behind.skip[n - 1] == n + sum(x.startswith(text[n]) and x != text[n] for x in every_end(wanted))
    assert sorted(text.values()) == list(text.values()) == sorted(every_end(wanted)), "in preorder, each once"
    found = {}
    for n, (node, end, units, after) in enumerate(behind.entry.tolist()):
        for token in v.node_tokens[v.node_token_offset[node] : v.node_token_offset[node + 1]].tolist():
            found[token] = text[end], units
        below = [text[x].startswith(text[end]) and x != end for x in behind.entry[n + 1 :, 1].tolist()]
        assert below[: after - n - 1] == [True] * (after - n - 1)
        assert after == len(behind.entry) or v.node_skip[node] <= behind.entry[after, 0]
    assert found == wanted
    assert trie.order.size == len(behind.byte)


def every_end(wanted: dict[int, tuple[bytes, int]]) -> set[bytes]:
    return {b"", *(end[:n] for end, _ in wanted.values() for n in range(len(end) + 1))}


@pytest.mark.parametrize("name", SOME_VOCABS)
@pytest.mark.parametrize("case", STRINGS)
def test_rows_are_those_of_walks(case: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    two = {"a": STRINGS[case], "b": STRINGS[case]}
    schema = {"type": "object", "properties": two, "required": ["a"], "additionalProperties": False}

    def compiled() -> Bundle:
        return compile_schema(schema, vocab_of(name)).bundle

    found = compiled()
    kernel = lift.tokens_outside
    monkeypatch.setattr(lift, "tokens_outside", lambda *args: np.full_like(kernel(*args), SOME))
    walked = compiled()
    if (found.tables.state_break == walked.tables.state_break).all():
        assert rows_by_cell(found) == rows_by_cell(walked)
    matchers = [Matcher(found), Matcher(walked)]
    byte = {found.vocab.token(t): t for t in reversed(range(found.vocab.size)) if len(found.vocab.token(t)) == 1}
    for text in TEXTS:
        for matcher in matchers:
            matcher.reset()
        for n in range(len(text)):
            if not matchers[0].try_advance(byte[text[n : n + 1]]):
                break
            assert matchers[1].try_advance(byte[text[n : n + 1]])
            allowed = [matcher.allowed_tokens() for matcher in matchers]
            np.testing.assert_array_equal(*allowed)
            np.testing.assert_array_equal(allowed[0], np.flatnonzero(brute_mask(found, matchers[0])))
