"""Answer requests of OpenAI's Responses API from an engine: whole, or as events of a stream.

    POST /v1/responses    input, instructions, tools, tool_choice, parallel_tool_calls, temperature, max_output_tokens,
                          stream, max_resident_turns

The items of a response are its text (`message`), its calls (`function_call`), and, of a turn that the engine answered
itself, the outputs (`function_call_output`), in their order. Outputs are handed in under the response's id, as for chat
completions. Responses are not kept: a request holds its history.

Leaves out   what a request asks for: see responses.py (its translation) and server.py. Reasoning: it is no item.
Invariants   the items that the events of a stream add are those of the response that the last event holds.
Source       the types of the openai library, openai.types.responses.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from .agent import Message
from .deltas import Deltas
from .engine import Running, Step
from .service import Service, Turn

Event = dict[str, Any]


class ResponseAnswer:
    """A response, in one piece or as events.

    Args:
        body: of the request; what of it a response repeats is repeated.
    """

    def __init__(self, service: Service, running: Running, body: Mapping[str, Any], model: str) -> None:
        self.service, self.running, self.body, self.model = service, running, body, model
        self.deltas = Deltas(running.id, service.engine.encoding)
        self.created = int(time.time())
        self.items: list[dict[str, Any]] = []

    async def whole(self) -> dict[str, Any]:
        """In one piece."""
        status = "failed"
        async for event in self._events():
            status = event["response"]["status"] if event["type"] in _LAST else status
        return self._response(status)

    async def stream(self) -> AsyncIterator[Event]:
        """Events in their order, with numbers."""
        number = 0
        async for event in self._events():
            yield event | {"sequence_number": number}
            number += 1

    async def _events(self) -> AsyncIterator[Event]:
        for kind in ("response.created", "response.in_progress"):
            yield {"type": kind, "response": self._response("in_progress")}
        writer = _Items(self.items, self.running.id)
        async with aclosing(self.service.run(self.running)) as events:
            async for event in events:
                if isinstance(event, Step):
                    for delta in self.deltas.of(event.said):
                        for made in writer.read(delta):
                            yield made
                    continue
                for made in writer.close():
                    yield made
                if event.end.reason == "resident":
                    for made in writer.outputs(_outputs(event)):
                        yield made
                    self.deltas.next_turn()
                else:
                    status = "incomplete" if event.end.reason == "length" else "completed"
                    yield {"type": f"response.{status}", "response": self._response(status)}

    def _response(self, status: str) -> dict[str, Any]:
        body, given, decoded = self.body, self.running.given_tokens, self.running.decoded
        usage = {"input_tokens": given, "output_tokens": decoded, "total_tokens": given + decoded}
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        return {
            "id": self.running.id,
            "object": "response",
            "created_at": self.created,
            "model": self.model,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": body.get("instructions"),
            "max_output_tokens": body.get("max_output_tokens"),
            "metadata": {},
            "output": [dict(item) for item in self.items],
            "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
            "previous_response_id": None,
            "store": False,
            "temperature": body.get("temperature", 1.0),
            "tool_choice": body.get("tool_choice") or "auto",
            "tools": body.get("tools") or [],
            "top_p": 1.0,
            "usage": None if status == "in_progress" else usage | details,
        }


_LAST = ("response.completed", "response.incomplete")


def _outputs(turn: Turn) -> list[Message]:
    return [message for message in turn.messages if message["role"] == "tool"]


class _Items:
    """Items of a response, as the deltas of chat completions write them; and the events that add them.

    Args:
        items: where they go; the last one may be open.
        request: its id, of which the items' ids are made.
    """

    def __init__(self, items: list[dict[str, Any]], request: str) -> None:
        self.items, self.request = items, request
        self._open: dict[str, Any] | None = None
        self._call = -1

    def read(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        """The events of a delta."""
        if delta.get("content"):
            yield from self._text(delta["content"])
        for part in delta.get("tool_calls") or ():
            yield from self._arguments(part)

    def _text(self, text: str) -> Iterator[Event]:
        if self._open is None or self._open["type"] != "message":
            yield from self.close()
            part = {"type": "output_text", "text": "", "annotations": []}
            item = {"type": "message", "role": "assistant", "content": [part]}
            yield from self._add("msg", item, {"content": []})
            yield self._of_item("response.content_part.added", content_index=0, part=dict(part))
        assert self._open is not None
        self._open["content"][0]["text"] += text
        yield self._of_item("response.output_text.delta", content_index=0, delta=text, logprobs=[])

    def _arguments(self, part: Mapping[str, Any]) -> Iterator[Event]:
        function = part["function"]
        if part["index"] != self._call:
            yield from self.close()
            self._call = part["index"]
            item = {"type": "function_call", "call_id": part["id"], "name": function["name"], "arguments": ""}
            yield from self._add("fc", item, {})
        assert self._open is not None
        if function["arguments"]:
            self._open["arguments"] += function["arguments"]
            yield self._of_item("response.function_call_arguments.delta", delta=function["arguments"])

    def _add(self, kind: str, item: dict[str, Any], begins: dict[str, Any]) -> Iterator[Event]:
        """An item is begun; in the event it has nothing in it."""
        self._open = {"id": f"{kind}_{self.request}_{len(self.items)}", "status": "in_progress", **item}
        self.items.append(self._open)
        yield {"type": "response.output_item.added", **self._place(), "item": {**self._open, **begins}}

    def close(self) -> Iterator[Event]:
        """The open item is whole; what follows is another one."""
        item, self._call = self._open, -1
        if item is None:
            return
        item["status"] = "completed"
        if item["type"] == "message":
            (part,) = item["content"]
            yield self._of_item("response.output_text.done", content_index=0, text=part["text"], logprobs=[])
            yield self._of_item("response.content_part.done", content_index=0, part=dict(part))
        else:
            about = {"arguments": item["arguments"], "name": item["name"]}
            yield self._of_item("response.function_call_arguments.done", **about)
        yield {"type": "response.output_item.done", **self._place(), "item": dict(item)}
        self._open = None

    def outputs(self, messages: list[Message]) -> Iterator[Event]:
        """Outputs that the engine had: each is an item that is whole at once."""
        for message in messages:
            item = {"type": "function_call_output", "call_id": message["tool_call_id"], "output": message["content"]}
            yield from self._add("fco", item, {})
            assert self._open is not None
            self._open["status"] = "completed"
            yield {"type": "response.output_item.done", **self._place(), "item": dict(self._open)}
            self._open = None

    def _place(self) -> dict[str, Any]:
        return {"output_index": len(self.items) - 1}

    def _of_item(self, kind: str, **more: Any) -> Event:
        assert self._open is not None
        return {"type": kind, "item_id": self._open["id"], **self._place(), **more}
