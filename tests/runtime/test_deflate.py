"""Streams of deflate: whichever library writes them, the other reads them, and nothing else is read."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolc.runtime.format import deflate

RNG = random.Random(7)
DATA = {
    "empty": b"",
    "one": b"x",
    "zeros": bytes(100_000),
    "noise": RNG.randbytes(70_000),
    "numbers": bytes(n * n // 97 % 251 for n in range(50_000)),
    "rows": b"".join(bytes(n * k % 7 for k in range(200)) + b"%d" % n for n in range(3000)),
    "text": b"".join(b"token %d, " % RNG.randrange(300) for _ in range(9_000)),
}


@pytest.fixture(params=["isal", "zlib"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What deflate.py finds installed."""
    if request.param == "isal":
        pytest.importorskip("isal", reason="there is no isal for this machine")
    else:
        monkeypatch.setitem(sys.modules, "isal", None)
    deflate._isal.cache_clear()
    assert (deflate._isal() is None) == (request.param == "zlib")
    yield request.param
    deflate._isal.cache_clear()


@pytest.mark.parametrize("name", DATA)
def test_streams(library: str, name: str) -> None:
    data = DATA[name]
    stream = deflate.deflated(data)
    assert zlib.decompress(stream, -15) == data
    if name in ("zeros", "numbers", "rows", "text"):
        assert len(stream) < len(data) / 2
        assert library == "zlib" or len(stream) < 1.5 * len(zlib.compress(data, 1))
    for level in (0, 1, 9):
        assert deflate.inflated(memoryview(zlib.compress(data, level, -15)), len(data)) == data
    assert deflate.inflated(memoryview(stream), len(data)) == data


def test_what_is_refused(library: str) -> None:
    data = DATA["text"]
    stream = deflate.deflated(data)
    half = stream[: len(stream) // 2]
    for bad in (b"", half, stream[:-1], stream + b"\0", stream + stream, b"\xff" * 20, zlib.compress(data)):
        with pytest.raises(ValueError, match="stream"):
            deflate.inflated(memoryview(bad), len(data))
    for size in (0, 1, len(data) - 1, len(data) + 1, 1 << 40):
        with pytest.raises(ValueError, match="another size"):
            deflate.inflated(memoryview(stream), size)
    with pytest.raises(ValueError, match="another size"):
        deflate.inflated(memoryview(b""), 1)
    assert deflate.inflated(memoryview(b""), 0) == b""


@pytest.mark.parametrize("step", range(4))
def test_edited_streams(library: str, step: int) -> None:
    """They give other data of the right size, or are refused."""
    data = DATA["numbers"][:3000]
    stream = bytearray(deflate.deflated(data))
    for place in range(step, len(stream), 4):
        for bit in range(8):
            stream[place] ^= 1 << bit
            try:
                assert len(deflate.inflated(memoryview(bytes(stream)), len(data))) == len(data)
            except ValueError:
                pass
            stream[place] ^= 1 << bit


def test_a_bomb_takes_no_memory(library: str, tmp_path: Path) -> None:
    code = (
        "import resource, sys, zlib\n"
        + ("sys.modules['isal'] = None\n" if library == "zlib" else "")
        + "from toolc.runtime.format import deflate\n"
        "bomb = zlib.compress(bytes(1 << 28), 9, -15)\n"
        "deflate.inflated(memoryview(zlib.compress(b'x', 9, -15)), 1)\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: deflate.inflated(memoryview(bomb), 1000)\n"
        "except ValueError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 13)\n"
    )
    pytest.importorskip("resource", reason="memory is not told on this system")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "True"
