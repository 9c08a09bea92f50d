"""The kernels that are compiled beforehand: that they are those which a compile calls, and that numba keeps them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from toolc.compiler import compile_grammar, stages, warmup
from toolc.compiler.warmup import LATER, LIST, listed, shares, warm_up

# The demo, which compiles by parts, loads and decodes; and schemas that it is simpler than: tools of an OpenAPI
# document, counters, a pattern and a format, an open object, objects that exclude each other, a few and many; a limit
# that is passed; bundles written and read until that is done by kernels; a choice of tools; a batch in torch.
FIRST_USE = """
import contextlib, io, json, os
from importlib.resources import files
from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.commands import demo
from toolc.compiler.errors import BudgetError
from toolc.compiler.warmup import called
import torch
from toolc.runtime import Bundle, Decoder, subset
from toolc.runtime.jit.loaded import PATIENCE
ABC = "abcdefghijklmnopqr"
with contextlib.redirect_stdout(io.StringIO()):
    demo.run(rows=2, seed=0, as_json=True)
compile_tools((files("toolc.tools_specs") / "shop_openapi.json").read_bytes())
weather = compile_tools((files("toolc.tools_specs") / "weather.json").read_bytes()).bundle
for one in ("current_weather", "weather_stations"):  # the call of least cost is among them, and is not
    subset(weather, [one])
texts = {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 20}, "maxItems": 30}
long = {"type": "string", "pattern": "^[a-z]{1,80}[0-9].*$", "maxLength": 99}
link = {"type": "string", "format": "uri"}
ones = [{"type": "object", "properties": {"a": {"enum": [n]}, n: {"type": "string"}}, "required": [n]} for n in "xyz"]
open_ = {"type": "object", "properties": {"a": {"type": "string"}}}
many = [{"type": "object", "properties": {"k": {"const": n}, n: {"type": "string"}}, "required": ["k"]} for n in ABC]
for schema in (texts, long, link, {"oneOf": ones}, open_, {"oneOf": many}):
    compiled = compile_schema(schema)
free = {"type": "object", "properties": {key: {"type": "string"} for key in ABC}, "required": ["a"]}
compile_schema(free, options=Options(key_order="any"))
try:
    compile_schema(open_, options=Options(budget=Budget(states=9)))
    raise AssertionError("nine states are enough")
except BudgetError:  # which names the rule that has most of the states
    pass
file = os.path.join(os.environ["TOOLC_CACHE"], "bundle.toolc")
for _ in range(PATIENCE + 1):
    compiled.write(file)
bundle = Bundle.open(file, compiled.bundle.vocab)
decoder = Decoder(bundle, 2)
decoder.advance_(decoder.mask_(torch.zeros(2, bundle.vocab.size)).argmax(1))
print(json.dumps(called()))
"""
SMALL = "toolc.compiler.lift.chains"  # a module whose kernels compile in a second


def current() -> str:
    """What kernels.json should say."""
    with tempfile.TemporaryDirectory() as folder:  # without parts that were compiled before
        done = run(FIRST_USE, TOOLC_CACHE=folder)
    return "[\n" + ",\n".join(json.dumps(kernel, separators=(",", ":")) for kernel in json.loads(done)) + "\n]\n"


def rebuild() -> Path:
    """Write kernels.json."""
    LIST.write_text(current(), encoding="utf-8")
    return LIST


def run(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_list_is_current() -> None:
    """But for the weights: another Python has other code."""
    found = {(module, name): arguments for module, name, _, arguments in json.loads(current())}
    assert {(kernel.module, kernel.name): kernel.arguments for kernel in listed()} == found, "python -m tests.golden"
    assert run("from toolc.compiler import warmup; print(warmup.is_cold())") == "False\n"


@pytest.mark.parametrize("count", [1, 2, 3, 500])
def test_every_module_is_in_one_share(count: int) -> None:
    parts = shares(listed(), count)
    modules = [module for part in parts for module in part]
    assert len(parts) <= count and len(modules) == len(set(modules))
    assert set(modules) == {kernel.module for kernel in listed()}
    weights = [sum(kernel.weight for kernel in listed() if kernel.module in part) for part in parts]
    heaviest = max(sum(kernel.weight for kernel in listed() if kernel.module == module) for module in modules)
    assert max(weights) - min(weights) <= heaviest


def test_a_small_spec_calls_nothing_that_is_left_for_later(repository: Path, tmp_path: Path) -> None:
    code = (
        "from toolc.compiler import compile_tools; from toolc.compiler.warmup import called;"
        f"compile_tools({str(repository / 'tools_specs' / 'weather.json')!r}, 'builtin').write('w.toolc');"
        "print(*{kernel.module for kernel in called()})"
    )
    env = {**os.environ, "TOOLC_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and len(done.stdout.split()) > 20, done.stderr
    assert not LATER & set(done.stdout.split())
    assert {kernel.module for kernel in listed()} >= LATER


def test_a_single_compile_leaves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class Process:
        returncode = 0

        def __init__(self, command: list[str], **_: object) -> None:
            started.append(command)

        def communicate(self) -> tuple[None, str]:
            return None, ""

        def kill(self) -> None: ...

    monkeypatch.setattr(warmup.subprocess, "Popen", Process)
    assert warm_up(2, later=False) == [] and warm_up(2) == []
    modules = [{one for one in command if one.startswith("toolc.")} for command in started]
    assert not LATER & (modules[0] | modules[1]) and modules[2] | modules[3] >= LATER


def test_a_program_that_waits_is_told_once_and_uses_all_cores(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(warmup, "_told", [])
    monkeypatch.setattr(warmup, "is_cold", lambda: True)
    warmed: list[int] = []
    monkeypatch.setattr(warmup, "warm_up", lambda processes, later: warmed.append(processes))
    monkeypatch.setattr(stages, "cores", lambda: 3)
    for _ in range(2):
        compile_grammar('start: "yes"\n', "builtin")
    assert [record.levelname for record in caplog.records if "own kernels" in record.message] == ["WARNING"]
    assert warmed == [3]


def test_numba_keeps_what_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise ImportError('this is the folder of a person, not a library')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warmup, "shares", lambda kernels, count: [[SMALL]])
    assert warm_up(2) == []
    kernels = [kernel for kernel in listed() if kernel.module == SMALL]
    monkeypatch.chdir("/")
    code = (
        "from toolc.compiler.warmup import compile_modules; from importlib import import_module;"
        f"compile_modules([{SMALL!r}]); module = import_module({SMALL!r});"
        f"print(sum(len(getattr(module, name).stats.cache_hits) for name in {[kernel.name for kernel in kernels]}))"
    )
    assert kernels and int(run(code)) == sum(len(kernel.arguments) for kernel in kernels)


def test_what_failed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('not today')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert ["not today" in text for text in warm_up(2)] == [True] * len(listed())


def test_a_kernel_that_fails_keeps_no_other_from_being_compiled(tmp_path: Path) -> None:
    """The first of a module is gone; the others are compiled, and only the first is told."""
    code = (
        "from importlib import import_module; from toolc.compiler import warmup;"
        f"module = import_module({SMALL!r}); mine = [k for k in warmup.listed() if k.module == {SMALL!r}];"
        "gone, *others = mine; delattr(module, gone.name)\n"
        f"try: warmup.compile_modules([{SMALL!r}])\n"
        "except SystemExit as error: print(error.code)\n"
        "print(all(getattr(module, k.name).signatures for k in others), len(others) > 0)"
    )
    told, code_, rest = run("import sys; sys.stderr = sys.stdout;" + code, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    assert told.startswith(f"{SMALL}.") and "AttributeError" in told and (code_, rest) == ("3", "True True")


def test_kernels_compile_without_torch(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('torch is not installed')")
    modules = {kernel.module for kernel in listed()}
    code = f"from importlib import import_module\nfor one in {sorted(modules)!r}: import_module(one)\nprint('all')"
    assert run(code, PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])) == "all\n"


def test_a_machine_is_cold_until_a_kernel_is_kept(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from toolc.compiler import warmup; from toolc.compiler.lift.walk import walk_states;"
        "print(warmup.is_cold()); folder = Path(walk_states.stats.cache_path); folder.mkdir(exist_ok=True);"
        "(folder / 'walk.walk_states-1.py311.nbi').touch(); print(warmup.is_cold())"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)).split() == ["True", "False"]
