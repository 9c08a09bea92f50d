"""Kernels that come with the wheel: used where they fit, without numba's cache; compiled where they do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolc.compiler import warmup
from toolc.runtime.jit import shipped

SMALL = "toolc.compiler.lift.chains"  # a module whose kernels compile in seconds
LOAD = f"""
import warnings
warnings.simplefilter("error")
from toolc.compiler.warmup import _compile, is_cold, listed, why_not_shipped
from toolc.runtime.jit import shipped
from importlib import import_module
ours = [one for one in listed() if one.module == {SMALL!r}]
for one in ours:
    _compile(one)
dispatchers = [getattr(import_module(one.module), one.name) for one in ours]
hits = sum(sum(one.stats.cache_hits.values()) for one in dispatchers)
misses = sum(sum(one.stats.cache_misses.values()) for one in dispatchers)
print(len(ours), hits, misses, shipped.usable(), is_cold(), why_not_shipped())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernels of one module, as `make wheel` writes them."""
    into = tmp_path_factory.mktemp("shipped")
    kernels = [one for one in warmup.listed() if one.module == SMALL]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warmup, "listed", lambda: kernels)
        assert warmup.ship(1, into) == []
    return into


def load(folder: Path, kept: Path, **more: str) -> list[str]:
    """What a process prints that calls the kernels of `SMALL`, with an empty cache of numba at first."""
    setting = {"TOOLC_SHIPPED_KERNELS": str(folder), "NUMBA_CACHE_DIR": str(kept), **more}
    command = [sys.executable, "-c", LOAD]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **setting}, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_nothing_is_compiled_that_was_shipped(folder: Path, tmp_path: Path) -> None:
    count, hits, misses, usable, cold = load(folder, tmp_path)
    assert int(count) > 0 and int(hits) >= int(count) and (misses, usable, cold) == ("0", "True", "False")
    assert list(tmp_path.rglob("chains*.nbi")) == []


def test_kernels_of_another_build_are_compiled(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    made_for = json.loads((other / "made_for.json").read_text())
    (other / "made_for.json").write_text(json.dumps({**made_for, "numba": "0.1"}))
    _, hits, misses, usable, cold, *why = load(other, tmp_path / "kept")
    assert " ".join(why).startswith("(those of the wheel are for") and "numba 0.1," in " ".join(why)
    assert (hits, usable, cold) == ("0", "False", "True") and int(misses) > 0
    assert list((tmp_path / "kept").rglob("chains*.nbi"))


def test_a_processor_without_the_instructions_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needed = shipped._NEEDS.get(shipped.this_build()["processor"])
    if not needed:
        pytest.skip("any processor of this kind runs what is shipped")
    monkeypatch.setattr(shipped, "SHIPPED", folder)
    for lacking in needed:
        has = {one: one != lacking for one in needed}
        monkeypatch.setattr(shipped.llvm, "get_host_cpu_features", has.copy)
        assert not shipped.usable.__wrapped__()
    monkeypatch.setattr(shipped.llvm, "get_host_cpu_features", lambda: dict.fromkeys(needed, True))
    assert shipped.usable.__wrapped__()


KERNEL = """
import sys
from pathlib import Path
from toolc.runtime.jit import shipped
from toolc.runtime.jit.memory import kernel
from number_of import NUMBER

@kernel({signature})
def times(n):
    return NUMBER * n

value = times(5)
if "save" in sys.argv:
    shipped.save(times, shipped.SHIPPED)
    (shipped.SHIPPED / "made_for.json").write_text(__import__("json").dumps(shipped.this_build()))
print(value, sum(times.stats.cache_hits.values()))
"""


@pytest.mark.parametrize("signature", ["", "'int64(int64)'"])
def test_a_changed_constant_is_met(signature: str, tmp_path: Path) -> None:
    (tmp_path / "kernel_of.py").write_text(KERNEL.format(signature=signature))
    (tmp_path / "ship").mkdir()

    def run(number: int, kept: str, *arguments: str) -> list[str]:
        (tmp_path / "number_of.py").write_text(f"NUMBER = {number}\n")
        setting = {
            "TOOLC_SHIPPED_KERNELS": str(tmp_path / "ship"),
            "NUMBA_CACHE_DIR": str(tmp_path / kept),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, str(tmp_path / "kernel_of.py"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **setting}, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run(3, "first", "save") == ["15", "0"]
    assert run(3, "second") == ["15", "1"]
    assert run(4, "third") == ["20", "0"]


def test_shipped_kernels_need_no_place_for_others(folder: Path, tmp_path: Path) -> None:
    """Where numba finds no folder that it can write, these are loaded, and nothing is said."""
    (tmp_path / "file").write_text("")
    count, hits, misses, usable, _ = load(folder, tmp_path / "file" / "below")
    assert int(hits) >= int(count) and (misses, usable) == ("0", "True")
