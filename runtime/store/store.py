"""A store of bundles under their keys: get, put, list, prune.

Leaves out   where the files lie (folder.py, remote.py), keeping what was fetched (fetch.py), compiling.
Invariants   what `get` returns has passed every check of `Bundle`, its meta says the key that was asked for, its vocab
             is the one it was compiled for, and, where keys are given, one of them signed it.
             `put` writes the vocab first, then the signature, then the bundle, so that whoever sees a bundle can use
             it. A sound bundle that is there is kept, unless a signer brings another: then the signed one stands.
             In a folder, a size limit holds after every `put`: the least recently used bundles go first, and a vocab
             goes when the last bundle that needs it has gone. Elsewhere there is no lock: a vocab goes on request only.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import BundleError, SignatureError, StoreError
from ..expected import expect_path
from ..format.bundle import MAGIC, Bundle
from ..format.container import MAX_FILE_BYTES, peek_header
from ..format.vocab import Vocab, find_vocab, open_vocab_of, share_vocab
from .files import Files
from .folder import URL, Folder, folder_of
from .key import KEY, check_key, key_of
from .remote import Remote
from .signing import MAX_BYTES as MAX_SIGNATURE
from .signing import PublicKey, SigningKey, check_signature, read_allowed, signature_name

BUNDLE, VOCAB, SIGNATURE = ".toolc", ".vocab", ".sig"
LOW_WATER = 0.9  # an eviction goes on to this part of the limit, so that not every put evicts
_URL = re.compile(r"((?:[A-Za-z][A-Za-z0-9+.-]+::)*[A-Za-z][A-Za-z0-9+.-]+):(//?)(.*)", re.DOTALL)
"""Scheme, slashes and rest: two letters at least, as c:/ is a folder. A scheme before :: wraps the rest."""


@dataclass(frozen=True)
class Stored:
    """A bundle of a store, as listed.

    Attributes:
        key: its name.
        size: bytes of its file; None where the place does not say.
        used: when it was last used (folders) or written (other places), in seconds since 1970; None where the place
            does not say.
        signers: public keys, hex, that signature files name; not verified.
        meta: of its header, not verified against its arrays; empty where that was not asked for or cannot be read.
    """

    key: str
    size: int | None
    used: float | None
    signers: tuple[str, ...]
    meta: dict[str, Any]


@dataclass(frozen=True)
class Pruned:
    """What a prune removed: keys of bundles, digests of vocabs, bytes; half-written files of killed writers."""

    bundles: tuple[str, ...]
    vocabs: tuple[str, ...]
    bytes: int
    half_written: int


class Put(Enum):
    """What a put did with a bundle; true if none was there under its key.

    NEW: it was written. REPLACED: it was written over one that was damaged, or other than the one that was signed.
    KEPT: a sound one was there.
    """

    NEW = "new"
    REPLACED = "replaced"
    KEPT = "kept"

    def __bool__(self) -> bool:
        return self is Put.NEW


class Store:
    """Bundles under their keys.

    Args:
        files: where they lie; see `open_store`.
        max_bytes: the size limit of a folder, kept by every `put`; None for none.
    """

    def __init__(self, files: Files, max_bytes: int | None = None) -> None:
        self.files = files
        self.max_bytes = max_bytes
        self._sound: dict[str, tuple[int, int, int]] = {}  # vocab → inode, size, time of the file that was found sound

    @property
    def place(self) -> str:
        """The folder or URL."""
        return self.files.place

    def has(self, key: str) -> bool:
        """Whether a bundle is there under this key; whether it is sound, `get` says."""
        return self.files.has(check_key(key) + BUNDLE)

    def get(
        self,
        key: str,
        allow: Sequence[str | os.PathLike[str] | PublicKey] | None = None,
        vocab: Vocab | None = None,
    ) -> Bundle:
        """The bundle under a key, mapped where it lies in a folder.

        Args:
            key: 32 hexadecimal digits.
            allow: public keys, one of which must have signed it (see `PublicKey.read`); None: no signature is asked
                for.
            vocab: its vocab, if it is at hand.

        Raises:
            StoreError: it is not there, or the place cannot be read.
            BundleError: it is damaged, edited, another's under this name, or not signed by an allowed key; or the list
                of these is empty.
        """
        allowed = read_allowed(allow)
        check_key(key)
        try:
            bundle = self._open_signed(key, vocab, allowed)
        except BundleError as error:
            if not self.files.exclusive or (isinstance(error, StoreError) and not self.has(key)):
                raise
            bundle = self._open_alone(key, vocab, allowed, error)
        self.files.touch(key + BUNDLE)
        return bundle

    def _open(self, key: str, vocab: Vocab | None) -> Bundle:
        name = key + BUNDLE
        path = self.files.path(name)
        place = str(path) if path is not None else f"{self.place}/{name}"
        data = None if path is not None else self.files.read(name, MAX_FILE_BYTES)
        if data is None if path is None else not self.files.has(name):
            raise StoreError(
                "the store does not hold this bundle",
                place=place,
                hint="check the key, or push the bundle (`toolc push`, `toolc compile --store`)",
            )
        digest = self._peek(name, data).get("vocab_digest")
        if vocab is None and isinstance(digest, str) and KEY.match(digest):
            vocab = self.vocab(digest)
        source: Any = path if data is None else data
        bundle = Bundle.open(source, vocab, place)
        found = key_of(bundle.meta, place)
        if found != key:
            raise BundleError(
                "the bundle belongs under another key",
                place=place,
                found=found,
                expected=key,
                hint="the file was renamed or replaced; push the right one",
            )
        return bundle

    def _open_signed(self, key: str, vocab: Vocab | None, allowed: Sequence[PublicKey] | None) -> Bundle:
        bundle = self._open(key, vocab)
        if allowed is not None:
            self.signature(key, bundle, allowed)
        return bundle

    def _open_alone(
        self, key: str, vocab: Vocab | None, allowed: Sequence[PublicKey] | None, error: BundleError
    ) -> Bundle:
        """Once more under the lock: while a bundle is opened without it, others may evict it or put it anew."""
        with ExitStack() as held:
            try:
                held.enter_context(self.files.lock())
            except StoreError:
                raise error from None  # nobody writes here: what was found wrong stays wrong
            return self._open_signed(key, vocab, allowed)

    def _peek(self, name: str, data: bytes | None = None) -> dict[str, Any]:
        """The meta of a bundle's header."""

        def read(count: int) -> bytes:
            return data[:count] if data is not None else self.files.read(name, MAX_FILE_BYTES, first=count) or b""

        return peek_header(f"{self.place}/{name}", read, MAGIC)

    def vocab(self, digest: str) -> Vocab:
        """The vocab with this digest: one that this process has open, that of the store, or that of the cache."""
        check_key(digest)
        if (known := open_vocab_of(digest)) is not None:
            return known
        name = digest + VOCAB
        path = self.files.path(name)
        source: Any = path if path is not None and self.files.has(name) else None
        if source is None:
            source = find_vocab(digest)
        if source is None and path is None:
            source = self.files.read(name, MAX_FILE_BYTES)
        if source is None:
            raise StoreError(
                "the store does not hold the vocab of the bundle",
                place=f"{self.place}/{name}",
                hint="push the bundle again, from where its vocab is",
            )
        vocab = Vocab.open(source, name=f"{self.place}/{name}" if isinstance(source, bytes) else None)
        if vocab.digest != digest:
            raise BundleError(
                "the vocab has another digest than its name",
                place=vocab.name,
                found=vocab.digest,
                expected=digest,
                hint="the file was renamed or replaced; push the bundle again",
            )
        return share_vocab(vocab)

    def signature(self, key: str, bundle: Bundle, allowed: Sequence[PublicKey]) -> tuple[str, bytes]:
        """Name and bytes of the signature file by the first allowed key that signed this bundle.

        Raises:
            BundleError: none did, or what one signed is not this bundle.
        """
        wrong: BundleError | None = None
        for public in allowed:
            name = signature_name(key, public.hex)
            try:
                data = self.files.read(name, MAX_SIGNATURE)
                if data is None:
                    continue
                check_signature(f"{self.place}/{name}", data, key, bundle.digest, public)
                return name, data
            except BundleError as error:
                wrong = wrong or error
        if wrong is not None:
            raise wrong
        raise SignatureError(
            "no allowed key has signed this bundle",
            place=bundle.name,
            found=self._signed_by(key),
            expected="a signature by one of " + ", ".join(public.hex for public in allowed),
            hint="push it again with --sign, or allow the key that signed it",
        )

    def _signed_by(self, key: str) -> str:
        """Who signed a bundle, for errors."""
        try:
            names = [item.name for item in self.files.items()]
        except StoreError:  # most web servers list nothing
            return "no signature by these keys; this store does not tell whether others signed"
        found = [name.split(".")[1] for name in names if name.startswith(key) and name.endswith(SIGNATURE)]
        return "signed by " + ", ".join(found) if found else "no signature at all"

    def put(self, bundle: Bundle, signer: SigningKey | None = None) -> Put:
        """Write a bundle, its vocab and its signature; what became of the bundle."""
        key = key_of(bundle.meta, bundle.name)
        signed = None
        if signer is not None:
            signed = signature_name(key, signer.public), signer.sign(key, bundle.digest)
        return self.put_signed(bundle, signed)

    def put_signed(self, bundle: Bundle, signature: tuple[str, bytes] | None = None) -> Put:
        """The same with a signature file that exists: its name and bytes."""
        key = key_of(bundle.meta, bundle.name)
        data = bundle.encode()
        with self.files.lock():
            self._put_vocab(bundle.vocab)
            if signature is not None:
                self.files.write(*signature)
            if not self.files.has(key + BUNDLE) and self.files.write(key + BUNDLE, data, replace=False):
                done = Put.NEW
            elif self._is_sound(key, bundle, signature is not None):
                done = Put.KEPT
            else:
                self.files.write(key + BUNDLE, data)
                done = Put.REPLACED
            if self.max_bytes is not None and self.files.exclusive:
                self._evict(self.max_bytes, spare=key)
        if not self.files.exclusive:  # another may have pruned these since
            self._put_vocab(bundle.vocab)
            if signature is not None and not self.files.has(signature[0]):
                self.files.write(*signature)
        return done

    def _is_sound(self, key: str, bundle: Bundle, same: bool) -> bool:
        """Whether what stands under the key can stay: it opens and, for a signer, is the very bundle."""
        try:
            found = self._open(key, bundle.vocab)
        except BundleError:
            return False
        return found.digest == bundle.digest or not same

    def put_vocab(self, vocab: Vocab) -> None:
        """Write a vocab, for bundles to come."""
        with self.files.lock():
            self._put_vocab(vocab)

    def _put_vocab(self, vocab: Vocab) -> None:
        name = vocab.digest + VOCAB
        path = self.files.path(name)
        if path is None:
            if not self.files.has(name):
                self.files.write(name, vocab.encode(), replace=False)
            return
        if self.files.has(name) and self._sound.get(name) == _stamp(path):
            return
        if not is_vocab(path, vocab.digest):
            self.files.write(name, vocab.encode())
        self._sound[name] = _stamp(path)

    def list(self, details: bool = False) -> list[Stored]:
        """Every bundle, the most recently used first; with `details` the headers are read, too."""
        items = self.files.items()
        signers: dict[str, list[str]] = {}
        for item in items:
            parts = item.name.split(".")
            if len(parts) == 3 and item.name.endswith(SIGNATURE):
                signers.setdefault(parts[0], []).append(parts[1])
        rows = []
        for item in items:
            key = item.name.removesuffix(BUNDLE)
            if item.name.endswith(BUNDLE) and KEY.match(key):
                meta: dict[str, Any] = {}
                if details:
                    try:
                        meta = self._peek(item.name)
                    except BundleError:
                        meta = {}  # damaged, or removed since it was listed
                rows.append(Stored(key, item.size, item.used, tuple(signers.get(key, ())), meta))
        return sorted(rows, key=lambda row: (-_when(row.used), row.key))

    def prune(self, max_bytes: int | None = None, older_than: float | None = None, vocabs: bool = False) -> Pruned:
        """Remove bundles, the least recently used first; of a folder that is not there, none, and it is not made.

        Args:
            max_bytes: until all files together have at most so many bytes.
            older_than: those not used for so many seconds.
            vocabs: also vocabs that no bundle needs. A folder does that by itself; elsewhere nobody else may be
                pushing meanwhile.
        """
        if not self.files.exists():
            return Pruned((), (), 0, 0)
        with self.files.lock():
            return self._evict(max_bytes, older_than, vocabs=vocabs or self.files.exclusive)

    def _evict(
        self, limit: int | None, older_than: float | None = None, spare: str = "", vocabs: bool = True
    ) -> Pruned:
        """Under the lock. Bundles and signatures go before a vocab.

        Where the lock is none, signatures go first: one that is put with its bundle meanwhile is not taken with the old
        ones. Under a lock they go last: who is killed between leaves no bundle without its signature.
        """
        half = self.files.sweep()
        items = [item for item in self.files.items() if KEY.match(item.name.partition(".")[0])]  # others are not ours
        if limit is not None and any(item.size is None for item in items):
            raise StoreError("the sizes of the files are not told here, so no size can be kept", place=self.place)
        size = {item.name: item.size or 0 for item in items}
        total = sum(size.values())
        if older_than is None and (limit is None or total <= limit) and (spare or not vocabs):
            return Pruned((), (), 0, half)
        before = total
        goal = int(limit * LOW_WATER) if limit is not None and spare else limit
        crowded = limit is not None and total > limit
        now, gone, freed = time.time(), [], []
        needed = {name: self._needed(name) for name in items_of(size, BUNDLE)} if vocabs else None
        for item in sorted((i for i in items if i.name.endswith(BUNDLE)), key=lambda i: (_when(i.used), i.name)):
            key = item.name.removesuffix(BUNDLE)
            old = older_than is not None and _when(item.used) < now - older_than
            if key == spare or not (old or (crowded and goal is not None and total > goal)):
                continue
            signatures = [name for name in items_of(size, SIGNATURE) if name.startswith(key + ".")]
            for name in [item.name, *signatures] if self.files.exclusive else [*signatures, item.name]:
                self.files.remove(name)
                total -= size.pop(name)
            gone.append(key)
            if needed is not None:
                needed.pop(item.name)
                for name in _unneeded(size, needed):
                    self.files.remove(name)
                    freed.append(name.removesuffix(VOCAB))
                    total -= size.pop(name)
        if needed is not None and not spare:
            for name in _unneeded(size, needed):
                self.files.remove(name)
                freed.append(name.removesuffix(VOCAB))
                total -= size.pop(name)
        return Pruned(tuple(gone), tuple(freed), before - total, half)

    def _needed(self, name: str) -> str | None:
        """The vocab that a bundle needs; None if it cannot be read."""
        try:
            return str(self._peek(name).get("vocab_digest"))
        except BundleError:
            return None


def _unneeded(size: dict[str, int], needed: dict[str, str | None]) -> list[str]:
    """The vocabs that no bundle needs; none while there is a bundle that cannot be read, which may need any."""
    if None in needed.values():
        return []
    return [name for name in items_of(size, VOCAB) if name.removesuffix(VOCAB) not in needed.values()]


def is_vocab(path: os.PathLike[str], digest: str) -> bool:
    """Whether this file is the vocab with this digest, and sound."""
    try:
        return Vocab.open(path).digest == digest
    except BundleError:
        return False


def items_of(size: dict[str, int], ending: str) -> list[str]:
    """The names with this ending."""
    return [name for name in size if name.endswith(ending)]


def _when(used: float | None) -> float:
    """A time to sort by: what has none was used last, so that it is not taken for old."""
    return math.inf if used is None else used


def _stamp(path: os.PathLike[str]) -> tuple[int, int, int]:
    about = os.stat(path)
    return about.st_ino, about.st_size, about.st_mtime_ns


def open_store(where: str | os.PathLike[str] | Store, max_bytes: int | None = None, **options: Any) -> Store:
    """The store at a folder, a ``file://`` URL of one, or any URL that fsspec knows.

    Args:
        where: the folder or URL; it need not exist yet. The path of a ``file://`` URL is absolute, its host none or
            ``localhost``.
        max_bytes: the size limit, of a folder only.
        options: for fsspec's file system, such as ``anon`` or ``endpoint_url`` of s3.

    Raises:
        StoreError: `where` is no such thing.
    """
    if isinstance(where, Store):
        return where
    expect_path(where, "open_store(where)", "a folder or a URL")
    text = str(os.fspath(where))
    if URL.match(text):
        text = folder_of(text)
    if not text or "\0" in text:
        raise StoreError(
            "this names no store",
            place=os.fspath(where) or None,
            found=repr(text),
            expected="a folder or a URL",
            hint="this folder is written .",
        )
    url = _URL.fullmatch(text)
    if url is None:
        return Store(Folder(text), max_bytes)
    if max_bytes is not None:
        raise StoreError("only a folder keeps a size limit by itself", place=text, hint="use `toolc prune`")
    return Store(Remote(_checked(*url.groups()), **options))


def _checked(scheme: str, slashes: str, rest: str) -> str:
    """The URL of these parts, its scheme in lower case.

    Raises:
        StoreError: it has one slash, or names no bucket or host where its kind has one.
    """
    if slashes == "/":
        raise StoreError(
            "this names no store",
            place=f"{scheme}:/{rest}",
            found="one slash behind the scheme",
            expected="a folder or a URL",
            hint=f"did you mean {scheme}://{rest}? a folder of that name is written ./{scheme}:/{rest}",
        )
    if not rest.strip("/") and scheme.lower() != "memory":
        raise StoreError(
            "this URL names no bucket or host", place=f"{scheme}://{rest}", expected=f"{scheme}://bucket/path"
        )
    return f"{scheme.lower()}://{rest}"
