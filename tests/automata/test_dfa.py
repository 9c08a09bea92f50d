"""Laws of the algebra, minimality against double reversal, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.grammar.expressions import plain
from toolc.compiler import regex as rx
from toolc.compiler.regex import parse_regex
from toolc.compiler.terminals import dfa as algebra
from toolc.compiler.terminals.dfa import Dfa
from toolc.compiler.terminals.minimise import equal_states, minimise_table
from toolc.compiler.terminals.partition import parts
from toolc.compiler.terminals.terminal import terminal_dfa
from toolc.compiler.terminals.text_lists import from_texts

dfas = plain(8).map(terminal_dfa)


@given(dfas, dfas, dfas)
def test_boolean_laws(a: Dfa, b: Dfa, c: Dfa) -> None:
    same = algebra.equals
    assert same(algebra.union(a, b), algebra.union(b, a))
    assert same(algebra.intersection(a, algebra.union(b, c)),
                algebra.union(algebra.intersection(a, b), algebra.intersection(a, c)))  # fmt: skip
    assert same(algebra.complement(algebra.complement(a)), a)
    assert same(algebra.complement(algebra.union(a, b)),
                algebra.intersection(algebra.complement(a), algebra.complement(b)))  # fmt: skip
    assert same(algebra.difference(a, b), algebra.intersection(a, algebra.complement(b)))
    assert algebra.difference(a, a).is_empty
    assert same(algebra.union(algebra.difference(a, b), algebra.intersection(a, b)), a)


@given(st.lists(dfas, min_size=1, max_size=4))
def test_parts_are_disjoint_and_make_up_the_whole(some: list[Dfa]) -> None:
    found = parts(some, 10_000)
    assert found is not None
    for (a, _), (b, _) in itertools.combinations(found, 2):
        assert algebra.intersection(a, b).is_empty
    for i, one in enumerate(some):
        whole = algebra.difference(one, one)
        for part, which in found:
            assert not part.is_empty
            whole = algebra.union(whole, part) if i in which else whole
        assert algebra.equals(whole, one)


@pytest.mark.parametrize(("some", "expected", "states"), [
    # one state for each set of texts that may go on
    ([b"ab", b"ac", b"b"], [(2,), (0,), (1,)], 5),
    ([b"a", b"ab", b"a"], [(0, 2), (1,)], 3),
], ids=["prefixes", "equal"])  # fmt: skip
def test_parts_of_texts(some: list[bytes], expected: list[tuple[int, ...]], states: int) -> None:
    texts = [algebra.from_literal(text) for text in some]
    found = parts(texts, states)
    assert found is not None
    assert [which for _, which in found] == expected
    for dfa, which in found:
        assert list(algebra.enumerate_texts(dfa, 2)) == [some[which[0]]]
    assert parts(texts, states - 1) is None


def test_parts_of_many_texts() -> None:
    """More states of the product than the pool begins with."""
    some = [b"%d" % n for n in range(100, 1000)]
    found = parts([algebra.from_literal(text) for text in some], 10_000)
    assert found is not None
    assert [(list(algebra.enumerate_texts(dfa, 2)), which) for dfa, which in found] == [
        ([text], (n,)) for n, text in enumerate(some)
    ]


tables = st.integers(1, 7).flatmap(
    lambda size: st.tuples(
        st.lists(st.lists(st.integers(-1, size - 1), min_size=2, max_size=2), min_size=size, max_size=size),
        st.lists(st.booleans(), min_size=size, max_size=size),
    )
)


@given(tables)
def test_minimal_is_least_and_equal(case: tuple[list[list[int]], list[bool]]) -> None:
    table, final = np.array(case[0], np.int32), np.array(case[1])
    small, small_final = minimise_table(table, final)
    for length in range(8):
        for word in itertools.product(range(2), repeat=length):
            assert _runs(table, final, word) == _runs(small, small_final, word)
    assert len(small) == max(_classes(table, final), 1)


@given(tables)
def test_equal_states_are_those_with_one_language(case: tuple[list[list[int]], list[bool]]) -> None:
    table, final = np.array(case[0], np.int32), np.array(case[1])
    sources, symbols = np.nonzero(table >= 0)
    found = equal_states(np.stack([symbols, sources, table[sources, symbols]], 1).astype(np.int32), final)
    words = [word for length in range(8) for word in itertools.product(range(2), repeat=length)]
    languages = [frozenset(word for word in words if _runs(table, final, word, state)) for state in range(len(table))]
    assert (found < 0).tolist() == [not language for language in languages]
    assert set(found.tolist()) - {-1} == set(range(len(set(languages) - {frozenset()})))
    assert len({*zip(found.tolist(), languages, strict=True)}) == len(set(languages))


def _runs(table: np.ndarray, final: np.ndarray, word: tuple[int, ...], state: int = 0) -> bool:
    for one in word:
        state = int(table[state, one])
        if state < 0:
            return False
    return bool(final[state])


def _classes(table: np.ndarray, final: np.ndarray) -> int:
    """Reachable states told apart by words up to their number, the dead one not counted."""
    words = [word for n in range(len(table) + 1) for word in itertools.product(range(2), repeat=n)]
    reached = {0}
    for state in (order := [0]):
        for target in table[state].tolist():
            if target >= 0 and target not in reached:
                reached.add(target)
                order.append(target)

    def behaviour(state: int) -> tuple[bool, ...]:
        out = []
        for word in words:
            at = state
            for one in word:
                at = int(table[at, one]) if at >= 0 else -1
            out.append(at >= 0 and bool(final[at]))
        return tuple(out)

    return len({found for found in map(behaviour, sorted(reached)) if any(found)})


def test_large_cycles_with_copies() -> None:
    # Two equal cycles entered by different bytes, and a chain into the first: 1 + 300 states are left.
    size = 300
    table = np.full((1 + 2 * size, 2), -1, np.int32)
    table[0] = [1, 1 + size]
    for n in range(size):
        table[1 + n, 0] = 1 + (n + 1) % size
        table[1 + size + n, 0] = 1 + size + (n + 1) % size
    final = np.zeros(len(table), bool)
    final[[size, 2 * size]] = True
    small, _ = minimise_table(table, final)
    assert len(small) == 1 + size


def test_literals_and_enumeration() -> None:
    assert algebra.from_literal(b"abca").accepts(b"abca")
    assert not algebra.from_literal(b"abca").accepts(b"abc")
    words = algebra.union(
        algebra.from_literal(b"b"), algebra.union(algebra.from_literal(b"a"), algebra.from_literal(b""))
    )
    assert list(algebra.enumerate_texts(words, 10)) == [b"", b"a", b"b"]
    assert algebra.shortest(algebra.difference(words, algebra.from_literal(b""))) == b"a"
    assert algebra.shortest(algebra.difference(words, words)) is None


@given(st.lists(st.binary(max_size=3) | st.text("ab", max_size=7).map(str.encode), min_size=1, max_size=12))
def test_texts_are_a_minimal_automaton(texts: list[bytes]) -> None:
    made = from_texts(texts)
    assert set(algebra.enumerate_texts(made, len(texts) + 1)) == set(texts)
    least = algebra.minimise(made)
    assert np.array_equal(made.next_state, least.next_state) and np.array_equal(made.accepting, least.accepting)
    assert np.array_equal(made.class_of_byte, least.class_of_byte)


@given(dfas)
def test_enumeration_is_ordered_and_complete(dfa: Dfa) -> None:
    found = list(algebra.enumerate_texts(dfa, 30))
    assert found == sorted(set(found), key=lambda text: (len(text), text))
    assert all(dfa.accepts(text) for text in found)


_WHOLES = st.sampled_from(["[ab]*", "(a|ba)*b?", '"[ab]*"', "a{2}", "b|é"])


@given(st.sets(st.text('ab"', max_size=4), max_size=6), _WHOLES)
def test_beginnings_are_taken_away(texts: set[str], pattern: str) -> None:
    whole = terminal_dfa(parse_regex(pattern))
    refused = terminal_dfa(rx.concat(rx.union(*map(rx.literal, sorted(texts))), rx.Repeat(rx.ANY, 0, None)))
    without = algebra.without_beginnings(whole, [text.encode() for text in sorted(texts)])
    assert algebra.equals(without, algebra.difference(whole, refused))
