"""A bundle: the tables of one compiled constraint, what is known about it, and the vocabulary it was lifted to.

Leaves out   the container: see container.py. The checks of the tables: see checks.py. Decoding: matcher.py, decoder.py.
Invariants   a `Bundle` that exists has been checked in full and belongs to its vocabulary (same digest).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ArgumentError, BundleError
from ..expected import expect, expect_path, named_kind
from .checks import check_tables
from .container import UNSOUND, Buffer, Contents, open_container, refuse
from .shown import bundle_html, bundle_line
from .tables import CLIMBING, COMBS, NEVER, TABLES, Tables, tools_of
from .vocab import Vocab, check_meta, check_names, find_vocab, vocab_places

MAGIC = b"TOOLCBND"
VERSION = 13
_MOST_PACKED = 64 << 20  # bytes of an array: larger ones are mapped
VOCAB_FILE = "vocab_file"


@dataclass(frozen=True, eq=False, repr=False)
class Bundle:
    """Tables, meta and vocab of one compiled constraint; checked when made.

    Attributes:
        tables: the arrays.
        meta: docs/format.md, "Meta".
        vocab: the vocabulary that the rows number.
        name: the file, as errors call it.
        declared: the Python functions and classes that the tools were made of, by name, where it was compiled from them
            in this process. No file holds them.
        checked_spec: ``meta["spec"]`` of a bundle: where the meta has this very one, it is not checked again.
    """

    tables: Tables
    meta: dict[str, Any]
    vocab: Vocab
    name: str = "<bundle>"
    declared: Mapping[str, Any] = field(default_factory=dict, repr=False)
    checked_spec: InitVar[dict[str, Any] | None] = None

    def __post_init__(self, checked_spec: dict[str, Any] | None) -> None:
        _check_meta(self.name, self.meta)
        if self.meta["vocab_digest"] != self.vocab.digest:
            raise refuse(
                self.name,
                "meta/vocab_digest",
                f"{self.vocab.digest} ({self.vocab.name})",
                self.meta["vocab_digest"],
                "this vocab belongs to another tokenizer; compile the bundle for it, or give the right one",
                "the vocab does not fit",
            )
        if self.meta["vocab_size"] != self.vocab.size:
            raise refuse(self.name, "meta/vocab_size", self.meta["vocab_size"], self.vocab.size, UNSOUND)
        check_tables(self.name, self.tables, self.meta, self.vocab, checked_spec)

    def __repr__(self) -> str:
        return bundle_line(self)

    def _repr_html_(self) -> str:
        return bundle_html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled without what matchers keep here, addresses of this process among it."""
        return Bundle, (self.tables, self.meta, self.vocab, self.name)

    @staticmethod
    def open(
        path: str | os.PathLike[str] | Buffer,
        vocab: Vocab | str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> Bundle:
        """Map and verify a bundle file.

        Args:
            path: the bundle, or the bytes of one.
            name: how errors call it; the path if absent.
            vocab: its vocab, or the file; otherwise the embedded one, `<digest>.vocab` beside the bundle, or the cache.

        Raises:
            BundleError: a file cannot be trusted, the vocab does not fit, or none was found.
        """
        expect_path(
            path, "Bundle.open(path)", "a path, or the bytes of a bundle", bytes, bytearray, memoryview, np.ndarray
        )
        if vocab is not None:
            expect_path(vocab, "Bundle.open(vocab)", "a path, or a Vocab", Vocab)
        held = open_container(path, MAGIC, VERSION, name=name)
        arrays = dict(held.arrays)
        embedded = arrays.pop(VOCAB_FILE, None)
        check_names(held.name, arrays, {key: table.dtype for key, table in TABLES.items()})
        if embedded is not None and (embedded.dtype != np.uint8 or embedded.ndim != 1):
            raise refuse(held.name, VOCAB_FILE, f"{embedded.dtype} {list(embedded.shape)}", "uint8 [·]", UNSOUND)
        _check_meta(held.name, held.meta)
        beside = path if isinstance(path, str | os.PathLike) else None
        found = _find(held.name, beside, held.meta, embedded, vocab)
        bundle = Bundle(Tables.from_arrays(arrays, held.addresses), held.meta, found, held.name)
        bundle.__dict__["_digest"] = held.digest if embedded is None else None
        return bundle

    def write(self, path: str | os.PathLike[str], standalone: bool = False) -> str:
        """Write the bundle file, with the vocab inside if `standalone`; returns the digest of the file."""
        expect_path(path, "Bundle.write(path)")
        if not Path(os.fsdecode(path)).name:
            raise ArgumentError(place="Bundle.write(path)", found=named_kind(path), expected="the path of a file")
        if not standalone:
            return self._contents.write(path)
        vocab = np.frombuffer(self.vocab.encode(), dtype=np.uint8)
        return self._pack({**self.tables.arrays(), VOCAB_FILE: vocab}).write(path)

    def encode(self) -> bytes:
        """The bundle file, without the vocab, as bytes."""
        return self._contents.encode()

    def _pack(self, arrays: dict[str, np.ndarray]) -> Contents:
        known = vars(self.tables).get("addresses")  # else no kernel asks for them
        return Contents(MAGIC, VERSION, self.meta, arrays, CLIMBING, COMBS, _MOST_PACKED, known)

    @cached_property
    def _contents(self) -> Contents:
        """The bundle file without the vocab: packed once for its digest and for writing."""
        return self._pack(self.tables.arrays())

    @cached_property
    def digest(self) -> str:
        """The content address, hex, of the bundle file without an embedded vocab."""
        if known := self.__dict__.get("_digest"):
            return str(known)
        return self._contents.digest

    @property
    def entry(self) -> dict[str, int]:
        """Name to local state of the places where a text may begin."""
        return dict(self.meta["entry"])

    @cached_property
    def min_tokens(self) -> dict[str, int | None]:
        """By entry: a run with a budget of so many tokens, end of turn included, ends; None where no bound is known."""
        t = self.tables
        found = {}
        for name, state in self.meta["entry"].items():
            # Counters begin at 0.
            past = sum(min(max(count - at, 0), count) for at, count in t.close_breaks[t.close_break[state]].tolist())
            need = int(t.close_bound[t.state_close[state] + past])
            found[name] = need if need < NEVER else None
        return found

    @property
    def tools(self) -> list[Any]:
        """The tools of the spec, if it had any; of a subset those that were chosen."""
        some = self.meta.get("subset")
        return [tool for tool in tools_of(self.meta) if some is None or tool["name"] in some]

    def renamed(self, name: str) -> Bundle:
        """The same under another name in errors."""
        return replace(self, name=name)


def expect_bundle(value: Any, place: str) -> None:
    """Refuse what is no bundle, and say how it becomes one.

    Raises:
        ArgumentError: at a place, as ``Matcher(bundle)``.
    """
    hints = {
        "Compiled": "write compiled.bundle",
        "Vocab": "a Vocab is only the tokenizer: compile a spec for it",
        "Spec": "compile it: compile_spec(spec, tokenizer).bundle",
        "dict": "compile it: compile_tools(spec, tokenizer).bundle",
        "list": "give one bundle",
    }
    opened = "open it: Bundle.open(path)"
    paths = {type(value).__name__: opened} if isinstance(value, (str, os.PathLike)) else {}
    expect(value, Bundle, place, "a Bundle", {**hints, **paths})


def expect_bundles(value: Any, place: str, alone: bool) -> None:
    """The same for a list of bundles, in which None may stand.

    Args:
        alone: whether one bundle may stand for a list.
    """
    if isinstance(value, Bundle) and alone:
        return
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        if not isinstance(value, Bundle):
            expect_bundle(value, place)
        raise ArgumentError(place=place, found="one Bundle", expected="a list, one for each row", hint="write [bundle]")
    for number, one in enumerate(value):
        if one is not None:
            expect_bundle(one, f"{place}, number {number}")


def _check_meta(name: str, meta: dict[str, Any]) -> None:
    digest = check_meta(name, meta, "vocab_digest", str)
    if len(digest) != 32 or any(c not in "0123456789abcdef" for c in digest):
        raise refuse(name, "meta/vocab_digest", repr(digest)[:80], "32 hexadecimal digits", UNSOUND)
    check_meta(name, meta, "vocab_size", int)


def _find(
    name: str,
    path: str | os.PathLike[str] | None,
    meta: dict[str, Any],
    embedded: np.ndarray | None,
    given: Vocab | str | os.PathLike[str] | None,
) -> Vocab:
    if isinstance(given, Vocab):
        return given
    if given is not None:
        return Vocab.open(given)
    if embedded is not None:
        return Vocab.open(embedded, name=f"{name}#{VOCAB_FILE}")
    digest: str = meta["vocab_digest"]
    found = find_vocab(digest, beside=path)
    if found is None:
        places = ", ".join(str(place) for place in vocab_places(digest, path))
        source = meta.get("tokenizer") or meta.get("vocab_source")
        raise BundleError(
            "the vocab file of the bundle was not found" + (f" (tokenizer {source})" if source else ""),
            place=f"{name}#meta/vocab_digest",
            found="none of " + places,
            expected=f"the vocab {digest}",
            hint="give the vocab, put it beside the bundle, or compile with --standalone",
        )
    return Vocab.open(Path(found))
