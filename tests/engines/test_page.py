"""Follow docs/serving.md, line by line, from an environment of vLLM without toolc to a constrained call of a tool.

Leaves out   vLLM's own installation: what the tests' environment holds, but for toolc, is linked into a new one.
Departures   the model and the port of the page are others, and the index that pip asks has toolc only.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from .serving import ANSWER_S, environment, serving

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
MODEL, URL, STORE = "Qwen/Qwen3-8B", "http://localhost:8000", "/var/toolc"
"""What the page names."""
MINE = ("toolc", "__editable__", "pip", "_distutils", "distutils-precedence")
"""What is not linked: other versions of toolc, and what the new environment has itself."""

pytestmark = pytest.mark.slow


def distribution(folder: Path) -> Path:
    """A wheel of this tree."""
    source = folder / "source"
    for name in ("compiler", "runtime", "grammars", "tools_specs"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(folder), str(source)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def engine_alone(folder: Path) -> Path:
    """The scripts of a new environment with all that the tests' own holds, but for toolc."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    scripts = folder / "bin"
    (site,) = (folder / "lib").glob("python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not entry.name.startswith(MINE) and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)
    vllm = scripts / "vllm"
    started = "from vllm.entrypoints.cli.main import main\n\nif __name__ == '__main__':\n    main()\n"
    vllm.write_text(f"#!{scripts / 'python'}\n{started}")
    vllm.chmod(0o755)
    return scripts


def test_the_page(model: Path, tmp_path: Path) -> None:
    wheel = distribution(tmp_path / "wheel")
    scripts = engine_alone(tmp_path / "environment")
    store = tmp_path / "store"
    variables = environment(
        PATH=f"{scripts}:/usr/bin:/bin", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(wheel.parent), TOOLC_STORE=str(store)
    )
    for name in ("PYTHONPATH", "NUMBA_CACHE_DIR", "PIP_CONSTRAINT", "VIRTUAL_ENV"):
        variables.pop(name, None)

    def run(line: str) -> str:
        line = line.replace(MODEL, str(model)).replace(STORE, str(store))
        done = subprocess.run(
            ["bash", "-ec", line], cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=3600
        )
        assert done.returncode == 0, (line, done.stdout[-2000:], done.stderr[-4000:])
        return done.stdout

    kinds = [kind for kind, _ in BLOCKS]
    assert kinds == ["sh", "python", "sh"], "a new block: follow it here, too"
    (_, first), (_, code), (_, image) = BLOCKS
    *before, serve = first.splitlines()
    for line in before:
        run(line)
    assert Path(run("python -c 'import toolc.runtime as t; print(t.__file__)'").strip()).is_relative_to(tmp_path)
    name, _, value = (words := shlex.split(serve))[0].partition("=")
    assert words[1:4] == ["vllm", "serve", MODEL]
    with serving(model, tmp_path / "log.txt", {**variables, name: value}, words[4:], scripts) as server:
        (tmp_path / "client.py").write_text(code.replace(URL, server.url), encoding="utf-8")
        called, arguments = run("python client.py").splitlines()[0].split(" ", 1)
        said = json.loads(arguments)
        assert called == "weather" and set(said) == {"place", "days"}
        assert said["place"] in ("Basel", "Bern") and 1 <= said["days"] <= 9
        assert server.metrics()['toolc:requests_total{outcome="held"}'] == 1
        tools = [{"type": "function", "function": {"name": "early", "parameters": {"type": "object"}}}]
        body = {"model": "small", "messages": [{"role": "user", "content": "x"}], "tools": tools}
        (tmp_path / "request.json").write_text(json.dumps(body))
        for line in image.splitlines():
            run(line)
        found = 'toolc:bundles_total{how="found"}'
        before_it = server.metrics()[found]
        assert server.post("/v1/chat/completions", {**body, "max_tokens": 4}, ANSWER_S)[0] == 200
        assert server.metrics()[found] == before_it + 1
