"""Bodies and answers through ASGI, with an application that says what it got."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from toolc.runtime.serving.gate import Admitted, Answer
from toolc.runtime.serving.middleware import Middleware

CHAT = "/v1/chat/completions"
Answers = list[tuple[bytes, bool]]


class Gate:
    """Rewrites every body to {"rewritten": …}; refuses those that say so."""

    def __init__(self, restore: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.restore = restore
        self.seen: list[Any] = []
        self.passed = 0

    def free(self) -> None:
        self.passed += 1

    async def admit(self, body: Any, api: str) -> Admitted | None:
        self.seen.append((api, body))
        if body == {"tools": []}:
            return None
        if "refused" in body:
            raise Answer(body["refused"], "/tools: not so", "/tools")
        return Admitted({"rewritten": body}, self.restore)


def run(
    gate: Gate | None,
    body: bytes,
    path: str = CHAT,
    answers: Answers | None = None,
    kind: bytes = b"application/json",
    cut: int = 7,
    **scope: Any,
) -> tuple[list[Any], list[Any]]:
    """What the application got (scope, body, what it received next) and what the client got."""
    parts = [body[n : n + cut] for n in range(0, len(body), cut)] or [b""]
    messages: list[Any] = [
        {"type": "http.request", "body": part, "more_body": n < len(parts) - 1} for n, part in enumerate(parts)
    ] + [{"type": "http.disconnect"}]
    got: list[Any] = []
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        data, more = b"", True
        while more:
            message = await receive()
            data, more = data + message["body"], message["more_body"]
        got.extend([scope, data, await receive()])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
        for part, more in answers or [(b"{}", False)]:
            await send({"type": "http.response.body", "body": part, "more_body": more})

    about = {"type": "http", "method": "POST", "path": path, "headers": [(b"Content-Length", b"1"), (b"x", b"y")]}
    asyncio.run(Middleware(app, lambda: gate)({**about, **scope}, receive, send))  # type: ignore[arg-type, return-value]
    return got, sent


def test_a_body_is_rewritten() -> None:
    gate = Gate()
    (scope, body, after), sent = run(gate, b'{"tools": [1.5, 0.1234567890123456789]}')
    assert json.loads(body) == {"rewritten": {"tools": [1.5, 0.1234567890123456789]}}
    assert scope["headers"] == [(b"x", b"y"), (b"content-length", str(len(body)).encode())]
    assert after == {"type": "http.disconnect"}
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert gate.seen[0][0] == "chat"


@pytest.mark.parametrize(
    ("body", "path", "more"),
    [
        (b'{"messages": []}', CHAT, {}),
        (b'{"tools": [}', CHAT, {}),
        (b'{"tools": ' + b"[" * 100_000, CHAT, {}),
        (b'{"tools": []}', CHAT, {}),
        (b'{"tools": [1]}', "/v1/completions", {}),
        (b'{"tools": [1]}', CHAT, {"method": "GET"}),
        (b"", CHAT, {}),
    ],
    ids=["free", "no JSON", "too deep", "not held", "another path", "another method", "empty"],
)
def test_others_pass_byte_for_byte(body: bytes, path: str, more: dict[str, Any]) -> None:
    (scope, data, after), _ = run(Gate(), body, path, cut=65536, **more)
    assert data == body and after == {"type": "http.disconnect"}
    assert scope["headers"] == [(b"Content-Length", b"1"), (b"x", b"y")]


def test_without_a_gate_all_pass() -> None:
    assert run(None, b'{"tools": [1]}')[0][1] == b'{"tools": [1]}'


def test_names_in_escapes_are_read() -> None:
    gate = Gate()
    run(gate, rb'{"to\u006fls": [1]}')
    run(gate, b'{"messages": []}')
    assert gate.seen == [("chat", {"tools": [1]})] and gate.passed == 1


def test_large_bodies_are_rewritten_too() -> None:
    body = json.dumps({"tools": ["x" * 200_000]}).encode()
    assert json.loads(run(Gate(), body, cut=65536)[0][1]) == {"rewritten": json.loads(body)}


def test_a_root_path_is_passed_over() -> None:
    gate = Gate()
    run(gate, b'{"tools": [1]}', path="/models/small/v1/responses", root_path="/models/small")
    assert gate.seen[0][0] == "responses"


@pytest.mark.parametrize(("status", "kind"), [(400, "BadRequestError"), (503, "ServiceUnavailableError")])
def test_refusals_of_openai(status: int, kind: str) -> None:
    got, (start, body) = run(Gate(), json.dumps({"tools": 1, "refused": status}).encode())
    assert not got and start["status"] == status
    error = {"message": "/tools: not so", "type": kind, "param": "/tools", "code": status}
    assert json.loads(body["body"]) == {"error": error}
    assert ((b"retry-after", b"1") in start["headers"]) == (status == 503)


def test_refusals_of_anthropic() -> None:
    _, (start, body) = run(Gate(), b'{"tools": 1, "refused": 400}', path="/v1/messages")
    told = {"type": "error", "error": {"type": "invalid_request_error", "message": "/tools: not so"}}
    assert start["status"] == 400 and json.loads(body["body"]) == told


def seen(answer: dict[str, Any]) -> None:
    answer["seen"] = True


def test_an_answer_is_restored_whole() -> None:
    _, sent = run(Gate(seen), b'{"tools": [1]}', answers=[(b'{"a": "\xc3', True), (b'\xa9"}', False)])
    start, body = sent
    assert json.loads(body["body"]) == {"a": "é", "seen": True}
    assert (b"content-length", str(len(body["body"])).encode()) in start["headers"]


def test_events_are_restored_one_by_one() -> None:
    answers = [(b'data: {"a": 1}\n\ndata: {"b"', True), (b": 2}\n", True), (b"\nevent: x\ndata: [DONE]\n\n", False)]
    _, sent = run(Gate(seen), b'{"tools": [1]}', answers=answers, kind=b"text/event-stream; charset=utf-8")
    bodies = [message["body"] for message in sent if message["type"] == "http.response.body"]
    assert bodies[0] == b'data: {"a":1,"seen":true}\n\n'
    assert b"".join(bodies) == b'data: {"a":1,"seen":true}\n\ndata: {"b":2,"seen":true}\n\nevent: x\ndata: [DONE]\n\n'


def test_answers_that_are_no_json_pass() -> None:
    for kind, data in ((b"text/plain", b"{}"), (b"application/json", b"{")):
        _, sent = run(Gate(seen), b'{"tools": [1]}', answers=[(data, False)], kind=kind)
        assert sent[-1]["body"] == data
