"""Memory by address, for kernels whose arguments are too many to hand over one by one; what kernels do to whole arrays;
and compiling with a cache.

Handing an array to a numba function costs more than reading a number from it, and so do dozens of them each time one
kernel calls another, in time and in code. Tables of addresses cost nothing.

Leaves out   what lies at the addresses. Whoever writes an address down keeps the array alive and in place.
Invariants   nothing is checked here: indices are the callers' matter. Little-endian machines only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils
from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from . import shipped
from .cache import load_as_machine_code, load_what_was_shipped

# Options of a kernel that allocates no array and returns none: it counts no references to those that it is given, which
# takes longer than much of what kernels do with them.
BARE = {"_nrt": False}

_warned = False


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on this machine."""


def fixed(array: np.ndarray) -> np.ndarray:
    """A view that cannot be written, as the arrays of tables are: kernels are compiled for one kind of arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def kernel(signature: Any = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with a cache on disk where there is a place for one; says so once where there is none.

    Nobody calls a kernel from C, so it has no wrapper for that, which would take time to compile and to load.

    Args:
        signature: it is compiled or loaded for this one at once, and for no other; else for every one that it is called
            with.
    """
    options = {"no_cfunc_wrapper": True, **options}

    def eager(found: Any) -> Any:
        if signature is not None and isinstance(found, Dispatcher):  # else a plain function: NUMBA_DISABLE_JIT
            found.compile(signature)
            found.disable_compile()
        return found

    def wrap(function: Callable[..., Any]) -> Any:
        try:
            found = numba.njit(cache=True, **options)(function)
            if isinstance(found, Dispatcher):
                load_as_machine_code(found)
            return eager(found)
        except (RuntimeError, OSError) as error:
            found = numba.njit(**options)(function)
            if shipped.usable():
                load_what_was_shipped(found)
            else:
                _warn_once(error)
            return eager(found)

    return wrap


def _warn_once(error: Exception) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"toolc cannot keep compiled kernels ({error}); every process compiles them anew, some seconds. "
            "Set NUMBA_CACHE_DIR to a folder that can be written.",
            CacheWarning,
            stacklevel=4,
        )


@kernel(**BARE)
def address_of(array):  # type: ignore[no-untyped-def]
    """Where an array begins; numpy takes six times as long to say it."""
    return array.ctypes.data


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


@intrinsic
def read_byte(context, address):  # type: ignore[no-untyped-def]
    """The uint8 at an address."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_pointer(builder, arguments[0], 8))

    return numba.uint8(numba.int64), codegen


@intrinsic
def read_int(context, address, index):  # type: ignore[no-untyped-def]
    """int32 number `index` of the array at an address, as int64."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = builder.gep(_pointer(builder, arguments[0], 32), [arguments[1]])
        return builder.sext(builder.load(place), ir.IntType(64))

    return numba.int64(numba.int64, numba.int64), codegen


@intrinsic
def write_int(context, address, index, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        place = builder.gep(_pointer(builder, arguments[0], 32), [arguments[1]])
        builder.store(builder.trunc(arguments[2], ir.IntType(32)), place)
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64), codegen


@intrinsic
def read_long(context, address, index):  # type: ignore[no-untyped-def]
    """int64 number `index` of the array at an address."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(builder.gep(_pointer(builder, arguments[0], 64), [arguments[1]]))

    return numba.int64(numba.int64, numba.int64), codegen


@intrinsic
def write_long(context, address, index, value):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        builder.store(arguments[2], builder.gep(_pointer(builder, arguments[0], 64), [arguments[1]]))
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64), codegen


@intrinsic
def read_long_at(context, address):  # type: ignore[no-untyped-def]
    """The uint64 at any address."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.load(_pointer(builder, arguments[0], 64), align=1)

    return numba.uint64(numba.int64), codegen


@intrinsic
def toggle(context, address, token):  # type: ignore[no-untyped-def]
    """Flip bit `token` of the mask at an address."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        token = arguments[1]
        place = builder.gep(_pointer(builder, arguments[0], 32), [builder.lshr(token, ir.Constant(ir.IntType(64), 5))])
        shift = builder.trunc(builder.and_(token, ir.Constant(ir.IntType(64), 31)), ir.IntType(32))
        bit = builder.shl(ir.Constant(ir.IntType(32), 1), shift)
        builder.store(builder.xor(builder.load(place), bit), place)
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64), codegen


@intrinsic
def copy(context, target, source, size):  # type: ignore[no-untyped-def]
    """Copy `size` bytes."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        target, source, size = arguments
        cgutils.raw_memcpy(builder, _pointer(builder, target, 8), _pointer(builder, source, 8), size, 1)
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64), codegen


@intrinsic
def fill(context, target, value, size):  # type: ignore[no-untyped-def]
    """Set `size` bytes to a value."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        target, value, size = arguments
        cgutils.memset(builder, _pointer(builder, target, 8), size, builder.trunc(value, ir.IntType(8)))
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64), codegen


@intrinsic
def combine(context, target, source, words, exclusive):  # type: ignore[no-untyped-def]
    """target[w] |= source[w], or ^= where `exclusive` (a constant), for words of 32 bits that do not overlap."""

    def codegen(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        target, source, words, exclusive = arguments
        one, two = _pointer(builder, target, 32), _pointer(builder, source, 32)
        with cgutils.for_range(builder, words, intp=ir.IntType(64)) as loop:
            place = builder.gep(one, [loop.index])
            old, new = builder.load(place), builder.load(builder.gep(two, [loop.index]))
            builder.store(builder.select(exclusive, builder.xor(old, new), builder.or_(old, new)), place)
        return context.get_dummy_value()

    return numba.void(numba.int64, numba.int64, numba.int64, numba.boolean), codegen


@kernel()
def grown(array):  # type: ignore[no-untyped-def]
    """An array with twice the rows, of which the new ones are 0: to put two together as numpy does takes long to
    compile and to load."""
    out = np.empty((2 * array.shape[0],) + array.shape[1:], array.dtype)
    size = array.size * array.itemsize
    copy(out.ctypes.data, array.ctypes.data, size)
    fill(out.ctypes.data + size, 0, size)
    return out


@kernel(**BARE)
def largest_in(array):  # type: ignore[no-untyped-def]
    """The largest number of an array [n], none of them negative; -1 for none. What numba has for this, for copying rows
    and for ``in`` takes several times as long to compile, and loading it imports more of numba."""
    found = np.int64(-1)
    for i in range(array.size):
        found = max(found, np.int64(array[i]))
    return found


@kernel(**BARE)
def copy_row(out, i, row):  # type: ignore[no-untyped-def]
    """Row i of an array [·, n] = a row [n]."""
    for k in range(row.size):
        out[i, k] = row[k]
