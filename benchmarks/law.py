"""The random-decode law on many schemas: texts that masks allow are judged valid, and no mask is empty.

    python -m benchmarks.law walk --cases CASES.jsonl --tokenizer TOKENIZER.json --out F
    python -m benchmarks.law judge --cases CASES.jsonl --out F

``walk`` compiles every schema, walks along its masks (walks.py) and appends one line per case to F; cases that F holds
already are left out, so it can be stopped and started. ``judge`` reads F and judges every text (tests/schema/judge.py).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any

from toolc.compiler.budget import Budget
from toolc.compiler.options import Options
from toolc.compiler.pipeline import compile_schema
from toolc.runtime import ToolcError

from .walks import KINDS, Walker

SECONDS = 25.0


def cases(path: str) -> Iterator[dict[str, Any]]:
    """The lines of a file; numbers of schemas are read as they are written."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line, parse_float=Decimal)


def walk(a: argparse.Namespace) -> None:
    from tokenizers import Tokenizer

    from .engine import end_of, vocab_of

    tokenizer = Tokenizer.from_file(a.tokenizer)
    vocab = vocab_of(a.tokenizer, end_of(tokenizer))
    walker = Walker(vocab)
    done = {case["id"] for case in cases(a.out)} if Path(a.out).exists() else set()
    with open(a.out, "a", encoding="utf-8") as out:
        for number, case in enumerate(cases(a.cases)):
            if case["id"] in done or number % a.every:
                continue
            line: dict[str, Any] = {"id": case["id"]}
            begin = time.perf_counter()
            try:
                options = Options(budget=Budget(seconds=a.seconds), soft_depth=a.soft_depth)
                bundle = compile_schema(case["schema"], vocab, options=options).bundle
            except ToolcError as error:
                line["refused"] = f"{type(error).__name__}: {error}"
            else:
                line["compiled"] = round(time.perf_counter() - begin, 2)
                line["walks"] = []
                stuck = 0
                for turn in range(a.walks):
                    if stuck > 3:
                        break
                    for kind in KINDS:
                        found = walker.walk(bundle, kind, f"{case['id']} {kind} {turn}")
                        stuck += found.end == "long"
                        line["walks"].append({**asdict(found), "text": found.text.decode(errors="backslashreplace")})
            line["seconds"] = round(time.perf_counter() - begin, 2)
            out.write(json.dumps(line) + "\n")
            out.flush()


def verdicts(schema: Any, texts: list[str]) -> list[str | None]:
    """Why each text is not valid; None where it is."""
    from tests.schema.judge import Judge

    judge = Judge(schema)
    return [judge.why_not(text) for text in texts]


def judge(a: argparse.Namespace) -> None:
    """Every case in another process, since some patterns take the judge's engine more than any time."""
    schema_of = {case["id"]: case["schema"] for case in cases(a.cases)}
    counts: Counter[str] = Counter()
    context = multiprocessing.get_context("fork")
    pool = context.Pool(1)
    for line in cases(a.out):
        counts["cases"] += 1
        if "refused" in line:
            counts["refused " + line["refused"].split(":")[0]] += 1
            continue
        counts["compiled"] += 1
        for found in line["walks"]:
            counts["walks"] += 1
            counts["tokens"] += found["tokens"]
            counts[found["end"]] += 1
            counts[f"deepest {found['kind']}"] = max(counts[f"deepest {found['kind']}"], found["deepest"])
            if found["end"] == "dead":
                print("DEAD END", line["id"], found["text"][-200:])
        texts = [found["text"] for found in line["walks"] if found["end"] == "ended"]
        waiting = [pool.apply_async(verdicts, (schema_of[line["id"]], [text])) for text in texts]
        for text, one in zip(texts, waiting):
            try:
                (why,) = one.get(a.seconds)
            except multiprocessing.TimeoutError:
                pool.terminate()
                pool = context.Pool(1)
                counts["undecided in time"] += len(texts) - texts.index(text)
                print("UNDECIDED", line["id"], flush=True)
                break
            counts["valid" if why is None else "invalid"] += 1
            if why is not None:
                print("INVALID", line["id"], why[:300], "\n   ", text[:600], flush=True)
    pool.terminate()
    print(json.dumps(counts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("walk", "judge"))
    parser.add_argument("--cases", required=True)
    parser.add_argument("--tokenizer", default="../shared/tokenizers/llama3.json", help="for walk")
    parser.add_argument("--out", required=True)
    parser.add_argument("--walks", type=int, default=4, help="walks of each kind")
    parser.add_argument("--soft-depth", type=int, default=64)
    parser.add_argument("--every", type=int, default=1, help="only every so many cases")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit on one compile, and on one verdict")
    a = parser.parse_args()
    (walk if a.what == "walk" else judge)(a)


if __name__ == "__main__":
    main()
