"""Writing, finding and opening the two files."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from toolc.runtime import Bundle, BundleError, Matcher, Vocab, find_vocab, vocab_cache_dir
from toolc.runtime.format import container as c
from toolc.runtime.host.kernels import FIELDS
from toolc.runtime.host.shared import Host

from .handmade import bundle, tiny_vocab


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("TOOLC_CACHE", str(folder))
    return folder


def test_round_trip(tmp_path: Path) -> None:
    made = bundle("brackets")
    for standalone in (False, True):
        path = tmp_path / f"{standalone}.toolc"
        made.write(path, standalone=standalone)
        back = Bundle.open(path, vocab=None if standalone else made.vocab)
        assert back.meta == made.meta and back.digest == made.digest
        for name, array in made.tables.arrays().items():
            assert (back.tables.arrays()[name] == array).all() and back.tables.arrays()[name].shape == array.shape
            assert not back.tables.arrays()[name].flags.writeable
        assert back.vocab.digest == made.vocab.digest
        again = tmp_path / "again.toolc"
        back.write(again, standalone=standalone)
        assert again.read_bytes() == path.read_bytes()


def test_vocab_round_trip(tmp_path: Path) -> None:
    vocab = tiny_vocab()
    assert vocab.write(tmp_path / "v.vocab") == vocab.digest
    back = Vocab.open(tmp_path / "v.vocab")
    assert back.digest == vocab.digest and back.meta == vocab.meta
    assert (
        back.token(1) == b"<call>"
        and back.shown(0) == "<eot>"
        and back.shown(2) == "no text"
        and back.shown(4) == "'['"
    )
    assert (tmp_path / "v.vocab").read_bytes() == vocab.encode()


def test_opened_tables_are_not_copied(tmp_path: Path) -> None:
    bundle("brackets").write(tmp_path / "b.toolc", standalone=True)
    opened = Bundle.open(tmp_path / "b.toolc")
    host = Host(opened)
    assert host.at[FIELDS["delta"]] == opened.tables.delta.ctypes.data
    assert not opened.tables.delta.flags.writeable


def test_where_the_vocab_is_looked_for(tmp_path: Path, cache: Path) -> None:
    made = bundle("brackets")
    path = tmp_path / "b.toolc"
    made.write(path)
    digest = made.vocab.digest
    with pytest.raises(BundleError) as caught:
        Bundle.open(path)
    for part in (digest, str(tmp_path / f"{digest}.vocab"), str(cache / f"{digest}.vocab"), "--standalone"):
        assert part in str(caught.value)
    assert find_vocab(digest) is None
    made.vocab.write(vocab_cache_dir() / f"{digest}.vocab")
    assert find_vocab(digest) == cache / f"{digest}.vocab"
    assert Bundle.open(path).vocab.digest == digest
    made.vocab.write(tmp_path / f"{digest}.vocab")
    assert find_vocab(digest, beside=path) == tmp_path / f"{digest}.vocab"
    assert Bundle.open(path, vocab=tmp_path / f"{digest}.vocab").vocab.name == str(tmp_path / f"{digest}.vocab")


def test_another_vocab_is_refused(tmp_path: Path) -> None:
    made = bundle("brackets")
    made.write(tmp_path / "b.toolc")
    other = tiny_vocab(97)
    other.write(tmp_path / "other.vocab")
    for vocab in (other, tmp_path / "other.vocab"):
        with pytest.raises(BundleError) as caught:
            Bundle.open(tmp_path / "b.toolc", vocab=vocab)
        assert made.vocab.digest in str(caught.value) and other.digest in str(caught.value)


def test_cache_dir(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLC_CACHE", raising=False)
    monkeypatch.setenv("HOME", "h")
    monkeypatch.setenv("XDG_CACHE_HOME", os.path.abspath("x"))
    assert vocab_cache_dir() == Path("x").absolute() / "toolc"
    for ignored in ("x", "./x", ""):  # as the XDG Base Directory Specification says of what is relative
        monkeypatch.setenv("XDG_CACHE_HOME", ignored)
        assert vocab_cache_dir() == Path("h") / ".cache" / "toolc"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert vocab_cache_dir() == Path("h") / ".cache" / "toolc"


@pytest.mark.parametrize("failing", ["replace", "fsync"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_nothing_half_written(
    failing: str, error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.toolc"
    path.write_bytes(b"before")

    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(os, failing, fail)
    with pytest.raises((KeyboardInterrupt, BundleError)) as caught:
        bundle("brackets").write(path)
    assert isinstance(error, KeyboardInterrupt) or "No space left" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["b.toolc"]
    assert path.read_bytes() == b"before"


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="cannot read"):
        Bundle.open(tmp_path / "none.toolc")
    with pytest.raises(BundleError, match="cannot read"):
        Bundle.open(tmp_path)
    with pytest.raises(BundleError, match="cannot write"):
        bundle("brackets").write(tmp_path / "no" / "folder.toolc")


def test_arrays_come_back_and_bytes_repeat() -> None:
    arrays = {
        "a": np.arange(3, dtype=np.uint8),
        "b": np.zeros((0, 2), np.int32),
        "c": np.arange(4, dtype=np.uint32).reshape(2, 2),
    }
    data = c.Contents(b"TOOLCBND", 1, {"x": [1, "y", None]}, arrays).encode()
    assert data == c.Contents(b"TOOLCBND", 1, {"x": [1, "y", None]}, arrays).encode()
    plain = c.Contents(b"TOOLCBND", 1, {}, arrays, most=-1).encode()
    for held in (c.open_container(data, b"TOOLCBND", 1), c.open_container(plain, b"TOOLCBND", 1)):
        assert list(held.arrays) == ["a", "b", "c"]
        for name, array in arrays.items():
            assert (held.arrays[name] == array).all() and held.arrays[name].shape == array.shape
    with pytest.raises(TypeError, match="float64"):
        c.Contents(b"TOOLCBND", 1, {}, {"a": np.zeros(1)}).encode()


def test_checksums_stand_for_digests_only_where_both_sides_say_so() -> None:
    arrays = {"a": np.arange(100, dtype=np.int32)}
    data = c.Contents(b"TOOLCPRT", 1, {}, arrays, most=-1, hashed=c.quick).encode()
    assert (c.open_container(data, b"TOOLCPRT", 1, hashed=c.quick).arrays["a"] == arrays["a"]).all()
    with pytest.raises(BundleError, match="a/digest"):
        c.open_container(data, b"TOOLCPRT", 1)
    edited = bytearray(data)
    edited[-1] ^= 1
    with pytest.raises(BundleError, match="a/digest"):
        c.open_container(bytes(edited), b"TOOLCPRT", 1, hashed=c.quick)


def test_small_arrays_are_packed() -> None:
    """All kinds of columns come back, at the ends of their ranges; large arrays are mapped."""
    pick = np.random.default_rng(1)
    ends = np.array([-(1 << 31), (1 << 31) - 1, 0, -1, -(1 << 31)], np.int32)
    arrays = {
        "climbs": np.arange(1000, dtype=np.int32) * 70_000 - 9,
        "wraps": ends,
        "ends": ends,
        "same": np.full(77, -5, np.int32),
        "pairs": np.stack([pick.integers(-1, 250, 99), pick.integers(0, 1 << 24, 99)], 1).astype(np.int32),
        "wide": pick.integers(0, 1 << 17, (5, 9), dtype=np.int32),
        "noise": np.frombuffer(pick.bytes(999), np.uint8),
        "bits": np.array([[0xFFFFFFFF, 0], [1 << 31, 7]], np.uint32),
        "nothing": np.zeros((3, 0, 2), np.int32),
        "no pairs": np.zeros((0, 2), np.int32),
        "huge": np.zeros(c.MAX_PACKED + 4, np.uint8),
    }
    climbing = {"climbs", "wraps", "pairs", "no pairs"}
    data = c.Contents(b"TOOLCBND", 1, {"x": 1}, arrays, climbing).encode()
    assert c.MAX_PACKED < len(data) < c.MAX_PACKED + 4000
    held = c.open_container(data, b"TOOLCBND", 1)
    assert held.digest == c.Contents(b"TOOLCBND", 1, {"x": 1}, arrays, climbing).digest
    assert held.digest != c.Contents(b"TOOLCBND", 1, {"x": 2}, arrays, climbing).digest
    for name, array in arrays.items():
        found = held.arrays[name]
        assert found.dtype == array.dtype and found.shape == array.shape and (found == array).all(), name
        assert not found.flags.writeable


def test_the_address_does_not_depend_on_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"x": np.arange(1000, dtype=np.int32) // 9}
    data = c.Contents(b"TOOLCBND", 1, {}, arrays).encode()
    monkeypatch.setattr(c, "deflated", lambda data: zlib.compress(data, 0, -15))
    other = c.Contents(b"TOOLCBND", 1, {}, arrays).encode()
    assert data != other
    assert c.open_container(data, b"TOOLCBND", 1).digest == c.open_container(other, b"TOOLCBND", 1).digest


def test_importing_loads_little() -> None:
    """The runtime alone, in a fresh interpreter: no torch, no numba, nothing of the compiler."""
    code = (
        "import sys, toolc.runtime as r; r.Bundle, r.Vocab, r.errors;"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('torch', 'numba', 'lark', 'tokenizers')"
        " or m.startswith('toolc.compiler')]; print(bad)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_place_for_a_kernel_cache(tmp_path: Path) -> None:
    """A read-only install without a home: said once, and it works."""
    code = (
        "import warnings; warnings.simplefilter('always')\n"
        "import numba.core.caching as k\n"
        "k.CacheImpl._locator_classes = []\n"
        "from toolc.runtime import Bundle, Matcher\n"
        f"print(Matcher(Bundle.open({str(tmp_path / 'b.toolc')!r})).allowed_tokens().tolist())\n"
    )
    bundle("brackets").write(tmp_path / "b.toolc", standalone=True)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(Matcher(bundle("brackets")).allowed_tokens().tolist())
    assert done.stderr.count("cannot keep compiled kernels") == 1
