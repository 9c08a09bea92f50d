"""benchmarks/speculate_setting.py: what was fitted is what the file says, and a run without spread is equation 1."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.speculate_setting import Simulation, cost, told
from toolc.runtime.speculate.simulator import EngineSetting, Rates, fixed, simulate_engine

from .small import bundle, encoder
from .test_simulator import engine_tasks


@pytest.fixture
def given(repository: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((repository / "benchmarks" / "speculate_setting.json").read_text())
    return found


def without_spread(given: dict[str, Any], tasks: int = 4) -> Simulation:
    changed = copy.deepcopy(given)
    changed["assumed"] |= {"guess_deviation": 0.0, "tool_deviation": 0.0, "token_deviation": 0.0}
    changed["known"]["tasks"] = tasks
    return Simulation(changed)


def test_the_fit(given: dict[str, Any]) -> None:
    """6% at 0.5 s and at most 21%, by equation 1 with one call and a final answer."""
    whole, least = given["fitted"]["call_and_answer_s"], given["fitted"]["call_less_guess_s"]
    assert 0.8 * 0.5 / (whole + 0.5) == pytest.approx(0.06, abs=1e-4)
    assert 0.8 * least / (whole + least) == pytest.approx(0.21, abs=1e-4)
    assert sum(Simulation(given).tokens) == pytest.approx(whole * given["assumed"]["decode_rate"], abs=1)


@pytest.mark.parametrize(("tool_s", "rate"), [(0.5, 1.0), (1.5, 1.0), (3.0, 1.0), (1.5, 0.0)])
def test_a_run_is_equation_1(given: dict[str, Any], tool_s: float, rate: float) -> None:
    simulation = without_spread(given)
    shares, gained, hits = simulation.saved(1, tool_s, simulation.guesses("8B", 1, rate), 1, 2)
    gain = min(tool_s, given["fitted"]["call_less_guess_s"])
    whole = given["fitted"]["call_and_answer_s"]
    assert hits == rate
    assert shares == pytest.approx([rate * gain / (whole + tool_s)] * 2, abs=0.002)
    tokens = sum(simulation.tokens)
    assert gained == pytest.approx(tokens / (whole + tool_s - rate * gain) - tokens / (whole + tool_s), abs=0.3)


def test_agents_slow_each_other(given: dict[str, Any]) -> None:
    simulation = without_spread(given)
    (alone,), _, _ = simulation.run(1, 1.0, None, 0, 0)
    three, tokens, _ = simulation.run(3, 1.0, None, 0, 0)
    writing = 4 * given["fitted"]["call_and_answer_s"]
    assert tokens == 3 * 4 * sum(simulation.tokens)
    assert all(one == pytest.approx(alone + 2 * given["assumed"]["slowdown"] * writing, rel=0.01) for one in three)


def test_money(given: dict[str, Any]) -> None:
    """A guess of as many tokens costs a twenty-fifth of the turn; nine share the reading of the prompt."""
    lines = [line.split("|") for line in cost(without_spread(given, 2)).splitlines()[2:]]
    assert [line[6].strip() for line in (lines[0], lines[-1])] == ["+4%", "+29%"]


@pytest.mark.parametrize(
    ("shares", "text"), [([0.1], "10.0%"), ([0.1, 0.2], "15.0% ± 63.5"), ([0.1, 0.1, 0.1], "10.0% ± 0.0")]
)
def test_intervals(shares: list[float], text: str) -> None:
    assert told(shares) == text


def test_the_engine_writes_final_answers() -> None:
    def seconds(answer: int) -> float:
        setting = EngineSetting(Rates(4000, 100), 40, 0, 12, 1, answer=answer)
        return simulate_engine(engine_tasks(1, 1), bundle(), encoder(), setting, fixed(0.01)).mean_s

    assert seconds(50) - seconds(0) == pytest.approx(0.5, abs=0.01)
