"""Running ``toolc`` in a process of its own, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Toolc = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def toolc(tmp_path: Path) -> Toolc:
    """``toolc(*arguments, stdin=None)`` in ``tmp_path``."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolc.compiler.cli", *map(str, arguments)]
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, input=stdin, capture_output=True)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")
        )

    return run
