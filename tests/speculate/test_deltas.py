"""Deltas of a stream, put together again, are the message; for every protocol, however the text is cut."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from tests.cases.protocols import FAMILIES
from tests.protocols.test_protocols import CALLS, bundle
from toolc.runtime import Call, Reader
from toolc.runtime.calls.events import Event
from toolc.runtime.speculate.agent import calls_of
from toolc.runtime.speculate.deltas import Deltas, Gathered, call_id


def chunk(delta: dict[str, Any], finish: str | None = None) -> ChatCompletionChunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    return ChatCompletionChunk.model_validate({**head, "choices": [choice]})


def encoding(name: str) -> str:
    return str(bundle(name).meta["arguments"]["encoding"])


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "qwen3_coder", "pythonic", "gemma4", "toolkengpt"])
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_put_together(name: str, size: int) -> None:
    family, held = FAMILIES[name], bundle(name)
    text = (family.before and "Zuerst Zürich: ") + family.write(CALLS)
    reader, deltas, gathered = Reader(held, "auto"), Deltas("x", encoding(name)), Gathered()
    data, said = text.encode(), []
    for begin in range(0, len(data), size):
        said += reader.feed_text(data[begin : begin + size])
    sent = list(deltas.of([*said, *reader.finish()]))
    for one in sent:
        gathered.add(chunk(one))
    assert gathered.content == reader.text and "\ufffd" not in gathered.content
    found = calls_of(gathered.message)
    assert [(call.name, call.arguments) for call in found] == CALLS
    assert [call.id for call in found] == [call_id("x", 0, n) for n in range(len(CALLS))]
    arguments = [one for one in sent if "tool_calls" in one and "id" not in one["tool_calls"][0]]
    if encoding(name) == "json" and size == 1:
        assert len(arguments) > len(CALLS) + 20  # as they come
    if encoding(name) != "json":
        assert len(arguments) == len(CALLS)  # in one piece: what is written is no JSON


def test_a_name_that_is_settled_last() -> None:
    said = [
        Event("call", number=0),
        Event("arguments", '{"a": ', 0),
        Event("arguments", "1}", 0),
        Event("name", "t", 0),
        Event("end", number=0, call=Call("t", {"a": 1}, '{"a": 1}')),
    ]
    (one,) = Deltas("x", "json").of(said)
    assert one["tool_calls"][0]["function"] == {"name": "t", "arguments": '{"a": 1}'}


def test_answered_and_cut_turns() -> None:
    deltas, gathered = Deltas("x", "json"), Gathered()
    named = [Event("text", "a"), Event("call", number=0), Event("name", "t", 0), Event("arguments", '{"a', 0)]
    first = list(deltas.of(named))
    for one in first:
        gathered.add(chunk(one))
    assert gathered.add(chunk({"resident": [{"role": "assistant"}]})) == [{"role": "assistant"}]
    assert gathered.message == {"role": "assistant", "content": None}
    deltas.next_turn()
    second = list(deltas.of(named))
    assert first[1]["tool_calls"][0]["id"] != second[1]["tool_calls"][0]["id"]
    for one in second:
        gathered.add(chunk(one))
    gathered.add(chunk({}, "length"))
    assert gathered.message == {"role": "assistant", "content": "a"}  # half a call is none
