"""Tell which protocol an engine's parser of calls reads, and which marks its parser of reasoning does: a table.

Leaves out   the protocols (grammars/), whether a model's chat template writes what the parser reads
             (compiler/templates.py).
Invariants   every parser that these versions of the engines know is listed. Protocols of a parser stand with the one
             first that its models write. ``misses`` says which texts that the protocol's masks allow the engine does
             not read: such a call stays in the content. A parser that misses what any tool may need has no protocol.
Source       vLLM 0.33 (tool_parsers/__init__.py, reasoning/__init__.py) and SGLang 0.5.23
             (srt/function_call/function_call_parser.py, srt/parser/reasoning_parser.py). 40 random texts of every
             protocol's masks went through the parsers of vLLM 0.32 and SGLang 0.5.23, 27 November 2026; those of
             Cohere, gpt-oss and response templates could not run alone there, and are told from their sources. What is
             missed is tested, one text each: tests/engines/test_parsers.py, tests/engines/test_sglang_parsers.py.
Departures   masks allow forms that a parser misses. Templates or encoders of the families write most of them: calls of
             Hermes without new lines, [CALL_ID] of Mistral's v11, calls of Step-3 without arguments on one line. A
             string may hold a <. GLM's templates always write a new line before </tool_call>; masks allow none, too, as
             all other parsers of that protocol and `Reader` do.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from ..errors import RequestError


class ToolParser(NamedTuple):
    """What a parser of calls reads.

    Attributes:
        protocols: that it reads; empty for none that toolc brings along.
        misses: texts of the protocols that it does not read; of a parser without a protocol, what it reads instead.
    """

    protocols: tuple[str, ...] = ()
    misses: str = ""


def _own(marks: str) -> ToolParser:
    return ToolParser((), f"reads calls between {marks}")


_CHECKPOINT = ToolParser((), "reads by the checkpoint's response template: give the checkpoint as the protocol")
_MISTRAL = ("mistral_v11", "mistral")
_QWEN = ToolParser(
    ("hermes",), "calls without a new line behind <tool_call> and before </tool_call>; the parser hermes reads them"
)
_GLM45 = ToolParser(("glm45",), "a call without arguments and without a new line behind its name")
_STEP3 = "a parameter whose string has a <: it is left out"

TOOL_PARSERS: dict[str, dict[str, ToolParser]] = {
    "vllm": {
        "apertus": ToolParser(("apertus",)),
        "beam": _CHECKPOINT,
        "cohere_command3": ToolParser(("cohere",)),
        "cohere_command4": ToolParser(("cohere",)),
        "deepseek_v3": ToolParser(("deepseek_v3",)),
        "deepseek_v31": ToolParser(("deepseek_v31",)),
        "deepseek_v32": ToolParser(("deepseek_v32",)),
        "deepseek_v4": ToolParser(("deepseek_v4",)),
        "deepseek_v41": ToolParser(("deepseek_v41",)),
        "dots": ToolParser(("dots",), "a string null, which it reads as null; blanks at the ends of a string"),
        "ernie45": ToolParser(("ernie45",)),
        "functiongemma": ToolParser((), "reads functiongemma's calls without the arguments that are no strings"),
        "gemma4": ToolParser(("gemma4",)),
        "gigachat3": ToolParser(("gigachat31", "gigachat3")),
        "glm45": ToolParser(("glm45",)),
        "glm47": ToolParser(("glm47",)),
        "granite": ToolParser(("granite",)),
        "granite-20b-fc": ToolParser(("granite_20b_fc",)),
        "granite4": ToolParser(("hermes",)),
        "hermes": ToolParser(("hermes",)),
        "hf": _CHECKPOINT,
        "hunyuan_a13b": ToolParser(("hunyuan_a13b", "apriel"), "arguments with objects in objects"),
        "hy_v3": ToolParser(("hy_v3", "hy3_opensource")),
        "hy_v4": ToolParser(("hy_v4",)),
        "inkling": ToolParser(("inkling",)),
        "internlm": ToolParser(("internlm",)),
        "jamba": ToolParser(("jamba", "apriel", "hunyuan_a13b")),
        "k2_horizon": ToolParser(("k2_horizon",)),
        "kimi_k2": ToolParser(("kimi_k2",)),
        "kimi_k3": ToolParser(("kimi_k3",)),
        "lfm2": ToolParser(("lfm2",)),
        "ling3": ToolParser(("glm47", "glm45")),
        "llama3_json": ToolParser(("llama3",)),
        # Of calls right after another, as llama4_json writes them, the parser reads none.
        "llama4_json": ToolParser(("llama3", "llama4_json")),
        "llama4_pythonic": ToolParser(("pythonic",)),
        "longcat": ToolParser(("longcat",)),
        "mimo": ToolParser(("mimo",)),
        "minicpm5": ToolParser(("minicpm5",)),
        "minimax_m2": ToolParser(("minimax_m2",)),
        "minimax_m3": ToolParser(("minimax_m3",)),
        "mistral": ToolParser(_MISTRAL, "[CALL_ID]: it and the id become a part of the name"),
        "muse": ToolParser(("muse",), "a string that is JSON, as 12: it reads the number"),
        "muse_glimmer": ToolParser(("muse",), "a string that is JSON, as 12: it reads the number"),
        "musespark1x": ToolParser(("muse",), "a string that is JSON, as 12: it reads the number"),
        "olmo3": ToolParser(("olmo3",)),
        "openai": ToolParser(("harmony",)),
        "phi4_mini_json": ToolParser((), "reads phi4_mini's calls behind functools alone, and without a ] in them"),
        "plamo3": ToolParser(("plamo3",)),
        "poolside_v1": ToolParser(("glm45", "glm47")),
        "pythonic": ToolParser(("pythonic",), "calls between <|python_start|> and <|python_end|>"),
        "qwen3_coder": ToolParser(("qwen3_coder", "mimo")),
        "qwen3_json": ToolParser(("hermes",)),
        "qwen3_xml": ToolParser(("qwen3_coder", "mimo")),
        "seed_oss": ToolParser(("seed_oss",)),
        "step3": ToolParser(("step3",), _STEP3),
        "step3p5": ToolParser(("qwen3_coder", "mimo")),
        "step5": ToolParser(("qwen3_coder", "mimo")),
        "xlam": ToolParser(("xlam",)),
    },
    "sglang": {
        "apertus2509": ToolParser(("apertus",)),
        "beam": _CHECKPOINT,
        "cohere_command4": ToolParser(("cohere",)),
        "deepseekv3": ToolParser(("deepseek_v3",)),
        "deepseekv31": ToolParser(("deepseek_v31",)),
        "deepseekv32": ToolParser(("deepseek_v32",)),
        "deepseekv4": ToolParser(("deepseek_v4",)),
        "deepseekv41": ToolParser(("deepseek_v41",)),
        "dots": ToolParser(("dots",), "a string null, which it reads as null; blanks at the ends of a string"),
        "gemma4": ToolParser(("gemma4",)),
        "gigachat3": ToolParser(("gigachat31", "gigachat3")),
        "gigachat35": ToolParser(("gigachat35",)),
        "glm": _GLM45,
        "glm45": _GLM45,
        "glm47": ToolParser(("glm47",)),
        "gpt-oss": ToolParser(("harmony",)),
        "hermes": ToolParser(("hermes",)),
        "hunyuan": ToolParser(("hy_v3", "hy3_opensource")),
        "inkling": ToolParser(("inkling",)),
        "interns1": ToolParser(("internlm",), "<|action_start|><|plugin|> without a blank between the two"),
        "iquest_q1": ToolParser(("iquest_q1",)),
        "k2_horizon": ToolParser(("k2_horizon",)),
        "kimi_k2": ToolParser(("kimi_k2",)),
        "kimi_k3": ToolParser(("kimi_k3",)),
        "lfm2": ToolParser(("lfm2",)),
        "ling3": ToolParser(("glm47", "glm45")),
        "llama3": ToolParser(("llama3",)),
        "mimo": ToolParser(("mimo",)),
        "minicpm5": ToolParser(("minicpm5",)),
        "minimax-m2": ToolParser(("minimax_m2",)),
        "minimax-m3": ToolParser(("minimax_m3",)),
        "mistral": ToolParser(_MISTRAL, "calls with [CALL_ID]"),
        "muse": ToolParser(("muse",)),
        "nanbeige": ToolParser(("qwen3_coder", "mimo")),
        "poolside_v1": ToolParser(("glm45", "glm47")),
        "pythonic": ToolParser(("pythonic",)),
        "qwen": _QWEN,
        "qwen25": _QWEN,
        "qwen3_coder": ToolParser(("qwen3_coder", "mimo")),
        "response_template": _CHECKPOINT,
        "spark25": ToolParser(("glm47",)),
        "step3": ToolParser(("step3",), f"{_STEP3}; a call without arguments and without a new line"),
        "step3p5": ToolParser(("qwen3_coder", "mimo")),
        "trinity": _QWEN,
    },
}
"""Engine → name of ``--tool-call-parser`` → what it reads."""

Marks = tuple[str, str]
_THINK: Marks = ("<think>", "</think>")
_START: Marks = ("<|START_THINKING|>", "<|END_THINKING|>")
_CHANNEL: Marks = ("<|channel>", "<channel|>")
_ANALYSIS: Marks = ("<|channel|>analysis<|message|>", "<|end|>")
_KIMI_K3: Marks = ("<|open|>think<|sep|>", "<|close|>think<|sep|>")
_MINIMAX_M3: Marks = ("<mm:think>", "</mm:think>")
_BRACKETS: Marks = ("[THINK]", "[/THINK]")

REASONING_PARSERS: dict[str, dict[str, Marks | None]] = {
    "vllm": {
        "beam": None,
        "cohere_command3": _START,
        "cohere_command4": _START,
        "deepseek_r1": _THINK,
        "deepseek_v3": _THINK,
        "deepseek_v4": _THINK,
        "deepseek_v41": _THINK,
        "ernie45": _THINK,
        "gemma4": _CHANNEL,
        "glm45": _THINK,
        "glm47": _THINK,
        "granite": None,  # sentences in prose
        "granite_thinking_parser": _THINK,
        "hf": None,
        "holo2": _THINK,
        "hunyuan_a13b": _THINK,
        "hy_v3": None,  # with a suffix of the checkpoint
        "hy_v4": None,
        "inkling": None,
        "k2_horizon": None,  # three kinds
        "kimi_k2": _THINK,
        "kimi_k3": _KIMI_K3,
        "ling3": _THINK,
        "mimo": _THINK,
        "minicpmv": _THINK,
        "minimax_m2": _THINK,
        "minimax_m2_append_think": _THINK,
        "minimax_m3": _MINIMAX_M3,
        "mistral": _BRACKETS,
        "muse": None,
        "muse_glimmer": None,
        "musespark1x": None,
        "nemotron_v3": _THINK,
        "olmo3": _THINK,
        "openai_gptoss": _ANALYSIS,
        "plamo3": ("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),
        "poolside_v1": _THINK,
        "qwen3": _THINK,
        "seed_oss": ("<seed:think>", "</seed:think>"),
        "step3": _THINK,
        "step3p5": _THINK,
        "step5": _THINK,
    },
    "sglang": {
        "apertus2509": ("<|inner_prefix|>", "<|inner_suffix|>"),
        "beam": None,
        "cohere_command4": _START,
        "deepseek-r1": _THINK,
        "deepseek-v3": _THINK,
        "deepseek-v4": _THINK,
        "deepseek-v41": _THINK,
        "dots": _THINK,
        "gemma4": _CHANNEL,
        "gigachat35": _THINK,
        "glm45": _THINK,
        "gpt-oss": _ANALYSIS,
        "granite_thinking_parser": _THINK,
        "hunyuan": None,  # with a suffix of the checkpoint
        "inkling": None,
        "interns1": _THINK,
        "iquest_q1": _THINK,
        "k2_horizon": None,
        "kimi": ("◁think▷", "◁/think▷"),
        "kimi_k2": _THINK,
        "kimi_k3": _KIMI_K3,
        "ling3": _THINK,
        "mimo": _THINK,
        "minimax": _THINK,
        "minimax-append-think": _THINK,
        "minimax-m3": _MINIMAX_M3,
        "mistral": _BRACKETS,
        "muse": None,
        "nanbeige": _THINK,
        "nemotron_3": _THINK,
        "poolside_v1": _THINK,
        "qwen3": _THINK,
        "qwen3-thinking": _THINK,
        "response_template": None,
        "step3": _THINK,
        "step3p5": _THINK,
    },
}
"""Engine → name of ``--reasoning-parser`` → what opens and what ends the reasoning; None: no two marks."""


VLLM = {name: parser.protocols[0] for name, parser in TOOL_PARSERS["vllm"].items() if parser.protocols}
"""Name of --tool-call-parser → protocol."""


def protocols_of(parser: str, engine: str = "vllm") -> tuple[str, ...]:
    """The protocols that a parser of calls reads, the one of its models first.

    Raises:
        RequestError: the engine has no such parser, or it reads none that toolc brings along.
    """
    if engine not in TOOL_PARSERS:
        raise RequestError("no such engine", found=repr(engine)[:80], expected=" or ".join(TOOL_PARSERS))
    known = TOOL_PARSERS[engine]
    if parser not in known:
        raise RequestError(
            f"no parser of {engine} that toolc knows", found=repr(parser)[:80], expected=", ".join(sorted(known))
        )
    found = known[parser]
    if not found.protocols:
        raise RequestError(
            f"the parser {parser} of {engine} reads no protocol that toolc brings along", found=found.misses,
            hint="write a protocol (docs/protocols.md), and name it",
        )  # fmt: skip
    return found.protocols


def protocol_of(parser: str | None, tokens: Container[str]) -> str | None:
    """The protocol of a parser of vLLM; None if none is known.

    Args:
        parser: its name.
        tokens: of the tokenizer: Mistral's models write calls in another way where it has the token [ARGS].
    """
    if parser == "mistral":
        return "mistral_v11" if "[ARGS]" in tokens else "mistral"
    return VLLM.get(parser or "")
