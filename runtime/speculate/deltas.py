"""What is said in a turn as the deltas of OpenAI's streams, and those put together again.

    text            {"content": …}
    reasoning       {"reasoning_content": …}
    a call's tool   {"tool_calls": [{"index", "id", "type", "function": {"name", "arguments": ""}}]}
    its arguments   {"tool_calls": [{"index", "function": {"arguments": …}}]}: as they are written where that is JSON,
                    else in one piece when the call is whole

Leaves out   chunks around deltas: see server.py.
Shapes       Endpoints leave out or null what the API requires: a chunk without choices or delta says nothing. Calls of
             one that does not number them are told apart by their ids. What is no text where the API has text stays
             as it is, so that whoever reads the message refuses it.
Invariants   `Deltas` put together by `Gathered` are the message of the turn. A text never ends inside of a character.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..calls.events import Event

JSON = "json"


def call_id(request: str, turn: int, number: int) -> str:
    """The id of a call: as hard to guess as that of its request."""
    return "call_" + hashlib.blake2b(f"{request} {turn} {number}".encode(), digest_size=12).hexdigest()


class Deltas:
    """The deltas of one request.

    Args:
        request: its id.
        encoding: how the bundle's protocol writes arguments.
    """

    def __init__(self, request: str, encoding: str) -> None:
        self.request, self.streamed = request, encoding == JSON
        self.turn = 0
        self._named: set[int] = set()
        self._held: dict[int, str] = {}  # arguments that came before the tool was settled, and those not streamed

    def next_turn(self) -> None:
        """The engine has answered a turn itself; another one follows."""
        self.turn += 1
        self._named.clear()
        self._held.clear()

    def of(self, said: Iterable[Event]) -> Iterator[dict[str, Any]]:
        """The deltas of what was said."""
        for event in said:
            number = event.number
            if event.kind == "text":
                yield {"content": event.text}
            elif event.kind == "reasoning":
                yield {"reasoning_content": event.text}
            elif event.kind == "name":
                self._named.add(number)
                function = {"name": event.text, "arguments": self._held.pop(number, "")}
                id = call_id(self.request, self.turn, number)
                yield {"tool_calls": [{"index": number, "id": id, "type": "function", "function": function}]}
            elif event.kind == "arguments" and self.streamed:
                if number in self._named:
                    yield _more(number, event.text)
                else:
                    self._held[number] = self._held.get(number, "") + event.text
            elif event.kind == "end" and event.call is not None and not (self.streamed and event.call.text):
                yield _more(number, event.call.json)


def _more(number: int, arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": number, "function": {"arguments": arguments}}]}


class Gathered:
    """The message that chunks of a stream put together.

    Attributes:
        id: of the response; empty before the first chunk.
        content: the text so far.
        resident: messages of the turns that the engine answered itself.
        finish: the finish reason; None while the answer goes on.
    """

    def __init__(self) -> None:
        self.id = ""
        self.content = ""
        self.resident: list[dict[str, Any]] = []
        self.finish: str | None = None
        self._calls: dict[int | str, dict[str, Any]] = {}  # by index, or by id where there is none

    def add(self, chunk: Any) -> list[dict[str, Any]]:
        """Take a chunk of the openai client; returns the messages of a turn that the engine has answered, if it has."""
        self.id = self.id or getattr(chunk, "id", None) or ""
        choice = first_choice(chunk)
        self.finish = getattr(choice, "finish_reason", None) or self.finish
        delta = getattr(choice, "delta", None)
        self.content = _joined(self.content, getattr(delta, "content", None))
        for part in _listed(getattr(delta, "tool_calls", None)):
            self._add_call(part)
        new = _listed((getattr(delta, "model_extra", None) or {}).get("resident"))
        if new:  # what was streamed of that turn is in them
            self.resident += new
            self.content = ""
            self._calls.clear()
        return new

    def _add_call(self, part: Any) -> None:
        number, id, function = (getattr(part, name, None) for name in ("index", "id", "function"))
        if not isinstance(number, int):
            number = str(id) if id else next(reversed(self._calls), "")
        call = self._calls.setdefault(number, {"id": "", "name": "", "arguments": ""})
        call["id"] = id or call["id"]
        for name in ("name", "arguments"):
            call[name] = _joined(call[name], getattr(function, name, None))

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message so far; a turn that was cut has no calls."""
        written = [
            {"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
            for _, call in sorted(self._calls.items(), key=lambda one: one[0] if isinstance(one[0], int) else -1)
        ]
        calls: Mapping[str, Any] = {"tool_calls": written} if written and self.finish != "length" else {}
        return {"role": "assistant", "content": self.content or None, **calls}


def first_choice(answer: Any) -> Any:
    """The choice that counts, of an answer or a chunk of the openai client; None if there is none."""
    return next(iter(_listed(getattr(answer, "choices", None))), None)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _joined(text: Any, more: Any) -> Any:
    """A text and its next piece; what is no text takes its place."""
    if more is None:
        return text
    return text + more if isinstance(text, str) and isinstance(more, str) else more
