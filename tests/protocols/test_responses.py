"""Structured responses without tools, in every protocol: frames, reasoning, masks, reading back; what says a schema."""

from __future__ import annotations

import dataclasses
import json
import random
from enum import Enum
from typing import Any, Literal, TypedDict

import jsonschema
import numpy as np
import pytest

from tests.cases.protocols import FAMILIES
from tests.lift.brute import brute_mask
from toolc.compiler import Options, compile_request, compile_schema, compile_tools, source_key
from toolc.compiler.commands.check import check
from toolc.compiler.errors import RequestError, SpecError
from toolc.compiler.grammar.protocol import load_protocol
from toolc.compiler.specs import read_spec
from toolc.compiler.specs.read import schema_spec
from toolc.runtime import Matcher, Reader, subset
from toolc.runtime.format.bundle import Bundle

from .allowed import masks_allow, read_text
from .test_entries import RESPONSE, WRAPPED
from .test_masks import equal_walks
from .test_protocols import BOTH, EACH, TOOLS, accepts, allowed
from .vocabularies import vocab_for

TREE = {
    "type": "object",
    "properties": {"n": {"type": "number"}, "rest": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["n"],
    "additionalProperties": False,
}
SAID = {"answer": "It is [12].", "sure": True}
SCHEMAS: list[tuple[Any, list[Any], list[Any]]] = [
    (RESPONSE, [SAID, {"answer": ""}], [{"sure": True}, {"answer": "x", "more": 1}, {"answer": 1}, []]),
    (TREE, [{"n": 1}, {"n": 2.5, "rest": {"n": 3, "rest": None}}], [{"n": "1"}, {"n": 1, "rest": {}}]),
    ({"type": "object"}, [{}, {"a": [1, {"b": None}], "name": "get"}], [[], "x", 1, None]),
    ({"type": "array", "items": {"enum": ["a", 1, None, True]}}, [[], ["a", None, 1, True]], [{}, ["b"], [False]]),
    ({"type": "string", "maxLength": 5}, ["", "<a>\n", 'q"\\'], ["123456", 1]),
    ({"anyOf": [{"type": "null"}, {"type": "integer", "minimum": 3}]}, [None, 3, 40], [2, "3", {}]),
]


def framed(name: str, text: str) -> str:
    return WRAPPED.get(name, "{}").replace("{}", text, 1)


@BOTH
@EACH
def test_a_value_in_the_frame_of_its_protocol(name: str, as_tokens: bool) -> None:
    family, vocab = FAMILIES[name], vocab_for(name, as_tokens)
    for number, (schema, valid, wrong) in enumerate(SCHEMAS):
        held = compile_schema(schema, vocab, options=Options(protocol=name)).bundle
        thinks = ["", "/outside", "/inside"] if family.think else [""]
        assert list(held.entry) == ["start", *(f"response{one}" for one in thinks)]
        assert held.meta["protocol"] == name and held.meta["spec"]["begins"] == "response"
        texts = [(framed(name, json.dumps(value)), value) for value in valid]
        for text, value in texts:
            assert masks_allow(held, text.encode(), "start") and masks_allow(held, text.encode(), "response")
            for thought in ("", "So it is."):
                if not family.think or (not thought and number):
                    continue
                whole = family.think[0] + thought + family.think[1] + text
                for entry, said in (("start", whole), ("response/outside", whole)):
                    assert accepts(held, said, entry), check(held, said.encode(), entry)
                assert accepts(held, thought + family.think[1] + text, "response/inside")
                assert not accepts(held, whole, "response")
            for entry in ("start", "response"):
                reader = Reader(held, entry)
                events = [event for piece in text for event in reader.feed_text(piece)] + reader.finish()
                assert reader.is_whole and json.loads(reader.text) == value and not reader.calls
                assert {event.kind for event in events} <= {"text"} and reader.reasoning == ""
        for value in wrong:
            assert not accepts(held, framed(name, json.dumps(value)), "start")
        assert not accepts(held, texts[0][0] + "x", "start") and not accepts(held, "x" + texts[0][0], "response")
        if before := framed(name, "\0").partition("\0")[0]:
            assert not accepts(held, texts[0][0].removeprefix(before), "start")  # the frame is needed
        if family.think:
            reader = Reader(held)
            reader.feed_text(family.think[0] + "So." + family.think[1] + texts[0][0])
            reader.finish()
            assert json.loads(reader.text) == valid[0] and reader.reasoning.strip() == "So."


@EACH
def test_masks_against_every_token_and_a_judge(name: str) -> None:
    rng, vocab = random.Random(name), vocab_for(name, sorted(FAMILIES).index(name) % 2 == 0)
    for schema, _, _ in SCHEMAS[:2]:
        held = compile_schema(schema, vocab, options=Options(protocol=name)).bundle
        for entry in held.entry:
            matcher = Matcher(held, entry)
            for _ in range(8):
                mask = allowed(matcher).astype(bool)
                assert np.array_equal(mask, brute_mask(held, matcher)), entry
                matcher.advance(int(rng.choice(np.flatnonzero(mask))))
                if matcher.is_finished:
                    break
        for _ in range(6):
            matcher, reader = Matcher(held, budget=120), Reader(held)
            while not matcher.is_finished:
                token = int(rng.choice(np.flatnonzero(allowed(matcher))))
                matcher.advance(token)
                reader.feed(token)
            jsonschema.validate(json.loads(reader.text), schema)


@EACH
def test_masks_are_those_of_the_schema_alone(name: str) -> None:
    vocab = vocab_for(name)
    for number, (schema, _, _) in enumerate(SCHEMAS[:4]):
        whitespace: str | int = "spaced" if not load_protocol(name).gaps and number < 2 else ("compact", 2)[number % 2]
        held = compile_schema(schema, vocab, options=Options(protocol=name, whitespace=whitespace)).bundle
        alone = compile_schema(schema, vocab, options=Options(whitespace=whitespace)).bundle
        before = framed(name, "\0").partition("\0")[0]
        if name not in WRAPPED:
            equal_walks(held, "response", alone, "start", name, walks=2)
        elif before[before.rfind("<") :] in vocab.special:
            _equal_inside(held, alone, before.encode(), name)


def _equal_inside(held: Bundle, alone: Bundle, before: bytes, seed: str) -> None:
    """Walks on which both allow the same tokens of text; the marks around the value are none."""
    rng = random.Random(seed)
    text = np.ones(held.vocab.size, bool)
    text[list(held.vocab.special.values())] = False
    for _ in range(2):
        one, two = Matcher(held, "response"), Matcher(alone)
        assert read_text(one, before) == len(before)
        for _ in range(30):
            masks = [allowed(matcher).astype(bool) & text for matcher in (one, two)]
            assert np.array_equal(*masks)
            if not (both := np.flatnonzero(masks[0] & masks[1])).size:
                break
            token = int(rng.choice(both))
            one.advance(token)
            two.advance(token)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Named(TypedDict):
    name: str
    at: list[Point]


TYPES: list[tuple[Any, list[Any], list[Any]]] = [
    (Point, [{"x": 1}, {"x": 1, "y": 2.5}], [{}, {"x": "1"}, {"x": 1, "z": 2}]),
    (Named, [{"name": "a", "at": [{"x": 1}]}], [{"name": "a"}, {"name": "a", "at": [1]}]),
    (Colour, ["red"], ["green"]),
    (list[int], [[], [1, 2]], [["1"], {}]),
    (int | None, [None, 3], ["3", {}]),
    (Literal["a", 1], ["a", 1], ["b", 2]),
    (dict[str, bool], [{}, {"a": True}], [{"a": 1}]),
    (Any, [1, "x", {}], []),
]
FORMATS: list[tuple[Any, list[Any], list[Any]]] = [
    ({"type": "json_object"}, [{}, {"a": 1}], [[], 1]),
    ({"type": "json_schema", "json_schema": {"name": "r", "schema": RESPONSE}}, [SAID], [{}]),
    ({"type": "json_schema", "name": "r", "schema": RESPONSE, "strict": False}, [SAID], [{}]),
    ({"type": "json_schema", "schema": RESPONSE}, [SAID], [{}]),
]


@pytest.mark.parametrize(("what", "valid", "wrong"), [*TYPES, *FORMATS])
@pytest.mark.parametrize("name", ["hermes", "gemma4", "harmony"])
def test_what_says_the_schema(name: str, what: Any, valid: list[Any], wrong: list[Any]) -> None:
    vocab = vocab_for(name)
    alone = compile_schema(what, vocab, options=Options(protocol=name)).bundle
    beside = compile_tools(TOOLS, vocab, options=Options(protocol=name, response=what)).bundle
    empty = compile_tools([], vocab, options=Options(protocol=name, response=what)).bundle
    assert alone.entry == empty.entry
    for held in (alone, beside, empty):
        for value in valid:
            assert accepts(held, framed(name, json.dumps(value)), "response")
        for value in wrong:
            assert not accepts(held, framed(name, json.dumps(value)), "response")
    equal_walks(alone, "response", empty, "response", name, walks=1)


def test_a_type_alone_needs_no_protocol() -> None:
    held = compile_schema(Point, vocab_for("json")).bundle
    assert list(held.entry) == ["start"] and accepts(held, '{"x": 1, "y": 2.5}', "start")


def test_what_says_no_schema_is_refused() -> None:
    vocab = vocab_for("hermes")
    with pytest.raises(SpecError, match="nothing constrains"):
        compile_schema({"type": "text"}, vocab)
    with pytest.raises(RequestError, match="has no schema"):
        compile_schema({"type": "json_schema", "json_schema": {"name": "x"}}, vocab)
    with pytest.raises(SpecError, match="no JSON Schema"):
        compile_schema(complex, vocab)
    with pytest.raises(SpecError, match="the spec has no tools"):
        compile_tools([], vocab, options=Options(protocol="hermes"))
    with pytest.raises(SpecError, match="found null"):
        compile_schema(None, vocab)


def test_places_are_those_of_the_response_format() -> None:
    wrong = {"type": "json_schema", "json_schema": {"schema": {"type": "object", "properties": {"a": {"type": "int"}}}}}
    with pytest.raises(Exception, match="#/json_schema/schema/properties/a/type"):
        compile_schema(wrong, vocab_for("hermes"), options=Options(protocol="hermes"))


def test_keys_of_schemas_in_protocols() -> None:
    vocab = vocab_for("hermes")
    keys = set()
    for protocol in (None, "json", "hermes"):
        options = Options(protocol=protocol)
        compiled = compile_schema(RESPONSE, vocab, options=options)
        assert compiled.report["key"] == source_key(schema_spec(RESPONSE), vocab, options)
        keys.add(compiled.report["key"])
    assert len(keys) == 3


def test_spellings_of_arguments_are_none_of_a_response() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["null", "boolean"]}}, "required": ["a"]}
    for name in ("gemma4", "qwen3_coder", "lfm2", "functiongemma", "pythonic"):
        vocab = vocab_for(name)
        for held in (
            compile_schema(schema, vocab, options=Options(protocol=name, whitespace="compact")).bundle,
            compile_tools(TOOLS, vocab, options=Options(protocol=name, whitespace="compact", response=schema)).bundle,
        ):
            for entry in {"response", "either"} & set(held.entry):
                for text in ('{"a":null}', '{"a":true}', '{"a": null }', '{ "a":\n false}'):
                    assert accepts(held, text, entry), (name, entry, text)
                for text in ('{"a":None}', '{"a":True}', "{'a':null}", "{a:null}"):
                    assert not accepts(held, text, entry), (name, entry, text)


def test_a_response_beside_python_calls() -> None:
    """Brackets, strings and constants of JSON and of Python stand in one bundle, and each keeps its own."""
    for name in ("pythonic", "olmo3", "lfm2", "llama3_builtin", "gemma4", "functiongemma"):
        family, vocab = FAMILIES[name], vocab_for(name)
        schema = {"type": "array", "items": {"enum": ["get", None, True, 'a"b', "c'd"]}}
        for whitespace in ("spaced", "compact", 3, "flexible"):
            options = Options(protocol=name, whitespace=whitespace, response=schema)
            held = compile_tools(TOOLS, vocab, options=options).bundle
            said = [["get", None, True, 'a"b', "c'd"], []]
            for value in said:
                reader = Reader(held, "either")
                reader.feed_text(json.dumps(value))
                reader.finish()
                assert json.loads(reader.text) == value and not reader.calls
            call = family.write([("get", {"place": "Basel", "days": 3})])
            reader = Reader(held, "either")
            reader.feed_text(call)
            reader.finish()
            assert [one.name for one in reader.calls] == ["get"]


BODY = {
    "model": "m",
    "messages": [],
    "tools": [
        {"type": "function", "function": {"name": tool["name"], "description": "…", "parameters": tool["input_schema"]}}
        for tool in TOOLS
    ],
}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def some(mode: str, *names: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named(name) for name in names]}}


REQUESTS: list[tuple[str, dict[str, Any], str, list[str]]] = [
    ("auto", {}, "auto", []),
    ("required", {"tool_choice": "required"}, "required", []),
    ("none", {"tool_choice": "none"}, "none", []),
    ("one", {"parallel_tool_calls": False}, "auto/one", []),
    ("required-one", {"tool_choice": "required", "parallel_tool_calls": False}, "required/one", []),
    ("named", {"tool_choice": named("get_all")}, "tool:get_all", []),
    ("some", {"tool_choice": some("auto", "get", "stop.now-1")}, "auto", ["get", "stop.now-1"]),
    ("some-one", {"tool_choice": some("required", "get"), "parallel_tool_calls": False}, "required/one", ["get"]),
]


@pytest.mark.parametrize(("more", "entry", "only"), [row[1:] for row in REQUESTS], ids=[row[0] for row in REQUESTS])
@pytest.mark.parametrize("name", ["hermes", "harmony", "pythonic"])
@pytest.mark.parametrize("answer", [False, True], ids=["text", "schema"])
def test_a_request_compiled_whole(name: str, answer: bool, more: dict[str, Any], entry: str, only: list[str]) -> None:
    """Its start is, mask by mask, the entry of the tools compiled as such, and of a subset of its content."""
    vocab = vocab_for(name)
    body = BODY | more
    if answer:
        body["response_format"] = {"type": "json_schema", "json_schema": {"schema": RESPONSE}}
        entry = {"none": "response"}.get(entry, entry.replace("auto", "either"))
    compiled = compile_request(body, vocab, options=Options(protocol=name))
    held = compiled.bundle
    assert compiled.report["begins"] == held.meta["spec"]["begins"] == entry and compiled.report["unread"] == []
    tools = [tool for tool in TOOLS if not only or tool["name"] in only]
    options = Options(protocol=name, response=RESPONSE if answer else None)
    alone = compile_tools(tools, vocab, options=options).bundle
    where = f"{entry}/outside" if f"{entry}/outside" in alone.entry else entry
    equal_walks(held, "start", alone, where, name, walks=2)
    assert [tool["name"] for tool in held.tools] == [tool["name"] for tool in tools]
    request = read_spec(body)
    assert request.kind == "request" and compiled.report["key"] == source_key(request, vocab, Options(protocol=name))
    from toolc.runtime import read_request

    asked = read_request(body)
    assert asked.content is not None
    whole = compile_request(asked.content.document, vocab, options=Options(protocol=name)).bundle
    assert whole.meta["spec"]["digest"] == asked.content.digest
    begin = asked.start(whole)
    part = whole if begin.tools is None else subset(whole, begin.tools)
    equal_walks(held, "start", part, begin.entry, name, walks=2)
