"""Turns as the chat templates of public packages write them: the right protocol is chosen, and what it reads back."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.cases.model_templates import NOT_READ, PROTOCOL_OF, REFUSED
from toolc.compiler.errors import SpecError
from toolc.compiler.grammar.protocol import load_protocol
from toolc.compiler.templates import Probe, bundle_of, rank_protocols, read_as, renderings
from toolc.runtime import Reader
from toolc.runtime.format.bundle import Bundle

FOLDERS = [Path(one) for one in os.environ.get("TOOLC_TEMPLATES", "").split(os.pathsep) if one]
FILES = {file.name: file for folder in FOLDERS for file in sorted(folder.glob("*.jinja"))}
pytestmark = pytest.mark.skipif(
    not FILES, reason="$TOOLC_TEMPLATES names no folders of chat templates: see tests/cases/model_templates.py"
)

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "Tell the weather.",
            "parameters": {
                "type": "object",
                "properties": {
                    "at": {"type": "object", "properties": {"lat": {"type": "number"}, "ok": {"type": "boolean"}}},
                    "days": {"type": "integer"},
                    "exact": {"type": "boolean"},
                    "note": {"type": ["string", "null"]},
                    "place": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": [],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "list_stations",
            "description": "List them.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
]
SIMPLE = ("weather", {"place": "Bern"})
TURNS = (
    Probe("simple", [SIMPLE]),
    Probe("typed", [("weather", {"days": 3, "exact": True, "place": "Zürich"})]),
    Probe("nested", [("weather", {"at": {"lat": 47.4, "ok": False}, "tags": ["a", "b c"]})]),
    Probe("null", [("weather", {"note": None, "place": "Bern"})]),
    Probe("none", [("list_stations", {})]),
    Probe("two", [SIMPLE, ("list_stations", {})]),
    Probe("content", [SIMPLE], "I look it up."),
    Probe("reasoning", [SIMPLE], "", "They ask for Bern."),
    Probe("blanks", [("weather", {"place": "Bad  Ragaz, St. Gallen"})]),
    Probe("lines", [("weather", {"place": "one\ntwo"})]),
    Probe("quotes", [("weather", {"place": 'the "Bellevue", it\'s {there}'})]),
    Probe("tags", [("weather", {"place": "<b>1 < 2 & 3</b>"})]),
)
SHOWN = json.loads(json.dumps(TOOLS).replace('["string", "null"]', '"string"'))
"""The tools for templates: those of Hermes cannot write a list of types."""
TURNS = tuple(turn._replace(tools=SHOWN) for turn in TURNS)


@cache
def bundle(protocol: str) -> Bundle:
    return bundle_of(protocol, TOOLS)


def text_of(name: str) -> str:
    """A template; the test is skipped where no folder has it."""
    if name not in FILES:
        pytest.skip(f"no folder of $TOOLC_TEMPLATES has {name}")
    return FILES[name].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PROTOCOL_OF)
def test_the_protocol_of_a_model_is_chosen(name: str) -> None:
    best = rank_protocols(text_of(name), name=name).best
    assert best is not None
    assert best.protocol == PROTOCOL_OF[name]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_nothing_is_guessed(name: str) -> None:
    assert rank_protocols(text_of(name), name=name).best is None


def unread(name: str) -> set[str]:
    """The turns of a template that are not read back; and that a reader in pieces reads the others alike."""
    template, protocol = text_of(name), PROTOCOL_OF[name]
    found = set()
    for turn in TURNS:
        try:
            texts = renderings(template, name, {}, turn)
        except SpecError:
            found.add(turn.name)
            continue
        ways = (read_as(bundle(protocol), load_protocol(protocol).marks, text, turn.calls) for text in texts)
        read = next((way for way in ways if way is not None), None)
        if read is None:
            found.add(turn.name)
            continue
        entry, text = read
        reader, events = Reader(bundle(protocol), entry), []
        for byte in text.encode():
            events += reader.feed_text(bytes((byte,)))
        events += reader.finish()
        ended = [event.call for event in events if event.kind == "end" and event.call is not None]
        assert [(call.name, call.arguments) for call in ended] == turn.calls, turn.name
        assert "".join(event.text for event in events if event.kind == "name") == "".join(one for one, _ in turn.calls)
    return found


@pytest.mark.parametrize("name", PROTOCOL_OF)
def test_turns_are_read_back_and_streamed(name: str) -> None:
    assert unread(name) == NOT_READ.get(name, set())
