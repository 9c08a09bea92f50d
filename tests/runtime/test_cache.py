"""Kernels that are loaded as machine code do what they did where they were compiled, also inside kernels compiled
later."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

KERNELS = """
import numba
import numpy as np
from toolc.runtime.jit.memory import kernel

@kernel()
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)

@kernel()
def checked(array, place):
    if place >= array.shape[0]:
        raise IndexError("no such place")
    return array[place] + fibonacci(numba.int64(10))

@kernel()
def total(array):
    out = 0
    for place in range(array.shape[0]):
        out += checked(array, place)
    return out

@kernel()
def doubled(array):
    return 2 * array, np.sort(array)[::-1].copy()

array = np.arange(5)
LIBRARY = lambda f: list(f.overloads.values())[0].library
"""


def run(folder: Path, code: str, **environment: str) -> str:
    (folder / "kernels.py").write_text(KERNELS)
    os.utime(folder / "kernels.py", (1, 1))  # numba recompiles what was written later
    done = subprocess.run(
        [sys.executable, "-c", "from kernels import *\n" + code],
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_loaded_kernel_answers_as_the_compiled_one(tmp_path: Path) -> None:
    compiled = run(tmp_path, "print(checked(array, 3), checked.stats.cache_misses != {})")
    assert compiled.split() == [str(3 + 55), "True"]
    loaded = run(tmp_path, "print(checked(array, 3), checked.stats.cache_hits != {}, LIBRARY(checked)._linked)")
    assert loaded.split() == [str(3 + 55), "True", "None"]


def test_loading_does_not_ready_numba_to_compile(tmp_path: Path) -> None:
    """Arrays that a loaded kernel makes need no more of numba than what runs."""
    code = "print(doubled(array)[0].sum(), doubled(array)[1][0], {}, 'numba.np.linalg' in sys.modules)"
    compiled = run(tmp_path, "import sys; " + code.format("doubled.stats.cache_misses != {}"))
    assert compiled.split() == ["20", "4", "True", "True"]
    loaded = run(tmp_path, "import sys; " + code.format("doubled.stats.cache_hits != {}"))
    assert loaded.split() == ["20", "4", "True", "False"]
    after = run(tmp_path, "import sys; doubled(array); " + code.format("total(array)"))
    assert after.split() == ["20", "4", str(10 + 5 * 55), "True"]


def test_a_kernel_compiled_later_links_with_a_loaded_one(tmp_path: Path) -> None:
    run(tmp_path, "checked(array, 3)")
    out = run(tmp_path, "print(total(array), checked.stats.cache_hits != {}, LIBRARY(checked)._linked is not None)")
    assert out.split() == [str(10 + 5 * 55), "True", "True"]
    assert run(tmp_path, "print(total(array), total.stats.cache_hits != {})").split() == [str(10 + 5 * 55), "True"]


@pytest.mark.parametrize("first", ["", "checked(array, 3); fibonacci(3)"])
def test_errors_of_loaded_kernels_are_raised(tmp_path: Path, first: str) -> None:
    run(tmp_path, "checked(array, 3)")
    code = f"{first}\ntry:\n    checked(array, 7)\nexcept IndexError as error:\n    print(error)"
    assert run(tmp_path, code) == "no such place\n"


def test_kernels_are_plain_functions_without_numba(tmp_path: Path) -> None:
    out = run(tmp_path, "print(total(array), type(total).__name__)", NUMBA_DISABLE_JIT="1")
    assert out.split() == [str(10 + 5 * 55), "function"]


def test_kernels_of_one_signature_work_where_the_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(
        "from toolc.runtime.jit.memory import kernel\n@kernel('int64(int64)')\ndef tripled(n):\n    return 3 * n\n"
    )
    code = (
        "import warnings, numba.core.caching as caching\n"
        "def full(*_): raise OSError(28, 'No space left on device')\n"
        "caching.IndexDataCacheFile.save = full\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    from later import tripled\n"
        "print(tripled(5), [one.category.__name__ for one in said])"
    )
    assert run(tmp_path, code) == "15 ['CacheWarning']\n"


def test_a_warm_compile_loads_little_of_numba(repository: Path, tmp_path: Path) -> None:
    """No kernel on its way wants numba's sums, sorts or lists, and nothing is compiled."""
    from toolc.compiler.lift import walk

    if walk.walk_states.stats.cache_path is None:
        pytest.skip("kernels cannot be kept here")
    code = (
        "import sys\nfrom toolc.compiler import compile_tools\nfrom toolc.runtime import Bundle, Matcher\n"
        f"compile_tools({str(repository / 'tools_specs' / 'weather.json')!r}).write('weather.toolc')\n"
        "Matcher(Bundle.open('weather.toolc')).forced()\n"
        "print(*sorted({'numba.np.linalg', 'numba.np.arraymath', 'numba.cpython.listobj'} & sys.modules.keys()))"
    )
    for turn in ("first", "second"):  # the first keeps the kernels that are not kept yet; neither finds parts
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "TOOLC_CACHE": str(tmp_path / turn)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_what_an_earlier_version_kept_is_compiled_anew(tmp_path: Path) -> None:
    """numba reads the types of all that it keeps of a kernel, also where the kernel has changed since."""
    pair = "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"
    code = "from toolc.runtime.jit.memory import kernel\n@kernel()\ndef first(pair):\n    return pair.a\n"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    (tmp_path / "pairs.py").write_text(pair)
    for n, source in enumerate(("from pairs import Pair\n" + code, pair + code)):
        (tmp_path / "own.py").write_text(source)
        os.utime(tmp_path / "own.py", (n + 1, n + 1))
        command = [sys.executable, "-c", "from own import *; print(first(Pair(7, 8)))"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
        (tmp_path / "pairs.py").unlink(missing_ok=True)
