"""Execute a page: Python blocks in order in one namespace, each followed by what it prints.

A block ```python is run. If a block ```text follows, its content is what was printed. A block ```console runs `toolc`
commands, each followed by what the command prints. A block ```json title="NAME" is written to the file NAME before the
next block runs.
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

PAGES = tuple(Path(__file__).parents[2] / "docs" / name for name in ("tutorial.md", "architecture.md"))
BLOCK = re.compile(
    r"^```(json|python|console)(?: title=\"([\w.]+)\")?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)


@contextlib.contextmanager
def in_a_folder() -> Iterator[None]:
    """Work in an empty folder."""
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
        exec(compile(text, "page", "exec"), names)  # a test of our own file
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
    names: dict[str, Any] = {"__name__": "page"}

    def block(found: re.Match[str]) -> str:
        kind, title, text, shown = found[1], found[2], found[3], found[4]
        if kind == "json":
            Path(title).write_text(text, encoding="utf-8")
        elif kind == "console":
            text = _console(text)
        else:
            shown_now = printed(text, names)
            assert (shown is None) == (not shown_now), f"a block ```text shows what this prints:\n{text}"
            shown = shown_now or None
        begin = f'```{kind} title="{title}"' if title else f"```{kind}"
        return f"{begin}\n{text}```\n" + (f"\n```text\n{shown}```\n" if shown is not None else "")

    with in_a_folder():
        return BLOCK.sub(block, page), names
