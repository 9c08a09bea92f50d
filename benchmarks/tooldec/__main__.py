"""Run ToolDec's experiments with a small model, and print what came out.

    python -m benchmarks.tooldec run --model FOLDER --data FOLDER --out records.jsonl [--parts funcqa-oh,…] [--count N]
    python -m benchmarks.tooldec unseen --model FOLDER --data FOLDER --out unseen.jsonl [--parts lines,oh,mh,kamel]
    python -m benchmarks.tooldec tables records.jsonl [--plot kamel.svg]

The data is that of docs/research.md. One JSON line a problem and arm; what the file holds already is not run again. An
arm takes the first N problems. One core works.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from . import funcqa, kamel, restbench, tables, tooleval, unseen
from .decode import Model

PARTS = {
    "funcqa-oh": (funcqa, "oh", 60),
    "funcqa-mh": (funcqa, "mh", 68),
    **{f"kamel-{size}": (kamel, size, 500) for size in kamel.SIZES},
    "restbench": (restbench, "tmdb", 100),
    "tooleval-g2": (tooleval, "G2_category", 100),
    "tooleval-g3": (tooleval, "G3_instruction", 100),
}
"""Part → its module, which data, how many problems there are."""


def run(model_folder: Path, data: Path, out: Path, parts: list[str], count: int, arms: list[str] | None = None) -> None:
    """Run what the file does not hold yet."""
    torch.set_num_threads(1)
    done = set()
    if out.exists():
        for line in out.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            done.add((row["part"], row["arm"], row["id"]))
    model = Model(model_folder)
    with out.open("a", encoding="utf-8") as file:
        for part in parts:
            module, which, every = PARTS[part]
            for arm in module.ARMS:
                ids = [n for n in range(min(count, every)) if (part, arm, n) not in done]
                if not ids or (arms and arm not in arms):
                    continue
                for row in module.measure(model, data, which, arm, ids):
                    file.write(json.dumps({"part": part, "arm": arm, **row}, ensure_ascii=False) + "\n")
                    file.flush()


def parser() -> argparse.ArgumentParser:
    """The words of the command line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = words.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run")
    one.add_argument("--model", type=Path, required=True, help="folder of a llama of transformers")
    one.add_argument("--data", type=Path, required=True, help="folder with funcqa, kamel, restbench, tooleval")
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--parts", default=",".join(PARTS))
    one.add_argument("--arms", help="only these")
    one.add_argument("--count", type=int, default=500)
    two = commands.add_parser("unseen")
    two.add_argument("--model", type=Path, required=True)
    two.add_argument("--data", type=Path, required=True)
    two.add_argument("--out", type=Path, required=True)
    two.add_argument("--parts", default=",".join(unseen.PARTS))
    two.add_argument("--count", type=int, default=unseen.QUESTIONS)
    two.add_argument("--arms", default=",".join(unseen.ARMS), help="of FuncQA's problems")
    other = commands.add_parser("tables")
    other.add_argument("records", type=Path)
    other.add_argument("--plot", type=Path, help="KAMEL's relations, as SVG")
    return words


def main(arguments: list[str] | None = None) -> None:
    a = parser().parse_args(arguments)
    if a.command == "tables":
        print(tables.tables(a.records))
        if a.plot is not None:
            a.plot.write_text(tables.plot(a.records), encoding="utf-8")
    elif a.command == "unseen":
        torch.set_num_threads(1)
        unseen.measure(Model(a.model), a.data, a.out, a.parts.split(","), a.count, a.arms.split(","))
    else:
        run(a.model, a.data, a.out, a.parts.split(","), a.count, a.arms.split(",") if a.arms else None)


if __name__ == "__main__":
    main()
