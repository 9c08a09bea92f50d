"""Compile the kernels of toolc before they are called, several at a time.

numba compiles a kernel when it is first called, one after the other, and keeps it for all later processes. On a new
machine that is three minutes of one core before the first bundle. Which kernels there are and for what arguments does
not depend on the spec: kernels.json lists them, so that as many processes as there are cores can compile a share each.

Leaves out   the kernels themselves; where numba keeps them.
Invariants   what is not listed, or failed here, is compiled when it is called, as ever; a list that is out of date
             costs time and nothing else (tests/cli/test_warmup.py holds it against what a compile calls).
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numba.core.dispatcher import Dispatcher
    from numba.core.types import Type

_LOG = logging.getLogger(__name__)
LIST = Path(__file__).with_name("kernels.json")
LATER = frozenset(
    f"toolc.{name}"
    for name in (
        "compiler.lift.check_lists",
        "compiler.lift.collapsed_trie",
        "compiler.lift.collapsed_walks",
        "compiler.lift.register_rules",
        "compiler.pushdown.counted",
        "compiler.pushdown.largest_rule",
        "compiler.terminals.partition",
        "runtime.device.clear_kernel",
        "runtime.format.kernels.check",
        "runtime.format.kernels.unpack",
        "runtime.host.kernels",
        "runtime.selection.completion",
        "runtime.selection.reachable",
        "runtime.selection.stack_depths",
        "runtime.selection.trie_walk",
    )
)
"""Modules whose kernels a small spec does not call: a single compile leaves them until they are called."""
_INTO = "_TOOLC_SHIP_INTO"
"""The variable that names the folder into which a process of `ship` writes its kernels."""
_SOME_FAILED = 3  # the exit code of a process in which some kernels failed
_CHILD = (  # nothing is imported from the folder that the command was given in; garbage is not worth the looking
    "import gc, sys; gc.disable(); sys.path = [folder for folder in sys.path if folder];"
    f"from {__name__} import compile_modules; compile_modules(sys.argv[1:])"
)


class Kernel(NamedTuple):
    """A kernel that Python calls.

    module, name: where it is;  weight: bytes of code in it and in what it calls, for shares;  arguments: a list of
    types, see `said`, of each signature.
    """

    module: str
    name: str
    weight: int
    arguments: list[list[Any]]


def listed() -> list[Kernel]:
    """What kernels.json lists."""
    return [Kernel(*entry) for entry in json.loads(LIST.read_bytes())]


def is_cold() -> bool:
    """Whether kernels have to be compiled: none came with the wheel, and numba has not kept the largest for these
    sources, as far as its files tell."""
    from toolc.runtime.jit import shipped

    from .lift import walk

    if shipped.usable():
        return False
    folder = walk.walk_states.stats.cache_path
    if folder is None:
        return False  # nothing can be kept
    kept = Path(folder).glob("walk.walk_states-*.nbi")
    return all(os.path.getmtime(file) < os.path.getmtime(walk.__file__) for file in kept)


def why_not_shipped() -> str:
    """Why the kernels of the wheel are not used, to stand behind other words; empty where none came."""
    from toolc.runtime.jit import shipped

    made_for = shipped.made_for()
    if made_for is None or shipped.usable():
        return ""
    build = "python", "machine", "processor", "numba", "llvmlite"
    return f" (those of the wheel are for {', '.join(f'{name} {made_for.get(name)}' for name in build)})"


_told: list[bool] = []
"""Not empty once this process has said that it compiles kernels."""


def warm_if_cold(processes: int) -> None:
    """Compile the kernels that a small spec needs, where numba has kept none; say so once, as a warning in the log.

    What fails here is compiled, or fails, when it is called.

    Args:
        processes: how many compile at a time; with one, kernels are compiled when they are called.
    """
    if not _told and is_cold():
        _LOG.warning(
            "toolc compiles its own kernels%s, once on this machine: three minutes of processor time, on %d cores. "
            "`toolc warmup` does it beforehand",
            why_not_shipped(),
            processes,
        )
        if processes > 1 and sys.executable:  # which a program with Python inside of it may lack
            warm_up(processes, later=False)
    _told.append(True)


def ship(processes: int, folder: Path) -> list[str]:
    """Compile all kernels for every processor of this kind, into a folder; `warm_up` says what is returned.

    Args:
        processes: how many compile at a time.
        folder: is made; its files are what shipped.py reads.
    """
    from toolc.runtime.jit import shipped

    folder.mkdir(parents=True, exist_ok=True)
    build = shipped.this_build()
    with tempfile.TemporaryDirectory() as apart:  # numba's own cache has kernels for this very machine
        setting = {
            "NUMBA_CACHE_DIR": apart,
            "NUMBA_CPU_NAME": build["processor"],
            "NUMBA_CPU_FEATURES": "",
            "TOOLC_SHIPPED_KERNELS": apart,  # none
            _INTO: str(folder.absolute()),
        }
        failed = warm_up(processes, setting=setting)
    (folder / "made_for.json").write_text(json.dumps(build, indent=1) + "\n", encoding="utf-8")
    return failed


def warm_up(processes: int, later: bool = True, setting: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Compile all kernels; returns a line for each that failed, or the last line of a process that ended otherwise.

    Args:
        processes: how many compile at a time.
        later: also those of `LATER`.
        setting: more of their environment.
    """
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _CHILD, *modules],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **setting},
        )
        for modules in shares([one for one in listed() if later or one.module not in LATER], processes)
    ]
    try:
        said = [process.communicate()[1] for process in running]
    finally:
        for process in running:
            process.kill()
    lines = []
    for process, text in zip(running, said, strict=True):
        if process.returncode == _SOME_FAILED:
            lines += text.strip().splitlines()
        elif process.returncode:
            last = text.strip().rpartition("\n")[2]
            lines.append(f"a process ended with code {process.returncode}: {last}")
    return lines


def shares(kernels: Iterable[Kernel], count: int) -> list[list[str]]:
    """The modules of kernels in so many shares or fewer, of about equal weight: the heaviest first to the lightest."""
    weight: dict[str, int] = {}
    for kernel in kernels:
        weight[kernel.module] = weight.get(kernel.module, 0) + kernel.weight
    out: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for module in sorted(weight, key=lambda module: (-weight[module], module)):
        least = min(range(count), key=lambda n: out[n][0])
        out[least] = (out[least][0] + weight[module], [*out[least][1], module])
    return [modules for _, modules in out if modules]


def compile_modules(modules: Iterable[str]) -> None:
    """Compile the listed kernels of some modules in this process; one that fails keeps no other from it.

    Raises:
        SystemExit: some failed; stderr names them, a line each.
    """
    wanted = set(modules)
    failed = []
    for kernel in listed():
        if kernel.module in wanted:
            try:
                _compile(kernel)
            except Exception as error:  # of numba or LLVM, whose kinds are not listed anywhere
                reason = str(error).strip().partition("\n")[0]
                failed.append(f"{kernel.module}.{kernel.name}: {type(error).__name__}: {reason}")
    if failed:
        print("\n".join(failed), file=sys.stderr)
        sys.exit(_SOME_FAILED)


def _compile(kernel: Kernel) -> None:
    dispatcher = getattr(import_module(kernel.module), kernel.name)
    for signature in [tuple(map(_meant, arguments)) for arguments in kernel.arguments]:
        if signature not in dispatcher.signatures:
            dispatcher.compile(signature)
    if _INTO in os.environ:
        from toolc.runtime.jit import shipped

        shipped.save(dispatcher, Path(os.environ[_INTO]))


# -- kernels.json ------------------------------------------------------------------------------------------------------


def called() -> list[Kernel]:
    """The kernels of toolc that were compiled or loaded in this process because Python called them, by name."""
    from numba.core.dispatcher import Dispatcher

    kernels: dict[tuple[str, str], Dispatcher] = {}
    for loaded in [module for name, module in sys.modules.items() if name.startswith("toolc.")]:
        for x in vars(loaded).values():
            if isinstance(x, Dispatcher) and x.signatures:
                kernels[x.py_func.__module__, x.py_func.__name__] = x
    found: list[Kernel] = []
    reached: dict[str, set[Any]] = {}
    for (module, name), kernel in sorted(kernels.items()):
        weight = _weigh(kernel, reached.setdefault(module, set()))
        signatures = sorted(([said(x) for x in signature] for signature in kernel.signatures), key=repr)
        found.append(Kernel(module, name, weight, signatures))
    return found


def _weigh(kernel: Any, known: set[Any]) -> int:
    """Bytes of code of a kernel and of what it calls that is not known; from then on it is. 0 of anything else."""
    from numba.core.dispatcher import Dispatcher

    if not isinstance(kernel, Dispatcher) or kernel in known:
        return 0
    known.add(kernel)
    code = kernel.py_func.__code__
    called = [kernel.py_func.__globals__.get(name) for name in code.co_names]
    return len(code.co_code) + sum([_weigh(one, known) for one in called])


def said(type_: Type) -> Any:
    """A type as JSON: its name; or of an array the dtype, dimensions, layout and whether it can be written; or of a
    tuple its class, empty for a plain one, and the types of what is in it."""
    from numba.core import types
    from numba.core.types.containers import BaseTuple

    if isinstance(type_, types.Array):
        return [str(type_.dtype), type_.ndim, type_.layout, type_.mutable]
    if isinstance(type_, BaseTuple):
        made = getattr(type_, "instance_class", None)
        return ["" if made is None else f"{made.__module__}.{made.__name__}", [said(x) for x in type_.types]]
    return str(type_)


def _meant(text: Any) -> Type:
    """The type that `said` gave."""
    from numba.core import types
    from numba.core.types.containers import BaseTuple

    if isinstance(text, str):
        return types.boolean if text == "bool" else getattr(types, text)
    if len(text) == 2:
        module, _, name = text[0].rpartition(".")
        made = getattr(import_module(module), name) if name else None
        return BaseTuple.from_types([_meant(x) for x in text[1]], made)
    dtype, dimensions, layout, mutable = text
    return types.Array(_meant(dtype), dimensions, layout, readonly=not mutable)
