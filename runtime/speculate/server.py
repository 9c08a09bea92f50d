"""An OpenAI-compatible server over an engine, with a tool cache.

    GET  /health, GET /v1/models
    POST /v1/chat/completions                 streaming or not
    POST /v1/responses                        the same in the Responses API (responses_server.py)
    POST /v1/cache-tool-output/{response_id}  [{name, params?, output, keep_alive?}] → {"cached": n}; also without /v1

A streamed answer begins with a chunk that holds nothing but the response's id: from then on, until the answer has
ended, outputs can be handed in under this id, by the same user. Tokens are streamed as they come (deltas.py). Turns
that the engine answered itself come as the extra field `resident` (messages) of a chunk, and of the message of an
answer in one piece: what was streamed of such a turn is in these messages, and the answer begins anew. The option
`max_resident_turns` says how many there may be at most; `max_tokens` is of them all.

An entry that is refused is named by its number, and the others are kept (handed_in.py).

Leaves out   everything of the API that the engine has not: see `_OPTIONS`; an unknown option is refused, not ignored.
Invariants   a user is an Authorization header (or none); ids are random, 128 bits, and only their own user's requests
             are found. Bodies are read up to a bound, before they are parsed, and hold no half characters. A client
             that goes away frees its slot. What grows with a body is done in threads (service.py), never on the event
             loop, and is bounded first: bytes, values, entries, each refused with 413 and its name.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.requests import ClientDisconnect

from ..errors import ToolcError
from .agent import Message
from .deltas import Deltas
from .engine import Running, Sampling, Step
from .errors import SpeculateError
from .handed_in import Bad, HandedIn, read_entries, told
from .keys import parse_json
from .responses import ELSEWHERE, chat_request
from .responses_server import ResponseAnswer
from .service import Request as Completion
from .service import Service, Turn

MODEL = "toolc"
_OPTIONS = frozenset(
    "messages model tools tool_choice parallel_tool_calls temperature seed max_tokens max_completion_tokens stream "
    "stream_options user n max_resident_turns".split()
)
_RESPONSE_OPTIONS = frozenset(
    "input instructions model tools tool_choice parallel_tool_calls temperature max_output_tokens stream store user "
    "previous_response_id conversation prompt max_resident_turns".split()
)
_FINISH = {"stop": "stop", "length": "length", "tool_calls": "tool_calls"}
VALUES = 1 << 16
"""Values that a body holds at most: lists, objects and their members."""
_TEXTS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)  # the last one may have no end
_HALF = re.compile("[\ud800-\udfff]")
_NOT_FOUND, _TOO_LARGE, _BAD, _GONE, _FAILED, _FULL = 404, 413, 400, 499, 500, 503


class Refused(Exception):
    """A request that is answered by an error, and what the answer says beside it."""

    def __init__(
        self, status: int, message: str, param: str | None = None, more: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.more = status, message, param, dict(more or {})

    @property
    def body(self) -> dict[str, Any]:
        """Of the answer."""
        about = {"message": self.message, "type": "invalid_request_error", "param": self.param, "code": None}
        return {"error": about, **self.more}


def make_app(service: Service, max_body: int = 1 << 20) -> FastAPI:
    """The application.

    Args:
        service: answers.
        max_body: bytes of a request at most.
    """
    app = FastAPI(title="toolc")

    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return JSONResponse(error.body, error.status)

    @app.exception_handler(ToolcError)
    async def failed(_: Request, error: ToolcError) -> Response:
        about = {"message": str(error), "type": "server_error", "param": None, "code": None}
        return JSONResponse({"error": about}, _FAILED)  # of an answer that had begun

    @app.exception_handler(ClientDisconnect)
    async def gone(_: Request, error: ClientDisconnect) -> Response:
        return Response(status_code=_GONE)  # it went away before its body was whole; nobody reads this

    @app.get("/health")
    async def health() -> dict[str, Any]:
        engine = service.engine
        cache = {"entries": len(engine.outputs), "bytes": engine.outputs.bytes}
        return {"ok": True, "active": engine.active, "tool_cache": cache, "counts": vars(engine.counts)}

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        return {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "toolc"}]}

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        body = await service.aside(parse, await read_body(request, max_body))
        completion = await service.aside(completion_of, service, body, user_of(request))
        stream, with_usage = _flag(body, "stream") is True, _with_usage(body)
        try:
            running = await service.begin_in_thread(completion)
        except ToolcError as error:
            raise Refused(_FULL if "full" in error.message else _BAD, str(error)) from error
        answer = _Answer(service, running)
        if stream:
            return StreamingResponse(answer.stream(with_usage), media_type="text/event-stream")
        return JSONResponse(await while_connected(request, answer.whole()))

    @app.post("/v1/responses")
    async def respond(request: Request) -> Response:
        body = await service.aside(parse, await read_body(request, max_body))
        completion = await service.aside(response_of, service, body, user_of(request))
        stream = _flag(body, "stream") is True
        try:
            running = await service.begin_in_thread(completion)
        except ToolcError as error:
            raise Refused(_FULL if "full" in error.message else _BAD, str(error)) from error
        answer = ResponseAnswer(service, running, body, MODEL)
        if stream:
            return StreamingResponse(_lines(answer), media_type="text/event-stream")
        return JSONResponse(await while_connected(request, answer.whole()))

    @app.post("/v1/cache-tool-output/{response_id}")
    @app.post("/cache-tool-output/{response_id}")
    async def cache(response_id: str, request: Request) -> dict[str, Any]:
        engine, user = service.engine, user_of(request)
        entries, bad = await service.aside(entries_of, await read_body(request, max_body), engine.limits.cache.entries)
        taken: list[int] = []
        for number, name, arguments, output, keep_alive_s in entries:
            if keep_alive_s is None:
                keep_alive_s = engine.limits.cache.keep_alive_s
            try:
                key = await service.aside(engine.key, response_id, user, name, arguments)
                engine.cache_output(response_id, user, name, arguments, output, keep_alive_s, key)
            except SpeculateError as error:
                if "no such request" in error.message:
                    raise Refused(_NOT_FOUND, str(error), None, told(taken, bad)) from error
                bad.append(Bad(number, str(error), f"{number}"))
            else:
                taken.append(number)
        return answer_of(taken, bad)

    return app


async def read_body(request: Request, most: int) -> bytes:
    """The body, if it is not too large."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refused(_TOO_LARGE, f"the body is larger than {most} bytes")
        parts.append(part)
    return b"".join(parts)


async def while_connected(request: Request, work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """What work gives; a client that goes away, also while its request waits for a slot, ends it."""
    answer, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise Refused(_FULL, "the client went away")
        return answer.result()
    finally:
        for task in (answer, gone):
            task.cancel()
        await asyncio.wait({answer, gone})


async def _lines(answer: ResponseAnswer) -> AsyncIterator[str]:
    """The events of a stream as the API sends them."""
    try:
        async for event in answer.stream():
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
    except Exception as error:  # the status line is gone: an error can only be an event
        told = {"type": "error", "code": "server_error", "message": str(error), "param": None}
        yield f"event: error\ndata: {json.dumps(told)}\n\n"


async def _disconnected(request: Request) -> None:
    """Returns when the client has gone; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def user_of(request: Request) -> str:
    """Who asks: a digest of the Authorization header."""
    return hashlib.sha256(request.headers.get("authorization", "").encode()).hexdigest()


def parse(body: bytes) -> Any:
    """The JSON value of a body; refused with the place where a text holds half a character."""
    values = sum(_TEXTS.sub(b"", body).count(mark) for mark in (b",", b"[", b"{"))
    if values > VALUES:
        raise Refused(_TOO_LARGE, f"the body holds {values} values, more than {VALUES}")
    try:
        value = parse_json(body, "body")
    except SpeculateError as error:
        raise Refused(_BAD, str(error)) from error
    place = _place_of_half(value)
    if place is not None:
        raise Refused(_BAD, "half a surrogate pair is no text", place)
    return value


def _place_of_half(value: Any) -> str | None:
    """Where a lone surrogate is, in a text or in a key; None if there is none."""
    left: list[tuple[Any, Any]] = [((), value)]  # places as pairs: what holds it, and the key or number in there
    while left:
        place, one = left.pop()
        if isinstance(one, str):
            if _HALF.search(one):
                return _path(place)
        elif isinstance(one, dict):
            left += [(place, key) for key in one] + [((place, key), below) for key, below in one.items()]
        elif isinstance(one, list):
            left += [((place, n), below) for n, below in enumerate(one) if isinstance(below, (str, dict, list))]
    return None


def _path(place: Any) -> str:
    names = []
    while place:
        place, name = place
        names.append(str(name).encode(errors="backslashreplace").decode())
    return "/".join(reversed(names))


def entries_of(body: bytes, most: int) -> tuple[list[HandedIn], list[Bad]]:
    """The entries of a request to the tool cache, and those that are none."""
    listed = parse(body)
    if not isinstance(listed, list):
        raise Refused(_BAD, "the body is a JSON array of {name, params?, output, keep_alive?}")
    if len(listed) > most:
        raise Refused(_TOO_LARGE, f"{len(listed)} entries, more than the {most} that a request may have (entries)")
    return read_entries(listed)


def answer_of(taken: Sequence[int], bad: Sequence[Bad]) -> dict[str, Any]:
    """What a request to the tool cache is told.

    Raises:
        Refused: some entries were; it says which, and which were kept.
    """
    if bad:
        first = min(bad, key=lambda one: one.number)
        raise Refused(_BAD, first.message, first.param, told(taken, bad))
    return {"cached": len(taken)}


def _check_options(body: Any, known: frozenset[str]) -> None:
    """Refuse a body that is no object, or has another option."""
    if not isinstance(body, dict):
        raise Refused(_BAD, "the body is a JSON object")
    unknown = sorted(set(body) - known)
    if unknown:
        raise Refused(_BAD, f"there is no option {unknown[0]!r} here", unknown[0])


def completion_of(service: Service, body: Any, user: str) -> Completion:
    """What a body asks for; refused with the option that is wrong."""
    _check_options(body, _OPTIONS)
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages or not all(isinstance(one, dict) for one in messages):
        raise Refused(_BAD, "expected a list of messages", "messages")
    if body.get("n") not in (None, 1) or isinstance(body.get("n"), bool):
        raise Refused(_BAD, "one answer a request", "n")
    tools = [] if body.get("tools") is None else body["tools"]
    sampling = Sampling(
        _number(body, "temperature", 1.0, 0, 100),
        None if body.get("seed") is None else _whole(body, "seed", 0, 0, 2**63),
        _whole(body, "max_completion_tokens", _whole(body, "max_tokens", 512, 1, 1 << 20), 1, 1 << 20),
        None if body.get("max_resident_turns") is None else _whole(body, "max_resident_turns", 0, 0, 1 << 20),
    )
    return Completion(messages, tools, _entry_of(service, body, tools), sampling, user)


def response_of(service: Service, body: Any, user: str) -> Completion:
    """What a body of the Responses API asks for; refused with the option that is wrong."""
    _check_options(body, _RESPONSE_OPTIONS)
    elsewhere = [name for name in ("store", *ELSEWHERE) if body.get(name)]
    if elsewhere:
        raise Refused(_BAD, "responses are not kept here: send the history as input", elsewhere[0])
    for name, kinds, expected in (("instructions", str, "text"), ("tool_choice", (str, dict), "a choice of tools")):
        if body.get(name) is not None and not isinstance(body[name], kinds):
            raise Refused(_BAD, f"{name}: expected {expected}", name)
    for one in [] if body.get("tools") is None else _listed(body, "tools"):
        if not isinstance(one, dict) or one.get("type") != "function":
            raise Refused(_BAD, "expected functions: there are no other tools here", "tools")
    if not isinstance(body.get("input"), str):
        _listed(body, "input")
    asked = chat_request(body)
    if asked is None:
        raise Refused(_BAD, "expected texts, calls (function_call) and outputs (function_call_output)", "input")
    asked |= {name: body[name] for name in ("max_resident_turns", "temperature") if name in body}
    if body.get("max_output_tokens") is not None:
        asked["max_completion_tokens"] = body["max_output_tokens"]
    return completion_of(service, asked, user)


def _listed(body: Mapping[str, Any], name: str) -> list[Any]:
    if not isinstance(body.get(name), list):
        raise Refused(_BAD, f"{name}: expected a list", name)
    return list(body[name])


def _with_usage(body: Mapping[str, Any]) -> bool:
    """Whether a stream ends with what it used."""
    given = {} if body.get("stream_options") is None else body["stream_options"]
    if not isinstance(given, dict) or set(given) - {"include_usage"} or (given and not body.get("stream")):
        raise Refused(_BAD, "stream_options: expected include_usage, and a stream", "stream_options")
    return _flag(given, "include_usage", "stream_options/") is True


def _flag(given: Mapping[str, Any], name: str, place: str = "") -> bool | None:
    value = given.get(name)
    if value is not None and not isinstance(value, bool):
        raise Refused(_BAD, f"{name}: expected true or false", place + name)
    return value


def _number(body: Mapping[str, Any], name: str, default: float, low: float, high: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise Refused(_BAD, f"{name}: expected a number from {low:g} to {high:g}", name)
    return value


def _whole(body: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = _number(body, name, default, low, high)
    if value != int(value):
        raise Refused(_BAD, f"{name}: expected a whole number", name)
    return int(value)


def _entry_of(service: Service, body: Mapping[str, Any], tools: Any) -> str:
    """The bundle's entry for tool_choice and parallel_tool_calls; a request that names no tools gets no calls."""
    engine = service.engine
    if not isinstance(tools, list):
        raise Refused(_BAD, "expected a list of tools", "tools")
    try:
        named = {one["function"]["name"] for one in tools}
    except (KeyError, TypeError) as error:
        raise Refused(_BAD, 'expected tools {"type": "function", "function": {"name": …}}', "tools") from error
    if tools and named != set(engine.rules):
        raise Refused(_BAD, "the tools are those of the bundle: " + ", ".join(sorted(engine.rules)), "tools")
    choice = body.get("tool_choice")
    if choice is None:
        choice = "auto" if tools else "none"
    one = _flag(body, "parallel_tool_calls") is False
    if not tools and choice != "none":
        raise Refused(_BAD, "a choice of tools needs tools", "tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        choice = function.get("name") if isinstance(function, dict) else None
        entry = f"tool:{choice}" if isinstance(choice, str) and choice in engine.rules else ""
    elif isinstance(choice, str) and choice in ("auto", "required", "none"):
        entry = f"{choice}/one" if one and choice != "none" else choice
    else:
        raise Refused(_BAD, "expected auto, required, none or a function", "tool_choice")
    if entry not in engine.bundle.entry:
        raise Refused(_BAD, f"the bundle has no entry for the choice {choice!r}", "tool_choice")
    return entry


class _Answer:
    """One answer, in one piece or in chunks."""

    def __init__(self, service: Service, running: Running) -> None:
        self.service, self.running = service, running
        self.deltas = Deltas(running.id, service.engine.encoding)
        self.created = int(time.time())

    async def whole(self) -> dict[str, Any]:
        """In one piece."""
        resident: list[Message] = []
        async with aclosing(self.service.run(self.running)) as events:
            async for event in events:
                if isinstance(event, Step):
                    continue
                if event.end.reason == "resident":
                    resident += event.messages
                else:
                    message = event.messages[0] | ({"resident": resident} if resident else {})
                    finish = _FINISH[event.end.reason]
                    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
                    return self._head("chat.completion") | {"choices": [choice], "usage": self._usage()}
        raise Refused(_FULL, "the request was given up")

    async def stream(self, with_usage: bool) -> AsyncIterator[str]:
        """In chunks."""
        yield self._chunk({"role": "assistant"})
        try:
            async with aclosing(self.service.run(self.running)) as events:
                async for event in events:
                    for delta, finish in self._deltas(event):
                        yield self._chunk(delta, finish)
            if with_usage:
                head = self._head("chat.completion.chunk")
                yield f"data: {json.dumps(head | {'choices': [], 'usage': self._usage()})}\n\n"
        except Exception as error:  # the status line is gone: an error can only be a chunk
            yield f"data: {json.dumps({'error': {'message': str(error), 'type': 'server_error'}})}\n\n"
        yield "data: [DONE]\n\n"

    def _deltas(self, event: Step | Turn) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Deltas, and the reason with the last one."""
        if isinstance(event, Step):
            yield from ((delta, None) for delta in self.deltas.of(event.said))
        elif event.end.reason == "resident":
            self.deltas.next_turn()
            yield {"resident": event.messages}, None
        else:
            yield {}, _FINISH[event.end.reason]

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": self.running.id, "object": kind, "created": self.created, "model": MODEL}

    def _chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return f"data: {json.dumps(self._head('chat.completion.chunk') | {'choices': [choice]})}\n\n"

    def _usage(self) -> dict[str, int]:
        """Each token of the sequence once: those decoded, of all turns, and those given, outputs in between too."""
        given, decoded = self.running.given_tokens, self.running.decoded
        return {"prompt_tokens": given, "completion_tokens": decoded, "total_tokens": given + decoded}
