"""``toolc speculate``: what it prints is what the equations say."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from toolc.compiler.cli import cli
from toolc.runtime.speculate.equations import ClientSide, EngineSide

FIGURES = ["--main-s", "2", "--guess-s", "0.5", "--tool-s", "1.5", "--hit-rate", "0.8", "--turns", "4"]
ENGINE = ["--prefill-rate", "8000", "--decode-rate", "100", "--prompt", "400", "--reasoning", "150"]


def call(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["speculate", *arguments])
    return done.exit_code, done.output


def test_json(tmp_path: Path) -> None:
    plot = tmp_path / "curves.svg"
    engine = [*ENGINE, "--call", "30", "--output", "60", "--overhead-s", "0.2"]
    prices = ["--main-price", "10", "--guess-price", "1", "--tool-price", "2", "--samples", "3"]
    code, text = call(*FIGURES, *engine, *prices, "--plot", str(plot), "--json")
    assert code == 0
    found = json.loads(text)
    client = ClientSide(2, 0.5, 1.5, 0.8, 4)
    assert found["pays"] is True and found["saved"] == client.saved and found["speedup"] == client.speedup
    assert found["price_per_turn"] == {"standard": 12.0, "speculative": pytest.approx(10 + 3 + (1.4 + 0.2) * 2)}
    # the result is there when the turn ends, and so too late for drafts
    side = EngineSide(0.2, 8000, 100, 400, 150, 30, 60, 4, 1.5, 0.8, 0.0)
    assert found["engine"]["speculative_s"] == side.speculative_s
    drawn = ElementTree.parse(plot).getroot()
    assert len(drawn.findall("{*}polyline")) == 2 * 5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--turns", "0"], "there are no turns"),
        (["--turns", "1"], "s for 1 turn\n"),
        (["--tool-s", "0"], "no tool time"),
        (["--hit-rate", "0"], "no guess is ever right"),
        (["--guess-s", "2"], "not there before"),
        ([], "yes"),
    ],
    ids=["turns", "one turn", "tool", "hits", "late", "pays"],
)
def test_verdict(more: list[str], words: str) -> None:
    code, text = call(*FIGURES, *more)
    assert code == 0
    assert words in "\n".join(map(str.rstrip, text.splitlines())) + "\n"


@pytest.mark.parametrize("guess_s", ["2", "2.5", "1e6"])
def test_a_guess_that_is_late_costs_no_time(guess_s: str, tmp_path: Path) -> None:
    """It is cancelled when the answer is there; nothing is run on it, so no call is paid twice."""
    prices = ["--main-price", "10", "--guess-price", "1", "--tool-price", "2", "--samples", "3"]
    engine = [*ENGINE, "--call", "30", "--output", "60"]
    given = [*FIGURES, "--guess-s", guess_s, *prices, *engine]
    found = json.loads(call(*given, "--json", "--plot", str(tmp_path / "curves.svg"))[1])
    assert (found["pays"], found["saved"], found["speedup"]) == (False, 0.0, 1.0)
    assert found["speculative_s"] == found["standard_s"]
    assert found["price_per_turn"] == {"standard": 12.0, "speculative": 15.0}
    assert found["engine"]["resident_s"] == pytest.approx(found["engine"]["vanilla_s"])
    assert found["engine"]["prefill_tokens_avoided"] == 0
    text = call(*given)[1]
    assert "0.0% saved" in text and "most is saved" not in text


@pytest.mark.parametrize(("tool_s", "cached", "drafted"), [("0.1", 0.8, 0.8), ("1.4", 0.8, 0.24), ("1.6", 0, 0)])
def test_the_engine_has_only_results_that_are_there(tool_s: str, cached: float, drafted: float) -> None:
    """The model writes its call from 1.667 s to 2 s; the result is there 0.5 s and the tool's time after it began."""
    engine = [*ENGINE, "--call", "30", "--output", "60"]
    found = json.loads(call(*FIGURES, "--tool-s", tool_s, *engine, "--json")[1])["engine"]
    side = EngineSide(0, 8000, 100, 400, 150, 30, 60, 4, float(tool_s), cached, drafted)
    assert found["resident_s"] == pytest.approx(side.resident_s)
    assert found["speculative_s"] == pytest.approx(side.speculative_s)


def test_wrong_figures() -> None:
    assert call(*FIGURES, "--hit-rate", "1.2")[0] == 3
    code, text = call(*FIGURES, "--main-price", "nan")
    assert code == 3 and "an invalid value; found nan, expected a finite number" in text
    assert call(*FIGURES, *ENGINE)[0] == 2
