"""Rewrite the body of a request that toolc holds, so that the engine constrains nothing of it itself, and restore in
the answer what the rewriting would show.

    chat       POST /v1/chat/completions
    responses  POST /v1/responses
    messages   POST /v1/messages (Anthropic)

The engine gets the bundle and entry as arguments of its logits processor, and the request as if it asked for nothing:
`tool_choice` "auto" where it forces calls, no `strict`, no `parallel_tool_calls: false`, no response format. So it sets
no structured output of its own, and its own parser makes `tool_calls` of what the model writes.

Leaves out   what the fields mean: see requests.py.
Invariants   the messages, and all that a chat template shows of tools but `strict`, stay what they were; the body that
             was given is not changed. `tool_choice` "none" stays, since engines may show no tools then.
Restored     chat: `finish_reason` is "stop" where one tool was named, as OpenAI has it. Responses: the answer repeats
             `tools`, `tool_choice`, `parallel_tool_calls` and `text` of the request.
Source       vLLM 0.32: parser/abstract_parser.py, `_apply_structural_tag`;
             entrypoints/openai/chat_completion/serving.py, "In OpenAI's API, when a tool is called".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import RequestError

CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"
ARGUMENTS = "vllm_xargs"
"""Where vLLM takes arguments of logits processors."""

Json = dict[str, Any]
Restore = Callable[[Json], None]
"""Mends one JSON object of an answer in place."""


def rewritten(body: Json, api: str, arguments: Mapping[str, Any]) -> Json:
    """The body as the engine gets it.

    Args:
        body: as it was sent; its fields have been read (`read_request`).
        api: CHAT, RESPONSES or MESSAGES.
        arguments: of the logits processor.
    """
    new = {key: value for key, value in body.items() if key not in ("response_format", "output_format")}
    if "tools" in new and new["tools"] is not None:
        new["tools"] = [_not_strict(tool) for tool in new["tools"]]
    for holder in ("text", "output_config"):
        if isinstance(new.get(holder), dict) and "format" in new[holder]:
            new[holder] = {key: value for key, value in new[holder].items() if key != "format"}
            if not new[holder]:
                del new[holder]
    if new.get("parallel_tool_calls") is False:
        del new["parallel_tool_calls"]
    choice = new.get("tool_choice")
    if api == MESSAGES:
        if isinstance(choice, dict) and choice.get("type") != "none":
            new["tool_choice"] = {"type": "auto"}
    elif choice is not None and choice != "none":
        new["tool_choice"] = "auto"
    new[ARGUMENTS] = {**(body.get(ARGUMENTS) or {}), **arguments}
    return new


def _not_strict(tool: Any) -> Any:
    if not isinstance(tool, dict):
        return tool
    new = {key: value for key, value in tool.items() if key != "strict"}
    if isinstance(new.get("function"), dict):
        new["function"] = {key: value for key, value in new["function"].items() if key != "strict"}
    return new


def given_arguments(body: Any) -> Json:
    """The arguments of toolc that a request states itself.

    Raises:
        RequestError: its arguments are no object.
    """
    said = body.get(ARGUMENTS) if isinstance(body, dict) else None
    if said is None:
        return {}
    if not isinstance(said, dict):
        raise RequestError("", place=f"request#/{ARGUMENTS}", found=type(said).__name__, expected="an object")
    return {key: value for key, value in said.items() if key.startswith("toolc_")}


def restoring(body: Json, api: str) -> Restore | None:
    """What mends an answer to the rewritten body; None if nothing has to be."""
    if api == CHAT:
        choice = body.get("tool_choice")
        return _stopped if isinstance(choice, dict) and choice.get("type") == "function" else None
    if api == RESPONSES:
        return lambda answer: _echoed(answer, body)
    return None


def _stopped(answer: Json) -> None:
    """Of a completion, or a chunk of one, in which one named tool was called."""
    for choice in answer.get("choices") or ():
        if choice.get("finish_reason") == "tool_calls":
            choice["finish_reason"] = "stop"


def _echoed(answer: Json, body: Json) -> None:
    """Of a response, or an event that holds one."""
    held = answer.get("response") if "response" in answer else answer
    if not isinstance(held, dict) or held.get("object") != "response":
        return
    for key in ("tool_choice", "parallel_tool_calls", "text"):
        if key in held and body.get(key) is not None:
            held[key] = body[key]
    given = {tool.get("name"): tool for tool in body.get("tools") or () if isinstance(tool, dict)}
    for tool in held.get("tools") or ():
        if isinstance(tool, dict) and "strict" in given.get(tool.get("name"), ()):
            tool["strict"] = given[tool["name"]]["strict"]
