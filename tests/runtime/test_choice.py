"""What requests ask of serving engines: bundles by name, some of their tools, budgets."""

from __future__ import annotations

import pytest

from toolc.compiler import compile_tools
from toolc.runtime import BundleError, DecodeError, Matcher, subset
from toolc.runtime.adapters.choice import SUBSETS, Choice, Shelf

from .handmade import bundle


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    folder = tmp_path_factory.mktemp("bundles")
    compile_tools("tools_specs/weather.json").bundle.write(folder / "weather.toolc", standalone=True)
    bundle("counted").write(folder / "counted.toolc", standalone=True)
    return Shelf(str(folder))


def asked(shelf: Shelf, **arguments: object) -> Choice:
    found = shelf.choose({"other": 1, **{"toolc_" + key: value for key, value in arguments.items()}})
    assert found is not None
    return found


def test_some_of_the_tools(shelf: Shelf) -> None:
    whole = asked(shelf, bundle="weather").bundle
    choice = asked(shelf, bundle="weather", tools="weather_forecast, current_weather", entry="required")
    same = asked(shelf, bundle="weather.toolc", tools=["current_weather", "weather_forecast"])
    assert choice.bundle is same.bundle and choice.bundle is not whole and choice.entry == "required"
    assert [tool["name"] for tool in choice.bundle.tools] == ["current_weather", "weather_forecast"]
    for source, fine in ((whole, True), (choice.bundle, False)):
        matcher = Matcher(source, "required")
        for text in (b'{"name": "weather_', b"stations"):
            read = matcher.advance_bytes(text)
        assert (read > 0) == fine
    assert asked(shelf, bundle="weather", tools=[str(tool["name"]) for tool in whole.tools]).bundle is whole


def test_choices_of_tools_are_kept_up_to_a_number(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SUBSETS > 1
    monkeypatch.setattr("toolc.runtime.adapters.choice.SUBSETS", 1)
    first = asked(shelf, bundle="weather", tools="weather_forecast").bundle
    assert asked(shelf, bundle="weather", tools="weather_forecast").bundle is first
    asked(shelf, bundle="weather", tools="current_weather")
    assert asked(shelf, bundle="weather", tools="weather_forecast").bundle is not first


def test_budgets(shelf: Shelf) -> None:
    free = asked(shelf, bundle="counted")
    need = free.bundle.min_tokens["start"]
    assert need == 3
    assert [free.within(most) for most in (None, 2, 3, 50)] == [None, None, 3, 50]
    stated = asked(shelf, bundle="counted", budget="20")
    assert [stated.within(most) for most in (None, 2, 3, 50)] == [20, None, 3, 20]
    assert asked(shelf, bundle="counted", budget=0).within(50) is None


def test_too_few_tokens_are_refused_and_not_ignored(shelf: Shelf) -> None:
    given = {"toolc_bundle": "counted"}
    assert shelf.choose(given, most=3) and shelf.choose({**given, "toolc_budget": 0}, most=2)
    cut = shelf.choose({**given, "toolc_cut": 1}, most=2)
    assert cut is not None and [cut.within(most) for most in (2, 3)] == [None, 3]
    with pytest.raises(DecodeError, match=r"too few tokens.*found max_tokens 2, expected at least 3"):
        shelf.choose(given, most=2)


def test_a_context_that_is_too_short_is_logged(shelf: Shelf, caplog: pytest.LogCaptureFixture) -> None:
    free = asked(shelf, bundle="counted")
    assert free.within(3) == 3 and not caplog.records
    assert free.within(2) is None
    assert "2 tokens are left, and 3 are needed" in caplog.text


def test_an_engine_has_one_tokenizer(shelf: Shelf) -> None:
    own, other = asked(shelf, bundle="weather").bundle, asked(shelf, bundle="counted").bundle
    serving = Shelf()
    serving.admit(own)
    serving.admit(subset(own, ["weather_forecast"]))
    with pytest.raises(DecodeError, match="another tokenizer"):
        serving.admit(other)
    serving.admit(own)


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", "a" * 300, "é" * 200, "nothing", "a\0b", "\udcff"])
def test_names_that_are_no_bundles(shelf: Shelf, name: str) -> None:
    with pytest.raises(BundleError, match=r"no name of a bundle|no such bundle"):
        shelf.open(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"toolc_tools": "a"}, "names no bundle"),
        ({"toolc_bundle": 3}, "toolc_bundle is no text"),
        ({"toolc_bundle": "counted", "toolc_entry": None}, "toolc_entry is no text"),
        ({"toolc_bundle": "weather", "toolc_tools": "weather"}, "no such tool"),
        ({"toolc_bundle": "weather", "toolc_tools": []}, "no tools selected"),
        ({"toolc_bundle": "weather", "toolc_tools": [1]}, "are no names"),
        ({"toolc_bundle": "weather", "toolc_tools": {}}, "are no names"),
        ({"toolc_bundle": "counted", "toolc_budget": 2}, "expected at least 3"),
        ({"toolc_bundle": "counted", "toolc_budget": True}, "toolc_budget is no number"),
        ({"toolc_bundle": "counted", "toolc_budget": "many"}, "toolc_budget is no number"),
        ({"toolc_bundle": "counted", "toolc_limit": 3}, "no such argument"),
    ],
)
def test_refused(shelf: Shelf, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        shelf.choose(arguments)
