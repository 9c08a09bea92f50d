"""ToolEval (Qin et al. 2023, arXiv 2307.16789): do actions keep to ReAct's form, the tools and schemas?

    free     as the model writes
    fuzzy    the same, and a name that is none is taken for the nearest one
    bundle   under the protocol react, with closed arguments

The prompt names the tools of the task with their descriptions and parameters, and ends with ``Thought:``. An action
fails by its syntax (no Action and Action Input), by its name, or by its arguments (no object of JSON, one that is
unknown or missing, a value of another type).

No service is called. Where an action is the recorded one of its step, name and arguments, the recorded response is its
observation and the next action is due, five at most; then `Finish` alone is allowed. Any other action ends its task.

Leaves out   whether a task is solved, which needs a judge. The record keeps 100 characters of a step, so responses are
             cut, and an action whose recorded arguments are cut is taken for another one.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from toolc.compiler import Options, compile_tools
from toolc.runtime import Bundle, Matcher

from .decode import Model, Row, decode

ARMS = ("free", "bundle")
"""What is run; fuzzy matching is worked out from the records of "free"."""
TOKENS = 90
"""Of a thought and its action."""
STEPS = 5
"""Actions before `Finish` alone is allowed, as in the paper."""

HEAD = """You solve a task with tools, one call at a time. Answer in this form:
Thought: what to do next
Action: the name of a tool
Action Input: its arguments, an object of JSON

Tools:
"""

_TYPES: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


def described(tool: dict[str, Any]) -> str:
    """A line of the list."""
    about = tool["description"].partition("The description of this function is: ")[2].strip('"') or tool["description"]
    members = tool["parameters"]["properties"]
    said = [f"{name}: {one.get('type', 'any')}" for name, one in members.items()]
    return f"{tool['name']}({', '.join(said)}): {' '.join(about.split())[:80]}"


def fault(name: str, text: str, tools: list[dict[str, Any]]) -> str:
    """How an action fails; empty if it does not."""
    tool = next((tool for tool in tools if tool["name"] == name), None)
    if tool is None:
        return "name"
    try:
        given, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return "argument"
    schema = tool["parameters"]
    if (
        not isinstance(given, dict)
        or not set(schema.get("required", [])) <= given.keys() <= schema["properties"].keys()
    ):
        return "argument"
    for key, value in given.items():
        said = schema["properties"][key]
        kind = _TYPES.get(said.get("type", ""), object)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind not in (bool, object)):
            return "argument"
        if "enum" in said and value not in said["enum"]:
            return "argument"
    return ""


ACTION = re.compile(r"Action:[ ]*(.*?)[ ]*\nAction Input:(.*)", re.DOTALL)


def failure(text: str, tools: list[dict[str, Any]], fuzzy: bool = False) -> str:
    """How the action in a text fails; empty if it does not."""
    found = ACTION.search(text)
    if found is None:
        return "syntax"
    name = found[1]
    names = [tool["name"] for tool in tools]
    if fuzzy and name not in names:
        name = difflib.get_close_matches(name, names, 1, 0)[0]
    return fault(name, found[2], tools)


class Recorded(NamedTuple):
    """A recorded step: a tool, its arguments, and what it answered."""

    name: str
    arguments: dict[str, Any]
    response: str


_STEP = re.compile(r"\{'name': '([^']*)', 'arguments': '(.*?)', 'response': '(.*)", re.DOTALL)


def recorded(answer: dict[str, Any]) -> list[Recorded | None]:
    """The steps of a recorded answer; None for one that is cut before its response."""
    found: list[Recorded | None] = []
    (node,) = answer["answer_details"]
    while node is not None:
        if node["role"] == "tool":
            step = _STEP.match(node["message"])
            found.append(None if step is None else Recorded(step[1], _arguments(step[2]), step[3].removesuffix("'}")))
        node = node["next"][0] if node["next"] else None
    return found


def _arguments(text: str) -> dict[str, Any]:
    given = json.loads(text.encode().decode("unicode_escape"))
    return given if isinstance(given, dict) else {}


def follows(step: Recorded | None, name: str, text: str) -> bool:
    """Whether an action is a recorded one."""
    try:
        given, _ = json.JSONDecoder().raw_decode(text.lstrip())
    except ValueError:
        return False
    return step is not None and step.name == name and step.arguments == given


class Steps(Row):
    """Thoughts and actions.

    Args:
        task: of the data set.
        bundle: None: as the model writes.

    Attributes:
        failed: how the last action failed, if it did;  fuzzy: the same with the nearest name.
        calls: actions so far;  followed: how many of them are the recorded ones.
    """

    def __init__(self, model: Model, start: str, task: dict[str, Any], bundle: Bundle | None) -> None:
        super().__init__(model, start, budget=TOKENS)
        self.tools, self.bundle = task["available_tools"], bundle
        self.recorded = recorded(task["answer"])
        self.failed = self.fuzzy = ""
        self.calls = self.followed = 0
        self._open("auto/inside")

    def _open(self, entry: str) -> None:
        self.at = len(self.ids) + len(self.pending)
        if self.bundle is not None:
            self.matcher = Matcher(self.bundle, entry, max(TOKENS, self.bundle.min_tokens[entry] or 1))

    def look(self) -> None:
        text = self.model.decode(self.ids[self.at :])
        found = ACTION.search(text)
        if "Observation" in text or (
            found is not None and re.search(r"\S.*\n\s*\S|\}\s*\n", found[2] + "\n", re.DOTALL)
        ):
            if self.matcher is None:
                self.end()

    def end(self) -> None:
        text = self.model.decode(self.ids[self.at :])
        self.calls += 1
        self.failed, self.fuzzy = failure(text, self.tools), failure(text, self.tools, fuzzy=True)
        found = ACTION.search(text)
        step = self.recorded[self.followed] if self.followed < len(self.recorded) else None
        self.is_done = True
        if step is None or found is None or not follows(step, found[1], found[2]) or self.failed:
            return
        self.followed += 1
        if step.name == "Finish" or self.calls > STEPS:
            return
        self.is_done = False
        self.budget = self.tokens + TOKENS
        self.insert(f"\nObservation: {step.response}\nThought:")
        self._open("auto/inside" if self.calls < STEPS else "none/inside")


def measure(model: Model, data: Path, which: str, arm: str, ids: list[int]) -> Iterator[dict[str, Any]]:
    """Records of some tasks under one arm."""
    every = json.loads((data / "tooleval" / f"gpt35_cot_{which}.json").read_text(encoding="utf-8"))
    tasks = list(every.values())
    rows, number_of = [], {}
    for n in ids:
        tools = tasks[n]["available_tools"]
        head = HEAD + "\n".join(map(described, tools)) + f"\n\nTask: {tasks[n]['query']}\nThought:"
        bundle, task = None, tasks[n]
        if arm == "bundle":
            options = Options(protocol="react", closed=True, named=False, skip=True, repair=True)
            bundle = compile_tools(tools, model.folder, options=options).bundle
            names = {int(one["pointer"].split("/")[1]): one["name"] for one in bundle.tools}  # equal ones are numbered
            task = {**task, "available_tools": [{**tools[at], "name": name} for at, name in names.items()]}
        rows.append(Steps(model, head, task, bundle))
        number_of[rows[-1]] = n
    for row in decode(model, "", rows, 10):
        record = {"id": number_of[row], "failed": [row.failed] * bool(row.failed), "right": not row.failed}
        if arm == "free":
            record["fuzzy"] = [row.fuzzy] * bool(row.fuzzy)
        yield {
            **record, "calls": row.calls, "followed": row.followed, "tokens": row.tokens, "prompt": len(row.start),
            "seconds": round(row.seconds, 3), "text": row.text,
        }  # fmt: skip
