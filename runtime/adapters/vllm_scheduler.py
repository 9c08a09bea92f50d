"""A scheduler for vLLM's V1 runner that masks and drafts: bundles and speculative decoding in one engine.

    vllm serve … --scheduler-cls toolc.runtime.adapters.vllm_scheduler.DraftingScheduler --speculative-config
        '{"method": "custom_class", "model": "toolc.runtime.adapters.vllm_drafts.NoDrafts",
          "num_speculative_tokens": 16}'

vLLM builds no custom logits processors beside speculation. Its structured outputs it does: each request has a grammar,
which fills one mask per draft. Here a request that names a bundle (choice.py) gets a grammar of toolc, and what
its proposer proposes is replaced by what the grammar drafts (drafting.py). Outputs that a client has handed in
(vllm_outputs.py) are drafted from, and, where the request asks for it (`toolc_resident`), inserted where a turn ends.

Leaves out   masks and drafts: see drafting.py. What is kept of outputs: see outputs.py. HTTP: see vllm_outputs.py.
Threads      bundles are opened, and the rest of calls is written, in threads; a request waits for its bundle as vLLM
             has it wait for a grammar. All else is done between two passes, in the engine's loop.
Invariants   requests that name no bundle are scheduled as vLLM does. A request whose bundle cannot be opened, or whose
             tokens are refused, ends alone. Without outputs no text changes: drafts are verified under the masks.
Not public   `Scheduler` may change between versions of vLLM: this file was read beside 0.32, and
             tests/engines/test_vllm_speculation.py runs it in the real engine. `EngineCore` gets one method, since
             vLLM has no call that reaches a scheduler (v1/engine/core_client.py, `call_utility_async`, finds methods of
             `EngineCore` by name; `collective_rpc` reaches workers only).
Source       vLLM 0.32: v1/core/sched/scheduler.py, v1/structured_output/__init__.py, v1/engine/core.py.
"""

from __future__ import annotations

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.core.sched.utils import check_stop
from vllm.v1.engine.core import EngineCore
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output.backend_types import StructuredOutputGrammar
from vllm.v1.structured_output.request import StructuredOutputRequest

from ..calls.events import Call
from ..calls.reader import Reader
from ..errors import DecodeError, ToolcError
from ..format.bundle import Bundle
from ..speculate.drafting import DraftedSequence, Guess, RestOfCall
from ..speculate.errors import SpeculateError
from ..speculate.keys import Scope
from ..speculate.outputs import CacheLimits, OutputCache
from ..speculate.rules import Rules
from .admitted import Admitted
from .choice import PREFIX, RESIDENT, Choice, Shelf

_LOG = logging.getLogger(__name__)

INSERTED = "toolc_inserted"
BUNDLES = 64
"""Bundles whose readers are kept, those used last."""
DRAFT_BYTES = 4 << 10
"""Of the arguments of a call that is drafted, in canonical form: its text is searched for."""
DRAFT_WAIT_S = 0.01
"""That a step waits for new drafts; what takes longer is used later, or not."""
REFUSED = ("min_tokens", "allowed_token_ids", "bad_words", "structured_outputs")  # could leave no token
RESIDENT_TURNS = 32
"""Turns that one request may have at most in the engine."""


@dataclass
class Counts:
    """What was done, over all requests that name a bundle.

    Attributes:
        passes: of the model, of a request each, its prompt left out.
        tokens: that were decoded.
        drafted, accepted: of drafts.
        inserted: tokens of outputs.
        resident: turns that were answered in the engine.
        avoided: tokens of contexts that a request which came back would have had to hold.
    """

    requests: int = 0
    passes: int = 0
    tokens: int = 0
    drafted: int = 0
    accepted: int = 0
    inserted: int = 0
    resident: int = 0
    avoided: int = 0


class Grammar(StructuredOutputGrammar):
    """The constraint of one request, as vLLM asks for it.

    Args:
        choice: what the request asks for.
        budget: tokens of its first turn, where such a budget can be kept.
    """

    def __init__(self, choice: Choice, budget: int | None) -> None:
        self.choice = choice
        self.text = DraftedSequence(choice.bundle, choice.entry, budget)
        self.calls: CallFollower | None = None  # once the first output was handed in
        self.following: tuple[list[int], int | None] | None = None  # what follows the turn, and the next turn's budget
        self.turns = 0  # that were answered in the engine

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        if not all(self.text.read(token) for token in tokens):
            return False
        if self.following is not None:
            self.text.insert(*self.following)
            self.following = None
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        return tokens[: self.text.allows(tokens)]

    def rollback(self, num_tokens: int) -> None:
        self.text.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        self.text.fill(bitmask[batch_index].numpy().view(np.uint32))

    def is_terminated(self) -> bool:
        return False  # vLLM would allow every token; after the end of turn the mask allows that alone

    def reset(self) -> None:
        raise NotImplementedError("vLLM 0.32 never starts a grammar anew")


class CallFollower:
    """Reads the turn of a request, and seeks the rest of a call that was cached.

    Args:
        text: of the request.
        reader: at the entry of its turns.
        rest: writes the rest of calls.
        threads: where it is written.
    """

    def __init__(self, text: DraftedSequence, reader: Reader, rest: RestOfCall, threads: ThreadPoolExecutor) -> None:
        self._text, self._start, self._rest, self._threads = text, reader, rest, threads
        self._begin(text.turn)

    def _begin(self, turn: int) -> None:
        self._turn, self._read, self._reader = turn, turn, self._start.fork()
        self._call: tuple[int, str] | None = None
        self._sought = -1  # the call whose rest was sought
        self._future: Future[Guess] | None = None

    def follow(self) -> None:
        """Read what the text has read since."""
        if self._turn != self._text.turn:
            self._begin(self._text.turn)
        for token in self._text.tokens[self._read :]:
            for event in self._reader.feed(token):
                if event.kind == "name":
                    self._call = event.number, event.text
                elif event.kind == "end":
                    self._call = None
            self._read += 1

    def seek(self, outputs: OutputCache, request: str) -> Future[Guess] | None:
        """Begin to write the rest of the call that was begun, where one of its tool is cached, if it was not yet."""
        if self._call is None or self._sought == self._call[0] or self._text.is_inserting:
            return None
        entry = outputs.latest(request, self._call[1])
        if entry is None or entry.arguments is None:
            return None
        self._sought = self._call[0]
        if entry.argument_bytes > DRAFT_BYTES:
            return None
        self._future = self._threads.submit(
            self._guess, len(self._text), self._reader.fork(), entry.name, entry.arguments
        )
        return self._future

    def _guess(self, position: int, reader: Reader, name: str, arguments: Mapping[str, Any]) -> Guess:
        return Guess(position, reader.data, self._rest.text(reader, name, arguments), self._rest)

    def use(self) -> None:
        """Take the rest that was written, if it is there."""
        if self._future is not None and self._future.done():
            self._text.guess(self._future.result())
            self._future = None

    def whole(self, tokens: Sequence[int]) -> list[Call]:
        """The calls of the turn, which ends with these tokens; they are not read."""
        self.follow()
        reader = self._reader.fork()
        for token in tokens:
            reader.feed(token)
        reader.finish()
        return reader.calls


class DraftingScheduler(Scheduler):
    """What `--scheduler-cls` names. Arguments are vLLM's own."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        config = self.vllm_config
        if config.use_v2_model_runner or self.scheduler_config.async_scheduling:
            raise DecodeError(
                "this scheduler is for the V1 runner without async scheduling",
                place="--scheduler-cls",
                hint="name a proposer of method custom_class in --speculative-config, as docs/speculate.md has it",
            )
        self.counts = Counts()
        self.outputs = OutputCache(CacheLimits(), time.monotonic)
        self._shelf = Shelf(copies=Admitted())
        self._threads = ThreadPoolExecutor(2, "toolc")
        self._tools: OrderedDict[Bundle, _Tools] = OrderedDict()

    # ------------------------------------------------------------ requests

    def add_request(self, request: Request) -> None:
        params = request.sampling_params
        given = getattr(params, "extra_args", None) or {}
        if request.structured_output_request is None and any(key.startswith(PREFIX) for key in given):
            asked = StructuredOutputRequest(
                params=StructuredOutputsParams(structural_tag="toolc"), reasoning_ended=True
            )
            longest = self.max_model_len - request.num_prompt_tokens
            asked.grammar = self._threads.submit(self._grammar, params, longest)
            request.structured_output_request = asked
            request.status = RequestStatus.WAITING_FOR_STRUCTURED_OUTPUT_GRAMMAR
            self.counts.requests += 1
            self.outputs.open(request.request_id)
        super().add_request(request)

    def _grammar(self, params: Any, longest: int) -> Grammar:
        try:
            choice = self._shelf.admitted(params.extra_args)
            assert choice is not None
            return Grammar(choice, choice.within(min(params.max_tokens, longest)))
        except ToolcError as error:
            _LOG.warning("a request is refused: %s", error)
            raise

    def _free_request(self, request: Request, delay_free_blocks: bool = False) -> Any:
        self.outputs.close(request.request_id)
        given, ec = super()._free_request(request, delay_free_blocks)
        grammar = _grammar_of(request)
        if given is None and grammar is not None and grammar.text.spans:
            given = {INSERTED: [list(span) for span in grammar.text.spans]}  # the one field of answers that is free
        return given, ec

    def shutdown(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        super().shutdown()

    # ------------------------------------------------------------ masks and drafts

    def get_grammar_bitmask(self, scheduler_output: Any) -> Any:
        manager = self.structured_output_manager
        if manager._grammar_bitmask is None:  # else vLLM would ask a backend of its own for it
            words = -(-self.vllm_config.model_config.get_vocab_size() // 32)
            rows = self.scheduler_config.max_num_seqs * (1 + self.num_spec_tokens)
            manager._grammar_bitmask = torch.full((rows, words), -1, dtype=torch.int32)
        return super().get_grammar_bitmask(scheduler_output)

    def update_draft_token_ids(self, draft_token_ids: Any) -> None:
        super().update_draft_token_ids(draft_token_ids)
        drafted = [
            (request, grammar)
            for id in draft_token_ids.req_ids
            if (request := self.requests.get(id)) is not None
            and not request.is_finished()
            and not request.is_prefill_chunk
            and (grammar := _grammar_of(request)) is not None
        ]
        new = [found for request, grammar in drafted if (found := self._seek(request, grammar)) is not None]
        if new:
            wait(new, DRAFT_WAIT_S)
        for request, grammar in drafted:
            if grammar.calls is not None:
                grammar.calls.use()
            room = min(
                self.num_spec_tokens,
                request.max_tokens - request.num_output_tokens - 1,
                self.max_model_len - request.num_tokens - 1,
            )
            draft = grammar.text.draft(max(0, room))
            self.counts.drafted += len(draft)
            if draft:  # else what another proposer proposed, and the mask allows
                request.spec_token_ids = draft

    def _seek(self, request: Request, grammar: Grammar) -> Future[Guess] | None:
        if grammar.calls is None:
            return None
        grammar.calls.follow()
        return grammar.calls.seek(self.outputs, request.request_id)

    def _update_request_with_output(
        self, request: Request, new_token_ids: list[int], is_stale: bool = False
    ) -> tuple[list[int], bool]:
        grammar = _grammar_of(request)
        if grammar is None:
            result: tuple[list[int], bool] = super()._update_request_with_output(request, new_token_ids, is_stale)
            return result
        self.counts.passes += 1
        self.counts.accepted += len(new_token_ids) - 1
        stopped, status = False, request.status
        for count, token in enumerate(new_token_ids, 1):
            request.append_output_token_ids(token)
            if grammar.text.is_inserted(len(grammar.text) + count - 1):
                self.counts.inserted += 1  # it fits, and an end of turn in it is none of the answer
                continue
            self.counts.tokens += 1
            stopped = check_stop(request, self.max_model_len)
            if stopped:
                del new_token_ids[count:]
                if request.status == RequestStatus.FINISHED_STOPPED and self._stays(request, grammar, new_token_ids):
                    request.status, request.stop_reason, stopped = status, None, False
                break
        return new_token_ids, stopped

    # ------------------------------------------------------------ outputs

    def _stays(self, request: Request, grammar: Grammar, tokens: Sequence[int]) -> bool:
        """Have the output of the turn's call follow it, where it is cached; the turn ends with these tokens."""
        if grammar.calls is None or grammar.turns >= _resident_turns(request) or not grammar.text.is_end(tokens[-1]):
            return False
        calls = grammar.calls.whole(tokens)
        if len(calls) != 1:  # templates put several outputs together in their own ways
            return False
        try:
            key = self._tools_of(grammar.choice.bundle).rules.key(Scope(), calls[0].name, calls[0].arguments)
        except SpeculateError:
            return False  # arguments without a canonical form are in no cache
        entry = self.outputs.find(request.request_id, key)
        if entry is None or not entry.after:
            return False
        left = min(
            request.max_tokens - request.num_output_tokens, self.max_model_len - request.num_tokens - len(entry.after)
        )
        need = grammar.choice.bundle.min_tokens[grammar.choice.entry]
        if left < max(2, need or 0):
            return False
        request.max_tokens += len(entry.after)
        grammar.following = list(entry.after), grammar.choice.within(left)
        grammar.turns += 1
        self.counts.resident += 1
        self.counts.avoided += request.num_tokens
        return True

    def cache_outputs(self, response: str, entries: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """Keep outputs for the requests of a response.

        Args:
            response: its id.
            entries: number, name of the tool, arguments or None (of any call), output, seconds or None, and the tokens
                that follow a turn that is this one call, none if it is not to stay.

        Returns:
            The numbers of those that were kept, and number and reason of each that was not; why nothing could be, if
            there is no such response.
        """
        grammars = [
            (id, grammar)
            for id, request in self.requests.items()
            if _is_of(id, response) and (grammar := _grammar_of(request)) is not None and not request.is_finished()
        ]
        if not grammars:
            return {"taken": [], "refused": [], "missing": f"no such request is running: found {response!r}"}
        taken, refused = [], []
        for number, name, arguments, output, seconds, after in entries:
            try:
                for id, grammar in grammars:
                    self._cache_output(id, grammar, name, arguments, output, seconds, after)
            except ToolcError as error:
                refused.append([number, str(error)])
            else:
                taken.append(number)
        return {"taken": taken, "refused": refused, "missing": ""}

    def _cache_output(
        self,
        request: str,
        grammar: Grammar,
        name: str,
        arguments: Mapping[str, Any] | None,
        output: str,
        seconds: float | None,
        after: Sequence[int],
    ) -> None:
        tools = self._tools_of(grammar.choice.bundle)
        key = tools.rules.key(Scope(), name, arguments)
        if not tools.rules[name].early:
            raise SpeculateError("this tool may not be run early", found=repr(name), hint="mark it read-only")
        seconds = self.outputs.limits.keep_alive_s if seconds is None else seconds
        self.outputs.put(request, key, arguments, output, seconds, after)
        if grammar.calls is None:
            reader = tools.readers.get(grammar.choice.entry)
            if reader is None:
                reader = tools.readers[grammar.choice.entry] = Reader(grammar.choice.bundle, grammar.choice.entry)
            grammar.calls = CallFollower(grammar.text, reader, tools.rest, self._threads)

    def _tools_of(self, bundle: Bundle) -> _Tools:
        found = self._tools.get(bundle)
        if found is None:
            found = self._tools[bundle] = _Tools(Rules.from_bundle(bundle), RestOfCall(bundle, self._encode), {})
            while len(self._tools) > BUNDLES:
                self._tools.popitem(last=False)
        self._tools.move_to_end(bundle)
        return found

    def _encode(self, text: str) -> list[int]:
        """Tokens of a text; in threads, so by the library itself: transformers' own call changes the tokenizer."""
        tokenizer = self.structured_output_manager.tokenizer
        fast = getattr(tokenizer, "backend_tokenizer", None)
        if fast is not None:
            return list(fast.encode(text, add_special_tokens=False).ids)
        return list(tokenizer.encode(text, add_special_tokens=False))


class _Tools(NamedTuple):
    """Of a bundle: which tools may run early, what writes their calls, and readers by entry."""

    rules: Rules
    rest: RestOfCall
    readers: dict[str, Reader]


def _resident_turns(request: Request) -> int:
    params = request.sampling_params
    given = {} if params is None else params.extra_args or {}
    return min(int(given.get(RESIDENT, 0)), RESIDENT_TURNS)


def _is_of(request: str, response: str) -> bool:
    """Whether a request of the engine is one of a response: vLLM writes `[n_]response[-n][-8 random digits]`."""
    found = _ID.fullmatch(request)
    return request == response or (found is not None and response in (found["id"], found["more"]))


_ID = re.compile(r"(?:\d+_)?(?P<more>(?P<id>.+?)(?:-\d+)?)-[0-9a-f]{8}")


def _grammar_of(request: Request) -> Grammar | None:
    """The grammar of a request that names a bundle, once it is there."""
    asked = request.structured_output_request
    grammar = None if asked is None else asked.grammar
    return grammar if isinstance(grammar, Grammar) else None


def _cache_outputs(core: EngineCore, response: str, entries: list[Any]) -> dict[str, Any]:
    scheduler = core.scheduler
    if not isinstance(scheduler, DraftingScheduler):
        return {"cached": 0, "place": None, "message": "the engine was started without --scheduler-cls"}
    return scheduler.cache_outputs(response, entries)


def _counts(core: EngineCore) -> dict[str, int]:
    scheduler = core.scheduler
    return asdict(scheduler.counts) if isinstance(scheduler, DraftingScheduler) else {}


EngineCore.toolc_cache_outputs = _cache_outputs
EngineCore.toolc_counts = _counts
