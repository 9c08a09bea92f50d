"""A tokenizer's own encoding of texts, with the places where it cuts whatever may follow.

Leaves out   what ids stand for: see load.py. Formats whose encoder is not the tokenizers library: they have none here.
Cuts         A byte-pair encoder works within the pieces of its pre-tokenizer, which a regular expression cuts from left
             to right, looking at most one character past the end of a piece. So every piece but the last of a text, and
             the tokens in it, are the same whatever follows the text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from .builtin import NAME, builtin_path

Encode = Callable[[Sequence[str]], list[tuple[list[int], int]]]
"""Texts → for each its ids, and how many of them do not depend on what follows."""


def encoder(source: str | Path) -> Encode | None:
    """The encoder of a tokenizer.json, a folder that holds one, or the built-in vocabulary; None for all else."""
    path = builtin_path() if str(source) == NAME and not os.path.exists(source) else Path(source)
    path = path / "tokenizer.json" if os.path.isdir(path) else path
    if not os.path.isfile(path) or not path.read_bytes()[:64].lstrip().startswith(b"{"):
        return None
    return _read(path.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)  # of a large vocabulary the library takes a second to read
def _read(data: str) -> Encode | None:
    """See `encoder`, of the text of a file."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(data)
    except Exception:  # the library raises nothing narrower
        return None  # JSON of another kind, such as tekken's

    def encode(texts: Sequence[str]) -> list[tuple[list[int], int]]:
        found = []
        for text in texts:  # one by one: a batch would start threads, beside which nothing can be forked
            encoding = tokenizer.encode(text, add_special_tokens=False)
            words = encoding.word_ids
            found.append((encoding.ids, words.index(words[-1]) if words else 0))
        return found

    return encode
