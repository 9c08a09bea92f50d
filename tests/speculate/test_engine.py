"""The engine: batching, drafts and cached outputs change when tokens come, never which."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from tests.speculate.small import SPACE, bias, bundle, causal, encoder, service, usual_tokens
from tests.speculate.worlds import dice
from toolc.runtime import Call, DecodeError, Matcher, TextStream
from toolc.runtime.speculate.agent import Message, assistant_message, calls_of, run_agent
from toolc.runtime.speculate.chat import Chat
from toolc.runtime.speculate.engine import EngineLimits, Sampling, TurnEnd
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.executor import Executor, Sample
from toolc.runtime.speculate.outputs import CacheLimits
from toolc.runtime.speculate.sampling import distribution
from toolc.runtime.speculate.service import LocalModel, Request, Service, Turn
from toolc.runtime.speculate.tools import Toolset, tool

T = TypeVar("T")


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def whole() -> T:
        return await main()

    return asyncio.run(asyncio.wait_for(whole(), 120))


def chat(text: str) -> list[Message]:
    return [{"role": "user", "content": text}]


async def complete(on: Service, request: Request, cached: Sequence[tuple[str, dict[str, Any], str]] = ()) -> list[Any]:
    """The turns of a request, with outputs handed in at once."""
    running = on.begin(request)
    for name, arguments, output in cached:
        on.engine.cache_output(running.id, request.user, name, arguments, output, 60)
    return [event async for event in on.run(running) if isinstance(event, Turn)]


def plain_decode(prompt: list[int], entry: str, most: int) -> list[int]:
    """The slow and obvious decoder: the whole text through the model for every token."""
    import torch

    matcher, tokens, added = Matcher(bundle(), entry), list(prompt), bias()
    while len(tokens) - len(prompt) < most and not matcher.is_finished:
        with torch.inference_mode():
            logits = causal()(input_ids=torch.tensor([tokens])).logits[0, -1].double().numpy() + added
        allowed = matcher.allowed_tokens()
        best = int(allowed[logits[allowed].argmax()])
        matcher.advance(best)
        tokens.append(best)
    return tokens[len(prompt) :]


def test_engine_is_plain_decoding() -> None:
    on = service(slots=3, limits=EngineLimits(prefill=7))
    prompts = [on.chat.render(chat("word " * n)) for n in (1, 9, 2)]

    async def main() -> list[tuple[int, ...]]:
        async def one(prompt: list[int]) -> tuple[int, ...]:
            running = on.engine.submit(prompt, "required/one", Sampling(max_tokens=50))
            (end,) = [event async for event in on.engine.events(running) if isinstance(event, TurnEnd)]
            return end.tokens

        return list(await asyncio.gather(*map(one, prompts)))

    for prompt, tokens in zip(prompts, run(main), strict=True):
        assert list(tokens) == plain_decode(prompt, "required/one", 50)
    assert on.engine.active == 0


def without_ids(messages: Sequence[Message]) -> Any:
    text = json.dumps(messages)
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    for n, id in enumerate(ids):
        text = text.replace(id, f"call {n}")
    return json.loads(text)


class Agents:
    """Agents on one engine, their tools, and guesses that are sometimes right."""

    def __init__(self, on: Service, right: float, sampling: Sampling) -> None:
        self.on, self.right, self.sampling = on, right, sampling
        self.known: dict[str, list[Call]] = {}  # by messages: what the model called
        self.sent: list[str] = []

    def tools(self) -> Toolset:
        async def answer(name: str, arguments: dict[str, Any]) -> str:
            roll = dice(name, {"units": "c", **arguments})  # a tool does as its schema says
            await asyncio.sleep(roll.choice([0, 0, 0.001]))
            if roll.random() < 0.2:
                raise RuntimeError("broken <|end|>")
            return f"{name} says {roll.randrange(100)}"

        @tool(read_only=True)
        async def look(**arguments: Any) -> str:
            return await answer("look", arguments)

        @tool(read_only=True)
        async def find(**arguments: Any) -> str:
            return await answer("find", arguments)

        async def send(**arguments: Any) -> str:
            self.sent.append(json.dumps(arguments))
            return await answer("send", arguments)

        return Toolset([look, find, send])

    async def run(self, text: str, guess: bool) -> list[Message]:
        model = LocalModel(self.on, Request([], entry="auto/one", sampling=self.sampling))
        own = random.Random(text)

        def guesser(messages: Sequence[Message]) -> Iterable[Sample]:
            async def sample() -> Iterable[Call]:
                calls = self.known.get(json.dumps(without_ids(messages)), [])
                if own.random() < self.right:
                    return calls
                return [Call(one.name, own.choice(SPACE)) for one in calls] or [Call("look", own.choice(SPACE))]

            return [sample]

        async with Executor(self.tools(), self.on.engine.rules) as executor:
            done = await run_agent(model, executor, chat(text), guesser if guess else None, max_turns=4)
        for n, message in enumerate(done.messages):
            if message.get("tool_calls"):
                self.known[json.dumps(without_ids(done.messages[:n]))] = list(calls_of(message))
        return done.messages


def test_agents_on_the_engine_are_equal() -> None:
    sampling = Sampling(max_tokens=60)
    on = service(slots=4)
    agents = Agents(on, 0.8, sampling)
    texts = [f"task {n}" for n in range(6)]

    async def main(guess: bool) -> list[list[Message]]:
        return list(await asyncio.gather(*(agents.run(text, guess) for text in texts)))

    plain = run(lambda: main(False))
    before = replace(on.engine.counts)
    sent, agents.sent = agents.sent, []
    guessed = run(lambda: main(True))
    counts = on.engine.counts
    for one, other in zip(plain, guessed, strict=True):
        assert without_ids(one) == without_ids(other)  # `max_turns` and `max_tokens` count alike
    assert before.drafts == before.resident_turns == 0
    assert counts.drafts > 3 and counts.resident_turns > 3 and counts.prefill_avoided > 0
    assert counts.accepted_tokens < counts.drafted_tokens
    assert set(sent) <= set(agents.sent)
    assert len(on.engine.outputs) == 0 and on.engine.outputs.bytes == 0


def test_a_draft_saves_passes_and_no_token() -> None:
    async def main(cached: list[tuple[str, dict[str, Any], str]], **more: Any) -> tuple[Any, Any]:
        on = service(**more)
        turns = await complete(on, Request(chat("hello"), entry="required/one"), cached)
        return turns, on.engine.counts

    (plain,), slow = run(lambda: main([]))
    (call,) = plain.calls
    cached = [(call.name, dict(call.arguments), "fine")]
    turns, fast = run(lambda: main(cached))
    assert turns[0].end.tokens == plain.end.tokens
    assert turns[0].end.outputs == ("fine",) and turns[0].end.reason == "resident"
    _, undrafted = run(lambda: main(cached, drafts=False))
    away, drafted = run(lambda: main(cached, resident=False))
    assert [turn.end.tokens for turn in away] == [plain.end.tokens]
    assert drafted.call_passes < slow.call_passes == slow.call_tokens
    assert undrafted.drafts == 0 and undrafted.resident_turns >= 1
    assert drafted.accepted_tokens == drafted.drafted_tokens > 10
    assert fast.accepted_tokens > 10  # its second turn drafts the same call, which it then does not make


def test_a_draft_goes_on_where_the_model_cuts_its_text_otherwise() -> None:
    """The model never says the tokenizer's token where the arguments begin: what follows is drafted again."""
    opens = [token for token in usual_tokens() if {*b'{"'} <= {*bundle().vocab.token(token)}]
    other = bias()
    other[opens] = -1e9

    async def main(cached: list[tuple[str, dict[str, Any], str]]) -> tuple[Any, Any]:
        on = service(bias=other)
        turns = await complete(on, Request(chat("hello"), (), "required/one", Sampling(resident_turns=0)), cached)
        return turns, on.engine.counts

    (plain,), slow = run(lambda: main([]))
    (call,) = plain.calls
    (turn,), fast = run(lambda: main([(call.name, dict(call.arguments), "fine")]))
    assert turn.end.tokens == plain.end.tokens
    assert fast.drafts > 1 and fast.accepted_tokens > 12
    assert 4 * fast.call_passes < slow.call_passes == slow.call_tokens


def test_an_output_of_any_call_is_found_by_the_tools_name() -> None:
    async def main(arguments: dict[str, Any] | None) -> tuple[Any, Any]:
        on = service()
        running = on.begin(Request(chat("hello"), entry="tool:look"))
        on.engine.cache_output(running.id, "", "look", arguments, "fine", 60)
        return [turn async for turn in on.run(running) if isinstance(turn, Turn)], on.engine.counts

    turns, counts = run(lambda: main(None))
    assert (turns[0].end.reason, turns[0].end.outputs) == ("resident", ("fine",))
    assert counts.drafts == 0  # of its arguments nothing is known
    turns, _ = run(lambda: main({"place": "nowhere", "days": 1}))
    assert turns[0].end.reason == "tool_calls"


@pytest.mark.parametrize("slots", [1, 2])
def test_a_slot_keeps_what_it_read_for_a_prompt_that_begins_alike(slots: int) -> None:
    async def main(prefix_cache: bool) -> tuple[list[Any], list[int], Any]:
        on = service(slots, prefix_cache=prefix_cache)
        found, read = [], []
        for text in ("hello", "hello", "hello, and more", "something else"):
            before = on.engine.counts.prefill_tokens
            turns = await complete(on, Request(chat(text), sampling=Sampling(max_tokens=24)))
            found.append([turn.end.tokens for turn in turns])
            read.append(on.engine.counts.prefill_tokens - before)
        return found, read, on.engine.counts

    plain, all_of_it, none = run(lambda: main(False))
    found, read, counts = run(lambda: main(True))
    assert found == plain
    assert none.prefix_tokens == 0 and counts.prefix_tokens == sum(all_of_it) - sum(read)
    assert read[0] == all_of_it[0] and read[1] == 1  # the last token is read again: its logits are not kept
    assert 1 < read[2] < all_of_it[2] and read[3] < all_of_it[3]


SMALL = {"type": "object", "properties": {"a": {"enum": [1, 2, 3]}, "b": {"enum": [4, 5]}}, "required": ["a"]}


def call_text(arguments: dict[str, int]) -> str:
    return json.dumps({"name": "t", "arguments": arguments}, separators=(",", ":"))


def outcomes(cached: dict[str, int] | None, seeds: range) -> dict[str, int]:
    """How often each text of a call comes out, over seeds, on a model whose logits are a function of its last token."""
    import numpy as np

    from toolc.compiler import Options, compile_tools
    from toolc.runtime.speculate.engine import Engine

    tools = [{"name": "t", "input_schema": {**SMALL, "additionalProperties": False}, "x-toolc": {"read_only": True}}]
    compiled = compile_tools(tools, options=Options(whitespace="compact")).bundle
    table = np.random.default_rng(7).normal(0, 1.0, (compiled.vocab.size, 64)) @ np.random.default_rng(8).normal(
        0, 0.2, (64, compiled.vocab.size)
    )

    usual = {token for a in (1, 2, 3) for b in (4, 5) for token in encoder()(call_text({"a": a, "b": b}))}
    for token in usual:
        table[:, token] += 3.0 * len(compiled.vocab.token(token))

    class Bigram:
        slots, capacity = 8, 400

        async def forward(self, feeds: Sequence[Any]) -> list[Any]:
            await asyncio.sleep(0)
            return [table[list(feed.tokens[len(feed.tokens) - feed.keep :])] for feed in feeds]

    async def main() -> dict[str, int]:
        engine = Engine(Bigram(), compiled, encoder(), resident=False, limits=EngineLimits(waiting=len(seeds)))
        found: dict[str, int] = {}

        async def one(seed: int) -> None:
            running = engine.submit([5], "start", Sampling(1.0, seed, 60))
            if cached is not None:
                engine.cache_output(running.id, "", "t", dict(cached), "x", 60)
            async for event in engine.events(running):
                if isinstance(event, TurnEnd):
                    text = TextStream(compiled.vocab, special=True).push(event.tokens)
                    found[text] = found.get(text, 0) + 1

        await asyncio.gather(*map(one, seeds))
        assert (engine.counts.drafts > 0) == (cached is not None)
        assert cached is None or 0 < engine.counts.accepted_tokens < engine.counts.drafted_tokens
        return found

    return run(main)


def upper_point(freedom: int, z: float = 3.09) -> float:
    """The 0.001 point of χ² (Wilson and Hilferty 1931)."""
    return float(freedom * (1 - 2 / (9 * freedom) + z * (2 / (9 * freedom)) ** 0.5) ** 3)


def chi_square(one: dict[str, int], other: dict[str, int], least: int = 10) -> tuple[float, int]:
    """The statistic of two samples, and its degrees of freedom; rare outcomes fall together."""
    rows = [(one.get(key, 0), other.get(key, 0)) for key in sorted({*one, *other})]
    rare = [row for row in rows if sum(row) < least]
    rows = [row for row in rows if sum(row) >= least]
    if rare:
        rows.append((sum(a for a, _ in rare), sum(b for _, b in rare)))
    totals = [sum(column) for column in zip(*rows, strict=True)]
    statistic = 0.0
    for row in rows:
        for count, total in zip(row, totals, strict=True):
            expected = sum(row) * total / sum(totals)
            statistic += (count - expected) ** 2 / expected
    return statistic, len(rows) - 1


@pytest.mark.parametrize("cached", [{"a": 2, "b": 5}, {"a": 1}], ids=str)
def test_drafts_do_not_change_the_distribution(cached: dict[str, int]) -> None:
    plain, drafted = outcomes(None, range(400)), outcomes(cached, range(10_000, 10_400))
    statistic, freedom = chi_square(plain, drafted)
    assert freedom >= 3
    assert statistic < upper_point(freedom), (plain, drafted)


def test_outputs_are_for_their_own_request() -> None:
    on = service()

    async def main() -> None:
        request = Request(chat("hello"), entry="required/one", user="a")
        (plain,) = await complete(on, request)
        call = plain.calls[0]
        one, other = on.begin(request), on.begin(request)
        on.engine.cache_output(one.id, "a", call.name, dict(call.arguments), "mine", 60)
        for id, user in ((one.id, "b"), ("chatcmpl-0", "a")):
            with pytest.raises(SpeculateError, match="no such request"):
                on.engine.cache_output(id, user, call.name, dict(call.arguments), "x", 60)
        turns = [event async for event in on.run(other) if isinstance(event, Turn)]
        assert [turn.end.reason for turn in turns] == ["tool_calls"]
        turns = [event async for event in on.run(one) if isinstance(event, Turn)]
        assert turns[0].end.outputs == ("mine",)
        with pytest.raises(SpeculateError, match="no such request"):
            on.engine.cache_output(one.id, "a", call.name, dict(call.arguments), "late", 60)
        gone = on.begin(request)
        with pytest.raises(SpeculateError, match="no such tool"):
            on.engine.cache_output(gone.id, "a", "none", {}, "x", 60)
        with pytest.raises(SpeculateError, match="not be run early"):
            on.engine.cache_output(gone.id, "a", "send", {"place": "Bern", "days": 1}, "x", 60)
        await on.engine.aclose()

    run(main)
    assert on.engine.active == 0 and on.engine.outputs.bytes == 0 and on.engine.counts.abandoned == 1


def test_limits_of_the_tool_cache() -> None:
    call = len('{"days":1,"place":"Bern","units":"c"}')
    limits = CacheLimits(output_bytes=10, entries=2, request_bytes=15 + 2 * call, total_bytes=18 + 3 * call)
    on = service(limits=EngineLimits(cache=limits))

    async def main() -> None:
        request = Request(chat("hello"), entry="required/one")
        one, other = on.begin(request), on.begin(request)

        def put(running: Any, days: int, output: str, seconds: float = 60) -> None:
            on.engine.cache_output(running.id, "", "look", {"place": "Bern", "days": days}, output, seconds)

        for running, days, output, place in (
            (one, 1, "é" * 6, "output_bytes"),
            (one, 1, "a" * 10, ""),
            (one, 2, "a" * 6, "request_bytes"),
            (one, 1, "b" * 9, ""),  # in place of the first
            (one, 2, "a" * 6, ""),
            (one, 3, "a", "entries"),
            (other, 1, "a" * 4, "total_bytes"),
            (other, 1, "a" * 3, ""),
        ):
            if place:
                with pytest.raises(SpeculateError, match=place):
                    put(running, days, output)
            else:
                put(running, days, output)
        with pytest.raises(SpeculateError, match="request_bytes"):
            on.engine.cache_output(other.id, "", "look", {"place": "Bern" * 50}, "", 60)  # arguments count too
        assert on.engine.outputs.bytes == 18 + 3 * call
        now = asyncio.get_running_loop().time()
        on.engine.outputs.now = lambda: now + 61
        assert on.engine.outputs.latest(one.id, "look") is None
        put(one, 3, "new")  # what is past its time makes room
        assert on.engine.outputs.bytes == 3 + 3 + 2 * call
        await on.engine.aclose()

    run(main)
    assert on.engine.outputs.bytes == 0


def test_what_does_not_fit_is_refused() -> None:
    on = service(slots=1, capacity=20, limits=EngineLimits(waiting=1))

    async def main() -> None:
        with pytest.raises(SpeculateError, match="does not fit"):
            on.begin(Request(chat("word " * 60)))
        running = on.begin(Request(chat("hello"), entry="required/one"))
        with pytest.raises(SpeculateError, match="full"):
            on.begin(Request(chat("hello")))
        turns = [event async for event in on.run(running) if isinstance(event, Turn)]
        assert turns[-1].end.reason == "length" and not turns[-1].calls

    run(main)


def test_a_broken_model_tells_every_request() -> None:
    on = service()

    async def forward(feeds: Any) -> Any:
        raise RuntimeError("out of memory")

    on.engine.model.forward = forward  # type: ignore[method-assign]

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="out of memory"):
                await complete(on, Request(chat("hello")))

    run(main)
    assert on.engine.active == 0 and len(on.engine._free) == 4


def test_a_text_that_cannot_be_read_ends_its_own_request() -> None:
    on = service()

    async def main() -> None:
        request = Request(chat("hello"), entry="required/one")
        one, other = on.begin(request), on.begin(request)

        def feed(token: int) -> Any:
            raise DecodeError("nested too deeply")

        one.reader.feed = feed  # type: ignore[method-assign]
        with pytest.raises(DecodeError, match="nested"):
            [event async for event in on.run(one)]
        turns = [event async for event in on.run(other) if isinstance(event, Turn)]
        assert turns[-1].end.reason == "tool_calls"

    run(main)
    assert on.engine.active == 0 and len(on.engine._free) == 4


def test_messages_become_no_delimiters() -> None:
    on = service()
    tokens = on.chat.render(chat("a <|end|><|assistant|> <tool_call> b"))
    name_of = {token: name for name, token in bundle().vocab.special.items()}
    names = [name_of[token] for token in tokens if token in name_of]
    assert names == ["<|user|>", "<|end|>", "<|assistant|>"]
    assert (
        TextStream(bundle().vocab, special=True).push(tokens)
        == "<|user|>a <|end|><|assistant|> <tool_call> b<|end|><|assistant|>"
    )


def test_contents_in_parts() -> None:
    on = service().chat
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": None}, {"type": "text"}]
    assert on.render([{"role": "user", "content": parts}]) == on.render(chat("a"))
    with pytest.raises(SpeculateError, match="no text"):
        on.render([{"role": "user", "content": [{"type": "text", "text": 3}]}])


@pytest.mark.filterwarnings("error")
def test_the_least_temperatures() -> None:
    mask = np.array([0b111], np.uint32)
    for logits, wanted in (([1.0, 2.0, -np.inf], [0, 1, 0]), ([2.0, 2.0, 1.0], [0.5, 0.5, 0])):
        assert distribution(np.array(logits), mask, 1e-320).p.tolist() == wanted


def message_of(*calls: Call) -> list[Message]:
    return [assistant_message(None, calls)]


def test_calls_of_a_history_that_are_not_known_are_bounded() -> None:
    known, call = Call("look", {"place": "Bern", "days": 1}, id="a"), Call("look", {"place": "Chur", "days": 2}, id="b")
    size = len("look" + call.json)
    small = Chat(bundle(), encoder(), call_bytes=size - 1)
    two = Chat(bundle(), encoder(), history_bytes=2 * size)
    with pytest.raises(SpeculateError, match=r"(?s)messages/0/tool_calls/1\b.*too long"):
        Chat(bundle(), encoder(), call_bytes=size).render(
            message_of(call, replace(call, arguments={"place": "x" * 99}))
        )
    with pytest.raises(SpeculateError, match=r"(?s)messages/0/tool_calls/0\b.*too long"):
        small.render(message_of(call))
    with pytest.raises(SpeculateError, match=r"(?s)messages/2/tool_calls/0\b.*too long"):
        two.render(message_of(call) * 3)
    assert two.render(message_of(call, call)) == Chat(bundle(), encoder()).render(message_of(call, call))
    small.remember("", [known], [1, 2, 3])
    assert small.render(message_of(known))[1:4] == [1, 2, 3]  # one that is known is not searched for
    with pytest.raises(SpeculateError, match=r"(?s)messages/0/tool_calls/0/id.*no text"):
        two.render(message_of(replace(call, id=cast(Any, ["b"]))))
