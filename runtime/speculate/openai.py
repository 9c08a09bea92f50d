"""A drop-in wrapper around `openai.AsyncOpenAI` that guesses calls while the model writes.

    client = SpeculativeOpenAI(AsyncOpenAI(base_url=main), AsyncOpenAI(base_url=small), executor, model="small")
    answer = await client.chat.completions.create(model="main", messages=messages, tools=tools)
    outputs = await client.run(answer)      # early runs are awaited, others run now

A streamed answer is the same: its chunks come as they are, and `run` takes what they were put together to (an object
with `id` and `choices`, as `openai.lib.streaming.chat.ChatCompletionStreamState` makes).

Leaves out   the executor, its limits and rules: see executor.py. The agent's loop: see agent.py.
Invariants   `create` asks the main endpoint exactly what it was asked (messages and tools that can be read only once
             become lists, for both endpoints), and returns what it returned. Whatever is not
             `chat.completions.create` goes to the main client untouched. Guesses begin only for requests with tools.
             An answer in which no calls can be read, of whatever shape, only ends its turn's guesses.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..calls import Call
from .agent import ChatModel, Message, Reply, Watch, assistant_message, calls_of
from .deltas import Gathered, first_choice
from .errors import SpeculateError
from .executor import Deliver, Executor, Sample, Turn
from .tools import Output

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_PER_REQUEST = ("stream", "stream_options", "model", "extra_headers", "extra_query", "extra_body", "timeout")


class SpeculativeOpenAI:
    """The main client, with guesses.

    Args:
        main: the client whose answers count.
        guess: the client of the speculative endpoint.
        executor: runs calls.
        model: of the speculative endpoint.
        options: of its requests, over those of the main one; e.g. a higher temperature where several samples are drawn.
    """

    def __init__(
        self,
        main: AsyncOpenAI,
        guess: AsyncOpenAI,
        executor: Executor,
        model: str,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.main, self.guess, self.executor, self.model = main, guess, executor, model
        self.options = dict(options or {})
        self.chat = _Chat(self)
        self._open: dict[str, tuple[Turn, tuple[Call, ...]]] = {}
        self._streams: weakref.WeakValueDictionary[str, _Stream] = weakref.WeakValueDictionary()  # finished, not ended

    def __getattr__(self, name: str) -> Any:
        return getattr(self.main, name)

    def samples(self, messages: Sequence[Any], options: Mapping[str, Any]) -> list[Sample]:
        """λ samples for a request of the main client."""
        asked = {name: value for name, value in options.items() if name not in _PER_REQUEST} | self.options

        async def sample() -> Iterable[Call]:
            done = await self.guess.chat.completions.create(model=self.model, messages=list(messages), **asked)
            return calls_of(done.choices[0].message.model_dump())

        return [sample] * self.executor.limits.samples

    async def run(self, answer: Any) -> list[Output]:
        """The outputs of an answer's calls, in their order; what was guessed in vain is cancelled."""
        calls = calls_of(_message(answer))
        turn = self._turn_of(_id(answer), calls)
        try:
            if turn is not None:
                turn.settle(calls)
            return list(await asyncio.gather(*(self.executor.run(call, turn) for call in calls)))
        finally:
            if turn is not None:
                self.executor.end(turn)

    def _turn_of(self, id: str, calls: Sequence[Call]) -> Turn | None:
        """The turn of an answer; not that of a later one with the same id, whose calls are others."""
        stream = self._streams.pop(id, None)
        if stream is not None:  # left where it said that it is finished, and not closed
            stream._end()
        turn, wanted = self._open.get(id, (None, ()))
        if turn is None or not all(call in wanted for call in calls):
            return None
        del self._open[id]
        return turn

    def _keep(self, id: str, turn: Turn, calls: tuple[Call, ...]) -> None:
        """Settle a turn and hold it until its calls are run; one of the same id ends, and the oldest of too many."""
        turn.settle(calls)
        if id in self._open:
            self.executor.end(self._open.pop(id)[0])
        if not calls:
            self.executor.end(turn)
            return
        self._open[id] = (turn, calls)
        while len(self._open) > _OPEN:
            self.executor.end(self._open.pop(next(iter(self._open)))[0])

    async def aclose(self) -> None:
        """Cancel what is under way; the two clients stay open."""
        self._open.clear()
        await self.executor.aclose()


class _Chat:
    def __init__(self, client: SpeculativeOpenAI) -> None:
        self._client = client
        self.completions = _Completions(client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.main.chat, name)


class _Completions:
    def __init__(self, client: SpeculativeOpenAI) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.main.chat.completions, name)

    async def create(self, *, messages: Iterable[Any], **options: Any) -> Any:
        """As the openai client's."""
        client = self._client
        original = client.main.chat.completions.create
        asked: Sequence[Any] = _kept(messages)
        if "tools" in options:
            options["tools"] = _kept(options["tools"])
        if not options.get("tools"):
            return await original(messages=asked, **options)
        turn = client.executor.begin(client.samples(asked, options))
        try:
            answer = await original(messages=asked, **options)
            if options.get("stream"):
                return _Stream(client, turn, answer)
            client._keep(_id(answer), turn, _wanted(_message(answer)))
        except BaseException:
            client.executor.end(turn)
            raise
        return answer


class _Stream:
    """A stream of the main client: its chunks as they come. Where it ends its calls settle the turn; one that is left
    or closed behind its finish reason has ended, whatever chunks were to come."""

    def __init__(self, client: SpeculativeOpenAI, turn: Turn, stream: Any) -> None:
        self._client, self._turn, self._stream = client, turn, stream
        self._gathered = Gathered()
        self._iterator = self._chunks()
        self._ended = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._iterator

    async def __anext__(self) -> Any:
        return await anext(self._iterator)

    async def __aenter__(self) -> _Stream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the stream; of one that was left before its finish reason nothing is kept."""
        try:
            await self._stream.close()
        finally:
            self._end()

    async def _chunks(self) -> AsyncIterator[Any]:
        try:
            async for chunk in self._stream:
                self._gathered.add(chunk)
                if self._gathered.finish is not None and not self._ended:
                    self._client._streams[self._gathered.id] = self
                yield chunk
        except (Exception, asyncio.CancelledError):
            self._end(broken=True)
            raise
        finally:
            self._end()

    def _end(self, broken: bool = False) -> None:
        """Keep the turn where the answer is finished, else end it; once."""
        if self._ended:
            return
        self._ended = True
        if self._client._streams.get(self._gathered.id) is self:
            del self._client._streams[self._gathered.id]
        if broken or self._gathered.finish is None:
            self._client.executor.end(self._turn)
        else:
            self._client._keep(self._gathered.id, self._turn, _wanted(self._gathered.message))


def _kept(given: Any) -> Any:
    """A list of what may be readable only once; anything else as it is."""
    lasts = isinstance(given, (Sequence, Mapping)) or not isinstance(given, Iterable)
    return given if lasts else list(given)


def _id(answer: Any) -> str:
    return getattr(answer, "id", None) or ""


def _message(answer: Any) -> Mapping[str, Any]:
    """The message of an answer; an empty one if it has none."""
    dump = getattr(getattr(first_choice(answer), "message", None), "model_dump", dict)
    return cast(Mapping[str, Any], dump())


def _wanted(message: Mapping[str, Any]) -> tuple[Call, ...]:
    """The calls of an answer; none if they cannot be read, which is told when they are run."""
    try:
        return calls_of(message)
    except SpeculateError:
        return ()


_OPEN = 64
"""Answers whose early runs wait for `run` at most."""


class OpenAIModel(ChatModel):
    """An endpoint as the model of an agent.

    Args:
        client: of the endpoint.
        model: its name there.
        options: of every request.
        cached: the endpoint has a tool cache: answers are streamed, so that outputs can be handed in while it writes.
    """

    def __init__(self, client: AsyncOpenAI, model: str, options: Mapping[str, Any], cached: bool = False) -> None:
        self.client, self.model, self.options, self.cached = client, model, dict(options), cached

    async def reply(self, messages: Sequence[Message], watch: Watch | None = None) -> Reply:
        """See ChatModel."""
        asked = {"model": self.model, "messages": list(messages), **self.options}
        if not self.cached or watch is None:
            done = await self.client.chat.completions.create(**asked)
            message = done.choices[0].message
            calls = calls_of(message.model_dump())
            resident = tuple((message.model_extra or {}).get("resident") or ())
            return Reply(assistant_message(message.content, calls), calls, resident)
        return await self._streamed(asked, watch)

    async def _streamed(self, asked: dict[str, Any], watch: Watch) -> Reply:
        gathered, begun = Gathered(), False
        stream = await self.client.chat.completions.create(**asked, stream=True)
        async with stream:
            async for chunk in stream:
                if not begun:
                    watch.begun(self._deliver(chunk.id))
                    begun = True
                if gathered.add(chunk):
                    watch.stayed(gathered.resident)
        if gathered.finish is None:
            raise SpeculateError("the answer broke off")
        message = gathered.message
        return Reply(message, calls_of(message), tuple(gathered.resident))

    def _deliver(self, id: str) -> Deliver:
        async def deliver(call: Call, output: Output) -> None:
            entry = {"name": call.name, "params": dict(call.arguments), "output": output.text}
            await self.client.post(f"/cache-tool-output/{id}", body=[entry], cast_to=dict[str, int])

        return deliver
