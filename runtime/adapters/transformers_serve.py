"""`transformers serve` with ordinary requests held: the same command, with toolc's handler of chat completions.

    TOOLC_PROTOCOL=hermes python -m toolc.runtime.adapters.transformers_serve MODEL --port 8000

`tools`, `tool_choice`, `parallel_tool_calls` and `response_format` of a request choose bundle and entry; what was not
seen before is compiled by a process beside, into the store (runtime/serving/). What an operator says is in the
environment, see runtime/serving/settings.py.

Leaves out   what a request means: see ../serving/requests.py. The masks: see huggingface.py.
Invariants   a request that nothing constrains goes the way it goes without toolc. A held one is read back from its
             bundle, not by the response template of the model.
Hooks        transformers has none here: `Serve.__init__` names its handlers (cli/serve.py, line 188); the handlers drop
             `tool_choice` and `response_format` with a warning (cli/serving/chat_completion.py, line 72); continuous
             batching hands no `logit_processor_kwargs` to `add_request` (cli/serving/utils.py, in `generate_streaming`
             and `generate_non_streaming` of `CBGenerateManager`), so `--continuous-batching` is refused. This file puts
             a subclass in the place of `ChatCompletionHandler`; two functions of its module ask the subclass first.
Source       transformers 5.23.
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any, NamedTuple

from fastapi import HTTPException
from transformers.cli.serving import chat_completion
from transformers.cli.serving.utils import ToolCall

from ..calls.events import Event
from ..calls.reader import Reader
from ..errors import ToolcError
from ..format.bundle import Bundle
from ..selection.subset import subset
from ..serving.outcomes import Late, Outcomes
from ..serving.reasoning import OVER, reasoning_after
from ..serving.requests import Request, read_request
from ..serving.settings import settings
from ..serving.worker import Setup
from .choice import check_most
from .huggingface import ToolcLogitsProcessor

_LOG = logging.getLogger(__name__)
_READ_HERE = ("tool_choice", "parallel_tool_calls", "response_format")
told: Counter[str] = Counter()
"""Requests by what became of them: free, held, fallback, refused. transformers has no endpoint for numbers."""
_TAIL = 64  # tokens of the prompt that may tell whether reasoning was opened

Parsed = tuple[str, "str | None", "list[Any] | None"]


class _Held(NamedTuple):
    """A request that toolc holds, and its bundle."""

    request: Request
    bundle: Bundle


_held: ContextVar[_Held | None] = ContextVar("toolc_held", default=None)
_reads: ContextVar[ReadBack | None] = ContextVar("toolc_reads", default=None)


class ReadBack:
    """Reads an answer, with the interface of transformers' `ResponseParser`.

    Args:
        reader: that has read nothing.
    """

    initial_events: tuple[Any, ...] = ()

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def feed(self, text: str) -> list[dict[str, Any]]:
        return [shown for event in self._reader.feed_text(text) for shown in _shown(event)]

    def finalize(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return {}, [shown for event in self._reader.finish() for shown in _shown(event)]

    def whole(self, tokens: Iterable[int]) -> Parsed:
        """What an answer said, thought and called."""
        events: list[Event] = []
        for token in tokens:
            if not self._reader.is_finished:
                events += self._reader.feed(int(token))
        events += self._reader.finish()
        said, thought = ("".join(e.text for e in events if e.kind == kind) for kind in ("text", "reasoning"))
        calls = [ToolCall(call.name, call.json) for call in self._reader.calls]
        return said, thought or None, calls or None


def _shown(event: Event) -> list[dict[str, Any]]:
    if event.kind in ("text", "reasoning"):
        field = "content" if event.kind == "text" else "reasoning_content"
        return [{"type": "region_chunk", "field": field, "text": event.text}]
    if event.call is None:
        return []
    value = {"function": {"name": event.call.name, "arguments": event.call.json}}
    return [{"type": "region_close", "field": "tool_calls", "value": value}]


class ToolcChatHandler(chat_completion.ChatCompletionHandler):
    """The handler of `/v1/chat/completions` that holds ordinary requests."""

    _outcomes: Outcomes | None = None

    async def handle_request(self, body: dict[str, Any], request_id: str) -> Any:
        said = settings()
        _held.set(None)
        _reads.set(None)
        if said.requests == "all":
            try:
                held = await self._hold(body)
            except ToolcError as error:
                if isinstance(error, Late) or not said.falls_back:
                    told["refused"] += 1
                    raise HTTPException(503 if isinstance(error, Late) else 400, str(error)) from error
                told["fallback"] += 1
                _LOG.warning("toolc: a request is not held: %s", error)
            else:
                told["free" if held is None else "held"] += 1
                if held is not None:
                    _held.set(held)
                    body = {key: value for key, value in body.items() if key not in _READ_HERE}
        try:
            return await super().handle_request(body, request_id)
        except ToolcError as error:
            told.update({"held": -1, "refused": 1})
            raise HTTPException(400, str(error)) from error

    async def _hold(self, body: dict[str, Any]) -> _Held | None:
        request = read_request(body)
        if request.content is None:
            return None
        outcomes = await self._begun(body)
        return _Held(request, (await outcomes.obtain(request.content)).bundle)

    async def _begun(self, body: dict[str, Any]) -> Outcomes:
        """The compiles of the model; the server has one (its argument MODEL)."""
        if self._outcomes is None:
            said = settings()
            _, model, processor = self._resolve_model(dict(body))
            tokenizer = getattr(processor, "tokenizer", processor)
            ends = model.generation_config.eos_token_id
            setup = Setup(
                tokenizer=tokenizer.name_or_path,
                ends=tuple(ends if isinstance(ends, list) else [] if ends is None else [ends]),
                logits_width=model.config.get_text_config().vocab_size,
                protocol=said.protocol,
                store=said.store,
                store_bytes=said.store_bytes,
                seconds=said.seconds,
                jobs=said.jobs,
            )
            outcomes = Outcomes(setup, said.queue)
            await outcomes.start()
            self._outcomes = outcomes
        return self._outcomes

    def _streaming(self, *args: Any, **named: Any) -> Any:
        return super()._streaming(*_constrained(args), **named)

    async def _non_streaming(self, *args: Any, **named: Any) -> Any:
        return await super()._non_streaming(*_constrained(args), **named)


def _constrained(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with the mask among those of `generate`: request_id, model, processor, model_id, inputs, config."""
    held = _held.get()
    if held is None:
        return args
    _, _, processor, _, inputs, config, *_ = args
    tokenizer = getattr(processor, "tokenizer", processor)
    where = reasoning_after(tokenizer.decode(inputs["input_ids"][0][-_TAIL:]))
    request, bundle = held
    try:
        start = request.start(bundle, where)
    except ToolcError:
        start = request.start(bundle, OVER)
    if start.tools is not None:
        bundle = subset(bundle, start.tools)
    check_most(bundle, start.entry, None, config.max_new_tokens)
    budget = config.max_new_tokens if bundle.min_tokens[start.entry] is not None else None
    mask = ToolcLogitsProcessor(bundle, entry=start.entry, budget=budget)
    _reads.set(ReadBack(Reader(bundle, start.entry)))
    return *args[:4], {**inputs, "logits_processor": [mask]}, *args[5:]


def _asks_first(name: str, ours: Callable[..., Any]) -> None:
    """Let a function of the handler's module ask ours where a request is held."""
    theirs = getattr(chat_completion, name)

    def either(*args: Any, **named: Any) -> Any:
        reads = _reads.get()
        return theirs(*args, **named) if reads is None else ours(reads, *args)

    setattr(chat_completion, name, either)


def install() -> None:
    """Put the handler in its place; servers that begin afterwards have it."""
    if chat_completion.ChatCompletionHandler is ToolcChatHandler:
        return
    _asks_first("build_response_parser", lambda reads, *args: reads)
    _asks_first("parse_assistant_message", lambda reads, processor, model, tokens: reads.whole(tokens))
    chat_completion.ChatCompletionHandler = ToolcChatHandler


def main() -> None:
    """`transformers serve` with the arguments of this process."""
    from transformers.cli.transformers import main as command

    if any(argument.startswith("--continuous-batching") for argument in sys.argv[1:]):
        sys.exit("toolc: --continuous-batching of transformers serve takes no constraint for a request: leave it out")
    install()
    sys.argv = ["transformers", "serve", *sys.argv[1:]]
    command()


if __name__ == "__main__":
    main()
