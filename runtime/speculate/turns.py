"""Take an answer apart that holds several turns, since outputs were inserted between them.

An engine that keeps a sequence writes the delimiters of the messages in between, as its chat template has them; no text
of a model or of a tool can be one. So they are the marks of what was inserted.

Leaves out   reading the turns: see reader.py.
"""

from __future__ import annotations

from typing import NamedTuple


class Piece(NamedTuple):
    """A turn of the model, or what was inserted behind one."""

    text: str
    inserted: bool


def turns_of(text: str, end: str, begin: str) -> list[Piece]:
    """The turns of an answer, and what was inserted between them.

    Args:
        text: of the answer, special tokens not skipped.
        end: the delimiter that ends a turn; it stays at the turn's end.
        begin: what the template writes before a turn of the model; it stays at the end of what was inserted.
    """
    pieces: list[Piece] = []
    at = 0
    while (stop := text.find(end, at)) >= 0 and (start := text.find(begin, stop + len(end))) >= 0:
        turn, start = stop + len(end), start + len(begin)
        pieces += [Piece(text[at:turn], False), Piece(text[turn:start], True)]
        at = start
    return [*pieces, Piece(text[at:], False)]
