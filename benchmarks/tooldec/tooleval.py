"""ToolEval (Qin et al. 2023, arXiv 2307.16789): does the first action keep to ReAct's form, the tools and schemas?

    free     as the model writes
    fuzzy    the same, and a name that is none is taken for the nearest one
    bundle   under the protocol react, with closed arguments

The prompt names the tools of the task with their descriptions and parameters, and ends with ``Thought:``. An action
fails by its syntax (no Action and Action Input), by its name, or by its arguments (no object of JSON, one that is
unknown or missing, a value of another type).

Leaves out   what follows the first action: the recorded answers are cut. Whether a task is solved needs a judge.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolc.compiler import Options, compile_tools
from toolc.runtime import Matcher

from .decode import Model, Row, decode

ARMS = ("free", "bundle")
"""What is run; fuzzy matching is worked out from the records of "free"."""
TOKENS = 90

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


class Step(Row):
    """A thought and an action."""

    def look(self) -> None:
        text = self.text
        found = ACTION.search(text)
        if "Observation" in text or (
            found is not None and re.search(r"\S.*\n\s*\S|\}\s*\n", found[2] + "\n", re.DOTALL)
        ):
            self.is_done = self.matcher is None


def measure(model: Model, data: Path, which: str, arm: str, ids: list[int]) -> Iterator[dict[str, Any]]:
    """Records of some tasks under one arm."""
    every = json.loads((data / "tooleval" / f"gpt35_cot_{which}.json").read_text(encoding="utf-8"))
    tasks = list(every.values())
    rows, task_of = [], {}
    for n in ids:
        tools = tasks[n]["available_tools"]
        head = HEAD + "\n".join(map(described, tools)) + f"\n\nTask: {tasks[n]['query']}\nThought:"
        matcher = None
        if arm == "bundle":
            options = Options(protocol="react", closed=True, named=False, skip=True, repair=True)
            bundle = compile_tools(tools, model.folder, options=options).bundle
            matcher = Matcher(bundle, "auto/inside", max(TOKENS, bundle.min_tokens["auto/inside"] or 1))
        rows.append(Step(model, head, matcher, TOKENS))
        task_of[rows[-1]] = n, tools
    for row in decode(model, "", rows, 10):
        n, tools = task_of[row]
        failed = failure(row.text, tools)
        record = {"id": n, "failed": [failed] * bool(failed), "right": not failed}
        if arm == "free":
            fuzzy = failure(row.text, tools, fuzzy=True)
            record["fuzzy"] = [fuzzy] * bool(fuzzy)
        yield {
            **record, "tokens": row.tokens, "prompt": len(row.start), "seconds": round(row.seconds, 3),
            "text": row.text,
        }  # fmt: skip
