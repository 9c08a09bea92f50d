"""The bundle says which guesses are valid, in whatever protocol it writes calls."""

from __future__ import annotations

import pytest

from tests.speculate.small import SPACE, bundle
from toolc.runtime import Call
from toolc.runtime.speculate.check import CallChecker


@pytest.mark.parametrize("protocol", ["hermes", "json", "llama3", "pythonic", "qwen3_coder", "gemma4"])
def test_the_bundle_checks_guesses(protocol: str) -> None:
    checker = CallChecker(bundle(protocol))
    for arguments in SPACE[::5]:
        assert checker.accepts(Call("look", arguments))
    for name, arguments in (
        ("none", SPACE[0]),
        ("look", {}),
        ("look", {"place": "Basel"}),
        ("look", {"place": "Basel", "days": 9}),
        ("look", {"place": "Basel", "days": 1, "more": 1}),
        ("look", {"place": 'Basel"}}', "days": 1}),
        ("look", {"place": "Basel\ud800", "days": 1}),
    ):
        assert not checker.accepts(Call(name, arguments))
    # not in the declared order: lost, not run; only Gemma's may also be sorted by name
    assert checker.accepts(Call("look", {"days": 1, "place": "Basel"})) is (protocol == "gemma4")
