"""Chat templates that write calls as the protocol has them, and others."""

from __future__ import annotations

import pytest

from toolc.compiler import Options, compile_tools
from toolc.compiler.vocab.builtin import builtin_path
from toolc.runtime import Bundle
from toolc.runtime.adapters.vllm_requests import _template_fields, reads_call

TOOL = {
    "name": "look",
    "parameters": {
        "type": "object",
        "properties": {"at": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["at"],
    },
}
SAID = {"at": "Basel", "times": 3}
JSON = '{"name": "look", "arguments": {"at": "Basel", "times": 3}}'


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return compile_tools([TOOL], "builtin", options=Options(protocol="hermes")).bundle


def tokens(text: str) -> list[int]:
    from tokenizers import Tokenizer

    return list(Tokenizer.from_file(str(builtin_path())).encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"<tool_call>\n{JSON}\n</tool_call>", True),
        (f"<|im_start|>assistant\n<tool_call>\n{JSON}\n</tool_call><|end|>\n", True),
        (f"assistant\n\n<tool_call>{JSON}</tool_call>\n", True),
        (f"[TOOL_CALLS][{JSON}]", False),
        ("<tool_call>\n" + JSON.replace("Basel", "Bern") + "\n</tool_call>", False),
        ("<tool_call>\n" + JSON.replace("look", "go") + "\n</tool_call>", False),
        ("", False),
    ],
)
def test_reads_call(bundle: Bundle, text: str, expected: bool) -> None:
    assert reads_call(bundle, tokens(text), "look", SAID) is expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, {}),
        ({"chat_template_kwargs": {"enable_thinking": False}}, {"chat_template_kwargs": {"enable_thinking": False}}),
        ({"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"reasoning": {"effort": "high"}}, {"reasoning_effort": "high"}),
        ({"reasoning": {"summary": "auto"}}, {}),
        ({"thinking": {"type": "disabled"}}, {"reasoning_effort": "none"}),
        ({"output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}}, {"reasoning_effort": "max"}),
    ],
)
def test_what_changes_a_prompt(body: dict[str, object], expected: dict[str, object]) -> None:
    assert _template_fields(body) == expected
