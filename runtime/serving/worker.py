"""Compile what requests ask for: a process of its own beside a server, `python -m toolc.runtime.serving.worker`.

It reads frames from standard input and writes frames to standard output: four bytes of length, then pickled data from
the server, which started it, and JSON back. The first frame is a `Setup`, answered with the vocabulary's digest. Each
further one is the document of a content, answered with the key of its bundle, which is in the store then, or an error.

Leaves out   what is compiled, and how: the compiler, found by the entry point `serving` of the group `toolc.compilers`.
             Who asks: outcomes.py.
Invariants   a content is compiled once, however many servers share the store: who holds its lock looks there first. The
             lock lies in the store where that is a folder, else in the cache of this machine. What the store cannot
             take is kept in the cache.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any, Protocol

from ..errors import BundleError, ServingError, StoreError, ToolcError
from ..format.bundle import Bundle
from ..store.fetch import cache_dir
from ..store.folder import Folder
from ..store.store import BUNDLE, Store, open_store

COMPILERS = "toolc.compilers"
"""Entry points: the runtime does not import the compiler."""
LENGTH = struct.Struct(">I")


@dataclass(frozen=True)
class Setup:
    """What all contents of a server are compiled for.

    Attributes:
        tokenizer: a file, a model's folder or a hub id.
        ends: ids that end a turn.
        logits_width: how many logits the model has.
        protocol: a name or a file; None for plain JSON.
        store: folder or URL.
        store_bytes: size limit of a folder.
        seconds: limit of a compile.
        jobs: processes of a compile.
    """

    tokenizer: str
    ends: tuple[int, ...]
    logits_width: int | None
    protocol: str | None
    store: str
    store_bytes: int
    seconds: float
    jobs: int


class Compiler(Protocol):
    """What the entry point makes of a `Setup`."""

    vocab_digest: str

    def key(self, document: dict[str, Any]) -> str:
        """The key of the bundle that a document compiles to."""

    def compile(self, document: dict[str, Any]) -> Bundle:
        """The bundle."""


def find_compiler() -> Any:
    """The class that compiles for servers.

    Raises:
        ServingError: no compiler is installed.
    """
    found = [point for point in entry_points(group=COMPILERS) if point.name == "serving"]
    if not found:
        raise ServingError(
            "no compiler is installed",
            place=COMPILERS,
            expected="an entry point named serving",
            hint="install toolc whole, or set TOOLC_REQUESTS=named and compile bundles elsewhere",
        )
    return found[0].load()


class Worker:
    """One server's compiler and its store."""

    def __init__(self, setup: Setup) -> None:
        self.compiler: Compiler = find_compiler()(setup)
        folder = open_store(setup.store)
        self.store = open_store(setup.store, setup.store_bytes) if folder.files.exclusive else folder
        self.cache = open_store(cache_dir(), setup.store_bytes)

    def answer(self, document: dict[str, Any]) -> dict[str, Any]:
        """Have a document's bundle in the store, or an error, as plain data."""
        began = time.monotonic()
        try:
            key, place, compiled = self.obtain(document)
        except ToolcError as error:
            return {"error": error.as_dict(), "seconds": time.monotonic() - began}
        return {"key": key, "place": place, "compiled": compiled, "seconds": time.monotonic() - began}

    def obtain(self, document: dict[str, Any]) -> tuple[str, str, bool]:
        """The key, the store that holds the bundle, and whether it was compiled just now."""
        key = self.compiler.key(document)
        if (place := self._held(key)) is not None:
            return key, place, False
        with one_at_a_time(self.store, key):
            if (place := self._held(key)) is not None:
                return key, place, False
            bundle = self.compiler.compile(document)
            try:
                self.store.put(bundle)
                return key, self.store.place, True
            except (BundleError, OSError) as error:  # also a folder that goes away while it is written
                print(f"toolc: {self.store.place} cannot take {key}: {error}", file=sys.stderr)
                self.cache.put(bundle)
                return key, self.cache.place, True

    def _held(self, key: str) -> str | None:
        for store in (self.store, self.cache):
            try:
                if store.has(key):
                    return store.place
            except StoreError as error:
                print(f"toolc: {error}", file=sys.stderr)
        return None


@contextmanager
def one_at_a_time(store: Store, key: str) -> Iterator[None]:
    """Hold the lock of a key: of all processes that share the folder, or of this machine."""
    files = store.files
    folder = files.folder if isinstance(files, Folder) else cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = _open_lock(folder / f".{key}{BUNDLE}.compiling")
    except OSError:
        yield  # a place without locks: it may be compiled twice
        return
    try:
        yield
    finally:
        try:
            (folder / f".{key}{BUNDLE}.compiling").unlink()
        except OSError:
            pass  # a folder from which nothing can be removed
        os.close(handle)


def _open_lock(path: Path) -> int:
    import fcntl

    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            if os.stat(path).st_ino == os.fstat(handle).st_ino:
                return handle
        except FileNotFoundError:
            pass  # whoever had the lock has removed the file
        os.close(handle)


def read_frame(source: IO[bytes]) -> bytes | None:
    """The data of the next frame; None at the end."""
    head = source.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None
    size = LENGTH.unpack(head)[0]
    data = source.read(size)
    return data if len(data) == size else None


def main() -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anybody prints is for the server's log

    def say(answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        answers.write(LENGTH.pack(len(data)) + data)
        answers.flush()

    first = read_frame(sys.stdin.buffer)
    if first is None:
        return
    try:
        worker = Worker(pickle.loads(first))
    except ToolcError as error:
        say({"error": error.as_dict()})
        return
    say({"vocab": worker.compiler.vocab_digest})
    while (data := read_frame(sys.stdin.buffer)) is not None:
        say(worker.answer(pickle.loads(data)))


if __name__ == "__main__":
    main()
