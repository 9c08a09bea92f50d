"""Parts that were compiled before, by what they were compiled from: in this process, and in files beside the vocabs.

Leaves out   what a part is (part.py), what its digest covers (split.py).
Invariants   a name covers grammar, vocabulary, encoder, classes, and the compiler's own files; a file is taken only
             if its checksums are right and it says its own name. A cache that cannot be read or written costs time and
             nothing else. In memory and on disk the least recently used go first.
             Checksums are enough: whoever can edit a file could write a digest as well.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from toolc.runtime.errors import BundleError
from toolc.runtime.format.container import Contents, blake, open_container, quick
from toolc.runtime.format.vocab import vocab_cache_dir

from ..passes import Pass, switches
from .part import Part, PartEntry

MAGIC = b"TOOLCPRT"
VERSION = 7
MOST_HELD = 512 << 20  # bytes in memory
MOST_STORED = 1 << 30  # bytes of files
_LOW_WATER = 0.8  # an eviction goes on to this part of the limit
_LOOKS = 64  # so many looks at all files are taken while as much is written as may be stored
_MOST_GIVEN_UP = 1 << 14
_SUFFIX = ".part"
_META = ("entries", "imports", "modes", "depth", "deeper", "profiles", "most_left", "counts")

_held: OrderedDict[bytes, Part] = OrderedDict()
_bytes_held = 0
_given_up: set[bytes] = set()
_bytes_unseen = MOST_STORED  # written since the last look; a process looks when it has written one


@cache
def sources_digest() -> bytes:
    """Of the compiler's own files and the runtime's: what other code made is another part."""
    root = Path(__file__).parents[2]
    runtime = (root / "runtime" / folder for folder in ("format", "jit", "selection"))
    files = sorted(file for folder in (root / "compiler", *runtime) for file in folder.rglob("*.py"))
    return blake(*(part for file in files for part in (str(file.relative_to(root)).encode(), file.read_bytes())))


class Parts:
    """The parts of one context: digests of what they depend on besides their grammar."""

    def __init__(self, context: bytes) -> None:
        self.context = context + sources_digest() + switches().encode()
        self._wrote = 0  # bytes

    @cached_property
    def folder(self) -> Path:
        """Of the files."""
        return vocab_cache_dir() / "parts"

    def get(self, digest: bytes) -> Part | None:
        """The part of a grammar of this digest, if it is there."""
        name = blake(self.context, digest)
        found = (_held.get(name) or self._read(name)) if Pass.PART_CACHE.on else None
        if found is not None:
            _hold(name, found)
        return found

    def put(self, digest: bytes, part: Part) -> None:
        """Keep a part."""
        if not Pass.PART_CACHE.on:
            return
        name = blake(self.context, digest)
        _hold(name, part)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Packing would make it a fifth as large, and cost more than all else that is done to keep a part.
            Contents(MAGIC, VERSION, _meta(name, part), part.arrays, most=-1, hashed=quick).write(
                self._path(name), flush=False
            )
            self._wrote += self._path(name).stat().st_size
        except (OSError, BundleError):
            return

    def give_up(self, digest: bytes) -> None:
        """Know, as long as this process lives, that there is no part of this digest."""
        if len(_given_up) == _MOST_GIVEN_UP:
            _given_up.clear()
        _given_up.add(blake(self.context, digest))

    def is_given_up(self, digest: bytes) -> bool:
        """Whether there is known to be no part of this digest."""
        return bool(_given_up) and blake(self.context, digest) in _given_up

    def close(self) -> None:
        """Take away what is too much, once enough parts were kept since that was last looked at."""
        global _bytes_unseen
        _bytes_unseen += self._wrote
        if not self._wrote or _LOOKS * _bytes_unseen < MOST_STORED:
            return
        _bytes_unseen = 0
        files = sorted(self._files(), key=lambda file: file[1])
        total = sum(size for _, _, size in files)
        if total <= MOST_STORED:
            return
        for path, _, size in files:
            if total <= _LOW_WATER * MOST_STORED:
                break
            total -= size
            try:
                path.unlink(missing_ok=True)
            except OSError:
                return

    def _files(self) -> Iterator[tuple[Path, float, int]]:
        """Path, time of last use and size of every file, half-written ones of killed writers among them."""
        try:
            for entry in os.scandir(self.folder):
                stat = entry.stat()
                yield Path(entry.path), stat.st_mtime, stat.st_size
        except OSError:
            return

    def _path(self, name: bytes) -> Path:
        return self.folder / f"{name.hex()}{_SUFFIX}"

    def _read(self, name: bytes) -> Part | None:
        path = self._path(name)
        try:
            held = open_container(path.read_bytes(), MAGIC, VERSION, name=str(path), hashed=quick)
            part = _part(held.meta, name, held.arrays)
            os.utime(path)
        except (OSError, BundleError, KeyError, TypeError, ValueError):
            return None  # not there, or damaged: it is made anew
        return part


def forget() -> None:
    """Hold no parts in this process; the files stay."""
    global _bytes_held
    _held.clear()
    _given_up.clear()
    _bytes_held = 0


def _hold(name: bytes, part: Part) -> None:
    global _bytes_held
    if name not in _held:
        _held[name] = part
        _bytes_held += part.nbytes
    _held.move_to_end(name)
    while _bytes_held > MOST_HELD and len(_held) > 1:
        _bytes_held -= _held.popitem(last=False)[1].nbytes


def _meta(name: bytes, part: Part) -> dict[str, Any]:
    return {"name": name, **{key: getattr(part, key) for key in _META}}


def _part(meta: dict[str, Any], name: bytes, arrays: dict[str, Any]) -> Part:
    if meta["name"] != name:
        raise ValueError("another part's file")
    entries = [PartEntry(free, shallow, tuple(close), tuple(left)) for free, shallow, close, left in meta["entries"]]
    imports = [(digest, entry) for digest, entry in meta["imports"]]
    rest = {key: meta[key] for key in _META if key not in ("entries", "imports")}
    # Kernels would be compiled once more for arrays that are not to be written.
    return Part(arrays={key: array.copy() for key, array in arrays.items()}, entries=entries, imports=imports, **rest)
