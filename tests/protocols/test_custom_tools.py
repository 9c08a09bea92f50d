"""Custom tools: their inputs in every protocol, masks against every token, places of refusals, bodies of requests."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tests.cases.custom_tools import FUNCTION, INVALID, LARK, REFUSED, REGEX, VALID, chat, flat, three
from tests.cases.protocols import FAMILIES
from tests.lift.brute import brute_mask
from toolc.compiler import Options, compile_request, compile_tools, read_spec
from toolc.compiler.errors import GrammarError, ToolcError, UnsupportedError
from toolc.runtime import Bundle, DecodeError, Matcher, Reader, read_calls, write_calls
from toolc.runtime.errors import RequestError
from toolc.runtime.serving.requests import read_request

from .allowed import masks_allow
from .test_protocols import allowed
from .vocabularies import vocab_for


def compiled(tools: list[Any], protocol: str = "harmony") -> Bundle:
    return compile_tools(tools, vocab_for(protocol), options=Options(protocol=protocol)).bundle


HEADS = (
    "<|channel|>commentary to=functions.{}<|message|>{}<|call|>",
    " to=functions.{}<|channel|>commentary<|message|>{}<|call|>",
)


@pytest.mark.parametrize("form", [chat, flat])
@pytest.mark.parametrize("head", HEADS)
def test_a_text_in_a_call(form: Any, head: str) -> None:
    held = compiled([*three(form), FUNCTION])
    for name, texts in VALID.items():
        for text in texts:
            said = head.format(name, text)
            (call,) = read_calls(held, said)
            assert (call.name, call.input, dict(call.arguments), call.mode) == (name, text, {"input": text}, "text")
            assert masks_allow(held, said.encode(), "required")
        for text in INVALID[name]:
            with pytest.raises(DecodeError):
                read_calls(held, head.format(name, text))
            assert not masks_allow(held, head.format(name, text).encode(), "required")
    said = '<|channel|>commentary to=functions.add <|constrain|>json<|message|>{"a":1}<|call|>'
    (call,) = read_calls(held, said)
    assert call.input is None and call.arguments == {"a": 1}


def test_what_is_written_is_read_and_streamed_back() -> None:
    held = compiled([*three(chat), FUNCTION])
    for name, texts in VALID.items():
        for text in texts:
            written = write_calls(Reader(held, "required/one"), [(name, {"input": text})])
            assert written is not None
            reader = Reader(held, "required/one")
            events = [event for piece in written.text.decode() for event in reader.feed_text(piece)]
            events += reader.finish()
            assert "".join(event.text for event in events if event.kind == "arguments") == text
            assert [(call.name, call.input) for call in reader.calls] == [(name, text)]
        for text in INVALID[name]:
            assert write_calls(Reader(held, "required/one"), [(name, {"input": text})]) is None
    assert write_calls(Reader(held, "required/one"), [("code", {"x": "a"})]) is None


def test_masks_against_every_token() -> None:
    held = compiled([*three(chat), FUNCTION])
    rng = random.Random(0)
    for entry in ("start", "required", "tool:sql", "tool:code", "tool:when"):
        matcher = Matcher(held, entry)
        for _ in range(16):
            mask = allowed(matcher).astype(bool)
            assert np.array_equal(mask, brute_mask(held, matcher))
            matcher.advance(rng.choice(np.flatnonzero(mask).tolist()))
            if matcher.is_finished:
                break


@pytest.mark.parametrize("protocol", sorted(set(FAMILIES) - {"harmony", "restgpt"}))
def test_other_protocols_write_a_string(protocol: str) -> None:
    held = compiled([flat("code"), flat("when", "regex", REGEX), FUNCTION], protocol)
    for name, text in (("code", 'a\n"b" é'), ("when", "2026-11")):
        written = write_calls(Reader(held, "required/one"), [(name, {"input": text})])
        assert written is not None
        assert [(call.name, call.input) for call in written.reader.calls] == [(name, text)]
    assert write_calls(Reader(held, "required/one"), [("when", {"input": "2026"})]) is None
    with pytest.raises(
        UnsupportedError, match="compile for a protocol whose calls have a place for text: harmony"
    ) as caught:
        compiled([chat("sql", "lark", LARK), FUNCTION], protocol)
    assert caught.value.place == "spec#/0/custom/format/grammar/definition"
    with pytest.raises(GrammarError, match="unbalanced parenthesis"):  # it would close the group around it
        compiled([flat("when", "regex", "a)|(?:b"), FUNCTION], protocol)


@pytest.mark.parametrize(("tool", "place", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(tool: Any, place: str, words: str) -> None:
    with pytest.raises(ToolcError) as caught:
        compiled([tool])
    assert (caught.value.place or "").startswith(f"spec{place}") and words in str(caught.value)


def test_what_is_refused_may_be_left_out() -> None:
    tools = [chat("sql", "lark", LARK), FUNCTION]
    made = compile_tools(tools, vocab_for("hermes"), options=Options(protocol="hermes", skip=True))
    assert made.report["tools"] == ["add"] and [one["tool"] for one in made.report["skipped"]] == ["sql"]


def test_a_grammar_whose_recursion_has_no_brackets() -> None:
    held = compiled([chat("deep", "lark", 'start: "x" start "y" | "z"'), FUNCTION])
    assert read_calls(held, HEADS[0].format("deep", "xxzyy"))[0].input == "xxzyy"
    with pytest.raises(GrammarError, match="text on both sides") as caught:
        compiled([chat("deep", "lark", 'start: "x" start "y" | start "+" "n" | "z"'), FUNCTION])
    assert caught.value.place == "rule _custom0_start (spec#/0/custom/format/grammar/definition)"


def test_namespaces() -> None:
    inner = [{"type": "function", "name": "get", "parameters": {"type": "object"}}, flat("note")]
    space = {"type": "namespace", "name": "crm", "description": "d", "tools": inner}
    spec = read_spec([space, flat("note")])
    assert [(tool.name, tool.pointer) for tool in spec.tools] == [
        ("crm__get", "/0/tools/0/parameters"), ("crm__note", "/0/tools/1"), ("note", "/1"),
    ]  # fmt: skip
    held = compiled([space, flat("note")])
    assert read_calls(held, HEADS[0].format("crm__note", "hi"))[0].input == "hi"
    for wrong in ({**space, "name": 3}, {**space, "tools": None}):
        with pytest.raises(ToolcError):
            read_spec([wrong])


def test_bodies_of_requests() -> None:
    chats = {"model": "m", "messages": [], "tools": [*three(chat), FUNCTION]}
    space = {"type": "namespace", "name": "crm", "tools": [flat("note")]}
    flats = {"model": "m", "input": "x", "tools": [*three(flat), {"type": "function", **FUNCTION["function"]}]}
    one, other = read_request(chats).content, read_request(flats).content
    assert one is not None and one == other and one.digest == other.digest
    assert read_request(one.document).content == one
    held = compile_request(flats, vocab_for("harmony"), options=Options(protocol="harmony")).bundle
    assert held.meta["spec"]["digest"] == one.digest
    for choice in ({"type": "custom", "name": "sql"}, {"type": "custom", "custom": {"name": "sql"}}):
        start = read_request({**chats, "tool_choice": choice}).start(held)
        assert start.entry.startswith("tool:sql")
    some = {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "custom", "name": "sql"}, {"type": "function", "name": "add"}],
    }
    assert read_request({**flats, "tool_choice": some}).allowed == ("sql", "add")
    with pytest.raises(RequestError, match="another type") as caught:
        read_request({**chats, "tool_choice": {"type": "custom", "name": "add"}})
    assert caught.value.place == "request#/tool_choice/type"
    spaced = {"model": "m", "input": "x", "tools": [space], "tool_choice": {"type": "custom", "name": "crm__note"}}
    assert read_request(spaced).asks == "tool:crm__note"
    wrong = {**flats, "tools": [flat("a", "lark", "start: (")]}
    with pytest.raises(ToolcError) as found:
        compile_request(wrong, vocab_for("harmony"), options=Options(protocol="harmony"))
    assert (found.value.place or "").startswith("request#/tools/0/format/definition")
