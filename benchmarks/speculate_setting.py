"""The setting of arXiv 2512.15834 with final answers: time saved, throughput, cost, and the engine beside the client.

    python -m benchmarks.speculate_setting [--data ../shared/data/bfcl] [--parts client,samples,throughput,cost,engine]

The real executor and engine of toolc.runtime.speculate on a virtual clock. An agent takes one task after another: a
turn with a call, its tool, and a final answer. The main model is a server that all agents share: each agent more slows
the others' tokens. benchmarks/speculate_setting.json says what is known of the paper, what was fitted to its client
curve (so that curve is no evidence), and what is assumed.

Time saved is the mean over agents of each one's saving; intervals are of the mean over the repeats (t, 95%).

Leaves out   fitting: that was one division, written down before the first run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from toolc.runtime import Call
from toolc.runtime.speculate.agent import ChatModel, Hooks, Message, Reply, assistant_message, run_agent
from toolc.runtime.speculate.chart import draw
from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.rules import Rules, ToolRule
from toolc.runtime.speculate.simulator import (
    EngineSetting,
    Guesses,
    Rates,
    Task,
    guesser_of,
    normal,
    simulate_engine,
    tools_of,
)

from .markdown import table
from .speculate_paper import Setting as Calls

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("client", "samples", "throughput", "cost", "engine")
CHUNK = 25
"""Tokens after which a server looks how many agents it serves."""
_T = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78}


class Server:
    """Tokens of the main model, slower for each agent more that it serves."""

    def __init__(self, rate: float, slowdown: float) -> None:
        self.rate, self.slowdown, self.active, self.tokens = rate, slowdown, 0, 0

    async def write(self, count: int) -> None:
        self.active += 1
        try:
            for at in range(0, count, CHUNK):
                some = min(CHUNK, count - at)
                await asyncio.sleep(some * (1 + self.slowdown * (self.active - 1)) / self.rate)
                self.tokens += some
        finally:
            self.active -= 1


class Written(ChatModel):
    """Answers a task's call, then its text.

    Args:
        counts: tokens of both.
    """

    def __init__(self, server: Server, task: Task, counts: tuple[int, int]) -> None:
        self.server, self.task, self.counts = server, task, counts

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        turn = sum(message["role"] == "assistant" for message in messages)
        await self.server.write(self.counts[min(turn, 1)])
        if turn >= len(self.task.calls):
            return Reply(assistant_message("done", ()))
        name, arguments = self.task.calls[turn]
        call = Call(name, arguments, id=f"call_{turn}")
        return Reply(assistant_message(None, [call]), (call,))


class Simulation:
    """The setting, and runs of it."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given, self.known, self.assumed = given, given["known"], given["assumed"]
        call_s = given["fitted"]["call_less_guess_s"] + self.assumed["guess_s"]["8B"]
        answer_s = given["fitted"]["call_and_answer_s"] - call_s
        self.tokens = tuple(round(seconds * self.assumed["decode_rate"]) for seconds in (call_s, answer_s))

    def guesses(self, speculator: str, samples: int, hit_rate: float | None = None) -> Guesses:
        """A speculator's; with a hit rate of its own, where one is given."""
        rates = self.assumed["hit_rates"][speculator]
        steps = sorted(map(int, rates))
        known = [rates[str(max(n for n in steps if n <= k + 1))] for k in range(samples)]
        about = normal(self.assumed["guess_s"][speculator], self.assumed["guess_deviation"])
        return Guesses([hit_rate] * samples if hit_rate is not None else known, about)

    def run(
        self, agents: int, tool_s: float, guesses: Guesses | None, samples: int, repeat: int
    ) -> tuple[list[float], float, float]:
        """Each agent's seconds, tokens of the server, share of hits."""
        assumed, seed = self.assumed, self.given["seed"] + 1000 * repeat
        server = Server(assumed["decode_rate"], assumed["slowdown"])
        tool = normal(tool_s, assumed["tool_deviation"])
        hits = 0

        async def one(agent: int) -> float:
            nonlocal hits
            for number in range(self.known["tasks"]):
                own = hash((seed, agent, number))  # of numbers alone, so the same in every process
                dice = Random(own)
                counts = tuple(round(normal(count, assumed["token_deviation"])(dice)) for count in self.tokens)
                task = Task((("look", {"n": number, "agent": agent}),) * assumed["calls"])
                guesser = None if guesses is None else guesser_of(task, guesses, samples, own)
                rules, limits = Rules([ToolRule("look", early=True)]), Limits(samples, 1e6, calls=samples)
                async with Executor(tools_of([task], tool, own), rules, limits=limits) as executor:
                    model = Written(server, task, (counts[0], counts[1]))
                    await run_agent(model, executor, [{"role": "user", "content": "go"}], guesser)
                hits += executor.counts.hits
            return asyncio.get_running_loop().time()

        async def every() -> list[float]:
            begin = asyncio.get_running_loop().time()
            return [end - begin for end in await asyncio.gather(*map(one, range(agents)))]

        seconds = run_virtual(every)[0]
        return seconds, server.tokens, hits / (agents * self.known["tasks"] * assumed["calls"])

    def saved(
        self, agents: int, tool_s: float, guesses: Guesses, samples: int, repeats: int
    ) -> tuple[list[float], float, float]:
        """Of each repeat the mean over agents of what each saves; tokens a second gained; hits."""
        shares, gained, hits = [], [], []
        for repeat in range(repeats):
            plain, tokens, _ = self._plain(agents, tool_s, repeat)
            guessed, more, hit = self.run(agents, tool_s, guesses, samples, repeat)
            shares.append(statistics.mean(1 - b / a for a, b in zip(plain, guessed, strict=True)))
            gained.append(more / max(guessed) - tokens / max(plain))
            hits.append(hit)
        return shares, statistics.mean(gained), statistics.mean(hits)

    def _plain(self, agents: int, tool_s: float, repeat: int) -> tuple[list[float], float, float]:
        key = agents, tool_s, repeat
        if key not in self._held:
            self._held[key] = self.run(agents, tool_s, None, 0, repeat)
        return self._held[key]

    _held: dict[tuple[int, float, int], tuple[list[float], float, float]] = {}

    def repeats(self, agents: int) -> int:
        """As many as the paper's; one where a run is a thousand tasks."""
        return int(self.known["repeats"]) if agents < 32 else 1


def told(shares: Sequence[float]) -> str:
    """A mean in percent, and half of its interval."""
    mean = statistics.mean(shares)
    if len(shares) == 1:
        return f"{mean:.1%}"
    half = _T[len(shares) - 1] * statistics.stdev(shares) / len(shares) ** 0.5
    return f"{mean:.1%} ± {100 * half:.1f}"


def client(simulation: Simulation, out: Path | None = None) -> str:
    """Time saved over the time of the tool, three speculators, one sample; a plot of the 8B one in a folder."""
    lines = []
    series: dict[str, list[tuple[float, float]]] = {}
    known = simulation.known
    means = sorted({mean for grid in known["tool_mean_s"].values() for mean in grid})
    for agents in known["agents"]:
        for tool_s in means:
            line = [str(agents), f"{tool_s:g}"]
            for speculator in simulation.assumed["hit_rates"]:
                guesses = simulation.guesses(speculator, 1)
                shares, _, hits = simulation.saved(agents, tool_s, guesses, 1, simulation.repeats(agents))
                line += [told(shares), f"{hits:.0%}"]
                series.setdefault(f"{speculator}, M = {agents}", []).append((tool_s, statistics.mean(shares)))
            lines.append(line)
    if out is not None:
        chart = draw("Time saved, client side", "mean time of the tool, seconds", "time saved", series, percent=True)
        (out / "setting.svg").write_text(chart, encoding="utf-8")
    return table(["M", "T, s", "8B", "hits", "3B", "hits", "1B", "hits"], lines)


def samples(simulation: Simulation) -> str:
    """λ, at M = 1 and 8 and a tool of 1.5 s."""
    lines = []
    for agents in (1, 8):
        for speculator in simulation.assumed["hit_rates"]:
            for count in simulation.known["samples"]:
                guesses = simulation.guesses(speculator, count)
                shares, _, hits = simulation.saved(agents, 1.5, guesses, count, simulation.repeats(agents))
                lines.append([str(agents), speculator, str(count), f"{hits:.0%}", told(shares)])
    return table(["M", "speculator", "λ", "hits", "saved"], lines)


def throughput(simulation: Simulation) -> str:
    """Tokens a second over the hit rate."""
    about, lines = simulation.known["throughput"], []
    for agents in simulation.known["agents"]:
        for rate in about["hit_rates"]:
            guesses = simulation.guesses("8B", 1, rate)
            repeats = simulation.repeats(agents)
            shares, gained, hits = simulation.saved(agents, about["tool_mean_s"], guesses, 1, repeats)
            before = statistics.mean(
                tokens / max(seconds)
                for seconds, tokens, _ in (
                    simulation._plain(agents, about["tool_mean_s"], repeat) for repeat in range(repeats)
                )
            )
            lines.append([
                str(agents), f"{hits:.0%}", f"{before:.0f}", f"+{gained:.0f}", f"+{gained / agents:.1f}", told(shares)
            ])  # fmt: skip
    return table(["M", "hits", "tokens/s without", "gained, all", "gained, an agent", "saved"], lines)


def cost(simulation: Simulation) -> str:
    """Time and money of 100 turns with a call, at M = 1 and a tool of 1.5 s."""
    assumed, lines = simulation.assumed, []
    read, written = (price / 1e6 for price in assumed["price"]["main"])
    guess_read, guess_written = (price / 1e6 for price in assumed["price"]["guess"])
    tokens = simulation.tokens[0]
    main = 100 * (assumed["prompt"] * read + tokens * written)
    for count in simulation.known["samples"]:
        shares, _, hits = simulation.saved(1, 1.5, simulation.guesses("1B", count), count, simulation.repeats(1))
        more = 100 * (assumed["prompt"] * guess_read + count * tokens * guess_written)
        lines.append([str(count), f"{hits:.0%}", told(shares), f"{main:.3f}", f"{more:.3f}", f"+{more / main:.0%}"])
    return table(["λ", "hits", "saved", "main, $", "guesses, $", "more"], lines)


def engine(simulation: Simulation, data: Path) -> str:
    """The engine beside the client, M = 1, 8B; both with a prefix cache, drafts apart."""
    assumed = simulation.assumed
    old = Calls(json.loads((ROOT / "benchmarks" / "speculate_paper.json").read_text(encoding="utf-8")), data)
    rates = Rates(assumed["prefill_rate"], assumed["decode_rate"], assumed["slowdown"], assumed["overhead_s"])
    average = statistics.mean(
        len(old.encode(json.dumps({"name": name, "arguments": arguments}))) for name, arguments in old.calls
    )
    reasoning = max(0, simulation.tokens[0] - round(average))  # a call's own tokens come on top
    guesses, deviation = simulation.guesses("8B", 1), assumed["tool_deviation"]
    modes = {"plain": (False, False), "client": (False, False), "resident": (False, True), "drafted": (True, True)}
    seed, lines = simulation.given["seed"], []
    for tool_s in (0.1, 0.2, 0.3, 0.4, 0.5, 1.5, 3.0):
        total = {}
        for mode, (drafts, resident) in modes.items():
            setting = EngineSetting(
                rates, assumed["prompt"], reasoning, assumed["output"], 1, drafts, resident, prefix_cache=True,
                answer=simulation.tokens[1],
            )  # fmt: skip
            guessing = None if mode == "plain" else guesses
            total[mode] = sum(
                simulate_engine(
                    [Task((old.calls[number % len(old.calls)],))], old.bundle, old.encode, setting,
                    normal(tool_s, deviation), guessing, 1, seed + number,
                ).mean_s
                for number in range(ENGINE_TASKS)
            )  # fmt: skip
        client, resident_too, drafted = (1 - total[mode] / total["plain"] for mode in list(modes)[1:])
        lines.append([
            f"{tool_s:g}", f"{total['plain'] / ENGINE_TASKS:.2f}", f"{client:.1%}", f"{resident_too:.1%}",
            f"{drafted:.1%}", f"{100 * (resident_too - client):+.1f}", f"{100 * (drafted - client):+.1f}",
        ])  # fmt: skip
    return table(["T, s", "a task, s", "client", "resident", "drafted", "resident, points", "drafted, points"], lines)


ENGINE_TASKS = 32


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "bfcl")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "speculate", help="folder of the plot")
    parser.add_argument("--parts", default=",".join(PARTS))
    arguments = parser.parse_args()
    simulation = Simulation(json.loads((ROOT / "benchmarks" / "speculate_setting.json").read_text(encoding="utf-8")))
    making = {"client": partial(client, out=arguments.out), "samples": samples, "throughput": throughput, "cost": cost}
    for part in arguments.parts.split(","):
        text = engine(simulation, arguments.data) if part == "engine" else making[part](simulation)
        print(f"\n{part}\n\n{text}", flush=True)


if __name__ == "__main__":
    main()
