"""Compute a digest of the code of a kernel, which tells whether a compiled kernel is out of date.

It covers the kernel, all kernels that it calls, and the constants that they read, in whatever files these are.

Leaves out   functions of numpy and numba, whose versions are compared elsewhere; what is defined below the kernel in
             its file, which does not exist yet when the digest is computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from types import CodeType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher


@cache
def digest(function: Callable[..., Any]) -> str:
    """The digest of a kernel, as it is when this is called first."""
    told = hashlib.sha256(_code(function.__code__).encode())
    told.update(repr((function.__defaults__, function.__kwdefaults__)).encode())
    for name, value in sorted(_globals(function).items()):
        if not (isinstance(value, Dispatcher) and value.py_func is function):  # else it calls itself
            told.update(f"{name}={_value(value)};".encode())
    return told.hexdigest()


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    """What a function may read of its module, and of the modules that it names, by name."""
    names = function.__code__.co_names
    values = {name: function.__globals__[name] for name in names if name in function.__globals__}
    for module in [value for value in values.values() if isinstance(value, ModuleType)]:
        values |= {name: getattr(module, name) for name in names if hasattr(module, name)}
    return values


def _value(value: Any) -> str:
    if isinstance(value, (int, float, bool, str, bytes, tuple, np.generic)):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{hashlib.sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Dispatcher):
        return digest(value.py_func)
    if hasattr(value, "_defn"):  # an intrinsic
        return _code(value._defn.__code__)
    return ""


def _code(code: CodeType) -> str:
    inner = [_code(one) if isinstance(one, CodeType) else _constant(one) for one in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {inner}"


def _constant(value: Any) -> str:
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value)
