"""Choices that read the first symbol of their alternatives, against the same NFA without."""

from __future__ import annotations

import random

import numpy as np
import pytest

from toolc.compiler.errors import GrammarError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown import build_nfa as nfa_module
from toolc.compiler.pushdown.left_factoring import Heads
from toolc.compiler.pushdown.nfa import Nfa
from toolc.compiler.pushdown.pushdown import Automaton, build_automaton

from ..cases.grammars import GRAMMARS
from .machine import accepts, members, mutate, random_text

STRINGS = 'str: "\\"" /[c-z]/~0..300 "\\""\none: "\\"" /x[01]+/ "\\""\ntwo: "\\"" /[AB]+/ "\\""\n'


def _apart(nfa: Nfa, places: np.ndarray) -> Heads:
    """What `share_heads` gives where there is nothing to share."""
    return Heads(np.zeros(0, np.int32), nfa.free.data, nfa.free.offset)


def _keys(count: int) -> str:
    """Members of which each may be left out, as objects have them."""
    one = [f'"\\"{n}k\\":" "1" (_c rest{n + 1})? | rest{n + 1}' for n in range(count)]
    rules = "".join(f"rest{n}: {text}\n" for n, text in enumerate([*one, '"\\"k\\":" "1"']))
    return f'start: "{{" rest0 "}}"\n_c: " "~0..8 "," " "~0..8\n{rules}'


def _both(text: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Automaton, Automaton]:
    shared = build_automaton(read_grammar(text))
    with monkeypatch.context() as patch:
        patch.setattr(nfa_module, "share_heads", _apart)
        return shared, build_automaton(read_grammar(text))


@pytest.mark.parametrize("text", [*GRAMMARS.values(), _keys(5), f'start: (str ",")~0..9 (one | two) "e"\n{STRINGS}'])
def test_the_texts_are_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared, apart = _both(text, monkeypatch)
    assert shared.counts["local_states"] >= apart.counts["local_states"]  # one set may be written in two ways
    rng = random.Random(text)
    for one in (shared, apart):
        for _ in range(40):
            found = random_text(one, rng, 120)
            for near in () if found is None else (found, mutate(found, rng), mutate(found, rng)):
                assert accepts(shared, near) == accepts(apart, near), near


def test_behind_blanks_all_keys_are_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nfa_module, "share_tries", lambda nfa, places: None)  # what is read behind the first symbol
    few, many = members(_keys(40)), members(_keys(80))
    monkeypatch.setattr(nfa_module, "share_heads", _apart)
    assert 3 * few < members(_keys(40)) and 5 * many < members(_keys(80))


def test_a_choice_that_reads_a_quote_still_can_be_called() -> None:
    """Strings that are counted are called at their quote, and then those beside them are, too."""
    automaton = build_automaton(read_grammar(f'start: (str ",")~0..500 (one | two) "e"\n{STRINGS}'))
    assert automaton.stack_symbols > 1
    for text, valid in (('"x0"e', True), ('"xy","AB"e', True), ('"xy"e', False), ('"x0","AB"e', False)):
        assert accepts(automaton, text.encode()) is valid, text
    with pytest.raises(GrammarError, match="plain text"):
        build_automaton(read_grammar(f'start: (str ",")~0..500 (one | two | "\\"Q") "e"\n{STRINGS}'))
