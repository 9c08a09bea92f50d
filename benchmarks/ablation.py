"""What each pass of the compiler gains: compiles with all passes and with all but one, in one run.

    python -m benchmarks.ablation [--shared ../shared] [--every 12] [--rounds 3] [--tools …] [--only NAME,…]

The cases are every so many of the development cases; the tools are functions of BFCL, each with a name of its own. A
child is forked for each arm: kernels are at hand in it, and what is kept of patterns, schemas and parts is not. The
arms of a group take turns, case by case, one of them with all passes, so all meet the same load of the machine. A
figure is the ratio without the pass to with it: 1.20 says that a compile takes a fifth more without. Prints a Markdown
table.

    p50, avg   processor time of a case: the median of the cases' ratios, and the ratio of the sums
    tools      of a compile of so many tools in a protocol for a tokenizer, behind those of fewer tools in one process:
               129 are the 128 and one more. For Llama 3, the marks around Hermes' calls are text
    KB         of the bundles' files, summed;  MB: most memory of the arm beyond that of the parent

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
TURNS = 6  # arms that take turns with the one that makes all passes
_ANSWER = 512  # bytes
TOOLS = ("128:hermes:qwen3", "129:hermes:qwen3", "400:hermes:qwen3", "24:hermes:llama3")
FILES = ("simple_python", "multiple", "live_simple")


class Case(NamedTuple):
    """What is compiled: a schema (no protocol), or tools in a protocol; and the name of a tokenizer."""

    name: str
    spec: Any
    protocol: str = ""
    tokenizer: str = "llama3"


class Done(NamedTuple):
    """One compile: processor time, bytes of the file (0: refused), and KiB of memory that the arm has had at most."""

    seconds: float
    size: int
    memory: int


def schemas(shared: Path, every: int, named: Path | None = None) -> list[Case]:
    """Every so many of the development cases, or those that a file names."""
    with open(shared / "data" / "maskbench_dev.jsonl", encoding="utf-8") as file:
        rows = list(map(json.loads, file))
    names = None if named is None else named.read_text().split()
    some = rows[::every] if names is None else [row for row in rows if row["id"] in names]
    return [Case(row["id"], row["schema"]) for row in some]


def tool_lists(shared: Path, lists: list[str]) -> list[Case]:
    """Lists of the first functions of BFCL, each of another name.

    Args:
        lists: "24:hermes:qwen3" are 24 functions in a protocol for a tokenizer.
    """
    found: dict[str, dict[str, Any]] = {}
    for file in FILES:
        for line in (shared / "data" / "bfcl" / f"{file}.jsonl").read_text().splitlines():
            for function in json.loads(line)["function"]:
                found.setdefault(function["name"], function)
    functions = list(found.values())
    cases = []
    for name in lists:
        size, protocol, tokenizer = name.split(":")
        cases.append(Case(f"{size} {protocol} {tokenizer}", functions[: int(size)], protocol, tokenizer))
    return cases


def compiled(case: Case, vocabs: dict[str, Vocab], path: Path) -> Done:
    """Compile a case and write its bundle."""
    budget = Budget(seconds=4 * LIMIT)  # of wall time
    size, over, start = 0, 0.0, time.process_time()
    try:
        vocab = vocabs[case.tokenizer]
        if case.protocol:
            options = Options(budget=budget, jobs=1, protocol=case.protocol, named=False)
            made = compile_tools(case.spec, vocab, options=options)
        else:
            made = compile_schema(case.spec, vocab, options=Options(budget=budget, jobs=1))
        made.write(path)
        size = path.stat().st_size
    except BudgetError:
        over = LIMIT
    except ToolcError:
        pass  # refused, with the pass or without
    seconds = min(LIMIT, over + time.process_time() - start)
    return Done(seconds, size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


class Arm:
    """A child that compiles cases when it is told to, without a pass, with an empty cache of parts and tries of its
    own."""

    def __init__(self, warm: list[Case], cases: list[Case], vocabs: dict[str, Vocab], off: Pass | None) -> None:
        asks, self._ask = os.pipe()
        self._told, tells = os.pipe()
        self._child = os.fork()
        if self._child:
            os.close(asks)
            os.close(tells)
            return
        with tempfile.TemporaryDirectory() as cache, without(*([] if off is None else [off])):
            os.environ["TOOLC_CACHE"] = cache
            fresh = {name: copy.copy(vocab) for name, vocab in vocabs.items()}
            path = Path(cache) / "bundle.toolc"
            for case in warm:
                compiled(case, fresh, path)
            os.write(tells, pickle.dumps(compiled(warm[0], fresh, path)).ljust(_ANSWER))
            while (number := int.from_bytes(os.read(asks, 4), "big")) < len(cases):
                os.write(tells, pickle.dumps(compiled(cases[number], fresh, path)).ljust(_ANSWER))
        os._exit(0)

    def ready(self) -> Done:
        """What it has compiled last, when that is done."""
        found: Done = pickle.loads(os.read(self._told, _ANSWER))
        return found

    def compile(self, number: int) -> Done:
        """Compile a case."""
        os.write(self._ask, number.to_bytes(4, "big"))
        return self.ready()

    def end(self) -> None:
        """End the child."""
        os.write(self._ask, (1 << 31).to_bytes(4, "big"))
        os.waitpid(self._child, 0)
        os.close(self._ask)
        os.close(self._told)


def group(
    warm: list[Case], cases: list[Case], vocabs: dict[str, Vocab], passes: list[Pass | None]
) -> dict[Pass | None, list[Done]]:
    """Let arms take turns at all cases."""
    arms: list[Arm] = []
    for off in passes:
        arms.append(Arm(warm, cases, vocabs, off))
        arms[-1].ready()
    found: dict[Pass | None, list[Done]] = {off: [] for off in passes}
    for number in range(len(cases)):
        for turn in range(len(arms)):
            n = (number + turn) % len(arms)
            found[passes[n]].append(arms[n].compile(number))
    for arm in arms:
        arm.end()
    return found


def figures(cases: list[Case], rounds: list[tuple[list[Done], list[Done]]]) -> dict[str, float]:
    """The columns of a pass.

    Args:
        rounds: of each round what was done with all passes, and without this one.
    """
    both = [n for n in range(len(cases)) if rounds[0][0][n].size and rounds[0][1][n].size]
    alone = [n for n in both if not cases[n].protocol]
    ratio = {n: statistics.median(off[n].seconds / on[n].seconds for on, off in rounds) for n in both}
    sums = [[sum(arm[n].seconds for n in alone) for arm in pair] for pair in rounds]
    out: dict[str, float] = {}
    if alone:
        out = {"p50": statistics.median(ratio[n] for n in alone), "avg": statistics.median(b / a for a, b in sums)}
    out |= {cases[n].name: ratio[n] for n in both if cases[n].protocol}
    on, off = rounds[0]
    if alone:
        out["KB"] = sum(off[n].size for n in alone) / sum(on[n].size for n in alone)
    out |= {f"{cases[n].name}, KB": off[n].size / on[n].size for n in both if cases[n].protocol}
    out["MB"] = statistics.median(b[-1].memory / a[-1].memory for a, b in rounds)
    return out


def with_all(cases: list[Case], arms: list[list[Done]]) -> list[str]:
    """The first line of the table: what compiles take with all passes."""
    some = [n for n in range(len(cases)) if arms[0][n].size]
    seconds = {n: statistics.median(arm[n].seconds for arm in arms) for n in some}
    alone = [n for n in some if not cases[n].protocol]
    times = [f(seconds[n] for n in alone) if alone else 0.0 for f in (statistics.median, statistics.fmean)]
    times += [seconds[n] for n in some if cases[n].protocol]
    sizes = [sum(arms[0][n].size for n in alone), *(arms[0][n].size for n in some if cases[n].protocol)]
    memory = statistics.median(arm[-1].memory for arm in arms)
    return [*(f"{1000 * x:.0f} ms" for x in times), *(f"{x / 1000:,.0f}" for x in sizes), f"{memory / 1024:.0f}"]


def shown(cases: list[Case], rounds: dict[Pass, list[tuple[list[Done], list[Done]]]], whole: list[list[Done]]) -> str:
    """The table of what was measured so far."""
    names = [case.name for case in cases if case.protocol]
    head = ["p50", "avg", *names, "KB", *(f"{name}, KB" for name in names), "MB"]
    lines = [["none", "", *with_all(cases, whole), ""]]
    for off, pairs in rounds.items():
        refused = sum(a.size > 0 >= b.size for a, b in zip(*pairs[0], strict=True))
        found = figures(cases, pairs)
        ratios = [f"{found[key]:.2f}" if key in found else "" for key in head]
        lines.append([f"`{off.name.lower()}`", off.purpose, *ratios, str(refused) if refused else ""])
    return table(["without", "what the pass does", *head, "refused"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--every", type=int, default=12, help="0: no schemas, tools alone")
    parser.add_argument("--cases", type=Path, help="a file that names cases, in the place of --every")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", default=",".join(TOOLS), help="lists of tools: number:protocol:tokenizer,…")
    parser.add_argument("--only", default="", help="names of passes")
    options = parser.parse_args()
    folder = options.shared / "tokenizers"
    tools = tool_lists(options.shared, [name for name in options.tools.split(",") if name])
    vocabs = {
        name: load_vocab(str(folder / f"{name}.json")) for name in {"llama3", *(case.tokenizer for case in tools)}
    }
    cases = (schemas(options.shared, options.every, options.cases) if options.every else []) + tools
    kinds = {(case.protocol, case.tokenizer) for case in tools}
    warm = schemas(options.shared, 400)[:WARM]
    warm += tool_lists(options.shared, [f"3:{protocol}:{tokenizer}" for protocol, tokenizer in sorted(kinds)])
    passes = [one for one in Pass if not options.only or one.name.lower() in options.only.lower().split(",")]
    with tempfile.TemporaryDirectory() as kept:
        for case in warm:
            compiled(case, vocabs, Path(kept) / "bundle.toolc")
    rounds: dict[Pass, list[tuple[list[Done], list[Done]]]] = {}
    whole: list[list[Done]] = []
    for round_ in range(options.rounds):
        for begin in range(0, len(passes), TURNS):
            some = passes[begin : begin + TURNS]
            found = group(warm, cases, vocabs, [None, *some])
            whole.append(found[None])
            for off in some:
                rounds.setdefault(off, []).append((found[None], found[off]))
            print(round_, *(one.name.lower() for one in some), file=sys.stderr, flush=True)
        if round_ < options.rounds - 1:
            print(shown(cases, rounds, whole), file=sys.stderr, flush=True)
    print(shown(cases, rounds, whole))


if __name__ == "__main__":
    main()
