"""%declare: a terminal without a definition stands for the special token that has its words."""

from __future__ import annotations

import pytest

from toolc.compiler import compile_grammar
from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError, VocabError
from toolc.compiler.grammar.specials import words_of
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Vocab
from toolc.runtime.reference import Sequence


def vocab(*special: str) -> Vocab:
    """A vocabulary of bytes and these tokens, the last of which ends a turn."""
    tokens = tuple(bytes([byte]) for byte in range(256))
    ids = {name: 256 + at for at, name in enumerate(special)}
    table = TokenTable(tokens + (b"",) * len(special), ids, (255 + len(special),), "small", "tests")
    return build_vocab(table)


SMALL = vocab("<tool_call>", "</tool_call>", "[IMG]", "<|img|>", "<｜tool▁sep｜>", "<|end_of_turn|>")

# grammar, texts and tokens that are read (a number is a token), whether they may end there
READ = [
    ("%declare TOOL_CALL END_TOOL_CALL\nstart: TOOL_CALL /[a-z]+/ END_TOOL_CALL", [256, "ab", 257], True),
    ("%declare TOOL_CALL\nstart: TOOL_CALL*", [256, 256], True),
    ("%declare TOOL_SEP\nstart: t{TOOL_SEP}\nt{x}: x [x]", [260, 260], True),
    ('%declare TOOL_SEP\nstart: "a"+\n%ignore TOOL_SEP', ["a", 260, 260, "a", 260], True),
    ("%declare TOOL_SEP\n%override TOOL_SEP: /x/\nstart: TOOL_SEP", ["x"], True),
    ("%declare UNUSED\nstart: /x/", ["x"], True),
]


@pytest.mark.parametrize(("text", "parts", "ends"), READ, ids=[row[0][:50] for row in READ])
def test_a_token_is_read_by_its_id(text: str, parts: list[str | int], ends: bool) -> None:
    sequence = Sequence.start(compile_grammar(text, SMALL).bundle)
    for part in parts:
        for token in [part] if isinstance(part, int) else list(part.encode()):
            assert sequence.mask() == sequence.brute_mask()
            assert token in sequence.mask()
            sequence.advance(token)
    assert sequence.may_end == ends


def test_its_text_is_no_token() -> None:
    mask = Sequence.start(compile_grammar("%declare TOOL_CALL\nstart: TOOL_CALL", SMALL).bundle).mask()
    assert mask == {256}


# grammar, error, words
REFUSED = [
    ("%declare THINK\nstart: THINK", VocabError, "no token of this tokenizer"),
    ("%declare IMG\nstart: IMG", VocabError, "more than one token here; found <|img|> and [IMG]"),
    ("%declare END_OF_TURN\nstart: END_OF_TURN", VocabError, "ends a turn in this tokenizer"),
    ('%declare X\nA: "a" X\nstart: A', GrammarError, "at g.lark:2:1\n  terminal A uses X, which %declare"),
    ("%declare x\nstart: x", GrammarError, "rule x is declared but not defined"),
    ("%declare X\nstart: /a(?=b)/ X", UnsupportedError, "X beside terminals that look around"),
]


@pytest.mark.parametrize(("text", "error", "words"), REFUSED, ids=[row[0][:50] for row in REFUSED])
def test_what_no_token_can_stand_for_is_refused(text: str, error: type[ToolcError], words: str) -> None:
    with pytest.raises(error) as caught:
        compile_grammar(text, SMALL, name="g.lark")
    assert words in str(caught.value)


def test_words() -> None:
    names = ["<tool_call>", "</tool_call>", "<|/x|>", "[TOOL_CALLS]", "<｜tool▁calls▁begin｜>", "<think/>", "<|a|b|>"]
    wanted = ["TOOL_CALL", "END_TOOL_CALL", "END_X", "TOOL_CALLS", "TOOL_CALLS_BEGIN", "THINK_END", "A_B"]
    assert [words_of(name) for name in names] == wanted
