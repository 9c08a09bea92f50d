"""The setting of arXiv 2512.15834 in simulation: what is saved on the client side and on the engine side.

    python -m benchmarks.speculate_paper [--data ../shared/data/bfcl] [--out docs/speculate] [--quick]

Agents take BFCL development questions, some calls each, on one simulated engine: the real executor and engine of
toolc.runtime.speculate on a virtual clock. The parameters are those of benchmarks/speculate_paper.json. Few agents are
run several times, with other draws. Writes curves to the folder, and prints the tables as Markdown and one JSON line.

Leaves out   fitting: the parameters were written down before the first run.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from tests.cases.bfcl import rows
from toolc.compiler import Options, compile_tools
from toolc.compiler.vocab.builtin import builtin_path
from toolc.runtime import Bundle
from toolc.runtime.speculate.chart import draw
from toolc.runtime.speculate.simulator import (
    EngineSetting,
    Guesses,
    Rates,
    Result,
    Task,
    normal,
    simulate_engine,
)

from .markdown import table

ROOT = Path(__file__).resolve().parent.parent
FEW = 8
MODES = {"client": (False, False), "resident": (False, True), "drafted": (True, True)}


class Setting:
    """The parameters, and what is made of them once."""

    def __init__(self, given: dict[str, Any], data: Path) -> None:
        self.given = given
        self.dice = random.Random(given["seed"])
        chosen, names = [], set()
        for row in rows(data, ("multiple",)):
            functions = {one["name"] for one in row.functions}
            if row.calls and not functions & names:
                chosen.append(row)
                names |= functions
            if len(chosen) == given["documents"]:
                break
        tools = [one | {"x-toolc": {"read_only": True}} for row in chosen for one in row.functions]
        self.calls = [row.calls[0] for row in chosen]
        options = Options(protocol="hermes", named=False, whitespace="spaced")
        self.bundle: Bundle = compile_tools(tools, options=options).bundle
        tokenizer = Tokenizer.from_file(str(builtin_path()))
        self.encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids

    def tasks(self, agents: int, repeat: int) -> list[Task]:
        """Some calls for each agent, the same at every tool time and in every mode."""
        dice = random.Random(f"{self.given['seed']} {agents} {repeat}")
        return [Task(tuple(dice.sample(self.calls, self.given["turns"]))) for _ in range(agents)]

    def run(self, agents: int, tool_s: float, speculator: str | None, samples: int, mode: str) -> Result:
        """Simulations, those of few agents several times, as one result."""
        times = range(max(1, FEW // agents))
        done = [self.once(agents, tool_s, speculator, samples, mode, repeat) for repeat in times]
        seconds = [one for each in done for one in each.seconds]
        extra = {name: sum(each.extra[name] for each in done) for name in done[0].extra}
        hits = sum(each.hits for each in done) / len(done)
        return Result(seconds, hits, [], sum(each.early for each in done), extra)

    def once(self, agents: int, tool_s: float, speculator: str | None, samples: int, mode: str, repeat: int) -> Result:
        """One simulation."""
        main, drafts_resident = self.given["main"], MODES[mode]
        rates = Rates(main["prefill_rate"], main["decode_rate"], main["slowdown"], main["overhead_s"])
        setting = EngineSetting(rates, main["prompt"], main["reasoning"], main["output"], agents, *drafts_resident)
        guesses = None
        if speculator is not None:
            about = self.given["speculators"][speculator]
            steps = sorted(map(int, about["hit_rates"]))
            table = [about["hit_rates"][str(max(n for n in steps if n <= k + 1))] for k in range(samples)]
            guesses = Guesses(table, normal(about["guess_s"], self.given["guess_deviation"]))
        tool = normal(tool_s, self.given["tool_deviation"])
        tasks, seed = self.tasks(agents, repeat), self.given["seed"] + 1000 * repeat
        return simulate_engine(tasks, self.bundle, self.encode, setting, tool, guesses, samples, seed)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "bfcl")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "speculate")
    parser.add_argument("--quick", action="store_true", help="M = 1 and the ends of the grids only")
    arguments = parser.parse_args()
    setting = Setting(json.loads((ROOT / "benchmarks" / "speculate_paper.json").read_text()), arguments.data)
    given = setting.given
    arguments.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for grid, means in given["tool_mean_s"].items():
        means = means[:: len(means) - 1] if arguments.quick else means
        series: dict[str, list[tuple[float, float]]] = {}
        lines = []
        for agents in given["agents"][: 1 if arguments.quick else None]:
            for tool_s in means:
                plain = setting.run(agents, tool_s, None, 0, "client")
                line = [str(agents), f"{tool_s:g}", f"{plain.mean_s:.2f}"]
                for mode in MODES:
                    done = setting.run(agents, tool_s, "8B", 1, mode)
                    saved = 1 - done.mean_s / plain.mean_s
                    series.setdefault(f"{mode}, M = {agents}", []).append((tool_s, saved))
                    line.append(f"{saved:.1%}")
                    if mode == "drafted":
                        line += [f"{done.hits:.0%}", f"{done.extra['prefill_avoided'] / _read(done):.0%}"]
                        line.append(f"{_per_call(plain):.1f} → {_per_call(done):.1f}")
                lines.append(line)
        head = ["M", "T, s", "standard, s", *MODES, "hits", "prefill avoided", "passes a call"]
        print(f"\n{grid}\n\n{table(head, lines)}", flush=True)
        chart = draw(
            f"Time saved, {grid} tools, 8B", "mean time of the tool, seconds", "time saved", series, percent=True
        )
        (arguments.out / f"{grid}.svg").write_text(chart, encoding="utf-8")
        found[grid] = {name: [[x, round(y, 4)] for x, y in points] for name, points in series.items()}
    at = given["sweep_speculators_at"]
    plain = setting.run(at["agents"], at["tool_mean_s"], None, 0, "client")
    lines = []
    for name, about in given["speculators"].items():
        for samples in map(int, about["hit_rates"]):
            line = [name, str(samples), f"{about['hit_rates'][str(samples)]:.2f}"]
            for mode in ("client", "drafted"):
                done = setting.run(at["agents"], at["tool_mean_s"], name, samples, mode)
                line += [f"{done.hits:.2f}", f"{1 - done.mean_s / plain.mean_s:.1%}"]
                line += [f"{done.early / at['agents'] / given['turns']:.2f}"] if mode == "client" else []
            lines.append(line)
    head = ["speculator", "λ", "α", "hits", "client", "early calls a turn", "hits", "drafted"]
    print(f"\nspeculators at {at}\n\n{table(head, lines)}")
    print(json.dumps(found))


def _read(done: Result) -> float:
    """Tokens of contexts: those read, and those that did not have to be."""
    return max(1.0, done.extra["prefill_tokens"] + done.extra["prefill_avoided"])


def _per_call(done: Result) -> float:
    """Passes of the model in which a call is decoded."""
    return done.extra["call_passes"] / max(1.0, done.extra["calls"])


if __name__ == "__main__":
    main()
