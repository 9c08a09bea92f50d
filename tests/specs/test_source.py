"""Reading documents: what YAML says, what is counted, what is no path."""

from __future__ import annotations

import time
from typing import Any

import pytest

from toolc.compiler.errors import SpecError
from toolc.compiler.specs import read_spec
from toolc.compiler.specs.source import parse

# id; YAML; the document
YAML: list[tuple[str, str, Any]] = [
    ("hex", "a: 0x1F", {"a": 31}),
    ("octal", "a: 0o17", {"a": 15}),
    ("no-octal-of-1.1", "a: [017, 0o9]", {"a": [17, "0o9"]}),
    ("numbers", "a: [1, -2, .5, 1e3, +1.5]", {"a": [1, -2, 0.5, 1000.0, 1.5]}),
    ("words", "a: [yes, no, true, Null, ~]", {"a": ["yes", "no", True, None, None]}),
    ("tags", "a: [!!str 1, !!int 1, !!float 1, !!bool true, !!null ~]", {"a": ["1", 1, 1.0, True, None]}),
    ("merge", "a: &b {x: 1, y: 2}\nc: {<<: *b, z: 3}", {"a": {"x": 1, "y": 2}, "c": {"x": 1, "y": 2, "z": 3}}),
    ("merge-override", "a: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}", {"a": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}}),
    ("merge-below", "a: &b {x: 1}\nc: {x: 3, <<: *b}", {"a": {"x": 1}, "c": {"x": 3}}),
    ("merge-list", "a: [&p {x: 1}, &q {x: 2, y: 2}]\nc: {<<: [*p, *q]}",
     {"a": [{"x": 1}, {"x": 2, "y": 2}], "c": {"x": 1, "y": 2}}),
    ("merge-chain", "a: &p {x: 1}\nb: &q {<<: *p, x: 2}\nc: {<<: *q, y: 1}\nd: *q",
     {"a": {"x": 1}, "b": {"x": 2}, "c": {"x": 2, "y": 1}, "d": {"x": 2}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"minimum": NaNx}', "1:13\n  JSON has no such number; found NaN"),
        ("[Infinityy]", "1:2\n  JSON has no such number; found Infinity"),
        ("[-Infinityy]", "1:2\n  JSON has no such number; found -Infinity"),
        ('{"minimum": 1e4999x}', "1:13\n  this number is too long; found 1e4999"),
        ("[1, 1e4999-]", "1:5\n  this number is too long; found 1e4999"),
        ("[1e4999.]", "1:2\n  this number is too long; found 1e4999"),
        ("[1e4999e5]", "1:2\n  this number is too long; found 1e4999"),
        ('[1e4000ooks", "0-9"]', "1:2\n  this number is too long; found 1e4000"),
        ("[" + "9" * 4001 + "x]", "1:2\n  this number is too long; found 4,001 digits"),
        ("[1.x]", "this is not JSON"),
    ],
)
def test_numbers_that_run_into_something(text: str, words: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_spec(text)
    assert words in str(refused.value)


@pytest.mark.parametrize(("text", "document"), [row[1:] for row in YAML], ids=[row[0] for row in YAML])
def test_yaml(text: str, document: Any) -> None:
    found = parse(text.encode(), "a.yaml")
    assert repr(found) == repr(document)  # so are types, and the order of keys


@pytest.mark.parametrize("count", [20, 40])
def test_laughs_are_counted_and_not_walked(count: int) -> None:
    text = "x: &x0 [1, 1]\n" + "".join(f"y{i}: &x{i + 1} [*x{i}, *x{i}]\n" for i in range(count))
    begin = time.perf_counter()
    with pytest.raises(SpecError, match="too large"):
        read_spec(text.encode(), "a.yaml")
    assert time.perf_counter() - begin < 10


def test_a_value_that_stands_often_is_read() -> None:
    shared = {"type": "object", "properties": {f"k{i}": {"type": "string"} for i in range(100)}}
    assert len(read_spec([{"name": f"t{i}", "input_schema": shared} for i in range(500)]).tools) == 500


def test_a_zero_byte_is_in_no_path() -> None:
    with pytest.raises(SpecError, match="cannot be a path"):
        read_spec("a\0b")


def test_escaped_pairs_are_text() -> None:
    assert read_spec('{"const": "\\ud83d\\ude00", "type": "string"}').schema["const"] == "😀"


@pytest.mark.parametrize(
    ("word", "hint"),
    [("float", "number"), ("dict", "object"), ("file", "string"), ("STRING", "string"), ("str", "string")],
)
def test_words_for_types(word: str, hint: str) -> None:
    from toolc.compiler.errors import SchemaError
    from toolc.compiler.pipeline import compile_schema

    with pytest.raises(SchemaError, match=rf"(write|did you mean) {hint}"):
        compile_schema({"type": word})
    with pytest.raises(SchemaError, match="leave type out"):
        compile_schema({"type": "any"})
