"""The container of both files: a checked header, the small arrays in one deflated stream, large ones memory mapped.

Layout       8 bytes magic, uint32 version, uint32 header length, 16 bytes header digest, header (msgpack map of
             ``arrays``, ``packed`` and ``meta``); the stream; then each array of more than 1 MiB (of a comb: 16 MiB).
             Stream and arrays begin at multiples of 64, zeros between; the file ends with the last of them.
             The header digest is BLAKE2b-128 of magic, version, length and header, which holds the digests of the
             stream, of what it unpacks to (packing.py), and of every mapped array. The content address is that of
             magic, version and header but for the stream as stored: it does not depend on zlib.
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np

from .errors import BundleError
from .packing import pack, unpack

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
DEFLATE_LEVEL = 1
MAX_PACKED = 1 << 20  # larger arrays are worth mapping,
MAX_COMB = 1 << 26  # but for combs, which take a tenth when packed
MAX_UNPACKED = 1 << 28  # bytes of all packed arrays

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


class Contents:
    """What a container holds, packed and hashed but not deflated.

    Attributes:
        digest: the content address, hex.

    Args:
        magic: the 8 bytes that open it.
        version: of its format.
        meta: the header's ``meta``.
        arrays: by name.
        climbing: names of arrays that are smaller as differences.
        combs: names of arrays that are combs (packing.py); they are packed up to 16 MiB.
        packs: whether small arrays are packed; otherwise each is stored as it is, which takes room and saves time.
    """

    def __init__(
        self,
        magic: bytes,
        version: int,
        meta: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        climbing: Collection[str] = (),
        combs: Collection[str] = (),
        packs: bool = True,
    ) -> None:
        assert len(magic) == 8
        entries: list[list[Any]] = []
        small: dict[str, np.ndarray] = {}
        self._mapped: list[np.ndarray] = []
        room = MAX_UNPACKED if packs else -1
        for name, array in arrays.items():
            if array.dtype.name not in DTYPES:
                raise TypeError(f"array {name} is {array.dtype.name}, a container holds {', '.join(DTYPES)}")
            digest = None
            if array.nbytes <= min(room, MAX_COMB if name in combs else MAX_PACKED):
                small[name] = array
                room -= array.nbytes
            else:
                flat = _flat(array)
                digest = blake(flat)
                self._mapped.append(flat)
            entries.append([name, array.dtype.name, list(array.shape), digest])
        self._packed, forms = pack(small, climbing, combs)
        packed = [len(self._packed), blake(self._packed), forms.tobytes()]
        self._magic, self._version = magic, version
        self._header = {"arrays": entries, "meta": dict(meta), "packed": packed}
        self.digest = _address(magic, version, self._header)

    def _parts(self) -> Iterator[bytes | memoryview]:
        """The file: what is before the stream, it, and the mapped arrays, with the zeros between them."""
        stream = _deflated(self._packed) if self._packed else b""
        size, digest, forms = self._header["packed"]
        header = _packb({**self._header, "packed": [len(stream), blake(stream), size, digest, forms]})
        head = struct.pack("<8sII", self._magic, self._version, len(header))
        end = 0
        parts: list[bytes | memoryview] = [head + blake(head, header) + header, stream]
        for data in parts + [flat.data for flat in self._mapped]:
            yield bytes(_aligned(end) - end)
            yield data
            end = _aligned(end) + len(data)

    def encode(self) -> bytes:
        """The file as bytes."""
        return b"".join(self._parts())

    def write(self, path: str | os.PathLike[str]) -> str:
        """Write the file, whole or not at all (`replace_file`); return its address, hex."""
        replace_file(Path(path), self._parts())
        return self.digest


def _deflated(data: bytes) -> bytes:
    """A zlib stream in the codes that the format fixes: a tenth longer, and inflated in a sixth less time."""
    stream = zlib.compressobj(DEFLATE_LEVEL, zlib.DEFLATED, zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_FIXED)
    return stream.compress(data) + stream.flush()


def _packb(value: Any) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def _flat(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, contiguous and little-endian; uint8."""
    return np.ascontiguousarray(array, dtype=DTYPES[array.dtype.name]).reshape(-1).view(np.uint8)


def _address(magic: bytes, version: int, content: Mapping[str, Any]) -> str:
    """The content address, hex."""
    return blake(magic, _packb([version, content["meta"], content["arrays"], *content["packed"]])).hex()


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
    return _read_header(name, header).meta


def open_container(
    source: str | os.PathLike[str] | Buffer,
    magic: bytes,
    version: int,
    *,
    name: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
) -> Container:
    """Map and verify a container.

    The checks, in this order: size cap, magic, version, header length, header digest, header structure, size of the
    file (which is that of what the header lists), zero padding, digest of every mapped array, digest of the stream,
    size and digest of what it unpacks to.

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
            if size <= MAX_PACKED:  # mapping costs more than reading
                return np.frombuffer(file.read(MAX_PACKED + 1), dtype=np.uint8)
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
    found = _read_header(name, header)
    stored = [("packed", found.packed.stored), *((e.name, e.nbytes) for e in found.entries if e.digest is not None)]
    views: list[np.ndarray] = []
    end = PREFIX.size + length
    for field, bytes_ in stored:
        begin, before = _aligned(end), end
        end = begin + bytes_
        if end > size:
            raise refuse(name, "size", f"{size} bytes", f"{end}, for {field}", "the file was cut off; " + DAMAGED)
        if begin > before and raw[before:begin].any():
            raise refuse(name, f"{field}/padding", "other bytes", "zeros before it", DAMAGED)
        views.append(raw[begin:end])
    if end != size:
        raise refuse(name, "size", f"{size} bytes", end, "something was appended; " + DAMAGED)
    unpacked = iter(_unpack(name, found, views[0]))
    mapped = iter(views[1:])
    arrays: dict[str, np.ndarray] = {}
    for entry in found.entries:
        if entry.digest is None:
            arrays[entry.name] = next(unpacked)
        else:
            flat = next(mapped)
            _check_digest(name, f"{entry.name}/digest", flat, entry.digest)
            arrays[entry.name] = flat.view(entry.dtype).reshape(entry.shape)
    return Container(name, found.meta, arrays, _address(magic, version, found.content), size)


def _check_digest(name: str, field: str, data: Any, want: bytes) -> None:
    found = blake(data)
    if found != want:
        raise refuse(name, field, found.hex(), want.hex(), DAMAGED)


def _unpack(name: str, header: Header, stored: np.ndarray) -> list[np.ndarray]:
    """The packed arrays; what is inflated is never more than the header says."""
    packed = header.packed
    _check_digest(name, "packed/stored digest", stored, packed.stored_digest)
    stream = zlib.decompressobj()
    try:
        # One more: the end of the stream is read, too.
        data = stream.decompress(stored.data, packed.size + 1) if stored.size else b""
    except zlib.error as error:
        raise refuse(name, "packed/stored", str(error), "a zlib stream", UNSOUND) from error
    if len(data) != packed.size or (stored.size and not stream.eof) or stream.unused_data:
        raise refuse(name, "packed/stored", "a zlib stream of another size", f"{packed.size} bytes", UNSOUND)
    _check_digest(name, "packed/digest", data, packed.digest)
    try:
        return unpack(np.frombuffer(data, np.uint8), header.small, packed.forms)
    except ValueError as error:
        raise refuse(name, "packed/forms", str(error), "the forms of these columns", UNSOUND) from error


class Entry(NamedTuple):
    """One array of the header: `nbytes` of its own; a digest if it is mapped, None if it is packed."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int
    digest: bytes | None


class Packed(NamedTuple):
    """The stream: its bytes and digest as stored, those of what it unpacks to, and the forms of packing.py."""

    stored: int
    stored_digest: bytes
    size: int
    digest: bytes
    forms: np.ndarray


class Header(NamedTuple):
    """A header that was checked; `small` are the kinds of the packed arrays, `content` what the address is made of."""

    meta: dict[str, Any]
    entries: list[Entry]
    small: list[tuple[np.dtype[Any], tuple[int, ...]]]
    packed: Packed
    content: dict[str, Any]


def _read_header(name: str, header: bytes) -> Header:
    try:
        value = msgpack.unpackb(header, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise refuse(name, "header", f"{type(error).__name__}: {error}", "one msgpack map", UNSOUND) from error
    if not isinstance(value, dict) or sorted(value) != ["arrays", "meta", "packed"]:
        keys = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise refuse(name, "header", keys, "a map of arrays, meta and packed", UNSOUND)
    meta, listed, packed = value["meta"], value["arrays"], value["packed"]
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
    unpacked = sum(entry.nbytes for entry in entries if entry.digest is None)
    if unpacked > MAX_UNPACKED:
        raise refuse(name, "packed", unpacked, f"at most {MAX_UNPACKED} bytes of packed arrays", UNSOUND)
    small = [(entry.dtype, entry.shape) for entry in entries if entry.digest is None]
    found = _read_packed(name, packed, 2 * unpacked + 64 * MAX_ARRAYS)
    return Header(meta, entries, small, found, {"meta": meta, "arrays": listed, "packed": packed[2:]})


def _read_packed(name: str, item: object, most: int) -> Packed:
    if not isinstance(item, list) or len(item) != 5:
        raise refuse(name, "packed", repr(item)[:80], "stored size, digest, size, digest, forms", UNSOUND)
    stored, stored_digest, size, digest, forms = item
    for value in (stored, size):
        if not _is_size(value):
            raise refuse(name, "packed/size", repr(value)[:80], f"0 to {MAX_FILE_BYTES}", UNSOUND)
    for value in (stored_digest, digest):
        if not _is_digest(value):
            raise refuse(name, "packed/digest", repr(value)[:80], f"{DIGEST_BYTES} bytes", UNSOUND)
    if size > most:
        raise refuse(name, "packed/size", size, f"at most {most}, for the arrays that it holds", UNSOUND)
    if not isinstance(forms, bytes) or len(forms) % 12:
        raise refuse(name, "packed/forms", repr(forms)[:80], "three numbers for every column", UNSOUND)
    return Packed(stored, stored_digest, size, digest, np.frombuffer(forms, dtype="<u4").reshape(-1, 3))


_TEXT = frozenset((str,))
_PLAIN = frozenset((type(None), bool, int, float, str, bytes))
_NESTED = _PLAIN | {dict, list}


def _check_plain(name: str, meta: dict[str, Any]) -> None:
    """Only null, booleans, numbers, strings, bytes, lists and maps with string keys; no msgpack extensions."""
    rest: list[Any] = [meta]
    for value in rest:
        if type(value) is dict:
            if not _TEXT.issuperset(map(type, value)):
                _find_unplain(name, meta)
            value = value.values()
        kinds = set(map(type, value))
        if _PLAIN.issuperset(kinds):
            continue
        if not _NESTED.issuperset(kinds):
            _find_unplain(name, meta)
        rest.extend(item for item in value if type(item) not in _PLAIN)


def _find_unplain(name: str, meta: dict[str, Any]) -> None:
    """Refuse what is not plain, with its place."""
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
    return type(value) is int and 0 <= value <= MAX_FILE_BYTES


def _is_digest(value: object) -> bool:
    return isinstance(value, bytes) and len(value) == DIGEST_BYTES


def _read_entry(name: str, number: int, item: object) -> Entry:
    if type(item) is not list or len(item) != 4:
        raise refuse(name, f"arrays/{number}", repr(item)[:80], "name, dtype, shape, digest", UNSOUND)
    key, dtype, shape, digest = item
    if type(key) is not str or not key or len(key) > MAX_NAME_BYTES or len(key.encode()) > MAX_NAME_BYTES:
        raise refuse(name, f"arrays/{number}/name", repr(key)[:80], f"a name of 1 to {MAX_NAME_BYTES} bytes", UNSOUND)
    kind = DTYPES.get(dtype) if type(dtype) is str else None
    if kind is None:
        raise refuse(name, f"{key}/dtype", repr(dtype)[:80], f"one of {', '.join(DTYPES)}", UNSOUND)
    if type(shape) is not list or len(shape) > MAX_DIMENSIONS or not all(map(_is_size, shape)):
        raise refuse(
            name, f"{key}/shape", repr(shape)[:80], f"{MAX_DIMENSIONS} sizes at most, 0 to {MAX_FILE_BYTES}", UNSOUND
        )
    size = kind.itemsize * math.prod(shape)
    if size > MAX_FILE_BYTES:
        raise refuse(name, f"{key}/shape", shape, f"at most {MAX_FILE_BYTES} bytes", UNSOUND)
    if digest is None:
        if size > MAX_COMB:
            raise refuse(name, f"{key}/shape", shape, f"at most {MAX_COMB} bytes of a packed array", UNSOUND)
    elif not _is_digest(digest):
        raise refuse(name, f"{key}/digest", repr(digest)[:80], f"{DIGEST_BYTES} bytes, or none", UNSOUND)
    return Entry(key, kind, tuple(shape), size, digest)
