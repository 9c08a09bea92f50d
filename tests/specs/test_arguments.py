"""What Python gives in place of a spec, an option or a tokenizer: refused where it stands, not by a bare error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.budget import Budget
from toolc.runtime import ToolcError

TOOLS = [{"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}]
CYCLE: dict[str, Any] = {}
CYCLE["not"] = CYCLE
DEEP: dict[str, Any] = {}
for _ in range(3000):
    DEEP = {"not": DEEP}


@pytest.mark.parametrize(
    ("response", "place"),
    [
        ({1: 2}, "response#"),
        ({"title": b"x"}, "response#/title"),
        ({"title": {1}}, "response#/title"),
        ({"const": 10**5000}, "response#/const"),
        ({"propertyNames": "a\udc00b"}, "response#/propertyNames"),
        ("\ud800", "response"),
        ([], "response#"),
        (b"x", "response:1:1"),
        (CYCLE, "response"),
        (DEEP, "response"),
    ],
    ids=range(10),
)
def test_responses(response: Any, place: str) -> None:
    with pytest.raises(ToolcError) as refused:
        Options(response=response)
    assert refused.value.place == place
    str(refused.value).encode()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Options(jobs=0), "from 1 to"),
        (lambda: Options(jobs="a"), "from 1 to"),  # type: ignore[arg-type]
        (lambda: Budget(seconds=float("nan")), "at Budget.seconds"),
        (lambda: Budget(seconds=-1), "at Budget.seconds"),
        (lambda: Budget(states="a"), "at Budget.states"),  # type: ignore[arg-type]
        (lambda: Budget(rows=True), "at Budget.rows"),
        (lambda: compile_grammar(None), "expected Lark text"),  # type: ignore[arg-type]
        (lambda: compile_schema({}, 5), "no such tokenizer"),  # type: ignore[arg-type]
        (lambda: compile_schema({}, eos=(None,)), "expected a name or an id"),  # type: ignore[arg-type]
        (lambda: compile_schema({}, eos=(1.5,)), "expected a name or an id"),  # type: ignore[arg-type]
        (lambda: compile_tools(TOOLS, options=Options(protocol=5)), "the name of a protocol"),  # type: ignore[arg-type]
        (lambda: compile_tools(TOOLS, options=Options(protocol="x" * 300)), "no such protocol"),
        (lambda: compile_tools(TOOLS, "x" * 300), "no such tokenizer"),
    ],
    ids=range(13),
)
def test_other_arguments(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(ToolcError) as refused:
        call()
    assert words in str(refused.value)
