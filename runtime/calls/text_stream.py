"""Text for people, as tokens come: characters as soon as all their bytes are there.

Leaves out   what the text means: see the specs of a bundle's tools.
Invariants   the pieces, put together, are the text of all tokens at once. Bytes that are no UTF-8 become U+FFFD, once
             for each maximal part of a character, as `bytes.decode("utf-8", "replace")` does; a special token ends a
             character.
"""

from __future__ import annotations

import codecs
import operator
from collections.abc import Iterable

from ..errors import DecodeError
from ..expected import expect
from ..format.vocab import Vocab


class TextStream:
    """The text of one sequence, piece by piece.

    Args:
        vocab: that of the bundle.
        special: show special tokens under their names; otherwise they are left out.
    """

    def __init__(self, vocab: Vocab, special: bool = False) -> None:
        expect(vocab, Vocab, "TextStream(vocab)", "a Vocab", {"Bundle": "write bundle.vocab"})
        self._vocab = vocab
        self._special = special
        self._names = {number: name for name, number in vocab.meta["special"].items()}
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, tokens: int | Iterable[int]) -> str:
        """Read a token, or several; returns the text that is complete now and was not before.

        Raises:
            DecodeError: there is no such token; those before it were read.
        """
        text = ""
        several = isinstance(tokens, Iterable) and getattr(tokens, "ndim", 1) > 0  # an array may hold one
        for token in map(operator.index, tokens if several else [tokens]):  # type: ignore[arg-type]
            if not 0 <= token < self._vocab.size:
                raise DecodeError("no such token", found=str(token), expected=f"0 to {self._vocab.size - 1}")
            if token in self._names:
                text += self.finish() + (self._names[token] if self._special else "")
            else:
                text += self._decoder.decode(self._vocab.token(token))
        return text

    @property
    def pending(self) -> bytes:
        """The bytes of a character that is not complete."""
        return self._decoder.getstate()[0]

    def finish(self) -> str:
        """End the text: what is pending becomes U+FFFD. A new text may follow."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
