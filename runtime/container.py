"""The container of both files: a checked header, then little-endian arrays, memory mapped or deflated.

Layout       8 bytes magic, uint32 version, uint32 header length, 16 bytes header digest, header (msgpack map of
             ``arrays`` and ``meta``), zeros up to a multiple of 64, then each array at the next multiple of 64, zeros
             between; the file ends with the last byte of the last array. An array whose stored size is smaller than
             its own is a zlib stream.
             The header digest is BLAKE2b-128 of magic, version, length and header, which holds the digest of every
             array as stored and as such. The content address is that of magic, version, meta and every array's name,
             dtype, shape and own digest: it does not depend on how the arrays are stored.
Leaves out   what the arrays mean: see vocab.py and tables.py.
Invariants   equal input gives equal bytes (with one zlib) and one address (with any); a file is whole or absent;
             nothing is unpickled or executed; an array is handed out only after every check of `open_container`
             passed. A mapped file is trusted not to be overwritten in place while open (our writer replaces files, it
             never rewrites them).
"""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import secrets
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np

from .errors import BundleError

ALIGN = 64
DIGEST_BYTES = 16
PREFIX = struct.Struct("<8sII16s")
DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name).newbyteorder("<") for name in ("uint8", "int32", "uint32")}
MAX_FILE_BYTES = 4 << 30
MAX_HEADER_BYTES = 256 << 20
MAX_NAME_BYTES = 64
MAX_DIMENSIONS = 4
MAX_ARRAYS = 256
TEMPORARY = ".tmp"  # how the names of half-written files end
DEFLATE_LEVEL = 3
MIN_DEFLATE, MAX_DEFLATE = 256, 1 << 20  # smaller arrays gain nothing, larger ones are worth mapping

Buffer = bytes | bytearray | memoryview | np.ndarray


@dataclass(frozen=True)
class Container:
    """An opened, verified container.

    Attributes:
        name: the file as errors call it.
        meta: the header's ``meta``.
        arrays: read-only views, in the order of the header.
        digest: the content address, hex.
        size: bytes of the whole container.
    """

    name: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    digest: str
    size: int


def blake(*parts: Any) -> bytes:
    """BLAKE2b-128 of the parts (bytes, or contiguous arrays) joined."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        state.update(part)
    return state.digest()


def _aligned(n: int) -> int:
    return -(-n // ALIGN) * ALIGN


class Encoded(NamedTuple):
    """A container before it is written: everything before the first array, the arrays as stored, the address (hex)."""

    prefix: bytes
    stored: list[memoryview]
    digest: str


def encode(
    magic: bytes, version: int, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray], deflate: bool = False
) -> Encoded:
    """Encode a container; `deflate` stores arrays of middling size as zlib streams where that is smaller."""
    assert len(magic) == 8
    entries: list[dict[str, Any]] = []
    stored: list[memoryview] = []
    end = 0
    for name, array in arrays.items():
        flat = _flat(name, array)
        data = flat.data
        entry: dict[str, Any] = {
            "name": name,
            "dtype": array.dtype.name,
            "shape": list(array.shape),
            "digest": blake(flat),
        }
        if deflate and MIN_DEFLATE <= flat.size <= MAX_DEFLATE:
            packed = zlib.compress(flat.data, DEFLATE_LEVEL)
            if len(packed) < flat.size:
                data = memoryview(packed)
        entry |= {"offset": _aligned(end), "stored": len(data)}
        entry |= {"stored_digest": entry["digest"] if len(data) == flat.size else blake(data)}
        end = entry["offset"] + len(data)
        entries.append(entry)
        stored.append(data)
    header = msgpack.packb({"arrays": entries, "meta": dict(meta)}, use_bin_type=True)
    head = struct.pack("<8sII", magic, version, len(header))
    prefix = head + blake(head, header) + header
    content = [(e["name"], e["dtype"], e["shape"], e["digest"]) for e in entries]
    return Encoded(prefix + bytes(_aligned(len(prefix)) - len(prefix)), stored, _address(magic, version, meta, content))


def _flat(name: str, array: np.ndarray) -> np.ndarray:
    """The bytes of an array, contiguous and little-endian; uint8."""
    dtype = array.dtype.name
    if dtype not in DTYPES:
        raise TypeError(f"array {name} is {dtype}, a container holds {', '.join(DTYPES)}")
    return np.ascontiguousarray(array, dtype=DTYPES[dtype]).reshape(-1).view(np.uint8)


def _address(magic: bytes, version: int, meta: Mapping[str, Any], content: Sequence[tuple[Any, ...]]) -> str:
    """The content address, hex, from (name, dtype, shape, digest) of every array."""
    packed = msgpack.packb([version, dict(meta), [list(entry) for entry in content]], use_bin_type=True)
    return blake(magic, packed).hex()


def address(magic: bytes, version: int, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """The content address, hex, of a container that is not written."""
    content = [(name, a.dtype.name, list(a.shape), blake(_flat(name, a))) for name, a in arrays.items()]
    return _address(magic, version, meta, content)


def encode_container(
    magic: bytes, version: int, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray], deflate: bool = False
) -> bytes:
    """A whole container as bytes."""
    encoded = encode(magic, version, meta, arrays, deflate)
    return b"".join([encoded.prefix, *_padded(encoded.stored)])


def _padded(stored: list[memoryview]) -> Iterator[bytes | memoryview]:
    """The arrays with the zeros between them."""
    end = 0
    for data in stored:
        yield bytes(_aligned(end) - end)
        yield data
        end = _aligned(end) + len(data)


def write_container(
    path: str | os.PathLike[str],
    magic: bytes,
    version: int,
    meta: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    deflate: bool = False,
) -> str:
    """Write a container, whole or not at all (`replace_file`); return its address, hex."""
    encoded = encode(magic, version, meta, arrays, deflate)
    replace_file(Path(path), [encoded.prefix, *_padded(encoded.stored)])
    return encoded.digest


def replace_file(target: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file beside `target`, flush it to the disk, and move it into place.

    On any error, a Ctrl-C included, the neighbouring file is removed and `target` is as it was.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}{TEMPORARY}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BundleError(
            "cannot write the file",
            place=str(target),
            found=error.strerror or str(error),
            hint="check that the folder exists, that it can be written, and that the disk has room",
        ) from error


def peek_header(name: str, read: Callable[[int], bytes], magic: bytes) -> dict[str, Any]:
    """The meta of a container without its arrays, of which nothing is known after this.

    Args:
        name: how errors call it.
        read: gives the first n bytes of the file, or the whole of a shorter one.
        magic: the 8 bytes that must open it; any version will do.
    """
    first = read(PREFIX.size)
    if len(first) < PREFIX.size or first[:8] != magic:
        raise refuse(name, "magic", repr(first[:8]), magic.decode("ascii"), "this is no such file")
    _, _, length, digest = PREFIX.unpack(first)
    if length > MAX_HEADER_BYTES:
        raise refuse(name, "header length", length, f"at most {MAX_HEADER_BYTES}", DAMAGED)
    data = read(PREFIX.size + length)
    header = data[PREFIX.size :]
    if len(header) != length or blake(data[:16], header) != digest:
        raise refuse(name, "header digest", "another digest", digest.hex(), DAMAGED)
    return _read_header(name, header)[0]


def open_container(
    source: str | os.PathLike[str] | Buffer,
    magic: bytes,
    version: int,
    *,
    name: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
) -> Container:
    """Map and verify a container.

    The checks, in this order: size cap, magic, version, header length, header digest, header structure, place of
    every array (aligned, no holes, no overlaps, ending with the file), zero padding, digest of every array as stored,
    size of every deflated array, its own digest.

    Args:
        source: a path, or the bytes themselves.
        magic: the 8 bytes that must open it.
        version: the one format version that this runtime reads.
        name: how errors call it; the path if absent.
        max_bytes: the size cap.

    Raises:
        BundleError: naming file and field, what was found, what was expected and a likely cause.
    """
    if isinstance(source, bytes | bytearray | memoryview | np.ndarray):
        name = name or "<buffer>"
        raw = np.frombuffer(source, dtype=np.uint8)
        _check_size(name, raw.size, max_bytes)
    else:
        name = name or str(source)
        raw = _map(name, Path(source), max_bytes)
    raw.flags.writeable = False
    return _verify(name, raw, magic, version)


def refuse(name: str, field: str, found: object, expected: object, hint: str, message: str = "") -> BundleError:
    """The error for one field of one file."""
    return BundleError(message, place=f"{name}#{field}", found=str(found), expected=str(expected), hint=hint)


DAMAGED = "the file is damaged or was edited; copy it again or compile it again"
UNSOUND = "the file was written by a faulty or hostile program; compile it again"


def _check_size(name: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise refuse(name, "size", f"{size} bytes", f"at most {max_bytes}", "raise max_bytes if the file is meant")


def _map(name: str, path: Path, max_bytes: int) -> np.ndarray:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_size(name, size, max_bytes)
            if size == 0:
                return np.zeros(0, dtype=np.uint8)
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype=np.uint8)
    except OSError as error:
        raise BundleError(
            "cannot read the file", place=name, found=error.strerror or str(error), hint="check the path and its rights"
        ) from error


def _verify(name: str, raw: np.ndarray, magic: bytes, version: int) -> Container:
    size = int(raw.size)
    wanted = magic.decode("ascii")
    if size < PREFIX.size:
        if bytes(raw[:8]) != magic[: min(size, 8)]:
            raise refuse(name, "magic", repr(bytes(raw[:8])), wanted, f"this is no {wanted} file")
        raise refuse(name, "size", f"{size} bytes", f"at least {PREFIX.size}", "the file was cut off; " + DAMAGED)
    found_magic, found_version, length, digest = PREFIX.unpack(raw[: PREFIX.size].tobytes())
    if found_magic != magic:
        raise refuse(name, "magic", repr(found_magic), wanted, f"this is no {wanted} file")
    if found_version != version:
        newer = found_version > version
        hint = "upgrade toolc, or compile again with this one" if newer else "compile again with this toolc"
        age = "a newer" if newer else "an older"
        raise refuse(name, "version", found_version, version, f"written by {age} toolc; {hint}")
    most = min(MAX_HEADER_BYTES, size - PREFIX.size)
    if length > most:
        raise refuse(name, "header length", length, f"at most {most}", "the file was cut off; " + DAMAGED)
    header = raw[PREFIX.size : PREFIX.size + length].tobytes()
    if blake(raw[:16].tobytes(), header) != digest:
        raise refuse(name, "header digest", blake(raw[:16].tobytes(), header).hex(), digest.hex(), DAMAGED)
    start = _aligned(PREFIX.size + length)
    meta, entries = _read_header(name, header)
    if raw[PREFIX.size + length : start].any():
        raise refuse(name, "padding", "other bytes", "zeros after the header", DAMAGED)
    data = raw[start:]
    views: dict[str, np.ndarray] = {}
    end = 0
    for entry in entries:
        expected = _aligned(end)
        if entry.offset != expected:
            why = "overlaps the one before" if entry.offset < end else "is not at the next multiple of 64"
            raise refuse(name, f"{entry.name}/offset", entry.offset, expected, UNSOUND, f"the array {why}")
        end = entry.offset + entry.stored
    if start + end != size:
        short = start + end > size
        hint = "the file was cut off; " + DAMAGED if short else "something was appended; " + DAMAGED
        raise refuse(name, "size", f"{size} bytes", start + end, hint)
    end = 0
    for entry in entries:
        if data[end : entry.offset].any():
            raise refuse(name, f"{entry.name}/padding", "other bytes", "zeros before the array", DAMAGED)
        end = entry.offset + entry.stored
        flat = data[entry.offset : end]
        _check_digest(name, entry, flat, entry.stored_digest)
        if entry.stored < entry.nbytes:
            flat = _inflate(name, entry, flat)
            _check_digest(name, entry, flat, entry.digest)
        elif entry.digest != entry.stored_digest:
            raise refuse(name, f"{entry.name}/digest", entry.stored_digest.hex(), entry.digest.hex(), DAMAGED)
        views[entry.name] = flat.view(entry.dtype).reshape(entry.shape)
    content = [(e.name, e.dtype.name, list(e.shape), e.digest) for e in entries]
    return Container(name, meta, views, _address(magic, version, meta, content), size)


def _check_digest(name: str, entry: Entry, flat: np.ndarray, want: bytes) -> None:
    found = blake(flat)
    if found != want:
        raise refuse(name, f"{entry.name}/digest", found.hex(), want.hex(), DAMAGED)


def _inflate(name: str, entry: Entry, stored: np.ndarray) -> np.ndarray:
    """The bytes of a deflated array; never more than its shape says."""
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(stored.data, entry.nbytes + 1)  # one more: the end of the stream is read, too
    except zlib.error as error:
        raise refuse(name, f"{entry.name}/stored", str(error), "a zlib stream", UNSOUND) from error
    if len(data) != entry.nbytes or not stream.eof or stream.unused_data:
        raise refuse(name, f"{entry.name}/stored", "a zlib stream of another size", f"{entry.nbytes} bytes", UNSOUND)
    return np.frombuffer(data, np.uint8)


class Entry(NamedTuple):
    """One array of the header; `nbytes` of its own, `stored` in the file."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int
    offset: int
    stored: int
    digest: bytes
    stored_digest: bytes


def _read_header(name: str, header: bytes) -> tuple[dict[str, Any], list[Entry]]:
    try:
        value = msgpack.unpackb(header, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise refuse(name, "header", f"{type(error).__name__}: {error}", "one msgpack map", UNSOUND) from error
    if not isinstance(value, dict) or sorted(value) != ["arrays", "meta"]:
        keys = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise refuse(name, "header", keys, "a map of arrays and meta", UNSOUND)
    meta, listed = value["meta"], value["arrays"]
    if not isinstance(meta, dict):
        raise refuse(name, "meta", type(meta).__name__, "a map", UNSOUND)
    if not isinstance(listed, list):
        raise refuse(name, "arrays", type(listed).__name__, "a list", UNSOUND)
    if len(listed) > MAX_ARRAYS:
        raise refuse(name, "arrays", len(listed), f"at most {MAX_ARRAYS} arrays", UNSOUND)
    _check_plain(name, meta)
    entries: list[Entry] = []
    seen: set[str] = set()
    for number, item in enumerate(listed):
        entry = _read_entry(name, number, item)
        if entry.name in seen:
            raise refuse(name, f"arrays/{number}/name", entry.name, "a name not used before", UNSOUND)
        seen.add(entry.name)
        entries.append(entry)
    return meta, entries


def _check_plain(name: str, meta: dict[str, Any]) -> None:
    """Only null, booleans, numbers, strings, bytes, lists and maps with string keys; no msgpack extensions."""
    todo: list[tuple[str, Any]] = [("meta", meta)]
    while todo:
        place, value = todo.pop()
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    raise refuse(name, place, f"a key of type {type(key).__name__}", "string keys", UNSOUND)
                todo.append((f"{place}/{key}", item))
        elif isinstance(value, list):
            todo.extend((place, item) for item in value)
        elif value is not None and not isinstance(value, bool | int | float | str | bytes):
            raise refuse(name, place, type(value).__name__, "plain data", UNSOUND)


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_FILE_BYTES


_KEYS = ("name", "dtype", "shape", "digest", "offset", "stored", "stored_digest")


def _read_entry(name: str, number: int, item: object) -> Entry:
    place = f"arrays/{number}"
    if not isinstance(item, dict) or sorted(map(str, item)) != sorted(_KEYS):
        found = sorted(map(str, item)) if isinstance(item, dict) else type(item).__name__
        raise refuse(name, place, found, f"a map of {', '.join(_KEYS)}", UNSOUND)
    key, dtype, shape, digest, offset, stored, stored_digest = (item[k] for k in _KEYS)
    if not isinstance(key, str) or not key or len(key.encode()) > MAX_NAME_BYTES:
        raise refuse(name, f"{place}/name", repr(key)[:80], f"a name of 1 to {MAX_NAME_BYTES} bytes", UNSOUND)
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise refuse(name, f"{key}/dtype", repr(dtype)[:80], f"one of {', '.join(DTYPES)}", UNSOUND)
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(_is_size(n) for n in shape):
        raise refuse(
            name, f"{key}/shape", repr(shape)[:80], f"{MAX_DIMENSIONS} sizes at most, 0 to {MAX_FILE_BYTES}", UNSOUND
        )
    size = DTYPES[dtype].itemsize * math.prod(shape)
    if size > MAX_FILE_BYTES:
        raise refuse(name, f"{key}/shape", shape, f"at most {MAX_FILE_BYTES} bytes", UNSOUND)
    if not _is_size(offset) or offset % ALIGN:
        raise refuse(name, f"{key}/offset", repr(offset)[:80], f"a multiple of {ALIGN}", UNSOUND)
    if not _is_size(stored) or stored > size or (stored < size and size > MAX_DEFLATE):
        raise refuse(name, f"{key}/stored", repr(stored)[:80], f"{size}, or less if at most {MAX_DEFLATE}", UNSOUND)
    for field, value in (("digest", digest), ("stored_digest", stored_digest)):
        if not isinstance(value, bytes) or len(value) != DIGEST_BYTES:
            raise refuse(name, f"{key}/{field}", repr(value)[:80], f"{DIGEST_BYTES} bytes", UNSOUND)
    return Entry(key, DTYPES[dtype], tuple(shape), size, offset, stored, digest, stored_digest)
