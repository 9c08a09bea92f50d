"""Lists of tokens on which a state differs from a slice: what they hold, and that no other would be shorter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.compiler import compile_schema
from toolc.compiler.lift import collapsed_walks as collapsed
from toolc.compiler.lift.collapsed_trie import Collapsed
from toolc.runtime import Matcher

from .brute import brute_mask
from .test_masks import bits, vocab


def trie_of(units: list[int]) -> Collapsed:
    """What lists are made from, for tokens 0, 1, … of so many units."""
    numbers, nothing = np.array(units, np.int32), np.zeros(0, np.int32)
    offset = np.searchsorted(np.sort(numbers), np.arange(numbers.max() + 2)).astype(np.int32)
    tokens = np.arange(len(units), dtype=np.int32)
    by_units = np.argsort(numbers, kind="stable").astype(np.int32)
    return Collapsed(nothing.astype(np.uint8), nothing, nothing, nothing, tokens, numbers, by_units, offset)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=40))
def test_a_list_is_whole_and_the_shortest(tokens: list[tuple[int, bool]]) -> None:
    t = trie_of([units for units, _ in tokens])
    dead = [n for n, (_, is_dead) in enumerate(tokens) if is_dead]
    runs = np.array([end for n in dead for end in (n, n + 1)], np.int32)
    widest = t.units_offset.size - 1
    scratch, mark = np.zeros(widest, np.int64), np.full(len(tokens), -1, np.int32)
    listed, used, units = collapsed._list.py_func(t, runs, scratch, mark, 0, np.empty(1, np.int32), 0)

    def toggled(most: int) -> list[int]:
        return [n for n, (units, is_dead) in enumerate(tokens) if is_dead == (units <= most)]

    assert sorted(listed[:used].tolist()) == toggled(widest - 1 if units < 0 else units)
    assert used == min(len(toggled(most)) for most in range(widest))


@pytest.mark.parametrize("pattern", [r"^\p{L}$", r"^[\p{L} ]+$", r"^[\p{L}0-9_.-]{1,64}$", r"^\P{Lu}{2,9}$"])
def test_letters_of_all_scripts(pattern: str) -> None:
    """Few of the tokens inside of a character go on with a letter."""
    held = compile_schema({"type": "string", "pattern": pattern}, vocab("tekken_240911.json")).bundle
    matcher = Matcher(held)
    for byte in '"é'.encode():
        np.testing.assert_array_equal(bits(matcher, held.vocab.size), brute_mask(held, matcher))
        token = next(n for n in range(held.vocab.size) if held.vocab.token(n) == bytes([byte]))
        if not matcher.try_advance(token):
            break
    np.testing.assert_array_equal(bits(matcher, held.vocab.size), brute_mask(held, matcher))
