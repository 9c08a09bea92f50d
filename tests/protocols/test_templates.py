"""The table of engines' parsers, against the engines where they are installed; templates against parsers."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from pathlib import Path

import pytest

from tests.cases.templates import NO_TOOLS, TEMPLATES, Row
from toolc.compiler.errors import RequestError, SpecError
from toolc.compiler.grammar.protocol import load_protocol, protocol_names
from toolc.compiler.templates import check_parser
from toolc.runtime.serving.parser_table import REASONING_PARSERS, TOOL_PARSERS, protocols_of

from .parsers_table import PAGE, page


@pytest.mark.parametrize("row", TEMPLATES, ids=lambda row: row.id)
def test_a_template_goes_with_its_parser_and_no_other(row: Row) -> None:
    assert check_parser(row.template, row.protocol, row.parser) == row.protocol
    assert check_parser(row.template, None, row.parser) == row.protocol
    alike = {  # what one template writes may be a call of several protocols: then they read it as the same call
        ("mistral", "mistral_v11"), ("deepseek_v31", "deepseek_v31"), ("hermes", "granite"),
    }  # fmt: skip
    for other in ("hermes", "llama3_json", "mistral", "qwen3_coder", "deepseek_v31", "kimi_k2", "glm45"):
        (first, *_) = protocols_of(other)
        if first == row.protocol or other == row.parser or (row.protocol, first) in alike:
            continue
        with pytest.raises(SpecError) as refused:
            check_parser(row.template, first, other, name=f"{row.id}.jinja")
        for word in (f"{row.id}.jinja", first, other, "vllm"):
            assert word in str(refused.value)


def test_engines_and_parsers_that_do_not_go_together() -> None:
    (row, *_) = TEMPLATES
    assert check_parser(row.template, "hermes", "qwen25", "sglang") == "hermes"
    with pytest.raises(SpecError, match="parser mistral of vllm does not read the protocol hermes"):
        check_parser(row.template, "hermes", "mistral")
    with pytest.raises(RequestError, match="no parser of vllm that toolc knows"):
        check_parser(row.template, None, "hermess")
    with pytest.raises(RequestError, match="no such engine"):
        check_parser(row.template, None, "hermes", "tgi")
    with pytest.raises(RequestError, match="beam of vllm reads no protocol"):
        check_parser(row.template, None, "beam")
    with pytest.raises(SpecError, match="another form"):
        check_parser(NO_TOOLS, None, "hermes")


def test_templates_that_cannot_be_rendered() -> None:
    with pytest.raises(SpecError, match="no template of Jinja") as refused:
        check_parser("{{ a }}\n{% if %}", None, "hermes", name="chat.jinja")
    assert refused.value.place == "chat.jinja:2"
    for template in ("{{ raise_exception('no tools') }}", "{{ messages[7].content.x }}", "{{ 1 / 0 }}"):
        with pytest.raises(SpecError, match="cannot be rendered"):
            check_parser(template, None, "hermes")
    with pytest.raises(SpecError, match="cannot be rendered"):  # the sandbox
        check_parser("{{ ''.__class__.__mro__[1].__subclasses__() }}", None, "hermes")


def test_the_table_names_protocols_that_there_are() -> None:
    for parsers in TOOL_PARSERS.values():
        for name, parser in parsers.items():
            assert set(parser.protocols) <= set(protocol_names()), name
            assert parser.protocols or parser.misses, name


def test_marks_of_reasoning_are_those_of_the_protocols() -> None:
    """Of a parser of calls and one of reasoning of the same model, the protocol has the marks of the second."""
    for engine, calls, thoughts in (
        ("vllm", "hermes", "qwen3"), ("vllm", "deepseek_v31", "deepseek_v3"), ("vllm", "glm45", "glm45"),
        ("vllm", "gemma4", "gemma4"), ("vllm", "openai", "openai_gptoss"), ("vllm", "kimi_k3", "kimi_k3"),
        ("vllm", "minimax_m3", "minimax_m3"), ("vllm", "cohere_command3", "cohere_command3"),
        ("vllm", "mistral", "mistral"), ("sglang", "gpt-oss", "gpt-oss"), ("sglang", "qwen3_coder", "qwen3"),
    ):  # fmt: skip
        marks = REASONING_PARSERS[engine][thoughts]
        (protocol, *_) = protocols_of(calls, engine)
        text = load_protocol(protocol).text
        assert marks is not None
        for mark in marks:
            for piece in re.findall(r"\w+|[^\w\s]+", mark):
                assert piece in text, (protocol, piece)


def test_docs_show_the_table() -> None:
    assert page() in PAGE.read_text(encoding="utf-8")


def _folder(library: str) -> Path:
    """Where a library lies, without importing it."""
    found = importlib.util.find_spec(library)
    if found is not None and found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    for folder in os.environ.get(f"TOOLC_{library.upper()}", "").split(os.pathsep):
        if folder and (Path(folder) / library).is_dir():
            return Path(folder) / library
    pytest.skip(f"{library} is not installed, and $TOOLC_{library.upper()} names no folder of its wheel")


def _keys(path: Path, name: str) -> set[str]:
    """The keys of the one dict that a name is bound to."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Dict):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(one, ast.Name) and one.id == name for one in targets):
            return {str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)}
    raise AssertionError(f"{name} is not in {path}")


def test_every_parser_of_vllm_is_listed() -> None:
    folder = _folder("vllm")
    assert _keys(folder / "tool_parsers" / "__init__.py", "_TOOL_PARSERS_TO_REGISTER") <= set(TOOL_PARSERS["vllm"])
    found = _keys(folder / "reasoning" / "__init__.py", "_REASONING_PARSERS_TO_REGISTER")
    assert found <= {*REASONING_PARSERS["vllm"], "identity"}


def test_every_parser_of_sglang_is_listed() -> None:
    folder = _folder("sglang") / "srt"
    calls = _keys(folder / "function_call" / "function_call_parser.py", "ToolCallParserEnum")
    assert calls <= set(TOOL_PARSERS["sglang"])
    assert _keys(folder / "parser" / "reasoning_parser.py", "DetectorMap") <= set(REASONING_PARSERS["sglang"])
