"""Texts for the engines' parsers of calls: what the docs show of each protocol, and other forms of its masks."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "protocols.md"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "current_weather",
            "parameters": {
                "type": "object",
                "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["place"],
            },
        },
    },
    {"type": "function", "function": {"name": "list_stations", "parameters": {"type": "object", "properties": {}}}},
]
CALLS = [("current_weather", {"place": "Basel", "days": 3}), ("list_stations", {})]


@cache
def examples() -> dict[str, tuple[str, list[str]]]:
    """Protocol → what its models write, and the tokens in it."""
    text = DOCS.read_text(encoding="utf-8")
    found = re.findall(r"^### (\w+)\n\n(.*?)\n\n~~~text\n(.*?)\n~~~", text, re.MULTILINE | re.DOTALL)
    return {name: (calls, re.findall(r"`([^`]+)`", about)) for name, about, calls in found}


CURRENT = '{"place": "Basel", "days": 3}'
STEP3_CALL = (
    '<steptml:invoke name="current_weather">{new}<steptml:parameter name="place">{place}</steptml:parameter>{new}'
    '<steptml:parameter name="days">3</steptml:parameter>{new}</steptml:invoke>'
)
STEP3_NONE = '<steptml:invoke name="list_stations">{new}</steptml:invoke>'
STEP3_BOTH = STEP3_CALL + "<｜tool_call_end｜>{new}<｜tool_call_begin｜>{new}function<｜tool_sep｜>" + STEP3_NONE


def step3(calls: str, new: str, place: str = "Basel") -> str:
    """Calls of Step-3 with this between the parts."""
    text = f"<｜tool_calls_begin｜>{{new}}<｜tool_call_begin｜>{{new}}function<｜tool_sep｜>{calls}<｜tool_call_end｜>"
    return (text + "{new}<｜tool_calls_end｜>").replace("{new}", new).replace("{place}", place)
