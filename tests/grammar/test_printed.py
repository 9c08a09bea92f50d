"""What ``toolc grammar`` prints, read by Lark's own reader, makes the same bundle as the compile, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cases.schemas import SCHEMAS
from toolc.compiler import pipeline
from toolc.compiler.budget import Budget
from toolc.compiler.errors import ToolcError
from toolc.compiler.grammar import reader
from toolc.compiler.grammar.assemble import Assembled
from toolc.compiler.grammar.cached_reader import inlined, read_pieces
from toolc.compiler.grammar.protocol import load_protocol, protocol_names
from toolc.compiler.options import Options
from toolc.compiler.specs import Spec, read_spec
from toolc.compiler.specs.read import schema_spec
from toolc.runtime.format.bundle import Bundle

DEVELOPMENT = Path(__file__).parents[3] / "shared" / "data" / "maskbench_dev.jsonl"
RESPONSE = {
    "type": "object",
    "properties": {"a": {}, "ab": {"enum": ["x\n", 1.5, None]}, "c": {"pattern": '^[/"\\\\]+$'}},
}

PATH = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}
OPERATION = {
    "openapi": "3.0.3",
    "info": {"title": "shop", "version": "1"},
    "paths": {"/orders/{id}": {"get": {"operationId": "order", "parameters": [PATH], "responses": {"200": {}}}}},
}
PLAIN = {"name": "look-up", "parameters": {"type": "object", "properties": {"start": {}, "n": {"multipleOf": 3}}}}


def _through_lark(spec: Spec, options: Options, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """The bundle of what is printed for a spec."""
    assemble = pipeline.assembled_of
    read: list[str] = []

    def printed(spec: Spec, options: Options, *more: Any) -> tuple[Assembled, Spec]:
        made, kept = assemble(spec, options, *more)
        read.append(made.text)
        return replace(made, lark=made.text, rules={}, terminals={}, apart={}, places=made.every_place), kept

    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "assembled_of", printed)
        bundle = pipeline.compile_spec(spec, options=options).bundle
    assert read, "the compile has another way to its grammar"
    return bundle


def _same(one: Bundle, other: Bundle) -> bool:
    first, second = one.tables, other.tables
    return one.meta == other.meta and all(
        getattr(first, table.name).tobytes() == getattr(second, table.name).tobytes() for table in fields(first)
    )


def _check(spec: Spec, options: Options, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the spec compiles; then its print has to make the same."""
    try:
        made = pipeline.compile_spec(spec, options=options)
    except ToolcError:
        return False
    assert _same(made.bundle, _through_lark(spec, options, monkeypatch)), made.grammar_text
    return True


def _rows() -> Iterator[Any]:
    for n, row in enumerate(SCHEMAS):
        if n % 9 == 0:
            yield pytest.param(row[1], id=row[0])


@pytest.mark.filterwarnings("ignore::toolc.compiler.stages.BuiltinTokenizerWarning")
@pytest.mark.parametrize("schema", list(_rows()))
def test_schemas(schema: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(schema_spec(schema), Options(whitespace="flexible"), monkeypatch)
    _check(schema_spec(schema), Options(whitespace="pretty"), monkeypatch)
    _check(schema_spec(schema), Options(lenient=True), monkeypatch)


@pytest.mark.filterwarnings("ignore::toolc.compiler.stages.BuiltinTokenizerWarning")
@pytest.mark.parametrize("number,protocol", list(enumerate(protocol_names())))
def test_protocols(number: int, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few schemas each, other ones for every protocol, and of a structured response."""
    some = [row[1] for row in SCHEMAS[number :: len(protocol_names())]]
    objects = [one for one in some if isinstance(one, dict) and one.get("type", "object") == "object"]
    tools = [{"name": f"tool{n}", "parameters": {"type": "object", **one}} for n, one in enumerate(objects)]
    options = Options(protocol=protocol, lenient=True)
    made = [tool for tool in tools if _check(read_spec([tool]), options, monkeypatch)]
    operations = load_protocol(protocol).arguments == "request"
    if protocol != "harmony":  # goes on behind what ends a turn in the built-in vocabulary
        assert _check(read_spec(OPERATION if operations else [PLAIN]), options, monkeypatch)
    # Several tools, and a response, are compiled apart from each other, which the text does not say.
    several = read_spec(OPERATION if operations else [*made, PLAIN])
    both = pipeline.grammar_of(several, replace(options, response=RESPONSE))
    found = inlined(read_pieces(both.lark, both.rules, both.terminals, both.apart, "x", Budget()))
    whole = reader.read_grammar(both.text, "x")
    assert found.rules == whole.rules
    if protocol != "harmony":
        spec = read_spec(OPERATION if operations else [PLAIN])
        assert _check(spec, Options(protocol=protocol, response=RESPONSE, whitespace="pretty"), monkeypatch)


@pytest.mark.filterwarnings("ignore::toolc.compiler.stages.BuiltinTokenizerWarning")
@pytest.mark.skipif(not DEVELOPMENT.is_file(), reason="the development cases are not here")
def test_development_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    with DEVELOPMENT.open() as lines:
        cases = [json.loads(line)["schema"] for n, line in enumerate(lines) if n % 150 == 7]
    assert sum(_check(schema_spec(one), Options(lenient=True), monkeypatch) for one in cases) > len(cases) / 2
