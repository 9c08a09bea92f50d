"""Keep the files of admitted bundles, so that every process of an engine opens what was admitted.

A bundle's folder belongs to its owner, who may rename, replace or remove a file at any time. The front end copies what
it admits into a folder of the engine, under the hash of its bytes. The hash travels with the request; a worker opens
the copy.

Leaves out   names of bundles: see choice.py. Whether a bundle fits the engine: see fits.py.
Invariants   a file of the folder never changes. It stays while requests were admitted for it in the last `KEEP_S`
             seconds; a bundle that a worker has opened stays open as long as a request holds it.
Departures   workers on other machines see the folder only if the operator lets $TOOLC_ADMITTED name a shared one.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from ..errors import BundleError
from ..format.bundle import MAGIC, Bundle
from ..format.container import peek_header
from ..format.vocab import open_vocab_of, share_vocab

_LOG = logging.getLogger(__name__)

FOLDER = "TOOLC_ADMITTED"
KEEP_S = 3600.0
OPEN = 64
"""Bundles that a process keeps open, those used last, beside those that requests hold."""


def engine_folder() -> Path:
    """The folder of this engine: $TOOLC_ADMITTED, which this makes, for the engine's other processes, if it is not set.

    The process that makes it removes it at its end.
    """
    given = os.environ.get(FOLDER)
    if given is None:
        given = os.environ[FOLDER] = tempfile.mkdtemp(prefix="toolc-admitted-")
        owner = os.getpid()

        def remove() -> None:
            if os.getpid() == owner:  # a forked child ends with the same exit handlers
                shutil.rmtree(str(given), ignore_errors=True)

        atexit.register(remove)
    folder = Path(given)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Admitted:
    """The bundles of one folder by the hash of their bytes.

    Args:
        folder: where the copies lie; `engine_folder` if None, at first use.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._open: OrderedDict[str, Bundle] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def folder(self) -> Path:
        """Where the copies lie."""
        if self._folder is None:
            self._folder = engine_folder()
        return self._folder

    def take(self, path: Path) -> tuple[str, Bundle]:
        """Copy a bundle's file into the folder, and open it; returns the hash and the bundle.

        Raises:
            BundleError: it cannot be read or trusted.
        """
        try:
            data = path.read_bytes()
        except OSError as error:
            raise BundleError("the bundle cannot be read", place=path.name, found=str(error.strerror)) from error
        key = hashlib.blake2b(data, digest_size=16).hexdigest()
        begun = time.perf_counter()
        with self._lock:
            bundle = self._open.get(key)
        known = bundle is not None
        if bundle is None:
            bundle = _opened(path, data)
        self._write(f"{bundle.vocab.digest}.vocab", bundle.vocab.encode)
        self._write(f"{key}.toolc", lambda: data)
        self._sweep()
        if not known:
            ms = (time.perf_counter() - begun) * 1e3
            _LOG.info("toolc: loaded %s as %s: %.1f MB, %.0f ms", path.name, key, len(data) / 1e6, ms)
        return key, self._keep(key, bundle)

    def open(self, key: str) -> Bundle:
        """The bundle of a hash.

        Raises:
            BundleError: its copy is gone, or cannot be trusted.
        """
        with self._lock:
            bundle = self._open.get(key)
            if bundle is not None:
                self._open.move_to_end(key)
                return bundle
        if len(key) != 32 or any(c not in "0123456789abcdef" for c in key):
            raise BundleError("no hash of a bundle", found=repr(key)[:80], expected="32 hexadecimal digits")
        path = self.folder / f"{key}.toolc"
        if not path.is_file():
            raise BundleError(
                "an admitted bundle is gone",
                place=str(path),
                hint=f"let ${FOLDER} name a folder that all machines of the engine share",
            )
        return self._keep(key, _opened(path))

    def touch(self, key: str) -> bool:
        """Note that a request was admitted for a bundle; False if its copy is gone."""
        try:
            os.utime(self.folder / f"{key}.toolc")
        except FileNotFoundError:
            return False
        return True

    def _keep(self, key: str, bundle: Bundle) -> Bundle:
        with self._lock:
            bundle = self._open.setdefault(key, bundle)
            self._open.move_to_end(key)
            while len(self._open) > OPEN:
                gone, _ = self._open.popitem(last=False)
                _LOG.info("toolc: evicted %s from the %d bundles that a process keeps open", gone, OPEN)
        return bundle

    def _write(self, name: str, content: Callable[[], bytes]) -> None:
        path = self.folder / name
        try:
            os.utime(path)
            return
        except FileNotFoundError:
            pass
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".", delete=False) as file:
            file.write(content())
        os.replace(file.name, path)

    def _sweep(self) -> None:
        """Remove copies that no request was admitted for lately."""
        oldest = time.time() - KEEP_S
        for path in self.folder.glob("*.toolc"):
            try:
                if path.stat().st_mtime < oldest:
                    path.unlink()
                    with self._lock:
                        self._open.pop(path.stem, None)
                    _LOG.info("toolc: evicted %s: no request for it in an hour", path.stem)
            except FileNotFoundError:  # another front end was first
                continue


def _opened(path: Path, data: bytes | None = None) -> Bundle:
    """The bundle of a file, with a vocab that this process holds already, or the one beside the file.

    Without either, `Bundle.open` looks elsewhere.

    Args:
        path: the file; it is mapped.
        data: its bytes, if they were read already; the file may be another one by now.

    Raises:
        BundleError: it cannot be read or trusted.
    """

    def first(count: int) -> bytes:
        if data is not None:
            return data[:count]
        try:
            with path.open("rb") as file:
                return file.read(count)
        except OSError as error:  # swept away just now, or without the right to read it
            raise BundleError("an admitted bundle cannot be read", place=str(path), found=error.strerror) from error

    digest = str(peek_header(path.name, first, MAGIC).get("vocab_digest"))
    vocab = open_vocab_of(digest)
    beside = path.parent / f"{digest}.vocab"
    known = vocab or (beside if beside.is_file() else None)
    bundle = Bundle.open(path if data is None else data, name=path.name, vocab=known)
    share_vocab(bundle.vocab)
    return bundle
