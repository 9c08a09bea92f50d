"""A small bundle, a small random-weight model, and an engine over both."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from tokenizers import Tokenizer

from toolc.compiler import Options, compile_tools
from toolc.compiler.vocab.builtin import builtin_path
from toolc.runtime import Bundle, Call

if TYPE_CHECKING:
    from toolc.runtime.speculate.service import Service


def tool_document(name: str, read_only: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "input_schema": {
            "type": "object",
            "properties": {
                "place": {"enum": ["Basel", "Bern", "Chur"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 4},
                "units": {"enum": ["c", "f"], "default": "c"},
            },
            "required": ["place", "days"],
            "additionalProperties": False,
        },
        "x-toolc": {"read_only": read_only},
    }


TOOLS = [tool_document("look"), tool_document("find"), tool_document("send", read_only=False)]


@functools.cache
def bundle(protocol: str = "hermes") -> Bundle:
    return compile_tools(TOOLS, options=Options(protocol=protocol, whitespace="spaced")).bundle


@functools.cache
def encoder() -> Callable[[str], list[int]]:
    tokenizer = Tokenizer.from_file(str(builtin_path()))
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


@functools.cache
def causal(seed: int = 0, layers: int = 1) -> Any:
    """A Llama with random weights, float64, so that the order of sums does not decide between tokens."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(1)  # more of them only wait for each other on so small a model
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=bundle().vocab.size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=4096,
        initializer_range=0.4,
        attn_implementation="eager",
    )
    return LlamaForCausalLM(config).double().eval()


SPACE = [
    {"place": place, "days": days, **units}
    for place in ("Basel", "Bern", "Chur")
    for days in range(1, 5)
    for units in ({}, {"units": "c"}, {"units": "f"})
]


@functools.cache
def usual_tokens() -> frozenset[int]:
    """The tokens of all calls, as they are usually written."""
    from toolc.runtime.speculate.chat import Chat

    chat = Chat(bundle(), encoder())
    written = [chat.written([Call(tool["name"], arguments)]) for tool in TOOLS for arguments in SPACE]
    return frozenset(token for tokens in written for token in tokens)


def bias(ends: float = 300.0, calls: float = 303.0, usual: float = 20.0) -> np.ndarray:
    """Makes random weights end their turns and begin calls more often, and cut calls as a tokenizer does."""
    vocab = bundle().vocab
    out = np.zeros(vocab.size)
    for token in usual_tokens():
        out[token] = usual * (1 + len(vocab.token(token)))
    out[vocab.end_of_turn] = ends
    out[vocab.special["<tool_call>"]] = calls
    return out


def service(slots: int = 4, seed: int = 0, **more: Any) -> Service:
    """Chat completions of the small model; torch and transformers are loaded here and not before."""
    from toolc.runtime.speculate.causal import CausalModel
    from toolc.runtime.speculate.chat import Chat
    from toolc.runtime.speculate.engine import Engine
    from toolc.runtime.speculate.service import Service

    model = CausalModel(causal(seed), slots, more.pop("capacity", 1024), more.pop("bias", bias()))
    engine = Engine(model, bundle(), encoder(), **more)
    return Service(engine, Chat(bundle(), encoder()))
