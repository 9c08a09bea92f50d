"""tiktoken rank files: a line per token, its bytes in base64 and its rank, which is its id.

Leaves out   special tokens: such a file does not name them; the configuration files beside it may, see load.py.
Source       tiktoken 0.14, tiktoken/load.py. Llama 3's and Kimi's tokenizer.model are of this kind.
"""

from __future__ import annotations

import base64
import re

from ..errors import VocabError
from .table import Draft, most_ids

_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?(\n|$)")


def looks_like_ranks(data: bytes) -> bool:
    """Whether a file begins like a rank file."""
    return _LINE.match(data) is not None


def read_ranks(data: bytes, place: str) -> Draft:
    """The token bytes of a rank file.

    Raises:
        VocabError: a malformed line, or an id used twice.
    """
    pairs: list[tuple[int, bytes]] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            text, number_text = line.split()
            pairs.append((int(number_text), base64.b64decode(text, validate=True)))
        except ValueError:  # binascii.Error is one
            raise VocabError(
                place=f"{place}:{number}", found=repr(line[:40]), expected="base64, a space and a rank"
            ) from None
    top = max((rank for rank, _ in pairs), default=-1)
    beyond = most_ids(len(pairs))
    if top >= beyond:
        raise VocabError("a rank that no vocabulary has", place=place, found=str(top), expected=f"0 to {beyond - 1}")
    if len({rank for rank, _ in pairs}) != len(pairs):
        raise VocabError("two lines with one rank", place=place)
    tokens = [b""] * (top + 1)
    for rank, content in pairs:
        tokens[rank] = content
    return Draft(tokens=tokens, special={}, knows_special=False)
