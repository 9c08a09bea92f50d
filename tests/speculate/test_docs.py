"""The Python examples of docs/speculate.md are executed, in order, in one namespace."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import re
import shutil
from pathlib import Path
from typing import Any

import openai
import pytest
import uvicorn
from openai.types.chat import ChatCompletion

from tests.speculate.small import bundle, causal
from toolc.compiler.vocab.builtin import builtin_path
from toolc.runtime.speculate.tools import Output

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = {"id": "c", "type": "function", "function": {"name": "current_weather", "arguments": '{"place": "Basel"}'}}


class Endpoint:
    """An endpoint that asks for one call; only the large one takes its time."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.chat = self.completions = self

    async def create(self, **_: Any) -> Any:
        await asyncio.sleep(0.5 if self.base_url == "large" else 0)
        message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        choices = [{"index": 0, "finish_reason": "tool_calls", "message": message}]
        return ChatCompletion.construct(id="A", choices=choices)


async def asked(app: Any, body: Any) -> tuple[int, Any]:
    """What an application answers to a body."""
    told, sent = [{"type": "http.request", "body": json.dumps(body).encode()}], list[Any]()

    async def receive() -> Any:
        return told.pop() if told else await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b"", "headers": []}
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(one.get("body", b"") for one in sent))


def test_python(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Any] = []
    model = causal()
    model.generation_config.eos_token_id = bundle().vocab.end_of_turn[0]
    model.save_pretrained(tmp_path / "model")
    shutil.copy(builtin_path(), tmp_path / "model" / "tokenizer.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(openai, "AsyncOpenAI", Endpoint)
    monkeypatch.setattr(uvicorn, "run", lambda app, **_: served.append(app))
    names: dict[str, Any] = {"large": "large", "small": "small", "messages": [], "tools": [CALL]}
    text = (repository / "docs" / "speculate.md").read_text(encoding="utf-8")

    async def main() -> None:
        for block in BLOCK.findall(text):
            code = compile(block, "speculate.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            done = eval(code, names)  # a test of our own file
            if inspect.isawaitable(done):
                await done
        assert names["outputs"] == [Output("null")]
        assert (names["executor"].counts.hits, names["executor"].counts.refused) == (1, 0)
        await names["client"].aclose()
        (app,) = served
        status, answer = await asked(app, {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2})
        assert status == 200 and answer["usage"]["completion_tokens"] in (1, 2)

    asyncio.run(main())
