"""The simulation of the real code is what the equations say, on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.speculate.small import SPACE, bundle, encoder
from toolc.runtime.speculate.equations import BOUND, ClientSide, EngineSide
from toolc.runtime.speculate.simulator import (
    EngineSetting,
    Guesses,
    Rates,
    Result,
    Task,
    fixed,
    simulate_client,
    simulate_engine,
)

TURNS = 50
CLOSE = 0.02


@pytest.mark.parametrize("hit_rate", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.9, 1.2])
def test_client_side(hit_rate: float, share: float) -> None:
    main_s = 2.0
    tasks = [Task(tuple(("t", {"n": n}) for n in range(TURNS)))]
    for tool_s in (0.0, 0.5, 2.0, 6.0):
        plain = simulate_client(tasks, fixed(main_s), fixed(tool_s))
        guesses = Guesses([hit_rate], fixed(share * main_s))
        spec = simulate_client(tasks, fixed(main_s), fixed(tool_s), guesses)
        hidden = spec.hits if share < 1 else hit_rate  # a guess that comes late is no hit; nor does it cost
        setting = ClientSide(main_s, share * main_s, tool_s, hidden, TURNS)
        assert plain.mean_s == pytest.approx(setting.standard_s, rel=1e-9)
        assert spec.mean_s == pytest.approx(setting.speculative_s, rel=CLOSE)
        assert plain.mean_s / spec.mean_s <= BOUND
        if share < 1:
            assert spec.hits == pytest.approx(hit_rate, abs=0.2)


def test_more_samples_hit_more() -> None:
    tasks = [Task(tuple(("t", {"n": n}) for n in range(TURNS)))]
    guesses = Guesses([0.5, 0.7, 0.9], fixed(0.5))
    hits = [simulate_client(tasks, fixed(2), fixed(1), guesses, samples).hits for samples in (1, 2, 3)]
    assert hits == pytest.approx([0.5, 0.7, 0.9], abs=0.2)


def engine_tasks(agents: int, turns: int) -> Sequence[Task]:
    plain = [one for one in SPACE if "units" not in one]  # a tool of numbers does not know its schema's defaults
    return [Task(tuple(("look", plain[(n + k) % len(plain)]) for k in range(turns))) for n in range(agents)]


@pytest.mark.parametrize("prompt", [100, 400])
@pytest.mark.parametrize("tool_s", [0.0, 0.4])
def test_engine_side(prompt: int, tool_s: float) -> None:
    turns, reasoning, output = 4, 60, 24
    tasks = engine_tasks(1, turns)
    rates = Rates(4000, 100, overhead_s=0.1)

    def run(drafts: bool, resident: bool, guesses: Guesses | None) -> Result:
        setting = EngineSetting(rates, prompt, reasoning, output, 4, drafts, resident)
        return simulate_engine(tasks, bundle(), encoder(), setting, fixed(tool_s), guesses)

    guesses = Guesses([1.0], fixed(0.05))
    vanilla, away = run(False, False, None), run(False, False, guesses)
    cached, drafted = run(False, True, guesses), run(True, True, guesses)
    call = vanilla.extra["decoded_tokens"] / turns - reasoning  # what is around it, and the ends of turns, too
    read = output + 6  # the text of an output has a few tokens of its own, and so do the delimiters
    hits = cached.extra["resident_turns"] / turns
    assert hits == 1 and drafted.extra["drafts"] == turns
    share = drafted.extra["accepted_tokens"] / (call * turns)
    assert 0.5 < share < 1  # what comes before the name is decoded
    setting = EngineSide(0.1, 4000, 100, prompt, reasoning, round(call), read, turns, tool_s, hits, share)
    assert vanilla.mean_s == pytest.approx(setting.vanilla_s, rel=CLOSE)
    assert away.mean_s == pytest.approx(setting.vanilla_s - turns * tool_s, rel=CLOSE)
    assert cached.mean_s == pytest.approx(setting.resident_s, rel=CLOSE)
    assert drafted.mean_s == pytest.approx(setting.speculative_s, rel=CLOSE)
    assert cached.extra["prefill_avoided"] == pytest.approx(setting.prefill_avoided, rel=0.1)
    for one in (away, cached, drafted):
        assert [m["content"] for m in one.transcripts[0].messages] == [
            m["content"] for m in vanilla.transcripts[0].messages
        ]


@pytest.mark.parametrize("tool_s", [0.0, 0.4])
def test_engine_side_with_a_prefix_cache(tool_s: float) -> None:
    """Coming back costs the overhead and what is new; staying saves just the overhead and the tool."""
    turns, prompt, reasoning, output, rates = 4, 400, 60, 24, Rates(4000, 100, overhead_s=0.1)
    tasks = engine_tasks(1, turns)

    def run(resident: bool, guesses: Guesses | None) -> Result:
        setting = EngineSetting(rates, prompt, reasoning, output, 4, False, resident, prefix_cache=True)
        return simulate_engine(tasks, bundle(), encoder(), setting, fixed(tool_s), guesses)

    vanilla, cached = run(False, None), run(True, Guesses([1.0], fixed(0.05)))
    call = round(vanilla.extra["decoded_tokens"] / turns - reasoning)
    setting = EngineSide(0.1, 4000, 100, prompt, reasoning, call, output + 6, turns, tool_s, prefix_cache=True)
    assert vanilla.mean_s == pytest.approx(setting.vanilla_s, rel=CLOSE)
    assert cached.mean_s == pytest.approx(setting.resident_s, rel=CLOSE)
    without = replace(setting, prefix_cache=False).vanilla_s
    assert setting.vanilla_s < (1 - 2 * CLOSE) * without
    assert vanilla.extra["prefix_tokens"] > turns * prompt


@pytest.mark.parametrize("protocol", ["json", "pythonic", "qwen3_coder", "gemma4", "toolkengpt"])
def test_calls_are_drafted_in_every_protocol(protocol: str) -> None:
    tasks, held = engine_tasks(2, 3), bundle(protocol)
    if "auto/one" not in held.entry:
        held = bundle("llama3")
    rates = Rates(4000, 100)

    def run(resident: bool, guesses: Guesses | None) -> Result:
        return simulate_engine(
            tasks, held, encoder(), EngineSetting(rates, 40, 0, 12, 4, resident, resident), fixed(0.01), guesses
        )

    plain, drafted = run(False, None), run(True, Guesses([1.0], fixed(0.01)))
    for one, other in zip(plain.transcripts, drafted.transcripts, strict=True):
        assert [m["content"] for m in one.messages] == [m["content"] for m in other.messages]
    calls = plain.extra["calls"]
    assert calls == drafted.extra["calls"] == 6 and drafted.extra["drafts"] >= 3
    # a draft that begins inside of a name may be cut into other tokens
    assert 0 < 0.5 * drafted.extra["drafted_tokens"] <= drafted.extra["accepted_tokens"]
    assert drafted.extra["call_passes"] < plain.extra["call_passes"] == plain.extra["call_tokens"]
