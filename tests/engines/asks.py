"""Requests of every kind by the `openai` client, and an independent judge of their answers.

Leaves out   the server: see serving.py.
Judge        `jsonschema`, and the JSON of the standard library; nothing of toolc.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema

Json = dict[str, Any]
PROMPTS = ("How is the weather in Basel in the next days?", "Add 3 and 4.", "Find a train to Bern at noon.", "Hello!")


def tool(name: str, parameters: Json, **more: Any) -> Json:
    """A tool of chat completions."""
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters, **more}}


def _object(properties: Json, **more: Any) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), **more}


def lists(strict: bool = False) -> list[list[Json]]:
    """Three lists of tools."""
    more = {"strict": True} if strict else {}
    closed = {"additionalProperties": False}
    place = {"type": "string", "minLength": 1, "maxLength": 12}
    return [
        [
            tool("weather", _object({"place": place, "days": {"type": "integer", "minimum": 1, "maximum": 9}}), **more),
            tool("stations", _object({"state": {"enum": ["BS", "ZH", "BE"]}}, **closed), **more),
        ],
        [
            tool("add", _object({"a": {"type": "number", "maximum": 99}, "b": {"type": "integer"}}, **closed), **more),
            tool("negate", _object({"a": {"type": "integer"}}, **closed), **more),
            tool("done", {"type": "object", "properties": {}, **closed}, **more),
        ],
        [
            tool(
                "train",
                _object(
                    {"to": {"enum": ["Bern", "Chur"]}, "at": {"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"}}
                ),
                **more,
            )
        ],
    ]


def formats() -> list[Json]:
    """Two response formats, and any object."""
    city = _object({"city": {"type": "string", "maxLength": 12}, "n": {"type": "integer"}}, additionalProperties=False)
    tags = _object({"tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3}})
    return [
        {"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": city}},
        {"type": "json_schema", "json_schema": {"name": "tags", "schema": tags}},
        {"type": "json_object"},
    ]


@dataclass(frozen=True)
class Ask:
    """A request of chat completions.

    Attributes:
        name: of its kind.
        fields: of the body, beside model and messages.
        prompt: what the user says.
        callable: tools that may be called.
        least, most: calls that the answer may have.
        format: of an answer without calls.
    """

    name: str
    fields: Json
    prompt: str = PROMPTS[0]
    callable: tuple[str, ...] = ()
    least: int = 0
    most: int = 99
    format: Json | None = None

    @property
    def is_free(self) -> bool:
        """Whether nothing constrains it."""
        return "tools" not in self.fields and self.format is None


def kinds(tools: list[Json], format: Json) -> list[Ask]:
    """One request of every kind."""
    names = tuple(one["function"]["name"] for one in tools)
    last = {"type": "function", "function": {"name": names[-1]}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [last]}}
    maybe = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [last]}}
    return [
        Ask("free", {}),
        Ask("auto", {"tools": tools}, callable=names),
        Ask("required", {"tools": tools, "tool_choice": "required"}, callable=names, least=1),
        Ask(
            "required, one",
            {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False},
            callable=names,
            least=1,
            most=1,
        ),
        Ask("auto, one", {"tools": tools, "parallel_tool_calls": False}, callable=names, most=1),
        Ask("named", {"tools": tools, "tool_choice": last}, callable=names[-1:], least=1, most=1),
        Ask("allowed, required", {"tools": tools, "tool_choice": allowed}, callable=names[-1:], least=1),
        Ask("allowed, auto", {"tools": tools, "tool_choice": maybe}, callable=names[-1:]),
        Ask("none", {"tools": tools, "tool_choice": "none"}, most=0),
        Ask("format", {"response_format": format}, format=format, most=0),
        Ask("either", {"tools": tools, "response_format": format}, callable=names, format=format),
    ]


def mixed(count: int, seed: int = 1) -> Iterator[Ask]:
    """So many requests of all kinds, greedy and sampling, streaming or not."""
    rng = random.Random(seed)
    for number in range(count):
        ask = rng.choice(kinds(rng.choice(lists(strict=rng.random() < 0.3)), rng.choice(formats())))
        fields = {**ask.fields, "stream": rng.random() < 0.5, "max_tokens": rng.choice((96, 128, 160))}
        fields |= {"temperature": 0} if rng.random() < 0.5 else {"temperature": 1.0, "seed": number}
        yield Ask(ask.name, fields, rng.choice(PROMPTS), ask.callable, ask.least, ask.most, ask.format)


@dataclass
class Said:
    """An answer, whole."""

    content: str = ""
    calls: list[list[str]] = field(default_factory=list)
    reason: str | None = None


async def say(client: Any, ask: Ask, model: str = "small") -> Said:
    """The answer to a request by an asynchronous client of `openai`."""
    messages = [{"role": "user", "content": ask.prompt}]
    answer = await client.chat.completions.create(model=model, messages=messages, **ask.fields)
    said = Said()
    if not ask.fields.get("stream"):
        message = answer.choices[0].message
        said.content, said.reason = message.content or "", answer.choices[0].finish_reason
        said.calls = [[call.function.name, call.function.arguments] for call in message.tool_calls or ()]
        return said
    async for chunk in answer:
        for choice in chunk.choices:
            said.content += choice.delta.content or ""
            said.reason = choice.finish_reason or said.reason
            for call in choice.delta.tool_calls or ():
                while len(said.calls) <= call.index:
                    said.calls.append(["", ""])
                said.calls[call.index][0] += call.function.name or ""
                said.calls[call.index][1] += call.function.arguments or ""
    return said


def wrong(ask: Ask, said: Said) -> str | None:
    """What is wrong with an answer; None if it is what was asked for."""
    if ask.is_free:
        return None if not said.calls else "a call, and there are no tools"
    if said.reason == "length" and (ask.least or ask.format is not None):
        return "cut, and what was asked for fits"  # only prose is cut, which may also follow calls
    schemas = {one["function"]["name"]: one["function"]["parameters"] for one in ask.fields.get("tools", ())}
    if not ask.least <= len(said.calls) <= ask.most:
        return f"{len(said.calls)} calls"
    for name, arguments in said.calls:
        if name not in ask.callable:
            return f"a call of {name}"
        if problem := _invalid(arguments, schemas[name]):
            return problem
    if said.reason == "length":
        return None
    if said.calls:
        usual = "stop" if ask.name == "named" else "tool_calls"
        return None if said.reason == usual else f"finish_reason {said.reason}"
    if said.reason != "stop":
        return f"finish_reason {said.reason}"
    if ask.format is not None:
        inner = ask.format.get("json_schema", {"schema": {"type": "object"}})
        return _invalid(said.content, inner["schema"])
    return None


def _invalid(text: str, schema: Json) -> str | None:
    try:
        jsonschema.Draft202012Validator(schema).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{text[:200]!r}: {error}"[:300]
    return None
