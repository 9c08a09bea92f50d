"""Chat completions over an engine, without HTTP: what a server, a simulator and a test share.

Leaves out   HTTP: see server.py.
Threads      what a server does with a body (`aside`) and its prompts have threads of their own, so that a long history
             holds nobody else up, the model's threads neither. `begin` renders where it is called.
Invariants   the ids of a turn's calls are new, and lead back to its tokens (chat.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ..calls.events import Call
from .agent import ChatModel, Hooks, Message, Reply, assistant_message, tool_message, vary
from .chat import Chat
from .deltas import call_id
from .engine import Engine, Running, Sampling, Step, TurnEnd
from .errors import SpeculateError
from .tools import Output

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What a completion asks for.

    Attributes:
        messages: of the chat.
        tools: those that the prompt lists.
        entry: of the bundle.
        sampling: how tokens are chosen.
        user: whose it is.
    """

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] = ()
    entry: str = "start"
    sampling: Sampling = field(default_factory=Sampling)
    user: str = ""


@dataclass(frozen=True)
class Turn:
    """A turn that has ended, its calls with ids."""

    end: TurnEnd
    calls: tuple[Call, ...]

    @property
    def messages(self) -> list[Message]:
        """The assistant's message, and those of the tools where the engine had the outputs."""
        outputs = [tool_message(call, Output(text)) for call, text in zip(self.calls, self.end.outputs)]
        return [assistant_message(self.end.content, self.calls), *outputs]


class Service:
    """Chat completions.

    Args:
        engine: runs them.
        chat: renders messages.
        renders: prompts that are rendered in threads at once.
    """

    def __init__(self, engine: Engine, chat: Chat, renders: int = 8) -> None:
        self.engine, self.chat = engine, chat
        chat.most = engine.model.capacity
        self._threads = ThreadPoolExecutor(renders, "toolc-render")
        self._aside = ThreadPoolExecutor(4, "toolc-body")

    async def aside(self, work: Callable[..., T], *given: Any) -> T:
        """What a function gives that takes a while, but not long: in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._aside, work, *given)

    def begin(self, request: Request) -> Running:
        """Begin a completion; outputs can be handed in from now on."""
        return self._submit(request, self._render(request))

    async def begin_in_thread(self, request: Request) -> Running:
        """As `begin`; the loop goes on while the prompt is rendered."""
        prompt = await asyncio.get_running_loop().run_in_executor(self._threads, self._render, request)
        return self._submit(request, prompt)

    def _render(self, request: Request) -> list[int]:
        return self.chat.render(request.messages, request.tools, request.user)

    def _submit(self, request: Request, prompt: Sequence[int]) -> Running:
        return self.engine.submit(
            prompt, request.entry, request.sampling, lambda _, outputs: self.chat.after(outputs), request.user
        )

    async def run(self, running: Running) -> AsyncGenerator[Step | Turn, None]:
        """Tokens as they are decoded, and turns as they end; the last turn is the one for the client."""
        events = self.engine.events(running)
        turn = 0
        try:
            async for event in events:
                if isinstance(event, TurnEnd):
                    ids = (call_id(running.id, turn, n) for n in range(len(event.calls)))
                    calls = tuple(replace(call, id=id) for call, id in zip(event.calls, ids, strict=True))
                    turn += 1
                    self.chat.remember(running.user, calls, event.tokens)
                    yield Turn(event, calls)
                else:
                    yield event
        finally:
            await events.aclose()


class LocalModel(ChatModel):
    """A service as the model of an agent, in the same process.

    Args:
        service: answers.
        request: what every request asks for, but its messages.
        before: awaited before each request: what it takes to come to the engine.
    """

    def __init__(self, service: Service, request: Request, before: Callable[[], Any] | None = None) -> None:
        self.service, self.request, self.before = service, request, before

    def sample(self, number: int) -> LocalModel:
        """See ChatModel."""
        sampling = self.request.sampling
        sampling = replace(sampling, **vary(number, sampling.seed, sampling.temperature))
        return LocalModel(self.service, replace(self.request, sampling=sampling), self.before)

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        """See ChatModel."""
        if self.before is not None:
            await self.before()
        sampling = self.request.sampling
        if hooks is not None:
            sampling = replace(sampling, resident_turns=hooks.resident_turns)
        running = self.service.begin(replace(self.request, messages=messages, sampling=sampling))

        async def deliver(call: Call, output: Output) -> None:
            limit = self.service.engine.limits.cache.keep_alive_s
            arguments = dict(call.arguments)
            self.service.engine.cache_output(running.id, running.user, call.name, arguments, output.text, limit)

        if hooks is not None:
            hooks.on_start(deliver)
        resident: list[Message] = []
        async for event in self.service.run(running):
            if isinstance(event, Turn):
                if event.end.reason != "resident":
                    cut = event.end.reason == "length"
                    return Reply(event.messages[0], event.calls, tuple(resident), cut)
                resident += event.messages
                if hooks is not None:
                    hooks.on_resident(resident)
        raise SpeculateError("the engine gave the request up")
