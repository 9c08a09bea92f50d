"""null, true and false: masks write them as the parsers of servers read them, and readers take what templates write."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.errors import GrammarError
from toolc.runtime import Reader, read_calls
from toolc.runtime.calls.writer import write_call
from toolc.runtime.errors import DecodeError
from toolc.runtime.format.bundle import Bundle

from .allowed import masks_allow
from .vocabularies import vocab_for

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {
    "m": {"type": ["string", "null"]}, "n": {"type": "null"}, "any": {}, "b": {"type": "boolean"},
    "s": {"type": "string"}, "i": {"type": "integer"}, "e": {"enum": ["null", "note", "true\nx"]},
    "u": {"type": ["boolean", "string"]}, "null": {"type": "integer"},
    "l": {"type": "array", "items": {"type": ["null", "boolean"]}},
}, "additionalProperties": False}}]  # fmt: skip
AROUND = {
    "gemma4": ("<|tool_call>call:f{", "%s:%s", ",", "}<tool_call|>"),
    "functiongemma": ("<start_function_call>call:f{", "%s:%s", ",", "}<end_function_call>"),
    "qwen3_coder": (
        "<tool_call>\n<function=f>\n",
        "<parameter=%s>\n%s\n</parameter>\n",
        "",
        "</function>\n</tool_call>",
    ),
}
REFUSED = object()
ROWS: list[tuple[str, str, str, Any]] = [  # protocols, parameter, text, what is read; only JSON's spellings are masks'
    ("all", "m", "None", None), ("all", "m", "null", None), ("all", "n", "None", None), ("all", "n", "null", None),
    ("all", "any", "None", None), ("qwen3_coder", "any", "True", True), ("qwen3_coder", "b", "True", True),
    ("qwen3_coder", "b", "False", False), ("all", "b", "true", True), ("qwen3_coder", "u", "False", False),
    ("gemma4", "l", "[None,true,None]", [None, True, None]), ("functiongemma", "l", "[None]", [None]),
    ("all", "b", "None", REFUSED), ("all", "i", "None", REFUSED), ("all", "e", "None", REFUSED),
    ("all", "e", "True\nx", REFUSED), ("all", "n", "Nonex", REFUSED), ("all", "n", "Non", REFUSED),
    ("all", "n", "NONE", REFUSED), ("qwen3_coder", "l", "[None]", REFUSED), ("gemma4", "s", "None", REFUSED),
    ("qwen3_coder", "s", "None", "None"), ("qwen3_coder", "m", "Nonex", "Nonex"), ("qwen3_coder", "m", "Non", "Non"),
    ("qwen3_coder", "m", "x\nNone", "x\nNone"), ("all", "None", "1", REFUSED), ("all", "null", "1", 1),
]  # fmt: skip
EACH = [(protocol, *row[1:]) for row in ROWS for protocol in AROUND if row[0] in (protocol, "all")]


@functools.cache
def bundle(protocol: str) -> Bundle:
    return compile_tools(TOOLS, vocab_for(protocol), options=Options(protocol=protocol, named=False)).bundle


def call(protocol: str, *arguments: tuple[str, str]) -> str:
    begin, one, joint, end = AROUND[protocol]
    return begin + joint.join(one % argument for argument in arguments) + end


@pytest.mark.parametrize("protocol, key, text, value", EACH, ids=[f"{p}-{k}-{t!r}" for p, k, t, _ in EACH])
def test_constants(protocol: str, key: str, text: str, value: Any) -> None:
    held, whole = bundle(protocol), call(protocol, (key, text))
    if value is REFUSED:
        assert not masks_allow(held, whole.encode(), "required")
        with pytest.raises(DecodeError):
            read_calls(held, whole, "required")
        return
    written = text in ("null", "true", "1") or isinstance(value, str)
    assert masks_allow(held, whole.encode(), "required") is written
    read = [one.arguments for one in read_calls(held, whole, "required")]
    assert read == [{key: value}] and type(read[0][key]) is type(value)


@pytest.mark.parametrize("protocol", AROUND)
def test_several_at_once_and_byte_by_byte(protocol: str) -> None:
    arguments = [("m", "None"), ("n", "None"), ("any", "None"), ("b", "true")]
    text = call(protocol, *arguments)
    reader, events = Reader(bundle(protocol), "required"), []
    for byte in text.encode():
        events += reader.feed_text(bytes([byte]))
    events += reader.finish()
    assert [one.arguments for one in reader.calls] == [{"m": None, "n": None, "any": None, "b": True}]
    assert reader.calls[0].text == "".join(event.text for event in events if event.kind == "arguments")
    assert reader.data.decode() == text
    whole = Reader(bundle(protocol), "required")
    once = whole.feed_text(text) + whole.finish()
    assert whole.calls == reader.calls
    assert "".join(event.text for event in once if event.kind == "arguments") == reader.calls[0].text


@pytest.mark.parametrize("protocol", AROUND)
def test_null_is_written(protocol: str) -> None:
    for arguments in ({"m": None}, {"n": None, "b": True}, {"any": None}):
        written = write_call(Reader(bundle(protocol), "required"), "f", arguments)
        assert written is not None and b"null" in written.text and b"None" not in written.text
        assert b"True" not in written.text
    if protocol == "qwen3_coder":  # a string that would be read as null is none
        assert write_call(Reader(bundle(protocol), "required"), "f", {"m": "None"}) is None
        assert write_call(Reader(bundle(protocol), "required"), "f", {"s": "None"}) is not None


def test_tokens() -> None:
    held = bundle("qwen3_coder")
    reader = Reader(held, "required")
    names = held.vocab.special
    text = call("qwen3_coder", ("m", "None"), ("b", "False"))
    for piece in text.replace("</tool_call>", "").replace("<tool_call>", "<tool_call>\0").split("\0"):
        if piece in names:
            reader.feed(names[piece])
            continue
        for byte in piece.encode():
            reader.feed(next(t for t in range(held.vocab.size) if held.vocab.token(t) == bytes([byte])))
    reader.feed(names["</tool_call>"])
    reader.finish()
    assert [one.arguments for one in reader.calls] == [{"m": None, "b": False}]


@pytest.mark.parametrize("protocol", ["lfm2", "olmo3"])
def test_calls_of_python_write_both(protocol: str) -> None:
    """Their parsers read both."""
    held = bundle(protocol)
    begin, end = {"lfm2": ("<|tool_call_start|>[", "]<|tool_call_end|>")}.get(
        protocol, ("<function_calls>", "</function_calls>")
    )
    for none, true in (("None", "True"), ("null", "true")):
        text = f"{begin}f(m={none}, b={true}){end}"
        assert check(held, text.encode(), "required")["accepted"]
        assert [one.arguments for one in read_calls(held, text, "required")] == [{"m": None, "b": True}]


def test_a_spelling_of_another_length_is_refused(tmp_path: Any) -> None:
    path = tmp_path / "mine.lark"
    path.write_text('READ_NULL: "nil"\ntool{name, arguments}: name arguments\ncall{tools}: tools\n')
    with pytest.raises(GrammarError, match="4 bytes"):
        compile_tools(TOOLS, vocab_for("json"), options=Options(protocol=path))
