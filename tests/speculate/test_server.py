"""The server over loopback, driven by the real openai client."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest
import uvicorn
from openai.lib.streaming.chat import ChatCompletionStreamState

from tests.speculate.small import TOOLS, service
from toolc.runtime import DecodeError
from toolc.runtime.speculate.agent import parse_call, run_agent
from toolc.runtime.speculate.engine import Engine, EngineLimits, Running
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.openai import OpenAIModel, SpeculativeOpenAI
from toolc.runtime.speculate.outputs import CacheLimits
from toolc.runtime.speculate.server import completion_of, make_app
from toolc.runtime.speculate.service import Service
from toolc.runtime.speculate.tools import Toolset, tool

ASK: Any = [{"role": "user", "content": "hello"}]
FUNCTIONS: Any = [
    {"type": "function", "function": {"name": one["name"], "parameters": one["input_schema"]}} for one in TOOLS
]
CALL: Any = {"tools": FUNCTIONS, "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
CALL_OF_NOTHING: Any = {"id": "x", "type": "function", "function": {"name": "look", "arguments": "{}"}}
USAGE: Any = {"stream": True, "stream_options": {"include_usage": True}}


class Server:
    """A server in a thread."""

    def __init__(self, on: Service, max_body: int = 50_000) -> None:
        self.service = on
        config = uvicorn.Config(make_app(on, max_body), host="127.0.0.1", port=0, log_level="error")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def client(self, key: str = "a") -> Any:
        return openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key=key, max_retries=0)

    def post(self, path: str, body: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("POST", path, body)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    limits = EngineLimits(cache=CacheLimits(output_bytes=1000))
    running = Server(service(slots=4, limits=limits))
    yield running
    running.close()


def tools() -> Toolset:
    @tool(read_only=True)
    async def look(**arguments: Any) -> str:
        return "sunny"

    @tool(read_only=True)
    async def find(**arguments: Any) -> str:
        return "found"

    async def send(**arguments: Any) -> str:
        return "sent"

    return Toolset([look, find, send])


def test_answers(server: Server) -> None:
    async def main() -> None:
        client = server.client()
        assert [one.id async for one in client.models.list()] == ["toolc"]
        whole = await client.chat.completions.create(model="toolc", messages=ASK, **CALL)
        (call,) = whole.choices[0].message.tool_calls
        assert whole.choices[0].finish_reason == "tool_calls"
        assert whole.usage.completion_tokens > 10
        state, parts = ChatCompletionStreamState(), []
        async for chunk in await client.chat.completions.create(model="toolc", messages=ASK, **CALL, **USAGE):
            state.handle_chunk(chunk)
            parts += [part for choice in chunk.choices for part in choice.delta.tool_calls or ()]
        streamed = state.get_final_completion()
        assert (streamed.id, streamed.choices[0].finish_reason) == (chunk.id, "tool_calls")
        (other,) = streamed.choices[0].message.tool_calls or ()
        assert (other.function.name, other.function.arguments) == (call.function.name, call.function.arguments)
        assert streamed.usage == whole.usage
        assert len(parts) > 5 and [part.id for part in parts if part.id] == [other.id] != [call.id]  # as tokens come
        chosen = {**CALL, "tool_choice": {"type": "function", "function": {"name": "send"}}}
        named = await client.chat.completions.create(model="toolc", messages=ASK, **chosen)
        assert named.choices[0].message.tool_calls[0].function.name == "send"
        text = await client.chat.completions.create(
            model="toolc", messages=ASK, tools=FUNCTIONS, tool_choice="none", max_tokens=5, seed=2, temperature=80
        )
        assert text.choices[0].message.tool_calls is None
        pieces = await client.chat.completions.create(
            model="toolc",
            messages=ASK,
            tools=FUNCTIONS,
            tool_choice="none",
            max_tokens=5,
            seed=2,
            temperature=80,
            stream=True,
        )
        said = [chunk.choices[0].delta.content async for chunk in pieces if chunk.choices[0].delta.content]
        assert "".join(said) == (text.choices[0].message.content or "") and len(said) > 1
        assert len(server.service.engine.outputs) == 0

    asyncio.run(main())


@pytest.mark.parametrize(
    ("asked", "entry"),
    [
        ({"tools": FUNCTIONS}, "auto"),
        ({"tools": FUNCTIONS, "parallel_tool_calls": False}, "auto/one"),
        ({"tools": FUNCTIONS, "tool_choice": "required", "parallel_tool_calls": True}, "required"),
        ({"tools": FUNCTIONS, "tool_choice": "none"}, "none"),
        ({"tools": FUNCTIONS, "tool_choice": "none", "parallel_tool_calls": False}, "none"),
        (
            {
                "tools": FUNCTIONS,
                "tool_choice": {"type": "function", "function": {"name": "send"}},
                "parallel_tool_calls": False,
            },
            "tool:send",
        ),
        ({}, "none"),
        ({"tools": [], "parallel_tool_calls": False}, "none"),
        ({"tool_choice": "none"}, "none"),
    ],
)
def test_entries(server: Server, asked: dict[str, Any], entry: str) -> None:
    assert completion_of(server.service, {"messages": ASK, **asked}, "").entry == entry


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tool_choice": {"type": "function", "function": {"name": "none"}}}, "no entry"),
        ({"tools": FUNCTIONS[:1]}, "those of the bundle"),
        ({"tools": []}, "needs tools"),
        ({"tool_choice": "start"}, "expected auto, required, none"),
        ({"tool_choice": ["auto"]}, "expected auto, required, none"),
        ({"temperature": -1}, "temperature"),
        ({"n": 2}, "one answer"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": ""}]}, "no such role"),
        ({"logprobs": True}, "no option"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "x"}]}]}, "no list of calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [CALL_OF_NOTHING]}]}, "no text under the bundle"),
    ],
    ids=lambda x: str(x)[:24],
)
def test_refused(server: Server, change: dict[str, Any], words: str) -> None:
    async def main() -> None:
        with pytest.raises(openai.BadRequestError, match=words):
            await server.client().chat.completions.create(**{"model": "toolc", "messages": ASK, **CALL, **change})

    asyncio.run(main())


async def post(client: Any, id: str, entries: Any) -> Any:
    return await client.post(f"/cache-tool-output/{id}", body=entries, cast_to=dict[str, int])


def test_tool_cache(server: Server) -> None:
    async def main() -> None:
        client, other = server.client("a"), server.client("b")
        whole = await client.chat.completions.create(model="toolc", messages=ASK, **CALL)
        (made,) = whole.choices[0].message.tool_calls
        call = parse_call(made.function.name, made.function.arguments)
        good = {"name": call.name, "params": dict(call.arguments), "output": "sunny", "keep_alive": 60}
        stream = await client.chat.completions.create(model="toolc", messages=ASK, **CALL, stream=True)
        chunks = aiter(stream)
        first = await anext(chunks)
        for who, id, entries, error in (
            (other, first.id, [good], openai.NotFoundError),
            (client, "chatcmpl-0", [good], openai.NotFoundError),
            (client, first.id, [{**good, "name": "none"}], openai.BadRequestError),
            (client, first.id, [{**good, "name": "send"}], openai.BadRequestError),
            (client, first.id, [{**good, "output": "x" * 1001}], openai.BadRequestError),
            (client, first.id, [{"name": call.name}], openai.BadRequestError),
            (client, first.id, [{**good, "more": 1}], openai.BadRequestError),
            (client, first.id, good, openai.BadRequestError),
            (client, first.id, [{**good, "output": "x" * 60_000}], openai.APIStatusError),
        ):
            with pytest.raises(error):
                await post(who, id, entries)
        await stream.close()
        twin = await client.chat.completions.create(model="toolc", messages=ASK, **CALL, stream=True)
        chunks = aiter(twin)
        id = (await anext(chunks)).id
        other = {**good, "params": {**good["params"], "days": 1}, "output": {"any": ["JSON", 1]}}
        assert await post(client, id, [other, good]) == {"cached": 2}
        with pytest.raises(openai.BadRequestError) as error:
            await post(client, id, [{**good, "name": "none"}, good, {**good, "output": "sunny", "keep_alive": -1}])
        assert (error.value.body or {})["param"] == "0"
        told = error.value.response.json()
        assert (told["cached"], told["taken"]) == (1, [1])
        assert [(one["entry"], one["param"]) for one in told["refused"]] == [(2, "2/keep_alive"), (0, "0")]
        resident = [
            one async for chunk in chunks for one in (chunk.choices[0].delta.model_extra or {}).get("resident", ())
        ]
        assert [one["role"] for one in resident[:2]] == ["assistant", "tool"]
        assert resident[1]["content"] == "sunny"

    asyncio.run(main())
    until = time.monotonic() + 10
    while server.service.engine.active and time.monotonic() < until:
        time.sleep(0.01)  # the stream that was closed is noticed at the next chunk
    assert server.service.engine.active == 0 and len(server.service.engine.outputs) == 0


def test_agents_over_http_are_equal(server: Server) -> None:
    options = {"tools": FUNCTIONS, "parallel_tool_calls": False, "temperature": 0, "max_tokens": 60}

    async def run(speculative: bool) -> tuple[list[Any], Any]:
        main = OpenAIModel(server.client(), "toolc", options, cached=speculative)
        small = OpenAIModel(server.client("small"), "toolc", options)
        rules = server.service.engine.rules
        async with Executor(tools(), rules, limits=Limits(keep_alive_s=5)) as executor:

            def guesser(messages: Any) -> Any:
                async def sample() -> Any:
                    return (await small.reply(messages)).calls

                return [sample]

            done = await run_agent(main, executor, ASK, guesser if speculative else None, max_turns=3)
        assert executor.pending == 0
        return [(one["role"], one["content"]) for one in done.messages], executor.counts

    plain, _ = asyncio.run(run(False))
    guessed, counts = asyncio.run(run(True))
    assert guessed == plain
    assert "send" not in counts.ran_early
    assert counts.samples >= 1 and counts.sample_errors == 0


def test_drop_in_wrapper(server: Server) -> None:
    async def main() -> None:
        gone = openai.AsyncOpenAI(base_url="http://127.0.0.1:9/v1", api_key="x", max_retries=0)
        plain = await server.client().chat.completions.create(model="toolc", messages=ASK, **CALL)
        for small in (server.client("small"), gone):
            executor = Executor(tools(), server.service.engine.rules)
            client = SpeculativeOpenAI(server.client(), small, executor, "toolc")
            answer = await client.chat.completions.create(model="toolc", messages=ASK, **CALL)
            (one,), (other,) = (each.choices[0].message.tool_calls for each in (plain, answer))
            assert one.function == other.function
            (output,) = await client.run(answer)
            assert output.text in ("sunny", "found", "sent")
            assert [model.id async for model in client.models.list()] == ["toolc"]
            await client.aclose()
            assert executor.pending == 0
        assert executor.counts.sample_errors == 1 and executor.counts.misses == 1

    asyncio.run(main())


def test_drop_in_wrapper_streams(server: Server) -> None:
    async def main() -> None:
        executor = Executor(tools(), server.service.engine.rules)
        client = SpeculativeOpenAI(server.client(), server.client("small"), executor, "toolc")
        asked = {"model": "toolc", "messages": ASK, **CALL, "stream": True}
        state = ChatCompletionStreamState()
        async with await client.chat.completions.create(**asked) as stream:
            async for chunk in stream:
                state.handle_chunk(chunk)
        (output,) = await client.run(state.get_final_completion())
        assert output.text in ("sunny", "found", "sent") and executor.counts.samples == 1
        async with await client.chat.completions.create(**asked) as stream:
            await anext(stream)  # and no more: the turn is given up
        assert not client._open
        async for _ in await client.chat.completions.create(**asked):
            pass  # read, and never run
        assert len(client._open) == 1
        await client.aclose()
        assert executor.pending == 0 and not executor._turns

    asyncio.run(main())


def test_a_client_that_goes_away_frees_its_slot(server: Server) -> None:
    async def main() -> None:
        client, before = server.client(), server.service.engine.counts.abandoned
        tasks = [
            asyncio.create_task(client.chat.completions.create(model="toolc", messages=ASK, **CALL)) for _ in range(12)
        ]
        while server.service.engine.active < 12:
            await asyncio.sleep(0.001)
        for task in tasks:  # four run and eight wait: all of them go
            task.cancel()
        await asyncio.wait(tasks)
        until = time.monotonic() + 20
        while server.service.engine.active and time.monotonic() < until:
            await asyncio.sleep(0.01)
        assert server.service.engine.active == 0
        assert server.service.engine.counts.abandoned > before

    asyncio.run(main())


def test_a_client_that_goes_away_within_its_body_is_no_error_of_the_server(server: Server) -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "query_string": b"", "headers": []}
    asyncio.run(make_app(server.service)(scope, receive, send))
    assert sent[0]["status"] == 499


CACHE = "/v1/cache-tool-output/x"
HALF: Any = [{"role": "user", "content": "\ud83d"}]
NO_ID: Any = [{"role": "assistant", "tool_calls": [{**CALL_OF_NOTHING, "id": [1]}]}]
LONG: Any = {**CALL_OF_NOTHING, "function": {"name": "look", "arguments": json.dumps({"place": "a" * 5000})}}


def choose(name: Any) -> Any:
    return {"tools": FUNCTIONS, "tool_choice": {"type": "function", "function": {"name": name}}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"messages": HALF}, "messages/0/content"),
        ({"messages": [{"role": "user", "content": "x", "\ud83d": 1}]}, "messages/0"),
        ({"\ud83d": 1}, "half a surrogate"),
        ({"tools": [{**FUNCTIONS[0], "more": [0, "\udc00"]}, *FUNCTIONS[1:]]}, "tools/0/more/1"),
        ({"messages": NO_ID}, "messages/0/tool_calls/0/id"),
        ({"messages": [{"role": "assistant", "tool_calls": [CALL_OF_NOTHING, LONG]}]}, "messages/0/tool_calls/1"),
        ({"stream": "false"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"parallel_tool_calls": "x"}, "parallel_tool_calls"),
        ({"tool_choice": {}}, "tool_choice"),
        ({"tools": FUNCTIONS, "tool_choice": {}}, "tool_choice"),
        ({"tools": FUNCTIONS, "tool_choice": []}, "tool_choice"),
        ({"tools": FUNCTIONS, "tool_choice": ""}, "tool_choice"),
        (choose("look/inside"), "tool_choice"),
        (choose({}), "tool_choice"),
        ({"tools": {}}, "tools"),
        ({"n": True}, '"n"'),
        ({"stream": True, "stream_options": {"include_usage": "yes"}}, "stream_options/include_usage"),
        ({"stream": True, "stream_options": []}, "stream_options"),
        ({"max_tokens": 2.7}, "max_tokens"),
        ({"max_completion_tokens": 2.7}, "max_completion_tokens"),
        ({"seed": 1.5}, "seed"),
    ],
    ids=lambda x: ascii(x)[:40],
)
def test_odd_values_are_refused(server: Server, change: dict[str, Any], words: str) -> None:
    status, text = server.post("/v1/chat/completions", json.dumps({"messages": ASK, "max_tokens": 2, **change}))
    assert status == 400 and words in text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('[], "x": 1', "no JSON"),
        ('{"entries": []}', "array"),
        ('[{"name": "look", "output": "\\ud83d"}]', "0/output"),
        ('[{"name": "look", "output": "x", "params": {"\\ud83d": 1}}]', "0/params"),
    ],
)
def test_odd_entries_are_refused(server: Server, body: str, words: str) -> None:
    status, text = server.post(CACHE, body)
    assert status == 400 and words in text
    assert server.post(CACHE, "[]") == (200, '{"cached":0}')


def test_whole_numbers_have_any_form(server: Server) -> None:
    asked = completion_of(server.service, {"messages": ASK, "n": 1, "max_tokens": 2.0, "seed": 3e0}, "")
    assert (asked.sampling.max_tokens, asked.sampling.seed) == (2, 3)


def test_a_history_that_takes_long_holds_nobody_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    came, go, render = threading.Event(), threading.Event(), server.service.chat.render

    def slow(*arguments: Any) -> list[int]:
        came.set()
        assert go.wait(20)
        return render(*arguments)

    async def main() -> None:
        client = server.client()
        task = asyncio.create_task(client.chat.completions.create(model="toolc", messages=ASK, **CALL))
        assert await asyncio.to_thread(came.wait, 20)
        assert [one.id async for one in client.with_options(timeout=5).models.list()] == ["toolc"]
        go.set()
        assert (await task).choices[0].finish_reason == "tool_calls"

    monkeypatch.setattr(server.service.chat, "render", slow)
    try:
        asyncio.run(main())
    finally:
        go.set()


def test_an_answer_that_fails_is_told_in_json(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Engine, one: Running, token: int) -> None:
        raise DecodeError("what was said is no call", place="required")

    monkeypatch.setattr(Engine, "_read", broken)
    status, body = server.post("/v1/chat/completions", json.dumps({"messages": ASK}))
    assert status == 500
    error = json.loads(body)["error"]
    assert error["type"] == "server_error" and "what was said is no call" in error["message"]
    monkeypatch.undo()
    assert server.post("/v1/chat/completions", json.dumps({"messages": ASK, "max_tokens": 1}))[0] == 200
