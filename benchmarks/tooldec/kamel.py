"""KAMEL as ToolkenGPT uses it: which of 30, 60, 100 or 234 relations answers a question?

    prompting   no tools: the answer itself, right if one of the annotated answers stands in its line
    few-shot    name and description of every relation, eight examples, then as the model writes
    zero-shot   the same without examples
    names       under the bundle, two examples, no list anywhere
    side        the same, and the name is generated in a side prompt with the list of names (runtime/side_prompt.py)

All but the first stand behind ``The answer is <T>`` and end with the name, which is right if it is the annotated
relation. Six names stand for two relations each: the second has a number behind it (``--repair``).

Leaves out   arguments: the annotation has none, and ToolDec's figure is of the relation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolc.compiler import Options, compile_tools, read_spec
from toolc.runtime import Bundle
from toolc.runtime.side_prompt import Calls

from .decode import Model, Row, decode

ARMS = ("prompting", "few-shot", "zero-shot", "names", "side")
SIZES = {"30": (30, "30"), "60": (60, "60"), "100": (100, "100"), "234": (234, "100")}
"""Part → how many relations, and whose questions."""

TEXT = {"type": "object", "properties": {"subject": {"type": "string"}}, "required": ["subject"]}


class Relations:
    """The first relations of the list.

    Attributes:
        names: code → the name of its tool, as the compiler numbers equal ones.
        lines: of the list, with descriptions.
        examples: (question, code, subject) of ToolkenGPT's prompt.
    """

    def __init__(self, folder: Path, count: int) -> None:
        described = json.loads((folder / "api_desc.json").read_text(encoding="utf-8"))
        codes = list(described)[:count]
        self.tools = [{"name": described[code].partition("(")[0].strip(), "parameters": TEXT} for code in codes]
        spec = read_spec(self.tools, repair=True)
        self.names = {code: tool.name for code, tool in zip(codes, spec.tools, strict=True)}
        self.lines = [f"{self.names[code]}: {described[code].partition('): ')[2]}" for code in codes]
        template = (folder / "template" / "kamel_first_30.txt").read_text(encoding="utf-8")
        self.examples = re.findall(r"Question: (.*)\nAnswer: The answer is <(P\d+)>\((.*?)\)=", template)

    def shots(self, count: int) -> str:
        """Some examples."""
        return "".join(
            f'Question: {question}\nAnswer: The answer is <T>{self.names[code]}("{subject}")\n'
            for question, code, subject in self.examples[:count]
        )


class Chosen(Row):
    """The name of a relation, which ends before its arguments.

    Args:
        bundle: None: as the model writes.
    """

    def __init__(self, model: Model, start: str, bundle: Bundle | None) -> None:
        super().__init__(model, start, budget=16)
        self.name = None
        if bundle is not None:
            calls = Calls(bundle, "required/one")
            for token in model.encode("<T>"):
                calls.read(token)
            self.name = calls.name()

    def _best(self, logits: Any) -> int:
        if self.name is None:
            return super()._best(logits)
        token = self.likeliest(logits, self.name.matcher)
        self.name.read(token)
        return token

    def look(self) -> None:
        if self.name is not None:
            self.is_done = self.name.is_settled
        elif re.search(r"[(\n]", self.text):
            self.is_done = True

    @property
    def chosen(self) -> str:
        """The name."""
        if self.name is not None:
            return self.name.chosen
        return re.split(r"[(\n]", self.text)[0].strip()


def measure(model: Model, data: Path, which: str, arm: str, ids: list[int]) -> Iterator[dict[str, Any]]:
    """Records of some questions under one arm."""
    folder = data / "kamel"
    count, questions = SIZES[which]
    relations = Relations(folder, count)
    every = json.loads((folder / f"test_first_{questions}.json").read_text(encoding="utf-8"))
    bundle = None
    if arm in ("names", "side"):
        options = Options(repair=True, protocol="toolkengpt", closed=True)
        bundle = compile_tools(relations.tools, model.folder, options=options).bundle
    head = {
        "prompting": "",
        "few-shot": "Call a tool to answer the question. Tools:\n"
        + "\n".join(relations.lines)
        + "\n"
        + relations.shots(8),
        "zero-shot": "Call a tool to answer the question, as <T>name(subject). Tools:\n"
        + "\n".join(relations.lines)
        + "\n",
        "names": relations.shots(2),
        "side": "Which tool answers the question? Tools: "
        + ", ".join(relations.names.values())
        + ".\n"
        + relations.shots(2),
    }[arm]
    number_of = {}
    rows: list[Row] = []
    for n in ids:
        start = f"Question: {every[n]['question']}\nAnswer: The answer is"
        row = Row(model, start, None, 24) if arm == "prompting" else Chosen(model, start + " <T>", bundle)
        rows.append(row)
        number_of[row] = n
    for row in decode(model, head, rows):
        question = every[number_of[row]]
        if isinstance(row, Chosen):
            text = row.chosen
            right = text == relations.names[question["api"]]
            known = text in relations.names.values()
        else:
            text, known = row.text, True
            spelled = [str(one) for answer in question["answer"] for one in [answer["chosen"], *answer["alternative"]]]
            right = any(one.lower() in text.lower() for one in spelled)
        yield {
            "id": number_of[row], "right": right, "failed": [] if known else ["name"], "tokens": row.tokens,
            "prompt": len(model.encode(head)), "seconds": round(row.seconds, 3), "text": text,
        }  # fmt: skip
