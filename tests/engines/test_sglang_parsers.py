"""SGLang's parsers read the calls that the protocols write, and miss what the table says.

Runs where $TOOLC_SGLANG names the folder of SGLang's wheel, and folders of what it imports; see test_sglang.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler.grammar.protocol import load_protocol
from toolc.runtime.serving.parser_table import TOOL_PARSERS

from .parser_cases import CALLS, CURRENT, STEP3_BOTH, STEP3_CALL, STEP3_NONE, TOOLS, examples, step3

FOLDERS = os.environ.get("TOOLC_SGLANG")
if FOLDERS is None or os.pathsep not in FOLDERS:
    pytest.skip("$TOOLC_SGLANG names no folders of SGLang and of what it imports", allow_module_level=True)

RUN = """
import json, sys
import tests.engines.sglang_child
from sglang.srt.entrypoints.openai.protocol import Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
given = json.load(sys.stdin)
tools = [Tool(**tool) for tool in given["tools"]]
found = []
for parser, text in given["texts"]:
    calls = FunctionCallParser(tools, parser).parse_non_stream(text)[1]
    found.append([[call.name, json.loads(call.parameters)] for call in calls])
print(json.dumps(found))
"""
PLAIN = '<tool_call>{"name": "list_stations", "arguments": {}}</tool_call>'
MARKED = '<|python_start|>[current_weather(place="Basel", days=3)]<|python_end|>'
LISTED = f'[TOOL_CALLS] [{{"name": "current_weather", "arguments": {CURRENT}, "id": "aB3dE5gH7"}}]'

READ: list[tuple[str, str, list[Any]]] = [
    ("hermes", PLAIN, CALLS[1:]),
    ("glm45", "<tool_call>list_stations\n</tool_call>", CALLS[1:]),
    ("mistral", LISTED, CALLS[:1]),
    ("pythonic", MARKED, CALLS[:1]),
    ("step3", step3(STEP3_BOTH, "\n"), CALLS),
    (
        "interns1",
        f'<|action_start|> <|plugin|>\n{{"name": "current_weather", "parameters": {CURRENT}}}<|action_end|>',
        CALLS[:1],
    ),
]
MISSED: list[tuple[str, str, list[Any]]] = [
    ("qwen", PLAIN, []),
    ("qwen25", PLAIN, []),
    ("trinity", PLAIN, []),
    ("glm", "<tool_call>list_stations</tool_call>", []),
    ("glm45", "<tool_call>list_stations</tool_call>", []),
    ("mistral", f"[TOOL_CALLS]current_weather[CALL_ID]aB3dE5gH7[ARGS]{CURRENT}", []),
    ("step3", step3(STEP3_CALL, "\n", "1 < 2"), [("current_weather", {"days": 3})]),
    ("step3", step3(STEP3_NONE, ""), []),
    (
        "interns1",
        f'<|action_start|><|plugin|>\n{{"name": "current_weather", "parameters": {CURRENT}}}<|action_end|>',
        [],
    ),
]


def read(texts: list[tuple[str, str]]) -> list[list[tuple[str, Any]]]:
    """The calls that parsers of SGLang read, in a process of its own."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), root, FOLDERS)))
    given = json.dumps({"tools": TOOLS, "texts": texts})
    command = [sys.executable, "-c", RUN]
    done = subprocess.run(command, input=given, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr[-2000:]
    return [[(name, arguments) for name, arguments in calls] for calls in json.loads(done.stdout.splitlines()[-1])]


def test_parsers_read_what_protocols_write_and_miss_what_the_table_says() -> None:
    """Faults of these parsers: where one is mended, so is the table."""
    usual = [  # but of parsers that need a package or tokens of their own; the docs show a call that step3 misses
        (
            name,
            examples()[parser.protocols[0]][0],
            CALLS if load_protocol(parser.protocols[0]).has("calls") else CALLS[:1],
        )
        for name, parser in TOOL_PARSERS["sglang"].items()
        if parser.protocols and name not in ("cohere_command4", "gpt-oss", "step3", "interns1")
    ]
    cases = usual + READ + MISSED
    assert all(TOOL_PARSERS["sglang"][parser].misses for parser, _, _ in MISSED)
    found = read([(parser, text) for parser, text, _ in cases])
    wrong = [(case, calls) for case, calls in zip(cases, found, strict=True) if calls != case[2]]
    assert not wrong
