"""What each pass of the compiler gains: compiles with all passes and with all but one, in one run.

    python -m benchmarks.ablation [--shared ../shared] [--every 12] [--rounds 3] [--tools 128,400] [--only NAME,…]

The cases are every so many of the development cases; the tools are functions of BFCL, each with a name of its own. A
child that is forked for each arm compiles all of them once: kernels, vocabularies and their tries are at hand, and what
is kept of patterns, schemas and parts is not. Arms take turns; a figure is the ratio of the medians over rounds,
without the pass to with it, so 1.20 says that a compile takes a fifth more without. Prints a Markdown table.

    p50, avg   processor time of a case;  N tools: of a compile, Qwen 3's format, behind
               those of fewer tools in one process: 129 are the 128 and one more
    KB         of the bundles' files, summed;  MB: most memory of the arm above that of the parent

Leaves out   where time goes within a pass (any profiler tells).
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import pickle
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.markdown import table
from toolc.compiler import Budget, Options, compile_schema, compile_tools
from toolc.compiler.errors import BudgetError, ToolcError
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.passes import Pass, without
from toolc.runtime.format.vocab import Vocab

LIMIT = 30.0  # seconds of a compile; one that takes longer counts as that long
WARM = 3  # cases, with which kernels are loaded
FILES = ("simple_python", "multiple", "live_simple")


class Case(NamedTuple):
    """What is compiled: a schema, or tools."""

    name: str
    spec: Any
    tools: int


class Arm(NamedTuple):
    """What one child measured: seconds and bytes by case (0 for a case that was refused), and KiB of memory."""

    seconds: list[float]
    sizes: list[int]
    memory: int


def schemas(shared: Path, every: int) -> list[Case]:
    """Every so many of the development cases."""
    with open(shared / "data" / "maskbench_dev.jsonl", encoding="utf-8") as file:
        lines = [line for n, line in enumerate(file) if n % every == 0]
    return [Case(row["id"], row["schema"], 0) for row in map(json.loads, lines)]


def tool_lists(shared: Path, sizes: list[int]) -> list[Case]:
    """Lists of the first functions of BFCL, each of another name."""
    found: dict[str, dict[str, Any]] = {}
    for file in FILES:
        for line in (shared / "data" / "bfcl" / f"{file}.jsonl").read_text().splitlines():
            for function in json.loads(line)["function"]:
                found.setdefault(function["name"], function)
    functions = list(found.values())
    return [Case(f"{size} tools", functions[:size], size) for size in sizes]


def measured(cases: list[Case], vocabs: tuple[Vocab, Vocab]) -> Arm:
    """Compile all cases once, in this process."""
    begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, sizes = [], []
    budget = Budget(seconds=4 * LIMIT)  # of wall time
    alone, tools = Options(budget=budget, jobs=1), Options(budget=budget, jobs=1, protocol="hermes")
    with tempfile.TemporaryDirectory() as folder:
        for n, case in enumerate(cases):
            path, size, over = Path(folder) / f"{n}.toolc", 0, 0.0
            start = time.process_time()
            try:
                if case.tools:
                    made = compile_tools(case.spec, vocabs[1], options=tools)
                else:
                    made = compile_schema(case.spec, vocabs[0], options=alone)
                made.write(path)
                size = path.stat().st_size
            except BudgetError:
                over = LIMIT
            except ToolcError:
                pass  # refused, with the pass or without
            seconds.append(min(LIMIT, over + time.process_time() - start))
            sizes.append(size)
            path.unlink(missing_ok=True)
    return Arm(seconds, sizes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begin)


def forked(warm: list[Case], cases: list[Case], vocabs: tuple[Vocab, Vocab], off: Pass | None) -> Arm:
    """The same in a child without a pass, with an empty cache of parts and tries of its own."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with tempfile.TemporaryDirectory() as cache, without(*([] if off is None else [off])):
            os.environ["TOOLC_CACHE"] = cache
            fresh = copy.copy(vocabs[0]), copy.copy(vocabs[1])
            measured(warm, fresh)
            with os.fdopen(write, "wb") as pipe:
                pipe.write(pickle.dumps(tuple(measured(cases, fresh))))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = pipe.read()
    os.waitpid(child, 0)
    return Arm(*pickle.loads(found))


def median(arms: list[Arm]) -> Arm:
    """Of several rounds, case by case."""
    seconds = [statistics.median(values) for values in zip(*(arm.seconds for arm in arms), strict=True)]
    return Arm(seconds, arms[0].sizes, int(statistics.median(arm.memory for arm in arms)))


def figures(arm: Arm, cases: list[Case], both: list[bool]) -> dict[str, float]:
    """The columns of an arm, over the cases that both arms compile."""
    alone = [n for n, case in enumerate(cases) if not case.tools and both[n]]
    out = {
        "p50": statistics.median(arm.seconds[n] for n in alone),
        "avg": statistics.fmean(arm.seconds[n] for n in alone),
    }
    out |= {case.name: arm.seconds[n] for n, case in enumerate(cases) if case.tools}
    out["KB"] = sum(arm.sizes[n] for n in alone) / 1000
    out |= {f"{case.name}, KB": arm.sizes[n] / 1000 for n, case in enumerate(cases) if case.tools}
    return out | {"MB": arm.memory / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--every", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", default="128,129,400")
    parser.add_argument("--only", default="", help="names of passes")
    options = parser.parse_args()
    folder = options.shared / "tokenizers"
    vocabs = load_vocab(str(folder / "llama3.json")), load_vocab(str(folder / "qwen3.json"))
    tools = tool_lists(options.shared, [int(size) for size in options.tools.split(",") if size])
    cases = schemas(options.shared, options.every) + tools
    warm = schemas(options.shared, 400)[:WARM] + tool_lists(options.shared, [3])
    passes = [one for one in Pass if not options.only or one.name.lower() in options.only.lower().split(",")]
    measured(warm, vocabs)
    arms: dict[Pass | None, list[Arm]] = {}
    for round_ in range(options.rounds):
        for n, off in enumerate(passes):
            if n % 4 == 0:
                arms.setdefault(None, []).append(forked(warm, cases, vocabs, None))
            arms.setdefault(off, []).append(forked(warm, cases, vocabs, off))
            print(round_, off.name, sum(arms[off][-1].seconds), file=sys.stderr, flush=True)
        if round_ < options.rounds - 1:
            print(shown(arms, cases), file=sys.stderr, flush=True)
    print(shown(arms, cases))


def shown(arms: dict[Pass | None, list[Arm]], cases: list[Case]) -> str:
    """The table of what was measured so far."""
    whole = median(arms[None])
    lines = []
    for off in [one for one in arms if one is not None]:
        arm = median(arms[off])
        both = [a > 0 and b > 0 for a, b in zip(whole.sizes, arm.sizes, strict=True)]
        refused = sum(a > 0 >= b for a, b in zip(whole.sizes, arm.sizes, strict=True))
        base, found = figures(whole, cases, both), figures(arm, cases, both)
        ratios = [f"{found[key] / base[key]:.2f}" if base[key] and found[key] else "" for key in base]
        lines.append([f"`{off.name.lower()}`", off.purpose, *ratios, str(refused) if refused else ""])
    head = list(figures(whole, cases, [True] * len(cases)))
    base = figures(whole, cases, [size > 0 for size in whole.sizes])
    units = [f"{base[key]:.1f}" if key.endswith(("KB", "MB")) else f"{1000 * base[key]:.1f} ms" for key in head]
    found = table(["without", "what the pass does", *head, "refused"], [["none", "all passes", *units, ""], *lines])
    return f"{found}\n\nWith all passes, {len(arms[None])} times: {figures_of_spread(arms[None], cases)}"


def figures_of_spread(arms: list[Arm], cases: list[Case]) -> str:
    """How far rounds with all passes are apart."""
    found = [figures(arm, cases, [size > 0 for size in arm.sizes]) for arm in arms]
    text = []
    for key in found[0]:
        if not key.endswith(("KB", "MB")):
            least, most = (1000 * pick(one[key] for one in found) for pick in (min, max))
            text.append(f"{key} {least:.1f} to {most:.1f} ms")
    return "; ".join(text)


if __name__ == "__main__":
    main()
