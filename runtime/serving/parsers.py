"""Which protocol models write whose calls an engine reads with a parser of some name.

Leaves out   the protocols: see grammars/*.lark. Parsers that are not listed read what no protocol here writes, or less
             than it writes: vLLM's of FunctionGemma passes over numbers, that of Phi-4-mini reads one of two ways.
Invariants   each row is held against the engine's own parser, which reads the calls that the protocol writes
             (tests/engines/test_parsers.py).
Source       vLLM 0.32, tool_parsers/__init__.py: the names of --tool-call-parser.
"""

from __future__ import annotations

from collections.abc import Container

VLLM = {
    "cohere_command3": "cohere",
    "deepseek_v3": "deepseek_v3",
    "deepseek_v31": "deepseek_v31",
    "deepseek_v32": "deepseek_v32",
    "deepseek_v4": "deepseek_v4",
    "deepseek_v41": "deepseek_v41",
    "gemma4": "gemma4",
    "glm45": "glm45",
    "glm47": "glm47",
    "granite": "granite",
    "granite4": "hermes",
    "hermes": "hermes",
    "kimi_k2": "kimi_k2",
    "kimi_k3": "kimi_k3",
    "lfm2": "lfm2",
    "llama3_json": "llama3",
    "llama4_json": "llama3",
    "llama4_pythonic": "pythonic",
    "mimo": "mimo",
    "minimax_m2": "minimax_m2",
    "minimax_m3": "minimax_m3",
    "mistral": "mistral",
    "olmo3": "olmo3",
    "openai": "harmony",
    "pythonic": "pythonic",
    "qwen3_coder": "qwen3_coder",
    "qwen3_json": "hermes",
    "qwen3_xml": "qwen3_coder",
    "step3": "step3",
}
"""Name of --tool-call-parser → protocol."""


def protocol_of(parser: str | None, tokens: Container[str]) -> str | None:
    """The protocol of a parser of vLLM; None if none is known.

    Args:
        parser: its name.
        tokens: of the tokenizer: Mistral's models write calls in another way where it has the token [ARGS].
    """
    if parser == "mistral" and "[ARGS]" in tokens:
        return "mistral_v11"
    return VLLM.get(parser or "")
