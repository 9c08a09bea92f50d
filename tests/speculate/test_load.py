"""While one request is a lot of work, others are answered: a server over loopback, and an executor on its own loop."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.speculate.small import bias, bundle, causal, encoder, service
from tests.speculate.test_server import CALL, FUNCTIONS, Server, post
from toolc.compiler import Options, compile_tools
from toolc.runtime import Call, Reader, write_call
from toolc.runtime.speculate import drafting as drafting_module
from toolc.runtime.speculate import server as server_module
from toolc.runtime.speculate.causal import CausalModel
from toolc.runtime.speculate.chat import Chat
from toolc.runtime.speculate.engine import Engine, EngineLimits
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.server import VALUES, Refused, parse
from toolc.runtime.speculate.service import Service
from toolc.runtime.speculate.tools import Toolset, tool

SOON_S = 10.0
"""Within this /health is answered, on a machine that is busy with much else; alone it takes milliseconds."""
ASK: Any = [{"role": "user", "content": "hello"}]
NOTE = {
    "name": "note",
    "input_schema": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    },
    "x-toolc": {"read_only": True},
}
NOTES: Any = [{"type": "function", "function": {"name": "note", "parameters": NOTE["input_schema"]}}]


def notes(**more: Any) -> Server:
    """A server whose one tool takes any text."""
    compiled = compile_tools([NOTE], "builtin", options=Options(protocol="hermes", whitespace="spaced")).bundle
    assert compiled.vocab.size == bundle().vocab.size
    engine = Engine(CausalModel(causal(), 4, 2048, bias()), compiled, encoder(), EngineLimits(**more))
    return Server(Service(engine, Chat(compiled, encoder())), max_body=1 << 20)


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    running = Server(service(slots=4), max_body=1 << 20)
    yield running
    running.close()


def health_s(of: Server) -> float:
    """Seconds until /health answers."""
    begin = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", of.port, timeout=20)
    connection.request("GET", "/health")
    assert connection.getresponse().status == 200
    connection.close()
    return time.monotonic() - begin


class Held:
    """A function that begins, and goes on when it is let go."""

    def __init__(self, of: Callable[..., Any]) -> None:
        self.of, self.came, self.go = of, threading.Event(), threading.Event()

    def __call__(self, *given: Any, **more: Any) -> Any:
        self.came.set()
        assert self.go.wait(30)
        return self.of(*given, **more)


async def speak(of: Server, handed: Any = None) -> Any:
    """A streamed answer; an output for its call is handed in at once."""
    client = of.client()
    stream = await client.chat.completions.create(
        model="toolc", messages=ASK, **{**CALL, "tools": NOTES if handed else FUNCTIONS}, max_tokens=40, stream=True
    )
    async for chunk in stream:
        if handed is not None:
            await post(client, chunk.id, [handed])
            handed = None
    return chunk


async def complete(of: Server) -> Any:
    return await of.client().chat.completions.create(model="toolc", messages=ASK, **CALL, max_tokens=40)


async def hand_in(of: Server) -> Any:
    return await asyncio.to_thread(of.post, "/v1/cache-tool-output/x", '[{"name": "look", "output": "x"}]')


@pytest.mark.parametrize(
    ("owner", "name", "ask"),
    [
        (server_module, "parse", complete),
        (server_module, "completion_of", complete),
        (server_module, "entries_of", hand_in),
        (Engine, "key", hand_in),
        (Engine, "_take_all", complete),
    ],
    ids=["body", "options", "entries", "arguments", "tokens"],
)
def test_what_grows_with_a_request_is_not_on_the_loop(
    small: Server, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, ask: Callable[[Server], Any]
) -> None:
    held = Held(getattr(owner, name))
    monkeypatch.setattr(owner, name, lambda *given: held(*given))

    async def main() -> None:
        task = asyncio.create_task(ask(small))
        assert await asyncio.to_thread(held.came.wait, 20)
        assert await asyncio.to_thread(health_s, small) < SOON_S
        held.go.set()
        await task

    try:
        asyncio.run(main())
    finally:
        held.go.set()


def test_a_draft_that_takes_long_holds_no_other_request_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own goes on, too, without it."""
    held = Held(drafting_module.write_call)
    monkeypatch.setattr(drafting_module, "write_call", held)
    of = notes()

    async def main() -> None:
        task = asyncio.create_task(speak(of, {"name": "note", "params": {"text": "x"}, "output": "x"}))
        assert await asyncio.to_thread(held.came.wait, 20)
        assert await asyncio.to_thread(health_s, of) < SOON_S
        assert (await task).choices[0].finish_reason == "length"

    try:
        asyncio.run(main())
        assert of.service.engine.counts.drafts == 0
    finally:
        held.go.set()
        of.close()


@pytest.mark.parametrize("text", ["a b<" * 15_000, "\\" * 30_000, "]}" * 30_000], ids=["text", "escapes", "brackets"])
def test_long_arguments_that_are_handed_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """No text is sought for them. That alone stopped the server for a minute."""
    sought: list[Any] = []
    monkeypatch.setattr(drafting_module, "write_call", lambda *given: sought.append(given))
    of, slowest, done = notes(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            slowest[0] = max(slowest[0], health_s(of))

    async def main() -> None:
        watching = asyncio.create_task(asyncio.to_thread(watch))
        try:
            await asyncio.wait_for(speak(of, {"name": "note", "params": {"text": text}, "output": "x"}), 60)
        finally:
            done.set()
            await watching

    try:
        asyncio.run(main())
        assert 0 < slowest[0] < SOON_S
        assert not sought
    finally:
        of.close()


def test_bodies_are_bounded_before_they_are_parsed(small: Server) -> None:
    for body in (b"[" + b"[]," * 330_000 + b"[]]", b"[" * 1_000_000, b'{"a":' * 150_000):
        begin = time.process_time()
        with pytest.raises(Refused, match=str(VALUES)) as refused:
            parse(body)
        assert refused.value.status == 413 and time.process_time() - begin < 1
    status, text = small.post("/v1/chat/completions", json.dumps({"messages": [[]] * (VALUES + 1)}))
    assert status == 413 and f"more than {VALUES}" in text
    for text_with_commas in ("," * 500_000, '\\"[{,' * 50_000):
        assert parse(json.dumps({"a": text_with_commas}).encode()) == {"a": text_with_commas}
    for half in (b'"' + b'\\"' * 400_000, b'["' + b"," * 100_000, b'"\\'):  # texts without an end
        begin = time.process_time()
        with pytest.raises(Refused, match="no JSON"):
            parse(half)
        assert time.process_time() - begin < 1


def test_entries_are_bounded(small: Server) -> None:
    most = small.service.engine.limits.cache.entries
    entries = [{"name": "look", "output": ""}] * (most + 1)
    status, text = small.post("/v1/cache-tool-output/x", json.dumps(entries))
    assert status == 413 and f"more than the {most}" in text and "entries" in text


def test_a_prompt_that_cannot_fit_is_not_rendered_to_its_end() -> None:
    on, encoded = service(capacity=100), []

    def encode(text: str) -> list[int]:
        encoded.append(text)
        return encoder()(text)

    on.chat.encode = encode
    of = Server(on, max_body=1 << 20)
    try:
        messages = [{"role": "user", "content": f"{n} " * 90} for n in range(200)]
        status, text = of.post("/v1/chat/completions", json.dumps({"messages": messages}))
    finally:
        of.close()
    assert status == 400 and "does not fit" in text and len(encoded) < 20


# ---------------------------------------------------------------- the client


def guess(text: str) -> Callable[[], Any]:
    async def sample() -> Iterable[Call]:
        return [Call("note", {"text": text}, json.dumps({"text": text}))]

    return sample


@tool(read_only=True)
async def note(text: str) -> str:
    return text[:9]


def test_a_check_holds_the_loop_not_up() -> None:
    held = Held(lambda call: True)

    async def main() -> None:
        async with Executor(Toolset([note]), accepts=held) as executor:
            turn = executor.begin([guess("a")])
            while not held.came.is_set():
                await asyncio.sleep(0.01)
            begin = time.monotonic()
            await asyncio.sleep(0.01)  # the loop goes on
            assert time.monotonic() - begin < SOON_S
            assert executor.counts.started == 0
            held.go.set()
            while not executor.counts.started:
                await asyncio.sleep(0.01)
            executor.end(turn)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_check_that_ends_after_its_turn_starts_nothing() -> None:
    held = Held(lambda call: True)

    async def main() -> None:
        async with Executor(Toolset([note]), accepts=held) as executor:
            turn = executor.begin([guess("a")])
            while not held.came.is_set():
                await asyncio.sleep(0.01)
            executor.end(turn)
            held.go.set()
            await asyncio.sleep(0.1)
            assert executor.counts.started == executor.pending == 0

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_long_guess_is_not_looked_at_and_a_long_call_is_run() -> None:
    checked: list[Call] = []

    def accepts(call: Call) -> bool:
        checked.append(call)
        return True

    async def main() -> None:
        async with Executor(Toolset([note]), accepts=accepts, limits=Limits(samples=2, guess_bytes=100)) as executor:
            long = "é" * 60
            turn = executor.begin([guess(long), guess("short")])
            await asyncio.sleep(0.2)
            assert (executor.counts.over_limit, executor.counts.started, len(checked)) == (1, 1, 1)
            calls = [Call("note", {"text": long}, json.dumps({"text": long})), Call("note", {"text": "short"})]
            turn.settle(calls)
            assert [(await turn.run(call)).text for call in calls] == ["é" * 9, "short"]
            assert (executor.counts.hits, executor.counts.misses) == (1, 1)
            executor.end(turn)

    asyncio.run(asyncio.wait_for(main(), 60))


@pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder"])
def test_writing_takes_memory_as_the_call_is_long(protocol: str) -> None:
    """It kept a copy of the text for every byte: 60 KB took gigabytes."""
    start, size = Reader(compile_tools([NOTE], "builtin", options=Options(protocol=protocol)).bundle, "required"), 2400
    tracemalloc.start()
    assert write_call(start, "note", {"text": "a b<" * (size // 4)}) is not None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000 * size
