"""Measure calls of unseen tools (ToolDec, figure 5a): rows are trained on some tools, and all may be called.

    python -m benchmarks.tooldec unseen --model FOLDER --data FOLDER --out unseen.jsonl [--parts lines,oh,mh,kamel]

The first 4 of FuncQA's 13 functions are *seen*, and the first 30 of KAMEL's 234 relations: only their training lines
are learned from (rows.py). A row *fires* at a place where it is likelier than every token: there a tool is called. One
JSON line a fit, a line, a problem or a question.

    rows    one row a seen tool, as ToolkenGPT: where a row is the likeliest token its tool is called, any other is not
    side    one row for <T>; then a name of all tools under the bundle, in a side prompt that lists them (appendix A.2)
    list    the same, and the side prompt has the list alone, without examples
    names   of KAMEL: one row for <T>; then a name of all tools under the bundle, behind two examples, without a list
    plain   nothing is trained, nothing is called

The side prompt's examples are training lines of seen tools, so they show no name of an unseen one. Arguments of FuncQA
are written in ToolkenGPT's prompt of the function, freely for `rows`, under the bundle for `side` and `list`. The
engine computes the result, which stands where the call began. The answer is the last number of the line. A problem has
five calls at most.

    lines   training lines of FuncQA that were not learned from, 10 a function, up to the place where a call is due
    oh, mh  FuncQA's problems, one hop and many
    kamel   questions of 100 relations, at the place where a call is due

`named` in a record is the name that stands where a call is due, whether one fires there or not.

Leaves out   arguments of KAMEL: the annotation has none.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Matcher

from . import kamel, rows
from .decode import Model, Row, decode
from .funcqa import CALL_TOKENS, FUNCTIONS, Failed, bundle_of, run
from .rows import Line

PARTS = ("lines", "oh", "mh", "kamel")
ARMS = ("plain", "rows", "side", "list")
SEEN = tuple(FUNCTIONS)[:4]
SEEN_RELATIONS = 30
LINES = 15
"""Training lines of a relation."""
QUESTIONS = 250
CALLS = 5
TOKENS = {"oh": 80, "mh": 160}
_TEXT = re.compile(r"(.*?)<(\w+)>(\(.*?\))=(.*?)<eoe>(.*)", re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?|-?\.\d+")


# ---------------------------------------------------------------- FuncQA


def training(data: Path, name: str) -> list[tuple[str, Line, str]]:
    """Question, line (its row is 0) and the call's arguments, of a function."""
    found = []
    for text in (data / "funcqa" / "training_data" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        parts = _TEXT.fullmatch(row["answer"])
        if parts is not None and parts[2] == name:
            result = parts[4].strip()
            after = parts[5] if parts[5].startswith(result) else result + parts[5]
            found.append(
                (row["question"].strip(), Line(" " + parts[1].lstrip(), result, after[len(result) :], 0), parts[3])
            )
    return found


class Prompts:
    """The prompts of "oh" or "mh", and what is fitted behind them.

    Attributes:
        form: of a question.
        head: examples without calls, in which problems are answered.
        training: function → its training lines, as the function `training` reads them.
        side: arm → its side prompt.
    """

    def __init__(self, model: Model, data: Path, which: str) -> None:
        self.model, self.folder = model, data / "funcqa" / f"template_{which}"
        self.form = "Q: {}\nA:" if which == "oh" else "Question: {}\nAnswer:"
        self.training = {name: training(data, name) for name in FUNCTIONS}
        self.head = self._before_question("llama_general.txt")
        self.bundle = bundle_of(model)
        listed = f"Which function is called? Functions: {', '.join(FUNCTIONS)}.\n\n"
        shots = []
        for name in SEEN:
            question, line, arguments = self.training[name][0]
            shots.append(f"{self.form.format(question)}{line.before}<T>{name}{arguments}\n\n")
        self.side = {"side": listed + "".join(shots), "list": listed}
        self._arguments: dict[str, str] = {}
        self._places: rows.Places | None = None
        self._fits: dict[bool, tuple[torch.Tensor, dict[str, Any]]] = {}

    def _before_question(self, name: str) -> str:
        text = (self.folder / name).read_text(encoding="utf-8")
        return re.split(r"(?:Question|Q): \[QUESTION\]", text)[0]

    def of(self, name: str) -> str:
        """The prompt of a function's arguments."""
        if name not in self._arguments:
            self._arguments[name] = self._before_question(f"llama__{name}_.txt")
        return self._arguments[name]

    def fitted(self, each: bool) -> tuple[torch.Tensor, dict[str, Any]]:
        """Rows of the seen functions, or one row; and how it went."""
        chosen = [(number, one) for number, name in enumerate(SEEN) for one in self.training[name]]
        random.Random(1).shuffle(chosen)
        lines = [one[1]._replace(row=number if each else 0) for number, one in chosen]
        lead = [self.form.format(one[0]) for _, one in chosen]
        places = self._read(lead, lines)
        due = torch.tensor([line.row for line in lines])[places.line]
        places.row = torch.where(places.row < 0, places.row, due)
        if each not in self._fits:
            self._fits[each] = rows.fit(places, len(SEEN) if each else 1)
        return self._fits[each]

    def _read(self, lead: list[str], lines: list[Line]) -> rows.Places:
        if self._places is None:
            self._places = rows.look(self.model, self.head, lead, lines)
        return replace(self._places)


class Text(Row):
    """An answer, up to the place of a call.

    Attributes:
        called: the functions that were called;  failed: how the last call failed;  fires: the row that is called.
    """

    def __init__(self, model: Model, question: str, form: str, budget: int) -> None:
        super().__init__(model, form.format(question), budget=budget)
        self.question, self.form = question, form
        self.called, self.failed, self.fires = list[str](), "", -1

    def choose(self, logits: torch.Tensor) -> int:
        return min(super().choose(logits), len(self.model.llama.embedding) - 1)

    def _best(self, logits: torch.Tensor) -> int:
        size = len(self.model.llama.embedding)
        return super()._best(logits if len(self.called) < CALLS else logits[:size])

    def look(self) -> None:
        self.fires = self.ids[-1] - len(self.model.llama.embedding)
        if self.fires >= 0:
            self.ids.pop()
            self.is_done = True
        else:
            super().look()


class Arguments(Row):
    """The arguments of a call, behind ``<name>(``."""

    def __init__(self, model: Model, text: Text, name: str, bundle: Bundle | None) -> None:
        super().__init__(model, f"{text.form.format(text.question)}{text.text}<{name}>(", budget=CALL_TOKENS)
        self.owner, self.name = text, name
        if bundle is not None:
            begun = model.encode(name + "(")
            self.matcher = Matcher(bundle, "opened", CALL_TOKENS + len(begun))
            for token in begun:
                self.matcher.advance(token)

    def look(self) -> None:
        if self.text.endswith(")=") or "\n" in self.text:
            self.end()

    def put_back(self) -> None:
        """Give the answer the result."""
        text = self.owner
        text.called.append(self.name)
        text.tokens += self.tokens
        text.budget += self.tokens
        try:
            text.ids += self.model.encode(run(f"<T>{self.name}({self.text}"))
            text.fires, text.is_done = -1, text.tokens >= text.budget
        except Failed as failed:
            text.failed = str(failed)


@contextmanager
def without_rows(model: Model) -> Iterator[None]:
    """The model as it was."""
    head = model.llama.head
    model.llama.head = head[: len(model.llama.embedding)]
    try:
        yield
    finally:
        model.llama.head = head


def named(model: Model, prompt: str, starts: list[str], bundle: Bundle) -> list[str]:
    """The name that is generated behind each start, which ends with ``<T>``."""
    written = [kamel.Chosen(model, start, bundle) for start in starts]
    with without_rows(model):
        for _ in decode(model, prompt, written):
            pass
    return [one.chosen for one in written]


def answered(model: Model, prompts: Prompts, which: str, arm: str, questions: list[str]) -> list[Text]:
    """Answers of some questions under one arm; the model's head holds the arm's rows."""
    texts = [Text(model, question, prompts.form, TOKENS[which]) for question in questions]
    todo = texts
    while todo:
        for _ in decode(model, prompts.head, todo):
            pass
        todo = [text for text in todo if text.fires >= 0]
        names = [SEEN[text.fires] if arm == "rows" else "" for text in todo]
        if arm in prompts.side and todo:
            starts = [f"{text.form.format(text.question)}{text.text}<T>" for text in todo]
            names = named(model, prompts.side[arm], starts, prompts.bundle)
        bundle = prompts.bundle if arm in prompts.side else None
        asked = [Arguments(model, text, name, bundle) for text, name in zip(todo, names, strict=True)]
        with without_rows(model):
            for name in sorted(set(names)):
                for _ in decode(model, prompts.of(name), [one for one in asked if one.name == name]):
                    pass
        for one in asked:
            one.put_back()
        todo = [text for text in todo if not text.is_done]
    return texts


def number(text: str) -> float | None:
    """The last number of a text."""
    found = _NUMBER.findall(text)
    return float(found[-1].replace(",", "")) if found else None


def problems(data: Path, which: str) -> list[tuple[str, list[str], float]]:
    """Question, the functions of the annotated solution, answer."""
    found = []
    for row in json.loads((data / "funcqa" / f"funcqa_{which}.json").read_text(encoding="utf-8")):
        calls = row["calculation"] if which == "mh" else [row["func"]]
        names = [re.findall(r"<(\w+)>", call)[0] for call in calls]
        found.append((row["question"].strip(), names, float(str(row["answer"]).replace(",", ""))))
    return found


def trained(model: Model, prompts: Prompts, arm: str, plain: torch.Tensor) -> dict[str, Any]:
    """Give the model an arm's rows; how the fit went."""
    model.llama.head = plain
    if arm == "plain":
        return {}
    found, about = prompts.fitted(each=arm == "rows")
    model.llama.head = torch.cat([plain, found])
    return about


def funcqa(model: Model, data: Path, which: str, count: int, arms: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Records of the first problems of "oh" or "mh"."""
    prompts, plain, every = Prompts(model, data, which), model.llama.head, problems(data, which)[:count]
    for arm in arms:
        about = trained(model, prompts, arm, plain)
        yield {"arm": arm, "id": "fit", **about}
        texts = answered(model, prompts, which, arm, [question for question, _, _ in every])
        for n, (text, (_, names, wanted)) in enumerate(zip(texts, every, strict=True)):
            value = None if text.failed else number(text.text)
            yield {
                "arm": arm, "id": n, "seen": set(names) <= set(SEEN), "called": text.called, "wanted": names,
                "failed": text.failed, "right": value is not None and abs(value - wanted) <= 0.001 * abs(wanted),
                "tokens": text.tokens, "text": text.text,
            }  # fmt: skip
    model.llama.head = plain


def held_out_lines(model: Model, data: Path) -> Iterator[dict[str, Any]]:
    """Records of training lines that were not learned from: of seen functions those held out, 10 of each unseen one."""
    prompts, plain = Prompts(model, data, "oh"), model.llama.head
    chosen = [(number, one) for number, name in enumerate(SEEN) for one in prompts.training[name]]
    random.Random(1).shuffle(chosen)
    held = [(SEEN[number], one) for place, (number, one) in enumerate(chosen) if place % 10 == 9]
    some = held + [(name, one) for name in FUNCTIONS if name not in SEEN for one in prompts.training[name][:10]]
    fits = {arm: prompts.fitted(each=arm == "rows") for arm in ("rows", "side")}
    starts = [prompts.form.format(question) for _, (question, _, _) in some]
    places = rows.look(model, prompts.head, starts, [line for _, (_, line, _) in some])
    calls = [f"{start}{line.before}<T>" for start, (_, (_, line, _)) in zip(starts, some, strict=True)]
    model.llama.head = plain
    chosen_names = {arm: named(model, prompts.side[arm], calls, prompts.bundle) for arm in prompts.side}
    for arm in ("rows", "side", "list"):
        trained_rows = fits["rows" if arm == "rows" else "side"][0]
        found = rows.fired(trained_rows, places)
        for n, (name, _) in enumerate(some):
            here = places.line == n
            due = here & (places.row >= 0)
            likeliest_row = int((places.states[due] @ trained_rows.T).argmax())
            tool = SEEN[likeliest_row] if arm == "rows" else chosen_names[arm][n]
            fires = int(found[due][0]) >= 0
            yield {
                "arm": arm, "id": n, "seen": name in SEEN, "wanted": [name], "called": [tool] * fires,
                "named": tool, "right": fires and tool == name,
                "early": int((found[here & (places.row < 0)] >= 0).sum()), "places": int(here.sum()),
            }  # fmt: skip


# ---------------------------------------------------------------- KAMEL


def kamel_lines(data: Path, codes: list[str]) -> list[Line]:
    """Training lines of some relations, whose object stands in the text."""
    found: dict[str, list[Line]] = {code: [] for code in codes}
    for row in json.loads((data / "kamel" / "train_clean.json").read_text(encoding="utf-8")):
        value = re.search(r'="([^"]+)"', row["call"][0])
        if row["api"] not in found or value is None or len(found[row["api"]]) >= LINES:
            continue
        before, middle, after = row["text"].rpartition(" " + value[1])
        if before and middle:
            found[row["api"]].append(Line(before, middle, after, codes.index(row["api"])))
    return [line for each in found.values() for line in each]


def relations(model: Model, data: Path, count: int) -> Iterator[dict[str, Any]]:
    """Records of questions of 100 relations."""
    listed = kamel.Relations(data / "kamel", 234)
    codes = list(listed.names)[:SEEN_RELATIONS]
    learned = kamel_lines(data, codes)
    random.Random(1).shuffle(learned)
    trained_at = rows.look(model, "", [""] * len(learned), learned)
    each, about = rows.fit(trained_at, len(codes))
    yield {"arm": "rows", "id": "fit", **about}
    trained_at.row = trained_at.row.clamp(max=0)
    one, about = rows.fit(trained_at, 1)
    yield {"arm": "names", "id": "fit", **about}
    questions = json.loads((data / "kamel" / "test_first_100.json").read_text(encoding="utf-8"))[:count]
    texts = [f"Question: {question['question']}\nAnswer: The answer is" for question in questions]
    asked_at = rows.look(model, "", [""] * len(texts), [Line(text, " .", "", 0) for text in texts])
    bundle = compile_tools(
        listed.tools, model.folder, options=Options(repair=True, protocol="toolkengpt", closed=True)
    ).bundle
    chosen = named(model, listed.shots(2), [f"{text} <T>" for text in texts], bundle)
    due = asked_at.row >= 0
    order = asked_at.line[due]
    of_rows, of_one = rows.fired(each, asked_at)[due], rows.fired(one, asked_at)[due]
    likeliest_row = (asked_at.states[due] @ each.T).argmax(-1)
    for place in torch.argsort(order).tolist():
        n = int(order[place])
        code = questions[n]["api"]
        for arm, fires, tool in (
            ("rows", int(of_rows[place]) >= 0, listed.names[codes[int(likeliest_row[place])]]),
            ("names", int(of_one[place]) >= 0, chosen[n]),
        ):
            yield {
                "arm": arm, "id": n, "seen": code in codes, "wanted": [listed.names[code]], "called": [tool] * fires,
                "named": tool, "right": fires and tool == listed.names[code],
            }  # fmt: skip


def missing(
    model: Model, data: Path, parts: list[str], count: int, arms: Sequence[str], done: set[tuple[str, str]]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Parts whose records are not there, and of FuncQA's problems arms; each with its records."""
    for part in parts:
        if part in TOKENS:
            left = [arm for arm in arms if (part, arm) not in done]
            found = funcqa(model, data, part, count, left) if left else ()
            yield from ((part, list(group)) for _, group in groupby(found, itemgetter("arm")))
        elif part not in {one for one, _ in done}:
            yield part, list(held_out_lines(model, data) if part == "lines" else relations(model, data, count))


def measure(
    model: Model, data: Path, out: Path, parts: list[str], count: int = QUESTIONS, arms: Sequence[str] = ARMS
) -> None:
    """Write the records of parts to a file, but for those that it holds.

    Args:
        count: problems of FuncQA and questions of KAMEL, at most.
        arms: of FuncQA's problems.
    """
    held = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    for part, group in missing(model, data, parts, count, arms, {(row["part"], row["arm"]) for row in held}):
        text = "".join(json.dumps({"part": part, **row}, ensure_ascii=False) + "\n" for row in group)
        with out.open("a", encoding="utf-8") as file:
            file.write(text)
