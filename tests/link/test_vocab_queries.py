"""What linking asks of a vocabulary, against a look at every token."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.link.split import STUB
from toolc.compiler.link.vocab_queries import Words
from toolc.compiler.vocab.table import TokenTable

TOKENS = st.lists(st.text("{[a\xff", max_size=4).map(lambda text: text.encode("latin-1")), max_size=12)
OPENERS = st.frozensets(st.sampled_from(b"{[a"), min_size=1)


def words_of(tokens: list[bytes]) -> Words:
    return Words(build_vocab(TokenTable((*tokens, b""), {"<end>": len(tokens)}, (len(tokens),), "some")))


@given(TOKENS, OPENERS)
def test_tokens_that_begin_a_stub(tokens: list[bytes], openers: frozenset[int]) -> None:
    expected = any(pair[0] in openers and pair[1] == STUB for token in tokens for pair in pairwise(token))
    assert words_of(tokens).begins_stub(bytes(openers)) == expected


@given(TOKENS, OPENERS)
def test_the_trie_of_tokens_that_go_on_behind_an_opener(tokens: list[bytes], openers: frozenset[int]) -> None:
    words = words_of(tokens)
    found = words.opening(bytes(openers))
    going_on = {token for token in tokens if openers.intersection(token[:-1])}
    beginnings = sorted({token[:n] for token in going_on for n in range(1, len(token) + 1)})
    path: list[bytes] = []
    for byte, depth, skip in zip(found.byte.tolist(), found.depth.tolist(), found.skip.tolist(), strict=True):
        above = path[-1][: depth - 1] if depth > 1 else b""
        path.append(above + bytes([byte]))
        here = len(path) - 1
        assert skip == here + sum(one.startswith(path[-1]) for one in beginnings)
    assert path == beginnings


@given(TOKENS, OPENERS)
def test_most_leaving(tokens: list[bytes], closers: frozenset[int]) -> None:
    closing = np.isin(np.arange(256), list(closers))
    expected = max((sum(byte in closers for byte in token) for token in tokens), default=0)
    assert words_of(tokens).most_leaving(closing) == expected
