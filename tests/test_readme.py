"""Every example of README.md is executed: Python blocks in order in one namespace, console lines with their output."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .small_model import make_model

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(path: Path) -> list[tuple[str, str]]:
    return [(match[1], match[2]) for match in BLOCK.finditer(path.read_text(encoding="utf-8"))]


@pytest.fixture
def folder(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder with tools_specs/ in it, where the examples run."""
    shutil.copytree(repository / "tools_specs", tmp_path / "tools_specs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def toolc(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    script = f'toolc() {{ "{sys.executable}" -m toolc.compiler.cli "$@"; }}\n{command}'
    return subprocess.run(["bash", "-c", script], cwd=folder, env=dict(os.environ), capture_output=True, text=True)


def test_python(repository: Path, folder: Path) -> None:
    pytest.importorskip("torch")
    names: dict[str, Any] = {}
    code = [text for kind, text in blocks(repository / "README.md") if kind == "python"]
    assert len(code) == 5
    for text in code[3:]:
        exec(compile(text, "README.md", "exec"), names)  # a test of our own file
    call = json.loads(names["text"])
    assert list(call) == ["name", "arguments"]
    assert call["name"] in {tool["name"] for tool in names["bundle"].tools}


def test_the_model_of_a_reader(
    repository: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first three blocks, with a tiny random model in the place of the one that they name."""
    pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    path = str(make_model(folder / "small"))
    for kind in (transformers.AutoTokenizer, transformers.AutoModelForCausalLM):
        load = kind.from_pretrained
        monkeypatch.setattr(kind, "from_pretrained", lambda name, load=load: load(path))
    names: dict[str, Any] = {"__name__": "README"}
    for text in [text for kind, text in blocks(repository / "README.md") if kind == "python"][:3]:
        exec(compile(text, "README.md", "exec"), names)  # a test of our own file
    assert "days" in capsys.readouterr().out and len(names["messages"]) > 1


def test_console(repository: Path, folder: Path) -> None:
    (text,) = [text for kind, text in blocks(repository / "README.md") if kind == "console"]
    examples = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    assert len(examples) == 5
    for example in examples:
        command, _, shown = example.partition("\n")
        done = toolc(command, folder)
        if shown:
            assert done.stdout + done.stderr == shown, command
            assert done.returncode == (1 if shown.startswith("not accepted") else 0), command
        else:
            assert done.returncode == 0, done.stderr
            assert done.stdout


def test_make_targets(repository: Path) -> None:
    (text,) = [text for kind, text in blocks(repository / "README.md") if kind == "sh"]
    makefile = (repository / "Makefile").read_text()
    for line in text.splitlines():
        assert re.search(rf"^{line.removeprefix('make ')}:", makefile, re.MULTILINE)


def test_links(repository: Path) -> None:
    for page in [repository / "README.md", *(repository / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_documented_call_is_accepted(repository: Path, folder: Path) -> None:
    (call,) = [text.strip() for kind, text in blocks(repository / "docs" / "specs.md") if kind == "json"]
    assert toolc("toolc compile tools_specs/weather.json", folder).returncode == 0
    (folder / "call.json").write_text(call + "\n")
    assert toolc("toolc check weather.toolc @call.json", folder).returncode == 0
