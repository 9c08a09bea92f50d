"""Raw deflate and CRC-32 by ISA-L where it is installed, in an eighth of zlib's time, half to inflate; else by zlib.

Leaves out   what is deflated (packing.py), and where it stands in a file (container.py).
Invariants   each inflates what the other has deflated. Nothing is inflated to more than was asked for. Equal data gives
             equal streams with one library on one kind of machine, no more.
Source       RFC 1951.
"""

from __future__ import annotations

import zlib
from functools import cache
from typing import Any

RAW = -zlib.MAX_WBITS  # without the frame and checksum of zlib
_FASTEST = 1  # level of zlib
_FAST, _THOROUGH = 2, 3  # levels of ISA-L; the first may leave long streams three times as long as the second
_LONG = 1 << 18


@cache
def _isal() -> Any:
    """The library; None where it is not installed."""
    try:
        from isal import isal_zlib
    except ImportError:
        return None
    return isal_zlib


def deflated(data: bytes | memoryview) -> bytes:
    """A stream that inflates to the data."""
    isal = _isal()
    if isal is not None:
        found: bytes = isal.compress(data, _FAST if len(data) < _LONG else _THOROUGH, RAW)
        return found
    # In the codes that the format fixes: a tenth longer, and inflated in a sixth less time.
    stream = zlib.compressobj(_FASTEST, zlib.DEFLATED, RAW, zlib.DEF_MEM_LEVEL, zlib.Z_FIXED)
    return stream.compress(data) + stream.flush()


def crc32(data: Any) -> int:
    """CRC-32 of bytes, or of a contiguous array."""
    found: int = (_isal() or zlib).crc32(data)
    return found


def inflated(stream: memoryview, size: int) -> bytes:
    """What a stream inflates to.

    Args:
        stream: exactly one, or nothing.
        size: bytes that it must inflate to.

    Raises ValueError: it is no such stream.
    """
    if not stream.nbytes and not size:
        return b""
    library = _isal() or zlib
    one = library.decompressobj(RAW)
    try:
        data: bytes = one.decompress(stream, size + 1)  # one more: the end of the stream is read, too
    except library.error as error:
        raise ValueError(f"no stream of deflate: {error}") from error
    if len(data) != size or not one.eof or one.unused_data:
        raise ValueError("a stream of another size")
    return data
