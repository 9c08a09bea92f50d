"""Kernels that were compiled before, loaded from disk as machine code alone.

numba keeps LLVM's code of a kernel beside the machine code, for kernels that are compiled later and call it, and reads
both each time, which is half of what loading takes. Here LLVM's code is read when something is to be linked with it.
And before it loads its first kernel, numba readies itself to compile: it imports and registers all that it can compile,
which takes longer than loading a hundred kernels. Here it does so when it first compiles one.

A kernel is out of date when its file has changed, as numba has it, and also when a constant that it reads or a kernel
that it calls has, in whatever file these are.

Leaves out   where kernels are kept: numba's own cache.
Invariants   a kernel that calls one that was loaded is compiled from the same code as it would be without this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys


class _Library(JITCodeLibrary):
    """The code of a kernel that is kept."""

    _linked: Any = None  # LLVM's code
    _unread = b""

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, tuple[bytes, bytes]]) -> _Library:
        name, kind, (machine, unread) = state
        if kind != "object":
            raise ValueError(f"numba keeps kernels as objects, not as {kind}")
        library: _Library = codegen.create_library(name)
        library.enable_object_caching()
        library._set_compiled_object(machine)
        library._unread = unread
        library._finalize_final_module()
        return library

    @property
    def _shared_module(self) -> Any:
        if self._linked is None and self._unread:
            self._linked = llvm.parse_bitcode(self._unread)
            self._codegen._engine._load_defined_symbols(self._linked)
        return self._linked

    @_shared_module.setter
    def _shared_module(self, module: Any) -> None:
        self._linked = module

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        address: int = self._codegen._engine.get_function_address(name)  # 0 if there is none of that name
        return address


def _stamp(function: Callable[..., Any], own: Any) -> str:
    """What tells whether a kept kernel is out of date.

    Args:
        own: the stamp of the function's file.
    """
    names = function.__code__.co_names
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for module in [value for value in values.values() if isinstance(value, ModuleType)]:
        values |= {name: getattr(module, name) for name in names if hasattr(module, name)}
    told = hashlib.sha256(repr(own).encode())
    for name, value in sorted(values.items()):
        if isinstance(value, (int, float, bool, str, bytes, tuple, np.generic)):
            told.update(f"{name}={value!r}".encode())
        elif isinstance(value, np.ndarray):
            told.update(name.encode() + str(value.dtype).encode() + value.tobytes())
        elif isinstance(value, Dispatcher):
            kept = getattr(getattr(value, "_cache", None), "_cache_file", None)
            told.update(f"{name}:{getattr(kept, '_source_stamp', '')}".encode())
        elif hasattr(value, "_defn"):  # an intrinsic
            code = value._defn.__code__
            told.update(name.encode() + code.co_code + repr(_constants(code)).encode())
    return told.hexdigest()


def _constants(code: CodeType) -> list[Any]:
    """The constants of a function and of those inside of it, which have the bytes of their code."""
    return [(one.co_code, _constants(one)) if isinstance(one, CodeType) else one for one in code.co_consts]


def load_as_machine_code(dispatcher: Dispatcher) -> None:
    """Let what numba has kept of a function be loaded so; it holds numba's lock whenever it loads."""
    cache: Any = dispatcher._cache  # type: ignore[attr-defined]
    kept = cache._impl
    rebuild: Callable[..., Any] = kept.rebuild

    def lean(target_context: Any, payload: Any) -> Any:
        codegen = target_context.codegen()
        codegen._library_class = _Library
        try:
            return rebuild(target_context, payload)
        finally:
            del codegen._library_class

    def load(signature: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # what runs needs it: it allocates arrays
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, target_context)

    files = cache._cache_file
    files._source_stamp = _stamp(dispatcher.py_func, files._source_stamp)
    read: Callable[[], dict[Any, Any]] = files._load_index

    def index() -> dict[Any, Any]:
        try:
            return read()
        except (ImportError, AttributeError):  # an earlier version kept types that are gone
            return {}

    kept.rebuild = lean
    cache.load_overload = load
    files._load_index = index
