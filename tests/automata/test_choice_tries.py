"""Tries in large choices, against the same NFA without."""

from __future__ import annotations

import random

import numpy as np
import pytest

from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError, GrammarError
from toolc.compiler.grammar.reader import read_grammar
from toolc.compiler.pushdown import build_nfa as nfa_module
from toolc.compiler.pushdown import choice_tries as tries
from toolc.compiler.pushdown.pushdown import Automaton, build_automaton

from ..cases.grammars import GRAMMARS
from .machine import accepts, members, mutate, random_text

CLASHES = 'str: "\\"" /[c-z]/~0..300 "\\""\none: "\\"" /x[01]+/ "\\""\ntwo: "\\"" /[AB]+/ "\\""\n'


def _words(count: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found.setdefault("".join(rng.choice("abk") for _ in range(rng.randint(1, 7))))
    return list(found)


def _keys(words: list[str], last: str = '"z"') -> str:
    """Any of the words, in order."""
    one = [f'"{word}:" "1" ("," rest{n + 1})? | rest{n + 1}' for n, word in enumerate(words)]
    rules = "".join(f"rest{n}: {text}\n" for n, text in enumerate([*one, last]))
    return f'start: "{{" rest0 "}}"\n{rules}OPEN: /[a-z]{{1,3}}/\n'


def _without(text: str, patch: pytest.MonkeyPatch) -> Automaton:
    with patch.context() as here:
        here.setattr(nfa_module, "share_tries", lambda nfa, places: None)
        return build_automaton(read_grammar(text))


def _same(one: Automaton, other: Automaton, rng: random.Random) -> None:
    count = 0
    for walked in (one, other):
        for _ in range(60):
            found = random_text(walked, rng, 120)
            for near in () if found is None else (found, *(mutate(found, rng) for _ in range(3))):
                assert accepts(one, near) == accepts(other, near), near
                count += accepts(one, near)
    assert count


@pytest.mark.parametrize(
    "text",
    [
        *GRAMMARS.values(), _keys(_words(9)), _keys(_words(40), 'OPEN ":2" ("," OPEN ":2")*'), _keys(_words(60)),
        f'start: ({" | ".join(f"W{n}" for n in range(30))})~1..3\n'
        + "".join(f"W{n}: /{word}[01]*/\n" for n, word in enumerate(_words(30, 2))),
        f'start: (str ",")~0..9 (one | two) "e"\n{CLASHES}',
        'start: ("ab" a | "ab" b | "abc" | c | "a" | "ad" start)\na: "x" | "xy"\nb: "x" c | "xz"\nc: "xq" | "ax"\n',
    ],
)  # fmt: skip
@pytest.mark.parametrize("many", [2, tries.MANY])
def test_the_texts_are_the_same(text: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _without(text, monkeypatch)
    monkeypatch.setattr(tries, "MANY", many)
    _same(build_automaton(read_grammar(text)), plain, random.Random(text))


LOOPS = [
    f'("y"? | {" | ".join(chr(34) + word + chr(34) for word in _words(30))})*',
    f"({' | '.join(chr(34) + word + chr(34) for word in _words(30))} | )*",
    f'("a"* "b"*)* ({" | ".join(chr(34) + word + chr(34) for word in _words(30))})',
    f'("y"*)+ ({" | ".join(chr(34) + word + chr(34) + "?" for word in _words(30))})*',
    f'(("y"* ({" | ".join(chr(34) + word + chr(34) for word in _words(30))})?)* "z"?)*',
]


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("many", [2, tries.MANY])
def test_choices_that_lead_back_to_themselves(loop: str, many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read again and again may be empty: the free moves are a circle."""
    text = f'start: {loop} "!"'
    plain = _without(text, monkeypatch)
    monkeypatch.setattr(tries, "MANY", many)
    _same(build_automaton(read_grammar(text)), plain, random.Random(text))


def test_tries_are_within_budgets() -> None:
    long = "".join(f'long{n}: "{"ab" * 400}{n:03}"\n' for n in range(100))
    text = "start: " + " | ".join(f"long{n} large{n}" for n in range(100)) + "\n" + long
    text += "".join(f'large{n}: "{n}"~2..5\n' for n in range(100))
    states = build_automaton(read_grammar(text)).counts["nfa_states"]
    with pytest.raises(BudgetError, match="states"):
        build_automaton(read_grammar(text), budget=Budget(states=states - 100))


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_what_is_alike_for_long_is_left_apart(longest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = _keys(_words(40))
    plain = _without(text, monkeypatch)
    monkeypatch.setattr(tries, "_LONGEST", longest)
    _same(build_automaton(read_grammar(text)), plain, random.Random(longest))


def test_what_begins_alike_again_and_again_is_left_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each member may be followed by any later one, with the same symbol: a trie of these has a move to each."""
    text = "start: " + '"a"? ' * 60 + '"b"? "a"? ' * 20 + "\n"
    plain, shared = _without(text, monkeypatch), build_automaton(read_grammar(text))
    _same(shared, plain, random.Random(4))
    found = []

    def counted(nfa: nfa_module.Nfa, places: np.ndarray) -> tries.Tries | None:
        made = tries.share_tries(nfa, places)
        found.append(nfa.edges.data.shape[0])
        return made

    monkeypatch.setattr(nfa_module, "share_tries", counted)
    for count in (200, 400):
        build_automaton(read_grammar("start: " + '"a"? ' * count + "\n"))
    assert found[-1] < 2.2 * found[-2]


def test_choices_of_many_sets_of_symbols_are_left_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries, "_MOST_SETS", 5)
    text = _keys([f"{chr(97 + n)}{n}" for n in range(26)] + [f"{chr(65 + n)}{n}" for n in range(20)])
    _same(build_automaton(read_grammar(text)), _without(text, monkeypatch), random.Random(5))


@pytest.mark.parametrize("last", ['"z"', 'OPEN ":2" ("," OPEN ":2")*'])
def test_later_keys_are_one_state(last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    some, more = members(_keys(_words(100), last)), members(_keys(_words(200), last))
    assert more < 2.2 * some
    monkeypatch.setattr(nfa_module, "share_tries", lambda nfa, places: None)
    assert members(_keys(_words(200), last)) > 8 * more


@pytest.mark.parametrize("listed", [False, True])
def test_equal_sets_are_equal_states(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the later keys are a list of their own behind each, or one list that the others end with."""
    words = _words(60)
    text = _keys(words)
    if listed:
        rests = [" | ".join(f"k{m}" for m in range(n, len(words))) for n in range(len(words))]
        keys = "".join(f'k{n}: "{word}:" "1" ("," rest{n + 1})?\n' for n, word in enumerate(words[:-1]))
        rules = "".join(f"rest{n}: {rest}\n" for n, rest in enumerate(rests))
        text = f'start: "{{" rest0 "}}"\n{rules}{keys}k{len(words) - 1}: "z"\n'
    plain, shared = _without(text, monkeypatch), build_automaton(read_grammar(text))
    few = plain.counts["local_states"]
    assert few <= shared.counts["local_states"] < few + tries.MANY  # those of the first choice without a trie


def test_strings_in_a_trie_still_can_be_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings that are counted are called at their quote, and then those beside them are, in a trie too."""
    monkeypatch.setattr(tries, "MANY", 2)
    automaton = build_automaton(read_grammar(f'start: (str ",")~0..500 (one | two) "e"\n{CLASHES}'))
    assert automaton.stack_symbols > 1
    for text, valid in (('"x0"e', True), ('"xy","AB"e', True), ('"xy"e', False), ('"x0","AB"e', False)):
        assert accepts(automaton, text.encode()) is valid, text
    mixed = build_automaton(read_grammar(f'start: (str ",")~0..500 (one | "q" | two | "r" | "qs") "e"\n{CLASHES}'))
    for text, valid in (('"x0"e', True), ('"xy","AB"e', True), ('"xy",qse', True), ('"xy"e', False), ("r", False)):
        assert accepts(mixed, text.encode()) is valid, text
    with pytest.raises(GrammarError, match="plain text"):
        build_automaton(read_grammar(f'start: (str ",")~0..500 (one | two | "\\"Q") "e"\n{CLASHES}'))


@pytest.mark.parametrize("order", ["other large", "large other"])
def test_states_of_tries_are_of_the_rule_of_their_keys(order: str) -> None:
    """Errors about limits name the rule that grew."""
    members = " ".join(f'("{word}:" "1,")?' for word in _words(80))
    text = f'start: {order}\nother: "{"q" * 600}"\nlarge: "<" {members} ">"\n'
    automaton = build_automaton(read_grammar(text))
    assert automaton.largest_rule().startswith("rule large")
