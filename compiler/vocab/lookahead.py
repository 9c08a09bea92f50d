"""Compute how far a tokenizer looks: which tokens of a text may change once more follows.

A byte-pair encoder works within the pieces of its pre-tokenizer, which a regular expression cuts from left to right.
Those of common tokenizers look at most one character past the end of a piece, at ``(?!\\S)`` too, so every piece but
the last stays, but for two kinds that they give back: blanks that may go on to an end of line, ``\\s*[\\r\\n]+``, and
an apostrophe that may begin a contraction, ``'ll``. Added tokens come first: the library looks for them in the whole
text and encodes what is between them by itself, so where one may begin and run past the end, what is before it may be
a text of its own.

Leaves out   the encoding (encode.py).
Invariants   where it is not known what a tokenizer does, nothing is said to stay.
Source       tokenizers 0.23, src/tokenizer/added_vocabulary.rs; tests/vocab/test_lookahead.py asks the library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NEAR = r"(?!\S)"
_LOOK = re.compile(r"\(\?[=!]")
_CONTRACTION = re.compile(r"'[^\W\d_]{0,2}\Z")


class Ahead:
    """What the tokens of a text depend on behind it.

    Attributes:
        far: whether the pre-tokenizer may look further ahead than one character.
        begun: beginnings of added tokens, but not the whole → whether the token takes the blanks before it, too.
        longest: characters of the longest of them.
        vague: added tokens for which what is behind them, or what a normalizer makes of the text, counts.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        before = tokenizer.pre_tokenizer
        patterns = [] if before is None else list(_patterns(json.loads(before.__getstate__())))
        self.far = any(_LOOK.search(pattern.replace(_NEAR, "")) for pattern in patterns)
        self.begun: dict[str, bool] = {}
        self.vague: list[str] = []
        for token in tokenizer.get_added_tokens_decoder().values():
            text = token.content
            for n in range(1, len(text)):
                self.begun[text[:n]] = token.lstrip or self.begun.get(text[:n], False)
            if token.single_word or (token.normalized and tokenizer.normalizer is not None):
                self.vague.append(text)
        self.longest = max(map(len, self.begun), default=0)
        self._normalizer = tokenizer.normalizer

    def is_vague(self, text: str) -> bool:
        """Whether nothing can be said of a text that goes on."""
        if self.far:
            return True
        if not self.vague:
            return False
        same = (lambda one: one) if self._normalizer is None else self._normalizer.normalize_str
        end = same(text)
        return any(end.endswith(tuple(whole[:n] for n in range(1, len(whole) + 1))) for whole in map(same, self.vague))

    def first_open(self, text: str, words: Sequence[int | None], spans: Sequence[tuple[int, int]]) -> int:
        """The first token of a text of which what follows may make another, but for added tokens.

        Args:
            words: the piece of every token;  spans: its characters.
        """
        first = words.index(words[-1])
        while first and not text[slice(*spans[first - 1])].strip() and not text[spans[first][0] :].strip():
            first = words.index(words[first - 1])
        contraction = _CONTRACTION.search(text)
        if contraction is not None:
            first = next((n for n in range(first) if spans[n][1] > contraction.start()), first)
        return first

    def parts(self, text: str) -> Iterator[str]:
        """Beginnings of a text that may be encoded by themselves, once an added token follows that the text begins."""
        for n in range(1, min(self.longest, len(text)) + 1):
            blanks = self.begun.get(text[-n:])
            if blanks is not None:
                yield text[:-n].rstrip() if blanks else text[:-n]


def _patterns(section: Any) -> Iterator[str]:
    """The regular expressions in a section of a tokenizer."""
    if isinstance(section, dict):
        if isinstance(section.get("Regex"), str):
            yield section["Regex"]
        section = list(section.values())
    if isinstance(section, list):
        for one in section:
            yield from _patterns(one)
