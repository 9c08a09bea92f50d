"""`load`: a bundle from a store in one call, kept in a folder of this machine.

Leaves out   the store: see store.py.
Invariants   what is kept is checked again whenever it is loaded, and only for the address that it came from; a machine
             on which nothing can be kept, such as one with a read-only disk, loads from memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import BundleError
from ..format.bundle import Bundle
from ..format.container import blake, replace_file
from ..format.vocab import Vocab, vocab_cache_dir
from .signing import PublicKey, read_allowed
from .store import Store, open_store

CACHE_BYTES = 8 << 30


def cache_dir() -> Path:
    """Where fetched bundles are kept: ``store`` in the folder of `vocab_cache_dir`."""
    return vocab_cache_dir() / "store"


def load(
    where: str | os.PathLike[str] | Store,
    key: str,
    *,
    allow: Sequence[str | os.PathLike[str] | PublicKey] | None = None,
    vocab: Vocab | None = None,
    cache: str | os.PathLike[str] | None = None,
    cache_bytes: int = CACHE_BYTES,
    **options: Any,
) -> Bundle:
    """The bundle under a key, with its vocab, from a store; no compiler is needed.

    A folder, also a read-only one, is mapped where it is. From any other place the bundle is fetched, verified, kept
    in `cache`, and found there the next time.

    Args:
        where: folder or URL, see `open_store`.
        key: 32 hexadecimal digits, as `toolc key` and `toolc compile --store` print them.
        allow: public keys, one of which must have signed the bundle; None: no signature is asked for.
        vocab: its vocab, if it is at hand.
        cache: folder for what is fetched; `cache_dir()` if absent.
        cache_bytes: size limit of that folder.
        options: for fsspec's file system.

    Raises:
        StoreError: the store does not hold it, or cannot be reached.
        BundleError: it cannot be trusted, or the list of allowed keys is empty.
    """
    store = open_store(where, **options)
    allowed = read_allowed(allow)
    if store.files.exclusive:
        return store.get(key, allowed, vocab)
    folder = cache_dir() if cache is None else Path(cache)
    kept = open_store(folder, cache_bytes)
    came = _note_of(folder, store.place, key)
    if came.is_file():  # else a wrong address would be hidden by what came from the right one
        try:
            return kept.get(key, allowed, vocab)
        except BundleError:
            pass  # not there, damaged, or not signed by these: it is fetched
    bundle = store.get(key, allowed, vocab)
    signature = store.signature(key, bundle, allowed) if allowed is not None else None
    try:
        kept.put_signed(bundle, signature)
        came.parent.mkdir(parents=True, exist_ok=True)
        replace_file(came, [])
        return kept.get(key, allowed, bundle.vocab)
    except (BundleError, OSError):
        return bundle  # nothing can be kept here (no rights, no room), or it was evicted at once: it stays in memory


def _note_of(folder: Path, place: str, key: str) -> Path:
    """The empty file that says that a bundle came from an address."""
    address = blake(place.rstrip("/").encode(errors="surrogatepass")).hex()
    return folder / "from" / address / key
