"""What a compile costs as tools and schemas grow: seconds, peak memory, bytes of the bundle.

    python -m benchmarks.growth [--tools 1 4 16 64 256 1000] [--cases FILE --count 150] [--tokenizer FILE]

Every point is a process of its own, forked from one that has loaded the kernels and the vocabulary, so no compile
leaves anything to the next. The tools are made here, ten mixed properties each, for the protocol of Hermes and Qwen; a
small point has the first tools of a larger one. The schemas are those of a file, one ``{"id", "schema"}`` a line: so
many, evenly spread over their sizes, the largest among them. Prints a JSON line for each point, then tables in
Markdown, and writes curves to the folder.

Leaves out   the first mask (host.py), and peers (the shared tools.py and maskbench.py).
Units        seconds: processor time of compiling and writing, and beside it the time on the clock; memory: what was
             resident at most, what the process began with included; size of a schema: bytes of its shortest JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolc.compiler.budget import Budget
from toolc.compiler.compiled import Compiled
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.options import Options
from toolc.compiler.pipeline import compile_schema, compile_tools
from toolc.runtime import ToolcError, Vocab
from toolc.runtime.speculate.chart import draw

from .engine import end_of, vocab_of
from .markdown import table

ROOT = Path(__file__).resolve().parent.parent
PROPERTIES = 10
MB, KB = 1e6, 1e3
UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss

Point = dict[str, Any]


# ---------------------------------------------------------------- what is compiled


def tool(number: int, seed: int = 0) -> dict[str, Any]:
    """One function tool, the same whatever others there are."""
    dice = random.Random(f"{seed} {number}")

    def word() -> str:
        return "".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(3, 9)))

    kinds: list[Callable[[], dict[str, Any]]] = [
        lambda: {"type": "string"},
        lambda: {"type": "string", "minLength": 1, "maxLength": dice.randint(8, 80)},
        lambda: {"type": "string", "pattern": "^[A-Z]{2,4}-[0-9]+$"},
        lambda: {"type": "integer", "minimum": 0, "maximum": dice.randint(10, 10_000)},
        lambda: {"type": ["number", "null"]},
        lambda: {"type": "boolean"},
        lambda: {"enum": [word() for _ in range(dice.randint(2, 12))]},
        lambda: {"type": "array", "items": {"type": "string"}, "maxItems": dice.randint(2, 10)},
        lambda: {"type": "object", "properties": {word(): {"type": "string"}, word(): {"type": "integer"}}},
    ]
    properties = {f"{word()}_{n}": dice.choice(kinds)() for n in range(PROPERTIES)}
    parameters = {
        "type": "object",
        "properties": properties,
        "required": dice.sample(sorted(properties), PROPERTIES // 2),
        "additionalProperties": False,
    }
    return {"type": "function", "function": {"name": f"{word()}_{number}", "parameters": parameters}}


def tools_options(seconds: float) -> Options:
    return Options(protocol="hermes", named=False, budget=time_alone(seconds), jobs=1)


def time_alone(seconds: float) -> Budget:
    """No other limit: what is measured is what they are there for."""
    return Budget(states=None, rows=None, seconds=seconds, bytes=None)


def sample(path: Path, count: int) -> Iterator[tuple[str, int, Any]]:
    """Schemas with their names and sizes, evenly spread over the order of sizes, smallest first."""
    with open(path, encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    sized = [(len(json.dumps(case["schema"], separators=(",", ":")).encode()), case) for case in cases]
    sized.sort(key=lambda one: (one[0], one[1]["id"]))
    count = min(count, len(sized))
    for n in range(count):
        size, case = sized[-1 - (count - 1 - n) * len(sized) // count]
        yield case["id"], size, case["schema"]


# ---------------------------------------------------------------- a point


def measure(compile_: Callable[[], Compiled], seconds: float) -> Point:
    """Compile and write in a process of its own; `seconds` is the limit that the compile itself was given."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_in_child, args=(compile_, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        if not ours.poll(2 * seconds + 60):
            return {"failed": "it does not look at the clock"}
        return ours.recv()
    except EOFError:
        process.join()
        return {"failed": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()
        ours.close()


def _in_child(compile_: Callable[[], Compiled], answer: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "point.toolc"
        begin = time.perf_counter(), time.process_time()
        point: Point = {}
        try:
            compile_().write(path)
        except ToolcError as error:
            point["refused"] = str(error)[:200]
        point["clock_s"] = round(time.perf_counter() - begin[0], 4)
        point["seconds"] = round(time.process_time() - begin[1], 4)
        point["peak"] = UNIT * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if "refused" not in point:
            point["bundle"] = path.stat().st_size
    answer.send(point)


# ---------------------------------------------------------------- tables and curves

COLUMNS = (("seconds", "seconds", 1.0), ("peak", "peak memory, MB", MB), ("bundle", "bundle, KB", KB))


def curves(out: Path, name: str, title: str, x_label: str, rows: dict[str, list[tuple[float, Point]]]) -> None:
    """One file for each quantity; rows: name of a curve → points in their order."""
    out.mkdir(parents=True, exist_ok=True)
    for key, label, unit in COLUMNS:
        series = {row: [(x, point[key] / unit) for x, point in points] for row, points in rows.items()}
        chart = draw(title, x_label, label, series, powers=True)
        (out / f"{name}_{key}.svg").write_text(chart, encoding="utf-8")


def grow_tools(vocab: Vocab, sizes: Sequence[int], seconds: float, out: Path) -> None:
    """Points, table and curves over the number of tools."""
    points: list[tuple[float, Point]] = []
    lines = []
    for size in sizes:
        tools = [tool(number) for number in range(size)]
        point = measure(partial(compile_tools, tools, vocab, options=tools_options(seconds)), seconds)
        print(json.dumps({"tools": size, **point}), flush=True)
        if "bundle" not in point:
            continue
        points.append((size, point))
        each = f"{1e3 * point['seconds'] / size:.1f}", f"{point['bundle'] / KB / size:.1f}"
        lines.append([str(size), *(f"{point[key] / unit:,.2f}" for key, _, unit in COLUMNS), *each])
    print("\n" + table(["tools", *(label for _, label, _ in COLUMNS), "ms a tool", "KB a tool"], lines) + "\n")
    if points:
        curves(out, "tools", f"Compile N tools, {vocab.size:,} ids", "tools", {"toolc": points})


def grow_schemas(vocab: Vocab, path: Path, count: int, seconds: float, out: Path) -> None:
    """Points, table and curves over the size of a schema: medians and maxima of those between two powers of two."""
    classes: dict[int, list[Point]] = {}
    for name, size, schema in sample(path, count):
        options = Options(budget=time_alone(seconds), jobs=1)
        point = measure(partial(compile_schema, schema, vocab, options=options), seconds)
        print(json.dumps({"id": name, "size": size, **point}), flush=True)
        classes.setdefault(int(math.log2(size)), []).append(point | {"size": size})
    rows: dict[str, list[tuple[float, Point]]] = {"median": [], "largest": []}
    lines = []
    for power, points in sorted(classes.items()):
        done = [point for point in points if "bundle" in point]
        line = [f"{2**power:,}", str(len(points)), str(len(done))]
        if done:
            x = statistics.median(point["size"] for point in done)
            for row, pick in (("median", statistics.median), ("largest", max)):
                rows[row].append((x, {key: pick(point[key] for point in done) for key, _, _ in COLUMNS}))
            for key, _, unit in COLUMNS:
                line += [f"{rows[row][-1][1][key] / unit:,.2f}" for row in ("median", "largest")]
        lines.append(line + [""] * (9 - len(line)))
    head = [f"{label}, {row}" for _, label, _ in COLUMNS for row in ("median", "largest")]
    print("\n" + table(["bytes, from", "schemas", "compiled", *head], lines) + "\n")
    if rows["median"]:
        curves(out, "schemas", f"Compile a schema, {vocab.size:,} ids", "bytes of the schema", rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, nargs="*", default=[1, 4, 16, 64, 256, 1000])
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--count", type=int, default=150, help="schemas of the file")
    parser.add_argument("--tokenizer", help="a tokenizer.json; the built-in vocabulary by default")
    parser.add_argument("--seconds", type=float, default=600, help="limit on one compile, on the clock")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "growth")
    a = parser.parse_args(arguments)
    if a.tokenizer is None:
        vocab = load_vocab("builtin")
    else:
        from tokenizers import Tokenizer

        vocab = vocab_of(a.tokenizer, end_of(Tokenizer.from_file(a.tokenizer)))
    compile_tools([tool(number, seed=1) for number in range(8)], vocab, options=tools_options(a.seconds))
    least = measure(partial(compile_schema, {"const": 0}, vocab), a.seconds)
    print(json.dumps({"vocab": vocab.size, "least": least}), flush=True)
    if a.tools:
        grow_tools(vocab, a.tools, a.seconds, a.out)
    if a.cases is not None:
        grow_schemas(vocab, a.cases, a.count, a.seconds, a.out)


if __name__ == "__main__":
    main()
