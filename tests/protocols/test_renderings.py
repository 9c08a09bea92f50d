"""What chat templates and encoders of the families write is accepted and read back: tests/cases/renderings.py."""

from __future__ import annotations

import functools

import pytest

from tests.cases.renderings import RENDERINGS, TOOLS, Rendering
from toolc.compiler import Options, compile_tools
from toolc.compiler.commands.check import check
from toolc.runtime import read_calls
from toolc.runtime.bundle import Bundle

from .vocabularies import vocab_for


@functools.cache
def bundle(protocol: str, whitespace: str) -> Bundle:
    options = Options(protocol=protocol, named=False, whitespace=whitespace)
    return compile_tools(TOOLS, vocab_for(protocol), options=options).bundle


@pytest.mark.parametrize("row", RENDERINGS, ids=lambda row: f"{row.protocol}-{row.entry}-{RENDERINGS.index(row)}")
def test_accepted_and_read_back(row: Rendering) -> None:
    held = bundle(row.protocol, row.whitespace)
    result = check(held, row.text.encode(), row.entry)
    assert result["accepted"], (row.text.encode()[: result["offset"]].decode(errors="replace"), result)
    assert [(call.name, call.arguments) for call in read_calls(held, row.text, row.entry)] == row.calls


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
