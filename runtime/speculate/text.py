"""Between tokens and text, with special tokens by their content.

Leaves out   tokenising: that is the tokenizer's, given as a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..vocab import Vocab


class TokenText:
    """The text of tokens of a vocabulary."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self.special = {token: name for name, token in vocab.special.items()}
        names = sorted(vocab.special, key=len, reverse=True)
        self._split = re.compile("(" + "|".join(map(re.escape, names)) + ")") if names else None

    def bytes_of(self, tokens: Iterable[int]) -> bytes:
        """The bytes that tokens stand for; those of a special token are its content."""
        return b"".join(
            self.special[token].encode() if token in self.special else self.vocab.token(token) for token in tokens
        )

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens; bytes that are no UTF-8 become replacement characters."""
        return self.bytes_of(tokens).decode("utf-8", "replace")

    def pieces(self, text: str) -> Iterator[int | bytes]:
        """The text as ids of special tokens and the bytes between them."""
        for piece in self._split.split(text) if self._split else [text]:
            if piece in self.vocab.special:
                yield self.vocab.special[piece]
            elif piece:
                yield piece.encode()
