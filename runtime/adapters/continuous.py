"""Continuous batching of `transformers`: the mask as a part of the captured step.

    manager = model.init_continuous_batching(generation_config)
    install(manager, {"weather": bundle})
    manager.start()
    manager.add_request(prompt, toolc_bundle="weather")

Leaves out   the step: see torch_step.py. `generate`: see huggingface.py.
Invariants   what runs in a step is a fixed list of tensor operations on tensors that exist, so that it can be captured
             in a CUDA graph or compiled. The host only tells each row its slot, in the one int32 that transformers
             hands over; it copies to the device when a request begins, and never reads from it.
Slots        one for each request that is alive. The argument of a row is slot + slots x how: 0, its state reads the
             token; 1, it begins; 2, it begins and reads the token, which is not on the host yet; -1 for no bundle.
             Requests that were reset or forked begin anew, with what they have said so far.
Refusals     an error within a step would end every request, so `add_request` refuses what cannot be met, to its caller;
             and a request waits, unscheduled, while those that are alive hold all slots.
Budgets      `max_new_tokens` of a request is its budget, or `toolc_budget=`; both are refused where they cannot be
             kept (0: none). For a choice of tools install `subset(bundle, …)` under a name of its own.
Reader       a per-request processor gets no tokens and a plain one no requests, so there are two: the first keeps the
             tokens of the step for the second.
Source       transformers 5.23, generation/continuous_batching/cb_logits_processors.py, scheduler.py.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Mapping
from typing import Any

import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor

from ..device.decoder import NO_BUNDLE, Decoder
from ..device.torch_step import Config
from ..errors import DecodeError
from ..format.bundle import Bundle
from ..format.entries import MAX_BUDGET, checked_budget, entry_state
from ..host.matcher import Matcher
from .choice import PREFIX, Choice, check_most
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
        slots: how many requests with a bundle may be alive at once.
        device: of the model.
        default: the bundle of requests that name none; None: they are not constrained.
        logits_width: how many logits the model has; see `Decoder`.
    """

    supported_kwargs: dict[str, type] = {"toolc_bundle": str, "toolc_entry": str, "toolc_budget": int}
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(
        self,
        bundles: Mapping[str, Bundle],
        slots: int,
        device: torch.device,
        default: str | None = None,
        logits_width: int | None = None,
    ) -> None:
        self._default = default
        self._slots = slots
        # One row more takes the writes of rows without a slot.
        self._here = Decoder(
            list(bundles.values()),
            slots + 1,
            device,
            bundle_of_row=[NO_BUNDLE] * (slots + 1),
            check=False,
            history=0,
            logits_width=logits_width,
        )
        # The decoder holds equal bundles once: names of equal ones have one number.
        self._numbers = {name: self._here.add_bundle(bundle) for name, bundle in bundles.items()}
        self._begin = self._here.fork()
        self._free = list(range(slots))
        self._held: dict[str, tuple[int, weakref.ref[Any], int]] = {}  # request -> slot, its state, its position
        self._written = 0  # arguments in the longest batch
        self.reader = TokenReader()

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        int32_tensor.fill_(NO_BUNDLE)

    # ------------------------------------------------------------ on the host

    def choose(self, given: Mapping[str, Any], most: int | None = None) -> tuple[int, Choice] | None:
        """The number of a request's bundle and what it asks for; None if it is not constrained.

        Args:
            given: the keyword arguments of the request, those of other processors among them.
            most: its `max_new_tokens`, where that is to be checked too.

        Raises:
            DecodeError: it cannot be met.
        """
        mine = {key: value for key, value in given.items() if key.startswith(PREFIX)}
        for key, value in mine.items():
            kind = self.supported_kwargs.get(key)
            if kind is None:
                raise DecodeError("no such argument", found=key, expected="one of " + ", ".join(self.supported_kwargs))
            if not isinstance(value, kind) or isinstance(value, bool):
                raise DecodeError(f"{key} is of another type", found=repr(value)[:80], expected=kind.__name__)
        name = mine.get("toolc_bundle", self._default)
        if name is None:
            if mine:
                raise DecodeError("the request names no bundle", found=", ".join(sorted(mine)), expected="toolc_bundle")
            return None
        if name not in self._numbers:
            raise DecodeError("no such bundle", found=repr(name), expected="one of " + ", ".join(self._numbers))
        number = self._numbers[name]
        bundle = self._begin.arena.bundle(number)
        choice = Choice(bundle, mine.get("toolc_entry", "start"), mine.get("toolc_budget"))
        entry_state(bundle, choice.entry)
        if choice.budget:
            checked_budget(bundle, choice.entry, choice.budget if most is None else min(choice.budget, most))
        check_most(bundle, choice.entry, choice.budget, most)
        return number, choice

    def waiting(self, scheduler: Any) -> list[Any]:
        """The waiting requests of a scheduler for which there are slots, in its order."""
        candidates: list[Any] = type(scheduler)._get_waiting_candidates(scheduler)
        if not candidates:
            return []
        taken = {request for request, (_, known, _) in self._held.items() if _is_alive(known())}
        taken |= {request for request, state in scheduler.active_requests.items() if self._is_mine(state)}
        # Children get their slots when they are forked, which asks nobody.
        children = sum(s.num_children for s in scheduler.active_requests.values() if self._is_mine(s))
        left = self._slots - len(taken) - children
        ready = []
        for state in candidates:
            needs = state.num_children + (state.request_id not in taken) if self._is_mine(state) else 0
            if needs <= left or not needs:
                ready.append(state)
                left -= needs
        return ready

    def _is_mine(self, state: Any) -> bool:
        return state.logit_processor_kwargs.get("toolc_bundle", self._default) is not None

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """int32 [R, or more]: after a longer batch -1 follows, for the rows that fill up a captured or compiled step.

        transformers leaves the arguments of longer batches in place there.
        """
        given = [self._argument(r.state) for r in requests_with_new_token]
        if any(one >= self._slots for one in given) and self._begin.device.type == "cuda":  # some begin
            # The step runs on a stream of its own, which does not wait for this one.
            torch.cuda.current_stream(self._begin.device).synchronize()
        self._written = max(self._written, len(given))
        return torch.tensor(given + [NO_BUNDLE] * (self._written - len(given)), dtype=torch.int32)

    def _argument(self, state: Any) -> int:
        if not self._is_mine(state):
            return NO_BUNDLE
        held = self._held.get(state.request_id)
        slot = self._slot() if held is None else held[0]
        if held is not None and held[2] + 1 == state.position_offset and held[1]() is state:
            how = STAYS
        else:
            how = self._start(slot, state)
        if held is None:  # not before: a request that cannot be met takes no slot
            self._free.remove(slot)
        self._held[state.request_id] = slot, weakref.ref(state), state.position_offset
        return slot + self._slots * how

    def _slot(self) -> int:
        if not self._free:
            for request, (slot, known, _) in list(self._held.items()):
                if not _is_alive(known()):
                    del self._held[request]
                    self._free.append(slot)
        if not self._free:
            raise DecodeError("more requests are alive than there are slots", found=f"{self._slots}")
        return self._free[0]

    def _start(self, slot: int, state: Any) -> int:
        """Write where a request begins, given what it said before."""
        chosen = self.choose(state.logit_processor_kwargs)
        assert chosen is not None
        number, choice = chosen
        matcher = Matcher(choice.bundle, choice.entry)
        prompt = state._true_initial_tokens or len(state.initial_tokens)
        known = state.initial_tokens[prompt:] + state.generated_tokens
        fed = state.position_offset - prompt
        refused = False
        for token in known[:fed]:
            refused = refused or not matcher.is_finished and not matcher.try_advance(token)
        frames = torch.zeros(2, self._begin.stack.shape[1], dtype=torch.int32)
        if matcher.stack:
            frames[:, : matcher.depth] = torch.tensor(matcher.stack, dtype=torch.int32).t()
        here = 0 if refused else self._begin.arena.global_state(number, matcher.state)
        # A request that was reset counts what it said before as a part of its prompt.
        most = None if state.max_new_tokens is None else state.max_new_tokens + len(state.initial_tokens) - prompt
        budget = min(choice.within(most) or 0, MAX_BUDGET)
        numbers = torch.tensor([number, here, matcher.counter, matcher.depth, fed, budget])
        at = self._begin
        parts = at.bundle_of_row, at.state, at.counter, at.depth, at.length, at.budget
        for part, value in zip(parts, numbers, strict=True):
            part[slot] = value
        at.stack[slot], at.saved[slot] = frames.to(at.device)
        if at.register.shape[1]:
            words = at.register.shape[1] // at.stack.shape[1]
            held = b"".join(one.to_bytes(4 * words, "little") for one in (*matcher.registers, matcher.register))
            register = torch.frombuffer(bytearray(held), dtype=torch.int32)
            at.register[slot, : register.numel()] = register.to(at.device)
        return BEGINS if fed <= len(known) else BEGINS_AND_READS

    # ------------------------------------------------------------ on the device

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        assert self.reader.tokens is not None
        self._here.check_width(scores, scores.shape[0])
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
        most = torch.iinfo(torch.int32).max
        left = torch.where((budget > 0) & ~free, (budget - length).clamp(min=0, max=most), -1).to(torch.int32)
        return mask_(here, bundle, config, scores, left)


def _is_alive(state: Any) -> bool:
    return state is not None and state.status < FINISHED


def _pick(chosen: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    return torch.where(chosen if yes.dim() == 1 else chosen.unsqueeze(1), yes, no)


def install(
    manager: Any,
    bundles: Mapping[str, Bundle],
    default: str | None = None,
    slots: int = 1024,
    logits_width: int | None = None,
) -> ToolcContinuousProcessor:
    """Add the constraint to a manager of continuous batching that has not started.

    From then on `manager.add_request` raises `DecodeError` for a request that cannot be met: an unknown bundle, entry
    or toolc_ argument, or a budget that cannot be kept within `max_new_tokens`. It is not queued, the others go on.

    Args:
        manager: of `model.init_continuous_batching`, or the one that `continuous_batching_context_manager` gives.
        bundles: by the names that requests give as `toolc_bundle=`.
        default: the bundle of requests that name none.
        slots: how many requests with a bundle may be alive at once; more wait until one ends.
        logits_width: how many logits the model has; see `Decoder`.
    """
    if manager.batch_processor is not None or manager._generation_thread is not None:
        raise DecodeError("the manager has started", hint="install the constraint before manager.start()")
    if default is not None and default not in bundles:
        raise DecodeError("no such bundle", found=repr(default), expected="one of " + ", ".join(bundles))
    made = ToolcContinuousProcessor(bundles, slots, manager.model.device, default, logits_width)
    every = manager.logit_processor
    every.logits_processor.extend([made.reader, made])
    every.tensors_required += 1
    every.supported_keys.update(made.supported_kwargs)
    every.do_processing = True
    _check_requests(manager, made, slots)
    _hold_back(manager, made)
    return made


def _check_requests(manager: Any, made: ToolcContinuousProcessor, slots: int) -> None:
    """Let `add_request`, which `add_requests` calls too, refuse what cannot be met."""
    add = manager.add_request
    signature = inspect.signature(add)

    @functools.wraps(add)
    def add_request(*args: Any, **given: Any) -> Any:
        asked = signature.bind(*args, **given).arguments
        most = asked.get("max_new_tokens")
        most = manager.generation_config.max_new_tokens if most is None else most
        chosen = made.choose(asked.get("logit_processor_kwargs", {}), most)
        if chosen is not None and manager.num_return_sequences > slots:
            raise DecodeError(
                "the request needs more slots than there are",
                found=f"{manager.num_return_sequences}",
                expected=f"{slots}",
            )
        return add(*args, **given)

    manager.add_request = add_request


def _hold_back(manager: Any, made: ToolcContinuousProcessor) -> None:
    """Let the scheduler, which the manager makes when it starts, see only the waiting requests that get slots."""
    create = manager._create_batch_processor

    @functools.wraps(create)
    def create_batch_processor() -> Any:
        processor = create()
        scheduler = processor.scheduler
        scheduler._get_waiting_candidates = functools.partial(made.waiting, scheduler)
        return processor

    manager._create_batch_processor = create_batch_processor
