"""FuncQA (Hao et al. 2023, arXiv 2305.11554): do calls of 13 functions keep to their syntax, and what does that change?

The prompt has the examples of ToolkenGPT's, of their answers the calls alone: ``A: <T>power(2,8)=256, <T>divide(…``.
The model is asked for as many calls as the annotated solution has, at most five; the engine computes each and writes
its result. The answer is the last result.

    free        as the model writes
    backtrace   after a call that failed, back to its <T>, and the next best first token of a name; at most five times
    fuzzy       a name that is none is taken for the nearest one
    bundle      under the protocol toolkengpt, entry "opened"

A call fails by its name, by its arguments (no numbers, or not so many), by its syntax (a line or 30 tokens end before
``)=``), or by its value (no result, as of a division by zero). A problem ends with the first call that fails.

Leaves out   whether the model would call at all: SmolLM2 hardly does, so a call is always due.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Matcher

from .decode import Model, Row, decode

ARMS = ("free", "backtrace", "fuzzy", "bundle")
TRIES = 5
CALL_TOKENS = 30
_MANY = (2, 5)


def _log(x: float) -> float:
    return math.log10(x)


FUNCTIONS: dict[str, tuple[tuple[int, int], Callable[..., float]]] = {
    "add": (_MANY, lambda *x: sum(x)),
    "subtract": ((2, 2), lambda x, y: x - y),
    "multiply": (_MANY, lambda *x: math.prod(x)),
    "divide": ((2, 2), lambda x, y: x / y),
    "power": ((2, 2), lambda x, y: x**y),
    "sqrt": ((1, 1), math.sqrt),
    "log": ((1, 1), _log),
    "ln": ((1, 1), math.log),
    "lcm": (_MANY, lambda *x: math.lcm(*map(_whole, x))),
    "gcd": (_MANY, lambda *x: math.gcd(*map(_whole, x))),
    "remainder": ((2, 2), lambda x, y: x % y),
    "choose": ((2, 2), lambda x, y: math.comb(_whole(x), _whole(y))),
    "permutate": ((2, 2), lambda x, y: math.perm(_whole(x), _whole(y))),
}
"""Name → how few and how many numbers it takes, and what it computes."""

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_CALL = re.compile(r"<T>([^(]*)\((.*)\)=", re.DOTALL)


def _whole(x: float) -> int:
    if x != int(x) or abs(x) > 1e6:
        raise ValueError("no whole number that is small enough")
    return int(x)


class Failed(Exception):
    """A call that failed: its kind."""


def run(text: str, fuzzy: bool = False) -> str:
    """The result of a call, as text.

    Raises:
        Failed: by name, argument, syntax or value.
    """
    found = _CALL.fullmatch(text)
    if found is None:
        raise Failed("syntax")
    name = found[1]
    if name not in FUNCTIONS and fuzzy:
        name = difflib.get_close_matches(name, list(FUNCTIONS), 1, 0)[0]
    if name not in FUNCTIONS:
        raise Failed("name")
    (least, most), function = FUNCTIONS[name]
    given = [one.strip() for one in found[2].split(",")]
    if not least <= len(given) <= most or not all(map(_NUMBER.fullmatch, given)):
        raise Failed("argument")
    try:
        value = function(*map(float, given))
        if isinstance(value, complex) or not math.isfinite(value):
            raise Failed("value")
        return f"{value:.10g}"
    except (ValueError, ZeroDivisionError, OverflowError):
        raise Failed("value") from None


def bundle_of(model: Model) -> Bundle:
    """The 13 functions for a tokenizer."""
    tools = []
    for name, ((least, most), _) in FUNCTIONS.items():
        numbers = {f"x{n}": {"type": "number"} for n in range(1, most + 1)}
        tools.append({"name": name, "parameters": {"properties": numbers, "required": [*numbers][:least]}})
    return compile_tools(tools, model.folder, options=Options(protocol="toolkengpt", closed=True)).bundle


class Problem(Row):
    """One problem under one arm.

    Attributes:
        left: how many calls are still due;  calls: how many were written;  failed: how the calls failed that did.
        at: tokens before the call that is being written.
        result: of the last call; empty if it failed.
    """

    def __init__(self, model: Model, start: str, left: int, arm: str, bundle: Bundle | None) -> None:
        super().__init__(model, start + " <T>", budget=CALL_TOKENS * left * (TRIES + 1))
        self.arm, self.bundle, self.left = arm, bundle, left
        self.calls, self.failed = 0, list[str]()
        self.result = ""
        self._open()

    def _open(self) -> None:
        self.at, self.begin, self.tried = len(self.ids), self.tokens, list[int]()
        self.matcher = None if self.bundle is None else Matcher(self.bundle, "opened", CALL_TOKENS)

    def look(self) -> None:
        call = self.model.decode(self.ids[self.at :])
        if call.endswith(")=") or "\n" in call or self.tokens - self.begin >= CALL_TOKENS:
            self.end()

    def end(self) -> None:
        self.calls += 1
        self.result = ""
        try:
            self.result = run("<T>" + self.model.decode(self.ids[self.at :]), self.arm == "fuzzy")
        except Failed as failed:
            self.failed.append(str(failed))
            self.tried.append(self.ids[self.at] if len(self.ids) > self.at else self.model.tokenizer.eos_token_id)
            self.is_done = True
            return
        self.left -= 1
        if not self.left:
            self.is_done = True
            return
        self.insert(f"{self.result}, <T>")
        self.ids, kept = [*self.ids, *self.pending], self.ids
        self._open()
        self.ids = kept

    @property
    def goes_back(self) -> bool:
        """Whether another name is to be tried."""
        return self.arm == "backtrace" and not self.result and len(self.tried) <= TRIES

    def back(self) -> None:
        """Stand behind the <T> of the call that failed, with another name to come."""
        del self.ids[self.at :]
        self.begin, self.forbidden, self.is_done = self.tokens, set(self.tried), False


def problems(folder: Path, which: str) -> tuple[str, list[tuple[str, int, float]]]:
    """The prompt, and question, number of calls and answer of every problem."""
    template = (folder / f"template_{which}" / "llama_func.txt").read_text(encoding="utf-8")
    _, *examples, _ = re.split(r"(?:Question|Q): ", template)
    shots = []
    for example in examples:
        calls = re.findall(r"<(\w+)>(\([^)]*\)=-?[\d.]*\d)", example)
        question = example.splitlines()[0].strip()
        shots.append(f"Q: {question}\nA: " + ", ".join(f"<T>{name}{rest}" for name, rest in calls))
    head = f"Answer with calls of {', '.join(FUNCTIONS)}.\n\n" + "\n\n".join(shots) + "\n\n"
    found = []
    for row in json.loads((folder / f"funcqa_{which}.json").read_text(encoding="utf-8")):
        count = min(len(row["calculation"]), 5) if which == "mh" else 1
        found.append((row["question"].strip(), count, float(str(row["answer"]).replace(",", ""))))
    return head, found


def measure(model: Model, data: Path, which: str, arm: str, ids: list[int]) -> Iterator[dict[str, Any]]:
    """Records of some problems, of "oh" (one hop) or "mh" (many), under one arm."""
    head, every = problems(data / "funcqa", which)
    bundle = bundle_of(model) if arm == "bundle" else None
    number_of = {}
    todo = []
    for n in ids:
        question, count, _ = every[n]
        todo.append(Problem(model, f"Q: {question}\nA:", count, arm, bundle))
        number_of[todo[-1]] = n
    while todo:
        again = []
        for row in decode(model, head, todo):
            if row.goes_back:
                row.back()
                again.append(row)
                continue
            wanted = every[number_of[row]][2]
            right = bool(row.result) and abs(float(row.result) - wanted) <= 0.001 * abs(wanted)
            yield {
                "id": number_of[row], "calls": row.calls, "failed": row.failed, "lost": not row.result,
                "right": right, "tokens": row.tokens, "seconds": round(row.seconds, 3), "text": row.text,
            }  # fmt: skip
        todo = again
