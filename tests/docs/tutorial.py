"""Execute docs/tutorial.md: Python blocks in order in one namespace, each followed by what it prints.

A block ```python is run. If a block ```text follows, its content is what was printed. A block ```console runs `toolc`
commands, each followed by what the command prints. A block ```json is written to the file lamp.json before the next
block runs.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from toolc.compiler.cli import cli

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(json|python|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def _in_a_folder() -> Iterator[None]:
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def printed(text: str, names: dict[str, Any]) -> str:
    """Run Python code; what it prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, PAGE.name, "exec"), names)  # a test of our own file
    return out.getvalue()


def _console(text: str) -> str:
    """The block with the output of its commands made anew."""
    lines = []
    for command in re.findall(r"^\$ toolc (.*)$", text, re.MULTILINE):
        done = CliRunner().invoke(cli, command.split())
        assert done.exit_code == 0, done.output
        lines.append(f"$ toolc {command}\n{done.stdout}")
    return "".join(lines)


def executed(page: str) -> tuple[str, dict[str, Any]]:
    """The page with all output made anew, and the names that its code defines."""
    names: dict[str, Any] = {"__name__": PAGE.name}

    def block(found: re.Match[str]) -> str:
        kind, text, shown = found[1], found[2], found[3]
        if kind == "json":
            Path("lamp.json").write_text(text, encoding="utf-8")
        elif kind == "console":
            text = _console(text)
        else:
            shown_now = printed(text, names)
            assert (shown is None) == (not shown_now), f"a block ```text shows what this prints:\n{text}"
            shown = shown_now or None
        return f"```{kind}\n{text}```\n" + (f"\n```text\n{shown}```\n" if shown is not None else "")

    with _in_a_folder():
        return BLOCK.sub(block, page), names
