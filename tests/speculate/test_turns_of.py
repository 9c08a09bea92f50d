"""Answers that hold several turns."""

from __future__ import annotations

import pytest

from toolc.runtime.speculate.turns import Piece, turns_of

END, BEGIN = "<|im_end|>", "<|im_start|>assistant\n"


@pytest.mark.parametrize("ended", ["", END])
@pytest.mark.parametrize("count", range(4))
def test_turns_and_what_was_inserted(count: int, ended: str) -> None:
    want: list[Piece] = []
    for n in range(count):
        want += [Piece(f"turn {n}{END}", False), Piece(f"\n<|im_start|>tool\n{n}{END}\n{BEGIN}", True)]
    want += [Piece(f"last{ended}", False)]
    assert turns_of("".join(piece.text for piece in want), END, BEGIN) == want


def test_an_answer_that_was_cut_while_an_output_was_inserted() -> None:
    text = f"turn{END}\n<|im_start|>tool\n0{END}\n<|im_start|>ass"
    assert turns_of(text, END, BEGIN) == [Piece(text, False)]
