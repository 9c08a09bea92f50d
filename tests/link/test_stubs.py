"""Numbers of stubs: written in few symbols, read back from the text and from the automaton."""

from __future__ import annotations

import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.link.split import written_number
from toolc.compiler.link.tool_groups import _STUB
from toolc.runtime import DecodeError, Reader

from .test_link import own_cache

__all__ = ["own_cache"]

BORDERS = (0, 9, 10, 35, 36, 71, 72)  # of digits and of lengths


def test_numbers_are_read_as_they_are_written() -> None:
    numbers = [*range(3000), 36**5 - 1, 36**5]
    texts = [written_number(number) for number in numbers]
    assert [int(text, 36) for text in texts] == numbers
    assert all(_STUB.fullmatch(b"\xff%b\xff" % text) for text in texts)


def test_each_of_many_tools_has_its_own_arguments() -> None:
    tools = [
        {"name": f"t{n}", "input_schema": {"properties": {f"p{n}": {"const": n}}, "additionalProperties": False}}
        for n in range(max(BORDERS) + 1)
    ]
    bundle = compile_tools(tools, options=Options(protocol="hermes", named=False, jobs=1)).bundle
    for n in BORDERS:
        reader = Reader(bundle, "required")
        reader.feed_text(f'<tool_call>\n{{"name": "t{n}", "arguments": {{"p{n}": {n}}}}}\n</tool_call>')
        reader.finish()
        assert [(call.name, call.arguments) for call in reader.calls] == [(f"t{n}", {f"p{n}": n})]
        with pytest.raises(DecodeError):
            Reader(bundle, "required").feed_text(f'<tool_call>\n{{"name": "t{n}", "arguments": {{"p{n + 1}')
