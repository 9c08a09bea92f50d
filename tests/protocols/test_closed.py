"""--closed: calls take no arguments but those that their schemas name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_tools, read_spec, source_key
from toolc.compiler.cli import cli
from toolc.compiler.errors import GrammarError, UnsatisfiableError
from toolc.runtime import Bundle, DecodeError, Matcher, read_calls

INNER = {"type": "object", "properties": {"x": {"type": "integer"}}}
OPEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}, "o": INNER}, "required": ["a"]}


def _tools(schema: Any, **more: Any) -> list[Any]:
    return [{"type": "function", "function": {"name": "t", "parameters": schema, **more}}]


def _bundle(schema: Any, protocol: str = "json", closed: bool = True, **more: Any) -> Bundle:
    return compile_tools(_tools(schema, **more), options=Options(jobs=1, protocol=protocol, closed=closed)).bundle


def _accepts(bundle: Bundle, text: str) -> bool:
    matcher = Matcher(bundle, "required")
    return matcher.advance_bytes(text.encode()) == len(text) and matcher.is_complete


def _takes(bundle: Bundle, arguments: str) -> bool:
    return _accepts(bundle, f'{{"name": "t", "arguments": {arguments}}}')


REFERS = {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/d", "definitions": {"d": OPEN}}
UNION = {"type": "object", "anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]}
#: id, schema, arguments that are taken, those that only an open object takes
ROWS: list[tuple[str, Any, list[str], list[str]]] = [
    ("plain", OPEN, ['{"a": 1}', '{"a": 1, "o": {"x": 1, "y": 2}}'], ['{"a": 1, "b": 2}', '{"a": 1, "A": 1}']),
    ("reference", REFERS, ['{"a": 1}'], ['{"a": 1, "b": 2}']),
    ("allOf", {"allOf": [OPEN, {"properties": {"b": {}}}]}, ['{"a": 1, "b": 2}'], ['{"a": 1, "c": 2}']),
    ("anyOf", UNION, ['{"a": 1}', '{"b": 1}', "{}"], ['{"a": 1, "c": 1}', '{"c": 1}']),
    ("said open", {**OPEN, "additionalProperties": {"type": "null"}}, ['{"a": 1}'], ['{"a": 1, "b": null}']),
    ("patterns", {**OPEN, "patternProperties": {"^x": {}}}, ['{"a": 1}'], ['{"a": 1, "xy": null}']),
    ("nothing named", {"type": "object"}, ["{}"], ['{"a": 1}']),
    ("required alone", {"type": "object", "required": ["a"]}, ['{"a": 1}'], ['{"a": 1, "b": 1}']),
]


@pytest.mark.parametrize(("name", "schema", "right", "open_ones"), ROWS, ids=[row[0] for row in ROWS])
def test_arguments_that_no_schema_names(name: str, schema: Any, right: list[str], open_ones: list[str]) -> None:
    shut, left_open = _bundle(schema), _bundle(schema, closed=False)
    assert all(_takes(shut, one) and _takes(left_open, one) for one in right)
    assert all(not _takes(shut, one) and _takes(left_open, one) for one in open_ones)
    assert "closed-arguments" in shut.meta["restrictions"]
    assert "closed-arguments" not in left_open.meta["restrictions"]


def test_what_is_closed_already() -> None:
    schema = {**OPEN, "additionalProperties": False}
    assert "closed-arguments" not in _bundle(schema).meta["restrictions"]


@pytest.mark.parametrize(
    ("protocol", "call", "argument", "comma"),
    [
        ("minicpm5", '<function name="t">{}</function>', '<param name="{}">{}</param>', ""),
        ("pythonic", "[t({})]", "{}={}", ", "),
        ("gemma4", "<|tool_call>call:t{{{}}}<tool_call|>", "{}:{}", ","),
    ],
)
def test_other_ways_to_write_arguments(protocol: str, call: str, argument: str, comma: str) -> None:
    """As tags, as keywords, and where strings are bare."""
    one, two = argument.format("a", 1), argument.format("b", 2)
    shut, left_open = (_bundle(OPEN, protocol, closed) for closed in (True, False))
    assert read_calls(shut, call.format(one), "required")[0].arguments == {"a": 1}
    both = call.format(comma.join([one, two]))
    assert read_calls(left_open, both, "required")[0].arguments == {"a": 1, "b": 2}
    with pytest.raises(DecodeError):
        read_calls(shut, both, "required")


def test_tools_that_are_not_strict_take_anything() -> None:
    assert _takes(_bundle(OPEN, strict=False), '{"z": 1}')
    shut = compile_tools(_tools(OPEN), options=Options(jobs=1, closed=True, strict=False)).bundle
    assert _takes(shut, '{"z": 1}') and "closed-arguments" not in shut.meta["restrictions"]


def test_no_argument_is_left() -> None:
    with pytest.raises(UnsatisfiableError, match="no arguments at all") as caught:
        _bundle({"type": "object", "minProperties": 1})
    assert "#/0/function/parameters" in str(caught.value.place)


def test_where_it_is_said(tmp_path: Path) -> None:
    """As an option of the command and in a project file; it counts in the key, and says nothing of grammars."""
    (tmp_path / "tools.json").write_text(json.dumps(_tools(OPEN)))
    words = [
        "compile",
        str(tmp_path / "tools.json"),
        "--tokenizer",
        "builtin",
        "-o",
        str(tmp_path / "x.toolc"),
        "--closed",
    ]
    assert CliRunner().invoke(cli, words).exit_code == 0
    made = Bundle.open(tmp_path / "x.toolc")
    assert not _takes(made, '{"a": 1, "b": 2}') and made.meta["options"]["closed"] is True
    (tmp_path / "toolc.yaml").write_text("spec: tools.json\ntokenizer: builtin\noptions: {closed: true}\n")
    done = CliRunner().invoke(cli, ["compile", str(tmp_path / "toolc.yaml"), "-o", str(tmp_path / "y.toolc")])
    assert done.exit_code == 0 and "closed-arguments" in Bundle.open(tmp_path / "y.toolc").meta["restrictions"]
    spec = read_spec(_tools(OPEN))
    keys = {source_key(spec, options=Options(closed=closed)) for closed in (False, True)}
    assert len(keys) == 2
    with pytest.raises(GrammarError, match="closed"):
        source_key('start: "a"', options=Options(closed=True))
