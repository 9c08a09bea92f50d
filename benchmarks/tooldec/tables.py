"""Tables of docs/research.md, from the records of a run.

Intervals are Wilson's, 95%, of one share. Arms see the same problems, so a difference is better told by the problems
that only one of two arms gets right: a column or a line below the table counts them, with the sign test's p.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import comb
from pathlib import Path
from typing import Any

from toolc.runtime.speculate.chart import draw

KINDS = ("name", "argument", "syntax", "value")
_Z = 1.96


def interval(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95% interval of a share."""
    if not total:
        return 0.0, 1.0
    share, z = count / total, _Z
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * (share * (1 - share) / total + z * z / (4 * total * total)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def share(count: int, total: int) -> str:
    """A share with its interval, in percent."""
    low, high = interval(count, total)
    return f"{100 * count / max(1, total):.0f}% ({100 * low:.0f}–{100 * high:.0f})"


def read(path: Path) -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
    """Part → arm → problem → its record; only problems that every arm of a part has."""
    found: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["part"], {}).setdefault(row["arm"], {})[row["id"]] = row
        if "fuzzy" in row:
            twin = {**row, "failed": row["fuzzy"], "right": not row["fuzzy"]}
            found[row["part"]].setdefault("fuzzy", {})[row["id"]] = twin
    for arms in found.values():
        common = set.intersection(*(set(rows) for rows in arms.values()))
        for arm, rows in arms.items():
            arms[arm] = {n: rows[n] for n in sorted(common)}
    return found


def sign_test(one: int, other: int) -> float:
    """The two-sided p of so many problems that only one arm gets right, and only the other: a fair coin's."""
    total = one + other
    return min(1.0, 2 * sum(comb(total, n) for n in range(min(one, other) + 1)) / 2**total)


def _pairs(what: str, arms: dict[str, dict[int, dict[str, Any]]], pairs: Sequence[tuple[str, str]], key: str) -> str:
    """How many problems only one of two arms gets right, and only the other; of pairs that are there."""
    out = []
    for one, other in pairs:
        if one in arms and other in arms:
            both = [(arms[one][n][key], arms[other][n][key]) for n in arms[one]]
            counts = both.count((True, False)), both.count((False, True))
            out.append(f"{one} {counts[0]}, {other} {counts[1]} (p = {sign_test(*counts):.2g})")
    return f"\n\n{what}: {'; '.join(out)}." if out else ""


def _mean(rows: Sequence[dict[str, Any]], key: str) -> str:
    value = sum(row[key] for row in rows) / max(1, len(rows))
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}"


def _beside(arms: dict[str, dict[int, dict[str, Any]]], arm: str, key: str = "right") -> str:
    """How many problems only this arm gets right, and only the first."""
    first = next(iter(arms))
    if arm == first:
        return ""
    pairs = [(arms[arm][n][key], arms[first][n][key]) for n in arms[arm]]
    return f"+{pairs.count((True, False))} −{pairs.count((False, True))}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def calls_table(arms: dict[str, dict[int, dict[str, Any]]]) -> str:
    """FuncQA: faults a call and a problem, answers."""
    out = []
    for arm, held in arms.items():
        rows = list(held.values())
        kinds = Counter(kind for row in rows for kind in row["failed"])
        calls = sum(row["calls"] for row in rows)
        wrong = sum(kinds[kind] for kind in KINDS[:3])
        lost = sum(row["lost"] and row["failed"][-1] != "value" for row in rows)
        out.append([
            arm, str(len(rows)), str(calls), ", ".join(str(kinds[kind]) for kind in KINDS), share(wrong, calls),
            share(lost, len(rows)), share(sum(row["right"] for row in rows), len(rows)), _beside(arms, arm),
            _mean(rows, "tokens"), _mean(rows, "seconds"),
        ])  # fmt: skip
    head = ["arm", "problems", "calls", "name, argument, syntax, value", "faulty calls", "problems lost to a fault",
            "right", "beside the first", "tokens", "s"]  # fmt: skip
    return _table(head, out)


def chosen_table(arms: dict[str, dict[int, dict[str, Any]]]) -> str:
    """KAMEL: relations."""
    out = []
    for arm, held in arms.items():
        rows = list(held.values())
        out.append([
            arm, str(len(rows)), share(sum(row["right"] for row in rows), len(rows)),
            share(sum("name" in row["failed"] for row in rows), len(rows)), _mean(rows, "prompt"),
            _mean(rows, "tokens"), _mean(rows, "seconds"),
        ])  # fmt: skip
    head = ["arm", "questions", "right", "no such name", "tokens of the prompt", "tokens", "s"]
    pairs = [("names", "few-shot"), ("side", "few-shot"), ("names", "side")]
    return _table(head, out) + _pairs("Right in one of two arms alone", arms, pairs, "right")


def path_table(arms: dict[str, dict[int, dict[str, Any]]]) -> str:
    """RestBench: paths."""
    out = []
    for arm, held in arms.items():
        rows = list(held.values())
        calls, failed = sum(row["calls"] for row in rows), sum(len(row["failed"]) for row in rows)
        out.append([
            arm, str(len(rows)), share(sum(row["right"] for row in rows), len(rows)),
            share(sum(row["first"] for row in rows), len(rows)), share(failed, calls), _mean(rows, "prompt"),
            _mean(rows, "tokens"), _mean(rows, "seconds"),
        ])  # fmt: skip
    head = [
        "arm",
        "queries",
        "path right",
        "first call right",
        "no such operation",
        "tokens of the prompt",
        "tokens",
        "s",
    ]
    pairs = [("bundle", "free"), ("documented bundle", "documented"), ("bundle", "documented")]
    return _table(head, out) + _pairs("First call right in one of two arms alone", arms, pairs, "first")


def action_table(arms: dict[str, dict[int, dict[str, Any]]]) -> str:
    """ToolEval: actions."""
    out = []
    for arm in ("free", "fuzzy", "bundle"):
        rows = list(arms.get(arm, {}).values())
        kinds = Counter(kind for row in rows for kind in row["failed"])
        calls, failed = sum(row["calls"] for row in rows), sum(bool(row["failed"]) for row in rows)
        out.append([
            arm, str(len(rows)), str(calls), str(sum(row["followed"] for row in rows)),
            ", ".join(str(kinds[kind]) for kind in KINDS[:3]), share(failed, calls), share(failed, len(rows)),
            _mean(rows, "prompt"), _mean(rows, "tokens"), _mean(rows, "seconds"),
        ])  # fmt: skip
    head = ["arm", "tasks", "actions", "as recorded", "name, argument, syntax", "faulty actions", "tasks with a fault",
            "tokens of the prompt", "tokens", "s"]  # fmt: skip
    return _table(head, out)


def unseen_table(rows: Sequence[dict[str, Any]]) -> str:
    """Unseen tools: who is called, of problems whose tools were all seen, and of others."""
    named = any("named" in row for row in rows)
    out = []
    for arm in dict.fromkeys(row["arm"] for row in rows):
        line = [arm]
        for seen in (True, False):
            some = [row for row in rows if row["arm"] == arm and row["id"] != "fit" and row["seen"] == seen]
            counted = [
                sum(bool(row["called"]) for row in some),
                sum(row["right"] if named else set(row["wanted"]) <= set(row["called"]) for row in some),
                sum([row["named"]] == row["wanted"] if named else row["right"] for row in some),
            ]
            line += [str(len(some)), *(share(count, len(some)) for count in counted)]
        out.append(line)
    columns = ("places", "calls", "right", "name if asked") if named else ("problems", "calls", "its tools", "right")
    return _table(["arm", *(f"{kind}: {one}" for kind in ("seen", "unseen") for one in columns)], out)


def plot(path: Path) -> str:
    """Right relations over their number (the paper's figure 5b), as SVG."""
    series: dict[str, list[tuple[float, float]]] = {}
    sizes = {int(part.partition("-")[2]): arms for part, arms in read(path).items() if part.startswith("kamel")}
    for size, arms in sorted(sizes.items()):
        for arm, rows in arms.items():
            right = sum(row["right"] for row in rows.values()) / max(1, len(rows))
            series.setdefault(arm, []).append((size, right))
    return draw("KAMEL, SmolLM2-135M", "relations", "right relation", series, percent=True)


def tables(path: Path) -> str:
    """All tables of a file of records, each under the name of its part."""
    every = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if any("seen" in row for row in every):
        parts = dict.fromkeys(row["part"] for row in every)
        return "\n\n".join(f"{part}\n\n{unseen_table([row for row in every if row['part'] == part])}" for part in parts)
    making = {"funcqa": calls_table, "kamel": chosen_table, "restbench": path_table, "tooleval": action_table}
    out = []
    for part, arms in read(path).items():
        out.append(f"{part}\n\n{making[part.partition('-')[0]](arms)}")
    return "\n\n".join(out)
