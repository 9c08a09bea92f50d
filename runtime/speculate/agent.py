"""Run an agent: ask a chat model, run the calls of its answer, ask again with their outputs, until it makes no call.

    run_agent    the loop, with guessed calls beside each answer or without
    ChatModel    what it asks: an endpoint (openai.py), an engine (service.py), a script (simulator.py)

Messages are those of OpenAI's chat completions. A turn is one answer and the outputs of its calls. An engine with a
tool cache can answer calls itself and write on: such a turn is *resident*, as its sequence stays in the engine.

Leaves out   models: anything with the methods of ChatModel. Running calls: see executor.py.
Invariants   the messages are the same with guesses and without.
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
        calls: the calls in it.
        resident: messages of the resident turns before it in the same request: calls and outputs.
        cut: the answer reached `max_tokens`, which it shares with the resident turns before it. Asked for again, with
            those in the messages, it has all of them to itself.
    """

    message: Message
    calls: tuple[Call, ...] = ()
    resident: tuple[Message, ...] = ()
    cut: bool = False


@dataclass(frozen=True)
class Hooks:
    """What a model calls while it works on a request, if it has a tool cache.

    Attributes:
        on_start: called once outputs can be handed to the engine, with the function that does so.
        on_resident: called after each resident turn, with the messages of all of them so far.
        resident_turns: the most resident turns; None: no bound but the engine's own.
    """

    on_start: Callable[[Deliver], None]
    on_resident: Callable[[Sequence[Message]], None]
    resident_turns: int | None = None


class ChatModel(Protocol):
    """A model that answers a chat."""

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        """Answer the chat so far.

        Args:
            hooks: None, or what a model with a tool cache calls; any other model may ignore it.
        """
        ...

    def sample(self, number: int) -> ChatModel:
        """The model of the n-th of several guesses: one with other random numbers, if it has any."""
        return self


@dataclass
class Transcript:
    """What an agent did.

    Attributes:
        messages: those given, and all that followed.
        turns: turns whose answer came to the client.
        resident_turns: turns that stayed in the engine.
        outputs: of the calls that the client ran, in order.
        stopped: the bound of `run_agent` that ended it, "max_turns" or "max_s"; empty: the model ended it.
    """

    messages: list[Message]
    turns: int = 0
    resident_turns: int = 0
    outputs: list[Output] = field(default_factory=list)
    stopped: str = ""


def assistant_message(content: str | None, calls: Iterable[Call]) -> Message:
    """The assistant's message with a text, calls or both."""
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
    """Run an agent until an answer has no calls, or to a bound, which the transcript names.

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
        asked = list(transcript.messages)

        def main(turn: Turn, asked: list[Message] = asked, left: int = left) -> Awaitable[Reply]:
            def guess_next(resident: Sequence[Message]) -> None:
                if guesser is not None:
                    turn.guess(guesser([*asked, *resident]))

            return model.reply(asked, Hooks(turn.deliver_to, guess_next, left - 1))

        samples = guesser(asked) if guesser is not None else ()
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
    """The result of some work; None if it takes longer than `seconds`: then it is cancelled, with `grace_s` to end."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.wait([task], timeout=max(0.0, seconds))
        return task.result() if task.done() else None
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=grace_s)


def guesses(model: ChatModel, messages: Sequence[Message], count: int) -> list[Sample]:
    """Samples of a speculative model, as many as λ, for a guesser of `run_agent`."""

    def make(number: int) -> Sample:
        async def sample() -> Iterable[Call]:
            return (await model.sample(number).reply(messages)).calls

        return sample

    return [make(number) for number in range(count)]


LEAST_TEMPERATURE = 0.7
"""Of a second guess, and of those after it: at 0, and a little above, they would repeat the first."""


def vary(number: int, seed: int | None, temperature: float | None) -> dict[str, Any]:
    """Seed and temperature of the n-th of several guesses, from 0: the first has those of the request, any other one a
    seed of its own and at least LEAST_TEMPERATURE. What is None stays so."""
    if seed is not None:
        seed = (seed + number) % 2**63
    if number and temperature is not None:
        temperature = max(temperature, LEAST_TEMPERATURE)
    return {"seed": seed, "temperature": temperature}
