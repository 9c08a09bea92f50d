"""Read the files of a tokenizer, and keep the last ones: a process compiles many specs for one tokenizer.

A file that is as it was is not read again. It is known by its inode, size and times, as build tools know it; a file
that was written within the last `SETTLING` seconds is read each time, since its times may not tell its next change.

Leaves out   what the files say: see load.py and encode.py.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from .gguf import is_gguf, metadata_bytes

KEPT = 8
"""Files that are kept, those used last: the tokenizer and what lies beside it."""
SETTLING = 2.0
"""Seconds; file systems note times more coarsely than a program can write."""


class Content(NamedTuple):
    """What counts of a file.

    Attributes:
        data: its bytes; of GGUF the metadata.
        digest: BLAKE2b-128 of `data`.
    """

    data: bytes
    digest: bytes


_kept: OrderedDict[tuple[str, int, int, int, int, int], Content] = OrderedDict()


def read_content(path: Path) -> Content:
    """The content of a file.

    Raises:
        OSError: it cannot be read.
    """
    there = os.stat(path)
    key = (os.fspath(path), there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)
    found = _kept.pop(key, None)
    if found is None:
        data = metadata_bytes(path) if is_gguf(path) else path.read_bytes()
        found = Content(data, hashlib.blake2b(data, digest_size=16).digest())
        if time.time() - max(there.st_mtime, there.st_ctime) < SETTLING:
            return found
    _kept[key] = found
    while len(_kept) > KEPT:
        _kept.pop(next(iter(_kept)), None)  # another thread may have been first
    return found
