"""Random regular expressions and texts near them, for the tests of this folder and of the automata.

Leaves out   checking anything.
"""

from __future__ import annotations

from hypothesis import strategies as st

from toolc.compiler import regex as rx
from toolc.compiler.regex import charset

ALPHABET = "ab1_ \n-é"


def chars() -> st.SearchStrategy[rx.Regex]:
    """Small sets over ALPHABET, some negated."""
    some = st.sets(st.sampled_from(ALPHABET), min_size=1, max_size=3)
    sets = some.map(lambda found: charset.normal((ord(one), ord(one)) for one in found))
    return st.one_of(
        sets.map(rx.Chars),
        sets.map(lambda found: rx.Chars(charset.complement(found))),
        st.sampled_from([rx.ANY, rx.Chars(charset.python_digit())]),
    )


def plain(leaves: int = 8) -> st.SearchStrategy[rx.Regex]:
    """Expressions without looks."""
    return st.recursive(st.one_of(chars(), st.just(rx.EMPTY)), _grow, max_leaves=leaves)


def _grow(inner: st.SearchStrategy[rx.Regex]) -> st.SearchStrategy[rx.Regex]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda items: rx.concat(*items)),
        st.lists(inner, min_size=2, max_size=3).map(lambda items: rx.union(*items)),
        st.tuples(inner, st.sampled_from([(0, None), (1, None), (0, 1), (2, 2), (1, 3), (2, None)])).map(
            lambda pair: rx.repeat(pair[0], *pair[1])
        ),
    )


def anything(leaves: int = 8) -> st.SearchStrategy[rx.Regex]:
    """Expressions with anchors, boundaries, look-aheads of any kind and look-behinds of one width (for ``re``)."""
    anchors = st.sampled_from([rx.START, rx.END, rx.WordBoundary(), rx.WordBoundary(True), rx.WordBoundary(ascii=True)])
    one_wide = st.lists(chars(), min_size=1, max_size=2).map(lambda items: rx.concat(*items))
    behind = st.tuples(one_wide, st.booleans()).map(lambda pair: rx.Look(pair[0], False, pair[1]))
    base = st.one_of(chars(), chars(), st.just(rx.EMPTY), anchors, behind)

    def grow(inner: st.SearchStrategy[rx.Regex]) -> st.SearchStrategy[rx.Regex]:
        ahead = st.tuples(inner, st.booleans()).map(lambda pair: rx.Look(pair[0], True, pair[1]))
        return st.one_of(_grow(inner), ahead, st.tuples(ahead, inner).map(lambda pair: rx.concat(*pair)))

    return st.recursive(base, grow, max_leaves=leaves)


def texts() -> st.SearchStrategy[str]:
    """Short texts over ALPHABET."""
    return st.text(ALPHABET + "x", max_size=6)
