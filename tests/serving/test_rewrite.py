"""Bodies as the engine gets them, and answers as the client gets them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from toolc.runtime.errors import RequestError
from toolc.runtime.serving.reasoning import INSIDE, MARKS, OUTSIDE, OVER, asked, marks_of, reasoning_after
from toolc.runtime.serving.rewrite import CHAT, MESSAGES, RESPONSES, given_arguments, restoring, rewritten

SCHEMA = {"type": "object"}
TOOL: dict[str, Any] = {"type": "function", "function": {"name": "look", "strict": True, "parameters": SCHEMA}}
FLAT: dict[str, Any] = {"type": "function", "name": "look", "strict": True, "parameters": SCHEMA}
CLAUDE: dict[str, Any] = {"name": "look", "strict": True, "input_schema": SCHEMA}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
GIVEN = {"toolc_bundle": "k"}

LOOSE: dict[str, Any] = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}}

REWRITTEN: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("auto", CHAT, {"tools": [LOOSE]}, {"tools": [LOOSE]}),
    ("strict", CHAT, {"tools": [TOOL], "tool_choice": "auto"}, {"tools": [LOOSE], "tool_choice": "auto"}),
    ("required", CHAT, {"tools": [LOOSE], "tool_choice": "required"}, {"tools": [LOOSE], "tool_choice": "auto"}),
    ("none", CHAT, {"tools": [LOOSE], "tool_choice": "none"}, {"tools": [LOOSE], "tool_choice": "none"}),
    ("named", CHAT, {"tools": [LOOSE], "tool_choice": TOOL}, {"tools": [LOOSE], "tool_choice": "auto"}),
    ("allowed", CHAT, {"tools": [LOOSE], "tool_choice": ALLOWED}, {"tools": [LOOSE], "tool_choice": "auto"}),
    ("one", CHAT, {"tools": [LOOSE], "parallel_tool_calls": False}, {"tools": [LOOSE]}),
    (
        "parallel",
        CHAT,
        {"tools": [LOOSE], "parallel_tool_calls": True},
        {"tools": [LOOSE], "parallel_tool_calls": True},
    ),
    ("format", CHAT, {"response_format": FORMAT, "seed": 1}, {"seed": 1}),
    ("text", RESPONSES, {"text": {"format": FORMAT, "verbosity": "low"}}, {"text": {"verbosity": "low"}}),
    ("only a format", RESPONSES, {"text": {"format": FORMAT}}, {}),
    ("flat", RESPONSES, {"tools": [FLAT]}, {"tools": [{k: FLAT[k] for k in FLAT if k != "strict"}]}),
    ("any", MESSAGES, {"tool_choice": {"type": "any"}}, {"tool_choice": {"type": "auto"}}),
    (
        "any, one",
        MESSAGES,
        {"tools": [CLAUDE], "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True}},
        {"tools": [{"name": "look", "input_schema": SCHEMA}], "tool_choice": {"type": "auto"}},
    ),
    ("no tool", MESSAGES, {"tool_choice": {"type": "none"}}, {"tool_choice": {"type": "none"}}),
    ("effort", MESSAGES, {"output_config": {"format": FORMAT, "effort": "low"}}, {"output_config": {"effort": "low"}}),
]


@pytest.mark.parametrize(("api", "body", "expected"), [row[1:] for row in REWRITTEN], ids=[row[0] for row in REWRITTEN])
def test_the_engine_is_asked_for_nothing(api: str, body: dict[str, Any], expected: dict[str, Any]) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], **body}
    before = copy.deepcopy(body)
    new = rewritten(body, api, GIVEN)
    assert new == {"messages": before["messages"], "vllm_xargs": GIVEN, **expected}
    assert body == before


def test_arguments_of_others_stay() -> None:
    new = rewritten({"vllm_xargs": {"theirs": 1, "toolc_bundle": "mine"}}, CHAT, {"toolc_entry": "auto"})
    assert new["vllm_xargs"] == {"theirs": 1, "toolc_bundle": "mine", "toolc_entry": "auto"}
    assert given_arguments({"vllm_xargs": {"theirs": 1, "toolc_bundle": "mine"}}) == {"toolc_bundle": "mine"}
    assert given_arguments({}) == given_arguments({"vllm_xargs": None}) == {}
    with pytest.raises(RequestError, match="vllm_xargs"):
        given_arguments({"vllm_xargs": [1]})


def test_a_named_tool_ends_with_stop() -> None:
    answer = {"choices": [{"finish_reason": "tool_calls"}, {"finish_reason": "length"}, {"finish_reason": None}]}
    restore = restoring({"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}}, CHAT)
    assert restore is not None
    restore(answer)
    restore({"error": {}})
    assert [choice["finish_reason"] for choice in answer["choices"]] == ["stop", "length", None]
    assert restoring({"tools": [TOOL], "tool_choice": "required"}, CHAT) is None
    assert restoring({"tools": [TOOL], "tool_choice": ALLOWED}, CHAT) is None
    assert restoring({"tools": [CLAUDE], "tool_choice": {"type": "any"}}, MESSAGES) is None


@pytest.mark.parametrize("wrapped", [False, True], ids=["whole", "event"])
def test_a_response_repeats_the_request(wrapped: bool) -> None:
    body = {
        "tools": [FLAT, {"type": "function", "name": "go"}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "text": {"format": FORMAT},
    }
    response: dict[str, Any] = {
        "object": "response",
        "tools": [{"name": "look", "strict": None}, {"name": "go", "strict": None}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "text": None,
    }
    restore = restoring(body, RESPONSES)
    assert restore is not None
    restore({"type": "response.completed", "response": response} if wrapped else response)
    assert response == {
        "object": "response",
        "tools": [{"name": "look", "strict": True}, {"name": "go", "strict": None}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "text": {"format": FORMAT},
    }
    delta = {"type": "response.output_text.delta", "delta": "x", "text": "x"}
    restore(delta)
    assert delta["text"] == "x"


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("<|im_end|>\n<|im_start|>assistant\n", OUTSIDE),
        ("<|im_start|>assistant\n<think>\n", INSIDE),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", OVER),
        ("[/INST][THINK]", INSIDE),
        ("<|turn>model\n<|channel>thought\n<channel|>", OVER),
        ("<|end|><|start|>assistant", OUTSIDE),
        ("<|end|><|start|>assistant<|channel|>analysis<|message|>", INSIDE),
        ("<|channel|>analysis<|message|><|end|><|start|>assistant", OVER),
        ("<｜Assistant｜></think>", OVER),
        ("<think>a</think>b<think>", INSIDE),
        ("", OUTSIDE),
    ],
)
def test_where_a_prompt_ends(end: str, expected: str) -> None:
    assert reasoning_after(end) == expected


def test_the_marks_are_those_of_the_parser() -> None:
    assert marks_of("qwen3") == (("<think>", "</think>"),)
    assert reasoning_after("<think>[THINK]", marks_of("qwen3")) == INSIDE
    assert reasoning_after("[THINK]", marks_of("qwen3")) == OUTSIDE
    assert marks_of(None) == marks_of("hf") == MARKS


@pytest.mark.parametrize(
    ("entry", "where", "parsed", "expected"),
    [
        ("required", OUTSIDE, True, OUTSIDE),
        ("response", INSIDE, True, INSIDE),
        ("response", OUTSIDE, False, OVER),
        ("tool:look", INSIDE, False, OVER),
        ("auto/one", OUTSIDE, False, OUTSIDE),
        ("none", INSIDE, False, INSIDE),
        ("either", OVER, True, OVER),
    ],
)
def test_reasoning_that_is_allowed(entry: str, where: str, parsed: bool, expected: str) -> None:
    assert asked(entry, where, parsed) == expected
