"""What a schema means in each encoding: every text of a grid against the independent reading of codecs.py."""

from __future__ import annotations

import functools
import json
import random
import re
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from tests.cases.codecs import Cofl, Raw, Tags, fits
from tests.cases.protocols import FAMILIES, is_valid
from tests.lift.brute import brute_mask
from toolc.compiler import Options, compile_tools
from toolc.compiler.errors import UnsupportedError
from toolc.runtime import Matcher, Reader, read_calls, write_calls
from toolc.runtime.format.bundle import Bundle

from .allowed import masks_allow
from .test_protocols import allowed
from .vocabularies import vocab_for

VALUES: list[Any] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "maxLength": 3},
    {"type": "string", "minLength": 40, "maxLength": 90},
    {"type": "string", "maxLength": 0},
    {"type": "string", "pattern": "^[a-z]+$"},
    {"type": "string", "pattern": "é|<"},
    {"type": "string", "pattern": "b$", "maxLength": 60},
    {"type": "string", "format": "date"},
    {"enum": ["a", "", "b c", "it's", 'say "hi"', "a\nb", "42"]},
    {"enum": ["1", 1, "true", True, "null", "x"]},
    {"type": "string", "not": {"enum": ["a", "x"]}},
    {"type": ["string", "null"]},
    {"type": ["string", "integer"]},
    {"type": ["string", "number", "boolean"]},
    {"type": ["string", "array", "object"]},
    {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer", "maximum": 10}]},
    {"type": "integer", "minimum": 0, "maximum": 50},
    {"type": "number"},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2},
    {"type": "object", "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}, "required": ["k"],
     "additionalProperties": False},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"const": None},
    {},
]  # fmt: skip
TOOLS = [
    {"name": f"t{n}", "input_schema": {"type": "object", "properties": {"v": schema}, "required": ["v"],
                                       "additionalProperties": False}}
    for n, schema in enumerate(VALUES)
]  # fmt: skip
SCHEMAS = {tool["name"]: tool["input_schema"] for tool in TOOLS}
STRINGS = [
    "", "a", "x", "ab", "abc", "abcd", "é", "a<b", "a</b>", "b c", "it's", 'say "hi"', "a\nb", "back\\slash", "\\n",
    "42", "7", "50", "51", "-1", "1e3", "4.5", "4.", "007", "1", " 42", "42 ", "true", "True", "false", "null", "None",
    "[", "[]", "{", "{}", " []", "[1", '["a"]', '"a"', "2024-02-29", "2023-02-29", "a" * 39, "a" * 40, "a" * 89 + "b",
    "a" * 90, "a" * 91, "b" * 61, "a" * 59 + "b", "\n", "\t", "😀", "</", "a,b", "k=v", "a)", "}", "<|", "\x7f", "\x01",
]  # fmt: skip
OTHERS: list[Any] = [
    None, True, False, 0, 7, 50, 51, -1, 4.5, [], ["a"], ["abc", "it's"], ["abcd"], [1], ["a", "b", "c"], {},
    {"k": "x"}, {"k": "it's", "n": 3}, {"n": 3}, {"k": "x", "n": "3"}, {"k": "x", "z": 1}, {"a": 1},
    {"a": 1, "b": 2}, {"a": "1"}, {"k": 'q"\n'}, [[], {}],
]  # fmt: skip
NUMBERS = (0, 7, 4.5, -1)


@functools.cache
def bundle(protocol: str, whitespace: str = "spaced") -> Bundle:
    return compile_tools(TOOLS, vocab_for(protocol), options=Options(protocol=protocol, whitespace=whitespace)).bundle


def accepts(protocol: str, text: str, tool: str, whitespace: str = "spaced") -> bool:
    return masks_allow(bundle(protocol, whitespace), text.encode(), f"tool:{tool}")


def spells_another(text: str, schema: Any, python: bool) -> bool:
    """The precedence of docs/protocols.md: whether a raw text is kept for a value of another type."""
    inner = text.strip(" \t\n\r")
    words = {"null": None, "true": True, "false": False} | (
        {"None": None, "True": True, "False": False} if python else {}
    )
    if inner in words and fits(words[inner], schema):
        return True
    numbers = [number for number in NUMBERS if fits(number, schema)]
    form = r"-?(0|[1-9]\d*)(\.\d*)?([eE][+-]?\d+)?" if 4.5 in numbers else r"-?(0|[1-9]\d*)(\.0*)?"
    if numbers and re.fullmatch(form, inner):
        return True
    return any(
        inner.startswith(mark) and any(fits(value, schema) for value in OTHERS if isinstance(value, kind))
        for mark, kind in (("[", list), ("{", dict))
    )


@pytest.mark.parametrize("protocol", ["qwen3_coder", "glm47", "step3", "deepseek_v4", "kimi_k3"])
def test_raw(protocol: str) -> None:
    family = FAMILIES[protocol]
    assert isinstance(family.codec, Raw)
    said = bool(family.codec.text_parameter) or "{type}" in family.codec.parameter
    python = family.codec.python
    for n, schema in enumerate(VALUES):
        tool = f"t{n}"
        for text in STRINGS:
            call = family.write([(tool, {"v": text})])
            read = family.read(call, SCHEMAS)
            wanted = fits(text, schema)
            if not said and spells_another(text, schema, python):  # then it is that value, if it is spelled as one
                wanted = read is not None and not isinstance(read[0][1]["v"], str) and text.strip() == text
                wanted = wanted and text not in ("None", "True", "False")  # which are read, not written
            assert accepts(protocol, call, tool) is wanted, (schema, text)
            if wanted:
                called = read_calls(bundle(protocol), call, f"tool:{tool}")
                assert [(one.name, one.arguments) for one in called] == read, (schema, text)
        for value in OTHERS:
            call = family.write([(tool, {"v": value})])
            text = json.dumps(value)
            string_too = not said and fits(text, schema) and not spells_another(text, schema, python)
            assert accepts(protocol, call, tool) is (fits(value, schema) or string_too), (schema, value)


@pytest.mark.parametrize("protocol", ["minimax_m3", "cohere_cmd5"])
def test_parts(protocol: str) -> None:
    """Arrays and objects part by part; what may be anything, and undeclared members that a tag would name twice, are
    JSON there, which the writer of the tests does not write."""
    family = FAMILIES[protocol]
    assert isinstance(family.codec, (Tags, Cofl))
    for n, schema in enumerate(VALUES):
        for value in [*STRINGS, *OTHERS]:
            open_members = isinstance(schema.get("additionalProperties"), dict) and protocol == "minimax_m3"
            if isinstance(value, (list, dict)) and (schema == {} or open_members or value == [[], {}]):
                continue
            call = family.write([(f"t{n}", {"v": value})])
            read = family.read(call, SCHEMAS)
            valid = is_valid(read, SCHEMAS)
            if valid and isinstance(value, str) and read != [(f"t{n}", {"v": value})] and value.strip() != value:
                valid = False  # a string that spells a value of another type, blanks around it
            text = value if isinstance(value, str) else json.dumps(value)
            if protocol == "minimax_m3" and not isinstance(value, (list, dict)) and spells_another(text, schema, False):
                valid = valid and read is not None and not isinstance(read[0][1]["v"], str)
            assert accepts(protocol, call, f"t{n}") is valid, (schema, value, call)
            if valid:
                called = read_calls(bundle(protocol), call, f"tool:t{n}")
                assert [(one.name, one.arguments) for one in called] == read, (schema, value, call)


@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("protocol", ["pythonic", "olmo3", "gemma4", "functiongemma", "toolkengpt", "hermes"])
def test_literals(protocol: str, compact: bool) -> None:
    family = FAMILIES[protocol]
    for n, schema in enumerate(VALUES):
        for value in [*STRINGS, *OTHERS]:
            call = family.write([(f"t{n}", {"v": value})], compact)
            assert family.read(call, SCHEMAS) == [(f"t{n}", {"v": value})], call
            blanks = "flexible" if compact else "spaced"
            assert accepts(protocol, call, f"t{n}", blanks) is fits(value, schema), (schema, call)


OPEN = {
    "name": "f",
    "input_schema": {
        "type": "object",
        "properties": {"x": {}, "cards": {"type": "object"}, "rows": {"type": "array", "items": {"type": "array"}}},
    },
}
ANY_VALUES: list[dict[str, Any]] = [
    {"x": ""},
    {"x": None, "cards": {"Alex": ["Ace", 1, []], "b": {"c": {"d": "e", "n": None}}}, "rows": [[1, ["x"]], [{}]]},
    {"x": [[[["a"]], {"a": {"b": [1.5, True, "</cofl:valu"]}}]]},
    {"x": {}, "other": [{"a": 1}]},
    {"cards": {"k": []}, "rows": []},
]


@pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])
def test_what_may_be_anything_part_by_part(as_tokens: bool) -> None:
    """Cohere's CMD5 writes arrays and objects in tags to any depth, also where the schema leaves them open."""
    family = FAMILIES["cohere_cmd5"]
    vocab = vocab_for("cohere_cmd5", as_tokens)
    held = compile_tools([OPEN], vocab, options=Options(protocol="cohere_cmd5", named=False)).bundle
    for arguments in ANY_VALUES:
        text = family.write([("f", arguments)])
        assert masks_allow(held, text.encode(), "required"), text
        assert [call.arguments for call in read_calls(held, text, "required")] == [arguments]
        written = write_calls(Reader(held, "required"), [("f", arguments)])
        assert written is not None and written.text.decode() == text
    text = family.write([("f", ANY_VALUES[1])])
    for good, bad in (
        ('<cofl:value type="raw">Ace', '<cofl:value name="a" type="raw">Ace'),
        ('name="b" type="dict"', 'type="dict"'),
        ('<cofl:value type="json">1', '<cofl:value type="json">[1]'),
        ('<cofl:value type="list"></cofl:value>', '<cofl:value type="list">[]</cofl:value>'),
        ("</cofl:value></cofl:value>", "</cofl:value>"),
        ("</cofl:value></cofl:tool_call>", "</cofl:value></cofl:value></cofl:tool_call>"),
    ):
        assert good in text and not masks_allow(held, text.replace(good, bad, 1).encode(), "required"), bad
    matcher = Matcher(held, "required")
    rng = random.Random(as_tokens)
    pieces = re.split("(<cofl:tool_calls>)", text)[2] if as_tokens else text
    if as_tokens:
        matcher.advance(vocab.special["<cofl:tool_calls>"])
    for byte in pieces.partition("</cofl:tool_call>")[0].encode():
        if rng.random() < 0.15:
            assert np.array_equal(allowed(matcher).astype(bool), brute_mask(held, matcher))
        assert matcher.advance_bytes(bytes((byte,))) == 1


def arguments(schema: dict[str, Any], protocol: str, text: dict[str, str]) -> dict[str, Any] | None:
    """What the raw texts of parameters are read as; None if they are refused."""
    held = one_tool(protocol, json.dumps(schema))
    call = FAMILIES[protocol].write([("f", text)])
    return read_calls(held, call, "required")[0].arguments if masks_allow(held, call.encode(), "required") else None


@functools.cache
def one_tool(protocol: str, schema: str) -> Bundle:
    tools = [{"name": "f", "parameters": json.loads(schema)}]
    return compile_tools(tools, vocab_for(protocol), options=Options(protocol=protocol, named=False)).bundle


def shut(required: bool = True, **properties: Any) -> dict[str, Any]:
    needed = {"required": list(properties)} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


RAW_PROTOCOLS = ["qwen3_coder", "glm45", "glm47", "minimax_m2", "minimax_m3"]
STAY_STRINGS = [
    ({"type": ["integer", "string"], "maximum": 10}, "1e5"),
    ({"anyOf": [{"type": "string", "pattern": "^1e"}, {"type": "integer"}]}, "1e5"),
    ({"type": ["number", "string"]}, "NaN"),
    ({"type": ["number", "string"]}, "Infinity"),
    ({"type": ["number", "string"]}, "-Infinity"),
    ({"type": ["number", "string"]}, "\xa05"),
]


@pytest.mark.parametrize(("schema", "text"), STAY_STRINGS)
@pytest.mark.parametrize("protocol", RAW_PROTOCOLS)
def test_what_spells_no_number_is_a_string(protocol: str, schema: dict[str, Any], text: str) -> None:
    """Python's reading of JSON took NaN for a number, and 1e5 for an integer."""
    assert arguments(shut(v=schema), protocol, {"v": text}) == {"v": text}


KINDS = {
    "anyOf": {"anyOf": [shut(k={"const": "a"}, v={"type": "string"}), shut(k={"const": "b"}, v={"type": "integer"})]},
    "if": {
        "type": "object", "properties": {"k": {"enum": ["a", "b"]}, "v": {}}, "required": ["k", "v"],
        "additionalProperties": False, "if": {"properties": {"k": {"const": "a"}}},
        "then": {"properties": {"v": {"type": "string"}}}, "else": {"properties": {"v": {"type": "integer"}}},
    },
}  # fmt: skip


@pytest.mark.parametrize("form", KINDS)
@pytest.mark.parametrize("protocol", RAW_PROTOCOLS)
def test_alternatives_of_the_arguments(protocol: str, form: str) -> None:
    """What spells a value of one alternative is no string of another: reading knows a parameter by its name alone."""
    for k, v, wanted in (("a", "296", None), ("b", "296", 296), ("a", "x", "x"), ("b", "x", None)):
        read = arguments(KINDS[form], protocol, {"k": k, "v": v})
        assert read == (None if wanted is None else {"k": k, "v": wanted})


def test_alternatives_inside_of_parts() -> None:
    inner = [shut(k={"const": k}, v={"type": t}) for k, t in (("a", "string"), ("b", "integer"))]
    for schema, wrap in (
        (shut(o={"anyOf": inner}), lambda value: {"o": value}),
        (shut(l={"anyOf": [{"type": "array", "items": one} for one in inner]}), lambda value: {"l": [value]}),
    ):
        held = one_tool("minimax_m3", json.dumps(schema))
        for k, v, wanted in (("a", "296", False), ("b", "296", True), ("a", "x", True), ("b", "x", False)):
            text = FAMILIES["minimax_m3"].write([("f", wrap({"k": k, "v": v}))])
            assert masks_allow(held, text.encode(), "required") is wanted
            if wanted:
                value = {"k": k, "v": 296 if v == "296" else v}
                assert read_calls(held, text, "required")[0].arguments == wrap(value)


UNDECLARED: list[tuple[dict[str, Any], str, Any]] = [
    ({"additionalProperties": {"type": "string"}}, "12", "12"),
    ({"additionalProperties": {"type": "string"}}, "null", "null"),
    ({"additionalProperties": {"type": ["string", "integer"]}}, "null", "null"),
    ({"additionalProperties": {"type": ["string", "integer"]}}, "12", 12),
    ({"additionalProperties": {"type": ["string", "integer"]}}, "1e5", "1e5"),
    ({}, "12", 12),
    ({"patternProperties": {"^x": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, "12", 12),
    ({"patternProperties": {"^y": {"type": "integer"}}, "additionalProperties": {"type": "string"}}, "12", None),
]


@pytest.mark.parametrize(("more", "text", "wanted"), UNDECLARED)
@pytest.mark.parametrize("protocol", ["qwen3_coder", "glm47"])
def test_undeclared_parameters(protocol: str, more: dict[str, Any], text: str, wanted: Any) -> None:
    """Their types are told as well; where keys of several kinds may stand, they have the types of all."""
    read = arguments({"type": "object", "properties": {"a": {"type": "integer"}}, **more}, protocol, {"x": text})
    assert read == (None if wanted is None else {"x": wanted})


@pytest.mark.parametrize("protocol", ["pythonic", "toolkengpt", "glm47", "kimi_k3", "json", "gemma4"])
def test_numbers_beyond_floats(protocol: str) -> None:
    held = one_tool(protocol, json.dumps(shut(n={"type": "number"})))
    written = FAMILIES[protocol].write([("f", {"n": 7})])
    assert written.count("7") == 1
    call = read_calls(held, written.replace("7", "-1E480"), "required")[0]
    assert call.arguments == {"n": -(10**480)}
    again = write_calls(Reader(held, "required"), [("f", call.arguments)])
    assert again is not None and b"-1e480" in again.text
    told = json.loads(call.json, parse_constant=pytest.fail, parse_int=Decimal, parse_float=Decimal)
    assert told == {"n": Decimal("-1E480")}
    assert read_calls(held, written.replace("7", "1.5E3"), "required")[0].arguments == {"n": 1500.0}


def test_positions_of_alternatives() -> None:
    """By position p and q cannot be told apart; a first parameter of two types can stand."""
    with pytest.raises(UnsupportedError, match="by their position"):
        one_tool("toolkengpt", json.dumps({"oneOf": [shut(p={"type": "string"}), shut(q={"type": "integer"})]}))
    held = one_tool(
        "toolkengpt",
        json.dumps({"oneOf": [shut(p={"type": "string"}), shut(p={"type": "integer"}, q={"type": "integer"})]}),
    )
    assert read_calls(held, '<T>f("x")=', "required")[0].arguments == {"p": "x"}
    assert read_calls(held, "<T>f(1, 2)=", "required")[0].arguments == {"p": 1, "q": 2}
