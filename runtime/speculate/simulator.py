"""An event simulation: the real executor and the real engine on a virtual clock, with models and tools made of numbers.

    client side   `ScriptedChat` answers from a script after G seconds; a guess after g seconds is right with rate α
    engine side   `ScriptedModel` is a model whose best token is that of a script; a pass takes what rates φ and δ say

Leaves out   the equations: see equations.py. The parameters of an experiment: they are data of whoever runs it.
Invariants   nothing sleeps: `clock.run_virtual` jumps. Equal seeds give equal runs. What is simulated is time and
             content; batching, grammar, drafts, cache, limits and cancellation are those of executor.py and engine.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from ..calls.events import Call
from ..calls.text_stream import TextStream
from .agent import ChatModel, Hooks, Message, Reply, Transcript, assistant_message, run_agent
from .clock import run_virtual
from .executor import Executor, Limits, Sample
from .rules import Rules, ToolRule
from .tools import Toolset

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from .causal import Feed

Seconds = Callable[[Random], float]
"""Draws a time."""


def normal(mean_s: float, share: float = 0.25) -> Seconds:
    """Times of a normal distribution whose deviation is a share of its mean; never below 0."""
    return lambda dice: max(0.0, dice.gauss(mean_s, share * mean_s))


def fixed(seconds: float) -> Seconds:
    """Always the same time."""
    return lambda _: seconds


@dataclass(frozen=True)
class Task:
    """What an agent will do: one call a turn, then an answer.

    Attributes:
        calls: (tool, arguments) of every turn.
        question: of the user.
    """

    calls: tuple[tuple[str, Mapping[str, Any]], ...]
    question: str = "go"


@dataclass(frozen=True)
class Guesses:
    """A speculative model.

    Attributes:
        hit_rates: α with 1, 2, … samples: the share of turns in which at least one of them is right.
        seconds: g.
    """

    hit_rates: Sequence[float]
    seconds: Seconds

    def right(self, dice: Random) -> int | None:
        """The first sample that is right in a turn, counted from 0; None if none is."""
        roll = dice.random()
        return next((n for n, rate in enumerate(self.hit_rates) if roll < rate), None)


@dataclass
class Result:
    """Of a simulation.

    Attributes:
        seconds: each agent's, from its start to its end.
        hits: share of calls whose early run served, in the client or in the engine.
        transcripts: of the agents.
    """

    seconds: list[float]
    hits: float
    transcripts: list[Transcript]
    early: int = 0
    extra: dict[str, float] = field(default_factory=dict)

    @property
    def mean_s(self) -> float:
        return sum(self.seconds) / len(self.seconds)


def tools_of(tasks: Iterable[Task], tool_s: Seconds, seed: int) -> Toolset:
    """Tools that answer after a time that depends on seed and call alone."""
    names = {name for task in tasks for name, _ in task.calls}

    def make(name: str) -> Callable[..., Any]:
        async def run(**arguments: Any) -> str:
            dice = Random(f"{seed} {name} {json.dumps(arguments, sort_keys=True, default=str)}")
            await asyncio.sleep(tool_s(dice))
            return f"{name}: {dice.randrange(10**6)}"

        return run

    return Toolset({name: make(name) for name in sorted(names)}, timeout_s=1e6)


def guesser_of(task: Task, guesses: Guesses, samples: int, seed: int) -> Callable[[Sequence[Message]], list[Sample]]:
    """Samples for the turns of a task: the right call, or one of the same tool with an argument that is wrong."""

    def guess(messages: Sequence[Message]) -> list[Sample]:
        turn = sum(message["role"] == "assistant" for message in messages)
        right = guesses.right(Random(f"{seed} {turn} right"))

        def make(n: int) -> Sample:
            async def sample() -> Iterable[Call]:
                await asyncio.sleep(guesses.seconds(Random(f"{seed} {turn} {n} time")))
                if turn >= len(task.calls):
                    return []
                name, arguments = task.calls[turn]
                return [Call(name, arguments if n == right else {**arguments, "wrong": n})]

            return sample

        return [make(n) for n in range(samples)]

    return guess


class ScriptedChat(ChatModel):
    """Answers a task's calls one after another, after a time each; then, at once, with text."""

    def __init__(self, task: Task, seconds: Seconds, seed: int) -> None:
        self.task, self.seconds, self.seed = task, seconds, seed

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        """See ChatModel."""
        turn = sum(message["role"] == "assistant" for message in messages)
        if turn >= len(self.task.calls):
            return Reply(assistant_message("done", ()))
        await asyncio.sleep(self.seconds(Random(f"{self.seed} {turn}")))
        name, arguments = self.task.calls[turn]
        call = Call(name, arguments, id=f"call_{turn}")
        return Reply(assistant_message(None, [call]), (call,))


def simulate_client(
    tasks: Sequence[Task],
    main_s: Seconds,
    tool_s: Seconds,
    guesses: Guesses | None = None,
    samples: int = 1,
    seed: int = 0,
) -> Result:
    """The client side: one agent for each task, all at once; without guesses, the standard run."""
    rules = Rules(ToolRule(name, early=True) for task in tasks for name, _ in task.calls)
    models = [ScriptedChat(task, main_s, seed + n) for n, task in enumerate(tasks)]
    return _simulate(tasks, models, rules, lambda n: tools_of([tasks[n]], tool_s, seed + n), guesses, samples, seed)


def _simulate(
    tasks: Sequence[Task],
    models: Sequence[ChatModel],
    rules: Rules,
    tools: Callable[[int], Toolset],
    guesses: Guesses | None,
    samples: int,
    seed: int,
    end: Callable[[], Any] | None = None,
) -> Result:
    async def main() -> Result:
        loop = asyncio.get_running_loop()
        executors = [Executor(tools(n), rules, limits=Limits(samples, 1e6)) for n in range(len(tasks))]

        async def one(n: int) -> tuple[Transcript, float]:
            guesser = guesser_of(tasks[n], guesses, samples, seed + n) if guesses is not None else None
            async with executors[n] as executor:
                done = await run_agent(
                    models[n], executor, [{"role": "user", "content": tasks[n].question}], guesser, 10**6
                )
            return done, loop.time()

        done = await asyncio.gather(*map(one, range(len(tasks))))
        if end is not None:
            await end()
        calls = sum(len(task.calls) for task in tasks)
        served = sum(executor.counts.hits for executor in executors) + sum(one.resident_turns for one, _ in done)
        early = sum(executor.counts.started for executor in executors)
        return Result([seconds for _, seconds in done], served / max(1, calls), [one for one, _ in done], early)

    return run_virtual(main)[0]


# ---------------------------------------------------------------- the engine side


@dataclass(frozen=True)
class Rates:
    """What a pass of the model costs.

    Attributes:
        prefill_rate: φ, tokens per second.
        decode_rate: δ, tokens per second of one sequence while it is alone.
        slowdown: of decoding for each further sequence in the batch, as a share.
        overhead_s: o, seconds to come into the engine.
    """

    prefill_rate: float
    decode_rate: float
    slowdown: float = 0.0
    overhead_s: float = 0.0


HEAD = 16
"""Tokens of a prompt that tell whose it is."""


class ScriptedModel:
    """A model whose best token is the next one of a script; it takes the time that rates say.

    A script is a list of turns, lists of tokens. Which turn a sequence is in is told by how often `header`, the token
    that begins an assistant's turn, has been read; past the end of a script its last token goes on.

    Args:
        script_of: the script of a sequence, from its first tokens.
        header: the token; it occurs nowhere else.
        size: V.
        rates: times.
        slots, capacity: see engine.Model.
    """

    def __init__(
        self,
        script_of: Callable[[Sequence[int]], Sequence[Sequence[int]]],
        header: int,
        size: int,
        rates: Rates,
        slots: int,
        capacity: int,
    ) -> None:
        self.script_of, self.header, self.size, self.rates = script_of, header, size, rates
        self.slots, self.capacity = slots, capacity
        self._held: dict[int, list[int]] = {}
        self._scripts: dict[int, Sequence[Sequence[int]]] = {}

    async def forward(self, feeds: Sequence[Feed]) -> list[np.ndarray]:
        """See engine.Model."""
        decoding = [feed for feed in feeds if feed.keep == len(feed.tokens)]
        read = sum(len(feed.tokens) for feed in feeds) - len(decoding)
        seconds = read / self.rates.prefill_rate
        if decoding:
            seconds += (1 + self.rates.slowdown * (len(decoding) - 1)) / self.rates.decode_rate
        await asyncio.sleep(seconds)
        return [self._logits(feed) for feed in feeds]

    def _logits(self, feed: Feed) -> np.ndarray:
        held = self._held.setdefault(feed.slot, [])
        del held[feed.start :]
        held += feed.tokens
        if feed.start < HEAD:  # another prompt; what lies before is of one that began alike
            self._scripts[feed.slot] = self.script_of(held[:HEAD])
        script = self._scripts[feed.slot]
        out = np.zeros((feed.keep, self.size), np.float32)
        if feed.keep:
            turn = held.count(self.header) - 1
            begin = len(held) - held[::-1].index(self.header)
            tokens = script[min(turn, len(script) - 1)]
            first = len(held) - feed.keep + 1 - begin
            for n in range(feed.keep):
                out[n, tokens[min(first + n, len(tokens) - 1)]] = 1.0
        return out


@dataclass(frozen=True)
class EngineSetting:
    """How the engine of a simulation runs.

    Attributes:
        rates: of the model.
        prompt: X, tokens of the question at least.
        reasoning: R, tokens before a call.
        output: tokens of a tool's output.
        answer: tokens of the text that ends a task.
        slots: sequences at once.
        drafts, resident: see Engine; both off: the client side alone.
        prefix_cache: see Engine.
    """

    rates: Rates
    prompt: int = 0
    reasoning: int = 0
    output: int = 0
    slots: int = 32
    drafts: bool = False
    resident: bool = False
    prefix_cache: bool = False
    answer: int = 0


def simulate_engine(
    tasks: Sequence[Task],
    bundle: Bundle,
    encode: Callable[[str], list[int]],
    setting: EngineSetting,
    tool_s: Seconds,
    guesses: Guesses | None = None,
    samples: int = 1,
    seed: int = 0,
) -> Result:
    """Agents on one engine, all at once; without guesses, the vanilla run.

    Args:
        tasks: of the agents.
        bundle: of a protocol with text, compiled from tools with these names.
        encode: text to tokens, for the bundle's vocabulary.
    """
    from .chat import BUILTIN, Chat
    from .engine import Engine, EngineLimits, Sampling
    from .service import LocalModel, Request, Service

    filler = encode(" word")
    header = bundle.vocab.special["<|assistant|>"]

    def script(task: Task) -> list[list[int]]:
        lead, last = ((filler * (n // len(filler) + 1))[:n] for n in (setting.reasoning, setting.answer))
        end = [bundle.vocab.end_of_turn[0]]
        turns = [lead + chat.written([Call(name, arguments)]) + end for name, arguments in task.calls]
        return [*turns, last + end]

    def script_of(tokens: Sequence[int]) -> list[list[int]]:
        found = re.search(r"\d+", TextStream(bundle.vocab).push(tokens))
        assert found is not None
        return scripts[int(found[0])]

    longest = max(len(task.calls) for task in tasks) + 1
    capacity = 256 + setting.prompt + setting.answer + longest * (setting.reasoning + setting.output + 512)
    model = ScriptedModel(script_of, header, bundle.vocab.size, setting.rates, setting.slots, capacity)
    limits = EngineLimits(waiting=len(tasks) + 1, prefill=1 << 30, resident_turns=longest)
    engine = Engine(model, bundle, encode, limits, setting.drafts, setting.resident, setting.prefix_cache)
    chat = Chat(bundle, encode, BUILTIN)
    service = Service(engine, chat)
    scripts = [script(task) for task in tasks]
    entry = "auto/one"
    request = Request([], entry=entry, sampling=Sampling(max_tokens=capacity))

    def question(n: int) -> str:
        base = f"task {n}:"
        return base + " word" * max(0, (setting.prompt - len(encode(base))) // len(filler))

    async def come() -> None:
        await asyncio.sleep(setting.rates.overhead_s)

    padding = " word" * (setting.output // len(filler))

    def tools(n: int) -> Toolset:
        plain = tools_of([tasks[n]], tool_s, seed + n)

        def padded(function: Callable[..., Any]) -> Callable[..., Any]:
            async def run(**arguments: Any) -> str:
                return str(await function(**arguments)) + padding

            return run

        return Toolset({name: padded(function) for name, function in plain.items()}, timeout_s=1e6)

    models = [LocalModel(service, request, come) for _ in tasks]
    named = [Task(task.calls, question(n)) for n, task in enumerate(tasks)]
    result = _simulate(named, models, engine.rules, tools, guesses, samples, seed, engine.aclose)
    result.extra = {name: float(value) for name, value in vars(engine.counts).items()}
    return result
