"""Is a guessed call a valid one? The bundle says so, before anything runs.

Leaves out   what may be run: see rules.py.
Invariants   a call passes only if the bundle accepts its text, whole, as exactly one call. Keys stand in the declared
             order, as in every text that a bundle accepts; a guess in another order is lost, not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..matcher import Matcher
from .calls import Call, CallFormat, format_of, is_compact
from .text import TokenText

if TYPE_CHECKING:
    from ..bundle import Bundle

_ENTRIES = ("required/one", "required", "start")


class CallChecker:
    """Checks calls against a bundle.

    Args:
        bundle: compiled from the tools, for any tokenizer.
        format: of its protocol; found by its name if None.
    """

    def __init__(self, bundle: Bundle, format: CallFormat | None = None) -> None:
        self.bundle = bundle
        self.format = format or format_of(bundle.meta.get("protocol"))
        self.entry = next(name for name in _ENTRIES if name in bundle.entry)
        self.text = TokenText(bundle.vocab)

    def accepts(self, call: Call) -> bool:
        """Whether the bundle takes the call."""
        matcher = Matcher(self.bundle, self.entry)
        for piece in self.text.pieces(self.format.write(call.name, call.arguments, is_compact(self.bundle))):
            if isinstance(piece, int):
                if not matcher.try_advance(piece):
                    return False
            elif matcher.advance_bytes(piece) != len(piece):
                return False
        return matcher.is_complete
