"""Minutes of agents over real HTTP, with kills: does anything leak, cross over, or run that may not?

    python -m benchmarks.speculate_soak [--seconds 300] [--agents 32] [--clients 4]

A main server and a speculative one, each a process with a small random-weight model; client processes with agents,
whose guesses come from the speculative server. The results of every other agent go to the main server's tool cache, so
turns stay there; those of the rest serve their own client. The speculative server and the clients are killed, without
warning, over and over, and started again. Prints one JSON line; exits with 1 if

    leaks         after the end a client holds a task, or the main server a request or an output
    crossed       an output that the engine appended was made for another agent
    unallowed     a tool that is not marked ran without a call of the main model, or early
    idle          no guess served a client, or no turn stayed in the engine: nothing was put to the test

Leaves out   times: two cores shared with others say little about them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import openai

from tests.speculate.small import TOOLS, bundle, service
from toolc.runtime.speculate.agent import calls_of, guesses, run_agent
from toolc.runtime.speculate.check import CallChecker
from toolc.runtime.speculate.executor import Counts, Executor, Limits
from toolc.runtime.speculate.openai import OpenAIModel
from toolc.runtime.speculate.rules import Rules
from toolc.runtime.speculate.tools import Toolset

NAMED = [{"type": "function", "function": {"name": one["name"]}} for one in TOOLS]
OPTIONS: dict[str, Any] = {"tools": NAMED, "parallel_tool_calls": False, "temperature": 0, "max_tokens": 80}
MARKED = {"look", "find"}
MAIN = "main"


def serve(port: int, pause_s: float) -> None:
    """A server, until it is killed; the pause makes every pass of a model longer, as a large one's is."""
    import uvicorn

    from toolc.runtime.speculate.server import make_app

    on = service(slots=32)
    forward = on.engine.model.forward

    async def slow(feeds: Any) -> Any:
        await asyncio.sleep(pause_s)
        return await forward(feeds)

    on.engine.model.forward = slow  # type: ignore[method-assign]
    uvicorn.run(make_app(on), host="127.0.0.1", port=port, log_level="error")


class Tools:
    """Tools of one agent: they say whose output it is, and count."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.ran: dict[str, int] = {}
        names = [one["name"] for one in TOOLS]
        self.set = Toolset({name: self._make(name) for name in names}, timeout_s=3.0)

    def _make(self, name: str) -> Any:
        async def run(**arguments: Any) -> str:
            self.ran[name] = self.ran.get(name, 0) + 1
            roll = random.random()
            slow = 1.0 if roll > 0.7 else 0.05
            await asyncio.sleep(1e6 if roll < 0.02 else slow * random.random())
            if roll < 0.1:
                raise RuntimeError(f"broken for {self.agent}")
            return f"{name} for {self.agent}"

        return run


async def work(
    ports: tuple[int, int], agents: int, stop: asyncio.Event, found: dict[str, Any], counts: list[str]
) -> None:
    """Agents of one client process, until `stop`."""
    rules, checker = Rules.from_bundle(bundle()), CallChecker(bundle())

    async def one(n: int) -> None:
        name = f"agent {os.getpid()}.{n}"
        main, small = (
            openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key=name, max_retries=0, timeout=60)
            for port in ports
        )
        answers = OpenAIModel(main, "toolc", OPTIONS, cached=n % 2 == 0)
        guess = OpenAIModel(small, "toolc", OPTIONS | {"temperature": 0.5})
        run = 0
        while not stop.is_set():
            run += 1
            tools = Tools(f"{name} run {run}")
            executor = Executor(tools.set, rules, checker.accepts, Limits(samples=1, sample_timeout_s=60))
            question = [{"role": "user", "content": f"question {random.randrange(6)}"}]
            try:
                async with executor:
                    done = await run_agent(answers, executor, question, lambda m: guesses(guess, m, 1), max_turns=3)
            except Exception as error:  # of the main path: each is printed
                found["main_errors"].append(repr(error)[:200])
                continue
            asked: dict[str, int] = {}
            for message in done.messages:
                for call in calls_of(message):
                    asked[call.name] = asked.get(call.name, 0) + 1
                if message["role"] == "tool" and (whose := re.search(r"for (.*)", message["content"] or "")):
                    found["crossed"] += whose[1] != tools.agent
            found["unallowed"] += sum(
                count != asked.get(tool, 0) for tool, count in tools.ran.items() if tool not in MARKED
            )
            found["unallowed"] += len(set(executor.counts.ran_early) - MARKED)
            found["pending"] += executor.pending
            found["runs"] += 1
            found["resident_turns"] += done.resident_turns
            for field in counts:
                found[field] += getattr(executor.counts, field)
        await main.close()
        await small.close()

    await asyncio.gather(*(one(n) for n in range(agents)))
    own = asyncio.current_task()
    left = [task for task in asyncio.all_tasks() if task is not own and task.get_name() != MAIN]
    _, stuck = await asyncio.wait(left, timeout=5) if left else ((), ())  # a closing generator may be on its way out
    found["leaks"] += len(stuck)
    found["left"] = [repr(task.get_coro()) for task in stuck]


def client(ports: tuple[int, int], agents: int, out: Path) -> None:
    """A client process: agents until SIGTERM; what it found goes to a file."""
    counts = [name for name, value in vars(Counts()).items() if isinstance(value, int)]
    found: dict[str, Any] = dict.fromkeys(
        ["crossed", "unallowed", "leaks", "pending", "runs", "resident_turns", *counts], 0
    )
    found["main_errors"] = []

    def report() -> None:
        whole = out.with_suffix(".new")  # a kill may come while it is written
        whole.write_text(json.dumps(found))
        whole.replace(out)

    async def main() -> None:
        asyncio.current_task().set_name(MAIN)  # type: ignore[union-attr]
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)

        async def note() -> None:
            while not stop.is_set():
                await asyncio.sleep(1)
                report()

        noting = asyncio.create_task(note())
        working = asyncio.create_task(work(ports, agents, stop, found, counts))
        await stop.wait()
        await noting
        await working
        found["ended"] = True
        report()

    asyncio.run(main())


class Fleet:
    """The processes, by name; killed and started again."""

    def __init__(self) -> None:
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0

    def start(self, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", "benchmarks.speculate_soak", *arguments]
        self.processes[name] = subprocess.Popen(command)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait()
        self.kills += 1

    def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()


def wait_for(port: int, seconds: float = 120) -> dict[str, Any]:
    """The health of a server, once it answers."""
    until = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=10) as answer:
                return json.loads(answer.read())
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def main() -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--agents", type=int, default=32)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--ports", type=int, nargs=2, default=(18_471, 18_472))
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--serve", type=int)
    parser.add_argument("--client", type=Path)
    a = parser.parse_args()
    if a.serve:
        serve(a.serve, a.pause)
        return 0
    if a.client:
        client(tuple(a.ports), a.agents // a.clients, a.client)
        return 0
    dice, fleet = random.Random(0), Fleet()
    files: list[Path] = []
    file_of: dict[int, Path] = {}
    ports = list(map(str, a.ports))
    with tempfile.TemporaryDirectory() as folder:

        def start_client(n: int) -> None:
            files.append(Path(folder) / f"{len(files)}.json")
            file_of[n] = files[-1]
            common = ["--agents", str(a.agents), "--clients", str(a.clients), "--ports", *ports]
            fleet.start(f"client {n}", "--client", str(files[-1]), *common)

        try:
            fleet.start("main", "--serve", ports[0], "--pause", "0.05")
            fleet.start("small", "--serve", ports[1])
            wait_for(a.ports[0])
            wait_for(a.ports[1])
            for n in range(a.clients):
                start_client(n)
            until = time.monotonic() + a.seconds
            while time.monotonic() < until:
                time.sleep(min(dice.uniform(20, 40), max(0.0, until - time.monotonic())))
                if dice.random() < 0.5:
                    fleet.kill("small")
                    fleet.start("small", "--serve", ports[1])
                    wait_for(a.ports[1])  # where a start takes long, most of the time would pass without guesses
                else:
                    n = dice.randrange(a.clients)
                    fleet.kill(f"client {n}")
                    start_client(n)
            for n in range(a.clients):
                while not file_of[n].exists():  # those started last have to be up to be told to stop
                    time.sleep(0.2)
                fleet.processes[f"client {n}"].terminate()
            for n in range(a.clients):
                fleet.processes[f"client {n}"].wait(240)
            left = time.monotonic() + 60
            while (health := wait_for(a.ports[0]))["active"] and time.monotonic() < left:
                time.sleep(0.5)
        finally:
            fleet.close()
        reports = [json.loads(file.read_text()) for file in files if file.exists()]
    total: dict[str, Any] = {"agents": a.agents, "seconds": a.seconds, "kills": fleet.kills}
    for report in reports:
        for name, value in report.items():
            if isinstance(value, int) and not isinstance(value, bool):
                total[name] = total.get(name, 0) + value
    total["main_errors"] = sum(len(report["main_errors"]) for report in reports)
    total["clients_ended"] = sum(report.get("ended", False) for report in reports)
    total["server"] = health
    total["leaks"] += health["active"] + health["tool_cache"]["entries"] + health["tool_cache"]["bytes"]
    counts = health["counts"]
    total["tokens_per_call"] = round(counts["call_tokens"] / max(1, counts["calls"]), 2)
    total["passes_per_call"] = round(counts["call_passes"] / max(1, counts["calls"]), 2)
    total["prefill_avoided"] = round(
        counts["prefill_avoided"] / max(1, counts["prefill_tokens"] + counts["prefill_avoided"]), 4
    )
    total["idle"] = not total["hits"] or not total["resident_turns"]
    print(json.dumps(total))
    for report in reports:
        for error in report["main_errors"][:3]:
            print("#", error)
    for report in reports:
        for task in report.get("left", ()):
            print("# left:", task)
    bad = (
        total["leaks"]
        or total["idle"]
        or total["pending"]
        or total["crossed"]
        or total["unallowed"]
        or total["clients_ended"] != a.clients
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
