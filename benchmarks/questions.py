"""Read questions that one call answers, as BFCL and FuncQA have them, and judge calls by their answers.

Leaves out   what a model writes: answers.py.
Invariants   the order is the same everywhere: the files' own, shuffled with a fixed seed, one question of FuncQA after
             three of BFCL as long as there are any.
Departures   BFCL's checker compares types by their names in Python; here a number is right whether 2 or 2.0 is
             written. Everything else is as there: a text is compared without case, blanks and ``,./-_*^'"``; an
             argument whose answers have "" may be left out; no others may be given.
Source       Berkeley Function-Calling Leaderboard v4, ast_checker.py; FuncQA (Hao et al. 2023, arXiv 2305.11554),
             the one-hop questions.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BFCL = ("simple_python", "multiple")
MOST = 1100
"""Characters of a question and its tools, as JSON; those with more are left out, since the CPU has to read them."""
_CALL = re.compile(r"<(\w+)>\(([-\d.]+)(?:, ?([-\d.]+))?\)=\S+")
_EITHER_ORDER = ("add", "multiply", "lcm", "gcd")
_FUNCTIONS = {
    "add": "x plus y",
    "subtract": "x minus y",
    "multiply": "x times y",
    "divide": "x divided by y",
    "power": "x to the power of y",
    "sqrt": "square root of x",
    "log": "logarithm of x to the base 10",
    "ln": "natural logarithm of x",
    "lcm": "least common multiple of x and y",
    "gcd": "greatest common divisor of x and y",
    "remainder": "remainder of x divided by y",
    "choose": "ways to choose y of x things",
    "permutate": "ways to arrange y of x things in order",
}


@dataclass(frozen=True)
class Question:
    """A question, the functions offered, and the call that answers it.

    Attributes:
        name: of the right function;  allowed: argument → its right values; "" among them: it may be left out.
        swaps: whether the values of the arguments may be exchanged.
    """

    id: str
    text: str
    functions: list[dict[str, Any]]
    name: str
    allowed: dict[str, list[Any]]
    swaps: bool = False

    def judge(self, call: Any) -> tuple[bool, bool]:
        """Whether the function is right, and whether the whole call is."""
        if not isinstance(call, dict) or call.get("name") != self.name:
            return False, False
        given = call.get("arguments")
        if not isinstance(given, dict):
            return True, False
        right = _members(given, self.allowed)
        if self.swaps and not right:
            right = _members(dict(zip(given, reversed(given.values()), strict=True)), self.allowed)
        return True, right


def _members(given: dict[str, Any], allowed: dict[str, list[Any]]) -> bool:
    known = all(name in allowed and any(_same(value, one) for one in allowed[name]) for name, value in given.items())
    return known and all(name in given or "" in values for name, values in allowed.items())


def _same(value: Any, allowed: Any) -> bool:
    if isinstance(value, str) and isinstance(allowed, str):
        return _plain(value) == _plain(allowed)
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    if isinstance(value, list) and isinstance(allowed, list):
        return len(value) == len(allowed) and all(_same(a, b) for a, b in zip(value, allowed, strict=True))
    if isinstance(value, dict) and isinstance(allowed, dict):
        return _members(value, {name: one if isinstance(one, list) else [one] for name, one in allowed.items()})
    return bool(value == allowed)


def _plain(text: str) -> str:
    return re.sub(r"[ ,./\-_*^]", "", text).lower().replace("'", '"')


def _bfcl(folder: Path) -> Iterator[Question]:
    for file in BFCL:
        lines = (folder / f"{file}_answers.jsonl").read_text(encoding="utf-8").splitlines()
        answers = {one["id"]: one["ground_truth"] for one in map(json.loads, lines)}
        for line in (folder / f"{file}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            ((name, allowed),) = answers[row["id"]][0].items()
            text = row["question"][0][-1]["content"]
            yield Question(row["id"], text, row["function"], name, allowed)


def _function(name: str, count: int) -> dict[str, Any]:
    properties = {one: {"type": "number"} for one in "xy"[:count]}
    parameters = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"name": name, "description": _FUNCTIONS[name], "parameters": parameters}


def _funcqa(folder: Path) -> Iterator[Question]:
    counts = {name: 1 + (" y" in about) for name, about in _FUNCTIONS.items()}
    for number, row in enumerate(json.loads((folder / "funcqa_oh.json").read_text(encoding="utf-8"))):
        call = _CALL.fullmatch(row["func"])
        if call is None or counts[call[1]] != 1 + (call[3] is not None):
            continue
        rng = random.Random(number)
        names = [call[1], *rng.sample([one for one in _FUNCTIONS if one != call[1]], 2)]
        rng.shuffle(names)
        allowed = {one: [float(value)] for one, value in zip("xy", call.groups()[1:], strict=True) if value is not None}
        functions = [_function(one, counts[one]) for one in names]
        yield Question(
            f"funcqa_{number}", row["question"].strip(), functions, call[1], allowed, call[1] in _EITHER_ORDER
        )


def questions_of(data: Path, most: int = MOST) -> list[Question]:
    """All questions of a folder with ``bfcl`` and ``papers/funcqa``, in the order in which they are asked."""
    of_bfcl = [q for q in _bfcl(data / "bfcl") if len(q.text) + len(json.dumps(q.functions)) <= most]
    of_funcqa = list(_funcqa(data / "papers" / "funcqa"))
    for several in (of_bfcl, of_funcqa):
        random.Random(0).shuffle(several)
    out = []
    for number, one in enumerate(of_bfcl):
        out.append(one)
        if number % 3 == 2 and of_funcqa:
            out.append(of_funcqa.pop())
    return out + of_funcqa
