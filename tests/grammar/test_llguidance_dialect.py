"""llguidance's variant of Lark: what its texts mean, against llguidance where that is installed; what is refused."""

from __future__ import annotations

import random

import pytest

from toolc.compiler import compile_grammar
from toolc.compiler.dialects import lark_text
from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError
from toolc.runtime.reference import Sequence

from .lr1_compare import compiled
from .test_compile_regex import accepts

# text, accepted, refused
ROWS = [
    ('start: "a"{2,3} "b"{2} ("c" | "d"){1,} "e"{,2} "f"{0,}', ["aabbc", "aaabbcdeef"], ["abbc", "aabb", "aabbceee"]),
    ('start: my-rule MY-TOKEN? my_rule\nmy-rule: "x"\nmy_rule: "y"\nMY-TOKEN: /[0-9]/', ["xy", "x1y"], ["xx", "yy"]),
    ('%llguidance {}\n# one\nstart[capture="s"]: "a" // two\n  | w\nw[temperature=0.7]: /b+/', ["a", "bb"], ["ab"]),
    ('start: "\\u00e4\\n\\/\\"" "Ab"i', ['ä\n/"aB'], ["ä"]),
    ('start: "a" [b] c?\nb: "b"\nc: "c"', ["a", "abc"], ["b"]),
    ('start: (A | B){2}\nA: /a{1,2}c/\nB: "b" A{2} ".."', ["acaac", "baacac..ac"], ["ac", "b"]),
    ('start: /[^a-c\\]\\[]/ "a".."c"'.replace(' "a".."c"', ""), ["d", "^"], ["a", "]", "["]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "accepted", "refused"), ROWS, ids=[repr(row[0])[:60] for row in ROWS])
def test_what_a_text_means(text: str, accepted: list[str], refused: list[str]) -> None:
    automaton = compiled(lark_text(text, "llguidance", "g"))
    assert [accepts(automaton, one) for one in accepted] == [True] * len(accepted)
    assert [accepts(automaton, one) for one in refused] == [False] * len(refused)


def test_llguidance_reads_it_so() -> None:
    llguidance = pytest.importorskip("llguidance")
    tokenizer, rng, letters = llguidance.LLTokenizer("byte"), random.Random(5), 'abcdefxy01.ä\n/"AB]'
    for text, accepted, refused in ROWS:
        automaton = compiled(lark_text(text, "llguidance", "g"))
        noise = {"".join(rng.choice(letters) for _ in range(rng.randint(1, 5))) for _ in range(200)}
        for one in [*accepted, *refused, *sorted(noise)]:
            matcher = llguidance.LLMatcher(tokenizer, text, log_level=0)
            assert not matcher.get_error(), text
            wanted = matcher.try_consume_tokens(list(one.encode())) == len(one.encode()) and matcher.is_accepting()
            assert accepts(automaton, one) == wanted, (text, one)


def test_lines_stay_where_they_are() -> None:
    text = '%llguidance {\n  "no_forcing": true\n}\nstart: a{2,}  # c\na: <think>\n'
    assert lark_text(text, "lark", "g").split("\n")[3:5] == [
        "start: (a~2 a*)  ",
        'a: _token{"<think>"}',
    ]
    with pytest.raises(GrammarError, match=r"at g:4"):
        compile_grammar("%llguidance {}\n\n\nstart: b{2}\n", "builtin", name="g")


def test_tokens_are_special_tokens() -> None:
    text = 'start: <think> "x" </think>'
    sequence = Sequence.start(compile_grammar(text, "builtin", syntax="llguidance").bundle)
    assert sequence.mask() == {sequence.bundle.vocab.special["<think>"]}


REFUSED = [
    ('start: %json {"type": "object"}', UnsupportedError, "at g:1:8\n  %json is not supported"),
    ('start: A\nA: %regex {"substring_chars": "ab"}', UnsupportedError, "at g:2:4\n  %regex is not supported"),
    ("start: @other", UnsupportedError, "at g:1:8\n  another grammar is not supported"),
    ("start: <[128010]>", UnsupportedError, "at g:1:8\n  a token by its id is not supported"),
    ("start: A\nA: /a*/ & /b*/", UnsupportedError, "at g:2:9\n  the operator & is not supported"),
    ("start: A\nA: ~/a/", UnsupportedError, "at g:2:4\n  the operator ~ is not supported"),
    (
        "start: a\na[lazy]: /a*b/",
        UnsupportedError,
        "at g:2:3\n  the attribute lazy is not supported; write a lazy repeat",
    ),
    ('start: a\na[capture, stop="b"]: /a*/', UnsupportedError, "the attribute stop is not supported"),
    ('start: a\na[suffix=","]: /a*/', UnsupportedError, "the attribute suffix is not supported"),
    ("start: a\na[max_tokens=5]: /a*/", UnsupportedError, "the attribute max_tokens is not supported"),
    ("start: /[[:alpha:]]/", UnsupportedError, "[ in a class of characters is not supported"),
    ("start: /[a-z&&[^b]]/", UnsupportedError, "in a class of characters is not supported"),
    ('%llguidance {"skip_repetition": "once"}\nstart: "a"', UnsupportedError, "the option skip_repetition is not"),
    ('%llguidance x\nstart: "a"', GrammarError, "malformed options"),
    ('start: "\\q"', GrammarError, "at g:1:8\n  malformed string"),
    ("start: {2}", GrammarError, "at g:1:8\n  malformed repetition"),
    ("start: a::1", UnsupportedError, "at g:1:9\n  a parameter of a rule is not supported"),
]


@pytest.mark.parametrize(("text", "error", "words"), REFUSED, ids=[repr(row[0])[:60] for row in REFUSED])
def test_what_has_no_meaning_is_refused_by_name(text: str, error: type[ToolcError], words: str) -> None:
    with pytest.raises(error) as caught:
        lark_text(text, "llguidance", "g")
    assert words in str(caught.value)
