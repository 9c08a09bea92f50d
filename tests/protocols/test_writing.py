"""Calls are written in every protocol from the bundle's tables alone, and what is no call of the bundle is not."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from typing import Any

import pytest

from tests.cases.codecs import fits
from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_grammar, compile_tools
from toolc.compiler.commands.check import check
from toolc.runtime import DecodeError, Reader, read_calls, write_call, write_calls

from .test_protocols import BOTH, CALLS, EACH, SCHEMAS, bundle
from .vocabularies import vocab_for


def entry(name: str, as_tokens: bool) -> str:
    return "required/one" if "required/one" in bundle(name, as_tokens).entry else "required"


@BOTH
@EACH
def test_calls(name: str, as_tokens: bool) -> None:
    """Read by the independent reading of the family where that knows the form, and by the bundle."""
    family, held = FAMILIES[name], bundle(name, as_tokens)
    start = Reader(held, entry(name, as_tokens))
    for call in CALLS:
        written = write_call(start, *call)
        assert written is not None
        assert check(held, written.text, entry(name, as_tokens))["accepted"]
        assert [(one.name, one.arguments) for one in written.reader.calls] == [call] or written.reader.unfinished
        if name in ("hermes", "json", "llama3", "phi4_mini", "lfm2", "gemma4", "qwen3_coder", "toolkengpt", "react"):
            assert written.text.decode() == family.write([call])  # the usual form, blanks and new lines too
        for piece in written.pieces:
            assert isinstance(piece, bytes) or held.vocab.special[piece] >= 0
    assert start.data == b""
    for bad in ({"place": "x", "days": 10}, {"days": 3}, {"place": "x", "more": 1}, {"place": 3}):
        assert not fits(bad, SCHEMAS["get"])
        assert write_call(start, "get", bad) is None
    assert write_call(start, "gets", {"place": "x"}) is None


@pytest.mark.parametrize("name", ["hermes", "deepseek_v31", "pythonic", "qwen3_coder"])
def test_the_rest_of_a_call(name: str) -> None:
    """From places inside of a call, but for those inside of a delimiter, and after one."""
    held, start = bundle(name), Reader(bundle(name), "required")
    whole = write_call(start, *CALLS[0])
    assert whole is not None
    named = whole.text.find(CALLS[0][0].encode()) + len(CALLS[0][0])
    ends = list(
        itertools.accumulate(len(piece.encode() if isinstance(piece, str) else piece) for piece in whole.pieces)
    )
    inside = [
        n for end, piece in zip(ends, whole.pieces) if isinstance(piece, bytes) for n in range(end - len(piece), end)
    ]
    last = whole.text.rfind(b"3")
    for length in [n for n in inside if n <= last][::5]:
        reader = Reader(held, "required")
        reader.feed_text(whole.text[:length])
        rest = write_call(reader, *CALLS[0])
        assert rest is not None and rest.text == whole.text[length:]
        if length != named:  # from there the name may go on
            assert (write_call(reader, *CALLS[1]) is None) == (length > named)


@pytest.mark.parametrize("whitespace", ["compact", "spaced", "pretty", "flexible"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_values_of_values_with_any_blanks(name: str, whitespace: str) -> None:
    if name == "restgpt":
        pytest.skip("its calls are request lines of a document")
    inner = {"type": "object", "properties": {"k": {"type": "integer"}, "l": {"type": "null"}}, "required": ["k", "l"]}
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": inner},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    options = Options(protocol=name, whitespace=whitespace)
    held = compile_tools([{"name": "f", "input_schema": schema}], vocab_for(name), options=options).bundle
    call = ("f", {"a": [1, 2], "b": {"k": 3, "l": None}})
    written = write_calls(Reader(held, "tool:f" if "tool:f" in held.entry else "required"), [call])
    assert written is not None
    assert [(one.name, one.arguments) for one in written.reader.calls] == [call] or written.reader.unfinished


def test_several() -> None:
    for name, family in FAMILIES.items():
        held = bundle(name)
        written = write_calls(Reader(held, "required"), CALLS)
        assert (written is not None) is family.many, name
        if written is not None:
            written.reader.finish()
            assert [(call.name, call.arguments) for call in written.reader.calls] == CALLS
            assert check(held, written.text, "required")["accepted"]


@pytest.mark.parametrize("name", ["minimax_m3", "cohere_cmd5"])
def test_parts_inside_of_parts(name: str) -> None:
    """An optional argument comes first: what leads it in may as well be the end of the call."""
    leaf = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    node = {**leaf, "additionalProperties": False}
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": node}, "any": {}, "at": node},
        "additionalProperties": False,
    }
    held = compile_tools([{"name": "go", "parameters": schema}], vocab_for(name), options=Options(protocol=name)).bundle
    for arguments in (
        {"rows": [{"n": 1, "s": "]<] x"}, {}, {"s": ""}], "at": {"n": -2}},
        {"rows": [], "at": {}},
        {"any": [1, {"x": "<item>"}]},
        {"any": "a", "at": {"s": "{"}},
        {},
    ):
        written = write_call(Reader(held, "required"), "go", arguments)
        assert written is not None, arguments
        written.reader.finish()
        (call,) = written.reader.calls
        assert call.arguments == arguments
        assert not arguments or call.text.startswith(("]<]minimax[>[<", "<cofl:value "))
    assert write_call(Reader(held, "required"), "go", {"rows": [{"n": "1"}]}) is None


@pytest.mark.parametrize("name", ["deepseek_v41", "mimo", "qwen3_coder"])
def test_raw_values_like_what_ends_them(name: str) -> None:
    """All are optional, so that every text before a key may as well end the call."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "array"}},
        "additionalProperties": False,
    }
    held = compile_tools([{"name": "go", "parameters": schema}], vocab_for(name), options=Options(protocol=name)).bundle
    for arguments in (
        {"a": "x"},
        {"a": "", "b": "y"},
        {"b": "<"},
        {"a": "a<", "b": "</para"},
        {"a": "</parameter", "b": "</", "c": ["</parameter>"]},
        {"a": "\n", "b": "\n</"},
    ):
        written = write_call(Reader(held, "required"), "go", arguments)
        assert written is not None, arguments
        written.reader.finish()
        assert [call.arguments for call in written.reader.calls] == [arguments]


def test_text_of_an_argument_is_no_delimiter() -> None:
    held = compile_tools([{"name": "go", "parameters": {}}], vocab_for("hermes"), options=Options(protocol="hermes"))
    written = write_call(Reader(held.bundle, "required"), "go", {"a": "</tool_call>"})
    assert written is not None
    assert written.pieces[0] == "<tool_call>" and written.pieces[-1] == "</tool_call>" and len(written.pieces) == 3
    assert json.dumps("</tool_call>").encode() in written.pieces[1]  # type: ignore[operator]
    assert write_call(Reader(held.bundle, "required"), "go", {"a": "\ud800"}) is None


def test_what_has_no_calls() -> None:
    plain = compile_grammar('start: "a" | "(" start ")"\n', vocab_for("hermes")).bundle
    assert write_call(Reader(plain), "go", {}) is None
    paths = {"/film/{id}": {"get": {"parameters": [{"name": "id", "in": "path", "required": True, "schema": {}}]}}}
    api = {"openapi": "3.1.0", "info": {"title": "films", "version": "1"}, "paths": paths}
    lines = compile_tools(api, options=Options(protocol="restgpt")).bundle
    assert write_call(Reader(lines), "go", {}) is None
    assert write_call(Reader(lines), "get_film_id", {}) is None


MUTUAL = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/b"}, "u": {"$ref": "#"}},
    "additionalProperties": False,
    "$defs": {
        "a": {"type": "object", "properties": {
            "n": {"type": "integer"}, "b": {"$ref": "#/$defs/b"},
            "l": {"type": "array", "items": {"$ref": "#/$defs/a"}},
        }, "additionalProperties": False},
        "b": {"type": "object", "properties": {"s": {"type": "string"}, "a": {"$ref": "#/$defs/a"}},
              "additionalProperties": False},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ["minimax_m3", "cohere_cmd5"])
def test_kinds_inside_of_each_other(name: str) -> None:
    """Which of them is JSON depends on what it lies in, not on which was compiled first."""
    held = compile_tools([{"name": "f", "parameters": MUTUAL}], vocab_for(name), options=Options(protocol=name)).bundle
    for arguments in (
        {"a": {"b": {"a": {"b": {"s": "x"}}}}, "b": {"a": {"b": {"a": {"n": 1}}}}},
        {"b": {"a": {"n": 1}}},
        {"b": {"a": {"l": [{"b": {"a": {"n": 2}}}]}}},
        {"a": {"l": [{"n": 1, "l": [{"b": {"s": "q"}}]}]}},
        {"u": {"u": {"u": {"b": {"s": "x"}}}}},
    ):
        written = write_calls(Reader(held, "required"), [("f", arguments)])
        assert written is not None, arguments
        assert [call.arguments for call in read_calls(held, written.text, "required")] == [arguments]


@pytest.mark.parametrize("name", ["pythonic", "lfm2"])
def test_characters_that_python_escapes(name: str) -> None:
    """`repr` escapes what cannot be printed, also beyond ASCII, where the tables have the character itself."""
    texts = ["a\xa0b", "x\u2028\u3000", "q\x7f\\\\xa0", "\U000e0001"]
    schema = {"type": "object", "properties": {"t": {"enum": texts}}, "required": ["t"]}
    held = compile_tools([{"name": "f", "parameters": schema}], vocab_for(name), options=Options(protocol=name)).bundle
    for text in texts:
        written = write_call(Reader(held, "required"), "f", {"t": text})
        assert written is not None, text
        assert [call.arguments for call in read_calls(held, written.text, "required")] == [{"t": text}]


@pytest.mark.parametrize("name", ["json", "hermes", "pythonic", "qwen3_coder"])
def test_numbers_without_exponents(name: str) -> None:
    """As they stand where there is a ``multipleOf``, and floats of any size."""
    schema = {"type": "object", "properties": {"x": {"type": "number", "multipleOf": 0.5}}, "required": ["x"]}
    tools = [{"name": "f", "parameters": {**schema, "additionalProperties": False}}]
    held = compile_tools(tools, vocab_for(name), options=Options(protocol=name)).bundle
    for number in (1.7875138923960992e19, -2e16, 0.5, 3, -4.0):
        written = write_call(Reader(held, "required"), "f", {"x": number})
        assert written is not None, number
        (call,) = read_calls(held, written.text, "required")
        assert call.arguments == {"x": number} and type(call.arguments["x"]) is type(number)


@pytest.mark.parametrize("name", ["json", "pythonic", "gemma4", "minimax_m3"])
def test_values_that_are_too_deep(name: str) -> None:
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"x": {}}, "additionalProperties": False}}]
    held = compile_tools(tools, vocab_for(name), options=Options(protocol=name)).bundle
    for depth, fine in ((20, True), (330, False), (100_000, False)):
        value: list[Any] = []
        for _ in range(depth):
            value = [value]
        written = write_call(Reader(held, "required"), "f", {"x": value})
        assert (written is not None) == fine
        while value:  # which Python cannot take away at once
            value = value.pop()


def test_a_value_that_holds_itself() -> None:
    held = compile_tools([{"name": "f", "parameters": {"type": "object"}}]).bundle
    value: list[Any] = []
    value.append(value)
    assert write_call(Reader(held, "required"), "f", {"x": value}) is None


def test_half_a_character_is_no_name() -> None:
    held = compile_tools([{"name": "f", "parameters": {"type": "object"}}]).bundle
    assert write_call(Reader(held, "required"), "\ud800", {}) is None
    with pytest.raises(DecodeError, match="half a character"):
        read_calls(held, "\ud800")


def test_a_copy_of_a_reader_is_a_fork() -> None:
    held = compile_tools([{"name": "f", "parameters": {"type": "object"}}]).bundle
    reader = Reader(held, "required")
    reader.feed_text('{"name": "f", ')
    before = bytes(reader.data)
    for twin in (copy.copy(reader), copy.deepcopy(reader)):
        twin.feed_text('"arguments": {}}')
        twin.finish()
        assert [call.name for call in twin.calls] == ["f"]
        assert reader.calls == [] and bytes(reader.data) == before
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(reader)


def test_undeclared_arguments_with_types() -> None:
    """Kimi K3 tells the type of each: that a tag holds the word key is no second name."""
    tools = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}]
    held = compile_tools(tools, vocab_for("kimi_k3"), options=Options(protocol="kimi_k3")).bundle
    for arguments in ({"x": "12", "y": 12, "z": [1, {}]}, {"a": "1", "n": None, "o": {"k": "v"}}, {"t": True}):
        written = write_call(Reader(held, "required"), "f", arguments)
        assert written is not None, arguments
        assert [call.arguments for call in read_calls(held, written.text, "required")] == [arguments]


LIST: dict[str, Any] = {
    "type": "object",
    "properties": {"v": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}},
    "required": ["v"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
    "required": ["v"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", ["cohere_cmd5", "minimax_m3"])
def test_what_lies_inside_of_its_own_kind(name: str) -> None:
    """An object, and the same or null inside of it, were two kinds to the writer and one to the grammar."""
    members = {"list": {"$ref": "#/$defs/list"}, "tree": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}
    schema = {"type": "object", "properties": members, "additionalProperties": False}
    tool = {"name": "f", "parameters": {**schema, "$defs": {"list": LIST, "tree": TREE}}}
    held = compile_tools([tool], vocab_for(name), options=Options(protocol=name)).bundle
    calls: list[dict[str, Any]] = [
        {"list": {"v": "a", "next": {"v": "b"}}},
        {"list": {"v": "a", "next": {"v": "b", "next": {"v": "c", "next": None}}}},
        {"list": {"v": "a", "next": None}, "tree": None},
        {"tree": {"v": 1, "kids": [{"v": 2, "kids": [{"v": 3, "kids": []}]}]}},
    ]
    for arguments in calls:
        written = write_call(Reader(held, "required"), "f", arguments)
        assert written is not None, arguments
        assert [call.arguments for call in read_calls(held, written.text, "required")] == [arguments]
