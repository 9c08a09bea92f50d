"""docs/grammars.md: every row does what it says, in toolc and in Lark."""

from __future__ import annotations

import re
from pathlib import Path

import lark
import pytest

from tests.automata.machine import Run
from toolc.compiler.errors import GrammarError, UnsupportedError
from toolc.runtime.format.ops import END_OF_TURN

from .lr1_compare import compiled, reads

PAGE = Path(__file__).parents[2] / "docs" / "grammars.md"
ROWS = re.findall(
    r"^\| (.+?) \| `((?:\\\||[^`|])+)` \| (.*?) \| (.*?)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
)


def test_every_row_is_found() -> None:
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "⏎ |" not in line
    ]
    assert len(ROWS) == len(rows) > 20


@pytest.mark.parametrize(("feature", "lines", "accepted", "refused"), ROWS, ids=[row[0] for row in ROWS])
def test_a_row_of_the_page(feature: str, lines: str, accepted: str, refused: str) -> None:
    text = "\n".join(line.strip() for line in lines.replace("\\|", "|").split("⏎")) + "\n"
    if "`" not in accepted:
        with pytest.raises((GrammarError, UnsupportedError)):
            compiled(text)
        return
    automaton, parser = compiled(text), lark.Lark(text, parser="earley", lexer="dynamic_complete")

    def ours(one: str) -> bool:
        run = Run(automaton)
        return all(reads(run, byte) and run.step(byte) for byte in one.encode()) and reads(run, END_OF_TURN)

    def theirs(one: str) -> bool:
        try:
            parser.parse(one)
        except lark.exceptions.LarkError:
            return False
        return True

    for cell, wanted in ((accepted, True), (refused, False)):
        some = re.findall("`([^`]+)`", cell)
        assert some and [ours(one) for one in some] == [theirs(one) for one in some] == [wanted] * len(some)
