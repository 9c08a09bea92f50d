"""Pieces: what is forgotten, what outgrows its room and what another lift left behind change no table."""

from __future__ import annotations

import numpy as np
import pytest

from toolc.compiler import compile_grammar
from toolc.compiler.lift import walk_results as pieces
from toolc.compiler.lift.walk_results import HEAD, Pieces
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.host.matcher import Matcher

from ..cases.grammars import GRAMMARS
from .brute import brute_mask
from .test_masks import vocab


def compiled(grammar: str) -> Bundle:
    return compile_grammar(GRAMMARS[grammar], vocab("builtin")).bundle


@pytest.mark.parametrize("grammar", sorted(GRAMMARS)[::4])
def test_forgetting_changes_nothing(grammar: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = compiled(grammar).digest
    monkeypatch.setattr(pieces, "_SLOTS", 512)
    assert compiled(grammar).digest == wanted


@pytest.mark.parametrize("text", ["[^a]", "[^a][^b]", "[^a]{3}[^b]"])
def test_a_state_that_lives_on_more_bytes_than_a_small_memo_holds(text: str) -> None:
    made = compile_grammar(f"start: /{text}/s", vocab("builtin")).bundle
    matcher = Matcher(made)
    while not matcher.is_finished:
        allowed = matcher.allowed_tokens()
        np.testing.assert_array_equal(allowed, np.flatnonzero(brute_mask(made, matcher)))
        matcher.advance(int(allowed[len(allowed) // 2]))


def test_lists_are_kept_once() -> None:
    found = Pieces(tokens=3, records=2, specials=0, depth=1)
    tokens = np.array([7, 8, 9, 7, 8, 9, 5], np.int32)
    assert found.add(tokens, np.array([3, 3, 6, 7], np.int64)).tolist() == [1, 0, 1, 2]
    many = np.arange(10_000, dtype=np.int32)  # more than there is room for
    numbers = found.add(many, np.arange(1, many.size + 1))
    assert np.unique(numbers).size == many.size
    for token, n in zip(many[::97].tolist(), numbers[::97].tolist(), strict=True):
        assert found.pieces[n].tolist() == [0, 0, 0, 1, token]
        assert found.pieces[n].size == HEAD + 1
