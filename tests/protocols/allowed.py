"""Tell whether masks allow a whole text, blank for blank, delimiters as tokens; `check` reads other blanks, too."""

from __future__ import annotations

import re

from toolc.runtime import Matcher
from toolc.runtime.format.bundle import Bundle


def read_text(matcher: Matcher, data: bytes) -> int:
    """Read a text as far as it goes, delimiters as tokens where they are tokens; how many bytes were read."""
    tokens = {name.encode(): token for name, token in matcher.bundle.meta["delimiters"].items() if token is not None}
    offset = 0
    for piece in re.split(b"(" + b"|".join(map(re.escape, tokens)) + b")", data) if tokens else [data]:
        if piece in tokens:
            count = len(piece) if matcher.try_advance(tokens[piece]) else 0
        else:
            count = matcher.advance_bytes(piece)
        offset += count
        if count < len(piece):
            break
    return offset


def masks_allow(held: Bundle, text: bytes, entry: str) -> bool:
    """Whether a decode could write a text and end, blank for blank; `check` reads other blanks, too."""
    matcher = Matcher(held, entry)
    return read_text(matcher, text) == len(text) and matcher.is_complete
