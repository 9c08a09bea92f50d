"""Kernels that were compiled before, loaded from disk as machine code alone.

numba keeps LLVM's code of a kernel beside the machine code, for kernels that are compiled later and call it, and reads
both each time, which is half of what loading takes. Here LLVM's code is read when something is to be linked with it.
And before it loads its first kernel, numba readies itself to compile: it imports and registers all that it can compile,
which takes longer than loading a hundred kernels. Here it does so when it first compiles one.

A kernel is out of date when its file has changed, as numba has it, and also when its digest has (digest.py). What
numba has not kept may have come with the wheel (shipped.py).

Leaves out   where kernels are kept: numba's own cache.
Invariants   a kernel that calls one that was loaded is compiled from the same code as it would be without this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from . import shipped
from .digest import digest


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


def _rebuilt(target_context: Any, payload: tuple[Any, ...]) -> Any:
    """The compiled kernel that numba pickled as this payload."""
    codegen = target_context.codegen()
    codegen._library_class = _Library
    try:
        return CompileResult._rebuild(target_context, *payload)
    finally:
        del codegen._library_class


def load_as_machine_code(dispatcher: Dispatcher) -> None:
    """Let what numba has kept of a function, or what came with the wheel, be loaded so."""
    cache: Any = dispatcher._cache  # type: ignore[attr-defined]
    files = cache._cache_file
    files._source_stamp = f"{files._source_stamp} {digest(dispatcher.py_func)}"
    read: Callable[[], dict[Any, Any]] = files._load_index

    def load(signature: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # what runs needs it: it allocates arrays
        with cache._guard_against_spurious_io_errors():
            kept = cache._load_overload(signature, target_context)
        return _shipped(dispatcher, signature, target_context) if kept is None else kept

    def index() -> dict[Any, Any]:
        try:
            return read()
        except (ImportError, AttributeError):  # an earlier version kept types that are gone
            return {}

    cache._impl.rebuild = _rebuilt
    cache.load_overload = load
    files._load_index = index


def load_what_was_shipped(dispatcher: Dispatcher) -> None:
    """Let what came with the wheel be loaded, of a function that numba has no place to keep for."""
    cache: Any = dispatcher._cache  # type: ignore[attr-defined]

    def load(signature: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        return _shipped(dispatcher, signature, target_context)

    cache.load_overload = load


def _shipped(dispatcher: Dispatcher, signature: Any, target_context: Any) -> Any:
    payload = shipped.load(dispatcher.py_func, signature)
    return None if payload is None else _rebuilt(target_context, payload)
