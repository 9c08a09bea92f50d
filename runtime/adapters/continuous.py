"""Continuous batching of `transformers`: the mask as a part of the captured step.

    manager = model.init_continuous_batching(generation_config)
    install(manager, {"weather": bundle})
    manager.start()
    manager.add_request(prompt, toolc_bundle="weather")

Leaves out   the step: see step.py. `generate`: see huggingface.py.
Invariants   what runs in a step is a fixed list of tensor operations on tensors that exist, so that it can be captured
             in a CUDA graph or compiled. The host only tells each row its slot, in the one int32 that transformers
             hands over; it copies to the device when a request begins, and never reads from it.
Slots        one for each request that is alive. The argument of a row is slot + slots x how: 0, its state reads the
             token; 1, it begins; 2, it begins and reads the token, which is not on the host yet; -1 for no bundle.
             Requests that were reset or forked begin anew, with what they have said so far.
Budgets      `max_new_tokens` of a request is its budget where that can be kept, or `toolc_budget=` (refused where it
             cannot; 0: none). For a choice of tools install `bundle.subset(…)` under a name of its own.
Reader       a per-request processor gets no tokens and a plain one no requests, so there are two: the first keeps the
             tokens of the step for the second.
Source       transformers 5.23, generation/continuous_batching/cb_logits_processors.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any

import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor

from ..bundle import Bundle
from ..decoder import NO_BUNDLE, Decoder
from ..errors import DecodeError
from ..matcher import Matcher, checked_budget
from ..step import Config
from .choice import Choice
from .gather import advance_, mask_

FINISHED = 3  # RequestStatus.FINISHED; what is larger has failed
STAYS, BEGINS, BEGINS_AND_READS = 0, 1, 2


class TokenReader:
    """Keeps the tokens of a step; a plain processor that changes nothing."""

    supports_continuous_batching = True

    def __init__(self) -> None:
        self.tokens: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.tokens = input_ids
        return scores


class ToolcContinuousProcessor(ContinuousBatchingLogitsProcessor):
    """Masks the rows of requests that name a bundle; made by `install`.

    Args:
        bundles: by name; all of one vocabulary.
        slots: how many requests may be alive at once.
        device: of the model.
        default: the bundle of requests that name none; None: they are not constrained.
    """

    supported_kwargs: dict[str, type] = {"toolc_bundle": str, "toolc_entry": str, "toolc_budget": int}
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(
        self, bundles: Mapping[str, Bundle], slots: int, device: torch.device, default: str | None = None
    ) -> None:
        self._names = list(bundles)
        self._default = default
        self._slots = slots
        # One row more takes the writes of rows without a slot.
        self._here = Decoder(
            list(bundles.values()), slots + 1, device, bundle_of_row=[NO_BUNDLE] * (slots + 1), check=False, history=0
        )
        self._begin = self._here.fork()
        self._free = list(range(slots))
        self._held: dict[str, tuple[int, weakref.ref[Any], int]] = {}  # request -> slot, its state, its position
        self.reader = TokenReader()

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        int32_tensor.fill_(NO_BUNDLE)

    # ------------------------------------------------------------ on the host

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        return torch.tensor([self._argument(r.state) for r in requests_with_new_token], dtype=torch.int32)

    def _argument(self, state: Any) -> int:
        name = state.logit_processor_kwargs.get("toolc_bundle", self._default)
        if name is None:
            return NO_BUNDLE
        held = self._held.get(state.request_id)
        slot = self._slot() if held is None else held[0]
        if held is not None and held[2] + 1 == state.position_offset and held[1]() is state:
            how = STAYS
        else:
            how = self._start(slot, name, state)
        self._held[state.request_id] = slot, weakref.ref(state), state.position_offset
        return slot + self._slots * how

    def _slot(self) -> int:
        if not self._free:
            for request, (slot, known, _) in list(self._held.items()):
                state = known()
                if state is None or state.status >= FINISHED:
                    del self._held[request]
                    self._free.append(slot)
        if not self._free:
            raise DecodeError("more requests are alive than there are slots", found=f"{self._slots}")
        return self._free.pop(0)

    def _start(self, slot: int, name: str, state: Any) -> int:
        """Write where a request begins, given what it said before."""
        if name not in self._names:
            raise DecodeError("no such bundle", found=repr(name), expected="one of " + ", ".join(self._names))
        number = self._names.index(name)
        arena, given = self._begin.arena, state.logit_processor_kwargs
        choice = Choice(arena.bundle(number), given.get("toolc_entry", "start"), given.get("toolc_budget"))
        matcher = Matcher(choice.bundle, choice.entry)
        if choice.budget:
            checked_budget(choice.bundle, choice.entry, choice.budget)
        prompt = state._true_initial_tokens or len(state.initial_tokens)
        known = state.initial_tokens[prompt:] + state.generated_tokens
        fed = state.position_offset - prompt
        refused = False
        for token in known[:fed]:
            refused = refused or not matcher.is_finished and not matcher.try_advance(token)
        frames = torch.zeros(2, self._begin.stack.shape[1], dtype=torch.int32)
        if matcher.stack:
            frames[:, : matcher.depth] = torch.tensor(matcher.stack, dtype=torch.int32).t()
        here = 0 if refused else arena.global_state(number, matcher.state)
        # A request that was reset counts what it said before as a part of its prompt.
        most = None if state.max_new_tokens is None else state.max_new_tokens + len(state.initial_tokens) - prompt
        budget = choice.within(most) or 0
        numbers = torch.tensor([number, here, matcher.counter, matcher.depth, fed, budget], dtype=torch.int32)
        at = self._begin
        parts = at.bundle_of_row, at.state, at.counter, at.depth, at.length, at.budget
        for part, value in zip(parts, numbers, strict=True):
            part[slot] = value
        at.stack[slot], at.saved[slot] = frames.to(at.device)
        return BEGINS if fed <= len(known) else BEGINS_AND_READS

    # ------------------------------------------------------------ on the device

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        assert self.reader.tokens is not None
        argument = tensor_arg[: scores.shape[0]].to(torch.int64)
        free = argument < 0
        slot = torch.where(free, self._slots, argument % self._slots)
        how = torch.where(free, STAYS, argument // self._slots)
        here, begin = self._here, self._begin
        begins = how > STAYS
        bundle = torch.where(begins, begin.bundle_of_row[slot], here.bundle_of_row[slot])
        bundle = torch.where(free, NO_BUNDLE, bundle)
        config = Config(*(_pick(begins, b[slot], h[slot]) for b, h in zip(begin._config, here._config, strict=True)))
        advance_(here, torch.where(how == BEGINS, NO_BUNDLE, bundle), config, self.reader.tokens.to(torch.int64))
        here.bundle_of_row[slot] = bundle
        for part, new in zip(here._config, config, strict=True):
            part[slot] = new
        length = torch.where(begins, begin.length[slot], here.length[slot] + 1)
        budget = torch.where(begins, begin.budget[slot], here.budget[slot])
        here.length[slot], here.budget[slot] = length, budget
        left = torch.where((budget > 0) & ~free, (budget - length).clamp(min=0), -1).to(torch.int32)
        return mask_(here, bundle, config, scores, left)


def _pick(chosen: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    return torch.where(chosen if yes.dim() == 1 else chosen.unsqueeze(1), yes, no)


def install(
    manager: Any, bundles: Mapping[str, Bundle], default: str | None = None, slots: int = 1024
) -> ToolcContinuousProcessor:
    """Add the constraint to a manager of continuous batching that has not started.

    Args:
        manager: of `model.init_continuous_batching`, or the one that `continuous_batching_context_manager` gives.
        bundles: by the names that requests give as `toolc_bundle=`.
        default: the bundle of requests that name none.
        slots: how many requests may be alive at once.
    """
    if manager.batch_processor is not None or manager._generation_thread is not None:
        raise DecodeError("the manager has started", hint="install the constraint before manager.start()")
    if default is not None and default not in bundles:
        raise DecodeError("no such bundle", found=repr(default), expected="one of " + ", ".join(bundles))
    made = ToolcContinuousProcessor(bundles, slots, manager.model.device, default)
    every = manager.logit_processor
    every.logits_processor.extend([made.reader, made])
    every.tensors_required += 1
    every.supported_keys.update(made.supported_kwargs)
    every.do_processing = True
    return made
