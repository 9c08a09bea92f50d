"""Define what a reader holds and raises: the call that is open, a place to go back to, a refusal.

Leaves out   how they change: see reader.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import TextError
from .arguments import Part

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from ..reference import Configuration


class Saved(NamedTuple):
    """Where a reader stood; what only grows is told by its length."""

    plain: tuple[Any, ...]
    at: Configuration
    arounds: tuple[int, ...]
    utf8: tuple[bytes, int]
    data: int
    begins: int
    calls: int
    open: OpenCall | None
    held: tuple[Any, ...]


class Refusal(TextError):
    """A text that is none of the bundle, and where in the tables.

    Attributes:
        offset: how many of its bytes were read.
        at: where it stood in the tables then.
        wanted: what was expected, where the tables do not say it.
    """

    def __init__(
        self,
        bundle: Bundle,
        offset: int,
        at: Configuration,
        found: str,
        message: str = "the text is none of the bundle",
        wanted: str = "",
        hint: str | None = None,
    ) -> None:
        place = f"{bundle.name}, byte {offset}, state {at.state}, depth {len(at.stack)}"
        super().__init__(message, place=place, found=found, expected=wanted or "what its masks allow", hint=hint)
        self.offset, self.at, self.wanted = offset, at, wanted


@dataclass
class OpenCall:
    """The call that is being read: its number, where its name begins, its tool (-1: not settled yet), where its name
    ends and its arguments begin (-1: not yet)."""

    number: int
    begin: int
    depth: int  # frames around it
    tool: int = -1
    named: int = -1
    arguments: int = -1
    parts: list[Part] = field(default_factory=list)
    key: str | None = None  # of a parameter whose value has not come

    def take_empty(self) -> None:
        """A value of no text at all has come."""
        self.parts += self.empty
        self.key = None

    @property
    def empty(self) -> list[Part]:
        """The part whose value would be no text at all, where one is due."""
        return [] if self.key is None else [Part(self.key, "", True)]
