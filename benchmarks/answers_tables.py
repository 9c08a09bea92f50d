"""Make the tables of docs/benchmarks.md from what `benchmarks.answers` wrote.

    python -m benchmarks.answers_tables FILE [--arms spaced,…] [--count 400] [--beside spaced] [--lost 5]

Three tables a file: what each arm wrote, over the questions that all arms answered; right calls of each arm against
those of one arm, pair by pair (exact McNemar test); where the mask of that arm took probability away. With `--lost`,
the tokens most often wanted and forbidden, by region. Shares have the 95% interval of
Wilson, means of differences a normal one.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from .markdown import table
from .regions import REGIONS

BINS = (0.01, 0.1, 0.5, 0.9)
"""Bounds of the histogram of the probability that a mask takes away in a step."""
Lines = dict[str, dict[str, dict[str, Any]]]


def read(path: Path) -> tuple[Lines, Lines]:
    """arm → question → line, of the answers side by side and of those alone."""
    together: Lines = {}
    alone: Lines = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        (alone if line["alone"] else together).setdefault(line["arm"], {})[line["id"]] = line
    return together, alone


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95% interval of a share, in percent."""
    z, share = 1.96, right / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return 100 * (middle - half), 100 * (middle + half)


def mcnemar(one: int, other: int) -> float:
    """Two-sided p of an exact McNemar test: how often only one was right, and only the other."""
    count, least = one + other, min(one, other)
    below = sum(math.comb(count, k) for k in range(least + 1)) / 2**count
    return min(1.0, 2 * below)


def shared(lines: Lines, arms: list[str], count: int) -> list[str]:
    """The first questions that every arm answered; one that an arm refused is not among them."""
    first = lines[arms[0]]
    found = [q for q in first if all("tokens" in lines[arm].get(q, {}) for arm in arms)]
    return found[:count]


def _share(values: list[bool]) -> str:
    low, high = wilson(sum(values), len(values))
    return f"{100 * sum(values) / len(values):.1f}% ({low:.0f} to {high:.0f})"


def of_arms(lines: Lines, alone: Lines, arms: list[str], questions: list[str]) -> str:
    """What each arm wrote."""
    rows = []
    for arm in arms:
        some = [lines[arm][q] for q in questions]
        tokens = sum(one["tokens"] for one in some)
        by_itself = [one for one in alone.get(arm, {}).values() if "seconds" in one]
        rows.append(
            [
                arm,
                f"{tokens / len(some):.1f}",
                f"{sum(one['seconds'] for one in by_itself) / len(by_itself):.2f}" if by_itself else "",
                _share([one["function"] for one in some]),
                _share([one["right"] for one in some]),
                f"{100 * sum(one['parses'] for one in some) / len(some):.1f}%",
                f"{100 * sum(one['forced'] for one in some) / tokens:.0f}%" if any(o["forced"] for o in some) else "",
            ]
        )
    head = ["arm", "tokens a call", "seconds", "right function", "right call", "whole", "forced"]
    return f"{len(questions)} questions\n\n" + table(head, rows)


def of_pairs(lines: Lines, arms: list[str], questions: list[str], beside: str) -> str:
    """Every arm against one."""
    rows = []
    for arm in arms:
        pairs = Counter((lines[arm][q]["right"], lines[beside][q]["right"]) for q in questions)
        only, other = pairs[True, False], pairs[False, True]
        same = sum(lines[arm][q]["text"] == lines[beside][q]["text"] for q in questions)
        more = [lines[arm][q]["tokens"] - lines[beside][q]["tokens"] for q in questions]
        half = 1.96 * statistics.stdev(more) / math.sqrt(len(more))
        if arm != beside:
            tokens = f"{statistics.mean(more):+.1f} ± {half:.1f}"
            rows.append([arm, str(only), str(other), f"{mcnemar(only, other):.3f}", str(same), tokens])
    return table(["arm", "only it is right", f"only {beside} is", "p", "same text", "tokens more"], rows)


def taken_of(line: dict[str, Any]) -> list[tuple[str, float, str]]:
    """Region, probability taken, token wanted; blanks apart."""
    out = []
    for region, taken, blanks, wanted in line["taken"]:
        in_blanks = blanks > taken / 2 and region in ("start", "structure")
        out.append(("blanks" if in_blanks else region, taken, wanted))
    return out


def of_regions(lines: Lines, arm: str, questions: list[str], lost: int) -> str:
    """Where the mask of an arm took probability away."""
    steps = [step for q in questions for step in taken_of(lines[arm][q])]
    everything = sum(taken for _, taken, _ in steps)
    rows, wanted = [], []
    for region in REGIONS:
        here = [(taken, token) for one, taken, token in steps if one == region]
        if not here:
            continue
        counts = Counter(sum(taken >= bound for bound in BINS) for taken, _ in here)
        rows.append(
            [
                region,
                str(len(here)),
                f"{sum(taken for taken, _ in here) / len(here):.3f}",
                f"{100 * sum(taken for taken, _ in here) / everything:.0f}%",
                f"{100 * sum(bool(token) for _, token in here) / len(here):.0f}%",
                *[f"{100 * counts[n] / len(here):.0f}%" for n in range(len(BINS) + 1)],
            ]
        )
        most = Counter(token for _, token in here if token).most_common(lost)
        wanted.append(f"{region}: " + ", ".join(f"{token!r} {count}" for token, count in most))
    bounds = ["below 0.01", *[f"from {bound}" for bound in BINS]]
    head = ["region", "tokens", "taken a token", "of all that is taken", "likeliest forbidden", *bounds]
    return table(head, rows) + ("\n\n" + "\n".join(wanted) if lost else "")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--arms", help="those of the file if absent")
    parser.add_argument("--count", type=int, default=10**9)
    parser.add_argument("--beside", default="spaced")
    parser.add_argument("--lost", type=int, default=0)
    a = parser.parse_args(arguments)
    lines, alone = read(a.file)
    arms = a.arms.split(",") if a.arms else list(lines)
    questions = shared(lines, arms, a.count)
    print(of_arms(lines, alone, arms, questions))
    print("\n" + of_pairs(lines, arms, questions, a.beside))
    print("\n" + of_regions(lines, a.beside, questions, a.lost))


if __name__ == "__main__":
    main()
