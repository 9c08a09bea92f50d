"""An endpoint plugin for vLLM: `POST /v1/cache-tool-output/{response_id}` hands outputs of tools in.

    VLLM_PLUGINS=toolc,toolc_outputs vllm serve … (and the scheduler of vllm_scheduler.py)

    POST /v1/cache-tool-output/{response_id}  [{name, params?, output, keep_alive?}] → {"cached": n}; also without /v1

The body, its bounds and its errors are those of speculate/server.py. What was handed in is dropped when the answer has
ended. Under --api-key both paths ask for the key, as vLLM's own under /v1 do. vLLM has no users, so who knows the id of
a response that is on its way may hand outputs in for it: ids are random, unless a client chooses its own.

Leaves out   what outputs are used for: see vllm_scheduler.py.
Invariants   bodies are read up to a bound; what grows with one is done in a thread. The tokens that would follow a turn
             are those of the next request's prompt: the chat template is rendered with and without the output, and
             where the one is not the beginning of the other, or the output spells a delimiter, there are none.
Source       vLLM 0.32: plugins/endpoint_plugins/interface.py, v1/engine/core_client.py (`call_utility_all_async`).
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from jinja2 import TemplateError
from starlette.requests import ClientDisconnect

from ..speculate.handed_in import Bad, HandedIn, told
from ..speculate.outputs import CacheLimits
from ..speculate.server import Refused, answer_of, entries_of, read_body

NAME = "toolc_outputs"
BODY_BYTES = 1 << 20
_LIMITS = CacheLimits()


class Continuation:
    """What follows a turn of one call with an output, up to where the next turn begins.

    Args:
        tokenizer: of transformers, with a chat template.
        template: a chat template instead of the tokenizer's own.
    """

    def __init__(self, tokenizer: Any, template: str | None = None) -> None:
        self._tokenizer, self._template = tokenizer, template
        names: list[str] = list(getattr(tokenizer, "get_added_vocab", dict)())
        self._names = [name for name in names if name]
        self._end = getattr(tokenizer, "eos_token", None)

    def tokens(self, name: str, output: str) -> list[int]:
        """The tokens; none where the template does not say them."""
        if not self._end or any(delimiter in output for delimiter in self._names):
            return []
        turns = [{"role": "user", "content": "0"}, {"role": "assistant", "content": "0"}]
        answer = {"role": "tool", "name": name, "tool_call_id": "0", "content": output}
        try:
            before = self._rendered(turns, False)
            whole = self._rendered([*turns, answer], True)
        except (TemplateError, ValueError, TypeError, KeyError):  # what templates raise of roles that they do not know
            return []
        if not whole.startswith(before) or self._end not in before or output not in whole[len(before) :]:
            return []
        text = before[before.rindex(self._end) + len(self._end) :] + whole[len(before) :]
        return [int(token) for token in self._tokenizer.encode(text, add_special_tokens=False)]

    def _rendered(self, messages: Sequence[dict[str, str]], prompt: bool) -> str:
        return str(
            self._tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=prompt, chat_template=self._template
            )
        )


class OutputsPlugin:
    """What vLLM loads, where `VLLM_PLUGINS` names it."""

    name = NAME
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """The routes."""

        async def cache(response_id: str, request: Request) -> Response:
            state = request.app.state
            try:
                if not state.toolc_authorized(request):
                    return JSONResponse({"error": "Unauthorized"}, 401)  # vLLM's words
                body = await read_body(request, BODY_BYTES)
                entries, bad = await asyncio.to_thread(entries_of, body, _LIMITS.entries)
                return JSONResponse(await state.toolc_cache(response_id, entries, bad))
            except Refused as error:
                return JSONResponse(error.body, error.status)
            except ClientDisconnect:
                return Response(status_code=499)

        for path in ("/v1/cache-tool-output/{response_id}", "/cache-tool-output/{response_id}"):
            app.add_api_route(path, cache, methods=["POST"])

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """What the routes use: the engine's client, the tokenizer, the chat template and the keys."""
        from vllm import envs
        from vllm.entrypoints.serve.middleware.authenticate import AuthenticationMiddleware
        from vllm.renderers.chat_utils import load_chat_template

        template = load_chat_template(getattr(args, "chat_template", None))
        continuation = Continuation(engine_client.get_tokenizer(), template)
        keys = [key for key in (getattr(args, "api_key", None) or [envs.VLLM_API_KEY]) if key]
        guard = AuthenticationMiddleware(None, keys) if keys else None
        state.toolc_authorized = lambda request: guard is None or guard.verify_token(request.headers)
        state.toolc_cache = _cache_of(engine_client, continuation)


def _cache_of(engine_client: Any, continuation: Continuation) -> Callable[..., Any]:
    """The function that hands entries to the engine which has the response."""

    def with_continuations(entries: Sequence[HandedIn]) -> list[list[Any]]:
        return [[*entry, continuation.tokens(entry.name, entry.output)] for entry in entries]

    async def cache(response: str, entries: Sequence[HandedIn], bad: Sequence[Bad]) -> dict[str, Any]:
        given = await asyncio.to_thread(with_continuations, entries)
        all_told = await engine_client.engine_core.call_utility_all_async("toolc_cache_outputs", response, given)
        best = min(all_told, key=lambda one: bool(one["missing"]))  # of several engines one has the response
        if best["missing"]:
            raise Refused(404, best["missing"], None, told([], bad))
        refused = [Bad(number, message, f"{number}") for number, message in best["refused"]]
        return answer_of(best["taken"], [*bad, *refused])

    return cache
