"""Put a gate in front of an ASGI application: bodies of requests are read and rewritten, answers restored.

Leaves out   what is decided: see gate.py.
Invariants   a request that is free passes byte for byte; one that cannot be read (no JSON, too large, too deep) passes
             too, for the engine to answer. A body that names none of the fields that toolc reads is not even parsed.
             Large bodies are parsed in a thread.
Source       ASGI 3.0, HTTP: messages http.request, http.disconnect, http.response.start, http.response.body.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from ..calls.json_text import exact
from .gate import Admitted, Answer, Gate
from .rewrite import CHAT, MESSAGES, RESPONSES, Json, Restore

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_LOG = logging.getLogger(__name__)

ROUTES = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGES}
MOST = 64 << 20
"""Bytes of a body that are read; larger ones pass."""
LARGE = 64 << 10
"""Bytes of a body from which on it is parsed in a thread."""
_FIELDS = (b'"tools"', b'"tool_choice"', b'"response_format"', b'"format"', b'"output_format"', b"toolc_", b"\\u")
"""One of these stands in every body that may be held; the last since names may be written with escapes."""
_EVENT = b"\n\n"


class Middleware:
    """An application behind a gate.

    Args:
        app: the application.
        gate: gives the gate; None as long as there is none.
    """

    def __init__(self, app: Application, gate: Callable[[], Gate | None]) -> None:
        self.app = app
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        gate = self._gate()
        api = _api(scope)
        if gate is None or api is None:
            await self.app(scope, receive, send)
            return
        body, rest = await _read(receive)
        if not rest and not any(field in body for field in _FIELDS):
            gate.free()
        elif not rest:
            parsed = await _parsed(body)
            try:
                admitted = None if parsed is None else await gate.admit(parsed, api)
            except Answer as answer:
                await _say(send, answer, api)
                return
            if admitted is not None:
                scope, body = await _replaced(scope, admitted, len(body))
                if admitted.restore is not None:
                    send = Restoring(send, admitted.restore)
        await self.app(scope, _replay(body, rest, receive), send)


def _api(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope.get("method") != "POST":
        return None
    path = str(scope["path"])
    root = str(scope.get("root_path") or "")
    return ROUTES.get(path.removeprefix(root) if root else path)


async def _read(receive: Receive) -> tuple[bytes, bool]:
    """The body, and whether there is more of it than is read."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts), True  # the client has gone
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        if not message.get("more_body", False):
            return b"".join(parts), False
        if size > MOST:
            _LOG.warning("toolc: a body of more than %d bytes is left to the engine", MOST)
            return b"".join(parts), True


async def _parsed(body: bytes) -> Any:
    """The value of a body; None if it cannot be read."""
    try:
        if len(body) < LARGE:
            return _load(body)
        return await asyncio.to_thread(_load, body)
    except (ValueError, RecursionError):
        return None  # the engine says what is wrong with it


def _load(body: bytes) -> Any:
    return json.loads(body, parse_float=exact)


async def _replaced(scope: Scope, admitted: Admitted, size: int) -> tuple[Scope, bytes]:
    """The scope and the body of a request that was rewritten."""
    body = _dump(admitted.body) if size < LARGE else await asyncio.to_thread(_dump, admitted.body)
    headers = [(name, value) for name, value in scope["headers"] if name.lower() not in _LENGTHS]
    headers.append((b"content-length", str(len(body)).encode()))
    return {**scope, "headers": headers}, body


_LENGTHS = (b"content-length", b"transfer-encoding")


def _dump(body: Json) -> bytes:
    return json.dumps(body, default=float).encode()  # a Decimal: the engine reads a float


def _replay(body: bytes, rest: bool, receive: Receive) -> Receive:
    """Receives the body first, then what comes."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": rest}

    return again


class Restoring:
    """Sends answers after they were restored: JSON whole, events one by one.

    Args:
        send: where to.
        restore: what mends an object.
    """

    def __init__(self, send: Send, restore: Restore) -> None:
        self._send = send
        self._restore = restore
        self._start: Message | None = None
        self._events = False
        self._passes = False
        self._held = bytearray()

    async def __call__(self, message: Message) -> None:
        """Send a message, or keep it until an object is whole."""
        if message["type"] == "http.response.start":
            kind = dict(message.get("headers") or ()).get(b"content-type", b"").lower()
            self._events = kind.startswith(b"text/event-stream")
            self._passes = not self._events and not (message["status"] == 200 and b"json" in kind)
            if self._events or self._passes:
                await self._send(message)
            else:
                self._start = message
        elif self._passes or message["type"] != "http.response.body":
            await self._send(message)
        elif self._events:
            await self._event(message)
        else:
            await self._whole(message)

    async def _event(self, message: Message) -> None:
        self._held += message.get("body", b"")
        more = message.get("more_body", False)
        end = self._held.rfind(_EVENT) + len(_EVENT) if _EVENT in self._held else 0
        ready = bytes(self._held[: end if more else len(self._held)])
        del self._held[: len(ready)]
        if ready or not more:
            mended = _EVENT.join(_mended_event(event, self._restore) for event in ready.split(_EVENT))
            await self._send({**message, "body": mended})

    async def _whole(self, message: Message) -> None:
        self._held += message.get("body", b"")
        if message.get("more_body", False):
            return
        start, body = self._start, _mended(bytes(self._held), self._restore)
        assert start is not None
        headers = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._send({**start, "headers": headers})
        await self._send({**message, "body": body})


def _mended_event(event: bytes, restore: Restore) -> bytes:
    lines = event.split(b"\n")
    for number, line in enumerate(lines):
        if line.startswith(b"data: {"):
            lines[number] = b"data: " + _mended(line[len(b"data: ") :], restore)
    return b"\n".join(lines)


def _mended(data: bytes, restore: Restore) -> bytes:
    try:
        value = json.loads(data)
    except ValueError:
        return data  # no JSON after all
    restore(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


async def _say(send: Send, answer: Answer, api: str) -> None:
    """An answer in the form that the API has for errors."""
    if api == MESSAGES:
        kind = "invalid_request_error" if answer.status == 400 else "overloaded_error"
        told: Json = {"type": "error", "error": {"type": kind, "message": answer.message}}
    else:
        kind = "BadRequestError" if answer.status == 400 else "ServiceUnavailableError"
        about = {"message": answer.message, "type": kind, "param": answer.pointer, "code": answer.status}
        told = {"error": about}
    body = json.dumps(told).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if answer.status == 503:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
