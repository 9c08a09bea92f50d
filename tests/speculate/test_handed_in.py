"""Entries of a request to the tool cache: each is read, or refused with its place."""

from __future__ import annotations

from typing import Any

import pytest

from toolc.runtime.speculate.errors import SpeculateError
from toolc.runtime.speculate.handed_in import Bad, as_text, read_entries, told
from toolc.runtime.speculate.keys import Scope
from toolc.runtime.speculate.outputs import CacheLimits, OutputCache
from toolc.runtime.speculate.rules import Rules, ToolRule

GOOD = {"name": "look", "params": {"place": "Bern"}, "output": "42"}


@pytest.mark.parametrize(
    ("output", "text"), [("a", "a"), ("", ""), (1, "1"), (None, "null"), ({"ä": [1.5]}, '{"ä": [1.5]}'), ([], "[]")]
)
def test_any_json_is_an_output(output: Any, text: str) -> None:
    (entry,), bad = read_entries([{**GOOD, "output": output}])
    assert (entry.output, bad) == (text, [])


def test_what_is_no_json_is_none() -> None:
    with pytest.raises(SpeculateError, match="no JSON"):
        as_text(float("nan"))


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"name": 1}, "1/name"),
        ({"params": []}, "1/params"),
        ({"keep_alive": -1}, "1/keep_alive"),
        ({"keep_alive": True}, "1/keep_alive"),
        ({"more": 1}, "1"),
        (None, "1/output"),
        ("text", "1"),
    ],
    ids=str,
)
def test_a_bad_entry_is_named_and_the_others_are_read(change: Any, param: str) -> None:
    one: Any = {**GOOD, **change} if isinstance(change, dict) else {"name": "look"} if change is None else change
    entries, (bad,) = read_entries([GOOD, one, {**GOOD, "params": None}])
    assert [(entry.number, entry.arguments) for entry in entries] == [(0, {"place": "Bern"}), (2, None)]
    assert (bad.number, bad.param) == (1, param)


def test_what_is_told() -> None:
    assert told([0, 2], [Bad(1, "why", "1/name")]) == {
        "cached": 2,
        "taken": [0, 2],
        "refused": [{"entry": 1, "message": "why", "param": "1/name"}],
    }


def test_the_output_of_this_very_call_comes_before_that_of_any() -> None:
    rules = Rules([ToolRule("look", True), ToolRule("send", True)])
    now = 0.0
    cache = OutputCache(CacheLimits(), lambda: now)
    cache.open("r")
    bern, basel = ({"place": place} for place in ("Bern", "Basel"))
    for arguments, output, seconds in ((None, "any", 60), (bern, "Bern", 30)):
        cache.put("r", rules.key(Scope(), "look", arguments), arguments, output, seconds)

    def found(name: str, arguments: dict[str, Any]) -> str | None:
        entry = cache.find("r", rules.key(Scope(), name, arguments))
        return entry and entry.output

    assert (found("look", bern), found("look", basel), found("send", bern)) == ("Bern", "any", None)
    latest = cache.latest("r", "look")
    assert latest is not None and latest.arguments == bern  # a draft needs arguments
    now = 40.0
    assert (found("look", bern), cache.latest("r", "look")) == ("any", None)
