"""The container of both files: a checked header, then raw little-endian arrays that are memory mapped.

Layout       8 bytes magic, uint32 version, uint32 header length, 16 bytes header digest, header (msgpack map of
             ``arrays`` and ``meta``), zeros up to a multiple of 64, then each array at the next multiple of 64, zeros
             between; the file ends with the last byte of the last array.
             The header digest is BLAKE2b-128 of magic, version, length and header; as the header holds the digest of
             every array, it is the content address of the whole file.
Leaves out   what the arrays mean: see vocab.py and tables.py.
Invariants   equal input gives equal bytes; a file is whole or absent; nothing is unpickled or executed; an array is
             handed out only after every check of `open_container` passed. A mapped file is trusted not to be
             overwritten in place while open (our writer replaces files, it never rewrites them).
"""

from __future__ import annotations

import hashlib
import mmap
import os
import secrets
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

Buffer = bytes | bytearray | memoryview | np.ndarray


@dataclass(frozen=True)
class Container:
    """An opened, verified container.

    Attributes:
        name: the file as errors call it.
        meta: the header's ``meta``.
        arrays: read-only views, in the order of the header.
        data: uint8 [·], everything from the first array on; views of it are aligned to 64 bytes.
        offsets: of each array in `data`, in bytes.
        digest: the header digest, hex: the content address.
        size: bytes of the whole container.
    """

    name: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    data: np.ndarray
    offsets: dict[str, int]
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


def encode_header(
    magic: bytes, version: int, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
) -> tuple[bytes, list[np.ndarray]]:
    """The bytes before the first array, padding included, and the arrays as contiguous little-endian uint8."""
    assert len(magic) == 8
    entries: list[dict[str, Any]] = []
    raw: list[np.ndarray] = []
    end = 0
    for name, array in arrays.items():
        dtype = array.dtype.name
        if dtype not in DTYPES:
            raise TypeError(f"array {name} is {dtype}, a container holds {', '.join(DTYPES)}")
        contiguous = np.ascontiguousarray(array, dtype=DTYPES[dtype])
        flat = contiguous.reshape(-1).view(np.uint8)
        offset = _aligned(end)
        end = offset + flat.size
        entries.append(
            {"name": name, "dtype": dtype, "shape": list(array.shape), "offset": offset, "digest": blake(flat)}
        )
        raw.append(flat)
    header = msgpack.packb({"arrays": entries, "meta": dict(meta)}, use_bin_type=True)
    head = struct.pack("<8sII", magic, version, len(header))
    prefix = head + blake(head, header) + header
    return prefix + bytes(_aligned(len(prefix)) - len(prefix)), raw


def header_digest(prefix: bytes) -> str:
    """The content address, hex, that the bytes of `encode_header` carry."""
    return prefix[16 : 16 + DIGEST_BYTES].hex()


def encode_container(magic: bytes, version: int, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """A whole container as bytes."""
    prefix, raw = encode_header(magic, version, meta, arrays)
    parts: list[bytes] = [prefix]
    end = 0
    for flat in raw:
        parts.append(bytes(_aligned(end) - end))
        parts.append(flat.tobytes())
        end = _aligned(end) + flat.size
    return b"".join(parts)


def write_container(
    path: str | os.PathLike[str],
    magic: bytes,
    version: int,
    meta: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
) -> str:
    """Write a container beside `path`, flush it to the disk, and move it into place; return its digest, hex.

    On any error, a Ctrl-C included, the neighbouring file is removed and `path` is as it was.
    """
    target = Path(path)
    prefix, raw = encode_header(magic, version, meta, arrays)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(prefix)
                end = 0
                for flat in raw:
                    file.write(bytes(_aligned(end) - end))
                    file.write(flat.data)
                    end = _aligned(end) + flat.size
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
    return header_digest(prefix)


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
    every array (aligned, no holes, no overlaps, ending with the file), zero padding, digest of every array.

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
    offsets: dict[str, int] = {}
    end = 0
    for key, dtype, _, count, offset, _ in entries:
        expected = _aligned(end)
        if offset != expected:
            why = "overlaps the one before" if offset < end else "is not at the next multiple of 64"
            raise refuse(name, f"{key}/offset", offset, expected, UNSOUND, f"the array {why}")
        end = offset + count * dtype.itemsize
        offsets[key] = offset
    if start + end != size:
        short = start + end > size
        hint = "the file was cut off; " + DAMAGED if short else "something was appended; " + DAMAGED
        raise refuse(name, "size", f"{size} bytes", start + end, hint)
    end = 0
    for key, dtype, shape, count, offset, want in entries:
        if data[end:offset].any():
            raise refuse(name, f"{key}/padding", "other bytes", "zeros before the array", DAMAGED)
        end = offset + count * dtype.itemsize
        flat = data[offset:end]
        found = blake(flat)
        if found != want:
            raise refuse(name, f"{key}/digest", found.hex(), want.hex(), DAMAGED)
        views[key] = flat.view(dtype).reshape(shape)
    return Container(name, meta, views, data, offsets, digest.hex(), size)


Entry = tuple[str, "np.dtype[Any]", tuple[int, ...], int, int, bytes]


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
    _check_plain(name, meta)
    entries: list[Entry] = []
    seen: set[str] = set()
    for number, item in enumerate(listed):
        entry = _read_entry(name, number, item)
        if entry[0] in seen:
            raise refuse(name, f"arrays/{number}/name", entry[0], "a name not used before", UNSOUND)
        seen.add(entry[0])
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


def _read_entry(name: str, number: int, item: object) -> Entry:
    place = f"arrays/{number}"
    if not isinstance(item, dict) or sorted(map(str, item)) != ["digest", "dtype", "name", "offset", "shape"]:
        found = sorted(map(str, item)) if isinstance(item, dict) else type(item).__name__
        raise refuse(name, place, found, "a map of name, dtype, shape, offset, digest", UNSOUND)
    key, dtype, shape, offset, digest = (item[k] for k in ("name", "dtype", "shape", "offset", "digest"))
    if not isinstance(key, str) or not key or len(key.encode()) > MAX_NAME_BYTES:
        raise refuse(name, f"{place}/name", repr(key)[:80], f"a name of 1 to {MAX_NAME_BYTES} bytes", UNSOUND)
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise refuse(name, f"{key}/dtype", repr(dtype)[:80], f"one of {', '.join(DTYPES)}", UNSOUND)
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(_is_size(n) for n in shape):
        raise refuse(
            name, f"{key}/shape", repr(shape)[:80], f"{MAX_DIMENSIONS} sizes at most, 0 to {MAX_FILE_BYTES}", UNSOUND
        )
    count = 1
    for n in shape:
        count *= n
    if count * DTYPES[dtype].itemsize > MAX_FILE_BYTES:
        raise refuse(name, f"{key}/shape", shape, f"at most {MAX_FILE_BYTES} bytes", UNSOUND)
    if not _is_size(offset) or offset % ALIGN:
        raise refuse(name, f"{key}/offset", repr(offset)[:80], f"a multiple of {ALIGN}", UNSOUND)
    if not isinstance(digest, bytes) or len(digest) != DIGEST_BYTES:
        raise refuse(name, f"{key}/digest", repr(digest)[:80], f"{DIGEST_BYTES} bytes", UNSOUND)
    return key, DTYPES[dtype], tuple(shape), count, offset, digest
