"""An endpoint plugin for vLLM: ordinary requests of its HTTP server choose bundle and entry by themselves.

    VLLM_PLUGINS=toolc vllm serve MODEL --enable-auto-tool-choice --tool-call-parser hermes

vLLM finds the entry point `toolc` of the group `vllm.endpoint_plugins`, and takes it where $VLLM_PLUGINS names it. It
adds no route: a middleware reads the bodies of /v1/chat/completions, /v1/responses and /v1/messages behind vLLM's own
check of API keys, and names bundle and entry to the logits processor (vllm.py).

Leaves out   what is decided about a request, and compiling: see ../serving; what an operator says: settings.py there.
Invariants   all that is used of vLLM is public: the plugin interface, `app.state`, the engine client's config and
             renderer, ServingChat's way of probing a template. Where a setting cannot work, the server does not start.
Source       vLLM 0.32 and 0.33: plugins/__init__.py, `load_endpoint_plugins` (why $VLLM_PLUGINS has to be set);
             plugins/endpoint_plugins/interface.py; entrypoints/launchers/app.py (the order of middlewares).
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from typing import Any

from ..calls.events import Event
from ..calls.reader import Reader
from ..errors import DecodeError, ServingError
from ..format.bundle import Bundle
from ..serving.gate import Gate
from ..serving.middleware import Middleware
from ..serving.outcomes import START, Outcomes
from ..serving.parser_table import protocol_of
from ..serving.reasoning import OUTSIDE, marks_of, reasoning_after
from ..serving.requests import Content
from ..serving.rewrite import Json
from ..serving.settings import Settings, settings
from ..serving.worker import Setup
from .choice import Shelf
from .vllm_config import share_log

_LOG = logging.getLogger(__name__)

NAME = "toolc"
PROMPTS = 64
"""Settings of the chat template whose prompts are remembered, those used last."""
_MARK = "7c1e5f0a"
"""What the user says in a prompt that is made to see how prompts end."""

_CALL = {"place": "Basel", "days": 3}
"""Arguments of the call that a chat template writes and the protocol reads, when the server starts."""
_TOOL = {
    "name": "current_weather",
    "description": "The weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["place", "days"],
    },
}


class Plugin:
    """What vLLM makes of the entry point.

    Attributes:
        name: in $VLLM_PLUGINS.
        required_tasks: the server generates text.
        gate: None before the server has begun, or where no request is held.
    """

    name = NAME
    required_tasks = ("generate",)

    def __init__(self) -> None:
        self.settings = Settings()
        self.gate: Gate | None = None
        self.outcomes: Outcomes | None = None

    def attach_router(self, app: Any) -> None:
        """Add the middleware; vLLM adds its own later, so that they stand before this one.

        Raises:
            ServingError: a setting cannot be meant. (What `__init__` raises vLLM passes over.)
        """
        self.settings = settings()
        if self.settings.requests != "off":
            app.add_middleware(Middleware, gate=lambda: self.gate)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Begin to hold requests.

        Raises:
            ServingError: the settings cannot work with this engine.
        """
        if self.settings.requests == "off" or engine_client is None:
            return
        share_log()
        engine = Engine(engine_client, state, args, self.settings)
        counters = Counters()
        if self.settings.requests == "all":
            self.outcomes = Outcomes(engine.setup, self.settings.queue, counters.bundle)
            await self.outcomes.start()
            await engine.check(self.outcomes)
        self.gate = Gate(self.settings, engine, self.outcomes, counters.request)
        _LOG.info(
            "toolc: requests %s, protocol %s, store %s, vocabulary %s",
            *(self.settings.requests, engine.setup.protocol or "json", self.settings.store),
            None if self.outcomes is None else self.outcomes.vocab_digest,
        )


class Engine:
    """What the gate has to know of a vLLM server; see `Host`.

    Args:
        client: the engine client.
        state: of the application.
        args: of the command line.
        said: by the operator.
    """

    def __init__(self, client: Any, state: Any, args: Any, said: Settings) -> None:
        self._renderer = state.online_renderer
        self._tokenizer = client.renderer.get_tokenizer()
        self._falls_back = said.falls_back
        self._shelf = Shelf()
        self._ends: OrderedDict[str, str] = OrderedDict()
        config = client.vllm_config.model_config
        parser = args.tool_call_parser if args.enable_auto_tool_choice else None
        protocol = said.protocol or protocol_of(parser, self._tokenizer.get_vocab())
        self.reads_calls = parser is not None and protocol is not None
        reasoning = args.structured_outputs_config.reasoning_parser
        self.reads_reasoning = bool(reasoning)
        self._marks = marks_of(reasoning)
        if parser is not None and protocol is None:
            _LOG.warning(
                "toolc: no protocol is known for --tool-call-parser %s: requests with tools are left to the engine; "
                "set TOOLC_PROTOCOL to hold them",
                parser,
            )
        self.setup = Setup(
            tokenizer=_source(config),
            ends=_ends(client, config),
            logits_width=config.get_vocab_size(),
            protocol=protocol,
            store=said.store,
            store_bytes=said.store_bytes,
            seconds=said.seconds,
            jobs=said.jobs,
        )

    async def check(self, outcomes: Outcomes) -> None:
        """See that calls can be held: that the engine's parser leaves their constraint to others, and that the chat
        template writes calls as the protocol reads them.

        Raises:
            ServingError: the template writes them in another way, and the operator has what is refused answered so.
        """
        from .vllm import OWN

        if not self.reads_calls:
            return
        user = {"role": "user", "content": _MARK}
        asked = await self._rendered(messages=[user])
        own = None if asked is None else asked[0].structured_outputs
        if own is not None and any(getattr(own, name) for name in OWN):
            self.reads_calls = False
            _LOG.warning("toolc: the engine's parser constrains all requests with tools itself: they are left to it")
            return
        function = {"name": _TOOL["name"], "arguments": json.dumps(_CALL)}
        call = {"id": "call00000", "type": "function", "function": function}
        said = {"role": "assistant", "content": "", "tool_calls": [call]}
        told = await self._rendered(messages=[user, said], add_generation_prompt=False)
        if asked is None or told is None or str(_CALL["place"]) not in self._text(told[1]):
            _LOG.info("toolc: the chat template writes no calls, so the protocol cannot be held against it")
            return
        before, after = asked[1], told[1]
        same = next((n for n, (a, b) in enumerate(zip(before, after)) if a != b), min(len(before), len(after)))
        bundle = (await outcomes.obtain(Content(({"type": "function", "function": _TOOL},)), START)).bundle
        if reads_call(bundle, after[same:], str(_TOOL["name"]), _CALL):
            _LOG.info("toolc: the chat template writes calls as the protocol %s has them", self.setup.protocol)
            return
        error = ServingError(
            "the chat template writes calls in another way than the protocol",
            place=f"protocol {self.setup.protocol}",
            found=repr(self._text(after[same:]))[:200],
            hint="choose another --tool-call-parser, or set TOOLC_PROTOCOL",
        )
        if not self._falls_back:
            raise error
        self.reads_calls = False
        _LOG.warning("toolc: requests with tools are left to the engine: %s", error)

    async def _rendered(self, **fields: Any) -> tuple[Any, list[int]] | None:
        """A request with one tool as the engine adjusts it, and its prompt; None if the template does not take it."""
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        tools = [{"type": "function", "function": _TOOL}]
        request = ChatCompletionRequest(tools=tools, tool_choice="auto", **fields)
        tokens = await self._tokens(request)
        return None if tokens is None else (request, tokens)

    def _text(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=False))

    async def reasoning(self, body: Json, api: str) -> str:
        """Where the prompt of a request leaves the model."""
        about = _template_fields(body)
        key = json.dumps(about, sort_keys=True, default=str)
        if key not in self._ends:
            end = await self._prompt_end(about)
            if end is None:
                return OUTSIDE  # the template refuses these settings: the engine will say so
            self._ends[key] = end
            while len(self._ends) > PROMPTS:
                self._ends.popitem(last=False)
        self._ends.move_to_end(key)
        return reasoning_after(self._ends[key], self._marks)

    async def _prompt_end(self, about: Json) -> str | None:
        """What a template writes after the last message; None if it does not take these settings."""
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        try:
            request = ChatCompletionRequest(messages=[{"role": "user", "content": _MARK}], **about)
        except ValueError:
            return None  # no such settings: the engine says so
        tokens = await self._tokens(request)
        return None if tokens is None else self._text(tokens).rpartition(_MARK)[2]

    async def _tokens(self, request: Any) -> list[int] | None:
        """The prompt of a request of chat completions; None if the template does not take it."""
        from vllm.entrypoints.serve.engine.protocol import ErrorResponse

        try:
            made = await self._renderer.render_chat(request)
        except Exception:  # a template may raise anything, as vLLM itself expects where it probes one
            _LOG.debug("toolc: the chat template does not take a request", exc_info=True)
            return None
        return None if isinstance(made, ErrorResponse) else list(made[1][0]["prompt_token_ids"])

    def named(self, arguments: Json) -> Bundle:
        """The bundle that a request names."""
        choice = self._shelf.choose({key: value for key, value in arguments.items() if key != "toolc_entry"})
        assert choice is not None
        written, read = choice.bundle.meta.get("protocol"), self.setup.protocol
        if choice.bundle.tools and self.reads_calls and written != read:
            raise ServingError(
                "the engine would not find the calls of this bundle",
                place="toolc_bundle",
                found=f"calls in {written or 'plain JSON'}",
                expected=f"{read}, as --tool-call-parser reads them",
                hint=f"compile it with --protocol {read}, or set TOOLC_PROTOCOL",
            )
        return choice.bundle


def reads_call(bundle: Bundle, tokens: list[int], name: str, arguments: Json) -> bool:
    """Whether tokens of a prompt, from somewhere before a call on, hold this call as the bundle's protocol has it."""
    for first in range(len(tokens)):
        reader = Reader(bundle, "required")
        events: list[Event] = []
        try:
            for token in tokens[first:]:
                events += reader.feed(token)
                if any(event.kind == "end" for event in events):
                    break
            else:
                events += reader.finish()  # a call that only the end of the prompt ends
        except DecodeError:
            continue
        calls = [event.call for event in events if event.call is not None]
        if calls and calls[0].name == name and dict(calls[0].arguments) == arguments:
            return True
    return False


def _template_fields(body: Json) -> Json:
    """What of a request changes how its prompt ends, in the words of chat completions."""
    kwargs, effort = body.get("chat_template_kwargs"), body.get("reasoning_effort")
    for holder in ("reasoning", "output_config"):  # Responses, Messages
        if isinstance(body.get(holder), dict):
            effort = body[holder].get("effort")
    thinking = body.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "disabled":
        effort = "none"
    found: Json = {}
    if isinstance(kwargs, dict):
        found["chat_template_kwargs"] = kwargs
    if effort is not None:
        found["reasoning_effort"] = effort
    return found


def _source(config: Any) -> str:
    """The tokenizer that the engine has, as the compiler takes it."""
    revision = config.tokenizer_revision
    return f"{config.tokenizer}@{revision}" if revision else str(config.tokenizer)


def _ends(client: Any, config: Any) -> tuple[int, ...]:
    """The ids at which the engine stops."""
    ends = {client.renderer.get_eos_token_id()}
    more = config.try_get_generation_config().get("eos_token_id")
    ends.update([more] if isinstance(more, int) else more or ())
    return tuple(sorted(end for end in ends if end is not None))


class Counters:
    """Counts in the engine's Prometheus endpoint."""

    def __init__(self) -> None:
        from prometheus_client import Counter

        self._requests = Counter(
            "toolc:requests", "Requests by what became of them: free, named, held, fallback, refused.", ["outcome"]
        )
        self._bundles = Counter(
            "toolc:bundles",
            "Contents of requests by how their bundle was had: compiled, found, refused, late.",
            ["how"],
        )
        self._seconds = Counter("toolc:compile_seconds", "Seconds that compiles took.")
        for outcome in ("free", "named", "held", "fallback", "refused"):
            self._requests.labels(outcome)
        for how in ("compiled", "found", "refused", "late"):
            self._bundles.labels(how)

    def request(self, outcome: str) -> None:
        """Count a request."""
        self._requests.labels(outcome).inc()

    def bundle(self, how: str, seconds: float) -> None:
        """Count a content."""
        self._bundles.labels(how).inc()
        if how == "compiled":
            self._seconds.inc(seconds)
