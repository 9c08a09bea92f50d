"""Streamed text: equal to decoding at once, never late, never half a character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.runtime import DecodeError, TextStream

from ..slow_lift import reference_vocab

BYTES = [bytes([b]) for b in range(256)]
VOCAB = reference_vocab(
    [*BYTES, b"", "é€".encode(), "\U0001f600".encode()[:3], b""], {"<end>": 256, "<x>": 2}, [256], {}
)
SPECIAL = {256, 2}


@given(st.lists(st.integers(0, VOCAB.size - 1)))
def test_pieces_are_the_whole(tokens: list[int]) -> None:
    stream, text, whole, data = TextStream(VOCAB), "", "", b""
    for token in tokens:
        text += stream.push(token)
        if token in SPECIAL:
            whole, data = whole + data.decode("utf-8", "replace"), b""
        else:
            data += VOCAB.token(token)
        # What is kept back may yet become one character, and is not one.
        assert len(stream.pending) < 4
        complete = data[: len(data) - len(stream.pending)]
        assert text == whole + complete.decode("utf-8", "replace")
    assert text + stream.finish() == whole + data.decode("utf-8", "replace")
    assert stream.pending == b""
    assert TextStream(VOCAB).push(tokens) == text


@given(st.text())
def test_each_character_comes_with_its_last_byte(text: str) -> None:
    stream = TextStream(VOCAB)
    for character in text:
        if any(byte in SPECIAL for byte in character.encode()):
            continue
        *first, last = character.encode()
        assert all(stream.push(byte) == "" for byte in first)
        assert stream.push(last) == character


def test_special_tokens() -> None:
    smile = list("\U0001f600".encode())
    assert TextStream(VOCAB, special=True).push([104, 105, *smile, 256]) == "hi\U0001f600<end>"
    assert TextStream(VOCAB).push([104, *smile[:2], 256, 105]) == "h�i"
    with pytest.raises(DecodeError, match="no such token"):
        TextStream(VOCAB).push(VOCAB.size)
