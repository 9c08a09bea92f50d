"""Kept kernels are out of date when a constant that they read, or a kernel that they call, has changed elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OUTER = """
from toolc.runtime.jit.memory import kernel
import numbers_of
from numbers_of import FIRST, inner

@kernel()
def outer(x):
    return inner(x) + FIRST + numbers_of.SECOND

print(outer(1), sum(outer.stats.cache_hits.values()))
"""
NUMBERS = """
from toolc.runtime.jit.memory import kernel
FIRST, SECOND, THIRD = {}

@kernel()
def inner(x):
    return {}
"""


@pytest.mark.parametrize("change", ["first", "second", "called"])
def test_a_change_in_another_file_is_met(change: str, tmp_path: Path) -> None:
    (tmp_path / "outer.py").write_text(OUTER)
    numbers = tmp_path / "numbers_of.py"

    def run(values: tuple[int, int, int], body: str) -> tuple[int, int]:
        numbers.write_text(NUMBERS.format(values, body))
        path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
        env = {
            **os.environ,
            "PYTHONPATH": path,
            "NUMBA_CACHE_DIR": str(tmp_path / "kept"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [sys.executable, str(tmp_path / "outer.py")], capture_output=True, text=True, env=env, cwd=ROOT, check=True
        )
        value, hits = done.stdout.split()
        return int(value), int(hits)

    assert run((10, 20, 30), "x + THIRD") == (61, 0)
    assert run((10, 20, 30), "x + THIRD") == (61, 1)
    after = {
        "first": ((11, 20, 30), "x + THIRD"),
        "second": ((10, 21, 30), "x + THIRD"),
        "called": ((10, 20, 30), "THIRD + 2"),
    }
    assert run(*after[change]) == (62, 0)
