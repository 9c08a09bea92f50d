"""Requests of all kinds for a small trained model, and a judge of its answers that shares nothing with toolc.

    body of a request → compile_request → bundle and entry; what the model wrote → `judge`

Judge        reads calls as a server's hermes parser does, with a regular expression and `json`, and checks arguments
             and responses with `jsonschema`.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

from toolc.compiler import Options, compile_request
from toolc.runtime import subset
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.serving.requests import Start, read_request


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    parameters["additionalProperties"] = False
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


WEATHER = _tool(
    "weather", city={"type": "string", "maxLength": 12}, days={"type": "integer", "minimum": 1, "maximum": 9}
)
ALARM = _tool("alarm", hour={"enum": [6, 7, 8]}, loud={"type": "boolean"})
ADD = _tool("add", a={"type": "number", "multipleOf": 0.5}, b={"type": "number", "multipleOf": 0.5})
PING = _tool("ping")
LISTS = [[WEATHER], [ALARM, ADD], [WEATHER, ALARM, PING]]

MOOD = {
    "type": "object",
    "properties": {"mood": {"enum": ["good", "bad"]}, "points": {"type": "integer", "minimum": 0, "maximum": 10}},
    "required": ["mood", "points"],
    "additionalProperties": False,
}
FLAGS = {"type": "array", "items": {"type": "boolean"}, "maxItems": 3}
FORMATS: list[dict[str, Any]] = [
    {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}
    for name, schema in (("mood", MOOD), ("flags", FLAGS))
]
ASKED = ["How is the weather in Basel for two days?", "Wake me at seven, quietly.", "What is 2 plus 3.5?", "Hello!"]
BUDGET = 64


def requests(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Bodies of requests: every choice of tools, response formats, greedy and sampling."""
    pick = random.Random(seed)
    bodies = []
    for number in range(count):
        body: dict[str, Any] = {"messages": [{"role": "user", "content": pick.choice(ASKED)}], "max_tokens": BUDGET}
        body["temperature"] = pick.choice([0.0, 0.0, 1.0])
        kind = number % 8
        if kind < 6:
            body["tools"] = pick.choice(LISTS)
            name = pick.choice(body["tools"])["function"]["name"]
            named = {"type": "function", "function": {"name": name}}
            allowed = {"mode": "required", "tools": [named]}
            choice = {
                1: "required",
                2: named,
                3: "none",
                4: {"type": "allowed_tools", "allowed_tools": allowed},
                5: "required",
            }
            if kind in choice:
                body["tool_choice"] = choice[kind]
            if kind == 5:
                body["parallel_tool_calls"] = False
        else:
            body["response_format"] = FORMATS[kind - 6]
        bodies.append(body)
    return bodies


@cache
def _compiled(content: str, tokenizer: Path) -> Bundle:
    return compile_request(json.loads(content), tokenizer, options=Options(protocol="hermes")).bundle


def held(body: dict[str, Any], tokenizer: Path) -> tuple[Bundle, str]:
    """The bundle of a request, and its entry."""
    request = read_request(body)
    assert request.content is not None
    bundle = _compiled(json.dumps(request.content.document), tokenizer)
    start: Start = request.start(bundle, "")
    return (bundle if start.tools is None else subset(bundle, start.tools)), start.entry


_CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def judge(body: dict[str, Any], text: str) -> list[tuple[str, Any]]:
    """The calls in a text; raises AssertionError or ValidationError if it does not answer the request."""
    if "response_format" in body:
        jsonschema.validate(json.loads(text), body["response_format"]["json_schema"]["schema"])
        return []
    calls = [(call["name"], call["arguments"]) for call in map(json.loads, _CALL.findall(text))]
    outside = _CALL.sub("", text)
    assert "<tool_call>" not in outside and "</tool_call>" not in outside, text
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    for name, arguments in calls:
        jsonschema.validate(arguments, schemas[name])
    choice = body.get("tool_choice", "auto")
    if choice == "none":
        assert not calls, text
    elif choice != "auto":
        assert calls and not outside.strip(), text
    if isinstance(choice, dict):
        one = choice if choice["type"] == "function" else choice["allowed_tools"]["tools"][0]
        assert {name for name, _ in calls} == {one["function"]["name"]}, text
        assert choice["type"] != "function" or len(calls) == 1, text
    if body.get("parallel_tool_calls") is False:
        assert len(calls) <= 1, text
    return calls


def messages(body: dict[str, Any]) -> list[dict[str, str]]:
    """The messages with the tools told in words, as the template of a small model has no place for them."""
    told = "You may call these tools: " + json.dumps([tool["function"] for tool in body.get("tools", [])])
    return [{"role": "system", "content": told if "tools" in body else "Answer in JSON."}, *body["messages"]]
