"""Tables of docs/research.md, from the lines of benchmarks/speculate_real.py.

    alpha     how often the guesser's call is the main model's, with Wilson's interval
    saved     the mean over the tasks of each one's saving, ± its 95% interval over repeats (t)
    equation  hits · min(T, G - g) / (G + F + T) with what was measured: G, F of the plain arm, g of the arm, hits
    by task   the same with each task's own T, G and F, and its hit; the mean over the tasks. Smaller where T is about
              G - g, as each task has the smaller one of the two

    passes    of the main model a task, without guesses → in the arm; those of several agents at once are shared

Leaves out   repeats that lack a task or the plain arm, and arms without a whole one.
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .markdown import table as markdown
from .speculate_setting import told
from .tooldec.tables import share as with_interval

Key = tuple[float, int, str, int]


@dataclass
class Held:
    """What a file of lines holds.

    Attributes:
        setting: of the run; empty before there is one.
        alone: model → task → its line.
        tasks: (share, repeat, arm, task) → its line.
        counts: (share, repeat, arm, first task) → what the main server did for the tasks at once, see EngineCounts.
    """

    setting: dict[str, Any] = field(default_factory=dict)
    alone: dict[str, dict[int, dict[str, Any]]] = field(default_factory=lambda: {"main": {}, "guesser": {}})
    tasks: dict[Key, dict[str, Any]] = field(default_factory=dict)

    counts: dict[Key, dict[str, Any]] = field(default_factory=dict)

    @property
    def alpha(self) -> tuple[int, int]:
        """How many calls of both models are equal, and of how many questions."""
        main, guesser = self.alone["main"], self.alone["guesser"]
        common = main.keys() & guesser.keys()
        return sum(main[n]["call"] is not None and main[n]["call"] == guesser[n]["call"] for n in common), len(common)


def read(path: Path) -> Held:
    """The lines of a file; nothing where there is none. Of lines for the same task the last one counts."""
    held = Held()
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(line)
        if "alone" in row:
            held.alone[row["alone"]][row["task"]] = row
        elif "counts" in row:
            held.counts[row["share"], row["repeat"], row["arm"], row["at"]] = row
        elif "arm" in row:
            held.tasks[row["share"], row["repeat"], row["arm"], row["task"]] = row
        else:
            held.setting = row
    return held


def _mean(lines: list[dict[str, Any]], name: str) -> float:
    return statistics.mean(line[name] or 0.0 for line in lines)


def _passes(held: Held, share: float, repeats: list[int], arms: tuple[str, str]) -> str:
    """Passes of the main server a task, plain → in an arm; empty where the file has none."""
    out = []
    for arm in arms:
        some = [
            row
            for (own, repeat, one, _), row in held.counts.items()
            if (own, one) == (share, arm) and repeat in repeats
        ]
        tasks = sum(row["tasks"] for row in some)
        out += [f"{sum(row['counts']['steps'] for row in some) / tasks:.1f}"] if tasks else []
    return " → ".join(out)


def _tool_s(plain: dict[str, Any]) -> float:
    """What the tool of a task took, where nothing was guessed."""
    return float(plain["whole_s"] - plain["call_s"] - plain["answer_s"])


def whole_repeats(held: Held, share: float, arm: str) -> tuple[list[int], list[int]]:
    """The tasks of one time of the tool, and the repeats in which an arm and the plain one have all of them."""
    numbers = sorted({n for own, _, _, n in held.tasks if own == share})
    repeats = sorted({repeat for own, repeat, _, _ in held.tasks if own == share})
    arms = ("plain", arm)
    return numbers, [
        repeat for repeat in repeats if all((share, repeat, one, n) in held.tasks for one in arms for n in numbers)
    ]


def arm_row(held: Held, share: float, arm: str) -> list[str]:
    """The row of an arm that has a whole repeat, at one time of the tool."""
    numbers, repeats = whole_repeats(held, share, arm)
    pairs = [[(held.tasks[share, repeat, "plain", n], held.tasks[share, repeat, arm, n]) for n in numbers]
             for repeat in repeats]  # fmt: skip
    plain, own = ([pair[side] for some in pairs for pair in some] for side in (0, 1))
    tool_s, call_s, answer_s = plain[0]["tool_s"], _mean(plain, "call_s"), _mean(plain, "answer_s")
    guess_s = statistics.mean(line["guess_s"] for line in own if line["guess_s"] is not None)
    hits = sum(line["hits"] for line in own)
    equation = hits / len(own) * max(0.0, min(tool_s, call_s - guess_s)) / (call_s + answer_s + tool_s)
    each = [
        line["hits"] * max(0.0, min(_tool_s(before), before["call_s"] - guess_s)) / before["whole_s"]
        for some in pairs
        for before, line in some
    ]
    saved = [statistics.mean(1 - b["whole_s"] / a["whole_s"] for a, b in some) for some in pairs]
    stayed = f", {sum(line['stayed'] for line in own)} stayed" if any(line["stayed"] for line in own) else ""
    return [
        f"{tool_s:.1f}", arm, str(len(repeats)), f"{call_s:.1f}", f"{guess_s:.1f}", f"{answer_s:.1f}",
        f"{_mean(plain, 'whole_s'):.1f}", f"{_mean(own, 'call_s'):.1f}, {_mean(own, 'answer_s'):.1f}",
        f"{hits} of {len(own)}{stayed}", told(saved), f"{equation:.1%}", f"{statistics.mean(each):.1%}",
        _passes(held, share, repeats, ("plain", arm)),
    ]  # fmt: skip


def table(held: Held) -> str:
    """Alpha and the times alone, then the table."""
    equal, asked = held.alpha
    seconds = {model: [one["seconds"] for one in lines.values()] for model, lines in held.alone.items()}
    first = f"M = {held.setting.get('agents')}; alpha = {equal} of {asked}, {with_interval(equal, asked)}"
    first += "".join(f"; {model} alone {statistics.mean(some):.1f} s" for model, some in seconds.items() if some)
    arms = dict.fromkeys((share, arm) for share, _, arm, _ in held.tasks if arm != "plain")
    arms = {one: None for one in arms if whole_repeats(held, *one)[1]}
    head = ["T, s", "arm", "repeats", "G, s", "g, s", "F, s", "plain, a task, s", "its G, F, s", "hits", "saved",
            "equation 1", "by task", "passes"]  # fmt: skip
    return f"{first}\n\n{markdown(head, [arm_row(held, share, arm) for share, arm in arms])}"
