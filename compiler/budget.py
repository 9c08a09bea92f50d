"""Limits on what one compile may cost, checked inside the long loops.

Leaves out   what to do when one is reached: the error names the limit, the place and, where there is one, the option.
Units        states, pattern_states, rows: counts; bytes: size of the bundle's arrays; seconds: processor time of the
             thread since ``start()``, less what numba took to compile kernels, which it does once on a machine. Each
             worker (link/workers.py) has a clock of its own, which begins where that of its parent stood.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .errors import BudgetError, SpecError, UnsupportedError

if TYPE_CHECKING:
    from numba.core.event import TimingListener

_kernels: list[TimingListener] = []  # at most one, for the whole process


def kernel_seconds() -> float:
    """Seconds that numba has compiled kernels for, counted from the first call after numba was imported."""
    if not _kernels and "numba" in sys.modules:
        from numba.core.event import TimingListener, register

        _kernels.append(TimingListener())
        register("numba:compile", _kernels[0])
    return float(_kernels[0].duration) if _kernels and _kernels[0].done else 0.0


def _now() -> float:
    return time.thread_time() - kernel_seconds()


_NODES = 1 << 25  # of tries, visited between two looks at the clock
_ticking: ContextVar[Budget | None] = ContextVar("ticking", default=None)


def running() -> Budget | None:
    """The budget of the compile that is running here, if one is: for what is kept by value and is given none, as what
    is made of patterns."""
    return _ticking.get()


def look() -> None:
    """Look at the clock of the compile that is running here, if one is."""
    budget = _ticking.get()
    if budget is not None:
        budget.check("")


def walks_at_a_time(nodes: int, most: int) -> int:
    """How many walks over a trie of so many nodes are made between two looks at the clock."""
    return max(16, min(most, _NODES // max(1, nodes)))


def check_breaks(count: int) -> None:
    """Raise UnsupportedError if counters are held against more bounds in one place than a bundle has room for; no
    place is named."""
    from toolc.runtime.format.tables import MAX_BREAKS  # numpy: who only sets limits does without

    if count > MAX_BREAKS:
        raise UnsupportedError(
            f"{count} bounds of lengths or counts have to be told apart in one place, and {MAX_BREAKS} can be",
            hint="leave out some of the alternatives with lengths of their own",
        )


@dataclass
class Budget:
    """Limits for one compile. ``None`` means no limit.

    Attributes:
        states: NFA states, DFA states and local states of one part (link/split.py), each kind counted on its own. A
            spec has many parts; all of them together are bounded by ``bytes``.
        pattern_states: states that the DFA of one terminal (a ``pattern``, a format) has beyond those of its NFA; what
            has this many explodes.
        rows: distinct mask rows.
        seconds: processor time of the whole compile, without that of the kernels.
        bytes: size of the bundle's arrays.
    """

    states: int | None = 2_000_000
    pattern_states: int | None = 200_000
    rows: int | None = 500_000
    seconds: float | None = 300.0
    bytes: int | None = 1 << 30
    _started: float = field(default_factory=_now, repr=False, compare=False)
    _since: float = field(default_factory=time.monotonic, repr=False, compare=False)  # when last asked, on the wall
    _spent: float = field(default=0.0, repr=False, compare=False)  # seconds until then
    _place: str | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("states", "pattern_states", "rows", "seconds", "bytes"):
            limit = getattr(self, name)
            kinds = (int, float) if name == "seconds" else (int,)
            if limit is not None and (not isinstance(limit, kinds) or isinstance(limit, bool) or not limit >= 0):
                expected = "a number" if name == "seconds" else "a whole number"
                found = repr(limit)[:40]
                raise SpecError("no such limit", place=f"Budget.{name}", found=found, expected=f"{expected} or None")

    def start(self, place: str | None = None) -> Budget:
        """Restart the clock; returns self. Errors name ``place``, where nothing nearer is known."""
        self._started, self._since, self._spent = _now(), time.monotonic(), 0.0
        self._place = place
        return self

    @contextmanager
    def ticking(self) -> Iterator[None]:
        """Inside, `running` is this budget, and `look` looks at its clock."""
        token = _ticking.set(self)
        try:
            yield
        finally:
            _ticking.reset(token)

    def elapsed(self) -> float:
        """Seconds since the clock started, without those of kernels."""
        return _now() - self._started

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        if self.seconds is None or self._spent + time.monotonic() - self._since <= self.seconds:
            return False  # a thread gets no more processor time than passes on the wall, which is quicker to ask
        self._since = time.monotonic()
        self._spent = self.elapsed()
        return self._spent > self.seconds

    def resume(self, spent: float) -> None:
        """Go on after so many seconds, in a forked process, whose clock began anew."""
        self._started, self._since, self._spent = _now() - spent, time.monotonic(), spent

    @contextmanager
    def blaming(self, place: Callable[[], str]) -> Iterator[None]:
        """Errors inside that know no nearer place name what ``place`` finds, which is asked only then."""
        try:
            yield
        except (BudgetError, UnsupportedError) as error:
            if error.place in (None, self._place):
                error.place = place()
            raise

    def check(self, what: str, count: int = 0, place: str | None = None) -> None:
        """Raise BudgetError if ``count`` of ``what`` or the time is over its limit.

        Args:
            what: the limit that ``count`` counts towards, by its name, or "" for the time alone.
            count: how many there are now.
            place: the rule or pointer that is being worked on.
        """
        place = place or self._place
        limit = getattr(self, what) if what else None
        if limit is not None and count > limit:
            raise BudgetError(
                f"the compile passed its limit of {limit:,} {what.replace('_', ' ')}",
                place=place,
                hint=f"simplify this part, or raise the limit with --max-{what.replace('_', '-')}",
            )
        if self.is_late:
            raise BudgetError(
                f"the compile passed its limit of {self.seconds:g} seconds",
                place=place,
                hint="simplify this part, or raise the limit with --max-seconds",
            )
