"""Guessed calls with real models over real HTTP: the share of right guesses, the times, and what is saved.

    python -m benchmarks.speculate_real run --model FOLDER --out real.jsonl [--agents 8] [--tools 1] [--repeats 5]
    python -m benchmarks.speculate_real table real.jsonl

Two servers (toolc.runtime.speculate.server), each a process on one thread: the main one runs a llama of transformers in
single precision, the guesser a cheaper form of the same model (`GUESSERS`). The tasks are the first questions of BFCL's
simple_python, with the tools of all of them in every prompt. A task is a call, a tool that sleeps for a share of the
time that the main model's calls take (G), and a short answer.

    plain      without guesses
    guesser    guesses of the second server
    recorded   guesses that a file would hold: the main model's own call with probability 0.8, else one without
               arguments, after the guesser's mean time (or `--guess`)
    engine     as "recorded", and outputs are handed to the main server while it writes: it drafts the call that has an
               output, and where it made that call it goes on with its answer at once

A run writes one JSON line a question alone, and one a task, arm, time of the tool and repeat, with the main server's
counts for each arm. What the file holds is not run again. Arms take turns, every other repeat in the other direction,
so that a machine which is busy with others' work is as busy for each. A table has a row for each time and arm: time
saved is the mean over the tasks of each one's saving, with its 95% interval over repeats, beside equation 1 with the
measured figures; and passes of the main model, which do not depend on what else a machine does.

Leaves out   several tasks one after another in an agent: with M agents, M tasks run at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TextIO

import openai

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Call
from toolc.runtime.speculate.agent import ChatModel, Hooks, Message, Reply, calls_of, run_agent
from toolc.runtime.speculate.check import CallChecker
from toolc.runtime.speculate.engine import Engine, Running
from toolc.runtime.speculate.executor import Executor, Limits, Sample
from toolc.runtime.speculate.openai import OpenAIModel
from toolc.runtime.speculate.rules import Rules
from toolc.runtime.speculate.simulator import normal
from toolc.runtime.speculate.tools import Toolset

from .speculate_real_table import read, table
from .speculate_soak import wait_for

ROOT = Path(__file__).resolve().parent.parent
CALL_TOKENS, ANSWER_TOKENS = 96, 16
HIT_RATE = 0.8
ARMS = ("plain", "guesser", "recorded", "engine")
GUESSERS = ("int8-channel", "int8")
"""Linear layers in 8-bit integers, with a scale for each of their outputs, or one for all."""


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


class OneCall(Engine):
    """A sequence that stays behind its call goes on with a short text, as the client's next request would ask."""

    async def _answers(self, one: Running, calls: Sequence[Call]) -> tuple[list[int], tuple[str, ...]]:
        appended, outputs = await super()._answers(one, calls)
        if appended:
            one.entry = "none"
            one.sampling = replace(one.sampling, max_tokens=one.decoded + ANSWER_TOKENS)
        return appended, outputs


def serve(a: argparse.Namespace) -> None:
    """A server, until it is killed."""
    import torch
    import uvicorn
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    from toolc.runtime.speculate.causal import CausalModel
    from toolc.runtime.speculate.chat import Chat
    from toolc.runtime.speculate.server import make_app
    from toolc.runtime.speculate.service import Service

    torch.set_num_threads(1)
    bundle = bundle_of(a.model, rows(a.data, a.tasks)[1])
    tokenizer = Tokenizer.from_file(str(a.model / "tokenizer.json"))

    def encode(text: str) -> list[int]:
        return tokenizer.encode_batch([text], add_special_tokens=False)[0].ids  # type: ignore[no-any-return]

    model: Any = AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.float32)
    if a.as_guesser:
        quantized = torch.ao.quantization
        torch.backends.quantized.engine = (
            "fbgemm" if "fbgemm" in torch.backends.quantized.supported_engines else "qnnpack"
        )
        how = {
            "int8": quantized.default_dynamic_qconfig,
            "int8-channel": quantized.per_channel_dynamic_qconfig,
        }[a.guesser]
        model.model = quantized.quantize_dynamic(model.model, {torch.nn.Linear: how})
    engine = OneCall(CausalModel(model, a.agents, 4096), bundle, encode)
    uvicorn.run(make_app(Service(engine, Chat(bundle, encode))), host="127.0.0.1", port=a.serve, log_level="error")


class Timed(ChatModel):
    """A call that has to be made, then a short answer; what each took.

    Args:
        cached: outputs are handed in while the call is written.

    Attributes:
        call_s, answer_s: seconds of both; the answer's is 0 until it is there.
        made: the call.
    """

    def __init__(self, port: int, tools: list[dict[str, Any]], cached: bool = False) -> None:
        url = f"http://127.0.0.1:{port}/v1"
        self.client = openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=1800)
        listed = [{"type": "function", "function": {k: v for k, v in one.items() if k != "x-toolc"}} for one in tools]
        common = {"tools": listed, "parallel_tool_calls": False, "temperature": 0}
        self.cached = cached
        self.turns = [
            OpenAIModel(self.client, "toolc", common | {"tool_choice": "required", "max_tokens": CALL_TOKENS}, cached),
            OpenAIModel(self.client, "toolc", common | {"tool_choice": "none", "max_tokens": ANSWER_TOKENS}),
        ]
        self.call_s = self.answer_s = 0.0
        self.made: Call | None = None

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        turn = min(1, sum(message["role"] == "assistant" for message in messages))
        begin = time.perf_counter()
        if turn:
            reply = await self.turns[1].reply(messages)
            self.answer_s = time.perf_counter() - begin
            return reply

        def stays(resident: Sequence[Message]) -> None:
            self.call_s = time.perf_counter() - begin
            if hooks is not None:
                hooks.on_resident(resident)

        watch = None if hooks is None or not self.cached else replace(hooks, on_resident=stays)
        reply = await self.turns[0].reply(messages, watch)
        took = time.perf_counter() - begin
        if not reply.resident:
            self.call_s, self.made = took, reply.calls[0] if reply.calls else None
            return reply
        self.answer_s, self.made = took - self.call_s, calls_of(reply.resident[0])[0]
        return replace(reply, cut=False)  # the server gave the answer all of its tokens

    async def __aenter__(self) -> Timed:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()


class Run:
    """All arms, times and repeats, as far as the file does not hold them.

    Args:
        a: the words of the command line.
        file: lines go to its end.
    """

    def __init__(self, a: argparse.Namespace, file: TextIO) -> None:
        self.a, self.file = a, file
        questions, self.tools = rows(a.data, a.tasks)
        self.asked: list[list[Message]] = [[{"role": "user", "content": one}] for one in questions[: a.first]]
        self.bundle = bundle_of(a.model, self.tools)
        self.rules, self.checker = Rules.from_bundle(self.bundle), CallChecker(self.bundle)
        self.made: dict[int, Call | None] = {}
        self.setting = {"tasks": a.tasks, "agents": a.agents, "guesser": a.guesser, "guess": a.guess}

    def write(self, **row: Any) -> None:
        """A line."""
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def counts(self) -> dict[str, int]:
        """What the main server has done so far: see `EngineCounts`."""
        return dict(wait_for(self.a.ports[0])["counts"])

    async def warm(self, port: int) -> None:
        """Each slot of a server reads the list of tools, which is in its prefix cache from then on."""
        async with Timed(port, self.tools) as model:
            await asyncio.gather(*(model.reply(self.asked[0]) for _ in range(self.a.agents)))

    async def alone(self, model: str, port: int, done: set[int]) -> None:
        """One question after another: the call of each, and what it takes without load."""
        for n in range(len(self.asked)):
            if n in done:
                continue
            async with Timed(port, self.tools) as one:
                await one.reply(self.asked[n])
            called = None if one.made is None else [one.made.name, dict(one.made.arguments)]
            self.write(alone=model, task=n, seconds=round(one.call_s, 3), call=called)

    async def task(self, n: int, arm: str, share: float, repeat: int, tool_s: float, guess_s: float) -> None:
        """One task under one arm."""
        slept_s = normal(tool_s)(Random(f"{n} {share} {repeat}"))
        guesses_s: list[float] = []

        async def tool(**_: Any) -> str:
            await asyncio.sleep(slept_s)
            return "done"

        def guesser(messages: Sequence[Message]) -> list[Sample]:
            if len(messages) > 1:  # the answer, in which no calls may be
                return []

            async def real() -> Iterable[Call]:
                begin = time.perf_counter()
                calls = (await guess.reply(messages)).calls
                guesses_s.append(time.perf_counter() - begin)
                return calls

            async def recorded() -> Iterable[Call]:
                await asyncio.sleep(guess_s)
                guesses_s.append(guess_s)
                call = self.made[n]
                right = Random(f"{n} {share} {repeat} right").random() < HIT_RATE
                return [] if call is None else [call if right else replace(call, arguments={})]

            return [real if arm == "guesser" else recorded]

        toolset = Toolset({one["name"]: tool for one in self.tools}, timeout_s=600)
        limits = Limits(sample_timeout_s=600)
        async with (
            Timed(self.a.ports[0], self.tools, arm == "engine") as own,
            Timed(self.a.ports[1], self.tools) as guess,
            Executor(toolset, self.rules, self.checker.accepts, limits) as executor,
        ):
            begin = time.perf_counter()
            done = await run_agent(own, executor, self.asked[n], None if arm == "plain" else guesser, max_turns=2)
            whole_s = time.perf_counter() - begin
            if arm == "plain":
                self.made[n] = own.made
            self.write(
                share=share, repeat=repeat, arm=arm, task=n, tool_s=round(tool_s, 3),
                guess_s=round(statistics.mean(guesses_s), 3) if guesses_s else None, whole_s=round(whole_s, 3),
                call_s=round(own.call_s, 3), answer_s=round(own.answer_s, 3),
                hits=executor.counts.hits + done.resident_turns, stayed=done.resident_turns,
            )  # fmt: skip

    async def measure(self) -> None:
        """Whatever is missing."""
        a = self.a
        held = read(a.out)
        if held.setting and held.setting != self.setting:
            raise SystemExit(f"{a.out} holds a run of {held.setting}, not of {self.setting}")
        if not held.setting:
            self.write(**self.setting)
        for port in a.ports[: servers_of(a)]:
            await self.warm(port)
        for model, port in zip(("main", "guesser"), a.ports, strict=True):
            await self.alone(model, port, set(held.alone[model]))
        known = read(a.out).alone
        seconds = {model: statistics.mean(one["seconds"] for one in known[model].values()) for model in known}
        guess_s = seconds["guesser"] if a.guess is None else a.guess * seconds["main"]
        for n, one in known["main"].items():
            self.made[n] = None if one["call"] is None else Call(*one["call"])
        for repeat in range(a.repeats):
            for share in a.tools:
                for at in range(0, len(self.asked), a.agents):
                    some = range(at, min(at + a.agents, len(self.asked)))
                    if all((share, repeat, arm, n) in held.tasks for arm in a.arms for n in some):
                        continue
                    for arm in a.arms[:: -1 if repeat % 2 else 1]:
                        before = self.counts()
                        each = (self.task(n, arm, share, repeat, share * seconds["main"], guess_s) for n in some)
                        await asyncio.gather(*each)
                        counts = {name: count - before[name] for name, count in self.counts().items()}
                        self.write(counts=counts, share=share, repeat=repeat, arm=arm, at=at, tasks=len(some))


def servers_of(a: argparse.Namespace) -> int:
    """How many servers a run needs: the main one alone where nothing is asked of the guesser any more."""
    known = len(read(a.out).alone["guesser"]) >= (a.first or a.tasks)
    return 1 if known and "guesser" not in a.arms else 2


def parser() -> argparse.ArgumentParser:
    """The words of the command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = words.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("--model", type=Path, required=True, help="folder of a llama of transformers")
    run.add_argument("--out", type=Path, required=True, help="file of JSON lines, which is gone on with")
    run.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "bfcl")
    run.add_argument("--tasks", type=int, default=8)
    run.add_argument("--first", type=int, help="run so many of the tasks")
    run.add_argument("--agents", type=int, default=1)
    run.add_argument("--guesser", choices=GUESSERS, default=GUESSERS[0])
    run.add_argument(
        "--tools", type=float, nargs="*", default=[0.5, 1.0], help="mean time of the tool, as a share of G alone"
    )
    run.add_argument(
        "--guess", type=float, help="time of a recorded guess, as a share of G alone; the guesser's if not given"
    )
    run.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS), help="plain first")
    run.add_argument("--repeats", type=int, default=1)
    run.add_argument("--ports", type=int, nargs=2, default=(18_481, 18_482))
    run.add_argument("--running", action="store_true", help="the servers are up, with the same tasks")
    run.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    run.add_argument("--as-guesser", action="store_true", help=argparse.SUPPRESS)
    shown = commands.add_parser("table")
    shown.add_argument("records", type=Path)
    return words


async def measure(a: argparse.Namespace) -> None:
    """Run what the file does not hold; the servers are up."""
    with a.out.open("a", encoding="utf-8") as file:
        await Run(a, file).measure()


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the servers and measure, or print the table."""
    a = parser().parse_args(arguments)
    if a.command == "table":
        print(table(read(a.records)))
        return
    if a.serve:
        serve(a)
        return
    common = ["--model", str(a.model), "--data", str(a.data), "--tasks", str(a.tasks), "--agents", str(a.agents)]
    common += ["--out", str(a.out), "--guesser", a.guesser]
    command = [sys.executable, "-m", "benchmarks.speculate_real", "run", *common]
    ports = a.ports[: servers_of(a)]
    for port in ports if not a.running else ():
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                raise SystemExit(f"another server listens on port {port}: give --ports, or --running if it is meant")
    servers = [
        subprocess.Popen([*command, "--serve", str(port), *["--as-guesser"] * (port == a.ports[1])])
        for port in ports
        if not a.running
    ]
    try:
        for port in ports:
            wait_for(port, 600)
        asyncio.run(measure(a))
    finally:
        for server in servers:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
