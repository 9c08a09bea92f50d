"""A reference engine: continuous batching under a grammar, with drafted calls and a tool cache (Algorithms 3, 4, 5).

Every step each running sequence gets one pass: a piece of its prompt, or its last token, or its last token and a draft.

    call begins   its tool is settled and the tool cache has an output for that name: the latest such call is drafted,
                  and verified in one pass (sampling.py); where the model cuts its text into other tokens, the rest is
                  drafted again
    turn ends     all its calls have outputs in the tool cache: they are appended and the sequence stays; else the calls
                  go to the client

A slot keeps what it holds when its sequence ends. The next request goes to the free slot that holds the longest
beginning of its prompt, and reads only what follows.

Outputs are appended where the turn ends and not inside of it, because there the text is the one that a client's next
request would hold: so a run that stays is equal, token for token, to one that comes back.

Threads      what grows with texts (drafts, reading tokens and outputs, distributions) is done in threads; the loop only
             hands things over, so it answers others in the meantime. A draft is sought while the sequence goes on.
Leaves out   the model: see causal.py, simulator.py. Texts of messages: see chat.py. HTTP: see server.py.
Invariants   without drafts and outputs this is plain decoding; with them the distribution of every token is the same.
             A sequence draws random numbers of its own, so what else runs does not matter. A request that is abandoned
             frees its slot, and its outputs, before the next step.
Source       arXiv 2512.15834, Algorithms 3 to 5; docs/speculate.md says where this departs from them.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..calls.arguments import ENCODINGS
from ..calls.events import Call
from ..calls.events import Event as Said
from ..calls.reader import Reader
from ..errors import ToolcError
from ..host.matcher import Matcher
from .drafting import Encode, Guess, RestOfCall
from .errors import SpeculateError
from .keys import CallKey, Scope
from .outputs import CacheLimits, OutputCache
from .rules import Rules
from .sampling import Distribution, distribution, verify

if TYPE_CHECKING:
    from ..format.bundle import Bundle
    from .causal import Feed


class Model(Protocol):
    """What the engine runs."""

    slots: int
    capacity: int

    async def forward(self, feeds: Sequence[Feed]) -> list[np.ndarray]:
        """Read the tokens of every feed; logits float [keep, V] of each."""
        ...


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen.

    Attributes:
        temperature: 0: the best token.
        seed: of the sequence's random numbers; None: another one each time.
        max_tokens: decoded at most for the request, over all turns that it has in the engine.
        resident_turns: turns that may be answered from the tool cache; None: as many as the engine's limit says.
    """

    temperature: float = 0.0
    seed: int | None = None
    max_tokens: int = 512
    resident_turns: int | None = None


@dataclass(frozen=True)
class EngineLimits:
    """What the engine may use.

    Attributes:
        waiting: requests that wait for a slot.
        prefill: tokens of prompts that one sequence reads in a step.
        draft: tokens of a draft.
        draft_bytes: of the arguments of a call that is drafted, in canonical form: its text is searched for.
        draft_wait_s: seconds that a step waits for new drafts; one that takes longer is used later, or not.
        resident_turns: turns that one request may answer from the tool cache.
        cache: of the tool cache.
    """

    waiting: int = 256
    prefill: int = 256
    draft: int = 256
    draft_bytes: int = 4 << 10
    draft_wait_s: float = 0.05
    resident_turns: int = 32
    cache: CacheLimits = field(default_factory=CacheLimits)


@dataclass
class EngineCounts:
    """What was done, over all requests."""

    requests: int = 0
    steps: int = 0
    prefill_tokens: int = 0  # of prompts and outputs
    prefill_avoided: int = 0  # tokens of contexts that did not have to be read again, as sequences stayed
    prefix_tokens: int = 0  # tokens of prompts that a free slot held already
    decoded_tokens: int = 0
    calls: int = 0
    call_tokens: int = 0
    call_passes: int = 0  # passes of the model in which those were decoded
    drafts: int = 0
    drafted_tokens: int = 0
    accepted_tokens: int = 0
    resident_turns: int = 0
    abandoned: int = 0


@dataclass(frozen=True)
class Step:
    """Tokens that came in one pass, and what they settled of the turn: text, names and arguments of calls."""

    tokens: tuple[int, ...]
    said: tuple[Said, ...]


@dataclass(frozen=True)
class TurnEnd:
    """A turn of a sequence.

    Attributes:
        tokens: all of the turn, its end included.
        content: its text outside of calls.
        calls: its calls.
        outputs: of each call, where all came from the tool cache and the sequence stays; else nothing.
        reason: "stop", "tool_calls" or "length"; "resident" where the sequence stays.
    """

    tokens: tuple[int, ...]
    content: str
    calls: tuple[Call, ...]
    outputs: tuple[str, ...]
    reason: str


Event = Step | TurnEnd
Sought = tuple[Guess | None, list[int]]
"""A text that may come, None if it cannot any more, and the tokens of it that are not yet said."""
Continue = Callable[[Sequence[Call], Sequence[str]], list[int]]


class Running:
    """A running request."""

    def __init__(
        self, id: str, prompt: list[int], entry: str, sampling: Sampling, after: Continue | None, user: str
    ) -> None:
        self.id, self.entry, self.sampling, self.after, self.user = id, entry, sampling, after, user
        self.tokens = prompt  # prompt, and all that was decoded and appended
        self.given = len(prompt)  # up to here the last prompt or outputs go
        self.decoded = 0
        self.read = 0  # tokens that are in the slot
        self.slot = -1
        self.resident_turns = 0
        self.events: asyncio.Queue[Event | BaseException | None] = asyncio.Queue()
        self.dice = np.random.default_rng(sampling.seed)
        self.draft: list[int] = []
        self.abandoned = False

    @property
    def left(self) -> int:
        """Tokens that may still be decoded."""
        return self.sampling.max_tokens - self.decoded

    @property
    def given_tokens(self) -> int:
        """Tokens of the sequence that were not decoded: the prompt, and outputs that were appended."""
        return len(self.tokens) - self.decoded

    def begin_turn(self, matcher: Matcher, reader: Reader) -> None:
        """A turn begins after the tokens so far."""
        self.turn = len(self.tokens)
        self.matcher, self.reader = matcher, reader
        self.call: tuple[int, str] | None = None  # number and tool of the open call, once they are settled
        self.inside = False  # a call
        self.drafted = -1  # the call that a draft was sought for
        self.guess: Guess | None = None  # the text of that draft, while it may still come
        self.sought: asyncio.Future[Sought] | None = None  # the draft of that call
        self.sought_from = 0  # tokens before that draft


class Engine:
    """Runs requests on a model.

    Args:
        model: the model.
        bundle: the constraint of every request.
        encode: text to tokens, delimiters as their tokens; for drafts.
        limits: what may be used.
        drafts: whether calls are drafted.
        resident: whether outputs of the tool cache are appended.
        prefix_cache: whether a request may begin with what an ended one left in its slot.
    """

    def __init__(
        self,
        model: Model,
        bundle: Bundle,
        encode: Encode,
        limits: EngineLimits | None = None,
        drafts: bool = True,
        resident: bool = True,
        prefix_cache: bool = True,
    ) -> None:
        self.encoding = str((bundle.meta.get("arguments") or {}).get("encoding", "json"))
        if self.encoding not in ENCODINGS:
            raise SpeculateError(
                "calls of this protocol cannot be read back",
                place=bundle.name,
                found=f"arguments as {self.encoding!r}",
                expected=", ".join(ENCODINGS),
            )
        self.model, self.bundle, self.encode = model, bundle, encode
        self.limits = limits or EngineLimits()
        self.drafts, self.resident, self.prefix_cache = drafts, resident, prefix_cache
        self.rules = Rules.from_bundle(bundle)
        self._rest = RestOfCall(bundle, encode)
        self._readers: dict[str, Reader] = {}
        self.ends = frozenset(int(token) for token in bundle.tables.end_of_turn_tokens)
        self.counts = EngineCounts()
        self.outputs = OutputCache(self.limits.cache, lambda: asyncio.get_running_loop().time())
        self._mask = np.zeros(bundle.vocab.words, np.uint32)
        self._free = list(range(model.slots))  # those that were free longest come first
        self._held: dict[int, list[int]] = {}  # by free slot, the tokens of which it holds keys and values
        self._waiting: deque[Running] = deque()
        self._running: list[Running] = []
        self._loop: asyncio.Task[None] | None = None
        self._threads = ThreadPoolExecutor(1, "toolc-engine")
        self._writers = ThreadPoolExecutor(2, "toolc-draft")

    # ------------------------------------------------------------ requests

    @property
    def active(self) -> int:
        """Requests that run or wait."""
        return len(self._running) + len(self._waiting)

    def submit(
        self,
        prompt: Sequence[int],
        entry: str = "start",
        sampling: Sampling | None = None,
        after: Continue | None = None,
        user: str = "",
    ) -> Running:
        """Begin a request; its events come from `events`.

        Args:
            prompt: tokens.
            entry: of the bundle.
            sampling: how tokens are chosen.
            after: tokens that follow a turn whose calls have these outputs, up to where the next turn begins; None: the
                sequence never stays.
            user: whose outputs it may use.
        """
        sampling = sampling or Sampling()
        if len(self._waiting) >= self.limits.waiting:
            raise SpeculateError("the engine is full", found=f"{len(self._waiting)} requests that wait")
        if not prompt or len(prompt) >= self.model.capacity:
            raise SpeculateError(
                "the prompt does not fit", found=f"{len(prompt)} tokens", expected=f"1 to {self.model.capacity - 1}"
            )
        id = "chatcmpl-" + secrets.token_hex(16)
        one = Running(id, list(prompt), entry, sampling, after, user)
        one.begin_turn(*self._fresh(entry))
        self.outputs.open(id)
        self.counts.requests += 1
        self._waiting.append(one)
        if self._loop is None or self._loop.done():
            self._loop = asyncio.get_running_loop().create_task(self._run())
        return one

    def _fresh(self, entry: str) -> tuple[Matcher, Reader]:
        """What follows a turn from its beginning."""
        if entry not in self._readers:
            self._readers[entry] = Reader(self.bundle, entry)
        return Matcher(self.bundle, entry), self._readers[entry].fork()

    async def events(self, one: Running) -> AsyncGenerator[Event, None]:
        """Tokens as they are decoded, and the ends of turns; a request whose events are no longer read is abandoned."""
        try:
            while (event := await one.events.get()) is not None:
                if isinstance(event, BaseException):
                    raise event
                yield event
        finally:
            one.abandoned = True

    def cache_output(
        self,
        request: str,
        user: str,
        name: str,
        arguments: dict[str, Any] | None,
        output: str,
        keep_alive_s: float,
        key: CallKey | None = None,
    ) -> None:
        """Keep the output of a call for a request of this user.

        Args:
            request, user: whose.
            name, arguments: the call; None: any call of the tool.
            output: its output.
            keep_alive_s: seconds that it may be used.
            key: of the call (`key`), where it was made in a thread.

        Raises:
            SpeculateError: no such request of this user, an unknown or unmarked tool, no room.
        """
        self._check_running(request, user)
        key = key or self.key(request, user, name, arguments)
        if not self.rules[name].early:
            raise SpeculateError("this tool may not be run early", found=repr(name), hint="mark it read-only")
        self.outputs.put(request, key, arguments, output, keep_alive_s)

    def key(self, request: str, user: str, name: str, arguments: Mapping[str, Any] | None) -> CallKey:
        """The key under which the output of a call is kept; its time grows with the arguments."""
        return self.rules.key(Scope(request, user), name, arguments)

    def _check_running(self, request: str, user: str) -> None:
        if not any(one.id == request and one.user == user for one in (*self._running, *self._waiting)):
            raise SpeculateError("no such request is running", found=repr(request))

    async def aclose(self) -> None:
        """Abandon every request, and stop."""
        for one in (*self._running, *self._waiting):
            one.abandoned = True
        if self._loop is not None:
            await asyncio.wait([self._loop])

    # ------------------------------------------------------------ the loop

    async def _run(self) -> None:
        while self._running or self._waiting:
            try:
                self._drop_abandoned()
                while self._waiting and self._free:
                    one = self._waiting.popleft()
                    self._enter(one)
                if self._running:
                    await self._step()
            except Exception as error:  # a broken step ends its requests, and each is told
                for one in (*self._running, *self._waiting):
                    one.events.put_nowait(error)
                    one.abandoned = True

    def _enter(self, one: Running) -> None:
        """Give a request the free slot that holds the longest beginning of its prompt; its last token is read again."""
        held = [_common(self._held.get(slot, []), one.tokens[:-1]) for slot in self._free]
        best = held.index(max(held))
        one.slot, one.read = self._free.pop(best), held[best]
        self._held.pop(one.slot, None)
        self.counts.prefix_tokens += one.read
        self._running.append(one)

    def _drop_abandoned(self) -> None:
        for one in [one for one in (*self._running, *self._waiting) if one.abandoned]:
            self.counts.abandoned += 1
            self._end(one)

    def _end(self, one: Running) -> None:
        """A request has ended: its slot and its outputs are free."""
        if one in self._running:
            self._running.remove(one)
            self._free.append(one.slot)
            if self.prefix_cache:
                self._held[one.slot] = one.tokens[: one.read]
        else:
            self._waiting.remove(one)
        self.outputs.close(one.id)
        one.events.put_nowait(None)

    async def _step(self) -> None:
        from .causal import Feed

        self.counts.steps += 1
        batch = list(self._running)
        await self._seek_drafts(batch)
        feeds = []
        for one in batch:
            if len(one.tokens) - one.read > 1:  # a prompt, or outputs that were appended
                piece = one.tokens[one.read : one.read + self.limits.prefill]
                feeds.append(Feed(one.slot, one.read, piece, int(one.read + len(piece) == len(one.tokens))))
            else:
                one.draft = self._draft(one)
                feeds.append(Feed(one.slot, one.read, [one.tokens[-1], *one.draft], 1 + len(one.draft)))
        logits = await self.model.forward(feeds)
        taken = await asyncio.get_running_loop().run_in_executor(self._threads, self._take_all, batch, feeds, logits)
        for one, (events, reason) in taken:
            for event in events:
                one.events.put_nowait(event)
            if reason:
                try:
                    await self._end_turn(one, reason)
                except ToolcError as error:
                    one.events.put_nowait(error)
                    one.abandoned = True

    def _take_all(
        self, batch: Sequence[Running], feeds: Sequence[Feed], logits: Sequence[np.ndarray]
    ) -> list[tuple[Running, tuple[list[Event | BaseException], str]]]:
        """Take the logits of a pass; what is to be told of each request, and why its turn has ended, if it has."""
        out = []
        for one, feed, rows in zip(batch, feeds, logits, strict=True):
            if one.abandoned:
                continue
            new = len(feed.tokens) - len(one.draft)
            self.counts.prefill_tokens += max(0, min(one.read + new, one.given) - one.read)
            if not feed.keep:
                one.read += new
                continue
            try:
                out.append((one, self._take(one, rows)))
            except ToolcError as error:  # what this request made of its text is nobody else's matter
                out.append((one, ([error], "")))
                one.abandoned = True
        return out

    def _take(self, one: Running, rows: np.ndarray) -> tuple[list[Event | BaseException], str]:
        """Verify the draft, if any, and read the tokens that come of it."""
        draft, one.draft = one.draft, []
        count, token = verify(self._distributions(one, draft, rows), draft, one.dice)
        tokens = [*draft[:count], token]
        said = [self._read(one, each) for each in tokens]
        one.tokens += tokens
        one.read = len(one.tokens) - 1
        one.decoded += len(tokens)
        self.counts.decoded_tokens += len(tokens)
        self.counts.drafts += bool(draft)
        self.counts.drafted_tokens += len(draft)
        self.counts.accepted_tokens += count
        self.counts.call_passes += one.inside or any(event.kind == "end" for events in said for event in events)
        events: list[Event | BaseException] = [Step(tuple(tokens), tuple(event for events in said for event in events))]
        reason = "stop" if token in self.ends else ""
        if not reason and (one.left <= 0 or len(one.tokens) >= self.model.capacity):
            reason = "length"
        if reason and (rest := self._follow(one, one.reader.finish(), 0)):
            events.append(Step((), tuple(rest)))
        return events, reason

    def _distributions(self, one: Running, draft: list[int], rows: np.ndarray) -> list[Distribution]:
        """Those before each draft token and after the last; they end where the draft leaves the grammar."""
        matcher = one.matcher.fork() if draft else one.matcher
        out = []
        for n, logits in enumerate(rows):
            matcher.fill(self._mask)
            out.append(distribution(logits[: self.bundle.vocab.size], self._mask, one.sampling.temperature))
            if n < len(draft) and not matcher.try_advance(draft[n]):
                out.append(out[-1])  # this token has probability 0: verifying stops at it
                break
        return out

    # ------------------------------------------------------------ calls

    def _read(self, one: Running, token: int) -> list[Said]:
        one.matcher.advance(token)
        return self._follow(one, one.reader.feed(token), 1)

    def _follow(self, one: Running, said: list[Said], tokens: int) -> list[Said]:
        """Follow where calls begin and end, and count the tokens in which they do."""
        was_inside = one.inside
        for event in said:
            if event.kind == "call":
                one.inside = was_inside = True
            elif event.kind == "name":
                one.call = event.number, event.text
            elif event.kind == "end":
                one.inside, one.call = False, None
                self.counts.calls += 1
        self.counts.call_tokens += tokens * was_inside
        return said

    async def _seek_drafts(self, batch: Sequence[Running]) -> None:
        """Begin to draft where a tool is settled and an output for a call of it is there; wait a little for these."""
        if not self.drafts:
            return
        new = []
        for one in batch:
            work = self._seek(one)
            if work is not None:
                one.sought_from = len(one.tokens)
                one.sought = asyncio.get_running_loop().run_in_executor(self._writers, work)
                new.append(one.sought)
        if new:
            await asyncio.wait(new, timeout=self.limits.draft_wait_s)

    def _seek(self, one: Running) -> Callable[[], Sought] | None:
        """What finds a draft of the call that is open, in a thread; None where there is none to be found."""
        if one.abandoned or one.call is None:
            return None
        if one.drafted == one.call[0]:
            if one.guess is None or one.sought is not None:
                return None
            # a draft ended before the call did: the text may be the same, and cut into other tokens
            return partial(_next_draft, one.guess, one.tokens[one.guess.position :])
        entry = self.outputs.latest(one.id, one.call[1])
        if entry is None or entry.arguments is None:
            return None
        one.drafted, one.guess, one.sought = one.call[0], None, None
        if entry.argument_bytes > self.limits.draft_bytes:
            return None
        return partial(self._first_draft, one.reader.fork(), len(one.tokens), entry.name, entry.arguments)

    def _first_draft(self, reader: Reader, position: int, name: str, arguments: Mapping[str, Any]) -> Sought:
        text = self._rest.text(reader, name, arguments)
        return _next_draft(Guess(position, reader.data, text, self._rest), ())

    def _draft(self, one: Running) -> list[int]:
        """The draft that was sought, where it is there and what was decoded in the meantime is its beginning."""
        if one.sought is None or not one.sought.done():
            return []
        (one.guess, draft), one.sought = one.sought.result(), None
        since = one.tokens[one.sought_from :]
        if draft[: len(since)] != since or one.call is None or one.drafted != one.call[0]:
            return []
        room = min(self.limits.draft, one.left - 1, self.model.capacity - len(one.tokens) - 1)
        return draft[len(since) :][: max(0, room)]

    async def _end_turn(self, one: Running, reason: str) -> None:
        """Answer the calls from the tool cache and stay, or hand the turn to the client."""
        tokens = tuple(one.tokens[one.turn :])
        content, calls = one.reader.text, tuple(one.reader.calls) if reason == "stop" else ()
        appended, outputs = await self._answers(one, calls)
        if appended:
            self.counts.resident_turns += 1
            self.counts.prefill_avoided += one.read
            one.events.put_nowait(TurnEnd(tokens, content, calls, outputs, "resident"))
            one.tokens += appended
            one.given = len(one.tokens)
            one.resident_turns += 1
            one.begin_turn(*self._fresh(one.entry))
            return
        one.events.put_nowait(TurnEnd(tokens, content, calls, (), "tool_calls" if calls else reason))
        self._end(one)

    async def _answers(self, one: Running, calls: Sequence[Call]) -> tuple[list[int], tuple[str, ...]]:
        """What is appended, and the outputs in it; nothing if the sequence is not to stay."""
        asked = one.sampling.resident_turns
        most = self.limits.resident_turns if asked is None else min(asked, self.limits.resident_turns)
        if not self.resident or one.after is None or not calls or one.resident_turns >= most or one.left <= 0:
            return [], ()
        loop, found = asyncio.get_running_loop(), []
        try:
            keys = await loop.run_in_executor(self._threads, self._keys, one, calls)
        except SpeculateError:
            return [], ()  # arguments without a canonical form are in no cache
        for key in keys:
            entry = self.outputs.find(one.id, key)
            if entry is None:
                return [], ()
            found.append(entry.output)
        appended = await loop.run_in_executor(self._threads, one.after, calls, found)
        fits = len(one.tokens) + len(appended) < self.model.capacity - 1
        return (appended, tuple(found)) if fits else ([], ())

    def _keys(self, one: Running, calls: Sequence[Call]) -> list[CallKey]:
        return [self.key(one.id, one.user, call.name, call.arguments) for call in calls]


def _next_draft(guess: Guess, said: Sequence[int]) -> Sought:
    draft = list(guess.after(said))
    return (guess if draft else None), draft


def _common(held: Sequence[int], tokens: Sequence[int]) -> int:
    """How many tokens two sequences have in common from their beginning."""
    size = min(len(held), len(tokens))
    differ = np.flatnonzero(np.asarray(held[:size]) != np.asarray(tokens[:size]))
    return int(differ[0]) if differ.size else size
