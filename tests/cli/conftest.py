"""Running ``toolc`` in an empty folder, in this process or in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

Toolc = Callable[..., "subprocess.CompletedProcess[str]"]
_PLAIN = {"NO_COLOR": "1", "COLUMNS": "200"}


@pytest.fixture
def toolc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolc:
    """``toolc(*arguments, stdin=None)`` in ``tmp_path``, without the second that a process takes to begin."""
    from toolc.compiler.cli import cli

    def run(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        words = [*map(str, arguments)]
        done = CliRunner(env=_PLAIN).invoke(cli, words, input=stdin, prog_name="toolc", catch_exceptions=False)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Toolc:
    """The same in a process of its own, as users start it."""

    def run(*arguments: str | Path, stdin: bytes | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "toolc.compiler.cli", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, env={**os.environ, **_PLAIN}, input=stdin, capture_output=True)
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")
        )

    return run
