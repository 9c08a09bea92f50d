"""Read a recorded trace of an agent, and work out what speculation would have saved in it.

A trace is JSON lines. A line is a message as OpenAI's API writes it, with the times at which it began and was whole, in
seconds or as ISO 8601 texts, and the conversation that it belongs to, where there are several:

    {"conversation": "a", "role": "assistant", "tool_calls": […], "started": 12.0, "ended": 13.5}
    {"conversation": "a", "role": "tool", "tool_call_id": "1", "content": "…", "started": 13.5, "ended": 14.1}

A line may also be a whole conversation: ``{"messages": […]}``. Messages of other roles are passed over. A turn is an
assistant's message with calls; its tools take from the first one's start to the last one's end.

Leaves out   what guesses cost: see equations.py. Who guesses: the share of right guesses is given, not found here.
Invariants   a line that cannot be read is named by its number; a call without an answer has no time, and is counted.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ..calls.events import Call
from .agent import calls_of
from .equations import ClientSide
from .errors import SpeculateError
from .keys import canonical, parse_json

SLOW = 0.9
"""Quantile of a tool's times that is told beside the median."""


@dataclass(frozen=True)
class Answered:
    """A call and its time.

    Attributes:
        name: of the tool.
        seconds: from its start to its end.
        seen: an equal call was made before, in the trace;  again: in the same conversation.
    """

    name: str
    seconds: float
    seen: bool
    again: bool


@dataclass(frozen=True)
class Recorded:
    """A turn: seconds of the model, seconds until all its tools had answered, and its calls."""

    main_s: float
    tool_s: float
    calls: tuple[Answered, ...]


@dataclass(frozen=True)
class ToolTimes:
    """What a trace says of one tool.

    Attributes:
        calls: how many;  seen, again: shares of them, see `Answered`.
        median_s, slow_s: seconds: the median, and the 90th percentile.
    """

    name: str
    calls: int
    seen: float
    again: float
    median_s: float
    slow_s: float


@dataclass
class Trace:
    """What was recorded.

    Attributes:
        turns: with calls, in their order.
        conversations: how many.
        unanswered: calls without an answer; turns with one are left out.
    """

    turns: list[Recorded] = field(default_factory=list)
    conversations: int = 0
    unanswered: int = 0

    @property
    def standard_s(self) -> float:
        """Seconds of all turns as they were."""
        return sum(turn.main_s + turn.tool_s for turn in self.turns)

    def speculative_s(self, guess_s: float, hit_rate: float) -> float:
        """Seconds of all turns, where a share of them had been guessed (equation 1, turn by turn).

        Args:
            guess_s: g, seconds until a guess is there;  hit_rate: α.
        """
        return sum(ClientSide(turn.main_s, guess_s, turn.tool_s, hit_rate).speculative_s for turn in self.turns)

    @property
    def tools(self) -> list[ToolTimes]:
        """Of every tool, those that took longest in all first."""
        by_name: dict[str, list[Answered]] = defaultdict(list)
        for turn in self.turns:
            for call in turn.calls:
                by_name[call.name].append(call)
        in_all = sorted(by_name.items(), key=lambda item: -sum(call.seconds for call in item[1]))
        return [_times(name, calls) for name, calls in in_all]


def _times(name: str, calls: list[Answered]) -> ToolTimes:
    seconds = sorted(call.seconds for call in calls)
    seen, again = (statistics.fmean(flags) for flags in zip(*((call.seen, call.again) for call in calls), strict=True))
    return ToolTimes(name, len(calls), seen, again, statistics.median(seconds), seconds[int(SLOW * (len(calls) - 1))])


def read_trace(lines: Iterable[str], place: str = "trace") -> Trace:
    """A trace from its lines.

    Raises:
        SpeculateError: a line is no message with times; it is named.
    """
    talks: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{place}:{number}"
        value = parse_json(line, where)
        if isinstance(value, dict) and isinstance(value.get("messages"), list):
            talks[where] += [(f"{where}/messages/{n}", message) for n, message in enumerate(value["messages"])]
        else:
            name = value.get("conversation", "") if isinstance(value, dict) else ""
            talks[str(name)].append((where, value))
    trace, seen = Trace(conversations=len(talks)), set[tuple[str, bytes]]()
    for messages in talks.values():
        _read_talk(messages, trace, seen)
    return trace


def _read_talk(messages: list[tuple[str, Mapping[str, Any]]], trace: Trace, seen: set[tuple[str, bytes]]) -> None:
    """Add the turns of a conversation."""
    answers: dict[str, tuple[float, float]] = {}
    turns: list[tuple[float, tuple[Call, ...]]] = []
    for place, message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise SpeculateError(
                "not a message", place=place, found=str(message)[:60], expected='an object with "role"'
            )
        if message["role"] == "tool":
            answers[str(message.get("tool_call_id"))] = _span(message, place)
        elif message["role"] == "assistant" and message.get("tool_calls"):
            began, ended = _span(message, place)
            try:
                turns.append((ended - began, calls_of(message)))
            except SpeculateError as error:
                raise SpeculateError(f"calls that cannot be read: {error}", place=place) from error
    here = set[tuple[str, bytes]]()
    for main_s, calls in turns:
        known = [answers.get(call.id) for call in calls]
        trace.unanswered += known.count(None)
        spans = [span for span in known if span is not None]
        keys = [(call.name, _key(call)) for call in calls]
        if len(spans) == len(calls):
            answered = tuple(
                Answered(call.name, end - begin, key in seen, key in here)
                for call, key, (begin, end) in zip(calls, keys, spans, strict=True)
            )
            whole = max(end for _, end in spans) - min(begin for begin, _ in spans)
            trace.turns.append(Recorded(main_s, whole, answered))
        seen.update(keys)
        here.update(keys)


def _key(call: Call) -> bytes:
    """The canonical form of a call's arguments; their own text where there is none."""
    try:
        return canonical(call.arguments)
    except SpeculateError:
        return call.json.encode(errors="surrogatepass")


def _span(message: Mapping[str, Any], place: str) -> tuple[float, float]:
    """When a message began and was whole, seconds."""
    began, ended = (_seconds(message.get(key), f"{place}/{key}") for key in ("started", "ended"))
    if ended < began:
        raise SpeculateError("a message that ended before it began", place=place, found=f"{ended - began:g} seconds")
    return began, ended


def _seconds(value: Any, place: str) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        except ValueError:
            pass  # told below, as any other value that is no time
    raise SpeculateError("not a time", place=place, found=repr(value)[:60], expected="seconds, or an ISO 8601 text")
