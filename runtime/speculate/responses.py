"""Translate OpenAI's Responses API to chat completions and back, so that its calls can be guessed.

    input, instructions      → messages: texts, calls (`function_call`) and outputs (`function_call_output`)
    tools, tool_choice       → those of chat completions; tools that the endpoint runs itself are left out
    max_output_tokens        → max_completion_tokens
    output of a response     → the message of an answer, whose calls have their `call_id` for an id

A request has no translation if its history lies with the endpoint (`previous_response_id`, `conversation`, `prompt`),
or if it holds anything but texts, calls and outputs.

Leaves out   asking: see openai.py.
Source       the types of the openai library, openai.types.responses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .agent import Message

ELSEWHERE = ("previous_response_id", "conversation", "prompt")
"""Options that say that the history lies with the endpoint."""
_SAME = ("temperature", "parallel_tool_calls")
_TEXTS = ("input_text", "output_text", "text")
_PASSED_OVER = ("reasoning", "item_reference")


class _Untranslated(Exception):
    """Something that chat completions have no form for."""


def chat_request(options: Mapping[str, Any]) -> dict[str, Any] | None:
    """The request as one for chat completions: `messages`, `tools` (functions), and the options that say which calls
    there may be; None if there is no such request."""
    if any(options.get(name) for name in ELSEWHERE):
        return None
    try:
        messages = _messages(options.get("input") or ())
        tools = [_tool(one) for one in options.get("tools") or () if _get(one, "type") == "function"]
        asked: dict[str, Any] = {"messages": messages, "tools": tools}
        choice = options.get("tool_choice")
        if isinstance(choice, (str, Mapping)):
            asked["tool_choice"] = _choice(choice)
    except _Untranslated:
        return None
    if isinstance(options.get("instructions"), str):
        messages.insert(0, {"role": "system", "content": options["instructions"]})
    if isinstance(options.get("max_output_tokens"), int):
        asked["max_completion_tokens"] = options["max_output_tokens"]
    asked |= {name: options[name] for name in _SAME if name in options}
    return asked if messages else None


def message_of(response: Any) -> Message:
    """The assistant's message that a response is; a response that is not complete has no calls."""
    content, calls = "", []
    for item in _get(response, "output") or ():
        if _get(item, "type") == "function_call":
            function = {"name": _get(item, "name"), "arguments": _get(item, "arguments")}
            calls.append({"id": _get(item, "call_id"), "type": "function", "function": function})
        elif _get(item, "type") == "message":
            content += "".join(str(_get(part, "text") or "") for part in _get(item, "content") or ())
    if _get(response, "status") not in (None, "completed"):
        calls = []
    return {"role": "assistant", "content": content or None} | ({"tool_calls": calls} if calls else {})


class GatheredResponse:
    """What the events of a stream say of its response; see `deltas.Gathered`."""

    def __init__(self) -> None:
        self.id = ""
        self.finish: str | None = None
        self.message: Message = {"role": "assistant", "content": None}

    def add(self, event: Any) -> None:
        """Take an event."""
        response, kind = _get(event, "response"), _get(event, "type")
        self.id = self.id or _get(response, "id") or ""
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.finish = str(kind).rpartition(".")[2]
            self.message = message_of(response)


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _messages(given: str | Iterable[Any]) -> list[Message]:
    """Items as messages; calls that follow one another are of one message."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    out: list[Message] = []
    for item in given:
        kind = _get(item, "type") or "message"
        if kind == "message":
            role = _get(item, "role")
            out.append({"role": "system" if role == "developer" else role, "content": _text(_get(item, "content"))})
        elif kind == "function_call":
            if not out or out[-1]["role"] != "assistant":
                out.append({"role": "assistant", "content": None})
            function = {"name": _get(item, "name"), "arguments": _get(item, "arguments")}
            call = {"id": _get(item, "call_id"), "type": "function", "function": function}
            out[-1].setdefault("tool_calls", []).append(call)
        elif kind == "function_call_output":
            output = _text(_get(item, "output"))
            out.append({"role": "tool", "tool_call_id": _get(item, "call_id"), "content": output})
        elif kind not in _PASSED_OVER:
            raise _Untranslated
    return out


def _text(content: Any) -> str:
    """Text of a message or of an output: as it is, or in parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence) or any(_get(part, "type") not in _TEXTS for part in content):
        raise _Untranslated
    return "".join(str(_get(part, "text")) for part in content)


def _tool(tool: Any) -> dict[str, Any]:
    names = ("name", "description", "parameters", "strict")
    return {"type": "function", "function": {name: _get(tool, name) for name in names if _get(tool, name) is not None}}


def _choice(choice: str | Mapping[str, Any]) -> Any:
    """A choice of tools as chat completions write it."""
    if isinstance(choice, str):
        return choice
    if choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if choice.get("type") == "allowed_tools":
        allowed = [
            {"type": "function", "function": {"name": _get(one, "name")}}
            for one in choice.get("tools") or ()
            if _get(one, "type") == "function"
        ]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": allowed}}
    raise _Untranslated  # a tool that the endpoint runs itself
