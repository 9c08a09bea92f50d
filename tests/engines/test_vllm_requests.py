"""Ordinary requests of a real vLLM: the `openai` client, unchanged, and answers judged by `jsonschema`.

The server has few blocks of memory, so that requests are preempted, and more of them at a time than rows.
"""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .asks import Ask, Said, formats, kinds, lists, mixed, say, tool, wrong
from .serving import Server, environment, serving

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
COMMAND = shlex.split(next(line for _, block in BLOCKS for line in block.splitlines() if "vllm serve" in line))
"""What the page has users write: a variable, vllm serve, a model, and arguments."""
ARGUMENTS = [*COMMAND[4:], "--block-size", "32", "--num-gpu-blocks-override", "44"]
FLAT = [{"type": "function", **one["function"]} for one in lists(strict=True)[0]]


@pytest.fixture(scope="module")
def server(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("requests")
    name, _, value = COMMAND[0].partition("=")
    variables = environment(TOOLC_STORE=str(place / "store"), **{name: value})
    with serving(model, place / "log.txt", variables, ARGUMENTS) as found:
        yield found


def clients(server: Server) -> Any:
    openai = pytest.importorskip("openai")
    return openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="none", timeout=900, max_retries=0)


def answers(server: Server, asks: list[Ask], at_once: int) -> list[Said]:
    """Answers to requests, so many at a time."""

    async def run() -> list[Said]:
        client, gate = clients(server), asyncio.Semaphore(at_once)

        async def one(ask: Ask) -> Said:
            async with gate:
                return await say(client, ask)

        return list(await asyncio.gather(*map(one, asks)))

    return asyncio.run(run())


def counted(server: Server) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, value in server.metrics().items():
        if name.startswith("toolc:requests_total"):
            found[name.partition('outcome="')[2].partition('"')[0]] += int(value)
    return found


@pytest.mark.short
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_every_field(server: Server, stream: bool) -> None:
    asks = [
        Ask(ask.name, {**ask.fields, "stream": stream, "temperature": 0, "max_tokens": 128}, ask.prompt, *rest(ask))
        for ask in kinds(lists(strict=True)[0], formats()[0])
    ]
    before = counted(server)
    for ask, said in zip(asks, answers(server, asks, 4)):
        assert wrong(ask, said) is None, (ask.name, said)
    new = counted(server) - before
    assert new == Counter(held=len(asks) - 1, free=1)


@pytest.mark.short
def test_the_page_runs(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("openai")
    (code,) = [block for kind, block in BLOCKS if kind == "python"]
    exec(compile(code.replace("http://localhost:8000", server.url), "docs/serving.md", "exec"), {})
    name, arguments = capsys.readouterr().out.splitlines()[0].split(" ", 1)
    said = json.loads(arguments)
    assert name == "weather" and said["place"] in ("Basel", "Bern") and 1 <= said["days"] <= 9


@pytest.mark.short
def test_bundles_of_an_image_are_found(server: Server, model: Path, tmp_path: Path) -> None:
    lines = [line for kind, block in BLOCKS if kind == "sh" for line in block.splitlines() if "--store" in line]
    body = {
        "model": "small",
        "messages": [{"role": "user", "content": "x"}],
        "tools": [tool("early", {"type": "object"})],
    }
    (tmp_path / "request.json").write_text(json.dumps(body))
    store = server.log.parent / "store"
    (command,) = [line.replace("/var/toolc", str(store)).replace("Qwen/Qwen3-8B", str(model)) for line in lines]
    toolc = [sys.executable, "-m", "toolc.compiler.cli", *shlex.split(command)[1:]]
    subprocess.run(toolc, cwd=tmp_path, check=True, capture_output=True)
    found = 'toolc:bundles_total{how="found"}'
    before = server.metrics()[found]
    assert server.post("/v1/chat/completions", {**body, "max_tokens": 4})[0] == 200
    assert server.metrics()[found] == before + 1


def rest(ask: Ask) -> tuple[Any, ...]:
    return ask.callable, ask.least, ask.most, ask.format


def test_mixed_requests(server: Server) -> None:
    check_mixed(server, 60)


@pytest.mark.slow
def test_500_mixed_requests(server: Server) -> None:
    check_mixed(server, 500)


def check_mixed(server: Server, count: int) -> None:
    asks = list(mixed(count))
    before, began = counted(server), time.monotonic()
    preempted = server.metric("vllm:num_preemptions_total")
    given = answers(server, asks, 24)
    problems = [
        (ask.name, ask.fields, problem, said)
        for ask, said in zip(asks, given)
        if (problem := wrong(ask, said)) is not None
    ]
    assert not problems
    free = sum(ask.is_free for ask in asks)
    assert counted(server) - before == Counter(held=count - free, free=free)
    preemptions = int(server.metric("vllm:num_preemptions_total") - preempted)
    assert preemptions > 0
    print(f"{count} requests, {free} of them free, {preemptions} preemptions, {time.monotonic() - began:.0f} s")
    print("kinds:", dict(Counter(ask.name for ask in asks)))
    print("calls:", sum(len(said.calls) for said in given), "reasons:", dict(Counter(said.reason for said in given)))


def test_a_budget_that_is_too_small_cuts(server: Server) -> None:
    status, body = server.chat("weather?", tools=lists()[0], tool_choice="required", max_tokens=6)
    assert (status, body["choices"][0]["finish_reason"]) == (200, "length")


def test_what_is_refused_is_left_to_the_engine(server: Server) -> None:
    again = tool("again", {"type": "object", "properties": {"a": {"type": "string", "pattern": r"^(a*)\1$"}}})
    before = counted(server)
    status, _ = server.chat("Hello!", tools=[again], max_tokens=4)
    assert status == 200
    assert counted(server) - before == Counter(fallback=1)
    assert "/tools/0/function/parameters/properties/a/pattern" in server.log.read_text(errors="replace")


@pytest.mark.short
def test_responses(server: Server) -> None:
    body = {"model": "small", "input": "weather?", "temperature": 0, "max_output_tokens": 128, "tools": FLAT}
    choice = {"type": "function", "name": "stations"}
    status, answer = server.post("/v1/responses", {**body, "tool_choice": choice, "parallel_tool_calls": False})
    assert status == 200
    (call,) = [item for item in answer["output"] if item["type"] == "function_call"]
    assert call["name"] == "stations" and json.loads(call["arguments"])["state"] in ("BS", "ZH", "BE")
    assert (answer["tool_choice"], answer["parallel_tool_calls"]) == (choice, False)
    assert [one["strict"] for one in answer["tools"]] == [True, True]
    schema = formats()[0]["json_schema"]["schema"]
    text = {"format": {"type": "json_schema", "name": "city", "schema": schema, "strict": True}}
    status, answer = server.post("/v1/responses", {**body, "tools": [], "text": text})
    (message,) = answer["output"]
    assert status == 200 and set(json.loads(message["content"][0]["text"])) == {"city", "n"}


@pytest.mark.short
def test_messages(server: Server) -> None:
    tools = [{"name": one["name"], "input_schema": one["parameters"], "strict": True} for one in FLAT]
    body = {
        "model": "small",
        "max_tokens": 128,
        "temperature": 0,
        "messages": [{"role": "user", "content": "weather?"}],
    }
    choice = {"type": "any", "disable_parallel_tool_use": True}
    status, answer = server.post("/v1/messages", {**body, "tools": tools, "tool_choice": choice})
    (block,) = answer["content"]
    assert (status, block["type"], answer["stop_reason"]) == (200, "tool_use", "tool_use")
    assert block["name"] in {one["name"] for one in tools}


@pytest.mark.slow
def test_free_requests_are_what_they_are_without_toolc(
    server: Server, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    asks = [
        Ask("free", {"temperature": 0, "max_tokens": 48, "logprobs": True}, f"{number}. Say something of {word}.")
        for number, word in enumerate("rain snow trains Bern numbers tools JSON weather".split())
    ]
    tokens = [raw(server, ask) for ask in asks]
    place = tmp_path_factory.mktemp("without")
    with serving(model, place / "log.txt", environment(VLLM_PLUGINS="none"), ARGUMENTS) as plain:
        assert [raw(plain, ask) for ask in asks] == tokens


def raw(server: Server, ask: Ask) -> Any:
    """The tokens of an answer."""
    status, body = server.chat(ask.prompt, **ask.fields)
    assert status == 200
    return [one["token"] for one in body["choices"][0]["logprobs"]["content"]]
