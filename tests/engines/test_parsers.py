"""vLLM's parsers read the calls that the protocols write which are chosen for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolc.compiler.grammar.protocol import load_protocol
from toolc.runtime.serving.parser_table import TOOL_PARSERS, VLLM, protocol_of

from .parser_cases import CALLS, CURRENT, STEP3_BOTH, STEP3_CALL, TOOLS, examples, step3

pytest.importorskip("vllm", reason="the engines have an environment of their own: make engines")


def tokenizer(tokens: list[str]) -> Any:
    """A tokenizer of bytes with these tokens, as transformers has it."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    made = Tokenizer(models.BPE(letters, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in dict.fromkeys(tokens)])
    return PreTrainedTokenizerFast(tokenizer_object=made)


MORE = ["<think>", "</think>", "<|tool_call>", "<tool_call>", "</tool_call>", "<tools>", "</tools>", "<|im_end|>"]


def read(parser: str, protocol: str, text: str) -> list[tuple[str, Any]]:
    """The calls that a parser of vLLM reads in a text."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager

    model = tokenizer([*examples()[protocol][1], *MORE])
    request = ChatCompletionRequest(
        messages=[{"role": "user", "content": "x"}], tools=TOOLS, tool_choice="auto", skip_special_tokens=False
    )
    made = ParserManager.get_parser(
        tool_parser_name=parser, enable_auto_tools=True, is_harmony=parser == "openai", tokenizer=model
    )
    assert made is not None
    ids = model.encode(text, add_special_tokens=False)
    _, _, calls = made(model, request.tools).parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
    return [(call.name, json.loads(call.arguments)) for call in calls or ()]


@pytest.mark.parametrize("parser", sorted(VLLM))
def test_a_parser_reads_what_its_protocol_writes(parser: str) -> None:
    from vllm.tool_parsers import _TOOL_PARSERS_TO_REGISTER

    if parser not in _TOOL_PARSERS_TO_REGISTER:
        pytest.skip("a parser of a later vLLM")
    if parser == "openai":
        pytest.skip("vLLM reads harmony by the ids of its own tokenizer, which is fetched from the network")
    if parser.startswith("cohere"):
        pytest.importorskip("cohere_melody", reason="vLLM reads Cohere's calls with a package of their own")
    protocol = VLLM[parser]
    calls = CALLS if load_protocol(protocol).has("calls") else CALLS[:1]  # some families have one call a turn
    assert read(parser, protocol, examples()[protocol][0]) == calls


@pytest.mark.parametrize(
    ("parser", "protocol", "text", "calls"),
    [
        ("hermes", "hermes", '<tool_call>{"name": "list_stations", "arguments": {}}</tool_call>', CALLS[1:]),
        ("qwen3_json", "hermes", '<tool_call>{"name": "list_stations", "arguments": {}}</tool_call>', CALLS[1:]),
        ("glm45", "glm45", "<tool_call>list_stations</tool_call>", CALLS[1:]),
        ("glm47", "glm45", "<tool_call>list_stations\n</tool_call>", CALLS[1:]),
        ("step3", "step3", step3(STEP3_BOTH, ""), CALLS),
        ("step3", "step3", step3(STEP3_BOTH, "\n"), CALLS),
        (
            "mistral",
            "mistral",
            f'[TOOL_CALLS] [{{"name": "current_weather", "arguments": {CURRENT}, "id": "aB3dE5gH7"}}]',
            CALLS[:1],
        ),
        (
            "llama4_pythonic",
            "pythonic",
            '<|python_start|>[current_weather(place="Basel", days=3)]<|python_end|>',
            CALLS[:1],
        ),
    ],
)
def test_forms_beside_the_usual_one_are_read(parser: str, protocol: str, text: str, calls: list[Any]) -> None:
    assert read(parser, protocol, text) == calls


@pytest.mark.parametrize(
    ("parser", "protocol", "text", "calls"),
    [
        (  # the id becomes a part of the name
            "mistral",
            "mistral_v11",
            f"[TOOL_CALLS]current_weather[CALL_ID]aB3dE5gH7[ARGS]{CURRENT}",
            [("current_weather[CALL_ID]aB3dE5gH7", CALLS[0][1])],
        ),
        ("pythonic", "pythonic", '<|python_start|>[current_weather(place="Basel", days=3)]<|python_end|>', []),
        ("step3", "step3", step3(STEP3_CALL, "\n", "1 < 2"), [("current_weather", {"days": 3})]),
        (  # an argument that is no string is lost
            "functiongemma",
            "functiongemma",
            "<start_function_call>call:current_weather{days:3,place:<escape>Basel<escape>}<end_function_call>",
            [("current_weather", {"place": "Basel"})],
        ),
        (
            "phi4_mini_json",
            "phi4_mini",
            f'<|tool_call|>[{{"name": "current_weather", "arguments": {CURRENT}}}]<|/tool_call|>',
            [],
        ),
        ("phi4_mini_json", "phi4_mini", 'functools[{"name": "current_weather", "arguments": {"place": "a]"}}]', []),
    ],
)
def test_what_the_engine_does_not_read(parser: str, protocol: str, text: str, calls: list[Any]) -> None:
    """Faults of these parsers, as the table tells them (`misses`). Where one is mended, so is the table."""
    assert TOOL_PARSERS["vllm"][parser].misses
    assert read(parser, protocol, text) == calls


def test_mistral_follows_the_tokenizer() -> None:
    assert protocol_of("mistral", ["[TOOL_CALLS]", "[ARGS]"]) == "mistral_v11"
    assert protocol_of("mistral", ["[TOOL_CALLS]"]) == "mistral"
    assert protocol_of(None, []) is None and protocol_of("beam", []) is None
