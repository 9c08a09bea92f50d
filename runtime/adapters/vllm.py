"""Logits processors for vLLM: of model runner V2, on the device, and of the V1 runner.

    vllm serve … --logits-processors toolc.runtime.adapters.vllm:ToolcLogitsProcessor

or nothing at all: installing toolc registers it (entry-point group `vllm.logits_processors`). A request chooses its
bundle with `SamplingParams(extra_args={"toolc_bundle": "weather"})`, over HTTP with `vllm_xargs`; see choice.py. Its
budget is its `max_tokens`, or what the model's context leaves if that is less, where such a budget can be kept.

Leaves out   the masks: see decoder.py and matcher.py. The bundle of a request: see choice.py.
Loading      one class for both runners, since both load the same entry point.
Invariants   V2: the mask of a row depends on the tokens that vLLM holds for its request and on the drafts before it;
             nothing is read back from the device while requests run; adding one copies a few numbers to the device. A
             request whose slot was taken away begins again from `all_token_ids`.
             V1: the same on the host, from the list of output tokens; vLLM does not run it under speculative decoding.
Slots        one row of the decoder for each slot of vLLM (V2) or place in its batch (V1); a slot without a bundle
             costs nothing but its share of a step that others need.
Forced       a token that vLLM forces against the mask (the end of a thinking budget, a replayed trace) ends the
             constraint of its request: only the end of turn stays allowed. Give the entry that begins after the
             reasoning, or one that reads it.
Source       vLLM 0.33: v1/worker/gpu/sample/logits_processor/interface.py, v1/sample/logits_processor/interface.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from vllm.v1.sample.logits_processor.builtin import process_dict_updates
from vllm.v1.sample.logits_processor.interface import LogitsProcessor as V1Interface
from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2Interface

from ..decoder import NO_BUNDLE, Decoder
from ..errors import DecodeError, ToolcError
from ..masks import check_logits, mask_logits_
from ..matcher import Matcher
from ..step import Config
from ..width import LogitsWidth
from .choice import Choice, Shelf, memory_limit
from .gather import advance_, mask_

REFUSED = ("min_tokens", "allowed_token_ids", "bad_words", "structured_outputs")

_SHELF = Shelf()


def chosen(params: Any) -> Choice | None:
    """What a request's sampling parameters ask for.

    Raises:
        ValueError: it cannot be met. vLLM turns it into an answer with status 400.
    """
    try:
        choice = _SHELF.choose(getattr(params, "extra_args", None), most=params.max_tokens)
        if choice is None:
            return None
        for name in REFUSED:
            if getattr(params, name, None):
                raise ValueError(
                    f"{name} cannot be used together with toolc_bundle: it could leave no token that is allowed"
                )
        _SHELF.admit(choice.bundle)
    except ToolcError as error:
        raise ValueError(str(error)) from error
    return choice


def budget_of(choice: Choice, params: Any, prompt: int, longest: int | None) -> int | None:
    """The budget of a request whose prompt has so many tokens, in a context of `longest`."""
    limits = [params.max_tokens, None if longest is None else longest - prompt]
    return choice.within(min((limit for limit in limits if limit is not None), default=None))


class OnDevice(V2Interface):
    """For model runner V2.

    Args:
        vllm_config: gives the number of drafts in a step.
        req_states: vLLM's slots; only read.
    """

    def __init__(self, vllm_config: Any, req_states: Any) -> None:
        self._states = req_states
        speculative = getattr(vllm_config, "speculative_config", None)
        self._drafts: int = 0 if speculative is None else int(speculative.num_speculative_tokens)
        self._decoder: Decoder | None = None
        self._slots = int(req_states.max_num_reqs)
        self._constrained = np.zeros(self._slots, dtype=bool)
        self._staged: dict[int, tuple[Choice, Any] | None] = {}
        # Of each slot: how many output tokens have been read, and how many there may be (0: any number).
        self._read = torch.zeros(self._slots, dtype=torch.int64, device=req_states.device)
        self._budget = torch.zeros(self._slots, dtype=torch.int64, device=req_states.device)
        self._limited = np.zeros(self._slots, dtype=bool)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        chosen(sampling_params)

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        choice = chosen(sampling_params)
        self._constrained[req_idx] = choice is not None
        self._staged[req_idx] = None if choice is None else (choice, sampling_params)
        return choice is not None

    def apply_staged_writes(self) -> None:
        staged, self._staged = self._staged, {}
        if self._decoder is None:
            first = next((asked[0] for asked in staged.values() if asked is not None), None)
            if first is None:
                return
            self._decoder = Decoder(
                first.bundle,
                self._slots,
                self._states.device,
                bundle_of_row=[NO_BUNDLE] * self._slots,
                check=False,
                history=0,
                memory_limit=memory_limit(),
            )
        self._begin(self._decoder, staged)

    def _begin(self, decoder: Decoder, staged: dict[int, tuple[Choice, Any] | None]) -> None:
        """Rows of new occupants, with what a request said before its slot was taken away."""
        if not staged:
            return
        decoder.reset_rows(list(staged), NO_BUNDLE)  # what was there no longer holds a bundle
        budgets = []
        for slot, asked in staged.items():
            budget = None
            if asked is not None:
                choice, params = asked
                decoder.reset_rows([slot], decoder.add_bundle(choice.bundle), choice.entry)
                # `all_token_ids` is as wide as the model's context.
                longest = self._states.all_token_ids.gpu.shape[1]
                budget = budget_of(choice, params, int(self._states.prompt_len.np[slot]), longest)
            budgets.append(budget or 0)
            self._limited[slot] = budget is not None
        slots = torch.tensor(list(staged), dtype=torch.int64)
        self._budget[slots.to(self._budget.device)] = torch.tensor(budgets).to(self._budget.device)
        said = (self._states.prefill_len.np - self._states.prompt_len.np)[list(staged)]
        if said.max(initial=0) > 0:
            slots, first = (
                slots.to(self._read.device),
                torch.from_numpy(self._states.prompt_len.np[list(staged)].copy()),
            )
            counts = torch.from_numpy(said.copy()).to(self._read.device)
            self._catch_up(decoder, slots, first.to(self._read.device), counts, int(said.max()))
        self._read[slots.to(self._read.device)] = torch.from_numpy(said.astype(np.int64)).to(self._read.device)

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
        self._pin = is_pin_memory
        model = getattr(vllm_config, "model_config", None)
        self._longest: int | None = None if model is None else int(model.max_model_len)
        self._rows: dict[int, _Row] = {}
        self._width: LogitsWidth | None = None

    @classmethod
    def validate_params(cls, params: Any) -> None:
        chosen(params)

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: Any) -> None:
        process_dict_updates(self._rows, batch_update, self._row)

    def _row(self, params: Any, prompt: list[int] | None, output: list[int]) -> _Row | None:
        """As vLLM's batch updates make state; a prompt of embeddings has no tokens here."""
        choice = chosen(params)
        if choice is None:
            return None
        longest = None if prompt is None else self._longest
        return _Row(choice, budget_of(choice, params, len(prompt or ()), longest), output)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        if not self._rows:
            return logits
        bundles = [row.matcher.bundle for row in self._rows.values()]
        vocab = bundles[0].vocab
        if self._width is None:
            self._width = LogitsWidth(vocab)
        check_logits(logits, logits.shape[0], self._width, bundles)
        index = sorted(self._rows)
        bits = torch.empty(len(index), vocab.words, dtype=torch.int32, pin_memory=self._pin)
        masks = bits.numpy().view(np.uint32)
        for n, row in enumerate(index):
            self._rows[row].fill(masks[n])
        words = bits.to(logits.device, non_blocking=True)
        if len(index) == logits.shape[0]:
            every = torch.ones(len(index), dtype=torch.bool, device=logits.device)
            return mask_logits_(logits, words, vocab.size, every)
        place = torch.tensor(index, pin_memory=self._pin).to(logits.device, non_blocking=True)
        some = logits[place]
        every = torch.ones(len(index), dtype=torch.bool, device=logits.device)
        return logits.index_copy_(0, place, mask_logits_(some, words, vocab.size, every))


class _Row:
    """A request of the V1 runner: the matcher that follows its list of output tokens."""

    def __init__(self, choice: Choice, budget: int | None, output: list[int]) -> None:
        self.matcher = Matcher(choice.bundle, choice.entry, budget)
        self.output = output
        self.refused = False

    def fill(self, mask: np.ndarray) -> None:
        matcher = self.matcher
        for token in self.output[len(matcher) :]:
            if matcher.is_finished or self.refused:
                break
            if token < 0:
                raise DecodeError(
                    "vLLM holds back the output tokens",
                    found=f"{token} as token {len(matcher)}",
                    hint="name the processor with --logits-processors, or start with --no-async-scheduling",
                )
            self.refused = not matcher.try_advance(token)
        if self.refused:
            matcher.bundle.host.expand(matcher.bundle.host.rows, mask)  # the end of turn
        else:
            matcher.fill(mask)


class ToolcLogitsProcessor(V1Interface, V2Interface):
    """What vLLM loads: makes the processor of the runner that asks for it, by the arguments it is made with."""

    def __new__(cls, vllm_config: Any, *arguments: Any) -> Any:
        return OnHost(vllm_config, *arguments) if len(arguments) == 2 else OnDevice(vllm_config, *arguments)

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        chosen(sampling_params)
