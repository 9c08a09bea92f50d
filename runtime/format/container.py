"""The container of both files: a checked header, the small arrays in one deflated stream, large ones memory mapped.

Layout       8 bytes magic, uint32 version, header length, stream length and CRC-32 of the stream, 16 bytes header
             digest, header (msgpack map of ``arrays``, ``packed`` and ``meta``); the stream, which is raw deflate; then
             each array of more than 1 MiB (of a bundle 64 MiB) that is no comb. Stream and arrays begin at multiples
             of 64, zeros between; the file ends with the last of them.
             The header digest is BLAKE2b-128 of magic, version and header, which holds the digests of what the stream
             unpacks to (packing.py) and of every mapped array. It is the content address, too: nothing that depends on
             deflate.py does goes into it. The CRC-32 tells an edited stream from one that another library wrote.
Leaves out   what the arrays mean: see vocab.py and tables.py.
Invariants   equal input gives one address, and equal bytes where it is deflated alike; a file is whole or absent;
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np

from ..errors import BundleError, VersionError
from .deflate import crc32, deflated, inflated
from .packing import Kind, pack, unpack

ALIGN = 64
DIGEST_BYTES = 16
PREFIX = struct.Struct("<8sIIII16s")
DTYPES: dict[str, np.dtype[Any]] = {"uint8": np.dtype("u1"), "int32": np.dtype("<i4"), "uint32": np.dtype("<u4")}
DIMENSIONS = 8  # times these the kind of an array in the header, plus the number of its dtype
MAX_FILE_BYTES = 4 << 30
MAX_HEADER_BYTES = 32 << 20  # 26,000 tools take 12 MiB
# An empty list of msgpack is one byte, and 72 when unpacked: of maps and lists a header may hold 2^14 and one for every
# two bytes, at most
MAX_CONTAINERS = 1 << 19
MAX_VALUES = 1 << 22  # what stands in these, keys among it
MAX_NAME_BYTES = 64
MAX_DIMENSIONS = 4
MAX_ARRAYS = 256
TEMPORARY = ".tmp"  # how the names of half-written files end
MAX_PACKED = 1 << 20  # larger arrays are worth mapping, if nothing else is said, but for combs
MAX_UNPACKED = 1 << 30  # bytes of all packed arrays

_NUMBER = {dtype: number for number, dtype in enumerate(DTYPES.values())}
_KINDS = {
    DIMENSIONS * dimensions + number: (dtype, dimensions, dtype.itemsize)
    for dimensions in range(MAX_DIMENSIONS + 1)
    for dtype, number in _NUMBER.items()
}

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
        addresses: where each array lies.
    """

    name: str
    meta: dict[str, Any]
    arrays: dict[str, np.ndarray]
    digest: str
    size: int
    addresses: dict[str, int]


def blake(*parts: Any) -> bytes:
    """BLAKE2b-128 of the parts (bytes, or contiguous arrays) joined."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        state.update(part)
    return state.digest()


def quick(data: Any) -> bytes:
    """CRC-32 and length of a contiguous array, in the room of a digest: tells damage, but no intent, in a fifth of the
    time."""
    return struct.pack("<QQ", crc32(data), memoryview(data).nbytes)


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
        combs: names of arrays that are combs (packing.py); they are packed whatever their size.
        most: other arrays are packed up to so many bytes; with -1 none is, which takes room and saves time.
        addresses: where some of them lie, if known, which are contiguous.
        hashed: gives the digest of an array that is not packed.
    """

    def __init__(
        self,
        magic: bytes,
        version: int,
        meta: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        climbing: Collection[str] = (),
        combs: Collection[str] = (),
        most: int = MAX_PACKED,
        addresses: Mapping[str, int] | None = None,
        hashed: Callable[[Any], bytes] = blake,
    ) -> None:
        assert len(magic) == 8
        small: dict[str, np.ndarray] = {}
        digests: list[bytes | None] = []
        self._mapped: list[np.ndarray] = []
        room = MAX_UNPACKED if most >= 0 else -1
        for name, array in arrays.items():
            if array.dtype not in _NUMBER:
                raise TypeError(f"array {name} is {array.dtype}, a container holds {', '.join(DTYPES)}")
            if array.nbytes <= (room if name in combs else min(room, most)):
                small[name] = array
                room -= array.nbytes
                digests.append(None)
            else:
                flat = _flat(array)
                digests.append(hashed(flat))
                self._mapped.append(flat)
        self._packed, forms = pack(small, climbing, combs, addresses)
        kinds = bytes(DIMENSIONS * array.ndim + _NUMBER[array.dtype] for array in arrays.values())
        sizes = [size for array in arrays.values() for size in array.shape]
        header = {
            "arrays": [list(arrays), kinds, sizes, digests],
            "meta": dict(meta),
            "packed": [len(self._packed), blake(self._packed), forms.tobytes()],
        }
        self._magic, self._version = magic, version
        self._header: bytes = msgpack.packb(header, use_bin_type=True)
        self._digest = _address(magic, version, self._header)
        self.digest = self._digest.hex()

    def _parts(self) -> Iterator[bytes | memoryview]:
        """The file: what is before the stream, it, and the mapped arrays, with the zeros between them."""
        stream = deflated(self._packed) if self._packed else b""
        lengths = len(self._header), len(stream), crc32(stream)
        prefix = PREFIX.pack(self._magic, self._version, *lengths, self._digest)
        end = 0
        parts: list[bytes | memoryview] = [prefix + self._header, stream]
        for data in parts + [flat.data for flat in self._mapped]:
            yield bytes(_aligned(end) - end)
            yield data
            end = _aligned(end) + len(data)

    def encode(self) -> bytes:
        """The file as bytes."""
        return b"".join(self._parts())

    def write(self, path: str | os.PathLike[str], flush: bool = True) -> str:
        """Write the file, whole or not at all (`replace_file`); return its address, hex."""
        replace_file(Path(path), self._parts(), flush)
        return self.digest


def _flat(array: np.ndarray) -> np.ndarray:
    """The bytes of an array, contiguous and little-endian; uint8."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _address(magic: bytes, version: int, header: bytes) -> bytes:
    """The content address."""
    return blake(magic, version.to_bytes(4, "little"), header)


def replace_file(target: Path, parts: Iterable[bytes | memoryview], flush: bool = True) -> None:
    """Write a file beside `target`, flush it to the disk, and move it into place.

    On any error, a Ctrl-C included, the neighbouring file is removed and `target` is as it was. What is there and no
    file is not replaced. Without ``flush`` the file may be damaged where the machine stops soon after.
    """
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}{TEMPORARY}")
    try:
        if target.exists() and not target.is_file():
            raise OSError("it is a folder, a device or a pipe")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(parts)
                file.flush()
                if flush:
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
    _, version, length, _, _, digest = PREFIX.unpack(first)
    if length > MAX_HEADER_BYTES:
        raise refuse(name, "header length", length, f"at most {MAX_HEADER_BYTES}", DAMAGED)
    data = read(PREFIX.size + length)
    header = data[PREFIX.size :]
    if len(header) != length or _address(magic, version, header) != digest:
        raise refuse(name, "header digest", "another digest", digest.hex(), DAMAGED)
    return _read_header(name, header).meta


def open_container(
    source: str | os.PathLike[str] | Buffer,
    magic: bytes,
    version: int,
    *,
    name: str | None = None,
    max_bytes: int = MAX_FILE_BYTES,
    hashed: Callable[[Any], bytes] = blake,
) -> Container:
    """Map and verify a container.

    The checks, in this order: size cap, magic, version, header length, header digest, header structure, size of the
    file (which is that of what the header lists), zero padding, checksum of the stream, size and digest of what it
    unpacks to, digest of every mapped array.

    Args:
        source: a path, or the bytes themselves.
        magic: the 8 bytes that must open it.
        version: the one format version that this runtime reads.
        name: how errors call it; the path if absent.
        max_bytes: the size cap.
        hashed: what the writer took the digests of arrays with.

    Raises:
        BundleError: naming file and field, what was found, what was expected and a likely cause.
    """
    if isinstance(source, bytes | bytearray | memoryview | np.ndarray):
        name = name or "<buffer>"
        raw = np.frombuffer(source, dtype=np.uint8)
        _check_size(name, raw.size, max_bytes)
    else:
        name = name or str(source)
        raw = _map(name, source, max_bytes)
    raw.flags.writeable = False
    return _verify(name, raw, magic, version, hashed)


def refuse(name: str, field: str, found: object, expected: object, hint: str, message: str = "") -> BundleError:
    """The error for one field of one file."""
    return BundleError(message, place=f"{name}#{field}", found=str(found), expected=str(expected), hint=hint)


DAMAGED = "the file is damaged or was edited; copy it again or compile it again"
UNSOUND = "the file was written by a faulty or hostile program; compile it again"


def _check_size(name: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise refuse(name, "size", f"{size} bytes", f"at most {max_bytes}", "raise max_bytes if the file is meant")


def _map(name: str, path: str | os.PathLike[str], max_bytes: int) -> np.ndarray:
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


_FILES = {b"TOOLCBND": "a bundle", b"TOOLCVOC": "a vocab"}


def _other_file(name: str, head: bytes, magic: bytes) -> BundleError:
    """The error about a file of another kind, which says what it seems to be."""
    wanted = _FILES.get(magic, magic.decode("ascii"))
    other = _FILES.get(head[:8])
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if other is not None:
        found, hint = f"{other} of toolc", f"give {wanted}; {other} is another file"
    elif start in (b"{", b"[") or name.lower().endswith((".json", ".yaml", ".yml", ".lark")):
        found, hint = (
            f"{head[:12]!r}",
            "a spec or grammar is compiled first: `toolc compile`, or compile_tools in Python",
        )
    else:
        found, hint = f"{head[:8]!r}" if head else "an empty file", f"this is not {wanted}, or it was damaged"
    return refuse(name, "magic", found, f"{wanted} of toolc, which begins with {magic.decode('ascii')}", hint)


def _verify(name: str, raw: np.ndarray, magic: bytes, version: int, hashed: Callable[[Any], bytes]) -> Container:
    size = int(raw.size)
    if size < PREFIX.size:
        if bytes(raw[:8]) != magic[: min(size, 8)]:
            raise _other_file(name, bytes(raw[:64]), magic)
        raise refuse(name, "size", f"{size} bytes", f"at least {PREFIX.size}", "the file was cut off; " + DAMAGED)
    found_magic, found_version, length, stored, checksum, digest = PREFIX.unpack(raw[: PREFIX.size].tobytes())
    if found_magic != magic:
        raise _other_file(name, bytes(raw[:64]), magic)
    if found_version != version:
        newer = found_version > version
        hint = "upgrade toolc, or compile again with this one" if newer else "compile again with this toolc"
        age = "a newer" if newer else "an older"
        raise VersionError(
            place=f"{name}#version",
            found=str(found_version),
            expected=str(version),
            hint=f"written by {age} toolc; {hint}",
        )
    most = min(MAX_HEADER_BYTES, size - PREFIX.size)
    if length > most:
        raise refuse(name, "header length", length, f"at most {most}", "the file was cut off; " + DAMAGED)
    header = raw[PREFIX.size : PREFIX.size + length].tobytes()
    address = _address(magic, version, header)
    if address != digest:
        raise refuse(name, "header digest", address.hex(), digest.hex(), DAMAGED)
    found = _read_header(name, header)
    end = PREFIX.size + length

    def part(field: str, nbytes: int) -> np.ndarray:
        """The next part of the file."""
        nonlocal end
        begin, before = _aligned(end), end
        end = begin + nbytes
        if end > size:
            raise refuse(name, "size", f"{size} bytes", f"{end}, for {field}", "the file was cut off; " + DAMAGED)
        if begin > before and raw[before:begin].any():
            raise refuse(name, f"{field}/padding", "other bytes", "zeros before it", DAMAGED)
        return raw[begin:end]

    stream = part("packed", stored)
    mapped = [(entry, part(entry.name, entry.nbytes)) for entry in found.mapped]
    if end != size:
        raise refuse(name, "size", f"{size} bytes", end, "something was appended; " + DAMAGED)
    if (crc := crc32(stream.data)) != checksum:
        raise refuse(name, "packed/checksum", f"{crc:08x}", f"{checksum:08x}", DAMAGED)
    arrays, addresses = _unpack(name, found, stream)
    for entry, flat in mapped:
        _check_digest(name, f"{entry.name}/digest", hashed(flat), entry.digest)
        arrays[entry.name] = flat.view(entry.dtype).reshape(entry.shape)
        addresses[entry.name] = flat.__array_interface__["data"][0]
    if mapped:
        arrays = {key: arrays[key] for key in found.names}
    return Container(name, found.meta, arrays, address.hex(), size, addresses)


def _check_digest(name: str, field: str, found: bytes, want: bytes) -> None:
    if found != want:
        raise refuse(name, field, found.hex(), want.hex(), DAMAGED)


def _unpack(name: str, header: Header, stored: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The packed arrays and where they lie; what is inflated is never more than the header says."""
    try:
        data = inflated(stored.data, header.size)
    except ValueError as error:
        raise refuse(name, "packed/stream", str(error), f"one that inflates to {header.size} bytes", UNSOUND) from error
    _check_digest(name, "packed/digest", blake(data), header.digest)
    try:
        room = unpack(np.frombuffer(data, np.uint8), list(header.small.values()), header.forms)
    except ValueError as error:
        raise refuse(name, "packed/forms", str(error), "the forms of these columns", UNSOUND) from error
    arrays = dict(zip(header.small, room.arrays(), strict=True))
    return arrays, dict(zip(header.small, room.addresses(), strict=True))


class Mapped(NamedTuple):
    """An array that is stored as it is."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    nbytes: int
    digest: bytes


class Header(NamedTuple):
    """A header that was checked: `size`, `digest` and `forms` (packing.py) are of what the stream unpacks to."""

    meta: dict[str, Any]
    names: list[str]
    small: dict[str, Kind]
    mapped: list[Mapped]
    size: int
    digest: bytes
    forms: np.ndarray


_LEADS = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))  # bytes that maps and lists of msgpack begin with


def _unpacked(header: bytes) -> Any:
    """What a header holds, in no more memory than MAX_CONTAINERS and MAX_VALUES allow.

    Raises:
        ValueError, UnpackException: it is none, or holds more.
    """
    reader = msgpack.Unpacker(max_buffer_size=len(header))
    reader.feed(header)
    reader.skip()  # makes room for nothing: no list is longer than the bytes that are there
    most = min(MAX_CONTAINERS, (1 << 14) + len(header) // 2)
    if len(header) - len(header.translate(None, _LEADS)) <= most and len(header) <= MAX_VALUES:
        return msgpack.unpackb(header, raw=False, strict_map_key=True)
    containers = values = 0

    def count(found: Any) -> Any:
        nonlocal containers, values
        containers, values = containers + 1, values + len(found)
        if containers > most or values > MAX_VALUES:
            raise ValueError(f"more than {most} maps and lists, or {MAX_VALUES} values in them")
        return found

    longest = {"max_array_len": MAX_VALUES, "max_map_len": MAX_VALUES}
    return msgpack.unpackb(header, raw=False, strict_map_key=True, list_hook=count, object_hook=count, **longest)


def _read_header(name: str, header: bytes) -> Header:
    try:
        value = _unpacked(header)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise refuse(name, "header", f"{type(error).__name__}: {error}", "one msgpack map", UNSOUND) from error
    if not isinstance(value, dict) or sorted(value) != ["arrays", "meta", "packed"]:
        keys = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise refuse(name, "header", keys, "a map of arrays, meta and packed", UNSOUND)
    meta: dict[str, Any] = value["meta"]
    _check_types(name, "", [meta], {"meta": dict})
    _check_plain(name, meta)
    names, small, mapped, unpacked = _read_arrays(name, value["arrays"])
    return Header(meta, names, small, mapped, *_read_packed(name, value["packed"], 2 * unpacked + 64 * MAX_ARRAYS))


def _check_types(name: str, place: str, item: object, wanted: Mapping[str, type]) -> None:
    """Refuse what is no list of values of these types."""
    if type(item) is not list or len(item) != len(wanted):
        raise refuse(name, place, repr(item)[:80], ", ".join(wanted), UNSOUND)
    for (field, kind), value in zip(wanted.items(), item, strict=True):
        if type(value) is not kind:
            raise refuse(name, f"{place}{field}", type(value).__name__, kind.__name__, UNSOUND)


def _read_packed(name: str, item: Any, most: int) -> tuple[int, bytes, np.ndarray]:
    """Size, digest and forms."""
    _check_types(name, "packed/", item, {"size": int, "digest": bytes, "forms": bytes})
    size, digest, forms = item
    if not 0 <= size <= most:
        raise refuse(name, "packed/size", size, f"0 to {most}, for the arrays that it holds", UNSOUND)
    if len(digest) != DIGEST_BYTES:
        raise refuse(name, "packed/digest", repr(digest)[:80], f"{DIGEST_BYTES} bytes", UNSOUND)
    if len(forms) % 12:
        raise refuse(name, "packed/forms", repr(forms)[:80], "three numbers for every column", UNSOUND)
    return size, digest, np.frombuffer(forms, dtype="<u4").reshape(-1, 3)


_TEXT, _INT = frozenset((str,)), frozenset((int,))
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


def _read_arrays(name: str, item: Any) -> tuple[list[str], dict[str, Kind], list[Mapped], int]:
    """All names; the kinds of the arrays that are packed; those that are mapped; bytes of the packed ones."""
    _check_types(name, "arrays/", item, {"names": list, "kinds": bytes, "sizes": list, "digests": list})
    names, kinds, sizes, digests = item
    if len(names) > MAX_ARRAYS:
        raise refuse(name, "arrays", len(names), f"at most {MAX_ARRAYS} arrays", UNSOUND)
    if not len(names) == len(kinds) == len(digests):
        raise refuse(name, "arrays", f"{len(kinds)} kinds, {len(digests)} digests", f"{len(names)} of each", UNSOUND)
    if not _TEXT.issuperset(map(type, names)) or not _are_names(tuple(names)):
        wanted = f"1 to {MAX_NAME_BYTES} letters of ASCII, a name not used before"
        number = next(n for n, key in enumerate(names) if not _is_name(key) or key in names[:n])
        raise refuse(name, f"arrays/{number}/name", repr(names[number])[:80], wanted, UNSOUND)
    if not _INT.issuperset(map(type, sizes)) or min(sizes, default=0) < 0 or max(sizes, default=0) > MAX_FILE_BYTES:
        size = next(size for size in sizes if type(size) is not int or not 0 <= size <= MAX_FILE_BYTES)
        raise refuse(name, "arrays/sizes", repr(size)[:80], f"0 to {MAX_FILE_BYTES}", UNSOUND)
    small: dict[str, Kind] = {}
    mapped: list[Mapped] = []
    end = unpacked = 0
    for key, kind, digest in zip(names, kinds, digests, strict=True):
        if kind not in _KINDS:
            wanted = f"one of {', '.join(DTYPES)}, of at most {MAX_DIMENSIONS} dimensions"
            raise refuse(name, f"{key}/kind", kind, wanted, UNSOUND)
        dtype, dimensions, width = _KINDS[kind]
        shape = tuple(sizes[end : end + dimensions])
        end += dimensions
        nbytes = width * math.prod(shape)
        if digest is None:
            if nbytes > MAX_UNPACKED:
                raise refuse(name, f"{key}/shape", shape, f"at most {MAX_UNPACKED} bytes of a packed array", UNSOUND)
            small[key] = dtype, shape
            unpacked += nbytes
        elif nbytes > MAX_FILE_BYTES:
            raise refuse(name, f"{key}/shape", shape, f"at most {MAX_FILE_BYTES} bytes", UNSOUND)
        elif type(digest) is not bytes or len(digest) != DIGEST_BYTES:
            raise refuse(name, f"{key}/digest", repr(digest)[:80], f"{DIGEST_BYTES} bytes, or none", UNSOUND)
        else:
            mapped.append(Mapped(key, dtype, shape, nbytes, digest))
    if end != len(sizes):
        raise refuse(name, "arrays/sizes", len(sizes), f"{end}, for these kinds", UNSOUND)
    if unpacked > MAX_UNPACKED:
        raise refuse(name, "packed", unpacked, f"at most {MAX_UNPACKED} bytes of packed arrays", UNSOUND)
    return names, small, mapped, unpacked


@lru_cache(16)
def _are_names(names: tuple[str, ...]) -> bool:
    """Whether these can be the names of the arrays of a file; those of one kind of files are mostly the same."""
    return len(set(names)) == len(names) and all(map(_is_name, names))


def _is_name(name: object) -> bool:
    return type(name) is str and name.isascii() and 0 < len(name) <= MAX_NAME_BYTES
