"""Is a guessed call a valid one? The bundle says so, before anything runs.

Leaves out   what may be run: see rules.py. Finding the text of a call: see ../calls/writer.py.
Invariants   a call passes only if the bundle has a text that is this call and nothing else. Keys stand in the declared
             order, as in every text that a bundle accepts; a guess in another order is lost, not run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..calls.events import Call
from ..calls.reader import Reader
from ..calls.writer import write_call

if TYPE_CHECKING:
    from ..format.bundle import Bundle

_ENTRIES = ("required/one", "required", "start")


class CallChecker:
    """Checks calls against a bundle.

    Args:
        bundle: compiled from the tools, for any tokenizer and in any protocol whose calls can be written.
    """

    def __init__(self, bundle: Bundle) -> None:
        entry = next(name for name in _ENTRIES if name in bundle.entry)
        self.start = Reader(bundle, entry)

    def accepts(self, call: Call) -> bool:
        """Whether the bundle takes the call."""
        return write_call(self.start, call.name, call.arguments) is not None
