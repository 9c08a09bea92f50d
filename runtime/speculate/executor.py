"""The client side: guessed calls are run while the model still writes (Algorithms 1 and 2).

One turn:

    1. the main request is on its way; λ samples of the speculative model are started beside it;
    2. a sample's calls are checked (known tool, marked, valid under the bundle, within the limits) and started; the
       turn holds them under their canonical key, and `deliver` hands results to the engine if it wants;
    3. the main request answers: samples that are still out are cancelled, so are the calls that it did not make;
    4. a call of the answer that the turn holds is awaited there (hit); any other is run (miss).

Leaves out   what a sample is: a coroutine that gives calls. Models and endpoints: see openai.py.
Invariants   the main request is never changed, delayed or failed by a guess: an error of a sample, a call, a check or
             a delivery is counted and ends there. A guess that failed or timed out is no hit: the call is run again, as
             it would have been (which is the one way in which a turn can take longer than without guesses). A result
             serves the turn that guessed it, and later ones only as `keep_alive_s` says. A tool that may run early
             sees its arguments in canonical form, whoever wrote them, so that one call may serve another of its key;
             any other tool sees them as they are. Nothing outlives its turn but what is kept so, and nothing at all
             `aclose` but tools that were left behind past their time (tools.py). What grows with a guess, its check and
             its key, is bounded (`Limits.guess_bytes`) and done in a thread; of the calls of an answer larger ones are.
Limits       see Limits; what is over a limit is not run early, and of an answer not at all.
Source       arXiv 2512.15834, Algorithms 1 and 2.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, TypeVar

from ..calls.events import Call
from .errors import SpeculateError, check_limit
from .keys import CallKey, Scope, parse_object
from .rules import Rules
from .tools import Output, Toolset

T = TypeVar("T")
Sample = Callable[[], Awaitable[Iterable[Call]]]
Deliver = Callable[[Call, Output], Awaitable[None]]
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limits:
    """What guessing may use, and an answer.

    Attributes:
        samples: λ, samples of the speculative model per turn.
        sample_timeout_s: seconds that a sample may take.
        guess_bytes: of the arguments of a guess, as JSON; a longer one is not checked and not run.
        running: early calls at once, over all turns.
        calls: early calls per turn.
        cost: what early calls of one turn may cost, in the units of `costs`.
        costs: cost of a call, by tool; 1 for those not named.
        keep_alive_s: seconds after its turn that a finished result may serve others; 0: its own turn only.
        kept: results that are kept so at most; the oldest go.
        answer_calls: calls of one answer that are run; the outputs of those beyond are errors.
        grace_s: seconds that cancelled runs have to end when the executor is closed.
    """

    samples: int = 1
    sample_timeout_s: float = 30.0
    guess_bytes: int = 4 << 10
    running: int = 64
    calls: int = 8
    cost: float = float("inf")
    costs: Mapping[str, float] = field(default_factory=dict)
    keep_alive_s: float = 0.0
    kept: int = 256
    answer_calls: int = 64
    grace_s: float = 10.0

    def __post_init__(self) -> None:
        for name in ("samples", "guess_bytes", "running", "calls", "kept", "answer_calls"):
            check_limit(name, getattr(self, name), whole=True)
        for name in ("sample_timeout_s", "cost", "keep_alive_s", "grace_s"):
            check_limit(name, getattr(self, name))
        if not isinstance(self.costs, Mapping):
            raise SpeculateError(place="costs", found=repr(self.costs)[:80], expected="a mapping of tools to numbers")
        for name, cost in self.costs.items():
            check_limit(f"costs/{name}", cost)


@dataclass
class Counts:
    """What became of guesses."""

    turns: int = 0
    samples: int = 0
    sample_errors: int = 0
    last_sample_error: str = ""
    guesses: int = 0
    refused: int = 0  # no call, no such tool, not marked, no key, not valid
    over_limit: int = 0
    started: int = 0
    hits: int = 0
    misses: int = 0
    not_run: int = 0  # calls of an answer beyond `answer_calls`
    failed: int = 0  # early runs that failed or timed out
    cancelled: int = 0
    delivered: int = 0
    delivery_errors: int = 0
    ran_early: dict[str, int] = field(default_factory=dict)  # by tool


@dataclass
class _Early:
    """An early run: its task, and until when its result may be used once its turn is over; None: it is not."""

    call: Call
    task: asyncio.Task[Output]
    until: float | None = None

    @property
    def succeeded(self) -> bool:
        return self.task.done() and not _failed(self.task)


class Turn:
    """One turn of one agent; made by `Executor.turn`."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._samples: set[asyncio.Task[None]] = set()
        self._deliveries: set[asyncio.Task[None]] = set()
        self._early: dict[CallKey, _Early] = {}
        self._started = 0
        self._spent = 0.0
        self._settled = False
        self._deliver: asyncio.Future[Deliver] = asyncio.get_running_loop().create_future()

    def deliver_to(self, deliver: Deliver) -> None:
        """Hand results of early calls to this from now on, those that are there already too."""
        if not self._deliver.done():
            self._deliver.set_result(deliver)

    def guess(self, samples: Iterable[Sample]) -> None:
        """Start samples, at most as many as the limit says, with the limits of a turn of their own.

        A turn of the agent may be several of the engine, where that answers calls itself: each can be guessed.
        """
        if self._settled:
            return
        self._started, self._spent = 0, 0.0
        for _, sample in zip(range(self._executor.limits.samples), samples):
            self._samples.add(asyncio.get_running_loop().create_task(self._sample(sample)))

    async def _sample(self, sample: Sample) -> None:
        executor = self._executor
        executor.counts.samples += 1
        try:
            calls = list(await asyncio.wait_for(_awaited(sample), executor.limits.sample_timeout_s))
        except Exception as error:  # a guess that fails is no guess; nothing of it reaches the main path
            executor._tell_of(error)
            return
        if self._settled:  # it ended in the moment in which it was cancelled (wait_for before Python 3.12)
            return
        for call in calls:
            executor.counts.guesses += 1
            try:
                await self._start(call)
            except Exception as error:  # it is no call, or none that anything can be said about
                executor.counts.refused += 1
                log.debug("a guess was refused: %r", error)

    async def _start(self, call: Call) -> None:
        executor = self._executor
        key = await executor._key_of_guess(call)
        if key is None or key in self._early or self._settled:
            return
        early = executor._usable(key, self)
        if early is None:
            early = executor._admit(call, key, self._started, self._spent)
            if early is None:
                return
            self._spent += executor._cost(call)
            self._started += 1
        self._early[key] = early
        self._deliveries.add(asyncio.get_running_loop().create_task(self._hand_over(early)))

    async def _hand_over(self, early: _Early) -> None:
        await asyncio.wait([early.task])
        if not early.succeeded:
            return
        deliver = await self._deliver
        try:
            await deliver(early.call, early.task.result())
            self._executor.counts.delivered += 1
        except Exception as error:  # as above
            self._executor.counts.delivery_errors += 1
            log.debug("a result was not delivered: %r", error)

    def settle(self, calls: Sequence[Call] = ()) -> None:
        """The main answer is here, with these calls: end the samples, and the early calls that it did not make."""
        self._settled = True
        executor = self._executor
        held = (call for call in calls if self._early and not executor._is_long(call))  # no guess is long
        wanted = {key for call in held if (key := executor._key(call)) is not None}
        executor._cancel([*self._samples, *self._deliveries])
        self._samples.clear()
        self._deliveries.clear()
        self._deliver.cancel()
        executor._release({key: early for key, early in self._early.items() if key not in wanted})
        self._early = {key: early for key, early in self._early.items() if key in wanted}

    async def run(self, call: Call) -> Output:
        """The output of a call of the main answer."""
        return await self._executor.run(call, self)


class Executor:
    """Runs calls, on guesses too, for one user of one tool server.

    Args:
        tools: what to run.
        rules: which may be run early; those of the tools' decorators if None. `Rules.from_bundle` knows more.
        accepts: whether a guessed call is valid (`CallChecker.accepts`); None: every one.
        limits: what guessing may use.
        scope: whose results these are.
    """

    def __init__(
        self,
        tools: Toolset,
        rules: Rules | None = None,
        accepts: Callable[[Call], bool] | None = None,
        limits: Limits | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.tools = tools
        self.rules = tools.rules() if rules is None else rules
        self.accepts = accepts
        self.limits = limits or Limits()
        self.scope = scope or Scope()
        self.counts = Counts()
        self._kept: dict[CallKey, _Early] = {}
        self._turns: set[Turn] = set()
        self._dying: set[asyncio.Task[Any]] = set()
        self._told: set[str] = set()
        self._threads = ThreadPoolExecutor(2, "toolc-guess")

    async def __aenter__(self) -> Executor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    @property
    def pending(self) -> int:
        """Samples, early runs and deliveries that are under way."""
        turns = sum(not task.done() for turn in self._turns for task in (*turn._samples, *turn._deliveries))
        return turns + self._running() + len(self._dying)

    def _running(self) -> int:
        return sum(not early.task.done() for turn in self._turns for early in turn._early.values())

    def begin(self, samples: Iterable[Sample] = ()) -> Turn:
        """Begin a turn: start the samples, at most as many as the limit says."""
        turn = Turn(self)
        self._turns.add(turn)
        self.counts.turns += 1
        turn.guess(samples)
        return turn

    async def turn(
        self,
        main: Callable[[Turn], Awaitable[T]],
        samples: Iterable[Sample],
        calls_of: Callable[[T], Sequence[Call]],
    ) -> tuple[T, list[Output]]:
        """A whole turn: the main answer, and the outputs of its calls, in their order.

        Args:
            main: gives the answer; it gets the turn, for `deliver_to`.
            samples: each gives guessed calls.
            calls_of: the calls of an answer.
        """
        turn = self.begin(samples)
        try:
            answer = await main(turn)
            calls = calls_of(answer)
            turn.settle(calls)
            return answer, await self.run_all(calls, turn)
        finally:
            self.end(turn)

    def end(self, turn: Turn) -> None:
        """End a turn: whatever it still holds is cancelled or kept, as `keep_alive_s` says."""
        turn.settle()
        self._turns.discard(turn)

    async def run(self, call: Call, turn: Turn | None = None) -> Output:
        """The output of a call that the model has made: awaited if its turn runs it or it is kept, else run now.

        Args:
            call: of the answer.
            turn: whose answer; None: none that was guessed for.
        """
        key = await self._in_thread(self._key, call) if self._is_long(call) else self._key(call)
        early = None if key is None else self._usable(key, turn)
        if early is not None:
            # waiting on the task, not in it: if this caller goes away, another may still want the result
            await asyncio.wait([early.task])
            if early.succeeded:
                self.counts.hits += 1
                return early.task.result()
        self.counts.misses += 1
        return await self.tools.run(self._seen(call, key))

    async def run_all(self, calls: Sequence[Call], turn: Turn | None = None) -> list[Output]:
        """The outputs of an answer's calls, in their order; those beyond `Limits.answer_calls` are not run."""
        most = self.limits.answer_calls
        outputs = await asyncio.gather(*(self.run(call, turn) for call in calls[:most]))
        self.counts.not_run += len(calls[most:])
        refused = Output(f"error: not run: of one answer, {most} calls are run at most", failed=True)
        return [*outputs, *[refused] * len(calls[most:])]

    async def aclose(self) -> None:
        """Cancel everything, and wait until it has ended."""
        for turn in list(self._turns):
            self.end(turn)
        self._kept.clear()
        if self._dying:
            _, stuck = await asyncio.wait(self._dying, timeout=self.limits.grace_s)
            if stuck:
                raise SpeculateError(
                    "early runs do not end when they are cancelled",
                    found=f"{len(stuck)} still running after {self.limits.grace_s:g} s",
                    hint="a tool must let asyncio.CancelledError pass",
                )

    # ------------------------------------------------------------ of a turn

    async def _in_thread(self, work: Callable[[Call], T], call: Call) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, call)

    def _tell_of(self, error: Exception) -> None:
        """A sample has failed: count it, and warn, once of what is the same."""
        self.counts.sample_errors += 1
        self.counts.last_sample_error = text = f"{type(error).__name__}: {error}"[:400]
        if text in self._told or len(self._told) >= _TOLD:
            log.debug("a sample failed: %s", text)
            return
        self._told.add(text)
        log.warning("a sample of the speculative model failed, and is no guess (told once): %s", text)

    def _is_long(self, call: Call) -> bool:
        """Whether the arguments are longer than those of a guess may be."""
        try:
            text = call.text or json.dumps(call.arguments, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):  # no JSON: whoever needs its key says so
            return True
        most = self.limits.guess_bytes
        return len(text) > most or len(text.encode(errors="replace")) > most

    def _key(self, call: Call) -> CallKey | None:
        """The key of a call that may run early; None: any other, and one without a canonical form."""
        rule = self.rules.get(call.name)
        if rule is None or not rule.early:
            return None
        try:
            return self.rules.key(self.scope, call.name, call.arguments)
        except SpeculateError:
            return None

    def _seen(self, call: Call, key: CallKey | None) -> Call:
        """A call as its tool sees it: where a guess may run, the same for all calls of one key."""
        return call if key is None else replace(call, arguments=parse_object(key.arguments))

    def _cost(self, call: Call) -> float:
        return self.limits.costs.get(call.name, 1.0)

    def _usable(self, key: CallKey, turn: Turn | None) -> _Early | None:
        """The early run of a call that a turn may use: its own, or one that is kept."""
        now = asyncio.get_running_loop().time()
        for held in (turn._early if turn is not None else {}, self._kept):
            early = held.get(key)
            if early is not None and (early.until is None or now <= early.until):
                return early
        return None

    async def _key_of_guess(self, call: Call) -> CallKey | None:
        """The key of a guess that is allowed to run early; None, and counted, for any other."""
        if not isinstance(call, Call):
            raise SpeculateError("a sample gave what is no call", found=type(call).__name__, expected="Call")
        rule = self.rules.get(call.name)
        if rule is None or not rule.early or call.name not in self.tools:
            self.counts.refused += 1
            return None
        if await self._in_thread(self._is_long, call):
            self.counts.over_limit += 1
            return None
        key = await self._in_thread(self._key_if_valid, call)
        self.counts.refused += key is None
        return key

    def _key_if_valid(self, call: Call) -> CallKey | None:
        key = self._key(call)
        return key if key is not None and self._valid(call) else None

    def _admit(self, call: Call, key: CallKey, started: int, spent: float) -> _Early | None:
        """Run an allowed guess early, if the limits let it."""
        over = self._running() >= self.limits.running or started >= self.limits.calls
        if over or spent + self._cost(call) > self.limits.cost:
            self.counts.over_limit += 1
            return None
        return self._begin(call, key)

    def _valid(self, call: Call) -> bool:
        try:
            return self.accepts is None or self.accepts(call)
        except Exception as error:  # a check that fails is a guess that fails
            log.debug("a guess could not be checked: %r", error)
            return False

    def _begin(self, call: Call, key: CallKey) -> _Early:
        self.counts.started += 1
        self.counts.ran_early[call.name] = self.counts.ran_early.get(call.name, 0) + 1
        task = asyncio.get_running_loop().create_task(self.tools.run(self._seen(call, key), early=True))
        task.add_done_callback(self._count)
        return _Early(call, task)

    def _count(self, task: asyncio.Task[Output]) -> None:
        if task.cancelled():
            self.counts.cancelled += 1
        elif _failed(task):
            self.counts.failed += 1

    def _release(self, runs: Mapping[CallKey, _Early]) -> None:
        """Early runs that their turn is done with: kept as `keep_alive_s` says, or ended."""
        now = asyncio.get_running_loop().time()
        for key, early in runs.items():
            if early.until is not None:  # of an earlier turn, which has kept it
                continue
            if early.succeeded and self.limits.keep_alive_s:
                early.until = now + self.limits.keep_alive_s
                self._kept.pop(key, None)
                self._kept[key] = early
            else:
                self._cancel([early.task])
        self._kept = {key: one for key, one in self._kept.items() if one.until is None or one.until >= now}
        for key in list(self._kept)[: max(0, len(self._kept) - self.limits.kept)]:
            del self._kept[key]

    def _cancel(self, tasks: Iterable[asyncio.Task[Any]]) -> None:
        """Cancel without waiting: a tool that is slow to give up holds nobody up."""
        for task in tasks:
            if not task.done():
                task.cancel()
                self._dying.add(task)
                task.add_done_callback(self._dying.discard)


def _failed(task: asyncio.Task[Output]) -> bool:
    """Whether a run that has ended gave no output, or that of a failure."""
    return task.cancelled() or task.exception() is not None or task.result().failed


_TOLD = 16
"""Different errors of samples that are warned of."""


async def _awaited(sample: Sample) -> Iterable[Call]:
    return await sample()
