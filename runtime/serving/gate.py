"""Decide about one request: whether toolc holds it, by which bundle and entry, and what the engine gets instead.

    free      nothing constrains the answer, or the engine's own structured output was asked for: it passes as it came
    named     it names its bundle itself (`toolc_bundle`): the entry follows from its fields, if it names none
    held      by the bundle of its content
    fallback  toolc refuses it, or has no bundle in time, and the operator lets the engine answer it

Leaves out   HTTP: see middleware.py. The engine: see `Host`. Bodies: requests.py, rewrite.py.
Invariants   a request is held whole or not at all. What is refused is refused in the words of its own fields, at JSON
             pointers into its body.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import RequestError, ServingError, ToolcError
from ..format.bundle import Bundle
from .outcomes import Late, Outcomes, Refused
from .reasoning import INSIDE, OUTSIDE, OVER, asked
from .requests import KIND, Request, Start, read_request
from .rewrite import MESSAGES, Json, Restore, given_arguments, restoring, rewritten
from .settings import Settings

_LOG = logging.getLogger(__name__)

OWN = (
    "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structural_tag", "regex",
    "ebnf", "grammar",
)  # fmt: skip
"""Fields that ask for the engine's own structured output."""
TOLD = 256
"""Warnings that are remembered, so that each is said once."""


class Host(Protocol):
    """What the gate has to know of its engine."""

    reads_calls: bool
    """Whether the engine reads calls in what the model writes, and toolc has a protocol for that."""
    reads_reasoning: bool
    """Whether the engine takes reasoning out of the answer."""

    async def reasoning(self, body: Json, api: str) -> str:
        """Where the prompt of a request leaves the model: OUTSIDE, INSIDE or OVER."""

    def named(self, arguments: Json) -> Bundle:
        """The bundle that a request names.

        Raises:
            ToolcError: there is none, or it cannot be served.
        """


@dataclass(frozen=True)
class Admitted:
    """What the engine gets instead of a request, and what mends its answer."""

    body: Json
    restore: Restore | None


class Answer(Exception):
    """A request that is answered here.

    Args:
        status: of HTTP.
        message: for the client.
        pointer: of its field, if one is to blame.
    """

    def __init__(self, status: int, message: str, pointer: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.pointer = status, message, pointer


class Gate:
    """Decides about requests.

    Args:
        settings: the operator's.
        host: the engine's.
        outcomes: bundles of contents; None where only bundles that are named are served.
        tell: called with what became of each request: "free", "named", "held", "fallback" or "refused".
    """

    def __init__(
        self, settings: Settings, host: Host, outcomes: Outcomes | None, tell: Callable[[str], None] | None = None
    ) -> None:
        self.settings = settings
        self._host = host
        self._outcomes = outcomes
        self._tell = tell or (lambda what: None)
        self._warned: set[str] = set()

    def free(self) -> None:
        """Count a request that passed unread."""
        self._tell("free")

    async def admit(self, body: Any, api: str) -> Admitted | None:
        """What the engine gets; None: the request as it came.

        Args:
            body: the JSON value.
            api: of rewrite.py.

        Raises:
            Answer: it is refused.
        """
        if not isinstance(body, dict):
            return None
        try:
            mine = given_arguments(body)
        except RequestError:
            return None  # the engine says so
        if "toolc_bundle" in mine:
            return await self._named(body, api, mine)
        if mine or self._outcomes is None or any(body.get(name) is not None for name in OWN):
            self._tell("free")
            return None
        try:
            request = read_request(body)
        except RequestError as error:
            self._refused(error, None)
            return None
        if request.content is None:
            self._tell("free")
            return None
        try:
            return await self._hold(body, api, request, self._outcomes)
        except ToolcError as error:
            self._refused(error, request)
            return None

    async def _hold(self, body: Json, api: str, request: Request, outcomes: Outcomes) -> Admitted:
        content = request.content
        assert content is not None
        if content.tools and not self._host.reads_calls:
            raise RequestError(
                "the engine reads no calls that toolc knows",
                place=f"{KIND}#/tools",
                hint="start it with --enable-auto-tool-choice and --tool-call-parser, or set TOOLC_PROTOCOL",
            )
        if api == MESSAGES:
            _check_messages(body)
        held = await outcomes.obtain(content)
        start = await self._start(request, held.bundle, body, api)
        self._tell("held")
        return Admitted(rewritten(body, api, _arguments(held.key, start)), restoring(body, api))

    async def _named(self, body: Json, api: str, mine: Json) -> Admitted:
        """Of a request that names its bundle."""
        try:
            more: Json = {}
            request = read_request({key: value for key, value in body.items() if key not in OWN})
            if "toolc_entry" not in mine and request.content is not None:
                bundle = await asyncio.to_thread(self._host.named, mine)
                start = await self._start(request, bundle, body, api)
                more["toolc_entry"] = start.entry
                if start.tools is not None and "toolc_tools" not in mine:
                    more["toolc_tools"] = list(start.tools)
        except ToolcError as error:
            self._tell("refused")
            raise _answer(error, None) from error
        self._tell("named")
        return Admitted(rewritten(body, api, more), restoring(body, api))

    async def _start(self, request: Request, bundle: Bundle, body: Json, api: str) -> Start:
        where = await self._host.reasoning(body, api)
        wanted = asked(request.asks, where, self._host.reads_reasoning)
        try:
            return request.start(bundle, wanted)
        except RequestError:
            if wanted == OVER:
                raise
            plain = request.start(bundle, OVER)  # or there is no such answer at all
        if where == INSIDE and self._host.reads_reasoning:
            raise ServingError(
                "the prompt opens reasoning, and the protocol has none",
                place=f"{KIND}#",
                found=str(bundle.meta.get("protocol")),
                hint="set TOOLC_PROTOCOL, or turn reasoning off in chat_template_kwargs",
            )
        assert wanted in (OUTSIDE, INSIDE)
        return plain

    def _refused(self, error: ToolcError, request: Request | None) -> None:
        """Leave a request to the engine, or answer it, as the operator says."""
        answer = _answer(error, request)
        if not self.settings.falls_back:
            self._tell("refused")
            raise answer from error
        self._tell("fallback")
        level = logging.DEBUG if answer.message in self._warned else logging.WARNING
        if len(self._warned) >= TOLD:
            self._warned.clear()
        self._warned.add(answer.message)
        _LOG.log(level, "toolc: the engine's own constraint answers a request: %s", answer.message)


def _arguments(key: str, start: Start) -> Json:
    # Whoever wrote an ordinary request expects a text that is cut by `max_tokens`, with the finish reason "length".
    said: Json = {"toolc_bundle": key, "toolc_entry": start.entry, "toolc_cut": 1}
    if start.tools is not None:
        said["toolc_tools"] = list(start.tools)
    return said


def _check_messages(body: Json) -> None:
    """Refuse messages of Anthropic's that change the tools."""
    for number, message in enumerate(body.get("messages") or ()):
        content = message.get("content") if isinstance(message, dict) else None
        for part, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict) and block.get("type") in ("tool_addition", "tool_removal"):
                raise RequestError(
                    "the tools change within the messages", place=f"{KIND}#/messages/{number}/content/{part}"
                )


def _answer(error: ToolcError, request: Request | None) -> Answer:
    """An error for the client: 400 in the words of its fields, 503 where trying again may help."""
    pointer = error.place.partition("#")[2] if error.place and error.place.startswith(f"{KIND}#") else None
    if pointer is not None and request is not None and request.content is not None and isinstance(error, Refused):
        pointer = request.content.place(pointer)
    what = error.message or "this cannot be met"
    if error.found is not None:
        what += f"; found {error.found}"
    if error.expected is not None:
        what += f", expected {error.expected}"
    if error.hint:
        what += f"; {error.hint}" if not error.hint.startswith("\n") else error.hint
    place = pointer if pointer is not None else error.place
    return Answer(503 if isinstance(error, Late) else 400, f"{place}: {what}" if place else what, pointer)
