"""Follow README.md in an empty environment with a wheel and a model: at most six commands lead to a valid call.

Needs $TOOLC_MODEL, the folder of a model that transformers reads, and pip with its index. torch and transformers are
those of the environment that runs the tests: they are gigabytes. Everything else is installed anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from .test_readme import blocks

MOST_COMMANDS = 6
CHECKS = """
import json, toolc.compiler, torch
assert toolc.compiler.__file__.startswith({env!r}), toolc.compiler.__file__
calls = read_calls(bundle, out[0, prompt["input_ids"].shape[1] :].tolist(), "required")
print("CALLS " + json.dumps([[call.name, call.arguments] for call in calls]))
"""


def commands(repository: Path) -> list[str]:
    """The lines of the first block for a shell."""
    text = next(text for kind, text in blocks(repository / "README.md") if kind == "bash")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_few_commands_lead_to_the_first_call(repository: Path) -> None:
    assert len(commands(repository)) <= MOST_COMMANDS
    assert re.search(r"^wheel:", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.slow
def test_readme_in_an_empty_environment(repository: Path, tmp_path: Path) -> None:
    model = os.environ.get("TOOLC_MODEL")
    if not model or not Path(model, "config.json").exists():
        pytest.skip("$TOOLC_MODEL names no model")
    for package in ("torch", "transformers"):
        pytest.importorskip(package)
    folder = tmp_path / "checkout"
    for name in (".ci", "compiler", "runtime", "grammars", "tools_specs"):
        ignored = shutil.ignore_patterns("__pycache__", "*.nbc", "*.nbi")
        shutil.copytree(repository / name, folder / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE", "Makefile"):
        shutil.copy(repository / name, folder / name)
    code = next(text for kind, text in blocks(repository / "README.md") if kind == "python")
    code = re.sub(r'"Qwen/[\w.-]+"', repr(model), code)
    (folder / "weather.py").write_text(code + CHECKS.format(env=str(folder / "env")), encoding="utf-8")
    away = {"PYTHONPATH", "VIRTUAL_ENV", "NUMBA_CACHE_DIR"}
    environment = {name: value for name, value in os.environ.items() if name not in away}
    environment |= {"TOOLC_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": ""}

    def run(command: str) -> str:
        done = subprocess.run(["bash", "-ec", command], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode and re.search("No matching distribution|Could not find a version|Connection", done.stderr):
            pytest.skip(f"the package index does not answer: {done.stderr[-300:]}")
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    for line in commands(repository):
        if "pip install" in line:
            run(line.replace("[torch]", "").replace(" transformers", ""))
            (place,) = (folder / "env" / "lib").glob("python*/site-packages")
            (place / "others.pth").write_text("\n".join(site.getsitepackages()) + "\n", encoding="utf-8")
        else:
            told = run(line.replace("python3 -m venv", f'"{sys.executable}" -m venv'))
    ((name, arguments),) = json.loads(re.findall("^CALLS (.*)$", told, re.MULTILINE)[0])
    assert name == "current_weather" and isinstance(arguments["place"], str)
