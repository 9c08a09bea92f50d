"""The environment of the engines: downloads that fail are tried again, and told from what is wrong here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from . import environment


@pytest.mark.parametrize(
    ("fails", "reachable", "outcome"),
    [(0, True, True), (2, True, True), (99, False, False), (99, True, RuntimeError)],
    ids=["at once", "after a while", "no index", "no such package"],
)
def test_tries(
    fails: int,
    reachable: bool,
    outcome: bool | type[Exception],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tried = []

    def pip(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        if environment.PROBE in arguments:
            return subprocess.CompletedProcess(arguments, int(not reachable), "", "")
        tried.append(arguments)
        return subprocess.CompletedProcess(arguments, int(len(tried) <= fails), "", "no route to the index")

    monkeypatch.setattr(environment, "_pip", pip)
    monkeypatch.setattr(environment, "ABSENT", tmp_path / "absent")
    monkeypatch.setattr(environment, "WAIT_S", 0)
    (tmp_path / "absent").write_text("of an earlier time")
    if isinstance(outcome, bool):
        assert environment.pip("install", "x") is outcome
    else:
        with pytest.raises(outcome, match="the index can be reached"):
            environment.pip("install", "x")
    assert len(tried) == min(fails + 1, environment.TRIES)
    assert (tmp_path / "absent").exists() is (outcome is False)
    if outcome is False:
        assert "no route to the index" in (tmp_path / "absent").read_text()
    assert capsys.readouterr().err.count("no route to the index") == min(fails, environment.TRIES)
