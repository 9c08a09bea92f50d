"""`transformers serve` behind the unchanged `openai` client: tools and response formats hold by themselves."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from .mixed import BUDGET, messages, requests
from .places import model_folder
from .serving import START_S, free_port

pytest.importorskip("transformers.cli.serving")
pytest.importorskip("accelerate")  # `transformers serve` loads no model without it
openai = pytest.importorskip("openai")

from toolc.runtime.adapters import transformers_serve  # noqa: E402


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from transformers.cli.serve import Serve

    model: Path = model_folder()
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLC_PROTOCOL", "hermes")
        patch.setenv("TOOLC_ON_REFUSAL", "400")
        patch.setenv("TOOLC_COMPILE_SECONDS", "600")
        patch.setenv("TOOLC_STORE", str(tmp_path_factory.mktemp("store")))
        transformers_serve.install()
        server = Serve(force_model=str(model), port=port, host="127.0.0.1", device="cpu", non_blocking=True)
        yield client_of(port)
        server.kill_server()


def client_of(port: int) -> Any:
    """A client of a server that has begun."""
    until = time.monotonic() + START_S
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).read()
            return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=600)
        except OSError:
            assert time.monotonic() < until, "the server does not begin"
            time.sleep(0.1)


def answer(client: Any, body: dict[str, Any], stream: bool) -> tuple[str, list[tuple[str, Any]], str]:
    """Content, calls and the reason of the end."""
    asked = {**body, "messages": messages(body), "model": str(model_folder()), "max_tokens": BUDGET}
    if not stream:
        (choice,) = client.chat.completions.create(**asked).choices
        calls = [one.function for one in choice.message.tool_calls or []]
        return choice.message.content or "", [(c.name, json.loads(c.arguments)) for c in calls], choice.finish_reason
    content, found, reason = "", [], ""
    for chunk in client.chat.completions.create(**asked, stream=True):
        for choice in chunk.choices:
            content += choice.delta.content or ""
            found += [one.function for one in choice.delta.tool_calls or []]
            reason = choice.finish_reason or reason
    return content, [(c.name, json.loads(c.arguments)) for c in found], reason


def check(body: dict[str, Any], content: str, calls: list[tuple[str, Any]], reason: str) -> None:
    if "response_format" in body:
        jsonschema.validate(json.loads(content), body["response_format"]["json_schema"]["schema"])
        assert not calls and reason == "stop"
        return
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in body["tools"]}
    for name, arguments in calls:
        jsonschema.validate(arguments, schemas[name])
    choice = body.get("tool_choice", "auto")
    assert (bool(calls) == (choice != "none")) or choice == "auto"
    assert reason == ("tool_calls" if calls else reason)
    if isinstance(choice, dict):
        one = choice if choice["type"] == "function" else choice["allowed_tools"]["tools"][0]
        assert {name for name, _ in calls} == {one["function"]["name"]}


@pytest.mark.parametrize("stream", [False, True])
def test_mixed_requests(client: Any, stream: bool) -> None:
    """The judge accepts all answers; as many were held as were sent."""
    bodies = requests(8, seed=8 + stream)
    before = transformers_serve.told.copy()
    for body in bodies:
        check(body, *answer(client, body, stream))
    assert transformers_serve.told - before == {"held": len(bodies)}


def test_a_free_request(client: Any) -> None:
    body = {"messages": [{"role": "user", "content": "Hello!"}], "temperature": 0.0}
    before = transformers_serve.told.copy()
    content, calls, reason = answer(client, body, False)
    assert content and not calls and reason in ("stop", "length")
    assert transformers_serve.told - before == {"free": 1}


def test_refused(client: Any) -> None:
    """Where the operator chose 400; the next request is served."""
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "array", "uniqueItems": True}}}
    body = {"messages": [{"role": "user", "content": "Hello!"}], "tools": [tool]}
    before = transformers_serve.told.copy()
    with pytest.raises(openai.BadRequestError):
        answer(client, body, False)
    assert transformers_serve.told - before == {"refused": 1}
    test_a_free_request(client)


def test_the_page(tmp_path: Path) -> None:
    """docs/serving/transformers.md: its command, but for pip, and a request that has to call a tool."""
    page = (Path(__file__).parents[2] / "docs" / "serving" / "transformers.md").read_text(encoding="utf-8")
    (shell,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    install, command = shell.splitlines()
    assert install.startswith("pip install ")
    variables, words = [], shlex.split(command)
    while "=" in words[0]:
        variables.append(words.pop(0).partition("=")[::2])
    port = free_port()
    assert words.pop(0) == "python" and words[-3:] == ["MODEL", "--port", "8000"]
    words[-3:] = [str(model_folder()), "--port", str(port), "--device", "cpu"]
    env = {**os.environ, **dict(variables), "TOOLC_STORE": str(tmp_path / "store"), "TOOLC_COMPILE_SECONDS": "120"}
    with (tmp_path / "log.txt").open("wb") as log:
        server = subprocess.Popen([sys.executable, *words], env=env, stdout=log, stderr=log, cwd=tmp_path)
    try:
        body = next(body for body in requests(8) if body.get("tool_choice") == "required")
        check(body, *answer(client_of(port), body, False))
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
