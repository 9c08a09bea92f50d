"""docs/grammars.md: every row does what it says, in toolc and in Lark."""

from __future__ import annotations

import re
from pathlib import Path

import lark
import pytest

from tests.automata.machine import Run
from toolc.compiler import compile_grammar
from toolc.compiler.errors import GrammarError, UnsupportedError
from toolc.runtime import Bundle
from toolc.runtime.format.ops import END_OF_TURN
from toolc.runtime.reference import Sequence

from .lr1_compare import compiled, reads

PAGE = Path(__file__).parents[2] / "docs" / "grammars.md"
PAGE_TEXT = PAGE.read_text(encoding="utf-8").partition("## A library")[0]
ROWS = re.findall(r"^\| (.+?) \| `((?:\\\||[^`|])+)` \| (.*?) \| (.*?)\|$", PAGE_TEXT, re.MULTILINE)


def test_every_row_is_found() -> None:
    rows = [line for line in PAGE_TEXT.splitlines() if line.startswith("| ") and "⏎ |" not in line]
    assert len(ROWS) == len(rows) > 35


@pytest.mark.parametrize(("feature", "lines", "accepted", "refused"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_page(feature: str, lines: str, accepted: str, refused: str) -> None:
    text = "\n".join(line.strip() for line in lines.replace("\\|", "|").split("⏎")) + "\n"
    if "`" not in accepted:
        with pytest.raises((GrammarError, UnsupportedError)):
            compiled(text)
        return
    some = [
        ([one.replace("\\n", "\n") for one in re.findall("`([^`]+)`", cell)], wanted)
        for cell, wanted in ((accepted, True), (refused, False))
    ]
    assert all(texts for texts, _ in some)
    if "%declare" in text:
        bundle = compile_grammar(text, "builtin").bundle
        for texts, wanted in some:
            assert [with_tokens(bundle, one) for one in texts] == [wanted] * len(texts)
        return
    around = PAGE_TEXT.index(lines) > PAGE_TEXT.index("## What stands around")
    automaton = compiled(text)
    lexer = "dynamic" if around else "dynamic_complete"
    parser = lark.Lark(text, parser="earley", lexer=lexer, import_paths=[str(PAGE.parents[1] / "grammars")])

    def ours(one: str) -> bool:
        run = Run(automaton)
        return all(reads(run, byte) and run.step(byte) for byte in one.encode()) and reads(run, END_OF_TURN)

    def theirs(one: str) -> bool:
        try:
            parser.parse(one)
        except lark.exceptions.LarkError:
            return False
        return True

    for texts, wanted in some:
        assert [ours(one) for one in texts] == [theirs(one) for one in texts] == [wanted] * len(texts)


def with_tokens(bundle: Bundle, text: str) -> bool:
    """Whether a text is one of a bundle, in which special tokens stand as their content."""
    sequence, special = Sequence.start(bundle), bundle.vocab.special
    of_byte = {bundle.vocab.token(token): token for token in range(bundle.vocab.size)}
    for part in re.split(f"({'|'.join(map(re.escape, special))})", text):
        tokens = [special[part]] if part in special else [of_byte[one.encode()] for one in part]
        for token in tokens:
            if token not in sequence.mask():
                return False
            sequence.advance(token)
    return sequence.may_end
