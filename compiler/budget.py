"""Limits on what one compile may cost, checked inside the long loops.

Leaves out   what to do when one is reached: the error names the limit, the place and the option.
Units        states, rows: counts; seconds: wall time since ``start()``; bytes: size of the bundle's arrays.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from .errors import BudgetError


@dataclass
class Budget:
    """Limits for one compile. ``None`` means no limit.

    Attributes:
        states: NFA states, DFA states and local states, each kind counted on its own.
        rows: distinct mask rows.
        seconds: wall time of the whole compile.
        bytes: size of the bundle's arrays.
    """

    states: int | None = 2_000_000
    rows: int | None = 500_000
    seconds: float | None = 300.0
    bytes: int | None = 1 << 30
    _started: float = field(default_factory=time.monotonic, repr=False, compare=False)
    _place: str | None = field(default=None, repr=False, compare=False)

    def start(self, place: str | None = None) -> Budget:
        """Restart the clock; returns self. Errors name ``place``, where nothing nearer is known."""
        self._started = time.monotonic()
        self._place = place
        return self

    def elapsed(self) -> float:
        """Seconds since the clock started."""
        return time.monotonic() - self._started

    def check(self, what: str, count: int = 0, place: str | None = None) -> None:
        """Raise BudgetError if ``count`` of ``what`` (states, rows, bytes) or the time is over its limit.

        Args:
            what: the limit that ``count`` counts towards: "states", "rows", "bytes" or "" for the time alone.
            count: how many there are now.
            place: the rule or pointer that is being worked on.
        """
        place = place or self._place
        limit = getattr(self, what) if what else None
        if limit is not None and count > limit:
            raise BudgetError(
                f"the compile passed its limit of {limit:,} {what}",
                place=place,
                hint=f"simplify this part, or raise the limit with --max-{what}",
            )
        if self.seconds is not None and self.elapsed() > self.seconds:
            raise BudgetError(
                f"the compile passed its limit of {self.seconds:g} seconds",
                place=place,
                hint="simplify this part, or raise the limit with --max-seconds",
            )
