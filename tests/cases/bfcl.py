"""The BFCL files as rows: function documents and, where there are answers, one ground-truth call written from them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = ("simple_python", "multiple", "live_simple")


@dataclass(frozen=True)
class Row:
    """One row: its id, the function documents, and the calls that answer it, one per choice of values tried."""

    id: str
    functions: list[dict[str, Any]]
    calls: list[tuple[str, dict[str, Any]]]


def rows(folder: Path, names: tuple[str, ...] = FILES) -> Iterator[Row]:
    """Every row of the files in ``folder``."""
    for name in names:
        answers: dict[str, Any] = {}
        path = folder / f"{name}_answers.jsonl"
        if path.exists():
            answers = {one["id"]: one["ground_truth"] for one in map(json.loads, path.read_text().splitlines())}
        for line in (folder / f"{name}.jsonl").read_text().splitlines():
            row = json.loads(line)
            calls = []
            for answer in answers.get(row["id"], []):
                ((function, values),) = answer.items()
                document = next(one for one in row["function"] if one["name"] == function)
                calls.append((function, arguments_of(values, document["parameters"])))
            yield Row(row["id"], row["function"], calls)


def arguments_of(values: dict[str, list[Any]], parameters: dict[str, Any]) -> dict[str, Any]:
    """The first allowed value of every argument, in the order of the document; those that may be left out are."""
    declared = parameters.get("properties", {})
    out = {}
    for name in [*(one for one in declared if one in values), *(one for one in values if one not in declared)]:
        allowed = values[name]
        if "" in allowed and name not in parameters.get("required", []):
            continue
        out[name] = value_of(next((one for one in allowed if one != ""), ""), declared.get(name, {}))
    return out


def value_of(value: Any, schema: dict[str, Any]) -> Any:
    """An allowed value as JSON: inside a dict each member is a list of allowed values again."""
    if isinstance(value, dict):
        members = schema.get("properties", {})
        nested = {name: one for name, one in value.items() if isinstance(one, list)}
        if len(nested) == len(value) and value:
            return arguments_of(nested, {"properties": members, "required": schema.get("required", [])})
        return value
    if isinstance(value, list):
        items = schema.get("items", {})
        return [value_of(one, items if isinstance(items, dict) else {}) for one in value]
    return value
