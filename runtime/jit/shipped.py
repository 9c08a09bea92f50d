"""Load kernels that came with the wheel, as machine code for every processor of a kind.

`make wheel` compiles all kernels once, for a processor that most machines have, and puts them into `SHIPPED`. So a
user of the wheel compiles none. A checkout has none of these: there numba compiles each kernel for the machine itself.

A shipped kernel is used if Python's and numba's versions are those it was made with, and the processor has the
instructions that it uses. Otherwise numba compiles it, as in a checkout.

Leaves out   how machine code becomes a function: see cache.py.
Files        made_for.json: what `this_build` returns. <key>.nbc: one kernel for one signature, as numba pickles it.
Invariants   a key covers the code of the kernel, of all that it calls, and the constants that they read.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import platform
import shutil
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core.dispatcher import Dispatcher
from numba.core.sigutils import normalize_signature

from .digest import digest

SHIPPED = Path(os.environ.get("TOOLC_SHIPPED_KERNELS") or Path(__file__).with_name("shipped"))
"""The folder of the kernels that came with the wheel; the variable names another one, for tests."""

PROCESSOR = {"x86_64": "x86-64-v3", "AMD64": "x86-64-v3"}
"""LLVM's name of the processor that shipped kernels are made for, by machine; any other machine: generic."""
_NEEDS = {"x86-64-v3": "avx avx2 bmi bmi2 cmov cx16 f16c fma lzcnt movbe popcnt sse4.2".split()}


def this_build() -> dict[str, str]:
    """What machine code depends on besides the sources: versions, system, processor."""
    return {
        "python": f"{sys.implementation.cache_tag} {sys.platform}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "processor": PROCESSOR.get(platform.machine(), "generic"),
        "machine": platform.machine(),
    }


def made_for() -> dict[str, str] | None:
    """The build that the shipped kernels are of; None: there are none."""
    try:
        found: dict[str, str] = json.loads((SHIPPED / "made_for.json").read_bytes())
    except (FileNotFoundError, NotADirectoryError):  # the latter: toolc lies in an archive
        return None
    return found


@lru_cache(maxsize=1)
def usable() -> bool:
    """Whether there are shipped kernels, and they run here."""
    build = this_build()
    if made_for() != build:
        return False
    has = llvm.get_host_cpu_features()
    return all(has.get(feature) for feature in _NEEDS.get(build["processor"], ()))


def load(function: Callable[..., Any], signature: Any) -> Any:
    """What numba pickled of a kernel, to be rebuilt; None if it did not come with the wheel."""
    if not usable():
        return None
    try:
        return pickle.loads((SHIPPED / _file(function, signature)).read_bytes())
    except FileNotFoundError:
        return None


def save(dispatcher: Dispatcher, folder: Path) -> None:
    """Copy what numba has kept of a kernel into a folder, for every signature."""
    files: Any = dispatcher._cache._cache_file  # type: ignore[attr-defined]
    for (signature, *_), name in files._load_index().items():
        shutil.copyfile(files._data_path(name), folder / _file(dispatcher.py_func, signature))


def _file(function: Callable[..., Any], signature: Any) -> str:
    arguments = [str(one) for one in normalize_signature(signature)[0]]
    name = f"{function.__module__}.{function.__qualname__} {arguments}"
    return hashlib.sha256(f"{name} {digest(function)}".encode()).hexdigest()[:32] + ".nbc"
