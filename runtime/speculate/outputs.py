"""The engine's tool cache: outputs that a client has handed in for a request that is running.

Leaves out   who may hand in what: see server.py.
Invariants   entries belong to one request and are seen by no other; they end with it. What is past its time is not
             found. Bounds on entries and bytes hold at all times: what does not fit is refused, nothing else is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import SpeculateError
from .keys import CallKey


@dataclass(frozen=True)
class CacheLimits:
    """Bounds of the tool cache.

    Attributes:
        output_bytes: of one output, UTF-8.
        entries: of one request.
        request_bytes: of all outputs of one request, and of the arguments of their calls in canonical form.
        total_bytes: the same of all requests.
        keep_alive_s: seconds that an entry lives at most, and where the client does not say.
    """

    output_bytes: int = 64 << 10
    entries: int = 64
    request_bytes: int = 256 << 10
    total_bytes: int = 64 << 20
    keep_alive_s: float = 300.0


@dataclass(frozen=True)
class Entry:
    """An output: of which call, how long it and the arguments are, how long the arguments alone, in canonical form,
    until when, on the engine's clock, it may be used, and the tokens that follow a turn which is this one call, where
    the engine was given them. Without arguments it is the output of any call of its tool."""

    name: str
    arguments: Mapping[str, Any] | None
    output: str
    bytes: int
    argument_bytes: int
    until: float
    after: Sequence[int] = ()


class OutputCache:
    """Outputs by request and call.

    Args:
        limits: what is kept at most.
        now: the clock, seconds.
    """

    def __init__(self, limits: CacheLimits, now: Callable[[], float]) -> None:
        self.limits = limits
        self.now = now
        self.bytes = 0
        self._requests: dict[str, dict[CallKey, Entry]] = {}

    def open(self, request: str) -> None:
        """A request begins."""
        self._requests[request] = {}

    def close(self, request: str) -> None:
        """A request has ended: its entries go."""
        self.bytes -= sum(entry.bytes for entry in self._requests.pop(request, {}).values())

    def __contains__(self, request: str) -> bool:
        return request in self._requests

    def __len__(self) -> int:
        return sum(map(len, self._requests.values()))

    def put(
        self,
        request: str,
        key: CallKey,
        arguments: Mapping[str, Any] | None,
        output: str,
        keep_alive_s: float,
        after: Sequence[int] = (),
    ) -> None:
        """Keep an output for a call; a later one for the same call takes its place.

        Raises:
            SpeculateError: there is no such request, or no room.
        """
        entries = self._requests.get(request)
        if entries is None:
            raise SpeculateError("no such request is running", found=repr(request))
        self._drop_old(entries)
        size = len(output.encode())
        until = self.now() + min(keep_alive_s, self.limits.keep_alive_s)
        entry = Entry(key.tool, arguments, output, size + len(key.arguments), len(key.arguments), until, after)
        old = entries[key].bytes if key in entries else 0
        mine = sum(one.bytes for one in entries.values()) - old + entry.bytes
        for name, count, most in (
            ("output_bytes", size, self.limits.output_bytes),
            ("entries", len(entries) + (key not in entries), self.limits.entries),
            ("request_bytes", mine, self.limits.request_bytes),
            ("total_bytes", self.bytes - old + entry.bytes, self.limits.total_bytes),
        ):
            if count > most:
                raise SpeculateError("the tool cache is full", place=name, found=str(count), expected=f"at most {most}")
        self.bytes += entry.bytes - old
        entries.pop(key, None)  # so that the order is that of arrival
        entries[key] = entry

    def find(self, request: str, key: CallKey) -> Entry | None:
        """The output for a call of the request: that of this very call, else that of any call of its tool."""
        entries = self._requests.get(request, {})
        for entry in (entries.get(key), entries.get(key.of_any)):
            if entry is not None and self.now() <= entry.until:
                return entry
        return None

    def latest(self, request: str, name: str) -> Entry | None:
        """The output that came last for a call of this tool whose arguments are known."""
        for entry in reversed(self._requests.get(request, {}).values()):
            if entry.name == name and entry.arguments is not None and self.now() <= entry.until:
                return entry
        return None

    def _drop_old(self, entries: dict[CallKey, Entry]) -> None:
        for key in [key for key, entry in entries.items() if entry.until < self.now()]:
            self.bytes -= entries.pop(key).bytes
