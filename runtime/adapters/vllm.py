"""Logits processors for vLLM: of model runner V2, on the device, and of the V1 runner; and the gate before them.

Installing toolc beside vLLM is all: its general plugin (vllm_hooks.py) names this processor. A request chooses its
bundle with `SamplingParams(extra_args={"toolc_bundle": "weather"})`, over HTTP with `vllm_xargs`; see choice.py. Its
budget is its `max_tokens`, or what the model's context leaves if that is less, where such a budget can be kept.

Leaves out   the masks: see decoder.py and matcher.py. The bundle of a request: see choice.py. What fits the engine:
             see fits.py. How a worker gets what a front end admitted: see admitted.py.
Loading      one class for both runners, since both load the same name.
Invariants   a request is admitted by the front end's `Gate` or refused there (status 400). What goes wrong later ends
             that request alone: only the engine's ends of turn stay allowed, and a log line says why.
             V2: the mask of a row depends on the tokens that vLLM holds for its request and on the drafts before it;
             nothing is read back from the device while requests run; adding one copies a few numbers to the device. A
             request whose slot was taken away begins again from `all_token_ids`.
             V1: the same on the host, from the list of output tokens; vLLM does not run it under speculative decoding.
Slots        one row of the decoder for each slot of vLLM (V2) or place in its batch (V1); a slot without a bundle
             costs nothing but its share of a step that others need.
Cut          vLLM ends a request at its last token whatever the mask says. Where a budget leaves the end of turn only in
             prose, the V1 runner allows each token, too, after which the text is whole: prose that goes on is reported
             as "length". Calls and responses end with the end of turn, also where white space could follow. On V2 all
             that a budget ends is reported as "stop".
Forced       a token that vLLM forces against the mask (the end of a thinking budget, a replayed trace) ends the
             constraint of its request: only the end of turn stays allowed. Give the entry that begins after the
             reasoning, or one that reads it.
Source       vLLM 0.32 and 0.33: v1/worker/gpu/sample/logits_processor/interface.py,
             v1/sample/logits_processor/interface.py.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
from vllm.v1.sample.logits_processor.builtin import process_dict_updates
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as V1Interface
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2Interface

from ..device.decoder import NO_BUNDLE, Decoder
from ..device.masks import check_logits, mask_logits_
from ..device.relocate import device_bytes
from ..device.torch_step import Config
from ..errors import DecodeError, ToolcError
from ..format.width import LogitsWidth
from ..host.matcher import Matcher
from ..host.shared import host_of
from . import counts
from .admitted import Admitted
from .choice import ADMITTED, PREFIX, Choice, Shelf, memory_limit
from .fits import Fits
from .gather import advance_, mask_
from .vllm_config import PROCESSOR, masks_in_scheduler, refusal, share_log

_LOG = logging.getLogger(__name__)

REFUSED = ("min_tokens", "allowed_token_ids", "bad_words")
OWN = ("regex", "choice", "grammar")
"""Structured outputs that only their own fields ask for; the others follow from `tools` or `response_format`, too."""

PROSE = 64
"""Masks of prose that a budget cuts, kept with each bundle."""

_SHELF = Shelf(copies=Admitted())


class Gate:
    """Admits requests in a front end, by the config of its engine.

    Args:
        vllm_config: of the engine.
        tokenizer: gives the engine's tokenizer, or None if it has none.
    """

    def __init__(self, vllm_config: Any, tokenizer: Callable[[], Any]) -> None:
        model = vllm_config.model_config
        self.refusal = refusal(vllm_config)
        """Why the engine runs no mask; None if it does."""
        if (
            self.refusal is None
            and not masks_in_scheduler(vllm_config)
            and PROCESSOR not in (model.logits_processors or ())
        ):
            self.refusal = f"--logits-processors does not name {PROCESSOR}"

        @functools.cache
        def ends() -> frozenset[int]:  # vLLM reads the file anew each time, which takes a millisecond or two
            end = getattr(tokenizer(), "eos_token_id", None)
            more = model.try_get_generation_config().get("eos_token_id")
            given = (end, *(more if isinstance(more, list | tuple) else [more]))
            return frozenset(int(e) for e in given if e is not None)

        self._fits = Fits(tokenizer, model.get_vocab_size(), ends)

    def admit(self, params: Any) -> None:
        """Let the worker know what a request was admitted for.

        Raises:
            ValueError: it asks for something that cannot be met. vLLM answers it with status 400.
        """
        if not asks(params):
            return
        try:
            choice = self._choice(params)
        except (ToolcError, ValueError) as error:
            counts.admission("refused")
            _LOG.info("toolc: refused a request: %s", error)
            raise ValueError(str(error)) from error
        counts.admission("admitted")
        params.extra_args = {**params.extra_args, ADMITTED: choice.key}
        params.structured_outputs = None  # toolc holds the request

    def _choice(self, params: Any) -> Choice:
        if self.refusal is not None:
            raise ValueError(f"this engine runs no masks of toolc: {self.refusal}")
        choice = _SHELF.choose(params.extra_args, most=params.max_tokens)
        if choice is None:
            raise DecodeError("the request names no bundle", expected="toolc_bundle")
        own = params.structured_outputs
        for name in (*REFUSED, *OWN):
            if getattr(params if name in REFUSED else own, name, None):
                raise ValueError(
                    f"{name} cannot be used together with toolc_bundle: it could leave no token that is allowed"
                )
        self._fits.check(choice.bundle)
        limit = memory_limit()
        if limit is not None and (size := int(device_bytes(choice.bundle)["total_bytes"])) > limit:
            raise DecodeError(
                "the bundle is too large for the device",
                place=choice.bundle.name,
                found=f"{size} bytes",
                expected=f"at most {limit}, as $TOOLC_DEVICE_BYTES says",
            )
        return choice


def asks(params: Any) -> bool:
    """Whether a request asks for anything of toolc."""
    return any(key.startswith(PREFIX) for key in getattr(params, "extra_args", None) or ())


def check_admitted(params: Any) -> None:
    """Refuse what no gate has seen.

    Raises:
        ValueError: a request that names a bundle did not pass one.
    """
    if asks(params) and ADMITTED not in params.extra_args:
        raise ValueError(
            "toolc_bundle was not checked: the general plugin `toolc` of vLLM is not loaded; name it in $VLLM_PLUGINS"
        )


class Budget(NamedTuple):
    """How many tokens a request may have.

    Attributes:
        tokens: None for any number, or where none can be kept.
        is_cut: vLLM itself ends the request there.
    """

    tokens: int | None
    is_cut: bool

    @classmethod
    def of(cls, choice: Choice, params: Any, prompt: int, longest: int | None) -> Budget:
        """Of a request whose prompt has so many tokens, in a context of `longest`."""
        limits = [params.max_tokens, None if longest is None else longest - prompt]
        most = min((limit for limit in limits if limit is not None), default=None)
        tokens = choice.within(most)
        return cls(tokens, tokens is not None and tokens == most)


def admitted(params: Any) -> Choice | None:
    """What an admitted request asks for; None if it asks for nothing of toolc.

    Raises:
        ToolcError: its bundle cannot be opened any more.
    """
    if not asks(params):
        return None
    return _SHELF.admitted(params.extra_args, most=None)


def ends_of(params: Any) -> list[int]:
    """The ids at which vLLM ends a request."""
    return sorted(params.all_stop_token_ids)


def fail(error: Exception, params: Any) -> list[int]:
    """Say why a request ends; returns the ids that it may end with."""
    counts.worker.fail()
    _LOG.error("toolc: a request ends, since its constraint failed: %s", error)
    return ends_of(params)


def allow_only_(logits: torch.Tensor, row: int | torch.Tensor, ends: Iterable[int]) -> None:
    """Mask a row, or rows, so that the request ends; one that never ends (`ignore_eos`) goes on unconstrained."""
    allowed = torch.tensor(list(ends), dtype=torch.int64, device=logits.device)
    if allowed.numel():
        kept = logits[row].index_select(-1, allowed)
        logits[row] = float("-inf")
        logits[row] = logits[row].index_copy(-1, allowed, kept)


class OnDevice(V2Interface):
    """For model runner V2.

    Args:
        vllm_config: gives the number of drafts in a step.
        req_states: vLLM's slots; only read.
    """

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        share_log()
        _LOG.info("toolc: masks for model runner V2, on %s", req_states.device)
        self._states = req_states
        speculative = getattr(vllm_config, "speculative_config", None)
        self._drafts: int = 0 if speculative is None else int(speculative.num_speculative_tokens)
        self._decoder: Decoder | None = None
        self._slots = int(req_states.max_num_reqs)
        self._constrained = np.zeros(self._slots, dtype=bool)
        self._staged: dict[int, tuple[Choice, Any] | None] = {}
        self._failed: dict[int, list[int]] = {}
        """Of slots whose constraint failed: the ids that they may end with."""
        # Of each slot: how many output tokens have been read, and how many there may be (0: any number).
        self._read = torch.zeros(self._slots, dtype=torch.int64, device=req_states.device)
        self._budget = torch.zeros(self._slots, dtype=torch.int64, device=req_states.device)
        self._limited = np.zeros(self._slots, dtype=bool)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        check_admitted(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        choice = None
        self._failed.pop(req_idx, None)
        try:
            choice = admitted(sampling_params)
        except ToolcError as error:
            self._failed[req_idx] = fail(error, sampling_params)
        self._constrained[req_idx] = choice is not None
        self._staged[req_idx] = None if choice is None else (choice, sampling_params)
        return choice is not None or req_idx in self._failed

    def apply_staged_writes(self) -> None:
        staged, self._staged = self._staged, {}
        if staged and (self._decoder is not None or any(staged.values())):
            self._begin(staged)

    def _begin(self, staged: dict[int, tuple[Choice, Any] | None]) -> None:
        """Rows of new occupants, with what a request said before its slot was taken away."""
        if self._decoder is not None:
            self._decoder.reset_rows(list(staged), NO_BUNDLE)  # what was there no longer holds a bundle
        budgets = []
        for slot, asked in staged.items():
            tokens = None
            if asked is not None:
                choice, params = asked
                try:
                    self._hold(slot, choice)
                except ToolcError as error:
                    self._failed[slot] = fail(error, params)
                    self._constrained[slot] = False
                # `all_token_ids` is as wide as the model's context.
                longest = self._states.all_token_ids.gpu.shape[1]
                tokens = Budget.of(choice, params, int(self._states.prompt_len.np[slot]), longest).tokens
            budgets.append(tokens or 0)
            self._limited[slot] = tokens is not None
        slots = torch.tensor(list(staged), dtype=torch.int64)
        there = slots.to(self._budget.device)
        self._budget[there] = torch.tensor(budgets).to(there.device)
        decoder = self._decoder
        if decoder is None:  # no bundle of this step could be held
            return
        counts.worker.hold(decoder.arena)
        said = (self._states.prefill_len.np - self._states.prompt_len.np)[list(staged)]
        if said.max(initial=0) > 0:
            slots, first = (
                slots.to(self._read.device),
                torch.from_numpy(self._states.prompt_len.np[list(staged)].copy()),
            )
            number = torch.from_numpy(said.copy()).to(self._read.device)
            self._catch_up(decoder, slots, first.to(self._read.device), number, int(said.max()))
        self._read[slots.to(self._read.device)] = torch.from_numpy(said.astype(np.int64)).to(self._read.device)

    def _hold(self, slot: int, choice: Choice) -> None:
        """Let a slot begin in a bundle.

        Raises:
            ToolcError: there is no place for the bundle, or it does not go with those that are there.
        """
        if self._decoder is None:
            self._decoder = Decoder(
                choice.bundle,
                self._slots,
                self._states.device,
                bundle_of_row=[NO_BUNDLE] * self._slots,
                check=False,
                history=0,
                memory_limit=memory_limit(),
            )
        self._decoder.reset_rows([slot], self._decoder.add_bundle(choice.bundle), choice.entry)

    def _catch_up(
        self, decoder: Decoder, slots: torch.Tensor, first: torch.Tensor, counts: torch.Tensor, most: int
    ) -> None:
        """Read `counts` int [n] tokens of each slot from place `first`; `most` bounds them on the host."""
        history = self._states.all_token_ids.gpu
        last = history.shape[1] - 1
        tokens = torch.zeros(self._slots, dtype=torch.int64, device=self._read.device)
        moves = torch.zeros(self._slots, dtype=torch.bool, device=self._read.device)
        for n in range(most):
            tokens[slots] = history[slots, (first + n).clamp(max=last).to(torch.int64)].to(torch.int64)
            moves.zero_()
            moves[slots] = counts > n
            advance_(decoder, torch.where(moves, decoder.bundle_of_row, NO_BUNDLE), decoder._config, tokens)

    def apply(self, logits: torch.Tensor, ctx: Any) -> torch.Tensor:
        for slot in self._failed.keys() & set(ctx.idx_mapping_np.tolist()):
            allow_only_(logits, (ctx.expanded_idx_mapping == slot).nonzero().view(-1), self._failed[slot])
        decoder = self._decoder
        if decoder is None or not self._constrained[ctx.idx_mapping_np].any():
            return logits
        decoder.check_width(logits, ctx.expanded_idx_mapping.shape[0])
        slot = ctx.expanded_idx_mapping.to(torch.int64)
        offset = ctx.expanded_local_pos.to(torch.int64)
        prompt = self._states.prompt_len.gpu.to(torch.int64)

        # What was committed since: a request's first row stands after its last committed token.
        requests = ctx.idx_mapping.to(torch.int64)
        where = torch.zeros(self._slots, dtype=torch.int64, device=slot.device)
        where[slot] = ctx.pos.to(torch.int64) - offset  # equal for all rows of a request
        said = (where + 1 - prompt)[requests].clamp(min=0)
        read = self._read[requests]
        self._catch_up(decoder, requests, prompt[requests] + read, said - read, self._drafts + 1)
        self._read[requests] = torch.maximum(read, said)

        # Drafts are in `input_ids` only: row j of a request has read those of its rows 1 to j.
        bundle = decoder.bundle_of_row[slot]
        config = Config(*(part[slot] for part in decoder._config))
        place = torch.arange(slot.shape[0], device=slot.device)
        for n in range(1, self._drafts + 1):
            token = ctx.input_ids[(place - offset + n).clamp(max=slot.shape[0] - 1)].to(torch.int64)
            advance_(decoder, torch.where(offset >= n, bundle, NO_BUNDLE), config, token)
        return mask_(decoder, bundle, config, logits, self._left(ctx, slot, prompt[slot]))

    def _left(self, ctx: Any, slot: torch.Tensor, prompt: torch.Tensor) -> torch.Tensor | None:
        """int32 [R]: what the budgets leave at each row, -1 without one; None if none is in the batch."""
        if not self._limited[ctx.idx_mapping_np].any():
            return None
        budget = self._budget[slot]
        left = (budget - (ctx.pos.to(torch.int64) + 1 - prompt)).clamp(min=0)
        return torch.where(budget > 0, left, -1).to(torch.int32)


class OnHost(V1Interface):
    """For the V1 runner.

    Args:
        vllm_config: gives the length of the context.
        device: unused, since the logits say where they are.
        is_pin_memory: whether masks are copied from pinned memory.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        share_log()
        _LOG.info("toolc: masks for the V1 runner")
        self._pin = is_pin_memory
        model = getattr(vllm_config, "model_config", None)
        self._longest: int | None = None if model is None else int(model.max_model_len)
        self._rows: dict[int, _Row] = {}
        self._width: LogitsWidth | None = None

    @classmethod
    def validate_params(cls, params: Any) -> None:
        check_admitted(params)

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: Any) -> None:
        process_dict_updates(self._rows, batch_update, self._row)

    def _row(self, params: Any, prompt: list[int] | None, output: list[int]) -> _Row | None:
        """As vLLM's batch updates make state; a prompt of embeddings has no tokens here."""
        try:
            choice = admitted(params)
            if choice is None:
                return None
            longest = None if prompt is None else self._longest
            return _Row(choice, Budget.of(choice, params, len(prompt or ()), longest), output, params)
        except ToolcError as error:
            return _Row(None, Budget(None, False), output, params, error)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for place, row in self._rows.items():
            row.follow()
            if row.ends is not None:
                allow_only_(logits, place, row.ends)
        index = sorted(place for place, row in self._rows.items() if row.ends is None)
        if not index:
            return logits
        matchers = [self._rows[place].matcher for place in index]
        vocab = matchers[0].bundle.vocab
        if self._width is None:
            self._width = LogitsWidth(vocab)
        check_logits(logits, logits.shape[0], self._width, [matcher.bundle for matcher in matchers])
        bits = torch.empty(len(index), vocab.words, dtype=torch.int32, pin_memory=self._pin)
        masks = bits.numpy().view(np.uint32)
        for n, place in enumerate(index):
            self._rows[place].fill(masks[n])
        words = bits.to(logits.device, non_blocking=True)
        every = torch.ones(len(index), dtype=torch.bool, device=logits.device)
        if len(index) == logits.shape[0]:
            return mask_logits_(logits, words, vocab.size, every)
        places = torch.tensor(index, pin_memory=self._pin).to(logits.device, non_blocking=True)
        some = logits[places]
        return logits.index_copy_(0, places, mask_logits_(some, words, vocab.size, every))


class _Row:
    """A request of the V1 runner: the matcher that follows its list of output tokens.

    Attributes:
        ends: the ids that it may end with, once its constraint has failed; None before.
    """

    def __init__(
        self, choice: Choice | None, budget: Budget, output: list[int], params: Any, error: ToolcError | None = None
    ) -> None:
        self.output = output
        self.ends: list[int] | None = None
        self.refused = False
        self._params, self._is_cut = params, budget.is_cut
        if choice is None or error is not None:
            self.ends = fail(error or DecodeError("no bundle"), params)
        else:
            self.matcher = Matcher(choice.bundle, choice.entry, budget.tokens)

    def follow(self) -> None:
        """Read the tokens that came since."""
        if self.ends is not None:
            return
        matcher = self.matcher
        for token in self.output[len(matcher) :]:
            if matcher.is_finished or self.refused:
                break
            if token < 0:
                held_back = DecodeError("vLLM holds back the output tokens", found=f"{token} as token {len(matcher)}")
                self.ends = fail(held_back, self._params)
                return
            self.refused = not matcher.try_advance(token)

    def fill(self, mask: np.ndarray) -> None:
        """Write the mask."""
        matcher = self.matcher
        if self.refused:
            host_of(matcher.bundle).expand(matcher.bundle.tables.rows, mask)  # the end of turn
        elif (prose := self._prose()) is not None:
            mask[: matcher.bundle.vocab.words] = prose
        else:
            matcher.fill(mask)

    def _prose(self) -> np.ndarray | None:
        """How prose may go on that the budget would end and vLLM cuts; None elsewhere."""
        matcher = self.matcher
        if not self._is_cut or matcher.depth or matcher.closing not in matcher.bundle.tables.end_of_turn_tokens:
            return None
        return prose_after(matcher)


def prose_after(matcher: Matcher) -> np.ndarray | None:
    """uint32 [ceil(V / 32)]: tokens after which a text of prose is whole, and the end of turn; None if it is no prose.

    It is prose where letters may follow, and it would be whole. (White space may follow calls, digits a number.)
    Each token is tried, which takes half a second for prose; the result is kept with the bundle.
    """
    kept: dict[tuple[int, int], np.ndarray | None] = matcher.bundle.__dict__.setdefault("_prose_after", {})
    key = matcher.state, matcher.counter
    if key not in kept:
        probe = matcher.fork()
        probe.limit(None)
        ends = set(map(int, probe.bundle.tables.end_of_turn_tokens))
        bits = np.zeros(32 * probe.bundle.vocab.words, dtype=np.uint8)
        is_prose = False
        for token in map(int, probe.allowed_tokens()):
            if token in ends:
                bits[token] = 1
            elif probe.try_advance(token):
                bits[token] = probe.bound == 1
                is_prose |= bool(bits[token]) and probe.bundle.vocab.token(token).isalpha()
                probe.rollback()
        while len(kept) >= PROSE:
            kept.pop(next(iter(kept)))
        kept[key] = np.packbits(bits, bitorder="little").view(np.uint32) if is_prose else None
    return kept[key]


class ToolcLogitsProcessor(V1Interface, V2Interface):
    """What vLLM loads: makes the processor of the runner that asks for it, by the arguments it is made with."""

    def __new__(cls, vllm_config: Any, *arguments: Any) -> Any:
        return OnHost(vllm_config, *arguments) if len(arguments) == 2 else OnDevice(vllm_config, *arguments)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        check_admitted(sampling_params)
