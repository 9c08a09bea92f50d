"""A drop-in wrapper around `openai.AsyncOpenAI` that guesses calls while the model writes.

    client = SpeculativeOpenAI(AsyncOpenAI(base_url=main), AsyncOpenAI(base_url=small), executor, model="small")
    answer = await client.chat.completions.create(model="main", messages=messages, tools=tools)
    outputs = await client.run(answer)      # early runs are awaited, others run now

A streamed answer is the same: its chunks come as they are, and `run` takes what they were put together to (an object
with `id` and `choices`, as `openai.lib.streaming.chat.ChatCompletionStreamState` makes).

`chat.completions.create`, `.parse`, `.stream` and those of `with_raw_response` guess, and so does `responses.create`
where the history is in the request (responses.py); so do clients that `with_options` makes. What else could ask for
calls (`with_streaming_response`, threads, realtime) does not, and warns once. A client that is not async is refused:
nothing would run while it waits.

    a guess is asked    messages, and of the request's options those of `GUESSED`; then the wrapper's own `options`
    of several          the first as the request says; the n-th with seed + n, and at least LEAST_TEMPERATURE

Leaves out   the executor, its limits and rules: see executor.py. The agent's loop: see agent.py.
Invariants   `create` asks the main endpoint exactly what it was asked (messages and tools that can be read only once
             become lists, for both endpoints), and returns what it returned. Whatever is not named above goes to the
             main client untouched. Guesses begin only for requests with tools that may be called.
             An answer in which no calls can be read, of whatever shape, only ends its turn's guesses.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import sys
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..calls.events import Call
from .agent import ChatModel, Hooks, Message, Reply, assistant_message, calls_of, vary
from .deltas import Gathered, first_choice
from .errors import SpeculateError
from .executor import Deliver, Executor, Sample, Turn
from .responses import GatheredResponse, chat_request, message_of
from .tools import Output

if TYPE_CHECKING:
    from openai import AsyncOpenAI

GUESSED = (
    "tools", "tool_choice", "parallel_tool_calls", "temperature", "seed", "max_tokens", "max_completion_tokens",
)  # fmt: skip
"""Options of a request that a guess has, too: those that say which calls there may be, and how tokens are chosen.
Others are about the main endpoint (`store`, `metadata`, `reasoning_effort`, `response_format`, …), and another one may
refuse them."""
log = logging.getLogger(__name__)
_UNGUESSED = ("realtime", "beta")


class SpeculativeOpenAI:
    """The main client, with guesses.

    Args:
        main: the client whose answers count.
        guess: the client of the speculative endpoint.
        executor: runs calls.
        model: of the speculative endpoint.
        options: of its requests, over those of the main one.

    Raises:
        SpeculateError: a client is not async.
    """

    def __init__(
        self,
        main: AsyncOpenAI,
        guess: AsyncOpenAI,
        executor: Executor,
        model: str,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        for place, client in (("main", main), ("guess", guess)):
            if _is_sync(client):
                raise SpeculateError(
                    "this client waits for its answers, so nothing could run in the meantime",
                    place=place,
                    found=type(client).__name__,
                    expected="AsyncOpenAI",
                )
        self.main, self.guess, self.executor, self.model = main, guess, executor, model
        self.options = dict(options or {})
        self.chat = _Chat(self)
        self.responses = _Responses(self)
        self._open: dict[str, tuple[Turn, tuple[Call, ...]]] = {}
        self._streams: weakref.WeakValueDictionary[str, _Stream] = weakref.WeakValueDictionary()  # finished, not ended

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.main, name)
        return _Warns(found, f"client.{name}") if name in _UNGUESSED else found

    def with_options(self, **options: Any) -> SpeculativeOpenAI:
        """As the openai client's: with other options of the main client. Either may run the answers of the other."""
        other = SpeculativeOpenAI(
            self.main.with_options(**options), self.guess, self.executor, self.model, self.options
        )
        other._open, other._streams = self._open, self._streams
        return other

    copy = with_options

    def samples(self, messages: Sequence[Any], options: Mapping[str, Any]) -> list[Sample]:
        """λ samples for a request of the main client."""
        asked = {name: options[name] for name in GUESSED if not _is_left_out(options.get(name))} | self.options

        def make(number: int) -> Sample:
            varied = {name: value for name, value in _vary(number, asked).items() if value is not None}

            async def sample() -> Iterable[Call]:
                done = await self.guess.chat.completions.create(
                    model=self.model, messages=list(messages), **(asked | varied)
                )
                return await asyncio.to_thread(calls_of, done.choices[0].message.model_dump())

            return sample

        return [make(number) for number in range(self.executor.limits.samples)]

    async def run(self, answer: Any) -> list[Output]:
        """The outputs of an answer's calls, in their order; what was guessed in vain is cancelled.

        Bounded as in `run_agent`: calls (`Limits.answer_calls`), and time and output of each (`Toolset`).
        """
        calls = calls_of(_message(answer))
        turn = self._turn_of(_id(answer), calls)
        try:
            if turn is not None:
                turn.settle(calls)
            return await self.executor.run_all(calls, turn)
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

    @property
    def _main(self) -> Any:
        return self._client.main.chat.completions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._main, name)

    async def create(self, **options: Any) -> Any:
        """As the openai client's."""
        return await self._guessed(self._main.create, options)

    async def parse(self, **options: Any) -> Any:
        """As the openai client's."""
        return await self._guessed(self._main.parse, options)

    def stream(self, **options: Any) -> Any:
        """As the openai client's: its own method, over the `create` above."""
        options = _readable(options)
        own = getattr(self._main.stream, "__func__", None)
        if own is None:
            return _Warns(self._main, "chat.completions").stream(**options)
        made = _Made(self)
        return _Manager(own(made, **options), made)

    @property
    def with_raw_response(self) -> _Raw:
        """As the openai client's."""
        return _Raw(self)

    @property
    def with_streaming_response(self) -> _Warns:
        """The main client's: bytes of an answer that nobody has read hold no calls."""
        return _Warns(self._main.with_streaming_response, "chat.completions.with_streaming_response")

    async def _guessed(self, original: Callable[..., Any], options: dict[str, Any]) -> Any:
        """What the main client answers; meanwhile calls are guessed, if there may be any."""
        client, options = self._client, _readable(options)
        if not options.get("tools") or options.get("tool_choice") == "none":
            return await _asked(original, options)
        turn = client.executor.begin(client.samples(options.get("messages") or (), options))
        try:
            answer = await _asked(original, options)
            told = _parsed(answer)
            if options.get("stream"):
                stream = _Stream(client, turn, told, Gathered())
                return stream if told is answer else _RawStream(answer, stream)
            client._keep(_id(told), turn, _wanted(_message(told)))
        except BaseException:
            client.executor.end(turn)
            raise
        return answer


class _Responses:
    """`responses`: requests whose history is in them are guessed for, by chat completions."""

    def __init__(self, client: SpeculativeOpenAI) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(_Warns(self._client.main.responses, "client.responses"), name)

    async def create(self, **options: Any) -> Any:
        """As the openai client's."""
        client, original = self._client, self._client.main.responses.create
        options = _readable(options)
        if not options.get("tools") or options.get("tool_choice") == "none":
            return await _asked(original, options)
        asked = chat_request(options)
        if asked is None or not asked["tools"]:
            return await _asked(_Warns(client.main.responses, "client.responses").create, options)
        turn = client.executor.begin(client.samples(asked["messages"], asked))
        try:
            answer = await _asked(original, options)
            if options.get("stream"):
                return _Stream(client, turn, answer, GatheredResponse())
            client._keep(_id(answer), turn, _wanted(_message(answer)))
        except BaseException:
            client.executor.end(turn)
            raise
        return answer


class _Raw:
    """`with_raw_response`: answers that are parsed when they are asked to be."""

    def __init__(self, completions: _Completions) -> None:
        self._completions = completions
        self._raw = completions._main.with_raw_response

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    async def create(self, **options: Any) -> Any:
        return await self._completions._guessed(self._raw.create, options)

    async def parse(self, **options: Any) -> Any:
        return await self._completions._guessed(self._raw.parse, options)


class _RawStream:
    """A raw answer whose chunks settle a turn."""

    def __init__(self, raw: Any, stream: _Stream) -> None:
        self._raw, self._stream = raw, stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def parse(self, **more: Any) -> Any:
        return self._raw.parse(**more) if more else self._stream


class _Made:
    """The completions of the main client, whose `create` guesses; it holds the stream that was made."""

    def __init__(self, completions: _Completions) -> None:
        self._completions = completions
        self.stream: _Stream | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._completions._main, name)

    async def create(self, **options: Any) -> Any:
        answer = await self._completions.create(**options)
        self.stream = answer if isinstance(answer, _Stream) else None
        return answer


class _Manager:
    """What `.stream()` gives: where it is left its turn ends, or waits for its calls to be run."""

    def __init__(self, manager: Any, made: _Made) -> None:
        self._manager, self._made = manager, made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    async def __aenter__(self) -> Any:
        return await self._manager.__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        try:
            return await self._manager.__aexit__(*error)
        finally:
            if self._made.stream is not None:
                self._made.stream._end()


class _Warns:
    """Part of a client whose answers are not guessed for: warns where it is asked for calls, once a name."""

    _told: set[str] = set()

    def __init__(self, held: Any, name: str) -> None:
        self._held, self._name = held, name

    def __getattr__(self, name: str) -> Any:
        found, whole = getattr(self._held, name), f"{self._name}.{name}"
        if not callable(found):
            return _Warns(found, whole)

        def call(*given: Any, **options: Any) -> Any:
            if options.get("tools") and whole not in _Warns._told:
                _Warns._told.add(whole)
                warnings.warn(f"no calls are guessed for {whole}; docs/speculate.md says for what", stacklevel=2)
            return found(*given, **options)

        return call


class _Stream:
    """A stream of the main client: its chunks as they come. Where it ends its calls settle the turn; one that is left
    or closed behind its finish reason has ended, whatever chunks were to come."""

    def __init__(
        self, client: SpeculativeOpenAI, turn: Turn, stream: Any, gathered: Gathered | GatheredResponse
    ) -> None:
        self._client, self._turn, self._stream, self._gathered = client, turn, stream, gathered
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


def _readable(options: dict[str, Any]) -> dict[str, Any]:
    """The options with lists of what may be readable only once."""
    return {name: _kept(value) if name in ("messages", "input", "tools") else value for name, value in options.items()}


def _kept(given: Any) -> Any:
    """A list of what may be readable only once; anything else as it is."""
    lasts = isinstance(given, (Sequence, Mapping)) or not isinstance(given, Iterable)
    return given if lasts else list(given)


async def _asked(original: Callable[..., Any], options: Mapping[str, Any]) -> Any:
    answer = original(**options)
    if not inspect.isawaitable(answer):
        raise SpeculateError(
            "the main client does not answer like an async one", found=type(answer).__name__, expected="an awaitable"
        )
    return await answer


def _is_sync(client: Any) -> bool:
    """Whether this is the client of openai that waits."""
    kind = getattr(sys.modules.get("openai"), "OpenAI", None)
    return isinstance(kind, type) and isinstance(client, kind)


def _is_left_out(value: Any) -> bool:
    """None, and what the openai client has for an option that is not given."""
    return value is None or type(value).__name__ in ("Omit", "NotGiven")


def _vary(number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
    """See `vary`; what is no number is left to the endpoint to refuse."""
    seed, temperature = asked.get("seed"), asked.get("temperature")
    return vary(
        number,
        seed if isinstance(seed, int) else None,
        temperature if isinstance(temperature, (int, float)) else None,
    )


def _parsed(answer: Any) -> Any:
    """The answer in a raw one; an answer itself, and a raw one that holds none, as they are."""
    if not hasattr(answer, "http_response"):
        return answer
    try:
        return answer.parse()
    except Exception as error:  # its reader will meet it, too
        log.debug("a raw answer could not be read: %r", error)
        return answer


def _id(answer: Any) -> str:
    return getattr(answer, "id", None) or ""


def _message(answer: Any) -> Mapping[str, Any]:
    """The message of an answer, or of a response; an empty one if it has none."""
    if isinstance(getattr(answer, "output", None), list):
        return message_of(answer)
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

    def sample(self, number: int) -> OpenAIModel:
        """See ChatModel."""
        varied = {name: value for name, value in _vary(number, self.options).items() if value is not None}
        return OpenAIModel(self.client, self.model, self.options | varied, self.cached)

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        """See ChatModel."""
        asked = {"model": self.model, "messages": list(messages), **self.options}
        if not self.cached or hooks is None:
            done = await self.client.chat.completions.create(**asked)
            message = done.choices[0].message
            calls = calls_of(message.model_dump())
            resident = tuple((message.model_extra or {}).get("resident") or ())
            cut = done.choices[0].finish_reason == "length"
            return Reply(assistant_message(message.content, calls), calls, resident, cut)
        most = getattr(hooks, "resident_turns", None)  # hooks of a caller need not have it
        if most is not None:
            more = {"max_resident_turns": most}
            asked["extra_body"] = {**(asked.get("extra_body") or {}), **more}
        return await self._streamed(asked, hooks)

    async def _streamed(self, asked: dict[str, Any], hooks: Hooks) -> Reply:
        gathered, begun = Gathered(), False
        stream = await self.client.chat.completions.create(**asked, stream=True)
        async with stream:
            async for chunk in stream:
                if not begun:
                    hooks.on_start(self._deliver(chunk.id))
                    begun = True
                if gathered.add(chunk):
                    hooks.on_resident(gathered.resident)
        if gathered.finish is None:
            raise SpeculateError("the answer broke off")
        message = gathered.message
        return Reply(message, calls_of(message), tuple(gathered.resident), gathered.finish == "length")

    def _deliver(self, id: str) -> Deliver:
        async def deliver(call: Call, output: Output) -> None:
            entry = {"name": call.name, "params": dict(call.arguments), "output": output.text}
            await self.client.post(f"/cache-tool-output/{id}", body=[entry], cast_to=dict[str, int])

        return deliver
