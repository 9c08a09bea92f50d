"""Calls are read back as they were written, wherever a text breaks off; and the bundle says which are valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.speculate.small import SPACE, bundle
from toolc.runtime.speculate.calls import FORMATS, Call, format_of
from toolc.runtime.speculate.check import CallChecker
from toolc.runtime.speculate.errors import SpeculateError

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{<"), max_size=8)
ARGUMENTS = st.dictionaries(TEXT, st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\{}<>é', max_size=6))
CALLS = st.lists(st.tuples(st.sampled_from(["a", "a.b-c_d", "x"]), ARGUMENTS), max_size=3)


@given(st.sampled_from(sorted(FORMATS)), TEXT, CALLS, st.booleans())
def test_read_what_was_written(name: str, lead: str, calls: list[tuple[str, Any]], compact: bool) -> None:
    format = FORMATS[name]
    text = lead + "".join(format.write(tool, arguments, compact) for tool, arguments in calls)
    reading = format.read(text)
    assert [(call.name, call.arguments) for call in reading.calls] == calls
    assert reading.content == lead and reading.open is None


@given(st.sampled_from(sorted(FORMATS)), st.sampled_from(["a", "b.c"]), ARGUMENTS)
def test_every_beginning_of_a_call(name: str, tool: str, arguments: dict[str, Any]) -> None:
    format = FORMATS[name]
    text = format.write(tool, arguments)
    settled = text.index(format.middle, len(format.begin) + len(tool))
    for length in range(len(text)):
        reading = format.read(text[:length])
        assert not reading.calls
        assert reading.open == ((tool, settled) if length > settled else None)


def test_blanks_are_free() -> None:
    text = '<tool_call>\n\n {"name"\t:\n"look" , "arguments":\n{"a" : 1}\n }  </tool_call>\n<tool_call>{"name":"x"'
    reading = FORMATS["hermes"].read(text)
    assert [(call.name, call.arguments, call.text) for call in reading.calls] == [("look", {"a": 1}, '{"a" : 1}')]
    assert reading.open is not None and reading.open[0] == "x"
    assert FORMATS["hermes"].read("a <tool_call> b").content == "a <tool_call> b"
    assert FORMATS["json"].read('{"name": 1} {"a"').calls == ()
    with pytest.raises(SpeculateError, match="JSON object"):
        FORMATS["json"].read('{"name": "a", "arguments": 3}')
    with pytest.raises(SpeculateError, match="cannot be read"):
        format_of("harmony")


@pytest.mark.parametrize("protocol", ["hermes", "json", "llama3"])
def test_the_bundle_checks_guesses(protocol: str) -> None:
    checker = CallChecker(bundle(protocol))
    for arguments in SPACE:
        assert checker.accepts(Call("look", arguments))
    for name, arguments in (
        ("none", SPACE[0]),
        ("look", {}),
        ("look", {"place": "Basel"}),
        ("look", {"place": "Basel", "days": 9}),
        ("look", {"place": "Basel", "days": 1, "more": 1}),
        ("look", {"days": 1, "place": "Basel"}),  # not in the declared order: lost, not run
        ("look", {"place": 'Basel"}}', "days": 1}),
    ):
        assert not checker.accepts(Call(name, arguments))
