"""A few seconds of benchmarks/store.py."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="stores under URLs need fsspec")

from benchmarks.store import run


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_processes_that_are_killed_leave_sound_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / "vocabs"))
    for seconds in (3.0, 10.0, 40.0):  # a busy machine may not come to everything at first
        result = run(tmp_path, seconds, 4)
        assert result["wrong"] == []
        if all(result[what] for what in ("killed", "get", "load", "push", "prune")):
            return
    raise AssertionError(result)
