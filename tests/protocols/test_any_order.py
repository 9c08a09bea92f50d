"""Calls with many keys in any order, which a register keeps: read back as they were written, and written as given."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest

from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_tools
from toolc.runtime import Reader, explain, read_calls
from toolc.runtime.calls.whole_text import read_whole
from toolc.runtime.calls.writer import write_call, write_calls
from toolc.runtime.format.bundle import Bundle

from .vocabularies import vocab_for

LEAVES = [{"type": "integer"}, {"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "integer"}}]
VALUES = [7, 'a, "k1": {', True, [1, 2]]
TWELVE = {
    "type": "object",
    "properties": {f"k{n}": LEAVES[n % 4] for n in range(12)},
    "required": ["k1", "k4", "k10"],
    "additionalProperties": False,
}
TOOLS = [
    {"name": "wide", "input_schema": TWELVE},
    {"name": "deep", "input_schema": {"type": "object", "properties": {"at": TWELVE, "n": {"type": "integer"}, "all": {
        "type": "array", "items": TWELVE}}, "required": ["at"], "additionalProperties": False}},
]  # fmt: skip
PROTOCOLS = pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder"])


@cache
def bundle(protocol: str) -> Bundle:
    made = compile_tools(TOOLS, vocab_for(protocol), options=Options(key_order="any", protocol=protocol, jobs=1)).bundle
    assert made.tables.has_registers
    return made


def some(pick: random.Random, free: bool = True) -> dict[str, Any]:
    """Arguments of the object of twelve keys."""
    keys = {1, 4, 10, *pick.sample(range(12), pick.randrange(8))}
    order = pick.sample(sorted(keys), len(keys)) if free else sorted(keys)
    return {f"k{n}": VALUES[n % 4] for n in order}


def call(pick: random.Random, protocol: str) -> tuple[str, dict[str, Any]]:
    """A call; arguments that stand in no braces have the declared order."""
    if pick.random() < 0.4:
        return "wide", some(pick, protocol == "hermes")
    members = {"n": 3, "at": some(pick), "all": [some(pick), some(pick)]}
    return "deep", {key: members[key] for key in pick.sample(["n", "at", "all"], 3)}


def told(calls: list[Any]) -> str:
    """A text that tells calls apart, by the order of their keys, too."""
    return json.dumps([[one.name, one.arguments] for one in calls])


@PROTOCOLS
def test_calls_are_read_back(protocol: str) -> None:
    made, pick, family = bundle(protocol), random.Random(protocol), FAMILIES[protocol]
    for _ in range(12):
        wanted = [call(pick, protocol) for _ in range(pick.choice([1, 2]))]
        text = family.write(wanted)
        found = read_calls(made, text)
        assert told(found) == json.dumps([list(one) for one in wanted])
        reader, at = Reader(made), 0
        while at < len(text):
            size = pick.randint(1, 9)
            reader.feed_text(text[at : at + size])
            at += size
            reader = reader.fork()
        reader.finish()
        assert reader.is_whole and told(reader.calls) == told(found)


@PROTOCOLS
def test_blanks_are_read_where_masks_have_none(protocol: str) -> None:
    made, pick = bundle(protocol), random.Random(protocol)
    for _ in range(4):
        arguments = some(pick)
        loose = json.dumps(arguments, indent=3, separators=(" ,", " : "))
        text = FAMILIES[protocol].write([("deep", {"at": arguments})]).replace(json.dumps(arguments), loose)
        assert loose in text
        assert told(read_calls(made, text)) == json.dumps([["deep", {"at": arguments}]])
        assert read_whole(made, text.replace('"k4"', '"k1"'))[1] is not None


@PROTOCOLS
def test_what_is_missing_or_stands_twice_is_refused(protocol: str) -> None:
    made, pick, write = bundle(protocol), random.Random(protocol), FAMILIES[protocol].write
    for gone in ("k1", "k4", "k10"):
        whole = some(pick)
        less = {key: value for key, value in whole.items() if key != gone}
        for inner in (less, {"k0": 1, **less, "k00": 1}):
            text = write([("deep", {"at": inner})])
            assert read_whole(made, text)[1] is not None, text
            assert write_call(Reader(made), "deep", {"at": inner}) is None
        text = write([("deep", {"at": whole})])
        twice = text.replace(json.dumps(whole), json.dumps(whole)[:-1] + f', "{gone}": {json.dumps(whole[gone])}}}')
        assert read_whole(made, text)[1] is None and twice != text
        found = read_whole(made, twice)[1]
        assert found is not None and found.offset > text.index(json.dumps(whole))
    missing = write([("deep", {"at": {"k1": "x", "k4": 0, "k2": True}})])
    _, fault = read_whole(made, missing)
    assert fault is not None and fault.found.startswith("'}'")
    why = explain(made, missing)
    assert not why.allowed and why.found.startswith("'}'")


@PROTOCOLS
def test_calls_are_written_in_the_order_given(protocol: str) -> None:
    made, pick = bundle(protocol), random.Random(protocol)
    for _ in range(4):
        wanted = [call(pick, protocol) for _ in range(2)]
        found = write_calls(Reader(made), wanted)
        assert found is not None
        assert told(read_calls(made, found.text)) == json.dumps([list(one) for one in wanted])


@PROTOCOLS
def test_the_rest_of_a_call_is_written(protocol: str) -> None:
    made, arguments = bundle(protocol), {"at": some(random.Random(protocol))}
    text = FAMILIES[protocol].write([("deep", arguments)]).encode()
    begin = text.index(b'"k')
    for cut in range(begin, len(text) - 40, 17):
        reader = Reader(made)
        reader.feed_text(text[:cut])
        found = write_call(reader, "deep", arguments)
        assert found is not None and told(read_calls(made, text[:cut] + found.text)) == json.dumps(
            [["deep", arguments]]
        )
        members = list(arguments["at"].items())
        if b'"%s"' % members[-1][0].encode() in text[begin:cut]:  # members that were written stay
            assert write_call(reader, "deep", {"at": dict(members[1:])}) is None


def test_keys_without_quotes_are_kept_by_no_register() -> None:
    """A token could read such a key together with the brace before it, and nothing would look at the register."""
    keys = {f"k{n}x": {"type": "integer"} for n in range(12)}  # none begins another
    inner = {"type": "object", "properties": keys, "required": ["k3x"], "additionalProperties": False}
    schema = {"type": "object", "properties": {"at": inner}, "required": ["at"]}
    tools = [{"type": "function", "function": {"name": "deep", "parameters": schema}}]
    compiled = compile_tools(tools, "builtin", options=Options(key_order="any", protocol="functiongemma"))
    assert not compiled.bundle.tables.has_registers
    assert compiled.report["many_keys"] == ["spec#/0/function/parameters/properties/at"]
