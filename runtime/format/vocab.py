"""The vocabulary of one tokenizer: token bytes, their trie, slices, special tokens; as arrays and as a file.

Leaves out   how the arrays are made: see the compiler's vocab folder. This file holds, checks, writes and finds them.
Invariants   a `Vocab` that exists has passed `_check`: offsets ascend, ids are in range, the trie is a preorder whose
             skips agree with its depths, slices are sorted.
Arrays       docs/format.md, "Tables of a vocabulary"; each is a field here under the same name.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..expected import expect_path
from .container import DTYPES, UNSOUND, Buffer, Contents, open_container, refuse
from .shown import vocab_line

T = TypeVar("T")

MAGIC = b"TOOLCVOC"
VERSION = 6
ARRAYS: dict[str, str] = {
    "token_offset": "int32",
    "token_bytes": "uint8",
    "node_byte": "uint8",
    "node_depth": "int32",
    "node_skip": "int32",
    "node_token_offset": "int32",
    "node_tokens": "int32",
    "slice_token_offset": "int32",
    "slice_tokens": "int32",
    "slice_units": "int32",
}
MAX_TOKENS = 1 << 24
MAX_TOKEN_BYTES = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class Vocab:
    """The arrays of a vocab file, see docs/format.md; read-only, checked when made."""

    token_offset: np.ndarray
    token_bytes: np.ndarray
    node_byte: np.ndarray
    node_depth: np.ndarray
    node_skip: np.ndarray
    node_token_offset: np.ndarray
    node_tokens: np.ndarray
    slice_token_offset: np.ndarray
    slice_tokens: np.ndarray
    slice_units: np.ndarray
    meta: dict[str, Any]
    name: str = "<vocab>"

    def __post_init__(self) -> None:
        for key in ARRAYS:
            view = np.ascontiguousarray(getattr(self, key)).view()
            view.flags.writeable = False
            object.__setattr__(self, key, view)
        _check(self)

    @staticmethod
    def open(source: str | os.PathLike[str] | Buffer, name: str | None = None) -> Vocab:
        """Map and verify a vocab file, or the bytes of one."""
        expect_path(
            source, "Vocab.open(source)", "a path, or the bytes of a vocab", bytes, bytearray, memoryview, np.ndarray
        )
        held = open_container(source, MAGIC, VERSION, name=name)
        check_names(held.name, held.arrays, ARRAYS)
        vocab = Vocab(**held.arrays, meta=held.meta, name=held.name)
        vocab.__dict__["digest"] = held.digest
        return vocab

    def __repr__(self) -> str:
        return vocab_line(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled without what matchers keep here, addresses of this process among it."""
        return partial(Vocab, **self.arrays(), meta=self.meta, name=self.name), ()

    def write(self, path: str | os.PathLike[str]) -> str:
        """Write the vocab file; returns its digest."""
        return self._contents().write(path)

    def encode(self) -> bytes:
        """The vocab file as bytes."""
        return self._contents().encode()

    def _contents(self) -> Contents:
        return Contents(MAGIC, VERSION, self.meta, self.arrays())

    def arrays(self) -> dict[str, np.ndarray]:
        return {key: getattr(self, key) for key in ARRAYS}

    @cached_property
    def digest(self) -> str:
        """The content address of the file, hex."""
        return self._contents().digest

    def once(self, make: Callable[[Vocab], T]) -> T:
        """What ``make`` makes of this vocabulary: made once, kept while it lives, and not copied with it."""
        kept: dict[Any, T] = self.__dict__.setdefault("_kept", {})
        found = kept.get(make)
        if found is None:
            found = kept[make] = make(self)
        return found

    @property
    def size(self) -> int:
        """V, the number of ids."""
        return int(self.token_offset.size) - 1

    @property
    def words(self) -> int:
        """uint32 words of a mask."""
        return -(-self.size // 32)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest token."""
        return int(np.diff(self.token_offset).max(initial=0))

    @property
    def special(self) -> dict[str, int]:
        """Name to id of every special or added token."""
        return dict(self.meta["special"])

    @property
    def end_of_turn(self) -> list[int]:
        """Ids that the tokenizer's own files call end of turn."""
        return list(self.meta["end_of_turn"])

    @property
    def logits_width(self) -> int | None:
        """How many logits the model has, as its checkpoint says; None where nothing says it."""
        width: int | None = self.meta.get("logits_width")
        return width

    def token(self, token: int) -> bytes:
        """The bytes of a token; empty for one without text."""
        return self.token_bytes[self.token_offset[token] : self.token_offset[token + 1]].tobytes()

    def shown(self, token: int) -> str:
        """A token as a person wants to read it: its special name, or its bytes."""
        text = self.token(token)
        if text:
            return repr(text)[1:]
        return next((name for name, number in self.meta["special"].items() if number == token), "no text")


def vocab_cache_dir() -> Path:
    """Where vocab files are cached: $TOOLC_CACHE, else $XDG_CACHE_HOME/toolc, else ~/.cache/toolc.

    A relative $XDG_CACHE_HOME is ignored, as the XDG Base Directory Specification says.
    """
    if cache := os.environ.get("TOOLC_CACHE"):
        return Path(cache)
    if os.path.isabs(cache := os.environ.get("XDG_CACHE_HOME", "")):
        return Path(cache) / "toolc"
    return Path(os.path.expanduser("~")) / ".cache" / "toolc"


def vocab_places(digest: str, beside: str | os.PathLike[str] | None = None) -> list[Path]:
    """Where the vocab of that digest is looked for, in order; `beside` is the bundle that names it."""
    name = f"{digest}.vocab"
    places = [Path(beside).parent / name] if beside is not None else []
    return [*places, vocab_cache_dir() / name]


def find_vocab(digest: str, beside: str | os.PathLike[str] | None = None) -> Path | None:
    """The file of the vocab with that digest: beside the bundle, then in the cache."""
    return next((path for path in vocab_places(digest, beside) if path.is_file()), None)


# By digest, as long as anything uses them: opening a large vocab takes longer than opening a bundle.
_open: weakref.WeakValueDictionary[str, Vocab] = weakref.WeakValueDictionary()
_open_lock = threading.Lock()


def open_vocab_of(digest: str) -> Vocab | None:
    """The vocab of a digest, if this process holds it already (`share_vocab`)."""
    with _open_lock:
        return _open.get(digest)


def share_vocab(vocab: Vocab) -> Vocab:
    """Let others of this process have a vocab, by its digest; returns the one that is shared."""
    with _open_lock:
        return _open.setdefault(vocab.digest, vocab)


def check_names(name: str, arrays: dict[str, np.ndarray], wanted: dict[str, str]) -> None:
    """Exactly the wanted arrays, each of the wanted dtype."""
    for key in wanted:
        if key not in arrays:
            raise refuse(name, key, "no such array", "the array", UNSOUND)
    for key, array in arrays.items():
        if key not in wanted:
            raise refuse(name, key, "an array", "none of that name", UNSOUND)
        if array.dtype != DTYPES[wanted[key]]:
            raise refuse(name, f"{key}/dtype", array.dtype.name, wanted[key], UNSOUND)


def check_range(name: str, field: str, array: np.ndarray, low: int, high: int) -> None:
    """Every number in [low, high)."""
    if array.size == 0:
        return
    least, most = int(array.min()), int(array.max())
    if least < low or most >= high:
        raise refuse(name, field, least if least < low else most, f"{low} to {high - 1}", UNSOUND, "out of range")


def check_offsets(name: str, field: str, offset: np.ndarray, total: int) -> None:
    """Offsets start at 0, never fall, and end with the array that they cut up."""
    if offset.size == 0 or offset[0] != 0:
        raise refuse(name, field, int(offset[0]) if offset.size else "nothing", "0 first", UNSOUND)
    if (offset[1:] < offset[:-1]).any():
        raise refuse(name, field, "a smaller offset after a larger", "offsets that never fall", UNSOUND)
    if int(offset[-1]) != total:
        raise refuse(name, field, int(offset[-1]), f"{total} last", UNSOUND)


def check_ascending(
    name: str, field: str, values: np.ndarray, offset: np.ndarray, keys: np.ndarray | None = None
) -> None:
    """Within each stretch, values (or pairs of key and value) strictly ascend."""
    if values.size < 2:
        return
    good = values[1:] > values[:-1]
    if keys is not None:
        good = (keys[1:] > keys[:-1]) | ((keys[1:] == keys[:-1]) & good)
    inner = offset[(offset > 0) & (offset < values.size)]
    good[inner - 1] = True
    if not good.all():
        at = int(np.argmin(good)) + 1
        found = f"{int(values[at])} after {int(values[at - 1])}"
        raise refuse(name, field, found, "ascending ids", UNSOUND, "unsorted")


def check_meta(name: str, meta: dict[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """The value of a meta field, of the wanted type."""
    if key not in meta:
        raise refuse(name, f"meta/{key}", "nothing", "the field", UNSOUND)
    value = meta[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        raise refuse(name, f"meta/{key}", type(value).__name__, wanted, UNSOUND)
    return value


def _check(v: Vocab) -> None:
    name = v.name
    for key, dtype in ARRAYS.items():
        array = getattr(v, key)
        if array.dtype.name != dtype:
            raise refuse(name, f"{key}/dtype", array.dtype.name, dtype, UNSOUND)
        if array.ndim != 1:
            raise refuse(name, f"{key}/shape", array.shape, "one dimension", UNSOUND)
    check_offsets(name, "token_offset", v.token_offset, v.token_bytes.size)
    size, nodes = v.size, int(v.node_byte.size)
    if not 1 <= size <= MAX_TOKENS:
        raise refuse(name, "token_offset/shape", size, f"1 to {MAX_TOKENS} tokens", UNSOUND)
    if v.longest > MAX_TOKEN_BYTES:
        raise refuse(name, "token_offset", v.longest, f"tokens of at most {MAX_TOKEN_BYTES} bytes", UNSOUND)
    for key in ("node_depth", "node_skip"):
        if getattr(v, key).size != nodes:
            raise refuse(name, f"{key}/shape", getattr(v, key).size, nodes, UNSOUND)
    _check_trie(v)
    if v.node_token_offset.size != nodes + 1:
        raise refuse(name, "node_token_offset/shape", v.node_token_offset.size, nodes + 1, UNSOUND)
    check_offsets(name, "node_token_offset", v.node_token_offset, v.node_tokens.size)
    check_range(name, "node_tokens", v.node_tokens, 0, size)
    check_ascending(name, "node_tokens", v.node_tokens, v.node_token_offset)
    ends = np.repeat(v.node_depth, np.diff(v.node_token_offset))
    lengths = np.diff(v.token_offset)[v.node_tokens]
    if (ends != lengths).any():
        raise refuse(name, "node_tokens", "a token of another length", "the depth of its node", UNSOUND)
    check_offsets(name, "slice_token_offset", v.slice_token_offset, v.slice_tokens.size)
    check_range(name, "slice_tokens", v.slice_tokens, 0, size)
    if v.slice_units.size != v.slice_tokens.size:
        raise refuse(name, "slice_units/shape", v.slice_units.size, v.slice_tokens.size, UNSOUND)
    check_range(name, "slice_units", v.slice_units, 0, MAX_TOKEN_BYTES + 1)
    check_ascending(name, "slice_tokens", v.slice_tokens, v.slice_token_offset, v.slice_units)
    _check_meta(v)


def _check_trie(v: Vocab) -> None:
    """The preorder: depths rise by at most one, skips are what the depths say, children ascend by byte."""
    name, depth, nodes = v.name, v.node_depth, int(v.node_byte.size)
    if nodes == 0:
        return
    if depth[0] != 1:
        raise refuse(name, "node_depth", int(depth[0]), "1 first", UNSOUND)
    if depth.min() < 1 or (depth[1:] > depth[:-1] + 1).any():
        raise refuse(name, "node_depth", "a jump", "depths of a preorder: at least 1, rising by one", UNSOUND)
    if depth.max() > v.longest:
        raise refuse(name, "node_depth", int(depth.max()), f"at most {v.longest}, the longest token", UNSOUND)
    check_range(name, "node_skip", v.node_skip, 1, nodes + 1)
    # Level by level: a node's subtree ends at its next sibling, or where its parent's ends.
    order = np.argsort(depth, kind="stable").astype(np.int32)
    starts = np.searchsorted(depth[order], np.arange(1, int(depth.max()) + 2))
    above = np.zeros(0, dtype=np.int32)
    for start, stop in itertools.pairwise(starts):
        level = order[start:stop]
        parent = np.searchsorted(above, level) - 1 if above.size else np.zeros(level.size, dtype=np.int64)
        last = np.empty(level.size, dtype=bool)
        last[-1] = True
        last[:-1] = parent[1:] != parent[:-1]
        want = np.empty(level.size, dtype=np.int32)
        want[:-1] = level[1:]
        want[last] = v.node_skip[above[parent[last]]] if above.size else nodes
        bad = np.flatnonzero(want != v.node_skip[level])
        if bad.size:
            node = int(level[bad[0]])
            raise refuse(name, f"node_skip/{node}", int(v.node_skip[node]), int(want[bad[0]]), UNSOUND)
        inner = level[:-1][~last[:-1]]
        if (v.node_byte[v.node_skip[inner]] <= v.node_byte[inner]).any():
            raise refuse(name, "node_byte", "siblings out of order", "children ascending by byte", UNSOUND)
        above = level


def _check_meta(v: Vocab) -> None:
    name = v.name
    size = check_meta(name, v.meta, "size", int)
    if size != v.size:
        raise refuse(name, "meta/size", size, v.size, UNSOUND)
    for key, number in check_meta(name, v.meta, "special", dict).items():
        if not isinstance(key, str) or type(number) is not int or not 0 <= number < v.size:
            raise refuse(name, f"meta/special/{key}", repr(number)[:80], f"0 to {v.size - 1}", UNSOUND)
    for number in check_meta(name, v.meta, "end_of_turn", list):
        if type(number) is not int or not 0 <= number < v.size:
            raise refuse(name, "meta/end_of_turn", repr(number)[:80], f"0 to {v.size - 1}", UNSOUND)
    width = v.meta.get("logits_width")
    if width is not None and (type(width) is not int or not v.size <= width <= MAX_TOKENS):
        raise refuse(name, "meta/logits_width", repr(width)[:80], f"{v.size} to {MAX_TOKENS}, or none", UNSOUND)
    names = check_meta(name, v.meta, "slices", list)
    if len(names) != v.slice_token_offset.size - 1 or not all(isinstance(n, str) for n in names):
        raise refuse(name, "meta/slices", len(names), f"{v.slice_token_offset.size - 1} names", UNSOUND)
