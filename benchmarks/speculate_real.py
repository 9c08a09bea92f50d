"""Guessed calls with real models over real HTTP: the share of right guesses, the times, and what is saved.

    python -m benchmarks.speculate_real --model FOLDER [--data FOLDER] [--tasks 8] [--agents 1] [--tools 0.5 1]

Two servers (toolc.runtime.speculate.server), each a process on one thread: the main one runs a llama of transformers in
single precision, the guesser the same weights in 8-bit integers, which is cheaper and does not always write the same.
The tasks are the first questions of BFCL's simple_python, with the tools of all of them in every prompt. A task is a
call, a tool that sleeps for a share of the time that the main model's calls take (G), and a short answer.

    plain      without guesses
    guesser    guesses of the second server
    recorded   guesses that a file would hold: the call of the plain run with probability 0.8, else another one, after
               the guesser's mean time

Prints JSON: hits and alpha (how often the guesser's call is the main one's) first, then G, g, the rest of a task (F),
and for each time of the tool the share saved, beside equation 1 with these figures. Arms take turns task by task, so
that a machine which is busy with others' work is as busy for each.

Leaves out   the engine side: see docs/speculate.md for it in simulation, and in vLLM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import openai

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Call
from toolc.runtime.speculate.agent import ChatModel, Hooks, Message, Reply, run_agent
from toolc.runtime.speculate.check import CallChecker
from toolc.runtime.speculate.executor import Executor, Limits, Sample
from toolc.runtime.speculate.openai import OpenAIModel
from toolc.runtime.speculate.rules import Rules
from toolc.runtime.speculate.simulator import normal
from toolc.runtime.speculate.tools import Toolset

from .speculate_soak import wait_for

ROOT = Path(__file__).resolve().parent.parent
CALL_TOKENS, ANSWER_TOKENS = 96, 16
HIT_RATE = 0.8
ARMS = ("plain", "guesser", "recorded")


def rows(data: Path, count: int) -> tuple[list[str], list[dict[str, Any]]]:
    """Questions, and the tools of all of them; of equal names the first."""
    questions: list[str] = []
    tools: dict[str, dict[str, Any]] = {}
    for line in (data / "simple_python.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if any(one["name"] in tools for one in row["function"]):
            continue
        questions.append(row["question"][0][-1]["content"])
        tools |= {one["name"]: one | {"x-toolc": {"read_only": True}} for one in row["function"]}
        if len(questions) == count:
            break
    return questions, list(tools.values())


def bundle_of(model: Path, tools: list[dict[str, Any]]) -> Bundle:
    """For the model's tokenizer."""
    return compile_tools(tools, model, options=Options(protocol="hermes", named=False)).bundle


def serve(a: argparse.Namespace) -> None:
    """A server, until it is killed."""
    import torch
    import uvicorn
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    from toolc.runtime.speculate.causal import CausalModel
    from toolc.runtime.speculate.chat import Chat
    from toolc.runtime.speculate.engine import Engine
    from toolc.runtime.speculate.server import make_app
    from toolc.runtime.speculate.service import Service

    torch.set_num_threads(1)
    bundle = bundle_of(a.model, rows(a.data, a.tasks)[1])
    tokenizer = Tokenizer.from_file(str(a.model / "tokenizer.json"))

    def encode(text: str) -> list[int]:
        return tokenizer.encode_batch([text], add_special_tokens=False)[0].ids  # type: ignore[no-any-return]

    model: Any = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32)
    if a.integers:
        torch.backends.quantized.engine = (
            "fbgemm" if "fbgemm" in torch.backends.quantized.supported_engines else "qnnpack"
        )
        model.model = torch.ao.quantization.quantize_dynamic(model.model, {torch.nn.Linear}, dtype=torch.qint8)
    engine = Engine(CausalModel(model, a.agents, 4096), bundle, encode)
    uvicorn.run(make_app(Service(engine, Chat(bundle, encode))), host="127.0.0.1", port=a.serve, log_level="error")


class Timed(ChatModel):
    """A call that has to be made, then a short answer; what each took."""

    def __init__(self, port: int, tools: list[dict[str, Any]]) -> None:
        url = f"http://127.0.0.1:{port}/v1"
        self.client = openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=1800)
        listed = [{"type": "function", "function": {k: v for k, v in one.items() if k != "x-toolc"}} for one in tools]
        common = {"tools": listed, "parallel_tool_calls": False, "temperature": 0}
        self.turns = [
            OpenAIModel(self.client, "toolc", common | {"tool_choice": "required", "max_tokens": CALL_TOKENS}),
            OpenAIModel(self.client, "toolc", common | {"tool_choice": "none", "max_tokens": ANSWER_TOKENS}),
        ]
        self.seconds: tuple[list[float], list[float]] = ([], [])
        self.made: list[Call] = []

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        turn = min(1, sum(message["role"] == "assistant" for message in messages))
        begin = time.perf_counter()
        reply = await self.turns[turn].reply(messages)
        self.seconds[turn].append(time.perf_counter() - begin)
        if turn == 0:
            self.made.append(reply.calls[0])
        return reply

    async def __aenter__(self) -> Timed:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()


def same(one: Call, other: Call) -> bool:
    """Whether two calls are equal as JSON."""
    return one.name == other.name and dict(one.arguments) == dict(other.arguments)


class Task(NamedTuple):
    """What a task took, in seconds, with its call and its answer apart; and how many calls were guessed in time."""

    whole_s: float
    call_s: float
    answer_s: float
    hits: int


def figures(tool_s: float, guess_s: float, taken: Mapping[str, Sequence[Task]]) -> dict[str, Any]:
    """The row of one mean time of the tool.

    Args:
        tool_s: the mean time (T).
        guess_s: the mean time of a guess (g).
        taken: tasks by arm, plain first, in one order.
    """
    plain = taken["plain"]
    call_s, answer_s = (statistics.mean(getattr(task, name) for task in plain) for name in ("call_s", "answer_s"))
    found: dict[str, Any] = {
        "T": round(tool_s, 2), "G": round(call_s, 2), "F": round(answer_s, 2),
        "plain": round(statistics.mean(task.whole_s for task in plain), 2),
    }  # fmt: skip
    for arm, tasks in taken.items():
        if arm == "plain":
            continue
        hits = sum(task.hits for task in tasks) / len(tasks)
        overlap_s = max(0.0, min(tool_s, call_s - guess_s))
        found[arm] = {
            "hits": round(hits, 2),
            "saved": round(1 - sum(task.whole_s for task in tasks) / sum(task.whole_s for task in plain), 3),
            "by task": [round(1 - own.whole_s / other.whole_s, 3) for own, other in zip(tasks, plain, strict=True)],
            "G": round(statistics.mean(task.call_s for task in tasks), 2),
            "equation": round(hits * overlap_s / (call_s + answer_s + tool_s), 3),
        }  # fmt: skip
    return found


def servers_of(a: argparse.Namespace) -> int:
    """How many servers a run needs: the main one alone where alpha is known and guesses are recorded."""
    return 1 if a.alone is not None and "guesser" not in a.arms else 2


async def alone(a: argparse.Namespace, tools: list[dict[str, Any]], asked: Sequence[list[Message]]) -> dict[str, Any]:
    """Both models, one question after another: how often their calls are equal, and what each takes without load."""
    async with Timed(a.ports[0], tools) as main, Timed(a.ports[1], tools) as small:
        for model in (main, small)[: servers_of(a)] if not a.running else ():
            # each slot of the server reads the list of tools, which is in its prefix cache from then on
            await asyncio.gather(*(model.reply(asked[0]) for _ in range(a.agents)))
        if a.alone is not None:
            return {"G alone": a.alone[0], "g alone": a.alone[1]}
        for model in (main, small):
            model.seconds = [], []
        equal = []
        for messages in asked:
            call = (await main.reply(messages)).calls[0]
            equal.append(same(call, (await small.reply(messages)).calls[0]))
        seconds = [statistics.mean(model.seconds[0]) for model in (main, small)]
    return {"alpha": [sum(equal), len(equal)], "G alone": round(seconds[0], 3), "g alone": round(seconds[1], 3)}


async def measure(a: argparse.Namespace) -> dict[str, Any]:
    """All arms and times."""
    questions, tools = rows(a.data, a.tasks)
    bundle = bundle_of(a.model, tools)
    rules, checker = Rules.from_bundle(bundle), CallChecker(bundle)
    asked = [[{"role": "user", "content": question}] for question in questions[: a.first]]
    found = await alone(a, tools, asked)
    guess_s = found["g alone"]
    print(json.dumps(found), flush=True)
    found["tools"] = []
    made: dict[int, Call] = {}

    async def once(n: int, arm: str, tool_s: float) -> Task:
        seconds = normal(tool_s)(Random(f"{n} {tool_s}"))

        async def tool(**_: Any) -> str:
            await asyncio.sleep(seconds)
            return "done"

        def guesser(messages: Sequence[Message]) -> list[Sample]:
            if len(messages) > 1:  # the answer, in which no calls may be
                return []

            async def real() -> Iterable[Call]:
                return (await guess.reply(messages)).calls

            async def recorded() -> Iterable[Call]:
                await asyncio.sleep(guess_s)
                right = Random(f"{n} {tool_s} right").random() < HIT_RATE
                return [made[n] if right else replace(made[n], arguments={})]

            return [real if arm == "guesser" else recorded]

        toolset = Toolset({one["name"]: tool for one in tools}, timeout_s=600)
        async with (
            Timed(a.ports[0], tools) as own,
            Timed(a.ports[1], tools) as guess,
            Executor(toolset, rules, checker.accepts, Limits(sample_timeout_s=600)) as executor,
        ):
            begin = time.perf_counter()
            await run_agent(own, executor, asked[n], None if arm == "plain" else guesser, max_turns=2)
            whole_s = time.perf_counter() - begin
            made[n] = own.made[0]
            (call_s,), (answer_s,) = own.seconds
            return Task(whole_s, call_s, answer_s, executor.counts.hits)

    for tool_s in (share * found["G alone"] for share in a.tools):
        taken: dict[str, list[Task]] = {arm: [] for arm in a.arms}
        for at in range(0, len(asked), a.agents):
            some = range(at, min(at + a.agents, len(asked)))
            for arm in a.arms:
                taken[arm] += await asyncio.gather(*(once(n, arm, tool_s) for n in some))
        row = figures(tool_s, guess_s, taken)
        found["tools"].append(row)
        print(json.dumps(row), flush=True)
    return found


def parser() -> argparse.ArgumentParser:
    """The words of the command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--model", type=Path, required=True, help="folder of a llama of transformers")
    words.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "bfcl")
    words.add_argument("--tasks", type=int, default=8)
    words.add_argument("--agents", type=int, default=1)
    words.add_argument(
        "--tools", type=float, nargs="+", default=[0.5, 1.0], help="mean time of the tool, as a share of G"
    )
    words.add_argument("--ports", type=int, nargs=2, default=(18_481, 18_482))
    words.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS), help="plain first")
    words.add_argument("--alone", type=float, nargs=2, help="G and g of an earlier run, whose alpha is known")
    words.add_argument("--running", action="store_true", help="the servers are up, with the same tasks")
    words.add_argument("--first", type=int, help="run so many of the tasks")
    words.add_argument("--serve", type=int)
    words.add_argument("--integers", action="store_true")
    return words


def main() -> None:
    """Start the servers, measure, print."""
    a = parser().parse_args()
    if a.serve:
        serve(a)
        return
    common = ["--model", str(a.model), "--data", str(a.data), "--tasks", str(a.tasks), "--agents", str(a.agents)]
    command = [sys.executable, "-m", "benchmarks.speculate_real", *common]
    servers = [
        subprocess.Popen([*command, "--serve", str(port), *["--integers"] * (port == a.ports[1])])
        for port in a.ports[: servers_of(a)]
        if not a.running
    ]
    try:
        for port in a.ports[: servers_of(a)]:
            wait_for(port, 600)
        asyncio.run(measure(a))
    finally:
        for server in servers:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
