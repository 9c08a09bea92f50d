"""The emitted text is legal Lark, and Lark's own Earley parser agrees with the recogniser that the other tests use."""

from __future__ import annotations

import json
from typing import Any

import lark
import pytest

from toolc.compiler.schema import SchemaOptions, schema_to_lark

from .recogniser import Recogniser

PAIRS: list[tuple[Any, list[str]]] = [
    (
        {},
        [
            "{}",
            "[]",
            '{"a": [1, null, {"b": "c"}]}',
            '{"a"}',
            "[1,]",
            '"\\u00e9\\ud83d\\ude00"',
            '"\\ud83d"',
            "01",
            "-0",
        ],
    ),
    (
        {"type": "object", "properties": {"a": {"type": "integer"}, 'b"\\/é': {"enum": ["x", "y\n", "{"]}}},
        [
            "{}",
            '{"a": 1}',
            '{"b\\"\\\\/é": "y\\n"}',
            '{"a": 1, "b\\"\\\\/é": "{", "c": 1}',
            '{"c": 1, "a": 1}',
            '{"a": ""}',
        ],
    ),
    (
        {"properties": {c: {"type": "null"} for c in "abcde"}, "additionalProperties": False, "type": "object"},
        [
            "{}",
            '{"a":null,"e":null}',
            '{"e":null,"a":null}',
            '{"b":null,"c":null,"d":null}',
            '{"f":null}',
            '{"a":null,}',
        ],
    ),
    (
        {"type": "array", "prefixItems": [{"type": "string"}, {"const": 1.5}], "items": {"$ref": "#"}, "maxItems": 4},
        ["[]", '["a"]', '["a", 1.50]', '["a", 1.5, [], ["b"]]', '["a", 1.5, 1]', '["a",1.5,[],[],[]]', "[1]"],
    ),
    (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ['"a"', '"ab"', '"a\\n\\u00e9"', '"abcd"', '"\\ud83d\\ude00b"'],
    ),
    ({"type": "string", "pattern": "^a/[b\\]]+$", "maxLength": 4}, ['"a/b"', '"a/b]"', '"a/b]b"', '"a\\/b"', '"a"']),
    (
        {"const": {"a": [1, {}], "b": []}},
        ['{"a":[1,{}],"b":[]}', '{"b":[],"a":[1,{}]}', '{ "a" : [ 1 , {} ] , "b" : [] }'],
    ),
]


@pytest.mark.parametrize("schema, texts", PAIRS, ids=lambda value: "")
@pytest.mark.parametrize("whitespace", ["compact", "spaced", "flexible", 2])
def test_lark_agrees(schema: Any, texts: list[str], whitespace: str | int) -> None:
    text, _ = schema_to_lark(schema, SchemaOptions(whitespace=whitespace))
    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete")
    ours = Recogniser(text)
    for one in [*texts, *(" " + one + "\n" for one in texts[:2]), *(respaced(one) for one in texts)]:
        try:
            parser.parse(one)
            found = True
        except lark.exceptions.LarkError:
            found = False
        assert ours.accepts(one) == found, (one, text)


def respaced(text: str) -> str:
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, separators=(", ", ": "))
    except ValueError:
        return text


@pytest.mark.parametrize(
    "whitespace, good, bad",
    [
        ("compact", ['{"a":[1,2]}'], ['{"a": [1,2]}', '{"a":[1, 2]}', ' {"a":[1,2]}', '{"a":[1,2]} ']),
        ("spaced", ['{"a": [1, 2]}'], ['{"a":[1, 2]}', '{"a": [1,2]}', '{"a":  [1, 2]}', '{ "a": [1, 2]}']),
        ("flexible", ['{"a":[1,2]}', '{"a"' + " " * 99 + ":[1,2]}"], ['{"a":[1 2]}', ' {"a":[1,2]}', '{"a":[1,2]}\n']),
        (2, ['{"a":[1,2]}', '{\t\t"a" : [ 1 , 2\r\n]  }'], ['{"a":   [1,2]}', '{"a":[1,2]} ', " {}", '{"a":[   ]}']),
    ],
)
def test_blanks(whitespace: str | int, good: list[str], bad: list[str]) -> None:
    ours = Recogniser(schema_to_lark({}, SchemaOptions(whitespace=whitespace))[0])
    assert [one for one in good if not ours.accepts(one)] == []
    assert [one for one in bad if ours.accepts(one)] == []
