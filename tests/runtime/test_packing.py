"""Columns come back, by the kernel and by the plain passes alike; bytes and forms that are none are refused by both."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolc.runtime.format import packing
from toolc.runtime.format.kernels.unpack import read_columns  # loads the kernels, too

from .plain_packing import plain_pack

assert read_columns
NUMBERS = st.one_of(
    st.integers(-(1 << 31), (1 << 31) - 1),
    st.integers(-2, 260),
    st.sampled_from([0, 255, 65534, 65535, 65536, 1 << 24]),
)


FORMS = [0, 1, 2, 3, 4, 5, 8, 16, 17, 19, 26, 32, 64, 1 << 31]


def comb_of(rows: list[list[tuple[int, int]]], gap: int) -> np.ndarray:
    """Rows of (column, value), each at an offset of its own, put where they find room."""
    places = 400 + gap
    found = np.tile(np.array([-1, 0], np.int32), (places, 1))
    at = 0
    for row in rows:
        columns = dict(row)
        while any(found[at + column, 0] >= 0 for column in columns):
            at += 1
        for column, value in columns.items():
            found[at + column] = (at, value)
        at += 1
    return found


COMBS = st.builds(
    comb_of,
    st.lists(st.lists(st.tuples(st.integers(0, 30), NUMBERS), max_size=12), max_size=9),
    st.integers(0, 9),
)
ARRAYS = st.one_of(
    st.lists(NUMBERS, max_size=300).map(lambda x: np.array(x, np.int32)),
    st.lists(NUMBERS, max_size=99).map(lambda x: np.array(x + x + x, np.int32).reshape(-1, 3)),
    st.binary(max_size=99).map(lambda x: np.frombuffer(x, np.uint8)),
    st.lists(NUMBERS, max_size=60).map(lambda x: np.array([*x, *x], np.int64).astype(np.uint32).reshape(-1, 1, 2)),
    st.lists(st.integers(0, 300), max_size=300).map(lambda x: np.cumsum(x, dtype=np.int32)),
    st.just(np.zeros((4, 0, 2), np.int32)),
    COMBS,
)


def both(data: bytes, like: list[np.ndarray], forms: np.ndarray) -> list[np.ndarray] | None:
    """What they unpack to, or None where they are refused."""
    raw, kinds = np.frombuffer(data, np.uint8), [(a.dtype, a.shape) for a in like]
    room = packing.Room(kinds)
    fast = room.arrays()
    good = packing._read_at_once(raw, room, forms)
    plain = [np.empty(a.shape, a.dtype) for a in like]
    try:
        if packing.packed_size(kinds, forms.tolist()) != len(data):
            raise ValueError
        packing._read_one_by_one(raw, plain, forms.tolist())
    except ValueError:
        assert not good
        with pytest.raises(ValueError, match=r"."):
            packing.unpack(raw, kinds, forms)
        return None
    assert good
    for a, b in zip(fast, plain, strict=True):
        assert (a == b).all()
    return fast


@given(st.lists(st.tuples(ARRAYS, st.booleans(), st.booleans()), max_size=5))
def test_arrays_come_back(given_: list[tuple[np.ndarray, bool, bool]]) -> None:
    arrays = {str(n): array for n, (array, _, _) in enumerate(given_)}
    climbing = {str(n) for n, (_, climbs, _) in enumerate(given_) if climbs}
    combs = {str(n) for n, (array, _, comb) in enumerate(given_) if comb and array.shape[1:] == (2,)}
    data, forms = plain_pack(arrays, climbing, combs)
    at_once, same = packing.pack(arrays, climbing, combs)
    assert at_once == data
    assert same.dtype == forms.dtype and (same == forms).all()
    found = both(data, list(arrays.values()), forms)
    assert found is not None
    for array, back in zip(arrays.values(), found, strict=True):
        assert (array == back).all()


@given(
    st.lists(ARRAYS, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), max_size=4),
    st.lists(st.tuples(st.integers(0, 1 << 20), st.sampled_from(FORMS)), max_size=2),
)
def test_both_readers_agree_on_any_bytes(
    some: list[np.ndarray], bytes_: list[tuple[int, int]], numbers: list[tuple[int, int]]
) -> None:
    data, forms = packing.pack({str(n): a for n, a in enumerate(some)}, "0", "012")
    edited, form = bytearray(data), forms.copy()
    for at, value in bytes_:
        if edited:
            edited[at % len(edited)] = value
    for at, value in numbers:
        if form.size:
            form.reshape(-1)[at % form.size] = value
    both(bytes(edited), some, form)


def test_a_comb_takes_little() -> None:
    """A row with one value for a whole alphabet is one run."""
    comb = np.stack([np.repeat(np.arange(0, 3000, 100), 100), np.repeat(np.arange(30) * 7 % 11, 100)], 1)
    plain = packing.pack({"x": comb.astype(np.int32)})[0]
    assert len(packing.pack({"x": comb.astype(np.int32)}, (), "x")[0]) < len(plain) // 20


def test_runs_of_a_comb_lie_as_their_places_do() -> None:
    """Two rows, the shorter in a gap of the longer: bytes and forms by hand."""
    comb = np.array([(0, 7), (0, 7), (-1, 0), (1, 9), (0, 9), (-1, 0)], np.int32)
    data, forms = packing.pack({"x": comb}, (), "x")
    assert forms.tolist() == [[packing.COMB, 3, 0], [1, 0, 0], [1, 1, 0], [1, 0, 0], [1, 7, 0]]
    assert data == bytes([0, 1, 0, 0]) + bytes([1, 0, 0, 0]) + bytes([0, 2, 4, 0]) + bytes([0, 2, 2, 0])
    found = both(data, [comb], forms)
    assert found is not None and (found[0] == comb).all()


@pytest.mark.parametrize("free", [0, 255, 256, 2047, 2048])
@pytest.mark.parametrize("owned", [1, 255, 256, 2047, 2048, 5000])
def test_runs_of_any_length_are_packed_alike(free: int, owned: int) -> None:
    """Where a byte is too small for one, and where a block of places ends with it."""
    comb = np.array(2 * (free * [(-1, 0)] + owned * [(0, 9)]) + [(1, 3)], np.int32)
    data, forms = plain_pack({"x": comb}, (), "x")
    at_once, same = packing.pack({"x": comb}, (), "x")
    assert at_once == data and (same == forms).all()
    found = both(data, [comb], forms)
    assert found is not None and (found[0] == comb).all()


@pytest.mark.parametrize(("column", "number", "taken"), [(0, 3, True), (0, 4, False), (1, 3, True), (1, 255, False)])
def test_runs_that_pass_the_end_are_refused(column: int, number: int, taken: bool) -> None:
    """Two of three places are taken, one is free: a wider gap or a longer run has room for three more."""
    comb = np.array([(0, 7), (0, 7), (-1, 0), (-1, 0), (-1, 0)], np.int32)
    data, forms = packing.pack({"x": comb}, (), "x")
    assert data == b"" and forms[1:, 1].tolist() == [0, 2, 0, 7]
    forms[1 + column, 1] = number if column == 0 else 2 + number
    assert (both(data, [comb], forms) is not None) == taken


def test_a_few_far_numbers_cost_little() -> None:
    near = np.arange(4000, dtype=np.int32) % 200
    far = near.copy()
    far[::1000] = 1 << 20
    assert len(packing.pack({"x": far})[0]) == len(packing.pack({"x": near})[0]) + 16


def test_no_comb_is_stored_as_it_is() -> None:
    for comb in ([[-1, 5]], [[3, 0]], [[-2, 0]], [[0, 1], [1, 2], [-1, -1]]):
        array = np.array(comb, np.int32)
        data, forms = packing.pack({"x": array}, (), "x")
        assert forms[0, 0] != packing.COMB
        found = both(data, [array], forms)
        assert found is not None and (found[0] == array).all()
