"""vLLM's parsers read the calls that the protocols write which are chosen for them."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from toolc.runtime.serving.parsers import VLLM, protocol_of

pytest.importorskip("vllm", reason="the engines have an environment of their own: make engines")

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


@pytest.mark.parametrize("parser", sorted(VLLM))
def test_a_parser_reads_what_its_protocol_writes(parser: str) -> None:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser import ParserManager
    from vllm.tool_parsers import _TOOL_PARSERS_TO_REGISTER

    if parser not in _TOOL_PARSERS_TO_REGISTER:
        pytest.skip("a parser of a later vLLM")
    if parser == "openai":
        pytest.skip("vLLM reads harmony by the ids of its own tokenizer, which is fetched from the network")
    if parser.startswith("cohere"):
        pytest.importorskip("cohere_melody", reason="vLLM reads Cohere's calls with a package of their own")
    protocol = VLLM[parser]
    text, tokens = examples()[protocol]
    model = tokenizer([*tokens, *MORE])
    request = ChatCompletionRequest(
        messages=[{"role": "user", "content": "x"}], tools=TOOLS, tool_choice="auto", skip_special_tokens=False
    )
    made = ParserManager.get_parser(
        tool_parser_name=parser, enable_auto_tools=True, is_harmony=parser == "openai", tokenizer=model
    )
    assert made is not None
    ids = model.encode(text, add_special_tokens=False)
    _, _, calls = made(model, request.tools).parse(text, request, enable_auto_tools=True, model_output_token_ids=ids)
    found = [(call.name, json.loads(call.arguments)) for call in calls or ()]
    assert found == CALLS


def test_mistral_follows_the_tokenizer() -> None:
    assert protocol_of("mistral", ["[TOOL_CALLS]", "[ARGS]"]) == "mistral_v11"
    assert protocol_of("mistral", ["[TOOL_CALLS]"]) == "mistral"
    assert protocol_of(None, []) is None and protocol_of("xlam", []) is None
