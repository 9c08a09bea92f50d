"""The equations: Lemma 1, when it pays, and the engine side term by term."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from toolc.runtime.speculate.equations import BOUND, ClientSide, EngineSide, PaperEngine, Price, Turn
from toolc.runtime.speculate.errors import SpeculateError

SECONDS = st.floats(0, 1e4)
SHARE = st.floats(0, 1)
CLIENT = st.builds(ClientSide, SECONDS, SECONDS, SECONDS, SHARE, st.integers(0, 100))
TOKENS = st.integers(0, 2000)
RATE = st.floats(1, 1e5)
ENGINE = st.builds(
    EngineSide, st.floats(0, 5), RATE, RATE, TOKENS, TOKENS, TOKENS, TOKENS, st.integers(0, 20), SECONDS, SHARE, SHARE,
    st.booleans(),
)  # fmt: skip
ULP = 1 + 1e-9


@given(CLIENT)
def test_lemma_1(setting: ClientSide) -> None:
    assert setting.speedup <= BOUND * ULP


@given(st.floats(1e-3, 1e3), SHARE, st.floats(0, 0.999))
def test_lemma_1_peaks_where_tool_and_model_meet(main: float, hits: float, share: float) -> None:
    setting = ClientSide(main, share * main, 0, hits, 3)
    best = replace(setting, tool_s=setting.best_tool_s)
    for tool in (0.0, 0.3 * main, best.tool_s * 0.9, best.tool_s * 1.1, main, 3 * main, 100 * main):
        assert replace(setting, tool_s=tool).saved <= best.saved + 1e-9


@given(CLIENT)
def test_the_bound_for_known_times_is_tighter_and_holds(setting: ClientSide) -> None:
    assert setting.speedup <= setting.bound * ULP
    assert setting.bound <= BOUND


@given(st.floats(1e-3, 1e3), st.floats(0, 0.999))
def test_the_bound_is_reached_where_the_tool_ends_with_the_model(main: float, share: float) -> None:
    best = ClientSide(main, share * main, main - share * main, 1.0)
    assert best.speedup == pytest.approx(best.bound)


def test_lemma_1_is_tight() -> None:
    assert ClientSide(1.0, 0.0, 1.0, 1.0).speedup == BOUND
    assert ClientSide(1.0, 1e-6, 1.0, 1.0).speedup == pytest.approx(BOUND, rel=1e-5)


@given(CLIENT)
def test_it_pays_exactly_if_a_hit_is_early_and_hides_something(setting: ClientSide) -> None:
    assume(setting.standard_s == 0 or abs(setting.speedup - 1) > 1e-9 or not setting.pays)
    if setting.pays:
        assert setting.hit_rate > 0 and setting.guess_s < setting.main_s and setting.tool_s > 0 and setting.turns
    if setting.guess_s >= setting.main_s or not setting.hit_rate:
        assert not setting.pays or setting.saved < 1e-9
    assert setting.saved >= -1e-9  # a guess that is late is cancelled


@given(CLIENT, SHARE)
def test_more_hits_never_cost_where_guesses_are_early(setting: ClientSide, other: float) -> None:
    low, high = sorted((setting.hit_rate, other))
    slower, faster = replace(setting, hit_rate=low), replace(setting, hit_rate=high)
    assert faster.speculative_s <= slower.speculative_s * ULP + 1e-9


@given(ENGINE)
def test_engine_side_order(setting: EngineSide) -> None:
    close = 1e-9 * (1 + setting.vanilla_s)
    assert setting.speculative_s <= setting.resident_s + close
    assert setting.resident_s <= setting.vanilla_s + close
    assert replace(setting, cached=0.0).resident_s == pytest.approx(setting.vanilla_s)


def test_engine_side_by_hand() -> None:
    # two turns: prompt 100, then 10 + 5 decoded and 20 read each
    setting = EngineSide(0.5, 1000, 100, 100, 10, 5, 20, 2, tool_s=3.0)
    assert setting.vanilla_s == pytest.approx((0.5 + 0.1) + (0.15 + 3 + 0.5 + 0.135) + (0.15 + 3 + 0.5 + 0.170))
    assert setting.resident_s == pytest.approx(0.6 + 2 * (0.15 + 0.02))
    assert setting.speculative_s == pytest.approx(0.6 + 2 * (0.10 + 0.005 + 0.02))
    assert setting.prefill_avoided == 115 + 150
    kept = replace(setting, prefix_cache=True)
    assert kept.vanilla_s == pytest.approx(0.6 + 2 * (0.15 + 3 + 0.5 + 0.02))
    assert kept.prefill_avoided == 0


def test_the_papers_equations_at_points_by_hand() -> None:
    turns = (Turn(reasoning=120, call=42, output=60, tool_s=1.0),) * 4
    setting = PaperEngine(0.05, 1 / 8000, 1 / 100, 600, turns, hit_rate=0.8)
    assert setting.contexts == [600, 702, 804, 906]
    assert setting.vanilla_s == pytest.approx(11.257, abs=5e-4)
    assert setting.cached_s == pytest.approx(11.006, abs=5e-4)
    assert setting.speculative_s == pytest.approx(6.174, abs=5e-4)
    # Turns that differ: 2 · 2 · 0.5 away, and tools of 3 and 1 s; contexts 100 and 127.
    uneven = PaperEngine(0.5, 0.001, 0.01, 100, (Turn(10, 7, 20, 3.0), Turn(5, 2, 1, 1.0)), hit_rate=0.25)
    assert uneven.vanilla_s == pytest.approx(2 + 4 + 0.227 + 0.24)
    assert uneven.cached_s == pytest.approx(2 + 4 + 0.130 + 0.24)
    assert uneven.speculative_s == pytest.approx(0.75 * 6 + 0.130 + 0.01 * (0.5 + 15 + 0.75 * 9))


TURNS = st.lists(st.builds(Turn, TOKENS, st.integers(1, 2000), TOKENS, SECONDS), max_size=6).map(tuple)


@given(st.builds(PaperEngine, st.floats(0, 5), st.floats(0, 1), st.floats(0, 1), TOKENS, TURNS, SHARE))
def test_the_papers_equations_keep_their_order(setting: PaperEngine) -> None:
    close = 1e-9 * (1 + setting.vanilla_s)
    assert replace(setting, hit_rate=0.0).speculative_s == pytest.approx(setting.cached_s)
    assert setting.speculative_s <= setting.cached_s + close
    if sum(setting.contexts) >= setting.prompt + sum(turn.call + turn.output for turn in setting.turns):
        assert setting.cached_s <= setting.vanilla_s + close


def test_price() -> None:
    price = Price(main=10, guess=1, tool=2)
    assert price.standard() == 12
    assert price.speculative(hit_rate=0.75, samples=3, distinct=2) == 10 + 3 + 2.25 * 2


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"main_s": -1}, "main_s"),
        ({"hit_rate": 1.5}, "hit_rate"),
        ({"tool_s": float("nan")}, "tool_s"),
        ({"tool_s": 1e308, "main_s": 1e308}, "take too long"),
        ({"turns": 1.5}, "turns"),
        ({"main_s": True}, "main_s"),
        ({"main_s": "x"}, "main_s"),
        ({"hit_rate": None}, "hit_rate"),
    ],
    ids=str,
)
def test_nonsense_is_refused(change: dict[str, Any], place: str) -> None:
    with pytest.raises(SpeculateError, match=place):
        ClientSide(**{"main_s": 1, "guess_s": 0.1, "tool_s": 1, "hit_rate": 0.5, **change})
