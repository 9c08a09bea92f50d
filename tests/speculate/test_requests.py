"""What requests ask for: how many turns and tokens, how guesses differ, which options they have, and which ways to ask
guess at all."""

from __future__ import annotations

import asyncio
import json
import logging
import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from tests.speculate.small import service
from tests.speculate.test_engine import chat, complete, run
from tests.speculate.test_server import CALL, FUNCTIONS, Server, post, server, tools
from toolc.runtime import Call
from toolc.runtime.speculate.agent import (
    LEAST_TEMPERATURE,
    ChatModel,
    Hooks,
    Message,
    Reply,
    assistant_message,
    guesses,
    run_agent,
    tool_message,
)
from toolc.runtime.speculate.clock import run_virtual
from toolc.runtime.speculate.engine import EngineLimits, Sampling
from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.executor import Executor, Limits
from toolc.runtime.speculate.openai import GUESSED, OpenAIModel, SpeculativeOpenAI, _Warns
from toolc.runtime.speculate.service import LocalModel, Request
from toolc.runtime.speculate.tools import Output, Toolset

__all__ = ["server"]  # a fixture

ASK: Any = chat("hello")
ONE = {"entry": "required/one"}


# ---------------------------------------------------------------- turns and tokens


class Staying(ChatModel):
    """An engine that answers turns itself, as often as it may."""

    def __init__(self, own: int) -> None:
        self.own, self.calls, self.asked = own, 0, list[int | None]()

    async def reply(self, messages: Sequence[Message], hooks: Hooks | None = None) -> Reply:
        assert hooks is not None
        self.asked.append(hooks.resident_turns)
        resident: list[Message] = []
        for _ in range(min(self.own, hooks.resident_turns or 0)):
            call = self._call()
            resident += [assistant_message(None, [call]), tool_message(call, Output("x"))]
        call = self._call()
        return Reply(assistant_message(None, [call]), (call,), tuple(resident))

    def _call(self) -> Call:
        self.calls += 1
        return Call("look", {}, "{}", id=f"c{self.calls}")


@pytest.mark.parametrize(("most", "own"), [(8, 2), (8, 31), (1, 5), (3, 0), (0, 4)])
def test_an_agent_makes_no_more_turns_than_it_may(most: int, own: int) -> None:
    async def look() -> str:
        return "x"

    async def main() -> None:
        model = Staying(own)
        async with Executor(Toolset([look])) as executor:
            done = await run_agent(model, executor, ASK, max_turns=most)
        assert done.turns + done.resident_turns == model.calls == most
        assert sum(one["role"] == "tool" for one in done.messages) == most
        assert model.asked[:1] == [most - 1][:most]

    run_virtual(main)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_the_engine_answers_no_more_turns_than_it_is_asked_to(most: int) -> None:
    on = service()

    async def main() -> None:
        (plain,) = await complete(on, Request(ASK, **ONE))  # type: ignore[arg-type]
        handed = [(call.name, dict(call.arguments), "fine") for call in plain.calls]
        turns = await complete(on, Request(ASK, sampling=Sampling(resident_turns=most), **ONE), handed)  # type: ignore[arg-type]
        assert sum(turn.end.reason == "resident" for turn in turns) == min(most, 1)

    run(main)


def test_max_tokens_is_of_the_request() -> None:
    on = service(limits=EngineLimits())

    async def main() -> None:
        (plain,) = await complete(on, Request(ASK, **ONE))  # type: ignore[arg-type]
        first = len(plain.end.tokens)
        handed = [(call.name, dict(call.arguments), "fine") for call in plain.calls]
        for most in (first + 3, first + 1, first, first - 1):
            before = on.engine.counts.decoded_tokens
            sampling = Sampling(max_tokens=most)
            turns = await complete(on, Request(ASK, sampling=sampling, **ONE), handed)  # type: ignore[arg-type]
            assert on.engine.counts.decoded_tokens - before == sum(len(turn.end.tokens) for turn in turns) <= most
            resident = [turn.end.reason for turn in turns]
            assert resident == (
                ["resident", "length"] if most > first else ["length" if most < first else "tool_calls"]
            )

    run(main)


def test_an_answer_that_was_cut_by_the_turns_before_it_is_asked_for_again() -> None:
    """So the messages are those of a run in which every turn had all of `max_tokens` for itself."""
    on = service()

    async def main() -> None:
        (plain,) = await complete(on, Request(ASK, **ONE))  # type: ignore[arg-type]
        (call,) = plain.calls
        sampling = Sampling(max_tokens=len(plain.end.tokens) + 3)

        def guesser(messages: Sequence[Message]) -> list[Any]:
            async def sample() -> list[Call]:
                return [call]

            return [sample]

        found = []
        for guess in (None, guesser):
            model = LocalModel(on, Request([], sampling=sampling, **ONE))  # type: ignore[arg-type]
            async with Executor(tools(), on.engine.rules) as executor:
                done = await run_agent(model, executor, ASK, guess, max_turns=3)
            found.append([(one["role"], one["content"]) for one in done.messages])
        assert found[0] == found[1]

    run(main)


def test_prefills_are_all_given_tokens() -> None:
    for size in (1, 3, 7, 256):
        on = service(limits=EngineLimits(prefill=size))

        async def main(on: Any = on) -> None:
            prompt = on.chat.render(ASK)
            await complete(on, Request(ASK, sampling=Sampling(max_tokens=5), **ONE))  # type: ignore[arg-type]
            assert on.engine.counts.prefill_tokens == len(prompt)

        run(main)


def test_usage_counts_each_token_once(server: Server) -> None:
    async def main() -> None:
        client = server.client()
        plain = await client.chat.completions.create(model="toolc", messages=ASK, **CALL)
        assert plain.usage.prompt_tokens == len(server.service.chat.render(ASK, FUNCTIONS))
        (made,) = plain.choices[0].message.tool_calls
        handed = {"name": made.function.name, "params": json.loads(made.function.arguments), "output": "sunny"}
        more: Any = {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 200}
        id, usage, resident = "", None, 0
        async for chunk in await client.chat.completions.create(model="toolc", messages=ASK, **CALL, **more):
            if not id:
                id = chunk.id
                await post(client, id, [handed])
            resident += any("resident" in (one.delta.model_extra or {}) for one in chunk.choices)
            usage = chunk.usage or usage
        assert resident == 1 and usage is not None
        outputs = len(server.service.chat.after(["sunny"]))
        assert usage.prompt_tokens == plain.usage.prompt_tokens + outputs
        assert plain.usage.completion_tokens < usage.completion_tokens <= 200
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens

    asyncio.run(main())


# ---------------------------------------------------------------- samples


class Endpoint:
    """Answers with nothing, or refuses; keeps what it was asked."""

    def __init__(self, error: Exception | None = None, after: float = 0.0) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error, self.after = error, after
        self.chat = SimpleNamespace(completions=self)

    async def create(self, **given: Any) -> Any:
        self.asked.append(given)
        await asyncio.sleep(self.after)
        if self.error is not None:
            raise self.error
        message = SimpleNamespace(model_dump=dict, content="x", model_extra=None)
        return SimpleNamespace(id="A", choices=[SimpleNamespace(message=message, finish_reason="stop")])


def asked_by(samples: int, options: dict[str, Any] | None = None, **given: Any) -> tuple[dict[str, Any], list[Any]]:
    """What the main endpoint, and that of the guesses, are asked for a request."""
    main, small = Endpoint(after=1.0), Endpoint()

    async def ask() -> None:
        executor = Executor(Toolset({}), limits=Limits(samples=samples))
        client = SpeculativeOpenAI(main, small, executor, "small", options)  # type: ignore[arg-type]
        await client.chat.completions.create(model="m", messages=ASK, **{"tools": FUNCTIONS, **given})
        await client.aclose()

    run_virtual(ask)
    return main.asked[0], small.asked


@pytest.mark.parametrize("given", [{"temperature": 0}, {"seed": 3}, {"seed": 3, "temperature": 0.2}], ids=str)
@pytest.mark.parametrize("as_options", [False, True])
def test_samples_differ(given: dict[str, Any], as_options: bool) -> None:
    _, asked = asked_by(3, given if as_options else None, **({} if as_options else given))
    drawn = [(one.get("seed"), one.get("temperature")) for one in asked]
    assert drawn[0] == (given.get("seed"), given.get("temperature"))
    if "seed" in given:
        assert [seed for seed, _ in drawn] == [3, 4, 5]
    if "temperature" in given:
        assert [t for _, t in drawn[1:]] == [LEAST_TEMPERATURE] * 2
    assert len({repr(one) for one in drawn}) == (3 if "seed" in given else 2)


def test_a_temperature_that_is_high_stays() -> None:
    assert [one["temperature"] for one in asked_by(2, temperature=1.2)[1]] == [1.2, 1.2]
    assert "temperature" not in asked_by(2)[1][1]


def test_samples_of_models_differ() -> None:
    small = Endpoint()

    async def main() -> None:
        model = OpenAIModel(small, "small", {"seed": 2**63 - 1, "temperature": 0})  # type: ignore[arg-type]
        for sample in guesses(model, ASK, 3):
            await sample()

    run_virtual(main)
    assert [(one["seed"], one["temperature"]) for one in small.asked] == [
        (2**63 - 1, 0),
        (0, LEAST_TEMPERATURE),
        (1, LEAST_TEMPERATURE),
    ]
    local = LocalModel(service(), Request([], sampling=Sampling(0.0, 5)))
    drawn = [local.sample(number).request.sampling for number in range(3)]
    assert [(one.seed, one.temperature) for one in drawn] == [(5, 0.0), (6, LEAST_TEMPERATURE), (7, LEAST_TEMPERATURE)]


def test_only_options_that_make_sense_for_a_guess_go_along() -> None:
    own = {"store": True, "metadata": {"a": "b"}, "reasoning_effort": "low", "user": "u", "n": 2, "top_p": 0.5}
    own |= {"response_format": {"type": "text"}, "logprobs": True, "service_tier": "flex", "extra_body": {"x": 1}}
    shared = {"tool_choice": "auto", "parallel_tool_calls": False, "max_tokens": 9, "temperature": 1, "seed": 4}
    asked, (guessed,) = asked_by(1, **own, **shared, max_completion_tokens=openai.NotGiven())
    assert asked == {"model": "m", "messages": ASK, "tools": FUNCTIONS, **own, **shared} | {
        "max_completion_tokens": asked["max_completion_tokens"]
    }
    assert guessed == {"model": "small", "messages": ASK, "tools": FUNCTIONS, **shared}
    assert set(shared) | {"tools", "max_completion_tokens"} == set(GUESSED)
    assert asked_by(1, {"top_p": 0.9}, top_p=0.1)[1][0]["top_p"] == 0.9


@pytest.mark.parametrize("given", [{"tool_choice": "none"}, {"tools": []}, {"tools": None}], ids=str)
def test_nothing_is_guessed_where_no_tool_may_be_called(given: dict[str, Any]) -> None:
    assert asked_by(2, **given)[1] == []


def test_a_sample_that_fails_is_told(caplog: pytest.LogCaptureFixture) -> None:
    main, small = Endpoint(after=1.0), Endpoint(ValueError("there is no option 'seed' here"))

    async def ask() -> Executor:
        executor = Executor(Toolset({}), limits=Limits(samples=2))
        client = SpeculativeOpenAI(main, small, executor, "small")  # type: ignore[arg-type]
        for _ in range(3):
            await client.chat.completions.create(model="m", messages=ASK, tools=FUNCTIONS)
        return executor

    with caplog.at_level(logging.WARNING):
        executor, _ = run_virtual(ask)
    assert executor.counts.samples == executor.counts.sample_errors == 6
    assert "no option 'seed'" in executor.counts.last_sample_error
    assert [one.getMessage().count("no option 'seed'") for one in caplog.records if one.name.startswith("toolc")] == [1]


# ---------------------------------------------------------------- ways to ask


async def by_create(client: Any, asked: dict[str, Any]) -> Any:
    return await client.chat.completions.create(**asked)


async def by_parse(client: Any, asked: dict[str, Any]) -> Any:
    return await client.chat.completions.parse(**asked)


async def by_stream(client: Any, asked: dict[str, Any]) -> Any:
    async with client.chat.completions.stream(**asked) as stream:
        events = [event.type async for event in stream]
        assert "tool_calls.function.arguments.done" in events
        return await stream.get_final_completion()


async def by_raw(client: Any, asked: dict[str, Any]) -> Any:
    raw = await client.chat.completions.with_raw_response.create(**asked)
    assert raw.status_code == 200
    return raw.parse()


async def by_raw_parse(client: Any, asked: dict[str, Any]) -> Any:
    return (await client.chat.completions.with_raw_response.parse(**asked)).parse()


async def by_raw_stream(client: Any, asked: dict[str, Any]) -> Any:
    from openai.lib.streaming.chat import ChatCompletionStreamState

    state = ChatCompletionStreamState()
    raw = await client.chat.completions.with_raw_response.create(**asked, stream=True)
    assert raw.http_response.status_code == 200
    async for chunk in raw.parse():
        state.handle_chunk(chunk)
    return state.get_final_completion()


async def by_options(client: Any, asked: dict[str, Any]) -> Any:
    return await client.with_options(timeout=60).copy(max_retries=1).chat.completions.create(**asked)


WAYS = [by_create, by_parse, by_stream, by_raw, by_raw_parse, by_raw_stream, by_options]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_every_way_to_ask_guesses(server: Server, way: Callable[[Any, Any], Any]) -> None:
    strict = [{**one, "function": {**one["function"], "strict": True}} for one in FUNCTIONS]

    async def main() -> None:
        made = await server.client().chat.completions.create(model="toolc", messages=ASK, **{**CALL, "tools": strict})
        (call,) = made.choices[0].message.tool_calls

        class Known(Endpoint):
            async def create(self, **given: Any) -> Any:
                await super().create(**given)
                return made

        executor = Executor(tools(), server.service.engine.rules)
        client: Any = SpeculativeOpenAI(server.client(), Known(), executor, "toolc")  # type: ignore[arg-type]
        answer = await way(client, {"model": "toolc", "messages": ASK, **CALL, "tools": iter(strict)})
        assert answer.choices[0].message.tool_calls[0].function.name == call.function.name
        assert len(client._open) == 1 and executor.counts.samples == 1
        (output,) = await client.run(answer)
        assert output.text in ("sunny", "found", "sent")
        assert executor.counts.hits == (call.function.name != "send")
        assert not executor._turns
        await client.aclose()

    asyncio.run(main())


def test_a_stream_that_is_left_before_its_end_ends_its_turn(server: Server) -> None:
    async def main() -> None:
        executor = Executor(tools(), server.service.engine.rules)
        client: Any = SpeculativeOpenAI(server.client(), Endpoint(), executor, "toolc")  # type: ignore[arg-type]
        async with client.chat.completions.stream(model="toolc", messages=ASK, **CALL) as stream:
            await anext(aiter(stream))
        assert executor.counts.samples == 1 and not executor._turns and not client._open
        await client.aclose()

    asyncio.run(main())


def test_what_does_not_guess_says_so_once(server: Server) -> None:
    _Warns._told.clear()

    async def main() -> None:
        client: Any = SpeculativeOpenAI(server.client(), Endpoint(), Executor(tools()), "toolc")  # type: ignore[arg-type]
        asked = {"model": "toolc", "messages": ASK, **CALL}
        told = pytest.warns(UserWarning, match=r"no calls are guessed for client\.responses\.create")
        with told, pytest.raises(openai.BadRequestError, match="not kept here"):
            await client.responses.create(model="toolc", input="x", tools=FUNCTIONS, previous_response_id="R")
        with pytest.warns(UserWarning, match="with_streaming_response"):
            async with client.chat.completions.with_streaming_response.create(**asked) as raw:
                assert (await raw.parse()).choices[0].message.tool_calls
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(2):
                with pytest.raises(openai.BadRequestError, match="not kept here"):
                    await client.responses.create(model="toolc", input="x", tools=FUNCTIONS, conversation="c")
                assert (await client.responses.create(model="toolc", input="x", max_output_tokens=3)).id
        assert client.executor.counts.samples == 0
        await client.aclose()

    asyncio.run(main())


def test_a_client_that_waits_is_refused() -> None:
    waits: Any = openai.OpenAI(api_key="x")
    good: Any = openai.AsyncOpenAI(api_key="x")
    for main, small, place in ((waits, good, "main"), (good, waits, "guess")):
        with pytest.raises(SpeculateError, match=rf"(?s){place}.*OpenAI.*AsyncOpenAI"):
            SpeculativeOpenAI(main, small, Executor(Toolset({})), "small")

    async def ask() -> None:
        own: Any = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **_: "text")))
        client = SpeculativeOpenAI(own, own, Executor(Toolset({})), "small")
        with pytest.raises(SpeculateError, match="an awaitable"):
            await client.chat.completions.create(model="m", messages=ASK, tools=FUNCTIONS)
        assert not client.executor._turns
        await client.aclose()

    run_virtual(ask)
