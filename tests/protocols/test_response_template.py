"""Protocols derived from the response templates of checkpoints: what they accept is what the template reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.errors import GrammarError, UnsupportedError
from toolc.compiler.grammar.protocol import load_protocol
from toolc.runtime import read_calls

from .test_protocols import TOOLS
from .vocabularies import vocab_for

NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
THINK = {"open": "<think>", "close": "</think>"}
CALL = ("get", {"place": "Bern", "days": 3})
A = '{"place": "Bern", "days": 3}'
P = "<parameter=place>\nBern\n</parameter>"
ROWS: list[tuple[str, dict[str, Any], list[tuple[str, str]], list[str]]] = [
    (
        "hermes",
        {
            "thinking": THINK,
            "tool_calls": {"open": "<tool_call>", "close": "</tool_call>", "repeats": True, "content": "json",
                           "transform": {"type": "function", "function": "{content}"}},
            "content": {"close": "<|im_end|>"},
        },
        [
            ("required", f'<tool_call>\n{{"name": "get", "arguments": {A}}}\n</tool_call>'),
            ("auto/outside", f'<think>hm</think>\n\nI look.<tool_call>{{"name": "get", "arguments": {A}}}</tool_call>'),
        ],
        [f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>' for name in ("got", "get")],
    ),
    (
        "cohere",
        {
            "thinking": {"open": "<|START_THINKING|>", "close": "<|END_THINKING|>"},
            "content": {"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>"},
            "tool_calls": {"open": "<|START_ACTION|>", "close": "<|END_ACTION|>", "content": "json",
                           "transform_each": True,
                           "transform": {"function": {"name": "{tool_name}", "arguments": "{parameters}"}}},
        },
        [("required/outside", "<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n    "
          f'{{"tool_name": "get", "parameters": {A}}}\n]<|END_ACTION|>')],
        ['<|START_ACTION|>{"tool_name": "get", "parameters": ' + A + "}<|END_ACTION|>"],
    ),
    (
        "harmony",
        {
            "thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
            "content": {"open": "<|channel|>final<|message|>", "close": "<|end|>"},
            "tool_calls": {"open_pattern": r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>",
                           "content": "json", "transform": NAMED},
        },
        [("required", f"<|channel|>commentary to=functions.get<|message|>{A}")],
        [f"<|channel|>commentary to=functions.got<|message|>{A}"],
    ),
    (
        "qwen3_coder",
        {
            "thinking": {"open_pattern": r"(?:^|<think>\s*)", "close": "</think>"},
            "tool_calls": {"open_pattern": r"<tool_call>\s*<function=(?P<name>\w+)>", "close": "</tool_call>",
                           "repeats": True, "content": "xml-inline", "transform": NAMED,
                           "content_args": {"tag_pattern": r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>",
                                            "value_parser": {"name": "json", "args": {"allow_non_json": True}}}},
        },
        [
            ("required", f"<tool_call>\n<function=get>\n{P}\n<parameter=days>\n3\n</parameter>\n</tool_call>"),
            ("required/outside", f"<think>\nhm</think>\n\n<tool_call><function=get>{P}<parameter=days>\n3\n</parameter>"
             "</tool_call>"),
        ],
        [f"<tool_call>\n<function=get>\n{P}\n<parameter=days>\n30\n</parameter>\n</tool_call>"],
    ),
    (
        "gemma4",
        {
            "thinking": {"open": "<|channel>thought\n", "close": "<channel|>"},
            "tool_calls": {"open_pattern": r"<\|tool_call>call:(?P<name>\w+)", "close": "<tool_call|>", "repeats": True,
                           "content": "json", "transform": NAMED,
                           "content_args": {"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]}},
            "content": {"close": ["<turn|>", "<eos>"]},
        },
        [("auto/outside", "<|channel>thought\nhm<channel|>"
          '<|tool_call>call:get{place:<|"|>Bern<|"|>,days:3}<tool_call|>')],
        ['<|tool_call>call:get{place:"Bern"}<tool_call|>'],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("family", "fields", "accepted", "refused"), ROWS, ids=[row[0] for row in ROWS])
def test_derived(family: str, fields: Any, accepted: Any, refused: list[str], tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"response_template": {"version": 1, "start_anchor": "x", "fields": fields}})
    )
    made = compile_tools(TOOLS, vocab_for(family), options=Options(protocol=tmp_path, named=False))
    assert made.report["parts"] is not None and made.report["parts"]["all"] == len(TOOLS)
    held = made.bundle
    for entry, text in accepted:
        assert check(held, text.encode(), entry)["accepted"], check(held, text.encode(), entry)
        assert [(call.name, call.arguments) for call in read_calls(held, text, entry)] == [CALL]
        assert not check(held, text.encode() + b"x", "required")["accepted"]
    for text in refused:
        assert not check(held, text.encode(), "required")["accepted"], text
    said = {"cohere": "<|START_RESPONSE|>Hi.<|END_RESPONSE|>", "harmony": "<|channel|>final<|message|>Hi.<|end|>"}
    assert check(held, said.get(family, "Hi.").encode(), "none")["accepted"]


def test_refused(tmp_path: Path) -> None:
    for fields, words in (
        ({"content": {}}, "no field tool_calls"),
        ({"tool_calls": {"open": "<a>", "content": "kv-lines"}}, "not JSON"),
        ({"tool_calls": {"open": ["<a>", "<b>"], "content": "json"}}, "several ways"),
        ({"tool_calls": {"open_pattern": r"[ab]{3}", "content": "json"}}, "the pattern"),
    ):
        (tmp_path / "x.json").write_text(json.dumps({"fields": fields}))
        with pytest.raises(UnsupportedError, match=words):
            load_protocol(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(GrammarError, match="no response template"):
        load_protocol(tmp_path / "x.json")
