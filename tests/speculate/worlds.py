"""Random worlds for agents: tools that fail, are slow or hang, a model that is a function of the messages, and guesses.

Everything follows from a seed and the messages, so a run with speculation and one without must be equal.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toolc.runtime import Call
from toolc.runtime.speculate.agent import ChatModel, Hooks, Message, Reply, assistant_message, guesses
from toolc.runtime.speculate.executor import Sample
from toolc.runtime.speculate.tools import Toolset, tool

NAMES = {"look": True, "find": True, "slow": True, "hang": True, "fail": True, "write": False, "send": False}


def dice(*parts: Any) -> random.Random:
    """Random numbers that depend on nothing but the parts."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return random.Random(hashlib.blake2b(text.encode(), digest_size=8).digest())


class World:
    """Tools, and the record of what they were called with."""

    def __init__(self, seed: int, timeout_s: float = 5.0) -> None:
        self.seed = seed
        self.ran: list[tuple[str, dict[str, Any]]] = []
        self.unmarked_early = 0
        self.inside = 0
        functions = {name: self._make(name, early) for name, early in NAMES.items()}
        self.tools = Toolset(functions, timeout_s)

    def _make(self, name: str, early: bool) -> Callable[..., Any]:
        async def run(**arguments: Any) -> str:
            self.ran.append((name, arguments))
            roll = dice(self.seed, name, arguments)
            self.inside += 1
            try:
                await asyncio.sleep({"slow": 4.0, "hang": 1e9}.get(name, 0.0) + roll.random())
            finally:
                self.inside -= 1
            if name == "fail" or roll.random() < 0.2:
                raise RuntimeError(f"broken {roll.randrange(100)}")
            return f"{name} {roll.randrange(10**6)}"

        return tool(read_only=True)(run) if early else run


class RandomModel(ChatModel):
    """Answers as a function of seed and messages, after a time.

    Args:
        noise: how often its calls are others than those of the model of the same seed without noise.
        broken: how often it fails, and how often it hangs.
    """

    def __init__(self, seed: int, mean_s: float, noise: float = 0.0, broken: float = 0.0) -> None:
        self.seed, self.mean_s, self.noise, self.broken = seed, mean_s, noise, broken
        self.asked = 0

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        self.asked += 1
        state = [[m["role"], m.get("content"), m.get("tool_calls")] for m in messages]
        roll = dice(self.seed, state)
        own = dice(self.seed, state, self.noise, self.asked)
        if own.random() < self.broken:
            if own.random() < 0.5:
                raise ConnectionError("the speculative endpoint went away")
            await asyncio.sleep(1e9)
        await asyncio.sleep(self.mean_s * (0.5 + own.random()))
        if roll.random() < 0.15:
            return Reply(assistant_message(f"done {roll.randrange(1000)}", ()))
        calls = []
        for n in range(roll.choice([1, 1, 1, 2, 3])):
            name = roll.choice(list(NAMES))
            arguments = {"q": roll.randrange(8)}
            if own.random() < self.noise:
                name, arguments = own.choice(list(NAMES)), {"q": own.randrange(8)}
            calls.append(Call(name, arguments, id=f"call_{len(messages)}_{n}"))
        return Reply(assistant_message(None, calls), tuple(calls))


def samples_of(model: ChatModel, count: int) -> Callable[[Sequence[Message]], Iterable[Sample]]:
    """A guesser for `run_agent`."""
    return lambda messages: guesses(model, messages, count)
