"""What chat templates and encoders of the families write is accepted and read back: tests/cases/renderings.py."""

from __future__ import annotations

import functools
import re

import pytest

from tests.cases.renderings import RENDERINGS, TOOLS, Rendering
from toolc.compiler import Options, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.grammar.protocol import load_protocol
from toolc.runtime import read_calls
from toolc.runtime.format.bundle import Bundle

from .allowed import masks_allow
from .vocabularies import vocab_for

_JSON = {"None": "null", "True": "true", "False": "false"}


@functools.cache
def bundle(protocol: str, whitespace: str) -> Bundle:
    options = Options(protocol=protocol, named=False, whitespace=whitespace)
    return compile_tools(TOOLS, vocab_for(protocol), options=options).bundle


@pytest.mark.parametrize("row", RENDERINGS, ids=lambda row: f"{row.protocol}-{row.entry}-{RENDERINGS.index(row)}")
def test_accepted_and_read_back(row: Rendering) -> None:
    held = bundle(row.protocol, row.whitespace)
    texts = [row.text]
    if load_protocol(row.protocol).strings("READ_NULL"):  # what templates write so is read, and never written
        texts.append(re.sub(r"(?<=[:\n>])(None|True|False)(?=[,}\n<])", lambda one: _JSON[one[0]], row.text))
        assert len(set(texts)) == 1 or not masks_allow(held, row.text.encode(), row.entry)
    assert masks_allow(held, texts[-1].encode(), row.entry)
    for text in texts:
        result = check(held, text.encode(), row.entry)
        assert result["accepted"], (text.encode()[: result["offset"]].decode(errors="replace"), result)
        assert [(call.name, call.arguments) for call in read_calls(held, text, row.entry)] == row.calls


def test_an_empty_rule_is_no_rule_of_any_value() -> None:
    """A tool that takes nothing, after one that takes anything, once took anything, too."""
    tools = [
        {"name": "any", "parameters": {"type": "object", "properties": {"x": {}}}},
        {"name": "none", "parameters": {"type": "object", "additionalProperties": False}},
    ]
    held = compile_tools(tools, vocab_for("glm47"), options=Options(protocol="glm47", named=False)).bundle
    assert check(held, b"<tool_call>none</tool_call>", "required")["accepted"]
    assert not check(held, b"<tool_call>none7</tool_call>", "required")["accepted"]
    assert not check(held, b"<tool_call>none{}</tool_call>", "required")["accepted"]
