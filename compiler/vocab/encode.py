"""A tokenizer's own encoding of texts, with the places where it cuts whatever may follow.

The library takes half a second to read a large tokenizer. So what a process asks it first is kept in a file, and one
that asks the same reads that file instead.

Leaves out   what ids stand for: see load.py. Formats whose encoder is not the tokenizers library: they have none here.
Cuts         Every piece of the pre-tokenizer but the last of a text, and the tokens in it, are the same whatever
             follows the text, but for what lookahead.py finds.
Invariants   the name of a file covers the tokenizer's content and the library's version; it is taken only if its digest
             is right and it says its own name. A file that cannot be read or written costs time and nothing else.
             Threads may share an encoder; what one of them adds may be lost to the file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolc.runtime.errors import BundleError
from toolc.runtime.format.container import Contents, blake, open_container
from toolc.runtime.format.vocab import vocab_cache_dir

from .builtin import NAME, builtin_path
from .files import read_content
from .lookahead import Ahead

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MAGIC = b"TOOLCTXT"
VERSION = 3
"""Raise it when `Encode._said` says something else."""
MOST_KEPT = 1 << 13
"""Texts of a file; those go first that the processes that wrote it did not ask for, the oldest before the others."""
MOST_ADDED = 1 << 10
"""Texts that a process adds to a file; if there are more, reading the tokenizer is not what takes long."""

Encoded = tuple[list[int], int]
"""The ids of a text, and how many of them do not depend on what follows."""


class Encode:
    """What a tokenizer makes of texts."""

    def __init__(self, data: bytes, version: str) -> None:
        """
        Args:
            data: a tokenizer.json.
            version: of the library.

        Raises ValueError: the library cannot read it.
        """
        self._data = data
        self._name = blake(version.encode(), b"\n", data)
        self._tokenizer: tuple[Tokenizer, Ahead] | None = None
        self._kept: dict[str, Encoded] | None = self._read()
        self._asked: dict[str, Encoded] | None = {}  # None: no more are kept
        if self._kept is None:  # not known to be a tokenizer
            self._library()

    def __call__(self, texts: Sequence[str]) -> list[Encoded]:
        """The tokens of each text."""
        kept, asked = self._kept or {}, self._asked
        before = asked or {}
        found = [kept.get(text) or before.get(text) or self._said(text) for text in texts]
        if asked is not None:
            asked.update(zip(texts, found, strict=True))
            if len(asked) > MOST_KEPT:
                self._asked = None
        return found

    def ready(self) -> None:
        """Have the library read the tokenizer now: before processes are forked, each of which would."""
        self._library()

    def keep(self) -> None:
        """Write what was asked so far to the file, if that did not have all of it. A process does so once."""
        asked = self._asked
        if asked is None:
            return
        kept, asked = self._kept or {}, asked.copy()
        new = asked.keys() - kept
        self._asked = None if new else {}
        if not 0 < len(new) <= MOST_ADDED:
            return
        texts = {text: one for text, one in kept.items() if text not in asked} | asked
        meta = {"name": self._name, "texts": dict(list(texts.items())[-MOST_KEPT:])}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            Contents(MAGIC, VERSION, meta, {}).write(self._path, flush=False)
        except (OSError, BundleError):
            return

    def _said(self, text: str) -> Encoded:
        """What the library says of a text."""
        # One by one: a batch would start threads, beside which nothing can be forked.
        library, ahead = self._library()
        encoding = library.encode(text, add_special_tokens=False)
        ids, words = encoding.ids, encoding.word_ids
        if not words or ahead.is_vague(text):
            return ids, 0
        fixed = ahead.first_open(text, words, encoding.offsets)
        for part in ahead.parts(text):
            alone = library.encode(part, add_special_tokens=False).ids
            fixed = next((n for n in range(min(fixed, len(alone))) if ids[n] != alone[n]), min(fixed, len(alone)))
        return ids, fixed

    def _library(self) -> tuple[Tokenizer, Ahead]:
        if self._tokenizer is None:
            from tokenizers import Tokenizer

            try:
                tokenizer = Tokenizer.from_str(self._data.decode())
            except Exception as error:  # the library raises nothing narrower
                raise ValueError("no tokenizer.json") from error
            self._tokenizer = tokenizer, Ahead(tokenizer)  # at once: threads may share an encoder
        return self._tokenizer

    @property
    def _path(self) -> Path:
        return vocab_cache_dir() / f"{self._name.hex()}.texts"

    def _read(self) -> dict[str, Encoded] | None:
        """What the file says; None where there is none."""
        try:
            meta: dict[str, Any] = open_container(self._path.read_bytes(), MAGIC, VERSION, name=str(self._path)).meta
            if meta["name"] != self._name:
                return None  # another tokenizer's file
            return {text: (list(ids), int(fixed)) for text, (ids, fixed) in meta["texts"].items()}
        except (OSError, BundleError, AttributeError, KeyError, TypeError, ValueError):
            return None  # not there, or damaged: it is made anew


def encoder(source: str | Path) -> Encode | None:
    """The encoder of a tokenizer.json, a folder that holds one, or the built-in vocabulary; None for all else."""
    path = builtin_path() if str(source) == NAME and not os.path.exists(source) else Path(source)
    path = path / "tokenizer.json" if os.path.isdir(path) else path
    if not os.path.isfile(path):
        return None
    with path.open("rb") as stream:
        if not stream.read(64).lstrip().startswith(b"{"):
            return None  # and may be a whole model
    return _encode_of(read_content(path).data)


@lru_cache(maxsize=1)
def _encode_of(data: bytes) -> Encode | None:
    """See `encoder`, of the content of a file."""
    from tokenizers import __version__

    try:
        return Encode(data, __version__)
    except ValueError:
        return None  # JSON of another kind, such as tekken's
