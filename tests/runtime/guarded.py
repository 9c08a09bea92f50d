"""Kernels that check every address before they read or write there: for processes of tests only, which load them first.

numba checks the indices of arrays (NUMBA_BOUNDSCHECK=1). It cannot check what is read by address (memory.py): here the
functions that do are replaced before kernels are loaded, by ones that know where every table begins and ends.

Leaves out   the kernels that pack and unpack columns (format/kernels/pack.py, unpack.py), which check their bytes
             themselves; what lies at a seat's or a host's own address, where every place is a constant.
Invariants   an address inside of a table that is tracked reaches no other, whatever index is added to it; an empty
             table has no place to read. Bytes, and rows that are copied, are read from tracked tables only.
Arrays       at ADDRESS int64: how many tables are tracked; then of each where it begins and ends.
"""

from __future__ import annotations

import ctypes
import importlib
import mmap
from functools import cached_property
from types import ModuleType
from typing import Any

import numba
import numpy as np

from toolc.runtime.format.tables import Tables
from toolc.runtime.jit import memory

ADDRESS = 0x2000_0000_0000
"""Where the list is: known to the compiled kernels, which are kept on disk."""
SIZE = 1 << 20
_MAP_FIXED_NOREPLACE = 0x100000


def _mapped() -> np.ndarray:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED_NOREPLACE
    found = libc.mmap(ADDRESS, SIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if found != ADDRESS:
        raise OSError(ctypes.get_errno(), f"no memory at {ADDRESS:#x}")
    return np.ctypeslib.as_array((ctypes.c_int64 * (SIZE // 8)).from_address(ADDRESS))


_list = _mapped()
_alive: list[np.ndarray] = []


def track(*arrays: np.ndarray) -> None:
    """Kernels that are given an address in one of these arrays stay in it."""
    for array in arrays:
        begin, n = array.__array_interface__["data"][0], len(_alive)
        _list[1 + 2 * n], _list[2 + 2 * n] = begin, begin + array.nbytes
        _alive.append(array)
        _list[0] = n + 1


def tracked() -> int:
    """How many there are."""
    return len(_alive)


def forget(count: int) -> None:
    """Track only the first so many."""
    del _alive[count:]
    _list[0] = count


_long, _int, _set_int = memory.read_long, memory.read_int, memory.write_int
_byte, _toggle, _copy, _fill, _combine = memory.read_byte, memory.toggle, memory.copy, memory.fill, memory.combine


@numba.njit
def check(address, offset, size, strict):  # type: ignore[no-untyped-def]
    """Refuse an access of `size` bytes at `offset` from an address that leaves the table in which that lies; of an
    address in no table where ``strict``."""
    for i in range(_long(ADDRESS, 0) - 1, -1, -1):
        begin, end = _long(ADDRESS, 1 + 2 * i), _long(ADDRESS, 2 + 2 * i)
        if begin <= address and (address < end or begin == end == address):
            if address + offset < begin or address + offset + size > end:
                raise IndexError("a kernel leaves a table")
            return
    if strict:
        raise IndexError("a kernel reads outside of all tables")


@numba.njit
def read_int(address, index):  # type: ignore[no-untyped-def]
    check(address, 4 * index, 4, False)
    return _int(address, index)


@numba.njit
def write_int(address, index, value):  # type: ignore[no-untyped-def]
    check(address, 4 * index, 4, False)
    _set_int(address, index, value)


@numba.njit
def read_byte(address):  # type: ignore[no-untyped-def]
    check(address, 0, 1, True)
    return _byte(address)


@numba.njit
def toggle(address, token):  # type: ignore[no-untyped-def]
    check(address, 4 * (token >> 5), 4, True)
    _toggle(address, token)


@numba.njit
def copy(target, source, size):  # type: ignore[no-untyped-def]
    check(source, 0, size, True)
    check(target, 0, size, True)
    _copy(target, source, size)


@numba.njit
def fill(target, value, size):  # type: ignore[no-untyped-def]
    check(target, 0, size, size > 0)
    _fill(target, value, size)


@numba.njit
def combine(target, source, words, exclusive):  # type: ignore[no-untyped-def]
    check(source, 0, 4 * words, True)
    check(target, 0, 4 * words, True)
    _combine(target, source, words, exclusive)


def load() -> ModuleType:
    """Load the kernels of matchers and of the checks with these functions, and track what they are given."""
    own = {f.__name__: f for f in (read_int, write_int, read_byte, toggle, copy, fill, combine)}
    before = {name: getattr(memory, name) for name in own}
    for name in ("unpack", "pack"):
        importlib.import_module(f"toolc.runtime.format.kernels.{name}")
    vars(memory).update(own)
    try:
        kernels = importlib.import_module("toolc.runtime.host.kernels")
        importlib.import_module("toolc.runtime.format.kernels.check")
    finally:
        vars(memory).update(before)
    _track_tables()
    _track_what_is_shared()
    _track_sequences()
    return kernels


def _track_tables() -> None:
    """Every table of a bundle apart, so that none ends where the next begins."""
    made, addresses = Tables.from_arrays, Tables.__dict__["addresses"].func

    def from_arrays(arrays: dict[str, np.ndarray], _: object = None) -> Tables:
        return made({name: np.array(array) for name, array in arrays.items()})

    def tracking(t: Tables) -> dict[str, int]:
        track(*t.arrays().values())
        found: dict[str, int] = addresses(t)
        return found

    Tables.from_arrays = staticmethod(from_arrays)  # type: ignore[method-assign, assignment]
    known: Any = cached_property(tracking)
    known.__set_name__(Tables, "addresses")
    Tables.addresses = known  # type: ignore[method-assign]


def _track_what_is_shared() -> None:
    from toolc.runtime.host import shared as host

    class Shared(host.Shared):
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            track(*self.arrays.values())

    host.Shared = Shared  # type: ignore[misc]
    expand = host.Host.expand

    def expanding(self: Any, row: int, out: np.ndarray) -> None:
        track(out)
        expand(self, row, out)

    host.Host.expand = expanding  # type: ignore[method-assign]


def _track_sequences() -> None:
    from toolc.runtime.host import matcher

    place = matcher.Seat.place
    fill_mask = matcher._fill_mask

    def placing(self: Any, history: np.ndarray, frames: np.ndarray, registers: np.ndarray) -> None:
        track(history, frames, registers)
        place(self, history, frames, registers)

    def filling(at: int, mask: np.ndarray) -> int:
        if isinstance(mask, np.ndarray):
            track(mask)
        code: int = fill_mask(at, mask)
        return code

    matcher.Seat.place = placing  # type: ignore[method-assign]
    matcher._fill_mask = filling
