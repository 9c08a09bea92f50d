"""An agent's loop over a model behind an OpenAI-compatible interface: ask, run the calls, answer, until there are none.

Leaves out   models: anything with the methods of ChatModel. Running calls: see executor.py.
Invariants   the messages are the same with an executor that guesses and with one that does not.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ..calls.events import Call
from .errors import SpeculateError, check_limit
from .executor import Deliver, Executor, Sample, Turn
from .keys import parse_object
from .tools import Output

Message = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    """An answer of a model.

    Attributes:
        message: the assistant's, as the API writes it.
        calls: its calls.
        resident: messages that the engine added before it, turns answered from its tool cache: calls and outputs.
        cut: it reached `max_tokens`, which it shares with the turns before it in the same request. Asked for again,
            with these in the messages, it has all of them to itself.
    """

    message: Message
    calls: tuple[Call, ...] = ()
    resident: tuple[Message, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Watch:
    """Who wants to know what becomes of a request before its answer is there.

    Attributes:
        begun: called with a function that hands over results, as soon as the engine can take some.
        stayed: called with the messages that the engine has added so far, whenever a turn was answered there.
        resident_turns: turns that the engine may answer so at most; None: as many as it likes.
    """

    begun: Callable[[Deliver], None]
    stayed: Callable[[Sequence[Message]], None]
    resident_turns: int | None = None


class ChatModel(Protocol):
    """What answers messages."""

    async def reply(self, messages: Sequence[Message], watch: Watch | None = None) -> Reply:
        """Answer the chat so far."""
        ...

    def sample(self, number: int) -> ChatModel:
        """What answers the n-th of several guesses: with other random numbers, where a model has any."""
        return self


@dataclass
class Transcript:
    """What an agent did.

    Attributes:
        messages: all of them.
        turns: answers that came to the client.
        resident_turns: those that the engine answered before them.
        outputs: of the calls that the client ran.
        stopped: the bound of `run_agent` that ended it, "max_turns" or "max_s"; empty: the model ended it.
    """

    messages: list[Message]
    turns: int = 0
    resident_turns: int = 0
    outputs: list[Output] = field(default_factory=list)
    stopped: str = ""


def assistant_message(content: str | None, calls: Iterable[Call]) -> Message:
    """The message of an answer."""
    written = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}} for call in calls
    ]
    return {"role": "assistant", "content": content or None} | ({"tool_calls": written} if written else {})


def tool_message(call: Call, output: Output) -> Message:
    """The message that answers a call."""
    return {"role": "tool", "tool_call_id": call.id, "content": output.text}


def parse_call(name: str, text: str, id: str = "") -> Call:
    """A call from the JSON text of its arguments; none is an empty object.

    Raises:
        SpeculateError: the name is no text, or the text no JSON object.
    """
    if not isinstance(name, str):
        raise SpeculateError("a call of what has no name", found=repr(name)[:80], expected="the name of a tool")
    return Call(name, parse_object(text or "{}", f"arguments of {name}"), text or "{}", id=id)


def calls_of(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The calls of an assistant's message.

    Raises:
        SpeculateError: they are not written as the API says.
    """
    try:
        return tuple(
            parse_call(one["function"]["name"], one["function"]["arguments"], one["id"])
            for one in message.get("tool_calls") or ()
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise SpeculateError(
            "no list of calls",
            place="tool_calls",
            found=str(message.get("tool_calls"))[:80],
            expected='{"id", "type": "function", "function": {"name", "arguments"}}',
        ) from error


async def run_agent(
    model: ChatModel,
    executor: Executor,
    messages: Sequence[Message],
    guesser: Callable[[Sequence[Message]], Iterable[Sample]] | None = None,
    max_turns: int = 16,
    max_s: float = math.inf,
) -> Transcript:
    """Run an agent to its end, or to a bound, which the transcript names.

    Args:
        model: the main model.
        executor: runs its calls.
        messages: to begin with.
        guesser: samples of the speculative model for the messages; None: no speculation.
        max_turns: answers at most, those included that an engine answers itself.
        max_s: seconds at most. A turn that is under way then is cancelled, and not in the transcript.

    Raises:
        SpeculateError: a bound is no number.
    """
    check_limit("max_turns", max_turns, whole=True)
    check_limit("max_s", max_s)
    transcript = Transcript(list(messages))
    loop = asyncio.get_running_loop()
    until = loop.time() + max_s
    while (left := max_turns - transcript.turns - transcript.resident_turns) > 0:
        seen = list(transcript.messages)

        def main(turn: Turn, seen: list[Message] = seen, left: int = left) -> Awaitable[Reply]:
            def stayed(resident: Sequence[Message]) -> None:
                if guesser is not None:
                    turn.guess(guesser([*seen, *resident]))

            return model.reply(seen, Watch(turn.deliver_to, stayed, left - 1))

        samples = guesser(seen) if guesser is not None else ()
        work = executor.turn(main, samples, lambda reply: reply.calls)
        done = await (work if max_s == math.inf else _within(work, until - loop.time(), executor.limits.grace_s))
        if done is None:
            transcript.stopped = "max_s"
            return transcript
        reply, outputs = done
        transcript.resident_turns += sum(one["role"] == "assistant" for one in reply.resident)
        transcript.messages += reply.resident
        if reply.cut and reply.resident:
            continue
        transcript.turns += 1
        transcript.messages += [reply.message]
        transcript.messages += [tool_message(call, output) for call, output in zip(reply.calls, outputs, strict=True)]
        transcript.outputs += outputs
        if not reply.calls:
            return transcript
    transcript.stopped = "max_turns"
    return transcript


async def _within(work: Coroutine[Any, Any, T], seconds: float, grace_s: float) -> T | None:
    """What comes of it; None: it was not there in time, and is cancelled. It has some seconds to end then."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.wait([task], timeout=max(0.0, seconds))
        return task.result() if task.done() else None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=grace_s)


def guesses(model: ChatModel, messages: Sequence[Message], count: int) -> list[Sample]:
    """λ samples of a speculative model."""

    def make(number: int) -> Sample:
        async def sample() -> Iterable[Call]:
            return (await model.sample(number).reply(messages)).calls

        return sample

    return [make(number) for number in range(count)]


SPREAD = 0.7
"""The least temperature of a guess beside another one: at 0, and a little above, they would be equal."""


def spread(number: int, seed: int | None, temperature: float | None) -> dict[str, Any]:
    """Seed and temperature of one of several guesses: the first has those of the request; another one has a seed of
    its own, and at least SPREAD for its temperature. What is None stays so."""
    if seed is not None:
        seed = (seed + number) % 2**63
    if number and temperature is not None:
        temperature = max(temperature, SPREAD)
    return {"seed": seed, "temperature": temperature}
