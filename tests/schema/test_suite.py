"""The official JSON Schema Test Suite as a ratchet: one stored outcome per instance, in cases/json_schema_suite.txt.

A letter per instance: ``a`` accepted, ``r`` rejected, both rightly; ``o`` accepted once its keys stand in another order
and whole numbers are spelled without a point (the restrictions key-order and plain-integers); ``x`` rejected though
valid, as EXCUSED explains; ``w`` accepted though invalid (never). A group that is refused is one ``-``; one that is
unsatisfiable counts as rejecting everything. ``rebuild()`` writes the file anew; ``python -m tests.golden`` calls it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler.errors import BudgetError, ToolcError, UnsatisfiableError, UnsupportedError
from toolc.compiler.schema import SchemaOptions, schema_to_lark

from .judge import schema_of
from .recogniser import Compiled
from .test_random import orders

SUITE = Path(__file__).parents[3] / "shared" / "data" / "json_schema_test_suite"
STORED = Path(__file__).parents[1] / "cases" / "json_schema_suite.txt"
DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}

EXCUSED = {
    "/format/": "formats are asserted, and some of them narrowed (restriction formats)",
    "/vocabulary/": "meta-schemas without the validation vocabulary are not followed",
}

if not SUITE.is_dir():
    pytest.skip("the JSON Schema Test Suite is not beside the repository", allow_module_level=True)


def load(uri: str) -> Any:
    """A document of the suite's remotes, or a meta-schema."""
    import jsonschema_specifications

    base = "http://localhost:1234/"
    path = SUITE / "remotes" / uri.removeprefix(base)
    if uri.startswith(base) and path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    for one in jsonschema_specifications.REGISTRY:
        if one.rstrip("#") == uri:
            return jsonschema_specifications.REGISTRY.contents(one)
    return None


def files(draft: str) -> list[Path]:
    """The required files of a draft, and those of its formats."""
    home = SUITE / draft
    return sorted(home.glob("*.json")) + sorted((home / "optional" / "format").glob("*.json"))


def outcome(schema: Any, tests: list[dict[str, Any]], draft: str) -> str:
    """The letters of one group."""
    if isinstance(schema, dict) and "$schema" not in schema:
        schema = {"$schema": DRAFTS[draft], **schema}
    try:
        ours = Compiled(schema_to_lark(schema, SchemaOptions(loader=load))[0])
    except UnsatisfiableError:
        ours = Compiled('start: "x" start\n')
    except (UnsupportedError, BudgetError):
        return "-"
    letters = ""
    for test in tests:
        data = test["data"]
        if ours.accepts(json.dumps(data, ensure_ascii=False)):
            letters += "a" if test["valid"] else "w"
        elif not test["valid"]:
            letters += "r"
        else:
            texts = (json.dumps(one, ensure_ascii=False) for one in orders(plain(data))[:500])
            letters += "o" if any(map(ours.accepts, texts)) else "x"
    return letters


def plain(value: Any) -> Any:
    """The value with whole numbers as integers."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def outcomes(draft: str) -> Iterator[tuple[str, str]]:
    """(file: group, letters) of a draft."""
    for path in files(draft):
        text = path.read_text(encoding="utf-8")
        for number, (group, exact) in enumerate(zip(json.loads(text), schema_of(text), strict=True)):
            name = f"{draft}/{path.relative_to(SUITE / draft).with_suffix('')}/{number}"
            try:
                yield name, outcome(exact["schema"], group["tests"], draft)
            except ToolcError as error:
                yield name, f"! {type(error).__name__}"


def rebuild() -> Path:
    """Write the stored outcomes anew."""
    lines = [f"{name} {letters}" for draft in DRAFTS for name, letters in outcomes(draft)]
    STORED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return STORED


@pytest.mark.parametrize("draft", DRAFTS)
def test_outcomes(draft: str) -> None:
    stored = dict(line.split(" ", 1) for line in STORED.read_text(encoding="utf-8").splitlines())
    found = dict(outcomes(draft))
    changed = {name: (stored.get(name), letters) for name, letters in found.items() if stored.get(name) != letters}
    assert not changed, "python -m tests.golden writes the outcomes anew"
    assert not [name for name, letters in found.items() if "w" in letters]
    strange = [name for name, letters in found.items() if "x" in letters and not any(mark in name for mark in EXCUSED)]
    assert not strange
